// The inside of loops.h: one function on its way from loops with marks to lines of vectors.
#pragma once
#include <vector>

#include "arith/bounds.h"
#include "emit/loops.h"
#include "ir/typing.h"

namespace mlc {

class Shaper {
 public:
  Shaper(Build &b, const Module &m, const Func *f, int vector_bytes, const Library &library, Diag &diag);
  const Func *run();

 private:
  using Out = std::vector<const Stmt *>;

  // ---- loops (loops.cc)
  Stmts body(Stmts in);
  void body(Stmts in, Out &out);
  void stmt(const Stmt *s, Out &out);
  void branch(const If &i, Out &out);
  void loop(const For &f, Out &out);
  const For *first_lanes(const For &f, int64_t n);
  void vectorize(const For &f, const Expr *extent, int64_t n, Out &out);
  Stmts turn(const For &f, const Expr *extent);
  const Expr *constant_index(const Stmt *s);
  void scoped(Stmts body, Out &out);
  const For *serial(Sym v, const Expr *extent, Stmts body);
  void remark(const For &f, const std::string &what);
  bool is_local(const Stmt *s) const;

  // ---- whole vectors before the rest (tails.cc); false: the loop is not of that kind
  bool whole_first(const For &f, const Expr *extent, Stmts inner, Out &out);

  // ---- what cannot be vector code (lanes.cc)
  std::string refusal(Stmts body, Sym v);

  // ---- local buffers in registers (registers.cc)
  Stmts registers(Stmts body);

  Build &b_;
  const Module &m_;
  const Func *f_;
  int bytes_;
  const Library &library_;
  Diag &diag_;
  Env env_;
  Bounds known_;
  Fresh fresh_;
  std::unordered_set<Sym> locals_;  // buffers that could be registers
  Sym lane_;  // the loop that is being vectorized
};

}  // namespace mlc
