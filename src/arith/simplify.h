// What a person would write for an index expression or a condition over indices.
//
//   (i0 * 32 + i1) // 16, i1 in 16          i0 * 2
//   (h + 2 - 3) // 2 + 1                    (h + 1) // 2
//   min(i * 16 + 16, n) - i * 16            min(n - i * 16, 16)
//   x - 4 * (x // 4)                        x % 4
//
// Terms stand in one order (degree, coefficient, definition of the variables, name; constants last), products of
// symbols are factored, so equal normal forms give equal texts, and simplify(simplify(e)) is simplify(e).
#pragma once
#include "arith/bounds.h"

namespace mlc {

// Of an index expression, or of a bool one, in which comparisons of what is surely an index are simplified.
const Expr *simplify(Build &b, const Expr *e, const Bounds &known);
const Expr *simplify(Build &b, const Expr *e);
// The same, but `e` itself unless the result is shorter: for text that somebody wrote.
const Expr *shorten(Build &b, const Expr *e, const Bounds &known);
// Of any scalar expression: shortens the index expressions and conditions inside (subscripts, comparisons, casts of
// indices), decides `where`s whose condition is known, and leaves everything else as it is.
const Expr *shorten_inside(Build &b, const Expr *e, const Bounds &known);
const Expr *simplify_inside(Build &b, const Expr *e, const Bounds &known);  // the same, for text that a pass made
// Operations of a machine that would evaluate it, divisions weighted; what `shorten` compares.
size_t cost(const Expr *e);

}  // namespace mlc
