#include "sync/barriers.h"

#include <algorithm>

#include "arith/scope.h"
#include "check/race.h"
#include "ir/edit.h"
#include "sync/uses.h"
#include "text/text.h"

namespace mlc {

namespace {

struct Touch {
  bool read = false, write = false;
};
using Pending = std::unordered_map<Sym, Touch>;  // by buffer, since the last barrier

class Barriers {
 public:
  Barriers(Build &b, const Module &m, const Func *f, Nest &nest, Diag &diag)
      : b_(b), m_(m), f_(*f), nest_(nest), diag_(diag), roots_(nest.body), known_(b) {
    auto tensor = [&](const Def &d) {
      if (d.type->tensor) types_[d.name] = d.type;
    };
    for (const Param &p : f->params) tensor(p.def);
    for (const Def &d : f->results) tensor(d);
    each_stmt(nest.body, [&](const Stmt *s) {
      if (auto *a = as<Alloc>(s)) tensor(a->def);
      if (auto *v = as<View>(s)) tensor(v->def);
    });
    enter(known_, *f);
    for (const Stmt *s : nest.head) after(known_, s);
    for (const Iter &i : nest.blocks) known_.range(i.name, i.extent);
    for (const Thread &t : nest.threads) varies_.insert(t.name);
  }

  bool run() {
    int64_t threads = 1;
    for (const Thread &t : nest_.threads) threads *= t.extent;
    if (threads > 1) find_common();
    if (common_.empty()) return true;
    Pending pending;
    nest_.body = walk(nest_.body, pending, true);
    return !failed_;
  }

 private:
  // ---- buffers that one thread writes and another one may touch

  void find_common() {
    NameSet others;  // what is more than a place that warps write together, each the same
    for (Sym s : mentioned(rewrite_stmts(b_, nest_.body, [&](const Stmt *x, std::vector<const Stmt *> &out) {
           auto *c = is_collective(b_, m_, x) ? as<CallStmt>(x) : nullptr;
           out.push_back(c ? edited(b_, *c, [](CallStmt &n) { n.dests = {}; }) : x);
         })))
      others.insert(roots_.of(s));
    for (Sym s : written(m_, roots_, nest_.body)) {
      auto it = types_.find(s);
      if (it != types_.end() && !seen_by_others(b_, it->second)) continue;
      if (!others.count(s)) continue;
      if (!private_to_threads(s)) common_.insert(s);
    }
  }
  // No element is touched by two threads: a loop over each tag, around all that is inside, has no race.
  bool private_to_threads(Sym buffer) {
    RaceScope scope;
    scope.type = [&](Sym n) { auto it = types_.find(n); return it == types_.end() ? nullptr : it->second; };
    scope.root = [&](Sym n) { return roots_.of(n); };
    scope.shared = [&](Sym n) { return roots_.of(n) != buffer; };
    scope.function = [&](Sym n) { return m_.func(n); };
    scope.threads = true;
    Stmts body = rewrite_stmts(b_, nest_.body, [&](const Stmt *s, std::vector<const Stmt *> &out) {
      auto *a = as<Alloc>(s);
      if (!a || a->def.name != buffer) out.push_back(s);  // it is outside of the threads
    });
    bool apart = true;
    size_t mark = known_.mark();
    for (const Thread &t : nest_.threads) known_.range(t.name, b_.integer(t.extent));
    std::vector<const For *> loops;
    for (size_t i = nest_.threads.size(); i-- > 0 && apart;) {
      const Thread &t = nest_.threads[i];
      const For *loop = b_.make(For{{}, LoopKind::Bind, {t.name, b_.integer(t.extent), kNowhere}, t.tag, {}, body});
      apart = race_of(b_, known_, *loop, scope).empty();
      body = b_.stmts({loop});
    }
    known_.pop(mark);
    return apart;
  }

  // ---- where barriers stand

