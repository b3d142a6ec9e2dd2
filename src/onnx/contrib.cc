// Operators of com.microsoft that optimizers of models write: products, convolutions and norms with what stands around
// them.
#include "onnx/contrib.h"

#include <cmath>
#include <numeric>

namespace mlc::onnx {

std::vector<Attribute> passed(Expansion &e, std::initializer_list<Text> names) {
  std::vector<Attribute> list;
  for (Text name : names)
    if (auto a = e.use.take(name)) list.push_back(*a);
  return list;
}

namespace {

std::vector<int64_t> counting(int64_t n) {
  std::vector<int64_t> v(static_cast<size_t>(n));
  std::iota(v.begin(), v.end(), 0);
  return v;
}

Term gelu(Expansion &e, Term x, Text approximate = "none") {
  return e.op("Gelu", {x}, {attribute("approximate", approximate)});
}

// An activation by its name, with up to two numbers.
Term activated(Expansion &e, Term x, Text name, std::vector<float> params) {
  auto number = [&](size_t i, float otherwise) { return i < params.size() ? params[i] : otherwise; };
  if (name.empty()) return x;
  if (name == "Relu" || name == "Tanh" || name == "Sigmoid" || name == "Softplus") return e.op(std::string(name), {x});
  if (name == "LeakyRelu") return e.op("LeakyRelu", {x}, {attribute("alpha", number(0, 0.01f))});
  auto bound = [&](size_t i, float otherwise) { return e.num(number(i, otherwise), x.elem()); };
  if (name == "Clip") return e.op("Clip", {x, bound(0, -INFINITY), bound(1, INFINITY)});
  if (name == "HardSigmoid")
    return e.op("HardSigmoid", {x}, {attribute("alpha", number(0, 0.2f)), attribute("beta", number(1, 0.5f))});
  unsupported("activation \"{}\"", one_line(name));
}

std::vector<float> activation_params(Expansion &e) {
  std::vector<float> params;
  if (e.has_attr("activation_alpha")) params.push_back(e.number("activation_alpha", 0));
  if (e.has_attr("activation_beta")) params.push_back(e.number("activation_beta", 0));
  return params;
}

}  // namespace

// ---- activations

void contrib_gelu(Expansion &e) { e.give(0, gelu(e, e.in(0))); }
void bias_gelu(Expansion &e) { e.give(0, gelu(e, e.in(0) + e.in(1))); }
void fast_gelu(Expansion &e) { e.give(0, gelu(e, e.has(1) ? e.in(0) + e.in(1) : e.in(0), "tanh")); }
void quick_gelu(Expansion &e) { e.give(0, e.op("Swish", {e.in(0)}, {attribute("alpha", e.number("alpha", 1.702f))})); }
void bias_add(Expansion &e) { e.give(0, e.in(0) + e.in(1) + e.in(2)); }
void bias_split_gelu(Expansion &e) {  // left half * gelu(right half)
  Term x = e.in(0) + e.in(1);
  int64_t last = int64_t(x.rank()) - 1;
  X n = x.dim(size_t(last)), half = floordiv(n, 2);
  Term left = e.slice(x, last, lit(e.b, int64_t{0}), half);
  e.give(0, left * gelu(e, e.slice(x, last, half, n)));
}

// ---- products and convolutions

namespace {
// [d0, b.., m, k] with the first dimension behind the stack's, then the last two exchanged.
Term turned(Expansion &e, Term x, bool batch, bool matrix) {
  int64_t rank = int64_t(x.rank());
  if (rank < 2 || (!batch && !matrix)) return x;
  std::vector<int64_t> perm = counting(rank);
  if (batch) std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  if (matrix) std::swap(perm[size_t(rank - 1)], perm[size_t(rank - 2)]);
  return e.transpose(x, perm);
}
}  // namespace

void fused_matmul(Expansion &e) {
  Term a = turned(e, e.in(0), e.integer("transBatchA", 0), e.integer("transA", 0));
  Term b = turned(e, e.in(1), e.integer("transBatchB", 0), e.integer("transB", 0));
  float alpha = e.number("alpha", 1);
  Text name = e.text("activation", "");
  std::vector<float> params = activation_params(e);
  Term y = e.op("MatMul", {a, b});
  e.give(0, activated(e, alpha == 1 ? y : y * double(alpha), name, params));
}
void gemm_fast_gelu(Expansion &e) {
  Term y = e.op("MatMul", {e.in(0), e.in(1)});
  e.give(0, gelu(e, e.has(2) ? y + e.in(2) : y, "tanh"));
}

void fused_gemm(Expansion &e) {
  Text name = e.text("activation", "");
  std::vector<float> params = activation_params(e);
  Term y = e.op("Gemm", {e.in(0), e.in(1), e.maybe(2)}, passed(e, {"alpha", "beta", "transA", "transB"}));
  e.give(0, activated(e, y, name, params));
}

void fused_conv(Expansion &e) {
  Text name = e.text("activation", "");
  std::vector<float> params = e.numbers("activation_params");
  Term y = e.op("Conv", {e.in(0), e.in(1), e.maybe(2)},
                passed(e, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}));
  e.give(0, activated(e, e.has(3) ? y + e.in(3) : y, name, params));
}

