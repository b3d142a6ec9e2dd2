#!/usr/bin/env python3
"""Measures the scalar functions of src/math/math.mlc: the largest error in units of the last place.

    ulp.py [--step N] [--full] [--samples N] [--only NAME,..] [--cxx CXX]       # the errors
    ulp.py --tables [--cxx CXX] > ../unit/math_tables.h                         # what math_test.cc compares with

Translates the text to C++ on its own (the project's emitter is not asked), compiles it with -O2 -ffp-contract=off and
compares with the C library: functions of one f32 in f64 at every N-th bit pattern (--full: all 2^32; of odd and even
ones 2^31 and a sample), functions of f64 with __float128 at N samples (uniform over bit patterns, plus dense around 0
and 1). Exit code 1 if a special value is wrong or an error is larger than BOUNDS says: the table of
man/mlc-numerics.7.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.abspath(__file__)) + "/../.."
TYPES = {"f32": "float", "f64": "double", "i32": "int32_t", "i64": "int64_t", "u32": "uint32_t", "u64": "uint64_t",
         "bool": "bool"}
TOKEN = re.compile(r"\s*(@?[A-Za-z_][A-Za-z0-9_.]*|0x[0-9a-fA-F]+|\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+"
                   r"|\|\||&&|==|!=|<=|>=|[-+*/()<>!,])")
LEVELS = [["||"], ["&&"], ["==", "!=", "<", "<=", ">", ">="], ["+", "-"], ["*", "/"]]


class Scalar:
    """One item of the text: name, parameters, result, lets."""

    def __init__(self, name, params, result, lets):
        self.name, self.params, self.result, self.lets = name, params, result, lets


def read(text):
    items, current = {}, None
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#")[0].strip()
        head = re.fullmatch(r"scalar @([\w.]+)\((.*)\) -> \((\w+): (\w+)\) \{", line)
        let = re.fullmatch(r"(\w+): (\w+) = (.*)", line)
        if head:
            params = [p.split(": ") for p in head[2].split(", ")]
            current = items[head[1]] = Scalar(head[1], params, (head[3], head[4]), [])
        elif let:
            current.lets.append((let[1], let[2], let[3]))
        elif line not in ("", "}", "mlc 1"):
            sys.exit(f"math.mlc:{number}: not understood: {line}")
    return items


class Expression:
    """An expression as C++; `type` is None for a literal until `fix` gives it one."""

    def __init__(self, scalar, types, items, text):
        self.types, self.items = types, items
        self.tokens, at = [], 0
        while at < len(text):
            m = TOKEN.match(text, at)
            if not m:
                sys.exit(f"@{scalar.name}: not understood: {text[at:]}")
            self.tokens.append(m[1])
            at = m.end()
        self.tokens.append("")

    def parse(self, want):
        tree = self.binary(0)
        assert self.tokens[0] == "", self.tokens
        return self.fix(tree, want)

    def binary(self, level):
        if level == len(LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.tokens[0] in LEVELS[level]:
            op = self.tokens.pop(0)
            left = self.joined(op, left, self.binary(level + 1))
        return left

    def joined(self, op, a, b):
        kind = a[0] or b[0]
        result = "bool" if op in LEVELS[2] or op in ("||", "&&") else kind
        if kind is None:
            return (None, lambda t: f"({a[1](t)} {op} {b[1](t)})")
        text = f"({self.fix(a, kind)} {op} {self.fix(b, kind)})"
        if kind in TYPES and kind[0] in "iu" and result == kind:  # modulo 2^n
            wide = f"uint{kind[1:]}_t"
            text = f"{TYPES[kind]}({wide}({self.fix(a, kind)}) {op} {wide}({self.fix(b, kind)}))"
        return (result, lambda t: text)

    def fix(self, tree, want):
        assert tree[0] in (None, want), (tree[0], want, tree[1](want))
        return tree[1](want)

    def unary(self):
        if self.tokens[0] in ("-", "!"):
            op = self.tokens.pop(0)
            a = self.unary()
            return (a[0], lambda t: f"({op}{a[1](t)})")
        return self.primary()

    def arguments(self):
        args = []
        assert self.tokens.pop(0) == "("
        while self.tokens[0] != ")":
            args.append(self.binary(0))
            if self.tokens[0] == ",":
                self.tokens.pop(0)
        self.tokens.pop(0)
        return args

    def primary(self):
        t = self.tokens.pop(0)
        if t == "(":
            inner = self.binary(0)
            assert self.tokens.pop(0) == ")"
            return inner
        if t[0].isdigit() or t in ("inf", "nan"):  # a literal
            return (None, lambda want: self.literal(t, want))
        if t in ("true", "false"):
            return ("bool", lambda want: t)
        if self.tokens[0] != "(":
            kind = self.types[t]
            return (kind, lambda want: t)
        args = self.arguments()
        if t[0] == "@":
            callee = self.items[t[1:]]
            text = ", ".join(self.fix(a, p[1]) for a, p in zip(args, callee.params, strict=True))
            return (callee.result[1], lambda want: f"{mangled(t[1:])}({text})")
        if t.startswith("bits."):
            return (t[5:], lambda want: f"bits<{TYPES[want]}>({self.known(args[0])})")
        if t in TYPES:
            return (t, lambda want: f"cast<{TYPES[want]}>({self.known(args[0])})")
        if t in ("isnan", "isinf"):
            return ("bool", lambda want: f"std::{t}({self.known(args[0])})")
        if t == "where":
            condition = self.fix(args.pop(0), "bool")
            kind = args[0][0] or args[1][0]
            return (kind, lambda want: f"({condition} ? {args[0][1](want)} : {args[1][1](want)})")
        kind = next((a[0] for a in args if a[0]), None)
        return (kind, lambda want: f"m_{t}({', '.join(a[1](want) for a in args)})")

    def known(self, tree):
        assert tree[0], "a literal without a type"
        return tree[1](tree[0])

    def literal(self, t, want):
        if want in ("f32", "f64"):
            assert not t.isdigit(), f"an integer literal {t} for {want}"
            if t in ("inf", "nan"):
                return f"{TYPES[want]}({'INFINITY' if t == 'inf' else 'NAN'})"
            return f"float({t})" if want == "f32" else t
        return f"{TYPES[want]}({t}u)" if int(t, 0) >= 1 << 31 else f"{TYPES[want]}({t})"


def mangled(name):
    return "s_" + name.replace(".", "_")


def translate(items):
    out = []
    for s in items.values():
        params = ", ".join(f"{TYPES[t]} {n}" for n, t in s.params)
        out.append(f"static inline {TYPES[s.result[1]]} {mangled(s.name)}({params}) {{")
        types = dict(s.params)
        for name, kind, text in s.lets:
            out.append(f"  const {TYPES[kind]} {name} = {Expression(s, types, items, text).parse(kind)};")
            types[name] = kind
        out.append(f"  return {s.result[0]};\n}}")
    return "\n".join(out)


# The largest errors allowed, in ULP: of f32 (over all inputs; pow over samples) and f64 (over samples).
BOUNDS = {
    "exp": (1.03, 1), "expm1": (2, 2), "log": (1, 1), "log1p": (2.5, 2.5), "sigmoid": (2.5, 2.5), "softplus": (3, 3),
    "tanh": (1.5, 1.5), "erf": (1.5, 1.5), "rsqrt": (1.5, 1.5), "sin": (0.51, 1), "cos": (0.51, 1), "tan": (0.51, 2.5),
    "asin": (2.5, 2.5), "acos": (1.5, 1.5), "atan": (1.6, 2), "sinh": (2, 2), "cosh": (1.5, 1.5), "asinh": (3, 3),
    "acosh": (3, 3), "atanh": (3.5, 3.5), "pow": (0.51, 1.5),
}

# NAME: special inputs and results, as (x, y) texts in C++; the signs of zeros count.
SPECIAL = {
    "exp": "0,1 -0.,1 I,I -I,0 N,N", "expm1": "0,0 -0.,-0. I,I -I,-1 N,N", "log": "1,0 0,-I -0.,-I I,I -1,N -I,N N,N",
    "log1p": "0,0 -0.,-0. -1,-I I,I -2,N -I,N N,N", "tanh": "0,0 -0.,-0. I,1 -I,-1 N,N",
    "sigmoid": "0,0.5 -0.,0.5 I,1 -I,0 N,N", "softplus": "I,I -I,0 N,N", "erf": "0,0 -0.,-0. I,1 -I,-1 N,N",
    "sin": "0,0 -0.,-0. I,N -I,N N,N", "cos": "0,1 -0.,1 I,N -I,N N,N", "tan": "0,0 -0.,-0. I,N -I,N N,N",
    "asin": "0,0 -0.,-0. 2,N -2,N I,N N,N", "acos": "1,0 2,N -2,N -I,N N,N", "atan": "0,0 -0.,-0. N,N",
    "sinh": "0,0 -0.,-0. I,I -I,-I N,N", "cosh": "0,1 -0.,1 I,I -I,I N,N", "asinh": "0,0 -0.,-0. I,I -I,-I N,N",
    "acosh": "1,0 0.5,N -1,N -I,N I,I N,N", "atanh": "0,0 -0.,-0. 1,I -1,-I 2,N -2,N I,N N,N",
    "rsqrt": "1,1 4,0.5 0,I -0.,-I I,0 -1,N -I,N N,N",
}
# f(-x) is f(x) or -f(x) by a bit operation at the end: the negative half is sampled.
SYMMETRIC = {"tanh", "erf", "sin", "cos", "tan", "asin", "atan", "sinh", "cosh", "asinh", "atanh"}
POW_SPECIAL = (
    "N,0,1 N,-0.,1 1,N,1 1,I,1 1,-I,1 -1,I,1 -1,-I,1 0,0,1 0,1,0 -0.,1,-0. -0.,2,0 -0.,3,-0. 0,-1,I -0.,-1,-I -0.,-2,I "
    "-0.,0.5,0 -0.,-0.5,I 0,I,0 0,-I,I -0.,-I,I I,1,I I,-1,0 -I,1,-I -I,2,I -I,3,-I -I,-1,-0. -I,-2,0 -I,0.5,I "
    "-I,-0.5,0 2,I,I 2,-I,0 0.5,I,0 0.5,-I,I -2,I,I -0.5,I,0 -2,3,-8 -2,2,4 -2,0.5,N -1,0.5,N N,1,N 1.5,N,N -1,N,N 0,N,N I,N,N "
    "2,-1,0.5 2,10,1024 4,0.5,2 -2,-3,-0.125 10,2,100 I,I,I I,-I,0 -I,I,I -I,-I,0 I,0,1 2,0,1 -1,1e30,1 -2,1e30,I")

TABLE_HEAD = """// Made by test/bench/ulp.py --tables; do not edit.
#pragma once
#include <cstdint>

