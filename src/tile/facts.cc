#include "tile/facts.h"

#include <algorithm>

#include "arith/affine.h"
#include "sched/combine.h"
#include "sched/regions.h"

namespace mlc {

const AxisFact *BlockFacts::axis(Sym name) const {
  for (const AxisFact &a : axes)
    if (a.name == name) return &a;
  return nullptr;
}

double BlockFacts::turns() const {
  double n = 1;
  for (const AxisFact &a : axes) n *= double(a.extent < 0 ? kUnknownExtent : a.extent);
  return n;
}

bool mentions(const Load *l, Sym axis) {
  return std::any_of(l->index.begin(), l->index.end(), [&](const Expr *e) { return mentions(e, axis); });
}

std::unordered_set<Sym> initialisers(Script &s) {
  std::unordered_set<Sym> out;
  for (Place *n : s.state().blocks())
    if (Place *start = start_of(s.state(), n)) out.insert(start->block()->name);
  return out;
}

BlockFacts facts_of(Script &s, Sym block) {
  BlockFacts f;
  Place *n = s.state().find_block(block);
  if (!n || n->nest) return f;
  const Block &k = *n->block();
  f.name = block, f.has_init = !k.inits.empty() || start_of(s.state(), n), f.guarded = k.guard;
  for (const Axis &x : k.axes) {
    int64_t extent;
    f.axes.push_back({x.name, x.kind != AxisKind::Spatial, int_value(x.domain, &extent) ? extent : -1});
    f.reduces |= x.kind != AxisKind::Spatial;
  }
  auto *st = k.body.size() == 1 ? as<Store>(k.body[0]) : nullptr;
  if (st && !st->atomic) f.target = st->target, f.value = st->value;
  each_stmt(k.body, [&](const Stmt *x) {
    rewrite_exprs(s.b, x, [&](const Expr *e) {
      auto *l = as<Load>(e);
      bool own = l && f.target && l->buffer == f.target->buffer && !l->global;
      if (l && !own && std::none_of(f.loads.begin(), f.loads.end(), [&](auto *o) { return equal(o, l); }))
        f.loads.push_back(l);
      return e;
    });
  });
  return f;
}

Along along(Script &s, const BlockFacts &f, const Load *l, Sym axis) {
  if (!mentions(l, axis)) return Along::Still;
  for (size_t d = 0; d + 1 < l->index.size(); d++)
    if (mentions(l->index[d], axis)) return Along::Strided;
  Known known(s.state(), s.state().find_block(f.name), true);
  auto a = affine(s.b, l->index.back(), s.b.one(axis), known);
  return a && is_int(a->coefs[0], 1) ? Along::Unit : Along::Strided;
}

bool passes(Script &s, const BlockFacts &f, const Load *l, size_t first) {
  size_t n = f.axes.size() - first, r = l->index.size();
  bool none = true;
  for (size_t i = first; i < f.axes.size(); i++) none &= !mentions(l, f.axes[i].name);
  if (none) return true;
  const Type *t = l->global ? nullptr : s.state().type_of_buffer(l->buffer);
  if (r < n || !t) return false;
  for (size_t i = 0; i < n; i++) {
    auto *v = as<Name>(l->index[r - n + i]);
    const AxisFact &a = f.axes[first + i];
    int64_t dim;
    if (!v || v->name != a.name) return false;
    if (i && (!int_value(t->dims[r - n + i], &dim) || dim != a.extent)) return false;
  }
  for (size_t d = 0; d + n < r; d++)
    for (size_t i = first; i < f.axes.size(); i++)
      if (mlc::mentions(l->index[d], f.axes[i].name)) return false;
  return true;
}

Sym loop_of_axis(Script &s, Sym block, Sym axis, const std::vector<Sym> &loops) {
  for (const Axis &x : s.state().find_block(block)->block()->axes) {
    auto *v = as<Name>(x.binding);
    if (x.name != axis || !v) continue;
    for (Sym l : loops)
      if (Place *n = s.place(l); n && n->loop() && n->loop()->iter.name == v->name) return l;
  }
  return {};
}

Sym epilogue_of(Script &s, const BlockFacts &reduction) {
  State &st = s.state();
  Build &b = s.b;
  Sym block = reduction.name, buffer = reduction.target->buffer;
  std::vector<Place *> users;
  if (st.alloc_of(buffer)) users = consumers(st, st.find_block(block));
  BlockFacts f = users.size() == 1 && users[0]->block() ? facts_of(s, users[0]->block()->name) : BlockFacts{};
  const Load *read = nullptr;
  size_t reads = 0;
  for (const Load *l : f.loads)
    if (!l->global && l->buffer == buffer) read = l, reads++;
  bool points = reads == 1 && f.target && !f.reduces && !f.guarded;
  if (points)
    for (const Expr *e : read->index) points &= e->kind == Kind::Name && f.axis(to<Name>(e).name);
  if (points)
    for (const AxisFact &a : f.axes) points &= a.extent == 1 || mentions(read, a.name);  // no broadcast
  const Expr *local = b.name(b.sym("local"));
  if (points) {
    s.run("set_scope", {b.name(block), b.name(buffer), local});
    return f.name;
  }
  return s.run("cache_write", {b.name(block), b.name(buffer), local}, {std::string(b.text(block)) + ".out"})[0];
}

}  // namespace mlc
