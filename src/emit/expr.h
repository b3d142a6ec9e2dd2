// Scalar expressions as C++. The text computes what man/mlc.5 and man/mlc-numerics.7 say, whatever the operands.
#pragma once
#include <functional>
#include <string>

#include "emit/helpers.h"
#include "emit/scope.h"
#include "num/scalar.h"

namespace mlc {

// How tightly a text binds, as C++ has it.
enum Prec : int { kTernary = 1, kOr, kAnd, kEquality = 7, kRelation, kShift, kSum, kProduct, kUnary, kPrimary };

struct Text {
  std::string s;
  int prec = kPrimary;
  DType type = DType::Invalid;
  bool wild = false;       // an index that comes from data
  std::string unrounded;   // of a small float: the float that `s` rounds; empty: `s` is exact
};
std::string wrap(const Text &t, int prec);  // in parentheses if it binds less than prec

// A literal of type t with the bits of v.
std::string literal(DType t, Scalar v);

class ExprPrinter {
 public:
  ExprPrinter(Scope &scope, const Module &m, Helpers &helpers) : scope_(scope), b_(scope.b), m_(m), helpers_(helpers) {}
  // The C++ function of `scalar @f`, and the pointer to the elements of a constant.
  std::function<std::string(const Func *f)> scalar_function;
  std::function<std::string(Sym name)> constant;
  std::function<const Func *(std::string_view name, DType t)> library;  // @exp.f32; null: there is none
  // Faults of a text that the verifier let pass.
  std::function<void(uint32_t at, std::string message)> fail;

  Text print(const Expr *e, DType want);
  std::string text(const Expr *e, DType want) { return print(e, want).s; }
  Text index(const Expr *e) { return print(e, DType::Index); }
  DType type(const Expr *e, DType want) const;
  // y[i, j] = value, without the semicolon.
  std::string store(const Load &target, const Expr *value);
  // The position of an element in its buffer, in elements.
  Text position(const Entity &e, Exprs index);
  // base + position, a pointer to an element; `base` alone for position 0.
  std::string pointer(const Entity &e, Exprs index);

 private:
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
