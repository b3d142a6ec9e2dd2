// The state of one import, and what its parts share. Included by src/onnx/*.cc only.
#pragma once
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "arith/bounds.h"
#include "data/files.h"
#include "onnx/error.h"
#include "onnx/import.h"
#include "onnx/proto.h"
#include "onnx/tensor.h"
#include "ops/ops.h"

namespace mlc::onnx {

struct Extra;  // onnx/expand.h
using IrType = mlc::Type;
using Elements = std::optional<std::vector<X>>;

// A constant of the module, written only if something uses it.
struct Constant {
  Sym name;
  const IrType *type = nullptr;
  const Tensor *tensor = nullptr;        // null: `elements` are all of it
  std::vector<const Expr *> elements;
  Text from;
};

// A sequence by its elements, or an optional by what it holds: no value or one. Known wherever it occurs; the text that
// is written has tensors only.
struct Value;
struct Group {
  bool optional = false;
  std::vector<Value *> items;
};

// What a name of the model stands for.
struct Value {
  Text name;
  const Expr *expr = nullptr;            // a Name, a Global, or a literal
  const IrType *type = nullptr;          // null: the node that gives it could not be imported
  bool literal = false;                  // a number, list or index expression: its type follows from its use
  Elements known = std::nullopt;         // a small tensor's elements: numbers and index expressions, row-major
  const Constant *constant = nullptr;
  bool looked = false;                   // a constant's elements were looked at
  const Group *group = nullptr;          // a sequence or an optional: without `expr` and `type`

  bool failed() const { return !type && !group; }
};

// One operator to be written. Conversions (convert.cc) turn what a model says into what the newest opset means.
struct Use {
  std::string op;
  int64_t opset = 0;
  std::vector<Value *> inputs;           // null: left out
  std::vector<Attribute> attributes;
  size_t outputs = 1, listed = 1;        // how many results are wanted; how many the model's node lists
  DType wanted = DType::Invalid;         // element type of the first result, where the inputs do not say it
  std::vector<X> wanted_dims;            // with `wanted`: its shape, where nothing else says it
  bool advances = false;                 // its last result is the next state of the generator
  std::vector<const Expr *> facts;       // what it relies on
  std::function<Use(Value *)> then;  // the operator that makes the first output from the first result, if they differ
  Text base;                             // what names of temporaries are made from
  Syms from;

  Value *input(size_t i) const { return i < inputs.size() ? inputs[i] : nullptr; }
  void set_input(size_t i, Value *v);    // with gaps left out
  const Attribute *attribute(Text name) const;
  std::optional<Attribute> take(Text name);                // and removes it
  int64_t take_int(Text name, int64_t otherwise);
  void set(Attribute a);                 // in place of one of that name
};
Attribute attribute(Text name, int64_t v);
Attribute attribute(Text name, float v);
Attribute attribute(Text name, Text v);                    // v outlives the use
Attribute attribute(Text name, std::vector<int64_t> v);

using Opsets = std::unordered_map<Text, int64_t>;          // by domain; "" is ai.onnx

// What names mean: in the main graph, in a body of If or Loop, in a function.
struct Scope {
  const Scope *outer = nullptr;          // functions see nothing around them
  const Opsets *opsets = nullptr;
  std::unordered_map<Text, Value *> values;
  std::unordered_map<Text, const Tensor *> initializers;   // not looked at before something uses them
  std::unordered_map<Text, const onnx::Type *> declared;   // value_info and outputs
  std::unordered_map<Text, Attribute> arguments;           // of the function, by the names of its attributes
  std::unordered_map<Text, Sym> names;                     // what results must be called
  std::string prefix;                    // of node names: "encoder/"
  const std::vector<Node> *nodes = nullptr;
  std::unordered_set<Text> read;         // values that some node or output of it reads

  int64_t opset() const { return opsets->at(""); }
};

// Statements in order, each with the facts that stand before it.
struct Body {
  struct Entry {
    const Stmt *stmt;
    std::vector<const Expr *> assumptions;
  };
  std::vector<Entry> entries;
};

struct TooLarge {};  // thrown where functions that call functions, or loops that are unrolled, make too many nodes
inline constexpr size_t kMostImported = 1 << 20;  // of those

class Importer {
 public:
  Importer(Build &b, const ImportOptions &options) : b(b), options_(options), fresh_(b), module_names_(b), bounds_(b) {}
  bool run(Module &m, std::string &error_lines);

