// Operators that move elements without looking at them.
#include <algorithm>
#include <cmath>

#include "arith/bounds.h"
#include "ops/rules.h"

namespace mlc {

Indices unflatten(X position, const Dims &dims) {
  Indices i(dims.size());
  X inner = lit(*position.b, int64_t{1});
  for (size_t k = dims.size(); k-- > 0;) {
    X q = floordiv(position, inner);
    i[k] = k ? q % dims[k] : q;
    inner = inner * dims[k];
  }
  return i;
}

X flatten(const Indices &i, const Dims &dims) {
  X p = i.at(0);
  for (size_t k = 1; k < i.size(); ++k) p = p * dims[k] + i[k];
  return p;
}

namespace {

// A product of dimensions as a constant and symbolic factors, so that equal products are seen and quotients taken.
struct Product {
  int64_t constant = 1;
  std::vector<X> factors;
  void times(X x) {
    int64_t v;
    if (is_const(x, &v)) {
      if (__builtin_mul_overflow(constant, v, &constant)) throw OpError("the number of elements overflows");
    } else if (auto *m = as<Binary>(x.e); m && m->op == Op::Mul) {
      times({*x.b, m->a}), times({*x.b, m->b});
    } else {
      factors.push_back(x);
    }
  }
  // Takes away a factor; false if it is none.
  bool drop(X x) {
    auto it = std::find_if(factors.begin(), factors.end(), [&](X f) { return provably_equal(f, x); });
    return it != factors.end() && (factors.erase(it), true);
  }
  X value(Build &b) const {
    X p = lit(b, int64_t{1});
    for (X f : factors) p = p * f;
    return p * constant;
  }
};
Product product_of(const Dims &dims) {
  Product p;
  for (X d : dims) p.times(d);
  return p;
}
bool same(const Product &p, Product q) {
  if (p.constant != q.constant || p.factors.size() != q.factors.size()) return false;
  return std::all_of(p.factors.begin(), p.factors.end(), [&](X f) { return q.drop(f); });
}

// The index in `from` of the element at index i of `to`, both row-major with equally many elements. Runs of dimensions
// with equal products are treated alone: [n, 4, 4] from [n, 16] at (i, j, k) is (i, j * 4 + k).
Indices reindex(Build &b, const Dims &from, const Dims &to, const Indices &i) {
  Indices out;
  size_t f = 0, t = 0;
  while (f < from.size() || t < to.size()) {
    Product pf, pt;
    size_t f0 = f, t0 = t;
    auto take_from = [&] { pf.times(from[f++]); };
    auto take_to = [&] { pt.times(to[t++]); };
    if (f < from.size()) take_from();
    if (t < to.size()) take_to();
    while (!same(pf, pt) && (f < from.size() || t < to.size())) {
      bool left = f < from.size(), right = t < to.size();
      bool smaller = pf.factors.size() == pt.factors.size() ? pf.constant < pt.constant : pf.factors.size() < pt.factors.size();
      if (left && (smaller || !right)) take_from();
      else take_to();
    }
    Dims df(from.begin() + f0, from.begin() + f), dt(to.begin() + t0, to.begin() + t);
    X zero = lit(b, int64_t{0});
    if (df.size() == 1 && dt.size() == 1) {
      out.push_back(i[t0]);
    } else if (dt.empty()) {
      out.insert(out.end(), df.size(), zero);
    } else if (!df.empty()) {
      Indices part(i.begin() + t0, i.begin() + t);
      int64_t one;
      for (size_t k = 0; k < part.size(); ++k)
        if (is_const(dt[k], &one) && one == 1) part[k] = zero;
      for (X x : unflatten(flatten(part, dt), df)) out.push_back(x);
    }
  }
  return out;
}

}  // namespace

// The same elements in another shape.
void copy_reshaped(Define &d) {
  Tensor x = d.in(0), y = d.out();
  d.compute(y, [&](const Indices &i) { return x.rank() ? x(reindex(d.b, x.dims, y.dims, i)) : x({}); });
}

std::vector<Dims> reshape_shape(OpUse &u) {
  Dims x = u.dims(0), y;
  int64_t rank;
  if (!u.values(1) && u.rank(1) == 1 && is_const(u.dim(1, 0), &rank) && u.results.size() == size_t(rank) + 1) {
    y = u.sizes_first(size_t(rank));
    u.assume_equal(product(u.b, x), product(u.b, y), "number of elements");
    return {y};
  }
  std::vector<X> want = u.need_values(1);
  bool zero_is_zero = u.attr_int("allowzero");
  Product all = product_of(x), named;
  int64_t v;
  std::optional<size_t> open;
  for (size_t k = 0; k < want.size(); ++k) {
    if (is_const(want[k], &v) && v == -1) {
      if (open) u.fail("input 1 (shape): only one dimension may be -1");
      open = k;
      y.push_back(u.lit(1));
      continue;
    }
    if (is_const(want[k], &v) && v < -1) u.fail(fmt::format("input 1 (shape): {} is no dimension", v));
    if (is_const(want[k], &v) && v == 0 && !zero_is_zero) {
      if (k >= x.size()) u.fail(fmt::format("input 1 (shape): 0 copies dimension {}, which the input has not", k));
      y.push_back(x[k]);
    } else {
      y.push_back(want[k]);
    }
    named.times(y.back());
  }
  if (!open) {
    if (!same(all, named)) u.assume_equal(all.value(u.b), named.value(u.b), "number of elements");
    return {y};
  }
  // What is left of the input's dimensions without those that are named.
  Product rest = all, divisor;
  for (X f : named.factors)
    if (!rest.drop(f)) divisor.times(f);
  if (named.constant == 0) u.fail("input 1 (shape): -1 beside a dimension of 0");
  if (rest.constant % named.constant == 0) {
    rest.constant /= named.constant;
  } else {
    if (rest.factors.empty()) u.fail(fmt::format("{} elements do not divide by {}", rest.constant, named.constant));
    divisor.constant = named.constant;
  }
  X n = rest.value(u.b), q = divisor.value(u.b);
  if (!is_const(q, &v) || v != 1) u.assume(n % q == 0);
  y[*open] = floordiv(n, q);
  return {y};
}

std::vector<Dims> flatten_shape(OpUse &u) {
  Dims x = u.dims(0);
  int64_t axis = u.attr_int("axis"), rank = int64_t(x.size());
  if (axis < -rank || axis > rank) u.fail(fmt::format("axis {} is outside the rank {}", axis, rank));
  if (axis < 0) axis += rank;
  return {{product(u.b, slice(x, 0, size_t(axis))), product(u.b, slice(x, size_t(axis), x.size()))}};
}

std::vector<Dims> squeeze_shape(OpUse &u) {
  Dims x = u.dims(0), y;
  std::vector<bool> gone(x.size());
  int64_t n;
  if (u.has(1))
    for (size_t k : normal_axes(u, u.need_ints(1), x.size())) {
      gone[k] = true;
      u.assume_equal(x[k], u.lit(1), fmt::format("squeezed dimension {}", k));
    }
  else
    for (size_t k = 0; k < x.size(); ++k) gone[k] = is_const(x[k], &n) && n == 1;
  for (size_t k = 0; k < x.size(); ++k)
    if (!gone[k]) y.push_back(x[k]);
  return {y};
}

std::vector<Dims> unsqueeze_shape(OpUse &u) {
  Dims x = u.dims(0), y;
  auto axes = u.need_ints(1);
  size_t rank = x.size() + axes.size(), next = 0;
  auto added = normal_axes(u, axes, rank);
  for (size_t k = 0; k < rank; ++k)
    y.push_back(std::find(added.begin(), added.end(), k) != added.end() ? u.lit(1) : x[next++]);
  return {y};
}

// ---- Transpose

static std::vector<size_t> perm_of(const OpUse &u) {
  size_t rank = u.rank(0);
  std::vector<int64_t> perm = u.attr_ints("perm");
  if (!u.has_attr("perm"))
    for (size_t k = rank; k-- > 0;) perm.push_back(int64_t(k));
  if (perm.size() != rank) u.fail(fmt::format("attribute 'perm': expected {} integers, found {}", rank, perm.size()));
  return normal_axes(u, perm, rank);
}
std::vector<Dims> transpose_shape(OpUse &u) {
  Dims x = u.dims(0), y;
  for (size_t k : perm_of(u)) y.push_back(x[k]);
  return {y};
}
void transpose(Define &d) {
  auto perm = perm_of(d);
  Tensor x = d.in(0);
  d.compute(d.out(), [&](const Indices &i) {
    Indices at(i.size());
    for (size_t k = 0; k < i.size(); ++k) at[perm[k]] = i[k];
    return x(at);
  });
}

// ---- Concat, Split

std::vector<Dims> concat_shape(OpUse &u) {
  Dims y = u.dims(0);
  size_t axis = size_t(u.axis("axis", y.size()));
  for (size_t n = 1; n < u.inputs(); ++n) {
    Dims x = u.dims(n);
    if (x.size() != y.size()) u.fail(fmt::format("inputs of rank {} and {}", y.size(), x.size()));
    for (size_t k = 0; k < x.size(); ++k) {
      if (k == axis) y[k] = y[k] + x[k];
      else u.assume_equal(x[k], y[k], fmt::format("dimension {} of input {}", k, n));
    }
  }
  return {y};
}
void concat_op(Define &d) {
  Tensor y = d.out();
  size_t axis = size_t(d.axis("axis", y.rank()));
  d.compute(y, [&](const Indices &i) {
    X at = lit(d.b, int64_t{0});
    std::vector<X> begin;
    for (size_t n = 0; n < d.inputs(); ++n) begin.push_back(at), at = at + d.in(n).dims[axis];
    auto part = [&](size_t n) {
      Indices own = i;
      own[axis] = i[axis] - begin[n];
      return d.in(n)(own);
    };
    X value = part(d.inputs() - 1);
    for (size_t n = d.inputs() - 1; n-- > 0;) value = where(i[axis] < begin[n + 1], part(n), value);
    return value;
  });
}

std::vector<Dims> split_shape(OpUse &u) {
  Dims x = u.dims(0);
  size_t axis = size_t(u.axis("axis", x.size()));
  std::vector<X> sizes;
  if (u.has(1)) {
    sizes = u.need_values(1);
    X sum = u.lit(0);
    for (X s : sizes) sum = sum + s;
    u.assume_equal(x[axis], sum, "sum of the parts");
  } else {
    int64_t n = u.has_attr("num_outputs") ? u.attr_int("num_outputs") : int64_t(u.result_count());
    if (n < 1) u.fail("num_outputs must be at least 1");
    X part = ceildiv(x[axis], u.lit(n));
    for (int64_t k = 0; k + 1 < n; ++k) sizes.push_back(part);
    sizes.push_back(x[axis] - part * (n - 1));  // the last may be smaller
    int64_t last;
    if (is_const(sizes.back(), &last) && last < 0) u.fail(fmt::format("the axis does not split into {} parts", n));
  }
  std::vector<Dims> parts;
  for (X s : sizes) parts.push_back(x), parts.back()[axis] = s;
  return parts;
}
void split_op(Define &d) {
  Tensor x = d.in(0);
  size_t axis = size_t(d.axis("axis", x.rank()));
  X begin = d.lit(0);
  auto parts = split_shape(d);
  for (size_t n = 0; n < parts.size(); ++n) {
    if (d.wants(n))
      d.compute(d.out(n), [&](const Indices &i) {
        Indices at = i;
        at[axis] = i[axis] + begin;
        return x(at);
      });
    begin = begin + parts[n][axis];
  }
}

// ---- Slice

namespace {

struct SliceAxis {
  size_t axis;
  X start, size;
  int64_t step;
};

// Whether v, made of sizes of the inputs, cannot count from the end.
bool surely_forward(OpUse &u, X v) {
  Bounds known(u.b);
  for (const Type *t : u.types)
    for (const Expr *d : t ? t->dims : Exprs{}) {
      if (auto *n = as<Name>(d); n && !known.knows(n->name)) known.dim(n->name);
      else known.assume((X(u.b, d) >= 0).e);
    }
  return interval(v.e, known).lo >= 0;
}

// start and end as the specification clamps them; INT64_MAX and INT64_MIN are ends.
SliceAxis slice_axis(OpUse &u, size_t axis, X n, X start, X end, int64_t step) {
  if (step == 0) u.fail("input 4 (steps): a step of 0");
  auto place = [&](X v, X low, X high) {
    int64_t c, len;
    if (is_const(v, &c)) {
      if (c == INT64_MAX || c > INT64_MAX / 2) return high;
      if (c == INT64_MIN || c < INT64_MIN / 2) return low;
      if (c == 0 && is_const(low, &len) && len == 0) return v;
      if (c >= 0 && !is_const(n, &len)) return min(v, high);  // n is unknown, at least 0
      if (c < 0) v = n + c;
      else return is_const(high, &len) ? min(v, high) : v;
    } else if (!surely_forward(u, v)) {
      v = where(v < 0, v + n, v);
    }
    return min(max(v, low), high);
  };
  X zero = u.lit(0), one = u.lit(1);
  if (step > 0) {
    X s = place(start, zero, n), e = place(end, zero, n);
    int64_t from, to;
    X size = ceildiv(e - s, u.lit(step));
    bool grows = is_const(s, &from) && from == 0 && is_const(end, &to) && to >= 0;  // e is at least 0 then
    return {axis, s, grows ? size : max(size, zero), step};
  }
  X s = place(start, zero - one, n - 1), e = place(end, zero - one, n - 1);
  return {axis, s, max(ceildiv(s - e, u.lit(-step)), zero), step};
}

std::vector<SliceAxis> slices(OpUse &u) {
  Dims x = u.dims(0);
  auto starts = u.need_values(1), ends = u.need_values(2);
  std::vector<int64_t> axes, steps(starts.size(), 1);
  if (u.has(3)) axes = u.need_ints(3);
  else
    for (size_t k = 0; k < starts.size(); ++k) axes.push_back(int64_t(k));
  if (u.has(4)) steps = u.need_ints(4);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    u.fail("starts, ends, axes and steps differ in length");
  auto at = normal_axes(u, axes, x.size());
  std::vector<SliceAxis> list;
  for (size_t k = 0; k < at.size(); ++k) list.push_back(slice_axis(u, at[k], x[at[k]], starts[k], ends[k], steps[k]));
  return list;
}

}  // namespace

std::vector<Dims> slice_shape(OpUse &u) {
  Dims y = u.dims(0);
  for (const SliceAxis &s : slices(u)) y[s.axis] = s.size;
  return {y};
}
void slice_op(Define &d) {
  Tensor x = d.in(0);
  auto list = slices(d);
  d.compute(d.out(), [&](const Indices &i) {
    Indices at = i;
    for (const SliceAxis &s : list) at[s.axis] = s.step < 0 ? s.start - i[s.axis] * -s.step : i[s.axis] * s.step + s.start;
    return x(at);
  });
}

// ---- Expand, Tile

std::vector<Dims> expand_shape(OpUse &u) {
  Dims x = u.dims(0), want;
  for (X v : u.need_values(1)) want.push_back(v);
  return {broadcast(u, x, want)};
}
void expand_op(Define &d) {
  Tensor x = d.in(0);
  d.compute(d.out(), [&](const Indices &i) { return x.at(i); });
}

std::vector<Dims> tile_shape(OpUse &u) {
  Dims y = u.dims(0);
  auto repeats = u.need_values(1);
  if (repeats.size() != y.size()) u.fail(fmt::format("expected {} repeats, found {}", y.size(), repeats.size()));
  for (size_t k = 0; k < y.size(); ++k) y[k] = y[k] * repeats[k];
  return {y};
}
void tile_op(Define &d) {
  Tensor x = d.in(0), y = d.out();
  d.compute(y, [&](const Indices &i) {
    Indices at = i;
    for (size_t k = 0; k < i.size(); ++k)
      if (!provably_equal(x.dims[k], y.dims[k])) at[k] = i[k] % x.dims[k];
    return x(at);
  });
}

// ---- Pad: constant, reflect (without the edge), edge, wrap

namespace {
struct PadAxis {
  X before, after;
};
std::vector<PadAxis> pads_of(OpUse &u) {
  size_t rank = u.rank(0);
  std::vector<size_t> axes;
  if (u.has(3)) axes = normal_axes(u, u.need_ints(3), rank);
  else
    for (size_t k = 0; k < rank; ++k) axes.push_back(k);
  auto pads = u.need_values(1);
  if (pads.size() != 2 * axes.size()) u.fail(fmt::format("expected {} pads, found {}", 2 * axes.size(), pads.size()));
  std::vector<PadAxis> list(rank, {u.lit(0), u.lit(0)});
  for (size_t k = 0; k < axes.size(); ++k) list[axes[k]] = {pads[k], pads[axes.size() + k]};
  return list;
}
}  // namespace

std::vector<Dims> pad_shape(OpUse &u) {
  std::string mode = u.attr_str("mode");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") u.fail(fmt::format("unknown mode \"{}\"", mode));
  Dims y = u.dims(0);
  auto pads = pads_of(u);
  for (size_t k = 0; k < y.size(); ++k) y[k] = y[k] + pads[k].before + pads[k].after;
  return {y};
}
void pad_op(Define &d) {
  Tensor x = d.in(0);
  std::string mode = d.attr_str("mode");
  auto pads = pads_of(d);
  X fill = d.has(2) ? d.in(2).at({lit(d.b, int64_t{0})}) : zero(d.b, x.elem());
  d.compute(d.out(), [&](const Indices &i) {
    X inside = truth(d.b, true);
    Indices at = i;
    for (size_t k = 0; k < i.size(); ++k) {
      auto [before, after] = pads[k];
      X n = x.dims[k], p = i[k] - before, none = d.lit(0);
      int64_t b, a;
      bool front = !is_const(before, &b) || b > 0, back = !is_const(after, &a) || a > 0;
      at[k] = p;
      if (mode == "constant") {
        if (front) inside = inside && p >= 0;
        if (back) inside = inside && p < n;
      } else if (mode == "edge") {
        if (front) at[k] = max(at[k], none);
        if (back) at[k] = min(at[k], n - 1);
      } else if (mode == "wrap") {
        if (front || back) at[k] = p % n;
      } else if (front || back) {  // 0 .. n-1 .. 0: a wave of length 2n - 2; n = 1 stays at 0
        X length = max((n - 1) * 2, d.lit(1)), q = p % length;
        at[k] = min(q, length - q);
        if (is_const(n, &b) && b == 1) at[k] = none;
      }
    }
    return where(inside, x(at), fill);
  });
}

