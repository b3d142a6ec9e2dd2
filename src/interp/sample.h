// Inputs for a function: what its parameters are at given sizes, and random values for them.
#pragma once
#include <map>
#include <random>
#include <string>
#include <vector>

#include "data/array.h"
#include "ir/build.h"

namespace mlc {

// A parameter that a caller gives (not `scratch`): its dimensions at these sizes.
struct InputSpec {
  const Param *param;
  DType type;
  std::vector<int64_t> dims;
};
// sizes: dimensions and index parameters of f by name. False and a message if one is missing or a dimension is
// negative.
bool input_specs(const Build &b, const Func &f, const std::map<std::string, int64_t> &sizes,
                 std::vector<InputSpec> &out, std::string &error);
// Sizes that follow from arrays for the first parameters; those known before must agree.
bool sizes_from(const Build &b, const Func &f, const std::vector<Array> &inputs, std::map<std::string, int64_t> &sizes,
                std::string &error);
// Names that input_specs needs: the dimensions of f, then its index parameters.
std::vector<std::string> size_names(const Build &b, const Func &f);
// `--bind typo: @main has no size typo, its sizes are n, h`
std::string no_such_size(const std::string &name, std::string_view function, const std::vector<std::string> &known);

// The same values on every machine. Floats are of both signs and of several magnitudes, integers small and at least 0
// where `indices`; `odd` mixes in NaN, inf, -0.0, denormals and the ends of integer types.
Array sample(DType t, const std::vector<int64_t> &dims, std::mt19937_64 &random, bool odd = false,
             bool indices = false);
// Subscripts of a dimension n that may count from its end: every second one is 0, n - 1, -1 or -n.
Array sample_subscripts(DType t, const std::vector<int64_t> &dims, std::mt19937_64 &random, int64_t n);

// `name: f32[2, 2] = [[1.0, 2.0], [3.0, 4.0]]`; beyond `most` elements the first few and an ellipsis.
std::string array_text(const std::string &name, const Array &a, int64_t most = 64);

}  // namespace mlc
