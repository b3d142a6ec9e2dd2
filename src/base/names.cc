#include "base/names.h"

namespace mlc {

size_t Names::place(const Slot &key, std::string_view s) const {
  for (size_t i = home(key);; i = (i + 1) & mask_) {
    const Slot &slot = table_[i];
    bool same = slot.word == key.word && slot.size == key.size && (key.size <= kWord || texts_[slot.id] == s);
    if (same || !slot.id) return i;
  }
}

Sym Names::intern_any(std::string_view s) {
  Slot key = key_of(s), &slot = table_[place(key, s)];
  if (slot.id) return {slot.id};
  key.id = uint32_t(texts_.size());
  slot = key;
  texts_.push_back(arena_.text(s));
  if (texts_.size() * 2 > table_.size()) {
    std::vector<Slot> old(table_.size() * 4);
    old.swap(table_);
    mask_ = table_.size() - 1;
    for (const Slot &o : old)
      if (o.id) table_[place(o, texts_[o.id])] = o;
  }
  return {key.id};
}

}  // namespace mlc
