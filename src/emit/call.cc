// Calls in scalar expressions: casts, builtins, functions of the module.
#include <cmath>

#include "emit/expr.h"
#include "num/convert.h"
#include "text/text.h"

namespace mlc {
namespace {

bool is_literal(const Expr *e) {
  if (auto *u = as<Unary>(e)) return is_literal(u->a);
  return e->kind == Kind::Int || e->kind == Kind::Float || e->kind == Kind::Bool;
}
bool is_packed(DType t) { return is_int(t) && info(t).bits < 8; }

}  // namespace

bool is_number(const Expr *e) {
  if (auto *u = as<Unary>(e)) return is_number(u->a);
  auto *f = as<Float>(e);
  return f && !f->nan_bits && !std::isnan(f->value);
}

Text ExprPrinter::call(const Call &c, DType want) {
  std::string_view name = b_.text(c.callee);
  if (c.global) {
    const Func *f = m_.func(c.callee);
    if (!f || f->func != FuncKind::Scalar || f->results.size() != 1 || f->params.size() != c.args.size()) {
      fail(c.at, fmt::format("@{} cannot be called in an expression", name));
      return {"0", kPrimary, want, false, ""};
    }
    std::string args;
    for (size_t i = 0; i < c.args.size(); i++)
      args += (i ? ", " : "") + text(c.args[i], f->params[i].def.type->elem);
    DType t = f->results[0].type->elem;
    return {fmt::format("{}({})", scalar_function(f, 0), args), kPrimary, t, t == DType::Index, ""};
  }
  if (is_cast(name)) return cast(c.args[0], dtype_named(name), true);
  if (name == "convert") {
    auto *to_type = as<Str>(c.args[1]);
    return cast(c.args[0], to_type ? dtype_named(to_type->value) : DType::Invalid, false);
  }
  const Builtin *f = builtin(name);
  if (!f || !c.iters.empty() || int(c.args.size()) != f->arity) {
    fail(c.at, fmt::format("{} cannot be emitted here", mlc::print(b_, &c)));
    return {"0", kPrimary, want, false, ""};
  }
  if (f->signature == Signature::Bits) {
    DType from = type(c.args[0], DType::I64), to = dtype_named(name.substr(5));
    Text v = print(c.args[0], from);
    // Small floats are carried as f32: their bits are made first, or last.
    std::string s = is_small_float(from) ? helper("encode", from, {v.s}).s : v.s;
    if (is_small_float(to)) return helper("decode", to, {s});
    if (is_packed(to)) return helper("narrow", to, {s});
    if (is_small_float(from)) return {fmt::format("({}){}", c_value(to), s), kUnary, to, false, ""};
    return {fmt::format("{}({})", helpers_.bits(from, to), s), kPrimary, to, false, ""};
  }
  DType t = type(&c, want);
  if (f->signature == Signature::Test) t = type(c.args[0], DType::F64);
  return builtin_call(c, name, t);
}

Text ExprPrinter::builtin_call(const Call &c, std::string_view name, DType t) {
  const Builtin *f = builtin(name);
  if (name == "where") {
    Text cond = print(c.args[0], DType::Bool), a = print(c.args[1], t), b = print(c.args[2], t);
    Text r{fmt::format("{} ? {} : {}", wrap(cond, kOr), wrap(a, kOr), wrap(b, kOr)), kTernary, t, a.wild || b.wild, ""};
    return r;
  }
  std::vector<Text> args;
  for (const Expr *a : c.args) args.push_back(print(a, t));
  if (!f->library) return primitive(name, t, args, c);
  DType computed = is_small_float(t) ? DType::F32 : t;
  const Func *text = library(name, computed);
  if (!text) {
    fail(c.at, fmt::format("there is no {}.{} in the library of scalar functions", name, dtype_name(computed)));
    return {"0", kPrimary, t, false, ""};
  }
  std::string list;
  for (const Text &a : args) list += (list.empty() ? "" : ", ") + a.s;
  return rounded(t, {fmt::format("{}({})", scalar_function(text, 0), list), kPrimary, computed, false, ""});
}

Text ExprPrinter::primitive(std::string_view name, DType t, const std::vector<Text> &args, const Call &c) {
  auto of = [&](std::string_view family, DType type, const Text &a) { return helper(family, type, {a.s}); };
  auto of2 = [&](std::string_view family, DType type, const Text &a, const Text &b) {
    return helper(family, type, {a.s, b.s});
  };
  bool wild = false;
  for (const Text &a : args) wild |= a.wild;
  auto index = [&](Text r) {
    r.type = t, r.wild = wild;
    return r;
  };
  DType computed = is_small_float(t) ? DType::F32 : t == DType::Index ? DType::I64 : t;
  if (name == "clamp") {  // min(max(x, lo), hi)
    auto low = is_number(c.args[1]) ? "at_least" : "max", high = is_number(c.args[2]) ? "at_most" : "min";
    if (is_float(t)) return index(of2(high, computed, of2(low, computed, args[0], args[1]), args[2]));
    DType k = is_packed(t) ? (is_signed(t) ? DType::I8 : DType::U8) : computed;
    return index(of2("min", k, of2("max", k, args[0], args[1]), args[2]));
  }
  if (is_float(t)) {
    if (name == "isnan" || name == "isinf") {
      Text r = of(name, computed, args[0]);
      r.type = DType::Bool;
      return r;
    }
    if (name == "abs")
      return {fmt::format("__builtin_fabs{}({})", t == DType::F64 ? "" : "f", args[0].s), kPrimary, t, false, ""};
    if (name == "max" || name == "min") {  // exact: no rounding
      std::string_view family = !is_number(c.args[1]) ? name : name == "max" ? "at_least" : "at_most";
      Text r = of2(family, computed, args[0], args[1]);
      r.type = t;
      return r;
    }
    if (name == "fma")
      return rounded(t, helper(fma, computed, {args[0].s, args[1].s, args[2].s}));
    Text r = args.size() == 2 ? of2(name, computed, args[0], args[1]) : of(name, computed, args[0]);
    return rounded(t, r);
  }
  if (name == "bitand" || name == "bitor" || name == "bitxor") {
    std::string_view op = name == "bitand" ? "&" : name == "bitor" ? "|" : "^";
    std::string s = fmt::format("({})({} {} {})", c_value(t), wrap(args[0], kUnary), op, wrap(args[1], kUnary));
    return index({s, kUnary, t, false, ""});
  }
  if (name == "bitnot") {
    std::string s = fmt::format("~{}", wrap(args[0], kUnary));
    if (is_packed(t)) return helper("narrow", t, {s});
    return index({fmt::format("({})({})", c_value(t), s), kUnary, t, false, ""});
  }
  bool two = args.size() == 2;
  int64_t by;
  bool whole = t == DType::I32 || t == DType::I64 || t == DType::U32 || t == DType::U64;
  if (name == "shr" && whole && int_value(c.args[1], &by) && by >= 0 && by < info(t).bits)
    return {fmt::format("{} >> {}", wrap(args[0], kProduct), by), kShift, t, false, ""};  // g++ asks for (a + b) >> n
  if (!is_packed(t)) return index(two ? of2(name, computed, args[0], args[1]) : of(name, computed, args[0]));
  bool own = name == "shl" || name == "shr";  // by the type's own width
  DType k = own ? t : is_signed(t) ? DType::I8 : DType::U8;
  return helper("narrow", t, {(two ? of2(name, k, args[0], args[1]) : of(name, k, args[0])).s});
}

Text ExprPrinter::cast(const Expr *e, DType to, bool saturate) {
  DType from = type(e, DType::Invalid);
  if (from == DType::Invalid) {  // literals alone: of the type itself where they can be, else converted
    bool integer = true;
    each_expr(e, [&](const Expr *x) { return integer &= x->kind != Kind::Float, true; });
    from = integer ? (is_int(to) ? to : DType::I64) : is_float(to) ? to : DType::F64;
    if (from == to && is_literal(e)) {
      Text v = print(e, to);
      if (!is_float(to)) v.wild = false;
      return v;
    }
  }
  return cast(print(e, from), to, saturate);
}

Text ExprPrinter::cast(const Text &v, DType to, bool saturate) {
  DType from = v.type;
  auto c_cast = [&](DType t) {
    return Text{fmt::format("({}){}", c_value(t), wrap(v, kUnary)), kUnary, t, v.wild, ""};
  };
  auto small = [&](std::string_view family, const Text &x) {
    return helper(saturate ? std::string(family) + "_saturated" : std::string(family), to, {x.s});
  };
  if (from == to) return v;
  if (to == DType::Bool) return {wrap(v, kSum) + (is_float(from) ? " != 0.0f" : " != 0"), kEquality, to, false, ""};
  if (is_float(from)) {
    if (is_small_float(to)) {
      Text r = small(from == DType::F64 ? "round64" : "round", v);
      if (from != DType::F64 && !saturate) r.unrounded = v.s;
      if (from != DType::F64 && (to == DType::F16 || to == DType::BF16)) r.unrounded = v.s;
      return r;
    }
    if (is_float(to)) {
      Text r = to == DType::F64 || from == DType::F64 ? c_cast(to) : v;
      r.type = to, r.unrounded.clear();
      return r;
    }
    Text r{fmt::format("{}({})", helpers_.cast(from, to), v.s), kPrimary, to, to == DType::Index, ""};
    return r;
  }
  if (is_small_float(to)) {
    int bits = from == DType::Bool ? 1 : info(from).bits;
    Text x = bits <= 16 ? c_cast(DType::F32) : bits <= 32 ? c_cast(DType::F64) : helper("sticky", from, {v.s});
    return small(bits <= 16 ? "round" : "round64", x);
  }
  if (is_float(to)) return c_cast(to);
  if (is_packed(to)) return helper("narrow", to, {v.s});
  Text r = c_cast(to);
  bool same = c_value(from) == c_value(to);  // index and i64
  if (same) r = v;
  r.type = to;
  // 32 bits are too few for a sum or product with sizes to leave 64.
  r.wild = to == DType::Index && (v.wild || (from != DType::Index && info(from).bits > 32));
  return r;
}

}  // namespace mlc
