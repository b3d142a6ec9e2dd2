#include "tile/tile.h"

#include "sched/regions.h"
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
  m.fma = t.has_feature("fma") || t.number(b, "fma", 0) != 0;
  m.strict = options.strict;
  return m;
}

// For each kernel, which parameters get a constant from every call of a graph.
using ConstantParams = std::unordered_map<Sym, std::vector<bool>>;
ConstantParams constant_params(const Module &m) {
  ConstantParams out;
  for (const Item *i : m.items)
    if (auto *f = as<Func>(i))
      each_stmt(f->body, [&](const Stmt *s) {
        auto seen = [&](const Expr *e) {
          auto *c = as<Call>(e);
          const Func *k = c && c->global ? m.func(c->callee) : nullptr;
          if (!k || k->func != FuncKind::Kernel) return;
          auto [it, fresh] = out.try_emplace(c->callee, k->params.size(), true);
          for (size_t p = 0; p < it->second.size(); p++) {
            auto *g = p < c->args.size() ? as<Global>(c->args[p]) : nullptr;
            it->second[p] = it->second[p] && g && m.constant(g->name) && f->func == FuncKind::Graph;
          }
        };
        each_expr_of(s, [&](const Expr *e) {
          each_expr(e, [&](const Expr *x) { return seen(x), true; });
        });
      });
  return out;
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

bool is_scheduled(const Func &f) {
  bool marked = false;
  each_stmt(f.body, [&](const Stmt *s) {
    auto *l = as<For>(s);
    marked |= l && l->loop != LoopKind::Serial;
  });
  return marked;
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
    State &st = k.s.state();
    BlockFacts f = facts_of(k.s, block);
    if (f.reduces || !f.target || !st.alloc_of(f.target->buffer)) continue;
    std::vector<Place *> users = consumers(st, st.find_block(block));
    if (users.size() != 1 || !users[0]->block()) continue;
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

const Schedule *schedule(Build &b, const Module &m, const Func &f, const TargetInfo &target, const Machine &machine,
                         const std::vector<bool> *constant, Diag &diag) {
  std::string_view name = b.text(f.name);
  if (is_scheduled(f)) return diag.remark("@{} is scheduled already", name), nullptr;
  Script s(b, m, &f);
  Kernel k{s, machine, {}, {}, false, {}};
  if (constant)
    for (size_t i = 0; i < constant->size(); i++)
      if ((*constant)[i]) k.constants.insert(f.params[i].def.name);
  std::vector<Sym> blocks = blocks_of(s);
  if (blocks.empty()) return diag.remark("@{} has statements that are no blocks, left", name), nullptr;
  for (Sym block : blocks)
    for (const AxisFact &a : facts_of(s, block).axes)
      if (a.extent == 0) return diag.remark("@{}: block {} has no turns, left", name, b.text(block)), nullptr;
  if (!target.features.empty()) {
    std::vector<const Expr *> features;
    for (const std::string &x : target.features) features.push_back(b.string(x));
    s.run("annotate", {b.string("features"), b.make_list(b.list(features))});
  }
  size_t first = s.steps().size();
  inline_chains(k);
  if (target.kind == "cuda") {
    tile_cuda(k, blocks_of(s));
  } else {
    for (Sym block : blocks_of(s))
      if (!k.done.count(block) && s.state().find_block(block)) tile_product(k, block);
    tile_rows(k);
    for (Sym block : blocks_of(s))
      if (!k.done.count(block) && s.state().find_block(block)) tile_lanes(k, block);
    if (k.rows) share_rows(k);
  }
  for (const std::string &r : k.remarks) diag.remark("@{}: {}", name, r);
  if (s.steps().size() == first) return diag.remark("@{}: no rule has steps for it", name), nullptr;
  Schedule out{};
  out.name = f.name, out.target = b.sym(target.name), out.steps = b.list(s.steps());
  return b.make(out);
}

}  // namespace

std::vector<const Schedule *> tile_schedules(Build &b, const Module &m, const TargetInfo &target,
                                             const TileOptions &options, Diag &diag) {
  if (target.kind != "cpu" && target.kind != "cuda") {
    diag.remark("{} is of kind {}: kernels stay as they are; mlc-tensorize looks for intrinsics", target.name, target.kind);
    return {};
  }
  Machine machine = machine_of(b, target, options);
  ConstantParams constants = constant_params(m);
  std::vector<const Schedule *> out;
  for (const Item *i : m.items) {
    auto *f = as<Func>(i);
    if (!f || f->func != FuncKind::Kernel) continue;
    auto it = constants.find(f->name);
    if (auto *s = schedule(b, m, *f, target, machine, it == constants.end() ? nullptr : &it->second, diag))
      out.push_back(s);
  }
  return out;
}

}  // namespace mlc
