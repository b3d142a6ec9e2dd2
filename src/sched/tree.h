// A kernel's statements while it is scheduled: nodes that keep their identity and know what is around them, where the
// IR below is immutable.
//
//   for i in n                  root
//   for k in m {                  For i
//     block c { .. }       ->       For k
//   }                                 Block c      a leaf: its statements stay in `stmt`
//
// For, If, While and blocks that hold blocks have kids; everything else is a leaf.
#pragma once
#include <deque>
#include <vector>

#include "ir/edit.h"
#include "ir/walk.h"

namespace mlc {

struct Place {
  Place *up = nullptr;         // null: the root, or taken out
  size_t part = 0;             // of an If: 0 the body, 1 the else
  const Stmt *stmt = nullptr;  // of the root null; for what has kids, its head alone counts
  std::vector<Place *> kids[2];

  const For *loop() const { return as<For>(stmt); }
  const Block *block() const { return as<Block>(stmt); }
  bool holds() const {
    return !stmt || stmt->kind == Kind::For || stmt->kind == Kind::If || stmt->kind == Kind::While || nest;
  }
  bool nest = false;  // a block that holds blocks
};

class Tree {
 public:
  Tree(Build &b, Stmts body);
  Place *root() { return &nodes_.front(); }
  Stmts body();                                 // all of it, as text has it
  Stmts body(const Place *n, size_t part = 0);  // of one node
  const Stmt *stmt(const Place *n);

  Place *make(const Stmt *s);  // with what is below, not yet placed
  Place *make_loop(const Iter &iter, LoopKind kind = LoopKind::Serial);
  size_t place(const Place *n) const;  // among its siblings
  std::vector<Place *> &siblings(Place *n) { return n->up->kids[n->part]; }
  void insert(Place *up, size_t part, size_t at, Place *n);
  void append(Place *up, Place *n) { insert(up, 0, up->kids[0].size(), n); }
  void before(Place *place, Place *n) { insert(place->up, place->part, this->place(place), n); }
  void after(Place *place, Place *n) { insert(place->up, place->part, this->place(place) + 1, n); }
  void remove(Place *n);                   // with what is below
  void replace(Place *n, Place *by);       // n is taken out with what is below
  void move_kids(Place *from, Place *to);  // the body of `from` becomes that of `to`
  void prune(Place *n);                    // takes n out if it is a loop or branch that holds nothing, then those above
  bool contains(const Place *outer, const Place *n) const;  // or is it

  // The statement of a node, edited in place.
  template <class T, class Edit>
  void edit(Place *n, const Edit &f) {
    n->stmt = edited(b_, to<T>(n->stmt), f);
  }

 private:
  void read(Place *up, size_t part, Stmts body);
  Build &b_;
  std::deque<Place> nodes_;
};

// All nodes below (and n), in the order of the text.
void each_place(Place *n, const std::function<void(Place *)> &f);
// The loops around a node, outermost first, up to the block or kernel it stands in.
std::vector<Place *> loops_around(Place *n);
bool is_below(const Place *n, const Place *outer);  // strictly

}  // namespace mlc
