// A tensor expression as loops and blocks.
//
//   compute y[i in n] = max(sum(x[i, k] for k in m), 0.0)
// ->
//   alloc y.sum: f32[n]
//   for i in n, k in m { block y.sum { spatial i in n = i, reduce k in m = k, init y.sum[i] = 0.0,
//                                      y.sum[i] = y.sum[i] + x[i, k] } }
//   for i in n { block y { spatial i in n = i, y[i] = max(y.sum[i], 0.0) } }
//
// The target's name is the block's. A reduction that is the whole value needs no buffer of its own; inside a larger
// expression it gets one, with the conditions of the `where`s around it in its term. Where its domain may be empty, the
// initialiser is a block of its own, y.init.
#include "arith/prove.h"
#include "arith/scope.h"
#include "ir/typing.h"
#include "ops/expr.h"
#include "sched/state.h"

namespace mlc {

namespace {

class Expansion {
 public:
  Expansion(State &s, Place *place)
      : s_(s), b_(s.b), place_(place), c_(to<Compute>(place->stmt)), env_(s.b, s.m, s.original()) {
    each_place(s.tree.root(), [&](Place *n) {
      if (auto *a = as<Alloc>(n->stmt)) env_.define(a->def.name, a->def.type);
    });
  }

  std::vector<const Stmt *> run() {
    Iters iters = c_.results[0].iters;
    auto *call = as<Call>(c_.value);
    const Func *r = call && call->global && !call->iters.empty() ? s_.m.func(call->callee) : nullptr;
    if (r) {
      folds(*r, *call, iters);
    } else if (const Call *whole = is_fold(c_.value)) {
      fold(*whole, iters, c_.results[0].name, element(c_.results[0].name), nullptr);
    } else if (const Call *added = accumulates()) {
      fold(*added, iters, c_.results[0].name, element(c_.results[0].name), to<Binary>(c_.value).a);
    } else {
      const Expr *e = without_folds(c_.value, iters, nullptr);
      block(c_.results[0].name, iters, {}, {}, {store(c_.results[0].name, iters, e)});
    }
    return out_;
  }

 private:
  DType element(Sym buffer) { return s_.type_of_buffer(buffer)->elem; }

  const Call *is_fold(const Expr *e) {
    auto *c = as<Call>(e);
    return c && !c->iters.empty() ? c : nullptr;
  }

  // y[i] + sum(..): the block adds to what is there.
  const Call *accumulates() {
    auto *x = as<Binary>(c_.value);
    auto *l = x && x->op == Op::Add ? as<Load>(x->a) : nullptr;
    auto *c = x ? is_fold(x->b) : nullptr;
    return l && !l->global && l->buffer == c_.results[0].name && c && b_.text(c->callee) == "sum" ? c : nullptr;
  }

  const Load *at(Sym buffer, Iters iters) {
    std::vector<const Expr *> index;
    for (const Iter &i : iters)
      index.push_back(b_.name(i.name));
    return b_.load(buffer, b_.list(index), c_.at);
  }
  const Stmt *store(Sym buffer, Iters iters, const Expr *e) {
    return b_.make(Store{{}, false, at(buffer, iters), e, {}});
  }

  // Loops and a block with these axes.
  void block(Sym name, Iters spatial, Iters reduce, std::vector<const Stmt *> inits, std::vector<const Stmt *> body) {
    std::vector<Axis> axes;
    std::vector<Iter> loops;
    std::vector<Sym> taken;
    for (bool second : {false, true})
      for (const Iter &i : second ? reduce : spatial) {
        // A loop that would hide a name of the kernel, or be called like one around, gets another one.
        Sym loop = s_.loop_name(place_, b_.text(i.name), taken);
        taken.push_back(loop);
        axes.push_back({second ? AxisKind::Reduce : AxisKind::Spatial, i.name, kNowhere, i.extent, b_.name(loop)});
        loops.push_back({loop, i.extent, kNowhere});
      }
    Block k{};
    k.name = s_.block_name(b_.text(name)), k.notes.from = c_.from, k.axes = b_.list(axes);
    k.inits = b_.list(inits), k.body = b_.list(body), k.at = c_.at;
    const Stmt *s = b_.make(k);
    for (size_t i = loops.size(); i-- > 0;) {
      For f{{}, LoopKind::Serial, loops[i], {}, {}, b_.stmts({s})};
      f.at = c_.at;
      s = b_.make(f);
    }
    out_.push_back(s);
  }

  bool surely_runs(Iters reduce, Iters spatial) {
    Known known(s_, place_);  // what is assumed in front too
    enter(known.bounds, spatial);
    for (const Iter &i : reduce)
      if (!provably_less_equal(b_, b_.integer(1), i.extent, known)) return false;
    return true;
  }

  const Expr *identity(const Call &c, DType t) { return fold_start(b_, b_.text(c.callee), t).e; }

  // to[iters] = f(term for ..). `onto`: what it adds to, where it has no initialiser.
  void fold(const Call &c, Iters iters, Sym to, DType t, const Expr *onto) {
    std::vector<Iter> all(iters.begin(), iters.end());
    all.insert(all.end(), c.iters.begin(), c.iters.end());
    const Expr *term = without_folds(c.args[0], b_.list(all), nullptr);
    std::vector<const Stmt *> init;
    if (!onto) init = {store(to, iters, identity(c, t))};
    if (!onto && !surely_runs(c.iters, iters)) {
      block(b_.sym(s_.text(to) + ".init"), iters, {}, {}, init);
      init.clear();
    }
    block(to, iters, c.iters, init, {store(to, iters, fold_step(b_, b_.text(c.callee), at(to, iters), term))});
  }

