// The texts of share/targets, carried in the tools.
#pragma once
#include <span>
#include <string_view>

namespace mlc {

struct ShippedTarget {
  std::string_view name, text;
};
std::span<const ShippedTarget> shipped_target_texts();  // made by CMakeLists.txt

}  // namespace mlc
