// What a node of an old opset means today.
#include <gtest/gtest.h>

#include "unit/onnx_import.h"

namespace mlc {
namespace {

struct Case {
  const char *what;
  std::string model, expected;
};

TEST(OnnxConvert, OldOpsetsMeanWhatTheyMeant) {
  auto x = [](const Strings &dims) { return value("x", kFloat, dims); };
  Case cases[] = {
      {"clip 6", one(6, node("Clip", {"x"}, {"y"}, {float_attr("min", -1), float_attr("max", 6)})),
       "y: f32[n, 3, 4] = Clip(x, -1.0, 6.0)\n"},
      {"clip 6, one bound", one(6, node("Clip", {"x"}, {"y"}, {float_attr("max", 6)})),
       "y: f32[n, 3, 4] = Clip(x, none, 6.0)\n"},
      {"clip 11", one(11, node("Clip", {"x", "", "hi"}, {"y"}), {tensor("hi", kFloat, {}, bytes<float>({6}))}),
       "y: f32[n, 3, 4] = Clip(x, none, @hi)\n"},
      {"softmax 11 flattens", one(11, node("Softmax", {"x"}, {"y"})),
       "y_1: f32[n, 12] = Flatten(x)\ny_2: f32[n, 12] = Softmax(y_1)\ny: f32[n, 3, 4] = Reshape(y_2, [n, 3, 4])\n"},
      {"softmax 11, last axis", one(11, node("Softmax", {"x"}, {"y"}, {int_attr("axis", 2)})),
       "y: f32[n, 3, 4] = Softmax(x)\n"},
      {"softmax 13", one(13, node("Softmax", {"x"}, {"y"}, {int_attr("axis", 1)})),
       "y: f32[n, 3, 4] = Softmax(x) {axis = 1}\n"},
      {"slice 1",
       one(1, node("Slice", {"x"}, {"y"},
                   {ints_attr("starts", {0, 1}), ints_attr("ends", {2, INT64_MAX}), ints_attr("axes", {1, 2})})),
       "y: f32[n, 2, 3] = Slice(x, [0, 1], [2, 9223372036854775807], [1, 2])\n"},
      {"slice 13, far end",
       one(13, node("Slice", {"x", "s", "e", "a"}, {"y"}), {i64s("s", {0}), i64s("e", {2147483647}), i64s("a", {0})}),
       "assume n <= 2147483647\ny: f32[n, 3, 4] = Slice(x, [0], [9223372036854775807], [0])\n"},
      {"squeeze 11", one(11, node("Squeeze", {"x"}, {"y"}, {ints_attr("axes", {1})}), {}, {x({"n", "1", "4"})}),
       "y: f32[n, 4] = Squeeze(x, [1])\n"},
      {"unsqueeze 1", one(1, node("Unsqueeze", {"x"}, {"y"}, {ints_attr("axes", {0})})),
       "y: f32[1, n, 3, 4] = Unsqueeze(x, [0])\n"},
      {"reduce 11", one(11, node("ReduceMean", {"x"}, {"y"}, {ints_attr("axes", {-1}), int_attr("keepdims", 0)})),
       "y: f32[n, 3] = ReduceMean(x, [-1]) {keepdims = 0}\n"},
      {"reduce 11, all", one(11, node("ReduceMax", {"x"}, {"y"})), "y: f32[1, 1, 1] = ReduceMax(x)\n"},
      {"reduce 18", one(18, node("ReduceMean", {"x", "a"}, {"y"}), {i64s("a", {1})}),
       "y: f32[n, 1, 4] = ReduceMean(x, [1])\n"},
      {"pad 1", one(1, node("Pad", {"x"}, {"y"}, {ints_attr("paddings", {0, 1, 0, 0, 1, 0}), float_attr("value", 2)})),
       "y: f32[n, 5, 4] = Pad(x, [0, 1, 0, 0, 1, 0], 2.0)\n"},
      {"pad 2", one(2, node("Pad", {"x"}, {"y"}, {ints_attr("pads", {0, 1, 0, 0, 1, 0}), text_attr("mode", "edge")})),
       "y: f32[n, 5, 4] = Pad(x, [0, 1, 0, 0, 1, 0]) {mode = \"edge\"}\n"},
      {"split 11", one(11, node("Split", {"x"}, {"y", "z"}, {int_attr("axis", 2)})),
       "y: f32[n, 3, 2] = Split(x) {axis = 2, num_outputs = 2}\n"},
      {"split 2, sizes", one(2, node("Split", {"x"}, {"y", "z"}, {int_attr("axis", 2), ints_attr("split", {1, 3})})),
       "y: f32[n, 3, 1] = Split(x, [1, 3]) {axis = 2}\n"},
      {"top k 1", one(1, node("TopK", {"x"}, {"y"}, {int_attr("k", 2)})), "y: f32[n, 3, 2] = TopK(x, [2])\n"},
      {"concat 1", one(1, node("Concat", {"x", "x"}, {"y"})), "y: f32[n, 6, 4] = Concat(x, x) {axis = 1}\n"},
      {"reshape 1",
       one(1, node("Reshape", {"x"}, {"y"}, {ints_attr("shape", {0, -1}), ints_attr("consumed_inputs", {0})})),
       "y: f32[n, 12] = Reshape(x, [0, -1])\n"},
      {"tile 1",
       one(1, node("Tile", {"x", "t", "a"}, {"y"}),
           {tensor("t", kI64, {}, bytes<int64_t>({2})), tensor("a", kI64, {}, bytes<int64_t>({1}))}),
       "y: f32[n, 6, 4] = Tile(x, [1, 2, 1])\n"},
      {"add 6, axis",
       one(6, node("Add", {"x", "b"}, {"y"}, {int_attr("broadcast", 1), int_attr("axis", 1)}),
           {floats("b", {1, 2, 3})}),
       "b: f32[3, 1] = Unsqueeze(@b, [1])\ny: f32[n, 3, 4] = Add(x, b)\n"},
      {"mul 6, suffix", one(6, node("Mul", {"x", "b"}, {"y"}, {int_attr("broadcast", 1)}), {floats("b", {1, 2, 3, 4})}),
       "y: f32[n, 3, 4] = Mul(x, @b)\n"},
      {"prelu 6", one(6, node("PRelu", {"x", "b"}, {"y"}), {floats("b", {1, 2, 3})}),
       "b: f32[3, 1] = Unsqueeze(@b, [1])\ny: f32[n, 3, 4] = PRelu(x, b)\n"},
      {"gemm 6",
       one(6, node("Gemm", {"x", "w", "c"}, {"y"}, {int_attr("broadcast", 1)}),
           {tensor("w", kFloat, {2, 1}, bytes<float>({1, 2})), floats("c", {1})}, {x({"n", "2"})}),
       "y: f32[n, 1] = Gemm(x, @w, @c)\n"},
      {"cast 1", one(1, node("Cast", {"x"}, {"y"}, {text_attr("to", "INT64")}), {}, {x({"n"})}, kI64),
       "y: i64[n] = Cast(x)\n"},
      {"cast 13", one(13, node("Cast", {"x"}, {"y"}, {int_attr("to", kF16)}), {}, {x({"n"})}, kF16),
       "y: f16[n] = Cast(x)\n"},
      {"selu 1", one(1, node("Selu", {"x"}, {"y"}), {}, {x({"n"})}),
       "y: f32[n] = Selu(x) {alpha = 1.6732, gamma = 1.0507}\n"},
      {"selu 6", one(6, node("Selu", {"x"}, {"y"}), {}, {x({"n"})}), "y: f32[n] = Selu(x)\n"},
      {"lp pool 1", one(1, node("GlobalLpPool", {"x"}, {"y"}, {float_attr("p", 3)})),
       "y: f32[n, 3, 1] = GlobalLpPool(x) {p = 3}\n"},
      {"dropout 7", one(7, node("Dropout", {"x"}, {"y", "mask"}, {float_attr("ratio", 0.3f)})),
       "y: f32[n, 3, 4] = Dropout(x)\n"},
      {"dropout 1, training", one(1, node("Dropout", {"x"}, {"y"})),
       "not supported here: node of \"y\" (Dropout, opset 1): training: attribute 'is_test' = 0\n"},
      {"upsample 7", one(7, node("Upsample", {"x"}, {"y"}, {floats_attr("scales", {1, 1, 2})})),
       "y: f32[n, 3, 8] = Resize(x, none, [1.0, 1.0, 2.0]) {coordinate_transformation_mode = \"asymmetric\", "
       "nearest_mode = \"floor\"}\n"},
      {"upsample 9",
       one(9, node("Upsample", {"x", "s"}, {"y"}, {text_attr("mode", "linear")}), {floats("s", {1, 1, 2})}),
       "y: f32[n, 3, 8] = Resize(x, none, [1.0, 1.0, 2.0]) {coordinate_transformation_mode = \"asymmetric\", mode = "
       "\"linear\"}\n"},
      {"resize 10 rounds up where it shrinks", one(10, node("Resize", {"x", "s"}, {"y"}), {floats("s", {1, 1, 0.5f})}),
       "y: f32[n, 3, 2] = Resize(x, none, [1.0, 1.0, 0.5]) {coordinate_transformation_mode = \"asymmetric\", "
       "nearest_mode = \"ceil\"}\n"},
      {"resize 11, empty inputs",
       one(11, node("Resize", {"x", "r", "r", "z"}, {"y"}), {floats("r", {}), i64s("z", {1, 3, 8})},
           {x({"1", "3", "4"})}),
       "y: f32[1, 3, 8] = Resize(x, none, none, [1, 3, 8])\n"},
      {"scatter 9",
       one(9, node("Scatter", {"x", "i", "u"}, {"y"}), {tensor("i", kI64, {1}, bytes<int64_t>({0})), floats("u", {1})},
           {x({"n"})}),
       "y: f32[n] = ScatterElements(x, @i, @u)\n"},
      {"batch norm 1",
       one(1,
           node("BatchNormalization", {"x", "s", "s", "s", "s"}, {"y"},
                {int_attr("is_test", 1), int_attr("spatial", 1), ints_attr("consumed_inputs", {0, 0, 0, 1, 1})}),
           {floats("s", {1, 1, 1})}),
       "y: f32[n, 3, 4] = BatchNormalization(x, @s, @s, @s, @s)\n"},
      {"batch norm 7, not spatial",
       one(7, node("BatchNormalization", {"x", "s", "s", "s", "s"}, {"y"}, {int_attr("spatial", 0)}),
           {floats("s", {1, 1, 1})}),
       "not supported here: node of \"y\" (BatchNormalization, opset 7): attribute 'spatial' = 0\n"},
      {"batch norm 9, training",
       one(9, node("BatchNormalization", {"x", "s", "s", "s", "s"}, {"y", "m"}), {floats("s", {1, 1, 1})}),
       "not supported here: node of \"y\" (BatchNormalization, opset 9): training: 2 outputs\n"},
      {"group norm 18",
       one(18, node("GroupNormalization", {"x", "s", "s"}, {"y"}, {int_attr("num_groups", 2)}), {floats("s", {1, 2})},
           {x({"n", "4", "5"})}),
       "s: f32[2, 1] = Unsqueeze(@s, [1])\ns_1: f32[2, 2] = Expand(s, [2, 2])\ns_2: f32[4] = Reshape(s_1, [4])\n"
       "s_3: f32[2, 1] = Unsqueeze(@s, [1])\ns_4: f32[2, 2] = Expand(s_3, [2, 2])\ns_5: f32[4] = Reshape(s_4, [4])\n"
       "y: f32[n, 4, 5] = GroupNormalization(x, s_2, s_5) {num_groups = 2}\n"},
      {"pad 18 has no wrap",
       one(18, node("Pad", {"x", "p"}, {"y"}, {text_attr("mode", "wrap")}), {i64s("p", {0, 0, 1, 0, 0, 1})}),
       "invalid model: node of \"y\" (Pad, opset 18): mode 'wrap' came with opset 19\n"},
  };
  for (const Case &c : cases) EXPECT_EQ(without_from(statements(import_model(c.model))), without_from(c.expected)) << c.what;
}

}  // namespace
}  // namespace mlc
