// Blocks that bring tiles to and from memories, or clear them, as calls of the target's own intrinsics.
#include "arith/prove.h"
#include "ir/solve.h"
#include "sched/regions.h"
#include "tensorize/tensorizer.h"

namespace mlc {

void Tensorizer::call(const Mover &x, bool literal) {
  bool known = is_special(x.to) || is_special(x.from);
  const std::vector<Description> &all = x.fills ? all_.fills : all_.copies;
  auto fits = [&](const Description &d) {
    if (d.type_of(d.target->buffer)->scope != x.to) return false;
    return x.fills || d.type_of(to<Load>(d.value).buffer)->scope == x.from;
  };
  std::string why;
  size_t mark = script_.mark();
  bool any = false;
  for (const Description &d : all) {
    if (!fits(d)) continue;
    any = true;
    try {
      return one_call(x, d, literal);
    } catch (const Refused &e) {
      why = e.message;
      script_.rewind(mark);
    }
  }
  auto scope = [&](Sym s) { return s ? text(s) : std::string("global"); };
  if (any) refuse(kNowhere, "{}", why);
  if (known)
    refuse(kNowhere, "@{} has no intrinsic that {}", target_.name,
           x.fills ? fmt::format("fills {}", scope(x.to))
                   : fmt::format("copies from {} to {}", scope(x.from), scope(x.to)));
}

void Tensorizer::one_call(const Mover &x, const Description &d, bool literal) {
  Place *n = find(x.block), *inside = find(x.inside);
  std::vector<std::string> loops, own, outer, tiles;
  std::vector<int64_t> extents;
  for (Place *l : loops_around(n)) {
    bool below = is_below(l, inside);
    loops.push_back(below ? script_.fresh(text(l->loop()->iter.name)) : "_");
    if (below) own.push_back(loops.back());
  }
  std::vector<Axis> axes(n->block()->axes.begin(), n->block()->axes.end());
  std::map<std::string, int64_t> tile_of;  // the last of an axis' own loops
  for (const Axis &a : axes) {
    auto it = x.tiles.find(a.name);
    if (it == x.tiles.end() || it->second == 1) continue;
    std::string last;
    size_t i = 0;
    for (Place *l : loops_around(n)) {
      if (loops[i] != "_" && uses(a, l->loop()->iter.name)) last = loops[i];
      i++;
    }
    if (last.empty()) refuse(n, "block {} has no loop over a tile of {}", x.block, text(a.name));
    tile_of[last] = it->second;
  }
  run("get_loops", loops, {name(x.block)});
  for (const std::string &l : own) {
    auto it = tile_of.find(l);
    if (it == tile_of.end()) {
      outer.push_back(l);
      continue;
    }
    if (is_int(find(l)->loop()->iter.extent, it->second)) {
      tiles.push_back(l);
      continue;
    }
    std::vector<std::string> made = {script_.fresh(l + "0"), script_.fresh(l + "1")};
    run("split", made, {name(l), b_.make_list(b_.list({b_.name("_"), b_.integer(it->second)}))});
    outer.push_back(made[0]), tiles.push_back(made[1]);
  }
  if (tiles.empty()) refuse(n, "block {} has no loop over a tile", x.block);
  std::vector<std::string> before, order = outer;
  for (Place *l : loops_around(find(x.block)))
    for (const auto *list : {&outer, &tiles})
      for (const std::string &s : *list)
        if (find(s) == l) before.push_back(s);
  order.insert(order.end(), tiles.begin(), tiles.end());
  reorder(before, order);
  if (literal)
    for (const std::string &l : outer) run("unroll", {}, {name(l)});
  call_of(d, tiles[0]);
}

// Rows lie as far apart as the intrinsic takes them: at distances that its text leaves open, or one behind the other.
void Tensorizer::call_of(const Description &d, const std::string &loop) {
  run("tensorize", {}, {name(loop), b_.global(d.f->name)});
  State &s = script_.state();
  auto check = [&](const Expr *e, const Def &param, const Known &known) {
    auto *l = as<Load>(e);
    const Type *have = l && !l->global ? s.type_of_buffer(l->buffer) : nullptr;
    if (!have || param.type->scope) return;
    Exprs far = strides_of(b_, have), want = strides_of(b_, param.type);
    for (size_t i = 0, at = 0; i < l->index.size(); i++) {
      auto *r = as<Range>(l->index[i]);
      if (!r || at == want.size()) continue;
      const Expr *wanted = want[at++];
      if (wanted->kind != Kind::Name && !is_int(r->extent, 1) && !provably_equal(b_, far[i], wanted, known))
        refuse(kNowhere, "{} has gaps, @{} wants {} dense", s.text(l), text(d.f->name), text(param.name));
    }
  };
  for (Place *n : s.blocks())
    for (const Stmt *x : n->block()->body) {
      auto *c = as<CallStmt>(x);
      if (!c || c->call->callee != d.f->name) continue;
      Known known(s, n, true);
      for (size_t i = 0; i < c->call->args.size(); i++) check(c->call->args[i], d.f->params[i].def, known);
      for (size_t i = 0; i < c->dests.size(); i++) check(c->dests[i], d.f->results[i], known);
    }
}

}  // namespace mlc
