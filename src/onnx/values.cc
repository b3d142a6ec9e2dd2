#include "onnx/importer.h"

namespace mlc::onnx {

namespace {

constexpr int64_t kMostKnown = 64;  // elements of a tensor that shapes may be made of

}  // namespace

void Use::set_input(size_t i, Value *v) {
  if (inputs.size() <= i) inputs.resize(i + 1);
  inputs[i] = v;
}

const Attribute *Use::attribute(Text name) const {
  for (const Attribute &a : attributes)
    if (a.name == name) return &a;
  return nullptr;
}

std::optional<Attribute> Use::take(Text name) {
  for (size_t i = 0; i < attributes.size(); ++i) {
    if (attributes[i].name != name) continue;
    Attribute a = std::move(attributes[i]);
    attributes.erase(attributes.begin() + int64_t(i));
    return a;
  }
  return std::nullopt;
}

int64_t Use::take_int(Text name, int64_t otherwise) {
  auto a = take(name);
  if (a && a->kind != AttrKind::Int) invalid("attribute '{}': expected an int, found {}", name, kind_name(a->kind));
  return a ? a->i : otherwise;
}

void Use::set(Attribute a) {
  take(a.name);
  attributes.push_back(std::move(a));
}

namespace {
Attribute make(Text name, AttrKind kind) {
  Attribute a;
  a.name = name, a.kind = kind;
  return a;
}
}  // namespace

Attribute attribute(Text name, int64_t v) {
  Attribute a = make(name, AttrKind::Int);
  a.i = v;
  return a;
}
Attribute attribute(Text name, float v) {
  Attribute a = make(name, AttrKind::Float);
  a.f = v;
  return a;
}
Attribute attribute(Text name, Text v) {
  Attribute a = make(name, AttrKind::String);
  a.s = v;
  return a;
}
Attribute attribute(Text name, std::vector<int64_t> v) {
  Attribute a = make(name, AttrKind::Ints);
  a.ints = std::move(v);
  return a;
}

Value *Importer::keep(Value v) {
  values_.push_back(std::move(v));
  return &values_.back();
}

Value *Importer::integer(int64_t v) { return index(lit(b, v)); }

Value *Importer::index(X x) { return keep({"", x.e, b.tensor(DType::I64, {}), true, std::vector{x}, nullptr, true}); }

Value *Importer::number(double v, DType t) {
  X x = lit(b, v, t);
  return keep({"", x.e, b.tensor(t, {}), true, std::vector{x}, nullptr, true});
}

Value *Importer::list(const std::vector<X> &v) {
  std::vector<const Expr *> items;
  for (X x : v) items.push_back(x.e);
  const Expr *size = b.integer(int64_t(v.size()));
  return keep({"", b.make_list(b.list(items)), b.tensor(DType::I64, b.one(size)), true, v, nullptr, true});
}

Value *Importer::list(const std::vector<int64_t> &v) {
  std::vector<X> items;
  for (int64_t x : v) items.push_back(lit(b, x));
  return list(items);
}

const Elements &Importer::known(Value *v) {
  if (!v->constant || v->looked) return v->known;
  v->looked = true;
  const Constant &c = *v->constant;
  if (c.tensor && extent_of(*c.tensor).count > kMostKnown) return v->known;
  v->known.emplace();
  for (const Expr *e : c.tensor ? literals(array_of(*c.tensor)) : c.elements) v->known->emplace_back(b, e);
  return v->known;
}

Value *Importer::truth(bool v) { return constant(v ? "true" : "false", "", b.tensor(DType::Bool, {}), {b.boolean(v)}); }

bool Importer::is_known(Value *v, bool truth) {
  const Elements &e = known(v);
  return e && e->size() == 1 && is_truth((*e)[0], truth);
}

std::optional<std::vector<int64_t>> Importer::known_ints(Value *v) {
  const Elements &e = known(v);
  if (!e) return std::nullopt;
  std::vector<int64_t> list;
  for (X x : *e) {
    int64_t i;
    if (!is_const(x, &i)) return std::nullopt;
    list.push_back(i);
  }
  return list;
}

}  // namespace mlc::onnx
