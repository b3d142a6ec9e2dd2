// Graphs and groups: operators by the rules, values computed twice, constants, copies, dead lines.
#pragma once
#include "arith/bounds.h"
#include "base/diag.h"
#include "graph/values.h"
#include "rules/constants.h"
#include "rules/lines.h"

namespace mlc {

class GraphRules {
 public:
  GraphRules(Build &b, const Module &m, const Rules &rules, Constants &constants, Diag &diag)
      : b_(b), m_(m), rules_(b, rules), constants_(constants), diag_(diag) {}

  // The function with the same results under the same names. Lines may fault, print or assume only where they did.
  const Func *simplify(const Func &f);

  size_t by_rule = 0, equal_lines = 0, folded = 0, dropped = 0;

 private:
  struct Line {
    const Let *let;
    std::vector<const Stmt *> *list;  // where it stands; null once that is finished
    size_t at;
  };
  Stmts body(Stmts l);
  void statement(const Stmt *s, std::vector<const Stmt *> &out);
  void line(Let l, std::vector<const Stmt *> &out);
  void emit(const Let &l, std::vector<const Stmt *> &out);
  void replace(const Let &l, Sym name, const Expr *value, std::vector<const Stmt *> &out);
  void dataflow(const Dataflow &d, std::vector<const Stmt *> &out);
  bool by_rules(Let &l, std::vector<const Stmt *> &out);
  bool known_line(const Let &l, std::vector<const Stmt *> &out);
  const Expr *item_of(const Expr *e) const;
  void absorb(const Line &into, const Let &gone);
  const Expr *resolved(const Expr *e);
  const Type *resolved(const Type *t);
  const Type *tidy(const Type *t);
  void define(Defs defs);
  bool stable(const Expr *e) const;           // a value or constant: not memory that is written
  bool pure_call(const Call &c) const;
  bool may_fault(const Let &l, const Values &values, const Bounds &known);
  bool may_fault(const Func &f);
  Yield yield(const Yield &y);
  uint64_t key(const Let &l) const;

  Build &b_;
  const Module &m_;
  LineRules rules_;
  Constants &constants_;
  Diag &diag_;
  const Func *f_ = nullptr;
  std::optional<Values> values_;
  std::optional<Bounds> known_;
  std::optional<Fresh> fresh_;
  std::unordered_set<Sym> results_, buffers_;
  Substitution copies_;                         // values that are others
  Substitution renames_;                        // values that get a result's name
  std::unordered_map<Sym, Line> lines_;         // seen at this place
  std::unordered_map<uint64_t, std::vector<const Let *>> same_;
  std::vector<std::pair<Sym, uint64_t>> log_;   // lines in the order of their definitions
  std::unordered_map<const Type *, const Type *> tidied_;
  std::unordered_map<const Func *, bool> faults_;
  bool index_copies_ = false;                   // some of copies_ may stand in types
};

}  // namespace mlc
