// pack_einsum: a sum of products as a product of matrices, whatever its operands were.
#include <algorithm>

#include "arith/affine.h"
#include "arith/prove.h"
#include "arith/simplify.h"
#include "ir/typing.h"
#include "ops/expr.h"
#include "sched/combine.h"
#include "sched/copy.h"
#include "sched/nest.h"
#include "sched/primitives.h"

namespace mlc {

namespace {

// Axes that become one, the last the fastest: [i, k, l] in n, 8, 8  ->  i_k_l in n * 64, padded to a multiple.
struct Group {
  std::vector<const Axis *> axes;
  Sym name;
  AxisKind kind;
  const Expr *size, *padded;
  bool is_padded;
  bool alone() const { return axes.size() == 1; }
};

class Packer {
 public:
  Packer(State &s, Args &a) : s_(s), b_(s.b), a_(a), n_(a.block(0)), k_(*n_->block()), env_(s.b, s.m, s.original()) {
    each_place(s.tree.root(), [&](Place *p) {
      if (auto *x = as<Alloc>(p->stmt)) env_.define(x->def.name, x->def.type);
    });
    for (const Axis &x : k_.axes) env_.define_index(x.name);
  }

  void run() {
    read_groups();
    std::string block = name();
    store_ = k_.body.size() == 1 ? as<Store>(k_.body[0]) : nullptr;
    auto *sum = store_ ? as<Binary>(store_->value) : nullptr;
    reduces_ = has_reduce(k_);
    start_ = start_of(s_, n_);
    if (reduces_ && sum && (sum->op != Op::Add || !equal(sum->a, store_->target))) sum = nullptr;
    if (!store_ || k_.guard || store_->atomic || k_.inits.size() > 1 || (reduces_ && (!sum || (k_.inits.empty() && !start_))))
      refuse(n_, "block {} is no sum of products with an initialiser: y[..] = y[..] + a[..] * b[..]", block);
    if (!reduces_ && !k_.inits.empty()) refuse(n_, "block {} has an initialiser and reduces nothing", block);
    top_ = n_;
    while (top_->up->loop() && top_->up->kids[0].size() == 1) top_ = top_->up;
    for (const Axis &x : k_.axes)
      if (Place *l = loop_of(s_, n_, x, nullptr); !s_.tree.contains(top_, l))
        refuse(l, "{} holds more than block {}", s_.name_of(l), block);
    collect(reduces_ ? sum->b : store_->value, a_.attr_int("depth", INT64_MAX));
    expect_zeros();

    std::vector<const Group *> all;
    for (const Group &g : groups_) all.push_back(&g);
    digits_ = digits(all);
    for (Factor &f : factors_) pack(f);
    const Load *target = pack_target();
    Block now = k_;
    const Expr *value = repacked(reduces_ ? sum->b : store_->value);
    if (reduces_) value = b_.binary(Op::Add, target, value);
    now.body = b_.stmts({edited(b_, *store_, [&](Store &x) { x.target = target, x.value = value; })});
    if (!k_.inits.empty())
      now.inits = b_.stmts({edited(b_, to<Store>(k_.inits[0]), [&](Store &x) { x.target = target; })});
    now.reads = now.writes = {};
    std::vector<Iter> loops;
    std::vector<Axis> axes;
    for (const Group &g : groups_) {
      std::vector<Sym> taken;
      for (const Iter &l : loops) taken.push_back(l.name);
      std::string called = a_.result(loops.size(), s_.text(g.name));
      loops.push_back({s_.loop_name_inside(top_->up, called, taken), g.padded, kNowhere});
      axes.push_back({g.kind, g.name, kNowhere, g.padded, b_.name(loops.back().name)});
    }
    now.axes = b_.list(axes);
    auto [outer, inner] = s_.nest(loops, b_.make(now));
    if (start_ && target != store_->target) repack_start(target);
    s_.tree.replace(top_, outer);
    for (size_t i = 0; i < groups_.size(); i++) a_.set_loop(i, outer), outer = outer->kids[0][0];
  }

 private:
  struct Factor {
    const Expr *e;
    const Load *packed;
  };
  std::string name() const { return s_.text(k_.name); }

