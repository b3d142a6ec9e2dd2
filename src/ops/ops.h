// Operators: the table (grammar/ops.def), and the two things that define one: a rule that gives the types of its results,
// and its meaning as a tensor expression. Interpreter, lowering, importer and documentation all follow from these.
//
// How an operator is added: one line in grammar/ops.def, one rule and one definition in src/ops/FAMILY.cc, one test.
// An elementwise operator is its line alone: ELEMENTWISE(Relu, "X", "", num, "max(X, 0.0)").
#pragma once
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "ir/module.h"
#include "ops/expr.h"

namespace mlc {

// Pattern kinds for fusion, in TVM's order.
enum class Pattern : uint8_t { Elementwise, Broadcast, Injective, Reduction, OutFusable, Opaque };
std::string_view pattern_name(Pattern p);  // "elementwise", ..., "out_fusable", "opaque"

class OpUse;
class Define;

struct Operand {
  std::string name;
  bool optional, variadic;
};
struct AttrSpec {
  std::string name;
  char type;             // i int, f float, s string, I ints, F floats, S strings, m map (LayoutTransform)
  std::string fallback;  // the default as text ("-1", "1e-05", "\"NOTSET\""); "" = required; "?" = none, absent has a meaning of its own
};
struct OpInfo {
  std::string name;
  std::vector<Operand> inputs, outputs;
  std::vector<AttrSpec> attrs;  // in canonical order
  Pattern pattern;
  std::string expression;       // of ELEMENTWISE: text over the input names, attributes by name
  std::vector<const Type *> (*infer)(OpUse &u);  // types of all results
  void (*define)(Define &d);                     // null: it has `expand`
  void (*expand)(Define &d);                     // a composite: written with d.op(...) in other operators; else null
  const Operand *input(size_t i) const;          // variadic ones repeat; null: too many
};
const OpInfo *find_op(std::string_view name);  // null if there is none
std::span<const OpInfo> all_ops();

// What a rule throws when a use is wrong; the caller adds place, node and operator.
struct OpError : std::runtime_error { using runtime_error::runtime_error; };

// One use of an operator: `y: T = Op(a, @w, none, 6.0) {k = v}`.
class OpUse {
 public:
  OpUse(Build &b, const OpInfo &op, std::vector<const Type *> inputs, Exprs args, Attrs attrs, const Module *m = nullptr);
  Build &b;
  const OpInfo &op;
  std::vector<const Type *> types;  // of the inputs; null: `none` or not given
  Exprs args;                       // as written: Name, Global, literal, List, index expression, None
  Attrs attrs;
  const Module *module;             // to look constants up; may be null
  // What the caller knows of an input that is a Name: its elements as index expressions (a Shape that became dimensions).
  std::function<std::optional<std::vector<const Expr *>>(Sym)> known;

  size_t inputs() const { return types.size(); }
  bool has(size_t i) const { return i < types.size() && types[i]; }
  const Type *type(size_t i) const;   // throws if it is missing
  DType elem(size_t i) const { return type(i)->elem; }
  Dims dims(size_t i) const;          // as X values (ops/expr.h)
  size_t rank(size_t i) const { return type(i)->rank(); }

  // Attributes by name, with the table's default. The plain forms throw if there is neither.
  bool has_attr(std::string_view name) const;
  int64_t attr_int(std::string_view name) const;
  double attr_float(std::string_view name) const;
  std::string attr_str(std::string_view name) const;
  std::vector<int64_t> attr_ints(std::string_view name) const;  // empty if absent with "?"
  std::vector<double> attr_floats(std::string_view name) const;
  int64_t axis(std::string_view name, size_t rank) const;       // attr_int, counted from the end if negative, checked

  // Elements of a small integer input, if they are known when compiling: a literal, a list, index expressions, an inline
  // constant of the module. nullopt: not known.
  std::optional<std::vector<X>> values(size_t i) const;
  std::vector<X> need_values(size_t i) const;         // throws "... must be known when compiling"
  std::vector<int64_t> need_ints(size_t i) const;     // literals only

  // Facts that the rule needs of symbolic dimensions; the caller writes them as `assume`, or fails if one is false.
  void assume(X condition);
  std::vector<const Expr *> assumptions;

  const Type *tensor(DType elem, const Dims &dims);   // a result type
  [[noreturn]] void fail(std::string message) const { throw OpError(message); }
};

// The definition: writes `alloc` and `compute` statements of a kernel (or, for `expand`, statements of a graph).
class Define : public OpUse {
 public:
  // names: the buffer of each input (Sym{} for none and for literals) and of each result.
  Define(const OpUse &use, std::vector<Sym> inputs, std::vector<Sym> outputs, std::vector<const Type *> results, Fresh &fresh,
         Syms from);
  Tensor in(size_t i);          // a buffer or a literal; throws if missing
  Tensor out(size_t i = 0);
  Tensor temp(DType elem, const Dims &dims, std::string_view base);  // `alloc`, a fresh name

  // compute t[i in .., j in ..] = f({i, j}); axis names are made from `axes` or i, j, k ...
  void compute(const Tensor &t, const std::function<X(const Indices &)> &f);
  // compute several results at once by a reducer of the module: @r(a, b for k in n)
  // Reductions: sum(e for k in n). An empty `over` is the expression itself.
  X sum(const Dims &over, const std::function<X(const Indices &)> &f);
  X reduce(std::string_view kind, const Dims &over, const std::function<X(const Indices &)> &f);  // sum prod max min all any
  // A statement that is none of these (loops with `scan`, `assume` before data-dependent indices ...).
  void stmt(const Stmt *s);
  Sym fresh(std::string_view base);

  // For expand: a value of another operator; its type comes from that operator's rule.
  Tensor op(std::string_view name, std::vector<Tensor> inputs, std::vector<Attr> attrs = {});
  void result(size_t i, const Tensor &t);  // this is result i (for expand)
  Attr attr(std::string_view key, int64_t v);
  Attr attr(std::string_view key, const std::vector<int64_t> &v);
  Attr attr(std::string_view key, double v);
  Attr attr(std::string_view key, std::string_view v);

  std::vector<const Stmt *> body;  // what was written

 private:
  std::vector<Sym> in_, out_;
  std::vector<const Type *> result_types_;
  Fresh &fresh_;
  Syms from_;
};

// The three uses of all this:
// 1. Types of the results of a Let whose value is an operator call. Throws OpError.
std::vector<const Type *> infer(OpUse &use);
// 2. The statements of a kernel that computes it, in terms of the buffers named; composites are expanded and defined,
//    with buffers of their own. Literal tensors that cannot stand in an expression become `alloc` + `compute`.
std::vector<const Stmt *> define(const OpUse &use, std::vector<Sym> inputs, std::vector<Sym> outputs,
                                 std::vector<const Type *> results, Fresh &fresh, Syms from);
// 3. A kernel of its own for one use: parameters are the tensor inputs (p0, p1 .. or their names), dims are the names that
//    occur in their types. Used by mlc-lower for single operators and by the graph interpreter.
struct OpKernel {
  const Func *kernel;
  std::vector<size_t> inputs;  // which inputs of the use are its parameters, in order
};
OpKernel op_kernel(const OpUse &use, std::vector<const Type *> results, Sym name, Syms from);

}  // namespace mlc
