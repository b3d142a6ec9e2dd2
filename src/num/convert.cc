#include "num/convert.h"

#include <array>
#include <cmath>
#include <cstring>

namespace mlc {
namespace {

// What the top codes of a format mean.
enum class Top : uint8_t {
  Ieee,  // exponent all ones: inf and NaN
  Fn,    // all ones is NaN, no inf
  Fnuz,  // no inf, no -0: its code 1 0..0 is the NaN
  None,  // every code is finite; what is NaN becomes -0
};
struct Format {
  int exponent, mantissa, bias;  // bits, bits, exponent of 1.0
  Top top;
  constexpr uint64_t sign() const { return uint64_t(1) << (exponent + mantissa); }
  constexpr uint64_t inf() const { return ((uint64_t(1) << exponent) - 1) << mantissa; }
  constexpr uint64_t largest() const {
    return top == Top::Ieee ? inf() - 1 : top == Top::Fn ? sign() - 2 : sign() - 1;
  }
};
constexpr Format kF16{5, 10, 15, Top::Ieee}, kBF16{8, 7, 127, Top::Ieee}, kE4M3FN{4, 3, 7, Top::Fn},
    kE4M3FNUZ{4, 3, 8, Top::Fnuz}, kE5M2{5, 2, 15, Top::Ieee}, kE5M2FNUZ{5, 2, 16, Top::Fnuz},
    kE2M1{2, 1, 1, Top::None};

// A finite number, (-1)^negative * significand * 2^exponent.
struct Parts {
  bool negative;
  uint64_t significand;
  int exponent;
};
Parts parts(double v) {
  uint64_t b = std::bit_cast<uint64_t>(v), m = b & 0xfffffffffffff;
  int e = int(b >> 52 & 0x7ff);
  return {bool(b >> 63), e ? m | uint64_t(1) << 52 : m, (e ? e : 1) - 1075};
}
Parts parts(float v) {
  uint32_t b = std::bit_cast<uint32_t>(v), m = b & 0x7fffff;
  int e = int(b >> 23 & 0xff);
  return {bool(b >> 31), e ? m | 1u << 23 : m, (e ? e : 1) - 150};
}

// x >> n, rounded to nearest even.
uint64_t shift_rounded(uint64_t x, int n) {
  if (n <= 0) return x << -n;
  if (n > 64) return 0;
  uint64_t kept = n == 64 ? 0 : x >> n, lost = x << (64 - n), half = uint64_t(1) << 63;
  return kept + (lost > half || (lost == half && (kept & 1)));
}

uint64_t nan_of(const Format &f, bool negative, uint64_t payload) {
  uint64_t sign = negative ? f.sign() : 0;
  switch (f.top) {
    case Top::Ieee: return sign | f.inf() | (payload ? payload : uint64_t(1) << (f.mantissa - 1));
    case Top::Fn: return sign | (f.sign() - 1);
    case Top::Fnuz: return f.sign();
    default: return f.sign();
  }
}

// The code of the value nearest to a finite number. Codes of one sign are in the order of their values, so rounding
// may carry from the mantissa into the exponent:
//   e = floor(log2 |x|), not below the exponent of the smallest normal number
//   code = (e - smallest) << mantissa bits, + significand with its leading one, rounded
inline uint64_t encode(const Format &f, Parts x, bool saturate) {
  uint64_t sign = x.negative ? f.sign() : 0;
  if (!x.significand) return f.top == Top::Fnuz ? 0 : sign;
  const int smallest = 1 - f.bias;
  int e = x.exponent + 63 - std::countl_zero(x.significand);
  if (e < smallest) e = smallest;
  uint64_t code = (uint64_t(e - smallest) << f.mantissa) + shift_rounded(x.significand, e - f.mantissa - x.exponent);
  if (code > f.largest()) {
    if (saturate || f.top == Top::None) return sign | f.largest();
    return f.top == Top::Ieee ? sign | f.inf() : nan_of(f, x.negative, 0);
  }
  return f.top == Top::Fnuz && !code ? 0 : sign | code;
}
inline uint64_t encode(const Format &f, double v, bool saturate) {
  uint64_t b = std::bit_cast<uint64_t>(v);
  if (std::isfinite(v)) return encode(f, parts(v), saturate);
  if (std::isnan(v)) return nan_of(f, b >> 63, (b & 0xfffffffffffff) >> (52 - f.mantissa));
  return encode(f, {bool(b >> 63), 1, 2000}, saturate);  // inf as any number above all finite ones
}
inline uint64_t encode(const Format &f, float v, bool saturate) {
  uint32_t b = std::bit_cast<uint32_t>(v), a = b & 0x7fffffff;
  int shift = 23 - f.mantissa;
  if (a >= uint32_t(128 - f.bias) << 23 && a < 0x7f800000) {  // a normal number: its bits are rounded as they are
    uint32_t code = ((a + (1u << (shift - 1)) - 1 + (a >> shift & 1)) >> shift) - (uint32_t(127 - f.bias) << f.mantissa);
    if (code <= f.largest()) return (b >> 31 ? f.sign() : 0) | code;
  }
  if (std::isfinite(v)) return encode(f, parts(v), saturate);
  if (std::isnan(v)) return nan_of(f, b >> 31, (b & 0x7fffff) >> (23 - f.mantissa));
  return encode(f, {bool(b >> 31), 1, 2000}, saturate);
}

constexpr float decode(const Format &f, uint32_t bits) {
  uint32_t sign = bits & f.sign() ? 0x80000000u : 0, code = bits & (f.sign() - 1);
  uint32_t m = code & ((1u << f.mantissa) - 1), e = code >> f.mantissa;
  if (f.top == Top::Fnuz && sign && !code) return std::bit_cast<float>(0xffc00000u);
  if (f.top == Top::Ieee && code >= f.inf()) return std::bit_cast<float>(sign | 0x7f800000u | m << (23 - f.mantissa));
  if (f.top == Top::Fn && code == f.sign() - 1) return std::bit_cast<float>(sign | 0x7fc00000u);
  float significand = float(e ? m | 1u << f.mantissa : m);
  int scale = int(e ? e : 1) - f.bias - f.mantissa;  // -24 .. 30: a normal power of two, the product is exact
  float x = significand * std::bit_cast<float>(uint32_t(scale + 127) << 23);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(x) | sign);
}
template <size_t N> constexpr std::array<float, N> table(const Format &f) {
  std::array<float, N> t{};
  for (uint32_t i = 0; i < N; i++) t[i] = decode(f, i);
  return t;
}
constexpr auto kFromE4M3FN = table<256>(kE4M3FN), kFromE4M3FNUZ = table<256>(kE4M3FNUZ), kFromE5M2 = table<256>(kE5M2),
               kFromE5M2FNUZ = table<256>(kE5M2FNUZ);
constexpr auto kFromE2M1 = table<16>(kE2M1);

// 2^(code - 127); 0xff is NaN.
uint64_t encode_e8m0(Parts x, E8m0Round round, bool saturate) {
  constexpr int kNan = 0xff, kMax = 0xfe;
  if (x.negative && x.significand) return kNan;
  int top = 63 - std::countl_zero(x.significand | 1);
  int e = x.exponent + top;
  if (!x.significand || e < -127) return saturate ? 0 : kNan;
  uint64_t fraction = x.significand << (63 - top) << 1;
  bool up = round == E8m0Round::Up ? fraction != 0 : round == E8m0Round::Nearest && fraction >> 63;
  int code = e + 127 + up;
  return uint64_t(code <= kMax ? code : saturate ? kMax : kNan);
}
template <class Float> uint64_t encode_e8m0(Float v, E8m0Round round, bool saturate) {
  if (std::isnan(v)) return 0xff;
  return encode_e8m0(std::isinf(v) ? Parts{v < 0, 1, 2000} : parts(v), round, saturate);
}
float decode_e8m0(uint32_t code) {
  return std::bit_cast<float>(code == 0xff ? 0x7fc00000u : code ? code << 23 : 0x00400000u);
}

// The code of a number in a float type below f32; From is float, double or the Parts of an integer.
template <class From> uint64_t encode_as(DType t, const From &v, bool saturate) {
  switch (t) {
    case DType::F16: return encode(kF16, v, false);
    case DType::BF16: return encode(kBF16, v, false);
    case DType::F8E4M3FN: return encode(kE4M3FN, v, saturate);
    case DType::F8E4M3FNUZ: return encode(kE4M3FNUZ, v, saturate);
    case DType::F8E5M2: return encode(kE5M2, v, saturate);
    case DType::F8E5M2FNUZ: return encode(kE5M2FNUZ, v, saturate);
    case DType::F8E8M0: return encode_e8m0(v, E8m0Round::Nearest, saturate);
    case DType::F4E2M1: return encode(kE2M1, v, true);
    default: return 0;
  }
}
float decode_as(DType t, uint64_t bits) {
  switch (t) {
    case DType::F16: return decode(kF16, uint16_t(bits));
    case DType::BF16: return f32_of_bf16(uint16_t(bits));
    case DType::F8E4M3FN: return kFromE4M3FN[bits & 0xff];
    case DType::F8E4M3FNUZ: return kFromE4M3FNUZ[bits & 0xff];
    case DType::F8E5M2: return kFromE5M2[bits & 0xff];
    case DType::F8E5M2FNUZ: return kFromE5M2FNUZ[bits & 0xff];
    case DType::F8E8M0: return decode_e8m0(bits & 0xff);
    case DType::F4E2M1: return kFromE2M1[bits & 0xf];
    default: return std::bit_cast<float>(uint32_t(bits));
  }
}

// Truncated and saturated. Both ends are compared as powers of two, which doubles hold exactly.
Scalar int_of(double v, DType to) {
  if (v != v) return {};
  int bits = info(to).bits;
  if (is_signed(to)) {
    double end = std::ldexp(1.0, bits - 1);
    uint64_t top = (uint64_t(1) << (bits - 1)) - 1;
    return v >= end ? Scalar{top} : v < -end ? Scalar{~top} : Scalar::of_int(int64_t(v));
  }
  if (v >= std::ldexp(1.0, bits)) return {~uint64_t(0) >> (64 - bits)};
  return v <= 0 ? Scalar{} : Scalar{uint64_t(v)};
}

}  // namespace

