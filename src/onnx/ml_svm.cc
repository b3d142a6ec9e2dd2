// Support vector machines of ai.onnx.ml: kernels between the rows of x and the support vectors, then votes of each pair
// of classes.
#include <cmath>

#include "onnx/ml.h"

namespace mlc::onnx {

namespace {

struct Machine {
  Term x;
  Text kernel;
  std::vector<float> params, coefficients, rho, vectors;
};
Machine machine(Expansion &e) {
  Machine m{e.cast(features(e, e.in(0)), DType::F32), e.text("kernel_type", "LINEAR"), e.numbers("kernel_params"),
            e.numbers("coefficients"), e.numbers("rho"), e.numbers("support_vectors")};
  if (m.coefficients.empty() || m.rho.empty()) invalid("attributes 'coefficients' and 'rho' are needed");
  if (m.kernel != "LINEAR" && m.kernel != "POLY" && m.kernel != "RBF" && m.kernel != "SIGMOID")
    invalid("unknown kernel_type \"{}\"", one_line(m.kernel));
  if (m.params.empty()) m.params = {0, 0, 0};
  if (m.params.size() != 3) invalid("expected 3 'kernel_params', found {}", m.params.size());
  return m;
}

// k[row, vector]: x . v, (gamma x . v + c) ^ degree, tanh(gamma x . v + c), exp(-gamma |x - v|^2)
Term kernels(Expansion &e, const Machine &m, int64_t count) {
  int64_t n = int64_t(m.vectors.size());
  if (count < 1 || n % count) invalid("{} numbers do not divide into {} support vectors", n, count);
  Term v = e.floats("vectors", m.vectors, {count, n / count});
  double gamma = m.params[0], c = m.params[1];
  if (m.kernel == "RBF") {
    Term apart = e.unsqueeze(m.x, 1) - v;
    return e.op("Exp", {e.op("ReduceSumSquare", {apart, e.axes({2})}, {attribute("keepdims", int64_t{0})}) * -gamma});
  }
  Term dot = e.op("Gemm", {m.x, v}, {attribute("transB", int64_t{1})});
  if (m.kernel == "LINEAR") return dot;
  Term s = dot * gamma + c;
  return m.kernel == "SIGMOID" ? e.op("Tanh", {s}) : e.op("Pow", {s, e.num(m.params[2], DType::F32)});
}

Term dot(Expansion &e, Term x, Text name, const std::vector<float> &w, int64_t rows) {  // x w'
  return e.op("Gemm", {x, e.floats(name, w, {rows, int64_t(w.size()) / rows})}, {attribute("transB", int64_t{1})});
}

}  // namespace

void svm_regressor(Expansion &e) {
  Machine m = machine(e);
  int64_t supports = e.integer("n_supports", 0);
  bool one_class = e.integer("one_class", 0);
  Text transform = post_transform(e);
  Term y = dot(e, supports ? kernels(e, m, supports) : m.x, "coefficients", m.coefficients, 1) + double(m.rho[0]);
  if (one_class)
    y = e.where(e.op("Greater", {y, e.num(0, DType::F32)}), e.num(1, DType::F32), e.num(-1, DType::F32));
  e.give(0, transformed(e, y, transform));
}

namespace {

// The score of each pair of classes i < j: rho + sum over the vectors of i and of j, coefficients of i in row j - 1, of
// j in row i. As one matrix: pair x vector, zero elsewhere.
Term pair_scores(Expansion &e, const Machine &m, Term k, const std::vector<int64_t> &per_class, int64_t vectors) {
  constexpr int64_t kMost = int64_t{1} << 24;  // numbers in a matrix
  int64_t classes = int64_t(per_class.size()), pairs = classes * (classes - 1) / 2;
  if (int64_t(m.coefficients.size()) != (classes - 1) * vectors || int64_t(m.rho.size()) != pairs)
    invalid("expected {} coefficients and {} of rho, found {} and {}", (classes - 1) * vectors, pairs,
            m.coefficients.size(), m.rho.size());
  if (pairs * std::max(vectors, classes) > kMost) unsupported("{} pairs of classes and {} vectors", pairs, vectors);
  std::vector<int64_t> start{0};
  for (int64_t n : per_class) start.push_back(start.back() + n);
  std::vector<float> w(size_t(pairs * vectors));
  int64_t pair = 0;
  for (int64_t i = 0; i < classes; ++i)
    for (int64_t j = i + 1; j < classes; ++j, ++pair) {
      auto take = [&](int64_t of, int64_t row) {
        for (int64_t v = start[size_t(of)]; v < start[size_t(of) + 1]; ++v)
          w[size_t(pair * vectors + v)] = m.coefficients[size_t(row * vectors + v)];
      };
      take(i, j - 1), take(j, i);
    }
  return dot(e, k, "coefficients", w, pairs) + e.floats("rho", m.rho, {pairs});
}

// Votes of each class: of its pairs those that it wins. A matrix of 0 and 1 by one of 1 and -1, and what it has for
// sure: the pairs in which it is the second.
Term votes(Expansion &e, Term scores, int64_t classes) {
  int64_t pairs = classes * (classes - 1) / 2, pair = 0;
  std::vector<float> w(size_t(classes * pairs)), sure(static_cast<size_t>(classes));
  for (int64_t i = 0; i < classes; ++i)
    for (int64_t j = i + 1; j < classes; ++j, ++pair) {
      w[size_t(i * pairs + pair)] = 1, w[size_t(j * pairs + pair)] = -1;
      sure[size_t(j)] += 1;
    }
  Term won = e.cast(e.op("Greater", {scores, e.num(0, DType::F32)}), DType::F32);
  return dot(e, won, "pairs", w, classes) + e.floats("seconds", sure, {classes});
}

}  // namespace

// Without support vectors a linear model, one row a class; else all pairs vote.
void svm_classifier(Expansion &e) {
  Machine m = machine(e);
  Labels l = labels(e, "classlabels_ints", "classlabels_strings");
  std::vector<int64_t> per_class = e.integers("vectors_per_class");
  Text transform = post_transform(e);
  int64_t classes = std::max<int64_t>(int64_t(l.count), 1), vectors = 0;
  if (classes > 4096) unsupported("{} classes", classes);
  for (int64_t n : per_class) {
    if (n < 0 || n > int64_t(m.coefficients.size())) invalid("attribute 'vectors_per_class': found {}", n);
    vectors += n;
  }
  std::vector<float> a = e.numbers("prob_a"), b = e.numbers("prob_b");
  if (vectors == 0) {
    if (int64_t(m.coefficients.size()) % classes)
      invalid("{} coefficients of {} classes", m.coefficients.size(), classes);
    Term scores = dot(e, m.x, "coefficients", m.coefficients, classes) + double(m.rho[0]);
    give_label(e, l, best(e, scores));
    return e.give(1, transformed(e, scores, transform));
  }
  if (int64_t(per_class.size()) != classes)
    invalid("{} classes and {} of 'vectors_per_class'", classes, per_class.size());
  Term scores = pair_scores(e, m, kernels(e, m, vectors), per_class, vectors);
  give_label(e, l, best(e, votes(e, scores, classes)));
  if (!a.empty()) {  // probabilities of pairs, 1 / (1 + exp(a s + b)), then of classes
    int64_t pairs = classes * (classes - 1) / 2;
    Term s = scores * e.floats("prob_a", a, {pairs}) + e.floats("prob_b", b, {pairs});
    Term p = e.op("Clip", {e.op("Sigmoid", {e.op("Neg", {s})}), e.num(1e-7, DType::F32), e.num(1 - 1e-7, DType::F32)});
    p = e.op("PairProbabilities", {p}, {attribute("classes", classes)});
    return e.give(1, transformed(e, p, transform));
  }
  if (classes > 2) return e.give(1, transformed(e, scores, transform));
  e.give(1, transformed(e, e.concat({e.op("Neg", {scores}), scores}, 1), transform));
}

}  // namespace mlc::onnx
