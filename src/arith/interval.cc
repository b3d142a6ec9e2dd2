// Intervals of polynomials and atoms, from the facts.
#include <algorithm>

#include "arith/engine.h"

namespace mlc {

Interval Engine::naive(const Poly &p) {
  Interval sum{0, 0};
  for (const Term &t : p.terms) {
    Interval product{t.coef, t.coef};
    const auto &f = space.factors(t.mono);
    for (size_t i = 0; i < f.size(); i++) {
      Interval x = interval(f[i]);
      if (i + 1 < f.size() && f[i + 1] == f[i]) {  // a square
        Interval square = x * x;
        product = product * Interval{std::max<int64_t>(square.lo, 0), square.hi};
        i++;
      } else {
        product = product * x;
      }
    }
    sum = sum + product;
  }
  return sum;
}

Interval Engine::interval(const Poly &p) {
  if (p.is_constant()) return {p.constant(), p.constant()};
  bool plain = true;  // nothing that could be joined
  for (const Term &t : p.terms)
    for (AtomId a : space.factors(t.mono))
      plain &= space.atom(a).kind == AtomKind::Var || space.atom(a).kind == AtomKind::Opaque;
  if (plain) return naive(p);
  PolyId id = space.intern(p);
  if (auto it = poly_interval_memo_.find(id); it != poly_interval_memo_.end()) return it->second;
  Interval i = naive(p);
  try {
    Poly j = joined(p);
    i = meet(i, naive(j));
    i = meet(i, naive(absorb(j, false)));
  } catch (Overflow) {
  }
  if (!cut_) poly_interval_memo_[id] = i;
  return i;
}

// What is inside an atom leads downwards, facts lead from one variable to another and back: those are followed a few
// steps, a question under way is answered by no bound, and what was computed from such an answer is not remembered,
// except for the first question.
Interval Engine::interval(AtomId a) {
  if (auto it = interval_memo_.find(a); it != interval_memo_.end()) return it->second;
  constexpr int kAsked = 100000;  // from then on an answer from within the first question stands for it
  bool first = open_.empty();
  if (first) steps_ = 0, asked_ = 0, cut_ = false, partial_.clear();
  if (++asked_ > kAsked)
    if (auto it = partial_.find(a); it != partial_.end()) {
      cut_ = true;
      return it->second;
    }
  if (!open_.insert(a).second) {
    cut_ = true;
    return {};
  }
  bool before = cut_;
  cut_ = false;
  Interval i = meet(told(a), inside(a));
  open_.erase(a);
  if (!cut_ || first) interval_memo_[a] = i;
  else partial_[a] = partial_.count(a) ? meet(partial_[a], i) : i;
  cut_ = !first && (cut_ || before);
  return i;
}

// By facts: a v + g >= 0 is v >= -g / a, or v <= g / -a.
Interval Engine::told(AtomId id) {
  constexpr int kDeepest = 5, kSteps = 100;
  Interval i;
  std::vector<Poly> facts = told_of(id);
  if (facts.empty()) return i;
  if (fact_depth_ >= kDeepest || ++steps_ > kSteps) {
    cut_ = true;
    return i;
  }
  fact_depth_++;
  for (const Poly &fact : facts) {
    Poly k, g;
    space.split(fact, id, &k, &g);
    if (!k.is_constant()) continue;
    int64_t top = interval(g).hi;
    if (top == Interval::kMax || top == Interval::kMin) continue;
    if (k.constant() > 0) i.lo = std::max(i.lo, -floor_div(top, k.constant()));
    else i.hi = std::min(i.hi, floor_div(top, -k.constant()));
  }
  fact_depth_--;
  return i;
}

namespace {

Interval quotient(Interval a, Interval c) {  // floor, c >= 1
  auto div = [](int64_t x, int64_t y) {
    if (y == Interval::kMax) return x == Interval::kMin ? x : x == Interval::kMax ? x : int64_t(x < 0 ? -1 : 0);
    return x == Interval::kMin || x == Interval::kMax ? x : floor_div(x, y);
  };
  int64_t v[] = {div(a.lo, c.lo), div(a.lo, c.hi), div(a.hi, c.lo), div(a.hi, c.hi)};
  return {*std::min_element(v, v + 4), *std::max_element(v, v + 4)};
}

int64_t size(Interval i) {  // the largest absolute value, kMax if there is none
  if (i.lo == Interval::kMin || i.hi == Interval::kMax) return Interval::kMax;
  return std::max(i.lo < 0 ? -i.lo : i.lo, i.hi < 0 ? -i.hi : i.hi);
}

Interval within(int64_t size) { return size == Interval::kMax ? Interval{} : Interval{-size, size}; }

}  // namespace

// By what the atom is made of.
Interval Engine::inside(AtomId id) {
  Interval i;
  const Atom atom = space.atom(id);
  if (atom.kind == AtomKind::Var) return i;
  if (atom.kind == AtomKind::Opaque) {
    auto c = as<Call>(atom.expr);
    if (c && !c->global && c->callee == words.where && c->args.size() == 3)
      i = meet(i, join(interval(normal(c->args[1])), interval(normal(c->args[2]))));
    return i;
  }
  Poly a = space.poly(atom.a), c = space.poly(atom.c);
  Interval x = interval(a), y = interval(c);
  if (x.lo < 0 && atom.kind != AtomKind::Neg && nonneg(a)) x.lo = 0;
  if (y.lo < 1 && atom.kind != AtomKind::Neg && nonneg(c - 1)) y.lo = 1;
  bool size_of_c = y.lo >= 0;
  switch (atom.kind) {
    case AtomKind::Div:
      if (!size_of_c) return meet(i, within(size(x)));
      if (y.hi >= 1) i = meet(i, y.lo >= 1 ? quotient(x, y) : join(quotient(x, {1, y.hi}), {0, 0}));
      return i;
    case AtomKind::Mod: {
      if (!size_of_c) {
        int64_t s = size(y);
        return meet(i, within(s == Interval::kMax || s == 0 ? s : s - 1));
      }
      Interval r{0, y.hi == Interval::kMax ? y.hi : std::max<int64_t>(y.hi - 1, 0)};
      if (x.lo >= 0) r.hi = std::min(r.hi, x.hi);
      return meet(i, r);
    }
    case AtomKind::Neg: return meet(i, {std::min<int64_t>(x.lo, 0), std::min<int64_t>(x.hi, 0)});
    case AtomKind::Min: return meet(i, {std::min(x.lo, y.lo), std::min(x.hi, y.hi)});
    default: return meet(i, {std::max(x.lo, y.lo), std::max(x.hi, y.hi)});
  }
}

}  // namespace mlc
