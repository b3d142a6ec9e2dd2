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
  // Of Guard, and Bound of a loop: the one of the two that does more, storing wrong values in what the other one leaves
  // out; null: it does more than store. If that is still the same, nobody sees what is stored there.
  const Func *wrong = nullptr;
};
std::vector<Mutant> mutants_of(Build &b, const Func &f);

// Does each element have one value, whenever it is stored? It is said by its subscripts, parameters and other such
// buffers, at one place.    t[k] = x[k] * 2.0;  z[k] = t[k] + 1.0
// Then turns more or less only change which elements are written, which running sees.
bool one_value_each(const Func &f);

}  // namespace mlc
