// Schedules applied to the kernels of a module.
#pragma once
#include <functional>
#include <string>

#include "base/diag.h"
#include "ir/build.h"
#include "ir/module.h"
#include "sched/layout.h"

namespace mlc {

struct ScheduleOptions {
  std::string kernel;   // a pattern with * and ?: what scripts apply to; empty: the name that each gives, a pattern too
  std::string target;   // scripts `for @target` of another one are left; empty: all are taken
  uint64_t seed = 0;    // of the draws without decision
  bool unsafe = false;  // unsafe_* are allowed
  // After each step: its text, and the kernel as it stands.
  std::function<void(const Step &, const Func &)> each_step;
};

// Applies every schedule of the module, in order, and takes it out. A schedule with `attr as = "name"` leaves its kernel
// and adds a scheduled copy under that name. `trace`: the scripts as they were applied, with what was drawn; may be null.
// Errors point at the step; what it refuses of the program is a note. False: there are errors.
bool apply_schedules(Build &b, Module &m, const ScheduleOptions &options, Diag &diag,
                     std::vector<const Schedule *> *trace);

// The same of one script and one kernel, which stays in the module: what it becomes, the steps as they were applied, and
// the layouts that its callers have to follow (sched/layout.h). Null: there are errors.
const Func *apply_schedule(Build &b, const Module &m, const Func *f, const Schedule &script,
                           const ScheduleOptions &options, Diag &diag, std::vector<const Step *> &done,
                           std::vector<LayoutChange> &layouts);

}  // namespace mlc
