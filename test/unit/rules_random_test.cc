// mlc-simplify on random programs: they give the same results before and after, and a second time changes nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "check/check.h"
#include "data/compare.h"
#include "interp/interp.h"
#include "interp/sample.h"
#include "pass/pass.h"
#include "text/text.h"

namespace mlc {

extern const Pass pass_simplify;

namespace {

// The text after the pass. Inputs are [n, 4] with special values in them (NaN, inf ..) where the program runs on all, as
// graphs do; a kernel may refuse some, before the pass and after.
std::string simplified(const std::string &text, const std::vector<DType> &inputs, bool runs_on_all,
                       std::vector<int64_t> sizes, const Tolerance &tolerance) {
  Source source = Source::from_string("random", text);
  Build b;
  Module m, same;
  Diag diag("test", &source);
  if (!read(b, source, m, diag) || !check(b, m, diag)) return ADD_FAILURE() << diag.messages()[0] << "\n" << text, "";
  same.items = m.items;
  pass_simplify.run(b, m, {}, diag);
  std::string after = print(b, m);
  if (!check(b, m, diag)) return ADD_FAILURE() << diag.messages()[0] << "\n" << text << after, "";
  Sym main = b.sym("main");
  for (int64_t n : sizes) {
    std::mt19937_64 random(9);
    std::vector<Array> in, left, right;
    for (DType t : inputs) in.push_back(sample(t, {n, 4}, random, runs_on_all));
    RunFault fault, other;
    bool ran = run(b, same, *same.func(main), in, {}, left, fault);
    bool also = run(b, m, *m.func(main), in, {}, right, other);
    EXPECT_TRUE(ran == also && (ran || !runs_on_all)) << fault.message << "\n" << other.message << "\n" << text << after;
    for (size_t i = 0; ran && also && i < left.size(); i++) {
      Comparison c = compare(right[i], left[i], tolerance);
      EXPECT_TRUE(c.same()) << "n = " << n << ": " << describe(c, "result", left[i]) << "\n" << text << after;
    }
  }
  pass_simplify.run(b, m, {}, diag);
  EXPECT_EQ(print(b, m), after) << text;
  return after;
}

// Lines over values of f32[n, 4], f32[4, n], i32[n, 4] and constants; many of them are equal, dead or foldable.
std::string random_graph(std::mt19937 &r) {
  std::map<std::string, std::vector<std::string>> of = {{"f32[n, 4]", {"x", "u"}}, {"i32[n, 4]", {"k"}}, {"f32[4, n]", {}}, {"f32[4]", {"@a", "@c"}}};
  std::string lines;
  int fresh = 0;
  auto pick = [&](const std::vector<std::string> &l) { return l[r() % l.size()]; };
  auto value = [&](const std::string &type) { return pick(of[type]); };
  auto let = [&](std::string &out, const std::string &indent, const std::string &type, const std::string &e) {
    std::string name = "t" + std::to_string(fresh++);
    out += indent + name + ": " + type + " = " + e + (r() % 2 ? " from \"/n" + std::to_string(fresh) + "\"" : "") + "\n";
    of[type].push_back(name);
  };
  auto unary = [&] { return pick({"Relu", "Neg", "Abs", "Floor", "Identity", "Sigmoid", "Exp"}); };
  auto step = [&](std::string &out, const std::string &in) {
    const std::string a = "f32[n, 4]", t = "f32[4, n]", i = "i32[n, 4]", c = "f32[4]";
    switch (r() % 12) {
      case 0: return let(out, in, a, unary() + "(" + value(a) + ")");
      case 1: return let(out, in, a, pick({"Add", "Sub", "Mul", "Div"}) + "(" + value(a) + ", " + pick({value(a), value(c), "1.0", "-1.0", "0.0", "2.0"}) + ")");
      case 2: return let(out, in, c, pick({"Add", "Sub", "Mul"}) + "(" + value(c) + ", " + pick({value(c), "1.0", "0.5"}) + ")");
      case 3: return let(out, in, t, "Transpose(" + value(a) + ") {perm = [1, 0]}");
      case 4: return of[t].empty() ? void() : let(out, in, a, "Transpose(" + value(t) + ") {perm = [1, 0]}");
      case 5: return let(out, in, i, "Cast(" + pick({value(a), value(i)}) + ")");
      case 6: return let(out, in, i, pick({"Add", "Sub", "Mul"}) + "(" + value(i) + ", " + pick({value(i), "0", "1", "-1"}) + ")");
      case 7: return let(out, in, a, "Cast(" + value(i) + ")");
      case 8: return let(out, in, a, "Reshape(" + value(a) + ", [-1, 4])");
      case 9: return of[t].empty() ? void() : let(out, in, t, "Neg(" + value(t) + ")");
      case 10: return let(out, in, a, "@k(" + value(a) + ")");
      default: return let(out, in, a, "Gather(" + value(a) + ", @ids) {axis = 1}");
    }
  };
  for (int k = 0; k < 14; k++) step(lines, "    ");
  // A branch that yields a value of each side's own.
  auto before = of;
  std::string sides[2];
  for (std::string &side : sides) {
    of = before;
    for (int k = 0; k < 3; k++) step(side, "      ");
    side += "      yield " + value("f32[n, 4]") + "\n";
  }
  of = before;
  lines += "    b: f32[n, 4] = if n > 2 {\n" + sides[0] + "    } else {\n" + sides[1] + "    }\n";
  of["f32[n, 4]"].push_back("b");
  for (int k = 0; k < 6; k++) step(lines, "    ");
  lines += "    y: f32[n, 4] = Identity(" + value("f32[n, 4]") + ")\n    z: f32[n, 4] = " + unary() + "(" + value("f32[n, 4]") + ")\n";
  lines += "    i: i32[n, 4] = Identity(" + value("i32[n, 4]") + ")\n";
  return "mlc 1\n\nconst @a: f32[4] = [1.0, -0.0, 2.5, nan]\nconst @c: f32[4] = [1.0, -0.0, 2.5, nan]\n"
         "const @ids: i64[4] = [3, 0, 1, 1]\n\nkernel @k[n](x: f32[n, 4]) -> (y: f32[n, 4]) {\n  alloc t: f32[n, 4]\n"
         "  compute t[i in n, j in 4] = x[i, (i * 4 + j) % 4] * 1.0\n  compute y[i in n, j in 4] = where(j < 4, t[i, j], 0.0) + 0.5\n}\n\n"
         "graph @main[n](x: f32[n, 4], u: f32[n, 4], k: i32[n, 4]) -> (y: f32[n, 4], z: f32[n, 4], i: i32[n, 4]) {\n"
         "  dataflow -> y, z, i {\n" + lines + "  }\n}\n";
}

TEST(Rules, RandomGraphsBeforeAndAfterThePass) {
  std::mt19937 r(23);
  size_t before = 0, after = 0;
  auto lines = [](const std::string &s) { return size_t(std::count(s.begin(), s.end(), '\n')); };
  for (int turn = 0; turn < 150 && !HasFailure(); turn++) {
    std::string text = random_graph(r);
    Tolerance exact = Tolerance::exact(text.find("Relu") != text.npos);
    before += lines(text);
    after += lines(simplified(text, {DType::F32, DType::F32, DType::I32}, true, {0, 1, 3}, exact));
  }
  EXPECT_LT(after * 4, before * 3);
}

// Kernels of a compute, tiled loops with a guarded block, a branch: subscripts and conditions are random, all inside.
std::string random_kernel(std::mt19937 &r) {
  auto pick = [&](const std::vector<std::string> &l) { return l[r() % l.size()]; };
  std::function<std::string(int)> index = [&](int size) -> std::string {
    if (size <= 1) return pick({"i", "j", "i", "j", "n", "1", "2", "3", "4"});
    std::string a = index(size / 2), c = index(size - size / 2);
    switch (r() % 8) {
      case 0: return "min(" + a + ", " + c + ")";
      case 1: return "max(" + a + ", " + c + ")";
      default: return "(" + a + pick({" + ", " - ", " * ", " // ", " % ", " + "}) + c + ")";
    }
  };
  std::function<std::string(int)> condition = [&](int size) -> std::string {
    if (size > 2 && r() % 2) return "(" + condition(size - 2) + pick({" && ", " || "}) + condition(size - 2) + ")";
    return (r() % 4 ? "" : "!") + ("(" + index(size) + pick({" < ", " <= ", " == ", " != ", " >= "}) + index(2) + ")");
  };
  std::function<std::string(int, std::string)> value = [&](int size, std::string from) -> std::string {
    if (size <= 1) return r() % 5 ? from + "[(" + index(3) + ") % n, (" + index(3) + ") % 4]" : pick({"0.0", "1.0", "-2.5"});
    if (r() % 3 == 0) return "where(" + condition(3) + ", " + value(size - 1, from) + ", " + value(size - 1, from) + ")";
    return "(" + value(size / 2, from) + pick({" + ", " * ", " - "}) + value(size - size / 2, from) + ")";
  };
  std::string facts = pick({"", "  assume n % 2 == 0\n", "  assume n >= 3\n", "  assume n <= 4 && n > 1\n"});
  return "mlc 1\n\nkernel @main[n](x: f32[n, 4]) -> (y: f32[n, 4], z: f32[n, 4]) {\n" + facts + "  alloc t: f32[n, 4]\n  compute t[i in n, j in 4] = " +
         value(3, "x") + "\n  for i0 in (n + 1) // 2\n  for i1 in 2\n  for j in 4 {\n    block y {\n      spatial i in n = i0 * 2 + i1\n" +
         "      spatial j in 4 = j\n      guard i0 * 2 + i1 < n\n      a: f32 = " + value(2, "x") + "\n      y[i, j] = " + value(3, "t") + " + a\n    }\n  }\n" +
         "  for i in n\n  for j in 4 {\n    k: index = " + index(4) + "\n    if " + condition(4) + " {\n      z[i, j] = " + value(2, "x") + "\n    } else {\n" +
         "      z[i, j] = t[k % n, (k // n) % 4] + " + value(2, "t") + "\n    }\n  }\n}\n";
}

TEST(Rules, RandomKernelsBeforeAndAfterThePass) {
  std::mt19937 r(29);
  size_t before = 0, after = 0;
  for (int turn = 0; turn < 200 && !HasFailure(); turn++) {
    std::string text = random_kernel(r);
    before += text.size();
    after += simplified(text, {DType::F32}, false, {0, 2, 3, 4, 7}, Tolerance::exact()).size();
  }
  EXPECT_LT(after * 10, before * 9);
}

}  // namespace
}  // namespace mlc
