// Convolutions: x[n, c, spatial..], w[m, c / group, kernel..].
#include <numeric>

#include "ops/window.h"

namespace mlc {

namespace {

struct Conv {
  Window window;
  X groups, inner, per_group;  // inner: channels of x a group; per_group: of the result
};

Conv conv_of(OpUse &u, size_t w_input) {
  Dims x = u.dims(0), w = u.dims(w_input);
  if (x.size() < 3 || w.size() != x.size())
    u.fail(fmt::format("expected two tensors of equal rank, at least 3, found {} and {}", x.size(), w.size()));
  Dims size = spatial(w);
  if (auto given = u.attr_ints("kernel_shape"); !given.empty()) {
    if (given.size() != size.size()) u.fail("attribute 'kernel_shape': one integer a spatial dimension expected");
    for (size_t k = 0; k < size.size(); ++k) u.assume_equal(size[k], u.lit(given[k]), "kernel_shape");
  }
  int64_t groups = u.attr_int("group"), m;
  if (groups < 1) u.fail("group must be at least 1");
  u.assume_equal(w[1] * groups, x[1], "channels of the input");
  if (is_const(w[0], &m) && m % groups)
    u.fail(fmt::format("{} channels of the result do not divide into {} groups", m, groups));
  return {Window(u, spatial(x), size, false), u.lit(groups), w[1], floordiv(w[0], groups)};
}

// The sum over channels and kernel of f(index of x, index of w), x being padded already.
template <class F> X window_sum(Define &d, const Conv &c, const Indices &i, const F &f) {
  Dims over{c.inner};
  over.insert(over.end(), c.window.size.begin(), c.window.size.end());
  return d.reduce("sum", over, [&](const Indices &r) {
    Indices ix{i[0], floordiv(i[1], c.per_group) * c.inner + r[0]}, iw{i[1], r[0]};
    if (int64_t g; is_const(c.groups, &g) && g == 1) ix[1] = r[0];
    for (size_t k = 0; k < c.window.in.size(); ++k) {
      ix.push_back(i[2 + k] * c.window.stride[k] + r[1 + k] * c.window.dilation[k]);
      iw.push_back(r[1 + k]);
    }
    return f(ix, iw);
  });
}

std::vector<Dims> shape_of(OpUse &u, size_t w_input) {
  Conv c = conv_of(u, w_input);
  Dims y{u.dim(0, 0), u.dim(w_input, 0)};
  y.insert(y.end(), c.window.out.begin(), c.window.out.end());
  return {y};
}

}  // namespace

std::vector<Dims> conv_shape(OpUse &u) {
  auto y = shape_of(u, 1);
  if (u.has(2)) {
    if (u.rank(2) != 1) u.fail("input 2 (b): expected a vector");
    u.assume_equal(u.dim(2, 0), y[0][1], "length of the bias");
  }
  return y;
}
void conv(Define &d) {
  Tensor w = d.in(1), y = d.out();
  DType t = y.elem(), wide = accumulator(t);
  Conv c = conv_of(d, 1);
  Tensor x = padded(d, d.in(0), c.window, zero(d.b, t));
  d.compute(y, [&](const Indices &i) {
    X v = window_sum(
        d, c, i, [&](const Indices &p, const Indices &q) { return as_type(x(p), t, wide) * as_type(w(q), t, wide); });
    if (d.has(2)) v = v + as_type(d.in(2)({i[1]}), t, wide);
    return as_type(v, wide, t);
  });
}

// (x - zx) * (w - zw) in i32; padding is zx, so that it adds nothing.
std::vector<Dims> conv_integer_shape(OpUse &u) { return shape_of(u, 1); }
void conv_integer(Define &d) {
  constexpr DType i32 = DType::I32;
  Tensor w = d.in(1);
  Conv c = conv_of(d, 1);
  X zx = d.has(2) ? d.in(2)({}) : zero(d.b, d.elem(0));
  Tensor x = padded(d, d.in(0), c.window, zx);
  d.compute(d.out(), [&](const Indices &i) {
    return window_sum(d, c, i, [&](const Indices &p, const Indices &q) {
      X u = cast(i32, x(p)), v = cast(i32, w(q));
      if (d.has(2)) u = u - cast(i32, zx);
      if (d.has(3)) v = v - cast(i32, d.in(3).at({i[1]}));
      return u * v;
    });
  });
}

// inputs: x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, b (i32, scale x_scale * w_scale)
std::vector<Dims> qlinear_conv_shape(OpUse &u) { return shape_of(u, 3); }
void qlinear_conv(Define &d) {
  constexpr DType i32 = DType::I32, f32 = DType::F32;
  Tensor w = d.in(3), y = d.out();
  Conv c = conv_of(d, 3);
  X zx = d.in(2).at({lit(d.b, int64_t{0})});
  Tensor x = padded(d, d.in(0), c.window, zx);
  Tensor acc = d.make("acc", i32, y.dims, [&](const Indices &i) {
    X v = window_sum(d, c, i, [&](const Indices &p, const Indices &q) {
      return (cast(i32, x(p)) - cast(i32, zx)) * (cast(i32, w(q)) - cast(i32, d.in(5).at({i[1]})));
    });
    return d.has(8) ? v + d.in(8)({i[1]}) : v;
  });
  d.compute(y, [&](const Indices &i) {
    auto scale = [&](size_t k) { return as_type(d.in(k).at({i[1]}), d.elem(k), f32); };
    return quantized(cast(f32, acc(i)) * (scale(1) * scale(4) / scale(6)), d.in(7).at({i[1]}), y.elem());
  });
}

// ---- ConvTranspose: w[c, m / group, kernel..]. The result at o gathers x at (o + before - t * dilation) / stride
// where that is whole and inside.

namespace {

struct Transposed {
  Dims size, before, out;
  std::vector<int64_t> stride, dilation;
  int64_t groups;
};

Transposed transposed_of(OpUse &u) {
  Dims x = u.dims(0), w = u.dims(1);
  if (x.size() < 3 || w.size() != x.size()) u.fail("expected two tensors of equal rank, at least 3");
  size_t n = x.size() - 2;
  Transposed c{spatial(w), {}, {}, per_axis(u, "strides", n, 1), per_axis(u, "dilations", n, 1), u.attr_int("group")};
  if (c.groups < 1) u.fail("group must be at least 1");
  for (size_t k = 0; k < n; ++k)
    if (c.stride[k] < 1 || c.dilation[k] < 1) u.fail("strides and dilations must be at least 1");
  u.assume_equal(w[0], x[1], "channels of the input");
  auto pads = per_axis(u, "pads", 2 * n, 0), extra = per_axis(u, "output_padding", n, 0);
  auto shape = u.attr_ints("output_shape");
  if (!shape.empty() && shape.size() == n + 2) shape.erase(shape.begin(), shape.begin() + 2);
  if (!shape.empty() && shape.size() != n) u.fail("attribute 'output_shape': one integer a spatial dimension expected");
  std::string mode = u.attr_str("auto_pad");
  bool same = mode.starts_with("SAME");
  for (size_t k = 0; k < n; ++k) {
    X whole = (x[2 + k] - 1) * c.stride[k] + extra[k] + ((c.size[k] - 1) * c.dilation[k] + 1);
    if (same || !shape.empty()) {
      X o = shape.empty() ? x[2 + k] * c.stride[k] : u.lit(shape[k]);
      X total = max(whole - o, u.lit(0)), half = floordiv(total, 2);
      c.before.push_back(mode == "SAME_UPPER" ? half : total - half);
      c.out.push_back(o);
    } else {
      bool given = mode == "NOTSET";
      c.before.push_back(u.lit(given ? pads[k] : 0));
      c.out.push_back(given ? whole - pads[k] - pads[n + k] : whole);
    }
  }
  return c;
}

}  // namespace

std::vector<Dims> conv_transpose_shape(OpUse &u) {
  Transposed c = transposed_of(u);
  Dims y{u.dim(0, 0), u.dim(1, 1) * c.groups};
  y.insert(y.end(), c.out.begin(), c.out.end());
  return {y};
}

namespace {

// The inverse of a modulo m, which have no common divisor.
int64_t inverse(int64_t a, int64_t m) {
  int64_t i = 0;
  while (i < m && a % m * i % m != 1 % m) ++i;
  return i;
}

// One axis: o + before = stride * (h + skip) + f, so that all taps t of a phase f step by `step`:
// t = step * u + first(f) hits x[h + skip - u * back - late(f)], and no t does where f is no multiple of `common`.
//   stride 2, dilation 1: t = 2 * u + f, x[h - u]
struct Phases {
  int64_t stride, dilation, common, step, back, inv;
  X size, rest, skip, turns, taps, margin;  // o + rest = stride * h + f; turns of h, of u; least subscript: -margin
  Phases(const Transposed &c, size_t k)
      : stride(c.stride[k]), dilation(c.dilation[k]), common(std::gcd(stride, dilation)), step(stride / common),
        back(dilation / common), inv(inverse(back, step)), size(c.size[k]), rest(c.before[k] % lit(stride)),
        skip(floordiv(c.before[k], stride)), turns(ceildiv(c.out[k] + rest, lit(stride))), taps(ceildiv(size, lit(step))),
        margin((taps - 1) * back + (step - 1) * dilation / stride) {}
  X lit(int64_t v) const { return mlc::lit(*size.b, v); }
  X first(X f) const { return (inv == 1 ? floordiv(f, common) : floordiv(f, common) * inv % step); }
  X late(X f) const { return dilation == 1 ? lit(0) : floordiv(first(f) * dilation - f, stride); }
  X hits(X f, X u) const {
    int64_t n;
    X all = is_const(size, &n) && n % step == 0 ? truth(*size.b, true) : first(f) + u * step < size;
    return common == 1 ? all : all && f % common == 0;
  }
};

}  // namespace

// A sum for each phase, which is a convolution without holes; the result takes them in turn.
//   y[o] = phase[o % 2, o // 2], phase[f, h] = sum(where(2 * u + f < size, padded[h + taps - 1 - u] * w[2 * u + f], 0.0))
void conv_transpose(Define &d) {
  Transposed c = transposed_of(d);
  Tensor x = d.in(0), w = d.in(1), y = d.out();
  DType t = y.elem(), wide = accumulator(t);
  X inner = floordiv(x.dims[1], c.groups), per_group = w.dims[1];
  size_t n = c.size.size();
  std::vector<Phases> axes;
  for (size_t k = 0; k < n; ++k) axes.emplace_back(c, k);
  Dims wide_x(x.dims.begin(), x.dims.begin() + 2), over{inner}, parts(y.dims.begin(), y.dims.begin() + 2);
  bool whole = true, one = true;  // nothing to pad; one phase
  for (const Phases &a : axes) {
    wide_x.push_back(a.turns + a.margin), over.push_back(a.taps), parts.push_back(d.lit(a.stride)), one &= a.stride == 1;
    whole &= provably_equal(a.turns + a.margin, x.dims[wide_x.size() - 1]) && provably_equal(a.skip, a.margin);
  }
  for (const Phases &a : axes) parts.push_back(a.turns);
  Tensor padded = whole ? x : d.make("padded", t, wide_x, [&](const Indices &i) {
    X inside = truth(d.b, true);
    Indices at(i.begin(), i.begin() + 2);
    for (size_t k = 0; k < n; ++k) {
      X p = i[2 + k] + (axes[k].skip - axes[k].margin);
      inside = inside && p >= 0 && p < x.dims[2 + k], at.push_back(p);
    }
    return where(inside, x(at), zero(d.b, t));
  });
  // i: batch, channel, phases.., turns..
  auto sum = [&](const Indices &i) {
    return d.reduce("sum", over, [&](const Indices &r) {
      X channel = c.groups == 1 ? r[0] : floordiv(i[1], per_group) * inner + r[0];
      Indices ix{i[0], channel}, iw{channel, c.groups == 1 ? i[1] : i[1] % per_group};
      X hits = truth(d.b, true);
      for (size_t k = 0; k < n; ++k) {
        X f = i[2 + k], u = r[1 + k];
        hits = hits && axes[k].hits(f, u);
        ix.push_back(i[2 + n + k] + axes[k].margin - u * axes[k].back - axes[k].late(f));
        iw.push_back(axes[k].first(f) + u * axes[k].step);
      }
      return where(hits, as_type(padded(ix), t, wide) * as_type(w(iw), t, wide), zero(d.b, wide));
    });
  };
  Tensor phases = one ? Tensor{} : d.make("phases", wide, parts, sum);
  d.compute(y, [&](const Indices &i) {
    Indices at(i.begin(), i.begin() + 2);
    for (size_t k = 0; k < n; ++k) at.push_back(one ? d.lit(0) : (i[2 + k] + axes[k].rest) % axes[k].stride);
    for (size_t k = 0; k < n; ++k) at.push_back(floordiv(i[2 + k] + axes[k].rest, axes[k].stride));
    X v = one ? sum(at) : phases(at);
    if (d.has(2)) v = v + as_type(d.in(2)({i[1]}), t, wide);
    return as_type(v, wide, t);
  });
}

}  // namespace mlc
