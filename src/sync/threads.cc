#include "sync/threads.h"

#include <algorithm>

#include "arith/scope.h"
#include "ir/edit.h"
#include "ir/typing.h"
#include "ops/expr.h"
#include "sync/reduce.h"
#include "sync/uses.h"
#include "text/text.h"

namespace mlc {

namespace {

constexpr std::string_view kThreadTags[] = {"threadIdx.z", "threadIdx.y", "threadIdx.x"};

bool is_block_tag(std::string_view t) { return t.starts_with("blockIdx."); }

// y[..] = y[..] op e
struct Fold {
  const Load *target = nullptr;
  std::string_view op;  // sum prod max min
};
Fold fold_of(const Build &b, const Stmt *s) {
  auto *st = as<Store>(s);
  if (!st || st->atomic) return {};
  if (auto *x = as<Binary>(st->value); x && as<Load>(x->a) && equal(x->a, st->target)) {
    if (x->op == Op::Add || x->op == Op::Sub) return {st->target, "sum"};
    if (x->op == Op::Mul) return {st->target, "prod"};
    if (x->op == Op::And) return {st->target, "all"};
    if (x->op == Op::Or) return {st->target, "any"};
  }
  auto *c = as<Call>(st->value);
  if (!c || c->global || !c->iters.empty()) return {};
  std::string_view name = b.text(c->callee);
  if ((name == "max" || name == "min") && equal(c->args[0], st->target)) return {st->target, name};
  if (name == "fma" && equal(c->args[2], st->target)) return {st->target, "sum"};
  return {};
}

class Joiner {
 public:
  Joiner(Build &b, const Module &m, const Func *f, Nest &out, Diag &diag)
      : b_(b), m_(m), f_(*f), out_(out), diag_(diag), roots_(f->body), fresh_(b) {
    take_names(f, fresh_);
    types_ = tensors_of(*f);
  }

  bool run() {
    Stmts body = blocks(f_.body);
    if (failed_ || !find_threads(body)) return false;
    make_local(body);
    std::vector<const Stmt *> out;
    list(body, {}, out);
    out_.body = b_.list(out);
    return !failed_;
  }

 private:
  template <class... A> void fail(uint32_t at, fmt::format_string<A...> f, A &&...a) {
    diag_.error(at == kNowhere ? f_.at : at, "@{}: {}", b_.text(f_.name), fmt::format(f, std::forward<A>(a)...));
    failed_ = true;
  }
  std::string text(Sym s) const { return std::string(b_.text(s)); }
  std::string_view scope_of(Sym buffer) const {
    auto it = types_.find(roots_.of(buffer));
    return it == types_.end() || !it->second->scope ? "global" : b_.text(it->second->scope);
  }

  // ---- the loops over blocks

  Stmts blocks(Stmts body) {
    std::vector<const Stmt *> lines;  // between two loops
    for (bool first = true;; first = false) {
      size_t i = 0;
      auto plain = [](const Stmt *s) {
        return s->kind == Kind::Let || s->kind == Kind::Alloc || s->kind == Kind::View || s->kind == Kind::Assume;
      };
      while (i < body.size() && plain(body[i])) i++;
      auto *l = i + 1 == body.size() ? as<For>(body[i]) : nullptr;
      bool block = l && l->loop == LoopKind::Bind && is_block_tag(b_.text(l->tag));
      for (size_t k = 0; k < i && block; k++) {
        bool loads = false;
        each_expr_of(body[k], [&](const Expr *e) { loads |= has_loads(e); });
        bool head = first && !loads && (body[k]->kind == Kind::Let || body[k]->kind == Kind::Assume);
        (head ? out_.head : lines).push_back(body[k]);
      }
      if (!block) break;
      if (std::count(out_.block_tags.begin(), out_.block_tags.end(), l->tag))
        fail(l->at, "{} is bound to {} a second time", text(l->iter.name), text(l->tag));
      if (out_.comment.empty()) out_.comment = l->comment;
      out_.blocks.push_back(l->iter), out_.block_tags.push_back(l->tag);
      body = l->body;
    }
    lines.insert(lines.end(), body.begin(), body.end());
    return b_.list(lines);
  }

