// Bodies, and If as a statement of the language:
//   y: f32[n] = if c { .. yield a } else { .. yield b }
// A dimension that differs from branch to branch becomes an index value of its own:
//   m: index, y: f32[m] = if c { yield n, x } else { yield 2 * n, d }
#include <algorithm>

#include "ir/walk.h"
#include "onnx/importer.h"

namespace mlc::onnx {

const Graph &body_of(const Node &n, Text name) {
  for (const Attribute &a : n.attributes)
    if (a.name == name && a.graphs.size() == 1) return a.graphs[0];
  invalid("attribute '{}': expected a graph", name);
}

Scope Importer::inside(const Scope &scope) const {
  Scope inner;
  inner.outer = &scope, inner.opsets = scope.opsets, inner.arguments = scope.arguments, inner.prefix = scope.prefix;
  return inner;
}

// A dimension of its own, of a value whose size is not the same everywhere.
Sym Importer::new_size() {
  Sym size = fresh_.make("m");
  bounds_.dim(size);
  return size;
}

// The names that a body's statements define.
std::unordered_set<Sym> defined_in(const Body &body) {
  std::unordered_set<Sym> names;
  for (auto &entry : body.entries)
    for (const Def &d : definitions(entry.stmt)) names.insert(d.name);
  return names;
}

bool mentions_any(const Expr *e, const std::unordered_set<Sym> &names) {
  std::unordered_set<Sym> mentioned;
  collect_names(e, mentioned);
  return std::any_of(mentioned.begin(), mentioned.end(), [&](Sym s) { return names.count(s); });
}

// What a bool[] is called where a condition stands.
const Expr *Importer::condition(Value *v) {
  if (v->group) invalid("the condition is no tensor");
  if (v->type->elem != DType::Bool) invalid("the condition is {}, not bool", dtype_name(v->type->elem));
  if (v->type->rank() != 0) v = emit(v->name, "Reshape", {v, list(std::vector<int64_t>{})});
  return v->expr;
}

// A value as something that can be yielded or carried.
Value *Importer::named(Value *v) {
  if (!v->group) return v->literal ? emit(v->name.empty() ? "v" : v->name, "Identity", {v}) : v;
  std::vector<Value *> items;
  for (Value *item : v->group->items) items.push_back(named(item));
  return items == v->group->items ? v : group(v->name, items, v->group->optional);
}

// The values of a body's outputs; its statements go to `into`. Null if a node of it failed.
Importer::Values Importer::run_body(const Graph &g, Scope &inner, Body *into) {
  size_t errors = errors_.size(), items = itemized_.size();
  std::vector<Text> wanted;
  for (const ValueInfo &v : g.outputs) wanted.push_back(v.name);
  std::vector<Value *> values;
  {
    InBody body(*this, into);
    enter(g, inner);
    nodes(g.nodes, wanted, inner);
    if (errors_.size() == errors)
      for (Text name : wanted) values.push_back(named(lookup(inner, name)));
  }
  while (into && itemized_.size() > items) itemized_.back()->known.reset(), itemized_.pop_back();  // not seen outside
  if (errors_.size() != errors || std::any_of(values.begin(), values.end(), [](Value *v) { return v->failed(); }))
    return std::nullopt;
  return values;
}

Value *Importer::inlined(const Node &n, Text attribute, const Scope &scope, const std::vector<Value *> &inputs) {
  const Graph &g = body_of(n, attribute);
  if (g.inputs.size() != inputs.size() || g.outputs.size() != 1)
    invalid("attribute '{}': expected a graph of {} inputs and one output", attribute, inputs.size());
  Scope inner = inside(scope);
  for (size_t i = 0; i < inputs.size(); ++i) inner.values.emplace(g.inputs[i].name, inputs[i]);
  auto values = run_body(g, inner, nullptr);
  return values ? (*values)[0] : nullptr;
}

void Importer::forget(Scope &scope, const std::vector<Text> &outputs) {
  for (Text name : outputs)
    if (!name.empty()) scope.values.emplace(name, keep({name}));
}

void Importer::if_node(const Node &n, Scope &scope, const Use &use) {
  if (use.inputs.size() != 1 || !use.inputs[0]) invalid("expected a condition");
  const Graph *graphs[] = {&body_of(n, "then_branch"), &body_of(n, "else_branch")};
  for (const Graph *g : graphs)
    if (g->outputs.size() < use.outputs)
      invalid("a branch has {} outputs, expected {}", g->outputs.size(), use.outputs);
  if (use.inputs[0]->failed()) return forget(scope, n.outputs);

  bool yes = is_known(use.inputs[0], true);
  if (yes || is_known(use.inputs[0], false)) {
    const Graph &g = *graphs[yes ? 0 : 1];
    Scope inner = inside(scope);
    for (size_t i = 0; i < use.outputs; ++i)
      if (!n.outputs[i].empty()) inner.names.emplace(g.outputs[i].name, name_for(scope, n.outputs[i]));
    auto values = run_body(g, inner, nullptr);
    if (!values) return forget(scope, n.outputs);
    for (size_t i = 0; i < use.outputs; ++i) bind(scope, n.outputs[i], (*values)[i]);
    return;
  }

  const Expr *cond = condition(use.inputs[0]);
  Body bodies[2];
  std::vector<Value *> values[2];
  bool failed = false;
  for (int k = 0; k < 2; ++k) {
    Scope inner = inside(scope);
    size_t mark = bounds_.mark();
    auto v = run_body(*graphs[k], inner, &bodies[k]);
    bounds_.pop(mark);
    if (v) values[k] = *v;
    else failed = true;
  }
  if (failed) return forget(scope, n.outputs);

  std::unordered_set<Sym> own = defined_in(bodies[0]);
  own.merge(defined_in(bodies[1]));
  std::vector<Def> defs;
  std::vector<const Expr *> yields[2];
  // One result for what both branches give.
  auto join = [&](Value *x, Value *y, size_t output, Sym name) {
    const IrType *a = x->type, *c = y->type;
    if (a->elem != c->elem)
      invalid("output {}: the branches give {} and {}", output, dtype_name(a->elem), dtype_name(c->elem));
    if (a->rank() != c->rank())
      unsupported("output {}: the branches give ranks {} and {}; --bind may decide the condition", output, a->rank(),
                  c->rank());
    std::vector<const Expr *> dims;
    for (size_t d = 0; d < a->rank(); ++d) {
      if (equal(a->dims[d], c->dims[d]) && !mentions_any(a->dims[d], own)) {
        dims.push_back(a->dims[d]);
        continue;
      }
      Sym size = new_size();
      defs.push_back({size, kNowhere, b.index()});
      yields[0].push_back(a->dims[d]), yields[1].push_back(c->dims[d]);
      dims.push_back(b.name(size));
    }
    if (!name) name = fresh_.make("unused");
    defs.push_back({name, kNowhere, b.tensor(a->elem, b.list(dims))});
    yields[0].push_back(x->expr), yields[1].push_back(y->expr);
    return keep({b.text(name), b.name(name), defs.back().type});
  };
  std::vector<Value *> results;
  for (size_t i = 0; i < use.outputs; ++i) {
    Value *x = values[0][i], *y = values[1][i];
    if (!alike(x, y))
      unsupported("output {}: the branches give {} and {}; --bind may decide the condition", i, shown(x), shown(y));
    std::vector<Value *> xs = flatten({x}), ys = flatten({y}), joined;
    for (size_t k = 0; k < xs.size(); ++k)
      joined.push_back(join(xs[k], ys[k], i, x->group ? element_name(n.outputs[i], int64_t(k))
                                                      : name_for(scope, n.outputs[i])));
    results.push_back(regroup({x}, joined)[0]);
  }
  Yield branches[2];
  for (int k = 0; k < 2; ++k) {
    std::unordered_set<Sym> live;
    for (const Expr *e : yields[k]) collect_names(e, live);
    branches[k] = {pruned(bodies[k], live), b.list(yields[k]), {}};
  }
  add(b.make(IfValue{{}, b.list(defs), cond, branches[0], branches[1], from_}));
  for (size_t i = 0; i < use.outputs; ++i) bind(scope, n.outputs[i], results[i]);
}

}  // namespace mlc::onnx
