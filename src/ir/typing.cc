#include "ir/typing.h"

#include "base/diag.h"

namespace mlc {

Env::Env(const Build &b, const Module &m, const Func *f) : b(b), m(m) {
  if (!f) return;
  for (Sym d : f->dims) define_index(d);
  for (const Param &p : f->params) define(p.def.name, p.def.type);
  for (const Def &d : f->results) define(d.name, d.type);
}
void Env::define(Sym name, const Type *type) {
  const Type *&t = names_[name];
  log_.push_back({name, t});
  t = type;
}
void Env::define_index(Sym name) { define(name, b.index()); }
const Type *Env::find(Sym name) const {
  auto it = names_.find(name);
  return it == names_.end() ? nullptr : it->second;
}
void Env::pop(size_t mark) {
  for (; log_.size() > mark; log_.pop_back()) names_[log_.back().first] = log_.back().second;
}

namespace {

// A literal, or arithmetic of literals alone, has no type yet: `open`, Index for integers and F64 for floats. It takes
// the type of what it meets; then `fix` goes down once to look at the literals.
struct T {
  DType type = DType::Invalid;
  bool open = false;
  explicit operator bool() const { return type != DType::Invalid; }
};

std::string_view spelling(Op op) {
  constexpr std::string_view kText[] = {"-", "!",  "||", "&&", "==", "!=", "<",  "<=",
                                        ">", ">=", "+",  "-",  "*",  "/",  "//", "%"};
  return kText[size_t(op)];
}
bool is_number(DType t) { return is_int(t) || is_float(t); }
bool is_comparison(Op op) { return op >= Op::Eq && op <= Op::Ge; }

class Typer {
 public:
  Typer(const Env &env, TypeError *err) : env_(env), err_(err) {}

  DType check(const Expr *e, DType want) {
    T t = type(e);
    if (!t) return t.type;
    if (t.open && want == DType::Invalid)
      return fail(e, "a literal alone has no type here, expected a cast such as {}",
                  t.type == DType::Index ? "i32(1)" : "f32(1.0)").type;
    if (t.open) return fix(e, want) ? want : DType::Invalid;
    if (want != DType::Invalid && t.type != want)
      return fail(e, "expected {}, found {}", dtype_name(want), dtype_name(t.type)).type;
    return t.type;
  }

  bool check_all(const Expr *e, std::span<const DType> want) {
    const Call *c = as<Call>(e);
    if (want.size() == 1) return check(e, want[0]) != DType::Invalid;
    const Func *f = c && c->global ? env_.m.func(c->callee) : nullptr;
    if (!f)
      return bool(fail(e, "expected a call of a reducer or scalar function with {}", counted(want.size(), "result")));
    if (f->results.size() != want.size())
      return bool(fail(e, "@{} has {}, expected {}", env_.b.text(c->callee), counted(f->results.size(), "result"),
                       want.size()));
    if (!call_function(*c)) return false;
    for (size_t i = 0; i < want.size(); ++i)
      if (f->results[i].type->elem != want[i])
        return bool(fail(e, "result {} of @{} has type {}, expected {}", env_.b.text(f->results[i].name),
                         env_.b.text(c->callee), dtype_name(f->results[i].type->elem), dtype_name(want[i])));
    return true;
  }

 private:
  template <class... A> T fail(const Expr *e, fmt::format_string<A...> f, A &&...a) {
    if (err_) *err_ = {e->at, fmt::format(f, std::forward<A>(a)...)};
    err_ = nullptr;  // the first error counts
    return {};
  }
  std::string_view text(Sym s) const { return env_.b.text(s); }