// ---- blocks of pixels and channels

static int64_t blocksize(OpUse &u) {
  int64_t s = u.attr_int("blocksize");
  if (u.rank(0) != 4) u.fail(fmt::format("expected 4 dimensions, found {}", u.rank(0)));
  if (s < 1) u.fail("blocksize must be at least 1");
  return s;
}
std::vector<Dims> depth_to_space_shape(OpUse &u) {
  int64_t s = blocksize(u), c;
  Dims x = u.dims(0);
  if (is_const(x[1], &c) && c % (s * s)) u.fail(fmt::format("{} channels do not divide by {}", c, s * s));
  return {{x[0], floordiv(x[1], s * s), x[2] * s, x[3] * s}};
}
void depth_to_space(Define &d) {
  int64_t s = blocksize(d);
  bool dcr = d.attr_str("mode") == "DCR";
  Tensor x = d.in(0), y = d.out();
  d.compute(y, [&](const Indices &i) {
    X block = i[2] % s * s + i[3] % s;
    X channel = dcr ? block * y.dims[1] + i[1] : i[1] * (s * s) + block;
    return x({i[0], channel, floordiv(i[2], s), floordiv(i[3], s)});
  });
}
std::vector<Dims> space_to_depth_shape(OpUse &u) {
  int64_t s = blocksize(u), n;
  Dims x = u.dims(0);
  for (size_t k : {2, 3})
    if (is_const(x[k], &n) && n % s) u.fail(fmt::format("dimension {} is {}, which {} does not divide", k, n, s));
  return {{x[0], x[1] * (s * s), floordiv(x[2], s), floordiv(x[3], s)}};
}
void space_to_depth(Define &d) {
  int64_t s = blocksize(d);
  bool dcr = d.attr_str("mode") == "DCR";
  Tensor x = d.in(0);
  d.compute(d.out(), [&](const Indices &i) {
    X block = dcr ? floordiv(i[1], x.dims[1]) : i[1] % (s * s);
    X channel = dcr ? i[1] % x.dims[1] : floordiv(i[1], s * s);
    return x({i[0], channel, i[2] * s + floordiv(block, s), i[3] * s + block % s});
  });
}

