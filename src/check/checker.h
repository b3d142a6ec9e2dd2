// Private to this room: the verifier of one function. One file a subject: scope.cc (names, types),
// function.cc (signature, which statement where), statements.cc (what graphs and kernels share),
// graph.cc (values), ops.cc (operators), kernel.cc (stores, computes, blocks), calls.cc, index.cc and cover.cc (proofs).
#pragma once
#include <deque>
#include <unordered_set>

#include "arith/bounds.h"
#include "base/diag.h"
#include "check/stage.h"
#include "ir/solve.h"
#include "ir/typing.h"

namespace mlc {

struct OpInfo;

enum class What : uint8_t { Dim, Param, Result, Value, Scalar, Buffer, View, Loop, Axis };

// A name of the function.
struct Entry {
  What what;
  Sym name;
  const Type *type;
  uint32_t at;
  int depth = 0;             // how many blocks stand around its definition
  bool loose = false;        // a loop, axis or scalar, or a view that mentions one: not seen from inside a block
  bool writable = false;
  Entry *root = nullptr;     // of a view, and of a place in a buffer: the buffer
  const Expr *extent = nullptr;          // of loops and axes
  LoopKind loop = LoopKind::Serial;      // of loops
  Sym tag = {};                          // of bound ones
  bool read = false, written = false;    // of buffers
  bool defined = false;                  // of a graph's result: as a value
  Entry *whole() { return root ? root : this; }
};

enum class Match : uint8_t { Yes, No, Unknown };

// Operators are capitalised, scalar functions and effects are not.
inline bool is_operator_name(std::string_view s) { return !s.empty() && s[0] >= 'A' && s[0] <= 'Z'; }

class FuncChecker {
 public:
  FuncChecker(Build &b, const Module &m, const Func &f, Diag &diag, bool prove);
  void run();

 private:
  // ---- scopes (scope.cc)
  struct Mark {
    size_t names, env, bounds;
  };
  Mark open() { return {log_.size(), env_.mark(), bounds_.mark()}; }
  void close(Mark m);
  Entry *define(What what, Sym name, const Type *type, uint32_t at);  // reports a redefinition; never null
  void enter(Entry *e);                                               // makes it visible
  Entry *find(Sym name) const;
  void hide(Sym name);                        // a loop, axis or dimension, until the scope closes
  // Reports what is not defined or not seen here; then null. `value`: a result of a graph must be defined or written.
  Entry *visible(Sym name, uint32_t at, bool value = true);
  void unwritten(Entry *e, uint32_t at);      // reports a buffer that is read before anything can have written it
  bool names(const Expr *e);                  // all free names of e are visible; regions and buffers count as read
  std::string text(Sym s) const;              // as it is printed
  template <class... A> void error(uint32_t at, fmt::format_string<A...> f, A &&...a) {
    diag_.error(at, f, std::forward<A>(a)...);
  }
  template <class... A> bool fail(uint32_t at, fmt::format_string<A...> f, A &&...a) {
    diag_.error(at, f, std::forward<A>(a)...);
    return false;
  }

  // ---- expressions and types (scope.cc)
  bool scalar(const Expr *e, DType want);     // names, type and subscripts; Invalid: any type
  bool condition(const Expr *e);              // bool; in graphs a bool[] value too
  bool index(const Expr *e) { return scalar(e, DType::Index); }
  void type(const Type *t, uint32_t at);      // of a definition: dimensions, attributes, scope
  void notes(const Notes &n);

  // ---- statements (function.cc, statements.cc)
  void signature();
  void inplace(const Expr *pairs);            // attr inplace = [["y", "x"]]
  void body(Stmts l);                         // in a scope of its own
  void statements(Stmts l);
  void statement(const Stmt *s);
  bool allowed(const Stmt *s);
  void let(const Let &s);
  void scalar_let(const Let &s);
  void for_loop(const For &s);
  void flat(const For &s);                    // in a synced kernel
  void races(const For &s);                   // a remark unless its turns are proved apart
  void alloc(const Alloc &s);
  void view(const View &s);
  void assume(const Assume &s);
  void finish();                              // everything defined and written

