// Loops marked unroll and vectorize, and local buffers in registers: emitted for each instruction set, by one compiler
// or the other, and compared with the interpreter bit by bit.
#include "emit_program.h"

namespace mlc {
namespace {

// $FEATURES in the text, for each instruction set that this machine has.
std::vector<std::string> for_each_set(const std::string &text) {
  std::vector<std::string> sets = {""};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) sets.push_back("\"avx2\", \"fma\"");
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    sets.push_back("\"avx512f\", \"avx512bw\", \"avx512dq\", \"avx512vl\", \"avx2\", \"fma\"");
#endif
  std::vector<std::string> out;
  for (const std::string &set : sets) {
    std::string t = text;
    for (size_t at; (at = t.find("$FEATURES")) != t.npos;) t.replace(at, 9, "attr features = [" + set + "]");
    out.push_back(t);
  }
  return out;
}

Array of(DType t, std::vector<int64_t> dims, uint64_t seed) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  Array a = samples(t, size_t(n), seed), b(t, dims);
  for (int64_t i = 0; i < n; i++) b.set(i, a.get(i));
  return b;
}

void same_everywhere(const std::string &text, const std::vector<std::vector<Array>> &inputs) {
  for (const std::string &t : for_each_set(text)) {
    EmitProgram p(t);
    ASSERT_TRUE(p.ok);
    SCOPED_TRACE(t);
    bool clang = t.find("avx2") != t.npos && t.find("avx512") == t.npos;
    EmittedProgram emitted(p, kFlags, clang ? "clang++" : "g++");
    for (const std::vector<Array> &in : inputs) expect_equal(run_interpreted(p, in), emitted.run(in));
  }
}

// Elements side by side, at distances, gathered; operands that are the same in all lanes; lengths that are no power of
// two, longer than a vector, and open.
TEST(EmitLoops, Vectors) {
  same_everywhere(R"(mlc 1

kernel @k[n](x: f32[n, 17], w: f32[17, 3], a: f64[48]) -> (y: f32[n, 17], z: f32[n, 3], s: f32[17, n], u: f64[48], g: f32[17], t: f32[n, 17]) {
  $FEATURES
  for i in n
  for j in 17 vectorize {
    y[i, j] = x[i, j] * w[j, 1] + x[i, 0] - 0.5
  }
  for j in 3
  for i in n vectorize {
    z[i, j] = max(x[i, j], w[j, 2]) / x[i, 3]
  }
  for i in n
  for j in 17 vectorize {
    s[16 - j, i] = x[i, j]
  }
  for i in 48 vectorize {
    u[i] = -a[47 - i] * 2.0
  }
  for j in 17 vectorize {
    g[j] = w[j * j % 17, j % 3] + w[j // 2, 0]
  }
  for i in n
  for j in 17 vectorize {
    alloc acc: f32[] in local
    acc[] = 0.0
    for k in 3 {
      acc[] = acc[] + w[j, k] * x[i, k]
    }
    alloc p: f32[2] in local
    for k in 2 {
      p[k] = acc[] * w[j, k]
    }
    t[i, j] = p[0] - p[1]
  }
}

graph @main[n](x: f32[n, 17], w: f32[17, 3], a: f64[48]) -> (y: f32[n, 17], z: f32[n, 3], s: f32[17, n], u: f64[48], g: f32[17], t: f32[n, 17]) {
  call @k(x, w, a) -> y, z, s, u, g, t
}
)", {{of(DType::F32, {0, 17}, 1), of(DType::F32, {17, 3}, 2), of(DType::F64, {48}, 3)},
     {of(DType::F32, {7, 17}, 1), of(DType::F32, {17, 3}, 2), of(DType::F64, {48}, 3)},
     {of(DType::F32, {48, 17}, 4), of(DType::F32, {17, 3}, 5), of(DType::F64, {48}, 6)}});
}

