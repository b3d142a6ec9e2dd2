// Operators whose indices are data. An index outside is a run-time error, so an `assume` stands before each access:
//   id: index = index(ids[i])
//   r: index = where(id < 0, id + v, id)
//   assume r >= 0 && r < v
//   y[i, j] = x[r, j]
#include <algorithm>

#include "ops/rules.h"

namespace mlc {

namespace {
using Body = Define::Body;

Indices head(const Indices &i, size_t n) { return slice(i, 0, n); }
Indices tail(const Indices &i, size_t n) { return slice(i, n, i.size()); }
std::string repeat(char c, size_t n) { return std::string(n, c); }
}  // namespace

// ---- Gather: y[a.., ids.., b..] = x[a.., ids[..], b..]

std::vector<Dims> gather_shape(OpUse &u) {
  size_t axis = size_t(u.axis("axis", u.rank(0)));
  Dims x = u.dims(0);
  return {concat(concat(head(x, axis), u.dims(1)), tail(x, axis + 1))};
}
void gather(Define &d) {
  Tensor x = d.in(0), y = d.out();
  size_t axis = size_t(d.axis("axis", x.rank())), n = d.rank(1);
  X extent = x.dims[axis];
  auto at = [&](const Indices &i, X r) { return concat(concat(head(i, axis), {r}), tail(i, axis + n)); };
  auto known = d.values(1);
  int64_t r, size;
  if (known && n == 0 && is_const((*known)[0], &r) && is_const(extent, &size) && r >= -size && r < size)
    return d.compute(y, [&](const Indices &i) { return x(at(i, d.lit(r < 0 ? r + size : r))); });
  Tensor ids = d.in(1);
  d.block("gather", y.dims, "", [&](Body &body, const Indices &i) {
    body.store(y, i, x(at(i, body.index("r", ids(slice(i, axis, axis + n)), extent))));
  });
}

std::vector<Dims> gather_elements_shape(OpUse &u) {
  u.axis("axis", u.rank(0));
  if (u.rank(0) != u.rank(1)) u.fail(fmt::format("inputs of rank {} and {}", u.rank(0), u.rank(1)));
  return {u.dims(1)};
}
void gather_elements(Define &d) {
  Tensor x = d.in(0), ids = d.in(1), y = d.out();
  size_t axis = size_t(d.axis("axis", x.rank()));
  d.block("gather", y.dims, "", [&](Body &body, const Indices &i) {
    Indices at = i;
    at[axis] = body.index("r", ids(i), x.dims[axis]);
    body.store(y, i, x(at));
  });
}

// ---- GatherND: ids[batch.., outer.., q]; the last dimension holds the first q indices behind the batch

namespace {
size_t index_length(const OpUse &u, size_t input) {
  Dims ids = u.dims(input);
  int64_t q;
  if (ids.empty() || !is_const(ids.back(), &q))
    u.lack("the last dimension of the indices must be known when compiling");
  return size_t(q);
}
// The q checked indices of a row of ids.
Indices row_of(Body &body, const Tensor &ids, const Indices &row, const Dims &x, size_t from, size_t q) {
  Indices at;
  for (size_t k = 0; k < q; ++k)
    at.push_back(body.index("r", ids(concat(row, {lit(*ids.b, int64_t(k))})), x[from + k]));
  return at;
}
}  // namespace

std::vector<Dims> gather_nd_shape(OpUse &u) {
  int64_t batch = u.attr_int("batch_dims");
  size_t q = index_length(u, 1);
  Dims x = u.dims(0), ids = u.dims(1);
  if (batch < 0 || size_t(batch) >= std::min(x.size(), ids.size()) || size_t(batch) + q > x.size())
    u.fail(fmt::format("{} indices behind {} batch dimensions of an input of rank {}", q, batch, x.size()));
  for (size_t k = 0; k < size_t(batch); ++k) u.assume_equal(ids[k], x[k], fmt::format("batch dimension {}", k));
  return {concat(head(ids, ids.size() - 1), tail(x, size_t(batch) + q))};
}
void gather_nd(Define &d) {
  Tensor x = d.in(0), ids = d.in(1), y = d.out();
  size_t batch = size_t(d.attr_int("batch_dims")), q = index_length(d, 1), outer = ids.rank() - 1;
  d.block("gather", y.dims, "", [&](Body &body, const Indices &i) {
    Indices at = row_of(body, ids, head(i, outer), x.dims, batch, q);
    body.store(y, i, x(concat(concat(head(i, batch), at), tail(i, outer))));
  });
}

// ---- Scatter*: a copy, then the updates in row-major order; the last one wins, or all are combined

namespace {
X combined(const std::string &reduction, X old, X value) {
  if (reduction == "add") return old + value;
  if (reduction == "mul") return old * value;
  if (reduction == "max") return max(old, value);
  if (reduction == "min") return min(old, value);
  return value;
}
void check_reduction(const OpUse &u) {
  std::string r = u.attr_str("reduction");
  if (u.elem(0) == DType::Str && r != "none") u.fail("strings cannot be reduced");
  if (r != "none" && r != "add" && r != "mul" && r != "max" && r != "min")
    u.fail(fmt::format("unknown reduction \"{}\"", r));
}
}  // namespace

std::vector<Dims> scatter_elements_shape(OpUse &u) {
  check_reduction(u);
  u.axis("axis", u.rank(0));
  Dims ids = u.dims(1), updates = u.dims(2);
  if (ids.size() != u.rank(0) || updates.size() != ids.size()) u.fail("inputs of different rank");
  for (size_t k = 0; k < ids.size(); ++k)
    u.assume_equal(updates[k], ids[k], fmt::format("dimension {} of the updates", k));
  return {u.dims(0)};
}
void scatter_elements(Define &d) {
  Tensor x = d.in(0), ids = d.in(1), updates = d.in(2), y = d.out();
  size_t axis = size_t(d.axis("axis", x.rank()));
  std::string reduction = d.attr_str("reduction"), kinds = repeat('p', x.rank());
  kinds[axis] = 's';
  d.compute(y, [&](const Indices &i) { return x(i); });
  d.block("scatter", ids.dims, kinds, [&](Body &body, const Indices &i) {
    Indices at = i;
    at[axis] = body.index("r", ids(i), x.dims[axis]);
    body.store(y, at, combined(reduction, y(at), updates(i)));
  });
}

std::vector<Dims> scatter_nd_shape(OpUse &u) {
  check_reduction(u);
  size_t q = index_length(u, 1);
  Dims x = u.dims(0), ids = u.dims(1), updates = u.dims(2);
  if (q > x.size()) u.fail(fmt::format("{} indices for an input of rank {}", q, x.size()));
  Dims want = concat(head(ids, ids.size() - 1), tail(x, q));
  if (want.size() != updates.size())
    u.fail(fmt::format("updates of rank {}, expected {}", updates.size(), want.size()));
  for (size_t k = 0; k < want.size(); ++k)
    u.assume_equal(updates[k], want[k], fmt::format("dimension {} of the updates", k));
  return {x};
}
void scatter_nd(Define &d) {
  Tensor x = d.in(0), ids = d.in(1), updates = d.in(2), y = d.out();
  size_t q = index_length(d, 1), outer = ids.rank() - 1;
  std::string reduction = d.attr_str("reduction");
  d.compute(y, [&](const Indices &i) { return x(i); });
  d.block("scatter", updates.dims, repeat('s', outer) + repeat('p', updates.rank() - outer),
          [&](Body &body, const Indices &i) {
            Indices at = concat(row_of(body, ids, head(i, outer), x.dims, 0, q), tail(i, outer));
            body.store(y, at, combined(reduction, y(at), updates(i)));
          });
}

// ---- OneHot: inputs indices, depth, values [off, on]; an index outside has no 1

std::vector<Dims> one_hot_shape(OpUse &u) {
  Dims y = u.dims(0);
  X n = u.need_value(1);
  if (auto *f = as<Float>(n.e)) n = u.lit(whole(u, f->value));
  y.insert(y.begin() + u.axis("axis", y.size() + 1), n);
  return {y};
}
void one_hot(Define &d) {
  Tensor ids = d.in(0), values = d.in(2), y = d.out();
  size_t axis = size_t(d.axis("axis", y.rank()));
  constexpr DType i64 = DType::I64;
  d.compute(y, [&](const Indices &i) {
    Indices at = i;
    at.erase(at.begin() + axis);
    X id = as_type(ids(at), ids.elem(), i64), k = cast(i64, i[axis]), n = cast(i64, y.dims[axis]);
    return where(id == k || id == k - n, values({d.lit(1)}), values({d.lit(0)}));
  });
}

// ---- ReverseSequence: the first lens[b] elements of time come in reverse

std::vector<Dims> reverse_sequence_shape(OpUse &u) {
  if (u.rank(0) < 2) u.fail("expected at least 2 dimensions");
  if (u.axis("time_axis", u.rank(0)) == u.axis("batch_axis", u.rank(0)))
    u.fail("time_axis and batch_axis are the same");
  if (u.rank(1) != 1) u.fail("input 1 (lens): expected a vector");
  u.assume_equal(u.dim(1, 0), u.dim(0, size_t(u.axis("batch_axis", u.rank(0)))), "length of the sequence lengths");
  return {u.dims(0)};
}
void reverse_sequence(Define &d) {
  Tensor x = d.in(0), lens = d.in(1), y = d.out();
  size_t time = size_t(d.axis("time_axis", x.rank())), batch = size_t(d.axis("batch_axis", x.rank()));
  d.block("reverse", y.dims, "", [&](Body &body, const Indices &i) {
    X len = body.let("len", DType::Index, cast(DType::Index, lens({i[batch]})));
    body.assume(len >= 0 && len <= x.dims[time]);
    Indices at = i;
    at[time] = body.let("r", DType::Index, where(i[time] < len, len - 1 - i[time], i[time]));
    body.assume(at[time] >= 0);
    body.store(y, i, x(at));
  });
}

// ---- TopK: the rank of an element is the number of those before it; NaN ranks above +inf, equal ones by their index

std::vector<Dims> top_k_shape(OpUse &u) {
  X k = u.need_value(1);
  size_t axis = size_t(u.axis("axis", u.rank(0)));
  Dims y = u.dims(0);
  int64_t n, c;
  if (is_const(k, &c) && is_const(y[axis], &n) && (c < 0 || c > n))
    u.fail(fmt::format("k is {}, the axis has {}", c, n));
  if (!is_const(k, &c) || !is_const(y[axis], &n)) u.assume(k <= y[axis]);
  y[axis] = k;
  return {y, y};
}
void top_k(Define &d) {
  Tensor x = d.in(0);
  size_t axis = size_t(d.axis("axis", x.rank()));
  bool largest = d.attr_int("largest");
  DType t = x.elem();
  X k = d.need_value(1);
  Tensor rank = d.make("rank", DType::I64, x.dims, [&](const Indices &i) {
    return d.reduce("sum", {x.dims[axis]}, [&](const Indices &r) {
      Indices other = i;
      other[axis] = r[0];
      X a = x(other), v = x(i), first = r[0] < i[axis];
      X before = largest ? a > v : a < v, same = a == v && first;
      if (is_float(t)) {
        X nan_a = is_nan(a, t), nan_v = is_nan(v, t);
        before = largest ? before || (nan_a && !nan_v) : before || (!nan_a && nan_v);
        same = same || (nan_a && nan_v && first);
      }
      return cast(DType::I64, before || same);
    });
  });
  std::string kinds = repeat('p', x.rank());
  kinds[axis] = 's';
  d.block("top", x.dims, kinds, [&](Body &body, const Indices &i) {
    Indices at = i;
    at[axis] = body.let("r", DType::Index, cast(DType::Index, rank(i)));
    body.assume(at[axis] >= 0);
    body.when(at[axis] < k, [&](Body &then) {
      if (d.wants(0)) then.store(d.out(0), at, x(i));
      if (d.wants(1)) then.store(d.out(1), at, cast(DType::I64, i[axis]));
    });
  });
}

// ---- sizes that are data

// The number of elements that are not zero, and their indices, one a column.
static X not_zero(X v, DType t) { return t == DType::Bool ? v : v != zero(*v.b, t); }
std::vector<Dims> non_zero_shape(OpUse &u) {
  u.most = product(u.b, u.dims(0));
  return {{}, {u.lit(int64_t(u.rank(0))), u.result_size(0)}};
}
void non_zero_count(Define &d) {
  Tensor x = d.in(0);
  d.compute(d.out(), [&](const Indices &) {
    return d.reduce("sum", x.dims, [&](const Indices &i) { return cast(DType::I64, not_zero(x(i), x.elem())); });
  });
}

// Running counts of what `picked` says, over n elements in order; f gets those picked with their place from 0.
static void pick(Define &d, X n, const std::function<X(X)> &picked, const std::function<void(Body &, X, X)> &f) {
  constexpr DType i64 = DType::I64;
  Tensor count = d.temp(i64, {n}, "count");
  d.block("pick", {n}, "s", [&](Body &body, const Indices &i) {
    X t = i[0], hit = picked(t);
    body.store(count, {t}, where(t == 0, lit(d.b, int64_t{0}), count({t - 1})) + cast(i64, hit));
    body.when(hit, [&](Body &then) {
      X at = then.let("r", DType::Index, cast(DType::Index, count({t})) - 1);
      f(then, t, at);
    });
  });
}
void non_zero(Define &d) {
  Tensor x = d.in(0), y = d.out(1);
  auto at = [&](X t) { return x.rank() ? unflatten(t, x.dims) : Indices{}; };
  pick(d, product(d.b, x.dims), [&](X t) { return not_zero(x(at(t)), x.elem()); },
       [&](Body &body, X t, X place) {
         body.assume(place >= 0 && place < y.dims[1]);
         Indices i = at(t);
         for (size_t k = 0; k < i.size(); ++k) body.store(y, {d.lit(int64_t(k)), place}, cast(DType::I64, i[k]));
       });
}

// Compress: the slices of an axis (or elements of x flattened) whose condition is true; missing conditions are false.
std::vector<Dims> compress_shape(OpUse &u) {
  if (u.rank(1) != 1) u.fail("input 1 (condition): expected a vector");
  u.most = u.dim(1, 0);
  if (!u.has_attr("axis")) return {{}, {u.result_size(0)}};
  Dims y = u.dims(0);
  y[size_t(u.axis("axis", y.size()))] = u.result_size(0);
  return {{}, y};
}
void compress_count(Define &d) {
  Tensor c = d.in(1);
  d.compute(d.out(), [&](const Indices &) {
    return d.reduce("sum", c.dims, [&](const Indices &i) { return cast(DType::I64, c(i)); });
  });
}
void compress(Define &d) {
  Tensor x = d.in(0), c = d.in(1), y = d.out(1);
  bool flat = !d.has_attr("axis");
  size_t axis = flat ? 0 : size_t(d.axis("axis", x.rank()));
  constexpr DType i64 = DType::I64;
  Tensor from = d.temp(i64, {y.dims[axis]}, "source");
  pick(d, c.dims[0], [&](X t) { return c({t}); },
       [&](Body &body, X t, X place) {
         body.assume(place >= 0 && place < y.dims[axis]);
         body.store(from, {place}, cast(i64, t));
       });
  X n = flat ? product(d.b, x.dims) : x.dims[axis];
  d.block("compress", y.dims, "", [&](Body &body, const Indices &i) {
    X r = body.index("r", from({i[axis]}), n, false);
    if (flat) return body.store(y, i, x(unflatten(r, x.dims)));
    Indices at = i;
    at[axis] = r;
    body.store(y, i, x(at));
  });
}

}  // namespace mlc
