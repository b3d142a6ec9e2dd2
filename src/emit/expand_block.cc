// Blocks dissolve into the loops around them.
#include "arith/simplify.h"
#include "emit/expander.h"
#include "ir/edit.h"
#include "text/text.h"

namespace mlc {

// Axes become their bindings where these are names or literals, else values defined in front.
Expander::Axes Expander::axes_of(const Block &k) {
  std::unordered_set<Sym> bound;
  bound_names(k.body, true, [&](Sym s) { bound.insert(s); });
  bound_names(k.inits, true, [&](Sym s) { bound.insert(s); });
  Axes a;
  for (const Axis &x : k.axes) {
    auto *n = as<Name>(x.binding);
    if ((n && !bound.count(n->name)) || x.binding->kind == Kind::Int) {
      a.names[x.name] = x.binding;
      continue;
    }
    Sym s = fresh(text(x.name));
    a.names[x.name] = b_.name(s);
    a.lets.push_back(b_.make(Let{{}, b_.one(Def{s, x.at, b_.index()}), x.binding, {}, {}}));
  }
  rename_bound(k.body, a.names);
  return a;
}

void Expander::rename_bound(Stmts body, Substitution &names) {
  bound_names(body, false, [&](Sym s) {
    if (Sym n = fresh(text(s)); n != s) names.emplace(s, b_.name(n));
  });
}

// Every axis but the spatial ones at its start, with `names` for loops; null: always.
const Expr *Expander::at_start(const Block &k, const Substitution &names) {
  X cond;
  for (const Axis &a : k.axes) {
    if (a.kind == AxisKind::Spatial) continue;
    X zero = x(simplify(b_, substitute(b_, a.binding, names))) == 0;
    if (is_truth(zero, true)) continue;
    cond = cond ? cond && zero : zero;
  }
  return cond.e;
}

static std::string block_comment(const Build &b, const Block &k) { return "block " + print_name(b, k.name); }

void Expander::block(const Block &k, bool with_init, Out &out) {
  Out in;
  Axes axes = axes_of(k);
  size_t mark = env_.mark();
  for (const Stmt *s : axes.lets) env_.define_index(to<Let>(s).defs[0].name);
  in = axes.lets;
  if (with_init && !k.inits.empty()) {
    Out init;
    body(substitute(b_, k.inits, axes.names), init);
    Substitution by_axis;
    const Expr *start = at_start(k, by_axis);
    guarded(start, init, in);
  }
  body(with_from(substitute(b_, k.body, axes.names), k.notes.from), in);
  env_.pop(mark);
  size_t first = out.size();
  guarded(k.guard, in, out);
  if (with_init && first < out.size()) out[first] = commented(out[first], comment_of(k, block_comment(b_, k)));
}

Stmts Expander::with_from(Stmts s, Syms from) {
  if (from.empty()) return s;
  return rewrite_stmts(b_, s, [&](const Stmt *s, Out &out) {
    if (auto *st = as<Store>(s); st && st->from.empty()) s = edited(b_, *st, [&](Store &n) { n.from = from; });
    out.push_back(s);
  });
}

// Loops that hold one another alone, down to one block with an initialiser: the innermost ones that only reduce axes
// use run behind it.
bool Expander::hoist(const For &f, Out &out) {
  std::vector<const For *> loops;
  const Stmt *s = &f;
  for (; s->kind == Kind::For; s = to<For>(s).body[0]) {
    loops.push_back(&to<For>(s));
    if (loops.back()->body.size() != 1) return false;
  }
  auto *k = as<Block>(s);
  if (!k || k->inits.empty()) return false;
  size_t outer = loops.size();
  for (; outer > 0; outer--) {
    Sym v = loops[outer - 1]->iter.name;
    bool reduces = false, spatial = false;
    for (const Axis &a : k->axes) (a.kind == AxisKind::Spatial ? spatial : reduces) |= mentions(a.binding, v);
    if (spatial || !reduces || loops[outer - 1]->loop == LoopKind::Parallel) break;
  }
  if (outer == loops.size()) return false;

  size_t mark = env_.mark();
  for (const For *l : loops) env_.define_index(l->iter.name);
  Substitution start;
  for (size_t i = outer; i < loops.size(); i++) start[loops[i]->iter.name] = b_.integer(0);
  Substitution names;
  for (const Axis &a : k->axes) names[a.name] = simplify(b_, substitute(b_, a.binding, start));
  Out init, in, inner;
  body(substitute(b_, k->inits, names), init);
  guarded(at_start(*k, start), init, inner);
  if (k->guard) {
    X guard = x(simplify(b_, substitute(b_, k->guard, start)));
    init.swap(inner), inner.clear();
    guarded(is_truth(guard, true) ? nullptr : guard.e, init, inner);
  }
  block(*k, false, in);
  env_.pop(mark);
  std::string_view comment = comment_of(f, block_comment(b_, *k));
  for (size_t i = loops.size(); i-- > 0;) {
    const For *l = edited(b_, *loops[i], [&](For &n) { n.body = b_.list(in); });
    in.assign(1, l);
    if (i == outer) in.insert(in.begin(), inner.begin(), inner.end());
  }
  in[0] = commented(in[0], comment);
  out.insert(out.end(), in.begin(), in.end());
  return true;
}

}  // namespace mlc
