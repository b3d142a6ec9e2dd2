// The verifier: the rules of man/mlc.5, on a module that was read or made by a pass. It runs after every pass and is
// nearly linear in the text. What is provably wrong is an error; what cannot be proved (a subscript inside its buffer,
// two symbolic sizes equal) is accepted, and checked when the program runs.
#pragma once
#include <string>

#include "base/diag.h"
#include "ir/module.h"
#include "ir/solve.h"

namespace mlc {

// True if no error was found. With `prove`, every subscript and size is proved, and what could not be is a remark.
bool check(Build &b, const Module &m, Diag &diag, bool prove = false);

// Why a call has no solution (ir/solve.h): "argument w of @f: expected f32[k, m], found f32[784]".
std::string why_unsolved(const Build &b, const Func &callee, std::span<const Argument> args, const Solution &s);

}  // namespace mlc
