// One run of a graph: its names and what they hold. Private to graph.cc (values, operators, calls) and
// graph_control.cc.
#pragma once
#include "interp/machine.h"

namespace mlc::interp {

class Graph {
 public:
  Graph(Machine &m, const Func &f) : m_(m), b_(m.b), f_(f) {}
  std::vector<Value> run(Stmts body, const std::vector<Value> &args, const std::vector<Value> &into,
                         const IndexValues &names);

 private:
  // ---- names
  std::string_view text(Sym s) const { return b_.text(s); }
  void define(Sym s, Value v);
  void pop(size_t mark);
  const Value *find(Sym s, uint32_t at);
  void defined_by(Stmts body, std::unordered_set<Sym> &out);  // names that a body defines as values

  // ---- expressions
  Value scalar(const Expr *e, DType want);
  int64_t index(const Expr *e);
  bool condition(const Expr *e) { return scalar(e, DType::Bool).scalar.as_bool(); }
  std::vector<int64_t> dims_of(const Type *t);
  const Type *concrete(const Type *t);  // dimensions as literals, as far as they are known
  Value make(const Def &d);
  Ref region(const Load *l);
  Value value(const Expr *e);           // where one may stand: a name, a constant, an index expression
  Attrs attrs(Attrs list);              // {strides = [s, s], alpha = a} with scalar parameters

  // Is v what the type says? Index names in `pending` are solved on the way.
  void check(const Def &d, const Value &v, const std::unordered_set<Sym> &pending = {});
  // Index scalars without a value (`m: index, z: f32[m, 4] = Match(y)`) follow from the shapes of the others.
  void define(Defs defs, std::vector<Value> values, uint32_t at);

  // ---- statements
  void statements(Stmts body) {
    for (const Stmt *s : body) statement(s);
  }
  void scoped(Stmts body);
  void statement(const Stmt *s);
  void let(const Let &s);
  std::vector<OperatorArg> operator_args(const Call *c);
  std::vector<Value> arguments(const Call *c, const Func &f);
  void call(const CallStmt &s);
  void alloc(const Alloc &s);
  void if_value(const IfValue &s);
  void loop(const Loop &s);
  Value stack(const Def &d, const std::vector<Value> &turns);

  struct Saved { Sym name; Value old; bool had; };
  Machine &m_;
  Build &b_;
  const Func &f_;
  std::unordered_map<Sym, Value> values_;
  IndexValues names_;       // the index scalars among them
  std::unordered_map<Sym, const Def *> later_;  // results that calls write to, before their sizes are known
  std::vector<Saved> log_;  // what names held before
};

}  // namespace mlc::interp
