// Interned names: a Sym is four bytes, equal names have equal Syms. Sym{} (id 0) is "no name".
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"

namespace mlc {

struct Sym {
  uint32_t id = 0;
  bool operator==(const Sym &) const = default;
  auto operator<=>(const Sym &) const = default;  // by age, not by spelling: never for output order across runs
  explicit operator bool() const { return id != 0; }
};

class Names {
 public:
  Names() : table_(1 << 10), texts_(1) {}
  Sym intern(std::string_view s) { return intern(s, hash(s)); }
  Sym intern(std::string_view s, uint64_t h) {
    for (size_t i = h & (table_.size() - 1);; i = (i + 1) & (table_.size() - 1)) {
      Slot &slot = table_[i];
      if (!slot.id) return add(s, h, i);
      if (slot.hash == uint32_t(h >> 32) && same(texts_[slot.id], s)) return {slot.id};
    }
  }
  Sym find(std::string_view s) const;  // Sym{} if never interned
  std::string_view text(Sym s) const { return texts_[s.id]; }
  size_t size() const { return texts_.size(); }

  static uint64_t hash(std::string_view s) {
    uint64_t h = 0x9e3779b97f4a7c15u ^ s.size();
    const char *p = s.data();
    size_t n = s.size();
    for (; n >= 8; p += 8, n -= 8) h = mix(h ^ load(p, 8));
    if (n) h = mix(h ^ load(p, n));
    return h;
  }

 private:
  struct Slot { uint32_t id = 0, hash = 0; };
  static uint64_t load(const char *p, size_t n) {
    uint64_t v = 0;
    switch (n) {
      case 8: memcpy(&v, p, 8); break;
      case 7: case 6: case 5: case 4: {
        uint32_t a, b;
        memcpy(&a, p, 4), memcpy(&b, p + n - 4, 4);
        v = a | uint64_t(b) << 32;
        break;
      }
      default: v = uint8_t(p[0]) | uint64_t(uint8_t(p[n / 2])) << 8 | uint64_t(uint8_t(p[n - 1])) << 16;
    }
    return v;
  }
  static bool same(std::string_view a, std::string_view b) {  // names are short: no call of memcmp
    if (a.size() != b.size()) return false;
    const char *p = a.data(), *q = b.data();
    size_t n = a.size();
    for (; n >= 8; p += 8, q += 8, n -= 8)
      if (load(p, 8) != load(q, 8)) return false;
    return !n || load(p, n) == load(q, n);
  }
  static uint64_t mix(uint64_t x) {
    __uint128_t m = __uint128_t(x) * 0xd6e8feb86659fd93u;
    return uint64_t(m) ^ uint64_t(m >> 64);
  }
  Sym add(std::string_view s, uint64_t h, size_t slot);

  std::vector<Slot> table_;
  std::vector<std::string_view> texts_;
  Arena arena_;
};

}  // namespace mlc

template <> struct std::hash<mlc::Sym> {
  size_t operator()(mlc::Sym s) const { return s.id * 0x9e3779b97f4a7c15u; }
};
