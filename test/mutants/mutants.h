// Mechanical mutants of a function: what is wrong by one step, of every kind, at every place.
#pragma once
#include <string>
#include <vector>

#include "ir/build.h"
#include "ir/module.h"

namespace mlc {

enum class MutantKind : uint8_t { Guard, Init, Index, Bound, Swap, Parallel };
constexpr const char *kMutantNames[] = {"guard dropped", "init dropped", "index by one", "bound by one", "loops swapped",
                                        "dependent loop parallel"};
struct Mutant {
  MutantKind kind;
  std::string what;         // "x[i + 1] in place of x[i]"
  const Func *func;
  const For *loop = nullptr;     // of Bound: the loop, as it was; of Swap the outer one
  const For *swapped = nullptr;  // of Swap: the loop that is outside now
};
std::vector<Mutant> mutants_of(Build &b, const Func &f);

}  // namespace mlc
