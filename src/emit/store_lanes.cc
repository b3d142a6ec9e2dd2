// Stores of vectors.
#include <fmt/core.h>

#include "arith/simplify.h"
#include "emit/lane_types.h"

namespace mlc {

void ExprPrinter::store_lanes(const Load &target, const Expr *value, const std::function<void(std::string)> &line) {
  Entity *e = scope_.find(target.buffer);
  if (!e || !e->type->tensor || !e->writable || e->kind == Entity::Placed)
    return fail(target.at, e && e->kind == Entity::Placed ? only_intrinsics(b_, target.buffer, *e) : fmt::format("{} cannot be written", b_.text(target.buffer)));
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
  if (t == DType::Bool) {
    s = fmt::format("({})(-{})", helpers_.vector(DType::U8, n), wrap(mask(v, 8), kUnary));
  } else {
    s = v.unrounded.empty() ? vector(v, t).s : v.unrounded;
    if (is_small_float(t)) s = fmt::format("{}({})", helpers_.need_lanes("encode", t, n), s);
  }
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
    if (auto *x = as<Binary>(value)) {
      term = x->b;
      with = [&, x](const Expr *e) { return b_.binary(x->op, x->a, e); };
    } else if (auto *c = as<Call>(value)) {
      term = c->args[1];
      with = [&, c](const Expr *e) { return b_.call(c->callee, b_.list({c->args[0], e}), c->at, c->global); };
    }
  }
  if (varies(term) && has_vectors(t)) {
    Text v = print(term, t);
    if (v.lanes) {
      Entity values;
      values.ident = scope_.namer.make("values"), values.type = b_.scalar(t);
      values.lanes = v.lanes, values.mask = v.mask;
      line("{");
      pad = "  ";
      line(fmt::format("  const {} {} = {};", lanes_type(t, v.mask), values.ident, v.s));
      Sym name = b_.sym(values.ident + "'");
      scope_.define(name, values);
      term = b_.name(name);
    }
  }
  std::string lane = scope_.namer.make("lane"), end = whole.count.empty() ? fmt::format("{}", whole.n) : whole.count;
  scope_.lanes.at = lane;
  scope_.lanes.count.clear(), scope_.lanes.mask.clear();
  if (Entity *v = scope_.find(whole.v)) v->ident = lane;
  std::string s = store(target, with(term));
  scope_.lanes = whole;
  std::string taken = whole.mask.empty() ? "" : fmt::format("if ({}[{}] != 0) ", whole.mask, lane);
  line(fmt::format("{4}for (int64_t {0} = 0; {0} < {1}; {0}++) {2}{3};", lane, end, taken, s, pad));
  if (!pad.empty()) line("}");
}

}  // namespace mlc
