// Gradient (ai.onnx.preview.training): reverse mode over the nodes between xs and y. Each node, the last first, turns
// the gradient of its output into those of its inputs; the values of the forward pass are there already.
//   c = Add(a, b);  d = Mul(c, a);  Gradient {xs = [a, b], y = d}
//   d_d = 1;  d_c = d_d * a;  d_a = d_d * c + d_c;  d_b = d_c
#include <map>

#include "onnx/extras.h"

namespace mlc::onnx {

namespace {

// One node on the way back.
struct Back {
  Expansion &e;
  const Node &node;
  std::vector<Term> in;
  Term y, dy;                              // the output and its gradient
  std::map<Text, Term> &gradients;
  const std::unordered_set<Text> &active;  // what depends on xs

  const Attribute *attr(Text name) const {
    for (const Attribute &a : node.attributes)
      if (a.name == name) return &a;
    return nullptr;
  }
  int64_t integer(Text name, int64_t otherwise) const { return attr(name) ? attr(name)->i : otherwise; }
  bool wants(size_t i) const { return i < node.inputs.size() && active.count(node.inputs[i]); }
  // d: of the shape that broadcasting made of input i
  void give(size_t i, Term d) {
    if (!wants(i)) return;
    d = narrowed(d, in.at(i));
    Term &sum = gradients[node.inputs[i]];
    sum = sum ? sum + d : d;
  }
  Term narrowed(Term d, Term x) {  // sums over what was repeated
    std::vector<int64_t> axes;
    int64_t extra = int64_t(d.rank()) - int64_t(x.rank()), n;
    auto repeated = [&](X of, X to) { return is_const(of, &n) && n == 1 && !provably_equal(of, to); };
    for (int64_t k = 0; k < int64_t(d.rank()); ++k)
      if (k < extra || repeated(x.dim(size_t(k - extra)), d.dim(size_t(k)))) axes.push_back(k);
    if (axes.empty()) return d;
    return e.reshape(e.op("ReduceSum", {d, e.axes(axes)}), x.dims());
  }
  Term turned(Term x) {  // the last two dimensions exchanged
    std::vector<int64_t> perm;
    for (int64_t k = 0; k < int64_t(x.rank()); ++k) perm.push_back(k);
    if (perm.size() < 2) unsupported("the gradient of a product with a vector");
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    return e.transpose(x, perm);
  }
  Term wide(Term d, Term x) { return e.op("Expand", {d, e.list(x.dims())}); }
};

void add(Back &b) { b.give(0, b.dy), b.give(1, b.dy); }
void sub(Back &b) { b.give(0, b.dy), b.wants(1) ? b.give(1, b.e.op("Neg", {b.dy})) : void(); }
void mul(Back &b) {
  if (b.wants(0)) b.give(0, b.dy * b.in[1]);
  if (b.wants(1)) b.give(1, b.dy * b.in[0]);
}
void div(Back &b) {
  if (b.wants(0)) b.give(0, b.dy / b.in[1]);
  if (b.wants(1)) b.give(1, b.e.op("Neg", {b.dy * b.y / b.in[1]}));
}
void sum(Back &b) {
  for (size_t i = 0; i < b.in.size(); ++i) b.give(i, b.dy);
}
void neg(Back &b) { b.give(0, b.e.op("Neg", {b.dy})); }
void identity(Back &b) { b.give(0, b.dy); }
void exp(Back &b) { b.give(0, b.dy * b.y); }
void log(Back &b) { b.give(0, b.dy / b.in[0]); }
void sqrt(Back &b) { b.give(0, b.dy / (b.y * 2.0)); }
void tanh(Back &b) { b.give(0, b.dy * (1.0 - b.y * b.y)); }
void sigmoid(Back &b) { b.give(0, b.dy * (b.y * (1.0 - b.y))); }
void relu(Back &b) {
  Term none = b.e.num(0, b.y.elem());
  b.give(0, b.e.where(b.e.op("Greater", {b.in[0], none}), b.dy, none));
}
void reshaped(Back &b) { b.give(0, b.e.reshape(b.dy, b.in[0].dims())); }
void transposed(Back &b) {
  const Attribute *perm = b.attr("perm");
  std::vector<int64_t> back(b.in[0].rank());
  for (size_t k = 0; k < back.size(); ++k)
    back[perm ? size_t(perm->ints.at(k)) : back.size() - 1 - k] = int64_t(k);
  b.give(0, b.e.transpose(b.dy, back));
}
void matmul(Back &b) {
  if (b.wants(0)) b.give(0, b.e.op("MatMul", {b.dy, b.turned(b.in[1])}));
  if (b.wants(1)) b.give(1, b.e.op("MatMul", {b.turned(b.in[0]), b.dy}));
}
void gemm(Back &b) {  // y = alpha * a' b' + beta * c
  bool ta = b.integer("transA", 0), tb = b.integer("transB", 0);
  auto scaled = [&](Term x, Text name) { return b.attr(name) ? x * double(b.attr(name)->f) : x; };
  auto product = [&](Term x, Term y, bool tx, bool ty) {
    return b.e.op("Gemm", {x, y}, {attribute("transA", int64_t{tx}), attribute("transB", int64_t{ty})});
  };
  Term d = scaled(b.dy, "alpha");
  if (b.wants(0)) b.give(0, ta ? product(b.in[1], d, tb, true) : product(d, b.in[1], false, !tb));
  if (b.wants(1)) b.give(1, tb ? product(d, b.in[0], true, ta) : product(b.in[0], d, !ta, false));
  if (b.wants(2)) b.give(2, scaled(b.dy, "beta"));
}
void reduced(Back &b) {
  if (!b.integer("keepdims", 1) && b.y.rank() != 0) unsupported("the gradient of a reduction without 'keepdims'");
  Term d = b.wide(b.dy, b.in[0]);
  if (b.node.op == "ReduceMean") {
    X n = floordiv(product(b.e.b, b.in[0].dims()), product(b.e.b, b.y.dims()));
    d = d / b.e.cast(b.e.index(n), d.elem());
  }
  b.give(0, d);
}

struct Rule {
  Text op;
  void (*back)(Back &);
};
constexpr Rule kRules[] = {
    {"Add", add},          {"Sub", sub},          {"Mul", mul},           {"Div", div},          {"Sum", sum},
    {"Neg", neg},          {"Identity", identity}, {"Exp", exp},          {"Log", log},          {"Sqrt", sqrt},
    {"Tanh", tanh},        {"Sigmoid", sigmoid},  {"Relu", relu},         {"Reshape", reshaped}, {"Flatten", reshaped},
    {"Squeeze", reshaped}, {"Unsqueeze", reshaped}, {"Transpose", transposed}, {"MatMul", matmul}, {"Gemm", gemm},
    {"ReduceSum", reduced}, {"ReduceMean", reduced},
};

Term filled(Expansion &e, double v, Term like) {
  Term one = e.num(v, like.elem());
  return e.op("Expand", {one, e.list(like.dims())});
}

}  // namespace

void gradient(Expansion &e) {
  std::vector<Text> xs = e.texts("xs"), all = e.texts("zs");
  Text y = e.text("y", "");
  all.insert(all.begin(), xs.begin(), xs.end());
  if (e.node.inputs.size() != all.size()) invalid("expected {} inputs, found {}", all.size(), e.node.inputs.size());
  for (size_t i = 0; i < all.size(); ++i)
    if (e.node.inputs[i] != all[i]) unsupported("a gradient at other values than those of \"{}\"", one_line(all[i]));
  if (!e.scope.nodes || e.scope.opset() < 7) unsupported("a gradient of operators of opset {}", e.scope.opset());
  const std::vector<Node> &nodes = *e.scope.nodes;

  std::unordered_set<Text> given(all.begin(), all.end()), active(xs.begin(), xs.end());
  std::vector<const Node *> way;  // what lies between xs and y, in order
  for (size_t i : order(nodes, {y})) {
    const Node &n = nodes[i];
    bool depends = false, ends = false;
    for (Text name : n.inputs) depends = depends || active.count(name);
    for (Text name : n.outputs) ends = ends || given.count(name);
    if (!depends || ends) continue;
    active.insert(n.outputs.begin(), n.outputs.end());
    way.push_back(&n);
  }

  auto value = [&](Text name) { return name.empty() ? e.none() : Term{&e, e.im.lookup(e.scope, name)}; };
  std::map<Text, Term> gradients;
  Term result = value(y);
  if (!result.type()) return void(e.results.assign(e.results.size(), e.im.keep({e.use.base})));
  gradients[y] = filled(e, 1, result);
  for (size_t k = way.size(); k-- > 0;) {
    const Node &n = *way[k];
    if (n.outputs.empty() || !gradients.count(n.outputs[0])) continue;
    auto rule = std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule &r) { return r.op == n.op; });
    if (rule == std::end(kRules) || !is_default_domain(n.domain))
      unsupported("the gradient of {}", node_title(n, e.scope.prefix, 0));
    Back b{e, n, {}, value(n.outputs[0]), gradients[n.outputs[0]], gradients, active};
    for (Text name : n.inputs) b.in.push_back(value(name));
    rule->back(b);
  }
  for (size_t k = 0; k < e.results.size(); ++k) {
    if (k >= xs.size()) invalid("expected {} outputs", xs.size());
    auto it = gradients.find(xs[k]);
    e.give(k, it != gradients.end() ? it->second : filled(e, 0, value(xs[k])));
  }
}

}  // namespace mlc::onnx
