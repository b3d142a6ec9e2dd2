#include "sched/state.h"

#include "arith/scope.h"
#include "arith/simplify.h"
#include "text/text.h"

namespace mlc {

State::State(Build &b, const Module &m, const Func *f) : b(b), m(m), tree(b, f->body), attrs(f->notes.attrs.begin(), f->notes.attrs.end()), f_(f) {
  fixed_.insert(f->dims.begin(), f->dims.end());
  for (const Param &p : f->params)
    fixed_.insert(p.def.name);
  for (const Def &d : f->results)
    fixed_.insert(d.name);
  for (const Param &p : f->params)
    used_.insert(p.def.name);
  for (const Def &d : f->results)
    used_.insert(d.name);
  each_stmt(f->body, [&](const Stmt *s) {
    if (auto *a = as<Alloc>(s)) used_.insert(a->def.name);
  });
}

const Func *State::func() {
  return edited(b, *f_, [&](Func &f) {
    f.body = tree.body();
    if (!attrs.empty() || !f.notes.attrs.empty()) f.notes.attrs = b.list(attrs);
  });
}

std::string State::text(const Expr *e) const { return print(b, e); }

std::string State::name_of(const Place *n) const {
  if (!n || !n->stmt) return "the kernel";
  if (auto *f = n->loop()) return fmt::format("loop {}", b.text(f->iter.name));
  if (auto *k = n->block()) return fmt::format("block {}", b.text(k->name));
  if (auto *c = as<Compute>(n->stmt)) return fmt::format("the computation of {}", b.text(c->results[0].name));
  return "a statement";
}

// ---- names

std::vector<Place *> State::blocks() {
  std::vector<Place *> out;
  each_place(tree.root(), [&](Place *n) {
    if (n->block()) out.push_back(n);
  });
  return out;
}

Place *State::find_block(Sym name) {
  for (Place *n : blocks())
    if (n->block()->name == name) return n;
  // A compute's own block, or that of a reduction inside it: y, y.sum.
  Place *compute = nullptr;
  std::string_view wanted = b.text(name);
  each_place(tree.root(), [&](Place *n) {
    auto *c = as<Compute>(n->stmt);
    for (const Result &r : c ? c->results : std::span<const Result>{})
      if (r.name == name || (!compute && wanted.starts_with(text(r.name) + "."))) compute = n;
  });
  if (!compute) return nullptr;
  expand_compute(compute);
  for (Place *n : blocks())
    if (n->block()->name == name) return n;
  return nullptr;
}

Place *State::as_block(Place *n) {
  auto *c = as<Compute>(n->stmt);
  return c ? find_block(c->results[0].name) : n->block() ? n : nullptr;
}

void State::expand_compute(Place *n) {
  for (const Stmt *s : mlc::expand_compute(*this, n)) {
    if (auto *a = as<Alloc>(s)) add_alloc(a->def.name, a->def.type);
    else tree.before(n, tree.make(s));
  }
  tree.remove(n);
}

const Type *State::type_of_buffer(Sym name) {
  for (const Param &p : f_->params)
    if (p.def.name == name) return p.def.type;
  for (const Def &d : f_->results)
    if (d.name == name) return d.type;
  Place *a = alloc_of(name);
  return a ? to<Alloc>(a->stmt).def.type : nullptr;
}

Place *State::alloc_of(Sym buffer) {
  Place *found = nullptr;
  each_place(tree.root(), [&](Place *n) {
    auto *a = as<Alloc>(n->stmt);
    if (a && a->def.name == buffer) found = n;
  });
  return found;
}

void State::set_type(Sym buffer, const Type *type) {
  if (Place *a = alloc_of(buffer)) return tree.edit<Alloc>(a, [&](Alloc &x) { x.def.type = type; });
  f_ = edited(b, *f_, [&](Func &f) {
    f.params = edit_all(b, f.params, [&](Param &p) {
      if (p.def.name == buffer) p.def.type = type;
    });
    f.results = edit_all(b, f.results, [&](Def &d) {
      if (d.name == buffer) d.type = type;
    });
  });
}

bool State::is_result(Sym buffer) const {
  for (const Def &d : f_->results)
    if (d.name == buffer) return true;
  for (const Param &p : f_->params)
    if (p.def.name == buffer) return true;
  return false;
}

static Sym first_free(Build &b, std::string_view want, const std::function<bool(Sym)> &taken) {
  Sym s = b.sym(want);
  for (int i = 1; taken(s); i++)
    s = b.sym(fmt::format("{}_{}", want, i));
  return s;
}

static void names_at(Place *n, std::unordered_set<Sym> &out) {
  if (auto *f = n->loop()) out.insert(f->iter.name);
  if (auto *l = as<Let>(n->stmt))
    for (const Def &d : l->defs)
      out.insert(d.name);
  if (auto *a = as<Alloc>(n->stmt)) out.insert(a->def.name);
  if (auto *v = as<View>(n->stmt)) out.insert(v->def.name);
}

// Of n and what is around it, and of what was defined in front of these.
void State::names_around(Place *n, std::unordered_set<Sym> &out) {
  for (Place *u = n; u; u = u->up) {
    names_at(u, out);
    if (u->nest)
      for (const Axis &a : u->block()->axes)
        out.insert(a.name);
    if (!u->up) continue;
    for (Place *s : u->up->kids[u->part]) {
      if (s == u) break;
      if (!s->loop()) names_at(s, out);
    }
  }
}

Sym State::free_name(std::string_view want, const std::unordered_set<Sym> &taken) {
  return first_free(b, want, [&](Sym s) { return b.is_reserved(s) || fixed_.count(s) || taken.count(s); });
}

Sym State::loop_name(Place *place, std::string_view want, const std::vector<Sym> &also_taken) {
  std::unordered_set<Sym> taken(also_taken.begin(), also_taken.end());
  if (place->up) names_around(place->up, taken);
  if (place->up)
    for (Place *n : place->up->kids[place->part]) {
      if (n == place) break;
      if (!n->loop()) names_at(n, taken);
    }
  each_place(place, [&](Place *n) {
    if (n != place) names_at(n, taken);
  });
  return free_name(want, taken);
}

Sym State::loop_name_inside(Place *up, std::string_view want, const std::vector<Sym> &also_taken) {
  std::unordered_set<Sym> taken(also_taken.begin(), also_taken.end());
  names_around(up, taken);
  for (Place *n : up->kids[0])
    if (!n->loop()) names_at(n, taken);
  return free_name(want, taken);
}

Sym State::buffer_name(std::string_view want) {
  std::unordered_set<Sym> names;
  collect_all_names(func(), names);
  Sym s = first_free(b, want, [&](Sym s) { return b.is_reserved(s) || used_.count(s) || names.count(s); });
  used_.insert(s);
  return s;
}

Sym State::block_name(std::string_view want) {
  std::unordered_set<Sym> names;
  for (Place *n : blocks())
    names.insert(n->block()->name);
  return first_free(b, want, [&](Sym s) { return b.is_reserved(s) || names.count(s); });
}

// ---- changes

// One statement's head with names of loops replaced; what a block binds inside does not matter to it.
static const Stmt *with_head(Build &b, const Stmt *s, const Substitution &names) {
  if (auto *f = as<For>(s)) return edited(b, *f, [&](For &n) { n.iter.extent = substitute(b, n.iter.extent, names); });
  if (auto *i = as<If>(s)) return edited(b, *i, [&](If &n) { n.cond = substitute(b, n.cond, names); });
  if (auto *w = as<While>(s)) return edited(b, *w, [&](While &n) { n.cond = substitute(b, n.cond, names); });
  if (auto *k = as<Block>(s))
    return edited(b, *k, [&](Block &n) {
      n.axes = edit_all(b, n.axes, [&](Axis &a) {
        a.domain = substitute(b, a.domain, names), a.binding = substitute(b, a.binding, names);
      });
      if (n.guard) n.guard = substitute(b, n.guard, names);
    });
  return substitute(b, b.stmts({s}), names)[0];
}

void State::substitute_below(Place *n, const Substitution &names, bool simplified) {
  for (auto &kids : n->kids)
    for (Place *k : kids) {
      k->stmt = with_head(b, k->stmt, names);
      if (!k->block()) substitute_below(k, names, false);
    }
  if (simplified) simplify_below(n);
}

void State::simplify_below(Place *n) {
  for (auto &kids : n->kids)
    for (Place *k : kids) {
      if (k->loop()) {
        Known known(*this, k);
        tree.edit<For>(k, [&](For &f) { f.iter.extent = simplify(b, f.iter.extent, known); });
      } else if (k->block()) {
        Known known(*this, k);
        tree.edit<Block>(k, [&](Block &x) {
          if (x.guard) x.guard = simplify(b, x.guard, known);
          size_t mark = known.bounds.mark();
          if (x.guard) known.bounds.assume(x.guard);
          x.axes = edit_all(b, x.axes, [&](Axis &a) { a.binding = simplify(b, a.binding, known); });
          known.bounds.pop(mark);
          if (auto *t = as<Bool>(x.guard); t && t->value) x.guard = nullptr;
        });
      }
      if (!k->block()) simplify_below(k);
    }
}

void State::guard_below(Place *n, const Expr *cond) {
  std::vector<Place *> blocks;
  Place *other = nullptr;  // what a guard of blocks would leave bare: scalars, views, conditions
  std::function<void(Place *)> look = [&](Place *x) {
    for (auto &kids : x->kids)
      for (Place *k : kids) {
        if (k->block()) blocks.push_back(k);
        else if (k->loop()) look(k);
        else if (k->stmt->kind != Kind::Alloc) other = k;
      }
  };
  look(n);
  if (other && !blocks.empty())
    refuse(other, "{} stands outside of blocks in {}: a guard would not keep it from turns that are none", name_of(other),
           name_of(n));
  for (Place *k : blocks)
    tree.edit<Block>(k, [&](Block &x) { x.guard = both(b, x.guard, cond); });
  if (!other) return;
  Place *branch = tree.make(b.make(If{{}, cond, {}, {}, false}));
  tree.move_kids(n, branch);
  tree.append(n, branch);
}

void State::replace_buffer(Place *node, Sym from, Sym to, bool reads, bool writes) {
  auto load = [&](const Load *l) {
    return b.load(l->buffer == from && !l->global ? to : l->buffer, l->index, l->at, l->global);
  };
  ExprMap in_values = [&](const Expr *e) -> const Expr * {
    auto *l = as<Load>(e);
    if (l && !l->global && l->buffer == from && reads) return load(l);
    auto *n = as<Name>(e);
    return n && n->name == from && reads ? b.name(to, n->at) : e;
  };
  std::function<Stmts(Stmts)> body = [&](Stmts in) {
    return rewrite_stmts(b, in, [&](const Stmt *s, std::vector<const Stmt *> &out) {
      if (auto *st = as<Store>(s)) {
        s = edited(b, *st, [&](Store &n) {
          Exprs index = rewrite(b, st->target->index, in_values);
          Sym target = st->target->buffer == from && writes ? to : st->target->buffer;
          if (index.data() != st->target->index.data() || target != st->target->buffer)
            n.target = b.load(target, index, st->target->at);
          n.value = rewrite(b, st->value, in_values);
        });
      } else if (auto *c = as<CallStmt>(s)) {
        s = edited(b, *c, [&](CallStmt &n) {
          n.call = b.call(c->call->callee, rewrite(b, c->call->args, in_values), c->call->at, c->call->global);
          if (writes)
            n.dests = rewrite(b, c->dests, [&](const Expr *e) -> const Expr * {
              auto *l = as<Load>(e);
              if (l && l->buffer == from) return load(l);
              auto *x = as<Name>(e);
              return x && x->name == from ? b.name(to, x->at) : e;
            });
        });
      } else {
        // Bodies inside are rewritten already; what stands in the head of s is left.
        std::vector<Stmts> inner;
        each_body(s, [&](Stmts l) { inner.push_back(l); });
        s = rewrite_exprs(b, s, in_values);
        size_t i = 0;
        s = with_bodies(b, s, [&](Stmts) { return inner[i++]; });
      }
      out.push_back(s);
    });
  };
  tree.edit<Block>(node, [&](Block &k) {
    k.inits = body(k.inits), k.body = body(k.body);
    auto regions = [&](std::span<const Load *const> l) { return edit_all(b, l, [&](const Load *&x) { x = load(x); }); };
    if (reads) k.reads = regions(k.reads);
    if (writes) k.writes = regions(k.writes);
  });
}

Place *State::add_alloc(Sym name, const Type *type, Place *near) {
  Place *n = tree.make(b.make(Alloc{{}, {name, kNowhere, type}, {}, nullptr}));
  if (near) {
    tree.before(near, n);
    return n;
  }
  auto &top = tree.root()->kids[0];
  size_t at = 0;
  while (at < top.size() && top[at]->stmt->kind == Kind::Alloc)
    at++;
  tree.insert(tree.root(), 0, at, n);
  return n;
}

std::pair<Place *, Place *> State::nest(const std::vector<Iter> &loops, const Stmt *block) {
  Place *inner = tree.make(block), *outer = inner;
  for (size_t i = loops.size(); i-- > 0;) {
    Place *l = tree.make_loop(loops[i]);
    tree.append(l, outer);
    outer = l;
  }
  return {outer, inner};
}

// ---- what is known

static void enter_path(State &s, Bounds &known, Place *n) {
  if (!n->up) return;
  enter_path(s, known, n->up);
  Place *up = n->up;
  if (up->stmt) {
    const Stmt *head = up->stmt;
    // each_body's order: the inits of a block come before its body.
    enter(known, head, head->kind == Kind::Block ? 1 : n->part);
  }
  for (Place *k : up->kids[n->part]) {
    if (k == n) break;
    after(known, k->stmt);
  }
}

Known::Known(State &s, Place *n, bool inside) : bounds(s.b) {
  enter(bounds, *s.original());
  enter_path(s, bounds, n);
  if (inside && n->stmt) enter(bounds, n->stmt, n->block() ? 1 : 0);
}

}  // namespace mlc
