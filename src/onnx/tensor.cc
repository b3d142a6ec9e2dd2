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

// Elements come one by one; none is stored beyond what the shape has room for.
class Filler {
 public:
  explicit Filler(Array &array) : array_(array), bits_(info(array.type).bits) {}
  template <class T> void put(T v) { put_bytes(&v, sizeof v); }
  void put_integer(int64_t v) {  // an entry of a 4-bit or 2-bit type is a byte that holds two or four elements
    if (array_.type == DType::Bool) v = v != 0;
    put_bytes(&v, bits_ < 8 ? 1 : size_t(bits_ / 8));  // little-endian, as the machines that mlc runs on
  }
  size_t size() const { return at_; }

 private:
  void put_bytes(const void *p, size_t n) {
    if (array_.bytes.size() - at_ < n) invalid("it holds more elements than its shape");
    memcpy(array_.bytes.data() + at_, p, n);
    at_ += n;
  }
  Array &array_;
  int bits_;
  size_t at_ = 0;
};

Array decode_strings(const Tensor &t, const Extent &e) {
  if (e.count > int64_t(t.message.size())) invalid("it holds fewer elements than its shape");
  Array array(e.type, t.dims);
  size_t next = 0;
  WireFile wire{t.message.data()};
  Fields f(wire, t.message);
  while (f.next()) {
    if (f.tag() != uint32_t(Field::String)) {
      f.skip();
      continue;
    }
    if (next == array.strings.size()) invalid("it holds more elements than its shape");
    array.strings[next++] = f.bytes();
  }
  if (next != array.strings.size()) invalid("it holds {} strings, its shape needs {}", next, array.strings.size());
  return array;
}

Array decode_field(const Tensor &t, const Extent &e) {
  if (e.type == DType::Str) return decode_strings(t, e);
  // An entry takes at least a byte of the file: what has more elements than that is refused before memory is taken.
  if (e.bytes > 8 * int64_t(t.message.size())) invalid("it holds fewer elements than its shape");
  Array array(e.type, t.dims);
  Filler fill(array);
  Field field = elem_info(t.type)->field;
  WireFile wire{t.message.data()};
  Fields f(wire, t.message);
  while (f.next()) {
    if (f.tag() != uint32_t(field)) f.skip();
    else if (field == Field::Float) f.each_float([&](float v) { fill.put(v); });
    else if (field == Field::Double) f.each_double([&](double v) { fill.put(v); });
    else f.each_integer([&](int64_t v) { fill.put_integer(v); });
  }
  if (int64_t(fill.size()) != e.bytes)
    invalid("it holds {} bytes of elements, its shape needs {}", fill.size(), e.bytes);
  return array;
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
  if (e->type == DType::Invalid) unsupported("tensors of {}", e->name);
  return e->type;
}

Extent extent_of(const Tensor &t) {
  Extent e{need_dtype(t.type), element_count(t.dims), 0};
  for (int64_t d : t.dims)
    if (d < 0) invalid("a dimension is {}", d);
  bool strings = e.type == DType::Str;
  if (strings && (t.has_raw || t.external)) invalid("strings have no raw bytes");
  e.bytes = e.count < 0 ? -1 : strings ? 0 : storage_bytes(e.type, e.count);
  if (e.bytes < 0) invalid("its shape has more elements than memory could hold");
  return e;
}

Array decode(const Tensor &t) {
  if (t.segmented) unsupported("tensors in segments");
  return t.has_raw ? decode(t, t.raw) : decode_field(t, extent_of(t));
}

Array decode(const Tensor &t, std::string_view bytes) {
  Extent e = extent_of(t);
  if (int64_t(bytes.size()) != e.bytes) invalid("it has {} raw bytes, its shape needs {}", bytes.size(), e.bytes);
  Array array(e.type, t.dims);
  if (e.bytes) memcpy(array.bytes.data(), bytes.data(), bytes.size());
  if (e.type == DType::Bool)
    for (std::byte &v : array.bytes) v = std::byte(v != std::byte{0});
  return array;
}

bool read_tensor_file(std::string_view file, Array &array, std::string &error) {
  Datum d;
  Type type;
  type.kind = Type::Tensor;
  if (!read_datum_file(file, type, d, error)) return false;
  array = std::move(d.arrays[0]);
  return true;
}

bool read_datum_file(std::string_view file, const Type &type, Datum &datum, std::string &error) {
  std::vector<Tensor> tensors;
  if (!read_tensors(file, type, tensors, datum.none, error)) return false;
  try {
    for (const Tensor &t : tensors) datum.arrays.push_back(decode(t));
    return true;
  } catch (const std::runtime_error &e) {
    error = e.what();
    return false;
  }
}

}  // namespace mlc::onnx
