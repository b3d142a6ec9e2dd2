// The lines of a graph that is being planned: what its statements become, before buffers have their places.
//
//   y: T = if c { .. yield a } ..            ->   if c[] { .. into y } ..
//   y: T = loop i in n carry s: T = x { .. } ->   s = x; for i in n { .. into s }; y is s
#pragma once
#include "graph/places.h"
#include "graph/upper.h"
#include "ir/walk.h"

namespace mlc {

class PlanLines {
 public:
  // functions: what functions of the module have become: planned, with a workspace, in place.
  PlanLines(Build &b, Module &m, const Func &f, std::unordered_map<Sym, const Func *> &functions, Diag &diag);
  void run();  // of the whole body; diag tells what cannot be planned

  Lines lines;
  Places places;
  Fresh names;                                      // of the graph
  std::unordered_map<Sym, const Expr *> capacity;   // of results whose size is data: the most that it can be

 private:
  // lines
  Line *add(Lines &out, Line l);
  void plain(Lines &out, const Stmt *s, std::vector<Sym> uses = {}, std::vector<Sym> defines = {});
  void declare(Lines &out, Sym s);
  template <class S> Line *open(Lines &out, S head, const Stmt &of, std::vector<Sym> uses) {
    Line l;
    head.at = of.at, head.comment = of.comment;
    l.kind = Line::Body, l.stmt = b_.make(head), l.uses = std::move(uses);
    Line *line = add(out, std::move(l));
    if (line->stmt->kind != Kind::If) places.open_loop(line);
    return line;
  }
  // Lines of one more body of l; what is known of sizes in there is not known behind it.
  template <class F> void inner(Line *l, const F &f) {
    size_t mark = upper_.mark();
    Lines lines;
    f(lines);
    l->bodies.push_back(std::move(lines));
    upper_.pop(mark);
  }
  void body(Stmts stmts, Lines &out);
  void line(const Stmt *s, Lines &out);

  // names
  Sym fresh(Sym of, const char *suffix) { return names.make(std::string(b_.text(of)) + suffix); }
  // Bodies beside each other may define the same names; their buffers need different ones.
  Substitution clashes(Stmts body, std::span<const Carry> carry = {});
  Stmts own(Stmts body);
  Yield own(const Yield &y, const Substitution &renamed);
  std::vector<Sym> reads(const Expr *e, std::vector<Sym> found = {}) const;

  // buffers
  void buffer(const Def &d);
  Sym temporary(Sym of, const char *suffix, const Type *t);
  Sym alias(Sym name, Sym of, const Type *t);  // another name of the same memory
  void part(const Stmt *s, const Def &d, Sym base, Lines &out);
  bool is_result(Sym s) const { return places.has(s) && places.buffers.at(s).where == Buffer::Result; }
  bool has_size(Sym result) const { return places.buffers.at(result).ready != SIZE_MAX; }
  void size(Sym name, Upper::Limits l);
  void sizes_known();
  void capacities();

  // scalars: those that change are kept in memory
  const Type *slot_type(DType t) { return b_.tensor(t == DType::Index ? DType::I64 : t, {}); }
  const Expr *element(Sym s) { return b_.load(s, {}); }
  const Expr *item(const Expr *e, DType want);
  const Expr *condition(const Expr *e);
  void read(Lines &out, const Def &d, Sym slot, Upper::Limits l);
  void fill(Lines &out, const Expr *value, Sym to);

  // values
  void let(const Let &l, Lines &out);
  void move(Lines &out, const Expr *value, Sym to, Syms from, const Stmt *of = nullptr);
  void if_value(const IfValue &s, Lines &out);
  void loop(const Loop &s, Lines &out);
  void next_turn(const Loop &s, const Yield &y, const std::vector<Sym> &to, Lines &in);

  // calls
  const Func *with_own(const Func &k);
  void workspace(Line &l, const Func &k, const Call &c);
  Substitution dims_of_call(const Func &k, Exprs args);

  Build &b_;
  Module &m_;
  Diag &diag_;
  const Func &f_;
  Upper upper_;
  std::unordered_map<Sym, const Func *> &functions_;
  std::vector<const Def *> open_;  // results whose capacity is to be found
};

}  // namespace mlc
