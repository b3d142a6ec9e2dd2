#include "arith/linear.h"

#include <algorithm>
#include <unordered_set>

#include "ir/walk.h"

namespace mlc {

namespace {

constexpr size_t kMaxTerms = 256;  // of a product; beyond that a factor stays opaque

Poly sum(const Poly &a, const Poly &b, int64_t sign) {
  Poly r;
  r.terms.reserve(a.terms.size() + b.terms.size());
  size_t i = 0, j = 0;
  while (i < a.terms.size() || j < b.terms.size()) {
    if (j == b.terms.size() || (i < a.terms.size() && a.terms[i].mono < b.terms[j].mono)) {
      r.terms.push_back(a.terms[i++]);
    } else if (i == a.terms.size() || b.terms[j].mono < a.terms[i].mono) {
      r.terms.push_back({b.terms[j].mono, mul64(b.terms[j].coef, sign)});
      j++;
    } else {
      int64_t c = add64(a.terms[i].coef, mul64(b.terms[j].coef, sign));
      if (c) r.terms.push_back({a.terms[i].mono, c});
      i++, j++;
    }
  }
  return r;
}

}  // namespace

Poly single(MonoId m, int64_t coef) {
  Poly p;
  if (coef) p.terms.push_back({m, coef});
  return p;
}
Poly merged(std::vector<Term> terms) {
  std::sort(terms.begin(), terms.end(), [](const Term &a, const Term &b) { return a.mono < b.mono; });
  size_t n = 0;
  for (size_t i = 0; i < terms.size();) {
    Term t = terms[i++];
    while (i < terms.size() && terms[i].mono == t.mono) t.coef = add64(t.coef, terms[i++].coef);
    if (t.coef) terms[n++] = t;
  }
  terms.resize(n);
  Poly p;
  p.terms = std::move(terms);
  return p;
}

Poly operator+(const Poly &a, const Poly &b) { return sum(a, b, 1); }
Poly operator-(const Poly &a, const Poly &b) { return sum(a, b, -1); }
Poly operator*(const Poly &a, int64_t c) {
  if (c == 0) return {};
  Poly r = a;
  for (Term &t : r.terms) t.coef = mul64(t.coef, c);
  return r;
}
Poly exact(const Poly &a, int64_t c) {
  Poly r = a;
  for (Term &t : r.terms) t.coef = floor_div(t.coef, c);
  return r;
}
int64_t Poly::content() const {
  uint64_t g = 0;
  for (const Term &t : terms)
    if (t.mono) g = std::gcd(g, t.coef < 0 ? -uint64_t(t.coef) : uint64_t(t.coef));
  return g > uint64_t(INT64_MAX) ? 1 : int64_t(g);
}

size_t Space::Hash::operator()(const std::vector<uint64_t> &v) const {
  uint64_t h = v.size();
  for (uint64_t x : v) h = (h ^ x) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
  return h;
}

Space::Space() {
  monos_.emplace_back();
  mono_ids_.emplace(Key{}, 0);
  intern(Poly());
}

AtomId Space::fresh_var(Sym name) {
  atoms_.push_back({AtomKind::Var, name});
  return AtomId(atoms_.size() - 1);
}

AtomId Space::opaque(const Expr *e) {
  std::vector<AtomId> &same = opaque_[hash(e)];
  for (AtomId a : same)
    if (equal(atoms_[a].expr, e)) return a;
  atoms_.push_back({AtomKind::Opaque, {}, e});
  same.push_back(AtomId(atoms_.size() - 1));
  return same.back();
}

AtomId Space::compound(AtomKind kind, const Poly &a, const Poly &c) {
  Atom atom{kind, {}, nullptr, intern(a), intern(c)};
  auto [it, added] = atom_ids_.try_emplace(Key{uint64_t(kind), atom.a, atom.c}, uint32_t(atoms_.size()));
  if (added) atoms_.push_back(atom);
  return it->second;
}

PolyId Space::intern(const Poly &p) {
  Key key;
  key.reserve(p.terms.size() * 2);
  for (const Term &t : p.terms) key.push_back(t.mono), key.push_back(uint64_t(t.coef));
  auto [it, added] = poly_ids_.try_emplace(std::move(key), uint32_t(polys_.size()));
  if (added) polys_.push_back(p);
  return it->second;
}

MonoId Space::mono(std::vector<AtomId> factors) {
  std::sort(factors.begin(), factors.end(), std::greater<>());
  auto [it, added] = mono_ids_.try_emplace(Key(factors.begin(), factors.end()), uint32_t(monos_.size()));
  if (added) monos_.push_back(std::move(factors));
  return it->second;
}

Poly Space::of(AtomId a, int64_t coef) {
  Poly p;
  if (coef) p.terms.push_back({mono({a}), coef});
  return p;
}

MonoId Space::times(MonoId a, MonoId b) {
  if (!a || !b) return a + b;
  std::vector<AtomId> f = monos_[a];
  f.insert(f.end(), monos_[b].begin(), monos_[b].end());
  return mono(std::move(f));
}

std::optional<MonoId> Space::quotient(MonoId a, MonoId b) {
  if (!b) return a;
  if (a == b) return 0;
  const auto &x = monos_[a], &y = monos_[b];
  if (!std::includes(x.begin(), x.end(), y.begin(), y.end(), std::greater<>())) return std::nullopt;
  std::vector<AtomId> f;
  std::set_difference(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(f), std::greater<>());
  return mono(std::move(f));
}

bool Space::mono_less(MonoId a, MonoId b) const {
  const auto &x = monos_[a], &y = monos_[b];
  return x.size() != y.size() ? x.size() < y.size() : x < y;
}

Poly Space::mul(const Poly &a, const Poly &b) {
  if (a.is_constant()) return b * a.constant();
  if (b.is_constant()) return a * b.constant();
  if (a.terms.size() * b.terms.size() > kMaxTerms) throw Overflow{};
  std::vector<Term> terms;
  for (const Term &x : a.terms)
    for (const Term &y : b.terms) {
      MonoId m = times(x.mono, y.mono);
      if (monos_[m].size() > 16) throw Overflow{};
      terms.push_back({m, mul64(x.coef, y.coef)});
    }
  return merged(std::move(terms));
}

void Space::divide(const Poly &p, const Poly &c, Poly *q, Poly *r) {
  const Term *lead = &c.terms[0];
  for (const Term &t : c.terms)
    if (mono_less(lead->mono, t.mono)) lead = &t;
  *q = Poly();
  *r = p;
  for (size_t turn = 0; turn < 64; turn++) {
    Poly step;
    for (const Term &t : r->terms) {
      std::optional<MonoId> m = quotient(t.mono, lead->mono);
      int64_t times = lead->coef == -1 ? neg64(t.coef) : t.coef / lead->coef;
      if (!m || times == 0) continue;
      Poly one;
      one.terms.push_back({*m, times});
      step = step + one;
    }
    if (step.zero()) return;
    *q = *q + step;
    *r = *r - mul(step, c);
  }
  *q = Poly();
  *r = p;
}

std::optional<Poly> Space::quotient(const Poly &p, const Poly &c) {
  if (c.zero()) return std::nullopt;
  Poly q, r;
  divide(p, c, &q, &r);
  return r.zero() ? std::optional(q) : std::nullopt;
}

void Space::split(const Poly &p, AtomId v, Poly *k, Poly *r) {
  std::vector<Term> with;
  *r = Poly();
  MonoId m = mono({v});
  for (const Term &t : p.terms) {
    if (auto q = quotient(t.mono, m)) with.push_back({*q, t.coef});
    else r->terms.push_back(t);
  }
  *k = merged(std::move(with));
}

Poly Space::substitute(const Poly &p, AtomId v, const Poly &by) {
  Poly k, r;
  split(p, v, &k, &r);
  if (k.zero()) return p;
  return mul(substitute(k, v, by), by) + r;
}

std::vector<AtomId> Space::atoms(const Poly &p) const {
  std::vector<AtomId> out;
  for (const Term &t : p.terms) out.insert(out.end(), monos_[t.mono].begin(), monos_[t.mono].end());
  std::sort(out.begin(), out.end(), std::greater<>());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

bool Space::mentions(const Poly &p, AtomId v) const {
  std::vector<AtomId> todo = atoms(p);
  std::unordered_set<AtomId> seen(todo.begin(), todo.end());
  while (!todo.empty()) {
    AtomId a = todo.back();
    todo.pop_back();
    if (a == v) return true;
    const Atom &x = atoms_[a];
    if (x.kind == AtomKind::Opaque) {
      if (atoms_[v].kind == AtomKind::Var && mlc::mentions(x.expr, atoms_[v].name)) return true;
    } else if (x.kind != AtomKind::Var) {
      for (PolyId inner : {x.a, x.c})
        for (AtomId y : atoms(poly(inner)))
          if (seen.insert(y).second) todo.push_back(y);
    }
  }
  return false;
}

}  // namespace mlc
