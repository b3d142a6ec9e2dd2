// Attention and what goes with it: rotary embeddings, caches, linear attention, causal convolution.
#include <cmath>

#include "ops/rules.h"

namespace mlc {

namespace {

using Body = Define::Body;

X real(Define &d, double v, DType t) { return lit(d.b, v, t); }

// A tensor x[batch, head, time, k], packed as x[batch, time, head * k] if it has rank 3.
struct Heads {
  Tensor x;
  X heads, time, size;
  X at(const Indices &i) const {  // batch, head, time, k
    if (x.rank() == 4) return x(i);
    return x({i[0], i[2], i[1] * size + i[3]});
  }
};
Heads heads_of(OpUse &u, size_t input, std::string_view count) {
  Heads h;
  Dims x = u.dims(input);
  if (x.size() == 4) {
    h.heads = x[1], h.time = x[2], h.size = x[3];
  } else if (x.size() == 3) {
    int64_t n = u.has_attr(count) ? u.attr_int(count) : 0, c;
    if (n < 1) u.fail(fmt::format("attribute '{}' is needed for inputs of rank 3", count));
    if (is_const(x[2], &c) && c % n)
      u.fail(fmt::format("{}: {} does not divide into {} heads", u.input_name(input), c, n));
    h.heads = u.lit(n), h.time = x[1], h.size = floordiv(x[2], n);
  } else {
    u.fail(fmt::format("{}: expected rank 3 or 4, found {}", u.input_name(input), x.size()));
  }
  return h;
}
Heads heads_of(Define &d, size_t input, std::string_view count) {
  Heads h = heads_of(static_cast<OpUse &>(d), input, count);
  h.x = d.in(input);
  return h;
}
X head_of(X head, const Heads &from, const Heads &to) {  // several heads of one share one of the other
  return provably_equal(from.heads, to.heads) ? head : floordiv(head, floordiv(from.heads, to.heads));
}

}  // namespace

// inputs: q, k, v, mask, past_key, past_value, nonpad_kv_seqlen; results: y, present_key, present_value, scores
std::vector<Dims> attention_shape(OpUse &u) {
  Heads q = heads_of(u, 0, "q_num_heads"), k = heads_of(u, 1, "kv_num_heads"), v = heads_of(u, 2, "kv_num_heads");
  if (u.rank(1) != u.rank(0) || u.rank(2) != u.rank(0)) u.fail("q, k and v differ in rank");
  u.assume_equal(k.size, q.size, "size of a key");
  u.assume_equal(v.time, k.time, "length of the values");
  u.assume_equal(v.heads, k.heads, "heads of the values");
  int64_t a, b;
  if (is_const(q.heads, &a) && is_const(k.heads, &b) && (b == 0 || a % b))
    u.fail(fmt::format("{} query heads do not divide into {}", a, b));
  if (u.has(4) != u.has(5)) u.fail("past_key and past_value come together");
  if (u.has(4) && u.has(6)) u.fail("nonpad_kv_seqlen does not go with past keys");
  X batch = u.dim(0, 0), total = k.time;
  if (u.has(4)) {
    if (u.rank(4) != 4 || u.rank(5) != 4) u.fail("past_key and past_value have rank 4");
    total = u.dim(4, 2) + k.time;
  }
  if (u.has(3)) {
    Dims mask = u.dims(3);
    if (mask.empty() || mask.size() > 4) u.fail("input 3 (mask): expected rank 1 to 4");
    mask.back() = u.lit(1);
    broadcast(u, {batch, q.heads, q.time, total}, mask);
  }
  Dims y = u.rank(0) == 4 ? Dims{batch, q.heads, q.time, v.size} : Dims{batch, q.time, q.heads * v.size};
  return {y, {batch, k.heads, total, k.size}, {batch, v.heads, total, v.size}, {batch, q.heads, q.time, total}};
}

void attention(Define &d) {
  Heads q = heads_of(d, 0, "q_num_heads"), k = heads_of(d, 1, "kv_num_heads"), v = heads_of(d, 2, "kv_num_heads");
  Tensor y = d.out();
  DType t = q.x.elem(), tv = v.x.elem();
  bool f64 = t == DType::F64 || (d.has_attr("softmax_precision") && d.attr_int("softmax_precision") == 11);
  DType wide = f64 ? DType::F64 : DType::F32;
  X batch = q.x.dims[0], past = d.has(4) ? d.dim(4, 2) : d.lit(0), total = past + k.time;

  // Keys and values, the past ones before the new ones.
  auto present = [&](const Heads &now, size_t input, size_t result) -> Heads {
    bool wanted = d.wants(result);
    if (!d.has(input) && !wanted) return now;
    Dims dims{batch, now.heads, total, now.size};
    Tensor all = wanted ? d.out(result) : d.temp(now.x.elem(), dims, result == 1 ? "keys" : "values");
    d.compute(all, [&](const Indices &i) {
      X fresh = now.at({i[0], i[1], i[2] - past, i[3]});
      return d.has(input) ? where(i[2] < past, d.in(input)(i), fresh) : fresh;
    });
    return {all, now.heads, total, now.size};
  };
  Heads keys = present(k, 4, 1), values = present(v, 5, 2);

  // sqrt(scale) on both sides, so that products in small types stay small.
  int64_t size;
  X root;
  if (d.has_attr("scale")) root = real(d, std::sqrt(d.attr_float("scale")), wide);
  else if (is_const(q.size, &size)) root = real(d, std::pow(double(size), -0.25), wide);
  else root = call("sqrt", {one(d.b, wide) / call("sqrt", {cast(wide, q.size)})});
  Dims dims{batch, q.heads, q.time, total};
  int64_t mode = d.attr_int("qk_matmul_output_mode");
  if (mode < 0 || mode > 3) d.fail(fmt::format("attribute 'qk_matmul_output_mode': expected 0 to 3, found {}", mode));
  auto keep = [&](int64_t m, const std::function<X(const Indices &)> &f) {
    if (mode == m && d.wants(3)) d.compute(d.out(3), [&](const Indices &i) { return as_type(f(i), wide, t); });
  };
  Tensor scores = d.make("scores", wide, dims, [&](const Indices &i) {
    return d.reduce("sum", {q.size}, [&](const Indices &r) {
      X a = as_type(q.at({i[0], i[1], i[2], r[0]}), t, wide) * root;
      return a * (as_type(keys.at({i[0], head_of(i[1], q, k), i[3], r[0]}), t, wide) * root);
    });
  });
  keep(0, scores);
  if (double cap = d.attr_float("softcap"); cap != 0) {
    scores = d.make("capped", wide, dims, [&](const Indices &i) {
      return call("tanh", {scores(i) / real(d, cap, wide)}) * real(d, cap, wide);
    });
  }
  keep(1, scores);

  // What a query may see: a mask, a causal frontier, a window, keys that are no padding. The rest is -inf.
  int64_t left = d.attr_int("left_window_size"), right = d.attr_int("right_window_size");
  bool causal = d.attr_int("is_causal"), mask = d.has(3);
  if (mask || causal || left >= 0 || right >= 0 || d.has(6)) {
    Tensor plain = scores;
    scores = d.make("biased", wide, dims, [&](const Indices &i) {
      constexpr DType i64 = DType::I64;
      X allowed = truth(d.b, true), value = plain(i);
      // Keys before the queries: those of the past, or the valid ones without as many as there are queries.
      bool shifted = d.has(6) && !d.has(4);
      auto at = [&](X x) { return shifted ? cast(i64, x) : x; };
      X place = at(i[2]) + (shifted ? d.in(6)({i[0]}) - cast(i64, q.time) : past);
      if (causal) allowed = allowed && at(i[3]) <= place;
      if (left >= 0) allowed = allowed && at(i[3]) >= place - left;
      if (right >= 0) allowed = allowed && at(i[3]) <= place + right;
      if (d.has(6)) allowed = allowed && cast(i64, i[3]) < d.in(6)({i[0]});
      X none = lowest(d.b, wide);
      if (!mask) return where(allowed, value, none);
      Tensor m = d.in(3);
      int64_t one;
      bool all = (is_const(m.dims.back(), &one) && one == 1) || provably_equal(m.dims.back(), total);
      if (m.elem() == DType::Bool) value = where(m.at(i), value, none);
      else value = value + as_type(m.at(i), m.elem(), wide);
      value = where(allowed, value, none);
      return all ? value : where(i[3] < m.dims.back(), value, none);
    });
  }
  keep(2, scores);

  // A row that sees nothing is 0.
  Dims outer{batch, q.heads, q.time};
  auto row = [](const Indices &i) { return slice(i, 0, 3); };
  Tensor m = d.make("m", wide, outer, [&](const Indices &i) {
    return d.reduce("max", {total}, [&](const Indices &r) { return scores(concat(i, r)); });
  });
  Tensor e = d.make("e", wide, dims, [&](const Indices &i) {
    return where(m(row(i)) == lowest(d.b, wide), zero(d.b, wide), call("exp", {scores(i) - m(row(i))}));
  });
  Tensor s = d.make("s", wide, outer, [&](const Indices &i) {
    return d.reduce("sum", {total}, [&](const Indices &r) { return e(concat(i, r)); });
  });
  auto probability = [&](const Indices &i) {
    return where(s(row(i)) == zero(d.b, wide), zero(d.b, wide), e(i) / s(row(i)));
  };
  keep(3, probability);
  if (!d.wants(0)) return;
  d.compute(y, [&](const Indices &i) {
    bool packed = y.rank() == 3;
    X head = packed ? floordiv(i[2], v.size) : i[1], time = packed ? i[1] : i[2], k_v = packed ? i[2] % v.size : i[3];
    X sum = d.reduce("sum", {total}, [&](const Indices &r) {
      return probability({i[0], head, time, r[0]}) *
             as_type(values.at({i[0], head_of(head, q, v), r[0], k_v}), tv, wide);
    });
    return as_type(sum, wide, t);
  });
}

// ---- RotaryEmbedding: inputs x, cos_cache, sin_cache, position_ids

std::vector<Dims> rotary_shape(OpUse &u) {
  Heads x = heads_of(u, 0, "num_heads");
  size_t want = u.has(3) ? 2 : 3;
  if (u.rank(1) != want || u.rank(2) != want) u.fail(fmt::format("the caches must have rank {}", want));
  if (u.attr_int("rotary_embedding_dim") < 0) u.fail("attribute 'rotary_embedding_dim': expected at least 0");
  return {u.dims(0)};
}
void rotary(Define &d) {
  Heads x = heads_of(d, 0, "num_heads");
  Tensor cos = d.in(1), sin = d.in(2), y = d.out();
  DType t = y.elem(), wide = accumulator(t);
  int64_t rotated = d.attr_int("rotary_embedding_dim");
  X n = rotated ? d.lit(rotated) : x.size, half = floordiv(n, 2);
  bool interleaved = d.attr_int("interleaved"), packed = y.rank() == 3;
  auto value = [&](const Indices &i, const Indices &place) {  // place: the cache's index without its last
    X head = packed ? floordiv(i[2], x.size) : i[1], time = packed ? i[1] : i[2], k = packed ? i[2] % x.size : i[3];
    X pair = interleaved ? floordiv(k, 2) : k % half;
    X first = interleaved ? k % 2 == 0 : k < half;
    X a = interleaved ? pair * 2 : pair, b = interleaved ? pair * 2 + 1 : pair + half;
    auto part = [&](X p) { return as_type(x.at({i[0], head, time, p}), t, wide); };
    auto factor = [&](const Tensor &c) { return as_type(c(concat(place, {pair})), t, wide); };
    X turned =
        where(first, factor(cos) * part(a) - factor(sin) * part(b), factor(sin) * part(a) + factor(cos) * part(b));
    return as_type(rotated ? where(interleaved ? pair < half : k < n, turned, part(k)) : turned, wide, t);
  };
  if (!d.has(3)) return d.compute(y, [&](const Indices &i) { return value(i, {i[0], packed ? i[1] : i[2]}); });
  Tensor ids = d.in(3);
  d.block("rotate", y.dims, "", [&](Body &body, const Indices &i) {
    X r = body.index("place", ids({i[0], packed ? i[1] : i[2]}), cos.dims[0], false);
    body.store(y, i, value(i, {r}));
  });
}

// ---- TensorScatter: writes a run of `update` into a cache, at a place for each batch

std::vector<Dims> tensor_scatter_shape(OpUse &u) {
  Dims x = u.dims(0), update = u.dims(1);
  if (x.size() != update.size() || x.size() < 2) u.fail("expected two tensors of equal rank, at least 2");
  size_t axis = size_t(u.axis("axis", x.size()));
  if (axis == 0) u.fail("the axis must not be the batch");
  for (size_t k = 0; k < x.size(); ++k)
    if (k != axis) u.assume_equal(update[k], x[k], fmt::format("dimension {} of the update", k));
  return {x};
}
void tensor_scatter(Define &d) {
  Tensor x = d.in(0), update = d.in(1), y = d.out();
  size_t axis = size_t(d.axis("axis", x.rank()));
  std::string mode = d.attr_str("mode"), kinds(x.rank(), 'p');
  if (mode != "linear" && mode != "circular") d.fail(fmt::format("unknown mode \"{}\"", mode));
  kinds[axis] = 's';
  d.compute(y, [&](const Indices &i) { return x(i); });
  d.block("scatter", update.dims, kinds, [&](Body &body, const Indices &i) {
    X n = x.dims[axis], place = i[axis];
    if (d.has(2)) place = place + cast(DType::Index, d.in(2)({i[0]}));
    X r = body.let("place", DType::Index, mode == "circular" ? place % n : place);
    body.assume(r >= 0 && r < n);
    Indices at = i;
    at[axis] = r;
    body.store(y, at, update(i));
  });
}

// ---- CausalConvWithState: x[batch, channel, time], w[channel, 1, k]; results y and the last k - 1 inputs

std::vector<Dims> causal_conv_shape(OpUse &u) {
  if (u.rank(0) != 3 || u.rank(1) != 3) u.fail("expected x and w of rank 3");
  Dims x = u.dims(0);
  X state = u.dim(1, 2) - 1;
  u.assume_equal(u.dim(1, 0), x[1], "channels of the kernel");
  if (u.has(3)) u.assume_equal(u.dim(3, 2), state, "length of the state");
  return {x, {x[0], x[1], state}};
}
void causal_conv(Define &d) {
  Tensor x = d.in(0), w = d.in(1);
  DType t = x.elem(), wide = accumulator(t);
  std::string activation = d.attr_str("activation");
  bool silu = activation == "silu" || activation == "swish";
  if (!silu && activation != "none") d.fail(fmt::format("unknown activation \"{}\"", activation));
  X before = w.dims[2] - 1;
  auto input = [&](const Indices &i) {  // time counted from the start of the state
    Indices at = i;
    at[2] = i[2] - before;
    return where(i[2] < before, d.has(3) ? d.in(3)(i) : zero(d.b, t), x(at));
  };
  if (d.wants(0))
    d.compute(d.out(), [&](const Indices &i) {
      X v = d.reduce("sum", {w.dims[2]}, [&](const Indices &k) {
        return as_type(input({i[0], i[1], i[2] + k[0]}), t, wide) * as_type(w({i[1], d.lit(0), k[0]}), t, wide);
      });
      if (d.has(2)) v = v + as_type(d.in(2)({i[1]}), t, wide);
      if (silu) v = v * call("sigmoid", {v});
      return as_type(v, wide, t);
    });
  if (d.wants(1)) d.compute(d.out(1), [&](const Indices &i) { return input({i[0], i[1], i[2] + x.dims[2]}); });
}

// ---- LinearAttention: a state s[batch, head, k, m], updated by each token in turn
//   s = exp(decay) * s;  v = beta * (v - s' k);  s = s + k v';  y = scale * q' s     (decay and beta where there are
//   any)

std::vector<Dims> linear_attention_shape(OpUse &u) {
  Heads q = heads_of(u, 0, "q_num_heads"), k = heads_of(u, 1, "kv_num_heads"), v = heads_of(u, 2, "kv_num_heads");
  std::string rule = u.attr_str("update_rule");
  bool gated = rule == "gated" || rule == "gated_delta", delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear") u.fail(fmt::format("unknown update_rule \"{}\"", rule));
  if (gated != u.has(4)) u.fail(fmt::format("update_rule \"{}\" {} decay", rule, gated ? "needs" : "has no"));
  if (delta != u.has(5)) u.fail(fmt::format("update_rule \"{}\" {} beta", rule, delta ? "needs" : "has no"));
  if (u.rank(0) != 3 || u.rank(1) != 3 || u.rank(2) != 3) u.fail("query, key and value have rank 3");
  if (u.attr_int("q_num_heads") % u.attr_int("kv_num_heads"))
    u.fail("the query heads do not divide by the other heads");
  X batch = u.dim(0, 0);
  return {{batch, q.time, q.heads * v.size}, {batch, k.heads, k.size, v.size}};
}
void linear_attention(Define &d) {
  Heads q = heads_of(d, 0, "q_num_heads"), k = heads_of(d, 1, "kv_num_heads"), v = heads_of(d, 2, "kv_num_heads");
  DType t = q.x.elem(), wide = accumulator(t);
  X batch = q.x.dims[0];
  Dims state_dims{batch, k.heads, k.size, v.size};
  DType state_type = d.wants(1) ? d.out(1).elem() : d.has(3) ? d.elem(3) : t;
  bool direct = d.wants(1) && state_type == wide;
  Tensor state = direct ? d.out(1) : d.temp(wide, state_dims, "state");
  Tensor y = d.wants(0) ? d.out() : d.temp(t, {batch, q.time, q.heads * v.size}, "y");
  d.compute(state, [&](const Indices &i) { return d.has(3) ? as_type(d.in(3)(i), d.elem(3), wide) : zero(d.b, wide); });
  double scale = d.attr_float("scale");
  int64_t size;
  X factor = scale != 0 ? real(d, scale, wide) : is_const(q.size, &size) ? real(d, 1 / std::sqrt(double(size)), wide)
             : one(d.b, wide) / call("sqrt", {cast(wide, q.size)});
  X group = floordiv(q.heads, k.heads);
  // Time is outermost; every column m of a head's state stands for itself.
  d.block("token", {q.time, batch, k.heads, v.size}, "s", [&](Body &body, const Indices &i) {
    X time = i[0], n = i[1], head = i[2], m = i[3];
    auto key = [&](X r) { return as_type(k.at({n, head, time, r}), t, wide); };
    if (d.has(4)) {
      Tensor decay = d.in(4);
      bool per_head = provably_equal(decay.dims[2], k.heads);
      body.loop(k.size, [&](Body &each, X r) {
        X g = call("exp", {as_type(decay({n, time, per_head ? head : head * k.size + r}), t, wide)});
        each.store(state, {n, head, r, m}, state({n, head, r, m}) * g);
      });
    }
    X value = as_type(v.at({n, head, time, m}), t, wide);
    if (d.has(5)) {
      Tensor beta = d.in(5), seen = body.local("seen", wide, zero(d.b, wide));
      body.loop(k.size, [&](Body &each, X r) { each.store(seen, {}, seen({}) + state({n, head, r, m}) * key(r)); });
      value = as_type(beta.at({n, time, head}), t, wide) * (value - seen({}));
    }
    X written = body.let("value", wide, value);
    body.loop(k.size, [&](Body &each, X r) {
      each.store(state, {n, head, r, m}, state({n, head, r, m}) + key(r) * written);
    });
    body.loop(group, [&](Body &each, X g) {
      Tensor sum = each.local("sum", wide, zero(d.b, wide));
      X reader = head * group + g;
      each.loop(q.size, [&](Body &inner, X r) {
        inner.store(sum, {}, sum({}) + as_type(q.at({n, reader, time, r}), t, wide) * state({n, head, r, m}));
      });
      each.store(y, {n, time, reader * v.size + m}, as_type(sum({}) * factor, wide, t));
    });
  });
  if (d.wants(1) && !direct) d.compute(d.out(1), [&](const Indices &i) { return cast(state_type, state(i)); });
}

}  // namespace mlc
