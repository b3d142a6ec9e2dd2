// Floats as text of the language, independent of the locale.
#pragma once
#include <string>
#include <string_view>

#include "num/dtype.h"

namespace mlc {

// The shortest text that reads back as v, always with a point or an exponent: 1.0, 0.1, 1e-05, -0.0, inf, nan, -nan.
std::string shortest(double v);

// The whole of s is a decimal number (12, 1.5, 1e-5, -.5, inf, nan; no `+`): its nearest double, which is 0 or a
// denormal below and inf above the range.
bool parse_number(std::string_view s, double *v);

// The double with the fewest digits in `shortest` that still rounds to v in t (f32(0.1): 0.1, not 0.10000000149011612);
// v itself where its own text is no longer, and if t is no float type below f64. v must be a value of t.
double fewest_digits(double v, DType t);

}  // namespace mlc
