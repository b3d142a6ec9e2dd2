// mlc-run: runs a module in the reference interpreter, at any stage.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "check/check.h"
#include "data/compare.h"
#include "data/files.h"
#include "data/npy.h"
#include "interp/interp.h"
#include "interp/sample.h"
#include "onnx/tensor.h"
#include "pass/pass.h"
#include "text/text.h"
#include "with_llvm.h"

namespace mlc {
namespace {

constexpr OptionSpec kOptions[] = {
    {"entry", "NAME", "run this function; without it @main, the first graph, or the only kernel"},
    {"input,i", "FILE", "the next input, .npy or .pb (an ONNX TensorProto); repeated"},
    {"random", "SEED", "inputs that no file gives are random"},
    {"bind", "NAME=N", "size of a dimension, value of an index parameter; repeated"},
    {"output,o", "FILE", "write output %d of the run to FILE (.npy), as in -o out%d.npy"},
    {"expect", "FILE", "what the next output must be, .npy or .pb; repeated"},
    {"rtol", "X", "tolerance of --expect relative to the value expected; 0"},
    {"atol", "X", "tolerance of --expect; 0"},
    {"jit", nullptr, "compile kernels with LLVM"},
    {"repeat", "N", "run N times and tell the median time of a run on stderr"},
    {"strict", nullptr, "keep the order of every sum, as is done in any case"},
    {"backwards", nullptr, "take the turns of order-free loops from the last to the first"},
    {"check", nullptr, "look for turns of order-free loops that touch the same element"},
    {"trust", nullptr, "do not look for reads of elements never written"},
    {"memory", "BYTES", "bytes that all buffers together may have; 4294967296"},
    {"include,I", "DIR", "look for weight files here first; repeated"},
};

int refuse(const std::string &message) {
  fprintf(stderr, "mlc-run: error: %s\n", message.c_str());
  return 1;
}

bool read_array(const std::string &path, DType want, Array &a, std::string &error) {
  if (path.ends_with(".npy")) return read_npy_file(path, want, &a, &error);
  Mapped file;
  if (!file.open(path, &error)) return error = path + ": " + error, false;
  std::string_view text(reinterpret_cast<const char *>(file.bytes().data()), file.bytes().size());
  if (!onnx::read_tensor_file(text, a, error)) return error = path + ": " + error, false;
  if (want != DType::Invalid && a.type != want)
    return error = fmt::format("{}: expected {}, found {}", path, dtype_name(want), dtype_name(a.type)), false;
  return true;
}

int run_tool(const Options &options) {
  if (options.files.size() > 1) return fprintf(stderr, "mlc-run: error: one FILE at most\n"), 2;
  bool jit = options.has("jit");
  for (const char *other : {"backwards", "check"})
    if (jit && options.has(other)) return fprintf(stderr, "mlc-run: error: --%s looks into kernels, which --jit compiles\n", other), 2;
  if (jit && !with_llvm("mlc-run")) return 1;
  double rtol = options.real("rtol", 0), atol = options.real("atol", 0);
  int64_t repeat = options.whole("repeat", 1, 1);
  uint64_t seed = uint64_t(options.whole("random", 0));
  int64_t memory = options.whole("memory", RunOptions().memory, 0);
  std::map<std::string, int64_t> sizes = options.sizes();
  Source source = Source::open(options.files.empty() ? "-" : options.files[0]);
  if (!source.error.empty()) {
    fprintf(stderr, "%s: error: %s [mlc-run]\n", source.name.c_str(), source.error.c_str());
    return 1;
  }
  Build &b = *new Build;
  Module m;
  Diag diag("run", &source);
  bool ok = read(b, source, m, diag) && check(b, m, diag);
  diag.print(stderr);
  if (!ok) return 1;

  std::string wanted = options.get("entry");
  if (!wanted.empty() && wanted[0] == '@') wanted.erase(0, 1);
  const Func *f = wanted.empty() ? entry_to_run(b, m) : m.func(b.sym(wanted));
  if (!f)
    return refuse(wanted.empty() ? "no graph, nor one kernel; --entry NAME names what to run"
                                 : fmt::format("no function @{}", wanted));

  for (auto &[name, n] : sizes)
    if (auto known = size_names(b, *f); std::find(known.begin(), known.end(), name) == known.end())
      throw UsageError{no_such_size(name, b.text(f->name), known)};
  std::vector<const Param *> params;
  for (const Param &p : f->params)
    if (p.mode != Mode::Scratch) params.push_back(&p);
  std::string error;
  std::vector<Array> inputs;
  auto files = options.all("input");
  if (files.size() > params.size())
    return refuse(fmt::format("@{} has {} inputs, found {}", b.text(f->name), params.size(), files.size()));
  for (size_t i = 0; i < files.size(); i++) {
    DType t = params[i]->def.type->elem;
    Array a;
    if (!read_array(files[i], t == DType::Index ? DType::I64 : t, a, error)) return refuse(error);
    inputs.push_back(std::move(a));
  }
  if (!sizes_from(b, *f, inputs, sizes, error)) return refuse(error);
  if (inputs.size() < params.size()) {
    std::vector<InputSpec> specs;
    std::mt19937_64 random{seed};
    if (!input_specs(b, *f, sizes, specs, error)) return refuse(error + "; --bind NAME=N says it");
    for (size_t i = inputs.size(); i < specs.size(); i++) {
      std::string name(b.text(specs[i].param->def.name));
      if (specs[i].type == DType::Index && sizes.count(name)) {
        Array a(DType::I64, {});
        a.set(0, Scalar::of_int(sizes[name]));
        inputs.push_back(a);
      } else if (!options.has("random")) {
        return refuse(
            fmt::format("no --input for {}: {}; --random SEED makes one", name, print(b, specs[i].param->def.type)));
      } else {
        bool indices = is_int(specs[i].type) && info(specs[i].type).bits >= 32;
        inputs.push_back(sample(specs[i].type, specs[i].dims, random, false, indices));
      }
    }
  }

  RunOptions run_options;
  run_options.check_undefined = !options.has("trust");
  run_options.races = options.has("check");
  run_options.backwards = options.has("backwards");
  run_options.folders = options.all("include");
  run_options.module_path = options.files.empty() ? "" : options.files[0];
  run_options.print = stderr;
  run_options.memory = memory;
  std::unique_ptr<interp::KernelRunner> runner = jit ? jit_runner(options.has("verbose") ? stderr : nullptr) : nullptr;
  if (jit && !runner) return refuse("--jit: LLVM does not know this machine");
  run_options.kernels = runner.get();
  std::vector<double> seconds;
  run_options.repeat = repeat, run_options.seconds = &seconds;
  std::vector<Array> outputs;
  RunFault fault;
  if (!run(b, m, *f, inputs, run_options, outputs, fault)) {
    diag.error(fault.at, "{}", fault.message);
    diag.print(stderr);
    return 1;
  }
  if (options.has("repeat")) {
    std::nth_element(seconds.begin(), seconds.begin() + ptrdiff_t(seconds.size() / 2), seconds.end());
    fmt::print(stderr, "mlc-run: {:.1f} us, the median of {}\n", seconds[seconds.size() / 2] * 1e6, counted(seconds.size(), "run"));
  }

  std::vector<std::string> names;
  for (const Def &d : f->results) names.emplace_back(b.text(d.name));
  for (const Param &p : f->params)
    if (p.mode == Mode::Inout) names.emplace_back(b.text(p.def.name));
  auto expected = options.all("expect");
  if (expected.size() > outputs.size())
    return refuse(fmt::format("the run has {} outputs, found {} to expect", outputs.size(), expected.size()));
  for (size_t i = 0; i < expected.size(); i++) {
    Array want;
    if (!read_array(expected[i], outputs[i].type == DType::Index ? DType::I64 : outputs[i].type, want, error))
      return refuse(error);
    if (outputs[i].type == DType::Index) outputs[i].type = DType::I64;
    Comparison c = compare(outputs[i], want, rtol || atol ? Tolerance::close(rtol, atol) : Tolerance::exact(true));
    if (!c.same()) return refuse(describe(c, names[i], want));
  }
  std::string pattern = options.get("output"), text;
  if (!pattern.empty()) {
    size_t at = pattern.find("%d");
    if (at == std::string::npos && outputs.size() > 1) return refuse("-o FILE needs a %d: there are several outputs");
    for (size_t i = 0; i < outputs.size(); i++) {
      if (outputs[i].type == DType::Index) outputs[i].type = DType::I64;
      std::string path = pattern;
      if (at != std::string::npos) path.replace(at, 2, std::to_string(i));
      if (!write_npy_file(path, outputs[i], &error)) return refuse(error);
    }
    return 0;
  }
  if (!expected.empty()) return 0;
  for (size_t i = 0; i < outputs.size(); i++) text += array_text(names[i], outputs[i]) + "\n";
  fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace
}  // namespace mlc

int main(int argc, char **argv) {
  return mlc::tool_main(
      argc, argv,
      {"run", "Run a module in the reference interpreter, at any stage", "[FILE]", mlc::kOptions, mlc::run_tool});
}
