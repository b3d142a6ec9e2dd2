#include "base/names.h"

namespace mlc {

static_assert(std::endian::native == std::endian::little);  // words

// Of two texts of one size, above kWord: no call for so few bytes.
static bool same_long(const char *a, const char *b, size_t size) {
  auto word = [](const char *p) {
    uint64_t w;
    memcpy(&w, p, 8);
    return w;
  };
  for (size_t i = 0; i + 8 < size; i += 8)
    if (word(a + i) != word(b + i)) return false;
  return word(a + size - 8) == word(b + size - 8);
}

size_t Names::place(const Table &t, const Slot &key, std::string_view s) const {
  for (size_t i = t.home(key.word);; i = (i + 1) & t.mask) {
    const Slot &slot = t.slots[i];
    bool same = slot.word == key.word && slot.size == key.size &&
                (key.size <= kWord || same_long(texts_[slot.id].data(), s.data(), s.size()));
    if (same || !slot.id) return i;
  }
}

Sym Names::find(std::string_view s) const {
  if (s.size() <= kWord) return {short_.slots[place(short_, {word_of(s.data(), s.size()), uint32_t(s.size())}, s)].id};
  return {long_.slots[place(long_, {hash(s), uint32_t(s.size())}, s)].id};
}

Sym Names::intern_key(Table &t, Slot key, std::string_view s) {
  Slot &slot = t.slots[place(t, key, s)];
  if (slot.id) return {slot.id};
  key.id = uint32_t(texts_.size());
  slot = key;
  texts_.push_back(arena_.text(s));
  if (++t.used * 3 > t.slots.size() * 2) {
    std::vector<Slot> old(t.slots.size() * 2);
    old.swap(t.slots);
    t.mask = t.slots.size() - 1;
    for (const Slot &o : old)
      if (o.id) t.slots[place(t, o, texts_[o.id])] = o;
  }
  return {key.id};
}

}  // namespace mlc
