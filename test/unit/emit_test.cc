// Emitted C++ is compiled and run here, and its results compared with the interpreter's, bit by bit; and its texts are
// checked for what a hostile model could put into them.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "check/check.h"
#include "data/compare.h"
#include "data/npy.h"
#include "emit/expand.h"
#include "emit/model.h"
#include "emit/names.h"
#include "interp/interp.h"
#include "ir/typing.h"
#include "text/text.h"

namespace mlc {
namespace {

struct Program {
  explicit Program(const std::string &text)
      : source(std::make_unique<Source>(Source::from_string("test.mlc", text))), diag("test", source.get()) {
    ok = read(b, *source, m, diag) && check(b, m, diag);
    EXPECT_TRUE(ok) << (diag.messages().empty() ? "" : diag.messages()[0]);
  }
  Build b;
  std::unique_ptr<Source> source;
  Module m;
  Diag diag;
  bool ok;
};

std::string slurp(const std::filesystem::path &path) {
  std::ifstream f(path);
  std::stringstream s;
  s << f.rdbuf();
  return s.str();
}

// A folder that is gone at the end.
struct Scratch {
  std::filesystem::path path;
  Scratch() {
    std::string t = (std::filesystem::temp_directory_path() / "mlc-emit-XXXXXX").string();
    path = mkdtemp(t.data());
  }
  ~Scratch() { std::filesystem::remove_all(path); }
  void put(const std::string &name, const std::string &text) const { std::ofstream(path / name) << text; }
  // The command's standard output and error.
  std::string sh(const std::string &command, int *code = nullptr) const {
    std::string log = (path / "log").string();
    int rc = system(fmt::format("cd {} && ({}) >{} 2>&1", path.string(), command, log).c_str());
    if (code) *code = WEXITSTATUS(rc);
    else EXPECT_EQ(rc, 0) << command << "\n" << slurp(log);
    return slurp(log);
  }
};

constexpr const char *kFlags = "-std=c++17 -O2 -Wall -Wextra -Wpedantic -Wshadow -Werror";

// Emits @main of a planned program as `p`, with weights as text, and its main program.
CppModel emit(Program &p, const Scratch &dir, const std::string &name = "p") {
  CppOptions o;
  o.name = name, o.weights = WeightForm::Text;
  CppModel model;
  EXPECT_TRUE(emit_model(p.b, p.m, o, model, p.diag)) << p.diag.messages()[0];
  dir.put(name + ".h", model.header);
  dir.put(name + ".cc", model.source);
  std::vector<Array> kept;
  std::string weights;
  if (!model.weights.empty()) {
    weights = weight_text(p.b, model, o, [&](const Weight &w) {
      RunFault fault;
      EXPECT_TRUE(evaluate(p.b, p.m, *w.constant, {}, kept.emplace_back(), fault)) << fault.message;
      return std::span<const std::byte>(kept.back().bytes);
    });
  }
  dir.put(name + "_weights.cc", weights);
  dir.put(name + "_main.cc", main_text(p.b, model, o));
  return model;
}

// Compiles and runs it on the inputs.
std::vector<Array> run_emitted(Program &p, const std::vector<Array> &inputs, const std::string &flags = kFlags,
                               const char *compiler = "g++") {
  Scratch dir;
  CppModel model = emit(p, dir);
  std::string command = "./p_main -o out%d.npy", error;
  for (size_t i = 0; i < inputs.size(); i++) {
    std::string file = fmt::format("in{}.npy", i);
    EXPECT_TRUE(write_npy_file((dir.path / file).string(), inputs[i], &error)) << error;
    command += " " + file;
  }
  std::vector<Array> out;
  int code = 0;
  std::string log = dir.sh(fmt::format("{} {} -o p_main p.cc p_weights.cc p_main.cc && {}", compiler, flags, command), &code);
  EXPECT_EQ(code, 0) << log;
  if (code) return out;
  size_t i = 0;
  auto get = [&](const Port &x) {
    std::string file = (dir.path / fmt::format("out{}.npy", i++)).string();
    EXPECT_TRUE(read_npy_file(file, x.def.type->elem, &out.emplace_back(), &error)) << error;
  };
  for (const Port &x : model.outputs) get(x);
  for (const Port &x : model.inputs)
    if (x.written) get(x);
  return out;
}

// The same graph without its arena, which the interpreter gives by itself.
std::vector<Array> run_interpreted(Program &p, const std::vector<Array> &inputs) {
  std::vector<Array> out;
  RunFault fault;
  RunOptions options;
  EXPECT_TRUE(run(p.b, p.m, *entry(p.b, p.m), inputs, options, out, fault)) << fault.message;
  return out;
}

void expect_same(Program &p, const std::vector<Array> &inputs, const std::string &flags = kFlags, const char *cc = "g++") {
  std::vector<Array> want = run_interpreted(p, inputs), got = run_emitted(p, inputs, flags, cc);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); i++) {
    Comparison c = compare(got[i], want[i], Tolerance::exact());
    EXPECT_TRUE(c.same()) << describe(c, fmt::format("output {}", i), want[i]);
  }
}

// ---- every primitive of every type

