// The functions of an emitted file, each printed once, callees first: kernels and planned graphs as static C++
// functions.
#pragma once
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/diag.h"
#include "emit/helpers.h"
#include "emit/loops.h"
#include "emit/model.h"
#include "emit/names.h"
#include "ir/module.h"

namespace mlc {

struct Failure {  // of an `assume`: what P_error says
  Syms from;      // nodes of the model; empty: those of the call
  std::string what;
};

// An emitted function. It returns nothing if it cannot fail, else 0 or 1 + the number of a failure. Its parameters in
// order: dimensions, parameters, results, then the constants that it or a callee reads.
struct Emitted {
  std::string ident;
  std::vector<Failure> failures;
  std::vector<Sym> constants;
  std::vector<bool> dims;  // which of the function's dimensions it takes
  bool parallel = false;
  bool stream = false;     // of an extern: its first parameter is a stream
};

// What stands above an emitted function: kernel @f[n](x: f32[n]) -> (y: f32[n]), and the nodes of its call where its
// statements do not say theirs.
std::string function_comment(Build &b, const Func &f, Syms nodes);
// Parameters that may be the same buffer: those of `attr inplace = [["y", "x"]]`.
std::unordered_set<std::string_view> in_place(const Build &b, const Func &f);
Sym defined_by(const Stmt *s);  // the one name that a let, an alloc or a view defines; Sym{}: none
// `HEAD(a, b) {`, broken at 120 columns.
std::string function_head(std::string head, const std::vector<std::string> &params, std::string_view end = ") {");
std::string needs_attribute(const std::vector<std::string> &needs);  // __attribute__((target("avx512vnni"))), or empty

class Unit {
 public:
  // cuda: graphs run on the host and launch synced kernels (sync/sync.h).
  Unit(Build &b, const Module &m, const std::string &prefix, RunChecks checks, Diag &diag, bool cuda = false);

  const Emitted *function(Sym name, Syms nodes);  // null after an error; nodes: of the call, for the comment
  // Its C++ name; lanes: of the form that works on vectors; fma: the helper that its caller has.
  std::string scalar(const Func *f, int lanes, std::string_view fma);
  // exp of f32: @exp.f32, @exp.fma.f32 if fused; null: there is none
  const Func *library(std::string_view name, DType t, bool fused = false);
  void use(Sym constant);                         // it must be in the weights
  bool uses(Sym constant) const { return constants_.count(constant); }

  // Of targets (body_intrinsic.cc): the memory that a scope is; null: it is the host's own.
  const Feature *memory(Sym scope) const;
  void use_target(const Func &intrinsic);
  std::string prelude() const;  // what the targets that are used want in front of all functions
  std::vector<std::pair<std::string, std::string>> conditions() const;  // that NAME_init checks; what it says otherwise
  std::vector<std::string> needs;  // instruction sets of intrinsics
  std::vector<const Target *> targets;
  std::vector<const Feature *> memories;

  Build &b;
  const Module &m;
  const std::string prefix;
  const RunChecks checks;
  const bool cuda;
  Diag &diag;
  Helpers helpers;
  Namer globals;          // names of the file
  std::string functions;
  std::string kernels;            // of cuda: what runs on the device
  std::string declarations;             // of C functions that are linked in
  std::vector<std::string> includes;    // "<cblas.h>", in order, each once
  std::vector<std::string> links;       // "-lopenblas"
  std::vector<Definition> scalars;
  bool device_fails = false;      // a kernel may set the code of a failure

 private:
  std::string global_name(Sym name);
  bool has_fma_inside(const Func *scalar, std::unordered_set<const Func *> &seen) const;
  const Emitted *foreign(const Func &f);
  std::string print_function(const Func &f, const std::string &ident, Syms nodes, Emitted &out);
  std::string print_launch(const Func &f, const std::string &ident, Syms nodes, Emitted &out);  // unit_cuda.cc
  std::optional<Module> math_;
  std::unordered_map<Sym, Emitted> emitted_;
  std::map<std::tuple<const Func *, int, std::string_view>, std::string> scalar_names_;
  Library math_library_;
  std::unordered_set<Sym> constants_, open_;
};

}  // namespace mlc
