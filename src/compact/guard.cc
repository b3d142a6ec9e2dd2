// Conditions leave the loops that they do not mention.
//
//   for j0 in 2, j1 in 16                            if m > 0 {
//     if m > 0 && j0 * 16 + j1 < 20 {         ->       for j0 in 2, j1 in min(16, 20 - j0 * 16) {
//       y[j0 * 16 + j1] = ..                             y[j0 * 16 + j1] = ..
//
// What always holds is gone, a bound of a serial loop's own variable becomes the loop's. In a vectorize loop it stays
// inside: a mask of lanes. Loops bound to tags keep their extents and stay outside.
#include "arith/affine.h"
#include "arith/prove.h"
#include "arith/scope.h"
#include "arith/simplify.h"
#include "compact/parts.h"
#include "ir/edit.h"

namespace mlc {

namespace {

class Lifter {
 public:
  Lifter(Build &b, const Func &f) : b_(b), known_(b) { enter(known_, f); }

  Stmts list(Stmts in) {
    Out out;
    size_t mark = known_.mark();
    for (const Stmt *s : in) {
      size_t first = out.size();
      stmt(s, out);
      for (size_t i = first; i < out.size(); i++) after(known_, out[i]);
      if (first > 0 && first < out.size()) join(out, first);
    }
    known_.pop(mark);
    return b_.list(out);
  }

 private:
  void stmt(const Stmt *s, Out &out) {
    if (auto *f = as<For>(s)) return loop(*f, out);
    if (auto *i = as<If>(s)) return branch(*i, out);
    size_t which = 0;
    out.push_back(with_bodies(b_, s, [&](Stmts inner) {
      size_t m = known_.mark();
      enter(known_, s, which++);
      Stmts l = list(inner);
      known_.pop(m);
      return l;
    }));
  }

  void branch(const If &i, Out &out) {
    bool pure = !reads_memory(i.cond);
    const Expr *cond = nullptr;
    bool never = false;
    if (pure && !i.has_else) {
      std::vector<const Expr *> parts;
      conjuncts(i.cond, parts);
      size_t mark = known_.mark();
      for (const Expr *e : parts) {
        const Expr *s = simplify(b_, e, known_);
        if (auto *k = as<Bool>(s); k && k->value) continue;
        if (prove(b_, e, known_)) continue;
        if (auto *k = as<Bool>(s)) never |= !k->value;
        const Expr *kept = shorten(b_, e, known_);
        cond = both(b_, cond, kept);
        known_.assume(kept);
      }
      known_.pop(mark);
    } else {
      cond = pure ? shorten(b_, i.cond, known_) : i.cond;
    }
    if (never) return;
    auto inside = [&](Stmts body, size_t k) {
      size_t m = known_.mark();
      enter(known_, &i, k);
      Stmts l = list(body);
      known_.pop(m);
      return l;
    };
    Stmts body = inside(i.body, 0), other = inside(i.other, 1);
    if (!cond && !i.has_else) {
      size_t first = out.size();
      out.insert(out.end(), body.begin(), body.end());
      if (first < out.size() && !i.comment.empty() && out[first]->comment.empty())
        out[first] = with_comment(b_, out[first], i.comment);
      return;
    }
    if (body.empty() && other.empty()) return;
    // if a { if b { .. } }: one condition
    auto *only = body.size() == 1 && !i.has_else ? as<If>(body[0]) : nullptr;
    if (only && !only->has_else && only->comment.empty()) cond = both(b_, cond, only->cond), body = only->body;
    out.push_back(edited(b_, i, [&](If &n) { n.cond = cond, n.body = body, n.other = other; }));
  }

  void loop(const For &f, Out &out) {
    size_t mark = known_.mark();
    enter(known_, &f, 0);
    Stmts body = list(f.body);
    known_.pop(mark);
    if (body.empty()) return;
    const Expr *extent = f.iter.extent, *outside = nullptr;
    auto *i = body.size() == 1 ? as<If>(body[0]) : nullptr;
    if (i && !i->has_else && i->comment.empty() && f.loop != LoopKind::Bind) {
      std::vector<const Expr *> parts;
      conjuncts(i->cond, parts);
      const Expr *kept = nullptr;
      for (const Expr *e : parts) {
        const Expr *end = nullptr;
        if (!anywhere(e)) kept = both(b_, kept, e);
        else if (!mentions(e, f.iter.name)) outside = both(b_, outside, e);
        else if ((end = bound(f, e))) extent = least(extent, end);
        else kept = both(b_, kept, e);
      }
      body = kept ? b_.stmts({edited(b_, *i, [&](If &n) { n.cond = kept; })}) : i->body;
    }
    const Stmt *loop = edited(b_, f, [&](For &n) { n.body = body, n.iter.extent = extent; });
    if (!outside) return out.push_back(loop);
    std::string_view comment = loop->comment;
    If around{{}, outside, b_.stmts({with_comment(b_, loop, {})}), {}, false};
    around.comment = comment;
    out.push_back(b_.make(around));
  }

  const Expr *least(const Expr *x, const Expr *y) {
    const Expr *both = b_.call("min", {x, y}), *s = simplify(b_, both, known_);
    auto extreme = [&](const Expr *e) {
      auto *c = as<Call>(e);
      return c && b_.text(c->callee) == "min";
    };
    bool open = false;
    each_expr(s, [&](const Expr *e) { return !(open |= extreme(e)); });
    return open ? both : s;
  }

  // v + r < n, in a serial loop over v: n - r, else null.
  const Expr *bound(const For &f, const Expr *cond) {
    auto *c = as<Binary>(cond);
    if (f.loop != LoopKind::Serial || !c || c->op < Op::Lt || c->op > Op::Ge) return nullptr;
    bool less = c->op == Op::Lt || c->op == Op::Le, open = c->op == Op::Lt || c->op == Op::Gt;
    const Expr *low = less ? c->a : c->b, *high = less ? c->b : c->a;  // low < high, or low <= high
    Sym v = f.iter.name;
    size_t mark = known_.mark();
    known_.index(v);
    auto a = affine(b_, b_.binary(Op::Sub, low, high), b_.one(v), known_);
    known_.pop(mark);
    if (!a || !is_int(a->coefs[0], 1)) return nullptr;
    const Expr *end = b_.unary(Op::Neg, a->rest);
    return simplify(b_, open ? end : b_.binary(Op::Add, end, b_.integer(1)), known_);
  }

  // if c { a }  if c { b }   ->   if c { a b }
  void join(Out &out, size_t at) {
    auto *x = as<If>(out[at - 1]), *y = as<If>(out[at]);
    if (!x || !y || x->has_else || y->has_else || !equal(x->cond, y->cond) || reads_memory(x->cond)) return;
    Out body(x->body.begin(), x->body.end());
    if (!y->body.empty() && !y->comment.empty() && y->body[0]->comment.empty())
      body.push_back(with_comment(b_, y->body[0], y->comment)), body.insert(body.end(), y->body.begin() + 1, y->body.end());
    else body.insert(body.end(), y->body.begin(), y->body.end());
    out[at - 1] = edited(b_, *x, [&](If &n) { n.body = b_.list(body); });
    out.erase(out.begin() + long(at));
  }

  Build &b_;
  Bounds known_;
};

}  // namespace

Stmts with_guards_lifted(Build &b, const Func &f, Stmts body) { return Lifter(b, f).list(body); }

}  // namespace mlc
