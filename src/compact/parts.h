// Private to this room: the steps of `dissolved`, and what they share.
#pragma once
#include "arith/bounds.h"
#include "compact/compact.h"
#include "ir/walk.h"

namespace mlc {

using Out = std::vector<const Stmt *>;

// ---- the steps; between them blocks are still there, as marks: axes give bindings, the body speaks of loops.

// open.cc: inside blocks loops are seen, under the names of the bindings.
Stmts opened(Build &b, const Func &f);
// init.cc: initialisers stand in front of their reduce loops; those that cannot are left in their blocks.
Stmts with_inits_placed(Build &b, const Func &f, Stmts body);
// open.cc: no blocks any more; guards and what is left of initialisers are `if`s.
Stmts flattened(Build &b, Stmts body);
// guard.cc: `if`s that always hold are gone, others stand outside of the loops that they do not mention, or are bounds.
Stmts with_guards_lifted(Build &b, const Func &f, Stmts body);

// ---- shared

// Has no loads, and nothing that a turn of no loop would not have done: no division by what may be 0.
bool anywhere(const Expr *cond);
// s, or anything in it, names the buffer.
bool touches(const Stmt *s, Sym buffer);

}  // namespace mlc
