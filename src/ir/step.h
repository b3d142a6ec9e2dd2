// Steps of reductions as plain stores: what a block with a reduce axis is once it has dissolved. Threads that take the
// turns of such a step combine what they have; no other order is theirs.
//
//   y[i] = y[i] + e;  y[i] = max(y[i], e);  y[i] = fma(a, b, y[i])
//   v1: f32, k1: i64 = @best(v[i], k[i], x[j], j)
//   v[i] = v1
//   k[i] = k1
#pragma once
#include <functional>

#include "ir/ir.h"

namespace mlc {

// How many statements from l[at] on are one step, of a number or of a tuple; 0: none begins there.
size_t step_length(Stmts l, size_t at, const std::function<const Func *(Sym)> &function);

}  // namespace mlc
