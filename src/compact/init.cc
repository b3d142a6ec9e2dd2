// Where a reduction starts: its initialiser in front of the loops that run over the reduce axes alone.
//
//   for k in 20                                            for j in 8 { y[j] = 0.0 }
//   for j in 8 {                                           for k in 20
//     block y { .. init y[j] = 0.0 .. }            ->      for j in 8 { block y { .. } }
//   }
//
// That holds if no other statement of these loops touches what it writes or reads, and if the first turn of the loops is
// the only one at which the axes are 0. Where it does not, the block keeps it.
#include "arith/prove.h"
#include "arith/scope.h"
#include "arith/simplify.h"
#include "compact/parts.h"
#include "ir/edit.h"
#include "text/text.h"

namespace mlc {

namespace {

class Inits {
 public:
  Inits(Build &b, const Func &f) : b_(b), known_(b) {
    enter(known_, f);
    each_stmt(f.body, [&](const Stmt *s) {  // another name for a buffer
      if (auto *a = as<Alloc>(s); a && a->base) aliased_.insert(a->base);
      if (auto *v = as<View>(s); v && !v->source->global) aliased_.insert(v->source->buffer);
    });
  }

  Stmts list(Stmts in) {
    Out out;
    size_t mark = known_.mark();
    for (const Stmt *s : in) {
      stmt(s, out);
      after(known_, s);
    }
    known_.pop(mark);
    return b_.list(out);
  }

 private:
  void stmt(const Stmt *s, Out &out) {
    if (auto *f = as<For>(s)) {
      size_t mark = known_.mark();
      enter(known_, f, 0);
      path_.push_back({f, {}});
      Stmts body = list(f->body);
      Out &front = path_.back().front;
      out.insert(out.end(), front.begin(), front.end());
      path_.pop_back();
      known_.pop(mark);
      out.push_back(edited(b_, *f, [&](For &n) { n.body = body; }));
      return;
    }
    auto *k = as<Block>(s);
    size_t barrier = barrier_, which = 0, mark = known_.mark();
    bool next = false;  // the initialiser stands in front of loops that hold nothing else
    const Block *n = k && !k->inits.empty() && hoist(*k, &next) ? without_inits(*k, next) : k;
    if (!n || !n->inits.empty() || n->guard) barrier_ = path_.size();
    if (k && k->guard) known_.assume(k->guard);
    const Stmt *done = with_bodies(b_, n ? n : s, [&](Stmts inner) {
      size_t m = known_.mark();
      if (!k) enter(known_, s, which);
      which++;
      Stmts l = list(inner);
      known_.pop(m);
      return l;
    });
    known_.pop(mark);
    barrier_ = barrier;
    out.push_back(done);
  }

  const Block *without_inits(const Block &k, bool nameless) {
    return edited(b_, k, [&](Block &n) {
      n.inits = {}, n.comment = {};
      if (nameless) n.name = {};
    });
  }

  struct Role {
    bool spatial = false, reduces = false;
  };
  static Role role(const Block &k, const For &f) {
    Role r;
    for (const Axis &a : k.axes)
      if (mentions(a.binding, f.iter.name)) (a.kind == AxisKind::Spatial ? r.spatial : r.reduces) = true;
    r.spatial |= !r.reduces && is_int(f.iter.extent, 1);
    return r;
  }

