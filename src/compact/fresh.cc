// What a piece has surely written before it reads. That is a box: the loops around a store widen it, one by one.
//
//   for i in 6, j in 64 { t[i0 * 4 + i, j] = .. }       i0 * 4 +: 6, 0 +: 64
#include "arith/affine.h"
#include "arith/prove.h"
#include "arith/simplify.h"
#include "compact/side.h"

namespace mlc {

bool Trace::fresh(const Access &read) {
  for (const Write &w : writes_)
    if (same(w, read)) return true;
  // What is written where all is known, and what is wanted of each.
  struct Piece {
    Region have, want;
  };
  std::vector<Piece> pieces;
  for (Write &w : writes_) {
    if (!holds_now(w, read)) continue;
    if (!w.boxed) w.box = box(w), w.boxed = true;
    if (!w.box) continue;
    Piece p{*w.box, hull(b_, read, w.depth, known_)};
    bool inside = true;
    for (size_t d = 0; d < p.want.size(); d++) {
      if (!p.want[d].lo) p.want[d] = {b_.integer(0), type_->dims[d]};
      if (!p.have[d].lo) p.have[d] = {b_.integer(0), type_->dims[d]};
      inside = inside && starts(p.have[d], p.want[d].lo) && ends(p.have[d], end(p.want[d]));
    }
    if (inside) return true;
    pieces.push_back(p);
  }
  // Two that lie side by side: t[0 +: 2, :] and t[2 +: 18, :].
  for (size_t d = 0; pieces.size() > 1 && d < type_->rank(); d++) {
    const Expr *done = nullptr;
    std::vector<bool> used(pieces.size());
    for (size_t turn = 0; turn < pieces.size(); turn++)
      for (size_t i = 0; i < pieces.size(); i++) {
        const Piece &p = pieces[i];
        bool joins = !used[i] && starts(p.have[d], done ? done : p.want[d].lo);
        for (size_t o = 0; joins && o < p.want.size(); o++)
          joins = o == d || (starts(p.have[o], p.want[o].lo) && ends(p.have[o], end(p.want[o])));
        if (!joins) continue;
        used[i] = true, done = end(p.have[d]);
        if (ends(p.have[d], end(p.want[d]))) return true;
      }
  }
  return false;
}

const Expr *Trace::end(const Side &s) const { return sum(b_, s.lo, s.extent); }
bool Trace::starts(const Side &s, const Expr *at) const { return provably_less_equal(b_, s.lo, at, known_); }
bool Trace::ends(const Side &s, const Expr *at) const { return provably_less_equal(b_, at, end(s), known_); }

// A condition on loops that are still open, which the read stands in too: it holds there.
bool Trace::holds_now(const Write &w, const Access &read) {
  return std::all_of(w.access.conds.begin(), w.access.conds.end(), [&](const Cond &c) {
    if (closed(w, c)) return true;
    auto there = [&](const Cond &r) { return equal(c.holds, r.holds); };
    return std::any_of(read.conds.begin(), read.conds.end(), there) || prove(b_, c.holds, known_);
  });
}
// It is about loops that are closed: their extents have it, or `box` has.
bool Trace::closed(const Write &w, const Cond &c) const {
  return (c.loop != kNoLoop && c.loop >= w.depth) || mentions_any(c.holds, Iters(w.access.iters).subspan(w.depth));
}

// The read stands in loops like those of the write, under its conditions; what loops are called does not matter.
bool Trace::same(const Write &w, const Access &read) {
  if (read.iters.size() != w.access.iters.size()) return same_names(w, read);
  Substitution names;
  for (size_t i = w.depth; i < read.iters.size(); i++)
    if (Sym own = read.iters[i].name, other = w.access.iters[i].name; own != other) names[own] = b_.name(other);
  if (names.empty()) return same_names(w, read);
  Access renamed = read;
  auto rename = [&](const Expr *&e) { e = e ? simplify(b_, substitute(b_, e, names), known_) : e; };
  for (Side &s : renamed.at) rename(s.lo), rename(s.extent);
  for (Cond &c : renamed.conds) c.holds = substitute(b_, c.holds, names);
  for (size_t i = w.depth; i < read.iters.size(); i++)
    renamed.iters[i].name = w.access.iters[i].name, rename(renamed.iters[i].extent);
  return same_names(w, read) || same_names(w, renamed);
}

bool Trace::same_names(const Write &w, const Access &read) {
  auto equal_or_null = [](const Expr *x, const Expr *y) { return x == y || (x && y && equal(x, y)); };
  for (size_t d = 0; d < read.at.size(); d++)
    if (!equal_or_null(w.access.at[d].lo, read.at[d].lo) || !equal_or_null(w.access.at[d].extent, read.at[d].extent))
      return false;
  if (!holds_now(w, read)) return false;
  for (const Cond &c : w.access.conds) {
    bool limit = c.loop != kNoLoop && c.loop >= w.depth;
    auto there = [&](const Cond &r) { return equal(c.holds, r.holds); };
    if (!limit && closed(w, c) && std::none_of(read.conds.begin(), read.conds.end(), there)) return false;
  }
  for (size_t i = w.depth; i < w.access.iters.size(); i++) {
    const Iter &it = w.access.iters[i];
    bool used = false;
    for (const Side &s : w.access.at) used |= s.lo && (mentions(s.lo, it.name) || mentions(s.extent, it.name));
    for (const Cond &c : w.access.conds) used |= mentions(c.holds, it.name);
    if (!used) {
      if (!provably_less(b_, b_.integer(0), it.extent, known_)) return false;
      continue;
    }
    bool found = false;
    for (size_t k = w.depth; k < read.iters.size(); k++)
      found |= read.iters[k].name == it.name && equal(read.iters[k].extent, it.extent);
    if (!found) return false;
  }
  return true;
}

// ---- boxes

std::optional<Region> Trace::box(const Write &w) {
  // Conditions are extents of loops that are closed, or say how far a side goes; any other may not hold.
  std::vector<std::pair<size_t, Side>> limited;
  Iters iters = Iters(w.access.iters).subspan(w.depth);
  for (const Cond &c : w.access.conds) {
    if ((c.loop != kNoLoop && c.loop >= w.depth) || !closed(w, c)) continue;
    bool used = false;
    for (size_t d = 0; d < w.access.at.size() && !used; d++) {
      const Side &s = w.access.at[d];
      if (!s.lo || !is_int(s.extent, 1) || !mentions_any(s.lo, iters)) continue;
      Side limit = limits(b_, s.lo, c.holds, known_);
      const Expr *e = limit.lo ? limit.lo : limit.extent;
      used = e && !mentions_any(e, iters);
      if (used) limited.push_back({d, limit});
    }
    if (!used) return std::nullopt;
  }
  // A loop that no side counts by must have a turn.
  for (const Iter &i : iters) {
    bool used = std::any_of(w.access.at.begin(), w.access.at.end(), [&](const Side &s) {
      return s.lo && (mentions(s.lo, i.name) || mentions(s.extent, i.name));
    });
    if (!used && !provably_less(b_, b_.integer(0), i.extent, known_)) return std::nullopt;
  }
  size_t mark = known_.mark();
  for (const Iter &i : iters) known_.range(i.name, i.extent);
  std::optional<Region> r = widened(w.access, w.depth);
  known_.pop(mark);
  if (!r) r = inverted(w.access, w.depth);
  for (auto &[d, limit] : limited)
    if (r) (*r)[d] = within(b_, (*r)[d], limit, known_);
  return r;
}

// One loop after the other, from the innermost: where it moves one side by no more than what is written at each turn.
std::optional<Region> Trace::widened(const Access &w, size_t depth) {
  Region r = w.at;
  const Expr *one = b_.integer(1), *zero = b_.integer(0);
  for (size_t k = w.iters.size(); k-- > depth;) {
    Sym v = w.iters[k].name;
    const Expr *n = w.iters[k].extent, *last = minus(b_, n, one);
    Side *moves = nullptr;
    for (Side &s : r) {
      if (!s.lo || (!mentions(s.lo, v) && !mentions(s.extent, v))) continue;
      if (moves) return std::nullopt;
      moves = &s;
    }
    bool some = provably_less_equal(b_, one, n, known_);
    if (!moves) {
      if (!some) return std::nullopt;
      continue;
    }
    auto a = affine(b_, moves->lo, b_.one(v), known_);
    if (!a || !provably_less_equal(b_, one, a->coefs[0], known_)) return std::nullopt;
    const Expr *c = a->coefs[0];
    auto at = [&](const Expr *e, const Expr *turn) { return substitute(b_, e, {{v, turn}}); };
    if (!mentions(moves->extent, v) && provably_equal(b_, c, moves->extent, known_)) {
      *moves = {simplify(b_, a->rest, known_), simplify(b_, fold(b_, Op::Mul, c, n), known_)};
      continue;
    }
    // The next turn begins no later than this one ends.
    if (!some) return std::nullopt;
    size_t mark = known_.mark();
    known_.assume(b_.binary(Op::Lt, b_.name(v), last));
    const Expr *next = at(moves->lo, b_.binary(Op::Add, b_.name(v), one));
    bool joined = provably_less_equal(b_, next, sum(b_, moves->lo, moves->extent), known_);
    known_.pop(mark);
    if (!joined) return std::nullopt;
    const Expr *lo = at(moves->lo, zero), *end = at(sum(b_, moves->lo, moves->extent), last);
    *moves = {simplify(b_, lo, known_), simplify(b_, minus(b_, end, lo), known_)};
  }
  return r;
}

// All loops at once: t[f // 8, f % 8] is written whole.
std::optional<Region> Trace::inverted(const Access &w, size_t depth) {
  Iters all = Iters(w.iters).subspan(depth);
  std::vector<const Expr *> vars, extents, moving;
  std::vector<Sym> names;
  Region r = w.at;
  for (const Iter &i : all) {
    bool used = false;
    if (mentions_any(i.extent, all)) return std::nullopt;
    for (const Side &s : w.at) used |= s.lo && mentions(s.lo, i.name);
    if (used) vars.push_back(b_.name(i.name)), extents.push_back(i.extent);
    else if (!provably_less(b_, b_.integer(0), i.extent, known_)) return std::nullopt;
  }
  std::vector<size_t> dims;
  size_t mark = known_.mark();
  for (const Iter &i : all) known_.range(i.name, i.extent);
  for (size_t d = 0; d < r.size(); d++) {
    if (!r[d].lo || !mentions_any(r[d].lo, all)) continue;
    if (!is_int(r[d].extent, 1)) return known_.pop(mark), std::nullopt;
    const Expr *still = b_.integer(0), *part = b_.integer(0);
    split(b_, simplify(b_, r[d].lo, known_), false, all, still, part);
    r[d].lo = still, moving.push_back(part), dims.push_back(d);
    names.push_back(b_.sym("side " + std::to_string(d)));
  }
  known_.pop(mark);
  const Map *map = b_.map(b_.make_list(b_.list(vars)), b_.make_list(b_.list(moving)));
  auto back = inverse(b_, *map, b_.list(extents), names, known_);
  if (!back || !back->onto) return std::nullopt;
  for (size_t i = 0; i < dims.size(); i++) r[dims[i]].extent = back->image[i];
  return r;
}

}  // namespace mlc
