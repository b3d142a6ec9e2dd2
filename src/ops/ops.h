// Operators: the table (grammar/ops.def), and the two things that define one: a rule that gives the shapes of its
// results, and its meaning as a tensor expression. Interpreter, lowering, importer and documentation follow from these.
//
// How an operator is added: one line in grammar/ops.def, one rule and one definition in src/ops/FAMILY.cc, one test.
// An elementwise operator is its line alone: ELEMENTWISE(Relu, "x:T", "y:T", "T=num", "", "max(x, 0.0)").
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

struct Operand {  // "x:T", "ids:i64", "b:T?", "rest:T*", "k:size"
  std::string name;
  std::string type;  // an element type, or a type variable; of a result "size": an index scalar, a size that is data
  bool optional, variadic;
};
struct AttrSpec {
  std::string name;
  char type;             // i int, f float, s string, I F S lists of them, v a scalar of the result's type, m map
  std::string fallback;  // the default as text: "-1", "\"NOTSET\""; "": required; "?": none, absent has its own meaning
};
struct TypeVar {  // "T=float": what a variable may stand for; "R=any else T": T's where neither inputs nor text say it
  std::string name, group, otherwise;
};
struct OpInfo {
  std::string name;
  std::vector<Operand> inputs, outputs;
  std::vector<TypeVar> types;
  std::vector<AttrSpec> attrs;  // in canonical order
  Pattern pattern;
  std::string expression;       // of ELEMENTWISE and REDUCE: text over the input names, attributes by name
  std::vector<Dims> (*shape)(OpUse &u);  // of each result; {} for a size
  void (*define)(Define &d);  // null: it reads letters or a file, and is run by the graph interpreter alone
  void (*count)(Define &d);  // of operators whose first result is a size: computes it as result 0, i64[]; else null
  const Operand *input(size_t i) const;   // variadic ones repeat; null: too many
  const Operand *output(size_t i) const;
  const AttrSpec *attr(std::string_view key) const;  // null: there is none
};
const OpInfo *find_op(std::string_view name);  // null if there is none
std::span<const OpInfo> all_ops();             // by name
bool in_group(std::string_view group, DType t);  // num, float, int, any, data (any and str), "i32|i64" ...

// What a rule throws when a use is wrong; the caller adds place, node and operator.
struct OpError : std::runtime_error { using runtime_error::runtime_error; };
// The same where the use is legal ONNX but beyond mlc: the importer tells the two apart.
struct OpUnsupported : OpError { using OpError::OpError; };

// One use of an operator: `y: T = Op(a, @w, none, 6.0) {k = v}`.
class OpUse {
 public:
  // inputs: types of the arguments that are values or constants; null for literals, lists, index expressions and none,
  // whose types follow from the operator (infer fills them in).
  OpUse(Build &b, const OpInfo &op, std::vector<const Type *> inputs, Exprs args, Attrs attrs,
        const Module *m = nullptr);
  Build &b;
  const OpInfo &op;
  std::vector<const Type *> types;  // of the inputs; null: `none` or not given
  Exprs args;                       // as written: Name, Global, literal, List, index expression, None
  Attrs attrs;
  const Module *module;             // to look constants up; may be null
  // The results as the text has them, where there is a text: their names (so the number that is wanted; none: one) and
  // the type of the first, which decides the element type where nothing else does (Cast, ConstantOfShape).
  std::vector<Sym> results;
  const Type *wanted = nullptr;
  // What the caller knows of an input that is a Name: its elements as index expressions (a Shape that became
  // dimensions).
  std::function<std::optional<std::vector<const Expr *>>(Sym)> known;

  size_t inputs() const { return types.size(); }
  bool has(size_t i) const { return i < types.size() && types[i]; }
  const Type *type(size_t i) const;   // throws if it is missing
  DType elem(size_t i) const { return type(i)->elem; }
  Dims dims(size_t i) const;          // as X values (ops/expr.h)
  X dim(size_t i, size_t axis) const { return dims(i)[axis]; }
  size_t rank(size_t i) const { return type(i)->rank(); }
  size_t result_count() const { return results.empty() ? 1 : results.size(); }

