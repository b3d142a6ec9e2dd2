#include "emit/expand.h"

#include <unordered_set>

#include "arith/simplify.h"
#include "ir/edit.h"
#include "ir/typing.h"
#include "ir/walk.h"
#include "ops/expr.h"
#include "text/text.h"

namespace mlc {
namespace {

using Out = std::vector<const Stmt *>;

// Names that a body binds, those inside its blocks too: loops, axes, values, buffers.
void bound_names(Stmts body, bool in_blocks, const std::function<void(Sym)> &f) {
  for (const Stmt *s : body) {
    switch (s->kind) {
      case Kind::Let: for (const Def &d : to<Let>(s).defs) f(d.name); break;
      case Kind::Alloc: f(to<Alloc>(s).def.name); break;
      case Kind::View: f(to<View>(s).def.name); break;
      case Kind::For: f(to<For>(s).iter.name); break;
      case Kind::Compute: for (const Iter &i : to<Compute>(s).results[0].iters) f(i.name); break;
      case Kind::Block:
        if (!in_blocks) continue;
        for (const Axis &a : to<Block>(s).axes) f(a.name);
        break;
      default: break;
    }
    each_body(s, [&](Stmts inner) { bound_names(inner, in_blocks, f); });
  }
}

class Expander {
 public:
  Expander(Build &b, const Module &m, const Func *f, Diag &diag) : b_(b), m_(m), f_(f), diag_(diag), env_(b, m, f) {
    std::unordered_set<Sym> inside;
    collect_all_names(f, taken_);
    each_stmt(f->body, [&](const Stmt *s) {  // what blocks bind keeps its name if nobody outside has it
      auto *block = as<Block>(s);
      if (!block) return;
      for (const Axis &a : block->axes) inside.insert(a.name);
      bound_names(block->body, false, [&](Sym s) { inside.insert(s); });
    });
    auto outside = [&](Sym s) { inside.erase(s); };
    for (const Param &p : f->params) outside(p.def.name);
    for (const Def &d : f->results) outside(d.name);
    for (Sym d : f->dims) outside(d);
    bound_names(f->body, false, outside);
    for (Sym s : inside) taken_.erase(s);
  }

  const Func *run() {
    Out out;
    body(f_->body, out);
    if (failed_) return nullptr;
    return edited(b_, *f_, [&](Func &f) { f.body = b_.list(out); });
  }

 private:
  std::string_view text(Sym s) const { return b_.text(s); }
  // A name that nothing visible has: base, base_1, base_2 ...; free again when the body that it is made for ends.
  Sym fresh(std::string_view base) {
    Sym s = b_.sym(base);
    for (int n = 1; !taken_.insert(s).second; n++) s = b_.sym(fmt::format("{}_{}", base, n));
    made_.push_back(s);
    return s;
  }
  void release(size_t mark) {
    for (; made_.size() > mark; made_.pop_back()) taken_.erase(made_.back());
  }
  X x(const Expr *e) { return {b_, e}; }
  template <class... A> void fail(uint32_t at, fmt::format_string<A...> f, A &&...a) {
    diag_.error(at, f, std::forward<A>(a)...);
    failed_ = true;
  }

  // ---- statements

  void body(Stmts in, Out &out) {
    size_t mark = env_.mark();
    for (const Stmt *s : in) {
      size_t first = out.size();
      stmt(s, out);
      if (!s->comment.empty() && first < out.size() && out[first]->comment.empty())
        out[first] = commented(out[first], s->comment);
    }
    env_.pop(mark);
  }
  Stmts body(Stmts in) {
    size_t mark = made_.size();
    Out out;
    body(in, out);
    release(mark);
    return b_.list(out);
  }

