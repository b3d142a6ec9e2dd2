// Quantised operators of com.microsoft: from and to numbers by scales and zero points around an operator of floats, or
// products of integers that are scaled.
#include "onnx/contrib.h"

namespace mlc::onnx {

namespace {

// Input i with its scale and zero point behind it, as f32.
Term real(Expansion &e, size_t i) { return e.op("DequantizeLinear", {e.in(i), e.in(i + 1), e.maybe(i + 2)}); }
// To the type of the zero point, or of input 0, with the scale and zero point at i.
Term quantized(Expansion &e, Term x, size_t i, size_t like = 0) {
  Term zero = e.maybe(i + 1);
  return e.op("QuantizeLinear", {x, e.in(i), zero}, {}, zero ? DType::Invalid : e.in(like).elem());
}

}  // namespace

void qlinear_add(Expansion &e) { e.give(0, quantized(e, real(e, 0) + real(e, 3), 6)); }
void qlinear_mul(Expansion &e) { e.give(0, quantized(e, real(e, 0) * real(e, 3), 6)); }
void qlinear_sigmoid(Expansion &e) { e.give(0, quantized(e, e.op("Sigmoid", {real(e, 0)}), 3)); }
void qlinear_leaky_relu(Expansion &e) {
  e.give(0, quantized(e, e.op("LeakyRelu", {real(e, 0)}, passed(e, {"alpha"})), 3));
}
void qlinear_where(Expansion &e) { e.give(0, quantized(e, e.where(e.in(0), real(e, 1), real(e, 4)), 7, 1)); }

void qlinear_reduce_mean(Expansion &e) {
  std::vector<int64_t> axes = e.integers("axes");
  auto keep = passed(e, {"keepdims"});
  e.give(0, quantized(e, e.op("ReduceMean", {real(e, 0), axes.empty() ? e.none() : e.axes(axes)}, keep), 3));
}

namespace {
template <class F> void pooled(Expansion &e, const F &pool) {
  bool last = e.integer("channels_last", 0);
  Term x = real(e, 0), y = pool(last ? channels_first(e, x) : x);
  e.give(0, quantized(e, last ? channels_last(e, y) : y, 3));
}
}  // namespace
void qlinear_average_pool(Expansion &e) {
  pooled(e, [&](Term x) {
    return e.op("AveragePool", {x},
                passed(e, {"auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides"}));
  });
}
void qlinear_global_average_pool(Expansion &e) {
  pooled(e, [&](Term x) { return e.op("GlobalAveragePool", {x}); });
}

// Before opset 13 the softmax ran over all dimensions from the axis on.
void qlinear_softmax(Expansion &e) {
  Term x = real(e, 0);
  int64_t rank = int64_t(x.rank()), axis = e.integer("axis", -1), opset = e.integer("opset", 0);
  if (axis < -rank || axis >= rank) invalid("axis {} is outside the rank {}", axis, rank);
  if (axis < 0) axis += rank;
  bool flat = opset < 13 && axis != rank - 1;
  std::vector<X> dims = x.dims();
  if (flat) x = e.op("Flatten", {x}, {attribute("axis", axis)});
  Term y = e.op("Softmax", {x}, {attribute("axis", flat ? 1 : axis)});
  e.give(0, quantized(e, flat ? e.reshape(y, dims) : y, 3));
}

void qlinear_concat(Expansion &e) {  // inputs: scale, zero point of the result, then three of each part
  if (e.inputs() < 5 || (e.inputs() - 2) % 3) invalid("expected 2 inputs and 3 for each part, found {}", e.inputs());
  if (!e.has_attr("axis")) invalid("attribute 'axis' is missing");
  std::vector<Term> parts;
  for (size_t i = 2; i < e.inputs(); i += 3) parts.push_back(real(e, i));
  e.give(0, quantized(e, e.concat(parts, e.integer("axis", 0)), 0, 2));
}

void contrib_qlinear_conv(Expansion &e) {
  bool last = e.integer("channels_last", 0);
  std::vector<Term> inputs;
  for (size_t i = 0; i < e.inputs(); ++i) inputs.push_back(e.maybe(i));
  if (last) inputs.at(0) = channels_first(e, e.in(0));
  Term y = e.op("QLinearConv", inputs,
                passed(e, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}));
  e.give(0, last ? channels_last(e, y) : y);
}

void mul_integer(Expansion &e) {  // of codes less their zero points
  auto wide = [&](size_t i) {
    Term x = e.cast(e.in(i), DType::I32);
    return e.has(i + 1) ? x - e.cast(e.in(i + 1), DType::I32) : x;
  };
  e.give(0, wide(0) * wide(2));
}

// ---- products

Term integer_product(Expansion &e, Term a, Term b, Term a_zero, Term b_zero, Term scale, Term bias) {
  Term y = e.cast(e.op("MatMulInteger", {a, b, a_zero, b_zero}), scale.elem()) * scale;
  return bias ? y + bias : y;
}

void matmul_integer_to_float(Expansion &e) {
  e.give(0, integer_product(e, e.in(0), e.in(1), e.maybe(4), e.maybe(5), e.in(2) * e.in(3), e.maybe(6)));
}
void dynamic_quantize_matmul(Expansion &e) {
  auto a = e.ops("DynamicQuantizeLinear", 3, {e.in(0)});
  e.give(0, integer_product(e, a[0], e.in(1), a[2], e.maybe(3), a[1] * e.in(2), e.maybe(4)));
}

// (a b + c) * alpha * a_scale * b_scale, quantised if there is a scale for it
void qgemm(Expansion &e) {
  float alpha = e.number("alpha", 1);
  Term a = e.in(0), b = e.in(3);
  if (e.integer("transA", 0)) a = e.transpose(a, {1, 0});
  if (e.integer("transB", 0)) b = e.transpose(b, {1, 0});
  Term acc = e.op("MatMulInteger", {a, b, e.in(2), e.maybe(5)});
  if (e.has(6)) acc = acc + e.in(6);
  Term scale = e.in(1) * e.in(4);
  if (alpha != 1) scale = scale * double(alpha);
  Term y = e.cast(acc, scale.elem()) * scale;
  e.give(0, e.has(7) ? quantized(e, y, 7) : y);
}

// Weights are [direction, input, gate rows] here, transposed in ONNX's LSTM.
void dynamic_quantize_lstm(Expansion &e) {
  std::vector<Term> inputs;
  for (size_t i = 0; i < 12; ++i) inputs.push_back(i < 3 || i > 7 ? e.in(i) : e.maybe(i));
  for (size_t i : {1, 2}) inputs[i] = e.transpose(inputs[i], {0, 2, 1});
  auto y = e.ops("DynamicQuantizeLSTM", 3, inputs,
                 passed(e, {"activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size",
                            "input_forget"}));
  for (size_t k : {0, 1, 2}) e.give(k, y[k]);
}

// Their own older forms of ONNX's.
void contrib_quantize(Expansion &e) {
  std::vector<Attribute> attributes = passed(e, {"axis"});
  e.give(0, e.op("QuantizeLinear", {e.in(0), e.in(1), e.maybe(2)}, attributes));
}
void contrib_dequantize(Expansion &e) {
  std::vector<Attribute> attributes = passed(e, {"axis"});
  e.give(0, e.op("DequantizeLinear", {e.in(0), e.in(1), e.maybe(2)}, attributes));
}

}  // namespace mlc::onnx
