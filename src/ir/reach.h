// Which items of a module others need.
#pragma once
#include <unordered_set>
#include <vector>

#include "ir/build.h"
#include "ir/module.h"

namespace mlc {

using Items = std::unordered_set<const Item *>;

// `roots` and all that they need: functions they call, constants they read and those these are computed from, targets,
// instructions of targets, what schedules name.
Items reachable(const Module &m, std::vector<const Item *> roots);
// Leaves only the items of `live`, and the files that their constants lie in; files of no constant at all stay if
// `idle_files`. The module's order stays. Returns the items that went and have a name.
std::vector<const Item *> keep_only(Module &m, const Items &live, bool idle_files);

}  // namespace mlc
