// Scalar mathematics: src/math/math.mlc, one text from which interpreter, folder and emitters all take exp, erf, pow ...,
// so that every route gives the same bits and none calls a library. Its items are `scalar @exp.f32(x: f32) -> (y: f32)`
// of lets alone; bounds of their errors are in man/mlc-numerics.7.
#pragma once
#include <string_view>

#include "ir/build.h"
#include "ir/module.h"

namespace mlc {

std::string_view math_text_view();

// The text as a module, nodes in b's arena, and behind it each function of f32 with fused multiply-adds (contract.h). Reads it
// each time (well under a millisecond): keep what it returns.
Module math_module(Build &b);

// What the builtin stands for in a place of type t: @exp.f32, @exp.f64; types below f32 are computed in f32 and rounded by
// the caller. `fused`: under the licence `fma`. Null if the text has none.
const Func *scalar_function(Build &b, const Module &math, std::string_view builtin, DType t, bool fused = false);

}  // namespace mlc
