// What the values of a graph are: their types by name, and the use of an operator that a line is.
#pragma once
#include "ir/walk.h"
#include "ops/ops.h"

namespace mlc {

// Types of everything that is visible at a place of a function; lines add what they define.
class Values {
 public:
  Values(const Module &m, const Func &f);
  const Type *of(Sym name) const;         // null: a dimension, a loop variable, or not defined
  const Type *of(const Expr *arg) const;  // of a Name or Global; null for literals, lists, none
  void define(const Def &d) { types_.insert_or_assign(d.name, d.type); }
  void define(Defs defs) {
    for (const Def &d : defs) define(d);
  }
  void define(const Stmt *s);  // what a line makes visible behind it; of a dataflow region, all that its lines do
  const Module &module() const { return m_; }

 private:
  const Module &m_;
  std::unordered_map<Sym, const Type *> types_;
};

// The operator that a line calls, or null: `y: T = Relu(x)`, not @f(x), not exp(x).
const OpInfo *operator_of(const Build &b, const Let &l);
OpUse op_use(Build &b, const Let &l, const OpInfo &op, const Values &values);

// Does it read or give strings, or decode a file? Kernels do neither: such a line stays an operator, and the graph
// interpreter runs it.
bool is_hosted(const Build &b, const Let &l, const Values &values);

// The same bytes under another shape: Reshape, Flatten, Squeeze, Unsqueeze, Identity. Planning makes an alias of them.
bool is_reshape(const Build &b, const Let &l);

// Names of the module's items, for fresh ones.
void take_names(const Module &m, Fresh &fresh);

Syms merge(Build &b, Syms a, Syms c);  // in order, without repetition

}  // namespace mlc
