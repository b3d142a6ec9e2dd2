// Numbers as the kernel interpreter carries them, one C++ type a class of element types (as num/scalar.h):
//   bool, integers, index    int64_t, extended as the type says
//   f64                      double
//   f32 and smaller floats   float; a smaller one is computed in f32 and rounded after each operation
// Num<T> says for one element type how it is carried, narrowed, loaded and stored.
#pragma once
#include <cstring>

#include "num/convert.h"

namespace mlc::interp {

__extension__ using Wide = __int128;  // sums of products of indices

template <class C, DType D> struct WholeInt {
  using Value = int64_t;
  static constexpr int kBits = sizeof(C) * 8;
  static Value narrow(int64_t v) { return D == DType::Bool ? v != 0 : int64_t(C(v)); }
  static Value load(const std::byte *p, int64_t i) {
    C c;
    memcpy(&c, p + i * int64_t(sizeof c), sizeof c);
    return D == DType::Bool ? c != 0 : int64_t(c);
  }
  static void store(std::byte *p, int64_t i, Value v) {
    C c = C(v);
    memcpy(p + i * int64_t(sizeof c), &c, sizeof c);
  }
};
template <class V, DType D> struct Other {  // packed integers and the floats below f32
  using Value = V;
  static Value narrow(Value v) {
    if constexpr (std::is_same_v<V, float>) return cast(Scalar::of_f32(v), DType::F32, D, false).as_f32();
    else return mlc::narrow(D, v).as_int();
  }
  static Value load(const std::byte *p, int64_t i) {
    Scalar s = mlc::load(D, p, size_t(i));
    if constexpr (std::is_same_v<V, float>) return s.as_f32();
    else return s.as_int();
  }
  static void store(std::byte *p, int64_t i, Value v) {
    if constexpr (std::is_same_v<V, float>) mlc::store(D, p, size_t(i), Scalar::of_f32(v));
    else mlc::store(D, p, size_t(i), Scalar::of_int(v));
  }
};
template <class F> struct WholeFloat {
  using Value = F;
  static constexpr int kBits = sizeof(F) * 8;
  static Value narrow(Value v) { return v; }
  static Value load(const std::byte *p, int64_t i) {
    F f;
    memcpy(&f, p + i * int64_t(sizeof f), sizeof f);
    return f;
  }
  static void store(std::byte *p, int64_t i, Value v) { memcpy(p + i * int64_t(sizeof v), &v, sizeof v); }
};

template <DType D> struct Num : Other<float, D> {
  static constexpr int kBits = D == DType::F4E2M1 ? 4 : D == DType::F16 || D == DType::BF16 ? 16 : 8;
};
#define MLC_NUM(D, ...) \
  template <> struct Num<DType::D> : __VA_ARGS__
MLC_NUM(Bool, WholeInt<uint8_t, DType::Bool>) {};
MLC_NUM(I8, WholeInt<int8_t, DType::I8>) {};
MLC_NUM(I16, WholeInt<int16_t, DType::I16>) {};
MLC_NUM(I32, WholeInt<int32_t, DType::I32>) {};
MLC_NUM(I64, WholeInt<int64_t, DType::I64>) {};
MLC_NUM(U8, WholeInt<uint8_t, DType::U8>) {};
MLC_NUM(U16, WholeInt<uint16_t, DType::U16>) {};
MLC_NUM(U32, WholeInt<uint32_t, DType::U32>) {};
MLC_NUM(U64, WholeInt<uint64_t, DType::U64>) {};
MLC_NUM(Index, WholeInt<int64_t, DType::Index>) {};
MLC_NUM(I2, Other<int64_t, DType::I2>) { static constexpr int kBits = 2; };
MLC_NUM(I4, Other<int64_t, DType::I4>) { static constexpr int kBits = 4; };
MLC_NUM(U2, Other<int64_t, DType::U2>) { static constexpr int kBits = 2; };
MLC_NUM(U4, Other<int64_t, DType::U4>) { static constexpr int kBits = 4; };
MLC_NUM(F32, WholeFloat<float>) {};
MLC_NUM(F64, WholeFloat<double>) {};
#undef MLC_NUM

// Calls f with std::integral_constant<DType, t>, for every type that a kernel computes with; false for others.
template <class F> bool with_type(DType t, F &&f) {
  switch (t) {
#define MLC_CASE(D) \
  case DType::D: f(std::integral_constant<DType, DType::D>{}); return true;
    MLC_CASE(Bool) MLC_CASE(I2) MLC_CASE(I4) MLC_CASE(I8) MLC_CASE(I16) MLC_CASE(I32) MLC_CASE(I64) MLC_CASE(U2)
    MLC_CASE(U4) MLC_CASE(U8) MLC_CASE(U16) MLC_CASE(U32) MLC_CASE(U64) MLC_CASE(F16) MLC_CASE(BF16) MLC_CASE(F32)
    MLC_CASE(F64) MLC_CASE(F8E4M3FN) MLC_CASE(F8E4M3FNUZ) MLC_CASE(F8E5M2) MLC_CASE(F8E5M2FNUZ) MLC_CASE(F8E8M0)
    MLC_CASE(F4E2M1) MLC_CASE(Index)
#undef MLC_CASE
    default: return false;
  }
}

// The shadow of element i (interp/memory.h).
template <DType D> bool is_defined(const std::byte *shadow, int64_t i) {
  constexpr int bits = Num<D>::kBits;
  if constexpr (bits < 8) {
    unsigned mask = ((1u << bits) - 1) << i * bits % 8;
    return (unsigned(shadow[i * bits / 8]) & mask) == mask;
  } else {
    constexpr uint64_t all = ~uint64_t(0) >> (64 - bits);
    uint64_t w = 0;
    memcpy(&w, shadow + i * (bits / 8), bits / 8);
    return w == all;
  }
}
template <DType D> int set_defined(std::byte *shadow, int64_t i) {  // how many bits that adds
  constexpr int bits = Num<D>::kBits;
  if constexpr (bits < 8) {
    std::byte &b = shadow[i * bits / 8];
    unsigned old = unsigned(b), now = old | ((1u << bits) - 1) << i * bits % 8;
    b = std::byte(now);
    return std::popcount(now) - std::popcount(old);
  } else {
    uint64_t w = 0, all = ~uint64_t(0);
    memcpy(&w, shadow + i * (bits / 8), bits / 8);
    memcpy(shadow + i * (bits / 8), &all, bits / 8);
    return bits - std::popcount(w);
  }
}

}  // namespace mlc::interp
