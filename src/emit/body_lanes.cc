// Vectorized loops: a loop of as many turns as a vector has lanes is printed once, on vectors.
#include "arith/prove.h"
#include "arith/scope.h"
#include "arith/simplify.h"
#include "emit/body.h"
#include "ir/edit.h"
#include "ops/expr.h"

namespace mlc {

// for v in 16 vectorize { y[i * 16 + v] = x[i * 16 + v] * a }
// ->   *(P_f32x16_u *)(y + i * 16) = *(const P_f32x16_u *)(x + i * 16) * a;
void BodyPrinter::lanes(const For &f) {
  Scope::Mark mark = scope.mark();
  int64_t n = 0;
  int_value(f.iter.extent, &n);
  Sym v = f.iter.name;
  Stmts body = f.body;
  if (scope.find(v)) body = renamed(v, body), v = latest(v);
  define_dim(v).seen = 1;
  scope.bounds.range(v, f.iter.extent);
  Lanes outer = scope.lanes;
  scope.lanes = {v, int(n), "", "", "", 0};
  depth_++;
  bool scoped = false;
  for (const Stmt *s : body) scoped |= s->kind == Kind::Let || s->kind == Kind::Alloc;
  scoped &= alone_ != &f;
  if (scoped) line("{{"), indent += 2;
  stmts(body);
  if (scoped) indent -= 2, line("}}");
  depth_--;
  scope.lanes = outer;
  scope.pop(mark);
}

// Each element, or each vector of elements, is a variable of its own.
void BodyPrinter::registers(const Alloc &a, int64_t unit) {
  const Type *t = a.def.type;
  std::vector<int64_t> dims;
  all_static(t, &dims);
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  Entity e;
  e.kind = Entity::Registers, e.writable = true, e.unit = int(unit), e.type = t, e.seen = 1;
  e.ident = scope.namer.make(b_.text(a.def.name));
  scope.define(a.def.name, e);
  bool own = scope.lanes.whole();
  Entity one;
  one.kind = Entity::Variable, one.writable = true, one.type = t;
  one.lanes = own ? scope.lanes.n : 0, one.at = out.size() + indent;
  if (own && t->elem == DType::Bool) one.mask = 32;
  std::string type(c_value(t->elem));
  Lanes outer = scope.lanes;
  if (unit > 1) {
    scope.lanes.n = int(unit);
    if (t->elem == DType::Bool) one.mask = 32;
  }
  if (unit > 1 || own) type = exprs.lanes_type(t->elem, one.mask);
  scope.lanes = outer;
  std::string text = type;
  bool last = !dims.empty() && dims.back() % unit == 0;
  std::string_view first = attr(b_, t->attrs, "guarded") ? "{}" : "";
  size_t width = indent + text.size();
  for (int64_t k = 0; k < count / unit; k++) {
    int64_t rest = k * unit;
    std::string name;
    for (size_t d = dims.size(); last && d-- > 0; rest /= dims[d]) {
      int64_t at = rest % dims[d], step = d + 1 == dims.size() ? unit : 1;
      if (dims[d] > step) name = fmt::format("_{}", at / step) + name;
    }
    if (!last) name = fmt::format("_{}", k);
    one.ident = count == unit ? e.ident : scope.namer.make(e.ident + name);
    std::string item = (k ? ", " : " ") + one.ident;
    item += first;
    if (width + item.size() > 116) {
      width = indent + 4;
      item = fmt::format("{}{:{}}{}{}", k ? ",\n" : "\n", "", width, one.ident, first);
    }
    width += item.size(), text += item;
    scope.define(b_.sym(fmt::format("{}'{}", e.ident, k)), one);
  }
  line("{};", text);
}

// A local buffer in the body of a vectorized loop: each lane has one of its own.
void BodyPrinter::own_buffer(const Alloc &a) {
  const Type *t = a.def.type;
  std::vector<int64_t> dims;
  all_static(t, &dims);
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  Entity e;
  e.kind = t->dims.empty() ? Entity::Variable : Entity::Buffer, e.writable = true, e.lanes = scope.lanes.n;
  if (t->elem == DType::Bool) e.mask = 32;
  e = define_local(a.def, e);
  std::string size = t->dims.empty() ? "" : fmt::format("[{}]", std::max<int64_t>(count, 1));
  line("{} {}{};", exprs.lanes_type(t->elem, e.mask), e.ident, size);
}

// What it loads stays inside for the lanes that take no part, or is stopped at the last one that does.
bool BodyPrinter::stops(Stmts body) {
  bool ok = true;
  std::function<bool(const Expr *)> expr = [&](const Expr *e) {
    auto *l = as<Load>(e);
    if (l) ok &= exprs.unit_or_uniform(*l) || exprs.harmless(l);
    auto *c = as<Call>(e);
    auto *x = as<Binary>(e);
    bool chooses = c && !c->global && b_.text(c->callee) == "where" && exprs.varies(c->args[0]);
    if (chooses) ok &= exprs.harmless(e) || exprs.masked_load(*c);
    if (x && (x->op == Op::And || x->op == Op::Or)) ok &= exprs.harmless(e);
    return ok;
  };
  std::function<void(Stmts)> walk = [&](Stmts list) {
    for (const Stmt *s : list) {
      if (auto *i = as<If>(s)) ok &= !exprs.varies(i->cond);
      if (auto *st = as<Store>(s)) {
        each_expr(st->value, expr);
        for (const Expr *i : st->target->index) each_expr(i, expr);
      } else {
        each_expr_of(s, [&](const Expr *e) { each_expr(e, expr); });
      }
      each_body(s, walk);
    }
  };
  walk(body);
  return ok;
}

// if i * 16 + v < n { .. }
// ->   if (const int64_t count = n - i * 16; count >= 16) { .. } else if (count > 0) { .. the first lanes alone .. }
// What another condition guards is done one lane after the other.
void BodyPrinter::branch_lanes(const If &i) {
  auto *x = i.other.empty() ? as<Binary>(i.cond) : nullptr;
  if (x && x->op == Op::And && exprs.varies(x->a) != exprs.varies(x->b)) {
    bool swap = exprs.varies(x->a);  // what is the same in all lanes is asked first, where that is no load
    auto inside = [&](const Expr *cond, Stmts body) {
      return b_.stmts({edited(b_, i, [&](If &n) { n.cond = cond, n.body = body, n.comment = {}; })});
    };
    if (!swap || exprs.harmless(x->b)) return stmts(inside(swap ? x->b : x->a, inside(swap ? x->a : x->b, i.body)));
  }
  const Lanes whole = scope.lanes;
  X lo, n, all = lit(b_, int64_t(whole.n));
  if (whole.masked() || !i.other.empty() || !exprs.between(i.cond, lo, n) || lo) return each_lane(i);
  if (is_truth(simplify(n >= all), true)) return block(i.body);
  int64_t few;
  if (int_value(simplify(n).e, &few)) {  // the same lanes each time
    if (few <= 0) return;
    scope.lanes.count = fmt::format("{}", few);
    if (stops(i.body)) stmts(i.body);
    else each_lane(i);
    scope.lanes = whole;
    return;
  }
  std::string count = scope.namer.make("count"), left = exprs.index(n.e).s;
  size_t mark = scope.bounds.mark();
  if (prove(b_, (n < all).e, scope.bounds)) {
    line("if (const int64_t {0} = {1}; {0} > 0) {{", count, left);
  } else {
    scope.bounds.assume((n >= all).e);
    line("if (const int64_t {0} = {1}; {0} >= {2}) {{", count, left, whole.n);
    block(i.body);
    scope.bounds.pop(mark);
    line("}} else if ({} > 0) {{", count);
  }
  scope.bounds.assume((n > 0).e);
  scope.lanes.count = count;
  if (stops(i.body)) block(i.body);
  else indent += 2, each_lane(i), indent -= 2;
  scope.lanes = whole;
  scope.bounds.pop(mark);
  line("}}");
}

// What vectors cannot do, one lane after the other in scalars.
void BodyPrinter::each_lane(const If &i) {
  const Lanes whole = scope.lanes;
  std::string lane = scope.namer.make("lane"), end = whole.count.empty() ? fmt::format("{}", whole.n) : whole.count;
  line("for (int64_t {0} = 0; {0} < {1}; {0}++) {{", lane, end);
  scope.lanes.at = lane, scope.lanes.count.clear(), scope.lanes.mask.clear();
  if (Entity *v = scope.find(whole.v)) v->ident = lane;
  block(b_.stmts({b_.make(i)}));
  scope.lanes = whole;
  line("}}");
}

}  // namespace mlc
