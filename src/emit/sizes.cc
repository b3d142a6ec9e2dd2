#include "emit/sizes.h"

#include "arith/simplify.h"
#include "ops/expr.h"
#include "text/text.h"

namespace mlc {

static constexpr int64_t kAlign = 64, kLargest = int64_t(1) << 62;

std::string checked_size(BodyPrinter &p, Helpers &helpers, const Expr *e) {
  if (e->kind == Kind::Int || e->kind == Kind::Name) return p.exprs.index(e).s;
  auto two = [&](std::string_view f, DType t, const Expr *a, const Expr *b, const char *flag) {
    std::string x = checked_size(p, helpers, a), y = checked_size(p, helpers, b);
    return fmt::format("{}({}, {}{})", helpers.need(f, t), x, y, flag);
  };
  if (auto *x = as<Binary>(e)) {
    switch (x->op) {
      case Op::Add: return two("size_add", DType::Invalid, x->a, x->b, ", &ok");
      case Op::Sub: return two("size_sub", DType::Invalid, x->a, x->b, ", &ok");
      case Op::Mul: return two("size_mul", DType::Invalid, x->a, x->b, ", &ok");
      case Op::FloorDiv: return two("floordiv", DType::I64, x->a, x->b, "");
      case Op::Mod: return two("mod", DType::I64, x->a, x->b, "");
      default: break;
    }
  }
  auto *c = as<Call>(e);
  std::string_view name = c && !c->global ? p.scope.b.text(c->callee) : "";
  if (c && c->args.size() == 2 && c->iters.empty() && (name == "min" || name == "max"))
    return two(name, DType::I64, c->args[0], c->args[1], "");
  return p.exprs.index(e).s;
}

std::string checked_product(BodyPrinter &p, Helpers &helpers, const Type *t, int64_t unit, Diag &diag) {
  for (const Expr *d : t->dims) {
    int64_t v;
    if (!int_value(d, &v)) continue;
    if (v < 0 || __builtin_mul_overflow(unit, std::max<int64_t>(v, 1), &unit) || unit > kLargest)
      return diag.error(kNowhere, "{} is too large", print(p.scope.b, t)), "0";
  }
  std::string s = fmt::format("{}", unit), times = helpers.need("size_times");
  for (const Expr *d : t->dims)
    if (d->kind != Kind::Int) s = fmt::format("{}({}, {}, &ok)", times, s, checked_size(p, helpers, d));
  return s;
}

static const Expr *arena_expr(Build &b, const Func &f, const Def *scratch) {
  if (const Expr *e = attr(b, f.notes.attrs, "arena_bytes")) return e;
  X bytes = lit(b, scratch ? std::max<int64_t>(info(scratch->type->elem).bits / 8, 1) : 0);
  if (scratch)
    for (const Expr *d : scratch->type->dims) bytes = bytes * X{b, d};
  return bytes.e;
}

std::string arena_text(Unit &unit, const Func &f, const CppModel &model, const Def *scratch, bool device,
                       int64_t *fixed) {
  Build &b = unit.b;
  Diag &diag = unit.diag;
  const Expr *bytes = arena_expr(b, f, scratch);
  if (device) bytes = (X(b, bytes) + kAlign).e;
  std::string head = fmt::format("size_t {0}_{1}(const {0}_dims *dims, int threads) {{\n", unit.prefix,
                                 device ? "device_arena_bytes" : "arena_bytes");
  BodyPrinter p(unit, unit.m, f);
  for (const char *s : {"dims", "threads", "ok", "bytes"}) p.scope.namer.reserve(s);
  p.line("(void)threads;");
  std::unordered_set<Sym> known;
  for (auto &[sym, member] : model.dims) {
    known.insert(sym);
    std::string ident = p.define_dim(sym).ident;
    p.line("const int64_t {} = dims->{};", ident, member);
    p.line("if ({} < 0) return 0;", ident);
  }
  if (!known.empty()) p.line("bool ok = true;");
  std::vector<const Type *> seen;
  auto fits = [&](const Type *t) {
    if (!t->tensor) return;
    auto same = [&](const Type *o) { return info(o->elem).bits == info(t->elem).bits && equal(o->dims, t->dims); };
    std::unordered_set<Sym> names;
    for (const Expr *d : t->dims) collect_names(d, names);
    for (Sym s : names)
      if (!known.count(s)) return;  // checked when it is known
    std::string s = checked_product(p, unit.helpers, t, std::max(info(t->elem).bits / 8, 1), diag);
    if (names.empty() || std::any_of(seen.begin(), seen.end(), same)) return;
    seen.push_back(t);
    p.line("{};  // {}", s, comment_text(print(b, b.tensor(t->elem, t->dims))));
  };
  for (const Param &x : f.params)
    if (x.mode != Mode::Scratch) fits(x.def.type);
  for (const Def &d : f.results) fits(d.type);
  each_stmt(f.body, [&](const Stmt *s) {  // bytes of the arena, a workspace, are counted with it
    auto *a = as<Alloc>(s);
    if (a && (!scratch || a->base != scratch->name || a->def.type->elem != scratch->type->elem)) fits(a->def.type);
    if (auto *v = as<View>(s)) fits(v->def.type);
  });
  if (known.empty()) {
    if (!int_value(simplify(b, bytes), fixed) || *fixed < 0 || *fixed > kLargest)
      return diag.error(f.at, "the arena of @{} has {} bytes, expected a number", b.text(f.name), print(b, bytes)), "";
    *fixed = std::max(kAlign, (*fixed + kAlign - 1) / kAlign * kAlign);
    return head + fmt::format("  (void)dims;\n{}  return {};\n}}\n", p.out, *fixed);
  }
  std::unordered_set<Sym> names;
  collect_names(bytes, names);
  for (Sym s : names)
    if (!known.count(s))
      diag.error(f.at, "the arena of @{} depends on {}, which is no dimension", b.text(f.name), b.text(s));
  if (diag.errors()) return "";
  p.line("const int64_t bytes = {};", checked_size(p, unit.helpers, bytes));
  p.line("if (!ok || bytes < 0 || bytes > (int64_t)1 << 62) return 0;");
  p.line("return bytes < {0} ? {0} : (size_t)(bytes + {1}) / {0} * {0};", kAlign, kAlign - 1);
  return head + p.out + "}\n";
}

}  // namespace mlc
