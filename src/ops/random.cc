// Random numbers: Philox 4x32-10 with its state as a value, u64[2] of key and counter. One turn of the counter gives
// four u32; uniform = (u >> 8) * 2^-24. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
#include <cmath>

#include "ops/rules.h"

namespace mlc {

namespace {

using Body = Define::Body;
constexpr DType u32 = DType::U32, u64 = DType::U64, f32 = DType::F32;

// For each of n draws in order: f(body, place, uniform), and the other uniform of its pair, which Box-Muller needs.
using Draw = std::function<void(Body &, X place, X uniform, X other, bool first)>;
void draw(Define &d, const Tensor &state, X n, const Draw &f) {
  auto word = [&](uint32_t v) { return lit(d.b, int64_t(v)); };
  d.block("draw", {ceildiv(n, d.lit(4))}, "", [&](Body &body, const Indices &i) {
    auto low = [&](X v) { return cast(u32, v); };
    auto high = [&](X v) { return cast(u32, call("shr", {v, d.lit(32)})); };
    X key = body.let("key", u64, state({d.lit(0)})),
      counter = body.let("counter", u64, state({d.lit(1)}) + cast(u64, i[0]));
    Tensor k0 = body.local("k0", u32, low(key)), k1 = body.local("k1", u32, high(key));
    Tensor c0 = body.local("c0", u32, low(counter)), c1 = body.local("c1", u32, high(counter));
    Tensor c2 = body.local("c2", u32, d.lit(0)), c3 = body.local("c3", u32, d.lit(0));
    body.loop(d.lit(10), [&](Body &round, X) {
      X p0 = round.let("p0", u64, cast(u64, c0({})) * word(0xD2511F53));
      X p1 = round.let("p1", u64, cast(u64, c2({})) * word(0xCD9E8D57));
      auto mix = [&](X p, X c, X k) { return call("bitxor", {call("bitxor", {high(p), c}), k}); };
      round.store(c0, {}, mix(p1, c1({}), k0({})));
      round.store(c1, {}, low(p1));
      round.store(c2, {}, mix(p0, c3({}), k1({})));
      round.store(c3, {}, low(p0));
      round.store(k0, {}, k0({}) + word(0x9E3779B9));
      round.store(k1, {}, k1({}) + word(0xBB67AE85));
    });
    std::vector<X> u;
    for (const Tensor &c : {c0, c1, c2, c3})
      u.push_back(body.let("u", f32, cast(f32, call("shr", {c({}), d.lit(8)})) * lit(d.b, 0x1p-24, f32)));
    for (int64_t lane = 0; lane < 4; ++lane) {
      X place = i[0] * 4 + lane;
      auto one = [&](Body &b) { f(b, place, u[size_t(lane)], u[size_t(lane ^ 1)], lane % 2 == 0); };
      int64_t count;
      if (is_const(n, &count) && count % 4 == 0) one(body);
      else body.when(place < n, one);
    }
  });
}

// The state behind n draws.
void advance(Define &d, size_t result, const Tensor &state, X n) {
  if (!d.wants(result)) return;
  d.compute(d.out(result), [&](const Indices &i) {
    return where(i[0] == 0, state({d.lit(0)}), state({d.lit(1)}) + cast(u64, ceildiv(n, d.lit(4))));
  });
}

Dims state_dims(OpUse &u, size_t input) {
  if (u.rank(input) != 1) u.fail("the random state has the type u64[2]");
  u.assume_equal(u.dim(input, 0), u.lit(2), "length of the random state");
  return {u.lit(2)};
}

}  // namespace

// RngSeed() {seed}: the seed's bits as f64 are the key, the counter is 0.
std::vector<Dims> rng_seed_shape(OpUse &u) { return {{u.lit(2)}}; }
void rng_seed(Define &d) {
  X seed = lit(d.b, d.attr_float("seed"), DType::F64);
  d.compute(d.out(),
            [&](const Indices &i) { return where(i[0] == 0, call("bits.u64", {cast(DType::F64, seed)}), d.lit(0)); });
}

// RandomUniform(state) {low, high}, RandomNormal(state) {mean, scale}: the shape is that of the result as written.
std::vector<Dims> random_shape(OpUse &u) {
  if (!u.wanted) u.fail("the shape of the result must be written");
  Dims y;
  for (const Expr *e : u.wanted->dims) y.emplace_back(u.b, e);
  return {y, state_dims(u, 0)};
}
void random(Define &d) {
  Tensor state = d.in(0), y = d.out();
  bool normal = d.op.name == "RandomNormal";
  auto c = [&](double v) { return lit(d.b, v, f32); };
  double low = d.attr_float(normal ? "mean" : "low"),
         span = normal ? d.attr_float("scale") : d.attr_float("high") - low;
  X n = product(d.b, y.dims);
  draw(d, state, n, [&](Body &b, X place, X u, X other, bool first) {
    X v = u;
    if (normal) {  // sqrt(-2 log(1 - u)) * cos or sin of 2 pi u'
      X radius = call("sqrt", {c(-2) * call("log", {c(1) - (first ? u : other)})}),
        angle = c(2 * M_PI) * (first ? other : u);
      v = radius * call(first ? "cos" : "sin", {angle});
    }
    b.store(y, y.rank() ? unflatten(place, y.dims) : Indices{}, as_type(c(low) + c(span) * v, f32, y.elem()));
  });
  advance(d, 1, state, n);
}

// Bernoulli(p, state): 1 with probability p.
std::vector<Dims> bernoulli_shape(OpUse &u) { return {u.dims(0), state_dims(u, 1)}; }
void bernoulli(Define &d) {
  Tensor p = d.in(0), state = d.in(1), y = d.out();
  X n = product(d.b, p.dims);
  draw(d, state, n, [&](Body &b, X place, X u, X, bool) {
    Indices i = p.rank() ? unflatten(place, p.dims) : Indices{};
    b.store(y, i, where(u < as_type(p(i), p.elem(), f32), one(d.b, y.elem()), zero(d.b, y.elem())));
  });
  advance(d, 1, state, n);
}

// Dropout(x, ratio, training_mode, state): where training, an element is dropped if its draw is below the ratio, and
// the others are divided by 1 - ratio; else x itself and a mask of ones.
namespace {
bool drops(const OpUse &u) {
  if (!u.has(2)) return false;
  auto mode = u.need_values(2);
  if (mode.size() != 1) u.fail("input 2 (training_mode): expected a scalar");
  auto ratio = u.has(1) ? u.values(1) : std::nullopt;
  auto *r = ratio && ratio->size() == 1 ? as<Float>((*ratio)[0].e) : nullptr;
  return !is_truth(mode[0], false) && !(r && r->value == 0);
}
}  // namespace
std::vector<Dims> dropout_shape(OpUse &u) {
  if (drops(u) && !u.has(3)) u.lack("training_mode needs a random state");
  std::vector<Dims> all{u.dims(0), u.dims(0)};
  if (u.has(3)) all.push_back(state_dims(u, 3));
  return all;
}
void dropout(Define &d) {
  Tensor x = d.in(0);
  DType t = x.elem(), wide = accumulator(t);
  if (!drops(d)) {
    if (d.wants(0)) d.compute(d.out(), [&](const Indices &i) { return x(i); });
    if (d.wants(1)) d.compute(d.out(1), [&](const Indices &) { return truth(d.b, true); });
    if (d.has(3)) advance(d, 2, d.in(3), d.lit(0));
    return;
  }
  Tensor state = d.in(3), mask = d.wants(1) ? d.out(1) : d.temp(DType::Bool, x.dims, "mask");
  X n = product(d.b, x.dims), ratio = d.has(1) ? as_type(d.in(1)({}), d.elem(1), wide) : lit(d.b, 0.5, wide);
  draw(d, state, n, [&](Body &b, X place, X u, X, bool) {
    b.store(mask, x.rank() ? unflatten(place, x.dims) : Indices{}, as_type(u, f32, wide) >= ratio);
  });
  if (d.wants(0))
    d.compute(d.out(), [&](const Indices &i) {
      X kept = as_type(x(i), t, wide) / (one(d.b, wide) - ratio);
      return as_type(where(mask(i), kept, zero(d.b, wide)), wide, t);
    });
  advance(d, 2, state, n);
}

}  // namespace mlc
