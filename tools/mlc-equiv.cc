// mlc-equiv: are two modules the same program? Two files, or what goes into a filter and what comes out of it.
#include <fmt/core.h>

#include "check/check.h"
#include "equiv/equiv.h"
#include "pass/pass.h"
#include "pass/verify.h"
#include "text/text.h"
#include "through.h"

namespace mlc {
namespace {

constexpr OptionSpec kOptions[] = {
    {"entry", "NAME", "compare this function; without it @main, the first graph, or the kernels"},
    {"with", "NAME", "what it is called in the second module, if something else"},
    {"through", "COMMAND", "compare A with what COMMAND makes of it, and print that if it is the same"},
    {"bind", "NAME=N", "fix a size; the others are drawn from 0 1 2 3 7 17 48 625 and tile sizes; repeated"},
    {"seed", "N", "another N, other sizes and inputs; 0"},
    {"runs", "N", "draws of sizes and inputs; 12"},
    {"elements", "N", "the most elements that inputs of drawn sizes may have; 1000000"},
    {"turns", "N", "the most turns that the loops of all runs may take; 60000000"},
    {"rtol", "X", "accept differences up to X times the value"},
    {"atol", "X", "accept differences up to X"},
    {"strict", nullptr, "accept no difference: every bit is the same"},
    {"include,I", "DIR", "look for weight files here first; repeated"},
};

struct Loaded {
  Source source;
  Build *b = new Build;  // the process is the lifetime of the nodes
  Module m;
};

bool load(Loaded &s) {
  if (!s.source.error.empty()) {
    fprintf(stderr, "%s: error: %s [mlc-equiv]\n", s.source.name.c_str(), s.source.error.c_str());
    return false;
  }
  Diag diag("equiv", &s.source);
  bool ok = read(*s.b, s.source, s.m, diag) && check(*s.b, s.m, diag);
  diag.print(stderr);
  return ok;
}

int equiv_tool(const Options &options) {
  bool through = options.has("through");
  size_t want = through ? 1 : 2;
  if (options.files.size() != want && !(through && options.files.empty()))
    return fprintf(stderr, "mlc-equiv: error: expected %s, found %zu\n",
                   through ? "one file A at most" : "two files A B", options.files.size()), 2;
  EquivOptions o;
  o.sizes = options.sizes();
  o.entry = options.get("entry"), o.with = options.get("with");
  o.seed = options.whole("seed", 0), o.runs = options.whole("runs", o.runs, 1);
  o.elements = options.whole("elements", o.elements, 0), o.turns = options.whole("turns", o.turns, 1);
  o.rtol = options.real("rtol", 0), o.atol = options.real("atol", 0);
  o.strict = options.has("strict"), o.folders = options.all("include");

  Loaded a, b;
  std::string path = options.files.empty() ? "-" : options.files[0], second, output;
  a.source = Source::open(path);
  if (!load(a)) return 1;
  if (through) {
    std::string error;
    second = "the output of " + options.get("through");
    if (!run_through(options.get("through"), a.source.text, &output, &error))
      return fprintf(stderr, "mlc-equiv: error: %s: %s\n", options.get("through").c_str(), error.c_str()), 1;
    b.source = Source::from_string(second, output);
  } else {
    second = options.files[1];
    b.source = Source::open(second);
  }
  if (!load(b)) return 1;
  EquivSide x{*a.b, a.m, path, path, &a.source}, y{*b.b, b.m, second, through ? path : second, &b.source};
  EquivReport r = equiv(x, y, o);
  if (!r.usage.empty()) throw UsageError{r.usage};
  if (!r.same) return report(r, x, y, "equiv", stderr), 1;
  const std::string &text = through ? output : r.text + "\n";
  if (through && options.has("verbose")) fprintf(stderr, "mlc-equiv: note: %s\n", r.text.c_str());
  fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace
}  // namespace mlc

int main(int argc, char **argv) {
  return mlc::tool_main(argc, argv,
                        {"equiv", "Are two modules the same program", "A B", mlc::kOptions, mlc::equiv_tool});
}
