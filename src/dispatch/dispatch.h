// Operators and kernels of a module, replaced by calls of library functions whose description they are.
#pragma once
#include <functional>
#include <vector>

#include "base/diag.h"
#include "ir/build.h"
#include "ir/module.h"

namespace mlc {

// `libraries`: modules with externs; those that are called are added to m, whose own externs are looked for too. Of
// several that fit, in this order: the higher `attr priority`, the one that covers more operators, the lower
// `attr cost`, the first. usable(f): its target is the one that is compiled for. Remarks say what was replaced, and of
// each place where a description begins, why it goes no further.
void dispatch(Build &b, Module &m, const std::vector<Module> &libraries,
              const std::function<bool(const Func &)> &usable, Diag &diag);

}  // namespace mlc
