// What the families share. Included by src/ops/*.cc only.
#pragma once
#include <fmt/core.h>

#include "ops/ops.h"

namespace mlc {

// The rules and definitions that grammar/ops.def names.
#define OP(name, inputs, outputs, types, attrs, pattern, shape, define) \
  std::vector<Dims> shape(OpUse &u);                                    \
  void define(Define &d);
#define SIZED(name, inputs, outputs, types, attrs, shape, count, define) \
  OP(name, inputs, outputs, types, attrs, , shape, define)               \
  void count(Define &d);
#define HOSTED(name, inputs, outputs, types, attrs, shape) std::vector<Dims> shape(OpUse &u);
#define ELEMENTWISE(name, inputs, outputs, types, attrs, expression)
#define REDUCE(name, types, expression)
#include "../../grammar/ops.def"
#undef OP
#undef SIZED
#undef HOSTED
#undef ELEMENTWISE
#undef REDUCE

std::vector<Dims> elementwise_shape(OpUse &u);  // numpy's broadcasting over all inputs
void elementwise(Define &d);
std::vector<Dims> reduce_shape(OpUse &u);
void reduce(Define &d);

// The type in which sums of t accumulate, and multi-step float mathematics runs: f32 for f16, bf16, f8; else t.
inline DType accumulator(DType t) { return is_small_float(t) ? DType::F32 : t; }
// x in the type t; nothing if it has that type already.
inline X as_type(X x, DType from, DType t) { return from == t ? x : cast(t, x); }

// A template over names: literals written as floats take type `number` (so 0.0 is 0 for integers), names are replaced
// by `name`, a call of T is a cast to `number`, a reduction of one argument becomes one over `over`; what is known is
// folded.
struct Template {
  Define &d;
  DType number;
  std::function<X(std::string_view)> name;
  std::function<X(std::string_view, const Expr *)> reduction;  // may be empty
  X operator()(const Expr *e) const;
};
const Expr *read_expression(Define &d);  // the table's expression of this operator

// Broadcasting of two shapes; `what` names them in messages.
Dims broadcast(OpUse &u, const Dims &a, const Dims &b);

// A count or place that a float says; fails if no int64_t holds it well.
int64_t whole(const OpUse &u, double v);

Tensor buffer(Build &b, Sym name, const Type *type);  // as a Tensor

// Axes counted from the end if negative, checked, unique.
std::vector<size_t> normal_axes(const OpUse &u, const std::vector<int64_t> &axes, size_t rank);

// i without / with other parts, for index lists.
inline Indices concat(Indices a, const Indices &b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
inline Indices slice(const Indices &a, size_t from, size_t to) { return {a.begin() + from, a.begin() + to}; }

// A row-major position as indices of a shape, and back.
Indices unflatten(X position, const Dims &dims);
X flatten(const Indices &i, const Dims &dims);

X is_nan(X x, DType t);  // false for integers
X quantized(X real, X zero_point, DType t);  // real: f32, already divided by the scale

// The shape rule of operators whose result is like input 0.
inline std::vector<Dims> same_shape(OpUse &u) { return {u.dims(0)}; }

}  // namespace mlc
