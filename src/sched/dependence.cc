// Whether the turns of a loop may be taken in any order.
#include <algorithm>

#include "arith/prove.h"
#include "arith/simplify.h"
#include "ops/expr.h"
#include "sched/regions.h"

namespace mlc {

namespace {

struct Touch {
  Place *leaf;
  Access access;
};

std::vector<Touch> touches(State &s, Place *loop) {
  std::vector<Touch> out;
  for (Place *n : leaves(loop)) {
    if (!n->block()) {
      for (const Access &a : accesses_below(s, n))
        out.push_back({n, a});
      continue;
    }
    for (const Access &a : accesses(s, n))
      out.push_back({n, a});
  }
  return out;
}

// Each turn's part of this dimension is a slab of its own: c * v .. c * v + c - 1, the same for all accesses.
bool slab(State &s, Place *loop, const std::vector<Region> &regions, size_t d) {
  Build &b = s.b;
  Known known(s, loop, true);
  Sym v = loop->loop()->iter.name;
  std::optional<Affine> first;
  for (const Region &r : regions) {
    auto a = affine(b, r[d].lo, b.one(v), known);
    if (!a || (first && !provably_equal(b, a->coefs[0], first->coefs[0], known))) return false;
    if (!first) first = a;
  }
  // With the least lo as the slab's start, all ends lie within one step.
  X step{b, first->coefs[0]};
  if (!provably_less_equal(b, b.integer(1), step.e, known)) return false;
  for (const Region &r : regions)
    for (const Region &q : regions) {
      X end = X{b, r[d].lo} + X{b, r[d].extent} - X{b, q[d].lo};
      if (!provably_less_equal(b, end.e, step.e, known)) return false;
    }
  return true;
}

// The loop is one coordinate of a block's own binding, and the block writes the point of its axes: then turns write
// different elements whatever else the binding says. Covers fused loops, v // m, v % m.
bool one_to_one(State &s, Place *loop, const std::vector<Touch> &all, Sym buffer) {
  Build &b = s.b;
  Place *only = nullptr;
  Exprs index;
  for (const Touch &t : all) {
    if (t.access.buffer != buffer) continue;
    if (only && (t.leaf != only || !equal(t.access.index, index))) return false;
    only = t.leaf, index = t.access.index;
  }
  if (!only || !only->block()) return false;
  std::vector<Iter> iters;
  std::vector<const Expr *> from, extents;
  for (Place *n = only->up; n; n = n->up) {
    if (n->loop()) iters.insert(iters.begin(), n->loop()->iter);
    if (n == loop) break;
    if (n->nest) return false;
  }
  Substitution names = bindings(*only->block());
  std::vector<const Expr *> to;
  for (const Expr *e : index) {
    if (e->kind == Kind::All || e->kind == Kind::Range) return false;
    to.push_back(substitute(b, e, names));
  }
  std::vector<Sym> points;
  for (size_t i = 0; i < to.size(); i++)
    points.push_back(b.sym(fmt::format("point {}", i)));
  Known known(s, loop);
  for (const Iter &i : iters) {
    bool used = false;
    for (const Expr *e : to)
      used |= mentions(e, i.name);
    if (!used) {
      if (i.name == loop->loop()->iter.name) return false;
      continue;
    }
    from.push_back(b.name(i.name)), extents.push_back(i.extent);
  }
  return inverse(b, *b.map(b.make_list(b.list(from)), b.make_list(b.list(to))), b.list(extents), points, known.bounds)
      .has_value();
}

// All that touches the buffer does so at one point a turn, the same one, and another one in each turn:
//   for f in n * 8 { block y.init { y[f // 8, f % 8] = 0.0 }, for k { block y { y[f // 8, f % 8] += .. } } }
bool at_one_point(State &s, Place *loop, const std::vector<Touch> &all, Sym buffer) {
  Build &b = s.b;
  std::vector<const Expr *> point;
  for (const Touch &t : all) {
    if (t.access.buffer != buffer) continue;
    if (!t.leaf->block()) return false;
    Substitution names = bindings(*t.leaf->block());
    std::vector<const Expr *> at;
    for (const Expr *e : t.access.index) {
      if (e->kind == Kind::All || e->kind == Kind::Range) return false;
      at.push_back(substitute(b, e, names));
    }
    for (Place *u = t.leaf->up; u != loop; u = u->up) {
      if (u->nest) return false;
      for (const Expr *e : at)
        if (u->loop() && mentions(e, u->loop()->iter.name)) return false;
    }
    if (point.empty()) point = at;
    for (size_t d = 0; d < at.size(); d++)
      if (!equal(at[d], point[d])) return false;
  }
  if (point.empty()) return false;
  std::vector<Sym> names;
  for (size_t i = 0; i < point.size(); i++)
    names.push_back(b.sym(fmt::format("point {}", i)));
  Known known(s, loop);
  const Iter &iter = loop->loop()->iter;
  const Expr *v = b.name(iter.name);
  return inverse(b, *b.map(b.make_list(b.one(v)), b.make_list(b.list(point))), b.one(iter.extent), names, known.bounds)
      .has_value();
}

bool is_private(State &s, Place *loop, Sym buffer) {
  Place *a = s.alloc_of(buffer);
  return a && is_below(a, loop);
}

// All that a turn reads of the buffer it has written before, and nobody else looks at it.
bool could_be_private(State &s, Place *loop, Sym buffer) {
  if (s.is_result(buffer)) return false;
  Place *alloc = s.alloc_of(buffer);
  if (!alloc || to<Alloc>(alloc->stmt).base) return false;
  for (Place *n : leaves(s.tree.root()))
    if ((!is_below(n, loop) || !n->block()) && (reads(s, n, buffer) || writes(s, n, buffer))) return false;
  Known known(s, loop, true);
  std::vector<Region> written;
  auto covered = [&](const Region &r) {
    return std::any_of(written.begin(), written.end(), [&](const Region &w) { return within(s, r, w, known); });
  };
  for (Place *n : leaf_blocks(loop)) {  // its reads come before its writes, unless an initialiser begins
    std::vector<Region> now;
    for (const Access &a : accesses(s, n)) {
      if (a.buffer != buffer) continue;
      Region r = region(s, n, a, loop);
      if (a.write) now.push_back(r);
      else if (n->block()->inits.empty() && !covered(r)) return false;
    }
    written.insert(written.end(), now.begin(), now.end());
  }
  return !written.empty();
}

}  // namespace

std::string dependence(State &s, Place *loop, bool bound) {
  auto all = touches(s, loop);
  std::vector<Sym> written;
  for (const Touch &t : all)
    if (t.access.write && std::find(written.begin(), written.end(), t.access.buffer) == written.end())
      written.push_back(t.access.buffer);
  for (Sym buffer : written) {
    const Type *type = s.type_of_buffer(buffer);
    if (bound && type && s.text(type->scope) == "shared") continue;
    if (is_private(s, loop, buffer)) continue;
    std::vector<Region> regions;
    bool blocks = true;
    for (const Touch &t : all)
      if (t.access.buffer == buffer) {
        blocks &= t.leaf->block() != nullptr;
        if (blocks) regions.push_back(region(s, t.leaf, t.access, loop));
      }
    bool apart = false;
    for (size_t d = 0; blocks && !apart && !regions.empty() && d < regions[0].size(); d++)
      apart = slab(s, loop, regions, d);
    if (apart || (blocks && (one_to_one(s, loop, all, buffer) || at_one_point(s, loop, all, buffer)))) continue;
    bool own = could_be_private(s, loop, buffer);
    if (own && (!bound || (type && type->scope))) continue;  // what a thread has of its own is in no global memory
    if (own) return fmt::format("each turn of {} would need a {} of its own, which is in no global memory: set its scope to local",
                                s.text(loop->loop()->iter.name), s.text(buffer));
    return fmt::format("turns of {} write or read the same elements of {}", s.text(loop->loop()->iter.name),
                       s.text(buffer));
  }
  return {};
}

void make_private(State &s, Place *loop, bool bound) {
  std::vector<Sym> written = buffers_written(s, loop);
  for (Sym buffer : written) {
    if (s.is_result(buffer) || is_private(s, loop, buffer)) continue;
    const Type *type = s.type_of_buffer(buffer);
    if (bound && type && s.text(type->scope) == "shared") continue;
    auto all = touches(s, loop);
    std::vector<Region> regions;
    for (const Touch &t : all)
      if (t.access.buffer == buffer && t.leaf->block()) regions.push_back(region(s, t.leaf, t.access, loop));
    bool apart = false;
    for (size_t d = 0; !apart && !regions.empty() && d < regions[0].size(); d++)
      apart = slab(s, loop, regions, d);
    if (apart || one_to_one(s, loop, all, buffer) || at_one_point(s, loop, all, buffer) ||
        !could_be_private(s, loop, buffer))
      continue;
    Place *alloc = s.alloc_of(buffer);
    s.tree.remove(alloc);
    s.tree.insert(loop, 0, 0, alloc);
  }
}

}  // namespace mlc
