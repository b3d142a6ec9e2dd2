// tensorize: a block whose turns are what an intrinsic describes becomes a call of it.
#include <algorithm>

#include "arith/prove.h"
#include "arith/simplify.h"
#include "ops/expr.h"
#include "sched/describe.h"
#include "sched/macro.h"
#include "sched/primitives.h"
#include "sched/regions.h"

namespace mlc {

namespace {

// Matches a term of the kernel against a term of the description, under a pairing of loops with iterators.
class Matcher {
 public:
  Matcher(State &s, Place *n, const Func &f, const std::vector<std::pair<Sym, Sym>> &loops, std::string &why)
      : s_(s), b_(s.b), n_(n), f_(f), known_(s, n, true), why_(why) {
    for (auto &[loop, iter] : loops)
      iter_of_[loop] = b_.name(iter), zeros_[loop] = b_.integer(0);
  }

  // e: in loops of the kernel; d: in iterators of the description.
  bool expr(const Expr *e, const Expr *d) {
    if (auto *l = as<Load>(d)) return e->kind == Kind::Load && access(to<Load>(e), *l);
    if (e->kind != d->kind) return false;
    switch (d->kind) {
      case Kind::Binary: {
        auto &x = to<Binary>(e), &y = to<Binary>(d);
        if (x.op != y.op) return false;
        if (expr(x.a, y.a) && expr(x.b, y.b)) return true;
        auto saved = operands;
        bool commutes = x.op == Op::Add || x.op == Op::Mul;
        if (commutes && expr(x.b, y.a) && expr(x.a, y.b)) return true;
        operands = saved;
        return false;
      }
      case Kind::Call: {
        auto &x = to<Call>(e), &y = to<Call>(d);
        if (x.callee != y.callee || x.global != y.global || x.args.size() != y.args.size() || !y.iters.empty())
          return false;
        auto saved = operands;
        auto in_order = [&](size_t first) {  // from there on, around
          operands = saved;
          for (size_t i = 0; i < x.args.size(); i++)
            if (!expr(x.args[(first + i) % x.args.size()], y.args[i])) return false;
          return true;
        };
        std::string_view name = b_.text(x.callee);
        bool commutes = !x.global && x.args.size() == 2 && (name == "max" || name == "min");
        return in_order(0) || (commutes && in_order(1));
      }
      default: return equal(e, d);
    }
  }

  // A load of the kernel is an element of the operand: its subscripts are a base and what the description has.
  bool access(const Load &e, const Load &d) {
    const Type *have = s_.type_of_buffer(e.buffer), *want = nullptr;
    for (const Param &p : f_.params)
      if (p.def.name == d.buffer) want = p.def.type;
    for (const Def &r : f_.results)
      if (r.name == d.buffer) want = r.type;
    if (!have || !want || e.global || d.global || have->elem != want->elem) return false;
    std::vector<const Expr *> region;
    size_t at = 0;  // of the operand's dimensions
    for (size_t i = 0; i < e.index.size(); i++) {
      const Expr *base = simplify(b_, substitute(b_, e.index[i], zeros_), known_);
      const Expr *rest = simplify(b_, (X{b_, e.index[i]} - X{b_, base}).e, known_);
      const Expr *inner = substitute(b_, rest, iter_of_);
      // A dimension that stands still may be left out, if those behind it are enough for the operand.
      bool still = is_int(inner, 0), needed = e.index.size() - i <= d.index.size() - at;
      if (at < d.index.size() && provably_equal(b_, inner, d.index[at], Bounds(b_)) && (!still || needed)) {
        region.push_back(b_.range(base, want->dims[at++]));
        continue;
      }
      if (!still) return false;
      region.push_back(base);
    }
    if (at != d.index.size()) return false;
    const Load *found = b_.load(e.buffer, b_.list(region), e.at);
    auto [it, fresh] = operands.try_emplace(d.buffer, found);
    if (!fresh && !equal(it->second, found)) return false;
    Sym scope = want->scope;
    if (scope != have->scope && !(s_.text(scope) == "global" && !have->scope)) {
      why_ = fmt::format("{} is in {}, {} of @{} wants {}", s_.text(e.buffer),
                         have->scope ? s_.text(have->scope) : "global", s_.text(d.buffer), s_.text(f_.name),
                         scope ? s_.text(scope) : "global");
      return false;
    }
    return true;
  }

  std::map<Sym, const Load *> operands;