  // Attributes by name, with the table's default. The plain forms throw if there is neither.
  bool has_attr(std::string_view name) const;  // given, or with a default
  int64_t attr_int(std::string_view name) const;
  double attr_float(std::string_view name) const;
  std::string attr_str(std::string_view name) const;
  std::vector<int64_t> attr_ints(std::string_view name) const;  // below 2^40; empty if absent with "?"
  std::vector<double> attr_floats(std::string_view name) const;
  const Expr *attr_value(std::string_view name) const;          // as an expression; null if absent
  int64_t axis(std::string_view name, size_t rank) const;       // attr_int, counted from the end if negative, checked
  int64_t axis(int64_t value, size_t rank) const;               // the same for a value

  // Elements of a small input, if they are known when compiling: a literal, a list, index expressions, an inline
  // constant of the module. nullopt: not known.
  std::optional<std::vector<X>> values(size_t i) const;
  std::vector<X> need_values(size_t i) const;         // throws "... must be known when compiling"
  std::vector<int64_t> need_ints(size_t i) const;     // literals only
  std::vector<double> need_floats(size_t i) const;    // literals only
  X need_value(size_t i) const;                       // of an input with one element
  int64_t need_int(size_t i) const;

  // Facts that the rule needs of symbolic dimensions; the caller writes them as `assume`, or fails if one is false.
  void assume(X condition);
  void assume_equal(X a, X b, std::string_view what);  // nothing if provable; fails if both are literals and differ
  std::vector<const Expr *> assumptions;

  X lit(int64_t v) const { return mlc::lit(b, v); }
  X result_size(size_t i) const;                      // result i, of type "size", as an index expression
  // n sizes that are data stand before the results of the table: `p: index, q: index, y: f32[p, q] = Reshape(x, s)`.
  Dims sizes_first(size_t n);
  size_t sizes = 0;
  X most;  // what result 0, a size that the operator counts, is at the most; set by its shape rule
  const Type *tensor(DType elem, const Dims &dims) const;  // a type; dimensions are simplified
  DType elem_of(const Operand &o) const;              // the element type of an operand, its variable bound; throws
  void check();  // arity, attributes, element types; fills the types of literals in. infer and define do it.
  bool is_literal(size_t i) const { return literal_[i]; }  // a literal, list or index expression
  std::string input_name(size_t i) const;             // "input 2 (shape)", for messages
  [[noreturn]] void fail(const std::string &message) const { throw OpError(message); }
  [[noreturn]] void lack(const std::string &message) const { throw OpUnsupported(message); }

 private:
  DType bound(const std::string &var) const;
  void bind(const std::string &var, DType t, const std::string &what);
  std::vector<std::pair<std::string, DType>> bound_;
  std::vector<bool> literal_;  // which arguments are neither values nor constants
};

// The definition: writes `alloc` and `compute` statements of a kernel.
class Define : public OpUse {
 public:
  // names: the buffer of each input (Sym{} for none and for literals) and of each result (Sym{}: not wanted).
  Define(const OpUse &use, std::vector<Sym> inputs, std::vector<Sym> outputs, std::vector<const Type *> results,
         Fresh &fresh, Syms from);
  Tensor in(size_t i);          // a buffer or a literal; throws if missing
  Tensor out(size_t i = 0);
  bool wants(size_t i) const { return i + sizes < out_.size() && out_[i + sizes]; }
  Tensor temp(DType elem, const Dims &dims, std::string_view base);  // `alloc`, a fresh name

  // compute t[i in .., j in ..] = f({i, j}); axis names are i, j, k ... without those that are taken.
  void compute(const Tensor &t, const std::function<X(const Indices &)> &f);
  // temp + compute.
  Tensor make(std::string_view base, DType elem, const Dims &dims, const std::function<X(const Indices &)> &f);
  // Reductions: sum(e for k in n). An empty `over` is the expression itself.
  // kind: sum prod max min all any.
  X reduce(std::string_view kind, const Dims &over, const std::function<X(const Indices &)> &f);
  // A sum of terms of type t; f16, bf16 and f8 accumulate in f32, which is then the type of the result.
  X sum(DType t, const Dims &over, const std::function<X(const Indices &)> &f);

