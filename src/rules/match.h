// Matching of patterns. What the variables of a rule stand for, and what its guard asks.
#pragma once
#include <utility>

#include "num/scalar.h"
#include "rules/rule.h"

namespace mlc {

class Binding {
 public:
  // False if it stands for something else already. `_` takes anything.
  bool bind(const Build &b, Sym name, const Expr *e);
  const Expr *find(Sym name) const;  // null: not bound
  void clear() { vars_.clear(); }

 private:
  std::vector<std::pair<Sym, const Expr *>> vars_;
};

// The value of a literal in the type t; false if e is no literal, or none of that type.
bool literal_value(const Expr *e, DType t, Scalar *v);
const Expr *literal_of(Build &b, DType t, Scalar v);  // reads back to exactly v

// Does the literal `e` of a program, in a place of type t, have the value of a pattern's literal? Pattern literals are
// numbers (equal in value and sign of zero), true and false, inf and -inf, `lowest` and `highest` of the type.
bool same_literal(const Build &b, const Expr *pattern, const Expr *e, DType t);

// Matches a scalar expression of type t: the type of its operands (of the branches, for a where). Names c0, c1 .. match
// literals only.
bool match(const Build &b, const Expr *pattern, const Expr *e, DType t, Binding &vars);

// Guards: && || ! of int(x), float(x), unsigned(x), bool(x) (the type of x), reciprocal(c) (1 / c is exact),
// negative(c) (c < 0 < -c); of operators ascending, zero, exact.
using Predicate = std::function<bool(std::string_view name, const Expr *arg)>;
bool holds(const Build &b, const Expr *guard, const Predicate &p);
bool of_class(std::string_view name, DType t, bool *yes);  // int, float, unsigned, bool; false: another predicate

}  // namespace mlc
