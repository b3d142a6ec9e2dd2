// tile: every kernel scheduled for a target, by rule.
#include "tile/tile.h"

#include "pass/pass.h"
#include "sched/apply.h"

namespace mlc {

namespace {

constexpr OptionSpec kOptions[] = {
    {"target", "TARGET", "what to schedule for: a name, or a FILE.mlc that holds it; generic"},
    {"emit-schedule", nullptr, "print the script that would be applied, instead of the module"},
    {"strict", nullptr, "keep the order of every sum, contract nothing"},
};

void run(Build &b, Module &m, const Options &options, Diag &diag) {
  std::string error;
  auto target = find_target(b, &m, options.get("target", "generic"), &error);
  if (!target) return diag.error(kNowhere, "--target {}", error);
  Module scripts;
  for (const Schedule *s : tile_schedules(b, m, *target, {options.has("strict")}, diag)) scripts.add(s);
  if (options.has("emit-schedule")) {
    m = scripts;
    return;
  }
  if (scripts.items.empty()) return;
  std::vector<const Item *> others, own;  // schedules of the module itself stay
  for (const Item *i : m.items) (as<Schedule>(i) ? own : others).push_back(i);
  others.insert(others.end(), scripts.items.begin(), scripts.items.end());
  m.set(others);
  apply_schedules(b, m, {}, diag, nullptr);
  for (const Item *i : own) m.add(i);
}

}  // namespace

extern const Pass pass_tile;
const Pass pass_tile = {"tile", "Schedule kernels for a target by rule", kOptions, run};

}  // namespace mlc
