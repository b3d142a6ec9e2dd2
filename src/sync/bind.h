// The loops of a launch that no schedule bound, bound by a rule that is right for every kernel.
//
//   for i in n {                            for bx in (n * 10 + 255) // 256 bind blockIdx.x
//     for j in 10 { y[i, j] = .. }          for tx in 256 bind threadIdx.x {
//   }                                  ->     if bx * 256 + tx < n * 10 {
//                                               i: index = (bx * 256 + tx) // 10
//                                               j: index = (bx * 256 + tx) % 10
//                                               y[i, j] = ..
//
// The outermost loops whose turns are proved apart (check/race.h) are fused; what is inside is done by one thread, in
// order. Where no loop can be taken so (a scan, a while, stores at places that are data), one thread does all.
#pragma once
#include "ir/module.h"
#include "sync/cut.h"

namespace mlc {

inline constexpr int64_t kThreads = 256;    // of a block
inline constexpr int64_t kOwnBytes = 4096;  // what a buffer of one thread's may have; larger ones are in global memory

// f: loops alone, none bound. `own`: gets buffers that no thread can hold.
const Func *bound(Build &b, const Module &m, const Func *f, Workspace &own);

}  // namespace mlc
