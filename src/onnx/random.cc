// Operators that draw: the state of the generator is a value that goes in last and comes out last. A node with a seed
// has a generator of its own, that of the reference evaluator (RandomNormal: of mlc); the others draw from one of mlc, in
// the order of the nodes.
//   RandomNormal {shape = [n, 4], seed = 7}      s: u64[2] = RngSeed() {seed = 7.0}
//                                                y: f32[n, 4], next: u64[2] = RandomNormal(s)
//   Dropout(x, r, t) {seed = 7}                  s: u32[625] = MersenneTwister() {seed = 7}
//                                                y: f32[n], mask: bool[n], next: u32[625] = Dropout(x, r, t, s)
#include <cmath>

#include "onnx/importer.h"

namespace mlc::onnx {

namespace {

Value *seeded(Importer &im, Text base, float seed) { return im.emit(base, "RngSeed", {}, {attribute("seed", seed)}); }

// The state that a use draws from.
Value *state_of(Importer &im, Use &u) {
  if (im.inside_body()) unsupported("random numbers in the body of If, Loop or Scan");
  auto seed = u.take("seed");
  if (seed && seed->kind != AttrKind::Float && seed->kind != AttrKind::Int)
    invalid("attribute 'seed': expected a number");
  bool real = seed && seed->kind == AttrKind::Float;
  if (real && std::isnan(seed->f)) seed.reset();  // as without one
  if (seed && u.op == "RandomNormal") return seeded(im, u.base, real ? seed->f : float(seed->i));
  if (seed) {
    if (real && std::fabs(seed->f) >= 0x1p63f) invalid("attribute 'seed': {} is too large", seed->f);
    return im.emit(u.base, "MersenneTwister", {}, {attribute("seed", real ? int64_t(seed->f) : seed->i)});
  }
  u.advances = true;
  if (!im.random_state) im.random_state = seeded(im, "random", 0);
  return im.random_state;
}

}  // namespace

void draw_tensor(Importer &im, Use &u) {
  bool like = u.op.ends_with("Like");
  int64_t type = u.take_int("dtype", like ? 0 : 1);
  std::vector<X> dims;
  if (like) {
    if (u.inputs.size() != 1 || !u.inputs[0]) invalid("expected one input");
    const IrType *t = u.inputs[0]->type;
    for (const Expr *d : t->dims) dims.emplace_back(im.b, d);
    u.wanted = type ? need_dtype(int32_t(type)) : t->elem;
    u.op.resize(u.op.size() - 4);
  } else {
    auto shape = u.take("shape");
    if (!shape || shape->kind != AttrKind::Ints) invalid("attribute 'shape': expected ints");
    for (int64_t d : shape->ints) {
      if (d < 0) invalid("attribute 'shape': a dimension is {}", d);
      dims.push_back(lit(im.b, d));
    }
    u.wanted = need_dtype(int32_t(type));
  }
  u.wanted_dims = dims;
  u.inputs = {state_of(im, u)};
  u.outputs = 2;
}

// Bernoulli, Multinomial: the state is the second input.
void draw_each(Importer &im, Use &u) {
  u.set_input(1, state_of(im, u));
  u.outputs = 2;
}

void draw_dropout(Importer &im, Use &u) {
  Value *training = u.input(2);
  if (!training || im.is_known(training, false)) return void(u.take("seed"));
  u.set_input(3, state_of(im, u));
  u.outputs = 3;
}

}  // namespace mlc::onnx