  // The initialiser goes in front of a loop around, if there is one where it may.
  bool hoist(const Block &k, bool *next) {
    std::unordered_set<Sym> written, read;
    each_stmt(k.inits, [&](const Stmt *s) {
      if (auto *st = as<Store>(s)) written.insert(st->target->buffer);
      else if (s->kind != Kind::Let && s->kind != Kind::For && s->kind != Kind::If) written.insert(Sym{});
    });
    each_expr_in(k.inits, [&](const Expr *e) {
      auto *l = as<Load>(e);
      if (l && !l->global && !written.count(l->buffer)) read.insert(l->buffer);
      return true;
    });
    if (written.count(Sym{})) return false;
    for (auto *set : {&written, &read})
      for (Sym s : *set)
        if (aliased_.count(s)) return false;

    size_t best = path_.size();
    for (size_t p = path_.size(); p-- > barrier_;) {
      const For &f = *path_[p].loop;
      Role r = role(k, f);
      if (r.spatial == r.reduces) break;  // both, or a loop that repeats the round
      if (r.reduces && (f.loop == LoopKind::Parallel || f.loop == LoopKind::Vectorize)) break;
      if (r.reduces && alone(f, k, written, read) && single_start(k, p)) best = p;
    }
    if (best == path_.size()) return false;

    // The spatial loops inside, with the reduce loops at 0.
    Substitution zero;
    for (size_t p = best; p < path_.size(); p++)
      if (role(k, *path_[p].loop).reduces) zero[path_[p].loop->iter.name] = b_.integer(0);
    const Expr *cond = nullptr;
    auto require = [&](const Expr *e) {
      const Expr *at_zero = substitute(b_, e, zero), *s = shorten(b_, at_zero, known_);
      if (auto *known = as<Bool>(s); !known || !known->value) cond = both(b_, cond, at_zero == e ? e : s);
    };
    if (k.guard) {
      std::vector<const Expr *> parts;
      conjuncts(k.guard, parts);
      for (const Expr *e : parts) require(e);
    }
    for (const Axis &a : k.axes)
      if (a.kind != AxisKind::Spatial) require(b_.binary(Op::Eq, a.binding, b_.integer(0)));
    Block init = copy_of(k);
    init.axes = {}, init.body = substitute(b_, k.inits, zero), init.inits = {}, init.guard = cond;
    const Stmt *nest = b_.make(init);
    for (size_t p = path_.size(); p-- > best;) {
      const For &f = *path_[p].loop;
      if (zero.count(f.iter.name)) continue;
      Notes notes{f.notes.attrs, {}};
      const Stmt *one = nest;
      nest = b_.make(For{{}, f.loop, f.iter, f.tag, notes, b_.one(one)});
    }
    path_[best].front.push_back(nest);
    const Stmt *s = path_[best].loop;
    while (s->kind == Kind::For && to<For>(s).body.size() == 1) s = to<For>(s).body[0];
    *next = s == &k;
    return true;
  }

  // No other statement of the loop touches what the initialiser is about, nor has it another name or place.
  bool alone(const For &f, const Block &k, const std::unordered_set<Sym> &written, const std::unordered_set<Sym> &read) {
    bool good = true;
    std::function<void(Stmts)> look = [&](Stmts body) {
      for (const Stmt *s : body) {
        if (s == &k || !good) continue;
        bool holds = false;  // the block is inside
        each_stmt(s, [&](const Stmt *t) { holds |= t == &k; });
        if (!holds) {
          for (Sym w : written) good &= !touches(s, w) && !defines(s, w);
          for (Sym r : read) good &= !writes(s, r) && !defines(s, r);
          continue;
        }
        good &= s->kind == Kind::For || s->kind == Kind::Block;
        each_body(s, look);
      }
    };
    look(f.body);
    return good;
  }
  static bool defines(const Stmt *s, Sym name) {
    auto *a = as<Alloc>(s);
    auto *l = as<Let>(s);
    bool found = a && a->def.name == name;
    if (l)
      for (const Def &d : l->defs) found |= d.name == name;
    return found;
  }
  static bool writes(const Stmt *s, Sym buffer) {  // a statement that only loads it does not
    bool found = false;
    each_stmt(s, [&](const Stmt *t) {
      if (auto *st = as<Store>(t)) found |= st->target->buffer == buffer;
      else if (t->kind == Kind::Compute || t->kind == Kind::CallStmt) found |= touches(t, buffer);
    });
    return found;
  }

  // The extents of the spatial loops inside stand still, and the axes are 0 in the first turn only, if at all.
  bool single_start(const Block &k, size_t from) {
    std::vector<Sym> reduces;
    for (size_t p = from; p < path_.size(); p++) {
      const For &f = *path_[p].loop;
      if (role(k, f).reduces) reduces.push_back(f.iter.name);
      for (Sym s : reduces)
        if (mentions(f.iter.extent, s) && !role(k, f).reduces) return false;
    }
    std::vector<const Expr *> at, zero;
    for (const Axis &a : k.axes)
      if (a.kind != AxisKind::Spatial) at.push_back(a.binding), zero.push_back(b_.integer(0));
    size_t mark = known_.mark();
    for (const Expr *e : at) known_.assume(b_.binary(Op::Eq, e, b_.integer(0)));
    bool only = true;
    for (Sym s : reduces) {
      if (provably_less_equal(b_, b_.name(s), b_.integer(0), known_)) continue;
      size_t later = known_.mark();  // (f // 9, f // 3 % 3, f % 3) is (0, 0, 0) for no other f
      known_.assume(b_.binary(Op::Ge, b_.name(s), b_.integer(1)));
      only = only && provably_different(b_, b_.list(at), b_.list(zero), known_);
      known_.pop(later);
    }
    known_.pop(mark);
    return only;
  }

  struct Place {
    const For *loop;
    Out front;  // what goes in front of it
  };
  Build &b_;
  Bounds known_;
  std::unordered_set<Sym> aliased_;
  std::vector<Place> path_;
  size_t barrier_ = 0;  // loops inside the innermost statement that is not one
};

}  // namespace

Stmts with_inits_placed(Build &b, const Func &f, Stmts body) { return Inits(b, f).list(body); }

}  // namespace mlc
