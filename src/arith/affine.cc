#include "arith/affine.h"

#include <algorithm>

#include "arith/engine.h"
#include "arith/prove.h"
#include "arith/simplify.h"

namespace mlc {

std::optional<Affine> affine(Build &b, const Expr *e, Syms vars, const Bounds &known) {
  Engine &engine = known.engine();
  Poly p = engine.normal(e);
  Affine out;
  std::vector<AtomId> atoms;
  for (Sym v : vars) {
    std::vector<AtomId> a = engine.space.atoms(engine.normal(b.name(v)));
    // A variable of one value only, or known to equal another expression, has no coefficient.
    if (a.size() != 1 || engine.space.atom(a[0]).kind != AtomKind::Var) return std::nullopt;
    Poly k, r;
    engine.space.split(p, a[0], &k, &r);
    out.coefs.push_back(engine.expr(k));
    atoms.push_back(a[0]);
    p = r;
  }
  out.rest = engine.expr(p);
  auto free = [&](const Expr *x) {
    return std::none_of(vars.begin(), vars.end(), [&](Sym v) { return mentions(x, v); });
  };
  if (!free(out.rest) || !std::all_of(out.coefs.begin(), out.coefs.end(), free)) return std::nullopt;
  return out;
}

namespace {

Substitution binding(const Map &m, Exprs at) {
  Substitution s;
  for (size_t i = 0; i < m.from->items.size() && i < at.size(); i++) s[to<Name>(m.from->items[i]).name] = at[i];
  return s;
}

}  // namespace

Exprs apply(Build &b, const Map &m, Exprs at, const Bounds &known) {
  std::vector<const Expr *> out;
  Substitution s = binding(m, at);
  for (const Expr *e : m.to->items) out.push_back(simplify(b, substitute(b, e, s), known));
  return b.list(out);
}

const Map *compose(Build &b, const Map &outer, const Map &inner, const Bounds &known) {
  return b.map(inner.from, b.make_list(apply(b, outer, inner.to->items, known)));
}

// ---- inverse

namespace {

// One digit of a base: (base // low) % extent. Symbols may stand in low and extent.
struct Digit {
  Poly base, low, extent;
  bool whole;     // everything above `low`: no modulo is written
  Poly scale;     // of the digit in its sum
};

class Inverter {
 public:
  explicit Inverter(Engine &e) : e_(e) {}

  std::vector<std::pair<AtomId, Poly>> vars;  // and their extents

  // p = constant + digits, each the remainder of those with larger scales: sorted from the lowest.
  std::optional<std::vector<Digit>> digits(Poly p, bool vars_only) {
    std::vector<Digit> out;
    p = e_.readable(p - p.constant());
    // A sum of variables may itself be the base: (i * 4 + j) // 6.
    for (const Term &t : p.terms) {
      Poly scale(t.coef);
      AtomId atom = kNone;
      for (AtomId a : e_.space.factors(t.mono)) {
        if (!depends(a)) scale = e_.space.mul(scale, e_.space.of(a));
        else if (atom == kNone) atom = a;
        else return std::nullopt;
      }
      if (atom == kNone || !e_.positive(scale)) return std::nullopt;
      std::optional<Digit> d = digit(atom, vars_only);
      if (!d) return std::nullopt;
      d->scale = scale;
      out.push_back(*d);
    }
    if (!order(out)) return std::nullopt;
    return out;
  }

  // The terms with variables, and those without.
  std::pair<Poly, Poly> parts(const Poly &p) {
    Poly moving, fixed;
    for (const Term &t : p.terms) {
      auto f = e_.space.factors(t.mono);
      bool moves = std::any_of(f.begin(), f.end(), [&](AtomId a) { return depends(a); });
      (moves ? moving : fixed).terms.push_back(t);
    }
    return {moving, fixed};
  }

