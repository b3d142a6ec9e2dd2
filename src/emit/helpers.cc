#include "emit/helpers.h"

#include <algorithm>

#include <fmt/core.h>

#include "num/literal.h"

namespace mlc {
namespace {

// Words in a text: $N the function, $T the type of values, $U one of unsigned integers for arithmetic, $S storage, $B
// bits, $OPTIONS the model's, $L the letter of float builtins, $P of their instructions, $I an integer type for
// truncation, $E 2^(bits of the mantissa), $H 2^(bits - sign), $MAX, $MIN; of a cast $F, the type cast from; of small
// floats $FORMAT (mantissa, bias, sign) and codes (see small_encode). $(family) is a helper of the same type,
// $(family:) one of no type.
struct Family {
  std::string_view name;
  char kind;  // i signed, u unsigned, b both, f f32 and f64, n all these and bool, A smaller floats; more in fits()
  std::string_view text;
};
constexpr Family kFamilies[] = {
    {"add", 'b', "$T $N($T a, $T b) { return ($T)(($U)a + ($U)b); }"},
    {"sub", 'b', "$T $N($T a, $T b) { return ($T)(($U)a - ($U)b); }"},
    {"mul", 'b', "$T $N($T a, $T b) { return ($T)(($U)a * ($U)b); }"},
    {"neg", 'b', "$T $N($T a) { return ($T)(0 - ($U)a); }"},
    {"div", 'i', R"($T $N($T a, $T b) {  // towards zero
  return ($T)(b == 0 ? 0 : b == -1 ? ($T)(0 - ($U)a) : a / b);
})"},
    {"div", 'u', "$T $N($T a, $T b) { return ($T)(b == 0 ? 0 : a / b); }"},
    {"floordiv", 'i', R"($T $N($T a, $T b) {
  const $T q = $(div)(a, b);
  return ($T)(b != 0 && b != -1 && (a < 0) != (b < 0) && q * b != a ? q - 1 : q);
})"},
    {"floordiv", 'u', "$T $N($T a, $T b) { return ($T)(b == 0 ? 0 : a / b); }"},
    {"mod", 'i', R"($T $N($T a, $T b) {  // the sign of b
  if (b == 0 || b == -1) return 0;
  const $T r = ($T)(a % b);
  return ($T)(r != 0 && (r < 0) != (b < 0) ? r + b : r);
})"},
    {"mod", 'u', "$T $N($T a, $T b) { return ($T)(b == 0 ? 0 : a % b); }"},
    {"fmod", 'i', "$T $N($T a, $T b) { return ($T)(b == 0 || b == -1 ? 0 : a % b); }  // the sign of a"},
    {"fmod", 'u', "$T $N($T a, $T b) { return ($T)(b == 0 ? 0 : a % b); }"},
    {"max", 'b', "$T $N($T a, $T b) { return a < b ? b : a; }"},
    {"min", 'b', "$T $N($T a, $T b) { return b < a ? b : a; }"},
    {"abs", 'i', "$T $N($T a) { return a < 0 ? ($T)(0 - ($U)a) : a; }"},
    {"abs", 'u', "$T $N($T a) { return a; }"},
    {"ipow", 'i', R"($T $N($T x, $T n) {  // 1 / x^-n, truncated, where n is negative
  if (n < 0) return ($T)(x == 1 ? 1 : x == -1 ? (n % 2 != 0 ? -1 : 1) : 0);
  uint64_t r = 1, p = (uint64_t)x;
  for ($T k = n; k != 0; k = ($T)(k / 2), p *= p)
    if (k % 2 != 0) r *= p;
  return ($T)r;
})"},
    {"ipow", 'u', R"($T $N($T x, $T n) {
  uint64_t r = 1, p = x;
  for ($T k = n; k != 0; k = ($T)(k / 2), p *= p)
    if (k % 2 != 0) r *= p;
  return ($T)r;
})"},
    {"shl", 'b', "$T $N($T a, $T n) { return (uint64_t)n >= $B ? ($T)0 : ($T)(($U)a << n); }"},
    {"shr", 'b', "$T $N($T a, $T n) { return (uint64_t)n >= $B ? ($T)0 : ($T)(a >> n); }"},

    {"narrow", 'i', "$T $N(int64_t x) { return ($T)((int64_t)((uint64_t)x << (64 - $B)) >> (64 - $B)); }"},
    {"narrow", 'u', "$T $N(int64_t x) { return ($T)(x & ((1 << $B) - 1)); }"},
    {"load", 'b', "$T $N(const uint8_t *p, int64_t i) { return $(narrow)(p[i / (8 / $B)] >> i % (8 / $B) * $B); }"},
    {"store", 'b', R"(void $N(uint8_t *p, int64_t i, $T v) {
  const int at = (int)(i % (8 / $B) * $B), mask = (1 << $B) - 1;
  p += i / (8 / $B);
  *p = (uint8_t)((*p & ~(mask << at)) | (v & mask) << at);
})"},

    {"max", 'f', "$T $N($T a, $T b) { return b > a || b != b ? b : a; }  // NaN wins"},
    {"min", 'f', "$T $N($T a, $T b) { return b < a || b != b ? b : a; }  // NaN wins"},
    {"at_least", 'f', "$T $N($T x, $T c) { return c > x ? c : x; }  // max(x, c), c no NaN"},
    {"at_most", 'f', "$T $N($T x, $T c) { return c < x ? c : x; }  // min(x, c), c no NaN"},
    {"trunc", 'f', R"($T $N($T x) {
  if (!(__builtin_fabs$L(x) < $E)) return x;  // an integer, inf or NaN
  return __builtin_copysign$L(($T)($I)x, x);
})"},
    {"floor", 'f', R"($T $N($T x) {
  const $T t = $(trunc)(x);
  return t > x ? t - 1 : t;
})"},
    {"ceil", 'f', R"($T $N($T x) {
  const $T t = $(trunc)(x);
  return t < x ? t + 1 : t;
})"},
    {"round_even", 'f', R"($T $N($T x) {
  const $T a = __builtin_fabs$L(x);
  if (!(a < $E)) return x;
  return __builtin_copysign$L((a + $E) - $E, x);  // a sum above $E has no fraction
})"},
    {"sqrt", 'f', R"($T $N($T x) {  // the instruction alone: the builtin calls the library for errno
#if defined(__x86_64__)
  __asm__("sqrts$P %0, %0" : "+x"(x));
  return x;
#elif defined(__aarch64__)
  __asm__("fsqrt %$P0, %$P0" : "+w"(x));
  return x;
#else
  return __builtin_sqrt$L(x);
#endif
})"},
    {"fma", 'F', R"(float $N(float x, float y, float z) {  // x * y + z, rounded once: the sum in double is made odd
  const double p = (double)x * y, t = p + z, u = t - p, lost = (p - (t - u)) + (z - u);
  if (!(lost < 0) && !(lost > 0)) return (float)t;
  int64_t b;
  double s;
  __builtin_memcpy(&b, &t, 8);
  if (b % 2 == 0) b += (lost > 0) == (t > 0) ? 1 : -1;
  __builtin_memcpy(&s, &b, 8);
  return (float)s;
})"},
    {"fma", 'D', R"(double $N(double x, double y, double z) {  // x * y + z, rounded once
  __extension__ typedef unsigned __int128 wide;
  const double in[] = {x, y, z};
  uint64_t m[3];
  int e[3];
  for (int i = 0; i < 3; i++) {
    __builtin_memcpy(&m[i], &in[i], 8);
    e[i] = (int)(m[i] >> 52 & 0x7ff);
    m[i] &= 0xfffffffffffff;
    if (e[i] == 0x7ff) return i < 2 ? x * y + z : z + z;
    if (e[i] != 0) m[i] |= (uint64_t)1 << 52;
    else e[i] = 1;
  }
  if (m[0] == 0 || m[1] == 0) return x * y + z;
  if (m[2] == 0) return x * y;
  bool sign = __builtin_signbit(x) != __builtin_signbit(y);
  wide a = (wide)m[0] * m[1], b = m[2];  // times 2^f, 2^g
  int f = e[0] + e[1] - 2150, g = e[2] - 1075;
  for (; a >> 125 == 0; f--) a <<= 1;
  for (; b >> 125 == 0; g--) b <<= 1;
  const bool minus = sign != (bool)__builtin_signbit(z);
  if (f < g || (f == g && a < b)) {
    const wide c = a;
    const int h = f;
    a = b, b = c, f = g, g = h;
    sign = __builtin_signbit(z);
  }
  const int apart = f - g;
  if (apart > 126) b = 1;
  else if (apart > 0) b = b >> apart | ((b & (((wide)1 << apart) - 1)) != 0);
  a = minus ? a - b : a + b;
  if (a == 0) return 0.0;
  for (; a >> 126 == 0; f--) a <<= 1;
  int drop = 74;  // of 127 bits
  if (f + drop < -1074) drop = -1074 - f;
  uint64_t r = 0;
  if (drop <= 127) {
    const wide half = (wide)1 << (drop - 1), rest = drop == 127 ? a : a & ((half << 1) - 1);
    r = drop == 127 ? 0 : (uint64_t)(a >> drop);
    if (rest > half || (rest == half && r % 2 != 0)) r++;
  }
  const int exponent = f + drop + 1075;  // carries run into the exponent
  uint64_t bits = exponent > 2046 ? (uint64_t)0x7ff << 52 : r + ((uint64_t)(exponent - 1) << 52);
  bits |= (uint64_t)sign << 63;
  __builtin_memcpy(&x, &bits, 8);
  return x;
})"},
    {"fma_native", 'f', R"($T $N($T x, $T y, $T z) {
#if defined(__x86_64__)
  __asm__("vfmadd213s$P %2, %1, %0" : "+x"(x) : "x"(y), "x"(z));
  return x;
#else
  return __builtin_fma$L(x, y, z);
#endif
})"},
    {"fma_neon", 'f', "$T $N($T x, $T y, $T z) { return __builtin_fma$L(x, y, z); }  // an instruction"},
    {"fmod", 'f', R"($T $N($T x, $T y) {  // exact: y times powers of two is taken off, the largest first; the sign of x
  const $T b = __builtin_fabs$L(y);
  $T r = __builtin_fabs$L(x), t = b;
  if (!(r <= $MAX) || !(b > 0)) return __builtin_nan$L("");
  while (t + t <= r) t += t;
  for (;; t /= 2) {
    if (t <= r) r -= t;
    if (t == b) return __builtin_copysign$L(r, x);
  }
})"},
    {"equal", 'n', "bool $N($T a, $T b) { return a == b; }"},  // where g++ warns of the infix form
    {"unequal", 'n', "bool $N($T a, $T b) { return a != b; }"},
    {"less", 'n', "bool $N($T a, $T b) { return a < b; }"},
    {"less_equal", 'n', "bool $N($T a, $T b) { return a <= b; }"},
    {"greater", 'n', "bool $N($T a, $T b) { return a > b; }"},
    {"greater_equal", 'n', "bool $N($T a, $T b) { return a >= b; }"},
    {"isnan", 'f', "bool $N($T x) { return x != x; }"},
    {"isinf", 'f', "bool $N($T x) { return __builtin_fabs$L(x) > $MAX; }"},

    {"decode", 'h', R"(float $N(uint16_t h) {
  const uint32_t m = h & 0x7fff;
  uint32_t b = (m << 13) + (m < 0x7c00 ? 0x38000000 : 0x70000000);
  float x = (float)m * 5.9604645e-08f;  // below 2^-14
  if (m < 0x400) __builtin_memcpy(&b, &x, 4);
  b |= (uint32_t)(h & 0x8000) << 16;
  __builtin_memcpy(&x, &b, 4);
  return x;
})"},
    {"encode", 'h', R"(uint16_t $N(float x) {
  uint32_t b;
  __builtin_memcpy(&b, &x, 4);
  const uint32_t sign = b >> 16 & 0x8000;
  b &= 0x7fffffff;
  if (b >= 0x47800000) {
    b = b <= 0x7f800000 ? 0x7c00 : 0x7c00 | ((b >> 13 & 0x3ff) != 0 ? b >> 13 & 0x3ff : 0x200);
  } else if (b < 0x38800000) {  // in units of 2^-24, those of the last place of 0.5
    x = __builtin_fabsf(x) + 0.5f;
    __builtin_memcpy(&b, &x, 4);
    b -= 0x3f000000;
  } else {
    b = (b - 0x38000000 + 0xfff + (b >> 13 & 1)) >> 13;
  }
  return (uint16_t)(sign | b);
})"},
    {"decode", 't', R"(float $N(uint16_t h) {
  const uint32_t b = (uint32_t)h << 16;
  float x;
  __builtin_memcpy(&x, &b, 4);
  return x;
})"},
    {"encode", 't', R"(uint16_t $N(float x) {
  uint32_t b;
  __builtin_memcpy(&b, &x, 4);
  if (x != x) return (uint16_t)((b >> 16) | ((b >> 16 & 0x7f) != 0 ? 0 : 0x40));
  return (uint16_t)((b + 0x7fff + (b >> 16 & 1)) >> 16);
})"},
    {"decode", 's', "float $N(uint8_t code) { return $(small_decode:)(code, $FORMAT, $LAST, $INF); }"},
    {"encode", 's', "$S $N(float x) { return ($S)$(small_encode:)(x, $FORMAT, $LAST, $OVER, $NAN); }"},
    {"encode_saturated", 's', "$S $N(float x) { return ($S)$(small_encode:)(x, $FORMAT, $LAST, $LAST, $NAN); }"},
    {"encode64", 'S', "$S $N(double x) { return ($S)$(small_encode:)(x, $FORMAT, $LAST, $OVER, $NAN); }"},
    {"encode64_saturated", 'S', "$S $N(double x) { return ($S)$(small_encode:)(x, $FORMAT, $LAST, $LAST, $NAN); }"},
    {"decode", 'e', R"(float $N(uint8_t code) {  // 2^(code - 127)
  const uint32_t b = code == 255 ? 0x7fc00000 : code != 0 ? (uint32_t)code << 23 : 0x00400000;
  float x;
  __builtin_memcpy(&x, &b, 4);
  return x;
})"},
    {"encode", 'e', "uint8_t $N(float x) { return $(e8m0:)(x, 255); }"},
    {"encode_saturated", 'e', "uint8_t $N(float x) { return $(e8m0:)(x, 254); }"},
    {"encode64", 'e', "uint8_t $N(double x) { return $(e8m0:)(x, 255); }"},
    {"encode64_saturated", 'e', "uint8_t $N(double x) { return $(e8m0:)(x, 254); }"},
    {"round", 'A', "float $N(float x) { return $(decode)($(encode)(x)); }"},
    {"round_saturated", 'A', "float $N(float x) { return $(decode)($(encode_saturated)(x)); }"},
    {"round64", 'A', "float $N(double x) { return $(decode)($(encode64)(x)); }"},
    {"round64_saturated", 'A', "float $N(double x) { return $(decode)($(encode64_saturated)(x)); }"},
    {"load", '4', "float $N(const uint8_t *p, int64_t i) { return $(decode)(p[i / 2] >> i % 2 * 4 & 15); }"},
    {"store", '4', R"(void $N(uint8_t *p, int64_t i, float v) {
  const int at = (int)(i % 2 * 4);
  p[i / 2] = (uint8_t)((p[i / 2] & ~(15 << at)) | $(encode)(v) << at);
})"},
    // The code of the value nearest to x, and back. last: of the largest finite one; over: of what is beyond it. Codes
    // of one sign are in the order of their values, so rounding may carry from the mantissa into the exponent.
    {"small_encode", '-', R"(uint32_t $N(double x, int mantissa, int bias, uint32_t sign, uint32_t last, uint32_t over,
                                uint32_t nan) {
  uint64_t b, half;
  __builtin_memcpy(&b, &x, 8);
  uint64_t m = b & 0xfffffffffffff;
  int e = (int)(b >> 52 & 0x7ff);
  uint32_t code = over;
  if (e == 0x7ff && m != 0) return nan;
  if (e != 0x7ff) {
    if (e != 0) m |= (uint64_t)1 << 52;
    const int least = 1 - bias, place = e - 1023 > least ? e - 1023 : least;
    int drop = place - mantissa - ((e != 0 ? e : 1) - 1075);
    if (drop > 54) drop = 54;
    half = (uint64_t)1 << (drop - 1);
    m = (m + half - 1 + (m >> drop & 1)) >> drop;
    code = ((uint32_t)(place - least) << mantissa) + (uint32_t)m;
    if (code > last) code = over;
  }
  if (nan == sign && sign != 8 && (code == 0 || code == nan)) return code;  // a type without -0; f4e2m1 has it
  return b >> 63 ? sign | code : code;
})"},
    {"small_decode", '-', R"(float $N(uint32_t code, int mantissa, int bias, uint32_t sign, uint32_t last,
                             uint32_t inf) {
  const uint32_t m = code & (sign - 1), e = m >> mantissa, one = (uint32_t)1 << mantissa;
  const float infinity = __builtin_inff();
  if (m > last || (inf == sign && code == sign))
    return m != inf ? __builtin_nanf("") : code & sign ? -infinity : infinity;
  const uint32_t b = (uint32_t)((int)(e != 0 ? e : 1) - bias - mantissa + 127) << 23;
  float x;
  __builtin_memcpy(&x, &b, 4);
  x *= (float)(e != 0 ? (m & (one - 1)) | one : m);
  return code & sign ? -x : x;
})"},
    {"e8m0", '-', R"(uint8_t $N(double x, int over) {  // a power of two, a tie goes up; over: of what is out of range
  uint64_t b;
  __builtin_memcpy(&b, &x, 8);
  const int e = (int)(b >> 52 & 0x7ff) - 1023;
  if (x < 0 || x != x) return 255;
  if (x == 0 || e < -127) return (uint8_t)(over == 254 ? 0 : 255);
  const int code = e + 127 + (int)(b >> 51 & 1);
  return (uint8_t)(e > 127 || code > 254 ? over : code);
})"},
    {"size_add", '-', R"(int64_t $N(int64_t a, int64_t b, bool *ok) {
  if (__builtin_add_overflow(a, b, &a)) *ok = false;
  return a;
})"},
    {"size_sub", '-', R"(int64_t $N(int64_t a, int64_t b, bool *ok) {
  if (__builtin_sub_overflow(a, b, &a)) *ok = false;
  return a;
})"},
    {"size_mul", '-', R"(int64_t $N(int64_t a, int64_t b, bool *ok) {
  if (__builtin_mul_overflow(a, b, &a)) *ok = false;
  return a;
})"},
    {"size_times", '-', R"(int64_t $N(int64_t a, int64_t dim, bool *ok) {  // a zero counts as one: strides must fit too
  if (dim < 0 || __builtin_mul_overflow(a, dim == 0 ? 1 : dim, &a) || a > (int64_t)1 << 62) *ok = false;
  return a;
})"},
    {"cpu_has", '-', R"(bool $N(bool avx512) {  // what the attributes of functions ask for
#if defined(__x86_64__)
  uint32_t a = 0, b, c = 0, d;
  __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  if (a < 7) return false;
  a = 1, c = 0;
  __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  const uint32_t first = 1u << 12 | 1u << 27 | 1u << 29;  // fma, xgetbv, f16c
  if ((c & first) != first) return false;
  __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  const uint32_t registers = avx512 ? 0xe6 : 6;  // that the system saves
  if ((a & registers) != registers) return false;
  a = 7, c = 0;
  __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  const uint32_t want = 1u << 5 | 1u << 8 | (avx512 ? 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31 : 0);
  return (b & want) == want;  // avx2, bmi2; avx512f, dq, bw, vl
#else
  return (void)avx512, true;
#endif
})"},
    {"serial", '-', "const $OPTIONS $N = {1, 0, 0};"},
    {"parallel", '-', R"(void $N(const $OPTIONS *options, int64_t n, void (*task)(void *, int64_t, int), void *arg) {
  if (options->parallel_for && n > 1) options->parallel_for(options->user, n, task, arg);
  else for (int64_t i = 0; i < n; i++) task(arg, i, 0);
})"},
    // A double of x's first 53 bits, the last one set if more follow: rounding it once again is then right.
    {"sticky", 'u', "double $N($T x) { return $(sticky_unsigned:)(x); }"},
    {"sticky", 'i', R"(double $N($T x) {
  return x < 0 ? -$(sticky_unsigned:)(0 - (uint64_t)x) : $(sticky_unsigned:)((uint64_t)x);
})"},
    {"sticky_unsigned", '-', R"(double $N(uint64_t a) {
  return (double)(a >> 53 == 0 ? a : (a & ~(uint64_t)2047) | (uint64_t)((a & 2047) != 0) << 11);
})"},
};

