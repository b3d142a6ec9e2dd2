// Optimizers (ai.onnx.preview.training), each tensor's step written in elementwise operators:
//   Momentum(r, t, x1, x2, g1, g2, v1, v2)      v1' = alpha * v1 + beta * g1;  x1' = x1 - r * v1';  the same for x2
#include "onnx/extras.h"

namespace mlc::onnx {

namespace {

// Inputs are r, t and then `kinds` lists of n tensors each.
size_t tensors(Expansion &e, size_t kinds) {
  if (e.inputs() <= 2 || (e.inputs() - 2) % kinds)
    invalid("expected 2 inputs and {} for each tensor, found {}", kinds, e.inputs());
  return (e.inputs() - 2) / kinds;
}

Term regularized(Term g, Term x, float coefficient) { return coefficient == 0 ? g : double(coefficient) * x + g; }

}  // namespace

// h' = h + g * g;  x' = x - r / (1 + t * decay) * g / (sqrt(h') + epsilon)
void adagrad(Expansion &e) {
  float decay = e.number("decay_factor", 0), epsilon = e.number("epsilon", 0), norm = e.number("norm_coefficient", 0);
  size_t n = tensors(e, 3);
  for (size_t k = 0; k < n; ++k) {
    Term x = e.in(2 + k), h = e.in(2 + 2 * n + k), g = regularized(e.in(2 + n + k), x, norm);
    Term r = e.cast(e.in(0), x.elem()), t = e.cast(e.in(1), x.elem());
    Term rate = r / (1.0 + t * double(decay)), h_new = h + g * g;
    e.give(n + k, h_new);
    e.give(k, x - rate * g / (e.op("Sqrt", {h_new}) + double(epsilon)));
  }
}

// v' = alpha * v + (1 - alpha) * g;  h' = beta * h + (1 - beta) * g * g;  x' = x - rate * v' / (sqrt(h') + epsilon)
// rate = r * sqrt(1 - beta ^ t) / (1 - alpha ^ t), or r where t is 0
void adam(Expansion &e) {
  float alpha = e.number("alpha", 0.9f), beta = e.number("beta", 0.999f), epsilon = e.number("epsilon", 0);
  float norm = e.number("norm_coefficient", 0), post = e.number("norm_coefficient_post", 0);
  size_t n = tensors(e, 4);
  for (size_t k = 0; k < n; ++k) {
    Term x = e.in(2 + k), v = e.in(2 + 2 * n + k), h = e.in(2 + 3 * n + k), g = regularized(e.in(2 + n + k), x, norm);
    Term r = e.cast(e.in(0), x.elem());
    auto rest = [&](Text name, float of) {  // 1 - of ^ t
      return 1.0 - e.op("Pow", {e.floats(name, {of}, {}, x.elem()), e.in(1)});
    };
    Term corrected = r * e.op("Sqrt", {rest("beta", beta)}) / rest("alpha", alpha);
    Term rate = e.where(e.op("Greater", {e.in(1), e.num(0, DType::I64)}), corrected, r);
    Term v_new = v * double(alpha) + g * (1.0 - double(alpha));
    e.give(n + k, v_new);
    Term h_new = h * double(beta) + g * g * (1.0 - double(beta));
    e.give(2 * n + k, h_new);
    Term x_new = x - rate * (v_new / (e.op("Sqrt", {h_new}) + double(epsilon)));
    e.give(k, post == 0 ? x_new : x_new * (1.0 - double(post)));
  }
}

// v' = alpha * v + beta * g, beta is 1 in the first step;  x' = x - r * v', nesterov: x - r * (g + alpha * v')
void momentum(Expansion &e) {
  for (Text name : {"alpha", "beta", "mode", "norm_coefficient"})
    if (!e.has_attr(name)) invalid("attribute '{}' is missing", name);
  float alpha = e.number("alpha", 0), beta = e.number("beta", 0), norm = e.number("norm_coefficient", 0);
  Text mode = e.text("mode", "");
  if (mode != "standard" && mode != "nesterov") invalid("unknown mode \"{}\"", one_line(mode));
  size_t n = tensors(e, 3);
  for (size_t k = 0; k < n; ++k) {
    Term x = e.in(2 + k), v = e.in(2 + 2 * n + k), g = regularized(e.in(2 + n + k), x, norm);
    Term r = e.cast(e.in(0), x.elem());
    Term first = e.op("Greater", {e.in(1), e.num(0, DType::I64)});
    Term scale = beta == 1 ? e.none() : e.where(first, e.num(beta, x.elem()), e.num(1, x.elem()));
    Term v_new = v * double(alpha) + (scale ? scale * g : g);
    e.give(n + k, v_new);
    e.give(k, x - r * (mode == "nesterov" ? g + v_new * double(alpha) : v_new));
  }
}

}  // namespace mlc::onnx
