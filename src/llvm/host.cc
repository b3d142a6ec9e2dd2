#include "llvm/host.h"

#include "emit/names.h"
#include "ops/expr.h"
#include "text/text.h"

namespace mlc::ll {

static constexpr int64_t kAlign = 64, kLargest = int64_t(1) << 62;

Host::Host(Unit &unit, const CppOptions &options, const CppModel &model, Diag &diag)
    : u_(unit), ops_(unit.ops), ir_(unit.ops.ir), b_(unit.b), o_(options), model_(model), diag_(diag), f_(*model.entry) {
  for (const Param &x : f_.params)
    if (x.mode == Mode::Scratch) scratch_ = &x.def;
  types();
  llvm::Type *i32 = ir_.getInt32Ty(), *i64 = ir_.getInt64Ty(), *bytes = ir_.getInt8PtrTy();
  auto *context = context_->getPointerTo();
  context_bytes_ = declare("context_bytes", i64, {});
  init_ = declare("init", i32, {context, bytes, i64, options_->getPointerTo()});
  arena_ = declare("arena_bytes", i64, {dims_->getPointerTo(), i32});
  run_ = declare("run", i32, {context, in_->getPointerTo(), out_->getPointerTo(), bytes});
  error_ = declare("error", bytes, {i32});
  u_.constant = [this](V weights, Sym name) -> V {
    for (const Weight &w : model_.weights)
      if (w.constant->name == name) return ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), weights, uint64_t(w.offset));
    return weights;  // one of no elements
  };
}

Host::Function *Host::declare(const char *name, llvm::Type *result, std::vector<llvm::Type *> params) {
  auto *type = llvm::FunctionType::get(result, params, false);
  auto *f = Function::Create(type, Function::ExternalLinkage, fmt::format("{}_{}", o_.name, name), ops_.m);
  f->setDoesNotThrow();
  return f;
}

// The structs of NAME.h (emit/header.cc).
void Host::types() {
  llvm::Type *i64 = ir_.getInt64Ty(), *bytes = ir_.getInt8PtrTy();
  auto make = [&](const char *name, std::vector<llvm::Type *> members) {
    return llvm::StructType::create(ops_.c, members, fmt::format("{}_{}", o_.name, name));
  };
  auto value = [&](const Def &d) { return d.type->tensor ? bytes : ops_.storage(d.type->elem); };
  options_ = make("options", {ir_.getInt32Ty(), bytes, bytes});
  context_ = make("context", {bytes, options_});
  dims_ = make("dims", std::vector<llvm::Type *>(std::max<size_t>(model_.dims.size(), 1), i64));
  std::vector<llvm::Type *> in, out;
  for (const Port &x : model_.inputs) in.push_back(value(x.def));
  dims_member_ = in.size();
  if (!model_.dims.empty() || model_.inputs.empty()) in.push_back(dims_);
  for (const Port &x : model_.outputs) {
    out_member_.push_back(out.size());
    out.push_back(value(x.def));
    if (x.capacity) out.push_back(i64);
    if (x.def.type->tensor && x.def.type->rank()) out.push_back(llvm::ArrayType::get(i64, x.def.type->rank()));
  }
  if (out.empty()) out.push_back(i64);
  in_ = make("in", in), out_ = make("out", out);
}

void Host::returns_unless(Function *f, V cond, int code) {
  auto *bad = llvm::BasicBlock::Create(ops_.c, "fails", f), *good = llvm::BasicBlock::Create(ops_.c, "", f);
  ir_.CreateCondBr(cond, good, bad);
  ir_.SetInsertPoint(bad);
  ir_.CreateRet(llvm::ConstantInt::get(f->getReturnType(), uint64_t(code)));
  ir_.SetInsertPoint(good);
}

V Host::aligned(V p) {
  return ir_.CreateICmpEQ(ir_.CreateAnd(ir_.CreatePtrToInt(p, ir_.getInt64Ty()), uint64_t(kAlign - 1)), ops_.index(0));
}

void Host::build(llvm::GlobalVariable *data) {
  ir_.SetInsertPoint(llvm::BasicBlock::Create(ops_.c, "", context_bytes_));
  ir_.CreateRet(ops_.index(int64_t(ops_.m.getDataLayout().getTypeAllocSize(context_).getFixedSize())));
  run();
  arena_bytes();
  init(data);
  error();
}

// ---- NAME_run

