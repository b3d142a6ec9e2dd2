#include "check/race.h"

#include <fmt/core.h>

#include <algorithm>

#include "arith/prove.h"
#include "ir/solve.h"
#include "ir/step.h"
#include "ir/walk.h"
#include "text/text.h"

namespace mlc {

namespace {

using Ranges = std::vector<std::pair<Sym, const Expr *>>;  // 0 <= name < extent; null: any integer

struct Access {
  Sym buffer;                        // its root
  Sym name;                          // as the text has it
  std::vector<const Expr *> index;   // in loops inside, what is outside, and the loop itself
  bool write, atomic;
  Ranges inner;                      // loops and unknowns inside the loop
  std::vector<const Expr *> facts;   // that hold there
  std::string text;
};

class Collector {
 public:
  Collector(Build &b, const For &loop, const RaceScope &scope) : b_(b), loop_(loop), scope_(scope) {
    body(loop.body);
  }
  std::vector<Access> all;

 private:
  struct Part {  // of a view that is made inside the loop
    Sym base;
    std::vector<const Expr *> lo;
    std::vector<bool> drop;
  };

  const Expr *unknown() {
    Sym s = b_.sym(fmt::format("any {}", ++unknowns_));
    inner_.push_back({s, nullptr});
    return b_.name(s);
  }
  const Expr *within(const Expr *extent) {
    Sym s = b_.sym(fmt::format("any {}", ++unknowns_));
    inner_.push_back({s, extent});
    return b_.name(s);
  }
  // In terms of loops; what reads memory may be anything.
  const Expr *plain(const Expr *e) {
    e = substitute(b_, e, with_);
    bool reads = false;
    each_expr(e, [&](const Expr *x) { return !(reads |= x->kind == Kind::Load || (x->kind == Kind::Call && to<Call>(x).global)); });
    return reads ? unknown() : e;
  }

  void touch(Sym name, std::vector<const Expr *> index, bool write, bool atomic, std::string text) {
    for (auto it = views_.find(name); it != views_.end(); it = views_.find(name)) {
      std::vector<const Expr *> base;
      size_t next = 0;
      for (size_t d = 0; d < it->second.lo.size(); d++)
        base.push_back(it->second.drop[d] ? it->second.lo[d] : fold(b_, Op::Add, it->second.lo[d], index[next++]));
      index = std::move(base), name = it->second.base;
    }
    if (own_.count(name) || combining_.count(name)) return;
    if (scope_.threads && scope_.shared(name)) return;
    all.push_back({scope_.root(name), name, std::move(index), write, atomic, inner_, facts_, std::move(text)});
  }
  // A load or store, or a region: every element of it.
  void touch(const Load &l, bool write, bool atomic = false) {
    if (l.global) return;
    size_t mark = inner_.size();
    std::vector<const Expr *> index;
    const Type *t = type_of(l.buffer);
    for (size_t d = 0; d < l.index.size(); d++) {
      const Expr *e = l.index[d];
      auto *r = as<Range>(e);
      if (r) index.push_back(fold(b_, Op::Add, plain(r->lo), within(plain(r->extent))));
      else if (e->kind == Kind::All) index.push_back(t && d < t->rank() ? within(plain(t->dims[d])) : unknown());
      else index.push_back(plain(e));
    }
    touch(l.buffer, std::move(index), write, atomic, print(b_, &l));
    inner_.resize(mark);
  }
  void touch_all(Sym name, bool write) {
    const Type *t = type_of(name);
    if (!t || !t->tensor) return;
    size_t mark = inner_.size();
    std::vector<const Expr *> index;
    for (const Expr *d : t->dims) index.push_back(within(plain(d)));
    touch(name, std::move(index), write, false, std::string(b_.text(name)));
    inner_.resize(mark);
  }
  const Type *type_of(Sym name) const {
    auto it = types_.find(name);
    return it != types_.end() ? it->second : scope_.type(name);
  }

