// The rules applied to lines of a graph: y: T = Relu(t) where t: T = Relu(x).
#pragma once
#include <functional>
#include <optional>

#include "arith/bounds.h"
#include "ops/ops.h"
#include "rules/match.h"

namespace mlc {

// What the caller knows at the place of a line.
struct LineScope {
  const Module *m;
  const Bounds *known;
  std::function<const Let *(Sym)> line;            // that defines a value, and no other; null: there is none
  std::function<const Type *(const Expr *)> type;  // of a value or constant; null for literals, lists, indices
  std::function<Sym(std::string_view)> fresh;
};

class LineRules {
 public:
  LineRules(Build &b, const Rules &rules) : b_(b), rules_(rules) {}

  struct Result {
    const Rule *rule;
    const Expr *value = nullptr;     // the line's value is this one; else:
    std::vector<const Let *> lines;  // what computes it, the last one under the line's own name
    std::vector<const Let *> matched;  // the lines below the root that the pattern took
  };
  // The first rule that applies to a line with one result.
  std::optional<Result> apply(const Let &line, const LineScope &scope);

 private:
  bool match(const Expr *pattern, const Let &line);
  bool match_argument(const Expr *pattern, const Expr *arg);
  bool attribute(const Binary &pattern, const Let &line);
  bool guard(std::string_view name, const Expr *arg);
  const Expr *argument(const Expr *result, const Let &line, Result &out);
  const Let *built(const Call &result, const Let &line, bool root, Result &out);
  const Expr *attribute_value(const Expr *e);
  const Expr *literal(const Expr *arg) const;  // that all elements of the argument are; null: none
  bool same_type(const Type *a, const Type *c) const;

  Build &b_;
  const Rules &rules_;
  const LineScope *scope_ = nullptr;
  DType last_ = DType::Invalid;  // of the line's result
  Binding vars_;
  std::vector<const Let *> matched_;
};

}  // namespace mlc
