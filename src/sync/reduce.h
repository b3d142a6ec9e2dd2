// Rule R2 of man/mlc-sync.1, its last part: what the threads of a block have, combined.
#pragma once
#include <string>
#include <vector>

#include "ir/walk.h"
#include "sync/threads.h"

namespace mlc {

struct Across {
  Build &b;
  Fresh &names;
  const std::vector<Thread> &threads;  // of the block: z, y, x
  std::vector<Sym> tags;               // those that differ between what is combined
  std::string_view op;                 // sum prod max min all any
  DType type;
  std::string base;                    // for names
};

// mine[], a local scalar, of the threads that differ in `tags` alone: each of them has the result, with the same bits.
// By shuffles where they are lanes of warps, across warps and elsewhere by shared memory, in the order of the threads.
void combine_across(const Across &a, const Load *mine, std::vector<const Stmt *> &out);

}  // namespace mlc
