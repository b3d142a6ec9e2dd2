// split, fuse, merge, reorder, loop_partition, add_unit_loop, reorder_block_iter_var.
#include <algorithm>

#include "arith/prove.h"
#include "arith/simplify.h"
#include "ops/expr.h"
#include "sched/nest.h"
#include "sched/primitives.h"
#include "sched/regions.h"
#include "text/text.h"

namespace mlc {

// Replaces one loop by several, outermost first; `value` is what the old variable was.
static void replace_loop(State &s, Place *loop, const std::vector<Place *> &by, const Expr *value) {
  Sym old = loop->loop()->iter.name;
  s.tree.move_kids(loop, by.back());
  for (size_t i = by.size() - 1; i-- > 0;)
    s.tree.append(by[i], by[i + 1]);
  s.tree.replace(loop, by[0]);
  s.substitute_below(by.back(), {{old, value}});
}

static const Expr *extent_of(Place *loop) { return loop->loop()->iter.extent; }

// The product of extents, as long as numbers among them stay in 64 bits.
static X product_of(State &s, const std::vector<const Expr *> &factors, uint32_t at) {
  int64_t numbers = 1, v;
  X out = lit(s.b, int64_t{1});
  for (const Expr *e : factors) {
    if (e && int_value(e, &v) && __builtin_mul_overflow(numbers, v, &numbers))
      bad_step(at, "the product of {} turns and more does not fit 64 bits", v);
    if (e) out = out * X{s.b, e};
  }
  return out;
}

// for i in n  ->  for i0 in (n + 15) // 16, for i1 in 16, i = i0 * 16 + i1, guarded if 16 does not divide n
void split(State &s, Args &a) {
  Place *loop = a.loop(0);
  std::vector<const Expr *> factors = a.factors(1);
  if (factors.size() < 2) bad_step(a.at(1), "split wants two factors or more, found {}", factors.size());
  a.expect_results(factors.size(), factors.size());
  if (a.flag("preserve_unit_iters"))
    bad_step(a.attr("preserve_unit_iters")->at, "no binding mentions a loop of one turn: preserve_unit_iters is 0");
  const For &old = *loop->loop();
  if (old.loop != LoopKind::Serial)
    refuse(loop, "loop {} is {} already; split it first, then mark what it became", s.text(old.iter.name),
           kind_name(old));
  Build &b = s.b;
  Known known(s, loop);
  std::optional<size_t> open;
  X product = lit(b, int64_t{1});
  for (size_t i = 0; i < factors.size(); i++) {
    if (!factors[i]) {
      if (open) bad_step(a.at(1), "only one factor may be inferred");
      open = i;
      continue;
    }
    if (!known.bounds.is_index(factors[i]))
      bad_step(factors[i]->at, "a factor is a number or an index of the kernel's dimensions, found {}",
               s.text(factors[i]));
    if (!provably_less_equal(b, b.integer(1), factors[i], known))
      bad_step(factors[i]->at, "factor {} is not known to be at least 1", s.text(factors[i]));
    product = product * X{b, factors[i]};
  }
  product_of(s, factors, a.at(1));
  X n{b, extent_of(loop)};
  if (open) {
    factors[*open] = simplify(b, ceildiv(n, product).e, known);
    product = product * X{b, factors[*open]};
  }
  const Expr *total = simplify(b, product.e, known);
  bool exact = provably_equal(b, total, n.e, known);
  if (!exact && !provably_less_equal(b, n.e, total, known))
    refuse(loop, "the factors make {} turns, fewer than the {} of loop {}", s.text(total), s.text(n.e),
           s.text(old.iter.name));
  if (!exact && a.flag("disable_predication"))
    refuse(loop, "{} turns are not {}, and disable_predication allows no guard", s.text(total), s.text(n.e));

  std::vector<Place *> made;
  std::vector<Sym> taken;
  std::vector<Sym> names;
  std::string base = s.text(old.iter.name);
  for (size_t i = 0; i < factors.size(); i++) {
    Sym name = s.loop_name(loop, a.result(i, fmt::format("{}{}", base, i)), taken);
    taken.push_back(name), names.push_back(name);
  }
  X value = lit(b, int64_t{0});
  for (size_t i = 0; i < factors.size(); i++)
    value = value * X{b, factors[i]} + X{b, b.name(names[i])};
  for (size_t i = 0; i < factors.size(); i++)
    made.push_back(s.tree.make_loop({names[i], factors[i], old.iter.at}));
  made[0]->stmt = s.b.make([&] {
    For f = to<For>(made[0]->stmt);
    f.notes = old.notes, f.comment = old.comment, f.at = old.at;
    return f;
  }());
  replace_loop(s, loop, made, value.e);
  if (!exact) {
    Known inside(s, made.back(), true);
    s.guard_below(made.back(), simplify(b, (value < n).e, inside));
  }
  for (size_t i = 0; i < made.size(); i++)
    a.set_loop(i, made[i]);
}

// The loops from the outermost to the innermost, each holding the next alone; refuses where they are not.
static std::vector<Place *> chain(State &s, std::vector<Place *> loops) {
  std::sort(loops.begin(), loops.end(), [](Place *x, Place *y) { return is_below(y, x); });
  std::vector<Place *> out;
  Place *n = loops.back();
  for (;; n = n->up) {
    if (!n || !n->stmt)
      refuse(loops.back(), "{} and {} are not one inside the other", s.name_of(loops[0]), s.name_of(loops.back()));
    if (n->loop()) out.push_back(n);
    if (n == loops[0]) break;
    if (!n->up || !n->up->loop())
      refuse(n->up && n->up->stmt ? n->up : n, "{} stands between {} and {}", s.name_of(n->up), s.name_of(loops[0]),
             s.name_of(loops.back()));
    if (n->up->kids[0].size() != 1) {
      Place *beside = n->up->kids[0][n->up->kids[0][0] == n ? 1 : 0];
      std::string what =
          beside->stmt->kind == Kind::Alloc ? "buffer " + s.text(to<Alloc>(beside->stmt).def.name) : s.name_of(beside);
      if (beside->loop())
        if (auto l = leaf_blocks(beside); !l.empty()) what += fmt::format(" (around {})", s.name_of(l[0]));
      refuse(n->up, "{} holds more than {}: {} stands beside it", s.name_of(n->up), s.name_of(n), what);
    }
  }
  std::reverse(out.begin(), out.end());
  return out;
}

void fuse(State &s, Args &a) {
  a.expect_results(1, 1);
  std::vector<Place *> loops = a.loops();
  if (loops.size() < 2) bad_step(a.at(0), "fuse wants two loops or more");
  std::vector<Place *> nest = chain(s, loops);
  if (nest.size() != loops.size())
    refuse(nest[1], "{} stands between the loops that are to be fused", s.name_of(nest[1]));
  for (size_t i = 0; i < nest.size(); i++) {
    if (nest[i] != loops[i])
      bad_step(a.at(i), "the loops come outermost first: {} before {}", s.name_of(nest[i]), s.name_of(loops[i]));
    if (nest[i]->loop()->loop != LoopKind::Serial)
      refuse(nest[i], "{} is {} already; fuse first, then mark", s.name_of(nest[i]), kind_name(*nest[i]->loop()));
    for (size_t j = 0; j < i; j++)
      if (mentions(extent_of(nest[i]), nest[j]->loop()->iter.name))
        refuse(nest[i], "the extent {} of {} depends on {}", s.text(extent_of(nest[i])), s.name_of(nest[i]),
               s.name_of(nest[j]));
  }
  Build &b = s.b;
  std::string otherwise;
  std::vector<const Expr *> extents;
  for (Place *n : nest)
    extents.push_back(extent_of(n));
  product_of(s, extents, a.at(0));
  X total = lit(b, int64_t{1});
  for (Place *n : nest) {
    otherwise += (otherwise.empty() ? "" : "_") + s.text(n->loop()->iter.name);
    total = total * X{b, extent_of(n)};
  }
  Known known(s, nest[0]);
  Sym name = s.loop_name(nest[0], a.result(0, otherwise));
  Place *made = s.tree.make_loop({name, simplify(b, total.e, known), nest[0]->loop()->iter.at});
  made->stmt =
      edited(b, to<For>(made->stmt), [&](For &f) { f.comment = nest[0]->stmt->comment, f.at = nest[0]->stmt->at; });
  Substitution names;
  X inner = lit(b, int64_t{1}), f{b, b.name(name)};
  for (size_t i = nest.size(); i-- > 0;) {
    X digit = floordiv(f, inner);
    if (i > 0) digit = digit % X{b, extent_of(nest[i])};
    names[nest[i]->loop()->iter.name] = digit.e;
    inner = inner * X{b, extent_of(nest[i])};
  }
  s.tree.move_kids(nest.back(), made);
  s.tree.replace(nest[0], made);
  s.substitute_below(made, names);
  a.set_loop(0, made);
}

// for i in n { x }, for j in n { y }  ->  for i in n { x, y }
void merge(State &s, Args &a) {
  a.expect_results(1, 1);
  std::vector<Place *> loops = a.loops();
  if (loops.size() < 2) bad_step(a.at(0), "merge wants two loops or more");
  Place *first = loops[0];
  for (size_t i = 1; i < loops.size(); i++) {
    Place *n = loops[i];
    if (n->up != first->up || n->part != first->part || s.tree.place(n) != s.tree.place(first) + i)
      refuse(n, "{} does not stand right behind {}", s.name_of(n), s.name_of(loops[i - 1]));
    Known known(s, n);
    if (!provably_equal(s.b, extent_of(first), extent_of(n), known))
      refuse(n, "{} takes {} turns, {} takes {}", s.name_of(first), s.text(extent_of(first)), s.name_of(n),
             s.text(extent_of(n)));
    if (first->loop()->loop != n->loop()->loop)
      refuse(n, "{} is {}, {} is {}", s.name_of(first), kind_name(*first->loop()), s.name_of(n), kind_name(*n->loop()));
  }
  std::vector<Sym> inner;  // the names of loops in any of them
  for (Place *n : loops)
    each_place(n, [&](Place *x) {
      if (x != n && x->loop()) inner.push_back(x->loop()->iter.name);
    });
  Sym name = s.loop_name(first, a.result(0, s.text(first->loop()->iter.name)), inner);
  Place *made = s.tree.make_loop({name, extent_of(first), first->loop()->iter.at}, first->loop()->loop);
  for (Place *n : loops) {
    Place *part = s.tree.make_loop({name, extent_of(n), kNowhere});
    s.tree.move_kids(n, part);
    part->up = n->up;
    s.substitute_below(part, {{n->loop()->iter.name, s.b.name(name)}});
    s.tree.move_kids(part, made);
  }
  s.tree.replace(first, made);
  for (size_t i = 1; i < loops.size(); i++)
    s.tree.remove(loops[i]);
  // One loop now takes a turn of each where all turns of the first went before: no turn may need a later one's.
  if (std::string why = dependence(s, made); !why.empty()) refuse(made, "merged, {}", why);
  a.set_loop(0, made);
}

// The reducing loop that would come to stand outside of loops that take an element of block n twice; null: none.
//   for k, for i0 in 4, for i1 in 2, i = i0 + i1      adds the terms of i = 1 twice between two initialisations
static Place *repeated(State &s, Place *n, const std::vector<Place *> &nest, const std::vector<Place *> &now) {
  const Block &k = *n->block();
  auto used = [&](Place *l, bool reduces) {
    return std::any_of(k.axes.begin(), k.axes.end(), [&](const Axis &x) {
      return (x.kind != AxisKind::Spatial) == reduces && uses(x, l->loop()->iter.name);
    });
  };
  auto inside = [&](std::vector<Place *> order) {  // loops of elements inside of the first that reduces, and that
    for (Place *l : loops_around(n))
      if (is_below(l, nest.back())) order.push_back(l);
    auto first = std::find_if(order.begin(), order.end(), [&](Place *l) { return used(l, true); });
    std::vector<Place *> out;
    for (auto l = first; l != order.end(); l++)
      if (l == first || (used(*l, false) && !used(*l, true) && !is_int(extent_of(*l), 1))) out.push_back(*l);
    return out;
  };
  std::vector<Place *> before = inside(nest), after = inside(now);
  auto stood = [&](Place *l) { return std::find(before.begin(), before.end(), l) != before.end(); };
  if (after.size() < 2 || std::all_of(after.begin() + 1, after.end(), stood)) return nullptr;
  Build &b = s.b;
  Known known(s, n);
  std::vector<const Expr *> loops, extents, to;
  std::vector<Sym> names;
  for (size_t i = 1; i < after.size(); i++) {
    loops.push_back(b.name(after[i]->loop()->iter.name)), extents.push_back(extent_of(after[i]));
  }
  for (const Axis &x : k.axes) {
    if (x.kind != AxisKind::Spatial) continue;
    to.push_back(x.binding), names.push_back(b.sym("turn of " + s.text(x.name)));
  }
  const Map *map = b.map(b.make_list(b.list(loops)), b.make_list(b.list(to)));
  return inverse(b, *map, extents, names, known) ? nullptr : after[0];
}

void reorder(State &s, Args &a) {
  a.expect_results(0, 0);
  std::vector<Place *> order = a.loops();
  if (order.size() < 2) bad_step(a.at(0), "reorder wants two loops or more");
  for (size_t i = 0; i < order.size(); i++)
    for (size_t j = 0; j < i; j++)
      if (order[i] == order[j]) bad_step(a.at(i), "{} comes twice", s.name_of(order[i]));
  std::vector<Place *> nest = chain(s, order);
  std::vector<size_t> places;
  for (size_t i = 0; i < nest.size(); i++)
    if (std::find(order.begin(), order.end(), nest[i]) != order.end()) places.push_back(i);
  std::vector<Place *> now = nest;
  for (size_t i = 0; i < places.size(); i++)
    now[places[i]] = order[i];
  if (now == nest) return;

  std::vector<Place *> all = leaves(nest[0]);
  for (size_t i = 0; i < now.size(); i++)
    for (size_t j = i + 1; j < now.size(); j++)
      if (mentions(extent_of(now[i]), now[j]->loop()->iter.name))
        refuse(now[i], "the extent {} of {} depends on {}, which would stand inside", s.text(extent_of(now[i])),
               s.name_of(now[i]), s.name_of(now[j]));
  for (Place *n : all) {
    if (!n->block())
      refuse(n, "{} holds a statement outside of blocks: the order of its turns cannot be changed", s.name_of(nest[0]));
    auto &k = *n->block();
    std::vector<size_t> scans;
    // j = (f0 * 8 + f1) % 12 beside i = (f0 * 8 + f1) // 12: the order of f0 and f1 decides which turn of i is the first.
    auto shared = [&](const Axis &reduce) {
      return std::any_of(k.axes.begin(), k.axes.end(), [&](const Axis &y) {
        return y.kind == AxisKind::Spatial && std::any_of(now.begin(), now.end(), [&](Place *l) {
          return uses(y, l->loop()->iter.name) && uses(reduce, l->loop()->iter.name) && !is_int(extent_of(l), 1);
        });
      });
    };
    std::vector<const Axis *> mixed;
    for (const Axis &x : k.axes)
      if (x.kind != AxisKind::Spatial && shared(x)) mixed.push_back(&x);
    Place *last = nullptr;
    for (Place *l : now) {
      if (is_int(extent_of(l), 1) ||
          std::none_of(mixed.begin(), mixed.end(), [&](auto *x) { return uses(*x, l->loop()->iter.name); }))
        continue;
      auto was = [&](Place *x) { return std::find(nest.begin(), nest.end(), x); };
      if (last && was(l) < was(last))
        refuse(n, "{} and {} are both elements and terms of reduction {}: in another order its first turn would not be the "
               "one that initialises", s.name_of(l), s.name_of(last), s.text(k.name));
      last = l;
    }
    if (Place *r = repeated(s, n, nest, now))
      refuse(n, "the loops inside {} would take elements of reduction {} more than once in each of its turns", s.name_of(r),
             s.text(k.name));
    for (size_t i = 0; i < now.size(); i++) {
      Sym v = now[i]->loop()->iter.name;
      bool used = false;
      for (const Axis &x : k.axes) {
        if (!uses(x, v)) continue;
        used = true;
        if (x.kind == AxisKind::Scan) scans.push_back(i);
      }
      // A loop that repeats the block must stay outside of the loops that reduce.
      if (!used && !is_int(extent_of(now[i]), 1) && has_reduce(k))
        for (size_t j = 0; j < i; j++)
          for (const Axis &x : k.axes)
            if (x.kind != AxisKind::Spatial && uses(x, now[j]->loop()->iter.name))
              refuse(n, "{} repeats block {} and would stand inside of {}, which reduces it", s.name_of(now[i]),
                     s.text(k.name), s.name_of(now[j]));
    }
    for (size_t i = 1; i < scans.size(); i++) {
      auto was = [&](size_t x) { return std::find(nest.begin(), nest.end(), now[x]); };
      if (was(scans[i]) < was(scans[i - 1]))
        refuse(n, "{} and {} scan block {} in order", s.name_of(now[scans[i - 1]]), s.name_of(now[scans[i]]),
               s.text(k.name));
    }
  }
  if (all.size() > 1)
    for (Place *n : nest)
      if (std::string why = dependence(s, n); !why.empty())
        refuse(n, "{} holds {}, and {}", s.name_of(n), counted(all.size(), "block"), why);

  // The bodies stay, the heads move: each place gets the head that is to stand there.
  Place *up = nest[0]->up;
  size_t part = nest[0]->part, at = s.tree.place(nest[0]);
  std::vector<Place *> body = nest.back()->kids[0];
  s.tree.remove(nest[0]);
  for (Place *n : nest)
    n->kids[0].clear();
  for (size_t i = 0; i + 1 < now.size(); i++)
    s.tree.append(now[i], now[i + 1]);
  for (Place *n : body)
    s.tree.append(now.back(), n);
  s.tree.insert(up, part, at, now[0]);
}

void rebase(State &s, Place *part, X from, X turns, bool last) {
  Build &b = s.b;
  Sym loop = part->loop()->iter.name;
  for (Place *n : leaf_blocks(part)) {
    Substitution shift;
    Known known(s, n);
    const Block &k = *n->block();
    std::span<const Axis> axes = edit_all(b, k.axes, [&](Axis &x) {
      if (!uses(x, loop)) return;
      // A turn of no range: where there is one turn alone, the loop would be taken for 0.
      Sym turn = b.sym("a turn of " + s.text(loop));
      auto a = affine(b, substitute(b, x.binding, {{loop, b.name(turn)}}), b.one(turn), known);
      std::vector<Iter> inner;
      for (Place *l : loops_around(n))
        if (l->loop()->iter.name != loop) inner.push_back(l->loop()->iter);
      X step{b, a ? a->coefs[0] : nullptr}, base = a ? step * from : X{};
      auto rest = a ? span_of(b, (X{b, a->rest} - base).e, b.list(inner), known) : std::nullopt;
      if (!rest || !provably_equal(b, rest->lo, b.integer(0), known) ||
          !provably_less_equal(b, rest->extent, step.e, known))
        refuse(n, "axis {} of block {} is bound to {}: a part of {} is no part of its domain", s.text(x.name),
               s.text(k.name), s.text(x.binding), s.text(loop));
      X end = base + step * turns;
      if (last || !provably_less_equal(b, end.e, x.domain, known)) end = X{b, x.domain};
      x.domain = simplify(b, (end - base).e, known);
      x.binding = simplify(b, (X{b, x.binding} - base).e, known);
      const Expr *offset = simplify(b, base.e, known);
      if (!is_int(offset, 0)) shift[x.name] = (X{b, b.name(x.name)} + X{b, offset}).e;
    });
    s.tree.edit<Block>(n, [&](Block &x) { x.axes = axes; });
    Known inside(s, n, true);
    auto in = [&](Stmts l) {
      return rewrite_exprs(b, l, [&](const Expr *e) -> const Expr * {
        auto *v = as<Name>(e);
        if (auto it = v ? shift.find(v->name) : shift.end(); it != shift.end()) return it->second;
        auto *load = as<Load>(e);  // i + 2 + 2 -> i + 4
        if (!load || shift.empty()) return e;
        Exprs index = edit_all(b, load->index, [&](const Expr *&x) { x = simplify(b, x, inside); });
        return index.data() == load->index.data() ? e : b.load(load->buffer, index, load->at, load->global);
      });
    };
    s.tree.edit<Block>(n, [&](Block &x) {
      x.inits = in(x.inits), x.body = in(x.body);
      if (!shift.empty()) x.reads = {}, x.writes = {};
    });
  }
}

// for i in n  ->  for i0 in 2, for i1 in n - 4, for i2 in 2, one after the other
void loop_partition(State &s, Args &a) {
  Place *loop = a.loop(0);
  std::vector<const Expr *> parts = a.factors(1);
  if (parts.size() < 2) bad_step(a.at(1), "loop_partition wants two parts or more");
  a.expect_results(parts.size(), parts.size());
  Build &b = s.b;
  const For old = *loop->loop();
  if (old.loop == LoopKind::Bind)
    refuse(loop, "loop {} is {} already; partition it first, then mark what it became", s.text(old.iter.name), kind_name(old));
  Known known(s, loop);
  X n{b, old.iter.extent}, sum = lit(b, int64_t{0});
  std::optional<size_t> open;
  for (size_t i = 0; i < parts.size(); i++) {
    if (parts[i]) {
      if (!known.bounds.is_index(parts[i]) || !provably_less_equal(b, b.integer(0), parts[i], known))
        bad_step(parts[i]->at, "part {} is not known to be 0 or more turns", s.text(parts[i]));
      sum = sum + X{b, parts[i]};
    } else if (open) {
      bad_step(a.at(1), "only one part may be inferred");
    } else {
      open = i;
    }
  }
  if (open) {
    parts[*open] = simplify(b, (n - sum).e, known);
    if (!provably_less_equal(b, sum.e, n.e, known))
      refuse(loop, "the parts need {} turns, {} is not known to have them", s.text(simplify(b, sum.e, known)),
             s.name_of(loop));
  } else if (!provably_equal(b, sum.e, n.e, known)) {
    refuse(loop, "the parts make {} turns, {} has {}", s.text(simplify(b, sum.e, known)), s.name_of(loop), s.text(n.e));
  }
  for (Place *k : s.blocks())
    if (k->nest && is_below(k, loop))
      refuse(k, "block {} holds blocks, whose axes keep their whole domains", s.text(k->block()->name));
  for (Place *k : leaf_blocks(loop)) {
    bool reduces = false;
    for (const Axis &x : k->block()->axes)
      reduces |= x.kind != AxisKind::Spatial && uses(x, old.iter.name);
    if (reduces && !k->block()->inits.empty())
      throw Refused{k->stmt->at,
                    fmt::format("{} reduces block {}, whose initialiser belongs to the first part alone",
                                s.name_of(loop), s.text(k->block()->name)),
                    fmt::format("decompose_reduction({}, {}) first", s.text(k->block()->name), s.text(old.iter.name))};
  }
  X from = lit(b, int64_t{0});
  std::vector<Place *> made;
  for (size_t i = 0; i < parts.size(); i++) {
    Sym name = s.loop_name(loop, a.result(i, fmt::format("{}{}", s.text(old.iter.name), i)));
    Place *part = s.tree.make_loop({name, parts[i], old.iter.at}, old.loop);
    for (Place *k : loop->kids[0])
      s.tree.append(part, s.tree.make(s.tree.stmt(k)));
    s.tree.before(loop, part);
    if (i)
      each_place(part, [&](Place *k) {
        if (k->block())
          s.tree.edit<Block>(k, [&](Block &x) { x.name = s.block_name(fmt::format("{}.{}", s.text(x.name), i)); });
      });
    s.substitute_below(part, {{old.iter.name, (X{b, b.name(name)} + from).e}}, false);
    rebase(s, part, from, X{b, parts[i]}, i + 1 == parts.size());
    s.simplify_below(part);
    from = X{b, simplify(b, (from + X{b, parts[i]}).e, known)};
    made.push_back(part);
  }
  s.tree.remove(loop);
  for (size_t i = 0; i < made.size(); i++)
    a.set_loop(i, made[i]);
}

void add_unit_loop(State &s, Args &a) {
  a.expect_results(1, 1);
  Place *n = a.loop_or_block(0);
  std::vector<Sym> taken;
  if (n->loop()) taken.push_back(n->loop()->iter.name);
  Place *made = s.tree.make_loop({s.loop_name(n, a.result(0, "one"), taken), s.b.integer(1), kNowhere});
  s.tree.replace(n, made);
  s.tree.append(made, n);
  a.set_loop(0, made);
}

void reorder_block_iter_var(State &s, Args &a) {
  a.expect_results(0, 0);
  Place *n = a.block(0);
  std::vector<int64_t> order = a.integers(1), sorted = order;
  auto axes = n->block()->axes;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); i++)
    if (sorted.size() != axes.size() || sorted[i] != int64_t(i))
      bad_step(a.at(1), "expected each of 0 to {} once, a number for each axis of block {}", axes.size() - 1,
               s.text(n->block()->name));
  std::vector<Axis> now;
  for (int64_t i : order)
    now.push_back(axes[i]);
  s.tree.edit<Block>(n, [&](Block &k) { k.axes = s.b.list(now); });
}

}  // namespace mlc
