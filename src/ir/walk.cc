#include "ir/walk.h"

#include "ir/edit.h"

namespace mlc {

// ---- walking

void each_child(const Expr *e, const std::function<void(const Expr *)> &f) {
  auto all = [&](Exprs l) {
    for (const Expr *x : l) f(x);
  };
  switch (e->kind) {
    case Kind::Load: return all(to<Load>(e).index);
    case Kind::Range: f(to<Range>(e).lo), f(to<Range>(e).extent); return;
    case Kind::Call:
      for (const Iter &i : to<Call>(e).iters) f(i.extent);
      return all(to<Call>(e).args);
    case Kind::Unary: return f(to<Unary>(e).a);
    case Kind::Binary: f(to<Binary>(e).a), f(to<Binary>(e).b); return;
    case Kind::List: return all(to<List>(e).items);
    case Kind::Map: return all(to<Map>(e).to->items);
    default: return;
  }
}

void each_expr(const Expr *e, const std::function<bool(const Expr *)> &f) {
  if (e && f(e)) each_child(e, [&](const Expr *c) { each_expr(c, f); });
}

namespace {

using OnExpr = std::function<void(const Expr *)>;

void walk(Exprs l, const OnExpr &f) {
  for (const Expr *e : l) f(e);
}
void walk(Attrs l, const OnExpr &f) {
  for (const Attr &a : l) f(a.value);
}
void walk(const Type *t, const OnExpr &f) { walk(t->dims, f), walk(t->attrs, f); }
void walk(Defs l, const OnExpr &f) {
  for (const Def &d : l) walk(d.type, f);
}
void walk(std::span<const Load *const> l, const OnExpr &f) {
  for (const Load *x : l) f(x);
}

}  // namespace

void each_expr_of(const Stmt *s, const OnExpr &f) {
  switch (s->kind) {
    case Kind::Let: walk(to<Let>(s).defs, f), f(to<Let>(s).value), walk(to<Let>(s).attrs, f); return;
    case Kind::IfValue: {
      auto &i = to<IfValue>(s);
      walk(i.defs, f), f(i.cond);
      walk(i.then.yields, f), walk(i.then.stacks, f), walk(i.other.yields, f), walk(i.other.stacks, f);
      return;
    }
    case Kind::Loop: {
      auto &l = to<Loop>(s);
      walk(l.defs, f), f(l.iter.extent);
      for (const Carry &c : l.carry) walk(c.def.type, f), f(c.init);
      walk(l.body.yields, f), walk(l.body.stacks, f);
      return;
    }
    case Kind::Store: f(to<Store>(s).target), f(to<Store>(s).value); return;
    case Kind::Compute:
      for (const Result &r : to<Compute>(s).results)
        for (const Iter &i : r.iters) f(i.extent);
      return f(to<Compute>(s).value);
    case Kind::Alloc:
      walk(to<Alloc>(s).def.type, f);
      if (to<Alloc>(s).offset) f(to<Alloc>(s).offset);
      return;
    case Kind::View: walk(to<View>(s).def.type, f), f(to<View>(s).source); return;
    case Kind::CallStmt:
      f(to<CallStmt>(s).call), walk(to<CallStmt>(s).dests, f), walk(to<CallStmt>(s).attrs, f); return;
    case Kind::Assume: return f(to<Assume>(s).cond);
    case Kind::For: f(to<For>(s).iter.extent), walk(to<For>(s).notes.attrs, f); return;
    case Kind::If: return f(to<If>(s).cond);
    case Kind::While: return f(to<While>(s).cond);
    case Kind::Block: {
      auto &b = to<Block>(s);
      walk(b.notes.attrs, f);
      for (const Axis &a : b.axes) f(a.domain), f(a.binding);
      if (b.guard) f(b.guard);
      walk(b.reads, f), walk(b.writes, f);
      return;
    }
    default: return;
  }
}

void each_body(const Stmt *s, const std::function<void(Stmts)> &f) {
  switch (s->kind) {
    case Kind::IfValue: f(to<IfValue>(s).then.body), f(to<IfValue>(s).other.body); return;
    case Kind::Loop: return f(to<Loop>(s).body.body);
    case Kind::Dataflow: return f(to<Dataflow>(s).body);
    case Kind::For: return f(to<For>(s).body);
    case Kind::If: f(to<If>(s).body), f(to<If>(s).other); return;
    case Kind::While: return f(to<While>(s).body);
    case Kind::Block: f(to<Block>(s).inits), f(to<Block>(s).body); return;
    default: return;
  }
}

void each_stmt(const Stmt *s, const std::function<void(const Stmt *)> &f) {
  f(s);
  each_body(s, [&](Stmts body) { each_stmt(body, f); });
}
void each_stmt(Stmts body, const std::function<void(const Stmt *)> &f) {
  for (const Stmt *s : body) each_stmt(s, f);
}
void each_expr_in(Stmts body, const std::function<bool(const Expr *)> &f) {
  each_stmt(body, [&](const Stmt *s) {
    each_expr_of(s, [&](const Expr *e) { each_expr(e, f); });
  });
}

// ---- rewriting

namespace {

Iters rewrite(Build &b, Iters l, const ExprMap &f) {
  return edit_all(b, l, [&](Iter &i) { i.extent = mlc::rewrite(b, i.extent, f); });
}
const Load *rewrite(Build &b, const Load *l, const ExprMap &f) {
  const Load *children = edited(b, *l, [&](Load &n) { n.index = mlc::rewrite(b, l->index, f); });
  const Load *answer = as<Load>(f(children));
  return answer ? answer : children;
}
std::span<const Load *const> rewrite(Build &b, std::span<const Load *const> l, const ExprMap &f) {
  return edit_all(b, l, [&](const Load *&x) { x = rewrite(b, x, f); });
}
void rewrite(Build &b, Def &d, const ExprMap &f) { d.type = mlc::rewrite(b, d.type, f); }
Defs rewrite(Build &b, Defs l, const ExprMap &f) {
  return edit_all(b, l, [&](Def &d) { rewrite(b, d, f); });
}

}  // namespace

const Expr *rewrite(Build &b, const Expr *e, const ExprMap &f) {
  if (!e) return nullptr;
  switch (e->kind) {
    case Kind::Load: e = edited(b, to<Load>(e), [&](Load &n) { n.index = rewrite(b, n.index, f); }); break;
    case Kind::Range:
      e = edited(b, to<Range>(e), [&](Range &n) { n.lo = rewrite(b, n.lo, f), n.extent = rewrite(b, n.extent, f); });
      break;
    case Kind::Call:
      e = edited(b, to<Call>(e), [&](Call &n) { n.iters = rewrite(b, n.iters, f), n.args = rewrite(b, n.args, f); });
      break;
    case Kind::Unary: e = edited(b, to<Unary>(e), [&](Unary &n) { n.a = rewrite(b, n.a, f); }); break;
    case Kind::Binary:
      e = edited(b, to<Binary>(e), [&](Binary &n) { n.a = rewrite(b, n.a, f), n.b = rewrite(b, n.b, f); });
      break;
    case Kind::List: e = edited(b, to<List>(e), [&](List &n) { n.items = rewrite(b, n.items, f); }); break;
    case Kind::Map:
      e = edited(b, to<Map>(e), [&](Map &n) {
        n.to = edited(b, *n.to, [&](List &l) { l.items = rewrite(b, l.items, f); });
      });
      break;
    default: break;
  }
  return f(e);
}
Exprs rewrite(Build &b, Exprs l, const ExprMap &f) {
  return edit_all(b, l, [&](const Expr *&e) { e = rewrite(b, e, f); });
}
Attrs rewrite(Build &b, Attrs l, const ExprMap &f) {
  return edit_all(b, l, [&](Attr &a) { a.value = rewrite(b, a.value, f); });
}
const Type *rewrite(Build &b, const Type *t, const ExprMap &f) {
  if (t->dims.empty() && t->attrs.empty()) return t;
  Exprs dims = rewrite(b, t->dims, f);
  Attrs attrs = rewrite(b, t->attrs, f);
  if (dims.data() == t->dims.data() && attrs.data() == t->attrs.data()) return t;
  Type u = *t;
  u.dims = dims, u.attrs = attrs;
  return b.type(u);
}

namespace {

// The heads of a statement, not its bodies.
const Stmt *rewrite_heads(Build &b, const Stmt *s, const ExprMap &f) {
  switch (s->kind) {
    case Kind::Let:
      return edited(b, to<Let>(s), [&](Let &n) {
        n.defs = rewrite(b, n.defs, f), n.value = rewrite(b, n.value, f), n.attrs = rewrite(b, n.attrs, f);
      });
    case Kind::IfValue:
      return edited(b, to<IfValue>(s), [&](IfValue &n) {
        n.defs = rewrite(b, n.defs, f), n.cond = rewrite(b, n.cond, f);
        for (Yield *y : {&n.then, &n.other}) y->yields = rewrite(b, y->yields, f), y->stacks = rewrite(b, y->stacks, f);
      });
    case Kind::Loop:
      return edited(b, to<Loop>(s), [&](Loop &n) {
        n.defs = rewrite(b, n.defs, f), n.iter.extent = rewrite(b, n.iter.extent, f);
        n.carry = edit_all(b, n.carry, [&](Carry &c) { rewrite(b, c.def, f), c.init = rewrite(b, c.init, f); });
        n.body.yields = rewrite(b, n.body.yields, f), n.body.stacks = rewrite(b, n.body.stacks, f);
      });
    case Kind::Store:
      return edited(b, to<Store>(s), [&](Store &n) {
        n.target = rewrite(b, n.target, f), n.value = rewrite(b, n.value, f);
      });
    case Kind::Compute:
      return edited(b, to<Compute>(s), [&](Compute &n) {
        n.results = edit_all(b, n.results, [&](Result &r) { r.iters = rewrite(b, r.iters, f); });
        n.value = rewrite(b, n.value, f);
      });
    case Kind::Alloc:
      return edited(b, to<Alloc>(s), [&](Alloc &n) { rewrite(b, n.def, f), n.offset = rewrite(b, n.offset, f); });
    case Kind::View:
      return edited(b, to<View>(s), [&](View &n) { rewrite(b, n.def, f), n.source = rewrite(b, n.source, f); });
    case Kind::CallStmt:
      return edited(b, to<CallStmt>(s), [&](CallStmt &n) {
        if (const Call *c = as<Call>(rewrite(b, static_cast<const Expr *>(n.call), f))) n.call = c;
        n.dests = edit_all(b, n.dests, [&](const Expr *&d) {
          const Load *region = as<Load>(d);
          const Expr *answer = region ? rewrite(b, region, f) : f(d);
          if (as<Name>(answer) || as<Load>(answer)) d = answer;
        });
        n.attrs = rewrite(b, n.attrs, f);
      });
    case Kind::Assume: return edited(b, to<Assume>(s), [&](Assume &n) { n.cond = rewrite(b, n.cond, f); });
    case Kind::For:
      return edited(b, to<For>(s), [&](For &n) {
        n.iter.extent = rewrite(b, n.iter.extent, f), n.notes.attrs = rewrite(b, n.notes.attrs, f);
      });
    case Kind::If: return edited(b, to<If>(s), [&](If &n) { n.cond = rewrite(b, n.cond, f); });
    case Kind::While: return edited(b, to<While>(s), [&](While &n) { n.cond = rewrite(b, n.cond, f); });
    case Kind::Block:
      return edited(b, to<Block>(s), [&](Block &n) {
        n.notes.attrs = rewrite(b, n.notes.attrs, f);
        n.axes = edit_all(b, n.axes, [&](Axis &a) {
          a.domain = rewrite(b, a.domain, f), a.binding = rewrite(b, a.binding, f);
        });
        n.guard = rewrite(b, n.guard, f);
        n.reads = rewrite(b, n.reads, f), n.writes = rewrite(b, n.writes, f);
      });
    default: return s;
  }
}

}  // namespace

const Stmt *with_bodies(Build &b, const Stmt *s, const std::function<Stmts(Stmts)> &f) {
  switch (s->kind) {
    case Kind::IfValue:
      return edited(b, to<IfValue>(s), [&](IfValue &n) {
        n.then.body = f(n.then.body), n.other.body = f(n.other.body);
      });
    case Kind::Loop: return edited(b, to<Loop>(s), [&](Loop &n) { n.body.body = f(n.body.body); });
    case Kind::Dataflow: return edited(b, to<Dataflow>(s), [&](Dataflow &n) { n.body = f(n.body); });
    case Kind::For: return edited(b, to<For>(s), [&](For &n) { n.body = f(n.body); });
    case Kind::If: return edited(b, to<If>(s), [&](If &n) { n.body = f(n.body), n.other = f(n.other); });
    case Kind::While: return edited(b, to<While>(s), [&](While &n) { n.body = f(n.body); });
    case Kind::Block: return edited(b, to<Block>(s), [&](Block &n) { n.inits = f(n.inits), n.body = f(n.body); });
    default: return s;
  }
}

const Stmt *commented(Build &b, const Stmt *s, std::string_view comment) {
  auto with = [&](auto &node) -> const Stmt * { return edited(b, node, [&](auto &n) { n.comment = comment; }); };
  switch (s->kind) {
    case Kind::Let: return with(to<Let>(s));
    case Kind::IfValue: return with(to<IfValue>(s));
    case Kind::Loop: return with(to<Loop>(s));
    case Kind::Store: return with(to<Store>(s));
    case Kind::Compute: return with(to<Compute>(s));
    case Kind::Alloc: return with(to<Alloc>(s));
    case Kind::View: return with(to<View>(s));
    case Kind::CallStmt: return with(to<CallStmt>(s));
    case Kind::Assume: return with(to<Assume>(s));
    case Kind::Code: return with(to<Code>(s));
    case Kind::Dataflow: return with(to<Dataflow>(s));
    case Kind::For: return with(to<For>(s));
    case Kind::If: return with(to<If>(s));
    case Kind::While: return with(to<While>(s));
    case Kind::Block: return with(to<Block>(s));
    default: return s;
  }
}

const Stmt *rewrite_exprs(Build &b, const Stmt *s, const ExprMap &f) {
  return with_bodies(b, rewrite_heads(b, s, f), [&](Stmts body) { return rewrite_exprs(b, body, f); });
}
Stmts rewrite_exprs(Build &b, Stmts l, const ExprMap &f) {
  return edit_all(b, l, [&](const Stmt *&s) { s = rewrite_exprs(b, s, f); });
}

Stmts rewrite_stmts(Build &b, Stmts l, const StmtMap &f) {
  std::vector<const Stmt *> out;
  for (const Stmt *s : l) f(with_bodies(b, s, [&](Stmts body) { return rewrite_stmts(b, body, f); }), out);
  if (std::equal(out.begin(), out.end(), l.begin(), l.end())) return l;
  return b.list(out);
}

// ---- names

namespace {

void collect(const Expr *e, std::unordered_set<Sym> &out, std::vector<Sym> &bound) {
  if (!e) return;
  auto add = [&](Sym s) {
    for (Sym x : bound)
      if (x == s) return;
    out.insert(s);
  };
  size_t mark = bound.size();
  if (auto *n = as<Name>(e)) add(n->name);
  if (auto *l = as<Load>(e); l && !l->global) add(l->buffer);
  if (auto *c = as<Call>(e)) {  // an extent sees the iterators to its left
    for (const Iter &i : c->iters) collect(i.extent, out, bound), bound.push_back(i.name);
    for (const Expr *a : c->args) collect(a, out, bound);
  } else {
    if (auto *m = as<Map>(e))
      for (const Expr *x : m->from->items)
        if (auto *n = as<Name>(x)) bound.push_back(n->name);
    each_child(e, [&](const Expr *x) { collect(x, out, bound); });
  }
  bound.resize(mark);
}

}  // namespace

void collect_names(const Expr *e, std::unordered_set<Sym> &out) {
  std::vector<Sym> bound;
  collect(e, out, bound);
}
void collect_names(const Type *t, std::unordered_set<Sym> &out) {
  for (const Expr *d : t->dims) collect_names(d, out);
  for (const Attr &a : t->attrs) collect_names(a.value, out);
}
bool mentions(const Expr *e, Sym name) {
  std::unordered_set<Sym> names;
  collect_names(e, names);
  return names.count(name);
}

void collect_all_names(const Func *f, std::unordered_set<Sym> &out) {
  auto in_expr = [&](const Expr *e) {
    each_expr(e, [&](const Expr *x) {
      if (auto *n = as<Name>(x)) out.insert(n->name);
      if (auto *l = as<Load>(x); l && !l->global) out.insert(l->buffer);
      if (auto *c = as<Call>(x))
        for (const Iter &i : c->iters) out.insert(i.name);
      if (auto *m = as<Map>(x))
        for (const Expr *y : m->from->items)
          if (auto *n = as<Name>(y)) out.insert(n->name);
      return true;
    });
  };
  auto defs = [&](Defs l) {
    for (const Def &d : l) out.insert(d.name), walk(d.type, in_expr);
  };
  auto body = [&](Stmts l) {
    each_stmt(l, [&](const Stmt *s) {
      if (auto *x = as<Let>(s)) defs(x->defs);
      if (auto *x = as<IfValue>(s)) defs(x->defs);
      if (auto *x = as<Loop>(s)) {
        defs(x->defs), out.insert(x->iter.name);
        for (const Carry &c : x->carry) out.insert(c.def.name);
      }
      if (auto *x = as<Compute>(s))
        for (const Result &r : x->results) {
          out.insert(r.name);
          for (const Iter &i : r.iters) out.insert(i.name);
        }
      if (auto *x = as<Alloc>(s)) out.insert(x->def.name), x->base ? void(out.insert(x->base)) : void();
      if (auto *x = as<View>(s)) out.insert(x->def.name);
      if (auto *x = as<Dataflow>(s)) out.insert(x->outputs.begin(), x->outputs.end());
      if (auto *x = as<For>(s)) out.insert(x->iter.name);
      if (auto *x = as<Block>(s)) {
        out.insert(x->name);
        for (const Axis &a : x->axes) out.insert(a.name);
      }
      each_expr_of(s, in_expr);
    });
  };
  out.insert(f->dims.begin(), f->dims.end());
  for (const Param &p : f->params) defs(Defs(&p.def, 1));
  defs(f->results);
  walk(f->notes.attrs, in_expr);
  body(f->inits), body(f->body);
  for (const Part &p : f->parts) body(p.body);
}

void conjuncts(const Expr *e, std::vector<const Expr *> &out) {
  auto *x = as<Binary>(e);
  if (x && x->op == Op::And) conjuncts(x->a, out), conjuncts(x->b, out);
  else if (e) out.push_back(e);
}

const Expr *both(Build &b, const Expr *x, const Expr *y) { return !x ? y : !y ? x : b.binary(Op::And, x, y); }

void take_names(const Func *f, Fresh &fresh) {
  std::unordered_set<Sym> names;
  collect_all_names(f, names);
  for (Sym s : names) fresh.take(s);
}

std::unordered_map<Sym, const Type *> tensors_of(const Func &f) {
  std::unordered_map<Sym, const Type *> out;
  auto tensor = [&](const Def &d) {
    if (d.type->tensor) out[d.name] = d.type;
  };
  for (const Param &p : f.params) tensor(p.def);
  for (const Def &d : f.results) tensor(d);
  each_stmt(f.body, [&](const Stmt *s) {
    if (auto *a = as<Alloc>(s)) tensor(a->def);
    if (auto *v = as<View>(s)) tensor(v->def);
  });
  return out;
}

}  // namespace mlc