  // How many values a mixed-radix sum has.
  Poly count(const std::vector<Digit> &l) {
    return l.empty() ? Poly(1) : e_.space.mul(l.back().scale, l.back().extent);
  }

  bool same(const Poly &a, const Poly &b) { return a == b || (e_.nonneg(a - b) && e_.nonneg(b - a)); }

  std::optional<Poly> extent_of(const Poly &base) {
    for (auto &[v, extent] : vars)
      if (base == e_.space.of(v)) return extent;
    auto l = digits(base, true);
    if (!l) return std::nullopt;
    return count(*l);
  }

 private:
  static constexpr AtomId kNone = ~0u;

  bool depends(AtomId a) {
    Poly p = e_.space.of(a);
    return std::any_of(vars.begin(), vars.end(), [&](auto &v) { return e_.space.mentions(p, v.first); });
  }

  std::optional<Digit> digit(AtomId id, bool vars_only) {
    const Atom atom = e_.space.atom(id);
    Digit d{e_.space.of(id), 1, 0, true, 1};
    if (atom.kind == AtomKind::Mod) {
      d.extent = e_.space.poly(atom.c);
      d.whole = false;
      d.base = e_.space.poly(atom.a);
      if (auto inner = single(d.base); inner && e_.space.atom(*inner).kind == AtomKind::Div)
        d.low = e_.space.poly(e_.space.atom(*inner).c), d.base = e_.space.poly(e_.space.atom(*inner).a);
    } else if (atom.kind == AtomKind::Div) {
      d.low = e_.space.poly(atom.c), d.base = e_.space.poly(atom.a);
    } else if (atom.kind != AtomKind::Var) {
      return std::nullopt;
    }
    if (vars_only && (atom.kind != AtomKind::Var)) return std::nullopt;
    if (!e_.positive(d.low)) return std::nullopt;
    std::optional<Poly> total = extent_of(d.base);
    if (!total) return std::nullopt;
    Poly above = e_.div(*total + d.low - 1, d.low);
    if (d.whole) d.extent = above;
    else if (!e_.positive(d.extent)) return std::nullopt;
    return d;
  }

  std::optional<AtomId> single(const Poly &p) {
    if (p.terms.size() != 1 || p.terms[0].coef != 1) return std::nullopt;
    const std::vector<AtomId> &f = e_.space.factors(p.terms[0].mono);
    return f.size() == 1 ? std::optional(f[0]) : std::nullopt;
  }

  // Each scale is the product of the extents below it.
  bool order(std::vector<Digit> &l) {
    Poly scale(1);
    for (size_t i = 0; i < l.size(); i++) {
      size_t k = i;
      while (k < l.size() && !same(l[k].scale, scale)) k++;
      if (k == l.size()) return false;
      std::swap(l[i], l[k]);
      scale = e_.space.mul(scale, l[i].extent);
    }
    return true;
  }

