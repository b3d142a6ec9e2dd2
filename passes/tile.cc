// tile: every kernel scheduled for a target, by rule.
#include "tile/tile.h"

#include <unordered_map>

#include "pass/pass.h"
#include "sched/layout.h"

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
  if (!target) throw UsageError{"--target: " + error};
  std::vector<Tiled> tiled = tile_kernels(b, m, *target, {options.has("strict")}, diag);
  if (options.has("emit-schedule")) {
    m = Module();
    for (const Tiled &t : tiled) m.add(t.script);
    return;
  }
  std::vector<const Item *> now = m.items;
  std::unordered_map<Sym, size_t> place;
  for (size_t i = 0; i < now.size(); i++)
    if (as<Func>(now[i])) place[name_of(now[i])] = i;
  std::vector<Relaid> relaid;
  for (const Tiled &t : tiled) {
    const Item *&item = now[place.at(t.kernel->name)];
    if (!t.layouts.empty()) relaid.push_back({as<Func>(item), t.layouts});
    item = t.kernel;
  }
  if (callers_follow(b, now, relaid, diag)) m.set(now);
}

}  // namespace

extern const Pass pass_tile;
const Pass pass_tile = {"tile", "Schedule kernels for a target by rule", kOptions, run};

}  // namespace mlc