  void reads(const Expr *e) {
    if (auto *l = as<Load>(e)) {
      for (const Expr *i : l->index) reads(i);
      return touch(*l, false);
    }
    auto *c = as<Call>(e);
    size_t mark = inner_.size();
    Substitution saved = with_;
    for (size_t k = 0; c && k < c->iters.size(); k++) {
      const Iter &i = c->iters[k];
      reads(i.extent);
      const Expr *extent = plain(i.extent);
      with_[i.name] = within(extent);
    }
    each_child(e, [&](const Expr *x) { reads(x); });
    with_ = std::move(saved);
    inner_.resize(mark);
  }

  void operand(const Expr *e, bool write) {
    if (auto *n = as<Name>(e)) {
      if (type_of(n->name)) touch_all(n->name, write);
    } else if (auto *l = as<Load>(e)) {
      for (const Expr *i : l->index) reads(i);
      touch(*l, write);
    } else {
      reads(e);
    }
  }

  void body(Stmts l) {
    Substitution saved = with_;
    size_t facts = facts_.size(), inner = inner_.size();
    for (size_t i = 0; i < l.size();) {
      size_t n = scope_.threads ? step_length(l, i, scope_.function) : 0;
      if (n) step(l.subspan(i, n)), i += n;
      else statement(l[i++]);
    }
    with_ = std::move(saved), facts_.resize(facts), inner_.resize(inner);
  }

  // Of a reduction: threads combine what they have, and meet others alone.
  void step(Stmts l) {
    std::vector<const Load *> targets;
    for (const Stmt *s : l)
      if (auto *x = as<Store>(s)) targets.push_back(x->target);
    auto *let = as<Let>(l[0]);
    each_child(let ? let->value : to<Store>(l[0]).value, [&](const Expr *x) {
      if (std::none_of(targets.begin(), targets.end(), [&](auto *t) { return equal(x, t); })) reads(x);
    });
    if (let)
      for (const Def &d : let->defs) with_[d.name] = unknown();
    for (const Load *t : targets) {
      for (const Expr *i : t->index) reads(i);
      touch(*t, true, true);
    }
  }

  void statement(const Stmt *s) {
    switch (s->kind) {
      case Kind::Let: {
        auto &x = to<Let>(s);
        reads(x.value);
        bool index = x.defs.size() == 1 && !x.defs[0].type->tensor && x.defs[0].type->elem == DType::Index;
        for (const Def &d : x.defs) with_[d.name] = index ? plain(x.value) : unknown();
        return;
      }
      case Kind::Store: {
        auto &x = to<Store>(s);
        for (const Expr *i : x.target->index) reads(i);
        if (!x.atomic) reads(x.value);
        else each_expr(x.value, [&](const Expr *e) {
          auto *l = as<Load>(e);
          if (l && !equal(l, x.target)) touch(*l, false);
          return true;
        });
        return touch(*x.target, true, x.atomic);
      }
      case Kind::Compute: {
        auto &x = to<Compute>(s);
        size_t mark = inner_.size();
        Substitution saved = with_;
        for (const Iter &i : x.results[0].iters) {
          const Expr *extent = plain(i.extent);
          with_[i.name] = within(extent);
        }
        reads(x.value);
        for (const Result &r : x.results) {
          std::vector<const Expr *> index;
          for (const Iter &i : x.results[0].iters) index.push_back(with_[i.name]);
          touch(r.name, std::move(index), true, false, std::string(b_.text(r.name)));
        }
        with_ = std::move(saved);
        inner_.resize(mark);
        return;
      }
      case Kind::Alloc: {
        auto &x = to<Alloc>(s);
        types_[x.def.name] = x.def.type;
        if (!x.base || own_.count(x.base)) own_.insert(x.def.name);
        else aliased(x.def.name, x.base);
        return;
      }
      case Kind::View: {
        auto &x = to<View>(s);
        types_[x.def.name] = x.def.type;
        if (own_.count(x.source->buffer)) return void(own_.insert(x.def.name));
        Part p{x.source->buffer, {}, {}};
        for (const Expr *e : x.source->index) {
          auto *r = as<Range>(e);
          bool keeps = r || e->kind == Kind::All;
          p.lo.push_back(r ? plain(r->lo) : keeps ? b_.integer(0) : plain(e));
          p.drop.push_back(!keeps);
        }
        views_[x.def.name] = std::move(p);
        return;
      }
      case Kind::CallStmt: {
        auto &x = to<CallStmt>(s);
        const Func *f = x.call->global ? scope_.function(x.call->callee) : nullptr;
        for (size_t i = 0; i < x.call->args.size(); i++) {
          bool writes = f && i < f->params.size() && f->params[i].mode != Mode::In;
          operand(x.call->args[i], writes);
          if (writes) operand(x.call->args[i], false);
        }
        for (const Expr *d : x.dests) operand(d, true);
        return;
      }
      case Kind::Assume: return fact(to<Assume>(s).cond);
      case Kind::For: {
        auto &x = to<For>(s);
        reads(x.iter.extent);
        size_t mark = inner_.size();
        Substitution saved = with_;
        const Expr *extent = plain(x.iter.extent);
        with_[x.iter.name] = within(extent);
        body(x.body);
        with_ = std::move(saved);
        inner_.resize(mark);
        return;
      }
      case Kind::If: {
        auto &x = to<If>(s);
        reads(x.cond);
        size_t mark = facts_.size();
        fact(x.cond);
        body(x.body);
        facts_.resize(mark);
        return body(x.other);
      }
      case Kind::While: return reads(to<While>(s).cond), body(to<While>(s).body);
      case Kind::Block: return block(to<Block>(s));
      default: each_body(s, [&](Stmts l) { body(l); });
    }
  }

