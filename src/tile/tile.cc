#include "tile/tile.h"

#include <algorithm>

#include "ir/typing.h"
#include "sched/regions.h"
#include "tensorize/tensorize.h"
#include "text/twins.h"
#include "tile/cuda.h"
#include "tile/rules.h"

namespace mlc {

namespace {

Machine machine_of(const Build &b, const TargetInfo &t, const TileOptions &options) {
  Machine m;
  m.vector_bytes = t.number(b, "vector_bytes", 0);
  m.registers = t.number(b, "vector_registers", 16);
  if (auto *l = t.memory("l1"); l && l->bytes > 0) m.l1 = l->bytes;
  if (auto *l = t.memory("l2"); l && l->bytes > 0) m.l2 = l->bytes;
  m.masks = t.number(b, "masks", 0) != 0;
  m.fma = t.has_feature("fma") || t.has_feature("neon");
  m.strict = options.strict;
  return m;
}

// Blocks of the kernel, computes among them expanded; empty where a statement is none (or holds blocks in blocks).
std::vector<Sym> blocks_of(Script &s) {
  State &st = s.state();
  std::vector<Sym> out;
  for (Place *n : leaves(st.tree.root())) {
    if (n->stmt->kind == Kind::Alloc || n->stmt->kind == Kind::Assume) continue;
    if (n->stmt->kind == Kind::Compute) st.as_block(n);
    else if (!n->block()) return {};
  }
  for (Place *n : leaves(st.tree.root()))
    if (n->block()) out.push_back(n->block()->name);
  return out;
}

bool is_marked(const Stmt *s) {
  auto *l = as<For>(s);
  return l && l->loop != LoopKind::Serial;
}

// Somebody has marked its loops; not mlc-tensorize, whose calls leave work beside them.
bool is_scheduled(const Func &f) {
  bool marked = false, calls = false;
  each_stmt(f.body, [&](const Stmt *s) { marked |= is_marked(s), calls |= s->kind == Kind::CallStmt; });
  return marked && !calls;
}

// Blocks of nests that have calls or marked loops.
std::vector<Sym> finished_blocks(State &s) {
  std::vector<Sym> out;
  for (Place *nest : s.tree.root()->kids[0]) {
    bool finished = false;
    std::vector<Sym> blocks;
    each_place(nest, [&](Place *n) {
      if (!n->stmt) return;
      finished |= is_marked(n->stmt);
      if (!n->block() || n->nest) return;
      blocks.push_back(n->block()->name);
      for (const Stmt *x : n->block()->body) finished |= x->kind == Kind::CallStmt;
    });
    if (finished) out.insert(out.end(), blocks.begin(), blocks.end());
  }
  return out;
}

// The outermost loop of rows, if they are work enough.
void share_rows(Kernel &k) {
  std::vector<Sym> blocks = blocks_of(k.s);
  double turns = 0;
  for (Sym n : blocks) turns += facts_of(k.s, n).turns();
  if (turns >= 1 << 16)
    k.s.attempt([&] {
      std::vector<Sym> loops = k.s.loops(blocks.back());
      if (!loops.empty()) k.s.mark("parallel", loops[0]);
    }, nullptr);
}

// Elementwise blocks that one block reads, at its own points, become part of it; so does padding, which rules may lift.
void inline_chains(Kernel &k) {
  for (Sym block : blocks_of(k.s)) {
    if (k.left.count(block)) continue;
    State &st = k.s.state();
    BlockFacts f = facts_of(k.s, block);
    if (f.reduces || !f.target || !st.alloc_of(f.target->buffer)) continue;
    std::vector<Place *> users = consumers(st, st.find_block(block));
    if (users.size() != 1 || !users[0]->block() || k.left.count(users[0]->block()->name)) continue;
    BlockFacts user = facts_of(k.s, users[0]->block()->name);
    auto *padding = as<Call>(f.value);
    bool pads = padding && k.s.b.text(padding->callee) == "where" && padding->args[1]->kind == Kind::Load;
    if (user.reduces && !pads) continue;
    bool points = true;  // as often as it is computed now, no more
    for (const Load *l : user.loads)
      if (!l->global && l->buffer == f.target->buffer) {
        for (const Expr *e : l->index) points &= pads || e->kind == Kind::Name;
        for (const AxisFact &a : user.axes) points &= pads || a.extent == 1 || mentions(l, a.name);
      }
    if (points) k.s.attempt([&] { k.s.run("compute_inline", {k.s.b.name(block)}); }, nullptr);
  }
}

// Mathematics with fused multiply-adds, where there is some.
void grant_fma(Script &s, const Func &f) {
  Build &b = s.b;
  bool any = false;
  each_stmt(f.body, [&](const Stmt *stmt) {
    each_expr_of(stmt, [&](const Expr *e) {
      each_expr(e, [&](const Expr *x) {
        auto *c = as<Call>(x);
        const Builtin *known = c && !c->global ? builtin(b.text(c->callee)) : nullptr;
        any |= known && known->library;
        return !any;
      });
    });
  });
  std::vector<const Expr *> all;
  if (auto *l = as<List>(attr(b, f.notes.attrs, "licence"))) all.assign(l->items.begin(), l->items.end());
  for (const Expr *e : all) any &= !equal(e, b.string("fma"));
  if (!any) return;
  all.push_back(b.string("fma"));
  s.run("annotate", {b.string("licence"), b.make_list(b.list(all))});
}

void run_rules(Kernel &k, bool cuda) {
  inline_chains(k);
  if (cuda) return tile_cuda(k, blocks_of(k.s));
  auto each = [&](bool (*rule)(Kernel &, Sym), bool first) {
    std::unordered_set<Sym> starts = initialisers(k.s);
    for (Sym block : blocks_of(k.s))
      if (!k.done.count(block) && !k.left.count(block) && k.s.state().find_block(block) && first != starts.count(block))
        rule(k, block);
  };
  each(tile_product, true);
  tile_rows(k);
  each(tile_lanes, true);
  each(tile_lanes, false);  // those that did not move
  if (k.rows) share_rows(k);
}

class Tiler {
 public:
  Tiler(Build &b, const Module &m, const TargetInfo &target, const TileOptions &options, Diag &diag)
      : b_(b), m_(m), target_(target), machine_(machine_of(b, target, options)), constants_(constant_params(m)),
        takers_(b, m, target, {"*", "", options.strict}), diag_(diag), twins_(b) {}

