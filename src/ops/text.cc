// Operators on text and files. Those that read letters have no kernel, the graph interpreter runs them
// (interp/strings.cc, interp/picture.cc); of the others the letters do not matter, strings are numbers there.
#include <algorithm>

#include "ops/rules.h"

namespace mlc {

// As many parts as the string that has most; the shorter ones end in empty strings.
std::vector<Dims> string_split_shape(OpUse &u) {
  Dims x = u.dims(0), y = x;
  y.push_back(u.result_size(0));
  return {{}, y, x};
}

// What is left of a list, or of the only row of a matrix.
std::vector<Dims> string_normalizer_shape(OpUse &u) {
  Dims x = u.dims(0);
  if (x.empty() || x.size() > 2) u.fail(fmt::format("expected a list or a row, found rank {}", x.size()));
  if (x.size() == 2) u.assume_equal(x[0], u.lit(1), "rows");
  for (std::string_view known : {"NONE", "LOWER", "UPPER"})
    if (u.attr_str("case_change_action") == known) {
      x.back() = u.result_size(0);
      return {{}, x};
    }
  u.fail(fmt::format("unknown case_change_action \"{}\"", u.attr_str("case_change_action")));
}

// Of 0 x 0 pixels where the bytes are no picture.
std::vector<Dims> image_decoder_shape(OpUse &u) {
  if (u.rank(0) != 1) u.fail(fmt::format("expected a list of bytes, found rank {}", u.rank(0)));
  std::string format = u.attr_str("pixel_format");
  if (format != "RGB" && format != "BGR" && format != "Grayscale")
    u.fail(fmt::format("unknown pixel_format \"{}\"", format));
  return {{}, {}, {u.result_size(0), u.result_size(1), u.lit(format == "Grayscale" ? 1 : 3)}};
}

// ---- TfIdfVectorizer: how often each n-gram of a pool occurs in a row, with gaps of up to max_skip_count elements

namespace {

constexpr size_t kMostGrams = 4096;
constexpr int64_t kMostColumns = 1 << 20;

struct Gram {
  std::vector<int64_t> items;
  int64_t column;
  double weight;
};

// The pool by n-grams: first those of one element, then those of two ..; ngram_counts says where each kind begins.
std::vector<Gram> grams(const OpUse &u) {
  const Expr *pool_attr = u.attr_value("pool_int64s");
  if (!pool_attr) u.fail("attribute 'pool_int64s' is missing");
  std::vector<int64_t> pool, starts = u.attr_ints("ngram_counts"), columns = u.attr_ints("ngram_indexes");
  for (const Expr *e : to<List>(pool_attr).items) pool.push_back(to<Int>(e).value);
  std::vector<double> weights = u.attr_floats("weights");
  if (!weights.empty() && weights.size() != columns.size())
    u.fail(fmt::format("{} weights of {} n-grams", weights.size(), columns.size()));
  int64_t size = int64_t(pool.size()), end = starts.empty() || starts[0] ? -1 : 0;
  starts.push_back(size);
  std::vector<Gram> list;
  for (size_t n = 1; n < starts.size() && end == starts[n - 1]; ++n) {
    end = starts[n];
    if (end < starts[n - 1] || end > size || (end - starts[n - 1]) % int64_t(n)) break;
    for (int64_t at = starts[n - 1]; at < end && list.size() < columns.size(); at += int64_t(n)) {
      size_t j = list.size();
      list.push_back({{pool.begin() + at, pool.begin() + at + int64_t(n)}, columns[j], weights.empty() ? 1 : weights[j]});
    }
  }
  if (end != size || list.size() != columns.size())
    u.fail("'ngram_counts', 'ngram_indexes' and the pool do not fit together");
  for (const Gram &g : list)
    if (g.column < 0 || g.column >= kMostColumns) u.fail(fmt::format("a column {}", g.column));
  return list;
}

}  // namespace

std::vector<Dims> tf_idf_shape(OpUse &u) {
  Dims x = u.dims(0);
  if (x.empty() || x.size() > 2) u.fail(fmt::format("expected a list or a matrix, found rank {}", x.size()));
  int64_t columns = 0;
  for (const Gram &g : grams(u)) columns = std::max(columns, g.column + 1);
  x.back() = u.lit(columns);
  return {x};
}

void tf_idf(Define &d) {
  std::vector<Gram> pool = grams(d);
  std::string mode = d.attr_str("mode");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") d.fail(fmt::format("unknown mode \"{}\"", mode));
  if (pool.size() > kMostGrams) d.lack(fmt::format("{} n-grams: at most {}", pool.size(), kMostGrams));
  int64_t least = d.attr_int("min_gram_length"), most = d.attr_int("max_gram_length"), skip = d.attr_int("max_skip_count");
  if (skip < 0) d.fail("a negative max_skip_count");
  Tensor x = d.in(0), y = d.out();
  X width = x.dims.back(), none = lit(d.b, 0.0, DType::F32), one = lit(d.b, 1.0, DType::F32);
  auto fits = [&](const Gram &g) {
    auto item = [&](int64_t v) { return x.elem() == DType::I64 || (v >= INT32_MIN && v <= INT32_MAX); };
    int64_t n = int64_t(g.items.size());
    return n >= least && n <= most && std::all_of(g.items.begin(), g.items.end(), item);
  };
  // How often it occurs: elements p, p + s + 1, p + 2 (s + 1) ..; gaps do not matter to a single one.
  auto count = [&](const Gram &g, const Indices &row) {
    int64_t n = int64_t(g.items.size());
    Dims over{d.lit(n == 1 ? 1 : skip + 1), width};
    return d.reduce("sum", over, [&](const Indices &i) {
      X found = one;
      for (int64_t k = n; k-- > 0;)
        found = where(x(concat(row, {i[1] + (i[0] + 1) * k})) == d.lit(g.items[size_t(k)]), found, none);
      return where(i[1] + (i[0] + 1) * (n - 1) < width, found, none);
    });
  };
  int64_t columns = 0;
  is_const(y.dims.back(), &columns);
  Dims rows = x.rank() == 2 ? Dims{x.dims[0]} : Dims{d.lit(1)};
  d.block("count", rows, "", [&](Define::Body &body, const Indices &i) {
    Indices row = x.rank() == 2 ? i : Indices{};
    for (int64_t c = 0; c < columns; ++c) {
      X total = none;
      bool any = false;
      for (const Gram &g : pool) {
        if (g.column != c || !fits(g)) continue;
        X times = count(g, row), weight = lit(d.b, g.weight, DType::F32);
        X value = mode == "TF" ? times : mode == "IDF" ? where(times > none, weight, none) : times * weight;
        total = any ? total + value : value, any = true;
      }
      body.store(y, concat(row, {d.lit(c)}), total);
    }
  });
}

}  // namespace mlc
