// Shapes that only the running program knows, made plain for operators whose shapes are lists of sizes: no 0 for "as it
// is", no -1 for "the rest", no 1 for "as wide as it is".
//   Reshape(x, s) of f32[n, 12]        c = Equal(s, 0); s1 = Where(c, [n, 12], s); ..; Reshape(x, s4)
#include "onnx/importer.h"

namespace mlc::onnx {

namespace {

// How many elements the shape has; -1: there is nothing to do, or nothing to be done.
int64_t unknown_shape(Importer &im, Use &u) {
  int64_t n;
  if (!u.input(0) || !u.input(1) || u.inputs[1]->literal || im.known(u.inputs[1]) || u.inputs[1]->type->rank() != 1)
    return -1;
  return int_value(u.inputs[1]->type->dims[0], &n) && n <= 16 ? n : -1;
}

}  // namespace

void unknown_reshape(Importer &im, Use &u) {
  int64_t n = unknown_shape(im, u);
  if (n < 0) return;
  std::vector<X> own;
  X total = lit(im.b, int64_t{1});
  for (const Expr *d : u.inputs[0]->type->dims) own.emplace_back(im.b, d), total = total * own.back();
  own.resize(size_t(n), lit(im.b, int64_t{0}));
  Value *shape = u.inputs[1];
  Text base = shape->name;
  const Attribute *allow = u.attribute("allowzero");
  if (!allow || !allow->i) {
    Value *zero = im.emit(base, "Equal", {shape, im.integer(0)});
    shape = im.emit(base, "Where", {zero, im.list(own), shape});
  }
  Value *open = im.emit(base, "Equal", {shape, im.integer(-1)});
  Value *rest = im.emit(base, "Where", {open, im.integer(1), shape});
  rest = im.emit(base, "ReduceProd", {rest}, {attribute("keepdims", int64_t{0})});
  rest = im.emit(base, "Div", {im.index(total), rest});
  u.inputs[1] = im.emit(base, "Where", {open, rest, shape});
}

void unknown_expand(Importer &im, Use &u) {
  int64_t n = unknown_shape(im, u), rank = n < 0 ? 0 : int64_t(u.inputs[0]->type->rank());
  if (n < 0) return;
  Value *shape = u.inputs[1];
  Text base = shape->name;
  std::vector<X> own;
  for (int64_t i = rank; i < n; ++i) own.push_back(lit(im.b, int64_t{1}));
  for (const Expr *d : u.inputs[0]->type->dims) own.emplace_back(im.b, d);
  if (n < rank)
    shape = im.emit(base, "Concat", {im.list(std::vector<int64_t>(size_t(rank - n), 1)), shape},
                    {attribute("axis", int64_t{0})});
  Value *narrow = im.emit(base, "Equal", {shape, im.integer(1)});
  u.inputs[1] = im.emit(base, "Where", {narrow, im.list(own), shape});
}

// Exporters write "to the end" as 1000000000 or 2^31 - 1: for an unknown size that is a fact, to be checked once.
void far_slice_end(Importer &im, Use &u) {
  constexpr int64_t kLarge = 1000000000;
  if (!u.input(0)) return;
  Exprs dims = u.inputs[0]->type->dims;
  int64_t rank = int64_t(dims.size()), size;
  auto starts = u.input(1) ? im.known_ints(u.input(1)) : std::nullopt;
  auto ends = u.input(2) ? im.known_ints(u.input(2)) : std::nullopt;
  auto axes = u.input(3) ? im.known_ints(u.input(3)) : std::nullopt;
  auto steps = u.input(4) ? im.known_ints(u.input(4)) : std::nullopt;
  if (!starts || !ends || (u.input(3) && !axes) || (u.input(4) && !steps) || ends->size() > dims.size()) return;
  bool any = false;
  for (size_t k = 0; k < ends->size(); ++k) {
    int64_t axis = axes && k < axes->size() ? (*axes)[k] : int64_t(k);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || (steps && (k >= steps->size() || (*steps)[k] < 0))) continue;
    const Expr *n = dims[size_t(axis)];
    if ((*ends)[k] < kLarge || (*ends)[k] == INT64_MAX || int_value(n, &size)) continue;
    u.facts.push_back((X(im.b, n) <= (*ends)[k]).e);
    (*ends)[k] = INT64_MAX, any = true;
  }
  if (!any) return;
  u.inputs[2] = im.list(*ends);
  // All of one type: the others were i32 if this was.
  u.inputs[1] = im.list(*starts);
  if (axes) u.inputs[3] = im.list(*axes);
  if (steps) u.inputs[4] = im.list(*steps);
}

}  // namespace mlc::onnx
