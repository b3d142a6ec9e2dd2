// Shared memory: one arena a block, and what a target allows.
#pragma once
#include "base/diag.h"
#include "ir/module.h"
#include "sync/threads.h"
#include "target/target.h"

namespace mlc {

// The flat kernel of a nest; `alloc s: T in shared` gets a place in an arena. Null after an error: more threads, blocks
// or shared memory than the target has; what is needed and what is allowed.
const Func *placed(Build &b, const Func *f, const Nest &nest, const TargetInfo &target, Diag &diag);

}  // namespace mlc
