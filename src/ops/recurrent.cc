// RNN, GRU, LSTM. The products with the inputs are one compute for all times; a block then takes the times in turn.
#include <algorithm>
#include <array>

#include "ops/rules.h"

namespace mlc {

namespace {

using Body = Define::Body;

struct Cell {
  std::string_view name;
  int64_t gates;                                      // in the weights, in this order
  std::array<std::string_view, 3> activations;        // defaults of one direction
  size_t count;                                       // of activations
};
constexpr Cell kCells[] = {
    {"RNN", 1, {"Tanh"}, 1}, {"GRU", 2 + 1, {"Sigmoid", "Tanh"}, 2}, {"LSTM", 4, {"Sigmoid", "Tanh", "Tanh"}, 3}};

const Cell &cell_of(const OpUse &u) {
  for (const Cell &c : kCells)
    if (u.op.name.ends_with(c.name)) return c;
  u.fail("no recurrent operator");
}

// Sizes; x[time, batch, input], with layout 1 x[batch, time, input].
struct Sizes {
  bool batch_first;
  int64_t directions;
  X time, batch, hidden;
  Indices state(X direction, X n, X j) const {
    return batch_first ? Indices{n, direction, j} : Indices{direction, n, j};
  }
};
Sizes sizes_of(OpUse &u) {
  const Cell &cell = cell_of(u);
  Dims x = u.dims(0), w = u.dims(1), r = u.dims(2);
  if (x.size() != 3 || w.size() != 3 || r.size() != 3) u.fail("x, w and r have rank 3");
  std::string direction = u.attr_str("direction");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    u.fail(fmt::format("unknown direction \"{}\"", direction));
  bool first = u.attr_int("layout");
  Sizes s{first, direction == "bidirectional" ? 2 : 1, x[first ? 1 : 0], x[first ? 0 : 1], r[2]};
  for (const Dims &d : {w, r}) {
    u.assume_equal(d[0], u.lit(s.directions), "directions of the weights");
    u.assume_equal(d[1], s.hidden * cell.gates, "rows of the weights");
  }
  u.assume_equal(w[2], x[2], "columns of the input weights");
  if (u.has_attr("hidden_size")) u.assume_equal(s.hidden, u.lit(u.attr_int("hidden_size")), "hidden_size");
  return s;
}

// ---- activations

struct Activation {
  std::string_view name;
  double alpha, beta;  // defaults
};
constexpr Activation kActivations[] = {
    {"Relu", 0, 0},         {"Tanh", 0, 0},
    {"Sigmoid", 0, 0},      {"Affine", 1, 0},
    {"LeakyRelu", 0.01, 0}, {"ThresholdedRelu", 1, 0},
    {"ScaledTanh", 1, 1},   {"HardSigmoid", 0.2, 0.5},
    {"Elu", 1, 0},          {"Softsign", 0, 0},
    {"Softplus", 0, 0},
};

struct Function {
  Activation f;
  double clip;  // 0: none
  DType t;
  X operator()(X x) const {
    Build &b = *x.b;
    X none = zero(b, t), one = mlc::one(b, t), alpha = lit(b, f.alpha, t), beta = lit(b, f.beta, t);
    if (clip > 0) x = call("clamp", {x, lit(b, -clip, t), lit(b, clip, t)});
    if (f.name == "Relu") return max(x, none);
    if (f.name == "Tanh") return call("tanh", {x});
    if (f.name == "Sigmoid") return call("sigmoid", {x});
    if (f.name == "Affine") return alpha * x + beta;
    if (f.name == "LeakyRelu") return where(x < none, alpha * x, x);
    if (f.name == "ThresholdedRelu") return where(x >= alpha, x, none);
    if (f.name == "ScaledTanh") return alpha * call("tanh", {beta * x});
    if (f.name == "HardSigmoid") return max(min(alpha * x + beta, one), none);
    if (f.name == "Elu") return where(x < none, alpha * call("expm1", {x}), x);
    if (f.name == "Softsign") return x / (one + call("abs", {x}));
    return call("softplus", {x});
  }
};

std::vector<Function> functions(const Define &d, int64_t direction, DType t) {
  const Cell &cell = cell_of(d);
  std::vector<std::string> names;
  if (auto *list = as<List>(d.attr_value("activations")))
    for (const Expr *e : list->items) names.emplace_back(to<Str>(e).value);
  size_t per = cell.count, directions = d.attr_str("direction") == "bidirectional" ? 2 : 1;
  if (names.empty())
    for (size_t k = 0; k < per * directions; ++k) names.emplace_back(cell.activations[k % per]);
  if (names.size() != per * directions)
    d.fail(fmt::format("expected {} activations, found {}", per * directions, names.size()));
  std::vector<double> alpha = d.attr_floats("activation_alpha"), beta = d.attr_floats("activation_beta");
  double clip = d.has_attr("clip") ? d.attr_float("clip") : 0;
  std::vector<Function> list;
  size_t next_alpha = 0, next_beta = 0;  // given only for those that have one, in order
  for (size_t k = 0; k < names.size(); ++k) {
    auto same = [&](const Activation &a) {
      return std::equal(a.name.begin(), a.name.end(), names[k].begin(), names[k].end(),
                        [](char p, char q) { return (p | 0x20) == (q | 0x20); });
    };
    auto *a = std::find_if(std::begin(kActivations), std::end(kActivations), same);
    if (a == std::end(kActivations)) d.fail(fmt::format("unknown activation \"{}\"", names[k]));
    Activation f = *a;
    if (f.alpha != 0 && next_alpha < alpha.size()) f.alpha = alpha[next_alpha++];
    bool has_beta = f.beta != 0 || f.name == "Affine";
    if (has_beta && next_beta < beta.size()) f.beta = beta[next_beta++];
    if (int64_t(k / per) == direction) list.push_back({f, clip, t});
  }
  return list;
}

// ---- DynamicQuantizeLSTM: products of u8 and the weights' type. x is quantised as a whole, a state row by row in each
// step; both over their range and 0.

enum : size_t { kWScale = 8, kWZero, kRScale, kRZero };

X scale_of(Define &d, X lo, X hi) {
  return where(lo == hi, one(d.b, DType::F32), (hi - lo) / lit(d.b, 255.0, DType::F32));
}
X byte_of(Define &d, X x) {
  return call("round_even", {call("clamp", {x, zero(d.b, DType::F32), lit(d.b, 255.0, DType::F32)})});
}
X difference(X code, X zero) { return cast(DType::I32, code) - cast(DType::I32, zero); }

struct Quantized {
  Tensor code, scale, zero;  // u8 values; of all or of a row
};
Quantized quantized_input(Define &d, const Tensor &x) {
  constexpr DType f32 = DType::F32, u8 = DType::U8;
  auto end = [&](std::string_view kind) {
    return d.make(kind == "min" ? "lo" : "hi", f32, {}, [&](const Indices &) {
      return call(kind, {zero(d.b, f32), d.reduce(kind, x.dims, [&](const Indices &i) { return x(i); })});
    });
  };
  Tensor lo = end("min"), hi = end("max");
  Quantized q;
  q.scale = d.make("x_scale", f32, {}, [&](const Indices &) { return scale_of(d, lo({}), hi({})); });
  q.zero = d.make("x_zero", u8, {}, [&](const Indices &) {
    return cast(u8, byte_of(d, (zero(d.b, f32) - lo({})) / q.scale({})));
  });
  q.code = d.make("codes", u8, x.dims,
                  [&](const Indices &i) { return quantized(x(i) / q.scale({}), q.zero({}), u8); });
  return q;
}
// Row n of the state h, quantised.
void quantize_row(Body &body, const Quantized &q, const Tensor &h, X n) {
  constexpr DType f32 = DType::F32, u8 = DType::U8;
  Define &d = body.d;
  X none = zero(d.b, f32);
  Tensor lo = body.local("lo", f32, none), hi = body.local("hi", f32, none);
  body.loop(h.dims[1], [&](Body &b, X j) {
    b.store(lo, {}, call("min", {lo({}), h({n, j})}));
    b.store(hi, {}, call("max", {hi({}), h({n, j})}));
  });
  body.store(q.scale, {n}, scale_of(d, lo({}), hi({})));
  body.store(q.zero, {n}, cast(u8, byte_of(d, (none - lo({})) / q.scale({n}))));
  body.loop(h.dims[1],
            [&](Body &b, X j) { b.store(q.code, {n, j}, quantized(h({n, j}) / q.scale({n}), q.zero({n}), u8)); });
}

}  // namespace

// results: y[time, direction, batch, hidden], y_h[direction, batch, hidden], y_c; with layout 1 the batch stands first
std::vector<Dims> recurrent_shape(OpUse &u) {
  Sizes s = sizes_of(u);
  X d = u.lit(s.directions);
  Dims state = s.batch_first ? Dims{s.batch, d, s.hidden} : Dims{d, s.batch, s.hidden};
  Dims y = s.batch_first ? Dims{s.batch, s.time, d, s.hidden} : Dims{s.time, d, s.batch, s.hidden};
  std::vector<Dims> all{y, state};
  if (u.op.name.ends_with("LSTM")) all.push_back(state);
  if (u.op.name == "DynamicQuantizeLSTM")
    for (size_t k : {kWScale, kWZero, kRScale, kRZero}) {
      if (u.rank(k) != 1 && u.rank(k) != 2) u.fail(u.input_name(k) + ": expected rank 1 or 2");
      u.assume_equal(u.dim(k, 0), d, "directions of the scales");
      if (u.rank(k) == 2) u.assume_equal(u.dim(k, 1), s.hidden * 4, "scales of a direction");
    }
  return all;
}

// inputs: x, w, r, b (input biases, then recurrent ones), sequence_lens, initial_h, and of LSTM initial_c, p (peepholes
// i o f)
void recurrent(Define &d) {
  Sizes s = sizes_of(d);
  const Cell &cell = cell_of(d);
  Tensor x = d.in(0), w = d.in(1), r = d.in(2);
  DType t = x.elem(), wide = accumulator(t);
  bool lstm = cell.name == "LSTM", gru = cell.name == "GRU";
  bool reset_after = gru && d.attr_int("linear_before_reset"), coupled = lstm && d.attr_int("input_forget");
  bool quantizes = d.op.name == "DynamicQuantizeLSTM";
  X zero_ = zero(d.b, wide), one_ = one(d.b, wide);
  Quantized xq, hq;
  if (quantizes) {
    xq = quantized_input(d, x);
    hq = {d.temp(DType::U8, {s.batch, s.hidden}, "h_codes"), d.temp(t, {s.batch}, "h_scale"),
          d.temp(DType::U8, {s.batch}, "h_zero")};
  }
  auto x_at = [&](X time, X n, X k) { return as_type(s.batch_first ? x({n, time, k}) : x({time, n, k}), t, wide); };

  for (int64_t direction = 0; direction < s.directions; ++direction) {
    X dir = d.lit(direction);
    bool reverse = direction == 1 || d.attr_str("direction") == "reverse";
    auto f = functions(d, direction, wide);
    auto of_row = [&](size_t input, X row) {  // a scale or zero point: of the direction, or of each row
      Tensor p = d.in(input);
      return p.rank() == 2 ? p({dir, row}) : p({dir});
    };
    auto bias = [&](X row) { return as_type(d.in(3)({dir, row}), t, wide); };

    // What every gate gets from the input: x w' + both biases, but for the recurrent one that a reset multiplies.
    Tensor inputs = d.make("inputs", wide, {s.time, s.batch, s.hidden * cell.gates}, [&](const Indices &i) {
      X v = d.reduce("sum", {x.dims[2]}, [&](const Indices &k) {
        X weight = w({dir, i[2], k[0]});
        if (quantizes)
          return difference(xq.code({i[0], i[1], k[0]}), xq.zero({})) * difference(weight, of_row(kWZero, i[2]));
        return x_at(i[0], i[1], k[0]) * as_type(weight, t, wide);
      });
      if (quantizes) v = cast(wide, v) * (xq.scale({}) * of_row(kWScale, i[2]));
      if (!d.has(3)) return v;
      X both = v + bias(i[2]) + bias(s.hidden * cell.gates + i[2]);
      return reset_after ? where(i[2] < s.hidden * 2, both, v + bias(i[2])) : both;
    });

    auto initial = [&](size_t input) {
      return [&, input](const Indices &i) {
        return d.has(input) ? as_type(d.in(input)(s.state(dir, i[0], i[1])), t, wide) : zero_;
      };
    };
    Dims state{s.batch, s.hidden};
    Tensor h = d.make("h", wide, state, initial(5)), next = d.temp(wide, state, "next"), c, reset;
    if (lstm) c = d.make("c", wide, state, initial(6));
    if (gru) reset = d.temp(wide, state, "reset");
    bool lens = d.has(4);

    d.block("step", {s.time, s.batch}, "s", [&](Body &body, const Indices &i) {
      X turn = i[0], n = i[1], length = s.time;
      if (lens) {
        length = body.let("length", DType::Index, cast(DType::Index, d.in(4)({n})));
        body.assume(length >= 0 && length <= s.time);
      }
      auto y_at = [&](X time, X j) { return s.batch_first ? Indices{n, time, dir, j} : Indices{time, dir, n, j}; };
      auto step = [&](Body &now) {
        X time = reverse ? now.let("time", DType::Index, length - 1 - turn) : turn;
        if (reverse && lens) now.assume(time >= 0);
        // The recurrent product of gate g with a state.
        auto product = [&](Body &b, int64_t g, X j, const Tensor &with) {
          X row = s.hidden * g + j;
          if (quantizes) {
            Tensor sum = b.local("sum", DType::I32, d.lit(0));
            b.loop(s.hidden, [&](Body &inner, X k) {
              X weight = difference(r({dir, row, k}), of_row(kRZero, row));
              inner.store(sum, {}, sum({}) + weight * difference(hq.code({n, k}), hq.zero({n})));
            });
            return cast(wide, sum({})) * (hq.scale({n}) * of_row(kRScale, row));
          }
          Tensor sum = b.local("sum", wide, zero_);
          b.loop(s.hidden, [&](Body &inner, X k) {
            inner.store(sum, {}, sum({}) + as_type(r({dir, row, k}), t, wide) * with({n, k}));
          });
          return sum({});
        };
        auto gate = [&](Body &b, int64_t g, X j, const Tensor &with) {
          return inputs({time, n, s.hidden * g + j}) + product(b, g, j, with);
        };
        auto peephole = [&](int64_t g, X j) { return as_type(d.in(7)({dir, s.hidden * g + j}), t, wide); };
        if (quantizes) quantize_row(now, hq, h, n);
        if (gru)
          now.loop(s.hidden, [&](Body &b, X j) {
            X v = f[0](gate(b, 1, j, h));
            b.store(reset, {n, j}, reset_after ? v : v * h({n, j}));
          });
        now.loop(s.hidden, [&](Body &b, X j) {
          if (lstm) {
            bool holes = d.has(7);
            X cell_before = c({n, j});
            auto with = [&](X v, int64_t hole, X state) { return holes ? v + peephole(hole, j) * state : v; };
            X in = b.let("input", wide, f[0](with(gate(b, 0, j, h), 0, cell_before)));
            X forget = coupled ? one_ - in : b.let("forget", wide, f[0](with(gate(b, 2, j, h), 2, cell_before)));
            X value = b.let("value", wide, f[1](gate(b, 3, j, h)));
            X state_now = b.let("state", wide, forget * cell_before + in * value);
            X out = b.let("output", wide, f[0](with(gate(b, 1, j, h), 1, state_now)));
            b.store(c, {n, j}, state_now);
            b.store(next, {n, j}, out * f[2](state_now));
          } else if (gru) {
            X update = b.let("update", wide, f[0](gate(b, 0, j, h)));
            X v;
            if (reset_after) {
              X inner = product(b, 2, j, h);
              if (d.has(3)) inner = inner + bias(s.hidden * 5 + j);
              v = inputs({time, n, s.hidden * 2 + j}) + reset({n, j}) * inner;
            } else {
              v = gate(b, 2, j, reset);
            }
            X value = b.let("value", wide, f[1](v));
            b.store(next, {n, j}, (one_ - update) * value + update * h({n, j}));
          } else {
            b.store(next, {n, j}, f[0](gate(b, 0, j, h)));
          }
        });
        now.loop(s.hidden, [&](Body &b, X j) {
          b.store(h, {n, j}, next({n, j}));
          if (d.wants(0)) b.store(d.out(), y_at(time, j), as_type(next({n, j}), wide, t));
        });
      };
      if (!lens) return step(body);
      body.choose(turn < length, step, [&](Body &rest) {  // behind a sequence's end
        if (d.wants(0)) rest.loop(s.hidden, [&](Body &b, X j) { b.store(d.out(), y_at(turn, j), zero(d.b, t)); });
      });
    });
    for (size_t k : {1, 2}) {
      if (!d.wants(k)) continue;
      Tensor out = d.out(k), &from = k == 1 ? h : c;
      d.block("last", {s.batch, s.hidden}, "", [&](Body &body, const Indices &i) {
        body.store(out, s.state(dir, i[0], i[1]), as_type(from(i), wide, t));
      });
    }
  }
}

}  // namespace mlc
