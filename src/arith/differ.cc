// Are two tuples of index expressions never the same? Suppose they are: then all differences of their items are zero,
// and so is what follows from that, until something that cannot be zero turns up.
//
//   [f % m, f // m] and [g % m, g // m], f < g       f - m (f // m) - g + m (g // m) = 0,  f // m - g // m = 0
//                                               ->   f - g = 0, but g > f
//
//   4 x + y = 0 with -4 < y < 4                 ->   x = 0 and y = 0: so are the digits of a number
//
#include <algorithm>

#include "arith/engine.h"
#include "arith/prove.h"

namespace mlc {

// Without factors that are not zero.
Poly Engine::primitive(Poly p) {
  if (p.is_constant()) return p;
  if (int64_t g = std::gcd(p.content(), p.constant()); g > 1) p = exact(p, g);
  for (AtomId a : space.atoms(p))
    while (auto q = p.terms.size() > 1 || !p.is_constant() ? space.quotient(p, space.of(a)) : std::nullopt) {
      if (!nonneg(space.of(a) - 1)) break;
      p = *q;
    }
  return p;
}

// p = g * high + low with -g < low < g, g > 0 a part of one of the terms.
bool Engine::digits(const Poly &p, Poly *high, Poly *low) {
  std::vector<Term> scales;
  for (const Term &t : p.terms) {
    if (!t.mono) continue;
    scales.push_back({0, std::abs(t.coef)});
    for (AtomId a : space.factors(t.mono))
      for (int64_t c : {int64_t(1), std::abs(t.coef)}) scales.push_back({*space.quotient(t.mono, space.mono({a})), c});
  }
  std::sort(scales.begin(), scales.end(), [](auto &x, auto &y) { return std::pair(x.mono, x.coef) < std::pair(y.mono, y.coef); });
  scales.erase(std::unique(scales.begin(), scales.end()), scales.end());
  for (const Term &scale : scales) {
    if (scale == Term{0, 1}) continue;
    *high = *low = Poly();
    for (const Term &t : p.terms) {
      auto m = t.coef % scale.coef ? std::nullopt : space.quotient(t.mono, scale.mono);
      if (m) *high = *high + single(*m, t.coef / scale.coef);
      else low->terms.push_back(t);
    }
    if (high->zero() || low->zero()) continue;
    Poly g = single(scale.mono, scale.coef);
    if (nonneg(g - 1 - *low) && nonneg(g - 1 + *low)) return true;
  }
  return false;
}

bool Engine::never(std::vector<Poly> zeros) {
  constexpr int kMost = 24;  // equations used
  for (int turn = 0; turn < kMost && !zeros.empty(); turn++) {
    std::vector<Poly> next;
    for (const Poly &p : zeros) {
      Poly q = primitive(p);
      if (q.zero()) continue;
      int64_t g = q.content();
      if ((g && q.constant() % g) || nonneg(q - 1) || nonneg(-q - 1)) return true;
      next.push_back(q);
    }
    zeros = std::move(next);
    bool split = false;
    Poly high, low;
    for (size_t i = 0; i < zeros.size() && !split; i++)
      if ((split = digits(zeros[i], &high, &low))) zeros[i] = high, zeros.push_back(low);
    if (split) continue;
    // One of them says what an atom is: the newest, which no other holds.
    AtomId best = kNone;
    size_t from = 0;
    Poly value;
    for (size_t i = 0; i < zeros.size(); i++)
      for (AtomId a : space.atoms(zeros[i])) {
        Poly k, r;
        space.split(zeros[i], a, &k, &r);
        if (!k.is_constant() || std::abs(k.constant()) != 1 || (best != kNone && a < best)) continue;
        if (best == a && zeros[from].terms.size() <= zeros[i].terms.size()) continue;
        best = a, from = i, value = r * -k.constant();
      }
    if (best == kNone) return false;
    zeros.erase(zeros.begin() + ptrdiff_t(from));
    for (Poly &p : zeros) p = space.substitute(p, best, value);
  }
  return false;
}

bool provably_different(Build &, Exprs x, Exprs y, const Bounds &known) {
  Engine &e = known.engine();
  std::vector<Poly> zeros;
  try {
    for (size_t i = 0; i < x.size() && i < y.size(); i++) zeros.push_back(e.normal(x[i]) - e.normal(y[i]));
    return e.never(std::move(zeros));
  } catch (Overflow) {
    return false;
  }
}

}  // namespace mlc
