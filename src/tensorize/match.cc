#include "tensorize/match.h"

#include <algorithm>

#include "arith/simplify.h"
#include "ir/typing.h"
#include "ops/expr.h"
#include "sched/regions.h"

namespace mlc {

namespace {

constexpr int64_t kLargestTile = 1 << 20;
class Unifier {
 public:
  Unifier(State &s, const Block &k, const Description &d) : s_(s), b_(s.b), d_(d), env_(s.b, s.m, s.original()) {
    each_place(s.tree.root(), [&](Place *p) {
      if (auto *x = as<Alloc>(p->stmt)) env_.define(x->def.name, x->def.type);
    });
    for (const Axis &x : k.axes) env_.define_index(x.name);
  }

  // All ways in which e of the block is d of the description, added to what is known of the operands.
  std::vector<Operands> run(const Expr *e, const Expr *d, const Operands &known) {
    if (auto *l = as<Load>(d)) {
      Operands out = known;
      const Type *want = d_.type_of(l->buffer);
      auto [it, fresh] = out.try_emplace(l->buffer, e);
      if (!want || l->global || (!fresh && !equal(it->second, e)) || type(e) != want->elem) return {};
      return {out};
    }
    if (e->kind != d->kind) return {};
    if (auto *x = as<Binary>(e)) {
      auto &y = to<Binary>(d);
      if (x->op != y.op) return {};
      std::vector<Operands> out = pair(x->a, x->b, y.a, y.b, known);
      if (x->op == Op::Add || x->op == Op::Mul) append(out, pair(x->b, x->a, y.a, y.b, known));
      return out;
    }
    if (auto *x = as<Unary>(e)) {
      auto &y = to<Unary>(d);
      return x->op == y.op ? run(x->a, y.a, known) : std::vector<Operands>{};
    }
    auto *x = as<Call>(e);
    if (!x) return equal(e, d) ? std::vector{known} : std::vector<Operands>{};
    auto &y = to<Call>(d);
    if (x->callee != y.callee || x->global != y.global || x->args.size() != y.args.size() || !x->iters.empty() ||
        !y.iters.empty())
      return {};
    std::string_view name = b_.text(x->callee);
    bool commutes = !x->global && x->args.size() == 2 && (name == "max" || name == "min");
    std::vector<Operands> all = {known};
    for (size_t i = 0; i < x->args.size(); i++) {
      std::vector<Operands> next;
      for (const Operands &o : all) append(next, run(x->args[i], y.args[i], o));
      all = next;
    }
    if (commutes) append(all, pair(x->args[1], x->args[0], y.args[0], y.args[1], known));
    return all;
  }

 private:
  static void append(std::vector<Operands> &to, const std::vector<Operands> &more) {
    to.insert(to.end(), more.begin(), more.end());
  }
  std::vector<Operands> pair(const Expr *a, const Expr *b, const Expr *x, const Expr *y, const Operands &known) {
    std::vector<Operands> out;
    for (const Operands &o : run(a, x, known)) append(out, run(b, y, o));
    return out;
  }
  DType type(const Expr *e) {
    auto *l = as<Load>(e);
    const Type *t = l && !l->global ? s_.type_of_buffer(l->buffer) : nullptr;
    return t ? t->elem : type_of(env_, e, DType::Invalid, nullptr);
  }

