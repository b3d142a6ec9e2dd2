// Index expressions as numbers, and the dimensions of a call as numbers.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>

#include "ir/build.h"

namespace mlc::interp {

using IndexValues = std::unordered_map<Sym, int64_t>;

// + - * // % min max of names and literals; nothing if a name is not known or the expression is of another kind.
std::optional<int64_t> index_value(const Build &b, const Expr *e, const IndexValues &names);

// Equations `wanted = found`: one affine in a single unknown name gives it, in any order; each other one that cannot be
// told from `names` is left alone. Of a name's own it takes only those in `unknown`. Returns the place of the first
// equation that does not hold (a fraction, a negative number or a contradiction), or equations.size().
struct DimEquation {
  const Expr *wanted;
  int64_t found;
};
size_t solve(const Build &b, std::span<const DimEquation> equations, const std::function<bool(Sym)> &unknown,
             IndexValues &names);

}  // namespace mlc::interp
