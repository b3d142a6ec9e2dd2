#include "num/dtype.h"

namespace mlc {

static constexpr DTypeInfo kInfo[] = {
    {"bool", 8, false, false, false}, {"i2", 2, true, true, false},   {"i4", 4, true, true, false},
    {"i8", 8, true, true, false},     {"i16", 16, true, true, false}, {"i32", 32, true, true, false},
    {"i64", 64, true, true, false},   {"u2", 2, true, false, false},  {"u4", 4, true, false, false},
    {"u8", 8, true, false, false},    {"u16", 16, true, false, false}, {"u32", 32, true, false, false},
    {"u64", 64, true, false, false},  {"f16", 16, false, true, true}, {"bf16", 16, false, true, true},
    {"f32", 32, false, true, true},   {"f64", 64, false, true, true}, {"f8e4m3fn", 8, false, true, true},
    {"f8e4m3fnuz", 8, false, true, true}, {"f8e5m2", 8, false, true, true}, {"f8e5m2fnuz", 8, false, true, true},
    {"f8e8m0", 8, false, false, true}, {"f4e2m1", 4, false, true, true}, {"index", 64, true, true, false},
    {"str", 0, false, false, false},  {"mbarrier", 64, false, false, false}, {"invalid", 0, false, false, false},
};

const DTypeInfo &info(DType t) { return kInfo[size_t(t)]; }

DType dtype_named(std::string_view name) {
  for (size_t i = 0; i < size_t(DType::Invalid); i++)
    if (kInfo[i].name == name) return DType(i);
  return DType::Invalid;
}

int64_t storage_bytes(DType t, int64_t n) {
  int64_t bits = info(t).bits, total;
  if (!bits || n < 0 || __builtin_mul_overflow(n, bits, &total) || total > INT64_MAX - 7) return -1;
  return (total + 7) / 8;
}

}  // namespace mlc
