// Subscripts that are checked when the program runs: mlc-codegen --checked.
//
//   y[i] = x[i + 1] * 2.0     ->   assume i + 1 < n          # @next: subscript i + 1 of x[i + 1] is outside
//                                  y[i] = x[i + 1] * 2.0
//   where(c, x[ids[i]], 0.0)  ->   if c { assume ids[i] >= 0 && ids[i] < n }, in front of its statement
//   for v in 16 vectorize     ->   for v in 16 { assume i * 16 + v < n }
//     { y[i * 16 + v] = .. }       for v in 16 vectorize { .. }
//
// What is proved inside is left as it is. A vectorized loop whose checks depend on what it writes itself has them
// inside, and is then no vector code.
#pragma once
#include "base/diag.h"
#include "ir/module.h"

namespace mlc {

// f is expanded. The same function if there is nothing to check; a remark for each subscript that is.
const Func *with_checks(Build &b, const Module &m, const Func *f, Diag &diag);

}  // namespace mlc
