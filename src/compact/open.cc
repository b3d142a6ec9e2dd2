// Blocks lose their isolation, then their braces.
//
//   for i0 in 2, i1 in 4 {                                   for i0 in 2, i1 in 4 {
//     block y {                                                y[i0 * 4 + i1] = x[i0 * 4 + i1 + 1]
//       spatial i in 8 = i0 * 4 + i1               ->        }
//       y[i] = x[i + 1]
#include "arith/scope.h"
#include "arith/simplify.h"
#include "compact/parts.h"
#include "ir/edit.h"
#include "text/text.h"

namespace mlc {

bool anywhere(const Expr *cond) {
  bool good = !reads_memory(cond);
  each_expr(cond, [&](const Expr *e) {
    auto *x = as<Binary>(e);
    int64_t n;
    if (x && (x->op == Op::FloorDiv || x->op == Op::Mod || x->op == Op::Div)) good &= int_value(x->b, &n) && n != 0;
    return good;
  });
  return good;
}

bool touches(const Stmt *s, Sym buffer) {
  bool found = false;
  each_stmt(s, [&](const Stmt *t) {
    if (found) return;
    each_expr_of(t, [&](const Expr *e) {
      each_expr(e, [&](const Expr *x) {
        auto *n = as<Name>(x);
        auto *l = as<Load>(x);
        found |= (n && n->name == buffer) || (l && !l->global && l->buffer == buffer);
        return !found;
      });
    });
    if (auto *c = as<Compute>(t))
      for (const Result &r : c->results) found |= r.name == buffer;
    if (auto *a = as<Alloc>(t)) found |= a->base == buffer;
  });
  return found;
}

namespace {

class Opener {
 public:
  Opener(Build &b, const Func &f) : b_(b), known_(b) {
    collect_all_names(&f, all_);
    for (Sym d : f.dims) visible_.insert(d);
    for (const Param &p : f.params) visible_.insert(p.def.name);
    for (const Def &d : f.results) visible_.insert(d.name);
    enter(known_, f);
  }

  Stmts scope(Stmts in) {
    size_t names = defined_.size(), map = log_.size();
    Out out;
    list(in, out);
    for (; defined_.size() > names; defined_.pop_back()) visible_.erase(defined_.back());
    forget(map);
    return b_.list(out);
  }

 private:
  void list(Stmts in, Out &out) {
    for (const Stmt *s : in) {
      out.push_back(stmt(s));
      after(known_, out.back());
    }
  }
  Stmts scope(const Stmt *of, size_t k, Stmts in) {  // the k-th body of a statement whose heads are ready
    size_t mark = known_.mark();
    enter(known_, of, k);
    Stmts out = scope(in);
    known_.pop(mark);
    return out;
  }

  const Stmt *stmt(const Stmt *s) {
    if (auto *i = kept_else(s)) s = i;
    switch (s->kind) {
      case Kind::For: {
        auto *f = edited(b_, to<For>(s), [&](For &n) { n.iter.extent = tidy(n.iter.extent); });
        size_t names = defined_.size(), map = log_.size();
        f = edited(b_, *f, [&](For &n) { n.iter.name = bind(n.iter.name); });
        f = edited(b_, *f, [&](For &n) { n.body = scope(f, 0, n.body); });
        for (; defined_.size() > names; defined_.pop_back()) visible_.erase(defined_.back());
        forget(map);
        return f;
      }
      case Kind::If: {
        auto *i = edited(b_, to<If>(s), [&](If &n) { n.cond = tidy(n.cond); });
        return edited(b_, *i, [&](If &n) { n.body = scope(i, 0, n.body), n.other = scope(i, 1, n.other); });
      }
      case Kind::While: {
        auto *w = edited(b_, to<While>(s), [&](While &n) { n.cond = tidy(n.cond); });
        return edited(b_, *w, [&](While &n) { n.body = scope(w, 0, n.body); });
      }
      case Kind::Block: return block(to<Block>(s));
      case Kind::Compute: return compute(to<Compute>(s));
      default: break;
    }
    Substitution names = env_;
    auto rename = [&](Sym s) {
      if (Sym n = bind(s); n != s) names[s] = b_.name(n);
    };
    if (auto *l = as<Let>(s))
      for (const Def &d : l->defs) rename(d.name);
    if (auto *a = as<Alloc>(s)) rename(a->def.name);
    if (auto *v = as<View>(s)) rename(v->def.name);
    const Stmt *n = substitute(b_, b_.one(s), names)[0];
    return n == s ? s : tidied(n);
  }

