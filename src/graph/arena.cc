#include "graph/arena.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "arith/bounds.h"
#include "ir/solve.h"
#include "text/text.h"

namespace mlc {

X bytes_of(Build &b, const Type *t) {
  int64_t bits = info(t->elem).bits;
  X n = lit(b, bits % 8 == 0 ? bits / 8 : bits);
  if (attr(b, t->attrs, "strides") && t->rank()) {
    Exprs strides = strides_of(b, t);
    X most{b, fold(b, Op::Mul, t->dims[0], strides[0])};
    for (size_t d = 1; d < t->rank(); d++) {  // what the dimension outside of it does not hold already
      const Expr *inner = fold(b, Op::Mul, t->dims[d], strides[d]);
      int64_t outside, inside;
      if (int_value(strides[d - 1], &outside) && int_value(inner, &inside) ? outside < inside
                                                                            : !equal(strides[d - 1], inner))
        most = max(most, X{b, inner});
    }
    n = n * most;
    return bits % 8 == 0 ? n : floordiv(n + 7, 8);
  }
  for (bool literals : {true, false})  // 256 * n, not n * 64 * 4
    for (const Expr *d : t->dims)
      if ((d->kind == Kind::Int) == literals) n = n * X(b, d);
  return bits % 8 == 0 ? n : floordiv(n + 7, 8);
}

namespace {

// A size as c * m: products are taken apart, everything else is one opaque factor.
struct Sized {
  int64_t c = 1;
  std::vector<const Expr *> factors;
};
void take_apart(const Expr *e, Sized &s, bool &ok) {
  int64_t v;
  if (int_value(e, &v)) {
    ok = ok && !__builtin_mul_overflow(s.c, v, &s.c);
  } else if (auto *m = as<Binary>(e); m && m->op == Op::Mul) {
    take_apart(m->a, s, ok), take_apart(m->b, s, ok);
  } else {
    s.factors.push_back(e);
  }
}

// A multiple of kArenaAlign that is at least `bytes`, as c * m with little loss: c is rounded up where that costs at most a
// quarter, else the whole is: 4 * n -> 64 * ((4 * n + 63) // 64).
Sized sized(Build &b, X bytes) {
  Sized s;
  bool ok = true;
  take_apart(bytes.e, s, ok);
  if (!ok) s = {1, {bytes.e}};
  int64_t known = 1;  // of the symbolic part: it is a multiple of this
  Bounds none(b);
  for (const Expr *f : s.factors) {
    Congruence c = congruence(f, none);
    if (c.residue == 0 && c.modulus > 0) known *= std::gcd(c.modulus, kArenaAlign);
  }
  int64_t unit = kArenaAlign / std::gcd(kArenaAlign, known);
  if (s.c > INT64_MAX - unit) return s;
  int64_t padded = (s.c + unit - 1) / unit * unit;
  if (s.factors.empty() || padded <= s.c + s.c / 4) {
    s.c = padded;
    return s;
  }
  X lines = floordiv(bytes + lit(b, kArenaAlign - 1), lit(b, kArenaAlign));
  return {kArenaAlign, {lines.e}};
}

struct Spot { int64_t at, size; size_t first, last; };

// Best fit: the lowest gap between the neighbours in time that is large enough and smallest.
int64_t fit(std::vector<Spot> &spots, int64_t size, size_t first, size_t last) {
  std::vector<Spot> near;
  for (const Spot &s : spots)
    if (s.first <= last && first <= s.last) near.push_back(s);
  std::sort(near.begin(), near.end(), [](const Spot &a, const Spot &b) { return a.at < b.at; });
  int64_t end = 0, best = -1, best_gap = INT64_MAX;
  for (const Spot &s : near) {
    if (s.at - end >= size && s.at - end < best_gap) best = end, best_gap = s.at - end;
    end = std::max(end, s.at + s.size);
  }
  int64_t at = best >= 0 ? best : end;
  spots.push_back({at, size, first, last});
  return at;
}

}  // namespace

Placement place(Build &b, const std::vector<Life> &lives) {
  struct Member { size_t index; int64_t size; };
  struct Class { X factor; std::vector<Member> members; };
  std::vector<Class> classes;
  std::map<std::string, size_t> by_text;
  Placement p;
  p.offsets.resize(lives.size());
  for (size_t i = 0; i < lives.size(); i++) {
    Sized s = sized(b, lives[i].bytes);
    std::vector<std::pair<std::string, const Expr *>> sorted;
    for (const Expr *f : s.factors) sorted.push_back({print(b, f), f});
    std::sort(sorted.begin(), sorted.end());
    std::string key;
    X factor = lit(b, 1);
    for (auto &[text, f] : sorted) key += text + " * ", factor = factor * X(b, f);
    auto [it, fresh] = by_text.try_emplace(key, classes.size());
    if (fresh) classes.push_back({factor, {}});
    classes[it->second].members.push_back({i, s.c});
  }
  X base = lit(b, 0);
  p.lower_bound = lit(b, 0);
  for (Class &c : classes) {
    std::stable_sort(c.members.begin(), c.members.end(), [](auto &a, auto &d) { return a.size > d.size; });
    std::vector<Spot> spots;
    int64_t high = 0, most = 0;
    for (const Member &m : c.members) {
      const Life &life = lives[m.index];
      int64_t at = fit(spots, m.size, life.first, life.last);
      p.offsets[m.index] = base + lit(b, at) * c.factor;
      high = std::max(high, at + m.size);
    }
    for (const Member &m : c.members) {  // the live set is largest where some buffer begins
      int64_t sum = 0;
      for (const Member &o : c.members)
        if (lives[o.index].first <= lives[m.index].first && lives[m.index].first <= lives[o.index].last) sum += o.size;
      most = std::max(most, sum);
    }
    base = base + lit(b, high) * c.factor;
    p.lower_bound = p.lower_bound + lit(b, most) * c.factor;
  }
  p.total = base;
  return p;
}

}  // namespace mlc
