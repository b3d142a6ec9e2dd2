// The interpreter on graphs: values computed by hand or by numpy, and faults by their messages.
#include <cmath>

#include "interp_program.h"

using namespace mlc;

namespace {

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