  void stmt(const Stmt *s, Out &out) {
    switch (s->kind) {
      case Kind::Compute: compute(to<Compute>(s), out); break;
      case Kind::Block: block(to<Block>(s), true, out); break;
      case Kind::For: loop(to<For>(s), out); break;
      case Kind::Let: let(to<Let>(s), out); break;
      case Kind::Store: {
        auto &st = to<Store>(s);
        DType t = elem_of(*st.target);
        const Load *target = edited(b_, *st.target, [&](Load &l) { l.index = lower_all(l.index, DType::Index, out); });
        const Expr *value = lower(st.value, t, out);
        out.push_back(edited(b_, st, [&](Store &n) { n.target = target, n.value = value; }));
        break;
      }
      case Kind::If: {
        auto &i = to<If>(s);
        const Expr *cond = lower(i.cond, DType::Bool, out);
        out.push_back(edited(b_, i, [&](If &n) { n.cond = cond, n.body = body(i.body), n.other = body(i.other); }));
        break;
      }
      case Kind::While: {
        auto &w = to<While>(s);
        if (reduces(w.cond)) fail(w.at, "a reduction in the condition of a while cannot be emitted");
        out.push_back(edited(b_, w, [&](While &n) { n.body = body(w.body); }));
        break;
      }
      case Kind::Assume: {
        auto &a = to<Assume>(s);
        const Expr *cond = lower(a.cond, DType::Bool, out);
        out.push_back(edited(b_, a, [&](Assume &n) { n.cond = cond; }));
        break;
      }
      case Kind::Alloc: env_.define(to<Alloc>(s).def.name, to<Alloc>(s).def.type), out.push_back(s); break;
      case Kind::View: env_.define(to<View>(s).def.name, to<View>(s).def.type), out.push_back(s); break;
      default: out.push_back(s);
    }
  }

  const Stmt *commented(const Stmt *s, std::string_view comment) {
    auto with = [&](auto &node) -> const Stmt * { return edited(b_, node, [&](auto &n) { n.comment = comment; }); };
    switch (s->kind) {
      case Kind::For: return with(to<For>(s));
      case Kind::If: return with(to<If>(s));
      case Kind::Store: return with(to<Store>(s));
      case Kind::Alloc: return with(to<Alloc>(s));
      case Kind::Let: return with(to<Let>(s));
      default: return s;
    }
  }
  // The comment of what became of s: its own lines, then `what`.
  std::string_view comment_of(const Stmt &s, const std::string &what) {
    return b_.arena.text(std::string(s.comment) + (s.comment.empty() ? "" : "\n") + "# " + what);
  }

  void let(const Let &l, Out &out) {
    if (auto *c = as<Call>(l.value); c && c->global && l.attrs.empty()) {
      const Func *r = m_.func(c->callee);
      if (r && r->func == FuncKind::Reducer) {
        std::vector<const Expr *> results = c->iters.empty() ? combine(*r, lower_all(c->args, *r, out), out)
                                                             : fold(*r, *c, out);
        for (size_t i = 0; i < l.defs.size() && i < results.size(); i++) define(l.defs[i], results[i], l.from, out);
        return;
      }
    }
    DType want = l.defs.size() == 1 && !l.defs[0].type->tensor ? l.defs[0].type->elem : DType::Invalid;
    const Expr *value = want == DType::Invalid ? l.value : lower(l.value, want, out);
    for (const Def &d : l.defs) env_.define(d.name, d.type);
    out.push_back(edited(b_, l, [&](Let &n) { n.value = value; }));
  }
  void define(const Def &d, const Expr *value, Syms from, Out &out) {
    env_.define(d.name, d.type);
    out.push_back(b_.make(Let{{}, b_.one(d), value, {}, from}));
  }
  const Stmt *store(const Load *target, const Expr *value, Syms from = {}) {
    return b_.make(Store{{}, false, target, value, from});
  }

  // for i in .. around what `inner` writes
  template <class F> void nest(Iters iters, Syms from, Out &out, const F &inner) {
    size_t mark = env_.mark(), names = made_.size();
    for (const Iter &i : iters) env_.define_index(i.name);
    Out in;
    inner(in);
    env_.pop(mark);
    if (!iters.empty()) release(names);
    for (size_t d = iters.size(); d-- > 0;) {
      Notes notes{{}, d ? Syms{} : from};
      const Stmt *f = b_.make(For{{}, LoopKind::Serial, iters[d], {}, notes, b_.list(in)});
      in.assign(1, f);
    }
    out.insert(out.end(), in.begin(), in.end());
  }

