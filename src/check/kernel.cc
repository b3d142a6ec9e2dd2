// Stores, computes, blocks; scalar functions and reducers.
#include "check/checker.h"
#include "text/text.h"

namespace mlc {

void FuncChecker::store(const Store &s) {
  Entry *t = target(s.target);
  bool ok = names(s.value);
  for (const Expr *i : s.target->index) ok &= names(i);
  if (!t || !ok) return;
  TypeError err;
  DType elem = type_of(env_, s.target, DType::Invalid, &err);
  if (elem == DType::Invalid || type_of(env_, s.value, elem, &err) == DType::Invalid)
    return error(err.at, "{}", err.message);
  subscripts(s.target), subscripts(s.value);
  if (!s.atomic) return;
  // atomic c[i] = c[i] op e
  const Expr *first = nullptr;
  if (auto *x = as<Binary>(s.value)) first = x->op >= Op::Add ? x->a : nullptr;
  if (auto *x = as<Call>(s.value); x && !x->global && x->iters.empty() && x->args.size() == 2) first = x->args[0];
  if (!first || !equal(first, s.target))
    error(s.value->at, "an atomic store has the form {} = {} op value", print(b_, s.target), print(b_, s.target));
}

//   compute m[i in n], s[i in n] = @r(x[i, j], 1.0 for j in d)
void FuncChecker::compute(const Compute &s) {
  bool ok = true;
  std::vector<DType> want;
  std::vector<std::vector<const Expr *>> points;
  each_expr(s.value, [&](const Expr *e) {
    auto *l = as<Load>(e);
    if (Entry *read = l && !l->global ? find(l->buffer) : nullptr) unwritten(read, e->at);
    return true;
  });
  for (const Result &r : s.results) {
    Load access = {{{r.at, Kind::Load}}, false, r.name, {}};
    Entry *t = target(&access);
    if (t && t->type->rank() != r.iters.size())
      ok = fail(r.at, "{} has {}, found {}", text(r.name), counted(t->type->rank(), "dimension"),
                r.iters.size() == 1 ? "1 index" : fmt::format("{} indices", r.iters.size()));
    for (size_t i = 0; i < r.iters.size(); ++i) {
      if (!index(r.iters[i].extent)) ok = false;
      else if (t && ok) {
        Match m = same(t->type->dims[i], r.iters[i].extent);
        if (m == Match::No)
          ok = fail(r.iters[i].extent->at, "domain of {}: expected size {}, found {}", text(r.name),
                    print(b_, t->type->dims[i]), print(b_, r.iters[i].extent));
        if (m == Match::Unknown)
          unproved(fmt::format("domain of {}: size {} not proved equal to {}", text(r.name),
                               print(b_, r.iters[i].extent), print(b_, t->type->dims[i])));
      }
    }
    ok = ok && t;
    want.push_back(t ? t->type->elem : DType::Invalid);
  }
  Mark m = open();
  for (const Result &r : s.results) {
    std::vector<const Expr *> point;
    bool first = &r == &s.results[0];
    for (size_t i = 0; i < r.iters.size(); ++i) {
      const Iter &it = r.iters[i];
      point.push_back(b_.name(it.name));
      if (!first) {
        Iters shared = s.results[0].iters;
        if (shared.size() != r.iters.size() || shared[i].name != it.name || !equal(shared[i].extent, it.extent))
          ok = fail(it.at, "{} and {} of one compute have the same domain, found another", text(s.results[0].name),
                    text(r.name));
        continue;
      }
      for (size_t j = 0; j < i; ++j)
        if (r.iters[j].name == it.name) ok = fail(it.at, "{} is defined already", text(it.name));
      hide(it.name);
      Entry *e = define(What::Axis, it.name, b_.index(), it.at);
      e->extent = it.extent;
      bounds_.range(it.name, it.extent);
    }
    points.push_back(std::move(point));
  }
  TypeError err;
  std::vector<std::pair<Entry *, bool>> before;
  for (const Result &r : s.results)
    if (Entry *t = find(r.name)) before.push_back({t->whole(), t->whole()->read});
  if (ok && names(s.value)) {
    if (!types_of(env_, s.value, want, &err)) error(err.at, "{}", err.message);
    else subscripts(s.value);
    // The target is read at the point that is computed, nowhere else: its elements are computed in any order.
    each_expr(s.value, [&](const Expr *e) {
      auto *l = as<Load>(e);
      for (size_t i = 0; l && !l->global && i < s.results.size(); ++i)
        if (l->buffer == s.results[i].name && !equal(l->index, Exprs(points[i])))
          error(e->at, "{} is read at another point than it computes", text(l->buffer));
      return true;
    });
  }
  close(m);
}

// Iterators of an expression may be called like a loop or axis around, which they hide.
void FuncChecker::hide(Sym name) {
  Entry *e = find(name);
  if (!e || (e->what != What::Loop && e->what != What::Axis && e->what != What::Dim)) return;
  log_.push_back({name, e});
  names_[name] = nullptr;
}

void FuncChecker::regions(std::span<const Load *const> l) {
  for (const Load *r : l) buffer_type(r);
}

// Sums of loops and axes times what is fixed, and // and % of such by what is fixed.
bool FuncChecker::affine(const Expr *e) const {
  auto fixed = [&](const Expr *x) {
    bool loads = false;
    each_expr(x, [&](const Expr *y) { return !(loads |= y->kind == Kind::Load); });
    return !loads && names_fixed(x);
  };
  if (fixed(e)) return true;
  switch (e->kind) {
    case Kind::Name: return true;
    case Kind::Unary: return to<Unary>(e).op == Op::Neg && affine(to<Unary>(e).a);
    case Kind::Binary: {
      auto &x = to<Binary>(e);
      switch (x.op) {
        case Op::Add:
        case Op::Sub: return affine(x.a) && affine(x.b);
        case Op::Mul: return (fixed(x.a) && affine(x.b)) || (fixed(x.b) && affine(x.a));
        case Op::FloorDiv:
        case Op::Mod: return fixed(x.b) && affine(x.a);
        default: return false;
      }
    }
    default: return false;
  }
}

void FuncChecker::block(const Block &s) {
  if (auto [it, fresh] = blocks_.try_emplace(s.name, s.at); !fresh) {
    error(s.at, "block {} is defined already", text(s.name));
    diag_.note(it->second, "block {} is defined here", text(s.name));
  }
  if (stage_ == Stage::Compacted && !s.axes.empty()) error(s.at, "a compacted kernel has no block with axes");
  notes(s.notes);
  // Heads belong to the outside.
  std::vector<bool> good;
  bool reduces = false;
  for (const Axis &a : s.axes) {
    bool ok = index(a.domain) & index(a.binding);
    good.push_back(ok);
    if (!ok) continue;
    if (!affine(a.binding)) ok = fail(a.binding->at, "binding of axis {} is not affine in loops", text(a.name));
    good.back() = bound_axis(a, s.guard != nullptr) && ok && reaches(a);
    reduces |= a.kind == AxisKind::Reduce;
    if (a.kind != AxisKind::Reduce || s.inits.empty()) continue;
    if (is_int(a.domain, 0))
      error(a.domain->at, "axis {} has no turns, so `init` never runs: write a block of its own", text(a.name));
    std::unordered_set<Sym> mentioned;
    collect_names(a.binding, mentioned);
    for (Sym n : mentioned) {
      Entry *e = find(n);
      bool parallel = e && e->what == What::Loop && e->loop == LoopKind::Parallel;
      if (!parallel && !(e && e->what == What::Loop && e->loop == LoopKind::Vectorize)) continue;
      error(a.at, "axis {} has no first turn, as loop {} is {}: `init` must be a block of its own", text(a.name),
            text(n), parallel ? "parallel" : "vectorized");
    }
  }
  if (s.guard) scalar(s.guard, DType::Bool);
  if (std::find(good.begin(), good.end(), false) == good.end()) cover(s);

  Mark m = open();
  ++depth_;
  for (size_t i = 0; i < s.axes.size(); ++i) {
    const Axis &a = s.axes[i];
    Entry *e = define(What::Axis, a.name, b_.index(), a.at);
    if (!good[i]) {
      bounds_.index(a.name);
      continue;
    }
    e->extent = a.domain;
    bounds_.range(a.name, a.domain);
  }
  regions(s.reads), regions(s.writes);
  int maybe = maybe_;
  if (s.guard) ++maybe_;
  body(s.inits);
  statements(s.body);
  maybe_ = maybe;
  --depth_;
  close(m);
  if (s.inits.empty()) return;
  // What is initialised is what the body writes.
  auto written = [&](Stmts l) {
    std::unordered_set<Sym> out;
    each_stmt(l, [&](const Stmt *x) {
      if (auto *st = as<Store>(x)) out.insert(st->target->buffer);
      if (auto *c = as<Compute>(x))
        for (const Result &r : c->results) out.insert(r.name);
      if (auto *c = as<CallStmt>(x)) {
        for (Exprs l : {c->dests, c->call->args})  // arguments may be inout
          for (const Expr *d : l)
            if (as<Load>(d)) out.insert(to<Load>(d).buffer);
            else if (as<Name>(d)) out.insert(to<Name>(d).name);
      }
    });
    return out;
  };
  std::unordered_set<Sym> body_writes = written(s.body);
  for (const Stmt *i : s.inits)
    if (auto *st = as<Store>(i); st && !body_writes.count(st->target->buffer) && reduces)
      error(i->at, "`init` writes {}, which the block does not write", text(st->target->buffer));
}

//   scalar @f(x: f32) -> (y: f32) { lets };  reducer @r(m0: f32, m1: f32) -> (m: f32) { init m: f32 = -inf  lets }
// The last definition of a result's name is the result.
void FuncChecker::scalar_function() {
  bool reducer = f_.func == FuncKind::Reducer;
  std::string_view kind = reducer ? "reducer" : "scalar function";
  if (!f_.dims.empty()) error(f_.at, "a {} has no dimensions", kind);
  if (f_.results.empty()) error(f_.at, "a {} has at least one result", kind);
  auto scalars = [&](const Def &d) {
    if (d.type->tensor || d.type->elem == DType::Str)
      error(d.at, "{}: expected a scalar, found {}", text(d.name), print(b_, d.type));
  };
  for (const Param &p : f_.params) {
    scalars(p.def);
    if (p.mode != Mode::In) error(p.def.at, "parameters of a {} are only read", kind);
    define(What::Param, p.def.name, p.def.type, p.def.at);
  }
  if (reducer && f_.params.size() != 2 * f_.results.size())
    error(f_.at, "a reducer of {} has {} parameters, found {}", counted(f_.results.size(), "result"),
          2 * f_.results.size(), f_.params.size());
  std::unordered_map<Sym, const Def *> results;
  for (size_t i = 0; i < f_.results.size(); ++i) {
    const Def &r = f_.results[i];
    scalars(r);
    if (!results.try_emplace(r.name, &r).second) error(r.at, "{} is defined already", text(r.name));
    if (find(r.name)) error(r.at, "{} is defined already", text(r.name));
    for (size_t k = 0; reducer && k < 2; ++k)
      if (size_t p = i + k * f_.results.size(); p < f_.params.size() && f_.params[p].def.type != r.type)
        error(f_.params[p].def.at, "{}: expected {} as result {}, found {}", text(f_.params[p].def.name),
              print(b_, r.type), text(r.name), print(b_, f_.params[p].def.type));
  }
  auto define_all = [&](Stmts l, bool init) {
    std::unordered_set<Sym> done;
    for (const Stmt *s : l) {
      auto *x = as<Let>(s);
      if (!x) {
        error(s->at, "a {} holds only definitions of scalars", kind);
        continue;
      }
      std::vector<DType> want;
      bool ok = !init ? names(x->value) : true;
      for (const Def &d : x->defs) {
        scalars(d);
        want.push_back(d.type->elem);
        auto r = results.find(d.name);
        if (r != results.end() && r->second->type != d.type)
          error(d.at, "result {}: expected {}, found {}", text(d.name), print(b_, r->second->type), print(b_, d.type));
        if (init && r == results.end()) error(d.at, "`init {}` is for no result", text(d.name));
        if (init && !done.insert(d.name).second) error(d.at, "{} is initialised already", text(d.name));
        done.insert(d.name);
      }
      TypeError err;
      if (ok && !types_of(env_, x->value, want, &err)) error(err.at, "{}", err.message);
      for (const Def &d : x->defs) {
        if (init) continue;
        if (Entry *e = find(d.name); e && results.count(d.name) && e->type == d.type) continue;  // defined again
        define(What::Scalar, d.name, d.type, d.at);
      }
    }
    for (const Def &r : f_.results)
      if (!done.count(r.name)) error(r.at, "result {} {}", text(r.name), init ? "has no `init`" : "is never defined");
  };
  if (reducer) define_all(f_.inits, true);
  define_all(f_.body, false);
}

}  // namespace mlc
