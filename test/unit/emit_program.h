// Emitted C++ is compiled and run, and its results compared with the interpreter's, bit by bit.
#pragma once
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
#include "emit/model.h"
#include "interp/interp.h"
#include "text/text.h"

namespace mlc {

struct EmitProgram {
  explicit EmitProgram(const std::string &text)
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

inline std::string emit_slurp(const std::filesystem::path &path) {
  std::ifstream f(path);
  std::stringstream s;
  s << f.rdbuf();
  return s.str();
}

// A folder that is gone at the end.
struct EmitScratch {
  std::filesystem::path path;
  EmitScratch() {
    std::string t = (std::filesystem::temp_directory_path() / "mlc-emit-XXXXXX").string();
    path = mkdtemp(t.data());
  }
  ~EmitScratch() { std::filesystem::remove_all(path); }
  void put(const std::string &name, const std::string &text) const { std::ofstream(path / name) << text; }
  // The command's standard output and error.
  std::string sh(const std::string &command, int *code = nullptr) const {
    std::string log = (path / "log").string();
    int rc = system(fmt::format("cd {} && ({}) >{} 2>&1", path.string(), command, log).c_str());
    if (code) *code = WEXITSTATUS(rc);
    else EXPECT_EQ(rc, 0) << command << "\n" << emit_slurp(log);
    return emit_slurp(log);
  }
};

constexpr const char *kFlags = "-std=c++17 -O2 -Wall -Wextra -Wpedantic -Wshadow -Werror";

// Emits @main of a planned program as `p`, with weights as text, and its main program.
inline CppModel emit(EmitProgram &p, const EmitScratch &dir, const std::string &name = "p") {
  CppOptions o;
  o.name = name, o.weights = WeightForm::Text;
  CppModel model;
  if (!emit_model(p.b, p.m, o, model, p.diag)) {
    ADD_FAILURE() << p.diag.messages()[0];
    return model;
  }
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

// A program that is emitted and compiled once, and runs on any inputs of its shapes.
class EmittedProgram {
 public:
  EmittedProgram(EmitProgram &p, const std::string &flags = kFlags, const char *compiler = "g++") {
    model_ = emit(p, dir_);
    if (model_.source.empty()) return;
    int code = 0;
    std::string command = fmt::format("{0} {1} -c p.cc p_weights.cc && {0} {1} -O0 -o p_main p.o p_weights.o p_main.cc",
                                      compiler, flags), log = dir_.sh(command, &code);
    EXPECT_EQ(code, 0) << log;
    ok_ = !code;
  }
  // Outputs, then what was changed in place; nothing after an error.
  std::vector<Array> run(const std::vector<Array> &inputs) {
    std::string command = "./p_main -o out%d.npy", error;
    for (size_t i = 0; i < inputs.size(); i++) {
      std::string file = fmt::format("in{}.npy", i);
      EXPECT_TRUE(write_npy_file((dir_.path / file).string(), inputs[i], &error)) << error;
      command += " " + file;
    }
    std::vector<Array> out;
    int code = 1;
    if (ok_) {
      std::string log = dir_.sh(command, &code);
      EXPECT_EQ(code, 0) << log;
    }
    if (code) return out;
    size_t i = 0;
    auto get = [&](const Port &x) {
      std::string file = (dir_.path / fmt::format("out{}.npy", i++)).string();
      DType t = x.def.type->elem;
      EXPECT_TRUE(read_npy_file(file, t == DType::Index ? DType::I64 : t, &out.emplace_back(), &error)) << error;
    };
    for (const Port &x : model_.outputs) get(x);
    for (const Port &x : model_.inputs)
      if (x.written) get(x);
    return out;
  }

 private:
  EmitScratch dir_;
  CppModel model_;
  bool ok_ = false;
};

// Compiles and runs it on the inputs.
inline std::vector<Array> run_emitted(EmitProgram &p, const std::vector<Array> &inputs, const std::string &flags = kFlags,
                               const char *compiler = "g++") {
  return EmittedProgram(p, flags, compiler).run(inputs);
}

// The same graph without its arena, which the interpreter gives by itself.
inline std::vector<Array> run_interpreted(EmitProgram &p, const std::vector<Array> &inputs) {
  std::vector<Array> out;
  RunFault fault;
  RunOptions options;
  EXPECT_TRUE(run(p.b, p.m, *entry(p.b, p.m), inputs, options, out, fault)) << fault.message;
  return out;
}

inline void expect_equal(std::vector<Array> want, const std::vector<Array> &got) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); i++) {
    if (want[i].type == DType::Index) want[i].type = DType::I64;
    Comparison c = compare(got[i], want[i], Tolerance::exact());
    EXPECT_TRUE(c.same()) << describe(c, fmt::format("output {}", i), want[i]);
  }
}

inline void expect_same(EmitProgram &p, const std::vector<Array> &inputs, const std::string &flags = kFlags,
                        const char *cc = "g++") {
  expect_equal(run_interpreted(p, inputs), run_emitted(p, inputs, flags, cc));
}

// All bit patterns of small types; else powers of two and their neighbours, special values, random bits.
inline Array samples(DType t, size_t n, uint64_t seed) {
  Array a(t, {int64_t(n)});
  std::mt19937_64 random(seed);
  int bits = info(t).bits;
  uint64_t mask = ~uint64_t(0) >> (64 - bits);
  for (size_t i = 0; i < n; i++) {
    uint64_t r = random(), v = r;
    auto of = [&](double x) { return to_bits(t, scalar_of(t, x)); };
    if (bits <= 8) v = seed == 1 ? i : r;
    else if (is_float(t) && i % 3 == 0) v = of(double(int64_t(r % 2001) - 1000) / (1 << (r >> 32) % 5));
    else if (i % 3 == 1) v = (uint64_t(1) << r % 64) - (r >> 32) % 3;
    if (i % 7 == 3) v = ~v;
    constexpr double kSpecial[] = {0.0, -0.0, INFINITY, -INFINITY, NAN};
    if (is_float(t) && i % 11 == 5) v = of(kSpecial[r % 5]);
    if (t == DType::Bool) v &= 1;
    a.set(int64_t(i), from_bits(t, v & mask));
  }
  return a;
}

}  // namespace mlc