  Build &b;

  // ---- values (values.cc)
  Value *keep(Value v);                  // for the time of the import
  Value *integer(int64_t v);             // literals
  Value *index(X x);
  Value *number(double v, DType t);
  Value *list(const std::vector<int64_t> &v);
  Value *list(const std::vector<X> &v);
  Value *truth(bool v);
  Value *group(Text name, std::vector<Value *> items, bool optional = false);  // (sequences.cc)
  const Elements &known(Value *v);       // a small constant is decoded on the first call
  std::optional<std::vector<int64_t>> known_ints(Value *v);
  bool is_known(Value *v, bool truth);
  bool is_input(const Value *v) const;
  const Bounds &bounds() const { return bounds_; }
  bool inside_body() const { return bodies_; }
  Value *random_state = nullptr;         // where the generator stands; null: nothing was drawn yet

  // Writes an operator and returns its result; `base`: what its name is made from.
  Value *emit(Text base, std::string op, std::vector<Value *> inputs, std::vector<Attribute> attributes = {},
              DType wanted = DType::Invalid, std::vector<X> wanted_dims = {});
  std::vector<Value *> emit_all(Text base, std::string op, size_t outputs, std::vector<Value *> inputs,
                                std::vector<Attribute> attributes = {});
  Value *lookup(const Scope &scope, Text name);  // throws Invalid if there is none
  X item(Value *v, std::string_view what);  // the only element, as an index; read when the program runs if not known
  void rename_last(Value *v, Sym name);  // if the last statement is what defines v; else nothing
  Value *constant(Text name, Text from, const IrType *type, std::vector<const Expr *> elements);
  std::vector<const Expr *> literals(const Array &a);
  Array array_of(const Tensor &t);
  // The output of a node's body (an attribute) with these inputs, its nodes in place. Null: a node of it failed.
  Value *inlined(const Node &n, Text attribute, const Scope &scope, const std::vector<Value *> &inputs);

 private:
  // import.cc
  bool read();
  void read_opsets(const std::vector<OpsetId> &from, Opsets &to);
  void reserve_names(const Graph &g, Scope &scope);
  void enter(const Graph &g, Scope &scope);
  void inputs(const Graph &g, Scope &scope);
  Value *bound_input(const ValueInfo &v, const std::string &text);
  Value *input(const ValueInfo &v, Scope &scope);
  Value *parameter(Text name, Sym s, const IrType *type);
  std::vector<Value *> outputs(Value *v, Text name, const Scope &scope, std::vector<Sym> &names);
  const IrType *input_type(const onnx::Type &t);
  const IrType *declared_type(const onnx::Type &t);        // null if a dimension of it is not known
  const Expr *dimension(const Dim &d);
  const Item *main_graph(const Graph &g, Scope &scope);
  void error(bool unsupported, std::string_view what);
  // nodes.cc
  void nodes(const std::vector<Node> &nodes, const std::vector<Text> &wanted, Scope &scope);
  void node(const Node &n, Scope &scope);
  void import_node(const Node &n, Scope &scope);
  void standard_node(const Node &n, Scope &scope);
  void extra_node(const Node &n, const Extra &extra, const std::vector<Text> &outputs, Use &use, Scope &scope);
  void constant_node(const Node &n, Scope &scope, const Use &use);
  void function_node(const Node &n, const Function &f, Scope &scope);
  std::vector<Attribute> attributes_of(const Node &n, const Scope &scope) const;
  void failed(const Node &n, Scope &scope, bool unsupported, std::string_view why);
  void bind(Scope &scope, Text name, Value *v);
  void check_declared(const Scope &scope, Text name, const IrType *type);
  Sym name_for(const Scope &scope, Text name);
  Syms from_of(const Node &n, const Scope &scope);
  // write.cc
  std::vector<Value *> write(Use &use, const std::vector<Sym> &names);
  std::vector<Attr> attributes(const Use &use, const OpInfo &op);
  std::vector<Sym> result_names(const Use &use, const OpInfo &op, const std::vector<Sym> &names,
                                std::vector<size_t> &outputs);
  void check_sizes(const IrType *type, std::vector<const Expr *> &facts);
  bool itemize(Value *v);
  void add(const Stmt *s, std::vector<const Expr *> assumptions = {});
  const Let *let(std::vector<Def> defs, const Expr *value, std::vector<Attr> attrs, Syms from);
  Stmts pruned(const Body &body, std::unordered_set<Sym> live);
  // sequences.cc
  Value *group_input(const ValueInfo &v, Sym own, const std::string *bound);
  const IrType *element_type(const onnx::Type &t, int64_t i);
  bool group_node(const Node &n, Scope &scope, Use &use);
  void sequence_map(const Node &n, Scope &scope, const Use &use);
  Value *split_to_sequence(Use &use);
  Sym element_name(Text base, int64_t i);
  bool alike(const Value *a, const Value *b) const;        // the same groups of as many items
  void flatten(Value *v, std::vector<Value *> &leaves) const;
  std::vector<Value *> flatten(const std::vector<Value *> &values) const;
  std::vector<Value *> regroup(const std::vector<Value *> &like, const std::vector<Value *> &leaves);
  // control.cc
  void loop_node(const Node &n, Scope &scope, const Use &use);
  void scan_node(const Node &n, Scope &scope, const Use &use);
  class InBody {                         // statements go to `into` while it lives; null: where they went before
   public:
    InBody(Importer &im, Body *into) : im_(im), around_(im.body_), inner_(into != nullptr) {
      if (into) im.body_ = into, ++im.bodies_;
    }
    ~InBody() { im_.body_ = around_, im_.bodies_ -= inner_; }

