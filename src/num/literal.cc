#include "num/literal.h"

#include <charconv>
#include <cmath>

#include "num/convert.h"

namespace mlc {

std::string shortest(double v) {
  if (std::isnan(v)) return std::signbit(v) ? "-nan" : "nan";
  char s[40];
  std::string text(s, std::to_chars(s, s + sizeof s, v).ptr);
  if (std::isfinite(v) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// The decimal exponent of the leading digit: 2 for 123.4, -3 for 0.00123; `zero` if all digits are 0.
static long magnitude(std::string_view s, bool *zero) {
  size_t end = s.find_first_of("eE"), point = std::min(s.find('.'), std::min(end, s.size()));
  size_t lead = s.substr(0, std::min(end, s.size())).find_first_of("123456789");
  *zero = lead == s.npos;
  long exponent = 0;
  if (end != s.npos) {
    std::string_view e = s.substr(end + 1);
    bool negative = !e.empty() && e[0] == '-';
    if (!e.empty() && (e[0] == '-' || e[0] == '+')) e.remove_prefix(1);
    if (std::from_chars(e.data(), e.data() + e.size(), exponent).ec != std::errc{}) exponent = 1L << 60;
    if (negative) exponent = -exponent;
  }
  return exponent + (lead < point ? long(point - lead) - 1 : -long(lead - point));
}

bool parse_number(std::string_view s, double *v) {
  auto r = std::from_chars(s.data(), s.data() + s.size(), *v);
  if (r.ptr != s.data() + s.size() || s.empty()) return false;
  if (r.ec == std::errc{}) return true;
  if (r.ec != std::errc::result_out_of_range) return false;
  bool zero, negative = s[0] == '-';
  double size = magnitude(s.substr(negative), &zero) > 0 && !zero ? INFINITY : 0.0;
  *v = negative ? -size : size;
  return true;
}

double fewest_digits(double v, DType t) {
  if (!is_float(t) || t == DType::F64 || v == 0 || !std::isfinite(v)) return v;
  Scalar wanted = scalar_of(t, v);
  auto good = [&](double d) { return scalar_of(t, d) == wanted; };
  auto pick = [&](double d) { return shortest(v).size() <= shortest(d).size() ? v : d; };
  char s[40];
  double d;
  if (t == DType::F32) {
    char *end = std::to_chars(s, s + sizeof s, float(v)).ptr;
    if (parse_number({s, size_t(end - s)}, &d) && good(d)) return pick(d);
  }
  // What rounds to v lies between the midpoints to its neighbours. A decimal of p digits in there is the one nearest to
  // v or to one of the midpoints.
  uint64_t code = to_bits(t, wanted);
  double below = to_double(t, from_bits(t, code - 1)), above = to_double(t, from_bits(t, code + 1));
  bool inside = std::isfinite(above) && std::fabs(above) > std::fabs(v);
  bool has_below = std::isfinite(below) && std::fabs(below) < std::fabs(v);
  double places[] = {v, has_below ? v + (below - v) / 2 : v, inside ? v + (above - v) / 2 : v};
  for (int digits = 1; digits <= 17; digits++)
    for (double place : places) {
      char *end = std::to_chars(s, s + sizeof s, place, std::chars_format::scientific, digits - 1).ptr;
      if (parse_number({s, size_t(end - s)}, &d) && good(d)) return pick(d);
    }
  return v;
}

}  // namespace mlc
