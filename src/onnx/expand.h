// Operators of domains other than ONNX's own, and those that runtimes put into it: each is written in operators of the
// table.
//   com.microsoft.BiasGelu(a, b)       t: f32[n, 4] = Add(a, b);  y: f32[n, 4] = Gelu(t)
//   ai.onnx.ml.TreeEnsemble {nodes..}  @features, @splits .. become constants;  y = TreeEnsemble(x, @features, ..)
#pragma once
#include "onnx/importer.h"
#include "onnx/schema.h"

namespace mlc::onnx {

class Expansion;

// A value of an expansion. Operators on terms are ONNX's; a number takes the type of the term beside it.
struct Term {
  Expansion *e = nullptr;
  Value *v = nullptr;                     // null: left out
  explicit operator bool() const { return v; }
  const IrType *type() const { return v->type; }
  DType elem() const { return v->type->elem; }
  size_t rank() const { return v->type->rank(); }
  X dim(size_t i) const;
  std::vector<X> dims() const;
};

class Expansion {
 public:
  Expansion(Importer &im, const Node &node, Scope &scope, Use &use, std::vector<Sym> names)
      : im(im), b(im.b), node(node), scope(scope), use(use), results(names.size()), names_(std::move(names)) {}
  Importer &im;
  Build &b;
  const Node &node;
  Scope &scope;
  Use &use;                               // as the model has it
  std::vector<Value *> results;           // null: not given yet

  size_t inputs() const { return use.inputs.size(); }
  Term in(size_t i);                      // Invalid if it is left out
  Term maybe(size_t i) { return {this, use.input(i)}; }
  bool has(size_t i) const { return use.input(i); }
  bool wants(size_t k) const { return k < results.size(); }

  // Attributes, each taken: one that no expansion asked for is not supported.
  bool has_attr(Text name) const { return use.attribute(name); }
  int64_t integer(Text name, int64_t otherwise) { return use.take_int(name, otherwise); }
  float number(Text name, float otherwise);
  Text text(Text name, Text otherwise);
  std::vector<int64_t> integers(Text name);
  std::vector<float> numbers(Text name);
  std::vector<Text> texts(Text name);

  Term op(std::string name, std::vector<Term> inputs, std::vector<Attribute> attributes = {},
          DType wanted = DType::Invalid);
  std::vector<Term> ops(std::string name, size_t outputs, std::vector<Term> inputs,
                        std::vector<Attribute> attributes = {});
  // Output k of the node is t. If t is what was written last it gets the output's name.
  void give(size_t k, Term t);

  Term none() { return {this, nullptr}; }
  Term num(double v, DType t) { return {this, im.number(v, t)}; }
  Term axes(const std::vector<int64_t> &v) { return {this, im.list(v)}; }
  Term list(const std::vector<X> &v) { return {this, im.list(v)}; }
  Term index(X x) { return {this, im.index(x)}; }
  // Constants of the module.
  Term floats(Text name, const std::vector<float> &v, std::vector<int64_t> dims, DType t = DType::F32);
  Term doubles(Text name, const std::vector<double> &v, std::vector<int64_t> dims);
  Term ints(Text name, const std::vector<int64_t> &v, std::vector<int64_t> dims, DType t = DType::I64);
  Term strings(Text name, const std::vector<Text> &v, std::vector<int64_t> dims);
  Term tensor(const Tensor &t, Text name);
  std::optional<Array> array(Text name);  // a tensor that is an attribute
  bool is_read(size_t k) const { return k < node.outputs.size() && scope.read.count(node.outputs[k]); }

  // The common ones.
  Term cast(Term x, DType t) { return x.elem() == t ? x : op("Cast", {x}, {}, t); }
  Term reshape(Term x, const std::vector<X> &dims) { return op("Reshape", {x, list(dims)}); }
  Term transpose(Term x, std::vector<int64_t> perm) {
    return op("Transpose", {x}, {attribute("perm", std::move(perm))});
  }
  Term slice(Term x, int64_t axis, X from, X to);
  Term concat(std::vector<Term> parts, int64_t axis) {
    return op("Concat", std::move(parts), {attribute("axis", axis)});
  }
  Term unsqueeze(Term x, int64_t axis) { return op("Unsqueeze", {x, axes({axis})}); }
  Term where(Term c, Term x, Term y) { return op("Where", {c, x, y}); }
  Term reduce(std::string name, Term x, int64_t axis, bool keep = true);

 private:
  std::vector<Sym> names_;
};

Term operator+(Term x, Term y);
Term operator-(Term x, Term y);
Term operator*(Term x, Term y);
Term operator/(Term x, Term y);
Term operator+(Term x, double y);
Term operator-(Term x, double y);
Term operator*(Term x, double y);
Term operator/(Term x, double y);
Term operator+(double x, Term y);
Term operator-(double x, Term y);
Term operator*(double x, Term y);

struct Extra {
  Text domain;
  Schema schema;
  void (*expand)(Expansion &);
};
const Extra *find_extra(Text domain, Text op);  // null: not known here

}  // namespace mlc::onnx
