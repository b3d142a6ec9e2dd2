#include "equiv/spread.h"

#include <algorithm>

namespace mlc {

namespace {

double roundoff(DType t) {
  switch (t) {
    case DType::F64: return 0x1p-53;
    case DType::F32: return 0x1p-24;
    case DType::F16: return 0x1p-11;
    case DType::BF16: return 0x1p-8;
    default: return 0x1p-3;  // f8, f4
  }
}

double magnitude(const Array &a, int64_t i) {  // 0 of what is not finite
  double v = std::fabs(to_double(a.type, a.get(i)));
  return std::isfinite(v) ? v : 0;
}

double largest(const Array &a) {
  double m = 0;
  for (int64_t i = 0; i < a.size(); i++) m = std::max(m, magnitude(a, i));
  return m;
}

}  // namespace

void Spread::include(bool ran, const std::vector<Array> &noisy) {
  for (size_t k = 0; k < outputs_.size(); k++) {
    const Array &a = outputs_[k];
    if (a.type == DType::Str) continue;  // equal or not
    bool alike = ran && noisy[k].dims == a.dims;
    for (int64_t i = 0; i < a.size(); i++) {
      double d = alike ? distance(a.type, noisy[k].get(i), a.get(i)) : INFINITY;
      far_[k][size_t(i)] = std::max(far_[k][size_t(i)], d);
    }
  }
}

std::vector<double> allowed(size_t output, const Array &value, const Spread &a, const Spread &b, bool licence,
                            bool qdq) {
  bool real = is_float(value.type);
  double unit = real ? roundoff(value.type) : 0;
  double granted = !real ? qdq : licence ? 16 * unit * largest(value) : 0;
  std::vector<double> all(size_t(value.size()));
  for (int64_t i = 0; i < value.size(); i++) {
    double far = 2 * (a.at(output, i) + b.at(output, i));
    all[size_t(i)] = granted + far + (far > 0 ? 2 * unit * magnitude(value, i) : 0);
  }
  return all;
}

int64_t loose(const Array &value, const std::vector<double> &allowed) {
  double most = is_float(value.type) ? std::max(0.01, 32 * roundoff(value.type)) * largest(value) : 0;
  return std::count_if(allowed.begin(), allowed.end(), [&](double x) { return x > most; });
}

}  // namespace mlc
