#include <fmt/core.h>

#include <algorithm>

#include "interp/compile.h"
#include "interp/exec.h"
#include "num/literal.h"
#include "text/text.h"

namespace mlc::interp {

// ---- names

void Compiler::define(Sym name, What w) {
  auto it = names_.find(name);
  log_.push_back({name, it == names_.end() ? std::nullopt : std::optional<What>(it->second)});
  names_[name] = std::move(w);
}
void Compiler::pop(size_t mark) {
  for (; log_.size() > mark; log_.pop_back()) {
    auto &[name, old] = log_.back();
    if (old) names_[name] = *old;
    else names_.erase(name);
  }
}
const Compiler::What &Compiler::find(Sym name, uint32_t at) const {
  auto it = names_.find(name);
  if (it == names_.end()) throw Fault{at, fmt::format("{} is not defined here", b_.text(name))};
  return it->second;
}

int Compiler::buffer_of(Sym name, uint32_t at, bool global) {
  if (!global) {
    const What &w = find(name, at);
    if (w.buffer < 0) throw Fault{at, fmt::format("{} is a scalar, expected a buffer", b_.text(name))};
    return w.buffer;
  }
  if (auto it = constants_.find(name); it != constants_.end()) return it->second;
  const Const *c = m_.constant(name);
  if (!c) throw Fault{at, fmt::format("no constant @{}", b_.text(name))};
  int k = add_buffer(name, c->type);
  unit_->constants.push_back({k, name});
  unit_->buffers[size_t(k)].known = true;
  return constants_[name] = k;
}
int Compiler::buffer_of(const Load *l) { return buffer_of(l->buffer, l->at, l->global); }

int Compiler::add_buffer(Sym name, const Type *t) {
  BufferInfo info;
  info.name = name, info.elem = t->elem, info.type = t;
  info.own = t->scope && b_.text(t->scope) != "global";
  for (size_t d = 0; d < t->rank(); d++) info.dims.push_back(slot()), info.strides.push_back(slot());
  unit_->buffers.push_back(std::move(info));
  return int(unit_->buffers.size()) - 1;
}

// ---- literals and types

bool Compiler::open(const Expr *e) {
  if (e->kind == Kind::Int || e->kind == Kind::Float) return true;
  if (e->kind != Kind::Unary && e->kind != Kind::Binary && e->kind != Kind::Call) return false;
  if (auto it = open_.find(e); it != open_.end()) return it->second;
  auto look = [&] {
    if (auto *u = as<Unary>(e)) return u->op == Op::Neg && open(u->a);
    if (auto *x = as<Binary>(e)) return x->op >= Op::Add && open(x->a) && open(x->b);
    auto &c = to<Call>(e);
    const Builtin *f = c.global || !c.iters.empty() ? nullptr : builtin(b_.text(c.callee));
    if (!f || f->signature == Signature::Test || f->signature == Signature::Bits || c.args.empty()) return false;
    Exprs args = f->signature == Signature::Where ? c.args.subspan(1) : c.args;
    return std::all_of(args.begin(), args.end(), [&](const Expr *a) { return open(a); });
  };
  return open_[e] = look();
}

Node *Compiler::literal(const Expr *e, DType want) {
  Node *n;
  if (auto *i = as<Int>(e)) {
    if (want == DType::Invalid) want = DType::Index;
    if (!is_int(want)) throw Fault{e->at, fmt::format("expected {}, found an integer literal", dtype_name(want))};
    n = nodes_.constant(want, narrow(want, i->value));
  } else if (auto *x = as<Float>(e)) {
    if (want == DType::Invalid) want = DType::F64;
    if (!is_float(want)) throw Fault{e->at, fmt::format("expected {}, found a float literal", dtype_name(want))};
    n = nodes_.constant(want, x->nan_bits ? from_bits(want, x->nan_bits) : scalar_of(want, x->value));
  } else {
    n = nodes_.constant(DType::Bool, Scalar::of_bool(to<Bool>(e).value));
  }
  n->at = e->at;
  return n;
}

// Two operands of one type: a literal takes the type of the other.
std::pair<const Node *, const Node *> Compiler::pair(const Expr *a, const Expr *b, DType want) {
  const Node *x, *y;
  if (open(a) && !open(b)) {
    y = expr(b, DType::Invalid), x = expr(a, y->type);
  } else {
    x = expr(a, open(a) ? want : DType::Invalid), y = expr(b, x->type);
  }
  if (x->type != y->type)
    throw Fault{a->at, fmt::format("operands have types {} and {}", dtype_name(x->type), dtype_name(y->type))};
  return {x, y};
}

Node *Compiler::expr(const Expr *e, DType want) {
  Node *n = nullptr;
  switch (e->kind) {
    case Kind::Int:
    case Kind::Float:
    case Kind::Bool: n = literal(e, want); break;
    case Kind::Name: {
      const What &w = find(to<Name>(e).name, e->at);
      if (w.slot < 0) throw Fault{e->at, fmt::format("{} is a buffer, expected a scalar", b_.text(to<Name>(e).name))};
      n = nodes_.slot(w.type, w.slot);
      break;
    }
    case Kind::Load: {
      const Access *x = access(&to<Load>(e));
      n = nodes_.load(unit_->buffers[size_t(x->buffer)].elem, x);
      if (races_ && !to<Load>(e).global && !combining_.count(x->buffer)) n = nodes_.traced(n);
      break;
    }
    case Kind::Unary: {
      auto &u = to<Unary>(e);
      n = nodes_.unary(u.op, expr(u.a, u.op == Op::Not ? DType::Bool : want));
      break;
    }
    case Kind::Binary: {
      auto &x = to<Binary>(e);
      auto [a, b] = pair(x.a, x.b, x.op >= Op::Add ? want : DType::Invalid);
      n = jitter_ && in_reducer_ ? nodes_.jittered(x.op, a, b) : nodes_.binary(x.op, a, b);
      break;
    }
    case Kind::Call: n = call(&to<Call>(e), want); break;
    default: throw Fault{e->at, fmt::format("{} is no scalar expression", print(b_, e))};
  }
  if (want != DType::Invalid && n->type != want)
    throw Fault{e->at, fmt::format("expected {}, found {} in {}", dtype_name(want), dtype_name(n->type), print(b_, e))};
  return n;
}

// ---- calls

const Func *Compiler::callee(const Call *c) const {
  const Func *f = m_.func(c->callee);
  if (!f || (f->func != FuncKind::Scalar && f->func != FuncKind::Reducer))
    throw Fault{c->at, fmt::format("no scalar function or reducer @{}", b_.text(c->callee))};
  return f;
}

Node *Compiler::apply(const Func *f, Exprs args) {
  auto a = std::make_shared<Apply>();
  a->fn = lambda_of_(f);
  if (args.size() != f->params.size())
    throw Fault{f->at, fmt::format("@{} has {} arguments, found {}", b_.text(f->name), f->params.size(), args.size())};
  for (size_t i = 0; i < args.size(); i++) a->args.push_back(expr(args[i], f->params[i].def.type->elem));
  Node *n = nodes_.make(f->results[0].type->elem);
  n->more = a.get();
  kept_.push_back(a);
  set_apply(n);
  return n;
}

Node *Compiler::reduction(const Call *c, std::string_view kind, DType want) {
  size_t mark = log_.size();
  std::vector<LoopInfo *> loops;
  for (const Iter &i : c->iters) loops.push_back(open_loop(i.name, i.extent, false));
  Node *n;
  std::vector<const LoopInfo *> in_order(loops.begin(), loops.end());
  if (c->global) {
    const Func *f = callee(c);
    Fold fold{lambda_of_(f), in_order, {}};
    if (f->func != FuncKind::Reducer || c->args.size() != f->results.size())
      throw Fault{c->at, fmt::format("@{} cannot fold {} arguments", b_.text(c->callee), c->args.size())};
    for (size_t i = 0; i < c->args.size(); i++) fold.args.push_back(expr(c->args[i], f->results[i].type->elem));
    n = nodes_.make(f->results[0].type->elem);
    n->more = keep(std::move(fold));
    set_fold(n);
  } else {
    if (c->args.size() != 1 || !is_reduction(kind))
      throw Fault{c->at, fmt::format("{} is no reduction of {} arguments", kind, c->args.size())};
    bool logic = kind == "all" || kind == "any";
    const Node *value = term(c->args[0], logic ? DType::Bool : open(c->args[0]) ? want : DType::Invalid);
    n = nodes_.make(value->type, value);
    n->more = keep(Reduction{in_order});
    set_reduction(n, kind);
    if (jitter_) jitter_reduction(n, kind);
  }
  pop(mark);
  return n;
}

Node *Compiler::call(const Call *c, DType want) {
  std::string_view name = b_.text(c->callee);
  if (!c->iters.empty()) return reduction(c, name, want);
  if (c->global) return apply(callee(c), c->args);
  auto arity = [&](size_t n) {
    if (c->args.size() != n) throw Fault{c->at, fmt::format("{} has {} arguments, found {}", name, n, c->args.size())};
  };
  if (DType to = dtype_named(name); to != DType::Invalid) {
    arity(1);
    DType place = DType::Invalid;  // f16(1.0): the literal is an f16; f32(1), i32(1.5) convert
    if (open(c->args[0])) {
      bool whole = true;
      each_expr(c->args[0], [&](const Expr *x) { return whole &= x->kind != Kind::Float, true; });
      if (whole ? is_int(to) : is_float(to)) place = to;
    }
    return nodes_.cast(to, expr(c->args[0], place));
  }
  if (name == "convert") {
    arity(3);
    const Str *type = as<Str>(c->args[1]);
    DType to = type ? dtype_named(type->value) : DType::Invalid;
    if (to == DType::Invalid) throw Fault{c->at, "convert needs the name of a type"};
    return nodes_.cast(to, expr(c->args[0], DType::Invalid), false);
  }
  const Builtin *f = builtin(name);
  if (!f) throw Fault{c->at, fmt::format("no scalar function {}", name)};
  arity(size_t(f->arity));
  if (f->signature == Signature::Bits) {
    DType to = name.size() > 5 ? dtype_named(name.substr(5)) : DType::Invalid;
    if (to == DType::Invalid) throw Fault{c->at, fmt::format("no scalar function {}", name)};
    return nodes_.bits(to, expr(c->args[0], DType::Invalid));
  }
  if (f->signature == Signature::Where) {
    const Node *cond = expr(c->args[0], DType::Bool);
    auto [a, b] = pair(c->args[1], c->args[2], want);
    return nodes_.where(cond, a, b);
  }
  // One type for all: that of the first argument that is not made of literals.
  DType t = DType::Invalid;
  std::vector<const Node *> args(c->args.size());
  for (size_t i = 0; i < args.size() && t == DType::Invalid; i++)
    if (!open(c->args[i])) args[i] = expr(c->args[i], DType::Invalid), t = args[i]->type;
  if (t == DType::Invalid && f->signature != Signature::Test) t = want;
  for (size_t i = 0; i < args.size(); i++) {
    if (!args[i]) args[i] = expr(c->args[i], t);
    t = args[i]->type;
  }
  if (!f->library) {
    args.resize(3);
    if (Node *n = nodes_.builtin(name, args[0], args[1], args[2])) return n;
    throw Fault{c->at, fmt::format("{} has no {} arguments", name, dtype_name(t))};
  }
  if (!is_float(t))
    throw Fault{c->at, fmt::format("arguments of {} have type {}, expected floats", name, dtype_name(t))};
  DType in = t == DType::F64 ? DType::F64 : DType::F32;
  const Func *text = library_(name, t, fused_);
  if (!text) throw Fault{c->at, fmt::format("{} is not defined for {}", name, dtype_name(in))};
  Node *n = nodes_.make(in);
  n->more = keep(Apply{lambda_of_(text), args});
  set_apply(n);
  return nodes_.narrowed(t, n);
}

// ---- affine sums

const Node *Compiler::fold(Op op, const Node *a, const Node *b) {
  int64_t x, y;
  bool ca = is_constant(a, &x), cb = is_constant(b, &y);
  if (ca && cb) {
    Frame none{};
    return nodes_.constant(a->type, Scalar::of_int(nodes_.binary(op, a, b)->i(*nodes_.binary(op, a, b), none)));
  }
  if (op == Op::Add && ca && !x) return b;
  if ((op == Op::Add || op == Op::Sub) && cb && !y) return a;
  if (op == Op::Mul && ((ca && x == 1) || (cb && y == 0))) return b;
  if (op == Op::Mul && ((cb && y == 1) || (ca && x == 0))) return a;
  return nodes_.binary(op, a, b);
}

std::optional<Linear> Compiler::sum(const Linear &a, const Linear &b, bool minus) {
  Linear s{fold(minus ? Op::Sub : Op::Add, a.base, b.base), a.terms};
  const Node *zero = nodes_.constant(DType::Index, {});
  for (const Term &t : b.terms) {
    auto it = std::find_if(s.terms.begin(), s.terms.end(), [&](const Term &x) { return x.loop == t.loop; });
    if (it != s.terms.end()) it->coef = fold(minus ? Op::Sub : Op::Add, it->coef, t.coef);
    else s.terms.push_back({t.loop, minus ? fold(Op::Sub, zero, t.coef) : t.coef});
  }
  return s;
}

std::optional<Linear> Compiler::linear(const Expr *e) {
  switch (e->kind) {
    case Kind::Int: return Linear{nodes_.constant(DType::Index, Scalar::of_int(to<Int>(e).value)), {}};
    case Kind::Name: {
      auto it = names_.find(to<Name>(e).name);
      return it == names_.end() ? std::nullopt : it->second.linear;
    }
    case Kind::Unary: {
      auto &u = to<Unary>(e);
      auto a = u.op == Op::Neg ? linear(u.a) : std::nullopt;
      if (!a || a->base->type != DType::Index) return {};
      return sum({nodes_.constant(DType::Index, {}), {}}, *a, true);
    }
    case Kind::Binary: {
      auto &x = to<Binary>(e);
      if (x.op < Op::Add) return {};
      auto a = linear(x.a), b = a ? linear(x.b) : std::nullopt;
      if (!b || a->base->type != DType::Index || b->base->type != DType::Index) return {};
      if (x.op == Op::Add || x.op == Op::Sub) return sum(*a, *b, x.op == Op::Sub);
      if (a->terms.empty() && b->terms.empty()) return Linear{fold(x.op, a->base, b->base), {}};
      if (x.op != Op::Mul || (!a->terms.empty() && !b->terms.empty())) return {};
      if (a->terms.empty()) std::swap(a, b);
      for (Term &t : a->terms) t.coef = fold(Op::Mul, t.coef, b->base);
      a->base = fold(Op::Mul, a->base, b->base);
      return a;
    }
    case Kind::Call: {  // min, max .. of what is known; a cast to index
      auto &c = to<Call>(e);
      if (c.global || !c.iters.empty() || c.args.empty()) return {};
      std::string_view name = b_.text(c.callee);
      std::vector<const Node *> args;
      for (const Expr *x : c.args) {
        auto a = linear(x);
        if (!a || !a->terms.empty()) return {};
        args.push_back(a->base);
      }
      if (name == "index" && args.size() == 1 && !is_float(args[0]->type))
        return Linear{nodes_.cast(DType::Index, args[0]), {}};
      if ((name != "min" && name != "max") || args.size() != 2 || args[0]->type != args[1]->type) return {};
      return Linear{nodes_.builtin(name, args[0], args[1], nullptr), {}};
    }
    default: return {};
  }
}

const Node *Compiler::known(const Expr *e) {
  auto x = linear(e);
  return x && x->terms.empty() && x->base->type == DType::Index ? x->base : nullptr;
}

// Slots for the steps of a cell, and an entry in each loop that moves it.
void Compiler::steps(CellPlan &p) {
  for (const Linear &x : p.index)
    for (const Term &t : x.terms) {
      if (std::any_of(p.steps.begin(), p.steps.end(), [&](auto s) { return s.first == t.loop; })) continue;
      int64_t zero;
      if (is_constant(t.coef, &zero) && !zero) continue;
      int step = slot();
      p.steps.push_back({t.loop, step});
      unit_->loops[size_t(t.loop)]->steps.push_back({p.cell, step});
    }
}

const Access *Compiler::access(const Load *l) {
  Access x;
  x.buffer = buffer_of(l);
  x.at = l->at;
  size_t rank = unit_->buffers[size_t(x.buffer)].dims.size();
  if (DType t = unit_->buffers[size_t(x.buffer)].elem; !store_act(t))
    throw Fault{l->at, fmt::format("{} is no type to compute with", dtype_name(t))};
  if (l->index.size() != rank)
    throw Fault{l->at,
                fmt::format("{} has {} dimensions, found {} indices", b_.text(l->buffer), rank, l->index.size())};
  CellPlan plan;
  plan.buffer = x.buffer;
  bool affine = unit_->buffers[size_t(x.buffer)].known;
  std::vector<const Node *> index;
  for (const Expr *e : l->index) {
    if (e->kind == Kind::Range || e->kind == Kind::All) throw Fault{e->at, "expected an element, found a region"};
    index.push_back(this->index(e));
    auto lin = affine ? linear(e) : std::nullopt;
    affine = lin && lin->base->type == DType::Index;
    if (affine) plan.index.push_back(*lin);
  }
  x.index = nodes_.arena.copy(index);
  if (affine) {
    plan.cell = x.cell = slot();
    slot();
    steps(plan);
    unit_->cells.push_back(std::move(plan));
  }
  return nodes_.arena.make(x);
}

}  // namespace mlc::interp