   private:
    Importer &im_;
    Body *around_;
    bool inner_;
  };
  using Values = std::optional<std::vector<Value *>>;  // null: a node failed
  void if_node(const Node &n, Scope &scope, const Use &use);
  struct LoopParts {
    const Expr *trip = nullptr;          // null: no limit
    Value *condition = nullptr;          // tested before the first turn; null: true
    bool conditional = false;            // a turn's first value says whether there is another one
    std::vector<Value *> carried;
    std::vector<Text> names;             // what carried values are called inside
    std::vector<Sym> results;            // what results are called; those missing or null have no name
    std::vector<const onnx::Type *> declared;  // of the results
    // Writes one turn to `into`, null: to where the loop is. Gives the condition, what is carried on, what is stacked.
    std::function<Values(X turn, const std::vector<Value *> &carried, Body *into)> turn;
  };
  using Varies = std::vector<std::vector<bool>>;  // by carried tensor and dimension
  struct Turn {
    Sym var;
    Body body;
    std::vector<Carry> carry;
    Value *condition = nullptr;
    std::vector<Value *> carried, stacked;  // tensors
  };
  std::optional<Turn> import_turn(const LoopParts &p, const std::vector<Value *> &carried, const Varies &varies);
  bool find_varying(const std::vector<Value *> &carried, const Turn &t, Varies &varies);
  Values write_loop(const LoopParts &p);
  Values unroll(const LoopParts &p, const std::string &why);
  Values turns(const LoopParts &p);
  struct ScanParts {
    const Graph &body;
    size_t scanned;                      // how many inputs are, the last ones
    std::vector<int64_t> axes, backward, out_axes, out_backward;
  };
  Values scan(const ScanParts &s, const std::vector<Value *> &inputs, const Scope &scope, std::vector<Sym> names);
  Values scan_batches(const ScanParts &s, const std::vector<Value *> &inputs, const Scope &scope,
                      std::vector<Sym> names);
  Text leaf_name(const LoopParts &p, size_t k) const;
  std::vector<Sym> leaf_results(const LoopParts &p);
  Value *stacked(const std::vector<Value *> &turns, const onnx::Type *declared, Sym name);
  Scope inside(const Scope &scope) const;
  Sym new_size();
  Values run_body(const Graph &g, Scope &inner, Body *into);
  const Expr *condition(Value *v);
  const Expr *trip_count(Value *v);
  Value *named(Value *v);
  void forget(Scope &scope, const std::vector<Text> &outputs);
  // constants.cc
  Value *constant(const Tensor &t, Text name, Text from);
  struct Place {                         // where a tensor's bytes lie
    std::string_view path;
    int64_t offset;
    std::span<const std::byte> file, bytes;
  };
  Place external(const Tensor &t, const Extent &e);
  const Item *item(const Constant &c);
  void file_item(std::string_view path, std::span<const std::byte> bytes);
  std::string_view model_path();

