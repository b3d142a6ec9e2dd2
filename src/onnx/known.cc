// Tensors that shapes are made of: small integer, bool and float tensors followed element by element.
//   Shape(x) of f32[n, 3, 8]                    [n, 3, 8]
//   Gather([n, 3, 8], 0)                        n
//   Concat(Unsqueeze(n, [0]), [-1])             [n, -1]
// Elements are exact: what cannot be said as an index expression (a float of a symbol, a comparison that is not
// decided) makes the tensor unknown.
#include <algorithm>
#include <cmath>

#include "arith/prove.h"
#include "ir/walk.h"
#include "onnx/importer.h"

namespace mlc::onnx {

namespace {

constexpr int64_t kMost = 64;
constexpr size_t kMostNodes = 200;  // of one element's expression

struct Unknown {};  // thrown where an element cannot be said

struct Small {
  const std::vector<X> *items = nullptr;
  std::vector<int64_t> dims;
  int64_t size() const { return int64_t(items->size()); }
};

int64_t count_of(const std::vector<int64_t> &dims) {
  int64_t n = 1;
  for (int64_t d : dims)
    if (__builtin_mul_overflow(n, d, &n) || n > kMost) throw Unknown{};
  return n;
}

class Fold {
 public:
  Fold(Importer &im, const Use &use, std::span<const IrType *const> results)
      : im(im), use(use), b(im.b), elem(results.back()->elem), before(results.first(results.size() - 1)) {
    if (!all_static(results.back(), &dims)) throw Unknown{};
    count = count_of(dims);
  }
  Importer &im;
  const Use &use;
  Build &b;
  DType elem;                 // of the result, and its shape
  std::span<const IrType *const> before;  // results before it
  std::vector<int64_t> dims;
  int64_t count;

  Small in(size_t i) const {
    Value *v = use.input(i);
    Small s;
    if (!v || !im.known(v) || !all_static(v->type, &s.dims)) throw Unknown{};
    s.items = &*v->known;
    if (s.size() != count_of(s.dims)) throw Unknown{};
    return s;
  }
  bool has(size_t i) const { return use.input(i) != nullptr; }
  std::vector<int64_t> ints(size_t i) const {
    std::vector<int64_t> list;
    for (X x : *in(i).items) list.push_back(literal(x));
    return list;
  }
  int64_t literal(X x) const {
    int64_t v;
    if (!is_const(x, &v)) throw Unknown{};
    return v;
  }
  bool truth(X condition) const {
    if (auto *t = as<Bool>(condition.e)) return t->value;
    if (prove(b, condition.e, im.bounds())) return true;
    if (prove(b, (!condition).e, im.bounds())) return false;
    throw Unknown{};
  }
  bool truth_of_item(X x) const {
    auto *t = as<Bool>(x.e);
    if (!t) throw Unknown{};
    return t->value;
  }
  int64_t attr(Text name, int64_t otherwise) const {
    const Attribute *a = use.attribute(name);
    return a ? a->i : otherwise;
  }
  bool is_number(X x) const { return as<Float>(x.e) != nullptr; }

