#include "arith/scope.h"

#include "arith/engine.h"

namespace mlc {

bool reads_memory(const Expr *e) {
  bool found = false;
  each_expr(e, [&](const Expr *x) {
    found |= x->kind == Kind::Load || (x->kind == Kind::Call && to<Call>(x).global);
    return !found;
  });
  return found;
}

namespace {

void define(Bounds &known, const Def &d) {
  if (!d.type->tensor && d.type->elem == DType::Index) known.index(d.name);
}

void fact(Bounds &known, const Expr *cond, bool holds) {
  if (!reads_memory(cond)) known.engine().assume(cond, holds);
}

}  // namespace

void enter(Bounds &known, const Func &f) {
  for (Sym d : f.dims) known.dim(d);
  for (const Param &p : f.params) define(known, p.def);
}

void enter(Bounds &known, Iters iters) {
  for (const Iter &i : iters) known.range(i.name, i.extent);
}

void enter(Bounds &known, const Stmt *s, size_t body) {
  switch (s->kind) {
    case Kind::For: return enter(known, {&to<For>(s).iter, 1});
    case Kind::Block: {  // `init` runs at the start of the reduce axes, which is one of their points
      std::vector<std::pair<Sym, const Expr *>> axes;
      for (const Axis &a : to<Block>(s).axes) axes.push_back({a.name, a.domain});
      return known.ranges(axes);
    }
    case Kind::Loop: {
      auto &l = to<Loop>(s);
      auto inf = as<Float>(l.iter.extent);
      if (inf) known.range(l.iter.name, known.engine().b.integer(INT64_MAX - 1));
      else enter(known, {&l.iter, 1});
      for (const Carry &c : l.carry) define(known, c.def);
      return;
    }
    case Kind::If: return fact(known, to<If>(s).cond, body == 0);
    case Kind::IfValue: return fact(known, to<IfValue>(s).cond, body == 0);
    case Kind::While: return fact(known, to<While>(s).cond, true);
    default: return;
  }
}

void after(Bounds &known, const Stmt *s) {
  if (auto a = as<Assume>(s)) return fact(known, a->cond, true);
  if (auto l = as<Let>(s)) {
    bool one = l->defs.size() == 1 && !l->defs[0].type->tensor && l->defs[0].type->elem == DType::Index;
    if (one && !reads_memory(l->value) && known.is_index(l->value)) return known.equal(l->defs[0].name, l->value);
    for (const Def &d : l->defs) define(known, d);
  }
  if (auto v = as<IfValue>(s))
    for (const Def &d : v->defs) define(known, d);
  if (auto l = as<Loop>(s))
    for (const Def &d : l->defs) define(known, d);
}

}  // namespace mlc
