// Comparing modules, and passes that compare themselves.
#include "equiv/equiv.h"

#include <gtest/gtest.h>

#include "equiv/field.h"
#include "pass/pass.h"
#include "text/text.h"

namespace mlc {
namespace {

struct Text {
  Build b;
  Module m;
  explicit Text(std::string_view text) {
    Source source = Source::from_string("<test>", text);
    Diag diag("test", &source);
    EXPECT_TRUE(read(b, source, m, diag));
  }
};

EquivReport compare(std::string_view a, std::string_view b, EquivOptions options = {}) {
  Text x(a), y(b);
  return equiv({x.b, x.m, "a", "", nullptr}, {y.b, y.m, "b", "", nullptr}, options);
}

// A pass that is wrong: it drops the last store of each kernel but one.
void drop_last(Build &b, Module &m, const Options &, Diag &) {
  for (size_t i = 0; i < m.items.size(); i++)
    if (auto *f = as<Func>(m.items[i]); f && f->body.size() > 1) {
      Func n = *f;
      n.body = f->body.first(f->body.size() - 1);
      m.replace(i, b.make(n));
    }
}

TEST(Equiv, PassesVerifyThemselves) {
  const Pass wrong = {"wrong", "Drops a line", {}, drop_last};
  std::string_view text = R"(mlc 1
kernel @k(x: f32[4]) -> (y: f32[4]) {
  compute y[i in 4] = x[i]
  compute y[i in 4] = x[i] + 1.0
}
)";
  for (bool verify : {false, true}) {
    setenv("MLC_VERIFY", verify ? "1" : "0", 1);
    Text t(text);
    Diag diag("wrong");
    EXPECT_EQ(run_pass(wrong, t.b, t.m, {}, diag), !verify);
    if (!verify) continue;
    ASSERT_EQ(diag.messages().size(), 1u);
    EXPECT_NE(diag.messages()[0].find("y[0]: expected"), std::string::npos) << diag.messages()[0];
  }
  unsetenv("MLC_VERIFY");
}

TEST(Equiv, SizesBesideTiles) {
  std::string_view good = R"(mlc 1
kernel @k[n](x: i32[n]) -> (y: i32[n]) {
  for i0 in (n + 22) // 23
  for i1 in 23 {
    block y {
      spatial i in n = i0 * 23 + i1
      guard i0 * 23 + i1 < n
      y[i] = x[i]
    }
  }
}
)";
  std::string bad(good);  // one element more where n is a multiple of 23 and above: seen at 46 alone
  bad.replace(bad.find("y[i] = x[i]"), 11, "y[i] = where(n % 46 == 0, 0, x[i])");
  EXPECT_TRUE(compare(good, good).same);
  EquivOptions many;
  many.runs = 40;
  EXPECT_FALSE(compare(good, bad, many).same);
}

TEST(Equiv, FixedSizesRunTwiceWhateverTheyTake) {
  std::string_view text = R"(mlc 1
kernel @k(x: f32[100]) -> (y: f32[100]) {
  compute y[i in 100] = sum(x[k] * x[i] for k in 100)
}
)";
  EquivOptions few;
  few.turns = 10;
  EXPECT_EQ(compare(text, text, few).text, "same: 2 runs exact");
}

TEST(Equiv, NumbersOfTheField) {
  auto times = [](uint64_t a, uint64_t b) { return a * b % kFieldPrime; };
  EXPECT_EQ(times(field_of(0.5), 2), 1u);
  EXPECT_EQ(times(field_of(-0.75), 4), kFieldPrime - 3);
  EXPECT_EQ(field_of(0.0), 0u);
  EXPECT_EQ(field_of(4294967296.0), 2u);  // 2^31 = 1
  EXPECT_EQ((field_of(0.1) + field_of(0.1)) % kFieldPrime, field_of(0.2));
  EXPECT_EQ(times(field_of(0x1.8p-1060), field_of(0x1p1000)), field_of(0x1.8p-60));
}

// Every function of floats in another order of its sum, and one that is not the same.
TEST(Equiv, AlgebraSeesThroughFunctions) {
  for (std::string f : {"exp(s)", "s / t", "max(s, t)", "abs(s) - min(s, -t)", "f32(i32(s))", "f32(f16(s))", "pow(s, t)",
                        "where(s < t, s * s, floor(t))", "prod(s + f32(k) for k in 3)", "max(s * f32(k) for k in 3)",
                        "f32(bits.i32(s))", "bits.f32(i32(t))", "clamp(s, -1.0, t)", "-s + inf * t"}) {
    auto text = [&](std::string sum) {
      return "mlc 1\nkernel @k[n](x: f32[n, 24]) -> (y: f32[n]) {\n  for i in n {\n    s: f32 = " + sum +
             "\n    t: f32 = x[i, 0] + 0.5\n    y[i] = " + f + "\n  }\n}\n";
    };
    std::string a = text("sum(x[i, k] * 3.0 for k in 24)"), b = text("3.0 * sum(x[i, 23 - k] for k in 24)");
    Text x(a), y(b);
    RunOptions o;
    FieldProgram p = over_field(x.b, x.m, *x.m.func(x.b.sym("k")), o);
    FieldProgram q = over_field(y.b, y.m, *y.m.func(y.b.sym("k")), o);
    ASSERT_TRUE(p.entry && q.entry) << p.why;
    Array in(DType::U64, {5, 24});
    for (int64_t i = 0; i < in.size(); i++) in.set(i, Scalar::of_int((i * 7919 + 12345) * 104729 % int64_t(kFieldPrime)));
    std::vector<Array> u, v;
    RunFault fault;
    ASSERT_TRUE(run(x.b, p.m, *p.entry, {in}, o, u, fault)) << fault.message;
    ASSERT_TRUE(run(y.b, q.m, *q.entry, {in}, o, v, fault)) << fault.message;
    EXPECT_EQ(u[0].bytes, v[0].bytes) << f;
  }
}

}  // namespace
}  // namespace mlc
