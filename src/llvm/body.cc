#include <llvm/IR/MDBuilder.h>

#include "llvm/body.h"

#include "arith/prove.h"
#include "arith/scope.h"
#include "arith/simplify.h"
#include "compact/compact.h"
#include "emit/unit.h"
#include "ir/edit.h"
#include "text/text.h"

namespace mlc::ll {

Body::Body(Unit &unit, const Module &m, const Func &f, llvm::Function *fn, V constants)
    : ops(unit.ops), bounds(unit.b), u_(unit), b_(unit.b), m_(m), f_(f), fn_(fn), constants_(constants),
      env_(unit.b, m, nullptr) {
  enter(bounds, f);
}

void Body::fail(uint32_t at, std::string message) { u_.diag.error(at, "@{}: {}", b_.text(f_.name), message); }

// ---- names

void Body::define(Sym name, Entity e) {
  auto it = names_.find(name);
  log_.push_back({name, it == names_.end() ? std::nullopt : std::optional(it->second)});
  env_.define(name, e.type);
  names_[name] = std::move(e);
}
void Body::define_dim(Sym name, V v) { define(name, {b_.index(), v, false, nullptr, {}, {}, {}}); }
const Entity *Body::find(Sym name) const {
  auto it = names_.find(name);
  return it == names_.end() ? nullptr : &it->second;
}
Sym Body::latest(Sym name) const {
  for (auto it = latest_.find(name); it != latest_.end(); it = latest_.find(name)) name = it->second;
  return name;
}

void Body::define_buffer(const Def &d, V pointer, bool writable) {
  const Type *t = d.type;
  Entity e;
  e.type = t, e.writable = writable;
  e.v = ops.ir.CreateBitCast(pointer, ops.storage(t->elem)->getPointerTo());
  if (attr(b_, t->attrs, "layout")) fail(d.at, fmt::format("{}: a layout cannot be compiled", b_.text(d.name)));
  if (attr(b_, t->attrs, "strides"))
    for (const Expr *s : strides_of(b_, t)) e.written.push_back(s);
  std::unordered_set<Sym> names;
  collect_names(t, names);
  bool known = std::all_of(names.begin(), names.end(), [&](Sym s) { return find(s); });
  define(d.name, known ? measured(e) : e);
}

// With dimensions and strides. Those of a result whose size is data are known later.
Entity Body::measured(Entity e) {
  if (!e.dims.empty()) return e;
  for (const Expr *x : e.type->dims) e.dims.push_back(index(x));
  for (const Expr *s : e.written) e.strides.push_back(index(s));
  if (!e.written.empty()) return e;
  e.strides.resize(e.dims.size());
  V stride = ops.index(1);
  for (size_t k = e.dims.size(); k-- > 0; stride = ops.ir.CreateMul(stride, e.dims[k])) e.strides[k] = stride;
  return e;
}

void Body::scoped(const std::function<void()> &f) {
  size_t env = env_.mark(), known = bounds.mark(), names = log_.size();
  depth_++;
  f();
  depth_--;
  bounds.pop(known), env_.pop(env);
  for (; log_.size() > names; log_.pop_back()) {
    auto &[name, old] = log_.back();
    if (old) names_[name] = *old;
    else names_.erase(name);
  }
}

// The statements behind a second definition of a name that is still seen, under another name.
Stmts Body::renamed(Sym name, Stmts rest) {
  Sym next = b_.sym(fmt::format("{}'{}", b_.text(name), ++renames_));
  latest_[name] = next;
  return substitute(b_, rest, {{name, b_.name(next)}});
}

// ---- checks

void Body::require(V cond, int code) {
  if (auto *k = llvm::dyn_cast<llvm::ConstantInt>(cond); k && k->isOne()) return;
  llvm::BasicBlock *bad = llvm::BasicBlock::Create(ops.c, "fails", fn_), *good = llvm::BasicBlock::Create(ops.c, "", fn_);
  ops.ir.CreateCondBr(cond, good, bad, llvm::MDBuilder(ops.c).createBranchWeights(1 << 20, 1));
  ops.ir.SetInsertPoint(bad);
  ops.ir.CreateRet(ops.ir.getInt32(uint32_t(code)));
  ops.ir.SetInsertPoint(good);
}

void Body::require(V cond, Failure f, const std::vector<V> &values) {
  if (auto *k = llvm::dyn_cast<llvm::ConstantInt>(cond); k && k->isOne()) return;
  f.func = &f_;
  failures.push_back(f);
  require(cond, first_code + int(failures.size()));
  if (values.empty()) return;
  auto &branch = llvm::cast<llvm::BranchInst>(*ops.ir.GetInsertBlock()->getSinglePredecessor()->getTerminator());
  llvm::IRBuilder<>::InsertPointGuard guard(ops.ir);
  ops.ir.SetInsertPoint(branch.getSuccessor(1)->getTerminator());
  for (size_t i = 0; i < values.size() && i < UnitOptions::kValues; i++)
    ops.ir.CreateStore(values[i], ops.ir.CreateConstInBoundsGEP1_64(ops.ir.getInt64Ty(), u_.values(), i));
}

// A dimension of 0 counts as one: strides must fit too.
V Body::product(V size, V dim, V &ok) {
  V one = ops.ir.CreateSelect(ops.ir.CreateICmpEQ(dim, ops.index(0)), ops.index(1), dim);
  V r = ops.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smul_with_overflow, size, one);
  V v = ops.ir.CreateExtractValue(r, 0), over = ops.ir.CreateExtractValue(r, 1);
  V fits = ops.ir.CreateAnd(ops.ir.CreateNot(over), ops.ir.CreateICmpSLE(v, ops.index(int64_t(1) << 62)));
  ok = ops.ir.CreateAnd(ok, ops.ir.CreateAnd(fits, ops.ir.CreateICmpSGE(dim, ops.index(0))));
  return v;
}

