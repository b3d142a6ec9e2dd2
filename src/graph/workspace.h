// The memory that a kernel needs beside its arguments: one scratch parameter instead of allocations of its own.
#pragma once
#include "ir/walk.h"
#include "ops/expr.h"

namespace mlc {

//   kernel @softmax(x: T) -> (y: T) {                kernel @softmax(x: T, scratch ws: u8[64 * n] {align = 64}) -> (y: T) {
//     alloc m: f32[n]                          ->      alloc m: f32[n] = ws at 0
// Buffers that are not alive together share memory. Allocations in a scope (`in local`) or inside loops stay. An extern
// with `attr workspace = BYTES` gets a parameter of that size, `workspace`.
// Null if the function needs none.
const Func *with_workspace(Build &b, const Func &f);

// May result 0 take the place of parameter `param` (both tensors of one size)? True if the kernel is one compute that reads
// that parameter at the point it writes and nowhere else.
bool can_be_in_place(const Func &kernel, size_t param);

// The kernel with `attr inplace = [["result", "param"]]`.
const Func *with_inplace(Build &b, const Func &kernel, size_t param);

}  // namespace mlc