Term channels_first(Expansion &e, Term x) {
  if (x.rank() < 3) invalid("expected at least 3 dimensions, found {}", x.rank());
  std::vector<int64_t> perm = counting(int64_t(x.rank()));
  std::rotate(perm.begin() + 1, perm.end() - 1, perm.end());
  return e.transpose(x, perm);
}
Term channels_last(Expansion &e, Term x) {
  if (x.rank() < 3) invalid("expected at least 3 dimensions, found {}", x.rank());
  std::vector<int64_t> perm = counting(int64_t(x.rank()));
  std::rotate(perm.begin() + 1, perm.begin() + 2, perm.end());
  return e.transpose(x, perm);
}

void nhwc_conv(Expansion &e) {
  Text name = e.text("activation", "");
  std::vector<float> params = e.numbers("activation_params");
  Term y = e.op("Conv", {channels_first(e, e.in(0)), e.in(1), e.maybe(2)},
                passed(e, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}));
  y = channels_last(e, y);
  e.give(0, activated(e, e.has(3) ? y + e.in(3) : y, name, params));
}

void nhwc_max_pool(Expansion &e) {
  Term y = e.op("MaxPool", {channels_first(e, e.in(0))},
                passed(e, {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"}));
  e.give(0, channels_last(e, y));
}

// y = a w', w[n, k] of `bits` bits, packed in blocks along k
void matmul_n_bits(Expansion &e) {
  e.integer("accuracy_level", 0);
  if (e.integer("weight_prepacked", 0)) unsupported("weights that are packed for one kind of machine");
  if (e.has(4)) unsupported("input 4 (g_idx)");
  Term scales = e.in(2), zeros = e.maybe(3);
  int64_t n = e.integer("N", 0), k = e.integer("K", 0), bits = e.integer("bits", 4), block = e.integer("block_size", 0);
  for (int64_t size : {n, k, block})
    if (size < 1 || size >= int64_t{1} << 40) invalid("attributes 'N', 'K', 'block_size': found {}", size);
  if (bits < 1 || bits > 8) invalid("attribute 'bits': found {}", bits);
  int64_t blocks = (k + block - 1) / block;
  auto rows = [&](Term t, int64_t columns) {
    return t.rank() == 2 ? t : e.op("Reshape", {t, e.axes({n, columns})});
  };
  if (zeros) zeros = rows(zeros, zeros.elem() == DType::U8 ? (blocks * bits + 7) / 8 : blocks);
  Term y = e.op("MatMulNBits", {e.in(0), e.in(1), rows(scales, blocks), zeros},
                {attribute("bits", bits), attribute("block_size", block)});
  e.give(0, e.has(5) ? y + e.in(5) : y);
}

// ---- norms

Attribute epsilon(Expansion &e, float otherwise) { return attribute("epsilon", e.number("epsilon", otherwise)); }

namespace {

void skipped(Expansion &e, bool rms) {
  Term x = e.in(0) + e.in(1);
  size_t bias = rms ? 3 : 4;
  if (e.has(bias)) x = x + e.in(bias);
  e.give(3, x);
  if (rms) {
    Attribute eps = epsilon(e, 1e-12f);
    if (e.is_read(1) || e.is_read(2)) unsupported("outputs 1 and 2: statistics");
    Term y = e.op("RMSNormalization", {x, e.in(2)}, {eps});
    for (size_t k : {1, 2}) e.give(k, y);
    return e.give(0, y);
  }
  auto y = e.ops("LayerNormalization", e.is_read(2) ? 3 : e.is_read(1) ? 2 : 1, {x, e.in(2), e.maybe(3)},
                 {epsilon(e, 1e-12f)});
  for (size_t k : {2, 1, 0}) e.give(k, y[k < y.size() ? k : 0]);
}

}  // namespace

void skip_layer_norm(Expansion &e) { skipped(e, false); }
void skip_simplified_layer_norm(Expansion &e) { skipped(e, true); }

// Of opsets before ONNX had it.
void early_layer_norm(Expansion &e) {
  auto y = e.ops("LayerNormalization", e.is_read(2) ? 3 : e.is_read(1) ? 2 : 1, {e.in(0), e.in(1), e.maybe(2)},
                 passed(e, {"axis", "epsilon", "stash_type"}));
  for (size_t k : {2, 1, 0}) e.give(k, y[k < y.size() ? k : 0]);
}

// x / sqrt(mean of squares + epsilon) * scale, and the inverse of the root
void simplified_layer_norm(Expansion &e) {
  Term x = e.in(0);
  Attribute eps = epsilon(e, 1e-5f);
  int64_t axis = e.integer("axis", -1);
  if (e.integer("stash_type", 1) != 1) unsupported("attribute 'stash_type'");
  if (e.wants(1)) {
    if (axis != -1 && axis != int64_t(x.rank()) - 1) unsupported("output 1 over several dimensions");
    Term wide = e.cast(x, DType::F32);
    Term mean = e.op("ReduceMean", {wide * wide, e.axes({-1})});
    e.give(1, e.op("Reciprocal", {e.op("Sqrt", {mean + double(eps.f)})}));
  }
  e.give(0, e.op("RMSNormalization", {x, e.in(1)}, {attribute("axis", axis), eps}));
}

namespace {
Term group_normalized(Expansion &e, Term x) {
  int64_t groups = e.integer("groups", 0), activation = e.integer("activation", 0);
  bool last = e.integer("channels_last", 1);
  if (activation != 0 && activation != 1) invalid("attribute 'activation': expected 0 or 1, found {}", activation);
  Term y = last ? channels_first(e, x) : x;
  Term gamma = e.cast(e.in(1), x.elem()), beta = e.cast(e.in(2), x.elem());
  y = e.op("GroupNormalization", {y, gamma, beta}, {attribute("num_groups", groups), epsilon(e, 1e-5f)});
  if (last) y = channels_last(e, y);
  return activation ? e.op("Swish", {y}) : y;
}
}  // namespace

void contrib_group_norm(Expansion &e) { e.give(0, group_normalized(e, e.in(0))); }
void skip_group_norm(Expansion &e) {
  Term x = e.in(0), skip = e.in(3);
  const Attribute *last = e.use.attribute("channels_last");
  if (skip.rank() == 2) {
    bool first = last && last->i == 0;
    skip = e.op("Unsqueeze", {skip, first ? e.axes({2, 3}) : e.axes({1, 2})});
  }
  x = x + skip;
  if (e.has(4)) x = x + (last && last->i == 0 ? e.op("Unsqueeze", {e.in(4), e.axes({1, 2})}) : e.in(4));
  e.give(1, x);
  e.give(0, group_normalized(e, x));
}

// ---- ONNX's own operators under this domain

namespace {
void renamed(Expansion &e, std::string op) {
  std::vector<Term> inputs;
  for (size_t i = 0; i < e.inputs(); ++i) inputs.push_back(e.maybe(i));
  std::vector<Attribute> attributes = std::move(e.use.attributes);
  e.use.attributes.clear();
  e.give(0, e.op(std::move(op), inputs, attributes));
}
}  // namespace

void same_pad(Expansion &e) {
  if (e.in(1).rank() == 2) e.use.inputs[1] = e.op("Reshape", {e.in(1), e.axes({-1})}).v;
  if (e.has(2) && e.in(2).rank() == 1) e.use.inputs[2] = e.op("Reshape", {e.in(2), e.axes({})}).v;
  renamed(e, "Pad");
}
void torch_embedding(Expansion &e) { e.give(0, e.op("Gather", {e.in(0), e.in(1)})); }
void same_gather_nd(Expansion &e) { renamed(e, "GatherND"); }
void same_trilu(Expansion &e) { renamed(e, "Trilu"); }
void expand_dims(Expansion &e) { e.give(0, e.op("Unsqueeze", {e.in(0), e.cast(e.in(1), DType::I64)})); }

}  // namespace mlc::onnx
