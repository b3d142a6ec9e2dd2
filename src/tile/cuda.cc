#include "tile/cuda.h"

#include <algorithm>

#include "sched/combine.h"
#include "sched/regions.h"

namespace mlc {

namespace {

constexpr int64_t kWarp = 32, kRows = 8, kLeastRow = 32, kLeastColumn = 32, kRowBytes = 32 << 10;

const Expr *word(Kernel &k, std::string_view s) { return k.s.b.name(k.s.b.sym(s)); }
void bind(Kernel &k, Sym loop, std::string_view tag) { k.s.run("bind", {k.s.b.name(loop), word(k, tag)}); }

Sym fused(Kernel &k, const std::vector<Sym> &loops, const char *as) {
  if (loops.size() == 1) return loops[0];
  std::vector<const Expr *> all;
  for (Sym l : loops) all.push_back(k.s.b.name(l));
  return k.s.run("fuse", all, {as})[0];
}

// y = y op e, all of whose reduce axes come last; it starts from the identity, or a block in front starts it.
bool is_fold(Kernel &k, const BlockFacts &f) {
  if (!f.reduces || !f.target || f.guarded) return false;
  bool behind = false;
  for (const AxisFact &a : f.axes) {
    if (behind && !a.reduce) return false;
    behind |= a.reduce;
  }
  try {
    Place *n = k.s.state().find_block(f.name);
    Combine c = combine_of(k.s.state(), n);
    return !c.fold.empty() && (!f.has_init || starts_at_identity(k.s.state(), n, c));
  } catch (const Refused &) {
    return false;
  }
}
double reduced(const BlockFacts &f) {
  double n = 1;
  for (const AxisFact &a : f.axes)
    if (a.reduce) n *= a.extent < 0 ? double(8 * kUnknownExtent) : double(a.extent);
  return n;
}
bool runs_along(Kernel &k, const BlockFacts &f) {
  for (const Load *l : f.loads)
    if (along(k.s, f, l, f.axes.back().name) == Along::Unit) return true;
  return false;
}

class Rows {
 public:
  Rows(Kernel &k, std::vector<Sym> blocks) : k_(k), s_(k.s), b_(k.s.b), all_(std::move(blocks)) {}

  bool run() {
    Sym first{};
    for (Sym n : all_) {
      if (k_.done.count(n)) return false;
      BlockFacts f = facts_of(s_, n);
      if (!f.reduces) continue;
      if (!is_fold(k_, f) || !runs_along(k_, f) || reduced(f) < double(kLeastRow)) return false;
      if (!first) first = n;
    }
    if (!first) return false;
    BlockFacts f = facts_of(s_, first);
    for (const AxisFact &a : f.axes) rows_ += !a.reduce;
    length_ = reduced(f);
    std::string why;
    if (s_.attempt([&] { take(); }, &why)) return true;
    k_.remarks.push_back(fmt::format("rows of {} are not shared out to blocks: {}", b_.text(all_.back()), why));
    return false;
  }

 private:
  int64_t threads() const { return length_ >= 2048 ? 256 : length_ >= 512 ? 128 : kWarp; }

  void take() {
    std::vector<Sym> loops = s_.loops(all_.back());
    if (loops.size() < rows_) refuse(kNowhere, "the last block has fewer loops than there are rows");
    Sym at{};
    if (rows_) {
      at = loops[rows_ - 1];
      for (size_t i = all_.size() - 1; i-- > 0;) s_.run("compute_at", {b_.name(all_[i]), b_.name(at)});
      std::vector<Sym> outer(loops.begin(), loops.begin() + long(rows_));
      at = fused(k_, outer, "row");
      bind(k_, at, "blockIdx.x");
    }
    for (Sym n : all_) {
      BlockFacts f = facts_of(s_, n);
      if (!rows_ && !f.reduces) continue;  // a nest of its own
      Place *place = s_.state().find_block(n);
      if (rows_ && n != all_.back() && s_.state().alloc_of(f.target->buffer) && small(f, place))
        s_.run("set_scope", {b_.name(n), b_.name(f.target->buffer), word(k_, "shared")});
      std::vector<Sym> inner = s_.loops(n);
      inner.erase(inner.begin(), inner.begin() + (rows_ ? 1 : 0));
      k_.done.insert(n);
      if (inner.empty()) continue;
      Sym l = fused(k_, inner, "at");
      int64_t extent = s_.extent(l), t = threads();
      if (extent == 1) continue;
      auto parts = s_.split(l, {0, t}, {"turn", "lane"});
      bind(k_, parts[1], "threadIdx.x");
    }
  }
  // What a row leaves in shared memory.
  bool small(const BlockFacts &f, Place *) {
    int64_t n = 1;
    const Type *t = s_.state().type_of_buffer(f.target->buffer);
    for (size_t d = rows_; d < t->rank(); d++) {
      int64_t e = 0;
      if (!int_value(t->dims[d], &e) || __builtin_mul_overflow(n, e, &n)) return false;
    }
    return storage_bytes(t->elem, n) <= kRowBytes;
  }