  // Perfect loops around one block. Axes are spatial, or scan where `kinds` says 's'. f writes the body.
  class Body {
   public:
    X let(std::string_view base, DType t, X value);  // base: t = value
    void assume(X condition);
    void store(const Tensor &t, const Indices &i, X value);
    using Part = std::function<void(Body &)>;
    void when(X condition, const Part &f);
    void choose(X condition, const Part &yes, const Part &no);
    void loop(X extent, const std::function<void(Body &, X)> &f);  // for i in extent: turns in order
    Tensor local(std::string_view base, DType t, X start);         // a scalar that changes: t[] in local
    // An index that is data: index(x), checked against -n <= r < n, negative ones counted from the end.
    X index(std::string_view base, X value, X n, bool negative = true);
    std::vector<const Stmt *> stmts;
    Define &d;
    explicit Body(Define &d) : d(d) {}
  };
  void block(std::string_view base, const Dims &domain, std::string_view kinds,
             const std::function<void(Body &, const Indices &)> &f);
  void stmt(const Stmt *s);  // a statement that is none of these
  Sym fresh(std::string_view base);

  // Values of other operators, for composites: their definitions are written into this kernel, with their own buffers.
  Tensor apply(std::string_view name, std::vector<Tensor> inputs, std::vector<Attr> attrs = {});
  std::vector<Tensor> apply_all(std::string_view name, size_t results, std::vector<Tensor> inputs,
                                std::vector<Attr> attrs = {}, const Type *wanted = nullptr);
  void apply_into(const std::vector<Tensor> &results, std::string_view name, std::vector<Tensor> inputs,
               std::vector<Attr> attrs = {});
  Tensor literal(const Expr *e, DType elem);  // a scalar literal or a list of index expressions
  Tensor ints(const std::vector<X> &v);       // the list as an i64 tensor, for shapes and axes
  Tensor none() const { return {}; }
  Attr attr(std::string_view key, int64_t v);
  Attr attr(std::string_view key, const std::vector<int64_t> &v);
  Attr attr(std::string_view key, double v);
  Attr attr(std::string_view key, std::string_view v);

  std::vector<const Stmt *> body;  // what was written

 private:
  friend class Body;
  std::vector<Iter> iters(const Dims &domain, std::vector<Sym> &names, Indices &out) const;
  std::vector<Sym> in_, out_;
  std::vector<const Type *> result_types_;
  std::vector<Tensor> lists_;      // inputs that are lists, once they have a buffer
  std::vector<Sym> axes_;          // names of the axes around the expression or block that is being written
  Fresh &fresh_;
  Syms from_;
};

// The three uses of all this:
// 1. Types of the results of a Let whose value is an operator call, as many as the operator has with these inputs; a
//    text that names fewer leaves out the last ones. Null: any type, as it is written. Throws OpError.
std::vector<const Type *> infer(OpUse &use);
// 2. The statements of a kernel that computes it, in terms of the buffers named; composites are expanded and defined,
//    with buffers of their own. Literal tensors that cannot stand in an expression become `alloc` + `compute`.
std::vector<const Stmt *> define(const OpUse &use, std::vector<Sym> inputs, std::vector<Sym> outputs,
                                 std::vector<const Type *> results, Fresh &fresh, Syms from);
// 3. A kernel of its own for one use: parameters are the index scalars that its tensors do not give as dimensions, then
//    the tensor inputs that it reads, called as the table calls them. Used by mlc-lower for single operators and by the
//    graph interpreter. The assumptions of the use stand at its head.
//      @gather(x, ids) of x: f32[n, 4], ids: i64[2 * p * q]  ->  kernel @k[n](p: index, q: index, x: .., ids: ..)
struct OpKernel {
  const Func *kernel;
  std::vector<Sym> indices;    // its first parameters: index scalars, by their names in the graph
  std::vector<size_t> inputs;  // its other parameters: which inputs of the use, in order
  X most;                      // of a count: what it is at the most, in names of the graph
};
// Of an operator whose first result is a size that is data: `k: index, y: i64[2, k] = NonZero(x)`. Two kernels, the
// size is an index parameter of the second:   c: i64[] = @count(x)   k: index = Item(c)   y: i64[2, k] = @fill(k, x)
// In a kernel a string is its number in a table of whoever runs the graph, an i64: str becomes i64 in its types, and
// copies, choices and equality need no more. The number of "" is 0.
OpKernel count_kernel(const OpUse &use, Sym name, Syms from);
OpKernel op_kernel(const OpUse &use, std::vector<const Type *> results, Sym name, Syms from);

}  // namespace mlc
