// Pictures as arrays of bytes: BMP, JPEG, JPEG 2000, PNG, PNM, TIFF and WebP, by Leptonica and the libraries under it.
// They are loaded when the first picture is decoded, by a process of its own whose memory and time are limited: no file
// makes the caller crash, hang or grow.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mlc {

enum class PixelFormat { RGB, BGR, Grayscale };  // Grayscale: luma of ITU-R BT.601

struct Picture {
  int64_t height = 0, width = 0;   // pixels; 0 x 0: the bytes are no picture, or a damaged one
  std::vector<std::byte> samples;  // height x width x 3, or x 1
};

inline constexpr int64_t kMostPixels = 1 << 26;

// False and a message where bytes that may be a picture cannot be decoded here: it has more than kMostPixels, its
// samples more than `most` bytes, it takes more than a minute, or the library is not installed.
bool decode_picture(std::span<const std::byte> file, PixelFormat format, int64_t most, Picture *out,
                    std::string *error);

}  // namespace mlc
