#include "math/math.h"

#include <cstdlib>

#include "math/contract.h"
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
  std::vector<const Item *> text = m.items;
  for (const Item *i : text)
    if (auto *f = as<Func>(i))
      if (const Func *fused = contracted(b, m, *f)) m.add(fused);
  return m;
}

const Func *scalar_function(Build &b, const Module &math, std::string_view builtin, DType t, bool fused) {
  DType computed = is_small_float(t) ? DType::F32 : t;
  std::string_view dot = fused && computed == DType::F32 ? ".fma." : ".";
  const Func *f = math.func(b.sym(std::string(builtin).append(dot).append(dtype_name(computed))));
  return f || !fused ? f : scalar_function(b, math, builtin, t);
}

}  // namespace mlc
