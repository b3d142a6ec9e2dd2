#include "math/math.h"

#include <cstdlib>

#include "text/text.h"

namespace mlc {

extern const char math_text[];  // embedded by CMakeLists.txt

std::string_view math_text_view() { return math_text; }

Module math_module(Build &b) {
  static const Source source = Source::from_string("math.mlc", math_text_view());
  Module m;
  Diag diag("math", &source);
  if (!read(b, source, m, diag)) {
    diag.print(stderr);
    abort();
  }
  return m;
}

const Func *scalar_function(Build &b, const Module &math, std::string_view builtin, DType t) {
  std::string_view type = dtype_name(is_small_float(t) ? DType::F32 : t);
  return math.func(b.sym(std::string(builtin).append(".").append(type)));
}

}  // namespace mlc
