// Operators that are not ONNX's: copies, fills, sizes from data, changes of layout.
#include "ir/walk.h"
#include "ops/rules.h"

namespace mlc {

// Item(x): the only element as an index scalar; Match(y): the same value under a type that names parts of its shape.
// Both are read by whoever runs the graph and have no kernel.
std::vector<Dims> item_shape(OpUse &u) {
  int64_t n;
  for (X d : u.dims(0))
    if (is_const(d, &n) && n != 1) u.fail("expected one element");
  return {{}};
}
std::vector<Dims> match_shape(OpUse &u) { return {u.dims(0)}; }
void no_kernel(Define &d) { d.lack(d.op.name + " is read by whoever runs the graph, it has no kernel"); }

// Fill(v): its shape is that of the result as written.
std::vector<Dims> fill_shape(OpUse &u) {
  if (!u.wanted) u.fail("the shape of the result must be written");
  Dims y;
  for (const Expr *e : u.wanted->dims) y.emplace_back(u.b, e);
  return {y};
}
void fill(Define &d) {
  Tensor v = d.in(0);
  if (v.rank()) d.fail("expected a scalar");
  d.compute(d.out(), [&](const Indices &) { return v({}); });
}

// ---- LayoutTransform(x) {map = [i, j] -> [i // 16, j, i % 16]}: y[map(i, j)] = x[i, j], other elements are 0

namespace {

const Map &map_of(const OpUse &u) {
  auto *m = as<Map>(u.attr_value("map"));
  if (!m) u.fail("attribute 'map': expected an index map");
  if (m->from->items.size() != u.rank(0))
    u.fail(fmt::format("the map has {} indices, x has rank {}", m->from->items.size(), u.rank(0)));
  for (const Expr *e : m->from->items)
    if (e->kind != Kind::Name) u.fail("the left side of a map is a list of names");
  return *m;
}

// The largest value of an index expression whose names go up to `top`.
X largest(OpUse &u, const Expr *e, const std::unordered_map<Sym, X> &top) {
  int64_t c;
  if (int_value(e, &c)) return u.lit(c);
  if (auto *n = as<Name>(e)) {
    auto it = top.find(n->name);
    if (it != top.end()) return it->second;
  }
  if (auto *bin = as<Binary>(e)) {
    X a = largest(u, bin->a, top);
    bool literal = int_value(bin->b, &c);
    switch (bin->op) {
      case Op::Add: return a + largest(u, bin->b, top);
      case Op::Sub: if (literal) return a - c; break;
      case Op::Mul: return a * largest(u, bin->b, top);
      case Op::FloorDiv: if (literal && c > 0) return floordiv(a, c); break;
      case Op::Mod: if (literal && c > 0) return min(a, u.lit(c - 1)); break;
      default: break;
    }
  }
  u.fail("a map is made of names, + - * // % and literals");
}

}  // namespace

std::vector<Dims> layout_transform_shape(OpUse &u) {
  const Map &m = map_of(u);
  std::unordered_map<Sym, X> top;
  Dims x = u.dims(0), y;
  for (size_t k = 0; k < x.size(); ++k) top[to<Name>(m.from->items[k]).name] = x[k] - 1;
  for (const Expr *e : m.to->items) {
    int64_t c;
    auto *mod = as<Binary>(e);  // i % 16: all of 16, also where i stays below
    if (mod && mod->op == Op::Mod && int_value(mod->b, &c)) y.push_back(u.lit(c));
    else y.push_back(largest(u, e, top) + 1);
  }
  return {y};
}

void layout_transform(Define &d) {
  const Map &m = map_of(d);
  Tensor x = d.in(0), y = d.out();
  if (!provably_equal(product(d.b, x.dims), product(d.b, y.dims)))
    d.compute(y, [&](const Indices &) { return zero(d.b, y.elem()); });
  d.block("layout", x.dims, "", [&](Define::Body &body, const Indices &i) {
    Substitution names;
    for (size_t k = 0; k < i.size(); ++k) names[to<Name>(m.from->items[k]).name] = i[k].e;
    Indices at;
    for (const Expr *e : m.to->items) at.emplace_back(d.b, substitute(d.b, e, names));
    body.store(y, at, x(i));
  });
}

}  // namespace mlc
