// Operators that take parts of a tensor, repeat it, put something around it or exchange blocks of it.
#include <algorithm>

#include "arith/bounds.h"
#include "ops/rules.h"

namespace mlc {

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
  step = std::max(step, -INT64_MAX);
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
    for (const SliceAxis &s : list)
      at[s.axis] = s.step < 0 ? s.start - i[s.axis] * -s.step : i[s.axis] * s.step + s.start;
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
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    u.fail(fmt::format("unknown mode \"{}\"", mode));
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
        at[k] = min(min(q, length - q), n - 1);
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
  if (s < 1 || s > 1 << 20) u.fail(fmt::format("a blocksize of {}", s));
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
