#include "interp/dims.h"

#include "interp/number.h"
#include "ir/walk.h"

namespace mlc::interp {

std::optional<int64_t> index_value(const Build &b, const Expr *e, const IndexValues &names) {
  if (auto *i = as<Int>(e)) return i->value;
  if (auto *n = as<Name>(e)) {
    auto it = names.find(n->name);
    return it == names.end() ? std::nullopt : std::optional(it->second);
  }
  if (auto *u = as<Unary>(e)) {
    auto a = u->op == Op::Neg ? index_value(b, u->a, names) : std::nullopt;
    return a ? std::optional(int64_t(0 - uint64_t(*a))) : std::nullopt;
  }
  auto floor_div = [](int64_t x, int64_t y) {
    if (!y) return int64_t(0);
    if (y == -1) return int64_t(0 - uint64_t(x));
    int64_t q = x / y;
    return q * y != x && (x < 0) != (y < 0) ? q - 1 : q;
  };
  const Expr *l = nullptr, *r = nullptr;
  if (auto *x = as<Binary>(e)) l = x->a, r = x->b;
  auto *c = as<Call>(e);
  if (c && !c->global && c->iters.empty() && c->args.size() == 2) l = c->args[0], r = c->args[1];
  if (!l) return {};
  auto x = index_value(b, l, names), y = x ? index_value(b, r, names) : std::nullopt;
  if (!y) return {};
  if (c) {
    if (b.text(c->callee) == "min") return std::min(*x, *y);
    if (b.text(c->callee) == "max") return std::max(*x, *y);
    return {};
  }
  switch (to<Binary>(e).op) {
    case Op::Add: return int64_t(uint64_t(*x) + uint64_t(*y));
    case Op::Sub: return int64_t(uint64_t(*x) - uint64_t(*y));
    case Op::Mul: return int64_t(uint64_t(*x) * uint64_t(*y));
    case Op::FloorDiv: return floor_div(*x, *y);
    case Op::Mod: return *y ? int64_t(uint64_t(*x) - uint64_t(floor_div(*x, *y)) * uint64_t(*y)) : 0;
    default: return {};
  }
}

namespace {

// Whether e is built of + - * alone around its single mention of u, so that it is affine in u.
bool affine_in(const Expr *e, Sym u) {
  if (auto *n = as<Name>(e)) return n->name == u;
  auto *x = as<Binary>(e);
  if (!x || (x->op != Op::Add && x->op != Op::Sub && x->op != Op::Mul)) return false;
  bool left = mentions(x->a, u), right = mentions(x->b, u);
  return left != right && affine_in(left ? x->a : x->b, u);
}

// u with wanted(u) = found; nothing if there is none that is whole and at least 0.
std::optional<int64_t> solve_one(const Build &b, const DimEquation &q, Sym u, IndexValues &names) {
  names[u] = 0;
  auto zero = index_value(b, q.wanted, names);
  names[u] = 1;
  auto one = index_value(b, q.wanted, names);
  names.erase(u);
  if (!zero || !one) return {};
  Wide step = Wide(*one) - *zero, rest = Wide(q.found) - *zero;
  if (!step || rest % step || rest / step < 0) return {};
  return int64_t(rest / step);
}

}  // namespace

size_t solve(const Build &b, std::span<const DimEquation> equations, const std::function<bool(Sym)> &unknown,
             IndexValues &names) {
  std::vector<bool> done(equations.size());
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < equations.size(); i++) {
      const DimEquation &q = equations[i];
      if (done[i]) continue;
      if (auto v = index_value(b, q.wanted, names)) {
        if (*v != q.found) return i;
        done[i] = true;
        continue;
      }
      Sym u;
      int count = 0;
      each_expr(q.wanted, [&](const Expr *e) {
        if (auto *n = as<Name>(e); n && !names.count(n->name)) {
          if (unknown(n->name)) count += n->name != u, u = n->name;
          else count = 2;
        }
        return true;
      });
      if (count != 1 || !affine_in(q.wanted, u)) continue;
      auto v = solve_one(b, q, u, names);
      if (!v) {
        // 0 * u = 0 says nothing of u; any other is a contradiction.
        names[u] = 0;
        auto zero = index_value(b, q.wanted, names);
        names[u] = 1;
        auto one = index_value(b, q.wanted, names);
        names.erase(u);
        if (zero && one && *zero == *one && *zero == q.found) continue;
        return i;
      }
      names[u] = *v, done[i] = more = true;
    }
  }
  return equations.size();
}

}  // namespace mlc::interp
