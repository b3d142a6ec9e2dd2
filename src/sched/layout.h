// Changes of layout that reach beyond the kernel: its callers pass a parameter, or take a result, in another one.
#pragma once
#include "base/diag.h"
#include "sched/state.h"

namespace mlc {

struct Relaid {
  const Func *old;  // the kernel before the changes
  std::vector<LayoutChange> changes;
};

// @k(x)  ->  x.k: T' = LayoutTransform(x) {map = ..}, @k(x.k), a constant by a constant that is computed from it; and
// y: T = @k(..)  ->  y.k: T' = @k(..), y: T = LayoutTransform(y.k) {map = back}. All kernels at once, each of them one
// time; `items` has them as they are now. False: there is a caller that cannot follow.
bool callers_follow(Build &b, std::vector<const Item *> &items, const std::vector<Relaid> &kernels, Diag &diag);

// For each kernel that a graph calls, which parameters get a constant from every call: their layout may change at no cost.
// None where buffers are placed already.
using ConstantParams = std::unordered_map<Sym, std::vector<bool>>;
ConstantParams constant_params(const Module &m);

}  // namespace mlc
