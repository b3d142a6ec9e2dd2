// A text as one buffer with a NUL behind its last byte; offsets into it become line and column when a diagnostic is
// printed.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace mlc {

class Source {
 public:
  // Maps a file, or reads standard input to its end ("-"). On failure `error` says why and `text` is empty.
  static Source open(const std::string &path);
  static Source from_string(std::string name, std::string_view text);  // copies

  std::string name;       // as diagnostics print it; <stdin> for "-"
  std::string_view text;  // text.data()[text.size()] == 0
  std::string error;

  struct Place { uint32_t line, column; };      // both from 1; column counts bytes
  Place place(uint32_t at) const;
  std::string_view line_of(uint32_t at) const;  // the whole line, without its newline
};

}  // namespace mlc
