// Softmax and normalisations: the mean first, then centred squares; f16 and bf16 are computed in f32 and rounded once.
#include "ops/rules.h"

namespace mlc {

namespace {

// Values with one axis left out, and the whole index again.
Dims without(const Dims &dims, size_t axis) {
  Dims d = dims;
  d.erase(d.begin() + axis);
  return d;
}
Indices with(const Indices &i, size_t axis, X k) {
  Indices at = i;
  at.insert(at.begin() + axis, k);
  return at;
}
X as_number(Define &d, X n, DType t) {
  int64_t c;
  return is_const(n, &c) ? lit(d.b, double(c), t) : cast(t, n);
}

}  // namespace

std::vector<Dims> axis_shape(OpUse &u) {  // like input 0, with an axis
  u.axis("axis", u.rank(0));
  return {u.dims(0)};
}

// exp(x - max) / sum(exp(x - max)), and the logarithm of it: x - max - log(sum)
void softmax(Define &d) {
  Tensor x = d.in(0), y = d.out();
  size_t axis = size_t(d.axis("axis", x.rank()));
  DType t = x.elem(), wide = accumulator(t);
  Dims outer = without(x.dims, axis), over{x.dims[axis]};
  bool log = d.op.name == "LogSoftmax";
  Tensor m = d.make("m", t, outer, [&](const Indices &i) {
    return d.reduce("max", over, [&](const Indices &k) { return x(with(i, axis, k[0])); });
  });
  auto centred = [&](const Indices &i) { return as_type(x(i), t, wide) - as_type(m(without(i, axis)), t, wide); };
  if (log) {
    Tensor s = d.make("s", wide, outer, [&](const Indices &i) {
      return d.reduce("sum", over, [&](const Indices &k) { return call("exp", {centred(with(i, axis, k[0]))}); });
    });
    return d.compute(
        y, [&](const Indices &i) { return as_type(centred(i) - call("log", {s(without(i, axis))}), wide, t); });
  }
  Tensor e = d.make("e", wide, x.dims, [&](const Indices &i) { return call("exp", {centred(i)}); });
  Tensor s = d.make("s", wide, outer, [&](const Indices &i) {
    return d.reduce("sum", over, [&](const Indices &k) { return e(with(i, axis, k[0])); });
  });
  d.compute(y, [&](const Indices &i) { return as_type(e(i) / s(without(i, axis)), wide, t); });
}

// 1 at the first maximum, 0 elsewhere.
void hardmax(Define &d) {
  Tensor x = d.in(0), y = d.out();
  size_t axis = size_t(d.axis("axis", x.rank()));
  DType t = x.elem();
  Tensor first = d.apply("ArgMax", {x}, {d.attr("axis", int64_t(axis)), d.attr("keepdims", int64_t{0})});
  d.compute(y, [&](const Indices &i) {
    return where(cast(DType::I64, i[axis]) == first(without(i, axis)), one(d.b, t), zero(d.b, t));
  });
}

// ---- over the last dimensions

// results: y, mean, 1 / sqrt(var + epsilon); the last two with the normalised dimensions as 1
std::vector<Dims> layer_norm_shape(OpUse &u) {
  Dims x = u.dims(0), stat = x;
  size_t axis = size_t(u.axis("axis", x.size()));
  for (size_t k = axis; k < x.size(); ++k) stat[k] = u.lit(1);
  broadcast(u, x, u.dims(1));
  if (u.has(2)) broadcast(u, x, u.dims(2));
  return {x, stat, stat};
}
void layer_norm(Define &d) {
  Tensor x = d.in(0), scale = d.in(1), y = d.out();
  size_t axis = size_t(d.axis("axis", x.rank()));
  DType t = x.elem(), wide = accumulator(t);
  Dims over = slice(x.dims, axis, x.rank()), outer = slice(x.dims, 0, axis);
  X n = as_number(d, product(d.b, over), wide), eps = lit(d.b, d.attr_float("epsilon"), wide);
  auto value = [&](const Indices &i) { return as_type(x(i), t, wide); };
  auto head = [&](const Indices &i) { return slice(i, 0, axis); };
  Tensor mean = d.make("mean", wide, outer, [&](const Indices &i) {
    return d.reduce("sum", over, [&](const Indices &k) { return value(concat(i, k)); }) / n;
  });
  Tensor inv = d.make("inv", wide, outer, [&](const Indices &i) {
    X var = d.reduce("sum", over, [&](const Indices &k) {
      X c = value(concat(i, k)) - mean(i);
      return c * c;
    }) / n;
    return one(d.b, wide) / call("sqrt", {var + eps});
  });
  d.compute(y, [&](const Indices &i) {
    X v = (value(i) - mean(head(i))) * inv(head(i)) * as_type(scale.at(i), t, wide);
    if (d.has(2)) v = v + as_type(d.in(2).at(i), t, wide);
    return as_type(v, wide, t);
  });
  for (size_t k : {1, 2})
    if (d.wants(k))
      d.compute(d.out(k),
                [&](const Indices &i) { return as_type((k == 1 ? mean : inv)(head(i)), wide, d.out(k).elem()); });
}

std::vector<Dims> rms_norm_shape(OpUse &u) {
  u.axis("axis", u.rank(0));
  broadcast(u, u.dims(0), u.dims(1));
  return {u.dims(0)};
}
void rms_norm(Define &d) {
  Tensor x = d.in(0), scale = d.in(1), y = d.out();
  size_t axis = size_t(d.axis("axis", x.rank()));
  DType t = x.elem(), wide = accumulator(t);
  Dims over = slice(x.dims, axis, x.rank());
  X n = as_number(d, product(d.b, over), wide), eps = lit(d.b, d.attr_float("epsilon"), wide);
  Tensor rms = d.make("rms", wide, slice(x.dims, 0, axis), [&](const Indices &i) {
    X squares = d.reduce("sum", over, [&](const Indices &k) {
      X v = as_type(x(concat(i, k)), t, wide);
      return v * v;
    });
    return call("sqrt", {squares / n + eps});
  });
  d.compute(y, [&](const Indices &i) {
    X v = as_type(x(i), t, wide) / rms(slice(i, 0, axis));
    return as_type(v * as_type(scale.at(i), scale.elem(), wide), wide, y.elem());
  });
}

// ---- over channels: x[n, c, ..]

namespace {

// (x - mean) / sqrt(var + eps) * scale[c] + bias[c] with statistics over (channels of a group, spatial..).
void group_like(Define &d, X groups) {
  Tensor x = d.in(0), scale = d.in(1), bias = d.in(2), y = d.out();
  DType t = x.elem(), wide = accumulator(t);
  X per = floordiv(x.dims[1], groups), eps = lit(d.b, d.attr_float("epsilon"), wide);
  if (provably_equal(groups, x.dims[1])) per = d.lit(1);
  Dims over{per};
  over.insert(over.end(), x.dims.begin() + 2, x.dims.end());
  X n = as_number(d, product(d.b, over), wide);
  auto value = [&](const Indices &i, const Indices &k) {  // element k of group i[1]
    return as_type(x(concat({i[0], i[1] * per + k[0]}, Indices(k.begin() + 1, k.end()))), t, wide);
  };
  Tensor mean = d.make("mean", wide, {x.dims[0], groups}, [&](const Indices &i) {
    return d.reduce("sum", over, [&](const Indices &k) { return value(i, k); }) / n;
  });
  Tensor inv = d.make("inv", wide, {x.dims[0], groups}, [&](const Indices &i) {
    X var = d.reduce("sum", over, [&](const Indices &k) {
      X c = value(i, k) - mean(i);
      return c * c;
    }) / n;
    return one(d.b, wide) / call("sqrt", {var + eps});
  });
  d.compute(y, [&](const Indices &i) {
    Indices g{i[0], floordiv(i[1], per)};
    X v = (as_type(x(i), t, wide) - mean(g)) * inv(g);
    return as_type(v * as_type(scale({i[1]}), t, wide) + as_type(bias({i[1]}), t, wide), wide, t);
  });
}

void channel_vectors(OpUse &u, size_t from, size_t to) {
  if (u.rank(0) < 2) u.fail(fmt::format("expected at least 2 dimensions, found {}", u.rank(0)));
  for (size_t k = from; k < to; ++k) {
    if (u.rank(k) != 1) u.fail(u.input_name(k) + ": expected a vector");
    u.assume_equal(u.dim(k, 0), u.dim(0, 1), "channels");
  }
}

}  // namespace

std::vector<Dims> instance_norm_shape(OpUse &u) {
  channel_vectors(u, 1, 3);
  return {u.dims(0)};
}
void instance_norm(Define &d) { group_like(d, d.dim(0, 1)); }

std::vector<Dims> group_norm_shape(OpUse &u) {
  channel_vectors(u, 1, 3);
  int64_t g = u.attr_int("num_groups"), c;
  if (g < 1 || (is_const(u.dim(0, 1), &c) && c % g)) u.fail(fmt::format("{} groups do not divide the channels", g));
  return {u.dims(0)};
}
void group_norm(Define &d) { group_like(d, d.lit(d.attr_int("num_groups"))); }

// inputs: x, scale, b, mean, var
std::vector<Dims> batch_norm_shape(OpUse &u) {
  channel_vectors(u, 1, 5);
  if (u.attr_int("training_mode")) return {u.dims(0), u.dims(3), u.dims(4)};
  return {u.dims(0)};
}
void batch_norm(Define &d) {
  Tensor x = d.in(0), scale = d.in(1), bias = d.in(2), mean = d.in(3), var = d.in(4), y = d.out();
  DType t = x.elem(), u = accumulator(mean.elem());
  X eps = lit(d.b, d.attr_float("epsilon"), u);
  if (d.attr_int("training_mode")) {  // statistics of this batch; running ones move towards them
    Dims over{x.dims[0]};
    over.insert(over.end(), x.dims.begin() + 2, x.dims.end());
    X n = as_number(d, product(d.b, over), u), keep = lit(d.b, d.attr_float("momentum"), u);
    auto value = [&](const Indices &i, const Indices &k) {
      return as_type(x(concat({k[0], i[0]}, Indices(k.begin() + 1, k.end()))), t, u);
    };
    Tensor m = d.make("m", u, {x.dims[1]}, [&](const Indices &i) {
      return d.reduce("sum", over, [&](const Indices &k) { return value(i, k); }) / n;
    });
    Tensor v = d.make("v", u, {x.dims[1]}, [&](const Indices &i) {
      return d.reduce("sum", over, [&](const Indices &k) {
        X c = value(i, k) - m(i);
        return c * c;
      }) / n;
    });
    for (size_t k : {1, 2}) {
      if (!d.wants(k)) continue;
      Tensor &before = k == 1 ? mean : var, &batch = k == 1 ? m : v;
      d.compute(d.out(k), [&](const Indices &i) {
        return as_type(as_type(before(i), before.elem(), u) * keep + batch(i) * (one(d.b, u) - keep), u, before.elem());
      });
    }
    mean = m, var = v;
  }
  d.compute(y, [&](const Indices &i) {
    auto at = [&](const Tensor &s) { return as_type(s({i[1]}), s.elem(), u); };
    X v = (as_type(x(i), t, u) - at(mean)) / call("sqrt", {at(var) + eps}) * at(scale) + at(bias);
    return as_type(v, u, t);
  });
}

// x / (bias + alpha / size * sum of squares over `size` channels around) ^ beta
void lrn(Define &d) {
  Tensor x = d.in(0), y = d.out();
  DType t = x.elem(), wide = accumulator(t);
  int64_t size = d.attr_int("size"), low = (size - 1) / 2;
  d.compute(y, [&](const Indices &i) {
    X squares = d.reduce("sum", {d.lit(size)}, [&](const Indices &k) {
      Indices at = i;
      at[1] = i[1] + k[0] - low;
      X v = as_type(x(at), t, wide);
      return where(at[1] >= 0 && at[1] < x.dims[1], v * v, zero(d.b, wide));
    });
    X base = lit(d.b, d.attr_float("bias"), wide) + lit(d.b, d.attr_float("alpha") / double(size), wide) * squares;
    return as_type(as_type(x(i), t, wide) / call("pow", {base, lit(d.b, d.attr_float("beta"), wide)}), wide, t);
  });
}
std::vector<Dims> lrn_shape(OpUse &u) {
  if (u.rank(0) < 2) u.fail(fmt::format("expected at least 2 dimensions, found {}", u.rank(0)));
  if (u.attr_int("size") < 1) u.fail("attribute 'size': expected at least 1");
  return {u.dims(0)};
}

// x / (sum |x| or sqrt(sum x^2)) along an axis; 0 where that is 0
void lp_normalization(Define &d) {
  Tensor x = d.in(0), y = d.out();
  size_t axis = size_t(d.axis("axis", x.rank()));
  DType t = x.elem(), wide = accumulator(t);
  int64_t p = d.attr_int("p");
  if (p != 1 && p != 2) d.fail(fmt::format("attribute 'p': expected 1 or 2, found {}", p));
  Tensor norm = d.make("norm", wide, without(x.dims, axis), [&](const Indices &i) {
    X s = d.reduce("sum", {x.dims[axis]}, [&](const Indices &k) {
      X v = as_type(x(with(i, axis, k[0])), t, wide);
      return p == 1 ? call("abs", {v}) : v * v;
    });
    return p == 1 ? s : call("sqrt", {s});
  });
  d.compute(y, [&](const Indices &i) {
    X n = norm(without(i, axis)), none = zero(d.b, wide);
    return as_type(where(n == none, none, as_type(x(i), t, wide) / n), wide, t);
  });
}

// (x - mean) / (sqrt(mean of squares - ..) + 1e-9) over axes; the standard deviation of centred values
void mean_variance_normalization(Define &d) {
  Tensor x = d.in(0), y = d.out();
  DType t = x.elem(), wide = accumulator(t);
  std::vector<bool> gone(x.rank());
  for (size_t k : normal_axes(d, d.attr_ints("axes"), x.rank())) gone[k] = true;
  Dims over, outer;
  for (size_t k = 0; k < x.rank(); ++k) (gone[k] ? over : outer).push_back(x.dims[k]);
  X n = as_number(d, product(d.b, over), wide);
  auto whole = [&](const Indices &i, const Indices &k) {
    Indices at;
    size_t a = 0, b = 0;
    for (bool g : gone) at.push_back(g ? k[a++] : i[b++]);
    return as_type(x(at), t, wide);
  };
  auto rest = [&](const Indices &i) {
    Indices r;
    for (size_t k = 0; k < i.size(); ++k)
      if (!gone[k]) r.push_back(i[k]);
    return r;
  };
  Tensor mean = d.make("mean", wide, outer, [&](const Indices &i) {
    return d.reduce("sum", over, [&](const Indices &k) { return whole(i, k); }) / n;
  });
  Tensor dev = d.make("dev", wide, outer, [&](const Indices &i) {
    X var = d.reduce("sum", over, [&](const Indices &k) {
      X c = whole(i, k) - mean(i);
      return c * c;
    }) / n;
    return call("sqrt", {var}) + lit(d.b, 1e-9, wide);
  });
  d.compute(y, [&](const Indices &i) {
    return as_type((as_type(x(i), t, wide) - mean(rest(i))) / dev(rest(i)), wide, t);
  });
}
std::vector<Dims> mean_variance_normalization_shape(OpUse &u) {
  normal_axes(u, u.attr_ints("axes"), u.rank(0));
  return {u.dims(0)};
}

}  // namespace mlc
