// What a buffer shrinks to.
#pragma once
#include "compact/trace.h"

namespace mlc {

//   t[i0 * 4 + i, j] with i in 6, j in 64;  t: f32[66, 64]     ->     t[i, j];  t: f32[6, 64]
struct Shape {
  const Type *type;               // null: it does not shrink
  std::vector<const Expr *> lo;   // what is taken off a subscript; null: nothing
  std::vector<bool> gone;         // dimensions that are no more
};

// `uses`: all accesses, seen from a place where `known` holds. `below`: loops between the line of the buffer and that
// place, which its dimensions cannot mention.
Shape shrunk(Build &b, const Type *type, const Trace &uses, Iters below, Bounds &known);

// The statements with the accesses of the buffer as `shape` has them. Where `known` holds.
Stmts relative(Build &b, Stmts body, Sym buffer, const Shape &shape, Bounds &known);

}  // namespace mlc
