#include "base/utf8.h"

namespace mlc {

static bool is_letter(uint32_t c) { return c < 0xd800 || (c > 0xdfff && c <= 0x10ffff); }

uint32_t first_letter(std::string_view s, size_t *bytes) {
  auto byte = [&](size_t i) { return uint32_t(uint8_t(s[i])); };
  uint32_t first = byte(0);
  *bytes = 1;
  if (first < 0x80) return first;
  size_t more = first >= 0xf8 ? 0 : first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc2;
  if (!more || s.size() <= more) return kNoLetter;
  uint32_t letter = first & (0x3fu >> more);
  for (size_t i = 1; i <= more; i++) {
    if ((byte(i) & 0xc0) != 0x80) return kNoLetter;
    letter = letter << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
  if (letter < kLeast[more] || !is_letter(letter)) return kNoLetter;
  *bytes = more + 1;
  return letter;
}

void append_letter(uint32_t c, std::string &out) {
  if (!is_letter(c)) c = 0xfffd;
  size_t more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr uint32_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
  out += char(kLead[more] | c >> 6 * more);
  while (more-- > 0) out += char(0x80 | (c >> 6 * more & 0x3f));
}

}  // namespace mlc