  // ---- the threads of a block

  bool find_threads(Stmts body) {
    std::unordered_map<Sym, const For *> first;
    std::unordered_map<Sym, int64_t> extents;
    std::vector<Sym> open;
    std::function<void(Stmts)> walk = [&](Stmts l) {
      for (const Stmt *s : l) {
        auto *f = as<For>(s);
        bool bind = f && f->loop == LoopKind::Bind;
        if (bind) {
          std::string_view tag = b_.text(f->tag);
          int64_t n = 0;
          if (is_block_tag(tag)) {
            fail(f->at, "loop {} is bound to {} inside of others: it should be outermost", text(f->iter.name), tag);
          } else if (tag != "vthread") {
            if (std::find(std::begin(kThreadTags), std::end(kThreadTags), tag) == std::end(kThreadTags))
              fail(f->at, "loop {} is bound to {}, which is not supported here: expected blockIdx or threadIdx",
                   text(f->iter.name), tag);
            else if (!int_value(f->iter.extent, &n))
              fail(f->at, "loop {} over {} has {} turns, expected a number", text(f->iter.name), tag,
                   print(b_, f->iter.extent));
            first.try_emplace(f->tag, f);
            bool again = std::count(open.begin(), open.end(), f->tag);  // shared out among the threads that there are
            if (!again) extents[f->tag] = std::max(extents[f->tag], n);
            open.push_back(f->tag);
          }
        }
        each_body(s, walk);
        if (bind && b_.text(f->tag) != "vthread" && !open.empty()) open.pop_back();
      }
    };
    walk(body);
    if (failed_) return false;
    for (std::string_view tag : kThreadTags) {
      Sym s = b_.sym(tag);
      if (auto it = extents.find(s); it != extents.end())
        out_.threads.push_back({s, thread_name(first.at(s)), std::max<int64_t>(it->second, 1)});
    }
    if (out_.threads.empty()) out_.threads.push_back({b_.sym("threadIdx.x"), fresh_.make("tx"), 1});
    return true;
  }
  // The loop's own name, unless something else of the kernel is called so.
  Sym thread_name(const For *f) {
    bool other = false;
    each_stmt(f_.body, [&](const Stmt *s) {
      auto *l = as<For>(s);
      auto *let = as<Let>(s);
      other |= l && l->iter.name == f->iter.name && (l->loop != LoopKind::Bind || l->tag != f->tag);
      for (const Def &d : let ? let->defs : Defs()) other |= d.name == f->iter.name;
    });
    return other ? fresh_.make(b_.text(f->iter.name)) : f->iter.name;
  }
  const Thread *thread(Sym tag) const {
    for (const Thread &t : out_.threads)
      if (t.tag == tag) return &t;
    return nullptr;
  }
  bool has_threads(const Stmt *s) const {
    bool found = false;
    each_stmt(s, [&](const Stmt *x) {
      auto *f = as<For>(x);
      found |= f && f->loop == LoopKind::Bind && b_.text(f->tag) != "vthread";
    });
    return found;
  }

  // A shared scalar that every thread can have for itself: all compute it alike, or reduce into it.
  void make_local(Stmts body) {
    std::unordered_map<Sym, bool> good;
    for (auto &[name, type] : types_)
      if (type->dims.empty() && in_scope(b_, type, "shared")) good[name] = true;
    std::function<void(Stmts, int)> walk = [&](Stmts l, int threads) {
      for (const Stmt *s : l) {
        auto *f = as<For>(s);
        bool bind = f && f->loop == LoopKind::Bind;
        if (auto *st = as<Store>(s); st && threads && good.count(st->target->buffer) && !fold_of(b_, s).target)
          good[st->target->buffer] = false;
        if (auto *v = as<View>(s); v && good.count(v->source->buffer)) good[v->source->buffer] = false;
        if (auto *c = as<CallStmt>(s)) {
          NameSet names;
          mention(c, names);
          for (Sym n : names)
            if (good.count(n)) good[n] = false;
        }
        each_body(s, [&](Stmts in) { walk(in, threads + bind); });
      }
    };
    walk(body, 0);
    for (auto &[name, yes] : good)
      if (yes) local_.insert(name);
  }

