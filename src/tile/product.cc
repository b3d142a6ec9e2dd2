// Products summed: a tile of r rows by u vectors of accumulators stays in registers while the reduction runs.
//
//   for i0, j0 { acc = 0; for k { for i1 in r, j1 in u, v in lanes: acc[i1, j1, v] += x[i, k] * w[k, j] }; y = epilogue }
//
// An element of x is broadcast to u vectors of w, a vector of w is used for r rows. Which axis goes into lanes, which makes
// rows, and r and u minimise a count of cycles; w is packed so that a tile's columns lie together.
#include <algorithm>
#include <cmath>

#include "ir/typing.h"
#include "sched/combine.h"
#include "sched/regions.h"
#include "tile/rules.h"

namespace mlc {

namespace {

enum class Pack : uint8_t { None, Constant, Copy };

struct Plan {
  Sym lane, row;  // axes; row may be none
  int64_t lanes = 1, u = 1, r = 1;
  Pack pack = Pack::None;
  const Load *w = nullptr, *x = nullptr;
  bool lift = false;       // x is padded in place
  bool transposed = false;  // the result does not lie along the lanes
  double cost = HUGE_VAL;
  int64_t columns() const { return lanes * u; }
};

int64_t size_of(const AxisFact *a) { return !a ? 1 : a->extent < 0 ? kUnknownExtent : a->extent; }
int64_t tiles(int64_t n, int64_t by) { return (n + by - 1) / by; }

class Product {
 public:
  Product(Kernel &k, Sym block) : k_(k), s_(k.s), b_(k.s.b), f_(facts_of(k.s, block)) {}

  bool run() {
    if (!f_.reduces || !f_.target || !f_.has_init || f_.guarded || !factors()) return false;
    const Type *t = s_.state().type_of_buffer(f_.target->buffer);
    elem_ = t->elem;
    for (auto [w, x] : {std::pair{a_, c_}, std::pair{c_, a_}}) consider(w, x);
    if (!best_.w || best_.r * best_.u < 2) return false;
    std::string why;
    if (s_.attempt([&] { take(best_); }, &why)) return true;
    k_.remarks.push_back(fmt::format("{}: no tile in registers: {}", b_.text(f_.name), why));
    return false;
  }

 private:
  struct Factor {
    const Expr *e = nullptr;        // without casts
    const Load *load = nullptr;     // the buffer's element, under `where` if `padded`
    bool padded = false;
  };

  bool factors() {
    try {
      Place *n = s_.state().find_block(f_.name);
      Combine c = combine_of(s_.state(), n);
      auto *m = c.fold == "sum" && c.terms.size() == 1 ? product_of(s_.state(), c.terms[0], &cond_) : nullptr;
      if (!m) return false;
      a_ = factor(m->a), c_ = factor(m->b);
      return a_.load && c_.load && !(a_.padded && c_.padded);
    } catch (const Refused &) {
      return false;
    }
  }

  Factor factor(const Expr *e) {
    Factor f;
    if (auto *c = as<Call>(e); c && !c->global && is_cast(b_.text(c->callee))) e = c->args[0];
    f.e = e;
    if (auto *c = as<Call>(e); c && !c->global && b_.text(c->callee) == "where" && c->args[1]->kind == Kind::Load)
      f.padded = true, e = c->args[1];
    f.load = as<Load>(e);
    return f;
  }

  DType elem_of(const Load *l) {
    const Type *t = l->global ? nullptr : s_.state().type_of_buffer(l->buffer);
    return t ? t->elem : DType::Invalid;
  }