struct SmallFormat {
  DType type;
  int mantissa, bias;
  unsigned sign, last, over, nan, inf;
};
constexpr SmallFormat kFormats[] = {
    {DType::F16, 10, 15, 0x8000, 0x7bff, 0x7c00, 0x7e00, 0x7c00},
    {DType::BF16, 7, 127, 0x8000, 0x7f7f, 0x7f80, 0x7fc0, 0x7f80},
    {DType::F8E4M3FN, 3, 7, 0x80, 0x7e, 0x7f, 0x7f, 0},
    {DType::F8E4M3FNUZ, 3, 8, 0x80, 0x7f, 0x80, 0x80, 0x80},
    {DType::F8E5M2, 2, 15, 0x80, 0x7b, 0x7c, 0x7e, 0x7c},
    {DType::F8E5M2FNUZ, 2, 16, 0x80, 0x7f, 0x80, 0x80, 0x80},
    {DType::F4E2M1, 1, 1, 8, 7, 7, 8, 0},
};

bool fits(char kind, DType t) {
  bool wide = t == DType::F32 || t == DType::F64, half = t == DType::F16 || t == DType::BF16, e8 = t == DType::F8E8M0;
  switch (kind) {
    case 'i': return is_int(t) && is_signed(t);
    case 'u': return is_int(t) && !is_signed(t);
    case 'b': return is_int(t);
    case 'f': return wide;
    case 'F': return t == DType::F32;
    case 'D': return t == DType::F64;
    case 'n': return is_int(t) || wide || t == DType::Bool;
    case 'h': return t == DType::F16;
    case 't': return t == DType::BF16;
    case 'e': return e8;
    case 's': return is_small_float(t) && !half && !e8;
    case 'S': return is_small_float(t) && !e8;
    case 'A': return is_small_float(t);
    case '4': return t == DType::F4E2M1;
    default: return t == DType::Invalid;
  }
}

