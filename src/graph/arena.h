// Placing buffers with lifetimes in one arena.
#pragma once
#include <string>
#include <vector>

#include "ops/expr.h"

namespace mlc {

// A buffer that is needed in the steps first..last (inclusive). Its size in bytes is an index expression of dimensions.
struct Life {
  X bytes;
  size_t first, last;
};
struct Placement {
  std::vector<X> offsets;   // of each buffer, multiples of kArenaAlign
  X total;                  // bytes of the arena
  X lower_bound;            // the largest sum of sizes that are alive in one step (where that can be compared)
};
inline constexpr int64_t kArenaAlign = 64;

// Sizes are sorted into classes c * m with a constant c and the same symbolic part m (1 if the size is static): buffers of a
// class share memory by best fit, largest first, at offsets c * m; classes stand one behind the other. Deterministic.
Placement place(Build &b, const std::vector<Life> &lives);

// The bytes of a tensor, dense or of the strides that its type gives, as an index expression; sub-byte types are packed.
X bytes_of(Build &b, const Type *t);

}  // namespace mlc
