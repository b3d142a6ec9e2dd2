#include "base/names.h"

namespace mlc {

Sym Names::add(std::string_view s, uint64_t h, size_t slot) {
  uint32_t id = uint32_t(texts_.size());
  texts_.push_back(arena_.text(s));
  table_[slot] = {id, uint32_t(h >> 32)};
  if (texts_.size() * 2 > table_.size()) {
    std::vector<Slot> bigger(table_.size() * 4);
    for (uint32_t i = 1; i < texts_.size(); i++) {
      uint64_t k = hash(texts_[i]);
      size_t at = k & (bigger.size() - 1);
      while (bigger[at].id) at = (at + 1) & (bigger.size() - 1);
      bigger[at] = {i, uint32_t(k >> 32)};
    }
    table_ = std::move(bigger);
  }
  return {id};
}

Sym Names::find(std::string_view s) const {
  uint64_t h = hash(s);
  for (size_t i = h & (table_.size() - 1);; i = (i + 1) & (table_.size() - 1)) {
    const Slot &slot = table_[i];
    if (!slot.id) return {};
    if (slot.hash == uint32_t(h >> 32) && texts_[slot.id] == s) return {slot.id};
  }
}

}  // namespace mlc
