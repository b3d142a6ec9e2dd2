// The small functions that emitted code calls: integer arithmetic without undefined behaviour, maxima in which NaN
// wins, casts that saturate, types that C++ lacks. Each is a few lines of C++ and is emitted only if it is used. The
// rules are those of man/mlc-numerics.7; the interpreter gives the same bits.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "num/dtype.h"

namespace mlc {

std::string_view c_storage(DType t);  // of an element in memory: bool uint8_t, f16 uint16_t, i4 packed in uint8_t
std::string_view c_value(DType t);    // of a scalar: bool bool, i4 int8_t, floats below f64 float

struct Definition {
  std::string name, text;
};
// Lines that are comments have none.
void collect_identifiers(std::string_view text, std::unordered_set<std::string_view> &out);
// The texts of those whose names occur in `by` or in the text of a later one that is taken.
// `before`: without those that are needed by this text too.
std::string used_definitions(const std::vector<Definition> &all, std::string_view by, std::string_view before = "");
// Of a CUDA program: the text of a helper that is printed as it stands; of one that has another text there. Empty: none.
std::string_view cuda_helper(std::string_view family);
std::string_view cuda_function(std::string_view family);

class Helpers {
 public:
  // cuda: for the host and the device of a CUDA program.
  explicit Helpers(std::string prefix, bool cuda = false) : prefix_(std::move(prefix)), cuda_(cuda) {}

  // The name of helper `family` for t, which is emitted with all it needs: need("add", I32) -> P_add_i32.
  //   integers       add sub mul neg div floordiv mod fmod max min abs ipow shl shr
  //   packed ones    narrow load store shl shr (shifts by their own width)
  //   f32, f64       max min at_least at_most (max and min of x and a c that is no NaN) floor ceil trunc round_even sqrt fmod isinf
  //   smaller        decode (bits -> float), encode (float -> bits, as after an operation), encode_saturated (as in a
  //                  cast), encode64 .. (of a double), round, round64 .. (the value as a float)
  //   of CUDA        SHARED fail launch start read copy finish stage back (helpers_cuda.cc)
  //   none           size_add size_sub size_mul size_times (int64_t; a flag is cleared on overflow), parallel, cpu_has
  std::string need(std::string_view family, DType t = DType::Invalid);
  // The same on vectors: need_lanes("max", F32, 16) -> P_max_f32x16, lane by lane where no better text is known. Also
  //   splat          a scalar in all lanes
  //   first          (int64_t n) the lanes before n as a mask
  //   strided        (pointer, distance) elements at equal distances
  //   between        (int64_t lo, int64_t hi) the lanes lo .. hi - 1
  //   load_between   (pointer, at, lo, hi) elements at + lo .. at + hi - 1 in their lanes, zeros in the others
  //   store_first    (pointer, vector, n)
  std::string need_lanes(std::string_view family, DType t, int lanes);
  std::string vector(DType t, int lanes);     // P_f32x16; of values as they are computed with: f16 is f32x16
  std::string unaligned(DType t, int lanes);  // P_f32x16_u: the same at any element in memory
  std::string halves(std::string_view family, DType t, int lanes);  // of f16 and bf16; empty: there is no such
  std::string lane_calls(const std::string &scalar, std::span<const DType> args, DType result, int lanes);
  // The attribute of a function with such text: the instruction set that its widest vectors need.
  std::string attribute(std::string_view text);
  std::string cast(DType from, DType to);  // float -> integer: P_i32_of_f32
  std::string bits(DType from, DType to);  // P_bits_i32_of_f32
  // The definitions of those that occur in `by`, and of what they need, each after what it calls.
  // Without those that `before` has.
  std::string text(std::string_view by, std::string_view before = "") const;
  bool may_be(std::string_view s) const;  // PREFIX_s could be the name of a helper

 private:
  std::string add(const std::string &name, std::string_view body, DType t, DType from, bool whole = false);
  std::string add_lanes(const std::string &name, std::string_view body, DType t, int lanes);
  size_t arity(std::string_view family, DType t) const;  // of a helper on scalars
  std::string prefix_;
  bool cuda_;
  std::vector<Definition> made_;
  std::unordered_set<std::string> have_;
};

}  // namespace mlc
