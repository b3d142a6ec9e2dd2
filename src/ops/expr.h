// Sugar for definitions: expressions with operators that fold constants, tensors that are indexed by a call.
//   d.compute(d.out(), [&](const Indices &i) { return max(x(i), zero(d.b, x.elem())); });
#pragma once
#include <vector>

#include "ir/build.h"

namespace mlc {

// A scalar or index expression. Integer literals are folded, and what integers allow is simplified beside one: x + 0,
// x * 1, x * 0, x // 1, x % 1, (x + 2) - 3, (x * 6) // 3; a float literal is never touched, so floats stay as they are.
class X {
 public:
  X() = default;
  X(Build &b, const Expr *e) : b(&b), e(e) {}
  Build *b = nullptr;
  const Expr *e = nullptr;
  explicit operator bool() const { return e != nullptr; }
};
using Dims = std::vector<X>;
using Indices = std::vector<X>;

X operator+(X a, X b);
X operator-(X a, X b);
X operator*(X a, X b);
X operator/(X a, X b);      // the type's division
X floordiv(X a, X b);
X operator%(X a, X b);
X operator-(X a);
X operator!(X a);
X operator<(X a, X b);
X operator<=(X a, X b);
X operator>(X a, X b);
X operator>=(X a, X b);
X operator==(X a, X b);     // an expression, not a comparison of nodes
X operator!=(X a, X b);
X operator&&(X a, X b);
X operator||(X a, X b);
// The same with an integer literal on one side: i + 1, n * 2.
X operator+(X a, int64_t b);
X operator-(X a, int64_t b);
X operator*(X a, int64_t b);
X floordiv(X a, int64_t b);
X operator%(X a, int64_t b);
X operator<(X a, int64_t b);
X operator<=(X a, int64_t b);
X operator>(X a, int64_t b);
X operator>=(X a, int64_t b);
X operator==(X a, int64_t b);
X operator!=(X a, int64_t b);
X ceildiv(X a, X b);

X max(X a, X b);
X min(X a, X b);
X where(X c, X a, X b);     // folds a literal condition
X cast(DType t, X a);                             // t(a)
X call(std::string_view f, std::vector<X> args);  // exp(x) ...
X lit(Build &b, int64_t v);                       // an integer literal
X lit(Build &b, double v, DType t);  // a literal of that type, fewest digits; integers wrap, so -1.0 is 255 in u8
X zero(Build &b, DType t);                        // 0, 0.0 or false
X one(Build &b, DType t);
X lowest(Build &b, DType t);   // the identity of max: -inf, or the least integer; false
X highest(Build &b, DType t);  // of min
X truth(Build &b, bool v);
// Of a reduction by its name, sum prod max min all any: what it starts from, and one step of it.
X fold_start(Build &b, std::string_view fold, DType t);
const Expr *fold_step(Build &b, std::string_view fold, const Expr *acc, const Expr *term);
X product(Build &b, const Dims &dims);  // 1 for none

bool is_const(X a, int64_t *v);  // an integer literal
bool is_truth(X a, bool v);      // the literal true or false
bool provably_equal(X a, X b);   // by the rules of arith/
X simplify(X a);                 // an index expression in arith's normal form

// A buffer or a literal that can be indexed.
class Tensor {
 public:
  X operator()(const Indices &i) const;  // load; a scalar literal gives itself
  // The element that numpy's broadcasting puts at i: aligned at the right, dimensions of 1 read at 0.
  X at(const Indices &i) const;
  DType elem() const { return type->elem; }
  size_t rank() const { return dims.size(); }
  Build *b = nullptr;
  Sym buffer;                  // Sym{}: a literal
  const Expr *literal = nullptr;
  const Type *type = nullptr;
  Dims dims;
};

}  // namespace mlc
