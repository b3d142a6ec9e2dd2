// The reserved words of the language; a name that is one is written in quotes.
#pragma once
#include <span>
#include <string_view>

namespace mlc {

std::span<const std::string_view> reserved_words();  // as grammar/mlc.re has them, and inf and nan

}  // namespace mlc
