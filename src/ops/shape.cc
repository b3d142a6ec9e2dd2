// Operators that give a tensor another shape, another order of dimensions, or join and part tensors.
#include <algorithm>

#include "ops/rules.h"

namespace mlc {

Indices unflatten(X position, const Dims &dims) {
  Indices i(dims.size());
  X inner = lit(*position.b, int64_t{1});
  for (size_t k = dims.size(); k-- > 0;) {
    X q = floordiv(position, inner);
    i[k] = k ? q % dims[k] : q;
    inner = inner * dims[k];
  }
  return i;
}

X flatten(const Indices &i, const Dims &dims) {
  X p = i.at(0);
  for (size_t k = 1; k < i.size(); ++k) p = p * dims[k] + i[k];
  return p;
}

namespace {

// A product of dimensions as a constant and symbolic factors, so that equal products are seen and quotients taken.
struct Product {
  int64_t constant = 1;
  std::vector<X> factors;
  void times(X x) {
    int64_t v;
    if (is_const(x, &v)) {
      if (__builtin_mul_overflow(constant, v, &constant)) throw OpError("the number of elements overflows");
    } else if (auto *m = as<Binary>(x.e); m && m->op == Op::Mul) {
      times({*x.b, m->a}), times({*x.b, m->b});
    } else {
      factors.push_back(x);
    }
  }
  // Takes away a factor; false if it is none.
  bool drop(X x) {
    auto it = std::find_if(factors.begin(), factors.end(), [&](X f) { return provably_equal(f, x); });
    return it != factors.end() && (factors.erase(it), true);
  }
  X value(Build &b) const {
    X p = lit(b, int64_t{1});
    for (X f : factors) p = p * f;
    return p * constant;
  }
};
Product product_of(const Dims &dims) {
  Product p;
  for (X d : dims) p.times(d);
  return p;
}
bool same(const Product &p, Product q) {
  if (p.constant != q.constant || p.factors.size() != q.factors.size()) return false;
  return std::all_of(p.factors.begin(), p.factors.end(), [&](X f) { return q.drop(f); });
}

// The index in `from` of the element at index i of `to`, both row-major with equally many elements. Runs of dimensions
// with equal products are treated alone: [n, 4, 4] from [n, 16] at (i, j, k) is (i, j * 4 + k).
Indices reindex(Build &b, const Dims &from, const Dims &to, const Indices &i) {
  Indices out;
  size_t f = 0, t = 0;
  while (f < from.size() || t < to.size()) {
    Product pf, pt;
    size_t f0 = f, t0 = t;
    auto take_from = [&] { pf.times(from[f++]); };
    auto take_to = [&] { pt.times(to[t++]); };
    if (f < from.size()) take_from();
    if (t < to.size()) take_to();
    while (!same(pf, pt) && (f < from.size() || t < to.size())) {
      bool left = f < from.size(), right = t < to.size();
      bool smaller =
          pf.factors.size() == pt.factors.size() ? pf.constant < pt.constant : pf.factors.size() < pt.factors.size();
      if (left && (smaller || !right)) take_from();
      else take_to();
    }
    Dims df(from.begin() + f0, from.begin() + f), dt(to.begin() + t0, to.begin() + t);
    X zero = lit(b, int64_t{0});
    if (df.size() == 1 && dt.size() == 1) {
      out.push_back(i[t0]);
    } else if (dt.empty()) {
      out.insert(out.end(), df.size(), zero);
    } else if (!df.empty()) {
      Indices part(i.begin() + t0, i.begin() + t);
      int64_t one;
      for (size_t k = 0; k < part.size(); ++k)
        if (is_const(dt[k], &one) && one == 1) part[k] = zero;
      for (X x : unflatten(flatten(part, dt), df)) out.push_back(x);
    }
  }
  return out;
}

}  // namespace

// The same elements in another shape.
void copy_reshaped(Define &d) {
  Tensor x = d.in(0), y = d.out();
  d.compute(y, [&](const Indices &i) { return x.rank() ? x(reindex(d.b, x.dims, y.dims, i)) : x({}); });
}

std::vector<Dims> reshape_shape(OpUse &u) {
  Dims x = u.dims(0), y;
  int64_t rank;
  if (!u.values(1) && u.rank(1) == 1 && is_const(u.dim(1, 0), &rank) && u.results.size() == size_t(rank) + 1) {
    y = u.sizes_first(size_t(rank));
    u.assume_equal(product(u.b, x), product(u.b, y), "number of elements");
    return {y};
  }
  std::vector<X> want = u.need_values(1);
  bool zero_is_zero = u.attr_int("allowzero");
  Product all = product_of(x), named;
  int64_t v;
  std::optional<size_t> open;
  for (size_t k = 0; k < want.size(); ++k) {
    if (is_const(want[k], &v) && v == -1) {
      if (open) u.fail("input 1 (shape): only one dimension may be -1");
      open = k;
      y.push_back(u.lit(1));
      continue;
    }
    if (is_const(want[k], &v) && v < -1) u.fail(fmt::format("input 1 (shape): {} is no dimension", v));
    if (is_const(want[k], &v) && v == 0 && !zero_is_zero) {
      if (k >= x.size()) u.fail(fmt::format("input 1 (shape): 0 copies dimension {}, which the input has not", k));
      y.push_back(x[k]);
    } else {
      y.push_back(want[k]);
    }
    named.times(y.back());
  }
  if (!open) {
    if (!same(all, named)) u.assume_equal(all.value(u.b), named.value(u.b), "number of elements");
    return {y};
  }
  // What is left of the input's dimensions without those that are named.
  Product rest = all, divisor;
  for (X f : named.factors)
    if (!rest.drop(f)) divisor.times(f);
  if (named.constant == 0) u.fail("input 1 (shape): -1 beside a dimension of 0");
  if (rest.constant % named.constant == 0) {
    rest.constant /= named.constant;
  } else {
    if (rest.factors.empty()) u.fail(fmt::format("{} elements do not divide by {}", rest.constant, named.constant));
    divisor.constant = named.constant;
  }
  X n = rest.value(u.b), q = divisor.value(u.b);
  if (!is_const(q, &v) || v != 1) u.assume(n % q == 0);
  y[*open] = floordiv(n, q);
  return {y};
}

std::vector<Dims> flatten_shape(OpUse &u) {
  Dims x = u.dims(0);
  int64_t axis = u.attr_int("axis"), rank = int64_t(x.size());
  if (axis < -rank || axis > rank) u.fail(fmt::format("axis {} is outside the rank {}", axis, rank));
  if (axis < 0) axis += rank;
  return {{product(u.b, slice(x, 0, size_t(axis))), product(u.b, slice(x, size_t(axis), x.size()))}};
}

std::vector<Dims> squeeze_shape(OpUse &u) {
  Dims x = u.dims(0), y;
  std::vector<bool> gone(x.size());
  int64_t n;
  if (u.has(1))
    for (size_t k : normal_axes(u, u.need_ints(1), x.size())) {
      gone[k] = true;
      u.assume_equal(x[k], u.lit(1), fmt::format("squeezed dimension {}", k));
    }
  else
    for (size_t k = 0; k < x.size(); ++k) gone[k] = is_const(x[k], &n) && n == 1;
  for (size_t k = 0; k < x.size(); ++k)
    if (!gone[k]) y.push_back(x[k]);
  return {y};
}

std::vector<Dims> unsqueeze_shape(OpUse &u) {
  Dims x = u.dims(0), y;
  auto axes = u.need_ints(1);
  size_t rank = x.size() + axes.size(), next = 0;
  auto added = normal_axes(u, axes, rank);
  for (size_t k = 0; k < rank; ++k)
    y.push_back(std::find(added.begin(), added.end(), k) != added.end() ? u.lit(1) : x[next++]);
  return {y};
}

// ---- Transpose

static std::vector<size_t> perm_of(const OpUse &u) {
  size_t rank = u.rank(0);
  std::vector<int64_t> perm = u.attr_ints("perm");
  if (!u.has_attr("perm"))
    for (size_t k = rank; k-- > 0;) perm.push_back(int64_t(k));
  if (perm.size() != rank) u.fail(fmt::format("attribute 'perm': expected {} integers, found {}", rank, perm.size()));
  return normal_axes(u, perm, rank);
}
std::vector<Dims> transpose_shape(OpUse &u) {
  Dims x = u.dims(0), y;
  for (size_t k : perm_of(u)) y.push_back(x[k]);
  return {y};
}
void transpose(Define &d) {
  auto perm = perm_of(d);
  Tensor x = d.in(0);
  d.compute(d.out(), [&](const Indices &i) {
    Indices at(i.size());
    for (size_t k = 0; k < i.size(); ++k) at[perm[k]] = i[k];
    return x(at);
  });
}

// ---- Concat, Split

std::vector<Dims> concat_shape(OpUse &u) {
  Dims y = u.dims(0);
  size_t axis = size_t(u.axis("axis", y.size()));
  for (size_t n = 1; n < u.inputs(); ++n) {
    Dims x = u.dims(n);
    if (x.size() != y.size()) u.fail(fmt::format("inputs of rank {} and {}", y.size(), x.size()));
    for (size_t k = 0; k < x.size(); ++k) {
      if (k == axis) y[k] = y[k] + x[k];
      else u.assume_equal(x[k], y[k], fmt::format("dimension {} of input {}", k, n));
    }
  }
  return {y};
}
void concat_op(Define &d) {
  Tensor y = d.out();
  size_t axis = size_t(d.axis("axis", y.rank()));
  d.compute(y, [&](const Indices &i) {
    X at = lit(d.b, int64_t{0});
    std::vector<X> begin;
    for (size_t n = 0; n < d.inputs(); ++n) begin.push_back(at), at = at + d.in(n).dims[axis];
    auto part = [&](size_t n) {
      Indices own = i;
      own[axis] = i[axis] - begin[n];
      return d.in(n)(own);
    };
    // Halved, so that many inputs do not nest deeply.
    std::function<X(size_t, size_t)> among = [&](size_t from, size_t to) {
      size_t mid = from + (to - from) / 2;
      return to - from == 1 ? part(from) : where(i[axis] < begin[mid], among(from, mid), among(mid, to));
    };
    return among(0, d.inputs());
  });
}

std::vector<Dims> split_shape(OpUse &u) {
  Dims x = u.dims(0);
  size_t axis = size_t(u.axis("axis", x.size()));
  std::vector<X> sizes;
  if (u.has(1)) {
    sizes = u.need_values(1);
    X sum = u.lit(0);
    for (X s : sizes) sum = sum + s;
    u.assume_equal(x[axis], sum, "sum of the parts");
  } else {
    int64_t n = u.has_attr("num_outputs") ? u.attr_int("num_outputs") : int64_t(u.result_count());
    if (n < 1 || n > 1 << 16) u.fail(fmt::format("{} outputs", n));
    X part = ceildiv(x[axis], u.lit(n));
    for (int64_t k = 0; k + 1 < n; ++k) sizes.push_back(part);
    sizes.push_back(x[axis] - part * (n - 1));  // the last may be smaller
    int64_t last;
    if (is_const(sizes.back(), &last) && last < 0) u.fail(fmt::format("the axis does not split into {} parts", n));
  }
  std::vector<Dims> parts;
  for (X s : sizes) parts.push_back(x), parts.back()[axis] = s;
  return parts;
}
void split_op(Define &d) {
  Tensor x = d.in(0);
  size_t axis = size_t(d.axis("axis", x.rank()));
  X begin = d.lit(0);
  auto parts = split_shape(d);
  for (size_t n = 0; n < parts.size(); ++n) {
    if (d.wants(n))
      d.compute(d.out(n), [&](const Indices &i) {
        Indices at = i;
        at[axis] = i[axis] + begin;
        return x(at);
      });
    begin = begin + parts[n][axis];
  }
}

}  // namespace mlc
