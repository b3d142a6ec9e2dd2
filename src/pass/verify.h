// MLC_VERIFY=1: a pass compares its result with what it was given (equiv/equiv.h) before anything is printed.
#pragma once
#include "base/diag.h"
#include "equiv/equiv.h"

namespace mlc {

bool verify_wanted();  // the environment says so

// Reports in `diag` how `after` differs from `before`; a remark if it does not. `path`: of the module's file.
void verify_same(Build &b, const Module &before, const Module &after, const std::string &path, Diag &diag);

// Prints what differs: with its place in the text where there is one, as every other error.
void report(const EquivReport &r, const EquivSide &a, const EquivSide &b, const std::string &tool, FILE *out);

}  // namespace mlc
