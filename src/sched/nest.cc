#include "sched/nest.h"

#include "arith/affine.h"
#include "arith/prove.h"
#include "arith/simplify.h"
#include "ops/expr.h"

namespace mlc {

Place *loop_of(State &s, Place *n, const Axis &x, Place *outer) {
  auto *v = as<Name>(x.binding);
  Known known(s, n);
  for (Place *l : loops_around(n))
    if (v && l->loop()->iter.name == v->name && (!outer || s.tree.contains(outer, l)) &&
        provably_equal(s.b, l->loop()->iter.extent, x.domain, known))
      return l;
  refuse(n, "axis {} of block {} is not a loop of its own, but {}", s.text(x.name), s.text(n->block()->name),
         s.text(x.binding));
}

void shift(State &s, Block &k, Sym axis, const Expr *from, const Expr *domain, Bounds &known) {
  Build &b = s.b;
  k.axes = edit_all(b, k.axes, [&](Axis &x) {
    if (x.name == axis) x.domain = domain;
  });
  if (is_int(from, 0)) return;
  size_t mark = known.mark();
  for (const Axis &x : k.axes)
    known.range(x.name, x.domain);
  Substitution moved = {{axis, (X{b, b.name(axis)} + X{b, from}).e}};
  auto access = [&](const Load *l) {
    Exprs index = edit_all(b, l->index, [&](const Expr *&i) {
      if (i->kind != Kind::All && i->kind != Kind::Range) i = simplify(b, i, known);
    });
    return index.data() == l->index.data() ? l : b.load(l->buffer, index, l->at, l->global);
  };
  auto in = [&](Stmts body) {
    return rewrite_exprs(b, substitute(b, body, moved), [&](const Expr *e) -> const Expr * {
      auto *l = as<Load>(e);
      return l ? access(l) : e;
    });
  };
  auto regions = [&](std::span<const Load *const> all) {
    return edit_all(b, all, [&](const Load *&l) {
      l = access(b.load(l->buffer, substitute(b, l->index, moved), l->at, l->global));
    });
  };
  k.inits = in(k.inits), k.body = in(k.body), k.reads = regions(k.reads), k.writes = regions(k.writes);
  known.pop(mark);
}

// Where all turns of the loops around a part together do not run the whole domain, the axis gets the domain that they
// run, or the smallest range known to hold them: what nobody asks for is not computed.
static void narrow_domains(State &s, Block &k, const std::vector<Share> &parts, Place *loop,
                           const std::vector<Iter> &own) {
  Build &b = s.b;
  std::vector<Iter> iters;
  for (Place *u = loop; u && u->stmt && !u->block(); u = u->up)
    if (u->loop()) iters.insert(iters.begin(), u->loop()->iter);
  iters.insert(iters.end(), own.begin(), own.end());
  Known known(s, s.tree.root());
  Known inside(s, loop, loop->stmt != nullptr);
  for (const Iter &i : own)
    inside.bounds.range(i.name, i.extent);
  for (size_t d = 0; d < parts.size(); d++) {
    if (!parts[d].lo) continue;
    Axis x = k.axes[d];
    auto span = span_of(b, x.binding, b.list(iters), known);
    if (!span) continue;
    X lo{b, span->lo}, end = lo + X{b, span->extent}, domain{b, x.domain};
    if (provably_less_equal(b, lo.e, b.integer(0), known)) lo = lit(b, int64_t{0});
    if (!provably_less_equal(b, b.integer(0), lo.e, known)) continue;
    if (!provably_less_equal(b, end.e, domain.e, known)) end = domain;
    if (is_int(lo.e, 0) && provably_equal(b, end.e, domain.e, known)) continue;
    shift(s, k, x.name, lo.e, simplify(b, (end - lo).e, known), inside.bounds);
    k.axes = edit_all(b, k.axes, [&](Axis &y) {
      if (y.name == x.name) y.binding = simplify(b, (X{b, y.binding} - lo).e, inside);
    });
  }
}

Place *nest_over(State &s, const Block &k, std::vector<Share> parts, Place *loop, Place **inner, bool units) {
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
    if (is_int(extent, 1) && !units)
      v = lit(b, int64_t{0}), taken.pop_back();
    else
      loops.push_back({name, extent, kNowhere});
    Axis x = *p.axis;
    size_t mark = known.bounds.mark();
    if (!is_int(extent, 1) || units) known.bounds.range(name, extent);
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
  narrow_domains(s, moved, parts, loop, loops);
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
