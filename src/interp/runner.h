// Who runs kernels in the interpreter's place: graphs, control flow, sizes and strings stay with it.
#pragma once
#include "interp/machine.h"

namespace mlc::interp {

class KernelRunner {
 public:
  virtual ~KernelRunner() = default;
  // Runs kernel f, or its description `body`, on arguments that are bound: `dims` has its dimensions. The bits are those
  // of the interpreter. False: it cannot, and has done nothing. Throws Fault.
  virtual bool run(Machine &m, const Func &f, Stmts body, const IndexValues &dims, const std::vector<Value> &args,
                   const std::vector<Value> &into) = 0;
};

}  // namespace mlc::interp
