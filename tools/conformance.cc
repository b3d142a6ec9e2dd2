#include "conformance.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "check/check.h"
#include "codegen.h"
#include "data/compare.h"
#include "data/files.h"
#include "data/npy.h"
#include "interp/interp.h"
#include "num/literal.h"
#include "onnx/import.h"
#include "onnx/proto.h"
#include "onnx/tensor.h"
#include "pipeline.h"
#include "with_llvm.h"

namespace mlc {

namespace fs = std::filesystem;

namespace {

struct Stop {  // the case is decided
  CaseResult result;
};
template <class... A> [[noreturn]] void failed(fmt::format_string<A...> f, A &&...a) {
  throw Stop{{CaseResult::Failed, fmt::format(f, std::forward<A>(a)...)}};
}
template <class... A> [[noreturn]] void skipped(fmt::format_string<A...> f, A &&...a) {
  throw Stop{{CaseResult::Skipped, fmt::format(f, std::forward<A>(a)...)}};
}

std::string first_line(std::string_view s) {
  s = s.substr(0, s.find('\n'));
  return std::string(s.substr(0, 400));
}

std::string read_file(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream s;
  s << in.rdbuf();
  if (!in) failed("{} cannot be read", path);
  return s.str();
}

using onnx::Datum;
}  // namespace
extern const char cuda_header[], cuda_source[];  // share/cuda/mlc_cuda.h, .cc
namespace {

struct DataSet {
  std::vector<Datum> inputs, outputs;
};

// KIND_0.pb, KIND_1.pb .., each of the type that the model gives its input or output.
std::vector<Datum> read_data(const std::string &folder, const char *kind, const std::vector<onnx::ValueInfo> &values) {
  std::vector<Datum> list;
  for (size_t i = 0;; i++) {
    std::string path = fmt::format("{}/{}_{}.pb", folder, kind, i), error;
    if (!fs::exists(path)) return list;
    std::string text = read_file(path);
    onnx::Type type = i < values.size() ? values[i].type : onnx::Type{};
    if (type.kind == onnx::Type::None) type.kind = onnx::Type::Tensor;
    Datum d;
    if (!onnx::read_datum_file(text, type, d, error))
      skipped("not supported here: {}_{}.pb: {}", kind, i, first_line(error));
    list.push_back(std::move(d));
  }
}

struct Case {
  std::string folder, model;
  std::vector<onnx::ValueInfo> inputs, outputs;  // of the model; inputs that are no constants
  std::string bytes;                             // of the model, which they point into
  std::vector<DataSet> sets;
  double rtol = 1e-3, atol = 1e-7;
};

Case load(const std::string &folder) {
  Case c;
  c.folder = folder, c.model = folder + "/model.onnx";
  c.bytes = read_file(c.model);
  std::string error;
  onnx::Model model;
  if (!onnx::read_model(c.bytes, model, error)) failed("invalid model: {}", first_line(error));
  for (const onnx::ValueInfo &v : model.graph.inputs) {
    bool constant = false;
    for (const onnx::Tensor &t : model.graph.initializers) constant |= t.name == v.name;
    if (!constant) c.inputs.push_back(v);
  }
  c.outputs = model.graph.outputs;
  for (int i = 0; fs::exists(fmt::format("{}/test_data_set_{}", folder, i)); i++) {
    std::string set = fmt::format("{}/test_data_set_{}", folder, i);
    c.sets.push_back({read_data(set, "input", c.inputs), read_data(set, "output", c.outputs)});
  }
  if (c.sets.empty()) failed("there is no test_data_set_0");
  if (fs::exists(folder + "/tolerance")) {
    std::istringstream s(read_file(folder + "/tolerance"));
    if (!(s >> c.rtol >> c.atol)) failed("tolerance: expected two numbers");
  }
  return c;
}

// ---- the module

bool is_group(const onnx::ValueInfo &v) {
  return v.type.kind == onnx::Type::Sequence || v.type.kind == onnx::Type::Optional;
}

// What --bind has to say of sequences and optionals: how many elements there are, and their shapes where the type lacks
// them or says another rank.
std::map<std::string, std::string> group_inputs(const Case &c) {
  std::map<std::string, std::string> bind;
  for (size_t i = 0; i < c.inputs.size() && i < c.sets[0].inputs.size(); i++) {
    if (!is_group(c.inputs[i])) continue;
    const Datum &d = c.sets[0].inputs[i];
    const onnx::Type *element = &c.inputs[i].type;
    while (!element->of.empty()) element = &element->of[0];
    std::vector<std::string> shapes;
    bool shaped = element->has_shape;
    for (const Array &a : d.arrays) {
      shapes.push_back(fmt::format("[{}]", fmt::join(a.dims, ", ")));
      shaped &= a.rank() == element->dims.size();
    }
    bind[std::string(c.inputs[i].name)] = d.none   ? "none"
                                          : shaped ? fmt::to_string(d.arrays.size())
                                                   : fmt::format("[{}]", fmt::join(shapes, ", "));
  }
  return bind;
}

// Small inputs of integers, as --bind takes them: what shapes, axes and counts are made of.
std::map<std::string, std::string> small_inputs(const Case &c, bool floats) {
  std::map<std::string, std::string> bind;
  for (size_t i = 0; i < c.inputs.size() && i < c.sets[0].inputs.size(); i++) {
    if (is_group(c.inputs[i])) continue;
    const Array &a = c.sets[0].inputs[i].arrays[0];
    if (a.rank() > 1 || a.size() > 64 || !(is_int(a.type) || a.type == DType::Bool || (floats && is_float(a.type))))
      continue;
    std::vector<std::string> items;
    bool finite = true;
    for (int64_t k = 0; k < a.size(); k++) {
      finite &= !is_float(a.type) || std::isfinite(to_double(a.type, a.get(k)));
      items.push_back(element_text(a.type, a.get(k)));
    }
    if (finite) bind[std::string(c.inputs[i].name)] = a.rank() ? fmt::format("[{}]", fmt::join(items, ", ")) : items[0];
  }
  return bind;
}

struct Scratch {
  std::string path;
  Scratch() {
    std::string pattern = (fs::temp_directory_path() / "mlc-test-XXXXXX").string();
    if (!mkdtemp(pattern.data())) failed("no temporary folder: {}", strerror(errno));
    path = pattern;
  }
  ~Scratch() {
    std::error_code e;
    fs::remove_all(path, e);
  }
};

struct Prepared {
  Program stage;
  std::map<std::string, std::string> bound;  // inputs that became constants
  std::unique_ptr<Scratch> scratch;          // of emitted C++
};

void import(const Case &c, std::map<std::string, std::string> bind, Prepared &p) {
  p.stage.build = std::make_unique<Build>();
  p.bound = bind;
  bind.merge(group_inputs(c));
  std::string errors;
  if (!import_onnx(*p.stage.build, {c.model, std::move(bind), "", false}, p.stage.module, errors)) {
    bool lacks =
        errors.find("not supported here") != std::string::npos && errors.find("invalid model") == std::string::npos;
    if (lacks) skipped("{}", first_line(errors));
    failed("import: {}", first_line(errors));
  }
  Diag diag("import");
  if (!check(*p.stage.build, p.stage.module, diag)) failed("check after import: {}", first_line(diag.messages()[0]));
}

void passes(Program &stage, const CaseOptions &how) {
  bool must_plan = how.route >= Route::Cpp, cuda = how.route == Route::CudaSim;
  Options given;
  std::optional<PipeTarget> target;
  if (!how.target.empty()) {
    std::string error;
    given.values["target"] = {how.target};
    if (!(target = pipe_target(how.target, &error))) failed("--target: {}", error);
  }
  for (const Pass *pass : usual_passes(target)) {
    if (std::find(how.without.begin(), how.without.end(), pass->name) != how.without.end()) continue;
    std::string_view name = pass->name;
    if (cuda && name == "plan") continue;  // after mlc-sync
    Module before = stage.module;  // nodes never change
    char *text = nullptr;
    size_t size = 0;
    FILE *errors = open_memstream(&text, &size);
    bool ok = run_pass(*pass, options_for(*pass, given), stage, false, errors);
    fclose(errors);
    std::string message = first_line({text, size});
    free(text);
    bool unplanned =
        !must_plan && name == "plan" && message.find("cannot be planned") != std::string::npos;
    if (unplanned) stage.module = before;
    else if (!ok && message.find("mlc-run alone") != std::string::npos) skipped("not supported here: {}", message);
    else if (!ok) failed("{}: {}", pass->name, message);
  }
}

// The arrays for the parameters of the entry, those of bound inputs left out.
std::vector<Array> arguments(const Case &c, const Prepared &p, const DataSet &set) {
  std::vector<Array> args;
  for (size_t i = 0; i < set.inputs.size(); i++)
    if (i >= c.inputs.size() || !p.bound.count(std::string(c.inputs[i].name)))
      for (const Array &a : set.inputs[i].arrays) args.push_back(a);
  return args;
}

bool is_sequence(const onnx::Type &t) {
  return t.kind == onnx::Type::Sequence || (t.kind == onnx::Type::Optional && is_sequence(t.of.at(0)));
}

void compare_outputs(const Case &c, const Func &entry, const Build &b, std::vector<Array> outputs, const DataSet &set) {
  std::vector<std::string> names;
  std::vector<Array> tensors;
  for (size_t i = 0; i < entry.results.size() && i < outputs.size(); i++) {  // sizes that are data are results too
    if (!entry.results[i].type->tensor) continue;
    names.emplace_back(b.text(entry.results[i].name));
    tensors.push_back(std::move(outputs[i]));
  }
  size_t next = 0;
  for (size_t i = 0; i < set.outputs.size(); i++) {
    size_t element = 0;
    for (const Array &expected : set.outputs[i].arrays) {
      if (next == tensors.size()) failed("found {} outputs, expected more", tensors.size());
      if (i < c.outputs.size() && is_sequence(c.outputs[i].type)) {  // the elements of y are y_0, y_1 ..
        std::string name = fmt::format("{}_{}", c.outputs[i].name, element++);
        if (names[next] != name) failed("found output {}, expected {}", names[next], name);
      }
      Comparison r = compare(tensors[next], expected, Tolerance::of_suite(expected.type, c.rtol, c.atol));
      if (!r.same()) failed("{}", describe(r, names[next], expected));
      next++;
    }
  }
  if (next < tensors.size() && set.outputs.size() >= c.outputs.size())
    failed("found {} outputs, expected {}", tensors.size(), next);
}

const Func &entry_of(const Prepared &p) {
  const Func *f = entry(*p.stage.build, p.stage.module);
  if (!f) failed("the module has no graph");
  return *f;
}

// The outputs, sizes that are data among them.
std::vector<Array> interpret(const Case &c, const Prepared &p, const DataSet &set, Route route) {
  RunOptions options;
  options.module_path = c.model;
  std::unique_ptr<interp::KernelRunner> runner = route == Route::Jit ? jit_runner(nullptr) : nullptr;
  if (route == Route::Jit && !runner) failed("LLVM does not know this machine");
  options.kernels = runner.get();
  std::vector<Array> outputs;
  RunFault fault;
  if (!run(*p.stage.build, p.stage.module, entry_of(p), arguments(c, p, set), options, outputs, fault))
    failed("run: {}", first_line(fault.message));
  return outputs;
}

// ---- emitted programs

bool emits(const CaseOptions &o) { return o.route >= Route::Cpp; }

// Runs a command without a shell's help but for redirection; its standard error comes back.
bool command(const std::string &line, std::string &errors, const std::string &scratch) {
  std::string log = scratch + "/log";
  int rc = system(fmt::format("{} > {} 2>&1", line, log).c_str());
  std::string text = fs::exists(log) ? read_file(log) : "";
  errors = text;
  for (const char *word : {"error:", "Error", "runtime error", "undefined reference"})
    if (size_t at = text.find(word); at != std::string::npos) {
      size_t start = text.rfind('\n', at);
      errors = text.substr(start == std::string::npos ? 0 : start + 1);
      break;
    }
  errors = first_line(errors);
  if (errors.empty() && rc)
    errors = WIFSIGNALED(rc) ? fmt::format("signal {}", WTERMSIG(rc)) : fmt::format("exit code {}", WEXITSTATUS(rc));
  return rc == 0;
}

void emit(const Case &c, Prepared &p, const CaseOptions &o) {
  p.scratch = std::make_unique<Scratch>();
  CodegenOptions g;
  g.cpp.cuda = o.route == Route::CudaSim;
  if (o.checked) g.cpp.checks = RunChecks::Subscripts;
  g.cpp.name = "model", g.folder = p.scratch->path + "/out", g.with_main = true, g.module_path = c.model;
  Diag diag("codegen");
  std::string text;
  bool made = codegen(*p.stage.build, p.stage.module, g, text, diag);
  if (made && o.route == Route::Object) {
    g.emit = Emit::Object, g.with_main = false;
    made = codegen(*p.stage.build, p.stage.module, g, text, diag);
    for (const char *source : {"/model.cc", "/model_weights.cc"}) fs::remove(g.folder + source);
  }
  if (made) return;
  std::string message = first_line(diag.messages()[0]);
  if (message.find("mlc-run alone") != std::string::npos) skipped("not supported here: {}", message);
  failed("codegen: {}", message);
}

void write_file(const std::string &path, std::string_view text) {
  std::ofstream f(path, std::ios::binary);
  if (!f.write(text.data(), std::streamsize(text.size())).flush()) failed("{} cannot be written", path);
}
// In place at once: several processes share the folder.
void keep(const std::string &folder, const std::string &file, const std::string &as) {
  std::error_code e;
  fs::create_directories(folder, e);
  std::string part = fmt::format("{}.{}", as, getpid());
  fs::copy_file(file, part, e);
  if (!e) fs::rename(part, as, e);
}

// What CUDA programs are linked with here; its header is put beside the sources.
std::string cuda_object(const std::string &dir, const CaseOptions &o) {
  std::string all = o.compiler + cuda_header + cuda_source, cached, errors, object = dir + "/mlc_cuda.o";
  write_file(dir + "/out/mlc_cuda.h", cuda_header);
  if (!o.cache.empty()) cached = o.cache + "/" + sha256_of(std::as_bytes(std::span(all.data(), all.size()))) + ".o";
  if (!cached.empty() && fs::exists(cached)) return cached;
  write_file(dir + "/mlc_cuda.cc", cuda_source);
  if (!command(fmt::format("cd {} && {} -Iout -c mlc_cuda.cc -o {}", dir, o.compiler, object), errors, dir))
    failed("c++: {}", errors);
  if (!cached.empty()) keep(o.cache, object, cached);
  return object;
}

// The program of what was emitted.
std::string compiled(const Prepared &p, const CaseOptions &o) {
  const std::string &dir = p.scratch->path, out = dir + "/out";
  bool cuda = o.route == Route::CudaSim;
  std::string object = cuda ? cuda_object(dir, o) : "";
  std::string sources, errors, all = o.compiler, program = dir + "/model";
  std::vector<fs::path> files;
  for (const auto &e : fs::directory_iterator(out)) files.push_back(e.path());
  std::sort(files.begin(), files.end());
  for (const fs::path &file : files) {
    bool source = file.extension() == ".cc" || file.extension() == ".cu" || file.extension() == ".S" || file.extension() == ".o";
    if (source) sources += " " + file.string();
    if (source || file.extension() == ".h") all += read_file(file.string());
  }
  std::string cached;
  if (!o.cache.empty()) cached = o.cache + "/" + sha256_of(std::as_bytes(std::span(all.data(), all.size())));
  if (!cached.empty() && fs::exists(cached)) return cached;
  if (cuda) sources = fmt::format(" -I. -x c++{} -x none {}", sources, object);
  if (!command(fmt::format("cd {} && {}{} -o {}", out, o.compiler, sources, program), errors, dir))
    failed("c++: {}", errors);
  if (!cached.empty()) keep(o.cache, program, cached);
  return program;
}

std::vector<Array> execute(const std::string &program, const Case &c, const Prepared &p, const DataSet &set) {
  const std::string &dir = p.scratch->path;
  const Func &f = entry_of(p);
  std::vector<Array> args = arguments(c, p, set), outputs;
  std::string line = fmt::format("cd {}/out && {} -o {}/out%d.npy", dir, program, dir), errors;
  if (fs::exists(dir + "/out/model.weights")) line += " --weights model.weights";
  for (size_t i = 0; i < args.size(); i++) {
    std::string path = fmt::format("{}/in{}.npy", dir, i);
    if (!write_npy_file(path, args[i], &errors)) failed("{}", errors);
    line += " " + path;
  }
  if (!command(line, errors, dir)) failed("run: {}", errors);
  for (size_t i = 0; i < f.results.size(); i++) {
    DType t = f.results[i].type->elem;
    Array a;
    std::string path = fmt::format("{}/out{}.npy", dir, i);
    if (!read_npy_file(path, t == DType::Index ? DType::I64 : t, &a, &errors)) failed("run: {}", errors);
    outputs.push_back(std::move(a));
  }
  return outputs;
}

// Everything before the program runs; what is emitted is in `scratch`.
std::optional<CaseResult> prepare(const Case &c, std::map<std::string, std::string> bind, const CaseOptions &options,
                                  Prepared &p) {
  try {
    p = Prepared();
    import(c, std::move(bind), p);
    if (options.adapt) options.adapt(*p.stage.build, p.stage.module);
    if (options.route != Route::Interp) passes(p.stage, options);
    if (emits(options)) emit(c, p, options);
    return {};
  } catch (const Stop &s) {
    return s.result;
  }
}

// What must be known when compiling is taken from the data, as few inputs as do.
Prepared prepare(const Case &c, const CaseOptions &options) {
  Prepared p;
  auto stop = prepare(c, {}, options, p);
  for (bool floats : {false, true}) {
    auto bind = small_inputs(c, floats);
    if (stop && !bind.empty() && c.sets.size() == 1 && !prepare(c, bind, options, p)) stop.reset();
  }
  if (stop) throw Stop{*stop};
  return p;
}

// f, and why it stopped.
template <class F> CaseResult guarded(F f) {
  try {
    f();
    return {CaseResult::Passed, ""};
  } catch (const Stop &s) {
    return s.result;
  } catch (const std::bad_alloc &) {
    return {CaseResult::Failed, "out of memory"};
  } catch (const std::exception &e) {
    return {CaseResult::Failed, first_line(e.what())};
  }
}

}  // namespace

CaseResult run_case(const std::string &folder, const CaseOptions &options) {
  return guarded([&] {
    Case c = load(folder);
    Prepared p = prepare(c, options);
    std::string program = emits(options) ? compiled(p, options) : "";
    for (const DataSet &set : c.sets)
      compare_outputs(c, entry_of(p), *p.stage.build,
                      program.empty() ? interpret(c, p, set, options.route) : execute(program, c, p, set), set);
  });
}

CaseValues case_values(const std::string &folder, const CaseOptions &options) {
  CaseValues v;
  CaseResult r = guarded([&] {
    Case c = load(folder);
    v.rtol = c.rtol, v.atol = c.atol;
    Prepared p = prepare(c, options);
    v.values = emits(options) ? execute(compiled(p, options), c, p, c.sets[0]) : interpret(c, p, c.sets[0], options.route);
    for (const Def &d : entry_of(p).results) v.names.emplace_back(p.stage.build->text(d.name));
    v.values.resize(v.names.size());  // buffers that are read and written are no results
  });
  v.fault = r.reason;
  return v;
}

}  // namespace mlc
