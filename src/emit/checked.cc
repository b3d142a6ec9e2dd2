#include "emit/checked.h"

#include <algorithm>

#include "arith/prove.h"
#include "arith/scope.h"
#include "emit/body.h"
#include "ir/edit.h"
#include "ir/typing.h"
#include "ir/walk.h"
#include "ops/expr.h"
#include "text/text.h"

namespace mlc {
namespace {

class Checks {
 public:
  Checks(Build &b, const Module &m, const Func *f, Diag &diag)
      : b_(b), m_(m), f_(f), diag_(diag), env_(b, m, f), known_(b) {
    enter(known_, *f);
  }

  const Func *run() {
    Stmts checked = body(f_->body);
    return edited(b_, *f_, [&](Func &f) { f.body = checked; });
  }

 private:
  using Out = std::vector<const Stmt *>;

  // The statements with their checks in front; where `bare_` is set, the checks alone and what they depend on.
  Stmts body(Stmts in) {
    size_t env = env_.mark(), facts = known_.mark();
    Out out;
    for (const Stmt *s : in) {
      made_.clear();
      stmt(s, out);
      after(known_, s);
    }
    env_.pop(env), known_.pop(facts);
    return std::equal(in.begin(), in.end(), out.begin(), out.end()) ? in : b_.list(out);
  }

  Stmts inside_of(const Stmt *s, Stmts in, size_t which) {
    size_t env = env_.mark(), facts = known_.mark();
    if (auto *f = as<For>(s)) env_.define_index(f->iter.name);
    enter(known_, s, which);
    Stmts made = body(in);
    env_.pop(env), known_.pop(facts);
    return made;
  }

  void stmt(const Stmt *s, Out &out) {
    switch (s->kind) {
      case Kind::For: return loop(to<For>(s), out);
      case Kind::If: {
        auto &i = to<If>(s);
        look(i.cond, out);
        Stmts yes = inside_of(s, i.body, 0), no = inside_of(s, i.other, 1);
        if (bare_) yes = without_idle(yes), no = without_idle(no);
        if (bare_ && yes.empty() && no.empty()) return;
        out.push_back(edited(b_, i, [&](If &n) { n.body = yes, n.other = no, n.has_else = !no.empty(); }));
        return;
      }
      case Kind::While: {  // its condition is evaluated in front of each turn
        auto &w = to<While>(s);
        look(w.cond, out);
        Stmts turn = inside_of(s, w.body, 0);
        Out all(turn.begin(), turn.end());
        made_.clear();
        look(w.cond, all);
        out.push_back(edited(b_, w, [&](While &n) { n.body = all.size() == turn.size() ? turn : b_.list(all); }));
        return;
      }
      case Kind::Let:
        look(to<Let>(s).value, out);
        for (const Def &d : to<Let>(s).defs) env_.define(d.name, d.type);
        out.push_back(s);
        return;
      case Kind::Store:
        look(to<Store>(s).target, out);
        look(to<Store>(s).value, out);
        break;
      case Kind::Assume: look(to<Assume>(s).cond, out); break;
      case Kind::View:
        look(to<View>(s).source, out);
        env_.define(to<View>(s).def.name, to<View>(s).def.type);
        break;
      case Kind::Alloc: env_.define(to<Alloc>(s).def.name, to<Alloc>(s).def.type); break;
      case Kind::CallStmt: {
        auto &c = to<CallStmt>(s);
        for (const Expr *e : c.call->args) look(e, out);
        for (const Expr *e : c.dests) look(e, out);
        break;
      }
      default: break;
    }
    if (!bare_) out.push_back(s);
  }

  void loop(const For &f, Out &out) {
    look(f.iter.extent, out);
    if (bare_) {
      Stmts turn = without_idle(inside_of(&f, f.body, 0));
      if (!turn.empty()) out.push_back(b_.make(For{{}, LoopKind::Serial, f.iter, {}, {}, turn}));
      return;
    }
    if (f.loop == LoopKind::Vectorize) {
      bare_ = true;
      Stmts checks = without_idle(inside_of(&f, f.body, 0));
      bare_ = false;
      if (checks.empty()) return out.push_back(&f);
      if (independent(checks, f.body)) {
        out.push_back(b_.make(For{{}, LoopKind::Serial, f.iter, {}, {}, checks}));
        return out.push_back(&f);
      }
    }
    Stmts turn = inside_of(&f, f.body, 0);
    out.push_back(edited(b_, f, [&](For &n) { n.body = turn; }));
  }