  void consider(const Factor &w, const Factor &x) {
    if (w.padded || elem_of(w.load) == DType::Invalid || elem_of(x.load) == DType::Invalid) return;
    int64_t lanes = k_.machine.lanes(elem_);
    for (const AxisFact &lane : f_.axes) {
      if (lane.reduce || lane.extent == 1 || !mentions(w.load, lane.name) || mentions(x.load, lane.name)) continue;
      if (!plain_subscript(f_.target, lane.name) || !plain_subscript(w.load, lane.name) || in_condition(lane.name)) continue;
      bool rows = false;
      for (size_t i = f_.axes.size(); i-- > 0;) {  // the last ones lie together
        const AxisFact &row = f_.axes[i];
        if (row.reduce || !mentions(x.load, row.name) || mentions(w.load, row.name) || row.extent == 1) continue;
        if (!plain_subscript(f_.target, row.name) || in_condition(row.name)) continue;
        rows = true, consider(w, x, lane, &row, lanes);
      }
      if (!rows) consider(w, x, lane, nullptr, lanes);
    }
  }

  // Else a tile is left out as a whole.
  bool in_condition(Sym axis) const { return cond_ && mlc::mentions(cond_, axis); }

  // The axis is one subscript alone, and in no other.
  static bool plain_subscript(const Load *l, Sym axis) {
    size_t alone = 0, all = 0;
    for (const Expr *e : l->index) {
      auto *n = as<Name>(e);
      alone += n && n->name == axis, all += mentions(e, axis);
    }
    return alone == 1 && all == 1;
  }

  void consider(const Factor &w, const Factor &x, const AxisFact &lane, const AxisFact *row, int64_t lanes) {
    int64_t n = size_of(&lane), m = size_of(row);
    double others = 1, reused = 1, k = 1;
    for (const AxisFact &a : f_.axes) {
      if (a.reduce) k *= double(size_of(&a));
      else if (a.name != lane.name && (!row || a.name != row->name)) others *= double(size_of(&a));
      if (!a.reduce && !mentions(w.load, a.name)) reused *= double(size_of(&a));
    }
    bool unit = along(s_, f_, w.load, lane.name) == Along::Unit;
    bool transposed = along(s_, f_, f_.target, lane.name) != Along::Unit;
    bool constant = k_.constants.count(w.load->buffer) > 0;
    double w_elements = k;
    for (const AxisFact &a : f_.axes)
      if (!a.reduce && mentions(w.load, a.name)) w_elements *= double(size_of(&a));
    Pack pack = constant ? Pack::Constant : unit && (reused < 32 || w_elements * 4 < double(k_.machine.l1) / 2) ? Pack::None : Pack::Copy;
    if (pack == Pack::None && !k_.machine.masks && (lane.extent < 0 || lane.extent % lanes)) pack = Pack::Copy;
    double outside = pack == Pack::Copy ? w_elements * (unit ? 1.0 / double(lanes) : 1.0) * 2 : 0;
    outside += others * double(n * m) * (transposed && lanes > 1 ? 1.5 : 1.0 / double(lanes));
    for (int64_t u = 1; u <= 6; u++)
      for (int64_t r = 1; r <= (row ? 14 : 1); r++) {
        if (r * u + u + 1 > k_.machine.registers) continue;
        if (row && r > (row->extent < 0 ? 4 : row->extent)) continue;  // of an unknown size there may be one
        if (u > 1 && (u - 1) * lanes >= n) continue;
        double fmas = double(r * u), loads = double(r + u);
        double cycles = std::max({fmas * 0.5, loads * 0.5, 4.0}) + 0.05 * loads + 0.2;
        double cost = others * double(tiles(n, u * lanes) * tiles(m, r)) * k * cycles + outside;
        if (cost >= best_.cost) continue;
        best_ = Plan{lane.name, row ? row->name : Sym{}, lanes, u, r, pack, w.load, x.load, x.padded, transposed, cost};
      }
  }

  // ---- the steps

  const Expr *name(Sym s) { return b_.name(s); }

  // Reduce axes that move along the same subscript of x as the rows: neighbouring rows then share elements, which compilers
  // keep and spill. Another axis, in parts of kChannels, stands innermost instead; none: Sym{}.
  static constexpr int64_t kChannels = 16;
  bool slides(const Plan &p, const AxisFact &a) {
    if (!a.reduce || !p.row) return false;
    return std::any_of(p.x->index.begin(), p.x->index.end(),
                       [&](const Expr *e) { return mlc::mentions(e, p.row) && mlc::mentions(e, a.name); });
  }
  Sym channels(const Plan &p) {
    Sym found{};
    bool any = false;
    for (const AxisFact &a : f_.axes) {
      any |= slides(p, a);
      if (!found && a.reduce && a.extent > 1 && !slides(p, a)) found = a.name;
    }
    return any ? found : Sym{};
  }
  bool in_parts(Sym channels) {
    int64_t n = channels ? f_.axis(channels)->extent : 0;
    return n > kChannels && n % kChannels == 0;
  }

