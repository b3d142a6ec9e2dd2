// What an intrinsic does, read from its description.
#pragma once
#include <optional>
#include <vector>

#include "ir/module.h"

namespace mlc {

class Build;

// One compute line:  compute c[i in 16, j in 16] = c[i, j] + sum(a[i, k] * b[j, k] for k in 16)
struct Description {
  const Func *f;
  std::vector<Iter> spatial, reduce;
  const Load *target;   // c[i, j]
  const Expr *value;    // the term, where it reduces
  Sym fold;             // sum, max ..; Sym{}: none
  bool starts = false;  // it does not add to what is there
  const Type *type_of(Sym operand) const;  // of a parameter or result; null: neither
};
// Nothing: the description is another one.
std::optional<Description> description_of(Build &b, const Func &f);

}  // namespace mlc