  Kernel &k_;
  Script &s_;
  Build &b_;
  std::vector<Sym> all_;
  size_t rows_ = 0;
  double length_ = 0;
};

}  // namespace

bool cuda_rows(Kernel &k, const std::vector<Sym> &blocks) { return Rows(k, blocks).run(); }

bool cuda_columns(Kernel &k, Sym block) {
  BlockFacts f = facts_of(k.s, block);
  if (!is_fold(k, f) || reduced(f) < double(4 * kRows) || f.axes[0].reduce) return false;
  const AxisFact *last = nullptr;  // of the spatial ones
  for (const AxisFact &a : f.axes)
    if (!a.reduce) last = &a;
  bool unit = std::any_of(f.loads.begin(), f.loads.end(), [&](const Load *l) { return along(k.s, f, l, last->name) == Along::Unit; });
  if (!unit || (last->extent >= 0 && last->extent < kLeastColumn)) return false;
  std::string why;
  bool taken = k.s.attempt([&] {
    std::vector<Sym> loops = k.s.loops(block), spatial, reduce;
    for (const AxisFact &a : f.axes) {
      Sym l = loop_of_axis(k.s, block, a.name, loops);
      if (!l && a.extent == 1) continue;
      if (!l) refuse(kNowhere, "axis {} is no loop of its own", k.s.b.text(a.name));
      (a.reduce ? reduce : spatial).push_back(l);
    }
    auto columns = k.s.split(fused(k, spatial, "column"), {0, kWarp}, {"columns", "tx"});
    auto turns = k.s.split(fused(k, reduce, "at"), {0, kRows}, {"turn", "ty"});
    bind(k, columns[0], "blockIdx.x"), bind(k, columns[1], "threadIdx.x"), bind(k, turns[1], "threadIdx.y");
    if (f.has_init)
      k.done.insert(k.s.run("decompose_reduction", {k.s.b.name(block), k.s.b.name(turns[0])},
                            {std::string(k.s.b.text(block)) + ".init"})[0]);
    k.done.insert(block);
  }, &why);
  if (!taken) k.remarks.push_back(fmt::format("columns of {} are not shared out: {}", k.s.b.text(block), why));
  return taken;
}

bool cuda_transpose(Kernel &k, Sym block) {
  BlockFacts f = facts_of(k.s, block);
  if (f.reduces || !f.target || f.guarded || f.axes.size() < 2) return false;
  Sym to{}, from{};
  for (const AxisFact &a : f.axes)
    if (along(k.s, f, f.target, a.name) == Along::Unit) to = a.name;
  const Load *x = nullptr;
  for (const Load *l : f.loads)
    for (const AxisFact &a : f.axes)
      if (a.name != to && !l->global && along(k.s, f, l, a.name) == Along::Unit && to && along(k.s, f, l, to) == Along::Strided)
        x = l, from = a.name;
  auto large = [&](Sym axis) { return f.axis(axis)->extent < 0 || f.axis(axis)->extent >= kWarp / 2; };
  bool plain = x && std::all_of(x->index.begin(), x->index.end(), [](const Expr *e) { return e->kind == Kind::Name || e->kind == Kind::Int; });
  if (!plain || !large(to) || !large(from)) return false;
  std::string why;
  bool taken = k.s.attempt([&] {
    Build &b = k.s.b;
    Sym copy = k.s.run("cache_read", {b.name(block), b.name(x->buffer), word(k, "shared")}, {std::string(b.text(x->buffer)) + ".shared"})[0];
    std::vector<Sym> loops = k.s.loops(block), others;
    Sym row = loop_of_axis(k.s, block, from, loops), column = loop_of_axis(k.s, block, to, loops);
    for (const AxisFact &a : f.axes) {
      if (a.name == from || a.name == to) continue;
      Sym l = loop_of_axis(k.s, block, a.name, loops);
      if (l) others.push_back(l);
      else if (a.extent != 1) refuse(kNowhere, "axis {} is no loop of its own", b.text(a.name));
    }
    if (!row || !column) refuse(kNowhere, "its axes are no loops of their own");
    auto r = k.s.split(row, {0, 4, kRows}, {"rows", "r", "ty"});
    auto c = k.s.split(column, {0, kWarp}, {"columns", "tx"});
    std::vector<Sym> order = others;
    for (Sym l : {r[0], c[0], r[1], r[2], c[1]}) order.push_back(l);
    k.s.reorder(order);
    if (!others.empty()) bind(k, fused(k, others, "z"), "blockIdx.z");
    bind(k, r[0], "blockIdx.y"), bind(k, c[0], "blockIdx.x");
    k.s.run("compute_at", {b.name(copy), b.name(c[0])});
    bind(k, r[2], "threadIdx.y"), bind(k, c[1], "threadIdx.x");
    std::vector<Sym> inner = k.s.loops(copy);
    if (inner.size() < 2) refuse(kNowhere, "the copy has no tile");
    Sym q = inner.back(), p = inner[inner.size() - 2];
    if (k.s.extent(q) > kWarp) refuse(kNowhere, "the copy is no tile");
    bind(k, q, "threadIdx.x");
    auto parts = k.s.split(p, {0, kRows}, {"p", "q"});
    bind(k, parts[1], "threadIdx.y");
    size_t dim = 0;  // the rows of the tile
    for (size_t d = 0; d < x->index.size(); d++)
      if (auto *n = as<Name>(x->index[d]); n && n->name == to) dim = d;
    k.s.run("storage_align", {b.name(copy), b.integer(0), b.integer(int64_t(dim)), b.integer(kWarp), b.integer(1)});
    k.done.insert({block, copy});
  }, &why);
  if (!taken) k.remarks.push_back(fmt::format("{} is not transposed in shared memory: {}", k.s.b.text(block), why));
  return taken;
}

void tile_cuda(Kernel &k, const std::vector<Sym> &blocks) {
  auto left = [&](Sym n) { return !k.done.count(n) && k.s.state().find_block(n); };
  for (Sym n : blocks)
    if (left(n)) cuda_product(k, n);
  if (k.done.empty() && cuda_rows(k, blocks)) return;
  for (Sym n : blocks)
    if (left(n) && !cuda_columns(k, n)) cuda_transpose(k, n);
}

}  // namespace mlc
