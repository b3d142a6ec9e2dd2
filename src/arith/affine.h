// Affine forms and maps of indices: what loop transformations rest on.
#pragma once
#include <optional>

#include "arith/bounds.h"

namespace mlc {

// e = coefs[0] * vars[0] + .. + rest; coefficients and rest mention none of the variables. nullopt: not of this form.
//   (i * 4 + j) * n + 3 in i, j   ->   [n * 4, n], 3
struct Affine {
  std::vector<const Expr *> coefs;
  const Expr *rest;
};
std::optional<Affine> affine(Build &b, const Expr *e, Syms vars, const Bounds &known);

// [i, j] -> [i // 16, j]  at  [x + 1, y]  ->  [(x + 1) // 16, y]
Exprs apply(Build &b, const Map &m, Exprs at, const Bounds &known);
// outer after inner: [i] -> [i // 4, i % 4], then [a, b] -> [b, a]  ->  [i] -> [i % 4, i // 4]
const Map *compose(Build &b, const Map &outer, const Map &inner, const Bounds &known);

// The inverse of a map that takes digits of its variables (or of mixed-radix sums of them) apart and puts them
// together, with i in n, j in m:
//   [i, j] -> [i // 16, j, i % 16]   ->   [y0, y1, y2] -> [y0 * 16 + y2, y1], image [(n + 15) // 16, m, 16]
// `onto`: the map reaches every point of the image (above: if n is proved a multiple of 16). Every variable must be
// found again from the results, so the map is one to one. nullopt: not of this form, not one to one, or not proved so.
struct Inverse {
  const Map *map;
  std::vector<const Expr *> image;  // extents of the results
  bool onto;
};
std::optional<Inverse> inverse(Build &b, const Map &m, Exprs extents, Syms names, const Bounds &known);

// The values of e while each variable of `iters` runs over its range and all else stands still: lo .. lo + extent - 1.
//   i0 * 16 + i1 + 2 with i1 in 16   ->   i0 * 16 + 2, 16
// exact: both ends are reached (ranges are not empty). nullopt: no bound is known.
struct Span {
  const Expr *lo, *extent;
  bool exact;
};
std::optional<Span> span_of(Build &b, const Expr *e, Iters iters, const Bounds &known);

}  // namespace mlc
