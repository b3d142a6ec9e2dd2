// Reductions inside expressions become loops in front of their statement.
#include "emit/expander.h"
#include "ir/edit.h"

namespace mlc {

DType Expander::elem_of(const Load &l) const {
  const Type *t = env_.find(l.buffer);
  return t ? t->elem : DType::Invalid;
}

DType Expander::type(const Expr *e, DType want) const {
  DType t = known(e);
  return t == DType::Invalid ? want : t;
}

bool Expander::is_fold(const Expr *e) const {
  auto *c = as<Call>(e);
  if (!c) return false;
  if (!c->iters.empty()) return true;
  const Func *r = c->global ? m_.func(c->callee) : nullptr;
  return r && r->func == FuncKind::Reducer;
}

bool Expander::reduces(const Expr *e) {
  if (auto it = reduces_.find(e); it != reduces_.end()) return it->second;
  bool yes = is_fold(e);
  each_child(e, [&](const Expr *c) { yes |= reduces(c); });
  return reduces_[e] = yes;
}

// A local scalar and its value.
const Load *Expander::accumulator(std::string_view base, DType t, Out &out) {
  Sym s = fresh(base);
  Type type{t, true, b_.sym("local"), {}, -1, {}, {}};
  const Type *unique = b_.type(type);
  env_.define(s, unique);
  out.push_back(b_.make(Alloc{{}, {s, kNowhere, unique}, {}, nullptr}));
  return b_.load(s, {});
}

Exprs Expander::lower_all(Exprs l, DType want, Out &out) {
  return edit_all(b_, l, [&](const Expr *&e) { e = lower(e, want, out); });
}

Exprs Expander::lower_all(Exprs l, const Func &f, Out &out) {
  size_t i = 0;
  return edit_all(b_, l, [&](const Expr *&e) {
    DType want = i < f.params.size() ? f.params[i].def.type->elem : DType::Invalid;
    i++, e = lower(e, want, out);
  });
}

const Expr *Expander::lower(const Expr *e, DType want, Out &out) {
  if (!reduces(e)) return e;
  switch (e->kind) {
    case Kind::Unary: {
      auto &u = to<Unary>(e);
      return b_.unary(u.op, lower(u.a, want, out), u.at);
    }
    case Kind::Binary: return binary(to<Binary>(e), want, out);
    case Kind::Load: {
      auto &l = to<Load>(e);
      return b_.load(l.buffer, lower_all(l.index, DType::Index, out), l.at, l.global);
    }
    case Kind::Call: return call(to<Call>(e), want, out);
    default: return e;
  }
}

const Expr *Expander::binary(const Binary &e, DType want, Out &out) {
  if ((e.op == Op::And || e.op == Op::Or) && reduces(e.b)) {
    // a && b: b is evaluated only where a holds
    const Load *r = accumulator(e.op == Op::And ? "both" : "either", DType::Bool, out);
    out.push_back(store(r, lower(e.a, DType::Bool, out)));
    const Expr *cond = e.op == Op::And ? static_cast<const Expr *>(r) : b_.unary(Op::Not, r);
    Out in;
    in.push_back(store(r, lower(e.b, DType::Bool, in)));
    guarded(cond, in, out);
    return r;
  }
  if (e.op >= Op::Eq && e.op <= Op::Ge) {
    DType t = known(e.a);
    want = t == DType::Invalid ? type(e.b, DType::Index) : t;
  }
  const Expr *a = lower(e.a, want, out);
  return b_.binary(e.op, a, lower(e.b, want, out), e.at);
}

const Expr *Expander::call(const Call &c, DType want, Out &out) {
  if (!c.iters.empty() || is_fold(&c)) {
    if (c.global) return reducer_value(c, out);
    return reduction(c, type(&c, want), out);
  }
  if (c.global) return b_.call(c.callee, lower_all(c.args, *m_.func(c.callee), out), c.at, true);
  std::string_view name = text(c.callee);
  if (name == "where") return where(c, type(&c, want), out);
  DType inner = want;
  if (is_cast(name) || name.starts_with("bits.") || name == "convert" || name.starts_with("is")) {
    inner = DType::Invalid;
  } else {
    for (const Expr *a : c.args)
      if (DType t = known(a); t != DType::Invalid) inner = t;
  }
  return b_.call(c.callee, lower_all(c.args, inner, out), c.at);
}

const Expr *Expander::where(const Call &c, DType t, Out &out) {
  const Expr *cond = lower(c.args[0], DType::Bool, out);
  bool plain = !reduces(c.args[1]) && !reduces(c.args[2]);
  if (plain) return b_.call(c.callee, b_.list({cond, c.args[1], c.args[2]}), c.at);
  const Load *r = accumulator("chosen", t, out);
  Out yes, no;
  yes.push_back(store(r, lower(c.args[1], t, yes)));
  no.push_back(store(r, lower(c.args[2], t, no)));
  out.push_back(b_.make(If{{}, cond, b_.list(yes), b_.list(no), true}));
  return r;
}

const Expr *Expander::reduction(const Call &c, DType t, Out &out) {
  std::string_view name = text(c.callee);
  const Load *acc = accumulator(name, t, out);
  out.push_back(store(acc, fold_start(b_, name, t).e));
  nest(c.iters, {}, out, [&](Out &in) { in.push_back(store(acc, fold_step(b_, name, acc, lower(c.args[0], t, in)))); });
  return acc;
}

const Expr *Expander::reducer_value(const Call &c, Out &out) {
  const Func &r = *m_.func(c.callee);
  Values results = c.iters.empty() ? combine(r, lower_all(c.args, r, out), out) : fold(r, c, out);
  if (results.size() != 1) return fail(c.at, "@{} has {} results, expected one", text(c.callee), results.size()), &c;
  return results[0];
}

// @r(a, b for k in n): accumulators from its init, combined with each turn's values.
Expander::Values Expander::fold(const Func &r, const Call &c, Out &out) {
  Values accs;
  if (r.func != FuncKind::Reducer || r.params.size() != 2 * r.results.size() || c.args.size() != r.results.size())
    return fail(c.at, "@{} cannot fold {} values", text(c.callee), c.args.size()), accs;
  for (const Def &d : r.results) accs.push_back(accumulator(text(d.name), d.type->elem, out));
  Values inits = inlined(r, r.inits, {}, out);
  for (size_t i = 0; i < accs.size(); i++) out.push_back(store(as<Load>(accs[i]), inits[i]));
  nest(c.iters, {}, out, [&](Out &in) {
    Values args = accs;
    for (size_t i = 0; i < c.args.size(); i++) args.push_back(lower(c.args[i], r.results[i].type->elem, in));
    Values values = combine(r, args, in);
    for (size_t i = 0; i < accs.size(); i++) in.push_back(store(as<Load>(accs[i]), values[i]));
  });
  return accs;
}

Expander::Values Expander::combine(const Func &r, const Values &args, Out &out) {
  Substitution names;
  for (size_t i = 0; i < r.params.size() && i < args.size(); i++) {
    const Def &p = r.params[i].def;
    bool simple = args[i]->kind == Kind::Name || (as<Load>(args[i]) && to<Load>(args[i]).index.empty());
    names[p.name] = simple ? args[i] : value(p, args[i], out);
  }
  return inlined(r, r.body, names, out);
}

const Expr *Expander::value(const Def &d, const Expr *e, Out &out) {
  Sym s = fresh(text(d.name));
  define({s, d.at, d.type}, e, {}, out);
  return b_.name(s);
}

// The lets of a reducer under fresh names; the last definition of a result is its value.
Expander::Values Expander::inlined(const Func &r, Stmts lets, Substitution names, Out &out) {
  for (const Stmt *s : lets) {
    auto *l = as<Let>(s);
    if (!l || l->defs.size() != 1) {
      fail(s->at, "@{} has a statement that is no definition", text(r.name));
      break;
    }
    const Expr *e = lower(substitute(b_, l->value, names), l->defs[0].type->elem, out);
    names[l->defs[0].name] = value(l->defs[0], e, out);
  }
  Values results;
  for (const Def &d : r.results) {
    auto it = names.find(d.name);
    if (it == names.end()) fail(r.at, "@{} does not define {}", text(r.name), text(d.name));
    results.push_back(it == names.end() ? zero(b_, d.type->elem).e : it->second);
  }
  return results;
}

}  // namespace mlc
