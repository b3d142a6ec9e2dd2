#include "ir/solve.h"

#include <optional>

namespace mlc {

namespace {

std::optional<int64_t> compute(Op op, int64_t x, int64_t y) {
  int64_t r;
  switch (op) {
    case Op::Add: return __builtin_add_overflow(x, y, &r) ? std::nullopt : std::optional(r);
    case Op::Sub: return __builtin_sub_overflow(x, y, &r) ? std::nullopt : std::optional(r);
    case Op::Mul: return __builtin_mul_overflow(x, y, &r) ? std::nullopt : std::optional(r);
    case Op::FloorDiv:
    case Op::Mod:
      if (y == 0) return 0;
      if (y == -1) return op == Op::Mod ? std::optional<int64_t>(0) : compute(Op::Sub, 0, x);
      r = x % y;
      if (r && (r < 0) != (y < 0)) r += y;
      return op == Op::Mod ? r : (x - r) / y;
    default: return std::nullopt;
  }
}

const Binary *binary_of(const Expr *e, Op op) {
  auto *b = as<Binary>(e);
  return b && b->op == op ? b : nullptr;
}

}  // namespace

const Expr *fold(Build &b, Op op, const Expr *x, const Expr *y) {
  int64_t i, j;
  bool ix = int_value(x, &i), iy = int_value(y, &j);
  if (ix && iy)
    if (auto r = compute(op, i, j)) return b.integer(*r);
  switch (op) {
    case Op::Add:
      if (iy && j == 0) return x;
      if (ix && i == 0) return y;
      if (auto *s = binary_of(x, Op::Sub); s && equal(s->b, y)) return s->a;
      break;
    case Op::Sub:
      if (iy && j == 0) return x;
      if (equal(x, y)) return b.integer(0);
      if (auto *s = binary_of(x, Op::Add); s && equal(s->b, y)) return s->a;
      if (auto *s = binary_of(x, Op::Add); s && equal(s->a, y)) return s->b;
      break;
    case Op::Mul:
      if (iy && j == 1) return x;
      if (ix && i == 1) return y;
      break;
    case Op::FloorDiv:
      if (iy && j == 1) return x;
      if (auto *s = binary_of(x, Op::Mul)) {
        int64_t c;
        if (iy && j != 0 && int_value(s->a, &c) && c % j == 0) return fold(b, Op::Mul, b.integer(c / j), s->b);
        if (iy && j != 0 && int_value(s->b, &c) && c % j == 0) return fold(b, Op::Mul, s->a, b.integer(c / j));
        // (x * n) // n is x but for n = 0, where no buffer has an element
        if (equal(s->b, y)) return s->a;
        if (equal(s->a, y)) return s->b;
      }
      break;
    default: break;
  }
  return b.binary(op, x, y);
}

Exprs strides_of(Build &b, const Type *t) {
  if (auto *l = as<List>(attr(b, t->attrs, "strides")); l && l->items.size() == t->rank()) return l->items;
  std::vector<const Expr *> out(t->rank());
  const Expr *stride = b.integer(1);
  for (size_t i = t->rank(); i-- > 0;) out[i] = stride, stride = fold(b, Op::Mul, t->dims[i], stride);
  return b.list(out);
}

bool is_region(Exprs index) {
  for (const Expr *i : index)
    if (i->kind == Kind::Range || i->kind == Kind::All) return true;
  return false;
}

const Type *region_type(Build &b, const Type *t, Exprs index, Exprs *strides) {
  std::vector<const Expr *> dims, steps;
  Exprs all = strides ? strides_of(b, t) : Exprs{};
  for (size_t i = 0; i < index.size(); ++i) {
    if (index[i]->kind != Kind::Range && index[i]->kind != Kind::All) continue;
    dims.push_back(index[i]->kind == Kind::All ? t->dims[i] : to<Range>(index[i]).extent);
    if (strides) steps.push_back(all[i]);
  }
  if (strides) *strides = b.list(steps);
  return b.type({t->elem, true, t->scope, t->device, t->device_index, b.list(dims), {}});
}

namespace {

class Solver {
 public:
  Solver(Build &b, const Func &f, std::span<const Argument> args, std::span<const Argument> results)
      : b_(b), f_(f), args_(args), results_(results) {
    unknown_.insert(f.dims.begin(), f.dims.end());
  }

