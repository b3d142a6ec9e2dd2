// FlexAttention (ai.onnx.preview): softmax(score_mod(scale * q k')), prob_mod of that, times v. The two mods are bodies
// of the node; they stand in place.
#include <cmath>

#include "onnx/extras.h"

namespace mlc::onnx {

namespace {

// x[b, h, s, d] -> [b, heads, s, d], each head `heads / h` times.
Term repeated_heads(Expansion &e, Term x, X heads) {
  if (provably_equal(x.dim(1), heads)) return x;
  int64_t q, kv;
  if (is_const(heads, &q) && is_const(x.dim(1), &kv) && (kv == 0 || q % kv))
    invalid("{} query heads do not divide into {}", q, kv);
  std::vector<X> d = x.dims();
  Term wide = e.op("Expand", {e.unsqueeze(x, 2), e.list({d[0], d[1], floordiv(heads, d[1]), d[2], d[3]})});
  return e.reshape(wide, {d[0], heads, d[2], d[3]});
}

}  // namespace

void flex_attention(Expansion &e) {
  Term q = e.in(0), k = e.in(1), v = e.in(2);
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4)
    invalid("expected inputs of rank 4, found {}, {} and {}", q.rank(), k.rank(), v.rank());
  DType t = q.elem(), wide = info(t).bits < 32 ? DType::F32 : t;
  if (int64_t precision = e.integer("softmax_precision", 0)) wide = need_dtype(int32_t(precision));

  int64_t size;
  Term root;  // the square root of the scale, on both sides
  if (e.has_attr("scale")) root = e.num(std::sqrt(e.number("scale", 1)), t);
  else if (is_const(q.dim(3), &size)) root = e.num(std::sqrt(1 / std::sqrt(float(size))), t);
  else root = e.op("Sqrt", {e.op("Reciprocal", {e.op("Sqrt", {e.cast(e.index(q.dim(3)), t)})})});
  k = repeated_heads(e, k, q.dim(1)), v = repeated_heads(e, v, q.dim(1));
  Term scores = e.cast(e.op("MatMul", {q * root, e.transpose(k * root, {0, 1, 3, 2})}), wide);

  bool failed = false;
  auto mod = [&](Text name, Term x) {
    if (!e.use.take(name)) return x;
    Value *y = e.im.inlined(e.node, name, e.scope, {x.v});
    failed = failed || !y;
    if (y && y->type->elem != wide) return e.cast({&e, y}, wide);
    return Term{&e, y ? y : x.v};
  };
  scores = mod("score_mod", scores);
  Term p = mod("prob_mod", e.op("Softmax", {scores}));
  if (failed) e.results[0] = e.im.keep({e.use.base});
  else e.give(0, e.cast(e.op("MatMul", {p, e.cast(v, wide)}), v.elem()));
}

}  // namespace mlc::onnx
