// Edits of a module at one place: statements and expressions numbered in the order in which they are walked.
#pragma once
#include <functional>

#include "ir/module.h"
#include "ir/walk.h"

namespace mlc {

// The module with each statement given to f, parents first; f returns false to keep it and go on inside, or appends what
// stands in its place to `out` and returns true. Numbers count all statements of the text, those that are dropped too.
using StmtEdit = std::function<bool(size_t number, const Stmt *s, std::vector<const Stmt *> &out)>;
Module edit_stmts(Build &b, const Module &m, const StmtEdit &f);
size_t count_stmts(const Module &m);

// The module with each expression of its functions' statements given to f, children first.
using ExprEdit = std::function<const Expr *(size_t number, const Expr *e)>;
Module edit_exprs(Build &b, const Module &m, const ExprEdit &f);

// The module with each function given to f, which changes it in place or returns false to drop it.
Module edit_funcs(Build &b, const Module &m, const std::function<bool(size_t number, Func &f)> &edit);

}  // namespace mlc
