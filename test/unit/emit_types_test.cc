// Every primitive of every element type, in emitted C++ and in the interpreter.
#include "emit_program.h"
#include "ir/typing.h"

namespace mlc {
namespace {

constexpr DType kTypes[] = {
    DType::Bool, DType::I2, DType::I4, DType::I8, DType::I16, DType::I32, DType::I64, DType::U2, DType::U4, DType::U8,
    DType::U16, DType::U32, DType::U64, DType::F16, DType::BF16, DType::F32, DType::F64, DType::F8E4M3FN,
    DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ, DType::F8E8M0, DType::F4E2M1};

// One kernel a type: all operators and builtins, casts to all types; one output each. Operands of f8 are kept where no
// result leaves the type's range.
std::string primitive_program(DType t, size_t n) {
  std::string_view name = dtype_name(t);
  std::vector<std::pair<std::string, std::string>> lines;  // type, expression
  auto add = [&](std::string_view type, std::string e) { lines.push_back({std::string(type), std::move(e)}); };
  bool f8 = is_small_float(t) && info(t).bits == 8, e8m0 = t == DType::F8E8M0;
  std::string x = "x[i]", z = "z[i]", divisor = z;
  if (f8) divisor = "clamp(z[i], 0.5, 2.0)";
  if (f8) x = e8m0 ? "clamp(x[i], 0.5, 2.0)" : "clamp(x[i], -2.0, 2.0)", z = e8m0 ? divisor : "clamp(z[i], -2.0, 2.0)";
  for (const char *op : {"==", "!="}) add("bool", fmt::format("x[i] {} z[i]", op));
  if (t != DType::Bool) {
    for (const char *op : {"<", "<=", ">", ">="}) add("bool", fmt::format("x[i] {} z[i]", op));
    if (!e8m0)
      for (const char *op : {"+", "-"}) add(name, fmt::format("{} {} {}", x, op, z));
    add(name, fmt::format("{} * {}", x, z));
    add(name, fmt::format("{} / {}", x, divisor));
    if (!e8m0) add(name, "-x[i]");
    if (is_int(t))
      for (const char *op : {"//", "%"}) add(name, fmt::format("x[i] {} z[i]", op));
    for (const Builtin &f : builtins()) {
      if (f.library || f.signature == Signature::Where || f.signature == Signature::Bits) continue;
      bool test = f.signature == Signature::Test;
      if (is_float(t) ? f.signature == Signature::SameInt : f.signature == Signature::SameFloat || test) continue;
      if (f8 && f.name != "max" && f.name != "min" && (e8m0 || f.signature == Signature::SameFloat)) continue;
      std::string args = x;
      if (f.arity > 1) args += ", " + z;
      if (f.arity > 2) args += ", " + (f8 ? divisor : fmt::format("x[{} - i]", n - 1));
      add(test ? "bool" : name, fmt::format("{}({})", f.name, args));
    }
    std::string one = is_float(t) ? "1.0" : "1";
    add(name, fmt::format("max({}, {})", x, one));
    add(name, fmt::format("min({}, {})", one, x));
    add(name, fmt::format("clamp({0}, {1}, {1})", x, one));
    add(name, fmt::format("{0} / {1} + {1}", x, one));
    if (is_int(t)) add(name, "x[i] % 1 + x[i] // 1");
  }
  add(name, "where(x[i] == z[i], z[i], x[i])");
  for (DType to : kTypes) {
    add(dtype_name(to), fmt::format("{}(x[i])", dtype_name(to)));
    if (is_small_float(to)) add(dtype_name(to), fmt::format("convert(x[i], \"{}\", \"no_saturate\")", dtype_name(to)));
    bool numbers = t != DType::Bool && to != DType::Bool;
    std::string bits = f8 ? "where(isnan(x[i]), x[0], x[i])" : "x[i]";  // which NaN it is, is not said
    if (numbers && info(t).bits == info(to).bits) add(dtype_name(to), fmt::format("bits.{}({})", dtype_name(to), bits));
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
  EmitProgram p(primitive_program(t, n));
  ASSERT_TRUE(p.ok);
  bool sanitize = t == DType::I64 || t == DType::I8 || t == DType::I4 || t == DType::F32;
  std::string flags = std::string(kFlags) + " -O1";
  if (sanitize) flags += " -fsanitize=undefined,address -fno-sanitize-recover=all";
  expect_same(p, {samples(t, n, 1), samples(t, n, 2)}, flags, info(t).bits % 16 ? "clang++" : "g++");
}
INSTANTIATE_TEST_SUITE_P(Emit, Primitives, testing::ValuesIn(kTypes),
                         [](const auto &i) { return std::string(dtype_name(i.param)); });

}  // namespace
}  // namespace mlc
