#include "interp/memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "ir/ir.h"

namespace mlc::interp {

static int bits_of(DType t) { return info(stored(t)).bits; }

Storage::~Storage() {
  if (!borrowed) free(bytes);
  free(shadow);
}

void Storage::forget() {
  trace = nullptr;
  if (!shadow) return;
  memset(shadow, 0, size_t(size));
  undefined = size * 8;
}

StorageRef Memory::make(int64_t bytes, bool defined) {
  bool shadow = check && !defined;
  int64_t want = bytes * (1 + shadow);
  if (bytes > limit || want > limit - used)
    throw Fault{kNowhere, fmt::format("a buffer of {} bytes goes beyond the limit of {} bytes", bytes, limit)};
  auto *s = new Storage;
  StorageRef ref(s, [this, want](Storage *p) { used -= want, delete p; });
  used += want;
  s->size = bytes;
  s->bytes = static_cast<std::byte *>(calloc(size_t(bytes) + 8, 1));
  if (shadow) s->shadow = static_cast<std::byte *>(calloc(size_t(bytes) + 8, 1));
  if (!s->bytes || (shadow && !s->shadow)) throw Fault{kNowhere, fmt::format("no memory for {} bytes", bytes)};
  s->undefined = shadow ? bytes * 8 : 0;
  return ref;
}

int64_t bytes_of(DType elem, const int64_t *dims, size_t rank) {
  if (!bits_of(elem)) throw Fault{kNowhere, fmt::format("{} is no type to compute with", dtype_name(elem))};
  int64_t n = 1;
  bool none = false;
  for (size_t d = 0; d < rank; d++) {
    if (dims[d] < 0) throw Fault{kNowhere, fmt::format("a dimension is {}", dims[d])};
    none |= !dims[d];
    if (__builtin_mul_overflow(n, std::max<int64_t>(dims[d], 1), &n)) n = -1, d = rank;
  }
  int64_t bytes = none ? 0 : n < 0 ? -1 : storage_bytes(stored(elem), n);
  if (bytes < 0) throw Fault{kNowhere, fmt::format("the size of a {} buffer overflows", dtype_name(elem))};
  return bytes;
}

std::vector<int64_t> dense_strides(const std::vector<int64_t> &dims) {
  std::vector<int64_t> strides(dims.size());
  int64_t s = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    strides[d] = s;
    if (__builtin_mul_overflow(s, std::max<int64_t>(dims[d], 1), &s)) s = 0;  // then there is no element
  }
  return strides;
}

Ref Ref::dense(Memory &m, DType elem, std::vector<int64_t> dims, bool defined) {
  int64_t bytes = bytes_of(elem, dims.data(), dims.size());
  auto strides = dense_strides(dims);
  return {m.make(bytes, defined), elem, 0, 0, std::move(dims), std::move(strides)};
}

