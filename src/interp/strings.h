// Strings of a running graph. Each different one has a number, and that is what tensors of str hold: copies, choices and
// equality are those of numbers, and so are the kernels (ops/ops.h). Only what reads letters sees the letters.
#pragma once
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "interp/memory.h"

namespace mlc::interp {

class Strings {
 public:
  explicit Strings(Memory &memory) : memory_(memory) { number(""); }
  Strings(const Strings &) = delete;
  int64_t number(std::string_view s);                          // "" is 0; throws Fault beyond the limit of memory
  const std::string &text(int64_t number) const;               // throws Fault if there is none

 private:
  Memory &memory_;
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, int64_t> numbers_;      // views of texts_
};

}  // namespace mlc::interp
