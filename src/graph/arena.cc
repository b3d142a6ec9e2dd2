#include "graph/arena.h"

#include <algorithm>
#include <map>

#include "text/text.h"

namespace mlc {

X bytes_of(Build &b, const Type *t) {
  X n = lit(b, 1);
  for (const Expr *d : t->dims) n = n * X(b, d);
  int64_t bits = info(t->elem).bits;
  return bits % 8 == 0 ? n * (bits / 8) : floordiv(n * bits + 7, 8);
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
    Sized s;
    bool ok = true;
    take_apart(lives[i].bytes.e, s, ok);
    if (!ok) s = {1, {lives[i].bytes.e}};
    std::vector<std::pair<std::string, const Expr *>> sorted;
    for (const Expr *f : s.factors) sorted.push_back({print(b, f), f});
    std::sort(sorted.begin(), sorted.end());
    std::string key;
    X factor = lit(b, 1);
    for (auto &[text, f] : sorted) key += text + " * ", factor = factor * X(b, f);
    auto [it, fresh] = by_text.try_emplace(key, classes.size());
    if (fresh) classes.push_back({factor, {}});
    int64_t size = s.c > INT64_MAX - kArenaAlign ? s.c : (s.c + kArenaAlign - 1) / kArenaAlign * kArenaAlign;
    classes[it->second].members.push_back({i, size});
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
