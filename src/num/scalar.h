// One element of any type, exact. What the 64 bits hold is decided by the DType that travels with it:
//   bool                       0 or 1
//   i2 .. i64, index           the value, sign-extended
//   u2 .. u64                  the value, zero-extended
//   f64                        the double
//   f32 and all smaller floats the value as a float (every f16, bf16, f8, f4 value is one)
#pragma once
#include <bit>
#include <cstdint>

#include "num/dtype.h"

namespace mlc {

struct Scalar {
  uint64_t bits = 0;

  static Scalar of_bool(bool v) { return {v}; }
  static Scalar of_int(int64_t v) { return {uint64_t(v)}; }
  static Scalar of_f32(float v) { return {std::bit_cast<uint32_t>(v)}; }
  static Scalar of_f64(double v) { return {std::bit_cast<uint64_t>(v)}; }

  bool as_bool() const { return bits != 0; }
  int64_t as_int() const { return int64_t(bits); }
  uint64_t as_uint() const { return bits; }
  float as_f32() const { return std::bit_cast<float>(uint32_t(bits)); }
  double as_f64() const { return std::bit_cast<double>(bits); }

  bool operator==(const Scalar &) const = default;  // the same bits
};

// The low bits of v, extended as t says: the result of any integer operation of type t. bool: v != 0.
inline Scalar narrow(DType t, int64_t v) {
  if (t == DType::Bool) return Scalar::of_bool(v != 0);
  int unused = 64 - info(t).bits;
  return is_signed(t) ? Scalar::of_int(int64_t(uint64_t(v) << unused) >> unused)
                      : Scalar{uint64_t(v) << unused >> unused};
}

}  // namespace mlc
