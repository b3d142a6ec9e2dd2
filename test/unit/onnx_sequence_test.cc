// Sequences and optionals: as files of test data, and where an import ends them.
#include <gtest/gtest.h>

#include "onnx/tensor.h"
#include "unit/onnx_import.h"

namespace mlc {
namespace {

// ---- files

onnx::Type tensor_type() {
  onnx::Type t;
  t.kind = onnx::Type::Tensor;
  return t;
}
onnx::Type of(onnx::Type::Kind kind, const onnx::Type &inner) {
  onnx::Type t;
  t.kind = kind, t.of = {inner};
  return t;
}
Message floats(const std::vector<float> &v) {
  Message m = Message().number(1, int64_t(v.size())).number(2, kFloat);
  for (float x : v) m.real(4, x);
  return m;
}

std::string read(const Message &file, const onnx::Type &type) {
  onnx::Datum d;
  std::string error, out;
  if (!onnx::read_datum_file(file.data, type, d, error)) return error;
  if (d.none) out += "none";
  for (const Array &a : d.arrays) out += fmt::format("[{}]", a.size());
  return out;
}

TEST(OnnxSequence, Files) {
  onnx::Type sequence = of(onnx::Type::Sequence, tensor_type()), optional = of(onnx::Type::Optional, tensor_type()),
             both = of(onnx::Type::Optional, sequence);
  Message two = Message().number(2, 1).part(3, floats({1, 2})).part(3, floats({3}));
  EXPECT_EQ(read(floats({1, 2, 3}), tensor_type()), "[3]");
  EXPECT_EQ(read(two, sequence), "[2][1]");
  EXPECT_EQ(read(Message().number(2, 1), sequence), "");
  EXPECT_EQ(read(Message().number(2, 1).part(3, floats({1})), optional), "[1]");
  EXPECT_EQ(read(Message().number(2, 1), optional), "none");
  EXPECT_EQ(read(Message().number(2, 3).part(5, two), both), "[2][1]");
  EXPECT_EQ(read(Message().number(2, 3).part(5, Message()), both), "");
  EXPECT_EQ(read(Message(), both), "none");
}

TEST(OnnxSequence, BadFiles) {
  onnx::Type sequence = of(onnx::Type::Sequence, tensor_type()), map = of(onnx::Type::Map, tensor_type());
  EXPECT_EQ(read(Message(), map), "values of this type");
  EXPECT_EQ(read(Message(), of(onnx::Type::Sequence, sequence)), "values of this type");
  Message cut = Message().part(3, floats({1, 2}));
  cut.data.pop_back();
  EXPECT_EQ(read(cut, sequence), "byte 0: the file is cut off, or a length in it is wrong");
  EXPECT_EQ(read(Message().part(3, Message().number(1, 2).number(2, kFloat).real(4, 1)), sequence),
            "it holds 4 bytes of elements, its shape needs 8");
}

// ---- imports

Message type_of(int64_t kind, const Message &inner) { return Message().part(uint32_t(kind), Message().part(1, inner)); }
Message floats_type(const Strings &dims) {
  Message shape;
  for (auto &d : dims) shape.part(1, isdigit(d[0]) ? Message().number(1, stoll(d)) : Message().text(2, d));
  return Message().part(1, Message().number(1, kFloat).part(2, shape));
}
Message typed(const std::string &name, const Message &type) { return Message().text(1, name).part(2, type); }
Message scalar(const std::string &name, int64_t v) { return tensor(name, kI64, {}, bytes<int64_t>({v})); }
Message untyped(const std::string &name) { return Message().text(1, name); }

std::string imported(const std::vector<Message> &nodes, const std::vector<Message> &inputs, const std::string &output,
                     std::map<std::string, std::string> bind = {}, std::vector<Message> inits = {}) {
  return statements(import_model(model(17, {nodes, inputs, {untyped(output)}, std::move(inits), {}}), std::move(bind)));
}

// A loop of `turns` that puts x behind a sequence.
std::string grown(const std::vector<Message> &inputs, const std::string &turns, const std::string &go,
                  std::map<std::string, std::string> bind = {}) {
  Message body = Graph{{node("SequenceInsert", {"q", "x"}, {"q1"}, {}, "grow"), node("Identity", {"c"}, {"c1"})},
                       {value("i", kI64, {}), value("c", kBool, {}), untyped("q")},
                       {untyped("c1"), untyped("q1")},
                       {},
                       {}}
                     .message();
  return imported({node("SequenceEmpty", {}, {"e"}), node("Loop", {turns, go, "e"}, {"s"}, {graph_attr("body", body)}, "l"),
                   node("ConcatFromSequence", {"s"}, {"y"}, {int_attr("axis", 0)})},
                  inputs, "y", std::move(bind));
}

TEST(OnnxSequence, LoopsThatGrowASequence) {
  Message x = value("x", kFloat, {"2"}), n = value("n", kI64, {}), go = value("go", kBool, {});
  EXPECT_EQ(grown({x, n}, "n", "", {{"n", "3"}}), "y: f32[6] = Concat(x, x, x) {axis = 0} from \"y\"\n");
  EXPECT_EQ(grown({x, n}, "n", ""),
            "not supported here: node \"l\" (Loop, opset 17): a carried value is a sequence of 0 elements, and a "
            "sequence of 1 element after a turn; --bind may give the number of turns or the condition\n");
  EXPECT_EQ(grown({x, n, go}, "n", "go", {{"n", "3"}}),
            "not supported here: node \"l\" (Loop, opset 17): a carried value is a sequence of 0 elements, and a "
            "sequence of 1 element after a turn; --bind may give the number of turns or the condition\n");
  for (const char *turns : {"1000000000000", "4097"})
    EXPECT_EQ(grown({x, n}, "n", "", {{"n", turns}}),
              "not supported here: node \"l\" (Loop, opset 17): a carried value is a sequence of 0 elements, and a "
              "sequence of 1 element after a turn, and there are more than 4096 turns\n");
}

TEST(OnnxSequence, LoopsThatCarryASequenceOfOneLength) {  // stay loops
  Message body = Graph{{node("SequenceAt", {"q", "first"}, {"a"}), node("SequenceErase", {"q", "first"}, {"r"}),
                        node("Add", {"a", "x"}, {"b"}, {}, "add"), node("SequenceInsert", {"r", "b"}, {"q1"})},
                       {value("i", kI64, {}), value("c", kBool, {}), untyped("q")},
                       {untyped("c"), untyped("q1")},
                       {scalar("first", 0)},
                       {}}
                     .message();
  EXPECT_EQ(imported({node("SequenceConstruct", {"x", "z"}, {"s"}),
                      node("Loop", {"n", "", "s"}, {"t"}, {graph_attr("body", body)}, "l"),
                      node("ConcatFromSequence", {"t"}, {"y"}, {int_attr("axis", 0)})},
                     {value("x", kFloat, {"2"}), value("z", kFloat, {"2"}), value("n", kI64, {})}, "y"),
            "n_item: index = Item(n) from \"l\"\n"
            "t_0: f32[2], t_1: f32[2] = loop i in max(n_item, 0) carry q: f32[2] = x, q_1: f32[2] = z {\n"
            "  b: f32[2] = Add(q, x) from \"add\"\n"
            "  yield q_1, b\n"
            "} from \"l\"\n"
            "y: f32[4] = Concat(t_0, t_1) {axis = 0} from \"y\"\n");
}

TEST(OnnxSequence, BranchesOfSequences) {
  auto branch = [](const Strings &items) {
    return Graph{{node("SequenceConstruct", items, {"r"})}, {}, {untyped("r")}, {}, {}}.message();
  };
  auto chosen = [&](const Strings &then, const Strings &other) {
    return imported({node("If", {"c"}, {"s"},
                          {graph_attr("then_branch", branch(then)), graph_attr("else_branch", branch(other))}, "if"),
                     node("ConcatFromSequence", {"s"}, {"y"}, {int_attr("axis", 0)})},
                    {value("c", kBool, {}), value("x", kFloat, {"2"}), value("z", kFloat, {"3"})}, "y");
  };
  EXPECT_EQ(chosen({"x", "z"}, {"z", "z"}),
            "m: index, s_0: f32[m], s_1: f32[3] = if c {\n"
            "  yield 2, x, z\n"
            "} else {\n"
            "  yield 3, z, z\n"
            "} from \"if\"\n"
            "y: f32[m + 3] = Concat(s_0, s_1) {axis = 0} from \"y\"\n");
  EXPECT_EQ(chosen({"x"}, {"x", "z"}),
            "not supported here: node \"if\" (If, opset 17): output 0: the branches give a sequence of 1 element and a "
            "sequence of 2 elements; --bind may decide the condition\n");
}

TEST(OnnxSequence, OptionalInputs) {
  Message tensor = typed("o", type_of(9, floats_type({"n"}))),
          sequence = typed("o", type_of(9, type_of(4, floats_type({"2"}))));
  std::vector<Message> has = {node("OptionalHasElement", {"o"}, {"y"})};
  EXPECT_EQ(imported(has, {tensor}, "y", {{"o", "none"}}), "y: bool[] = Identity(@false)\n");
  EXPECT_EQ(imported(has, {sequence}, "y", {{"o", "0"}}), "y: bool[] = Identity(@true)\n");
  EXPECT_EQ(imported({node("OptionalGetElement", {"o"}, {"y"})}, {tensor}, "y", {{"o", "1"}}),
            "y: f32[n] = Identity(o)\n");
  EXPECT_EQ(imported({node("OptionalGetElement", {"o"}, {"y"}, {}, "get")}, {tensor}, "y", {{"o", "none"}}),
            "invalid model: node \"get\" (OptionalGetElement, opset 17): the element of an optional that holds none\n");
  EXPECT_EQ(imported({node("OptionalGetElement", {"o"}, {"s"}), node("SequenceAt", {"s", "at"}, {"y"})}, {sequence}, "y",
                     {{"o", "2"}}, {scalar("at", -1)}),
            "y: f32[2] = Identity(o_1)\n");
  for (const char *bad : {"-1", "[1]", "x", "[[-1]]", "4097", ""})
    EXPECT_NE(imported(has, {sequence}, "y", {{"o", bad}}).find("expected none, a number of elements below 4097"),
              std::string::npos);
  EXPECT_EQ(imported(has, {typed("o", type_of(5, floats_type({})))}, "y", {{"o", "1"}}),
            "not supported here: input \"o\": a map\n");
}

}  // namespace
}  // namespace mlc
