// Strings in the interpreter: what moves them needs no letters, the rest against Python's own functions.
#include "unit/interp_program.h"

namespace mlc {
namespace {

using Texts = std::vector<std::string>;

Array texts(std::vector<int64_t> dims, Texts v) {
  Array a(DType::Str, std::move(dims));
  a.strings = std::move(v);
  return a;
}

// The strings of output i of @f.
Texts run(const std::string &body, const std::vector<Array> &inputs, size_t output = 0) {
  Program p(body);
  std::string error = p.run("f", inputs);
  if (!error.empty()) return {error};
  return p.outputs.at(output).strings;
}

TEST(InterpText, MovesStringsByTheirNumbers) {
  Program p(R"(const @s: str[3] = ["c", "", "c"]
const @empty: str[] = ""
graph @f[n](x: str[n], i: i64[2], p: bool[n]) -> (t: str[2, n], g: str[2], w: str[n], e: bool[n], l: str[n], q: str[n + 2], k: i64[]) {
  both: str[2 * n] = Concat(x, @s) {axis = 0}
  r: str[2, n] = Reshape(both, [2, n])
  t: str[2, n] = Slice(r, [1], [-3], [0], [-1])
  g: str[2] = Gather(x, i)
  w: str[n] = Where(p, x, "none")
  e: bool[n] = Equal(x, @s)
  l: str[n] = if true {
    yield x
  } else {
    yield @s
  }
  q: str[n + 2] = Pad(x, [1, 1])
  k: i64[] = Size(x)
}
)");
  ASSERT_EQ(p.run("f", {texts({3}, {"a", "b", "c"}), i64({2}, {2, -3}), array<char>(DType::Bool, {3}, {1, 0, 1})}), "");
  EXPECT_EQ(p.outputs[0].strings, (Texts{"c", "", "c", "a", "b", "c"}));
  EXPECT_EQ(p.outputs[1].strings, (Texts{"c", "a"}));
  EXPECT_EQ(p.outputs[2].strings, (Texts{"a", "none", "c"}));
  EXPECT_EQ(numbers(p.outputs[3]), (V{0, 0, 1}));
  EXPECT_EQ(p.outputs[4].strings, (Texts{"a", "b", "c"}));
  EXPECT_EQ(p.outputs[5].strings, (Texts{"", "a", "b", "c", ""}));
  EXPECT_EQ(numbers(p.outputs[6]), (V{3}));
}

TEST(InterpText, LoopsCarryAndStackStrings) {
  Program p(R"(graph @f(x: str[3]) -> (all: str[], each: str[3]) {
  all: str[], each: str[3] = loop i in 3 carry s: str[] = "" {
    w: str[] = Gather(x, i)
    t: str[] = StringConcat(s, w)
    yield t
    stack t
  }
}
)");
  ASSERT_EQ(p.run("f", {texts({3}, {"x", "yz", "\u00e4"})}), "");
  EXPECT_EQ(p.outputs[0].strings, (Texts{"xyz\u00e4"}));
  EXPECT_EQ(p.outputs[1].strings, (Texts{"x", "xyz", "xyz\u00e4"}));
}

TEST(InterpText, Split) {
  auto split = [](const std::string &s, const std::string &attrs) {
    return run("graph @f(x: str[]) -> (k: index, y: str[k], l: i64[]) {\n  k: index, y: str[k], l: i64[] = StringSplit(x)" +
                   attrs + "\n}\n",
               {texts({}, {s})}, 1);
  };
  EXPECT_EQ(split("  a  b c ", ""), (Texts{"a", "b", "c"}));
  EXPECT_EQ(split("  a  b c ", " {maxsplit = 1}"), (Texts{"a", "b c "}));
  EXPECT_EQ(split("  a  b c ", " {maxsplit = 0}"), (Texts{"a  b c "}));
  EXPECT_EQ(split(" \t\n", ""), (Texts{}));
  EXPECT_EQ(split("", " {delimiter = \"-\"}"), (Texts{""}));
  EXPECT_EQ(split("-a--b-", " {delimiter = \"-\"}"), (Texts{"", "a", "", "b", ""}));
  EXPECT_EQ(split("-a--b-", " {delimiter = \"--\"}"), (Texts{"-a", "b-"}));
  EXPECT_EQ(split("a-b-c", " {delimiter = \"-\", maxsplit = 1}"), (Texts{"a", "b-c"}));
}

TEST(InterpText, SplitsOfDifferentLength) {
  Program p(R"(graph @f[n](x: str[n]) -> (k: index, y: str[n, k], l: i64[n]) {
  k: index, y: str[n, k], l: i64[n] = StringSplit(x)
}
)");
  ASSERT_EQ(p.run("f", {texts({3}, {"a", "", "b c d"})}), "");
  EXPECT_EQ(p.outputs[1].dims, (std::vector<int64_t>{3, 3}));
  EXPECT_EQ(p.outputs[1].strings, (Texts{"a", "", "", "", "", "", "b", "c", "d"}));
  EXPECT_EQ(numbers(p.outputs[2]), (V{1, 0, 3}));
  ASSERT_EQ(p.run("f", {texts({0}, {})}), "");
  EXPECT_EQ(p.outputs[1].dims, (std::vector<int64_t>{0, 0}));
}

