// What the statements of a function make known. The caller marks before and pops after:
//
//   Bounds known(b);
//   enter(known, f);                           // dimensions, index parameters
//   for (s : body) {
//     size_t m = known.mark();
//     enter(known, s, k);                      // in its k-th nested body (each_body's order): loop variable, axes ..
//     ..
//     known.pop(m);
//     after(known, s);                         // for what follows: assume, scalars of type index
//   }
//
// A fact that reads memory is left out: what is read may change between two statements.
#pragma once
#include "arith/bounds.h"

namespace mlc {

void enter(Bounds &known, const Func &f);
void enter(Bounds &known, Iters iters);
void enter(Bounds &known, const Stmt *s, size_t body);
void after(Bounds &known, const Stmt *s);
bool reads_memory(const Expr *e);  // a load or a call of a function of the module

}  // namespace mlc
