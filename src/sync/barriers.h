// Rule R7 of man/mlc-sync.1: a barrier stands between two accesses of one buffer, one of them a write, that two threads
// of a block may make to the same element; once for each run of them, where all threads come by.
#pragma once
#include "base/diag.h"
#include "ir/module.h"
#include "sync/threads.h"

namespace mlc {

// The threads' body with `call barrier("block")`. Null after an error.
bool with_barriers(Build &b, const Module &m, const Func *f, Nest &nest, Diag &diag);

}  // namespace mlc