 private:
  State &s_;
  Build &b_;
  Place *n_;
  const Func &f_;
  Known known_;
  Substitution iter_of_, zeros_;
  std::string &why_;
};

}  // namespace

void tensorize(State &s, Args &a) {
  a.expect_results(0, 0);
  Build &b = s.b;
  const Global *g = a.global(1);
  const Func *f = s.m.func(g->name);
  if (!f || f->func != FuncKind::Intrinsic) bad_step(a.at(1), "@{} is no intrinsic of the module", s.text(g->name));
  auto desc = description_of(b, *f);
  if (!desc) bad_step(a.at(1), "the description of @{} is not one compute line", s.text(g->name));
  Place *at = a.loop_or_block(0);
  std::vector<Place *> leaf = leaf_blocks(at);
  if (leaf.size() != 1) refuse(at, "{} holds {}, expected one", s.name_of(at), counted(leaf.size(), "block"));
  Place *n = leaf[0];
  if (at->loop()) {
    Macro blockized(s, a);
    blockized.run("blockize", {blockized(at)});
    at = at->up;
  }
  if (!at->nest) refuse(at, "{} is no block of loops: blockize makes one", s.name_of(at));
  const Block k = *n->block();
  std::string block = s.text(k.name);
  auto *store = k.body.size() == 1 ? as<Store>(k.body[0]) : nullptr;
  if (!store || k.guard) refuse(n, "block {} {}", block, store ? "has a guard" : "does more than store one value");

  std::vector<const For *> loops;
  for (Place *l : loops_around(n))
    loops.push_back(l->loop());
  Substitution by_loops = bindings(k);
  const Expr *target = substitute(b, static_cast<const Expr *>(store->target), by_loops);
  const Expr *value = store->value;
  if (desc->fold) {
    auto *x = as<Binary>(value);
    auto *c = as<Call>(value);
    bool sum = s.text(desc->fold) == "sum" && x && x->op == Op::Add && equal(x->a, store->target);
    bool call = c && c->callee == desc->fold && c->args.size() == 2 && equal(c->args[0], store->target);
    if (!sum && !call) refuse(n, "block {} is no {} as @{} is", block, s.text(desc->fold), s.text(f->name));
    value = sum ? x->b : c->args[1];
    if (desc->starts != !k.inits.empty())
      throw Refused{n->stmt->at,
                    desc->starts
                        ? fmt::format("@{} starts at the identity, block {} has no initialiser", s.text(f->name), block)
                        : fmt::format("@{} adds to what is there, block {} has an initialiser", s.text(f->name), block),
                    desc->starts ? "" : fmt::format("decompose_reduction({}, ..) first", block)};
  } else if (!k.inits.empty()) {
    refuse(n, "block {} has an initialiser, @{} has none", block, s.text(f->name));
  }
  value = substitute(b, value, by_loops);

  // All pairings of loops with iterators of the same extent and kind.
  std::vector<Iter> iters(desc->spatial);
  iters.insert(iters.end(), desc->reduce.begin(), desc->reduce.end());
  if (iters.size() != loops.size())
    refuse(at, "block {} stands in {} of {}, @{} has {}", block, counted(loops.size(), "loop"), s.name_of(at),
           s.text(f->name), iters.size());
  std::vector<size_t> order(loops.size());
  for (size_t i = 0; i < order.size(); i++)
    order[i] = i;
  std::string why;
  do {
    std::vector<std::pair<Sym, Sym>> pairs;
    bool fits = true;
    for (size_t i = 0; fits && i < order.size(); i++) {
      fits = equal(loops[order[i]]->iter.extent, iters[i].extent);
      pairs.push_back({loops[order[i]]->iter.name, iters[i].name});
    }
    if (!fits) continue;
    Matcher match(s, n, *f, pairs, why);
    if (!match.access(to<Load>(target), *desc->target) || !match.expr(value, desc->value)) continue;
    std::vector<const Expr *> args, dests;
    for (const Param &p : f->params) {
      auto it = match.operands.find(p.def.name);
      if (it == match.operands.end())
        refuse(at, "operand {} of @{} does not occur in its description", s.text(p.def.name), s.text(f->name));
      args.push_back(it->second);
    }
    for (const Def &d : f->results)
      dests.push_back(match.operands.at(d.name));
    const Stmt *call =
        b.make(CallStmt{{}, b.call(f->name, b.list(args), kNowhere, true), b.list(dests), {}, k.notes.from});
    std::vector<Place *> old = at->kids[0];
    for (Place *p : old)
      s.tree.remove(p);
    at->nest = false;
    s.tree.edit<Block>(at, [&](Block &x) { x.body = b.stmts({call}), x.inits = {}; });
    return;
  } while (std::next_permutation(order.begin(), order.end()));
  if (!why.empty()) refuse(n, "block {} is what @{} describes, but {}", block, s.text(f->name), why);
  refuse(n, "block {}, {}, is not what @{} describes, in no order of its loops", block,
         s.text(static_cast<const Expr *>(store->target)) + " = " + s.text(store->value), s.text(f->name));
}

}  // namespace mlc
