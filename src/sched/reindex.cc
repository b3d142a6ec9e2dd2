// reindex, reindex_cache_read, reindex_cache_write: a copy whose subscripts are what the block counts by.
#include <algorithm>

#include "arith/affine.h"
#include "arith/prove.h"
#include "arith/simplify.h"
#include "ops/expr.h"
#include "sched/combine.h"
#include "sched/copy.h"
#include "sched/primitives.h"

namespace mlc {

namespace {

// The one access of a block to a buffer, and where its element stands in the copy.
struct Reindexed {
  Exprs index;             // of the buffer, in axes of the block
  std::vector<Axis> axes;  // that it mentions, as spatial ones
  Exprs at;                // of the copy, in the same
  Inverse inverse;         // in `names`
  std::vector<Sym> names;  // axes over the copy
};

Reindexed reindexed(State &s, Args &a, Place *n, Sym buffer, bool write, const Map *map, uint32_t map_at) {
  Build &b = s.b;
  auto &k = *n->block();
  std::string block = s.text(k.name), name = s.text(buffer);
  if (n->nest) refuse(n, "block {} holds blocks; name one of them", block);
  std::vector<Access> all;
  for (bool w : {true, false})
    for (const Access &x : accesses_to(s, n, buffer, w))
      if (all.empty() || !equal(x.index, all[0].index)) all.push_back(x);
  if (all.size() > 1)
    throw Refused{
        n->stmt->at, fmt::format("block {} uses {} at several places", block, name),
        fmt::format("{}({}, {}, ..) keeps its subscripts", write ? "cache_write" : "cache_read", block, name)};
  Reindexed r{all[0].index, axes_of(k, all[0].index), {}, {}, {}};
  for (const Expr *e : r.index)
    if (e->kind == Kind::All || e->kind == Kind::Range) refuse(n, "block {} uses {} as a region", block, name);
  // The map in names of axes.
  std::vector<const Expr *> from, to, domains;
  for (const Axis &x : r.axes)
    from.push_back(b.name(x.name)), domains.push_back(x.domain);
  if (map) {
    Substitution axis;
    auto is_axis = [&](const Expr *e) {
      auto *v = as<Name>(e);
      return v && std::any_of(k.axes.begin(), k.axes.end(), [&](const Axis &x) { return x.name == v->name; });
    };
    auto left = map->from->items;
    bool by_name = std::all_of(left.begin(), left.end(), is_axis);
    if (!by_name && left.size() != k.axes.size())
      bad_step(map_at, "the map takes {} indices: expected the axes of block {}, which has {}", left.size(), block,
               k.axes.size());
    for (size_t i = 0; i < left.size(); i++) {
      if (left[i]->kind != Kind::Name) bad_step(map_at, "the left side of a map is a list of names");
      axis[mlc::to<Name>(left[i]).name] = by_name ? left[i] : b.name(k.axes[i].name);
    }
    for (const Expr *e : map->to->items)
      to.push_back(substitute(b, e, axis));
    for (const Axis &x : k.axes)
      for (const Expr *e : to)
        if (mentions(e, x.name) &&
            std::none_of(r.axes.begin(), r.axes.end(), [&](auto &y) { return y.name == x.name; }))
          bad_step(map_at, "{} of block {} does not depend on axis {}", name, block, s.text(x.name));
  } else {
    to = from;
  }
  r.at = b.list(to);
  // Axes over the copy: an axis that stands there alone keeps its name.
  auto used = [&](Sym v) {
    return std::find(r.names.begin(), r.names.end(), v) != r.names.end() ||
           std::any_of(to.begin(), to.end(), [&](const Expr *e) { return e->kind == Kind::Name && mentions(e, v); });
  };
  for (const Expr *e : to) {
    if (auto *v = as<Name>(e); v && std::find(r.names.begin(), r.names.end(), v->name) == r.names.end()) {
      r.names.push_back(v->name);
      continue;
    }
    char letter = 'i';
    while (letter < 'z' && used(b.sym(std::string(1, letter))))
      letter++;
    r.names.push_back(axis_name(s, std::string(1, letter), {}));
  }
  Known known(s, s.tree.root());
  auto inv = inverse(b, *b.map(b.make_list(b.list(from)), b.make_list(r.at)), b.list(domains), r.names, known);
  if (!inv)
    bad_step(map ? map_at : a.at(0), "what block {} uses of {} cannot be told from [{}]", block, name,
             s.text(b.make_list(r.at)));
  r.inverse = *inv;
  // The copy makes every access, whatever the block asks before.
  for (const Axis &x : r.axes)
    known.bounds.range(x.name, x.domain);
  const Type *t = s.type_of_buffer(buffer);
  for (size_t d = 0; d < r.index.size(); d++)
    if (!provably_inside(b, r.index[d], t->dims[d], known))
      throw Refused{
          n->stmt->at,
          fmt::format("block {} uses {} at {} in dimension {}, which is not known to be inside for all of its "
                      "turns",
                      block, name, s.text(r.index[d]), d),
          fmt::format("{}({}, {}, ..) copies the buffer itself", write ? "cache_write" : "cache_read", block, name)};
  return r;
}

// The same element of the copy, in the axes of the block that begins what the reduction adds up.
Exprs in_start(State &s, Place *start, Place *n, Sym buffer, const Reindexed &r) {
  Substitution names;
  for (const Access &x : accesses_to(s, start, buffer, true))
    for (size_t d = 0; d < x.index.size(); d++)
      if (auto *v = as<Name>(r.index[d])) names[v->name] = x.index[d];
  for (const Axis &x : r.axes)
    if (!names.count(x.name))
      refuse(start, "axis {} of {} is no subscript of {}, which {} begins", s.text(x.name), s.name_of(n), s.text(buffer),
             s.name_of(start));
  return substitute(s.b, r.at, names);
}

// block k { .. a[i + r] .. }  ->  block a.re { a.re[i, r] = a[i + r] }, block k { .. a.re[i, r] .. }
void copy_reindexed(State &s, Args &a, Sym scope, const Map *map, bool write, std::string_view otherwise) {
  a.expect_results(1, 2);
  Build &b = s.b;
  Place *n = a.block(0);
  Sym buffer = a.buffer(1);
  std::string block = s.text(n->block()->name), name = s.text(buffer);
  if (!(write ? writes(s, n, buffer) : reads(s, n, buffer)))
    refuse(n, "block {} does not {} {}", block, write ? "write" : "read", name);
  if (!write && writes(s, n, buffer)) refuse(n, "block {} writes {} too", block, name);
  Reindexed r = reindexed(s, a, n, buffer, write, map, map ? map->at : a.at(0));
  if (write) expect_stores(s, n, buffer);
  Place *start = write ? start_of(s, n) : nullptr;
  if (write && reads(s, n, buffer) && n->block()->inits.empty())
    for (Place *x : leaves(s.tree.root())) {
      if (x == n) break;
      if (x != start && writes(s, x, buffer)) refuse(n, "block {} adds to what {} left in {}", block, s.name_of(x), name);
    }
  std::string called = a.result(0, otherwise);
  const Type *old = s.type_of_buffer(buffer);
  const Type *type = b.type({old->elem, true, scope, old->device, old->device_index, b.list(r.inverse.image), {}});
  Sym copy = alloc_beside(s, buffer, a.result(1, called), type);
  Spot spot = write ? spot_behind(s, n, start ? std::vector{start, n} : std::vector{n}, buffer) : spot_before(s, {n}, buffer);
  if (write) expect_turns(s, spot, start ? start : n, buffer);
  // Over the copy where every element of it is used; else over what the block uses.
  std::vector<Axis> axes = r.axes;
  Exprs in_copy = r.at, in_buffer = r.index;
  if (r.inverse.onto && !spot.scope->stmt) {
    axes.clear();
    Substitution names;
    Known known(s, s.tree.root());
    std::vector<const Expr *> at;
    for (size_t d = 0; d < r.names.size(); d++) {
      axes.push_back({AxisKind::Spatial, r.names[d], kNowhere, r.inverse.image[d], b.name(r.names[d])});
      known.bounds.range(r.names[d], r.inverse.image[d]);
      at.push_back(b.name(r.names[d]));
    }
    for (size_t i = 0; i < r.axes.size(); i++)
      names[r.axes[i].name] = r.inverse.map->to->items[i];
    in_copy = b.list(at);
    in_buffer = edit_all(b, r.index, [&](const Expr *&e) { e = simplify(b, substitute(b, e, names), known); });
  }
  const Stmt *store =
      write ? copy_store(s, buffer, in_buffer, copy, in_copy) : copy_store(s, copy, in_copy, buffer, in_buffer);
  Place *made = place_block(s, spot, s.block_name(called), axes, b.stmts({store}), n);
  auto go_through = [&](Place *x, Exprs at) {
    x->stmt = rewrite_exprs(b, x->stmt, [&](const Expr *e) -> const Expr * {
      auto *l = as<Load>(e);
      return l && !l->global && l->buffer == buffer ? b.load(copy, at, l->at) : e;
    });
  };
  if (start) go_through(start, in_start(s, start, n, buffer, r));
  go_through(n, r.at);
  a.set_block(0, made);
}

}  // namespace

void reindex(State &s, Args &a) {
  Sym buffer = a.buffer(1);
  copy_reindexed(s, a, s.type_of_buffer(buffer)->scope, nullptr, writes(s, a.block(0), buffer),
                 s.text(buffer) + ".reindexed");
}
void reindex_cache_read(State &s, Args &a) {
  Sym scope = scope_argument(s, a, 2);
  copy_reindexed(s, a, scope, a.map(3), false, s.text(a.buffer(1)) + "." + scope_text(s, scope));
}
void reindex_cache_write(State &s, Args &a) {
  Sym scope = scope_argument(s, a, 2);
  copy_reindexed(s, a, scope, a.map(3), true, s.text(a.buffer(1)) + "." + scope_text(s, scope));
}

}  // namespace mlc
