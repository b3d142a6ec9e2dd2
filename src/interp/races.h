// Finds turns of order-free loops that touch the same element, one of them to write it.
//
// Every access of a checked run knows its path: the turns of the marked loops (parallel, vectorize, bind) around it.
//   for i in n parallel { x[i] = ..  for j in m vectorize { .. } }        path: turn 2 of i, turn 0 of j
// Two accesses of an element may not come together if their paths part at two turns of the same run of a loop. Beside
// each element stand its last writer, and two readers that may not come together, if there are two.
#pragma once
#include <deque>
#include <unordered_map>

#include "interp/code.h"

namespace mlc::interp {

struct Turn {
  const Turn *outer;
  const LoopInfo *loop;
  int64_t run, turn;  // which run of the loop, counted over the whole program
  int depth;
};

struct Trace {  // beside a Storage; by the position of the element in bits
  struct Element {
    const Turn *writer = nullptr, *reader = nullptr, *other = nullptr;
  };
  std::unordered_map<int64_t, Element> elements;
};

class Races {
 public:
  const Turn *path() const { return path_; }
  int64_t enter() { return ++runs_; }
  void turn(const LoopInfo &l, int64_t run, int64_t turn, const Turn *outer) {
    turns_.push_back({outer, &l, run, turn, outer ? outer->depth + 1 : 0});
    path_ = &turns_.back();
  }
  void leave(const Turn *outer) { path_ = outer; }
  // An access of element `position` (in bits) of s. Throws Fault; `at` and `name` are of the access. `own`: turns of
  // bound loops have elements of their own there: what one writes is not for others to read.
  void access(Storage &s, int64_t position, bool write, uint32_t at, std::string_view name, const Frame &f,
              bool own = false);

 private:
  std::deque<Turn> turns_;
  const Turn *path_ = nullptr;
  int64_t runs_ = 0;
};

// The same of every element of a region, for what is copied and filled.
void access_all(Races &r, const Ref &region, bool write, uint32_t at, std::string_view name, const Frame &f);

}  // namespace mlc::interp