namespace mlc {

struct MathTable {
  const char *name;
  double bound;   // ULP
  uint64_t hash;  // of the results for 4096 inputs, as g++ compiles the text
};
inline const MathTable kMathTables[] = {
"""

HARNESS = r"""
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

template <class To, class From> static inline To bits(From f) {
  static_assert(sizeof(To) == sizeof(From));
  To t;
  memcpy(&t, &f, sizeof t);
  return t;
}
template <class To, class From> static inline To cast(From v) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (v != v) return 0;
    if (v >= std::ldexp(1.0, std::numeric_limits<To>::digits)) return std::numeric_limits<To>::max();
    if (v < From(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  }
  return To(v);
}
template <class T> static inline bool fits(T n) { return n >= 0 && n < T(sizeof(T) * 8); }
template <class T> static inline T m_shl(T a, T n) { return fits(n) ? T(std::make_unsigned_t<T>(a) << n) : T(0); }
template <class T> static inline T m_shr(T a, T n) { return fits(n) ? T(a >> n) : T(0); }
template <class T> static inline T m_bitand(T a, T b) { return a & b; }
template <class T> static inline T m_bitor(T a, T b) { return a | b; }
template <class T> static inline T m_bitxor(T a, T b) { return a ^ b; }
template <class T> static inline T m_abs(T a) { return std::fabs(a); }
template <class T> static inline T m_floor(T a) { return std::floor(a); }
template <class T> static inline T m_trunc(T a) { return std::trunc(a); }
template <class T> static inline T m_round_even(T a) { return std::nearbyint(a); }
template <class T> static inline T m_sqrt(T a) { return std::sqrt(a); }
template <class T> static inline T m_max(T a, T b) { return a != a ? a : b != b ? b : a > b ? a : b; }
template <class T> static inline T m_min(T a, T b) { return a != a ? a : b != b ? b : a < b ? a : b; }

@FUNCTIONS@

[[maybe_unused]] static const double I = INFINITY, N = NAN;
[[maybe_unused]] static int bad;

// ---- with references
#include <quadmath.h>
typedef double Eight __attribute__((vector_size(64)));
#ifdef __AVX512F__  // eight at a time, by libmvec: to a few units of f64
#define MANY(name) \
  extern "C" Eight _ZGVeN8v_##name(Eight); \
  static Eight many_##name(Eight x) { return _ZGVeN8v_##name(x); }
MANY(exp) MANY(expm1) MANY(log) MANY(log1p) MANY(tanh) MANY(erf) MANY(sin) MANY(cos) MANY(tan) MANY(asin) MANY(acos)
MANY(atan) MANY(sinh) MANY(cosh) MANY(asinh) MANY(acosh) MANY(atanh)
static Eight many_rsqrt(Eight x) {
  for (int j = 0; j < 8; j++) x[j] = 1 / std::sqrt(x[j]);
  return x;
}
static Eight many_sigmoid(Eight x) {
  Eight e = many_exp(x < 0 ? x : -x);
  return (x < 0 ? e : e - e + 1) / (1 + e);
}
static Eight many_softplus(Eight x) { return (x > 0 ? x : x - x) + many_log1p(many_exp(x < 0 ? x : -x)); }
#define MANY_OF(name) many_##name
#else
#define MANY_OF(name) nullptr
#endif
// References: R is double for f32 (one rounding of 2^-53 is noise), __float128 for f64.
#define REF1(name, f64, f128) \
  static double ref_##name(double x) { return f64; } \
  static __float128 ref_##name(__float128 x) { return f128; }
REF1(exp, exp(x), expq(x)) REF1(expm1, expm1(x), expm1q(x)) REF1(log, log(x), logq(x)) REF1(log1p, log1p(x), log1pq(x))
REF1(tanh, tanh(x), tanhq(x)) REF1(erf, erf(x), erfq(x)) REF1(sin, sin(x), sinq(x)) REF1(cos, cos(x), cosq(x))
REF1(tan, tan(x), tanq(x)) REF1(asin, asin(x), asinq(x)) REF1(acos, acos(x), acosq(x)) REF1(atan, atan(x), atanq(x))
REF1(sinh, sinh(x), sinhq(x)) REF1(cosh, cosh(x), coshq(x)) REF1(asinh, asinh(x), asinhq(x))
REF1(acosh, acosh(x), acoshq(x)) REF1(atanh, atanh(x), atanhq(x)) REF1(rsqrt, 1 / sqrt(x), 1 / sqrtq(x))
REF1(sigmoid, x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)), x < 0 ? expq(x) / (1 + expq(x)) : 1 / (1 + expq(-x)))
REF1(softplus, fmax(x, 0.0) + log1p(exp(-fabs(x))), fmaxq(x, 0) + log1pq(expq(-fabsq(x))))
static double ref_pow(double x, double y) { return pow(x, y); }
static __float128 ref_pow(__float128 x, __float128 y) { return powq(x, y); }

