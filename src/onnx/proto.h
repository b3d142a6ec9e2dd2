// Read-only views of an ONNX file (onnx.proto). Text and bytes point into the mapped file and are never copied; only
// what a graph is made of becomes structs. Any file is safe to read: sizes, nesting and the number of parts are
// bounded, and what is wrong comes back as one message with the byte where it is.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mlc::onnx {

using Text = std::string_view;

struct Tensor {
  Text name;
  int32_t type = 0;           // TensorProto.DataType (onnx/tensor.h)
  std::vector<int64_t> dims;
  bool has_raw = false, external = false, segmented = false;
  Text raw;                   // raw_data, in the file
  Text message;               // the whole TensorProto: the typed fields are decoded from it when they are wanted
  std::vector<std::pair<Text, Text>> where;  // external_data
};

struct Dim {
  enum Kind : uint8_t { Unknown, Value, Param } kind = Unknown;
  int64_t value = 0;
  Text param;
};
struct Type {
  enum Kind : uint8_t { None, Tensor, Sequence, Map, Optional, SparseTensor, Opaque } kind = None;
  int32_t elem = 0;           // of a tensor
  bool has_shape = false;
  std::vector<Dim> dims;
  std::vector<Type> of;       // one: what a sequence or an optional is of
};
struct ValueInfo {
  Text name;
  Type type;
};

enum class AttrKind : uint8_t {  // the numbers of AttributeProto.AttributeType
  Undefined, Float, Int, String, Tensor, Graph, Floats, Ints, Strings, Tensors, Graphs,
  SparseTensor, SparseTensors, TypeProto, TypeProtos,
};
std::string_view kind_name(AttrKind k);  // "float", "ints", ...

struct Graph;
struct Attribute {
  Text name, ref;             // ref: the attribute of the function around it that gives the value
  AttrKind kind = AttrKind::Undefined;
  float f = 0;
  int64_t i = 0;
  Text s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<Text> strings;
  std::vector<Tensor> tensors;  // of Tensor and Tensors
  std::vector<Graph> graphs;    // of Graph and Graphs
};
struct Node {
  std::vector<Text> inputs, outputs;
  Text name, op, domain, overload;
  std::vector<Attribute> attributes;
  size_t at = 0;              // byte of the file
};
struct Graph {
  Text name;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  size_t sparse_initializers = 0;
  std::vector<ValueInfo> inputs, outputs, values;
};
struct OpsetId {
  Text domain;
  int64_t version = 0;
};
struct Function {
  Text name, domain, overload;
  std::vector<Text> inputs, outputs, attributes;
  std::vector<Attribute> defaults;  // attribute_proto
  std::vector<Node> nodes;
  std::vector<OpsetId> opsets;
};
struct Model {
  int64_t ir_version = 0;
  Text producer, producer_version;
  std::vector<OpsetId> opsets;
  bool has_graph = false;
  Graph graph;
  std::vector<Function> functions;
};

// `file` must outlive the model. On failure the result is false and `error` is one line: "byte 123: ...".
bool read_model(Text file, Model &model, std::string &error);
// A file that holds one TensorProto: input_0.pb of a test data set.
bool read_tensor(Text file, Tensor &tensor, std::string &error);
// One that holds a value of `type`: a TensorProto, SequenceProto or OptionalProto. Its tensors in order; `none`: an
// optional that holds nothing.
bool read_tensors(Text file, const Type &type, std::vector<Tensor> &tensors, bool &none, std::string &error);

}  // namespace mlc::onnx
