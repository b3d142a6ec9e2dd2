// Calls: the dimensions of the callee are solved here and passed, buffers become pointers.
#include "arith/prove.h"
#include "llvm/body.h"
#include "text/text.h"

namespace mlc::ll {

static bool is_kept(const Expr *i) { return i->kind == Kind::All || i->kind == Kind::Range; }
static const Expr *lower_end(Build &b, const Expr *i) {
  return i->kind == Kind::All ? b.integer(0) : i->kind == Kind::Range ? to<Range>(i).lo : i;
}

Argument Body::argument_type(const Expr *e, DType want) {
  if (auto *n = as<Name>(e)) {
    if (const Entity *x = find(n->name); x && x->type->tensor) return {x->type, nullptr, b_.list(x->written)};
  } else if (auto *g = as<Global>(e)) {
    if (const Const *c = m_.constant(g->name)) return {c->type, nullptr, {}};
  } else if (auto *l = as<Load>(e); l && is_region(l->index)) {
    const Type *t = nullptr;
    if (l->global) t = m_.constant(l->buffer) ? m_.constant(l->buffer)->type : nullptr;
    else if (const Entity *x = find(l->buffer)) t = x->type;
    Exprs strides;
    if (t && t->rank() == l->index.size()) {
      const Type *r = region_type(b_, t, l->index, &strides);
      return {r, nullptr, strides};
    }
  }
  DType t = type(e, want);
  return {b_.scalar(t), t == DType::Index ? e : nullptr, {}};
}

// A region of a buffer, checked to be inside.
Body::Part Body::part(const Entity &e, Exprs index, uint32_t at) {
  Part p;
  Exprs all = e.written.empty() ? strides_of(b_, e.type) : Exprs(e.written);
  V fits = ops.ir.getTrue();
  for (size_t d = 0; d < index.size() && d < e.type->rank(); d++) {
    const Expr *i = index[d], *lo = lower_end(b_, i), *dim = e.type->dims[d];
    const Expr *extent = i->kind == Kind::All ? dim : i->kind == Kind::Range ? to<Range>(i).extent : b_.integer(1);
    p.lo.push_back(this->index(lo));
    if (is_kept(i)) p.strides.push_back(all[d]), p.extents.push_back(extent);
    const Expr *zero = b_.integer(0);
    if (!u_.options.checked || i->kind == Kind::All ||
        (provably_less_equal(b_, zero, lo, bounds) && provably_less_equal(b_, zero, extent, bounds) &&
         provably_less_equal(b_, b_.binary(Op::Add, lo, extent), dim, bounds)))
      continue;
    V n = this->index(extent), z = ops.index(0);
    V inside = ops.ir.CreateAnd(ops.ir.CreateICmpSGE(p.lo[d], z), ops.ir.CreateICmpSGE(n, z));
    inside = ops.ir.CreateAnd(inside, ops.ir.CreateICmpSLE(n, e.dims[d]));
    fits = ops.ir.CreateAnd(fits, ops.ir.CreateAnd(inside, ops.ir.CreateICmpSLE(p.lo[d], ops.ir.CreateSub(e.dims[d], n))));
  }
  require(fits, {{}, "a region is outside its buffer", at, nullptr, 0});
  return p;
}

V Body::argument(const Expr *e, const Def &param, bool written, uint32_t at) {
  if (!param.type->tensor) return expr(e, param.type->elem).v;
  std::string_view name = b_.text(param.name);
  V none = llvm::Constant::getNullValue(ops.ir.getInt8PtrTy());
  auto *l = as<Load>(e);
  auto *n = as<Name>(e);
  auto *g = as<Global>(e);
  if (!l && !n && !g)
    return fail(at, fmt::format("argument {}: expected a buffer, found {}", name, print(b_, e))), none;
  auto x = buffer(e, l ? l->buffer : n ? n->name : g->name, l ? l->global : !n);
  if (!x) return none;
  if (written && !x->writable) fail(at, fmt::format("argument {} is written, but its buffer is read only", name));
  Part p;
  if (l) {
    if (l->index.size() != x->type->rank()) return fail(at, fmt::format("argument {} is no region", name)), none;
    p = part(*x, l->index, at);
  } else {
    if (x->written.empty() && !x->first) return i8(x->v);
    p.strides = x->written, p.extents.assign(x->type->dims.begin(), x->type->dims.end());
    if (p.strides.empty()) for (const Expr *s : strides_of(b_, x->type)) p.strides.push_back(s);
    p.lo.assign(x->type->rank(), ops.index(0));
  }
  // A distance matters only in a dimension of more than one element.
  Exprs want = strides_of(b_, b_.tensor(x->type->elem, b_.list(p.extents)));
  bool dense = true;
  for (size_t d = 0; d < p.strides.size(); d++)
    dense = dense && (is_int(p.extents[d], 1) || provably_equal(b_, p.strides[d], want[d], bounds));
  if (!dense && !attr(b_, param.type->attrs, "strides"))
    fail(at, fmt::format("argument {} is a region with gaps, expected a dense buffer", name));
  V place = offset(*x, p.lo);
  auto *zero = llvm::dyn_cast<llvm::ConstantInt>(place);
  if (info(x->type->elem).bits < 8 && !(zero && zero->isZero()))
    fail(at, fmt::format("argument {} is a region of packed elements", name));
  return i8(ops.ir.CreateInBoundsGEP(ops.storage(x->type->elem), x->v, place));
}

void Body::call(const CallStmt &c) {
  std::string_view name = b_.text(c.call->callee);
  if (!c.call->global) {
    bool one = c.call->args.size() == 1 && c.dests.size() == 1;
    if (one && name == "Copy") return copy(c, nullptr);
    if (one && name == "fill") return copy(c, c.call->args[0]);
    return fail(c.at, fmt::format("`{}` cannot be compiled", print(b_, c.call)));
  }
  const Func *callee = m_.func(c.call->callee);
  if (callee && (callee->func == FuncKind::Extern || callee->func == FuncKind::Intrinsic))
    return fail(c.at, fmt::format("{} @{} cannot be compiled: it is another's code",
                                  callee->func == FuncKind::Extern ? "extern" : "intrinsic", name));
  if (!callee || (callee->func != FuncKind::Kernel && callee->func != FuncKind::Graph))
    return fail(c.at, fmt::format("@{} cannot be called here: it is no kernel and no graph", name));
  const Compiled *fn = u_.function(*callee);
  if (!fn) return;
  Exprs args = c.call->args;
  if (args.size() != callee->params.size() || c.dests.size() != callee->results.size())
    return fail(c.at, fmt::format("@{} has {} parameters and {} results, found {} and {}", name, callee->params.size(),
                                  callee->results.size(), args.size(), c.dests.size()));
  std::vector<Argument> types, results;
  for (size_t i = 0; i < args.size(); i++) types.push_back(argument_type(args[i], callee->params[i].def.type->elem));
  for (size_t i = 0; i < c.dests.size(); i++) {
    const Type *t = callee->results[i].type;
    results.push_back(t->rank() ? argument_type(c.dests[i], t->elem) : Argument{t, nullptr, {}});
  }
  Solution dims = solve_dims(b_, *callee, types, results);
  if (!dims) return fail(c.at, fmt::format("the dimensions of @{} do not follow from its arguments", name));
  for (const Solution::Equation &e : dims.open) {
    if (u_.options.checks == RunChecks::None || provably_equal(b_, e.wanted, e.found, bounds)) continue;
    require(ops.ir.CreateICmpEQ(index(e.wanted), index(e.found)),
            {c.from, fmt::format("argument {} of @{}: expected a size of {}, found {}",
                                 print_name(b_, callee->params[e.param].def.name), name, print(b_, e.wanted), print(b_, e.found)),
             c.at, nullptr, 0});
  }
  std::vector<V> list;
  for (Sym d : callee->dims) {
    const Expr *e = dims.names.at(d);
    list.push_back(index(e));
    if (u_.options.checked && !provably_less_equal(b_, b_.integer(0), e, bounds))
      require(ops.ir.CreateICmpSGE(list.back(), ops.index(0)),
              {c.from, fmt::format("dimension {} of @{} is negative", b_.text(d), name), c.at, nullptr, 0});
  }
  for (size_t i = 0; i < args.size(); i++)
    list.push_back(argument(args[i], callee->params[i].def, callee->params[i].mode != Mode::In, c.at));
  std::vector<std::pair<Def, V>> scalars;
  for (size_t i = 0; i < c.dests.size(); i++) {
    const Def &r = callee->results[i];
    if (r.type->tensor) {
      list.push_back(argument(c.dests[i], r, true, c.at));
      continue;
    }
    auto *n = as<Name>(c.dests[i]);
    if (!n) return fail(c.at, fmt::format("result {} of @{}: expected a name", b_.text(r.name), name));
    llvm::IRBuilder<> entry(&fn_->getEntryBlock(), fn_->getEntryBlock().begin());
    V p = entry.CreateAlloca(ops.value(r.type->elem));
    scalars.push_back({{n->name, n->at, r.type}, p});
    list.push_back(i8(p));
  }
  list.push_back(constants_);
  if (u_.diag.errors()) return;
  V code = ops.ir.CreateCall(fn->fn, list);
  if (!fn->failures.empty()) {
    V ok = ops.ir.CreateICmpEQ(code, ops.ir.getInt32(0));
    int base = first_code + int(failures.size());
    require(ok, 0);
    auto &branch = llvm::cast<llvm::BranchInst>(*ops.ir.GetInsertBlock()->getSinglePredecessor()->getTerminator());
    auto *ret = llvm::cast<llvm::ReturnInst>(branch.getSuccessor(1)->getTerminator());
    llvm::IRBuilder<>::InsertPointGuard guard(ops.ir);
    ops.ir.SetInsertPoint(ret);
    ret->setOperand(0, ops.ir.CreateAdd(code, ops.ir.getInt32(uint32_t(base))));
    for (Failure f : fn->failures) {
      if (f.from.empty()) f.from = c.from;
      failures.push_back(f);
    }
  }
  for (auto &[d, p] : scalars) {
    define_value(d, ops.ir.CreateLoad(ops.value(d.type->elem), p));
    if (d.type->elem == DType::Index) bounds.index(d.name);
    if (depth_ == 0 && defined) defined(d.name);
  }
}

// call Copy(x) -> y, call fill(v) -> y: loops around a store to each element; value: of fill.
void Body::copy(const CallStmt &c, const Expr *value) {
  Argument to = argument_type(c.dests[0], DType::Index), from = argument_type(c.call->args[0], DType::Index);
  const Type *t = to.type;
  if (!t->tensor) return fail(c.at, fmt::format("{}: expected a buffer", print(b_, c.dests[0])));
  if (!value && (!from.type->tensor || from.type->elem != t->elem || from.type->rank() != t->rank()))
    return fail(c.at, fmt::format("`{}`: source and destination differ in type", print(b_, c.call)));
  std::vector<const Expr *> turn;
  for (size_t d = 0; d < t->rank(); d++) turn.push_back(b_.name(b_.sym(fmt::format("i{}'", d))));
  auto element = [&](const Expr *e) -> const Expr * {
    if (auto *g = as<Global>(e)) return b_.load(g->name, b_.list(turn), e->at, true);
    auto *l = as<Load>(e);
    if (!l) return b_.load(mlc::to<Name>(e).name, b_.list(turn), e->at);
    std::vector<const Expr *> index;
    size_t d = 0;
    for (const Expr *i : l->index) index.push_back(is_kept(i) ? fold(b_, Op::Add, lower_end(b_, i), turn[d++]) : i);
    return b_.load(l->buffer, b_.list(index), e->at, l->global);
  };
  const Stmt *s = b_.make(Store{{}, false, as<Load>(element(c.dests[0])), value ? value : element(c.call->args[0]), {}});
  for (size_t d = t->rank(); d-- > 0;) {
    Iter i = {mlc::to<Name>(turn[d]).name, t->dims[d], c.at};
    s = b_.make(For{{}, LoopKind::Serial, i, {}, {}, b_.stmts({s})});
  }
  scoped([&] { stmts(b_.stmts({s})); });
}

}  // namespace mlc::ll
