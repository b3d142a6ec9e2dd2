// Proofs over index expressions: true means so at every point where the facts hold; false means not known.
#pragma once
#include "arith/bounds.h"

namespace mlc {

bool prove(Build &b, const Expr *cond, const Bounds &known);
bool provably_equal(Build &b, const Expr *x, const Expr *y, const Bounds &known);
bool provably_less(Build &b, const Expr *x, const Expr *y, const Bounds &known);        // x < y
bool provably_less_equal(Build &b, const Expr *x, const Expr *y, const Bounds &known);  // x <= y
bool provably_inside(Build &b, const Expr *x, const Expr *extent, const Bounds &known);  // 0 <= x < extent
// At no point are x and y the same, item by item. So what a loop writes at x in one turn and at y in another is apart.
bool provably_different(Build &b, Exprs x, Exprs y, const Bounds &known);
// With no facts: equal as polynomials.
bool provably_equal(Build &b, const Expr *x, const Expr *y);
bool provably_equal(Build &b, Exprs x, Exprs y, const Bounds &known);  // as long and equal one by one

}  // namespace mlc