  bool fix(const Expr *e, DType t) {
    switch (e->kind) {
      case Kind::Int: {
        if (is_float(t))
          return bool(fail(e, "expected {}, found an integer literal: write it with a point", dtype_name(t)));
        if (!is_int(t)) return bool(fail(e, "expected {}, found an integer literal", dtype_name(t)));
        auto &i = to<Int>(e);
        int n = info(t).bits;
        bool fits = i.wide         ? t == DType::U64
                    : is_signed(t) ? n == 64 || (i.value >= -(int64_t(1) << (n - 1)) && i.value < int64_t(1) << (n - 1))
                                   : i.value >= 0 && (n == 64 || i.value < int64_t(1) << n);
        if (fits) return true;
        return bool(i.wide ? fail(e, "{} does not fit {}", uint64_t(i.value), dtype_name(t))
                           : fail(e, "{} does not fit {}", i.value, dtype_name(t)));
      }
      case Kind::Float:
        return is_float(t) || bool(fail(e, "expected {}, found a float literal", dtype_name(t)));
      case Kind::Unary: return fix(to<Unary>(e).a, t);
      case Kind::Binary: return fix(to<Binary>(e).a, t) && fix(to<Binary>(e).b, t);
      case Kind::Call: {
        auto &c = to<Call>(e);
        for (size_t i = c.iters.empty() && text(c.callee) == "where" ? 1 : 0; i < c.args.size(); ++i)
          if (!fix(c.args[i], t)) return false;
        return true;
      }
      default: return true;
    }
  }

  // The one type of both.
  T meet(const Expr *place, std::string_view what, const Expr *a, T ta, const Expr *b, T tb) {
    if (!ta || !tb) return {};
    if (ta.open && !tb.open) return fix(a, tb.type) ? tb : T{};
    if (tb.open && !ta.open) return fix(b, ta.type) ? ta : T{};
    if (ta.type == tb.type) return ta;
    if (ta.open) return fail(place, "operands of {} are an integer and a float literal", what);
    return fail(place, "operands of {} have types {} and {}, expected one type", what, dtype_name(ta.type),
                dtype_name(tb.type));
  }

  T type(const Expr *e) {
    switch (e->kind) {
      case Kind::Int: return {DType::Index, true};
      case Kind::Float: return {DType::F64, true};
      case Kind::Bool: return {DType::Bool};
      case Kind::Str: return {DType::Str};
      case Kind::Name: {
        Sym s = to<Name>(e).name;
        for (Sym x : bound_)
          if (x == s) return {DType::Index};
        const Type *t = env_.find(s);
        if (!t) return fail(e, "{} is not defined here", text(s));
        if (t->tensor) return fail(e, "{} is a buffer, expected an element of it such as {}[..]", text(s), text(s));
        return {t->elem};
      }
      case Kind::Load: return load(to<Load>(e));
      case Kind::Call: return call(to<Call>(e));
      case Kind::Unary: {
        auto &u = to<Unary>(e);
        T t = type(u.a);
        if (!t) return t;
        if (u.op == Op::Not ? t.type != DType::Bool : !is_number(t.type))
          return fail(e, "operand of {} has type {}, expected {}", spelling(u.op), dtype_name(t.type),
                      u.op == Op::Not ? "bool" : "a number");
        return t;
      }
      case Kind::Binary: return binary(to<Binary>(e));
      case Kind::Global: return fail(e, "@{} is no scalar, expected an element of it", text(to<Global>(e).name));
      case Kind::None: return fail(e, "none stands only for an input of an operator");
      case Kind::List: return fail(e, "expected a scalar, found a list");
      case Kind::Map: return fail(e, "expected a scalar, found an index map");
      default: return fail(e, "expected a scalar, found a region");
    }
  }

  T load(const Load &l) {
    const Type *t = nullptr;
    std::string_view sign = l.global ? "@" : "";
    if (l.global) {
      const Const *c = env_.m.constant(l.buffer);
      t = c ? c->type : nullptr;
    } else {
      for (Sym x : bound_)
        if (x == l.buffer) return fail(&l, "{} is an index, not a buffer", text(x));
      t = env_.find(l.buffer);
    }
    if (!t) return fail(&l, "{}{} is not defined here", sign, text(l.buffer));
    if (!t->tensor) return fail(&l, "{}{} is a scalar, it has no elements", sign, text(l.buffer));
    if (t->rank() != l.index.size())
      return fail(&l, "{}{} has {}, found {}", sign, text(l.buffer), counted(t->rank(), "dimension"),
                  l.index.size() == 1 ? "1 index" : fmt::format("{} indices", l.index.size()));
    for (const Expr *i : l.index) {
      if (i->kind == Kind::Range || i->kind == Kind::All) return fail(i, "expected an element, found a region");
      if (check(i, DType::Index) == DType::Invalid) return {};
    }
    return {t->elem};
  }

