// The licence `wide` of man/mlc-numerics.7: what passes between the lines of a group is not rounded.
#pragma once
#include "ir/build.h"

namespace mlc {

// The group with f32 in place of t, which is f16 or bf16, between casts of what it is given and gives:
//                                                attr licence = ["wide"]
//   p: f16[n, s] = Softmax(x)                    x_1: f32[n, s] = Cast(x)
//   y: f16[n, d] = MatMul(p, v)           ->     v_1: f32[s, d] = Cast(v)
//                                                p: f32[n, s] = Softmax(x_1)
//                                                y_1: f32[n, d] = MatMul(p, v_1)
//                                                y: f16[n, d] = Cast(y_1)
// `fresh` knows the names of the group.
const Func *widened(Build &b, const Func &group, DType t, Fresh &fresh);

}  // namespace mlc
