// What a buffer shrinks to.
#pragma once
#include "compact/trace.h"

namespace mlc {

//   t[i0 * 4 + i, j] with i in 6, j in 64;  t: f32[66, 64]     ->     t[i, j];  t: f32[6, 64]
struct Shape {
  const Type *type;               // null: it does not shrink
  std::vector<const Expr *> lo;   // what is taken off a subscript; null: nothing
  std::vector<bool> gone;         // dimensions that are no more
  std::vector<int64_t> rings;     // subscripts are taken modulo this; 0: they are not
};

// Of each dimension, how many elements a serial loop at the end of the piece keeps alive, 0 if that is not known:
//
//   t[0] = ..                                        t[0] = ..
//   for k in 64 { t[k + 1] = .. t[k] .. }     ->     for k in 64 { t[(k + 1) % 2] = .. t[k % 2] .. }
//
// All that a turn touches, and all that is touched in front of the first one, lies in a window that never goes back; so
// no element is overwritten that is asked for later. `at_once`: loops around the piece that count as some inside.
std::vector<int64_t> rings(Build &b, const Module &m, Sym buffer, const Type *type, Stmts piece,
                           const std::vector<const For *> &at_once, Bounds &known);

// `uses`: all accesses, seen from a place where `known` holds. `below`: loops between the line of the buffer and that
// place, which its dimensions cannot mention.
Shape shrunk(Build &b, const Type *type, const Trace &uses, Iters below, const std::vector<int64_t> &rings,
             Bounds &known);

// The statements with the accesses of the buffer as `shape` has them. Where `known` holds.
Stmts relative(Build &b, Stmts body, Sym buffer, const Shape &shape, Bounds &known);

}  // namespace mlc