  void read_groups() {
    auto *lists = as<List>(a_.raw(1));
    std::vector<int64_t> multiples = a_.integers(2);
    if (!lists) bad_step(a_.at(1), "expected a list of lists of axes, [[i], [j], [k]]");
    if (multiples.size() != lists->items.size())
      bad_step(a_.at(2), "expected {}, one for each group, found {}", counted(lists->items.size(), "multiple"),
               multiples.size());
    a_.expect_results(1, lists->items.size());
    Known known(s_, n_);
    std::unordered_set<Sym> seen;
    for (size_t i = 0; i < multiples.size(); i++) {
      if (multiples[i] < 1) bad_step(a_.at(2), "a multiple is 1 or more, found {}", multiples[i]);
      auto *l = as<List>(lists->items[i]);
      Group g{};
      std::string joined;
      X size = lit(b_, int64_t(1));
      for (const Expr *e : l ? l->items : Exprs{}) {
        auto *v = as<Name>(e);
        auto it = std::find_if(k_.axes.begin(), k_.axes.end(), [&](const Axis &x) { return v && x.name == v->name; });
        if (it == k_.axes.end() || !seen.insert(it->name).second)
          bad_step(e->at, "expected an axis of block {}, each once, found {}", name(), s_.text(e));
        if (it->kind == AxisKind::Scan) refuse(n_, "axis {} of block {} scans", s_.text(it->name), name());
        if (!g.axes.empty() && it->kind != g.kind)
          bad_step(e->at, "{} is {}, {} is not", s_.text(e), it->kind == AxisKind::Reduce ? "a reduce axis" : "spatial",
                   s_.text(g.axes[0]->name));
        g.axes.push_back(&*it), g.kind = it->kind;
        joined += (joined.empty() ? "" : "_") + s_.text(it->name);
        size = size * X{b_, it->domain};
      }
      if (g.axes.empty()) bad_step(lists->items[i]->at, "expected a list of axes, found {}", s_.text(lists->items[i]));
      g.name = g.alone() ? g.axes[0]->name : axis_name(s_, joined, {});
      g.size = simplify(b_, size.e, known);
      g.padded = simplify(b_, (ceildiv(X{b_, g.size}, lit(b_, multiples[i])) * multiples[i]).e, known);
      g.is_padded = !provably_equal(b_, g.size, g.padded, known);
      if (!g.is_padded) g.padded = g.size;
      groups_.push_back(g);
    }
    for (const Axis &x : k_.axes)
      if (!seen.count(x.name)) bad_step(a_.at(1), "axis {} of block {} is in no group", s_.text(x.name), name());
  }

  // What becomes an operand: of a sum the factors below its products and casts, so many one in the other at most; else
  // the elements that are loaded, and conditions that keep subscripts inside with what they choose.
  void collect(const Expr *e, int64_t depth) {
    auto *x = as<Binary>(e);
    auto *c = as<Call>(e);
    bool cast = c && !c->global && is_cast(b_.text(c->callee)) &&
                type_of(env_, c->args[0], DType::Invalid, nullptr) != DType::Index;
    if (reduces_ ? depth > 0 && ((x && x->op == Op::Mul) || cast) : e->kind != Kind::Load && !protects(e))
      return each_child(e, [&](const Expr *y) { collect(y, depth - 1); });
    bool counts = std::any_of(k_.axes.begin(), k_.axes.end(), [&](const Axis &y) { return mentions(e, y.name); });
    if (!counts && (e->kind == Kind::Int || e->kind == Kind::Float || e->kind == Kind::Bool)) return;
    auto same = [&](const Factor &f) { return equal(f.e, e); };
    if (std::none_of(factors_.begin(), factors_.end(), same)) factors_.push_back({e, nullptr});
  }
  // where(i < 30, x[i], 0.0), i < 30 && x[i] > 0.0: only under the condition the element is there.
  bool protects(const Expr *e) const {
    auto *c = as<Call>(e);
    auto *x = as<Binary>(e);
    std::vector<const Expr *> sides;
    if (c && !c->global && b_.text(c->callee) == "where") sides = {c->args[1], c->args[2]};
    if (x && (x->op == Op::And || x->op == Op::Or)) sides = {x->b};
    Known known(s_, n_, true);
    bool inside = true;
    for (const Expr *side : sides)
      each_expr(side, [&](const Expr *y) {
        auto *l = as<Load>(y);
        const Type *t = !l ? nullptr : l->global ? s_.m.constant(l->buffer)->type : s_.type_of_buffer(l->buffer);
        for (size_t d = 0; l && d < l->index.size(); d++)
          inside &= provably_inside(b_, l->index[d], t->dims[d], known);
        return inside;
      });
    return !inside;
  }
  bool mentions_group(const Expr *e, const Group &g) const {
    return std::any_of(g.axes.begin(), g.axes.end(), [&](const Axis *x) { return mentions(e, x->name); });
  }
  void expect_zeros() {
    for (const Group &g : groups_)
      for (const Factor &f : factors_)
        if (g.is_padded && g.kind == AxisKind::Reduce && !mentions_group(f.e, g))
          refuse(n_, "{} does not depend on axis {}: 0 times it may not be 0 where that is padded", s_.text(f.e),
                 s_.text(g.name));
  }

