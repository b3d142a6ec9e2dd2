// The host side of a model: the functions of NAME.h.
#pragma once
#include "llvm/body.h"

namespace mlc::ll {

class Host {
 public:
  Host(Unit &unit, const CppOptions &options, const CppModel &model, Diag &diag);
  // data: the weights that are inside, or null.
  void build(llvm::GlobalVariable *data);

 private:
  using Function = llvm::Function;
  template <class... A> int code(fmt::format_string<A...> f, A &&...a) {  // what NAME_error says of it
    messages_.push_back(fmt::format(f, std::forward<A>(a)...));
    return int(messages_.size());
  }
  Function *declare(const char *name, llvm::Type *result, std::vector<llvm::Type *> params);
  void types();
  void init(llvm::GlobalVariable *data);
  void arena_bytes();
  void run();
  void error();
  void pointer(Body &p, const Port &x, const char *from, V place, bool written);
  void sized(Body &p, Sym s);
  V size(Body &p, const Expr *e, V &ok);
  void returns_unless(Function *f, V cond, int code);
  V null(llvm::Type *t) { return llvm::Constant::getNullValue(t); }
  V aligned(V p);
  // Member of a struct that p points to.
  V member(llvm::StructType *t, V p, size_t k) { return ir_.CreateStructGEP(t, p, unsigned(k)); }

  Unit &u_;
  Ops &ops_;
  llvm::IRBuilder<> &ir_;
  Build &b_;
  const CppOptions &o_;
  const CppModel &model_;
  Diag &diag_;
  const Func &f_;
  const Def *scratch_ = nullptr;
  llvm::StructType *options_, *context_, *dims_, *in_, *out_;
  size_t dims_member_ = 0;            // of NAME_in
  std::vector<size_t> out_member_;    // the first one of each output
  Function *init_, *arena_, *run_, *error_, *context_bytes_;
  std::vector<std::string> messages_;
  int capacity_code_ = 0;
};

}  // namespace mlc::ll
