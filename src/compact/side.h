// Sides of regions: where an access may be along one dimension while loops run.
#pragma once
#include "compact/trace.h"
#include "ir/solve.h"

namespace mlc {

inline const Expr *sum(Build &b, const Expr *x, const Expr *y) { return fold(b, Op::Add, x, y); }
inline const Expr *minus(Build &b, const Expr *x, const Expr *y) { return fold(b, Op::Sub, x, y); }
bool mentions_any(const Expr *e, Iters iters);
// e = still + moving, where only `moving` mentions the loops. Both begin as 0.
void split(Build &b, const Expr *e, bool negative, Iters iters, const Expr *&still, const Expr *&moving);

// A condition that says how large `value` is, at least or at most: j * 5 + k < 12 of j * 5 + k. {null, end}: value < end;
// {lo, null}: value >= lo.
Side limits(Build &b, const Expr *value, const Expr *cond, const Bounds &known);
// The part of a side that a limit leaves.
Side within(Build &b, Side s, Side limit, const Bounds &known);
// All that a side takes in while the loops run; {null, null}: not known.
Side swept(Build &b, const Side &s, Iters iters, const Bounds &known);
// The same of all sides of an access and its loops from `depth` on, as far as its conditions let it go.
Region hull(Build &b, const Access &a, size_t depth, const Bounds &known);

// Of a condition v + r < n: n - r, where the values of v that it lets through end. Null: it has another form.
const Expr *end_of(Build &b, Sym v, const Expr *cond, const Bounds &known);

}  // namespace mlc