void Host::run() {
  int context = code("no context, inputs or outputs, or the context is not initialised");
  int sizes = code("a size is negative, or too large");
  int arena = code("the arena is not given, or not aligned to {} bytes", kAlign);
  V ctx = run_->getArg(0), in = run_->getArg(1), out = run_->getArg(2), memory = run_->getArg(3);
  ir_.SetInsertPoint(llvm::BasicBlock::Create(ops_.c, "", run_));
  V given = ir_.CreateAnd(ir_.CreateIsNotNull(ctx), ir_.CreateAnd(ir_.CreateIsNotNull(in), ir_.CreateIsNotNull(out)));
  returns_unless(run_, given, context);
  V weights = ir_.CreateLoad(ir_.getInt8PtrTy(), member(context_, ctx, 0));
  if (!model_.weights.empty()) returns_unless(run_, ir_.CreateIsNotNull(weights), context);
  Body p(u_, u_.m, f_, run_, weights);
  if (!model_.dims.empty()) {
    V dims = member(in_, in, dims_member_);
    V bytes = ir_.CreateCall(arena_, {dims, ir_.getInt32(1)});
    returns_unless(run_, ir_.CreateICmpNE(bytes, ops_.index(0)), sizes);
    for (size_t d = 0; d < model_.dims.size(); d++)
      p.define_dim(model_.dims[d].first, ir_.CreateLoad(ir_.getInt64Ty(), member(dims_, dims, d)));
  }
  if (scratch_) returns_unless(run_, ir_.CreateAnd(ir_.CreateIsNotNull(memory), aligned(memory)), arena);
  for (size_t i = 0; i < model_.inputs.size(); i++) {
    const Port &x = model_.inputs[i];
    if (!x.def.type->tensor) p.define_value(x.def, ops_.load(x.def.type->elem, member(in_, in, i), ops_.index(0)));
  }
  for (size_t i = 0; i < model_.inputs.size(); i++)
    if (model_.inputs[i].def.type->tensor) pointer(p, model_.inputs[i], "in", member(in_, in, i), model_.inputs[i].written);
  // A result whose size is data gets its type's dimensions when they are known.
  for (size_t i = 0; i < model_.outputs.size(); i++)
    if (model_.outputs[i].def.type->tensor) pointer(p, model_.outputs[i], "out", member(out_, out, out_member_[i]), true);
  if (scratch_) p.define_buffer(*scratch_, memory, true);
  for (const Port &x : model_.outputs)
    if (x.capacity && !capacity_code_) capacity_code_ = code("an output has too little room");
  p.defined = [&](Sym s) { sized(p, s); };
  p.first_code = int(messages_.size());
  p.stmts(f_.body);
  for (const Failure &x : p.failures) {
    std::string nodes;
    for (Sym s : x.from) nodes += (nodes.empty() ? "node " : ", ") + quote(b_.text(s));
    code("{}{}{}", nodes, nodes.empty() ? "" : ": ", x.what);
  }
  for (size_t i = 0; i < model_.outputs.size(); i++) {
    const Port &x = model_.outputs[i];
    const Type *t = x.def.type;
    if (!t->tensor) {
      const Entity *e = p.find(p.latest(x.def.name));
      V to = member(out_, out, out_member_[i]);
      if (!e) diag_.error(x.def.at, "output {} is not defined", b_.text(x.def.name));
      else if (info(t->elem).bits >= 8) ops_.store(t->elem, to, ops_.index(0), e->v);
      else ir_.CreateStore(ir_.CreateIntCast(e->v, ir_.getInt8Ty(), is_signed(t->elem)), to);
    }
    for (size_t d = 0; t->tensor && d < t->rank(); d++) {
      V all = member(out_, out, out_member_[i] + (x.capacity ? 2 : 1));
      ir_.CreateStore(p.index(t->dims[d]), ir_.CreateConstInBoundsGEP2_64(llvm::ArrayType::get(ir_.getInt64Ty(), t->rank()), all, 0, d));
    }
  }
  ir_.CreateRet(ir_.getInt32(0));
}