  State &s_;
  Build &b_;
  const Description &d_;
  Env env_;
};

// The operands in which a name occurs; the target is one, under its name.
std::vector<Sym> occurs(const std::vector<std::pair<Sym, const Expr *>> &operands, Sym name) {
  std::vector<Sym> out;
  for (auto &[operand, e] : operands)
    if (mentions(e, name)) out.push_back(operand);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// Of a description: every occurrence of a parameter, with the target.
std::vector<std::pair<Sym, const Expr *>> parts_of(const Description &d) {
  std::vector<std::pair<Sym, const Expr *>> out = {{d.target->buffer, d.target}};
  each_expr(d.value, [&](const Expr *e) {
    if (auto *l = as<Load>(e)) out.push_back({l->buffer, l});
    return e->kind != Kind::Load;
  });
  return out;
}

// The groups stand in the subscripts of the result as their iterators do in the description.
bool in_order(const Match &m, const Load &target) {
  size_t last = 0;
  for (const Match::Group &g : m.groups) {
    if (g.kind != AxisKind::Spatial || !g.iter) continue;
    size_t d = 0;
    while (d < target.index.size() && !mentions(target.index[d], g.axes[0])) d++;
    if (d < last) return false;
    last = d;
  }
  return true;
}

}  // namespace

std::vector<Operands> operands_of(State &s, Place *block, const Description &d, std::string &why) {
  const Block &k = *block->block();
  auto *store = k.body.size() == 1 ? as<Store>(k.body[0]) : nullptr;
  auto none = [&](std::string said) { return why = std::move(said), std::vector<Operands>{}; };
  if (!store || store->atomic || k.guard || block->nest) return none("it is not one store without a guard");
  const Expr *value = store->value;
  if (d.fold) {
    auto *x = as<Binary>(value);
    auto *c = as<Call>(value);
    bool sum = s.text(d.fold) == "sum" && x && x->op == Op::Add && equal(x->a, store->target);
    bool call = c && c->callee == d.fold && c->args.size() == 2 && equal(c->args[0], store->target);
    if (!sum && !call) return none(fmt::format("it is no {} of terms", s.text(d.fold)));
    value = sum ? x->b : c->args[1];
    if (k.inits.empty()) return none("it has no initialiser");
  } else if (!k.inits.empty()) {
    return none("it reduces");
  }
  const Type *made = s.type_of_buffer(store->target->buffer), *want = d.type_of(d.target->buffer);
  if (!made || !want || made->elem != want->elem)
    return none(fmt::format("it makes {}, @{} {}", made ? dtype_name(made->elem) : "?", s.text(d.f->name),
                            want ? dtype_name(want->elem) : "?"));
  std::vector<Operands> all = Unifier(s, k, d).run(value, d.value, {});
  if (all.empty()) return none(fmt::format("{} is not what @{} describes", s.text(value), s.text(d.f->name)));
  return all;
}

std::optional<Match> match_block(State &s, Place *block, const Description &d, std::string &why) {
  Build &b = s.b;
  std::vector<Operands> all = operands_of(s, block, d, why);
  if (all.empty()) return std::nullopt;
  const Block &k = *block->block();
  auto *store = as<Store>(k.body[0]);
  auto parts = parts_of(d);
  Known known(s, block, true);
  std::optional<Match> other;
  for (Operands &o : all) {
    std::vector<std::pair<Sym, const Expr *>> have = {{d.target->buffer, store->target}};
    for (auto &[name, e] : parts)
      if (name != d.target->buffer) have.push_back({name, o.at(name)});
    Match m{&d, o, false, size_t(&o - all.data()), {}};
    bool fits = true;
    auto add = [&](AxisKind kind, const std::vector<Iter> &iters) {
      std::vector<std::vector<Sym>> of(iters.size());
      std::vector<const Axis *> own;
      std::vector<std::pair<const Axis *, std::vector<size_t>>> axes;  // with the iterators that they could be
      for (const Axis &x : k.axes) {
        if (x.kind != kind) continue;
        std::vector<size_t> could;
        for (size_t i = 0; i < iters.size(); i++)
          if (occurs(have, x.name) == occurs(parts, iters[i].name)) could.push_back(i);
        axes.push_back({&x, could});
      }
      // From the back: the last iterators get an axis each, the first what is left.
      for (size_t i = axes.size(); i-- > 0;) {
        auto &[x, could] = axes[i];
        if (could.empty()) {
          own.insert(own.begin(), x);
          continue;
        }
        size_t to = could[0];
        for (size_t c : could)
          if (of[c].empty()) to = c;
        of[to].insert(of[to].begin(), x->name);
      }
      for (const Axis *x : own) m.groups.push_back({{x->name}, {x->domain}, kind, 1, Sym{}, x->domain});
      for (size_t i = 0; i < iters.size(); i++) {
        int64_t tile = 0;
        fits &= int_value(iters[i].extent, &tile) && tile > 0 && tile <= kLargestTile && !of[i].empty();
        if (of[i].empty())
          why = fmt::format("it has no axis for {} of @{}", s.text(iters[i].name), s.text(d.f->name));
        X size = lit(b, int64_t(1));
        std::vector<const Expr *> domains;
        for (Sym axis : of[i])
          for (const Axis &x : k.axes)
            if (x.name == axis) size = size * X{b, x.domain}, domains.push_back(x.domain);
        m.groups.push_back({of[i], domains, kind, tile, iters[i].name, simplify(b, size.e, known)});
      }
    };
    for (const Axis &x : k.axes) fits &= x.kind != AxisKind::Scan;
    add(AxisKind::Spatial, d.spatial);
    add(AxisKind::Reduce, d.reduce);
    if (fits && in_order(m, *store->target)) return m;  // the result's dimensions are the description's
    if (fits && !other) other = m;
  }
  return other;
}

}  // namespace mlc