// ---- statements

void Body::stmts(Stmts body) {
  for (size_t i = 0; i < body.size(); i++) {
    const Stmt *s = body[i];
    if (Sym d = defined_by(s); d && find(d)) {
      std::vector<const Stmt *> copy(body.begin(), body.begin() + ptrdiff_t(i) + 1);
      Stmts rest = renamed(d, body.subspan(i + 1));
      auto rename = [&](Def &def) { def.name = latest(d); };
      if (auto *l = as<Let>(s)) copy[i] = edited(b_, *l, [&](Let &n) {
        Def def = n.defs[0];
        rename(def);
        n.defs = b_.one(def);
      });
      if (auto *a = as<Alloc>(s)) copy[i] = edited(b_, *a, [&](Alloc &n) { rename(n.def); });
      if (auto *v = as<View>(s)) copy[i] = edited(b_, *v, [&](View &n) { rename(n.def); });
      copy.insert(copy.end(), rest.begin(), rest.end());
      body = b_.list(copy);
      s = body[i];
    }
    switch (s->kind) {
      case Kind::Let: let(to<Let>(s)); break;
      case Kind::Store: store(to<Store>(s)); break;
      case Kind::Alloc: alloc(to<Alloc>(s)); break;
      case Kind::View: view(to<View>(s)); break;
      case Kind::CallStmt: call(to<CallStmt>(s)); break;
      case Kind::Assume: assume(to<Assume>(s)); break;
      case Kind::For: loop(to<For>(s)); break;
      case Kind::If: branch(to<If>(s)); break;
      case Kind::While: repeat(to<While>(s)); break;
      default: fail(s->at, fmt::format("a statement cannot be compiled: {}", print(b_, s)));
    }
  }
}

void Body::let(const Let &l) {
  if (l.defs.size() != 1 || l.defs[0].type->tensor) return fail(l.at, fmt::format("`{}` is not planned", print(b_, &l)));
  const Def &d = l.defs[0];
  const Expr *value = l.value;
  if (auto *c = as<Call>(value); c && !c->global && b_.text(c->callee) == "Item" && c->args.size() == 1)
    if (auto *n = as<Name>(c->args[0])) value = b_.call("index", {b_.load(n->name, {})});
  V v = expr(value, d.type->elem).v;
  define_value(d, v);
  if (d.type->elem == DType::Index) after(bounds, &l);
  if (depth_ == 0 && defined) defined(d.name);
}