void Host::pointer(Body &p, const Port &x, const char *from, V place, bool written) {
  V v = ir_.CreateLoad(ir_.getInt8PtrTy(), place), is = ir_.CreateIsNotNull(v);
  std::vector<int64_t> dims;
  bool fixed = all_static(x.def.type, &dims), empty = std::count(dims.begin(), dims.end(), 0);
  if (!fixed && !x.capacity)
    for (const Expr *e : x.def.type->dims) is = ir_.CreateOr(is, ir_.CreateICmpEQ(p.index(e), ops_.index(0)));
  if (!fixed || !empty) returns_unless(run_, is, code("{}put {} is a null pointer", from, quote(b_.text(x.def.name))));
  p.define_buffer(x.def, v, written);
}

// A size that is data is known from here on: is there room for what has it?
void Host::sized(Body &p, Sym s) {
  for (size_t i = 0; i < model_.outputs.size(); i++) {
    const Port &x = model_.outputs[i];
    std::unordered_set<Sym> names;
    for (const Expr *e : x.def.type->dims) collect_names(e, names);
    if (!x.capacity || !names.count(s) || std::any_of(names.begin(), names.end(), [&](Sym n) { return !p.find(n); })) continue;
    V ok = ir_.getTrue(), elements = ops_.index(1);
    for (const Expr *e : x.def.type->dims) elements = p.product(elements, size(p, e, ok), ok);
    V room = ir_.CreateLoad(ir_.getInt64Ty(), member(out_, run_->getArg(2), out_member_[i] + 1));
    returns_unless(run_, ir_.CreateAnd(ok, ir_.CreateICmpSLE(elements, room)), capacity_code_);
  }
}

// ---- NAME_arena_bytes

// A size whose arithmetic must not leave 64 bits; ok becomes false where it does.
V Host::size(Body &p, const Expr *e, V &ok) {
  auto *x = as<Binary>(e);
  if (!x || x->op < Op::Add || x->op > Op::Mul) return p.index(e);
  V a = size(p, x->a, ok), b = size(p, x->b, ok);
  auto id = x->op == Op::Add   ? llvm::Intrinsic::sadd_with_overflow
            : x->op == Op::Sub ? llvm::Intrinsic::ssub_with_overflow
                               : llvm::Intrinsic::smul_with_overflow;
  V r = ir_.CreateBinaryIntrinsic(id, a, b);
  ok = ir_.CreateAnd(ok, ir_.CreateNot(ir_.CreateExtractValue(r, 1)));
  return ir_.CreateExtractValue(r, 0);
}

void Host::arena_bytes() {
  X bytes = lit(b_, scratch_ ? std::max<int64_t>(info(scratch_->type->elem).bits / 8, 1) : 0);
  if (const Expr *e = attr(b_, f_.notes.attrs, "arena_bytes")) bytes = {b_, e};
  else if (scratch_)
    for (const Expr *d : scratch_->type->dims) bytes = bytes * X{b_, d};
  ir_.SetInsertPoint(llvm::BasicBlock::Create(ops_.c, "", arena_));
  Body p(u_, u_.m, f_, arena_, nullptr);
  std::unordered_set<Sym> known;
  V ok = ir_.getTrue();
  for (size_t d = 0; d < model_.dims.size(); d++) {
    V n = ir_.CreateLoad(ir_.getInt64Ty(), member(dims_, arena_->getArg(0), d));
    p.define_dim(model_.dims[d].first, n);
    known.insert(model_.dims[d].first);
    ok = ir_.CreateAnd(ok, ir_.CreateICmpSGE(n, ops_.index(0)));
  }
  auto fits = [&](const Type *t) {
    std::unordered_set<Sym> names;
    for (const Expr *d : t->dims) collect_names(d, names);
    if (!t->tensor || names.empty() || !std::all_of(names.begin(), names.end(), [&](Sym s) { return known.count(s); })) return;
    V v = ops_.index(std::max(info(t->elem).bits / 8, 1));
    for (const Expr *d : t->dims) v = p.product(v, size(p, d, ok), ok);
  };
  for (const Param &x : f_.params)
    if (x.mode != Mode::Scratch) fits(x.def.type);
  for (const Def &d : f_.results) fits(d.type);
  each_stmt(f_.body, [&](const Stmt *s) {  // bytes of the arena, a workspace, are counted with it
    auto *a = as<Alloc>(s);
    if (a && (!scratch_ || a->base != scratch_->name || a->def.type->elem != scratch_->type->elem)) fits(a->def.type);
    if (auto *v = as<View>(s)) fits(v->def.type);
  });
  std::unordered_set<Sym> names;
  collect_names(bytes.e, names);
  for (Sym s : names)
    if (!known.count(s))
      return diag_.error(f_.at, "the arena of @{} depends on {}, which is no dimension", b_.text(f_.name), b_.text(s));
  V n = size(p, bytes.e, ok);
  ok = ir_.CreateAnd(ok, ir_.CreateAnd(ir_.CreateICmpSGE(n, ops_.index(0)), ir_.CreateICmpSLE(n, ops_.index(kLargest))));
  V up = ir_.CreateAnd(ir_.CreateAdd(n, ops_.index(kAlign - 1)), ~uint64_t(kAlign - 1));
  up = ir_.CreateSelect(ir_.CreateICmpSLT(n, ops_.index(kAlign)), ops_.index(kAlign), up);
  ir_.CreateRet(ir_.CreateSelect(ok, up, ops_.index(0)));
}

