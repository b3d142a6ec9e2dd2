// A running program: its memory, its compiled functions, its constants; calls of functions and operators.
#pragma once
#include <functional>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "data/files.h"
#include "interp/compile.h"
#include "interp/dims.h"
#include "interp/interp.h"
#include "interp/jitter.h"
#include "interp/memory.h"
#include "interp/races.h"
#include "interp/strings.h"
#include "ops/ops.h"

namespace mlc::interp {

struct Value {  // a tensor, or a scalar if it has no storage
  Ref ref;
  DType type = DType::Invalid;
  Scalar scalar;
  bool is_scalar() const { return !ref.storage; }
  static Value of(Ref r) {
    DType t = r.elem;
    return {std::move(r), t, {}};
  }
  static Value of(DType t, Scalar s) { return {{}, t, s}; }
  static Value of_index(int64_t v) { return of(DType::Index, Scalar::of_int(v)); }
  std::string text() const;  // its type: f32[2, 3], index
  Scalar element() const { return is_scalar() ? scalar : ref.get({}); }  // of a scalar or a tensor of rank 0
};

struct OperatorArg {
  const Expr *literal = nullptr;  // a literal, a list of literals, none; else
  Value value;
};
struct OperatorUse {
  Sym name;
  std::vector<OperatorArg> args;
  Attrs attrs;
  const Type *wanted = nullptr;  // of the first result as the text has it
  size_t results = 1;
  std::vector<Value> into;       // destinations, or empty
  Syms from;
  uint32_t at = kNowhere;
};

class Machine {
 public:
  Machine(Build &b, const Module &m, const RunOptions &options);
  Machine(const Machine &) = delete;

  // Calls a function. args: one for each parameter, or for each that is not `scratch`. into: the buffers that the
  // results are written to, or empty: then they are made. Returns the results. Throws Fault, whose message ends with
  // `in WHAT` (empty: kind and name of f) and the nodes of the model that it is `from`.
  std::vector<Value> call(const Func &f, std::vector<Value> args, std::vector<Value> into, uint32_t at,
                          std::string what = "", Syms from = {});
  std::string origin(Syms from) const;  // ` from "/a", "/b"`, or nothing
  std::vector<Value> call_operator(OperatorUse use);
  // `call NAME(..)` of an effect: fill, print, wait .. False if there is no such builtin.
  bool call_effect(std::string_view name, const std::vector<OperatorArg> &args, const std::vector<Value> &into,
                   uint32_t at);

  const Ref &constant(Sym name, uint32_t at);
  int64_t dim(const Expr *e, const IndexValues &names);
  Value eval(const Expr *e, DType want,
             const std::function<const Value *(Sym)> &value);  // a scalar expression of a graph

  const Expr *literal(DType t, Scalar v);  // a literal of the text
  Value rank0(const Value &scalar, DType t);  // a tensor of rank 0 with the scalar's value
  Ref make(DType t, std::vector<int64_t> dims) { return Ref::dense(memory, t, std::move(dims)); }

  Build &b;
  const Module &m;
  const RunOptions options;
  Memory memory;
  Strings strings{memory};
  Noise noise;  // of options.jitter
  std::unique_ptr<Races> races;  // null: nobody looks
  static constexpr int64_t kTurnsOfCall = 1000;  // what a call takes beside its loops
  int64_t turns = 0;  // of all loops so far
  void take_turns(int64_t n) {
    turns += n;
    if (options.turns && turns > options.turns) too_many_turns();
  }

 private:
  [[noreturn]] void too_many_turns() const;
  struct Operator {  // compiled for types and known values
    OpKernel kernel;
    std::vector<const Type *> results;
    std::optional<OpKernel> count;  // computes the first result, a size that is data
  };
  struct Family {    // of the same name, attributes and types
    std::vector<size_t> asked;  // inputs whose values the rule or definition wanted to know
    std::map<std::string, Operator> known;
  };
  struct ScalarUnit { const Unit *unit; const Node *node; std::vector<Sym> names; };

  const Unit *unit(const Func &f, Stmts body, const Notes &notes);
  const Lambda *lambda(const Func *f);
  const Module &math();
  std::vector<Value> compute(OperatorUse use);  // an operator without strings, by its kernel
  Operator make_operator(const OperatorUse &use, std::vector<size_t> *asked);
  Ref read_constant(const Const &c);
  Compiler compiler(const Module &home);
  std::string name(Sym s) const { return std::string(b.text(s)); }

  Files files_;
  Nodes nodes_;
  std::unordered_map<const Func *, const Unit *> units_;
  std::unordered_map<const Func *, const Lambda *> lambdas_;
  std::unordered_set<const Func *> compiling_;
  std::unique_ptr<Module> math_;  // read when the first of its functions is called
  std::unordered_map<Sym, Ref> constants_;
  std::unordered_set<Sym> reading_;
  std::map<std::string, Family> operators_;
  std::map<std::pair<const Expr *, DType>, ScalarUnit> scalars_;
  std::vector<std::shared_ptr<void>> kept_;
  int depth_ = 0;
};

// The frame of a kernel. Its constants are bound; dimensions, scalars and buffers are to be set.
class Activation {
 public:
  Activation(const Unit &u, Machine &m);
  void bind(int buffer, const Ref &r);
  void set(int slot, Scalar v) { slots_[size_t(slot)] = int64_t(v.bits); }
  Frame frame;

 private:
  std::vector<int64_t> slots_;
  std::vector<Buffer> buffers_;
  std::vector<StorageRef> owned_;
};

// Operators that read letters, and others as uses over numbers (strings.cc).
std::vector<Value> text_operator(Machine &m, const OperatorUse &use);
bool has_strings(const OperatorUse &use);
OperatorUse over_numbers(Machine &m, const OperatorUse &use, std::vector<bool> &strings);

std::vector<Value> decode_image(Machine &m, const OperatorUse &use);  // picture.cc

// Runs the statements of a graph, group, or description in operators (graph.cc).
std::vector<Value> run_graph(Machine &m, const Func &f, Stmts body, const std::vector<Value> &args,
                             const std::vector<Value> &into, const IndexValues &names);
bool is_graph_body(const Build &b, Stmts body);

}  // namespace mlc::interp