// All bit patterns of small types; else powers of two and their neighbours, special values, random bits.
Array samples(DType t, size_t n, uint64_t seed) {
  Array a(t, {int64_t(n)});
  std::mt19937_64 random(seed);
  int bits = info(t).bits;
  uint64_t mask = ~uint64_t(0) >> (64 - bits);
  for (size_t i = 0; i < n; i++) {
    uint64_t r = random(), v = r;
    if (bits <= 8) v = seed == 1 ? i : r;
    else if (is_float(t) && i % 3 == 0) v = to_bits(t, scalar_of(t, double(int64_t(r % 2001) - 1000) / (1 << (r >> 32) % 5)));
    else if (i % 3 == 1) v = (uint64_t(1) << r % 64) - (r >> 32) % 3;
    if (i % 7 == 3) v = ~v;
    if (is_float(t) && i % 11 == 5) v = to_bits(t, scalar_of(t, std::vector<double>{0.0, -0.0, INFINITY, -INFINITY, NAN}[r % 5]));
    if (t == DType::Bool) v &= 1;
    a.set(int64_t(i), from_bits(t, v & mask));
  }
  return a;
}

constexpr DType kTypes[] = {DType::Bool,     DType::I2,         DType::I4,     DType::I8,         DType::I16,    DType::I32,
                            DType::I64,      DType::U2,         DType::U4,     DType::U8,         DType::U16,    DType::U32,
                            DType::U64,      DType::F16,        DType::BF16,   DType::F32,        DType::F64,    DType::F8E4M3FN,
                            DType::F8E4M3FNUZ, DType::F8E5M2,   DType::F8E5M2FNUZ, DType::F8E8M0, DType::F4E2M1};

// One kernel a type: all operators and builtins, casts to all types; one output each.
std::string primitive_program(DType t, size_t n) {
  std::string_view name = dtype_name(t);
  std::vector<std::pair<std::string, std::string>> lines;  // type, expression
  auto add = [&](std::string_view type, std::string e) { lines.push_back({std::string(type), std::move(e)}); };
  for (const char *op : {"==", "!="}) add("bool", fmt::format("x[i] {} z[i]", op));
  if (t != DType::Bool) {
    for (const char *op : {"<", "<=", ">", ">="}) add("bool", fmt::format("x[i] {} z[i]", op));
    for (const char *op : {"+", "-", "*", "/"}) add(name, fmt::format("x[i] {} z[i]", op));
    add(name, "-x[i]");
    if (is_int(t))
      for (const char *op : {"//", "%"}) add(name, fmt::format("x[i] {} z[i]", op));
    for (const Builtin &f : builtins()) {
      if (f.library || f.signature == Signature::Where || f.signature == Signature::Bits) continue;
      if (is_float(t) ? f.signature == Signature::SameInt : f.signature == Signature::SameFloat || f.signature == Signature::Test)
        continue;
      std::string args = f.arity == 1 ? "x[i]" : f.arity == 2 ? "x[i], z[i]" : "x[i], z[i], x[i + 1 - i]";
      add(f.signature == Signature::Test ? "bool" : name, fmt::format("{}({})", f.name, args));
    }
    std::string one = is_float(t) ? "1.0" : "1";
    add(name, fmt::format("max(x[i], {})", one));
    add(name, fmt::format("min({}, x[i])", one));
    add(name, fmt::format("clamp(x[i], {0}, {0})", one));
    add(name, fmt::format("x[i] / {0} + {0}", one));
    if (is_int(t)) add(name, "x[i] % 1 + x[i] // 1");
  }
  add(name, "where(x[i] == z[i], z[i], x[i])");
  for (DType to : kTypes) {
    add(dtype_name(to), fmt::format("{}(x[i])", dtype_name(to)));
    if (is_small_float(to)) add(dtype_name(to), fmt::format("convert(x[i], \"{}\", \"no_saturate\")", dtype_name(to)));
    bool numbers = t != DType::Bool && to != DType::Bool;
    if (numbers && info(t).bits == info(to).bits) add(dtype_name(to), fmt::format("bits.{}(x[i])", dtype_name(to)));
  }
  add("i64", "i64(index(x[i]) * 2 - 3)");
  std::string results, computes;
  for (size_t i = 0; i < lines.size(); i++) {
    results += fmt::format("{}y{}: {}[{}]", i ? ", " : "", i, lines[i].first, n);
    computes += fmt::format("  compute y{}[i in {}] = {}\n", i, n, lines[i].second);
  }
  std::string names;
  for (size_t i = 0; i < lines.size(); i++) names += fmt::format("{}y{}", i ? ", " : "", i);
  return fmt::format("mlc 1\n\nkernel @k(x: {0}[{1}], z: {0}[{1}]) -> ({2}) {{\n{3}}}\n\n"
                     "graph @main(x: {0}[{1}], z: {0}[{1}]) -> ({2}) {{\n  call @k(x, z) -> {4}\n}}\n",
                     name, n, results, computes, names);
}

class Primitives : public testing::TestWithParam<DType> {};
TEST_P(Primitives, AgreeWithTheInterpreter) {
  DType t = GetParam();
  size_t n = info(t).bits <= 8 ? 256 : 2000;
  Program p(primitive_program(t, n));
  ASSERT_TRUE(p.ok);
  bool clang = info(t).bits % 32 != 0;
  expect_same(p, {samples(t, n, 1), samples(t, n, 2)}, std::string(kFlags) + " -fsanitize=undefined,address -fno-sanitize-recover=all -O1",
              clang ? "clang++" : "g++");
}
INSTANTIATE_TEST_SUITE_P(Emit, Primitives, testing::ValuesIn(kTypes),
                         [](const auto &i) { return std::string(dtype_name(i.param)); });

}  // namespace
}  // namespace mlc
