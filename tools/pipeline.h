// The usual pipe in one process. A stage is a pass by its name; the text between two stages is printed and read again, so
// that the result has the same bytes as the shell's pipe.
#pragma once
#include <memory>
#include <optional>

#include "ir/build.h"
#include "ir/walk.h"
#include "pass/pass.h"

namespace mlc {

// What the pipe depends on of a target.
struct PipeTarget {
  bool cuda;
  bool intrinsics;  // that mlc-tensorize may call: those of a CUDA device are left to schedules, which lay out its threads
};
std::optional<PipeTarget> pipe_target(const std::string &name, std::string *error);  // nothing: there is no such target
// The passes that are usual between import and codegen, in order: simplify, fuse, lower, plan; for a target tile and
// compact in front of plan, and tensorize in front of these where it has intrinsics.
std::vector<const Pass *> usual_passes(const std::optional<PipeTarget> &target);
// Of what was given to the whole pipe, --strict and --target, what the pass has.
Options options_for(const Pass &pass, const Options &given);
const Pass *pass_named(std::string_view name);  // null if there is none

// A module with what its nodes live in.
struct Program {
  std::unique_ptr<Source> source;  // what its places refer to; null before the first text
  std::unique_ptr<Build> build;
  Module module;
};

// Runs one pass and the verifier. False: the errors were printed; they refer to the text before the pass.
bool run_pass(const Pass &pass, const Options &options, Program &stage, bool verbose, FILE *errors);
// Prints the module and reads it back as a text called `name`, as the next tool of a pipe would.
bool reread(Program &stage, const std::string &name, FILE *errors, const std::string &tool);

// Makes what is still due before code can be emitted: a graph around the only kernel of a module that has none; lower if
// operators or groups are left, plan if no arena is given; for a device, sync.
void finish(Build &b, Module &m, Diag &diag, bool device = false);

}  // namespace mlc
