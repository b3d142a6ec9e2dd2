// mlc-codegen: a module becomes host C++.
#include "check/check.h"
#include "check/stage.h"
#include "codegen.h"
#include "emit/names.h"
#include "pass/command.h"
#include "text/text.h"
#include "with_llvm.h"

namespace mlc {

namespace {

constexpr OptionSpec kOptions[] = {
    {"output,o", "DIR", "write a project into DIR instead of the source to standard output"},
    {"emit", "FORM", "cpp; llvm, LLVM's assembly; or with -o: obj, an object file"},
    {"name", "NAME", "prefix of files and external names (otherwise that of FILE, or model)"},
    {"main", nullptr, "with -o: also NAME_main.cc, which runs the model on .npy files"},
    {"weights", "FORM", "file, text or object (otherwise text without -o and below 64 KB, else file)"},
    {"checked", nullptr, "check each subscript that is not proved inside its buffer when the program runs"},
    {"target", "NAME", "cuda-sm_80: CUDA C++ for a device; without it, C++ for the host, or what the kernels are synced for"},
    {"unchecked", nullptr, "leave out the checks of what the module assumes"},
    {"include,I", "DIR", "look for weight files in DIR"},
};

constexpr std::pair<const char *, WeightForm> kForms[] = {
    {"", WeightForm::Auto}, {"file", WeightForm::File}, {"text", WeightForm::Text}, {"object", WeightForm::Object}};

int usage(const std::string &message) {
  fmt::print(stderr, "mlc-codegen: error: {}\n", message);
  return 2;
}

int run_tool(const Options &options) {
  if (options.files.size() > 1) return usage(fmt::format("one FILE at most, `{}` is a second", options.files[1]));
  std::string path = options.files.empty() ? "-" : options.files[0];
  CodegenOptions o;
  o.cpp.name = options.get("name", model_name(path));
  if (project_name(o.cpp.name) != o.cpp.name)
    return usage(fmt::format("--name {}: expected an identifier such as {}", o.cpp.name, project_name(o.cpp.name)));
  if (options.has("checked") && options.has("unchecked")) return usage("--checked and --unchecked exclude each other");
  std::string wanted = options.get("weights");
  auto form = std::find_if(std::begin(kForms), std::end(kForms), [&](auto &f) { return wanted == f.first; });
  if (form == std::end(kForms)) return usage(fmt::format("--weights {}: expected file, text or object", wanted));
  o.folder = options.get("output");
  if (options.has("main") && o.folder.empty()) return usage("--main needs -o DIR");
  if (form->second == WeightForm::Object && o.folder.empty()) return usage("--weights object needs -o DIR");
  o.cpp.weights = form->second, o.cpp.one_file = o.folder.empty();
  if (options.has("unchecked")) o.cpp.checks = RunChecks::None;
  if (options.has("checked")) o.cpp.checks = RunChecks::Subscripts;
  o.with_main = options.has("main");
  if (std::string emit = options.get("emit", "cpp"); !set_emit(emit, o))
    return usage(fmt::format("--emit {}: expected cpp, llvm or obj", emit));
  if (std::string why = conflict(o); !why.empty()) return usage(why);
  if (o.emit != Emit::Cpp && !with_llvm("mlc-codegen")) return 1;
  o.folders = options.all("include"), o.module_path = path;
  std::string target = options.get("target");
  if (!target.empty() && target != "cuda-sm_80") return usage(fmt::format("--target {}: expected cuda-sm_80", target));

  Source source = Source::open(path);
  if (!source.error.empty()) {
    fmt::print(stderr, "{}: error: {} [mlc-codegen]\n", source.name, source.error);
    return 1;
  }
  Build &b = *new Build;  // the process is the lifetime of the nodes
  Module m;
  Diag diag("codegen", &source);
  diag.verbose = options.has("verbose");
  std::string text, error;
  bool ok = read(b, source, m, diag) && check(b, m, diag);
  o.cpp.cuda = !target.empty() || std::any_of(m.items.begin(), m.items.end(), [&](const Item *i) {
    auto *f = as<Func>(i);
    return f && is_synced(b, *f);
  });
  if (ok && o.cpp.cuda && o.emit != Emit::Cpp)
    diag.error(kNowhere, "--emit {}: kernels for a device become CUDA C++ only", options.get("emit")), ok = false;
  o.cpp.command = codegen_command(o);
  ok = ok && codegen(b, m, o, text, diag);
  diag.print(stderr);
  if (!ok) return 1;
  if (!o.folder.empty() || write_all("", text, &error)) return 0;
  fmt::print(stderr, "mlc-codegen: error: cannot write: {}\n", error);
  return 1;
}

}  // namespace

}  // namespace mlc

int main(int argc, char **argv) {
  return mlc::tool_main(argc, argv, {"codegen", "Emit C++ or CUDA C++ for a module, or what LLVM makes of it", "[FILE]", mlc::kOptions, mlc::run_tool});
}
