// Kernels, scalar functions and reducers: their expressions by the rules and by index arithmetic, and what becomes of
// conditions that are known then.
#pragma once
#include "arith/bounds.h"
#include "rules/scalar.h"

namespace mlc {

class KernelRules {
 public:
  KernelRules(Build &b, const Module &m, ScalarRules &scalars) : b_(b), m_(m), scalars_(scalars) {}

  // Loops, blocks and buffers stay what they are, so that schedules still fit; what is no longer used is for dead.h.
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
  void find_writers(const Func &f);
  const Expr *replaced(const Expr *e);             // copies by what they are copies of
  void buffer_copy(const Compute &c);
  bool lasting(const Expr *e) const;               // reads nothing that is written later
  template <class F> Stmts nested(const Stmt *s, size_t k, Stmts inner, const F &enter);

  Build &b_;
  const Module &m_;
  ScalarRules &scalars_;
  class Env *env_ = nullptr;
  Bounds *known_ = nullptr;
  Substitution copies_;             // scalars that are others or index literals
  Substitution buffer_copies_;      // buffers that hold what another one does
  // Scalars defined in the bodies around, up to the block, and where those of one hash are.
  struct Seen {
    std::vector<std::pair<uint64_t, const Let *>> lets;
    std::unordered_map<uint64_t, std::vector<const Let *>> by_hash;
    const Let *find(const Expr *value, const Type *type) const;
    void add(const Let *l);
    void forget(size_t mark);
  };
  Seen seen_;
  std::unordered_map<Sym, int> writes_;       // statements that may write a buffer; views and calls count twice
  std::unordered_set<Sym> inputs_;            // parameters that are only read
  int depth_ = 0;
  bool copying_ = false;
  std::unordered_set<Sym> result_;  // names of results, which stay
};

}  // namespace mlc