  void fact(const Expr *cond) {
    bool loads = false;
    each_expr(cond, [&](const Expr *x) { return !(loads |= x->kind == Kind::Load || (x->kind == Kind::Call && to<Call>(x).global)); });
    if (!loads) facts_.push_back(substitute(b_, cond, with_));
  }

  void block(const Block &x) {
    Substitution saved = with_;
    size_t facts = facts_.size(), inner = inner_.size();
    std::unordered_set<Sym> combining = combining_;
    if (x.guard) reads(x.guard), fact(x.guard);
    std::vector<std::pair<Sym, const Expr *>> axes;
    for (const Axis &a : x.axes) {
      const Expr *value = plain(a.binding), *domain = plain(a.domain);
      facts_.push_back(b_.binary(Op::Ge, value, b_.integer(0)));
      facts_.push_back(b_.binary(Op::Lt, value, domain));
      axes.push_back({a.name, value});
      if (scope_.threads && a.kind == AxisKind::Reduce && mentions(value, loop_.iter.name))
        each_stmt(x.body, [&](const Stmt *s) {
          if (auto *t = as<Store>(s)) combining_.insert(t->target->buffer);
        });
    }
    for (auto &[name, value] : axes) with_[name] = value;
    body(x.inits), body(x.body);
    with_ = std::move(saved), facts_.resize(facts), inner_.resize(inner), combining_ = std::move(combining);
  }

  // Another name for bytes of a buffer: nothing is known of where they are.
  void aliased(Sym name, Sym base) {
    const Type *t = type_of(base);
    Part p{base, {}, {}};
    for (size_t d = 0; t && d < t->rank(); d++) {
      Sym s = b_.sym(fmt::format("any {}", ++unknowns_));
      inner_.push_back({s, nullptr});
      p.lo.push_back(b_.name(s)), p.drop.push_back(true);
    }
    views_[name] = std::move(p);
  }

