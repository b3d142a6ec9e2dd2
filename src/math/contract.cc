#include "math/contract.h"

#include <algorithm>

#include "ir/edit.h"
#include "ir/typing.h"

namespace mlc {

namespace {

constexpr std::string_view kPlain = ".f32", kFused = ".fma.f32";

const Expr *negated(Build &b, const Expr *e) {
  auto *u = as<Unary>(e);
  return u && u->op == Op::Neg ? u->a : b.unary(Op::Neg, e);
}

class Contraction {
 public:
  Contraction(Build &b, const Module &math) : b_(b), math_(math) {}

  Sym twin(Sym name) const {
    std::string_view n = b_.text(name);
    return b_.sym(std::string(n.substr(0, n.size() - kPlain.size())).append(kFused));
  }

  // An expression of type f32.
  const Expr *real(const Expr *e) {
    if (auto *u = as<Unary>(e)) return edited(b_, *u, [&](Unary &n) { n.a = real(n.a); });
    if (auto *c = as<Call>(e)) return call(*c);
    auto *x = as<Binary>(e);
    if (!x) return e;
    auto *left = product(x->a), *right = product(x->b);
    bool minus = x->op == Op::Sub;
    if ((x->op != Op::Add && !minus) || (!left && !right))
      return edited(b_, *x, [&](Binary &n) { n.a = real(n.a), n.b = real(n.b); });
    const Binary *p = right ? right : left;
    const Expr *a = real(p->a), *c = real(p->b), *sum = real(right ? x->a : x->b);
    if (minus && !right) sum = negated(b_, sum);
    else if (minus && c->kind == Kind::Float) c = negated(b_, c);  // the negative of a literal is one
    else if (minus) a = negated(b_, a);
    return b_.call("fma", {a, c, sum});
  }

 private:
  static const Binary *product(const Expr *e) {
    auto *x = as<Binary>(e);
    return x && x->op == Op::Mul ? x : nullptr;
  }

  const Expr *call(const Call &c) {
    std::string_view name = b_.text(c.callee);
    const Func *f = c.global ? math_.func(c.callee) : nullptr;
    if (c.global && !f) return &c;
    bool of_bits = !f && (name.starts_with("bits.") || is_cast(name));
    return edited(b_, c, [&](Call &n) {
      if (f && name.ends_with(kPlain) && math_.func(twin(c.callee))) n.callee = twin(c.callee);
      size_t i = 0;
      if (!of_bits)
        n.args = edit_all(b_, c.args, [&](const Expr *&e) {
          bool whole = f ? f->params[i].def.type->elem != DType::F32 : name == "where" && i == 0;
          if (!whole) e = real(e);
          i++;
        });
    });
  }

  Build &b_;
  const Module &math_;
};

}  // namespace

const Func *contracted(Build &b, const Module &math, const Func &f) {
  if (!b.text(f.name).ends_with(kPlain)) return nullptr;
  Contraction made(b, math);
  Stmts body = edit_all(b, f.body, [&](const Stmt *&s) {
    auto *l = as<Let>(s);
    if (l && l->defs[0].type && l->defs[0].type->elem == DType::F32)
      s = edited(b, *l, [&](Let &x) { x.value = made.real(l->value); });
  });
  if (body.data() == f.body.data()) return nullptr;
  return edited(b, f, [&](Func &n) { n.name = made.twin(f.name), n.comment = {}, n.body = body; });
}

bool has_fma_licence(const Build &b, Attrs attrs) {
  auto *l = as<List>(attr(b, attrs, "licence"));
  return l && std::any_of(l->items.begin(), l->items.end(), [](const Expr *e) {
           auto *s = as<Str>(e);
           return s && s->value == "fma";
         });
}

}  // namespace mlc
