// Random numbers. The state of a generator is a value, whose type says which it is:
//   u64[2]    Philox 4x32-10, key and counter. One turn of the counter gives four u32; uniform = (u >> 8) * 2^-24, f32.
//             Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
//   u32[625]  MT19937, words and how many of them are used up, as numpy's RandomState. Two u32 give a uniform f64,
//             ((a >> 5) * 2^26 + (b >> 6)) * 2^-53. Matsumoto, Nishimura, "Mersenne twister" (1998).
#include <cmath>

#include "ops/rules.h"

namespace mlc {

namespace {

using Body = Define::Body;
constexpr DType u32 = DType::U32, u64 = DType::U64, f32 = DType::F32, f64 = DType::F64;

X bitxor_of(X a, X b) { return call("bitxor", {a, b}); }
X bitand_of(X a, int64_t mask) { return call("bitand", {a, lit(*a.b, mask)}); }
X shr(X a, int64_t n) { return call("shr", {a, lit(*a.b, n)}); }
X shl(X a, int64_t n) { return call("shl", {a, lit(*a.b, n)}); }

// For each of n draws in order: f(body, place, uniform), and the other uniform of its pair, which Box-Muller needs.
using Draw = std::function<void(Body &, X place, X uniform, X other, bool first)>;
void philox(Define &d, const Tensor &state, X n, const Draw &f) {
  auto word = [&](uint32_t v) { return lit(d.b, int64_t(v)); };
  d.block("draw", {ceildiv(n, d.lit(4))}, "", [&](Body &body, const Indices &i) {
    auto low = [&](X v) { return cast(u32, v); };
    auto high = [&](X v) { return cast(u32, shr(v, 32)); };
    X key = body.let("key", u64, state({d.lit(0)})),
      counter = body.let("counter", u64, state({d.lit(1)}) + cast(u64, i[0]));
    Tensor k0 = body.local("k0", u32, low(key)), k1 = body.local("k1", u32, high(key));
    Tensor c0 = body.local("c0", u32, low(counter)), c1 = body.local("c1", u32, high(counter));
    Tensor c2 = body.local("c2", u32, d.lit(0)), c3 = body.local("c3", u32, d.lit(0));
    body.loop(d.lit(10), [&](Body &round, X) {
      X p0 = round.let("p0", u64, cast(u64, c0({})) * word(0xD2511F53));
      X p1 = round.let("p1", u64, cast(u64, c2({})) * word(0xCD9E8D57));
      auto mix = [&](X p, X c, X k) { return bitxor_of(bitxor_of(high(p), c), k); };
      round.store(c0, {}, mix(p1, c1({}), k0({})));
      round.store(c1, {}, low(p1));
      round.store(c2, {}, mix(p0, c3({}), k1({})));
      round.store(c3, {}, low(p0));
      round.store(k0, {}, k0({}) + word(0x9E3779B9));
      round.store(k1, {}, k1({}) + word(0xBB67AE85));
    });
    std::vector<X> u;
    for (const Tensor &c : {c0, c1, c2, c3})
      u.push_back(body.let("u", f32, cast(f32, shr(c({}), 8)) * lit(d.b, 0x1p-24, f32)));
    for (int64_t lane = 0; lane < 4; ++lane) {
      X place = i[0] * 4 + lane;
      auto one = [&](Body &b) { f(b, place, u[size_t(lane)], u[size_t(lane ^ 1)], lane % 2 == 0); };
      int64_t count;
      if (is_const(n, &count) && count % 4 == 0) one(body);
      else body.when(place < n, one);
    }
  });
}

// The state behind n draws by Philox.
void advance(Define &d, size_t result, const Tensor &state, X n) {
  if (!d.wants(result)) return;
  d.compute(d.out(result), [&](const Indices &i) {
    return where(i[0] == 0, state({d.lit(0)}), state({d.lit(1)}) + cast(u64, ceildiv(n, d.lit(4))));
  });
}

// MT19937, one draw after the other. `words` is the state and becomes the next one.
constexpr int64_t kWords = 624, kMiddle = 397;
void twister(Define &d, const Tensor &words, X n, const std::function<void(Body &, X place, X uniform)> &f) {
  X used = d.lit(kWords);  // the place of the count
  auto refill = [&](Body &body) {
    body.loop(d.lit(kWords), [&](Body &b, X j) {
      X both = call("bitor", {bitand_of(words({j}), 0x80000000), bitand_of(words({(j + 1) % kWords}), 0x7fffffff)});
      X y = b.let("both", u32, both);
      X odd = where(bitand_of(y, 1) == 1, lit(d.b, int64_t{0x9908b0df}), d.lit(0));
      b.store(words, {j}, bitxor_of(bitxor_of(words({(j + kMiddle) % kWords}), shr(y, 1)), odd));
    });
    body.store(words, {used}, d.lit(0));
  };
  auto word = [&](Body &body) {
    body.when(words({used}) >= kWords, refill);
    X place = body.index("place", words({used}), used, false), y = body.let("word", u32, words({place}));
    body.store(words, {used}, words({used}) + 1);
    for (auto step : {+[](X y) { return shr(y, 11); }, +[](X y) { return bitand_of(shl(y, 7), 0x9d2c5680); },
                      +[](X y) { return bitand_of(shl(y, 15), 0xefc60000); }, +[](X y) { return shr(y, 18); }})
      y = body.let("word", u32, bitxor_of(y, step(y)));
    return y;
  };
  d.block("draw", {n}, "s", [&](Body &body, const Indices &i) {
    Tensor a = body.local("a", u32, d.lit(0)), b = body.local("b", u32, d.lit(0));
    body.loop(d.lit(2), [&](Body &each, X) {
      X next = word(each);
      each.store(a, {}, b({}));
      each.store(b, {}, next);
    });
    X bits = cast(f64, shr(a({}), 5)) * lit(d.b, 0x1p26, f64) + cast(f64, shr(b({}), 6));
    f(body, i[0], body.let("u", f64, bits * lit(d.b, 0x1p-53, f64)));
  });
}

bool twists(const Tensor &state) { return state.elem() == u32; }

// n uniform draws in order by the generator of the state; result number `result` is the state behind them.
void draw(Define &d, const Tensor &state, size_t result, X n, const std::function<void(Body &, X place, X uniform)> &f) {
  if (twists(state)) {
    Tensor words = d.wants(result) ? d.out(result) : d.temp(u32, state.dims, "words");
    d.compute(words, [&](const Indices &i) { return state(i); });
    return twister(d, words, n, f);
  }
  philox(d, state, n, [&](Body &b, X place, X u, X, bool) { f(b, place, u); });
  advance(d, result, state, n);
}

Dims state_dims(OpUse &u, size_t input) {
  X length = u.lit(u.elem(input) == u32 ? kWords + 1 : 2);
  if (u.rank(input) != 1) u.fail("the random state has the type u64[2] or u32[625]");
  u.assume_equal(u.dim(input, 0), length, "length of the random state");
  return {length};
}

}  // namespace

// RngSeed() {seed}: the seed's bits as f64 are the key, the counter is 0.
std::vector<Dims> rng_seed_shape(OpUse &u) { return {{u.lit(2)}}; }
void rng_seed(Define &d) {
  X seed = lit(d.b, d.attr_float("seed"), f64);
  d.compute(d.out(), [&](const Indices &i) { return where(i[0] == 0, call("bits.u64", {cast(f64, seed)}), d.lit(0)); });
}

// MersenneTwister() {seed}: numpy's RandomState(seed), of which 32 bits count; no word is left.
std::vector<Dims> twister_seed_shape(OpUse &u) { return {{u.lit(kWords + 1)}}; }
void twister_seed(Define &d) {
  Tensor y = d.out();
  X seed = lit(d.b, int64_t(uint32_t(d.attr_int("seed"))));
  d.block("seed", {d.lit(kWords)}, "s", [&](Body &body, const Indices &i) {
    body.choose(i[0] == 0, [&](Body &b) { b.store(y, {i[0]}, seed); }, [&](Body &b) {
      X before = b.let("before", u32, y({i[0] - 1}));
      b.store(y, {i[0]}, bitxor_of(before, shr(before, 30)) * lit(d.b, int64_t{1812433253}) + cast(u32, i[0]));
    });
  });
  d.block("used", {d.lit(1)}, "", [&](Body &body, const Indices &i) { body.store(y, {i[0] + kWords}, d.lit(kWords)); });
}

// RandomUniform(state) {low, high}, RandomNormal(state) {mean, scale}: the shape is that of the result as written.
std::vector<Dims> random_shape(OpUse &u) {
  if (!u.wanted) u.fail("the shape of the result must be written");
  Dims y;
  for (const Expr *e : u.wanted->dims) y.emplace_back(u.b, e);
  return {y, state_dims(u, 0)};
}
namespace {
// The place of draw number n.
Indices at(const Tensor &t, X place) { return t.rank() ? unflatten(place, t.dims) : Indices{}; }
}  // namespace
void random_uniform(Define &d) {
  Tensor state = d.in(0), y = d.out();
  double low = d.attr_float("low"), span = d.attr_float("high") - low;
  DType t = y.elem(), wide = t == f64 && twists(state) ? f64 : f32;
  draw(d, state, 1, product(d.b, y.dims), [&](Body &b, X place, X u) {
    X v = lit(d.b, low, wide) + lit(d.b, span, wide) * as_type(u, twists(state) ? f64 : f32, wide);
    b.store(y, at(y, place), as_type(v, wide, t));
  });
}
void random_normal(Define &d) {
  Tensor state = d.in(0), y = d.out();
  auto c = [&](double v) { return lit(d.b, v, f32); };
  X n = product(d.b, y.dims), mean = c(d.attr_float("mean")), scale = c(d.attr_float("scale"));
  philox(d, state, n, [&](Body &b, X place, X u, X other, bool first) {
    // sqrt(-2 log(1 - u)) * cos or sin of 2 pi u'
    X radius = call("sqrt", {c(-2) * call("log", {c(1) - (first ? u : other)})}),
      angle = c(2 * M_PI) * (first ? other : u);
    X v = mean + scale * (radius * call(first ? "cos" : "sin", {angle}));
    b.store(y, at(y, place), as_type(v, f32, y.elem()));
  });
  advance(d, 1, state, n);
}

// Bernoulli(p, state): 1 with probability p. By MT19937 as numpy's binomial(1, p): it looks at the rarer of both values,
// which is 1 - v for p above a half, and that comes where the draw is not below 1 - q, q its probability.
std::vector<Dims> bernoulli_shape(OpUse &u) { return {u.dims(0), state_dims(u, 1)}; }
void bernoulli(Define &d) {
  Tensor p = d.in(0), state = d.in(1), y = d.out();
  draw(d, state, 1, product(d.b, p.dims), [&](Body &b, X place, X u) {
    Indices i = at(p, place);
    X rate = as_type(p(i), p.elem(), twists(state) ? f64 : f32), hit = u < rate;
    if (twists(state)) {
      rate = b.let("rate", f64, rate);
      hit = where(rate > lit(d.b, 0.5, f64), u <= rate, u > one(d.b, f64) - rate);
    }
    b.store(y, i, where(hit, one(d.b, y.elem()), zero(d.b, y.elem())));
  });
}

// Multinomial(x, state) {sample_size}: x[batch, class] are logarithms of weights; each draw is the class in whose part of
// the running sum of exp(x - max x) it falls.
std::vector<Dims> multinomial_shape(OpUse &u) {
  if (u.rank(0) != 2) u.fail(fmt::format("expected a matrix, found rank {}", u.rank(0)));
  int64_t n = u.attr_int("sample_size");
  if (n < 1) u.fail("attribute 'sample_size': expected at least 1");
  u.assume(u.dim(0, 1) >= 1);
  return {{u.dim(0, 0), u.lit(n)}, state_dims(u, 1)};
}
void multinomial(Define &d) {
  Tensor x = d.in(0), state = d.in(1), y = d.out();
  DType drawn = twists(state) ? f64 : f32, wide = x.elem() == f64 || twists(state) ? f64 : f32;
  X classes = x.dims[1], none = d.lit(0);
  Tensor most = d.make("most", x.elem(), {x.dims[0]}, [&](const Indices &i) {
    return d.reduce("max", {classes}, [&](const Indices &k) { return x({i[0], k[0]}); });
  });
  Tensor upto = d.temp(wide, x.dims, "upto");
  d.block("upto", x.dims, " s", [&](Body &body, const Indices &i) {
    auto weight = [&] { return call("exp", {as_type(x(i), x.elem(), wide) - as_type(most({i[0]}), x.elem(), wide)}); };
    body.choose(i[1] == 0, [&](Body &b) { b.store(upto, i, weight()); },
                [&](Body &b) { b.store(upto, i, upto({i[0], i[1] - 1}) + weight()); });
  });
  draw(d, state, 1, product(d.b, y.dims), [&](Body &b, X place, X u) {
    Indices i = at(y, place);
    X share = b.let("share", wide, as_type(u, drawn, wide) * upto({i[0], classes - 1}));
    Tensor found = b.local("class", DType::I64, none);
    b.loop(classes - 1, [&](Body &each, X k) {
      each.store(found, {}, where(upto({i[0], k}) <= share, cast(DType::I64, k + 1), found({})));
    });
    b.store(y, i, as_type(found({}), DType::I64, y.elem()));
  });
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
    if (d.wants(2)) d.compute(d.out(2), [&](const Indices &i) { return d.in(3)(i); });
    return;
  }
  Tensor state = d.in(3), mask = d.wants(1) ? d.out(1) : d.temp(DType::Bool, x.dims, "mask");
  DType drawn = twists(state) ? f64 : f32, compared = drawn == f64 ? f64 : wide;
  auto ratio = [&](DType as) { return d.has(1) ? as_type(d.in(1)({}), d.elem(1), as) : lit(d.b, 0.5, as); };
  draw(d, state, 2, product(d.b, x.dims), [&](Body &b, X place, X u) {
    b.store(mask, at(x, place), as_type(u, drawn, compared) >= ratio(compared));
  });
  if (d.wants(0))
    d.compute(d.out(), [&](const Indices &i) {
      X kept = as_type(x(i), t, wide) / (one(d.b, wide) - ratio(wide));
      return as_type(where(mask(i), kept, zero(d.b, wide)), wide, t);
    });
}

}  // namespace mlc