  // y[i] = where(c, e, y[i])  ->  if c { y[i] = e }
  const If *kept_else(const Stmt *s) {
    auto *st = as<Store>(s);
    auto *w = st && !st->atomic ? as<Call>(st->value) : nullptr;
    if (!w || w->global || b_.text(w->callee) != "where" || w->args.size() != 3 || !equal(w->args[2], st->target)) return nullptr;
    if (!anywhere(w->args[0])) return nullptr;
    If i{{}, w->args[0], b_.stmts({edited(b_, *st, [&](Store &n) { n.value = w->args[1], n.comment = {}; })}), {}, false};
    i.comment = s->comment;
    return b_.make(i);
  }

  // Subscripts and conditions of a statement without bodies.
  const Stmt *tidied(const Stmt *s) {
    auto inside = [&](const Expr *e) { return simplify_inside(b_, e, known_); };
    switch (s->kind) {
      case Kind::Store:
        return edited(b_, to<Store>(s), [&](Store &n) {
          if (auto *t = as<Load>(inside(n.target))) n.target = t;
          n.value = inside(n.value);
        });
      case Kind::Let: return edited(b_, to<Let>(s), [&](Let &n) { n.value = inside(n.value); });
      case Kind::View:
        return edited(b_, to<View>(s), [&](View &n) {
          if (auto *t = as<Load>(inside(n.source))) n.source = t;
        });
      case Kind::CallStmt:
        return edited(b_, to<CallStmt>(s), [&](CallStmt &n) {
          if (auto *c = as<Call>(inside(n.call))) n.call = c;
          n.dests = edit_all(b_, n.dests, [&](const Expr *&e) { e = inside(e); });
        });
      default: return s;
    }
  }

  const Stmt *compute(const Compute &c) {
    Substitution names = env_;
    std::unordered_set<Sym> met;  // what comes into the statement from outside
    auto look = [&](const Expr *e) {
      std::unordered_set<Sym> free;
      collect_names(e, free);
      for (Sym s : free)
        if (auto it = env_.find(s); it != env_.end()) collect_names(it->second, met);
    };
    look(c.value);
    for (const Result &r : c.results)
      for (const Iter &i : r.iters) look(i.extent), names.erase(i.name);
    for (const Iter &i : c.results[0].iters)
      if (met.count(i.name)) names[i.name] = b_.name(fresh(i.name));
    return substitute(b_, b_.stmts({&c}), names)[0];
  }

  const Stmt *block(const Block &k) {
    size_t map = log_.size(), mark = known_.mark();
    Block n = copy_of(k);
    n.guard = k.guard ? tidy(k.guard) : nullptr;
    if (n.guard) known_.assume(n.guard);
    n.axes = edit_all(b_, k.axes, [&](Axis &a) {
      a.domain = tidy(a.domain);
      const Expr *e = substitute(b_, a.binding, env_);
      a.binding = e->kind == Kind::Name ? e : simplify(b_, e, known_);
    });
    for (size_t i = 0; i < k.axes.size(); i++) map_to(k.axes[i].name, n.axes[i].binding);
    n.reads = n.writes = {};
    Out inits, body;
    list(k.inits, inits), list(k.body, body);
    n.inits = b_.list(inits), n.body = b_.list(body);
    forget(map);
    known_.pop(mark);
    return b_.make(n);
  }

  const Expr *tidy(const Expr *e) {
    const Expr *n = substitute(b_, e, env_);
    return n == e ? e : shorten(b_, n, known_);
  }

  // A definition inside the scope that is open: its name there, another one if it is seen already.
  Sym bind(Sym name) {
    Sym n = visible_.count(name) ? fresh(name) : name;
    visible_.insert(n), defined_.push_back(n);
    map_to(name, n == name ? nullptr : b_.name(n));
    return n;
  }
  Sym fresh(Sym base) {
    Sym s = base;
    for (int i = 1; !all_.insert(s).second || visible_.count(s); i++) s = b_.sym(fmt::format("{}_{}", b_.text(base), i));
    return s;
  }
  void map_to(Sym name, const Expr *e) {
    auto it = env_.find(name);
    log_.push_back({name, it == env_.end() ? nullptr : it->second});
    set(name, e);
  }
  void set(Sym name, const Expr *e) {
    if (e) env_[name] = e;
    else env_.erase(name);
  }
  void forget(size_t mark) {
    for (; log_.size() > mark; log_.pop_back()) set(log_.back().first, log_.back().second);
  }

