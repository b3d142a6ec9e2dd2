// SHA-256 (FIPS 180-4), for the hashes of weight files.
#pragma once
#include <string>
#include <string_view>

namespace mlc {

std::string sha256(std::string_view bytes);  // 64 lower-case hexadecimal digits

}  // namespace mlc
