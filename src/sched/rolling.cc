// rolling_buffer: what an earlier turn has computed is not computed again.
#include <algorithm>

#include "arith/affine.h"
#include "arith/prove.h"
#include "arith/simplify.h"
#include "ops/expr.h"
#include "sched/combine.h"
#include "sched/nest.h"
#include "sched/primitives.h"
#include "sched/regions.h"

namespace mlc {

namespace {

void shift_axis(State &s, Place *n, Sym axis, const Expr *from, const Expr *domain) {
  Known known(s, n);
  s.tree.edit<Block>(n, [&](Block &k) { shift(s, k, axis, from, domain, known.bounds); });
}

// A loop in which each turn computes `extent` elements along an axis, `step` further than the turn before.
struct Rolling {
  Place *loop, *inner;  // inner: the axis's own loop, over the elements of a turn
  Sym axis;
  const Expr *step, *extent;
};

std::optional<Rolling> rolling(State &s, Place *n, std::string &why) {
  Build &b = s.b;
  auto &k = *n->block();
  why = "no loop around it computes elements that its turn before has computed";
  for (Place *loop : loops_around(n)) {
    Sym v = loop->loop()->iter.name;
    std::vector<const Axis *> on;
    for (const Axis &x : k.axes)
      if (uses(x, v)) on.push_back(&x);
    if (on.size() != 1 || on[0]->kind != AxisKind::Spatial) continue;
    Known known(s, n);
    auto a = affine(b, on[0]->binding, b.one(v), known);
    if (!a) continue;
    Place *inner = nullptr;
    bool one = true;
    for (Place *l : loops_around(n))
      if (l != loop && uses(*on[0], l->loop()->iter.name)) one &= !inner && is_below(l, loop), inner = l;
    if (!inner || !one || !provably_equal(b, a->rest, b.name(inner->loop()->iter.name), known)) continue;
    const Expr *extent = inner->loop()->iter.extent;
    if (!provably_less_equal(b, b.integer(1), a->coefs[0], known) || !provably_less(b, a->coefs[0], extent, known))
      continue;
    if (loop->loop()->loop != LoopKind::Serial) {
      why =
          fmt::format("turns of {}, which is {}, do not follow each other", s.name_of(loop), kind_name(*loop->loop()));
      continue;
    }
    return Rolling{loop, inner, on[0]->name, a->coefs[0], extent};
  }
  return std::nullopt;
}

const Expr *domain_of(Place *n, Sym axis) {
  auto axes = n->block()->axes;
  return std::find_if(axes.begin(), axes.end(), [&](const Axis &x) { return x.name == axis; })->domain;
}
const Expr *kept_of(State &s, const Rolling &r, const Known &known) {  // from the turn before
  return simplify(s.b, (X{s.b, r.extent} - X{s.b, r.step}).e, known);
}

// The loops of a turn that the block counts by.
std::vector<Place *> path_of(State &s, Place *n, const Rolling &r) {
  std::vector<Place *> path;
  for (Place *u = n->up; u != r.loop; u = u->up) {
    if (!u->loop()) refuse(u, "{} stands in a branch", s.name_of(n));
    bool used = std::any_of(n->block()->axes.begin(), n->block()->axes.end(),
                            [&](const Axis &x) { return uses(x, u->loop()->iter.name); });
    if (used && u->loop()->loop == LoopKind::Bind) refuse(u, "{} is bound", s.name_of(u));
    if (used) path.insert(path.begin(), u);
  }
  return path;
}

void roll(State &s, Place *n, const Rolling &r, const std::vector<Place *> &path) {
  Build &b = s.b;
  Known known(s, r.loop);
  const Expr *domain = domain_of(n, r.axis), *kept = kept_of(s, r, known);
  Sym v = r.loop->loop()->iter.name, w = r.inner->loop()->iter.name;
  // In front, the turn that would be the first one less its last `step` elements.
  Block head = *n->block();
  head.name = s.block_name(s.text(n->block()->name) + ".first"), head.comment = {};
  Place *first = s.tree.make(b.make(head)), *outer = first;
  Substitution names = {{v, b.integer(0)}};
  std::vector<Sym> taken;
  std::vector<Iter> loops;
  for (Place *l : path) {
    const Iter &i = l->loop()->iter;
    Sym made = s.loop_name_inside(r.loop->up, s.text(l == r.inner ? r.axis : i.name), taken);
    taken.push_back(made);
    loops.push_back({made, l == r.inner ? kept : substitute(b, i.extent, names), kNowhere});
    names[i.name] = b.name(made);
  }
  for (size_t i = path.size(); i-- > 0;) {
    Place *l = s.tree.make_loop(loops[i], path[i]->loop()->loop);
    s.tree.append(l, outer);
    outer = l;
  }
  Place *holder = s.tree.make_loop({b.sym("the first turn"), b.integer(1), kNowhere});
  s.tree.append(holder, outer);
  s.tree.before(r.loop, holder);
  s.tree.edit<Block>(first, [&](Block &k) {
    k.axes = edit_all(b, k.axes, [&](Axis &x) { x.binding = substitute(b, x.binding, names); });
    if (k.guard) k.guard = substitute(b, k.guard, names);
  });
  s.simplify_below(holder);
  shift_axis(s, first, r.axis, b.integer(0), kept);
  s.tree.remove(outer);
  s.tree.replace(holder, outer);

  // The rest of a turn: v stands for v + kept, of which the axis, shifted, knows nothing.
  if (n->block()->guard)
    s.tree.edit<Block>(n, [&](Block &k) {
      k.guard = simplify(b, substitute(b, k.guard, {{w, (X{b, b.name(w)} + X{b, kept}).e}}), Known(s, n));
    });
  s.tree.edit<For>(r.inner, [&](For &f) { f.iter.extent = r.step; });
  shift_axis(s, n, r.axis, kept, simplify(b, (X{b, domain} - X{b, kept}).e, known));
  if (is_int(r.step, 1)) {
    Place *child = r.inner->kids[0][0];
    s.substitute_below(r.inner, {{w, b.integer(0)}});
    s.tree.remove(child);
    s.tree.replace(r.inner, child);
  }
}

}  // namespace

// for i in 8 {                                      for r in 2 { block p.first { y[r] = .. } }
//   for r in 3 { block p { y[i + r] = .. } }   ->   for i in 8 {
//   block c { .. y[i +: 3] .. }                       block p { y[i + 2] = .. }
// }                                                   block c { .. y[i +: 3] .. }
void rolling_buffer(State &s, Args &a) {
  a.expect_results(0, 0);
  Build &b = s.b;
  Place *n = a.block(0);
  Sym buffer = a.buffer(1);
  std::string block = s.text(n->block()->name), name = s.text(buffer);
  if (n->nest) refuse(n, "block {} holds blocks", block);
  if (!writes(s, n, buffer)) refuse(n, "block {} does not write {}", block, name);
  if (!s.alloc_of(buffer)) refuse(n, "{} belongs to the callers", name);
  std::string why;
  auto r = rolling(s, n, why);
  if (!r) throw Refused{n->stmt->at, fmt::format("block {}: {}", block, why), ""};
  for (const Axis &x : n->block()->axes)
    if (x.kind == AxisKind::Scan) refuse(n, "block {} scans in order", block);
  Place *start = start_of(s, n);
  if (reads(s, n, buffer) && n->block()->inits.empty() && !start)
    refuse(n, "block {} adds to what it finds in {}", block, name);
  if (buffers_written(s, n).size() > 1) refuse(n, "block {} writes more than {}", block, name);
  std::vector<Place *> path = path_of(s, n, *r);
  for (Place *x : leaves(s.tree.root())) {
    if (x == n || x == start) continue;
    if (writes(s, x, buffer)) refuse(x, "{} writes {} too", s.name_of(x), name);
    if (!is_below(x, r->loop)) continue;
    for (Sym w : buffers_written(s, x))
      for (Place *y : start ? std::vector{start, n} : std::vector{n})
        if (reads(s, y, w)) refuse(x, "{} changes {}, which {} reads", s.name_of(x), s.text(w), s.name_of(y));
  }
  Known known(s, r->loop);
  const Expr *kept = kept_of(s, *r, known);
  if (!provably_less(b, kept, domain_of(n, r->axis), known) ||
      !provably_less_equal(b, b.integer(1), r->loop->loop()->iter.extent, known))
    refuse(r->loop, "{} is not known to take a turn in which block {} has more than {} elements to compute",
           s.name_of(r->loop), block, s.text(kept));

  if (start) {
    auto first = rolling(s, start, why);
    if (!first || first->loop != r->loop || !provably_equal(b, first->step, r->step, known) ||
        !provably_equal(b, first->extent, r->extent, known))
      refuse(start, "{} begins other elements of {} in a turn of {} than block {} goes on with", s.name_of(start), name,
             s.name_of(r->loop), block);
    roll(s, start, *first, path_of(s, start, *first));
  }
  roll(s, n, *r, path);
}

}  // namespace mlc
