// Writing kernels: buffers, computes, and the operators inside composites.
#include <algorithm>

#include "ops/rules.h"

namespace mlc {

Define::Define(const OpUse &use, std::vector<Sym> inputs, std::vector<Sym> outputs, std::vector<const Type *> results,
               Fresh &fresh, Syms from)
    : OpUse(use),
      in_(std::move(inputs)),
      out_(std::move(outputs)),
      result_types_(std::move(results)),
      lists_(in_.size()),
      fresh_(fresh),
      from_(from) {}

Tensor buffer(Build &b, Sym name, const Type *type) {
  Tensor t;
  t.b = &b, t.buffer = name, t.type = type;
  for (const Expr *e : type->dims) t.dims.emplace_back(b, e);
  return t;
}

Tensor Define::in(size_t i) {
  const Type *t = type(i);
  if (in_[i]) return buffer(b, in_[i], t);
  if (!is_literal(i)) fail(input_name(i) + " has no buffer");
  if (args[i]->kind != Kind::List) return literal(args[i], t->elem);
  if (!lists_[i].b) lists_[i] = literal(args[i], t->elem);
  return lists_[i];
}

Tensor Define::literal(const Expr *e, DType elem) {
  auto scalar = [&](const Expr *v) {  // index expressions are i64 only by a cast
    bool plain = v->kind == Kind::Int || v->kind == Kind::Float || v->kind == Kind::Bool;
    return plain ? X(b, v) : cast(elem, X(b, v));
  };
  auto *list = as<List>(e);
  if (!list) {
    Tensor t;
    t.b = &b, t.literal = scalar(e).e, t.type = tensor(elem, {});
    return t;
  }
  auto pick = [&](const Indices &i) {
    X value = scalar(list->items.back());
    for (size_t k = list->items.size() - 1; k-- > 0;) value = where(i[0] == int64_t(k), scalar(list->items[k]), value);
    return value;
  };
  Dims dims{lit(int64_t(list->items.size()))};
  return list->items.empty() ? temp(elem, dims, "list") : make("list", elem, dims, pick);
}

Tensor Define::ints(const std::vector<X> &v) {
  std::vector<const Expr *> items;
  for (X x : v) items.push_back(x.e);
  Tensor t;
  t.b = &b, t.literal = b.make_list(b.list(items)), t.type = tensor(DType::I64, {lit(int64_t(v.size()))});
  return t;
}

Tensor Define::out(size_t i) {
  i += sizes;
  if (i >= out_.size() || !out_[i]) fail("result without a buffer");
  return buffer(b, out_[i], result_types_[i]);
}

Sym Define::fresh(std::string_view base) {
  Sym s;
  do s = fresh_.make(base);
  while (std::find(axes_.begin(), axes_.end(), s) != axes_.end());
  return s;
}

Tensor Define::temp(DType elem, const Dims &dims, std::string_view base) {
  Sym name = fresh(base);
  const Type *type = tensor(elem, dims);
  body.push_back(b.make(Alloc{{}, {name, kNowhere, type}, {}, nullptr}));
  return buffer(b, name, type);
}

// Axis names: i, j, k ... without those in use; the same names come again in the next statement.
std::vector<Iter> Define::iters(const Dims &domain, std::vector<Sym> &names, Indices &out) const {
  static constexpr std::string_view kLetters = "ijklpqrstuvwz";
  std::vector<Iter> list;
  size_t next = 0;
  for (X extent : domain) {
    Sym s;
    do {
      std::string name(1, kLetters[next % kLetters.size()]);
      if (next >= kLetters.size()) name += std::to_string(next / kLetters.size());
      s = b.sym(name), ++next;
    } while (fresh_.is_taken(s) || std::find(names.begin(), names.end(), s) != names.end());
    names.push_back(s);
    list.push_back({s, extent.e, kNowhere});
    out.emplace_back(b, b.name(s));
  }
  return list;
}

void Define::compute(const Tensor &t, const std::function<X(const Indices &)> &f) {
  size_t mark = axes_.size();  // a list of literals may be written out while a block is made
  Indices i;
  auto domain = iters(t.dims, axes_, i);
  X value = f(i);
  axes_.resize(mark);
  Result r{t.buffer, kNowhere, b.list(domain)};
  body.push_back(b.make(Compute{{}, b.one(r), value.e, from_}));
}

Tensor Define::make(std::string_view base, DType elem, const Dims &dims, const std::function<X(const Indices &)> &f) {
  Tensor t = temp(elem, dims, base);
  compute(t, f);
  return t;
}

X Define::reduce(std::string_view kind, const Dims &over, const std::function<X(const Indices &)> &f) {
  if (over.empty()) return f({});
  size_t mark = axes_.size();
  Indices i;
  auto domain = iters(over, axes_, i);
  X term = f(i);
  axes_.resize(mark);
  return {b, b.call(b.sym(kind), b.list({term.e}), kNowhere, false, b.list(domain))};
}

X Define::sum(DType t, const Dims &over, const std::function<X(const Indices &)> &f) {
  return reduce("sum", over, [&](const Indices &i) { return as_type(f(i), t, accumulator(t)); });
}

// ---- other operators inside this one

static OpUse use_of(Define &d, std::string_view name, const std::vector<Tensor> &inputs,
                    const std::vector<Attr> &attrs) {
  const OpInfo *op = find_op(name);
  if (!op) d.fail(fmt::format("no operator {}", name));
  std::vector<const Type *> types;
  std::vector<const Expr *> args;
  for (const Tensor &t : inputs) {
    types.push_back(t.buffer ? t.type : nullptr);
    args.push_back(t.buffer ? static_cast<const Expr *>(d.b.name(t.buffer)) : t.literal ? t.literal : d.b.none());
  }
  return OpUse(d.b, *op, types, d.b.list(args), d.b.list(attrs));
}

void Define::apply_into(const std::vector<Tensor> &outputs, std::string_view name, std::vector<Tensor> inputs,
                     std::vector<Attr> attrs) {
  OpUse use = use_of(*this, name, inputs, attrs);
  std::vector<Sym> in, out;
  std::vector<const Type *> types;
  for (const Tensor &t : inputs) in.push_back(t.buffer);
  for (const Tensor &t : outputs) out.push_back(t.buffer), types.push_back(t.type);
  use.results = out;
  use.wanted = types[0];
  for (const Stmt *s : mlc::define(use, in, out, types, fresh_, from_)) body.push_back(s);
}

std::vector<Tensor> Define::apply_all(std::string_view name, size_t results, std::vector<Tensor> inputs,
                                      std::vector<Attr> attrs, const Type *wanted) {
  OpUse use = use_of(*this, name, inputs, attrs);
  use.wanted = wanted;
  use.results.assign(results, Sym{});
  std::vector<const Type *> types = infer(use);
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < results; ++i) {
    Dims dims;
    for (const Expr *e : types.at(i)->dims) dims.emplace_back(b, e);
    std::string base(name);
    base[0] = char(base[0] | 0x20);
    outputs.push_back(temp(types[i]->elem, dims, base));
  }
  apply_into(outputs, name, std::move(inputs), std::move(attrs));
  return outputs;
}

Tensor Define::apply(std::string_view name, std::vector<Tensor> inputs, std::vector<Attr> attrs) {
  return apply_all(name, 1, std::move(inputs), std::move(attrs))[0];
}

Attr Define::attr(std::string_view key, int64_t v) { return {b.sym(key), kNowhere, b.integer(v)}; }
Attr Define::attr(std::string_view key, double v) { return {b.sym(key), kNowhere, b.number(v, DType::F32)}; }
Attr Define::attr(std::string_view key, std::string_view v) { return {b.sym(key), kNowhere, b.string(v)}; }
Attr Define::attr(std::string_view key, const std::vector<int64_t> &v) {
  std::vector<const Expr *> items;
  for (int64_t x : v) items.push_back(b.integer(x));
  return {b.sym(key), kNowhere, b.make_list(b.list(items))};
}

}  // namespace mlc
