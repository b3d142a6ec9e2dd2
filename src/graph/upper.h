// How large the sizes of a graph can become: what an arena must have room for before a size that is data is known.
//
//   k: index = Item(c)
//   assume k >= 0 && k <= 4 * n      of(2 * k + 1) is 8 * n + 1, an expression of the graph's dimensions
//
// A fact holds from its line on, in its body. Sound: the value of an expression never exceeds what `of` says.
#pragma once
#include <optional>

#include "ir/walk.h"
#include "ops/expr.h"

namespace mlc {

class Upper {
 public:
  Upper(Build &b, const Func &f);  // dimensions and index parameters are what they are
  size_t mark() const { return log_.size(); }
  void pop(size_t mark);

  struct Limits {
    std::optional<X> lo, hi;  // none: not known
  };
  void define(Sym name, Limits l = {});
  void range(Sym name, const Expr *extent);  // for name in extent
  void assume(const Expr *cond);
  bool knows(Sym name) const { return limits_.count(name); }

  Limits limits(const Expr *e) const;
  // The largest value in names that the caller of the graph knows; none: `open`, if given, is the name to blame.
  std::optional<X> of(const Expr *e, Sym *open = nullptr) const;
  // Of the bytes of a dense tensor.
  std::optional<X> bytes(const Type *t, Sym *open = nullptr) const;

 private:
  bool fixed(const Expr *e) const;         // made of what the caller knows
  bool not_negative(X x) const;
  void at_most(const Expr *name, const Expr *e, int64_t plus);
  void at_least(const Expr *name, const Expr *e, int64_t plus);
  struct Saved {
    Sym name;
    std::optional<Limits> before;
  };
  Build &b_;
  std::unordered_map<Sym, Limits> limits_;
  std::unordered_set<Sym> fixed_;
  std::vector<Saved> log_;
};

}  // namespace mlc