TEST(InterpText, Normalize) {
  auto normal = [](const Texts &s, const std::string &attrs) {
    return run("graph @f[n](x: str[n]) -> (k: index, y: str[k]) {\n  k: index, y: str[k] = StringNormalizer(x)" + attrs +
                   "\n}\n",
               {texts({int64_t(s.size())}, s)}, 1);
  };
  EXPECT_EQ(normal({"\u00c4rger", "STRASSE", "\u0394\u03a3"}, " {case_change_action = \"LOWER\"}"),
            (Texts{"\u00e4rger", "strasse", "\u03b4\u03c3"}));
  EXPECT_EQ(normal({"\u00e4a", "\xff!"}, " {case_change_action = \"UPPER\"}"), (Texts{"\u00c4A", "\xff!"}));
  EXPECT_EQ(normal({"A", "b", "a"}, " {is_case_sensitive = 1, stopwords = [\"a\"]}"), (Texts{"A", "b"}));
  EXPECT_EQ(normal({"A", "b", "a"}, " {stopwords = [\"a\"]}"), (Texts{"b"}));
  EXPECT_EQ(normal({"A"}, " {stopwords = [\"a\"]}"), (Texts{""}));
}

TEST(InterpText, Faults) {
  EXPECT_EQ(run("graph @f(x: str[2], y: str[3]) -> (z: str[3]) {\n  z: str[3] = StringConcat(x, y)\n}\n",
                {texts({2}, {"", ""}), texts({3}, {"", "", ""})}),
            (Texts{"StringConcat: [2] and [3] do not broadcast, in graph @f"}));
  Program p("graph @f(x: str[1]) -> (z: bool[1]) {\n  z: bool[1] = RegexFullMatch(x) {pattern = \"(a\"} from \"/r\"\n}\n");
  EXPECT_EQ(p.run("f", {texts({1}, {"a"})}),
            "RegexFullMatch from \"/r\": pattern \"(a\": missing ): (a, in graph @f");
  Program q("graph @f(x: str[1]) -> (z: str[1]) {\n  z: str[1] = StringConcat(x, x)\n}\n");
  q.options.memory = 4096;
  EXPECT_EQ(q.run("f", {texts({1}, {std::string(10000, 'a')})}), "strings go beyond the limit of 4096 bytes");
}

TEST(InterpText, ManyElementsOfOneLongString) {  // each different string is looked at once
  Program p(R"(graph @f(x: str[]) -> (n: i64[], l: i64[]) {
  wide: str[100000] = Expand(x, [100000])
  twice: str[100000] = StringConcat(wide, wide)
  k: index, parts: str[100000, k], counts: i64[100000] = StringSplit(twice) {delimiter = "-"}
  n: i64[] = Size(parts)
  l: i64[] = ReduceMax(counts) {keepdims = 0}
}
)");
  p.options.memory = int64_t{64} << 20;
  ASSERT_EQ(p.run("f", {texts({}, {std::string(100000, 'a') + "-"})}), "");
  EXPECT_EQ(numbers(p.outputs[0]), (V{300000}));
  EXPECT_EQ(numbers(p.outputs[1]), (V{3}));
}

TEST(InterpText, TfIdf) {  // counts by hand
  auto count = [](const std::string &attrs) {
    Program p("graph @f(x: i64[6]) -> (y: f32[3]) {\n  y: f32[3] = TfIdfVectorizer(x) {max_gram_length = 2, max_skip_count = "
              "1, min_gram_length = 1, " + attrs + ", ngram_counts = [0, 1], ngram_indexes = [0, 2], pool_int64s = [7, 7, 8]}\n}\n");
    EXPECT_EQ(p.run("f", {i64({6}, {7, 8, 7, 7, 8, 8})}), "");
    return p.outputs.empty() ? V{} : numbers(p.outputs[0]);
  };
  // 7 three times; 7 8 side by side at 0 and 3, with one between at 2 and 3
  EXPECT_EQ(count("mode = \"TF\""), (V{3, 0, 4}));
}

}  // namespace
}  // namespace mlc
