// Copies of buffers: where they stand, and what blocks then use.
#pragma once
#include "sched/args.h"
#include "sched/regions.h"

namespace mlc {

Sym scope_argument(State &s, Args &a, size_t i);  // Sym{}: global
std::string scope_text(State &s, Sym scope);

// The type of a buffer without its storage, in a scope.
const Type *type_in(State &s, const Type *t, Sym scope);
// A new buffer, allocated beside `of`, or where the kernel's buffers are.
Sym alloc_beside(State &s, Sym of, std::string_view name, const Type *type);

// Blocks that read (write) a buffer, computes among them expanded first; statements that are none are left out.
std::vector<Place *> readers(State &s, Sym buffer);
std::vector<Place *> writers(State &s, Sym buffer);

// The accesses of one kind that a block makes to a buffer, each once.
std::vector<Access> accesses_to(State &s, Place *block, Sym buffer, bool write);

// Refuses to move the block, or a part of it that uses these buffers, into the body of `up` where it would not see them.
void expect_buffers(State &s, Place *block, Place *up);
void expect_buffers(State &s, Place *block, Place *up, const std::vector<Sym> &used);
// Refuses a block that stores to the buffer under a condition: not all that it may write has been written.
void expect_stores(State &s, Place *block, Sym buffer);
// Every turn of the block writes what it writes of the buffer: no store stands under a condition of its own.
bool writes_always(Place *block, Sym buffer);

// Where a copy stands: in the body of `scope`, at a place among its kids.
struct Spot {
  Place *scope;
  size_t at;
};
// In front of the first of `users`, as far out as what writes the buffer allows; nobody writes between there and the
// last of them.
Spot spot_before(State &s, const std::vector<Place *> &users, Sym buffer);
// Behind `block`, as far out as others that use the buffer allow; `group` may use it.
Spot spot_behind(State &s, Place *block, const std::vector<Place *> &group, Sym buffer);
// Refuses where a loop between the spot and `block`, the first that writes the buffer, may have no turn and says nothing
// of where it writes: then there would be nothing to copy.
void expect_turns(State &s, const Spot &spot, Place *block, Sym buffer);

// A name for an axis beside others; it may be that of a loop.
Sym axis_name(State &s, std::string_view want, const std::vector<Axis> &beside);
// The axes of a block as spatial ones, those that `index` mentions.
std::vector<Axis> axes_of(const Block &k, Exprs index);
// A block of these axes, each with the part of its domain that the turn of `of` below the spot covers where it is an
// axis of that block (refuses if that is no range), whole otherwise. Returns the block.
Place *place_block(State &s, const Spot &spot, Sym name, const std::vector<Axis> &axes, Stmts body, Place *of);

// dest[..] = src[..]
const Stmt *copy_store(State &s, Sym dest, Exprs at, Sym src, Exprs from);

}  // namespace mlc