  Solution run() {
    if (args_.size() != f_.params.size()) {
      s_.problem = Solution::Count;
      return std::move(s_);
    }
    for (size_t i = 0; i < args_.size() && s_; ++i) argument(i);
    for (size_t i = 0; i < results_.size() && i < f_.results.size() && s_; ++i)
      if (fits(f_.results[i].type, results_[i].type) && results_[i].type->tensor)
        collect(kResult, f_.results[i].type, results_[i]);
    // Each turn solves what it can with the names known so far; the last finds nothing new.
    for (size_t known = s_.names.size() + 1; s_ && s_.names.size() != known;) {
      known = s_.names.size();
      for (Pair &p : pairs_)
        if (!p.used) solve(p);
    }
    for (Sym d : f_.dims)
      if (s_ && unknown_.count(d)) s_.problem = Solution::Unsolved, s_.dim = d;
    for (Pair &p : pairs_)
      if (s_ && !p.exact && p.param != kResult) compare(p);
    return std::move(s_);
  }

 private:
  static constexpr size_t kResult = size_t(-1);
  struct Pair {
    size_t param;  // or kResult
    const Expr *wanted, *found;
    bool used = false, exact = false;  // gave a name; and is true by that
  };

  void fail(size_t param) {
    if (s_) s_.problem = Solution::Mismatch, s_.param = param;
  }

  static bool fits(const Type *want, const Type *have) {
    return want->elem == have->elem && want->tensor == have->tensor && want->rank() == have->rank();
  }
  void argument(size_t i) {
    const Def &p = f_.params[i].def;
    if (!fits(p.type, args_[i].type)) return fail(i);
    if (p.type->tensor) return collect(i, p.type, args_[i]);
    if (args_[i].value && p.type->elem == DType::Index) s_.names[p.name] = args_[i].value;
  }
  void collect(size_t i, const Type *want, const Argument &arg) {
    for (size_t d = 0; d < want->rank(); ++d) pairs_.push_back({i, want->dims[d], arg.type->dims[d]});
    auto *strides = as<List>(attr(b_, want->attrs, "strides"));
    if (!strides || strides->items.size() != want->rank()) return;
    Exprs found = arg.strides.size() == want->rank() ? arg.strides : strides_of(b_, arg.type);
    for (size_t d = 0; d < want->rank(); ++d) pairs_.push_back({i, strides->items[d], found[d]});
  }

  // How many names in e are not solved yet; `one` is the last of them.
  int count_unknown(const Expr *e, Sym *one) const {
    int n = 0;
    each_expr(e, [&](const Expr *x) {
      if (auto *name = as<Name>(x); name && unknown_.count(name->name)) ++n, *one = name->name;
      return true;
    });
    return n;
  }

  // wanted(u) = found, taken apart from outside: 2 * u + 1 = a  ->  2 * u = a - 1  ->  u = (a - 1) // 2.
  void solve(Pair &p) {
    Sym u;
    if (count_unknown(p.wanted, &u) != 1) return;
    const Expr *e = p.wanted, *value = p.found;
    bool exact = true;
    while (e->kind != Kind::Name) {
      auto *x = as<Binary>(e);
      if (!x) return;
      Sym ignored;
      bool left = count_unknown(x->a, &ignored) == 1;
      const Expr *other = instance(left ? x->b : x->a);
      e = left ? x->a : x->b;
      switch (x->op) {
        case Op::Add: value = fold(b_, Op::Sub, value, other); break;
        case Op::Sub: value = left ? fold(b_, Op::Add, value, other) : fold(b_, Op::Sub, other, value); break;
        case Op::Mul: {
          value = fold(b_, Op::FloorDiv, value, other);
          if (as<Binary>(value) || is_int(other, 0)) exact = false;
          if (as<Int>(value)) exact = false;  // of literals: compared below, a fraction fails there
          break;
        }
        default: return;
      }
    }
    int64_t v;
    if (int_value(value, &v) && v < 0) return p.param == kResult ? void(p.used = true) : fail(p.param);
    p.used = true, p.exact = exact;
    s_.names[u] = value;
    unknown_.erase(u);
  }

  const Expr *instance(const Expr *e) {
    return rewrite(b_, substitute(b_, e, s_.names), [&](const Expr *x) -> const Expr * {
      auto *y = as<Binary>(x);
      if (!y) return x;
      const Expr *r = fold(b_, y->op, y->a, y->b);
      return equal(r, x) ? x : r;
    });
  }

  void compare(const Pair &p) {
    const Expr *wanted = instance(p.wanted);
    int64_t x, y;
    if (equal(wanted, p.found)) return;
    if (int_value(wanted, &x) && int_value(p.found, &y)) return fail(p.param);
    s_.open.push_back({p.param, wanted, p.found});
  }

  Build &b_;
  const Func &f_;
  std::span<const Argument> args_, results_;
  std::unordered_set<Sym> unknown_;
  std::vector<Pair> pairs_;
  Solution s_;
};

}  // namespace

Solution solve_dims(Build &b, const Func &callee, std::span<const Argument> args, std::span<const Argument> results) {
  return Solver(b, callee, args, results).run();
}

}  // namespace mlc
