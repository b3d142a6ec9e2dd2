// Merging the computes of a kernel: what one line writes and the next one reads moves into the reader.
#pragma once
#include "ir/walk.h"

namespace mlc {

//   compute t[i in n] = sum(x[i, k] for k in d)        ->   compute y[i in n] = max(sum(x[i, k] for k in d), 0.0)
//   compute y[i in n] = max(t[i], 0.0)
// A compute into a private buffer moves into its only reader if no element is then computed more often than before, or
// if it only moves data (loads, where, casts). Results keep their bits: nothing is reordered.
Stmts inline_computes(Build &b, Stmts body);

}  // namespace mlc
