// Diagnostics: `FILE:LINE:COL: error: message [tool]`, the source line, a caret. Collected, sorted by place, at most 20
// printed. A message is lower case without a full stop, names the thing, says what was expected, then what was found.
#pragma once
#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/source.h"

namespace mlc {

// counted(2, "argument"): 2 arguments
inline std::string counted(size_t n, std::string_view what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

class Diag {
 public:
  explicit Diag(std::string tool, const Source *source = nullptr) : tool_(std::move(tool)), source_(source) {}

  template <class... A> void error(uint32_t at, fmt::format_string<A...> f, A &&...a) {
    add(at, true, fmt::format(f, std::forward<A>(a)...));
  }
  template <class... A> void note(uint32_t at, fmt::format_string<A...> f, A &&...a) {  // belongs to the error before it
    add(at, false, fmt::format(f, std::forward<A>(a)...));
  }
  // With -v only: what was done and what was not, and why.
  template <class... A> void remark(fmt::format_string<A...> f, A &&...a) {
    if (verbose) remarks_.push_back(fmt::format(f, std::forward<A>(a)...));
  }

  bool verbose = false;
  size_t errors() const { return errors_; }
  // at == 0xffffffff (kNowhere): no place in the text, `FILE: error: ...`
  void print(FILE *out);  // everything collected so far, then forgets it
  std::vector<std::string> messages() const;  // for tests

 private:
  struct Entry { uint32_t at; bool error; std::string message; };
  void add(uint32_t at, bool error, std::string message);
  std::string tool_;
  const Source *source_;
  std::vector<Entry> entries_;
  std::vector<std::string> remarks_;
  size_t errors_ = 0;
};

}  // namespace mlc