std::string integer_text(DType t, bool highest) {
  int bits = info(t).bits;
  if (!is_signed(t)) return highest ? fmt::format("{}u", ~uint64_t(0) >> (64 - bits)) : "0";
  int64_t top = int64_t(~uint64_t(0) >> (65 - bits));
  return highest ? fmt::format("{}", top) : fmt::format("(-{} - 1)", top);
}

}  // namespace

std::string_view c_storage(DType t) {
  switch (t) {
    case DType::I8: return "int8_t";
    case DType::I16: return "int16_t";
    case DType::I32: return "int32_t";
    case DType::I64: case DType::Index: return "int64_t";
    case DType::U16: case DType::F16: case DType::BF16: return "uint16_t";
    case DType::U32: return "uint32_t";
    case DType::U64: return "uint64_t";
    case DType::F32: return "float";
    case DType::F64: return "double";
    default: return "uint8_t";
  }
}
std::string_view c_value(DType t) {
  if (t == DType::Bool) return "bool";
  if (is_small_float(t)) return "float";
  if (is_int(t) && info(t).bits < 8) return is_signed(t) ? "int8_t" : "uint8_t";
  return c_storage(t);
}

std::string Helpers::need(std::string_view family, DType t) {
  if (t == DType::Index) t = DType::I64;
  bool one_encoding = t == DType::F16 || t == DType::BF16 || t == DType::F4E2M1;  // these saturate never, or always
  if (one_encoding && family.ends_with("_saturated")) family.remove_suffix(10);
  std::string name = fmt::format("{}_{}", prefix_, family);
  if (t != DType::Invalid) name += fmt::format("_{}", dtype_name(t));
  std::string_view whole = cuda_ ? cuda_helper(family) : "", other = cuda_ ? cuda_function(family) : "";
  if (!whole.empty()) return add(name, whole, t, DType::Invalid, true);
  for (const Family &f : kFamilies)
    if (f.name == family && fits(f.kind, t)) return add(name, other.empty() ? f.text : other, t, DType::Invalid);
  return name;
}

