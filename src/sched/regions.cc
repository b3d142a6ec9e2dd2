#include "sched/regions.h"

#include <algorithm>

#include "arith/prove.h"
#include "arith/simplify.h"
#include "ops/expr.h"

namespace mlc {

bool has_reduce(const Block &k) {
  return std::any_of(k.axes.begin(), k.axes.end(), [](const Axis &a) { return a.kind == AxisKind::Reduce; });
}
bool has_scan(const Block &k) {
  return std::any_of(k.axes.begin(), k.axes.end(), [](const Axis &a) { return a.kind == AxisKind::Scan; });
}
bool uses(const Axis &a, Sym loop) { return mentions(a.binding, loop); }
Substitution bindings(const Block &k) {
  Substitution out;
  for (const Axis &x : k.axes)
    out[x.name] = x.binding;
  return out;
}

namespace {

// Walks a body, with the iterators around each expression.
class Accesses {
 public:
  Accesses(State &s, const Block *k) : s_(s), b_(s.b), known_(s.b) {
    for (Sym d : s.original()->dims)
      known_.dim(d), plain_.insert(d);
    for (const Param &p : s.original()->params)
      if (!p.def.type->tensor) plain_.insert(p.def.name);
    if (k)
      for (const Axis &a : k->axes)
        known_.range(a.name, a.domain), plain_.insert(a.name);
  }

  void body(Stmts l) {
    for (const Stmt *s : l)
      stmt(s);
  }
  std::vector<Access> out;

 private:
  void stmt(const Stmt *s) {
    size_t depth = iters_.size();
    switch (s->kind) {
      case Kind::Store: {
        auto &st = to<Store>(s);
        add(*st.target, true);
        for (const Expr *e : st.target->index)
          expr(e);
        expr(st.value);
        return;
      }
      case Kind::Compute: {
        auto &c = to<Compute>(s);
        for (const Iter &i : c.results[0].iters)
          iters_.push_back(i);
        for (const Result &r : c.results) {
          std::vector<const Expr *> index;
          for (const Iter &i : r.iters)
            index.push_back(b_.name(i.name));
          add(*b_.load(r.name, b_.list(index), r.at), true);
        }
        expr(c.value);
        break;
      }
      case Kind::CallStmt: {
        auto &c = to<CallStmt>(s);
        for (const Expr *e : c.call->args)
          expr(e, true);
        for (const Expr *e : c.dests) {
          if (auto *l = as<Load>(e)) add(*l, true);
          if (auto *n = as<Name>(e)) whole(n->name, n->at, true);
        }
        return;
      }
      case Kind::For: iters_.push_back(to<For>(s).iter); break;
      case Kind::Let: expr(to<Let>(s).value); return;
      case Kind::If: expr(to<If>(s).cond); break;
      case Kind::While: expr(to<While>(s).cond); break;
      case Kind::Assume: expr(to<Assume>(s).cond); return;
      case Kind::View: expr(to<View>(s).source); return;
      case Kind::Block:
        for (const Axis &a : to<Block>(s).axes)
          iters_.push_back({a.name, a.domain, kNowhere});
        break;
      default: break;
    }
    each_body(s, [&](Stmts l) { body(l); });
    iters_.resize(depth);
  }

  void expr(const Expr *e, bool argument = false) {
    if (auto *l = as<Load>(e)) {
      if (!l->global) add(*l, false);
      for (const Expr *i : l->index)
        expr(i);
      return;
    }
    if (auto *n = as<Name>(e)) {
      if (argument && s_.type_of_buffer(n->name) && s_.type_of_buffer(n->name)->tensor) whole(n->name, n->at, false);
      return;
    }
    size_t depth = iters_.size();
    if (auto *c = as<Call>(e))
      for (const Iter &i : c->iters)
        iters_.push_back(i);
    each_child(e, [&](const Expr *x) { expr(x, argument); });
    iters_.resize(depth);
  }

  void whole(Sym buffer, uint32_t at, bool write) {
    const Type *t = s_.type_of_buffer(buffer);
    std::vector<const Expr *> index(t ? t->rank() : 0, b_.all());
    out.push_back({buffer, b_.list(index), at, write});
  }

  void add(const Load &l, bool write) {
    std::vector<const Expr *> index;
    for (const Expr *e : l.index)
      index.push_back(outside(e));
    out.push_back({l.buffer, b_.list(index), l.at, write});
  }

