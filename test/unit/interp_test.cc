// The interpreter against values computed by hand or by numpy, and faults against their messages.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "interp/interp.h"
#include "text/text.h"

using namespace mlc;

namespace {

struct Program {
  explicit Program(const std::string &text)
      : source(Source::from_string("test", "mlc 1\n\n" + text)), diag("test", &source) {
    if (!read(b, source, m, diag)) ADD_FAILURE() << diag.messages()[0];
  }
  // "" and the outputs, or the fault's message.
  std::string run(const std::string &name, const std::vector<Array> &inputs) {
    const Func *f = m.func(b.sym(name));
    if (!f) return "no function " + name;
    RunFault fault;
    outputs.clear();
    if (mlc::run(b, m, *f, inputs, options, outputs, fault)) return "";
    line = fault.at == kNowhere ? 0 : source.place(fault.at).line;
    return fault.message;
  }
  Source source;
  Diag diag;
  Build b;
  Module m;
  RunOptions options;
  std::vector<Array> outputs;
  uint32_t line = 0;
};

template <class T> Array array(DType t, std::vector<int64_t> dims, std::vector<T> values) {
  Array a(t, std::move(dims));
  memcpy(a.bytes.data(), values.data(), a.bytes.size());
  return a;
}
Array f32(std::vector<int64_t> dims, std::vector<float> v) {
  return array<float>(DType::F32, std::move(dims), std::move(v));
}
Array i64(std::vector<int64_t> dims, std::vector<int64_t> v) {
  return array<int64_t>(DType::I64, std::move(dims), std::move(v));
}
Array scalar(DType t, Scalar v) {
  Array a(t, {});
  a.set(0, v);
  return a;
}
std::vector<double> numbers(const Array &a) {
  std::vector<double> v;
  for (int64_t i = 0; i < a.size(); i++) v.push_back(to_double(a.type, a.get(i)));
  return v;
}
using V = std::vector<double>;

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

TEST(Graph, operators_calls_and_constants) {
  Program p(R"(
const @w: f32[2, 3] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
const @wt: f32[3, 2] = Transpose(@w) {perm = [1, 0]}
const @b: f32[2] = 0.5

kernel @relu[n, m](x: f32[n, m]) -> (y: f32[n, m]) {
  compute y[i in n, j in m] = max(x[i, j], 0.0)
}

extern @linear[n, k, m](x: f32[n, k], w: f32[m, k], b: f32[m]) -> (y: f32[n, m]) {
  desc {
    compute y[i in n, j in m] = sum(x[i, r] * w[j, r] for r in k) + b[j]
  }
  impl {
    code "linear($x);"
  }
}

extern @fused[n](x: f32[n, 3], s: index) -> (y: f32[n, 2]) {
  desc {
    assume s >= 1
    t: f32[n, 2] = Gemm(x, @w, @b) {transB = 1}
    y: f32[n, 2] = Relu(t)
  }
  impl {
    code "fused($x);"
  }
}

group @g[n](x: f32[n, 3]) -> (y: f32[n, 2]) {
  t0: f32[n, 2] = MatMul(x, @wt)
  t1: f32[n, 2] = Add(t0, @b)
  y: f32[n, 2] = Relu(t1)
}

graph @main[n](x: f32[n, 3]) -> (a: f32[n, 2], b: f32[n, 2], c: f32[n, 2], d: f32[n, 2]) {
  assume n >= 1
  dataflow -> a, b, c {
    h: f32[n, 2] = @linear(x, @w, @b) from "/fc"
    a: f32[n, 2] = @relu(h) from "/relu"
    b: f32[n, 2] = @g(x)
    c: f32[n, 2] = @fused(x, 1)
  }
  alloc t: f32[n, 2]
  call @linear(x, @w, @b) -> t
  call Relu(t) -> d from "/relu"
}
)");
  EXPECT_EQ(p.run("main", {f32({2, 3}, {1, 0, -1, 1, 1, 1})}), "");
  for (int i = 0; i < 4; i++) EXPECT_EQ(numbers(p.outputs.at(size_t(i))), (V{0, 0, 6.5, 15.5})) << i;
  EXPECT_EQ(p.run("main", {f32({0, 3}, {})}), "assume n >= 1 does not hold, in graph @main");
}

TEST(Graph, control_and_sizes_that_are_data) {
  Program p(R"(
graph @branch[n](c: bool[], x: f32[n]) -> (m: index, y: f32[m]) {
  m: index, y: f32[m] = if c {
    yield n, x
  } else {
    d: f32[2 * n] = Concat(x, x) {axis = 0}
    yield 2 * n, d
  }
}

graph @loop[d](max_trip: i64[], cond: bool[], x: f32[d]) -> (t: index, last: f32[d], trace: f32[t, d]) {
  trip: index = Item(max_trip)
  t: index, go: bool[], last: f32[d], trace: f32[t, d] = loop i in trip carry c: bool[] = cond, s: f32[d] = x while c {
    s1: f32[d] = Mul(s, 0.5)
    n1: f32[] = ReduceL1(s1, [0]) {keepdims = 0}
    c1: bool[] = Greater(n1, 1.0)
    yield c1, s1
    stack s1
  }
}

graph @cumulative[n, d](x: f32[n, d], s0: f32[d]) -> (s: f32[d], y: f32[n, d]) {
  dataflow -> s, y {
    s: f32[d], y: f32[n, d] = loop i in n carry acc: f32[d] = s0 {
      xi: f32[d] = Gather(x, i) {axis = 0}
      a1: f32[d] = Add(acc, xi)
      yield a1
      stack a1
    }
  }
}

graph @reshape[n](x: f32[n, 12], s: i64[2]) -> (p: index, q: index, y: f32[p, q]) {
  dataflow -> p, q, y {
    s0: i64[] = Gather(s, 0)
    s1: i64[] = Gather(s, 1)
    p: index = Item(s0)
    q: index = Item(s1)
    assume p * q == n * 12
    y: f32[p, q] = Reshape(x, [p, q])
  }
}

graph @refined(x: f32[2, 4], s: i64[2]) -> (m: index, z: f32[m, 4]) {
  dataflow -> m, z {
    p: index, q: index, y: f32[p, q] = Reshape(x, s)
    m: index, z: f32[m, 4] = Match(y)
  }
}
)");
  Array yes = scalar(DType::Bool, Scalar::of_bool(true)), no = scalar(DType::Bool, {});
  EXPECT_EQ(p.run("branch", {yes, f32({2}, {1, 2})}), "");
  EXPECT_EQ(numbers(p.outputs[0]), V{2});
  EXPECT_EQ(numbers(p.outputs[1]), (V{1, 2}));
  EXPECT_EQ(p.run("branch", {no, f32({2}, {1, 2})}), "");
  EXPECT_EQ(numbers(p.outputs[1]), (V{1, 2, 1, 2}));
  EXPECT_EQ(p.run("loop", {i64({}, {10}), yes, f32({2}, {4, 4})}), "");
  EXPECT_EQ(numbers(p.outputs[0]), V{3});
  EXPECT_EQ(numbers(p.outputs[1]), (V{0.5, 0.5}));
  EXPECT_EQ(numbers(p.outputs[2]), (V{2, 2, 1, 1, 0.5, 0.5}));
  EXPECT_EQ(p.run("loop", {i64({}, {10}), no, f32({2}, {4, 4})}), "");
  EXPECT_EQ(p.outputs[2].dims, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(p.run("cumulative", {f32({2, 2}, {1, 2, 3, 4}), f32({2}, {10, 20})}), "");
  EXPECT_EQ(numbers(p.outputs[1]), (V{11, 22, 14, 26}));
  std::vector<float> v(24, 1);
  EXPECT_EQ(p.run("reshape", {f32({2, 12}, v), i64({2}, {6, 4})}), "");
  EXPECT_EQ(p.outputs[2].dims, (std::vector<int64_t>{6, 4}));
  EXPECT_NE(p.run("reshape", {f32({2, 12}, v), i64({2}, {6, 5})}), "");
  EXPECT_EQ(p.run("refined", {f32({2, 4}, std::vector<float>(8, 1)), i64({2}, {-1, 4})}), "");
  EXPECT_EQ(numbers(p.outputs[0]), V{2});
  EXPECT_EQ(p.run("refined", {f32({2, 4}, std::vector<float>(8, 1)), i64({2}, {4, 2})}),
            "z: expected f32[m, 4], found f32[4, 2], in graph @refined");
}

TEST(Graph, planned) {
  Program p(R"(
kernel @double[n](x: f32[n]) -> (y: f32[n]) {
  attr inplace = [["y", "x"]]
  compute y[i in n] = x[i] + x[i]
}

graph @main[n](x: f32[n], scratch arena: u8[8 * n], inout s: f32[n]) -> (y: f32[n]) {
  alloc t0: f32[n] = arena at 0
  alloc t1: f32[n] = arena at 4 * n
  call @double(x) -> t0
  call @double(t0) -> t0
  call @double(t0) -> t1
  call Add(t1, s) -> y
  call Copy(y) -> s
}

graph @overlap[n](x: f32[n], scratch arena: u8[8 * n]) -> (y: f32[n]) {
  alloc t0: f32[n] = arena at 0
  alloc t1: f32[n] = arena at 4
  call @double(x) -> t0
  call @double(t0) -> t1
  call @double(t1) -> y
}

graph @stale[n](x: f32[n], scratch arena: u8[8 * n]) -> (y: f32[n]) {
  alloc t0: f32[n] = arena at 0
  call @double(t0) -> y
}
)");
  EXPECT_EQ(p.run("main", {f32({2}, {1, 2}), f32({2}, {100, 200})}), "");
  EXPECT_EQ(numbers(p.outputs[0]), (V{108, 216}));
  EXPECT_EQ(numbers(p.outputs[1]), (V{108, 216}));
  EXPECT_EQ(p.run("overlap", {f32({2}, {1, 2})}),
            "x and y of @double are given overlapping buffers, in kernel @double");
  EXPECT_EQ(p.run("stale", {f32({2}, {1, 2})}), "x[0] is read before it is written, in kernel @double");
}

}  // namespace
