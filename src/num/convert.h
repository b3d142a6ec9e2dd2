// Exact conversions between all element types, by bits. The rules are those of man/mlc-numerics.7, "Casts":
//   float -> float  nearest even, one rounding whatever the types; beyond the largest finite value f16, bf16, f32 and
//                   f64 give inf, f8 (not e8m0) the largest finite value if `saturate`, else inf (e5m2) or NaN
//   f4e2m1          always saturates; NaN gives -0.0
//   f8e8m0          powers of two: nearest, a tie goes up; below 2^-127 (0 too) 2^-127 if `saturate`, else NaN; above
//                   2^127 the same; negative gives NaN
//   float -> int    truncates, saturates at the ends of the type, NaN gives 0
//   int -> int      the low bits;  int -> float nearest even
//   anything -> bool  x != 0 (NaN is true);  bool -> number  0 or 1
#pragma once
#include <cstddef>

#include "num/scalar.h"

namespace mlc {

Scalar cast(Scalar v, DType from, DType to, bool saturate = true);

// The element's storage bits (the low info(t).bits ones), and back. NaN payloads survive the way there and back. A
// float that is no value of t (the result of an operation, computed in f32) is rounded, without saturation.
uint64_t to_bits(DType t, Scalar v);
Scalar from_bits(DType t, uint64_t bits);

// Element i of a dense array of t. Sub-byte types are packed, the first element in the lowest bits.
Scalar load(DType t, const std::byte *p, size_t i);
void store(DType t, std::byte *p, size_t i, Scalar v);

// n elements at once; the arrays do not overlap.
void cast(DType from, const std::byte *src, DType to, std::byte *dst, size_t n, bool saturate = true);

// A value of t from a double or an int64 (a literal of the text), and the nearest double of one (exact but for
// 64-bit integers).
Scalar scalar_of(DType t, double v);
Scalar scalar_of(DType t, int64_t v);
double to_double(DType t, Scalar v);

// The smallest and the largest finite value.
Scalar lowest(DType t);
Scalar highest(DType t);

float f32_of_f16(uint16_t bits);
uint16_t f16_of_f32(float v);
inline float f32_of_bf16(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }
uint16_t bf16_of_f32(float v);

enum class E8m0Round : uint8_t { Nearest, Up, Down };  // ONNX's round_mode; cast() uses Nearest
uint8_t e8m0_of_f32(float v, E8m0Round round, bool saturate);

}  // namespace mlc
