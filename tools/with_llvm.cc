#include "with_llvm.h"

#include "llvm/jit.h"
#include "llvm/model.h"

namespace mlc {

bool with_llvm(const char *) { return true; }

bool llvm_model(Build &b, const Module &m, const CppOptions &options, const CppModel &model,
                const std::function<std::span<const std::byte>(const Weight &)> &bytes, bool text, std::string &out,
                Diag &diag) {
  return compile_model(b, m, options, model, bytes, text, out, diag);
}

std::unique_ptr<interp::KernelRunner> jit_runner(FILE *remarks) { return make_jit(remarks); }

}  // namespace mlc
