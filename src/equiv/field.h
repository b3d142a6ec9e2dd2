// Programs over a prime field: floats become numbers modulo p = 2^31 - 1, carried in u64.
//
//   y[i] = sum(a[i, k] * b[k] for k in n) + 0.5    ->    y[i] = (sum(a[i, k] * b[k] % p for k in n) % p + 1073741824) % p
//
// Sums, differences, products and quotients are those of the field, so that every other order of a sum gives exactly the
// same number. Any other function of floats (exp, floor ..) becomes an arbitrary but fixed function of its arguments, and
// comparisons, max and min follow one arbitrary order. Two programs that give the same numbers for random inputs are
// equal but for rounding, with probability 1 - d / p where they are fractions of polynomials of degree d. Two that give
// different ones are different if they are polynomials, and their constants are the same or have few digits: others may be
// rounded results of constants.
#pragma once
#include <set>
#include <string>

#include "data/array.h"
#include "interp/interp.h"
#include "ir/module.h"

namespace mlc {

struct FieldProgram {
  Module m;
  const Func *entry = nullptr;  // null: the program has no such form, `why` says what is in the way
  std::string why;
  bool polynomial = true;       // of sums, differences and products alone
  bool rounded = false;         // some literal has many digits
  bool tensors = false;         // it reads constants of the module, which may be rounded results of others
  std::set<uint64_t> literals;  // the numbers of all
};
// Does another number mean another program?
bool decides(const FieldProgram &a, const FieldProgram &b);
// f with all that it needs. Its types are those of f, with u64 for floats. Constants are read as `options` say.
FieldProgram over_field(Build &b, const Module &m, const Func &f, const RunOptions &options);

constexpr uint64_t kFieldPrime = 2147483647;
uint64_t field_of(double v);  // exact: v is a whole number times a power of two; infinities are the ends of the order

}  // namespace mlc
