// Effects of a planned graph that a device needs a kernel for.
#pragma once
#include "ir/module.h"
#include "ir/walk.h"

namespace mlc {

//   call fill(0.0) -> y              call @fill(y)
//   call Copy(x[:, i]) -> y    ->    call @copy(i, x, y)
//
// Copies of what lies in one piece stay: they are transfers. New kernels, with loops that are not bound, go to `out`.
const Func *with_copy_kernels(Build &b, const Module &m, const Func *graph, Fresh &globals,
                              std::vector<const Func *> &out);

}  // namespace mlc
