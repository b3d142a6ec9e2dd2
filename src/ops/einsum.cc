// Einsum: "bij,bjk->bik" as one sum of products. Letters are dimensions, `...` stands for broadcast dimensions in
// front.
#include <algorithm>
#include <map>

#include "ops/rules.h"

namespace mlc {

namespace {

struct Term {  // of one input or of the result: letters; the dimensions of `...` stand at `dots`, if it is there
  std::string letters;
  size_t dots = std::string::npos;
};

struct Equation {
  std::vector<Term> inputs;
  Term output;
  std::map<char, X> extent;
  Dims dots;          // the broadcast dimensions of all `...`
  std::string summed; // letters that are not in the result, in order
};

Term term_of(const OpUse &u, std::string_view text) {
  Term t;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == ' ') continue;
    if (text.substr(i, 3) == "..." && t.dots == std::string::npos) t.dots = t.letters.size(), i += 2;
    else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) t.letters += c;
    else u.fail(fmt::format("attribute 'equation': unexpected '{}'", c));
  }
  return t;
}

Equation equation_of(OpUse &u) {
  std::string text = u.attr_str("equation");
  Equation e;
  size_t arrow = text.find("->");
  std::string_view left = std::string_view(text).substr(0, arrow);
  for (size_t comma; (comma = left.find(',')) != std::string_view::npos; left = left.substr(comma + 1))
    e.inputs.push_back(term_of(u, left.substr(0, comma)));
  e.inputs.push_back(term_of(u, left));
  if (e.inputs.size() != u.inputs())
    u.fail(fmt::format("the equation has {} terms for {} inputs", e.inputs.size(), u.inputs()));
  std::map<char, int> uses;
  for (size_t n = 0; n < e.inputs.size(); ++n) {
    const Term &t = e.inputs[n];
    Dims x = u.dims(n);
    bool dots = t.dots != std::string::npos;
    if (dots ? x.size() < t.letters.size() : x.size() != t.letters.size())
      u.fail(
          fmt::format("term {} of the equation has {} letters, the input has rank {}", n, t.letters.size(), x.size()));
    size_t extra = x.size() - t.letters.size();
    if (dots) e.dots = broadcast(u, e.dots, Dims(x.begin() + t.dots, x.begin() + t.dots + extra));
    for (size_t k = 0; k < t.letters.size(); ++k) {
      X n_k = x[dots && k >= t.dots ? k + extra : k];
      auto [it, first] = e.extent.emplace(t.letters[k], n_k);
      if (!first) u.assume_equal(n_k, it->second, fmt::format("dimension '{}'", t.letters[k]));
      ++uses[t.letters[k]];
    }
  }
  if (arrow != std::string::npos) {
    e.output = term_of(u, std::string_view(text).substr(arrow + 2));
  } else {  // letters that occur once, in order of the alphabet
    e.output.dots = 0;
    for (auto [letter, count] : uses)
      if (count == 1) e.output.letters += letter;
  }
  for (char c : e.output.letters)
    if (!e.extent.count(c) || std::count(e.output.letters.begin(), e.output.letters.end(), c) > 1)
      u.fail(fmt::format("the result's '{}' must occur in an input, and once in the result", c));
  for (const Term &t : e.inputs)
    for (char c : t.letters)
      if (e.output.letters.find(c) == std::string::npos && e.summed.find(c) == std::string::npos) e.summed += c;
  return e;
}

}  // namespace

std::vector<Dims> einsum_shape(OpUse &u) {
  Equation e = equation_of(u);
  Dims y;
  for (size_t k = 0; k <= e.output.letters.size(); ++k) {
    if (k == e.output.dots) y.insert(y.end(), e.dots.begin(), e.dots.end());
    if (k < e.output.letters.size()) y.push_back(e.extent.at(e.output.letters[k]));
  }
  return {y};
}

void einsum(Define &d) {
  Equation e = equation_of(d);
  Tensor y = d.out();
  DType t = y.elem(), wide = accumulator(t);
  bool output_dots = e.output.dots != std::string::npos;
  Dims over;
  if (!output_dots) over = e.dots;  // summed too
  for (char c : e.summed) over.push_back(e.extent.at(c));
  d.compute(y, [&](const Indices &i) {
    std::map<char, X> at;
    Indices dots;
    size_t extra = output_dots ? e.dots.size() : 0;
    for (size_t k = 0; k < e.output.letters.size(); ++k)
      at[e.output.letters[k]] = i[output_dots && k >= e.output.dots ? k + extra : k];
    if (output_dots) dots = slice(i, e.output.dots, e.output.dots + extra);
    X v = d.reduce("sum", over, [&](const Indices &r) {
      size_t next = 0;
      Indices inner = dots;
      if (!output_dots) inner = slice(r, 0, e.dots.size()), next = e.dots.size();
      for (char c : e.summed) at[c] = r[next++];
      X p;
      for (size_t n = 0; n < e.inputs.size(); ++n) {
        const Term &term = e.inputs[n];
        Tensor x = d.in(n);
        size_t own = x.rank() - term.letters.size();
        Indices index;
        for (size_t k = 0; k <= term.letters.size(); ++k) {
          if (k == term.dots)
            for (size_t q = 0; q < own; ++q) {
              int64_t one;
              bool flat = is_const(x.dims[term.dots + q], &one) && one == 1;
              index.push_back(flat ? d.lit(0) : inner[inner.size() - own + q]);
            }
          if (k < term.letters.size()) index.push_back(at.at(term.letters[k]));
        }
        X f = as_type(x(index), t, wide);
        p = n ? p * f : f;
      }
      return p;
    });
    return as_type(v, wide, t);
  });
}

}  // namespace mlc
