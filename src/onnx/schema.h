// What ONNX has: its operators (default domain) and their attributes by opset. Tells a model that is wrong from one
// that uses what mlc lacks.
#pragma once
#include <cstdint>
#include <string_view>

namespace mlc::onnx {

inline constexpr int64_t kNewestOpset = 28;

struct Schema {
  std::string_view name;
  int first;                    // the opset that brought it
  std::string_view attributes;  // "axis keepdims select_last_index>12 spatial<9"
  bool has(std::string_view attribute, int64_t opset) const;
};
const Schema *find_schema(std::string_view op);  // null: ONNX has no such operator

}  // namespace mlc::onnx
