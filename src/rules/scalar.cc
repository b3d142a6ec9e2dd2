#include "rules/scalar.h"

#include <algorithm>
#include <cmath>

#include "ir/edit.h"
#include "num/convert.h"

namespace mlc {

namespace {

bool is_literal(const Expr *e) { return e->kind == Kind::Int || e->kind == Kind::Float || e->kind == Kind::Bool; }
bool compares(Op op) { return op >= Op::Eq && op <= Op::Ge; }
bool logical(Op op) { return op == Op::And || op == Op::Or; }

// Literals, and literals that a cast gives a type.
bool is_value(const Build &b, const Expr *e) {
  auto c = as<Call>(e);
  if (!c || c->global || c->args.size() != 1) return is_literal(e);
  return is_cast(b.text(c->callee)) && is_literal(c->args[0]);
}

bool is_negative(DType t, Scalar v) {
  return is_int(t) ? is_signed(t) && v.as_int() < 0 && !(v == lowest(t)) : to_double(t, v) < 0;
}

// 1 / v is a value of t: v is a power of two, and not so far out that its inverse is rounded.
bool exact_reciprocal(DType t, Scalar s) {
  double v = to_double(t, s), r = 1 / v;
  int exponent;
  return std::isfinite(v) && std::abs(std::frexp(v, &exponent)) == 0.5 && to_double(t, scalar_of(t, r)) == r;
}

}  // namespace

const Expr *ScalarRules::simplify(Env &env, const Expr *e, DType want) {
  env_ = &env;
  return walk(e, want).e;
}

DType ScalarRules::quick_type(const Expr *e) const {
  switch (e->kind) {
    case Kind::Bool: return DType::Bool;
    case Kind::Name: {
      const Type *t = env_->find(to<Name>(e).name);
      return t ? t->elem : DType::Invalid;
    }
    case Kind::Load: {
      auto &l = to<Load>(e);
      if (l.global) {
        const Const *c = env_->m.constant(l.buffer);
        return c ? c->type->elem : DType::Invalid;
      }
      const Type *t = env_->find(l.buffer);
      return t ? t->elem : DType::Invalid;
    }
    case Kind::Unary: return to<Unary>(e).op == Op::Not ? DType::Bool : quick_type(to<Unary>(e).a);
    case Kind::Binary: {
      auto &x = to<Binary>(e);
      if (x.op < Op::Add) return DType::Bool;
      DType a = quick_type(x.a);
      return a == DType::Invalid ? quick_type(x.b) : a;
    }
    case Kind::Call: {
      auto &c = to<Call>(e);
      std::string_view name = b_.text(c.callee);
      if (c.global) {
        const Func *f = env_->m.func(c.callee);
        return f && !f->results.empty() ? f->results[0].type->elem : DType::Invalid;
      }
      if (DType t = dtype_named(name); t != DType::Invalid) return t;
      const Builtin *f = builtin(name);
      if (!c.iters.empty() || !f) return DType::Invalid;
      if (f->signature == Signature::Test) return DType::Bool;
      if (f->signature == Signature::Bits) return name.size() > 5 ? dtype_named(name.substr(5)) : DType::Invalid;
      DType t = DType::Invalid;
      size_t i = f->signature == Signature::Where;
      for (; i < c.args.size() && t == DType::Invalid; i++) t = quick_type(c.args[i]);
      return t;
    }
    default: return DType::Invalid;
  }
}

// The type that the rule's numbers and guards are about.
DType ScalarRules::operand_type(const Expr *e, DType type) const {
  if (auto x = as<Binary>(e); x && compares(x->op)) {
    DType a = quick_type(x->a);
    return a == DType::Invalid ? quick_type(x->b) : a;
  }
  if (auto c = as<Call>(e); c && !c->global && builtin(b_.text(c->callee)) &&
                            builtin(b_.text(c->callee))->signature == Signature::Test)
    return quick_type(c->args[0]);
  return type;
}

// -e. A literal takes the sign, in the integers of its type: -3 is 253 in u8.
const Expr *ScalarRules::unary(Op op, const Expr *e, DType type, uint32_t at) {
  auto i = as<Int>(e);
  if (op == Op::Neg && i && is_int(type)) return literal_of(b_, type, narrow(type, int64_t(-uint64_t(i->value))));
  return b_.unary(op, e, at);
}

const Expr *ScalarRules::anchored(const Expr *e, DType type) {
  if (!is_literal(e) || e->kind == Kind::Bool || type == DType::Invalid) return e;
  return b_.call(b_.sym(dtype_name(type)), b_.one(e));
}

const Expr *ScalarRules::folded(const Expr *e, DType type) {
  if (!fold_ || type == DType::Invalid) return nullptr;
  auto value = [&](const Expr *a) { return is_value(b_, a); };
  if (auto u = as<Unary>(e)) {
    if (!value(u->a)) return nullptr;
  } else if (auto x = as<Binary>(e)) {
    if (!value(x->a) || !value(x->b)) return nullptr;
  } else if (auto c = as<Call>(e)) {
    if (c->global || !c->iters.empty() || c->args.empty()) return nullptr;
    if (!std::all_of(c->args.begin(), c->args.end(), value)) return nullptr;
    if (!is_cast(b_.text(c->callee)) && !builtin(b_.text(c->callee))) return nullptr;
  } else {
    return nullptr;
  }
  const Expr *v = fold_(e, type);
  applied += v != nullptr;
  return v;
}

// Null if a part that must be folded has no value.
const Expr *ScalarRules::build(const Expr *result, const Binding &vars, DType t, bool root) {
  auto part = [&](const Expr *e) { return build(e, vars, t, false); };
  const Expr *made = nullptr;
  switch (result->kind) {
    case Kind::Name: return vars.find(to<Name>(result).name);
    case Kind::Bool: return result;
    case Kind::Int: {
      int64_t v = to<Int>(result).value;
      return literal_of(b_, t, is_int(t) ? scalar_of(t, v) : scalar_of(t, double(v)));
    }
    case Kind::Float: return literal_of(b_, t, scalar_of(t, to<Float>(result).value));
    case Kind::Unary: {
      auto &u = to<Unary>(result);
      const Expr *a = part(u.a);
      if (!a) return nullptr;
      made = unary(u.op, a, t, kNowhere);
      break;
    }
    case Kind::Binary: {
      auto &x = to<Binary>(result);
      const Expr *l = part(x.a), *r = part(x.b);
      if (!l || !r) return nullptr;
      made = b_.binary(x.op, l, r);
      if (is_literal(l) && is_literal(r)) return folded(made, x.op < Op::Add ? DType::Bool : t);
      break;
    }
    case Kind::Call: {
      std::vector<const Expr *> args;
      for (const Expr *a : to<Call>(result).args)
        if (args.push_back(part(a)); !args.back()) return nullptr;
      made = b_.call(to<Call>(result).callee, b_.list(args));
      if (std::all_of(args.begin(), args.end(), is_literal)) return folded(made, t);
      break;
    }
    default: return nullptr;
  }
  if (root) return made;
  auto x = as<Binary>(made);
  return finish(made, x && x->op < Op::Add ? DType::Bool : t).e;
}

const Expr *ScalarRules::once(const Expr *e, DType type) {
  std::span<const Rule *const> rules = rules_.at(e);
  if (rules.empty()) return nullptr;
  DType t = operand_type(e, type);
  if (t == DType::Invalid) return nullptr;
  Binding vars;
  for (const Rule *r : rules) {
    if (r->lines) continue;
    vars.clear();
    if (!match(b_, r->pattern, e, t, vars)) continue;
    bool ok = !r->guard || holds(b_, r->guard, [&](std::string_view name, const Expr *arg) {
      const Expr *x = vars.find(to<Name>(arg).name);
      DType own = x ? quick_type(x) : DType::Invalid;
      bool yes = false;
      if (of_class(name, own == DType::Invalid ? t : own, &yes)) return yes;
      Scalar v;
      if (!x || !literal_value(x, t, &v)) return false;
      return name == "reciprocal" ? exact_reciprocal(t, v) : name == "negative" && is_negative(t, v);
    });
    const Expr *made = ok ? build(r->result, vars, t, true) : nullptr;
    if (!made || equal(made, e)) continue;
    if (on_rule) on_rule(*r);
    return made;
  }
  return nullptr;
}

ScalarRules::Typed ScalarRules::finish(const Expr *e, DType type) {
  for (int turn = 0; turn < 64; turn++) {
    if (const Expr *v = folded(e, type)) return {v, type};
    const Expr *next = once(e, type);
    if (!next) break;
    applied++;
    e = next;
  }
  return {e, type};
}

ScalarRules::Typed ScalarRules::binary(const Binary &x, DType want) {
  bool compare = compares(x.op);
  DType in = logical(x.op) ? DType::Bool : compare ? DType::Invalid : want;
  Typed l = walk(x.a, in), r = walk(x.b, l.type == DType::Invalid ? in : l.type);
  if (l.type == DType::Invalid && r.type != DType::Invalid) l = walk(x.a, r.type);
  DType t = l.type == DType::Invalid ? r.type : l.type;
  // Two literals keep a type of their own, unless the place gives it; one of them takes the other side's.
  auto bare = [&](const Expr *e) {
    auto c = as<Call>(e);
    bool typed = c && is_value(b_, e) && c->callee == b_.sym(dtype_name(t));
    return typed && literal_of_type(c->args[0], t) ? c->args[0] : e;
  };
  const Expr *a = bare(l.e), *c = bare(r.e);
  if (is_literal(a) && is_literal(c) && !logical(x.op) && (compare || want == DType::Invalid)) a = anchored(a, t);
  const Expr *e = a == x.a && c == x.b ? &x : b_.binary(x.op, a, c, x.at);
  return finish(e, compare || logical(x.op) ? DType::Bool : t);
}

// A cast that only gives a literal its type.
bool ScalarRules::literal_of_type(const Expr *e, DType t) const {
  Scalar v;
  return literal_value(e, t, &v);
}

ScalarRules::Typed ScalarRules::call(const Call &c, DType want) {
  std::string_view name = b_.text(c.callee);
  std::vector<const Expr *> args(c.args.begin(), c.args.end());
  auto made = [&] {
    bool same = std::equal(args.begin(), args.end(), c.args.begin());
    return same ? static_cast<const Expr *>(&c) : b_.call(c.callee, b_.list(args), c.at, c.global, c.iters);
  };
  if (c.global || !c.iters.empty()) {
    size_t mark = env_->mark();
    for (const Iter &i : c.iters) env_->define_index(i.name);
    const Func *f = c.global ? env_->m.func(c.callee) : nullptr;
    bool truth = !c.global && (name == "any" || name == "all");
    DType type = truth ? DType::Bool : c.global ? quick_type(&c) : want;
    for (size_t i = 0; i < args.size(); i++) {
      DType place = truth ? DType::Bool : c.global ? DType::Invalid : want;
      if (f && i < f->params.size()) place = f->params[i].def.type->elem;
      if (c.global && place == DType::Invalid) continue;
      Typed a = walk(args[i], place);
      args[i] = place == DType::Invalid ? anchored(a.e, a.type) : a.e;
      if (!c.global && !truth) type = a.type;
    }
    env_->pop(mark);
    return {made(), type};
  }
  if (DType to = dtype_named(name); to != DType::Invalid && args.size() == 1) {
    if (is_literal(args[0])) {
      if (want == to)
        if (const Expr *v = folded(&c, to)) return {v, to};
      return {&c, to};
    }
    Typed a = walk(args[0], DType::Invalid);
    if (a.type == to && !is_value(b_, a.e)) return applied++, a;
    args[0] = anchored(a.e, a.type);
    const Expr *e = made();
    if (want == to && is_value(b_, args[0]))
      if (const Expr *v = fold_ ? fold_(e, to) : nullptr) return applied++, Typed{v, to};
    return {e, to};
  }
  const Builtin *f = builtin(name);
  if (!f || args.size() != size_t(f->arity)) return {&c, DType::Invalid};
  if (f->signature == Signature::Bits || f->signature == Signature::Test) {
    Typed a = walk(args[0], DType::Invalid);
    args[0] = anchored(a.e, a.type);
    bool test = f->signature == Signature::Test;
    return finish(made(), test ? DType::Bool : dtype_named(name.substr(std::min<size_t>(5, name.size()))));
  }
  size_t first = f->signature == Signature::Where;
  if (first) args[0] = walk(args[0], DType::Bool).e;
  DType t = want;
  for (size_t i = first; i < args.size() && t == DType::Invalid; i++) t = quick_type(args[i]);
  bool all = true;
  for (size_t i = first; i < args.size(); i++) {
    args[i] = walk(args[i], t).e;
    all &= is_literal(args[i]);
  }
  if (all && want == DType::Invalid) args[first] = anchored(args[first], t);
  return finish(made(), t);
}

ScalarRules::Typed ScalarRules::walk(const Expr *e, DType want) {
  switch (e->kind) {
    case Kind::Int:
    case Kind::Float: return {e, want};
    case Kind::Unary: {
      auto &u = to<Unary>(e);
      Typed a = walk(u.a, u.op == Op::Not ? DType::Bool : want);
      return finish(a.e == u.a ? e : unary(u.op, a.e, a.type, e->at), a.type);
    }
    case Kind::Binary: return binary(to<Binary>(e), want);
    case Kind::Call: return call(to<Call>(e), want);
    default: return {e, quick_type(e)};
  }
}

}  // namespace mlc
