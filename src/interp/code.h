// What a kernel is compiled into: trees of nodes that are called through their pointers, with every name resolved to
// a slot. Compiled once (interp/compile.h), run by frames (interp/exec.cc).
//
// Subscripts that are affine in the loops around are not computed again for each element. A *cell* is a slot that
// holds such a sum; it is set when the kernel starts, each loop adds its step to it after each turn and takes all of
// it back at its end:
//   for i in n { for j in 8 { .. x[2 * i, j + 1] .. } }      cell = 1;  j adds 1, i adds 16 (8 in a row)
// An access whose subscripts stay inside their dimensions for all turns (checked once, by intervals) reads its offset
// from its cell; any other computes and checks each subscript every time.
#pragma once
#include <span>
#include <unordered_map>

#include "interp/memory.h"
#include "ir/module.h"

namespace mlc::interp {

class Machine;
struct Unit;

struct Buffer {
  std::byte *data = nullptr;    // of element `first`; whole bytes
  std::byte *shadow = nullptr;  // beside it; null: all is defined
  Storage *storage = nullptr;
  int64_t first = 0;
};

struct Frame {
  int64_t *slot;
  Buffer *buffer;
  const Unit *unit;
  Machine *machine;
  std::vector<StorageRef> *owned;  // by buffer: what its `alloc` made
};

// An expression. Its pointer is of the type that its values are carried in (interp/number.h).
struct Node {
  union {
    int64_t (*i)(const Node &, Frame &) = nullptr;
    float (*f)(const Node &, Frame &);
    double (*d)(const Node &, Frame &);
  };
  DType type = DType::Invalid;
  uint32_t at = kNowhere;
  const Node *a = nullptr, *b = nullptr, *c = nullptr;
  union {
    int64_t k = 0;  // a slot, a literal, a shift
    float kf;
    double kd;
  };
  const void *more = nullptr;  // Access, Reduction, Apply
};
template <class V> V eval(const Node *n, Frame &f);
template <> inline int64_t eval(const Node *n, Frame &f) { return n->i(*n, f); }
template <> inline float eval(const Node *n, Frame &f) { return n->f(*n, f); }
template <> inline double eval(const Node *n, Frame &f) { return n->d(*n, f); }
Scalar eval_any(const Node *n, Frame &f);

// An affine sum: base + coef * loop + ..
struct Term {
  int loop;
  const Node *coef;
};
struct Linear {
  const Node *base;
  std::vector<Term> terms;
};

struct Access {
  int buffer;
  std::span<const Node *const> index;
  int cell = -1;  // slot of the offset; the slot behind it says whether it may be used. -1: not affine
  uint32_t at = kNowhere;
};

struct Step { int cell, step; };  // slot[cell] += slot[step]
struct LoopInfo {
  int var;                   // slot
  int extent;                // slot
  const Node *count;         // computes it
  bool known = false;        // before the kernel starts
  bool free_order = false;   // turns may be taken in any order
  bool marked = false;       // parallel, vectorize or bind: not a compute's
  bool bound = false;        // bind
  Sym name;
  std::vector<Step> steps;
};

struct Act {  // a statement
  void (*run)(const Act &, Frame &);
  const void *what = nullptr;
  uint32_t at = kNowhere;
};
using Acts = std::span<const Act *const>;
inline void run(Acts acts, Frame &f) {
  for (const Act *a : acts) a->run(*a, f);
}

struct BufferInfo {
  Sym name;
  DType elem;
  const Type *type;
  std::vector<int> dims, strides;           // slots
  std::vector<const Node *> dim_nodes;      // of an alloc or a view
  bool known = false;                       // dims and strides are, before the kernel starts
  bool own_strides = false;                 // dense ones, not those of the base of a view
  bool own = false;                         // bound turns have one each: `shared`, `local` ..
};

// A function of scalars: scalar @f, reducer @r. Its frame is its own.
struct Lambda {
  Sym name;
  int slots = 0;
  std::vector<int> params, results, inits;
  std::vector<DType> types;  // of the results
  Acts init, body;
};

// What the start of a kernel does for cells: dims, bases and steps are known then.
struct CellPlan {
  int cell;
  int buffer = -1;           // of an access: index d counts strides[d]; -1: an axis
  std::vector<Linear> index; // an axis has one
  int domain = -1;           // of an axis: slot of its domain's extent, -1 if that is not known
  std::vector<std::pair<int, int>> steps;  // (loop, slot of the step)
};

// A compiled kernel.
struct Unit {
  const Func *func = nullptr;
  Sym name;
  int slots = 0;
  std::vector<BufferInfo> buffers;
  std::vector<LoopInfo *> loops;
  std::vector<CellPlan> cells;
  std::vector<std::pair<int, const Node *>> domains;  // slots of axis domains that are known at the start
  std::vector<int> dim_slots;                         // of func->dims
  std::vector<int> param_slots, param_buffers;        // one of both, the other -1
  std::vector<int> result_buffers;
  std::vector<std::pair<int, Sym>> constants;         // buffers of @names
  Acts body;
};

}  // namespace mlc::interp
