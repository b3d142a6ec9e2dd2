// What LLVM compiles has the bits of the interpreter.
#include "llvm/jit.h"

#include <fmt/core.h>

#include "data/compare.h"
#include "interp/sample.h"
#include "ir/typing.h"
#include "unit/interp_program.h"

namespace mlc {
namespace {

constexpr DType kTypes[] = {
    DType::Bool, DType::I2, DType::I4, DType::I8, DType::I16, DType::I32, DType::I64, DType::U2, DType::U4, DType::U8,
    DType::U16, DType::U32, DType::U64, DType::F16, DType::BF16, DType::F32, DType::F64, DType::F8E4M3FN,
    DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ, DType::F8E8M0, DType::F4E2M1};
bool is_number(DType t) { return t != DType::Bool; }

// Runs the kernel both ways; the outputs are equal but for signs of zeros and payloads of NaN, as is what a fault says.
void same(Program &p, const std::string &name, const std::vector<Array> &inputs, bool native = true) {
  p.options.check_undefined = false;
  std::string fault = p.run(name, inputs);
  uint32_t line = p.line;
  std::vector<Array> wanted = p.outputs;
  char *said = nullptr;
  size_t size = 0;
  FILE *remarks = open_memstream(&said, &size);
  auto jit = make_jit(remarks, native);
  ASSERT_TRUE(jit);
  p.options.kernels = jit.get();
  EXPECT_EQ(p.run(name, inputs), fault) << name;
  EXPECT_EQ(p.line, line) << name;
  p.options.kernels = nullptr;
  fclose(remarks);
  EXPECT_EQ(std::string(said, size), "") << name;  // nothing was interpreted after all
  free(said);
  ASSERT_EQ(p.outputs.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); i++) {
    Comparison c = compare(p.outputs[i], wanted[i], Tolerance::exact(true));
    EXPECT_TRUE(c.same()) << describe(c, fmt::format("{} y{}", name, i), wanted[i]);
  }
}

// A kernel of one result for each expression over x[i], y[i], z[i] of type t.
struct Table {
  DType t;
  std::vector<std::string> values;
  std::vector<DType> types;
  void add(std::string value, DType type) { values.push_back(std::move(value)), types.push_back(type); }
  void run(int64_t n, bool native = true) {  // on n usual numbers and n odd ones
    std::string_view type = dtype_name(t);
    std::string params = fmt::format("x: {0}[n], y: {0}[n], z: {0}[n]", type), results, body, apart;
    for (size_t i = 0; i < values.size(); i++) {
      results += fmt::format("{}r{}: {}[n]", i ? ", " : "", i, dtype_name(types[i]));
      apart += fmt::format("  compute r{}[i in n] = {}\n", i, values[i]);
      body += fmt::format("    r{}[i] = {}\n", i, values[i]);
    }
    // Loops of their own become vector code, but take long to compile.
    bool vectors = t == DType::F32 || t == DType::I32 || t == DType::U8 || t == DType::F16;
    if (!vectors) apart = fmt::format("  for i in n {{\n{}  }}\n", body);
    Program p(fmt::format("kernel @f[n]({}) -> ({}) {{\n{}}}\n", params, results, apart));
    std::mt19937_64 random{uint64_t(t)};
    std::vector<Array> inputs;
    for (int k = 0; k < 3; k++) {
      Array usual = sample(t, {n}, random), odd = sample(t, {n}, random, true);
      inputs.push_back(Array(t, {2 * n}));
      for (int64_t i = 0; i < n; i++) inputs[k].set(i, usual.get(i)), inputs[k].set(n + i, odd.get(i));
    }
    same(p, "f", inputs, native);
  }
};

TEST(Llvm, OperationsOfAllTypes) {
  for (DType t : kTypes) {
    Table table{t, {}, {}};
    std::vector<std::string> values{"x[i]", "where(x[i] == y[i], z[i], x[i])"};
    if (is_number(t)) {
      for (const char *op : {"+", "-", "*", "/"}) values.push_back(fmt::format("x[i] {} y[i]", op));
      values.insert(values.end(), {"-x[i]", "max(x[i], y[i])", "min(x[i], y[i])", "clamp(x[i], y[i], z[i])", "abs(x[i])",
                                   "fmod(x[i], y[i])", "x[i] * y[i] + z[i]"});
      if (is_int(t)) values.insert(values.end(), {"x[i] // y[i]", "x[i] % y[i]", "x[i] // 2", "x[i] % 4"});
    }
    for (const std::string &v : values) table.add(v, t);
    for (const char *op : {"==", "!=", "<", "<=", ">", ">="})
      if (is_number(t) || op[1] == '=') table.add(fmt::format("x[i] {} y[i]", op), DType::Bool);
    table.run(97);
  }
}

TEST(Llvm, Builtins) {
  for (DType t : kTypes) {
    Table table{t, {}, {}};
    for (const Builtin &f : builtins()) {
      bool fits = f.signature == Signature::SameFloat ? is_float(t)
                  : f.signature == Signature::SameInt ? is_int(t)
                  : f.signature == Signature::Test    ? is_float(t)
                                                      : false;
      bool text = f.library && is_small_float(t) && t != DType::F16;  // as f32, rounded once: f16 stands for all
      if (!fits || text) continue;
      const char *args[] = {"x[i]", "x[i], y[i]", "x[i], y[i], z[i]"};
      table.add(fmt::format("{}({})", f.name, args[f.arity - 1]), f.signature == Signature::Test ? DType::Bool : t);
    }
    if (!table.values.empty()) table.run(211);
  }
}

TEST(Llvm, Casts) {
  for (DType from : kTypes) {
    Table table{from, {}, {}};
    for (DType to : kTypes) {
      if (to == from) continue;
      table.add(fmt::format("{}(x[i])", dtype_name(to)), to);
      if (is_small_float(to) && info(to).bits == 8)
        table.add(fmt::format("convert(x[i], \"{}\", \"no_saturate\")", dtype_name(to)), to);
      bool bits = info(to).bits == info(from).bits && from != DType::Bool && to != DType::Bool;
      if (bits) table.add(fmt::format("bits.{}(x[i])", dtype_name(to)), to);
    }
    table.run(257);
  }
}

// Every float of 16 bits and fewer, through f32 and back.
TEST(Llvm, SmallFloats) {
  for (DType t : kTypes) {
    if (!is_small_float(t)) continue;
    Program p(fmt::format("kernel @f[n](x: {0}[n], s: f32[n]) -> (y: f32[n], z: {0}[n], w: {0}[n]) {{\n"
                          "  compute y[i in n] = f32(x[i])\n  compute z[i in n] = {0}(f32(x[i]) * s[i])\n"
                          "  compute w[i in n] = {0}(f64(x[i]) * 1.0000000001)\n}}\n", dtype_name(t)));
    int64_t n = int64_t(1) << info(t).bits;
    std::vector<Array> inputs{Array(t, {n}), Array(DType::F32, {n})};
    for (int64_t i = 0; i < n; i++) {
      inputs[0].set(i, from_bits(t, uint64_t(i)));
      inputs[1].set(i, Scalar::of_f32(i % 3 ? 1.0009765625f : 1.5f));
    }
    same(p, "f", inputs);
  }
}

// On a machine that has neither the instruction nor those that round.
TEST(Llvm, BuiltinsOfAPlainMachine) {
  for (DType t : {DType::F32, DType::F64})
    Table{t, {"fma(x[i], y[i], z[i])", "floor(x[i])", "ceil(x[i])", "round_even(x[i])", "fma(x[i], y[i], -x[i] * y[i])"},
          {t, t, t, t, t}}.run(2000, false);
}

TEST(Llvm, StatementsAndCalls) {
  Program p(R"(kernel @count[n](x: i64[n]) -> (y: i64[n], steps: i64[]) {
  alloc total: i64[] in local
  total[] = 0
  for i in n {
    alloc k: i64[] in local
    k[] = x[i]
    while k[] > 1 {
      if k[] % 2 == 0 {
        k[] = k[] // 2
      } else {
        k[] = 3 * k[] + 1
      }
      total[] = total[] + 1
    }
    y[i] = k[]
  }
  steps[] = total[]
}

reducer @arg(m0: f32, i0: i64, m1: f32, i1: i64) -> (m: f32, i: i64) {
  init m: f32 = -inf
  init i: i64 = 0
  left: bool = m0 > m1 || m0 == m1 && i0 <= i1
  m: f32 = where(left, m0, m1)
  i: i64 = where(left, i0, i1)
}

kernel @argmax[n, d](x: f32[n, d]) -> (m: f32[n], k: i64[n]) {
  compute m[i in n], k[i in n] = @arg(x[i, j], i64(j) for j in d)
}

kernel @scaled[n](x: f32[n], s: f32) -> (y: f32[n]) {
  compute y[i in n] = x[i] * s
}

kernel @rows[n, d](x: f32[n, d]) -> (y: f32[n, d]) {
  alloc t: f32[n, d]
  for i in n {
    call @scaled(x[i, :], 2.0) -> t[i, :]
  }
  compute y[i in n, j in d] = t[i, d - 1 - j]
}

const @steps: f32[4] = [1.0, 10.0, 100.0, 1000.0]

kernel @chosen[n](ids: i64[n]) -> (y: f32[n]) {
  compute y[i in n] = where(ids[i] >= 0 && ids[i] < 4, @steps[index(ids[i])], -1.0)
}

kernel @packed[n](x: u4[n, 2]) -> (y: u4[n, 2]) {
  compute y[i in n, j in 2] = x[n - 1 - i, 1 - j]
}
)");
  same(p, "count", {i64({5}, {27, 1, 6, 0, 97})});
  same(p, "argmax", {f32({2, 3}, {1, 3, 3, -1, -2, -1})});
  same(p, "rows", {f32({2, 3}, {1, 2, 3, 4, 5, 6})});
  same(p, "chosen", {i64({6}, {3, -1, 0, 4, 2, INT64_MAX})});
  Array x(DType::U4, {3, 2});
  for (int64_t i = 0; i < 6; i++) x.set(i, Scalar::of_int(i + 5));
  same(p, "packed", {x});
}

