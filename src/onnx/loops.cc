// Loop and Scan as one statement of the language:
//   t: index, go: bool[], last: f32[d], trace: f32[t, d] = loop i in n carry c: bool[] = c0, s: f32[d] = x while c {..}
// A dimension of a carried value that a turn changes becomes a carried index value on the left of it.
#include <algorithm>
#include <cmath>

#include "ir/walk.h"
#include "onnx/importer.h"

namespace mlc::onnx {

// One turn, with the dimensions in `varies` carried. Null if a node of the body failed.
std::optional<Importer::Turn> Importer::import_turn(const LoopParts &p, const Scope &scope, const Varies &varies) {
  Turn t;
  t.var = fresh_.make("i");
  if (p.trip) bounds_.range(t.var, p.trip);
  else bounds_.index(t.var);
  Scope inner = inside(scope);
  p.bind_turn(inner, t.var, &t.body);
  for (size_t k = 0; k < p.carried.size(); ++k) {
    Value *v = p.carried[k];
    std::vector<const Expr *> dims(v->type->dims.begin(), v->type->dims.end());
    for (size_t d = 0; d < dims.size(); ++d) {
      if (!varies[k][d]) continue;
      Sym size = new_size();
      t.carry.push_back({{size, kNowhere, b.index()}, dims[d]});
      dims[d] = b.name(size);
    }
    Text name = p.body.inputs[p.first_carried + k].name;
    const IrType *type = b.tensor(v->type->elem, b.list(dims));
    t.carry.push_back({{fresh_.make(name), kNowhere, type}, v->expr});
    Value inside{name, b.name(t.carry.back().def.name), type};
    if (!inner.values.emplace(name, keep(inside)).second)
      invalid("input \"{}\" of the body is defined twice", one_line(name));
  }
  auto values = run_body(p.body, inner, &t.body);
  if (!values) return std::nullopt;
  t.values = std::move(*values);
  return t;
}

// Marks the dimensions that differ before and after the turn; true if there are more than before.
bool Importer::find_varying(const LoopParts &p, const Turn &t, Varies &varies) {
  bool more = false;
  for (size_t k = 0; k < p.carried.size(); ++k) {
    const IrType *before = p.carried[k]->type, *after = t.values[p.conditions + k]->type;
    if (before->elem != after->elem)
      invalid("carried value {}: expected {}, found {} after a turn", k, dtype_name(before->elem),
              dtype_name(after->elem));
    if (before->rank() != after->rank())
      unsupported("carried value {}: its rank is {}, and {} after a turn", k, before->rank(), after->rank());
    for (size_t d = 0; d < before->rank(); ++d)
      if (!varies[k][d] && !equal(before->dims[d], after->dims[d])) varies[k][d] = more = true;
  }
  return more;
}

std::vector<Value *> Importer::write_loop(const LoopParts &p, const Scope &scope) {
  size_t carried = p.carried.size();
  if (p.body.outputs.size() < carried + p.conditions) invalid("the body has too few outputs");
  Varies varies;
  for (Value *v : p.carried) varies.emplace_back(v->type->rank());
  size_t mark = bounds_.mark();
  std::optional<Turn> t;
  do {  // until the types hold for every turn
    bounds_.pop(mark);
    t = import_turn(p, scope, varies);
  } while (t && find_varying(p, *t, varies));
  if (!t) {
    bounds_.pop(mark);
    return {};
  }

  Loop loop{};
  std::vector<Def> defs;
  std::vector<const Expr *> yields, stacks;
  Value *go = p.conditions ? t->values[0] : nullptr;
  bool until = p.condition || (go && !is_known(go, true));
  if (!until && !p.trip) invalid("a loop without an end");
  if (until) {
    const IrType *flag = b.tensor(DType::Bool, {});
    Value *first = p.condition ? p.condition : constant("true", "", flag, {b.boolean(true)});
    loop.until = fresh_.make("go");
    t->carry.insert(t->carry.begin(), Carry{{loop.until, kNowhere, flag}, condition(first)});
    Body *around = std::exchange(body_, &t->body);
    yields.push_back(condition(go));
    body_ = around;
    defs.push_back({fresh_.make("t"), kNowhere, b.index()});
    defs.push_back({fresh_.make("go"), kNowhere, flag});
  }
  bounds_.pop(mark);
  if (until) bounds_.dim(defs[0].name);
  const Expr *turns = until ? b.name(defs[0].name) : p.trip;

  std::unordered_set<Sym> own = defined_in(t->body);
  own.insert(t->var);
  for (const Carry &c : t->carry) own.insert(c.def.name);
  std::vector<Value *> results;
  for (size_t k = 0; p.conditions + k < t->values.size(); ++k) {
    Value *v = t->values[p.conditions + k];
    bool stacked = k >= carried;
    std::vector<const Expr *> dims;
    if (stacked) dims.push_back(turns);
    for (size_t d = 0; d < v->type->rank(); ++d) {
      const Expr *e = v->type->dims[d];
      if (stacked && mentions_any(e, own)) unsupported("a stacked output whose shape differs from turn to turn");
      if (!stacked && varies[k][d]) {
        defs.push_back({new_size(), kNowhere, b.index()});
        yields.push_back(e);
        e = b.name(defs.back().name);
      }
      dims.push_back(e);
    }
    Sym name = k < p.names.size() && p.names[k] ? p.names[k] : fresh_.make("unused");
    defs.push_back({name, kNowhere, b.tensor(v->type->elem, b.list(dims))});
    (stacked ? stacks : yields).push_back(v->expr);
    results.push_back(keep({p.body.outputs[p.conditions + k].name, b.name(name), defs.back().type}));
  }
  std::unordered_set<Sym> live;
  for (const Expr *e : yields) collect_names(e, live);
  for (const Expr *e : stacks) collect_names(e, live);
  loop.defs = b.list(defs);
  loop.iter = {t->var, p.trip ? p.trip : b.number(INFINITY), kNowhere};
  loop.carry = b.arena.copy(t->carry);
  loop.body = {pruned(t->body, live), b.list(yields), b.list(stacks)};
  loop.from = from_;
  add(b.make(loop));
  return results;
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
  if (use.outputs + 1 > g.outputs.size())
    invalid("the body has {} outputs, expected {}", g.outputs.size(), use.outputs + 1);
  for (size_t i = 0; i < use.inputs.size(); ++i) {
    if (i >= 2 && !use.inputs[i]) invalid("a carried value is left out");
    if (use.inputs[i] && !use.inputs[i]->type) return forget(scope, n.outputs);
  }
  LoopParts p{g, 2, 1, trip_count(use.input(0)), nullptr, {}, {}, {}};
  if (Value *c = use.input(1)) {  // always true, or tested
    if (is_known(c, false)) p.trip = b.integer(0);
    else if (!is_known(c, true)) p.condition = c;
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
  if (g.inputs.size() != use.inputs.size())
    invalid("the body has {} inputs, expected {}", g.inputs.size(), use.inputs.size());
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
  auto turned = [&](size_t i) {
    return i >= carried && (out_axes[i - carried] != 0 || out_backward[i - carried] != 0);
  };
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
      for (int64_t x : {int64_t{-1}, INT64_MIN, int64_t{0}, int64_t{-1}})
        last.inputs.push_back(list(std::vector<int64_t>{x}));
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
