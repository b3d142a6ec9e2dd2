#include "sched/nest.h"

#include "arith/prove.h"
#include "arith/simplify.h"
#include "ops/expr.h"

namespace mlc {

Place *nest_over(State &s, const Block &k, std::vector<Share> parts, Place *loop, Place **inner) {
  Build &b = s.b;
  Known known(s, loop, loop->stmt != nullptr);
  std::vector<Iter> loops;
  std::vector<Axis> axes;
  std::vector<Sym> taken;
  X guard;
  for (const Share &p : parts) {
    Sym name = s.loop_name_inside(loop, b.text(p.axis->name), taken);
    taken.push_back(name);
    X v{b, b.name(name)};
    const Expr *extent = p.lo ? p.extent : p.axis->domain;
    if (is_int(extent, 1))
      v = lit(b, int64_t{0}), taken.pop_back();
    else
      loops.push_back({name, extent, kNowhere});
    Axis x = *p.axis;
    size_t mark = known.bounds.mark();
    if (!is_int(extent, 1)) known.bounds.range(name, extent);
    const Expr *binding = p.lo ? simplify(b, (X{b, p.lo} + v).e, known) : v.e;
    x.binding = binding;
    if (!provably_less_equal(b, b.integer(0), binding, known)) {
      X c = X{b, binding} >= 0;
      guard = guard ? guard && c : c;
    }
    if (!provably_less(b, binding, x.domain, known)) {
      X c = X{b, binding} < X{b, x.domain};
      guard = guard ? guard && c : c;
    }
    known.bounds.pop(mark);
    axes.push_back(x);
  }
  Block moved = k;
  moved.axes = b.list(axes), moved.guard = guard.e;
  auto [outer, block] = s.nest(loops, b.make(moved));
  *inner = block;
  return outer;
}

Place *child_with(Place *up, Place *n) {
  while (n && n->up != up)
    n = n->up;
  return n;
}

}  // namespace mlc