  // m[i], s[i] = @r(a, b for ..)
  void folds(const Func &r, const Call &c, Iters iters) {
    std::vector<Iter> all(iters.begin(), iters.end());
    all.insert(all.end(), c.iters.begin(), c.iters.end());
    std::vector<const Expr *> args;
    std::vector<const Stmt *> init, body;
    for (const Result &x : c_.results)
      args.push_back(at(x.name, iters));
    for (const Expr *e : c.args)
      args.push_back(without_folds(e, b_.list(all), nullptr));
    std::vector<Def> defs;
    Substitution local;
    std::unordered_set<Sym> names;
    for (const Iter &i : all)
      names.insert(i.name);
    auto fresh = [&](Sym want) {
      Sym s = s_.buffer_name(b_.text(want));
      while (names.count(s))
        s = s_.buffer_name(b_.text(want));
      return s;
    };
    for (size_t k = 0; k < r.results.size(); k++) {
      const Def &d = r.results[k];
      Sym s = fresh(d.name);
      defs.push_back({s, kNowhere, b_.scalar(d.type->elem)});
    }
    body.push_back(b_.make(Let{{}, b_.list(defs), b_.call(c.callee, b_.list(args), c.at, true), {}, {}}));
    for (size_t k = 0; k < c_.results.size(); k++) {
      init.push_back(nullptr);
      body.push_back(store(c_.results[k].name, iters, b_.name(defs[k].name)));
      for (const Stmt *s : r.inits)
        if (auto *l = as<Let>(s); l && l->defs.size() == 1 && l->defs[0].name == r.results[k].name)
          init[k] = store(c_.results[k].name, iters, l->value);
    }
    if (!surely_runs(c.iters, iters)) {
      block(b_.sym(s_.text(c_.results[0].name) + ".init"), iters, {}, {}, init);
      init.clear();
    }
    block(c_.results[0].name, iters, c.iters, init, body);
  }

  // e with its reductions computed in front; `cond` holds where e is evaluated.
  const Expr *without_folds(const Expr *e, Iters iters, const Expr *cond) {
    if (auto *c = is_fold(e)) {
      if (c->global)
        refuse(c->at,
               "a reducer inside a larger expression cannot be made a block yet; compute it on a line of its own");
      size_t mark = env_.mark();
      for (const Iter &i : iters)
        env_.define_index(i.name);
      DType t = type_of(env_, c, DType::Invalid, nullptr);
      env_.pop(mark);
      if (t == DType::Invalid) t = element(c_.results[0].name);
      Call inner = *c;
      if (cond) {
        const Expr *term = b_.call("where", {cond, c->args[0], identity(*c, t)});
        inner.args = b_.one(term);
      }
      std::vector<const Expr *> dims;
      for (const Iter &i : iters)
        dims.push_back(i.extent);
      Sym buffer = s_.buffer_name(s_.text(c_.results[0].name) + "." + s_.text(c->callee));
      const Type *type = b_.tensor(t, b_.list(dims));
      out_.insert(out_.begin(), b_.make(Alloc{{}, {buffer, kNowhere, type}, {}, nullptr}));
      env_.define(buffer, type);
      fold(inner, iters, buffer, t, nullptr);
      return at(buffer, iters);
    }
    if (auto *c = as<Call>(e); c && !c->global && b_.text(c->callee) == "where") {
      const Expr *chosen = without_folds(c->args[0], iters, cond);
      const Expr *a = without_folds(c->args[1], iters, both(b_, cond, chosen));
      const Expr *z = without_folds(c->args[2], iters, both(b_, cond, b_.unary(Op::Not, chosen)));
      return b_.call(c->callee, b_.list({chosen, a, z}), c->at);
    }
    if (auto *c = as<Call>(e)) {
      Exprs args = edit_all(b_, c->args, [&](const Expr *&a) { a = without_folds(a, iters, cond); });
      return args.data() == c->args.data() ? e : b_.call(c->callee, args, c->at, c->global);
    }
    if (auto *x = as<Binary>(e)) {
      const Expr *a = without_folds(x->a, iters, cond), *z = without_folds(x->b, iters, cond);
      return a == x->a && z == x->b ? e : b_.binary(x->op, a, z, x->at);
    }
    if (auto *u = as<Unary>(e)) {
      const Expr *a = without_folds(u->a, iters, cond);
      return a == u->a ? e : b_.unary(u->op, a, u->at);
    }
    if (auto *l = as<Load>(e)) {
      Exprs index = edit_all(b_, l->index, [&](const Expr *&a) { a = without_folds(a, iters, cond); });
      return index.data() == l->index.data() ? e : b_.load(l->buffer, index, l->at, l->global);
    }
    return e;
  }

  State &s_;
  Build &b_;
  Place *place_;
  const Compute &c_;
  Env env_;
  std::vector<const Stmt *> out_;
};

}  // namespace

std::vector<const Stmt *> expand_compute(State &s, Place *compute) { return Expansion(s, compute).run(); }

}  // namespace mlc
