// Whole vectors without a question, then the rest. Beside a masked form of it, a compiler keeps no constants of a loop in
// registers.
//
//   for i in m {                                 let whole = clamp((n - a) // 16, 0, m)
//     for v in 16 vectorize {             ->     for i in whole { for v in 16 vectorize { .. } }
//       if a + i * 16 + v < n { .. }             if whole < m { for v in 16 vectorize {
//                                                  if v < min(15, n - a - whole * 16) { .. } } }
//
// Behind that turn there is nothing to do.
#include <optional>

#include "arith/scope.h"
#include "arith/simplify.h"
#include "emit/shaper.h"
#include "ir/edit.h"
#include "ops/expr.h"

namespace mlc {

namespace {

// A vector loop all of whose body stands under v < count, where count falls by `step` from turn to turn of the loop around.
struct Guarded {
  const For *vector;
  const If *branch;
  X count;  // of turn 0
  int64_t lanes, step;
};

std::optional<Guarded> guarded(Build &b, const Stmt *s, Sym turn) {
  auto *f = as<For>(s);
  auto *i = f && f->loop == LoopKind::Vectorize && f->body.size() == 1 ? as<If>(f->body[0]) : nullptr;
  auto *x = i && i->other.empty() ? as<Binary>(i->cond) : nullptr;
  Guarded g{f, i, {}, 0, 0};
  if (!x || x->op != Op::Lt || reads_memory(x) || !int_value(f->iter.extent, &g.lanes)) return {};
  X left = X(b, x->b) - X(b, x->a);
  auto difference = [&](X p, X q, int64_t *d) { return int_value(simplify(p - q).e, d); };
  int64_t by, each;
  // Affine in both: the difference to the next one is the same everywhere.
  X next_turn(b, substitute(b, left.e, {{turn, (X(b, b.name(turn)) + 1).e}}));
  X next_lane(b, substitute(b, left.e, {{f->iter.name, (X(b, b.name(f->iter.name)) + 1).e}}));
  if (!difference(left, next_turn, &by) || !difference(left, next_lane, &each) || by <= 0 || each != 1) return {};
  g.count = X(b, substitute(b, left.e, {{turn, b.integer(0)}, {f->iter.name, b.integer(0)}})), g.step = by;
  return g;
}

}  // namespace

bool Shaper::whole_first(const For &f, const Expr *extent, Stmts inner, Out &out) {
  std::vector<Guarded> all;
  for (const Stmt *s : inner) {
    auto g = guarded(b_, s, f.iter.name);
    if (!g || (!all.empty() && g->step != all[0].step)) return false;
    all.push_back(*g);
  }
  if (all.empty()) return false;
  X fewest = all[0].count - all[0].lanes, most = all[0].count;
  int64_t step = all[0].step, spread;
  for (const Guarded &g : all) {
    int64_t d;
    if (!int_value(simplify(g.count - g.lanes - fewest).e, &d)) return false;
    if (d < 0) fewest = g.count - g.lanes;
    if (!int_value(simplify(g.count - most).e, &d)) return false;
    if (d > 0) most = g.count;
  }
  if (!int_value(simplify(most - fewest).e, &spread) || spread > step) return false;
  X turns(b_, extent);
  X whole = max(lit(b_, 0), min(turns, floordiv(fewest + step, step)));
  Def def{fresh_.make("whole"), kNowhere, b_.index()};
  X done(b_, b_.name(def.name));
  const Stmt *let = b_.make(Let{{}, b_.one(def), simplify(b_, whole.e, known_), {}, {}});
  env_.define_index(def.name);
  out.push_back(f.comment.empty() ? let : commented(b_, let, f.comment));
  std::vector<const Stmt *> plain, rest;
  for (const Guarded &g : all) {
    plain.push_back(edited(b_, *g.vector, [&](For &v) { v.body = g.branch->body; }));
    X count = g.count - done * step;
    if (all.size() == 1) count = min(lit(b_, g.lanes - 1), count);
    const Expr *cond = (X(b_, b_.name(g.vector->iter.name)) < count).e;
    Stmts body = substitute(b_, g.branch->body, {{f.iter.name, done.e}});
    const Stmt *branch = edited(b_, *g.branch, [&](If &n) { n.cond = cond, n.body = body; });
    rest.push_back(edited(b_, *g.vector, [&](For &v) { v.body = b_.stmts({branch}), v.comment = {}; }));
  }
  out.push_back(serial(f.iter.name, done.e, b_.list(plain)));
  If tail{};
  tail.cond = (done < turns).e, tail.body = b_.list(rest);
  out.push_back(b_.make(tail));
  return true;
}

}  // namespace mlc