void Body::store(const Store &s) {
  const Entity *found = find(s.target->buffer);
  if (!found || !found->type->tensor || !found->writable)
    return fail(s.at, fmt::format("{} cannot be written", b_.text(s.target->buffer)));
  Entity e = measured(*found);
  if (s.target->index.size() != e.type->rank())
    return fail(s.at, fmt::format("{} has {} dimensions", b_.text(s.target->buffer), e.type->rank()));
  DType t = e.type->elem;
  V v = expr(s.value, t).v;
  V at = place(e, s.target->index, *s.target);
  ops.store(t, e.v, at, v);
}

// A place in another buffer, checked to be inside.
V Body::place_in(const Alloc &a, const Entity &base, V bytes) {
  V at = index(a.offset);
  if (u_.options.checked) {
    V size = ops.index(std::max(info(base.type->elem).bits / 8, 1));
    for (V d : base.dims) size = ops.ir.CreateMul(size, d);
    V fits = ops.ir.CreateAnd(ops.ir.CreateICmpSGE(at, ops.index(0)), ops.ir.CreateICmpSLE(bytes, size));
    fits = ops.ir.CreateAnd(fits, ops.ir.CreateICmpSLE(at, ops.ir.CreateSub(size, bytes)));
    require(fits, {{}, fmt::format("alloc {}: its bytes go beyond the end of {}", b_.text(a.def.name), b_.text(a.base)), a.at, nullptr, 0});
  }
  return ops.ir.CreateInBoundsGEP(ops.ir.getInt8Ty(), i8(base.v), at);
}

void Body::alloc(const Alloc &a) {
  const Type *t = a.def.type;
  std::string_view name = b_.text(a.def.name);
  int64_t width = info(t->elem).bits;
  if (a.base) {
    const Entity *found = find(a.base);
    if (!found || !found->type->tensor || !found->written.empty() || found->first)
      return fail(a.at, fmt::format("{}: {} is no dense buffer", name, b_.text(a.base)));
    Entity base = measured(*found);
    V ok = ops.ir.getTrue(), bytes = ops.index(std::max<int64_t>(width / 8, 1));
    V empty = ops.ir.getFalse();
    for (const Expr *e : t->dims) {
      V d = index(e);
      bytes = product(bytes, d, ok), empty = ops.ir.CreateOr(empty, ops.ir.CreateICmpEQ(d, ops.index(0)));
    }
    bytes = ops.ir.CreateSelect(empty, ops.index(0), bytes);
    if (u_.options.checked)
      require(ok, {{}, fmt::format("alloc {}: a dimension is negative, or its size too large", name), a.at, nullptr, 0});
    return define_buffer(a.def, place_in(a, base, bytes), base.writable);
  }
  std::vector<int64_t> dims;
  bool fixed = all_static(t, &dims);
  int64_t count = 1;
  for (int64_t d : dims) fixed = fixed && d >= 0 && !__builtin_mul_overflow(count, d, &count);
  if (auto strides = attr(b_, t->attrs, "strides"); strides && fixed && count) {  // as far as the last element stands
    count = 1;
    Exprs all = strides_of(b_, t);
    for (size_t d = 0; d < dims.size(); d++) {
      int64_t stride = 0, far = 0;
      fixed = fixed && int_value(all[d], &stride) && stride >= 0 && !__builtin_mul_overflow(dims[d] - 1, stride, &far) &&
              !__builtin_add_overflow(count, far, &count);
    }
  }
  int64_t bytes = fixed ? storage_bytes(t->elem, count) : -1;
  bool local = t->scope && b_.text(t->scope) == "local";
  if (bytes >= 0 && bytes <= (local ? kLocalBuffer : kSmallBuffer)) {
    llvm::IRBuilder<> entry(&fn_->getEntryBlock(), fn_->getEntryBlock().begin());
    auto *type = llvm::ArrayType::get(ops.storage(t->elem), uint64_t(std::max<int64_t>(width < 8 ? bytes : count, 1)));
    llvm::AllocaInst *p = entry.CreateAlloca(type);
    if (bytes >= 64) p->setAlignment(llvm::Align(64));
    // What nothing writes is 0: a value that is not defined would let a wrong program do anything.
    if (u_.options.checked && type->getNumElements() == 1)
      ops.ir.CreateStore(llvm::Constant::getNullValue(type->getElementType()), ops.ir.CreateConstInBoundsGEP2_64(type, p, 0, 0));
    else if (u_.options.checked)
      ops.ir.CreateMemSet(p, ops.ir.getInt8(0), ops.m.getDataLayout().getTypeAllocSize(type), p->getAlign());
    return define_buffer(a.def, p, true);
  }
  if (!u_.options.checked || attr(b_, t->attrs, "strides"))
    return fail(a.at, fmt::format("{} has no place in memory: run mlc-plan first", name));
  llvm::IRBuilder<> entry(&fn_->getEntryBlock(), fn_->getEntryBlock().begin());
  V sizes = entry.CreateAlloca(ops.ir.getInt64Ty(), entry.getInt32(uint32_t(std::max<size_t>(t->rank(), 1))));
  for (size_t d = 0; d < t->rank(); d++)
    ops.ir.CreateStore(index(t->dims[d]), ops.ir.CreateConstInBoundsGEP1_64(ops.ir.getInt64Ty(), sizes, d));
  V p = u_.allocate(t, sizes);
  require(ops.ir.CreateIsNotNull(p), {{}, fmt::format("alloc {}", name), a.at, nullptr, 0});
  define_buffer(a.def, p, true);
}

