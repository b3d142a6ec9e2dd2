// Conversions between element types (against numpy and ml_dtypes: num_tables.h) and float literals.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "num/convert.h"
#include "num/literal.h"
#include "num_tables.h"

namespace mlc {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int kCount = 20000;

class Fnv {
 public:
  void add(uint64_t v) {
    for (int i = 0; i < 8; i++, v >>= 8) hash_ = (hash_ ^ (v & 0xff)) * 0x100000001b3;
  }
  uint64_t hash() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325;
};
std::vector<uint64_t> stream(uint64_t seed) {
  std::vector<uint64_t> out(kCount);
  for (auto &v : out) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    v = seed ^ seed >> 33;
  }
  return out;
}
float as_f32(uint64_t bits) { return std::bit_cast<float>(uint32_t(bits)); }
uint64_t near32(uint64_t s) { return (s & 0x807fffff) + ((97 + (s >> 40) % 64) << 23); }
uint64_t near64(uint64_t s) { return (s & 0x800fffffffffffff) + ((993 + (s >> 53) % 64) << 52); }
std::vector<int64_t> integers() {
  auto a = stream(3), b = stream(4);
  std::vector<int64_t> out(kCount);
  for (int i = 0; i < kCount; i++) out[i] = int64_t(a[i]) >> b[i] % 64;
  return out;
}
uint64_t code_of(DType from, Scalar v, DType to, bool saturate = true) {
  Scalar r = cast(v, from, to, saturate);
  return std::isnan(r.as_f32()) ? ~uint64_t(0) : to_bits(to, r);
}
double f(DType to, double v, bool saturate = true) {
  return to_double(to, cast(Scalar::of_f64(v), DType::F64, to, saturate));
}
int64_t to_int(DType to, double v) { return cast(Scalar::of_f64(v), DType::F64, to).as_int(); }

TEST(Convert, FloatsAgreeWithNumpy) {
  for (const FloatTable &t : kFloatTables) {
    SCOPED_TRACE(dtype_name(t.type));
    Fnv decoded, f32, near_f32, near_f64, ints, loose;
    for (uint64_t i = 0; i < uint64_t(1) << info(t.type).bits; i++) {
      float v = from_bits(t.type, i).as_f32();
      decoded.add(std::isnan(v) ? ~uint64_t(0) : std::bit_cast<uint32_t>(v));
    }
    for (uint64_t s : stream(1)) f32.add(code_of(DType::F32, Scalar::of_f32(as_f32(s)), t.type));
    for (uint64_t s : stream(2)) {
      near_f32.add(code_of(DType::F32, Scalar::of_f32(as_f32(near32(s))), t.type));
      near_f64.add(code_of(DType::F64, {near64(s)}, t.type));
      loose.add(code_of(DType::F32, Scalar::of_f32(as_f32(near32(s))), t.type, false));
    }
    for (int64_t v : integers()) ints.add(code_of(DType::I64, Scalar::of_int(v), t.type));
    EXPECT_EQ(decoded.hash(), t.decoded);
    EXPECT_EQ(f32.hash(), t.f32);
    EXPECT_EQ(near_f32.hash(), t.near32);
    EXPECT_EQ(near_f64.hash(), t.near64);
    EXPECT_EQ(ints.hash(), t.ints);
    EXPECT_EQ(loose.hash(), t.loose);
  }
  Fnv ints, uints;
  for (int64_t v : integers()) ints.add(cast(Scalar::of_int(v), DType::I64, DType::F32).bits);
  for (uint64_t v : stream(3)) uints.add(cast({v}, DType::U64, DType::F32).bits);
  EXPECT_EQ(ints.hash(), kIntToF32);
  EXPECT_EQ(uints.hash(), kUintToF32);
}

