#include "onnx/schema.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace mlc::onnx {

static constexpr Schema kSchemas[] = {
#include "onnx/schema.def"
};

const Schema *find_schema(std::string_view op) {
  auto it = std::lower_bound(std::begin(kSchemas), std::end(kSchemas), op, [](auto &s, auto n) { return s.name < n; });
  return it != std::end(kSchemas) && it->name == op ? it : nullptr;
}

bool Schema::has(std::string_view attribute, int64_t opset) const {
  for (std::string_view rest = attributes; !rest.empty();) {
    std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    std::string_view name = word.substr(0, word.find_first_of("<>"));
    if (name != attribute) continue;
    auto bound = [&](char mark, int64_t otherwise) {  // the number behind the mark
      size_t at = word.find(mark);
      if (at != word.npos) std::from_chars(word.data() + at + 1, word.data() + word.size(), otherwise);
      return otherwise;
    };
    return opset >= bound('>', 0) && opset < bound('<', INT64_MAX);
  }
  return false;
}

}  // namespace mlc::onnx
