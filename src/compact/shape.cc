#include "compact/shape.h"

#include <bit>

#include "arith/affine.h"
#include "arith/prove.h"
#include "arith/scope.h"
#include "arith/simplify.h"
#include "compact/side.h"
#include "ir/edit.h"

namespace mlc {

namespace {

class Shaper {
 public:
  Shaper(Build &b, const Type *type, const Trace &uses, Iters below, Bounds &known)
      : b_(b), type_(type), uses_(uses), below_(below), known_(known) {}

  Shape run(const std::vector<int64_t> &rings) {
    size_t rank = type_->rank();
    Shape s{nullptr, std::vector<const Expr *>(rank), std::vector<bool>(rank), std::vector<int64_t>(rank)};
    std::vector<Region> regions = hulls();
    if (regions.empty() || !plain()) return s;
    std::vector<const Expr *> dims(type_->dims.begin(), type_->dims.end());
    bool shrinks = false;
    for (size_t d = 0; d < dims.size(); d++) {
      Side side = joined(regions, d);
      if (side.lo && smaller(side.extent, dims[d])) {
        s.lo[d] = side.lo, dims[d] = side.extent, shrinks = true;
        s.gone[d] = is_int(side.extent, 1) && indexed(d);
      }
      if (const Expr *ring = b_.integer(rings[d]); rings[d] && smaller(ring, dims[d]))
        s.rings[d] = rings[d], s.lo[d] = nullptr, s.gone[d] = rings[d] == 1, dims[d] = ring, shrinks = true;
    }
    if (!shrinks) return s;
    s.type = type(dims, s.gone);
    return s;
  }

  std::vector<Region> hulls() {
    std::vector<Region> regions;
    for (const Access &a : uses_.accesses)
      if (!a.whole) regions.push_back(hull(b_, a, 0, known_));  // else all that there is, however large
    return regions;
  }

  // Every access has an index there, so that the dimension can go.
  bool indexed(size_t d) const {
    for (const Access &a : uses_.accesses)
      if (!a.whole && a.ranged[d]) return false;
    return true;
  }

  // The least side that holds all; {null, null}: the whole dimension.
  Side joined(const std::vector<Region> &regions, size_t d) {
    const Expr *lo = nullptr, *end = nullptr, *zero = b_.integer(0);
    for (const Region &r : regions) {
      Side s = r[d];
      if (!s.lo || !uses_.outside(s.lo) || !uses_.outside(s.extent)) return {};
      const Expr *to = simplify(b_, fold(b_, Op::Add, s.lo, s.extent), known_);
      if (!provably_less_equal(b_, zero, s.lo, known_)) s.lo = simplify(b_, b_.call("max", {s.lo, zero}), known_);
      if (!lo) {
        lo = s.lo, end = to;
        continue;
      }
      if (provably_less_equal(b_, s.lo, lo, known_)) lo = s.lo;
      else if (!provably_less_equal(b_, lo, s.lo, known_)) return {};
      if (provably_less_equal(b_, end, to, known_)) end = to;
      else if (!provably_less_equal(b_, to, end, known_)) end = simplify(b_, b_.call("max", {end, to}), known_);
    }
    const Expr *extent = upper(simplify(b_, b_.binary(Op::Sub, end, lo), known_));
    return extent ? Side{lo, extent} : Side{};
  }

 private:
  // Attributes that say how the old shape lies in memory are not those of another one.
  bool plain() const {
    return !attr(b_, type_->attrs, "layout") && !attr(b_, type_->attrs, "box");
  }

  bool below(const Expr *e) const {
    for (const Iter &i : below_)
      if (mentions(e, i.name)) return true;
    return false;
  }

  // A constant that is never less, else an expression that the line of the buffer can say and a person reads.
  const Expr *upper(const Expr *e) {
    if (e->kind == Kind::Int) return e;
    Interval i = interval(e, known_);
    if (i.hi != Interval::kMax && i.hi >= 0) return b_.integer(i.hi);
    auto span = span_of(b_, e, below_, known_);
    if (!span) return nullptr;
    const Expr *most = fold(b_, Op::Sub, fold(b_, Op::Add, span->lo, span->extent), b_.integer(1));
    most = simplify(b_, most, known_);
    bool plain = !below(most) && provably_less_equal(b_, b_.integer(0), most, known_);
    each_expr(most, [&](const Expr *x) {
      auto *c = as<Binary>(x);
      return plain &= x->kind != Kind::Call && !(c && c->op == Op::Mod);
    });
    return plain ? most : nullptr;
  }

