// The texts of share/dispatch, carried in the tools.
#pragma once
#include <span>
#include <string_view>

namespace mlc {

struct ShippedLibrary {
  std::string_view name, text;
};
std::span<const ShippedLibrary> shipped_library_texts();  // made by CMakeLists.txt

}  // namespace mlc
