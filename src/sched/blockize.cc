// blockize: what stands in a loop becomes one turn of a block around it.
#include <algorithm>

#include "arith/prove.h"
#include "arith/simplify.h"
#include "ops/expr.h"
#include "sched/primitives.h"
#include "sched/regions.h"

namespace mlc {

// for i0 in 4 { for i1 in 16 { block c { spatial i in 64 = i0 * 16 + i1 } } }   at i1
// ->  for i0 in 4 { block c.outer { spatial i in 4 = i0; for i1 in 16 { block c { spatial i in 64 = i * 16 + i1 } } } }
void blockize(State &s, Args &a) {
  a.expect_results(0, 1);
  Build &b = s.b;
  Place *loop = a.loop(0);
  std::vector<Place *> below = leaf_blocks(loop);
  if (below.size() != 1) refuse(loop, "{} holds {}, expected one", s.name_of(loop), counted(below.size(), "block"));
  Place *n = below[0];
  std::string block = s.text(n->block()->name);
  for (Place *u = n->up; u != loop; u = u->up)
    if (!u->loop() || u->kids[0].size() != 1)
      refuse(u, "{} stands between {} and block {}", s.name_of(u), s.name_of(loop), block);
  if (loop->kids[0].size() != 1) refuse(loop, "{} holds more than block {}", s.name_of(loop), block);

  // Loops inside must not be called like the axes that will stand around them.
  std::vector<Sym> axes;
  for (const Axis &x : n->block()->axes)
    axes.push_back(x.name);
  for (Place *l = loop; l->loop(); l = l->kids[0][0]) {
    Sym v = l->loop()->iter.name;
    if (std::find(axes.begin(), axes.end(), v) == axes.end()) continue;
    Sym fresh = s.loop_name(loop, s.text(v), axes);
    s.tree.edit<For>(l, [&](For &f) { f.iter.name = fresh; });
    s.substitute_below(l, {{v, b.name(fresh)}});
  }
  const Block k = *n->block();
  std::vector<Iter> inner;
  std::unordered_set<Sym> inner_names;
  std::vector<Place *> around = loops_around(n);
  for (auto it = std::find(around.begin(), around.end(), loop); it != around.end(); ++it) {
    inner.push_back((*it)->loop()->iter), inner_names.insert(inner.back().name);
    for (Place *o : around)
      if (mentions(inner.back().extent, o->loop()->iter.name))
        refuse(*it, "the extent of {} depends on {}", s.name_of(*it), s.name_of(o));
  }
  Known known(s, n);
  Substitution zeros, outer_axis;  // loops around that an outer axis is bound to, as they are
  for (const Iter &i : inner)
    zeros[i.name] = b.integer(0);
  std::vector<Axis> outer, now;
  for (const Axis &x : k.axes) {
    const Expr *base = simplify(b, substitute(b, x.binding, zeros), known);
    const Expr *rest = simplify(b, (X{b, x.binding} - X{b, base}).e, known);
    auto span = span_of(b, rest, b.list(inner), known);
    bool plain = span && is_int(span->lo, 0) && std::none_of(inner.begin(), inner.end(), [&](const Iter &i) {
                   return mentions(span->extent, i.name);
                 });
    X size{b, plain ? span->extent : nullptr};
    if (!plain || !provably_equal(b, (X{b, base} % size).e, b.integer(0), known) ||
        !provably_equal(b, (X{b, x.domain} % size).e, b.integer(0), known))
      refuse(n, "axis {} in {} = {} of block {} is no whole number of tiles of {}", s.text(x.name), s.text(x.domain),
             s.text(x.binding), block, plain ? s.text(size.e) : "one size");
    const Expr *binding = simplify(b, floordiv(X{b, base}, size).e, known);
    outer.push_back({x.kind, x.name, kNowhere, simplify(b, floordiv(X{b, x.domain}, size).e, known), binding});
    if (auto *v = as<Name>(binding)) outer_axis.emplace(v->name, b.name(x.name));
    // Inside, the name is the outer axis, whatever it was around.
    Axis in = x;
    size_t mark = known.bounds.mark();
    known.bounds.range(x.name, outer.back().domain);
    in.binding = simplify(b, (X{b, b.name(x.name)} * size + X{b, rest}).e, known);
    known.bounds.pop(mark);
    now.push_back(in);
  }
  // What the loops inside do not decide is decided around; and there no tile outside of the domain has a turn.
  X around_guard, inner_guard;
  std::vector<const Expr *> conditions;
  conjuncts(k.guard, conditions);
  for (const Expr *e : conditions) {
    bool inside = std::any_of(inner.begin(), inner.end(), [&](const Iter &i) { return mentions(e, i.name); });
    X &guard = inside ? inner_guard : around_guard;
    X cond{b, inside ? substitute(b, e, outer_axis) : e};
    guard = guard ? guard && cond : cond;
  }
  Known outside(s, loop);
  if (around_guard) outside.bounds.assume(around_guard.e);
  for (const Axis &x : outer)
    if (!provably_less(b, x.binding, x.domain, outside)) {
      X cond = X{b, x.binding} < X{b, x.domain};
      around_guard = around_guard ? around_guard && cond : cond;
    }
  const Expr *guard = inner_guard.e;
  if (guard)
    for (Place *l : around)
      if (!inner_names.count(l->loop()->iter.name) && !outer_axis.count(l->loop()->iter.name) &&
          mentions(guard, l->loop()->iter.name))
        refuse(n, "the guard {} of block {} depends on {}, which no axis of the outer block is", s.text(k.guard), block,
               s.name_of(l));
  s.tree.edit<Block>(n, [&](Block &x) { x.axes = b.list(now), x.guard = guard; });
  Block whole{};
  whole.name = s.block_name(a.result(0, block + ".outer"));
  whole.notes.from = k.notes.from, whole.axes = b.list(outer), whole.guard = around_guard.e;
  Place *made = s.tree.make(b.make(whole));
  made->nest = true;
  s.tree.replace(loop, made);
  s.tree.append(made, loop);
  a.set_block(0, made);
}

}  // namespace mlc
