// Loops around a block, made from its axes.
#pragma once
#include "ops/expr.h"
#include "sched/state.h"

namespace mlc {

// An axis with the part of its domain that is to be run.
struct Share {
  const Axis *axis;
  const Expr *lo, *extent;  // null: all of it
};

// Loops over the parts around the block, its axes bound to them, guarded where a part may leave the domain; in place
// of nothing yet. `loop`: what it will stand in. `units`: with loops of one turn.
Place *nest_over(State &s, const Block &k, std::vector<Share> parts, Place *loop, Place **inner, bool units = false);

// A block's turns along an axis from `from` on, `domain` of them, counted from 0; what it is bound to is left.
//   spatial i in 10, z[i] = x[i]   ->   spatial i in 8, z[i + 2] = x[i + 2]
void shift(State &s, Block &k, Sym axis, const Expr *from, const Expr *domain, Bounds &known);

// The loop that an axis of block n is, alone and whole, at or below `outer` (null: anywhere); refuses where there is none.
Place *loop_of(State &s, Place *n, const Axis &x, Place *outer);

// The child of `up` that n is or stands below; null: none.
Place *child_with(Place *up, Place *n);

// The axes of blocks that use a loop get the part of their domain that one part of the loop covers, from 0 on:
//   spatial i in 16 = b + 2, z[i] = x[i]   ->   spatial i in 11 = b, z[i + 2] = x[i + 2]
// `from`, `turns`: of the part; `last`: it ends where the loop does. Bindings still hold `from`.
void rebase(State &s, Place *part, X from, X turns, bool last);

}  // namespace mlc
