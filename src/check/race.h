// Proofs that the turns of a loop do not touch the same element.
#pragma once
#include <functional>

#include "arith/bounds.h"
#include "ir/module.h"

namespace mlc {

// What a proof needs to know of the buffers that are defined outside the loop.
struct RaceScope {
  std::function<const Type *(Sym)> type;  // null: no buffer
  std::function<Sym(Sym)> root;           // the buffer whose memory it is in: of a view or place, or of `inplace`
  std::function<bool(Sym)> shared;        // seen by the threads of a block, which wait for each other
  std::function<const Func *(Sym)> function;
  bool threads = false;                   // the loop is bound to threads below a block
};

// "" if no element that one turn of the loop writes is read or written by another; else the accesses that it does not
// know to be apart. Sound: subscripts inside their buffers, axes inside their domains and assumptions are believed, as
// running checks them. Atomic stores do not meet each other, and reductions across threads combine.
std::string race_of(Build &b, Bounds &known, const For &loop, const RaceScope &scope);

}  // namespace mlc
