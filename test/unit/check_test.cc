// The verifier: what the cases in test/case/check do not show: stages, proofs, nodes that no text gives.
#include "check/check.h"

#include <gtest/gtest.h>

#include <deque>

#include "check/stage.h"
#include "text/text.h"

namespace mlc {
namespace {

struct Check : testing::Test {
  Build b;
  std::deque<Source> sources;
  Module module(std::string text) {
    sources.push_back(Source::from_string("test", "mlc 1\n\n" + text));
    Module m;
    Diag diag("test", &sources.back());
    EXPECT_TRUE(read(b, sources.back(), m, diag)) << (diag.messages().empty() ? "" : diag.messages()[0]);
    return m;
  }
  // The first error, "" if there is none.
  std::string error(const std::string &text) {
    Module m = module(text);
    Diag diag("test", &sources.back());
    bool good = check(b, m, diag);
    EXPECT_EQ(good, diag.errors() == 0);
    return good ? "" : diag.messages()[0];
  }
  // A kernel of this body over x: f32[n, 8], y: f32[n, 8].
  std::string kernel(const std::string &body) {
    return error("kernel @k[n](x: f32[n, 8], ids: i64[n]) -> (y: f32[n, 8]) {\n" + body + "}\n");
  }
};

TEST_F(Check, Stages) {
  auto stage = [&](const std::string &text) {
    Module m = module(text);
    return std::string(stage_name(stage_of(b, to<Func>(m.items.back()))));
  };
  std::string k = "kernel @k[n](x: f32[n]) -> (y: f32[n]) {\n", g = "graph @g[n](x: f32[n]) -> (y: f32[n]) {\n";
  EXPECT_EQ(stage(g + "  y: f32[n] = Relu(x)\n}\n"), "operators");
  EXPECT_EQ(stage(g + "  call @k(x) -> y\n}\n"), "planned");
  EXPECT_EQ(stage(g + "  alloc t: f32[n]\n  call @k(x) -> y\n}\n"), "operators");
  EXPECT_EQ(stage("group @g[n](x: f32[n]) -> (y: f32[n]) {\n  y: f32[n] = Relu(x)\n}\n"), "groups");
  EXPECT_EQ(stage(k + "  compute y[i in n] = x[i]\n}\n"), "computes");
  EXPECT_EQ(stage(k + "  for i in n {\n    y[i] = x[i]\n  }\n}\n"), "compacted");
  std::string block = "  for i in n {\n    block y {\n      spatial i in n = i\n      y[i] = x[i]\n    }\n  }\n";
  EXPECT_EQ(stage(k + block + "}\n"), "blocks");
  EXPECT_EQ(stage(k + "  compute y[i in n] = 0.0\n" + block + "}\n"), "blocks");
  EXPECT_EQ(stage(k + "  attr stage = \"blocks\"\n  compute y[i in n] = x[i]\n}\n"), "blocks");
  EXPECT_EQ(stage(k + "  attr stage = \"synced\"\n}\n"), "compacted");
}

TEST_F(Check, SizesAreComparedAsNumbersNotAsText) {
  EXPECT_EQ(error("kernel @k[n](x: f32[2 * n + 2]) -> (y: f32[(n + 1) * 2]) {\n"
                  "  compute y[i in 2 + 2 * n] = x[i]\n}\n"),
            "");
  EXPECT_EQ(error("kernel @k[n](x: f32[n]) -> (y: f32[n // 4 * 4]) {\n"
                  "  assume n % 4 == 0\n  compute y[i in n] = x[i]\n}\n"),
            "");
  EXPECT_EQ(error("kernel @k[n](x: f32[n]) -> (y: f32[n + 1]) {\n  compute y[i in n] = x[i]\n}\n"),
            "domain of y: expected size n + 1, found n");
  // Not known to be equal, not known to differ: accepted.
  EXPECT_EQ(error("kernel @k[n, m](x: f32[n], z: f32[m]) -> (y: f32[n]) {\n"
                  "  compute y[i in m] = x[i] + z[i]\n}\n"),
            "");
}

TEST_F(Check, SubscriptsThatMayBeInsideAreAccepted) {
  EXPECT_EQ(kernel("  compute y[i in n, j in 8] = where(i >= 1, x[i - 1, j], 0.0)\n"), "");
  EXPECT_EQ(kernel("  compute y[i in n, j in 8] = where(j > 8, x[i, j + 8], 0.0)\n"), "");
  EXPECT_EQ(kernel("  compute y[i in n, j in 8] = x[index(ids[i]), j]\n"), "");
  EXPECT_EQ(kernel("  compute y[i in n, j in 8] = sum(x[i, j + k + 8] for k in 0)\n"), "");
  EXPECT_EQ(kernel("  compute y[i in n, j in 8] = x[i, j + 8]\n"), "j + 8 of x is outside, its size is 8");
  EXPECT_EQ(kernel("  compute y[i in n, j in 8] = sum(x[i, j + k + 8] for k in 2)\n"),
            "j + k + 8 of x is outside, its size is 8");
  EXPECT_EQ(kernel("  for i in n\n  for j in 8 {\n    if j > 8 {\n      y[i, j + 8] = 0.0\n    }\n"
                   "    y[i, j] = 0.0\n  }\n"),
            "");
}

TEST_F(Check, ProofsAreRemarks) {
  auto remarks = [&](const std::string &body) {
    Module m = module("kernel @k[n](x: f32[n]) -> (y: f32[n]) {\n" + body + "}\n");
    Diag diag("check", &sources.back());
    diag.verbose = true;
    EXPECT_TRUE(check(b, m, diag, true));
    testing::internal::CaptureStderr();
    diag.print(stderr);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(remarks("  compute y[i in n] = where(i < n - 1, x[i + 1], 0.0)\n"), "");
  EXPECT_EQ(remarks("  compute y[i in n] = x[i + 1]\n"),
            "mlc-check: note: @k: subscript i + 1 of x not proved below n\n");
  EXPECT_EQ(remarks("  assume n % 8 == 0\n  for i0 in n // 8\n  for i1 in 8 {\n    block y {\n"
                    "      spatial i in n = i0 * 8 + i1\n      y[i] = x[i]\n    }\n  }\n"),
            "");
  EXPECT_EQ(remarks("  for i0 in n // 8\n  for i1 in 9 {\n    block y {\n      spatial i in n = i0 * 8 + i1\n"
                    "      y[i] = x[i]\n    }\n  }\n"),
            "mlc-check: note: @k: axis i bound to i0 * 8 + i1 not proved inside its domain n\n"
            "mlc-check: note: @k: block y not proved to take every point of its axes once\n");
}

TEST_F(Check, CallsSolveDimensions) {
  std::string f = "kernel @f[n, m](x: f32[n, 2 * m], k: index) -> (y: f32[n + k, m]) {\n"
                  "  compute y[i in n + k, j in m] = 0.0\n}\n\n";
  EXPECT_EQ(error(f + "graph @g[h](x: f32[h, 8]) -> (y: f32[h + 3, 4]) {\n  y: f32[h + 3, 4] = @f(x, 3)\n}\n"), "");
  EXPECT_EQ(error(f + "graph @g[h](x: f32[h, 8]) -> (y: f32[h + 3, 5]) {\n  y: f32[h + 3, 5] = @f(x, 3)\n}\n"),
            "result y of @f: expected f32[h + 3, 4], found f32[h + 3, 5]");
  EXPECT_EQ(error(f + "graph @g[h](x: f32[h, 7]) -> (y: f32[h + 3, 4]) {\n  y: f32[h + 3, 4] = @f(x, 3)\n}\n"),
            "argument x of @f: expected f32[n, 2 * m], found f32[h, 7]");
  // A size that is only in the result comes from where it is written.
  std::string iota = "kernel @iota[n]() -> (y: i64[n]) {\n  compute y[i in n] = i64(i)\n}\n\n";
  EXPECT_EQ(error(iota + "graph @g[h](x: f32[h]) -> (y: i64[h]) {\n  call @iota() -> y\n}\n"), "");
}

TEST_F(Check, NodesThatNoTextGives) {
  // A pass that forgets a place or a type must get an error, not a crash.
  Module m;
  auto *t = b.tensor(DType::F32, b.list({b.integer(4)}));
  Func f{};
  f.func = FuncKind::Kernel;
  f.name = b.sym("k");
  f.results = b.one(Def{b.sym("y"), kNowhere, t});
  Iter i{b.sym("i"), b.integer(4), kNowhere};
  f.body = b.stmts({b.make(Compute{{}, b.one(Result{b.sym("y"), kNowhere, b.one(i)}), b.name("nothing"), {}})});
  m.add(b.make(f));
  Diag diag("test");
  EXPECT_FALSE(check(b, m, diag));
  EXPECT_EQ(diag.messages()[0], "nothing is not defined");
}

}  // namespace
}  // namespace mlc