  // Without definitions that no check needs; empty if there is no check.
  Stmts without_idle(Stmts in) {
    std::unordered_set<Sym> used;
    return without_unused(b_, in, used);
  }

  // No check reads what the loop writes or has of its own.
  static bool independent(Stmts checks, Stmts body) {
    std::unordered_set<Sym> changed;
    each_stmt(body, [&](const Stmt *s) {
      if (auto *st = as<Store>(s)) changed.insert(st->target->buffer);
      if (auto *a = as<Alloc>(s)) changed.insert(a->def.name);
      if (auto *v = as<View>(s)) changed.insert(v->def.name);
      if (auto *c = as<CallStmt>(s))
        for (const Expr *d : c->dests) collect_names(d, changed);
    });
    bool apart = true;
    each_expr_in(checks, [&](const Expr *e) {
      auto *l = as<Load>(e);
      return apart = apart && !(l && !l->global && changed.count(l->buffer));
    });
    return apart;
  }

  // Checks of every access that evaluating e makes, inner ones first.
  void look(const Expr *e, Out &out) {
    auto under = [&](const Expr *cond, const Expr *x) {
      size_t facts = known_.mark();
      std::unordered_set<std::string> made = made_;
      if (!reads_memory(cond)) known_.assume(cond);
      Out inner;
      look(x, inner);
      known_.pop(facts);
      made_ = std::move(made);
      if (!inner.empty()) out.push_back(b_.make(If{{}, cond, b_.list(inner), {}, false}));
    };
    auto *x = as<Binary>(e);
    if (x && (x->op == Op::And || x->op == Op::Or)) {
      look(x->a, out);
      return under(x->op == Op::And ? x->a : b_.unary(Op::Not, x->a), x->b);
    }
    if (auto *c = as<Call>(e); c && !c->global && c->args.size() == 3 && b_.text(c->callee) == "where") {
      look(c->args[0], out);
      under(c->args[0], c->args[1]);
      return under(b_.unary(Op::Not, c->args[0]), c->args[2]);
    }
    each_child(e, [&](const Expr *child) { look(child, out); });
    if (auto *l = as<Load>(e)) access(*l, out);
  }

  void access(const Load &l, Out &out) {
    const Const *c = l.global ? m_.constant(l.buffer) : nullptr;
    const Type *t = l.global ? (c ? c->type : nullptr) : env_.find(l.buffer);
    if (!t || !t->tensor || t->rank() != l.index.size()) return;
    for (size_t d = 0; d < l.index.size(); d++)
      if (l.index[d]->kind != Kind::All) inside(l, l.index[d], t->dims[d], out);
  }

  void inside(const Load &l, const Expr *i, const Expr *dim, Out &out) {
    auto *r = as<Range>(i);
    X lo{b_, r ? r->lo : i}, size = r ? X{b_, r->extent} : lit(b_, int64_t(1)), n{b_, dim}, cond;
    if (r && is_int(r->lo, 0) && equal(r->extent, dim)) return;
    auto need = [&](X x, X y, bool less) {
      bool data = reads_memory(x.e) || reads_memory(y.e);
      if (!data && (less ? provably_less(b_, x.e, y.e, known_) : provably_less_equal(b_, x.e, y.e, known_))) return;
      X one = less ? x < y : is_int(x.e, 0) ? y >= x : x <= y;
      cond = cond.e ? cond && one : one;
    };
    X none = lit(b_, int64_t(0));
    need(none, lo, false);
    if (r) need(none, size, false), need(lo, n - size, false);
    else need(lo, n, true);
    if (!cond.e) return;
    std::string said =
        fmt::format("@{}: subscript {} of {} is outside", b_.text(f_->name), print(b_, i), print(b_, &l));
    if (!made_.insert(said).second) return;
    if (told_.insert(said).second) diag_.remark("{}", said.substr(0, said.rfind(" outside")) + " checked");
    Assume a{{}, cond.e};
    a.at = l.at, a.comment = b_.arena.text("# " + said);
    out.push_back(b_.make(a));
    after(known_, out.back());
  }

  Build &b_;
  const Module &m_;
  const Func *f_;
  Diag &diag_;
  Env env_;
  Bounds known_;
  std::unordered_set<std::string> made_, told_;  // checks in front of the present statement; of the function
  bool bare_ = false;
};

}  // namespace

const Func *with_checks(Build &b, const Module &m, const Func *f, Diag &diag) { return Checks(b, m, f, diag).run(); }

}  // namespace mlc
