// Are two arrays the same result? By the classes of man/mlc-numerics.7.
#pragma once
#include <string>
#include <vector>

#include "data/array.h"

namespace mlc {

struct Tolerance {
  enum Kind : uint8_t {
    Exact,  // the same bits; all NaNs are equal
    Close,  // |found - expected| <= atol + rtol * |expected|, as numpy.allclose; NaN equals NaN, inf only itself
    Ulp,    // at most `ulp` values of the type lie between the two; NaN equals NaN
  } kind = Exact;
  bool zeros_equal = false;  // of Exact: 0.0 and -0.0 are equal (results of max and min)
  double rtol = 0, atol = 0;
  double ulp = 0;
  const std::vector<double> *each = nullptr;  // of Close: added to atol, one an element; inf: anything goes

  static Tolerance exact(bool zeros_equal = false) { return {Exact, zeros_equal, 0, 0, 0, nullptr}; }
  static Tolerance close(double rtol, double atol, const std::vector<double> *each = nullptr) {
    return {Close, true, rtol, atol, 0, each};
  }
  // How the suite's own runner (onnx/backend/test/runner) compares outputs of type t: of bf16 two steps are always allowed.
  static Tolerance of_suite(DType t, double rtol, double atol) {
    return close(t == DType::BF16 && rtol < 0x1p-6 ? 0x1p-6 : rtol, atol);
  }
  static Tolerance within_ulp(double ulp) { return {Ulp, true, 0, 0, ulp, nullptr}; }
};

struct Comparison {
  std::string mismatch;   // types or dimensions differ: nothing else is filled in
  int64_t different = 0;  // elements
  int64_t first = -1;     // position of the first of them
  std::vector<int64_t> index;
  Scalar found, expected;
  double worst = 0;       // the largest |found - expected|, of Ulp the largest distance; inf if only one is NaN or inf
  int64_t worst_at = -1;  // its position
  bool same() const { return mismatch.empty() && !different; }
};
Comparison compare(const Array &found, const Array &expected, const Tolerance &t);

// One line: `y[0, 3]: expected 1.0, found 1.5; 2 of 10 elements differ, the largest difference is 0.5`; "" if same.
std::string describe(const Comparison &c, std::string_view name, const Array &expected);

// |a - b|; 0 of two NaNs, inf if only one is NaN or infinite.
double distance(DType t, Scalar a, Scalar b);

// How many values of t lie between a and b, plus one: 0 for equal ones (both zeros, NaNs), inf for NaN and a number.
double ulp_distance(DType t, Scalar a, Scalar b);

// An element as text of the language: 1.5, -3, true.
std::string element_text(DType t, Scalar v);

}  // namespace mlc