template <class F> struct Of;
template <> struct Of<float> { using Bits = uint32_t; static constexpr int mantissa = 23, bias = 127; };
template <> struct Of<double> { using Bits = uint64_t; static constexpr int mantissa = 52, bias = 1023; };

// |y - exact| in units of the last place of `exact` rounded to F; 0 if both are NaN, inf if one is. inf counts as the
// number after the largest.
template <class F, class R> static double error_in_ulp(F y, R exact) {
  if (exact != exact || y != y) return exact != exact && y != y ? 0 : I;
  constexpr int mantissa = Of<F>::mantissa, bias = Of<F>::bias;
  const R top = R(std::numeric_limits<F>::max()), last = R(std::ldexp(F(1), bias - mantissa));
  const auto finite = [&](R v) { return v > top + last ? top + last : v < -top - last ? -top - last : v; };
  R found = finite(R(y)), wanted = finite(exact), d = found > wanted ? found - wanted : wanted - found;
  F rounded = F(exact);
  if (std::isinf(y) && y == rounded) return 0;
  int e = rounded == 0 ? 1 - bias : std::isinf(rounded) ? bias : std::ilogb(rounded);
  return double(d / R(std::ldexp(1.0L, std::max(e, 1 - bias) - mantissa)));
}

template <class F> static void special(const char *name, F x, F y, F want) {
  if ((y != y && want != want) || (y == want && std::signbit(y) == std::signbit(want))) return;
  printf("WRONG %s(%a) = %a, expected %a\n", name, double(x), double(y), double(want));
  bad = 1;
}

