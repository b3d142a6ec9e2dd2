// One use of an operator: its types, attributes and known values, checked against the table.
#include <algorithm>
#include <charconv>

#include "ir/walk.h"
#include "ops/rules.h"

namespace mlc {

namespace {

// The largest list that is worth knowing element by element.
constexpr int64_t kMaxKnown = 1 << 16;

bool is_index_expression(const Expr *e) {
  return e->kind == Kind::Name || e->kind == Kind::Unary || e->kind == Kind::Binary || e->kind == Kind::Call;
}

DType literal_type(const Expr *e) {
  if (auto *list = as<List>(e)) {
    for (const Expr *i : list->items)
      if (DType t = literal_type(i); t != DType::Invalid) return t;
    return DType::Invalid;
  }
  if (e->kind == Kind::Float) return DType::F32;
  if (e->kind == Kind::Bool) return DType::Bool;
  if (e->kind == Kind::Str) return DType::Str;
  return e->kind == Kind::Int || is_index_expression(e) ? DType::I64 : DType::Invalid;
}

bool fits(const Expr *e, DType t) {
  if (auto *list = as<List>(e))
    return std::all_of(list->items.begin(), list->items.end(), [&](auto *i) { return fits(i, t); });
  if (e->kind == Kind::Float) return is_float(t);
  if (e->kind == Kind::Bool) return t == DType::Bool;
  if (e->kind == Kind::Str) return t == DType::Str;
  return is_int(t);
}

bool attr_fits(char type, const Expr *e) {
  auto all = [&](auto one) {
    auto *list = as<List>(e);
    return list && std::all_of(list->items.begin(), list->items.end(), one);
  };
  switch (type) {
    case 'i': return e->kind == Kind::Int;
    case 'f': return e->kind == Kind::Float;
    case 's': return e->kind == Kind::Str;
    case 'v': return e->kind == Kind::Int || e->kind == Kind::Float || e->kind == Kind::Bool;
    case 'm': return e->kind == Kind::Map;
    case 'I': return all([](auto *i) { return i->kind == Kind::Int; });
    case 'F': return all([](auto *i) { return i->kind == Kind::Float; });
    case 'S': return all([](auto *i) { return i->kind == Kind::Str; });
  }
  return false;
}

std::string_view attr_kind(char type) {
  switch (type) {
    case 'i': return "an integer";
    case 'f': return "a float";
    case 's': return "a string";
    case 'I': return "a list of integers";
    case 'F': return "a list of floats";
    case 'S': return "a list of strings";
    case 'm': return "an index map";
  }
  return "a number or bool";
}

const Expr *read_default(Build &b, char type, std::string_view text) {
  auto number = [](std::string_view s) {
    double v = 0;
    std::from_chars(s.data(), s.data() + s.size(), v);
    return v;
  };
  if (type == 'i') return b.integer(int64_t(number(text)));
  if (type == 's') return b.string(text.substr(1, text.size() - 2));
  if (type == 'f' || type == 'v') return b.number(number(text));
  std::vector<const Expr *> items;  // "[1, 1]"
  for (size_t i = 1; i < text.size();) {
    size_t end = text.find_first_of(",]", i);
    std::string_view item = text.substr(i, end - i);
    if (!item.empty())
      items.push_back(type == 'I' ? static_cast<const Expr *>(b.integer(int64_t(number(item))))
                                  : b.number(number(item)));
    i = end + 2;
  }
  return b.make_list(b.list(items));
}

}  // namespace

OpUse::OpUse(Build &b, const OpInfo &op, std::vector<const Type *> inputs, Exprs args, Attrs attrs, const Module *m)
    : b(b), op(op), types(std::move(inputs)), args(args), attrs(attrs), module(m) {
  types.resize(args.size());
  for (size_t i = 0; i < args.size(); ++i)
    literal_.push_back(!types[i] || !types[i]->tensor ||
                       (args[i]->kind != Kind::Name && args[i]->kind != Kind::Global));
}

std::string OpUse::input_name(size_t i) const {
  const Operand *o = op.input(i);
  return o ? fmt::format("input {} ({})", i, o->name) : fmt::format("input {}", i);
}

DType OpUse::bound(const std::string &var) const {
  for (auto &[name, t] : bound_)
    if (name == var) return t;
  return DType::Invalid;
}

void OpUse::bind(const std::string &var, DType t, const std::string &what) {
  if (DType fixed = dtype_named(var); fixed != DType::Invalid) {
    if (t != fixed) fail(fmt::format("{}: expected {}, found {}", what, var, dtype_name(t)));
    return;
  }
  if (DType before = bound(var); before != DType::Invalid) {
    if (before != t)
      fail(fmt::format("{}: expected {} like the inputs before it, found {}", what, dtype_name(before), dtype_name(t)));
    return;
  }
  for (const TypeVar &v : op.types) {
    if (v.name != var) continue;
    if (!in_group(v.group, t)) lack(fmt::format("{}: expected {}, found {}", what, v.group, dtype_name(t)));
    bound_.emplace_back(var, t);
    return;
  }
  fail(fmt::format("{}: no type variable {}", what, var));
}

DType OpUse::elem_of(const Operand &o) const {
  if (DType fixed = dtype_named(o.type); fixed != DType::Invalid) return fixed;
  DType t = bound(o.type);
  for (const TypeVar &v : op.types)
    if (t == DType::Invalid && v.name == o.type && !v.otherwise.empty())
      t = dtype_named(v.otherwise) != DType::Invalid ? dtype_named(v.otherwise) : bound(v.otherwise);
  if (t == DType::Invalid)
    fail(fmt::format("the element type of '{}' is not known: write the type of the result", o.name));
  return t;
}

void OpUse::check() {
  bound_.clear();
  size_t least = 0;
  for (size_t i = 0; i < op.inputs.size(); ++i)
    if (!op.inputs[i].optional && !op.inputs[i].variadic) least = i + 1;
  if (args.size() < least) fail(fmt::format("expected at least {} inputs, found {}", least, args.size()));
  if (!args.empty() && !op.input(args.size() - 1))
    fail(fmt::format("expected at most {} inputs, found {}", op.inputs.size(), args.size()));
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i]->kind == Kind::None && !op.input(i)->optional) fail(input_name(i) + " cannot be left out");
  for (const Attr &a : attrs) {
    const AttrSpec *spec = op.attr(b.text(a.key));
    if (!spec) fail(fmt::format("unknown attribute '{}'", b.text(a.key)));
    if (!attr_fits(spec->type, a.value))
      fail(fmt::format("attribute '{}': expected {}", spec->name, attr_kind(spec->type)));
  }
  for (const AttrSpec &spec : op.attrs)
    if (spec.fallback.empty() && !mlc::attr(b, attrs, spec.name))
      fail(fmt::format("attribute '{}' is missing", spec.name));

  // Values first, then the result as written; literals take what these decided.
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i]->kind != Kind::None && !literal_[i]) bind(op.input(i)->type, types[i]->elem, input_name(i));
  if (wanted && wanted->tensor && !op.outputs.empty() && dtype_named(op.outputs[0].type) == DType::Invalid &&
      bound(op.outputs[0].type) == DType::Invalid && op.outputs[0].type != "size")
    bind(op.outputs[0].type, wanted->elem, "result");
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i]->kind == Kind::None) {
      types[i] = nullptr;
    } else if (literal_[i]) {
      const std::string &type = op.input(i)->type;
      DType t = dtype_named(type) != DType::Invalid ? dtype_named(type) : bound(type);
      if (t == DType::Invalid) {
        t = literal_type(args[i]);
        if (t == DType::Invalid) t = DType::I64;  // []
        bind(type, t, input_name(i));
      }
      if (!fits(args[i], t))
        fail(fmt::format("{}: expected {}, found a literal of another type", input_name(i), dtype_name(t)));
      auto *list = as<List>(args[i]);
      types[i] = list ? tensor(t, {lit(int64_t(list->items.size()))}) : tensor(t, {});
    }
  }
}

