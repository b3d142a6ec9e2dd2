// The rules for CUDA devices. What they leave, mlc-sync binds by a rule that is right for every kernel.
#pragma once
#include "target/target.h"
#include "tile/rules.h"

namespace mlc {

// sum(x[i, k] * w[k, j] for k): tiles of 64 x 64 for 16 x 16 threads, operands fetched together into shared memory.
bool cuda_product(Kernel &k, Sym block);
// Reductions over what lies together in memory, softmax and norms: a row is a block of threads.
bool cuda_rows(Kernel &k, const std::vector<Sym> &blocks);
// Reductions over what does not: 32 columns to a block, 8 threads for each.
bool cuda_columns(Kernel &k, Sym block);
// y[j, i] = x[i, j]: tiles of 32 x 32 through shared memory whose rows are padded.
bool cuda_transpose(Kernel &k, Sym block);

void tile_cuda(Kernel &k, const std::vector<Sym> &blocks);

}  // namespace mlc