  // w[o, c, r, s] with o in lanes -> [o // 32, c // 16, r, s, c % 16, o % 32]
  const Map *packed(const Plan &p) {
    std::vector<const Expr *> from, first, rest, last(2);
    Sym c = channels(p);
    for (const Expr *e : p.w->index) {
      auto *n = as<Name>(e);
      const Expr *v = b_.name(n && f_.axis(n->name) ? n->name : b_.sym(fmt::format("d{}", from.size())));
      from.push_back(v);
      auto part = [&](Op op, int64_t by) { return b_.binary(op, v, b_.integer(by)); };
      if (n && n->name == p.lane) {
        first.insert(first.begin(), part(Op::FloorDiv, p.columns())), last[1] = part(Op::Mod, p.columns());
      } else if (n && c && n->name == c) {
        if (in_parts(c)) first.push_back(part(Op::FloorDiv, kChannels));
        last[0] = in_parts(c) ? part(Op::Mod, kChannels) : v;
      } else {
        rest.push_back(v);
      }
    }
    first.insert(first.end(), rest.begin(), rest.end());
    for (const Expr *e : last)
      if (e) first.push_back(e);
    return b_.map(b_.make_list(b_.list(from)), b_.make_list(b_.list(first)));
  }

  void take(const Plan &p) {
    Sym block = f_.name;
    int64_t n = f_.axis(p.lane)->extent;
    bool whole = n >= 0 && n % p.columns() == 0;
    if (p.lift) s_.run("lift_padding", {name(block), name(p.x->buffer)}, {pad_name(p.x->buffer)});
    Sym out = epilogue_of(s_, f_);
    if (p.transposed && p.lanes > 1) lanes_last(block, p.lane);
    if (k_.machine.fma && is_float(elem_) && !k_.machine.strict) s_.run("contract", {name(block)});
    std::vector<Attr> pad;
    if (!whole) pad.push_back({b_.sym("pad_value"), kNowhere, is_float(elem_) ? static_cast<const Expr *>(b_.number(0.0)) : b_.integer(0)});
    Sym copy{};
    if (p.pack == Pack::Constant) {
      s_.run("transform_layout", {name(block), name(p.w->buffer), packed(p)}, {}, b_.list(pad));
    } else if (p.pack == Pack::Copy) {
      copy = s_.run("cache_read", {name(block), name(p.w->buffer), name(b_.sym("global"))}, {std::string(b_.text(p.w->buffer)) + ".pack"})[0];
      s_.run("transform_layout", {name(block), name(copy), packed(p)}, {}, b_.list(pad));
    }
    round_up(block, p, whole);

    // others.., row tile, column tile { init; reduction { r, u, lanes }; epilogue }
    std::vector<Sym> loops = s_.loops(block), outer, inner, reduce;
    Sym i0{}, i1{}, j0{}, j1{}, v{};
    for (const AxisFact &a : f_.axes) {
      Sym l = loop_of_axis(s_, block, a.name, loops);
      if (!l && a.extent == 1) continue;
      if (!l) refuse(kNowhere, "axis {} of {} is no loop of its own", b_.text(a.name), b_.text(block));
      std::string base(b_.text(a.name));
      if (a.name == p.lane) {
        auto parts = s_.split(l, {0, p.u, p.lanes}, {base + "0", base + "1", base + "2"});
        j0 = parts[0], j1 = parts[1], v = parts[2];
      } else if (a.name == p.row) {
        auto parts = s_.split(l, {0, p.r}, {base + "0", base + "1"});
        i0 = parts[0], i1 = parts[1];
      } else {
        (a.reduce ? reduce : outer).push_back(l);
      }
    }
    if (reduce.empty()) refuse(kNowhere, "nothing is summed");
    if (Sym c = channels(p)) {
      std::vector<Sym> sliding;
      Sym inner_loop{}, outer_loop{};
      for (const AxisFact &a : f_.axes)
        if (Sym l = a.reduce ? loop_of_axis(s_, block, a.name, loops) : Sym{}) {
          if (a.name == c) inner_loop = l;
          else sliding.push_back(l);
        }
      if (in_parts(c)) {
        auto parts = s_.split(inner_loop, {0, kChannels}, {std::string(b_.text(c)) + "0", std::string(b_.text(c)) + "1"});
        outer_loop = parts[0], inner_loop = parts[1];
      }
      reduce = sliding;
      if (outer_loop) reduce.insert(reduce.begin(), outer_loop);
      reduce.push_back(inner_loop);
    }
    double w_bytes = double(std::max<int64_t>(1, storage_bytes(elem_, 1)));
    for (const AxisFact &a : f_.axes)
      if (mentions(p.w, a.name)) w_bytes *= double(size_of(&a));
    bool streams = w_bytes > double(k_.machine.l2) / 2;
    if (i0) outer.push_back(i0);
    outer.insert(streams ? outer.begin() : outer.end(), j0);
    if (i1) inner.push_back(i1);
    inner.push_back(j1), inner.push_back(v);
    std::vector<Sym> all = outer;
    all.insert(all.end(), reduce.begin(), reduce.end());
    all.insert(all.end(), inner.begin(), inner.end());
    s_.reorder(all);
    if (i1) s_.mark("unroll", i1);
    s_.mark("unroll", j1);
    if (p.lanes > 1) s_.mark("vectorize", v);
    else s_.mark("unroll", v);
    k_.done.insert(s_.run("decompose_reduction", {name(block), name(reduce[0])}, {std::string(b_.text(block)) + ".init"})[0]);
    if (copy) s_.attempt([&] { pack_lanes(copy, p); }, nullptr);
    finish(out, p, outer.back());
    if (f_.turns() >= 1 << 20) s_.attempt([&] { s_.mark("parallel", outer[0]); }, nullptr);
    k_.done.insert({block, out});
    if (p.pack == Pack::None && n >= 0 && n % p.columns() && n > p.columns())
      s_.attempt([&] { s_.run("loop_partition", {name(j0), s_.numbers({n / p.columns(), 1})}, {"j.main", "j.tail"}); }, nullptr);
  }

