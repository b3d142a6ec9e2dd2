// mlc: a model file in, C++ out: the usual pipe as one command. Between two stages the text is printed and read again, so
// that the result has the bytes of the shell line that -v prints.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "check/check.h"
#include "codegen.h"
#include "emit/names.h"
#include "onnx/import.h"
#include "pass/command.h"
#include "pipeline.h"
#include "text/text.h"
#include "with_llvm.h"

namespace mlc {

namespace {

constexpr OptionSpec kOptions[] = {
    {"output,o", "DIR", "write the project into DIR"},
    {"main", nullptr, "also NAME_main.cc, which runs the model on .npy files"},
    {"checked", nullptr, "check each subscript that is not proved inside its buffer when the program runs"},
    {"emit", "FORM", "cpp; llvm, LLVM's assembly; or obj, an object file"},
    {"name", "NAME", "prefix of files and external names (otherwise that of MODEL)"},
    {"target", "TARGET", "schedule kernels for a machine: the name of a target, or a FILE.mlc that holds one"},
    {"bind", "NAME=VALUE", "fix a dimension (n=8) or an input (axes=[0, 2]), which becomes a constant"},
    {"include,I", "DIR", "look for weight files here first; repeated"},
    {"library,l", "NAME", "map operators to functions of blas, onednn, cublaslt, or of a FILE.mlc; repeated"},
    {"keep", "DIR", "leave the text of every stage in DIR, as numbered files"},
    {"strict", nullptr, "keep the order of every sum and grant no licence that changes a result"},
};

// A word as the shell reads it back.
std::string shell(const std::string &word) {
  static const char *kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:@%+";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string out = "'";
  for (char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string folder_of(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

class Driver {
 public:
  explicit Driver(const Options &options) : options_(options), verbose_(options.has("verbose")) {}

  int run() {
    if (options_.files.size() != 1) return usage(fmt::format("expected one MODEL, found {}", options_.files.size()));
    if (!options_.has("output")) return usage("expected -o DIR");
    model_ = options_.files[0];
    codegen_.cpp.name = options_.get("name", model_name(model_));
    if (project_name(codegen_.cpp.name) != codegen_.cpp.name)
      return usage(fmt::format("--name {}: expected an identifier such as {}", codegen_.cpp.name, project_name(codegen_.cpp.name)));
    if (options_.has("target")) {
      std::string error;
      target_ = pipe_target(options_.get("target"), &error);
      if (!target_) return usage("--target: " + error);
      codegen_.cpp.cuda = target_->cuda;
    }
    if (auto bound = options_.bindings(); is_text() && !bound.empty())
      return usage(fmt::format("--bind {}: a module has its sizes already", bound.begin()->first));
    codegen_.folder = options_.get("output");
    codegen_.with_main = options_.has("main");
    if (options_.has("checked")) codegen_.cpp.checks = RunChecks::Subscripts;
    if (std::string emit = options_.get("emit", "cpp"); !set_emit(emit, codegen_))
      return usage(fmt::format("--emit {}: expected cpp, llvm or obj", emit));
    if (std::string why = conflict(codegen_); !why.empty()) return usage(why);
    if (codegen_.emit != Emit::Cpp && !with_llvm("mlc")) return 1;
    codegen_.folders = options_.all("include");
    codegen_.folders.push_back(folder_of(model_));
    codegen_.cpp.command = codegen_command(codegen_);
    if (verbose_) fmt::print(stderr, "{}\n", line());
    for (const char *option : {"output", "keep"}) {
      std::string folder = options_.get(option);
      std::error_code e;
      if (std::filesystem::exists(folder, e) && !std::filesystem::is_directory(folder, e))
        return fail(fmt::format("{}: expected a folder, found a file", folder));
    }
    if (options_.has("keep")) {
      std::error_code e;
      std::filesystem::create_directories(options_.get("keep"), e);
      if (e) return fail(fmt::format("{}: {}", options_.get("keep"), e.message()));
    }
    if (model_ == "-")
      if (std::string error = take_stdin(); !error.empty()) return fail("<stdin>: " + error);

    auto start = std::chrono::steady_clock::now();
    auto said = [&](const char *stage) {
      auto now = std::chrono::steady_clock::now();
      if (verbose_) fmt::print(stderr, "mlc: {:<9}{:8.2f} ms\n", stage, std::chrono::duration<double, std::milli>(now - start).count());
      start = std::chrono::steady_clock::now();
    };
    if (!import() || !kept("import")) return 1;
    said("import");
    for (const Pass *pass : passes()) {
      if (!run_pass(*pass, options_for(*pass, options_), stage_, verbose_, stderr) || !kept(pass->name)) return failed();
      said(pass->name);
    }
    Diag diag("codegen", stage_.source.get());
    diag.verbose = verbose_;
    std::string text;
    bool ok = codegen(*stage_.build, stage_.module, codegen_, text, diag);
    diag.print(stderr);
    said("codegen");
    return ok ? 0 : failed();
  }

 private:
  int usage(const std::string &message) {
    fmt::print(stderr, "mlc: error: {}; mlc --help tells the options\n", message);
    return 2;
  }
  int fail(const std::string &message) {
    fmt::print(stderr, "mlc: error: {}\n", message);
    return 1;
  }

  // The usual ones, and behind simplify the one that --library asks for.
  std::vector<const Pass *> passes() const {
    std::vector<const Pass *> all = usual_passes(target_);
    if (codegen_.cpp.cuda) all.pop_back();  // arenas are planned behind mlc-sync, which mlc-codegen runs
    auto first = std::find(all.begin(), all.end(), pass_named("simplify"));
    if (options_.has("library") && first != all.end()) all.insert(first + 1, pass_named("dispatch"));
    return all;
  }

  bool is_text() const { return text_ || model_.ends_with(".mlc"); }

  // Standard input may be a model or a module: it is put where it can be read again once that is known.
  std::string take_stdin() {
    Source s = Source::open("-");
    if (!s.error.empty()) return s.error;
    int fd = memfd_create("model", MFD_CLOEXEC);
    for (size_t at = 0; fd >= 0 && at < s.text.size();) {
      ssize_t n = write(fd, s.text.data() + at, s.text.size() - at);
      if (n < 0 && errno != EINTR) return strerror(errno);
      at += size_t(std::max<ssize_t>(n, 0));
    }
    if (fd < 0 || lseek(fd, 0, SEEK_SET) != 0 || dup2(fd, STDIN_FILENO) < 0) return strerror(errno);
    text_ = s.text.empty() || unsigned(s.text[0]) > 8;
    return "";
  }

  // Errors of a stage whose text is not kept refer to a file that there is not.
  int failed() {
    if (number_ > 2 && !options_.has("keep"))
      fmt::print(stderr, "mlc: note: --keep DIR leaves {}\n", stage_.source->name);
    return 1;
  }

  // The shell line that this run stands for.
  std::string line() const {
    std::string s = is_text() ? "cat" : "mlc-import";
    for (const std::string &b : options_.all("bind")) s += " --bind " + shell(b);
    s += " " + shell(model_);
    for (const Pass *p : passes()) {
      s += std::string(" | mlc-") + p->name;
      for (auto &[name, values] : options_for(*p, options_).values) {
        if (values.empty()) s += " --" + name;
        for (const std::string &v : values) s += " --" + name + (v.empty() ? "" : " " + shell(v));
      }
    }
    s += " | mlc-codegen --name " + codegen_.cpp.name;
    if (codegen_.cpp.cuda) s += " --target cuda-sm_80";
    if (options_.has("emit")) s += " --emit " + options_.get("emit");
    if (codegen_.with_main) s += " --main";
    if (options_.has("checked")) s += " --checked";
    for (const std::string &folder : options_.all("include")) s += " -I " + shell(folder);
    if (std::string folder = folder_of(model_); folder != ".") s += " -I " + shell(folder);
    return s + " -o " + shell(codegen_.folder);
  }

  bool import() {
    if (is_text()) {
      stage_.source = std::make_unique<Source>(Source::open(model_));
      if (!stage_.source->error.empty()) return fail(fmt::format("{}: {}", model_, stage_.source->error)), false;
      stage_.build = std::make_unique<Build>();
      Diag diag("mlc", stage_.source.get());
      bool ok = read(*stage_.build, *stage_.source, stage_.module, diag) && check(*stage_.build, stage_.module, diag);
      diag.print(stderr);
      return ok;
    }
    ImportOptions o{model_, options_.bindings(), "", false};
    stage_.build = std::make_unique<Build>();
    std::string errors;
    if (import_onnx(*stage_.build, o, stage_.module, errors)) return true;
    for (size_t i = 0; i < errors.size();) {
      size_t end = std::min(errors.find('\n', i), errors.size());
      fmt::print(stderr, "{}: error: {} [mlc-import]\n", model_, errors.substr(i, end - i));
      i = end + 1;
    }
    return false;
  }

  // The stage's text, kept if that was asked for; what follows refers to it.
  bool kept(const std::string &stage) {
    std::string name = fmt::format("{}-{}.mlc", number_++, stage);
    if (options_.has("keep")) {
      name = options_.get("keep") + "/" + name;
      std::string error;
      auto text = [&](const Sink &sink) { print(*stage_.build, stage_.module, sink); };
      if (!write_all(name, text, &error)) return fail("cannot write: " + error), false;
    }
    return reread(stage_, name, stderr, stage);
  }

  const Options &options_;
  bool verbose_;
  std::string model_;
  bool text_ = false;  // standard input is a module
  CodegenOptions codegen_;
  std::optional<PipeTarget> target_;
  Program stage_;
  int number_ = 1;
};

}  // namespace

}  // namespace mlc

int main(int argc, char **argv) {
  return mlc::tool_main(argc, argv, {"", "A model file in, readable C++ out: the usual pipe as one command", "MODEL", mlc::kOptions,
                                     [](const mlc::Options &o) { return mlc::Driver(o).run(); }});
}
