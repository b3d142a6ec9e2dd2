#include "interp/regex.h"

#include <re2/re2.h>

namespace mlc::interp {

struct Regex::Compiled {
  RE2 expression;
  explicit Compiled(std::string_view pattern) : expression({pattern.data(), pattern.size()}, RE2::Quiet) {}
};

Regex::Regex(std::string_view pattern) : compiled_(std::make_unique<Compiled>(pattern)) {
  if (!compiled_->expression.ok()) error_ = compiled_->expression.error();
}

Regex::~Regex() = default;

bool Regex::matches(std::string_view whole) const {
  return RE2::FullMatch({whole.data(), whole.size()}, compiled_->expression);
}

}  // namespace mlc::interp
