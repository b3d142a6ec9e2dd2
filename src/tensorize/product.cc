// One block: packed, blocked, its operands brought where they are wanted, and called.
#include "ir/typing.h"
#include "ops/expr.h"
#include "tensorize/blocking.h"
#include "tensorize/tensorizer.h"

namespace mlc {

// Where an operand is itself a product or a cast, as deep as the description has its operands; -1: there is none.
int64_t Tensorizer::depth_of(const Match &m) const {
  bool inner = false;
  for (auto &[param, e] : m.operands) {
    auto *x = as<Binary>(e);
    auto *c = as<Call>(e);
    inner |= (x && x->op == Op::Mul) || (c && !c->global && is_cast(b_.text(c->callee)));
  }
  if (!inner) return -1;
  std::set<int64_t> depths;
  std::function<void(const Expr *, int64_t)> look = [&](const Expr *e, int64_t depth) {
    if (e->kind == Kind::Load) depths.insert(depth);
    else each_child(e, [&](const Expr *x) { look(x, depth + 1); });
  };
  look(m.desc->value, 0);
  return depths.size() == 1 ? *depths.begin() : -1;
}

std::string Tensorizer::tensorize(const std::string &block, const Match &m, bool copies) {
  const Description &d = *m.desc;
  auto inlined = [&](const std::string &out) {  // what a step has put behind goes into its reader, if that may be
    if (has_block(out)) script_.attempt([&] { run("compute_inline", {}, {name(out)}); });
  };
  if (m.distributed) run("distribute", {}, {name(block)}), inlined(block + ".out");
  std::vector<int64_t> at_once = tiles_at_once(script_.state(), m, target_);
  std::vector<std::string> outer, outer_reduce, blocks, tiles, loops;
  std::vector<const Expr *> groups;
  std::vector<int64_t> multiples;
  for (size_t g = 0; g < m.groups.size(); g++) {
    std::vector<const Expr *> axes;
    for (Sym x : m.groups[g].axes) axes.push_back(b_.name(x));
    groups.push_back(b_.make_list(b_.list(axes)));
    multiples.push_back(m.groups[g].tile * at_once[g]);
    loops.push_back(script_.fresh(b_.text(m.groups[g].axes[0])));
  }
  if (!copies)
    for (const Param &p : d.f->params)
      if (p.def.name != d.target->buffer) lay_out_constant(block, m, at_once, p.def.name);
  std::vector<Attr> attrs;
  if (copies) attrs.push_back({b_.sym("copy"), kNowhere, b_.integer(1)});
  if (int64_t depth = depth_of(m); depth >= 0) attrs.push_back({b_.sym("depth"), kNowhere, b_.integer(depth)});
  script_.step("pack_einsum", loops, {name(block), b_.make_list(b_.list(groups)), script_.numbers(multiples)},
              b_.list(attrs));
  inlined(block + (has_block(block + ".out_1") ? ".out_1" : ".out"));

  // Loops over blocks of tiles, tiles, and what a tile is.
  way_ = m.way;
  bringing_.clear(), axis_tile_.clear(), axis_iter_.clear(), axis_blocks_.clear(), spatial_.clear();
  std::vector<std::string> before;
  auto *k = find(block)->block();
  for (size_t g = 0; g < m.groups.size(); g++) {
    Sym axis = k->axes[g].name;
    axis_tile_[axis] = m.groups[g].tile, axis_blocks_[axis] = at_once[g], axis_iter_[axis] = m.groups[g].iter;
    if (m.groups[g].kind == AxisKind::Spatial) spatial_.insert(axis);
    std::vector<const Expr *> factors = {b_.name("_")};
    bool spatial = m.groups[g].kind == AxisKind::Spatial;
    std::vector<std::string> made = {loops[g]};
    if (at_once[g] > 1) factors.push_back(b_.integer(at_once[g]));
    if (m.groups[g].iter) factors.push_back(b_.integer(m.groups[g].tile));
    if (factors.size() > 1) {
      made.clear();
      for (size_t i = 0; i < factors.size(); i++) made.push_back(script_.fresh(fmt::format("{}{}", loops[g], i)));
      run("split", made, {name(loops[g]), b_.make_list(b_.list(factors))});
    }
    before.insert(before.end(), made.begin(), made.end());
    (spatial ? outer : outer_reduce).push_back(made[0]);
    if (at_once[g] > 1) blocks.push_back(made[1]);
    if (m.groups[g].iter) tiles.push_back(made.back());
  }
  std::vector<std::string> order = outer;
  for (auto *l : {&outer_reduce, &blocks, &tiles}) order.insert(order.end(), l->begin(), l->end());
  reorder(before, order);
  bool whole_sum = outer_reduce.empty() || d.starts;  // a call makes the result from nothing
  if (d.starts && d.fold)
    for (const std::string &l : outer_reduce)
      if (!is_int(find(l)->loop()->iter.extent, 1))
        refuse(kNowhere, "@{} starts at the identity, and {} is summed over several calls", text(d.f->name), block);

  // Operands and the result in the memories that the intrinsic wants.
  std::string near = outer.empty() ? "" : outer.back(), nearest = outer_reduce.empty() ? near : outer_reduce.back();
  if (near.empty()) refuse(kNowhere, "@{} has no result with a dimension", text(d.f->name));
  std::vector<Mover> movers;
  Sym result = d.target->buffer, scope = scope_of(d.type_of(result));
  if (scope) {
    Sym buffer = buffer_of(block, d, result);
    std::string store = script_.fresh(text(buffer) + ".store");
    run("cache_write", {store}, {name(block), b_.name(buffer), b_.name(scope)});
    run("reverse_compute_at", {}, {name(store), name(near)});
    movers.push_back(mover(store, near, scope, {}, false));
  }
  for (const Param &p : d.f->params) {
    if (p.def.name == result) continue;
    bool used = m.operands.count(p.def.name);
    if (!used) refuse(kNowhere, "operand {} of @{} is not in its description", text(p.def.name), text(d.f->name));
    bring(block, d, p.def.name, scope_of(p.def.type), nearest, movers);
  }
  for (const Param &p : d.f->params)
    if (p.def.name != result) lay_out(block, d, p.def.name);
  lay_out(block, d, result);

  // The calls.
  bool literal = false;  // operands are numbers that must be constants
  for (const Param &p : d.f->params) literal |= is_literal(scope_of(p.def.type));
  literal |= is_literal(scope);
  if (!whole_sum) {
    std::string init = script_.fresh(block + ".init");
    run("decompose_reduction", {init}, {name(block), name(outer_reduce[0])});
    if (scope) call({init, near, axis_tile_, {}, scope, true}, literal);
  }
  for (const Mover &x : movers) call(x, literal);
  if (literal)
    for (const std::string &l : blocks) run("unroll", {}, {name(l)});
  call_of(d, tiles[0]);
  return summary(m, at_once);
}

std::string Tensorizer::summary(const Match &m, const std::vector<int64_t> &at_once) const {
  std::string axes, blocks;
  for (size_t g = 0; g < m.groups.size(); g++) {
    if (!m.groups[g].iter) continue;
    std::string all;
    for (Sym x : m.groups[g].axes) all += (all.empty() ? "" : " ") + text(x);
    axes += fmt::format("{}{}: {}", axes.empty() ? "" : ", ", text(m.groups[g].iter), all);
  }
  for (size_t g = 0; g < at_once.size(); g++)
    if (at_once[g] > 1) blocks += (blocks.empty() ? "" : " x ") + std::to_string(at_once[g]);
  return blocks.empty() ? axes : fmt::format("{}; {} tiles at a time", axes, blocks);
}

void Tensorizer::reorder(const Names &before, const Names &order) {
  if (before == order || order.size() < 2) return;
  std::vector<const Expr *> args;
  for (const std::string &l : order) args.push_back(name(l));
  run("reorder", {}, args);
}
bool Tensorizer::has_block(const std::string &n) {
  for (Place *p : script_.state().blocks())
    if (text(p->block()->name) == n) return true;
  return false;
}
Place *Tensorizer::find(const std::string &n) {
  Place *p = script_.place(b_.sym(n));
  if (!p) refuse(kNowhere, "{} is gone", n);
  return p;
}

}  // namespace mlc