  void compute(const Compute &c, Out &out) {
    Iters iters = c.results[0].iters;
    auto target = [&](const Result &r) {
      std::vector<const Expr *> index;
      for (const Iter &i : iters) index.push_back(b_.name(i.name));
      return b_.load(r.name, b_.list(index), r.at);
    };
    size_t first = out.size();
    nest(iters, c.from, out, [&](Out &in) {
      auto *call = as<Call>(c.value);
      const Func *r = call && call->global && !call->iters.empty() ? m_.func(call->callee) : nullptr;
      if (r) {
        std::vector<const Expr *> values = fold(*r, *call, in);
        for (size_t i = 0; i < values.size() && i < c.results.size(); i++)
          in.push_back(store(target(c.results[i]), values[i], c.from));
      } else {
        const Load *t = target(c.results[0]);
        in.push_back(store(t, lower(c.value, elem_of(*t), in), c.from));
      }
    });
    const Compute *bare = edited(b_, c, [](Compute &n) { n.from = {}, n.comment = {}; });
    out[first] = commented(out[first], comment_of(c, print(b_, bare).substr(strlen("compute "))));
  }

  // ---- blocks

  struct Axes {
    Substitution names;
    Out lets;
  };
  // Axes become their bindings where these are names or literals, else values defined in front.
  Axes axes_of(const Block &k) {
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
  void rename_bound(Stmts body, Substitution &names) {
    bound_names(body, false, [&](Sym s) {
      if (Sym n = fresh(text(s)); n != s) names.emplace(s, b_.name(n));
    });
  }

  // Every axis but the spatial ones at its start, with `names` for loops; null: always.
  const Expr *at_start(const Block &k, const Substitution &names) {
    X cond;
    for (const Axis &a : k.axes) {
      if (a.kind == AxisKind::Spatial) continue;
      X zero = x(simplify(b_, substitute(b_, a.binding, names))) == 0;
      if (is_truth(zero, true)) continue;
      cond = cond ? cond && zero : zero;
    }
    return cond.e;
  }

  void guarded(const Expr *cond, Out in, Out &out) {
    if (!cond) out.insert(out.end(), in.begin(), in.end());
    else out.push_back(b_.make(If{{}, cond, b_.list(in), {}, false}));
  }

  std::string block_comment(const Block &k) { return "block " + print_name(b_, k.name); }

  void block(const Block &k, bool with_init, Out &out) {
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
    if (with_init && first < out.size()) out[first] = commented(out[first], comment_of(k, block_comment(k)));
  }

  Stmts with_from(Stmts s, Syms from) {
    if (from.empty()) return s;
    return rewrite_stmts(b_, s, [&](const Stmt *s, Out &out) {
      if (auto *st = as<Store>(s); st && st->from.empty()) s = edited(b_, *st, [&](Store &n) { n.from = from; });
      out.push_back(s);
    });
  }

  // Loops that hold one another alone, down to one block with an initialiser: the innermost ones that only reduce axes
  // use run behind it.
  bool hoist(const For &f, Out &out) {
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
    std::string_view comment = comment_of(f, block_comment(*k));
    for (size_t i = loops.size(); i-- > 0;) {
      const For *l = edited(b_, *loops[i], [&](For &n) { n.body = b_.list(in); });
      in.assign(1, l);
      if (i == outer) in.insert(in.begin(), inner.begin(), inner.end());
    }
    in[0] = commented(in[0], comment);
    out.insert(out.end(), in.begin(), in.end());
    return true;
  }

  void loop(const For &f, Out &out) {
    if (hoist(f, out)) return;
    size_t mark = env_.mark();
    env_.define_index(f.iter.name);
    Stmts inner = body(f.body);
    env_.pop(mark);
    out.push_back(edited(b_, f, [&](For &n) { n.body = inner; }));
  }

  // ---- expressions

  DType elem_of(const Load &l) const {
    const Type *t = env_.find(l.buffer);
    return t ? t->elem : DType::Invalid;
  }
  DType known(const Expr *e) const { return type_of(env_, e, DType::Invalid, nullptr); }
  DType type(const Expr *e, DType want) const {
    DType t = known(e);
    return t == DType::Invalid ? want : t;
  }
  bool is_fold(const Expr *e) const {
    auto *c = as<Call>(e);
    if (!c) return false;
    if (!c->iters.empty()) return true;
    const Func *r = c->global ? m_.func(c->callee) : nullptr;
    return r && r->func == FuncKind::Reducer;
  }
  bool reduces(const Expr *e) {
    if (auto it = reduces_.find(e); it != reduces_.end()) return it->second;
    bool yes = is_fold(e);
    each_child(e, [&](const Expr *c) { yes |= reduces(c); });
    return reduces_[e] = yes;
  }

  // A local scalar and its value.
  const Load *accumulator(std::string_view base, DType t, Out &out) {
    Sym s = fresh(base);
    Type type{t, true, b_.sym("local"), {}, -1, {}, {}};
    const Type *unique = b_.type(type);
    env_.define(s, unique);
    out.push_back(b_.make(Alloc{{}, {s, kNowhere, unique}, {}, nullptr}));
    return b_.load(s, {});
  }

  Exprs lower_all(Exprs l, DType want, Out &out) {
    return edit_all(b_, l, [&](const Expr *&e) { e = lower(e, want, out); });
  }
  Exprs lower_all(Exprs l, const Func &f, Out &out) {
    size_t i = 0;
    return edit_all(b_, l, [&](const Expr *&e) {
      DType want = i < f.params.size() ? f.params[i].def.type->elem : DType::Invalid;
      i++, e = lower(e, want, out);
    });
  }

  const Expr *lower(const Expr *e, DType want, Out &out) {
    if (!reduces(e)) return e;
    switch (e->kind) {
      case Kind::Unary: {
        auto &u = to<Unary>(e);
        return b_.unary(u.op, lower(u.a, want, out), u.at);
      }
      case Kind::Binary: return binary(to<Binary>(e), want, out);
      case Kind::Load: {
        auto &l = to<Load>(e);
        return b_.load(l.buffer, lower_all(l.index, DType::Index, out), l.at, l.global);
      }
      case Kind::Call: return call(to<Call>(e), want, out);
      default: return e;
    }
  }

  const Expr *binary(const Binary &e, DType want, Out &out) {
    if ((e.op == Op::And || e.op == Op::Or) && reduces(e.b)) {
      // a && b: b is evaluated only where a holds
      const Load *r = accumulator(e.op == Op::And ? "both" : "either", DType::Bool, out);
      out.push_back(store(r, lower(e.a, DType::Bool, out)));
      const Expr *cond = e.op == Op::And ? static_cast<const Expr *>(r) : b_.unary(Op::Not, r);
      Out in;
      in.push_back(store(r, lower(e.b, DType::Bool, in)));
      guarded(cond, in, out);
      return r;
    }
    if (e.op >= Op::Eq && e.op <= Op::Ge) {
      DType t = known(e.a);
      want = t == DType::Invalid ? type(e.b, DType::Index) : t;
    }
    const Expr *a = lower(e.a, want, out);
    return b_.binary(e.op, a, lower(e.b, want, out), e.at);
  }

  const Expr *call(const Call &c, DType want, Out &out) {
    if (!c.iters.empty() || is_fold(&c)) {
      if (c.global) return reducer_value(c, out);
      return reduction(c, type(&c, want), out);
    }
    if (c.global) return b_.call(c.callee, lower_all(c.args, *m_.func(c.callee), out), c.at, true);
    std::string_view name = text(c.callee);
    if (name == "where") return where(c, type(&c, want), out);
    DType inner = want;
    if (is_cast(name) || name.starts_with("bits.") || name == "convert" || name.starts_with("is")) {
      inner = DType::Invalid;
    } else {
      for (const Expr *a : c.args)
        if (DType t = known(a); t != DType::Invalid) inner = t;
    }
    return b_.call(c.callee, lower_all(c.args, inner, out), c.at);
  }

  const Expr *where(const Call &c, DType t, Out &out) {
    const Expr *cond = lower(c.args[0], DType::Bool, out);
    bool plain = !reduces(c.args[1]) && !reduces(c.args[2]);
    if (plain) return b_.call(c.callee, b_.list({cond, c.args[1], c.args[2]}), c.at);
    const Load *r = accumulator("chosen", t, out);
    Out yes, no;
    yes.push_back(store(r, lower(c.args[1], t, yes)));
    no.push_back(store(r, lower(c.args[2], t, no)));
    out.push_back(b_.make(If{{}, cond, b_.list(yes), b_.list(no), true}));
    return r;
  }

  const Expr *reduction(const Call &c, DType t, Out &out) {
    std::string_view name = text(c.callee);
    const Load *acc = accumulator(name, t, out);
    X first = name == "sum"    ? zero(b_, t)
              : name == "prod" ? one(b_, t)
              : name == "max"  ? lowest(b_, t)
              : name == "min"  ? highest(b_, t)
                               : truth(b_, name == "all");
    out.push_back(store(acc, first.e));
    nest(c.iters, {}, out, [&](Out &in) {
      const Expr *term = lower(c.args[0], t, in);
      const Expr *value = name == "sum"    ? b_.binary(Op::Add, acc, term)
                          : name == "prod" ? b_.binary(Op::Mul, acc, term)
                          : name == "all"  ? b_.binary(Op::And, acc, term)
                          : name == "any"  ? b_.binary(Op::Or, acc, term)
                                           : static_cast<const Expr *>(b_.call(name, {acc, term}));
      in.push_back(store(acc, value));
    });
    return acc;
  }

  // ---- reducers

  const Expr *reducer_value(const Call &c, Out &out) {
    const Func &r = *m_.func(c.callee);
    std::vector<const Expr *> results = c.iters.empty() ? combine(r, lower_all(c.args, r, out), out) : fold(r, c, out);
    if (results.size() != 1) return fail(c.at, "@{} has {} results, expected one", text(c.callee), results.size()), &c;
    return results[0];
  }

  // @r(a, b for k in n): accumulators from its init, combined with each turn's values.
  std::vector<const Expr *> fold(const Func &r, const Call &c, Out &out) {
    std::vector<const Expr *> accs;
    if (r.func != FuncKind::Reducer || r.params.size() != 2 * r.results.size() || c.args.size() != r.results.size())
      return fail(c.at, "@{} cannot fold {} values", text(c.callee), c.args.size()), accs;
    for (const Def &d : r.results) accs.push_back(accumulator(text(d.name), d.type->elem, out));
    std::vector<const Expr *> inits = inlined(r, r.inits, {}, out);
    for (size_t i = 0; i < accs.size(); i++) out.push_back(store(as<Load>(accs[i]), inits[i]));
    nest(c.iters, {}, out, [&](Out &in) {
      std::vector<const Expr *> args = accs;
      for (size_t i = 0; i < c.args.size(); i++) args.push_back(lower(c.args[i], r.results[i].type->elem, in));
      std::vector<const Expr *> values = combine(r, args, in);
      for (size_t i = 0; i < accs.size(); i++) in.push_back(store(as<Load>(accs[i]), values[i]));
    });
    return accs;
  }
  std::vector<const Expr *> combine(const Func &r, Exprs args, Out &out) {
    return combine(r, std::vector<const Expr *>(args.begin(), args.end()), out);
  }
  std::vector<const Expr *> combine(const Func &r, const std::vector<const Expr *> &args, Out &out) {
    Substitution names;
    for (size_t i = 0; i < r.params.size() && i < args.size(); i++) {
      const Def &p = r.params[i].def;
      bool simple = args[i]->kind == Kind::Name || (as<Load>(args[i]) && to<Load>(args[i]).index.empty());
      names[p.name] = simple ? args[i] : value(p, args[i], out);
    }
    return inlined(r, r.body, names, out);
  }
  const Expr *value(const Def &d, const Expr *e, Out &out) {
    Sym s = fresh(text(d.name));
    define({s, d.at, d.type}, e, {}, out);
    return b_.name(s);
  }
  // The lets of a reducer under fresh names; the last definition of a result is its value.
  std::vector<const Expr *> inlined(const Func &r, Stmts lets, Substitution names, Out &out) {
    for (const Stmt *s : lets) {
      auto *l = as<Let>(s);
      if (!l || l->defs.size() != 1) {
        fail(s->at, "@{} has a statement that is no definition", text(r.name));
        break;
      }
      const Expr *e = lower(substitute(b_, l->value, names), l->defs[0].type->elem, out);
      names[l->defs[0].name] = value(l->defs[0], e, out);
    }
    std::vector<const Expr *> results;
    for (const Def &d : r.results) {
      auto it = names.find(d.name);
      if (it == names.end()) fail(r.at, "@{} does not define {}", text(r.name), text(d.name));
      results.push_back(it == names.end() ? zero(b_, d.type->elem).e : it->second);
    }
    return results;
  }

  Build &b_;
  const Module &m_;
  const Func *f_;
  Diag &diag_;
  std::unordered_set<Sym> taken_;
  std::vector<Sym> made_;
  Env env_;
  std::unordered_map<const Expr *, bool> reduces_;
  bool failed_ = false;
};

}  // namespace

const Func *expand(Build &b, const Module &m, const Func *f, Diag &diag) { return Expander(b, m, f, diag).run(); }

}  // namespace mlc
