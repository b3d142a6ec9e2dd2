// lift_padding: a padded operand becomes a buffer of its own.
#include "arith/affine.h"
#include "arith/simplify.h"
#include "ops/expr.h"
#include "sched/copy.h"
#include "sched/nest.h"
#include "sched/primitives.h"

namespace mlc {

namespace {

// A condition of the block over its axes as one over the padded buffer's: v_d - 1 >= 0 for i + r >= 1, where the
// subscript d is i + r - 1 and v_d + from_d stands for it. Null: it is none.
const Expr *over(State &s, const Expr *cond, Exprs index, Exprs at, Exprs from, Syms axes, const Bounds &known) {
  Build &b = s.b;
  auto *c = as<Binary>(cond);
  if (!c || c->op < Op::Lt || c->op > Op::Ge) return nullptr;
  X side = X{b, c->a} - X{b, c->b};
  for (size_t d = 0; d < index.size(); d++)
    for (bool up : {true, false}) {
      X i{b, index[d]};
      const Expr *rest = simplify(b, (up ? side - i : side + i).e, known);
      bool free = true;
      for (Sym a : axes) free &= !mentions(rest, a);
      if (!free) continue;
      X lo{b, from[d]}, r{b, rest};  // v + lo + rest op 0, or rest - (v + lo) op 0
      return up ? b.binary(c->op, at[d], simplify(-r - lo).e) : b.binary(c->op, simplify(r - lo).e, at[d]);
    }
  return nullptr;
}

}  // namespace

// y[i] += where(i + r >= 1 && i + r < 9, x[i + r - 1], 0.0) * w[r] for i in 8, r in 3
// ->  block x.pad { x.pad[a] = where(a >= 1 && a < 9, x[a - 1], 0.0) }, y[i] += x.pad[i + r] * w[r]
void lift_padding(State &s, Args &a) {
  a.expect_results(0, 1);
  Build &b = s.b;
  Place *n = a.block(0);
  Sym buffer = a.buffer(1);
  const Block k = *n->block();
  std::string block = s.text(k.name), name = s.text(buffer);
  if (n->nest) refuse(n, "block {} holds blocks; name one of them", block);
  const Call *choice = nullptr;
  size_t loads = 0;
  auto of_buffer = [&](const Expr *e) {
    auto *l = as<Load>(e);
    return l && !l->global && l->buffer == buffer;
  };
  rewrite_exprs(b, n->stmt, [&](const Expr *e) {
    loads += of_buffer(e);
    auto *c = as<Call>(e);
    if (c && !c->global && b.text(c->callee) == "where" && of_buffer(c->args[1])) choice = c;
    return e;
  });
  bool constant = choice != nullptr;
  if (choice)
    each_expr(choice->args[2], [&](const Expr *e) { return constant &= e->kind != Kind::Load && e->kind != Kind::Name; });
  if (!constant || loads != 1)
    refuse(n, "block {} does not read {} once, as where(condition, {}[..], constant)", block, name, name);
  Exprs index = to<Load>(choice->args[1]).index;

  Known known(s, n, true);
  std::vector<Iter> iters;
  std::vector<Sym> names;
  for (const Axis &x : k.axes) iters.push_back({x.name, x.domain, kNowhere}), names.push_back(x.name);
  Known outside(s, n);
  std::vector<const Expr *> from, dims, values, at, read;
  std::vector<Axis> axes;
  for (const Expr *e : index) {
    auto span = span_of(b, e, b.list(iters), outside);
    if (!span) refuse(n, "the subscript {} of {} has no known range", s.text(e), name);
    from.push_back(simplify(b, span->lo, outside));
    dims.push_back(simplify(b, span->extent, outside));
    Sym v = axis_name(s, std::string(1, char('i' + axes.size() % 8)), axes);
    axes.push_back({AxisKind::Spatial, v, kNowhere, dims.back(), b.name(v)});
    at.push_back(b.name(v));
    values.push_back(simplify(b, (X{b, b.name(v)} + X{b, from.back()}).e));
    read.push_back(simplify(b, (X{b, e} - X{b, from.back()}).e, known));
  }
  X cond;
  std::vector<const Expr *> all;
  conjuncts(choice->args[0], all);
  for (const Expr *e : all) {
    const Expr *c = over(s, e, index, b.list(at), b.list(from), b.list(names), known);
    if (!c) refuse(n, "the condition {} is none on a subscript of {}", s.text(e), name);
    cond = cond ? cond && X{b, c} : X{b, c};
  }

  Spot spot = spot_before(s, {n}, buffer);
  if (spot.scope->stmt) refuse(n, "{} is written inside {}: its padding stays there", name, s.name_of(spot.scope));
  const Type *t = s.type_of_buffer(buffer);
  Sym copy = s.buffer_name(a.result(0, name + ".pad"));
  Sym made = s.block_name(s.text(copy));
  s.add_alloc(copy, b.tensor(t->elem, b.list(dims)));
  Block p{};
  p.name = made, p.axes = b.list(axes), p.notes.from = k.notes.from;
  const Expr *value = b.call("where", {cond.e, b.load(buffer, b.list(values)), choice->args[2]});
  p.body = b.stmts({b.make(Store{{}, false, b.load(copy, b.list(at)), value, {}})});
  std::vector<Share> parts;
  for (const Axis &x : axes) parts.push_back({&x, nullptr, nullptr});
  Place *inner = nullptr, *outer = nest_over(s, p, parts, spot.scope, &inner);
  const Expr *now = b.load(copy, b.list(read));
  n->stmt = rewrite_exprs(b, n->stmt, [&](const Expr *e) { return equal(e, choice) ? now : e; });
  s.tree.edit<Block>(n, [&](Block &x) { x.reads = {}; });
  Spot again = spot_before(s, {n}, copy);
  s.tree.insert(again.scope, 0, again.at, outer);
  a.set_block(0, inner);
}

}  // namespace mlc
