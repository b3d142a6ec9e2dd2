// Products summed, in tiles: each thread has a few rows and columns of accumulators in registers, and a block fetches
// parts of its operands together.
//
//   for i0, j0 blocks { for i1, j1 threads { acc = 0
//     for k0 { a.shared, b.shared = tiles of 64 x 16 and 16 x 64; for k1, i2, j2: acc[i2, j2] += a.shared * b.shared }
//     c = acc } }
#include <algorithm>

#include "ir/typing.h"
#include "sched/combine.h"
#include "sched/regions.h"
#include "tile/cuda.h"

namespace mlc {

namespace {

constexpr int64_t kSide = 16;   // threads of a block along rows and columns
constexpr int64_t kDepth = 16;  // of the tiles of operands
constexpr int64_t kMostBatch = 65535;

class Product {
 public:
  Product(Kernel &k, Sym block) : k_(k), s_(k.s), b_(k.s.b), f_(facts_of(k.s, block)) {}

  bool run() {
    if (!f_.reduces || !f_.target || !f_.has_init || f_.guarded || !operands() || !axes()) return false;
    std::string why;
    if (s_.attempt([&] { take(); }, &why)) return true;
    k_.remarks.push_back(fmt::format("{}: no tiles in shared memory: {}", b_.text(f_.name), why));
    return false;
  }

 private:
  const Expr *name(Sym s) { return b_.name(s); }
  const Expr *word(std::string_view s) { return b_.name(b_.sym(s)); }

  static const Load *factor(const Build &b, const Expr *e) {
    if (auto *c = as<Call>(e); c && !c->global && is_cast(b.text(c->callee))) e = c->args[0];
    auto *l = as<Load>(e);
    return l && !l->global ? l : nullptr;
  }
  bool operands() {
    try {
      Combine c = combine_of(s_.state(), s_.state().find_block(f_.name));
      auto *m = c.fold == "sum" && c.terms.size() == 1 ? as<Binary>(c.terms[0]) : nullptr;
      if (!m || m->op != Op::Mul) return false;
      x_ = factor(b_, m->a), w_ = factor(b_, m->b);
      return x_ && w_ && x_->buffer != w_->buffer;
    } catch (const Refused &) {
      return false;
    }
  }

  // Each axis is a subscript of its own wherever it is.
  bool plain(const Load *l) const {
    return std::all_of(l->index.begin(), l->index.end(), [&](const Expr *e) { return e->kind == Kind::Name || is_int(e, 0); });
  }
  // Rows or columns of a thread: large tiles read less, and what does not fill them is computed for nothing.
  static int64_t tile_of(int64_t extent) {
    if (extent < 0) return 4;
    auto cost = [&](int64_t t) {
      return double((extent + kSide * t - 1) / (kSide * t) * kSide * t) * (1 + 1.0 / double(t));
    };
    return cost(4) <= cost(2) && cost(4) <= cost(1) ? 4 : cost(2) <= cost(1) ? 2 : 1;
  }
  bool axes() {
    if (!plain(x_) || !plain(w_) || !plain(f_.target)) return false;
    double batch = 1;
    for (const AxisFact &a : f_.axes) {
      bool x = mentions(x_, a.name), w = mentions(w_, a.name);
      if (a.reduce) {
        if (k_axis_ || !x || !w || (a.extent >= 0 && a.extent < kDepth)) return false;
        k_axis_ = a.name;
      } else if (x == w || a.extent == 1) {
        batch *= a.extent < 0 ? 1 : double(a.extent);
      } else if (w && along(s_, f_, f_.target, a.name) == Along::Unit) {
        column_ = a.name;
      } else if (x && along(s_, f_, f_.target, a.name) == Along::Unit) {
        std::swap(x_, w_);
        return k_axis_ = {}, column_ = row_ = {}, axes();
      } else if (x) {
        row_ = a.name;  // the last one
      }
    }
    if (!k_axis_ || !column_ || !row_ || batch > double(kMostBatch)) return false;
    int64_t m = f_.axis(row_)->extent, n = f_.axis(column_)->extent;
    return (m < 0 || m >= kSide / 2) && (n < 0 || n >= kSide / 2);
  }

