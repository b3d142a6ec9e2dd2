// parallel, vectorize, unroll, bind; annotate and unannotate.
#include <algorithm>

#include "sched/combine.h"
#include "sched/primitives.h"
#include "sched/regions.h"

namespace mlc {

std::string_view kind_name(const For &f) {
  static constexpr std::string_view kNames[] = {"serial", "parallel", "vectorized", "unrolled", "bound"};
  return kNames[size_t(f.loop)];
}

static void mark(State &s, Args &a, LoopKind kind, Sym tag = {}) {
  a.expect_results(0, 0);
  Place *n = a.loop(0);
  const For &f = *n->loop();
  if (f.loop == kind && f.tag == tag) return;
  if (f.loop != LoopKind::Serial) refuse(n, "{} is {} already", s.name_of(n), kind_name(f));
  bool combines = false;  // threads add up what they have: a reduction across them
  for (Place *k : kind == LoopKind::Unroll ? std::vector<Place *>{} : leaf_blocks(n)) {
    auto &block = *k->block();
    bool spatial = false, reduce = false;
    for (const Axis &x : block.axes) {
      if (!uses(x, f.iter.name)) continue;
      (x.kind == AxisKind::Spatial ? spatial : reduce) = true;
      if (x.kind == AxisKind::Spatial || (x.kind == AxisKind::Reduce && kind == LoopKind::Bind)) continue;
      throw Refused{k->stmt->at,
                    fmt::format("{} takes part in {} axis {} of block {}: its turns {}", s.name_of(n),
                                x.kind == AxisKind::Scan ? "scan" : "reduce", s.text(x.name), s.text(block.name),
                                x.kind == AxisKind::Scan ? "are taken in order" : "combine into the same elements"),
                    x.kind == AxisKind::Scan
                        ? ""
                        : fmt::format("rfactor({}, 0) gives each turn an element of its own", s.text(f.iter.name))};
    }
    if (spatial && reduce)
      refuse(k, "{} is used by spatial and by reduce axes of block {}", s.name_of(n), s.text(block.name));
    std::string_view word = tag ? s.b.text(tag) : "";
    if (reduce && (word.starts_with("blockIdx") || word.starts_with("clusterIdx")))
      throw Refused{k->stmt->at, fmt::format("{} reduces block {}, and blocks of threads do not meet to add up what they have",
                                             s.name_of(n), s.text(block.name)),
                    fmt::format("bind({}, threadIdx.x), or rfactor({}, 0)", s.text(f.iter.name), s.text(f.iter.name))};
    combines |= reduce;
    if (reduce && !block.inits.empty() && !starts_at_identity(s, k, combine_of(s, k)))
      refuse(k, "block {} starts from a value that each thread would add: it should start from the identity",
             s.text(block.name));
  }
  if (kind == LoopKind::Bind && !combines && !is_int(f.iter.extent, 1))
    if (std::string why = dependence(s, n, true); !why.empty()) refuse(n, "bound to {}, {}", s.text(tag), why);
  s.tree.edit<For>(n, [&](For &x) { x.loop = kind, x.tag = tag; });
}

void parallel(State &s, Args &a) { mark(s, a, LoopKind::Parallel); }
void vectorize(State &s, Args &a) {
  Place *n = a.loop(0);
  each_place(n, [&](Place *k) {
    if (k != n && k->loop() && k->loop()->loop == LoopKind::Parallel)
      refuse(k, "{} holds a parallel loop", s.name_of(n));
  });
  mark(s, a, LoopKind::Vectorize);
}
void unroll(State &s, Args &a) { mark(s, a, LoopKind::Unroll); }

void bind(State &s, Args &a) {
  static constexpr std::string_view kTags[] = {
      "blockIdx.x",   "blockIdx.y",   "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z", "clusterIdx.x",
      "clusterIdx.y", "clusterIdx.z", "warp",       "warpgroup",   "lane",        "vthread"};
  Sym tag = a.word(1);
  if (std::find(std::begin(kTags), std::end(kTags), s.b.text(tag)) == std::end(kTags)) {
    bool known = false;
    for (const Item *i : s.m.items)
      if (auto *t = as<Target>(i))
        for (const Feature &f : t->features)
          known |= f.kind == Feature::Thread && f.name == tag;
    if (!known)
      bad_step(a.at(1), "{} is no thread tag: blockIdx.x, threadIdx.y, warp, vthread, or a thread line of a target",
               s.text(tag));
  }
  mark(s, a, LoopKind::Bind, tag);
}

// All that decides whether turns of a loop are independent, by identity: what is around it and below it, and what else
// touches a buffer that could be one of its turns'.
static std::vector<const void *> around(State &s, Place *loop) {
  std::vector<const void *> out = {s.original()};
  auto note = [&](Place *n) { out.insert(out.end(), {n, n->up, n->stmt}); };
  auto mentioned = [&](const Stmt *x) -> const std::vector<Sym> & {
    auto [it, fresh] = s.mentioned.try_emplace(x);
    if (!fresh) return it->second;
    std::unordered_set<Sym> names;
    auto note_expr = [&](const Expr *e) {
      if (auto *l = as<Load>(e)) names.insert(l->buffer);
      if (auto *n = as<Name>(e)) names.insert(n->name);
      return true;
    };
    each_stmt(x, [&](const Stmt *y) {
      if (auto *c = as<Compute>(y))
        for (const Result &r : c->results) names.insert(r.name);
      each_expr_of(y, [&](const Expr *e) { each_expr(e, note_expr); });
    });
    it->second.assign(names.begin(), names.end());
    return it->second;
  };
  std::unordered_set<Sym> touched;
  for (Place *n = loop; n; n = n->up) note(n);
  each_place(loop, [&](Place *n) {
    note(n);
    if (!n->holds()) touched.insert(mentioned(n->stmt).begin(), mentioned(n->stmt).end());
  });
  each_place(s.tree.root(), [&](Place *n) {
    if (n->holds() || is_below(n, loop)) return;
    bool declares = n->stmt->kind == Kind::Alloc || n->stmt->kind == Kind::Assume;
    const std::vector<Sym> &names = mentioned(n->stmt);
    if (declares || std::any_of(names.begin(), names.end(), [&](Sym x) { return touched.count(x); })) note(n);
  });
  return out;
}

// Threads add up what they have: a reduction across them.
static bool combines(Place *loop) {
  std::vector<Place *> blocks = leaf_blocks(loop);
  return std::any_of(blocks.begin(), blocks.end(), [&](Place *k) {
    auto &axes = k->block()->axes;
    return std::any_of(axes.begin(), axes.end(), [&](const Axis &x) {
      return x.kind == AxisKind::Reduce && uses(x, loop->loop()->iter.name);
    });
  });
}

void check_marks(State &s) {
  std::vector<Place *> marked;
  each_place(s.tree.root(), [&](Place *n) {
    auto *f = n->loop();
    if (f && f->loop != LoopKind::Serial && f->loop != LoopKind::Unroll && !is_int(f->iter.extent, 1)) marked.push_back(n);
  });
  for (Place *n : marked) {
    std::vector<const void *> &seen = s.independent[n];
    bool bound = n->loop()->loop == LoopKind::Bind;
    if ((bound && combines(n)) || (!seen.empty() && seen == around(s, n))) continue;
    if (std::string why = dependence(s, n, bound); !why.empty()) refuse(n, "{} loop: {}", kind_name(*n->loop()), why);
    make_private(s, n, bound);
    seen = around(s, n);
  }
}

// ---- notes on loops, blocks and the kernel

namespace {

std::vector<Attr> attrs_of(State &s, Place *n) {
  if (!n) return s.attrs;
  Attrs l = n->loop() ? n->loop()->notes.attrs : n->block()->notes.attrs;
  return {l.begin(), l.end()};
}
void set_attrs(State &s, Place *n, const std::vector<Attr> &attrs) {
  if (!n) s.attrs = attrs;
  else if (n->loop()) s.tree.edit<For>(n, [&](For &f) { f.notes.attrs = s.b.list(attrs); });
  else s.tree.edit<Block>(n, [&](Block &k) { k.notes.attrs = s.b.list(attrs); });
}
// The loop or block that comes first; null: none does, the kernel is meant.
Place *noted(Args &a, size_t with) { return a.count() == with ? a.loop_or_block(0) : nullptr; }

}  // namespace

void annotate(State &s, Args &a) {
  a.expect_results(0, 0);
  Place *n = noted(a, 3);
  Sym key = s.b.sym(a.string(a.count() - 2));
  std::vector<Attr> attrs = attrs_of(s, n);
  std::erase_if(attrs, [&](const Attr &x) { return x.key == key; });
  attrs.push_back({key, kNowhere, a.value(a.count() - 1)});
  set_attrs(s, n, attrs);
}

void unannotate(State &s, Args &a) {
  a.expect_results(0, 0);
  Place *n = noted(a, 2);
  Sym key = s.b.sym(a.string(a.count() - 1));
  std::vector<Attr> attrs = attrs_of(s, n);
  if (!std::erase_if(attrs, [&](const Attr &x) { return x.key == key; }))
    refuse(n, "{} has no annotation \"{}\"", s.name_of(n), s.text(key));
  set_attrs(s, n, attrs);
}

void enter_postproc(State &, Args &a) { a.expect_results(0, 0); }

}  // namespace mlc
