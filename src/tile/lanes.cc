// The axis that the result lies along goes into lanes; a reduction over other axes runs inside, in a register.
//
//   y[i, j] = f(x[i, j])                            ->  for i, j0 { for v in lanes { y[i, j0 * 16 + v] = .. } }
//   y[c, h, w] = max(x[c, h * 2 + p, w * 2 + q])    ->  for c, h, w0 { acc; for p, q { lanes }; y = acc }
#include <algorithm>

#include "sched/regions.h"
#include "tile/rules.h"

namespace mlc {

namespace {

class Lanes {
 public:
  Lanes(Kernel &k, Sym block) : k_(k), s_(k.s), b_(k.s.b), f_(facts_of(k.s, block)) {}

  bool run() {
    if (f_.axes.empty()) return false;
    if (!f_.target || f_.guarded) {
      k_.remarks.push_back(fmt::format("{} left: {}", b_.text(f_.name), f_.target ? "it has a guard" : "its body is no single store"));
      return false;
    }
    const Type *t = s_.state().type_of_buffer(f_.target->buffer);
    lanes_ = k_.machine.lanes(t->elem);
    std::string why;
    if (lanes_ <= 1) return parallel_only(), true;
    const AxisFact *lane = nullptr;
    for (const AxisFact &a : f_.axes)
      if (!a.reduce && a.extent != 1 && along(s_, f_, f_.target, a.name) == Along::Unit) lane = &a;
    if (!lane) return parallel_only(), false;
    // Gathers alone are no better than elements one by one.
    size_t unit = 0, strided = 0;
    for (const Load *l : f_.loads) {
      Along way = along(s_, f_, l, lane->name);
      unit += way == Along::Unit, strided += way == Along::Strided;
    }
    bool arithmetic = f_.value->kind != Kind::Load;
    if (strided > unit && !arithmetic) {
      bool tiled = s_.attempt([&] { in_tiles(*lane); }, &why);
      if (!tiled) k_.remarks.push_back(fmt::format("{}: no lanes and no tiles: {}", b_.text(f_.name), why));
      return parallel_only(), tiled;
    }
    if (lane->extent > 0 && lane->extent < 4) return parallel_only(), false;
    if (s_.attempt([&] { take(*lane, true); }, &why) || s_.attempt([&] { take(*lane, false); }, &why)) return true;
    k_.remarks.push_back(fmt::format("{}: no lanes: {}", b_.text(f_.name), why));
    return parallel_only(), false;
  }

 private:
  const Expr *name(Sym s) { return b_.name(s); }

  void take(const AxisFact &lane, bool fuses) {
    Sym block = f_.name;
    if (f_.reduces && !f_.has_init) refuse(kNowhere, "it has no initialiser");
    Sym out{};
    if (f_.reduces)  // the accumulator of a turn is a register
      out = epilogue_of(s_, f_);
    if (out && k_.machine.fma && !k_.machine.strict) s_.attempt([&] { s_.run("contract", {name(block)}); }, nullptr);
    std::vector<Sym> loops = s_.loops(block), own, reduce;
    for (Sym l : loops)
      if (alone(s_.place(l))) own.push_back(l);
    Sym l = out || !fuses ? Sym{} : fuse_trailing(own);
    bool fused = bool(l);
    if (!fused) l = loop_of_axis(s_, block, lane.name, own);
    if (!l) refuse(kNowhere, "axis {} is no loop of its own", b_.text(lane.name));
    int64_t n = s_.extent(l), lanes = lanes_;
    while (n > 0 && lanes / 2 >= n) lanes /= 2;
    std::string base(b_.text(lane.name));
    auto parts = s_.split(l, {0, lanes}, {base + "0", base + "1"});
    int64_t vectors = s_.extent(parts[0]), window = 1;
    std::vector<Sym> order;
    Sym rows{};
    for (const AxisFact &a : f_.axes)
      if (Sym x = a.name == lane.name || fused ? Sym{} : loop_of_axis(s_, block, a.name, own)) {
        if (a.reduce) reduce.push_back(x), window *= std::max<int64_t>(1, s_.extent(x));
        else order.push_back(x);
      }
    if (out && reduce.empty()) refuse(kNowhere, "nothing is summed");
    bool small = out && window <= 16;
    // A few rows at once, which a window shares, and a few vectors to a row: conditions at edges are known one by one.
    bool unrolled = small && conditional() && vectors > 0 && vectors <= 4;
    if (int64_t r = small ? rows_at_once(order, window * (unrolled ? vectors : 1)) : 1; r > 1) {
      auto two = s_.split(order.back(), {0, r}, {"rows", "row"});
      order.back() = two[0], rows = two[1];
    }
    bool last = (l == own.back() || fused) && !rows;
    order.push_back(parts[0]);
    order.insert(order.end(), reduce.begin(), reduce.end());
    if (rows) order.push_back(rows);
    order.push_back(parts[1]);
    if (!last) s_.reorder(order);
    s_.mark("vectorize", parts[1]);
    if (rows) s_.mark("unroll", rows);
    if (unrolled) s_.mark("unroll", parts[0]);
    if (out) {
      Sym init = s_.run("decompose_reduction", {name(block), name(reduce.at(0))}, {std::string(b_.text(block)) + ".init"})[0];
      s_.run("reverse_compute_at", {name(out), name(parts[0])});
      std::vector<Sym> last_ones = s_.loops(out);
      s_.mark("vectorize", last_ones.back());
      if (rows) s_.mark("unroll", last_ones[last_ones.size() - 2]);
      for (Sym r : reduce)
        if (int64_t turns = s_.extent(r); turns > 0 && (small ? window : turns) <= 16) s_.mark("unroll", r);
      k_.done.insert({out, init});
    }
    k_.done.insert(block);
    if (n > 0 && n % lanes && n > lanes && !k_.machine.masks)
      s_.run("loop_partition", {name(parts[0]), s_.numbers({n / lanes, 1})}, {base + "a", base + "b"});
    else
      parallel(parts[0]);
  }

