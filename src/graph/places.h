// The buffers of a graph that is being planned: which of them are one memory, and when each is needed.
//
// The graph is a tree of lines, numbered as they stand; a loop or branch has a number where it begins and where it
// ends. A buffer that is defined outside a loop and touched inside is needed until that loop ends.
#pragma once
#include <deque>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/diag.h"
#include "graph/arena.h"
#include "ir/module.h"

namespace mlc {

inline constexpr size_t kNoLoop = SIZE_MAX;

struct Buffer {
  const Type *type = nullptr;
  uint32_t at = kNowhere;
  enum { Arena, Argument, Result, Part } where = Arena;  // Part: a region of `base`
  Sym root;             // the buffer whose memory it is, itself at first
  Sym base;             // of a Part
  size_t loop = kNoLoop;      // the innermost loop around its definition
  size_t ready = 0;     // the line from which on its sizes are known
  std::optional<X> bytes;  // the most that it can have; none: `open` has no bound
  Sym open;
};

struct Line {
  enum Kind : uint8_t {
    Plain,    // stmt as it stands
    Call,     // stmt, a Let, with destinations
    Copy,     // source -> defines[0]
    Declare,  // only the place of defines[0], where it is used
    Body,     // stmt, an If, For or While, around other lines
  } kind = Plain;
  const Stmt *stmt = nullptr;
  const Expr *source = nullptr;    // of a Copy
  std::vector<Sym> uses, defines;  // buffers
  Sym workspace;                   // of a Call
  X workspace_bytes, workspace_most;
  bool gone = false;               // a Copy from a place to itself
  size_t at = 0, end = 0, loop = kNoLoop;
  std::vector<std::vector<Line *>> bodies;
  Syms from;
};
using Lines = std::vector<Line *>;

class Places {
 public:
  Places(Build &b, Module &m, Diag &diag, std::unordered_map<Sym, const Func *> &functions)
      : b_(b), m_(m), diag_(diag), functions_(functions) {}

  // While lines are made, in their order.
  std::unordered_map<Sym, Buffer> buffers;
  Line *line(Line l);           // numbered, in the loop that is open
  size_t open_loop(Line *l);    // lines made from here on are inside l, which is a loop
  void close(Line *l);          // the end of a Body
  size_t loop() const { return loop_; }
  size_t now() const { return lines_.size() + ends_; }
  bool has(Sym s) const { return buffers.count(s); }
  Sym root(Sym s) const;
  const Type *type(Sym s) const { return buffers.at(s).type; }
  // A reshape: y is another name for the memory of x, or x is computed where y, a result, is. False: it takes a copy.
  bool share(Sym x, Sym y);

  // When all lines are there: copies that need not be, kernels that write over a dying argument; then the arena.
  void settle();
  Placement place();
  X offset(const Placement &p, Sym buffer) const { return p.offsets[life_of_.at(buffer)]; }
  bool used(Sym s) const { return used_.count(s); }
  const Func *function(Sym name) const;  // as it is now: with a workspace, in place

 private:
  struct Touch {
    const Line *line;
    size_t at;
    bool use;
  };
  struct Group {  // of a root
    std::vector<Touch> touches;
    size_t first = SIZE_MAX, last = 0;
  };
  void touch(Sym s, const Line *l, size_t at, bool use);
  void add(Group &g, const Touch &t, size_t home);
  std::pair<size_t, size_t> reach(const Touch &t, size_t home) const;
  bool inside(size_t loop, size_t outer) const;
  void unite(Sym child, Sym root);
  void merge_copy(Line *l);
  void reuse(Line *l);
  bool over_argument(const Line *l, size_t arg, bool mark);
  bool writes_over(const Line *l, Sym root, bool mark);

  Build &b_;
  Module &m_;
  Diag &diag_;
  std::unordered_map<Sym, const Func *> &functions_;
  std::deque<Line> lines_;
  struct Loop {
    size_t begin, end, parent;
  };
  std::vector<Loop> loops_;
  size_t loop_ = kNoLoop, ends_ = 0;
  std::unordered_map<Sym, Group> groups_;
  std::unordered_set<Sym> used_;
  std::unordered_map<Sym, size_t> life_of_;
};

}  // namespace mlc