  bool smaller(const Expr *extent, const Expr *dim) {
    int64_t n, old;
    if (int_value(extent, &n)) return int_value(dim, &old) ? n < old : !provably_less_equal(b_, dim, extent, known_);
    return provably_less_equal(b_, extent, dim, known_) && !provably_less_equal(b_, dim, extent, known_);
  }

  // Paddings between rows stay as wide as they were, or make rows lie as `modulo` = [dimension, factor, offset, ..] says.
  const Type *type(const std::vector<const Expr *> &dims, const std::vector<bool> &gone) {
    Type t = *type_;
    auto left = [&](auto &all) {
      std::vector<const Expr *> kept;
      for (size_t d = 0; d < dims.size(); d++)
        if (!gone[d]) kept.push_back(all[d]);
      return b_.list(kept);
    };
    t.dims = left(dims);
    std::vector<Attr> attrs;
    auto *modulo = as<List>(attr(b_, t.attrs, "modulo"));
    for (Attr a : t.attrs) {
      if (b_.text(a.key) == "modulo") continue;
      if (b_.text(a.key) == "strides") {
        Exprs old = to<List>(a.value).items;
        std::vector<const Expr *> strides(dims.size());
        for (size_t d = dims.size(); d-- > 0;) {
          if (d + 1 == dims.size()) {
            strides[d] = old[d];
            continue;
          }
          const Expr *was = fold(b_, Op::Mul, old[d + 1], type_->dims[d + 1]);
          const Expr *is = fold(b_, Op::Mul, strides[d + 1], dims[d + 1]);
          const Expr *pad = fold(b_, Op::Sub, old[d], was);
          for (size_t i = 0; modulo && i + 2 < modulo->items.size(); i += 3)
            if (is_int(modulo->items[i], int64_t(d)))
              pad = fold(b_, Op::Mod, fold(b_, Op::Sub, modulo->items[i + 2], is), modulo->items[i + 1]);
          strides[d] = simplify(b_, fold(b_, Op::Add, is, pad), known_);
        }
        a.value = b_.make_list(left(strides));
      }
      attrs.push_back(a);
    }
    t.attrs = b_.list(attrs);
    return b_.type(t);
  }

  Build &b_;
  const Type *type_;
  const Trace &uses_;
  Iters below_;
  Bounds &known_;
};

class Relative {
 public:
  Relative(Build &b, Sym buffer, const Shape &shape, Bounds &known)
      : b_(b), buffer_(buffer), shape_(shape), known_(known) {}

  Stmts list(Stmts in) {
    Out out;
    size_t mark = known_.mark();
    for (const Stmt *s : in) {
      out.push_back(touches(s, buffer_) ? stmt(s) : s);
      after(known_, s);
    }
    known_.pop(mark);
    return b_.list(out);
  }

 private:
  const Stmt *stmt(const Stmt *s) {
    std::vector<Stmts> bodies;
    const Stmt *bare = with_bodies(b_, s, [&](Stmts l) { return bodies.push_back(l), Stmts(); });
    size_t mark = known_.mark();
    if (auto *c = as<Compute>(s)) enter(known_, c->results[0].iters);
    bare = rewrite_exprs(b_, bare, [&](const Expr *e) { return expr(e); });
    known_.pop(mark);
    size_t which = 0;
    return with_bodies(b_, bare, [&](Stmts) {
      size_t m = known_.mark();
      enter(known_, s, which);
      Stmts l = list(bodies[which++]);
      known_.pop(m);
      return l;
    });
  }

  const Expr *expr(const Expr *e) {
    auto *l = as<Load>(e);
    if (!l || l->global || l->buffer != buffer_) return e;
    std::vector<const Expr *> index;
    for (size_t d = 0; d < l->index.size(); d++) {
      if (shape_.gone[d]) continue;
      const Expr *i = l->index[d];
      auto *r = as<Range>(i);
      auto moved = [&](const Expr *x) { return simplify(b_, b_.binary(Op::Sub, x, shape_.lo[d]), known_); };
      if (shape_.lo[d]) i = r ? b_.range(moved(r->lo), r->extent, r->at) : moved(i);
      r = as<Range>(i);
      if (shape_.rings[d]) i = simplify(b_, b_.binary(Op::Mod, i, b_.integer(shape_.rings[d])), known_);
      const Expr *dim = shape_.type->dims[index.size()];
      if (r && is_int(r->lo, 0) && equal(r->extent, dim)) i = b_.all();
      index.push_back(i);
    }
    return b_.load(l->buffer, b_.list(index), l->at);
  }

