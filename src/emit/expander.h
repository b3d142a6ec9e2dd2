// The inside of expand.h: one function on its way to loops and stores.
#pragma once
#include <unordered_set>

#include "arith/bounds.h"
#include "emit/expand.h"
#include "ir/typing.h"
#include "ir/walk.h"
#include "ops/expr.h"

namespace mlc {

class Expander {
 public:
  Expander(Build &b, const Module &m, const Func *f, Diag &diag, bool rows = true);
  const Func *run();

 private:
  using Out = std::vector<const Stmt *>;
  using Values = std::vector<const Expr *>;

  // ---- statements (expand.cc)
  void body(Stmts in, Out &out);
  Stmts body(Stmts in);
  void stmt(const Stmt *s, Out &out);
  void let(const Let &l, Out &out);
  void compute(const Compute &c, Out &out);
  void loop(const For &f, Out &out);
  void define(const Def &d, const Expr *value, Syms from, Out &out);
  const Stmt *store(const Load *target, const Expr *value, Syms from = {});
  void guarded(const Expr *cond, Out in, Out &out);  // null: always
  const Stmt *commented(const Stmt *s, std::string_view comment) { return mlc::commented(b_, s, comment); }
  std::string_view comment_of(const Stmt &s, const std::string &what);
  template <class F> void nest(Iters iters, Syms from, Out &out, const F &inner);

  // ---- expressions (expand_expr.cc): what is left of them has no reductions; these stand in front, in `out`
  bool is_fold(const Expr *e) const;
  bool reduces(const Expr *e);
  const Load *accumulator(std::string_view base, DType t, Out &out);
  Exprs lower_all(Exprs l, DType want, Out &out);
  Exprs lower_all(Exprs l, const Func &f, Out &out);
  const Expr *lower(const Expr *e, DType want, Out &out);
  const Expr *binary(const Binary &e, DType want, Out &out);
  const Expr *call(const Call &c, DType want, Out &out);
  const Expr *where(const Call &c, DType t, Out &out);
  const Expr *reduction(const Call &c, DType t, Out &out);
  const Expr *reducer_value(const Call &c, Out &out);
  Values fold(const Func &r, const Call &c, Out &out);
  Values combine(const Func &r, Exprs args, Out &out) { return combine(r, Values(args.begin(), args.end()), out); }
  Values combine(const Func &r, const Values &args, Out &out);
  const Expr *value(const Def &d, const Expr *e, Out &out);
  Values inlined(const Func &r, Stmts lets, Substitution names, Out &out);

  // ---- reductions a row at a time (expand_rows.cc)
  bool rows(const Compute &c, Out &out);  // false: it is not of that form, and nothing was written
  const Call *only_fold(const Expr *e);
  bool along(const Expr *term, Sym v, const Bounds &known);
  bool between(const std::vector<const Expr *> &conditions, Sym v, const Bounds &known, Values &lo, Values &hi);

  DType elem_of(const Load &l) const;
  DType known(const Expr *e) const { return type_of(env_, e, DType::Invalid, nullptr); }
  DType type(const Expr *e, DType want) const;

  std::string_view text(Sym s) const { return b_.text(s); }
  X x(const Expr *e) { return {b_, e}; }
  template <class... A> void fail(uint32_t at, fmt::format_string<A...> f, A &&...a) {
    diag_.error(at, f, std::forward<A>(a)...);
    failed_ = true;
  }
  // A name that nothing visible has: base, base_1, base_2 ...; free again when the body that it is made for ends.
  Sym fresh(std::string_view base);
  void release(size_t mark);

  Build &b_;
  const Module &m_;
  const Func *f_;
  Diag &diag_;
  std::unordered_set<Sym> taken_;
  std::vector<Sym> made_;
  Env env_;
  std::unordered_map<const Expr *, bool> reduces_;
  bool rows_, failed_ = false;
};

// for i in .. around what `inner` writes
template <class F> void Expander::nest(Iters iters, Syms from, Out &out, const F &inner) {
  size_t mark = env_.mark(), names = made_.size();
  for (const Iter &i : iters) env_.define_index(i.name);
  Out in;
  inner(in);
  env_.pop(mark);
  if (!iters.empty()) release(names);
  for (size_t d = iters.size(); d-- > 0;) {
    Notes notes{{}, d ? Syms{} : from};
    const Stmt *f = b_.make(For{{}, LoopKind::Serial, iters[d], {}, notes, b_.list(in)});
    in.assign(1, f);
  }
  out.insert(out.end(), in.begin(), in.end());
}

}  // namespace mlc
