// Rows one by one: what a row's reductions and elements need is computed beside each other, while the row is in the
// cache; a sum runs in several vectors of partial sums, which are added up at its end. Reduced axes that lie together are one.
//
//   for i { s[i] = sum(x[i, :]) }; for i { y[i, :] = x[i, :] / s[i] }
//   ->  for i { part = 0 (4 vectors); for k0 { part += x[i, k0 * 64 +: 64] }; s = sum of part; y[i, :] = x[i, :] / s }
#include <algorithm>

#include "ops/expr.h"
#include "sched/combine.h"
#include "sched/regions.h"
#include "tile/rules.h"

namespace mlc {

namespace {

class Rows {
 public:
  explicit Rows(Kernel &k) : k_(k), s_(k.s), b_(k.s.b) {}

  bool run() {
    std::vector<Sym> all;
    std::unordered_set<Sym> starts = initialisers(s_);
    for (Place *n : s_.state().blocks())
      if (Sym name = n->block()->name; !n->nest && !k_.left.count(name) && !starts.count(name)) all.push_back(name);
    std::vector<Sym> reductions;
    for (Sym n : all) {
      BlockFacts f = facts_of(s_, n);
      if (k_.done.count(n)) return false;
      if (f.reduces && in_lanes(f)) reductions.push_back(n);
    }
    if (reductions.empty()) return false;
    std::string why;
    k_.rows = k_.left.empty();  // else what stands between them has loops of its own
    if (k_.rows && all.size() > 1 && !s_.attempt([&] { together(all, reductions); }, &why))
      k_.remarks.push_back(fmt::format("rows of {} do not go together: {}", b_.text(all.back()), why));
    for (Sym r : reductions) {
      if (k_.machine.strict) continue;
      if (s_.attempt([&] { partial_sums(r); }, &why)) k_.done.insert(r);
      else k_.remarks.push_back(fmt::format("{}: no partial sums in lanes: {}", b_.text(r), why));
    }
    return true;
  }

 private:
  // The last axis is reduced and lies together in what it reads; with those that go with it, it fills a few vectors.
  bool in_lanes(const BlockFacts &f) {
    if (!f.has_init || f.guarded || !f.axes.back().reduce) return false;
    bool unit = false;
    for (const Load *l : f.loads) unit |= along(s_, f, l, f.axes.back().name) == Along::Unit;
    int64_t n = extent(f, in_one_go(f));
    return unit && (n < 0 || n >= 2 * lanes(f));
  }

  // Trailing axes that are reduced and read in one go, as one: max(x[i, j, k] for j, k) -> j, k.
  size_t in_one_go(const BlockFacts &f) {
    size_t n = f.axes.size(), count = 1;
    for (; count < n && f.axes[n - 1 - count].reduce; count++)
      if (!std::all_of(f.loads.begin(), f.loads.end(), [&](auto *l) { return passes(s_, f, l, n - 1 - count); })) break;
    return count;
  }
  int64_t extent(const BlockFacts &f, size_t last) {
    int64_t n = 1;
    for (size_t i = f.axes.size() - last; i < f.axes.size(); i++) {
      if (f.axes[i].extent < 0 || __builtin_mul_overflow(n, f.axes[i].extent, &n)) return -1;
    }
    return n;
  }
  int64_t lanes(const BlockFacts &f) {
    if (!f.target) return 1;
    return k_.machine.lanes(s_.state().type_of_buffer(f.target->buffer)->elem);
  }

  // Blocks in front of the last one go into its loop over rows.
  void together(const std::vector<Sym> &all, const std::vector<Sym> &reductions) {
    size_t rows = 0;
    for (const AxisFact &a : facts_of(s_, reductions[0]).axes) rows += !a.reduce;
    std::vector<Sym> loops = s_.loops(all.back());
    if (!rows || loops.size() < rows) return;
    Sym at = loops[rows - 1];
    for (size_t i = all.size() - 1; i-- > 0;) s_.run("compute_at", {b_.name(all[i]), b_.name(at)});
  }

