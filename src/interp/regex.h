// Regular expressions of RE2: no pattern takes more than linear time.
#pragma once
#include <memory>
#include <string>
#include <string_view>

namespace mlc::interp {

class Regex {
 public:
  explicit Regex(std::string_view pattern);  // UTF-8
  ~Regex();
  const std::string &error() const { return error_; }  // empty: the pattern is right
  bool matches(std::string_view whole) const;

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
  std::string error_;
};

}  // namespace mlc::interp