// Functions of floats lane by lane: selections, rounding, mathematics, bits.
TEST(EmitLoops, Mathematics) {
  same_everywhere(R"(mlc 1

scalar @clipped(x: f32, low: bool) -> (y: f32) {
  t: f32 = where(low, max(x, -1.0), x)
  y: f32 = min(t, 2.5)
}

kernel @k(x: f32[70], z: f32[70], d: f64[70]) -> (y: f32[24, 70], w: f64[8, 70], b: bool[6, 70]) {
  $FEATURES
  for i in 70 vectorize {
    v: f32 = x[i]
    up: bool = v > z[i] || isnan(v)
    y[0, i] = floor(v)
    y[1, i] = ceil(v)
    y[2, i] = trunc(v)
    y[3, i] = round_even(v)
    y[4, i] = sqrt(abs(v))
    y[5, i] = exp(v)
    y[6, i] = tanh(v) + sigmoid(z[i])
    y[7, i] = erf(v)
    y[8, i] = log(v)
    y[9, i] = max(v, z[i])
    y[10, i] = min(v, 0.25)
    y[11, i] = clamp(v, -1.0, z[i])
    y[12, i] = where(up, v, z[i])
    y[13, i] = where(x[0] > 0.0, v, -v)
    y[14, i] = fmod(v, 0.75)
    y[15, i] = bits.f32(bitxor(bits.u32(v), 0x80000000))
    y[16, i] = f32(i32(v)) + f32(u8(v))
    y[17, i] = f32(f64(v) * 0.1)
    y[18, i] = f32(f16(v)) + f32(bf16(z[i]))
    y[19, i] = @clipped(v, up)
    y[20, i] = f32(up) + f32(i)
    y[21, i] = pow(abs(v), z[i])
    y[22, i] = sin(v)
    y[23, i] = where(i % 3 == 1, 1.0, v)
    b[0, i] = up
    b[1, i] = !(v <= z[i]) && v != 0.0
    b[2, i] = isinf(v) == up
    b[3, i] = f64(v) < d[i] && up
    b[4, i] = i < 33
    b[5, i] = bool(v)
    w[0, i] = floor(d[i]) + trunc(d[i])
    w[1, i] = exp(d[i])
    w[2, i] = sqrt(d[i])
    w[3, i] = round_even(d[i])
    w[4, i] = max(d[i], f64(v))
    w[5, i] = abs(d[i])
    w[6, i] = f64(i32(v)) + f64(i64(d[i]))
    w[7, i] = where(up, d[i], 0.0)
  }
}

graph @main(x: f32[70], z: f32[70], d: f64[70]) -> (y: f32[24, 70], w: f64[8, 70], b: bool[6, 70]) {
  call @k(x, z, d) -> y, w, b
}
)", {{of(DType::F32, {70}, 7), of(DType::F32, {70}, 8), of(DType::F64, {70}, 9)}});
}

std::string with_type(std::string text, const std::string &type) {
  for (size_t at = 0; (at = text.find('T', at)) != text.npos; at++) {
    bool word = at && (isalnum(text[at - 1]) || isalnum(text[at + 1]));
    if (!word) text.replace(at, 1, type);
  }
  return text;
}

// A kernel for each type, called one after the other.
void same_for_types(const std::vector<const char *> &types, const std::string &kernel, std::vector<std::string> results) {
  std::string text = "mlc 1\n\n", params, out, calls;
  std::vector<Array> in;
  for (const char *type : types) {
    std::string k = with_type(kernel, type), call = fmt::format("  call @k_{0}(x_{0}, z_{0}) -> ", type);
    text += k + "\n";
    params += fmt::format("{0}x_{1}: {1}[67], z_{1}: {1}[67]", params.empty() ? "" : ", ", type);
    for (size_t r = 0; r < results.size(); r++) {
      out += fmt::format("{}r{}_{}: {}", out.empty() ? "" : ", ", r, type, with_type(results[r], type));
      call += fmt::format("{}r{}_{}", r ? ", " : "", r, type);
    }
    calls += call + "\n";
    DType t = dtype_named(type);
    in.push_back(of(t, {67}, 1)), in.push_back(of(t, {67}, 2));
  }
  text += fmt::format("graph @main({}) -> ({}) {{\n{}}}\n", params, out, calls);
  same_everywhere(text, {in});
}