  // ---- R1: what each thread does. `bound`: tags of the loops around.

  using Tags = std::vector<Sym>;
  static bool contains(const Tags &l, Sym s) { return std::find(l.begin(), l.end(), s) != l.end(); }

  Stmts list(Stmts in, const Tags &bound) {
    std::vector<const Stmt *> out;
    list(in, bound, out);
    return b_.list(out);
  }
  void list(Stmts in, const Tags &bound, std::vector<const Stmt *> &out) {
    std::vector<const Stmt *> one;  // lines that one thread does
    auto flush = [&] {
      if (one.empty()) return;
      out.push_back(b_.make(If{{}, first_thread(bound), b_.list(one), {}, false}));
      one.clear();
    };
    for (const Stmt *s : in) {
      if (!has_threads(s)) {
        bool alone = seen_by_others(s) && bound.size() < out_.threads.size();
        if (!alone) flush();
        (alone ? one : out).push_back(localised(serial(s)));
        continue;
      }
      flush();
      size_t at = out.size();
      joined(s, bound, out);
      if (at < out.size() && !s->comment.empty() && out[at]->comment.empty())
        out[at] = commented(b_, out[at], s->comment);
    }
    flush();
  }

  // It writes what other threads see, and not as a warp does it together.
  bool seen_by_others(const Stmt *s) const {
    bool yes = false;
    Stmts one = rewrite_stmts(b_, b_.one(s), [&](const Stmt *x, std::vector<const Stmt *> &out) {
      if (!is_collective(b_, m_, x)) out.push_back(x);
    });
    for (Sym w : written(m_, roots_, one)) {
      std::string_view scope = scope_of(w);
      yes |= (scope == "global" || scope == "shared") && !local_.count(w);
    }
    return yes;
  }
  const Expr *first_thread(const Tags &bound) {
    const Expr *cond = nullptr;
    for (size_t i = out_.threads.size(); i-- > 0;) {
      const Thread &t = out_.threads[i];
      if (!contains(bound, t.tag)) cond = both(b_, cond, b_.binary(Op::Eq, b_.name(t.name), b_.integer(0)));
    }
    return cond;
  }
  // vthread loops are turns of each thread.
  const Stmt *serial(const Stmt *s) {
    return rewrite_stmts(b_, b_.one(s), [&](const Stmt *x, std::vector<const Stmt *> &out) {
      auto *f = as<For>(x);
      bool v = f && f->loop == LoopKind::Bind && b_.text(f->tag) == "vthread";
      out.push_back(v ? edited(b_, *f, [](For &n) { n.loop = LoopKind::Unroll, n.tag = {}; }) : x);
    })[0];
  }
  // Scalars that become local.
  const Stmt *localised(const Stmt *s) {
    auto *a = as<Alloc>(s);
    if (!a || !local_.count(a->def.name)) return s;
    return edited(b_, *a, [&](Alloc &n) {
      Type t = *n.def.type;
      t.scope = b_.sym("local");
      n.def.type = b_.type(t);
    });
  }

  void joined(const Stmt *s, const Tags &bound, std::vector<const Stmt *> &out) {
    if (reduced(s, bound, out)) return;
    if (auto *f = as<For>(s)) {
      if (f->loop != LoopKind::Bind || b_.text(f->tag) == "vthread") {
        out.push_back(serial(edited(b_, *f, [&](For &n) { n.body = list(f->body, bound); })));
        return;
      }
      return shared_out(*f, bound, out);
    }
    out.push_back(with_bodies(b_, s, [&](Stmts l) { return list(l, bound); }));
  }

