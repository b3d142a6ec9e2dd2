// One case of ONNX's backend tests: a folder with model.onnx, test_data_set_*/{input,output}_*.pb and maybe `tolerance`
// ("RTOL ATOL"), run by one of the routes.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "data/array.h"
#include "ir/build.h"
#include "ir/module.h"

namespace mlc {

enum class Route {
  Interp,  // import, then the interpreter on operators
  Loops,   // simplify, fuse, lower, plan; then the interpreter on kernels
  Jit,     // the same, the kernels compiled by LLVM
  Cpp,     // simplify, fuse, lower, plan; then C++ compiled with warnings as errors, and run
  Object,  // the same, an object file of LLVM's in the place of the C++
  CudaSim,  // simplify, fuse, lower; then CUDA C++, compiled and run by share/cuda on the CPU
};

struct CaseOptions {
  Route route = Route::Interp;
  std::string cache;    // of Cpp: folder of compiled programs by the hash of their sources; empty: none
  std::string compiler = "g++ -std=c++17 -O1 -Wall -Wextra -Wpedantic -Werror";
  std::string target;   // to schedule for; empty: kernels are not scheduled
  std::vector<std::string> without = {};  // passes that are left out
  bool checked = false;                   // of emitted code: subscripts are checked
  std::function<void(Build &, Module &)> adapt = {};  // changes the imported module, before the passes
};

struct CaseResult {
  enum Kind : char { Passed = 'P', Failed = 'F', Skipped = 'S' } kind;
  std::string reason;  // one line
};

// Skipped: ONNX that mlc does not have, or data that are no tensors. Runs in the process of the caller, in time and
// memory that the case asks for.
CaseResult run_case(const std::string &folder, const CaseOptions &options);

// What a case's program gives for the first data set.
struct CaseValues {
  std::vector<std::string> names;  // of the results, as the module has them
  std::vector<Array> values;
  double rtol = 0, atol = 0;
  std::string fault;  // why there are none; empty: all is well
};
CaseValues case_values(const std::string &folder, const CaseOptions &options);

}  // namespace mlc
