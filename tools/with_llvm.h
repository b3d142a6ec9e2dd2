// What needs LLVM. It takes ten times as long to start as all else that a tool does, so bin/NAME has none: where it is
// asked for this, it becomes libexec/mlc/NAME, the same program with it.
#pragma once
#include <memory>

#include "base/diag.h"
#include "emit/model.h"
#include "interp/runner.h"

namespace mlc {

// Without LLVM: goes on as the program that has it, with the same arguments, and returns only if there is none, told on
// stderr: false. To be called before any input is read.
bool with_llvm(const char *tool);

// compile_model of llvm/model.h. Without LLVM: false, told to diag.
bool llvm_model(Build &b, const Module &m, const CppOptions &options, const CppModel &model,
                const std::function<std::span<const std::byte>(const Weight &)> &bytes, bool text, std::string &out,
                Diag &diag);

// Null without LLVM, or where it does not know this machine.
std::unique_ptr<interp::KernelRunner> jit_runner(FILE *remarks);

}  // namespace mlc
