// Blocks that compute what an intrinsic describes, tile after tile: found by unifying expressions, up to the order of
// loops, of dimensions, and of the operands of sums and products.
//
//   y[i, o, h, w] += where(.., x[i, c, h + r, w + s], 0.0) * f[o, c, r, s]
//   c[i, j] += a[i, k] * b[j, k]                                             i: i, h, w   j: o   k: c, r, s
//
// An axis of the block belongs to the iterator that occurs in the operands in which it occurs, of the same kind;
// several become one. Axes that no iterator stands for are loops around the calls.
#pragma once
#include <map>

#include "sched/describe.h"
#include "sched/state.h"

namespace mlc {

using Operands = std::map<Sym, const Expr *>;  // parameter -> the factor of a block, in its axes

struct Match {
  const Description *desc;
  Operands operands;
  bool distributed = false;  // once `distribute` has taken differences out of the sum
  size_t way;  // among those in which the block's value can be read as the description's
  struct Group {
    std::vector<Sym> axes;
    std::vector<const Expr *> domains;  // of these
    AxisKind kind;
    int64_t tile;           // turns that a call takes; 1: a loop around the calls
    Sym iter;               // of the description; Sym{}: none
    const Expr *size;       // of all its axes together
  };
  std::vector<Group> groups;  // spatial ones first, those of no iterator in front of the others
};

// All ways in which a block's value is that of a description, whatever its axes.
std::vector<Operands> operands_of(State &s, Place *block, const Description &d, std::string &why);
// `why`: what did not fit, where nothing is returned; of the last attempt.
std::optional<Match> match_block(State &s, Place *block, const Description &d, std::string &why);

}  // namespace mlc