  void take() {
    Sym block = f_.name;
    int64_t rows = tile_of(f_.axis(row_)->extent), columns = tile_of(f_.axis(column_)->extent);
    std::vector<int64_t> multiples;
    bool pads = false;
    for (const AxisFact &a : f_.axes) {
      int64_t m = a.name == row_ ? kSide * rows : a.name == column_ ? kSide * columns : a.name == k_axis_ ? kDepth : 1;
      multiples.push_back(m);
      pads |= m > 1 && (a.extent < 0 || a.extent % m);
    }
    Sym out = pads ? padded(block, multiples) : epilogue_of(s_, f_);
    if (!k_.machine.strict) s_.attempt([&] { s_.run("contract", {name(block)}); }, nullptr);

    std::vector<Sym> loops = s_.loops(block), batch, order;
    Sym i[3], j[3], k[2];
    BlockFacts now = facts_of(s_, block);
    for (const AxisFact &a : now.axes) {
      Sym l = loop_of_axis(s_, block, a.name, loops);
      if (!l && a.extent == 1) continue;
      if (!l) refuse(kNowhere, "axis {} of {} is no loop of its own", b_.text(a.name), b_.text(block));
      std::string base(b_.text(a.name));
      auto part = [&](std::vector<int64_t> by, Sym *to) {
        std::vector<std::string> names;
        for (size_t n = 0; n < by.size(); n++) names.push_back(base + std::to_string(n));
        std::vector<Sym> parts = s_.split(l, by, names);
        std::copy(parts.begin(), parts.end(), to);
      };
      if (a.name == row_) part({0, kSide, rows}, i);
      else if (a.name == column_) part({0, kSide, columns}, j);
      else if (a.name == k_axis_) part({0, kDepth}, k);
      else batch.push_back(l);
    }
    order = batch;
    for (Sym l : {i[0], j[0], i[1], j[1], k[0], k[1], i[2], j[2]}) order.push_back(l);
    s_.reorder(order);
    s_.run("reverse_compute_at", {name(out), name(j[1])});
    unroll_behind(out, j[1]);
    if (!batch.empty()) {
      Sym z = batch[0];
      if (batch.size() > 1) {
        std::vector<const Expr *> all;
        for (Sym l : batch) all.push_back(name(l));
        z = s_.run("fuse", all, {"z"})[0];
      }
      bind(z, "blockIdx.z");
    }
    bind(i[0], "blockIdx.y"), bind(j[0], "blockIdx.x"), bind(i[1], "threadIdx.y"), bind(j[1], "threadIdx.x");
    std::vector<Sym> buffers;
    for (const Load *l : facts_of(s_, block).loads)
      if (!l->global && std::find(buffers.begin(), buffers.end(), l->buffer) == buffers.end()) buffers.push_back(l->buffer);
    for (Sym buffer : buffers) fetch(block, buffer, k[0]);
    for (Sym l : {i[2], j[2]}) s_.mark("unroll", l);
    k_.done.insert(s_.run("decompose_reduction", {name(block), name(k[0])}, {std::string(b_.text(block)) + ".init"})[0]);
    k_.done.insert({block, out});
  }
  void bind(Sym loop, std::string_view tag) { s_.run("bind", {name(loop), word(tag)}); }

