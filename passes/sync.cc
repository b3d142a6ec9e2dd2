// sync: kernels become what a device runs, and graphs what launches them.
#include "sync/sync.h"

#include "pass/pass.h"

namespace mlc {

namespace {

constexpr OptionSpec kOptions[] = {
    {"target", "NAME", "the device, a target of the module or a shipped one; cuda-sm_80"},
};

void run(Build &b, Module &m, const Options &options, Diag &diag) {
  std::string error, name = options.get("target", "cuda-sm_80");
  std::optional<TargetInfo> target = find_target(b, &m, name, &error);
  if (!target) throw UsageError{"--target: " + error};
  if (target->kind != "cuda")
    throw UsageError{fmt::format("--target {}: expected a target of kind cuda, found {}", name, target->kind)};
  sync_module(b, m, *target, diag);
}

}  // namespace

extern const Pass pass_sync;
const Pass pass_sync = {"sync", "Write launches, threads, barriers and shared memory into kernels", kOptions, run};

}  // namespace mlc
