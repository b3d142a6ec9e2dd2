// Conditions leave the loops that they do not mention.
//
//   for j0 in 2, j1 in 16                            if m > 0 {
//     if m > 0 && j0 * 16 + j1 < 20 {         ->       for j0 in 2, j1 in min(16, 20 - j0 * 16) {
//       y[j0 * 16 + j1] = ..                             y[j0 * 16 + j1] = ..
//
// What always holds is gone, a bound of a serial loop's own variable becomes the loop's. In a vectorize loop it stays
// inside, a mask of lanes; outside goes that there is a first lane. Loops bound to tags keep their extents; the outermost one of a tag stays outside.
#include "arith/prove.h"
#include "arith/scope.h"
#include "arith/simplify.h"
#include "compact/side.h"
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
        out[first] = commented(b_, out[first], i.comment);
      return;
    }
    if (body.empty() && other.empty()) return;
    // if a { if b { .. } }: one condition
    auto *only = body.size() == 1 && !i.has_else ? as<If>(body[0]) : nullptr;
    if (only && !only->has_else && only->comment.empty()) cond = both(b_, cond, only->cond), body = only->body;
    out.push_back(edited(b_, i, [&](If &n) { n.cond = cond, n.body = body, n.other = other; }));
  }

  void loop(const For &f, Out &out) {
    bool launch = f.loop == LoopKind::Bind && std::find(tags_.begin(), tags_.end(), f.tag) == tags_.end();
    size_t mark = known_.mark();
    enter(known_, &f, 0);
    if (launch) tags_.push_back(f.tag);
    Stmts body = list(f.body);
    if (launch) tags_.pop_back();
    known_.pop(mark);
    if (body.empty()) return;
    const Expr *extent = f.iter.extent, *outside = nullptr;
    Out allocs;  // nothing is seen of them without the rest
    while (!body.empty() && body[0]->kind == Kind::Alloc) allocs.push_back(body[0]), body = body.subspan(1);
    auto *i = body.size() == 1 ? as<If>(body[0]) : nullptr;
    if (i && !i->has_else && (i->comment.empty() || (!allocs.empty() && i->body[0]->comment.empty())) && !launch) {
      std::vector<const Expr *> parts;
      conjuncts(i->cond, parts);
      const Expr *kept = nullptr;
      for (const Expr *e : parts) {
        const Expr *end = nullptr;
        if (!anywhere(e)) kept = both(b_, kept, e);
        else if (!mentions(e, f.iter.name)) outside = both(b_, outside, e);
        else if (f.loop == LoopKind::Serial && (end = end_of(b_, f.iter.name, e, known_))) extent = least(extent, end);
        else kept = both(b_, kept, e), outside = both(b_, outside, first_lane(f, e));
      }
      body = kept ? b_.stmts({edited(b_, *i, [&](If &n) { n.cond = kept; })}) : i->body;
      if (!kept && !i->comment.empty()) {
        Out named(body.begin(), body.end());
        named[0] = commented(b_, named[0], i->comment);
        body = b_.list(named);
      }
    }
    if (!allocs.empty()) allocs.insert(allocs.end(), body.begin(), body.end()), body = b_.list(allocs);
    Stmts done = b_.stmts({edited(b_, f, [&](For &n) { n.body = body, n.iter.extent = extent; })});
    if (is_int(extent, 1) && f.loop != LoopKind::Bind && dissolves(f, body)) {
      Stmts once = substitute(b_, body, {{f.iter.name, b_.integer(0)}});
      Out all(once.begin(), once.end());
      if (all[0]->comment.empty()) all[0] = commented(b_, all[0], f.comment);
      done = b_.list(all);
    }
    if (!outside) return void(out.insert(out.end(), done.begin(), done.end()));
    std::string_view comment = done[0]->comment;
    Out all(done.begin(), done.end());
    all[0] = commented(b_, all[0], {});
    If around{{}, outside, b_.list(all), {}, false};
    around.comment = comment;
    out.push_back(b_.make(around));
  }

  // What holds of the first lane if it holds of any, c * 16 < n of c * 16 + i1 < n; null: nothing that is not known.
  const Expr *first_lane(const For &f, const Expr *cond) {
    if (f.loop != LoopKind::Vectorize || !end_of(b_, f.iter.name, cond, known_)) return nullptr;
    const Expr *first = simplify(b_, substitute(b_, cond, {{f.iter.name, b_.integer(0)}}), known_);
    return prove(b_, first, known_) ? nullptr : first;
  }

  // A loop of one turn says nothing, unless it has attributes or bounds the life of a name.
  static bool dissolves(const For &f, Stmts body) {
    return f.notes.attrs.empty() && std::none_of(body.begin(), body.end(), [](const Stmt *s) {
      return s->kind == Kind::Let || s->kind == Kind::Alloc || s->kind == Kind::View;
    });
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

  // if c { a }  if c { b }   ->   if c { a b }
  void join(Out &out, size_t at) {
    auto *x = as<If>(out[at - 1]), *y = as<If>(out[at]);
    if (!x || !y || x->has_else || y->has_else || !equal(x->cond, y->cond) || reads_memory(x->cond)) return;
    Out body(x->body.begin(), x->body.end());
    if (!y->body.empty() && !y->comment.empty() && y->body[0]->comment.empty())
      body.push_back(commented(b_, y->body[0], y->comment)), body.insert(body.end(), y->body.begin() + 1, y->body.end());
    else body.insert(body.end(), y->body.begin(), y->body.end());
    out[at - 1] = edited(b_, *x, [&](If &n) { n.body = b_.list(body); });
    out.erase(out.begin() + long(at));
  }

  Build &b_;
  Bounds known_;
  std::vector<Sym> tags_;  // of the bound loops around
};

}  // namespace

Stmts with_guards_lifted(Build &b, const Func &f, Stmts body) { return Lifter(b, f).list(body); }

}  // namespace mlc
