// The rules: each looks at a block and, if it is of its kind, takes the steps that suit the target.
#pragma once
#include "target/target.h"
#include "tile/facts.h"

namespace mlc {

struct Machine {             // what the rules for processors read of a target
  int64_t vector_bytes = 0;  // of a register; 0: no vectors
  int64_t registers = 16;    // vector registers (scalar ones where there are no vectors)
  int64_t l1 = 32768, l2 = 262144;
  bool masks = false, fma = false;
  bool strict = false;       // sums keep their order, nothing is contracted
  int64_t lanes(DType t) const { return std::max<int64_t>(1, vector_bytes / std::max<int64_t>(1, storage_bytes(t, 1))); }
};

struct Kernel {  // what is being scheduled
  Script &s;
  const Machine &machine;
  // Parameters that every caller gives a constant: their layout may change, and costs nothing at run time.
  std::unordered_set<Sym> constants;
  std::unordered_set<Sym> done;        // blocks that have their loops
  std::unordered_set<Sym> left;        // blocks that mlc-tensorize made calls of, or will
  bool rows = false;                   // tile_rows put them together
  std::vector<std::string> remarks;    // what was left as it is, and why
};

// sum(x[i, k] * w[k, j] for k), with what comes behind it: a tile of accumulators in registers.
bool tile_product(Kernel &k, Sym block);
// Reductions over the axis that lies together in memory: rows one by one, sums in lanes.
bool tile_rows(Kernel &k);
// Everything else: the axis that the result lies along goes into lanes.
bool tile_lanes(Kernel &k, Sym block);

}  // namespace mlc
