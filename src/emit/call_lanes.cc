// Calls on vectors: selections, casts, builtins, functions of the module.
#include <fmt/core.h>

#include <algorithm>

#include "arith/simplify.h"
#include "emit/lane_types.h"
#include "num/convert.h"

namespace mlc {

bool ExprPrinter::masked_load(const Call &c) {
  auto *l = as<Load>(c.args[1]);
  if (!l || !varies(l) || !unit_or_uniform(*l) || !harmless(c.args[2]) || !harmless(c.args[0])) return false;
  std::vector<const Expr *> all;
  conjuncts(c.args[0], all);
  X lo, hi;
  return std::all_of(all.begin(), all.end(), [&](const Expr *e) { return !varies(e) || between(e, lo, hi); });
}

Text ExprPrinter::where_lanes(const Call &c, DType t) {
  const Expr *yes = c.args[1], *no = c.args[2];
  int n = scope_.lanes.n;
  if (!has_vectors(t)) return each_lane(&c, t);
  auto choice = [&](const Expr *uniform, Text a, Text b) {
    Text cond = print(uniform, DType::Bool);
    int bits = t == DType::Bool ? std::max({a.mask, b.mask, 8}) : 0;
    a = bits ? mask(a, bits) : vector(a, t), b = bits ? mask(b, bits) : vector(b, t);
    return lanes_text(n, fmt::format("{} ? {} : {}", wrap(cond, kOr), wrap(a, kOr), wrap(b, kOr)), t, kTernary, bits);
  };
  if (!varies(c.args[0])) return choice(c.args[0], print(yes, t), print(no, t));
  // What is the same in all lanes is asked first.
  std::vector<const Expr *> all;
  const Expr *same = nullptr, *differ = nullptr;
  conjuncts(c.args[0], all);
  for (const Expr *e : all) {
    const Expr *&side = varies(e) ? differ : same;
    side = both(b_, side, e);
  }
  if (same && harmless(c.args[0])) return choice(same, where_lanes(*b_.call("where", {differ, yes, no}), t), print(no, t));
  // where(c > x, c, x)
  auto *x = as<Binary>(c.args[0]);
  bool edge = x && (x->op == Op::Gt || x->op == Op::Lt) && (t == DType::F32 || t == DType::F64) && equal(x->a, yes) &&
              equal(x->b, no);
  if (edge) return helper_lanes(x->op == Op::Gt ? "at_least" : "at_most", t, {print(no, t), print(yes, t)});
  if (harmless(yes) && harmless(no)) return select(print(c.args[0], DType::Bool), print(yes, t), print(no, t), t);
  // where(v < count, x[i + v], 0.0): the load stops at the edge
  X lo, hi;
  auto *l = as<Load>(yes);
  if (!l || !unit_or_uniform(*l) || !varies(l) || !harmless(no) || !between(c.args[0], lo, hi)) return each_lane(&c, t);
  Text b = print(no, t), a = load_lanes(*l, lo ? lo : lit(b_, int64_t(0)), hi ? hi : lit(b_, int64_t(n)));
  bool zero = !b.lanes && (b.s == "0.0f" || b.s == "0" || b.s == "0u" || b.s == "0.0");
  return zero ? a : select(lanes_between(lo, hi, t), a, b, t);
}

Text ExprPrinter::cast_lanes(const Text &v, DType to, bool saturate, const Expr *e) {
  DType from = v.type;
  int n = scope_.lanes.n;
  if (from == to) return v;
  if (!has_vectors(from) || !has_vectors(to)) return each_lane(e, to);
  auto convert = [&](const std::string &s, DType t) {
    return Text{fmt::format("__builtin_convertvector({}, {})", s, lanes_type(t)), kPrimary, t, false, "", n};
  };
  if (to == DType::Bool) {
    Text zero = vector({"0", kPrimary, from, false, ""}, from);
    return lanes_text(n, fmt::format("{} != {}", wrap(v, kSum), zero.s), to, kEquality, lane_bits(from));
  }
  if (from == DType::Bool) {  // -1 or 0
    if (is_small_float(to)) return each_lane(e, to);
    Text m = mask(v, is_float(to) ? lane_bits(to) : info(to).bits);
    if (!is_float(to)) return lanes_text(n, fmt::format("({})(-{})", lanes_type(to), wrap(m, kUnary)), to, kUnary);
    return convert("-" + wrap(m, kUnary), to);
  }
  if (is_small_float(to)) {
    if (!is_float(from) || from == DType::F64) return each_lane(e, to);
    std::string_view family = saturate ? "round_saturated" : "round";
    Text r{fmt::format("{}({})", helpers_.need_lanes(family, to, n), v.s), kPrimary, to, false, "", n};
    if (!saturate || to == DType::F16 || to == DType::BF16) r.unrounded = v.s;
    return r;
  }
  if (is_float(from) && !is_float(to)) {
    DType args[] = {computed(from)};
    return lanes_text(n, fmt::format("{}({})", helpers_.lane_calls(helpers_.cast(from, to), args, to, n), v.s), to);
  }
  if (computed(from) == to) {  // a small float as an f32
    Text r = v;
    r.type = to, r.unrounded.clear();
    return r;
  }
  return convert(v.s, to);
}

Text ExprPrinter::primitive_lanes(std::string_view name, DType t, const Call &c) {
  int n = scope_.lanes.n;
  DType k = computed(t);
  std::vector<Text> args;
  for (const Expr *a : c.args) args.push_back(print(a, t));
  auto done = [&](Text r, bool exact = false) {
    r.type = t;
    if (!is_small_float(t) || exact) return r;
    return Text{fmt::format("{}({})", helpers_.need_lanes("round", t, n), r.s), kPrimary, t, false, r.s, n};
  };
  if (name == "clamp") {
    bool f = is_float(t);
    Text low = helper_lanes(f && is_number(c.args[1]) ? "at_least" : "max", k, {args[0], args[1]});
    return done(helper_lanes(f && is_number(c.args[2]) ? "at_most" : "min", k, {low, args[2]}), true);
  }
  if (is_float(t) && (name == "max" || name == "min")) {
    std::string_view family = !is_number(c.args[1]) ? name : name == "max" ? "at_least" : "at_most";
    return done(helper_lanes(family, k, {args[0], args[1]}), true);
  }
  if (name == "isnan" || name == "isinf") {
    Text r = helper_lanes(name, k, {args[0]});
    r.type = DType::Bool, r.mask = lane_bits(k);
    return r;
  }
  if (name == "bitand" || name == "bitor" || name == "bitxor") {
    std::string_view op = name == "bitand" ? "&" : name == "bitor" ? "|" : "^";
    std::string s = fmt::format("{} {} {}", wrap(vector(args[0], t), kUnary), op, wrap(vector(args[1], t), kUnary));
    return lanes_text(n, s, t, kBits);
  }
  if (name == "bitnot") return lanes_text(n, "~" + wrap(args[0], kUnary), t, kUnary);
  int64_t by;
  if ((name == "shl" || name == "shr") && int_value(c.args[1], &by) && by >= 0 && by < info(t).bits)
    return lanes_text(n, fmt::format("{}({}, {})", helpers_.need_lanes(std::string(name) + "_by", t, n), args[0].s, by), t);
  if (name == "fma") return done(helper_lanes(fma, k, {args[0], args[1], args[2]}));
  if (args.size() == 1) return done(helper_lanes(name, k, {args[0]}), name == "abs");
  if (args.size() == 2) return done(helper_lanes(name, k, {args[0], args[1]}));
  return each_lane(&c, t);
}

Text ExprPrinter::call_lanes(const Call &c, DType want) {
  std::string_view name = b_.text(c.callee);
  int n = scope_.lanes.n;
  auto on_vectors = [&](const Func *f) -> Text {
    std::string list;
    for (size_t i = 0; i < c.args.size(); i++) {
      DType t = f->params[i].def.type->elem;
      Text a = print(c.args[i], t);
      list += (i ? ", " : "") + (t == DType::Bool ? mask(a, 32) : vector(a, t)).s;
    }
    DType t = f->results[0].type->elem;
    return lanes_text(n, fmt::format("{}({})", scalar_function(f, n), list), t, kPrimary, t == DType::Bool ? 32 : 0);
  };
  if (c.global) {
    const Func *f = m_.func(c.callee);
    bool plain = f && f->func == FuncKind::Scalar && f->results.size() == 1 && f->params.size() == c.args.size() &&
                 has_vectors(f->results[0].type->elem);
    for (size_t i = 0; plain && i < c.args.size(); i++) plain = has_vectors(f->params[i].def.type->elem);
    return plain ? on_vectors(f) : each_lane(&c, want);
  }
  const Builtin *f = builtin(name);
  if (is_cast(name) || name == "convert") {
    auto *to_type = name == "convert" ? as<Str>(c.args[1]) : nullptr;
    DType to = to_type ? dtype_named(to_type->value) : dtype_named(name), from = type(c.args[0], DType::Invalid);
    if (!has_vectors(from) || !has_vectors(to)) return each_lane(&c, want);
    return cast_lanes(print(c.args[0], from), to, name != "convert", &c);
  }
  if (!f || !c.iters.empty() || int(c.args.size()) != f->arity) return each_lane(&c, want);
  if (f->signature == Signature::Bits) {
    DType from = type(c.args[0], DType::I64), to = dtype_named(name.substr(5));
    if (!has_vectors(from) || !has_vectors(to) || is_small_float(from) || is_small_float(to) || from == DType::Bool)
      return each_lane(&c, want);
    Text v = print(c.args[0], from);
    return lanes_text(n, fmt::format("({}){}", lanes_type(to), wrap(v, kUnary)), to, kUnary);
  }
  DType t = type(&c, want);
  if (f->signature == Signature::Test) t = type(c.args[0], DType::F64);
  if (!has_vectors(t) || (t == DType::Bool && name != "where")) return each_lane(&c, want);
  if (name == "where") return where_lanes(c, t);
  if (!f->library) return primitive_lanes(name, t, c);
  const Func *text = library(name, computed(t));
  if (!text) return each_lane(&c, want);
  if (!is_small_float(t)) return on_vectors(text);
  Text r = on_vectors(text);
  return {fmt::format("{}({})", helpers_.need_lanes("round", t, n), r.s), kPrimary, t, false, r.s, n};
}

}  // namespace mlc