float f32_of_f16(uint16_t bits) { return decode(kF16, bits); }
uint16_t f16_of_f32(float v) { return uint16_t(encode(kF16, v, false)); }
uint16_t bf16_of_f32(float v) {
  uint32_t b = std::bit_cast<uint32_t>(v);
  if ((b & 0x7fffffff) > 0x7f800000) return uint16_t(encode(kBF16, v, false));
  return uint16_t((b + 0x7fff + (b >> 16 & 1)) >> 16);
}
uint8_t e8m0_of_f32(float v, E8m0Round round, bool saturate) { return uint8_t(encode_e8m0(v, round, saturate)); }

Scalar cast(Scalar v, DType from, DType to, bool saturate) {
  if (from == to) return v;
  if (is_float(from)) {
    bool wide = from == DType::F64;
    if (to == DType::F32) return wide ? Scalar::of_f32(float(v.as_f64())) : v;
    double d = wide ? v.as_f64() : double(v.as_f32());
    if (to == DType::F64) return Scalar::of_f64(d);
    if (is_float(to))
      return from_bits(to, wide ? encode_as(to, d, saturate) : encode_as(to, v.as_f32(), saturate));
    if (to == DType::Bool) return Scalar::of_bool(d != 0);
    return is_int(to) ? int_of(d, to) : v;
  }
  if (is_float(to)) {
    bool negative = is_signed(from) && v.as_int() < 0;
    if (to == DType::F64) return Scalar::of_f64(is_signed(from) ? double(v.as_int()) : double(v.as_uint()));
    if (to == DType::F32) return Scalar::of_f32(is_signed(from) ? float(v.as_int()) : float(v.as_uint()));
    return from_bits(to, encode_as(to, Parts{negative, negative ? -v.bits : v.bits, 0}, saturate));
  }
  return to == DType::Bool || is_int(to) ? narrow(to, v.as_int()) : v;
}

