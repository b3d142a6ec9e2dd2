// Scan: a loop through the elements of its inputs along an axis.
//   Scan(s, x) {num_scan_inputs = 1}     loop i in n carry a: T = s { row = Gather(x, i); .. }
#include "onnx/importer.h"

namespace mlc::onnx {

// Carries the first inputs through the elements of the others along their axes.
Importer::Values Importer::scan(const ScanParts &s, const std::vector<Value *> &inputs, const Scope &scope,
                                std::vector<Sym> names) {
  const Graph &g = s.body;
  size_t carried = inputs.size() - s.scanned;
  LoopParts p;
  std::vector<int64_t> axes = s.axes;
  for (size_t k = 0; k < s.scanned; ++k) {
    Value *v = inputs[carried + k];
    axes[k] = axis_in(axes[k], int64_t(v->type->rank()));
    if (!p.trip) p.trip = v->type->dims[size_t(axes[k])];
  }
  for (size_t i = 0; i < carried; ++i) p.carried.push_back(named(inputs[i])), p.names.push_back(g.inputs[i].name);
  // Outputs that are turned round or have their turns elsewhere than in front get a name of their own first.
  auto turned = [&](size_t i) {
    return i >= carried && (s.out_axes[i - carried] != 0 || s.out_backward[i - carried] != 0);
  };
  names.resize(g.outputs.size());
  for (size_t i = 0; i < g.outputs.size(); ++i) {
    p.results.push_back(turned(i) ? Sym{} : names[i]);
    p.declared.push_back(&g.outputs[i].type);
  }
  p.turn = [&](X turn, const std::vector<Value *> &values, Body *into) {
    Scope inner = inside(scope);
    InBody body(*this, into);
    for (size_t k = 0; k < s.scanned; ++k) {
      X i = s.backward[k] ? X(b, p.trip) - 1 - turn : turn;
      Text name = g.inputs[carried + k].name;
      inner.values[name] = emit(name, "Gather", {inputs[carried + k], index(i)}, {attribute("axis", axes[k])});
    }
    for (size_t k = 0; k < carried; ++k)
      if (!inner.values.emplace(g.inputs[k].name, values[k]).second)
        invalid("input \"{}\" of the body is defined twice", one_line(g.inputs[k].name));
    return run_body(g, inner, into);
  };
  Values results = turns(p);
  for (size_t i = 0; results && i < results->size(); ++i) {
    Value *&v = (*results)[i];
    if (!turned(i)) continue;
    int64_t rank = int64_t(v->type->rank()), axis = axis_in(s.out_axes[i - carried], rank);
    Use last;
    last.base = g.outputs[i].name, last.from = from_;
    if (s.out_backward[i - carried]) {
      last.op = "Slice";
      last.inputs = {v};
      for (int64_t x : {int64_t{-1}, INT64_MIN, int64_t{0}, int64_t{-1}})
        last.inputs.push_back(list(std::vector<int64_t>{x}));
      if (axis != 0) v = emit(last.base, "Slice", last.inputs);
    }
    if (axis != 0) {
      std::vector<int64_t> perm;
      for (int64_t d = 1; d < rank; ++d) perm.push_back(d);
      perm.insert(perm.begin() + axis, 0);
      last.op = "Transpose", last.inputs = {v}, last.attributes = {attribute("perm", perm)};
    }
    v = write(last, {names[i]})[0];
  }
  return results;
}

// Opset 8: a scan for each element of a batch, the first dimension of everything.
Importer::Values Importer::scan_batches(const ScanParts &s, const std::vector<Value *> &inputs, const Scope &scope,
                                        std::vector<Sym> names) {
  LoopParts p;
  for (Value *v : inputs) {
    if (v->type->rank() == 0) invalid("a scalar has no batch");
    if (!p.trip) p.trip = v->type->dims[0];
  }
  p.results = std::move(names);
  for (const ValueInfo &v : s.body.outputs) p.declared.push_back(&v.type);
  p.turn = [&](X turn, const std::vector<Value *> &, Body *into) {
    InBody body(*this, into);
    std::vector<Value *> one;
    for (Value *v : inputs) one.push_back(emit(v->name, "Gather", {v, index(turn)}));
    return scan(s, one, scope, {});
  };
  return turns(p);
}

void Importer::scan_node(const Node &n, Scope &scope, const Use &use) {
  const Graph &g = body_of(n, "body");
  bool batches = use.opset < 9;
  std::vector<Value *> inputs = use.inputs;
  if (batches && !inputs.empty()) {
    if (inputs[0]) unsupported("lengths of sequences, as before opset 9");
    inputs.erase(inputs.begin());
  }
  const Attribute *count = use.attribute("num_scan_inputs");
  if (!count || count->kind != AttrKind::Int || count->i < 1 || count->i > int64_t(inputs.size()))
    invalid("attribute 'num_scan_inputs' does not fit {} inputs", inputs.size());
  size_t scanned = size_t(count->i), carried = inputs.size() - scanned;
  if (g.inputs.size() != inputs.size())
    invalid("the body has {} inputs, expected {}", g.inputs.size(), inputs.size());
  if (use.outputs > g.outputs.size() || g.outputs.size() < carried)
    invalid("the body has {} outputs", g.outputs.size());
  auto list_of = [&](Text name, size_t size) {
    const Attribute *a = use.attribute(name);
    std::vector<int64_t> v = a ? a->ints : std::vector<int64_t>{};
    if (!v.empty() && v.size() != size) invalid("attribute '{}' has {} elements, expected {}", name, v.size(), size);
    v.resize(size);
    return v;
  };
  size_t stacked = g.outputs.size() - carried;
  ScanParts s{g, scanned, list_of("scan_input_axes", scanned),
              list_of(batches ? "directions" : "scan_input_directions", scanned),
              list_of("scan_output_axes", stacked), list_of("scan_output_directions", stacked)};
  for (Value *v : inputs) {
    if (!v) invalid("an input is left out");
    if (v->failed()) return forget(scope, n.outputs);
    if (v->group) invalid("an input is {}", shown(v));
  }
  std::vector<Sym> names;
  for (Text name : n.outputs) names.push_back(name_for(scope, name));
  Values results = batches ? scan_batches(s, inputs, scope, names) : scan(s, inputs, scope, names);
  if (!results) return forget(scope, n.outputs);
  for (size_t i = 0; i < use.outputs; ++i) bind(scope, n.outputs[i], (*results)[i]);
}

}  // namespace mlc::onnx
