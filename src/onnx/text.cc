// A pool of strings: the n-grams are those of places in the pool, -1 for a string that is not in it.
//   TfIdfVectorizer(x) {pool_strings = ["a", "b"]}
//     hits = Equal(Unsqueeze(x, [-1]), @pool);  places = Where(any of hits, ArgMax(hits), -1)
//     TfIdfVectorizer(places) {pool_int64s = [0, 1]}
#include "onnx/importer.h"

namespace mlc::onnx {

void number_pool(Importer &im, Use &u) {
  auto pool = u.take("pool_strings");
  if (!pool || pool->kind != AttrKind::Strings || pool->strings.empty()) return;
  if (u.attribute("pool_int64s")) invalid("attributes 'pool_int64s' and 'pool_strings' exclude each other");
  if (!u.input(0)) invalid("input 0 is missing");
  std::vector<const Expr *> words;
  std::unordered_map<Text, int64_t> places;
  std::vector<int64_t> numbers;
  for (Text s : pool->strings) {
    auto [it, added] = places.emplace(s, int64_t(words.size()));
    if (added) words.push_back(im.b.string(s));
    numbers.push_back(it->second);
  }
  const IrType *type = im.b.tensor(DType::Str, im.b.one<const Expr *>(im.b.integer(int64_t(words.size()))));
  Value *list = im.constant("pool", "", type, std::move(words));
  Text base = u.inputs[0]->name;
  Attribute last = attribute("axis", int64_t{-1}), drop = attribute("keepdims", int64_t{0});
  Value *column = im.emit(base, "Unsqueeze", {u.inputs[0], im.list(std::vector<int64_t>{-1})});
  Value *hits = im.emit(base, "Cast", {im.emit(base, "Equal", {column, list})}, {}, DType::I32);
  Value *any = im.emit(base, "ReduceMax", {hits, im.list(std::vector<int64_t>{-1})}, {drop});
  any = im.emit(base, "Cast", {any}, {}, DType::Bool);
  u.inputs[0] = im.emit(base, "Where", {any, im.emit(base, "ArgMax", {hits}, {last, drop}), im.integer(-1)});
  u.set(attribute("pool_int64s", numbers));
}

}  // namespace mlc::onnx
