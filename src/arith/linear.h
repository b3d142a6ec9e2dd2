// The normal form of index expressions: polynomials with 64-bit coefficients over atoms.
//
//   (i * 4 + j) * n + 3   ->   4 i n + j n + 3
//
// An atom is a variable or what no polynomial can say: a // c, min(0, a), x[i]. A modulo is written a - c * (a // c), a
// minimum b + min(0, a - b), a maximum by a minimum; so every identity between these that is linear holds by itself:
// (x // 4) * 4 + x % 4 is x, min(a, b) + max(a, b) is a + b. Index values are integers that never leave 64 bits; a
// coefficient that would throws Overflow, and whoever made the polynomial falls back to an opaque atom.
#pragma once
#include <cstdint>
#include <deque>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/build.h"

namespace mlc {

struct Overflow {};

inline int64_t add64(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r) || r == INT64_MIN) throw Overflow{};  // so that negation never overflows
  return r;
}
inline int64_t mul64(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r) || r == INT64_MIN) throw Overflow{};
  return r;
}
inline int64_t neg64(int64_t a) { return mul64(a, -1); }
// Floor division and its modulo, the sign of the divisor; x // 0 = x % 0 = 0.
inline int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return neg64(a);
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}
inline int64_t floor_mod(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

using AtomId = uint32_t;
using MonoId = uint32_t;  // a product of atoms; 0 is the empty one
using PolyId = uint32_t;

struct Term {
  MonoId mono;
  int64_t coef;
  bool operator==(const Term &) const = default;
};
struct Poly {
  std::vector<Term> terms;  // ascending by mono, no zeros; so a constant stands first
  Poly() = default;
  Poly(int64_t c) { if (c) terms.push_back({0, c}); }
  bool operator==(const Poly &) const = default;
  bool zero() const { return terms.empty(); }
  bool is_constant() const { return terms.empty() || (terms.size() == 1 && terms[0].mono == 0); }
  int64_t constant() const { return !terms.empty() && terms[0].mono == 0 ? terms[0].coef : 0; }
  // The greatest common divisor of all coefficients but the constant's; 0 for a constant.
  int64_t content() const;
};
Poly operator+(const Poly &a, const Poly &b);
Poly operator-(const Poly &a, const Poly &b);
Poly operator*(const Poly &a, int64_t c);
inline Poly operator-(const Poly &a) { return a * -1; }
Poly exact(const Poly &a, int64_t c);  // a / c where c divides all coefficients
Poly single(MonoId m, int64_t coef);   // one term
Poly merged(std::vector<Term> terms);  // their sum, in any order, with repetitions

// Var, Div (a // c), Neg (min(0, a)) and Opaque stand in normal forms, Mod only where c may be 0. Forms for people,
// made by extract.cc, hold Mod, Min and Max too.
enum class AtomKind : uint8_t { Var, Div, Mod, Neg, Opaque, Min, Max };
struct Atom {
  AtomKind kind;
  Sym name;                   // Var
  const Expr *expr = nullptr;  // Opaque
  PolyId a = 0, c = 0;        // a // c, a % c, min(0, a), min(a, c), max(a, c)
};

// Interns atoms, monomials and polynomials. An atom's number is above those of the atoms inside it.
class Space {
 public:
  Space();
  AtomId fresh_var(Sym name);  // another variable each time
  AtomId opaque(const Expr *e);
  AtomId compound(AtomKind kind, const Poly &a, const Poly &c);
  const Atom &atom(AtomId a) const { return atoms_[a]; }
  PolyId intern(const Poly &p);
  const Poly &poly(PolyId p) const { return polys_[p]; }
  const std::vector<AtomId> &factors(MonoId m) const { return monos_[m]; }  // descending
  MonoId mono(std::vector<AtomId> factors);
  Poly of(AtomId a, int64_t coef = 1);

  MonoId times(MonoId a, MonoId b);
  std::optional<MonoId> quotient(MonoId a, MonoId b);
  bool mono_less(MonoId a, MonoId b) const;  // by degree, then by atoms: compatible with products
  Poly mul(const Poly &a, const Poly &b);    // throws Overflow if it grows beyond reason
  // p = q * c + r, no term of r divisible by the leading term of c (its coefficient truncated).
  void divide(const Poly &p, const Poly &c, Poly *q, Poly *r);
  std::optional<Poly> quotient(const Poly &p, const Poly &c);  // if c divides p
  // p = k * v + r, where r does not mention v.
  void split(const Poly &p, AtomId v, Poly *k, Poly *r);
  Poly substitute(const Poly &p, AtomId v, const Poly &by);
  std::vector<AtomId> atoms(const Poly &p) const;  // those it is a polynomial of, descending
  bool mentions(const Poly &p, AtomId v) const;    // at any depth

 private:
  struct Hash {
    size_t operator()(const std::vector<uint64_t> &v) const;
  };
  using Key = std::vector<uint64_t>;
  std::deque<Atom> atoms_;
  std::deque<std::vector<AtomId>> monos_;
  std::deque<Poly> polys_;
  std::unordered_map<Key, uint32_t, Hash> mono_ids_, poly_ids_, atom_ids_;
  std::unordered_map<uint64_t, std::vector<AtomId>> opaque_;
};

}  // namespace mlc
