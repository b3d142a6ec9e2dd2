#include "onnx/expand.h"

namespace mlc::onnx {

X Term::dim(size_t i) const {
  if (i >= rank()) invalid("expected at least {} dimensions, found {}", i + 1, rank());
  return {e->b, v->type->dims[i]};
}
std::vector<X> Term::dims() const {
  std::vector<X> list;
  for (const Expr *d : v->type->dims) list.emplace_back(e->b, d);
  return list;
}

Term Expansion::in(size_t i) {
  if (!has(i)) invalid("input {} is missing", i);
  return {this, use.inputs[i]};
}

namespace {
Attribute take(Use &u, Text name, AttrKind kind) {
  auto a = u.take(name);
  if (a && a->kind != kind) invalid("attribute '{}': expected {}, found {}", name, kind_name(kind), kind_name(a->kind));
  return a ? *a : Attribute{};
}
}  // namespace

float Expansion::number(Text name, float otherwise) {
  return has_attr(name) ? take(use, name, AttrKind::Float).f : otherwise;
}
Text Expansion::text(Text name, Text otherwise) {
  return has_attr(name) ? take(use, name, AttrKind::String).s : otherwise;
}
std::vector<int64_t> Expansion::integers(Text name) { return take(use, name, AttrKind::Ints).ints; }
std::vector<float> Expansion::numbers(Text name) { return take(use, name, AttrKind::Floats).floats; }
std::vector<Text> Expansion::texts(Text name) { return take(use, name, AttrKind::Strings).strings; }

std::vector<Term> Expansion::ops(std::string name, size_t outputs, std::vector<Term> inputs,
                                 std::vector<Attribute> attributes) {
  std::vector<Value *> values;
  for (Term t : inputs) values.push_back(t.v);
  std::vector<Term> terms;
  for (Value *v : im.emit_all(use.base, std::move(name), outputs, std::move(values), std::move(attributes)))
    terms.push_back({this, v});
  return terms;
}

Term Expansion::op(std::string name, std::vector<Term> inputs, std::vector<Attribute> attributes, DType wanted) {
  std::vector<Value *> values;
  for (Term t : inputs) values.push_back(t.v);
  return {this, im.emit(use.base, std::move(name), std::move(values), std::move(attributes), wanted)};
}

void Expansion::give(size_t k, Term t) {
  if (!wants(k)) return;
  results[k] = t.v;
  if (names_[k]) im.rename_last(t.v, names_[k]);
}

namespace {
Term constant_of(Expansion &x, Text name, DType t, const std::vector<int64_t> &dims, std::vector<const Expr *> items) {
  std::vector<const Expr *> sizes;
  int64_t count = 1;
  for (int64_t d : dims) {
    sizes.push_back(x.b.integer(d));
    if (__builtin_mul_overflow(count, d, &count)) count = -1;
  }
  if (count != int64_t(items.size()))
    invalid("attribute '{}': expected {} elements, found {}", name, count, items.size());
  Text from = x.use.from.empty() ? Text() : x.b.text(x.use.from[0]);
  Text base = x.use.base.empty() ? name : x.b.arena.text(fmt::format("{}.{}", x.use.base, name));
  return {&x, x.im.constant(base, from, x.b.tensor(t, x.b.list(sizes)), std::move(items))};
}
}  // namespace

Term Expansion::floats(Text name, const std::vector<float> &v, std::vector<int64_t> dims, DType t) {
  std::vector<const Expr *> items;
  for (float f : v) items.push_back(float_literal(b, t, scalar_of(t, double(f))));
  return constant_of(*this, name, t, dims, std::move(items));
}
Term Expansion::ints(Text name, const std::vector<int64_t> &v, std::vector<int64_t> dims, DType t) {
  std::vector<const Expr *> items;
  for (int64_t i : v) items.push_back(t == DType::Bool ? static_cast<const Expr *>(b.boolean(i != 0)) : b.integer(i));
  return constant_of(*this, name, t, dims, std::move(items));
}

Term Expansion::doubles(Text name, const std::vector<double> &v, std::vector<int64_t> dims) {
  std::vector<const Expr *> items;
  for (double d : v) items.push_back(float_literal(b, DType::F64, Scalar::of_f64(d)));
  return constant_of(*this, name, DType::F64, dims, std::move(items));
}
Term Expansion::strings(Text name, const std::vector<Text> &v, std::vector<int64_t> dims) {
  std::vector<const Expr *> items;
  for (Text s : v) items.push_back(b.string(s));
  return constant_of(*this, name, DType::Str, dims, std::move(items));
}
Term Expansion::tensor(const Tensor &t, Text name) {
  Array a = im.array_of(t);
  return constant_of(*this, name, a.type, t.dims, im.literals(a));
}
std::optional<Array> Expansion::array(Text name) {
  auto a = use.take(name);
  if (!a) return std::nullopt;
  if (a->kind != AttrKind::Tensor) invalid("attribute '{}': expected a tensor, found {}", name, kind_name(a->kind));
  return im.array_of(a->tensors.at(0));
}

Term Expansion::slice(Term x, int64_t axis, X from, X to) {
  return op("Slice", {x, list({from}), list({to}), axes({axis})});
}

Term Expansion::reduce(std::string name, Term x, int64_t axis, bool keep) {
  return op(std::move(name), {x, axes({axis})}, {attribute("keepdims", int64_t{keep})});
}

Term operator+(Term x, Term y) { return x.e->op("Add", {x, y}); }
Term operator-(Term x, Term y) { return x.e->op("Sub", {x, y}); }
Term operator*(Term x, Term y) { return x.e->op("Mul", {x, y}); }
Term operator/(Term x, Term y) { return x.e->op("Div", {x, y}); }
Term operator+(Term x, double y) { return x + x.e->num(y, x.elem()); }
Term operator-(Term x, double y) { return x - x.e->num(y, x.elem()); }
Term operator*(Term x, double y) { return x * x.e->num(y, x.elem()); }
Term operator/(Term x, double y) { return x / x.e->num(y, x.elem()); }
Term operator+(double x, Term y) { return y.e->num(x, y.elem()) + y; }
Term operator-(double x, Term y) { return y.e->num(x, y.elem()) - y; }
Term operator*(double x, Term y) { return y.e->num(x, y.elem()) * y; }

}  // namespace mlc::onnx
