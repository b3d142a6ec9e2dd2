// Memory of a running program. A buffer is a part of a Storage seen as a tensor; beside the bytes of a Storage lies a
// shadow of the same layout, a bit of which is 1 where the bit beside it has been written:
//   i4[3] with elements 0 and 2 written:   shadow 0f 0f
// So initialisation belongs to bytes, not to names, whatever types and shapes look at them.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "num/convert.h"

namespace mlc::interp {

// What stops a program: a fault of the call, of the data or of the program. `at` is a place in its text or kNowhere.
struct Fault {
  uint32_t at;
  std::string message;
  bool named = false;     // the message says in which function
  bool constant = false;  // it is one of a constant
  bool endless = false;   // more turns than a run may take
  bool race = false;      // turns of an order-free loop touch the same element
};

// What an element is in memory: a string is its number in the machine's table (interp/strings.h).
inline DType stored(DType t) { return t == DType::Str ? DType::I64 : t; }

struct Trace;  // interp/races.h

struct Storage {
  std::byte *bytes = nullptr;
  std::byte *shadow = nullptr;  // null: everything counts as written
  int64_t size = 0;             // bytes
  int64_t undefined = 0;        // bits not yet written
  bool borrowed = false;        // the bytes are somebody else's
  std::shared_ptr<Trace> trace;  // of a run that looks for races
  Storage() = default;
  Storage(const Storage &) = delete;
  Storage &operator=(const Storage &) = delete;
  ~Storage();
  void forget();  // nothing is written any more
};
using StorageRef = std::shared_ptr<Storage>;

// Keeps count of what is allocated, and refuses beyond a limit.
struct Memory {
  int64_t limit = int64_t(4) << 30;
  int64_t used = 0;
  bool check = true;  // buffers start undefined
  StorageRef make(int64_t bytes, bool defined);  // zeroed; throws Fault
};

// n elements of dims, none negative, as bytes; throws Fault on overflow or a negative dimension.
int64_t bytes_of(DType elem, const int64_t *dims, size_t rank);

// A tensor in memory: element (i, j) is at bytes + start + (first + i * strides[0] + j * strides[1]) * size of elem.
// `first` is not 0 only for types of less than a byte.
struct Ref {
  StorageRef storage;
  DType elem = DType::Invalid;
  int64_t start = 0, first = 0;
  std::vector<int64_t> dims, strides;

  static Ref dense(Memory &m, DType elem, std::vector<int64_t> dims, bool defined = false);
  size_t rank() const { return dims.size(); }
  int64_t count() const;       // elements
  bool is_dense() const;       // row-major without gaps
  std::byte *data() const { return storage->bytes + start; }
  Scalar get(const std::vector<int64_t> &index) const;  // not checked
  // The part [lo, lo + extent) of each dimension; dimensions with `drop` vanish (extent 1). Not checked.
  Ref region(const std::vector<int64_t> &lo, const std::vector<int64_t> &extent, const std::vector<bool> &drop) const;
  void forget() const;         // its elements are undefined from now on
  bool find_undefined(std::vector<int64_t> *index) const;  // the first element never written
  bool overlaps(const Ref &o) const;                       // some byte belongs to both
};
std::vector<int64_t> dense_strides(const std::vector<int64_t> &dims);
// dst = src, elements of one type; the shadow comes along. They may overlap only if they are the same region.
void copy(const Ref &dst, const Ref &src);

// Calls f(offset, index) for each element in row-major order; offset in elements from `data()`.
template <class F> void each_element(const Ref &r, F &&f) {
  for (int64_t d : r.dims)
    if (!d) return;
  std::vector<int64_t> index(r.rank());
  for (int64_t off = r.first;;) {
    f(off, index);
    size_t d = r.rank();
    for (;; d--) {
      if (!d) return;
      off += r.strides[d - 1];
      if (++index[d - 1] < r.dims[d - 1]) break;
      off -= r.strides[d - 1] * r.dims[d - 1], index[d - 1] = 0;
    }
  }
}

}  // namespace mlc::interp