void Body::view(const View &v) {
  auto base = buffer(v.source, v.source->buffer, v.source->global);
  if (!base) return;
  Part p = part(*base, v.source->index, v.at);
  Entity e;
  e.type = v.def.type, e.writable = base->writable;
  for (const Expr *x : e.type->dims) e.dims.push_back(index(x));
  if (p.extents.size() != e.type->rank()) return fail(v.at, fmt::format("{} is no {}", print(b_, v.source), print(b_, e.type)));
  for (size_t d = 0; u_.options.checked && d < e.dims.size(); d++)
    if (!provably_equal(b_, p.extents[d], e.type->dims[d], bounds))
      require(ops.ir.CreateICmpEQ(index(p.extents[d]), e.dims[d]),
              {{}, fmt::format("view {}: dimension {} is not that of the region", b_.text(v.def.name), d), v.at, nullptr, 0});
  size_t k = 0;
  for (size_t d = 0; d < v.source->index.size(); d++)
    if (v.source->index[d]->kind == Kind::All || v.source->index[d]->kind == Kind::Range) e.strides.push_back(base->strides[d]), k++;
  if (!provably_equal(b_, Exprs(p.strides), strides_of(b_, e.type), bounds)) e.written = p.strides;
  V at = offset(*base, p.lo);
  if (info(e.type->elem).bits < 8) e.v = base->v, e.first = at;
  else e.v = ops.ir.CreateInBoundsGEP(ops.storage(e.type->elem), base->v, at);
  define(v.def.name, std::move(e));
}

