// The inside of expr.h: types as vectors have them.
#pragma once
#include <bit>

#include "emit/expr.h"

namespace mlc {

inline bool is_packed(DType t) { return is_int(t) && info(t).bits < 8; }
// Elements as they lie in memory.
inline DType stored(DType t) {
  if (t == DType::Bool || info(t).bits == 8) return is_int(t) ? t : DType::U8;
  return t == DType::F16 || t == DType::BF16 ? DType::U16 : t == DType::Index ? DType::I64 : t;
}
// What arithmetic is done in.
inline DType computed(DType t) { return is_small_float(t) ? DType::F32 : t; }
// That a vector can hold as it is.
inline bool has_vectors(DType t) { return t != DType::Index && t != DType::Invalid && !is_packed(t); }
// The signed integers of a mask.
inline DType mask_type(int bits) {
  constexpr DType kMasks[] = {DType::I8, DType::I16, DType::I32, DType::I64};
  return kMasks[std::countr_zero(unsigned(bits)) - 3];
}
// The bits of an element of a vector, or of the mask that belongs to it.
inline int lane_bits(DType t) { return info(computed(t)).bits; }
// The text of a vector of n lanes.
inline Text lanes_text(int n, std::string s, DType t, int prec = kPrimary, int mask = 0) {
  return {std::move(s), prec, t, false, "", n, mask};
}

}  // namespace mlc
