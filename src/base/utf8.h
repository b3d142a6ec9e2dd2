// UTF-8, letter by letter.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace mlc {

inline constexpr uint32_t kNoLetter = ~uint32_t{0};

// The letter at the start of s, which is not empty, and how many bytes it has; kNoLetter and 1 if these are no UTF-8.
uint32_t first_letter(std::string_view s, size_t *bytes);
void append_letter(uint32_t letter, std::string &out);  // U+FFFD for what is no letter

}  // namespace mlc
