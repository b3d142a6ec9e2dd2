// Graphs: control flow.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "interp/graph.h"
#include "text/text.h"

namespace mlc::interp {

void Graph::scoped(Stmts body) {
  size_t mark = log_.size();
  statements(body);
  pop(mark);
}

void Graph::statement(const Stmt *s) {
  switch (s->kind) {
    case Kind::Let: return let(to<Let>(s));
    case Kind::IfValue: return if_value(to<IfValue>(s));
    case Kind::Loop: return loop(to<Loop>(s));
    case Kind::CallStmt: return call(to<CallStmt>(s));
    case Kind::Assume: {
      auto &x = to<Assume>(s);
      if (condition(x.cond)) return;
      std::string nodes = m_.origin(f_.notes.from);
      throw Fault{s->at,
                  fmt::format("assume {} does not hold{}{}", print(b_, x.cond), nodes.empty() ? "" : ",", nodes)};
    }
    case Kind::Dataflow: {
      auto &x = to<Dataflow>(s);
      size_t mark = log_.size();
      statements(x.body);
      std::vector<Value> out;
      for (Sym n : x.outputs) out.push_back(*find(n, s->at));
      pop(mark);
      for (size_t i = 0; i < out.size(); i++) define(x.outputs[i], out[i]);
      return;
    }
    case Kind::Alloc: return alloc(to<Alloc>(s));
    case Kind::View: {
      auto &x = to<View>(s);
      Value v = Value::of(region(x.source));
      check(x.def, v);
      return define(x.def.name, v);
    }
    case Kind::For: {
      auto &x = to<For>(s);
      int64_t n = index(x.iter.extent);
      bool back = m_.options.backwards && x.loop != LoopKind::Serial && x.loop != LoopKind::Unroll;
      if (n > 0) m_.take_turns(n);
      for (int64_t i = 0; i < n; i++) {
        size_t mark = log_.size();
        define(x.iter.name, Value::of_index(back ? n - 1 - i : i));
        statements(x.body);
        pop(mark);
      }
      return;
    }
    case Kind::If: return scoped(condition(to<If>(s).cond) ? to<If>(s).body : to<If>(s).other);
    case Kind::While:
      for (; condition(to<While>(s).cond); scoped(to<While>(s).body)) m_.take_turns(1);
      return;
    default: throw Fault{s->at, fmt::format("no statement of a graph: {}", print(b_, s))};
  }
}

void Graph::if_value(const IfValue &s) {
  const Yield &y = condition(s.cond) ? s.then : s.other;
  size_t mark = log_.size();
  statements(y.body);
  std::vector<Value> values;
  for (const Expr *e : y.yields) values.push_back(value(e));
  pop(mark);
  define(s.defs, values, s.at);
}

void Graph::loop(const Loop &s) {
  auto *limit = as<Float>(s.iter.extent);
  int64_t n = limit && std::isinf(limit->value) ? INT64_MAX : index(s.iter.extent), turn = 0;
  std::vector<Value> carried;
  for (const Carry &c : s.carry) {
    Value v = value(c.init);
    if (c.def.type->tensor && v.is_scalar()) v = m_.rank0(v, c.def.type->elem);
    carried.push_back(v);
  }
  std::vector<std::vector<Value>> stacks(s.body.stacks.size());
  for (; turn < n; turn++) {
    m_.take_turns(1);
    size_t mark = log_.size();
    define(s.iter.name, Value::of_index(turn));
    for (size_t i = 0; i < carried.size(); i++)
      check(s.carry[i].def, carried[i]), define(s.carry[i].def.name, carried[i]);
    if (s.until && !find(s.until, s.at)->element().as_bool()) {
      pop(mark);
      break;
    }
    statements(s.body.body);
    if (s.body.yields.size() != carried.size())
      throw Fault{s.at,
                  fmt::format("the loop carries {} values and yields {}", carried.size(), s.body.yields.size())};
    std::vector<Value> next;
    for (size_t i = 0; i < carried.size(); i++) {
      Value v = value(s.body.yields[i]);
      if (s.carry[i].def.type->tensor && v.is_scalar()) v = m_.rank0(v, s.carry[i].def.type->elem);
      next.push_back(v);
    }
    for (size_t i = 0; i < stacks.size(); i++) stacks[i].push_back(value(s.body.stacks[i]));
    carried = std::move(next);
    pop(mark);
  }
  // Results: the number of turns (with `while`), what was carried, what was stacked.
  std::vector<Value> values;
  size_t extra = s.defs.size() - std::min(s.defs.size(), carried.size() + stacks.size());
  size_t mark = log_.size();
  if (extra) values.push_back(Value::of_index(turn));
  for (Value &v : carried) values.push_back(v);
  for (size_t i = 0; i < s.defs.size() && i < values.size(); i++)  // sizes that the stacked types mention
    if (!s.defs[i].type->tensor) define(s.defs[i].name, Value::of_index(values[i].element().as_int()));
  for (size_t i = 0; i < stacks.size(); i++) {
    size_t k = extra + carried.size() + i;
    if (k >= s.defs.size()) throw Fault{s.at, "a stacked value has no name"};
    values.push_back(stack(s.defs[k], stacks[i]));
  }
  pop(mark);
  define(s.defs, values, s.at);
}

Value Graph::stack(const Def &d, const std::vector<Value> &turns) {
  DType t = d.type->elem;
  std::vector<int64_t> dims{int64_t(turns.size())};
  if (turns.empty()) {
    for (size_t k = 1; k < d.type->rank(); k++) dims.push_back(index(d.type->dims[k]));
  } else if (!turns[0].is_scalar()) {
    dims.insert(dims.end(), turns[0].ref.dims.begin(), turns[0].ref.dims.end());
  }
  Ref all = m_.make(t, dims);
  for (size_t i = 0; i < turns.size(); i++) {
    Value v = turns[i].is_scalar() ? m_.rank0(turns[i], t) : turns[i];
    std::vector<int64_t> lo(dims.size()), extent = dims;
    std::vector<bool> drop(dims.size());
    lo[0] = int64_t(i), extent[0] = 1, drop[0] = true;
    Ref part = all.region(lo, extent, drop);
    if (v.ref.dims != part.dims || v.type != t)
      throw Fault{d.at, fmt::format("turn {} of {} has another shape than the first", i, text(d.name))};
    copy(part, v.ref);
  }
  return Value::of(all);
}

}  // namespace mlc::interp
