// What rules ask of a block: its axes, what it reads and writes along them.
#pragma once
#include "sched/script.h"

namespace mlc {

struct AxisFact {
  Sym name;
  bool reduce;
  int64_t extent;  // -1: no constant
};

// How a subscripted element moves with an axis.
enum class Along : uint8_t {
  Still,    // not at all
  Unit,     // by one element in memory
  Strided,  // by more, or in a way that is not known
};

struct BlockFacts {
  Sym name;
  std::vector<AxisFact> axes;
  const Load *target = nullptr;  // of its single store; null: it has another form
  const Expr *value = nullptr;
  std::vector<const Load *> loads;  // of all, but the target's own; each once
  bool reduces = false, has_init = false, guarded = false;

  const AxisFact *axis(Sym name) const;
  double turns() const;  // symbols count as kUnknownExtent
};
inline constexpr int64_t kUnknownExtent = 64;  // what a rule takes for a size that it does not know

// Blocks that are the initialisers of others (sched/combine.h).
std::unordered_set<Sym> initialisers(Script &s);
// Null name: there is no such block.
BlockFacts facts_of(Script &s, Sym block);
Along along(Script &s, const BlockFacts &f, const Load *l, Sym axis);
bool mentions(const Load *l, Sym axis);
// Axes from `first` on are its last subscripts in their order and of their whole extents, or none of them is there: one
// loop over them all passes its elements in one go.
bool passes(Script &s, const BlockFacts &f, const Load *l, size_t first);
// The loop of the script that an axis of a block is, among loops that get_loops gave; Sym{}: it is none alone.
Sym loop_of_axis(Script &s, Sym block, Sym axis, const std::vector<Sym> &loops);

// What a reduction's sums go to becomes local: returns the block that takes them from there, the one consumer if it reads
// them point by point, else a copy that is made.
Sym epilogue_of(Script &s, const BlockFacts &reduction);

}  // namespace mlc
