// Is a polynomial never negative? Variables are eliminated one after the other, newest first, each by a bound of it:
//
//   n m - i m - j - 1  >=  n m - i m - m  >=  0        by  j <= m - 1,  then  i <= n - 1,  m >= 0
//
// That is Fourier and Motzkin's method with symbolic coefficients, whose sign must be known too. A quotient brings its
// own bounds (c * (a // c) <= a <= c * (a // c) + c - 1), a minimum is tried both ways. The search has a budget: true
// is a proof, false is nothing.
#include "arith/prove.h"

#include <algorithm>

#include "arith/engine.h"

namespace mlc {

namespace {
constexpr int kBudget = 200, kDepth = 40, kSplits = 5;
constexpr int kPlenty = 20000, kLittle = 10;  // steps at one place of a program, and the budget of a proof after these
constexpr size_t kMaxTerms = 48;
}  // namespace

// g x + k >= 0 for integers x is x + floor(k / g) >= 0.
Poly Engine::tighten(const Poly &p) const {
  int64_t g = p.content();
  if (g <= 1) return p;
  Poly r;
  for (const Term &t : p.terms)
    if (int64_t c = floor_div(t.coef, g)) r.terms.push_back({t.mono, c});
  return r;
}

bool Engine::nonneg(const Poly &p) {
  if (p.is_constant()) return p.constant() >= 0;
  PolyId id = space.intern(p);
  if (auto [it, added] = nonneg_memo_.try_emplace(id, false); !added) return it->second;
  Interval i = interval(p);
  bool yes = i.lo >= 0, outer = !proving_;
  if (!yes && i.hi >= 0 && p.terms.size() <= kMaxTerms) {
    if (outer) proving_ = true, splits_ = 0, budget_ = spent_ < kPlenty ? kBudget : kLittle, seen_.clear();
    int before = budget_;
    try {
      yes = search(p, 0);
    } catch (Overflow) {
    }
    if (outer) proving_ = false, spent_ += before - budget_;
  }
  if (yes || (outer && open_.empty())) nonneg_memo_[id] = yes;
  else nonneg_memo_.erase(id);  // it may have failed for want of budget
  return yes;
}

// Polynomials >= 0 that hold of this atom.
const std::vector<Poly> &Engine::facts_of(AtomId id) {
  if (auto it = facts_memo_.find(id); it != facts_memo_.end()) return it->second;
  std::vector<Poly> facts = told_of(id);
  const Atom atom = space.atom(id);
  Poly v = space.of(id);
  if (atom.kind != AtomKind::Var) {
    Interval i = interval(id);
    if (i.lo != Interval::kMin && i.lo != INT64_MIN + 1) facts.push_back(v - i.lo);
    if (i.hi != Interval::kMax) facts.push_back(Poly(i.hi) - v);
  }
  if (atom.kind == AtomKind::Div || atom.kind == AtomKind::Mod || atom.kind == AtomKind::Neg) {
    Poly a = space.poly(atom.a), c = space.poly(atom.c);
    try {
      if (atom.kind == AtomKind::Neg) {
        facts.push_back(a - v);
      } else if (atom.kind == AtomKind::Mod) {
        if (nonneg(c)) facts.push_back(c - v);
      } else if (nonneg(c - 1)) {
        Poly cv = space.mul(c, v);
        facts.push_back(a - cv);
        facts.push_back(cv + c - 1 - a);
      } else if (nonneg(c) && nonneg(a)) {
        facts.push_back(a - v);
      }
    } catch (Overflow) {
    }
  }
  return facts_memo_[id] = std::move(facts);
}

bool Engine::search(const Poly &given, int depth) {
  if (given.is_constant()) return given.constant() >= 0;
  if (depth > kDepth || --budget_ < 0 || given.terms.size() > kMaxTerms) return false;
  Poly p = tighten(given);
  if (!seen_.insert(space.intern(p)).second) return false;
  Interval i = interval(p);
  if (i.lo >= 0) return true;
  if (i.hi < 0) return false;
  std::vector<AtomId> atoms = space.atoms(p);
  // a p >= 0 by p >= 0
  for (AtomId v : atoms)
    if (auto q = p.terms.size() > 1 ? space.quotient(p, space.of(v)) : std::nullopt; q && nonneg(space.of(v)))
      if (search(*q, depth + 1)) return true;
  // n m - q m - j - 1 with j < m: what no other atom is made of first, since rounding follows: n - q - 1 is an integer.
  if (atoms.size() > 1)
    std::stable_partition(atoms.begin(), atoms.end(), [&](AtomId v) {
      return space.atom(v).kind == AtomKind::Var && std::none_of(atoms.begin(), atoms.end(), [&](AtomId a) {
        return a != v && space.atom(a).kind != AtomKind::Var && space.mentions(space.of(a), v);
      });
    });
  for (AtomId v : atoms) {
    Poly k, r;
    space.split(p, v, &k, &r);
    if (space.atom(v).kind == AtomKind::Neg) {
      const Poly d = space.poly(space.atom(v).a);
      bool either = k.is_constant() && k.constant() < 0;  // min(0, d) is below both: one of them is enough
      if (splits_ >= kSplits) return false;
      splits_++;
      bool yes = search(space.substitute(p, v, Poly()), depth + 1);
      if (yes != either) yes = search(space.substitute(p, v, d), depth + 1);
      splits_--;
      return yes;
    }
    int sign = nonneg(k) ? 1 : nonneg(-k) ? -1 : 0;
    if (!sign) continue;
    for (const Poly &f : std::vector<Poly>(facts_of(v))) {
      Poly a, g;
      space.split(f, v, &a, &g);
      if (space.mentions(a, v) || !nonneg((sign > 0 ? a : -a) - 1)) continue;
      // p = k v + r and a v + g >= 0: if a divides k, p >= r - (k / a) g; else |a| p >= |a| r - |k| g, and an integer
      // p >= 0 if |a| p > -|a|
      Poly next;
      if (auto q = space.quotient(k, a)) next = r - space.mul(*q, g);
      else next = (space.mul(a, r) - space.mul(k, g) + a) * sign - 1;
      if (search(next, depth + 1)) return true;
    }
    return false;
  }
  return false;
}

// Is `x op y` so? Is it not so?
Truth Engine::compare(Op op, const Poly &x, const Poly &y) {
  Poly d = x - y;
  auto answer = [](bool yes, bool no) { return yes ? Truth::Yes : no ? Truth::No : Truth::Unknown; };
  switch (op) {
    case Op::Lt: return nonneg(-d - 1) ? Truth::Yes : answer(false, nonneg(d));
    case Op::Le: return nonneg(-d) ? Truth::Yes : answer(false, nonneg(d - 1));
    case Op::Gt: return nonneg(d - 1) ? Truth::Yes : answer(false, nonneg(-d));
    case Op::Ge: return nonneg(d) ? Truth::Yes : answer(false, nonneg(-d - 1));
    default: break;
  }
  bool equal = d.zero() || (nonneg(d) && nonneg(-d));
  int64_t g = d.content();
  bool differ = !equal && ((g && d.constant() % g) || nonneg(d - 1) || nonneg(-d - 1));
  return op == Op::Eq ? answer(equal, differ) : answer(differ, equal);
}

namespace {

bool holds(const Bounds &known, Op op, const Expr *x, const Expr *y) {
  Engine &e = known.engine();
  try {
    return e.compare(op, e.normal(x), e.normal(y)) == Truth::Yes;
  } catch (Overflow) {
    return false;
  }
}

}  // namespace

bool prove(Build &b, const Expr *cond, const Bounds &known) {
  auto c = as<Binary>(cond);
  if (c && c->op == Op::And) return prove(b, c->a, known) && prove(b, c->b, known);
  if (c && c->op >= Op::Eq && c->op <= Op::Ge) return holds(known, c->op, c->a, c->b);
  auto k = as<Bool>(known.engine().condition(cond));
  return k && k->value;
}
bool provably_equal(Build &, const Expr *x, const Expr *y, const Bounds &known) {
  return equal(x, y) || holds(known, Op::Eq, x, y);
}
bool provably_less(Build &, const Expr *x, const Expr *y, const Bounds &known) { return holds(known, Op::Lt, x, y); }
bool provably_less_equal(Build &, const Expr *x, const Expr *y, const Bounds &known) {
  return holds(known, Op::Le, x, y);
}
bool provably_inside(Build &b, const Expr *x, const Expr *extent, const Bounds &known) {
  return holds(known, Op::Ge, x, b.integer(0)) && holds(known, Op::Lt, x, extent);
}
bool provably_equal(Build &b, const Expr *x, const Expr *y) {
  return equal(x, y) || provably_equal(b, x, y, Bounds(b));
}
bool provably_equal(Build &b, Exprs x, Exprs y, const Bounds &known) {
  if (x.size() != y.size()) return false;
  for (size_t i = 0; i < x.size(); i++)
    if (!provably_equal(b, x[i], y[i], known)) return false;
  return true;
}

}  // namespace mlc
