// Texts of share/ that the tools carry with them: made by CMakeLists.txt, a table a folder.
#pragma once
#include <span>
#include <string_view>

namespace mlc {

struct ShippedText {
  std::string_view name, text;  // of share/FOLDER/NAME.mlc
};
std::span<const ShippedText> texts_of_targets();
std::span<const ShippedText> texts_of_dispatch();

}  // namespace mlc
