#include "emit/expr.h"

#include <cmath>

#include "arith/simplify.h"
#include "num/convert.h"
#include "ops/expr.h"
#include "text/text.h"

namespace mlc {
namespace {

bool is_index(DType t) { return t == DType::Index; }
bool is_packed(DType t) { return is_int(t) && info(t).bits < 8; }
DType byte_of(DType t) { return is_signed(t) ? DType::I8 : DType::U8; }
// C++ promotes narrower ones to int, so that infix arithmetic is right for these alone.
bool is_plain_unsigned(DType t) { return t == DType::U32 || t == DType::U64; }

}  // namespace

Infix infix(Op op) {
  switch (op) {
    case Op::Or: return {"||", kOr};
    case Op::And: return {"&&", kAnd};
    case Op::Eq: return {"==", kEquality};
    case Op::Ne: return {"!=", kEquality};
    case Op::Lt: return {"<", kRelation};
    case Op::Le: return {"<=", kRelation};
    case Op::Gt: return {">", kRelation};
    case Op::Ge: return {">=", kRelation};
    case Op::Add: return {"+", kSum};
    case Op::Sub: return {"-", kSum};
    case Op::Mul: return {"*", kProduct};
    case Op::Div: case Op::FloorDiv: return {"/", kProduct};
    default: return {"%", kProduct};
  }
}
std::string_view family_of(Op op) {
  switch (op) {
    case Op::Add: return "add";
    case Op::Sub: return "sub";
    case Op::Mul: return "mul";
    case Op::Div: return "div";
    case Op::FloorDiv: return "floordiv";
    default: return "mod";
  }
}

std::string joined(const Text &a, Infix op, const Text &b) {
  return fmt::format("{} {} {}", wrap(a, op.prec), op.text, wrap(b, op.prec + 1));
}

namespace {

std::string decimal(std::string s, bool f32) {
  if (s.find_first_of(".e") == s.npos) s += ".0";
  return s + (f32 ? "f" : "");
}

bool divides(const Expr *e) {
  bool yes = false;
  each_expr(e, [&](const Expr *x) {
    auto *b = as<Binary>(x);
    yes |= b && (b->op == Op::FloorDiv || b->op == Op::Mod);
    return !yes && x->kind != Kind::Load;
  });
  return yes;
}

}  // namespace

// One lane of a vector.
static Text lane_of(const Entity &e, const std::string &at) {
  std::string s = fmt::format("{}[{}]", e.ident, at);
  DType t = e.type->elem;
  return t == DType::Bool && e.mask ? Text{s + " != 0", kEquality, t, false, ""} : Text{s, kPrimary, t, false, ""};
}

std::string wrap(const Text &t, int prec) { return t.prec < prec ? "(" + t.s + ")" : t.s; }

std::string literal(DType t, Scalar v) {
  if (t == DType::Bool) return v.as_bool() ? "true" : "false";
  if (is_float(t)) {
    bool f64 = t == DType::F64;
    double d = to_double(t, v);
    std::string_view suffix = f64 ? "" : "f", sign = std::signbit(d) ? "-" : "";
    if (std::isnan(d)) return fmt::format("{}__builtin_nan{}(\"\")", sign, suffix);
    if (std::isinf(d)) return fmt::format("{}__builtin_inf{}()", sign, suffix);
    return decimal(f64 ? fmt::format("{}", d) : fmt::format("{}", v.as_f32()), !f64);
  }
  if (is_plain_unsigned(t)) return fmt::format("{}u", v.as_uint());
  if (!is_signed(t)) return fmt::format("{}", v.as_uint());
  if (v.as_int() == INT64_MIN) return "(-9223372036854775807 - 1)";
  if (t == DType::I32 && v.as_int() == INT32_MIN) return "(-2147483647 - 1)";
  return fmt::format("{}", v.as_int());
}

DType ExprPrinter::type(const Expr *e, DType want) const {
  DType t = type_of(scope_.env, e, DType::Invalid, nullptr);
  return t == DType::Invalid ? want : t;
}

Text ExprPrinter::helper(std::string_view family, DType t, std::initializer_list<std::string_view> args) {
  std::string s = helpers_.need(family, t) + "(";
  for (std::string_view a : args) s.append(s.back() == '(' ? "" : ", ").append(a);
  return {s + ")", kPrimary, t, false, ""};
}

Text ExprPrinter::rounded(DType t, Text v) {
  v.type = t;
  if (!is_small_float(t)) return v;
  Text r = helper("round", t, {v.s});
  r.unrounded = v.s;
  return r;
}

Text ExprPrinter::number(const Expr *e, DType t) {
  Scalar v;
  if (auto *i = as<Int>(e)) {
    v = is_float(t) ? scalar_of(t, i->value) : narrow(t, i->value);
  } else {
    auto &f = to<Float>(e);
    v = f.nan_bits ? from_bits(t, f.nan_bits) : scalar_of(t, f.value);
    if (std::isnan(f.value) && !f.nan_bits && is_small_float(t)) v = Scalar::of_f32(std::bit_cast<float>(0x7fc00000));
  }
  std::string s = literal(t, v);
  int prec = s[0] == '-' ? kUnary : kPrimary;
  return {s, prec, t, false, ""};
}

constexpr int kDeepest = 2000;  // of nested expressions, which compilers and readers have to take

Text ExprPrinter::print(const Expr *e, DType want) {
  struct Level {
    int &depth;
    explicit Level(int &d) : depth(d) { depth++; }
    ~Level() { depth--; }
  } level(depth_);
  if (depth_ > kDeepest) {
    fail(e->at, fmt::format("expressions are nested more than {} deep: values of their own in between help", kDeepest));
    return {"0", kPrimary, want, false, ""};
  }
  if (scope_.lanes.whole() && varies(e)) return lanes(e, want);
  switch (e->kind) {
    case Kind::Int: return number(e, want == DType::Invalid ? DType::I64 : want);
    case Kind::Float: return number(e, want == DType::Invalid ? DType::F64 : want);
    case Kind::Bool: return {to<Bool>(e).value ? "true" : "false", kPrimary, DType::Bool, false, ""};
    case Kind::Name: {
      Entity *x = scope_.find(to<Name>(e).name);
      if (!x) break;
      x->seen++;
      if (x->lanes) return lane_of(*x, scope_.lanes.at);
      return {x->ident, kPrimary, x->type->elem, x->wild, ""};
    }
    case Kind::Load: return load(to<Load>(e));
    case Kind::Unary: return unary(to<Unary>(e), want);
    case Kind::Binary: return binary(to<Binary>(e), want);
    case Kind::Call: return call(to<Call>(e), want);
    default: break;
  }
  fail(e->at, fmt::format("{} cannot be emitted here", mlc::print(b_, e)));
  return {"0", kPrimary, want, false, ""};
}

const Expr *ExprPrinter::place(const Entity &e, Exprs index) {
  X at;
  Exprs dims = e.type->dims;
  for (size_t d = 0; d < index.size(); d++) {
    X i{b_, index[d]};
    if (e.strides.empty()) at = at ? at * X{b_, dims[d]} + i : i;
    else at = at ? at + i * X{b_, e.strides[d]} : i * X{b_, e.strides[d]};
  }
  if (!at.e) at = lit(b_, int64_t(0));
  return divides(at.e) ? shorten(b_, at.e, scope_.bounds) : at.e;
}

Text ExprPrinter::position(const Entity &e, Exprs index) { return this->index(place(e, index)); }

std::string ExprPrinter::pointer(const Entity &e, Exprs index) {
  Text at = position(e, index);
  return at.s == "0" ? e.ident : fmt::format("{} + {}", e.ident, wrap(at, kSum));
}

std::string only_intrinsics(const Build &b, Sym buffer, const Entity &e) {
  return fmt::format("{} is in {}, which intrinsics alone read and write", b.text(buffer), b.text(e.type->scope));
}

Text ExprPrinter::load(const Load &l) {
  Entity global, *e = l.global ? &global : scope_.find(l.buffer);
  if (l.global) {
    const Const *c = m_.constant(l.buffer);
    global = {Entity::Buffer, constant(l.buffer), c->type, {}, "", false, false, 0, 0};
  }
  if (!e || !e->type->tensor || e->kind == Entity::Placed) {
    fail(l.at, e && e->kind == Entity::Placed ? only_intrinsics(b_, l.buffer, *e)
                                              : fmt::format("{} is no buffer", b_.text(l.buffer)));
    return {"0", kPrimary, DType::Index, false, ""};
  }
  e->seen++;
  DType t = e->type->elem;
  bool wild = is_index(t);
  if (e->kind == Entity::Variable) return e->lanes ? lane_of(*e, scope_.lanes.at) : Text{e->ident, kPrimary, t, wild, ""};
  Entity buffer = *e;
  if (e->kind == Entity::Registers) {
    Register r = register_of(buffer, l.index, l.at);
    if (!r.element) return {"0", kPrimary, t, false, ""};
    r.element->seen++;
    Entity element = *r.element;
    return r.lane.empty() ? Text{element.ident, kPrimary, t, wild, ""} : lane_of(element, r.lane);
  }
  Text at = position(buffer, l.index);
  if (info(t).bits < 8) {
    std::string i = buffer.first.empty() ? at.s : fmt::format("{} + {}", buffer.first, wrap(at, kSum));
    return helper("load", t, {buffer.ident, i});
  }
  std::string s = fmt::format("{}[{}]", buffer.ident, at.s);
  if (buffer.lanes) {
    buffer.ident = s;
    return lane_of(buffer, scope_.lanes.at);
  }
  if (t == DType::Bool) return {s + " != 0", kEquality, t, false, ""};
  if (is_small_float(t)) return helper("decode", t, {s});
  return {s, kPrimary, t, wild, ""};
}

std::string ExprPrinter::store(const Load &target, const Expr *value) {
  Entity *e = scope_.find(target.buffer);
  if (!e || !e->type->tensor || !e->writable || e->kind == Entity::Placed) {
    fail(target.at, e && e->kind == Entity::Placed ? only_intrinsics(b_, target.buffer, *e) : fmt::format("{} cannot be written", b_.text(target.buffer)));
    return "";
  }
  Entity buffer = *e;
  DType t = buffer.type->elem;
  bool variable = buffer.kind == Entity::Variable;
  std::string place = variable ? buffer.ident : "", at;
  if (buffer.kind == Entity::Registers) {
    Register r = register_of(buffer, target.index, target.at);
    if (!r.element) return "";
    variable = true;
    place = r.lane.empty() ? r.element->ident : fmt::format("{}[{}]", r.element->ident, r.lane);
    buffer.mask = r.lane.empty() ? 0 : r.element->mask;
  } else if (!variable) {
    if (!e->array) e->seen++;
    at = position(buffer, target.index).s;
    place = fmt::format("{}[{}]", buffer.ident, at);
  }
  if (buffer.kind != Entity::Registers && buffer.lanes)  // of each lane's own
    place += fmt::format("[{}]", scope_.lanes.at), variable = true;
  if (buffer.mask) return fmt::format("{} = {} ? -1 : 0", place, text(value, t));
  // y = y + e
  if (auto *b = as<Binary>(value); b && (b->op == Op::Add || b->op == Op::Sub || b->op == Op::Mul)) {
    auto *l = as<Load>(b->a);
    if (l && !l->global && (t == DType::F32 || t == DType::F64 || is_plain_unsigned(t)) && equal(l, &target))
      return fmt::format("{} {}= {}", place, infix(b->op).text, text(b->b, t));
  }
  Text v = print(value, t);
  if (variable) return fmt::format("{} = {}", place, v.s);
  if (info(t).bits < 8) {
    std::string i = buffer.first.empty() ? at : fmt::format("{} + ({})", buffer.first, at);
    return helper("store", t, {buffer.ident, i, v.unrounded.empty() ? v.s : v.unrounded}).s;
  }
  if (is_small_float(t))
    return fmt::format("{} = {}", place, helper("encode", t, {v.unrounded.empty() ? v.s : v.unrounded}).s);
  return fmt::format("{} = {}", place, v.s);
}

Text ExprPrinter::unary(const Unary &e, DType want) {
  if (e.op == Op::Not) return {"!" + wrap(print(e.a, DType::Bool), kUnary), kUnary, DType::Bool, false, ""};
  DType t = type(&e, want);
  Text a = print(e.a, t);
  if (is_packed(t)) return helper("narrow", t, {fmt::format("-{}", wrap(a, kUnary))});
  bool plain = is_float(t) || is_plain_unsigned(t) || (is_index(t) && !a.wild);
  if (!plain) return helper("neg", t, {a.s});
  if (is_plain_unsigned(t)) return {"0 - " + wrap(a, kProduct), kSum, t, false, ""};
  return {"-" + (a.s[0] == '-' ? "(" + a.s + ")" : wrap(a, kUnary)), kUnary, t, false, ""};
}

// The least or greatest number of a type: g++ warns that comparing with it is idle.
static bool at_limit(const Expr *e, DType t) {
  int64_t v;
  if (!is_int(t) || !int_value(e, &v)) return false;
  int bits = info(t).bits;
  int64_t high = is_signed(t) || bits == 64 ? INT64_MAX >> (64 - bits) : (int64_t(1) << bits) - 1;
  return v == high || v == (is_signed(t) ? -high - 1 : 0);
}

Text ExprPrinter::binary(const Binary &e, DType want) {
  Infix op = infix(e.op);
  if (e.op == Op::And || e.op == Op::Or) {
    Text a = print(e.a, DType::Bool), b = print(e.b, DType::Bool);
    auto side = [&](const Text &t) { return e.op == Op::Or && t.prec == kAnd ? "(" + t.s + ")" : wrap(t, op.prec); };
    return {fmt::format("{} {} {}", side(a), op.text, side(b)), op.prec, DType::Bool, false, ""};
  }
  if (e.op >= Op::Eq && e.op <= Op::Ge) {
    DType t = type(e.a, DType::Invalid);
    if (t == DType::Invalid) t = type(e.b, DType::Index);
    Text a = print(e.a, t), b = print(e.b, t);
    bool wild = a.wild || b.wild;
    if (a.s == b.s || at_limit(e.a, t) || at_limit(e.b, t)) {
      constexpr std::string_view kFamily[] = {"equal", "unequal", "less", "less_equal", "greater", "greater_equal"};
      std::string_view family = kFamily[int(e.op) - int(Op::Eq)];
      return {helper(family, is_small_float(t) ? DType::F32 : t, {a.s, b.s}).s, kPrimary, DType::Bool, wild, ""};
    }
    std::string s = fmt::format("{} {} {}", wrap(a, kSum), op.text, wrap(b, kSum));
    return {s, op.prec, DType::Bool, wild, ""};
  }
  bool known = typed_ == &e;  // operands of arithmetic have the type of the whole: asked for once
  DType t = known ? want : type(&e, want);
  typed_ = e.a;
  Text a = print(e.a, t);
  typed_ = e.b;
  Text b = print(e.b, t);
  typed_ = nullptr;
  return arithmetic(e.op, t, a, b, e);
}

Text ExprPrinter::index_arithmetic(Op op, const Text &a, const Text &b, const Binary &e) {
  bool wild = a.wild || b.wild;
  bool plain = !wild;
  if (op == Op::Div || op == Op::FloorDiv || op == Op::Mod)
    plain = interval(e.a, scope_.bounds).lo >= 0 && interval(e.b, scope_.bounds).lo > 0;
  if (plain) {
    std::string s = op == Op::Add ? wrap(a, kSum) + " + " + wrap(b, kSum) : joined(a, infix(op), b);
    return {s, infix(op).prec, DType::Index, wild, ""};
  }
  Text r = helper(family_of(op), DType::I64, {a.s, b.s});
  r.type = DType::Index, r.wild = wild;
  return r;
}

Text ExprPrinter::arithmetic(Op op, DType t, const Text &a, const Text &b, const Binary &e) {
  if (is_float(t)) {
    if (op == Op::FloorDiv || op == Op::Mod) fail(e.at, "// and % are of integers");
    return rounded(t, {joined(a, infix(op), b), infix(op).prec, t, false, ""});
  }
  if (is_index(t)) return index_arithmetic(op, a, b, e);
  int64_t divisor = 0;
  bool divides = op == Op::Div || op == Op::FloorDiv || op == Op::Mod;
  bool safe = is_plain_unsigned(t);
  if (divides) safe = int_value(e.b, &divisor) && divisor > 0 && (op == Op::Div || !is_signed(t));
  if (safe && (is_plain_unsigned(t) || t == DType::I32 || t == DType::I64))
    return {joined(a, infix(op), b), infix(op).prec, t, false, ""};
  if (!is_packed(t)) return helper(family_of(op), t, {a.s, b.s});
  return helper("narrow", t, {helper(family_of(op), byte_of(t), {a.s, b.s}).s});
}

}  // namespace mlc
