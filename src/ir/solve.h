// The dimensions of a call: those that a function declares are solved from the shapes and strides of its arguments, and
// of what its results are written to.
//
//   kernel @f[n, m](x: f32[n, 2 * m], y: f32[m + n])     call @f(a, b) with a: f32[h, 8], b: f32[h + 4]
//   n = h, m = 4;  nothing is left open
//
// An equation affine in one unknown name gives it, in any order of the arguments; the others are compared. What is not
// equal by structure is left `open`, for arith/prove.h or a check at run time.
#pragma once
#include "ir/walk.h"

namespace mlc {

struct Argument {
  const Type *type;    // of a buffer, region or value; of an index expression the type `index`
  const Expr *value;   // an index expression; may be null for anything else
  Exprs strides;       // of a region; empty: those of `type`
};

struct Solution {
  enum Problem : uint8_t {
    None,
    Count,     // another number of arguments
    Mismatch,  // argument `param` has another element type, rank or literal size, or needs a fraction or less than 0
    Unsolved,  // dimension `dim` of the callee does not follow from the arguments
  } problem = None;
  size_t param = 0;
  Sym dim;
  Substitution names;  // the callee's dimensions and index parameters -> expressions of the caller
  struct Equation {    // of argument `param`; both sides are expressions of the caller
    size_t param;
    const Expr *wanted, *found;
  };
  std::vector<Equation> open;
  explicit operator bool() const { return problem == None; }
};

// `results`: what the results are written to, or declared as; they give dimensions too, but are not compared.
Solution solve_dims(Build &b, const Func &callee, std::span<const Argument> args,
                    std::span<const Argument> results = {});

// Distances of neighbours in elements: `strides` of the type, else those of a dense row-major buffer.
Exprs strides_of(Build &b, const Type *t);
// A region of a buffer of type t: indices drop a dimension, `lo +: extent` and `:` keep it. It has t's element, scope
// and device. `strides` may be null. The access must have as many indices as t has dimensions.
const Type *region_type(Build &b, const Type *t, Exprs index, Exprs *strides);
bool is_region(Exprs index);  // has a range or `:`

// Arithmetic of indices that folds literals and x + 0, x * 1, (x + y) - y, (x * y) // y; nothing else.
const Expr *fold(Build &b, Op op, const Expr *x, const Expr *y);

}  // namespace mlc
