// Race proofs against running: a loop that is called free of races must not have one, at any small size.
#include <gtest/gtest.h>

#include <random>

#include "check/check.h"
#include "interp/interp.h"
#include "text/text.h"

namespace mlc {
namespace {

struct Program {
  Build b;
  Module m;
  bool proved = false, valid = false;
  explicit Program(const std::string &text) {
    Source *source = new Source(Source::from_string("<test>", text));
    Diag diag("test", source);
    EXPECT_TRUE(read(b, *source, m, diag)) << text;
    diag.verbose = true;
    valid = check(b, m, diag, true);
    char *out = nullptr;
    size_t size = 0;
    FILE *f = open_memstream(&out, &size);
    diag.print(f);
    fclose(f);
    proved = !strstr(out, "not proved apart");
    free(out);
  }
  // Does a run with sizes n find turns that touch one element?
  bool races(int64_t n) {
    RunOptions o;
    o.races = true, o.check_undefined = false;
    Array a(DType::I32, {40});
    Array size(DType::I64, {});
    size.set(0, Scalar::of_int(n));
    std::vector<Array> out;
    RunFault fault;
    bool ran = run(b, m, *m.func(b.sym("k")), {size, a}, o, out, fault);
    EXPECT_TRUE(ran || fault.race || fault.message.find("outside") != std::string::npos ||
                fault.message.find("never written") != std::string::npos) << fault.message;
    return fault.race;
  }
};

std::string kernel(const std::string &body) {
  return "mlc 1\nkernel @k(n: index, inout x: i32[40]) {\n  assume n >= 0 && n < 6\n" + body + "}\n";
}

TEST(Race, RandomLoopsAgreeWithRuns) {
  std::mt19937 random(7);
  auto pick = [&](std::vector<const char *> l) { return std::string(l[random() % l.size()]); };
  int proved = 0, raced = 0;
  constexpr int kPrograms = 1500;
  for (int k = 0; k < kPrograms; k++) {
    auto subscript = [&] {
      return pick({"i", "i * 4 + j", "i + j", "j * 6 + i", "i * 2", "i * 2 + 1", "i // 2 * 8 + i % 2 * 4 + j", "j", "i % 4",
                   "5 - i", "i * 3 + j", "i * 4 + j + 1", "(i + j) // 2", "i * 4 + j % 2", "n", "min(i, 3)", "7 * i + 2",
                   "i // n", "i % n", "i % n * 6 + i // n", "i % n * 4 + j", "i // n * 5 + i % n"});
    };
    std::string kind = pick({"parallel", "vectorize", "bind blockIdx.x"});
    std::string guard = pick({"", "", "i * 4 + j < n * 3", "j < 2", "i < 3"});
    std::string text = "  for i in " + pick({"n", "6", "n // 2", "n * n"}) + " " + kind + "\n  for j in " + pick({"4", "3", "n"}) + " {\n";
    std::string store = "x[" + subscript() + "] = x[" + subscript() + "] + 1\n";
    bool again = random() % 3 == 0;
    std::string more = again ? "x[" + subscript() + "] = 3\n" : "";
    if (random() % 2) {
      text += guard.empty() ? "    " + store + (again ? "    " + more : "")
                            : "    if " + guard + " {\n      " + store + (again ? "      " + more : "") + "    }\n";
    } else {
      text += "    block b {\n      spatial i in 6 = i\n      spatial j in 6 = j\n" +
              (guard.empty() ? "" : "      guard " + guard + "\n") + "      " + store + (again ? "      " + more : "") + "    }\n";
    }
    Program p(kernel(text + "  }\n"));
    if (!p.valid) continue;  // a turn of an axis that is never reached
    bool race = false;
    for (int64_t n = 0; n < 6; n++) race |= p.races(n);
    EXPECT_FALSE(p.proved && race) << text;
    proved += p.proved, raced += race;
  }
  EXPECT_GT(proved, kPrograms / 20);
  EXPECT_GT(raced, kPrograms / 8);
}

TEST(Race, Proofs) {
  for (std::string s : {"x[i] = 0", "x[i * 4 + 3] = x[i * 4 + 1]", "x[39 - i] = 1", "x[i // 2 * 2 + i % 2] = 1"})
    EXPECT_TRUE(Program(kernel("  for i in n parallel {\n    " + s + "\n  }\n")).proved) << s;
  for (std::string s : {"x[0] = 0", "x[i] = x[i + 1]", "x[i // 2] = 1", "x[i % 4] = 1", "x[index(x[i])] = 1"})
    EXPECT_FALSE(Program(kernel("  for i in n parallel {\n    " + s + "\n  }\n")).proved) << s;
  for (std::string s : {"x[i % n * 6 + i // n] = 1", "x[i // n * n + i % n] = 0", "x[i // n * 6 + i % n] = 1"})
    EXPECT_TRUE(Program(kernel("  for i in n * n parallel {\n    " + s + "\n  }\n")).proved) << s;
  for (std::string s : {"x[i // n] = 1", "x[i % n * 4 + i // n] = 1", "x[i // n + i % n] = 0"})
    EXPECT_FALSE(Program(kernel("  for i in n * n parallel {\n    " + s + "\n  }\n")).proved) << s;
  EXPECT_TRUE(Program(kernel("  for i in (n * n + 3) // 4 parallel\n  for j in 4 {\n    if i * 4 + j < n * n {\n"
                             "      x[(i * 4 + j) % n * 6 + (i * 4 + j) // n] = 1\n    }\n  }\n")).proved);
  EXPECT_TRUE(Program(kernel("  for i in n parallel {\n    atomic x[0] = x[0] + 1\n  }\n")).proved);
  EXPECT_TRUE(Program(kernel("  for i in n parallel {\n    alloc t: i32[4]\n    call fill(0) -> t\n    t[0] = 1\n"
                             "    x[i * 4] = t[0]\n  }\n")).proved);
  EXPECT_FALSE(Program(kernel("  alloc t: i32[4]\n  for i in n parallel {\n    t[0] = 1\n    x[i * 4] = t[0]\n  }\n")).proved);
  EXPECT_TRUE(Program(kernel("  for i in n parallel {\n    view v: i32[4] = x[i * 4 +: 4]\n    v[3] = v[0]\n  }\n")).proved);
  EXPECT_FALSE(Program(kernel("  for i in n parallel {\n    view v: i32[4] = x[i * 3 +: 4]\n    v[3] = v[0]\n  }\n")).proved);
  EXPECT_FALSE(Program(kernel("  view v: i32[8] = x[0 +: 8]\n  view w: i32[8] = x[4 +: 8]\n"
                              "  for i in n parallel {\n    v[i] = w[i]\n  }\n")).proved);
  EXPECT_TRUE(Program(kernel("  for i in n parallel {\n    call fill(1) -> x[i * 4 +: 4]\n  }\n")).proved);
  EXPECT_FALSE(Program(kernel("  for i in n parallel {\n    call fill(1) -> x[i * 4 +: 5]\n  }\n")).proved);
}

}  // namespace
}  // namespace mlc
