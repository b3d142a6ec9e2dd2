// decompose_padding, pad_einsum.
#include <algorithm>

#include "arith/affine.h"
#include "arith/prove.h"
#include "arith/simplify.h"
#include "ir/typing.h"
#include "ops/expr.h"
#include "sched/combine.h"
#include "sched/copy.h"
#include "sched/nest.h"
#include "sched/primitives.h"
#include "sched/regions.h"

namespace mlc {

namespace {

struct AxisBounds {
  X lo, end;
};

// The part of each axis where all conditions hold; refuses a condition that is no bound of one axis.
std::map<Sym, AxisBounds> bounds_of(State &s, Place *n, const Expr *cond) {
  Build &b = s.b;
  const Block &k = *n->block();
  Known known(s, n, true);
  std::map<Sym, AxisBounds> out;
  std::vector<const Expr *> conditions;
  conjuncts(cond, conditions);
  for (const Expr *e : conditions) {
    auto *x = as<Binary>(e);
    bool compares = x && x->op >= Op::Lt && x->op <= Op::Ge;
    const Axis *axis = nullptr;
    size_t count = 0;
    for (const Axis &a : k.axes)
      if (mentions(e, a.name)) axis = &a, count++;
    auto a = compares && count == 1 ? affine(b, b.binary(Op::Sub, x->a, x->b), b.one(axis->name), known) : std::nullopt;
    bool up = a && is_int(a->coefs[0], 1);
    if (!up && !(a && is_int(a->coefs[0], -1)))
      refuse(n, "the condition {} of block {} is no bound of one axis", s.text(e), s.text(k.name));
    bool at_least = (x->op == Op::Ge || x->op == Op::Gt) == up, strict = x->op == Op::Gt || x->op == Op::Lt;
    X rest{b, a->rest}, edge = up ? -rest : rest;
    auto [it, fresh] = out.try_emplace(axis->name, AxisBounds{lit(b, int64_t{0}), X{b, axis->domain}});
    if (at_least) it->second.lo = max(it->second.lo, strict ? edge + 1 : edge);
    else it->second.end = min(it->second.end, strict ? edge : edge + 1);
  }
  for (auto &[name, r] : out)
    r.lo.e = simplify(b, r.lo.e, known), r.end.e = simplify(b, max(r.end, r.lo).e, known);
  return out;
}

void expect_alone(State &s, Place *n, Place *loop) {
  for (Place *u = n->up;; u = u->up) {
    if (!u || !u->loop() || u->kids[0].size() != 1)
      refuse(u, "{} holds more than block {}", s.name_of(u), s.text(n->block()->name));
    if (u == loop) break;
  }
}

}  // namespace

// for i in 10 { block p { p[i] = where(i >= 1 && i < 9, x[i - 1], 0.0) } }
// ->  for i in 10 { block p.pad { p[i] = 0.0 } }, for i in 8 { block p { p[i + 1] = x[i] } }
void decompose_padding(State &s, Args &a) {
  a.expect_results(0, 1);
  Build &b = s.b;
  Place *n = a.block(0), *loop = a.loop(1);
  const Block k = *n->block();
  std::string block = s.text(k.name);
  if (!is_below(n, loop)) refuse(loop, "{} does not stand around block {}", s.name_of(loop), block);
  auto *store = k.body.size() == 1 ? as<Store>(k.body[0]) : nullptr;
  auto *choice = store ? as<Call>(store->value) : nullptr;
  if (!choice || choice->global || b.text(choice->callee) != "where" || has_reduce(k) || has_scan(k) || k.guard)
    refuse(n, "block {} is no padding: p[..] = where(condition, x[..], value)", block);
  bool constant = true;
  each_expr(choice->args[2], [&](const Expr *e) { return constant &= e->kind != Kind::Load && e->kind != Kind::Name; });
  if (!constant) refuse(n, "block {} pads with {}, which is no constant", block, s.text(choice->args[2]));
  expect_alone(s, n, loop);
  std::map<Sym, AxisBounds> inside = bounds_of(s, n, choice->args[0]);
  std::map<Sym, Place *> loops;
  for (const Axis &x : k.axes)
    if (inside.count(x.name)) loops[x.name] = loop_of(s, n, x, loop);

  Block fill = k;
  fill.name = s.block_name(a.result(0, block + ".pad"));
  fill.comment = {};
  fill.body = b.stmts({edited(b, *store, [&](Store &x) { x.value = choice->args[2]; })});
  Place *outer = s.tree.make(s.tree.stmt(loop)), *filled = nullptr;
  each_place(outer, [&](Place *p) {
    if (p->block()) p->stmt = b.make(fill), filled = p;
  });
  s.tree.before(loop, outer);

  Substitution shift;
  std::vector<Axis> axes(k.axes.begin(), k.axes.end());
  Known known(s, n);
  for (Axis &x : axes) {
    auto it = inside.find(x.name);
    if (it == inside.end()) continue;
    x.domain = simplify(b, (it->second.end - it->second.lo).e, known);
    shift[x.name] = (X{b, b.name(x.name)} + it->second.lo).e;
    s.tree.edit<For>(loops[x.name], [&](For &f) { f.iter.extent = x.domain; });
  }
  s.tree.edit<Block>(n, [&](Block &x) { x.axes = b.list(axes), x.reads = {}, x.writes = {}; });
  Known own(s, n, true);
  auto moved = [&](const Expr *e) {
    return rewrite(b, substitute(b, e, shift), [&](const Expr *x) -> const Expr * {
      auto *l = as<Load>(x);
      if (!l) return x;
      Exprs index = edit_all(b, l->index, [&](const Expr *&i) { i = simplify(b, i, own); });
      return b.load(l->buffer, index, l->at, l->global);
    });
  };
  s.tree.edit<Block>(n, [&](Block &x) {
    x.body = b.stmts({edited(
        b, *store, [&](Store &y) { y.target = &to<Load>(moved(store->target)), y.value = moved(choice->args[1]); })});
  });
  a.set_block(0, filled);
}

// for i in 30, k in 13 { block y { y[i] += a[i, k] * b[k] } }  padded to 16
// ->  a.pad, b.pad with zeros behind; for i in 32, k in 16 { block y { y.pad[i] += a.pad[i, k] * b.pad[k] } };
//     y[i] = y.pad[i] for i in 30
void pad_einsum(State &s, Args &a) {
  a.expect_results(0, 0);
  Build &b = s.b;
  Place *n = a.block(0);
  std::vector<int64_t> multiples = a.integers(1);
  const Block k = *n->block();
  std::string block = s.text(k.name);
  if (multiples.size() != k.axes.size())
    bad_step(a.at(1), "expected {}, a multiple for each axis of block {}, found {}", k.axes.size(), block,
             multiples.size());
  for (int64_t m : multiples)
    if (m < 1) bad_step(a.at(1), "a multiple is 1 or more, found {}", m);
  Place *start = start_of(s, n);
  auto *store = k.body.size() == 1 ? as<Store>(k.body[0]) : nullptr;
  auto *sum = store ? as<Binary>(store->value) : nullptr;
  if (!sum || sum->op != Op::Add || !equal(sum->a, store->target) || (k.inits.empty() && !start) || k.guard)
    refuse(n, "block {} is no sum of products with an initialiser: y[..] = y[..] + a[..] * b[..]", block);
  // Factors: loads and casts of them, at axes.
  std::vector<const Load *> factors;
  std::function<void(const Expr *)> walk = [&](const Expr *e) {
    if (auto *x = as<Binary>(e); x && x->op == Op::Mul) return walk(x->a), walk(x->b);
    if (auto *c = as<Call>(e); c && !c->global && is_cast(b.text(c->callee))) return walk(c->args[0]);
    auto *l = as<Load>(e);
    if (!l || l->global) refuse(n, "the term {} of block {} is no product of elements", s.text(sum->b), block);
    factors.push_back(l);
  };
  walk(sum->b);
  auto axis = [&](const Expr *e) -> size_t {
    auto *v = as<Name>(e);
    for (size_t i = 0; i < k.axes.size(); i++)
      if (v && k.axes[i].name == v->name) return i;
    refuse(n, "block {} has the subscript {}, which is no axis", block, s.text(e));
  };
  Known known(s, n);
  std::vector<const Expr *> padded;
  std::vector<Place *> loops;
  bool any = false;
  for (size_t i = 0; i < k.axes.size(); i++) {
    const Axis &x = k.axes[i];
    if (x.kind == AxisKind::Scan) refuse(n, "axis {} of block {} scans", s.text(x.name), block);
    padded.push_back(simplify(b, (ceildiv(X{b, x.domain}, lit(b, multiples[i])) * multiples[i]).e, known));
    bool same = provably_equal(b, padded[i], x.domain, known);
    if (same) padded[i] = x.domain;
    any |= !same;
    loops.push_back(loop_of(s, n, x, nullptr));
    if (same || x.kind != AxisKind::Reduce) continue;
    for (const Load *l : factors)
      if (std::none_of(l->index.begin(), l->index.end(), [&](const Expr *e) { return mentions(e, x.name); }))
        refuse(n, "{} does not depend on axis {}: 0 times it may not be 0 where that is padded",
               s.text(static_cast<const Expr *>(l)), s.text(x.name));
  }
  if (!any) return;
  Place *top = n;
  while (top->up->loop() && top->up->kids[0].size() == 1)
    top = top->up;
  for (Place *l : loops)
    if (!s.tree.contains(top, l)) refuse(l, "{} holds more than block {}", s.name_of(l), block);

  // Of a load: the buffer with padded dimensions, and whether it has any.
  auto padded_dims = [&](const Load *l, std::vector<const Expr *> &dims) {
    bool more = false;
    for (const Expr *e : l->index) {
      size_t i = axis(e);
      dims.push_back(padded[i]);
      more |= padded[i] != k.axes[i].domain;
    }
    return more;
  };
  auto copy = [&](const std::vector<const Expr *> &extents, const Load *l, std::string_view name, Stmts body,
                  bool behind) {
    std::vector<Axis> axes;
    std::vector<Iter> nest;
    for (size_t d = 0; d < l->index.size(); d++) {
      Sym v = to<Name>(l->index[d]).name, loop = s.loop_name_inside(top->up, s.text(v));
      axes.push_back({AxisKind::Spatial, v, kNowhere, extents[d], b.name(loop)});
      nest.push_back({loop, extents[d], kNowhere});
    }
    Block c{};
    c.name = s.block_name(name), c.axes = b.list(axes), c.body = body, c.notes.from = k.notes.from;
    auto [outer, inner] = s.nest(nest, b.make(c));
    if (behind) s.tree.after(top, outer);
    else s.tree.before(top, outer);
  };
  std::map<Sym, Sym> renamed;
  for (const Load *l : factors) {
    std::vector<const Expr *> dims;
    if (renamed.count(l->buffer) || !padded_dims(l, dims)) continue;
    const Type *t = s.type_of_buffer(l->buffer);
    Sym name = s.buffer_name(s.text(l->buffer) + ".pad");
    s.add_alloc(name, b.tensor(t->elem, b.list(dims)));
    X inside;
    for (const Expr *e : l->index) {
      size_t i = axis(e);
      if (padded[i] == k.axes[i].domain) continue;
      X c = X{b, e} < X{b, k.axes[i].domain};
      inside = inside ? inside && c : c;
    }
    const Expr *value = b.call("where", {inside.e, l, zero(b, t->elem).e});
    copy(dims, l, s.text(name), b.stmts({b.make(Store{{}, false, b.load(name, l->index), value, {}})}), false);
    renamed[l->buffer] = name;
  }
  std::vector<const Expr *> dims;
  if (padded_dims(store->target, dims)) {
    const Type *t = s.type_of_buffer(store->target->buffer);
    Sym name = s.buffer_name(s.text(store->target->buffer) + ".pad");
    s.add_alloc(name, b.tensor(t->elem, b.list(dims)));
    std::vector<const Expr *> whole;
    for (const Expr *e : store->target->index)
      whole.push_back(k.axes[axis(e)].domain);
    const Stmt *back = b.make(Store{{}, false, store->target, b.load(name, store->target->index), {}});
    copy(whole, store->target, block + ".out", b.stmts({back}), true);
    if (start) {  // it is one of all that is added up
      const Expr *first = start_value(s, start, store->target);
      std::string called = s.text(start->block()->name);
      Place *was = start->up;
      s.tree.remove(start);
      s.tree.prune(was);
      const Load *at = b.load(name, store->target->index);
      copy(dims, store->target, called, b.stmts({b.make(Store{{}, false, at, first, {}})}), false);
    }
    renamed[store->target->buffer] = name;
  }
  for (auto &[from, to] : renamed)
    s.replace_buffer(n, from, to, true, true);
  s.tree.edit<Block>(n, [&](Block &x) {
    size_t i = 0;
    x.axes = edit_all(b, x.axes, [&](Axis &y) { y.domain = padded[i++]; });
  });
  for (size_t i = 0; i < loops.size(); i++)
    s.tree.edit<For>(loops[i], [&](For &f) { f.iter.extent = padded[i]; });
}

}  // namespace mlc
