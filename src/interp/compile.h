// Compiles functions of the text into interp/code.h. What the verifier would have refused is a Fault here.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_set>

#include "interp/interp.h"
#include "interp/nodes.h"
#include "ir/build.h"
#include "ir/typing.h"

namespace mlc::interp {

// An argument or destination of a call inside a kernel.
struct Operand {
  const Expr *literal = nullptr;  // of an operator: as written
  const Node *value = nullptr;    // a scalar
  int buffer = -1;                // a buffer, or the region of it below
  std::vector<const Node *> lo, extent;  // null extent: all from lo on (lo null: 0); dropped: extent 1
  std::vector<bool> drop;
  bool region = false;
};
struct CallAct {
  const CallStmt *stmt;
  const Func *callee;             // null: an operator or a builtin effect
  std::vector<Operand> args, dests;
};

class Compiler {
 public:
  // What compiling needs of the machine.
  struct Context {
    Build &b;
    const Module &m;  // where @names are looked up
    Nodes &nodes;
    std::vector<std::shared_ptr<void>> &kept;                              // what nodes and acts point to
    bool jitter;                                                           // sums have noise (interp/jitter.h)
    bool races;                                                            // accesses are told to interp/races.h
    std::function<const Lambda *(const Func *)> lambda;                    // compiles a scalar function or reducer
    std::function<const Func *(std::string_view builtin, DType, bool fused)> library;  // the text of exp .. (math/math.h)
  };
  explicit Compiler(Context c)
      : b_(c.b), m_(c.m), nodes_(c.nodes), kept_(c.kept), jitter_(c.jitter), races_(c.races), lambda_of_(std::move(c.lambda)),
        library_(std::move(c.library)) {}

  const Unit *kernel(const Func &f, Stmts body, const Notes &notes);
  const Lambda *lambda(const Func &f);
  // An expression over the parameters of f, and the kernel without statements that it is evaluated in.
  std::pair<const Unit *, const Node *> scalar(const Func &f, const Expr *e, DType want);

 private:
  struct What {  // what a name means
    DType type = DType::Invalid;
    int slot = -1, buffer = -1;
    std::optional<Linear> linear;
  };
  using Saved = std::vector<std::pair<Sym, std::optional<What>>>;

  // Names.
  int slot() { return slots_++; }
  void define(Sym name, What w);
  void pop(size_t mark);
  const What &find(Sym name, uint32_t at) const;
  int buffer_of(const Load *l);
  int buffer_of(Sym name, uint32_t at, bool global);
  int add_buffer(Sym name, const Type *t);
  void define_buffer(Sym name, int buffer, uint32_t at);

  // Expressions.
  bool open(const Expr *e);  // made of literals alone: its type comes from the place
  Node *expr(const Expr *e, DType want);
  Node *index(const Expr *e) { return expr(e, DType::Index); }
  Node *literal(const Expr *e, DType want);
  Node *call(const Call *c, DType want);
  Node *reduction(const Call *c, std::string_view kind, DType want);
  std::pair<const Node *, const Node *> pair(const Expr *a, const Expr *b, DType want);
  Node *apply(const Func *f, Exprs args);
  const Func *callee(const Call *c) const;
  const Access *access(const Load *l);

  // Affine sums of loops.
  std::optional<Linear> linear(const Expr *e);
  std::optional<Linear> sum(const Linear &a, const Linear &b, bool minus);
  const Node *fold(Op op, const Node *a, const Node *b);
  const Node *known(const Expr *e);  // its value before the kernel starts; null if it is not known
  void steps(CellPlan &p);

  // Statements.
  Acts body(Stmts s);
  void stmt(const Stmt *s, std::vector<const Act *> &out);
  LoopInfo *open_loop(Sym name, const Expr *extent, bool free_order);
  void let(const Let *s, std::vector<const Act *> &out);
  void compute(const Compute *s, std::vector<const Act *> &out);
  void block(const Block *s, std::vector<const Act *> &out);
  bool across_threads(const Block &s);
  void alloc(const Alloc *s, std::vector<const Act *> &out);
  void view(const View *s, std::vector<const Act *> &out);
  void call_stmt(const CallStmt *s, std::vector<const Act *> &out);
  const Node *stored(const Store &s, DType t);
  const Node *term(const Expr *e, DType want);
  Operand operand(const Expr *e, const Type *want);
  Operand region(const Load *l);
  const Act *act(ActFn run, const void *what, uint32_t at);
  const Act *nest(const std::vector<LoopInfo *> &loops, const Act *inner);
  std::string_view origin() const;  // `from "/a", "/b"`, for messages
  template <class T> const T *keep(T v) {
    auto p = std::make_shared<T>(std::move(v));
    kept_.push_back(p);
    return p.get();
  }

  Build &b_;
  const Module &m_;
  Nodes &nodes_;
  std::vector<std::shared_ptr<void>> &kept_;
  const bool jitter_, races_;
  std::function<const Lambda *(const Func *)> lambda_of_;
  std::function<const Func *(std::string_view, DType, bool)> library_;
  bool fused_ = false;  // the licence fma

  Unit *unit_ = nullptr;
  int slots_ = 0;
  std::unordered_map<Sym, What> names_;
  Saved log_;
  std::unordered_map<Sym, int> constants_;    // buffers of @names
  std::unordered_map<const Expr *, bool> open_;
  Syms from_;
  bool in_reducer_ = false;
  std::unordered_set<int> combining_;  // buffers that threads, or atomic stores, combine into: no races
  std::unordered_map<Sym, bool> threads_;  // loops bound to tags below a block; true: a reduction goes across them
  bool shared_ = false;  // the kernel has buffers in `shared`
};

}  // namespace mlc::interp
