// Regions and dependences of scheduled blocks, against all turns of their loops.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "arith/simplify.h"
#include "sched/regions.h"
#include "text/text.h"

namespace mlc {
namespace {

using Point = std::vector<int64_t>;

struct Program {
  std::unique_ptr<Source> source;
  Build b;
  Module m;
};

std::unique_ptr<Program> parse(const std::string &text) {
  auto p = std::make_unique<Program>();
  p->source = std::make_unique<Source>(Source::from_string("test", text));
  Diag diag("test", p->source.get());
  EXPECT_TRUE(read(p->b, *p->source, p->m, diag)) << text;
  return p;
}

int64_t value(Build &b, const Expr *e, const std::map<Sym, int64_t> &at) {
  Substitution names;
  for (auto &[s, v] : at) names[s] = b.integer(v);
  int64_t v = -1;
  const Expr *x = simplify(b, substitute(b, e, names));
  EXPECT_TRUE(int_value(x, &v)) << print(b, x);
  return v;
}

// What a block does at each turn of the loops around it.
struct Touched {
  std::map<Sym, int64_t> loops;
  std::vector<std::pair<size_t, Point>> points;  // number of the access, element
};
std::vector<Touched> run(State &s, Place *n, const std::vector<Access> &accesses) {
  std::vector<Touched> out;
  std::vector<Place *> loops = loops_around(n);
  std::map<Sym, int64_t> at;
  std::function<void(size_t)> nest = [&](size_t d) {
    if (d < loops.size()) {
      const Iter &i = loops[d]->loop()->iter;
      int64_t extent = value(s.b, i.extent, at);
      for (int64_t v = 0; v < extent; v++) at[i.name] = v, nest(d + 1);
      at.erase(i.name);
      return;
    }
    const Block &k = *n->block();
    std::map<Sym, int64_t> axes;
    for (const Axis &x : k.axes) {
      axes[x.name] = value(s.b, x.binding, at);
      if (axes[x.name] < 0 || axes[x.name] >= value(s.b, x.domain, {})) return;  // what a guard would leave out
    }
    Touched t{at, {}};
    for (size_t a = 0; a < accesses.size(); a++) {
      Point p;
      for (const Expr *e : accesses[a].index) p.push_back(value(s.b, e, axes));
      t.points.push_back({a, p});
    }
    out.push_back(t);
  };
  nest(0);
  return out;
}

// Random nests of three loops around one block, with bindings that steps make.
std::string kernel(std::mt19937 &r, bool same) {
  auto pick = [&](std::vector<std::string> l) { return l[r() % l.size()]; };
  auto size = [&] { return std::to_string(1 + r() % 4); };
  std::string i = size(), j = size(), k = size();
  std::string u = pick({"i", "j", "k", "i * " + j + " + j", "j * " + k + " + k", "i * 2 + j", "i * 3", "i // 2", "0", "i % 2", "i + k"});
  std::string v = pick({"k", "j", "i", "k * 2", "j % 2", "(i * " + j + " + j) // 2", "(i * " + j + " + j) % 3", "k + 1"});
  std::string first = pick({"u, v", "v, u", "u, 0", "u + 1, v", "u * 2, v"});
  std::string second = same ? first : pick({"u, v", "v, u", "u, v + 1", "0, u", "u // 2, v"});
  return "mlc 1\n\nkernel @f(x: f32[40, 40]) -> (y: f32[40, 40]) {\n  for i in " + i + "\n  for j in " + j + "\n  for k in " + k +
         " {\n    block y {\n      spatial u in 40 = " + u + "\n      spatial v in 40 = " + v + "\n      y[" + first +
         "] = x[v, u] + y[" + second + "]\n    }\n  }\n}\n";
}

TEST(Sched, RegionsHoldAllThatTurnsTouch) {
  std::mt19937 r(1);
  for (int count = 0; count < 300; count++) {
    std::string text = kernel(r, count % 2);
    auto p = parse(text);
    State s(p->b, p->m, as<Func>(p->m.items[0]));
    Place *n = leaf_blocks(s.tree.root())[0];
    std::vector<Access> all = accesses(s, n);
    std::vector<Touched> turns = run(s, n, all);
    std::vector<Place *> scopes = loops_around(n);
    scopes.insert(scopes.begin(), s.tree.root());
    for (size_t depth = 0; depth < scopes.size(); depth++)
      for (size_t a = 0; a < all.size(); a++) {
        Region g = region(s, n, all[a], scopes[depth]);
        std::map<std::map<Sym, int64_t>, std::set<Point>> parts;  // by the loops around, the scope's own included
        for (const Touched &t : turns) {
          std::map<Sym, int64_t> outer;
          for (size_t d = 1; d <= depth; d++) {
            Sym v = scopes[d]->loop()->iter.name;
            outer[v] = t.loops.at(v);
          }
          for (auto &[number, point] : t.points)
            if (number == a) parts[outer].insert(point);
        }
        for (auto &[outer, points] : parts)
          for (size_t d = 0; d < g.size(); d++) {
            int64_t lo = value(s.b, g[d].lo, outer), extent = value(s.b, g[d].extent, outer);
            std::set<int64_t> seen;
            for (const Point &q : points) {
              EXPECT_GE(q[d], lo) << text;
              EXPECT_LT(q[d], lo + extent) << text;
              seen.insert(q[d]);
            }
            if (g[d].exact) {
              EXPECT_EQ(*seen.begin(), lo) << text;
              EXPECT_EQ(*seen.rbegin(), lo + extent - 1) << text;
            }
            if (g[d].dense && g[d].exact) {
              EXPECT_EQ(int64_t(seen.size()), extent) << text;
            }
          }
      }
  }
}

TEST(Sched, TurnsSaidToBeIndependentTouchDifferentElements) {
  std::mt19937 r(2);
  int independent = 0;
  for (int count = 0; count < 400; count++) {
    std::string text = kernel(r, count % 4 != 0);
    auto p = parse(text);
    State s(p->b, p->m, as<Func>(p->m.items[0]));
    Place *n = leaf_blocks(s.tree.root())[0];
    std::vector<Access> all = accesses(s, n);
    std::vector<Touched> turns = run(s, n, all);
    for (Place *loop : loops_around(n)) {
      if (!dependence(s, loop).empty()) continue;
      independent++;
      Sym v = loop->loop()->iter.name;
      for (const Touched &one : turns)
        for (const Touched &two : turns) {
          auto a = one.loops, c = two.loops;
          if (a.at(v) == c.at(v)) continue;
          bool around = true;  // the same turn of all loops around this one
          for (Place *u = loop->up; u && u->loop(); u = u->up) around &= a.at(u->loop()->iter.name) == c.at(u->loop()->iter.name);
          if (!around) continue;
          for (auto &[x, point] : one.points)
            for (auto &[y, other] : two.points)
              EXPECT_FALSE((all[x].write || all[y].write) && all[x].buffer == all[y].buffer && point == other) << text << s.text(v);
        }
    }
  }
  EXPECT_GT(independent, 100);
}

}  // namespace
}  // namespace mlc
