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
  Sym intern(std::string_view s) {
    if (s.size() - 1 < kWord) {  // most names, most of the time
      Slot key = key_of(s), known = table_[home(key)];
      if (known.word == key.word && known.size == key.size) return {known.id};
    }
    return intern_any(s);
  }
  Sym find(std::string_view s) const { return {table_[place(key_of(s), s)].id}; }  // Sym{} if never interned
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
  // A name of up to 8 letters is its own word and compares without a look at its text; the word of others is a hash.
  static constexpr size_t kWord = 8;
  struct Slot { uint64_t word = 0; uint32_t size = 0, id = 0; };  // id 0: free
  static Slot key_of(std::string_view s) {
    return {s.size() <= kWord ? load(s.data(), s.size()) : hash(s), uint32_t(s.size())};
  }
  size_t home(const Slot &key) const { return mix(key.word ^ key.size) & mask_; }
  size_t place(const Slot &key, std::string_view s) const;  // where s is or would be
  Sym intern_any(std::string_view s);
  // Up to 8 letters as a number; different texts of one size are different numbers.
  static uint64_t load(const char *p, size_t n) {
    if (n < 4) return n ? uint8_t(p[0]) | uint32_t(uint8_t(p[n / 2])) << 8 | uint32_t(uint8_t(p[n - 1])) << 16 : 0;
    uint32_t a, b;
    memcpy(&a, p, 4), memcpy(&b, p + n - 4, 4);
    return a | uint64_t(b) << 32;
  }
  static uint64_t mix(uint64_t x) {
    __uint128_t m = __uint128_t(x) * 0xd6e8feb86659fd93u;
    return uint64_t(m) ^ uint64_t(m >> 64);
  }
  std::vector<Slot> table_;  // open addressing, at most half full
  size_t mask_ = table_.size() - 1;
  std::vector<std::string_view> texts_;
  Arena arena_;
};

}  // namespace mlc

template <> struct std::hash<mlc::Sym> {
  size_t operator()(mlc::Sym s) const { return s.id * 0x9e3779b97f4a7c15u; }
};
