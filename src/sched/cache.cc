// cache_read, cache_write, cache_inplace: what a block reads or writes goes through a buffer of another scope.
#include <algorithm>

#include "arith/affine.h"
#include "arith/prove.h"
#include "arith/simplify.h"
#include "ops/expr.h"
#include "sched/copy.h"
#include "sched/nest.h"
#include "sched/primitives.h"

namespace mlc {

namespace {

// Subscripts with a value for each region: an axis more.
//   c[i, 0 +: 4]  ->  c[i, j], j in 4
Exprs pointwise(State &s, Sym buffer, Exprs index, std::vector<Axis> &axes) {
  Build &b = s.b;
  std::vector<const Expr *> out;
  const Type *t = s.type_of_buffer(buffer);
  for (size_t d = 0; d < index.size(); d++) {
    const Expr *e = index[d];
    if (e->kind != Kind::All && e->kind != Kind::Range) {
      out.push_back(e);
      continue;
    }
    auto *r = as<Range>(e);
    Sym v = axis_name(s, std::string(1, char('i' + d % 8)), axes);
    axes.push_back({AxisKind::Spatial, v, kNowhere, r ? r->extent : t->dims[d], b.name(v)});
    out.push_back(r ? simplify(b, (X{b, r->lo} + X{b, b.name(v)}).e) : b.name(v));
  }
  return b.list(out);
}

// An axis for each dimension of a buffer, called as a block calls it where it says a[i, k].
std::vector<Axis> axes_over(State &s, const Type *t, const std::vector<Access> &as_in) {
  std::vector<Axis> axes;
  for (size_t d = 0; d < t->rank(); d++) {
    std::string want(1, char('i' + d % 8));
    for (const Access &x : as_in)
      if (auto *n = as<Name>(x.index[d]);
          n && std::none_of(axes.begin(), axes.end(), [&](auto &y) { return y.name == n->name; })) {
        want = s.text(n->name);
        break;
      }
    Sym v = axis_name(s, want, axes);
    axes.push_back({AxisKind::Spatial, v, kNowhere, t->dims[d], s.b.name(v)});
  }
  return axes;
}
Exprs names_of(Build &b, const std::vector<Axis> &axes) {
  std::vector<const Expr *> out;
  for (const Axis &x : axes)
    out.push_back(b.name(x.name));
  return b.list(out);
}

// A block writes every element of a buffer: its subscripts are one to one on its axes, and reach all of them.
//   t[i // 16, j, i % 16] = ..  for i in 64, j in 8;  t: f32[4, 8, 16]
bool writes_all(State &s, Place *n, const Access &w) {
  auto &k = *n->block();
  auto *store = k.body.size() == 1 ? as<Store>(k.body[0]) : nullptr;
  if (n->nest || k.guard || !store || store->target->buffer != w.buffer || has_reduce(k) || has_scan(k)) return false;
  std::vector<const Expr *> from, domains;
  for (const Axis &x : k.axes)
    from.push_back(s.b.name(x.name)), domains.push_back(x.domain);
  std::vector<Sym> names;
  for (size_t d = 0; d < store->target->index.size(); d++)
    names.push_back(s.b.sym(fmt::format("subscript {}", d)));
  Known known(s, s.tree.root());
  const Map *map = s.b.map(s.b.make_list(s.b.list(from)), s.b.make_list(store->target->index));
  auto inv = inverse(s.b, *map, s.b.list(domains), names, known);
  return inv && inv->onto && provably_equal(s.b, s.b.list(inv->image), s.type_of_buffer(w.buffer)->dims, known);
}

// All that is copied was written: the copy reads no element that the kernel never makes.
void expect_written(State &s, const Spot &spot, Sym buffer, const Region &all, const std::vector<Place *> &users,
                    size_t reads) {
  Place *scope = spot.scope->stmt ? spot.scope : nullptr;
  bool guarded = std::any_of(users.begin(), users.end(), [](Place *u) { return u->block()->guard; });
  bool dense = std::all_of(all.begin(), all.end(), [](const Extent &e) { return e.dense; });
  if (reads == 1 && dense && !guarded) return;
  Known known(s, spot.scope, scope != nullptr);
  const Type *t = s.type_of_buffer(buffer);
  for (Place *m : writers(s, buffer))
    for (const Access &w : accesses_to(s, m, buffer, true)) {
      Region r = region(s, m, w, scope && is_below(m, scope) ? scope : nullptr);
      bool covers = writes_always(m, buffer);
      if (!(scope && is_below(m, scope)) && writes_all(s, m, w)) return;
      for (size_t d = 0; d < r.size(); d++) {
        X lo{s.b, r[d].lo}, end = lo + X{s.b, r[d].extent}, from{s.b, all[d].lo}, to = from + X{s.b, all[d].extent};
        covers &= r[d].dense && provably_less_equal(s.b, lo.e, from.e, known) &&
                  (provably_less_equal(s.b, to.e, end.e, known) || provably_less_equal(s.b, t->dims[d], end.e, known));
      }
      if (covers) return;
    }
  refuse(users[0], "the copy would read elements of {} that are not known to have been written", s.text(buffer));
}

// block c { .. a[i, k] .. }  ->  block a.shared { a.shared[i, k] = a[i, k] }, block c { .. a.shared[i, k] .. }
Place *read_through(State &s, const std::vector<Place *> &users, Sym buffer, Sym copy, Sym block) {
  Build &b = s.b;
  Spot spot = spot_before(s, users, buffer);
  std::vector<Access> all;
  std::optional<Region> part;
  Known known(s, spot.scope, spot.scope->stmt != nullptr);
  for (Place *u : users)
    for (const Access &x : accesses_to(s, u, buffer, false)) {
      all.push_back(x);
      Region r = region(s, u, x, spot.scope->stmt ? spot.scope : nullptr);
      part = part ? hull(s, *part, r, known) : r;
    }
  const Type *t = s.type_of_buffer(buffer);
  bool whole = !s.alloc_of(buffer) || !part;
  if (!whole) {
    expect_written(s, spot, buffer, *part, users, all.size());
    spot = spot_before(s, users, buffer);  // the computes that write it may have become loops by now
  }
  std::vector<Axis> axes = axes_over(s, t, all);
  std::vector<Share> parts;
  for (size_t d = 0; d < axes.size(); d++) {
    Share p{&axes[d], nullptr, nullptr};
    if (!whole && !(is_int((*part)[d].lo, 0) && provably_less_equal(b, t->dims[d], (*part)[d].extent, known)))
      p.lo = (*part)[d].lo, p.extent = (*part)[d].extent;
    parts.push_back(p);
  }
  Exprs index = names_of(b, axes);
  Block k{};
  k.name = block, k.axes = b.list(axes), k.body = b.stmts({copy_store(s, copy, index, buffer, index)});
  k.notes.from = users[0]->block()->notes.from;
  Place *inner = nullptr, *outer = nest_over(s, k, parts, spot.scope, &inner);
  for (Place *u : users)
    s.replace_buffer(u, buffer, copy, true, false);
  s.tree.insert(spot.scope, 0, spot.at, outer);
  return inner;
}

// What writes the buffer together with `block`: it adds to what they left.
std::vector<Place *> group_of(State &s, Place *block, Sym buffer) {
  if (accesses_to(s, block, buffer, false).empty() || !block->block()->inits.empty()) return {block};
  std::vector<Place *> out;
  for (Place *n : leaves(s.tree.root())) {
    if (n == block) break;
    if (!writes(s, n, buffer)) continue;
    if (!n->block()) refuse(n, "{} writes {} and is no block", s.name_of(n), s.text(buffer));
    out.push_back(n);
  }
  out.push_back(block);
  return out;
}

bool is_inout(State &s, Sym buffer) {
  for (const Param &p : s.original()->params)
    if (p.def.name == buffer) return p.mode == Mode::Inout;
  return false;
}

void expect_written_by(State &s, Place *n, Sym buffer) {
  if (n->nest) refuse(n, "block {} holds blocks; name one of them", s.text(n->block()->name));
  if (!accesses_to(s, n, buffer, true).empty()) return;
  std::string block = s.text(n->block()->name);
  throw Refused{n->stmt->at, fmt::format("block {} does not write {}", block, s.text(buffer)),
                reads(s, n, buffer) ? fmt::format("cache_read({}, {}, ..)", block, s.text(buffer)) : ""};
}

// block c { c[i, j] = .. }  ->  block c { c.local[i, j] = .. }, block c.store { c[i, j] = c.local[i, j] }
Place *write_through(State &s, Place *n, const std::vector<Place *> &group, Sym buffer, Sym copy, Sym block) {
  Build &b = s.b;
  Spot spot = spot_behind(s, n, group, buffer);
  std::vector<Access> all = accesses_to(s, n, buffer, true);
  Place *scope = spot.scope->stmt ? spot.scope : nullptr;
  Known known(s, spot.scope, scope != nullptr);
  // What others of the group write is copied by the same block.
  Region own = region(s, n, all[0], scope);
  for (Place *g : group)
    expect_stores(s, g, buffer);
  for (Place *g : group)
    for (const Access &x : accesses_to(s, g, buffer, true)) {
      Region r = region(s, g, x, scope);
      for (size_t d = 0; g != n && d < r.size(); d++)
        if (!provably_equal(b, r[d].lo, own[d].lo, known) || !provably_equal(b, r[d].extent, own[d].extent, known))
          refuse(g, "{} writes another part of {} than block {}, which adds to it", s.name_of(g), s.text(buffer),
                 s.text(n->block()->name));
    }
  std::vector<const Expr *> mentioned;
  for (const Access &x : all) {
    mentioned.insert(mentioned.end(), x.index.begin(), x.index.end());
    for (const Expr *e : x.index)
      if (auto *r = as<Range>(e))
        for (const Axis &y : n->block()->axes)
          if (mentions(r->extent, y.name))
            refuse(n, "the region {} of {} has no fixed size", s.text(e), s.text(buffer));
  }
  std::vector<Axis> axes = axes_of(*n->block(), b.list(mentioned));
  expect_turns(s, spot, group[0], buffer);
  std::vector<const Stmt *> body;
  for (const Access &x : all) {
    Exprs at = pointwise(s, buffer, x.index, axes);
    body.push_back(copy_store(s, buffer, at, copy, at));
  }
  Place *made = place_block(s, spot, block, axes, b.list(body), n);
  for (Place *g : group)
    s.replace_buffer(g, buffer, copy, true, true);
  return made;
}

}  // namespace

void cache_read(State &s, Args &a) {
  a.expect_results(1, 2);
  Place *n = a.block(0);
  Sym buffer = a.buffer(1), scope = scope_argument(s, a, 2);
  std::string block = s.text(n->block()->name);
  if (n->nest) refuse(n, "block {} holds blocks; name one of them", block);
  if (!reads(s, n, buffer))
    throw Refused{n->stmt->at, fmt::format("block {} does not read {}", block, s.text(buffer)),
                  writes(s, n, buffer) ? fmt::format("cache_write({}, {}, ..)", block, s.text(buffer)) : ""};
  std::vector<Place *> users = a.attr_blocks("consumers");
  if (a.attr("consumers"))
    for (Place *u : users)
      if (u->nest || !reads(s, u, buffer)) refuse(u, "{} does not read {}", s.name_of(u), s.text(buffer));
  if (users.empty()) users = readers(s, buffer);
  // A block that adds to the buffer goes on with it, unless it was named.
  if (!a.attr("consumers")) std::erase_if(users, [&](Place *u) { return u != n && writes(s, u, buffer); });
  for (Place *u : users)
    if (writes(s, u, buffer))
      throw Refused{
          u->stmt->at, fmt::format("{} writes {} too", s.name_of(u), s.text(buffer)),
          fmt::format("cache_write({}, {}, {})", s.text(u->block()->name), s.text(buffer), scope_text(s, scope))};
  std::string name = a.result(0, s.text(buffer) + "." + scope_text(s, scope));
  Sym copy = alloc_beside(s, buffer, a.result(1, name), type_in(s, s.type_of_buffer(buffer), scope));
  a.set_block(0, read_through(s, users, buffer, copy, s.block_name(name)));
}

void cache_write(State &s, Args &a) {
  a.expect_results(1, 2);
  Place *n = a.block(0);
  Sym buffer = a.buffer(1), scope = scope_argument(s, a, 2);
  expect_written_by(s, n, buffer);
  std::string block = s.text(n->block()->name), name = s.text(buffer) + "." + scope_text(s, scope);
  std::vector<Place *> group = group_of(s, n, buffer);
  if (is_inout(s, buffer) && group[0]->block()->inits.empty() && reads(s, group[0], buffer))
    throw Refused{n->stmt->at, fmt::format("block {} adds to what the caller gave in {}", block, s.text(buffer)),
                  fmt::format("cache_inplace({}, {}, {})", block, s.text(buffer), scope_text(s, scope))};
  Sym copy = alloc_beside(s, buffer, a.result(1, name), type_in(s, s.type_of_buffer(buffer), scope));
  a.set_block(0, write_through(s, n, group, buffer, copy, s.block_name(a.result(0, name))));
}

// block u { s[i] = s[i] + x[i] }  ->  block s.local { s.local[i] = s[i] }, block u { s.local[i] = s.local[i] + x[i] },
//                                     block s.back { s[i] = s.local[i] }
void cache_inplace(State &s, Args &a) {
  a.expect_results(1, 2);
  Place *n = a.block(0);
  Sym buffer = a.buffer(1), scope = scope_argument(s, a, 2);
  expect_written_by(s, n, buffer);
  std::string block = s.text(n->block()->name);
  if (!reads(s, n, buffer) || !n->block()->inits.empty())
    throw Refused{n->stmt->at, fmt::format("block {} does not change what it finds in {}", block, s.text(buffer)),
                  fmt::format("cache_write({}, {}, {})", block, s.text(buffer), scope_text(s, scope))};
  if (has_scan(*n->block()))
    refuse(n, "block {} may read only what its earlier turns wrote: there may be nothing to copy in", block);
  std::string name = a.result(0, s.text(buffer) + "." + scope_text(s, scope));
  std::vector<Access> touched = accesses_to(s, n, buffer, false), written = accesses_to(s, n, buffer, true);
  touched.insert(touched.end(), written.begin(), written.end());
  Sym copy = alloc_beside(s, buffer, name, type_in(s, s.type_of_buffer(buffer), scope));
  Place *out = write_through(s, n, {n}, buffer, copy, s.block_name(a.result(1, s.text(buffer) + ".back")));
  // The way in stands where the way out does, in front of the same child, and covers the whole buffer or, inside of a
  // loop, what the block touches.
  Place *scope_of = out;
  while (scope_of->up && !is_below(n, scope_of->up))
    scope_of = scope_of->up;
  Place *home = scope_of->up;
  Spot spot{home, s.tree.place(child_with(home, n))};
  const Type *t = s.type_of_buffer(buffer);
  if (home->stmt) refuse(n, "block {} shares {} with others in {}", block, s.text(buffer), s.name_of(home));
  std::vector<Axis> axes = axes_over(s, t, touched);
  Exprs index = names_of(s.b, axes);
  Place *in =
      place_block(s, spot, s.block_name(name), axes, s.b.stmts({copy_store(s, copy, index, buffer, index)}), nullptr);
  a.set_block(0, in), a.set_block(1, out);
}

}  // namespace mlc