uint64_t to_bits(DType t, Scalar v) {
  if (t == DType::F32 || t == DType::F64) return v.bits;
  if (t == DType::BF16) return bf16_of_f32(v.as_f32());
  if (is_float(t)) return encode_as(t, v.as_f32(), false);  // exact: v is a value of t
  int bits = info(t).bits;
  return bits ? v.bits & ~uint64_t(0) >> (64 - bits) : 0;
}

Scalar from_bits(DType t, uint64_t bits) {
  if (t == DType::F64) return {bits};
  if (is_float(t)) return Scalar::of_f32(decode_as(t, bits));
  if (t == DType::Bool) return Scalar::of_bool(bits & 0xff);
  return info(t).bits ? narrow(t, int64_t(bits)) : Scalar{};
}

Scalar load(DType t, const std::byte *p, size_t i) {
  uint64_t bits = 0;
  switch (info(t).bits) {
    case 2: bits = uint64_t(p[i / 4]) >> (i % 4 * 2); break;
    case 4: bits = uint64_t(p[i / 2]) >> (i % 2 * 4); break;
    case 8: bits = uint64_t(p[i]); break;
    case 16: memcpy(&bits, p + i * 2, 2); break;
    case 32: memcpy(&bits, p + i * 4, 4); break;
    case 64: memcpy(&bits, p + i * 8, 8); break;
  }
  return from_bits(t, bits);
}