  // ---- graphs (graph.cc)
  void if_value(const IfValue &s);
  void loop_value(const Loop &s);
  void dataflow(const Dataflow &s);
  Entry *define_value(const Def &d);          // a value, or a result of the graph
  const Type *value_type(const Expr *e);      // of a value, constant, index expression; reports errors
  void yield_types(Exprs yields, std::span<const Type *const> types, Defs defs, uint32_t at);
  void operator_let(const Let &s, const Call &c);
  void operator_call(const CallStmt &s);
  bool operands(const Call &c, std::vector<const Type *> *types);
  struct Operands {
    std::vector<const Type *> types;
    Exprs args;
    Attrs attrs;
    std::vector<Sym> names;  // of the results
    const Type *wanted;      // of the first result
  };
  std::vector<const Type *> rule(const OpInfo &op, const Operands &o, uint32_t at);

  // ---- kernels (kernel.cc)
  void store(const Store &s);
  void compute(const Compute &s);
  void block(const Block &s);
  void scalar_function();                     // scalar and reducer items
  Entry *target(const Expr *e);               // a buffer that may be written; reports errors
  void regions(std::span<const Load *const> l);
  bool affine(const Expr *e) const;           // in loops and axes
  bool names_fixed(const Expr *e) const;      // mentions nothing that a block does not see
  bool is_thread_tag(Sym tag) const;
  std::string_view scope_of(const Type *t) const;

  // ---- calls (calls.cc)
  void call(const CallStmt &s);
  void builtin_call(const CallStmt &s);
  void pure_call(const Let &s, const Call &c, const Func &f);
  bool arguments(const Call &c, const Func &f, bool pure, std::span<const Argument> results, Solution *out);
  const Type *argument(const Expr *e, const Param &p, bool pure, Argument *out);
  const Type *buffer_type(const Expr *e, bool value = true);  // of a name, constant or region; reports errors
  const Type *destination(const Expr *e);     // the same of what is written
  Exprs region_strides(const Expr *e);        // of a region that has a type; empty for anything else

  // ---- proofs (index.cc)
  Match same(const Expr *x, const Expr *y);
  // One element type and shape: an error says `what`: "value of y"; the mode, scope and attributes do not count.
  bool same_type(uint32_t at, std::string_view what, const Type *expected, const Type *found);
  void subscripts(const Expr *e, bool sure = true);  // sure: evaluated whenever the statement is
  void access(const Load &l, const Type *t, bool sure);
  void inside(const Expr *i, const Expr *dim, const Load &l, bool sure);
  bool bound_axis(const Axis &a, bool guarded);
  bool reaches(const Axis &a);                // cover.cc
  void cover(const Block &s);                 // a remark unless every point of the axes is taken once
  void known(const Expr *cond);               // holds until the scope closes
  void unproved(std::string what);            // a remark, when proving

  Build &b_;
  const Module &m_;
  const Func &f_;
  Diag &diag_;
  bool prove_;
  Env env_;
  Bounds bounds_;
  Stage stage_;
  bool graph_ = false, kernel_ = false, impl_ = false;  // what may stand here
  int pure_ = 0;       // inside dataflow or a group
  int depth_ = 0;      // blocks around
  int maybe_ = 0;      // conditions around
  int loops_ = 0, bound_ = 0, threads_ = 0;  // loops around; of these bound to a tag; to a tag below a block of threads
  std::deque<Entry> entries_;
  std::unordered_map<Sym, Entry *> names_;
  struct Change {
    Sym name;
    Entry *before;
  };
  std::vector<Change> log_;
  std::unordered_map<Sym, uint32_t> blocks_;
  std::unordered_set<std::string> remarks_;  // each is made once
};

}  // namespace mlc
