// ONNX models made by hand for tests: messages of onnx.proto as strings.
#pragma once
#include <protozero/pbf_writer.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace onnx_model {

using protozero::pbf_writer;
using Ints = std::vector<int64_t>;
using Strings = std::vector<std::string>;

struct Message {
  std::string data;
  Message &text(uint32_t tag, std::string_view v) {
    return pbf_writer(data).add_string(tag, v.data(), v.size()), *this;
  }
  Message &number(uint32_t tag, int64_t v) { return pbf_writer(data).add_int64(tag, v), *this; }
  Message &real(uint32_t tag, float v) { return pbf_writer(data).add_float(tag, v), *this; }
  Message &packed(uint32_t tag, const Ints &v) {
    return pbf_writer(data).add_packed_int64(tag, v.begin(), v.end()), *this;
  }
  Message &part(uint32_t tag, const Message &m) { return text(tag, m.data); }
};

enum Elem : int64_t { kFloat = 1, kI32 = 6, kI64 = 7, kString = 8, kBool = 9, kF16 = 10, kDouble = 11 };

inline Message int_attr(const std::string &name, int64_t v) {
  return Message().text(1, name).number(3, v).number(20, 2);
}
inline Message float_attr(const std::string &name, float v) { return Message().text(1, name).real(2, v).number(20, 1); }
inline Message text_attr(const std::string &name, const std::string &v) {
  return Message().text(1, name).text(4, v).number(20, 3);
}
inline Message ints_attr(const std::string &name, const Ints &v) {
  Message m = Message().text(1, name).number(20, 7);
  for (int64_t x : v) m.number(8, x);
  return m;
}
inline Message floats_attr(const std::string &name, const std::vector<float> &v) {
  Message m = Message().text(1, name).number(20, 6);
  for (float x : v) m.real(7, x);
  return m;
}
inline Message graph_attr(const std::string &name, const Message &g) {
  return Message().text(1, name).part(6, g).number(20, 5);
}
inline Message ref_attr(const std::string &name, const std::string &ref, int64_t kind) {
  return Message().text(1, name).text(21, ref).number(20, kind);
}

inline Message node(const std::string &op, const Strings &inputs, const Strings &outputs,
                    const std::vector<Message> &attrs = {}, const std::string &name = "",
                    const std::string &domain = "") {
  Message m;
  for (auto &i : inputs) m.text(1, i);
  for (auto &o : outputs) m.text(2, o);
  if (!name.empty()) m.text(3, name);
  m.text(4, op);
  for (auto &a : attrs) m.part(5, a);
  if (!domain.empty()) m.text(7, domain);
  return m;
}

// "n" is a dimension's name, "?" an unknown one, "3" a number.
inline Message value(const std::string &name, int64_t elem, const Strings &dims) {
  Message shape;
  for (auto &d : dims) {
    Message dim;
    if (isdigit(d[0]) || d[0] == '-') dim.number(1, stoll(d));
    else if (d != "?") dim.text(2, d);
    shape.part(1, dim);
  }
  return Message().text(1, name).part(2, Message().part(1, Message().number(1, elem).part(2, shape)));
}

inline Message tensor(const std::string &name, int64_t elem, const Ints &dims, const std::string &raw) {
  Message m;
  for (int64_t d : dims) m.number(1, d);
  return m.number(2, elem).text(8, name).text(9, raw);
}
template <class T> std::string bytes(const std::vector<T> &v) {
  return {reinterpret_cast<const char *>(v.data()), v.size() * sizeof(T)};
}
inline Message i64s(const std::string &name, const Ints &v) {
  return tensor(name, kI64, {int64_t(v.size())}, bytes(v));
}
inline Message floats(const std::string &name, const std::vector<float> &v) {
  return tensor(name, kFloat, {int64_t(v.size())}, bytes(v));
}

struct Graph {
  std::vector<Message> nodes, inputs, outputs, initializers, values;
  Message message() const {
    Message g;
    for (auto &n : nodes) g.part(1, n);
    g.text(2, "g");
    for (auto &t : initializers) g.part(5, t);
    for (auto &v : inputs) g.part(11, v);
    for (auto &v : outputs) g.part(12, v);
    for (auto &v : values) g.part(13, v);
    return g;
  }
};

inline std::string model(int64_t opset, const Graph &g, const std::vector<Message> &functions = {}) {
  Message m = Message().number(1, 8).part(7, g.message()).part(8, Message().text(1, "").number(2, opset));
  for (auto &f : functions) m.part(25, f);
  if (!functions.empty()) m.part(8, Message().text(1, "local").number(2, 1));
  return m.data;
}

}  // namespace onnx_model
