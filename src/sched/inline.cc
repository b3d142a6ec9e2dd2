// compute_inline and reverse_compute_inline.
#include "sched/inline.h"

#include <algorithm>

#include "arith/prove.h"
#include "sched/primitives.h"
#include "sched/regions.h"

namespace mlc {

namespace {

// block { y[i, j] = e } with y's subscripts each an axis of its own, all axes spatial.
struct Elementwise {
  const Store *store;
  std::vector<Sym> axes;  // by subscript
  const Expr *value;      // with the scalars of the body put in
};

Elementwise elementwise(State &s, Place *n) {
  auto &k = *n->block();
  std::string block = s.text(k.name);
  if (n->nest) refuse(n, "block {} holds blocks", block);
  for (const Axis &x : k.axes)
    if (x.kind != AxisKind::Spatial)
      throw Refused{n->stmt->at, fmt::format("block {} reduces: its value is no expression", block),
                    fmt::format("compute_at({}, ..) moves it into its reader", block)};
  Elementwise e{};
  Substitution scalars;
  for (const Stmt *st : k.body) {
    if (auto *l = as<Let>(st); l && l->defs.size() == 1 && !e.store) {
      scalars[l->defs[0].name] = substitute(s.b, l->value, scalars);
      continue;
    }
    if (e.store || st->kind != Kind::Store || to<Store>(st).atomic)
      refuse(n, "block {} does more than store one value", block);
    e.store = &to<Store>(st);
  }
  if (!e.store) refuse(n, "block {} stores nothing", block);
  e.value = substitute(s.b, e.store->value, scalars);
  for (const Expr *i : e.store->target->index) {
    auto *v = as<Name>(i);
    bool axis = v && std::any_of(k.axes.begin(), k.axes.end(), [&](const Axis &x) { return x.name == v->name; });
    if (is_int(i, 0)) {
      e.axes.push_back(Sym{});
      continue;
    }
    if (!axis || std::find(e.axes.begin(), e.axes.end(), v->name) != e.axes.end())
      refuse(n, "block {} writes {} at {}, which is not an axis of its own", block, s.text(e.store->target->buffer),
             s.text(i));
    e.axes.push_back(v->name);
  }
  for (const Axis &x : k.axes)
    if (std::find(e.axes.begin(), e.axes.end(), x.name) == e.axes.end() && !is_int(x.domain, 1))
      refuse(n, "block {} does not write at its axis {}", block, s.text(x.name));
  return e;
}

const Expr *domain_of(Place *n, Sym axis) {
  auto axes = n->block()->axes;
  return std::find_if(axes.begin(), axes.end(), [&](const Axis &x) { return x.name == axis; })->domain;
}

Substitution at(State &s, Place *n, const Elementwise &e, Exprs index) {
  Substitution names;
  for (const Axis &x : n->block()->axes)
    names[x.name] = s.b.integer(0);  // those of one turn
  for (size_t i = 0; i < e.axes.size(); i++)
    if (e.axes[i]) names[e.axes[i]] = index[i];
  return names;
}

}  // namespace

void inline_block(State &s, Place *n) {
  Elementwise e = elementwise(s, n);
  Sym y = e.store->target->buffer;
  std::string block = s.text(n->block()->name);
  Place *alloc = s.alloc_of(y);
  if (!alloc) refuse(n, "block {} writes {}, which the caller sees", block, s.text(y));
  std::vector<Place *> users;
  for (Place *x : leaves(s.tree.root())) {
    if (x == n) continue;
    if (writes(s, x, y)) refuse(x, "{} writes {} too", s.name_of(x), s.text(y));
    if (reads(s, x, y)) users.push_back(x);
  }
  // What it reads must still be there, unchanged, where it is read.
  std::vector<Sym> read = buffers_read(s, n);
  bool behind = false;
  for (Place *x : leaves(s.tree.root())) {
    behind |= x == n;
    if (!behind || x == n) continue;
    for (Sym r : read)
      if (writes(s, x, r)) refuse(x, "{} changes {}, which block {} reads", s.name_of(x), s.text(r), block);
  }
  auto put = [&](const Expr *x) -> const Expr * {
    auto *l = as<Load>(x);
    if (!l || l->global || l->buffer != y) return x;
    for (const Expr *i : l->index)
      if (i->kind == Kind::All || i->kind == Kind::Range) refuse(n, "{} is read as a region, {}", s.text(y), s.text(x));
    return substitute(s.b, e.value, at(s, n, e, l->index));
  };
  for (Place *u : users) {
    const Stmt *now = rewrite_exprs(s.b, u->stmt, put);
    bool left = false;
    each_expr_in(s.b.stmts({now}), [&](const Expr *x) {
      auto *l = as<Load>(x);
      auto *name = as<Name>(x);
      left |= (l && !l->global && l->buffer == y) || (name && name->name == y);
      return true;
    });
    if (left) refuse(u, "{} uses {} in a way that takes a buffer", s.name_of(u), s.text(y));
    if (auto *k = as<Block>(now))  // what it declared to read of y it now reads of others
      now = edited(s.b, *k, [&](Block &x) { x.reads = {}; });
    u->stmt = now;
  }
  Place *was = n->up;
  s.tree.remove(n);
  s.tree.prune(was);
  s.tree.remove(alloc);
}

void compute_inline(State &s, Args &a) {
  a.expect_results(0, 0);
  inline_block(s, a.block(0));
}

// block p { y[i] = e }, block c { z[i] = f(y[i]) }  ->  block p { z[i] = f(e) }
void reverse_compute_inline(State &s, Args &a) {
  a.expect_results(0, 0);
  Place *n = a.block(0);
  Elementwise c = elementwise(s, n);
  std::string block = s.text(n->block()->name);
  std::vector<Place *> makers = producers(s, n);
  Place *p = nullptr;
  Sym y;
  for (Place *m : makers)
    for (Sym w : buffers_written(s, m))
      if (reads(s, n, w) && s.alloc_of(w)) {
        if (p && p != m)
          refuse(n, "block {} reads what {} and {} write: into which should it go?", block, s.name_of(p), s.name_of(m));
        p = m, y = w;
      }
  p = p ? s.as_block(p) : nullptr;
  if (!p) refuse(n, "block {} reads no buffer that a block of the kernel writes", block);
  if (has_reduce(*p->block()))
    throw Refused{
        n->stmt->at,
        fmt::format("{} reduces into {}: its value is not ready where it is added up", s.name_of(p), s.text(y)),
        fmt::format("reverse_compute_at({}, ..), or fuse_reduction_epilogue({}, {})", block, s.text(p->block()->name),
                    block)};
  Elementwise e = elementwise(s, p);
  for (Place *x : leaves(s.tree.root()))
    if (x != n && x != p && (reads(s, x, y) || writes(s, x, y))) refuse(x, "{} uses {} too", s.name_of(x), s.text(y));
  for (Sym w : buffers_written(s, n))
    for (Place *x : leaves(s.tree.root())) {
      if (x == n) break;
      if (reads(s, x, w) || writes(s, x, w))
        refuse(x, "{} uses {} in front of block {}", s.name_of(x), s.text(w), block);
    }
  // y is read at c's own axes, each once: then c's turn at that point is p's.
  Substitution back;
  each_expr(c.value, [&](const Expr *x) {
    auto *l = as<Load>(x);
    if (!l || l->global || l->buffer != y) return true;
    std::vector<Sym> seen;
    for (size_t i = 0; i < l->index.size(); i++) {
      auto *v = as<Name>(l->index[i]);
      bool axis = v && std::find(c.axes.begin(), c.axes.end(), v->name) != c.axes.end();
      if (!axis || std::find(seen.begin(), seen.end(), v->name) != seen.end()) {
        if (is_int(l->index[i], 0)) continue;
        refuse(n, "block {} reads {}, not at its own axes", block, s.text(x));
      }
      seen.push_back(v->name);
      // All that p makes, and nothing else, c takes.
      const Expr *made = e.axes[i] ? domain_of(p, e.axes[i]) : s.b.integer(1), *taken = domain_of(n, v->name);
      if (!provably_equal(s.b, made, taken, Known(s, s.tree.root())))
        throw Refused{n->stmt->at,
                      fmt::format("block {} takes {} of {} along axis {}, {} makes {}", block, s.text(taken), s.text(y),
                                  s.text(v->name), s.name_of(p), s.text(made)),
                      fmt::format("reverse_compute_at({}, ..)", block)};
      const Expr *here = e.axes[i] ? static_cast<const Expr *>(s.b.name(e.axes[i])) : s.b.integer(0);
      if (auto it = back.find(v->name); it != back.end() && !equal(it->second, here))
        refuse(n, "block {} reads {} at two places", block, s.text(y));
      back[v->name] = here;
    }
    return true;
  });
  for (const Axis &x : n->block()->axes)
    if (!back.count(x.name)) {
      if (!is_int(x.domain, 1))
        refuse(n, "axis {} of block {} does not come from {}", s.text(x.name), block, s.text(y));
      back[x.name] = s.b.integer(0);
    }
  const Expr *target = substitute(s.b, c.store->target, back);
  // First c's names become p's, then y[..] becomes p's value.
  const Expr *value = substitute(s.b, c.value, back);
  Sym hole = s.b.sym("the value of " + s.text(y));  // iterators of c's that p's names would run into are renamed
  value = rewrite(s.b, value, [&](const Expr *x) -> const Expr * {
    auto *l = as<Load>(x);
    return l && !l->global && l->buffer == y ? s.b.name(hole) : x;
  });
  value = substitute(s.b, value, {{hole, e.value}});
  s.tree.edit<Block>(p, [&](Block &k) {
    std::vector<Sym> from(k.notes.from.begin(), k.notes.from.end());
    for (Sym f : n->block()->notes.from)
      if (std::find(from.begin(), from.end(), f) == from.end()) from.push_back(f);
    k.notes.from = s.b.list(from);
    k.reads = {}, k.writes = {}, k.inits = {};
    k.body = s.b.stmts({s.b.make(Store{{}, false, &to<Load>(target), value, c.store->from})});
  });
  Place *was = n->up, *alloc = s.alloc_of(y);
  s.tree.remove(n);
  s.tree.prune(was);
  s.tree.remove(alloc);
}

}  // namespace mlc
