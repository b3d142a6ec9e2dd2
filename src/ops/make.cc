// Tensors that are made of shapes and numbers alone.
#include <algorithm>
#include <cmath>

#include "ops/rules.h"

namespace mlc {

// ---- Shape, Size
std::vector<Dims> shape_shape(OpUse &u) {
  int64_t rank = int64_t(u.rank(0)), start = u.attr_int("start"), end = u.has_attr("end") ? u.attr_int("end") : rank;
  auto place = [&](int64_t v) { return std::clamp(v < 0 ? v + rank : v, int64_t{0}, rank); };
  return {{u.lit(std::max(place(end) - place(start), int64_t{0}))}};
}
void shape_op(Define &d) {
  Dims x = d.dims(0);
  int64_t rank = int64_t(x.size()), start = d.attr_int("start"), n;
  start = std::clamp(start < 0 ? start + rank : start, int64_t{0}, rank);
  Tensor y = d.out();
  if (!is_const(y.dims[0], &n) || !n) return d.compute(y, [&](const Indices &) { return d.lit(0); });
  d.compute(y, [&](const Indices &i) {
    X value = cast(DType::I64, x[size_t(start + n) - 1]);
    for (int64_t k = n - 1; k-- > 0;) value = where(i[0] == k, cast(DType::I64, x[size_t(start + k)]), value);
    return value;
  });
}
std::vector<Dims> scalar_shape(OpUse &) { return {{}}; }
void size_op(Define &d) {
  X n = product(d.b, d.dims(0));
  d.compute(d.out(), [&](const Indices &) { return cast(DType::I64, n); });
}

std::vector<Dims> constant_of_shape_shape(OpUse &u) {
  Dims y;
  for (X v : u.need_values(0)) y.push_back(v);
  return {y};
}
void constant_of_shape(Define &d) {
  const Expr *v = d.attr_value("value");
  DType t = d.out().elem();
  double plain = v->kind == Kind::Float ? to<Float>(v).value : v->kind == Kind::Bool ? to<Bool>(v).value : 0;
  d.compute(d.out(),
            [&](const Indices &) { return v->kind == Kind::Int && is_int(t) ? X(d.b, v) : lit(d.b, plain, t); });
}

std::vector<Dims> eye_like_shape(OpUse &u) {
  if (u.rank(0) != 2) u.fail("expected a matrix");
  return {u.dims(0)};
}
void eye_like(Define &d) {
  int64_t k = d.attr_int("k");
  DType t = d.out().elem();
  d.compute(d.out(), [&](const Indices &i) { return where(i[1] == i[0] + k, one(d.b, t), zero(d.b, t)); });
}

// max(ceil((limit - start) / delta), 0) elements; integers only while compiling
std::vector<Dims> range_shape(OpUse &u) {
  auto start = u.need_values(0), limit = u.need_values(1), delta = u.need_values(2);
  if (start.size() != 1 || limit.size() != 1 || delta.size() != 1) u.fail("expected scalars");
  if (auto *a = as<Float>(start[0].e)) {
    auto *b = as<Float>(limit[0].e), *c = as<Float>(delta[0].e);
    if (!b || !c || c->value == 0) u.fail("expected floats, and a delta other than 0");
    double n = std::max(std::ceil((b->value - a->value) / c->value), 0.0);
    if (!(n < 0x1p62)) u.fail("the range is too long");
    return {{u.lit(int64_t(n))}};
  }
  int64_t step;
  if (!is_const(delta[0], &step)) u.lack("input 2 (delta) must be known when compiling");
  if (step == 0 || step == INT64_MIN) u.fail(fmt::format("a delta of {}", step));
  X span = step > 0 ? limit[0] - start[0] : start[0] - limit[0];
  // Where the text says that there is no need for the max, that is a fact.
  X count = ceildiv(span, u.lit(step > 0 ? step : -step));
  if (u.wanted && u.wanted->rank() == 1 && provably_equal(X(u.b, u.wanted->dims[0]), count)) {
    u.assume(span >= 0);
    return {{count}};
  }
  return {{max(count, u.lit(0))}};
}
void range_op(Define &d) {
  Tensor start = d.in(0), delta = d.in(2), y = d.out();
  DType t = y.elem();
  d.compute(y, [&](const Indices &i) {
    X s = start.at({i[0]}), step = delta.at({i[0]});
    return X(d.b, d.b.binary(Op::Add, s.e, (cast(t, i[0]) * step).e));
  });
}

}  // namespace mlc
