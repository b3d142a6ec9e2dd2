// Statements, names and the interface of emitted C++, which is compiled and run here; what a hostile model could put into
// its text.
#include "emit/expand.h"
#include "emit/names.h"
#include "emit_program.h"

namespace mlc {
namespace {

// ---- statements

Array array(DType t, std::vector<int64_t> dims, uint64_t seed) {
  Array a(t, std::move(dims));
  std::mt19937 random(seed);
  double unit = is_float(t) ? 8 : 1;
  for (int64_t i = 0; i < a.size(); i++) a.set(i, scalar_of(t, double(int(random() % 201) - 100) / unit));
  return a;
}

TEST(Emit, BlocksDissolve) {  // guards, initialisers in and out of their loops, scans, nested blocks, lets
  EmitProgram p(R"(mlc 1

const @coef: f32[3] = [0.25, 0.5, 0.25]

kernel @k[n](x: f32[n, 20], w: f32[20, 8]) -> (y: f32[n, 8], z: f32[n, 8], c: f32[n, 20], b: f32[n, 18], t: f32[8, n]) {
  for i in n
  for j in 8
  for k0 in 3
  for k1 in 7 {
    block y {
      spatial i in n = i
      spatial j in 8 = j
      reduce k in 20 = k0 * 7 + k1
      guard k0 * 7 + k1 < 20
      init y[i, j] = 0.0
      y[i, j] = y[i, j] + x[i, k] * w[k, j]
    }
  }
  for k in 20
  for i in n
  for j in 8 vectorize {
    block z {
      from "/z"
      spatial row in n = i
      spatial col in 8 = 7 - j
      reduce k in 20 = k
      init z[row, col] = 1.0
      z[row, col] = max(z[row, col], x[row, k] * w[k, col])
    }
  }
  for i in n
  for j in 20 {
    block c {
      spatial i in n = i
      scan j in 20 = j
      c[i, j] = where(j == 0, 0.0, c[i, j - 1]) + x[i, j]
    }
  }
  compute b[i in n, j in 18] = sum(x[i, j + r] * @coef[r] for r in 3)
  for i in n
  for j0 in 2 {
    block outer {
      spatial i in n = i
      spatial jo in 2 = j0
      for j1 in 4 {
        block t {
          spatial v in n = i
          spatial j in 8 = jo * 4 + j1
          s: f32 = x[v, j] * 2.0
          t[j, v] = s + where(s > 0.0, w[0, j], -1.0)
        }
      }
    }
  }
}

graph @main[n](x: f32[n, 20], w: f32[20, 8]) -> (y: f32[n, 8], z: f32[n, 8], c: f32[n, 20], b: f32[n, 18], t: f32[8, n]) {
  call @k(x, w) -> y, z, c, b, t
}
)");
  ASSERT_TRUE(p.ok);
  for (int64_t n : {0, 1, 5}) expect_same(p, {array(DType::F32, {n, 20}, 1), array(DType::F32, {20, 8}, 2)});
}

TEST(Emit, ReductionsInsideExpressions) {  // of tuples, nested, under where, && and in indices; over nothing
  EmitProgram p(R"(mlc 1

reducer @best(v0: f32, i0: i64, v1: f32, i1: i64) -> (v: f32, i: i64) {
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

kernel @k[n, m](x: f32[n, m]) -> (v: f32[n], best: i64[n], s: f32[n], d: f32[n], e: bool[n], f: f32[n], r: f32[]) {
  compute v[i in n], best[i in n] = @best(x[i, j], i64(j) for j in m)
  compute s[i in n] = @twice(sum(x[i, j] * max(x[i, l] for l in j + 1) for j in m)) / 2.0
  compute d[i in n] = where(i % 2 == 0, sum(x[i, j] for j in m), prod(x[i, j] + 2.0 for j in m)) + 1.0
  compute e[i in n] = m > 0 && all(x[i, j] > -5.0 for j in m) || any(x[i, j] == 1.0 for j in m)
  compute f[i in n] = exp(min(x[i, j] for j in m))
  compute r[] = sum(f32(e[i]) * s[i] for i in n)
}

graph @main[n, m](x: f32[n, m]) -> (v: f32[n], best: i64[n], s: f32[n], d: f32[n], e: bool[n], f: f32[n], r: f32[]) {
  call @k(x) -> v, best, s, d, e, f, r
}
)");
  ASSERT_TRUE(p.ok);
  for (auto [n, m] : {std::pair(4, 6), std::pair(3, 1), std::pair(0, 2), std::pair(2, 0)})
    expect_same(p, {array(DType::F32, {n, m}, 3)});
}

// Reductions a row at a time: rows of a fixed length, longer than a tile, of a symbol; paddings before and behind, on
// outer and inner axes; factors that are inf and NaN, which a padding's zero does not hide; what keeps its old form.
TEST(Emit, ReductionsARowAtATime) {
  EmitProgram p(R"(mlc 1

kernel @conv[n](x: f32[n, 2, 5, 20], w: f32[3, 2, 3, 5], b: f32[3]) -> (y: f32[n, 3, 5, 20]) {
  compute y[i in n, j in 3, k in 5, l in 20] = max(sum(where(k + q >= 1 && k + q < 6 && l + r >= 2 && l + r < 22, x[i, p, k + q - 1, l + r - 2], 0.0) * w[j, p, q, r] for p in 2, q in 3, r in 5) + b[j], 0.0)
}

kernel @rows[n](a: f64[3, n], c: f64[n, 200], d: f64[n, 150]) -> (u: f64[3, 200], v: f64[3, 150]) {
  compute u[i in 3, j in 200] = sum(a[i, k] * c[k, j] for k in n) * f64(j)
  compute v[i in 3, j in 150] = sum(where(j < k, c[k, j], d[k, j]) * a[i, k] for k in n)
}

kernel @symbol[n, m](a: i32[m], c: i32[m, n]) -> (u: i32[n], v: i32[n], s: i32[n]) {
  compute u[j in n] = sum(a[k] * c[k, j] for k in m)
  compute v[j in n] = max(where(j - k > 0, c[k, j - k], a[k]) for k in m) + i32(j)
  compute s[j in n] = sum(c[k, n - 1 - j] for k in m)
}

graph @main[n, m](x: f32[n, 2, 5, 20], w: f32[3, 2, 3, 5], b: f32[3], a: f64[3, n], c: f64[n, 200], d: f64[n, 150], e: i32[m], f: i32[m, n]) -> (y: f32[n, 3, 5, 20], u: f64[3, 200], v: f64[3, 150], p: i32[n], q: i32[n], s: i32[n]) {
  call @conv(x, w, b) -> y
  call @rows(a, c, d) -> u, v
  call @symbol(e, f) -> p, q, s
}
)");
  ASSERT_TRUE(p.ok);
  for (auto [n, m] : {std::pair(0, 2), std::pair(1, 0), std::pair(64, 1), std::pair(67, 3)}) {
    auto f32 = [&](std::vector<int64_t> dims, int seed) { return array(DType::F32, dims, seed); };
    expect_same(p, {f32({n, 2, 5, 20}, 1), f32({3, 2, 3, 5}, 2), f32({3}, 3), array(DType::F64, {3, n}, 4),
                    array(DType::F64, {n, 200}, 5), array(DType::F64, {n, 150}, 6), array(DType::I32, {m}, 7),
                    array(DType::I32, {m, n}, 8)});
  }
}

TEST(Emit, BuffersAndCalls) {  // views, aliases, regions, in place, scalars, constants read in a kernel, control
  EmitProgram p(R"(mlc 1

const @k: f32[2, 3] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
const @empty: f32[0, 3] = 0.0

kernel @scale[m](x: f32[m], a: f32, n: index) -> (y: f32[m]) {
  attr inplace = [["y", "x"]]
  for i in m {
    alloc t: f32[4] in local
    for j in 4 {
      t[j] = x[i] * a
    }
    y[i] = t[3] + f32(n)
  }
}

kernel @add_const[n](inout x: f32[n, 3]) {
  for i in n
  for j in 3 {
    x[i, j] = x[i, j] + @k[1, j]
  }
}

kernel @strided[n, m, s](x: f32[n, m] {strides = [s, 1]}) -> (y: f32[n, m]) {
  compute y[i in n, j in m] = x[i, j] * 2.0
}

kernel @total[n](x: f32[n, 3]) -> (c: i64[]) {
  compute c[] = sum(i64(x[i, 0]) for i in n)
}

kernel @count(x: f32[4, 3]) -> (c: i64[]) {
  compute c[] = sum(i64(x[i, j] > 0.0) for i in 4, j in 3)
}

graph @main(x: f32[4, 3], a: f32, pos: index, inout state: f32[4, 3], scratch arena: u8[512] {align = 64}) -> (y: f32[4, 3], z: f32[3, 2], w: f32[2, 3], c: i64[], v: f32[3]) {
  attr arena_bytes = 512
  assume pos >= 0 && pos < 4
  alloc t: f32[12] = arena at 0
  alloc t2: f32[4, 3] = t at 0
  view row: f32[3] = x[pos, :]
  call Copy(x) -> t2
  call @scale(t, a, pos) -> t from "/scale"
  call @scale(row, 2.0, 1) -> t[3 +: 3]
  call @add_const(state)
  call Copy(t2) -> y
  view part: f32[3, 2] = x[1 +: 3, 1 +: 2]
  call @strided(part) -> z from "/part"
  call @total(@empty) -> c
  call Copy(@k) -> w
  if pos == 2 {
    call @scale(row, 0.5, pos) -> w[0, :]
  } else {
    call Copy(row) -> w[1, :]
  }
  call @count(y) -> c
  j: index = index(c[]) * 2
  assume j < 30
  call @scale(row, 1.0, j) -> v
}
)");
  ASSERT_TRUE(p.ok);
  Array a = array(DType::F32, {}, 7), pos(DType::I64, {});
  for (int64_t at : {0, 2, 3}) {
    pos.set(0, Scalar::of_int(at));
    expect_same(p, {array(DType::F32, {4, 3}, 5), a, pos, array(DType::F32, {4, 3}, 6)});
  }
}

TEST(Emit, ElementTypesOfAllSizes) {  // bool, packed, f16 and f8 elements in and out, copied and stored one by one
  EmitProgram p(R"(mlc 1

kernel @k[n](a: bool[n], b: i4[n], c: u2[n], d: f16[n], e: f4e2m1[n], f: bf16[n], g: f8e4m3fn[n]) -> (u: bool[n], v: i4[n], w: u2[n], x: f16[n], y: f4e2m1[n], z: f8e4m3fn[n]) {
  for i in n {
    t: i4 = b[n - 1 - i] + 1
    s: f16 = d[i] * 3.0 + d[n - 1 - i]
    u[i] = !a[i] || t == 3
    v[i] = t
    w[n - 1 - i] = c[i] * 3
    x[i] = s / 7.0
    y[i] = e[i] + e[n - 1 - i]
    z[i] = f8e4m3fn(f[i]) + g[i]
  }
}

graph @main[n](a: bool[n], b: i4[n], c: u2[n], d: f16[n], e: f4e2m1[n], f: bf16[n], g: f8e4m3fn[n]) -> (u: bool[n], v: i4[n], w: u2[n], x: f16[n], y: f4e2m1[n], z: f8e4m3fn[n]) {
  call @k(a, b, c, d, e, f, g) -> u, v, w, x, y, z
}
)");
  ASSERT_TRUE(p.ok);
  for (size_t n : {0, 1, 13}) {
    std::vector<Array> in;
    for (DType t : {DType::Bool, DType::I4, DType::U2, DType::F16, DType::F4E2M1, DType::BF16, DType::F8E4M3FN})
      in.push_back(samples(t, n, in.size()));
    expect_same(p, in);
  }
}

// ---- names and texts

TEST(Emit, Identifiers) {
  const std::pair<const char *, const char *> kCases[] = {
      {"x", "x"},           {"a b/c", "a_b_c"},     {"conv1.weight", "conv1_weight"}, {"1", "v1"},       {"", "v"},
      {"for", "for_"},      {"int64_t", "int64_t_"}, {"__x__", "x"},                  {"/a//b/", "a_b"},
      {"\xe6\x97\xa5", "v"}, {"NULL", "NULL_"},       {"not_eq", "not_eq_"},            {"caf\xc3\xa9", "caf"}};
  for (auto [name, want] : kCases) EXPECT_EQ(identifier(name), want) << name;
  Namer n("p");
  std::vector<std::string> all;
  for (const char *name : {"a.b", "a_b", "a/b", "a_b_1", "p_x", "x", "v_p_x", "\xe6\x97\xa5", "\xe6\x9c\xac"})
    all.push_back(n.make(name));
  EXPECT_EQ(all, (std::vector<std::string>{"a_b", "a_b_1", "a_b_2", "a_b_1_1", "v_p_x", "x", "v_p_x_1", "v", "v_1"}));
}

TEST(Emit, CommentsDoNoHarm) {
  auto same = [](const char *s) { EXPECT_EQ(comment_text(s), s); };
  same("plain \"text\", caf\xc3\xa9, \xe6\x97\xa5\xe6\x9c\xac, a \\ b");
  EXPECT_EQ(comment_text("*/ x /* y"), "*\\/ x /\\* y");
  EXPECT_EQ(comment_text("/*/"), "/\\*\\/");
  EXPECT_EQ(comment_text("a?" "?/b?" "?" "?/"), "a?\\?/b?\\?\\?/");
  EXPECT_EQ(comment_text("a\nb\r\t\x7f"), "a\\x0ab\\x0d\\x09\\x7f");
  EXPECT_EQ(comment_text("end\\"), "end\\ .");
  EXPECT_EQ(comment_text("end\\  "), "end\\   .");
  EXPECT_EQ(comment_text("\xe2\x80\xae" "evil \xff\xc0\xaf\xed\xa0\x80"),
            "\\xe2\\x80\\xaeevil \\xff\\xc0\\xaf\\xed\\xa0\\x80");
  EXPECT_EQ(string_literal("a\"b\\c??\n\xc3\xa9"), "\"a\\\"b\\\\c\\?\\?\\012\\303\\251\"");
}

const char *kHostile = R"(mlc 1

const @'*/ int x; /*': f32[2] = [1.0, nan] from "const */ \\"

kernel @'exp_f32'[n](x: f32[n], 'for': f32[2]) -> ('int': f32[n]) {
  attr note = "*/"
  compute 'int'[i in n] = exp(x[i]) + 'for'[0] * -inf from "/*", "*/ return 1; //", "tri??/graph\\"
}

kernel @add_f32[n]('p_run': f32[n], 'a b': f32[n]) -> ('a_b': f32[n]) {
  compute 'a_b'['a.b' in n] = max('p_run'['a.b'], 'a b'['a.b']) from "line\nbreak \xe2\x80\xae"
}

graph @'*/ main'['a/b']('seq len': f32['a/b'], context: f32['a/b'], scratch arena: u8[64] {align = 64}) -> ('??/': f32['a/b'], 'memory': f32['a/b']) {
  assume 'a/b' < 100
  call @'exp_f32'('seq len', @'*/ int x; /*') -> 'memory' from "node \"q\" ??/ \x01"
  call @add_f32('memory', context) -> '??/' from "\\"
}
)";

TEST(Emit, HostileNames) {
  EmitProgram p(kHostile);
  ASSERT_TRUE(p.ok);
  for (const char *cc : {"g++", "clang++"})
    expect_same(p, {array(DType::F32, {9}, 1), array(DType::F32, {9}, 2)}, kFlags, cc);
}

TEST(Emit, TwoModelsAndCInOneProgram) {
  EmitScratch dir;
  EmitProgram p(kHostile), q(kHostile);
  emit(p, dir, "one"), emit(q, dir, "two");
  dir.put("use.c", R"(#include "one.h"
#include "two.h"
#include <stdlib.h>
#include <string.h>
int main(void) {
  float x[4] = {0, 1, 2, 3}, z[4] = {4, 5, 6, 7}, y[4], m[4];
  one_context a;
  two_context b;
  one_in in = {x, z, {4}};
  one_out out = {y, {0}, m, {0}};
  two_in in2 = {x, z, {100}};
  two_out out2 = {y, {0}, m, {0}};
  if (one_init(&a, 0, 0, 0) || one_init(&a, 0, 0, 0) || two_init(&b, 0, 0, 0)) return 1;
  if (one_context_bytes() != sizeof a || one_CONTEXT_BYTES != sizeof a) return 2;
  size_t n = one_arena_bytes(&in.dims, 1);
  if (n == 0 || n % 64 != 0) return 3;
  void *arena = aligned_alloc(64, n);
  if (one_run(&a, &in, &out, arena)) return 4;
  if (out.v_dims[0] != 4 || !(y[3] == 7)) return 5;
  if (!strstr(two_error(two_run(&b, &in2, &out2, arena)), "a/b")) return 6;
  two_dims huge = {INT64_MAX / 4}, negative = {-1};
  if (two_arena_bytes(&huge, 1) || two_arena_bytes(&negative, 1)) return 7;
  in2.dims = huge;
  if (!two_run(&b, &in2, &out2, arena)) return 8;
  in2.dims.a_b = 4;
  if (!two_run(&b, &in2, &out2, 0) || !two_run(&b, &in2, &out2, (char *)arena + 8)) return 9;
  in2.context = 0;
  if (!strstr(two_error(two_run(&b, &in2, &out2, arena)), "context")) return 10;
  in2.dims.a_b = 0;
  in2.seq_len = 0;
  if (two_run(&b, &in2, &out2, arena)) return 11;
  if (!two_init(&b, x, 4, 0) || !two_error(-1) || !two_error(12345)) return 12;
  free(arena);
  return 0;
}
)");
  dir.sh(fmt::format("g++ {0} -c one.cc one_weights.cc && clang++ {0} -c two.cc two_weights.cc && "
                     "cc -std=c11 -Wall -Wextra -Wpedantic -Werror -c use.c && cc -o use use.o one.o two.o one_weights.o "
                     "two_weights.o && ./use", kFlags));
  // Nothing is needed from outside, everything seen from outside has the prefix.
  EXPECT_EQ(dir.sh("nm -u one.o two.o | grep -v ':$' | grep -v '_weights_data$' | grep . || true"), "");
  EXPECT_EQ(dir.sh("nm -g --defined-only one.o | grep -v ':$' | grep -v ' one_' | grep . || true"), "");
}

TEST(Emit, FailuresNameTheNode) {
  EmitProgram p(R"(mlc 1

kernel @gather[n, m](x: f32[n], ids: i64[m]) -> (y: f32[m]) {
  for i in m {
    r: index = index(ids[i])
    assume r >= -n && r < n
    y[i] = x[where(r < 0, r + n, r)]
  }
}

graph @main[n](x: f32[n], ids: i64[3]) -> (y: f32[3], z: f32[3]) {
  call @gather(x, ids) -> y from "/a/Gather"
  call @gather(y, ids) -> z from "/b/Gather"
}
)");
  ASSERT_TRUE(p.ok);
  Array ids(DType::I64, {3});
  ids.set(0, Scalar::of_int(-3)), ids.set(1, Scalar::of_int(2));
  expect_same(p, {array(DType::F32, {5}, 1), ids});
  EmitScratch dir;
  emit(p, dir);
  std::string error;
  ASSERT_TRUE(write_npy_file((dir.path / "x.npy").string(), array(DType::F32, {5}, 1), &error));
  dir.sh(fmt::format("g++ {} -fsanitize=address,undefined -fno-sanitize-recover=all -o p_main p.cc p_main.cc", kFlags));
  for (auto [id, node] : {std::pair(int64_t(4), "/b/Gather"), std::pair(int64_t(5), "/a/Gather"),
                          std::pair(INT64_MIN, "/a/Gather"), std::pair(INT64_MAX, "/a/Gather")}) {
    ids.set(2, Scalar::of_int(id));
    ASSERT_TRUE(write_npy_file((dir.path / "ids.npy").string(), ids, &error));
    int code;
    EXPECT_EQ(dir.sh("./p_main x.npy ids.npy", &code),
              fmt::format("p_main: error: node \"{}\": index out of range: expected r >= -n && r < n\n", node));
    EXPECT_EQ(code, 1);
  }
}

TEST(Emit, ParallelLoopsUseTheCallersThreads) {
  EmitProgram p(R"(mlc 1

const @k: f32[3] = [1.0, 2.0, 3.0]

kernel @rows[n](x: f32[n, 3], ids: i64[n]) -> (y: f32[n, 3]) {
  for i in n parallel {
    alloc s: f32[] in local
    s[] = 0.0
    for j in 3 {
      s[] = s[] + x[i, j] * @k[j]
    }
    r: index = index(ids[i])
    assume r >= 0 && r < n
    for j in 3 {
      y[i, j] = s[] + x[r, j]
    }
  }
}

graph @main[n](x: f32[n, 3], ids: i64[n]) -> (y: f32[n, 3]) {
  call @rows(x, ids) -> y from "/rows"
}
)");
  ASSERT_TRUE(p.ok);
  Array ids(DType::I64, {50});
  for (int64_t i = 0; i < 50; i++) ids.set(i, Scalar::of_int(i * 7 % 50));
  expect_same(p, {array(DType::F32, {50, 3}, 1), ids});
  EmitScratch dir;
  emit(p, dir);
  dir.put("use.cc", R"(#include "p.h"
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>
static int calls;
static void parallel_for(void *user, int64_t n, void (*task)(void *, int64_t, int), void *arg) {
  calls += *static_cast<int *>(user);
  std::vector<std::thread> threads;
  for (int w = 0; w < 4; w++)
    threads.emplace_back([=] { for (int64_t i = w; i < n; i += 4) task(arg, i, w); });
  for (std::thread &t : threads) t.join();
}
int main() {
  float x[150], y[150], z[150];
  int64_t ids[50];
  for (int i = 0; i < 150; i++) x[i] = float(i) / 7, ids[i % 50] = (i * 11) % 50;
  int one = 1;
  p_options options = {4, parallel_for, &one};
  p_context serial, threaded;
  if (p_init(&serial, nullptr, 0, nullptr) || p_init(&threaded, nullptr, 0, &options)) return 1;
  p_in in = {x, ids, {50}};
  p_out a = {y, {}}, b = {z, {}};
  if (p_run(&serial, &in, &a, nullptr) || calls || p_run(&threaded, &in, &b, nullptr) || calls != 1) return 2;
  if (std::memcmp(y, z, sizeof y)) return 3;
  ids[13] = 50, ids[14] = -1;
  int code = p_run(&threaded, &in, &b, nullptr);
  std::puts(p_error(code));
  return code && code == p_run(&serial, &in, &a, nullptr) ? 0 : 4;
}
)");
  EXPECT_EQ(dir.sh(fmt::format("g++ {} -fsanitize=thread -pthread -o use use.cc p.cc p_weights.cc && ./use", kFlags)),
            "node \"/rows\": index out of range: expected r >= 0 && r < n\n");
}

TEST(Emit, NoFusedProducts) {  // where the machine has them
  if (!__builtin_cpu_supports("fma")) GTEST_SKIP();
  EmitProgram p(R"(mlc 1

kernel @k[n](x: f32[n], z: f32[n]) -> (y: f32[n], s: f32[]) {
  compute y[i in n] = x[i] * z[i] + x[i]
  compute s[] = sum(x[i] * z[i] for i in n)
}

graph @main[n](x: f32[n], z: f32[n]) -> (y: f32[n], s: f32[]) {
  call @k(x, z) -> y, s
}
)");
  ASSERT_TRUE(p.ok);
  Array x = samples(DType::F32, 1000, 5), z = samples(DType::F32, 1000, 6);
  for (int64_t i = 0; i < 1000; i++)
    for (Array *a : {&x, &z})
      if (!(std::fabs(a->get(i).as_f32()) < 1e9f)) a->set(i, Scalar::of_f32(float(i) / 3));
  for (const char *cc : {"g++", "clang++"}) expect_same(p, {x, z}, std::string(kFlags) + " -march=native", cc);
}

TEST(Emit, SameTextSameBytes) {
  std::vector<std::string> texts;
  for (int i = 0; i < 2; i++) {
    EmitProgram p(kHostile);
    CppOptions o;
    o.name = "p";
    CppModel model;
    ASSERT_TRUE(emit_model(p.b, p.m, o, model, p.diag));
    texts.push_back(model.header + model.source);
  }
  EXPECT_EQ(texts[0], texts[1]);
}

TEST(Emit, RefusesWhatItCannot) {
  const std::pair<const char *, const char *> kCases[] = {
      {"graph @main(x: f32[4]) -> (y: f32[4]) {\n  dataflow -> y {\n    y: f32[4] = Relu(x)\n  }\n}\n", "@main: "},
      {"kernel @k[n](x: f32[n]) -> (y: f32[n]) {\n  alloc t: f32[n]\n  compute t[i in n] = x[i]\n"
       "  compute y[i in n] = t[i]\n}\ngraph @main[n](x: f32[n]) -> (y: f32[n]) {\n  call @k(x) -> y\n}\n",
       "@k: t has no place in memory: run mlc-plan first"},
      {"kernel @k(x: f32[4]) -> (y: f32[4]) {\n  compute y[i in 4] = x[i]\n}\n", "no graph to emit"}};
  for (auto [text, want] : kCases) {
    EmitProgram p(std::string("mlc 1\n\n") + text);
    CppOptions o;
    o.name = "p";
    CppModel model;
    EXPECT_FALSE(emit_model(p.b, p.m, o, model, p.diag));
    ASSERT_FALSE(p.diag.messages().empty());
    EXPECT_NE(p.diag.messages()[0].find(want), std::string::npos) << p.diag.messages()[0];
  }
}

}  // namespace
}  // namespace mlc
