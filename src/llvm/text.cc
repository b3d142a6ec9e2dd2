// Operations that take turns or many steps, as LLVM assembly. $T the type, $F the suffix of its intrinsics, $N the name
// of the function.
#include <fmt/core.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/Support/SourceMgr.h>

#include "llvm/ops.h"

namespace mlc::ll {
namespace {

// Exact: y times powers of two is taken off, the largest first; the sign of x.
constexpr std::string_view kFmod = R"(
declare $T @llvm.fabs.$F($T)
declare $T @llvm.copysign.$F($T, $T)
define internal $T @$N($T %x, $T %y) {
  %b = call $T @llvm.fabs.$F($T %y)
  %r0 = call $T @llvm.fabs.$F($T %x)
  %finite = fcmp one $T %r0, 0x7FF0000000000000
  %divides = fcmp ogt $T %b, 0.0
  %is = and i1 %finite, %divides
  br i1 %is, label %up, label %nan
nan:
  ret $T 0x7FF8000000000000
up:
  %t = phi $T [ %b, %0 ], [ %twice, %up ]
  %twice = fadd $T %t, %t
  %more = fcmp ole $T %twice, %r0
  br i1 %more, label %up, label %down
down:
  %s = phi $T [ %t, %up ], [ %half, %next ]
  %r = phi $T [ %r0, %up ], [ %r1, %next ]
  %fits = fcmp ole $T %s, %r
  %less = fsub $T %r, %s
  %r1 = select i1 %fits, $T %less, $T %r
  %last = fcmp oeq $T %s, %b
  br i1 %last, label %done, label %next
next:
  %half = fmul $T %s, 0.5
  br label %down
done:
  %y1 = call $T @llvm.copysign.$F($T %r1, $T %x)
  ret $T %y1
}
)";

// Modulo 2^bits.
constexpr std::string_view kPower = R"(
define internal $T @$N($T %x, $T %n) {
  br label %test
test:
  %r = phi $T [ 1, %0 ], [ %r1, %turn ]
  %p = phi $T [ %x, %0 ], [ %p1, %turn ]
  %k = phi $T [ %n, %0 ], [ %k1, %turn ]
  %end = icmp eq $T %k, 0
  br i1 %end, label %done, label %turn
turn:
  %bit = trunc $T %k to i1
  %times = mul $T %r, %p
  %r1 = select i1 %bit, $T %times, $T %r
  %p1 = mul $T %p, %p
  %k1 = lshr $T %k, 1
  br label %test
done:
  ret $T %r
}
)";

// x * y + z, rounded once: the sum in double is made odd.
constexpr std::string_view kFma32 = R"(
define internal float @$N(float %x0, float %y0, float %z0) {
  %x = fpext float %x0 to double
  %y = fpext float %y0 to double
  %z = fpext float %z0 to double
  %p = fmul double %x, %y
  %t = fadd double %p, %z
  %u = fsub double %t, %p
  %tu = fsub double %t, %u
  %pl = fsub double %p, %tu
  %zl = fsub double %z, %u
  %lost = fadd double %pl, %zl
  %inexact = fcmp one double %lost, 0.0
  %b = bitcast double %t to i64
  %odd = trunc i64 %b to i1
  %even = xor i1 %odd, true
  %change = and i1 %inexact, %even
  %up = fcmp ogt double %lost, 0.0
  %plus = fcmp ogt double %t, 0.0
  %away = icmp eq i1 %up, %plus
  %by = select i1 %away, i64 1, i64 -1
  %by1 = select i1 %change, i64 %by, i64 0
  %b1 = add i64 %b, %by1
  %s = bitcast i64 %b1 to double
  %r = fptrunc double %s to float
  ret float %r
}
)";

