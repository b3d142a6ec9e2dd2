// Index arithmetic: every rule against direct evaluation at all points of small domains.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "arith/affine.h"
#include "arith/prove.h"
#include "arith/scope.h"
#include "arith/simplify.h"
#include "text/text.h"

namespace mlc {
namespace {

using Point = std::map<std::string, int64_t>;

int64_t floor_of(int64_t a, int64_t b) {  // by its definition: the largest q with q * b <= a (b > 0), >= a (b < 0)
  if (b == 0) return 0;
  int64_t q = -200;
  if (b > 0) while ((q + 1) * b <= a) q++;
  else while ((q + 1) * b >= a) q++;
  return q;
}

int64_t eval(const Build &b, const Expr *e, const Point &at) {
  auto sub = [&](const Expr *x) { return eval(b, x, at); };
  switch (e->kind) {
    case Kind::Int: return to<Int>(e).value;
    case Kind::Bool: return to<Bool>(e).value;
    case Kind::Name: return at.at(std::string(b.text(to<Name>(e).name)));
    case Kind::Unary: return to<Unary>(e).op == Op::Neg ? -sub(to<Unary>(e).a) : !sub(to<Unary>(e).a);
    case Kind::Binary: {
      int64_t x = sub(to<Binary>(e).a), y = sub(to<Binary>(e).b);
      switch (to<Binary>(e).op) {
        case Op::Add: return x + y;
        case Op::Sub: return x - y;
        case Op::Mul: return x * y;
        case Op::Div: return y ? x / y : 0;
        case Op::FloorDiv: return floor_of(x, y);
        case Op::Mod: return y ? x - y * floor_of(x, y) : 0;
        case Op::Eq: return x == y;
        case Op::Ne: return x != y;
        case Op::Lt: return x < y;
        case Op::Le: return x <= y;
        case Op::Gt: return x > y;
        case Op::Ge: return x >= y;
        case Op::And: return x && y;
        case Op::Or: return x || y;
        default: break;
      }
      break;
    }
    case Kind::Call: {
      auto &c = to<Call>(e);
      std::string_view f = b.text(c.callee);
      if (f == "min") return std::min(sub(c.args[0]), sub(c.args[1]));
      if (f == "max") return std::max(sub(c.args[0]), sub(c.args[1]));
      if (f == "clamp") return std::min(std::max(sub(c.args[0]), sub(c.args[1])), sub(c.args[2]));
      if (f == "where") return sub(c.args[sub(c.args[0]) ? 1 : 2]);
      if (f == "index") return sub(c.args[0]);
      break;
    }
    default: break;
  }
  ADD_FAILURE() << "no value: " << print(b, e);
  return 0;
}

// An environment: ranges of i, j (constants or symbols), facts; and all points of it with dimensions below 6.
struct World {
  std::vector<std::pair<std::string, std::string>> ranges;  // variable, extent
  std::vector<std::string> dims;
  std::vector<std::string> facts;
};

struct Setting {
  Build &b;
  Bounds known;
  std::vector<Point> points;
  Setting(Build &b, const World &w, bool enumerate = true) : b(b), known(b) {
    for (auto &d : w.dims) known.dim(b.sym(d));
    for (auto &f : w.facts) known.assume(parse(f));
    std::vector<std::string> names = w.dims;
    for (auto &[v, extent] : w.ranges) known.range(b.sym(v), parse(extent)), names.push_back(v);
    std::function<void(size_t, Point)> all = [&](size_t k, Point p) {
      if (k == names.size()) {
        for (auto &f : w.facts)
          if (!eval(b, parse(f), p)) return;
        return points.push_back(p);
      }
      int64_t end = k < w.dims.size() ? 6 : eval(b, parse(w.ranges[k - w.dims.size()].second), p);
      for (int64_t v = 0; v < end; v++) {
        p[names[k]] = v;
        all(k + 1, p);
      }
    };
    if (enumerate) all(0, {});
  }
  const Expr *parse(const std::string &s) {
    std::string error;
    const Expr *e = read_expr(b, b.arena.text(s), &error);
    EXPECT_TRUE(e) << s << ": " << error;
    return e;
  }
  // Everything that is said of e holds at all points.
  bool check(const Expr *e) {
    const Expr *s = simplify(b, e, known);
    const Expr *again = simplify(b, s, known);
    Interval range = interval(e, known);
    Congruence c = congruence(e, known);
    const Expr *kept = shorten(b, e, known);
    for (const Point &p : points) {
      int64_t v = eval(b, e, p), w = eval(b, s, p);
      bool ok = v == w && range.contains(v) && eval(b, kept, p) == v &&
                (c.modulus ? (v - c.residue) % c.modulus == 0 : v == c.residue);
      if (ok) continue;
      std::string at;
      for (auto &[n, x] : p) at += " " + n + " = " + std::to_string(x);
      ADD_FAILURE() << print(b, e) << " -> " << print(b, s) << " at" << at << ": " << v << ", not " << w << "; [" << range.lo << ", "
                    << range.hi << "], " << c.residue << " mod " << c.modulus;
      return false;
    }
    if (!equal(s, again)) {
      ADD_FAILURE() << print(b, e) << " -> " << print(b, s) << " -> " << print(b, again);
      return false;
    }
    return true;
  }
};

const std::vector<World> kWorlds = {
    {{{"i", "5"}, {"j", "3"}}, {}, {}},
    {{{"i", "8"}, {"j", "4"}}, {}, {}},
    {{{"i", "n"}, {"j", "m"}}, {"n", "m"}, {}},
    {{{"i", "n"}, {"j", "4"}}, {"n"}, {"n % 2 == 0"}},
    {{{"i", "n"}, {"j", "n"}}, {"n", "m"}, {"m == n + 1"}},
    {{{"i", "2 * n"}, {"j", "i + 1"}}, {"n"}, {}},
};

const Op kArithmetic[] = {Op::Add, Op::Sub, Op::Mul, Op::FloorDiv, Op::Mod};

std::vector<const Expr *> combine(Build &b, const std::vector<const Expr *> &l, const std::vector<const Expr *> &r) {
  std::vector<const Expr *> out;
  for (auto x : l)
    for (auto y : r) {
      for (Op op : kArithmetic) out.push_back(b.binary(op, x, y));
      out.push_back(b.call("min", {x, y})), out.push_back(b.call("max", {x, y}));
    }
  return out;
}

std::vector<const Expr *> leaves(Build &b, std::vector<std::string> names, int64_t lo, int64_t hi) {
  std::vector<const Expr *> out;
  for (auto &n : names) out.push_back(b.name(n));
  for (int64_t c = lo; c <= hi; c++) out.push_back(b.integer(c));
  return out;
}

std::vector<std::string> names_of(const World &w) {
  std::vector<std::string> names = w.dims;
  for (auto &[v, extent] : w.ranges) names.push_back(v);
  return names;
}

TEST(Arith, AllExpressionsOfTwoOperators) {
  for (const World &w : kWorlds) {
    Build b;
    Setting s(b, w);
    auto l = leaves(b, names_of(w), -4, 4);
    auto pairs = combine(b, l, l);
    size_t failures = 0;
    for (auto e : pairs) failures += !s.check(e);
    auto few = leaves(b, names_of(w), -2, 3);
    auto small = combine(b, leaves(b, names_of(w), 2, 3), few);
    for (auto e : combine(b, small, few))
      if (failures < 10) failures += !s.check(e);
    for (auto e : combine(b, few, small))
      if (failures < 10) failures += !s.check(e);
    ASSERT_EQ(failures, 0u);
  }
}

const Expr *random_expr(Build &b, std::mt19937 &r, const std::vector<const Expr *> &leaf, int size) {
  if (size <= 1) return leaf[r() % leaf.size()];
  int left = 1 + int(r() % unsigned(size - 1));
  const Expr *x = random_expr(b, r, leaf, left), *y = random_expr(b, r, leaf, size - left);
  switch (r() % 9) {
    case 0:
    case 1: return b.binary(Op::Add, x, y);
    case 2: return b.binary(Op::Sub, x, y);
    case 3: return size > 4 ? b.binary(Op::Add, x, b.integer(1)) : b.binary(Op::Mul, x, y);
    case 4: return b.binary(Op::FloorDiv, x, y);
    case 5: return b.binary(Op::Mod, x, y);
    case 6: return b.call("min", {x, y});
    case 7: return b.call("max", {x, y});
    default: return b.unary(Op::Neg, x);
  }
}

const Expr *random_condition(Build &b, std::mt19937 &r, const std::vector<const Expr *> &leaf, int size) {
  if (size > 2 && r() % 3 == 0) {
    const Expr *x = random_condition(b, r, leaf, size / 2), *y = random_condition(b, r, leaf, size / 2);
    return r() % 5 == 0 ? b.unary(Op::Not, x) : b.binary(r() % 2 ? Op::And : Op::Or, x, y);
  }
  const Op ops[] = {Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge};
  return b.binary(ops[r() % 6], random_expr(b, r, leaf, 1 + int(r() % unsigned(size))), random_expr(b, r, leaf, 1 + int(r() % 2)));
}

TEST(Arith, RandomExpressions) {
  std::mt19937 r(1);
  for (const World &w : kWorlds) {
    Build b;
    Setting s(b, w);
    auto leaf = leaves(b, names_of(w), -2, 4);
    for (int k = 0; k < 2000; k++)
      if (!s.check(random_expr(b, r, leaf, 3 + k % 6))) return;
  }
}

TEST(Arith, RandomConditionsAndWheres) {
  std::mt19937 r(2);
  for (const World &w : kWorlds) {
    Build b;
    Setting s(b, w);
    auto leaf = leaves(b, names_of(w), -1, 4);
    for (int k = 0; k < 3000; k++) {
      const Expr *c = random_condition(b, r, leaf, 2 + k % 5);
      const Expr *e = k % 3 ? c : b.call("where", {c, random_expr(b, r, leaf, 3), random_expr(b, r, leaf, 2)});
      const Expr *one = simplify(b, e, s.known), *two = shorten(b, e, s.known);
      bool proved = k % 3 && prove(b, c, s.known);
      ASSERT_TRUE(equal(one, simplify(b, one, s.known))) << print(b, e) << " -> " << print(b, one) << " -> "
                                                        << print(b, simplify(b, one, s.known));
      for (const Point &p : s.points) {
        int64_t v = eval(b, e, p);
        ASSERT_EQ(v, eval(b, one, p)) << print(b, e) << " -> " << print(b, one);
        ASSERT_EQ(v, eval(b, two, p)) << print(b, e) << " -> " << print(b, two);
        ASSERT_TRUE(!proved || v) << print(b, e);
      }
    }
  }
}

// Facts of every form, believed: what follows from them holds at all points where they do.
TEST(Arith, RandomFacts) {
  std::mt19937 r(3);
  for (int turn = 0; turn < 300; turn++) {
    Build b;
    World w{{{"i", "n"}, {"j", turn % 2 ? "4" : "m"}}, {"n", "m"}, {}};
    auto leaf = leaves(b, {"n", "m"}, 0, 4);
    for (int k = 0; k < 2; k++) w.facts.push_back(print(b, random_condition(b, r, leaf, 3)));
    if (turn % 3 == 0) w.facts.push_back("n % 4 == " + std::to_string(r() % 4));
    Setting s(b, w);
    if (s.points.empty()) continue;
    auto more = leaves(b, names_of(w), -1, 4);
    for (int k = 0; k < 40; k++)
      if (!s.check(random_expr(b, r, more, 2 + k % 5))) {
        for (auto &f : w.facts) ADD_FAILURE() << "assuming " << f;
        return;
      }
  }
}

struct Case {
  std::string given, expected;
};

void compare(Setting &s, const std::vector<Case> &cases) {
  for (auto &[given, expected] : cases) EXPECT_EQ(print(s.b, simplify(s.b, s.parse(given), s.known)), expected) << given;
}

TEST(Arith, WhatAPersonWouldWrite) {
  Build b;
  Setting s(b, {{{"i0", "n"}, {"i1", "16"}, {"k", "48"}, {"j", "m"}}, {"n", "m", "h", "w"}, {}}, false);
  compare(s, {
      {"i0 * 16 + i1", "i0 * 16 + i1"},
      {"i1 + 16 * i0 + 0", "i0 * 16 + i1"},
      {"(i0 * 16 + i1) // 16", "i0"},
      {"(i0 * 16 + i1) % 16", "i1"},
      {"(i0 * 16 + i1) // 4", "i0 * 4 + i1 // 4"},
      {"(h - 3 + 2) // 2 + 1", "(h + 1) // 2"},
      {"x // 4 // 8", "x // 32"},
      {"x // h // w", "x // h // w"},      // h may be 0
      {"x // n // m", "x // (n * m)"},
      {"i0 // n", "0"},
      {"k // 4 // 3", "k // 12"},
      {"x // 4 * 4 + x % 4", "x"},
      {"x - 4 * (x // 4)", "x % 4"},
      {"x % 12 % 4", "x % 4"},
      {"x % 12 // 4", "x // 4 % 3"},
      {"k % 48 // 16", "k // 16"},
      {"(k + 96) % 48", "k"},
      {"x // 1", "x"},
      {"x % 1", "0"},
      {"0 // x", "0"},
      {"x // 0", "0"},
      {"x // x", "x // x"},
      {"n // n", "1"},                     // i0 in n: n >= 1
      {"h // h", "h // h"},
      {"(i0 * m + j) // m", "i0"},
      {"(i0 * m + j) % m", "j"},
      {"(k * n * m + i0 * m + j) // m % n", "i0"},
      {"k * n * m + i0 * m + j", "(k * n + i0) * m + j"},
      {"min(i0 * 16 + 16, n) - i0 * 16", "min(n - i0 * 16, 16)"},
      {"min(n, i0)", "i0"},
      {"max(n, i0 + 1)", "n"},
      {"min(x, y) + max(x, y)", "x + y"},
      {"max(min(x, 7), x)", "x"},
      {"clamp(i1, 0, 15)", "i1"},
      {"clamp(i1 - 1, 0, 14)", "max(i1 - 1, 0)"},
      {"(n - 1) // 16 + 1", "(n + 15) // 16"},
      {"(x - 1) // 16 + 1", "(x + 15) // 16"},
      {"-x // -4", "x // 4"},
      {"x // -4", "-x // 4"},
      {"x % -4", "-(-x % 4)"},
      {"7 / 2", "3"},
      {"-7 / 2", "-3"},
      {"n / 2", "n // 2"},
      {"x / 2", "x / 2"},
      {"where(i1 < 16, i0, 3)", "i0"},
      {"where(x < 16, i0, i0)", "i0"},
      {"where(h < 3, min(h, 5), max(h, 3))", "h"},
      {"index(i0 + 0)", "i0"},
      {"t[i0 * 1] + 0", "t[i0]"},
      {"9223372036854775807 + i0 + 1", "9223372036854775807 + i0 + 1"},
      {"i0 < n && i1 < 16", "true"},
      {"i0 < h && i0 + 1 <= h", "i0 < h"},
      {"i1 < 3 && i1 < 5", "i1 < 3"},
      {"i1 < 5 && i1 < 3", "i1 < 3"},
      {"i1 < 3 || i1 < 5", "i1 < 5"},
      {"!(i0 < h)", "i0 >= h"},
      {"i1 * 4 < 17", "i1 < 5"},
      {"i0 * 2 + 1 == 6", "false"},
      {"2 * i0 == 2 * h", "i0 == h"},
      {"i0 % 4 == 0", "i0 % 4 == 0"},
      {"0 <= i1 - 1", "i1 >= 1"},
      {"x[i0] < 0.5 && i0 < n", "x[i0] < 0.5"},
  });
}

TEST(Arith, Assumptions) {
  Build b;
  Setting s(b, {{{"i", "n"}}, {"n", "m", "w"}, {"n % 8 == 0", "m == 2 * w", "w >= 3", "n % 1 == 0"}});
  compare(s, {
      {"n % 4", "0"},
      {"n // 8 * 8", "n"},
      {"n // 2 * 2 + n % 2", "n"},
      {"(n + 7) // 8", "n // 8"},
      {"m // 2", "w"},
      {"m - w", "w"},
      {"min(w, 2)", "2"},
  });
  EXPECT_EQ(congruence(s.parse("n + 3"), s.known), (Congruence{8, 3}));
  EXPECT_EQ(interval(s.parse("m"), s.known).lo, 6);
  size_t m = s.known.mark();
  s.known.assume(s.parse("n <= 8"));
  compare(s, {{"n", "8"}, {"i // 8", "0"}});
  s.known.pop(m);
  compare(s, {{"n", "n"}, {"i // 8", "i // 8"}});
}

TEST(Arith, Proofs) {
  Build b;
  Setting s(b, {{{"i", "n"}, {"j", "m"}, {"k", "48"}, {"r", "s"}, {"c", "t"}, {"f", "n * 20"}}, {"n", "m", "s", "t"}, {"s <= t", "t <= 100 * n"}}, false);
  for (const char *yes : {
           "i * m + j < n * m", "i * m + j >= 0", "i * 16 + k // 3 < n * 16", "min(16, n - i) <= 16", "i // 4 * 4 <= i",
           "(n + 15) // 16 * 16 >= n", "(n + 15) // 16 * 16 < n + 16", "r < t", "r + t - s >= 0", "c < 100 * n", "n > 0",
           "(i * m + j) * 2 + 1 < 2 * n * m", "min(i + 5, n - 1) < n", "max(i - 5, 0) < n", "i % 7 < n + 7", "(k * 3) // 16 < 9",
           "(i * m + j) // m < n", "(i + j) // 2 < n + m", "(n * m) // 2 <= n * m", "k % 16 + k // 16 * 16 == k", "i != n",
           "f // 20 < n", "f // 20 * 20 + 19 < n * 20", "f * 3 // 60 < n"})
    EXPECT_TRUE(prove(b, s.parse(yes), s.known)) << yes;
  for (const char *no : {"i * m + j < n * m - 1", "r < s - 1", "n > 1", "k < 47", "i < m", "t <= s", "i // 4 * 4 == i", "f // 19 < n", "f // 20 < n - 1"})
    EXPECT_FALSE(prove(b, s.parse(no), s.known)) << no;
  EXPECT_TRUE(provably_equal(b, s.parse("(x + 1) * (x - 1)"), s.parse("x * x - 1")));
  EXPECT_FALSE(provably_equal(b, s.parse("x"), s.parse("y")));
  EXPECT_TRUE(provably_inside(b, s.parse("i * m + j"), s.parse("n * m"), s.known));
}

// Loops over two sizes made one, split again, under a guard: back inside what they were.
TEST(Arith, FusedLoops) {
  Build b;
  for (World w : {World{{{"f", "n * m"}, {"i", "4"}, {"j", "m"}}, {"n", "m"}, {}},
                  World{{{"g", "(n * m + 3) // 4"}, {"h", "4"}}, {"n", "m"}, {"g * 4 + h < n * m"}}}) {
    bool split = w.ranges[0].first == "g";
    Setting s(b, World{w.ranges, w.dims, {}}, false), at(b, World{w.ranges, w.dims, {}});
    if (split) s.known.assume(s.parse("g * 4 + h < n * m"));
    std::string f = split ? "(g * 4 + h)" : "f";
    std::vector<std::string> conditions = {f + " // m < n", f + " // m >= 0", f + " % m < m", f + " % m >= 0", "n >= 1", "m >= 1",
                                           f + " // m * m + " + f + " % m == " + f, f + " // m * 4 + 3 < n * 4",
                                           f + " % m * 3 + 2 < m * 3"};
    if (!split)
      for (const char *more : {"f // m * m + j < n * m", "f // m * 4 + i < n * 4"})
        conditions.push_back(more);
    for (const std::string &c : conditions) {
      EXPECT_TRUE(prove(b, s.parse(c), s.known)) << c;
      for (const Point &p : at.points)
        EXPECT_TRUE((split && p.at("g") * 4 + p.at("h") >= p.at("n") * p.at("m")) || eval(b, s.parse(c), p)) << c;
    }
    for (const std::string &c : {f + " // m < n - 1", f + " % m < m - 1", std::string("n >= 2"), f + " % n < n - 1"})
      EXPECT_FALSE(prove(b, s.parse(c), s.known)) << c;
  }
  // Nothing follows from a product of sizes that may be negative, or from a sum.
  for (World w : {World{{{"f", "(n - 2) * (m - 2)"}}, {"n", "m"}, {}}, World{{{"f", "n + m"}}, {"n", "m"}, {}}}) {
    Setting s(b, w, false);
    for (const char *c : {"n >= 1", "m >= 1", "n > 2"}) EXPECT_FALSE(prove(b, s.parse(c), s.known)) << c;
  }
}

// Tuples of subscripts in two turns f < g: what is called different is so at all points.
TEST(Arith, DifferentTuples) {
  Build b;
  World fused{{{"f", "n * m"}, {"i", "3"}, {"j", "m"}, {"k", "3"}, {"l", "m"}}, {"n", "m"}, {}};
  Setting s(b, fused, false);
  s.known.range(b.sym("g"), s.parse("f + 1"), s.parse("n * m"));
  std::vector<Point> points;
  for (int64_t n = 0; n < 4; n++)
    for (int64_t m = 0; m < 4; m++)
      for (int64_t f = 0; f < n * m; f++)
        for (int64_t g = f + 1; g < n * m; g++)
          for (int64_t i = 0; i < 3; i++)
            for (int64_t k = 0; k < 3; k++)
              for (int64_t j = 0; j < m; j++)
                for (int64_t l = 0; l < m; l++)
                  points.push_back({{"n", n}, {"m", m}, {"f", f}, {"g", g}, {"i", i}, {"j", j}, {"k", k}, {"l", l}});
  auto list = [&](std::vector<std::string> items, bool later) {
    std::vector<const Expr *> out;
    for (std::string &t : items) {
      if (later)
        for (char &c : t) c = c == 'f' ? 'g' : c == 'i' ? 'k' : c == 'j' ? 'l' : c;
      out.push_back(s.parse(t));
    }
    return b.list(out);
  };
  auto same = [&](Exprs x, Exprs y, const Point &p) {
    for (size_t d = 0; d < x.size(); d++)
      if (eval(b, x[d], p) != eval(b, y[d], p)) return false;
    return true;
  };
  using Tuple = std::vector<std::string>;
  for (const Tuple &t : {Tuple{"f"}, {"f // m", "f % m"}, {"f % m", "f // m"}, {"f % m", "j", "f // m"}, {"f // 3", "f % 3"},
                         {"f // m * 3 + i", "f % m"}, {"f % m * 3 + i", "f // m"}, {"f % m", "f // m * m + j"},
                         {"f * 3 + i"}, {"f * m + j"}, {"j * n * m + f"}, {"n * m - f", "i"}, {"i", "f // m", "j", "f % m * 2"},
                         {"f // 2 % 2", "f // 4", "f % 2"}, {"f % m * 5 + f // m * m * 5"}, {"f % (m * 2)", "f // (m * 2)"}, {"f * 3 * m + j * 3 + i"}})
    EXPECT_TRUE(provably_different(b, list(t, false), list(t, true), s.known)) << ::testing::PrintToString(t);
  for (const Tuple &t : {Tuple{"f // m"}, {"f % m"}, {"f // m", "f % n"}, {"f + i"}, {"f // m * 2 + i", "f % m"}, {"i", "j"},
                         {"f // m", "j"}, {"f // m", "f % m // 2"}, {"f * 2 + i"}, {"f * n + j"}, {}})
    EXPECT_FALSE(provably_different(b, list(t, false), list(t, true), s.known)) << ::testing::PrintToString(t);
  std::mt19937 random(3);
  const char *items[] = {"f", "f // m", "f % m", "f // n", "f % n", "i", "j", "f // m * 3 + i", "f % m * 2 + i", "f // 2", "f % 2",
                         "f // m * m + j", "f // (n * m)", "f // m % 2", "f // m // 2", "f * 2", "m - f", "f + i", "f * 3 - i"};
  int proved = 0;
  for (int k = 0; k < 400; k++) {
    Tuple t;
    for (size_t d = 1 + random() % 3; d > 0; d--) t.push_back(items[random() % std::size(items)]);
    Exprs x = list(t, false), y = list(t, true);
    if (!provably_different(b, x, y, s.known)) continue;
    proved++;
    for (const Point &p : points)
      if (same(x, y, p)) {
        ADD_FAILURE() << ::testing::PrintToString(t);
        break;
      }
  }
  EXPECT_GT(proved, 60);
  // Near the end of 64 bits nothing wraps around: what overflows is not proved.
  Setting large(b, {{{"f", "n"}}, {"n"}, {}}, false);
  large.known.range(b.sym("g"), large.parse("f + 1"), large.parse("n"));
  EXPECT_FALSE(provably_different(b, b.list({large.parse("f * 4611686018427387904 * 4")}),
                                  b.list({large.parse("g * 4611686018427387904 * 4")}), large.known));
}

// A name that is defined again is another variable, until the scope ends.
TEST(Arith, Scopes) {
  Build b;
  Setting s(b, {{{"i", "4"}}, {"n"}, {}});
  size_t m = s.known.mark();
  s.known.range(b.sym("i"), s.parse("i + n"));  // its extent is in terms of the outer i
  EXPECT_EQ(interval(s.parse("i"), s.known), (Interval{0, Interval::kMax}));
  EXPECT_TRUE(prove(b, s.parse("i < n + 3"), s.known));
  s.known.pop(m);
  EXPECT_EQ(interval(s.parse("i"), s.known), (Interval{0, 3}));
  EXPECT_EQ(print(b, shorten_inside(b, s.parse("sum(x[i % 9, i % 4] for i in 9)"), s.known)), "sum(x[i, i % 4] for i in 9)");
}

TEST(Arith, ShortenKeepsWhatIsNotShorter) {
  Build b;
  Setting s(b, {{{"i", "n"}, {"j", "4"}}, {"n", "m"}, {}});
  for (const char *same : {"2 * m", "j + i * 4", "m * n + 1", "1 <= i", "max(x[2 * i + j], 0.0) * 1"})
    EXPECT_EQ(print(b, shorten_inside(b, s.parse(same), s.known)), same);
  EXPECT_EQ(print(b, shorten_inside(b, s.parse("where(i < n, x[j % 4, i + 0], 0.0) * f32(j * 1)"), s.known)), "x[j, i] * f32(j)");
}

TEST(Arith, AffineForms) {
  Build b;
  Setting s(b, {{{"i", "n"}, {"j", "4"}}, {"n", "m"}, {}});
  Sym vars[] = {b.sym("i"), b.sym("j")};
  auto a = affine(b, s.parse("(i * 4 + j) * m + n - 3"), vars, s.known);
  ASSERT_TRUE(a);
  EXPECT_EQ(print(b, a->coefs[0]), "m * 4");
  EXPECT_EQ(print(b, a->coefs[1]), "m");
  EXPECT_EQ(print(b, a->rest), "n - 3");
  EXPECT_FALSE(affine(b, s.parse("i // 2"), vars, s.known));
  EXPECT_FALSE(affine(b, s.parse("i * j"), vars, s.known));
  EXPECT_FALSE(affine(b, s.parse("x[i]"), vars, s.known));
  EXPECT_TRUE(affine(b, s.parse("(i * 8 + j * 4) // 4"), vars, s.known));
}

const Map *map_of(Setting &s, const std::string &text) { return &to<Map>(s.parse(text)); }

// The inverse leads back from every point; where `onto` is said, each point of the image is reached once.
TEST(Arith, Inverses) {
  struct {
    std::string map;
    std::vector<std::string> extents;
    bool onto;
    std::string inverse;  // "" : there is none
  } cases[] = {
      {"[i, j] -> [i // 4, j, i % 4]", {"8", "3"}, true, "[y0, y1, y2] -> [y0 * 4 + y2, y1]"},
      {"[i, j] -> [i // 4, j, i % 4]", {"7", "3"}, false, "[y0, y1, y2] -> [y0 * 4 + y2, y1]"},
      {"[i, j] -> [j, i]", {"n", "m"}, true, "[y0, y1] -> [y1, y0]"},
      {"[i] -> [i // 12, i // 4 % 3, i % 4]", {"36"}, true, "[y0, y1, y2] -> [y0 * 12 + y1 * 4 + y2]"},
      {"[i, j] -> [i * 4 + j]", {"5", "4"}, true, "[y0] -> [y0 // 4, y0 % 4]"},
      {"[i, j] -> [i * m + j]", {"n", "m"}, true, "[y0] -> [y0 // m, y0 % m]"},
      {"[i, j] -> [(i * 4 + j) // 6, (i * 4 + j) % 6]", {"3", "4"}, true,
       "[y0, y1] -> [(y0 * 6 + y1) // 4, (y0 * 2 + y1) % 4]"},
      {"[i, j] -> [i + 2, j]", {"5", "4"}, false, "[y0, y1] -> [y0 - 2, y1]"},
      {"[i, j] -> [m - 1 - j, i]", {"n", "m"}, true, "[y0, y1] -> [y1, m - y0 - 1]"},
      {"[i, j] -> [19 - i * 4 - j]", {"5", "4"}, true, "[y0] -> [(19 - y0) // 4, (y0 * 3 + 3) % 4]"},
      {"[i] -> [9 - i]", {"5"}, false, "[y0] -> [9 - y0]"},
      {"[i] -> [i + n]", {"m"}, false, "[y0] -> [y0 - n]"},
      {"[i] -> [3 - i]", {"5"}, true, ""},
      {"[i, j, k] -> [j * 2 + k, i]", {"4", "3", "2"}, true, "[y0, y1] -> [y1, y0 // 2, y0 % 2]"},
      {"[i, j] -> [i, 0]", {"4", "1"}, true, "[y0, y1] -> [y0, 0]"},
      {"[i, j] -> [i + j]", {"4", "4"}, true, ""},
      {"[i, j] -> [i]", {"4", "4"}, true, ""},
      {"[i] -> [i % 4]", {"8"}, true, ""},
      {"[i] -> [i // 4]", {"8"}, true, ""},
      {"[i] -> [i * 2]", {"8"}, true, ""},
      {"[i, j] -> [i * 4 + j]", {"4", "5"}, true, ""},
  };
  Build b;
  Setting s(b, {{}, {"n", "m"}, {}});
  for (auto &c : cases) {
    const Map *m = map_of(s, c.map);
    std::vector<const Expr *> extents;
    for (auto &x : c.extents) extents.push_back(s.parse(x));
    std::vector<Sym> names;
    for (size_t k = 0; k < m->to->items.size(); k++) names.push_back(b.sym("y" + std::to_string(k)));
    auto inv = inverse(b, *m, b.list(extents), names, s.known);
    ASSERT_EQ(bool(inv), !c.inverse.empty()) << c.map;
    if (!inv) continue;
    EXPECT_EQ(print(b, inv->map), c.inverse) << c.map;
    EXPECT_EQ(inv->onto, c.onto) << c.map;
    for (const Point &dims : s.points) {
      std::set<std::vector<int64_t>> image;
      int64_t count = 0, size = 1;
      std::function<void(size_t, Point)> each = [&](size_t k, Point p) {
        if (k < extents.size()) {
          for (int64_t v = 0; v < eval(b, extents[k], p); v++) {
            p[std::string(b.text(to<Name>(m->from->items[k]).name))] = v;
            each(k + 1, p);
          }
          return;
        }
        Point y = dims;
        std::vector<int64_t> at;
        for (size_t r = 0; r < names.size(); r++) {
          at.push_back(y["y" + std::to_string(r)] = eval(b, m->to->items[r], p));
          EXPECT_LT(at.back(), eval(b, inv->image[r], dims)) << c.map;
        }
        image.insert(at);
        count++;
        for (size_t r = 0; r < extents.size(); r++)
          EXPECT_EQ(eval(b, inv->map->to->items[r], y), eval(b, m->from->items[r], p)) << c.map;
      };
      each(0, dims);
      for (const Expr *x : inv->image) size *= eval(b, x, dims);
      EXPECT_EQ(int64_t(image.size()), count) << c.map;
      EXPECT_TRUE(!inv->onto || count == size) << c.map;
    }
  }
}

TEST(Arith, Compositions) {
  Build b;
  Setting s(b, {{{"i", "n"}}, {"n"}, {}});
  auto composed = [&](const char *outer, const char *inner) { return print(b, compose(b, *map_of(s, outer), *map_of(s, inner), s.known)); };
  EXPECT_EQ(composed("[a, c] -> [c, a]", "[i] -> [i // 4, i % 4]"), "[i] -> [i % 4, i // 4]");
  EXPECT_EQ(composed("[a, c] -> [a * 4 + c]", "[i] -> [i // 4, i % 4]"), "[i] -> [i]");
}

TEST(Arith, Spans) {
  Build b;
  Setting s(b, {{{"i0", "n"}}, {"n", "m"}, {}});
  auto said = [&](const char *e, std::vector<std::pair<const char *, const char *>> iters) {
    std::vector<Iter> l;
    for (auto &[v, extent] : iters) l.push_back({b.sym(v), s.parse(extent), kNowhere});
    auto r = span_of(b, s.parse(e), l, s.known);
    return r ? print(b, r->lo) + " +: " + print(b, r->extent) + (r->exact ? "" : " at most") : "unknown";
  };
  EXPECT_EQ(said("i0 * 16 + i1 + 2", {{"i1", "16"}}), "i0 * 16 + 2 +: 16");
  EXPECT_EQ(said("i0 * 2 + i1 - 1", {{"i0", "n"}, {"i1", "3"}}), "-1 +: n * 2 + 1");
  EXPECT_EQ(said("(i0 * 4 + i1) // 2", {{"i1", "4"}}), "i0 * 2 +: 2");
  EXPECT_EQ(said("7 - i1", {{"i1", "m"}}), "8 - m +: m");
  EXPECT_EQ(said("(i0 + i1) % 4 + i0", {{"i1", "3"}}), "unknown");
  EXPECT_EQ(said("i1 % 4 + 1", {{"i1", "9"}}), "1 +: 4 at most");
  EXPECT_EQ(said("max(i0 + i1 - 1, 0)", {{"i1", "3"}}), "max(i0 - 1, 0) +: min(i0 + 2, 3)");
}

// No form of input costs more than a little more than its length.
TEST(Arith, LargeInputs) {
  Build b;
  Bounds known(b);
  known.dim(b.sym("n"));
  const Expr *sum = b.integer(0), *doubled = b.name("n"), *deep = b.name("n"), *minima = b.name("n"), *product = b.integer(1);
  for (int i = 0; i < 20000; i++) {
    std::string v = "v" + std::to_string(i);
    known.range(b.sym(v), b.name("n"));
    sum = b.binary(Op::Add, sum, b.name(v));
    if (i < 5000) deep = b.binary(i % 2 ? Op::FloorDiv : Op::Add, deep, b.integer(i % 7 + 2));
    if (i < 60) doubled = b.binary(Op::Add, doubled, doubled);
    if (i < 200) minima = b.call("min", {minima, b.binary(Op::Sub, b.name(v), b.name("m"))});
    if (i < 200) product = b.binary(Op::Mul, product, b.binary(Op::Add, b.name(v), b.integer(1)));
  }
  for (const Expr *e : {sum, doubled, deep, minima, product}) {
    const Expr *s = simplify(b, e, known);
    EXPECT_TRUE(equal(s, simplify(b, s, known)));
    interval(e, known);
  }
}

}  // namespace
}  // namespace mlc