// x * y + z with one rounding, where the machine has it and where it is computed: sums that cancel, that lose all of
// one side, that are ties or denormal.
TEST(EmitLoops, FusedProducts) {
  auto near = [](DType t, uint64_t seed) {  // close to what makes sums cancel and underflow
    Array a(t, {3000});
    std::mt19937_64 random(seed);
    int bits = info(t).bits, mantissa = t == DType::F32 ? 23 : 52;
    for (int64_t i = 0; i < a.size(); i++) {
      uint64_t r = random(), exponent = (t == DType::F32 ? 127 : 1023) + random() % 5 - 2;
      if (i % 5 == 1) exponent = random() % (t == DType::F32 ? 255 : 2047);
      if (i % 5 == 2) exponent = random() % (t == DType::F32 ? 80 : 560);
      uint64_t low = i % 3 ? r >> (64 - mantissa) : (r >> 60) << (mantissa - 4);
      a.set(i, from_bits(t, (r & 1) << (bits - 1) | exponent << mantissa | low));
    }
    return a;
  };
  std::vector<Array> in;
  for (DType t : {DType::F32, DType::F64})
    for (uint64_t seed : {1, 2, 3}) in.push_back(near(t, seed));
  for (int64_t i = 0; i < 3000; i += 7) {  // z = -(x * y), rounded
    in[2].set(i, Scalar::of_f32(-(in[0].get(i).as_f32() * in[1].get(i).as_f32())));
    in[5].set(i, Scalar::of_f64(-(in[3].get(i).as_f64() * in[4].get(i).as_f64())));
  }
  std::vector<Array> special = {of(DType::F32, {3000}, 4), of(DType::F32, {3000}, 5), of(DType::F32, {3000}, 6),
                                of(DType::F64, {3000}, 7), of(DType::F64, {3000}, 8), of(DType::F64, {3000}, 9)};
  same_everywhere(R"(mlc 1

kernel @k(x: f32[3000], y: f32[3000], z: f32[3000], a: f64[3000], b: f64[3000], c: f64[3000]) -> (f: f32[3000], d: f64[3000], g: f32[3000], e: f64[3000]) {
  $FEATURES
  for i in 3000 {
    f[i] = fma(x[i], y[i], z[i])
    d[i] = fma(a[i], b[i], c[i])
  }
  for i in 3000 vectorize {
    g[i] = fma(x[i], y[i], z[i])
  }
  for i in 3000 vectorize {
    e[i] = fma(a[i], b[i], c[2999 - i])
  }
}

graph @main(x: f32[3000], y: f32[3000], z: f32[3000], a: f64[3000], b: f64[3000], c: f64[3000]) -> (f: f32[3000], d: f64[3000], g: f32[3000], e: f64[3000]) {
  call @k(x, y, z, a, b, c) -> f, d, g, e
}
)", {in, special});
}

// Integers of every width.
TEST(EmitLoops, Integers) {
  same_for_types({"i8", "u16", "i32", "u64"}, R"(kernel @k_T(x: T[67], z: T[67]) -> (y: T[20, 67], b: bool[3, 67]) {
  $FEATURES
  for i in 67 vectorize {
    v: T = x[i]
    y[0, i] = v + z[i]
    y[1, i] = v - z[0]
    y[2, i] = v * z[i]
    y[3, i] = v / z[i]
    y[4, i] = v % z[i] + v // z[i]
    y[5, i] = max(v, z[i]) + min(v, 3)
    y[6, i] = abs(v)
    y[7, i] = shl(v, 3)
    y[8, i] = shr(v, 2)
    y[9, i] = shl(v, z[i]) + shr(v, z[i])
    y[10, i] = bitand(v, z[i])
    y[11, i] = bitor(v, bitnot(z[i]))
    y[12, i] = bitxor(v, 5)
    y[13, i] = clamp(v, 2, z[i])
    y[14, i] = where(v < z[i], v, 1)
    y[15, i] = T(f32(v))
    y[16, i] = T(i32(v)) + T(u8(z[i])) + T(i64(v))
    y[17, i] = T(v == z[i]) + T(i)
    y[18, i] = ipow(v, 3)
    y[19, i] = 0 - v
    b[0, i] = v >= z[i]
    b[1, i] = v != 0
    b[2, i] = bool(v) && z[i] > v
  }
}
)", {"T[20, 67]", "bool[3, 67]"});
}