  Build &b_;
  const For &loop_;
  const RaceScope &scope_;
  Substitution with_;
  Ranges inner_;
  std::vector<const Expr *> facts_;
  std::unordered_set<Sym> own_, combining_;
  std::unordered_map<Sym, const Type *> types_;
  std::unordered_map<Sym, Part> views_;
  int unknowns_ = 0;
};

// Are a, in one turn, and c, in a later one, at different elements?
bool apart(Build &b, Bounds &known, const For &loop, const Access &a, const Access &c, const Type *t) {
  Substitution later;
  Sym v = loop.iter.name, w = b.sym(fmt::format("later {}", b.text(v)));
  later[v] = b.name(w);
  for (auto &[name, extent] : c.inner) later[name] = b.name(b.sym(fmt::format("later {}", b.text(name))));
  size_t mark = known.mark();
  auto enter = [&](const Ranges &inner, const Substitution *s) {
    for (auto [name, extent] : inner) {
      Sym n = s ? to<Name>(s->at(name)).name : name;
      if (extent) known.range(n, s ? substitute(b, extent, *s) : extent);
      else known.index(n);
    }
  };
  known.range(v, loop.iter.extent);
  known.range(w, b.binary(Op::Add, b.name(v), b.integer(1)), loop.iter.extent);
  enter(a.inner, nullptr), enter(c.inner, &later);
  // What holds in both turns may never hold: i == 0, and in a later turn too.
  bool found = false;
  auto holds = [&](const Expr *f) {
    found = found || prove(b, b.unary(Op::Not, f), known);
    known.assume(f);
  };
  for (const Expr *f : a.facts) holds(f);
  for (const Expr *f : c.facts) holds(substitute(b, f, later));
  // k * 128 + v and j * 128 + w, v < w < 128: their rests are apart.
  auto rests = [&](const Expr *x, const Expr *y) {
    int64_t n;
    if (!int_value(loop.iter.extent, &n) || n < 2 || !mentions(x, v) || !mentions(y, w)) return false;
    return provably_less(b, b.binary(Op::Mod, x, b.integer(n)), b.binary(Op::Mod, y, b.integer(n)), known);
  };
  const Expr *p = b.integer(0), *q = b.integer(0);  // distances from the first element, row by row
  for (size_t d = 0; d < a.index.size() && d < c.index.size() && !found; d++) {
    const Expr *x = a.index[d], *y = substitute(b, c.index[d], later);
    found = provably_less(b, x, y, known) || provably_less(b, y, x, known) || rests(x, y);
    if (found || !t || d >= t->rank()) continue;
    p = fold(b, Op::Add, fold(b, Op::Mul, p, t->dims[d]), x), q = fold(b, Op::Add, fold(b, Op::Mul, q, t->dims[d]), y);
    if (d) found = provably_less(b, p, q, known) || provably_less(b, q, p, known);
  }
  if (!found && a.index.size() == c.index.size()) {  // y[f % m, f // m]: no row decides, all of them do
    std::vector<const Expr *> other;
    for (const Expr *e : c.index) other.push_back(substitute(b, e, later));
    found = provably_different(b, a.index, other, known);
  }
  known.pop(mark);
  return found;
}

}  // namespace

std::string race_of(Build &b, Bounds &known, const For &loop, const RaceScope &scope) {
  std::vector<Access> all = Collector(b, loop, scope).all;
  std::unordered_set<Sym> written;
  for (const Access &a : all)
    if (a.write) written.insert(a.buffer);
  constexpr size_t kMost = 600;  // pairs
  size_t tried = 0;
  for (size_t i = 0; i < all.size(); i++)
    for (size_t j = i; j < all.size(); j++) {
      const Access &a = all[i], &c = all[j];
      if (a.buffer != c.buffer || (!a.write && !c.write) || (a.atomic && c.atomic)) continue;
      bool same_name = a.name == c.name;  // else two views of one buffer, of which only the buffer is known
      if (++tried <= kMost && same_name && apart(b, known, loop, a, c, scope.type(a.name)) &&
          (i == j || apart(b, known, loop, c, a, scope.type(a.name))))
        continue;
      return i == j ? fmt::format("{} of different turns", a.text) : fmt::format("{} and {} of different turns", a.text, c.text);
    }
  return "";
}

}  // namespace mlc
