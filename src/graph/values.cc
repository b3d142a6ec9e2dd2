#include "graph/values.h"

#include <algorithm>

namespace mlc {

Values::Values(const Module &m, const Func &f) : m_(m) {
  for (const Param &p : f.params) define(p.def);
}

const Type *Values::of(Sym name) const {
  auto it = types_.find(name);
  return it == types_.end() ? nullptr : it->second;
}

const Type *Values::of(const Expr *arg) const {
  if (auto *n = as<Name>(arg)) {
    const Type *t = of(n->name);
    return t && t->tensor ? t : nullptr;  // an index scalar is a literal to the operators
  }
  if (auto *g = as<Global>(arg))
    if (auto *c = m_.constant(g->name)) return c->type;
  return nullptr;
}

void Values::define(const Stmt *s) {
  switch (s->kind) {
    case Kind::Let: return define(to<Let>(s).defs);
    case Kind::IfValue: return define(to<IfValue>(s).defs);
    case Kind::Loop: return define(to<Loop>(s).defs);
    case Kind::Alloc: return define(to<Alloc>(s).def);
    case Kind::View: return define(to<View>(s).def);
    case Kind::Dataflow:
      for (const Stmt *t : to<Dataflow>(s).body) define(t);
      return;
    default: return;
  }
}

const OpInfo *operator_of(const Build &b, const Let &l) {
  auto *c = as<Call>(l.value);
  if (!c || c->global || !c->iters.empty()) return nullptr;
  std::string_view name = b.text(c->callee);
  return name[0] >= 'A' && name[0] <= 'Z' ? find_op(name) : nullptr;
}

OpUse op_use(Build &b, const Let &l, const OpInfo &op, const Values &values) {
  const Call &c = to<Call>(l.value);
  std::vector<const Type *> types;
  for (const Expr *a : c.args) types.push_back(values.of(a));
  OpUse use(b, op, types, c.args, l.attrs, &values.module());
  for (const Def &d : l.defs) use.results.push_back(d.name);
  use.wanted = l.defs[0].type;
  return use;
}

bool is_hosted(const Build &b, const Let &l, const Values &values) {
  if (const OpInfo *op = operator_of(b, l); op && !op->define) return true;
  for (const Def &d : l.defs)
    if (d.type->elem == DType::Str) return true;
  auto *c = as<Call>(l.value);
  for (const Expr *e : c ? c->args : Exprs()) {
    auto *list = as<List>(e);
    const Type *t = values.of(e);
    if ((t && t->elem == DType::Str) || as<Str>(list && !list->items.empty() ? list->items[0] : e)) return true;
  }
  return false;
}

bool is_reshape(const Build &b, const Let &l) {
  auto *c = as<Call>(l.value);
  if (!c || c->global || c->args.empty() || c->args[0]->kind != Kind::Name || !l.defs[0].type->tensor) return false;
  for (std::string_view n : {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"})
    if (b.text(c->callee) == n) return true;
  return false;
}

void take_names(const Module &m, Fresh &fresh) {
  for (const Item *i : m.items)
    if (Sym s = name_of(i)) fresh.take(s);
}

Syms merge(Build &b, Syms a, Syms c) {
  std::vector<Sym> all(a.begin(), a.end());
  for (Sym s : c)
    if (std::find(all.begin(), all.end(), s) == all.end()) all.push_back(s);
  return all.size() == a.size() ? a : b.list(all);
}

}  // namespace mlc