struct Worst {
  double ulp = 0, x = 0, y = 0;
  void see(double u, double a, double b = 0) { if (u > ulp) ulp = u, x = a, y = b; }
};
static void print(const char *name, const char *type, Worst w, double bound) {
  printf("%-9s %s %8.3f at %a", name, type, w.ulp, w.x);
  if (w.y) printf(", %a", w.y);
  printf("%s\n", w.ulp > bound ? "  TOO LARGE" : "");
  if (w.ulp > bound) bad = 1;
  fflush(stdout);
}

// Bit patterns 0 .. n - 1, many at a time; `look` sees those whose error, by the vectors of libmvec, is near the largest.
template <class G, class M, class L> static uint64_t sieve(G f, M many, uint64_t n, L look) {
  constexpr int kBlock = 4096;
  static float y[kBlock];
  static double exact[kBlock], error[kBlock];
  double worst = 0.4;
  for (uint64_t start = 0; start < n; start += kBlock) {
    for (int k = 0; k < kBlock; k++) y[k] = f(bits<float>(uint32_t(start) + k));
    for (int k = 0; k < kBlock; k += 8) {
      Eight x;
      for (int j = 0; j < 8; j++) x[j] = bits<float>(uint32_t(start) + k + j);
      x = many(x);
      memcpy(exact + k, &x, sizeof x);
    }
    for (int k = 0; k < kBlock; k++) {  // NaN and overflow: errors that are not small
      double a = std::fabs(exact[k]), least = a < 0x1p-126 ? 0x1p-126 : a;
      double ulp = bits<double>((bits<uint64_t>(least) & 0x7ff0000000000000) - (uint64_t(23) << 52));
      double e = std::fabs(y[k] - exact[k]) / ulp;
      bool same = (exact[k] != exact[k] && y[k] != y[k]) || (double(y[k]) == exact[k]);
      error[k] = same ? 0 : e == e ? e : 1e300;
    }
    for (int k = 0; k < kBlock; k++)
      if (error[k] >= worst * 0.9999999) {
        look(bits<float>(uint32_t(start) + k));
        if (error[k] < 100) worst = error[k];
      }
  }
  return n;
}