  Engine &e_;
};

// What is known of a digit: where it stands in the results.
struct Place {
  Digit digit;
  const Expr *value;
};

}  // namespace

std::optional<Inverse> inverse(Build &b, const Map &m, Exprs extents, Syms names, const Bounds &known) {
  Engine &e = known.engine();
  size_t mark = known.mark();
  std::optional<Inverse> out;
  auto attempt = [&]() -> std::optional<Inverse> {
    Inverter inv(e);
    size_t n = m.from->items.size();
    if (extents.size() != n || names.size() != m.to->items.size()) return std::nullopt;
    std::vector<Poly> sizes;
    for (const Expr *x : extents) sizes.push_back(e.normal(x));
    for (size_t i = 0; i < n; i++) {
      Sym v = to<Name>(m.from->items[i]).name;
      e.range(v, Poly(), sizes[i]);
      Poly p = e.normal(m.from->items[i]);
      if (p.is_constant()) continue;  // an extent of 1
      inv.vars.push_back({e.space.atoms(p)[0], sizes[i]});
    }
    // The results as mixed-radix numbers of digits.
    Inverse r{nullptr, {}, true};
    std::vector<Place> places;
    for (size_t k = 0; k < names.size(); k++) {
      auto [moving, fixed] = inv.parts(e.normal(m.to->items[k]));
      auto l = inv.digits(moving, false);
      bool mirrored = !l;  // n - 1 - i
      if (mirrored) l = inv.digits(-moving, false);
      if (!l) return std::nullopt;
      Poly first = mirrored ? fixed - inv.count(*l) + 1 : fixed;
      if (mirrored && !e.nonneg(first)) return std::nullopt;
      r.image.push_back(e.expr(mirrored ? fixed + 1 : inv.count(*l) + fixed));
      if (!inv.same(first, Poly())) r.onto = false;
      const Expr *y = b.name(names[k]);
      if (mirrored) y = b.binary(Op::Sub, e.expr(fixed), y);
      else if (!fixed.zero()) y = b.binary(Op::Sub, y, e.expr(fixed));
      for (size_t i = 0; i < l->size(); i++) {
        const Expr *v = i ? b.binary(Op::FloorDiv, y, e.expr((*l)[i].scale)) : y;
        if (i + 1 < l->size()) v = b.binary(Op::Mod, v, e.expr((*l)[i].extent));
        places.push_back({(*l)[i], v});
      }
    }
    // Bases from their digits, variables from bases that are sums.
    std::vector<std::pair<AtomId, const Expr *>> found;
    while (!places.empty()) {
      Poly base = places[0].digit.base;
      std::vector<Place> mine, others;
      for (Place &p : places) (p.digit.base == base ? mine : others).push_back(p);
      places = others;
      std::optional<Poly> total = inv.extent_of(base);
      if (!total) return std::nullopt;
      Poly low(1);
      const Expr *value = nullptr;
      for (size_t i = 0; i < mine.size(); i++) {
        size_t k = i;
        while (k < mine.size() && !inv.same(mine[k].digit.low, low)) k++;
        if (k == mine.size()) return std::nullopt;
        std::swap(mine[i], mine[k]);
        const Expr *part = i ? b.binary(Op::Mul, mine[i].value, e.expr(low)) : mine[i].value;
        value = value ? b.binary(Op::Add, part, value) : part;
        low = e.space.mul(low, mine[i].digit.extent);
      }
      if (!e.nonneg(low - *total)) return std::nullopt;  // the upper digits are missing
      if (!inv.same(low, *total)) r.onto = false;
      auto l = inv.digits(base, true);
      if (!l) return std::nullopt;
      const Expr *shifted = base.constant() ? b.binary(Op::Sub, value, b.integer(base.constant())) : value;
      for (size_t i = 0; i < l->size(); i++) {
        const Expr *v = i ? b.binary(Op::FloorDiv, shifted, e.expr((*l)[i].scale)) : shifted;
        if (i + 1 < l->size()) v = b.binary(Op::Mod, v, e.expr((*l)[i].extent));
        found.push_back({e.space.atoms((*l)[i].base)[0], v});
      }
    }
    if (found.size() != inv.vars.size()) return std::nullopt;
    std::vector<const Expr *> values, from;
    for (size_t i = 0; i < n; i++) {
      Poly p = e.normal(m.from->items[i]);
      if (p.is_constant()) {
        values.push_back(b.integer(0));
        continue;
      }
      auto it = std::find_if(found.begin(), found.end(), [&](auto &f) { return f.first == e.space.atoms(p)[0]; });
      if (it == found.end()) return std::nullopt;
      values.push_back(it->second);
    }
    known.engine().pop(mark);
    for (size_t k = 0; k < names.size(); k++) {
      from.push_back(b.name(names[k]));
      e.range(names[k], Poly(), e.normal(r.image[k]));
    }
    for (const Expr *&v : values) v = simplify(b, v, known);
    r.map = b.map(&to<List>(b.make_list(b.list(from))), b.make_list(b.list(values)));
    return r;
  };
  try {
    out = attempt();
  } catch (Overflow) {
  }
  e.pop(mark);
  return out;
}

// ---- spans

namespace {

class Extremes {
 public:
  Extremes(Build &b, const Bounds &known) : b_(b), known_(known) {}

