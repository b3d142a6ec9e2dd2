// distribute: a sum of products of differences as a sum of products, and sums of the factors.
#include <algorithm>

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

struct Difference {  // a - b; b is the same in all turns of the sum, null: a alone
  const Expr *a, *b;
};

class Distributor {
 public:
  Distributor(State &s, Args &a) : s_(s), b_(s.b), n_(a.block(0)), k_(*n_->block()), start_(start_of(s, n_)) {}

  void run() {
    std::string block = s_.text(k_.name);
    store_ = k_.body.size() == 1 ? as<Store>(k_.body[0]) : nullptr;
    auto *sum = store_ ? as<Binary>(store_->value) : nullptr;
    auto *term = sum ? as<Binary>(sum->b) : nullptr;
    bool fits = term && sum->op == Op::Add && equal(sum->a, store_->target) && term->op == Op::Mul && !k_.guard &&
                !store_->atomic && (k_.inits.size() == 1 || start_);
    if (!fits)
      refuse(n_, "block {} is no sum of products with an initialiser: y[..] = y[..] + (a[..] - p) * (b[..] - q)",
             block);
    elem_ = s_.type_of_buffer(store_->target->buffer)->elem;
    if (!is_int(elem_))
      refuse(n_, "block {} sums {}: differences of rounded numbers are others", block, dtype_name(elem_));
    Difference x = difference(term->a), y = difference(term->b);
    if (!x.b && !y.b)
      refuse(n_, "block {} has no factor that is a difference of what the sum runs over and what not", block);
    top_ = n_;
    while (top_->up->loop() && top_->up->kids[0].size() == 1) top_ = top_->up;
    for (const Axis &axis : k_.axes)
      if (Place *l = loop_of(s_, n_, axis, nullptr); !s_.tree.contains(top_, l))
        refuse(l, "{} holds more than block {}", s_.name_of(l), block);

    const Load *whole = b_.load(s_.buffer_name(s_.text(store_->target->buffer) + ".dot"), spatial());
    s_.add_alloc(whole->buffer, buffer_over(spatial_axes()));
    const Expr *value = whole;
    auto minus = [&](const Expr *b) { value = b_.binary(Op::Sub, value, b); };
    if (x.b) minus(times(x.b, sum_of(y.a)));
    if (y.b) minus(times(sum_of(x.a), y.b));
    if (x.b && y.b) {
      X turns = lit(b_, int64_t(1));
      for (const Axis &axis : k_.axes)
        if (axis.kind == AxisKind::Reduce) turns = turns * X{b_, axis.domain};
      int64_t n;
      const Expr *count = int_value(turns.e, &n) ? lit(b_, double(n), elem_).e : b_.call(dtype_name(elem_), {turns.e});
      value = b_.binary(Op::Add, value, times(times(x.b, y.b), count));
    }
    s_.tree.after(top_, nest(s_.block_name(block + ".out"), spatial_axes(), {},
                             b_.make(Store{{}, false, store_->target, value, store_->from})));
    if (start_) {
      const Stmt *first = b_.make(Store{{}, false, whole, start_value(s_, start_, store_->target), {}});
      Sym name = start_->block()->name;
      Place *was = start_->up;
      s_.tree.remove(start_);
      s_.tree.prune(was);
      s_.tree.before(top_, nest(name, spatial_axes(), {}, first));
    }
    s_.tree.edit<Block>(n_, [&](Block &k) {
      if (!start_)
        k.inits = b_.stmts({edited(b_, to<Store>(k_.inits[0]), [&](Store &st) { st.target = whole; })});
      const Expr *added = b_.binary(Op::Add, whole, times(x.a, y.a));
      k.body = b_.stmts({edited(b_, *store_, [&](Store &st) { st.target = whole, st.value = added; })});
      k.reads = k.writes = {};
    });
  }

