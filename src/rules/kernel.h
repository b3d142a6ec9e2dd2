// Kernels, scalar functions and reducers: their expressions by the rules and by index arithmetic, and what becomes of
// conditions that are known then.
#pragma once
#include "arith/bounds.h"
#include "rules/scalar.h"

namespace mlc {

class KernelRules {
 public:
  KernelRules(Build &b, const Module &m, ScalarRules &scalars) : b_(b), m_(m), scalars_(scalars) {}

  // Loops, blocks and buffers stay what they are, so that schedules still fit. Null statements of no effect (`if false`,
  // a scalar that is another one's copy) go; dead code is dead.h's.
  const Func *simplify(const Func &f);

 private:
  Stmts body(Stmts l);
  void statement(const Stmt *s, std::vector<const Stmt *> &out);
  void known_if(const If &s, const Expr *cond, std::vector<const Stmt *> &out);
  const Expr *scalar(const Expr *e, DType want);   // by rules and by arith, in turn
  const Expr *index(const Expr *e);
  const Load *place(const Load *l);                // its subscripts
  const Expr *operand(const Expr *e);              // of a call: regions
  void define(const Def &d);
  template <class F> Stmts nested(const Stmt *s, size_t k, Stmts inner, const F &enter);

  Build &b_;
  const Module &m_;
  ScalarRules &scalars_;
  class Env *env_ = nullptr;
  Bounds *known_ = nullptr;
  Substitution copies_;             // scalars that are others or index literals
  bool copying_ = false;
  std::unordered_set<Sym> result_;  // names of results, which stay
};

}  // namespace mlc
