// Scalar expressions of graphs.
#include <fmt/core.h>

#include "interp/exec.h"
#include "interp/machine.h"
#include "ir/walk.h"

namespace mlc::interp {

int64_t Machine::dim(const Expr *e, const IndexValues &names) {
  if (auto v = index_value(b, e, names)) return *v;
  std::unordered_map<Sym, Value> values;
  for (auto [s, v] : names) values[s] = Value::of_index(v);
  return eval(e, DType::Index, [&](Sym s) {
           auto it = values.find(s);
           return it == values.end() ? nullptr : &it->second;
         }).scalar.as_int();
}

Value Machine::eval(const Expr *e, DType want, const std::function<const Value *(Sym)> &value) {
  auto need = [&](Sym s) {
    const Value *v = value(s);
    if (!v) throw Fault{e->at, fmt::format("{} is not defined here", name(s))};
    return *v;
  };
  if (auto *i = as<Int>(e); i && (want == DType::Index || want == DType::Invalid)) return Value::of_index(i->value);
  if (auto *n = as<Name>(e)) {
    Value v = need(n->name);
    if (!v.is_scalar() && v.ref.rank())
      throw Fault{e->at, fmt::format("{} is {}, expected a scalar", name(n->name), v.text())};
    return Value::of(v.type, v.element());
  }
  if (want == DType::Index) {
    IndexValues names;
    each_expr(e, [&](const Expr *x) {
      if (auto *n = as<Name>(x))
        if (const Value *v = value(n->name); v && v->type == DType::Index && v->is_scalar())
          names[n->name] = v->scalar.as_int();
      return true;
    });
    if (auto v = index_value(b, e, names)) return Value::of_index(*v);
  }
  // Any other: the body of a kernel whose parameters are the names in it. A tensor of rank 0 stands for its element.
  ScalarUnit &s = scalars_[{e, want}];
  if (!s.node) {
    std::unordered_set<Sym> seen;
    std::vector<Param> params;
    std::unordered_set<Sym> bound;
    each_expr(e, [&](const Expr *x) {
      if (auto *c = as<Call>(x))
        for (const Iter &i : c->iters) bound.insert(i.name);
      return true;
    });
    auto param = [&](Sym n, bool loaded) {
      if (bound.count(n) || !seen.insert(n).second) return;
      Value v = need(n);
      const Type *t = b.scalar(v.type);
      if (loaded && !v.is_scalar()) {
        std::vector<const Expr *> dims;
        for (size_t d = 0; d < v.ref.rank(); d++) dims.push_back(b.integer(0));  // only the rank matters
        t = b.tensor(v.type, b.list(dims));
      }
      params.push_back({Mode::In, {n, e->at, t}});
      s.names.push_back(n);
    };
    each_expr(e, [&](const Expr *x) {
      if (auto *l = as<Load>(x); l && !l->global) param(l->buffer, true);
      return true;
    });
    each_expr(e, [&](const Expr *x) {
      if (auto *n = as<Name>(x)) param(n->name, false);
      return true;
    });
    Func f{};
    f.func = FuncKind::Kernel, f.device_index = -1, f.params = b.list(params);
    std::tie(s.unit, s.node) = compiler(m).scalar(*b.make(f), e, want);
  }
  Activation a(*s.unit, *this);
  for (size_t i = 0; i < s.names.size(); i++) {
    Value v = need(s.names[i]);
    int buffer = s.unit->param_buffers[i];
    if (buffer >= 0) a.bind(buffer, v.ref);
    else a.set(s.unit->param_slots[i], v.element());
  }
  start(*s.unit, a.frame);
  return Value::of(s.node->type, eval_any(s.node, a.frame));
}

}  // namespace mlc::interp