const Type *OpUse::type(size_t i) const {
  if (!has(i)) fail(input_name(i) + " is missing");
  return types[i];
}

Dims OpUse::dims(size_t i) const {
  Dims list;
  for (const Expr *e : type(i)->dims) list.emplace_back(b, e);
  return list;
}

// ---- attributes

const Expr *OpUse::attr_value(std::string_view name) const {
  if (const Expr *e = mlc::attr(b, attrs, name)) return e;
  const AttrSpec *spec = op.attr(name);
  if (!spec) fail(fmt::format("{} has no attribute '{}'", op.name, name));
  return spec->fallback == "?" ? nullptr : read_default(b, spec->type, spec->fallback);
}
bool OpUse::has_attr(std::string_view name) const { return attr_value(name); }

namespace {
template <class T> const T &need(const OpUse &u, std::string_view name) {
  auto *e = as<T>(u.attr_value(name));
  if (!e) u.fail(fmt::format("attribute '{}' is missing", name));
  return *e;
}
}  // namespace

int64_t OpUse::attr_int(std::string_view name) const { return need<Int>(*this, name).value; }
double OpUse::attr_float(std::string_view name) const { return need<Float>(*this, name).value; }
std::string OpUse::attr_str(std::string_view name) const { return std::string(need<Str>(*this, name).value); }
std::vector<int64_t> OpUse::attr_ints(std::string_view name) const {
  std::vector<int64_t> v;
  if (!attr_value(name)) return v;
  constexpr int64_t kMost = int64_t{1} << 40;  // sizes, places, axes: what is made of a few of them does not overflow
  for (const Expr *e : need<List>(*this, name).items) {
    v.push_back(to<Int>(e).value);
    if (v.back() < -kMost || v.back() > kMost) fail(fmt::format("attribute '{}': {} is out of range", name, v.back()));
  }
  return v;
}
std::vector<double> OpUse::attr_floats(std::string_view name) const {
  std::vector<double> v;
  if (!attr_value(name)) return v;
  for (const Expr *e : need<List>(*this, name).items) v.push_back(to<Float>(e).value);
  return v;
}
int64_t OpUse::axis(int64_t value, size_t rank) const {
  int64_t r = int64_t(rank);
  if (value < -r || value >= r) fail(fmt::format("axis {} is outside the rank {}", value, rank));
  return value < 0 ? value + r : value;
}
int64_t OpUse::axis(std::string_view name, size_t rank) const { return axis(attr_int(name), rank); }

