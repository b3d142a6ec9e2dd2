// annotate_buffer_access, unsafe_hide_buffer_access: what a block says that it reads and writes; cache_index.
#include <algorithm>

#include "arith/prove.h"
#include "arith/simplify.h"
#include "ops/expr.h"
#include "sched/copy.h"
#include "sched/primitives.h"

namespace mlc {

namespace {

// What a block reads or writes, as it would declare it.
std::vector<const Load *> declared(State &s, Place *n, bool write) {
  std::vector<const Load *> out;
  for (const Access &x : accesses(s, n)) {
    if (x.write != write) continue;
    const Load *l = s.b.load(x.buffer, x.index);
    if (std::none_of(out.begin(), out.end(), [&](const Load *y) { return equal(y, l); })) out.push_back(l);
  }
  return out;
}

void declare(State &s, Place *n, bool write, const std::vector<const Load *> &all) {
  s.tree.edit<Block>(n, [&](Block &k) { (write ? k.writes : k.reads) = s.b.list(all); });
}

// The region d of an access holds that of what is accessed.
bool holds(Build &b, const Expr *wide, const Expr *narrow, const Expr *dim, const Bounds &known) {
  if (wide->kind == Kind::All) return true;
  auto ends = [&](const Expr *e) -> std::pair<X, X> {
    if (e->kind == Kind::All) return {lit(b, int64_t{0}), X{b, dim}};
    if (auto *r = as<Range>(e)) return {X{b, r->lo}, X{b, r->lo} + X{b, r->extent}};
    return {X{b, e}, X{b, e} + 1};
  };
  auto [wlo, whi] = ends(wide);
  auto [nlo, nhi] = ends(narrow);
  return provably_less_equal(b, wlo.e, nlo.e, known) && provably_less_equal(b, nhi.e, whi.e, known);
}

}  // namespace

// block c { .. x[i + r] .. }  with [i] -> [[i, 3]]   ->   block c { reads x[i +: 3] .. }
void annotate_buffer_access(State &s, Args &a) {
  a.expect_results(0, 0);
  Build &b = s.b;
  Place *n = a.block(0);
  Sym buffer = a.buffer(1);
  const Map *map = a.map(2);
  auto &k = *n->block();
  std::string block = s.text(k.name), name = s.text(buffer);
  if (n->nest) refuse(n, "block {} holds blocks", block);
  bool write = !reads(s, n, buffer);
  if (write && !writes(s, n, buffer)) refuse(n, "block {} does not use {}", block, name);
  const Type *t = s.type_of_buffer(buffer);
  auto left = map->from->items, right = map->to->items;
  if (left.size() != k.axes.size())
    bad_step(a.at(2), "the map takes {} indices: expected the axes of block {}, which has {}", left.size(), block,
             k.axes.size());
  if (right.size() != t->rank())
    bad_step(a.at(2), "the map gives {} indices, {} has {}", right.size(), name, t->rank());
  Substitution axis;
  for (size_t i = 0; i < left.size(); i++) {
    if (left[i]->kind != Kind::Name) bad_step(a.at(2), "the left side of a map is a list of names");
    axis[to<Name>(left[i]).name] = b.name(k.axes[i].name);
  }
  std::vector<const Expr *> index;
  for (const Expr *e : right) {
    auto *l = as<List>(e);
    if (l && l->items.size() != 2) bad_step(e->at, "a region is [first, number], found {}", s.text(e));
    if (l)
      index.push_back(b.range(substitute(b, l->items[0], axis), substitute(b, l->items[1], axis)));
    else
      index.push_back(substitute(b, e, axis));
  }
  Known known(s, n, true);
  std::vector<const Load *> now;
  bool put = false;
  for (const Load *l : declared(s, n, write)) {
    if (l->buffer != buffer) {
      now.push_back(l);
      continue;
    }
    for (size_t d = 0; d < l->index.size(); d++)
      if (!holds(b, index[d], l->index[d], t->dims[d], known))
        refuse(n, "block {} uses {} in dimension {} of {}, which is not known to be in {}", block,
               l->index[d]->kind == Kind::All ? "anything" : s.text(l->index[d]), d, name, s.text(index[d]));
    if (!put) now.push_back(b.load(buffer, b.list(index)));
    put = true;
  }
  declare(s, n, write, now);
}

void unsafe_hide_buffer_access(State &s, Args &a) {
  a.expect_results(0, 0);
  Place *n = a.block(0);
  std::string which = a.string(1);
  if (which != "reads" && which != "writes") bad_step(a.at(1), "expected \"reads\" or \"writes\", found {}", which);
  bool write = which == "writes";
  if (n->nest) refuse(n, "block {} holds blocks", s.text(n->block()->name));
  std::vector<Sym> all = write ? buffers_written(s, n) : buffers_read(s, n), hidden;
  for (int64_t i : a.integers(2)) {
    if (i < 0 || size_t(i) >= all.size())
      bad_step(a.at(2), "block {} {} {}, there is no number {}", s.text(n->block()->name), which,
               counted(all.size(), "buffer"), i);
    hidden.push_back(all[size_t(i)]);
  }
  std::vector<const Load *> left = declared(s, n, write);
  std::erase_if(left,
                [&](const Load *l) { return std::find(hidden.begin(), hidden.end(), l->buffer) != hidden.end(); });
  if (left.empty())
    refuse(n, "block {} would declare no {}, and then what its body does counts", s.text(n->block()->name), which);
  declare(s, n, write, left);
}

// block c { .. x[i // 3 * 2, k] .. }   ->   block c.index { c.index[i] = i64(i // 3 * 2) },
//                                           block c { .. x[index(c.index[i]), k] .. }
void cache_index(State &s, Args &a) {
  Build &b = s.b;
  Place *n = a.block(0);
  int64_t threshold = a.attr_int("threshold", 0);
  auto &k = *n->block();
  std::string block = s.text(k.name);
  if (n->nest) refuse(n, "block {} holds blocks; name one of them", block);
  // Subscripts that take computing, of axes alone.
  std::vector<const Expr *> found;
  std::vector<int64_t> times;
  std::vector<Sym> written = buffers_written(s, n);  // their subscripts stay what they are
  std::unordered_set<Sym> plain;
  for (const Axis &x : k.axes)
    plain.insert(x.name);
  for (Sym d : s.original()->dims)
    plain.insert(d);
  auto visit = [&](const Expr *e) {
    auto *l = as<Load>(e);
    bool read = l && !l->global && std::find(written.begin(), written.end(), l->buffer) == written.end();
    for (const Expr *i : read ? l->index : Exprs{}) {
      std::unordered_set<Sym> names;
      bool pure = i->kind == Kind::Binary;
      each_expr(i, [&](const Expr *x) {
        pure &= x->kind == Kind::Binary || x->kind == Kind::Name || x->kind == Kind::Int;
        return true;
      });
      collect_names(i, names);
      bool axes = false;
      for (Sym v : names) {
        pure &= plain.count(v) > 0;
        for (const Axis &x : k.axes)
          axes |= x.name == v;
      }
      if (!pure || !axes) continue;
      auto it = std::find_if(found.begin(), found.end(), [&](const Expr *x) { return equal(x, i); });
      if (it == found.end())
        found.push_back(i), times.push_back(1);
      else
        times[size_t(it - found.begin())]++;
    }
    return true;
  };
  each_expr_in(k.body, visit);
  for (size_t i = found.size(); i-- > 0;)
    if (times[i] <= threshold) found.erase(found.begin() + long(i)), times.erase(times.begin() + long(i));
  if (found.empty())
    refuse(n, "block {} has no subscript that takes computing{}", block,
           threshold ? fmt::format(" and stands there more than {}", counted(size_t(threshold), "time")) : "");
  a.expect_results(1, found.size());
  std::vector<const Expr *> cached;
  for (size_t i = 0; i < found.size(); i++) {
    std::vector<Axis> axes = axes_of(k, b.one(found[i]));
    std::vector<const Expr *> dims, at;
    for (const Axis &x : axes)
      dims.push_back(x.domain), at.push_back(b.name(x.name));
    std::string name = a.result(i, block + ".index");
    Sym buffer = s.buffer_name(name);
    s.add_alloc(buffer, b.tensor(DType::I64, b.list(dims)));
    const Load *element = b.load(buffer, b.list(at));
    const Stmt *store = b.make(Store{{}, false, element, b.call("i64", {found[i]}), {}});
    Place *top = n;
    while (top->up->stmt)
      top = top->up;
    a.set_block(i, place_block(s, {s.tree.root(), s.tree.place(top)}, s.block_name(name), axes, b.stmts({store}), n));
    cached.push_back(b.call("index", {element}));
  }
  n->stmt = rewrite_exprs(b, n->stmt, [&](const Expr *e) -> const Expr * {
    auto *l = as<Load>(e);
    if (!l || l->global || std::find(written.begin(), written.end(), l->buffer) != written.end()) return e;
    Exprs index = edit_all(b, l->index, [&](const Expr *&i) {
      for (size_t f = 0; f < found.size(); f++)
        if (equal(i, found[f])) i = cached[f];
    });
    return index.data() == l->index.data() ? e : b.load(l->buffer, index, l->at);
  });
}

}  // namespace mlc
