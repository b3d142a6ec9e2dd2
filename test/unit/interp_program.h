// A module's text run in the interpreter, and arrays written by hand.
#pragma once
#include <gtest/gtest.h>

#include <cstring>

#include "interp/interp.h"
#include "text/text.h"

namespace mlc {

struct Program {
  explicit Program(const std::string &text)
      : source(Source::from_string("test", "mlc 1\n\n" + text)), diag("test", &source) {
    if (!read(b, source, m, diag)) ADD_FAILURE() << diag.messages()[0];
  }
  // "" and the outputs, or the fault's message.
  std::string run(const std::string &name, const std::vector<Array> &inputs) {
    const Func *f = m.func(b.sym(name));
    if (!f) return "no function " + name;
    RunFault fault;
    outputs.clear();
    if (mlc::run(b, m, *f, inputs, options, outputs, fault)) return "";
    line = fault.at == kNowhere ? 0 : source.place(fault.at).line;
    return fault.message;
  }
  Source source;
  Diag diag;
  Build b;
  Module m;
  RunOptions options;
  std::vector<Array> outputs;
  uint32_t line = 0;
};

template <class T> inline Array array(DType t, std::vector<int64_t> dims, std::vector<T> values) {
  Array a(t, std::move(dims));
  memcpy(a.bytes.data(), values.data(), a.bytes.size());
  return a;
}
inline Array f32(std::vector<int64_t> dims, std::vector<float> v) {
  return array<float>(DType::F32, std::move(dims), std::move(v));
}
inline Array i64(std::vector<int64_t> dims, std::vector<int64_t> v) {
  return array<int64_t>(DType::I64, std::move(dims), std::move(v));
}
inline Array scalar(DType t, Scalar v) {
  Array a(t, {});
  a.set(0, v);
  return a;
}
inline std::vector<double> numbers(const Array &a) {
  std::vector<double> v;
  for (int64_t i = 0; i < a.size(); i++) v.push_back(to_double(a.type, a.get(i)));
  return v;
}
using V = std::vector<double>;

}  // namespace mlc
