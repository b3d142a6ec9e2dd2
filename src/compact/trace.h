// How a piece of a kernel uses one buffer: every access with the loops around it, in the order of the program.
#pragma once
#include <optional>

#include "compact/parts.h"

namespace mlc {

struct Side {              // of a region, along one dimension: lo .. lo + extent - 1
  const Expr *lo, *extent;  // null: all of it
};
using Region = std::vector<Side>;

struct Cond {
  const Expr *holds;
  size_t loop;             // it limits this one of the loops around, which has another extent now; kNoLoop: none
};
inline constexpr size_t kNoLoop = ~size_t(0);

struct Access {
  Region at;
  std::vector<Iter> iters;          // loops around it, from the outermost of the piece on
  std::vector<Cond> conds;          // of a read: what holds there; of a write: on what it depends, seen from `depth`
  bool read = false, write = false;
  bool whole = false;               // `call fill(0) -> t`: all there is, of whatever shape
  std::vector<bool> ranged = {};    // dimensions that have a range, `:` or no subscript in the text
};

class Trace {
 public:
  // `known`: what holds at the piece; left as it was.
  Trace(Build &b, const Module &m, Bounds &known, Sym buffer, const Type *type)
      : b_(b), m_(m), known_(known), buffer_(buffer), type_(type) {}

  // A loop around the piece that counts as one inside.
  void around(const For &f) { iters_.push_back(f.iter); }
  void piece(Stmts body);

  std::vector<Access> accesses;
  bool aliased = false, atomic = false;
  // A read of what the piece has not surely written before; null if there is none. Looked for if `judges`.
  const Expr *stale = nullptr;
  bool judges = false;
  // Mentions nothing that is defined inside the piece.
  bool outside(const Expr *e) const { return steady(e); }

 private:
  struct Write {
    Access access;
    size_t depth;   // the loops below it are closed
    bool boxed;     // `box` is computed for this depth
    std::optional<Region> box;
  };
  void list(Stmts body);
  void stmt(const Stmt *s);
  void loop(const Iter &i, const std::function<void()> &inner);
  void nest(Iters iters, const std::function<void(const Substitution &)> &inner);
  void branch(const Expr *cond, const std::function<void()> &inner);
  void call(const CallStmt &c);
  void expr(const Expr *e);
  void operand(const Expr *e, bool read, bool write, bool sure);
  std::optional<Access> region(const Load &l, bool read, bool write);  // null: another buffer
  void access(Access a, const Expr *at, bool sure);
  bool fresh(const Access &read);
  const Expr *end(const Side &s) const;
  bool starts(const Side &s, const Expr *at) const;  // no later than there
  bool ends(const Side &s, const Expr *at) const;    // no sooner
  bool same(const Write &w, const Access &read);
  bool same_names(const Write &w, const Access &read);
  bool holds_now(const Write &w, const Access &read);
  bool closed(const Write &w, const Cond &c) const;
  std::optional<Region> box(const Write &w);
  std::optional<Region> widened(const Access &w, size_t depth);
  std::optional<Region> inverted(const Access &w, size_t depth);
  Access all(bool read, bool write) const {
    return {Region(type_->rank()), {}, {}, read, write, false, std::vector<bool>(type_->rank(), true)};
  }
  bool steady(const Expr *e) const { return !e || !names_of(e, unsteady_); }
  static bool names_of(const Expr *e, const std::unordered_set<Sym> &names);

  Build &b_;
  const Module &m_;
  Bounds &known_;
  Sym buffer_;
  const Type *type_;
  std::vector<Iter> iters_;
  std::vector<Cond> conds_;
  Substitution lets_;
  std::unordered_set<Sym> unsteady_;  // scalars that are data
  std::unordered_map<Sym, Region> views_;
  std::unordered_map<Sym, std::vector<bool>> kept_;  // dimensions of the buffer that a view keeps
  std::vector<Write> writes_;
  int hidden_ = 0;
  bool fills_ = false;
};

}  // namespace mlc