int64_t Ref::count() const {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return 0;
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

bool Ref::is_dense() const {
  if (!count()) return true;
  int64_t s = 1;
  for (size_t d = rank(); d-- > 0; s *= dims[d])
    if (dims[d] != 1 && strides[d] != s) return false;
  return true;
}

Scalar Ref::get(const std::vector<int64_t> &index) const {
  int64_t off = first;
  for (size_t d = 0; d < index.size(); d++) off += index[d] * strides[d];
  return load(stored(elem), data(), size_t(off));
}

Ref Ref::region(const std::vector<int64_t> &lo, const std::vector<int64_t> &extent,
                const std::vector<bool> &drop) const {
  Ref r{storage, elem, start, first, {}, {}};
  int64_t off = 0;
  for (size_t d = 0; d < rank(); d++) {
    off += lo[d] * strides[d];
    if (!drop[d]) r.dims.push_back(extent[d]), r.strides.push_back(strides[d]);
  }
  int bits = bits_of(elem);
  if (bits >= 8) r.start += off * (bits / 8);
  else r.first += off;
  return r;
}

namespace {

// Calls f(byte, mask) for every byte of the storage that an element of r covers, with the bits that are its.
template <class F> void each_byte(const Ref &r, F &&f) {
  int64_t bits = bits_of(r.elem);
  each_element(r, [&](int64_t off, const std::vector<int64_t> &index) {
    if (bits < 8) {
      f(r.start + off * bits / 8, std::byte(((1u << bits) - 1) << off * bits % 8), index);
    } else {
      for (int64_t k = 0; k < bits / 8; k++) f(r.start + off * (bits / 8) + k, std::byte(0xff), index);
    }
  });
}

// The byte range of a dense tensor of whole bytes; false for others.
bool byte_range(const Ref &r, int64_t *lo, int64_t *hi) {
  if (!r.is_dense() || r.first) return false;
  int64_t bits = r.count() * bits_of(r.elem);
  if (bits % 8) return false;
  *lo = r.start, *hi = r.start + bits / 8;
  return true;
}

int64_t written_bits(const std::byte *p, int64_t n) {
  int64_t sum = 0;
  for (; n >= 8; p += 8, n -= 8) {
    uint64_t w;
    memcpy(&w, p, 8);
    sum += std::popcount(w);
  }
  for (; n > 0; p++, n--) sum += std::popcount(uint8_t(*p));
  return sum;
}

}  // namespace

void Ref::forget() const {
  Storage &s = *storage;
  if (!s.shadow) return;
  int64_t lo, hi;
  if (byte_range(*this, &lo, &hi)) {
    s.undefined += written_bits(s.shadow + lo, hi - lo);
    memset(s.shadow + lo, 0, size_t(hi - lo));
    return;
  }
  each_byte(*this, [&](int64_t byte, std::byte mask, const auto &) {
    s.undefined += std::popcount(uint8_t(s.shadow[byte] & mask));
    s.shadow[byte] &= ~mask;
  });
}

bool Ref::find_undefined(std::vector<int64_t> *index) const {
  const Storage &s = *storage;
  if (!s.undefined) return false;
  int64_t lo, hi;
  if (byte_range(*this, &lo, &hi) && written_bits(s.shadow + lo, hi - lo) == (hi - lo) * 8) return false;
  bool found = false;
  each_byte(*this, [&](int64_t byte, std::byte mask, const std::vector<int64_t> &i) {
    if (!found && (s.shadow[byte] & mask) != mask) found = true, *index = i;
  });
  return found;
}

bool Ref::overlaps(const Ref &o) const {
  if (storage != o.storage || !count() || !o.count()) return false;
  auto ends = [](const Ref &r) {
    int64_t lo = r.first, hi = r.first, bits = bits_of(r.elem);
    for (size_t d = 0; d < r.rank(); d++) (r.strides[d] < 0 ? lo : hi) += (r.dims[d] - 1) * r.strides[d];
    return std::pair(r.start * 8 + lo * bits, r.start * 8 + (hi + 1) * bits);
  };
  auto [a, b] = ends(*this);
  auto [c, d] = ends(o);
  if (b <= c || d <= a) return false;
  if (is_dense() && o.is_dense()) return true;
  std::vector<std::byte> mine(size_t(storage->size));
  bool both = false;
  each_byte(*this, [&](int64_t byte, std::byte mask, const auto &) { mine[size_t(byte)] |= mask; });
  each_byte(o,
            [&](int64_t byte, std::byte mask, const auto &) { both |= (mine[size_t(byte)] & mask) != std::byte(0); });
  return both;
}

void copy(const Ref &dst, const Ref &src) {
  Storage &to = *dst.storage;
  const Storage &from = *src.storage;
  int64_t lo, hi, lo2, hi2;
  if (byte_range(dst, &lo, &hi) && byte_range(src, &lo2, &hi2)) {
    memmove(to.bytes + lo, from.bytes + lo2, size_t(hi - lo));
    if (!to.shadow) return;
    to.undefined += written_bits(to.shadow + lo, hi - lo);
    if (from.shadow) memmove(to.shadow + lo, from.shadow + lo2, size_t(hi - lo));
    else memset(to.shadow + lo, 0xff, size_t(hi - lo));
    to.undefined -= written_bits(to.shadow + lo, hi - lo);
    return;
  }
  DType t = dst.elem;
  int64_t bits = bits_of(t);
  std::vector<int64_t> offsets;
  offsets.reserve(size_t(src.count()));
  each_element(src, [&](int64_t off, const auto &) { offsets.push_back(off); });
  size_t n = 0;
  each_element(dst, [&](int64_t off, const auto &) {
    int64_t other = offsets[n++];
    auto move = [&](std::byte *p, const std::byte *q) {
      if (bits < 8) {
        DType raw = bits == 4 ? DType::U4 : DType::U2;
        store(raw, p, size_t(off), q ? load(raw, q, size_t(other)) : Scalar{0xff});
      } else if (q) {
        memcpy(p + off * (bits / 8), q + other * (bits / 8), size_t(bits / 8));
      } else {
        memset(p + off * (bits / 8), 0xff, size_t(bits / 8));
      }
    };
    move(to.bytes + dst.start, from.bytes + src.start);
    if (to.shadow) move(to.shadow + dst.start, from.shadow ? from.shadow + src.start : nullptr);
  });
  if (to.shadow) to.undefined = to.size * 8 - written_bits(to.shadow, to.size);
}

}  // namespace mlc::interp