TEST(Convert, EveryCodeOfEverySmallFloatRoundTrips) {
  for (DType t : {DType::F16, DType::BF16, DType::F8E4M3FN, DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ,
                  DType::F8E8M0, DType::F4E2M1})
    for (uint64_t i = 0; i < uint64_t(1) << info(t).bits; i++) {
      ASSERT_EQ(to_bits(t, from_bits(t, i)), i) << dtype_name(t);
      for (DType wide : {DType::F32, DType::F64}) {
        Scalar v = from_bits(t, i), back = cast(cast(v, t, wide), wide, t);
        if (std::isnan(v.as_f32()) || std::isinf(v.as_f32())) continue;  // f8e5m2 saturates
        ASSERT_EQ(back, v) << dtype_name(t) << " " << i;
      }
    }
}

// F64 to F16 and F8 directly: through f32 these would be rounded twice.
TEST(Convert, OneRounding) {
  double v = 1 + 0x1p-11 + 0x1p-40;  // f32: exactly between two f16
  EXPECT_EQ(f(DType::F16, v), 1 + 0x1p-10);
  EXPECT_EQ(f(DType::BF16, 1 + 0x1p-8 + 0x1p-40), 1 + 0x1p-7);
  EXPECT_EQ(f(DType::F8E4M3FN, 1 + 0x1p-4 - 0x1p-40), 1.0);
  EXPECT_EQ(f(DType::F8E8M0, 1.5 - 0x1p-50), 1.0);
  int64_t big = (int64_t(1) << 60) + (int64_t(1) << 52) + 1;  // as a double: a tie of bf16
  EXPECT_EQ(to_double(DType::BF16, cast(Scalar::of_int(big), DType::I64, DType::BF16)), 0x1p60 + 0x1p53);
}

TEST(Convert, SpecialValues) {
  struct Row {
    DType type;
    double in, saturated, loose;
  } rows[] = {
      {DType::F16, 65519, 65504, 65504}, {DType::F16, 65520, kInf, kInf}, {DType::F16, -1e300, -kInf, -kInf},
      {DType::F16, 0x1p-25, 0, 0}, {DType::F16, 0x1.8p-25, 0x1p-24, 0x1p-24}, {DType::BF16, 3.4e38, kInf, kInf},
      {DType::F32, 1e39, kInf, kInf}, {DType::F8E4M3FN, 464, 448, 448}, {DType::F8E4M3FN, 465, 448, kNan},
      {DType::F8E4M3FN, kInf, 448, kNan}, {DType::F8E4M3FN, -kInf, -448, kNan}, {DType::F8E4M3FNUZ, kInf, 240, kNan},
      {DType::F8E4M3FNUZ, 1000, 240, kNan}, {DType::F8E5M2, kInf, 57344, kInf}, {DType::F8E5M2, -1e6, -57344, -kInf},
      {DType::F8E5M2FNUZ, kInf, 57344, kNan}, {DType::F8E8M0, 0, 0x1p-127, kNan}, {DType::F8E8M0, kInf, 0x1p127, kNan},
      {DType::F8E8M0, 3, 4, 4}, {DType::F8E8M0, 0x1.8p127, 0x1p127, kNan}, {DType::F8E8M0, -1, kNan, kNan},
      {DType::F4E2M1, kInf, 6, 6}, {DType::F4E2M1, -7, -6, -6}, {DType::F4E2M1, 5, 4, 4}, {DType::F4E2M1, kNan, 0, 0},
      {DType::F4E2M1, 0.25, 0, 0}, {DType::F4E2M1, 0.75, 1, 1}, {DType::F16, kNan, kNan, kNan},
      {DType::F8E5M2, kNan, kNan, kNan}, {DType::F8E8M0, kNan, kNan, kNan},
  };
  for (const Row &r : rows)
    for (bool saturate : {true, false}) {
      double want = saturate ? r.saturated : r.loose, got = f(r.type, r.in, saturate);
      EXPECT_TRUE(got == want || (got != got && want != want)) << dtype_name(r.type) << " " << r.in << " " << got;
    }
  EXPECT_EQ(to_bits(DType::F16, scalar_of(DType::F16, -0.0)), 0x8000u);
  EXPECT_EQ(to_bits(DType::F8E4M3FN, scalar_of(DType::F8E4M3FN, -0.0)), 0x80u);
  EXPECT_EQ(to_bits(DType::F8E4M3FNUZ, scalar_of(DType::F8E4M3FNUZ, -0.0)), 0u);
  for (double v : {kNan, -kNan, -0.0}) EXPECT_EQ(to_bits(DType::F4E2M1, scalar_of(DType::F4E2M1, v)), 8u);
  EXPECT_EQ(to_bits(DType::F8E5M2FNUZ, scalar_of(DType::F8E5M2FNUZ, -1e-30)), 0u);
  EXPECT_EQ(f16_of_f32(1.0f), 0x3c00);
  EXPECT_EQ(f32_of_f16(0x0001), 0x1p-24f);
  EXPECT_EQ(bf16_of_f32(-2.0f), 0xc000);
  // ONNX's round_mode.
  EXPECT_EQ(e8m0_of_f32(2.5f, E8m0Round::Up, true), 129);
  EXPECT_EQ(e8m0_of_f32(2.5f, E8m0Round::Nearest, true), 128);
  EXPECT_EQ(e8m0_of_f32(3.5f, E8m0Round::Down, true), 128);
  EXPECT_EQ(e8m0_of_f32(0x1p-127f, E8m0Round::Up, true), 0);
}

