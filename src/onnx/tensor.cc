#include "onnx/tensor.h"

#include <cstring>

#include "num/convert.h"
#include "onnx/error.h"
#include "onnx/wire.h"

namespace mlc::onnx {

namespace {

enum class Field : uint8_t { None = 0, Float = 4, Int32 = 5, String = 6, Int64 = 7, Double = 10, Uint64 = 11 };

struct ElemInfo {
  std::string_view name;
  DType type;
  Field field;  // where TensorProto keeps the elements if they are not raw
};
constexpr ElemInfo kElems[] = {
    {"undefined", DType::Invalid, Field::None},         {"float", DType::F32, Field::Float},
    {"uint8", DType::U8, Field::Int32},                 {"int8", DType::I8, Field::Int32},
    {"uint16", DType::U16, Field::Int32},               {"int16", DType::I16, Field::Int32},
    {"int32", DType::I32, Field::Int32},                {"int64", DType::I64, Field::Int64},
    {"string", DType::Str, Field::String},              {"bool", DType::Bool, Field::Int32},
    {"float16", DType::F16, Field::Int32},              {"double", DType::F64, Field::Double},
    {"uint32", DType::U32, Field::Uint64},              {"uint64", DType::U64, Field::Uint64},
    {"complex64", DType::Invalid, Field::None},         {"complex128", DType::Invalid, Field::None},
    {"bfloat16", DType::BF16, Field::Int32},            {"float8e4m3fn", DType::F8E4M3FN, Field::Int32},
    {"float8e4m3fnuz", DType::F8E4M3FNUZ, Field::Int32}, {"float8e5m2", DType::F8E5M2, Field::Int32},
    {"float8e5m2fnuz", DType::F8E5M2FNUZ, Field::Int32}, {"uint4", DType::U4, Field::Int32},
    {"int4", DType::I4, Field::Int32},                  {"float4e2m1", DType::F4E2M1, Field::Int32},
    {"float8e8m0", DType::F8E8M0, Field::Int32},        {"uint2", DType::U2, Field::Int32},
    {"int2", DType::I2, Field::Int32},                  {"float6e2m3", DType::Invalid, Field::None},
    {"float6e3m2", DType::Invalid, Field::None},
};
const ElemInfo *elem_info(int32_t type) {
  return type > 0 && size_t(type) < std::size(kElems) ? &kElems[type] : nullptr;
}

template <class T> void append(std::string &out, T v) {  // storage is little-endian, as the machines that mlc runs on
  out.append(reinterpret_cast<const char *>(&v), sizeof v);
}

void append_integer(std::string &out, DType type, int64_t v) {
  if (type == DType::Bool) v = v != 0;
  switch (info(type).bits) {  // an entry of a 4-bit or 2-bit type is a byte that holds two or four elements
    case 64: return append(out, v);
    case 32: return append(out, int32_t(v));
    case 16: return append(out, int16_t(v));
    default: return append(out, int8_t(v));
  }
}

std::string decode_field(const Tensor &t, const Extent &e) {
  std::string out;
  uint32_t field = uint32_t(elem_info(t.type)->field);
  WireFile wire{t.message.data()};
  Fields f(wire, t.message);
  auto room = [&] {
    if (int64_t(out.size()) >= e.bytes) invalid("it holds more than the {} elements of its shape", e.count);
  };
  while (f.next()) {
    if (f.tag() != field) {
      f.skip();
      continue;
    }
    switch (elem_info(t.type)->field) {
      case Field::Float: f.each_float([&](float v) { room(), append(out, v); }); break;
      case Field::Double: f.each_double([&](double v) { room(), append(out, v); }); break;
      default: f.each_integer([&](int64_t v) { room(), append_integer(out, e.type, v); }); break;
    }
  }
  if (int64_t(out.size()) != e.bytes)
    invalid("it holds {} bytes of elements, its shape needs {}", out.size(), e.bytes);
  return out;
}

}  // namespace

DType dtype_of(int32_t type) {
  const ElemInfo *e = elem_info(type);
  return e ? e->type : DType::Invalid;
}

std::string type_name(int32_t type) {
  const ElemInfo *e = elem_info(type);
  return e ? std::string(e->name) : type == 0 ? "undefined" : fmt::format("type {}", type);
}

DType need_dtype(int32_t type) {
  const ElemInfo *e = elem_info(type);
  if (!e) invalid("ONNX has no element type {}", type);
  if (e->type == DType::Invalid || e->type == DType::Str) unsupported("tensors of {}", e->name);
  return e->type;
}

Extent extent_of(const Tensor &t) {
  Extent e{need_dtype(t.type), 1, 0};
  for (int64_t d : t.dims)
    if (d < 0) invalid("a dimension is {}", d);
  for (int64_t d : t.dims)
    if (d == 0) e.count = 0;
  for (int64_t d : t.dims)
    if (e.count && __builtin_mul_overflow(e.count, d, &e.count)) invalid("its shape has more than 2^63 elements");
  e.bytes = storage_bytes(e.type, e.count);
  if (e.bytes < 0) invalid("its shape has more than 2^63 bytes");
  return e;
}

std::string decode(const Tensor &t) {
  Extent e = extent_of(t);
  if (t.segmented) unsupported("tensors in segments");
  if (!t.has_raw) return decode_field(t, e);
  if (int64_t(t.raw.size()) != e.bytes) invalid("it has {} raw bytes, its shape needs {}", t.raw.size(), e.bytes);
  std::string out(t.raw);
  if (e.type == DType::Bool)
    for (char &c : out) c = c != 0;
  return out;
}

}  // namespace mlc::onnx