  Build &b_;
  Sym buffer_;
  const Shape &shape_;
  Bounds &known_;
};

}  // namespace

std::vector<int64_t> rings(Build &b, const Module &m, Sym buffer, const Type *type, Stmts piece,
                           const std::vector<const For *> &at_once, Bounds &known) {
  std::vector<int64_t> found(type->rank());
  size_t last = piece.size();
  while (last && !touches(piece[last - 1], buffer)) last--;
  const For *loop = last ? as<For>(piece[last - 1]) : nullptr;
  if (!loop || loop->loop != LoopKind::Serial) return found;

  auto trace = [&](Trace &t, Stmts l) {
    for (const For *f : at_once) t.around(*f);
    t.piece(l);
    return !t.aliased && std::none_of(t.accesses.begin(), t.accesses.end(), [](const Access &a) { return a.whole; });
  };
  Stmts before = piece.first(last - 1);
  Trace front(b, m, known, buffer, type), turn(b, m, known, buffer, type);
  if (!trace(front, before)) return found;
  std::unordered_set<Sym> lanes;
  each_stmt(loop->body, [&](const Stmt *s) {
    if (auto *f = as<For>(s); f && f->loop == LoopKind::Vectorize) lanes.insert(f->iter.name);
  });
  auto in_lanes = [&](const Access &a, size_t d) {
    return std::any_of(lanes.begin(), lanes.end(), [&](Sym v) { return a.at[d].lo && mentions(a.at[d].lo, v); });
  };

  std::vector<Side> windows(type->rank(), Side{nullptr, nullptr});
  size_t mark = known.mark();
  for (const Stmt *s : before) after(known, s);
  enter(known, loop, 0);
  if (trace(turn, loop->body)) {
    Shaper shaper(b, type, turn, {}, known);
    std::vector<Region> regions = shaper.hulls();
    const Expr *next = b.binary(Op::Add, b.name(loop->iter.name), b.integer(1));
    for (size_t d = 0; d < windows.size() && !regions.empty(); d++) {
      bool vector = std::any_of(turn.accesses.begin(), turn.accesses.end(), [&](auto &a) { return in_lanes(a, d); });
      Side s = vector || !shaper.indexed(d) ? Side{nullptr, nullptr} : shaper.joined(regions, d);
      if (!s.lo || s.extent->kind != Kind::Int || !mentions(s.lo, loop->iter.name)) continue;
      if (provably_less_equal(b, s.lo, substitute(b, s.lo, {{loop->iter.name, next}}), known)) windows[d] = s;
    }
  }
  known.pop(mark);

  Shaper shaper(b, type, front, {}, known);
  std::vector<Region> regions = shaper.hulls();
  for (size_t d = 0; d < windows.size(); d++) {
    int64_t n, most = INT64_MAX;
    if (!windows[d].lo || !int_value(windows[d].extent, &n) || !shaper.indexed(d)) continue;
    // As many as there are stages; else a number that is easily divided by.
    int_value(type->dims[d], &most);
    int64_t wide = int64_t(std::bit_ceil(uint64_t(std::min(n, int64_t(1) << 40))));
    if (!attr(b, type->attrs, "stages") && wide >= n && wide < most) n = wide;
    const Expr *lo = simplify(b, substitute(b, windows[d].lo, {{loop->iter.name, b.integer(0)}}), known);
    const Expr *end = fold(b, Op::Add, lo, b.integer(n));
    bool held = true;
    for (const Region &r : regions)
      held &= r[d].lo && provably_less_equal(b, lo, r[d].lo, known) &&
              provably_less_equal(b, fold(b, Op::Add, r[d].lo, r[d].extent), end, known);
    if (held) found[d] = n;
  }
  return found;
}

Shape shrunk(Build &b, const Type *type, const Trace &uses, Iters below, const std::vector<int64_t> &rings,
             Bounds &known) {
  return Shaper(b, type, uses, below, known).run(rings);
}

Stmts relative(Build &b, Stmts body, Sym buffer, const Shape &shape, Bounds &known) {
  return Relative(b, buffer, shape, known).list(body);
}

}  // namespace mlc