// Small floats, bools, packed elements.
TEST(EmitLoops, SmallTypes) {
  same_for_types({"f16", "f8e4m3fn", "f4e2m1"}, R"(kernel @k_T(x: T[67], z: T[67]) -> (y: T[67], f: f32[67]) {
  $FEATURES
  for i in 67 vectorize {
    y[i] = where(i < 20, z[i], x[66 - i])
  }
  for i in 67 vectorize {
    f[i] = f32(x[i]) + f32(where(z[i] < x[i], max(z[i], x[2]), x[0]))
  }
}
)", {"T[67]", "f32[67]"});
  same_for_types({"bf16"}, R"(kernel @k_T(x: T[67], z: T[67]) -> (y: T[67]) {
  $FEATURES
  for i in 67 vectorize {
    t: T = x[i] * z[i] + x[0]
    y[i] = exp(t) - T(f32(t) * 0.3)
  }
}
)", {"T[67]"});
  same_for_types({"bool", "i4"}, R"(kernel @k_T(x: T[67], z: T[67]) -> (y: T[67], f: f32[67]) {
  $FEATURES
  for i in 67 vectorize {
    y[i] = where(i < 20, z[i], x[66 - i])
  }
  for i in 67 vectorize {
    f[i] = f32(x[i]) + f32(where(x[i] != z[3], x[i], z[i]))
  }
}
)", {"T[67]", "f32[67]"});
}

// Conditions that differ from lane to lane: tails, masks, both sides; loads that only some lanes may make.
TEST(EmitLoops, Guards) {
  same_everywhere(R"(mlc 1

kernel @k[n](x: f32[n], w: f32[n, 5]) -> (y: f32[n], z: f32[n], u: f32[n], m: f32[], q: f32[n, 5], e: f32[n]) {
  $FEATURES
  for i in (n + 15) // 16
  for v in 16 vectorize {
    if i * 16 + v < n {
      t: f32 = x[i * 16 + v]
      y[i * 16 + v] = t * 2.0
      z[i * 16 + v] = where(t > 0.0, t, 0.0)
    }
  }
  for i in n vectorize {
    u[i] = 0.5
    if x[i] > 0.0 {
      u[i] = x[i] + w[i, 2]
    } else {
      if i >= 2 {
        u[i] = x[i - 2]
      }
    }
  }
  alloc best: f32[16] in local
  for v in 16 vectorize {
    best[v] = -inf
  }
  for i in (n + 15) // 16
  for v in 16 vectorize {
    best[v] = max(best[v], where(i * 16 + v < n, x[i * 16 + v], -inf))
  }
  for i in (n + 15) // 16
  for v in 16 vectorize {
    if i * 16 + v < n {
      best[v] = max(best[v], w[i * 16 + v, 0])
    }
  }
  m[] = max(best[v] for v in 16)
  for i in n
  for j in 8 vectorize {
    if j < 5 && n > 3 {
      q[i, j] = w[i, j] + where(j < 4, w[i, j + 1], 0.0)
    }
    if j < 5 && n <= 3 {
      q[i, j] = 1.0
    }
  }
  for i in n vectorize {
    e[i] = where(i >= 1, x[i - 1], 0.0) + where(i + 1 < n, x[i + 1], 0.0)
  }
}

graph @main[n](x: f32[n], w: f32[n, 5]) -> (y: f32[n], z: f32[n], u: f32[n], m: f32[], q: f32[n, 5], e: f32[n]) {
  call @k(x, w) -> y, z, u, m, q, e
}
)", {{of(DType::F32, {1}, 1), of(DType::F32, {1, 5}, 2)},
     {of(DType::F32, {3}, 1), of(DType::F32, {3, 5}, 2)},
     {of(DType::F32, {17}, 1), of(DType::F32, {17, 5}, 2)},
     {of(DType::F32, {48}, 3), of(DType::F32, {48, 5}, 4)}});
}

