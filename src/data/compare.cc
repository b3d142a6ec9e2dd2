#include "data/compare.h"

#include <fmt/format.h>

#include <cmath>

#include "num/literal.h"

namespace mlc {
namespace {

constexpr double kInf = INFINITY;

bool is_nan(DType t, Scalar v) { return is_float(t) && std::isnan(to_double(t, v)); }

// Codes in the order of the values, both zeros 0.
int64_t ordered(DType t, Scalar v) {
  uint64_t code = to_bits(t, v), sign = uint64_t(1) << (info(t).bits - 1);
  return t != DType::F8E8M0 && code & sign ? -int64_t(code & (sign - 1)) : int64_t(code);
}

bool good(DType t, Scalar found, Scalar expected, const Tolerance &tol, double difference,
          int64_t i) {
  if (found == expected || (is_nan(t, found) && is_nan(t, expected))) return true;
  switch (tol.kind) {
    case Tolerance::Exact:
      return tol.zeros_equal && is_float(t) && to_double(t, found) == 0 && to_double(t, expected) == 0;
    case Tolerance::Close:
      if (double own = tol.each ? (*tol.each)[size_t(i)] : 0; own == kInf || difference == kInf) return own == kInf;
      else return difference <= tol.atol + own + tol.rtol * std::fabs(to_double(t, expected));
    default: return difference <= tol.ulp;
  }
}

std::string dims_text(const Array &a) { return fmt::format("{}[{}]", dtype_name(a.type), fmt::join(a.dims, ", ")); }

}  // namespace

double distance(DType t, Scalar a, Scalar b) {
  if (a == b) return 0;
  if (is_float(t)) {
    double x = to_double(t, a), y = to_double(t, b);
    if (x == y || (std::isnan(x) && std::isnan(y))) return 0;
    return std::isfinite(x) && std::isfinite(y) ? std::fabs(x - y) : kInf;
  }
  bool less = is_signed(t) ? a.as_int() < b.as_int() : a.as_uint() < b.as_uint();
  return double(less ? b.bits - a.bits : a.bits - b.bits);
}

double ulp_distance(DType t, Scalar a, Scalar b) {
  if (!is_float(t)) return distance(t, a, b);
  if (is_nan(t, a) || is_nan(t, b)) return is_nan(t, a) && is_nan(t, b) ? 0 : kInf;
  int64_t x = ordered(t, a), y = ordered(t, b);
  return double(x < y ? uint64_t(y) - uint64_t(x) : uint64_t(x) - uint64_t(y));
}

Comparison compare(const Array &found, const Array &expected, const Tolerance &t) {
  Comparison c;
  if (found.type != expected.type || found.dims != expected.dims) {
    c.mismatch = fmt::format("expected {}, found {}", dims_text(expected), dims_text(found));
    return c;
  }
  if (found.type == DType::Str) {
    size_t first = 0, different = 0;
    for (size_t i = found.strings.size(); i-- > 0;)
      if (found.strings[i] != expected.strings[i]) different++, first = i;
    if (different)
      c.mismatch = fmt::format("element [{}]: expected \"{}\", found \"{}\"; {} of {} differ",
                               fmt::join(found.index_of(int64_t(first)), ", "), expected.strings[first],
                               found.strings[first], different, found.strings.size());
    return c;
  }
  if (t.kind == Tolerance::Exact && found.bytes == expected.bytes) return c;
  for (int64_t i = 0, n = expected.size(); i < n; i++) {
    Scalar a = found.get(i), b = expected.get(i);
    double d = t.kind == Tolerance::Ulp ? ulp_distance(expected.type, a, b) : distance(expected.type, a, b);
    if (d > c.worst) c.worst = d, c.worst_at = i;
    if (good(expected.type, a, b, t, d, i)) continue;
    if (!c.different++) c.first = i, c.found = a, c.expected = b;
  }
  if (c.different) c.index = expected.index_of(c.first);
  return c;
}

std::string element_text(DType t, Scalar v) {
  if (t == DType::Bool) return v.as_bool() ? "true" : "false";
  if (is_float(t)) return shortest(fewest_digits(to_double(t, v), t));
  return is_signed(t) ? std::to_string(v.as_int()) : std::to_string(v.as_uint());
}

std::string describe(const Comparison &c, std::string_view name, const Array &expected) {
  if (!c.mismatch.empty()) return fmt::format("{}: {}", name, c.mismatch);
  if (!c.different) return "";
  return fmt::format("{}[{}]: expected {}, found {}; {} of {} elements differ, the largest difference is {}", name,
                     fmt::join(c.index, ", "), element_text(expected.type, c.expected),
                     element_text(expected.type, c.found), c.different, expected.size(),
                     fmt::format("{:.3g}", c.worst));
}

}  // namespace mlc
