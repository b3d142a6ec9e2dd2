#include "graph/upper.h"

#include "graph/arena.h"

namespace mlc {

Upper::Upper(Build &b, const Func &f) : b_(b) {
  auto known = [&](Sym s) {
    X x{b_, b_.name(s)};
    fixed_.insert(s), limits_[s] = {x, x};
  };
  for (Sym s : f.dims) known(s);
  for (const Param &p : f.params)
    if (p.def.type == b.index()) known(p.def.name);
}

void Upper::define(Sym name, Limits l) {
  auto it = limits_.find(name);
  log_.push_back({name, it == limits_.end() ? std::nullopt : std::optional(it->second)});
  limits_[name] = l;
}
void Upper::pop(size_t mark) {
  for (; log_.size() > mark; log_.pop_back())
    if (log_.back().before) limits_[log_.back().name] = *log_.back().before;
    else limits_.erase(log_.back().name);
}

void Upper::range(Sym name, const Expr *extent) {
  Limits l = limits(extent);
  if (l.hi) l.hi = *l.hi - 1;
  define(name, {lit(b_, 0), l.hi});
}

// A second bound replaces the first only if it is a number: both hold, and a number is the simpler one to reserve.
void Upper::at_most(const Expr *name, const Expr *e, int64_t plus) {
  auto *n = as<Name>(name);
  if (!n || !knows(n->name) || fixed_.count(n->name)) return;
  Limits l = limits_[n->name];
  auto hi = limits(e).hi;
  int64_t c, before;
  if (!hi) return;
  *hi = *hi + plus;
  bool number = is_const(*hi, &c);
  if (l.hi && !number) return;
  if (l.hi && is_const(*l.hi, &before) && before <= c) return;
  l.hi = hi;
  define(n->name, l);
}
void Upper::at_least(const Expr *name, const Expr *e, int64_t plus) {
  auto *n = as<Name>(name);
  if (!n || !knows(n->name) || fixed_.count(n->name)) return;
  Limits l = limits_[n->name];
  auto lo = limits(e).lo;
  if (!lo || l.lo) return;
  l.lo = *lo + plus;
  define(n->name, l);
}

void Upper::assume(const Expr *cond) {
  auto *c = as<Binary>(cond);
  if (!c) return;
  switch (c->op) {
    case Op::And: return assume(c->a), assume(c->b);
    case Op::Eq:
      at_most(c->a, c->b, 0), at_most(c->b, c->a, 0), at_least(c->a, c->b, 0), at_least(c->b, c->a, 0);
      return;
    case Op::Lt: return at_most(c->a, c->b, -1), at_least(c->b, c->a, 1);
    case Op::Le: return at_most(c->a, c->b, 0), at_least(c->b, c->a, 0);
    case Op::Gt: return at_most(c->b, c->a, -1), at_least(c->a, c->b, 1);
    case Op::Ge: return at_most(c->b, c->a, 0), at_least(c->a, c->b, 0);
    default: return;
  }
}

bool Upper::fixed(const Expr *e) const {
  bool ok = true;
  each_expr(e, [&](const Expr *x) {
    if (auto *n = as<Name>(x)) ok = ok && fixed_.count(n->name);
    if (x->kind == Kind::Load) ok = false;
    return ok;
  });
  return ok;
}

// Of an expression of the caller's sizes, which are not negative.
bool Upper::not_negative(X x) const {
  int64_t c;
  if (is_const(x, &c)) return c >= 0;
  if (x.e->kind == Kind::Name) return true;
  if (auto *e = as<Binary>(x.e)) {
    X a{b_, e->a}, d{b_, e->b};
    switch (e->op) {
      case Op::Add: case Op::Mul: case Op::FloorDiv: return not_negative(a) && not_negative(d);
      case Op::Mod: return not_negative(d);
      default: return false;
    }
  }
  auto *e = as<Call>(x.e);
  if (!e || e->global || e->args.size() != 2) return false;
  bool a = not_negative({b_, e->args[0]}), d = not_negative({b_, e->args[1]});
  return b_.text(e->callee) == "max" ? a || d : b_.text(e->callee) == "min" && a && d;
}

Upper::Limits Upper::limits(const Expr *e) const {
  X self{b_, e};
  if (auto *n = as<Name>(e)) {
    auto it = limits_.find(n->name);
    return it == limits_.end() ? Limits{} : it->second;
  }
  if (e->kind == Kind::Int || fixed(e)) return {self, self};
  if (auto *x = as<Binary>(e)) {
    Limits p = limits(x->a), q = limits(x->b), r;
    bool positive = p.lo && q.lo && not_negative(*p.lo) && not_negative(*q.lo);
    int64_t c;
    switch (x->op) {
      case Op::Add:
        if (p.lo && q.lo) r.lo = *p.lo + *q.lo;
        if (p.hi && q.hi) r.hi = *p.hi + *q.hi;
        return r;
      case Op::Sub:
        if (p.lo && q.hi) r.lo = *p.lo - *q.hi;
        if (p.hi && q.lo) r.hi = *p.hi - *q.lo;
        return r;
      case Op::Mul:
        if (!positive) return r;
        r.lo = *p.lo * *q.lo;
        if (p.hi && q.hi) r.hi = *p.hi * *q.hi;
        return r;
      case Op::FloorDiv:
        if (!int_value(x->b, &c) || c <= 0) return r;
        if (p.lo) r.lo = floordiv(*p.lo, c);
        if (p.hi) r.hi = floordiv(*p.hi, c);
        return r;
      case Op::Mod:
        if (!int_value(x->b, &c) || c <= 0) return r;
        return {lit(b_, 0), lit(b_, c - 1)};
      default: return r;
    }
  }
  auto *call = as<Call>(e);
  std::string_view name = call && !call->global && call->args.size() == 2 ? b_.text(call->callee) : "";
  if (name != "max" && name != "min") return {};
  Limits p = limits(call->args[0]), q = limits(call->args[1]), r;
  // max(a, b) is at least either, and at most the larger of both bounds; min the other way round.
  using Side = std::optional<X> Limits::*;
  auto [any, both] = name == "max" ? std::pair<Side, Side>(&Limits::lo, &Limits::hi)
                                   : std::pair<Side, Side>(&Limits::hi, &Limits::lo);
  auto join = [&](X a, X b) { return name == "max" ? max(a, b) : min(a, b); };
  if (p.*any && q.*any) r.*any = join(*(p.*any), *(q.*any));
  else r.*any = p.*any ? p.*any : q.*any;
  if (p.*both && q.*both) r.*both = join(*(p.*both), *(q.*both));
  return r;
}

std::optional<X> Upper::of(const Expr *e, Sym *open) const {
  if (fixed(e)) return X{b_, e};
  if (auto hi = limits(e).hi) return simplify(*hi);
  std::unordered_set<Sym> names;
  collect_names(e, names);
  Sym first;  // by their text, so that a message does not depend on the order of a set
  for (auto side : {&Limits::hi, &Limits::lo}) {
    if (first) break;
    for (Sym s : names)
      if (!(limits(b_.name(s)).*side) && (!first || b_.text(s) < b_.text(first))) first = s;
  }
  if (open) *open = first;
  return std::nullopt;
}

std::optional<X> Upper::bytes(const Type *t, Sym *open) const {
  std::vector<const Expr *> dims;
  for (const Expr *d : t->dims) {
    if (d->kind == Kind::Int || fixed(d)) {
      dims.push_back(d);
      continue;
    }
    auto hi = of(d, open);
    if (!hi) return std::nullopt;
    dims.push_back(not_negative(*hi) ? hi->e : max(*hi, lit(b_, 0)).e);
  }
  return bytes_of(b_, b_.with_dims(t, b_.list(dims)));
}

}  // namespace mlc
