#include "equiv/field.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "ir/edit.h"
#include "ir/reach.h"
#include "ir/typing.h"
#include "text/text.h"

namespace mlc {

namespace {

constexpr uint64_t p = kFieldPrime, kHalf = (p - 1) / 2;  // kHalf is the largest in the order, kHalf + 1 the least

uint64_t power(uint64_t x, uint64_t n) {
  uint64_t r = 1;
  for (; n; n >>= 1, x = x * x % p)
    if (n & 1) r = r * x % p;
  return r;
}

// Text of what floats need beyond + - * and %. key: the order -kHalf .. kHalf as 0 .. p - 1.
std::string library() {
  std::string s = R"(mlc 1
scalar @field.key(a: u64) -> (k: u64) {
  k: u64 = (a + 1073741823) % 2147483647
}
scalar @field.signed(a: u64) -> (v: i64) {
  v: i64 = where(a <= 1073741823, i64(a), i64(a) - 2147483647)
}
scalar @field.max(a: u64, b: u64) -> (y: u64) {
  y: u64 = where(@field.key(a) < @field.key(b), b, a)
}
scalar @field.min(a: u64, b: u64) -> (y: u64) {
  y: u64 = where(@field.key(b) < @field.key(a), b, a)
}
reducer @field.fold_max(a: u64, b: u64) -> (y: u64) {
  init y: u64 = 1073741824
  y: u64 = where((a + 1073741823) % 2147483647 < (b + 1073741823) % 2147483647, b, a)
}
reducer @field.fold_min(a: u64, b: u64) -> (y: u64) {
  init y: u64 = 1073741823
  y: u64 = where((b + 1073741823) % 2147483647 < (a + 1073741823) % 2147483647, b, a)
}
reducer @field.fold_prod(a: u64, b: u64) -> (y: u64) {
  init y: u64 = 1
  y: u64 = a * b % 2147483647
}
scalar @field.any(f: u64, a: u64, b: u64) -> (y: u64) {
  g: u64 = (a + f * 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9 + b
  h: u64 = bitxor(g, shr(g, 29)) * 0x94d049bb133111eb
  y: u64 = bitxor(h, shr(h, 32)) % 2147483647
}
scalar @field.inv(a: u64) -> (y: u64) {
)";
  // a^(p - 2) by squares: p - 2 has all bits but that of 2.
  std::string square = "a", result = "a";
  for (int bit = 1; bit < 31; bit++) {
    s += fmt::format("  s{}: u64 = {} * {} % 2147483647\n", bit, square, square);
    square = fmt::format("s{}", bit);
    if (bit == 1) continue;
    s += fmt::format("  r{}: u64 = {} * {} % 2147483647\n", bit, result, square);
    result = fmt::format("r{}", bit);
  }
  return s + fmt::format("  y: u64 = {}\n}}\n", result);
}

struct NoForm {
  std::string why;
};

class Field {
 public:
  Field(Build &b, const Module &m, const RunOptions &options) : b_(b), m_(m), options_(options) {}

  FieldProgram program(const Func &f) {
    FieldProgram out;
    try {
      Source text = Source::from_string("field", library());
      Diag diag("field", &text);
      if (!read(b_, text, out.m, diag)) throw NoForm{"no library"};
      Items live = reachable(m_, {&f});
      for (const Item *i : m_.items) {
        if (!live.count(i)) continue;
        const Item *made = nullptr;
        if (auto *c = as<Const>(i)) made = constant(*c);
        if (auto *g = as<Func>(i)) made = function(*g);
        if (made) out.m.add(made);
        if (i == &f) out.entry = as<Func>(made);
      }
      out.polynomial = polynomial_, out.rounded = rounded_, out.tensors = tensors_;
      out.literals = literals_;
    } catch (const NoForm &e) {
      out.entry = nullptr, out.why = e.why;
    }
    return out;
  }

 private:
  // ---- numbers

  const Expr *number(uint64_t v) { return b_.integer(int64_t(v)); }
  const Expr *mod(const Expr *e) { return b_.binary(Op::Mod, e, number(p)); }
  const Expr *function(std::string_view name, std::initializer_list<const Expr *> args) {
    return b_.call(b_.sym(fmt::format("field.{}", name)), b_.list(args), kNowhere, true);
  }
  const Expr *arbitrary(std::string_view name, const Expr *x, const Expr *y = nullptr) {
    polynomial_ = false;
    uint64_t h = 1469598103934665603u;  // FNV-1a
    for (char c : name) h = (h ^ uint8_t(c)) * 1099511628211u;
    return function("any", {number(h % p), x, y ? y : number(0)});
  }
  const Expr *literal(const Float &x, DType t) {
    double v = x.nan_bits ? NAN : to_double(t, scalar_of(t, x.value));
    if (std::isnan(v)) return polynomial_ = false, number(271828182);
    // With few digits, sums and products of literals are exact, whoever computed them.
    rounded_ |= v * 1024 != std::rint(v * 1024) || std::fabs(v) > 1024;
    literals_.insert(field_of(v));
    return number(field_of(v));
  }

  // ---- types

  const Type *type(const Type *t) {
    if (!t) return t;
    for (const Expr *d : t->dims)
      each_expr(d, [](const Expr *e) {
        if (as<Float>(e)) throw NoForm{"a size is computed with floats"};
        return true;
      });
    return is_float(t->elem) ? b_.with_elem(t, DType::U64) : t;
  }
  DType type_at(const Expr *e, DType want) { return type_of(*env_, e, want, nullptr); }
  static bool has_float(const Expr *e) {
    bool found = false;
    each_expr(e, [&](const Expr *x) { return !(found |= x->kind == Kind::Float); });
    return found;
  }

  // ---- expressions. want: the type of the place, Invalid if any.

  Exprs all(Exprs l, DType want) {
    std::vector<const Expr *> out;
    for (const Expr *e : l) out.push_back(expr(e, want));
    return b_.list(out);
  }
  const Load *load(const Load &l) { return b_.load(l.buffer, all(l.index, DType::Index), l.at, l.global); }
  DType common(const Expr *a, const Expr *b, DType want) {
    DType t = type_at(a, DType::Invalid);
    if (t == DType::Invalid) t = type_at(b, DType::Invalid);
    return t == DType::Invalid ? want : t;
  }

  const Expr *expr(const Expr *e, DType want) {
    switch (e->kind) {
      case Kind::Float: return literal(to<Float>(e), want == DType::Invalid ? DType::F64 : want);
      case Kind::Load: return load(to<Load>(e));
      case Kind::Range: return b_.range(expr(to<Range>(e).lo, DType::Index), expr(to<Range>(e).extent, DType::Index));
      case Kind::Unary: {
        auto &u = to<Unary>(e);
        if (u.op == Op::Not) return b_.unary(u.op, expr(u.a, DType::Bool));
        const Expr *a = expr(u.a, want);
        return is_float(type_at(e, want)) ? mod(b_.binary(Op::Sub, number(p), a)) : b_.unary(u.op, a);
      }
      case Kind::Binary: return binary(to<Binary>(e), want);
      case Kind::Call: return call(to<Call>(e), want);
      default: return e;
    }
  }

  const Expr *binary(const Binary &x, DType want) {
    DType t = x.op == Op::And || x.op == Op::Or ? DType::Bool
                                                : common(x.a, x.b, x.op >= Op::Add ? want : DType::Invalid);
    const Expr *a = expr(x.a, t), *b = expr(x.b, t);
    if (!is_float(t)) return b_.binary(x.op, a, b, x.at);
    switch (x.op) {
      case Op::Add: return mod(b_.binary(Op::Add, a, b));
      case Op::Sub: return mod(b_.binary(Op::Add, a, b_.binary(Op::Sub, number(p), b)));
      case Op::Mul: return mod(b_.binary(Op::Mul, a, b));
      case Op::Div: {
        polynomial_ = false;
        int64_t v;
        bool known = int_value(b, &v);
        return mod(b_.binary(Op::Mul, a, known ? number(power(uint64_t(v), p - 2)) : function("inv", {b})));
      }
      case Op::FloorDiv: return arbitrary("//", a, b);
      case Op::Mod: return arbitrary("%", a, b);
      case Op::Eq:
      case Op::Ne: polynomial_ = false; return b_.binary(x.op, a, b);
      default: polynomial_ = false; return b_.binary(x.op, function("key", {a}), function("key", {b}));
    }
  }

  const Expr *call(const Call &c, DType want) {
    std::string_view name = b_.text(c.callee);
    if (!c.iters.empty()) return reduction(c, name, want);
    if (c.global) {
      const Func *f = m_.func(c.callee);
      if (!f || f->params.size() != c.args.size()) throw NoForm{fmt::format("no function @{}", name)};
      std::vector<const Expr *> args;
      for (size_t i = 0; i < c.args.size(); i++) args.push_back(expr(c.args[i], f->params[i].def.type->elem));
      return b_.call(c.callee, b_.list(args), c.at, true);
    }
    if (DType to = dtype_named(name); to != DType::Invalid && c.args.size() == 1) return cast(c, to);
    if (name == "convert" && c.args.size() == 3) {
      auto *s = as<Str>(c.args[1]);
      return cast(c, s ? dtype_named(s->value) : DType::Invalid);
    }
    const Builtin *f = builtin(name);
    if (!f) throw NoForm{fmt::format("operator {}", name)};
    if (f->signature == Signature::Where) {
      DType t = common(c.args[1], c.args[2], want);
      return b_.call(c.callee, b_.list({expr(c.args[0], DType::Bool), expr(c.args[1], t), expr(c.args[2], t)}), c.at);
    }
    DType t = DType::Invalid;
    for (const Expr *a : c.args)
      if (t == DType::Invalid) t = type_at(a, DType::Invalid);
    if (t == DType::Invalid) t = want;
    if (name == "fma") return expr(b_.binary(Op::Add, b_.binary(Op::Mul, c.args[0], c.args[1]), c.args[2]), t);
    Exprs args = all(c.args, t);
    DType of_bits = f->signature == Signature::Bits ? dtype_named(name.substr(5)) : DType::Invalid;
    if (is_float(of_bits)) return arbitrary(name, embedded(args[0], t));
    if (!is_float(t)) return b_.call(c.callee, args, c.at);
    polynomial_ = false;
    if (of_bits != DType::Invalid) return b_.call(dtype_name(of_bits), {arbitrary(name, args[0])});
    if (f->signature == Signature::Test) return b_.boolean(false);
    if (name == "max" || name == "min") return function(name, {args[0], args[1]});
    if (name == "clamp") return function("min", {function("max", {args[0], args[1]}), args[2]});
    if (name == "abs") return function("max", {args[0], mod(b_.binary(Op::Sub, number(p), args[0]))});
    return arbitrary(name, args[0], args.size() > 1 ? args[1] : nullptr);
  }

  // An integer or bool as a number of the field.
  const Expr *embedded(const Expr *e, DType from) {
    if (is_float(from)) return e;
    if (from == DType::U64) return mod(e);
    if (from == DType::Bool) return b_.call("u64", {e});
    const Expr *wide = from == DType::I64 ? e : b_.call("i64", {e});
    return b_.call("u64", {mod(wide)});
  }

  const Expr *cast(const Call &c, DType to) {
    const Expr *arg = c.args[0];
    DType from = type_at(arg, DType::Invalid);
    if (from == DType::Invalid) {  // literals alone
      bool real = has_float(arg);
      if (real && !is_float(to)) return &c;
      from = real ? to : DType::Index;
      if (!real && !is_float(to)) return b_.call(c.callee, b_.list({expr(arg, to)}), c.at);
    }
    const Expr *e = expr(arg, from);
    if (is_float(to)) {
      if (from == DType::Index && arg->kind == Kind::Int) e = b_.call("index", {e});
      return embedded(e, from);
    }
    if (!is_float(from)) return b_.call(c.callee, b_.list({e}), c.at);
    polynomial_ = false;
    if (to == DType::Bool) return b_.binary(Op::Ne, e, number(0));
    if (to == DType::Index) throw NoForm{"an index is computed with floats"};
    return b_.call(dtype_name(to), {function("signed", {e})});
  }

  const Expr *reduction(const Call &c, std::string_view name, DType want) {
    std::vector<Iter> iters(c.iters.begin(), c.iters.end());
    size_t mark = env_->mark();
    for (Iter &i : iters) {
      i.extent = expr(i.extent, DType::Index);
      env_->define_index(i.name);
    }
    const Expr *out;
    if (c.global) {
      const Func *f = m_.func(c.callee);
      if (!f || f->results.size() != c.args.size()) throw NoForm{fmt::format("no reducer @{}", name)};
      std::vector<const Expr *> args;
      for (size_t i = 0; i < c.args.size(); i++) args.push_back(expr(c.args[i], f->results[i].type->elem));
      out = b_.call(c.callee, b_.list(args), c.at, true, b_.list(iters));
    } else {
      DType t = type_at(c.args[0], DType::Invalid);
      if (t == DType::Invalid) t = want;
      Exprs args = b_.list({expr(c.args[0], t)});
      if (!is_float(t)) out = b_.call(c.callee, args, c.at, false, b_.list(iters));
      else if (name == "sum") out = mod(b_.call(c.callee, args, c.at, false, b_.list(iters)));
      else {
        polynomial_ &= name == "prod";
        out = b_.call(b_.sym(fmt::format("field.fold_{}", name)), args, c.at, true, b_.list(iters));
      }
    }
    env_->pop(mark);
    return out;
  }

  // ---- statements

  Stmts body(Stmts l) {
    size_t mark = env_->mark();
    Stmts out = lines(l);
    env_->pop(mark);
    return out;
  }
  Stmts lines(Stmts l) {
    std::vector<const Stmt *> out;
    for (const Stmt *s : l) out.push_back(stmt(s));
    return b_.list(out);
  }

  Def def(const Def &d) {
    env_->define(d.name, d.type);
    Def n = d;
    n.type = type(d.type);
    return n;
  }
  Defs defs(Defs l) {
    std::vector<Def> out;
    for (const Def &d : l) out.push_back(def(d));
    return b_.list(out);
  }
  DType elem(const Expr *e) const {
    auto *n = as<Name>(e);
    auto *l = as<Load>(e);
    const Type *t = n ? env_->find(n->name) : l ? env_->find(l->buffer) : nullptr;
    return t ? t->elem : DType::Invalid;
  }

  // Of a definition of several results, or of one.
  const Expr *value(const Expr *e, Defs defs) {
    auto *c = as<Call>(e);
    if (c && !c->global && c->iters.empty()) {
      std::string_view name = b_.text(c->callee);
      if (name == "Item" || name == "Match" || name == "Copy") {
        if (name == "Item" && is_float(elem(c->args[0]))) throw NoForm{"Item of a float"};
        return e;
      }
    }
    if (c && c->global) return c->iters.empty() ? arguments(*c) : reduction(*c, "", DType::Invalid);
    return expr(e, defs[0].type->elem);
  }
  const Call *arguments(const Call &c) {
    const Func *f = m_.func(c.callee);
    if (!f) throw NoForm{"a call of what is not there"};
    std::vector<const Expr *> args;
    size_t next = 0;
    for (const Param &q : f->params) {
      if (next == c.args.size()) break;
      if (q.mode == Mode::Scratch && c.args.size() < f->params.size()) continue;
      args.push_back(argument(c.args[next++], q.def.type));
    }
    return b_.call(c.callee, b_.list(args), c.at, true);
  }
  const Expr *argument(const Expr *e, const Type *t) {
    if (auto *l = as<Load>(e)) return load(*l);
    return t->tensor ? e : expr(e, t->elem);
  }

  const Stmt *stmt(const Stmt *s) {
    switch (s->kind) {
      case Kind::Let: {
        Let n = to<Let>(s);
        n.value = value(n.value, n.defs);
        n.defs = defs(n.defs);
        return b_.make(n);
      }
      case Kind::Store: {
        Store n = to<Store>(s);
        n.value = expr(n.value, elem(n.target)), n.target = load(*n.target);
        return b_.make(n);
      }
      case Kind::Compute: return compute(to<Compute>(s));
      case Kind::Alloc: {
        Alloc n = to<Alloc>(s);
        // Every element has at most 8 times the bytes that it had, so places 8 times as far apart do not overlap.
        if (n.base) n.offset = b_.binary(Op::Mul, expr(n.offset, DType::Index), number(8));
        n.def = bytes(n.def);
        return b_.make(n);
      }
      case Kind::View: {
        View n = to<View>(s);
        n.source = load(*n.source), n.def = def(n.def);
        return b_.make(n);
      }
      case Kind::CallStmt: return call_stmt(to<CallStmt>(s));
      case Kind::Assume: {
        Assume n = to<Assume>(s);
        n.cond = expr(n.cond, DType::Bool);
        return b_.make(n);
      }
      case Kind::Dataflow: {
        Dataflow n = to<Dataflow>(s);
        n.body = lines(n.body);
        return b_.make(n);
      }
      case Kind::For: {
        For n = to<For>(s);
        size_t mark = env_->mark();
        n.iter.extent = expr(n.iter.extent, DType::Index);
        env_->define_index(n.iter.name);
        n.body = lines(n.body);
        env_->pop(mark);
        return b_.make(n);
      }
      case Kind::If: {
        If n = to<If>(s);
        n.cond = expr(n.cond, DType::Bool), n.body = body(n.body), n.other = body(n.other);
        return b_.make(n);
      }
      case Kind::While: {
        While n = to<While>(s);
        n.cond = expr(n.cond, DType::Bool), n.body = body(n.body);
        return b_.make(n);
      }
      case Kind::Block: {
        Block n = to<Block>(s);
        std::vector<Axis> axes(n.axes.begin(), n.axes.end());
        size_t mark = env_->mark();
        for (Axis &a : axes) a.domain = expr(a.domain, DType::Index), a.binding = expr(a.binding, DType::Index);
        if (n.guard) n.guard = expr(n.guard, DType::Bool);
        for (Axis &a : axes) env_->define_index(a.name);
        n.axes = b_.list(axes), n.reads = n.writes = {};
        n.inits = body(n.inits), n.body = lines(n.body);
        env_->pop(mark);
        return b_.make(n);
      }
      default: throw NoForm{fmt::format("{} in a graph", s->kind == Kind::IfValue ? "if" : "loop")};
    }
  }

  const Stmt *compute(const Compute &s) {
    Compute n = s;
    std::vector<Result> results(n.results.begin(), n.results.end());
    size_t mark = env_->mark();
    std::vector<DType> types;
    for (Result &r : results) {
      const Type *t = env_->find(r.name);
      types.push_back(t ? t->elem : DType::Invalid);
      std::vector<Iter> iters(r.iters.begin(), r.iters.end());
      for (Iter &i : iters) i.extent = expr(i.extent, DType::Index);
      r.iters = b_.list(iters);
    }
    for (const Result &r : results)
      for (const Iter &i : r.iters) env_->define_index(i.name);
    auto *c = as<Call>(n.value);
    n.value = c && c->global && !c->iters.empty() ? reduction(*c, "", DType::Invalid) : expr(n.value, types[0]);
    env_->pop(mark);
    n.results = b_.list(results);
    return b_.make(n);
  }

  const Stmt *call_stmt(const CallStmt &s) {
    CallStmt n = s;
    std::string_view name = b_.text(n.call->callee);
    if (n.call->global) {
      n.call = arguments(*n.call);
    } else if (name == "fill" && !n.dests.empty()) {
      n.call = b_.call(n.call->callee, all(n.call->args, elem(n.dests[0])), n.call->at);
    } else if (name == "Copy") {
      n.call = b_.call(n.call->callee, all(n.call->args, DType::Invalid), n.call->at);
    } else if (name != "prefetch") {
      throw NoForm{fmt::format("call {}", name)};
    }
    std::vector<const Expr *> dests;
    for (const Expr *d : n.dests) dests.push_back(as<Load>(d) ? load(to<Load>(d)) : d);
    n.dests = b_.list(dests);
    return b_.make(n);
  }

  // ---- items

  // A buffer of bytes is 8 times as large (see Alloc).
  Def bytes(const Def &d) {
    Def n = def(d);
    if (d.type->elem == DType::U8 && d.type->rank() == 1)
      n.type = b_.with_dims(n.type, b_.list({b_.binary(Op::Mul, n.type->dims[0], number(8))}));
    return n;
  }

  const Func *function(const Func &f) {
    Func n = f;
    Env env(b_, m_, &f);
    env_ = &env;
    std::vector<Param> params(f.params.begin(), f.params.end());
    for (Param &q : params) q.def = q.mode == Mode::Scratch ? bytes(q.def) : def(q.def);
    n.params = b_.list(params), n.results = defs(f.results);
    n.notes.attrs = {};
    if (auto *pairs = attr(b_, f.notes.attrs, "inplace")) n.notes.attrs = b_.one(Attr{b_.sym("inplace"), kNowhere, pairs});
    n.inits = lines(f.inits);
    n.body = lines(f.body);
    std::vector<Part> parts;
    for (const Part &q : f.parts)
      if (q.desc) {
        Part copy = q;
        copy.body = body(q.body);
        parts.push_back(copy);
      }
    n.parts = b_.list(parts);
    env_ = nullptr;
    return b_.make(n);
  }

  const Const *constant(const Const &c) {
    if (!is_float(c.type->elem)) return &c;
    tensors_ = true;
    Array a;
    RunFault fault;
    if (!evaluate(b_, m_, c, options_, a, fault)) throw NoForm{fault.message};
    constexpr int64_t kMost = 1 << 16;
    if (a.size() > kMost) throw NoForm{fmt::format("@{} has {} elements", b_.text(c.name), a.size())};
    std::vector<const Expr *> items;
    for (int64_t i = 0; i < a.size(); i++) {
      double v = to_double(a.type, a.get(i));
      items.push_back(number(std::isnan(v) ? 271828182 : field_of(v)));
    }
    Const n = c;
    n.type = type(c.type), n.value = b_.make_list(b_.list(items)), n.path = {}, n.attrs = {};
    return b_.make(n);
  }

  Build &b_;
  const Module &m_;
  const RunOptions &options_;
  Env *env_ = nullptr;
  bool polynomial_ = true, rounded_ = false, tensors_ = false;
  std::set<uint64_t> literals_;
};

}  // namespace

bool decides(const FieldProgram &a, const FieldProgram &b) {
  bool alike = (!a.rounded && !b.rounded) || a.literals == b.literals;
  return a.polynomial && b.polynomial && alike && !a.tensors && !b.tensors;
}

uint64_t field_of(double v) {
  if (std::isinf(v)) return v > 0 ? kHalf : kHalf + 1;
  int e;
  double m = std::frexp(v, &e);
  int64_t whole = int64_t(std::ldexp(m, 53));
  e -= 53;
  uint64_t r = uint64_t(whole < 0 ? -whole : whole) % p;
  uint64_t two = e < 0 ? power(2, p - 2) : 2;
  r = r * power(two, uint64_t(e < 0 ? -e : e)) % p;
  return whole < 0 && r ? p - r : r;
}

FieldProgram over_field(Build &b, const Module &m, const Func &f, const RunOptions &options) {
  return Field(b, m, options).program(f);
}

}  // namespace mlc
