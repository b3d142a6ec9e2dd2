#include <unordered_map>

#include "ir/typing.h"

namespace mlc {

namespace {

using enum Signature;
constexpr bool kLibrary = true;

// Floats of fewer than 32 bits are computed in f32 and rounded; integers are narrowed to their type, as
// man/mlc-numerics.7 says.
constexpr Builtin kBuiltins[] = {
    // Primitives: every interpreter and emitter has them.
    {"max", 2, Same, false},          // NaN wins; the sign of a zero is not specified
    {"min", 2, Same, false},
    {"clamp", 3, Same, false},        // min(max(x, lo), hi)
    {"abs", 1, Same, false},          // of the least integer: itself
    {"fmod", 2, Same, false},         // sign of the dividend, exact; integers by zero: 0
    {"where", 3, Where, false},       // only the side chosen is evaluated
    {"floor", 1, SameFloat, false},
    {"ceil", 1, SameFloat, false},
    {"trunc", 1, SameFloat, false},
    {"round_even", 1, SameFloat, false},
    {"sqrt", 1, SameFloat, false},
    {"fma", 3, SameFloat, false},     // a * b + c, rounded once
    {"isnan", 1, Test, false},
    {"isinf", 1, Test, false},
    {"ipow", 2, SameInt, false},      // modulo 2^n; a negative exponent: 1 / x^-n truncated, 0 for x = 0
    {"shl", 2, SameInt, false},       // by the width or more (or less than 0): 0
    {"shr", 2, SameInt, false},       // arithmetic if signed; by the width or more: 0
    {"bitand", 2, SameInt, false},
    {"bitor", 2, SameInt, false},
    {"bitxor", 2, SameInt, false},
    {"bitnot", 1, SameInt, false},
    {"bits", 1, Bits, false},         // written bits.T
    // Text: src/math/math.mlc.
    {"exp", 1, SameFloat, kLibrary},
    {"expm1", 1, SameFloat, kLibrary},
    {"log", 1, SameFloat, kLibrary},
    {"log1p", 1, SameFloat, kLibrary},
    {"sigmoid", 1, SameFloat, kLibrary},
    {"softplus", 1, SameFloat, kLibrary},
    {"erf", 1, SameFloat, kLibrary},
    {"rsqrt", 1, SameFloat, kLibrary},
    {"pow", 2, SameFloat, kLibrary},
    {"sin", 1, SameFloat, kLibrary},
    {"cos", 1, SameFloat, kLibrary},
    {"tan", 1, SameFloat, kLibrary},
    {"asin", 1, SameFloat, kLibrary},
    {"acos", 1, SameFloat, kLibrary},
    {"atan", 1, SameFloat, kLibrary},
    {"sinh", 1, SameFloat, kLibrary},
    {"cosh", 1, SameFloat, kLibrary},
    {"tanh", 1, SameFloat, kLibrary},
    {"asinh", 1, SameFloat, kLibrary},
    {"acosh", 1, SameFloat, kLibrary},
    {"atanh", 1, SameFloat, kLibrary},
};

}  // namespace

std::span<const Builtin> builtins() { return kBuiltins; }

const Builtin *builtin(std::string_view name) {
  static const auto *table = [] {
    auto *t = new std::unordered_map<std::string_view, const Builtin *>;
    for (const Builtin &b : kBuiltins) t->emplace(b.name, &b);
    return t;
  }();
  if (name.starts_with("bits.")) name = name.substr(0, 4);
  auto it = table->find(name);
  return it == table->end() ? nullptr : it->second;
}

bool is_reduction(std::string_view name) {
  for (std::string_view r : {"sum", "prod", "max", "min", "all", "any"})
    if (name == r) return true;
  return false;
}

}  // namespace mlc
