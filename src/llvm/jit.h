// Kernels compiled by LLVM while the interpreter runs a program.
#pragma once
#include <cstdio>
#include <memory>

#include "interp/runner.h"

namespace mlc {

// remarks: told which kernels are interpreted after all, and why; null: nobody. native: with all that this machine has,
// not only what each of its kind has. Null if LLVM does not know it.
std::unique_ptr<interp::KernelRunner> make_jit(FILE *remarks, bool native = true);

}  // namespace mlc