  T binary(const Binary &b) {
    T ta = type(b.a), tb = ta ? type(b.b) : T{};
    if (!ta || !tb) return {};
    if (b.op == Op::And || b.op == Op::Or) {
      for (auto [x, t] : {std::pair(b.a, ta), std::pair(b.b, tb)})
        if (t.type != DType::Bool)
          return fail(x, "operand of {} has type {}, expected bool", spelling(b.op), dtype_name(t.type));
      return {DType::Bool};
    }
    T t = meet(&b, spelling(b.op), b.a, ta, b.b, tb);
    if (!t) return t;
    bool any = b.op == Op::Eq || b.op == Op::Ne;
    bool integers = b.op == Op::FloorDiv || b.op == Op::Mod;
    if (integers ? !is_int(t.type) : !any && !is_number(t.type))
      return fail(&b, "operands of {} have type {}, expected {}", spelling(b.op), dtype_name(t.type),
                  integers ? "integers" : "numbers");
    if (!is_comparison(b.op)) return t;
    // 8 >= 1, left over where a dimension was bound, compares indices.
    if (t.open && t.type != DType::Index)
      return fail(&b, "both sides of {} are literals, expected a cast", spelling(b.op));
    return {DType::Bool};
  }

  T call(const Call &c) {
    if (c.global) {
      const Func *f = call_function(c);
      if (!f) return {};
      if (f->results.size() != 1)
        return fail(&c, "@{} has {}, expected one", text(c.callee), counted(f->results.size(), "result"));
      return {f->results[0].type->elem};
    }
    std::string_view name = text(c.callee);
    if (!c.iters.empty()) return reduction(c, name);
    if (is_cast(name)) return cast(c, dtype_named(name));
    if (name == "convert") return convert(c);
    const Builtin *f = builtin(name);
    if (!f) return fail(&c, "no scalar function {}", name);
    if (int(c.args.size()) != f->arity)
      return fail(&c, "{} has {}, found {}", name, counted(f->arity, "argument"), c.args.size());
    size_t first = f->signature == Signature::Where ? 1 : 0;
    if (first && check(c.args[0], DType::Bool) == DType::Invalid) return {};
    T t = type(c.args[first]);
    for (size_t i = first + 1; t && i < c.args.size(); ++i) {
      T next = type(c.args[i]);
      // Once typed, an open one among the arguments before is the first, or all of them.
      if (t.open && next && !next.open)
        for (size_t j = first; j + 1 < i; ++j)
          if (!fix(c.args[j], next.type)) return {};
      t = meet(&c, name, c.args[i - 1], t, c.args[i], next);
    }
    if (!t) return t;
    auto refuse = [&](std::string_view expected) {
      return fail(&c, "arguments of {} have type {}, expected {}", name, dtype_name(t.type), expected);
    };
    switch (f->signature) {
      case Signature::Same: return is_number(t.type) ? t : refuse("numbers");
      case Signature::SameFloat: return is_float(t.type) ? t : refuse("floats");
      case Signature::SameInt: return is_int(t.type) ? t : refuse("integers");
      case Signature::Where: return t;
      case Signature::Test:
        if (!is_float(t.type)) return refuse("floats");
        return t.open ? fail(&c, "argument of {} is a literal, expected a cast", name) : T{DType::Bool};
      case Signature::Bits: {
        DType as = name.size() > 5 ? dtype_named(name.substr(5)) : DType::Invalid;
        auto plain = [](DType x) { return is_number(x) && x != DType::Index; };
        if (!plain(as)) return fail(&c, "no scalar function {}", name);
        if (t.open) return fail(&c, "argument of {} is a literal, expected a cast", name);
        if (!plain(t.type) || info(t.type).bits != info(as).bits)
          return fail(&c, "argument of {} has type {}, expected one of {} bits", name, dtype_name(t.type),
                      info(as).bits);
        return {as};
      }
    }
    return {};
  }

  // sum(e for i in n, j in m): an extent sees the iterators to its left.
  bool open_iters(const Call &c) {
    for (const Iter &i : c.iters) {
      if (check(i.extent, DType::Index) == DType::Invalid) return false;
      bound_.push_back(i.name);
    }
    return true;
  }

