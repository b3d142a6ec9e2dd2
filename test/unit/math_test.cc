// The text of scalar mathematics: it reads, is verified and complete, and the interpreter gives the bits and the errors
// that test/bench/ulp.py found when g++ compiled it.
#include "math/math.h"

#include <gtest/gtest.h>

#include <cmath>

#include "check/check.h"
#include "data/compare.h"
#include "interp/interp.h"
#include "ir/typing.h"
#include "math_tables.h"
#include "text/text.h"

namespace mlc {
namespace {

std::string messages(Diag &diag) {
  std::string s;
  for (const std::string &m : diag.messages()) s += m + "\n";
  return s;
}

TEST(Math, TextReadsBackAndIsVerified) {
  Build b;
  Module m = math_module(b), again;
  Source text = Source::from_string("again", print(b, m));
  Diag diag("test");
  ASSERT_TRUE(read(b, text, again, diag)) << messages(diag);
  ASSERT_EQ(m.items.size(), again.items.size());
  for (size_t i = 0; i < m.items.size(); i++) EXPECT_TRUE(equal(m.items[i], again.items[i]));
  EXPECT_TRUE(check(b, m, diag)) << messages(diag);
}

TEST(Math, HasEveryBuiltinThatIsText) {
  Build b;
  Module m = math_module(b);
  for (const Builtin &f : builtins())
    for (DType t : {DType::F16, DType::F32, DType::F64}) {
      const Func *text = scalar_function(b, m, f.name, t);
      ASSERT_EQ(text != nullptr, f.library) << f.name << " " << dtype_name(t);
      if (!text) continue;
      EXPECT_EQ(text->func, FuncKind::Scalar);
      EXPECT_EQ(text->params.size(), size_t(f.arity)) << f.name;
      ASSERT_EQ(text->results.size(), 1u) << f.name;
      EXPECT_EQ(text->results[0].type->elem, t == DType::F64 ? DType::F64 : DType::F32);
    }
}

// ---- Values. One kernel a function, run over 4096 numbers spread over all bit patterns.

constexpr int64_t kCount = 4096;

struct Sample {
  DType type;
  Array x, y, result;  // y of pow
};

// The inputs of ulp.py's tables.
Array spread(DType t, bool second) {
  Array a(t, {kCount});
  for (int64_t i = 0; i < kCount; i++) {
    uint64_t u = uint64_t(i);
    if (t == DType::F32) u = uint32_t(u * (second ? 0x85ebca6b : 0x9e3779b1));
    else u *= second ? 0xc2b2ae3d27d4eb4f : 0x9e3779b97f4a7c15;
    Scalar v = from_bits(t, u);
    double d = to_double(t, v);
    a.set(i, second && i % 2 == 0 && std::isfinite(d) ? scalar_of(t, std::fmod(d, 16.0)) : v);
  }
  return a;
}

class MathValues : public testing::Test {
 protected:
  MathValues() {
    std::string text = print(b, math_module(b));
    for (const MathTable &f : kMathTables) {
      std::string name = f.name, t = name.substr(name.size() - 3);
      bool two = name.starts_with("pow");
      text += "\nkernel @run." + name + "[n](x: " + t + "[n]" + (two ? ", w: " + t + "[n]" : "") + ") -> (y: " + t +
              "[n]) {\n  compute y[i in n] = @" + name + (two ? "(x[i], w[i])" : "(x[i])") + "\n}\n";
    }
    source = Source::from_string("run.mlc", text);
    Diag diag("test", &source);
    EXPECT_TRUE(read(b, source, m, diag)) << messages(diag);
  }
  Sample values(const std::string &name) {
    DType t = dtype_named(name.substr(name.size() - 3));
    Sample r{t, spread(t, false), spread(t, true), {}};
    return values(name, r);
  }
  Sample values(const std::string &name, Sample r) {
    std::vector<Array> inputs{r.x}, outputs;
    if (name.starts_with("pow")) inputs.push_back(r.y);
    RunFault fault;
    const Func *f = m.func(b.sym("run." + name));
    EXPECT_TRUE(f && run(b, m, *f, inputs, {}, outputs, fault)) << name << ": " << fault.message;
    if (!outputs.empty()) r.result = outputs[0];
    return r;
  }
  Build b;
  Module m;
  Source source;
};

TEST_F(MathValues, AreTheBitsOfCompiledCode) {
  for (const MathTable &f : kMathTables) {
    Sample r = values(f.name);
    uint64_t hash = 0xcbf29ce484222325;
    for (int64_t i = 0; i < kCount; i++) {
      Scalar s = r.result.get(i);
      uint64_t v = std::isnan(to_double(r.type, s)) ? ~uint64_t(0) : s.bits;
      for (int k = 0; k < 8; k++, v >>= 8) hash = (hash ^ (v & 0xff)) * 0x100000001b3;
    }
    EXPECT_EQ(hash, f.hash) << f.name;
  }
}

long double sigmoidl(long double x) { return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x)); }
long double softplusl(long double x) { return (x > 0 ? x : 0) + log1pl(expl(-fabsl(x))); }
long double rsqrtl(long double x) { return 1 / sqrtl(x); }
struct Reference {
  std::string_view name;
  long double (*f)(long double);
};
constexpr Reference kReferences[] = {
    {"exp", expl},   {"expm1", expm1l}, {"log", logl},     {"log1p", log1pl}, {"sigmoid", sigmoidl},
    {"erf", erfl},   {"tanh", tanhl},   {"rsqrt", rsqrtl}, {"sin", sinl},     {"softplus", softplusl},
    {"cos", cosl},   {"tan", tanl},     {"asin", asinl},   {"acos", acosl},   {"atan", atanl},
    {"sinh", sinhl}, {"cosh", coshl},   {"asinh", asinhl}, {"acosh", acoshl}, {"atanh", atanhl},
};