TEST(Llvm, Faults) {
  Program p(R"(kernel @gather[v, n](table: f32[v], ids: i64[n]) -> (y: f32[n]) {
  for i in n {
    r: index = index(ids[i])
    assume r >= 0 && r < v
    y[i] = table[r]
  }
}

kernel @outside[n](x: f32[n, 2], ids: i64[n]) -> (y: f32[n]) {
  compute y[i in n] = x[index(ids[i]), 1]
}

kernel @inner[n](x: f32[n]) -> (y: f32[n]) {
  compute y[i in n] = x[i + 1]
}

kernel @outer[n](x: f32[n]) -> (y: f32[n]) {
  call @inner(x) -> y
}

kernel @large[n](x: f32[n]) -> (y: f32[n]) {
  alloc t: f32[n, 1000000000000]
  compute y[i in n] = x[i]
}

kernel @place[n](x: f32[n], scratch w: u8[n]) -> (y: f32[n]) {
  alloc t: f32[n] = w at 8
  compute t[i in n] = x[i]
  compute y[i in n] = t[i]
}
)");
  same(p, "gather", {f32({3}, {1, 2, 3}), i64({2}, {2, 3})});
  same(p, "gather", {f32({3}, {1, 2, 3}), i64({2}, {2, -1})});
  same(p, "outside", {f32({2, 2}, {1, 2, 3, 4}), i64({2}, {1, 2})});
  same(p, "outside", {f32({2, 2}, {1, 2, 3, 4}), i64({2}, {INT64_MIN, 2})});
  same(p, "outer", {f32({3}, {1, 2, 3})});
  same(p, "large", {f32({3}, {1, 2, 3})});
  auto jit = make_jit(nullptr);
  p.options.kernels = jit.get();
  EXPECT_NE(p.run("place", {f32({3}, {1, 2, 3})}).find("go beyond the end of w"), std::string::npos);
}

}  // namespace
}  // namespace mlc
