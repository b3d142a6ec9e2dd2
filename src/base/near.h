// Names that somebody may have meant.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace mlc {

// Those of `known` that are closest to `name`, at most `most`: few letters changed, or one within the other. In order of
// distance, then as they come.
std::vector<std::string> near_names(std::string_view name, const std::vector<std::string> &known, size_t most = 3);

}  // namespace mlc