  // How e changes with v: +1 never falls, -1 never rises, 0 both; nullopt: not known.
  std::optional<int> direction(const Expr *e, Sym v) {
    if (!mentions(e, v)) return 0;
    if (e->kind == Kind::Name) return 1;
    if (auto u = as<Unary>(e); u && u->op == Op::Neg) return flip(direction(u->a, v), -1);
    if (auto x = as<Binary>(e)) {
      switch (x->op) {
        case Op::Add: return both(direction(x->a, v), direction(x->b, v));
        case Op::Sub: return both(direction(x->a, v), flip(direction(x->b, v), -1));
        case Op::Mul: {
          if (mentions(x->a, v) && mentions(x->b, v)) return std::nullopt;
          const Expr *moving = mentions(x->a, v) ? x->a : x->b, *other = moving == x->a ? x->b : x->a;
          return flip(direction(moving, v), sign(other));
        }
        case Op::FloorDiv: return mentions(x->b, v) ? std::nullopt : flip(direction(x->a, v), sign(x->b));
        default: return std::nullopt;
      }
    }
    auto c = as<Call>(e);
    const Engine::Words &words = known_.engine().words;
    bool extreme = c && !c->global && c->iters.empty() && (c->callee == words.min || c->callee == words.max);
    if (extreme && c->args.size() == 2) return both(direction(c->args[0], v), direction(c->args[1], v));
    return std::nullopt;
  }

 private:
  using Dir = std::optional<int>;
  static Dir flip(Dir d, std::optional<int> s) { return d && s ? Dir(*d * *s) : std::nullopt; }
  static Dir both(Dir a, Dir c) {
    if (!a || !c || *a * *c < 0) return std::nullopt;
    return *a ? a : c;
  }
  std::optional<int> sign(const Expr *e) {
    if (provably_less_equal(b_, b_.integer(0), e, known_)) return 1;
    if (provably_less_equal(b_, e, b_.integer(0), known_)) return -1;
    return std::nullopt;
  }
  Build &b_;
  const Bounds &known_;
};

}  // namespace

std::optional<Span> span_of(Build &b, const Expr *e, Iters iters, const Bounds &known) {
  Engine &engine = known.engine();
  size_t mark = known.mark();
  for (const Iter &i : iters) engine.range(i.name, Poly(), engine.normal(i.extent));
  e = simplify(b, e, known);
  const Expr *lo = e, *hi = e;
  bool exact = true;
  Extremes ends(b, known);
  // Inner variables first: the range of one may mention those before it.
  for (size_t k = iters.size(); k-- > 0;) {
    Sym v = iters[k].name;
    const Expr *zero = b.integer(0), *last = b.binary(Op::Sub, iters[k].extent, b.integer(1));
    for (bool low : {true, false}) {
      const Expr *&end = low ? lo : hi;
      std::optional<int> d = ends.direction(end, v);
      if (d) {
        end = simplify(b, substitute(b, end, {{v, (*d > 0) == low ? zero : last}}), known);
        continue;
      }
      Interval all = interval(end, known);  // a modulo, say
      exact = false;
      if ((low ? all.lo : all.hi) == (low ? Interval::kMin : Interval::kMax)) {
        engine.pop(mark);
        return std::nullopt;
      }
      end = b.integer(low ? all.lo : all.hi);
    }
  }
  engine.pop(mark);
  const Expr *extent = b.binary(Op::Add, b.binary(Op::Sub, hi, lo), b.integer(1));
  return Span{simplify(b, lo, known), simplify(b, extent, known), exact};
}

}  // namespace mlc
