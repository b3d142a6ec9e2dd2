#include "arith/simplify.h"

#include "arith/engine.h"
#include "arith/scope.h"

namespace mlc {

namespace {

bool is_condition(const Expr *e) {
  auto u = as<Unary>(e);
  auto x = as<Binary>(e);
  return e->kind == Kind::Bool || (u && u->op == Op::Not) || (x && x->op < Op::Add);
}

Op flipped(Op op) {  // of the negation
  switch (op) {
    case Op::Eq: return Op::Ne;
    case Op::Ne: return Op::Eq;
    case Op::Lt: return Op::Ge;
    case Op::Le: return Op::Gt;
    case Op::Gt: return Op::Le;
    default: return Op::Lt;
  }
}

bool is(const Expr *e, bool value) {
  auto k = as<Bool>(e);
  return k && k->value == value;
}

}  // namespace

const Expr *Engine::index(const Expr *e) {
  if (e->kind == Kind::Int) return e;
  const Expr *s = expr(normal(e));
  if (mlc::equal(s, e) || (short_only && cost(s) >= cost(e))) return e;
  return s;
}

const Expr *Engine::condition(const Expr *e) {
  if (auto u = as<Unary>(e); u && u->op == Op::Not) {
    const Expr *a = condition(u->a);
    if (auto k = as<Bool>(a)) return b.boolean(!k->value);
    if (auto not_not = as<Unary>(a); not_not && not_not->op == Op::Not) return not_not->a;
    if (auto c = as<Binary>(a); c && compares_indices(*c)) return condition(b.binary(flipped(c->op), c->a, c->b));
    return a == u->a ? e : b.unary(Op::Not, a);
  }
  auto x = as<Binary>(e);
  if (x && (x->op == Op::And || x->op == Op::Or)) {
    bool unit = x->op == Op::And;  // the value of the left side for which the right one matters
    const Expr *a = condition(x->a);
    if (as<Bool>(a)) return is(a, unit) ? condition(x->b) : a;
    size_t m = mark();
    assume(a, unit);
    const Expr *c = condition(x->b);
    pop(m);
    if (as<Bool>(c)) return is(c, unit) ? a : c;
    if (mlc::equal(a, c)) return a;
    if (!reads_memory(c)) {  // the right side alone may say it all; one that loads is guarded by the left one
      m = mark();
      assume(c, unit);
      const Expr *under = condition(a);
      pop(m);
      if (is(under, unit)) return c;
    }
    return a == x->a && c == x->b ? e : b.binary(x->op, a, c);
  }
  if (!x || !compares_indices(*x)) return parts(e);
  try {
    Poly l = normal(x->a), r = normal(x->b);
    Truth t = compare(x->op, l, r);
    if (t != Truth::Unknown) return b.boolean(t == Truth::Yes);
    Poly d = l - r;
    const Expr *s = nullptr;
    switch (x->op) {
      case Op::Lt: s = comparison(Op::Ge, -d - 1); break;
      case Op::Le: s = comparison(Op::Ge, -d); break;
      case Op::Gt: s = comparison(Op::Ge, d - 1); break;
      case Op::Ge: s = comparison(Op::Ge, d); break;
      default: s = comparison(x->op, d);
    }
    if (mlc::equal(s, e)) return e;
    if (!short_only || cost(s) < cost(e)) return s;
  } catch (Overflow) {
  }
  const Expr *a = index(x->a), *c = index(x->b);
  return a == x->a && c == x->b ? e : b.binary(x->op, a, c);
}

const Expr *Engine::any(const Expr *e) {
  switch (e->kind) {
    case Kind::Unary:
    case Kind::Binary: return is_condition(e) ? condition(e) : type(e) == Is::Index ? index(e) : parts(e);
    case Kind::Call: {
      auto &c = to<Call>(e);
      if (type(e) == Is::Index) return index(e);
      if (c.global || c.callee != words.where || c.args.size() != 3) return parts(e);
      const Expr *cond = condition(c.args[0]), *sides[2];
      if (as<Bool>(cond)) return any(c.args[is(cond, true) ? 1 : 2]);
      for (bool holds : {true, false}) {
        size_t m = mark();
        assume(cond, holds);
        sides[!holds] = any(c.args[holds ? 1 : 2]);
        pop(m);
      }
      if (mlc::equal(sides[0], sides[1])) return sides[0];
      if (cond == c.args[0] && sides[0] == c.args[1] && sides[1] == c.args[2]) return e;
      return b.call(c.callee, b.list({cond, sides[0], sides[1]}), e->at);
    }
    case Kind::Name: return type(e) == Is::Index ? index(e) : e;
    default: return parts(e);
  }
}

const Expr *Engine::parts(const Expr *e) {
  auto each = [&](Exprs l, auto &&f) {
    std::vector<const Expr *> out;
    for (const Expr *x : l) out.push_back(f(x));
    return std::equal(out.begin(), out.end(), l.begin()) ? l : b.list(out);
  };
  auto same = [](Exprs a, Exprs c) { return a.data() == c.data(); };
  switch (e->kind) {
    case Kind::Load: {
      auto &l = to<Load>(e);
      Exprs at = each(l.index, [&](const Expr *i) {
        return i->kind == Kind::Range || i->kind == Kind::All ? parts(i) : index(i);
      });
      return same(at, l.index) ? e : b.load(l.buffer, at, e->at, l.global);
    }
    case Kind::Range: {
      auto &r = to<Range>(e);
      const Expr *lo = index(r.lo), *extent = index(r.extent);
      return lo == r.lo && extent == r.extent ? e : b.range(lo, extent, e->at);
    }
    case Kind::Call: {
      auto &c = to<Call>(e);
      size_t m = mark();
      std::vector<Iter> iters(c.iters.begin(), c.iters.end());
      bool changed = false;
      for (Iter &i : iters) {
        const Expr *extent = index(i.extent);
        changed |= extent != i.extent;
        i.extent = extent;
        range(i.name, Poly(), normal(extent));
      }
      Exprs args = each(c.args, [&](const Expr *a) { return any(a); });
      pop(m);
      if (!changed && same(args, c.args)) return e;
      return b.call(c.callee, args, e->at, c.global, changed ? b.list(iters) : c.iters);
    }
    case Kind::Unary: {
      auto &u = to<Unary>(e);
      const Expr *a = any(u.a);
      if (a == u.a) return e;
      // A literal that takes the sign may not fit its type, 0 - 3 does.
      if (u.op == Op::Neg && a->kind == Kind::Int) return b.binary(Op::Sub, b.integer(0), a, e->at);
      return b.unary(u.op, a, e->at);
    }
    case Kind::Binary: {
      auto &x = to<Binary>(e);
      const Expr *a = any(x.a), *c = any(x.b);
      return a == x.a && c == x.b ? e : b.binary(x.op, a, c, e->at);
    }
    case Kind::List: {
      auto &l = to<List>(e);
      Exprs items = each(l.items, [&](const Expr *a) { return any(a); });
      return same(items, l.items) ? e : b.make_list(items, e->at);
    }
    default: return e;
  }
}

size_t cost(const Expr *e) {
  size_t n = 0;
  each_expr(e, [&](const Expr *x) {
    if (n > 1 << 20) return false;  // parts may be shared: the tree may be far larger than the expression
    auto c = as<Binary>(x);
    n += c && (c->op == Op::FloorDiv || c->op == Op::Mod) ? 3 : 1;
    return true;
  });
  return n;
}

namespace {

const Expr *run(const Expr *e, const Bounds &known, bool short_only, const Expr *(Engine::*f)(const Expr *)) {
  Engine &engine = known.engine();
  if (engine.short_only != short_only) engine.short_only = short_only, engine.forget();
  return (engine.*f)(e);
}

}  // namespace

const Expr *simplify(Build &, const Expr *e, const Bounds &known) {
  return run(e, known, false, is_condition(e) ? &Engine::condition : &Engine::index);
}
const Expr *simplify(Build &b, const Expr *e) {
  if (e->kind == Kind::Int || e->kind == Kind::Name) return e;
  return simplify(b, e, Bounds(b));
}
const Expr *shorten(Build &, const Expr *e, const Bounds &known) {
  return run(e, known, true, is_condition(e) ? &Engine::condition : &Engine::index);
}
const Expr *shorten_inside(Build &, const Expr *e, const Bounds &known) { return run(e, known, true, &Engine::any); }
const Expr *simplify_inside(Build &, const Expr *e, const Bounds &known) { return run(e, known, false, &Engine::any); }

}  // namespace mlc
