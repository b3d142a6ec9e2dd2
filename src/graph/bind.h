// Sizes that become numbers.
//
//   graph @main[n](x: f32[n, 4]) ..  call @k(x) -> y       n = 8        graph @main(x: f32[8, 4]) ..  call @k(x) -> y
//   kernel @k[m](a: f32[m, 4]) ..  for i in 4 * m           ->          kernel @k(a: f32[8, 4]) ..  for i in 32
#pragma once
#include <map>
#include <string>

#include "base/diag.h"
#include "ir/module.h"
#include "ir/walk.h"

namespace mlc {

// Fixes dimensions and index parameters, by name, of the functions that no other function calls (of `only` alone, if it
// is not null), and then those of the functions they call wherever all calls agree on a number. What follows is folded:
// sizes, offsets, comparisons of sizes and what hangs on them. An index parameter stays and is assumed to be the number.
// Reports assumptions that a number breaks.
void bind_sizes(Build &b, Module &m, const std::map<std::string, int64_t> &sizes, const Func *only, Diag &diag);

// The names that a user may bind: dimensions and index parameters of the same functions.
std::vector<std::string> open_sizes(const Build &b, const Module &m, const Func *only);

}  // namespace mlc
