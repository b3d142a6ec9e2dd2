// What blocks read and write: the ground that all legality checks stand on.
#pragma once
#include "arith/affine.h"
#include "sched/state.h"

namespace mlc {

// One access of a block, its subscripts in terms of the block's axes and of dimensions: index expressions, `lo +: n`,
// or `:` where they are data or cannot be said. A whole buffer has `:` everywhere.
//   sum(x[i + r, k] for r in 3)   ->   x[i +: 3, k]
struct Access {
  Sym buffer;
  Exprs index;
  uint32_t at;
  bool write;
};
// Of a block that holds no blocks: derived from its body and initialisers, or what it declares.
std::vector<Access> accesses(State &s, Place *block);
// Of any statement: a compute's, a call's and a store's buffers are accessed as a whole where they are not blocks.
std::vector<Access> accesses_below(State &s, Place *n);  // as axes of their blocks say; use with buffers only
bool reads(State &s, Place *n, Sym buffer);
bool writes(State &s, Place *n, Sym buffer);
std::vector<Sym> buffers_read(State &s, Place *n);  // once each, in order
std::vector<Sym> buffers_written(State &s, Place *n);

// The part of a buffer that an access of `block` touches during one turn of everything outside `scope`'s body: loops
// between the two run over their ranges. In names of the loops around (scope's own included).
//   for k { for i1 in 4 { block: i = i0 * 4 + i1, x[i + 1] } }   in scope k   ->   i0 * 4 + 1 +: 4
struct Extent {
  const Expr *lo, *extent;
  bool exact, dense;  // both ends are reached; and all that lies between them is touched
};
using Region = std::vector<Extent>;
Region region(State &s, Place *block, const Access &a, Place *scope);
// The smallest box that holds both, by the rules of arith. It is dense only where they are the same.
Region hull(State &s, const Region &a, const Region &b, const Bounds &known);
bool within(State &s, const Region &inner, const Region &outer, const Bounds &known);  // the outer one is all touched

// Leaf blocks below n, in order; and the leaf statements that are none but access buffers.
std::vector<Place *> leaf_blocks(Place *n);
std::vector<Place *> leaves(Place *n);

// Blocks of the kernel that write what `block` reads before it, or read what it writes after it.
std::vector<Place *> producers(State &s, Place *block);
std::vector<Place *> consumers(State &s, Place *block);

// Why the turns of a loop cannot be taken in any order, in words; empty: they can. Each buffer that is written below
// is written and read by a turn in a slab of its own, or is private: allocated below.
// `bound`: to threads, which may share what is in `shared`: mlc-sync writes their barriers.
std::string dependence(State &s, Place *loop, bool bound = false);
// The buffers of `loop`'s turns that could be private, each turn having one of its own, move below it.
void make_private(State &s, Place *loop, bool bound = false);

bool has_reduce(const Block &k);
bool has_scan(const Block &k);
bool uses(const Axis &a, Sym loop);
Substitution bindings(const Block &k);  // axis -> what it is bound to

}  // namespace mlc
