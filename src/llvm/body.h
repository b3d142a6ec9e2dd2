// One function on its way to LLVM: its names, expressions and statements. It is expanded (emit/expand.h).
#pragma once
#include <functional>

#include "arith/bounds.h"
#include "ir/solve.h"
#include "ir/typing.h"
#include "llvm/unit.h"

namespace mlc::ll {

struct Entity {
  const Type *type = nullptr;
  V v = nullptr;              // a scalar; the first element of a buffer: a pointer to its storage
  bool writable = false;
  V first = nullptr;          // of a buffer of packed elements: where it begins, in elements; null: 0
  std::vector<V> dims, strides;       // of a buffer, in elements
  std::vector<const Expr *> written;  // its strides as expressions; empty: dense
};

struct Num {
  V v;
  DType type;
};

class Body {
 public:
  Body(Unit &unit, const Module &m, const Func &f, llvm::Function *fn, V constants);

  void define(Sym name, Entity e);
  void define_dim(Sym name, V v);
  void define_value(const Def &d, V v) { define(d.name, {d.type, v, false, nullptr, {}, {}, {}}); }
  void define_buffer(const Def &d, V pointer, bool writable);
  const Entity *find(Sym name) const;
  Sym latest(Sym name) const;  // the present name of what the text calls so, if it was defined again
  void stmts(Stmts body);

  Num expr(const Expr *e, DType want);
  V index(const Expr *e) { return expr(e, DType::Index).v; }
  V truth(const Expr *e) { return expr(e, DType::Bool).v; }
  V product(V size, V dim, V &ok);  // as a size must be; ok becomes false where it is not

  // Goes on where cond holds; leaves the function with `code` where it does not.
  void require(V cond, int code);
  void require(V cond, Failure f, const std::vector<V> &values = {});
  V i8(V pointer) { return ops.ir.CreateBitCast(pointer, ops.ir.getInt8PtrTy()); }
  void fail(uint32_t at, std::string message);

  std::vector<Failure> failures;
  int first_code = 0;                  // what failure 0 returns, less one
  std::function<void(Sym)> defined;    // called behind the definition of a scalar at the outermost level
  Ops &ops;
  Bounds bounds;

 private:
  // ---- expressions (expr.cc)
  DType type(const Expr *e, DType want) const;
  Num unary(const Unary &e, DType want);
  Num binary(const Binary &e, DType want);
  Num call(const Call &c, DType want);
  Num builtin_call(const Call &c, DType want);
  Num load(const Load &l);
  V where(const Expr *cond, const Expr *a, const Expr *b, DType t);
  V lazily(V cond, llvm::Type *t, const std::function<V()> &then, const std::function<V()> &other);
  bool harmless(const Expr *e);  // it may be evaluated where the program would not
  bool inside(const Entity &e, Exprs index);
  V place(const Entity &e, Exprs index, const Load &l);
  std::optional<Entity> buffer(const Expr *e, Sym name, bool global);

  // ---- statements (body.cc)
  void let(const Let &l);
  void store(const Store &s);
  void alloc(const Alloc &a);
  V place_in(const Alloc &a, const Entity &base, V bytes);
  void view(const View &v);
  void loop(const For &f);
  void branch(const If &i);
  void repeat(const While &w);
  void assume(const Assume &a);
  void scoped(const std::function<void()> &f);
  Stmts renamed(Sym name, Stmts rest);

  // ---- calls (call.cc)
  void call(const CallStmt &c);
  void copy(const CallStmt &c, const Expr *value);
  Argument argument_type(const Expr *e, DType want);
  V argument(const Expr *e, const Def &param, bool written, uint32_t at);
  struct Part {  // a region: where it begins, what is kept
    std::vector<V> lo;
    std::vector<const Expr *> extents, strides;
  };
  Part part(const Entity &e, Exprs index, uint32_t at);
  V offset(const Entity &e, const std::vector<V> &index);
  Entity measured(Entity e);

  Unit &u_;
  Build &b_;
  const Module &m_;
  const Func &f_;
  llvm::Function *fn_;
  V constants_;
  Env env_;
  std::unordered_map<Sym, Entity> names_;
  std::vector<std::pair<Sym, std::optional<Entity>>> log_;
  std::unordered_map<Sym, Sym> latest_;
  int depth_ = 0, renames_ = 0, nesting_ = 0;
};

}  // namespace mlc::ll
