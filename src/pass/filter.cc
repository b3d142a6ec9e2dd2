// The one main of all filters: options, read, run, verify, print; and the main of the other tools.
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "check/check.h"
#include "pass/command.h"
#include "pass/verify.h"
#include "text/text.h"

namespace mlc {

static constexpr OptionSpec kOutput = {"output,o", "FILE", "write to FILE instead of standard output"};

static bool too_late(const Pass &pass, const Build &b, const Module &m, Diag &diag) {
  const Func *late = nullptr;
  for (const Item *i : m.items) {
    auto *f = as<Func>(i);
    if (!f || f->func != FuncKind::Graph) continue;
    if (stage_of(b, *f) <= pass.latest) return false;
    if (!late) late = f;
  }
  if (late)
    diag.error(late->at, "too late: graph @{} is at the stage {}, mlc-{} takes graphs of values: operators, groups, "
               "calls in their pure form", b.text(late->name), stage_name(stage_of(b, *late)), pass.name);
  return late != nullptr;
}

bool run_pass(const Pass &pass, Build &b, Module &m, const Options &options, Diag &diag) {
  bool compare = pass.same && pass.verify && verify_wanted();
  Module before = compare ? m : Module();
  if (!too_late(pass, b, m, diag)) pass.run(b, m, options, diag);
  if (!diag.errors() && pass.verify) check(b, m, diag);
  if (!diag.errors() && compare) verify_same(b, before, m, options.files.empty() ? "" : options.files[0], diag);
  return !diag.errors();
}

static int run_filter(const Pass &pass, const Options &options) {
  Source source = Source::open(options.files.empty() ? "-" : options.files[0]);
  if (!source.error.empty()) {
    fprintf(stderr, "%s: error: %s [mlc-%s]\n", source.name.c_str(), source.error.c_str(), pass.name);
    return 1;
  }
  Build &b = *new Build;  // the process is the lifetime of the nodes
  Module m;
  Diag diag(pass.name, &source);
  diag.verbose = options.has("verbose");
  // What is read is verified before a pass may rely on it, and what the pass made after.
  bool ok = read(b, source, m, diag) && (!pass.verify || check(b, m, diag)) && run_pass(pass, b, m, options, diag);
  diag.print(stderr);
  if (!ok) return 1;
  std::string error;
  if (write_all(options.get("output"), [&](const Sink &sink) { print(b, m, sink); }, &error)) return 0;
  fprintf(stderr, "mlc-%s: error: cannot write: %s\n", pass.name, error.c_str());
  return 1;
}

static int timed(const std::string &tool, const Options &options, const std::function<int()> &f) {
  auto start = std::chrono::steady_clock::now();
  int rc = on_large_stack([&] {
    try {
      return f();
    } catch (const UsageError &e) {
      fprintf(stderr, "%s: error: %s; %s --help tells the options\n", tool.c_str(), e.message.c_str(), tool.c_str());
      return 2;
    }
  });
  std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - start;
  if (options.has("time")) fprintf(stderr, "%s: %.2f ms\n", tool.c_str(), ms.count());
  rc = finished(tool, rc);
  fflush(stderr);
  _exit(rc);  // nothing is torn down: the arenas go with the process
}

int filter(int argc, char **argv, const Pass &pass) {
  std::vector<OptionSpec> specs(pass.options.begin(), pass.options.end());
  specs.push_back(kOutput);
  std::string operands = pass.words ? std::string(pass.words) + "... [FILE]" : "[FILE]";
  Usage usage = {std::string("mlc-") + pass.name, pass.summary, operands.c_str(), specs};
  Options options;
  if (int rc = parse_command(argc, argv, usage, options); rc >= 0) return rc;
  if (pass.words) {
    auto is_file = [](const std::string &s) { return s.find('=') == std::string::npos; };
    auto words = std::stable_partition(options.files.begin(), options.files.end(), is_file);
    options.values["words"].assign(words, options.files.end());
    options.files.erase(words, options.files.end());
  }
  if (options.files.size() > 1) {
    fprintf(stderr, "%s: error: one FILE at most, `%s` is a second; cat joins modules\n", usage.tool.c_str(),
            options.files[1].c_str());
    return 2;
  }
  return timed(usage.tool, options, [&] { return run_filter(pass, options); });
}

int tool_main(int argc, char **argv, const Tool &tool) {
  std::string name = *tool.name ? std::string("mlc-") + tool.name : "mlc";
  Options options;
  if (int rc = parse_command(argc, argv, {name, tool.summary, tool.operands, tool.options}, options); rc >= 0) return rc;
  return timed(name, options, [&] { return tool.run(options); });
}

}  // namespace mlc
