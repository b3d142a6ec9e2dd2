// Scalar expressions as C++. The text computes what man/mlc.5 and man/mlc-numerics.7 say, whatever the operands.
#pragma once
#include <functional>
#include <string>

#include "emit/helpers.h"
#include "emit/scope.h"
#include "num/scalar.h"
#include "ops/expr.h"

namespace mlc {

// How tightly a text binds, as C++ has it.
enum Prec : int { kTernary = 1, kOr, kAnd, kBits, kEquality = 7, kRelation, kShift, kSum, kProduct, kUnary, kPrimary };

struct Text {
  std::string s;
  int prec = kPrimary;
  DType type = DType::Invalid;
  bool wild = false;       // an index that comes from data
  std::string unrounded;   // of a small float: the float that `s` rounds; empty: `s` is exact
  int lanes = 0;           // of a vector; 0: a scalar, the same in all lanes
  int mask = 0;            // of bools with lanes: the bits of an element, -1 or 0
};
std::string wrap(const Text &t, int prec);  // in parentheses if it binds less than prec

struct Infix {
  std::string_view text;
  int prec;
};
Infix infix(Op op);
std::string_view family_of(Op op);  // add, sub .. of arithmetic
std::string joined(const Text &a, Infix op, const Text &b);
// A literal that is a number, not NaN: what at_least and at_most take.
bool is_number(const Expr *e);

// A literal of type t with the bits of v.
std::string literal(DType t, Scalar v);

// Of a buffer in a memory of a target: what to say of a load or store.
std::string only_intrinsics(const Build &b, Sym buffer, const Entity &e);

class ExprPrinter {
 public:
  ExprPrinter(Scope &scope, const Module &m, Helpers &helpers) : scope_(scope), b_(scope.b), m_(m), helpers_(helpers) {}
  // The C++ function of `scalar @f`, and the pointer to the elements of a constant.
  std::function<std::string(const Func *f, int lanes)> scalar_function;  // lanes: on vectors; 0: on scalars
  std::function<std::string(Sym name)> constant;
  std::function<const Func *(std::string_view name, DType t)> library;  // @exp.f32; null: there is none
  // Faults of a text that the verifier let pass.
  std::function<void(uint32_t at, std::string message)> fail;

  std::string_view fma = "fma";  // the helper: that of the instruction set of the function

  Text print(const Expr *e, DType want);
  std::string text(const Expr *e, DType want) { return print(e, want).s; }
  Text index(const Expr *e) { return print(e, DType::Index); }
  DType type(const Expr *e, DType want) const;
  // y[i, j] = value, without the semicolon.
  std::string store(const Load &target, const Expr *value);
  // The same of all lanes: statements, `line` prints one.
  void store_lanes(const Load &target, const Expr *value, const std::function<void(std::string)> &line);
  // It differs from lane to lane.
  bool varies(const Expr *e) const;
  // It may be evaluated where its lane takes no part: what it loads is inside whatever the conditions around it are.
  bool harmless(const Expr *e) const;
  // where(lo <= v && v < hi && .., x[i + v], 0.0): its lanes outside load nothing.
  bool masked_load(const Call &where);
  bool unit_or_uniform(const Load &l);  // how its place moves with the lanes
  // A condition that holds in the lanes lo .. hi - 1 and in no other; false: it is not of this form.
  bool between(const Expr *cond, X &lo, X &hi);
  Text vector(Text t, DType type);     // a scalar in all lanes
  Text mask(Text t, int bits);         // a bool as a vector whose elements have so many bits
  std::string lanes_type(DType t, int mask_bits = 0) const;  // of a vector of values; of bools
  // `mask ? a : b` in the lanes that take part.
  Text chosen(const Text &a, const Text &b, DType t);

  // The position of an element in its buffer, in elements.
  const Expr *place(const Entity &e, Exprs index);
  Text position(const Entity &e, Exprs index);
  // base + position, a pointer to an element; `base` alone for position 0.
  std::string pointer(const Entity &e, Exprs index);

 private:
  const Expr *typed_ = nullptr;  // what is printed next has the type that is wanted
  int depth_ = 0;
  // expr_lanes.cc: of what differs from lane to lane
  Text lanes(const Expr *e, DType want);
  Text each_lane(const Expr *e, DType want);
  Text load_lanes(const Load &l, X lo = {}, X hi = {});  // lo, hi: zeros in all other lanes
  Text unary_lanes(const Unary &e, DType want);
  Text binary_lanes(const Binary &e, DType want);
  Text compare_lanes(const Binary &e);
  Text call_lanes(const Call &c, DType want);
  Text where_lanes(const Call &c, DType t);
  Text cast_lanes(const Text &v, DType to, bool saturate, const Expr *e);
  Text primitive_lanes(std::string_view name, DType t, const Call &c);
  Text helper_lanes(std::string_view family, DType t, std::initializer_list<Text> args);
  Text lanes_between(X lo, X hi, DType t);
  Text select(const Text &mask, const Text &a, const Text &b, DType t);
  DType compared(const Binary &e) const;  // the type of the operands
  void store_each(const Load &target, const Expr *value, const std::function<void(std::string)> &line);
  struct Register {
    Entity *element = nullptr;
    std::string lane;  // of a scalar in it; empty: all of it
  };
  Register register_of(const Entity &e, Exprs index, uint32_t at);
  // The coefficient of the lane in a position: 0, 1, another literal; null: it is not affine.
  const Expr *stride(const Expr *position);
  const Expr *in_lane(const Expr *e, int64_t lane);

  Text binary(const Binary &e, DType want);
  Text arithmetic(Op op, DType t, const Text &a, const Text &b, const Binary &e);
  Text index_arithmetic(Op op, const Text &a, const Text &b, const Binary &e);
  Text unary(const Unary &e, DType want);
  Text call(const Call &c, DType want);
  Text builtin_call(const Call &c, std::string_view name, DType t);
  Text primitive(std::string_view name, DType t, const std::vector<Text> &args, const Call &c);
  Text load(const Load &l);
  Text cast(const Expr *e, DType to, bool saturate);
  Text cast(const Text &v, DType to, bool saturate);
  Text number(const Expr *e, DType t);
  Text rounded(DType t, Text v);
  Text helper(std::string_view family, DType t, std::initializer_list<std::string_view> args);

  Scope &scope_;
  Build &b_;
  const Module &m_;
  Helpers &helpers_;
};

}  // namespace mlc
