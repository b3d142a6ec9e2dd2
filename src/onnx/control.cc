// If, Loop and Scan as the statements of the language:
//   y: f32[n] = if c { .. yield a } else { .. yield b }
//   t: index, go: bool[], last: f32[d], trace: f32[t, d] = loop i in trip carry c: bool[] = cond, s: f32[d] = x while c { .. }
// What is the same before, in and after a turn stays; a dimension that is not becomes an index value of its own, carried or
// yielded on the left of what has it.
#include <algorithm>
#include <cmath>

#include "ir/walk.h"
#include "onnx/importer.h"

namespace mlc::onnx {

namespace {

const Graph &body_of(const Node &n, Text name) {
  for (const Attribute &a : n.attributes)
    if (a.name == name && a.graphs.size() == 1) return a.graphs[0];
  invalid("attribute '{}': expected a graph", name);
}

}  // namespace

// What a bool[] is called where a condition stands.
const Expr *Importer::condition(Value *v) {
  if (v->type->elem != DType::Bool) invalid("the condition is {}, not bool", dtype_name(v->type->elem));
  if (v->type->rank() != 0) v = emit(v->name, "Reshape", {v, list(std::vector<int64_t>{})});
  return v->expr;
}

// A value as something that can be yielded or carried.
Value *Importer::named(Value *v) { return v->literal ? emit(v->name.empty() ? "v" : v->name, "Identity", {v}) : v; }

// The values of a body's outputs; its statements go to `into`. Null if a node of it failed.
std::optional<std::vector<Value *>> Importer::run_body(const Graph &g, Scope &inner, Body *into) {
  Body *around = body_;
  size_t errors = errors_.size(), items = itemized_.size();
  if (into) body_ = into;
  std::vector<Text> wanted;
  for (const ValueInfo &v : g.outputs) wanted.push_back(v.name);
  std::vector<Value *> values;
  try {
    enter(g, inner);
    nodes(g.nodes, wanted, inner);
    if (errors_.size() == errors)
      for (Text name : wanted) values.push_back(named(lookup(inner, name)));
  } catch (...) {
    body_ = around;
    throw;
  }
  body_ = around;
  while (into && itemized_.size() > items) itemized_.back()->known.reset(), itemized_.pop_back();  // not seen outside
  if (errors_.size() != errors || std::any_of(values.begin(), values.end(), [](Value *v) { return !v->type; })) return std::nullopt;
  return values;
}

void Importer::forget(Scope &scope, const std::vector<Text> &outputs) {
  for (Text name : outputs)
    if (!name.empty()) scope.values.emplace(name, keep({name}));
}

void Importer::if_node(const Node &n, Scope &scope, const Use &use) {
  if (use.inputs.size() != 1 || !use.inputs[0]) invalid("expected a condition");
  const Graph *graphs[] = {&body_of(n, "then_branch"), &body_of(n, "else_branch")};
  for (const Graph *g : graphs)
    if (g->outputs.size() < use.outputs) invalid("a branch has {} outputs, expected {}", g->outputs.size(), use.outputs);
  if (!use.inputs[0]->type) return forget(scope, n.outputs);

  const Elements &known_condition = known(use.inputs[0]);
  auto *chosen = known_condition && known_condition->size() == 1 ? as<Bool>((*known_condition)[0].e) : nullptr;
  if (chosen) {
    const Graph &g = *graphs[chosen->value ? 0 : 1];
    Scope inner{&scope, scope.opsets, {}, {}, {}, scope.arguments, {}, scope.prefix, {}};
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
    Scope inner{&scope, scope.opsets, {}, {}, {}, scope.arguments, {}, scope.prefix, {}};
    size_t mark = bounds_.mark();
    auto v = run_body(*graphs[k], inner, &bodies[k]);
    bounds_.pop(mark);
    if (v) values[k] = *v;
    else failed = true;
  }
  if (failed) return forget(scope, n.outputs);

  // m: index, y: f32[m] = if c { yield n, x } else { yield 2 * n, d }
  std::unordered_set<Sym> inside;
  for (const Body &body : bodies)
    for (auto &entry : body.entries)
      for (const Def &d : definitions(entry.stmt)) inside.insert(d.name);
  std::vector<Def> defs;
  std::vector<const Expr *> yields[2];
  std::vector<Value *> results;
  for (size_t i = 0; i < use.outputs; ++i) {
    const IrType *a = values[0][i]->type, *c = values[1][i]->type;
    if (a->elem != c->elem) invalid("output {}: the branches give {} and {}", i, dtype_name(a->elem), dtype_name(c->elem));
    if (a->rank() != c->rank()) unsupported("output {}: the branches give ranks {} and {}", i, a->rank(), c->rank());
    std::vector<const Expr *> dims;
    for (size_t d = 0; d < a->rank(); ++d) {
      std::unordered_set<Sym> mentioned;
      collect_names(a->dims[d], mentioned);
      bool seen = std::none_of(mentioned.begin(), mentioned.end(), [&](Sym s) { return inside.count(s); });
      if (seen && equal(a->dims[d], c->dims[d])) {
        dims.push_back(a->dims[d]);
        continue;
      }
      Sym size = fresh_.make("m");
      bounds_.dim(size);
      defs.push_back({size, kNowhere, b.index()});
      yields[0].push_back(a->dims[d]), yields[1].push_back(c->dims[d]);
      dims.push_back(b.name(size));
    }
    Sym name = name_for(scope, n.outputs[i]);
    if (!name) name = fresh_.make("unused");
    defs.push_back({name, kNowhere, b.tensor(a->elem, b.list(dims))});
    yields[0].push_back(values[0][i]->expr), yields[1].push_back(values[1][i]->expr);
    results.push_back(keep({n.outputs[i], b.name(name), defs.back().type}));
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

// One loop of the language. `bind_turn` gives the body's inputs that are not carried, by the loop variable.
std::vector<Value *> Importer::write_loop(const LoopParts &p, Scope &scope) {
  size_t carried = p.carried.size();
  if (p.body.outputs.size() < carried + p.conditions) invalid("the body has too few outputs");
  size_t stacked = p.body.outputs.size() - carried - p.conditions;
  // Dimensions of carried values that a turn changes: found by trying.
  std::vector<std::vector<bool>> varies;
  for (Value *v : p.carried) varies.emplace_back(v->type->rank());
  for (;;) {
    size_t mark = bounds_.mark();
    Sym turn = fresh_.make("i");
    if (p.trip) bounds_.range(turn, p.trip);
    else bounds_.index(turn);
    Scope inner{&scope, scope.opsets, {}, {}, {}, scope.arguments, {}, scope.prefix, {}};
    Body body;
    p.bind_turn(inner, turn, &body);
    std::vector<Carry> carry;
    std::vector<Sym> names;
    for (size_t k = 0; k < carried; ++k) {
      Value *v = p.carried[k];
      std::vector<const Expr *> dims(v->type->dims.begin(), v->type->dims.end());
      for (size_t d = 0; d < dims.size(); ++d) {
        if (!varies[k][d]) continue;
        Sym size = fresh_.make("m");
        bounds_.dim(size);
        carry.push_back({{size, kNowhere, b.index()}, dims[d]});
        dims[d] = b.name(size);
      }
      Text name = p.body.inputs[p.first_carried + k].name;
      names.push_back(fresh_.make(name));
      const IrType *type = b.tensor(v->type->elem, b.list(dims));
      carry.push_back({{names[k], kNowhere, type}, v->expr});
      if (!inner.values.emplace(name, keep({name, b.name(names[k]), type})).second) invalid("input \"{}\" of the body is defined twice", name);
    }
    auto values = run_body(p.body, inner, &body);
    if (!values) {
      bounds_.pop(mark);
      return {};
    }
    std::unordered_set<Sym> inside{turn};
    for (const Carry &c : carry) inside.insert(c.def.name);
    for (auto &entry : body.entries)
      for (const Def &d : definitions(entry.stmt)) inside.insert(d.name);
    auto is_inside = [&](const Expr *e) {
      std::unordered_set<Sym> mentioned;
      collect_names(e, mentioned);
      return std::any_of(mentioned.begin(), mentioned.end(), [&](Sym s) { return inside.count(s); });
    };

    bool again = false;
    for (size_t k = 0; k < carried; ++k) {
      const IrType *before = p.carried[k]->type, *after = (*values)[p.conditions + k]->type;
      if (before->elem != after->elem) invalid("carried value {} is {} before a turn and {} after it", k, dtype_name(before->elem), dtype_name(after->elem));
      if (before->rank() != after->rank()) unsupported("carried value {} has rank {} before a turn and {} after it", k, before->rank(), after->rank());
      for (size_t d = 0; d < before->rank(); ++d)
        if (!varies[k][d] && !equal(before->dims[d], after->dims[d])) varies[k][d] = again = true;
    }
    if (again) {
      bounds_.pop(mark);
      continue;
    }

    // The condition: none if it stays true.
    Value *go = p.conditions ? (*values)[0] : nullptr;
    const Elements *decided = go ? &known(go) : nullptr;
    auto *constant_go = decided && *decided && (*decided)->size() == 1 ? as<Bool>((**decided)[0].e) : nullptr;
    bool until = p.condition || (go && !(constant_go && constant_go->value));
    if (!until && !p.trip) invalid("a loop without an end");
    Loop loop{};
    std::vector<Def> defs;
    std::vector<const Expr *> yields, stacks;
    Sym turns;
    if (until) {
      Value *first = p.condition;
      if (!first) first = constant("true", "", b.tensor(DType::Bool, {}), {b.boolean(true)});
      loop.until = fresh_.make("go");
      const IrType *flag = b.tensor(DType::Bool, {});
      carry.insert(carry.begin(), Carry{{loop.until, kNowhere, flag}, condition(first)});
      Body *around = std::exchange(body_, &body);
      yields.push_back(condition(go));
      body_ = around;
      turns = fresh_.make("t");
      defs.push_back({turns, kNowhere, b.index()});
      defs.push_back({fresh_.make("go"), kNowhere, flag});
    }
    bounds_.pop(mark);
    if (turns) bounds_.dim(turns);
    std::vector<Value *> results;
    for (size_t k = 0; k < carried; ++k) {
      Value *v = (*values)[p.conditions + k];
      std::vector<const Expr *> dims(v->type->dims.begin(), v->type->dims.end());
      for (size_t d = 0; d < dims.size(); ++d) {
        if (!varies[k][d]) continue;
        Sym size = fresh_.make("m");
        bounds_.dim(size);
        defs.push_back({size, kNowhere, b.index()});
        yields.push_back(dims[d]);
        dims[d] = b.name(size);
      }
      Sym name = k < p.names.size() && p.names[k] ? p.names[k] : fresh_.make("unused");
      defs.push_back({name, kNowhere, b.tensor(v->type->elem, b.list(dims))});
      yields.push_back(v->expr);
      results.push_back(keep({p.body.outputs[p.conditions + k].name, b.name(name), defs.back().type}));
    }
    const Expr *count = turns ? b.name(turns) : p.trip;
    for (size_t k = 0; k < stacked; ++k) {
      Value *v = (*values)[p.conditions + carried + k];
      std::vector<const Expr *> dims{count};
      for (const Expr *d : v->type->dims) {
        if (is_inside(d)) unsupported("a stacked output whose shape differs from turn to turn");
        dims.push_back(d);
      }
      size_t at = carried + k;
      Sym name = at < p.names.size() && p.names[at] ? p.names[at] : fresh_.make("unused");
      defs.push_back({name, kNowhere, b.tensor(v->type->elem, b.list(dims))});
      stacks.push_back(v->expr);
      results.push_back(keep({p.body.outputs[p.conditions + at].name, b.name(name), defs.back().type}));
    }
    std::unordered_set<Sym> live;
    for (const Expr *e : yields) collect_names(e, live);
    for (const Expr *e : stacks) collect_names(e, live);
    loop.defs = b.list(defs);
    loop.iter = {turn, p.trip ? p.trip : b.number(INFINITY), kNowhere};
    loop.carry = b.arena.copy(carry);
    loop.body = {pruned(body, live), b.list(yields), b.list(stacks)};
    loop.from = from_;
    add(b.make(loop));
    return results;
  }
}

// The number of turns that an i64[] asks for; null: no limit.
const Expr *Importer::trip_count(Value *v) {
  if (!v) return nullptr;
  if (!is_int(v->type->elem)) invalid("the number of turns is {}", dtype_name(v->type->elem));
  if (!known(v) && !itemize(v)) unsupported("a number of turns of type {}", dtype_name(v->type->elem));
  if (known(v)->size() != 1) invalid("the number of turns has {} elements", known(v)->size());
  X n = known(v)->at(0);
  return interval(n.e, bounds_).lo >= 0 ? n.e : max(n, lit(b, int64_t{0})).e;
}

void Importer::loop_node(const Node &n, Scope &scope, const Use &use) {
  const Graph &g = body_of(n, "body");
  size_t carried = use.inputs.size() < 2 ? 0 : use.inputs.size() - 2;
  if (g.inputs.size() != carried + 2) invalid("the body has {} inputs, expected {}", g.inputs.size(), carried + 2);
  if (use.outputs + 1 > g.outputs.size()) invalid("the body has {} outputs, expected {}", g.outputs.size(), use.outputs + 1);
  for (size_t i = 0; i < use.inputs.size(); ++i) {
    if (i >= 2 && !use.inputs[i]) invalid("a carried value is left out");
    if (use.inputs[i] && !use.inputs[i]->type) return forget(scope, n.outputs);
  }
  LoopParts p{g, 2, 1, trip_count(use.input(0)), nullptr, {}, {}, {}};
  if (Value *c = use.input(1)) {  // always true, or tested
    auto *flag = known(c) && known(c)->size() == 1 ? as<Bool>((*known(c))[0].e) : nullptr;
    if (flag && !flag->value) p.trip = b.integer(0);
    else if (!flag) p.condition = c;
  }
  for (size_t i = 0; i < carried; ++i) p.carried.push_back(named(use.inputs[2 + i]));
  for (Text name : n.outputs) p.names.push_back(name_for(scope, name));
  p.bind_turn = [&](Scope &inner, Sym turn, Body *) {
    const Expr *i = b.name(turn);
    inner.values[g.inputs[0].name] = index({b, i});
    Value *always = constant("true", "", b.tensor(DType::Bool, {}), {b.boolean(true)});  // or there is no turn
    inner.values[g.inputs[1].name] = always;
  };
  std::vector<Value *> results = write_loop(p, scope);
  if (results.empty()) return forget(scope, n.outputs);
  for (size_t i = 0; i < use.outputs; ++i) bind(scope, n.outputs[i], results[i]);
}

void Importer::scan_node(const Node &n, Scope &scope, const Use &use) {
  if (use.opset < 9) unsupported("batches, as before opset 9");
  const Graph &g = body_of(n, "body");
  const Attribute *count = use.attribute("num_scan_inputs");
  if (!count || count->kind != AttrKind::Int || count->i < 1 || count->i > int64_t(use.inputs.size()))
    invalid("attribute 'num_scan_inputs' does not fit {} inputs", use.inputs.size());
  size_t scanned = size_t(count->i), carried = use.inputs.size() - scanned;
  if (g.inputs.size() != use.inputs.size()) invalid("the body has {} inputs, expected {}", g.inputs.size(), use.inputs.size());
  if (use.outputs > g.outputs.size() || g.outputs.size() < carried) invalid("the body has {} outputs", g.outputs.size());
  auto list_of = [&](Text name, size_t size) {
    const Attribute *a = use.attribute(name);
    std::vector<int64_t> v = a ? a->ints : std::vector<int64_t>{};
    if (!v.empty() && v.size() != size) invalid("attribute '{}' has {} elements, expected {}", name, v.size(), size);
    v.resize(size);
    return v;
  };
  size_t stacked = g.outputs.size() - carried;
  auto axes = list_of("scan_input_axes", scanned), backward = list_of("scan_input_directions", scanned);
  auto out_axes = list_of("scan_output_axes", stacked), out_backward = list_of("scan_output_directions", stacked);
  for (Value *v : use.inputs) {
    if (!v) invalid("an input is left out");
    if (!v->type) return forget(scope, n.outputs);
  }
  LoopParts p{g, 0, 0, nullptr, nullptr, {}, {}, {}};
  for (size_t k = 0; k < scanned; ++k) {
    Value *v = use.inputs[carried + k];
    int64_t rank = int64_t(v->type->rank());
    if (axes[k] < -rank || axes[k] >= rank) invalid("scan axis {} is outside the rank {}", axes[k], rank);
    if (axes[k] < 0) axes[k] += rank;
    if (!p.trip) p.trip = v->type->dims[size_t(axes[k])];
  }
  for (size_t i = 0; i < carried; ++i) p.carried.push_back(named(use.inputs[i]));
  // Outputs that are turned round or have their turns elsewhere than in front get a name of their own first.
  auto turned = [&](size_t i) { return i >= carried && (out_axes[i - carried] != 0 || out_backward[i - carried] != 0); };
  for (size_t i = 0; i < use.outputs; ++i) p.names.push_back(turned(i) ? Sym{} : name_for(scope, n.outputs[i]));
  p.bind_turn = [&](Scope &inner, Sym turn, Body *body) {
    Body *around = std::exchange(body_, body);
    for (size_t k = 0; k < scanned; ++k) {
      X i(b, b.name(turn));
      if (backward[k]) i = X(b, p.trip) - 1 - i;
      Text name = g.inputs[carried + k].name;
      inner.values[name] = emit(name, "Gather", {use.inputs[carried + k], index(i)}, {attribute("axis", axes[k])});
    }
    body_ = around;
  };
  std::vector<Value *> results = write_loop(p, scope);
  if (results.empty()) return forget(scope, n.outputs);
  for (size_t i = 0; i < use.outputs; ++i) {
    Value *v = results[i];
    if (!turned(i) || n.outputs[i].empty()) {
      bind(scope, n.outputs[i], v);
      continue;
    }
    int64_t rank = int64_t(v->type->rank()), axis = out_axes[i - carried];
    if (axis < -rank || axis >= rank) invalid("scan axis {} is outside the rank {}", axis, rank);
    if (axis < 0) axis += rank;
    Use last;
    last.base = n.outputs[i], last.from = from_;
    if (out_backward[i - carried]) {
      last.op = "Slice";
      last.inputs = {v};
      for (int64_t x : {int64_t{-1}, INT64_MIN, int64_t{0}, int64_t{-1}}) last.inputs.push_back(list(std::vector<int64_t>{x}));
      if (axis != 0) v = emit(n.outputs[i], "Slice", last.inputs);
    }
    if (axis != 0) {
      std::vector<int64_t> perm;
      for (int64_t d = 1; d < rank; ++d) perm.push_back(d);
      perm.insert(perm.begin() + axis, 0);
      last.op = "Transpose", last.inputs = {v}, last.attributes = {attribute("perm", perm)};
    }
    bind(scope, n.outputs[i], write(last, {name_for(scope, n.outputs[i])})[0]);
  }
}

}  // namespace mlc::onnx
