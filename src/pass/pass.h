// A pass: a function module -> module, without files, globals or streams. passes/NAME.cc exports one `const Pass`.
// tools/filter.cc makes the executable mlc-NAME of it; `mlc` runs several in one process.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/diag.h"
#include "check/stage.h"
#include "ir/module.h"

namespace mlc {

struct OptionSpec {
  const char *name;  // "bind"; "output,o" has a short form too
  const char *arg;   // "NAME=N"; null: a flag
  const char *help;  // one line, lower case; --help and the man page say the same (a test compares them)
};

class Options {  // what the command line said, parsed by pass/command.cc
 public:
  std::map<std::string, std::vector<std::string>> values;
  std::vector<std::string> files;  // operands
  bool has(const std::string &name) const { return values.count(name); }
  std::string get(const std::string &name, std::string otherwise = "") const {
    auto it = values.find(name);
    return it == values.end() ? otherwise : it->second.back();
  }
  std::vector<std::string> all(const std::string &name) const {
    auto it = values.find(name);
    return it == values.end() ? std::vector<std::string>{} : it->second;
  }
  // The value of an option as a number; throws UsageError where it is none, is less than `least` or has anything
  // behind it.
  int64_t whole(const std::string &name, int64_t otherwise, int64_t least = INT64_MIN) const;
  double real(const std::string &name, double otherwise) const;  // finite, 0 or more
  // The --bind NAME=VALUE options; UsageError where one is none, or a name comes twice with different values.
  std::map<std::string, std::string> bindings() const;
  std::map<std::string, int64_t> sizes() const;  // the same, of integers
};

struct UsageError {  // the command line is wrong: tools end with 2
  std::string message;
};

struct Pass {
  const char *name;     // "fuse": the tool is mlc-fuse, the page mlc-fuse.1
  const char *summary;  // one line
  std::span<const OptionSpec> options;
  void (*run)(Build &b, Module &m, const Options &options, Diag &diag);
  Stage latest = Stage::Planned;  // a module whose graphs are all beyond it comes too late
  bool verify = true;             // the verifier runs on the result; mlc-fmt alone goes without
  bool same = true;               // the result is the same program: MLC_VERIFY=1 compares (pass/verify.h)
  const char *words = nullptr;    // "NAME=N": operands with a `=` are no files, but options.all("words")
};

// Reports a module that comes too late for the pass, else runs it and the verifier, and with MLC_VERIFY=1 in the
// environment compares what it made with what it was given. False: there are errors.
bool run_pass(const Pass &pass, Build &b, Module &m, const Options &options, Diag &diag);

// The one main of all filters: options, read, run, verify, print. Returns the exit code.
int filter(int argc, char **argv, const Pass &pass);

// The main of the other tools: the same options parsing, --help, --version, errors and the 1 GB stack; `run` does
// the work and returns the exit code. Nothing may reach stdout before the work is done.
struct Tool {
  const char *name;      // "run" for mlc-run; "" for mlc itself
  const char *summary;
  const char *operands;  // "[FILE]", "MODEL", "DIR..."
  std::span<const OptionSpec> options;
  int (*run)(const Options &options);
};
int tool_main(int argc, char **argv, const Tool &tool);

}  // namespace mlc
