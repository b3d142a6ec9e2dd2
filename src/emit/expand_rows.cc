// A reduction turned inside out, a row of results at a time: its inner loop then runs along memory, so that compilers
// vectorize it.
//   compute y[i in n, j in 64] = f(sum(a[i, k] * b[k, j] for k in m))
// ->
//   for i in n {
//     alloc sum: f32[64] in local
//     for j in 64 { sum[j] = 0.0 }
//     for k in m { for j in 64 { sum[j] = sum[j] + a[i, k] * b[k, j] } }
//     for j in 64 { y[i, j] = f(sum[j]) }
//   }
// Each element still gets its terms in the same order, so its bits are the same. A padding inside the term,
// where(k >= 1 && j + r >= 1 && j + r < 9, x[..], 0.0), becomes a condition in front of the inner loop and the bounds of
// three: before, inside and behind.
#include "arith/affine.h"
#include "emit/expander.h"
#include "ir/edit.h"

namespace mlc {

namespace {

constexpr int64_t kLeast = 12, kMost = 128, kTile = 64;  // elements of a row; shorter ones gain nothing

// e with `from` (one node, by its identity) replaced.
const Expr *replaced(Build &b, const Expr *e, const Expr *from, const Expr *to) {
  return rewrite(b, e, [&](const Expr *x) { return x == from ? to : x; });
}

}  // namespace

// The only reduction in e, where it is surely evaluated; null: there is none, or several.
const Call *Expander::only_fold(const Expr *e) {
  if (is_fold(e)) {
    auto *c = as<Call>(e);
    bool plain = !c->global && !c->iters.empty() && c->args.size() == 1 && !reduces(c->args[0]);
    std::string_view name = text(c->callee);
    return plain && (name == "sum" || name == "max" || name == "min") ? c : nullptr;
  }
  auto *x = as<Binary>(e);
  auto *c = as<Call>(e);
  if ((x && (x->op == Op::And || x->op == Op::Or)) || (c && !c->global && text(c->callee) == "where")) return nullptr;
  const Expr *only = nullptr;
  bool one = true;
  each_child(e, [&](const Expr *child) {
    if (!reduces(child)) return;
    one &= !only;
    only = child;
  });
  return one && only ? only_fold(only) : nullptr;
}

// Loads run along memory with v, at least one of them; the others stand still.
bool Expander::along(const Expr *term, Sym v, const Bounds &known) {
  bool good = true, moves = false;
  each_expr(term, [&](const Expr *e) {
    auto *l = as<Load>(e);
    if (!l) return good;
    for (size_t d = 0; d < l->index.size(); d++) {
      if (!mentions(l->index[d], v)) continue;
      auto a = affine(b_, l->index[d], b_.one(v), known);
      good &= d + 1 == l->index.size() && a && is_int(a->coefs[0], 1);
      moves = true;
    }
    return good;
  });
  return good && moves;
}

// Conditions on v as lo <= v < hi; false: not of this form.
bool Expander::between(const std::vector<const Expr *> &conditions, Sym v, const Bounds &known, Values &lo, Values &hi) {
  for (const Expr *e : conditions) {
    auto *c = as<Binary>(e);
    if (!c || c->op < Op::Lt || c->op > Op::Ge) return false;
    auto a = affine(b_, b_.binary(Op::Sub, c->a, c->b), b_.one(v), known);
    if (!a) return false;
    bool up = is_int(a->coefs[0], 1);
    if (!up && !is_int(a->coefs[0], -1)) return false;
    bool at_least = (c->op == Op::Ge || c->op == Op::Gt) == up, strict = c->op == Op::Gt || c->op == Op::Lt;
    X edge = up ? -x(a->rest) : x(a->rest);  // v >= edge, v > edge, v <= edge, v < edge
    if (at_least) lo.push_back((strict ? edge + 1 : edge).e);
    else hi.push_back((strict ? edge : edge + 1).e);
  }
  return true;
}

bool Expander::rows(const Compute &c, Out &out) {
  Iters iters = c.results[0].iters;
  const Call *fold = c.results.size() == 1 && !iters.empty() ? only_fold(c.value) : nullptr;
  if (!fold) return false;
  Sym v = iters.back().name;
  const Expr *length = iters.back().extent, *term = fold->args[0];
  int64_t n = 0;
  bool fixed = int_value(length, &n);
  if (fixed && n < kLeast) return false;
  for (const Iter &i : fold->iters)
    if (i.name == v || mentions(i.extent, v)) return false;

  // What is known: all names are indices.
  Bounds known(b_);
  std::unordered_set<Sym> mentioned;
  collect_names(c.value, mentioned);
  std::vector<Sym> names(mentioned.begin(), mentioned.end());
  std::sort(names.begin(), names.end());  // terms are printed in the order of their definition
  for (Sym s : names)
    if (!env_.find(s) || !env_.find(s)->tensor) known.index(s);
  for (const Iter &i : iters) known.index(i.name);
  for (const Iter &i : fold->iters) known.index(i.name);

  // At most one choice in the term, so that none is left in the inner loop.
  const Call *choice = nullptr;
  bool one = true;
  each_expr(term, [&](const Expr *e) {
    auto *w = as<Call>(e);
    bool branch = w && !w->global && text(w->callee) == "where";
    if (auto *x = as<Binary>(e); x && !choice) branch |= x->op == Op::And || x->op == Op::Or;
    if (!branch) return true;
    one &= !choice && w;
    choice = w;
    return false;
  });
  if (!one) return false;
  std::vector<const Expr *> all, still, moving;
  if (choice) conjuncts(choice->args[0], all);
  for (const Expr *e : all) (mentions(e, v) ? moving : still).push_back(e);
  const Expr *yes = choice ? replaced(b_, term, choice, choice->args[1]) : term;
  const Expr *no = choice ? replaced(b_, term, choice, choice->args[2]) : nullptr;
  bool nested = false;
  for (const Expr *e : {yes, no})
    if (e) each_expr(e, [&](const Expr *x) {
      auto *w = as<Call>(x);
      return !(nested |= w && !w->global && text(w->callee) == "where");
    });
  Values lo, hi;
  if (nested || !along(yes, v, known) || !between(moving, v, known, lo, hi)) return false;
  size_t mark = env_.mark();
  for (const Iter &i : iters) env_.define_index(i.name);
  for (const Iter &i : fold->iters) env_.define_index(i.name);
  DType t = this->known(fold);
  env_.pop(mark);
  if (t != DType::F32 && t != DType::F64 && t != DType::I32 && t != DType::I64) return false;

  int64_t tile = fixed && n <= kMost ? n : kTile;
  for (int64_t d = kMost; fixed && n > kMost && d >= kTile / 2; d -= 8)
    if (n % d == 0) {
      tile = d;
      break;
    }
  bool whole = fixed && tile == n, even = fixed && n % tile == 0;
  std::vector<Iter> outer(iters.begin(), iters.end() - 1);
  Sym block;
  if (!whole) {
    block = fresh(fmt::format("{}_tile", text(v)));
    outer.push_back({block, floordiv(x(length) + lit(b_, tile - 1), tile).e, kNowhere});
  }
  nest(b_.list(outer), c.from, out, [&](Out &in) {
    X base = whole ? lit(b_, int64_t{0}) : x(b_.name(block)) * lit(b_, tile);
    auto index = [&](std::string_view name, X value, Out &to) {
      Sym s = fresh(name);
      define({s, kNowhere, b_.index()}, value.e, {}, to);
      return x(b_.name(s));
    };
    X lanes = even ? lit(b_, tile) : index("lanes", min(x(length) - base, lit(b_, tile)), in);
    Sym row = fresh(text(fold->callee));
    const Expr *size = b_.integer(tile);
    const Type *type = b_.type({t, true, b_.sym("local"), {}, -1, b_.one(size), {}});
    env_.define(row, type);
    in.push_back(b_.make(Alloc{{}, {row, kNowhere, type}, {}, nullptr}));
    // for v in count { f(place in the row, v's value) }
    auto each = [&](X from, X count, Out &to, const std::function<void(const Load *, const Expr *, Out &)> &f) {
      Iter lane{v, count.e, kNowhere};
      nest(b_.one(lane), {}, to, [&](Out &body) {
        X at = from + x(b_.name(v));
        f(b_.load(row, b_.list({at.e})), (base + at).e, body);
      });
    };
    auto moved = [&](const Expr *e, const Expr *value) { return substitute(b_, e, {{v, value}}); };
    X zero_ = lit(b_, int64_t{0});
    std::string_view name = text(fold->callee);
    each(zero_, lanes, in, [&](const Load *at, const Expr *, Out &body) {
      body.push_back(store(at, fold_start(b_, name, t).e));
    });
    auto combine = [&](const Expr *e) {
      return [&, e](const Load *at, const Expr *value, Out &body) {
        body.push_back(store(at, fold_step(b_, name, at, moved(e, value))));
      };
    };
    nest(fold->iters, {}, in, [&](Out &turn) {
      Out inside, outside;
      if (moving.empty()) {
        each(zero_, lanes, inside, combine(yes));
      } else {
        X from = zero_, to = lanes;
        for (const Expr *e : lo) from = max(from, x(e) - base);
        for (const Expr *e : hi) to = min(to, x(e) - base);
        from = index("first", min(from, lanes), inside), to = index("last", max(to, from), inside);
        each(zero_, from, inside, combine(no));
        each(from, to - from, inside, combine(yes));
        each(to, lanes - to, inside, combine(no));
      }
      if (still.empty()) {
        turn.insert(turn.end(), inside.begin(), inside.end());
        return;
      }
      each(zero_, lanes, outside, combine(no));
      const Expr *cond = still[0];
      for (size_t i = 1; i < still.size(); i++) cond = b_.binary(Op::And, cond, still[i]);
      turn.push_back(b_.make(If{{}, cond, b_.list(inside), b_.list(outside), true}));
    });
    Sym hole = b_.sym("the reduction's value");
    const Expr *shape = replaced(b_, c.value, fold, b_.name(hole));
    each(zero_, lanes, in, [&](const Load *at, const Expr *value, Out &body) {
      std::vector<const Expr *> target;
      for (const Iter &i : iters) target.push_back(i.name == v ? value : b_.name(i.name));
      body.push_back(store(b_.load(c.results[0].name, b_.list(target), c.results[0].at),
                           substitute(b_, shape, {{v, value}, {hole, at}}), c.from));
    });
  });
  return true;
}

}  // namespace mlc