  // for t in 64 bind threadIdx.x { .. }: the turns of the threads that there are.
  void shared_out(const For &f, const Tags &bound, std::vector<const Stmt *> &out) {
    const Thread &t = *thread(f.tag);
    int64_t n = 0;
    int_value(f.iter.extent, &n);
    Tags inner = bound;
    if (!contains(inner, f.tag)) inner.push_back(f.tag);
    X tid(b_, b_.name(t.name));
    if (n <= t.extent) {
      Stmts body = f.iter.name == t.name ? f.body : substitute(b_, f.body, {{f.iter.name, tid.e}});
      if (n == t.extent) return list(body, inner, out);
      out.push_back(b_.make(If{{}, (tid < lit(b_, n)).e, list(body, inner), {}, false}));
      return;
    }
    Iter turn{fresh_.make("turn"), (lit(b_, (n + t.extent - 1) / t.extent)).e, kNowhere};
    X at = X(b_, b_.name(turn.name)) * t.extent + tid;
    Stmts body = list(substitute(b_, f.body, {{f.iter.name, at.e}}), inner);
    if (n % t.extent) body = b_.stmts({b_.make(If{{}, (at < lit(b_, n)).e, body, {}, false})});
    out.push_back(b_.make(For{{}, LoopKind::Serial, turn, {}, {}, body}));
  }

  // ---- R2: a store into what a loop over threads does not tell apart

  // A reduction in s across threads that are not bound around it, into elements that are the same throughout s.
  struct Found {
    const Load *target = nullptr;
    std::string_view op;
    Tags tags;          // across which it goes
    bool whole = true;  // s is the place to do it: the subscripts mention nothing of s
    const Expr *where = nullptr;  // conditions around the store that are the same throughout s
    uint32_t at = kNowhere;
    bool other = false;  // it is no y = y op e
  };
  Found find_fold(const Stmt *top, const Tags &bound) {
    Found found;
    std::vector<const For *> loops;
    std::vector<const Expr *> conds;
    NameSet inside;  // what is defined in s
    std::function<void(const Stmt *)> walk = [&](const Stmt *s) {
      auto *f = as<For>(s);
      if (f) loops.push_back(f), inside.insert(f->iter.name);
      if (auto *l = as<Let>(s))
        for (const Def &d : l->defs) inside.insert(d.name);
      if (auto *a = as<Alloc>(s)) inside.insert(a->def.name);
      if (auto *v = as<View>(s)) inside.insert(v->def.name);
      if (auto *st = as<Store>(s); st && !st->atomic && !inside.count(st->target->buffer)) store(s, *st);
      auto *i = as<If>(s);
      size_t around = conds.size(), side = 0;
      each_body(s, [&](Stmts l) {
        if (i && side++) conds.push_back(b_.unary(Op::Not, i->cond));
        else if (i) conjuncts(i->cond, conds);
        for (const Stmt *x : l) walk(x);
        conds.resize(around);
      });
      if (f) loops.pop_back();
    };
    // (the store of a y that other turns of a loop over threads store too)
    store_ = [&](const Stmt *s, const Store &st) {
      std::string_view scope = scope_of(st.target->buffer);
      if (scope != "global" && scope != "shared") return;
      NameSet names;
      for (const Expr *i : st.target->index) collect_names(i, names);
      for (const Stmt *x : lets_of(top, names)) mention(x, names);
      Tags across;
      for (const For *f : loops)
        if (f->loop == LoopKind::Bind && b_.text(f->tag) != "vthread" && !names.count(f->iter.name) &&
            !contains(bound, f->tag) && thread(f->tag)->extent > 1)
          across.push_back(f->tag);
      bool reads = false;
      each_expr(st.value, [&](const Expr *e) {
        auto *l = as<Load>(e);
        reads |= l && !l->global && l->buffer == st.target->buffer;
        return !reads;
      });
      if (across.empty() || !reads) return;
      Fold fold = fold_of(b_, s);
      if (found.target && (!fold.target || !equal(found.target, fold.target) || found.op != fold.op))
        return void(found.other = true);
      found.at = st.at;
      if (!fold.target) return void(found.other = true);
      found.target = fold.target, found.op = fold.op, found.tags = across;
      for (Sym n : names) found.whole &= !inside.count(n);
      for (const Expr *c : conds) {
        NameSet of;
        collect_names(c, of);
        bool same = !has_loads(c) && std::none_of(of.begin(), of.end(), [&](Sym n) { return inside.count(n); });
        if (same) found.where = both(b_, found.where, c);
      }
    };
    walk(top);
    return found;
  }
  std::function<void(const Stmt *, const Store &)> store_;
  void store(const Stmt *s, const Store &st) { store_(s, st); }
  // Definitions in s of scalars that are mentioned.
  static std::vector<const Stmt *> lets_of(const Stmt *top, const NameSet &names) {
    std::vector<const Stmt *> out;
    each_stmt(top, [&](const Stmt *s) {
      auto *l = as<Let>(s);
      for (const Def &d : l ? l->defs : Defs())
        if (names.count(d.name)) out.push_back(s);
    });
    return out;
  }