int64_t whole(const OpUse &u, double v) {
  if (!(v > -0x1p62 && v < 0x1p62)) u.fail(fmt::format("{} is out of range", v));
  return int64_t(v);
}

// ---- known values

std::optional<std::vector<X>> OpUse::values(size_t i) const {
  if (!has(i)) return std::nullopt;
  std::vector<X> v;
  auto literal = [](const Expr *e) { return e->kind == Kind::Int || e->kind == Kind::Float || e->kind == Kind::Bool; };
  auto fill = [&](const Expr *e, const Type *t) {
    if (auto *list = as<List>(e)) {
      for (const Expr *x : list->items) v.emplace_back(b, x);
      return std::all_of(list->items.begin(), list->items.end(),
                         [&](auto *x) { return literal(x) || is_index_expression(x); });
    }
    std::vector<int64_t> dims;
    int64_t count = 1;
    if (!literal(e) || !all_static(t, &dims)) return false;
    for (int64_t d : dims)
      if (__builtin_mul_overflow(count, d, &count) || count > kMaxKnown) return false;
    v.assign(size_t(count), X(b, e));
    return true;
  };
  const Expr *a = args[i];
  if (auto *g = as<Global>(a)) {
    const Const *c = module ? module->constant(g->name) : nullptr;
    return c && c->value && fill(c->value, c->type) ? std::optional(v) : std::nullopt;
  }
  if (auto *n = as<Name>(a); n && !literal_[i]) {
    if (known)
      if (auto k = known(n->name)) {
        for (const Expr *e : *k) v.emplace_back(b, e);
        return v;
      }
    return std::nullopt;
  }
  if (is_index_expression(a) && types[i]->rank() == 0) return std::vector<X>{{b, a}};
  return fill(a, types[i]) ? std::optional(v) : std::nullopt;
}