// The same of doubles, on integers of 128 bits: a 2^f is the product, b 2^g the addend, the larger one first.
constexpr std::string_view kFma64 = R"(
declare i128 @llvm.ctlz.i128(i128, i1)
declare i32 @llvm.smin.i32(i32, i32)
declare i32 @llvm.smax.i32(i32, i32)
define internal double @$N(double %x, double %y, double %z) {
  %xb = bitcast double %x to i64
  %yb = bitcast double %y to i64
  %zb = bitcast double %z to i64
  %xs = lshr i64 %xb, 52
  %ys = lshr i64 %yb, 52
  %zs = lshr i64 %zb, 52
  %xe = and i64 %xs, 2047
  %ye = and i64 %ys, 2047
  %ze = and i64 %zs, 2047
  %xf = and i64 %xb, 4503599627370495
  %yf = and i64 %yb, 4503599627370495
  %zf = and i64 %zb, 4503599627370495
  %xd = icmp eq i64 %xe, 0
  %yd = icmp eq i64 %ye, 0
  %zd = icmp eq i64 %ze, 0
  %xh = select i1 %xd, i64 0, i64 4503599627370496
  %yh = select i1 %yd, i64 0, i64 4503599627370496
  %zh = select i1 %zd, i64 0, i64 4503599627370496
  %xm = or i64 %xf, %xh
  %ym = or i64 %yf, %yh
  %zm = or i64 %zf, %zh
  %xq = icmp eq i64 %xe, 2047
  %yq = icmp eq i64 %ye, 2047
  %zq = icmp eq i64 %ze, 2047
  %x0 = icmp eq i64 %xm, 0
  %y0 = icmp eq i64 %ym, 0
  %z0 = icmp eq i64 %zm, 0
  %p = fmul double %x, %y
  %q0 = or i1 %xq, %yq
  %q1 = or i1 %x0, %y0
  %easy = or i1 %q0, %q1
  br i1 %easy, label %plain, label %finite
plain:
  %plain.sum = fadd double %p, %z
  ret double %plain.sum
finite:
  br i1 %zq, label %other, label %hard
other:
  %twice = fadd double %z, %z
  ret double %twice
hard:
  br i1 %z0, label %product, label %exact
product:
  ret double %p
exact:
  %xi = trunc i64 %xe to i32
  %yi = trunc i64 %ye to i32
  %zi = trunc i64 %ze to i32
  %x1 = call i32 @llvm.smax.i32(i32 %xi, i32 1)
  %y1 = call i32 @llvm.smax.i32(i32 %yi, i32 1)
  %z1 = call i32 @llvm.smax.i32(i32 %zi, i32 1)
  %xw = zext i64 %xm to i128
  %yw = zext i64 %ym to i128
  %zw = zext i64 %zm to i128
  %a0 = mul i128 %xw, %yw
  %ac = call i128 @llvm.ctlz.i128(i128 %a0, i1 false)
  %bc = call i128 @llvm.ctlz.i128(i128 %zw, i1 false)
  %as = sub i128 %ac, 2
  %bs = sub i128 %bc, 2
  %a = shl i128 %a0, %as
  %b = shl i128 %zw, %bs
  %ai = trunc i128 %as to i32
  %bi = trunc i128 %bs to i32
  %f0 = add i32 %x1, %y1
  %f1 = sub i32 %f0, 2150
  %f = sub i32 %f1, %ai
  %g0 = sub i32 %z1, 1075
  %g = sub i32 %g0, %bi
  %pxor = xor i64 %xb, %yb
  %psign = icmp slt i64 %pxor, 0
  %zsign = icmp slt i64 %zb, 0
  %minus = xor i1 %psign, %zsign
  %lower = icmp slt i32 %f, %g
  %same = icmp eq i32 %f, %g
  %smaller = icmp ult i128 %a, %b
  %tie = and i1 %same, %smaller
  %swap = or i1 %lower, %tie
  %big = select i1 %swap, i128 %b, i128 %a
  %small = select i1 %swap, i128 %a, i128 %b
  %top = select i1 %swap, i32 %g, i32 %f
  %low = select i1 %swap, i32 %f, i32 %g
  %sign = select i1 %swap, i1 %zsign, i1 %psign
  %apart = sub i32 %top, %low
  %far = icmp sgt i32 %apart, 126
  %sh32 = call i32 @llvm.smin.i32(i32 %apart, i32 126)
  %sh = zext i32 %sh32 to i128
  %kept = lshr i128 %small, %sh
  %back = shl i128 %kept, %sh
  %rests = icmp ne i128 %back, %small
  %sticky = zext i1 %rests to i128
  %near = or i128 %kept, %sticky
  %addend = select i1 %far, i128 1, i128 %near
  %plus = add i128 %big, %addend
  %less = sub i128 %big, %addend
  %sum = select i1 %minus, i128 %less, i128 %plus
  %none = icmp eq i128 %sum, 0
  br i1 %none, label %zero, label %round
zero:
  ret double 0.0
round:
  %sc = call i128 @llvm.ctlz.i128(i128 %sum, i1 false)
  %ss = sub i128 %sc, 1
  %s = shl i128 %sum, %ss
  %si = trunc i128 %ss to i32
  %e = sub i32 %top, %si
  %deep = sub i32 -1074, %e
  %drop = call i32 @llvm.smax.i32(i32 %deep, i32 74)
  %drop1 = call i32 @llvm.smin.i32(i32 %drop, i32 127)
  %dw = zext i32 %drop1 to i128
  %hw = sub i128 %dw, 1
  %half = shl i128 1, %hw
  %r = lshr i128 %s, %dw
  %rb = shl i128 %r, %dw
  %rest = sub i128 %s, %rb
  %over = icmp ugt i128 %rest, %half
  %even = icmp eq i128 %rest, %half
  %odd = trunc i128 %r to i1
  %up0 = and i1 %even, %odd
  %up = or i1 %over, %up0
  %one = zext i1 %up to i128
  %r1 = add i128 %r, %one
  %gone = icmp sgt i32 %drop, 127
  %r2 = select i1 %gone, i128 0, i128 %r1
  %m = trunc i128 %r2 to i64
  %x3 = add i32 %e, %drop
  %exponent = add i32 %x3, 1075
  %huge = icmp sgt i32 %exponent, 2046
  %e1 = sub i32 %exponent, 1
  %e2 = sext i32 %e1 to i64
  %e3 = shl i64 %e2, 52
  %bits0 = add i64 %m, %e3
  %bits1 = select i1 %huge, i64 9218868437227405312, i64 %bits0
  %minus64 = select i1 %sign, i64 -9223372036854775808, i64 0
  %bits = or i64 %bits1, %minus64
  %y2 = bitcast i64 %bits to double
  ret double %y2
}
)";

}  // namespace