  // A subscript in names that are known outside of the body.
  const Expr *outside(const Expr *e) {
    const Expr *lo = e, *extent = nullptr;
    if (e->kind == Kind::All) return e;
    if (auto *r = as<Range>(e)) lo = r->lo, extent = r->extent;
    for (size_t i = iters_.size(); i-- > 0;) {
      if (extent && mentions(extent, iters_[i].name)) return b_.all();
      if (!mentions(lo, iters_[i].name)) continue;
      size_t mark = known_.mark();
      for (size_t j = 0; j <= i; j++)
        known_.range(iters_[j].name, iters_[j].extent);
      auto span = span_of(b_, lo, b_.one(iters_[i]), known_);
      known_.pop(mark);
      if (!span) return b_.all();
      lo = span->lo;
      extent = extent ? (X{b_, span->extent} + X{b_, extent} - 1).e : span->extent;
    }
    std::unordered_set<Sym> names;
    collect_names(lo, names);
    if (extent) collect_names(extent, names);
    for (Sym n : names)
      if (!plain_.count(n)) return b_.all();  // data, or a scalar of the body
    if (extent && is_int(extent, 1) && e->kind != Kind::Range) extent = nullptr;
    return extent ? static_cast<const Expr *>(b_.range(lo, extent)) : lo;
  }