// |y - exact| in units of the last place of t at `exact`; inf where one is NaN or the wrong infinity.
double error_in_ulp(DType t, double y, long double exact) {
  if (std::isnan(y) || std::isnan(exact)) return std::isnan(y) && std::isnan(exact) ? 0 : INFINITY;
  int mantissa = t == DType::F32 ? 23 : 52, bias = t == DType::F32 ? 127 : 1023;
  double nearest = to_double(t, cast(Scalar::of_f64(double(exact)), DType::F64, t));
  if (std::isinf(nearest) || std::isinf(y)) return y == nearest ? 0 : INFINITY;
  int e = nearest == 0 ? 1 - bias : std::max(std::ilogb(nearest), 1 - bias);
  return double(fabsl(y - exact) / ldexpl(1, e - mantissa));
}

TEST_F(MathValues, AreWithinTheBounds) {
  for (const MathTable &f : kMathTables) {
    std::string_view name(f.name);
    Sample r = values(f.name);
    const Reference *one = nullptr;
    for (const Reference &x : kReferences)
      if (name.substr(0, name.find('.')) == x.name) one = &x;
    ASSERT_EQ(!one, name.starts_with("pow")) << f.name;
    for (int64_t i = 0; i < kCount; i++) {
      double x = to_double(r.type, r.x.get(i)), w = to_double(r.type, r.y.get(i));
      double y = to_double(r.type, r.result.get(i));
      long double exact = one ? one->f(x) : powl(x, w);
      ASSERT_LE(error_in_ulp(r.type, y, exact), f.bound) << f.name << "(" << x << ", " << w << ") = " << y;
    }
  }
}

TEST_F(MathValues, SpecialPowers) {  // IEEE 754-2019, 9.2.1
  const double inf = INFINITY, nan = NAN;
  struct { double x, w, y; } rows[] = {
      {nan, 0, 1},       {nan, -0.0, 1},   {1, nan, 1},      {1, inf, 1},      {-1, inf, 1},     {-1, -inf, 1},
      {0, 0, 1},         {0, 3, 0},        {-0.0, 3, -0.0},  {-0.0, 2, 0},     {0, -1, inf},     {-0.0, -1, -inf},
      {-0.0, -2, inf},   {-0.0, 0.5, 0},   {-0.0, -0.5, inf}, {0, -inf, inf},  {inf, 2, inf},    {inf, -1, 0},
      {-inf, 3, -inf},   {-inf, 2, inf},   {-inf, -3, -0.0}, {-inf, 0.5, inf}, {2, inf, inf},    {2, -inf, 0},
      {0.5, inf, 0},     {0.5, -inf, inf}, {-2, 3, -8},      {-2, 2, 4},       {-2, 0.5, nan},   {-2, -1, -0.5},
      {nan, 1, nan},     {2, nan, nan},    {-1, nan, nan},   {-8, 1.0 / 3, nan}, {2, 10, 1024},  {10, 3, 1000},
  };
  for (std::string name : {"pow.f32", "pow.f64"}) {
    DType t = dtype_named(name.substr(4));
    int64_t n = std::size(rows);
    Sample r{t, Array(t, {n}), Array(t, {n}), {}};
    for (int64_t i = 0; i < n; i++) r.x.set(i, scalar_of(t, rows[i].x)), r.y.set(i, scalar_of(t, rows[i].w));
    r = values(name, r);
    for (int64_t i = 0; i < n; i++) {
      Scalar want = scalar_of(t, rows[i].y), got = r.result.get(i);
      EXPECT_TRUE(want == got || (std::isnan(rows[i].y) && std::isnan(to_double(t, got))))
          << name << "(" << rows[i].x << ", " << rows[i].w << ") = " << to_double(t, got);
    }
  }
}