  // Once for all that are the same but for their names; remarks are told for each.
  std::optional<Tiled> schedule(const Func &f) {
    if (diag_.verbose) return schedule_one(f);
    std::string constants;
    if (auto it = constants_.find(f.name); it != constants_.end())
      for (bool c : it->second) constants += c ? 'c' : '-';
    const Func *first = twins_.first(&f, constants);
    auto [it, fresh] = made_.try_emplace(first);
    if (fresh) it->second = schedule_one(f);
    if (first == &f || !it->second) return it->second;
    Tiled t = *it->second;
    t.kernel = twins_.as_of(&f, first, t.kernel);
    t.script = edited(b_, *t.script, [&](Schedule &s) { s.name = f.name; });
    return t;
  }

 private:
  std::optional<Tiled> schedule_one(const Func &f) {
    std::string_view name = b_.text(f.name);
    if (is_scheduled(f)) return diag_.remark("@{} is scheduled already", name), std::nullopt;
    Script s(b_, m_, &f);
    Kernel k{s, machine_, {}, {}, {}, false, {}};
    if (auto it = constants_.find(f.name); it != constants_.end())
      for (size_t i = 0; i < it->second.size(); i++)
        if (it->second[i]) k.constants.insert(f.params[i].def.name);
    std::vector<Sym> blocks = blocks_of(s);
    if (blocks.empty()) return diag_.remark("@{} has statements that are no blocks, left", name), std::nullopt;
    for (Sym block : blocks)
      for (const AxisFact &a : facts_of(s, block).axes)
        if (a.extent == 0) return diag_.remark("@{}: block {} has no turns, left", name, b_.text(block)), std::nullopt;
    // A device's threads have to be laid out around its intrinsics: a schedule's job.
    std::vector<Takers::Taken> taken;
    if (target_.kind == "cpu") taken = takers_.of(&f);
    for (auto [block, intrinsic] : taken) {
      k.left.insert(block);
      diag_.remark("@{}: {} left to mlc-tensorize: @{}", name, b_.text(block), b_.text(intrinsic));
    }
    for (Sym block : finished_blocks(s.state())) k.left.insert(block);
    if (!target_.features.empty()) {
      std::vector<const Expr *> features;
      for (const std::string &x : target_.features) features.push_back(b_.string(x));
      s.run("annotate", {b_.string("features"), b_.make_list(b_.list(features))});
    }
    if ((machine_.fma || target_.kind == "cuda") && !machine_.strict) grant_fma(s, f);
    size_t first = s.steps().size();
    run_rules(k, target_.kind == "cuda");
    for (const std::string &r : k.remarks) diag_.remark("@{}: {}", name, r);
    if (!taken.empty() && s.steps().size() > first && !still_taken(s, taken)) {
      diag_.remark("@{}: mlc-tensorize takes nothing of what the rules make, all is left", name);
      s.rewind(first);
    }
    if (s.steps().size() == first && taken.empty())
      return diag_.remark("@{}: no rule has steps for it", name), std::nullopt;
    if (s.steps().empty()) return {};
    Schedule out{};
    out.name = f.name, out.target = b_.sym(target_.name), out.steps = b_.list(s.steps());
    return Tiled{b_.make(out), s.state().func(), s.state().layouts};
  }

  bool still_taken(Script &s, const std::vector<Takers::Taken> &taken) const {
    std::vector<Takers::Taken> now = takers_.of(s.state().func());
    return std::all_of(taken.begin(), taken.end(), [&](auto &t) {
      return std::any_of(now.begin(), now.end(),
                         [&](auto &u) { return u.block == t.block && u.intrinsic == t.intrinsic; });
    });
  }

  Build &b_;
  const Module &m_;
  const TargetInfo &target_;
  Machine machine_;
  ConstantParams constants_;
  Takers takers_;
  Diag &diag_;
  Twins twins_;
  std::unordered_map<const Func *, std::optional<Tiled>> made_;
};

}  // namespace

std::vector<Tiled> tile_kernels(Build &b, const Module &m, const TargetInfo &target, const TileOptions &options,
                                Diag &diag) {
  if (target.kind != "cpu" && target.kind != "cuda") {
    diag.remark("{} is of kind {}: kernels stay as they are; mlc-tensorize looks for intrinsics", target.name, target.kind);
    return {};
  }
  Tiler tiler(b, m, target, options, diag);
  std::vector<Tiled> out;
  for (const Item *i : m.items)
    if (auto *f = as<Func>(i); f && f->func == FuncKind::Kernel)
      if (auto made = tiler.schedule(*f)) out.push_back(*made);
  return out;
}

}  // namespace mlc
