// Which names statements mention, and which buffers they write.
#pragma once
#include <unordered_map>
#include <unordered_set>

#include "ir/module.h"
#include "ir/walk.h"

namespace mlc {

using NameSet = std::unordered_set<Sym>;

void mention(const Stmt *s, NameSet &out);  // all names in it and below, those that it defines too
NameSet mentioned(Stmts body);

// Buffers by the memory they are in: views and places are their base.
class Roots {
 public:
  explicit Roots(Stmts body);
  Sym of(Sym name) const;

 private:
  std::unordered_map<Sym, Sym> base_;
};
// Roots of what is written, by stores, destinations and arguments that are no inputs.
NameSet written(const Module &m, const Roots &roots, Stmts body);

// A dimension that a call solves for n: n, n * 8, 2 + n.
bool gives(const Expr *dim, Sym n);
bool has_loads(const Expr *e);   // of buffers or constants, or calls of the module's functions
bool binds(Stmts body);          // there is a bound loop
// Its memory is that of the block, or of all: global or shared, not local and no fragment.
bool seen_by_others(const Build &b, const Type *t);
// A call of an intrinsic that the threads of a warp do together: attr level = "warp".
bool is_collective(const Build &b, const Module &m, const Stmt *s);
bool in_scope(const Build &b, const Type *t, std::string_view scope);

}  // namespace mlc