  void partial_sums(Sym block) {
    BlockFacts f = facts_of(s_, block);
    size_t last = in_one_go(f);
    int64_t v = lanes(f), e = extent(f, last), rows = 0;
    if (v == 1) v = 4;  // scalar partial sums hide the latency of one
    int64_t many = e < 0 || e >= 8 * v ? 4 : 1;
    for (const AxisFact &a : f.axes) rows += !a.reduce;
    Place *place = s_.state().find_block(block);
    Combine c = combine_of(s_.state(), place);
    X domain = lit(b_, int64_t{1});
    auto axes = place->block()->axes;
    for (size_t i = axes.size() - last; i < axes.size(); i++) domain = domain * X(b_, axes[i].domain);
    std::vector<Sym> loops = s_.loops(block);
    std::string base(b_.text(block));
    Sym all = loops.back();
    if (last > 1) {
      std::vector<const Expr *> trailing;
      for (size_t i = loops.size() - last; i < loops.size(); i++) trailing.push_back(b_.name(loops[i]));
      all = s_.run("fuse", trailing, {"k"})[0];
    }
    auto parts = s_.split(all, {0, v * many}, {"k0", "k1"});
    bool exact = is_int(simplify(domain % (v * many)).e, 0);
    Sym part = s_.run("rfactor", {b_.name(parts[1]), b_.integer(rows)}, {base + ".part"})[0];
    if (k_.machine.fma && c.fold == "sum") s_.attempt([&] { s_.run("contract", {b_.name(part)}); }, nullptr);
    s_.run("set_scope", {b_.name(part), b_.name(part), b_.name(b_.sym("local"))});
    if (rows && !k_.rows)  // nobody has put the rows together
      s_.attempt([&] { s_.run("compute_at", {b_.name(part), b_.name(s_.loops(block)[size_t(rows) - 1])}); });
    loops = s_.loops(part);
    Sym turns = loops[loops.size() - 2];
    in_registers(loops.back(), many, v);
    k_.done.insert(s_.run("decompose_reduction", {b_.name(part), b_.name(outermost(part, loops))}, {base + ".part.init"})[0]);
    k_.done.insert(part);
    if (!exact) split_end(turns, domain, v * many);
    if (many > 1) {
      loops = s_.loops(block);
      auto across = s_.split(loops.back(), {many, v}, {"k2", "k3"});
      Sym lane = s_.run("rfactor", {b_.name(across[1]), b_.integer(rows)}, {base + ".lane"})[0];
      s_.run("set_scope", {b_.name(lane), b_.name(lane), b_.name(b_.sym("local"))});
      loops = s_.loops(lane);
      s_.mark("unroll", loops[loops.size() - 2]);
      s_.mark(vectors() ? "vectorize" : "unroll", loops.back());
      k_.done.insert(s_.run("decompose_reduction", {b_.name(lane), b_.name(loops[loops.size() - 2])}, {base + ".lane.init"})[0]);
      k_.done.insert(lane);
    }
  }

  // The first loop that reduces it.
  Sym outermost(Sym block, const std::vector<Sym> &loops) {
    BlockFacts f = facts_of(s_, block);
    for (Sym l : loops)
      for (const AxisFact &a : f.axes)
        if (a.reduce && loop_of_axis(s_, block, a.name, {l})) return l;
    refuse(kNowhere, "no loop reduces {} alone", b_.text(block));
  }

  bool vectors() const { return k_.machine.vector_bytes > 0; }

  void in_registers(Sym loop, int64_t many, int64_t v) {
    if (many > 1) {
      auto parts = s_.split(loop, {many, v}, {"k1a", "k1b"});
      s_.mark("unroll", parts[0]);
      loop = parts[1];
    }
    s_.mark(vectors() ? "vectorize" : "unroll", loop);
  }

  // Whole turns without a question, then the rest.
  void split_end(Sym turns, X domain, int64_t step) {
    X n = floordiv(domain, step);
    if (is_int(n.e, 0)) return;
    const Expr *parts = b_.make_list(b_.list({n.e, static_cast<const Expr *>(b_.name(b_.sym("_")))}));
    s_.attempt([&] {
      Sym rest = s_.run("loop_partition", {b_.name(turns), parts}, {"k.main", "k.rest"})[1];
      for (Place *n : leaf_blocks(s_.place(rest))) k_.done.insert(n->block()->name);
    }, nullptr);
  }

  Kernel &k_;
  Script &s_;
  Build &b_;
};

}  // namespace

bool tile_rows(Kernel &k) { return Rows(k).run(); }

}  // namespace mlc