TEST(Convert, FloatToIntTruncatesAndSaturates) {
  EXPECT_EQ(to_int(DType::I8, -1.9), -1);
  EXPECT_EQ(to_int(DType::I8, 200), 127);
  EXPECT_EQ(to_int(DType::I8, -129), -128);
  EXPECT_EQ(to_int(DType::U8, -3), 0);
  EXPECT_EQ(to_int(DType::U8, 255.9), 255);
  EXPECT_EQ(to_int(DType::U8, 256), 255);
  EXPECT_EQ(to_int(DType::I4, -9), -8);
  EXPECT_EQ(to_int(DType::U2, 9), 3);
  EXPECT_EQ(to_int(DType::I64, 1e30), INT64_MAX);
  EXPECT_EQ(to_int(DType::I64, -1e30), INT64_MIN);
  EXPECT_EQ(to_int(DType::I64, -0x1p63), INT64_MIN);
  EXPECT_EQ(uint64_t(to_int(DType::U64, 0x1p63)), uint64_t(1) << 63);
  EXPECT_EQ(uint64_t(to_int(DType::U64, 1e30)), UINT64_MAX);
  EXPECT_EQ(to_int(DType::I32, kInf), INT32_MAX);
  EXPECT_EQ(to_int(DType::I32, -kInf), INT32_MIN);
  for (DType t : {DType::I8, DType::U64, DType::I64, DType::U4}) EXPECT_EQ(to_int(t, kNan), 0);
  for (double v : {0.5, -0.5, kNan, kInf, 1e-320}) EXPECT_TRUE(scalar_of(DType::Bool, v).as_bool());
  for (double v : {0.0, -0.0}) EXPECT_FALSE(scalar_of(DType::Bool, v).as_bool());
}

TEST(Convert, IntToIntKeepsTheLowBits) {
  auto c = [](int64_t v, DType from, DType to) { return cast(Scalar::of_int(v), from, to).as_int(); };
  EXPECT_EQ(c(300, DType::I32, DType::U8), 44);
  EXPECT_EQ(c(200, DType::I16, DType::I8), -56);
  EXPECT_EQ(c(-1, DType::I8, DType::U32), 0xffffffff);
  EXPECT_EQ(c(9, DType::I8, DType::I4), -7);
  EXPECT_EQ(c(-1, DType::I64, DType::U2), 3);
  EXPECT_EQ(c(-1, DType::I64, DType::U64), -1);
  EXPECT_EQ(c(5, DType::I64, DType::Bool), 1);
  EXPECT_EQ(c(1, DType::Bool, DType::I64), 1);
  EXPECT_EQ(to_double(DType::F16, cast({1}, DType::Bool, DType::F16)), 1.0);
  EXPECT_EQ(to_double(DType::F64, cast({~uint64_t(0)}, DType::U64, DType::F64)), 0x1p64);
  EXPECT_EQ(narrow(DType::U8, 256 + 7).as_int(), 7);
  EXPECT_EQ(narrow(DType::I2, 2).as_int(), -2);
}