  // Elements of an elementwise operator, numpy's broadcasting.
  std::vector<X> broadcast(const std::function<X(const std::vector<X> &)> &f) const {
    std::vector<Small> inputs;
    for (size_t i = 0; i < use.inputs.size(); ++i) inputs.push_back(in(i));
    std::vector<X> out;
    std::vector<int64_t> index(dims.size());
    for (int64_t n = 0; n < count; ++n) {
      int64_t rest = n;
      for (size_t d = dims.size(); d-- > 0; rest /= dims[d]) index[d] = rest % dims[d];
      std::vector<X> args;
      for (const Small &s : inputs) {
        int64_t at = 0;
        for (size_t d = 0; d < s.dims.size(); ++d)
          at = at * s.dims[d] + (s.dims[d] == 1 ? 0 : index[index.size() - s.dims.size() + d]);
        args.push_back(s.items->at(size_t(at)));
      }
      out.push_back(f(args));
    }
    return out;
  }
};

// ---- arithmetic

X float_result(const Fold &f, double v) {
  if (!std::isfinite(v)) throw Unknown{};
  return lit(f.b, f.elem == DType::F64 ? v : double(float(v)), f.elem);
}

// Floats are computed only in f32 and f64, and only if both are numbers.
bool both_floats(const Fold &f, const std::vector<X> &a) {
  bool any = false, all = true;
  for (X x : a) any |= f.is_number(x), all &= f.is_number(x);
  if (any && (!all || (f.elem != DType::F32 && f.elem != DType::F64 && f.elem != DType::Bool))) throw Unknown{};
  return any;
}
double value_of(X x, DType t) {
  double v = to<Float>(x.e).value;
  return t == DType::F64 ? v : double(float(v));
}

template <class Ints, class Floats> std::vector<X> arithmetic(const Fold &f, Ints ints, Floats floats) {
  return f.broadcast([&](const std::vector<X> &a) {
    if (a.size() != 2) throw Unknown{};
    if (both_floats(f, a)) return float_result(f, floats(value_of(a[0], f.elem), value_of(a[1], f.elem)));
    return ints(a[0], a[1]);
  });
}

template <class Same> std::vector<X> arithmetic(const Fold &f, Same op) { return arithmetic(f, op, op); }

std::vector<X> add(const Fold &f) {
  return arithmetic(f, [](auto a, auto b) { return a + b; });
}
std::vector<X> sub(const Fold &f) {
  return arithmetic(f, [](auto a, auto b) { return a - b; });
}
std::vector<X> mul(const Fold &f) {
  return arithmetic(f, [](auto a, auto b) { return a * b; });
}
std::vector<X> div(const Fold &f) {  // truncates; // floors: the same where nothing is negative
  return arithmetic(
      f,
      [&](X a, X b) {
        int64_t u, v;
        if (is_const(a, &u) && is_const(b, &v)) {
          if (v == 0 || v == -1) throw Unknown{};
          return lit(f.b, u / v);
        }
        if (!f.truth(a >= 0) || !f.truth(b >= 1)) throw Unknown{};
        return floordiv(a, b);
      },
      [](double a, double b) { return a / b; });
}
std::vector<X> mod(const Fold &f) {
  if (f.attr("fmod", 0)) throw Unknown{};
  return arithmetic(
      f,
      [&](X a, X b) {
        if (!f.truth(b >= 1)) throw Unknown{};
        return a % b;
      },
      [](double, double) -> double { throw Unknown{}; });
}
std::vector<X> extreme(const Fold &f) {
  bool high = f.use.op == "Max";
  return f.broadcast([&](const std::vector<X> &a) {
    if (a.empty() || both_floats(f, a)) throw Unknown{};
    X r = a[0];
    for (size_t i = 1; i < a.size(); ++i) r = high ? max(r, a[i]) : min(r, a[i]);
    return r;
  });
}

template <class Ints, class Floats> std::vector<X> unary(const Fold &f, Ints ints, Floats floats) {
  return f.broadcast([&](const std::vector<X> &a) {
    return both_floats(f, a) ? float_result(f, floats(value_of(a[0], f.elem))) : ints(a[0]);
  });
}
X not_an_int(X) { throw Unknown{}; }
std::vector<X> neg(const Fold &f) { return unary(f, [](X a) { return -a; }, [](double v) { return -v; }); }
std::vector<X> floor_(const Fold &f) { return unary(f, not_an_int, [](double v) { return std::floor(v); }); }
std::vector<X> ceil_(const Fold &f) { return unary(f, not_an_int, [](double v) { return std::ceil(v); }); }
std::vector<X> same(const Fold &f) { return *f.in(0).items; }

template <class T> auto compared(std::string_view op, T a, T b) {
  if (op == "Equal") return a == b;
  if (op == "Less") return a < b;
  if (op == "Greater") return a > b;
  return op == "LessOrEqual" ? a <= b : a >= b;
}
std::vector<X> compare(const Fold &f) {
  const std::string &op = f.use.op;
  return f.broadcast([&](const std::vector<X> &a) {
    if (a.size() != 2) throw Unknown{};
    X x = a[0], y = a[1];
    if (both_floats(f, a)) {
      double u = to<Float>(x.e).value, v = to<Float>(y.e).value;
      return truth(f.b, compared(op, u, v));
    }
    if (as<Bool>(x.e) || as<Bool>(y.e)) {
      if (op != "Equal") throw Unknown{};
      return truth(f.b, f.truth_of_item(x) == f.truth_of_item(y));
    }
    return truth(f.b, f.truth(compared(op, x, y)));
  });
}
std::vector<X> logic(const Fold &f) {
  const std::string &op = f.use.op;
  return f.broadcast([&](const std::vector<X> &a) {
    bool x = f.truth_of_item(a.at(0)), y = a.size() > 1 && f.truth_of_item(a[1]);
    return truth(f.b, op == "Not" ? !x : op == "And" ? x && y : op == "Or" ? x || y : x != y);
  });
}
std::vector<X> where_(const Fold &f) {
  return f.broadcast([&](const std::vector<X> &a) { return f.truth_of_item(a.at(0)) ? a.at(1) : a.at(2); });
}

std::vector<X> cast_(const Fold &f) {
  DType from = f.use.inputs[0]->type->elem;
  auto one = [&](X x) {
    auto *number = as<Float>(x.e);
    auto *flag = as<Bool>(x.e);
    int64_t v;
    if (flag) {
      if (f.elem == DType::Bool) return x;
      return lit(f.b, flag->value ? 1.0 : 0.0, f.elem);
    }
    if (number) {
      Scalar s = cast(scalar_of(from, number->value), from, f.elem);
      if (f.elem == DType::Bool) return truth(f.b, s.as_bool());
      if (is_int(f.elem)) return lit(f.b, s.as_int());
      return float_result(f, to_double(f.elem, s));
    }
    if (is_const(x, &v)) {
      Scalar s = cast(Scalar::of_int(v), DType::I64, f.elem);
      if (f.elem == DType::Bool) return truth(f.b, s.as_bool());
      if (is_int(f.elem)) return lit(f.b, s.as_int());
      return float_result(f, to_double(f.elem, s));
    }
    if (f.elem == DType::Bool) return truth(f.b, f.truth(x != 0));
    // A size fits into i32 on any machine that could hold such a tensor.
    if (f.elem != DType::I64 && f.elem != DType::I32) throw Unknown{};
    return x;
  };
  std::vector<X> out;
  for (X x : *f.in(0).items) out.push_back(one(x));
  return out;
}

// ---- shapes and places

std::vector<X> shape(const Fold &f) {
  std::vector<X> items;
  for (const Expr *e : f.use.inputs[0]->type->dims) items.emplace_back(f.b, e);
  int64_t rank = int64_t(items.size()), start = f.attr("start", 0), end = f.attr("end", rank);
  auto clamp = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
  start = clamp(start), end = std::max(clamp(end), start);
  return {items.begin() + start, items.begin() + end};
}
std::vector<X> size(const Fold &f) {
  X p = lit(f.b, int64_t{1});
  for (const Expr *e : f.use.inputs[0]->type->dims) p = p * X(f.b, e);
  return {p};
}

// Elements of a tensor as outer x axis x inner.
struct Split3 {
  int64_t outer = 1, along = 1, inner = 1;
  Split3(const std::vector<int64_t> &dims, int64_t axis) {
    int64_t rank = int64_t(dims.size());
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) throw Unknown{};
    for (int64_t i = 0; i < rank; ++i) (i < axis ? outer : i == axis ? along : inner) *= dims[size_t(i)];
  }
};

std::vector<X> gather(const Fold &f) {
  Small x = f.in(0);
  Split3 s(x.dims, f.attr("axis", 0));
  std::vector<X> out;
  std::vector<int64_t> indices = f.ints(1);
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t i : indices) {
      if (i < 0) i += s.along;
      if (i < 0 || i >= s.along) throw Unknown{};
      for (int64_t k = 0; k < s.inner; ++k) out.push_back((*x.items)[size_t((o * s.along + i) * s.inner + k)]);
    }
  return out;
}
std::vector<X> concat(const Fold &f) {
  std::vector<Small> parts;
  for (size_t i = 0; i < f.use.inputs.size(); ++i) parts.push_back(f.in(i));
  if (parts.empty()) throw Unknown{};
  std::vector<X> out;
  int64_t outer = Split3(parts[0].dims, f.attr("axis", 0)).outer;
  for (int64_t o = 0; o < outer; ++o)
    for (const Small &p : parts) {
      int64_t each = p.size() / std::max<int64_t>(outer, 1);
      out.insert(out.end(), p.items->begin() + o * each, p.items->begin() + (o + 1) * each);
    }
  return out;
}
std::vector<X> split(const Fold &f) {
  Small x = f.in(0);
  int64_t axis = f.attr("axis", 0), start = 0;
  Split3 s(x.dims, axis);
  if (axis < 0) axis += int64_t(x.dims.size());
  for (const IrType *t : f.before) {
    int64_t n;
    if (!int_value(t->dims[size_t(axis)], &n)) throw Unknown{};
    start += n;
  }
  if (start + f.dims[size_t(axis)] > s.along) throw Unknown{};
  std::vector<X> out;
  int64_t each = f.dims[size_t(axis)] * s.inner;
  for (int64_t o = 0; o < s.outer; ++o) {
    auto from = x.items->begin() + (o * s.along + start) * s.inner;
    out.insert(out.end(), from, from + each);
  }
  return out;
}
std::vector<X> slice(const Fold &f) {  // along one axis
  Small x = f.in(0);
  std::vector<int64_t> starts = f.ints(1), ends = f.ints(2), axes = f.has(3) ? f.ints(3) : std::vector<int64_t>{0};
  int64_t step = f.has(4) ? f.ints(4).at(0) : 1;
  if (starts.size() != 1 || ends.size() != 1 || axes.size() != 1 || step == 0) throw Unknown{};
  Split3 s(x.dims, axes[0]);
  auto clamp = [&](int64_t v, int64_t lo, int64_t hi) { return std::clamp(v < 0 ? v + s.along : v, lo, hi); };
  int64_t start = step > 0 ? clamp(starts[0], 0, s.along) : clamp(starts[0], 0, s.along - 1);
  int64_t end = step > 0 ? clamp(ends[0], 0, s.along) : clamp(ends[0], -1, s.along - 1);
  std::vector<X> out;
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t i = start; step > 0 ? i < end : i > end; i += step) {
      for (int64_t k = 0; k < s.inner; ++k) out.push_back((*x.items)[size_t((o * s.along + i) * s.inner + k)]);
      if (step > s.along || step < -s.along) break;
    }
  return out;
}
std::vector<X> transpose(const Fold &f) {
  Small x = f.in(0);
  size_t rank = x.dims.size();
  const Attribute *perm = f.use.attribute("perm");
  std::vector<int64_t> stride(rank, 1), from(rank);
  for (size_t d = rank; d-- > 1;) stride[d - 1] = stride[d] * x.dims[d];
  for (size_t d = 0; d < rank; ++d) from[d] = perm ? perm->ints.at(d) : int64_t(rank - 1 - d);
  std::vector<X> out;
  for (int64_t n = 0; n < f.count; ++n) {
    int64_t at = 0, rest = n;
    for (size_t d = rank; d-- > 0; rest /= f.dims[d]) at += rest % f.dims[d] * stride.at(size_t(from[d]));
    out.push_back(x.items->at(size_t(at)));
  }
  return out;
}
std::vector<X> range(const Fold &f) {
  int64_t start = f.ints(0).at(0), delta = f.ints(2).at(0);
  std::vector<X> out;
  for (int64_t i = 0; i < f.count; ++i) out.push_back(lit(f.b, start) + lit(f.b, i) * delta);
  return out;
}
std::vector<X> constant_of_shape(const Fold &f) {
  const Attribute *value = f.use.attribute("value");
  X x = zero(f.b, f.elem);
  if (value) {
    Array a = decode(value->tensors.at(0));
    if (a.size() != 1) throw Unknown{};
    Scalar s = a.get(0);
    if (is_int(a.type)) x = lit(f.b, s.as_int());
    else x = a.type == DType::Bool ? truth(f.b, s.as_bool()) : float_result(f, to_double(a.type, s));
  }
  return std::vector<X>(size_t(f.count), x);
}
std::vector<X> expand(const Fold &f) {
  Small x = f.in(0);
  std::vector<X> out;
  for (int64_t n = 0; n < f.count; ++n) {
    int64_t rest = n, at = 0, stride = 1;
    for (size_t d = f.dims.size(), e = x.dims.size(); d-- > 0 && e-- > 0; rest /= f.dims[d])
      at += (x.dims[e] == 1 ? 0 : rest % f.dims[d]) * stride, stride *= x.dims[e];
    out.push_back(x.items->at(size_t(at)));
  }
  return out;
}
std::vector<X> reduce(const Fold &f) {  // of a list
  Small x = f.in(0);
  if (x.dims.size() > 1 || (f.has(1) && f.ints(1).size() != 1) || (!f.has(1) && f.attr("noop_with_empty_axes", 0)))
    throw Unknown{};
  const std::string &op = f.use.op;
  X r = lit(f.b, int64_t{op == "ReduceProd"});
  bool extreme = op == "ReduceMax" || op == "ReduceMin";
  if (extreme && x.items->empty()) throw Unknown{};
  if (extreme) r = (*x.items)[0];
  for (X v : *x.items) {
    if (f.is_number(v) || as<Bool>(v.e)) throw Unknown{};
    r = op == "ReduceProd" ? r * v : op == "ReduceSum" ? r + v : op == "ReduceMax" ? max(r, v) : min(r, v);
  }
  return {r};
}

