// Constants that folding makes.
#pragma once
#include <functional>

#include "ir/module.h"
#include "ops/ops.h"

namespace mlc {

class Constants {
 public:
  // evaluate: the elements of a constant of m as the text has them, a literal (all are equal) or a list of literals;
  // null if there are none. It is asked for small constants whose inputs stand in the text.
  using Evaluate = std::function<const Expr *(const Const &)>;
  Constants(Build &b, Module &m, Evaluate evaluate);

  // y: T = Op(@a, 2.0)  ->  const @y: T = [..], or = Op(@a, 2.0) where the elements are many or in a file. Added to the
  // module; an equal one that is there is taken instead. Null: not of constants, not static, or not worth it.
  const Const *fold(const Let &line, const OpInfo &op);
  bool may_fold(const Let &line) const;  // all its arguments are constants
  // Shape(x), Size(x) of static dimensions.
  const Const *shape(const Let &line, const Type *x);
  // The first constant of the module that is equal to c; c itself if there is none.
  const Const *first(const Const &c);

  size_t made = 0;

 private:
  const Const *add(const Let &line, const Expr *value, Attrs attrs);
  bool small_text(const Expr *arg, int64_t *elements, int64_t *bytes) const;  // false: no constant at all

  Build &b_;
  Module &m_;
  Evaluate evaluate_;
  Fresh fresh_;
  std::unordered_map<uint64_t, std::vector<const Const *>> known_;
};

}  // namespace mlc