template <class G, class F, class M>
static void one(const char *name, G f, F ref, M many, uint64_t step, bool symmetric, double bound) {
  Worst w;
  auto look = [&](float x) { w.see(error_in_ulp<float, double>(f(x), ref(double(x))), x); };
  uint64_t i = 0;
  const uint64_t half = uint64_t(1) << 31, all = symmetric ? half : half * 2;
  if constexpr (!std::is_null_pointer_v<M>)
    if (step == 1) i = sieve(f, many, all, look);
  for (; i < half * 2; i += i >= all ? 1009 : step) look(bits<float>(uint32_t(i)));
  for (uint32_t i = 0; i < 4096; i++)  // around 0, 1, the smallest normal number, inf, of both signs
    for (uint32_t c : {0u, 0x3f800000u, 0x00800000u, 0x7f800000u})
      for (uint32_t s : {0u, 0x80000000u}) {
        look(bits<float>((c + i - 2048) ^ s));
      }
  print(name, "f32", w, bound);
}
static double sample64(std::mt19937_64 &r, uint64_t i) {
  uint64_t u = r();
  switch (i % 4) {
    case 0: return bits<double>(u);                                                        // any
    case 1: return bits<double>((u & 0x800fffffffffffff) | (1023 - 30 + r() % 41) << 52);  // 2^-30 .. 2^11
    case 2: return double(int64_t(u)) * 0x1p-63 * 4;                                       // -4 .. 4
    default: return (1 + double(int64_t(u)) * 0x1p-63 * std::ldexp(1.0, -int(r() % 40))) * (r() & 1 ? 1 : -1);
  }
}
template <class F> static void one64(const char *name, double (*f)(double), F ref, uint64_t samples, double bound) {
  std::mt19937_64 r(1);
  Worst w;
  for (uint64_t i = 0; i < samples; i++) {
    double x = sample64(r, i);
    w.see(error_in_ulp<double, __float128>(f(x), ref(__float128(x))), x);
  }
  print(name, "f64", w, bound);
}
template <class P, class R>
static void two(const char *type, P (*f)(P, P), R (*ref)(R, R), uint64_t samples, double bound) {
  std::mt19937_64 r(2);
  Worst w;
  for (uint64_t i = 0; i < samples; i++) {
    P x, y;
    if (i % 2) {
      x = P(sample64(r, r())), y = P(sample64(r, r()));
    } else {  // results inside the range: |y log2 x| < 2^11
      x = P(std::fabs(sample64(r, r())));
      double l = std::log2(double(x));
      y = P((double(int64_t(r())) * 0x1p-63) * 1.1 * (Of<P>::bias + Of<P>::mantissa) / (l ? l : 1));
    }
    w.see(error_in_ulp<P, R>(f(x, y), ref(R(x), R(y))), x, y);
  }
  print("pow", type, w, bound);
}

