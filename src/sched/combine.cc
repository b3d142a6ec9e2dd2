#include "sched/combine.h"

#include <algorithm>

#include "ir/typing.h"
#include "ops/expr.h"
#include "sched/regions.h"

namespace mlc {

namespace {

const Call *call_of(State &s, const Expr *e, std::string_view name, size_t args) {
  auto *c = as<Call>(e);
  return c && !c->global && c->iters.empty() && c->args.size() == args && s.b.text(c->callee) == name ? c : nullptr;
}

bool is_zero(const Expr *e) {
  auto *f = as<Float>(e);
  return is_int(e, 0) || (f && f->value == 0);
}

}  // namespace

const Binary *product_of(State &s, const Expr *term, const Expr **cond) {
  auto *w = call_of(s, term, "where", 3);
  if (w && !is_zero(w->args[2])) w = nullptr;
  *cond = w ? w->args[0] : nullptr;
  auto *m = as<Binary>(w ? w->args[1] : term);
  return m && m->op == Op::Mul ? m : nullptr;
}

Combine combine_of(State &s, Place *n) {
  auto &k = *n->block();
  std::string block = s.text(k.name);
  Combine out;
  auto is = [](const Expr *e, const Load *l) { return e->kind == Kind::Load && equal(e, l); };
  if (k.body.size() == 1 && k.body[0]->kind == Kind::Store) {
    auto &st = to<Store>(k.body[0]);
    auto *x = as<Binary>(st.value);
    auto *c = as<Call>(st.value);
    if (c && (c->global || !c->iters.empty())) c = nullptr;
    std::string_view f = c ? s.b.text(c->callee) : std::string_view();
    const Expr *one = x ? x->a : c && c->args.size() == 2 ? c->args[0] : nullptr;
    const Expr *two = x ? x->b : one ? c->args[1] : nullptr;
    auto *w = call_of(s, st.value, "where", 3);
    if (auto *m = call_of(s, w && is(w->args[2], st.target) ? w->args[1] : st.value, "fma", 3)) {
      out.contracted = true, f = "sum", one = m->args[2], two = s.b.binary(Op::Mul, m->args[0], m->args[1]);
      if (m != st.value) two = s.b.call("where", {w->args[0], two, zero(s.b, s.type_of_buffer(st.target->buffer)->elem).e});
    }
    if (x)
      f = x->op == Op::Add   ? "sum"
          : x->op == Op::Mul ? "prod"
          : x->op == Op::And ? "all"
          : x->op == Op::Or  ? "any"
                             : "";
    if (is_reduction(f) && one && !is(one, st.target)) std::swap(one, two);
    if (is_reduction(f) && one && is(one, st.target)) {
      out.fold = f, out.targets = {st.target}, out.terms = {two};
      out.identities = {fold_start(s.b, f, s.type_of_buffer(st.target->buffer)->elem).e};
    }
  } else if (!k.body.empty()) {
    auto *l = as<Let>(k.body[0]);
    auto *c = l ? as<Call>(l->value) : nullptr;
    size_t count = k.body.size() - 1;
    if (c && c->global && c->args.size() == 2 * count && l->defs.size() == count)
      for (size_t i = 0; i < count; i++) {
        auto *st = as<Store>(k.body[i + 1]);
        auto *v = st ? as<Name>(st->value) : nullptr;
        if (!v || v->name != l->defs[i].name || !is(c->args[i], st->target)) break;
        out.targets.push_back(st->target), out.terms.push_back(c->args[count + i]);
        const Func *r = s.m.func(c->callee);
        for (const Stmt *init : r && r->func == FuncKind::Reducer ? r->inits : Stmts{})
          if (auto *first = as<Let>(init); first && first->defs[0].name == r->results[i].name)
            out.identities.push_back(first->value);
      }
    if (out.targets.size() != count || out.identities.size() != count) out = {};
  }
  if (out.targets.empty())
    refuse(n, "the body of block {} is not of the form y[..] = y[..] + e, nor a call of a reducer and its stores",
           block);
  for (const Expr *e : out.terms)
    each_expr(e, [&](const Expr *x) {
      auto *l = as<Load>(x);
      for (const Load *t : out.targets)
        if (l && l->buffer == t->buffer) refuse(n, "block {} reads {} in its term, too", block, s.text(t->buffer));
      return true;
    });
  return out;
}

Stmts with_combine(State &s, Stmts body, const Combine &now) {
  Build &b = s.b;
  size_t number = 0;  // of the store
  return rewrite_stmts(b, body, [&](const Stmt *st, std::vector<const Stmt *> &out) {
    if (auto *l = as<Let>(st)) {
      auto &c = to<Call>(l->value);
      std::vector<const Expr *> args(now.targets.begin(), now.targets.end());
      args.insert(args.end(), now.terms.begin(), now.terms.end());
      out.push_back(edited(b, *l, [&](Let &n) { n.value = b.call(c.callee, b.list(args), c.at, true); }));
      return;
    }
    size_t i = number++;
    out.push_back(edited(b, to<Store>(st), [&](Store &n) {
      n.target = now.targets[i];
      if (now.fold.empty()) return;  // the value is the reducer's
      const Expr *cond = nullptr;
      if (auto *product = now.contracted ? product_of(s, now.terms[i], &cond) : nullptr) {
        n.value = b.call("fma", {product->a, product->b, now.targets[i]});
        if (cond) n.value = b.call("where", {cond, n.value, now.targets[i]});
      } else {
        n.value = fold_step(b, now.fold, now.targets[i], now.terms[i]);
      }
    }));
  });
}

// The value that an initialiser gives a target.
const Expr *initial(State &s, Place *n, const Load *target) {
  for (const Stmt *st : n->block()->inits)
    if (auto *x = as<Store>(st); x && equal(x->target, target)) return x->value;
  refuse(n, "block {} does not initialise {}", s.text(n->block()->name), s.text(static_cast<const Expr *>(target)));
}

Place *start_of(State &s, Place *n) {
  if (n->nest || !n->block()->inits.empty() || !has_reduce(*n->block())) return nullptr;
  std::vector<Sym> targets = buffers_written(s, n);
  auto among = [](const std::vector<Sym> &l, Sym x) { return std::find(l.begin(), l.end(), x) != l.end(); };
  Place *start = nullptr;
  bool behind = false;
  for (Place *x : leaves(s.tree.root())) {
    if (x == n) {
      behind = true;
      continue;
    }
    bool writes = false, reads = false;
    for (Sym w : buffers_written(s, x))
      writes |= among(targets, w);
    for (Sym r : buffers_read(s, x))
      reads |= among(targets, r);
    if ((writes && (start || behind)) || (reads && !behind)) return nullptr;
    if (writes) start = x;
  }
  start = start ? s.as_block(start) : nullptr;
  if (!start || start->nest || has_reduce(*start->block()) || has_scan(*start->block())) return nullptr;
  std::vector<Sym> first = buffers_written(s, start);
  bool same = std::is_permutation(first.begin(), first.end(), targets.begin(), targets.end());
  for (Sym w : targets)
    same &= reads(s, n, w);
  return same ? start : nullptr;
}

const Expr *start_value(State &s, Place *start, const Load *target) {
  for (const Stmt *st : start->block()->body)
    if (auto *x = as<Store>(st); x && x->target->buffer == target->buffer) {
      bool constant = true;
      each_expr(x->value, [&](const Expr *e) { return constant &= e->kind != Kind::Load && e->kind != Kind::Name; });
      if (constant) return x->value;
    }
  refuse(start, "{} begins {} with more than one value", s.name_of(start), s.text(target->buffer));
}

bool starts_at_identity(State &s, Place *n, const Combine &c) {
  Place *start = start_of(s, n);
  for (size_t i = 0; i < c.targets.size(); i++)
    if (!equal(start ? start_value(s, start, c.targets[i]) : initial(s, n, c.targets[i]), c.identities[i])) return false;
  return true;
}

}  // namespace mlc
