#include "sync/uses.h"

namespace mlc {

void mention(const Stmt *top, NameSet &out) {
  each_stmt(top, [&](const Stmt *s) {
    each_expr_of(s, [&](const Expr *e) { collect_names(e, out); });
    if (auto *l = as<Let>(s))
      for (const Def &d : l->defs) out.insert(d.name);
    if (auto *f = as<For>(s)) out.insert(f->iter.name);
    if (auto *v = as<View>(s)) out.insert(v->def.name);
    if (auto *a = as<Alloc>(s)) {
      out.insert(a->def.name);
      if (a->base) out.insert(a->base);
    }
  });
}

NameSet mentioned(Stmts body) {
  NameSet out;
  for (const Stmt *s : body) mention(s, out);
  return out;
}

Roots::Roots(Stmts body) {
  each_stmt(body, [&](const Stmt *s) {
    if (auto *v = as<View>(s); v && !v->source->global) base_[v->def.name] = v->source->buffer;
    if (auto *a = as<Alloc>(s); a && a->base) base_[a->def.name] = a->base;
  });
}

Sym Roots::of(Sym name) const {
  for (auto it = base_.find(name); it != base_.end(); it = base_.find(name)) name = it->second;
  return name;
}

NameSet written(const Module &m, const Roots &roots, Stmts body) {
  NameSet out;
  auto buffer = [&](const Expr *e) {
    if (auto *n = as<Name>(e)) out.insert(roots.of(n->name));
    if (auto *l = as<Load>(e); l && !l->global) out.insert(roots.of(l->buffer));
  };
  each_stmt(body, [&](const Stmt *s) {
    if (auto *st = as<Store>(s)) buffer(st->target);
    auto *c = as<CallStmt>(s);
    if (!c) return;
    for (const Expr *d : c->dests) buffer(d);
    const Func *f = c->call->global ? m.func(c->call->callee) : nullptr;
    for (size_t i = 0; f && i < f->params.size() && i < c->call->args.size(); i++)
      if (f->params[i].mode != Mode::In) buffer(c->call->args[i]);
  });
  return out;
}

bool gives(const Expr *dim, Sym n) {
  if (auto *x = as<Name>(dim)) return x->name == n;
  auto *x = as<Binary>(dim);
  int64_t k = 0;
  if (!x || (x->op != Op::Add && x->op != Op::Mul)) return false;
  bool left = int_value(x->a, &k), right = !left && int_value(x->b, &k);
  return (left || right) && (x->op == Op::Add || k > 0) && gives(left ? x->b : x->a, n);
}

bool has_loads(const Expr *e) {
  bool loads = false;
  each_expr(e, [&](const Expr *x) {
    auto *c = as<Call>(x);
    return !(loads |= x->kind == Kind::Load || (c && c->global));
  });
  return loads;
}

bool binds(Stmts body) {
  bool found = false;
  each_stmt(body, [&](const Stmt *s) {
    auto *f = as<For>(s);
    found |= f && f->loop == LoopKind::Bind;
  });
  return found;
}

bool seen_by_others(const Build &b, const Type *t) {
  return !t->scope || b.text(t->scope) == "global" || b.text(t->scope) == "shared";
}

bool is_collective(const Build &b, const Module &m, const Stmt *s) {
  auto *c = as<CallStmt>(s);
  const Func *f = c && c->call->global ? m.func(c->call->callee) : nullptr;
  auto *level = f ? as<Str>(attr(b, f->notes.attrs, "level")) : nullptr;
  return level && level->value == "warp";
}

bool in_scope(const Build &b, const Type *t, std::string_view scope) { return t->scope && b.text(t->scope) == scope; }

}  // namespace mlc
