#include <gtest/gtest.h>

#include <cmath>

#include "onnx/proto.h"
#include "onnx/schema.h"
#include "onnx/tensor.h"
#include "unit/onnx_import.h"

namespace mlc {
namespace {

// ---- the file format

TEST(OnnxProto, ReadsAModelInPlace) {
  std::string file = model(17, {{node("Gemm", {"x", "w"}, {"y"}, {int_attr("transB", 1)}, "/fc")},
                                {value("x", kFloat, {"n", "4"})},
                                {value("y", kFloat, {"n", "2"})},
                                {floats("w", {1, 2, 3, 4, 5, 6, 7, 8})},
                                {}});
  onnx::Model m;
  std::string error;
  ASSERT_TRUE(onnx::read_model(file, m, error)) << error;
  EXPECT_EQ(m.ir_version, 8);
  ASSERT_EQ(m.graph.nodes.size(), 1u);
  EXPECT_EQ(m.graph.nodes[0].op, "Gemm");
  EXPECT_EQ(m.graph.nodes[0].name, "/fc");
  EXPECT_EQ(m.graph.nodes[0].attributes[0].i, 1);
  EXPECT_EQ(m.graph.inputs[0].type.dims[0].param, "n");
  EXPECT_EQ(m.graph.inputs[0].type.dims[1].value, 4);
  const onnx::Tensor &w = m.graph.initializers[0];
  EXPECT_GE(w.raw.data(), file.data());
  EXPECT_EQ(file.find(bytes<float>({1, 2, 3})), size_t(w.raw.data() - file.data()));
}

TEST(OnnxProto, SaysWhichByteIsWrong) {
  onnx::Model m;
  std::string error;
  EXPECT_FALSE(onnx::read_model("\x3a\x7f", m, error));
  EXPECT_EQ(error, "byte 0: the file is cut off, or a length in it is wrong");
  error.clear();
  EXPECT_FALSE(onnx::read_model("\x08\x08\x38\x01", m, error));  // the graph as a number
  EXPECT_EQ(error, "byte 2: field 7 should hold bytes");
}

TEST(OnnxProto, RefusesDeepNesting) {
  Message g = Graph{{}, {}, {value("y", kFloat, {})}, {}, {}}.message();
  for (int i = 0; i < 200; ++i)
    g = Graph{{node("If", {"c"}, {"y"}, {graph_attr("then_branch", g)})}, {}, {}, {}, {}}.message();
  onnx::Model m;
  std::string error;
  EXPECT_FALSE(onnx::read_model(Message().part(7, g).data, m, error));
  EXPECT_NE(error.find("nest deeper than 100"), std::string::npos) << error;
}

TEST(OnnxSchema, KnowsOperatorsAndAttributesByOpset) {
  ASSERT_NE(onnx::find_schema("Gelu"), nullptr);
  EXPECT_EQ(onnx::find_schema("Gelu")->first, 20);
  EXPECT_EQ(onnx::find_schema("gelu"), nullptr);
  const onnx::Schema *s = onnx::find_schema("BatchNormalization");
  EXPECT_TRUE(s->has("spatial", 8));
  EXPECT_FALSE(s->has("spatial", 9));
  EXPECT_FALSE(s->has("training_mode", 13));
  EXPECT_TRUE(s->has("training_mode", 14));
  EXPECT_TRUE(s->has("epsilon", 1));
}

// ---- tensors

Array decoded(const Message &t) {
  Array a;
  std::string error;
  EXPECT_TRUE(onnx::read_tensor_file(t.data, a, error)) << error;
  return a;
}

std::string refusal(const Message &t) {
  Array a;
  std::string error;
  EXPECT_FALSE(onnx::read_tensor_file(t.data, a, error));
  return error;
}

TEST(OnnxTensor, TypedFieldsOfAllTypes) {
  auto typed = [](int64_t elem, const Ints &dims, uint32_t field, const Ints &v) {
    Message m;
    for (int64_t d : dims) m.number(1, d);
    return m.number(2, elem).packed(field, v);
  };
  Array a = decoded(typed(kF16, {2}, 5, {0x3c00, 0xc000}));
  EXPECT_EQ(a.get(0).as_f32(), 1.0f);
  EXPECT_EQ(a.get(1).as_f32(), -2.0f);
  a = decoded(typed(16, {1}, 5, {0x4049}));  // bfloat16
  EXPECT_EQ(a.get(0).as_f32(), 3.140625f);
  a = decoded(typed(17, {1}, 5, {0x38}));  // float8e4m3fn
  EXPECT_EQ(a.get(0).as_f32(), 1.0f);
  a = decoded(typed(22, {3}, 5, {0x7f, 0x08}));  // int4, two in an entry: -1, 7, -8
  EXPECT_EQ(a.get(0).as_int(), -1);
  EXPECT_EQ(a.get(1).as_int(), 7);
  EXPECT_EQ(a.get(2).as_int(), -8);
  a = decoded(typed(25, {4}, 5, {0xe4}));  // uint2: 0, 1, 2, 3
  EXPECT_EQ(a.get(3).as_int(), 3);
  a = decoded(typed(3, {2}, 5, {-1, 127}));  // int8
  EXPECT_EQ(a.get(0).as_int(), -1);
  a = decoded(typed(kBool, {3}, 5, {0, 1, 5}));
  EXPECT_EQ(a.get(2).as_int(), 1);
  a = decoded(typed(12, {1}, 11, {4294967295}));  // uint32
  EXPECT_EQ(a.get(0).as_uint(), 4294967295u);
  a = decoded(typed(13, {1}, 11, {-1}));  // uint64
  EXPECT_EQ(a.get(0).as_uint(), UINT64_MAX);
  a = decoded(typed(kI64, {2}, 7, {INT64_MIN, INT64_MAX}));
  EXPECT_EQ(a.get(0).as_int(), INT64_MIN);
  Message d = Message().number(1, 2).number(2, kDouble);
  pbf_writer(d.data).add_double(10, 0.5);  // not packed
  pbf_writer(d.data).add_double(10, -1e300);
  EXPECT_EQ(decoded(d).get(1).as_f64(), -1e300);
}

TEST(OnnxTensor, SizesMustFit) {
  EXPECT_EQ(refusal(tensor("", kFloat, {3}, bytes<float>({1, 2}))), "it has 8 raw bytes, its shape needs 12");
  EXPECT_EQ(refusal(tensor("", kFloat, {-1}, "")), "a dimension is -1");
  EXPECT_EQ(refusal(tensor("", kFloat, {1 << 30, 1 << 30, 1 << 30}, "")),
            "its shape has more elements than memory could hold");
  EXPECT_EQ(refusal(tensor("", kFloat, {1LL << 40}, "")), "it has 0 raw bytes, its shape needs 4398046511104");
  EXPECT_EQ(refusal(Message().number(1, 1LL << 40).number(2, kFloat)), "it holds fewer elements than its shape");
  EXPECT_EQ(refusal(Message().number(1, 1).number(2, kI64).packed(7, {1, 2})), "it holds more elements than its shape");
  EXPECT_EQ(refusal(Message().number(1, 1).number(2, 77)), "ONNX has no element type 77");
  EXPECT_EQ(refusal(Message().number(1, 1).number(2, kString)), "it holds 0 strings, its shape needs 1");
  EXPECT_EQ(refusal(Message().number(1, 1).number(2, kString).text(6, "a").text(6, "b")),
            "it holds more elements than its shape");
  EXPECT_EQ(refusal(Message().number(1, 1).number(2, kString).text(9, "a")), "strings have no raw bytes");
  EXPECT_EQ(refusal(Message().number(1, int64_t{1} << 40).number(2, kString).text(6, "a")),
            "it holds fewer elements than its shape");
  EXPECT_EQ(refusal(Message().number(1, 1).number(2, 14)), "tensors of complex64");
}

// ---- the whole way

TEST(OnnxImport, WeightsStayInTheFile) {
  std::vector<float> w(32);
  for (int i = 0; i < 32; ++i) w[size_t(i)] = float(i);
  std::string file = model(17, {{node("Gemm", {"x", "fc.w", "b"}, {"h"}, {int_attr("transB", 1)}, "/fc/Gemm"),
                                 node("Relu", {"h"}, {"y"})},
                                {value("x", kFloat, {"n", "8"})},
                                {value("y", kFloat, {"n", "4"})},
                                {tensor("fc.w", kFloat, {4, 8}, bytes(w)), floats("b", {0.1f, -0.0f, INFINITY, 1e-5f})},
                                {}});
  Imported r = import_model(file);
  ASSERT_TRUE(r.ok) << r.errors;
  size_t at = file.find(bytes(w)), hash = r.text.find("sha256 = \"");
  ASSERT_NE(hash, std::string::npos);
  std::string expected = fmt::format(R"(mlc 1

file "m.onnx" {{bytes = {}, sha256 = "{}"}}
const @fc.w: f32[4, 8] = "m.onnx" at {} from "fc.w"
const @b: f32[4] = [0.1, -0.0, inf, 1e-05] from "b"

graph @main[n](x: f32[n, 8]) -> (y: f32[n, 4]) {{
  dataflow -> y {{
    h: f32[n, 4] = Gemm(x, @fc.w, @b) {{transB = 1}} from "/fc/Gemm"
    y: f32[n, 4] = Relu(h) from "y"
  }}
}}
)", file.size(), r.text.substr(hash + 10, 64), at);
  EXPECT_EQ(r.text, expected);
}

TEST(OnnxImport, ExternalDataBelowTheModelsFolder) {
  auto with = [](const std::string &location, const std::string &offset) {
    auto pair = [](const char *k, const std::string &v) { return Message().text(1, k).text(2, v); };
    Message t = Message().number(1, 32).number(2, kFloat).text(8, "w").number(14, 1);
    t.part(13, pair("location", location)).part(13, pair("offset", offset)).part(13, pair("length", "128"));
    return model(
        17, {{node("Add", {"x", "w"}, {"y"})}, {value("x", kFloat, {"32"})}, {value("y", kFloat, {"32"})}, {t}, {}});
  };
  Folder folder;
  std::filesystem::create_directory(folder.path + "/sub");
  folder.write("sub/w.bin", std::string(256, 1));
  folder.write("other.bin", std::string(256, 1));
  Imported r = import_file(folder.write("m.onnx", with("sub/w.bin", "64")));
  ASSERT_TRUE(r.ok) << r.errors;
  EXPECT_NE(r.text.find("file \"sub/w.bin\" {bytes = 256, "), std::string::npos) << r.text;
  EXPECT_NE(r.text.find("const @w: f32[32] = \"sub/w.bin\" at 64 from \"w\"\n"), std::string::npos) << r.text;
  EXPECT_EQ(r.text.find("m.onnx"), std::string::npos);

  std::string model_path = folder.path + "/sub/m.onnx";
  std::filesystem::create_symlink("../other.bin", folder.path + "/sub/link.bin");
  for (const char *bad : {"../other.bin", "/etc/passwd", "link.bin", "none.bin", ""}) {
    r = import_file(folder.write("sub/m.onnx", with(bad, "0")));
    EXPECT_FALSE(r.ok) << bad;
    EXPECT_EQ(r.errors.find("invalid model: node of \"y\" (Add, opset 17): external data: "), 0u) << r.errors;
  }
  r = import_file(folder.write("m.onnx", with("sub/w.bin", "200")));
  EXPECT_NE(r.errors.find("128 bytes at 200 are beyond the 256 bytes of \"sub/w.bin\""), std::string::npos) << r.errors;
  r = import_file(folder.write("m.onnx", with("sub/w.bin", "-4")));
  EXPECT_NE(r.errors.find("its external offset is \"-4\", not a size"), std::string::npos) << r.errors;
}

TEST(OnnxImport, TypedTensorsGoInlineOrToASideFile) {
  Ints many(1 << 17, 3);
  Message t = Message().number(1, int64_t(many.size())).number(2, kI64).text(8, "w").packed(7, many);
  std::string file =
      model(17, {{node("Add", {"x", "w"}, {"y"})}, {value("x", kI64, {"1"})}, {value("y", kI64, {"131072"})}, {t}, {}});
  Folder folder;
  Imported r = import_file(folder.write("m.onnx", file));
  EXPECT_EQ(r.errors,
            "not supported here: constant \"w\": its 131072 elements have no bytes in a file; --side FILE writes them "
            "to one\n");
  r = import_file(folder.path + "/m.onnx", {}, folder.path + "/w.side");
  ASSERT_TRUE(r.ok) << r.errors;
  EXPECT_NE(r.text.find("file \"w.side\" {bytes = 1048576, "), std::string::npos);
  EXPECT_NE(r.text.find("const @w: i64[131072] = \"w.side\" at 0 from \"w\"\n"), std::string::npos);
  EXPECT_EQ(std::filesystem::file_size(folder.path + "/w.side"), 1048576u);
}

TEST(OnnxImport, UnusedThingsAreNotLookedAt) {
  Message broken = tensor("unused", 77, {1LL << 40}, "x");
  Imported r = import_model(model(17, {{node("Relu", {"x"}, {"y"}), node("Nonsense", {"x"}, {"z"})},
                                       {value("x", kFloat, {"n"})}, {value("y", kFloat, {"n"})}, {broken}, {}}));
  EXPECT_EQ(statements(r), "y: f32[n] = Relu(x) from \"y\"\n");
}

TEST(OnnxImport, InitializersListedAsInputsAreConstants) {
  Imported r = import_model(model(6, {{node("Add", {"x", "w"}, {"y"})},
                                      {value("x", kFloat, {"2"}), value("w", kFloat, {"2"})},
                                      {value("y", kFloat, {"2"})}, {floats("w", {1, 2})}, {}}));
  ASSERT_TRUE(r.ok) << r.errors;
  EXPECT_NE(r.text.find("graph @main(x: f32[2]) -> "), std::string::npos) << r.text;
}

TEST(OnnxImport, NamesStayAsTheyAreAndApart) {
  // A dimension called like an input, odd characters, an output that is an input, one that is a constant, one twice.
  Imported r = import_model(model(17, {{node("Relu", {"a b/c"}, {"for"})},
                              {value("a b/c", kFloat, {"x", "?"}), value("x", kFloat, {"x"})},
                              {value("for", kFloat, {"x", "?"}), value("x", kFloat, {"x"}), value("k", kFloat, {"2"})},
                              {floats("k", {1, 2})}, {}}));
  ASSERT_TRUE(r.ok) << r.errors;
  EXPECT_NE(r.text.find("graph @main[x_1, d0]('a b/c': f32[x_1, d0], x: f32[x_1]) -> "
                        "('for': f32[x_1, d0], x_2: f32[x_1], k: f32[2]) {"), std::string::npos) << r.text;
  EXPECT_EQ(statements(r),
            "'for': f32[x_1, d0] = Relu('a b/c') from \"for\"\nx_2: f32[x_1] = Identity(x)\nk: f32[2] = Identity(@k)\n");
}

TEST(OnnxImport, BindFixesDimensionsAndInputs) {
  Graph g{{node("ReduceSum", {"x", "axes"}, {"y"})},
          {value("x", kFloat, {"n", "m", "?"}), value("axes", kI64, {"k"})},
          {Message().text(1, "y").part(2, Message().part(1, Message().number(1, kFloat)))}, {}, {}};
  Imported r = import_model(model(13, g), {{"n", "8"}, {"d0", "4"}, {"axes", "[0, -1]"}});
  EXPECT_EQ(statements(r), "y: f32[1, m, 1] = ReduceSum(x, [0, -1]) from \"y\"\n");
  EXPECT_NE(r.text.find("graph @main[m](x: f32[8, m, 4]) -> "), std::string::npos) << r.text;
  r = import_model(model(13, g));
  EXPECT_EQ(r.errors,
            "not supported here: node of \"y\" (ReduceSum, opset 13): input 1 (axes) must be known when compiling; "
            "--bind axes=VALUE fixes it\n");
  r = import_model(model(13, g), {{"q", "8"}, {"n", "-8"}});
  EXPECT_FALSE(r.ok);
  EXPECT_NE(r.errors.find("--bind n=-8: expected a size"), std::string::npos) << r.errors;
  r = import_model(model(13, g), {{"q", "8"}, {"axes", "[0.5]"}});
  EXPECT_NE(r.errors.find("--bind axes=[0.5]: expected numbers of type i64"), std::string::npos) << r.errors;
  EXPECT_NE(r.errors.find("--bind q=8: no dimension or input of that name"), std::string::npos) << r.errors;
}

TEST(OnnxImport, NodesAreSorted) {
  Graph g{{node("Add", {"t", "x"}, {"y"}, {}, "add"), node("Relu", {"x"}, {"t"}, {}, "relu")},
          {value("x", kFloat, {"n"})}, {value("y", kFloat, {"n"})}, {}, {}};
  EXPECT_EQ(statements(import_model(model(17, g))),
            "t: f32[n] = Relu(x) from \"relu\"\ny: f32[n] = Add(t, x) from \"add\"\n");
  g.nodes[1] = node("Relu", {"y"}, {"t"}, {}, "relu");
  EXPECT_EQ(import_model(model(17, g)).errors,
            "invalid model: a cycle of nodes: node \"add\" (Add), node \"relu\" (Relu)\n");
}

TEST(OnnxImport, ShapeComputationsBecomeIndexExpressions) {
  // x: f32[n, 3, 4] -> Reshape(x, Concat(Unsqueeze(Gather(Shape(x), 0) * 2), [-1]))
  Graph g{{node("Shape", {"x"}, {"s"}), node("Gather", {"s", "i0"}, {"n0"}), node("Mul", {"n0", "two"}, {"n2"}),
           node("Unsqueeze", {"n2", "axes"}, {"u"}), node("Concat", {"u", "rest"}, {"t"}, {int_attr("axis", 0)}),
           node("Reshape", {"x", "t"}, {"y"}, {}, "r")},
          {value("x", kFloat, {"n", "3", "4"})},
          {Message().text(1, "y").part(2, Message().part(1, Message().number(1, kFloat)))},
          {tensor("i0", kI64, {}, bytes<int64_t>({0})), tensor("two", kI64, {}, bytes<int64_t>({2})), i64s("axes", {0}),
           i64s("rest", {6})}, {}};
  EXPECT_EQ(statements(import_model(model(17, g))), "y: f32[n * 2, 6] = Reshape(x, [n * 2, 6]) from \"r\"\n");
}

// As exporters write the pads [first, .., last] of the last axis: [0, 128, 0, 128] from [128, 128, 0, 0], turned about.
TEST(OnnxImport, PadsOfAnExporterAreKnown) {
  Graph g{{node("Reshape", {"p", "pairs"}, {"r"}), node("Slice", {"r", "last", "least", "zero", "last"}, {"s"}),
           node("Transpose", {"s"}, {"t"}, {ints_attr("perm", {1, 0})}), node("Reshape", {"t", "last"}, {"f"}),
           node("Pad", {"x", "f"}, {"y"}, {}, "pad")},
          {value("x", kFloat, {"n", "8"})},
          {Message().text(1, "y").part(2, Message().part(1, Message().number(1, kFloat)))},
          {i64s("p", {128, 127, 0, 0}), i64s("pairs", {-1, 2}), i64s("last", {-1}), i64s("least", {INT64_MIN + 1}),
           i64s("zero", {0})}, {}};
  EXPECT_EQ(statements(import_model(model(17, g))), "y: f32[n, 263] = Pad(x, [0, 128, 0, 127]) from \"pad\"\n");
}

TEST(OnnxImport, ShapesOfTheRunningProgramAreRead) {
  std::string text = statements(import_model(one(13, node("Reshape", {"x", "s"}, {"y"}), {},
                                                 {value("x", kFloat, {"n", "12"}), value("s", kI64, {"2"})})));
  EXPECT_NE(text.find("Equal(s, 0)"), std::string::npos) << text;
  EXPECT_NE(text.find("Equal(s_2, -1)"), std::string::npos) << text;
  EXPECT_NE(text.find(": index = Item("), std::string::npos) << text;
  EXPECT_NE(text.find("assume "), std::string::npos) << text;
}

TEST(OnnxImport, AllProblemsInOneRun) {
  Message f32x = value("x", kFloat, {"n", "4"});
  Graph g{{node("Celu", {"x"}, {"a"}, {float_attr("alpha", 1), int_attr("beta", 1)}, "n1"),
           node("Gadget", {"x"}, {"b"}, {}, "n2"), node("Gelu", {"x"}, {"c"}, {}, "n3"),
           node("Foo", {"x"}, {"d"}, {}, "", "com.acme"), node("Relu", {"nowhere"}, {"e"}),
           node("TfIdfVectorizer", {"x"}, {"f"}, {}, "n6"), node("Sum", {"a", "b", "c", "d", "e", "f"}, {"y"})},
          {f32x}, {value("y", kFloat, {"n", "4"})}, {}, {}};
  Imported r = import_model(model(17, g));
  EXPECT_EQ(r.errors,
            "invalid model: node \"n1\" (Celu, opset 17): it has no attribute 'beta'\n"
            "invalid model: node \"n2\" (Gadget, opset 17): ONNX has no such operator\n"
            "invalid model: node \"n3\" (Gelu, opset 17): it came with opset 20\n"
            "invalid model: node of \"d\" (com.acme.Foo): the model imports no opset of domain \"com.acme\"\n"
            "invalid model: node of \"e\" (Relu, opset 17): value \"nowhere\" is not defined\n"
            "invalid model: node \"n6\" (TfIdfVectorizer, opset 17): attribute 'max_gram_length' is missing\n");
}

TEST(OnnxImport, DeclaredTypesMustNotContradict) {
  Graph g{{node("Relu", {"x"}, {"t"}, {}, "r"), node("Relu", {"t"}, {"y"})}, {value("x", kFloat, {"n", "4"})},
          {value("y", kFloat, {"n", "4"})}, {}, {value("t", kFloat, {"n", "5"})}};
  EXPECT_EQ(import_model(model(17, g)).errors,
            "invalid model: node \"r\" (Relu, opset 17): output \"t\" is declared as f32[n, 5], but it is f32[n, 4]\n");
  g.values = {value("t", kDouble, {"n", "4"})};
  EXPECT_FALSE(import_model(model(17, g)).ok);
  g.values = {value("t", kFloat, {"k", "?"})};
  EXPECT_TRUE(import_model(model(17, g)).ok);
}

TEST(OnnxImport, BadModels) {
  Graph ok{{node("Relu", {"x"}, {"y"})}, {value("x", kFloat, {"n"})}, {value("y", kFloat, {"n"})}, {}, {}};
  auto errors = [](const Graph &g, int64_t opset = 17) { return import_model(model(opset, g)).errors; };
  EXPECT_EQ(import_model("").errors, "the file is empty\n");
  EXPECT_EQ(import_model("garbage").errors.find("not an ONNX model: byte "), 0u);
  EXPECT_EQ(errors(ok, 29), "not supported here: opset 29: the newest known here is 28\n");
  EXPECT_EQ(errors(ok, 0), "invalid model: opset 0 of domain \"\"\n");
  Graph g = ok;
  g.inputs.push_back(value("x", kFloat, {"n"}));
  EXPECT_EQ(errors(g), "invalid model: input \"x\" is defined twice\n");
  g = ok, g.nodes.push_back(node("Neg", {"x"}, {"y"}));
  EXPECT_EQ(errors(g), "invalid model: value \"y\" is defined twice\n");
  g = ok, g.initializers = {floats("w", {1}), floats("w", {1})};
  EXPECT_EQ(errors(g), "invalid model: initializer \"w\" is defined twice\n");
  g = ok, g.outputs = {value("z", kFloat, {"n"})};
  EXPECT_EQ(errors(g), "invalid model: value \"z\" is not defined\n");
  g = ok, g.inputs = {value("x", kString, {"n"})};
  EXPECT_EQ(errors(g), "not supported here: node of \"y\" (Relu, opset 17): input 0 (x): expected num, found str\n");
  g = ok, g.inputs = {Message().text(1, "x").part(2, Message().part(4, Message()))};
  EXPECT_EQ(errors(g), "invalid model: input \"x\": it has no element type\n");
  g = ok, g.inputs = {Message().text(1, "x").part(2, Message().part(1, Message().number(1, kFloat)))};
  EXPECT_EQ(errors(g), "not supported here: input \"x\": a tensor whose rank is not known\n");
  g = ok, g.nodes = {node("Concat", {"x", "x"}, {"y"}, {text_attr("axis", "0")})};
  EXPECT_EQ(errors(g),
            "invalid model: node of \"y\" (Concat, opset 17): attribute 'axis': expected int, found string\n");
  g = ok, g.nodes = {node("Flatten", {"x"}, {"y"}, {int_attr("axis", 5)}, "flat")};
  EXPECT_EQ(errors(g).find("invalid model: node \"flat\" (Flatten, opset 17): "), 0u) << errors(g);
}

// ---- functions and control flow

TEST(OnnxImport, FunctionsAreWrittenInPlace) {
  // local.twice(a){alpha} = LeakyRelu(LeakyRelu(a, alpha), alpha)
  Message f = Message().text(1, "twice").text(4, "a").text(5, "b").text(6, "alpha").text(10, "local");
  f.part(7, node("LeakyRelu", {"a"}, {"t"}, {ref_attr("alpha", "alpha", 1)}, "first"));
  f.part(7, node("LeakyRelu", {"t"}, {"b"}, {ref_attr("alpha", "alpha", 1)}));
  f.part(9, Message().text(1, "").number(2, 16));
  Graph g{{node("twice", {"x"}, {"h"}, {float_attr("alpha", 0.5f)}, "f1", "local"),
           node("twice", {"h"}, {"y"}, {}, "f2", "local")},
          {value("x", kFloat, {"n"})},
          {value("y", kFloat, {"n"})},
          {},
          {}};
  EXPECT_EQ(
      statements(import_model(model(17, g, {f}))),
      "t: f32[n] = LeakyRelu(x) {alpha = 0.5} from \"f1/first\"\nh: f32[n] = LeakyRelu(t) {alpha = 0.5} from \"f1\"\n"
      "t_1: f32[n] = LeakyRelu(h) from \"f2/first\"\ny: f32[n] = LeakyRelu(t_1) from \"f2\"\n");
}

TEST(OnnxImport, FunctionsThatCallThemselvesEnd) {
  auto function = [](const std::string &name, const std::string &callee) {
    Message f = Message().text(1, name).text(4, "a").text(5, "b").text(10, "local");
    for (const char *out : {"t", "b"}) f.part(7, node(callee, {out[0] == 't' ? "a" : "t"}, {out}, {}, "", "local"));
    return f.part(9, Message().text(1, "local").number(2, 1));
  };
  Graph g{
      {node("f0", {"x"}, {"y"}, {}, "", "local")}, {value("x", kFloat, {"n"})}, {value("y", kFloat, {"n"})}, {}, {}};
  Imported r = import_model(model(17, g, {function("f0", "f0")}));
  EXPECT_NE(r.errors.find("function f0 calls itself"), std::string::npos) << r.errors;
  // Each calls the next twice: 2^40 nodes.
  std::vector<Message> chain;
  for (int i = 0; i < 40; ++i) chain.push_back(function("f" + std::to_string(i), "f" + std::to_string(i + 1)));
  Message last = Message().text(1, "f40").text(4, "a").text(5, "b").text(10, "local");
  chain.push_back(last.part(7, node("Relu", {"a"}, {"b"})).part(9, Message().text(1, "").number(2, 17)));
  r = import_model(model(17, g, chain));
  EXPECT_EQ(r.errors, "not supported here: too many nodes, once functions are in place and loops unrolled\n");
}

TEST(OnnxImport, IfBecomesAValue) {
  Message then = branch({node("Relu", {"x"}, {"a"}, {}, "then")}, "a");
  Message other = branch({node("Concat", {"x", "x"}, {"b"}, {int_attr("axis", 0)}, "else")}, "b");
  Message y = Message().text(1, "y").part(2, Message().part(1, Message().number(1, kFloat)));
  Graph g{{node("If", {"c"}, {"y"}, {graph_attr("then_branch", then), graph_attr("else_branch", other)}, "if")},
          {value("x", kFloat, {"n"}), value("c", kBool, {})}, {y}, {}, {}};
  Imported r = import_model(model(17, g));
  ASSERT_TRUE(r.ok) << r.errors;
  EXPECT_NE(
      r.text.find("  dataflow -> m, y {\n    m: index, y: f32[m] = if c {\n      a: f32[n] = Relu(x) from \"then\"\n"
                  "      yield n, a\n    } else {\n      b: f32[n * 2] = Concat(x, x) {axis = 0} from \"else\"\n"
                  "      yield n * 2, b\n    } from \"if\"\n"),
      std::string::npos)
      << r.text;
  // A condition that is known takes its branch.
  r = import_model(model(17, g), {{"c", "true"}});
  EXPECT_EQ(statements(r), "y: f32[n] = Relu(x) from \"then\"\n");
}

TEST(OnnxImport, LoopsCarryAndStack) {
  Graph body{
      {node("Identity", {"c"}, {"c1"}), node("Mul", {"s", "half"}, {"s1"}, {}, "mul"), node("Neg", {"s1"}, {"z"})},
      {value("i", kI64, {}), value("c", kBool, {}), value("s", kFloat, {"d"})},
      {Message().text(1, "c1"), Message().text(1, "s1"), Message().text(1, "z")},
      {tensor("half", kFloat, {}, bytes<float>({0.5f}))},
      {}};
  auto untyped = [](const char *name) {
    return Message().text(1, name).part(2, Message().part(1, Message().number(1, kFloat)));
  };
  Graph g{{node("Loop", {"trip", "", "x"}, {"last", "trace"}, {graph_attr("body", body.message())}, "loop")},
          {value("x", kFloat, {"d"}), value("trip", kI64, {})}, {untyped("last"), untyped("trace")}, {}, {}};
  Imported r = import_model(model(17, g));
  ASSERT_TRUE(r.ok) << r.errors;
  EXPECT_NE(
      r.text.find("last: f32[d], trace: f32[max(trip_item, 0), d] = loop i in max(trip_item, 0) carry s: f32[d] = x {\n"
                  "      s1: f32[d] = Mul(s, @half) from \"mul\"\n      z: f32[d] = Neg(s1) from \"z\"\n      yield s1\n"
                  "      stack z\n    } from \"loop\"\n"),
      std::string::npos)
      << r.text;
  // A carried value that grows: its size is carried too.
  body.nodes[1] = node("Concat", {"s", "s"}, {"s1"}, {int_attr("axis", 0)});
  body.outputs.pop_back(), body.nodes.pop_back();
  g.nodes[0] = node("Loop", {"trip", "", "x"}, {"last"}, {graph_attr("body", body.message())}, "loop");
  g.outputs.pop_back();
  r = import_model(model(17, g));
  ASSERT_TRUE(r.ok) << r.errors;
  EXPECT_NE(r.text.find("carry m: index = d, s_1: f32[m] = x {"), std::string::npos) << r.text;
  EXPECT_NE(r.text.find("yield m * 2, s1"), std::string::npos) << r.text;
}

}  // namespace
}  // namespace mlc
