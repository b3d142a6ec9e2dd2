// A planned module as LLVM's text or an object file, with the interface of emit/model.h: what NAME.h declares.
#pragma once
#include "emit/model.h"

namespace mlc {

// model: as emit_model made it of the same module. bytes(w): w.bytes of them, asked for where they are to be inside (the
// form is not File). text: a .ll file, before LLVM's optimizer; else a .o for any machine of this one's kind. False: diag
// says why.
bool compile_model(Build &b, const Module &m, const CppOptions &options, const CppModel &model,
                   const std::function<std::span<const std::byte>(const Weight &)> &bytes, bool text, std::string &out,
                   Diag &diag);

}  // namespace mlc
