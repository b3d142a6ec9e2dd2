// Sliding windows of convolutions and pools.
#pragma once
#include "ops/rules.h"

namespace mlc {

// One window a spatial axis: output o covers input o * stride + t * dilation - before, t < size.
struct Window {
  Dims in;     // spatial dimensions of the input
  Dims size;   // of the kernel
  std::vector<int64_t> stride, dilation;
  Dims before, after;  // padding
  Dims out;
  // ceil: the last window of an axis may hang over the end, if it begins inside the input or the padding before it.
  // Reads strides, dilations, pads and auto_pad (NOTSET, VALID, SAME_UPPER, SAME_LOWER) of the use.
  Window(OpUse &u, Dims in, Dims size, bool ceil);
  bool padded(size_t k) const;     // padding, or windows that hang over
  X start(size_t k, X o) const;    // o * stride - before
  X at(size_t k, X o, X t) const;  // o * stride + t * dilation - before
  // That a cell is inside the input, for all axes; true where there is no padding.
  X inside(Build &b, const Indices &o, const Indices &t) const;

 private:
  bool ceil_;
};

// Spatial dimensions: all but the first two.
inline Dims spatial(const Dims &d) { return Dims(d.begin() + 2, d.end()); }
std::vector<int64_t> per_axis(const OpUse &u, std::string_view name, size_t n, int64_t otherwise);

// x with its spatial dimensions padded by `fill`; x itself if there is no padding.
Tensor padded(Define &d, const Tensor &x, const Window &w, X fill);

}  // namespace mlc
