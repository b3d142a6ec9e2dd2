#include "llvm/unit.h"

#include "emit/checked.h"
#include "emit/expand.h"
#include "emit/unit.h"
#include "ir/edit.h"
#include "llvm/body.h"
#include "math/math.h"
#include "text/text.h"

namespace mlc::ll {
namespace {

// A kernel whose faults are those of the interpreter:
//
//   assume r < n                       # assume r < n does not hold, from "/Gather"
//                                      assume r < n
//   block u { spatial i in 8 = e ..    # axis i of block u is outside its domain
//                                      assume e >= 0 && e < 8
//   compute y[i in n] = ..             # compute y over other sizes than it has
//                                      assume n == m
//
// Nodes of the model that blocks and loops come from, and domains, are gone when these are expanded.
class Faults {
 public:
  Faults(Build &b, const Func &f) : b_(b) {
    for (const Param &p : f.params) types_[p.def.name] = p.def.type;
    for (const Def &d : f.results) types_[d.name] = d.type;
  }

  Stmts body(Stmts in, Syms from) {
    std::vector<const Stmt *> out;
    for (const Stmt *s : in) {
      auto *block = as<Block>(s);
      auto *loop = as<For>(s);
      Syms own = block ? block->notes.from : loop ? loop->notes.from : Syms{};
      if (auto *a = as<Alloc>(s)) types_[a->def.name] = a->def.type;
      if (auto *v = as<View>(s)) types_[v->def.name] = v->def.type;
      if (loop) extents_[loop->iter.name] = loop->iter.extent;
      if (block) axes(*block, out);
      if (auto *c = as<Compute>(s)) sizes(*c, out);
      s = with_bodies(b_, s, [&](Stmts inner) { return body(inner, own.empty() ? from : own); });
      if (auto *a = as<Assume>(s)) {
        std::string nodes;
        for (Sym n : from) nodes += (nodes.empty() ? ", from " : ", ") + quote(b_.text(n));
        s = said(s, fmt::format("assume {} does not hold{}", print(b_, a->cond), nodes));
      }
      out.push_back(s);
    }
    return b_.list(out);
  }

 private:
  const Stmt *said(const Stmt *s, const std::string &what) { return commented(b_, s, b_.arena.text(what)); }
  const Stmt *assumed(const Expr *cond, uint32_t at, const std::string &what) {
    Assume a{{}, cond};
    a.at = at;
    return said(b_.make(a), what);
  }

  void axes(const Block &s, std::vector<const Stmt *> &out) {
    std::vector<const Stmt *> checks;
    for (const Axis &a : s.axes) {
      auto *n = as<Name>(a.binding);
      if (auto it = n ? extents_.find(n->name) : extents_.end(); it != extents_.end() && equal(it->second, a.domain)) continue;
      const Expr *low = b_.binary(Op::Ge, a.binding, b_.integer(0)), *high = b_.binary(Op::Lt, a.binding, a.domain);
      checks.push_back(assumed(b_.binary(Op::And, low, high), s.at,
                               fmt::format("axis {} of block {} is outside its domain", b_.text(a.name), b_.text(s.name))));
    }
    if (s.guard && !checks.empty()) out.push_back(b_.make(If{{}, s.guard, b_.list(checks), {}, false}));
    else out.insert(out.end(), checks.begin(), checks.end());
  }

  void sizes(const Compute &c, std::vector<const Stmt *> &out) {
    for (const Result &r : c.results) {
      auto it = types_.find(r.name);
      for (size_t d = 0; it != types_.end() && d < r.iters.size() && d < it->second->rank(); d++)
        if (const Expr *n = r.iters[d].extent, *dim = it->second->dims[d]; !equal(n, dim))
          out.push_back(assumed(b_.binary(Op::Eq, n, dim), c.at,
                                fmt::format("compute {} over other sizes than it has", b_.text(r.name))));
    }
  }

