// What was surely written is a box: the loops around a store widen it, one after the other.
//
//   for i in 6, j in 64 { t[i0 * 4 + i, j] = .. }       i0 * 4 +: 6, 0 +: 64
#include "compact/trace.h"

#include "arith/affine.h"
#include "arith/prove.h"
#include "arith/scope.h"
#include "arith/simplify.h"
#include "ir/edit.h"
#include "ir/solve.h"

namespace mlc {

namespace {

const Expr *sum(Build &b, const Expr *x, const Expr *y) { return fold(b, Op::Add, x, y); }
const Expr *minus(Build &b, const Expr *x, const Expr *y) { return fold(b, Op::Sub, x, y); }

bool mentions_any(const Expr *e, Iters iters) {
  for (const Iter &i : iters)
    if (mentions(e, i.name)) return true;
  return false;
}

// e = still + moving, where only `moving` mentions the loops.
void split(Build &b, const Expr *e, bool negative, Iters iters, const Expr *&still, const Expr *&moving) {
  auto *x = as<Binary>(e);
  if (x && (x->op == Op::Add || x->op == Op::Sub)) {
    split(b, x->a, negative, iters, still, moving);
    return split(b, x->b, negative != (x->op == Op::Sub), iters, still, moving);
  }
  const Expr *&part = mentions_any(e, iters) ? moving : still;
  part = negative ? minus(b, part, e) : sum(b, part, e);
}

// A condition that says how large `value` is, at least or at most: j * 5 + k < 12 of j * 5 + k.
//   value < end, or value >= lo; the other one is null
Side limits(Build &b, const Expr *value, const Expr *cond, const Bounds &known) {
  auto *c = as<Binary>(cond);
  if (!c || c->op < Op::Lt || c->op > Op::Ge) return {};
  bool less = c->op == Op::Lt || c->op == Op::Le, strict = c->op == Op::Lt || c->op == Op::Gt;
  const Expr *gap = minus(b, less ? c->b : c->a, less ? c->a : c->b);  // > 0, or >= 0
  const Expr *end = simplify(b, sum(b, sum(b, value, gap), b.integer(strict ? 0 : 1)), known);
  const Expr *lo = simplify(b, sum(b, minus(b, value, gap), b.integer(strict ? 1 : 0)), known);
  return cost(end) <= cost(lo) ? Side{nullptr, end} : Side{lo, nullptr};
}

// The part of a side that limits leave.
Side within(Build &b, Side s, Side limit, const Bounds &known) {
  const Expr *end = sum(b, s.lo, s.extent);
  if (limit.extent && !provably_less_equal(b, end, limit.extent, known))
    end = provably_less_equal(b, limit.extent, end, known) ? limit.extent : b.call("min", {end, limit.extent});
  if (limit.lo && !provably_less_equal(b, limit.lo, s.lo, known))
    s.lo = provably_less_equal(b, s.lo, limit.lo, known) ? limit.lo : simplify(b, b.call("max", {s.lo, limit.lo}), known);
  return {s.lo, simplify(b, minus(b, end, s.lo), known)};
}

// lo .. lo + extent - 1 while the loops run.
Side swept(Build &b, const Side &s, Iters iters, const Bounds &known) {
  const Expr *still = b.integer(0), *moving = b.integer(0);
  split(b, simplify(b, s.lo, known), false, iters, still, moving);
  auto low = span_of(b, moving, iters, known);
  if (!low) return {};
  const Expr *extent = low->extent;
  if (!is_int(s.extent, 1)) {
    auto high = span_of(b, sum(b, moving, s.extent), iters, known);
    if (!high) return {};
    extent = minus(b, minus(b, sum(b, high->lo, high->extent), b.integer(1)), low->lo);
  }
  if (mentions_any(low->lo, iters) || mentions_any(extent, iters)) return {};
  return {simplify(b, sum(b, still, low->lo), known), simplify(b, extent, known)};
}

}  // namespace

Region hull(Build &b, const Access &a, size_t depth, const Bounds &known) {
  Region out;
  Iters iters = Iters(a.iters).subspan(depth);
  for (const Side &s : a.at) {
    out.push_back({nullptr, nullptr});
    if (!s.lo) continue;
    out.back() = swept(b, s, iters, known);
    for (const Cond &c : a.conds) {
      if (c.loop != kNoLoop || !is_int(s.extent, 1) || !out.back().lo) continue;
      Side limit = limits(b, s.lo, c.holds, known);
      for (const Expr **e : {&limit.lo, &limit.extent}) {
        if (!*e || !mentions_any(*e, iters)) continue;
        Side all = swept(b, {*e, b.integer(1)}, iters, known);
        if (!all.lo || e == &limit.lo) *e = all.lo;
        else *e = minus(b, sum(b, all.lo, all.extent), b.integer(1));
      }
      if (limit.lo || limit.extent) out.back() = within(b, out.back(), limit, known);
    }
  }
  return out;
}

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
    auto *c = as<Binary>(e);
    size_t k = iters_.size();
    while (k > 0 && !mentions(e, iters_[k - 1].name)) k--;
    bool taken = false;
    if (k > 0 && c && c->op >= Op::Lt && c->op <= Op::Ge) {
      bool less = c->op == Op::Lt || c->op == Op::Le, strict = c->op == Op::Lt || c->op == Op::Gt;
      Sym v = iters_[k - 1].name;
      auto a = affine(b_, minus(b_, less ? c->a : c->b, less ? c->b : c->a), b_.one(v), known_);
      if (a && is_int(a->coefs[0], 1)) {
        const Expr *end = b_.unary(Op::Neg, a->rest);
        if (!strict) end = sum(b_, end, b_.integer(1));
        iters_[k - 1].extent = simplify(b_, b_.call("min", {iters_[k - 1].extent, end}), known_);
        taken = true;
      }
    }
    all.push_back({e, taken ? k - 1 : kNoLoop});
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

bool Trace::fresh(const Access &read) {
  for (const Write &w : writes_)
    if (same(w, read)) return true;
  for (Write &w : writes_) {
    if (!holds_now(w, read)) continue;
    if (!w.boxed) w.box = box(w), w.boxed = true;
    if (!w.box) continue;
    Region r = hull(b_, read, w.depth, known_);
    bool inside = true;
    for (size_t d = 0; inside && d < r.size(); d++) {
      Side have = (*w.box)[d], want = r[d];
      if (!have.lo) continue;
      if (!want.lo) want = {b_.integer(0), type_->dims[d]};
      inside = provably_less_equal(b_, have.lo, want.lo, known_) &&
               provably_less_equal(b_, sum(b_, want.lo, want.extent), sum(b_, have.lo, have.extent), known_);
    }
    if (inside) return true;
  }
  return false;
}

// A condition on loops that are still open, which the read stands in too: it holds there.
bool Trace::holds_now(const Write &w, const Access &read) {
  return std::all_of(w.access.conds.begin(), w.access.conds.end(), [&](const Cond &c) {
    if (closed(w, c)) return true;
    auto there = [&](const Cond &r) { return equal(c.holds, r.holds); };
    return std::any_of(read.conds.begin(), read.conds.end(), there) || prove(b_, c.holds, known_);
  });
}
// It is about loops that are closed: their extents have it, or `box` has.
bool Trace::closed(const Write &w, const Cond &c) const {
  return (c.loop != kNoLoop && c.loop >= w.depth) || mentions_any(c.holds, Iters(w.access.iters).subspan(w.depth));
}

// The read stands in loops like those of the write, under its conditions.
bool Trace::same(const Write &w, const Access &read) {
  auto equal_or_null = [](const Expr *x, const Expr *y) { return x == y || (x && y && equal(x, y)); };
  for (size_t d = 0; d < read.at.size(); d++)
    if (!equal_or_null(w.access.at[d].lo, read.at[d].lo) || !equal_or_null(w.access.at[d].extent, read.at[d].extent))
      return false;
  if (!holds_now(w, read)) return false;
  for (const Cond &c : w.access.conds) {
    bool limit = c.loop != kNoLoop && c.loop >= w.depth;
    auto there = [&](const Cond &r) { return equal(c.holds, r.holds); };
    if (!limit && closed(w, c) && std::none_of(read.conds.begin(), read.conds.end(), there)) return false;
  }
  for (size_t i = w.depth; i < w.access.iters.size(); i++) {
    const Iter &it = w.access.iters[i];
    bool used = false;
    for (const Side &s : w.access.at) used |= s.lo && (mentions(s.lo, it.name) || mentions(s.extent, it.name));
    for (const Cond &c : w.access.conds) used |= mentions(c.holds, it.name);
    if (!used) {
      if (!provably_less(b_, b_.integer(0), it.extent, known_)) return false;
      continue;
    }
    bool found = false;
    for (size_t k = w.depth; k < read.iters.size(); k++)
      found |= read.iters[k].name == it.name && equal(read.iters[k].extent, it.extent);
    if (!found) return false;
  }
  return true;
}

// ---- boxes

std::optional<Region> Trace::box(const Write &w) {
  // Conditions are extents of loops that are closed, or say how far a side goes; any other may not hold.
  std::vector<std::pair<size_t, Side>> limited;
  Iters iters = Iters(w.access.iters).subspan(w.depth);
  for (const Cond &c : w.access.conds) {
    if ((c.loop != kNoLoop && c.loop >= w.depth) || !closed(w, c)) continue;
    bool used = false;
    for (size_t d = 0; d < w.access.at.size() && !used; d++) {
      const Side &s = w.access.at[d];
      if (!s.lo || !is_int(s.extent, 1) || !mentions_any(s.lo, iters)) continue;
      Side limit = limits(b_, s.lo, c.holds, known_);
      const Expr *e = limit.lo ? limit.lo : limit.extent;
      used = e && !mentions_any(e, iters);
      if (used) limited.push_back({d, limit});
    }
    if (!used) return std::nullopt;
  }
  size_t mark = known_.mark();
  for (const Iter &i : iters) known_.range(i.name, i.extent);
  std::optional<Region> r = widened(w.access, w.depth);
  known_.pop(mark);
  if (!r) r = inverted(w.access, w.depth);
  for (auto &[d, limit] : limited)
    if (r) (*r)[d] = within(b_, (*r)[d], limit, known_);
  return r;
}

// One loop after the other, from the innermost: where it moves one side by no more than what is written at each turn.
std::optional<Region> Trace::widened(const Access &w, size_t depth) {
  Region r = w.at;
  const Expr *one = b_.integer(1), *zero = b_.integer(0);
  for (size_t k = w.iters.size(); k-- > depth;) {
    Sym v = w.iters[k].name;
    const Expr *n = w.iters[k].extent, *last = minus(b_, n, one);
    Side *moves = nullptr;
    for (Side &s : r) {
      if (!s.lo || (!mentions(s.lo, v) && !mentions(s.extent, v))) continue;
      if (moves) return std::nullopt;
      moves = &s;
    }
    bool some = provably_less_equal(b_, one, n, known_);
    if (!moves) {
      if (!some) return std::nullopt;
      continue;
    }
    auto a = affine(b_, moves->lo, b_.one(v), known_);
    if (!a || !provably_less_equal(b_, one, a->coefs[0], known_)) return std::nullopt;
    const Expr *c = a->coefs[0];
    auto at = [&](const Expr *e, const Expr *turn) { return substitute(b_, e, {{v, turn}}); };
    if (!mentions(moves->extent, v) && provably_equal(b_, c, moves->extent, known_)) {
      *moves = {simplify(b_, a->rest, known_), simplify(b_, fold(b_, Op::Mul, c, n), known_)};
      continue;
    }
    // The next turn begins no later than this one ends.
    if (!some) return std::nullopt;
    size_t mark = known_.mark();
    known_.assume(b_.binary(Op::Lt, b_.name(v), last));
    const Expr *next = at(moves->lo, b_.binary(Op::Add, b_.name(v), one));
    bool joined = provably_less_equal(b_, next, sum(b_, moves->lo, moves->extent), known_);
    known_.pop(mark);
    if (!joined) return std::nullopt;
    const Expr *lo = at(moves->lo, zero), *end = at(sum(b_, moves->lo, moves->extent), last);
    *moves = {simplify(b_, lo, known_), simplify(b_, minus(b_, end, lo), known_)};
  }
  return r;
}

// All loops at once: t[f // 8, f % 8] is written whole.
std::optional<Region> Trace::inverted(const Access &w, size_t depth) {
  Iters all = Iters(w.iters).subspan(depth);
  std::vector<const Expr *> vars, extents, moving;
  std::vector<Sym> names;
  Region r = w.at;
  for (const Iter &i : all) {
    bool used = false;
    if (mentions_any(i.extent, all)) return std::nullopt;
    for (const Side &s : w.at) used |= s.lo && mentions(s.lo, i.name);
    if (used) vars.push_back(b_.name(i.name)), extents.push_back(i.extent);
    else if (!provably_less(b_, b_.integer(0), i.extent, known_)) return std::nullopt;
  }
  std::vector<size_t> dims;
  size_t mark = known_.mark();
  for (const Iter &i : all) known_.range(i.name, i.extent);
  for (size_t d = 0; d < r.size(); d++) {
    if (!r[d].lo || !mentions_any(r[d].lo, all)) continue;
    if (!is_int(r[d].extent, 1)) return known_.pop(mark), std::nullopt;
    const Expr *still = b_.integer(0), *part = b_.integer(0);
    split(b_, simplify(b_, r[d].lo, known_), false, all, still, part);
    r[d].lo = still, moving.push_back(part), dims.push_back(d);
    names.push_back(b_.sym("side " + std::to_string(d)));
  }
  known_.pop(mark);
  const Map *map = b_.map(b_.make_list(b_.list(vars)), b_.make_list(b_.list(moving)));
  auto back = inverse(b_, *map, b_.list(extents), names, known_);
  if (!back || !back->onto) return std::nullopt;
  for (size_t i = 0; i < dims.size(); i++) r[dims[i]].extent = back->image[i];
  return r;
}

}  // namespace mlc
