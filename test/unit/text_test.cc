// Reading and printing: print(read(t)) == t, read(print(m)) equals m, comments, literals, deep nesting, hostile input.
#include "text/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace mlc {
namespace {

struct Read {
  explicit Read(std::string_view text)
      : source(Source::from_string("t.mlc", text)), diag("test", &source), ok(read(b, source, m, diag)) {}
  std::string again() const { return print(b, m); }
  std::string error() const { return diag.messages().empty() ? "" : diag.messages()[0]; }
  Source source;
  Build b;
  Module m;
  Diag diag;
  bool ok;
};

std::string kernel(const std::string &line) {
  return "mlc 1\n\nkernel @k(x: f32[8]) -> (y: f32[8]) {\n" + line + "}\n";
}

TEST(Text, CanonicalIsAFixedPoint) {
  std::string t =
      "# above\nmlc 1\n\n# of the graph\ngraph @main[n](x: f32[n, 2 * n], 'a b': i64[]) -> (y: f32[n]) {\n"
      "  attr a = [1, 2]\n  from \"x\", \"y \\\"z\\\"\"\n  assume n >= 1 && n % 8 == 0\n  dataflow -> y {\n"
      "    # why\n    t: f32[n] = Op(x, 'a b', none, [1, -2], -0.5) {k = \"s\", group = 1} from \"/a\"\n"
      "    y: f32[n], i: i64[n] = @f(t)\n  }\n}\n";
  Read r(t);
  ASSERT_TRUE(r.ok) << r.error();
  EXPECT_EQ(r.again(), t);
}

TEST(Text, CommentsSurvive) {
  Read r("mlc 1\nkernel @k() {\n  for i in 4 {  # behind a loop\n    # above a loop\n    for j in 4 {\n      x[i] = 1.0  # behind\n"
         "      # before a brace\n    }\n  }\n}\n# last\n");
  ASSERT_TRUE(r.ok) << r.error();
  std::string t = r.again();
  for (const char *c : {"# behind a loop", "# above a loop", "# behind\n", "# before a brace", "# last"})
    EXPECT_NE(t.find(c), std::string::npos) << c << "\n" << t;
  EXPECT_EQ(Read(t).again(), t);
}

TEST(Text, MinimalParentheses) {
  std::string t = kernel("  y[0] = (a + b) * c - (d - e) // (f * g) % -h + -(i + j)\n  assume (a < b) == c || !(d && e)\n");
  EXPECT_EQ(Read(t).again(), t);
  Read r(kernel("  y[0] = ((a * b) + (c)) - (-(7))\n"));
  EXPECT_EQ(r.again(), kernel("  y[0] = a * b + c - -7\n"));
}

TEST(Text, IntegersAtTheEnds) {
  std::string t = kernel("  y[0] = f(9223372036854775807, -9223372036854775808, 18446744073709551615)\n");
  EXPECT_EQ(Read(t).again(), t);
  EXPECT_FALSE(Read(kernel("  y[0] = 18446744073709551616\n")).ok);
}

// Every finite f32 of a coarse grid, and the ends, comes back to the bit through text.
TEST(Text, FloatsRoundTrip) {
  Build b;
  std::vector<uint32_t> bits = {0, 0x80000000, 1, 0x007fffff, 0x00800000, 0x7f7fffff, 0x7f800000, 0xff800000, 0x3dcccccd};
  for (uint32_t i = 0; i < 0x7f800000; i += 104729) bits.push_back(i), bits.push_back(i | 0x80000000);
  for (uint32_t u : bits) {
    float f, g;
    memcpy(&f, &u, 4);
    std::string text = print(b, b.number(f, DType::F32));
    const Expr *e = read_expr(b, text, nullptr);
    ASSERT_TRUE(as<Float>(e)) << text;
    g = float(to<Float>(e).value);
    uint32_t v;
    memcpy(&v, &g, 4);
    ASSERT_EQ(u, v) << text;
  }
  EXPECT_EQ(print(b, b.number(0.1f, DType::F32)), "0.1");
  std::string nans = "[nan, -nan, nan(0x7fc00001), -nan(0xffc0dead), inf, -inf]";
  EXPECT_EQ(print(b, read_expr(b, nans, nullptr)), nans);
}

TEST(Text, DeepNesting) {
  for (int depth : {1000, 200000}) {
    std::string open(size_t(depth), '('), close(size_t(depth), ')');
    Read r(kernel("  y[0] = " + open + "x[0]" + close + "\n"));
    ASSERT_TRUE(r.ok) << r.error();
    EXPECT_EQ(r.again(), kernel("  y[0] = x[0]\n"));
  }
}

TEST(Text, TooDeepIsAnError) {
  std::string open(2000000, '(');
  Read r(kernel("  y[0] = " + open + "\n"));
  EXPECT_FALSE(r.ok);
  EXPECT_EQ(r.error(), "nested too deeply");
}

TEST(Text, ErrorsSayWhatWasExpected) {
  EXPECT_EQ(Read("").error(), "empty input: expected a module, which begins with `mlc 1`");
  EXPECT_EQ(Read("graph @f() {\n}\n").error(), "expected `mlc`, found `graph`");
  EXPECT_EQ(Read("mlc 2\n").error(), "this reads `mlc 1`");
  EXPECT_EQ(Read(kernel("  t: f33 = 1.0\n")).error(), "unknown element type `f33`");
  EXPECT_EQ(Read(kernel("  for i = 4 {\n  }\n")).error(), "expected `in`, found `=`");
}

// No text may crash the reader: every prefix of a program, and programs with one byte changed.
TEST(Text, GarbledTextsAreErrors) {
  std::string t = "mlc 1\nconst @w: f32[2] = [1.0, nan(0x7f)] from \"w\"\nkernel @k[n](x: f32[n] in shared {align = 4}) -> (y: f32[n]) {\n"
                  "  attr a = \"b\"\n  for i in n parallel\n  for j in 4 {\n    block b {\n      spatial i in n = i\n      y[i] = sum(x[k] for k in n)\n"
                  "    }\n  }\n}\nschedule @k for @t {\n  i, j = get_loops(b) {d = [1]}\n}\n";
  ASSERT_TRUE(Read(t).ok) << Read(t).error();
  for (size_t n = 0; n < t.size(); n++) Read(t.substr(0, n));
  for (size_t i = 0; i < t.size(); i++)
    for (char c : {'\0', '(', '}', '"', '\'', '9', '\n', '\x80', '@'}) {
      std::string u = t;
      u[i] = c;
      Read r(u);
      if (r.ok) EXPECT_EQ(Read(r.again()).again(), r.again());
      else EXPECT_NE(r.error(), "");
    }
}

TEST(Text, ModulesConcatenate) {
  Read r("mlc 1\nconst @a: f32[] = 1.0\nmlc 1\nconst @b: f32[] = 2.0\n");
  ASSERT_TRUE(r.ok);
  EXPECT_EQ(r.m.items.size(), 2u);
  EXPECT_EQ(r.again(), "mlc 1\n\nconst @a: f32[] = 1.0\nconst @b: f32[] = 2.0\n");
}

}  // namespace
}  // namespace mlc
