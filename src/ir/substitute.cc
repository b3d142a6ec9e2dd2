// Names replaced by expressions, in scopes.
#include <string>

#include "ir/edit.h"
#include "ir/walk.h"

namespace mlc {

namespace {

class Substituter {
 public:
  Substituter(Build &b, const Substitution &s) : b_(b), base_(s) {}

  const Expr *expr(const Expr *e) {
    if (!e) return nullptr;
    switch (e->kind) {
      case Kind::Name: {
        const Expr *r = find(to<Name>(e).name);
        return r ? r : e;
      }
      case Kind::Load: return load(to<Load>(e));
      case Kind::Range: {
        auto &r = to<Range>(e);
        const Expr *lo = expr(r.lo), *extent = expr(r.extent);
        return lo == r.lo && extent == r.extent ? e : b_.range(lo, extent, e->at);
      }
      case Kind::Unary: {
        auto &u = to<Unary>(e);
        const Expr *a = expr(u.a);
        return a == u.a ? e : b_.unary(u.op, a, e->at);
      }
      case Kind::Binary: {
        auto &x = to<Binary>(e);
        const Expr *a = expr(x.a), *b = expr(x.b);
        return a == x.a && b == x.b ? e : b_.binary(x.op, a, b, e->at);
      }
      case Kind::List: {
        Exprs items = exprs(to<List>(e).items);
        return items.data() == to<List>(e).items.data() ? e : b_.make_list(items, e->at);
      }
      case Kind::Call: return call(to<Call>(e));
      case Kind::Map: return map(to<Map>(e));
      default: return e;
    }
  }
  Exprs exprs(Exprs l) {
    return edit_all(b_, l, [&](const Expr *&e) { e = expr(e); });
  }
  Attrs attrs(Attrs l) {
    return edit_all(b_, l, [&](Attr &a) { a.value = expr(a.value); });
  }
  const Type *type(const Type *t) {
    Exprs dims = exprs(t->dims);
    Attrs as = attrs(t->attrs);
    if (dims.data() == t->dims.data() && as.data() == t->attrs.data()) return t;
    Type u = *t;
    u.dims = dims, u.attrs = as;
    return b_.type(u);
  }
  Stmts body(Stmts l) {
    size_t mark = log_.size();
    Stmts out = edit_all(b_, l, [&](const Stmt *&s) { s = stmt(s); });
    restore(mark);
    return out;
  }

 private:
  const Expr *find(Sym s) const {
    if (!over_.empty())
      if (auto it = over_.find(s); it != over_.end()) return it->second;
    auto it = base_.find(s);
    return it == base_.end() ? nullptr : it->second;
  }
  void set(Sym s, const Expr *e) {
    auto [it, fresh] = over_.try_emplace(s, nullptr);
    log_.push_back({s, fresh, it->second});
    it->second = e;
  }
  void restore(size_t mark) {
    for (; log_.size() > mark; log_.pop_back()) {
      auto &[s, fresh, old] = log_.back();
      if (fresh) over_.erase(s);
      else over_[s] = old;
    }
  }
  // A name that a statement binds: renamed if it is mapped to a name, else hidden from here on.
  Sym binder(Sym s) {
    const Expr *r = s ? find(s) : nullptr;
    if (auto *n = as<Name>(r)) return n->name;
    if (r) set(s, nullptr);
    return s;
  }
  Sym used(Sym s) const {
    auto *n = as<Name>(s ? find(s) : nullptr);
    return n ? n->name : s;
  }
  // A name that an expression binds: hidden, and renamed if a replacement mentions it.
  Sym iterator(Sym s, const Expr *whole) {
    if (!free_known_) {
      for (auto &[from, to] : base_) collect_names(to, free_);
      free_known_ = true;
    }
    if (!free_.count(s)) {
      if (find(s)) set(s, nullptr);
      return s;
    }
    std::unordered_set<Sym> inside;
    each_expr(whole, [&](const Expr *e) {
      if (auto *n = as<Name>(e)) inside.insert(n->name);
      if (auto *l = as<Load>(e)) inside.insert(l->buffer);
      if (auto *c = as<Call>(e))
        for (const Iter &i : c->iters) inside.insert(i.name);
      return true;
    });
    for (int n = 1;; ++n) {
      Sym next = b_.sym(std::string(b_.text(s)) + "_" + std::to_string(n));
      if (free_.count(next) || inside.count(next)) continue;
      set(s, b_.name(next));
      return next;
    }
  }