std::vector<X> OpUse::need_values(size_t i) const {
  type(i);
  auto v = values(i);
  if (!v) lack(input_name(i) + " must be known when compiling");
  return *v;
}
std::vector<int64_t> OpUse::need_ints(size_t i) const {
  std::vector<int64_t> v;
  for (X x : need_values(i)) {
    auto *n = as<Int>(x.e);
    if (!n) lack(input_name(i) + ": expected integers that are known when compiling");
    v.push_back(n->value);
  }
  return v;
}
std::vector<double> OpUse::need_floats(size_t i) const {
  std::vector<double> v;
  for (X x : need_values(i)) {
    auto *f = as<Float>(x.e);
    if (!f) lack(input_name(i) + ": expected floats that are known when compiling");
    v.push_back(f->value);
  }
  return v;
}

X OpUse::need_value(size_t i) const {
  auto v = need_values(i);
  if (v.size() != 1) fail(fmt::format("{}: expected one element, found {}", input_name(i), v.size()));
  return v[0];
}
int64_t OpUse::need_int(size_t i) const {
  auto v = need_ints(i);
  if (v.size() != 1) fail(fmt::format("{}: expected one integer, found {}", input_name(i), v.size()));
  return v[0];
}

// ---- results

void OpUse::assume(X condition) {
  if (is_truth(condition, true)) return;
  for (const Expr *e : assumptions)
    if (equal(e, condition.e)) return;
  assumptions.push_back(condition.e);
}

void OpUse::assume_equal(X x, X y, std::string_view what) {
  int64_t u, v;
  if (provably_equal(x, y)) return;
  if (is_const(x, &u) && is_const(y, &v)) fail(fmt::format("{}: expected {}, found {}", what, u, v));
  assume(is_const(x, &u) ? y == x : x == y);
}

X OpUse::result_size(size_t i) const {
  if (i >= results.size()) fail("the size is a result of its own: name it before what has that size");
  return {b, b.name(results[i])};
}

Dims OpUse::sizes_first(size_t n) {
  Dims d;
  for (size_t i = 0; i < n; ++i) d.push_back(result_size(i));
  sizes = n;
  return d;
}

static bool has_name(const Expr *e) {
  bool found = false;
  each_expr(e, [&](const Expr *x) { return found = found || x->kind == Kind::Name, !found; });
  return found;
}

const Type *OpUse::tensor(DType elem, const Dims &dims) const {
  std::vector<const Expr *> list;
  for (X d : dims) {
    X s = simplify(d);
    int64_t n;
    if (is_const(s, &n) && n < 0) fail(fmt::format("a dimension of the result would be {}", n));
    if (!is_const(s, &n) && !has_name(s.e)) fail("a dimension of the result overflows");
    list.push_back(s.e);
  }
  return b.tensor(elem, b.list(list));
}

std::vector<const Type *> infer(OpUse &u) {
  u.check();
  u.sizes = 0;
  std::vector<Dims> shapes = u.op.shape(u);
  std::vector<const Type *> types(u.sizes, u.b.scalar(DType::Index));
  if (u.op.name == "Match") return std::vector<const Type *>(u.results.size());
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Operand *o = u.op.output(i);
    types.push_back(o->type == "size" ? u.b.scalar(DType::Index) : u.tensor(u.elem_of(*o), shapes[i]));
  }
  if (u.results.size() > types.size())
    u.fail(fmt::format("expected at most {} results, found {}", types.size(), u.results.size()));
  return types;
}

}  // namespace mlc