size_t Helpers::arity(std::string_view family, DType t) const {
  for (const Family &f : kFamilies)
    if (f.name == family && fits(f.kind, t)) return std::ranges::count(f.text.substr(0, f.text.find(')')), ',') + 1;
  return 1;
}

bool Helpers::may_be(std::string_view s) const {
  for (const Family &f : kFamilies) {
    std::string_view rest = s;
    if (!rest.starts_with(f.name)) continue;
    rest.remove_prefix(f.name.size());
    if (rest.empty() || (rest[0] == '_' && dtype_named(rest.substr(1)) != DType::Invalid)) return true;
  }
  return s.find("_of_") != s.npos || (cuda_ && !cuda_helper(s).empty());
}

std::string Helpers::cast(DType from, DType to) {
  if (to == DType::Index) to = DType::I64;
  if (from != DType::F64) from = DType::F32;
  std::string_view text = is_signed(to) ? R"($T $N($F x) {
  if (!(x < $H)) return x == x ? $MAX : 0;
  return x <= -$H ? $MIN : ($T)x;
})" : R"($T $N($F x) {
  if (!(x < $H)) return x == x ? $MAX : 0;
  return x <= 0 ? 0 : ($T)x;
})";
  return add(fmt::format("{}_{}_of_{}", prefix_, dtype_name(to), dtype_name(from)), text, to, from);
}