// ---- NAME_init, NAME_error

void Host::init(llvm::GlobalVariable *data) {
  V ctx = init_->getArg(0), weights = init_->getArg(1), bytes = init_->getArg(2), options = init_->getArg(3);
  int size = code("the weights are not {} bytes", model_.weight_bytes);
  int align = code("the weights are not aligned to {} bytes", kAlign);
  ir_.SetInsertPoint(llvm::BasicBlock::Create(ops_.c, "", init_));
  returns_unless(init_, ir_.CreateIsNotNull(ctx), 1);
  V to = member(context_, ctx, 0), own = member(context_, ctx, 1);
  ir_.CreateStore(null(ir_.getInt8PtrTy()), to);
  if (!model_.weights.empty()) {
    if (data) {
      V none = ir_.CreateIsNull(weights);
      weights = ir_.CreateSelect(none, ir_.CreateBitCast(data, ir_.getInt8PtrTy()), weights);
      bytes = ir_.CreateSelect(none, ops_.index(model_.weight_bytes), bytes);
    }
    V all = ir_.CreateAnd(ir_.CreateIsNotNull(weights), ir_.CreateICmpEQ(bytes, ops_.index(model_.weight_bytes)));
    returns_unless(init_, all, size);
    returns_unless(init_, aligned(weights), align);
    ir_.CreateStore(weights, to);
  }
  V usual = llvm::ConstantStruct::get(options_, {ir_.getInt32(1), llvm::Constant::getNullValue(ir_.getInt8PtrTy()),
                                                 llvm::Constant::getNullValue(ir_.getInt8PtrTy())});
  auto *given = llvm::BasicBlock::Create(ops_.c, "options", init_), *end = llvm::BasicBlock::Create(ops_.c, "end", init_);
  ir_.CreateStore(usual, own);
  ir_.CreateCondBr(ir_.CreateIsNull(options), end, given);
  ir_.SetInsertPoint(given);
  for (unsigned k = 0; k < 3; k++) {
    V v = ir_.CreateLoad(options_->getElementType(k), member(options_, options, k));
    if (!k) v = ir_.CreateSelect(ir_.CreateICmpSLT(v, ir_.getInt32(1)), ir_.getInt32(1), v);
    ir_.CreateStore(v, member(options_, own, k));
  }
  ir_.CreateBr(end);
  ir_.SetInsertPoint(end);
  ir_.CreateRet(ir_.getInt32(0));
}

void Host::error() {
  ir_.SetInsertPoint(llvm::BasicBlock::Create(ops_.c, "", error_));
  std::vector<llvm::Constant *> texts{ir_.CreateGlobalStringPtr("no error")};
  for (const std::string &s : messages_) texts.push_back(ir_.CreateGlobalStringPtr(comment_text(s)));
  auto *type = llvm::ArrayType::get(ir_.getInt8PtrTy(), texts.size());
  auto *table = new llvm::GlobalVariable(ops_.m, type, true, llvm::GlobalValue::PrivateLinkage,
                                         llvm::ConstantArray::get(type, texts), o_.name + "_errors");
  V code = ir_.CreateZExt(error_->getArg(0), ir_.getInt64Ty());
  V known = ir_.CreateICmpULT(code, ops_.index(int64_t(texts.size())));
  V at = ir_.CreateInBoundsGEP(type, table, {ops_.index(0), ir_.CreateSelect(known, code, ops_.index(0))});
  ir_.CreateRet(ir_.CreateSelect(known, ir_.CreateLoad(ir_.getInt8PtrTy(), at), ir_.CreateGlobalStringPtr("unknown error")));
}

}  // namespace mlc::ll
