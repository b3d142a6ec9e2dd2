// Element types: names, sizes, classes. Conversions by bits are in num/convert.h.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mlc {

enum class DType : uint8_t {
  Bool, I2, I4, I8, I16, I32, I64, U2, U4, U8, U16, U32, U64, F16, BF16, F32, F64,
  F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0, F4E2M1, Index, Str, Mbarrier, Invalid,
};

// bits: of storage (sub-byte types pack from the low bits); Str has none.
struct DTypeInfo {
  std::string_view name;
  uint8_t bits;
  bool integer, sign, floating;
};
const DTypeInfo &info(DType t);
DType dtype_named(std::string_view name);  // DType::Invalid if there is none

inline std::string_view dtype_name(DType t) { return info(t).name; }
inline bool is_float(DType t) { return info(t).floating; }
inline bool is_int(DType t) { return info(t).integer; }  // Index too; Bool not
inline bool is_signed(DType t) { return info(t).sign; }
inline bool is_small_float(DType t) { return info(t).floating && info(t).bits < 32; }  // computed in f32, rounded
// Bytes of n elements, sub-byte types packed; -1 on overflow or if the type has no storage.
int64_t storage_bytes(DType t, int64_t n);

}  // namespace mlc
