// Scalar expressions on vectors: what differs from lane to lane in a vectorized loop.
#include "arith/affine.h"
#include "arith/prove.h"
#include "arith/simplify.h"
#include "emit/lane_types.h"
#include "num/convert.h"
#include "ops/expr.h"
#include "text/text.h"

namespace mlc {
std::string ExprPrinter::lanes_type(DType t, int mask_bits) const {
  if (t == DType::Bool) t = mask_type(mask_bits);
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
  return form && !varies(form->coefs[0]) && !varies(form->rest) ? form->coefs[0] : nullptr;
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
  return lanes_text(n, fmt::format("{}{{{}}}", lanes_type(elem, bits), list), t, kPrimary, bits);
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
    int n = scope_.lanes.n;
    if (t.s == "true") return lanes_text(n, "~" + type + "{}", DType::Bool, kUnary, bits);
    if (t.s == "false") return lanes_text(n, type + "{}", DType::Bool, kPrimary, bits);
    std::string s = fmt::format("{0} ? ~{1}{{}} : {1}{{}}", wrap(t, kOr), type);
    return lanes_text(n, s, DType::Bool, kTernary, bits);
  }
  if (t.mask != bits)
    t = lanes_text(t.lanes, fmt::format("__builtin_convertvector({}, {})", t.s, type), DType::Bool, kPrimary, bits);
  return t;
}

Text ExprPrinter::select(const Text &m, const Text &a, const Text &b, DType t) {
  int n = scope_.lanes.n;
  if (t == DType::Bool) {
    int bits = m.mask;
    std::string c = wrap(mask(m, bits), kUnary), x = wrap(mask(a, bits), kUnary), y = wrap(mask(b, bits), kUnary);
    return lanes_text(n, fmt::format("({0} & {1}) | (~{0} & {2})", c, x, y), t, kBits, bits);
  }
  std::string c = wrap(mask(m, lane_bits(t)), kEquality);
  return lanes_text(n, fmt::format("{} ? {} : {}", c, wrap(vector(a, t), kOr), wrap(vector(b, t), kOr)), t, kTernary);
}

Text ExprPrinter::chosen(const Text &a, const Text &b, DType t) {
  const Lanes &l = scope_.lanes;
  if (!l.masked()) return a;
  int bits = t == DType::Bool ? std::max(a.mask, 8) : lane_bits(t);
  DType elem = mask_type(bits);
  Text m{l.mask, kPrimary, DType::Bool, false, "", l.n, l.mask_bits};
  if (!l.count.empty()) {
    std::string first = fmt::format("{}({})", helpers_.need_lanes("first", elem, l.n), l.count);
    m = lanes_text(l.n, first, DType::Bool, kPrimary, bits);
  }
  return select(m, a, b, t);
}

Text ExprPrinter::helper_lanes(std::string_view family, DType t, std::initializer_list<Text> args) {
  std::string s = helpers_.need_lanes(family, t, scope_.lanes.n) + "(";
  for (const Text &a : args) s += (s.back() == '(' ? "" : ", ") + vector(a, t).s;
  return lanes_text(scope_.lanes.n, s + ")", t);
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
  if (!e || !e->type->tensor || e->kind == Entity::Placed) {
    fail(l.at, e && e->kind == Entity::Placed ? only_intrinsics(b_, l.buffer, *e)
                                              : fmt::format("{} is no buffer", b_.text(l.buffer)));
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
    return lanes_text(n, r.element->ident, t, kPrimary, r.element->mask);
  }
  if (buffer.lanes) {
    std::string s = fmt::format("{}[{}]", buffer.ident, position(buffer, l.index).s);
    return lanes_text(n, s, t, kPrimary, buffer.mask);
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
    std::string load = helpers_.need_lanes("load_between", elem, n);
    s = fmt::format("{}({}, {}, {}, {})", load, buffer.ident, first.s, begin, end);
  } else {
    s = fmt::format("*(const {} *)({})", helpers_.unaligned(elem, n), from);
    if (from == buffer.ident) s = fmt::format("*(const {} *){}", helpers_.unaligned(elem, n), from);
  }
  Text x{s, s[0] == '*' ? kUnary : kPrimary, t, false, "", n};
  if (t == DType::Bool) {
    s = fmt::format("{} != {}{{}}", wrap(x, kSum), helpers_.vector(DType::U8, n));
    return lanes_text(n, s, t, kEquality, 8);
  }
  if (is_small_float(t)) return lanes_text(n, fmt::format("{}({})", helpers_.need_lanes("decode", t, n), s), t);
  return x;
}

Text ExprPrinter::unary_lanes(const Unary &e, DType want) {
  if (e.op == Op::Not) {
    Text a = print(e.a, DType::Bool);
    return lanes_text(a.lanes, "~" + wrap(a, kUnary), DType::Bool, kUnary, a.mask);
  }
  DType t = type(&e, want);
  if (!has_vectors(t)) return each_lane(&e, want);
  Text a = print(e.a, t);
  if (!is_float(t)) return helper_lanes("neg", t, {a});
  return lanes_text(a.lanes, "-" + (a.s[0] == '-' ? "(" + a.s + ")" : wrap(a, kUnary)), t, kUnary);
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
  int n = scope_.lanes.n, bits = lane_bits(t);
  DType elem = mask_type(bits);
  std::string s, end = hi ? index(hi.e).s : fmt::format("{}", n);
  if (!lo.e) s = fmt::format("{}({})", helpers_.need_lanes("first", elem, n), end);
  else s = fmt::format("{}({}, {})", helpers_.need_lanes("between", elem, n), index(lo.e).s, end);
  return lanes_text(n, s, DType::Bool, kPrimary, bits);
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
    if (e.op == Op::Eq) return lanes_text(n, "~(" + s + ")", t, kUnary, bits);
    return lanes_text(n, s, t, kBits, bits);
  }
  std::string s = fmt::format("{} {} {}", wrap(vector(a, t), kSum), op.text, wrap(vector(b, t), kSum));
  return {s, op.prec, DType::Bool, false, "", n, lane_bits(t)};
}

Text ExprPrinter::binary_lanes(const Binary &e, DType want) {
  int n = scope_.lanes.n;
  if (e.op == Op::And || e.op == Op::Or) {
    if (!harmless(e.b)) return each_lane(&e, DType::Bool);  // b is evaluated only where a lets it
    Text a = print(e.a, DType::Bool), b = print(e.b, DType::Bool);
    int bits = a.lanes ? a.mask : b.mask;
    std::string_view op = e.op == Op::And ? "&" : "|";
    std::string s = fmt::format("{} {} {}", wrap(mask(a, bits), kUnary), op, wrap(mask(b, bits), kUnary));
    return lanes_text(n, s, DType::Bool, kBits, bits);
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

DType ExprPrinter::compared(const Binary &e) const {
  DType t = type(e.a, DType::Invalid);
  return t == DType::Invalid ? type(e.b, DType::Index) : t;
}

}  // namespace mlc
