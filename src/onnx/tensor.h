// TensorProto: its element type, its size and its elements.
#pragma once
#include <cstdint>
#include <string>

#include "data/array.h"
#include "onnx/proto.h"

namespace mlc::onnx {

// TensorProto.DataType: FLOAT is f32, INT4 is i4 ... Invalid for complex numbers, 6-bit floats and unknown numbers.
DType dtype_of(int32_t type);
std::string type_name(int32_t type);  // as ONNX calls it: "float16"; "type 99" if it has no such type
// The same, but throws: Unsupported for a type of ONNX's that mlc lacks, Invalid for others.
DType need_dtype(int32_t type);

struct Extent {
  DType type;
  int64_t count, bytes;  // elements; bytes of dense storage, none of strings
};
// Checked: no negative dimension, no overflow. Throws Invalid or Unsupported.
Extent extent_of(const Tensor &t);

// The elements, from raw_data or from the typed field that the element type asks for; not for external data. Throws
// Invalid if there are more or fewer than the shape says.
Array decode(const Tensor &t);
// The same from bytes that lie elsewhere: dense, little-endian, sub-byte types packed from the low bits.
Array decode(const Tensor &t, std::string_view bytes);

// An ONNX test's input_0.pb: a file that holds one TensorProto. False and one line if it does not.
bool read_tensor_file(std::string_view file, Array &array, std::string &error);

// One that holds a value of some type: a tensor, the elements of a sequence, or what an optional holds.
struct Datum {
  bool none = false;          // an optional that holds nothing
  std::vector<Array> arrays;
};
bool read_datum_file(std::string_view file, const Type &type, Datum &datum, std::string &error);

}  // namespace mlc::onnx
