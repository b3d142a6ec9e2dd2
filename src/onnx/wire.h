// The fields of one protobuf message, over protozero: every access checks the wire type, and every error knows its
// byte.
#pragma once
#include <fmt/core.h>
#include <protozero/pbf_reader.hpp>

#include <string_view>

#include "onnx/error.h"

namespace mlc::onnx {

struct WireFile {                 // shared by all messages of a file
  const char *base;
  size_t parts = size_t(1) << 22; // how many messages may still become structs: bounds memory for hostile files
  int depth = 0;                  // of nesting; bounds the stack
};

class Fields {
 public:
  Fields(WireFile &file, std::string_view message) : file_(file), reader_(message.data(), message.size()) {
    if (!file_.parts--) fail("more than 4194304 nodes, attributes, tensors and values");
    if (++file_.depth > 100) fail("messages nest deeper than 100");
  }
  ~Fields() { file_.depth--; }
  Fields(const Fields &) = delete;
  Fields &operator=(const Fields &) = delete;

  bool next() {
    at_ = reader_.data().data();
    return guard([&] { return reader_.next(); });
  }
  uint32_t tag() const { return reader_.tag(); }
  void skip() { guard([&] { return reader_.skip(), 0; }); }

  std::string_view bytes() {
    want(protozero::pbf_wire_type::length_delimited, "bytes");
    auto v = guard([&] { return reader_.get_view(); });
    return {v.data(), v.size()};
  }
  int64_t integer() {
    want(protozero::pbf_wire_type::varint, "an integer");
    return guard([&] { return reader_.get_int64(); });
  }
  float number() {
    want(protozero::pbf_wire_type::fixed32, "a float");
    return guard([&] { return reader_.get_float(); });
  }
  // Repeated numbers, packed or one by one: f(value) for each of this field.
  template <class F> void each_integer(F f) {
    if (reader_.wire_type() != protozero::pbf_wire_type::length_delimited) return f(integer());
    guard([&] {
      for (int64_t v : reader_.get_packed_int64()) f(v);
      return 0;
    });
  }
  template <class F> void each_float(F f) {
    if (reader_.wire_type() != protozero::pbf_wire_type::length_delimited) return f(number());
    guard([&] {
      for (float v : reader_.get_packed_float()) f(v);
      return 0;
    });
  }
  template <class F> void each_double(F f) {
    if (reader_.wire_type() == protozero::pbf_wire_type::length_delimited)
      return guard([&] {
        for (double v : reader_.get_packed_double()) f(v);
        return void();
      });
    want(protozero::pbf_wire_type::fixed64, "a double");
    f(guard([&] { return reader_.get_double(); }));
  }

  [[noreturn]] void fail(std::string_view what) const {
    invalid("byte {}: {}", (at_ ? at_ : reader_.data().data()) - file_.base, what);
  }

 private:
  void want(protozero::pbf_wire_type type, const char *what) {
    if (reader_.wire_type() != type) fail(fmt::format("field {} should hold {}", tag(), what));
  }
  template <class F> auto guard(F f) -> decltype(f()) {
    try {
      return f();
    } catch (const protozero::end_of_buffer_exception &) {
      fail("the file is cut off, or a length in it is wrong");
    } catch (const protozero::exception &e) {
      fail(fmt::format("not a protobuf field ({})", e.what()));
    }
  }

  WireFile &file_;
  protozero::pbf_reader reader_;
  const char *at_ = nullptr;
};

}  // namespace mlc::onnx
