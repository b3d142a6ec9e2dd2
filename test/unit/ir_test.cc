// Builder, equality, walking, rewriting, substitution, types of expressions, dimensions of calls.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <set>

#include "base/diag.h"
#include "ir/solve.h"
#include "ir/typing.h"
#include "text/text.h"

namespace mlc {
namespace {

struct Ir : testing::Test {
  Build b;
  std::deque<Source> sources;
  const Expr *e(std::string_view text) {
    std::string error;
    const Expr *x = read_expr(b, text, &error);
    EXPECT_TRUE(x) << error;
    return x;
  }
  Module module(std::string text) {
    sources.push_back(Source::from_string("test", "mlc 1\n\n" + text));
    Module m;
    Diag diag("test", &sources.back());
    EXPECT_TRUE(read(b, sources.back(), m, diag)) << (diag.messages().empty() ? "" : diag.messages()[0]);
    return m;
  }
  std::string str(const Expr *x) { return print(b, x); }
};

TEST_F(Ir, TypesAreUnique) {
  const Type *t = b.tensor(DType::F32, b.list({e("n"), e("2 * m")}));
  EXPECT_EQ(t, b.tensor(DType::F32, b.list({e("n"), e("2 * m")})));
  EXPECT_NE(t, b.tensor(DType::F16, b.list({e("n"), e("2 * m")})));
  EXPECT_NE(t, b.tensor(DType::F32, b.list({e("n"), e("m * 2")})));
  EXPECT_NE(b.scalar(DType::F32), b.tensor(DType::F32, {}));
  Type in_shared = *t;
  in_shared.scope = b.sym("shared");
  EXPECT_NE(t, b.type(in_shared));
  EXPECT_EQ(b.with_elem(b.with_elem(t, DType::I8), DType::F32), t);
  EXPECT_EQ(b.index(), b.scalar(DType::Index));
  // Enough of them that the table grows several times.
  std::vector<const Type *> all;
  for (int64_t i = 0; i < 5000; ++i) all.push_back(b.tensor(DType::F32, b.list({b.integer(i)})));
  for (int64_t i = 0; i < 5000; ++i) ASSERT_EQ(all[i], b.tensor(DType::F32, b.list({b.integer(i)})));
}

TEST_F(Ir, EqualAndHash) {
  for (const char *text : {"x[i + 1, :]", "sum(x[i, k] * f32(k) for k in n)", "f(a, [i] -> [i // 2, i % 2])",
      "@f(x, none)",
                           "\"text\"", "x[2 +: 4]", "!(a && b) || -i < 3", "nan(0x7fc00001)", "true"}) {
    EXPECT_TRUE(equal(e(text), e(text))) << text;
    EXPECT_EQ(hash(e(text)), hash(e(text))) << text;
  }
  EXPECT_FALSE(equal(e("0.0"), e("-0.0")));
  EXPECT_TRUE(equal(e("nan"), e("nan")));
  EXPECT_FALSE(equal(e("nan"), e("nan(0x7fc00001)")));
  EXPECT_FALSE(equal(e("a + b"), e("b + a")));
  EXPECT_FALSE(equal(e("f(x)"), e("@f(x)")));
  EXPECT_FALSE(equal(e("sum(x[k] for k in n)"), e("sum(x[k] for k in m)")));
  EXPECT_FALSE(equal(e("1"), e("1.0")));
  EXPECT_FALSE(equal(e("x[:]"), e("x[0]")));
  EXPECT_FALSE(equal(e("-1"), e("18446744073709551615")));  // the same 64 bits
  Module m = module("scalar @f(x: f32) -> (y: f32) {\n  # why\n  y: f32 = x + 1.0\n}\n");
  Module n = module("scalar @f(x: f32) -> (y: f32) {\n  y: f32 = x + 1.0\n}\n");
  Module o = module("scalar @f(x: f32) -> (y: f32) {\n  y: f32 = x + 1.0 from \"a\"\n}\n");
  EXPECT_TRUE(equal(m.items[0], n.items[0]));
  EXPECT_FALSE(equal(m.items[0], o.items[0]));
}

TEST_F(Ir, LiteralsOfATypeHaveFewDigits) {
  EXPECT_EQ(str(b.number(double(0.1f), DType::F32)), "0.1");
  EXPECT_EQ(str(b.number(0.1, DType::F64)), "0.1");
  EXPECT_EQ(str(b.number(0.0999755859375, DType::F16)), "0.1");  // the f16 next to 0.1
  EXPECT_EQ(str(b.number(-INFINITY, DType::F32)), "-inf");
  EXPECT_EQ(str(b.unary(Op::Neg, b.number(0.0))), "-0.0");
  EXPECT_EQ(str(b.unary(Op::Neg, b.integer(7))), "-7");
}

TEST_F(Ir, FreshNamesFollowOneRule) {
  Fresh fresh(b);
  fresh.take(b.sym("t_1"));
  EXPECT_EQ(b.text(fresh.make("t")), "t");
  EXPECT_EQ(b.text(fresh.make("t")), "t_2");
  EXPECT_EQ(b.text(fresh.make("t")), "t_3");
  EXPECT_EQ(b.text(fresh.make("u")), "u");
}

TEST_F(Ir, RewriteKeepsWhatDidNotChange) {
  const Expr *x = e("sum(x[i, k] * w[j, k] for k in n) + f(i)");
  EXPECT_EQ(rewrite(b, x, [](const Expr *y) { return y; }), x);
  const Expr *y = rewrite(b, x, [&](const Expr *z) -> const Expr * {
    return as<Name>(z) && to<Name>(z).name == b.sym("i") ? b.integer(3) : z;
  });
  EXPECT_EQ(str(y), "sum(x[3, k] * w[j, k] for k in n) + f(3)");
  auto &old_args = to<Call>(to<Binary>(x).a).args;
  auto &new_args = to<Call>(to<Binary>(y).a).args;
  EXPECT_EQ(to<Binary>(old_args[0]).b, to<Binary>(new_args[0]).b);  // w[j, k] is shared

  Module m = module("kernel @k[n](x: f32[n]) -> (y: f32[n]) {\n"
                    "  for i in n {\n    block y {\n      spatial i in n = i\n"
                    "      guard i < n\n      y[i] = x[i]\n    }\n  }\n}\n");
  Stmts body = to<Func>(m.items[0]).body;
  EXPECT_EQ(rewrite_exprs(b, body, [](const Expr *z) { return z; }).data(), body.data());
  EXPECT_EQ(rewrite_stmts(b, body, [](const Stmt *s, auto &out) { out.push_back(s); }).data(), body.data());
  Stmts none = rewrite_stmts(b, body, [](const Stmt *s, auto &out) {
    if (s->kind != Kind::Store) out.push_back(s);
  });
  size_t stores = 0;
  each_stmt(none, [&](const Stmt *s) { stores += s->kind == Kind::Store; });
  EXPECT_EQ(stores, 0u);
}

TEST_F(Ir, SubstitutionRespectsScopes) {
  auto sub = [&](std::string_view text, std::initializer_list<std::pair<const char *, const char *>> with) {
    Substitution s;
    for (auto [from, to] : with) s[b.sym(from)] = e(to);
    return str(substitute(b, e(text), s));
  };
  EXPECT_EQ(sub("x[i + 1] * n", {{"i", "2 * j"}, {"n", "4"}}), "x[2 * j + 1] * 4");
  EXPECT_EQ(sub("x[i] + @x[i]", {{"x", "y"}}), "y[i] + @x[i]");
  EXPECT_EQ(sub("x[i]", {{"x", "@w"}}), "@w[i]");
  EXPECT_EQ(sub("k + sum(x[k] for k in k)", {{"k", "3"}}), "3 + sum(x[k] for k in 3)");
  // A replacement is not caught by an iterator.
  EXPECT_EQ(sub("sum(x[i, k] for k in n)", {{"i", "k + 1"}}), "sum(x[k + 1, k_1] for k_1 in n)");
  EXPECT_EQ(sub("sum(x[i, k, k_1] for k in n)", {{"i", "k"}}), "sum(x[k, k_2, k_1] for k_2 in n)");
  EXPECT_EQ(sub("f([i, j] -> [i // c, j])", {{"c", "i"}, {"j", "7"}}), "f([i_1, j] -> [i_1 // i, j])");
  EXPECT_EQ(sub("exp(x)", {{"exp", "y"}}), "exp(x)");  // callees are no names of the function
}

TEST_F(Ir, SubstitutionInStatements) {
  Module m = module("kernel @k[n](x: f32[n]) -> (y: f32[n]) {\n  alloc t: f32[n]\n  for i in n {\n    block t {\n"
                    "      spatial i in n = i\n      t[i] = x[i]\n    }\n  }\n"
                    "  for j in n {\n    y[j] = t[j] + x[i]\n  }\n}\n");
  Stmts body = to<Func>(m.items[0]).body;
  auto text = [&](Stmts l) {
    std::string out;
    for (const Stmt *s : l) out += print(b, s) + "\n";
    return out;
  };
  // To a name: definitions are renamed with their uses. To anything else: hidden where it is bound.
  EXPECT_EQ(text(substitute(b, body, {{b.sym("t"), e("u")}, {b.sym("i"), e("i * 2")}, {b.sym("n"), e("8")}})),
            "alloc u: f32[8]\nfor i in 8 {\n  block t {\n    spatial i in 8 = i\n    u[i] = x[i]\n  }\n}\n"
            "for j in 8 {\n  y[j] = u[j] + x[i * 2]\n}\n");
  EXPECT_EQ(text(substitute(b, body, {{b.sym("i"), e("q")}})),
            "alloc t: f32[n]\nfor q in n {\n  block t {\n    spatial q in n = q\n    t[q] = x[q]\n  }\n}\n"
            "for j in n {\n  y[j] = t[j] + x[q]\n}\n");
}

TEST_F(Ir, FreeNames) {
  std::unordered_set<Sym> names;
  collect_names(e("sum(x[i, k] * @w[k] for k in n) + f(m) + x2[:]"), names);
  std::set<std::string> got;
  for (Sym s : names) got.insert(std::string(b.text(s)));
  EXPECT_EQ(got, (std::set<std::string>{"x", "i", "n", "m", "x2"}));
  EXPECT_FALSE(mentions(e("sum(k for k in 4)"), b.sym("k")));
  EXPECT_TRUE(mentions(e("sum(k for k in k)"), b.sym("k")));
}

// ---- types

struct Typing : Ir {
  Module m = module(
      "const @c: i8[3] = 0\n\nscalar @f(x: f32) -> (y: f32) {\n  y: f32 = x\n}\n\n"
      "reducer @r(a: f32, i: i64, b: f32, j: i64) -> (c: f32, k: i64) {\n  init c: f32 = 0.0\n  init k: i64 = 0\n"
      "  c: f32 = a\n  k: i64 = j\n}\n\n"
      "kernel @k[n](x: f32[n, 4], h: f16[n], q: u8[n], p: i64[n], d: f64[n], s: f32, z: bool[n]) -> (y: f32[]) {\n"
      "  y[] = 0.0\n}\n");
  std::string type(std::string_view text, DType want = DType::Invalid) {
    Env env(b, m, m.func(b.sym("k")));
    env.define_index(b.sym("i"));
    TypeError err;
    DType t = type_of(env, e(text), want, &err);
    return t == DType::Invalid ? err.message : std::string(dtype_name(t));
  }
};

TEST_F(Typing, Expressions) {
  for (auto [text, want] : std::initializer_list<std::pair<const char *, const char *>>{
           {"x[i, 0] + 1.0", "f32"}, {"1.0 + x[i, 0]", "f32"}, {"2.0 * 3.0 * x[i, 0]", "f32"}, {"s", "f32"},
           {"n // 2", "index"},
           {"i", "index"}, {"q[i] + 200", "u8"}, {"-p[i] % 3", "i64"}, {"f32(h[i]) * s", "f32"}, {"f32(1)", "f32"},
           {"i32(1.5)", "i32"}, {"u8(255)", "u8"}, {"index(p[i])", "index"}, {"bool(h[i])", "bool"},
           {"x[i, 0] < 0.5", "bool"},
           {"z[i] == true", "bool"}, {"8 >= 1", "bool"}, {"!z[i] || i < n && z[0]", "bool"}, {"@c[0]", "i8"},
           {"where(z[i], 0.0, x[i, 1])", "f32"}, {"where(z[i], x[i, 1], 0.0)", "f32"}, {"max(0, 1, q[i])",
           "max has 2 arguments, found 3"},
           {"clamp(0.0, 1.0, x[i, 0])", "f32"}, {"clamp(0, 1, p[0])", "i64"}, {"exp(h[i])", "f16"}, {"isnan(d[i])",
           "bool"},
           {"bits.u32(x[i, 0])", "u32"}, {"bits.f16(bits.u16(h[i]))", "f16"}, {"shl(q[i], 3)", "u8"},
           {"bitnot(p[i])", "i64"},
           {"sum(x[i, k] for k in 4)", "f32"}, {"sum(f32(h[k]) * x[k, j] for k in n, j in 4)", "f32"},
           {"sum(k for k in n)", "index"},
           {"all(x[k, 0] > 0.0 for k in n)", "bool"}, {"max(x[k, 0] for k in n)", "f32"},
           {"sum(x[k, j] for k in 4, j in k)", "f32"},
           {"@f(x[i, 0])", "f32"}, {"@f(1.0)", "f32"}, {"convert(x[i, 0], \"f8e5m2\", \"no_saturate\")", "f8e5m2"},
           {"min(i, n - 1)", "index"}, {"abs(-128)",
           "a literal alone has no type here, expected a cast such as i32(1)"},
           {"\"text\"", "str"}, {"true", "bool"}, {"ipow(p[i], 2)", "i64"}, {"fmod(d[i], 2.0)", "f64"}})
    EXPECT_EQ(type(text), want) << text;
}

TEST_F(Typing, Refused) {
  for (const char *text :
       {"x[i, 0] + 1", "x[i, 0] + h[i]", "x[i, 0] + i", "p[i] + i", "x[p[i], 0]", "x[i]", "x", "@c", "@nothing[0]",
       "s[0]", "none",
        "[1, 2]", "x[:, 0]", "x[0 +: 2, 0]", "y", "unknown", "unknown[0]", "unknown(1.0)", "1.0", "7", "1 + 2.0",
        "1.0 < 2.0",
        "!x[i, 0]", "x[i, 0] && z[i]", "-z[i]", "z[i] < z[i]", "x[i, 0] // 2.0", "x[i, 0] % 2.0", "where(i, 1.0, s)",
        "exp(q[i])", "shl(x[i, 0], 1.0)", "isnan(q[i])", "bits.f32(h[i])", "bits.index(p[i])", "bits(s)",
        "sum(z[k] for k in n)",
        "all(x[k, 0] for k in n)", "mean(x[k, 0] for k in n)", "sum(x[k, 0], 1.0 for k in n)", "@f(1)",
        "@f(x[i, 0], 1.0)",
        "@f(x[k, 0] for k in n)", "@r(x[i, 0], 1 for k in 4)", "@k(s)", "str(s)", "u8(256)", "i8(-129)",
        "convert(s, \"i8\", \"no_saturate\")",
        "sum(x[k, 0] for k in 2.0)", "k + sum(x[k, 0] for k in n)"})
    EXPECT_EQ(type(text).find(' ') == std::string::npos, false) << text << " has type " << type(text);
}

TEST_F(Typing, Places) {
  EXPECT_EQ(type("1", DType::I8), "i8");
  EXPECT_EQ(type("-128", DType::I8), "i8");
  EXPECT_EQ(type("128", DType::I8), "128 does not fit i8");
  EXPECT_EQ(type("-1", DType::U8), "-1 does not fit u8");
  EXPECT_EQ(type("18446744073709551615", DType::U64), "u64");
  EXPECT_EQ(type("18446744073709551615", DType::I64), "18446744073709551615 does not fit i64");
  EXPECT_EQ(type("1", DType::F32), "expected f32, found an integer literal: write it with a point");
  EXPECT_EQ(type("1.0", DType::I32), "expected i32, found a float literal");
  EXPECT_EQ(type("where(z[0], 1.0, 2.0)", DType::F16), "f16");
  EXPECT_EQ(type("2 * 3", DType::Index), "index");
  EXPECT_EQ(type("s", DType::F16), "expected f16, found f32");
  Env env(b, m, m.func(b.sym("k")));
  TypeError err;
  DType two[] = {DType::F32, DType::I64}, wrong[] = {DType::F32, DType::F32};
  DType three[] = {DType::F32, DType::I64, DType::I64};
  EXPECT_TRUE(types_of(env, e("@r(x[0, k], 1 for k in 4)"), two, &err));
  EXPECT_TRUE(types_of(env, e("@r(s, 0, s, 1)"), two, &err));
  EXPECT_FALSE(types_of(env, e("@r(s, 0, s, 1)"), wrong, &err));
  EXPECT_FALSE(types_of(env, e("@r(s, 0, s, 1)"), three, &err));
  EXPECT_FALSE(types_of(env, e("s + 1.0"), two, &err));
}

TEST(Builtins, TableIsSound) {
  std::set<std::string_view> seen;
  for (const Builtin &x : builtins()) {
    EXPECT_TRUE(seen.insert(x.name).second) << x.name;
    EXPECT_EQ(builtin(x.name), &x);
    EXPECT_FALSE(is_cast(x.name));
  }
  EXPECT_EQ(builtin("bits.f32")->signature, Signature::Bits);
  EXPECT_EQ(builtin("nothing"), nullptr);
}

// ---- dimensions of calls

struct Solve : Ir {
  // "n=.. m=..; open: a == b", or the number of the problem
  std::string solve(std::string signature, std::initializer_list<const char *> args) {
    Module m = module("kernel @f" + signature + " {\n  y[] = 0.0\n}\n\nkernel @g" + arguments(args));
    auto &f = to<Func>(m.items[0]);
    std::vector<Argument> list;
    for (const Param &p : to<Func>(m.items[1]).params)
      list.push_back({p.def.type, p.def.type->tensor ? nullptr : e("i"), {}});
    Solution s = solve_dims(b, f, list);
    if (s.problem == Solution::Mismatch) return "mismatch " + std::to_string(s.param);
    if (!s) return s.problem == Solution::Count ? "count" : "unsolved";
    std::string out;
    for (Sym d : f.dims) out += std::string(b.text(d)) + "=" + str(s.names[d]) + " ";
    for (auto &q : s.open) out += "open: " + str(q.wanted) + " == " + str(q.found) + " ";
    return out;
  }
  static std::string arguments(std::initializer_list<const char *> args) {
    std::string out = "(";
    int i = 0;
    for (const char *a : args) out += (i ? ", a" : "a") + std::to_string(i) + ": " + a, ++i;
    return out + ") -> (y: f32[]) {\n  y[] = 0.0\n}\n";
  }
};

TEST_F(Solve, Dimensions) {
  std::string y = " -> (y: f32[])";
  EXPECT_EQ(solve("[n, m](x: f32[n, m])" + y, {"f32[4, k + 1]"}), "n=4 m=k + 1 ");
  EXPECT_EQ(solve("[n, m](x: f32[n, 2 * m], z: f32[m + n])" + y, {"f32[h, 8]",
      "f32[h + 4]"}), "n=h m=4 open: 4 + h == h + 4 ");
  EXPECT_EQ(solve("[n](x: f32[n * 4 + 2])" + y, {"f32[14]"}), "n=3 ");
  EXPECT_EQ(solve("[n](x: f32[n * 4 + 2])" + y, {"f32[13]"}), "mismatch 0");
  EXPECT_EQ(solve("[n](x: f32[n + 2])" + y, {"f32[1]"}), "mismatch 0");
  EXPECT_EQ(solve("[n](x: f32[2 * n])" + y, {"f32[2 * k]"}), "n=k ");
  EXPECT_EQ(solve("[n](x: f32[n], z: f32[n])" + y, {"f32[4]", "f32[5]"}), "mismatch 1");
  EXPECT_EQ(solve("[n](x: f32[n], z: f32[n])" + y, {"f32[k]", "f32[l]"}), "n=k open: k == l ");
  EXPECT_EQ(solve("[n, m](x: f32[n * m], z: f32[n])" + y, {"f32[12]", "f32[3]"}), "n=3 m=4 ");
  EXPECT_EQ(solve("[n](x: f32[10 - n])" + y, {"f32[7]"}), "n=3 ");
  EXPECT_EQ(solve("[n](x: f32[n])" + y, {"f16[7]"}), "mismatch 0");
  EXPECT_EQ(solve("[n](x: f32[n])" + y, {"f32[7, 1]"}), "mismatch 0");
  EXPECT_EQ(solve("[n](x: f32[n])" + y, {"f32[7]", "f32[7]"}), "count");
  EXPECT_EQ(solve("[n, m](x: f32[n])" + y, {"f32[7]"}), "unsolved");
  EXPECT_EQ(solve("[n, m](x: f32[n % 4 + m], z: f32[n])" + y, {"f32[7]", "f32[6]"}), "n=6 m=5 ");
  EXPECT_EQ(solve("[n](x: f32[n], k: index, z: f32[n + k])" + y, {"f32[7]", "index",
      "f32[q]"}), "n=7 open: 7 + i == q ");
  EXPECT_EQ(solve("[n, s](x: f32[n, 4] {strides = [s, 1]})" + y, {"f32[7, 4]"}), "n=7 s=4 ");
  EXPECT_EQ(solve("[n, s](x: f32[n, 4] {strides = [s, 1]})" + y, {"f32[7, 4] {strides = [12, 1]}"}), "n=7 s=12 ");
  EXPECT_EQ(solve("[n, s](x: f32[n, 4] {strides = [s, 1]})" + y, {"f32[7, 4] {strides = [12, 2]}"}), "mismatch 0");
}

TEST_F(Solve, Regions) {
  Module m = module("kernel @f[n](x: f32[n, 8, 4]) -> (y: f32[]) {\n  y[] = 0.0\n}\n");
  const Type *t = to<Func>(m.items[0]).params[0].def.type;
  Exprs strides;
  const Type *r = region_type(b, t, to<Load>(e("x[i, 2 +: 3, :]")).index, &strides);
  EXPECT_EQ(print(b, r), "f32[3, 4]");
  EXPECT_EQ(str(strides[0]) + " " + str(strides[1]), "4 1");
  EXPECT_EQ(print(b, region_type(b, t, to<Load>(e("x[:, 1, 2]")).index, &strides)), "f32[n]");
  EXPECT_EQ(str(strides[0]), "32");
  EXPECT_EQ(print(b, region_type(b, t, to<Load>(e("x[0, 1, 2]")).index, nullptr)), "f32[]");
}

TEST_F(Solve, Folding) {
  auto f = [&](Op op, const char *x, const char *y) { return str(fold(b, op, e(x), e(y))); };
  EXPECT_EQ(f(Op::FloorDiv, "-7", "2"), "-4");
  EXPECT_EQ(f(Op::Mod, "-7", "2"), "1");
  EXPECT_EQ(f(Op::Mod, "7", "-2"), "-1");
  EXPECT_EQ(f(Op::FloorDiv, "7", "0"), "0");
  EXPECT_EQ(f(Op::Add, "9223372036854775807", "1"), "9223372036854775807 + 1");  // not folded: it does not fit
  EXPECT_EQ(f(Op::FloorDiv, "6 * n", "3"), "2 * n");
  EXPECT_EQ(f(Op::FloorDiv, "5 * n", "3"), "5 * n // 3");
  EXPECT_EQ(f(Op::Sub, "n + 3", "3"), "n");
}

}  // namespace
}  // namespace mlc
