#include "onnx/proto.h"

#include "onnx/wire.h"

namespace mlc::onnx {

namespace {

std::pair<Text, Text> read_pair(WireFile &file, Text message) {
  Fields f(file, message);
  std::pair<Text, Text> pair;
  while (f.next()) switch (f.tag()) {
      case 1: pair.first = f.bytes(); break;
      case 2: pair.second = f.bytes(); break;
      default: f.skip();
    }
  return pair;
}

Tensor read_tensor(WireFile &file, Text message) {
  Fields f(file, message);
  Tensor t;
  t.message = message;
  while (f.next()) switch (f.tag()) {
      case 1: f.each_integer([&](int64_t v) { t.dims.push_back(v); }); break;
      case 2: t.type = int32_t(f.integer()); break;
      case 3: t.segmented = true, f.skip(); break;
      case 8: t.name = f.bytes(); break;
      case 9: t.raw = f.bytes(), t.has_raw = true; break;
      case 13: t.where.push_back(read_pair(file, f.bytes())); break;
      case 14: t.external = f.integer() == 1; break;
      default: f.skip();
    }
  return t;
}

Dim read_dim(WireFile &file, Text message) {
  Fields f(file, message);
  Dim d;
  while (f.next()) switch (f.tag()) {
      case 1: d = {Dim::Value, f.integer(), {}}; break;
      case 2: d = {Dim::Param, 0, f.bytes()}; break;
      default: f.skip();
    }
  return d;
}

void read_shape(WireFile &file, Text message, Type &type) {
  Fields f(file, message);
  type.has_shape = true;
  while (f.next()) {
    if (f.tag() == 1) type.dims.push_back(read_dim(file, f.bytes()));
    else f.skip();
  }
}

void read_tensor_type(WireFile &file, Text message, Type &type) {
  Fields f(file, message);
  while (f.next()) switch (f.tag()) {
      case 1: type.elem = int32_t(f.integer()); break;
      case 2: read_shape(file, f.bytes(), type); break;
      default: f.skip();
    }
}

Type read_type(WireFile &file, Text message);

void read_element_type(WireFile &file, Text message, Type &type) {
  Fields f(file, message);
  while (f.next()) {
    if (f.tag() == 1) type.of = {read_type(file, f.bytes())};
    else f.skip();
  }
}

Type read_type(WireFile &file, Text message) {
  Fields f(file, message);
  Type type;
  while (f.next()) switch (f.tag()) {
      case 1: type.kind = Type::Tensor, read_tensor_type(file, f.bytes(), type); break;
      case 4: type.kind = Type::Sequence, read_element_type(file, f.bytes(), type); break;
      case 5: type.kind = Type::Map, f.skip(); break;
      case 7: type.kind = Type::Opaque, f.skip(); break;
      case 8: type.kind = Type::SparseTensor, f.skip(); break;
      case 9: type.kind = Type::Optional, read_element_type(file, f.bytes(), type); break;
      default: f.skip();
    }
  return type;
}

ValueInfo read_value(WireFile &file, Text message) {
  Fields f(file, message);
  ValueInfo v;
  while (f.next()) switch (f.tag()) {
      case 1: v.name = f.bytes(); break;
      case 2: v.type = read_type(file, f.bytes()); break;
      default: f.skip();
    }
  return v;
}

OpsetId read_opset(WireFile &file, Text message) {
  Fields f(file, message);
  OpsetId o;
  while (f.next()) switch (f.tag()) {
      case 1: o.domain = f.bytes(); break;
      case 2: o.version = f.integer(); break;
      default: f.skip();
    }
  return o;
}

Graph read_graph(WireFile &file, Text message);

AttrKind kind_numbered(int64_t n) {
  return n > 0 && n <= int64_t(AttrKind::TypeProtos) ? AttrKind(n) : AttrKind::Undefined;
}

Attribute read_attribute(WireFile &file, Text message) {
  Fields f(file, message);
  Attribute a;
  AttrKind seen = AttrKind::Undefined, said = AttrKind::Undefined;
  while (f.next()) {
    switch (f.tag()) {
      case 1: a.name = f.bytes(); break;
      case 2: a.f = f.number(), seen = AttrKind::Float; break;
      case 3: a.i = f.integer(), seen = AttrKind::Int; break;
      case 4: a.s = f.bytes(), seen = AttrKind::String; break;
      case 5: a.tensors.push_back(read_tensor(file, f.bytes())), seen = AttrKind::Tensor; break;
      case 6: a.graphs.push_back(read_graph(file, f.bytes())), seen = AttrKind::Graph; break;
      case 7: f.each_float([&](float v) { a.floats.push_back(v); }), seen = AttrKind::Floats; break;
      case 8: f.each_integer([&](int64_t v) { a.ints.push_back(v); }), seen = AttrKind::Ints; break;
      case 9: a.strings.push_back(f.bytes()), seen = AttrKind::Strings; break;
      case 10: a.tensors.push_back(read_tensor(file, f.bytes())), seen = AttrKind::Tensors; break;
      case 11: a.graphs.push_back(read_graph(file, f.bytes())), seen = AttrKind::Graphs; break;
      case 14: seen = AttrKind::TypeProto, f.skip(); break;
      case 15: seen = AttrKind::TypeProtos, f.skip(); break;
      case 20: said = kind_numbered(f.integer()); break;
      case 21: a.ref = f.bytes(); break;
      case 22: seen = AttrKind::SparseTensor, f.skip(); break;
      case 23: seen = AttrKind::SparseTensors, f.skip(); break;
      default: f.skip();
    }
  }
  // Files of IR version 1 do not say the kind; an empty list or a zero may have no field.
  a.kind = said != AttrKind::Undefined ? said : seen;
  bool one_tensor = a.kind == AttrKind::Tensor, one_graph = a.kind == AttrKind::Graph;
  if ((one_tensor && a.tensors.size() != 1) || (one_graph && a.graphs.size() != 1))
    f.fail(fmt::format("attribute of kind {} without its value", kind_name(a.kind)));
  return a;
}

Node read_node(WireFile &file, Text message) {
  Fields f(file, message);
  Node n;
  n.at = size_t(message.data() - file.base);
  while (f.next()) switch (f.tag()) {
      case 1: n.inputs.push_back(f.bytes()); break;
      case 2: n.outputs.push_back(f.bytes()); break;
      case 3: n.name = f.bytes(); break;
      case 4: n.op = f.bytes(); break;
      case 5: n.attributes.push_back(read_attribute(file, f.bytes())); break;
      case 7: n.domain = f.bytes(); break;
      case 8: n.overload = f.bytes(); break;
      default: f.skip();
    }
  return n;
}

void read_graph(WireFile &file, Text message, Graph &g) {
  Fields f(file, message);
  while (f.next()) switch (f.tag()) {
      case 1: g.nodes.push_back(read_node(file, f.bytes())); break;
      case 2: g.name = f.bytes(); break;
      case 5: g.initializers.push_back(read_tensor(file, f.bytes())); break;
      case 11: g.inputs.push_back(read_value(file, f.bytes())); break;
      case 12: g.outputs.push_back(read_value(file, f.bytes())); break;
      case 13: g.values.push_back(read_value(file, f.bytes())); break;
      case 15: g.sparse_initializers++, f.skip(); break;
      default: f.skip();
    }
}

Graph read_graph(WireFile &file, Text message) {
  Graph g;
  read_graph(file, message, g);
  return g;
}

Function read_function(WireFile &file, Text message) {
  Fields f(file, message);
  Function fn;
  while (f.next()) switch (f.tag()) {
      case 1: fn.name = f.bytes(); break;
      case 4: fn.inputs.push_back(f.bytes()); break;
      case 5: fn.outputs.push_back(f.bytes()); break;
      case 6: fn.attributes.push_back(f.bytes()); break;
      case 7: fn.nodes.push_back(read_node(file, f.bytes())); break;
      case 9: fn.opsets.push_back(read_opset(file, f.bytes())); break;
      case 10: fn.domain = f.bytes(); break;
      case 11: fn.defaults.push_back(read_attribute(file, f.bytes())); break;
      case 13: fn.overload = f.bytes(); break;
      default: f.skip();
    }
  return fn;
}

// Both messages keep a tensor and a sequence in fields of their own: those of a SequenceProto are 3 and 5, repeated.
void read_value(WireFile &file, Text message, const Type &type, std::vector<Tensor> &tensors, bool &none) {
  if (type.kind == Type::Tensor) return tensors.push_back(read_tensor(file, message));
  const Type *of = type.of.empty() ? nullptr : &type.of[0];
  bool flat = of && of->kind == Type::Tensor, optional = type.kind == Type::Optional;
  if (!of || (type.kind != Type::Sequence && !optional) || (!flat && (!optional || of->kind != Type::Sequence)))
    unsupported("values of this type");
  Fields f(file, message);
  none = optional;
  while (f.next()) {
    bool wanted = f.tag() == (flat ? 3 : 5);
    if (!wanted) {
      f.skip();
      continue;
    }
    bool nothing = false;
    read_value(file, f.bytes(), *of, tensors, nothing);
    none = false;
  }
}

void read_model(WireFile &file, Text message, Model &m) {
  Fields f(file, message);
  while (f.next()) switch (f.tag()) {
      case 1: m.ir_version = f.integer(); break;
      case 2: m.producer = f.bytes(); break;
      case 3: m.producer_version = f.bytes(); break;
      case 7: m.has_graph = true, read_graph(file, f.bytes(), m.graph); break;
      case 8: m.opsets.push_back(read_opset(file, f.bytes())); break;
      case 25: m.functions.push_back(read_function(file, f.bytes())); break;
      default: f.skip();
    }
}

}  // namespace

std::string_view kind_name(AttrKind k) {
  static constexpr std::string_view kNames[] = {
      "nothing", "float", "int", "string", "tensor", "graph", "floats", "ints", "strings", "tensors", "graphs",
      "sparse tensor", "sparse tensors", "type", "types"};
  return kNames[size_t(k)];
}

// read(wire) reads the whole file.
template <class F> static bool read_file(Text file, std::string &error, F read) {
  try {
    WireFile wire{file.data()};
    read(wire);
    return true;
  } catch (const std::runtime_error &e) {
    error = e.what();
    return false;
  }
}

bool read_model(Text file, Model &model, std::string &error) {
  return read_file(file, error, [&](WireFile &wire) { read_model(wire, file, model); });
}

bool read_tensor(Text file, Tensor &tensor, std::string &error) {
  return read_file(file, error, [&](WireFile &wire) { tensor = read_tensor(wire, file); });
}

bool read_tensors(Text file, const Type &type, std::vector<Tensor> &tensors, bool &none, std::string &error) {
  return read_file(file, error, [&](WireFile &wire) { read_value(wire, file, type, tensors, none); });
}

}  // namespace mlc::onnx
