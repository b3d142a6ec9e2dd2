// Loop nests around a block, for what a compute cannot say.
#include <algorithm>
#include <utility>

#include "ir/walk.h"
#include "ops/rules.h"

namespace mlc {

X Define::Body::let(std::string_view base, DType t, X value) {
  Sym name = d.fresh(base);
  Def def{name, kNowhere, d.b.scalar(t)};
  stmts.push_back(d.b.make(Let{{}, d.b.one(def), value.e, {}, {}}));
  return {d.b, d.b.name(name)};
}

void Define::Body::assume(X condition) {
  if (!is_truth(condition, true)) stmts.push_back(d.b.make(Assume{{}, condition.e}));
}

void Define::Body::store(const Tensor &t, const Indices &i, X value) {
  stmts.push_back(d.b.make(Store{{}, false, &to<Load>(t(i).e), value.e, {}}));
}

void Define::Body::when(X condition, const Part &f) {
  if (is_truth(condition, true)) return f(*this);
  Body inner(d);
  f(inner);
  stmts.push_back(d.b.make(If{{}, condition.e, d.b.list(inner.stmts), {}, false}));
}

void Define::Body::choose(X condition, const Part &yes, const Part &no) {
  if (auto *known = as<Bool>(condition.e)) return (known->value ? yes : no)(*this);
  Body a(d), b(d);
  yes(a), no(b);
  stmts.push_back(d.b.make(If{{}, condition.e, d.b.list(a.stmts), d.b.list(b.stmts), true}));
}

void Define::Body::loop(X extent, const std::function<void(Body &, X)> &f) {
  size_t mark = d.axes_.size();
  Indices i;
  auto iter = d.iters({extent}, d.axes_, i);
  Body inner(d);
  f(inner, i[0]);
  d.axes_.resize(mark);
  stmts.push_back(d.b.make(For{{}, LoopKind::Serial, iter[0], {}, {}, d.b.list(inner.stmts)}));
}

Tensor Define::Body::local(std::string_view base, DType t, X start) {
  Type type = *d.b.tensor(t, {});
  type.scope = d.b.sym("local");
  Sym name = d.fresh(base);
  const Type *scoped = d.b.type(type);
  stmts.push_back(d.b.make(Alloc{{}, {name, kNowhere, scoped}, {}, nullptr}));
  Tensor v = buffer(d.b, name, scoped);
  store(v, {}, start);
  return v;
}

X Define::Body::index(std::string_view base, X value, X n, bool negative) {
  X r = let(negative ? "id" : base, DType::Index, cast(DType::Index, value));
  if (negative) r = let(base, DType::Index, where(r < 0, r + n, r));
  assume(r >= 0 && r < n);
  return r;
}

namespace {

// A region that covers what a block touches of a buffer: its own axes stay, all else is the whole dimension.
class Regions {
 public:
  Regions(Build &b, const std::unordered_set<Sym> &axes) : b_(b), axes_(axes) {}
  bool exact = true;  // every index is made of axes
  std::vector<const Load *> list;
  void add(const Load *l) {
    std::vector<const Expr *> index;
    for (const Expr *e : l->index) {
      std::unordered_set<Sym> names;
      collect_names(e, names);
      bool loads = false;
      each_expr(e, [&](const Expr *x) { return loads = loads || x->kind == Kind::Load, true; });
      bool known = !loads && std::all_of(names.begin(), names.end(), [&](Sym s) { return !inner.count(s); });
      exact = exact && known;
      index.push_back(known ? e : b_.all());
    }
    const Load *region = b_.load(l->buffer, b_.list(index));
    for (const Load *r : list)
      if (equal(r, region)) return;
    list.push_back(region);
  }
  std::unordered_set<Sym> inner;  // scalars of the block

 private:
  Build &b_;
  const std::unordered_set<Sym> &axes_;
};

}  // namespace

void Define::block(std::string_view base, const Dims &domain, std::string_view kinds,
                   const std::function<void(Body &, const Indices &)> &f) {
  Indices i;
  auto loops = iters(domain, axes_, i);
  Body inner(*this);
  f(inner, i);
  std::vector<Sym> names = std::exchange(axes_, {});

  std::unordered_set<Sym> axes(names.begin(), names.end());
  Regions reads(b, axes), writes(b, axes);
  Stmts stmts = b.list(inner.stmts);
  std::unordered_set<Sym> own;  // buffers of the block itself
  each_stmt(stmts, [&](const Stmt *s) {
    auto hide = [&](Sym name) { reads.inner.insert(name), writes.inner.insert(name); };
    if (auto *let = as<Let>(s))
      for (const Def &d : let->defs) hide(d.name);
    if (auto *loop = as<For>(s)) hide(loop->iter.name);
    if (auto *alloc = as<Alloc>(s)) own.insert(alloc->def.name);
    each_expr_of(s, [&](const Expr *top) {
      each_expr(top, [&](const Expr *e) {
        if (auto *c = as<Call>(e))
          for (const Iter &i : c->iters) hide(i.name);
        return true;
      });
    });
  });
  each_stmt(stmts, [&](const Stmt *s) {
    auto *store = as<Store>(s);
    if (store && !own.count(store->target->buffer)) writes.add(store->target);
    each_expr_of(s, [&](const Expr *top) {
      each_expr(top, [&](const Expr *e) {
        if (auto *l = as<Load>(e); l && !(store && l == store->target) && !own.count(l->buffer)) reads.add(l);
        return true;
      });
    });
  });

  std::vector<Axis> list;
  for (size_t k = 0; k < loops.size(); ++k)
    list.push_back({k < kinds.size() && kinds[k] == 's' ? AxisKind::Scan : AxisKind::Spatial, names[k], kNowhere,
                    loops[k].extent, b.name(names[k])});
  Block block{};
  block.name = fresh(base);
  block.notes.from = from_;
  block.axes = b.list(list);
  if (!reads.exact || !writes.exact) block.reads = b.list(reads.list), block.writes = b.list(writes.list);
  block.body = stmts;
  const Stmt *s = b.make(block);
  for (size_t k = loops.size(); k-- > 0;) s = b.make(For{{}, LoopKind::Serial, loops[k], {}, {}, b.one(s)});
  body.push_back(s);
}

void Define::stmt(const Stmt *s) { body.push_back(s); }

}  // namespace mlc