std::string Helpers::bits(DType from, DType to) {
  return add(fmt::format("{}_bits_{}_of_{}", prefix_, dtype_name(to), dtype_name(from)), R"($T $N($F x) {
  $T y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
})", to, from);
}

std::string Helpers::add(const std::string &name, std::string_view body, DType t, DType from, bool whole) {
  if (!have_.insert(name).second) return name;
  bool f64 = t == DType::F64 || from == DType::F64;
  std::string out = whole ? "" : body.starts_with("const") ? "static " : "static inline " + attribute(name);
  auto word = [&](std::string_view w) -> std::string {
    const SmallFormat *f = nullptr;
    for (const SmallFormat &x : kFormats)
      if (x.type == t) f = &x;
    int bits = t == DType::Invalid ? 0 : info(t).bits;
    if (w == "N") return name;
    if (w == "OPTIONS") return prefix_ + "_options";
    if (w == "T") return std::string(c_value(t));
    if (w == "S") return std::string(c_storage(t));
    if (w == "F") return std::string(c_value(from));
    if (w == "U") return bits > 32 ? "uint64_t" : "uint32_t";
    if (w == "B") return fmt::format("{}", bits);
    if (w == "L") return f64 ? "" : "f";
    if (w == "P") return f64 ? "d" : "s";
    if (w == "I") return f64 ? "int64_t" : "int32_t";
    if (w == "E") return f64 ? "4503599627370496.0" : "8388608.0f";
    if (w == "H") return fmt::format("{}.0{}", __uint128_t(1) << (bits - is_signed(t)), f64 ? "" : "f");
    if (w == "MAX") return is_float(t) ? (f64 ? "1.7976931348623157e+308" : "3.4028235e+38f") : integer_text(t, true);
    if (w == "MIN") return integer_text(t, false);
    if (w == "FORMAT") return fmt::format("{}, {}, {:#x}", f->mantissa, f->bias, f->sign);
    if (w == "LAST") return fmt::format("{:#x}", f->last);
    if (w == "OVER") return fmt::format("{:#x}", f->over);
    if (w == "NAN") return fmt::format("{:#x}", f->nan);
    if (w == "INF") return fmt::format("{:#x}", f->inf);
    return std::string(w);
  };
  for (size_t i = 0; i < body.size(); i++) {
    if (body[i] != '$') {
      out += body[i];
    } else if (body[i + 1] == '(') {
      size_t end = body.find(')', i);
      std::string_view family = body.substr(i + 2, end - i - 2);
      bool plain = family.ends_with(':');
      if (plain) family.remove_suffix(1);
      out += need(family, plain ? DType::Invalid : t);
      i = end;
    } else {
      size_t end = i + 1;
      while (end < body.size() && body[end] >= 'A' && body[end] <= 'Z') end++;
      out += word(body.substr(i + 1, end - i - 1));
      i = end - 1;
    }
  }
  made_.push_back({name, out + "\n"});
  return name;
}