void Body::loop(const For &f) {
  const Expr *extent = shorten(b_, f.iter.extent, bounds);
  Sym v = f.iter.name;
  Stmts body = f.body;
  if (is_int(extent, 1)) {
    scoped([&] { stmts(substitute(b_, body, {{v, b_.integer(0)}})); });
  } else {
    V n = index(extent);
    if (find(v)) body = renamed(v, body), v = latest(v);
    llvm::BasicBlock *before = ops.ir.GetInsertBlock(), *turn = llvm::BasicBlock::Create(ops.c, "for", fn_),
                     *end = llvm::BasicBlock::Create(ops.c, "end", fn_);
    ops.ir.CreateCondBr(ops.ir.CreateICmpSGT(n, ops.index(0)), turn, end);
    ops.ir.SetInsertPoint(turn);
    llvm::PHINode *i = ops.ir.CreatePHI(ops.ir.getInt64Ty(), 2);
    i->addIncoming(ops.index(0), before);
    scoped([&] {
      bounds.range(v, extent);
      define_dim(v, i);
      stmts(body);
    });
    V next = ops.ir.CreateAdd(i, ops.index(1), "", true, true);
    i->addIncoming(next, ops.ir.GetInsertBlock());
    llvm::Instruction *back = ops.ir.CreateCondBr(ops.ir.CreateICmpSLT(next, n), turn, end);
    if (f.loop == LoopKind::Unroll || f.loop == LoopKind::Vectorize) {
      const char *what = f.loop == LoopKind::Unroll ? "llvm.loop.unroll.enable" : "llvm.loop.vectorize.enable";
      std::vector<llvm::Metadata *> words{llvm::MDString::get(ops.c, what)};
      if (f.loop == LoopKind::Vectorize)
        words.push_back(llvm::ConstantAsMetadata::get(ops.ir.getTrue()));
      auto *hint = llvm::MDNode::get(ops.c, words);
      auto *id = llvm::MDNode::getDistinct(ops.c, {nullptr, hint});
      id->replaceOperandWith(0, id);
      back->setMetadata(llvm::LLVMContext::MD_loop, id);
    }
    ops.ir.SetInsertPoint(end);
  }
}

void Body::branch(const If &i) {
  const Expr *cond = shorten_inside(b_, i.cond, bounds);
  if (auto *known = as<Bool>(cond)) return scoped([&] { stmts(known->value ? i.body : i.other); });
  llvm::BasicBlock *yes = llvm::BasicBlock::Create(ops.c, "then", fn_), *end = llvm::BasicBlock::Create(ops.c, "end", fn_);
  llvm::BasicBlock *no = i.other.empty() ? end : llvm::BasicBlock::Create(ops.c, "else", fn_);
  ops.ir.CreateCondBr(truth(cond), yes, no);
  auto side = [&](llvm::BasicBlock *block, size_t k, Stmts body) {
    ops.ir.SetInsertPoint(block);
    scoped([&] {
      enter(bounds, &i, k);
      stmts(body);
    });
    ops.ir.CreateBr(end);
  };
  side(yes, 0, i.body);
  if (no != end) side(no, 1, i.other);
  ops.ir.SetInsertPoint(end);
}

void Body::repeat(const While &w) {
  auto block = [&](const char *name) { return llvm::BasicBlock::Create(ops.c, name, fn_); };
  llvm::BasicBlock *test = block("while"), *turn = block("turn"), *end = block("end");
  ops.ir.CreateBr(test);
  ops.ir.SetInsertPoint(test);
  ops.ir.CreateCondBr(truth(w.cond), turn, end);
  ops.ir.SetInsertPoint(turn);
  scoped([&] { stmts(w.body); });
  ops.ir.CreateBr(test);
  ops.ir.SetInsertPoint(end);
}

void Body::assume(const Assume &a) {
  if (u_.options.checks != RunChecks::None) {
    const Expr *cond = shorten_inside(b_, a.cond, bounds);
    std::string what(a.comment);
    if (!u_.options.checked) {  // as emitted C++ says it
      bool index = false;
      each_expr(a.cond, [&](const Expr *e) { return index |= as<Call>(e) && b_.text(to<Call>(e).callee) == "index", true; });
      std::string said(a.comment.substr(std::min(a.comment.find_first_not_of("# "), a.comment.size())));
      if (said.empty()) said = index ? "index out of range" : "a condition does not hold";
      what = fmt::format("{}: expected {}", said, print(b_, a.cond));
    }
    if (auto *known = as<Bool>(cond); !known || !known->value) require(truth(cond), {{}, what, a.at, nullptr, 0});
  }
  after(bounds, &a);
}

}  // namespace mlc::ll
