// mlc-reduce: the smallest module or script that still fails in the same way.
#include <fmt/core.h>

#include <algorithm>

#include "check/check.h"
#include "pass/command.h"
#include "reduce.h"
#include "text/text.h"
#include "through.h"

namespace mlc {
namespace {

constexpr OptionSpec kOptions[] = {
    {"test", "COMMAND", "what is left on its standard input must still make COMMAND end with 0"},
    {"lines", nullptr, "drop lines of the text, whatever it is: the way of scripts"},
    {"tries", "N", "run COMMAND at most so often; 2000"},
    {"output,o", "FILE", "write to FILE instead of standard output"},
};

int reduce_tool(const Options &options) {
  if (!options.has("test")) throw UsageError{"expected --test COMMAND"};
  if (options.files.size() > 1) return fprintf(stderr, "mlc-reduce: error: one FILE at most\n"), 2;
  std::string command = options.get("test"), output, error;
  int64_t tries = options.whole("tries", 2000, 1), asked = 0;
  Source source = Source::open(options.files.empty() ? "-" : options.files[0]);
  if (!source.error.empty()) {
    fprintf(stderr, "%s: error: %s [mlc-reduce]\n", source.name.c_str(), source.error.c_str());
    return 1;
  }
  auto test = [&](const std::string &text) {
    asked++;
    return run_through(command, text, &output, &error);
  };
  std::string text(source.text);
  if (!test(text)) {
    fprintf(stderr, "mlc-reduce: error: %s: %s on the whole text\n", command.c_str(), error.c_str());
    return 1;
  }
  Build &b = *new Build;  // the process is the lifetime of the nodes
  Module m;
  Diag diag("reduce", &source), quiet("reduce", &source);
  bool module = !options.has("lines") && text.find("mlc ") != std::string::npos && read(b, source, m, diag);
  bool script = module && std::all_of(m.items.begin(), m.items.end(),
                                      [](const Item *i) { return i->kind == Kind::Schedule; });
  if (script) module = false;  // its steps are lines
  std::string canonical = module ? print(b, m) : "";
  if (module && test(canonical)) {
    m.head_comment = m.trailing_comment = {};
    if (std::string bare = print(b, m); !test(bare)) module = false;
  } else {
    module = false;
  }
  size_t before = std::count(text.begin(), text.end(), '\n');
  if (module) text = print(b, reduce_module(b, m, check(b, m, quiet), test, tries));
  else text = reduce_lines(text, test, tries);
  if (options.has("verbose"))
    fmt::print(stderr, "mlc-reduce: note: {} lines of {}, {} tests\n", std::count(text.begin(), text.end(), '\n'), before,
               asked);
  if (write_all(options.get("output"), text, &error)) return 0;
  fprintf(stderr, "mlc-reduce: error: cannot write: %s\n", error.c_str());
  return 1;
}

}  // namespace
}  // namespace mlc

int main(int argc, char **argv) {
  return mlc::tool_main(argc, argv,
                        {"reduce", "Shrink a module or script that fails", "[FILE]", mlc::kOptions, mlc::reduce_tool});
}