  // The groups that e depends on, as subscripts; those of an element in order, where it has them as they are.
  std::vector<const Group *> groups_of(const Expr *e) const {
    std::vector<const Group *> out;
    for (const Group &g : groups_)
      if (mentions_group(e, g)) out.push_back(&g);
    return out;
  }
  // x[i, k] of axes that are groups for themselves, none padded: the element itself.
  bool is_plain(const Load *l) const {
    if (!l || l->global || copies_) return false;
    std::unordered_set<Sym> seen;
    for (const Expr *e : l->index) {
      auto *v = as<Name>(e);
      if (!v || !seen.insert(v->name).second) return false;
      for (const Group &g : groups_)
        if (mentions_group(e, g) && (!g.alone() || g.is_padded)) return false;
    }
    return true;
  }

  // The axes of the groups in terms of what they became: i_k_l  ->  i = i_k_l // 64, k = i_k_l // 8 % 8, l = i_k_l % 8
  Substitution digits(const std::vector<const Group *> &groups) const {
    Substitution out;
    for (const Group *g : groups) {
      X weight = lit(b_, int64_t(1)), fused{b_, b_.name(g->name)};
      for (size_t i = g->axes.size(); i-- > 0;) {
        X digit = floordiv(fused, weight), domain{b_, g->axes[i]->domain};
        if (!g->alone()) out[g->axes[i]->name] = i ? (digit % domain).e : digit.e;
        weight = weight * domain;
      }
    }
    return out;
  }
  const Expr *fused(const Group &g) const {
    X at = lit(b_, int64_t(0));
    for (const Axis *x : g.axes) at = at * X{b_, x->domain} + X{b_, b_.name(x->name)};
    return at.e;
  }
  const Load *element(Sym buffer, const std::vector<const Group *> &groups) const {
    std::vector<const Expr *> at;
    for (const Group *g : groups) at.push_back(b_.name(g->name));
    return b_.load(buffer, b_.list(at));
  }
  Sym alloc(std::string_view want, DType elem, const std::vector<const Group *> &groups, const Type *of) {
    std::vector<const Expr *> dims;
    for (const Group *g : groups) dims.push_back(g->padded);
    Type t{elem, true, of ? of->scope : Sym{}, {}, -1, b_.list(dims), {}};
    Sym made = s_.buffer_name(want);
    s_.add_alloc(made, b_.type(t));
    return made;
  }
  Place *copy(Sym name, const std::vector<Axis> &over, const Stmt *store) {
    std::vector<Axis> axes;
    std::vector<Iter> nest;
    std::vector<Sym> taken;
    for (Axis x : over) {
      Sym loop = s_.loop_name_inside(top_->up, s_.text(x.name), taken);
      taken.push_back(loop);
      nest.push_back({loop, x.domain, kNowhere});
      x.kind = AxisKind::Spatial, x.binding = b_.name(loop);
      axes.push_back(x);
    }
    Block c{};
    c.name = s_.block_name(s_.text(name)), c.notes.from = k_.notes.from;
    c.axes = b_.list(axes), c.body = b_.stmts({store});
    return s_.nest(nest, b_.make(c)).first;
  }

  // An element of a parameter whose layout has changed, so that it holds all groups as they are padded; behind what
  // there was callers put zeros.
  const Load *packed_by_callers(const Load *l, const std::vector<const Group *> &groups, const Known &known) const {
    bool changed = false;
    for (const LayoutChange &c : s_.layouts)
      changed |= l && !l->global && !c.result && s_.original()->params[c.index].def.name == l->buffer;
    if (!changed || copies_) return nullptr;
    std::vector<const Expr *> from, extents;
    for (const Group *g : groups) from.push_back(b_.name(g->name)), extents.push_back(g->padded);
    Substitution at = digits(groups);
    Exprs to = edit_all(b_, l->index, [&](const Expr *&e) { e = simplify(b_, substitute(b_, e, at), known); });
    std::vector<Sym> names;
    for (size_t d = 0; d < to.size(); d++) names.push_back(axis_name(s_, fmt::format("i{}", d), {}));
    auto inv = inverse(b_, *b_.map(b_.make_list(b_.list(from)), b_.make_list(to)), b_.list(extents), names, known);
    Exprs dims = s_.type_of_buffer(l->buffer)->dims;
    bool whole = inv && inv->onto && provably_equal(b_, b_.list(inv->image), dims, known);
    return whole ? b_.load(l->buffer, to, l->at) : nullptr;
  }

