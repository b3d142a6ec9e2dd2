// Scalar functions with fused multiply-adds: what the licence `fma` of a kernel (man/mlc-numerics.7) lets them be.
//   p: f32 = (0.5 * r + 0.25) * r + 1.0     ->     p: f32 = fma(fma(0.5, r, 0.25), r, 1.0)
#pragma once
#include "ir/build.h"
#include "ir/module.h"

namespace mlc {

// @exp.f32 -> @exp.fma.f32: a sum or difference of f32 with a product, the second one if both terms are such, is rounded
// once; what it calls is of that kind where `math` has it already. Null: there is nothing to contract.
const Func *contracted(Build &b, const Module &math, const Func &f);
// They say `licence = [.. "fma" ..]`.
bool has_fma_licence(const Build &b, Attrs attrs);

}  // namespace mlc
