// Fourier transforms, windows, mel filters. Complex numbers have a last dimension of 2.
#include <cmath>

#include "ops/rules.h"

namespace mlc {

namespace {

using Body = Define::Body;
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

struct Complex {
  X re, im;  // im: none for 0
};
X plus(X a, X b) { return a.e && b.e ? a + b : a.e ? a : b; }
X minus(X a, X b) { return a.e && b.e ? a - b : a.e ? a : b.e ? -b : b; }
Complex operator+(Complex a, Complex b) { return {plus(a.re, b.re), plus(a.im, b.im)}; }
Complex operator-(Complex a, Complex b) { return {minus(a.re, b.re), minus(a.im, b.im)}; }
Complex operator*(Complex a, X b) { return {a.re * b, a.im ? a.im * b : X{}}; }
Complex operator*(Complex a, Complex b) {
  return {minus(a.re * b.re, a.im ? a.im * b.im : X{}), plus(a.re * b.im, a.im ? a.im * b.re : X{})};
}
Complex times_i(Complex a) { return {a.im ? -a.im : X{}, a.re}; }

// Fast Fourier transforms of static lengths, by decimation in frequency (Gentleman and Sande 1966) with the indices of
// Stockham's: a pass of radix p takes a[k in l, j in m] to b[k in l * p, j in m / p],
//   b[k + l r, j] = w(m)^(j r) * sum(w(p)^(q r) * a[k, j + q m / p] for q in p),  w(m) = exp(-+ 2 pi i / m)
// from x = a[1, n] to its transform a[n, 1]. A length of which nothing is known is one pass of radix n.
class Transform {
 public:
  using Source = std::function<Complex(const Indices &row, X at)>;
  struct Result {
    Tensor re, im;  // [rows.., n, 1]
    // Part c (0 real, 1 imaginary) of number k. That of real numbers is symmetric, y[n - k] = conj(y[k]), to the last bit.
    X part(const Indices &row, X k, X c, X n, bool of_complex, bool half) const {
      auto at = [&](const Tensor &t, X k) { return t(concat(row, {k, lit(*k.b, 0)})); };
      if (of_complex) return where(c == 0, at(re, k), at(im, k));
      X odd = where(k * 2 % n == 0, zero(*k.b, im.elem()), at(im, k));
      if (half) return where(c == 0, at(re, k), odd);
      return where(c == 0, at(re, where(k * 2 <= n, k, n - k)), where(k * 2 <= n, odd, -at(im, n - k)));
    }
  };
  Transform(Define &d, const Dims &rows, X n, bool inverse, DType t) : d_(d), rows_(rows), n_(n), inverse_(inverse), t_(t) {}

  Result operator()(const Source &x) {
    Source a = [&](const Indices &i, X at) { return x(slice(i, 0, i.size() - 1), at); };
    X l = d_.lit(1), m = n_;
    Result y;
    for (X p : radices()) {
      X rest = floordiv(m, p);
      if (int64_t one; !is_const(rest, &one) || one != 1 || !small(p)) need_circle();
      Dims dims = concat(rows_, {l * p, rest});
      y = {d_.temp(t_, dims, "re"), d_.temp(t_, dims, "im")};
      if (small(p)) butterflies(a, y, p, l, m);
      else sums(a, y, p, l, m);
      a = [y](const Indices &i, X at) { return Complex{y.re(concat(i, {at})), y.im(concat(i, {at}))}; };
      l = l * p, m = rest;
    }
    return y;
  }

 private:
  // 4 as often as it goes, then 2, then the odd primes; a length that no memory holds is not taken apart.
  Dims radices() const {
    int64_t n;
    if (!is_const(n_, &n) || n < 2 || n > int64_t{1} << 40) return {n_};
    Dims p;
    for (int64_t f = 4; n > 1;) {
      if (n % f == 0) p.push_back(d_.lit(f)), n /= f;
      else f = f == 4 ? 2 : f == 2 ? 3 : f * f > n ? n : f + 2;
    }
    return p;
  }
  static bool small(X p) {
    int64_t v;
    return is_const(p, &v) && v <= 7;
  }
  void need_circle() {
    if (!wave_.cos.b) wave_ = circle(d_, n_, t_);
  }
  Complex root(X at) const { return {wave_.cos({at}), inverse_ ? wave_.sin({at}) : -wave_.sin({at})}; }

  // A pass of few terms, written out.
  void butterflies(const Source &a, const Result &y, X radix, X l, X m) {
    X rest = floordiv(m, radix);
    int64_t p, last;
    is_const(radix, &p);
    bool turned = !is_const(rest, &last) || last != 1;
    d_.block("pass", concat(rows_, {l, rest}), "", [&](Body &body, const Indices &i) {
      auto let = [&](Complex v) {
        return Complex{body.let("re", t_, v.re ? v.re : zero(d_.b, t_)), v.im ? body.let("im", t_, v.im) : X{}};
      };
      std::vector<Complex> v;
      for (int64_t q = 0; q < p; q++) v.push_back(let(a(slice(i, 0, i.size() - 1), i.back() + rest * q)));
      v = sums_of(v, let);
      for (int64_t r = 0; r < p; r++) {
        if (turned && r) v[size_t(r)] = let(v[size_t(r)]) * let(root(i.back() * l * r));
        Indices at = concat(slice(i, 0, rows_.size()), {i[rows_.size()] + l * r, i.back()});
        body.store(y.re, at, v[size_t(r)].re);
        body.store(y.im, at, v[size_t(r)].im ? v[size_t(r)].im : zero(d_.b, t_));
      }
    });
  }

