// Losses: x[n, c, d..] against classes target[n, d..].
#include "ops/rules.h"

namespace mlc {

namespace {

std::vector<Dims> loss_dims(OpUse &u) {
  std::string r = u.attr_str("reduction");
  if (r != "none" && r != "mean" && r != "sum") u.fail(fmt::format("unknown reduction \"{}\"", r));
  Dims x = u.dims(0), target = u.dims(1);
  if (x.size() < 2 || target.size() + 1 != x.size())
    u.fail(fmt::format("inputs of rank {} and {}", x.size(), target.size()));
  for (size_t k = 0; k < target.size(); ++k)
    u.assume_equal(target[k], x[k ? k + 1 : 0], fmt::format("dimension {} of the target", k));
  if (u.has(2)) {
    if (u.rank(2) != 1) u.fail("input 2 (weight): expected a vector");
    u.assume_equal(u.dim(2, 0), x[1], "length of the weights");
  }
  return {r == "none" ? target : Dims{}};
}

// loss[n, d..] = -x[n, target, d..] * weight[target], 0 where the target is to be ignored; then reduced. The mean is
// over the sum of the weights.
void loss_of(Define &d, const Tensor &x, const Tensor &target, const Tensor &y) {
  DType t = x.elem(), wide = accumulator(t);
  std::string reduction = d.attr_str("reduction");
  bool weighted = d.has(2), ignores = d.has_attr("ignore_index"), mean = reduction == "mean";
  bool divides = mean && (weighted || ignores);
  Tensor loss = reduction == "none" && wide == t ? y : d.temp(wide, target.dims, "loss");
  Tensor weight = divides ? d.temp(wide, target.dims, "weight") : Tensor{};
  d.block("pick", target.dims, "", [&](Define::Body &body, const Indices &i) {
    auto taken = [&](Define::Body &b) {
      X r = b.index("r", target(i), x.dims[1], false);
      Indices at = i;
      at.insert(at.begin() + 1, r);
      X v = -as_type(x(at), t, wide);
      X w = weighted ? as_type(d.in(2)({r}), t, wide) : one(d.b, wide);
      b.store(loss, i, weighted ? v * w : v);
      if (divides) b.store(weight, i, w);
    };
    if (!ignores) return taken(body);
    body.choose(target(i) == d.attr_int("ignore_index"),
                [&](Define::Body &b) {
                  b.store(loss, i, zero(d.b, wide));
                  if (divides) b.store(weight, i, zero(d.b, wide));
                },
                taken);
  });
  auto total = [&](const Tensor &s) { return d.reduce("sum", s.dims, [&](const Indices &i) { return s(i); }); };
  if (reduction == "none") {
    if (wide != t) d.compute(y, [&](const Indices &i) { return cast(t, loss(i)); });
    return;
  }
  d.compute(y, [&](const Indices &) {
    X v = total(loss), n = product(d.b, target.dims);
    int64_t c;
    if (divides) v = v / total(weight);
    else if (mean) v = v / (is_const(n, &c) ? lit(d.b, double(c), wide) : cast(wide, n));
    return as_type(v, wide, t);
  });
}

}  // namespace

std::vector<Dims> nll_loss_shape(OpUse &u) { return loss_dims(u); }
void nll_loss(Define &d) { loss_of(d, d.in(0), d.in(1), d.out()); }

// results: loss, log_prob
std::vector<Dims> cross_entropy_shape(OpUse &u) { return {loss_dims(u)[0], u.dims(0)}; }
void cross_entropy(Define &d) {
  Tensor x = d.in(0), log = d.wants(1) ? d.out(1) : d.temp(x.elem(), x.dims, "log_prob");
  d.apply_into({log}, "LogSoftmax", {x}, {d.attr("axis", int64_t{1})});
  if (d.wants(0)) loss_of(d, log, d.in(1), d.out());
}

}  // namespace mlc
