// Local buffers whose every element is named by a constant: they become registers.
#include "arith/affine.h"
#include "emit/shaper.h"
#include "ir/edit.h"
#include "ir/walk.h"
#include "ops/expr.h"

namespace mlc {
namespace {

constexpr int64_t kMostRegisters = 256;

// How the statements behind an alloc use its buffer.
class Uses {
 public:
  Uses(Build &b, const Alloc &a) : b_(b), name_(a.def.name), dims_(a.def.type->dims) {}

  void body(Stmts stmts) {
    for (const Stmt *s : stmts) {
      each_expr_of(s, [&](const Expr *e) { expr(e); });
      if (auto *v = as<View>(s); v && v->source->buffer == name_) fixed = false;
      if (auto *a = as<Alloc>(s); a && a->base == name_) fixed = false;
      auto *f = as<For>(s);
      bool vector = f && f->loop == LoopKind::Vectorize;
      if (vector) lane_ = f->iter.name, int_value(f->iter.extent, &width_);
      if (auto *st = as<Store>(s)) guarded |= conditions_ && st->target->buffer == name_;
      conditions_ += s->kind == Kind::If;
      each_body(s, [&](Stmts in) { body(in); });
      conditions_ -= s->kind == Kind::If;
      if (vector) lane_ = {}, width_ = 0;
    }
  }

  bool fixed = true;  // all elements are named by constants, vectors begin at multiples of their width
  int64_t lanes = 0;  // of the vectors; 0: there are none
  bool guarded = false;  // some are stored under a condition: compilers want a first value

 private:
  void expr(const Expr *e) {
    each_expr(e, [&](const Expr *x) {
      if (auto *n = as<Name>(x); n && n->name == name_) fixed = false;
      if (auto *l = as<Load>(x); l && !l->global && l->buffer == name_) access(*l);
      return fixed;
    });
  }
  void access(const Load &l) {
    if (!fixed) return;
    Bounds known(b_);
    if (lane_) known.index(lane_);
    X at = lit(b_, int64_t(0));
    for (size_t d = 0; d < l.index.size(); d++) {
      const Expr *i = l.index[d];
      if (i->kind == Kind::Range || i->kind == Kind::All) return void(fixed = false);
      at = at * X(b_, dims_[d]) + X(b_, i);
    }
    int64_t coef = 0, base = 0;
    auto form = affine(b_, at.e, lane_ ? b_.one(lane_) : Syms{}, known);
    fixed = fixed && form && int_value(form->rest, &base) && (!lane_ || int_value(form->coefs[0], &coef));
    if (!fixed || coef == 0) return;
    fixed = coef == 1 && base % width_ == 0 && (lanes == 0 || lanes == width_);
    lanes = width_;
  }

  Build &b_;
  Sym name_;
  Exprs dims_;
  Sym lane_;
  int64_t width_ = 0;
  int conditions_ = 0;
};

}  // namespace

Stmts Shaper::registers(Stmts body) {
  Out out;
  for (size_t i = 0; i < body.size(); i++) {
    const Stmt *s = with_bodies(b_, body[i], [&](Stmts in) { return registers(in); });
    std::vector<int64_t> dims;
    if (is_local(s) && all_static(to<Alloc>(s).def.type, &dims) && info(to<Alloc>(s).def.type->elem).bits >= 8 &&
        !attr(b_, to<Alloc>(s).def.type->attrs, "stack")) {
      auto &a = to<Alloc>(s);
      int64_t count = 1;
      for (int64_t d : dims)
        if (d < 0 || __builtin_mul_overflow(count, d, &count)) count = INT64_MAX;
      Uses uses(b_, a);
      uses.body(body.subspan(i + 1));
      int64_t lanes = std::max<int64_t>(uses.lanes, 1);
      if (uses.fixed && count > 0 && count % lanes == 0 && count / lanes <= kMostRegisters)
        s = edited(b_, a, [&](Alloc &n) {
          Type t = *a.def.type;
          std::vector<Attr> attrs(t.attrs.begin(), t.attrs.end());
          attrs.push_back({b_.sym("registers"), kNowhere, b_.integer(lanes)});
          if (uses.guarded) attrs.push_back({b_.sym("guarded"), kNowhere, b_.integer(1)});
          t.attrs = b_.list(attrs);
          n.def.type = b_.type(t);
        });
    }
    out.push_back(s);
  }
  return b_.list(out);
}

}  // namespace mlc
