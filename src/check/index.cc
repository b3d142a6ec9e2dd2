// Proofs: sizes equal, subscripts inside.
#include "arith/prove.h"
#include "check/checker.h"
#include "text/text.h"

namespace mlc {

namespace {

// Floats and data are not for the proofs below: a memory read twice may differ.
bool has_load(const Expr *e) {
  bool found = false;
  each_expr(e, [&](const Expr *x) { return !(found |= x->kind == Kind::Load); });
  return found;
}

}  // namespace

void FuncChecker::unproved(std::string what) {
  if (prove_ && remarks_.insert(what).second) diag_.remark("@{}: {}", b_.text(f_.name), what);
}

Match FuncChecker::same(const Expr *x, const Expr *y) {
  if (equal(x, y)) return Match::Yes;
  int64_t i, j;
  if (int_value(x, &i) && int_value(y, &j)) return Match::No;
  if (has_load(x) || has_load(y)) return Match::Unknown;
  if (provably_equal(b_, x, y, bounds_)) return Match::Yes;
  return interval(fold(b_, Op::Sub, x, y), bounds_).contains(0) ? Match::Unknown : Match::No;
}

bool FuncChecker::same_type(uint32_t at, std::string_view what, const Type *expected, const Type *found) {
  if (expected == found) return true;
  bool wrong = expected->elem != found->elem || expected->tensor != found->tensor || expected->rank() != found->rank();
  for (size_t i = 0; !wrong && i < expected->rank(); ++i) {
    Match m = same(expected->dims[i], found->dims[i]);
    wrong = m == Match::No;
    if (m == Match::Unknown)
      unproved(fmt::format("{}: size {} not proved equal to {}", what, print(b_, found->dims[i]),
                           print(b_, expected->dims[i])));
  }
  if (!wrong) return true;
  auto bare = [&](const Type *t) { return print(b_, b_.type({t->elem, t->tensor, {}, {}, -1, t->dims, {}})); };
  return fail(at, "{}: expected {}, found {}", what, bare(expected), bare(found));
}

// Every load in e. Conditions of `where`, && and || guard what stands behind them, so that a subscript there may be
// outside without an error; when proving, they are assumed.
void FuncChecker::subscripts(const Expr *e, bool sure) {
  auto under = [&](const Expr *cond, const Expr *x) {
    size_t mark = bounds_.mark();
    if (prove_ && !has_load(cond)) bounds_.assume(cond);
    subscripts(x, false);
    bounds_.pop(mark);
  };
  auto negated = [&](const Expr *cond) { return b_.unary(Op::Not, cond); };
  switch (e->kind) {
    case Kind::Load: {
      auto &l = to<Load>(e);
      for (const Expr *i : l.index) subscripts(i, sure);
      const Type *t = nullptr;
      if (l.global) {
        auto *c = m_.constant(l.buffer);
        t = c ? c->type : nullptr;
      } else if (Entry *b = find(l.buffer)) {
        t = b->type;
      }
      if (t) access(l, t, sure);
      return;
    }
    case Kind::Binary: {
      auto &x = to<Binary>(e);
      subscripts(x.a, sure);
      if (x.op == Op::And) return under(x.a, x.b);
      if (x.op == Op::Or) return under(negated(x.a), x.b);
      return subscripts(x.b, sure);
    }
    case Kind::Call: {
      auto &c = to<Call>(e);
      if (!c.global && c.iters.empty() && c.args.size() == 3 && b_.text(c.callee) == "where") {
        subscripts(c.args[0], sure);
        under(c.args[0], c.args[1]);
        return under(negated(c.args[0]), c.args[2]);
      }
      size_t mark = bounds_.mark();
      Substitution renamed;  // sum(a[k] for k in 3) where a's type has a dimension k
      for (const Iter &i : c.iters) {
        subscripts(i.extent, sure);
        Entry *hidden = find(i.name);
        Sym name = hidden && hidden->what == What::Dim ? b_.sym(fmt::format("{} of {}", text(i.name), b_.text(c.callee))) : i.name;
        if (name != i.name) renamed[i.name] = b_.name(name);
        bounds_.range(name, i.extent);
      }
      for (const Expr *a : c.args) subscripts(renamed.empty() ? a : substitute(b_, a, renamed), sure);
      bounds_.pop(mark);
      return;
    }
    default: each_child(e, [&](const Expr *x) { subscripts(x, sure); });
  }
}

void FuncChecker::access(const Load &l, const Type *t, bool sure) {
  if (!t->tensor || t->rank() != l.index.size()) return;  // reported by the types
  for (size_t i = 0; i < l.index.size(); ++i) inside(l.index[i], t->dims[i], l, sure && !maybe_);
}

// 0 <= i < dim; of a region its first and last index. Outside for certain is an error where the access always happens.
void FuncChecker::inside(const Expr *i, const Expr *dim, const Load &l, bool sure) {
  if (i->kind == Kind::All) return;
  int64_t v, n, size = 1;
  const Expr *lo = i, *extent = nullptr;
  if (auto *r = as<Range>(i)) {
    lo = r->lo, extent = r->extent;
    if (is_int(lo, 0) && equal(extent, dim)) return;
  }
  if (int_value(lo, &v) && int_value(dim, &n) && (!extent || int_value(extent, &size))) {
    if (v >= 0 && v <= n && size <= n - v) return;  // not v + size: it may overflow
  } else if (auto *name = as<Name>(lo); name && !extent) {
    if (Entry *e = find(name->name); e && e->extent && equal(e->extent, dim)) return;
  }
  auto shown = [&] { return fmt::format("{} of {}{}", print(b_, i), l.global ? "@" : "", text(l.buffer)); };
  if (has_load(lo) || (extent && has_load(extent)))
    return unproved(fmt::format("subscript {} depends on data", shown()));
  const Expr *past = extent ? fold(b_, Op::Sub, fold(b_, Op::Add, lo, extent), dim)  // > 0: outside
                            : fold(b_, Op::Add, fold(b_, Op::Sub, lo, dim), b_.integer(1));
  Interval first = interval(lo, bounds_), last = interval(past, bounds_);
  bool empty = first.lo > first.hi || last.lo > last.hi;  // never reached
  if (sure && !empty && (first.hi < 0 || last.lo > 0)) {
    error(i->at == kNowhere ? l.at : i->at, "{} is outside, its size is {}", shown(), print(b_, dim));
    return;
  }
  if (!prove_) return;
  bool low = provably_less_equal(b_, b_.integer(0), lo, bounds_);
  bool high = provably_less_equal(b_, past, b_.integer(0), bounds_);
  std::string bound = low ? "below " + print(b_, dim) : "at least 0";
  if (!low || !high) unproved(fmt::format("subscript {} not proved {}", shown(), bound));
}

// A binding is inside its domain where the guard holds.
bool FuncChecker::bound_axis(const Axis &a, bool guarded) {
  Interval first = interval(a.binding, bounds_);
  Interval past = interval(fold(b_, Op::Add, fold(b_, Op::Sub, a.binding, a.domain), b_.integer(1)), bounds_);
  bool empty = first.lo > first.hi || past.lo > past.hi;
  if (!guarded && !maybe_ && !empty && (first.hi < 0 || past.lo > 0)) {
    return fail(a.binding->at, "axis {} is bound to {}, outside its domain {}", text(a.name), print(b_, a.binding),
                print(b_, a.domain));
  }
  if (prove_ && !guarded && !provably_inside(b_, a.binding, a.domain, bounds_))
    unproved(fmt::format("axis {} bound to {} not proved inside its domain {}", text(a.name), print(b_, a.binding),
                         print(b_, a.domain)));
  return true;
}

}  // namespace mlc