  // y[i, j] = x[j, i]: tiles of lines of the cache on both sides.
  //   ->  for i0, j0 { for i1 in 16, j1 in 16 { y[i0 * 16 + i1, j0 * 16 + j1] = .. } }
  void in_tiles(const AxisFact &lane) {
    constexpr int64_t kSide = 16;  // more lines compete for one set of the cache
    if (f_.loads.size() != 1 || f_.reduces) refuse(kNowhere, "it is no copy of one buffer");
    const AxisFact *other = nullptr;
    for (const AxisFact &a : f_.axes)
      if (a.name != lane.name && along(s_, f_, f_.loads[0], a.name) == Along::Unit) other = &a;
    if (!other) refuse(kNowhere, "{} is read with a stride along each axis", b_.text(f_.loads[0]->buffer));
    for (const AxisFact *a : {&lane, other})
      if (a->extent >= 0 && a->extent < kSide) refuse(kNowhere, "axis {} has less than {} turns", b_.text(a->name), kSide);
    std::vector<Sym> own, order, inner(2);
    for (Sym l : s_.loops(f_.name))
      if (alone(s_.place(l))) own.push_back(l);
    for (const AxisFact &a : f_.axes) {
      Sym l = loop_of_axis(s_, f_.name, a.name, own);
      if (!l && a.extent != 1) refuse(kNowhere, "axis {} is no loop of its own", b_.text(a.name));
      if (!l) continue;
      order.push_back(l);
      if (a.name != lane.name && a.name != other->name) continue;
      std::string base(b_.text(a.name));
      auto parts = s_.split(l, {0, kSide}, {base + "0", base + "1"});
      order.back() = parts[0], inner[a.name == lane.name] = parts[1];
    }
    order.insert(order.end(), inner.begin(), inner.end());
    s_.reorder(order);
    k_.done.insert(f_.name);
  }

  // Of the axis beside the lanes, if a window moves along it: a number that divides its turns.
  int64_t rows_at_once(const std::vector<Sym> &spatial, int64_t copies) {
    if (spatial.empty()) return 1;
    Place *n = s_.place(spatial.back());
    int64_t turns = s_.extent(spatial.back());
    bool slides = false;
    for (const AxisFact &a : f_.axes)
      for (const AxisFact &r : f_.axes) {
        auto *v = a.reduce || !r.reduce ? nullptr : loop_name(a.name);
        if (!v || v != n) continue;
        for (const Load *l : f_.loads)
          for (const Expr *e : l->index) slides |= mlc::mentions(e, a.name) && mlc::mentions(e, r.name);
      }
    for (int64_t r : {4, 3, 2})
      if (slides && turns > 0 && turns % r == 0 && r * copies <= 160) return r;
    return 1;
  }
  Place *loop_name(Sym axis) {
    Place *n = s_.state().find_block(f_.name);
    for (const Axis &x : n->block()->axes)
      if (auto *v = as<Name>(x.binding); v && x.name == axis)
        for (Place *l : loops_around(n))
          if (l->loop()->iter.name == v->name) return l;
    return nullptr;
  }

  // It reads under conditions.
  bool conditional() {
    bool any = false;
    each_expr(f_.value, [&](const Expr *e) {
      auto *c = as<Call>(e);
      any |= c && !c->global && b_.text(c->callee) == "where";
      return true;
    });
    return any;
  }

  // Nothing but this loop stands in what is around it, up to the kernel or what is shared.
  static bool alone(Place *n) {
    for (; n && n->loop(); n = n->kids[0][0])
      if (n->kids[0].size() != 1) return false;
    return true;
  }

  // Trailing loops that every access passes in one go, or not at all: y[i, j, k] = x[i, j, k] * c[i]   ->   j, k fused.
  Sym fuse_trailing(const std::vector<Sym> &loops) {
    size_t n = f_.axes.size(), together = 1;
    for (; together < n; together++) {
      bool all = passes(s_, f_, f_.target, n - 1 - together);
      for (const Load *l : f_.loads) all = all && passes(s_, f_, l, n - 1 - together);
      if (!all) break;
    }
    if (together < 2 || loops.size() < together) return {};
    std::vector<const Expr *> last;
    for (size_t i = loops.size() - together; i < loops.size(); i++) last.push_back(name(loops[i]));
    return s_.run("fuse", last, {"f"})[0];
  }

  void parallel_only() { parallel({}); }

  // The outermost loop, if it has turns enough to share; a loop of vectors alone in chunks.
  void parallel(Sym vectors) {
    if (f_.turns() < 1 << 18) return;
    std::vector<Sym> loops = s_.loops(f_.name);
    if (loops.empty()) return;
    Place *first = s_.place(loops[0]);
    if (vectors && first == s_.place(vectors)) {
      s_.attempt([&] {
        auto parts = s_.split(vectors, {0, 1024}, {"chunk", "c"});
        s_.mark("parallel", parts[0]);
      }, nullptr);
    } else {
      s_.attempt([&] { s_.mark("parallel", loops[0]); }, nullptr);
    }
  }

  Kernel &k_;
  Script &s_;
  Build &b_;
  BlockFacts f_;
  int64_t lanes_ = 1;
};

}  // namespace

bool tile_lanes(Kernel &k, Sym block) { return Lanes(k, block).run(); }

}  // namespace mlc