  bool reduced(const Stmt *s, const Tags &bound, std::vector<const Stmt *> &out) {
    Found f = find_fold(s, bound);
    if (f.other && !f.target) {
      fail(f.at, "threads combine into one element, which is not supported here: expected y = y op e");
      return true;
    }
    if (!f.target) return false;
    auto *loop = as<For>(s);
    if (!f.whole && loop && !(loop->loop == LoopKind::Bind && contains(f.tags, loop->tag)))
      return false;  // further inside
    if (f.other || !f.whole) {
      fail(f.at, "threads combine into {}, which is not supported here beside another reduction", print(b_, f.target));
      return true;
    }
    DType t = types_.at(f.target->buffer)->elem;
    Sym own = fresh_.make(text(f.target->buffer) + ".own");
    const Type *scalar = b_.type({t, true, b_.sym("local"), {}, -1, {}, {}});
    const Load *mine = b_.load(own, {});
    X start = fold_start(b_, f.op, t);
    out.push_back(b_.make(Alloc{{}, {own, kNowhere, scalar}, {}, nullptr}));
    types_[own] = scalar;
    out.push_back(b_.make(Store{{}, false, mine, start.e, {}}));
    auto owned = [&](const Expr *e) { return e->kind == Kind::Load && equal(e, f.target) ? mine : e; };
    const Stmt *with_own = rewrite_stmts(b_, b_.one(s), [&](const Stmt *x, std::vector<const Stmt *> &to) {
      Fold fold = fold_of(b_, x);  // an initialiser in here, y[..] = e, stays
      to.push_back(fold.target && equal(fold.target, f.target) ? rewrite_exprs(b_, x, owned) : x);
    })[0];
    with_own = commented(b_, with_own, "");
    joined(with_own, bound, out);
    Across across{b_, fresh_, out_.threads, f.tags, f.op, t, text(f.target->buffer)};
    combine_across(across, mine, out);
    const Stmt *last = b_.make(Store{{}, false, f.target, fold_step(b_, f.op, f.target, mine), {}});
    if (local_.count(f.target->buffer)) out.push_back(last);
    else out.push_back(b_.make(If{{}, both(b_, first_thread(bound), f.where), b_.stmts({last}), {}, false}));
    return true;
  }

  Build &b_;
  const Module &m_;
  const Func &f_;
  Nest &out_;
  Diag &diag_;
  Roots roots_;
  Fresh fresh_;
  std::unordered_map<Sym, const Type *> types_;
  std::unordered_set<Sym> local_;
  bool failed_ = false;
};

}  // namespace

bool threads_joined(Build &b, const Module &m, const Func *f, Nest &out, Diag &diag) {
  return Joiner(b, m, f, out, diag).run();
}

}  // namespace mlc