std::string Helpers::text(std::string_view by, std::string_view before) const {
  return used_definitions(made_, by, before);
}

void collect_identifiers(std::string_view s, std::unordered_set<std::string_view> &out) {
  auto part = [](char c) { return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'); };
  for (size_t at = 0, next; at < s.size(); at = next + 1) {
    next = std::min(s.find('\n', at), s.size());
    std::string_view line = s.substr(at, next - at);
    if (size_t text = line.find_first_not_of(' '); text != line.npos && line.substr(text).starts_with("//")) continue;
    for (size_t i = 0; i < line.size();) {
      size_t end = i;
      while (end < line.size() && part(line[end])) end++;
      if (end > i) out.insert(line.substr(i, end - i));
      i = end + 1;
    }
  }
}

std::string used_definitions(const std::vector<Definition> &all, std::string_view by, std::string_view before) {
  std::unordered_set<std::string_view> names, earlier;
  collect_identifiers(by, names), collect_identifiers(before, earlier);
  std::vector<const Definition *> used;
  for (size_t i = all.size(); i-- > 0;) {
    if (earlier.count(all[i].name)) {
      collect_identifiers(all[i].text, earlier);
      continue;
    }
    if (!names.count(all[i].name)) continue;
    used.push_back(&all[i]);
    collect_identifiers(all[i].text, names);
  }
  std::string out;
  for (size_t i = used.size(); i-- > 0;) out += used[i]->text;
  return out;
}

}  // namespace mlc
