// Attention as com.microsoft has it, in ONNX's Attention: heads apart, masks as numbers that are added.
#include <cmath>

#include "onnx/contrib.h"

namespace mlc::onnx {

namespace {

// [batch, time, heads * size] -> [batch, heads, time, size]
Term heads_apart(Expansion &e, Term x, int64_t heads) {
  if (x.rank() != 3) invalid("expected rank 3, found {}", x.rank());
  int64_t n;
  if (is_const(x.dim(2), &n) && n % heads) invalid("{} does not divide into {} heads", n, heads);
  return e.transpose(e.reshape(x, {x.dim(0), x.dim(1), lit(e.b, heads), floordiv(x.dim(2), heads)}), {0, 2, 1, 3});
}
Term heads_together(Expansion &e, Term x) {
  return e.reshape(e.transpose(x, {0, 2, 1, 3}), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}

Term counted(Expansion &e, X n) {
  std::vector<Value *> inputs{e.im.integer(0), e.im.index(n), e.im.integer(1)};
  bool sized = interval(n.e, e.im.bounds()).lo >= 0;  // as the sizes of inputs are
  return {&e, e.im.emit(e.use.base, "Range", inputs, {}, sized ? DType::I64 : DType::Invalid,
                        sized ? std::vector<X>{n} : std::vector<X>{})};
}

// A mask in any of its forms as [batch, 1, 1 or queries, total] of 0 and `masked`:
//   [batch] lengths;  [2 * batch] ends, then starts;  [batch, total], [batch, queries, total]: positive where allowed
Term mask_of(Expansion &e, Term mask, X batch, X total, double masked, DType t) {
  Term allowed;
  if (mask.rank() == 1) {
    bool both = provably_equal(mask.dim(0), batch * 2) && !provably_equal(mask.dim(0), batch);
    if (!both && !provably_equal(mask.dim(0), batch)) unsupported("a mask of this length");
    Term place = counted(e, total), limit = e.cast(mask, DType::I64);
    auto column = [&](Term x) { return e.unsqueeze(x, 1); };
    if (both) {
      Term ends = e.slice(limit, 0, lit(e.b, int64_t{0}), batch), starts = e.slice(limit, 0, batch, batch * 2);
      allowed = e.op("And", {e.op("Less", {place, column(ends)}), e.op("GreaterOrEqual", {place, column(starts)})});
    } else {
      allowed = e.op("Less", {place, column(limit)});
    }
  } else if (mask.rank() <= 3) {
    allowed = e.op("Greater", {mask, e.num(0, mask.elem())});
  } else {
    unsupported("a mask of rank {}", mask.rank());
  }
  allowed = allowed.rank() == 2 ? e.op("Unsqueeze", {allowed, e.axes({1, 2})}) : e.unsqueeze(allowed, 1);
  return e.where(allowed, e.num(0, t), e.num(masked, t));
}

struct Parts {  // [batch, heads, time, size]
  Term q, k, v, past_k, past_v, mask, bias;
  bool causal = false;
};

// Results y[batch, time, heads * size], and the keys and values with the past ones before them.
std::vector<Term> attended(Expansion &e, const Parts &p, float scale, bool present) {
  Term mask = p.mask && p.bias ? p.mask + p.bias : p.mask ? p.mask : p.bias;
  std::vector<Attribute> attributes{attribute("is_causal", int64_t{p.causal})};
  if (scale != 0) attributes.push_back(attribute("scale", scale));
  auto y = e.ops("Attention", present ? 3 : 1, {p.q, p.k, p.v, mask ? mask : e.none(), p.past_k, p.past_v}, attributes);
  y[0] = heads_together(e, y[0]);
  return y;
}

// q, k and v side by side in x[batch, time, sum of sizes] -> apart, by heads.
void project(Expansion &e, Parts &p, Term x, int64_t heads) {
  std::vector<int64_t> sizes = e.integers("qkv_hidden_sizes");
  X all = x.dim(2);
  if (!sizes.empty() && sizes.size() != 3)
    invalid("attribute 'qkv_hidden_sizes': expected 3 sizes, found {}", sizes.size());
  X q = sizes.empty() ? floordiv(all, 3) : lit(e.b, sizes[0]), k = sizes.empty() ? q : lit(e.b, sizes[1]);
  auto part = [&](X from, X to) { return heads_apart(e, e.slice(x, 2, from, to), heads); };
  p.q = part(lit(e.b, int64_t{0}), q), p.k = part(q, q + k), p.v = part(q + k, all);
}

int64_t heads_of(Expansion &e, Text name) {
  int64_t heads = e.integer(name, 0);
  if (heads < 1) invalid("attribute '{}' must be positive", name);
  return heads;
}

// past[2, batch, heads, time, size]; present the same
void with_past(Expansion &e, Parts &p, Term past) {
  if (!past) return;
  p.past_k = e.op("Gather", {past, e.index(lit(e.b, int64_t{0}))});
  p.past_v = e.op("Gather", {past, e.index(lit(e.b, int64_t{1}))});
}
X total_of(const Parts &p) { return p.past_k ? p.past_k.dim(2) + p.k.dim(2) : p.k.dim(2); }

void give_attention(Expansion &e, const Parts &p, float scale) {
  auto y = attended(e, p, scale, e.wants(1));
  if (e.wants(1)) e.give(1, e.concat({e.unsqueeze(y[1], 0), e.unsqueeze(y[2], 0)}, 0));
  e.give(0, y[0]);
}

// Attention of one product that holds query, key and value; the places of the inputs for the mask and the past.
void packed_attention(Expansion &e, Term product, size_t mask, size_t past, Term bias) {
  if (e.integer("past_present_share_buffer", 0)) unsupported("a buffer shared by past and present");
  if (e.integer("do_rotary", 0)) unsupported("attribute 'do_rotary'");
  e.integer("rotary_embedding_dim", 0);
  int64_t heads = heads_of(e, "num_heads");
  double masked = e.number("mask_filter_value", -10000);
  Parts p;
  p.causal = e.integer("unidirectional", 0);
  project(e, p, product, heads);
  with_past(e, p, e.maybe(past));
  if (e.has(mask)) p.mask = mask_of(e, e.in(mask), p.q.dim(0), total_of(p), masked, p.q.elem());
  p.bias = bias;
  give_attention(e, p, e.number("scale", 0));
}

}  // namespace

// inputs: x, weights, bias, mask_index, past, attention_bias
void contrib_attention(Expansion &e) {
  Term x = e.op("MatMul", {e.in(0), e.in(1)});
  packed_attention(e, e.has(2) ? x + e.in(2) : x, 3, 4, e.maybe(5));
}

// inputs: x, weights, bias, their scales, mask_index, their zero points, past
void qattention(Expansion &e) {
  Term scale = e.in(3) * e.in(4);
  packed_attention(e, integer_product(e, e.in(0), e.in(1), e.maybe(6), e.maybe(7), scale, e.in(2)), 5, 8, {});
}

// inputs: query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value. Query may hold all three
// ([batch, time, heads, 3, size]), key the last two; keys of rank 4 have their heads apart already.
void multi_head_attention(Expansion &e) {
  for (size_t i : {8, 9})
    if (e.has(i)) unsupported("input {}", i);
  int64_t heads = heads_of(e, "num_heads");
  double masked = e.number("mask_filter_value", -10000);
  Parts p;
  p.causal = e.integer("unidirectional", 0);
  Term q = e.in(0), bias = e.maybe(3);
  auto packed = [&](Term x, int64_t i) {  // part i, [batch, heads, time, size]
    Term part = e.op("Gather", {x, e.index(lit(e.b, i))}, {attribute("axis", int64_t{3})});
    return e.transpose(part, {0, 2, 1, 3});
  };
  if (q.rank() == 5) {
    if (bias) unsupported("a bias of packed queries");
    p.q = packed(q, 0), p.k = packed(q, 1), p.v = packed(q, 2);
  } else {
    Term k = e.in(1), v = e.maybe(2);
    bool apart = k.rank() == 4;
    auto biased = [&](Term x, X from) {
      return bias ? x + e.slice(bias, 0, from, from + x.dim(2)) : x;
    };
    X hidden = q.dim(2);
    p.q = heads_apart(e, biased(q, lit(e.b, int64_t{0})), heads);
    if (k.rank() == 5) {
      if (bias) unsupported("a bias of packed keys");
      p.k = packed(k, 0), p.v = packed(k, 1);
    } else if (!v) {
      invalid("input 2 is missing");
    } else {
      p.k = apart ? k : heads_apart(e, biased(k, hidden), heads);
      p.v = apart ? v : heads_apart(e, biased(v, hidden * 2), heads);
    }
  }
  p.past_k = e.maybe(6), p.past_v = e.maybe(7);
  if (e.has(4)) p.mask = mask_of(e, e.in(4), p.q.dim(0), total_of(p), masked, p.q.elem());
  if (e.has(5)) p.bias = e.in(5);
  if (e.wants(3) && e.is_read(3)) unsupported("output 3: scores");
  auto y = attended(e, p, e.number("scale", 0), e.wants(1) || e.wants(2));
  for (size_t k = 0; k < 4; ++k) e.give(k, k < y.size() ? y[k] : y[0]);
}

// inputs: query (or all three in it), key, value, past_key, past_value, seqlens_k, total_sequence_length, cos_cache,
// sin_cache, position_ids, attention_bias. Row b has seqlens_k[b] + 1 tokens, those of the query last; a query longer
// than that is a prompt that is filled up at its end. A cache that is too short for the total grows.
void group_query_attention(Expansion &e) {
  for (size_t i = 11; i < e.inputs(); ++i)
    if (e.has(i)) unsupported("input {}", i);
  int64_t heads = heads_of(e, "num_heads"), kv_heads = heads_of(e, "kv_num_heads");
  if (heads % kv_heads) invalid("{} query heads do not divide into {}", heads, kv_heads);
  if (!e.integer("causal", 1)) unsupported("attribute 'causal' = 0");
  for (Text name : {"smooth_softmax", "qk_output", "sliding_window_cache"})
    if (int64_t v = e.integer(name, 0); v > 0) unsupported("attribute '{}' = {}", name, v);
  for (Text name : {"k_quant_type", "v_quant_type"})
    if (e.text(name, "NONE") != "NONE") unsupported("attribute '{}'", name);
  e.integer("kv_cache_bit_width", 0);
  int64_t window = e.integer("local_window_size", -1);

  Parts p;
  Term q = e.in(0);
  if (e.has(1)) {
    p.q = heads_apart(e, q, heads), p.k = heads_apart(e, e.in(1), kv_heads), p.v = heads_apart(e, e.in(2), kv_heads);
  } else {
    Term all = heads_apart(e, q, heads + 2 * kv_heads);
    auto part = [&](int64_t from, int64_t to) { return e.slice(all, 1, lit(e.b, from), lit(e.b, to)); };
    p.q = part(0, heads), p.k = part(heads, heads + kv_heads), p.v = part(heads + kv_heads, heads + 2 * kv_heads);
  }
  X batch = p.q.dim(0), time = p.q.dim(2), size = p.k.dim(3);
  Term lengths = e.cast(e.reshape(e.in(5), {batch}), DType::I64) + 1.0;
  Term past = e.op("Max", {lengths - e.index(time), e.num(0, DType::I64)});  // tokens before the query's
  Term place = e.unsqueeze(past, 1) + counted(e, time);                      // [batch, time]

  if (e.integer("do_rotary", 0)) {
    Term ids = e.has(9) ? e.op("Expand", {e.in(9), e.list({batch, time})}) : place;
    std::vector<Attribute> how{attribute("interleaved", e.integer("rotary_interleaved", 0))};
    int64_t half, whole;
    if (is_const(e.in(7).dim(1), &half) && is_const(size, &whole) && 2 * half != whole)
      how.push_back(attribute("rotary_embedding_dim", 2 * half));
    for (Term *x : {&p.q, &p.k}) *x = e.op("RotaryEmbedding", {*x, e.in(7), e.in(8), ids}, how);
  } else {
    e.integer("rotary_interleaved", 0);
  }

  Term total = e.in(6);
  X length = e.im.item(total.v, "input 6 (total_sequence_length)");
  auto cached = [&](Term now, size_t input) {
    int64_t none;
    if (!e.has(input) || (is_const(e.in(input).dim(2), &none) && none == 0)) return now;
    Term cache = e.in(input);
    X more = max(length - cache.dim(2), lit(e.b, int64_t{0})), zero = lit(e.b, int64_t{0});
    int64_t known;
    if (!is_const(simplify(more), &known) || known != 0)
      cache = e.op("Pad", {cache, e.list({zero, zero, zero, zero, zero, zero, simplify(more), zero})});
    return e.op("TensorScatter", {cache, now, past});
  };
  p.k = cached(p.k, 3), e.give(1, p.k);
  p.v = cached(p.v, 4), e.give(2, p.v);

  // Key j may be seen from place i if i - window < j <= i.
  Term key = counted(e, p.k.dim(2)), from = e.unsqueeze(place, 2);
  Term seen = e.op("LessOrEqual", {key, from});
  if (window >= 0)
    seen = e.op("And", {seen, e.op("Greater", {key, from - e.num(double(window), DType::I64)})});
  seen = e.unsqueeze(seen, 1);
  if (e.has(10)) {
    Term bias = e.in(10);
    seen = e.where(seen, bias, e.num(-INFINITY, bias.elem()));
  }
  std::vector<Attribute> attributes;
  if (float scale = e.number("scale", 0); scale != 0) attributes.push_back(attribute("scale", scale));
  if (float cap = e.number("softcap", 0); cap != 0) attributes.push_back(attribute("softcap", cap));
  e.give(0, heads_together(e, e.op("Attention", {p.q, p.k, p.v, seen}, attributes)));
}

// inputs: x, position_ids, cos_cache, sin_cache. One id is the place of the first token.
void contrib_rotary(Expansion &e) {
  Term x = e.in(0), ids = e.in(1), cos = e.in(2);
  if (e.integer("is_packed_batching", 0)) unsupported("attribute 'is_packed_batching'");
  if (float scale = e.number("scale", 1); scale != 1) unsupported("attribute 'scale' = {}", scale);
  int64_t heads = e.integer("num_heads", 0), hidden = 0, half = 0;
  X time = x.dim(x.rank() == 4 ? 2 : 1);
  if (x.rank() == 3 && heads == 0) {
    if (!is_const(x.dim(2), &hidden) || !is_const(cos.dim(1), &half) || half < 1)
      unsupported("a number of heads that is not known");
    heads = hidden / (2 * half);
  }
  ids = e.cast(ids, DType::I64);
  if (ids.rank() == 1) ids = e.op("Expand", {ids + counted(e, time), e.list({x.dim(0), time})});
  std::vector<Attribute> attributes = passed(e, {"interleaved", "rotary_embedding_dim"});
  if (x.rank() == 3) attributes.push_back(attribute("num_heads", heads));
  e.give(0, e.op("RotaryEmbedding", {x, cos, e.in(3), ids}, attributes));
}

}  // namespace mlc::onnx
