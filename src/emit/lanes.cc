// Which bodies can be printed as vector code, and how wide their values are.
#include "emit/shaper.h"
#include "ir/walk.h"

namespace mlc {
namespace {

// y[i] = y[i] op e, where e does not read y: turns may meet in one element.
bool accumulates(const Store &s) {
  const Expr *first = nullptr, *term = nullptr;
  if (auto *x = as<Binary>(s.value); x && (x->op == Op::Add || x->op == Op::Mul)) first = x->a, term = x->b;
  if (auto *c = as<Call>(s.value); c && !c->global && c->args.size() == 2) first = c->args[0], term = c->args[1];
  bool reads = false;
  if (term) each_expr(term, [&](const Expr *e) {
    auto *l = as<Load>(e);
    reads |= l && !l->global && l->buffer == s.target->buffer;
    return !reads;
  });
  return first && equal(first, s.target) && !reads;
}

class Refusal {
 public:
  explicit Refusal(Sym v) { varying_.insert(v); }

  std::string body(Stmts stmts) {
    for (const Stmt *s : stmts)
      if (std::string why = stmt(s); !why.empty()) return why;
    return "";
  }

 private:
  bool varies(const Expr *e) const {
    bool any = false;
    each_expr(e, [&](const Expr *x) {
      if (auto *n = as<Name>(x)) any |= varying_.count(n->name) > 0;
      if (auto *l = as<Load>(x)) any |= !l->global && varying_.count(l->buffer);
      return !any;
    });
    return any;
  }
  bool varies(Exprs l) const {
    return std::any_of(l.begin(), l.end(), [&](const Expr *e) { return varies(e); });
  }
  // A buffer of each lane's own, indexed by what differs from lane to lane.
  std::string private_index(const Expr *e) const {
    std::string why;
    each_expr(e, [&](const Expr *x) {
      auto *l = as<Load>(x);
      if (l && !l->global && varying_.count(l->buffer) && varies(l->index))
        why = "a buffer of each turn is indexed by what differs from turn to turn";
      return why.empty();
    });
    return why;
  }

  std::string stmt(const Stmt *s) {
    std::string why;
    each_expr_of(s, [&](const Expr *e) {
      if (why.empty()) why = private_index(e);
    });
    if (!why.empty()) return why;
    switch (s->kind) {
      case Kind::Let: {
        auto &l = to<Let>(s);
        if (l.defs.size() != 1 || l.defs[0].type->tensor) return "it defines what is no scalar";
        if (!varies(l.value)) return "";
        if (l.defs[0].type->elem == DType::Index) return "an index is data";
        varying_.insert(l.defs[0].name);
        return "";
      }
      case Kind::Store: {
        auto &st = to<Store>(s);
        if (st.atomic) return "a store is atomic";
        if (varies(st.target->index) || varying_.count(st.target->buffer)) return "";
        return accumulates(st) ? "" : "all turns write the same element";
      }
      case Kind::For: {
        auto &f = to<For>(s);
        if (f.loop == LoopKind::Parallel) return "a parallel loop is inside";
        if (f.loop == LoopKind::Vectorize) return "a vectorized loop is inside";
        if (varies(f.iter.extent)) return "a loop inside has a length that differs from turn to turn";
        return body(f.body);
      }
      case Kind::If: {
        std::string why = body(to<If>(s).body);
        return why.empty() ? body(to<If>(s).other) : why;
      }
      case Kind::Alloc: {
        auto &a = to<Alloc>(s);
        std::vector<int64_t> dims;
        if (a.base || !all_static(a.def.type, &dims)) return "a buffer inside has no fixed size of its own";
        if (info(a.def.type->elem).bits < 8) return "a buffer inside has packed elements";
        varying_.insert(a.def.name);
        return "";
      }
      case Kind::Assume: return varies(to<Assume>(s).cond) ? "each turn has an assumption to check" : "";
      case Kind::While: return "a while is inside";
      case Kind::View: return "a view is inside";
      default: return "a call is inside";
    }
  }

  std::unordered_set<Sym> varying_;
};

// The widest of what a body computes with.
class Widest {
 public:
  Widest(const Env &env, const Library &library) : env_(env), library_(library) {}

  void type(DType t) {
    if (t == DType::Invalid || t == DType::Index || t == DType::Bool) return;
    bytes = std::max(bytes, is_small_float(t) ? 4 : std::max(info(t).bits / 8, 1));
  }
  void body(Stmts stmts) {
    size_t mark = env_.mark();
    for (const Stmt *s : stmts) {
      each_expr_of(s, [&](const Expr *e) { expr(e); });
      if (auto *l = as<Let>(s)) define(l->defs[0]);
      if (auto *a = as<Alloc>(s)) define(a->def);
      if (auto *f = as<For>(s)) env_.define_index(f->iter.name);
      each_body(s, [&](Stmts in) { body(in); });
    }
    env_.pop(mark);
  }
  int bytes = 0;

 private:
  void define(const Def &d) { type(d.type->elem), env_.define(d.name, d.type); }
  void func(const Func *f) {
    if (!f) return;
    for (const Param &p : f->params) type(p.def.type->elem);
    bytes = std::max(bytes, widest_value(Env(env_.b, library_.home(f), f), f->body, library_));
  }
  void expr(const Expr *e) {
    each_expr(e, [&](const Expr *x) {
      if (auto *l = as<Load>(x)) {
        const Const *c = l->global ? env_.m.constant(l->buffer) : nullptr;
        const Type *t = c ? c->type : env_.find(l->buffer);
        if (t) type(t->elem);
      }
      auto *c = as<Call>(x);
      if (!c) return true;
      std::string_view name = env_.b.text(c->callee);
      if (c->global) return func(env_.m.func(c->callee)), true;
      if (is_cast(name)) type(dtype_named(name));
      if (name.starts_with("bits.")) type(dtype_named(name.substr(5)));
      if (const Builtin *f = builtin(name); f && f->library) {
        DType t = type_of(env_, c, DType::Invalid, nullptr);
        func(library_.find(name, t == DType::F64 ? t : DType::F32));
      }
      return true;
    });
  }

  Env env_;
  const Library &library_;
};

}  // namespace

std::string Shaper::refusal(Stmts body, Sym v) { return Refusal(v).body(body); }

int widest_value(const Env &env, Stmts body, const Library &library) {
  Widest w(env, library);
  w.body(body);
  return w.bytes;
}

}  // namespace mlc
