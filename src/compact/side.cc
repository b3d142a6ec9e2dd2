#include "compact/side.h"

#include "arith/affine.h"
#include "arith/prove.h"
#include "arith/simplify.h"

namespace mlc {

bool mentions_any(const Expr *e, Iters iters) {
  for (const Iter &i : iters)
    if (mentions(e, i.name)) return true;
  return false;
}

void split(Build &b, const Expr *e, bool negative, Iters iters, const Expr *&still, const Expr *&moving) {
  auto *x = as<Binary>(e);
  if (x && (x->op == Op::Add || x->op == Op::Sub)) {
    split(b, x->a, negative, iters, still, moving);
    return split(b, x->b, negative != (x->op == Op::Sub), iters, still, moving);
  }
  const Expr *&part = mentions_any(e, iters) ? moving : still;
  part = negative ? minus(b, part, e) : sum(b, part, e);
}

Side limits(Build &b, const Expr *value, const Expr *cond, const Bounds &known) {
  auto *c = as<Binary>(cond);
  if (!c || c->op < Op::Lt || c->op > Op::Ge) return {};
  bool less = c->op == Op::Lt || c->op == Op::Le, strict = c->op == Op::Lt || c->op == Op::Gt;
  const Expr *gap = minus(b, less ? c->b : c->a, less ? c->a : c->b);  // > 0, or >= 0
  const Expr *end = simplify(b, sum(b, sum(b, value, gap), b.integer(strict ? 0 : 1)), known);
  const Expr *lo = simplify(b, sum(b, minus(b, value, gap), b.integer(strict ? 1 : 0)), known);
  return cost(end) <= cost(lo) ? Side{nullptr, end} : Side{lo, nullptr};
}

Side within(Build &b, Side s, Side limit, const Bounds &known) {
  const Expr *end = sum(b, s.lo, s.extent);
  if (limit.extent && !provably_less_equal(b, end, limit.extent, known))
    end = provably_less_equal(b, limit.extent, end, known) ? limit.extent : b.call("min", {end, limit.extent});
  if (limit.lo && !provably_less_equal(b, limit.lo, s.lo, known))
    s.lo = provably_less_equal(b, s.lo, limit.lo, known) ? limit.lo : simplify(b, b.call("max", {s.lo, limit.lo}), known);
  return {s.lo, simplify(b, minus(b, end, s.lo), known)};
}

Side swept(Build &b, const Side &s, Iters iters, const Bounds &known) {
  const Expr *still = b.integer(0), *moving = b.integer(0);
  split(b, simplify(b, s.lo, known), false, iters, still, moving);
  auto low = span_of(b, moving, iters, known);
  if (!low) return {};
  const Expr *extent = low->extent;
  if (!is_int(s.extent, 1)) {
    auto high = span_of(b, sum(b, moving, s.extent), iters, known);
    if (!high) return {};
    extent = minus(b, minus(b, sum(b, high->lo, high->extent), b.integer(1)), low->lo);
  }
  if (mentions_any(low->lo, iters) || mentions_any(extent, iters)) return {};
  return {simplify(b, sum(b, still, low->lo), known), simplify(b, extent, known)};
}

Region hull(Build &b, const Access &a, size_t depth, const Bounds &known) {
  Region out;
  Iters iters = Iters(a.iters).subspan(depth);
  for (const Side &s : a.at) {
    out.push_back({nullptr, nullptr});
    if (!s.lo) continue;
    out.back() = swept(b, s, iters, known);
    for (const Cond &c : a.conds) {
      if (c.loop != kNoLoop || !is_int(s.extent, 1) || !out.back().lo) continue;
      Side limit = limits(b, s.lo, c.holds, known);
      for (const Expr **e : {&limit.lo, &limit.extent}) {
        if (!*e || !mentions_any(*e, iters)) continue;
        Side all = swept(b, {*e, b.integer(1)}, iters, known);
        if (!all.lo || e == &limit.lo) *e = all.lo;
        else *e = minus(b, sum(b, all.lo, all.extent), b.integer(1));
      }
      if (limit.lo || limit.extent) out.back() = within(b, out.back(), limit, known);
    }
  }
  return out;
}

const Expr *end_of(Build &b, Sym v, const Expr *cond, const Bounds &known) {
  auto *c = as<Binary>(cond);
  if (!c || c->op < Op::Lt || c->op > Op::Ge) return nullptr;
  bool less = c->op == Op::Lt || c->op == Op::Le, strict = c->op == Op::Lt || c->op == Op::Gt;
  auto a = affine(b, minus(b, less ? c->a : c->b, less ? c->b : c->a), b.one(v), known);
  if (!a || !is_int(a->coefs[0], 1)) return nullptr;
  const Expr *end = b.unary(Op::Neg, a->rest);
  return simplify(b, strict ? end : sum(b, end, b.integer(1)), known);
}

}  // namespace mlc