struct Row {
  std::string_view op;
  std::vector<X> (*fold)(const Fold &);
};
constexpr Row kRows[] = {
    {"Add", add},           {"Sub", sub},           {"Mul", mul},           {"Div", div},         {"Mod", mod},
    {"Max", extreme},       {"Min", extreme},       {"Neg", neg},           {"Floor", floor_},    {"Ceil", ceil_},
    {"Equal", compare},     {"Less", compare},      {"Greater", compare},   {"LessOrEqual", compare},
    {"GreaterOrEqual", compare}, {"And", logic},    {"Or", logic},          {"Xor", logic},       {"Not", logic},
    {"Where", where_},      {"Cast", cast_},        {"CastLike", cast_},    {"Identity", same},   {"Reshape", same},
    {"Squeeze", same},      {"Unsqueeze", same},    {"Flatten", same},      {"Shape", shape},     {"Size", size},
    {"Gather", gather},     {"Concat", concat},     {"Slice", slice},       {"Range", range},     {"Expand", expand},
    {"ConstantOfShape", constant_of_shape},         {"Split", split},       {"ReduceProd", reduce},
    {"ReduceSum", reduce},  {"ReduceMax", reduce},  {"ReduceMin", reduce},  {"Transpose", transpose},
};

}  // namespace

Elements fold_elements(Importer &im, const Use &use, std::span<const IrType *const> results) {
  DType t = results.back()->elem;
  bool right = is_int(t) || t == DType::Bool || t == DType::F32 || t == DType::F64;
  auto row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row &r) { return r.op == use.op; });
  if (!right || row == std::end(kRows) || (results.size() > 1 && row->fold != split)) return std::nullopt;
  try {
    Fold f(im, use, results);
    std::vector<X> items = row->fold(f);
    if (int64_t(items.size()) != f.count) return std::nullopt;
    for (X x : items) {
      size_t nodes = 0;
      each_expr(x.e, [&](const Expr *) { return ++nodes <= kMostNodes; });
      if (nodes > kMostNodes) return std::nullopt;
    }
    return items;
  } catch (const Unknown &) {
    return std::nullopt;
  }
}

}  // namespace mlc::onnx