// ---- without
// What the functions give for 4096 numbers spread over all bit patterns, as one hash (NaN: all ones).
struct Fnv {
  uint64_t hash = 0xcbf29ce484222325;
  void add(uint64_t v) {
    for (int i = 0; i < 8; i++, v >>= 8) hash = (hash ^ (v & 0xff)) * 0x100000001b3;
  }
  void add(float y) { add(y != y ? ~uint64_t(0) : uint64_t(bits<uint32_t>(y))); }
  void add(double y) { add(y != y ? ~uint64_t(0) : bits<uint64_t>(y)); }
};
static float spread(float, uint64_t i, int k) { return bits<float>(uint32_t(i * (k ? 0x85ebca6bu : 0x9e3779b1u))); }
static double spread(double, uint64_t i, int k) {
  return bits<double>(i * (k ? 0xc2b2ae3d27d4eb4fu : 0x9e3779b97f4a7c15u));
}
template <class F> static void hash(const char *name, F (*f)(F), double bound) {
  Fnv h;
  for (uint64_t i = 0; i < 4096; i++) h.add(f(spread(F(), i, 0)));
  printf("    {\"%s\", %g, 0x%016lxu},\n", name, bound, h.hash);
}
template <class F> static void hash(const char *name, F (*f)(F, F), double bound) {
  Fnv h;
  for (uint64_t i = 0; i < 4096; i++) {  // half of the exponents moderate, so that results are
    F y = spread(F(), i, 1);
    h.add(f(spread(F(), i, 0), i % 2 ? y : std::isfinite(y) ? std::fmod(y, F(16)) : y));
  }
  printf("    {\"%s\", %g, 0x%016lxu},\n", name, bound, h.hash);
}