  Build &b_;
  Bounds known_;
  std::unordered_set<Sym> all_, visible_;
  std::vector<Sym> defined_;
  Substitution env_;  // axes, renamed definitions
  std::vector<std::pair<Sym, const Expr *>> log_;
};

// ---- braces

class Flattener {
 public:
  explicit Flattener(Build &b) : b_(b) {}

  // What became of one block alone carries its comment outside the loops around it: `up` gets it.
  Stmts list(Stmts in, std::string *up) {
    Out out;
    bool one = up && !in.empty();
    for (const Stmt *s : in) one &= s == in[0] || rest_of_block(s);
    for (const Stmt *s : in) {
      std::string comment;
      size_t first = out.size();
      stmt(s, out, comment);
      if (comment.empty() || first == out.size()) continue;
      if (one && s == in[0]) *up = comment;
      else add_comment(out[first], comment);
    }
    return b_.list(out);
  }

 private:
  // Loops down to a block whose initialiser stands in front of them.
  static bool rest_of_block(const Stmt *s) {
    while (s->kind == Kind::For && to<For>(s).body.size() == 1) s = to<For>(s).body[0];
    auto *k = as<Block>(s);
    return k && !k->name;
  }
  void add_comment(const Stmt *&s, const std::string &text) {
    std::string all = std::string(s->comment);
    if (all == text || all.ends_with("\n" + text)) return;
    s = commented(b_, s, b_.arena.text(all.empty() ? text : all + "\n" + text));
  }

  void stmt(const Stmt *s, Out &out, std::string &up) {
    auto *k = as<Block>(s);
    if (!k) {
      bool loop = s->kind == Kind::For;
      std::string inner;
      out.push_back(with_bodies(b_, s, [&](Stmts body) { return list(body, loop ? &inner : nullptr); }));
      if (loop && !inner.empty()) up = inner;
      return;
    }
    Out in;
    const Expr *start = nullptr;
    if (!k->inits.empty()) {
      for (const Axis &a : k->axes) {
        if (a.kind == AxisKind::Spatial) continue;
        const Expr *zero = simplify(b_, b_.binary(Op::Eq, a.binding, b_.integer(0)));
        if (auto *known = as<Bool>(zero); !known || !known->value) start = both(b_, start, zero);
      }
      Stmts inits = list(k->inits, nullptr);
      if (start) in.push_back(b_.make(If{{}, start, inits, {}, false}));
      else in.insert(in.end(), inits.begin(), inits.end());
    }
    std::string inner;
    Stmts body = list(k->body, in.empty() ? &inner : nullptr);
    in.insert(in.end(), body.begin(), body.end());
    Stmts done = with_from(b_.list(in), k->notes.from);
    if (k->guard) done = b_.stmts({b_.make(If{{}, k->guard, done, {}, false})});
    out.insert(out.end(), done.begin(), done.end());
    up = k->comment;
    if (k->name) up += (up.empty() ? "# block " : "\n# block ") + print_name(b_, k->name);
    if (!inner.empty()) up += (up.empty() ? "" : "\n") + inner;
  }

  Stmts with_from(Stmts s, Syms from) {
    if (from.empty()) return s;
    return rewrite_stmts(b_, s, [&](const Stmt *s, Out &out) {
      if (auto *st = as<Store>(s); st && st->from.empty()) s = edited(b_, *st, [&](Store &n) { n.from = from; });
      if (auto *c = as<CallStmt>(s); c && c->from.empty()) s = edited(b_, *c, [&](CallStmt &n) { n.from = from; });
      out.push_back(s);
    });
  }

  Build &b_;
};

}  // namespace

Stmts opened(Build &b, const Func &f) { return Opener(b, f).scope(f.body); }
Stmts flattened(Build &b, Stmts body) { return Flattener(b).list(body, nullptr); }

const Func *dissolved(Build &b, const Func *f) {
  bool blocks = false;
  each_stmt(f->body, [&](const Stmt *s) { blocks |= s->kind == Kind::Block; });
  if (!blocks) return f;
  return edited(b, *f, [&](Func &n) {
    n.body = opened(b, *f);
    n.body = with_inits_placed(b, *f, n.body);
    n.body = flattened(b, n.body);
    n.body = with_guards_lifted(b, *f, n.body);
  });
}

}  // namespace mlc
