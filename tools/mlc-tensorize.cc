// mlc-tensorize: the intrinsics of a target in the place of what they describe.
#include <algorithm>

#include "check/check.h"
#include "pass/command.h"
#include "pass/verify.h"
#include "sched/apply.h"
#include "tensorize/tensorize.h"
#include "text/text.h"

namespace mlc {
namespace {

constexpr OptionSpec kOptions[] = {
    {"target", "T", "a target of the module, one that mlc ships, or a FILE.mlc with one"},
    {"intrin", "NAME", "look for this intrinsic alone; those that move its operands are used all the same"},
    {"kernel", "PATTERN", "only kernels of these names, with * and ?"},
    {"emit-schedule", nullptr, "print what was done as schedules for mlc-schedule, instead of the module"},
    {"output,o", "FILE", "write to FILE instead of standard output"},
};

int run_tool(const Options &options) {
  if (options.files.size() > 1) throw UsageError{"one FILE at most; cat joins modules"};
  if (!options.has("target")) throw UsageError{"--target is missing"};
  Source source = Source::open(options.files.empty() ? "-" : options.files[0]);
  if (!source.error.empty()) {
    fprintf(stderr, "%s: error: %s [mlc-tensorize]\n", source.name.c_str(), source.error.c_str());
    return 1;
  }
  Build &b = *new Build;
  Module m;
  Diag diag("tensorize", &source);
  diag.verbose = options.has("verbose");
  TensorizeOptions how;
  how.kernel = options.get("kernel", "*"), how.intrinsic = options.get("intrin");
  for (std::string *s : {&how.kernel, &how.intrinsic})
    if (s->starts_with("@")) s->erase(0, 1);
  std::string text, error;
  bool ok = read(b, source, m, diag) && check(b, m, diag);
  auto target = ok ? find_target(b, &m, options.get("target"), &error) : std::nullopt;
  if (ok && !target) throw UsageError{error};
  if (ok) {
    if (!how.intrinsic.empty() &&
        std::find(target->uses.begin(), target->uses.end(), b.sym(how.intrinsic)) == target->uses.end())
      throw UsageError{fmt::format("target {} does not use @{}", target->name, how.intrinsic)};
    Module before = m;
    std::vector<const Item *> idle;  // schedules of the module's own wait for mlc-schedule
    std::vector<const Item *> rest;
    for (const Item *i : m.items) (i->kind == Kind::Schedule ? idle : rest).push_back(i);
    m.set(rest);
    Module all = m;
    for (const Item *i : target->text.items)
      if (!name_of(i) || !all.find(name_of(i))) all.add(i);
    std::vector<const Schedule *> scripts = tensorize_scripts(b, all, *target, how, diag);
    Module added;
    for (const Item *i : with_instructions(b, m, *target, scripts)) added.add(i);
    for (const Schedule *s : scripts) added.add(s);
    if (options.has("emit-schedule")) {
      print(b, added, text);
    } else {
      for (const Item *i : added.items) {
        const Item *there = name_of(i) ? m.find(name_of(i)) : nullptr;
        if (!there) m.add(i);
        else m.replace(size_t(std::find(m.items.begin(), m.items.end(), there) - m.items.begin()), i);
      }
      ScheduleOptions apply;
      ok = (scripts.empty() || apply_schedules(b, m, apply, diag, nullptr)) && check(b, m, diag);
      for (const Item *i : idle) m.add(i);
      if (ok && verify_wanted()) {
        verify_same(b, before, m, options.files.empty() ? "" : options.files[0], diag);
        ok = !diag.errors();
      }
      if (ok) print(b, m, text);
    }
  }
  diag.print(stderr);
  if (!ok) return 1;
  if (write_all(options.get("output"), text, &error)) return 0;
  fprintf(stderr, "mlc-tensorize: error: cannot write: %s\n", error.c_str());
  return 1;
}

}  // namespace
}  // namespace mlc

int main(int argc, char **argv) {
  constexpr const char *kSummary = "put a target's intrinsics in the place of what they describe";
  return mlc::tool_main(argc, argv, {"tensorize", kSummary, "[FILE]", mlc::kOptions, mlc::run_tool});
}
