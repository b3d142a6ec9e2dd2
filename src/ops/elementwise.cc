// Elementwise operators: most are a line of the table, whose expression is instantiated here for types and shapes.
#include <cmath>

#include "ir/typing.h"
#include "ir/walk.h"
#include "ops/rules.h"
#include "text/text.h"

namespace mlc {

// ---- shapes

Dims broadcast(OpUse &u, const Dims &a, const Dims &b) {
  const Dims &lesser = a.size() < b.size() ? a : b, &greater = a.size() < b.size() ? b : a;
  Dims out = greater;
  size_t shift = greater.size() - lesser.size();
  for (size_t k = 0; k < lesser.size(); ++k) {
    X p = lesser[k], q = greater[shift + k];
    int64_t n, m;
    bool fixed_p = is_const(p, &n), fixed_q = is_const(q, &m);
    if ((fixed_p && n == 1) || provably_equal(p, q)) continue;
    if (fixed_q && m == 1) {
      out[shift + k] = p;
      continue;
    }
    u.assume_equal(q, p, fmt::format("dimension {} of the inputs", shift + k));
    if (fixed_p) out[shift + k] = p;
  }
  return out;
}

std::vector<Dims> elementwise_shape(OpUse &u) {
  Dims out;
  for (size_t i = 0; i < u.inputs(); ++i)
    if (u.has(i)) out = broadcast(u, out, u.dims(i));
  return {out};
}

// ---- templates

X Template::operator()(const Expr *e) const {
  Build &b = d.b;
  const Template &self = *this;
  switch (e->kind) {
    case Kind::Float: return lit(b, to<Float>(e).value, number);
    case Kind::Name: return name(b.text(to<Name>(e).name));
    case Kind::Unary: return to<Unary>(e).op == Op::Not ? !self(to<Unary>(e).a) : -self(to<Unary>(e).a);
    case Kind::Binary: {
      X x = self(to<Binary>(e).a), y = self(to<Binary>(e).b);
      switch (to<Binary>(e).op) {
        case Op::Or: return x || y;
        case Op::And: return x && y;
        case Op::Eq: return x == y;
        case Op::Ne: return x != y;
        case Op::Lt: return x < y;
        case Op::Le: return x <= y;
        case Op::Gt: return x > y;
        case Op::Ge: return x >= y;
        default: return {b, b.binary(to<Binary>(e).op, x.e, y.e)};  // of the operand type: nothing is folded
      }
    }
    case Kind::Call: {
      auto &c = to<Call>(e);
      std::string_view f = b.text(c.callee);
      if (c.args.size() == 1 && reduction && is_reduction(f)) return reduction(f, c.args[0]);
      std::vector<X> args;
      for (const Expr *a : c.args) args.push_back(self(a));
      if (f == "where") return where(args[0], args[1], args[2]);
      return f == "T" ? cast(number, args[0]) : call(f, args);
    }
    default: return {b, e};
  }
}

const Expr *read_expression(Define &d) {
  std::string error;
  const Expr *e = read_expr(d.b, d.op.expression, &error);
  if (!e) d.fail(fmt::format("the table's expression of {}: {}", d.op.name, error));
  return e;
}

namespace {

// How many roundings an expression in a small float type would make if each operation were rounded.
int roundings(const Build &b, const Expr *e) {
  int n = 0;
  each_expr(e, [&](const Expr *x) {
    if (auto *bin = as<Binary>(x)) n += bin->op >= Op::Add;
    if (auto *c = as<Call>(x)) {
      auto f = b.text(c->callee);
      n += f != "where" && f != "max" && f != "min" && f != "clamp" && f != "abs" && f != "isnan" && f != "isinf";
    }
    return true;
  });
  return n;
}

X attribute(const Define &d, std::string_view name, DType number) {
  const AttrSpec *spec = d.op.attr(name);
  if (!spec) d.fail(fmt::format("the table's expression of {}: unknown name '{}'", d.op.name, name));
  const Expr *e = d.attr_value(name);
  if (!e) d.fail(fmt::format("attribute '{}' is missing", name));
  auto *f = as<Float>(e);
  return f ? lit(d.b, f->value, number) : X(d.b, e);
}

}  // namespace

// One expression over all elements. f16, bf16: an operator of several steps runs in f32 and is rounded once.
void elementwise(Define &d) {
  const Expr *e = read_expression(d);
  DType t = d.elem(0), number = roundings(d.b, e) > 1 ? accumulator(t) : t;
  Tensor y = d.out();
  d.compute(y, [&](const Indices &i) {
    auto name = [&](std::string_view s) {
      for (size_t k = 0; k < d.inputs(); ++k)
        if (d.op.input(k)->name == s) return as_type(d.in(k).at(i), d.elem(k), d.elem(k) == t ? number : d.elem(k));
      return attribute(d, s, number);
    };
    return as_type(Template{d, number, name, {}}(e), y.elem() == t ? number : y.elem(), y.elem());
  });
}

X is_nan(X x, DType t) { return is_float(t) ? call("isnan", {x}) : truth(*x.b, false); }

// ---- those that an expression of fixed operands cannot say

// A signed right shift by the width or more, or by less than 0, leaves the sign; all others 0.
void bit_shift(Define &d) {
  Tensor x = d.in(0), y = d.in(1), z = d.out();
  DType t = z.elem();
  std::string direction = d.attr_str("direction");
  if (direction != "LEFT" && direction != "RIGHT") d.fail(fmt::format("unknown direction \"{}\"", direction));
  d.compute(z, [&](const Indices &i) {
    X a = x.at(i), n = y.at(i);
    if (direction == "LEFT") return call("shl", {a, n});
    if (!is_signed(t)) return call("shr", {a, n});
    X most = d.lit(info(t).bits - 1);
    return call("shr", {a, where(n < 0 || n > most, most, n)});
  });
}

// Sum, Max, Min, Mean: any number of inputs, from the left.
void variadic(Define &d) {
  const std::string &name = d.op.name;
  Tensor y = d.out();
  DType t = y.elem(), wide = accumulator(t);
  size_t n = d.inputs();
  bool adds = name == "Sum" || name == "Mean";
  DType number = adds && n > 1 ? wide : t;
  d.compute(y, [&](const Indices &i) {
    X v = as_type(d.in(0).at(i), t, number);
    for (size_t k = 1; k < n; ++k) {
      X w = as_type(d.in(k).at(i), t, number);
      v = adds ? v + w : name == "Max" ? max(v, w) : min(v, w);
    }
    if (name == "Mean" && n > 1) v = v / lit(d.b, double(n), number);
    return as_type(v, number, t);
  });
}

// max first, then min: with min > max the result is max. A bound is a scalar, or what exporters write for one: f32[1].
std::vector<Dims> clip_shape(OpUse &u) {
  for (size_t k = 1; k < u.inputs(); ++k)
    if (u.has(k) && u.rank(k) && (u.rank(k) > 1 || !is_int(u.dims(k)[0].e, 1)))
      u.fail(u.input_name(k) + ": expected a scalar");
  return {u.dims(0)};
}
void clip(Define &d) {
  Tensor x = d.in(0);
  d.compute(d.out(), [&](const Indices &i) {
    X v = x(i), first = lit(d.b, int64_t{0});
    auto bound = [&](size_t k) { return d.in(k)(Indices(d.in(k).rank(), first)); };
    if (d.has(1)) v = max(v, bound(1));
    if (d.has(2)) v = min(v, bound(2));
    return v;
  });
}

// Mod takes the sign of the divisor (of zeros too), with fmod = 1 that of the dividend; x mod 0 is 0 for integers.
void mod(Define &d) {
  Tensor x = d.in(0), y = d.in(1), z = d.out();
  DType t = z.elem(), wide = accumulator(t);
  bool dividend = d.attr_int("fmod");
  d.compute(z, [&](const Indices &i) {
    X a = as_type(x.at(i), t, wide), b = as_type(y.at(i), t, wide);
    if (!dividend && is_int(t)) return X(d.b, d.b.binary(Op::Mod, a.e, b.e));
    X r = call("fmod", {a, b}), none = zero(d.b, wide);
    if (!dividend) r = where(r == none, where(b < none, -none, none), where((r < none) != (b < none), r + b, r));
    return as_type(r, wide, t);
  });
}

// x to the power y in x's type; integers stay exact, a float exponent of an integer goes through f64.
void pow_op(Define &d) {
  Tensor x = d.in(0), y = d.in(1), z = d.out();
  DType t = z.elem(), u = y.elem();
  d.compute(z, [&](const Indices &i) {
    X a = x.at(i), b = y.at(i);
    if (is_int(t) && is_int(u)) return call("ipow", {a, as_type(b, u, t)});
    DType wide = is_int(t) ? DType::F64 : accumulator(t);
    return as_type(call("pow", {as_type(a, t, wide), as_type(b, u, wide)}), wide, t);
  });
}

void prelu(Define &d) {
  Tensor x = d.in(0), s = d.in(1), y = d.out();
  DType t = y.elem();
  d.compute(y, [&](const Indices &i) { return where(x(i) < zero(d.b, t), s.at(i) * x(i), x(i)); });
}
std::vector<Dims> prelu_shape(OpUse &u) {
  Dims x = u.dims(0);
  if (u.rank(1) > x.size()) u.fail("the slope has more dimensions than the input");
  broadcast(u, x, u.dims(1));
  return {x};
}

// ---- casts and copies

namespace {

// What an f8 type makes of values that do not fit when it does not saturate: NaN, or inf where it has one, from `limit`
// on (where rounding to nearest even leaves the range; `tie`: the limit itself stays).
struct Overflow {
  DType type;
  double limit;
  bool tie, inf;
};
constexpr Overflow kOverflow[] = {{DType::F8E4M3FN, 464, true, false}, {DType::F8E4M3FNUZ, 248, false, false},
                                  {DType::F8E5M2, 61440, false, true}, {DType::F8E5M2FNUZ, 61440, false, false}};

// A power of two as its exponent's byte: the exponent of f32, rounded up, down or to nearest; 255 is NaN.
X to_e8m0(Define &d, X x) {
  constexpr DType u32 = DType::U32;
  std::string mode = d.attr_str("round_mode");
  int64_t add = mode == "up" ? 0x7fffff : mode == "nearest" ? 0x400000 : 0;
  if (!add && mode != "down") d.fail(fmt::format("unknown round_mode \"{}\"", mode));
  X bits = call("bits.u32", {call("abs", {x})}), code = call("shr", {bits + add, d.lit(23)});
  if (add) code = where(bits <= 0x400000, d.lit(0), code);  // up to 2^-127, the least value
  code = where(code > 254, d.lit(d.attr_int("saturate") ? 254 : 255), code);
  return call("bits.f8e8m0", {cast(DType::U8, where(call("isnan", {x}), lit(d.b, 255.0, u32), code))});
}

}  // namespace

void cast_op(Define &d) {
  Tensor x = d.in(0), y = d.out();
  DType from = x.elem(), to = y.elem();
  bool saturates = !d.op.attr("saturate") || d.attr_int("saturate");
  d.compute(y, [&](const Indices &i) {
    X v = x(i);
    if (is_float(from) && is_int(to) && info(to).bits < 8) v = cast(DType::I8, v);  // then the low bits
    if (from == to || !is_float(from)) return as_type(v, from, to);
    X wide = as_type(v, from, from == DType::F64 ? from : DType::F32);
    if (to == DType::F8E8M0 && d.op.attr("round_mode")) return to_e8m0(d, as_type(v, from, DType::F32));
    for (const Overflow &o : kOverflow) {
      if (o.type != to || saturates) continue;
      DType t = from == DType::F64 ? from : DType::F32;
      X size = call("abs", {wide}), limit = lit(d.b, o.limit, t), beyond = X(d.b, d.b.number(std::nan("")));
      if (o.inf)  // a literal inf of the type would be its largest number
        beyond = call("bits.f8e5m2",
                      {where(wide < zero(d.b, t), cast(DType::U8, d.lit(0xfc)), cast(DType::U8, d.lit(0x7c)))});
      return where(o.tie ? size > limit : size >= limit, beyond, cast(to, v));
    }
    return cast(to, v);
  });
}
void bit_cast(Define &d) {
  Tensor x = d.in(0), y = d.out();
  std::string f = fmt::format("bits.{}", dtype_name(y.elem()));
  d.compute(y, [&](const Indices &i) {
    bool plain = x.elem() == y.elem() || x.elem() == DType::Bool || y.elem() == DType::Bool;
    return plain ? as_type(x(i), x.elem(), y.elem()) : call(f, {x(i)});
  });
}
std::vector<Dims> bit_cast_shape(OpUse &u) {
  if (u.wanted && info(u.wanted->elem).bits != info(u.elem(0)).bits)
    u.fail(fmt::format("expected a type of {} bits, found {}", info(u.elem(0)).bits, dtype_name(u.wanted->elem)));
  return {u.dims(0)};
}

}  // namespace mlc