  // The transform of p numbers. For odd p the terms q and p - q share their cosines and sines.
  template <class Let> std::vector<Complex> sums_of(const std::vector<Complex> &v, const Let &let) const {
    size_t p = v.size();
    auto turn = [&](Complex a) { return inverse_ ? times_i(a) : Complex{} - times_i(a); };
    if (p == 2) return {v[0] + v[1], v[0] - v[1]};
    if (p == 4) {
      Complex s = let(v[0] + v[2]), t = let(v[1] + v[3]), u = let(v[0] - v[2]), w = let(turn(v[1] - v[3]));
      return {s + t, u + w, s - t, u - w};
    }
    std::vector<Complex> both{{}}, apart{{}}, out(p, v[0]);
    for (size_t q = 1; q <= p / 2; q++) {
      both.push_back(let(v[q] + v[p - q])), apart.push_back(let(v[q] - v[p - q]));
      out[0] = out[0] + both[q];
    }
    for (size_t r = 1; r <= p / 2; r++) {
      Complex even = v[0], odd;
      for (size_t q = 1; q <= p / 2; q++) {
        double angle = 2 * M_PI * double(q * r % p) / double(p);
        even = even + both[q] * lit(d_.b, std::cos(angle), t_);
        odd = odd + apart[q] * lit(d_.b, std::sin(angle), t_);
      }
      even = let(even), odd = let(turn(odd));
      out[r] = even + odd, out[p - r] = even - odd;
    }
    return out;
  }

  // A pass of many terms: b[k, j] = sum(w(n)^(l r (j + q m / p)) * a[k % l, j + q m / p] for q in p), r = k // l.
  void sums(const Source &a, const Result &y, X p, X l, X m) {
    X rest = floordiv(m, p);
    for (bool imaginary : {false, true})
      d_.compute(imaginary ? y.im : y.re, [&](const Indices &i) {
        Indices row = concat(slice(i, 0, rows_.size()), {i[rows_.size()] % l});
        return d_.reduce("sum", {p}, [&](const Indices &q) {
          X at = i.back() + q[0] * rest;
          Complex v = a(row, at) * root(floordiv(i[rows_.size()], l) * at % m * l);
          return imaginary ? v.im : v.re;
        });
      });
  }

  Define &d_;
  Dims rows_;
  X n_;
  bool inverse_;
  DType t_;
  Circle wave_;
};

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
  bool mirrored = f.onesided && f.inverse;  // only half of the spectrum is there; the rest are conjugates
  X n = x.dims[f.axis];
  Dims rows = slice(x.dims, 0, x.rank() - 1);
  rows.erase(rows.begin() + int64_t(f.axis));
  auto part = [&](const Indices &row, X at, int64_t c) {
    Indices index = concat(row, {d.lit(c)});
    index.insert(index.begin() + int64_t(f.axis), at);
    X v = as_type(x(index), t, wide);
    return mirrored || provably_equal(n, f.length) ? v : where(at < n, v, zero(d.b, wide));
  };
  auto result = Transform(d, rows, f.length, f.inverse, wide)([&](const Indices &row, X at) -> Complex {
    if (!mirrored) return {part(row, at, 0), f.complex ? part(row, at, 1) : X{}};
    X other = f.length - at;
    auto side = [&](int64_t c) {
      auto value = [&](X place) { return where(place < n, part(row, place, c), zero(d.b, wide)); };
      return where(at * 2 <= f.length, value(at), c ? -value(other) : value(other));
    };
    return {side(0), f.complex ? side(1) : X{}};
  });
  d.compute(y, [&](const Indices &i) {
    Indices row = slice(i, 0, i.size() - 1);
    row.erase(row.begin() + int64_t(f.axis));
    X v = result.part(row, i[f.axis], i.back(), f.length, f.complex, f.onesided);
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
  Tensor x = d.in(0), y = d.out();
  DType t = x.elem(), wide = accumulator(t);
  int64_t last;
  bool complex = is_const(x.dims[2], &last) && last == 2;
  Transform transform(d, {y.dims[0], y.dims[1]}, s.length, false, wide);
  auto result = transform([&](const Indices &i, X at) -> Complex {
    auto part = [&](int64_t c) {
      X v = as_type(x({i[0], i[1] * s.step + at, d.lit(c)}), t, wide);
      return d.has(2) ? v * as_type(d.in(2)({at}), t, wide) : v;
    };
    return {part(0), complex ? part(1) : X{}};
  });
  d.compute(y, [&](const Indices &i) {
    X v = result.part({i[0], i[1]}, i[2], i[3], s.length, complex, d.attr_int("onesided") != 0);
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
