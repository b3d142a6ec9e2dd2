// tensorize: the intrinsics of a target in the place of what they describe.
#include "tensorize/tensorize.h"

#include <algorithm>

#include "pass/pass.h"
#include "sched/apply.h"

namespace mlc {

namespace {

constexpr OptionSpec kOptions[] = {
    {"target", "T", "a target of the module, one that mlc ships, or a FILE.mlc with one"},
    {"intrin", "NAME", "look for this intrinsic alone; those that move its operands are used all the same"},
    {"kernel", "PATTERN", "only kernels of these names, with * and ?"},
    {"emit-schedule", nullptr, "print what was done as schedules for mlc-schedule, instead of the module"},
    {"strict", nullptr, "leave sums of floats: their order is kept"},
};

void run(Build &b, Module &m, const Options &options, Diag &diag) {
  if (!options.has("target")) throw UsageError{"--target is missing"};
  TensorizeOptions how;
  how.kernel = options.get("kernel", "*"), how.intrinsic = options.get("intrin"), how.strict = options.has("strict");
  for (std::string *s : {&how.kernel, &how.intrinsic})
    if (s->starts_with("@")) s->erase(0, 1);
  std::string error;
  auto target = find_target(b, &m, options.get("target"), &error);
  if (!target) throw UsageError{"--target: " + error};
  if (auto &uses = target->uses; !how.intrinsic.empty() && std::find(uses.begin(), uses.end(), b.sym(how.intrinsic)) == uses.end())
    throw UsageError{fmt::format("target {} does not use @{}", target->name, how.intrinsic)};
  std::vector<const Item *> idle, rest;  // schedules of the module's own wait for mlc-schedule
  for (const Item *i : m.items) (i->kind == Kind::Schedule ? idle : rest).push_back(i);
  m.set(rest);
  std::vector<const Schedule *> scripts = tensorize_scripts(b, with_intrinsics(m, *target), *target, how, diag);
  std::vector<const Item *> added = with_instructions(b, m, *target, scripts);
  added.insert(added.end(), scripts.begin(), scripts.end());
  if (options.has("emit-schedule")) {
    m = Module();
    return m.set(added);
  }
  for (const Item *i : added) {
    const Item *there = name_of(i) ? m.find(name_of(i)) : nullptr;
    if (!there) m.add(i);
    else m.replace(size_t(std::find(m.items.begin(), m.items.end(), there) - m.items.begin()), i);
  }
  if (!scripts.empty()) apply_schedules(b, m, {}, diag, nullptr);
  for (const Item *i : idle) m.add(i);
}

}  // namespace

extern const Pass pass_tensorize;
const Pass pass_tensorize = {"tensorize", "Put a target's intrinsics in the place of what they describe", kOptions, run};

}  // namespace mlc
