#include <cmath>

#include "arith/prove.h"
#include "arith/scope.h"
#include "llvm/body.h"
#include "math/contract.h"
#include "num/convert.h"
#include "text/text.h"

namespace mlc::ll {

static constexpr int kDeepest = 2000;  // of nested expressions

DType Body::type(const Expr *e, DType want) const {
  DType t = type_of(env_, e, DType::Invalid, nullptr);
  return t == DType::Invalid ? want : t;
}

Num Body::expr(const Expr *e, DType want) {
  struct Level {
    int &depth;
    explicit Level(int &d) : depth(d) { depth++; }
    ~Level() { depth--; }
  } level(nesting_);
  auto none = [&](DType t) -> Num { return {llvm::UndefValue::get(ops.value(t == DType::Invalid ? DType::I64 : t)), t}; };
  if (nesting_ > kDeepest) return fail(e->at, fmt::format("expressions are nested more than {} deep", kDeepest)), none(want);
  switch (e->kind) {
    case Kind::Int: {
      DType t = want == DType::Invalid ? DType::I64 : want;
      int64_t v = to<Int>(e).value;
      return {ops.literal(t, is_float(t) ? scalar_of(t, v) : narrow(t, v)), t};
    }
    case Kind::Float: {
      DType t = want == DType::Invalid ? DType::F64 : want;
      auto &f = to<Float>(e);
      return {ops.literal(t, f.nan_bits ? from_bits(t, f.nan_bits) : scalar_of(t, f.value)), t};
    }
    case Kind::Bool: return {ops.ir.getInt1(to<Bool>(e).value), DType::Bool};
    case Kind::Name:
      if (const Entity *x = find(to<Name>(e).name); x && !x->type->tensor) return {x->v, x->type->elem};
      break;
    case Kind::Load: return load(to<Load>(e));
    case Kind::Unary: return unary(to<Unary>(e), want);
    case Kind::Binary: return binary(to<Binary>(e), want);
    case Kind::Call: return call(to<Call>(e), want);
    default: break;
  }
  fail(e->at, fmt::format("{} cannot be compiled here", print(b_, e)));
  return none(want);
}

// ---- memory

std::optional<Entity> Body::buffer(const Expr *e, Sym name, bool global) {
  if (!global) {
    const Entity *x = find(name);
    if (x && x->type->tensor) return measured(*x);
    fail(e->at, fmt::format("{} is no buffer", b_.text(name)));
    return {};
  }
  const Const *c = m_.constant(name);
  if (!c) return fail(e->at, fmt::format("no constant @{}", b_.text(name))), std::nullopt;
  Entity k;
  k.type = c->type;
  k.v = ops.ir.CreateBitCast(u_.constant(constants_, name), ops.storage(c->type->elem)->getPointerTo());
  int64_t stride = 1, n = 0;
  for (size_t d = c->type->rank(); d-- > 0; stride *= std::max<int64_t>(n, 1)) {
    int_value(c->type->dims[d], &n);
    k.dims.insert(k.dims.begin(), ops.index(n)), k.strides.insert(k.strides.begin(), ops.index(stride));
  }
  return k;
}

bool Body::inside(const Entity &e, Exprs index) {
  for (size_t d = 0; d < index.size(); d++)
    if (!provably_inside(b_, index[d], e.type->dims[d], bounds)) return false;
  return true;
}

V Body::offset(const Entity &e, const std::vector<V> &index) {
  V at = e.first ? e.first : ops.index(0);
  for (size_t d = 0; d < index.size(); d++)
    at = ops.ir.CreateNSWAdd(at, ops.ir.CreateNSWMul(index[d], e.strides[d]));
  return at;
}

// The position of an element, checked where it must be.
V Body::place(const Entity &e, Exprs index, const Load &l) {
  std::vector<V> at;
  for (const Expr *i : index) at.push_back(this->index(i));
  if (u_.options.checked && !inside(e, index)) {
    V all = ops.ir.getTrue();
    for (size_t d = 0; d < at.size(); d++) all = ops.ir.CreateAnd(all, ops.ir.CreateICmpULT(at[d], e.dims[d]));
    std::vector<V> values = at;
    values.insert(values.end(), e.dims.begin(), e.dims.end());
    require(all, {{}, std::string(b_.text(l.buffer)), l.at, nullptr, at.size()}, values);
  }
  return offset(e, at);
}

Num Body::load(const Load &l) {
  auto e = buffer(&l, l.buffer, l.global);
  if (!e || l.index.size() != e->type->rank()) {
    if (e) fail(l.at, fmt::format("{} has {} dimensions, found {} indices", b_.text(l.buffer), e->type->rank(), l.index.size()));
    return {ops.index(0), DType::Index};
  }
  DType t = e->type->elem;
  V at = place(*e, l.index, l);
  return {ops.load(t, e->v, at), t};
}

bool Body::harmless(const Expr *e) {
  bool all = true;
  each_expr(e, [&](const Expr *x) {
    auto *l = as<Load>(x);
    if (!all || !l) return all;
    const Type *t = nullptr;
    if (l->global) t = m_.constant(l->buffer) ? m_.constant(l->buffer)->type : nullptr;
    else if (const Entity *b = find(l->buffer)) t = b->type;
    all = t && t->rank() == l->index.size();
    for (size_t d = 0; all && d < l->index.size(); d++) all = provably_inside(b_, l->index[d], t->dims[d], bounds);
    return all;
  });
  return all;
}

V Body::lazily(V cond, llvm::Type *t, const std::function<V()> &then, const std::function<V()> &other) {
  auto block = [&](const char *name) { return llvm::BasicBlock::Create(ops.c, name, fn_); };
  llvm::BasicBlock *yes = block("then"), *no = block("else"), *end = block("end");
  ops.ir.CreateCondBr(cond, yes, no);
  ops.ir.SetInsertPoint(yes);
  V a = then();
  yes = ops.ir.GetInsertBlock();
  ops.ir.CreateBr(end);
  ops.ir.SetInsertPoint(no);
  V b = other();
  no = ops.ir.GetInsertBlock();
  ops.ir.CreateBr(end);
  ops.ir.SetInsertPoint(end);
  llvm::PHINode *phi = ops.ir.CreatePHI(t, 2);
  phi->addIncoming(a, yes), phi->addIncoming(b, no);
  return phi;
}

V Body::where(const Expr *cond, const Expr *a, const Expr *b, DType t) {
  V c = truth(cond);
  if (harmless(a) && harmless(b)) {
    V x = expr(a, t).v;
    return ops.ir.CreateSelect(c, x, expr(b, t).v);
  }
  auto side = [&](const Expr *fact, const Expr *e) {
    size_t mark = bounds.mark();
    if (!reads_memory(fact)) bounds.assume(fact);
    V v = expr(e, t).v;
    bounds.pop(mark);
    return v;
  };
  return lazily(c, ops.value(t), [&] { return side(cond, a); }, [&] { return side(b_.unary(Op::Not, cond), b); });
}

// ---- operators

Num Body::unary(const Unary &e, DType want) {
  if (e.op == Op::Not) return {ops.ir.CreateNot(truth(e.a)), DType::Bool};
  DType t = type(&e, want);
  return {ops.negated(t, expr(e.a, t).v), t};
}

Num Body::binary(const Binary &e, DType want) {
  if (e.op == Op::And || e.op == Op::Or) {
    bool both = e.op == Op::And;
    V a = truth(e.a);
    if (harmless(e.b)) return {both ? ops.ir.CreateAnd(a, truth(e.b)) : ops.ir.CreateOr(a, truth(e.b)), DType::Bool};
    auto other = [&] {
      size_t mark = bounds.mark();
      if (!reads_memory(e.a)) bounds.assume(both ? e.a : b_.unary(Op::Not, e.a));
      V v = truth(e.b);
      bounds.pop(mark);
      return v;
    };
    auto known = [&] { return static_cast<V>(ops.ir.getInt1(!both)); };
    llvm::Type *t = ops.ir.getInt1Ty();
    return {both ? lazily(a, t, other, known) : lazily(a, t, known, other), DType::Bool};
  }
  bool compares = e.op >= Op::Eq && e.op <= Op::Ge;
  DType t = type(compares ? e.a : &e, compares ? DType::Invalid : want);
  if (compares && t == DType::Invalid) t = type(e.b, DType::Index);
  V a = expr(e.a, t).v, b = expr(e.b, t).v;
  if (compares) return {ops.compare(e.op, t, a, b), DType::Bool};
  if (is_float(t) && (e.op == Op::FloorDiv || e.op == Op::Mod)) fail(e.at, "// and % are of integers");
  bool divides = e.op == Op::Div || e.op == Op::FloorDiv || e.op == Op::Mod;
  if (t == DType::Index && divides && interval(e.a, bounds).lo >= 0 && interval(e.b, bounds).lo > 0)
    return {e.op == Op::Mod ? ops.ir.CreateURem(a, b) : ops.ir.CreateUDiv(a, b), t};
  return {ops.arithmetic(e.op, t, a, b), t};
}

// ---- calls

Num Body::call(const Call &c, DType want) {
  std::string_view name = b_.text(c.callee);
  auto cast = [&](DType to, bool saturate) -> Num {
    const Expr *e = c.args[0];
    DType from = type(e, DType::Invalid);
    if (from == DType::Invalid) {  // literals alone: of the type itself where they can be, else converted
      bool whole = true;
      each_expr(e, [&](const Expr *x) { return whole &= x->kind != Kind::Float, true; });
      from = whole ? (is_int(to) ? to : DType::I64) : is_float(to) ? to : DType::F64;
    }
    return {ops.cast(from, to, expr(e, from).v, saturate), to};
  };
  if (c.global) {
    const Func *f = m_.func(c.callee);
    if (!f || f->func != FuncKind::Scalar || f->results.size() != 1 || f->params.size() != c.args.size()) {
      fail(c.at, fmt::format("@{} cannot be called in an expression", name));
      return {ops.index(0), DType::Index};
    }
    std::vector<V> args;
    for (size_t i = 0; i < c.args.size(); i++) args.push_back(expr(c.args[i], f->params[i].def.type->elem).v);
    DType t = f->results[0].type->elem;
    llvm::Function *fn = u_.scalar(f);
    return {fn ? static_cast<V>(ops.ir.CreateCall(fn, args)) : llvm::UndefValue::get(ops.value(t)), t};
  }
  if (is_cast(name) && c.args.size() == 1) return cast(dtype_named(name), true);
  if (name == "convert" && c.args.size() == 3 && as<Str>(c.args[1])) return cast(dtype_named(to<Str>(c.args[1]).value), false);
  return builtin_call(c, want);
}

Num Body::builtin_call(const Call &c, DType want) {
  std::string_view name = b_.text(c.callee);
  const Builtin *f = builtin(name);
  if (!f || !c.iters.empty() || int(c.args.size()) != f->arity) {
    fail(c.at, fmt::format("{} cannot be compiled here", print(b_, &c)));
    return {ops.index(0), DType::Index};
  }
  if (f->signature == Signature::Bits) {
    DType from = type(c.args[0], DType::I64), to = dtype_named(name.substr(5));
    return {ops.bits(from, to, expr(c.args[0], from).v), to};
  }
  DType t = f->signature == Signature::Test ? type(c.args[0], DType::F64) : type(&c, want);
  if (f->signature == Signature::Where) return {where(c.args[0], c.args[1], c.args[2], t), t};
  std::vector<V> args;
  for (const Expr *a : c.args) args.push_back(expr(a, t).v);
  if (f->library) {
    DType in = is_small_float(t) ? DType::F32 : t;
    const Func *text = u_.library(name, in, has_fma_licence(b_, f_.notes.attrs));
    llvm::Function *fn = text ? u_.scalar(text) : nullptr;
    if (fn) return {ops.rounded(t, ops.ir.CreateCall(fn, args)), t};
  } else if (V v = ops.primitive(name, t, args)) {
    return {v, f->signature == Signature::Test ? DType::Bool : t};
  }
  fail(c.at, fmt::format("there is no {} of {}", name, dtype_name(t)));
  return {llvm::UndefValue::get(ops.value(t)), t};
}

}  // namespace mlc::ll
