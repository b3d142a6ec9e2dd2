// How far apart two results may be whose sums are ordered differently: by running each side a few times with noise in
// the roundings of its sums (interp/jitter.h).
#pragma once
#include <cmath>
#include <vector>

#include "data/compare.h"

namespace mlc {

// For every element of the outputs of one side, the largest distance between the run without noise and those with it.
// Infinite: in one of them the element was NaN or infinite, or the run was refused or gave other dimensions.
class Spread {
 public:
  explicit Spread(const std::vector<Array> &outputs) : outputs_(outputs) {
    for (const Array &a : outputs) far_.emplace_back(size_t(a.size()), 0.0);
  }
  void include(bool ran, const std::vector<Array> &noisy);
  double at(size_t output, int64_t i) const { return far_[output][size_t(i)]; }

 private:
  const std::vector<Array> &outputs_;
  std::vector<std::vector<double>> far_;
};

// What the elements of an output may differ by: twice the spreads of both sides, and a unit in the last place where
// there is any. An attr licence adds roundings of the output's type, or one quantum for `qdq`.
std::vector<double> allowed(size_t output, const Array &value, const Spread &a, const Spread &b, bool licence,
                            bool qdq);

// Elements of which the comparison says little: integers that may differ at all, floats by more than a hundredth of the
// largest in `value` (and more than 16 units in the last place of it).
int64_t loose(const Array &value, const std::vector<double> &allowed);

}  // namespace mlc
