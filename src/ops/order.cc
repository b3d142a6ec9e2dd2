// Operators that compare elements with each other: Unique, Det's pivots.
#include "ops/rules.h"

namespace mlc {

namespace {
using Body = Define::Body;

// Items of x: its elements, or its slices along an axis. at(i, p): part p of item i.
struct Items {
  Tensor x;
  bool flat;
  size_t axis;
  X count;
  Dims parts;  // of an item; empty: it is one element
  X at(X i, const Indices &p) const {
    if (flat) return x.rank() ? x(unflatten(i, x.dims)) : x({});
    Indices index = p;
    index.insert(index.begin() + axis, i);
    return x(index);
  }
};
Items items_of(Define &d) {
  Items s{d.in(0), !d.has_attr("axis"), 0, {}, {}};
  if (s.flat) {
    s.count = product(d.b, s.x.dims);
  } else {
    s.axis = size_t(d.axis("axis", s.x.rank()));
    s.parts = s.x.dims;
    s.count = s.x.dims[s.axis];
    s.parts.erase(s.parts.begin() + s.axis);
  }
  return s;
}

X same(X a, X b, DType t) { return is_float(t) ? a == b || (is_nan(a, t) && is_nan(b, t)) : a == b; }
X less(X a, X b, DType t) {  // NaN last
  if (t == DType::Bool) return !a && b;
  return is_float(t) ? a < b || (is_nan(b, t) && !is_nan(a, t)) : a < b;
}

// For every item the first that equals it.
Tensor representatives(Define &d, const Items &s) {
  constexpr DType i64 = DType::I64;
  DType t = s.x.elem();
  return d.make("first", i64, {s.count}, [&](const Indices &i) {
    return d.reduce("min", {s.count}, [&](const Indices &j) {
      X equal = d.reduce("all", s.parts, [&](const Indices &p) { return same(s.at(i[0], p), s.at(j[0], p), t); });
      return where(equal, cast(i64, j[0]), lit(d.b, INT64_MAX));
    });
  });
}
}  // namespace

// results: size, y, indices of first occurrences, for every item its place in y, counts
std::vector<Dims> unique_shape(OpUse &u) {
  X k = u.result_size(0);
  Dims y{k};
  X n = product(u.b, u.dims(0));
  if (u.has_attr("axis")) {
    y = u.dims(0);
    size_t axis = size_t(u.axis("axis", y.size()));
    n = y[axis], y[axis] = k;
  }
  u.most = n;
  return {{}, y, {k}, {n}, {k}};
}
void unique_count(Define &d) {
  Items s = items_of(d);
  Tensor first = representatives(d, s);
  d.compute(d.out(), [&](const Indices &) {
    return d.reduce("sum", {s.count}, [&](const Indices &i) {
      return cast(DType::I64, first({i[0]}) == cast(DType::I64, i[0]));
    });
  });
}
void unique(Define &d) {
  constexpr DType i64 = DType::I64;
  Items s = items_of(d);
  DType t = s.x.elem();
  Tensor first = representatives(d, s);
  auto is_first = [&](X i) { return first({i}) == cast(i64, i); };
  bool sorted = d.attr_int("sorted");
  // The place of an item: how many different ones come before it, by value or by first occurrence.
  Tensor place = d.make("place", i64, {s.count}, [&](const Indices &i) {
    return d.reduce("sum", {s.count}, [&](const Indices &j) {
      if (!sorted) return cast(i64, is_first(j[0]) && cast(i64, j[0]) < first({i[0]}));
      X before;
      if (s.parts.empty()) before = less(s.at(j[0], {}), s.at(i[0], {}), t);
      else
        before = d.reduce("any", s.parts, [&](const Indices &p) {  // less where all before is equal
          X here = less(s.at(j[0], p), s.at(i[0], p), t);
          X lead = d.reduce("all", s.parts, [&](const Indices &q) {
            return flatten(q, s.parts) >= flatten(p, s.parts) || same(s.at(j[0], q), s.at(i[0], q), t);
          });
          return here && lead;
        });
      return cast(i64, is_first(j[0]) && before);
    });
  });
  if (d.wants(3)) d.compute(d.out(3), [&](const Indices &i) { return place(i); });
  X k = d.wants(1) ? d.out(1).dims[s.flat ? 0 : s.axis] : d.wants(2) ? d.out(2).dims[0] : d.out(4).dims[0];
  if (d.wants(4)) d.compute(d.out(4), [&](const Indices &) { return d.lit(0); });
  if (d.wants(2) || d.wants(4))
    d.block("pick", {s.count}, "s", [&](Body &body, const Indices &i) {
      X at = body.index("r", place(i), k, false);
      if (d.wants(2)) body.when(is_first(i[0]), [&](Body &b) { b.store(d.out(2), {at}, cast(i64, i[0])); });
      if (d.wants(4)) body.store(d.out(4), {at}, d.out(4)({at}) + 1);
    });
  if (!d.wants(1)) return;
  Tensor y = d.out(1);
  Dims domain = s.flat ? Dims{s.count} : s.x.dims;
  d.block("take", domain, std::string(domain.size(), 's'), [&](Body &body, const Indices &i) {
    X item = i[s.flat ? 0 : s.axis], at = body.index("r", place({item}), k, false);
    Indices to = i, parts = i;
    to[s.flat ? 0 : s.axis] = at;
    parts.erase(parts.begin() + (s.flat ? 0 : s.axis));
    body.when(is_first(item), [&](Body &b) { b.store(y, to, s.at(item, parts)); });
  });
}

// ---- Det: elimination with the largest pivot of each column

std::vector<Dims> det_shape(OpUse &u) {
  Dims x = u.dims(0);
  if (x.size() < 2) u.fail(fmt::format("expected at least 2 dimensions, found {}", x.size()));
  u.assume_equal(x[x.size() - 1], x[x.size() - 2], "columns of the matrices");
  return {slice(x, 0, x.size() - 2)};
}
void det(Define &d) {
  constexpr DType i64 = DType::I64;
  Tensor x = d.in(0), y = d.out();
  DType t = x.elem(), wide = accumulator(t);
  X n = x.dims.back(), none = zero(d.b, wide);
  Tensor a = d.make("a", wide, x.dims, [&](const Indices &i) { return as_type(x(i), t, wide); });
  d.block("eliminate", y.dims, "", [&](Body &body, const Indices &i) {
    auto at = [&](X row, X column) { return concat(i, {row, column}); };
    Tensor det = body.local("det", wide, one(d.b, wide));
    body.loop(n, [&](Body &step, X c) {
      Tensor pivot = step.local("pivot", i64, cast(i64, c));
      step.loop(n, [&](Body &b, X r) {
        X so_far = b.index("so_far", pivot({}), n, false);
        b.when(r > c && call("abs", {a(at(r, c))}) > call("abs", {a(at(so_far, c))}),
               [&](Body &better) { better.store(pivot, {}, cast(i64, r)); });
      });
      X p = step.index("p", pivot({}), n, false);
      step.when(p != c, [&](Body &swap) {
        swap.loop(n, [&](Body &b, X k) {
          X held = b.let("held", wide, a(at(c, k)));
          b.store(a, at(c, k), a(at(p, k)));
          b.store(a, at(p, k), held);
        });
        swap.store(det, {}, -det({}));
      });
      step.store(det, {}, det({}) * a(at(c, c)));
      step.when(a(at(c, c)) != none, [&](Body &b) {
        b.loop(n, [&](Body &row, X r) {
          row.when(r > c, [&](Body &below) {
            X factor = below.let("factor", wide, a(at(r, c)) / a(at(c, c)));
            below.loop(n, [&](Body &e, X k) { e.store(a, at(r, k), a(at(r, k)) - factor * a(at(c, k))); });
          });
        });
      });
    });
    body.store(y, i, as_type(det({}), wide, t));
  });
}

}  // namespace mlc
