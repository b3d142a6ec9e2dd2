// Expressions into polynomials, and the divisions and minima of those.
#include <algorithm>
#include <set>

#include "arith/engine.h"

namespace mlc {

const std::pair<AtomId, Poly> *Engine::binding(AtomId a) const {
  for (const auto &e : equal_)
    if (e.first == a) return &e;
  return nullptr;
}

Poly Engine::of(AtomId a) {
  if (auto bound = binding(a)) {
    Poly p = bound->second;
    for (AtomId x : space.atoms(p)) p = space.substitute(p, x, of(x));
    return p;
  }
  Interval i = interval(a);
  return i.point() ? Poly(i.lo) : space.of(a);
}

Poly Engine::normal(const Expr *e) {
  if (auto i = as<Int>(e); i && !i->wide && i->value != INT64_MIN) return i->value;
  if (auto n = as<Name>(e)) {
    if (auto it = current_.find(n->name); it != current_.end()) return of(it->second);
    auto [it, added] = unknown_.try_emplace(n->name, 0);
    if (added) it->second = space.fresh_var(n->name);
    return of(it->second);
  }
  if (auto it = normal_memo_.find(e); it != normal_memo_.end()) return space.poly(it->second);
  Poly p;
  try {
    p = compute(e);
  } catch (Overflow) {
    p = space.of(space.opaque(e));
  }
  normal_memo_[e] = space.intern(p);
  return p;
}

// A sum of n terms in one go; a node that is reached a second time is computed by itself, so shared parts cost nothing.
void Engine::collect(const Expr *e, int64_t scale, std::vector<Term> &sum, std::unordered_set<const Expr *> &seen) {
  auto u = as<Unary>(e);
  auto x = as<Binary>(e);
  if (!normal_memo_.count(e) && ((u && u->op == Op::Neg) || (x && (x->op == Op::Add || x->op == Op::Sub))) &&
      seen.insert(e).second) {
    if (u) return collect(u->a, neg64(scale), sum, seen);
    collect(x->a, scale, sum, seen);
    return collect(x->b, x->op == Op::Sub ? neg64(scale) : scale, sum, seen);
  }
  for (const Term &t : normal(e).terms) sum.push_back({t.mono, mul64(t.coef, scale)});
}

Poly Engine::compute(const Expr *e) {
  if (auto u = as<Unary>(e); u && u->op == Op::Neg) return -normal(u->a);
  if (auto x = as<Binary>(e)) {
    switch (x->op) {
      case Op::Add:
      case Op::Sub: {
        std::vector<Term> terms;
        std::unordered_set<const Expr *> seen{e};
        collect(x->a, 1, terms, seen);
        collect(x->b, x->op == Op::Sub ? -1 : 1, terms, seen);
        return merged(std::move(terms));
      }
      case Op::Mul: return space.mul(normal(x->a), normal(x->b));
      case Op::FloorDiv: return div(normal(x->a), normal(x->b));
      case Op::Mod: return mod(normal(x->a), normal(x->b));
      case Op::Div: {  // truncates: the floor where both are >= 0
        Poly a = normal(x->a), c = normal(x->b);
        if (a.is_constant() && c.is_constant()) return c.zero() ? 0 : a.constant() / c.constant();
        if (nonneg(a) && nonneg(c)) return div(a, c);
        return space.of(space.opaque(b.binary(Op::Div, index(x->a), index(x->b))));
      }
      default: break;
    }
  }
  if (auto c = as<Call>(e); c && !c->global && c->iters.empty()) {
    if (c->args.size() == 2 && c->callee == words.min) return min(normal(c->args[0]), normal(c->args[1]));
    if (c->args.size() == 2 && c->callee == words.max) return max(normal(c->args[0]), normal(c->args[1]));
    if (c->args.size() == 3 && c->callee == words.clamp)
      return min(max(normal(c->args[0]), normal(c->args[1])), normal(c->args[2]));
    if (c->args.size() == 1 && c->callee == words.index && type(c->args[0]) != Is::Other) return normal(c->args[0]);
    if (c->args.size() == 3 && c->callee == words.where) {
      const Expr *cond = condition(c->args[0]);
      if (auto k = as<Bool>(cond)) return normal(c->args[k->value ? 1 : 2]);
      const Expr *sides[2];
      for (bool holds : {true, false}) {
        size_t m = mark();
        assume(cond, holds);
        sides[!holds] = index(c->args[holds ? 1 : 2]);
        pop(m);
      }
      if (mlc::equal(sides[0], sides[1])) return normal(sides[0]);
      return space.of(space.opaque(b.call(c->callee, b.list({cond, sides[0], sides[1]}))));
    }
  }
  return of(space.opaque(parts(e)));
}

bool Engine::nonzero(const Poly &p) {
  return p.is_constant() ? p.constant() != 0 : nonneg(p - 1) || nonneg(-p - 1);
}

Poly Engine::mod(const Poly &a, const Poly &c) {
  if (c.zero() || a.zero()) return 0;
  if (!nonzero(c)) return of(space.compound(AtomKind::Mod, a, c));
  return a - space.mul(c, div(a, c));
}

Poly Engine::div(const Poly &a, const Poly &c) {
  if (a.zero() || c.zero()) return 0;
  if (c.is_constant()) return c.constant() < 0 ? div(-a, -c.constant()) : div(a, c.constant());
  bool positive = nonneg(c - 1);
  if (!positive && !nonneg(-c - 1)) return of(space.compound(AtomKind::Div, a, c));
  if (!positive) return div(-a, -c);
  // (q * c + r) // c = q + r // c
  Poly q, r;
  space.divide(a, c, &q, &r);
  if (r.zero() || (nonneg(r) && nonneg(c - r - 1))) return q;
  // (g * x + y) // (g * d) = x // d where 0 <= y < g
  if (c.terms.size() == 1) {
    for (AtomId f : std::set<AtomId>(space.factors(c.terms[0].mono).begin(), space.factors(c.terms[0].mono).end())) {
      Poly x, y, d, none, g = space.of(f);
      space.split(r, f, &x, &y);
      if (x.zero() || !nonneg(g - 1) || !nonneg(y) || !nonneg(g - y - 1)) continue;
      space.split(c, f, &d, &none);
      return q + div(x, d);
    }
    if (int64_t g = std::gcd(r.content(), c.terms[0].coef); g > 1)
      return q + div(exact(r - floor_mod(r.constant(), g), g), exact(c, g));
  }
  // x // d // c = x // (d * c)
  if (r.terms.size() == 1 && r.terms[0].coef == 1 && space.factors(r.terms[0].mono).size() == 1) {
    const Atom &inner = space.atom(space.factors(r.terms[0].mono)[0]);
    if (inner.kind == AtomKind::Div && nonneg(space.poly(inner.c) - 1))
      return q + div(space.poly(inner.a), space.mul(space.poly(inner.c), c));
  }
  return q + of(space.compound(AtomKind::Div, r, c));
}

Poly Engine::div(const Poly &a, int64_t c) {
  if (c == 1) return a;
  auto same_floor = [](Interval i, int64_t c) {
    return i.lo != Interval::kMin && i.hi != Interval::kMax && floor_div(i.lo, c) == floor_div(i.hi, c);
  };
  // (q * c + r) // c = q + r // c: first what c divides, then all coefficients of r into [0, c)
  Poly q, r = a;
  for (int turn = 0; turn < 3; turn++) {
    if (turn) {
      Poly rest;
      for (const Term &t : r.terms) {
        int64_t times = turn == 1 && t.mono && t.coef % c ? 0 : floor_div(t.coef, c), left = t.coef - times * c;
        if (times) q = q + single(t.mono, times);
        if (left) rest.terms.push_back({t.mono, left});
      }
      r = rest;
    }
    Interval i = interval(r);
    if (same_floor(i, c)) return q + floor_div(i.lo, c);
  }
  if (nonneg(r) && nonneg(Poly(c - 1) - r)) return q;
  // (g * x + y) // (g * d) = (x + y // g) // d where y // g is one number
  std::set<int64_t, std::greater<>> divisors;
  for (const Term &t : r.terms)
    if (t.mono) divisors.insert(std::gcd(t.coef, c));
  for (int64_t g : divisors) {
    if (g == 1) continue;
    Poly x, y;
    for (const Term &t : r.terms) {
      int64_t rest = t.mono ? (t.coef % g ? t.coef : 0) : floor_mod(t.coef, g);
      if (rest) y.terms.push_back({t.mono, rest});
      if (t.coef - rest) x.terms.push_back({t.mono, (t.coef - rest) / g});
    }
    Interval i = interval(y);
    if (same_floor(i, g)) return q + div(x + floor_div(i.lo, g), c / g);
    if (nonneg(y) && nonneg(Poly(g - 1) - y)) return q + div(x, c / g);
  }
  // (x // d + k) // c = (x + k * d) // (d * c)
  Poly x = r - r.constant();
  if (x.terms.size() == 1 && x.terms[0].coef == 1 && space.factors(x.terms[0].mono).size() == 1) {
    const Atom &inner = space.atom(space.factors(x.terms[0].mono)[0]);
    if (inner.kind == AtomKind::Div && nonneg(space.poly(inner.c) - 1))
      return q + div(space.poly(inner.a) + space.poly(inner.c) * r.constant(), space.poly(inner.c) * c);
  }
  return q + of(space.compound(AtomKind::Div, r, c));
}

// min(0, d)
Poly Engine::neg(const Poly &d) {
  int64_t g = std::gcd(d.content(), d.constant());
  return of(space.compound(AtomKind::Neg, exact(d, g), Poly())) * g;
}

// min(a, b) = b + min(0, a - b) = a + min(0, b - a), whichever has a positive leading coefficient.
Poly Engine::min(const Poly &x, const Poly &y) {
  Poly d = x - y;
  if (nonneg(d)) return y;
  if (nonneg(-d)) return x;
  const Term *lead = &d.terms[0];
  for (const Term &t : d.terms)
    if (space.mono_less(lead->mono, t.mono)) lead = &t;
  return lead->coef > 0 ? y + neg(d) : x + neg(-d);
}

}  // namespace mlc
