// A tensor in memory: dense, row-major, sub-byte elements packed from the low bits. What tools read, run and compare.
// Strings have no bytes: they are a list.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "num/convert.h"

namespace mlc {

// The product of the dimensions; -1 if one is negative or the product without zeros does not fit (so that strides do).
int64_t element_count(std::span<const int64_t> dims);
// Bytes of a dense array; -1 as above, or if they do not fit, or if the type has no storage.
int64_t array_bytes(DType type, std::span<const int64_t> dims);

struct Array {
  DType type = DType::F32;
  std::vector<int64_t> dims;
  std::vector<std::byte> bytes;
  std::vector<std::string> strings;  // of str, in place of `bytes`, get and set

  Array() = default;
  // All bits zero, all strings empty. Throws std::length_error where there are too many: check untrusted dimensions first.
  Array(DType type, std::vector<int64_t> dims);

  size_t rank() const { return dims.size(); }
  int64_t size() const { return element_count(dims); }
  Scalar get(int64_t i) const { return load(type, bytes.data(), size_t(i)); }      // i: position in row-major order
  void set(int64_t i, Scalar v) { store(type, bytes.data(), size_t(i), v); }
  int64_t position(std::span<const int64_t> index) const;                          // of an index inside the dimensions
  std::vector<int64_t> index_of(int64_t position) const;
  template <class T> std::span<T> as() { return {reinterpret_cast<T *>(bytes.data()), bytes.size() / sizeof(T)}; }
  template <class T> std::span<const T> as() const {
    return {reinterpret_cast<const T *>(bytes.data()), bytes.size() / sizeof(T)};
  }
};

// The same numbers as another type, by the rules of num/convert.h.
Array cast(const Array &a, DType to);

}  // namespace mlc
