// Whatever the bytes of a model are, there is an answer, and nothing is touched outside.
#include <gtest/gtest.h>

#include <random>

#include "unit/onnx_import.h"

namespace mlc {
namespace {

TEST(OnnxFuzz, MutatedModels) {
  Message then = branch({node("Relu", {"x"}, {"a"})}, "a"), other = branch({node("Neg", {"x"}, {"b"})}, "b");
  Graph body{{node("Identity", {"c"}, {"c1"}), node("Mul", {"s", "s"}, {"s1"})},
             {value("i", kI64, {}), value("c", kBool, {}), value("s", kFloat, {"n", "6"})},
             {Message().text(1, "c1"), Message().text(1, "s1")}, {}, {}};
  Graph grow{{node("SequenceInsert", {"q", "x"}, {"q1"}), node("Identity", {"c"}, {"c1"})},
             {value("i", kI64, {}), value("c", kBool, {}), Message().text(1, "q")},
             {Message().text(1, "c1"), Message().text(1, "q1")}, {}, {}};
  Message f = Message().text(1, "f").text(4, "a").text(5, "b").text(10, "local");
  f.part(7, node("LeakyRelu", {"a"}, {"b"}, {ref_attr("alpha", "alpha", 1)}))
      .part(9, Message().text(1, "").number(2, 16))
      .text(6, "alpha");
  Graph g{{node("Shape", {"x"}, {"s"}), node("Slice", {"s", "zero", "one"}, {"n0"}),
           node("Concat", {"n0", "rest"}, {"t"}, {int_attr("axis", 0)}), node("Reshape", {"x", "t"}, {"r"}),
           node("Gemm", {"r", "w", "bias"}, {"h"}, {int_attr("transB", 1)}),
           node("If", {"c"}, {"q"}, {graph_attr("then_branch", then), graph_attr("else_branch", other)}),
           node("Loop", {"one", "", "h"}, {"l"}, {graph_attr("body", body.message())}),
           node("SequenceConstruct", {"q", "q"}, {"sq"}), node("SplitToSequence", {"x"}, {"ps"}, {int_attr("axis", 1)}),
           node("Loop", {"one", "", "sq"}, {"ls"}, {graph_attr("body", grow.message())}),
           node("ConcatFromSequence", {"ls"}, {"w1"}, {int_attr("axis", 0)}), node("SequenceLength", {"ps"}, {"w2"}),
           node("f", {"l"}, {"y"}, {float_attr("alpha", 0.5f)}, "", "local"),
           node("Softmax", {"q"}, {"z"}, {int_attr("axis", 1)})},
          {value("x", kFloat, {"n", "2", "2"}), value("c", kBool, {})},
          {value("y", kFloat, {"n", "6"}), value("z", kFloat, {"n", "2", "2"}), Message().text(1, "w1"), Message().text(1, "w2")},
          {i64s("zero", {0}), i64s("one", {1}), i64s("rest", {4}), tensor("w", kFloat, {6, 4}, std::string(96, 1)),
           floats("bias", {1, 2, 3, 4, 5, 6})},
          {value("h", kFloat, {"n", "6"})}};
  std::string good = model(12, g, {f});
  Folder folder;
  std::string path = folder.path + "/m.onnx";
  ASSERT_TRUE(import_file(folder.write("m.onnx", good)).ok) << import_file(path).errors;

  size_t refused = 0, accepted = 0;
  auto attempt = [&](const std::string &bad) {
    folder.write("m.onnx", bad);
    Build b;
    Module m;
    ImportOptions options{path, {}, "", false};
    std::string errors;
    bool ok = import_onnx(b, options, m, errors);
    ok ? ++accepted : ++refused;
    EXPECT_EQ(ok, errors.empty());
    EXPECT_EQ(ok, !m.items.empty());
    EXPECT_TRUE(ok || errors.back() == '\n');
  };
  for (size_t n = 0; n < good.size(); ++n) attempt(good.substr(0, n));
  std::mt19937 random(1);
  auto pick = [&](size_t n) { return size_t(random() % n); };
  static const unsigned char kEdges[] = {0x00, 0x01, 0x7f, 0x80, 0xff, 0x0a, 0x12};
  for (int round = 0; round < 6000; ++round) {
    std::string bad = good;
    for (size_t k = 0, n = 1 + pick(3); k < n; ++k) {
      size_t at = pick(bad.size());
      switch (pick(4)) {
        case 0: bad[at] = char(bad[at] ^ (1 << pick(8))); break;
        case 1: bad[at] = char(kEdges[pick(std::size(kEdges))]); break;
        case 2: bad.erase(at, 1 + pick(8)); break;
        default: bad.insert(at, good.substr(pick(good.size()), 1 + pick(16)));
      }
      if (bad.empty()) bad = good;
    }
    attempt(bad);
  }
  EXPECT_GT(refused, 1000u);
  EXPECT_GT(accepted, 10u);
}

}  // namespace
}  // namespace mlc
