// Branches and loops that have values, as statements that write buffers.
#include <algorithm>

#include "graph/plan_lines.h"
#include "ops/expr.h"
#include "text/text.h"

namespace mlc {

constexpr int64_t kMostTurns = int64_t(1) << 32;  // above it a loop has no limit in earnest

//   m: index, y: f32[m] = if c { .. yield n, a } else { .. yield k, d }
//   if c[] { ..; fill(n) -> m.value; a -> y } else { .. };  m: index = m.value[]
void PlanLines::if_value(const IfValue &s, Lines &out) {
  std::vector<Sym> to;
  std::unordered_set<Sym> sizes;
  for (const Def &d : s.defs)
    if (!d.type->tensor) sizes.insert(d.name);
  auto late = [&](const Def &d) {
    std::unordered_set<Sym> names;
    collect_names(d.type, names);
    return std::any_of(names.begin(), names.end(), [&](Sym x) { return sizes.count(x) > 0; });
  };
  for (const Def &d : s.defs) {
    if (!d.type->tensor) to.push_back(temporary(d.name, ".value", slot_type(d.type->elem)));
    else if (is_result(d.name) && !has_size(d.name)) to.push_back(temporary(d.name, ".data", d.type));
    else buffer(d), to.push_back(d.name);
    if (!late(d)) declare(out, to.back());
  }
  Line *l = open(out, If{{}, condition(s.cond), {}, {}, true}, s, reads(s.cond));
  std::vector<Upper::Limits> limits[2];
  for (const Yield *side : {&s.then, &s.other})
    inner(l, [&](Lines &in) {
      Yield y = own(*side, clashes(side->body));
      body(y.body, in);
      if (diag_.errors()) return;
      for (size_t k = 0; k < to.size(); k++) {
        limits[side == &s.other].push_back(s.defs[k].type->tensor ? Upper::Limits{} : upper_.limits(y.yields[k]));
        move(in, y.yields[k], to[k], s.from);
      }
    });
  places.close(l);
  if (diag_.errors()) return;
  for (size_t k = 0; k < to.size(); k++) {
    if (s.defs[k].type->tensor) continue;
    const Upper::Limits &p = limits[0][k], &q = limits[1][k];
    Upper::Limits both;
    if (p.lo && q.lo) both.lo = min(*p.lo, *q.lo);
    if (p.hi && q.hi) both.hi = max(*p.hi, *q.hi);
    read(out, s.defs[k], to[k], both);
  }
  for (size_t k = 0; k < to.size(); k++) {
    const Def &d = s.defs[k];
    if (!d.type->tensor) continue;
    if (late(d)) {
      Buffer &x = places.buffers[to[k]];
      if (x.where == Buffer::Arena) x.bytes = upper_.bytes(d.type, &x.open);
      declare(out, to[k]);
    }
    if (to[k] != d.name) move(out, b_.name(to[k]), d.name, s.from);
  }
}

// t: index, r: T, ys: U = loop i in n carry s: T = x while go { .. yield a stack p }
void PlanLines::loop(const Loop &s, Lines &out) {
  auto *limit = as<Float>(s.iter.extent);
  bool endless = limit != nullptr;
  size_t turns = s.until ? 1 : 0, carried = s.carry.size(), stacked = s.body.stacks.size();
  std::vector<Sym> to, stacks, views;

  // What is carried is where the result is, if that can be written already.
  Substitution renamed = clashes(s.body.body, s.carry);
  auto name = [&](Sym x) { return renamed.count(x) ? mlc::to<Name>(renamed.at(x)).name : x; };
  Yield y = own(s.body, renamed);
  for (size_t k = 0; k < carried; k++) {
    const Def &r = s.defs[turns + k];
    Def c = s.carry[k].def;
    c.name = name(c.name);
    if (!c.type->tensor) to.push_back(temporary(c.name, ".value", slot_type(c.type->elem)));
    else if (is_result(r.name) && has_size(r.name)) to.push_back(alias(c.name, r.name, c.type));
    else buffer(c), to.push_back(c.name);
    declare(out, to.back());
    move(out, s.carry[k].init, to.back(), s.from);
  }
  // What is stacked: one buffer of as many turns as there can be.
  for (size_t k = 0; k < stacked; k++) {
    const Def &r = s.defs[turns + carried + k];
    std::vector<const Expr *> dims(r.type->dims.begin(), r.type->dims.end());
    if (!dims.empty() && turns) dims[0] = s.iter.extent;
    int64_t most;
    if (endless || (turns && int_value(s.iter.extent, &most) && most > kMostTurns))
      return diag_.error(r.at, "`{}` cannot be planned: a loop in {} stacks it, so its size has no upper bound",
                         b_.text(r.name), print(b_, s.iter.extent));
    if (turns) stacks.push_back(temporary(r.name, ".all", b_.with_dims(r.type, b_.list(dims))));
    else if (is_result(r.name) && !has_size(r.name)) stacks.push_back(temporary(r.name, ".data", r.type));
    else buffer(r), stacks.push_back(r.name);
    declare(out, stacks.back());
  }
  Sym turn;
  Line *l;
  const Expr *i = b_.name(s.iter.name);
  if (turns) {
    turn = temporary(s.iter.name, ".turn", slot_type(DType::I64));
    declare(out, turn);
    fill(out, b_.integer(0), turn);
    Sym go = name(s.until);
    const Expr *more = element(go);
    if (!endless)
      more = b_.binary(Op::And, more, b_.binary(Op::Lt, item(b_.name(turn), DType::Index), s.iter.extent));
    l = open(out, While{{}, more, {}}, s, {go, turn});
  } else {
    l = open(out, For{{}, LoopKind::Serial, s.iter, {}, {{}, s.from}, {}}, s, {});
  }
  inner(l, [&](Lines &in) {
    if (turns) {
      read(in, {s.iter.name, s.iter.at, b_.index()}, turn, {});
      const Expr *inside = b_.binary(Op::Ge, i, b_.integer(0));
      if (!endless) inside = b_.binary(Op::And, inside, b_.binary(Op::Lt, i, s.iter.extent));
      plain(in, b_.make(Assume{{}, inside}));
      upper_.assume(inside);
    } else {
      upper_.range(s.iter.name, s.iter.extent);
    }
    for (size_t k = 0; k < carried; k++)
      if (Def c = s.carry[k].def; !c.type->tensor) c.name = name(c.name), read(in, c, to[k], {});
    for (size_t k = 0; k < stacked; k++) {
      const Type *t = places.type(stacks[k]);
      std::vector<const Expr *> at(t->rank(), b_.all());
      at[0] = i;
      Def v = {fresh(stacks[k], ".turn"), kNowhere, b_.with_dims(t, t->dims.subspan(1))};
      part(b_.make(View{{}, v, b_.load(stacks[k], b_.list(at))}), v, stacks[k], in);
      views.push_back(v.name);
    }
    auto early = [&](const Expr *e) {  // what is carried can be stacked at once, and then written over
      auto *n = as<Name>(e);
      return n && std::find(to.begin(), to.end(), n->name) != to.end();
    };
    for (size_t k = 0; k < stacked; k++)
      if (early(y.stacks[k])) move(in, y.stacks[k], views[k], s.from);
    body(y.body, in);
    if (diag_.errors()) return;
    for (size_t k = 0; k < stacked; k++)
      if (!early(y.stacks[k])) move(in, y.stacks[k], views[k], s.from);
    next_turn(s, y, to, in);
    if (turns) fill(in, b_.binary(Op::Add, i, b_.integer(1)), turn);
  });
  places.close(l);
  if (diag_.errors()) return;

  if (turns) {
    Upper::Limits most = endless ? Upper::Limits{} : upper_.limits(s.iter.extent);
    if (most.hi) most.hi = max(*most.hi, lit(b_, 0));
    read(out, s.defs[0], turn, {lit(b_, 0), most.hi});
  }
  for (size_t k = 0; k < carried; k++)
    if (const Def &r = s.defs[turns + k]; !r.type->tensor) read(out, r, to[k], {});
  for (size_t k = 0; k < carried + stacked; k++) {
    const Def &r = s.defs[turns + k];
    Sym from = k < carried ? to[k] : stacks[k - carried];
    if (!r.type->tensor || from == r.name || places.root(from) == r.name) continue;
    Sym result = is_result(r.name) ? fresh(r.name, ".data") : r.name;
    alias(result, from, r.type);
    declare(out, result);
    if (result != r.name) move(out, b_.name(result), r.name, s.from);
  }
}

// What is yielded becomes what is carried, all at once: what one needs of another's old value is copied first.
void PlanLines::next_turn(const Loop &s, const Yield &y, const std::vector<Sym> &to, Lines &in) {
  std::vector<const Expr *> values(y.yields.begin(), y.yields.end());
  for (size_t k = 0; k < to.size(); k++) {
    auto *n = as<Name>(values[k]);
    if (!s.carry[k].def.type->tensor || !n || !places.has(n->name)) continue;
    Sym r = places.root(n->name);
    bool other = std::any_of(to.begin(), to.end(), [&](Sym x) { return x != to[k] && places.root(x) == r; });
    if (!other) continue;
    Sym old = temporary(n->name, ".old", places.type(n->name));
    declare(in, old);
    move(in, n, old, s.from);
    values[k] = b_.name(old);
  }
  for (size_t k = 0; k < to.size(); k++) move(in, values[k], to[k], s.from);
}

}  // namespace mlc
