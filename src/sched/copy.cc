#include "sched/copy.h"

#include <algorithm>

#include "arith/prove.h"
#include "arith/simplify.h"
#include "ops/expr.h"
#include "sched/nest.h"

namespace mlc {

Sym scope_argument(State &s, Args &a, size_t i) {
  static constexpr std::string_view kScopes[] = {"global", "shared", "local", "wmma.a",    "wmma.b",  "wmma.acc",
                                                 "mma.a",  "mma.b",  "mma.c", "wgmma.acc", "amx.tile"};
  Sym scope = a.word(i);
  std::string_view name = s.b.text(scope);
  if (name == "global") return {};
  if (std::find(std::begin(kScopes), std::end(kScopes), name) != std::end(kScopes)) return scope;
  for (const Item *item : s.m.items)
    if (auto *t = as<Target>(item))
      for (const Feature &f : t->features)
        if (f.kind == Feature::Memory && f.name == scope) return scope;
  bad_step(a.at(i), "{} is no scope: global, shared, local, a fragment, or a memory line of a target", name);
}

std::string scope_text(State &s, Sym scope) { return scope ? s.text(scope) : "global"; }

const Type *type_in(State &s, const Type *t, Sym scope) {
  return s.b.type({t->elem, true, scope, t->device, t->device_index, t->dims, {}});
}

Sym alloc_beside(State &s, Sym of, std::string_view name, const Type *type) {
  Sym made = s.buffer_name(name);
  Place *alloc = s.alloc_of(of);
  if (!alloc) {
    s.add_alloc(made, type);
    return made;
  }
  s.tree.after(alloc, s.tree.make(s.b.make(Alloc{{}, {made, kNowhere, type}, {}, nullptr})));
  return made;
}

static std::vector<Place *> users_of(State &s, Sym buffer, bool write) {
  auto uses = [&](Place *n) { return write ? writes(s, n, buffer) : reads(s, n, buffer); };
  for (Place *n : leaves(s.tree.root()))
    if (n->stmt->kind == Kind::Compute && uses(n)) s.as_block(n);
  std::vector<Place *> out;
  for (Place *n : leaves(s.tree.root()))
    if (n->block() && uses(n)) out.push_back(n);
  return out;
}
std::vector<Place *> readers(State &s, Sym buffer) { return users_of(s, buffer, false); }
std::vector<Place *> writers(State &s, Sym buffer) { return users_of(s, buffer, true); }

std::vector<Access> accesses_to(State &s, Place *block, Sym buffer, bool write) {
  std::vector<Access> out;
  for (const Access &a : accesses(s, block)) {
    if (a.buffer != buffer || a.write != write) continue;
    if (std::none_of(out.begin(), out.end(), [&](const Access &x) { return equal(x.index, a.index); }))
      out.push_back(a);
  }
  return out;
}

void expect_buffers(State &s, Place *n, Place *up, const std::vector<Sym> &used) {
  for (Sym buffer : used)
    if (Place *alloc = s.alloc_of(buffer); alloc && alloc->up->stmt && !s.tree.contains(alloc->up, up))
      refuse(alloc, "{} is allocated in {}: {} does not see it {}", s.text(buffer), s.name_of(alloc->up), s.name_of(n),
             up->stmt ? "in " + s.name_of(up) : "outside");
}
void expect_buffers(State &s, Place *n, Place *up) {
  expect_buffers(s, n, up, buffers_read(s, n));
  expect_buffers(s, n, up, buffers_written(s, n));
}

void expect_stores(State &s, Place *n, Sym buffer) {
  std::function<void(Stmts, bool)> look = [&](Stmts l, bool maybe) {
    for (const Stmt *st : l) {
      auto *x = as<Store>(st);
      if (x && maybe && x->target->buffer == buffer)
        refuse(x->target->at, "{} writes {} under a condition: what it leaves cannot be copied", s.name_of(n),
               s.text(buffer));
      each_body(st, [&](Stmts in) { look(in, maybe || st->kind == Kind::If || st->kind == Kind::While); });
    }
  };
  look(n->block()->body, false);
}

bool writes_always(Place *block, Sym buffer) {
  bool always = true;
  each_stmt(block->block()->body, [&](const Stmt *x) {
    if (x->kind != Kind::If && x->kind != Kind::While) return;
    each_stmt(x, [&](const Stmt *y) {
      auto *store = as<Store>(y);
      always &= !store || store->target->buffer != buffer;
    });
  });
  return always;
}

// ---- places

static Place *home_of(State &s, Sym buffer) {
  Place *alloc = s.alloc_of(buffer);
  return alloc ? alloc->up : s.tree.root();
}

static bool any_below(const std::vector<Place *> &l, Place *n) {
  return std::any_of(l.begin(), l.end(), [&](Place *x) { return x == n || is_below(x, n); });
}

Spot spot_before(State &s, const std::vector<Place *> &users, Sym buffer) {
  std::vector<Place *> makers;
  for (Place *n : leaves(s.tree.root()))
    if (writes(s, n, buffer)) makers.push_back(n);
  Place *scope = home_of(s, buffer);
  for (;;) {
    size_t first = SIZE_MAX, last = 0;
    for (Place *u : users) {
      size_t at = s.tree.place(child_with(scope, u));
      first = std::min(first, at), last = std::max(last, at);
    }
    Place *child = scope->kids[0][first];
    if (any_below(makers, child)) {
      Place *maker =
          *std::find_if(makers.begin(), makers.end(), [&](Place *x) { return x == child || is_below(x, child); });
      if (!child->loop() || first != last)
        refuse(maker, "{} writes {} in {}, where not all of its readers stand", s.name_of(maker), s.text(buffer),
               s.name_of(child));
      scope = child;
      continue;
    }
    for (size_t at = first; at <= last; at++)
      for (Place *m : makers)
        if (m == scope->kids[0][at] || is_below(m, scope->kids[0][at]))
          refuse(m, "{} writes {} between its readers", s.name_of(m), s.text(buffer));
    return {scope, first};
  }
}

Spot spot_behind(State &s, Place *block, const std::vector<Place *> &group, Sym buffer) {
  std::vector<Place *> others;
  for (Place *n : leaves(s.tree.root()))
    if (n != block && std::find(group.begin(), group.end(), n) == group.end() &&
        (reads(s, n, buffer) || writes(s, n, buffer)))
      others.push_back(n);
  Place *scope = home_of(s, buffer);
  for (Place *u = block->up; u && u->stmt && u != scope; u = u->up)
    if (u->stmt->kind == Kind::If || u->stmt->kind == Kind::While)
      refuse(u, "block {} stands in a branch: what it does not write cannot be copied", s.text(block->block()->name));
  for (;;) {
    Place *child = child_with(scope, block);
    if (!any_below(others, child)) return {scope, s.tree.place(child) + 1};
    Place *other =
        *std::find_if(others.begin(), others.end(), [&](Place *x) { return x == child || is_below(x, child); });
    if (!child->loop())
      refuse(other, "{} and block {} use {} in {}", s.name_of(other), s.text(block->block()->name), s.text(buffer),
             s.name_of(child));
    for (const Axis &x : block->block()->axes)
      if (x.kind != AxisKind::Spatial && uses(x, child->loop()->iter.name))
        refuse(other, "{} uses {} inside {}, which reduces block {}", s.name_of(other), s.text(buffer),
               s.name_of(child), s.text(block->block()->name));
    for (Place *g : group)
      if (!is_below(g, child))
        refuse(g, "{} writes {} outside of {}, where {} uses it", s.name_of(g), s.text(buffer), s.name_of(child),
               s.name_of(other));
    scope = child;
  }
}

void expect_turns(State &s, const Spot &spot, Place *block, Sym buffer) {
  std::vector<const Expr *> at;
  for (const Access &x : accesses_to(s, block, buffer, true)) at.insert(at.end(), x.index.begin(), x.index.end());
  auto counts = [&](const Axis &x, Sym loop) {
    return uses(x, loop) && (x.kind != AxisKind::Spatial || std::any_of(at.begin(), at.end(), [&](const Expr *e) {
             return mentions(e, x.name);
           }));
  };
  auto &axes = block->block()->axes;
  for (Place *u = block->up; u && u->stmt && u != spot.scope; u = u->up)
    if (auto *l = u->loop(); l && std::none_of(axes.begin(), axes.end(), [&](auto &x) { return counts(x, l->iter.name); }))
      if (Known known(s, u); !provably_less_equal(s.b, s.b.integer(1), l->iter.extent, known))
        refuse(u, "{} may have no turn: then {} leaves nothing to copy", s.name_of(u), s.name_of(block));
}

// ---- blocks that copy

Sym axis_name(State &s, std::string_view want, const std::vector<Axis> &beside) {
  auto taken = [&](Sym v) {
    auto dims = s.original()->dims;
    return s.b.is_reserved(v) || s.type_of_buffer(v) || std::find(dims.begin(), dims.end(), v) != dims.end() ||
           std::any_of(beside.begin(), beside.end(), [&](const Axis &x) { return x.name == v; });
  };
  Sym v = s.b.sym(want);
  for (int i = 1; taken(v); i++)
    v = s.b.sym(fmt::format("{}_{}", want, i));
  return v;
}

std::vector<Axis> axes_of(const Block &k, Exprs index) {
  std::vector<Axis> out;
  for (const Axis &x : k.axes) {
    bool used = std::any_of(index.begin(), index.end(), [&](const Expr *e) { return mentions(e, x.name); });
    if (!used) continue;
    out.push_back(x);
    out.back().kind = AxisKind::Spatial;
  }
  return out;
}

// Turns of the loops outside that the guard of block `of` leaves out are left out of what is made of it, too. Inside it
// leaves out nothing but what is outside of the axes.
static void follow_guard(State &s, Place *made, Place *of, Place *scope) {
  Known inside(s, of), known(s, made);
  for (const Axis &x : of->block()->axes)
    for (Op op : {Op::Ge, Op::Lt})
      inside.bounds.assume(s.b.binary(op, x.binding, op == Op::Ge ? s.b.integer(0) : x.domain));
  if (made->block()->guard) known.bounds.assume(made->block()->guard);
  std::vector<const Expr *> all;
  conjuncts(of->block()->guard, all);
  for (const Expr *c : all) {
    Place *loop = nullptr;
    for (Place *u = of->up; u != scope; u = u->up)
      if (u->loop() && mentions(c, u->loop()->iter.name)) loop = u;
    if (loop && !prove(s.b, c, inside))
      refuse(of, "the guard {} of {} leaves out more than what is outside of its axes: what a turn of {} makes is not known",
             s.text(c), s.name_of(of), s.name_of(scope));
    if (loop || prove(s.b, c, known)) continue;
    s.tree.edit<Block>(made, [&](Block &x) { x.guard = both(s.b, x.guard, c); });
  }
}

Place *place_block(State &s, const Spot &spot, Sym name, const std::vector<Axis> &axes, Stmts body, Place *of) {
  Build &b = s.b;
  std::vector<Share> parts;
  bool whole = !spot.scope->stmt;
  for (const Axis &x : axes) {
    Share part{&x, nullptr, nullptr};
    const Axis *same = nullptr;
    if (of && !whole)
      for (const Axis &y : of->block()->axes)
        if (y.name == x.name) same = &y;
    if (same) {
      Known known(s, spot.scope, true);
      std::vector<Iter> inner;
      for (Place *u = of->up; u != spot.scope; u = u->up)
        if (u->loop()) inner.insert(inner.begin(), u->loop()->iter);
      auto span = span_of(b, x.binding, b.list(inner), known);
      bool dense = span.has_value();
      Region r = region(s, of, {name, b.one(static_cast<const Expr *>(b.name(x.name))), kNowhere, true}, spot.scope);
      if (!dense || !r[0].dense)
        refuse(of, "the part {} of axis {} that a turn of {} runs is no range", s.text(x.binding), s.text(x.name),
               s.name_of(spot.scope));
      if (!is_int(r[0].lo, 0) || !provably_equal(b, r[0].extent, x.domain, known))
        part.lo = r[0].lo, part.extent = r[0].extent;
    }
    parts.push_back(part);
  }
  Block k{};
  k.name = name, k.axes = b.list(axes), k.body = body;
  if (of) k.notes.from = of->block()->notes.from;
  Place *inner = nullptr, *outer = nest_over(s, k, parts, spot.scope, &inner);
  s.tree.insert(spot.scope, 0, spot.at, outer);
  if (of && !whole && of->block()->guard) follow_guard(s, inner, of, spot.scope);
  return inner;
}

const Stmt *copy_store(State &s, Sym dest, Exprs at, Sym src, Exprs from) {
  return s.b.make(Store{{}, false, s.b.load(dest, at), s.b.load(src, from), {}});
}

}  // namespace mlc
