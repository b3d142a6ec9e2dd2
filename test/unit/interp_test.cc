// The interpreter on kernels: values computed by hand or by numpy, and faults by their messages.
#include <cmath>

#include "interp_program.h"

using namespace mlc;

namespace {

TEST(Kernel, computes_and_blocks_agree) {
  Program p(R"(
kernel @short[n](a: f32[n, 3], b: f32[3, 2]) -> (c: f32[n, 2]) {
  alloc y: f32[n, 2]
  compute y[i in n, j in 2] = sum(a[i, k] * b[k, j] for k in 3)
  compute c[i in n, j in 2] = max(y[i, j], 0.0)
}

kernel @long[n](a: f32[n, 3], b: f32[3, 2]) -> (c: f32[n, 2]) {
  alloc y: f32[n, 2]
  for i in n parallel
  for j in 2
  for k in 3 {
    block mm {
      spatial vi in n = i
      spatial vj in 2 = j
      reduce vk in 3 = k
      init y[vi, vj] = 0.0
      y[vi, vj] = y[vi, vj] + a[vi, vk] * b[vk, vj]
    }
  }
  for i in (2 * n + 3) // 4
  for j in 4 vectorize {
    block relu {
      spatial v in 2 * n = i * 4 + j
      guard i * 4 + j < 2 * n
      c[v // 2, v % 2] = max(y[v // 2, v % 2], 0.0)
    }
  }
}
)");
  Array a = f32({3, 3}, {1, 2, 3, -4, 5, 6, 7, 8, -9}), b = f32({3, 2}, {1, -1, 2, 0.5, -1, 3});
  for (bool back : {false, true})
    for (const char *name : {"short", "long"}) {
      p.options.backwards = back;
      EXPECT_EQ(p.run(name, {a, b}), "");
      EXPECT_EQ(numbers(p.outputs.at(0)), (V{2, 9, 0, 24.5, 32, 0})) << name;
    }
}

TEST(Kernel, integers_wrap_in_their_type) {
  Program p(R"(
kernel @k(a: u8[4], b: u8[4]) -> (s: u8[4], d: u8[4], q: u8[4], n: u8[4], h: u8[4]) {
  compute s[i in 4] = a[i] + b[i]
  compute d[i in 4] = a[i] - b[i]
  compute q[i in 4] = a[i] / b[i]
  compute n[i in 4] = -a[i]
  compute h[i in 4] = shl(a[i], b[i])
}

kernel @s(a: i32[6], b: i32[6]) -> (q: i32[6], f: i32[6], m: i32[6], t: i32[6], p: i32[6], r: i32[6]) {
  compute q[i in 6] = a[i] / b[i]
  compute f[i in 6] = a[i] // b[i]
  compute m[i in 6] = a[i] % b[i]
  compute t[i in 6] = fmod(a[i], b[i])
  compute p[i in 6] = ipow(a[i], b[i])
  compute r[i in 6] = shr(a[i], 33 + b[i] - b[i])
}

kernel @i4(a: i4[3]) -> (y: i4[3], w: i8[3], s: i4[3]) {
  compute y[i in 3] = a[i] + a[i]
  compute w[i in 3] = i8(a[i]) + i8(a[i])
  compute s[i in 3] = shl(a[i], 4)
}
)");
  Array a(DType::U8, {4}), b(DType::U8, {4});
  for (int i = 0; i < 4; i++)
    a.set(i, Scalar{uint64_t(std::vector<int>{128, 6, 255, 7}[i])}),
        b.set(i, Scalar{uint64_t(std::vector<int>{128, 7, 0, 8}[i])});
  EXPECT_EQ(p.run("k", {a, b}), "");
  EXPECT_EQ(numbers(p.outputs[0]), (V{0, 13, 255, 15}));
  EXPECT_EQ(numbers(p.outputs[1]), (V{0, 255, 255, 255}));
  EXPECT_EQ(numbers(p.outputs[2]), (V{1, 0, 0, 0}));
  EXPECT_EQ(numbers(p.outputs[3]), (V{128, 250, 1, 249}));
  EXPECT_EQ(numbers(p.outputs[4]), (V{0, 0, 255, 0}));

  Array x = array<int32_t>(DType::I32, {6}, {-7, 7, -7, INT32_MIN, 5, -2}),
        y = array<int32_t>(DType::I32, {6}, {2, -2, -2, -1, 0, 31});
  EXPECT_EQ(p.run("s", {x, y}), "");
  EXPECT_EQ(numbers(p.outputs[0]), (V{-3, -3, 3, -2147483648.0, 0, 0}));
  EXPECT_EQ(numbers(p.outputs[1]), (V{-4, -4, 3, -2147483648.0, 0, -1}));
  EXPECT_EQ(numbers(p.outputs[2]), (V{1, -1, -1, 0, 0, 29}));
  EXPECT_EQ(numbers(p.outputs[3]), (V{-1, 1, -1, 0, 0, -2}));
  EXPECT_EQ(numbers(p.outputs[4]), (V{49, 0, 0, -1.0 * 0 + 0, 1, -2147483648.0}));
  EXPECT_EQ(numbers(p.outputs[5]), (V{0, 0, 0, 0, 0, 0}));

  Array n(DType::I4, {3});
  n.set(0, Scalar::of_int(7)), n.set(1, Scalar::of_int(-8)), n.set(2, Scalar::of_int(3));
  EXPECT_EQ(p.run("i4", {n}), "");
  EXPECT_EQ(numbers(p.outputs[0]), (V{-2, 0, 6}));
  EXPECT_EQ(numbers(p.outputs[1]), (V{14, -16, 6}));
  EXPECT_EQ(numbers(p.outputs[2]), (V{0, 0, 0}));
}

TEST(Kernel, small_floats_round_after_each_operation) {
  Program p(R"(
kernel @k(x: f16[2000]) -> (narrow: f16[], wide: f16[], y: f16[]) {
  compute narrow[] = sum(x[i] for i in 2000)
  compute wide[] = f16(sum(f32(x[i]) for i in 2000))
  compute y[] = x[0] * 0.1 + 1000.0
}
)");
  Array x(DType::F16, {2000});
  for (int i = 0; i < 2000; i++) x.set(i, Scalar::of_f32(3));
  EXPECT_EQ(p.run("k", {x}), "");
  // numpy: functools.reduce(lambda a, b: np.float16(a + b), [np.float16(3)] * 2000) is 6144? computed: steps of 4 above
  // 4096
  EXPECT_EQ(numbers(p.outputs[1]), (V{6000}));
  double acc = 0;  // the same by hand: above 2048 an f16 holds even numbers only, above 4096 multiples of 4
  for (int i = 0; i < 2000; i++) {
    acc += 3;
    double step = acc >= 4096 ? 4 : acc >= 2048 ? 2 : 1, q = acc / step;
    acc = std::nearbyint(q) * step;
  }
  EXPECT_EQ(numbers(p.outputs[0]), (V{acc}));
  EXPECT_EQ(numbers(p.outputs[2]), (V{1000.5}));  // f16(0.1) = 0.0999755859375; 3 * it = 0.2998 ; 1000.2998 -> 1000.5
}

TEST(Kernel, nan_wins_and_where_is_lazy) {
  Program p(R"(
kernel @k[n](x: f32[n]) -> (m: f32[], l: f32[], y: f32[n + 2]) {
  compute m[] = max(x[i] for i in n)
  compute l[] = min(x[i] for i in n)
  compute y[i in n + 2] = where(i >= 1 && i < n + 1, x[i - 1], 0.0)
}
)");
  EXPECT_EQ(p.run("k", {f32({3}, {1, NAN, 3})}), "");
  EXPECT_TRUE(std::isnan(numbers(p.outputs[0])[0]) && std::isnan(numbers(p.outputs[1])[0]));
  EXPECT_EQ(p.run("k", {f32({2}, {1, 3})}), "");
  EXPECT_EQ(numbers(p.outputs[0]), V{3});
  EXPECT_EQ(numbers(p.outputs[1]), V{1});
  EXPECT_EQ(numbers(p.outputs[2]), (V{0, 1, 3, 0}));
  EXPECT_EQ(p.run("k", {f32({0}, {})}), "");
  EXPECT_EQ(numbers(p.outputs[0]), V{-INFINITY});
}

TEST(Kernel, reducers_of_tuples) {
  Program p(R"(
reducer @arg_max(v0: f32, i0: i64, v1: f32, i1: i64) -> (v: f32, i: i64) {
  init v: f32 = -inf
  init i: i64 = 9223372036854775807
  right: bool = v1 > v0 || v1 == v0 && i1 < i0 || v1 != v1 && (v0 == v0 || i1 < i0)
  v: f32 = where(right, v1, v0)
  i: i64 = where(right, i1, i0)
}

scalar @twice(x: f32) -> (y: f32) {
  y: f32 = x + x
  y: f32 = y * 1.0
}

kernel @k[n, m](x: f32[n, m]) -> (v: f32[n], i: i64[n], t: f32[n]) {
  compute v[a in n], i[a in n] = @arg_max(x[a, c], i64(c) for c in m)
  compute t[a in n] = @twice(v[a])
}

kernel @rf[n](x: f32[n, 8]) -> (i: i64[n]) {
  alloc v.rf: f32[n, 2]
  alloc i.rf: i64[n, 2]
  alloc v: f32[n]
  for a in n
  for p in 2 parallel
  for q in 4 {
    block rf {
      spatial a in n = a
      spatial p in 2 = p
      reduce q in 4 = q
      init v.rf[a, p] = -inf
      init i.rf[a, p] = 9223372036854775807
      v1: f32, i1: i64 = @arg_max(v.rf[a, p], i.rf[a, p], x[a, p * 4 + q], i64(p * 4 + q))
      v.rf[a, p] = v1
      i.rf[a, p] = i1
    }
  }
  compute v[a in n], i[a in n] = @arg_max(v.rf[a, p], i.rf[a, p] for p in 2)
}
)");
  Array x = f32({2, 8}, {1, 5, 2, 5, 0, 0, 5, 1, 3, 1, 1, 1, 1, 1, NAN, 9});
  EXPECT_EQ(p.run("k", {x}), "");
  EXPECT_EQ(numbers(p.outputs[1]), (V{1, 6}));
  EXPECT_EQ(numbers(p.outputs[2])[0], 10);
  EXPECT_EQ(p.run("rf", {x}), "");
  EXPECT_EQ(numbers(p.outputs[0]), (V{1, 6}));
}

TEST(Kernel, faults_name_what_and_where) {
  Program p(R"(
kernel @outside[n](x: f32[n]) -> (y: f32[n]) {
  compute y[i in n] = x[i + 1]
}

kernel @undefined(x: f32[4]) -> (y: f32[4]) {
  alloc t: f32[4]
  for i in 3 {
    t[i] = x[i]
  }
  compute y[i in 4] = t[i]
}

kernel @missing(x: f32[4]) -> (y: f32[2, 2]) {
  y[0, 0] = x[0]
  y[1, 1] = x[1]
}

kernel @gather[n, m](x: f32[n], ids: i64[m]) -> (y: f32[m]) {
  for i in m {
    block gather {
      from "/Gather"
      spatial i in m = i
      r: index = index(ids[i])
      assume r >= 0 && r < n
      y[i] = x[r]
    }
  }
}

kernel @domain(x: f32[4]) -> (y: f32[4]) {
  for i in 5 {
    block b {
      spatial v in 4 = i
      y[v] = x[v]
    }
  }
}
)");
  EXPECT_EQ(p.run("outside", {f32({3}, {1, 2, 3})}),
            "x[3] is outside: index 3 of dimension 0 is not in 0 .. 2, in kernel @outside");
  EXPECT_EQ(p.line, 5u);
  EXPECT_EQ(p.run("undefined", {f32({4}, {1, 2, 3, 4})}), "t[3] is read before it is written, in kernel @undefined");
  p.options.check_undefined = false;
  EXPECT_EQ(p.run("undefined", {f32({4}, {1, 2, 3, 4})}), "");
  p.options.check_undefined = true;
  EXPECT_EQ(p.run("missing", {f32({4}, {1, 2, 3, 4})}), "y[0, 1] is never written, in kernel @missing");
  EXPECT_EQ(p.run("gather", {f32({2}, {5, 6}), i64({3}, {1, 0, 1})}), "");
  EXPECT_EQ(numbers(p.outputs[0]), (V{6, 5, 6}));
  EXPECT_EQ(p.run("gather", {f32({2}, {5, 6}), i64({3}, {1, 2, 1})}),
            "assume r >= 0 && r < n does not hold, from \"/Gather\", in kernel @gather");
  EXPECT_EQ(p.run("domain", {f32({4}, {1, 2, 3, 4})}),
            "axis v of block b is 4, outside its domain 0 .. 3, in kernel @domain");
  EXPECT_EQ(p.run("domain", {f32({3}, {1, 2, 3})}), "x of kernel @domain: expected f32[4], found f32[3]");
}

TEST(Kernel, memory_aliases_by_bytes) {
  Program p(R"(
kernel @k(x: f32[4]) -> (y: i32[4], z: f32[2]) {
  alloc arena: u8[32]
  alloc a: f32[4] = arena at 16
  alloc flat: i32[2, 2] = a at 0
  for i in 4 {
    a[i] = x[i]
  }
  compute y[i in 4] = flat[i // 2, i % 2]
  view row: i32[2] = flat[1, :]
  compute z[i in 2] = bits.f32(row[i])
}

kernel @bad(x: f32[4]) -> (y: f32[4]) {
  alloc arena: u8[32]
  alloc a: f32[4] = arena at 20
  compute y[i in 4] = x[i]
}

kernel @nibbles(x: u4[2, 3]) -> (y: u4[3], z: u4[2]) {
  view row: u4[3] = x[1, :]
  compute y[i in 3] = row[i]
  alloc t: u4[4]
  view mid: u4[2] = t[1 +: 2]
  compute mid[i in 2] = row[i] + 1
  compute z[i in 2] = mid[i]
}
)");
  EXPECT_EQ(p.run("k", {f32({4}, {1, 2, -1, 0.5})}), "");
  EXPECT_EQ(numbers(p.outputs[0]), (V{0x3f800000, 0x40000000, double(int32_t(0xbf800000)), 0x3f000000}));
  EXPECT_EQ(numbers(p.outputs[1]), (V{-1, 0.5}));
  EXPECT_EQ(p.run("bad", {f32({4}, {1, 2, 3, 4})}),
            "alloc a: 16 bytes at 20 of arena go beyond its end, in kernel @bad");
  Array x(DType::U4, {2, 3});
  for (int i = 0; i < 6; i++) x.set(i, Scalar{uint64_t(i + 10)});
  EXPECT_EQ(p.run("nibbles", {x}), "");
  EXPECT_EQ(numbers(p.outputs[0]), (V{13, 14, 15}));
  EXPECT_EQ(numbers(p.outputs[1]), (V{14, 15}));
}

TEST(Kernel, calls_of_intrinsics_run_their_description) {
  Program p(R"(
intrinsic @load[s](src: f32[2, 2] {strides = [s, 1]}) -> (dst: f32[2, 2] in toy.a) for @toy {
  desc {
    compute dst[i in 2, j in 2] = src[i, j]
  }
  impl {
    code "load($dst, $src, $s);"
  }
}

intrinsic @mma(a: f32[2, 2] in toy.a, inout c: f32[2, 2] in toy.acc) for @toy {
  desc {
    compute c[i in 2, j in 2] = c[i, j] + sum(a[i, k] * a[k, j] for k in 2)
  }
  impl {
    code "mma($c, $a);"
  }
}

kernel @k(x: f32[4, 4]) -> (y: f32[2, 2], s: f32[]) {
  alloc t: f32[2, 2] in toy.a
  for k in 2 {
    block mma {
      reduce k in 2 = k
      init call fill(0.0) -> y[:, :]
      call @load(x[k * 2 +: 2, 1 +: 2]) -> t
      call @mma(t, y)
    }
  }
  compute s[] = sum(y[i, j] for i in 2, j in 2)
}
)");
  std::vector<float> v(16);
  for (int i = 0; i < 16; i++) v[size_t(i)] = float(i);
  EXPECT_EQ(p.run("k", {f32({4, 4}, v)}), "");
  // numpy: a = x[0:2, 1:3]; b = x[2:4, 1:3]; a @ a + b @ b
  EXPECT_EQ(numbers(p.outputs[0]), (V{11 + 211, 14 + 230, 35 + 299, 46 + 326}));
  EXPECT_EQ(numbers(p.outputs[1]), V{1172});
}

TEST(Kernel, scan_and_while) {
  Program p(R"(
kernel @cumulative[n, d](x: f32[n, d], s0: f32[d]) -> (y: f32[n, d]) {
  for i in n
  for j in d vectorize {
    block y {
      scan i in n = i
      spatial j in d = j
      y[i, j] = where(i == 0, s0[j], y[i - 1, j]) + x[i, j]
    }
  }
}

kernel @collatz[n](x: i64[n]) -> (y: i64[n]) {
  for i in n parallel {
    block y {
      spatial i in n = i
      alloc v: i64[] in local
      v[] = x[i]
      y[i] = 0
      while v[] > 1 {
        if v[] % 2 == 0 {
          v[] = v[] // 2
        } else {
          v[] = 3 * v[] + 1
        }
        y[i] = y[i] + 1
      }
    }
  }
}

kernel @histogram[n](x: i32[n], inout h: i32[4]) {
  for i0 in (n + 1) // 2
  for i1 in 2 {
    block h {
      reduce i in n = i0 * 2 + i1
      guard i0 * 2 + i1 < n
      reads x[i]
      writes h[:]
      r: index = index(x[i])
      assume r >= 0 && r < 4
      atomic h[r] = h[r] + 1
    }
  }
}
)");
  EXPECT_EQ(p.run("cumulative", {f32({3, 2}, {1, 2, 3, 4, 5, 6}), f32({2}, {10, 20})}), "");
  EXPECT_EQ(numbers(p.outputs[0]), (V{11, 22, 14, 26, 19, 32}));
  EXPECT_EQ(p.run("collatz", {i64({4}, {1, 6, 27, 2})}), "");
  EXPECT_EQ(numbers(p.outputs[0]), (V{0, 8, 111, 1}));
  EXPECT_EQ(p.run("histogram",
                  {array<int32_t>(DType::I32, {5}, {0, 3, 3, 1, 3}), array<int32_t>(DType::I32, {4}, {1, 0, 0, 0})}),
            "");
  EXPECT_EQ(numbers(p.outputs[0]), (V{2, 1, 0, 3}));
}

// numpy 1.26: np.exp, np.log, np.tanh, np.power, np.sqrt of float32 and float64; in f16 computed in f32 and rounded.
TEST(Kernel, scalar_mathematics) {
  Program p(R"(
kernel @f[n](x: f32[n]) -> (e: f32[n], l: f32[n], t: f32[n], p: f32[n], h: f16[n]) {
  compute e[i in n] = exp(x[i])
  compute l[i in n] = log(x[i])
  compute t[i in n] = tanh(x[i])
  compute p[i in n] = pow(x[i], 1.5)
  compute h[i in n] = exp(f16(x[i]))
}

kernel @d[n](x: f64[n]) -> (e: f64[n], s: f64[n]) {
  compute e[i in n] = exp(x[i])
  compute s[i in n] = sqrt(x[i])
}
)");
  EXPECT_EQ(p.run("f", {f32({4}, {0.5f, 1.0f, 2.5f, INFINITY})}), "");
  V want[] = {{1.6487212, 2.7182817, 12.182494, INFINITY},
              {-0.6931472, 0, 0.9162907, INFINITY},
              {0.46211717, 0.7615942, 0.9866143, 1},
              {0.35355338, 1, 3.9528470, INFINITY},
              {1.6484375, 2.71875, 12.1796875, INFINITY}};
  for (size_t k = 0; k < 5; k++)
    for (size_t i = 0; i < 4; i++) {
      double found = numbers(p.outputs[k])[i];
      if (std::isinf(want[k][i])) EXPECT_EQ(found, want[k][i]);
      else EXPECT_NEAR(found, want[k][i], 3e-7 * std::max(1.0, want[k][i])) << k << ' ' << i;
    }
  Array x = array<double>(DType::F64, {2}, {0.1, 2.0});
  EXPECT_EQ(p.run("d", {x}), "");
  EXPECT_NEAR(numbers(p.outputs[0])[0], 1.1051709180756477, 4e-16);
  EXPECT_EQ(numbers(p.outputs[1])[1], 1.4142135623730951);
}

TEST(Kernel, casts) {
  Program p(R"(
kernel @k(x: f32[6]) -> (i: i8[6], u: u8[6], b: bool[6], h: f16[6], e: f8e4m3fn[6], n: f8e5m2[6]) {
  compute i[k in 6] = i8(x[k])
  compute u[k in 6] = u8(x[k])
  compute b[k in 6] = bool(x[k])
  compute h[k in 6] = f16(x[k])
  compute e[k in 6] = f8e4m3fn(x[k])
  compute n[k in 6] = convert(x[k], "f8e5m2", "no_saturate")
}

kernel @w(x: i64[3]) -> (a: i8[3], b: u16[3], c: f32[3]) {
  compute a[k in 3] = i8(x[k])
  compute b[k in 3] = u16(x[k])
  compute c[k in 3] = f32(x[k])
}
)");
  EXPECT_EQ(p.run("k", {f32({6}, {-1.9f, 300.0f, NAN, 0.0f, 1e6f, -0.4f})}), "");
  EXPECT_EQ(numbers(p.outputs[0]), (V{-1, 127, 0, 0, 127, 0}));
  EXPECT_EQ(numbers(p.outputs[1]), (V{0, 255, 0, 0, 255, 0}));
  EXPECT_EQ(numbers(p.outputs[2]), (V{1, 1, 1, 0, 1, 1}));
  V h = numbers(p.outputs[3]), e = numbers(p.outputs[4]), n = numbers(p.outputs[5]);
  EXPECT_EQ(h[0], -1.900390625);  // ml_dtypes and numpy agree
  EXPECT_EQ(h[4], INFINITY);
  EXPECT_EQ(e[1], 288);
  EXPECT_EQ(e[4], 448);
  EXPECT_TRUE(std::isnan(e[2]));
  EXPECT_EQ(n[1], 320);
  EXPECT_EQ(n[4], INFINITY);
  EXPECT_EQ(p.run("w", {i64({3}, {300, -1, 16777217})}), "");
  EXPECT_EQ(numbers(p.outputs[0]), (V{44, -1, 1}));
  EXPECT_EQ(numbers(p.outputs[1]), (V{300, 65535, 1}));
  EXPECT_EQ(numbers(p.outputs[2]), (V{300, -1, 16777216}));
}

// Noise comes to inexact steps of sums alone, and the results lie about the exact one.
TEST(Kernel, sums_with_noise) {
  Program p(R"(
reducer @add(a: f32, b: f32) -> (s: f32) {
  init s: f32 = 0.0
  s: f32 = a + b
}

kernel @sums[n](x: f32[n]) -> (whole: f32[], blocks: f32[], folded: f32[], product: f32[], half: f16[]) {
  compute whole[] = sum(x[k] for k in n)
  for k in n {
    block blocks {
      reduce k in n = k
      init blocks[] = 0.0
      blocks[] = blocks[] + x[k]
    }
  }
  compute folded[] = @add(x[k] for k in n)
  compute product[] = prod(x[k] for k in n)
  compute half[] = sum(f16(x[k]) for k in n)
}

kernel @plain(x: f32[3]) -> (y: f32[]) {
  compute y[] = x[0] + x[1] + x[2]
}
)");
  auto run = [&](const std::string &name, const Array &x, uint64_t jitter) {
    p.options.jitter = jitter;
    EXPECT_EQ(p.run(name, {x}), "");
    V v;
    for (const Array &a : p.outputs) v.push_back(numbers(a)[0]);
    return v;
  };
  // 2000 times 0.1: the usual order loses 3e-3 in the end; the noise shows how far that is from the exact sum.
  Array tenths = f32({2000}, std::vector<float>(2000, 0.1f));
  V usual = run("sums", tenths, 0), noisy = run("sums", tenths, 1);
  for (size_t i = 0; i < 3; i++) {
    EXPECT_GT(std::fabs(usual[i] - 200), 2e-3) << i;
    EXPECT_LT(std::fabs(noisy[i] - 200), 1.5e-3) << i;
  }
  EXPECT_NE(noisy[4], usual[4]);
  EXPECT_EQ(run("sums", tenths, 1), noisy);
  EXPECT_NE(run("sums", tenths, 2), noisy);
  Array thirds = f32({3}, {1 / 3.0f, 1 / 7.0f, 1 / 9.0f});
  EXPECT_NEAR(run("sums", thirds, 3)[3], 1 / 189.0, 2e-9);
  // Exact steps stay exact, infinities too; additions outside sums have no noise.
  for (uint64_t seed : {1, 2, 3}) {
    EXPECT_EQ(run("sums", f32({4}, {1, 2, -4, 8}), seed), (V{7, 7, 7, -64, 7}));
    EXPECT_EQ(run("sums", f32({2}, {INFINITY, 0.1f}), seed)[0], INFINITY);
    EXPECT_EQ(run("plain", thirds, seed), run("plain", thirds, 0));
  }
}

}  // namespace
