#include "equiv/draw.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "ir/walk.h"

namespace mlc {

Sizes::Sizes(const Build &b, const Func &f, const std::map<std::string, int64_t> &fixed) : names_(size_names(b, f)) {
  for (auto &[name, n] : fixed)
    if (std::find(names_.begin(), names_.end(), name) != names_.end()) fixed_[name] = n;
}

void Sizes::add_tiles(const Module &m, const Func &f) {
  constexpr int64_t kLeast = 4, kMost = 1024;  // smaller ones and their neighbours are drawn anyway
  constexpr size_t kTiles = 24;
  std::set<int64_t> found;
  std::set<const Func *> seen;
  std::function<void(const Func &)> look = [&](const Func &g) {
    if (!seen.insert(&g).second) return;
    auto number = [&](const Expr *e) {
      if (int64_t t; int_value(e, &t) && t >= kLeast && t <= kMost && found.size() < kTiles) found.insert(t);
    };
    auto indices = [&](const Expr *e) {
      each_expr(e, [&](const Expr *x) {
        if (auto *y = as<Binary>(x)) number(y->a), number(y->b);
        return x->kind != Kind::Load;  // what is computed with data is no size
      });
    };
    each_stmt(g.body, [&](const Stmt *s) {
      if (auto *x = as<For>(s)) number(x->iter.extent), indices(x->iter.extent);
      if (auto *x = as<Assume>(s)) indices(x->cond);
      if (auto *x = as<If>(s)) indices(x->cond);
      if (auto *x = as<Block>(s)) {
        for (const Axis &a : x->axes) indices(a.binding), indices(a.domain);
        if (x->guard) indices(x->guard);
      }
      if (auto *x = as<CallStmt>(s); x && x->call->global)
        if (const Func *callee = m.func(x->call->callee)) look(*callee);
      auto *l = as<Let>(s);
      if (auto *c = as<Call>(l ? l->value : nullptr); c && c->global)
        if (const Func *callee = m.func(c->callee)) look(*callee);
    });
  };
  look(f);
  std::set<int64_t> all(tiles_.begin(), tiles_.end());
  for (int64_t t : found) all.insert({t - 1, t, t + 1, 2 * t});
  tiles_.assign(all.begin(), all.end());
}

std::map<std::string, int64_t> Sizes::draw(std::mt19937_64 &random, bool first, bool small) const {
  constexpr int64_t kSizes[] = {1, 2, 3, 7, 17, 48, 625, 0};
  constexpr int64_t kSmall[] = {1, 2, 3, 0};
  std::map<std::string, int64_t> sizes = fixed_;
  for (const std::string &n : names_) {
    if (fixed_.count(n)) continue;
    bool tile = !small && !tiles_.empty() && random() % 2;
    sizes[n] = first   ? 3
               : small ? kSmall[random() % 4]
               : tile  ? tiles_[random() % tiles_.size()]
                       : kSizes[random() % 8];
  }
  return sizes;
}

static void sort(Array &a, bool rising) {
  std::vector<Scalar> all;
  for (int64_t i = 0; i < a.size(); i++) all.push_back(a.get(i));
  std::stable_sort(all.begin(), all.end(), [&](Scalar x, Scalar y) {
    double p = to_double(a.type, x), q = to_double(a.type, y);
    return rising ? p < q : q < p;
  });
  for (int64_t i = 0; i < a.size(); i++) a.set(i, all[size_t(i)]);
}

std::vector<Array> Inputs::draw(bool want_subscripts, Order order) {
  std::vector<int64_t> dims = extents();
  std::vector<Array> inputs;
  for (const InputSpec &s : specs_) {
    bool integers = is_int(s.type) && info(s.type).bits >= 32;
    if (!s.param->def.type->tensor && s.type == DType::Index) {
      inputs.emplace_back(DType::I64, std::vector<int64_t>{});
      inputs.back().set(0, Scalar::of_int(sizes_.at(std::string(b_.text(s.param->def.name)))));
    } else if (integers && is_signed(s.type) && want_subscripts && !dims.empty()) {
      inputs.push_back(sample_subscripts(s.type, s.dims, random_, dims[random_() % dims.size()]));
      subscripts = true;
    } else {
      inputs.push_back(sample(s.type, s.dims, random_, odd_, integers));
      Array &a = inputs.back();
      if (!is_float(s.type) || odd_ || !a.size()) continue;
      if (order == Rising || order == Falling) sort(a, order == Rising);
      constexpr double kLone[] = {NAN, INFINITY, -INFINITY};
      int64_t at = random_() % 2 ? a.size() - 1 : int64_t(random_() % uint64_t(a.size()));
      if (order == Lone) a.set(at, scalar_of(s.type, kLone[random_() % 3]));
    }
  }
  return inputs;
}

// Dimensions that a subscript may be one of: those of inputs and of constants.
std::vector<int64_t> Inputs::extents() const {
  std::set<int64_t> all;
  for (const InputSpec &s : specs_)
    for (int64_t d : s.dims) all.insert(d);
  for (const Item *i : m_.items)
    if (auto *c = as<Const>(i))
      for (const Expr *e : c->type->dims)
        if (int64_t d; int_value(e, &d)) all.insert(d);
  return {all.upper_bound(0), all.end()};
}

}  // namespace mlc