// Unrolled loops and the registers that they make of local buffers; buffers that stay arrays.
TEST(EmitLoops, Registers) {
  same_everywhere(R"(mlc 1

kernel @product[m](x: f32[m, 20], w: f32[20, 48], b: f32[48]) -> (y: f32[m, 48]) {
  $FEATURES
  for i0 in (m + 3) // 4 parallel
  for r in 5 unroll {
    rows: index = min(4, m - i0 * 4)
    if r == rows {
      alloc acc: f32[r, 48] in local
      for i1 in r unroll
      for v in 48 vectorize {
        acc[i1, v] = b[v]
      }
      for k in 20
      for i1 in r unroll
      for v in 48 vectorize {
        acc[i1, v] = acc[i1, v] + x[i0 * 4 + i1, k] * w[k, v]
      }
      for i1 in r unroll
      for v in 48 vectorize {
        y[i0 * 4 + i1, v] = max(acc[i1, v], 0.0)
      }
    }
  }
}

kernel @rest[m](x: f32[m, 20]) -> (s: f32[m], h: f32[m, 20], c: i32[m, 3], p: f32[m, 20]) {
  $FEATURES
  for i in m {
    alloc t: f32[4] in local
    for u in 4 unroll {
      t[u] = 0.0
    }
    for k in 5
    for u in 4 unroll {
      t[u] = t[u] + x[i, k * 4 + u]
    }
    s[i] = t[0] + t[1] + (t[2] + t[3])
    alloc l: f32[16] in local
    for v in 16 vectorize {
      l[v] = x[i, v + 4]
    }
    l[3] = 7.0
    for v in 16 vectorize {
      h[i, v] = l[v] * l[5]
    }
    for v in 4 {
      h[i, v + 16] = l[v]
    }
    alloc f: bool[3] in local
    for u in 3 unroll {
      f[u] = x[i, u] > 0.0
    }
    for u in 3 unroll {
      c[i, u] = i32(f[u]) + i32(f[2 - u])
    }
    alloc d: f32[20] in local
    for v in 20 vectorize {
      d[v] = x[i, 19 - v]
    }
    for v in 20 vectorize {
      p[i, v] = d[19 - v] + 1.0
    }
  }
}

graph @main[m](x: f32[m, 20], w: f32[20, 48], b: f32[48]) -> (y: f32[m, 48], s: f32[m], h: f32[m, 20], c: i32[m, 3], p: f32[m, 20]) {
  call @product(x, w, b) -> y
  call @rest(x) -> s, h, c, p
}
)", {{of(DType::F32, {1, 20}, 1), of(DType::F32, {20, 48}, 2), of(DType::F32, {48}, 3)},
     {of(DType::F32, {7, 20}, 4), of(DType::F32, {20, 48}, 5), of(DType::F32, {48}, 6)}});
}

// Sums that lanes meet in keep the order of the text; loops that cannot be vector code are right all the same.
TEST(EmitLoops, MeetingAndRefused) {
  same_everywhere(R"(mlc 1

kernel @k[n, v](x: f32[n, 19], table: f32[v, 4], ids: i64[n]) -> (s: f32[n], t: f32[n, 4], c: i32[4], r: f32[n]) {
  $FEATURES
  for i in n {
    s[i] = 1.0
  }
  for i in n
  for k in 19 vectorize {
    s[i] = s[i] + x[i, k] * 2.0
  }
  for i in n vectorize {
    a: index = index(ids[i])
    assume a >= 0 && a < v
    for j in 4 {
      t[i, j] = table[a, j]
    }
  }
  for i in 4 vectorize {
    c[i] = 0
    for j in i {
      c[i] = c[i] + 1
    }
  }
  for i in n vectorize {
    alloc b: f32[19] in local
    for k in 19 {
      b[k] = x[i, k]
    }
    r[i] = b[i % 19]
  }
}

graph @main[n, v](x: f32[n, 19], table: f32[v, 4], ids: i64[n]) -> (s: f32[n], t: f32[n, 4], c: i32[4], r: f32[n]) {
  call @k(x, table, ids) -> s, t, c, r
}
)", {{of(DType::F32, {0, 19}, 1), of(DType::F32, {2, 4}, 2), Array(DType::I64, {0})},
     {of(DType::F32, {17, 19}, 1), of(DType::F32, {2, 4}, 2), Array(DType::I64, {17})}});
}

}  // namespace
}  // namespace mlc
