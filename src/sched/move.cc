// compute_at, reverse_compute_at: a block moves under a loop of what reads it, or of what it reads.
#include <algorithm>

#include "arith/prove.h"
#include "arith/simplify.h"
#include "ops/expr.h"
#include "sched/combine.h"
#include "sched/copy.h"
#include "sched/inline.h"
#include "sched/nest.h"
#include "sched/primitives.h"
#include "sched/regions.h"

namespace mlc {

namespace {

// Which axis a subscript is: the axis of that name, alone.
const Axis *plain_axis(const Block &k, const Expr *e) {
  auto *n = as<Name>(e);
  if (!n) return nullptr;
  for (const Axis &x : k.axes)
    if (x.name == n->name) return &x;
  return nullptr;
}

// What a turn of `loop` needs of a shared buffer, all threads of its block together do:
//   for ty in 8 bind threadIdx.y { for k in 4 { a.shared[ty * 8 +: 8, k] .. } }   ->   a.shared[0 +: 64, k]
Region for_all_threads(State &s, Region r, Place *loop, Sym scope) {
  if (s.text(scope) != "shared") return r;
  Build &b = s.b;
  for (Place *u = loop; u && u->stmt; u = u->up) {
    auto *f = u->loop();
    if (!f || f->loop != LoopKind::Bind || s.text(f->tag).starts_with("blockIdx") ||
        s.text(f->tag).starts_with("clusterIdx"))
      continue;
    Known known(s, u, true);
    for (Extent &e : r) {
      if (!mentions(e.lo, f->iter.name)) continue;
      auto span = span_of(b, e.lo, b.one(f->iter), known);
      if (!span || mentions(e.extent, f->iter.name))
        refuse(u, "what the threads of {} read together, from {} on, is no range", s.name_of(u), s.text(e.lo));
      e.lo = span->lo, e.exact &= span->exact;
      e.extent = simplify(b, (X{b, span->extent} + X{b, e.extent} - 1).e, known);
    }
  }
  return r;
}

void expect_movable(State &s, Place *n) {
  auto &k = *n->block();
  if (n->nest) refuse(n, "block {} holds blocks", s.text(k.name));
  if (has_scan(k)) refuse(n, "block {} scans in order and stays where it is", s.text(k.name));
}

void narrow(State &s, std::vector<Share> &parts, const Axis *axis, const Extent &e, const Bounds &known) {
  for (Share &p : parts) {
    if (p.axis != axis) continue;
    if (!p.lo) {
      p.lo = e.lo, p.extent = e.extent;
    } else {
      Region both = hull(s, {{p.lo, p.extent, true, true}}, {e}, known);
      p.lo = both[0].lo, p.extent = both[0].extent;
    }
  }
}

// The whole domain reads better as itself.
void widen(State &s, std::vector<Share> &parts, const Bounds &known) {
  for (Share &p : parts)
    if (p.lo && is_int(p.lo, 0) && provably_less_equal(s.b, p.axis->domain, p.extent, known)) p.lo = p.extent = nullptr;
}

// What a binding may say of loops: sums, products with what is fixed, // and %.
void expect_affine(State &s, Place *n, const std::vector<Share> &parts, Place *loop) {
  for (const Share &p : parts)
    for (Place *u = loop; p.lo && u && u->stmt; u = u->up)
      each_expr(p.lo, [&](const Expr *e) {
        if (u->loop() && e->kind == Kind::Call && mentions(e, u->loop()->iter.name))
          refuse(n, "in a turn of {} axis {} of {} begins at {}, which is not affine in {}", s.name_of(loop),
                 s.text(p.axis->name), s.name_of(n), s.text(p.lo), s.name_of(u));
        return true;
      });
}

std::vector<Share> all_parts(const Block &k) {
  std::vector<Share> parts;
  for (const Axis &x : k.axes)
    parts.push_back({&x, nullptr, nullptr});
  return parts;
}

// Where in the body of `loop` the block goes, `first` to `last` being legal: by index, which counts loops and blocks,
// -1 being the last and -2 the first.
size_t chosen_place(State &s, Args &a, Place *loop, const std::string &block, size_t first, size_t last,
                    size_t otherwise) {
  if (!a.attr("index")) return otherwise;
  auto &body = loop->kids[0];
  auto number = [&](size_t place) {
    return std::count_if(body.begin(), body.begin() + place, [](Place *x) { return x->stmt->kind != Kind::Alloc; });
  };
  while (first < last && body[first]->stmt->kind == Kind::Alloc)
    first++;
  int64_t index = a.attr_int("index", -1), low = number(first), high = number(last);
  if (index == -1) return last;
  if (index == -2) return first;
  if (index >= low && index <= high) {
    size_t at = first;
    while (number(at) < index || (at < last && body[at]->stmt->kind == Kind::Alloc))
      at++;
    return at;
  }
  auto beside = [&](size_t place) {
    std::vector<Place *> in = leaf_blocks(body[place]);
    return s.name_of(in.empty() ? body[place] : in[0]);
  };
  std::string where = first > 0 && low > 0 ? " behind " + beside(first - 1) : "";
  if (last < body.size()) where += (where.empty() ? " in front of " : " and in front of ") + beside(last);
  bad_step(a.attr("index")->at, "index = {}: block {} may stand at {} in {},{}; or -1, the last place, or -2, the first",
           index, block, low == high ? fmt::format("{} alone", low) : fmt::format("{} to {}", low, high),
           s.name_of(loop), where);
}

// The same parts of a reduction's start: along the axes that both write at.
std::vector<Share> parts_of_start(State &s, Place *start, const Block &first, Place *n,
                                  const std::vector<Share> &parts, const Bounds &known) {
  std::vector<Share> out = all_parts(first);
  for (const Access &w : accesses(s, n))
    for (const Access &v : accesses(s, start)) {
      if (!w.write || !v.write || v.buffer != w.buffer) continue;
      for (size_t d = 0; d < w.index.size(); d++)
        for (const Share &p : parts) {
          auto *x = as<Name>(w.index[d]);
          if (!p.lo || !x || x->name != p.axis->name) continue;
          const Axis *z = plain_axis(first, v.index[d]);
          if (!z || !provably_equal(s.b, z->domain, p.axis->domain, known))
            refuse(start, "{} begins {} at {} in dimension {}, {} goes on at {}", s.name_of(start), s.text(w.buffer),
                   s.text(v.index[d]), d, s.name_of(n), s.text(w.index[d]));
          for (Share &q : out)
            if (q.axis == z) q.lo = p.lo, q.extent = p.extent;
        }
    }
  return out;
}

// A block, and in front of it the start of its reduction, with the parts of them that are to run.
struct Moved {
  Place *block;
  Block k;
  std::vector<Share> parts;
};

Place *take(State &s, Place *n) {
  Place *was = n->up;
  s.tree.remove(n);
  s.tree.prune(was);
  return n;
}

void put(State &s, Args &a, const std::vector<Moved> &all, Place *loop, size_t at) {
  std::vector<Place *> made;
  for (const Moved &m : all) {
    Place *inner = nullptr;
    made.push_back(nest_over(s, m.k, m.parts, loop, &inner, a.flag("preserve_unit_loops")));
    for (auto &[name, h] : s.handles)
      if (h.node == m.block) h.node = inner;
  }
  for (Place *x : made)
    s.tree.insert(loop, 0, at++, x);
}

}  // namespace

// block p computes what the turns of `loop` read of it, right in front of the first reader; the start of a reduction goes
// along
void compute_at(State &s, Args &a) {
  a.expect_results(0, 0);
  Place *n = a.block(0);
  if (a.count() > 1 && !a.is_block(1))
    if (auto *e = as<Name>(a.raw(1)))
      if (auto it = s.handles.find(e->name); it != s.handles.end() && it->second.kind == Handle::Value) {
        if (is_int(it->second.values[0], -1)) inline_block(s, n);
        return;  // -2: where it stands
      }
  Place *loop = a.loop(1);
  const Block k = *n->block();
  std::string block = s.text(k.name);
  expect_movable(s, n);
  if (is_below(n, loop)) refuse(n, "block {} stands in {} already", block, s.name_of(loop));
  std::vector<Sym> written = buffers_written(s, n);
  for (Sym w : written)
    if (s.is_result(w)) {
      auto users = consumers(s, n);
      throw Refused{
          n->stmt->at,
          fmt::format("block {} writes {}, which the caller sees: all of it must be computed", block, s.text(w)),
          users.empty() && !producers(s, n).empty()
              ? fmt::format("reverse_compute_at({}, ..) moves it under what it reads", block)
              : ""};
    }
  std::vector<Place *> users = consumers(s, n);
  if (users.empty()) refuse(n, "nobody reads what block {} writes", block);
  for (Place *u : users)
    if (!is_below(u, loop))
      refuse(u, "{} reads {} and does not stand in {}", s.name_of(u), s.text(written[0]), s.name_of(loop));
  Place *start = start_of(s, n);
  for (Place *x : leaves(s.tree.root()))
    if (x != n && x != start)
      for (Sym w : written)
        if (writes(s, x, w)) refuse(x, "{} writes {} too, as block {} does", s.name_of(x), s.text(w), block);
  for (const Access &x : accesses(s, n))
    if (!x.write && k.inits.empty() && !start && std::find(written.begin(), written.end(), x.buffer) != written.end())
      refuse(n, "block {} adds to what is in {}: computed twice, it would add twice", block, s.text(x.buffer));
  // What it reads is ready in front of the first reader.
  size_t first_place = 0, last_place = SIZE_MAX;
  for (Place *u : users)
    last_place = std::min(last_place, s.tree.place(child_with(loop, u)));
  std::vector<Moved> all;
  if (start) all.push_back({start, *start->block(), {}});
  all.push_back({n, k, {}});
  for (const Moved &m : all) {
    for (Place *p : producers(s, m.block)) {
      Place *c = child_with(loop, p);
      if (!c) continue;
      if (s.tree.place(c) >= last_place)
        refuse(p, "{} is read by {} and comes later in {}", s.name_of(p), s.name_of(m.block), s.name_of(loop));
      first_place = std::max(first_place, s.tree.place(c) + 1);
    }
    std::vector<Sym> read = buffers_read(s, m.block);
    bool behind = false;
    for (Place *x : leaves(s.tree.root())) {  // what it reads stays as it is until then
      behind |= x == m.block;
      if (!behind || x == start || x == n) continue;
      for (Sym r : read)
        if (writes(s, x, r)) refuse(x, "{} changes {}, which {} reads", s.name_of(x), s.text(r), s.name_of(m.block));
    }
  }
  for (const Moved &m : all)
    expect_buffers(s, m.block, loop);
  size_t at = chosen_place(s, a, loop, block, first_place, last_place, last_place);
  Known known(s, loop, true);
  std::vector<Share> parts = all_parts(k);
  std::vector<std::pair<Exprs, std::optional<Region>>> needed;
  for (const Access &w : accesses(s, n)) {
    if (!w.write) continue;
    std::optional<Region> need;
    for (Place *u : users) {
      if (!u->block()) continue;
      for (const Access &r : accesses(s, u)) {
        if (r.write || r.buffer != w.buffer) continue;
        Region g = region(s, u, r, loop);
        need = need ? hull(s, *need, g, known) : g;
      }
    }
    if (!need) continue;
    need = for_all_threads(s, *need, loop, s.type_of_buffer(w.buffer)->scope);
    for (size_t d = 0; d < w.index.size(); d++) {
      const Axis *x = plain_axis(k, w.index[d]);
      if (x && x->kind == AxisKind::Spatial) narrow(s, parts, x, (*need)[d], known);
    }
  }
  widen(s, parts, known);
  expect_affine(s, n, parts, loop);
  all.back().parts = parts;
  if (start) all[0].parts = parts_of_start(s, start, all[0].k, n, parts, known);
  for (const Moved &m : all)
    take(s, m.block);
  put(s, a, all, loop, at);
}

// block c takes, in each turn of `loop`, what the turn has made of all that it reads
void reverse_compute_at(State &s, Args &a) {
  a.expect_results(0, 0);
  Place *n = a.block(0);
  Place *loop = a.loop(1);
  const Block k = *n->block();
  std::string block = s.text(k.name);
  expect_movable(s, n);
  Place *start = start_of(s, n);
  if (has_reduce(k) && k.inits.empty() && !start) refuse(n, "block {} adds to what is there", block);
  if (is_below(n, loop)) refuse(n, "block {} stands in {} already", block, s.name_of(loop));
  std::vector<Place *> makers = producers(s, n), under;
  for (Place *p : makers)
    if (is_below(p, loop) && p != start) under.push_back(p);
  if (under.empty()) refuse(loop, "{} makes nothing that block {} reads", s.name_of(loop), block);
  std::vector<Sym> made;
  for (Place *p : under) {
    if (!p->block()) refuse(p, "{} is no block", s.name_of(p));
    if (const Block &maker = *p->block(); maker.guard) {  // what it leaves out is outside of its axes, and no more
      Known inside(s, p);
      for (const Axis &x : maker.axes) {
        inside.bounds.assume(s.b.binary(Op::Ge, x.binding, s.b.integer(0)));
        inside.bounds.assume(s.b.binary(Op::Lt, x.binding, x.domain));
      }
      if (!prove(s.b, maker.guard, inside))
        refuse(p, "the guard {} of block {} leaves out more than what is outside of its axes: what a turn of {} makes is not known",
               s.text(maker.guard), s.text(maker.name), s.name_of(loop));
    }
    for (Sym w : buffers_written(s, p))
      if (reads(s, n, w)) made.push_back(w);
    // A turn must have finished what it made.
    for (Place *l : loops_around(p)) {
      for (const Axis &x : p->block()->axes)
        if (x.kind != AxisKind::Spatial && uses(x, l->loop()->iter.name)) {
          std::string free;
          for (Place *o : loops_around(p)) {
            bool reduce = false;
            for (const Axis &y : p->block()->axes)
              reduce |= y.kind != AxisKind::Spatial && uses(y, o->loop()->iter.name);
            if (reduce) break;
            free = s.text(o->loop()->iter.name);
          }
          throw Refused{l->stmt->at,
                        fmt::format("{} reduces {}: after a turn of {} it is not finished", s.name_of(l), s.name_of(p),
                                    s.name_of(loop)),
                        free.empty() ? "" : fmt::format("reverse_compute_at({}, {})", block, free)};
        }
      if (l == loop) break;
    }
  }
  std::vector<Sym> read = buffers_read(s, n), written = buffers_written(s, n);
  auto among = [](const std::vector<Sym> &l, Sym x) { return std::find(l.begin(), l.end(), x) != l.end(); };
  bool behind = false;  // behind the loop: what the block passes on its way there
  for (Place *x : leaves(s.tree.root())) {
    if (x == n) break;
    bool inside = is_below(x, loop);
    behind |= inside;
    if (x == start) continue;
    for (Sym w : buffers_written(s, x)) {
      if (among(written, w) && (inside || behind)) refuse(x, "{} writes {}, too", s.name_of(x), s.text(w));
      if (!inside && behind && among(read, w))
        refuse(x, "{} writes {}, which block {} reads, and comes behind {}", s.name_of(x), s.text(w), block,
               s.name_of(loop));
    }
    for (Sym r : buffers_read(s, x))
      if (among(written, r) && (inside || behind))
        refuse(x, "{} reads {}, which block {} writes, and comes before it", s.name_of(x), s.text(r), block);
  }
  bool begun = false;  // what the start reads is the same in the loop
  for (Place *x : start ? leaves(s.tree.root()) : std::vector<Place *>{}) {
    begun |= x == start || is_below(x, loop);
    for (Sym r : begun && x != start ? buffers_read(s, start) : std::vector<Sym>{})
      if (writes(s, x, r)) refuse(x, "{} writes {}, which {} reads", s.name_of(x), s.text(r), s.name_of(start));
  }

  expect_buffers(s, n, loop);
  if (start) expect_buffers(s, start, loop);

  Known known(s, loop, true);
  std::vector<Share> parts = all_parts(k);
  for (const Access &r : accesses(s, n)) {
    if (r.write || std::find(made.begin(), made.end(), r.buffer) == made.end()) continue;
    std::optional<Region> ready;
    std::vector<char> whole(r.index.size(), true);  // over all turns, everything along this dimension is made here
    const Type *type = s.type_of_buffer(r.buffer);
    for (Place *p : under)
      for (const Access &w : accesses(s, p))
        if (w.write && w.buffer == r.buffer) {
          Region g = region(s, p, w, loop);
          ready = ready ? hull(s, *ready, g, known) : g;
          for (size_t d = 0; d < w.index.size(); d++) {
            const Axis *x = plain_axis(*p->block(), w.index[d]);
            if (x && provably_equal(s.b, x->domain, type->dims[d], known)) continue;
            const Extent all = region(s, p, w, nullptr)[d];  // a tile's number, a place in a tile
            whole[d] &= !p->block()->guard && all.dense && is_int(all.lo, 0) &&
                        provably_less_equal(s.b, type->dims[d], all.extent, known);
          }
        }
    for (size_t d = 0; d < r.index.size(); d++) {
      if (!(*ready)[d].dense && !is_int(type->dims[d], 1))
        refuse(n, "a turn of {} makes elements of {} that do not lie side by side in dimension {}", s.name_of(loop),
               s.text(r.buffer), d);
      const Axis *x = plain_axis(k, r.index[d]);
      if (x) {
        if (x->kind == AxisKind::Spatial) {
          if (!whole[d])
            refuse(n, "block {} would take of {} only what stands in {}, which is not all of it", block,
                   s.text(r.buffer), s.name_of(loop));
          if (!provably_less_equal(s.b, x->domain, type->dims[d], known))
            refuse(n, "axis {} of block {} has {} turns, {} has {} elements there", s.text(x->name), block,
                   s.text(x->domain), s.text(r.buffer), s.text(type->dims[d]));
          narrow(s, parts, x, (*ready)[d], known);
          continue;
        }
      }
      // Anything else reads more than one turn makes, unless a turn makes all of it.
      if (is_int(r.index[d], 0) && is_int((*ready)[d].lo, 0)) continue;
      if (is_int((*ready)[d].lo, 0) && provably_less_equal(s.b, type->dims[d], (*ready)[d].extent, known)) continue;
      refuse(n, "block {} reads {} at {} in dimension {}: a turn of {} has made only {} +: {} there", block,
             s.text(r.buffer), s.text(r.index[d]), d, s.name_of(loop), s.text((*ready)[d].lo),
             s.text((*ready)[d].extent));
    }
  }
  // A loop that may have no turn must be one that gives the block its elements: then there are none.
  for (Place *u = loop; u && u->loop() && !is_below(n, u); u = u->up) {
    Sym v = u->loop()->iter.name;
    bool gives = std::any_of(parts.begin(), parts.end(), [&](const Share &p) { return p.lo && mentions(p.lo, v); });
    if (!gives && !provably_less_equal(s.b, s.b.integer(1), u->loop()->iter.extent, known))
      refuse(u, "{} may have no turn, block {} would not run", s.name_of(u), block);
  }
  widen(s, parts, known);
  expect_affine(s, n, parts, loop);
  // A turn takes the elements of its own only: with parts that repeat from turn to turn, what it writes would be the
  // same again, which is sound if the block does not read it.
  std::vector<Moved> all;
  if (start) all.push_back({start, *start->block(), {}});
  all.push_back({n, k, parts});
  if (start) all[0].parts = parts_of_start(s, start, all[0].k, n, parts, known);
  for (const Moved &m : all)
    take(s, m.block);
  size_t first = 0;
  for (Place *p : under)
    first = std::max(first, s.tree.place(child_with(loop, p)) + 1);
  put(s, a, all, loop, chosen_place(s, a, loop, block, first, loop->kids[0].size(), first));
}

}  // namespace mlc
