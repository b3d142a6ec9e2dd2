// decompose_reduction.
#include <algorithm>

#include "sched/primitives.h"
#include "sched/regions.h"

namespace mlc {

// for k { for j { block c { init y[j] = 0.0 .. } } }  at k  ->  for j { block c.init }, for k { for j { block c } }
void decompose_reduction(State &s, Args &a) {
  a.expect_results(0, 1);
  Place *n = a.block(0), *loop = a.loop(1);
  const Block k = *n->block();
  std::string block = s.text(k.name);
  if (k.inits.empty()) refuse(n, "block {} has no initialiser", block);
  std::vector<Place *> around = loops_around(n), below;
  auto from = std::find(around.begin(), around.end(), loop);
  if (from == around.end()) refuse(loop, "{} does not stand around block {}", s.name_of(loop), block);
  for (auto it = around.begin(); it != from; ++it)
    for (const Axis &x : k.axes)
      if (x.kind != AxisKind::Spatial && uses(x, (*it)->loop()->iter.name))
        throw Refused{
            (*it)->stmt->at,
            fmt::format("{} reduces block {} and stands outside of {}: the initialiser would run once a turn of it",
                        s.name_of(*it), block, s.name_of(loop)),
            fmt::format("decompose_reduction({}, {})", block, s.text((*it)->loop()->iter.name))};
  // A loop that the spatial axes use runs for the initialiser too.
  std::vector<Iter> loops;
  std::vector<LoopKind> kinds;
  Substitution names;
  std::vector<Sym> taken;
  for (auto it = from; it != around.end(); ++it) {
    const For &f = *(*it)->loop();
    bool spatial = false, reduce = false;
    for (const Axis &x : k.axes)
      if (uses(x, f.iter.name)) (x.kind == AxisKind::Spatial ? spatial : reduce) = true;
    if (spatial && reduce) refuse(*it, "{} is used by spatial and by reduce axes of block {}", s.name_of(*it), block);
    if (!spatial) {
      if (k.guard && mentions(k.guard, f.iter.name) && !reduce)
        refuse(n, "the guard of block {} depends on {}", block, s.name_of(*it));
      continue;
    }
    for (const Iter &l : loops)
      if (mentions(f.iter.extent, l.name))
        refuse(*it, "the extent of {} depends on {}", s.name_of(*it), s.text(l.name));
    loops.push_back({f.iter.name, f.iter.extent, kNowhere});
    kinds.push_back(f.loop);
  }
  // Of the guard, what spatial loops decide; the rest removes turns of the reduction alone.
  std::vector<const Expr *> all, kept;
  std::function<void(const Expr *)> conjuncts = [&](const Expr *e) {
    auto *x = as<Binary>(e);
    if (x && x->op == Op::And) return conjuncts(x->a), conjuncts(x->b);
    all.push_back(e);
  };
  if (k.guard) conjuncts(k.guard);
  for (const Expr *e : all) {
    bool reduce = false, spatial = false;
    for (auto it = from; it != around.end(); ++it) {
      Sym v = (*it)->loop()->iter.name;
      if (!mentions(e, v)) continue;
      bool is_spatial = std::any_of(loops.begin(), loops.end(), [&](const Iter &l) { return l.name == v; });
      (is_spatial ? spatial : reduce) = true;
    }
    if (reduce && spatial) refuse(n, "the guard {} of block {} mixes spatial and reduce loops", s.text(e), block);
    if (!reduce) kept.push_back(e);
  }
  Block init = k;
  std::vector<Axis> axes;
  for (const Axis &x : k.axes)
    if (x.kind == AxisKind::Spatial) axes.push_back(x);
  init.axes = s.b.list(axes), init.body = k.inits, init.inits = {}, init.reads = {}, init.guard = nullptr,
  init.comment = {};
  for (const Expr *e : kept)
    init.guard = init.guard ? s.b.binary(Op::And, init.guard, e) : e;
  init.name = s.block_name(a.result(0, block + ".init"));
  std::vector<const Load *> writes;
  std::vector<Sym> reduce_axes;
  for (const Axis &x : k.axes)
    if (x.kind != AxisKind::Spatial) reduce_axes.push_back(x.name);
  for (const Load *w : k.writes) {
    for (Sym r : reduce_axes)
      for (const Expr *e : w->index)
        if (mentions(e, r))
          refuse(n, "block {} declares that it writes {}[..] at its reduce axis {}", block, s.text(w->buffer),
                 s.text(r));
    writes.push_back(w);
  }
  init.writes = s.b.list(writes);
  auto [outer, inner] = s.nest(loops, s.b.make(init));
  s.tree.before(loop, outer);
  Place *l = outer;
  for (LoopKind kind : kinds) {
    if (kind == LoopKind::Vectorize || kind == LoopKind::Unroll || kind == LoopKind::Parallel)
      s.tree.edit<For>(l, [&](For &f) { f.loop = kind; });
    l = l->kids[0].empty() ? nullptr : l->kids[0][0];
  }
  s.tree.edit<Block>(n, [&](Block &x) { x.inits = {}; });
  a.set_block(0, inner);
}

}  // namespace mlc
