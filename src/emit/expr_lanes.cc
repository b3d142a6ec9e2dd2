// Scalar expressions on vectors: what differs from lane to lane in a vectorized loop.
#include "arith/affine.h"
#include "arith/prove.h"
#include "arith/simplify.h"
#include "emit/expr.h"
#include "num/convert.h"
#include "ops/expr.h"
#include "text/text.h"

namespace mlc {
namespace {

bool is_packed(DType t) { return is_int(t) && info(t).bits < 8; }
// Elements as they lie in memory.
DType stored(DType t) {
  if (t == DType::Bool || info(t).bits == 8) return is_int(t) ? t : DType::U8;
  return t == DType::F16 || t == DType::BF16 ? DType::U16 : t == DType::Index ? DType::I64 : t;
}
DType computed(DType t) { return is_small_float(t) ? DType::F32 : t; }
// That a vector can hold as it is.
bool has_vectors(DType t) { return t != DType::Index && t != DType::Invalid && !is_packed(t); }
int bits_of(DType t) { return info(computed(t)).bits; }

}  // namespace

std::string ExprPrinter::lanes_type(DType t, int mask_bits) const {
  constexpr DType kMasks[] = {DType::I8, DType::I16, DType::I32, DType::I64};
  if (t == DType::Bool) t = kMasks[std::countr_zero(unsigned(mask_bits)) - 3];
  return helpers_.vector(computed(t), scope_.lanes.n);
}

bool ExprPrinter::varies(const Expr *e) const {
  if (!scope_.lanes.n) return false;
  bool any = false;
  each_expr(e, [&](const Expr *x) {
    Sym name = as<Name>(x) ? to<Name>(x).name : as<Load>(x) && !to<Load>(x).global ? to<Load>(x).buffer : Sym{};
    if (!name) return true;
    Entity *found = scope_.find(name);
    any |= name == scope_.lanes.v || (found && found->lanes);
    return !any;
  });
  return any;
}

bool ExprPrinter::harmless(const Expr *e) const {
  bool ok = true;
  each_expr(e, [&](const Expr *x) {
    auto *l = as<Load>(x);
    if (!l) return ok;
    Entity *buffer = l->global ? nullptr : scope_.find(l->buffer);
    if (buffer && (buffer->kind != Entity::Buffer || buffer->lanes)) return ok;
    Exprs dims = l->global ? m_.constant(l->buffer)->type->dims : buffer ? buffer->type->dims : Exprs{};
    for (size_t d = 0; d < l->index.size() && d < dims.size(); d++)
      ok = ok && provably_inside(b_, l->index[d], dims[d], scope_.bounds);
    return ok;
  });
  return ok;
}

bool ExprPrinter::unit_or_uniform(const Load &l) {
  if (!varies(&l)) return true;
  Entity *e = l.global ? nullptr : scope_.find(l.buffer);
  if (!e) return false;
  if (e->kind != Entity::Buffer || e->lanes) return true;
  const Expr *step = stride(place(*e, l.index));
  return step && is_int(step, 1) && info(e->type->elem).bits >= 8;
}

const Expr *ExprPrinter::in_lane(const Expr *e, int64_t lane) {
  return scope_.lanes.v ? substitute(b_, e, {{scope_.lanes.v, b_.integer(lane)}}) : e;
}

const Expr *ExprPrinter::stride(const Expr *position) {
  if (!scope_.lanes.v) return nullptr;
  auto form = affine(b_, position, b_.one(scope_.lanes.v), scope_.bounds);
  return form && !varies(form->coefs[0]) ? form->coefs[0] : nullptr;
}

// P_f32x4{x[0], x[3], x[6], x[9]}
Text ExprPrinter::each_lane(const Expr *e, DType want) {
  DType t = type(e, want);
  int bits = t == DType::Bool ? 32 : 0, n = scope_.lanes.n;
  std::string list;
  Lanes whole = scope_.lanes;
  for (int lane = 0; lane < n; lane++) {
    scope_.lanes.at = fmt::format("{}", lane);
    Text x = print(shorten_inside(b_, in_lane(e, lane), scope_.bounds), t);
    std::string s = x.s;
    if (t == DType::Bool) s = wrap(x, kOr) + " ? -1 : 0";
    else if (is_int(t) && info(t).bits < 32) s = fmt::format("({}){}", c_value(t), wrap(x, kUnary));
    list += (lane ? ", " : "") + s;
  }
  scope_.lanes = whole;
  DType elem = t == DType::Index ? DType::I64 : is_packed(t) ? (is_signed(t) ? DType::I8 : DType::U8) : t;
  return {fmt::format("{}{{{}}}", lanes_type(elem, bits), list), kPrimary, t, false, "", n, bits};
}

Text ExprPrinter::vector(Text t, DType type) {
  if (t.lanes) return t;
  if (type == DType::Bool) return mask(t, 32);
  DType c = computed(type);
  t.lanes = scope_.lanes.n;
  bool zero = t.s == "0" || t.s == "0u" || t.s == "0.0f" || t.s == "0.0";
  t.s = zero ? lanes_type(c) + "{}" : fmt::format("{}({})", helpers_.need_lanes("splat", c, t.lanes), t.s);
  t.prec = kPrimary;
  return t;
}

Text ExprPrinter::mask(Text t, int bits) {
  std::string type = lanes_type(DType::Bool, bits);
  if (!t.lanes) {
    std::string s = t.s == "true" ? fmt::format("~{}{{}}", type) : fmt::format("{0} ? ~{1}{{}} : {1}{{}}", wrap(t, kOr), type);
    if (t.s == "false") s = type + "{}";
    return {s, t.s == "true" ? kUnary : t.s == "false" ? kPrimary : kTernary, DType::Bool, false, "", scope_.lanes.n, bits};
  }
  if (t.mask != bits)
    t = {fmt::format("__builtin_convertvector({}, {})", t.s, type), kPrimary, DType::Bool, false, "", t.lanes, bits};
  return t;
}

Text ExprPrinter::select(const Text &m, const Text &a, const Text &b, DType t) {
  int n = scope_.lanes.n;
  if (t == DType::Bool) {
    int bits = m.mask;
    std::string c = wrap(mask(m, bits), kUnary), x = wrap(mask(a, bits), kUnary), y = wrap(mask(b, bits), kUnary);
    return {fmt::format("({0} & {1}) | (~{0} & {2})", c, x, y), kBits, t, false, "", n, bits};
  }
  std::string c = wrap(mask(m, bits_of(t)), kEquality);
  return {fmt::format("{} ? {} : {}", c, wrap(vector(a, t), kOr), wrap(vector(b, t), kOr)), kTernary, t, false, "", n};
}

Text ExprPrinter::chosen(const Text &a, const Text &b, DType t) {
  const Lanes &l = scope_.lanes;
  if (!l.masked()) return a;
  int bits = t == DType::Bool ? std::max(a.mask, 8) : bits_of(t);
  constexpr DType kMasks[] = {DType::I8, DType::I16, DType::I32, DType::I64};
  DType elem = kMasks[std::countr_zero(unsigned(bits)) - 3];
  Text m{l.mask, kPrimary, DType::Bool, false, "", l.n, l.mask_bits};
  if (!l.count.empty()) m = {fmt::format("{}({})", helpers_.need_lanes("first", elem, l.n), l.count), kPrimary, DType::Bool, false, "", l.n, bits};
  return select(m, a, b, t);
}

Text ExprPrinter::helper_lanes(std::string_view family, DType t, std::initializer_list<Text> args) {
  std::string s = helpers_.need_lanes(family, t, scope_.lanes.n) + "(";
  for (const Text &a : args) s += (s.back() == '(' ? "" : ", ") + vector(a, t).s;
  return {s + ")", kPrimary, t, false, "", scope_.lanes.n};
}

Text ExprPrinter::lanes(const Expr *e, DType want) {
  switch (e->kind) {
    case Kind::Name: {
      Entity *x = scope_.find(to<Name>(e).name);
      if (!x || !x->lanes) break;
      x->seen++;
      return {x->ident, kPrimary, x->type->elem, false, "", x->lanes, x->mask};
    }
    case Kind::Load: return load_lanes(to<Load>(e));
    case Kind::Unary: return unary_lanes(to<Unary>(e), want);
    case Kind::Binary: return binary_lanes(to<Binary>(e), want);
    case Kind::Call: return call_lanes(to<Call>(e), want);
    default: break;
  }
  return each_lane(e, want);
}

ExprPrinter::Register ExprPrinter::register_of(const Entity &e, Exprs index, uint32_t at) {
  int64_t base = 0, coef = 0;
  Bounds known(b_);
  const Expr *position = place(e, index);
  if (scope_.lanes.v) known.index(scope_.lanes.v);
  auto form = affine(b_, position, scope_.lanes.v ? b_.one(scope_.lanes.v) : Syms{}, known);
  bool ok = form && int_value(form->rest, &base) && (!scope_.lanes.v || int_value(form->coefs[0], &coef));
  Entity *x = ok ? scope_.find(b_.sym(fmt::format("{}'{}", e.ident, base / e.unit))) : nullptr;
  if (!x) {
    fail(at, fmt::format("{} is in registers, its element must be a constant", e.ident));
    return {};
  }
  if (x->lanes) return {x, scope_.lanes.at};             // of each lane's own
  if (coef) return {x, scope_.lanes.at};                 // a vector whose lanes are the elements
  return {x, e.unit == 1 ? "" : fmt::format("{}", base % e.unit)};
}

Text ExprPrinter::load_lanes(const Load &l, X lo, X hi) {
  Entity global, *e = l.global ? &global : scope_.find(l.buffer);
  if (l.global) {
    const Const *c = m_.constant(l.buffer);
    global.kind = Entity::Buffer, global.ident = constant(l.buffer), global.type = c->type;
  }
  if (!e || !e->type->tensor) {
    fail(l.at, fmt::format("{} is no buffer", b_.text(l.buffer)));
    return {"0", kPrimary, DType::Index, false, ""};
  }
  e->seen++;
  DType t = e->type->elem;
  int n = scope_.lanes.n;
  if (e->kind == Entity::Variable) return {e->ident, kPrimary, t, false, "", e->lanes, e->mask};
  Entity buffer = *e;
  if (buffer.kind == Entity::Registers) {
    Register r = register_of(buffer, l.index, l.at);
    if (!r.element) return {"0", kPrimary, t, false, ""};
    r.element->seen++;
    return {r.element->ident, kPrimary, t, false, "", n, r.element->mask};
  }
  if (buffer.lanes) {
    std::string s = fmt::format("{}[{}]", buffer.ident, position(buffer, l.index).s);
    return {s, kPrimary, t, false, "", n, buffer.mask};
  }
  const Expr *at = place(buffer, l.index), *step = stride(at);
  if (!step || info(t).bits < 8) return each_lane(&l, t);
  DType elem = stored(t);
  Text first = index(shorten(b_, in_lane(at, 0), scope_.bounds));
  std::string from = first.s == "0" ? buffer.ident : fmt::format("{} + {}", buffer.ident, wrap(first, kSum)), s;
  if (!is_int(step, 1)) {
    s = fmt::format("{}({}, {})", helpers_.need_lanes("strided", elem, n), from, index(step).s);
  } else if ((lo || !scope_.lanes.count.empty()) && !harmless(&l)) {
    std::string begin = lo ? index(lo.e).s : "0", end = hi ? index(hi.e).s : scope_.lanes.count;
    if (hi && !scope_.lanes.count.empty())
      end = fmt::format("{}({}, {})", helpers_.need("min", DType::I64), end, scope_.lanes.count);
    s = fmt::format("{}({}, {}, {}, {})", helpers_.need_lanes("load_between", elem, n), buffer.ident, first.s, begin, end);
  } else {
    s = fmt::format("*(const {} *)({})", helpers_.unaligned(elem, n), from);
    if (from == buffer.ident) s = fmt::format("*(const {} *){}", helpers_.unaligned(elem, n), from);
  }
  Text x{s, s[0] == '*' ? kUnary : kPrimary, t, false, "", n};
  if (t == DType::Bool) return {fmt::format("{} != {}{{}}", wrap(x, kSum), helpers_.vector(DType::U8, n)), kEquality, t, false, "", n, 8};
  if (is_small_float(t)) return {fmt::format("{}({})", helpers_.need_lanes("decode", t, n), s), kPrimary, t, false, "", n};
  return x;
}

Text ExprPrinter::unary_lanes(const Unary &e, DType want) {
  if (e.op == Op::Not) {
    Text a = print(e.a, DType::Bool);
    return {"~" + wrap(a, kUnary), kUnary, DType::Bool, false, "", a.lanes, a.mask};
  }
  DType t = type(&e, want);
  if (!has_vectors(t)) return each_lane(&e, want);
  Text a = print(e.a, t);
  if (!is_float(t)) return helper_lanes("neg", t, {a});
  return {"-" + (a.s[0] == '-' ? "(" + a.s + ")" : wrap(a, kUnary)), kUnary, t, false, "", a.lanes};
}

bool ExprPrinter::between(const Expr *cond, X &lo, X &hi) {
  auto *x = as<Binary>(cond);
  if (!x || !scope_.lanes.v) return false;
  if (x->op == Op::And) return between(x->a, lo, hi) && between(x->b, lo, hi);
  if (x->op < Op::Lt || x->op > Op::Ge || compared(*x) != DType::Index) return false;
  auto form = affine(b_, b_.binary(Op::Sub, x->a, x->b), b_.one(scope_.lanes.v), scope_.bounds);
  if (!form || varies(form->rest)) return false;
  bool up = is_int(form->coefs[0], 1), less = x->op == Op::Lt || x->op == Op::Le;
  if (!up && !is_int(form->coefs[0], -1)) return false;
  X edge = up ? -X(b_, form->rest) : X(b_, form->rest);  // v < edge, v <= edge, v > edge, v >= edge
  bool below = up == less, past = up ? x->op == Op::Le || x->op == Op::Gt : x->op == Op::Ge || x->op == Op::Lt;
  edge = X(b_, simplify(b_, (past ? edge + 1 : edge).e, scope_.bounds));
  if (below) hi = hi ? min(hi, edge) : edge;
  else lo = lo ? max(lo, edge) : edge;
  return true;
}

Text ExprPrinter::lanes_between(X lo, X hi, DType t) {
  int n = scope_.lanes.n, bits = bits_of(t);
  constexpr DType kMasks[] = {DType::I8, DType::I16, DType::I32, DType::I64};
  DType elem = kMasks[std::countr_zero(unsigned(bits)) - 3];
  std::string s, end = hi ? index(hi.e).s : fmt::format("{}", n);
  if (!lo.e) s = fmt::format("{}({})", helpers_.need_lanes("first", elem, n), end);
  else s = fmt::format("{}({}, {})", helpers_.need_lanes("between", elem, n), index(lo.e).s, end);
  return {s, kPrimary, DType::Bool, false, "", n, bits};
}

Text ExprPrinter::compare_lanes(const Binary &e) {
  DType t = compared(e);
  int n = scope_.lanes.n;
  if (t == DType::Index) {
    X lo, hi;
    return between(&e, lo, hi) ? lanes_between(lo, hi, DType::I32) : each_lane(&e, DType::Bool);
  }
  if (!has_vectors(t)) return each_lane(&e, DType::Bool);
  Text a = print(e.a, t), b = print(e.b, t);
  Infix op = infix(e.op);
  if (t == DType::Bool) {
    if (e.op != Op::Eq && e.op != Op::Ne) return each_lane(&e, DType::Bool);
    int bits = a.lanes ? a.mask : b.mask;
    std::string s = fmt::format("{} ^ {}", wrap(mask(a, bits), kUnary), wrap(mask(b, bits), kUnary));
    if (e.op == Op::Eq) return {"~(" + s + ")", kUnary, t, false, "", n, bits};
    return {s, kBits, t, false, "", n, bits};
  }
  std::string s = fmt::format("{} {} {}", wrap(vector(a, t), kSum), op.text, wrap(vector(b, t), kSum));
  return {s, op.prec, DType::Bool, false, "", n, bits_of(t)};
}

Text ExprPrinter::binary_lanes(const Binary &e, DType want) {
  int n = scope_.lanes.n;
  if (e.op == Op::And || e.op == Op::Or) {
    if (!harmless(e.b)) return each_lane(&e, DType::Bool);  // b is evaluated only where a lets it
    Text a = print(e.a, DType::Bool), b = print(e.b, DType::Bool);
    int bits = a.lanes ? a.mask : b.mask;
    std::string s = fmt::format("{} {} {}", wrap(mask(a, bits), kUnary), e.op == Op::And ? "&" : "|", wrap(mask(b, bits), kUnary));
    return {s, kBits, DType::Bool, false, "", n, bits};
  }
  if (e.op >= Op::Eq && e.op <= Op::Ge) return compare_lanes(e);
  DType t = type(&e, want);
  if (!has_vectors(t)) return each_lane(&e, want);
  Text a = print(e.a, t), b = print(e.b, t);
  if (!is_float(t)) return helper_lanes(family_of(e.op), t, {a, b});
  Text r{joined(a, infix(e.op), b), infix(e.op).prec, t, false, "", n};  // a scalar stands for all lanes
  if (!is_small_float(t)) return r;
  Text rounded{fmt::format("{}({})", helpers_.need_lanes("round", t, n), r.s), kPrimary, t, false, r.s, n};
  return rounded;
}

Text ExprPrinter::where_lanes(const Call &c, DType t) {
  const Expr *yes = c.args[1], *no = c.args[2];
  int n = scope_.lanes.n;
  if (!has_vectors(t)) return each_lane(&c, t);
  if (!varies(c.args[0])) {
    Text cond = print(c.args[0], DType::Bool), a = print(yes, t), b = print(no, t);
    int bits = t == DType::Bool ? std::max({a.mask, b.mask, 8}) : 0;
    a = bits ? mask(a, bits) : vector(a, t), b = bits ? mask(b, bits) : vector(b, t);
    return {fmt::format("{} ? {} : {}", wrap(cond, kOr), wrap(a, kOr), wrap(b, kOr)), kTernary, t, false, "", n, bits};
  }
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
    return {fmt::format("{} != {}", wrap(v, kSum), zero.s), kEquality, to, false, "", n, bits_of(from)};
  }
  if (from == DType::Bool) {  // -1 or 0
    if (is_small_float(to)) return each_lane(e, to);
    Text m = mask(v, is_float(to) ? bits_of(to) : info(to).bits);
    if (!is_float(to)) return {fmt::format("({})(-{})", lanes_type(to), wrap(m, kUnary)), kUnary, to, false, "", n};
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
    return {fmt::format("{}({})", helpers_.lane_calls(helpers_.cast(from, to), args, to, n), v.s), kPrimary, to, false, "", n};
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
    r.type = DType::Bool, r.mask = bits_of(k);
    return r;
  }
  if (name == "bitand" || name == "bitor" || name == "bitxor") {
    std::string_view op = name == "bitand" ? "&" : name == "bitor" ? "|" : "^";
    std::string s = fmt::format("{} {} {}", wrap(vector(args[0], t), kUnary), op, wrap(vector(args[1], t), kUnary));
    return {s, kBits, t, false, "", n};
  }
  if (name == "bitnot") return {"~" + wrap(args[0], kUnary), kUnary, t, false, "", n};
  int64_t by;
  if ((name == "shl" || name == "shr") && int_value(c.args[1], &by) && by >= 0 && by < info(t).bits)
    return {fmt::format("{}({}, {})", helpers_.need_lanes(name == "shl" ? "shl_by" : "shr_by", t, n), args[0].s, by), kPrimary, t, false, "", n};
  if (args.size() == 1) return done(helper_lanes(name, k, {args[0]}), name == "abs");
  if (args.size() == 2) return done(helper_lanes(name, k, {args[0], args[1]}));
  return done(helper_lanes(name, k, {args[0], args[1], args[2]}));
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
    return {fmt::format("{}({})", scalar_function(f, n), list), kPrimary, t, false, "", n, t == DType::Bool ? 32 : 0};
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
    return {fmt::format("({}){}", lanes_type(to), wrap(v, kUnary)), kUnary, to, false, "", n};
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

DType ExprPrinter::compared(const Binary &e) const {
  DType t = type(e.a, DType::Invalid);
  return t == DType::Invalid ? type(e.b, DType::Index) : t;
}

// ---- stores

void ExprPrinter::store_lanes(const Load &target, const Expr *value, const std::function<void(std::string)> &line) {
  Entity *e = scope_.find(target.buffer);
  if (!e || !e->type->tensor || !e->writable) return fail(target.at, fmt::format("{} cannot be written", b_.text(target.buffer)));
  Entity buffer = *e;
  DType t = buffer.type->elem;
  int n = scope_.lanes.n;
  std::string own;  // a vector of the lanes' own
  int bits = buffer.mask;
  const Expr *at = nullptr, *step = nullptr;
  if (buffer.kind == Entity::Registers) {
    Register r = register_of(buffer, target.index, target.at);
    if (!r.element) return;
    if (varies(&target)) own = r.element->ident, bits = r.element->mask;
  } else if (buffer.kind == Entity::Variable) {
    if (buffer.lanes) own = buffer.ident;
  } else {
    at = place(buffer, target.index), step = stride(at);
    e->seen++;
    if (buffer.lanes) own = fmt::format("{}[{}]", buffer.ident, index(at).s);
  }
  if (!own.empty()) {
    auto *x = as<Binary>(value);  // y = y + e
    bool update = x && !scope_.lanes.masked() && (t == DType::F32 || t == DType::F64) && as<Load>(x->a) &&
                  (x->op == Op::Add || x->op == Op::Sub || x->op == Op::Mul) && equal(x->a, &target);
    if (update) return line(fmt::format("{} {}= {};", own, infix(x->op).text, print(x->b, t).s));
    Text v = print(value, t);
    v = t == DType::Bool ? mask(v, bits) : vector(v, t);
    Text old{own, kPrimary, t, false, "", n, bits};
    return line(fmt::format("{} = {};", own, chosen(v, old, t).s));
  }
  bool along = step && is_int(step, 1) && info(t).bits >= 8 && scope_.lanes.mask.empty();
  if (!along || !varies(&target)) return store_each(target, value, line);
  Text v = print(value, t);
  DType elem = stored(t);
  std::string s;
  if (t == DType::Bool) s = fmt::format("({})(-{})", helpers_.vector(DType::U8, n), wrap(mask(v, 8), kUnary));
  else if (is_small_float(t)) s = fmt::format("{}({})", helpers_.need_lanes("encode", t, n), v.unrounded.empty() ? vector(v, t).s : v.unrounded);
  else s = vector(v, t).s;
  Text first = index(shorten(b_, in_lane(at, 0), scope_.bounds));
  std::string to = first.s == "0" ? buffer.ident : fmt::format("{} + {}", buffer.ident, wrap(first, kSum));
  if (!scope_.lanes.count.empty())
    return line(fmt::format("{}({}, {}, {});", helpers_.need_lanes("store_first", elem, n), to, s, scope_.lanes.count));
  line(fmt::format("*({} *){} = {};", helpers_.unaligned(elem, n), to == buffer.ident ? to : "(" + to + ")", s));
}

// One lane after the other: what lies apart in memory, and y = y op e, where the lanes meet in one element.
void ExprPrinter::store_each(const Load &target, const Expr *value, const std::function<void(std::string)> &line) {
  DType t = scope_.find(target.buffer)->type->elem;
  Lanes whole = scope_.lanes;
  const Expr *term = value;
  std::string pad;
  std::function<const Expr *(const Expr *)> with = [](const Expr *x) { return x; };
  if (!varies(&target)) {
    if (auto *x = as<Binary>(value)) term = x->b, with = [&, x](const Expr *e) { return b_.binary(x->op, x->a, e); };
    if (auto *c = as<Call>(value)) term = c->args[1], with = [&, c](const Expr *e) { return b_.call(c->callee, b_.list({c->args[0], e}), c->at, c->global); };
  }
  if (varies(term) && has_vectors(t)) {
    Text v = print(term, t);
    if (v.lanes) {
      Entity values;
      values.ident = scope_.namer.make("values"), values.type = b_.scalar(t), values.lanes = v.lanes, values.mask = v.mask;
      line("{");
      pad = "  ";
      line(fmt::format("  const {} {} = {};", lanes_type(t, v.mask), values.ident, v.s));
      Sym name = b_.sym(values.ident + "'");
      scope_.define(name, values);
      term = b_.name(name);
    }
  }
  std::string lane = scope_.namer.make("lane"), condition = whole.count.empty() ? fmt::format("{}", whole.n) : whole.count;
  scope_.lanes.at = lane;
  scope_.lanes.count.clear(), scope_.lanes.mask.clear();
  if (Entity *v = scope_.find(whole.v)) v->ident = lane;
  std::string s = store(target, with(term));
  scope_.lanes = whole;
  std::string taken = whole.mask.empty() ? "" : fmt::format("if ({}[{}] != 0) ", whole.mask, lane);
  line(fmt::format("{4}for (int64_t {0} = 0; {0} < {1}; {0}++) {2}{3};", lane, condition, taken, s, pad));
  if (!pad.empty()) line("}");
}

}  // namespace mlc