int main(int argc, char **argv) {
  uint64_t step = strtoull(argv[1], nullptr, 10), samples = strtoull(argv[2], nullptr, 10);
  (void)argc;
@CALLS@
  return bad;
}
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--step", type=int, default=1009)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--samples", type=int, default=400000)
    parser.add_argument("--only", default="")
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--cxx", default="g++")
    args = parser.parse_args()
    items = read(open(ROOT + "/src/math/math.mlc").read())
    only = set(args.only.split(",")) if args.only else None
    calls, harness = [], HARNESS
    for name in items:
        base, _, kind = name.rpartition(".")
        if not (base in SPECIAL or base == "pow") or (only and base not in only and name not in only):
            continue
        bound = BOUNDS[base][kind == "f64"]
        f, cxx = mangled(name), TYPES[kind]
        if args.tables:
            calls.append(f'hash<{cxx}>("{name}", {f}, {bound});')
            continue
        if base == "pow":
            for row in POW_SPECIAL.split():
                x, y, z = row.split(",")
                calls.append(f'special<{cxx}>("{name}", {cxx}({x}), {f}({cxx}({x}), {cxx}({y})), {cxx}({z}));')
            ref = "double" if kind == "f32" else "__float128"
            samples = "samples" if kind == "f64" else "samples * 50"
            calls.append(f'two<{cxx}, {ref}>("{kind}", {f}, ref_pow, {samples}, {bound});')
            continue
        for row in SPECIAL[base].split():
            x, y = row.split(",")
            calls.append(f'special<{cxx}>("{name}", {cxx}({x}), {f}({cxx}({x})), {cxx}({y}));')
        if kind == "f32":
            functions = f"[](float x) {{ return {f}(x); }}, [](double x) {{ return ref_{base}(x); }}"
            calls.append(f'one("{base}", {functions}, MANY_OF({base}), step, {int(base in SYMMETRIC)}, {bound});')
        else:
            calls.append(f'one64("{base}", {f}, [](__float128 x) {{ return ref_{base}(x); }}, samples, {bound});')
    if args.tables:
        calls.insert(0, f"printf({json.dumps(TABLE_HEAD)});")
        harness = re.sub(r"// ---- with references.*// ---- without", "", HARNESS, flags=re.S)
        calls.append('printf("};\\n\\n}  // namespace mlc\\n");')
    source = harness.replace("@FUNCTIONS@", translate(items)).replace("@CALLS@", "\n".join("  " + c for c in calls))
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/ulp.cc"
        open(path, "w").write(source)
        if os.environ.get("ULP_KEEP"):
            open(os.environ["ULP_KEEP"], "w").write(source)
        flags = [] if args.tables else ["-lquadmath"]
        if args.full and "avx512f" in open("/proc/cpuinfo").read():
            flags += ["-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-lmvec"]
        subprocess.run([args.cxx, "-std=gnu++20", "-O2", "-ffp-contract=off", "-w", path, "-o", folder + "/ulp"] + flags,
                       check=True)
        step = 1 if args.full else args.step
        return subprocess.run([folder + "/ulp", str(step), str(args.samples)]).returncode


if __name__ == "__main__":
    sys.exit(main())
