#include "rules/kernel.h"

#include <algorithm>

#include "arith/scope.h"
#include "arith/simplify.h"
#include "ir/edit.h"

namespace mlc {

const Func *KernelRules::simplify(const Func &f) {
  Env env(b_, m_, &f);
  Bounds known(b_);
  enter(known, f);
  env_ = &env, known_ = &known;
  copies_.clear(), buffer_copies_.clear(), result_.clear(), seen_ = {}, depth_ = 0;
  find_writers(f);
  copying_ = f.func == FuncKind::Kernel;  // names of scalar functions may be defined again
  for (const Def &d : f.results) result_.insert(d.name);
  return edited(b_, f, [&](Func &n) {
    n.inits = body(f.inits);
    n.body = body(f.body);
  });
}

void KernelRules::find_writers(const Func &f) {
  writes_.clear(), inputs_.clear();
  for (const Param &p : f.params)
    if (p.mode == Mode::In) inputs_.insert(p.def.name);
    else writes_[p.def.name] = 2;
  auto all = [&](const Expr *e) {
    std::unordered_set<Sym> names;
    collect_names(e, names);
    for (Sym s : names) writes_[s] += 2;
  };
  each_stmt(f.body, [&](const Stmt *s) {
    if (auto x = as<Store>(s)) writes_[x->target->buffer]++;
    if (auto x = as<Compute>(s))
      for (const Result &r : x->results) writes_[r.name]++;
    if (auto x = as<View>(s)) writes_[x->def.name] += 2, writes_[x->source->buffer] += 2;
    if (auto x = as<Alloc>(s); x && x->base) writes_[x->def.name] += 2, writes_[x->base] += 2;
    if (auto x = as<CallStmt>(s)) {
      for (const Expr *e : x->call->args) all(e);
      for (const Expr *e : x->dests) all(e);
    }
  });
}

const Let *KernelRules::Seen::find(const Expr *value, const Type *type) const {
  auto it = by_hash.find(hash(value));
  if (it == by_hash.end()) return nullptr;
  for (const Let *l : it->second)
    if (l->defs[0].type == type && equal(l->value, value)) return l;
  return nullptr;
}
void KernelRules::Seen::add(const Let *l) {
  lets.push_back({hash(l->value), l});
  by_hash[lets.back().first].push_back(l);
}
void KernelRules::Seen::forget(size_t mark) {
  for (; lets.size() > mark; lets.pop_back()) by_hash[lets.back().first].pop_back();
}

const Expr *KernelRules::replaced(const Expr *e) {
  if (!copies_.empty()) e = substitute(b_, e, copies_);
  return buffer_copies_.empty() ? e : substitute(b_, e, buffer_copies_);
}

bool KernelRules::lasting(const Expr *e) const {
  bool yes = true;
  each_expr(e, [&](const Expr *x) {
    auto l = as<Load>(x);
    return yes &= !l || l->global || (inputs_.count(l->buffer) && !writes_.count(l->buffer));
  });
  return yes;
}

// compute t[i in n, j in m] = x[i, j]: what reads t reads x, if neither changes from here on.
void KernelRules::buffer_copy(const Compute &c) {
  auto l = as<Load>(c.value);
  if (depth_ != 1 || !l || l->global || c.results.size() != 1 || c.results[0].iters.size() != l->index.size()) return;
  const Result &r = c.results[0];
  for (size_t i = 0; i < l->index.size(); i++) {
    auto n = as<Name>(l->index[i]);
    if (!n || n->name != r.iters[i].name) return;
  }
  auto writes = [&](Sym s) {
    auto it = writes_.find(s);
    return it == writes_.end() ? 0 : it->second;
  };
  bool still = inputs_.count(l->buffer) ? !writes(l->buffer) : !result_.count(l->buffer) && writes(l->buffer) == 1;
  if (!still || writes(r.name) != 1 || result_.count(r.name)) return;
  if (env_->find(r.name) == env_->find(l->buffer)) buffer_copies_[r.name] = b_.name(l->buffer);
}

const Expr *KernelRules::index(const Expr *e) {
  if (e->kind == Kind::All || e->kind == Kind::Int) return e;
  e = replaced(e);
  if (auto r = as<Range>(e)) {
    const Expr *lo = shorten(b_, r->lo, *known_), *extent = shorten(b_, r->extent, *known_);
    return lo == r->lo && extent == r->extent ? e : b_.range(lo, extent, e->at);
  }
  return shorten(b_, e, *known_);
}

const Expr *KernelRules::scalar(const Expr *e, DType want) {
  e = replaced(e);
  for (int turn = 0; turn < 4; turn++) {
    const Expr *before = e;
    e = scalars_.simplify(*env_, e, want);
    const Expr *s = want == DType::Index ? shorten(b_, e, *known_) : shorten_inside(b_, e, *known_);
    if (s == e || s == before) return s;
    e = s;
  }
  return e;
}

const Load *KernelRules::place(const Load *l) {
  Exprs at = edit_all(b_, l->index, [&](const Expr *&i) { i = index(i); });
  return at.data() == l->index.data() ? l : b_.load(l->buffer, at, l->at, l->global);
}

const Expr *KernelRules::operand(const Expr *e) {
  auto l = as<Load>(e);
  return l ? place(l) : replaced(e);
}

void KernelRules::define(const Def &d) { env_->define(d.name, d.type); }

template <class F> Stmts KernelRules::nested(const Stmt *s, size_t k, Stmts inner, const F &names) {
  size_t in_env = env_->mark(), in_known = known_->mark();
  names();
  enter(*known_, s, k);
  inner = body(inner);
  known_->pop(in_known), env_->pop(in_env);
  return inner;
}

Stmts KernelRules::body(Stmts l) {
  Substitution outside = copies_;  // a name may mean something else behind the scope
  size_t seen = seen_.lets.size();
  depth_++;
  size_t in_env = env_->mark(), in_known = known_->mark();
  std::vector<const Stmt *> out;
  for (const Stmt *s : l) statement(s, out);
  known_->pop(in_known), env_->pop(in_env);
  copies_ = std::move(outside);
  seen_.forget(seen);
  depth_--;
  return std::equal(out.begin(), out.end(), l.begin(), l.end()) ? l : b_.list(out);
}

// if true { a } else { b } -> a
void KernelRules::known_if(const If &s, const Expr *cond, std::vector<const Stmt *> &out) {
  for (const Stmt *x : to<Bool>(cond).value ? s.body : s.other) statement(x, out);
}

void KernelRules::statement(const Stmt *s, std::vector<const Stmt *> &out) {
  auto plain = [] {};
  switch (s->kind) {
    case Kind::Let: {
      auto &l = to<Let>(s);
      bool one = l.defs.size() == 1 && !l.defs[0].type->tensor;
      DType t = one ? l.defs[0].type->elem : DType::Invalid;
      const Stmt *n = edited(b_, l, [&](Let &x) {
        x.value = scalar(l.value, t);
        const Let *same = one && copying_ ? seen_.find(x.value, l.defs[0].type) : nullptr;
        if (same) x.value = b_.name(same->defs[0].name);
      });
      const Expr *v = to<Let>(n).value;
      if (one && copying_ && v->kind != Kind::Name && lasting(v)) seen_.add(&to<Let>(n));
      bool plain = v->kind == Kind::Name || v->kind == Kind::Bool || (v->kind == Kind::Int && t == DType::Index);
      bool copy = one && plain;
      if (copy && v->kind == Kind::Name) {
        const Type *from = env_->find(to<Name>(v).name);
        copy = from == l.defs[0].type;
      }
      for (const Def &d : l.defs) copies_.erase(d.name), define(d);
      if (copy && copying_ && !result_.count(l.defs[0].name)) copies_[l.defs[0].name] = v;
      out.push_back(n);
      return after(*known_, n);
    }
    case Kind::Store: {
      auto &x = to<Store>(s);
      const Type *t = env_->find(x.target->buffer);
      return out.push_back(edited(b_, x, [&](Store &n) {
        n.target = place(x.target);
        n.value = scalar(x.value, t ? t->elem : DType::Invalid);
      }));
    }
    case Kind::Compute: {
      auto &c = to<Compute>(s);
      size_t in_env = env_->mark(), in_known = known_->mark();
      for (const Result &r : c.results)
        for (const Iter &i : r.iters) env_->define_index(i.name);
      enter(*known_, c.results[0].iters);
      const Type *t = env_->find(c.results[0].name);
      const Expr *v = scalar(c.value, t && c.results.size() == 1 ? t->elem : DType::Invalid);
      known_->pop(in_known), env_->pop(in_env);
      out.push_back(edited(b_, c, [&](Compute &n) { n.value = v; }));
      return buffer_copy(to<Compute>(out.back()));
    }
    case Kind::Alloc:
      define(to<Alloc>(s).def);
      return out.push_back(s);
    case Kind::View: {
      auto &v = to<View>(s);
      define(v.def);
      return out.push_back(edited(b_, v, [&](View &n) { n.source = place(v.source); }));
    }
    case Kind::CallStmt: {
      auto &c = to<CallStmt>(s);
      return out.push_back(edited(b_, c, [&](CallStmt &n) {
        Exprs args = edit_all(b_, c.call->args, [&](const Expr *&a) { a = operand(a); });
        if (args.data() != c.call->args.data())
          n.call = b_.call(c.call->callee, args, c.call->at, c.call->global, c.call->iters);
        n.dests = edit_all(b_, c.dests, [&](const Expr *&d) { d = operand(d); });
      }));
    }
    case Kind::Assume: {
      auto &a = to<Assume>(s);
      const Expr *cond = scalar(a.cond, DType::Bool);
      if (auto k = as<Bool>(cond)) {
        if (k->value) return;
        cond = a.cond;  // it fails; let it say what
      }
      const Stmt *n = edited(b_, a, [&](Assume &x) { x.cond = cond; });
      out.push_back(n);
      return after(*known_, n);
    }
    case Kind::For: {
      auto &f = to<For>(s);
      return out.push_back(edited(b_, f, [&](For &n) {
        n.iter.extent = index(f.iter.extent);
        n.body = nested(&f, 0, f.body, [&] { env_->define_index(f.iter.name); });
      }));
    }
    case Kind::If: {
      auto &i = to<If>(s);
      const Expr *cond = scalar(i.cond, DType::Bool);
      if (as<Bool>(cond)) return known_if(i, cond, out);
      const If *asked = edited(b_, i, [&](If &n) { n.cond = cond; });
      return out.push_back(edited(b_, *asked, [&](If &n) {
        n.body = nested(asked, 0, i.body, plain);
        n.other = nested(asked, 1, i.other, plain);
      }));
    }
    case Kind::While: {
      auto &w = to<While>(s);
      const While *asked = edited(b_, w, [&](While &n) { n.cond = scalar(w.cond, DType::Bool); });
      return out.push_back(edited(b_, *asked, [&](While &n) { n.body = nested(asked, 0, w.body, plain); }));
    }
    case Kind::Block: {
      auto &k = to<Block>(s);
      auto axes = [&] {
        for (const Axis &a : k.axes) env_->define_index(a.name);
      };
      return out.push_back(edited(b_, k, [&](Block &n) {
        n.axes = edit_all(b_, k.axes, [&](Axis &a) { a.domain = index(a.domain), a.binding = index(a.binding); });
        if (k.guard) n.guard = scalar(k.guard, DType::Bool);
        if (auto g = as<Bool>(n.guard); g && g->value) n.guard = nullptr;
        Substitution outside;
        Seen seen;
        std::swap(outside, copies_), std::swap(seen, seen_);  // scalars around a block are not seen in it
        n.inits = nested(&k, 0, k.inits, axes);
        n.body = nested(&k, 1, k.body, axes);
        std::swap(outside, copies_), std::swap(seen, seen_);
      }));
    }
    default: return out.push_back(s);
  }
}

}  // namespace mlc