void store(DType t, std::byte *p, size_t i, Scalar v) {
  uint64_t bits = to_bits(t, v);
  auto pack = [&](size_t per_byte) {
    size_t width = 8 / per_byte, shift = i % per_byte * width;
    unsigned mask = (1u << width) - 1, old = unsigned(p[i / per_byte]) & ~(mask << shift);
    p[i / per_byte] = std::byte(old | (unsigned(bits) & mask) << shift);
  };
  switch (info(t).bits) {
    case 2: pack(4); break;
    case 4: pack(2); break;
    case 8: p[i] = std::byte(bits); break;
    case 16: memcpy(p + i * 2, &bits, 2); break;
    case 32: memcpy(p + i * 4, &bits, 4); break;
    case 64: memcpy(p + i * 8, &bits, 8); break;
  }
}

void cast(DType from, const std::byte *src, DType to, std::byte *dst, size_t n, bool saturate) {
  if (from == to) {
    memcpy(dst, src, size_t(storage_bytes(from, int64_t(n))));
    return;
  }
  for (size_t i = 0; i < n; i++) store(to, dst, i, cast(load(from, src, i), from, to, saturate));
}

Scalar scalar_of(DType t, double v) { return cast(Scalar::of_f64(v), DType::F64, t); }
Scalar scalar_of(DType t, int64_t v) { return cast(Scalar::of_int(v), DType::I64, t); }
double to_double(DType t, Scalar v) {
  if (is_float(t)) return t == DType::F64 ? v.as_f64() : v.as_f32();
  return is_signed(t) ? double(v.as_int()) : double(v.as_uint());
}

Scalar highest(DType t) {
  if (t == DType::Bool) return {1};
  if (is_int(t)) return {~uint64_t(0) >> (64 - info(t).bits + is_signed(t))};
  switch (t) {
    case DType::F64: return Scalar::of_f64(0x1.fffffffffffffp1023);
    case DType::F32: return Scalar::of_f32(0x1.fffffep127f);
    case DType::F16: return from_bits(t, kF16.largest());
    case DType::BF16: return from_bits(t, kBF16.largest());
    default: return scalar_of(t, double(INFINITY));  // f8, f4: saturates
  }
}
Scalar lowest(DType t) {
  if (t == DType::Bool) return {};
  if (is_int(t)) return is_signed(t) ? Scalar{~highest(t).bits} : Scalar{};
  if (t == DType::F64) return Scalar::of_f64(-highest(t).as_f64());
  return t == DType::F8E8M0 ? from_bits(t, 0) : Scalar::of_f32(-highest(t).as_f32());
}

}  // namespace mlc
