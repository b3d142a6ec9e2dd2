// What a reduction block does: a buffer combined with a term, as sum prod max min all any do, or several by a reducer.
//   y[i] = y[i] + e                               m1: f32, s1: f32 = @r(m[i], s[i], e, 1.0); m[i] = m1; s[i] = s1
#pragma once
#include "sched/state.h"

namespace mlc {

struct Combine {
  std::vector<const Load *> targets;
  std::vector<const Expr *> terms;
  std::string_view fold;                 // empty: a reducer
  bool contracted = false;               // y = fma(a, b, y): a sum whose term is a product
  std::vector<const Expr *> identities;  // what changes nothing: partial results start from it
};
// The product that a term of a sum is, a * b or where(cond, a * b, 0.0); null: it is none. cond: null where there is none.
const Binary *product_of(State &s, const Expr *term, const Expr **cond);
// Refuses a block that is not of this form.
Combine combine_of(State &s, Place *block);
// The body of a block that is combined so, with other targets and terms.
Stmts with_combine(State &s, Stmts body, const Combine &now);
// The value that the block's initialiser gives a target; refuses where there is none.
const Expr *initial(State &s, Place *block, const Load *target);
// The block that is the initialiser of a reduction that has none inside, as decompose_reduction leaves it and as an
// expression becomes where the domain may be empty; null: there is none. It alone writes the targets too, and nobody
// reads them in between.
//   block y.init { y[i] = 0.0 }, block y { y[i] = y[i] + x[i, k] }
Place *start_of(State &s, Place *block);
// What that one gives a target, where it is the same for all elements; refuses where it is not.
const Expr *start_value(State &s, Place *start, const Load *target);
// Each target starts from the identity, so that it may start several times.
bool starts_at_identity(State &s, Place *block, const Combine &c);

}  // namespace mlc
