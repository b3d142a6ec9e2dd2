#include "codegen.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "data/files.h"
#include "emit/names.h"
#include "interp/interp.h"
#include "pipeline.h"
#include "with_llvm.h"

namespace mlc {

namespace {

// Bytes of constants: mapped where they lie in a file, else computed.
class Constants {
 public:
  Constants(Build &b, const Module &m, const CodegenOptions &o, Diag &diag)
      : b_(b), m_(m), o_(o), diag_(diag), files_(o.folders, o.module_path) {}

  bool get(const Weight &w, std::span<const std::byte> *out) {
    const Const &c = *w.constant;
    std::string error;
    if (!c.value) {
      int64_t bytes = -1;
      std::string_view hash;
      for (const Item *i : m_.items) {
        auto *f = as<File>(i);
        if (!f || f->path != c.path) continue;
        if (const Expr *e = attr(b_, f->attrs, "bytes")) int_value(e, &bytes);
        if (auto *s = as<Str>(attr(b_, f->attrs, "sha256"))) hash = s->value;
      }
      const Mapped *file = files_.open(c.path, bytes, hash, &error);
      if (file && !slice(*file, c.offset, w.bytes, out)) error = fmt::format("{}: the file ends before it", c.path);
    } else {
      RunOptions run;
      run.memory = INT64_MAX;
      run.folders = o_.folders, run.module_path = o_.module_path;
      RunFault fault;
      if (!evaluate(b_, m_, c, run, computed_, fault)) error = fault.message;
      else if (computed_.bytes.size() != size_t(w.bytes)) error = "its value has another size";
      *out = computed_.bytes;
    }
    if (!error.empty()) diag_.error(c.at, "constant @{}: {}", b_.text(c.name), error);
    return error.empty();
  }

 private:
  Build &b_;
  const Module &m_;
  const CodegenOptions &o_;
  Diag &diag_;
  Files files_;
  Array computed_;
};

// Files of a folder that appear all at once: each is written under another name, and renamed by `done`.
class Folder {
 public:
  Folder(const std::string &path, Diag &diag) : path_(path), diag_(diag) {
    std::error_code e;
    made_ = std::filesystem::create_directories(path, e);
    if (e) fail(path, e.message());
  }
  ~Folder() {
    std::error_code e;
    for (const std::string &name : written_) std::filesystem::remove(temporary(name), e);
    if (made_ && !done_) std::filesystem::remove(path_, e);
  }
  template <class F> void write(const std::string &name, const F &put) {
    if (failed_) return;
    FILE *f = fopen(temporary(name).c_str(), "wb");
    if (!f) return fail(name, strerror(errno));
    written_.push_back(name);
    errno = 0;
    bool ok = put(f);
    std::string error = errno ? strerror(errno) : "";
    if (fclose(f) != 0 || !ok) fail(name, error.empty() ? strerror(errno) : error);
  }
  void write(const std::string &name, const std::string &text) {
    write(name, [&](FILE *f) { return fwrite(text.data(), 1, text.size(), f) == text.size(); });
  }
  void done() {
    if (failed_ || diag_.errors()) return;
    for (const std::string &name : written_)
      if (std::string why = refused(name); !why.empty()) return fail(name, why);
    for (; !written_.empty(); written_.pop_back()) {
      std::error_code e;
      std::filesystem::rename(temporary(written_.back()), path_ + "/" + written_.back(), e);
      if (e) return fail(written_.back(), e.message());
    }
    done_ = true;
  }

