// mlc-import: an ONNX model becomes a module.
#include "check/check.h"
#include "onnx/import.h"
#include "pass/command.h"
#include "text/text.h"

namespace mlc {

namespace {

constexpr OptionSpec kOptions[] = {
    {"bind", "NAME=VALUE", "fix a dimension (n=8) or an input (axes=[0, 2]), which becomes a constant"},
    {"side", "FILE", "write large tensors that have no bytes in the model file to FILE"},
    {"hash", nullptr, "write the hash of files of 64 MB and more too"},
    {"output,o", "FILE", "write to FILE instead of standard output"},
};

// One line on standard error for each line of `lines`.
void report(const std::string &file, std::string_view lines) {
  while (!lines.empty()) {
    std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    fmt::print(stderr, "{}: error: {} [mlc-import]\n", file, line);
  }
}

int import(const Options &options) {
  if (options.files.size() != 1) {
    fmt::print(stderr, "mlc-import: error: expected one MODEL, found {}\n", options.files.size());
    return 2;
  }
  ImportOptions import{options.files[0], options.bindings(), options.get("side"), options.has("hash")};
  std::string name = import.path == "-" ? "<stdin>" : import.path, errors;
  Build &b = *new Build;  // the process is the lifetime of the nodes
  Module m;
  if (!import_onnx(b, import, m, errors)) {
    report(name, errors);
    return 1;
  }
  Source source = Source::from_string(name, "");
  Diag diag("import", &source);
  if (!check(b, m, diag)) {
    diag.print(stderr);
    return 1;
  }
  if (write_all(options.get("output"), [&](const Sink &sink) { print(b, m, sink); }, &errors)) return 0;
  fmt::print(stderr, "mlc-import: error: cannot write: {}\n", errors);
  return 1;
}

}  // namespace

}  // namespace mlc

int main(int argc, char **argv) {
  return mlc::tool_main(argc, argv, {"import", "make a module of an ONNX model", "MODEL", mlc::kOptions, mlc::import});
}
