// decompose_reduction, rfactor, fuse_reduction_epilogue.
#include <algorithm>

#include "arith/prove.h"
#include "arith/simplify.h"
#include "ir/typing.h"
#include "ops/expr.h"
#include "sched/combine.h"
#include "sched/copy.h"
#include "sched/primitives.h"
#include "sched/regions.h"

namespace mlc {

// block y.init { y[i] = 0.0 }, block y { y[i] += .. }  ->  what the first one does, as the initialiser of the other
Stmts initialiser_of(State &s, Place *n, Place *start) {
  Combine c = combine_of(s, n);
  std::vector<const Stmt *> out;
  for (const Load *t : c.targets) out.push_back(s.b.make(Store{{}, false, t, start_value(s, start, t), {}}));
  return s.b.list(out);
}

// for k { for j { block c { init y[j] = 0.0 .. } } }  at k  ->  for j { block c.init }, for k { for j { block c } }
// An initialiser that is a block of its own moves there.
void decompose_reduction(State &s, Args &a) {
  a.expect_results(0, 1);
  Place *n = a.block(0), *loop = a.loop(1);
  Block k = *n->block();
  std::string block = s.text(k.name);
  Place *start = k.inits.empty() ? start_of(s, n) : nullptr;
  if (k.inits.empty() && !start) refuse(n, "block {} has no initialiser", block);
  if (start) k.inits = initialiser_of(s, n, start);
  each_expr_in(k.inits, [&](const Expr *e) {
    auto *v = as<Name>(e);
    for (const Axis &x : k.axes)
      if (v && v->name == x.name && x.kind != AxisKind::Spatial)
        refuse(n, "the initialiser of block {} depends on {}, which does not move with it", block, s.text(x.name));
    return true;
  });
  for (Place *u = n->up; u; u = u->up)
    if (u->block() && has_reduce(*u->block()))
      throw Refused{u->stmt->at,
                    fmt::format("{} reduces around block {}: the initialiser would run once for each of its tiles",
                                s.name_of(u), block),
                    "decompose_reduction before blockize"};
  std::vector<Place *> around = loops_around(n), below;
  auto from = std::find(around.begin(), around.end(), loop);
  if (from == around.end()) refuse(loop, "{} does not stand around block {}", s.name_of(loop), block);
  for (auto it = around.begin(); it != from; ++it)
    for (const Axis &x : k.axes)
      if (x.kind != AxisKind::Spatial && uses(x, (*it)->loop()->iter.name))
        throw Refused{
            (*it)->stmt->at,
            fmt::format("{} reduces block {} and stands outside of {}: the initialiser would run once a turn of it",
                        s.name_of(*it), block, s.name_of(loop)),
            fmt::format("decompose_reduction({}, {})", block, s.text((*it)->loop()->iter.name))};
  each_expr_in(k.inits, [&](const Expr *e) {
    if (auto *l = as<Load>(e)) expect_buffers(s, n, loop->up, {l->buffer});
    return true;
  });
  // A loop that no axis uses repeats rounds; each of them is begun as it was.
  for (auto it = around.begin(); it != around.end(); ++it) {
    const Iter &l = (*it)->loop()->iter;
    bool counts = std::any_of(k.axes.begin(), k.axes.end(), [&](const Axis &x) { return uses(x, l.name); });
    if (counts || provably_less_equal(s.b, l.extent, s.b.integer(1), Known(s, *it))) continue;
    bool begun = !start || is_below(start, *it), begins = it < from;
    if (begun != begins)
      refuse(*it, "{} repeats block {}: its rounds would {}", s.name_of(*it), block,
             begun ? "go on from each other" : "no longer go on from each other");
  }
  // A loop that the spatial axes use runs for the initialiser too.
  std::vector<Iter> loops;
  std::vector<LoopKind> kinds;
  Substitution names;
  std::vector<Sym> taken;
  for (auto it = from; it != around.end(); ++it) {
    const For &f = *(*it)->loop();
    bool spatial = false, reduce = false;
    for (const Axis &x : k.axes)
      if (uses(x, f.iter.name)) (x.kind == AxisKind::Spatial ? spatial : reduce) = true;
    if (spatial && reduce) refuse(*it, "{} is used by spatial and by reduce axes of block {}", s.name_of(*it), block);
    if (!spatial) {
      if (k.guard && mentions(k.guard, f.iter.name) && !reduce)
        refuse(n, "the guard of block {} depends on {}", block, s.name_of(*it));
      continue;
    }
    for (const Iter &l : loops)
      if (mentions(f.iter.extent, l.name))
        refuse(*it, "the extent of {} depends on {}", s.name_of(*it), s.text(l.name));
    loops.push_back({f.iter.name, f.iter.extent, kNowhere});
    kinds.push_back(f.loop);
  }
  // Of the guard, what spatial loops decide; the rest removes turns of the reduction alone.
  std::vector<const Expr *> all;
  const Expr *kept = nullptr;
  conjuncts(k.guard, all);
  for (const Expr *e : all) {
    bool reduce = false, spatial = false;
    for (auto it = from; it != around.end(); ++it) {
      Sym v = (*it)->loop()->iter.name;
      if (!mentions(e, v)) continue;
      bool is_spatial = std::any_of(loops.begin(), loops.end(), [&](const Iter &l) { return l.name == v; });
      (is_spatial ? spatial : reduce) = true;
    }
    if (reduce && spatial) refuse(n, "the guard {} of block {} mixes spatial and reduce loops", s.text(e), block);
    if (!reduce) kept = both(s.b, kept, e);
  }
  Block init = k;
  std::vector<Axis> axes;
  for (const Axis &x : k.axes)
    if (x.kind == AxisKind::Spatial) axes.push_back(x);
  init.axes = s.b.list(axes), init.body = k.inits, init.inits = {}, init.reads = {}, init.guard = kept,
  init.comment = {};
  std::string name = a.result(0, start ? s.text(start->block()->name) : block + ".init");
  init.name = start && name == s.text(start->block()->name) ? start->block()->name : s.block_name(name);
  std::vector<const Load *> writes;
  std::vector<Sym> reduce_axes;
  for (const Axis &x : k.axes)
    if (x.kind != AxisKind::Spatial) reduce_axes.push_back(x.name);
  for (const Load *w : k.writes) {
    for (Sym r : reduce_axes)
      for (const Expr *e : w->index)
        if (mentions(e, r))
          refuse(n, "block {} declares that it writes {}[..] at its reduce axis {}", block, s.text(w->buffer),
                 s.text(r));
    writes.push_back(w);
  }
  init.writes = s.b.list(writes);
  if (start) {
    Place *up = start->up;
    s.tree.remove(start);
    s.tree.prune(up);
  }
  auto [outer, inner] = s.nest(loops, s.b.make(init));
  s.tree.before(loop, outer);
  Place *l = outer;
  for (LoopKind kind : kinds) {
    if (kind == LoopKind::Vectorize || kind == LoopKind::Unroll || kind == LoopKind::Parallel)
      s.tree.edit<For>(l, [&](For &f) { f.loop = kind; });
    l = l->kids[0].empty() ? nullptr : l->kids[0][0];
  }
  s.tree.edit<Block>(n, [&](Block &x) { x.inits = {}; });
  a.set_block(0, inner);
}

// for k0 in 4 { for k1 in 8 { block c { reduce k in 32 = k0 * 8 + k1, c[i] += x[i, k] } } }   at k0
// ->  for k0 { for k1 { block c.rf { spatial k0, reduce k1, c.rf[k0, i] += x[i, k0 * 8 + k1] } } }
//     for k0 { block c { reduce k0, c[i] += c.rf[k0, i] } }
void rfactor(State &s, Args &a) {
  a.expect_results(0, 2);
  Build &b = s.b;
  Place *loop = a.loop(0);
  int64_t axis = a.integer(1);
  std::vector<Place *> below = leaf_blocks(loop);
  if (below.size() != 1)
    refuse(loop, "{} holds {}, expected one that it reduces", s.name_of(loop), counted(below.size(), "block"));
  Place *n = below[0];
  const Block k = *n->block();
  std::string block = s.text(k.name), of = s.text(loop->loop()->iter.name);
  for (Place *u = n->up; u; u = u->up)
    if (u->block())
      throw Refused{u->stmt->at,
                    fmt::format("{} is inside of {}, which knows nothing of another sum over its tiles",
                                s.name_of(loop), s.name_of(u)),
                    "rfactor before blockize"};
  Combine c = combine_of(s, n);
  std::vector<Place *> around = loops_around(n);
  std::unordered_set<Sym> reduce_loops, spatial_loops;
  for (Place *l : around)
    for (const Axis &x : k.axes)
      if (uses(x, l->loop()->iter.name))
        (x.kind == AxisKind::Spatial ? spatial_loops : reduce_loops).insert(l->loop()->iter.name);
  Sym v = loop->loop()->iter.name;
  if (!reduce_loops.count(v) || spatial_loops.count(v))
    refuse(loop, "{} does not reduce block {} alone", s.name_of(loop), block);

  // The nest that holds the block alone: the second block's nest stands behind it.
  Place *top = n;
  while (top->up->loop() && top->up->kids[0].size() == 1)
    top = top->up;
  if (!s.tree.contains(top, loop)) refuse(top->up, "{} holds more than block {}", s.name_of(top->up), block);
  for (Place *l : around)
    if (reduce_loops.count(l->loop()->iter.name) && !s.tree.contains(top, l))
      refuse(l, "{} reduces block {} and holds other statements too", s.name_of(l), block);

  for (Place *l : around)
    if (k.inits.empty() && s.tree.contains(top, l) && !is_int(l->loop()->iter.extent, 1) &&
        !reduce_loops.count(l->loop()->iter.name) && !spatial_loops.count(l->loop()->iter.name))
      refuse(l, "{} repeats block {}, which adds to what is there", s.name_of(l), block);

  // Axes: those of the loops that reduce, under names that no other axis has.
  std::unordered_set<Sym> taken;
  for (const Axis &x : k.axes)
    if (x.kind == AxisKind::Spatial) taken.insert(x.name);
  for (Sym d : s.original()->dims)
    taken.insert(d);
  Substitution axis_of;
  std::vector<Axis> rf_axes, axes;
  const Axis *lead = nullptr;
  std::vector<Axis> reducing;
  for (const Axis &x : k.axes)
    if (x.kind == AxisKind::Spatial) rf_axes.push_back(x), axes.push_back(x);
  for (Place *l : around) {
    const Iter &i = l->loop()->iter;
    if (!reduce_loops.count(i.name)) continue;
    if (spatial_loops.count(i.name))
      refuse(l, "{} is used by spatial and by reduce axes of block {}", s.name_of(l), block);
    for (Place *o : around)
      if (mentions(i.extent, o->loop()->iter.name))
        refuse(l, "the extent of {} depends on {}", s.name_of(l), s.name_of(o));
    Sym name = i.name;
    for (int at = 1; taken.count(name); at++)
      name = b.sym(fmt::format("{}_{}", s.text(i.name), at));
    taken.insert(name);
    axis_of[i.name] = b.name(name);
    reducing.push_back({l == loop ? AxisKind::Spatial : AxisKind::Reduce, name, kNowhere, i.extent, b.name(i.name)});
  }
  for (const Axis &x : reducing)
    rf_axes.push_back(x);
  for (const Axis &x : reducing)
    if (x.kind == AxisKind::Spatial) lead = &x;
  axes.push_back({AxisKind::Reduce, lead->name, kNowhere, lead->domain, lead->binding});

  // A guard on the reduction becomes a condition inside: all partial results exist.
  std::vector<const Expr *> conditions;
  const Expr *kept = nullptr, *inside = nullptr;
  conjuncts(k.guard, conditions);
  for (const Expr *e : conditions) {
    bool reduces = false, spatial = false;
    for (Place *l : around)
      if (mentions(e, l->loop()->iter.name)) {
        Sym v = l->loop()->iter.name;
        if (std::none_of(k.axes.begin(), k.axes.end(), [&](const Axis &x) { return uses(x, v); }))
          refuse(n, "the guard {} of block {} depends on {}, by which it does not count", s.text(e), block,
                 s.name_of(l));
        (reduce_loops.count(v) ? reduces : spatial) = true;
      }
    if (reduces && spatial) refuse(n, "the guard {} of block {} mixes spatial and reduce loops", s.text(e), block);
    if (reduces) inside = both(b, inside, substitute(b, e, axis_of));
    else kept = both(b, kept, e);
  }
  Substitution old_axes;
  for (const Axis &x : k.axes)
    if (x.kind != AxisKind::Spatial) old_axes[x.name] = substitute(b, x.binding, axis_of);

  // Buffers with one dimension more.
  size_t rank = c.targets[0]->index.size();
  if (axis < 0) axis += int64_t(rank) + 1;
  if (axis < 0 || axis > int64_t(rank))
    bad_step(a.at(1), "expected a place among the {} of {}, 0 to {}", counted(rank, "dimension"),
             s.text(c.targets[0]->buffer), rank);
  std::string name = a.result(0, block + ".rf");
  Combine parts = c, totals = c;
  parts.targets.clear(), parts.terms.clear();
  std::vector<const Stmt *> rf_init;
  for (size_t i = 0; i < c.targets.size(); i++) {
    const Load *t = c.targets[i];
    const Type *type = s.type_of_buffer(t->buffer);
    std::vector<const Expr *> dims(type->dims.begin(), type->dims.end()), index(t->index.begin(), t->index.end());
    dims.insert(dims.begin() + axis, lead->domain), index.insert(index.begin() + axis, b.name(lead->name));
    std::string called = c.targets.size() == 1 ? name : s.text(t->buffer) + ".rf";
    Sym buffer = s.buffer_name(i == 0 ? a.result(1, called) : called);
    s.add_alloc(buffer, b.tensor(type->elem, b.list(dims)));
    const Load *part = b.load(buffer, b.list(index), t->at);
    parts.targets.push_back(part);
    const Expr *first = c.identities[i],
               *term = substitute(b, c.terms[i], old_axes);  // the block itself keeps its start
    if (inside) term = b.call("where", {inside, term, first});
    parts.terms.push_back(term);
    rf_init.push_back(b.make(Store{{}, false, part, first, {}}));
    totals.terms[i] = part;
  }
  Block rf = k, total = k;
  rf.name = s.block_name(name), rf.axes = b.list(rf_axes), rf.guard = kept, rf.comment = {};
  rf.reads = rf.writes = total.reads = total.writes = {};
  rf.body = with_combine(s, k.body, parts), rf.inits = b.list(rf_init);
  bool reduces = std::any_of(rf_axes.begin(), rf_axes.end(), [](const Axis &x) { return x.kind == AxisKind::Reduce; });
  if (!reduces) {  // one term each: no sum is left
    std::vector<const Stmt *> stores;
    for (size_t i = 0; i < parts.targets.size(); i++)
      stores.push_back(b.make(Store{{}, false, parts.targets[i], parts.terms[i], {}}));
    rf.inits = {}, rf.body = b.list(stores);
  }
  // Where a partial result may have no term, its start is a block of its own, as it is of what adds to what is there.
  Known known(s, top);  // outside of its loops, which inside have a turn
  bool may_be_empty = std::any_of(rf_axes.begin(), rf_axes.end(), [&](const Axis &x) {
    return x.kind == AxisKind::Reduce && !provably_less_equal(b, b.integer(1), x.domain, known);
  });
  total.axes = b.list(axes), total.guard = kept;
  total.body = with_combine(s, k.body, totals);
  std::vector<Iter> loops;
  for (Place *l : around)
    if (s.tree.contains(top, l) && spatial_loops.count(l->loop()->iter.name)) loops.push_back(l->loop()->iter);
  loops.push_back(loop->loop()->iter);
  if (may_be_empty) {
    Block begins = rf;
    std::erase_if(rf_axes, [](const Axis &x) { return x.kind == AxisKind::Reduce; });
    begins.name = s.block_name(name + ".init"), begins.axes = b.list(rf_axes), begins.body = rf.inits, begins.inits = {};
    s.tree.before(top, s.nest(loops, b.make(begins)).first);
    rf.inits = {};
  }
  auto [outer, inner] = s.nest(loops, b.make(total));
  s.tree.after(top, outer);
  n->stmt = b.make(rf);
  s.simplify_below(n->up);
  for (auto &[key, h] : s.handles)
    if (h.kind == Handle::Block && h.node == n) h.node = inner;
  a.set_block(0, n);
}

// y[i] = y[i] + a * b                    ->  y[i] = fma(a, b, y[i])
// y[i] = y[i] + where(c, a * b, 0.0)     ->  y[i] = where(c, fma(a, b, y[i]), y[i])
void contract(State &s, Args &a) {
  a.expect_results(0, 0);
  Place *n = a.block(0);
  const Block &k = *n->block();
  std::string block = s.text(k.name);
  if (!has_reduce(k))
    refuse(n, "block {} has no reduce axis: only sums over such may be rounded in another way", block);
  Combine c = combine_of(s, n);
  const Expr *cond;
  if (c.fold != "sum" || !product_of(s, c.terms[0], &cond))
    refuse(n, "block {} is not of the form y[..] = y[..] + a * b", block);
  if (!is_float(s.type_of_buffer(c.targets[0]->buffer)->elem))
    refuse(n, "{} holds no floats: there is nothing that contraction could round in another way",
           s.text(c.targets[0]->buffer));
  c.contracted = true;
  s.tree.edit<Block>(n, [&](Block &x) { x.body = with_combine(s, x.body, c); });
}

// block y { init y[i] = 0.0, y[i] += e }, block z { z[i] = y[i] + b[i] }  ->  block y { init z[i] = b[i], z[i] += e }
void fuse_reduction_epilogue(State &s, Args &a) {
  a.expect_results(0, 0);
  Build &b = s.b;
  Place *n = a.block(0), *e = a.block(1);
  const Block &k = *n->block(), &z = *e->block();
  std::string block = s.text(k.name), epilogue = s.text(z.name);
  Place *start = start_of(s, n);  // a block of its own, where the domain may be empty
  if (k.inits.empty() && !start) refuse(n, "block {} has no initialiser to take what block {} adds", block, epilogue);
  Combine c = combine_of(s, n);
  auto *st = z.body.size() == 1 ? as<Store>(z.body[0]) : nullptr;
  auto *sum = st ? as<Binary>(st->value) : nullptr;
  const Load *y = sum && sum->op == Op::Add ? as<Load>(sum->a) : nullptr;
  const Expr *rest = sum ? sum->b : nullptr;
  if (sum && sum->op == Op::Add && (!y || y->buffer != c.targets[0]->buffer)) y = as<Load>(sum->b), rest = sum->a;
  if (c.fold != "sum" || !y || y->buffer != c.targets[0]->buffer || has_reduce(z))
    throw Refused{e->stmt->at,
                  fmt::format("block {} is not of the form z[..] = {}[..] + e after a sum", epilogue,
                              s.text(c.targets[0]->buffer)),
                  fmt::format("reverse_compute_at({}, ..)", epilogue)};
  Sym buffer = y->buffer;
  for (Place *x : leaves(s.tree.root()))
    if (x != n && x != e && x != start && (reads(s, x, buffer) || writes(s, x, buffer)))
      refuse(x, "{} uses {} too", s.name_of(x), s.text(buffer));
  if (!s.alloc_of(buffer)) refuse(n, "the caller sees {}", s.text(buffer));
  // z's axes in y's: y[i, j] is read at each axis once.
  Substitution back;
  for (size_t d = 0; d < y->index.size(); d++) {
    auto *v = as<Name>(y->index[d]);
    if (!v || back.count(v->name))
      refuse(e, "block {} reads {} at {}, which is no axis of its own", epilogue, s.text(buffer), s.text(y->index[d]));
    back[v->name] = c.targets[0]->index[d];
  }
  for (const Axis &x : z.axes)
    if (!back.count(x.name))
      refuse(e, "axis {} of block {} does not come from {}", s.text(x.name), epilogue, s.text(buffer));
  Known inside(s, n, true);
  for (size_t d = 0; d < y->index.size(); d++)
    for (const Axis &x : z.axes)
      if (x.name == to<Name>(y->index[d]).name && !provably_inside(b, c.targets[0]->index[d], x.domain, inside))
        refuse(n, "block {} makes {} at {}, which is not known to be inside of axis {} of block {}, in {}",
               s.text(n->block()->name), s.text(buffer), s.text(c.targets[0]->index[d]), s.text(x.name), epilogue,
               s.text(x.domain));
  for (Sym r : buffers_read(s, e)) {
    if (r == buffer) continue;
    bool ready = false;  // written in front of the reduction, or by nobody
    Place *first = start ? start : n;
    for (Place *x : leaves(s.tree.root())) {
      ready |= x == first;
      if (ready && x != first && writes(s, x, r))
        refuse(x, "{} writes {}, which block {} adds, behind {}", s.name_of(x), s.text(r), epilogue, s.name_of(first));
    }
  }
  bool mentioned = false;
  each_expr(rest, [&](const Expr *x) {
    auto *l = as<Load>(x);
    mentioned |= l && l->buffer == buffer;
    return true;
  });
  if (mentioned) refuse(e, "block {} reads {} twice", epilogue, s.text(buffer));
  const Load *target = &to<Load>(substitute(b, static_cast<const Expr *>(st->target), back));
  // z[i] = b[i] in place of y[i] = 0.0, in the names of the block that has it
  auto begin = [&](const Load *old, const Expr *first) {
    Substitution names;
    for (size_t d = 0; d < y->index.size(); d++)
      names[to<Name>(y->index[d]).name] = old->index[d];
    const Expr *value = substitute(b, rest, names);
    if (!equal(first, zero(b, s.type_of_buffer(buffer)->elem).e)) value = b.binary(Op::Add, first, value);
    const Expr *at = substitute(b, static_cast<const Expr *>(st->target), names);
    return b.stmts({b.make(Store{{}, false, &to<Load>(at), value, st->from})});
  };
  Combine now = c;
  now.targets = {target};
  auto with_from = [&](Block &x) {
    std::vector<Sym> from(x.notes.from.begin(), x.notes.from.end());
    for (Sym f : z.notes.from)
      if (std::find(from.begin(), from.end(), f) == from.end()) from.push_back(f);
    x.notes.from = b.list(from), x.writes = {};
  };
  if (start) {
    auto &body = start->block()->body;
    auto *old = body.size() == 1 ? as<Store>(body[0]) : nullptr;
    if (!old) refuse(start, "{} does more than store one value", s.name_of(start));
    s.tree.edit<Block>(start, [&](Block &x) { x.body = begin(old->target, old->value), x.reads = {}, with_from(x); });
  }
  const Expr *first = start ? nullptr : initial(s, n, c.targets[0]);
  s.tree.edit<Block>(n, [&](Block &x) {
    x.body = with_combine(s, x.body, now);
    if (!start) x.inits = begin(c.targets[0], first);
    with_from(x);
  });
  Place *was = e->up, *alloc = s.alloc_of(buffer);
  s.tree.remove(e);
  s.tree.prune(was);
  s.tree.remove(alloc);
}

}  // namespace mlc
