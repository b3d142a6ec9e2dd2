// Fourier transforms, windows, mel filters. Complex numbers have a last dimension of 2.
#include <cmath>

#include "ops/rules.h"

namespace mlc {

namespace {

constexpr DType f64 = DType::F64;
X real(X n, DType t = f64) {
  int64_t c;
  return is_const(n, &c) ? lit(*n.b, double(c), t) : cast(t, n);
}

// cos and sin of 2 pi j / n for j < n.
struct Circle {
  Tensor cos, sin;
};
Circle circle(Define &d, X n, DType t) {
  auto table = [&](std::string_view f) {
    return d.make(f == "cos" ? "cosine" : "sine", t, {n}, [&](const Indices &j) {
      X angle = lit(d.b, 2 * M_PI, f64) * cast(f64, j[0]) / real(n);
      return as_type(call(f, {angle}), f64, t);
    });
  };
  return {table("cos"), table("sin")};
}

// Part c (0 real, 1 imaginary) of sum over t < terms of (re(t) + i im(t)) * exp(-+ 2 pi i k t / n); im may be none.
X transform(Define &d, const Circle &wave, X n, X terms, X k, X c, bool inverse, const std::function<X(X)> &re,
            const std::function<X(X)> &im) {
  return d.reduce("sum", {terms}, [&](const Indices &t) {
    X at = k * t[0] % n, cos = wave.cos({at}), sin = wave.sin({at}), a = re(t[0]);
    if (!inverse) sin = -sin;
    X real = a * cos, imaginary = a * sin;
    if (im) real = real - im(t[0]) * sin, imaginary = imaginary + im(t[0]) * cos;
    return where(c == 0, real, imaginary);
  });
}

}  // namespace

// ---- DFT: inputs x, dft_length, axis

namespace {
struct Dft {
  size_t axis;
  X length;                 // of the transform
  bool inverse, onesided, complex;
};
Dft dft_of(OpUse &u) {
  size_t rank = u.rank(0);
  if (rank < 2) u.fail(fmt::format("expected at least 2 dimensions, found {}", rank));
  int64_t axis = -2, last;
  if (u.has(2)) axis = u.need_int(2);
  Dft f{size_t(u.axis(axis, rank)), {}, u.attr_int("inverse") != 0, u.attr_int("onesided") != 0, false};
  if (f.axis == rank - 1) u.fail("the last dimension is that of complex numbers");
  if (!is_const(u.dim(0, rank - 1), &last) || (last != 1 && last != 2)) u.fail("the last dimension must be 1 or 2");
  f.complex = last == 2;
  X n = u.dim(0, f.axis);
  f.length = u.has(1) ? u.need_value(1) : f.inverse && f.onesided ? (n - 1) * 2 : n;
  return f;
}
}  // namespace

std::vector<Dims> dft_shape(OpUse &u) {
  Dft f = dft_of(u);
  Dims y = u.dims(0);
  y[f.axis] = f.onesided && !f.inverse ? floordiv(f.length, 2) + 1 : f.length;
  y.back() = u.lit(f.onesided && f.inverse ? 1 : 2);
  return {y};
}
void dft(Define &d) {
  Dft f = dft_of(d);
  Tensor x = d.in(0), y = d.out();
  DType t = x.elem(), wide = accumulator(t);
  Circle wave = circle(d, f.length, wide);
  bool mirrored = f.onesided && f.inverse;  // only half of the spectrum is there; the rest are conjugates
  X n = x.dims[f.axis], terms = mirrored ? f.length : min(n, f.length);
  d.compute(y, [&](const Indices &i) {
    auto part = [&](int64_t c) {
      return [&, c](X at) {
        auto value = [&](X place) {
          Indices index = i;
          index[f.axis] = place, index.back() = d.lit(c);
          return where(place < n, as_type(x(index), t, wide), zero(d.b, wide));
        };
        if (!mirrored) {
          Indices index = i;
          index[f.axis] = at, index.back() = d.lit(c);
          return as_type(x(index), t, wide);
        }
        X other = f.length - at;
        return where(at * 2 <= f.length, value(at), c ? -value(other) : value(other));
      };
    };
    X v = transform(d, wave, f.length, terms, i[f.axis], i.back(), f.inverse, part(0),
                    f.complex ? std::function<X(X)>(part(1)) : nullptr);
    if (f.inverse) v = v / real(f.length, wide);
    return as_type(v, wide, t);
  });
}

// ---- STFT: inputs signal[batch, time, 1 or 2], frame_step, window, frame_length

namespace {
struct Stft {
  X step, length;
};
Stft stft_of(OpUse &u) {
  if (u.rank(0) != 3) u.fail(fmt::format("expected a signal of rank 3, found {}", u.rank(0)));
  Stft s{u.need_value(1), {}};
  s.length = u.has(3) ? u.need_value(3) : u.has(2) ? u.dim(2, 0) : u.dim(0, 1);
  if (u.has(2)) u.assume_equal(u.dim(2, 0), s.length, "length of the window");
  int64_t step;
  if (is_const(s.step, &step) && step < 1) u.fail("frame_step must be at least 1");
  return s;
}
}  // namespace

std::vector<Dims> stft_shape(OpUse &u) {
  Stft s = stft_of(u);
  X frames = floordiv(u.dim(0, 1) - s.length, s.step) + 1;
  return {{u.dim(0, 0), frames, u.attr_int("onesided") ? floordiv(s.length, 2) + 1 : s.length, u.lit(2)}};
}
void stft(Define &d) {
  Stft s = stft_of(d);
  Tensor x = d.in(0);
  DType t = x.elem(), wide = accumulator(t);
  Circle wave = circle(d, s.length, wide);
  int64_t last;
  bool complex = is_const(x.dims[2], &last) && last == 2;
  d.compute(d.out(), [&](const Indices &i) {
    auto part = [&](int64_t c) {
      return [&, c](X at) {
        X v = as_type(x({i[0], i[1] * s.step + at, d.lit(c)}), t, wide);
        return d.has(2) ? v * as_type(d.in(2)({at}), t, wide) : v;
      };
    };
    X v = transform(d, wave, s.length, s.length, i[2], i[3], false, part(0),
                    complex ? std::function<X(X)>(part(1)) : nullptr);
    return as_type(v, wide, t);
  });
}

// ---- windows: a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n), n the size, or one less if it is symmetric

std::vector<Dims> window_shape(OpUse &u) {
  return {{u.need_value(0)}};
}
void window(Define &d) {
  double a0 = 0.5, a1 = 0.5, a2 = 0;
  if (d.op.name == "HammingWindow") a0 = 25.0 / 46, a1 = 1 - a0;
  if (d.op.name == "BlackmanWindow") a0 = 0.42, a1 = 0.5, a2 = 0.08;
  Tensor y = d.out();
  X n = d.attr_int("periodic") ? y.dims[0] : y.dims[0] - 1;
  auto number = [&](double v) { return lit(d.b, v, f64); };
  d.compute(y, [&](const Indices &i) {
    X place = cast(f64, i[0]) / real(n);
    X v = number(a0) - number(a1) * call("cos", {number(2 * M_PI) * place});
    if (a2 != 0) v = v + number(a2) * call("cos", {number(4 * M_PI) * place});
    return as_type(v, f64, y.elem());
  });
}

// ---- MelWeightMatrix: triangles between neighbouring frequencies; its five inputs are known, so are the corners

std::vector<Dims> mel_shape(OpUse &u) {
  int64_t bins = u.need_int(0), length = u.need_int(1), rate = u.need_int(2);
  constexpr int64_t kMost = 1 << 30;
  if (bins < 1 || length < 1 || rate < 1 || bins > kMost || length > kMost)
    u.fail("num_mel_bins, dft_length and sample_rate must be at least 1, and not very large");
  return {{u.lit(length / 2 + 1), u.lit(bins)}};
}
void mel(Define &d) {
  int64_t bins = d.need_int(0), length = d.need_int(1), rate = d.need_int(2);
  Tensor y = d.out();
  auto number = [&](double v) { return lit(d.b, v, f64); };
  auto to_mel = [](double hertz) { return 2595 * std::log1p(hertz / 700) / std::log(10); };
  auto edge = [&](size_t input) {
    auto v = d.need_floats(input);
    if (v.size() != 1) d.fail(d.input_name(input) + ": expected one float");
    return to_mel(v[0]);
  };
  double low = edge(3), step = (edge(4) - low) / double(bins + 2);
  Tensor corner = d.make("corner", DType::I64, {d.lit(bins + 2)}, [&](const Indices &i) {
    X mels = cast(f64, i[0]) * number(step) + number(low);
    X hertz = number(700) * call("expm1", {mels * number(std::log(10) / 2595)});
    return cast(DType::I64, call("floor", {number(double(length + 1)) * hertz / number(double(rate))}));
  });
  d.compute(y, [&](const Indices &i) {
    X at = cast(DType::I64, i[0]), left = corner({i[1]}), peak = corner({i[1] + 1}), right = corner({i[1] + 2});
    X rise = cast(f64, at - left) / cast(f64, peak - left), fall = cast(f64, right - at) / cast(f64, right - peak);
    X up =
        where(peak == left, where(at == peak, number(1), number(0)), where(at >= left && at <= peak, rise, number(0)));
    return as_type(where(at >= peak && at < right, fall, up), f64, y.elem());
  });
}

}  // namespace mlc
