// A kernel cut into what is launched, one launch after the other.
//
//   kernel @k[n](x: f32[n]) -> (y: f32[n]) {           graph @k[n](x: f32[n]) -> (y: f32[n]) {
//     alloc t: f32[n]                                    alloc t: f32[n]
//     for i in n { t[i] = .. x[i] .. }            ->     call @k_1(x) -> t
//     for i in n { y[i] = .. t[n - 1 - i] .. }           call @k_2(t) -> y
//   }                                                  }
//                                                      kernel @k_1[n](x: f32[n]) -> (t: f32[n]) ..
//
// Outermost statements that share scalars or local memory stay together.
#pragma once
#include "base/diag.h"
#include "ir/module.h"
#include "ir/walk.h"

namespace mlc {

// Buffers in front of the calls, that launches ask for.
struct Workspace {
  Fresh &names;  // of the kernel's buffers
  std::vector<const Alloc *> buffers = {};
};

struct Cut {
  const Func *host = nullptr;           // the graph of the kernel's name; null: the kernel is one launch
  std::vector<const Func *> launches;   // kernels, in the order in which they are called
};

// f has loops alone (emit/expand.h). `launch` makes of a kernel that is one launch what a device runs, or null after an
// error; the workspaces that it asks for become parameters of the kernel.
using Launch = std::function<const Func *(const Func *f, Workspace &own)>;
Cut cut(Build &b, const Module &m, const Func *f, Fresh &globals, const Launch &launch);

}  // namespace mlc
