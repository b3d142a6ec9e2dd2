#include "data/array.h"

#include <algorithm>
#include <stdexcept>

namespace mlc {

int64_t element_count(std::span<const int64_t> dims) {
  int64_t product = 1;
  for (int64_t d : dims)
    if (d < 0 || (d > 0 && __builtin_mul_overflow(product, d, &product))) return -1;
  return std::count(dims.begin(), dims.end(), 0) ? 0 : product;
}

int64_t array_bytes(DType type, std::span<const int64_t> dims) {
  int64_t n = element_count(dims);
  return n < 0 ? -1 : storage_bytes(type, n);
}

Array::Array(DType type, std::vector<int64_t> dims) : type(type), dims(std::move(dims)) {
  int64_t n = type == DType::Str ? element_count(this->dims) : array_bytes(type, this->dims);
  if (n < 0) throw std::length_error("an array of these dimensions does not fit in memory");
  if (type == DType::Str) strings.resize(size_t(n));
  else bytes.resize(size_t(n));
}

int64_t Array::position(std::span<const int64_t> index) const {
  int64_t p = 0;
  for (size_t i = 0; i < dims.size(); i++) p = p * dims[i] + index[i];
  return p;
}

std::vector<int64_t> Array::index_of(int64_t position) const {
  std::vector<int64_t> index(dims.size());
  for (size_t i = dims.size(); i-- > 0; position /= dims[i]) index[i] = position % dims[i];
  return index;
}

Array cast(const Array &a, DType to) {
  Array out(to, a.dims);
  cast(a.type, a.bytes.data(), to, out.bytes.data(), size_t(a.size()));
  return out;
}

}  // namespace mlc
