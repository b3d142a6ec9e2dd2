#include "llvm/ops.h"

#include "ir/typing.h"
#include "num/convert.h"

namespace mlc::ll {

using llvm::Intrinsic::ID;

static bool is_packed(DType t) { return info(t).bits < 8; }

llvm::IntegerType *Ops::code(DType t) { return ir.getIntNTy(info(t).bits); }
llvm::Type *Ops::value(DType t) {
  if (t == DType::Bool) return ir.getInt1Ty();
  return t == DType::F64 ? ir.getDoubleTy() : is_float(t) ? ir.getFloatTy() : static_cast<llvm::Type *>(code(t));
}
llvm::Type *Ops::storage(DType t) {
  if (t == DType::F32 || t == DType::F64) return value(t);
  return is_packed(t) ? ir.getInt8Ty() : code(t);
}

V Ops::literal(DType t, Scalar v) {
  if (t == DType::Bool) return ir.getInt1(v.as_bool());
  if (t == DType::F64) return llvm::ConstantFP::get(c, llvm::APFloat(llvm::APFloat::IEEEdouble(), llvm::APInt(64, v.bits)));
  if (is_float(t))
    return llvm::ConstantFP::get(c, llvm::APFloat(llvm::APFloat::IEEEsingle(), llvm::APInt(32, uint32_t(v.bits))));
  return llvm::ConstantInt::get(code(t), v.bits);
}

// ---- memory

V Ops::load(DType t, V base, V at) {
  auto place = [&](V i) { return ir.CreateInBoundsGEP(storage(t), base, i); };
  auto from = [&](V p) { return ir.CreateAlignedLoad(storage(t), p, llvm::MaybeAlign(align)); };
  if (!is_packed(t)) {
    V v = from(place(at));
    if (t == DType::Bool) return ir.CreateICmpNE(v, ir.getInt8(0));
    return is_small_float(t) ? decoded(t, v) : v;
  }
  unsigned bits = info(t).bits, each = 8 / bits;
  V byte = from(place(ir.CreateLShr(at, unsigned(std::countr_zero(each)))));
  V shift = ir.CreateMul(ir.CreateTrunc(ir.CreateAnd(at, each - 1), ir.getInt8Ty()), ir.getInt8(uint8_t(bits)));
  V v = ir.CreateTrunc(ir.CreateLShr(byte, shift), code(t));
  return is_float(t) ? decoded(t, v) : v;
}

void Ops::store(DType t, V base, V at, V v) {
  auto place = [&](V i) { return ir.CreateInBoundsGEP(storage(t), base, i); };
  if (is_small_float(t)) v = encoded(t, v, false);
  if (t == DType::Bool) v = ir.CreateZExt(v, ir.getInt8Ty());
  if (!is_packed(t)) return void(ir.CreateAlignedStore(v, place(at), llvm::MaybeAlign(align)));
  unsigned bits = info(t).bits, each = 8 / bits;
  V p = place(ir.CreateLShr(at, unsigned(std::countr_zero(each))));
  V shift = ir.CreateMul(ir.CreateTrunc(ir.CreateAnd(at, each - 1), ir.getInt8Ty()), ir.getInt8(uint8_t(bits)));
  V mask = ir.CreateNot(ir.CreateShl(ir.getInt8(uint8_t((1u << bits) - 1)), shift));
  V others = ir.CreateAnd(ir.CreateLoad(ir.getInt8Ty(), p), mask);
  ir.CreateStore(ir.CreateOr(others, ir.CreateShl(ir.CreateZExt(v, ir.getInt8Ty()), shift)), p);
}

// ---- arithmetic

// By 0: 0, 0. The least number by -1: itself, 0.
Ops::Quotient Ops::divided(DType t, V a, V b) {
  V zero = llvm::ConstantInt::get(b->getType(), 0), one = llvm::ConstantInt::get(b->getType(), 1);
  V by_zero = ir.CreateICmpEQ(b, zero);
  if (!is_signed(t)) {
    V safe = ir.CreateSelect(by_zero, one, b);
    return {ir.CreateSelect(by_zero, zero, ir.CreateUDiv(a, safe)), ir.CreateURem(a, safe), ir.getFalse()};
  }
  V minus = ir.CreateICmpEQ(b, llvm::ConstantInt::getSigned(b->getType(), -1));
  V safe = ir.CreateSelect(ir.CreateOr(by_zero, minus), one, b);
  V q = ir.CreateSelect(minus, ir.CreateNeg(a), ir.CreateSDiv(a, safe)), r = ir.CreateSRem(a, safe);
  V opposite = ir.CreateAnd(ir.CreateICmpNE(r, zero), ir.CreateICmpSLT(ir.CreateXor(r, b), zero));
  return {ir.CreateSelect(by_zero, zero, q), r, opposite};
}

V Ops::arithmetic(Op op, DType t, V a, V b) {
  if (is_float(t)) {
    V v = op == Op::Add   ? ir.CreateFAdd(a, b)
          : op == Op::Sub ? ir.CreateFSub(a, b)
          : op == Op::Mul ? ir.CreateFMul(a, b)
                          : ir.CreateFDiv(a, b);
    return rounded(t, v);
  }
  if (op == Op::Add) return ir.CreateAdd(a, b);
  if (op == Op::Sub) return ir.CreateSub(a, b);
  if (op == Op::Mul) return ir.CreateMul(a, b);
  auto *k = llvm::dyn_cast<llvm::ConstantInt>(b);
  bool power = k && k->getValue().isPowerOf2() && !(is_signed(t) && k->isNegative());
  if (power && op != Op::Div) {
    if (op == Op::Mod) return ir.CreateAnd(a, ir.CreateSub(b, llvm::ConstantInt::get(b->getType(), 1)));
    unsigned by = k->getValue().logBase2();
    return is_signed(t) ? ir.CreateAShr(a, by) : ir.CreateLShr(a, by);
  }
  Quotient x = divided(t, a, b);
  if (op == Op::Div) return x.q;
  if (op == Op::Mod) return ir.CreateSelect(x.opposite, ir.CreateAdd(x.r, b), x.r);
  return ir.CreateSub(x.q, ir.CreateZExt(x.opposite, x.q->getType()));
}

V Ops::compare(Op op, DType t, V a, V b) {
  using P = llvm::CmpInst::Predicate;
  struct Row { P f, s, u; };
  constexpr Row kRows[] = {{P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ},   {P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE},
                           {P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT}, {P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE},
                           {P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT}, {P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE}};
  const Row &r = kRows[int(op) - int(Op::Eq)];
  return ir.CreateCmp(is_float(t) ? r.f : is_signed(t) ? r.s : r.u, a, b);
}

V Ops::negated(DType t, V a) { return is_float(t) ? ir.CreateFNeg(a) : ir.CreateNeg(a); }

V Ops::rounded(DType t, V v) { return is_small_float(t) ? decoded(t, encoded(t, v, false)) : v; }

// ---- conversions

V Ops::cast(DType from, DType to, V a, bool saturate) {
  if (from == to) return a;
  llvm::Type *type = value(to);
  if (is_float(from)) {
    if (to == DType::Bool) return ir.CreateFCmpUNE(a, constant(a->getType(), 0));
    if (is_small_float(to)) return decoded(to, encoded(to, a, saturate));
    if (is_float(to)) return ir.CreateFPCast(a, type);
    return intrinsic(is_signed(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat, {type, a->getType()}, {a});
  }
  if (to == DType::Bool) return ir.CreateICmpNE(a, llvm::ConstantInt::get(a->getType(), 0));
  bool sign = is_signed(from);
  auto converted = [&](V v, llvm::Type *t, bool s) { return s ? ir.CreateSIToFP(v, t) : ir.CreateUIToFP(v, t); };
  if (is_small_float(to)) {
    int bits = from == DType::Bool ? 1 : info(from).bits;
    if (bits <= 32)
      return decoded(to, encoded(to, converted(a, bits <= 16 ? ir.getFloatTy() : ir.getDoubleTy(), sign), saturate));
    // The first 53 bits, the last one set if more follow: rounding that once again is right.
    V magnitude = sign ? intrinsic(llvm::Intrinsic::abs, {a->getType()}, {a, ir.getFalse()}) : a;
    V rest = ir.CreateShl(ir.CreateZExt(ir.CreateICmpNE(ir.CreateAnd(magnitude, 2047), i64(0)), ir.getInt64Ty()), 11);
    V odd = ir.CreateOr(ir.CreateAnd(magnitude, ~uint64_t(2047)), rest);
    V few = ir.CreateICmpULT(magnitude, i64(uint64_t(1) << 53));
    V d = ir.CreateUIToFP(ir.CreateSelect(few, magnitude, odd), ir.getDoubleTy());
    if (sign) d = ir.CreateSelect(ir.CreateICmpSLT(a, i64(0)), ir.CreateFNeg(d), d);
    return decoded(to, encoded(to, d, saturate));
  }
  if (is_float(to)) return converted(a, type, sign);
  return ir.CreateIntCast(a, type, sign);
}

V Ops::bits(DType from, DType to, V a) {
  V v = is_small_float(from)   ? encoded(from, a, false)
        : is_float(from)       ? ir.CreateBitCast(a, code(from))
        : from == DType::Bool  ? ir.CreateZExt(a, ir.getInt8Ty())
                               : a;
  if (to == DType::Bool) return ir.CreateICmpNE(v, ir.getInt8(0));
  return is_small_float(to) ? decoded(to, v) : is_float(to) ? ir.CreateBitCast(v, value(to)) : v;
}

// ---- builtins

// NaN wins.
V Ops::max(DType t, V a, V b, bool least) {
  if (!is_float(t)) return ir.CreateSelect(compare(least ? Op::Lt : Op::Gt, t, b, a), b, a);
  V over = least ? ir.CreateFCmpOLT(b, a) : ir.CreateFCmpOGT(b, a);
  return ir.CreateSelect(ir.CreateOr(over, ir.CreateFCmpUNO(b, b)), b, a);
}

V Ops::float_primitive(std::string_view name, DType t, const std::vector<V> &args) {
  bool wide = t == DType::F64;
  V x = args[0];
  llvm::Type *type = x->getType();
  V whole = constant(type, wide ? 4503599627370496.0 : 8388608.0);  // from here on all numbers are integers
  auto one = [&](llvm::Intrinsic::ID id, V v) { return intrinsic(id, {type}, {v}); };
  auto sign_of_x = [&](V v) { return intrinsic(llvm::Intrinsic::copysign, {type}, {v, x}); };
  V magnitude = one(llvm::Intrinsic::fabs, x);
  auto truncated = [&] {
    V t = ir.CreateSIToFP(ir.CreateFPToSI(x, wide ? ir.getInt64Ty() : ir.getInt32Ty()), type);
    return ir.CreateSelect(ir.CreateFCmpOLT(magnitude, whole), sign_of_x(t), x);
  };
  if (name == "abs") return magnitude;
  if (name == "isnan") return ir.CreateFCmpUNO(x, x);
  if (name == "isinf") return ir.CreateFCmpOEQ(magnitude, llvm::ConstantFP::getInfinity(type));
  if (name == "sqrt") return one(llvm::Intrinsic::sqrt, x);
  if (name == "trunc") return truncated();
  if (name == "floor") {
    V v = truncated();
    return ir.CreateSelect(ir.CreateFCmpOGT(v, x), ir.CreateFSub(v, constant(type, 1)), v);
  }
  if (name == "ceil") {
    V v = truncated();
    return ir.CreateSelect(ir.CreateFCmpOLT(v, x), ir.CreateFAdd(v, constant(type, 1)), v);
  }
  if (name == "round_even") {
    V v = sign_of_x(ir.CreateFSub(ir.CreateFAdd(magnitude, whole), whole));
    return ir.CreateSelect(ir.CreateFCmpOLT(magnitude, whole), v, x);
  }
  if (name == "fma") return fma_ ? intrinsic(llvm::Intrinsic::fma, {type}, args) : text("fma", t, args);
  if (name == "fmod") return text("fmod", t, args);
  return nullptr;
}

V Ops::primitive(std::string_view name, DType t, const std::vector<V> &args) {
  V a = args[0], b = args.size() > 1 ? args[1] : nullptr;
  if (name == "clamp") return max(t, max(t, a, b, false), args[2], true);
  if (name == "max" || name == "min") return max(t, a, b, name == "min");
  if (is_float(t)) {
    V v = float_primitive(name, is_small_float(t) ? DType::F32 : t, args);
    return !v || v->getType()->isIntegerTy() ? v : rounded(t, v);
  }
  llvm::Type *type = a->getType();
  V zero = llvm::ConstantInt::get(type, 0);
  if (name == "bitand") return ir.CreateAnd(a, b);
  if (name == "bitor") return ir.CreateOr(a, b);
  if (name == "bitxor") return ir.CreateXor(a, b);
  if (name == "bitnot") return ir.CreateNot(a);
  if (name == "abs") return is_signed(t) ? intrinsic(llvm::Intrinsic::abs, {type}, {a, ir.getFalse()}) : a;
  if (name == "fmod") return divided(t, a, b).r;
  if (name == "isnan" || name == "isinf") return ir.getFalse();
  if (name == "ipow") return text("ipow", t, args);
  if (name != "shl" && name != "shr") return nullptr;
  V inside = ir.CreateICmpULT(b, llvm::ConstantInt::get(type, info(t).bits));
  V by = ir.CreateSelect(inside, b, zero);
  V v = name == "shl" ? ir.CreateShl(a, by) : is_signed(t) ? ir.CreateAShr(a, by) : ir.CreateLShr(a, by);
  return ir.CreateSelect(inside, v, zero);
}

}  // namespace mlc::ll