TEST(Convert, Ends) {
  EXPECT_EQ(lowest(DType::I4).as_int(), -8);
  EXPECT_EQ(highest(DType::U4).as_int(), 15);
  EXPECT_EQ(highest(DType::I64).as_int(), INT64_MAX);
  EXPECT_EQ(lowest(DType::I64).as_int(), INT64_MIN);
  EXPECT_EQ(highest(DType::U64).as_uint(), UINT64_MAX);
  EXPECT_EQ(to_double(DType::F16, lowest(DType::F16)), -65504);
  EXPECT_EQ(to_double(DType::F8E5M2, highest(DType::F8E5M2)), 57344);
  EXPECT_EQ(to_double(DType::F64, highest(DType::F64)), std::numeric_limits<double>::max());
  EXPECT_EQ(to_double(DType::F32, lowest(DType::F32)), std::numeric_limits<float>::lowest());
  EXPECT_EQ(to_double(DType::F8E8M0, lowest(DType::F8E8M0)), 0x1p-127);
}

TEST(Convert, SubByteElementsPackFromTheLowBits) {
  std::byte p[2] = {std::byte(0xff), std::byte(0xff)};
  store(DType::I4, p, 1, Scalar::of_int(-8));
  store(DType::I4, p, 2, Scalar::of_int(5));
  EXPECT_EQ(unsigned(p[0]), 0x8fu);
  EXPECT_EQ(unsigned(p[1]), 0xf5u);
  EXPECT_EQ(load(DType::I4, p, 0).as_int(), -1);
  EXPECT_EQ(load(DType::U4, p, 1).as_int(), 8);
  store(DType::U2, p, 3, Scalar::of_int(1));
  EXPECT_EQ(unsigned(p[0]), 0x4fu);
  EXPECT_EQ(load(DType::I2, p, 2).as_int(), 0);
  store(DType::F4E2M1, p, 3, scalar_of(DType::F4E2M1, -1.5));
  EXPECT_EQ(unsigned(p[1]), 0xb5u);
  EXPECT_EQ(load(DType::F4E2M1, p, 3).as_f32(), -1.5f);
}

TEST(Convert, Arrays) {
  float src[3] = {1.5f, -2.0f, 300.0f};
  std::byte dst[3];
  cast(DType::F32, reinterpret_cast<std::byte *>(src), DType::U8, dst, 3);
  EXPECT_EQ(int(dst[0]), 1);
  EXPECT_EQ(int(dst[1]), 0);
  EXPECT_EQ(int(dst[2]), 255);
}

TEST(Literal, Shortest) {
  struct { double v; const char *text; } rows[] = {
      {1, "1.0"}, {0.1, "0.1"}, {-0.0, "-0.0"}, {1e-5, "1e-05"}, {1e20, "1e+20"}, {123456, "123456.0"}, {kInf, "inf"},
      {-kInf, "-inf"}, {kNan, "nan"}, {5e-324, "5e-324"}, {0.30000000000000004, "0.30000000000000004"}, {3.5, "3.5"},
  };
  for (auto &r : rows) EXPECT_EQ(shortest(r.v), r.text);
  for (uint64_t s : stream(5)) {
    double v = std::bit_cast<double>(s), back;
    if (std::isnan(v)) continue;
    ASSERT_TRUE(parse_number(shortest(v), &back));
    ASSERT_EQ(std::bit_cast<uint64_t>(back), s);
  }
}

