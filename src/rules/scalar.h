// The rules applied to scalar expressions of kernels, with their types.
#pragma once
#include <functional>

#include "ir/typing.h"
#include "rules/match.h"

namespace mlc {

class ScalarRules {
 public:
  // fold: the value of an expression of literals in a type, as a literal with the bits that running it gives; null: it
  // has none. Where there is no fold at all, rules whose results need one do not apply.
  using Fold = std::function<const Expr *(const Expr *e, DType t)>;
  ScalarRules(Build &b, const Rules &rules, Fold fold) : b_(b), rules_(rules), fold_(std::move(fold)) {}

  // The same value, to a fixed point, from the leaves up; `want` is the type of the place, as in type_of. Subscripts
  // are left to arith. An expression that has no type is left as it is.
  const Expr *simplify(Env &env, const Expr *e, DType want);

  size_t applied = 0;  // rules and folds so far
  std::function<void(const Rule &)> on_rule;  // told of each that applied; may be null

 private:
  struct Typed {
    const Expr *e;
    DType type;  // Invalid: of literals alone, in a place that gives no type
  };
  Typed walk(const Expr *e, DType want);
  Typed binary(const Binary &x, DType want);
  Typed call(const Call &c, DType want);
  Typed finish(const Expr *e, DType type);                 // rules and folding at the root
  const Expr *once(const Expr *e, DType type);             // one rule; null: none applies
  const Expr *build(const Expr *result, const Binding &vars, DType t, bool root);
  const Expr *folded(const Expr *e, DType type);           // null: not of literals, or no value
  const Expr *unary(Op op, const Expr *e, DType type, uint32_t at);
  const Expr *anchored(const Expr *e, DType type);         // where nothing around gives a type: f16(0.1), not 0.1
  bool literal_of_type(const Expr *e, DType t) const;
  DType quick_type(const Expr *e) const;                   // of what is not made of literals alone
  DType operand_type(const Expr *e, DType type) const;

  Build &b_;
  const Rules &rules_;
  Fold fold_;
  Env *env_ = nullptr;
};

}  // namespace mlc