  const Load *load(const Load &l) {
    Exprs index = exprs(l.index);
    const Expr *r = l.global ? nullptr : find(l.buffer);
    if (auto *n = as<Name>(r)) return b_.load(n->name, index, l.at);
    if (auto *g = as<Global>(r)) return b_.load(g->name, index, l.at, true);
    return index.data() == l.index.data() ? &l : b_.load(l.buffer, index, l.at, l.global);
  }
  std::span<const Load *const> loads(std::span<const Load *const> l) {
    return edit_all(b_, l, [&](const Load *&x) { x = load(*x); });
  }
  Iters iters(Iters l, const Expr *whole) {  // leaves their scope open; an extent sees those to its left
    return edit_all(b_, l, [&](Iter &i) { i.extent = expr(i.extent), i.name = iterator(i.name, whole); });
  }
  const Expr *call(const Call &c) {
    size_t mark = log_.size();
    Iters is = iters(c.iters, &c);
    Exprs args = exprs(c.args);
    restore(mark);
    if (is.data() == c.iters.data() && args.data() == c.args.data()) return &c;
    return b_.call(c.callee, args, c.at, c.global, is);
  }
  const Expr *map(const Map &m) {
    size_t mark = log_.size();
    Exprs from = edit_all(b_, m.from->items, [&](const Expr *&e) {
      auto *n = as<Name>(e);
      if (!n) return;
      Sym s = iterator(n->name, &m);
      if (s != n->name) e = b_.name(s, e->at);
    });
    Exprs items = exprs(m.to->items);
    restore(mark);
    if (from.data() == m.from->items.data() && items.data() == m.to->items.data()) return &m;
    return b_.map(b_.make_list(from, m.from->at), b_.make_list(items, m.to->at), m.at);
  }

