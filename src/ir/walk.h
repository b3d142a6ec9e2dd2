// Walking and rewriting. Tools run on a stack of 1 GB (tool/tool.cc), so recursion is safe for any text that reads.
#pragma once
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "ir/build.h"

namespace mlc {

// Calls f on each direct child expression; of a map that is its right side, the left one only binds names.
void each_child(const Expr *e, const std::function<void(const Expr *)> &f);
// Calls f on e and everything below it, parents first; f returns false to skip what is below.
void each_expr(const Expr *e, const std::function<bool(const Expr *)> &f);
// All expressions that stand directly in a statement or its heads (not in nested statements); types' dimensions and
// values of attributes too.
void each_expr_of(const Stmt *s, const std::function<void(const Expr *)> &f);
// Nested statement lists of a statement (bodies, inits, else).
void each_body(const Stmt *s, const std::function<void(Stmts)> &f);
// All statements below, parents first.
void each_stmt(Stmts body, const std::function<void(const Stmt *)> &f);
void each_stmt(const Stmt *s, const std::function<void(const Stmt *)> &f);
// All expressions in all statements below.
void each_expr_in(Stmts body, const std::function<bool(const Expr *)> &f);

// Post-order rewriting; what did not change keeps its pointer. f gets a node whose children are already rewritten, and
// returns it or another. Where only an access can stand (targets of stores, sources of views, regions, destinations),
// an answer of another kind is not taken; there the children are rewritten all the same.
using ExprMap = std::function<const Expr *(const Expr *)>;
const Expr *rewrite(Build &b, const Expr *e, const ExprMap &f);
Exprs rewrite(Build &b, Exprs l, const ExprMap &f);
const Type *rewrite(Build &b, const Type *t, const ExprMap &f);
Attrs rewrite(Build &b, Attrs a, const ExprMap &f);
const Stmt *rewrite_exprs(Build &b, const Stmt *s, const ExprMap &f);  // in nested statements too, types included
Stmts rewrite_exprs(Build &b, Stmts s, const ExprMap &f);
// Statements, post-order: f gets a statement whose bodies are rewritten and appends what replaces it to `out`.
using StmtMap = std::function<void(const Stmt *, std::vector<const Stmt *> &out)>;
Stmts rewrite_stmts(Build &b, Stmts s, const StmtMap &f);
// The same statement with other nested bodies: f is called once for each, in order.
const Stmt *with_bodies(Build &b, const Stmt *s, const std::function<Stmts(Stmts)> &f);
// The statement with another comment above it.
const Stmt *commented(Build &b, const Stmt *s, std::string_view comment);

// Replaces names by expressions: values, dimensions, loop variables, and buffers (where the replacement is a Name).
// Iterators that bind the same name inside hide it; those that a replacement would run into are renamed (k -> k_1).
using Substitution = std::unordered_map<Sym, const Expr *>;
const Expr *substitute(Build &b, const Expr *e, const Substitution &s);
Exprs substitute(Build &b, Exprs l, const Substitution &s);
const Type *substitute(Build &b, const Type *t, const Substitution &s);
Attrs substitute(Build &b, Attrs a, const Substitution &s);
// Renames defined names too (loops, axes, values, buffers), if they are mapped to a Name; mapped to anything else, a
// name is hidden where it is defined again. What loops and statements bind must not run into a replacement: use Fresh.
Stmts substitute(Build &b, Stmts body, const Substitution &s);

// a && b && c  ->  a, b, c, appended; null adds nothing. And back: null stands for true.
void conjuncts(const Expr *e, std::vector<const Expr *> &out);
const Expr *both(Build &b, const Expr *x, const Expr *y);

// Names that occur free (buffers, values, dimensions; not @names, not callees).
void collect_names(const Expr *e, std::unordered_set<Sym> &out);
void collect_names(const Type *t, std::unordered_set<Sym> &out);
bool mentions(const Expr *e, Sym name);
// All names that a function defines or mentions: what a fresh name must avoid.
void collect_all_names(const Func *f, std::unordered_set<Sym> &out);
void take_names(const Func *f, Fresh &fresh);  // the same, taken
// Tensors by their names: parameters, results, buffers and views.
std::unordered_map<Sym, const Type *> tensors_of(const Func &f);

}  // namespace mlc
