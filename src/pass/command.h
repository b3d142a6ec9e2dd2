// The command line of every tool: options declared once (pass.h), --help, --version, errors. The only user of
// Boost.Program_options is command.cc.
#pragma once
#include <functional>

#include "pass/pass.h"
#include "text/text.h"

namespace mlc {

struct Usage {
  std::string tool;      // "mlc-fuse"
  const char *summary;
  const char *operands;  // "[FILE]"
  std::span<const OptionSpec> options;
};
// Fills `options`. Returns -1 to go on, or the exit code: 0 after --help or --version, 2 after a usage error.
int parse_command(int argc, char **argv, const Usage &usage, Options &options);

// Runs f on a stack of 1 GB (touched pages only cost memory), so that recursion over any text that reads is safe.
int on_large_stack(const std::function<int()> &f);

// What a tool ends with: rc, but 1 and a message if what it printed could not be written.
int finished(const std::string &tool, int rc);

// Writes all of `text` to the file `path`, or to standard output for "" and "-". False: `error` says which file
// and why.
bool write_all(const std::string &path, std::string_view text, std::string *error);
// The same for what `print` gives piece by piece: a large text is held as a whole only if it replaces that of a file.
bool write_all(const std::string &path, const std::function<void(const Sink &)> &print, std::string *error);

}  // namespace mlc
