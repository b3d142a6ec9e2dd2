// cooperative_fetch and pipeline: copies shared out among threads, and begun before they are needed.
#include <algorithm>

#include "arith/prove.h"
#include "arith/simplify.h"
#include "ops/expr.h"
#include "sched/copy.h"
#include "sched/macro.h"
#include "sched/nest.h"
#include "sched/primitives.h"

namespace mlc {

// for i in 64                   for r in 2
// for k in 8 {                  for ty in 8 bind threadIdx.y
//   block a.shared { .. }  ->   for tx in 8 bind threadIdx.x
//                               for v in 4 vectorize { block a.shared { .. } }
void cooperative_fetch(State &s, Args &a) {
  Place *n = a.block(0);
  size_t tags = a.count() - 2;
  a.expect_results(tags + 2, tags + 2);
  std::string block = s.text(n->block()->name);
  if (n->nest) refuse(n, "block {} holds blocks", block);
  int64_t lanes = a.integer(a.count() - 1);
  if (lanes < 1) bad_step(a.at(a.count() - 1), "expected 1 lane or more, found {}", lanes);
  for (const Axis &x : n->block()->axes)
    if (x.kind != AxisKind::Spatial)
      refuse(n, "block {} is no copy: threads would add to the same elements at its axis {}", block, s.text(x.name));
  // Its own loops hold it alone and are not marked.
  std::vector<Place *> own;
  for (Place *u = n->up; u && u->loop() && u->kids[0].size() == 1 && u->loop()->loop == LoopKind::Serial; u = u->up)
    own.insert(own.begin(), u);
  if (own.empty())
    throw Refused{n->stmt->at, fmt::format("block {} has no loops of its own to share out", block),
                  fmt::format("compute_at({}, ..) gives it the loops over what a turn needs", block)};
  std::vector<const Expr *> factors = {s.b.name("_")};
  for (size_t i = 1; i <= tags; i++) {
    Sym tag = a.word(i);
    Place *bound = nullptr;
    for (Place *u = own[0]->up; u && !bound; u = u->up)
      if (u->loop() && u->loop()->loop == LoopKind::Bind && u->loop()->tag == tag) bound = u;
    if (!bound)
      throw Refused{n->stmt->at, fmt::format("no loop around block {} is bound to {}", block, s.text(tag)),
                    fmt::format("bind a loop to {} first", s.text(tag))};
    factors.push_back(bound->loop()->iter.extent);
  }
  factors.push_back(s.b.integer(lanes));
  Macro m(s, a);
  Place *whole = own[0];
  if (own.size() > 1) {
    std::vector<const Expr *> loops;
    for (Place *l : own)
      loops.push_back(m(l));
    whole = m.run("fuse", loops, {"fetch"})[0];
  }
  std::vector<std::string> names = {a.result(0, "r")};
  for (size_t i = 1; i <= tags; i++) {
    std::string tag = s.text(a.word(i));
    names.push_back(a.result(i, "t" + tag.substr(tag.find('.') == std::string::npos ? 0 : tag.find('.') + 1)));
  }
  names.push_back(a.result(tags + 1, "v"));
  std::vector<Place *> made = m.run("split", {m(whole), s.b.make_list(s.b.list(factors))}, names);
  if (lanes > 1) m.run("vectorize", {m(made.back())});
  for (size_t i = 1; i <= tags; i++)
    m.run("bind", {m(made[i]), a.raw(i)});
  for (size_t i = 0; i < made.size(); i++)
    a.set_loop(i, made[i]);
}

namespace {

// Takes what `fetch` holds for some turns of a loop into a loop of its own in front of it, where its blocks have the
// part of their domain that belongs to these turns.
Place *take_turns(State &s, Place *loop, const std::vector<Place *> &fetch, X from, X turns, bool last) {
  const Iter &iter = loop->loop()->iter;
  Place *part = s.tree.make_loop({iter.name, simplify(s.b, turns.e, Known(s, loop)), kNowhere});
  for (Place *n : fetch)
    s.tree.append(part, n);
  s.tree.before(loop, part);
  s.substitute_below(part, {{iter.name, (X{s.b, s.b.name(iter.name)} + from).e}}, false);
  rebase(s, part, from, turns, last);
  s.simplify_below(part);
  return part;
}

}  // namespace

// for k in 8 {                      for k in 1 { block a.0 { a.s[k] = a[k] } }
//   block a { a.s[k] = a[k] }  ->   for k in 8 {
//   block c { .. a.s[k] .. }          block a { guard k + 1 < 8, a.s[k + 1] = a[k + 1] }
// }                                   block c { .. a.s[k] .. }
void pipeline(State &s, Args &a) {
  a.expect_results(0, 0);
  Build &b = s.b;
  Place *loop = a.loop(0);
  int64_t stages = a.integer(1);
  if (stages < 2) bad_step(a.at(1), "expected 2 stages or more, found {}", stages);
  const For &f = *loop->loop();
  if (f.loop != LoopKind::Serial)
    refuse(loop, "{} is {}: its turns do not follow each other", s.name_of(loop), kind_name(f));
  // What the loop fetches: the blocks at its front that only copy or compute from what it leaves alone.
  std::vector<Place *> fetch;
  std::vector<Sym> fetched;
  Place *first = nullptr;
  std::string why;
  for (Place *child : loop->kids[0]) {
    if (child->stmt->kind == Kind::Alloc)
      refuse(child, "{} is allocated in each turn of {}: what is fetched ahead outlives a turn",
             s.text(to<Alloc>(child->stmt).def.name), s.name_of(loop));
    std::vector<Sym> written = buffers_written(s, child);
    std::vector<Place *> blocks = leaf_blocks(child);
    auto stands_back = [&]() -> std::string {
      if (blocks.size() != leaves(child).size()) return fmt::format("{} is no block", s.name_of(child));
      for (Place *k : blocks) {
        for (const Axis &x : k->block()->axes)
          if (x.kind != AxisKind::Spatial && uses(x, f.iter.name))
            return fmt::format("{} reduces {}", s.name_of(loop), s.name_of(k));
        if (has_scan(*k->block())) return fmt::format("{} scans in order", s.name_of(k));
        for (Sym w : written)
          if (reads(s, k, w) && k->block()->inits.empty()) return fmt::format("{} changes {}", s.name_of(k), s.text(w));
      }
      for (Sym w : written)
        if (!s.alloc_of(w)) return fmt::format("{} is the caller's", s.text(w));
      for (Place *other : loop->kids[0]) {
        if (other == child) continue;
        for (Sym w : written)
          if (writes(s, other, w)) return fmt::format("{} is written by others in {}", s.text(w), s.name_of(loop));
        for (Sym r : buffers_read(s, child))
          if (writes(s, other, r) && std::find(fetched.begin(), fetched.end(), r) == fetched.end())
            return fmt::format("{} is made in the same turn", s.text(r));
      }
      return {};
    };
    why = stands_back();
    if (!why.empty()) {
      first = child;
      break;
    }
    fetch.push_back(child);
    fetched.insert(fetched.end(), written.begin(), written.end());
  }
  if (fetch.empty()) refuse(first, "{} begins with no block that could run turns ahead: {}", s.name_of(loop), why);
  if (!first) refuse(loop, "{} does nothing with what it fetches", s.name_of(loop));
  for (Sym w : fetched)  // what is done with it sees nothing of later turns: the elements of a turn are the same in all
    for (Place *x : leaves(s.tree.root()))
      if (!is_below(x, loop) && writes(s, x, w)) refuse(x, "{} writes {} too", s.name_of(x), s.text(w));

  X turns{b, f.iter.extent}, ahead = lit(b, stages - 1);
  Known known(s, loop);
  if (!provably_less(b, ahead.e, turns.e, known))
    refuse(loop, "{} is not known to take more than {}", s.name_of(loop), counted(stages - 1, "turn"));
  std::vector<Place *> early;
  for (Place *n : fetch) {
    early.push_back(s.tree.make(s.tree.stmt(n)));
    each_place(early.back(), [&](Place *x) {
      if (x->block()) s.tree.edit<Block>(x, [&](Block &k) { k.name = s.block_name(s.text(k.name) + ".ahead"); });
    });
  }
  Place *front = take_turns(s, loop, early, lit(b, int64_t{0}), ahead, false);
  if (stages == 2) {  // a loop of one turn
    for (Place *n : early) {
      s.tree.remove(n);
      s.tree.before(front, n);
    }
    s.tree.remove(front);
  }
  for (Place *n : fetch)
    s.tree.remove(n);
  Place *part = take_turns(s, loop, fetch, ahead, turns - ahead, true);
  X later = X{b, b.name(f.iter.name)} + ahead;
  for (size_t i = 0; i < fetch.size(); i++) {
    s.tree.remove(fetch[i]);
    s.tree.insert(loop, 0, i, fetch[i]);
  }
  s.tree.remove(part);
  for (Place *n : fetch)
    for (Place *k : leaf_blocks(n)) {
      Known here(s, k);
      if (k->block()->guard) here.bounds.assume(k->block()->guard);
      if (provably_less(b, later.e, turns.e, here)) continue;
      s.tree.edit<Block>(k, [&](Block &x) {
        const Expr *cond = (later < turns).e;
        x.guard = both(b, x.guard, cond);
      });
    }
  for (Sym w : fetched) {
    Type t = *s.type_of_buffer(w);
    std::vector<Attr> attrs;
    for (const Attr &x : t.attrs)
      if (b.text(x.key) != "stages") attrs.push_back(x);
    attrs.push_back({b.sym("stages"), kNowhere, b.integer(stages)});
    t.attrs = b.list(attrs);
    s.set_type(w, b.type(t));
  }
}

}  // namespace mlc
