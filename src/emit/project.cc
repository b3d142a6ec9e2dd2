// The files around the emitted code: weights as text or linked in, build files.
#include "emit/helpers.h"
#include "emit/expr.h"
#include "emit/model.h"
#include "num/convert.h"
#include "text/text.h"

namespace mlc {
namespace {

// An element as it is stored: bits for what C++ has no type for.
std::string stored(DType t, const std::byte *p, size_t i) {
  if (t == DType::F32 || t == DType::F64) return literal(t, load(t, p, i));
  if (is_float(t)) {
    int digits = info(t).bits / 4;
    return fmt::format("0x{:0{}x}", to_bits(t, load(t, p, i)), digits);
  }
  return t == DType::Bool ? fmt::format("{}", uint8_t(p[i])) : literal(t, load(t, p, i));
}

std::string made_by(const CppOptions &o, std::string_view mark) {
  return o.command.empty() ? "" : fmt::format("{} Made by: {}\n", mark, comment_text(o.command));
}

}  // namespace

std::string weight_text(const Build &b, const CppModel &model, const CppOptions &o,
                        const std::function<std::span<const std::byte>(const Weight &)> &bytes) {
  std::string s;
  if (o.one_file) {
    s = o.cuda ? "\n#if !defined(__CUDACC_RTC__)\n" : "\n";  // they are the host's
    s += fmt::format("const {0}_weights {0}_weights_data = {{\n", o.name);
  } else {
    s = fmt::format("// {0}: its weights.\n{1}#include \"{0}.h\"\n\n", o.name, made_by(o, "//")) + model.weight_struct;
    s += fmt::format("\nextern const {0}_weights {0}_weights_data;\nconst {0}_weights {0}_weights_data = {{\n", o.name);
  }
  for (const Weight &w : model.weights) {
    std::span<const std::byte> data = bytes(w);
    DType t = w.constant->type->elem;
    bool packed = info(t).bits < 8;  // as bytes
    if (packed) t = DType::U8;
    size_t n = data.size() / size_t(info(t).bits / 8);
    std::string name = "@" + print_name(b, w.constant->name);
    comment_lines(s, "  ", comment_text(name + ": " + print(b, w.constant->type)));
    std::string line = "  {";
    for (size_t i = 0; i < n; i++) {
      std::string item = stored(t, data.data(), i) + (i + 1 < n ? "," : "");
      if (line.size() + item.size() > 112) s += line + "\n", line = "  ";
      line += (line.size() > 3 ? " " : "") + item;
    }
    s += line + "},\n";
  }
  return s + (o.one_file && o.cuda ? "};\n#endif\n" : "};\n");
}

std::string assembly_text(const CppOptions &o) {
  return fmt::format("// {0}: its weights, the bytes of {0}.weights.\n{1}"
                     "  .section .rodata\n  .balign 64\n  .globl {0}_weights_data\n"
                     "  .type {0}_weights_data, %object\n{0}_weights_data:\n  .incbin \"{0}.weights\"\n"
                     "  .size {0}_weights_data, . - {0}_weights_data\n  .section .note.GNU-stack,\"\",%progbits\n",
                     o.name, made_by(o, "//"));
}

// What the libraries of externs need.
static std::string cmake_links(const CppModel &model, const CppOptions &o) {
  if (model.links.empty()) return "";
  std::string s = fmt::format("target_link_libraries({} PUBLIC", o.name);
  for (const std::string &l : model.links) s += " " + (l.starts_with("-l") ? l.substr(2) : l);
  return s + ")\n";
}
static std::string make_links(const CppModel &model, const CppOptions &o) {
  if (model.links.empty()) return "";
  std::string s = fmt::format("{}_libraries :=", o.name);
  for (const std::string &l : model.links) s += " " + l;
  return s + "\n";
}

namespace {

struct Language {
  std::string_view source;                              // how the main file ends
  std::string_view version, languages, set_up;          // CMake's
  std::string_view features, options;                   // of the library
  std::string_view variables, compile, link;            // make's
};
constexpr std::string_view kCompileHost = "$(CXX) -std=c++17 -O2 $(CXXFLAGS)";
constexpr Language kHost = {"cc", "3.10", "CXX", "", "cxx_std_17", "", "", kCompileHost, kCompileHost};
constexpr Language kCuda = {
    "cu", "3.18", "CXX CUDA",
    "if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)\n  set(CMAKE_CUDA_ARCHITECTURES 80)\nendif()\n",
    "cxx_std_17 cuda_std_17", " PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false>)\n",
    "NVCC ?= nvcc\nNVCCFLAGS ?= -arch=sm_80\n", "$(NVCC) -std=c++17 -O3 -fmad=false $(NVCCFLAGS)",
    "$(NVCC) -std=c++17 -O2 $(NVCCFLAGS)"};

}  // namespace

std::string cmake_text(const CppModel &model, const CppOptions &o, bool with_main) {
  const Language &in = o.cuda ? kCuda : kHost;
  bool object = model.form == WeightForm::Object && !model.weights.empty();
  bool text = model.form == WeightForm::Text && !model.weights.empty();
  std::string s = fmt::format("# {0}: a library{1}.\n{2}cmake_minimum_required(VERSION {4})\n"
                              "project({0} LANGUAGES {5}{3})\n"
                              "if(NOT CMAKE_BUILD_TYPE)\n  set(CMAKE_BUILD_TYPE Release)\nendif()\n{6}",
                              o.name, with_main ? fmt::format(", and {}_main that runs it on .npy files", o.name) : "",
                              made_by(o, "#"), object ? " ASM" : "", in.version, in.languages, in.set_up);
  s += fmt::format("add_library({0} STATIC {0}.{1}{2})\n", o.name, in.source,
                   text ? " " + o.name + "_weights.cc" : object ? " " + o.name + "_weights.S" : "");
  s += fmt::format("target_compile_features({} PUBLIC {})\n", o.name, in.features);
  if (!in.options.empty()) s += fmt::format("target_compile_options({}{}", o.name, in.options);
  s += fmt::format("target_include_directories({} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})\n", o.name);
  s += cmake_links(model, o);
  if (object)
    s += fmt::format("set_source_files_properties({0}_weights.S PROPERTIES\n"
                     "  COMPILE_OPTIONS -Wa,-I,${{CMAKE_CURRENT_SOURCE_DIR}}\n"
                     "  OBJECT_DEPENDS ${{CMAKE_CURRENT_SOURCE_DIR}}/{0}.weights)\n", o.name);
  if (with_main) {
    s += fmt::format("add_executable({0}_main {0}_main.{1})\ntarget_link_libraries({0}_main PRIVATE {0})\n", o.name,
                     in.source);
    if (model.form == WeightForm::File && !model.weights.empty())
      s += fmt::format("target_compile_definitions({0}_main PRIVATE\n"
                       "  WEIGHTS=\"${{CMAKE_CURRENT_SOURCE_DIR}}/{0}.weights\")\n", o.name);
  }
  return s;
}

std::string make_text(const CppModel &model, const CppOptions &o, bool with_main) {
  const Language &in = o.cuda ? kCuda : kHost;
  bool object = model.form == WeightForm::Object && !model.weights.empty();
  bool text = model.form == WeightForm::Text && !model.weights.empty();
  std::string weights = text || object ? fmt::format(" $({0}_dir){0}_weights.o", o.name) : "";
  std::string s = fmt::format("# {0}: to be included, for $({0}_objects), or by itself: make -f {0}.mk\n", o.name);
  s += made_by(o, "#") + fmt::format("{2}{0}_dir := $(dir $(lastword $(MAKEFILE_LIST)))\n"
                                     "{0}_objects := $({0}_dir){0}.o{1}\n", o.name, weights, in.variables);
  std::string libraries = model.links.empty() ? "" : fmt::format(" $({}_libraries)", o.name);
  s += make_links(model, o) + "\n";
  std::string all = with_main ? fmt::format("$({0}_dir){0}_main", o.name) : fmt::format("$({}_objects)", o.name);
  s += fmt::format(".PHONY: {0}\n{0}: {1}\n\n", o.name, all);
  s += fmt::format("$({0}_dir){0}.o: $({0}_dir){0}.{1} $({0}_dir){0}.h\n"
                   "\t{2} -c -o $@ $<\n", o.name, in.source, in.compile);
  if (text)
    s += fmt::format("$({0}_dir){0}_weights.o: $({0}_dir){0}_weights.cc $({0}_dir){0}.h\n"
                     "\t{1} -c -o $@ $<\n", o.name, kHost.compile);
  if (object)
    s += fmt::format("$({0}_dir){0}_weights.o: $({0}_dir){0}_weights.S $({0}_dir){0}.weights\n"
                     "\t$(CXX) -Wa,-I,$({0}_dir) -c -o $@ $<\n", o.name);
  if (with_main)
    s += fmt::format("$({0}_dir){0}_main: $({0}_dir){0}_main.{2} $({0}_dir){0}.h $({0}_objects)\n"
                     "\t{3} -o $@ $< $({0}_objects) $(LDFLAGS){1}\n", o.name, libraries, in.source, in.link);
  return s;
}

}  // namespace mlc
