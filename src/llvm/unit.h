// The functions of a module as LLVM functions, each made once, callees first.
#pragma once
#include <map>
#include <optional>
#include <unordered_set>

#include "base/diag.h"
#include "emit/model.h"
#include "ir/module.h"
#include "llvm/ops.h"

namespace mlc::ll {

struct Failure {     // of a condition that is checked
  Syms from;         // nodes of the model; empty: those of the call
  std::string what;  // {}: values, as Unit::values has them
  uint32_t at = kNowhere;
  const Func *func = nullptr;  // where it stands
  size_t rank = 0;             // of an access to `what`: the values are its subscripts, then the dimensions
};

// int32 f(dimensions .., parameters .., results .., constants): 0, or 1 + the number of a failure. Buffers are i8*,
// `constants` leads to those of the module (UnitOptions).
struct Compiled {
  llvm::Function *fn = nullptr;
  std::vector<Failure> failures;
};

struct UnitOptions {
  // All that is not proved is checked, in the interpreter's words, and buffers that fit nowhere are asked of `alloc`: a
  // program that is wrong fails, it does not crash. Otherwise as emitted C++ does it, by `checks`.
  bool checked = false;
  RunChecks checks = RunChecks::Assumed;
  bool fma = false;               // the machine has the instruction
  std::string prefix = "mlc";     // of the functions' names
  // Where `checked`: int8 *(*)(int64 site, int32 type, int64 rank, const int64 *dims) gives the memory of a buffer, new
  // each time, or null; the values of a failure are written to int64 values[kValues].
  const void *alloc = nullptr;
  int64_t *values = nullptr;
  static constexpr size_t kValues = 256;
};

class Unit {
 public:
  Unit(Build &b, const Module &m, llvm::Module &out, const UnitOptions &options, Diag &diag);

  const Compiled *function(const Func &f);     // null after an error
  llvm::Function *scalar(const Func *f);       // null after an error
  // exp of f32: @exp.f32, @exp.fma.f32 if fused; null: there is none
  const Func *library(std::string_view name, DType t, bool fused);
  const Module &home(const Func *f) const { return math_ && math_->func(f->name) == f ? *math_ : m; }
  // Where the elements of a constant lie, i8*; `constants` is what functions are given.
  std::function<V(V constants, Sym name)> constant;
  V allocate(const Type *t, V dims);
  V values();

  Build &b;
  const Module &m;
  const UnitOptions options;
  Diag &diag;
  Ops ops;

 private:
  void translate(const Func &f, Compiled &out);
  std::optional<Module> math_;
  std::map<const Func *, Compiled> made_;
  std::map<const Func *, llvm::Function *> scalars_;
  std::unordered_set<const Func *> open_;
  int sites_ = 0;
};

}  // namespace mlc::ll
