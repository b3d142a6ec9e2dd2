#include "target/target.h"

#include <gtest/gtest.h>

#include "text/text.h"

namespace mlc {
namespace {

TEST(Target, ShippedOnesAreFoundAndExtendTheirBases) {
  for (const std::string &name : shipped_targets()) {
    Build b;
    std::string error;
    auto t = find_target(b, nullptr, name, &error);
    ASSERT_TRUE(t) << error;
    EXPECT_EQ(t->name, name);
    EXPECT_FALSE(t->kind.empty());
  }
  Build b;
  std::string error;
  auto amx = find_target(b, nullptr, "x86-amx", &error);
  EXPECT_EQ(amx->memory("l2")->bytes, 2097152);                    // its own
  EXPECT_EQ(amx->number(b, "vector_registers", 0), 32);            // of x86-avx512
  EXPECT_TRUE(amx->has_feature("amx-bf16") && amx->has_feature("avx512f"));
  EXPECT_EQ(amx->thread("threadIdx.x"), nullptr);
  EXPECT_EQ(find_target(b, nullptr, "cuda-sm_80", &error)->thread("block")->max, 1024);
}

TEST(Target, ErrorsNameWhatThereIs) {
  Build b;
  std::string error;
  EXPECT_FALSE(find_target(b, nullptr, "x86", &error));
  EXPECT_NE(error.find("there is no target x86; mlc has aarch64-neon, cuda-sm_80"), error.npos) << error;
  EXPECT_FALSE(find_target(b, nullptr, "no/such.mlc", &error));
  EXPECT_NE(error.find("no/such.mlc: "), error.npos) << error;
}

TEST(Target, OnesOfTheModuleGoFirstAndARingOfBasesEnds) {
  static const Source source = Source::from_string(
      "m.mlc", "mlc 1\ntarget @generic {\n  attr kind = \"cpu\"\n  attr vector_bytes = 8\n}\n"
               "target @a {\n  attr base = \"b\"\n}\ntarget @b {\n  attr base = \"a\"\n}\n");
  Build b;
  Module m;
  Diag diag("test", &source);
  ASSERT_TRUE(read(b, source, m, diag));
  std::string error;
  EXPECT_EQ(find_target(b, &m, "generic", &error)->number(b, "vector_bytes", 0), 8);
  EXPECT_FALSE(find_target(b, &m, "a", &error));
  EXPECT_NE(error.find("bases"), error.npos) << error;
}

}  // namespace
}  // namespace mlc