  Build &b_;
  std::unordered_map<Sym, const Type *> types_;
  std::unordered_map<Sym, const Expr *> extents_;  // of loops
};

}  // namespace

Unit::Unit(Build &b, const Module &m, llvm::Module &out, const UnitOptions &options, Diag &diag)
    : b(b), m(m), options(options), diag(diag), ops(out, options.fma) {
  if (options.checked) ops.align = 1;  // a place in an arena may be anywhere
}

// The address of something of this process.
static V address(llvm::IRBuilder<> &ir, const void *p, llvm::Type *t) {
  return ir.CreateIntToPtr(ir.getInt64(reinterpret_cast<uintptr_t>(p)), t->getPointerTo());
}

V Unit::allocate(const Type *t, V dims) {
  auto &ir = ops.ir;
  llvm::Type *types[] = {ir.getInt64Ty(), ir.getInt32Ty(), ir.getInt64Ty(), ir.getInt64Ty()->getPointerTo()};
  auto *type = llvm::FunctionType::get(ir.getInt8PtrTy(), types, false);
  llvm::CallInst *p = ir.CreateCall(type, address(ir, options.alloc, type),
                                    {ops.index(sites_++), ir.getInt32(uint32_t(t->elem)), ops.index(int64_t(t->rank())), dims});
  p->addRetAttr(llvm::Attribute::NoAlias);
  return p;
}

V Unit::values() { return address(ops.ir, options.values, ops.ir.getInt64Ty()); }

const Compiled *Unit::function(const Func &f) {
  if (auto it = made_.find(&f); it != made_.end()) return &it->second;
  if (!open_.insert(&f).second) return diag.error(f.at, "@{} calls itself", b.text(f.name)), nullptr;
  if (f.device && !options.checked)
    return diag.error(f.at, "@{} runs on {}: it cannot be compiled here", b.text(f.name), b.text(f.device)), nullptr;
  size_t errors = diag.errors();
  const Func *said = options.checked ? edited(b, f, [&](Func &n) { n.body = Faults(b, f).body(f.body, f.notes.from); }) : &f;
  const Func *flat = expand(b, m, said, diag);
  if (!flat) return nullptr;
  if (options.checks == RunChecks::Subscripts) flat = with_checks(b, m, flat, diag);
  Compiled made;
  llvm::IRBuilder<>::InsertPointGuard guard(ops.ir);
  translate(*flat, made);
  for (Failure &x : made.failures)
    if (x.func == flat) x.func = &f;
  open_.erase(&f);
  if (diag.errors() != errors) return nullptr;
  return &made_.emplace(&f, std::move(made)).first->second;
}

void Unit::translate(const Func &f, Compiled &out) {
  auto &ir = ops.ir;
  std::vector<llvm::Type *> types(f.dims.size(), ir.getInt64Ty());
  llvm::Type *pointer = ir.getInt8PtrTy();
  for (const Param &x : f.params) types.push_back(x.def.type->tensor ? pointer : ops.value(x.def.type->elem));
  types.insert(types.end(), f.results.size() + 1, pointer);
  llvm::Function *fn = out.fn = llvm::Function::Create(llvm::FunctionType::get(ir.getInt32Ty(), types, false),
                                                       llvm::Function::InternalLinkage,
                                                       fmt::format("{}.{}", options.prefix, b.text(f.name)), ops.m);
  fn->setDoesNotThrow();
  ir.SetInsertPoint(llvm::BasicBlock::Create(ops.c, "", fn));
  auto alias = in_place(b, f);
  auto *next = fn->arg_begin();
  Body body(*this, m, f, fn, fn->getArg(fn->arg_size() - 1));
  for (Sym d : f.dims) {
    next->setName(std::string(b.text(d)));
    body.define_dim(d, next++);
  }
  auto *params = next;
  auto buffer = [&](const Def &d, bool written) {
    next->setName(std::string(b.text(d.name)));
    if (!alias.count(b.text(d.name))) next->addAttr(llvm::Attribute::NoAlias);
    if (!written) next->addAttr(llvm::Attribute::ReadOnly);
    next->addAttr(llvm::Attribute::NoCapture);
    body.define_buffer(d, next++, written);
  };
  for (const Param &x : f.params)  // dimensions may mention parameters further on
    if (x.def.type->tensor) next++;
    else body.define_value(x.def, next++);
  next = params;
  for (const Param &x : f.params)
    if (x.def.type->tensor) buffer(x.def, x.mode != Mode::In);
    else next++;
  auto *results = next;
  for (const Def &d : f.results)
    if (d.type->tensor) buffer(d, true);
    else next++;
  body.stmts(f.body);
  next = results;
  for (const Def &d : f.results) {
    llvm::Argument *to = next++;
    if (d.type->tensor) continue;
    const Entity *e = body.find(body.latest(d.name));
    if (!e) diag.error(d.at, "@{}: {} is not defined", b.text(f.name), b.text(d.name));
    else ir.CreateStore(e->v, ir.CreateBitCast(to, e->v->getType()->getPointerTo()));
  }
  ir.CreateRet(ir.getInt32(0));
  out.failures = body.failures;
}

const Func *Unit::library(std::string_view name, DType t, bool fused) {
  if (!math_) math_ = math_module(b);
  return scalar_function(b, *math_, name, t, fused);
}

llvm::Function *Unit::scalar(const Func *f) {
  if (auto it = scalars_.find(f); it != scalars_.end()) {
    if (!it->second) diag.error(f->at, "@{} calls itself", b.text(f->name));
    return it->second;
  }
  scalars_[f] = nullptr;
  const Module &module = home(f);
  const Func *flat = expand(b, module, f, diag);
  if (!flat) return nullptr;
  std::vector<llvm::Type *> types;
  for (const Param &x : f->params) types.push_back(ops.value(x.def.type->elem));
  auto *type = llvm::FunctionType::get(ops.value(f->results[0].type->elem), types, false);
  auto *fn = llvm::Function::Create(type, llvm::Function::InternalLinkage,
                                    fmt::format("{}.{}", options.prefix, b.text(f->name)), ops.m);
  fn->addFnAttr(llvm::Attribute::AlwaysInline);
  llvm::IRBuilder<>::InsertPointGuard guard(ops.ir);
  ops.ir.SetInsertPoint(llvm::BasicBlock::Create(ops.c, "", fn));
  Body body(*this, module, *flat, fn, nullptr);
  for (size_t i = 0; i < f->params.size(); i++) body.define_value(f->params[i].def, fn->getArg(unsigned(i)));
  body.stmts(flat->body);
  const Entity *y = body.find(body.latest(f->results[0].name));
  if (!y) return diag.error(f->at, "@{} does not define {}", b.text(f->name), b.text(f->results[0].name)), nullptr;
  ops.ir.CreateRet(y->v);
  return scalars_[f] = fn;
}

}  // namespace mlc::ll
