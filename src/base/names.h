// Interned names: a Sym is four bytes, equal names have equal Syms. Sym{} (id 0) is "no name".
#pragma once
#include <bit>
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
  Sym intern(std::string_view s) {
    if (s.size() > kWord) return intern_long(s);
    return intern_word(word_of(s.data(), s.size()), s);
  }
  // The same where kWord bytes may be read at s.data(): most names of a text, with no jump that depends on their size.
  Sym intern_in_text(std::string_view s) {
    if (s.size() - 1 >= kWord) return intern(s);
    uint64_t word;
    memcpy(&word, s.data(), kWord);
    return intern_word(word & ~uint64_t(0) >> 8 * (kWord - s.size()), s);
  }
  Sym find(std::string_view s) const;  // Sym{} if never interned
  std::string_view text(Sym s) const { return texts_[s.id]; }
  size_t size() const { return texts_.size(); }

  static uint64_t hash(std::string_view s) {
    uint64_t h = 0x9e3779b97f4a7c15u ^ s.size();
    const char *p = s.data();
    size_t n = s.size();
    for (; n >= 8; p += 8, n -= 8) h = mix(h ^ word_of(p, 8));
    if (n) h = mix(h ^ word_of(p, n));
    return h;
  }

 private:
  // A name of up to kWord letters is its own word and compares with no look at its text; the word of others is a hash.
  // The two have tables of their own: the short names of a large text stay in the cache.
  static constexpr size_t kWord = 8;
  struct Slot { uint64_t word = 0; uint32_t size = 0, id = 0; };  // id 0: free
  struct Table {                                                  // open addressing, at most half full
    std::vector<Slot> slots = std::vector<Slot>(1 << 9);
    size_t mask = slots.size() - 1, used = 0;
    size_t home(uint64_t word) const { return mix(word) & mask; }
  };
  Sym intern_word(uint64_t word, std::string_view s) {
    const Slot &known = short_.slots[short_.home(word)];
    if (known.word == word && known.size == s.size()) return {known.id};
    return intern_key(short_, {word, uint32_t(s.size())}, s);
  }
  Sym intern_long(std::string_view s) { return intern_key(long_, {hash(s), uint32_t(s.size())}, s); }
  Sym intern_key(Table &t, Slot key, std::string_view s);
  size_t place(const Table &t, const Slot &key, std::string_view s) const;  // where s is or would be
  // Up to 8 letters as a number, the first one lowest.
  static uint64_t word_of(const char *p, size_t n) {
    auto letter = [p](size_t i) { return uint64_t(uint8_t(p[i])) << 8 * i; };
    if (n < 4) return n ? letter(0) | letter(n / 2) | letter(n - 1) : 0;
    uint32_t a, b;
    memcpy(&a, p, 4), memcpy(&b, p + n - 4, 4);
    return a | uint64_t(b) << 8 * (n - 4);
  }
  static uint64_t mix(uint64_t x) {
    __uint128_t m = __uint128_t(x) * 0xd6e8feb86659fd93u;
    return uint64_t(m) ^ uint64_t(m >> 64);
  }
  Table short_, long_;
  std::vector<std::string_view> texts_{1};
  Arena arena_;
};

}  // namespace mlc

template <> struct std::hash<mlc::Sym> {
  size_t operator()(mlc::Sym s) const { return s.id * 0x9e3779b97f4a7c15u; }
};
