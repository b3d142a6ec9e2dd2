// A bump arena: memory that lives as long as the process. Nothing is freed, no destructor runs.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
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
    for (Chunk *c = chunks_, *next; c; c = next) {
      next = c->next;
      if (c->mapped) munmap(c, kLargest);
      else free(c);
    }
  }

  void *bytes(size_t n, size_t align = 8) {
    char *p = reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(next_) + align - 1) & ~(align - 1));
    if (p > end_ || size_t(end_ - p) < n) return grow(n);
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
    if (n <= 4) for (size_t i = 0; i < n; i++) memcpy(static_cast<void *>(to + i), from + i, sizeof(T));  // no call
    else memcpy(static_cast<void *>(to), from, n * sizeof(T));
    return {to, n};
  }
  template <class C> auto copy(const C &c) { return copy(c.data(), c.size()); }
  std::string_view text(std::string_view s) {
    auto c = copy(s.data(), s.size());
    return {c.data(), c.size()};
  }

 private:
  struct Chunk { Chunk *next; bool mapped; };
  // Chunks double up to 2 MB, so that a small text costs little.
  [[gnu::noinline]] void *grow(size_t n) {
    bool own = n > size_ / 4;  // a large array gets a chunk of its own
    size_t size = own ? n + 64 : size_;
    bool mapped = !own && size == kLargest;
    if (!own && size_ < kLargest) size_ *= 2;
    char *mem = static_cast<char *>(mapped ? map() : malloc(size));
    if (!mem) throw std::bad_alloc();
    chunks_ = new (mem) Chunk{chunks_, mapped};
    char *p = mem + sizeof(Chunk);
    if (!own) next_ = p + ((n + 15) & ~size_t(15)), end_ = mem + size;
    return p;
  }
  // A largest chunk is one huge page where the kernel gives some, else its pages are asked for at once: on a large text
  // a third of the time would go into faulting them in one by one. What a kernel does not know it refuses.
  static void *map() {
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *wide = mmap(nullptr, 2 * kLargest, PROT_READ | PROT_WRITE, kFlags, -1, 0);
    if (wide == MAP_FAILED) return nullptr;
    char *from = static_cast<char *>(wide), *to = from + 2 * kLargest;
    char *mem = reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(from) + kLargest - 1) & ~(kLargest - 1));
    if (mem > from) munmap(from, size_t(mem - from));
    if (to > mem + kLargest) munmap(mem + kLargest, size_t(to - mem) - kLargest);
    madvise(mem, kLargest, MADV_HUGEPAGE);
    madvise(mem, kLargest, 23 /* MADV_POPULATE_WRITE */);
    return mem;
  }
  static constexpr size_t kLargest = size_t(1) << 21;
  size_t size_ = size_t(1) << 16;
  Chunk *chunks_ = nullptr;
  char *next_ = nullptr, *end_ = nullptr;
};

}  // namespace mlc
