// A text as one buffer with NULs behind its last byte; offsets into it become line and column when a diagnostic is
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
  // One text of two, so that a module and what is said about it have one space of offsets; each keeps its name and its
  // lines. Copies. The first error of the two is the error.
  static Source join(const Source &a, const Source &b);

  std::string name;       // as diagnostics print it; <stdin> for "-"
  std::string_view text;  // kBehind NULs follow, so that words of a machine may be read at any byte of it
  static constexpr size_t kBehind = 8;
  std::string error;

  struct Place { uint32_t line, column; };      // both from 1; column counts bytes; in the file that `at` is of
  const std::string &name_of(uint32_t at) const { return at >= second_ ? second_name_ : name; }
  Place place(uint32_t at) const;
  std::string_view line_of(uint32_t at) const;  // the whole line, without its newline

 private:
  size_t second_ = SIZE_MAX;  // where the second text of `join` begins
  std::string second_name_;
};

}  // namespace mlc
