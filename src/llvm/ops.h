// Scalar operations as LLVM instructions: the rules are those of man/mlc-numerics.7, and the bits those of the
// interpreter. No instruction has fast-math flags.
//
//   type of the language           as a value    in memory
//   bool                           i1            i8
//   i4, u8, i64 .. index           i4, i8, i64   i8 (packed from the low bits), i8, i64
//   f64; f32                       double; float the same
//   f16, bf16, f8, f4              float         their bits: i16, i8, i8 (packed); rounded after each operation
#pragma once
#include <llvm/IR/IRBuilder.h>

#include "ir/ir.h"
#include "num/scalar.h"

namespace mlc::ll {

using V = llvm::Value *;

class Ops {
 public:
  // fma: the machine has the instruction.
  Ops(llvm::Module &m, bool fma) : m(m), c(m.getContext()), ir(c), fma_(fma) {}

  llvm::Module &m;
  llvm::LLVMContext &c;
  llvm::IRBuilder<> ir;
  unsigned align = 0;  // of elements in memory, bytes; 0: that of their type

  llvm::Type *value(DType t);
  llvm::Type *storage(DType t);
  llvm::IntegerType *code(DType t);  // of so many bits as an element has
  V index(int64_t v) { return ir.getInt64(uint64_t(v)); }
  V literal(DType t, Scalar v);

  // Element `at` of what `base`, a pointer to storage(t), points to.
  V load(DType t, V base, V at);
  void store(DType t, V base, V at, V v);

  V arithmetic(Op op, DType t, V a, V b);  // + - * / // %
  V compare(Op op, DType t, V a, V b);
  V negated(DType t, V a);
  V cast(DType from, DType to, V a, bool saturate);
  V bits(DType from, DType to, V a);
  V primitive(std::string_view name, DType t, const std::vector<V> &args);  // of ir/typing.h; null: there is none
  V rounded(DType t, V v);  // the result of f32 operations as a value of t

  // A function of this module that is made when it is first asked for; `body` returns what it gives.
  template <class F> V call(const std::string &name, llvm::Type *result, std::vector<V> args, const F &body);

 private:
  struct Quotient {
    V q, r;      // truncated
    V opposite;  // there is a rest, and its sign is not that of the divisor
  };
  Quotient divided(DType t, V a, V b);
  V decoded(DType t, V code);
  V encoded(DType t, V v, bool saturate);  // v: float or double
  V encoded_f16(V x);
  V encoded_bf16(V x);
  V encoded_generic(DType t, V x, bool saturate);
  V encoded_e8m0(V x, bool saturate);
  V max(DType t, V a, V b, bool least);
  V float_primitive(std::string_view name, DType t, const std::vector<V> &args);
  V text(std::string_view family, DType t, const std::vector<V> &args);
  V i32(uint32_t v) { return ir.getInt32(v); }
  V i64(uint64_t v) { return ir.getInt64(v); }
  V constant(llvm::Type *t, double v) { return llvm::ConstantFP::get(t, v); }
  V intrinsic(llvm::Intrinsic::ID id, llvm::ArrayRef<llvm::Type *> types, llvm::ArrayRef<V> args) {
    return ir.CreateIntrinsic(id, types, args);
  }
  bool fma_;
};

template <class F> V Ops::call(const std::string &name, llvm::Type *result, std::vector<V> args, const F &body) {
  llvm::Function *f = m.getFunction(name);
  if (!f) {
    std::vector<llvm::Type *> types;
    for (V a : args) types.push_back(a->getType());
    f = llvm::Function::Create(llvm::FunctionType::get(result, types, false), llvm::Function::InternalLinkage, name, m);
    f->addFnAttr(llvm::Attribute::AlwaysInline);
    llvm::IRBuilder<>::InsertPointGuard guard(ir);
    ir.SetInsertPoint(llvm::BasicBlock::Create(c, "", f));
    std::vector<V> params;
    for (auto &p : f->args()) params.push_back(&p);
    ir.CreateRet(body(params));
  }
  return ir.CreateCall(f, args);
}

}  // namespace mlc::ll