  void def(Def &d) { d.type = type(d.type), d.name = binder(d.name); }
  Defs defs(Defs l) {  // the type of a definition sees those to its left
    return edit_all(b_, l, [&](Def &d) { def(d); });
  }
  void notes(Notes &n) { n.attrs = attrs(n.attrs); }
  void yield(Yield &y) {
    size_t mark = log_.size();
    y.body = edit_all(b_, y.body, [&](const Stmt *&s) { s = stmt(s); });
    y.yields = exprs(y.yields), y.stacks = exprs(y.stacks);
    restore(mark);
  }
  const Stmt *stmt(const Stmt *s) {
    switch (s->kind) {
      case Kind::Let:
        return edited(b_, to<Let>(s), [&](Let &n) {
          n.value = expr(n.value), n.attrs = attrs(n.attrs), n.defs = defs(n.defs);
        });
      case Kind::IfValue:
        return edited(b_, to<IfValue>(s), [&](IfValue &n) {
          n.cond = expr(n.cond), yield(n.then), yield(n.other), n.defs = defs(n.defs);
        });
      case Kind::Loop:
        return edited(b_, to<Loop>(s), [&](Loop &n) {
          n.iter.extent = expr(n.iter.extent);
          carry_inits(n);
          size_t mark = log_.size();
          n.iter.name = binder(n.iter.name);
          n.carry = edit_all(b_, n.carry, [&](Carry &c) { def(c.def); });
          n.until = used(n.until);
          yield(n.body);
          restore(mark);
          n.defs = defs(n.defs);
        });
      case Kind::Store:
        return edited(b_, to<Store>(s), [&](Store &n) { n.target = load(*n.target), n.value = expr(n.value); });
      case Kind::Compute:
        return edited(b_, to<Compute>(s), [&](Compute &n) {
          size_t mark = log_.size();
          n.results = edit_all(b_, n.results, [&](Result &r) {
            r.name = used(r.name);
            r.iters = edit_all(b_, r.iters, [&](Iter &i) { i.extent = expr(i.extent), i.name = binder(i.name); });
          });
          n.value = expr(n.value);
          restore(mark);
        });
      case Kind::Alloc:
        return edited(b_, to<Alloc>(s), [&](Alloc &n) {
          n.offset = expr(n.offset), n.base = used(n.base), def(n.def);
        });
      case Kind::View: return edited(b_, to<View>(s), [&](View &n) { n.source = load(*n.source), def(n.def); });
      case Kind::CallStmt:
        return edited(b_, to<CallStmt>(s), [&](CallStmt &n) {
          n.call = as<Call>(expr(n.call)), n.dests = exprs(n.dests), n.attrs = attrs(n.attrs);
        });
      case Kind::Assume: return edited(b_, to<Assume>(s), [&](Assume &n) { n.cond = expr(n.cond); });
      case Kind::Dataflow:
        return edited(b_, to<Dataflow>(s), [&](Dataflow &n) {
          n.body = body(n.body);
          n.outputs = edit_all(b_, n.outputs, [&](Sym &o) { o = binder(o); });
        });
      case Kind::For:
        return edited(b_, to<For>(s), [&](For &n) {
          n.iter.extent = expr(n.iter.extent), notes(n.notes);
          size_t mark = log_.size();
          n.iter.name = binder(n.iter.name);
          n.body = body(n.body);
          restore(mark);
        });
      case Kind::If:
        return edited(b_, to<If>(s), [&](If &n) {
          n.cond = expr(n.cond), n.body = body(n.body), n.other = body(n.other);
        });
      case Kind::While:
        return edited(b_, to<While>(s), [&](While &n) { n.cond = expr(n.cond), n.body = body(n.body); });
      case Kind::Block:
        return edited(b_, to<Block>(s), [&](Block &n) {
          notes(n.notes);
          block_heads(n);
          size_t mark = log_.size();
          n.axes = edit_all(b_, n.axes, [&](Axis &a) { a.name = binder(a.name); });
          n.reads = loads(n.reads), n.writes = loads(n.writes);
          n.inits = body(n.inits), n.body = body(n.body);
          restore(mark);
        });
      default: return s;
    }
  }
  void carry_inits(Loop &n) {
    n.carry = edit_all(b_, n.carry, [&](Carry &c) { c.init = expr(c.init); });
  }
  void block_heads(Block &n) {  // evaluated outside the block
    n.axes = edit_all(b_, n.axes, [&](Axis &a) { a.domain = expr(a.domain), a.binding = expr(a.binding); });
    n.guard = expr(n.guard);
  }

  Build &b_;
  const Substitution &base_;
  Substitution over_;  // inner scopes: null hides
  struct Change { Sym s; bool fresh; const Expr *old; };
  std::vector<Change> log_;
  std::unordered_set<Sym> free_;
  bool free_known_ = false;
};

}  // namespace

const Expr *substitute(Build &b, const Expr *e, const Substitution &s) { return Substituter(b, s).expr(e); }
Exprs substitute(Build &b, Exprs l, const Substitution &s) { return Substituter(b, s).exprs(l); }
const Type *substitute(Build &b, const Type *t, const Substitution &s) { return Substituter(b, s).type(t); }
Attrs substitute(Build &b, Attrs a, const Substitution &s) { return Substituter(b, s).attrs(a); }
Stmts substitute(Build &b, Stmts body, const Substitution &s) { return Substituter(b, s).body(body); }

}  // namespace mlc
