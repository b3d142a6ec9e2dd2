#include "arith/bounds.h"

#include <algorithm>

#include "arith/engine.h"

namespace mlc {

namespace {

bool infinite(int64_t v) { return v == Interval::kMin || v == Interval::kMax; }

// With the ends for what is beyond them; 0 * infinity is 0.
int64_t times(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  int64_t r, end = (a < 0) == (b < 0) ? Interval::kMax : Interval::kMin;
  return infinite(a) || infinite(b) || __builtin_mul_overflow(a, b, &r) ? end : r;
}
int64_t plus(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_add_overflow(a, b, &r) ? (a < 0 ? Interval::kMin : Interval::kMax) : r;
}

}  // namespace

Interval operator+(Interval a, Interval b) {
  Interval r;
  if (a.lo != Interval::kMin && b.lo != Interval::kMin) r.lo = plus(a.lo, b.lo);
  if (a.hi != Interval::kMax && b.hi != Interval::kMax) r.hi = plus(a.hi, b.hi);
  return r;
}
Interval operator*(Interval a, Interval b) {
  int64_t c[] = {times(a.lo, b.lo), times(a.lo, b.hi), times(a.hi, b.lo), times(a.hi, b.hi)};
  return {*std::min_element(c, c + 4), *std::max_element(c, c + 4)};
}
Interval operator*(Interval a, int64_t c) { return a * Interval{c, c}; }
Interval meet(Interval a, Interval b) { return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)}; }
Interval join(Interval a, Interval b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

// ---- Engine: facts

Engine::Engine(Build &b)
    : b(b),
      words{b.sym("min"), b.sym("max"), b.sym("clamp"), b.sym("where"), b.sym("index"), b.sym("any"), b.sym("all")} {}

void Engine::forget() {
  auto wipe = [](auto &memo) {  // clear() walks all buckets, those of a former crowd too
    if (memo.bucket_count() > 200) memo = {};
    else if (!memo.empty()) memo.clear();
  };
  wipe(normal_memo_), wipe(interval_memo_), wipe(poly_interval_memo_), wipe(nonneg_memo_);
  wipe(joined_memo_), wipe(expr_memo_), wipe(facts_memo_);
  spent_ = 0;
}

AtomId Engine::define(Sym name, bool size) {
  AtomId a = space.fresh_var(name);
  if (size) sizes_.insert(a);
  auto [it, added] = current_.try_emplace(name, a);
  names_.push_back({name, added ? kNone : it->second});
  it->second = a;
  forget();
  return a;
}

void Engine::fact(const Poly &p) {
  Poly t = tighten(p);
  if (t.is_constant()) return;
  for (AtomId a : space.atoms(t)) facts_by_atom_[a].push_back(uint32_t(facts_.size()));
  facts_.push_back(t);
  forget();
  factors(t);
}

// n m - f - 1 >= 0 with f >= 0: the product is positive, so each of its factors is, if none is negative; and a quotient
// that is at least 1 has a dividend that is at least the divisor. What a loop over n * m is entered with: n, m >= 1.
void Engine::factors(const Poly &given) {
  Poly product, rest;
  for (const Term &t : given.terms) (t.mono && t.coef > 0 ? product : rest).terms.push_back(t);
  if (product.zero()) return;
  std::vector<AtomId> common = space.factors(product.terms[0].mono);
  for (const Term &t : product.terms)
    std::erase_if(common, [&](AtomId a) { return !space.quotient(t.mono, space.mono({a})); });
  common.erase(std::unique(common.begin(), common.end()), common.end());
  auto divided = [&](AtomId a) { return space.atom(a).kind == AtomKind::Div && space.poly(space.atom(a).c).is_constant(); };
  bool lone = product.terms.size() == 1 && space.factors(product.terms[0].mono).size() == 1;
  if (common.empty() || (lone && !divided(common[0])) || interval(rest).hi >= 0) return;
  for (AtomId a : space.atoms(product))
    if (interval(a).lo < 0) return;
  for (AtomId a : common) {
    const Atom atom = space.atom(a);
    if (divided(a)) fact(space.poly(atom.a) - space.poly(atom.c));
    else if (interval(a).lo < 1) fact(space.of(a) - 1);
  }
}

// The facts given about an atom; of a crowd only the oldest and the newest.
std::vector<Poly> Engine::told_of(AtomId a) const {
  std::vector<Poly> out;
  auto it = facts_by_atom_.find(a);
  if (it == facts_by_atom_.end()) return out;
  const std::vector<uint32_t> &l = it->second;
  constexpr size_t kSide = 24;
  for (size_t i = 0; i < l.size(); i++)
    if (i < kSide || i + kSide >= l.size()) out.push_back(facts_[l[i]]);
    else i = l.size() - kSide - 1;
  return out;
}

// a == value from now on; what is known of `a` becomes known of its value.
void Engine::bind(AtomId a, const Poly &value) {
  equal_.push_back({a, value});
  std::vector<uint32_t> old;
  if (auto it = facts_by_atom_.find(a); it != facts_by_atom_.end()) old = it->second;
  for (uint32_t f : old) {
    Poly copy = facts_[f];
    fact(space.substitute(copy, a, value));
  }
  forget();
}

void Engine::equation(const Poly &p) {
  for (AtomId a : space.atoms(p)) {
    Poly k, r;
    space.split(p, a, &k, &r);
    bool unit = k.is_constant() && std::abs(k.constant()) == 1;
    if (unit && space.atom(a).kind == AtomKind::Var && !space.mentions(r, a)) return bind(a, r * -k.constant());
  }
  fact(p);
  fact(-p);
}

void Engine::divisible(const Poly &p, int64_t modulus) {
  Poly k, r;
  std::vector<AtomId> atoms = space.atoms(p);
  if (atoms.size() == 1) {
    space.split(p, atoms[0], &k, &r);
    if (k.is_constant() && std::abs(k.constant()) == 1) {  // a = modulus * (a // modulus) + residue
      int64_t residue = floor_mod(mul64(r.constant(), -k.constant()), modulus);
      return bind(atoms[0], div(space.of(atoms[0]), modulus) * modulus + residue);
    }
  }
  Poly d = p - div(p, modulus) * modulus;
  fact(-d);  // it is never negative
}

namespace {

Op negated(Op op) {
  switch (op) {
    case Op::Eq: return Op::Ne;
    case Op::Ne: return Op::Eq;
    case Op::Lt: return Op::Ge;
    case Op::Le: return Op::Gt;
    case Op::Gt: return Op::Le;
    default: return Op::Lt;
  }
}

}  // namespace

void Engine::assume(const Expr *cond, bool holds) {
  if (auto u = as<Unary>(cond); u && u->op == Op::Not) return assume(u->a, !holds);
  auto c = as<Binary>(cond);
  if (!c) return;
  if (c->op == (holds ? Op::And : Op::Or)) return assume(c->a, holds), assume(c->b, holds);
  if (!compares_indices(*c)) return;
  Op op = holds ? c->op : negated(c->op);
  try {
    int64_t m, r;
    auto mod = as<Binary>(c->a);
    if (op == Op::Eq && mod && mod->op == Op::Mod && int_value(mod->b, &m) && int_value(c->b, &r) && m > 0) {
      if (r >= 0 && r < m && m > 1) divisible(normal(mod->a) - r, m);  // of 1 it says nothing
      return;
    }
    Poly d = normal(c->a) - normal(c->b);
    switch (op) {
      case Op::Lt: return fact(-d - 1);
      case Op::Le: return fact(-d);
      case Op::Gt: return fact(d - 1);
      case Op::Ge: return fact(d);
      case Op::Eq: return equation(d);
      default:
        if (nonneg(d)) fact(d - 1);
        else if (nonneg(-d)) fact(-d - 1);
    }
  } catch (Overflow) {
  }
}

size_t Engine::mark() {
  frames_.push_back({names_.size(), facts_.size(), equal_.size()});
  return frames_.size() - 1;
}

void Engine::pop(size_t mark) {
  Frame to = frames_[mark];
  frames_.resize(mark);
  if (names_.size() == to.names && facts_.size() == to.facts && equal_.size() == to.equal) return;
  for (; facts_.size() > to.facts; facts_.pop_back())
    for (AtomId a : space.atoms(facts_.back())) facts_by_atom_[a].pop_back();
  for (; names_.size() > to.names; names_.pop_back()) {
    Undo u = names_.back();
    if (u.before == kNone) current_.erase(u.name);
    else current_[u.name] = u.before;
  }
  equal_.resize(to.equal);
  forget();
}

Engine::Is Engine::type(const Expr *e) const {
  // Operands have one type: the first that is no literal tells it. The one that is not deep is asked first.
  auto either = [&](const Expr *x, const Expr *y) {
    if (x->kind == Kind::Binary) std::swap(x, y);
    Is is = type(x);
    return is == Is::Unknown ? type(y) : is;
  };
  switch (e->kind) {
    case Kind::Int: return Is::Unknown;
    case Kind::Name: return knows(to<Name>(e).name) ? Is::Index : Is::Other;
    case Kind::Unary: return to<Unary>(e).op == Op::Neg ? type(to<Unary>(e).a) : Is::Other;
    case Kind::Binary: {
      auto &x = to<Binary>(e);
      return x.op >= Op::Add ? either(x.a, x.b) : Is::Other;
    }
    case Kind::Call: {
      auto &c = to<Call>(e);
      if (c.global || !c.iters.empty()) return Is::Other;
      if (c.callee == words.index) return Is::Index;
      size_t first = c.callee == words.where ? 1 : 0;
      if (!first && c.callee != words.min && c.callee != words.max && c.callee != words.clamp) return Is::Other;
      Is is = Is::Unknown;
      for (size_t i = first; i < c.args.size() && is == Is::Unknown; i++) is = type(c.args[i]);
      return is;
    }
    default: return Is::Other;
  }
}

bool Engine::compares_indices(const Binary &e) const {
  if (e.op < Op::Eq || e.op > Op::Ge) return false;
  Is a = type(e.a), b = type(e.b);
  return a == Is::Index || b == Is::Index || (a == Is::Unknown && b == Is::Unknown);
}

// ---- Bounds

Bounds::Bounds(Build &b) : engine_(new Engine(b)) {}
Bounds::~Bounds() = default;

void Bounds::index(Sym name) { engine_->define(name); }
void Bounds::dim(Sym name) { engine_->fact(engine_->space.of(engine_->define(name, true))); }
void Engine::range(Sym name, const Poly &lo, const Poly &end) {
  Poly v = space.of(define(name));
  try {
    fact(v - lo);
    fact(end - v - 1);
  } catch (Overflow) {
  }
}

void Bounds::range(Sym name, const Expr *extent) { engine_->range(name, Poly(), engine_->normal(extent)); }
void Bounds::range(Sym name, const Expr *lo, const Expr *end) {
  engine_->range(name, engine_->normal(lo), engine_->normal(end));
}
void Bounds::ranges(std::span<const std::pair<Sym, const Expr *>> names) {
  std::vector<Poly> ends;
  for (auto &n : names) ends.push_back(engine_->normal(n.second));
  for (size_t i = 0; i < names.size(); i++) engine_->range(names[i].first, Poly(), ends[i]);
}
void Bounds::equal(Sym name, const Expr *value) {
  Engine &e = *engine_;
  Poly p = e.normal(value), v = e.space.of(e.define(name));
  try {
    e.fact(v - p);
    e.fact(p - v);
  } catch (Overflow) {
  }
}
void Bounds::assume(const Expr *cond) { engine_->assume(cond); }
size_t Bounds::mark() const { return engine_->mark(); }
void Bounds::pop(size_t mark) { engine_->pop(mark); }
bool Bounds::knows(Sym name) const { return engine_->knows(name); }
bool Bounds::is_index(const Expr *e) const { return engine_->type(e) != Engine::Is::Other; }

Interval interval(const Expr *e, const Bounds &known) {
  Engine &engine = known.engine();
  return engine.interval(engine.normal(e));
}

Congruence congruence(const Expr *e, const Bounds &known) {
  Engine &engine = known.engine();
  Poly p = engine.normal(e);
  int64_t m = p.content();
  return {m, m ? floor_mod(p.constant(), m) : p.constant()};
}

}  // namespace mlc
