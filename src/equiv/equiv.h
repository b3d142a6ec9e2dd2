// Are two modules the same program? Both are run in the interpreter on shared inputs of several sizes (man/mlc-equiv.1).
#pragma once
#include <map>
#include <string>

#include "base/source.h"
#include "ir/build.h"
#include "ir/module.h"

namespace mlc {

struct EquivOptions {
  std::string entry, with;               // functions of the first and the second module; empty: see equiv()
  std::map<std::string, int64_t> sizes;  // those that are fixed
  int64_t seed = 0, runs = 12;
  int64_t elements = 1000000;            // that inputs of drawn sizes may have
  int64_t turns = 60000000;             // of loops, of all runs together; fixed sizes get two runs whatever they take,
  bool bounded = false;                  // or none, if this is set
  double rtol = 0, atol = 0;             // accepted beyond what reordered sums explain
  bool strict = false;                   // nothing but the same bits
  std::vector<std::string> folders;      // of weights
};

struct EquivSide {
  Build &b;
  const Module &m;
  std::string name;                // in messages
  std::string path;                // of the file: its folder is searched for weights
  const Source *source = nullptr;  // what places of m refer to
};

struct EquivReport {
  bool same = false;
  std::string text;      // "same: 12 runs exact", a line for each function; or what differs
  std::string usage;     // not empty: the options do not fit the functions
  int side = -1;         // 0 or 1: `text` is about this place of that module
  uint32_t at = kNowhere;
  bool empty = false;    // no output has an element at the sizes that were tried
};

// Without `entry`: the function that a user means (ir/module.h, entry_to_run); in a module of several kernels, all that
// no other function calls, each against that of its name.
EquivReport equiv(const EquivSide &a, const EquivSide &b, const EquivOptions &options);

}  // namespace mlc
