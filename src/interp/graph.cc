// Graphs: values, operators, calls. Values are tensors that nothing writes once they are defined.
#include "interp/graph.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "text/text.h"

namespace mlc::interp {

namespace {

bool is_operator(const Build &b, const Call *c) {
  std::string_view name = c ? b.text(c->callee) : "";
  return c && !c->global && c->iters.empty() && !name.empty() && name[0] >= 'A' && name[0] <= 'Z';
}

bool literal_only(const Expr *e) {
  bool names = false;
  each_expr(e, [&](const Expr *x) {
    return names |= x->kind == Kind::Name || x->kind == Kind::Load || x->kind == Kind::Call, true;
  });
  return !names;
}

}  // namespace

std::vector<Value> Graph::run(Stmts body, const std::vector<Value> &args, const std::vector<Value> &into,
                       const IndexValues &names) {
  for (auto [s, v] : names) define(s, Value::of_index(v));
  for (size_t i = 0; i < args.size(); i++) define(f_.params[i].def.name, args[i]);
  std::unordered_set<Sym> values;
  defined_by(body, values);
  for (size_t i = 0; i < f_.results.size(); i++) {
    const Def &d = f_.results[i];
    if (values.count(d.name)) continue;  // else a buffer that calls write to
    if (!d.type->tensor) throw Fault{d.at, fmt::format("result {} is never defined", text(d.name))};
    bool known = std::all_of(d.type->dims.begin(), d.type->dims.end(),
                             [&](const Expr *e) { return index_value(b_, e, names_).has_value(); });
    if (into.empty() && !known) {
      later_[d.name] = &d;
      continue;
    }
    define(d.name, into.empty() ? make(d) : into[i]);
    if (!into.empty()) into[i].ref.forget();
  }
  statements(body);
  std::vector<Value> results;
  for (size_t i = 0; i < f_.results.size(); i++) {
    const Def &d = f_.results[i];
    Value v = *find(d.name, d.at);
    check(d, v);
    std::vector<int64_t> index;
    if (!v.is_scalar() && v.ref.find_undefined(&index))
      throw Fault{d.at, fmt::format("{}[{}] is never written", text(d.name), fmt::join(index, ", "))};
    if (!into.empty() && !v.is_scalar() && v.ref.storage != into[i].ref.storage)
      copy(into[i].ref, v.ref), v = into[i];
    results.push_back(v);
  }
  return results;
}

// ---- names

void Graph::define(Sym s, Value v) {
  auto it = values_.find(s);
  log_.push_back({s, it == values_.end() ? Value{} : it->second, it != values_.end()});
  if (v.is_scalar() && v.type == DType::Index) names_[s] = v.scalar.as_int();
  else names_.erase(s);
  values_[s] = std::move(v);
}

void Graph::pop(size_t mark) {
  for (; log_.size() > mark; log_.pop_back()) {
    Saved &x = log_.back();
    names_.erase(x.name);
    if (!x.had) {
      values_.erase(x.name);
      continue;
    }
    if (x.old.is_scalar() && x.old.type == DType::Index) names_[x.name] = x.old.scalar.as_int();
    values_[x.name] = std::move(x.old);
  }
}

const Value *Graph::find(Sym s, uint32_t at) {
  auto it = values_.find(s);
  if (auto late = later_.find(s); it == values_.end() && late != later_.end())
    it = values_.emplace(s, make(*late->second)).first;
  if (it == values_.end()) throw Fault{at, fmt::format("{} is not defined here", text(s))};
  return &it->second;
}

void Graph::defined_by(Stmts body, std::unordered_set<Sym> &out) {
  for (const Stmt *s : body) {
    Defs defs = s->kind == Kind::Let       ? to<Let>(s).defs
                : s->kind == Kind::IfValue ? to<IfValue>(s).defs
                : s->kind == Kind::Loop    ? to<Loop>(s).defs
                                           : Defs{};
    for (const Def &d : defs) out.insert(d.name);
    if (auto *d = as<Dataflow>(s)) defined_by(d->body, out);
  }
}

// ---- expressions

Value Graph::scalar(const Expr *e, DType want) {
  return m_.eval(e, want, [this](Sym s) -> const Value * {
    auto it = values_.find(s);
    return it == values_.end() ? nullptr : &it->second;
  });
}

int64_t Graph::index(const Expr *e) {
  if (auto *n = as<Name>(e))
    if (auto it = names_.find(n->name); it != names_.end()) return it->second;
  return scalar(e, DType::Index).scalar.as_int();
}

std::vector<int64_t> Graph::dims_of(const Type *t) {
  std::vector<int64_t> dims;
  for (const Expr *e : t->dims) dims.push_back(index(e));
  return dims;
}

const Type *Graph::concrete(const Type *t) {
  std::vector<const Expr *> dims;
  for (const Expr *e : t->dims) {
    auto v = index_value(b_, e, names_);
    dims.push_back(v ? b_.integer(*v) : e);
  }
  return b_.tensor(t->elem, b_.list(dims));
}

Value Graph::make(const Def &d) {
  try {
    return Value::of(m_.make(d.type->elem, dims_of(d.type)));
  } catch (Fault &e) {
    throw Fault{e.at == kNowhere ? d.at : e.at, fmt::format("{}: {}", text(d.name), e.message)};
  }
}

void Graph::check(const Def &d, const Value &v, const std::unordered_set<Sym> &pending) {
  auto refuse = [&] {
    throw Fault{d.at, fmt::format("{}: expected {}, found {}{}", text(d.name), print(b_, d.type), dtype_name(v.type),
                                  v.is_scalar() ? "" : fmt::format("[{}]", fmt::join(v.ref.dims, ", ")))};
  };
  if (v.type != d.type->elem || v.is_scalar() == d.type->tensor) refuse();
  if (v.is_scalar()) return;
  if (v.ref.rank() != d.type->rank()) refuse();
  std::vector<DimEquation> equations;
  for (size_t k = 0; k < v.ref.rank(); k++) equations.push_back({d.type->dims[k], v.ref.dims[k]});
  IndexValues names = names_;
  if (solve(b_, equations, [&](Sym s) { return pending.count(s) > 0; }, names) < equations.size()) refuse();
  for (Sym s : pending)
    if (!names_.count(s) && names.count(s)) define(s, Value::of_index(names[s]));
  for (const DimEquation &q : equations)  // floor(f32(n) * 2.5) and the like
    if (!index_value(b_, q.wanted, names_) && index(q.wanted) != q.found) refuse();
}

void Graph::define(Defs defs, std::vector<Value> values, uint32_t at) {
  std::unordered_set<Sym> pending;
  size_t given = values.size();
  for (const Def &d : defs) given -= d.type->tensor;
  bool scalars = given > 0;  // then they are among the values
  if (!scalars)
    for (const Def &d : defs)
      if (!d.type->tensor) pending.insert(d.name);
  std::vector<std::pair<const Def *, Value>> pairs;
  size_t next = 0;
  for (const Def &d : defs)
    if (d.type->tensor || scalars) {
      if (next == values.size()) throw Fault{at, fmt::format("no value for {}", text(d.name))};
      pairs.push_back({&d, values[next++]});
    }
  if (next != values.size()) throw Fault{at, fmt::format("found {} values for {} names", values.size(), next)};
  for (auto &[d, v] : pairs) {
    if (!d->type->tensor && !v.is_scalar() && !v.ref.rank()) v = Value::of(v.type, v.element());
    if (!d->type->tensor && d->type->elem == DType::Index && is_int(v.type)) v.type = DType::Index;
    if (d->type->tensor && v.is_scalar()) v = m_.rank0(v, d->type->elem);
    if (!d->type->tensor) check(*d, v), define(d->name, v);
  }
  for (auto &[d, v] : pairs)
    if (d->type->tensor) check(*d, v, pending), define(d->name, v);
  for (Sym s : pending)
    if (!names_.count(s)) throw Fault{at, fmt::format("{} does not follow from the shapes of the results", text(s))};
}

Ref Graph::region(const Load *l) {
  Ref whole = l->global ? m_.constant(l->buffer, l->at) : find(l->buffer, l->at)->ref;
  if (!whole.storage || l->index.size() != whole.rank())
    throw Fault{l->at, fmt::format("{} does not have {} dimensions", text(l->buffer), l->index.size())};
  std::vector<int64_t> lo, extent;
  std::vector<bool> drop;
  for (size_t d = 0; d < l->index.size(); d++) {
    const Expr *e = l->index[d];
    auto *r = as<Range>(e);
    bool all = e->kind == Kind::All;
    lo.push_back(r ? index(r->lo) : all ? 0 : index(e));
    extent.push_back(r ? index(r->extent) : all ? whole.dims[d] : 1);
    drop.push_back(!r && !all);
    if (lo[d] < 0 || extent[d] < 0 || lo[d] > whole.dims[d] - extent[d])
      throw Fault{l->at, fmt::format("the region of {} is outside: {} +: {} of dimension {}, which is {}",
                                     text(l->buffer), lo[d], extent[d], d, whole.dims[d])};
  }
  return whole.region(lo, extent, drop);
}

Value Graph::value(const Expr *e) {
  if (auto *n = as<Name>(e)) return *find(n->name, e->at);
  if (auto *g = as<Global>(e)) return Value::of(m_.constant(g->name, e->at));
  if (auto *l = as<Load>(e)) return Value::of(region(l));
  if (auto *s = as<Str>(e))
    return m_.rank0(Value::of(DType::Str, Scalar::of_int(m_.strings.number(s->value))), DType::Str);
  return scalar(e, e->kind == Kind::Bool ? DType::Bool : e->kind == Kind::Float ? DType::F64 : DType::Index);
}

Attrs Graph::attrs(Attrs list) {
  return rewrite(b_, list, [&](const Expr *e) -> const Expr * {
    auto *n = as<Name>(e);
    if (!n) return e;
    if (auto it = names_.find(n->name); it != names_.end()) return b_.integer(it->second);
    auto it = values_.find(n->name);
    return it == values_.end() || !it->second.is_scalar() ? e : m_.literal(it->second.type, it->second.scalar);
  });
}

// ---- statements

void Graph::let(const Let &s) {
  const Call *c = as<Call>(s.value);
  if (c && c->global) {
    const Func *f = m_.m.func(c->callee);
    if (!f) throw Fault{s.at, fmt::format("no function @{}", text(c->callee))};
    if (f->func != FuncKind::Scalar && f->func != FuncKind::Reducer)
      return define(s.defs, m_.call(*f, arguments(c, *f), {}, s.at, "", s.from), s.at);
  }
  if (!is_operator(b_, c)) {
    if (s.defs.size() != 1) throw Fault{s.at, fmt::format("expected an operator or a call: {}", print(b_, s.value))};
    const Type *t = s.defs[0].type;
    bool plain = s.value->kind == Kind::Name || s.value->kind == Kind::Global || s.value->kind == Kind::Load;
    if (t->tensor && plain) {  // a copy: a buffer may change later, a value may not
      Value v = value(s.value);
      if (v.is_scalar()) return define(s.defs, {v}, s.at);
      Ref own = m_.make(v.type, v.ref.dims);
      copy(own, v.ref);
      return define(s.defs, {Value::of(own)}, s.at);
    }
    return define(s.defs, {scalar(s.value, t->elem)}, s.at);
  }
  std::string_view name = text(c->callee);
  if (name == "Item" && c->args.size() == 1) {
    Value v = value(c->args[0]);
    if (!v.is_scalar() && v.ref.count() != 1) throw Fault{s.at, fmt::format("Item of {} elements", v.ref.count())};
    Scalar x = v.is_scalar() ? v.scalar : v.ref.get(std::vector<int64_t>(v.ref.rank(), 0));
    DType t = s.defs[0].type->elem;
    return define(s.defs, {Value::of(t, cast(x, v.type, t))}, s.at);
  }
  if (name == "Match" && c->args.size() == 1) return define(s.defs, {value(c->args[0])}, s.at);
  OperatorUse use;
  use.name = c->callee, use.args = operator_args(c), use.attrs = attrs(s.attrs), use.from = s.from, use.at = s.at;
  const OpInfo *op = find_op(name);
  if (!op) throw Fault{s.at, fmt::format("no operator {}", name)};
  use.results = 0;
  for (const Def &d : s.defs) {  // sizes follow from the shapes, but where the operator counts them
    if (!d.type->tensor && !op->count) continue;
    if (!use.wanted && d.type->tensor) use.wanted = concrete(d.type);
    use.results++;
  }
  define(s.defs, m_.call_operator(std::move(use)), s.at);
}

std::vector<OperatorArg> Graph::operator_args(const Call *c) {
  const OpInfo *op = find_op(b_.text(c->callee));
  std::vector<OperatorArg> args;
  for (size_t i = 0; i < c->args.size(); i++) {
    const Expr *e = c->args[i];
    if (auto *l = as<List>(e)) {
      std::vector<const Expr *> items;
      for (const Expr *x : l->items) items.push_back(literal_only(x) ? x : b_.integer(index(x)));
      args.push_back({b_.make_list(b_.list(items)), {}});
    } else if (e->kind != Kind::Name && e->kind != Kind::Global && e->kind != Kind::Load && literal_only(e)) {
      args.push_back({e->kind == Kind::Unary || e->kind == Kind::Binary ? b_.integer(index(e)) : e, {}});
    } else {
      Value v = value(e);
      // An index expression is an i64[], and so a literal only where its type is that of other operands.
      const mlc::Operand *o = op ? op->input(i) : nullptr;
      size_t sharing = 0;
      for (size_t k = 0; op && o && k < op->inputs.size(); k++) sharing += op->inputs[k].type == o->type;
      if (v.is_scalar() && v.type == DType::Index && o && (o->type == "i64" || (sharing == 1 && !o->variadic)))
        v = m_.rank0(v, DType::I64);
      args.push_back({nullptr, v});
    }
  }
  return args;
}

std::vector<Value> Graph::arguments(const Call *c, const Func &f) {
  std::vector<const Param *> params;
  for (const Param &p : f.params)
    if (p.mode != Mode::Scratch || c->args.size() == f.params.size()) params.push_back(&p);
  if (params.size() != c->args.size())
    throw Fault{c->at, fmt::format("@{} has {} parameters, found {} arguments", text(f.name), f.params.size(),
                                   c->args.size())};
  std::vector<Value> args;
  for (size_t i = 0; i < params.size(); i++) {
    const Type *t = params[i]->def.type;
    args.push_back(t->tensor ? value(c->args[i]) : scalar(c->args[i], t->elem));
    if (t->tensor && args.back().is_scalar()) args.back() = m_.rank0(args.back(), t->elem);
  }
  return args;
}

void Graph::call(const CallStmt &s) {
  const Call *c = s.call;
  std::vector<Value> into;
  for (const Expr *e : s.dests) into.push_back(value(e));
  for (size_t i = 0; i < into.size(); i++)
    if (into[i].is_scalar()) throw Fault{s.dests[i]->at, fmt::format("{} is no destination", print(b_, s.dests[i]))};
  if (c->global) {
    const Func *f = m_.m.func(c->callee);
    if (!f) throw Fault{s.at, fmt::format("no function @{}", text(c->callee))};
    m_.call(*f, arguments(c, *f), into, s.at, "", s.from);
    return;
  }
  std::string_view name = text(c->callee);
  OperatorUse use;
  if (is_operator(b_, c)) {
    use.args = operator_args(c);
  } else {
    for (const Expr *e : c->args)
      if (e->kind == Kind::Str || e->kind == Kind::Float) use.args.push_back({e, {}});
      else if (name == "fill" && !into.empty()) use.args.push_back({nullptr, scalar(e, into[0].type)});
      else use.args.push_back({nullptr, value(e)});
  }
  if (m_.call_effect(name, use.args, into, s.at)) return;
  use.name = c->callee, use.attrs = attrs(s.attrs), use.from = s.from, use.at = s.at;
  use.results = into.size(), use.into = into;
  m_.call_operator(std::move(use));
}

void Graph::alloc(const Alloc &s) {
  if (!s.base) return define(s.def.name, make(s.def));
  const Value *base = find(s.base, s.at);
  Ref r{base->ref.storage, s.def.type->elem, base->ref.start, 0, dims_of(s.def.type), {}};
  int64_t bytes = bytes_of(r.elem, r.dims.data(), r.dims.size()), at = index(s.offset);
  int64_t room = base->is_scalar() ? -1 : storage_bytes(base->type, base->ref.count());
  if (at < 0 || at > room - bytes || !base->ref.is_dense() || base->ref.first)
    throw Fault{s.at, fmt::format("alloc {}: {} bytes at {} of {} go beyond its end", text(s.def.name), bytes, at,
                                  text(s.base))};
  r.start += at;
  r.strides = dense_strides(r.dims);
  define(s.def.name, Value::of(r));
}

std::vector<Value> run_graph(Machine &m, const Func &f, Stmts body, const std::vector<Value> &args,
                             const std::vector<Value> &into, const IndexValues &names) {
  return Graph(m, f).run(body, args, into, names);
}

bool is_graph_body(const Build &b, Stmts body) {
  bool found = false;
  each_stmt(body, [&](const Stmt *s) {
    if (s->kind == Kind::IfValue || s->kind == Kind::Loop || s->kind == Kind::Dataflow) found = true;
    if (auto *l = as<Let>(s)) found |= is_operator(b, as<Call>(l->value));
  });
  return found;
}

}  // namespace mlc::interp
