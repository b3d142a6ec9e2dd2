#include "interp/compile.h"

#include <fmt/core.h>

#include <algorithm>

#include "interp/exec.h"
#include "ir/step.h"
#include "math/contract.h"
#include "text/text.h"

namespace mlc::interp {

namespace {

// `y[i] = y[i] + e`, `e + y[i]`, `y[i] * e`: a step of a sum or product.
const Binary *step_of(const Store &s) {
  auto *x = as<Binary>(s.value);
  return x && (x->op == Op::Add || x->op == Op::Mul) && (equal(x->a, s.target) || equal(x->b, s.target)) ? x : nullptr;
}

bool is_choice(const Build &b, const Call *c) {
  return c && !c->global && c->iters.empty() && c->args.size() == 3 && b.text(c->callee) == "where";
}

}  // namespace

const Act *Compiler::act(ActFn run, const void *what, uint32_t at) { return nodes_.arena.make(Act{run, what, at}); }

Acts Compiler::body(Stmts s) {
  size_t mark = log_.size();
  std::vector<const Act *> out;
  for (size_t i = 0; i < s.size();) {
    // Threads that take turns of one step combine what they have, where there are no blocks any more too.
    size_t n = threads_.empty() ? 0 : step_length(s, i, [&](Sym f) { return m_.func(f); });
    std::unordered_set<int> around = n ? combining_ : std::unordered_set<int>();
    for (const Stmt *x : s.subspan(i, n))
      if (auto *store = as<Store>(x)) combining_.insert(buffer_of(store->target));
    for (size_t end = i + std::max<size_t>(n, 1); i < end; i++) stmt(s[i], out);
    if (n) combining_ = std::move(around);
  }
  pop(mark);
  return nodes_.arena.copy(out);
}

std::string_view Compiler::origin() const {
  std::string s;
  for (Sym f : from_) s += (s.empty() ? " from " : ", ") + quote(b_.text(f));
  return nodes_.arena.text(s);
}

// ---- loops

LoopInfo *Compiler::open_loop(Sym name, const Expr *extent, bool free_order) {
  auto l = std::make_shared<LoopInfo>();
  kept_.push_back(l);
  const Node *start = known(extent);
  l->known = start;
  l->count = start ? start : index(extent);
  l->var = slot(), l->extent = slot(), l->free_order = free_order;
  int id = int(unit_->loops.size());
  unit_->loops.push_back(l.get());
  Linear self{nodes_.constant(DType::Index, {}), {{id, nodes_.constant(DType::Index, Scalar::of_int(1))}}};
  define(name, {DType::Index, l->var, -1, self});
  return l.get();
}

const Act *Compiler::nest(const std::vector<LoopInfo *> &loops, const Act *inner) {
  for (size_t i = loops.size(); i-- > 0;)
    inner = act(run_loop, keep(LoopAct{loops[i], nodes_.arena.copy(&inner, 1)}), inner->at);
  return inner;
}

// ---- statements

void Compiler::let(const Let *s, std::vector<const Act *> &out) {
  const Call *c = as<Call>(s->value);
  if (s->defs.size() == 1 && !s->defs[0].type->tensor) {
    DType t = s->defs[0].type->elem;
    const Node *value = expr(s->value, t);
    int k = slot();
    out.push_back(act(set_act(t), keep(SetAct{k, value}), s->at));
    define(s->defs[0].name, {t, k, -1, t == DType::Index ? linear(s->value) : std::nullopt});
    return;
  }
  if (!c || !c->global || !c->iters.empty())
    throw Fault{s->at, fmt::format("{} is no statement of a kernel", print(b_, s))};
  const Func *f = callee(c);
  if (f->results.size() != s->defs.size() || f->params.size() != c->args.size())
    throw Fault{s->at, fmt::format("@{} has {} arguments and {} results", b_.text(f->name), f->params.size(),
                                   f->results.size())};
  Apply a{lambda_of_(f), {}};
  for (size_t i = 0; i < c->args.size(); i++) a.args.push_back(expr(c->args[i], f->params[i].def.type->elem));
  ApplyAct x{keep(std::move(a)), {}};
  for (size_t i = 0; i < s->defs.size(); i++) x.slots.push_back(slot());
  for (size_t i = 0; i < s->defs.size(); i++) define(s->defs[i].name, {s->defs[i].type->elem, x.slots[i], -1, {}});
  out.push_back(act(run_apply, keep(std::move(x)), s->at));
}

void Compiler::compute(const Compute *s, std::vector<const Act *> &out) {
  size_t mark = log_.size();
  Syms outer = from_;
  if (!s->from.empty()) from_ = s->from;
  std::vector<LoopInfo *> loops;
  DomainAct domain{{}, s->results[0].name};
  for (const Iter &i : s->results[0].iters) loops.push_back(open_loop(i.name, i.extent, true));
  for (const Result &r : s->results) {
    int buffer = buffer_of(r.name, r.at, false);
    size_t rank = unit_->buffers[size_t(buffer)].dims.size();
    if (r.iters.size() != rank || loops.size() != rank)
      throw Fault{r.at, fmt::format("{} has {} dimensions, computed over {}", b_.text(r.name), rank, r.iters.size())};
    for (size_t d = 0; d < rank; d++) {
      const Node *n = known(r.iters[d].extent);
      domain.pairs.push_back({n ? n : index(r.iters[d].extent), unit_->buffers[size_t(buffer)].dims[d]});
      if (r.iters[d].name != s->results[0].iters[d].name)
        define(r.iters[d].name, find(s->results[0].iters[d].name, r.at));
    }
  }
  out.push_back(act(run_domain, keep(std::move(domain)), s->at));

  std::vector<const Access *> targets;
  std::vector<DType> types;
  for (const Result &r : s->results) {
    std::vector<const Expr *> index;
    for (const Iter &i : r.iters) index.push_back(b_.name(i.name));
    targets.push_back(access(b_.load(r.name, b_.list(index), r.at)));
    types.push_back(unit_->buffers[size_t(targets.back()->buffer)].elem);
  }
  const Act *inner;
  if (targets.size() == 1) {
    inner = act(store_act(types[0]), keep(StoreAct{targets[0], expr(s->value, types[0])}), s->at);
    if (races_) inner = act(run_traced, inner, s->at);
  } else {
    const Call *c = as<Call>(s->value);
    const Func *f = c && c->global ? callee(c) : nullptr;
    if (!f || f->func != FuncKind::Reducer || f->results.size() != targets.size() || c->args.size() != targets.size())
      throw Fault{s->at, "several results need a reducer of as many"};
    Fold fold{lambda_of_(f), {}, {}};
    size_t inside = log_.size();
    std::vector<LoopInfo *> over;
    for (const Iter &i : c->iters) over.push_back(open_loop(i.name, i.extent, false));
    fold.loops.assign(over.begin(), over.end());
    for (size_t i = 0; i < types.size(); i++) fold.args.push_back(expr(c->args[i], f->results[i].type->elem));
    pop(inside);
    inner = act(run_fold, keep(FoldAct{keep(std::move(fold)), targets, types}), s->at);
  }
  out.push_back(nest(loops, inner));
  from_ = outer;
  pop(mark);
}

// A reduce axis is bound to loops over threads, whose results combine.
bool Compiler::across_threads(const Block &s) {
  bool across = false;
  for (const Axis &a : s.axes)
    for (auto &[thread, combines] : threads_)
      if (a.kind == AxisKind::Reduce && mentions(a.binding, thread)) across = combines = true;
  return across;
}

void Compiler::block(const Block *s, std::vector<const Act *> &out) {
  size_t mark = log_.size();
  Syms outer = from_;
  if (!s->notes.from.empty()) from_ = s->notes.from;
  BlockAct x;
  x.name = s->name;
  std::vector<What> axes;
  x.guard = s->guard ? expr(s->guard, DType::Bool) : nullptr;  // all of the head is evaluated outside the block
  for (const Axis &a : s->axes) {
    AxisRun r{a.name, a.kind, slot(), nullptr, nullptr, -1};
    int proved = slot();
    auto lin = linear(a.binding);
    const Node *domain = known(a.domain);
    r.domain = domain ? domain : index(a.domain);
    if (lin && lin->base->type == DType::Index) {
      CellPlan plan;
      plan.cell = r.slot, plan.index = {*lin};
      if (domain) {
        plan.domain = slot(), r.proved = proved;
        unit_->domains.push_back({plan.domain, domain});
      }
      steps(plan);
      unit_->cells.push_back(std::move(plan));
    } else {
      r.binding = index(a.binding);
      lin = std::nullopt;
    }
    axes.push_back({DType::Index, r.slot, -1, lin});
    x.axes.push_back(r);
  }
  for (size_t i = 0; i < axes.size(); i++) define(s->axes[i].name, axes[i]);
  std::unordered_set<int> around = combining_;
  if (across_threads(*s))
    each_stmt(s->body, [&](const Stmt *t) {
      if (auto *store = as<Store>(t)) combining_.insert(buffer_of(store->target));
    });
  x.inits = body(s->inits);
  x.body = body(s->body);
  combining_ = std::move(around);
  out.push_back(act(run_block, keep(std::move(x)), s->at));
  from_ = outer;
  pop(mark);
}

void Compiler::define_buffer(Sym name, int buffer, uint32_t) {
  define(name, {unit_->buffers[size_t(buffer)].elem, -1, buffer, {}});
}

void Compiler::alloc(const Alloc *s, std::vector<const Act *> &out) {
  const Type *t = s->def.type;
  AllocAct x{-1, s->base ? buffer_of(s->base, s->at, false) : -1, s->offset ? index(s->offset) : nullptr};
  std::vector<const Node *> dims;
  bool all_known = true;
  for (const Expr *e : t->dims) {
    const Node *n = known(e);
    all_known &= n != nullptr;
    dims.push_back(n ? n : index(e));
  }
  x.buffer = add_buffer(s->def.name, t);
  BufferInfo &info = unit_->buffers.back();
  info.dim_nodes = dims, info.known = all_known, info.own_strides = true;
  define_buffer(s->def.name, x.buffer, s->at);
  out.push_back(act(run_alloc, keep(x), s->at));
}

Operand Compiler::region(const Load *l) {
  Operand o;
  o.region = true;
  o.buffer = buffer_of(l);
  size_t rank = unit_->buffers[size_t(o.buffer)].dims.size();
  if (l->index.size() != rank)
    throw Fault{l->at,
                fmt::format("{} has {} dimensions, found {} indices", b_.text(l->buffer), rank, l->index.size())};
  for (const Expr *e : l->index) {
    auto *r = as<Range>(e);
    bool all = e->kind == Kind::All;
    o.lo.push_back(r ? index(r->lo) : all ? nullptr : index(e));
    o.extent.push_back(r ? index(r->extent) : nullptr);
    o.drop.push_back(!r && !all);
  }
  return o;
}

void Compiler::view(const View *s, std::vector<const Act *> &out) {
  const Type *t = s->def.type;
  auto source = keep(region(s->source));
  std::vector<const Node *> dims;
  bool all_known = unit_->buffers[size_t(source->buffer)].known;
  for (const Expr *e : t->dims) {
    const Node *n = known(e);
    all_known &= n != nullptr;
    dims.push_back(n ? n : index(e));
  }
  int k = add_buffer(s->def.name, t);
  BufferInfo &info = unit_->buffers[size_t(k)];
  const BufferInfo &base = unit_->buffers[size_t(source->buffer)];
  info.dim_nodes = dims, info.known = all_known;
  info.strides.clear();  // those of the base
  for (size_t d = 0; d < source->drop.size(); d++)
    if (!source->drop[d]) info.strides.push_back(base.strides[d]);
  if (info.strides.size() != t->rank() || base.elem != t->elem)
    throw Fault{s->at, fmt::format("{} is no {}", print(b_, s->source), print(b_, t))};
  define_buffer(s->def.name, k, s->at);
  out.push_back(act(run_view, keep(ViewAct{k, source->buffer, source}), s->at));
}

Operand Compiler::operand(const Expr *e, const Type *want) {
  Operand o;
  bool tensor = want && want->tensor;
  if (want && !tensor) {
    o.value = expr(e, want->elem);
    return o;
  }
  if (auto *n = as<Name>(e)) {
    const What &w = find(n->name, n->at);
    if (w.buffer >= 0) o.buffer = w.buffer;
    else if (!tensor) o.value = expr(e, DType::Invalid);
    else throw Fault{e->at, fmt::format("{} is a scalar, expected a buffer", b_.text(n->name))};
  } else if (auto *g = as<Global>(e)) {
    o.buffer = buffer_of(g->name, g->at, true);
  } else if (auto *l = as<Load>(e)) {
    return region(l);
  } else if (tensor) {
    throw Fault{e->at, fmt::format("{} is no buffer", print(b_, e))};
  } else {
    o.literal = e;  // of an operator or a builtin
    bool names = false;
    each_expr(e, [&](const Expr *x) { return names |= x->kind == Kind::Name || x->kind == Kind::Load, true; });
    if (names && e->kind != Kind::List && e->kind != Kind::None && e->kind != Kind::Str) o.value = index(e);
  }
  return o;
}

void Compiler::call_stmt(const CallStmt *s, std::vector<const Act *> &out) {
  CallAct x{s, nullptr, {}, {}};
  const Call *c = s->call;
  if (c->global) {
    x.callee = m_.func(c->callee);
    if (!x.callee) throw Fault{s->at, fmt::format("no function @{}", b_.text(c->callee))};
    std::vector<const Param *> params;
    for (const Param &p : x.callee->params) params.push_back(&p);
    if (params.size() != c->args.size())
      throw Fault{s->at, fmt::format("@{} has {} parameters, found {} arguments", b_.text(c->callee), params.size(),
                                     c->args.size())};
    for (size_t i = 0; i < c->args.size(); i++) x.args.push_back(operand(c->args[i], params[i]->def.type));
  } else {
    for (const Expr *e : c->args) x.args.push_back(operand(e, nullptr));
  }
  for (const Expr *e : s->dests) {
    Operand o = operand(e, nullptr);
    if (o.buffer < 0) throw Fault{e->at, fmt::format("{} is no destination", print(b_, e))};
    x.dests.push_back(std::move(o));
  }
  out.push_back(act(run_call, keep(std::move(x)), s->at));
}

const Node *Compiler::stored(const Store &s, DType t) {
  if (!jitter_) return expr(s.value, t);
  auto *c = as<Call>(s.value);
  if (is_choice(b_, c) && equal(c->args[2], s.target)) {  // a step under a condition: y = where(c, y + e, y)
    Store inner = s;
    inner.value = c->args[1];
    return nodes_.where(expr(c->args[0], DType::Bool), stored(inner, t), expr(c->args[2], t));
  }
  // A contracted step: y = fma(a, b, y).
  if (c && !c->global && c->args.size() == 3 && b_.text(c->callee) == "fma" && equal(c->args[2], s.target))
    return nodes_.jittered(Op::Add, expr(c->args[2], t), nodes_.jittered(Op::Mul, expr(c->args[0], t), expr(c->args[1], t)));
  const Binary *step = step_of(s);
  return step ? nodes_.jittered(step->op, term(step->a, t), term(step->b, t)) : expr(s.value, t);
}

// A term of a sum: a product may be rounded with the addition, or before it.
const Node *Compiler::term(const Expr *e, DType want) {
  auto *x = as<Binary>(e);
  if (auto *c = as<Call>(e); jitter_ && is_choice(b_, c) && c->args[1]->kind == Kind::Binary) {
    const Node *value = term(c->args[1], want);
    return nodes_.where(expr(c->args[0], DType::Bool), value, expr(c->args[2], value->type));
  }
  if (!jitter_ || !x || x->op != Op::Mul) return expr(e, want);
  auto [a, b] = pair(x->a, x->b, want);
  return nodes_.jittered(Op::Mul, a, b);
}

void Compiler::stmt(const Stmt *s, std::vector<const Act *> &out) {
  switch (s->kind) {
    case Kind::Let: return let(&to<Let>(s), out);
    case Kind::Compute: return compute(&to<Compute>(s), out);
    case Kind::Block: return block(&to<Block>(s), out);
    case Kind::Alloc: return alloc(&to<Alloc>(s), out);
    case Kind::View: return view(&to<View>(s), out);
    case Kind::CallStmt: return call_stmt(&to<CallStmt>(s), out);
    case Kind::Store: {
      auto &x = to<Store>(s);
      const Access *target = access(x.target);
      DType t = unit_->buffers[size_t(target->buffer)].elem;
      bool alone = x.atomic && combining_.insert(target->buffer).second;
      const Act *store = act(store_act(t), keep(StoreAct{target, stored(x, t)}), s->at);
      bool traced = races_ && !combining_.count(target->buffer);
      if (alone) combining_.erase(target->buffer);
      return out.push_back(traced ? act(run_traced, store, s->at) : store);
    }
    case Kind::Assume: {
      auto &x = to<Assume>(s);
      std::string_view nodes = origin();
      std::string message =
          fmt::format("assume {} does not hold{}{}", print(b_, x.cond), nodes.empty() ? "" : ",", nodes);
      return out.push_back(act(run_assume, keep(AssumeAct{expr(x.cond, DType::Bool), message}), s->at));
    }
    case Kind::For: {
      auto &x = to<For>(s);
      size_t mark = log_.size();
      Syms outer = from_;
      if (!x.notes.from.empty()) from_ = x.notes.from;
      // Threads that meet in `shared` wait for each other, in barriers that mlc-sync has yet to write.
      bool threads = x.loop == LoopKind::Bind && shared_ && !b_.text(x.tag).starts_with("blockIdx.");
      bool serial = x.loop == LoopKind::Serial || x.loop == LoopKind::Unroll;
      LoopInfo *l = open_loop(x.iter.name, x.iter.extent, !serial && !threads);
      l->marked = races_ && l->free_order, l->bound = x.loop == LoopKind::Bind, l->name = x.iter.name;
      bool thread = x.loop == LoopKind::Bind && !b_.text(x.tag).starts_with("blockIdx.");
      bool first = thread && threads_.try_emplace(x.iter.name).second;
      Acts inner = body(x.body);
      if (first) {
        if (threads_[x.iter.name]) l->free_order = false;  // its first turn initialises
        threads_.erase(x.iter.name);
      }
      from_ = outer;
      pop(mark);
      return out.push_back(act(run_loop, keep(LoopAct{l, inner}), s->at));
    }
    case Kind::If: {
      auto &x = to<If>(s);
      const Node *cond = expr(x.cond, DType::Bool);
      Acts then = body(x.body), other = body(x.other);
      return out.push_back(act(run_if, keep(IfAct{cond, then, other}), s->at));
    }
    case Kind::While: {
      auto &x = to<While>(s);
      const Node *cond = expr(x.cond, DType::Bool);
      return out.push_back(act(run_while, keep(WhileAct{cond, body(x.body)}), s->at));
    }
    default: throw Fault{s->at, fmt::format("no statement of a kernel: {}", print(b_, s))};
  }
}

// ---- functions

const Unit *Compiler::kernel(const Func &f, Stmts stmts, const Notes &notes) {
  auto unit = std::make_shared<Unit>();
  kept_.push_back(unit);
  unit_ = unit.get();
  unit_->func = &f, unit_->name = f.name;
  from_ = notes.from.empty() ? f.notes.from : notes.from;
  fused_ = has_fma_licence(b_, f.notes.attrs);
  each_stmt(stmts, [&](const Stmt *s) {
    if (auto *a = as<Alloc>(s)) shared_ |= a->def.type->scope && b_.text(a->def.type->scope) == "shared";
  });
  auto scalar = [&](Sym name, DType t) {
    int k = slot();
    auto lin = is_float(t) ? std::nullopt : std::optional(Linear{nodes_.slot(t, k), {}});
    define(name, {t, k, -1, lin});
    return k;
  };
  auto buffer = [&](const Def &d) {
    int k = add_buffer(d.name, d.type);
    unit_->buffers[size_t(k)].known = true;
    define_buffer(d.name, k, d.at);
    return k;
  };
  for (Sym d : f.dims) unit_->dim_slots.push_back(scalar(d, DType::Index));
  for (const Param &p : f.params) {
    bool tensor = p.def.type->tensor;
    unit_->param_slots.push_back(tensor ? -1 : scalar(p.def.name, p.def.type->elem));
    unit_->param_buffers.push_back(tensor ? buffer(p.def) : -1);
  }
  for (const Def &d : f.results) {
    if (!d.type->tensor)
      throw Fault{d.at, fmt::format("result {} of a kernel is a scalar, expected a buffer", b_.text(d.name))};
    unit_->result_buffers.push_back(buffer(d));
  }
  unit_->body = body(stmts);
  unit_->slots = slots_;
  return unit_;
}

std::pair<const Unit *, const Node *> Compiler::scalar(const Func &f, const Expr *e, DType want) {
  kernel(f, {}, {});
  const Node *n = expr(e, want);
  unit_->slots = slots_;
  return {unit_, n};
}

const Lambda *Compiler::lambda(const Func &f) {
  auto l = std::make_shared<Lambda>();
  kept_.push_back(l);
  Unit none;  // no buffers, no loops
  unit_ = &none;
  l->name = f.name;
  for (const Param &p : f.params) {
    l->params.push_back(slot());
    define(p.def.name, {p.def.type->elem, l->params.back(), -1, {}});
  }
  size_t mark = log_.size();
  auto last = [&](Stmts stmts, std::vector<int> &slots, Acts &acts) {
    std::vector<const Act *> out;
    for (const Stmt *s : stmts) {
      if (s->kind != Kind::Let) throw Fault{s->at, fmt::format("no statement of a scalar function: {}", print(b_, s))};
      stmt(s, out);
    }
    for (const Def &d : f.results) {
      const What &w = find(d.name, d.at);
      if (w.slot < 0 || w.type != d.type->elem)
        throw Fault{d.at, fmt::format("{} is not defined as {}", b_.text(d.name), dtype_name(d.type->elem))};
      slots.push_back(w.slot);
      l->types.push_back(w.type);
    }
    acts = nodes_.arena.copy(out);
    pop(mark);
  };
  in_reducer_ = f.func == FuncKind::Reducer;
  if (in_reducer_) last(f.inits, l->inits, l->init);
  last(f.body, l->results, l->body);
  if (!none.buffers.empty()) throw Fault{f.at, fmt::format("@{} reads a buffer", b_.text(f.name))};
  l->slots = slots_;
  return l.get();
}

}  // namespace mlc::interp
