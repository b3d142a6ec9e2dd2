// Quantisation: divides by the scale, rounds ties to even, adds the zero point, saturates (the cast does).
#include "ops/rules.h"

namespace mlc {

X quantized(X real, X zero_point, DType t) {
  return cast(t, call("round_even", {real}) + cast(DType::F32, zero_point));
}

namespace {

// A scale or zero point of x at i: one for all, one for each index of the axis, or one for each block of the axis.
void check_parameter(OpUse &u, size_t input) {
  size_t rank = u.rank(0), own = u.rank(input);
  int64_t block = u.attr_int("block_size"), n;
  if (own == 0 || (own == 1 && is_const(u.dim(input, 0), &n) && n == 1)) return;
  int64_t axis = u.axis("axis", rank);
  if (block == 0) {
    if (own != 1) u.fail(fmt::format("{}: expected a scalar or a vector, found rank {}", u.input_name(input), own));
    return u.assume_equal(u.dim(input, 0), u.dim(0, size_t(axis)), "length of the scales");
  }
  if (block < 0 || own != rank) u.fail(u.input_name(input) + ": expected the rank of x and a positive block_size");
  for (size_t k = 0; k < rank; ++k)
    u.assume_equal(u.dim(input, k), int64_t(k) == axis ? ceildiv(u.dim(0, k), u.lit(block)) : u.dim(0, k),
                   fmt::format("dimension {} of the scales", k));
}
X parameter(Define &d, const Tensor &p, const Indices &i) {
  int64_t n, block = d.attr_int("block_size");
  if (p.rank() == 0) return p({});
  if (p.rank() == 1 && is_const(p.dims[0], &n) && n == 1) return p({d.lit(0)});
  size_t axis = size_t(d.axis("axis", i.size()));
  if (block == 0) return p({i[axis]});
  Indices at = i;
  at[axis] = floordiv(i[axis], block);
  return p(at);
}

}  // namespace

std::vector<Dims> quantize_linear_shape(OpUse &u) {
  check_parameter(u, 1);
  if (u.has(2)) check_parameter(u, 2);
  return {u.dims(0)};
}
void quantize_linear(Define &d) {
  constexpr DType f32 = DType::F32;
  Tensor x = d.in(0), scale = d.in(1), y = d.out();
  DType wide = x.elem() == DType::F64 || scale.elem() == DType::F64 ? DType::F64 : f32;
  d.compute(y, [&](const Indices &i) {
    X v = as_type(x(i), x.elem(), wide) / as_type(parameter(d, scale, i), scale.elem(), wide);
    if (is_int(y.elem())) v = call("round_even", {v});
    if (d.has(2) && is_int(y.elem())) v = v + cast(wide, parameter(d, d.in(2), i));
    return cast(y.elem(), v);
  });
}

std::vector<Dims> dequantize_linear_shape(OpUse &u) { return quantize_linear_shape(u); }
void dequantize_linear(Define &d) {
  Tensor x = d.in(0), scale = d.in(1), y = d.out();
  DType t = y.elem(), wide = t == DType::F64 ? t : DType::F32;
  d.compute(y, [&](const Indices &i) {
    X v = x(i);
    if (d.has(2) && x.elem() == DType::I32) v = cast(wide, v - parameter(d, d.in(2), i));
    else if (d.has(2)) v = cast(wide, v) - cast(wide, parameter(d, d.in(2), i));
    else v = cast(wide, v);
    return as_type(v * as_type(parameter(d, scale, i), scale.elem(), wide), wide, t);
  });
}

// u8 over the range of x and 0: results y, scale, zero point
std::vector<Dims> dynamic_quantize_linear_shape(OpUse &u) { return {u.dims(0), {}, {}}; }
void dynamic_quantize_linear(Define &d) {
  constexpr DType f32 = DType::F32, u8 = DType::U8;
  Tensor x = d.in(0);
  X none = zero(d.b, f32), top = lit(d.b, 255.0, f32);
  auto end = [&](std::string_view kind) {
    return d.make(kind == "min" ? "lo" : "hi", f32, {}, [&](const Indices &) {
      X v = d.reduce(kind, x.dims, [&](const Indices &i) { return x(i); });
      return call(kind, {none, v});
    });
  };
  Tensor lo = end("min"), hi = end("max");
  Tensor scale = d.wants(1) ? d.out(1) : d.temp(f32, {}, "scale"), zp = d.wants(2) ? d.out(2) : d.temp(u8, {}, "zp");
  d.compute(scale, [&](const Indices &) { return (hi({}) - lo({})) / top; });
  d.compute(zp, [&](const Indices &) {
    return cast(u8, call("round_even", {call("clamp", {(none - lo({})) / scale({}), none, top})}));
  });
  d.compute(d.out(), [&](const Indices &i) { return quantized(x(i) / scale({}), zp({}), u8); });
}

}  // namespace mlc