  // Vectors of accumulators: [o, h, v] -> [h, v, o].
  void lanes_last(Sym block, Sym lane) {
    const Load *t = to<Store>(s_.state().find_block(block)->block()->body[0]).target;
    std::vector<const Expr *> from, to_;
    const Expr *last = nullptr;
    for (const Expr *e : t->index) {
      auto *n = as<Name>(e);
      const Expr *v = b_.name(n ? n->name : b_.sym(fmt::format("d{}", from.size())));
      from.push_back(v);
      if (n && n->name == lane) last = v;
      else to_.push_back(v);
    }
    to_.push_back(last);
    s_.run("transform_layout", {name(block), name(t->buffer), b_.map(b_.make_list(b_.list(from)), b_.make_list(b_.list(to_)))});
  }

  // w.pack[j // 64, k, j % 64] = w[k, j]: vectors of what lies together.
  void pack_lanes(Sym copy, const Plan &p) {
    if (p.lanes == 1 || along(s_, f_, p.w, p.lane) != Along::Unit) return;
    std::vector<Sym> loops = s_.loops(copy);
    s_.mark("vectorize", s_.split(loops.back(), {0, p.lanes}, {"p0", "p1"})[1]);
    k_.done.insert(copy);
  }

  std::string pad_name(Sym buffer) { return std::string(b_.text(buffer)) + ".pad"; }

