// Embeddings of com.microsoft: rows of tables, as floats or quantised, their sums normalised.
#include "onnx/contrib.h"

namespace mlc::onnx {

namespace {

// The sum of the embeddings of words, places and segments, normalised; how many words there are. words(i), places(i),
// segments(i): rows of the tables.
struct Tables {
  std::function<Term(Term)> words, segments;
  std::function<Term(Term)> places;  // without ids: the first rows, as many as there are words
  Term gamma, beta, mask, place_ids;
};
void embedded(Expansion &e, const Tables &t) {
  Term ids = e.in(0);
  if (ids.rank() != 2) invalid("expected ids of rank 2, found {}", ids.rank());
  Term x = t.words(ids) + t.places(t.place_ids);
  if (e.has(1)) x = x + t.segments(e.in(1));
  e.give(2, x);
  if (e.wants(1)) {
    Term mask = t.mask ? e.cast(t.mask, DType::I32) : ids - ids;
    e.give(1, e.cast(e.op("ReduceSum", {mask, e.axes({1})}, {attribute("keepdims", int64_t{0})}), DType::I32));
  }
  e.give(0, e.op("LayerNormalization", {x, t.gamma, t.beta}, {epsilon(e, 1e-12f)}));
}
Term rows(Expansion &e, Term table, Term ids, X count) {
  return ids ? e.op("Gather", {table, ids}) : e.slice(table, 0, lit(e.b, int64_t{0}), count);
}

}  // namespace

void embed_layer_norm(Expansion &e) {
  e.integer("mask_index_type", 0);
  X count = e.in(0).dim(1);
  auto table = [&](size_t i) { return [&e, i, count](Term ids) { return rows(e, e.in(i), ids, count); }; };
  embedded(e, {table(2), table(4), table(3), e.in(5), e.in(6), e.maybe(7), e.maybe(8)});
}

// inputs: ids, segment ids, words, places, segments, gamma, beta, mask, then the scales and the zero points of the five
void quantized_embed_layer_norm(Expansion &e) {
  X count = e.in(0).dim(1);
  auto real = [&e](Term x, size_t k) { return e.op("DequantizeLinear", {x, e.in(8 + k), e.in(13 + k)}); };
  auto table = [&](size_t k) {
    return [&e, real, k, count](Term ids) { return real(rows(e, e.in(2 + k), ids, count), k); };
  };
  embedded(e, {table(0), table(2), table(1), real(e.in(5), 3), real(e.in(6), 4), e.maybe(7), e.none()});
}

namespace {

// Codes of a few bits, the first in the lowest bits of a byte -> one a byte, n along the last dimension.
Term unpacked(Expansion &e, Term x, int64_t bits, X n) {
  if (bits == 8) return x;
  std::vector<Term> parts;
  for (int64_t at = 0; at < 8; at += bits) {
    Term shifted = x;
    if (at) shifted = e.op("BitShift", {x, e.num(double(at), DType::U8)}, {attribute("direction", Text("RIGHT"))});
    parts.push_back(e.unsqueeze(e.op("BitwiseAnd", {shifted, e.num(double((1 << bits) - 1), DType::U8)}), -1));
  }
  std::vector<X> dims = x.dims();
  int64_t last = int64_t(dims.size()) - 1;
  dims.back() = dims.back() * (8 / bits);
  Term y = e.reshape(e.concat(parts, last + 1), dims);
  return provably_equal(dims.back(), n) ? y : e.slice(y, last, lit(e.b, int64_t{0}), n);
}

}  // namespace

// Rows of a table that is quantised in blocks along its last dimension.
void gather_block_quantized(Expansion &e) {
  Term data = e.in(0), ids = e.in(1), scales = e.in(2), zeros = e.maybe(3);
  int64_t rank = int64_t(data.rank()), bits = e.integer("bits", 4), block = e.integer("block_size", 128);
  int64_t gathered = e.integer("gather_axis", 0), along = e.integer("quantize_axis", 1);
  if (rank < 2 || scales.rank() != data.rank()) invalid("expected a table and scales of its rank");
  if (gathered != 0 || (along != rank - 1 && along != -1)) unsupported("axes other than the first and the last");
  if (block < 1 || block >= int64_t{1} << 40) invalid("attribute 'block_size': found {}", block);
  bool bytes = data.elem() == DType::U8;
  if (bytes && bits != 2 && bits != 4 && bits != 8) invalid("attribute 'bits': found {}", bits);
  auto row = [&](Term t) { return e.op("Gather", {t, ids}); };
  Term codes = row(data), scale = row(scales), zero = zeros ? row(zeros) : e.none();
  size_t last = codes.rank() - 1;
  if (bytes) {
    codes = unpacked(e, codes, bits, codes.dim(last) * (8 / bits));
    if (zero) zero = unpacked(e, zero, bits, scale.dim(last));
    else zero = e.op("Expand", {e.ints("zero", {1 << (bits - 1)}, {}, DType::U8), e.list(scale.dims())});
  }
  e.give(0, e.op("DequantizeLinear", {codes, scale, zero},
                 {attribute("axis", int64_t(last)), attribute("block_size", block)}));
}

}  // namespace mlc::onnx
