#include "rules/match.h"

#include <cmath>

#include "num/convert.h"

namespace mlc {

bool Binding::bind(const Build &b, Sym name, const Expr *e) {
  if (b.text(name) == "_") return true;
  if (const Expr *old = find(name)) return equal(old, e);
  vars_.push_back({name, e});
  return true;
}

const Expr *Binding::find(Sym name) const {
  for (auto &[n, e] : vars_)
    if (n == name) return e;
  return nullptr;
}

bool literal_value(const Expr *e, DType t, Scalar *v) {
  if (auto i = as<Int>(e); i && is_int(t)) {
    *v = narrow(t, i->value);
    return t == DType::U64 ? i->wide || i->value >= 0 : !i->wide && v->as_int() == i->value;
  }
  if (auto f = as<Float>(e); f && is_float(t)) {
    *v = f->nan_bits ? from_bits(t, f->nan_bits) : scalar_of(t, f->value);
    return true;
  }
  if (auto x = as<Bool>(e); x && t == DType::Bool) {
    *v = Scalar::of_bool(x->value);
    return true;
  }
  return false;
}

const Expr *literal_of(Build &b, DType t, Scalar v) {
  if (t == DType::Bool) return b.boolean(v.as_bool());
  if (is_int(t)) return b.integer(v.as_int(), kNowhere, t == DType::U64 && v.as_int() < 0);
  double d = to_double(t, v);
  bool payload = std::isnan(d) && (std::signbit(d) || to_bits(t, scalar_of(t, d)) != to_bits(t, v));
  if (payload) return b.number(d, kNowhere, to_bits(t, v));
  return b.number(d, t);
}

bool same_literal(const Build &b, const Expr *pattern, const Expr *e, DType t) {
  Scalar v;
  if (!literal_value(e, t, &v)) return false;
  if (auto n = as<Name>(pattern)) return v == (b.text(n->name) == "lowest" ? lowest(t) : highest(t));
  if (auto x = as<Bool>(pattern)) return t == DType::Bool && x->value == v.as_bool();
  if (t == DType::Bool) return false;
  auto f = as<Float>(pattern);
  auto i = as<Int>(pattern);
  if (is_int(t)) return i && v.as_int() == i->value && !(t == DType::U64 && v.as_int() < 0);
  double d = to_double(t, v), wanted = f ? f->value : double(i->value);
  return d == wanted && std::signbit(d) == std::signbit(wanted);
}

namespace {

bool is_constant_name(std::string_view s) { return s.size() == 2 && s[0] == 'c' && s[1] >= '0' && s[1] <= '9'; }
bool is_extreme(std::string_view s) { return s == "lowest" || s == "highest"; }
bool is_literal(const Expr *e) { return e->kind == Kind::Int || e->kind == Kind::Float || e->kind == Kind::Bool; }

bool match_all(const Build &b, Exprs pattern, Exprs l, DType t, Binding &vars) {
  if (pattern.size() != l.size()) return false;
  for (size_t i = 0; i < l.size(); i++)
    if (!match(b, pattern[i], l[i], t, vars)) return false;
  return true;
}

}  // namespace

bool match(const Build &b, const Expr *pattern, const Expr *e, DType t, Binding &vars) {
  if (auto n = as<Name>(pattern)) {
    std::string_view name = b.text(n->name);
    if (is_extreme(name)) return is_literal(e) && same_literal(b, pattern, e, t);
    return (!is_constant_name(name) || is_literal(e)) && vars.bind(b, n->name, e);
  }
  if (pattern->kind == Kind::Bool) return same_literal(b, pattern, e, DType::Bool);
  if (is_literal(pattern)) return is_literal(e) && same_literal(b, pattern, e, t);
  if (pattern->kind != e->kind) return false;
  if (auto u = as<Unary>(pattern)) return u->op == to<Unary>(e).op && match(b, u->a, to<Unary>(e).a, t, vars);
  if (auto x = as<Binary>(pattern)) {
    auto &y = to<Binary>(e);
    return x->op == y.op && match(b, x->a, y.a, t, vars) && match(b, x->b, y.b, t, vars);
  }
  auto c = as<Call>(pattern);
  if (!c) return false;
  auto &d = to<Call>(e);
  return c->callee == d.callee && !d.global && d.iters.empty() && match_all(b, c->args, d.args, t, vars);
}

bool of_class(std::string_view name, DType t, bool *yes) {
  if (name == "int") *yes = is_int(t);
  else if (name == "float") *yes = is_float(t);
  else if (name == "unsigned") *yes = is_int(t) && !is_signed(t);
  else if (name == "bool") *yes = t == DType::Bool;
  else return false;
  return true;
}

bool holds(const Build &b, const Expr *guard, const Predicate &p) {
  if (auto u = as<Unary>(guard)) return !holds(b, u->a, p);
  if (auto x = as<Binary>(guard))
    return x->op == Op::And ? holds(b, x->a, p) && holds(b, x->b, p) : holds(b, x->a, p) || holds(b, x->b, p);
  auto c = as<Call>(guard);
  return c && c->args.size() == 1 && p(b.text(c->callee), c->args[0]);
}

}  // namespace mlc