TEST_F(MathValues, SignsOfZeroAndInfinitiesAndHardAngles) {
  const double inf = INFINITY;
  struct { std::string_view name; double x, y; } rows[] = {
      {"exp", -0.0, 1}, {"exp", -inf, 0}, {"exp", inf, inf}, {"expm1", -0.0, -0.0}, {"expm1", -inf, -1}, {"log", 1, 0},
      {"log", 0, -inf}, {"log", -0.0, -inf}, {"log", inf, inf}, {"log", -1, NAN}, {"log1p", -0.0, -0.0},
      {"log1p", -1, -inf}, {"log1p", -2, NAN}, {"tanh", -0.0, -0.0}, {"tanh", -inf, -1}, {"sigmoid", inf, 1},
      {"sigmoid", -inf, 0}, {"softplus", -inf, 0}, {"softplus", inf, inf}, {"erf", -0.0, -0.0}, {"erf", -inf, -1},
      {"sin", -0.0, -0.0}, {"sin", inf, NAN}, {"cos", -inf, NAN}, {"cos", 0, 1}, {"tan", -0.0, -0.0}, {"asin", 2, NAN},
      {"asin", -0.0, -0.0}, {"acos", 1, 0}, {"acos", -2, NAN}, {"atan", -0.0, -0.0}, {"sinh", -0.0, -0.0},
      {"sinh", -inf, -inf}, {"cosh", -inf, inf}, {"asinh", -0.0, -0.0}, {"asinh", -inf, -inf}, {"acosh", 1, 0},
      {"acosh", 0.5, NAN}, {"acosh", -inf, NAN}, {"atanh", -0.0, -0.0}, {"atanh", 1, inf}, {"atanh", -1, -inf},
      {"atanh", 2, NAN}, {"rsqrt", 0, inf}, {"rsqrt", -0.0, -inf}, {"rsqrt", inf, 0}, {"rsqrt", -1, NAN},
  };
  auto value = [&](std::string name, double x) {
    DType t = dtype_named(name.substr(name.size() - 3));
    Sample r{t, Array(t, {1}), {}, {}};
    r.x.set(0, scalar_of(t, x));
    return values(name, r).result.get(0);
  };
  for (auto &r : rows)
    for (std::string type : {"f32", "f64"}) {
      DType t = dtype_named(type);
      Scalar got = value(std::string(r.name) + "." + type, r.x);
      EXPECT_TRUE(got == scalar_of(t, r.y) || (std::isnan(r.y) && std::isnan(to_double(t, got))))
          << r.name << "." << type << "(" << r.x << ") = " << to_double(t, got);
    }
  // The numbers nearest to multiples of pi / 2 (by the continued fraction of 2^e 2 / pi): within 2^-61 and 2^-29 of it.
  for (double x : {0x1.6ac5b262ca1ffp+849, 0x1.b951f1572eba5p+23, 0x1.6c6cbc45dc8dep+5, 0x1.39c6fd67805a7p+18})
    for (std::string name : {"sin.f64", "cos.f64"})
      EXPECT_LE(error_in_ulp(DType::F64, value(name, x).as_f64(), name[0] == 's' ? sinl(x) : cosl(x)), 1) << name;
  for (double x : {0x1.f37c8ap+95, 0x1.47d0fep+34, 0x1.f37c8ap+96, 0x1.47d0fep+35})
    for (std::string name : {"sin.f32", "cos.f32"})
      EXPECT_LE(error_in_ulp(DType::F32, value(name, x).as_f32(), name[0] == 's' ? sinl(x) : cosl(x)), 0.51) << name;
}

}  // namespace
}  // namespace mlc
