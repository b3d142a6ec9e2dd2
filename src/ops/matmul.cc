// Matrix products. Floats below 32 bits accumulate in f32 and are rounded once, integers in their own (or 32-bit) type.
#include "ops/rules.h"

namespace mlc {

// ---- Gemm: alpha * a' * b' + beta * c

std::vector<Dims> gemm_shape(OpUse &u) {
  if (u.rank(0) != 2 || u.rank(1) != 2) u.fail("expected two matrices");
  bool ta = u.attr_int("transA"), tb = u.attr_int("transB");
  Dims a = u.dims(0), b = u.dims(1);
  u.assume_equal(a[ta ? 0 : 1], b[tb ? 1 : 0], "the dimension summed over");
  Dims y{a[ta ? 1 : 0], b[tb ? 0 : 1]};
  if (u.has(2)) {
    if (u.rank(2) > 2) u.fail("input 2 (c) has more dimensions than the result");
    broadcast(u, y, u.dims(2));
  }
  return {y};
}

static X scaled(X x, double factor, DType t) {
  if (factor == 1.0) return x;
  if (is_int(t)) return x * int64_t(factor);
  return lit(*x.b, factor, t) * x;
}

void gemm(Define &d) {
  bool ta = d.attr_int("transA"), tb = d.attr_int("transB");
  double alpha = d.attr_float("alpha"), beta = d.attr_float("beta");
  Tensor a = d.in(0), b = d.in(1), y = d.out();
  DType t = y.elem(), wide = accumulator(t);
  if (is_int(t) && (alpha != double(whole(d, alpha)) || beta != double(whole(d, beta))))
    d.fail("alpha and beta of integers must be whole numbers");
  bool has_c = d.has(2) && beta != 0.0;
  d.compute(y, [&](const Indices &i) {
    X v = d.reduce("sum", {a.dims[ta ? 0 : 1]}, [&](const Indices &k) {
      return as_type(ta ? a({k[0], i[0]}) : a({i[0], k[0]}), t, wide) *
             as_type(tb ? b({i[1], k[0]}) : b({k[0], i[1]}), t, wide);
    });
    v = scaled(v, alpha, wide);
    if (has_c) v = v + scaled(as_type(d.in(2).at(i), t, wide), beta, wide);
    return as_type(v, wide, t);
  });
}

// ---- MatMul: numpy's, with vectors and stacks of matrices

namespace {

struct Product {  // the dimensions of a stack of products a[.., m, k] * b[.., k, n]; a vector has no m or no n
  Dims batch;
  bool row, column;  // whether m and n are there
};

Product product_of(OpUse &u, const Dims &a, const Dims &b) {
  if (a.empty() || b.empty()) u.fail("expected vectors or matrices, found a scalar");
  Product p{{}, a.size() > 1, b.size() > 1};
  u.assume_equal(a.back(), p.column ? b[b.size() - 2] : b[0], "the dimension summed over");
  Dims ba(a.begin(), a.end() - (p.row ? 2 : 1)), bb(b.begin(), b.end() - (p.column ? 2 : 1));
  p.batch = broadcast(u, ba, bb);
  return p;
}

std::vector<Dims> product_shape(OpUse &u, size_t first, size_t second) {
  Dims a = u.dims(first), b = u.dims(second);
  Product p = product_of(u, a, b);
  Dims y = p.batch;
  if (p.row) y.push_back(a[a.size() - 2]);
  if (p.column) y.push_back(b.back());
  return {y};
}

// Indices of a stack inside those of the broadcast stack.
Indices stack_at(const Tensor &t, const Indices &batch, size_t own) {
  Indices i(batch.end() - own, batch.end());
  int64_t n;
  for (size_t k = 0; k < own; ++k)
    if (is_const(t.dims[k], &n) && n == 1) i[k] = lit(*t.b, int64_t{0});
  return i;
}

// The sum of f(a's index, b's index) over k at the point i of the result.
template <class F> X dot(Define &d, const Tensor &a, const Tensor &b, const Indices &i, const F &f) {
  bool row = a.rank() > 1, column = b.rank() > 1;
  size_t matrix = row + column;
  Indices batch(i.begin(), i.end() - matrix);
  return d.reduce("sum", {a.dims.back()}, [&](const Indices &k) {
    Indices ia = stack_at(a, batch, row ? a.rank() - 2 : 0), ib = stack_at(b, batch, column ? b.rank() - 2 : 0);
    if (row) ia.push_back(i[batch.size()]);
    ia.push_back(k[0]), ib.push_back(k[0]);
    if (column) ib.push_back(i.back());
    return f(ia, ib);
  });
}

// A zero point of a matrix: a scalar, one a row of a (axis: its last but one), one a column of b (its last), or a
// tensor of the matrix's rank with 1 along the dimension that is summed over.
X zero_point(const Tensor &z, const Indices &at, size_t axis) {
  if (z.rank() == 0) return z({});
  if (z.rank() == 1) return z.at({at[axis]});
  return z.at(at);
}

}  // namespace

std::vector<Dims> matmul_shape(OpUse &u) { return product_shape(u, 0, 1); }
void matmul(Define &d) {
  Tensor a = d.in(0), b = d.in(1), y = d.out();
  DType t = y.elem(), wide = accumulator(t);
  d.compute(y, [&](const Indices &i) {
    X v = dot(d, a, b, i,
              [&](const Indices &p, const Indices &q) { return as_type(a(p), t, wide) * as_type(b(q), t, wide); });
    return as_type(v, wide, t);
  });
}

// ---- MatMulNBits: a b', b[n, k] = (code - zero) * scale, codes of a few bits in bytes, the first in the lowest bits;
// b[n, block, byte], scales[n, block]; zero points packed like b, or floats like scales, or half of the codes

namespace {
// Code i of packed bytes: at(byte), shifted and masked.
X code_of(Define &d, int64_t bits, X i, const std::function<X(X)> &at) {
  constexpr DType u8 = DType::U8;
  if (bits == 8) return at(i);
  int64_t per = 8 / bits;
  X shifted = call("shr", {at(floordiv(i, per)), cast(u8, (i % per) * bits)});
  return call("bitand", {shifted, lit(d.b, double((1 << bits) - 1), u8)});
}
}  // namespace

std::vector<Dims> matmul_bits_shape(OpUse &u) {
  int64_t bits = u.attr_int("bits"), block = u.attr_int("block_size");
  if (bits != 2 && bits != 4 && bits != 8) u.lack(fmt::format("codes of {} bits", bits));
  if (block < 1 || block * bits % 8) u.fail(fmt::format("attribute 'block_size': found {}", block));
  if (u.rank(0) < 1 || u.rank(1) != 3 || u.rank(2) != 2) u.fail("expected b of rank 3 and scales of rank 2");
  Dims y = u.dims(0), b = u.dims(1);
  u.assume_equal(b[1], ceildiv(y.back(), u.lit(block)), "blocks of b");
  u.assume_equal(b[2], u.lit(block * bits / 8), "bytes of a block");
  u.assume_equal(u.dim(2, 0), b[0], "rows of the scales");
  u.assume_equal(u.dim(2, 1), b[1], "blocks of the scales");
  if (u.has(3)) {
    if (u.rank(3) != 2) u.fail("input 3 (zero_points): expected a matrix");
    u.assume_equal(u.dim(3, 0), b[0], "rows of the zero points");
    X columns = u.elem(3) == DType::U8 ? ceildiv(b[1] * bits, u.lit(8)) : b[1];
    u.assume_equal(u.dim(3, 1), columns, "columns of the zero points");
  }
  y.back() = b[0];
  return {y};
}

void matmul_bits(Define &d) {
  Tensor a = d.in(0), b = d.in(1), scales = d.in(2), y = d.out();
  DType t = y.elem(), wide = accumulator(t);
  int64_t bits = d.attr_int("bits"), block = d.attr_int("block_size");
  d.compute(y, [&](const Indices &i) {
    X n = i.back();
    X v = d.reduce("sum", {a.dims.back()}, [&](const Indices &k) {
      X group = floordiv(k[0], block), zero = lit(d.b, double(1 << (bits - 1)), wide);
      X code = code_of(d, bits, k[0] % block, [&](X byte) { return b({n, group, byte}); });
      if (d.has(3)) {
        Tensor z = d.in(3);
        bool packed = z.elem() == DType::U8;
        zero = packed ? cast(wide, code_of(d, bits, group, [&](X byte) { return z({n, byte}); }))
                      : as_type(z({n, group}), z.elem(), wide);
      }
      Indices at = i;
      at.back() = k[0];
      return as_type(a(at), t, wide) * ((cast(wide, code) - zero) * as_type(scales({n, group}), t, wide));
    });
    return as_type(v, wide, t);
  });
}

std::vector<Dims> matmul_integer_shape(OpUse &u) { return product_shape(u, 0, 1); }
void matmul_integer(Define &d) {
  Tensor a = d.in(0), b = d.in(1), y = d.out();
  constexpr DType i32 = DType::I32;
  d.compute(y, [&](const Indices &i) {
    return dot(d, a, b, i, [&](const Indices &p, const Indices &q) {
      X u = cast(i32, a(p)), v = cast(i32, b(q));
      if (d.has(2)) u = u - cast(i32, zero_point(d.in(2), p, p.size() > 1 ? p.size() - 2 : 0));
      if (d.has(3)) v = v - cast(i32, zero_point(d.in(3), q, q.size() - 1));
      return u * v;
    });
  });
}

// y = saturate(round(sum((a - za) * (b - zb)) * (sa * sb / sy)) + zy)
// inputs: a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point
std::vector<Dims> qlinear_matmul_shape(OpUse &u) { return product_shape(u, 0, 3); }
void qlinear_matmul(Define &d) {
  Tensor a = d.in(0), b = d.in(3), y = d.out();
  constexpr DType i32 = DType::I32, f32 = DType::F32;
  Tensor acc = d.make("acc", i32, y.dims, [&](const Indices &i) {
    return dot(d, a, b, i, [&](const Indices &p, const Indices &q) {
      return (cast(i32, a(p)) - cast(i32, zero_point(d.in(2), p, p.size() > 1 ? p.size() - 2 : 0))) *
             (cast(i32, b(q)) - cast(i32, zero_point(d.in(5), q, q.size() - 1)));
    });
  });
  d.compute(y, [&](const Indices &i) {
    Tensor sa = d.in(1), sb = d.in(4), sy = d.in(6);
    size_t row = i.size() > 1 ? i.size() - 2 : 0;
    X scale = as_type(zero_point(sa, i, row), sa.elem(), f32) *
              as_type(zero_point(sb, i, i.size() - 1), sb.elem(), f32) /
              as_type(zero_point(sy, i, row), sy.elem(), f32);
    return quantized(cast(f32, acc(i)) * scale, zero_point(d.in(7), i, row), y.elem());
  });
}

}  // namespace mlc