  // Domains that are multiples of the tiles, zeros behind the operands; what they stand in is local, and the one block
  // that reads the sums takes them from there.
  Sym padded(Sym block, const std::vector<int64_t> &multiples) {
    Sym target = f_.target->buffer;
    s_.run("pad_einsum", {name(block), s_.numbers(multiples)});
    BlockFacts now = facts_of(s_, block);
    s_.run("set_scope", {name(block), name(now.target->buffer), word("local")});
    std::vector<Place *> out = consumers(s_.state(), s_.state().find_block(block));
    if (out.size() != 1 || !out[0]->block()) refuse(kNowhere, "the sums have several readers");
    Sym copy = out[0]->block()->name;
    std::vector<Place *> users;
    if (s_.state().alloc_of(target)) users = consumers(s_.state(), out[0]);
    BlockFacts user = users.size() == 1 && users[0]->block() ? facts_of(s_, users[0]->block()->name) : BlockFacts{};
    if (!user.target || user.reduces || user.guarded) return copy;
    bool inlined = s_.attempt([&] { s_.run("compute_inline", {name(copy)}); }, nullptr);
    return inlined ? user.name : copy;
  }

  // The loops of the block below this one.
  void unroll_behind(Sym block, Sym at) {
    std::vector<Sym> loops = s_.loops(block);
    bool below = false;
    for (Sym l : loops) {
      if (below)
        if (int64_t n = s_.extent(l); n > 0 && n <= 8) s_.mark("unroll", l);
      below |= s_.place(l) == s_.place(at);
    }
  }

  void fetch(Sym block, Sym buffer, Sym at) {
    Sym copy = s_.run("cache_read", {name(block), name(buffer), word("shared")}, {std::string(b_.text(buffer)) + ".shared"})[0];
    if (s_.state().find_block(buffer) && s_.state().alloc_of(buffer))  // the padding moves into the copy
      s_.attempt([&] { s_.run("compute_inline", {name(buffer)}); }, nullptr);
    s_.run("compute_at", {name(copy), name(at)});
    s_.run("cooperative_fetch", {name(copy), word("threadIdx.y"), word("threadIdx.x"), b_.integer(lanes(copy, at))});
    const Load *l = facts_of(s_, copy).target;
    size_t rank = l ? l->index.size() : 0;
    BlockFacts now = facts_of(s_, block);
    bool deep = false;  // the reduction runs along memory: rows of the tile would share their banks
    for (const Load *x : now.loads)
      if (l && x->buffer == l->buffer && !x->index.empty())
        if (auto *n = as<Name>(x->index.back())) deep |= n->name == k_axis_;
    if (deep && rank >= 2)
      s_.attempt([&] {
        s_.run("storage_align", {name(copy), b_.integer(0), b_.integer(int64_t(rank) - 2), b_.integer(kDepth), b_.integer(1)});
      }, nullptr);
    k_.done.insert(copy);
  }

  // Elements that a thread copies at once: 16 bytes of a row, if the tile is enough for all threads then. What is padded
  // is asked for one by one.
  int64_t lanes(Sym copy, Sym at) {
    BlockFacts f = facts_of(s_, copy);
    if (!f.value || f.value->kind != Kind::Load || f.guarded) return 1;
    int64_t row = 0, all = 1;  // of the loops below `at`
    for (Place *l = s_.state().find_block(copy)->up; l && l->loop() && l != s_.place(at); l = l->up) {
      int64_t e = 0;
      if (!int_value(l->loop()->iter.extent, &e)) return 1;
      all *= e, row = row ? row : e;
    }
    int64_t n = std::max<int64_t>(1, 16 / std::max<int64_t>(1, storage_bytes(s_.state().type_of_buffer(f.target->buffer)->elem, 1)));
    while (n > 1 && (!row || row % n || all % (n * kSide * kSide))) n /= 2;
    return n;
  }

  Kernel &k_;
  Script &s_;
  Build &b_;
  BlockFacts f_;
  const Load *x_ = nullptr, *w_ = nullptr;
  Sym row_, column_, k_axis_;
};

}  // namespace

bool cuda_product(Kernel &k, Sym block) { return Product(k, block).run(); }

}  // namespace mlc
