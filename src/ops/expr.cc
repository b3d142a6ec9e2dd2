#include "ops/expr.h"

#include <limits>

#include "arith/prove.h"
#include "arith/simplify.h"

namespace mlc {

namespace {

using Fold = bool (*)(int64_t a, int64_t b, int64_t *r);  // false: overflows or has no value

bool fold_add(int64_t a, int64_t b, int64_t *r) { return !__builtin_add_overflow(a, b, r); }
bool fold_sub(int64_t a, int64_t b, int64_t *r) { return !__builtin_sub_overflow(a, b, r); }
bool fold_mul(int64_t a, int64_t b, int64_t *r) { return !__builtin_mul_overflow(a, b, r); }
bool fold_floordiv(int64_t a, int64_t b, int64_t *r) {
  if (!b || (b == -1 && a == std::numeric_limits<int64_t>::min())) return false;
  *r = a / b - (a % b != 0 && (a < 0) != (b < 0));
  return true;
}
bool fold_mod(int64_t a, int64_t b, int64_t *r) {
  if (!b || b == -1) return *r = 0, b == -1;
  *r = a % b;
  if (*r && (*r < 0) != (b < 0)) *r += b;
  return true;
}

bool int_of(X x, int64_t *v) { return x.e && int_value(x.e, v); }

X binary(Op op, X a, X b) { return {*a.b, a.b->binary(op, a.e, b.e)}; }

bool fold(Fold f, X a, X b, X *out) {
  int64_t u, v, r;
  if (!int_of(a, &u) || !int_of(b, &v) || !f(u, v, &r)) return false;
  *out = lit(*a.b, r);
  return true;
}

// e = base + c, with the literal split off: x + 2, x - 2.
bool split(X x, X *base, int64_t *c) {
  auto *bin = as<Binary>(x.e);
  if (!bin || (bin->op != Op::Add && bin->op != Op::Sub) || !int_value(bin->b, c) || *c == INT64_MIN) return false;
  if (bin->op == Op::Sub) *c = -*c;
  *base = {*x.b, bin->a};
  return true;
}

// e = base * c.
bool factor(X x, X *base, int64_t *c) {
  auto *bin = as<Binary>(x.e);
  if (!bin || bin->op != Op::Mul) return false;
  if (int_value(bin->b, c)) return *base = {*x.b, bin->a}, true;
  if (int_value(bin->a, c)) return *base = {*x.b, bin->b}, true;
  return false;
}

X plus(X x, int64_t c) {
  X base;
  int64_t d, sum;
  if (split(x, &base, &d) && fold_add(d, c, &sum)) return plus(base, sum);
  if (c == 0) return x;
  if (c < 0 && c != INT64_MIN) return binary(Op::Sub, x, lit(*x.b, -c));
  return binary(Op::Add, x, lit(*x.b, c));
}

X compare(Op op, X a, X b, bool (*f)(int64_t, int64_t)) {
  int64_t u, v, w;
  if (int_of(a, &u) && int_of(b, &v)) return truth(*a.b, f(u, v));
  X base;  // i - 1 < 5 is i < 6
  if (int_of(b, &v) && split(a, &base, &u) && fold_sub(v, u, &w)) return compare(op, base, lit(*a.b, w), f);
  auto *s = as<Str>(a.e), *t = as<Str>(b.e);
  if (s && t && (op == Op::Eq || op == Op::Ne)) return truth(*a.b, (s->value == t->value) == (op == Op::Eq));
  return binary(op, a, b);
}

}  // namespace

X operator+(X a, X b) {
  X r;
  int64_t v;
  if (fold(fold_add, a, b, &r)) return r;
  if (int_of(b, &v)) return plus(a, v);
  if (int_of(a, &v) && v == 0) return b;
  return binary(Op::Add, a, b);
}
X operator-(X a, X b) {
  X r;
  int64_t v;
  if (fold(fold_sub, a, b, &r)) return r;
  if (int_of(b, &v) && v != INT64_MIN) return plus(a, -v);
  return binary(Op::Sub, a, b);
}
X operator*(X a, X b) {
  X r, base;
  int64_t v, c, p;
  if (fold(fold_mul, a, b, &r)) return r;
  for (auto [x, y] : {std::pair{a, b}, {b, a}}) {
    if (!int_of(y, &v)) continue;
    if (v == 1) return x;
    if (v == 0) return y;
    if (factor(x, &base, &c) && fold_mul(c, v, &p)) return base * p;
  }
  return binary(Op::Mul, a, b);
}
X operator/(X a, X b) { return binary(Op::Div, a, b); }
X floordiv(X a, X b) {
  X r, base, rest;
  int64_t v, c, d, q;
  if (fold(fold_floordiv, a, b, &r)) return r;
  if (!int_of(b, &v) || v <= 0) return binary(Op::FloorDiv, a, b);
  if (v == 1) return a;
  if (factor(a, &base, &c) && c % v == 0) return base * (c / v);
  if (split(a, &rest, &d) && factor(rest, &base, &c) && c % v == 0 && fold_floordiv(d, v, &q))
    return base * (c / v) + q;
  return binary(Op::FloorDiv, a, b);
}
X operator%(X a, X b) {
  X r, base;
  int64_t v, c;
  if (fold(fold_mod, a, b, &r)) return r;
  if (int_of(b, &v) && (v == 1 || (v > 1 && factor(a, &base, &c) && c % v == 0))) return lit(*a.b, int64_t{0});
  return binary(Op::Mod, a, b);
}
X operator-(X a) {
  int64_t v;
  if (int_of(a, &v) && v != INT64_MIN) return lit(*a.b, -v);
  if (auto *f = as<Float>(a.e); f && !f->nan_bits) return {*a.b, a.b->number(-f->value)};
  return {*a.b, a.b->unary(Op::Neg, a.e)};
}
X operator!(X a) {
  if (auto *t = as<Bool>(a.e)) return truth(*a.b, !t->value);
  return {*a.b, a.b->unary(Op::Not, a.e)};
}
X operator<(X a, X b) { return compare(Op::Lt, a, b, [](int64_t u, int64_t v) { return u < v; }); }
X operator<=(X a, X b) { return compare(Op::Le, a, b, [](int64_t u, int64_t v) { return u <= v; }); }
X operator>(X a, X b) { return compare(Op::Gt, a, b, [](int64_t u, int64_t v) { return u > v; }); }
X operator>=(X a, X b) { return compare(Op::Ge, a, b, [](int64_t u, int64_t v) { return u >= v; }); }
X operator==(X a, X b) { return compare(Op::Eq, a, b, [](int64_t u, int64_t v) { return u == v; }); }
X operator!=(X a, X b) { return compare(Op::Ne, a, b, [](int64_t u, int64_t v) { return u != v; }); }
X operator&&(X a, X b) {
  if (is_truth(a, true) || is_truth(b, false)) return b;
  if (is_truth(b, true) || is_truth(a, false)) return a;
  return binary(Op::And, a, b);
}
X operator||(X a, X b) {
  if (is_truth(a, false) || is_truth(b, true)) return b;
  if (is_truth(b, false) || is_truth(a, true)) return a;
  return binary(Op::Or, a, b);
}

X operator+(X a, int64_t b) { return a + lit(*a.b, b); }
X operator-(X a, int64_t b) { return a - lit(*a.b, b); }
X operator*(X a, int64_t b) { return a * lit(*a.b, b); }
X floordiv(X a, int64_t b) { return floordiv(a, lit(*a.b, b)); }
X operator%(X a, int64_t b) { return a % lit(*a.b, b); }
X operator<(X a, int64_t b) { return a < lit(*a.b, b); }
X operator<=(X a, int64_t b) { return a <= lit(*a.b, b); }
X operator>(X a, int64_t b) { return a > lit(*a.b, b); }
X operator>=(X a, int64_t b) { return a >= lit(*a.b, b); }
X operator==(X a, int64_t b) { return a == lit(*a.b, b); }
X operator!=(X a, int64_t b) { return a != lit(*a.b, b); }
X ceildiv(X a, X b) { return floordiv(a + (b - 1), b); }

X max(X a, X b) {
  int64_t u, v;
  if (int_of(a, &u) && int_of(b, &v)) return u > v ? a : b;
  if (equal(a.e, b.e)) return a;
  return call("max", {a, b});
}
X min(X a, X b) {
  int64_t u, v;
  if (int_of(a, &u) && int_of(b, &v)) return u < v ? a : b;
  if (equal(a.e, b.e)) return a;
  return call("min", {a, b});
}
X where(X c, X a, X b) {
  if (auto *t = as<Bool>(c.e)) return t->value ? a : b;
  return call("where", {c, a, b});
}
X cast(DType t, X a) {
  auto *c = as<Call>(a.e);  // the same cast twice is one
  if (c && !c->global && c->iters.empty() && a.b->text(c->callee) == dtype_name(t)) return a;
  return call(dtype_name(t), {a});
}
X call(std::string_view f, std::vector<X> args) {
  Build &b = *args.at(0).b;
  std::vector<const Expr *> list;
  for (X x : args) list.push_back(x.e);
  return {b, b.call(b.sym(f), b.list(list))};
}

X lit(Build &b, int64_t v) { return {b, b.integer(v)}; }
X truth(Build &b, bool v) { return {b, b.boolean(v)}; }

X fold_start(Build &b, std::string_view fold, DType t) {
  return fold == "sum"    ? zero(b, t)
         : fold == "prod" ? one(b, t)
         : fold == "max"  ? lowest(b, t)
         : fold == "min"  ? highest(b, t)
                          : truth(b, fold == "all");
}

const Expr *fold_step(Build &b, std::string_view fold, const Expr *acc, const Expr *term) {
  if (fold == "max" || fold == "min") return b.call(fold, {acc, term});
  return b.binary(fold == "sum" ? Op::Add : fold == "prod" ? Op::Mul : fold == "all" ? Op::And : Op::Or, acc, term);
}
X lit(Build &b, double v, DType t) {
  if (t == DType::Bool) return truth(b, v != 0);
  if (!is_int(t)) return {b, b.number(v, t)};
  int64_t i = v >= 0x1p63 ? INT64_MAX : v >= -0x1p63 ? int64_t(v) : v < 0 ? INT64_MIN : 0;  // NaN: 0
  int bits = info(t).bits;
  if (is_signed(t) || i >= 0) return lit(b, i);
  if (bits == 64) return {b, b.integer(i, kNowhere, true)};
  return lit(b, i & ((int64_t{1} << bits) - 1));
}
X zero(Build &b, DType t) { return lit(b, 0.0, t); }
X one(Build &b, DType t) { return lit(b, 1.0, t); }

namespace {
X extreme(Build &b, DType t, bool high) {
  double inf = std::numeric_limits<double>::infinity();
  if (t == DType::Bool) return truth(b, high);
  if (!is_int(t)) return {b, b.number(high ? inf : -inf)};
  int bits = info(t).bits;
  if (!is_signed(t)) return !high ? lit(b, int64_t{0}) : bits == 64 ? X(b, b.integer(-1, kNowhere, true))
                                                                    : lit(b, (int64_t{1} << bits) - 1);
  int64_t top = bits == 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1;
  return lit(b, high ? top : -top - 1);
}
}  // namespace
X lowest(Build &b, DType t) { return extreme(b, t, false); }
X highest(Build &b, DType t) { return extreme(b, t, true); }

X product(Build &b, const Dims &dims) {
  X p = lit(b, int64_t{1});
  for (X d : dims) p = p * d;
  return p;
}

bool is_const(X a, int64_t *v) { return int_of(a, v); }
bool is_truth(X a, bool v) {
  auto *t = as<Bool>(a.e);
  return t && t->value == v;
}
bool provably_equal(X a, X b) { return equal(a.e, b.e) || provably_equal(*a.b, a.e, b.e); }
X simplify(X a) {
  bool plain = a.e->kind == Kind::Int || a.e->kind == Kind::Name;
  return plain ? a : X(*a.b, simplify(*a.b, a.e));
}

X Tensor::operator()(const Indices &i) const {
  if (!buffer) return {*b, literal};
  std::vector<const Expr *> index;
  for (X x : i) index.push_back(x.e);
  return {*b, b->load(buffer, b->list(index))};
}

X Tensor::at(const Indices &i) const {
  Indices own(i.end() - rank(), i.end());
  int64_t n;
  for (size_t k = 0; k < rank(); ++k)
    if (is_const(dims[k], &n) && n == 1) own[k] = lit(*b, int64_t{0});
  return (*this)(own);
}

}  // namespace mlc
