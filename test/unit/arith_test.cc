// Index arithmetic: every rule against direct evaluation at all points of small domains.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "arith/prove.h"
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
  Setting(Build &b, const World &w) : b(b), known(b) {
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
    all(0, {});
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

}  // namespace
}  // namespace mlc
