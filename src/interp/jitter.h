// What another order of a sum may change, by Monte Carlo arithmetic (D. S. Parker, Monte Carlo arithmetic, 1997): an
// addition of a sum that is not exact is rounded after uniform noise of up to two units in the last place was added to
// its exact result. So the results of a few such runs lie about the exact one as those of other orders do, and noise
// takes the ways through the program, with the gains and the correlations, that rounding errors take.
#pragma once
#include <cmath>

#include "interp/number.h"

namespace mlc::interp {

class Noise {  // splitmix64: the same numbers everywhere
 public:
  explicit Noise(uint64_t seed) : s_(seed) {}
  double next() {  // in -1 .. 1
    uint64_t z = s_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9, z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return double(int64_t(z ^ z >> 31)) * 0x1p-63;
  }

 private:
  uint64_t s_;
};

template <DType D> constexpr double unit_roundoff() {
  return D == DType::F64 ? 0x1p-53 : D == DType::F32 ? 0x1p-24 : D == DType::F16 ? 0x1p-11 : D == DType::BF16 ? 0x1p-8
                                                                                                        : 0x1p-4;
}

enum class Kick : uint8_t { Add, Sub, Mul };

// a + b, a - b or a * b as a step of a sum or product.
template <DType D, Kick s, class V = typename Num<D>::Value> V jittered(V a, V b, Noise &n) {
  constexpr double width = 2 * unit_roundoff<D>();
  if constexpr (s == Kick::Sub) b = -b;
  if constexpr (D == DType::F64) {
    double v = s == Kick::Mul ? a * b : a + b, lost;
    if (!std::isfinite(v)) return v;
    if constexpr (s == Kick::Mul) {
      lost = std::fma(a, b, -v);
    } else {
      double of_b = v - a;  // Knuth's two-sum
      lost = (a - (v - of_b)) + (b - of_b);
    }
    return lost == 0 ? v : v + (lost + n.next() * width * std::fabs(v));
  } else {
    double exact = s == Kick::Mul ? double(a) * double(b) : double(a) + double(b);
    float v = Num<D>::narrow(float(exact));
    if (double(v) == exact || !std::isfinite(v)) return v;
    return cast(Scalar::of_f64(exact + n.next() * width * std::fabs(double(v))), DType::F64, D).as_f32();
  }
}

}  // namespace mlc::interp
