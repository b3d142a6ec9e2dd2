// A scheduled kernel as what runs.
//
//   alloc t: f32[64, 64]                             for i in 64 {
//   for i in 64 {                                      alloc t: f32[64]
//     for j in 64 {                                    # block t
//       block t {                                      for j in 64 {
//         spatial vi in 64 = i                 ->        t[j] = x[i, j] * 2.0
//         spatial vj in 64 = j                         }
//         t[vi, vj] = x[vi, vj] * 2.0                  # block y
//       }                                              for j in 64 {
//     }                                                  y[i, j] = t[j] + 1.0
//     ..                                               }
//
// Everything is by proof: what is not proved stays as it was. Kernels keep their results, bit for bit.
#pragma once
#include "base/diag.h"
#include "ir/module.h"

namespace mlc {

class Build;

// What an allocation may have where no planner sees it, in bytes: inside loops; in scope `local`.
inline constexpr int64_t kSmallBuffer = 4096, kLocalBuffer = 256 << 10;

// Blocks become plain statements, their guards conditions as far outside as they go, or bounds of loops; f itself if
// it has no block.
const Func *dissolved(Build &b, const Func *f);

// Buffers shrink to what is alive at once and move to where they are used. `diag` gets remarks: what moved, what
// stayed and why.
const Func *with_small_buffers(Build &b, const Module &m, const Func *f, Diag &diag);

// Both, of a kernel at the stage blocks; any other one is f itself.
const Func *compacted(Build &b, const Module &m, const Func *f, Diag &diag);

}  // namespace mlc
