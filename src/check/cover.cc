// Proofs that a block takes every point of its axes.
#include "arith/affine.h"
#include "arith/prove.h"
#include "check/checker.h"
#include "ir/walk.h"
#include "text/text.h"

namespace mlc {

// Of one axis alone, where the block always runs: its first and its last turn are within reach of the binding.
//   for k0 in 3, k1 in 6 { .. reduce k in 20 = k0 * 6 + k1      reaches 18 of 20
bool FuncChecker::reaches(const Axis &a) {
  Interval first = interval(a.binding, bounds_), domain = interval(a.domain, bounds_);
  Interval left = interval(fold(b_, Op::Sub, fold(b_, Op::Sub, a.domain, b_.integer(1)), a.binding), bounds_);
  bool empty = first.lo > first.hi || left.lo > left.hi || domain.hi < 1;
  if (maybe_ || empty || (first.lo <= 0 && left.lo <= 0)) return true;
  return fail(a.binding->at, "axis {} is bound to {}, which never reaches turn {} of its domain {}", text(a.name),
              print(b_, a.binding), first.lo > 0 ? "0" : print(b_, fold(b_, Op::Sub, a.domain, b_.integer(1))),
              print(b_, a.domain));
}

// All axes together: from each point of the domains back to the loops,
//   i = i0 * 16 + i1, k = k0   ->   i0 = i // 16, i1 = i % 16, k0 = k
// where the loops have such a turn and the guard lets it pass.
void FuncChecker::cover(const Block &s) {
  if (!prove_ || s.axes.empty()) return;
  std::vector<const Expr *> loops, extents, bindings;
  std::unordered_set<Sym> seen;
  bool plain = !s.guard;  // each axis a loop of its own
  for (const Axis &a : s.axes) {
    bindings.push_back(a.binding);
    auto *n = as<Name>(a.binding);
    Entry *loop = n ? find(n->name) : nullptr;
    plain &= loop && loop->extent && equal(loop->extent, a.domain) && seen.insert(n->name).second;
  }
  if (plain) return;
  seen.clear();
  auto collect = [&](const Expr *e) {
    each_expr(e, [&](const Expr *x) {
      auto *n = as<Name>(x);
      Entry *l = n ? find(n->name) : nullptr;
      if (l && l->extent && (l->what == What::Loop || l->what == What::Axis) && seen.insert(n->name).second)
        loops.push_back(x), extents.push_back(l->extent);
      return true;
    });
  };
  for (const Expr *e : bindings) collect(e);
  if (s.guard) collect(s.guard);

  std::vector<Sym> points;
  for (size_t i = 0; i < s.axes.size(); ++i) points.push_back(b_.sym(fmt::format("turn of {}", b_.text(s.axes[i].name))));
  const Map *map = b_.map(b_.make_list(b_.list(loops)), b_.make_list(b_.list(bindings)));
  std::optional<Inverse> back = inverse(b_, *map, extents, points, bounds_);
  bool covered = back.has_value();
  for (size_t i = 0; covered && i < s.axes.size(); ++i)
    covered = provably_less_equal(b_, s.axes[i].domain, back->image[i], bounds_);
  if (covered && (s.guard || !back->onto)) {
    size_t mark = bounds_.mark();
    for (size_t i = 0; i < s.axes.size(); ++i) bounds_.range(points[i], s.axes[i].domain);
    Substitution at;
    for (size_t i = 0; i < loops.size(); ++i) {
      const Expr *turn = back->map->to->items[i];
      at[to<Name>(loops[i]).name] = turn;
      covered &= back->onto || provably_inside(b_, turn, extents[i], bounds_);
    }
    if (s.guard) covered &= prove(b_, substitute(b_, s.guard, at), bounds_);
    bounds_.pop(mark);
  }
  if (!covered) unproved(fmt::format("block {} not proved to take every point of its axes once", text(s.name)));
}

}  // namespace mlc
