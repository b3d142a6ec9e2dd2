// One step of a schedule, run on the kernel as it stands.
#pragma once
#include "sched/args.h"

namespace mlc {

// Returns the step with the decisions that it drew. Throws BadStep (of the script) or Refused (of the program); the state
// is then good for nothing more.
Step run_step(State &s, const Step &step, uint64_t seed, int line, bool unsafe = false);

std::string print_step(const Build &b, const Step &step);  // i0, i1 = split(i, [_, 16]) {k = v}

}  // namespace mlc