// ---- shapes as values, and tensors made from nothing

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
  d.compute(d.out(), [&](const Indices &) { return v->kind == Kind::Int && is_int(t) ? X(d.b, v) : lit(d.b, plain, t); });
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
  if (!is_const(delta[0], &step)) u.fail("input 2 (delta) must be a literal");
  if (step == 0) u.fail("a delta of 0");
  X span = step > 0 ? limit[0] - start[0] : start[0] - limit[0];
  return {{max(ceildiv(span, u.lit(step > 0 ? step : -step)), u.lit(0))}};
}
void range_op(Define &d) {
  Tensor start = d.in(0), delta = d.in(2), y = d.out();
  DType t = y.elem();
  d.compute(y, [&](const Indices &i) {
    X s = start.at({i[0]}), step = delta.at({i[0]});
    return X(d.b, d.b.binary(Op::Add, s.e, (cast(t, i[0]) * step).e));
  });
}

// ---- Trilu

void trilu(Define &d) {
  Tensor x = d.in(0), y = d.out();
  bool upper = d.attr_int("upper");
  X k = d.has(1) ? X{} : d.lit(0);
  if (d.has(1)) {
    if (auto v = d.values(1); v && v->size() == 1) k = (*v)[0];
    else k = cast(DType::Index, d.in(1).at({d.lit(0)}));
  }
  d.compute(y, [&](const Indices &i) {
    X diagonal = i[i.size() - 2] + k, j = i.back();
    return where(upper ? j >= diagonal : j <= diagonal, x(i), zero(d.b, x.elem()));
  });
}
std::vector<Dims> trilu_shape(OpUse &u) {
  if (u.rank(0) < 2) u.fail("expected at least 2 dimensions");
  return {u.dims(0)};
}

}  // namespace mlc
