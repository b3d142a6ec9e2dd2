// A bump arena: memory that lives as long as the process. Nothing is freed, no destructor runs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace mlc {

class Arena {
 public:
  Arena() = default;
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;
  ~Arena() {
    for (Chunk *c = chunks_, *next; c; c = next) next = c->next, free(c);
  }

  void *bytes(size_t n, size_t align = 8) {
    char *p = reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(next_) + align - 1) & ~(align - 1));
    if (size_t(end_ - p) < n || p > end_) return grow(n);
    next_ = p + n;
    return p;
  }
  template <class T> T *make(const T &value) {
    static_assert(std::is_trivially_destructible_v<T>);
    return new (bytes(sizeof(T), alignof(T))) T(value);
  }
  template <class T> std::span<const T> copy(const T *from, size_t n) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (!n) return {};
    T *to = static_cast<T *>(bytes(n * sizeof(T), alignof(T)));
    memcpy(static_cast<void *>(to), from, n * sizeof(T));
    return {to, n};
  }
  template <class C> auto copy(const C &c) { return copy(c.data(), c.size()); }
  std::string_view text(std::string_view s) {
    auto c = copy(s.data(), s.size());
    return {c.data(), c.size()};
  }

 private:
  struct Chunk { Chunk *next; };
  void *grow(size_t n) {
    size_t size = n > kChunk / 4 ? n + 64 : kChunk;
    char *mem = static_cast<char *>(malloc(size + sizeof(Chunk)));
    if (!mem) abort();
    chunks_ = new (mem) Chunk{chunks_};
    char *p = mem + 16;
    if (size == kChunk) next_ = p + ((n + 15) & ~size_t(15)), end_ = mem + size;
    return p;
  }
  static constexpr size_t kChunk = 1 << 20;
  Chunk *chunks_ = nullptr;
  char *next_ = nullptr, *end_ = nullptr;
};

}  // namespace mlc