V Ops::text(std::string_view family, DType t, const std::vector<V> &args) {
  std::string name = fmt::format("{}.{}", family, dtype_name(t));
  if (!m.getFunction(name)) {
    std::string_view text = family == "fmod" ? kFmod : family == "ipow" ? kPower : t == DType::F64 ? kFma64 : kFma32;
    std::string s, type = t == DType::F64 ? "double" : is_float(t) ? "float" : fmt::format("i{}", info(t).bits);
    for (size_t i = 0; i < text.size(); i++) {
      if (text[i] != '$') s += text[i];
      else if (text[++i] == 'T') s += type;
      else s += text[i] == 'N' ? name : std::string(dtype_name(t));
    }
    for (size_t at = 0; (at = s.find("declare", at)) != s.npos;) {  // what is declared already is not declared again
      size_t name = s.find('@', at) + 1, end = s.find('\n', at);
      if (m.getFunction(s.substr(name, s.find('(', name) - name))) s.erase(at, end - at);
      else at = end;
    }
    llvm::SMDiagnostic error;
    if (llvm::parseAssemblyInto({s, name}, &m, nullptr, error)) llvm::report_fatal_error(llvm::Twine(error.getMessage()));
  }
  V r = ir.CreateCall(m.getFunction(name), args);
  if (family != "ipow" || !is_signed(t)) return r;
  // 1 / x^-n, truncated, where n is negative
  llvm::Type *type = r->getType();
  V zero = llvm::ConstantInt::get(type, 0), one = llvm::ConstantInt::get(type, 1);
  V x = args[0], n = args[1], least = llvm::ConstantInt::getSigned(type, -1);
  V odd = ir.CreateTrunc(n, ir.getInt1Ty());
  V inverse = ir.CreateSelect(ir.CreateICmpEQ(x, one), one,
                              ir.CreateSelect(ir.CreateICmpEQ(x, least), ir.CreateSelect(odd, least, one), zero));
  return ir.CreateSelect(ir.CreateICmpSLT(n, zero), inverse, r);
}

}  // namespace mlc::ll
