// Resize, GridSample: interpolation at computed coordinates. Resizing is separable: one axis after the other, with a
// table of the first tap and the weights of each output.
#include <algorithm>
#include <cmath>

#include "ops/rules.h"

namespace mlc {

namespace {

constexpr DType f64 = DType::F64;

X number(Build &b, double v, DType t = f64) { return lit(b, v, t); }
X real(X n, DType t = f64) {
  int64_t c;
  return is_const(n, &c) ? lit(*n.b, double(c), t) : cast(t, n);
}
X floor_of(X v) { return call("floor", {v}); }
X clamped(X index, X n) { return min(max(index, lit(*n.b, int64_t{0})), n - 1); }

// Weights by distance: a triangle, and Keys' cubic with parameter a.
X triangle(X d, DType t) { return max(number(*d.b, 1, t) - call("abs", {d}), number(*d.b, 0, t)); }
X keys(X d, double a, DType t) {
  Build &b = *d.b;
  auto c = [&](double v) { return number(b, v, t); };
  X x = call("abs", {d});
  X near = (c(a + 2) * x - c(a + 3)) * x * x + c(1);
  X far = ((c(a) * x - c(5 * a)) * x + c(8 * a)) * x - c(4 * a);
  return where(x <= c(1), near, where(x < c(2), far, c(0)));
}

// ---- Resize: inputs x, roi, scales, sizes

struct ResizeAxis {
  size_t axis;
  X in, out;
  X scale;                      // f64
  std::optional<double> fixed;  // its value, if it is a literal
  size_t roi;                   // place of its start in roi; its end is `roi + span`
};
struct Resizing {
  std::vector<ResizeAxis> axes;
  size_t span;
};

// floor(n * s); exact for whole factors and divisors of symbols.
X scaled(const OpUse &u, X n, double s) {
  int64_t c;
  if (is_const(n, &c)) return u.lit(whole(u, std::floor(double(c) * s)));
  if (s >= 1 && s == std::floor(s)) return n * whole(u, s);
  double part = 1 / s;
  if (s > 0 && part == std::floor(part) && s * part == 1) return floordiv(n, whole(u, part));
  return cast(DType::Index, floor_of(cast(f64, n) * number(*n.b, s)));
}

Resizing resizing_of(OpUse &u) {
  Dims x = u.dims(0);
  std::vector<int64_t> named = u.attr_ints("axes");
  if (named.empty())
    for (size_t k = 0; k < x.size(); ++k) named.push_back(int64_t(k));
  auto axes = normal_axes(u, named, x.size());
  Resizing r{{}, axes.size()};
  if (u.has(2) == u.has(3)) u.fail("expected either scales or sizes");
  std::vector<double> scales;
  std::vector<X> sizes;
  if (u.has(2))
    for (double s : u.need_floats(2)) scales.push_back(double(float(s)));
  else
    sizes = u.need_values(3);
  if ((u.has(2) ? scales.size() : sizes.size()) != axes.size())
    u.fail(fmt::format("expected {} scales or sizes", axes.size()));
  std::string policy = u.attr_str("keep_aspect_ratio_policy");
  if (policy != "stretch" && !sizes.empty()) {  // one scale for all axes: the smallest or largest
    int64_t n, m;
    double best = 0;
    for (size_t k = 0; k < axes.size(); ++k) {
      if (!is_const(x[axes[k]], &n) || !is_const(sizes[k], &m) || n == 0)
        u.lack("keep_aspect_ratio_policy: the sizes must be known when compiling");
      double s = double(m) / double(n);
      best = k == 0 ? s : policy == "not_larger" ? std::min(best, s) : std::max(best, s);
    }
    scales.assign(axes.size(), best);
    for (size_t k = 0; k < axes.size(); ++k)
      is_const(x[axes[k]], &n), sizes[k] = u.lit(whole(u, best * double(n) + 0.5));
  }
  for (size_t k = 0; k < axes.size(); ++k) {
    X n = x[axes[k]];
    ResizeAxis a{axes[k], n, {}, {}, {}, k};
    int64_t c, m;
    a.out = sizes.empty() ? scaled(u, n, scales[k]) : sizes[k];
    if (!scales.empty()) a.fixed = scales[k];
    else if (is_const(n, &c) && is_const(a.out, &m) && c) a.fixed = double(m) / double(c);
    if (a.fixed && !(*a.fixed > 0) && !(is_const(a.out, &m) && m == 0)) u.fail("scales must be positive");
    a.scale = a.fixed ? number(u.b, *a.fixed) : real(a.out) / real(n);
    r.axes.push_back(a);
  }
  return r;
}

// The place in the input of output o.
X coordinate(Define &d, const Resizing &r, const ResizeAxis &a, X o) {
  Build &b = d.b;
  std::string mode = d.attr_str("coordinate_transformation_mode");
  X y = cast(f64, o), n = real(a.in), half = number(b, 0.5), one = number(b, 1), width = a.scale * n;
  int64_t c;
  if (a.fixed && is_const(a.in, &c)) width = number(b, *a.fixed * double(c));
  auto unless_one = [&](X single, X otherwise) {  // a width of 1
    if (auto *f = as<Float>(width.e)) return f->value == 1 ? single : otherwise;
    return where(width == one, single, otherwise);
  };
  X centre = (y + half) / a.scale - half;
  if (mode == "half_pixel") return centre;
  if (mode == "asymmetric") return y / a.scale;
  if (mode == "pytorch_half_pixel") return unless_one(-half, centre);
  if (mode == "align_corners") return unless_one(number(b, 0), y * (n - one) / (width - one));
  if (mode == "half_pixel_symmetric") return n / number(b, 2) * (one - real(a.out) / width) + centre;
  if (mode != "tf_crop_and_resize") d.fail(fmt::format("unknown coordinate_transformation_mode \"{}\"", mode));
  Tensor roi = d.in(1);
  auto corner = [&](size_t k) { return as_type(roi({d.lit(int64_t(k))}), roi.elem(), f64); };
  X first = corner(a.roi), length = corner(a.roi + r.span) - first, last = n - one;
  return unless_one(length * last / number(b, 2), y * length * last / (width - one)) + first * last;
}

bool is_identity(const Define &d, const ResizeAxis &a) {
  return provably_equal(a.in, a.out) && a.fixed.value_or(1) == 1 &&
         d.attr_str("coordinate_transformation_mode") != "tf_crop_and_resize";
}

void resize_nearest(Define &d, const Resizing &r) {
  Tensor x = d.in(0), y = d.out();
  std::string round = d.attr_str("nearest_mode");
  bool crops = d.attr_str("coordinate_transformation_mode") == "tf_crop_and_resize";
  d.compute(y, [&](const Indices &i) {
    Indices at = i;
    X inside = truth(d.b, true);
    for (const ResizeAxis &a : r.axes) {
      if (is_identity(d, a)) continue;
      X c = coordinate(d, r, a, i[a.axis]), half = number(d.b, 0.5), place;
      if (round == "round_prefer_floor") place = call("ceil", {c - half});
      else if (round == "round_prefer_ceil") place = floor_of(c + half);
      else if (round == "floor" || round == "ceil") place = call(round, {c});
      else d.fail(fmt::format("unknown nearest_mode \"{}\"", round));
      if (crops) inside = inside && c >= number(d.b, 0) && c <= real(a.in) - number(d.b, 1);
      at[a.axis] = clamped(cast(DType::Index, place), a.in);
    }
    return where(inside, x(at), lit(d.b, d.attr_float("extrapolation_value"), x.elem()));
  });
}

}  // namespace

std::vector<Dims> resize_shape(OpUse &u) {
  Dims y = u.dims(0);
  for (const ResizeAxis &a : resizing_of(u).axes) y[a.axis] = a.out;
  return {y};
}

void resize(Define &d) {
  Resizing r = resizing_of(d);
  std::string mode = d.attr_str("mode");
  if (mode == "nearest") return resize_nearest(d, r);
  if (mode != "linear" && mode != "cubic") d.fail(fmt::format("unknown mode \"{}\"", mode));
  std::erase_if(r.axes, [&](const ResizeAxis &a) { return is_identity(d, a); });
  bool cubic = mode == "cubic", antialias = d.attr_int("antialias"), exclude = d.attr_int("exclude_outside");
  bool crops = d.attr_str("coordinate_transformation_mode") == "tf_crop_and_resize";
  double cubic_a = d.attr_float("cubic_coeff_a");
  Tensor x = d.in(0), y = d.out();
  DType t = x.elem(), wide = t == f64 ? f64 : DType::F32;
  auto rounded = [&](X v) { return is_int(t) ? cast(t, call("round_even", {v})) : as_type(v, wide, t); };
  if (r.axes.empty()) return d.compute(y, [&](const Indices &i) { return x(i); });
  Tensor now = x;
  for (const ResizeAxis &a : r.axes) {
    // Taps first + k, k < taps, weighted by their distance from the coordinate; when shrinking, the filter is
    // stretched.
    double stretch = 1;
    if (antialias) {
      if (!a.fixed) d.lack("antialias needs a scale that is known when compiling");
      stretch = std::min(*a.fixed, 1.0);
    }
    double reach = std::floor((cubic ? -2 : -1) / stretch) + 1;
    if (!(reach > -1e9)) d.fail("the scale is too small");
    X taps = d.lit(2 - 2 * int64_t(reach));
    auto place = [&](X o) { return coordinate(d, r, a, o); };
    Tensor first = d.make("first", DType::I64, {a.out}, [&](const Indices &o) {
      return cast(DType::I64, floor_of(place(o[0])) + number(d.b, reach));
    });
    auto tap = [&](X o, X k) { return cast(DType::Index, first({o})) + k; };
    auto plain = [&](X o, X k) {
      X distance = cast(f64, first({o})) + cast(f64, k) - place(o);
      if (stretch != 1) distance = distance * number(d.b, stretch);
      X w = cubic ? keys(distance, cubic_a, f64) : triangle(distance, f64);
      return exclude ? where(tap(o, k) >= 0 && tap(o, k) < a.in, w, number(d.b, 0)) : w;
    };
    Tensor weight = d.make("weight", f64, {a.out, taps}, [&](const Indices &i) { return plain(i[0], i[1]); });
    Tensor total;
    if (antialias || exclude)
      total = d.make("total", f64, {a.out}, [&](const Indices &o) {
        return d.reduce("sum", {taps}, [&](const Indices &k) { return weight({o[0], k[0]}); });
      });
    bool final = &a == &r.axes.back();
    Dims dims = now.dims;
    dims[a.axis] = a.out;
    auto value = [&](const Indices &i) {
      X o = i[a.axis];
      X sum = d.reduce("sum", {taps}, [&](const Indices &k) {
        Indices at = i;
        at[a.axis] = clamped(tap(o, k[0]), a.in);
        X w = weight({o, k[0]});
        if (total.b) w = where(total({o}) == number(d.b, 0), number(d.b, 0), w / total({o}));
        return as_type(now(at), now.elem(), wide) * as_type(w, f64, wide);
      });
      if (crops) {
        X p = place(o);
        sum = where(p >= number(d.b, 0) && p <= real(a.in) - number(d.b, 1), sum,
                    lit(d.b, d.attr_float("extrapolation_value"), wide));
      }
      return final ? rounded(sum) : sum;
    };
    if (final) d.compute(y, value);
    else now = d.make("part", wide, dims, value);
  }
}

// ---- GridSample: x[n, c, d..] at grid[n, o.., k], coordinates in -1 .. 1, the last spatial dimension first

std::vector<Dims> grid_sample_shape(OpUse &u) {
  Dims x = u.dims(0), grid = u.dims(1);
  if (x.size() < 3 || grid.size() != x.size()) u.fail(fmt::format("inputs of rank {} and {}", x.size(), grid.size()));
  u.assume_equal(grid.back(), u.lit(int64_t(x.size()) - 2), "last dimension of the grid");
  u.assume_equal(grid[0], x[0], "dimension 0 of the inputs");
  Dims y{x[0], x[1]};
  y.insert(y.end(), grid.begin() + 1, grid.end() - 1);
  return {y};
}

void grid_sample(Define &d) {
  Tensor x = d.in(0), grid = d.in(1), y = d.out();
  std::string mode = d.attr_str("mode"), padding = d.attr_str("padding_mode");
  bool corners = d.attr_int("align_corners"), nearest = mode == "nearest", cubic = mode == "cubic";
  if (!nearest && !cubic && mode != "linear") d.fail(fmt::format("unknown mode \"{}\"", mode));
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    d.fail(fmt::format("unknown padding_mode \"{}\"", padding));
  DType t = x.elem(), g = grid.elem(), wide = t == f64 || g == f64 ? f64 : DType::F32;
  size_t rank = x.rank() - 2;
  auto c = [&](double v) { return number(d.b, v, wide); };
  auto size = [&](size_t k) { return x.dims[2 + k]; };
  auto pick = [&](X axis, const std::function<X(size_t)> &f) {  // f of an axis that is an index
    X v = f(rank - 1);
    for (size_t k = rank - 1; k-- > 0;)
      if (X w = f(k); !equal(v.e, w.e)) v = where(axis == int64_t(k), w, v);
    return v;
  };
  // Coordinates in cells, brought inside for border and reflection; for zeros only so far that indices stay small.
  Dims dims(grid.dims.begin(), grid.dims.end() - 1);
  dims.push_back(d.lit(int64_t(rank)));
  Tensor place = d.make("place", wide, dims, [&](const Indices &i) {
    X n = pick(i.back(), [&](size_t k) { return real(size(k), wide); });
    X last = pick(i.back(), [&](size_t k) { return real(size(k) - 1, wide); });
    Indices at(i.begin(), i.end() - 1);
    at.push_back(d.lit(int64_t(rank) - 1) - i.back());
    X v = as_type(grid(at), g, wide);
    v = corners ? (v + c(1)) / c(2) * last : ((v + c(1)) * n - c(1)) / c(2);
    if (nearest) v = call("round_even", {v});
    if (padding == "zeros") return call("clamp", {v, c(-4), n + c(4)});
    if (padding == "border") return call("clamp", {v, c(0), last});
    X low = corners ? c(0) : c(-0.5), range = corners ? last : n;
    X wave = call("fmod", {call("abs", {v - low}), range * c(2)});
    wave = where(wave > range, range * c(2) - wave, wave);
    X flat = pick(i.back(), [&](size_t k) { return corners ? size(k) <= 1 : truth(d.b, false); });
    return where(flat, c(0), low + wave);
  });
  auto at_axis = [&](const Indices &i, size_t k) {
    Indices at{i[0]};
    at.insert(at.end(), i.begin() + 2, i.end());
    at.push_back(d.lit(int64_t(k)));
    return place(at);
  };
  auto cell = [&](const Indices &i, const Indices &at) {  // x at a cell that may lie outside
    Indices index{i[0], i[1]};
    X inside = truth(d.b, true);
    for (size_t k = 0; k < rank; ++k) {
      X p = at[k], n = size(k);
      if (padding == "zeros") {
        inside = inside && p >= 0 && p < n;
      } else if (padding == "border") {
        p = clamped(p, n);
      } else {
        X period = corners ? max(n * 2 - 2, d.lit(1)) : n * 2, m = p % period;
        p = clamped(min(m, (corners ? period : period - 1) - m), n);
      }
      index.push_back(p);
    }
    return where(inside, as_type(x(index), t, wide), c(0));
  };
  Dims taps(nearest ? 0 : rank, d.lit(cubic ? 4 : 2));
  d.compute(y, [&](const Indices &i) {
    X v = d.reduce("sum", taps, [&](const Indices &r) {
      Indices at;
      X weight;
      for (size_t k = 0; k < rank; ++k) {
        X p = at_axis(i, k), base = floor_of(p);
        at.push_back(cast(DType::Index, base));
        if (nearest) continue;
        at[k] = at[k] + r[k] - (cubic ? 1 : 0);
        X distance = base + cast(wide, r[k]) - (cubic ? p + c(1) : p);
        X w = cubic ? keys(distance, -0.75, wide) : triangle(distance, wide);
        weight = k ? weight * w : w;
      }
      return nearest ? cell(i, at) : weight * cell(i, at);
    });
    return as_type(v, wide, t);
  });
}

}  // namespace mlc