  Pending touches(const Stmt *s) const {
    Pending out;
    auto read = [&](const Expr *e) {
      each_expr(e, [&](const Expr *x) {
        auto *l = as<Load>(x);
        auto *n = as<Name>(x);
        Sym name = l && !l->global ? l->buffer : n ? n->name : Sym{};
        if (name && common_.count(roots_.of(name))) out[roots_.of(name)].read = true;
        return true;
      });
    };
    each_stmt(s, [&](const Stmt *x) {
      if (x->kind == Kind::View || x->kind == Kind::Alloc) return;
      if (auto *st = as<Store>(x)) {
        for (const Expr *i : st->target->index) read(i);
        return read(st->value);
      }
      each_expr_of(x, read);
    });
    for (Sym w : written(m_, roots_, b_.one(s)))
      if (common_.count(w)) out[w].write = true;
    return out;
  }
  static bool meet(const Pending &before, const Pending &now) {
    for (auto &[name, t] : now)
      if (auto it = before.find(name);
          it != before.end() && ((t.write && (it->second.read || it->second.write)) || it->second.write))
        return true;
    return false;
  }
  static void add(Pending &to, const Pending &now) {
    for (auto &[name, t] : now) to[name].read |= t.read, to[name].write |= t.write;
  }
  // The same for all threads of the block: no thread, nothing that a thread has for itself.
  bool uniform(const Expr *e) const {
    bool same = true;
    each_expr(e, [&](const Expr *x) {
      auto *n = as<Name>(x);
      auto *l = as<Load>(x);
      same &= !n || !varies_.count(n->name);
      if (l && !l->global) {
        auto it = types_.find(roots_.of(l->buffer));
        same &= it == types_.end() || !in_scope(b_, it->second, "local");
      }
      return same;
    });
    return same;
  }
  // There are accesses inside that a barrier must stand between.
  bool must_open(const Stmt *s) {
    Pending in = touches(s);
    bool both = false;
    for (auto &[name, t] : in) both |= t.read && t.write;
    if (!both) return false;
    bool own = waits_;
    waits_ = false;
    Pending none;
    each_body(s, [&](Stmts l) { walk(l, none, false); });
    if (s->kind == Kind::For || s->kind == Kind::While) each_body(s, [&](Stmts l) { walk(l, none, false); });
    bool found = waits_;
    waits_ = own;
    return found;
  }

  Stmts walk(Stmts in, Pending &pending, bool emit) {
    std::vector<const Stmt *> out;
    for (const Stmt *s : in) {
      if (auto *l = as<Let>(s); l && !uniform(l->value))
        for (const Def &d : l->defs) varies_.insert(d.name);
      Pending now = touches(s);
      auto *f = as<For>(s);
      auto *i = as<If>(s);
      auto *w = as<While>(s);
      bool opens = (f || i || w) && !now.empty() && must_open(s);
      if (opens && ((f && !uniform(f->iter.extent)) || (i && !uniform(i->cond)) || (w && !uniform(w->cond)))) {
        if (emit)
          diag_.error(s->at == kNowhere ? f_.at : s->at,
                      "@{}: threads of a block would wait for each other where not all of them come by",
                      b_.text(f_.name));
        failed_ |= emit;
        opens = false;
      }
      if (!opens) {
        if (meet(pending, now)) {
          waits_ = true, pending.clear();
          if (emit) out.push_back(barrier());
        }
        add(pending, now);
        out.push_back(s);
        continue;
      }
      if (i) {
        Pending other = pending;
        size_t k = 0;
        if (touches_cond(i->cond)) {  // read in front of what the branches do
          Pending cond = reads(i->cond);
          if (meet(pending, cond)) {
            waits_ = true, pending.clear(), other.clear();
            if (emit) out.push_back(barrier());
          }
          add(pending, cond), add(other, cond);
        }
        out.push_back(with_bodies(b_, s, [&](Stmts l) { return walk(l, k++ ? other : pending, emit); }));
        add(pending, other);
        continue;
      }
      // A turn follows what was before, or another turn.
      Pending turn = pending;
      if (w) add(turn, reads(w->cond));
      Stmts body = f ? f->body : w->body;
      walk(body, turn, false);
      add(turn, pending);
      if (w) add(turn, reads(w->cond));
      Pending end = turn;
      Stmts done = walk(body, end, emit);
      out.push_back(with_bodies(b_, s, [&](Stmts) { return done; }));
      add(end, pending);
      pending = std::move(end);
    }
    return b_.list(out);
  }
  bool touches_cond(const Expr *e) const { return !reads(e).empty(); }
  Pending reads(const Expr *e) const {
    Pending out;
    each_expr(e, [&](const Expr *x) {
      auto *l = as<Load>(x);
      if (l && !l->global && common_.count(roots_.of(l->buffer))) out[roots_.of(l->buffer)].read = true;
      return true;
    });
    return out;
  }
  const Stmt *barrier() { return b_.make(CallStmt{{}, b_.call("barrier", {b_.string("block")}), {}, {}, {}}); }

  Build &b_;
  const Module &m_;
  const Func &f_;
  Nest &nest_;
  Diag &diag_;
  Roots roots_;
  Bounds known_;
  std::unordered_map<Sym, const Type *> types_;
  NameSet common_, varies_;
  bool waits_ = false, failed_ = false;
};

}  // namespace

bool with_barriers(Build &b, const Module &m, const Func *f, Nest &nest, Diag &diag) {
  return Barriers(b, m, f, nest, diag).run();
}

}  // namespace mlc