  // A block in front that has the factor's values, zeros behind them.
  void pack(Factor &f) {
    auto *l = as<Load>(f.e);
    if (is_plain(l)) return void(f.packed = l);
    std::vector<const Group *> groups = groups_of(f.e);
    Known known(s_, top_);
    std::vector<Axis> axes;
    X inside;
    for (const Group *g : groups) {
      axes.push_back({AxisKind::Spatial, g->name, kNowhere, g->padded, nullptr});
      known.bounds.range(g->name, g->padded);
      if (!g->is_padded) continue;
      X c = X{b_, b_.name(g->name)} < X{b_, g->size};
      inside = inside ? inside && c : c;
    }
    if (const Load *there = packed_by_callers(l, groups, known)) return void(f.packed = there);
    if (inside) known.bounds.assume(inside.e);
    const Expr *value = simplify_inside(b_, substitute(b_, f.e, digits(groups)), known);
    DType t = type_of(env_, f.e, DType::Invalid, nullptr);
    if (t == DType::Invalid) t = s_.type_of_buffer(store_->target->buffer)->elem;
    if (inside) value = b_.call("where", {inside.e, value, zero(b_, t).e});
    const Load *first = l;
    each_expr(f.e, [&](const Expr *e) {
      if (!first) first = as<Load>(e);
      return !first;
    });
    std::string base = first ? s_.text(first->buffer) : "factor";
    Sym name = alloc(base + ".packed", t, groups, nullptr);
    f.packed = element(name, groups);
    s_.tree.before(top_, copy(name, axes, b_.make(Store{{}, false, f.packed, value, {}})));
  }

  // A block behind that takes the result out.
  const Load *pack_target() {
    const Load *target = store_->target;
    if (is_plain(target)) return target;
    std::vector<const Group *> groups;
    std::vector<Axis> axes;
    std::vector<const Expr *> from;
    for (const Group &g : groups_) {
      if (g.kind != AxisKind::Spatial) continue;
      groups.push_back(&g), from.push_back(fused(g));
    }
    for (const Axis &x : k_.axes)
      if (x.kind == AxisKind::Spatial) axes.push_back(x);
    const Type *t = s_.type_of_buffer(target->buffer);
    Sym name = alloc(s_.text(target->buffer) + ".packed", t->elem, groups, nullptr);
    const Stmt *back = b_.make(Store{{}, false, target, b_.load(name, b_.list(from)), {}});
    s_.tree.after(top_, copy(s_.block_name(this->name() + ".out"), axes, back));
    return element(name, groups);
  }

  // The start is one of all that is added up, zeros behind included.
  void repack_start(const Load *target) {
    std::vector<Axis> axes;
    for (const Group &g : groups_)
      if (g.kind == AxisKind::Spatial) axes.push_back({g.kind, g.name, kNowhere, g.padded, nullptr});
    const Expr *value = start_value(s_, start_, store_->target);
    Sym name = start_->block()->name;
    Place *was = start_->up;
    s_.tree.remove(start_);
    s_.tree.prune(was);
    s_.tree.before(top_, copy(name, axes, b_.make(Store{{}, false, target, value, {}})));
  }

  const Expr *repacked(const Expr *e) const {
    for (const Factor &f : factors_)
      if (equal(f.e, e)) return f.packed;
    if (auto *x = as<Binary>(e)) return b_.binary(x->op, repacked(x->a), repacked(x->b), x->at);
    if (auto *x = as<Unary>(e)) return b_.unary(x->op, repacked(x->a), x->at);
    if (e->kind == Kind::Name) return substitute(b_, e, digits_);
    auto *c = as<Call>(e);
    if (!c) return e;
    return edited(b_, *c, [&](Call &n) {
      n.args = edit_all(b_, c->args, [&](const Expr *&x) { x = repacked(x); });
    });
  }

  State &s_;
  Build &b_;
  Args &a_;
  Place *n_;
  const Block k_;
  Env env_;
  std::vector<Group> groups_;
  const Store *store_ = nullptr;
  bool reduces_ = false;
  const bool copies_ = a_.flag("copy");  // of what needs none too
  std::vector<Factor> factors_;
  Substitution digits_;  // of all groups
  Place *top_ = nullptr, *start_ = nullptr;
};

}  // namespace

// for n, o, h, w, c, r in .. { block y { y[n, o, h, w] += x[n, c, h + r, w] * f[o, c, r] } }
// ->  x.packed[n_h_w, c_r] and f.packed[o, c_r] with zeros behind;
//     for n_h_w, o, c_r { block y { y.packed[n_h_w, o] += x.packed[n_h_w, c_r] * f.packed[o, c_r] } };
//     y[n, o, h, w] = y.packed[(n * 8 + h) * 8 + w, o]
void pack_einsum(State &s, Args &a) { Packer(s, a).run(); }

}  // namespace mlc
