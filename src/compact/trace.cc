// The walk: statements in the order of the program, with the loops, conditions and names that are known at each.
#include "compact/side.h"
#include "compact/trace.h"

#include "arith/affine.h"
#include "arith/prove.h"
#include "arith/scope.h"
#include "arith/simplify.h"
#include "ir/edit.h"
#include "ir/solve.h"

namespace mlc {

bool Trace::names_of(const Expr *e, const std::unordered_set<Sym> &names) {
  if (names.empty()) return false;
  std::unordered_set<Sym> free;
  collect_names(e, free);
  return std::any_of(free.begin(), free.end(), [&](Sym s) { return names.count(s) > 0; });
}

// ---- the walk

void Trace::piece(Stmts body) {
  size_t mark = known_.mark();
  list(body);
  known_.pop(mark);
}

void Trace::list(Stmts body) {
  size_t mark = known_.mark(), first = writes_.size();
  std::vector<Sym> defined;
  for (const Stmt *s : body) {
    stmt(s);
    after(known_, s);
    if (auto *l = as<Let>(s))
      for (const Def &d : l->defs)
        if (unsteady_.count(d.name)) defined.push_back(d.name);
  }
  known_.pop(mark);
  if (defined.empty()) return;
  std::unordered_set<Sym> gone(defined.begin(), defined.end());
  auto lost = [&](const Write &w) {
    bool mentions = false;
    for (const Side &s : w.access.at) mentions |= s.lo && (names_of(s.lo, gone) || names_of(s.extent, gone));
    for (const Cond &c : w.access.conds) mentions |= names_of(c.holds, gone);
    return mentions;
  };
  writes_.erase(std::remove_if(writes_.begin() + long(first), writes_.end(), lost), writes_.end());
}

void Trace::loop(const Iter &i, const std::function<void()> &inner) {
  size_t mark = known_.mark(), depth = iters_.size();
  Iter it = i;
  it.extent = substitute(b_, i.extent, lets_);
  known_.range(it.name, it.extent);
  iters_.push_back(it);
  inner();
  iters_.pop_back();
  known_.pop(mark);
  for (Write &w : writes_)
    if (w.depth > depth) w.depth = depth, w.boxed = false;
}

// Iterators of an expression or a compute: they may be called like loops around, which they hide.
void Trace::nest(Iters iters, const std::function<void(const Substitution &)> &inner) {
  Substitution names;
  std::function<void(size_t)> next = [&](size_t d) {
    if (d == iters.size()) return inner(names);
    Iter i = iters[d];
    i.extent = substitute(b_, i.extent, names);
    if (known_.knows(i.name) || lets_.count(i.name)) {
      i.name = b_.sym("iterator " + std::to_string(hidden_++));
      names[iters[d].name] = b_.name(i.name);
    }
    loop(i, [&] { next(d + 1); });
  };
  next(0);
}

// A bound of a loop's variable limits that loop: v + r < n.
void Trace::branch(const Expr *cond, const std::function<void()> &inner) {
  if (!cond || reads_memory(cond) || !steady(cond)) {  // not the same everywhere
    size_t before = writes_.size();
    inner();
    writes_.resize(before, Write{});
    return;
  }
  size_t mark = known_.mark(), before = writes_.size(), conds = conds_.size();
  std::vector<Iter> saved = iters_;
  std::vector<const Expr *> parts;
  std::vector<Cond> all;
  conjuncts(substitute(b_, cond, lets_), parts);
  for (const Expr *e : parts) {
    size_t k = iters_.size();
    while (k > 0 && !mentions(e, iters_[k - 1].name)) k--;
    const Expr *end = k ? end_of(b_, iters_[k - 1].name, e, known_) : nullptr;
    if (end) iters_[k - 1].extent = simplify(b_, b_.call("min", {iters_[k - 1].extent, end}), known_);
    all.push_back({e, end ? k - 1 : kNoLoop});
  }
  conds_.insert(conds_.end(), all.begin(), all.end());
  known_.assume(cond);
  inner();
  known_.pop(mark);
  iters_ = std::move(saved);
  conds_.resize(conds);
  for (size_t i = before; i < writes_.size(); i++) {
    writes_[i].boxed = false;
    auto &c = writes_[i].access.conds;
    c.insert(c.end(), all.begin(), all.end());
  }
}

void Trace::stmt(const Stmt *s) {
  switch (s->kind) {
    case Kind::Let: {
      auto &l = to<Let>(s);
      expr(l.value);
      bool one = l.defs.size() == 1 && l.defs[0].type == b_.index() && !reads_memory(l.value) && steady(l.value);
      if (one) lets_[l.defs[0].name] = substitute(b_, l.value, lets_);
      else
        for (const Def &d : l.defs) unsteady_.insert(d.name);
      return;
    }
    case Kind::Store: {
      auto &st = to<Store>(s);
      for (const Expr *e : st.target->index) expr(e);
      expr(st.value);
      atomic |= st.atomic && st.target->buffer == buffer_ && !st.target->global;
      operand(st.target, st.atomic, true, true);
      return;
    }
    case Kind::Compute: {
      auto &c = to<Compute>(s);
      Iters iters = c.results[0].iters;
      return nest(iters, [&](const Substitution &names) {
        expr(substitute(b_, c.value, names));
        for (const Result &r : c.results) {
          std::vector<const Expr *> at;
          for (const Iter &i : iters) at.push_back(substitute(b_, b_.name(i.name), names));
          const Load *l = b_.load(r.name, b_.list(at));
          if (auto to = region(*l, false, true)) to->ranged.assign(type_->rank(), true), access(*to, l, true);
        }
      });
    }
    case Kind::Alloc:
      aliased |= to<Alloc>(s).base == buffer_;
      return;
    case Kind::View: {
      auto &v = to<View>(s);
      for (const Expr *e : v.source->index) expr(e);
      auto r = region(*v.source, false, false);
      if (!r) return;
      access(*r, v.source, false);  // the text of the region; what is done with it is seen at its uses
      std::vector<bool> kept;
      if (auto outer = kept_.find(v.source->buffer); outer != kept_.end()) {
        size_t d = 0;
        for (bool k : outer->second) {
          const Expr *e = k ? v.source->index[d++] : nullptr;
          kept.push_back(e && (e->kind == Kind::Range || e->kind == Kind::All));
        }
      } else {
        for (const Expr *e : v.source->index) kept.push_back(e->kind == Kind::Range || e->kind == Kind::All);
      }
      views_[v.def.name] = r->at, kept_[v.def.name] = kept;
      return;
    }
    case Kind::CallStmt: return call(to<CallStmt>(s));
    case Kind::Assume: return expr(to<Assume>(s).cond);
    case Kind::For: return loop(to<For>(s).iter, [&] { list(to<For>(s).body); });
    case Kind::If: {
      auto &i = to<If>(s);
      expr(i.cond);
      branch(i.cond, [&] { list(i.body); });
      branch(reads_memory(i.cond) ? nullptr : simplify(b_, b_.unary(Op::Not, i.cond), known_), [&] { list(i.other); });
      return;
    }
    case Kind::While:
      expr(to<While>(s).cond);
      branch(nullptr, [&] { list(to<While>(s).body); });
      return;
    default: aliased = true;
  }
}

void Trace::call(const CallStmt &c) {
  const Func *f = c.call->global ? m_.func(c.call->callee) : nullptr;
  for (size_t i = 0; i < c.call->args.size(); i++) {
    Mode mode = f && i < f->params.size() ? f->params[i].mode : Mode::In;
    if (c.call->global && !f) mode = Mode::Inout;
    operand(c.call->args[i], mode != Mode::Scratch, mode != Mode::In, false);
  }
  fills_ = !c.call->global && b_.text(c.call->callee) == "fill";
  for (const Expr *d : c.dests) operand(d, false, true, true);
  fills_ = false;
}

// An argument, a destination, the target of a store.
void Trace::operand(const Expr *e, bool read, bool write, bool sure) {
  if (auto *n = as<Name>(e)) {
    auto v = views_.find(n->name);
    if (n->name != buffer_ && v == views_.end()) return;
    Access a = all(read, write);
    if (n->name == buffer_) a.whole = fills_;
    else a.at = v->second, a.ranged.assign(type_->rank(), false);
    return access(a, e, sure);
  }
  auto *l = as<Load>(e);
  if (!l || !write) return expr(e);
  if (auto a = region(*l, read, write)) access(*a, e, sure);
}

void Trace::expr(const Expr *e) {
  if (auto *l = as<Load>(e)) {
    for (const Expr *i : l->index) expr(i);
    if (auto a = region(*l, true, false)) access(*a, e, false);
    return;
  }
  if (auto *n = as<Name>(e); n && (n->name == buffer_ || views_.count(n->name))) return operand(e, true, false, false);
  auto *c = as<Call>(e);
  if (c && !c->iters.empty())
    return nest(c->iters, [&](const Substitution &names) {
      for (const Expr *a : c->args) expr(substitute(b_, a, names));
    });
  if (c && !c->global && c->args.size() == 3 && b_.text(c->callee) == "where") {
    expr(c->args[0]);
    branch(c->args[0], [&] { expr(c->args[1]); });
    bool data = reads_memory(c->args[0]);
    return branch(data ? nullptr : simplify(b_, b_.unary(Op::Not, c->args[0]), known_), [&] { expr(c->args[2]); });
  }
  each_child(e, [&](const Expr *x) { expr(x); });
}

// ---- accesses

std::optional<Access> Trace::region(const Load &l, bool read, bool write) {
  auto v = views_.find(l.buffer);
  if (l.global || (l.buffer != buffer_ && v == views_.end())) return std::nullopt;
  bool direct = l.buffer == buffer_;
  Access a{{}, {}, {}, read, write, false, std::vector<bool>(type_->rank())};
  size_t next = 0;
  for (size_t d = 0; d < type_->rank(); d++) {
    Side outer = direct ? Side{} : v->second[d];
    const Expr *e = (direct || kept_[l.buffer][d]) && next < l.index.size() ? l.index[next++] : nullptr;
    auto *r = as<Range>(e);
    bool plain = e && !r && e->kind != Kind::All;
    a.ranged[d] = direct && !plain;
    if (!r && !plain) {
      a.at.push_back(outer);
      continue;
    }
    const Expr *lo = substitute(b_, r ? r->lo : e, lets_);
    const Expr *extent = r ? substitute(b_, r->extent, lets_) : b_.integer(1);
    if (outer.lo) lo = sum(b_, outer.lo, lo);
    bool data = reads_memory(lo) || reads_memory(extent);
    a.at.push_back(data ? Side{} : Side{lo, extent});
  }
  return a;
}

void Trace::access(Access a, const Expr *at, bool sure) {
  a.iters = iters_, a.conds = conds_;
  if (judges && a.read && !stale && !fresh(a)) stale = at;
  accesses.push_back(a);
  // A side that is data is somewhere in the buffer; where is not known behind this statement.
  bool known = judges && sure && a.write;
  if (auto *l = as<Load>(at))
    for (const Expr *e : l->index) known &= !reads_memory(e);
  a.conds.clear();
  if (known) writes_.push_back({a, iters_.size(), false, {}});
}

}  // namespace mlc
