// Reductions: Reduce* (most are a line of the table), ArgMax, ArgMin, running sums.
#include <algorithm>

#include "ops/rules.h"

namespace mlc {

std::vector<size_t> normal_axes(const OpUse &u, const std::vector<int64_t> &axes, size_t rank) {
  std::vector<size_t> list;
  for (int64_t a : axes) {
    size_t k = size_t(u.axis(a, rank));
    if (std::find(list.begin(), list.end(), k) != list.end()) u.fail(fmt::format("axis {} is named twice", a));
    list.push_back(k);
  }
  return list;
}

namespace {

struct Reduced {
  std::vector<bool> gone;  // by axis of the input
  bool keep;
};

Reduced reduced_of(OpUse &u) {
  size_t rank = u.rank(0);
  std::vector<int64_t> axes;
  if (u.has(1)) axes = u.need_ints(1);
  Reduced r{std::vector<bool>(rank, axes.empty() && !u.attr_int("noop_with_empty_axes")), u.attr_int("keepdims") != 0};
  for (size_t k : normal_axes(u, axes, rank)) r.gone[k] = true;
  return r;
}

Dims kept(OpUse &u, const Dims &x, const std::vector<bool> &gone, bool keep) {
  Dims y;
  for (size_t k = 0; k < x.size(); ++k)
    if (!gone[k]) y.push_back(x[k]);
    else if (keep) y.push_back(u.lit(1));
  return y;
}

// The input's index for the result's index i and the indices r of the axes that are gone.
Indices whole(const std::vector<bool> &gone, bool keep, const Indices &i, const Indices &r) {
  Indices at;
  size_t from_i = 0, from_r = 0;
  for (bool g : gone) {
    at.push_back(g ? r[from_r++] : i[from_i]);
    from_i += !g || keep;
  }
  return at;
}

Dims over_of(const Tensor &x, const std::vector<bool> &gone) {
  Dims over;
  for (size_t k = 0; k < gone.size(); ++k)
    if (gone[k]) over.push_back(x.dims[k]);
  return over;
}

}  // namespace

std::vector<Dims> reduce_shape(OpUse &u) {
  Reduced r = reduced_of(u);
  return {kept(u, u.dims(0), r.gone, r.keep)};
}

// The table's expression: a reduction of one argument runs over the axes that go, `count` is the number of its terms.
void reduce(Define &d) {
  const Expr *e = read_expression(d);
  Reduced r = reduced_of(d);
  Tensor x = d.in(0), y = d.out();
  DType t = x.elem();
  bool exact = d.op.expression == "max(x)" || d.op.expression == "min(x)";
  DType number = exact ? t : accumulator(t);
  Dims over = over_of(x, r.gone);
  d.compute(y, [&](const Indices &i) {
    Template outer{d, number, {}, {}};
    outer.name = [&](std::string_view s) {
      if (s != "count") d.fail(fmt::format("the table's expression of {}: '{}' outside a reduction", d.op.name, s));
      X n = product(d.b, over);
      int64_t c;
      return is_const(n, &c) ? lit(d.b, double(c), number) : cast(number, n);
    };
    outer.reduction = [&](std::string_view kind, const Expr *term) {
      if (t == DType::Bool) kind = kind == "max" ? "any" : "all";
      return d.reduce(kind, over, [&](const Indices &k) {
        Template inner{
            d, number, [&](std::string_view) { return as_type(x(whole(r.gone, r.keep, i, k)), t, number); }, {}};
        return inner(term);
      });
    };
    return as_type(outer(e), number, t);
  });
}

// log(sum(exp(x))) with the maximum m taken out: m + log(sum(exp(x - m))), m itself if it is infinite.
void reduce_log_sum_exp(Define &d) {
  Reduced r = reduced_of(d);
  Tensor x = d.in(0), y = d.out();
  DType t = x.elem(), wide = is_int(t) ? DType::F64 : accumulator(t);
  Dims over = over_of(x, r.gone);
  Tensor m = d.make("m", wide, y.dims, [&](const Indices &i) {
    return as_type(d.reduce("max", over, [&](const Indices &k) { return x(whole(r.gone, r.keep, i, k)); }), t, wide);
  });
  d.compute(y, [&](const Indices &i) {
    X shift = where(call("isinf", {m(i)}), zero(d.b, wide), m(i));
    X s = d.reduce("sum", over, [&](const Indices &k) {
      return call("exp", {as_type(x(whole(r.gone, r.keep, i, k)), t, wide) - shift});
    });
    return as_type(shift + call("log", {s}), wide, t);
  });
}

// ---- ArgMax, ArgMin: the first (or last) index of the extreme, or of a NaN

static Reduced arg_of(OpUse &u) {
  Reduced r{std::vector<bool>(u.rank(0)), u.attr_int("keepdims") != 0};
  r.gone[size_t(u.axis("axis", u.rank(0)))] = true;
  return r;
}
std::vector<Dims> arg_shape(OpUse &u) {
  if (u.rank(0) == 0) u.fail("expected at least one dimension");
  Reduced r = arg_of(u);
  int64_t n;
  if (is_const(u.dim(0, size_t(u.axis("axis", u.rank(0)))), &n) && n == 0)
    u.fail("the axis is empty: there is no index");
  return {kept(u, u.dims(0), r.gone, r.keep)};
}
void arg_extreme(Define &d) {
  Reduced r = arg_of(d);
  Tensor x = d.in(0), y = d.out();
  DType t = x.elem();
  bool last = d.attr_int("select_last_index");
  Dims over = over_of(x, r.gone);
  Tensor m = d.make("m", t, y.dims, [&](const Indices &i) {
    return d.reduce(d.op.name == "ArgMax" ? "max" : "min", over,
                    [&](const Indices &k) { return x(whole(r.gone, r.keep, i, k)); });
  });
  d.compute(y, [&](const Indices &i) {
    return d.reduce(last ? "max" : "min", over, [&](const Indices &k) {
      X v = x(whole(r.gone, r.keep, i, k));
      return where(v == m(i) || is_nan(v, t), cast(DType::I64, k[0]), lit(d.b, last ? int64_t{-1} : INT64_MAX));
    });
  });
}

// ---- CumSum, CumProd: turns of the axis in order

std::vector<Dims> cumulative_shape(OpUse &u) {
  if (u.rank(1) > 1) u.fail("input 1 (axis): expected a scalar");
  u.axis(u.need_int(1), u.rank(0));
  return {u.dims(0)};
}
void cumulative(Define &d) {
  size_t axis = size_t(d.axis(d.need_int(1), d.rank(0)));
  bool exclusive = d.attr_int("exclusive"), reverse = d.attr_int("reverse"), adds = d.op.name == "CumSum";
  Tensor x = d.in(0), y = d.out();
  DType t = x.elem(), wide = accumulator(t);
  Tensor sum = wide == t ? y : d.temp(wide, y.dims, "sum");
  std::string kinds(x.rank(), 'p');
  kinds[axis] = 's';
  X n = x.dims[axis], start = adds ? zero(d.b, wide) : one(d.b, wide);
  d.block("cumulative", x.dims, kinds, [&](Define::Body &body, const Indices &i) {
    auto place = [&](X turn) { return reverse ? n - 1 - turn : turn; };
    Indices at = i, before = i;
    at[axis] = place(i[axis]), before[axis] = place(i[axis] - 1);
    Indices term = exclusive ? before : at;
    X sofar = where(i[axis] == 0, start, sum(before));
    X value = as_type(x(term), t, wide);
    if (exclusive) value = where(i[axis] == 0, start, value);
    body.store(sum, at, adds ? sofar + value : sofar * value);
  });
  if (wide != t) d.compute(y, [&](const Indices &i) { return cast(t, sum(i)); });
}

}  // namespace mlc
