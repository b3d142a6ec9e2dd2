// mlc-schedule: applies schedules, the module's own or a script's, to its kernels.
#include <fmt/core.h>

#include "check/check.h"
#include "pass/command.h"
#include "pass/verify.h"
#include "sched/apply.h"
#include "sched/step.h"
#include "text/text.h"

namespace mlc {
namespace {

constexpr OptionSpec kOptions[] = {
    {"script,f", "FILE", "a module of schedules to apply; without it, those of the module itself"},
    {"kernel", "PATTERN", "apply to the kernels of these names, with * and ?, instead of those that the scripts name"},
    {"target", "NAME", "leave schedules that are for another target"},
    {"seed", "N", "of what is drawn; 0"},
    {"step", nullptr, "print each step and the kernel after it, instead of the module"},
    {"trace", nullptr, "print the schedules as they were applied, with what was drawn, instead of the module"},
    {"check", nullptr, "print nothing: say by the exit code whether the scripts apply"},
    {"unsafe", nullptr, "allow the steps called unsafe_*, which may change results"},
    {"output,o", "FILE", "write to FILE instead of standard output"},
};

int run_tool(const Options &options) {
  if (options.files.size() > 1) throw UsageError{"one FILE at most; cat joins modules"};
  int forms = options.has("step") + options.has("trace") + options.has("check");
  if (forms > 1) throw UsageError{"--step, --trace and --check exclude each other"};
  Source source = Source::open(options.files.empty() ? "-" : options.files[0]);
  for (const std::string &script : options.all("script")) {
    if (!source.error.empty()) break;
    if (options.all("script").size() > 1) throw UsageError{"one --script at most; cat joins scripts"};
    Source second = Source::open(script);
    if (!second.error.empty()) source.name = second.name;
    source = Source::join(source, second);
  }
  if (!source.error.empty()) {
    fprintf(stderr, "%s: error: %s [mlc-schedule]\n", source.name.c_str(), source.error.c_str());
    return 1;
  }
  Build &b = *new Build;
  Module m;
  Diag diag("schedule", &source);
  diag.verbose = options.has("verbose");
  ScheduleOptions how;
  how.kernel = options.get("kernel"), how.target = options.get("target");
  how.seed = uint64_t(options.whole("seed", 0, 0));
  how.unsafe = options.has("unsafe");
  std::string text;
  if (options.has("step"))
    how.each_step = [&](const Step &step, const Func &f) {
      text += "# " + print_step(b, step) + "\n" + print(b, static_cast<const Item *>(&f)) + "\n\n";
    };
  std::vector<const Schedule *> trace;
  bool ok = read(b, source, m, diag) && check(b, m, diag);
  Module before = m;
  ok = ok && apply_schedules(b, m, how, diag, &trace) && check(b, m, diag);
  if (ok && verify_wanted() && !how.unsafe) {
    verify_same(b, before, m, options.files.empty() ? "" : options.files[0], diag);
    ok = !diag.errors();
  }
  diag.print(stderr);
  if (!ok) return 1;
  if (options.has("trace")) {
    Module scripts;
    for (const Schedule *s : trace)
      scripts.add(s);
    print(b, scripts, text);
  } else if (!forms) {
    print(b, m, text);
  }
  std::string error;
  if (options.has("check") || write_all(options.get("output"), text, &error)) return 0;
  fprintf(stderr, "mlc-schedule: error: cannot write: %s\n", error.c_str());
  return 1;
}

}  // namespace
}  // namespace mlc

int main(int argc, char **argv) {
  return mlc::tool_main(argc, argv, {"schedule", "apply schedules to kernels", "[FILE]", mlc::kOptions, mlc::run_tool});
}
