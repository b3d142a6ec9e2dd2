// blockize: what stands in a loop, or some blocks that stand together in one, becomes one turn of a block around it.
#include <algorithm>

#include "arith/prove.h"
#include "arith/simplify.h"
#include "ops/expr.h"
#include "sched/nest.h"
#include "sched/primitives.h"
#include "sched/regions.h"

namespace mlc {

namespace {

// Neighbours in one body, and the blocks in them, in order: what the new block is to hold.
struct Run {
  Place *up;
  std::vector<Place *> nodes, blocks;
};

// Between the blocks and the body there are only loops, and in the loops only the blocks.
Run checked(State &s, Run r) {
  auto among = [&](const Place *x) { return std::find(r.blocks.begin(), r.blocks.end(), x) != r.blocks.end(); };
  for (Place *n : r.blocks)
    for (Place *u = n->up; u != r.up; u = u->up)
      if (!u->loop()) refuse(u, "{} stands between {} and {}", s.name_of(u), s.name_of(r.up), s.name_of(n));
  std::vector<Place *> found;
  std::function<void(Place *, Place *)> look = [&](Place *x, Place *top) {
    if (among(x)) return found.push_back(x);
    if (!x->loop()) refuse(x, "{} holds more than {}", s.name_of(top), s.name_of(r.blocks[0]));
    for (Place *k : x->kids[0])
      look(k, top);
  };
  for (Place *x : r.nodes)
    look(x, x);
  r.blocks = found;  // as the text has them
  return r;
}

Run run_of_loop(State &s, Place *loop) {
  Run r{loop->up, {loop}, leaf_blocks(loop)};
  if (r.blocks.empty()) refuse(loop, "{} holds no block", s.name_of(loop));
  return checked(s, r);
}

Run run_of_blocks(State &s, Args &a) {
  Run r{nullptr, {}, {}};
  for (size_t i = 0; i < a.count(); i++) {
    Place *n = a.block(i);
    for (Place *o : r.blocks) {
      if (o == n) bad_step(a.at(i), "{} comes twice", s.name_of(n));
      if (is_below(n, o) || is_below(o, n))
        bad_step(a.at(i), "{} and {} stand one inside the other", s.name_of(o), s.name_of(n));
    }
    r.blocks.push_back(n);
  }
  r.up = r.blocks[0]->up;
  auto holds_all = [&](Place *u) {
    return std::all_of(r.blocks.begin(), r.blocks.end(), [&](Place *n) { return is_below(n, u); });
  };
  while (!holds_all(r.up))
    r.up = r.up->up;
  size_t part = child_with(r.up, r.blocks[0])->part, first = SIZE_MAX, last = 0;
  for (Place *n : r.blocks) {
    Place *c = child_with(r.up, n);
    if (c->part != part) refuse(c, "{} and {} stand in two branches", s.name_of(r.blocks[0]), s.name_of(n));
    first = std::min(first, s.tree.place(c)), last = std::max(last, s.tree.place(c));
  }
  for (size_t i = first; i <= last; i++) {
    Place *x = r.up->kids[part][i];
    if (std::none_of(r.blocks.begin(), r.blocks.end(), [&](Place *n) { return s.tree.contains(x, n); })) {
      std::vector<Place *> inside = leaf_blocks(x);
      refuse(x, "{} stands between the blocks", s.name_of(inside.empty() ? x : inside[0]));
    }
    r.nodes.push_back(x);
  }
  return checked(s, r);
}

// One block's share of a turn: where the tile stands, axis by axis, and what of the tile the loops inside reach.
struct Tile {
  Place *block;
  std::vector<Iter> inner;  // the loops that become the new block's own
  std::vector<Axis> outer;
  std::vector<const Expr *> sizes, rests;  // binding = tile * size + rest
  bool mentions_inner(const Expr *e) const {
    return std::any_of(inner.begin(), inner.end(), [&](const Iter &i) { return mentions(e, i.name); });
  }
};

Tile tile_of(State &s, Place *n, Place *up) {
  Build &b = s.b;
  const Block &k = *n->block();
  Tile t{n, {}, {}, {}, {}};
  std::vector<Place *> around = loops_around(n);
  for (Place *l : around)
    if (is_below(l, up)) {
      for (Place *o : around)
        if (mentions(l->loop()->iter.extent, o->loop()->iter.name))
          refuse(l, "the extent of {} depends on {}", s.name_of(l), s.name_of(o));
      t.inner.push_back(l->loop()->iter);
    }
  Known known(s, n);
  Substitution zeros;
  for (const Iter &i : t.inner)
    zeros[i.name] = b.integer(0);
  for (const Axis &x : k.axes) {
    const Expr *base = simplify(b, substitute(b, x.binding, zeros), known);
    const Expr *rest = simplify(b, (X{b, x.binding} - X{b, base}).e, known);
    auto span = span_of(b, rest, b.list(t.inner), known);
    bool plain = span && is_int(span->lo, 0) && !t.mentions_inner(span->extent);
    X size{b, plain ? span->extent : nullptr};
    if (!plain || !provably_equal(b, (X{b, base} % size).e, b.integer(0), known) ||
        !provably_equal(b, (X{b, x.domain} % size).e, b.integer(0), known))
      refuse(n, "axis {} in {} = {} of block {} is no whole number of tiles of {}", s.text(x.name), s.text(x.domain),
             s.text(x.binding), s.text(k.name), plain ? s.text(size.e) : "one size");
    t.outer.push_back({x.kind, x.name, kNowhere, simplify(b, floordiv(X{b, x.domain}, size).e, known),
                       simplify(b, floordiv(X{b, base}, size).e, known)});
    t.sizes.push_back(size.e), t.rests.push_back(rest);
  }
  return t;
}

// The axes of the new block: those of all tiles, one for all that stand at the same place. A tile's own name of each
// goes into `name_of`; one turn alone needs none.
//   i = i0 of block t, i = i0 and k = 0 in 1 of block y  ->  spatial i = i0, reduce k in 1 = 0
std::vector<Axis> united(State &s, const std::vector<Tile> &tiles, Place *up, bool units,
                         std::map<std::pair<const Tile *, Sym>, Sym> &name_of) {
  Build &b = s.b;
  Known known(s, tiles[0].block);
  std::unordered_set<Sym> moving;
  for (const Tile &t : tiles)
    for (const Axis &x : t.outer)
      if (!is_int(x.domain, 1)) moving.insert(x.name);
  std::unordered_set<Sym> used;
  collect_all_names(s.func(), used);
  std::vector<Axis> out;
  auto named = [&](Sym name) {
    return std::find_if(out.begin(), out.end(), [&](const Axis &y) { return y.name == name; });
  };
  for (const Tile &t : tiles)
    for (const Axis &x : t.outer) {
      bool unit = is_int(x.domain, 1);
      if (unit && (!units || moving.count(x.name))) continue;
      auto same = unit ? named(x.name) : std::find_if(out.begin(), out.end(), [&](const Axis &y) {
        return !is_int(y.domain, 1) && provably_equal(b, x.binding, y.binding, known);
      });
      if (same != out.end()) {
        if (!provably_equal(b, x.domain, same->domain, known))
          refuse(t.block, "axis {} of {} has {} tiles where the others have {}", s.text(x.name), s.name_of(t.block),
                 s.text(x.domain), s.text(same->domain));
        same->kind = std::max(same->kind, x.kind);
        name_of[{&t, x.name}] = same->name;
        continue;
      }
      for (Place *u = up; !unit && u && u->stmt; u = u->up)
        for (const Axis &y : out)
          if (u->loop() && mentions(x.binding, u->loop()->iter.name) && mentions(y.binding, u->loop()->iter.name))
            refuse(t.block, "axis {} of {} stands at tile {} where another block stands at {}", s.text(x.name),
                   s.name_of(t.block), s.text(x.binding), s.text(y.binding));
      Axis y = x;
      for (int i = 1; named(y.name) != out.end() || (i > 1 && used.count(y.name)); i++)
        y.name = b.sym(fmt::format("{}_{}", s.text(x.name), i));
      name_of[{&t, x.name}] = y.name;
      out.push_back(y);
    }
  return out;
}

// Turns of the new block may come in any order: what a block reads of another one, the same turn has made; what two
// blocks write or change is the same for both.
void expect_apart(State &s, const std::vector<Tile> &tiles, Place *up) {
  while (up->stmt && !up->loop() && !up->block())
    up = up->up;
  Known known(s, up, up->stmt != nullptr);
  struct Touch {
    const Tile *tile;
    Place *leaf;
    Access access;
    Region region;
  };
  std::vector<Touch> before;
  auto places = [&](const Tile &t) {
    std::vector<const Expr *> out;
    for (const Axis &x : t.outer)
      if (!is_int(x.domain, 1)) out.push_back(x.binding);
    return out;
  };
  auto same_places = [&](const Tile &t, const Tile &u) {
    std::vector<const Expr *> x = places(t), y = places(u);
    return x.size() == y.size() && std::all_of(x.begin(), x.end(), [&](const Expr *e) {
             return std::any_of(y.begin(), y.end(), [&](const Expr *f) { return provably_equal(s.b, e, f, known); });
           });
  };
  for (const Tile &t : tiles)
    for (Place *leaf : leaf_blocks(t.block)) {
      std::vector<Touch> now;
      for (const Access &x : accesses(s, leaf)) {
        Region r = region(s, leaf, x, up);
        bool made = false, shared = false;
        for (const Touch &o : before) {
          if (o.tile == &t || o.access.buffer != x.buffer || !(o.access.write || x.write)) continue;
          std::string both = fmt::format("{} and {}", s.name_of(o.leaf), s.name_of(leaf)), what = s.text(x.buffer);
          shared |= o.access.write;
          made |= o.access.write && within(s, r, o.region, known);
          if (!x.write) continue;
          if (!within(s, r, o.region, known) || !(o.access.write || within(s, o.region, r, known)))
            refuse(leaf, "{} use other parts of {} in a turn: turns of one block would not be apart", both, what);
          if (!same_places(t, *o.tile))
            refuse(leaf, "{} use {} and are repeated by other loops: turns of one block would not be apart", both,
                   what);
        }
        if (!x.write && shared && !made) {
          std::string at;
          for (const Extent &e : r)
            at += (at.empty() ? "" : ", ") + s.text(e.lo) + (is_int(e.extent, 1) ? "" : " +: " + s.text(e.extent));
          refuse(leaf, "{} reads {}[{}], of which other turns of the new block would make a part", s.name_of(leaf),
                 s.text(x.buffer), at);
        }
        now.push_back({&t, leaf, x, r});
      }
      before.insert(before.end(), now.begin(), now.end());
    }
}

// Loops inside must not be called like the axes that will stand around them.
void rename_loops(State &s, const Run &r, const std::vector<Sym> &taken) {
  for (Place *top : r.nodes)
    each_place(top, [&](Place *l) {
      if (!l->loop()) return;
      Sym v = l->loop()->iter.name;
      if (std::find(taken.begin(), taken.end(), v) == taken.end()) return;
      Sym fresh = s.loop_name(top, s.text(v), taken);
      s.tree.edit<For>(l, [&](For &f) { f.iter.name = fresh; });
      s.substitute_below(l, {{v, s.b.name(fresh)}});
    });
}

}  // namespace

// for i0 in 4 { for i1 in 16 { block c { spatial i in 64 = i0 * 16 + i1 } } }   at i1
// ->  for i0 in 4 { block c.outer { spatial i in 4 = i0; for i1 in 16 { block c { spatial i in 64 = i * 16 + i1 } } } }
void blockize(State &s, Args &a) {
  a.expect_results(0, 1);
  Build &b = s.b;
  Place *loop = a.loop_or_block(0);
  if (loop->loop() && a.count() > 1) bad_step(a.at(1), "expected one loop, or blocks alone");
  Run r = loop->loop() ? run_of_loop(s, loop) : run_of_blocks(s, a);
  std::vector<Sym> taken;
  for (Place *n : r.blocks)
    for (const Axis &x : n->block()->axes)
      taken.push_back(x.name);
  rename_loops(s, r, taken);
  std::vector<Tile> tiles;
  for (Place *n : r.blocks)
    tiles.push_back(tile_of(s, n, r.up));
  if (tiles.size() > 1) expect_apart(s, tiles, r.up);
  std::map<std::pair<const Tile *, Sym>, Sym> name_of;
  std::vector<Axis> outer = united(s, tiles, r.up, a.attr_int("preserve_unit_iters", 1) != 0, name_of);
  Substitution outer_axis;  // loops around that an axis is bound to, as they are
  for (const Axis &x : outer)
    if (auto *v = as<Name>(x.binding)) outer_axis.emplace(v->name, b.name(x.name));

  // What no loop inside decides, and all blocks ask for, is decided around; and there no tile outside of a domain has
  // a turn.
  std::vector<std::vector<const Expr *>> conditions(tiles.size());
  for (size_t i = 0; i < tiles.size(); i++)
    conjuncts(tiles[i].block->block()->guard, conditions[i]);
  auto of_all = [&](const Expr *e) {
    return std::all_of(conditions.begin(), conditions.end(), [&](auto &l) {
      return std::any_of(l.begin(), l.end(), [&](const Expr *o) { return equal(e, o); });
    });
  };
  auto goes_around = [&](const Tile &t, const Expr *e) { return !t.mentions_inner(e) && of_all(e); };
  const Expr *around_guard = nullptr;
  for (const Expr *e : conditions[0])
    if (goes_around(tiles[0], e)) around_guard = both(b, around_guard, e);
  Known outside(s, r.nodes[0]);
  if (around_guard) outside.bounds.assume(around_guard);
  std::vector<const Expr *> asked;
  for (const Tile &t : tiles)
    for (const Axis &x : t.outer) {
      const Expr *cond = b.binary(Op::Lt, x.binding, x.domain);
      bool seen = std::any_of(asked.begin(), asked.end(), [&](const Expr *e) { return equal(e, cond); });
      if (seen || provably_less(b, x.binding, x.domain, outside)) continue;
      asked.push_back(cond), around_guard = both(b, around_guard, cond);
    }

  std::vector<Sym> from;
  for (size_t i = 0; i < tiles.size(); i++) {
    const Tile &t = tiles[i];
    const Block k = *t.block->block();
    const Expr *guard = nullptr;
    for (const Expr *e : conditions[i])
      if (!goes_around(t, e)) guard = both(b, guard, substitute(b, e, outer_axis));
    for (Place *l : loops_around(t.block))
      if (guard && !is_below(l, r.up) && !outer_axis.count(l->loop()->iter.name) &&
          mentions(guard, l->loop()->iter.name))
        refuse(t.block, "the guard {} of {} depends on {}, which no axis of the outer block is", s.text(k.guard),
               s.name_of(t.block), s.name_of(l));
    Known known(s, t.block);
    std::vector<Axis> now(k.axes.begin(), k.axes.end());
    for (size_t d = 0; d < now.size(); d++) {  // inside, a name is the outer axis, whatever it was around
      auto it = name_of.find({&t, now[d].name});
      X binding{b, t.rests[d]};
      size_t mark = known.bounds.mark();
      if (it != name_of.end()) {
        known.bounds.range(it->second, t.outer[d].domain);
        binding = X{b, b.name(it->second)} * X{b, t.sizes[d]} + binding;
      }
      now[d].binding = simplify(b, binding.e, known);
      known.bounds.pop(mark);
    }
    s.tree.edit<Block>(t.block, [&](Block &x) { x.axes = b.list(now), x.guard = guard; });
    for (Sym f : k.notes.from)
      if (std::find(from.begin(), from.end(), f) == from.end()) from.push_back(f);
  }
  Block whole{};
  whole.name = s.block_name(a.result(0, s.text(r.blocks.back()->block()->name) + ".outer"));
  whole.notes.from = b.list(from), whole.axes = b.list(outer), whole.guard = around_guard;
  Place *made = s.tree.make(b.make(whole));
  made->nest = true;
  s.tree.replace(r.nodes[0], made);
  for (size_t i = 1; i < r.nodes.size(); i++)
    s.tree.remove(r.nodes[i]);
  for (Place *x : r.nodes)
    s.tree.append(made, x);
  a.set_block(0, made);
}

}  // namespace mlc
