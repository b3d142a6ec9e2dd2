// Floats below f32 and their bits.
#include <fmt/core.h>

#include <bit>
#include <cmath>

#include "llvm/ops.h"
#include "num/convert.h"

namespace mlc::ll {
namespace {

// A float format as num/convert.h has it: where 1.0 and 2.0 lie tells the mantissa and the bias.
struct Format {
  unsigned mantissa, bias;
  uint64_t sign, last, over, nan;  // codes: the sign, the largest finite value, what is beyond it, NaN
};
Format format_of(DType t, bool saturate) {
  auto code = [&](double v, bool s) { return to_bits(t, mlc::cast(Scalar::of_f64(v), DType::F64, t, s)); };
  Format f;
  f.mantissa = unsigned(std::countr_zero(code(2, true) - code(1, true)));
  f.bias = unsigned(code(1, true) >> f.mantissa);
  f.sign = uint64_t(1) << (info(t).bits - 1);
  f.last = to_bits(t, highest(t)), f.nan = code(NAN, true);
  f.over = saturate ? f.last : code(INFINITY, false);
  return f;
}

}  // namespace

V Ops::decoded(DType t, V code) {
  return call(fmt::format("decode.{}", dtype_name(t)), ir.getFloatTy(), {code}, [&](const std::vector<V> &p) -> V {
    auto as_float = [&](V b) { return ir.CreateBitCast(b, ir.getFloatTy()); };
    V h = ir.CreateZExt(p[0], ir.getInt32Ty());
    if (t == DType::BF16) return as_float(ir.CreateShl(h, 16));
    if (t == DType::F16) {
      V m = ir.CreateAnd(h, 0x7fff), sign = ir.CreateShl(ir.CreateAnd(h, 0x8000), 16);
      V up = ir.CreateSelect(ir.CreateICmpULT(m, i32(0x7c00)), i32(0x38000000), i32(0x70000000));
      V b = ir.CreateAdd(ir.CreateShl(m, 13), up);
      V small = ir.CreateFMul(ir.CreateUIToFP(m, ir.getFloatTy()), constant(ir.getFloatTy(), 0x1p-24));  // below 2^-14
      b = ir.CreateSelect(ir.CreateICmpULT(m, i32(0x400)), ir.CreateBitCast(small, ir.getInt32Ty()), b);
      return as_float(ir.CreateOr(b, sign));
    }
    std::vector<uint32_t> values;  // of all codes
    for (uint64_t i = 0; i < uint64_t(1) << info(t).bits; i++)
      values.push_back(std::bit_cast<uint32_t>(from_bits(t, i).as_f32()));
    auto *data = llvm::ConstantDataArray::get(c, values);
    auto *table = new llvm::GlobalVariable(m, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data,
                                           fmt::format("values.{}", dtype_name(t)));
    return as_float(ir.CreateLoad(ir.getInt32Ty(), ir.CreateInBoundsGEP(data->getType(), table, {i32(0), h})));
  });
}

V Ops::encoded(DType t, V v, bool saturate) {
  bool wide = v->getType()->isDoubleTy(), half = t == DType::F16 || t == DType::BF16;
  if (half || t == DType::F4E2M1) saturate = !half;  // never, always
  std::string name = fmt::format("encode{}.{}{}", wide ? "64" : "", dtype_name(t), saturate ? ".saturated" : "");
  return call(name, code(t), {v}, [&](const std::vector<V> &p) -> V {
    V x = p[0], bits;
    if (half && !wide) {
      bits = t == DType::F16 ? encoded_f16(x) : encoded_bf16(x);
    } else {
      if (!wide) x = ir.CreateFPExt(x, ir.getDoubleTy());
      bits = t == DType::F8E8M0 ? encoded_e8m0(x, saturate) : encoded_generic(t, x, saturate);
    }
    return ir.CreateTrunc(bits, code(t));
  });
}

V Ops::encoded_bf16(V x) {
  V b = ir.CreateBitCast(x, ir.getInt32Ty()), high = ir.CreateLShr(b, 16);
  V near = ir.CreateLShr(ir.CreateAdd(ir.CreateAdd(b, i32(0x7fff)), ir.CreateAnd(high, 1)), 16);
  V empty = ir.CreateICmpEQ(ir.CreateAnd(high, 0x7f), i32(0));  // nothing is left of the payload
  V nan = ir.CreateOr(high, ir.CreateSelect(empty, i32(0x40), i32(0)));
  return ir.CreateSelect(ir.CreateFCmpUNO(x, x), nan, near);
}

V Ops::encoded_f16(V x) {
  V all = ir.CreateBitCast(x, ir.getInt32Ty()), sign = ir.CreateAnd(ir.CreateLShr(all, 16), 0x8000);
  V b = ir.CreateAnd(all, 0x7fffffff), payload = ir.CreateAnd(ir.CreateLShr(b, 13), 0x3ff);
  V nan = ir.CreateSelect(ir.CreateICmpEQ(payload, i32(0)), i32(0x200), payload);
  V beyond = ir.CreateSelect(ir.CreateICmpULE(b, i32(0x7f800000)), i32(0x7c00), ir.CreateOr(nan, 0x7c00));
  // In units of 2^-24, those of the last place of 0.5.
  V half = ir.CreateFAdd(intrinsic(llvm::Intrinsic::fabs, {x->getType()}, {x}), constant(x->getType(), 0.5));
  V tiny = ir.CreateSub(ir.CreateBitCast(half, ir.getInt32Ty()), i32(0x3f000000));
  V odd = ir.CreateAnd(ir.CreateLShr(b, 13), 1);
  V near = ir.CreateLShr(ir.CreateAdd(ir.CreateSub(b, i32(0x38000000 - 0xfff)), odd), 13);
  V code = ir.CreateSelect(ir.CreateICmpULT(b, i32(0x38800000)), tiny, near);
  return ir.CreateOr(sign, ir.CreateSelect(ir.CreateICmpUGE(b, i32(0x47800000)), beyond, code));
}

// The code of the value nearest to a double. Codes of one sign are in the order of their values, so rounding may carry
// from the mantissa into the exponent.
V Ops::encoded_generic(DType t, V x, bool saturate) {
  Format f = format_of(t, saturate);
  V b = ir.CreateBitCast(x, ir.getInt64Ty()), fraction = ir.CreateAnd(b, 0xfffffffffffff);
  V e = ir.CreateAnd(ir.CreateLShr(b, 52), 0x7ff);
  auto larger = [&](V a, V k) { return ir.CreateSelect(ir.CreateICmpSGT(a, k), a, k); };
  V special = ir.CreateICmpEQ(e, i64(0x7ff)), normal = ir.CreateICmpNE(e, i64(0));
  V m = ir.CreateSelect(normal, ir.CreateOr(fraction, uint64_t(1) << 52), fraction);
  V least = i64(uint64_t(1 - int64_t(f.bias))), place = larger(ir.CreateSub(e, i64(1023)), least);
  V drop = ir.CreateAdd(ir.CreateSub(place, larger(e, i64(1))), i64(1075 - f.mantissa));
  drop = ir.CreateSelect(ir.CreateICmpSGT(drop, i64(54)), i64(54), drop);
  V half = ir.CreateShl(i64(1), ir.CreateSub(drop, i64(1))), odd = ir.CreateAnd(ir.CreateLShr(m, drop), 1);
  m = ir.CreateLShr(ir.CreateAdd(ir.CreateAdd(m, ir.CreateSub(half, i64(1))), odd), drop);
  V code = ir.CreateAdd(ir.CreateShl(ir.CreateSub(place, least), f.mantissa), m);
  code = ir.CreateSelect(ir.CreateOr(special, ir.CreateICmpUGT(code, i64(f.last))), i64(f.over), code);
  V minus = ir.CreateICmpSLT(b, i64(0));
  bool no_minus_zero = f.nan == f.sign && t != DType::F4E2M1;
  if (no_minus_zero)
    minus = ir.CreateAnd(minus, ir.CreateAnd(ir.CreateICmpNE(code, i64(0)), ir.CreateICmpNE(code, i64(f.nan))));
  code = ir.CreateSelect(minus, ir.CreateOr(code, f.sign), code);
  return ir.CreateSelect(ir.CreateFCmpUNO(x, x), i64(f.nan), code);
}

// A power of two; a tie goes up.
V Ops::encoded_e8m0(V x, bool saturate) {
  V b = ir.CreateBitCast(x, ir.getInt64Ty());
  V e = ir.CreateSub(ir.CreateAnd(ir.CreateLShr(b, 52), 0x7ff), i64(1023)), zero = constant(x->getType(), 0);
  V code = ir.CreateAdd(ir.CreateAdd(e, i64(127)), ir.CreateAnd(ir.CreateLShr(b, 51), 1));
  V over = ir.CreateOr(ir.CreateICmpSGT(e, i64(127)), ir.CreateICmpSGT(code, i64(254)));
  code = ir.CreateSelect(over, i64(saturate ? 254 : 255), code);
  V under = ir.CreateOr(ir.CreateFCmpOEQ(x, zero), ir.CreateICmpSLT(e, i64(uint64_t(-127))));
  code = ir.CreateSelect(under, i64(saturate ? 0 : 255), code);
  return ir.CreateSelect(ir.CreateFCmpULT(x, zero), i64(255), code);  // negative, or NaN
}

}  // namespace mlc::ll