 private:
  bool sums_over(const Expr *e) const {
    return std::any_of(k_.axes.begin(), k_.axes.end(),
                       [&](const Axis &x) { return x.kind == AxisKind::Reduce && mentions(e, x.name); });
  }
  Difference difference(const Expr *e) const {
    auto *x = as<Binary>(e);
    if (x && x->op == Op::Sub && sums_over(x->a) && !sums_over(x->b)) return {x->a, x->b};
    return {e, nullptr};
  }
  const Expr *times(const Expr *a, const Expr *b) { return b_.binary(Op::Mul, a, b); }
  std::vector<Axis> spatial_axes(const Expr *in = nullptr) const {
    std::vector<Axis> out;
    for (const Axis &x : k_.axes)
      if (x.kind != AxisKind::Reduce && (!in || mentions(in, x.name))) out.push_back(x);
    return out;
  }
  Exprs names_of(const std::vector<Axis> &axes) {
    std::vector<const Expr *> out;
    for (const Axis &x : axes) out.push_back(b_.name(x.name));
    return b_.list(out);
  }
  Exprs spatial() { return names_of(spatial_axes()); }
  const Type *buffer_over(const std::vector<Axis> &axes) {
    std::vector<const Expr *> dims;
    for (const Axis &x : axes) dims.push_back(x.domain);
    return b_.tensor(elem_, b_.list(dims));
  }
  // Loops over the axes around a block of them.
  Place *nest(Sym name, std::vector<Axis> axes, Stmts inits, const Stmt *body) {
    std::vector<Iter> loops;
    std::vector<Sym> taken;
    for (Axis &x : axes) {
      loops.push_back({s_.loop_name_inside(top_->up, s_.text(x.name), taken), x.domain, kNowhere});
      taken.push_back(loops.back().name), x.binding = b_.name(loops.back().name);
    }
    Block k{};
    k.name = name, k.axes = b_.list(axes), k.inits = inits, k.body = b_.stmts({body}), k.notes.from = k_.notes.from;
    return s_.nest(loops, b_.make(k)).first;
  }
  // The sum of a factor, over the spatial axes that it depends on, in a block in front.
  const Expr *sum_of(const Expr *e) {
    const Load *first = nullptr;
    each_expr(e, [&](const Expr *x) {
      if (!first) first = as<Load>(x);
      return !first;
    });
    std::vector<Axis> over = spatial_axes(e), axes = over;
    for (const Axis &x : k_.axes)
      if (x.kind == AxisKind::Reduce) axes.push_back(x);
    Sym name = s_.buffer_name((first ? s_.text(first->buffer) : "factor") + ".sums");
    s_.add_alloc(name, buffer_over(over));
    const Load *at = b_.load(name, names_of(over));
    Stmts init = b_.stmts({b_.make(Store{{}, false, at, zero(b_, elem_).e, {}})});
    const Stmt *add = b_.make(Store{{}, false, at, b_.binary(Op::Add, at, e), {}});
    Known known(s_, top_);
    for (const Axis &x : axes)
      if (x.kind == AxisKind::Reduce && !provably_less_equal(b_, b_.integer(1), x.domain, known) && !init.empty()) {
        s_.tree.before(top_, nest(s_.block_name(s_.text(name) + ".init"), over, {}, init[0]));
        init = {};
      }
    s_.tree.before(top_, nest(s_.block_name(s_.text(name)), axes, init, add));
    return at;
  }

  State &s_;
  Build &b_;
  Place *n_;
  const Block k_;
  Place *start_;  // that begins the sum, where it may be empty
  const Store *store_ = nullptr;
  DType elem_{};
  Place *top_ = nullptr;
};

}  // namespace

// block y { y[i, j] += (a[i, k] - p) * b[k, j] }
// ->  block b.sums { b.sums[j] += b[k, j] };  block y { y.dot[i, j] += a[i, k] * b[k, j] };
//     block y.out { y[i, j] = y.dot[i, j] - p * b.sums[j] }
void distribute(State &s, Args &a) {
  a.expect_results(0, 0);
  Distributor(s, a).run();
}

}  // namespace mlc
