// Probabilities of classes from those of pairs of them (Wu, Lin, Weng: Probability estimates for multi-class
// classification by pairwise coupling, second method, as LIBSVM iterates it).
#include "ops/rules.h"

namespace mlc {

namespace {
using Body = Define::Body;
constexpr int64_t kTurns = 100;
}  // namespace

// x[row, pair]: that it is i of the pair i < j, pairs in the order 01 02 .. 12 ..; y[row, class]
std::vector<Dims> pair_probabilities_shape(OpUse &u) {
  int64_t k = u.attr_int("classes");
  if (u.rank(0) != 2) u.fail("expected a matrix");
  if (k < 2 || k > 4096) u.fail(fmt::format("attribute 'classes': expected 2 to 4096, found {}", k));
  u.assume_equal(u.dim(0, 1), u.lit(k * (k - 1) / 2), "pairs of classes");
  return {{u.dim(0, 0), u.lit(k)}};
}

// Minimises p' q p for the sum of p = 1: q[t, t] = sum of r[j, t]^2, q[t, j] = -r[j, t] * r[t, j].
void pair_probabilities(Define &d) {
  constexpr DType i32 = DType::I32;
  Tensor x = d.in(0), y = d.out();
  DType t = x.elem(), wide = accumulator(t);
  int64_t classes = d.attr_int("classes");
  X rows = x.dims[0], k = d.lit(classes), none = zero(d.b, wide), one = mlc::one(d.b, wide);
  auto number = [&](double v) { return lit(d.b, v, wide); };
  auto first = [&](X n, X i, X j) {  // r[i, j] of i < j
    return as_type(x({n, floordiv(i * (k * 2 - 1 - i), 2) + j - i - 1}), t, wide);
  };
  auto r = [&](X n, X i, X j) { return where(i < j, first(n, i, j), one - first(n, j, i)); };
  Tensor q = d.make("q", wide, {rows, k, k}, [&](const Indices &i) {
    X own = d.reduce("sum", {k}, [&](const Indices &j) {
      return where(j[0] == i[1], none, r(i[0], j[0], i[1]) * r(i[0], j[0], i[1]));
    });
    return where(i[1] == i[2], own, -(r(i[0], i[2], i[1]) * r(i[0], i[1], i[2])));
  });
  Tensor p = d.make("p", wide, y.dims, [&](const Indices &) { return number(1.0 / double(classes)); });
  Tensor qp = d.temp(wide, y.dims, "qp");
  d.block("couple", {rows}, "", [&](Body &body, const Indices &row) {
    X n = row[0];
    Tensor done = body.local("done", i32, d.lit(0)), pqp = body.local("pqp", wide, none);
    Tensor error = body.local("error", wide, none), sum = body.local("sum", wide, none);
    body.loop(d.lit(kTurns), [&](Body &turn, X) {
      turn.when(done({}) == 0, [&](Body &b) {
        b.store(pqp, {}, none), b.store(error, {}, none);
        b.loop(k, [&](Body &c, X i) {
          c.store(sum, {}, none);
          c.loop(k, [&](Body &in, X j) { in.store(sum, {}, sum({}) + q({n, i, j}) * p({n, j})); });
          c.store(qp, {n, i}, sum({}));
          c.store(pqp, {}, pqp({}) + p({n, i}) * sum({}));
        });
        b.loop(k, [&](Body &c, X i) {
          c.store(error, {}, call("max", {error({}), call("abs", {qp({n, i}) - pqp({})})}));
        });
        auto step = [&](Body &go) {
          go.loop(k, [&](Body &c, X i) {
            X own = c.let("own", wide, q({n, i, i}));
            X diff = c.let("diff", wide, (pqp({}) - qp({n, i})) / own), grown = c.let("grown", wide, one + diff);
            c.store(pqp, {}, (pqp({}) + diff * (diff * own + number(2) * qp({n, i}))) / grown / grown);
            c.store(p, {n, i}, p({n, i}) + diff);
            c.loop(k, [&](Body &in, X j) {
              in.store(qp, {n, j}, (qp({n, j}) + diff * q({n, i, j})) / grown);
              in.store(p, {n, j}, p({n, j}) / grown);
            });
          });
        };
        auto stop = [&](Body &end) { end.store(done, {}, d.lit(1)); };
        b.choose(error({}) < number(0.005 / double(classes)), stop, step);
      });
    });
    body.loop(k, [&](Body &b, X i) { b.store(y, {n, i}, as_type(p({n, i}), wide, t)); });
  });
}

}  // namespace mlc