TEST(Literal, Parse) {
  struct { const char *text; double v; } good[] = {
      {"1", 1}, {"1.5", 1.5}, {"1e-5", 1e-5}, {"-2E3", -2000}, {".5", 0.5}, {"5.", 5}, {"inf", kInf}, {"-inf", -kInf},
      {"4.9e-324", 5e-324}, {"1e-400", 0}, {"1e400", kInf}, {"-1e400", -kInf}, {"0.0000000001e-330", 0},
      {"1e99999999999999999999", kInf}, {"1e-99999999999999999999", 0}, {"0e99999999999", 0},
      {"2.2250738585072011e-308", 2.2250738585072011e-308},
  };
  for (auto &r : good) {
    double v = 7;
    EXPECT_TRUE(parse_number(r.text, &v)) << r.text;
    EXPECT_EQ(v, r.v) << r.text;
  }
  double v;
  EXPECT_TRUE(parse_number("-1e-400", &v) && v == 0 && std::signbit(v));
  EXPECT_TRUE(parse_number("nan", &v) && std::isnan(v));
  for (const char *bad : {"", "-", "1x", "1,5", " 1", "+1", "e5", "0x10", "1e", "--1"})
    EXPECT_FALSE(parse_number(bad, &v)) << bad;
}

int digits_of(double v) {
  std::string s = shortest(v).substr(v < 0);
  s = s.substr(0, s.find('e'));
  std::erase(s, '.');
  s.erase(0, s.find_first_not_of('0'));
  s.erase(s.find_last_not_of('0') + 1);
  return int(s.size());
}

TEST(Literal, FewestDigits) {
  EXPECT_EQ(fewest_digits(0.1f, DType::F32), 0.1);
  EXPECT_EQ(fewest_digits(double(0.1f), DType::F64), double(0.1f));
  EXPECT_EQ(fewest_digits(3.40282347e38f, DType::F32), 3.4028235e38);
  EXPECT_EQ(fewest_digits(f(DType::F16, 0.1), DType::F16), 0.1);
  EXPECT_EQ(fewest_digits(448, DType::F8E4M3FN), 448);
  EXPECT_EQ(fewest_digits(0.1015625, DType::F8E4M3FN), 0.1);
  EXPECT_EQ(fewest_digits(kInf, DType::F16), kInf);
  for (DType t : {DType::F16, DType::BF16, DType::F8E4M3FN, DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ,
                  DType::F8E8M0, DType::F4E2M1})
    for (uint64_t i = 0; i < uint64_t(1) << info(t).bits; i++) {
      Scalar s = from_bits(t, i);
      double v = to_double(t, s), d = fewest_digits(v, t);
      if (!std::isfinite(v)) continue;
      ASSERT_EQ(scalar_of(t, d), s) << dtype_name(t) << " " << v << " " << d;
      ASSERT_LE(shortest(d).size(), shortest(v).size());
      // No decimal with a digit less next to v rounds to v.
      int n = digits_of(d) - 1;
      if (d == v || n < 1) continue;
      double unit = std::pow(10.0, std::floor(std::log10(std::fabs(v))) - n + 1), at = std::floor(v / unit);
      for (double k = at - 2; k <= at + 3; k++) {
        double c = std::stod(shortest(k) + "e" + std::to_string(int(std::lround(std::log10(unit)))));
        ASSERT_FALSE(c != 0 && scalar_of(t, c) == s && digits_of(c) <= n)
            << dtype_name(t) << " " << v << " " << d << " " << c;
      }
    }
  for (uint64_t s : stream(6)) {
    float v = as_f32(s);
    if (!std::isfinite(v)) continue;
    double d = fewest_digits(v, DType::F32);
    ASSERT_EQ(float(d), v);
    ASSERT_TRUE(digits_of(d) <= 9 || d == v) << v;
  }
}

}  // namespace
}  // namespace mlc
