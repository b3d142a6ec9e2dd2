// Schedules by rule: every kernel of a module for a target, by its text and a count of cycles, without a search.
#pragma once
#include "base/diag.h"
#include "ir/build.h"
#include "ir/module.h"
#include "target/target.h"

namespace mlc {

struct TileOptions {
  bool strict = false;  // sums keep their order, nothing is contracted
};

// A script for each kernel that the rules can improve, in the order of the module; remarks say what stays as it is. All of
// them apply (sched/apply.h), one after the other.
std::vector<const Schedule *> tile_schedules(Build &b, const Module &m, const TargetInfo &target,
                                             const TileOptions &options, Diag &diag);

}  // namespace mlc