  T reduction(const Call &c, std::string_view name) {
    if (!is_reduction(name))
      return fail(&c, "no reduction {}: expected sum, prod, max, min, all, any or a @reducer", name);
    if (c.args.size() != 1) return fail(&c, "{} over iterators has 1 argument, found {}", name, c.args.size());
    size_t mark = bound_.size();
    T t = open_iters(c) ? type(c.args[0]) : T{};
    bound_.resize(mark);
    if (!t) return t;
    bool logic = name == "all" || name == "any";
    if (logic ? t.type != DType::Bool : !is_number(t.type))
      return fail(c.args[0], "argument of {} has type {}, expected {}", name, dtype_name(t.type),
                  logic ? "bool" : "a number");
    return t;
  }

  bool castable(DType t) { return is_number(t) || t == DType::Bool; }

  T cast(const Call &c, DType to) {
    if (c.args.size() != 1) return fail(&c, "a cast to {} has 1 argument, found {}", dtype_name(to), c.args.size());
    if (!castable(to)) return fail(&c, "no cast to {}", dtype_name(to));
    T t = type(c.args[0]);
    if (!t) return t;
    if (!castable(t.type)) return fail(c.args[0], "no cast from {} to {}", dtype_name(t.type), dtype_name(to));
    // A literal is of the type cast to where it can be one; f32(1) and i32(1.5) convert.
    if (t.open && (t.type == DType::Index ? is_int(to) : is_float(to)) && !fix(c.args[0], to)) return {};
    return {to};
  }

  T convert(const Call &c) {  // convert(x, "f8e4m3fn", "no_saturate")
    const Str *type_name = c.args.size() == 3 ? as<Str>(c.args[1]) : nullptr;
    const Str *how = c.args.size() == 3 ? as<Str>(c.args[2]) : nullptr;
    if (!type_name || !how || how->value != "no_saturate")
      return fail(&c, "expected convert(x, \"TYPE\", \"no_saturate\")");
    DType to = dtype_named(type_name->value);
    if (!is_float(to)) return fail(type_name, "convert to {}, expected a float type", type_name->value);
    T t = type(c.args[0]);
    if (!t) return t;
    if (!castable(t.type)) return fail(c.args[0], "no conversion from {} to {}", dtype_name(t.type), dtype_name(to));
    return {to};
  }

  // @f(x); @r(m0, s0, m1, s1) combines; @r(a, b for k in n) folds, its arguments are of the results' types.
  const Func *call_function(const Call &c) {
    const Func *f = env_.m.func(c.callee);
    auto refuse = [&](T) { return nullptr; };
    if (!f) return refuse(fail(&c, "no function @{} in the module", text(c.callee)));
    if (f->func != FuncKind::Scalar && f->func != FuncKind::Reducer)
      return refuse(fail(&c, "@{} cannot be called in an expression, expected a scalar function or reducer",
                         text(c.callee)));
    bool fold = !c.iters.empty();
    if (fold && f->func != FuncKind::Reducer)
      return refuse(fail(&c, "@{} is no reducer, expected one before `for`", text(c.callee)));
    size_t count = fold ? f->results.size() : f->params.size();
    if (c.args.size() != count)
      return refuse(fail(&c, "@{} has {}, found {}", text(c.callee), counted(count, "argument"), c.args.size()));
    size_t mark = bound_.size();
    bool ok = open_iters(c);
    for (size_t i = 0; ok && i < count; ++i) {
      const Type *t = fold ? f->results[i].type : f->params[i].def.type;
      ok = check(c.args[i], t->elem) != DType::Invalid;
    }
    bound_.resize(mark);
    return ok ? f : nullptr;
  }

  const Env &env_;
  TypeError *err_;
  std::vector<Sym> bound_;  // iterators of the reductions around
};

}  // namespace

DType type_of(const Env &env, const Expr *e, DType want, TypeError *err) { return Typer(env, err).check(e, want); }
bool types_of(const Env &env, const Expr *e, std::span<const DType> want, TypeError *err) {
  return Typer(env, err).check_all(e, want);
}

}  // namespace mlc
