// What is known of the integers of a function at a place: ranges of loop variables, dimensions, assumptions.
//
//   Bounds known(b);
//   known.dim(n);            // f32[n]: n >= 0
//   known.range(i, n_expr);  // for i in n: 0 <= i < n
//   known.assume(cond);      // n % 8 == 0
//
// Facts may be symbolic. They are believed only inside mark() .. pop(). Definitions of a name that is known already
// hide it, as scopes do. arith/scope.h enters whole statements.
#pragma once
#include <cstdint>
#include <memory>

#include "ir/build.h"

namespace mlc {

// The integers lo .. hi, both included; kMin and kMax stand for no bound. Empty if lo > hi (facts that contradict).
struct Interval {
  static constexpr int64_t kMin = INT64_MIN, kMax = INT64_MAX;
  int64_t lo = kMin, hi = kMax;
  bool operator==(const Interval &) const = default;
  bool contains(int64_t v) const { return (lo == kMin || lo <= v) && (hi == kMax || v <= hi); }
  bool point() const { return lo == hi && lo != kMin && lo != kMax; }
};
Interval operator+(Interval a, Interval b);
Interval operator*(Interval a, Interval b);
Interval operator*(Interval a, int64_t c);
Interval meet(Interval a, Interval b);  // both hold
Interval join(Interval a, Interval b);  // one of them holds

// residue + any multiple of modulus; modulus 0: the number itself; 1: any integer.
struct Congruence {
  int64_t modulus = 1, residue = 0;
  bool operator==(const Congruence &) const = default;
};

class Engine;

class Bounds {
 public:
  explicit Bounds(Build &b);
  ~Bounds();
  Bounds(const Bounds &) = delete;
  Bounds &operator=(const Bounds &) = delete;

  void index(Sym name);                                      // some integer
  void dim(Sym name);                                        // a size: >= 0
  void range(Sym name, const Expr *extent);                  // 0 <= name < extent
  void range(Sym name, const Expr *lo, const Expr *end);     // lo <= name < end
  void ranges(std::span<const std::pair<Sym, const Expr *>> names);  // all extents are read before a name is defined
  void equal(Sym name, const Expr *value);                   // name: index = value
  void assume(const Expr *cond);                             // what it cannot use it leaves
  size_t mark() const;
  void pop(size_t mark);

  bool knows(Sym name) const;            // a name defined above: surely of type index
  bool is_index(const Expr *e) const;    // surely of type index, or an integer literal
  Engine &engine() const { return *engine_; }

 private:
  std::unique_ptr<Engine> engine_;
};

Interval interval(const Expr *e, const Bounds &known);      // of an index expression; sound
Congruence congruence(const Expr *e, const Bounds &known);

}  // namespace mlc
