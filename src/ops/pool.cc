// Pools over x[n, c, spatial..].
#include <algorithm>

#include "ops/window.h"

namespace mlc {

namespace {

Window pool_window(OpUse &u) {
  Dims x = u.dims(0), size;
  if (x.size() < 3) u.fail(fmt::format("expected at least 3 dimensions, found {}", x.size()));
  for (int64_t k : u.attr_ints("kernel_shape")) {
    if (k < 1) u.fail("attribute 'kernel_shape': expected integers of at least 1");
    size.push_back(u.lit(k));
  }
  return Window(u, spatial(x), size, u.attr_int("ceil_mode"));
}

Dims pooled(OpUse &u, const Window &w) {
  Dims y{u.dim(0, 0), u.dim(0, 1)};
  y.insert(y.end(), w.out.begin(), w.out.end());
  return y;
}

Indices cell(const Window &w, const Indices &i, const Indices &t) {
  Indices at{i[0], i[1]};
  for (size_t k = 0; k < t.size(); ++k) at.push_back(w.at(k, i[2 + k], t[k]));
  return at;
}

}  // namespace

std::vector<Dims> max_pool_shape(OpUse &u) {
  Dims y = pooled(u, pool_window(u));
  return {y, y};
}
// The second result is the position of the (first) maximum in x as a whole, in row-major or column-major order.
void max_pool(Define &d) {
  Window w = pool_window(d);
  Tensor x = d.in(0);
  DType t = x.elem();
  Tensor y = d.wants(0) ? d.out() : d.temp(t, pooled(d, w), "y");
  auto inside = [&](const Indices &i, const Indices &r) { return w.inside(d.b, Indices(i.begin() + 2, i.end()), r); };
  d.compute(y, [&](const Indices &i) {
    return d.reduce("max", w.size,
                    [&](const Indices &r) { return where(inside(i, r), x(cell(w, i, r)), lowest(d.b, t)); });
  });
  if (!d.wants(1)) return;
  bool columns = d.attr_int("storage_order");
  d.compute(d.out(1), [&](const Indices &i) {
    return d.reduce("min", w.size, [&](const Indices &r) {
      Indices at = cell(w, i, r);
      X v = x(at), hit = inside(i, r) && (v == y(i) || is_nan(v, t));
      Indices order(at.begin() + 2, at.end());
      Dims dims = w.in;
      if (columns) std::reverse(order.begin(), order.end()), std::reverse(dims.begin(), dims.end());
      X position = flatten({i[0], i[1], flatten(order, dims)}, {x.dims[0], x.dims[1], product(d.b, dims)});
      return where(hit, cast(DType::I64, position), lit(d.b, INT64_MAX));
    });
  });
}

std::vector<Dims> average_pool_shape(OpUse &u) { return {pooled(u, pool_window(u))}; }
// Cells of the padding count if count_include_pad says so, those beyond it (ceil_mode) never.
void average_pool(Define &d) {
  Window w = pool_window(d);
  Tensor x = d.in(0), y = d.out();
  DType t = y.elem(), wide = accumulator(t);
  bool include = d.attr_int("count_include_pad");
  d.compute(y, [&](const Indices &i) {
    X v = d.sum(t, w.size, [&](const Indices &r) {
      X in = w.inside(d.b, Indices(i.begin() + 2, i.end()), r);
      return where(in, x(cell(w, i, r)), zero(d.b, t));
    });
    // Cells t of an axis with first <= start + t * dilation < end.
    X count = lit(d.b, int64_t{1});
    for (size_t k = 0; k < w.size.size(); ++k) {
      X cells = w.size[k];
      if (w.padded(k)) {
        X start = w.start(k, i[2 + k]), step = lit(d.b, w.dilation[k]);
        X end = include ? w.in[k] + w.after[k] : w.in[k];
        cells = min(cells, ceildiv(end - start, step));
        if (!include) cells = cells - max(lit(d.b, int64_t{0}), ceildiv(-start, step));
      }
      count = count * cells;
    }
    int64_t n;
    X divisor = is_const(count, &n) ? lit(d.b, double(n), wide) : cast(wide, count);
    return as_type(v / divisor, wide, t);
  });
}

// (sum |x| ^ p) ^ (1 / p)
static X p_norm(Define &d, X sum, int64_t p, DType t) {
  return p == 1 ? sum : p == 2 ? call("sqrt", {sum}) : call("pow", {sum, lit(d.b, 1.0 / double(p), t)});
}
static X p_power(Define &d, X x, int64_t p, DType t) {
  return p == 1 ? call("abs", {x}) : p == 2 ? x * x : call("pow", {call("abs", {x}), lit(d.b, double(p), t)});
}

std::vector<Dims> lp_pool_shape(OpUse &u) { return {pooled(u, pool_window(u))}; }
void lp_pool(Define &d) {
  Window w = pool_window(d);
  Tensor x = d.in(0), y = d.out();
  DType t = y.elem(), wide = accumulator(t);
  int64_t p = d.attr_int("p");
  d.compute(y, [&](const Indices &i) {
    X v = d.reduce("sum", w.size, [&](const Indices &r) {
      X in = w.inside(d.b, Indices(i.begin() + 2, i.end()), r);
      return where(in, p_power(d, as_type(x(cell(w, i, r)), t, wide), p, wide), zero(d.b, wide));
    });
    return as_type(p_norm(d, v, p, wide), wide, t);
  });
}

// ---- over the whole of each channel

std::vector<Dims> global_pool_shape(OpUse &u) {
  Dims y = u.dims(0);
  if (y.size() < 2) u.fail("expected at least 2 dimensions");
  for (size_t k = 2; k < y.size(); ++k) y[k] = u.lit(1);
  return {y};
}
void global_max_pool(Define &d) {
  Tensor x = d.in(0);
  d.compute(d.out(), [&](const Indices &i) {
    return d.reduce("max", spatial(x.dims), [&](const Indices &r) { return x(concat({i[0], i[1]}, r)); });
  });
}
void global_average_pool(Define &d) {
  Tensor x = d.in(0);
  DType t = x.elem(), wide = accumulator(t);
  X n = product(d.b, spatial(x.dims));
  int64_t c;
  X divisor = is_const(n, &c) ? lit(d.b, double(c), wide) : cast(wide, n);
  d.compute(d.out(), [&](const Indices &i) {
    X v = d.sum(t, spatial(x.dims), [&](const Indices &r) { return x(concat({i[0], i[1]}, r)); });
    return as_type(v / divisor, wide, t);
  });
}
void global_lp_pool(Define &d) {
  Tensor x = d.in(0);
  DType t = x.elem(), wide = accumulator(t);
  int64_t p = d.attr_int("p");
  d.compute(d.out(), [&](const Indices &i) {
    X v = d.reduce("sum", spatial(x.dims), [&](const Indices &r) {
      return p_power(d, as_type(x(concat({i[0], i[1]}, r)), t, wide), p, wide);
    });
    return as_type(p_norm(d, v, p, wide), wide, t);
  });
}

}  // namespace mlc
