// A kernel as loops and stores alone: computes are written out, blocks dissolve, calls of reducers are put in place.
//
//   compute y[i in n] = max(sum(x[i, k] for k in 8), 0.0)   ->   for i in n {
//                                                                  alloc sum: f32[] in local
//                                                                  sum[] = 0.0
//                                                                  for k in 8 { sum[] = sum[] + x[i, k] }
//                                                                  y[i] = max(sum[], 0.0)
//                                                                }
//
// A reduction inside an expression folds from its identity, in the order of its iterators; under a `where` it stands
// in an `if`, so that nothing more is loaded than the program would. Blocks dissolve as compact/compact.h has it. What is
// left: For If While Let Store Alloc View CallStmt Assume, and expressions without reductions. The first statement made
// of a compute carries its text as a comment.
#pragma once
#include "base/diag.h"
#include "ir/module.h"

namespace mlc {

// A kernel, scalar function or planned graph; the function itself if there is nothing to do. Null after an error.
// `rows`: reductions may be turned inside out, so that inner loops run along memory.
const Func *expand(Build &b, const Module &m, const Func *f, Diag &diag, bool rows = true);

}  // namespace mlc