  const ImportOptions &options_;
  Mapped file_;
  Text bytes_;
  Model model_;
  Files folder_;                         // of the model: external data
  std::vector<std::string> errors_;
  Fresh fresh_, module_names_;           // names of the graph; names with @
  std::deque<Value> values_;
  std::deque<Constant> constants_;
  std::deque<Group> groups_;
  std::unordered_map<const Tensor *, Value *> constant_of_;
  std::unordered_map<Text, const Expr *> dims_;            // by dim_param
  std::vector<Sym> dim_names_;
  Bounds bounds_;                                          // of dimensions, sizes and loop variables
  std::unordered_set<Sym> items_;                          // index names read by Item: of any sign
  std::vector<Param> params_;
  std::vector<const Item *> files_;
  std::set<std::string_view> file_paths_;
  std::string side_;
  std::set<std::string> bound_;                            // bindings that were used
  std::unordered_set<Text> input_dims_;                    // dimensions that inputs name
  std::vector<Value *> itemized_;                          // values whose elements are read by Item
  Body *body_ = nullptr;
  Syms from_;                                              // the node that is imported
  std::unordered_map<std::string, const Function *> functions_;
  std::vector<const Function *> inlining_;
  size_t imported_ = 0;                                    // nodes
  int bodies_ = 0;                                         // around the node that is imported
  std::deque<Tensor> tensors_;                             // given by attributes of functions
};

// ---- parts without state

// Changes a use of an older opset to the newest one's meaning. Throws Invalid or Unsupported (convert.cc).
void convert(Importer &im, Use &use);
void draw_tensor(Importer &im, Use &u);      // random.cc
void draw_each(Importer &im, Use &u);
void draw_dropout(Importer &im, Use &u);
void unknown_reshape(Importer &im, Use &u);  // conversions of any opset (unknown.cc)
void unknown_expand(Importer &im, Use &u);
void far_slice_end(Importer &im, Use &u);
void number_pool(Importer &im, Use &u);      // text.cc
// Whether some conversion writes this operator of ONNX's in others.
bool is_converted(std::string_view op);
bool is_of_groups(std::string_view op);      // of sequences or optionals (sequences.cc)
// The elements of an operator's last result of these, if they follow from what is known of its inputs (known.cc).
Elements fold_elements(Importer &im, const Use &use, std::span<const IrType *const> results);
// Calls f on the values that a node reads: its inputs, and what its bodies take from around them (order.cc).
void each_read(const Node &n, const std::function<void(Text)> &f);
// Indices of the nodes that `wanted` needs, each behind those that it needs; what bodies take from around them counts.
// Throws Invalid for a value with two definitions and for a cycle.
std::vector<size_t> order(const std::vector<Node> &nodes, const std::vector<Text> &wanted);
Defs definitions(const Stmt *s);  // of a Let, IfValue or Loop
std::unordered_set<Sym> defined_in(const Body &body);
bool mentions_any(const Expr *e, const std::unordered_set<Sym> &names);
int64_t axis_in(int64_t axis, int64_t rank);  // 0 <= axis < rank; throws Invalid
const Graph &body_of(const Node &n, Text attribute);
const Expr *float_literal(Build &b, DType t, Scalar s);
bool is_default_domain(Text domain);
std::string function_key(Text domain, Text name, Text overload);
std::string shown(const Value *v);  // "a tensor", "a sequence of 3 elements"
std::string one_line(Text name);  // names come from the file: for messages
// node "encoder/n7" (Celu, opset 12); opset 0: not said
std::string node_title(const Node &n, std::string_view prefix, int64_t opset);

}  // namespace mlc::onnx
