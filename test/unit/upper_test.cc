// The most that a size can be, from what a graph assumes.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "graph/upper.h"
#include "text/text.h"

namespace mlc {
namespace {

struct Row {
  const char *size, *most;  // most: null if there is none
};

TEST(Upper, FollowsAssumptions) {
  constexpr Row kRows[] = {
      {"n", "n"},
      {"2 * n + m", "2 * n + m"},
      {"k", "n * 4"},
      {"k + 3", "n * 4 + 3"},
      {"k * k", "n * n * 16"},
      {"n - k", "n"},           // k is not below 0
      {"n - j", nullptr},       // j may be far below 0
      {"j", "7"},               // the number, of two bounds
      {"max(j, 0)", "7"},
      {"max(open, 0)", nullptr},
      {"min(open, n)", "n"},
      {"k // 2", "n * 2"},
      {"open % 8", "7"},
      {"open", nullptr},
      {"same", "n"},
      {"less", "m - 1"},
      {"later", nullptr},       // what is assumed of it stands in a body that is over
  };
  Build b;
  auto name = [&](const char *s) { return b.name(s); };
  Func f{};
  f.func = FuncKind::Graph, f.name = b.sym("f"), f.dims = b.list(std::vector<Sym>{b.sym("n"), b.sym("m")});
  Upper u(b, *b.make(f));
  for (const char *s : {"k", "j", "open", "same", "less", "later"}) u.define(b.sym(s));
  X n{b, name("n")}, m{b, name("m")}, k{b, name("k")}, j{b, name("j")};
  u.assume((k >= 0 && k <= n * 4).e);
  u.assume((j < n && j <= 7).e);
  u.assume((n == X{b, name("same")}).e);
  u.assume((m > X{b, name("less")}).e);
  size_t mark = u.mark();
  u.assume((X{b, name("later")} < n).e);
  EXPECT_TRUE(u.of(name("later")));
  u.pop(mark);

  for (const Row &r : kRows) {
    Source source = Source::from_string("t", fmt::format("mlc 1\n\ngraph @g() -> (y: f32[{}]) {{\n}}\n", r.size));
    Module module;
    Diag diag("test", &source);
    ASSERT_TRUE(read(b, source, module, diag)) << r.size;
    const Expr *e = module.func(b.sym("g"))->results[0].type->dims[0];
    Sym open;
    auto most = u.of(e, &open);
    EXPECT_EQ(most ? print(b, most->e) : "none", r.most ? r.most : "none") << r.size;
    EXPECT_EQ(bool(open), !most) << r.size;
  }
}

}  // namespace
}  // namespace mlc
