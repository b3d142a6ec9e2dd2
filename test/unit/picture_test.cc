// Pictures of a few pixels, as Pillow wrote them and reads them, but for PNM, which is written by hand.
#include "data/picture.h"

#include <gtest/gtest.h>

#include <random>

namespace mlc {
namespace {

std::vector<std::byte> bytes(std::string_view text) {
  auto *p = reinterpret_cast<const std::byte *>(text.data());
  return {p, p + text.size()};
}

std::vector<std::byte> from_hex(std::string_view hex) {
  std::vector<std::byte> out;
  for (size_t i = 0; i < hex.size(); i += 2) out.push_back(std::byte(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return out;
}

constexpr int64_t kEnough = 1 << 20;

// "height x width: samples", or what went wrong.
std::string decoded(const std::vector<std::byte> &file, PixelFormat format = PixelFormat::RGB, int64_t most = kEnough) {
  Picture p;
  std::string error;
  if (!decode_picture(file, format, most, &p, &error)) return error;
  std::string out = std::to_string(p.height) + " x " + std::to_string(p.width) + ":";
  for (std::byte b : p.samples) out += " " + std::to_string(int(b));
  return out;
}

constexpr std::string_view kRed = "2 x 3: 250 10 20 30 200 40 10 20 230 0 0 0 128 129 130 255 255 255";

struct Case {
  const char *name, *hex;
  std::string_view pixels;
} const kCases[] = {
    {"bmp",
     "424d4e0000000000000036000000280000000300000002000000010018000000000018000000c40e0000c40e0000000000000000"
     "0000000000828180ffffff000000140afa28c81ee6140a000000", kRed},
    {"png_alpha",
     "89504e470d0a1a0a0000000d49484452000000030000000208060000009d74661a0000002349444154789c63f8c525c2207742e3"
     "3f97c8337626b66f6f38937646a57e7d2df903007a720aef948ba1fd0000000049454e44ae426082", kRed},
    {"png_palette",
     "89504e470d0a1a0a0000000d49484452000000030000000204030000006f5a7b2900000012504c5445ffffff1ec8288081820a14"
     "e6fa0a14000000cd5641ea0000000e49444154789c63747ccf2478010006050215575998990000000049454e44ae426082", kRed},
    {"png_gray16",
     "89504e470d0a1a0a0000000d49484452000000030000000110000000006e1b972b0000000f49444154789c6360646a60f8ff1f00"
     "051402828886c58e0000000049454e44ae426082", "1 x 3: 1 1 1 128 128 128 255 255 255"},
    {"png_1bit",
     "89504e470d0a1a0a0000000d4948445200000003000000010100000000339b29190000000a49444154789c6358000000a200a1dc"
     "8db1cc0000000049454e44ae426082", "1 x 3: 255 255 255 0 0 0 255 255 255"},
    {"tiff_lzw",
     "49492a001c000000803e814140f320510373002148040a09ff0f80800a0000010300010000000300000001010300010000000200"
     "000002010300030000009a0000000301030001000000050000000601030001000000020000001101040001000000080000001501"
     "030001000000030000001601030001000000020000001701040001000000140000001c0103000100000001000000000000000800"
     "08000800", kRed},
    {"webp",
     "524946464a000000574542505650384c3e0000002f024000002fa0a86d1ba8ef963f93631bbad150d0b60d5308674338fe0c2e41"
     "004912098d31f642cf7f00fc3fb5c871c65581408032563cb34044ff63bd", kRed},
    {"gif",
     "47494638376103000200820000ffffff1ec8288081820a14e6fa0a140000000000000000002c0000000003000200000809000904"
     "185040008080003b", "0 x 0:"},
};

TEST(Picture, AsPillowReadsThem) {
  for (const Case &c : kCases) EXPECT_EQ(decoded(from_hex(c.hex)), c.pixels) << c.name;
}

TEST(Picture, PortableMapsInLettersAndBytes) {
  EXPECT_EQ(decoded(bytes("P3 2 1 255\n1 2 3 253 254 255\n")), "1 x 2: 1 2 3 253 254 255");
  EXPECT_EQ(decoded(bytes("P6 2 1 255\n\1\2\3\375\376\377")), "1 x 2: 1 2 3 253 254 255");
  EXPECT_EQ(decoded(bytes("P5 2 1 255\n\1\377")), "1 x 2: 1 1 1 255 255 255");
  EXPECT_EQ(decoded(bytes("P1 3 1\n1 0 1\n")), "1 x 3: 0 0 0 255 255 255 0 0 0");
}

TEST(Picture, FormatsOfPixels) {
  auto file = bytes("P3 2 1 255\n1 2 3 253 14 255\n");
  EXPECT_EQ(decoded(file, PixelFormat::BGR), "1 x 2: 3 2 1 255 14 253");
  EXPECT_EQ(decoded(file, PixelFormat::Grayscale), "1 x 2: 2 113");  // 0.299 * 253 + 0.587 * 14 + 0.114 * 255 = 112.9
}

TEST(Picture, WhatIsNoneHasNoPixels) {
  EXPECT_EQ(decoded({}), "0 x 0:");
  EXPECT_EQ(decoded(bytes("P")), "0 x 0:");
  EXPECT_EQ(decoded(bytes("a line of text that is no picture\n")), "0 x 0:");
  EXPECT_EQ(decoded(bytes("P6 2 1 255\n\1\2")), "0 x 0:");
}

TEST(Picture, LimitsAreErrors) {
  EXPECT_EQ(decoded(bytes("P6 70000 70000 255\n" + std::string(64, 'x'))),
            "a picture of 70000 x 70000 pixels: at most 67108864 pixels, and 1048576 bytes of samples");
  EXPECT_EQ(decoded(bytes("P3 2 1 255\n1 2 3 253 254 255\n"), PixelFormat::RGB, 5),
            "a picture of 1 x 2 pixels: at most 67108864 pixels, and 5 bytes of samples");
  EXPECT_EQ(decoded(bytes("P3 2 1 255\n1 2 3 253 254 255\n"), PixelFormat::Grayscale, 5), "1 x 2: 2 254");
}

// Whatever the bytes are, there is an answer: pixels, none, or a limit.
TEST(Picture, DamagedOnes) {
  std::mt19937 random{1};
  for (const Case &c : kCases)
    for (int turn = 0; turn < 20; turn++) {
      auto file = from_hex(c.hex);
      for (int n = 1 + int(random() % 4); n-- > 0;) file[random() % file.size()] = std::byte(random());
      if (turn % 4 == 0) file.resize(random() % file.size());
      std::string s = decoded(file);
      EXPECT_TRUE(s.find(" x ") != s.npos) << c.name << ": " << s;
    }
}

}  // namespace
}  // namespace mlc
