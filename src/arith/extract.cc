// Polynomials into the expression that a person would write.
#include <algorithm>
#include <map>

#include "arith/engine.h"
#include "text/text.h"

namespace mlc {

namespace {

constexpr size_t kMostJoined = 200;  // terms of a sum in which what belongs together is looked for

size_t weight(const Poly &p) {  // what it takes to write it
  size_t n = 0;
  for (const Term &t : p.terms) n += 1 + (t.mono && std::abs(t.coef) != 1);
  return n;
}

int64_t coef(const Poly &p, MonoId m) {
  for (const Term &t : p.terms)
    if (t.mono == m) return t.coef;
  return 0;
}

}  // namespace

// x + k * min(0, d) = x' + k * min(u, v) with v - u = d and x' + k * u = x: for each monomial on its own the choice
// that leaves least to write.
Poly Engine::join_neg(Poly p) {
  if (p.terms.size() > kMostJoined) return p;
  for (AtomId n : space.atoms(p)) {
    if (space.atom(n).kind != AtomKind::Neg) continue;
    Poly k, rest, d = space.poly(space.atom(n).a);
    space.split(p, n, &k, &rest);
    if (k.zero()) continue;
    if (k.terms.size() > 1) {
      p = rest + space.mul(k, space.of(space.compound(AtomKind::Min, d, Poly())));
      continue;
    }
    MonoId by = k.terms[0].mono;
    int64_t times = std::abs(k.terms[0].coef);
    bool minimum = k.terms[0].coef > 0;
    if (!minimum) d = -d;  // -min(0, d) = max(0, -d)
    Poly u, v, x;
    std::map<MonoId, std::pair<int64_t, int64_t>> coefs;  // of x, divided by `by`, and of d
    for (const Term &t : rest.terms) {
      if (auto m = space.quotient(t.mono, by)) coefs[*m].first = t.coef;
      else x = x + single(t.mono, t.coef);
    }
    for (const Term &t : d.terms) coefs[t.mono].second = t.coef;
    for (auto [m, c] : coefs) {
      auto [outside, diff] = c;
      int64_t best = 0;
      int least = 4;
      for (int64_t inside : {outside % times ? 0 : outside / times, int64_t(0), -diff}) {
        int left = (outside != inside * times) + (inside != 0) + (add64(inside, diff) != 0);
        if (left < least) least = left, best = inside;
      }
      x = x + single(space.times(m, by), outside - mul64(best, times));
      u = u + single(m, best), v = v + single(m, best + diff);
    }
    if (u.is_constant() || (!v.is_constant() && order(v.terms.back(), u.terms.back()) < 0)) std::swap(u, v);
    AtomId joint = space.compound(minimum ? AtomKind::Min : AtomKind::Max, u, v);
    p = x + space.mul(single(by, times), space.of(joint));
  }
  return p;
}

// The same modulo c with small coefficients: 3 x -> -x modulo 4. What is never negative stays so.
Poly Engine::residues(const Poly &a, const Poly &c) {
  if (!c.is_constant() || nonneg(a)) return a;
  Poly r = a;
  for (Term &t : r.terms)
    if (t.mono && t.coef > c.constant() / 2) t.coef -= c.constant();
  return r;
}

// m * a - m * c * (a // c)  ->  m * (a % c), and the same with a // d for a where d divides c.
Poly Engine::join_mods(Poly p) {
  if (p.terms.size() > kMostJoined) return p;
  for (int turn = 0; turn < 8; turn++) {
    Poly before = p;
    std::vector<AtomId> quotients;
    std::map<PolyId, std::vector<AtomId>> by_dividend;  // without its constant
    auto dividend = [&](AtomId q) {
      const Poly &a = space.poly(space.atom(q).a);
      return space.intern(a - a.constant());
    };
    for (AtomId a : space.atoms(p))
      if (space.atom(a).kind == AtomKind::Div) quotients.push_back(a), by_dividend[dividend(a)].push_back(a);
    for (AtomId q : quotients) {
      const Poly a = space.poly(space.atom(q).a), c = space.poly(space.atom(q).c);
      Poly k, rest, best = p;
      space.split(p, q, &k, &rest);
      if (k.zero() || space.mentions(k, q)) continue;
      std::vector<Poly> divisors{Poly(1)};
      for (AtomId other : by_dividend[dividend(q)])
        if (other != q && space.quotient(c, space.poly(space.atom(other).c)))
          divisors.push_back(space.poly(space.atom(other).c));
      for (const Poly &d : divisors) {
        std::optional<Poly> ratio = space.quotient(c, d), times = ratio ? space.quotient(-k, *ratio) : std::nullopt;
        if (!times || !nonneg(*ratio - 1)) continue;
        Poly base = div(a, d);
        if (base.is_constant()) continue;
        Poly mod = space.of(space.compound(AtomKind::Mod, residues(base, *ratio), *ratio));
        Poly next = rest - space.mul(*times, base) + space.mul(*times, mod);
        if (weight(next) < weight(best)) best = next;
      }
      p = unbound(q, k, rest, best);
    }
    if (p == before) break;
  }
  return p;
}

// If v is known to be c * q + r: k * q in terms of v, where that is no longer than `best`.
Poly Engine::unbound(AtomId q, const Poly &k, const Poly &rest, Poly best) {
  for (auto &[v, value] : equal_) {
    Poly c, r;
    space.split(value, q, &c, &r);
    if (!c.is_constant() || c.zero() || !r.is_constant()) continue;
    if (auto times = space.quotient(k, c)) {
      Poly next = rest + space.mul(*times, space.of(v) - r);
      if (weight(next) <= weight(best)) best = next;
    } else if (k.is_constant()) {
      int64_t g = std::gcd(k.constant(), c.constant());
      if (g > 1 && r.constant() < c.constant() / g)
        best = rest + space.of(space.compound(AtomKind::Div, space.of(v), c.constant() / g), k.constant() / g);
    }
  }
  return best;
}

Poly Engine::joined(const Poly &p) {
  PolyId id = space.intern(p);
  if (auto it = joined_memo_.find(id); it != joined_memo_.end()) return space.poly(it->second);
  Poly r = join_mods(join_neg(p));
  joined_memo_[id] = space.intern(r);
  return r;
}

// a // c + 1 -> (a + c) // c, where `a` has such a term already.
Poly Engine::absorb(Poly p, bool keep_nonneg) {
  if (p.terms.size() > kMostJoined) return p;
  for (AtomId q : space.atoms(p)) {
    if (space.atom(q).kind != AtomKind::Div) continue;
    const Poly before = space.poly(space.atom(q).a), c = space.poly(space.atom(q).c);
    Poly a = before, k, rest;
    space.split(p, q, &k, &rest);
    if (!k.is_constant() || !c.is_constant() || k.zero()) continue;
    for (const Term &t : before.terms) {
      int64_t outside = coef(rest, t.mono);
      if (!outside || outside % k.constant()) continue;
      Poly next = a + single(t.mono, mul64(outside / k.constant(), c.constant()));
      if (keep_nonneg && !t.mono && !nonneg(next) && nonneg(a)) continue;  // keep what may be divided as in C
      a = next;
      rest = rest - single(t.mono, outside);
    }
    if (!(a == before)) p = rest + space.of(space.compound(AtomKind::Div, a, c), k.constant());
  }
  return p;
}

Poly Engine::readable(const Poly &p) {
  try {
    return absorb(joined(p), true);
  } catch (Overflow) {
    return p;
  }
}

const Expr *Engine::expr(const Poly &p) {
  if (p.is_constant()) return b.integer(p.constant());
  PolyId id = space.intern(p);
  if (auto it = expr_memo_.find(id); it != expr_memo_.end()) return it->second;
  const Expr *e = sum(readable(p));
  return expr_memo_[id] = e;
}

const Expr *Engine::atom_expr(AtomId a) {
  const Atom atom = space.atom(a);
  auto inner = [&](PolyId p) { return expr(Poly(space.poly(p))); };
  switch (atom.kind) {
    case AtomKind::Var: return b.name(atom.name);
    case AtomKind::Opaque: return atom.expr;
    case AtomKind::Div: return b.binary(Op::FloorDiv, inner(atom.a), inner(atom.c));
    case AtomKind::Mod: return b.binary(Op::Mod, inner(atom.a), inner(atom.c));
    case AtomKind::Neg: return b.call(words.min, b.list({inner(atom.a), b.integer(0)}));
    case AtomKind::Min: return b.call(words.min, b.list({inner(atom.a), inner(atom.c)}));
    default: return b.call(words.max, b.list({inner(atom.a), inner(atom.c)}));
  }
}

// Variables in the order of their definitions, those never defined by name, the rest by text. In products quotients
// come first and sizes last: n // 2 * i * m needs no parentheses.
int Engine::order(AtomId x, AtomId y, bool in_product) {
  if (x == y) return 0;
  const Atom &a = space.atom(x), &c = space.atom(y);
  auto rank = [&](const Atom &t, AtomId id) {
    if (t.kind == AtomKind::Var) return in_product && sizes_.count(id) ? 4 : 1;
    return t.kind == AtomKind::Div || t.kind == AtomKind::Mod ? (in_product ? 0 : 2) : 3;
  };
  if (int d = rank(a, x) - rank(c, y)) return d;
  if (a.kind == AtomKind::Var) {
    auto unknown = [&](Sym name, AtomId id) {
      auto it = unknown_.find(name);
      return it != unknown_.end() && it->second == id;
    };
    if (unknown(a.name, x) != unknown(c.name, y)) return unknown(a.name, x) ? 1 : -1;
    if (unknown(a.name, x)) return b.text(a.name).compare(b.text(c.name));
    return x < y ? -1 : 1;
  }
  int text = print(b, atom_expr(x)).compare(print(b, atom_expr(y)));
  return text ? text : x < y ? -1 : 1;
}

// Terms by degree, then size and sign of the coefficient, then their atoms; the constant last.
int Engine::order(const Term &x, const Term &y, bool sign) {
  std::vector<AtomId> a = space.factors(x.mono), c = space.factors(y.mono);
  if (a.size() != c.size()) return a.size() > c.size() ? -1 : 1;
  if (std::abs(x.coef) != std::abs(y.coef)) return std::abs(x.coef) > std::abs(y.coef) ? -1 : 1;
  if (sign && x.coef != y.coef) return x.coef > y.coef ? -1 : 1;
  auto before = [&](AtomId p, AtomId q) { return order(p, q, false) < 0; };
  std::sort(a.begin(), a.end(), before), std::sort(c.begin(), c.end(), before);
  for (size_t i = 0; i < a.size(); i++)
    if (int o = order(a[i], c[i], false)) return o;
  return 0;
}

// first * atoms * coefficient
const Expr *Engine::product(MonoId m, int64_t coef, const Expr *first) {
  std::vector<AtomId> f = space.factors(m);
  std::sort(f.begin(), f.end(), [&](AtomId p, AtomId q) { return order(p, q, true) < 0; });
  const Expr *e = first;
  for (AtomId a : f) e = e ? b.binary(Op::Mul, e, atom_expr(a)) : atom_expr(a);
  if (!e) return b.integer(coef);
  return coef == 1 ? e : b.binary(Op::Mul, e, b.integer(coef));
}

// A polynomial of atoms as they stand. An atom of several terms is factored out:
//   i n m + j m + k  ->  (i * n + j) * m + k
const Expr *Engine::sum(Poly p) {
  if (p.is_constant()) return b.integer(p.constant());
  struct Part {
    Term lead;
    AtomId factor;   // kNone: the term itself
    Poly times;      // of the factor
  };
  std::vector<Part> parts;
  while (p.terms.size() <= kMostJoined) {
    std::map<AtomId, int> uses;
    for (const Term &t : p.terms) {
      auto f = space.factors(t.mono);
      f.erase(std::unique(f.begin(), f.end()), f.end());
      for (AtomId a : f) uses[a]++;
    }
    AtomId best = kNone;
    for (auto [a, n] : uses)
      if (n >= 2 && (best == kNone || n > uses[best] || (n == uses[best] && order(a, best, true) > 0))) best = a;
    if (best == kNone) break;
    Poly k, r;
    space.split(p, best, &k, &r);
    Term lead = k.terms[0];
    for (const Term &t : k.terms)
      if (order(t, lead) < 0) lead = t;
    if (lead.coef < 0) k = -k;
    parts.push_back({{space.times(lead.mono, space.mono({best})), lead.coef}, best, k});
    p = r;
  }
  for (const Term &t : p.terms) parts.push_back({t, kNone, {}});
  std::stable_sort(parts.begin(), parts.end(), [&](const Part &x, const Part &y) { return order(x.lead, y.lead) < 0; });
  auto positive = std::find_if(parts.begin(), parts.end(), [](const Part &x) { return x.lead.coef > 0; });
  if (positive != parts.end()) std::rotate(parts.begin(), positive, positive + 1);
  const Expr *e = nullptr;
  for (const Part &part : parts) {
    bool minus = part.lead.coef < 0;
    auto written = [&](int64_t sign) {
      if (part.factor == kNone) return product(part.lead.mono, part.lead.coef * sign);
      return product(space.mono({part.factor}), 1, sum(part.times));
    };
    if (e) e = b.binary(minus ? Op::Sub : Op::Add, e, written(minus ? -1 : 1));
    else if (!minus) e = written(1);
    else if (part.factor == kNone && part.lead.coef != -1) e = written(1);  // i * -4
    else e = b.unary(Op::Neg, written(-1));
  }
  return e;
}

// d >= 0, d == 0 or d != 0, with positive terms on both sides.
const Expr *Engine::comparison(Op op, const Poly &given) {
  int64_t g = given.content();
  Poly d = op == Op::Ge ? tighten(given) : g && given.constant() % g == 0 ? exact(given, g) : given;
  auto lead = [&](const Poly &p, bool sign) {
    auto before = [&](const Term &x, const Term &y) { return order(x, y, sign) < 0; };
    return *std::min_element(p.terms.begin(), p.terms.end(), before);
  };
  if (op != Op::Ge && lead(d, false).coef < 0) d = -d;
  d = readable(d);
  Poly left, right;  // left <= right + k
  int64_t k = d.constant();
  for (const Term &t : d.terms)
    if (t.mono) (t.coef < 0 ? left : right).terms.push_back({t.mono, std::abs(t.coef)});
  auto with = [&](const Poly &p, int64_t c) { return sum(p + c); };
  // The side whose variables come first stands on the left, sizes last: i < n, i >= n.
  auto first = [&](const Term &t) {
    auto &f = space.factors(t.mono);
    return *std::min_element(f.begin(), f.end(), [&](AtomId x, AtomId y) { return order(x, y, true) < 0; });
  };
  bool swap = left.zero();
  if (!left.zero() && !right.zero()) {
    Term l = lead(left, true), r = lead(right, true);
    int o = order(first(r), first(l), true);
    swap = o < 0 || (o == 0 && order(r, l) < 0);
  }
  if (op != Op::Ge) {
    if (swap) std::swap(left, right), k = -k;
    return b.binary(op, with(left, k < 0 ? -k : 0), with(right, k > 0 ? k : 0));
  }
  if (left.zero()) return b.binary(Op::Ge, sum(right), b.integer(-k));
  if (right.zero() && k == INT64_MAX) return b.binary(Op::Le, sum(left), b.integer(k));
  if (right.zero()) return b.binary(Op::Lt, sum(left), b.integer(k + 1));
  const Expr *low = sum(left), *high = sum(right);
  bool strict = k < 0;
  if (strict) low = with(left, -k - 1);
  else high = with(right, k);
  return swap ? b.binary(strict ? Op::Gt : Op::Ge, high, low) : b.binary(strict ? Op::Lt : Op::Le, low, high);
}

}  // namespace mlc
