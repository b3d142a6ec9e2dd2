// Schedules by rule: every kernel of a module for a target, by its text and a count of cycles, without a search.
#pragma once
#include "base/diag.h"
#include "ir/build.h"
#include "ir/module.h"
#include "sched/layout.h"
#include "target/target.h"

namespace mlc {

struct TileOptions {
  bool strict = false;  // sums keep their order, nothing is contracted
};

struct Tiled {
  const Schedule *script;
  const Func *kernel;                 // what the script makes of it
  std::vector<LayoutChange> layouts;  // that its callers have to follow
};

// Each kernel that the rules can improve, in the order of the module; remarks say what stays as it is.
std::vector<Tiled> tile_kernels(Build &b, const Module &m, const TargetInfo &target, const TileOptions &options,
                                Diag &diag);

}  // namespace mlc
