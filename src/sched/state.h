// One kernel while a schedule changes it, and what the names of the script mean.
//
// A primitive either changes the tree, or refuses: it throws Refused before it has changed anything that matters
// (the driver drops the state of a script that is refused). What is legal is decided on blocks: their axes, bindings
// and the regions that they read and write (regions.h).
#pragma once
#include <fmt/core.h>

#include <map>
#include <optional>
#include <string>

#include "arith/bounds.h"
#include "base/diag.h"
#include "ir/module.h"
#include "sched/tree.h"

namespace mlc {

struct Refused {
  uint32_t at;          // in the program; kNowhere: no place
  std::string message;  // in the program's own names
  std::string hint;     // the nearest legal call, or empty
};
template <class... A>
[[noreturn]] void refuse(uint32_t at, fmt::format_string<A...> f, A &&...a) {
  throw Refused{at, fmt::format(f, std::forward<A>(a)...), {}};
}
template <class... A>
[[noreturn]] void refuse(const Place *n, fmt::format_string<A...> f, A &&...a) {
  throw Refused{n && n->stmt ? n->stmt->at : kNowhere, fmt::format(f, std::forward<A>(a)...), {}};
}

// What a name of the script stands for.
struct Handle {
  enum Kind : uint8_t { Loop, Block, Value, Values } kind = Value;
  Place *node = nullptr;             // Loop, Block; its `up` is null once it is gone
  std::vector<const Expr *> values;  // of sample_*: numbers
  std::string gone;                  // what took it out: "split on line 4"
};

// Of a parameter or result that callers see: element x[i, j] now stands at map(i, j).
struct LayoutChange {
  bool result;
  size_t index;  // among the parameters, or the results
  const Map *map, *back;
  const Type *from, *to;  // back's image is `padded`, of which `from` is the beginning
  const Type *padded;
};

class State {
 public:
  State(Build &b, const Module &m, const Func *f);
  Build &b;
  const Module &m;
  Tree tree;
  const Func *func();  // the kernel as it stands
  const Func *original() const { return f_; }
  std::vector<Attr> attrs;  // of the kernel

  // ---- names
  std::map<Sym, Handle> handles;
  Place *find_block(Sym name);    // by its name in the text; a compute of that name is expanded first; null: none
  std::vector<Place *> blocks();  // all, in order
  Place *as_block(Place *n);  // n, or the block that its compute becomes; else null
  // The definition of a buffer: a parameter, result, alloc; null: none.
  const Type *type_of_buffer(Sym name);
  Place *alloc_of(Sym buffer);  // null: a parameter or result
  void set_type(Sym buffer, const Type *type);
  std::vector<LayoutChange> layouts;  // in order; for callers to follow
  // Marked loops whose turns are independent, and what that was seen on (marks.cc); names that a statement mentions.
  std::unordered_map<const Place *, std::vector<const void *>> independent;
  std::unordered_map<const Stmt *, std::vector<Sym>> mentioned;
  bool is_result(Sym buffer) const;
  // A name for a loop that is to stand in the place of another one (around what is below it, inside what is around
  // it), a buffer, or a block: `want`, or want_1 ...
  Sym loop_name(Place *place, std::string_view want, const std::vector<Sym> &also_taken = {});
  // The same for one that is to stand in the body of `up`, beside what is there.
  Sym loop_name_inside(Place *up, std::string_view want, const std::vector<Sym> &also_taken = {});
  Sym buffer_name(std::string_view want);
  Sym block_name(std::string_view want);
  std::string text(Sym s) const { return std::string(b.text(s)); }
  std::string text(const Expr *e) const;
  std::string name_of(const Place *n) const;  // loop i, block c, for messages

  // ---- changes that all primitives share
  // Replaces names of loops in the heads of all that is below n (bindings, guards, extents, conditions), and simplifies.
  void substitute_below(Place *n, const Substitution &names, bool simplified = true);
  void simplify_below(Place *n);
  // Only turns where cond holds: blocks get a guard, other statements an `if`.
  void guard_below(Place *n, const Expr *cond);
  void replace_buffer(Place *block, Sym from, Sym to, bool reads, bool writes);
  Place *add_alloc(Sym name, const Type *type,
                   Place *near = nullptr);  // in front of the kernel's first statement that is none

  // A block's loops: axis by axis, `for a in domain` around block `k`, placed nowhere yet. Returns the outermost node
  // and the block.
  std::pair<Place *, Place *> nest(const std::vector<Iter> &loops, const Stmt *block);

 private:
  void expand_compute(Place *n);
  void names_around(Place *n, std::unordered_set<Sym> &out);
  Sym free_name(std::string_view want, const std::unordered_set<Sym> &taken);
  const Func *f_;
  std::unordered_set<Sym> fixed_;  // dimensions, parameters, results
  std::unordered_set<Sym> used_;   // names of buffers and blocks that were ever there
};

// What is known of indices at a node: in front of it (its own loop not entered), or inside of its body.
class Known {
 public:
  Known(State &s, Place *n, bool inside = false);
  Bounds bounds;
  operator const Bounds &() const { return bounds; }
};

// compute c[..] = e  ->  loops and blocks (expand.cc); what replaces it, in order.
std::vector<const Stmt *> expand_compute(State &s, Place *compute);

}  // namespace mlc
