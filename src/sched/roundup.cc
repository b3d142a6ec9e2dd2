// round_up: a tile at the edge is computed whole.
#include "arith/prove.h"
#include "arith/simplify.h"
#include "ops/expr.h"
#include "sched/combine.h"
#include "sched/copy.h"
#include "sched/nest.h"
#include "sched/primitives.h"
#include "sched/regions.h"

namespace mlc {

// for i in 30, j in 16, k in 8 { block t { t[i, j] += x[i, k] * w[k, j] } }     t: f32[30, 16]     in multiples [4, 1, 1]
// ->  for i in 32, .. { block t { t[i, j] += x[min(i, 29), k] * w[k, j] } }     t: f32[32, 16]
// What is computed too much nobody reads; a subscript that would leave its buffer stays at the last element.
void round_up(State &s, Args &a) {
  a.expect_results(0, 0);
  Build &b = s.b;
  Place *n = a.block(0);
  std::vector<int64_t> multiples = a.integers(1);
  const Block k = *n->block();
  std::string block = s.text(k.name);
  if (multiples.size() != k.axes.size())
    bad_step(a.at(1), "expected {}, a multiple for each axis of block {}, found {}", k.axes.size(), block,
             multiples.size());
  if (n->nest || k.guard) refuse(n, "block {} {}", block, n->nest ? "holds blocks" : "has a guard already");
  Known before(s, n);
  std::map<Sym, const Expr *> padded;
  Substitution clamps;
  for (size_t i = 0; i < multiples.size(); i++) {
    const Axis &x = k.axes[i];
    if (multiples[i] < 1) bad_step(a.at(1), "a multiple is 1 or more, found {}", multiples[i]);
    const Expr *to = simplify(b, (ceildiv(X{b, x.domain}, lit(b, multiples[i])) * multiples[i]).e, before);
    if (provably_equal(b, to, x.domain, before)) continue;
    if (x.kind != AxisKind::Spatial) refuse(n, "axis {} of block {} is not spatial", s.text(x.name), block);
    Place *loop = loop_of(s, n, x, nullptr);
    if (leaves(loop).size() != 1) refuse(loop, "{} holds more than block {}", s.name_of(loop), block);
    s.tree.edit<For>(loop, [&](For &f) { f.iter.extent = to; });
    padded[x.name] = to;
    clamps[x.name] = min(X{b, b.name(x.name)}, simplify(X{b, x.domain} - 1)).e;
  }
  if (padded.empty()) return;

  Place *start = start_of(s, n);  // where it is another block, it is one of all that is computed
  std::map<Sym, const Expr *> begun;
  for (Sym t : buffers_written(s, n)) {
    if (!s.alloc_of(t)) refuse(n, "{} is seen by callers: it cannot grow", s.text(t));
    for (Place *w : writers(s, t))
      if (w != n && w != start) refuse(w, "{} writes {}, too", s.name_of(w), s.text(t));
    const Type *old = s.type_of_buffer(t);
    std::vector<const Expr *> dims(old->dims.begin(), old->dims.end());
    for (const Access &x : accesses_to(s, n, t, true))
      for (size_t d = 0; d < x.index.size(); d++) {
        auto *v = as<Name>(x.index[d]);
        if (auto it = v ? padded.find(v->name) : padded.end(); it != padded.end()) {
          dims[d] = it->second;
          for (const Access &y : start ? accesses_to(s, start, t, true) : std::vector<Access>{}) {
            auto *z = as<Name>(y.index[d]);
            start_value(s, start, s.b.load(t, y.index));
            if (!z) refuse(start, "{} begins {} at {}, which is no axis", s.name_of(start), s.text(t), s.text(y.index[d]));
            begun[z->name] = it->second;
          }
          continue;
        }
        for (auto &[axis, _] : padded)
          if (mentions(x.index[d], axis))
            refuse(n, "{} has the subscript {}, which is no axis", s.text(t), s.text(x.index[d]));
      }
    Type grown = *old;
    grown.dims = b.list(dims);
    s.set_type(t, b.type(grown));
  }
  s.tree.edit<Block>(n, [&](Block &x) {
    x.axes = edit_all(b, x.axes, [&](Axis &y) {
      if (auto it = padded.find(y.name); it != padded.end()) y.domain = it->second;
    });
    x.reads = {}, x.writes = {};
  });
  if (start) {
    for (const Axis &x : start->block()->axes)
      if (auto it = begun.find(x.name); it != begun.end()) {
        Place *loop = loop_of(s, start, x, nullptr);
        if (leaves(loop).size() != 1) refuse(loop, "{} holds more than {}", s.name_of(loop), s.name_of(start));
        s.tree.edit<For>(loop, [&](For &f) { f.iter.extent = it->second; });
      }
    s.tree.edit<Block>(start, [&](Block &x) {
      x.axes = edit_all(b, x.axes, [&](Axis &y) {
        if (auto it = begun.find(y.name); it != begun.end()) y.domain = it->second;
      });
      x.writes = {};
    });
  }
  Known known(s, n, true);
  auto clamped = [&](const Expr *e) { return simplify(b, substitute(b, e, clamps), known); };
  auto inside = [&](const Expr *e) -> const Expr * {
    if (auto *c = as<Call>(e); c && !c->global && b.text(c->callee) == "where")
      return b.call("where", {substitute(b, c->args[0], clamps), c->args[1], c->args[2]});
    auto *l = as<Load>(e);
    const Type *t = l && !l->global ? s.type_of_buffer(l->buffer) : nullptr;
    if (!l || (l->global && !s.m.constant(l->buffer))) return e;
    if (!t) t = s.m.constant(l->buffer)->type;
    size_t d = 0;
    Exprs index = edit_all(b, l->index, [&](const Expr *&i) {
      const Expr *extent = t->dims[d++];
      bool any = false;
      for (auto &[axis, _] : padded) any |= mentions(i, axis);
      if (any && !provably_inside(b, i, extent, known)) i = clamped(i);
    });
    return b.load(l->buffer, index, l->at, l->global);
  };
  n->stmt = rewrite_exprs(b, n->stmt, [&](const Expr *e) { return inside(e); });
}

}  // namespace mlc