  State &s_;
  Build &b_;
  Bounds known_;
  std::unordered_set<Sym> plain_;
  std::vector<Iter> iters_;
};

}  // namespace

std::vector<Access> accesses(State &s, Place *n) {
  auto &k = *n->block();
  Accesses a(s, &k);
  a.body(k.inits);
  a.body(k.body);
  auto declared = [&](std::span<const Load *const> l, bool write) {
    if (l.empty()) return;
    std::erase_if(a.out, [&](const Access &x) { return x.write == write; });
    for (const Load *x : l)
      a.out.push_back({x->buffer, x->index, x->at, write});
  };
  declared(k.reads, false), declared(k.writes, true);
  std::erase_if(a.out, [&](const Access &x) {  // what the body defines itself
    return !s.type_of_buffer(x.buffer);
  });
  return a.out;
}

std::vector<Place *> leaf_blocks(Place *n) {
  std::vector<Place *> out;
  each_place(n, [&](Place *x) {
    if (x->block() && !x->nest) out.push_back(x);
  });
  return out;
}

std::vector<Place *> leaves(Place *n) {
  std::vector<Place *> out;
  each_place(n, [&](Place *x) {
    if (x->stmt && !x->holds() && x->stmt->kind != Kind::Alloc) out.push_back(x);
  });
  return out;
}

std::vector<Access> accesses_below(State &s, Place *n) {
  std::vector<Access> out;
  for (Place *x : leaves(n)) {
    std::vector<Access> more;
    if (x->block()) {
      more = accesses(s, x);
    } else {
      Accesses a(s, nullptr);
      a.body(s.b.stmts({x->stmt}));
      more = a.out;
    }
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

static std::vector<Sym> buffers(State &s, Place *n, bool write) {
  std::vector<Sym> out;
  for (const Access &a : accesses_below(s, n))
    if (a.write == write && std::find(out.begin(), out.end(), a.buffer) == out.end()) out.push_back(a.buffer);
  return out;
}
std::vector<Sym> buffers_read(State &s, Place *n) { return buffers(s, n, false); }
std::vector<Sym> buffers_written(State &s, Place *n) { return buffers(s, n, true); }
bool reads(State &s, Place *n, Sym buffer) {
  auto l = buffers_read(s, n);
  return std::find(l.begin(), l.end(), buffer) != l.end();
}
bool writes(State &s, Place *n, Sym buffer) {
  auto l = buffers_written(s, n);
  return std::find(l.begin(), l.end(), buffer) != l.end();
}

// ---- regions

Region region(State &s, Place *block, const Access &a, Place *scope) {
  Build &b = s.b;
  const Type *t = s.type_of_buffer(a.buffer);
  Region out;
  for (size_t d = 0; d < a.index.size(); d++) {
    const Expr *lo = a.index[d], *extent = b.integer(1);
    bool known_place = lo->kind != Kind::All, exact = true, dense = true;
    if (auto *r = as<Range>(lo)) lo = r->lo, extent = r->extent;
    for (Place *n = block; known_place && n; n = n->up) {
      if (n->block()) {
        Substitution names = bindings(*n->block());
        lo = substitute(b, lo, names), extent = substitute(b, extent, names);
      }
      if (n == scope || !n->stmt) break;
      Place *up = n->up;
      if (!up || up == scope || !up->loop()) continue;
      Known known(s, up, true);
      Sym v = up->loop()->iter.name;
      if (mentions(lo, v)) lo = simplify(b, lo, known);  // (j0 * 8 + j1) // 8 is j0
      if (mentions(extent, v)) {
        known_place = false;
      } else if (mentions(lo, v)) {
        auto span = span_of(b, lo, b.one(up->loop()->iter), known);
        if (!span) {
          known_place = false;
          break;
        }
        auto step = affine(b, lo, b.one(v), known);
        dense &= step && provably_less_equal(b, b.integer(1), step->coefs[0], known) &&
                 provably_less_equal(b, step->coefs[0], extent, known);
        lo = span->lo, exact &= span->exact;
        extent = (X{b, span->extent} + X{b, extent} - 1).e;
        if (mentions(extent, v) || mentions(lo, v)) known_place = false;
      }
    }
    if (known_place) {
      Known known(s, scope ? scope : s.tree.root(), scope && scope->stmt);
      out.push_back({simplify(b, lo, known), simplify(b, extent, known), exact, dense});
    } else {
      out.push_back({b.integer(0), t && d < t->rank() ? t->dims[d] : b.integer(1), false, lo->kind == Kind::All});
    }
  }
  return out;
}

Region hull(State &s, const Region &a, const Region &c, const Bounds &known) {
  Build &b = s.b;
  Region out;
  for (size_t d = 0; d < a.size(); d++) {
    X al{b, a[d].lo}, cl{b, c[d].lo}, ae{b, a[d].extent}, ce{b, c[d].extent};
    bool a_first = provably_less_equal(b, al.e, cl.e, known), c_first = provably_less_equal(b, cl.e, al.e, known);
    X lo = a_first ? al : c_first ? cl : min(al, cl);
    X a_end = al + ae, c_end = cl + ce;
    bool a_last = provably_less_equal(b, c_end.e, a_end.e, known),
         c_last = provably_less_equal(b, a_end.e, c_end.e, known);
    X end = a_last ? a_end : c_last ? c_end : max(a_end, c_end);
    out.push_back({simplify(b, lo.e, known), simplify(b, (end - lo).e, known),
                   a[d].exact && c[d].exact && (a_first || c_first) && (a_last || c_last),
                   a[d].dense && c[d].dense && equal(a[d].lo, c[d].lo) && equal(a[d].extent, c[d].extent)});
  }
  return out;
}

bool within(State &s, const Region &inner, const Region &outer, const Bounds &known) {
  for (size_t d = 0; d < inner.size(); d++) {
    X lo{s.b, inner[d].lo}, end = lo + X{s.b, inner[d].extent}, from{s.b, outer[d].lo};
    if (!outer[d].dense || !provably_less_equal(s.b, from.e, lo.e, known) ||
        !provably_less_equal(s.b, end.e, (from + X{s.b, outer[d].extent}).e, known))
      return false;
  }
  return true;
}

// ---- dataflow

std::vector<Place *> producers(State &s, Place *block) {
  std::vector<Sym> read = buffers_read(s, block);
  std::vector<Place *> out;
  for (Place *n : leaves(s.tree.root())) {
    if (n == block || is_below(n, block)) break;
    for (Sym w : buffers_written(s, n))
      if (std::find(read.begin(), read.end(), w) != read.end()) {
        out.push_back(n);
        break;
      }
  }
  return out;
}

std::vector<Place *> consumers(State &s, Place *block) {
  std::vector<Sym> written = buffers_written(s, block);
  std::vector<Place *> out;
  bool seen = false;
  for (Place *n : leaves(s.tree.root())) {
    if (n == block || is_below(n, block)) {
      seen = true;
      continue;
    }
    if (!seen) continue;
    for (Sym r : buffers_read(s, n))
      if (std::find(written.begin(), written.end(), r) != written.end()) {
        out.push_back(n);
        break;
      }
  }
  return out;
}

}  // namespace mlc
