// The reference interpreter: what a program means (man/mlc.5), at every stage. A graph's values are immutable, each
// operator is run as the kernel that defines it; a kernel is compiled once into a tree of nodes and run in sequence.
// Subscripts, axes, `assume`s and reads of elements never written are checked.
#pragma once
#include <cstdio>
#include <string>
#include <vector>

#include "data/array.h"
#include "ir/build.h"
#include "ir/module.h"

namespace mlc {

namespace interp {
class KernelRunner;
}

struct RunOptions {
  bool check_undefined = true;        // a read of an element never written is a fault
  bool backwards = false;             // take the turns of order-free loops from the last to the first
  int64_t memory = int64_t(4) << 30;  // bytes that all buffers together may have
  std::vector<std::string> folders;   // where weight files are looked for (data/files.h)
  std::string module_path;            // the module's file: its folder is looked through too
  uint64_t jitter = 0;                // not 0: roundings of float sums are disturbed as it seeds (interp/jitter.h)
  int64_t repeat = 1;                 // runs, each from the inputs; the last one's outputs count
  std::vector<double> *seconds = nullptr;  // gets what each run took
  FILE *print = nullptr;              // what `call print(..)` writes to; null: dropped
  bool races = false;                 // turns of an order-free loop that touch the same element are a fault
  interp::KernelRunner *kernels = nullptr;  // runs kernels (interp/runner.h); then no read is looked at
  int64_t turns = 0;                  // turns that all loops together may take, a call counts 1000; 0: any number
};

struct RunFault {
  uint32_t at = kNowhere;  // a place in the module's text, if one is known
  std::string message;     // names the function, and what failed
  bool constant = false;   // a constant has no value: its file is missing, or another one
  bool endless = false;    // the loops took more turns than they may
  bool race = false;       // turns of an order-free loop touch the same element
  int64_t turns = 0;       // that they took, of a run that ended well too
};

// Runs a function: a graph, group or kernel of m, at any stage. `inputs`: one for each parameter that is not `scratch`,
// in order; a scalar parameter takes an array of rank 0 (index: i64 or index). Dimensions are solved from their shapes.
// `outputs` gets the results (index results as arrays of rank 0), then the final contents of the inout parameters.
bool run(Build &b, const Module &m, const Func &entry, const std::vector<Array> &inputs, const RunOptions &options,
         std::vector<Array> &outputs, RunFault &fault);

// The value of a constant: bytes of its file, fill, list or computed from others.
bool evaluate(Build &b, const Module &m, const Const &c, const RunOptions &options, Array &out, RunFault &fault);

}  // namespace mlc