 private:
  // Why a file of that name cannot be replaced; "" if it can.
  std::string refused(const std::string &name) const {
    std::string path = path_ + "/" + name;
    if (!std::filesystem::exists(path)) return "";
    if (!std::filesystem::is_regular_file(path)) return "there is something else of that name";
    if (access(path.c_str(), W_OK) != 0) return strerror(errno);
    if (name != "CMakeLists.txt" && !name.ends_with(".mk")) return "";
    std::ifstream old(path);
    std::string head(4096, 0);
    old.read(head.data(), 4096);
    return head.find("Made by: mlc") == std::string::npos ? "there is one that mlc did not make" : "";
  }
  std::string temporary(const std::string &name) const { return path_ + "/." + name + ".part"; }
  void fail(const std::string &name, const std::string &why) {
    if (!diag_.errors()) diag_.error(kNowhere, "{}: cannot be written: {}", name, why);
    failed_ = true;
  }
  std::string path_;
  Diag &diag_;
  std::vector<std::string> written_;
  bool made_ = false, failed_ = false, done_ = false;
};

bool put_weights(const CppModel &model, Constants &constants, FILE *f) {
  int64_t at = 0;
  auto pad = [&](int64_t to) {
    for (; at < to; at++)
      if (putc(0, f) == EOF) return false;
    return true;
  };
  for (const Weight &w : model.weights) {
    std::span<const std::byte> bytes;
    if (!constants.get(w, &bytes) || !pad(w.offset)) return false;
    if (fwrite(bytes.data(), 1, bytes.size(), f) != bytes.size()) return false;
    at += w.bytes;
  }
  return pad(model.weight_bytes);
}

}  // namespace

std::string model_name(const std::string &path) {
  std::string stem = path.substr(path.rfind('/') + 1);
  if (size_t dot = stem.rfind('.'); dot != std::string::npos && dot > 0) stem.resize(dot);
  return stem.empty() || stem == "-" ? "model" : project_name(stem);
}

bool codegen(Build &b, Module &m, const CodegenOptions &o, std::string &text, Diag &diag) {
  finish(b, m, diag, o.cpp.cuda);
  CppModel model;
  if (diag.errors() || !emit_model(b, m, o.cpp, model, diag)) return false;
  Constants constants(b, m, o, diag);
  auto bytes_of = [&](const Weight &w) {
    std::span<const std::byte> bytes;
    return constants.get(w, &bytes) ? bytes : std::span<const std::byte>();
  };
  std::string compiled;
  bool cpp = o.emit == Emit::Cpp;
  if (!cpp && !llvm_model(b, m, o.cpp, model, bytes_of, o.emit == Emit::Llvm, compiled, diag)) return false;
  std::string weights;
  if (cpp && model.form == WeightForm::Text && !model.weights.empty()) {
    weights = weight_text(b, model, o.cpp, bytes_of);
    if (diag.errors()) return false;
  }
  diag.remark("@{}: {} inputs, {} outputs, {} bytes of weights", b.text(model.entry->name), model.inputs.size(),
              model.outputs.size(), model.weight_bytes);
  if (o.folder.empty()) {
    text = cpp ? model.source + weights : compiled;
    return true;
  }
  Folder folder(o.folder, diag);
  const std::string &n = o.cpp.name;
  folder.write(n + ".h", model.header);
  if (!cpp) {
    folder.write(n + (o.emit == Emit::Llvm ? ".ll" : ".o"), compiled);
    if (model.form == WeightForm::File && !model.weights.empty())
      folder.write(n + ".weights", [&](FILE *f) { return put_weights(model, constants, f); });
    folder.done();
    return !diag.errors();
  }
  folder.write(n + "." + model.extension, model.source);
  if (weights.empty() && o.cpp.weights == WeightForm::Text) weights = fmt::format("// {} has no weights\n", n);  // as make expects
  if (!weights.empty()) folder.write(n + "_weights.cc", weights);
  bool file = (model.form == WeightForm::File || model.form == WeightForm::Object) && !model.weights.empty();
  if (file) folder.write(n + ".weights", [&](FILE *f) { return put_weights(model, constants, f); });
  if (file && model.form == WeightForm::Object) folder.write(n + "_weights.S", assembly_text(o.cpp));
  if (o.with_main) folder.write(n + "_main." + model.extension, main_text(b, model, o.cpp));
  folder.write("CMakeLists.txt", cmake_text(model, o.cpp, o.with_main));
  folder.write(n + ".mk", make_text(model, o.cpp, o.with_main));
  folder.done();
  return !diag.errors();
}

bool set_emit(std::string_view form, CodegenOptions &o) {
  if (form == "cpp") return true;
  o.emit = form == "llvm" ? Emit::Llvm : Emit::Object;
  o.cpp.form = form == "llvm" ? "LLVM's assembly" : "an object file";
  return form == "llvm" || form == "obj";
}

std::string conflict(const CodegenOptions &o) {
  const char *form = o.emit == Emit::Llvm ? "llvm" : "obj";
  bool text = o.cpp.weights == WeightForm::Text;
  if (o.emit != Emit::Cpp && (o.with_main || text))
    return fmt::format("--emit {} writes no C++: {} is not for it", form, o.with_main ? "--main" : "--weights text");
  return o.emit == Emit::Object && o.folder.empty() ? "--emit obj needs -o DIR" : "";
}

std::string codegen_command(const CodegenOptions &o) {
  static constexpr const char *kForms[] = {"", "file", "text", "object"};
  std::string line = "mlc-codegen --name " + o.cpp.name;
  if (o.cpp.cuda) line += " --target cuda-sm_80";
  if (o.cpp.weights != WeightForm::Auto) line += fmt::format(" --weights {}", kForms[int(o.cpp.weights)]);
  if (o.emit != Emit::Cpp) line += o.emit == Emit::Llvm ? " --emit llvm" : " --emit obj";
  if (o.with_main) line += " --main";
  if (o.cpp.checks != RunChecks::Assumed) line += o.cpp.checks == RunChecks::None ? " --unchecked" : " --checked";
  return o.folder.empty() ? line : line + " -o .";
}

}  // namespace mlc