  void round_up(Sym block, const Plan &p, bool whole) {
    std::vector<int64_t> multiples;
    bool any = false;
    for (const AxisFact &a : f_.axes) {
      int64_t m = a.name == p.lane && p.pack != Pack::None && !whole ? p.columns() : 1;
      if (a.name == p.row && p.r > 1 && (a.extent < 0 || a.extent % p.r)) m = p.r;
      multiples.push_back(m), any |= m > 1;
    }
    if (any) s_.run("round_up", {name(block), s_.numbers(multiples)});
  }

  // The axis of a block that reads the sums at the subscript of an axis of theirs.
  Sym axis_there(const BlockFacts &f, const Load *sums, Sym axis) {
    Sym buffer = sums->buffer;
    for (const Load *l : f.loads)
      if (!l->global && l->buffer == buffer)
        for (size_t d = 0; d < l->index.size(); d++)
          if (auto *n = as<Name>(sums->index[d]); n && n->name == axis)
            if (auto *m = as<Name>(l->index[d])) return m->name;
    return {};
  }

  // Behind the reduction of a tile, the same rows and vectors.
  void finish(Sym out, const Plan &p, Sym at) {
    const Load *sums = to<Store>(s_.state().find_block(f_.name)->block()->body[0]).target;
    if (p.transposed && p.lanes > 1) {
      // The epilogue runs on registers and leaves the tile on the stack; from there it goes out in the order of the result.
      Sym result = facts_of(s_, out).target->buffer;
      Sym store = s_.run("cache_write", {name(out), name(result), name(b_.sym("local"))}, {std::string(b_.text(out)) + ".store"})[0];
      lanes_last(out, axis_there(facts_of(s_, out), sums, p.lane));
      s_.run("reverse_compute_at", {name(out), name(at)});
      lanes_of(out, p, sums);
      s_.run("reverse_compute_at", {name(store), name(at)});
      std::vector<Sym> loops = s_.loops(store);
      if (int64_t n = s_.extent(loops.back()); n > 0 && n <= 16) s_.mark("unroll", loops.back());
      k_.done.insert(store);
      return;
    }
    s_.run("reverse_compute_at", {name(out), name(at)});
    lanes_of(out, p, sums);
  }

  void lanes_of(Sym block, const Plan &p, const Load *sums) {
    BlockFacts f = facts_of(s_, block);
    Sym lane = axis_there(f, sums, p.lane), row = p.row ? axis_there(f, sums, p.row) : Sym{};
    std::vector<Sym> loops = s_.loops(block);
    // Only what stands in the tile: the last loops, one for each axis that has more than one turn there.
    Sym c = below(block, lane, loops), r = row ? below(block, row, loops) : Sym{};
    if (!c) refuse(kNowhere, "{} has no loop of its own for the lanes", b_.text(block));
    std::string base(b_.text(f_.axis(p.lane)->name));
    auto parts = s_.split(c, {0, p.lanes}, {base + "1", base + "2"});
    std::vector<Sym> order;
    if (r) order.push_back(r);
    order.push_back(parts[0]), order.push_back(parts[1]);
    s_.reorder(order);
    if (r) s_.mark("unroll", r);
    s_.mark("unroll", parts[0]);
    s_.mark(p.lanes > 1 ? "vectorize" : "unroll", parts[1]);
  }

  // The innermost loop that a block's axis depends on.
  Sym below(Sym block, Sym axis, const std::vector<Sym> &loops) {
    for (const Axis &x : s_.state().find_block(block)->block()->axes)
      if (x.name == axis)
        for (size_t i = loops.size(); i-- > 0;)
          if (Place *n = s_.place(loops[i]); n && n->loop() && mlc::mentions(x.binding, n->loop()->iter.name)) return loops[i];
    return {};
  }

  Kernel &k_;
  Script &s_;
  Build &b_;
  BlockFacts f_;
  Factor a_, c_;
  const Expr *cond_ = nullptr;  // of all the product; null: it has none
  DType elem_{};
  Plan best_;
};

}  // namespace

bool tile_product(Kernel &k, Sym block) { return Product(k, block).run(); }

}  // namespace mlc
