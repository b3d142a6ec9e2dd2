// transform_layout, transform_block_layout.
#include "sched/layout.h"

#include <algorithm>

#include "arith/affine.h"
#include "arith/prove.h"
#include "arith/simplify.h"
#include "ops/expr.h"
#include "sched/copy.h"
#include "sched/primitives.h"

namespace mlc {

namespace {

struct Layout {
  const Map *map;
  Inverse inverse;  // in names of its own
  std::vector<Sym> names;
};

// A map that takes all points of a box of these extents apart and is one to one on it.
Layout layout_of(State &s, Args &a, size_t i, Exprs extents, std::string_view what) {
  Build &b = s.b;
  const Map *map = a.map(i);
  if (map->from->items.size() != extents.size())
    bad_step(a.at(i), "the map takes {} indices, {} has {}", map->from->items.size(), what, extents.size());
  std::unordered_set<Sym> own, used;
  for (const Expr *e : map->from->items)
    if (auto *n = as<Name>(e); !n || !own.insert(n->name).second)
      bad_step(a.at(i), "the left side of a map is a list of different names");
  for (const Expr *e : map->to->items)
    collect_names(e, used);
  auto dims = s.original()->dims;
  for (Sym n : used)
    if (!own.count(n) && std::find(dims.begin(), dims.end(), n) == dims.end())
      bad_step(a.at(i), "{} is neither an index of the map nor a dimension of the kernel", s.text(n));
  std::vector<Axis> beside;
  std::vector<Sym> names;
  for (size_t d = 0; d < map->to->items.size(); d++) {
    names.push_back(axis_name(s, std::string(1, char('i' + d % 8)), beside));
    beside.push_back({AxisKind::Spatial, names.back(), kNowhere, nullptr, nullptr});
  }
  Known known(s, s.tree.root());
  auto inv = inverse(b, *map, extents, names, known);
  std::string box;
  for (const Expr *e : extents)
    box += (box.empty() ? "" : ", ") + s.text(e);
  if (!inv)
    bad_step(a.at(i),
             "{} is not known to be one to one on [{}]: it should take indices apart with // and %, and use each part "
             "once",
             s.text(map), box);
  return {map, *inv, names};
}

// Subscripts of the old layout -> of the new one. A region stays one where the map passes its index on.
Exprs moved(State &s, const Map &map, Exprs index, const Bounds &known, uint32_t at, std::string_view buffer) {
  Build &b = s.b;
  Substitution points;
  std::unordered_map<Sym, const Expr *> regions;
  for (size_t d = 0; d < index.size(); d++) {
    Sym v = to<Name>(map.from->items[d]).name;
    if (index[d]->kind == Kind::All || index[d]->kind == Kind::Range)
      regions[v] = index[d];
    else
      points[v] = index[d];
  }
  std::vector<const Expr *> out;
  for (const Expr *e : map.to->items) {
    if (auto *n = as<Name>(e); n && regions.count(n->name)) {
      out.push_back(regions[n->name]);
      continue;
    }
    for (auto &[v, region] : regions)
      if (mentions(e, v))
        refuse(at, "{} is used as a region, {}, which the new layout takes apart", buffer, s.text(region));
    out.push_back(simplify(b, substitute(b, e, points), known));
  }
  return b.list(out);
}

void move_accesses(State &s, Sym buffer, const Map &map) {
  Build &b = s.b;
  readers(s, buffer), writers(s, buffer);  // computes become blocks
  each_place(s.tree.root(), [&](Place *n) {
    if (!n->stmt) return;
    if (auto *v = as<View>(n->stmt); v && v->source->buffer == buffer)
      refuse(n, "{} has a view, {}", s.text(buffer), s.text(v->def.name));
    if (auto *x = as<Alloc>(n->stmt); x && x->base == buffer)
      refuse(n, "{} stands in {}", s.text(x->def.name), s.text(buffer));
    Known known(s, n, n->block() != nullptr);
    auto map_one = [&](const Expr *e) -> const Expr * {
      auto *l = as<Load>(e);
      if (!l || l->global || l->buffer != buffer) return e;
      return b.load(buffer, moved(s, map, l->index, known, l->at, s.text(buffer)), l->at);
    };
    each_expr_of(n->stmt, [&](const Expr *e) {
      each_expr(e, [&](const Expr *x) {
        if (auto *name = as<Name>(x); name && name->name == buffer)
          refuse(n, "{} is passed on as a whole: its layout belongs to what is called, too", s.text(buffer));
        return true;
      });
    });
    if (n->holds() && !n->block()) {
      Stmts none = b.stmts({});
      const Stmt *head = with_bodies(b, n->stmt, [&](Stmts) { return none; });
      n->stmt = rewrite_exprs(b, head, map_one);
    } else if (!n->nest) {
      n->stmt = rewrite_exprs(b, n->stmt, map_one);
    } else {
      s.tree.edit<Block>(n, [&](Block &k) {
        auto regions = [&](std::span<const Load *const> l) {
          return edit_all(b, l, [&](const Load *&x) { x = &to<Load>(map_one(x)); });
        };
        k.reads = regions(k.reads), k.writes = regions(k.writes);
      });
    }
  });
}

// What is outside of the old box, at the axes of the new one.
const Expr *outside(State &s, const Layout &l, Exprs extents, const std::vector<Axis> &axes, const Bounds &known) {
  Build &b = s.b;
  Substitution at;
  for (size_t d = 0; d < axes.size(); d++)
    at[l.names[d]] = b.name(axes[d].name);
  X cond;
  for (size_t d = 0; d < extents.size(); d++) {
    const Expr *e = simplify(b, substitute(b, l.inverse.map->to->items[d], at), known);
    if (provably_less(b, e, extents[d], known)) continue;
    X c = X{b, e} >= X{b, extents[d]};
    cond = cond ? cond || c : c;
  }
  return cond ? cond.e : truth(b, false).e;
}

bool any_mentions(Exprs l, Sym name) {
  return std::any_of(l.begin(), l.end(), [&](const Expr *e) { return mentions(e, name); });
}

// A block that writes what lies outside of the old box, in front of all others.
void pad(State &s, Sym buffer, const Layout &l, Exprs extents, const Expr *value) {
  Build &b = s.b;
  std::vector<Axis> axes;
  Known known(s, s.tree.root());
  size_t mark = known.bounds.mark();
  for (size_t d = 0; d < l.inverse.image.size(); d++) {
    Sym v = axis_name(s, std::string(1, char('i' + d % 8)), axes);
    axes.push_back({AxisKind::Spatial, v, kNowhere, l.inverse.image[d], b.name(v)});
    known.bounds.range(v, l.inverse.image[d]);
  }
  const Expr *out = outside(s, l, extents, axes, known);
  known.bounds.pop(mark);
  std::vector<const Expr *> index;
  for (const Axis &x : axes)
    index.push_back(b.name(x.name));
  const Stmt *store = b.make(Store{{}, false, b.load(buffer, b.list(index)), value, {}});
  const Stmt *branch = b.make(If{{}, out, b.stmts({store}), {}, false});
  Place *alloc = s.alloc_of(buffer), *home = alloc ? alloc->up : s.tree.root();
  size_t at = 0;
  while (at < home->kids[0].size() && home->kids[0][at]->stmt->kind == Kind::Alloc)
    at++;
  place_block(s, {home, at}, s.block_name(s.text(buffer) + ".pad"), axes, b.stmts({branch}), nullptr);
}

}  // namespace

// w[o, i] with [o, i] -> [o // 16, i, o % 16]   ->   w[o // 16, i, o % 16]
void transform_layout(State &s, Args &a) {
  a.expect_results(0, 0);
  Build &b = s.b;
  Place *n = a.block(0);
  Sym buffer = a.buffer(1);
  std::string name = s.text(buffer), block = s.text(n->block()->name);
  if (!reads(s, n, buffer) && !writes(s, n, buffer)) refuse(n, "block {} does not use {}", block, name);
  const Type *type = s.type_of_buffer(buffer);
  // A tile is whole also where the dimension is smaller, as in LayoutTransform: i % 16 takes 16.
  Exprs box = type->dims;
  if (const Map *map = a.map(2); map->from->items.size() == box.size())
    for (const Expr *e : map->to->items) {
      auto *mod = as<Binary>(e);
      int64_t tile, size;
      if (!mod || mod->op != Op::Mod || !int_value(mod->b, &tile)) continue;
      size_t d = 0;
      box = edit_all(b, box, [&](const Expr *&x) {
        if (equal(map->from->items[d++], mod->a) && int_value(x, &size) && size < tile) x = mod->b;
      });
    }
  Layout l = layout_of(s, a, 2, box, name);
  l.inverse.onto &= equal(box, type->dims);
  const Expr *value = a.attr("pad_value");
  if (value) {
    int64_t whole;
    DType t = type->elem;
    if (is_float(t) && int_value(value, &whole)) value = b.number(double(whole), t);
    Kind wanted = is_float(t) ? Kind::Float : t == DType::Bool ? Kind::Bool : Kind::Int;
    if (value->kind != wanted)
      bad_step(value->at, "{} holds {}: expected a literal of it, found {}", name, dtype_name(t), s.text(value));
  }
  if (!l.inverse.onto && !value) {
    std::string image;
    for (const Expr *e : l.inverse.image)
      image += (image.empty() ? "" : ", ") + s.text(e);
    throw Refused{n->stmt->at, fmt::format("[{}] has more elements than {}: say what the others hold", image, name),
                  fmt::format("transform_layout({}, {}, {}) {{pad_value = 0.0}}", block, name, s.text(l.map))};
  }
  if (l.inverse.onto) value = nullptr;
  if (Place *alloc = s.alloc_of(buffer); alloc && to<Alloc>(alloc->stmt).base)
    refuse(alloc, "{} stands in {}: its layout is given", name, s.text(to<Alloc>(alloc->stmt).base));
  const Type *changed =
      b.type({type->elem, true, type->scope, type->device, type->device_index, b.list(l.inverse.image), {}});
  Exprs old = type->dims;
  const Func &f = *s.original();
  LayoutChange change{false, 0, l.map, l.inverse.map, type, changed, type};
  bool outside = false;
  for (size_t i = 0; i < f.params.size(); i++) {
    if (f.params[i].def.name != buffer) continue;
    if (f.params[i].mode != Mode::In)
      throw Refused{f.params[i].def.at, fmt::format("{} is read and written in place by the callers", name),
                    fmt::format("cache_inplace({}, {}, global), and the layout of the copy", block, name)};
    outside = true, change.index = i;
    if (value && !(value->kind == Kind::Float && to<Float>(value).value == 0 && !to<Float>(value).nan_bits) &&
        !is_int(value, 0))
      bad_step(value->at, "{} is a parameter, and its callers pad with 0", name);
  }
  for (size_t i = 0; i < f.results.size(); i++)
    if (f.results[i].name == buffer) outside = true, change.result = true, change.index = i;
  move_accesses(s, buffer, *l.map);
  s.set_type(buffer, changed);
  if (value && (!outside || change.result)) pad(s, buffer, l, old, value);
  if (!outside) return;
  // Dimensions must still follow from the arguments.
  const Func &g = *s.original();
  for (Sym d : g.dims) {
    bool plain = false;
    for (const Param &p : g.params)
      for (const Expr *e : p.def.type->dims)
        if (auto *x = as<Name>(e)) plain |= x->name == d;
    if (!plain && any_mentions(old, d))
      refuse(f.at, "the size {} of {} would follow from no argument of @{}", s.text(d), name, s.text(f.name));
  }
  if (change.result && value) {  // the inverse image of all of the new box, of which the old one is the beginning
    Known known(s, s.tree.root());
    std::vector<const Expr *> padded;
    for (const Expr *e : l.inverse.map->to->items) {
      std::vector<Iter> iters;
      for (size_t d = 0; d < l.names.size(); d++)
        iters.push_back({l.names[d], l.inverse.image[d], kNowhere});
      auto span = span_of(b, e, b.list(iters), known);
      if (!span || !is_int(simplify(b, span->lo, known), 0)) refuse(n, "the callers could not take {} apart", name);
      padded.push_back(simplify(b, span->extent, known));
    }
    change.padded = b.with_dims(type, b.list(padded));
  }
  s.layouts.push_back(change);
}

// for i in n, for j in 16 { block c { x in n = i, y in 16 = j } }  with [x, y] -> [x * 16 + y]
// ->  for i in n * 16 { block c { v in n * 16 = i, with v // 16 for x and v % 16 for y } }
void transform_block_layout(State &s, Args &a) {
  a.expect_results(0, 0);
  Build &b = s.b;
  Place *n = a.block(0);
  const Block k = *n->block();
  std::string block = s.text(k.name);
  if (n->nest) refuse(n, "block {} holds blocks", block);
  if (has_scan(k)) refuse(n, "block {} scans in order", block);
  std::vector<const Expr *> extents;
  for (const Axis &x : k.axes)
    extents.push_back(x.domain);
  Layout l = layout_of(s, a, 1, b.list(extents), "block " + block);
  if (!l.inverse.onto)
    throw Refused{n->stmt->at, fmt::format("{} has turns that block {} has not", s.text(l.map), block), ""};
  // Its loops: one for each axis, none for an axis of one turn, nothing beside.
  Place *top = n;
  std::vector<bool> seen(k.axes.size());
  if (k.guard) refuse(n, "block {} has a guard: its loops were split already", block);
  for (size_t left = k.axes.size(); left > 0;) {
    for (size_t d = 0; d < k.axes.size(); d++)
      if (!seen[d] && is_int(k.axes[d].binding, 0) && is_int(k.axes[d].domain, 1)) seen[d] = true, left--;
    if (left == 0) break;
    Place *up = top->up;
    auto *f = up ? up->loop() : nullptr;
    std::string missing;
    for (size_t d = 0; d < k.axes.size(); d++)
      if (!seen[d]) missing = s.text(k.axes[d].name);
    if (!f || up->kids[0].size() != 1)
      refuse(up && up->stmt ? up : n, "axis {} of block {} has no loop that holds nothing else", missing, block);
    bool found = false;
    for (size_t d = 0; d < k.axes.size(); d++) {
      auto *v = as<Name>(k.axes[d].binding);
      if (seen[d] || !v || v->name != f->iter.name || !equal(f->iter.extent, k.axes[d].domain)) continue;
      seen[d] = found = true, left--;
      break;
    }
    if (!found)
      refuse(up, "{} is not the loop of an axis of block {}: change the layout first, then split, fuse and reorder",
             s.name_of(up), block);
    if (f->loop != LoopKind::Serial) refuse(up, "{} is {} already", s.name_of(up), kind_name(*f));
    top = up;
  }
  std::vector<Axis> axes, hidden;  // hidden: names that the body defines
  for (Stmts body : {k.inits, k.body})
    each_stmt(body, [&](const Stmt *st) {
      auto hide = [&](Sym v) { hidden.push_back({AxisKind::Spatial, v, kNowhere, nullptr, nullptr}); };
      if (auto *x = as<Let>(st))
        for (const Def &d : x->defs)
          hide(d.name);
      if (auto *x = as<For>(st)) hide(x->iter.name);
    });
  std::vector<Iter> loops;
  std::vector<Sym> taken;
  Substitution to_new;
  for (size_t d = 0; d < l.names.size(); d++) {
    const Expr *e = l.map->to->items[d];
    std::optional<AxisKind> kind;
    std::string name;
    for (size_t x = 0; x < k.axes.size(); x++) {
      if (!mentions(e, to<Name>(l.map->from->items[x]).name)) continue;
      if (kind && *kind != k.axes[x].kind) refuse(n, "{} mixes spatial and reduce axes of block {}", s.text(e), block);
      kind = k.axes[x].kind;
      name += (name.empty() ? "" : "_") + s.text(to<Name>(l.map->from->items[x]).name);
    }
    std::vector<Axis> beside = axes;
    beside.insert(beside.end(), hidden.begin(), hidden.end());
    Sym v = axis_name(s, name.empty() ? "one" : name, beside);
    Sym loop = s.loop_name_inside(top->up, s.text(v), taken);
    taken.push_back(loop);
    axes.push_back({kind.value_or(AxisKind::Spatial), v, kNowhere, l.inverse.image[d], b.name(loop)});
    loops.push_back({loop, l.inverse.image[d], kNowhere});
    to_new[l.names[d]] = b.name(v);
  }
  Substitution names;
  Known known(s, n);
  for (const Axis &x : axes)
    known.bounds.range(x.name, x.domain);
  for (size_t x = 0; x < k.axes.size(); x++)
    names[k.axes[x].name] = simplify(b, substitute(b, l.inverse.map->to->items[x], to_new), known);
  Block now = k;
  auto in = [&](Stmts body) {
    body = substitute(b, body, names);
    return rewrite_exprs(b, body, [&](const Expr *e) -> const Expr * {
      auto *load = as<Load>(e);
      if (!load) return e;
      Exprs index = edit_all(b, load->index, [&](const Expr *&i) {
        if (i->kind != Kind::All && i->kind != Kind::Range) i = simplify(b, i, known);
      });
      return index.data() == load->index.data() ? e : b.load(load->buffer, index, load->at, load->global);
    });
  };
  now.axes = b.list(axes), now.inits = in(k.inits), now.body = in(k.body);
  auto regions = [&](std::span<const Load *const> r) {
    return edit_all(b, r,
                    [&](const Load *&x) { x = b.load(x->buffer, substitute(b, x->index, names), x->at, x->global); });
  };
  now.reads = regions(k.reads), now.writes = regions(k.writes);
  auto [outer, inner] = s.nest(loops, b.make(now));
  outer->stmt = outer->loop() && top->loop()
                    ? edited(b, to<For>(outer->stmt), [&](For &f) { f.comment = top->stmt->comment; })
                    : outer->stmt;
  s.tree.replace(top, outer);
  for (auto &[name, h] : s.handles)
    if (h.node == n) h.node = inner;
}

}  // namespace mlc
