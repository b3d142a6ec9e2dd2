// Boxes, regions, columns and grids of images.
#include <cmath>

#include "ops/window.h"

namespace mlc {

namespace {
using Body = Define::Body;

X real(X n, DType t) {
  int64_t c;
  return is_const(n, &c) ? lit(*n.b, double(c), t) : cast(t, n);
}
X clamped(X index, X n) { return min(max(index, lit(*n.b, int64_t{0})), n - 1); }
}  // namespace

// ---- CenterCropPad: the middle of each axis, or zeros around it

static std::vector<size_t> crop_axes(const OpUse &u) {
  std::vector<int64_t> axes = u.attr_ints("axes");
  if (!u.has_attr("axes"))
    for (size_t k = 0; k < u.rank(0); ++k) axes.push_back(int64_t(k));
  return normal_axes(u, axes, u.rank(0));
}
std::vector<Dims> center_crop_pad_shape(OpUse &u) {
  Dims y = u.dims(0);
  auto axes = crop_axes(u);
  auto size = u.need_values(1);
  if (size.size() != axes.size()) u.fail(fmt::format("expected {} sizes, found {}", axes.size(), size.size()));
  for (size_t k = 0; k < axes.size(); ++k) y[axes[k]] = size[k];
  return {y};
}
void center_crop_pad(Define &d) {
  Tensor x = d.in(0), y = d.out();
  d.compute(y, [&](const Indices &i) {
    Indices at = i;
    X inside = truth(d.b, true);
    for (size_t k : crop_axes(d)) {
      X n = x.dims[k], m = y.dims[k];
      if (provably_equal(n, m)) continue;
      at[k] = i[k] + where(m <= n, floordiv(n - m, 2), -floordiv(m - n, 2));
      if (!is_truth(m <= n, true)) inside = inside && at[k] >= 0 && at[k] < n;
    }
    return where(inside, x(at), zero(d.b, x.elem()));
  });
}

// ---- AffineGrid: theta[n, k, k + 1] times the coordinates of a regular grid in -1 .. 1

std::vector<Dims> affine_grid_shape(OpUse &u) {
  auto size = u.need_values(1);
  if (u.rank(0) != 3 || (size.size() != 4 && size.size() != 5)) u.fail("expected theta of rank 3 and 4 or 5 sizes");
  int64_t k = int64_t(size.size()) - 2;
  u.assume_equal(u.dim(0, 1), u.lit(k), "rows of theta");
  u.assume_equal(u.dim(0, 2), u.lit(k + 1), "columns of theta");
  u.assume_equal(u.dim(0, 0), size[0], "batch of theta");
  Dims y{size[0]};
  y.insert(y.end(), size.begin() + 2, size.end());
  y.push_back(u.lit(k));
  return {y};
}
void affine_grid(Define &d) {
  Tensor theta = d.in(0), y = d.out();
  DType t = y.elem(), wide = accumulator(t);
  size_t rank = y.rank() - 2;
  bool corners = d.attr_int("align_corners");
  auto c = [&](double v) { return lit(d.b, v, wide); };
  d.compute(y, [&](const Indices &i) {
    auto factor = [&](size_t k) { return as_type(theta({i[0], i.back(), d.lit(int64_t(k))}), t, wide); };
    X v = factor(rank);
    for (size_t k = 0; k < rank; ++k) {  // the last spatial dimension is the first coordinate
      X n = y.dims[rank - k], at = cast(wide, i[rank - k]);
      X place =
          corners ? at * c(2) / real(max(n - 1, d.lit(1)), wide) - c(1) : (at * c(2) + c(1)) / real(n, wide) - c(1);
      v = v + factor(k) * place;
    }
    return as_type(v, wide, t);
  });
}

// ---- Col2Im: x[n, c * kernel.., blocks..] added up at the places of the blocks

namespace {
struct Columns {
  Dims image, kernel, blocks;
  std::vector<int64_t> stride, dilation, pads;
};
Columns columns_of(OpUse &u) {
  Columns c;
  for (X v : u.need_values(1)) c.image.push_back(v);
  for (X v : u.need_values(2)) c.kernel.push_back(v);
  size_t n = c.image.size();
  if (u.rank(0) != 3 || c.kernel.size() != n) u.fail("expected x of rank 3, and an image and a block of equal rank");
  c.stride = per_axis(u, "strides", n, 1), c.dilation = per_axis(u, "dilations", n, 1),
  c.pads = per_axis(u, "pads", 2 * n, 0);
  for (size_t k = 0; k < n; ++k) {
    if (c.stride[k] < 1) u.fail("strides must be at least 1");
    X room = c.image[k] + (c.pads[k] + c.pads[n + k]) - ((c.kernel[k] - 1) * c.dilation[k] + 1);
    c.blocks.push_back(floordiv(room, c.stride[k]) + 1);
  }
  return c;
}
}  // namespace

std::vector<Dims> col2im_shape(OpUse &u) {
  Columns c = columns_of(u);
  u.assume_equal(u.dim(0, 2), product(u.b, c.blocks), "number of blocks");
  Dims y{u.dim(0, 0), floordiv(u.dim(0, 1), product(u.b, c.kernel))};
  y.insert(y.end(), c.image.begin(), c.image.end());
  return {y};
}
void col2im(Define &d) {
  Columns c = columns_of(d);
  Tensor x = d.in(0);
  DType t = x.elem(), wide = accumulator(t);
  d.compute(d.out(), [&](const Indices &i) {
    X v = d.reduce("sum", c.kernel, [&](const Indices &r) {
      X inside = truth(d.b, true);
      Indices block;
      for (size_t k = 0; k < r.size(); ++k) {
        X p = i[2 + k] + c.pads[k] - r[k] * c.dilation[k], at = floordiv(p, c.stride[k]);
        inside = inside && at >= 0 && p % c.stride[k] == 0 && at < c.blocks[k];
        block.push_back(at);
      }
      Dims kernel{lit(d.b, int64_t{1})};
      kernel.insert(kernel.end(), c.kernel.begin(), c.kernel.end());
      X column = flatten(concat({i[1]}, r), kernel);
      return where(inside, as_type(x({i[0], column, flatten(block, c.blocks)}), t, wide), zero(d.b, wide));
    });
    return as_type(v, wide, t);
  });
}

// ---- MaxUnpool: inputs x, positions in the inferred shape, output_shape

namespace {
Dims unpooled(OpUse &u) {
  Dims x = u.dims(0);
  if (x.size() < 3) u.fail(fmt::format("expected at least 3 dimensions, found {}", x.size()));
  size_t n = x.size() - 2;
  auto kernel = per_axis(u, "kernel_shape", n, 1), stride = per_axis(u, "strides", n, 1),
       pads = per_axis(u, "pads", 2 * n, 0);
  for (size_t k = 0; k < n; ++k) x[2 + k] = (x[2 + k] - 1) * stride[k] + (kernel[k] - pads[k] - pads[n + k]);
  return x;
}
}  // namespace

std::vector<Dims> max_unpool_shape(OpUse &u) {
  Dims y = unpooled(u);
  if (!u.has(2)) return {y};
  auto want = u.need_values(2);
  if (want.size() != y.size()) u.fail(fmt::format("output_shape: expected {} sizes, found {}", y.size(), want.size()));
  return {Dims(want.begin(), want.end())};
}
void max_unpool(Define &d) {
  Tensor x = d.in(0), at = d.in(1), y = d.out();
  Dims inferred = unpooled(d);
  d.compute(y, [&](const Indices &) { return zero(d.b, y.elem()); });
  d.block("unpool", x.dims, std::string(x.rank(), 's'), [&](Body &body, const Indices &i) {
    X place = body.index("place", at(i), product(d.b, inferred), false);
    Indices to = unflatten(place, inferred);
    for (size_t k = 0; k < to.size(); ++k)
      if (!provably_equal(inferred[k], y.dims[k])) body.assume(to[k] < y.dims[k]);
    body.store(y, to, x(i));
  });
}

// ---- DeformConv: inputs x, w, offset[n, group * kernel * axis, out..], b, mask[n, group * kernel, out..]

namespace {
struct Deform {
  Window window;
  int64_t groups, offset_groups;
};
Deform deform_of(OpUse &u) {
  Dims x = u.dims(0), w = u.dims(1);
  if (x.size() < 3 || w.size() != x.size()) u.fail("expected two tensors of equal rank, at least 3");
  Deform f{Window(u, spatial(x), spatial(w), false), u.attr_int("group"), u.attr_int("offset_group")};
  if (f.groups < 1 || f.offset_groups < 1) u.fail("group and offset_group must be at least 1");
  u.assume_equal(w[1] * f.groups, x[1], "channels of the input");
  X cells = product(u.b, spatial(w)) * f.offset_groups;
  u.assume_equal(u.dim(2, 1), cells * int64_t(x.size() - 2), "channels of the offset");
  for (size_t k = 0; k < f.window.out.size(); ++k)
    u.assume_equal(u.dim(2, 2 + k), f.window.out[k], fmt::format("spatial dimension {} of the offset", k));
  return f;
}
}  // namespace

std::vector<Dims> deform_conv_shape(OpUse &u) {
  Deform f = deform_of(u);
  Dims y{u.dim(0, 0), u.dim(1, 0)};
  y.insert(y.end(), f.window.out.begin(), f.window.out.end());
  return {y};
}
void deform_conv(Define &d) {
  Deform f = deform_of(d);
  Tensor x = d.in(0), w = d.in(1), offset = d.in(2), y = d.out();
  DType t = x.elem(), wide = accumulator(t);
  size_t rank = f.window.in.size();
  X inner = w.dims[1], per_group = floordiv(w.dims[0], f.groups), per_offset = floordiv(x.dims[1], f.offset_groups);
  Dims over{inner};
  over.insert(over.end(), f.window.size.begin(), f.window.size.end());
  over.insert(over.end(), rank, d.lit(2));  // the two cells around a place, on each axis
  d.compute(y, [&](const Indices &i) {
    Indices out(i.begin() + 2, i.end());
    X v = d.reduce("sum", over, [&](const Indices &r) {
      Indices kernel = slice(r, 1, 1 + rank), tap = slice(r, 1 + rank, r.size());
      X channel = f.groups == 1 ? r[0] : floordiv(i[1], per_group) * inner + r[0];
      X group = f.offset_groups == 1 ? d.lit(0) : floordiv(channel, per_offset);
      Dims cells{d.lit(1)};
      cells.insert(cells.end(), f.window.size.begin(), f.window.size.end());
      X cell = flatten(concat({group}, kernel), cells);
      X inside = truth(d.b, true), weight = as_type(w(concat({i[1], r[0]}, kernel)), t, wide);
      if (d.has(4)) weight = weight * as_type(d.in(4)(concat({i[0], cell}, out)), t, wide);
      Indices at{i[0], channel};
      for (size_t k = 0; k < rank; ++k) {
        X shift = as_type(offset(concat({i[0], cell * int64_t(rank) + int64_t(k)}, out)), t, wide);
        X place = cast(wide, f.window.at(k, out[k], kernel[k])) + shift, base = call("floor", {place});
        X p = cast(DType::Index, base) + tap[k];
        X distance = call("abs", {base + cast(wide, tap[k]) - place});
        weight = weight * (one(d.b, wide) - distance);
        inside = inside && p >= 0 && p < f.window.in[k];
        at.push_back(p);
      }
      return where(inside, as_type(x(at), t, wide) * weight, zero(d.b, wide));
    });
    if (d.has(3)) v = v + as_type(d.in(3)({i[1]}), t, wide);
    return as_type(v, wide, t);
  });
}

// ---- RoiAlign: the mean (or maximum) of samples of x inside each bin of a region rois[r, x1 y1 x2 y2]

std::vector<Dims> roi_align_shape(OpUse &u) {
  if (u.rank(0) != 4 || u.rank(1) != 2 || u.rank(2) != 1)
    u.fail("expected x of rank 4, rois of rank 2 and a vector of batches");
  std::string mode = u.attr_str("mode"), places = u.attr_str("coordinate_transformation_mode");
  if (mode != "avg" && mode != "max") u.fail(fmt::format("unknown mode \"{}\"", mode));
  if (places != "half_pixel" && places != "output_half_pixel")
    u.fail(fmt::format("unknown coordinate_transformation_mode \"{}\"", places));
  u.assume_equal(u.dim(1, 0), u.dim(2, 0), "number of regions");
  return {{u.dim(2, 0), u.dim(0, 1), u.lit(u.attr_int("output_height")), u.lit(u.attr_int("output_width"))}};
}
void roi_align(Define &d) {
  Tensor x = d.in(0), rois = d.in(1), batches = d.in(2), y = d.out();
  DType t = x.elem(), wide = accumulator(t);
  bool half = d.attr_str("coordinate_transformation_mode") == "half_pixel", average = d.attr_str("mode") == "avg";
  int64_t ratio = d.attr_int("sampling_ratio");
  auto c = [&](double v) { return lit(d.b, v, wide); };
  X scale = c(d.attr_float("spatial_scale"));
  d.block("align", y.dims, "", [&](Body &body, const Indices &i) {
    X n = body.index("batch", batches({i[0]}), x.dims[0], false);
    struct Side {
      X start, bin, samples;
    };
    auto side = [&](size_t axis, std::string_view name) {  // axis 0: height, 1: width
      auto corner = [&](int64_t k) {
        X v = as_type(rois({i[0], d.lit(k)}), t, wide) * scale;
        return half ? v - c(0.5) : v;
      };
      X start = body.let(fmt::format("{}_start", name), wide, corner(axis ? 0 : 1));
      X length = corner(axis ? 2 : 3) - start;
      if (!half) length = max(length, c(1));
      X bin = body.let(fmt::format("{}_bin", name), wide, length / real(y.dims[2 + axis], wide));
      X samples = ratio > 0 ? d.lit(ratio) : body.let(fmt::format("{}_samples", name), DType::Index,
                                                      cast(DType::Index, call("ceil", {bin})));
      return Side{start, bin, samples};
    };
    Side h = side(0, "h"), w = side(1, "w");
    Tensor sum = body.local("value", wide, average ? c(0) : lowest(d.b, wide));
    body.loop(h.samples, [&](Body &rows, X iy) {
      rows.loop(w.samples, [&](Body &cells, X ix) {
        struct Place {
          X low, high, part;  // cells around a place, and how far it is from the first
        };
        X inside = truth(d.b, true);
        auto place = [&](const Side &s, X out, X sample, X n, std::string_view name) {
          X at = s.start + cast(wide, out) * s.bin + (cast(wide, sample) + c(0.5)) * s.bin / real(s.samples, wide);
          X v = cells.let(name, wide, at);
          inside = inside && v >= c(-1) && v <= real(n, wide);
          X p = call("clamp", {v, c(0), real(n - 1, wide)}), low = clamped(cast(DType::Index, call("floor", {p})), n);
          return Place{low, clamped(low + 1, n), p - call("floor", {p})};
        };
        Place py = place(h, i[2], iy, x.dims[2], "y_at"), px = place(w, i[3], ix, x.dims[3], "x_at");
        cells.when(inside, [&](Body &b) {
          auto cell = [&](bool down, bool right) {
            X wy = down ? py.part : c(1) - py.part, wx = right ? px.part : c(1) - px.part;
            return wy * wx * as_type(x({n, i[1], down ? py.high : py.low, right ? px.high : px.low}), t, wide);
          };
          X a = cell(false, false), bb = cell(false, true), cc = cell(true, false), dd = cell(true, true);
          b.store(sum, {}, average ? sum({}) + (a + bb + cc + dd) : max(sum({}), max(max(a, bb), max(cc, dd))));
        });
        if (!average) cells.when(!inside, [&](Body &b) { b.store(sum, {}, max(sum({}), c(0))); });
      });
    });
    X count = real(max(h.samples * w.samples, d.lit(1)), wide);
    X none = ratio > 0 ? truth(d.b, false) : h.samples <= 0 || w.samples <= 0;
    body.store(y, i, as_type(average ? sum({}) / count : where(none, c(0), sum({})), wide, t));
  });
}

// ---- MaxRoiPool: rois[r, 5] are batch, x1, y1, x2, y2. A region of whole cells, both ends included, in bins of equal
// size, which may overlap by a cell; an empty bin gives 0.

std::vector<Dims> max_roi_pool_shape(OpUse &u) {
  if (u.rank(0) != 4 || u.rank(1) != 2) u.fail("expected x of rank 4 and rois of rank 2");
  u.assume_equal(u.dim(1, 1), u.lit(5), "numbers of a region");
  auto pooled = u.attr_ints("pooled_shape");
  if (pooled.size() != 2 || pooled[0] < 1 || pooled[1] < 1) u.fail("pooled_shape: expected two positive sizes");
  return {{u.dim(1, 0), u.dim(0, 1), u.lit(pooled[0]), u.lit(pooled[1])}};
}
void max_roi_pool(Define &d) {
  Tensor x = d.in(0), rois = d.in(1), y = d.out();
  DType t = x.elem(), wide = accumulator(t);
  auto c = [&](double v) { return lit(d.b, v, wide); };
  X scale = c(d.attr_float("spatial_scale")), none = d.lit(0);
  constexpr double kFar = 0x1p30;  // no picture reaches so far
  d.block("pool", y.dims, "", [&](Body &body, const Indices &i) {
    X n = body.index("batch", cast(DType::I64, as_type(rois({i[0], none}), t, wide)), x.dims[0], false);
    struct Side {
      X begin, count;
    };
    auto side = [&](size_t axis, std::string_view name) {  // axis 0: height, 1: width
      auto cell = [&](int64_t k, std::string_view of) {  // to the nearest, halves away from 0
        X v = body.let(fmt::format("{}_{}", name, of), wide,
                       call("clamp", {as_type(rois({i[0], d.lit(k)}), t, wide) * scale, c(-kFar), c(kFar)}));
        X whole = call("trunc", {v}), half = call("abs", {v - whole}) >= c(0.5);
        return body.let(fmt::format("{}_{}_cell", name, of), DType::Index,
                        cast(DType::Index, where(half, whole + where(v < c(0), c(-1), c(1)), whole)));
      };
      X first = cell(axis ? 1 : 2, "from"), last = cell(axis ? 3 : 4, "to"), size = x.dims[2 + axis];
      X length = max(last - first + 1, d.lit(1));
      X bin = body.let(fmt::format("{}_bin", name), wide, cast(wide, length) / real(y.dims[2 + axis], wide));
      auto edge = [&](X at, std::string_view rounding) {
        X v = cast(DType::Index, call(rounding, {cast(wide, at) * bin}));
        return min(max(first + v, none), size);
      };
      X begin = body.let(fmt::format("{}_begin", name), DType::Index, edge(i[2 + axis], "floor"));
      X end = body.let(fmt::format("{}_end", name), DType::Index, edge(i[2 + axis] + 1, "ceil"));
      return Side{begin, body.let(fmt::format("{}_count", name), DType::Index, max(end - begin, none))};
    };
    Side h = side(0, "h"), w = side(1, "w");
    Tensor most = body.local("most", t, lowest(d.b, t));
    body.loop(h.count, [&](Body &rows, X iy) {
      rows.loop(w.count, [&](Body &cells, X ix) {
        cells.store(most, {}, max(most({}), x({n, i[1], h.begin + iy, w.begin + ix})));
      });
    });
    body.store(y, i, where(h.count == 0 || w.count == 0, zero(d.b, t), most({})));
  });
}

// ---- NonMaxSuppression: inputs boxes[n, b, 4], scores[n, c, b], at most, iou and score thresholds
// Of each class the box with the best score is taken again and again; those that overlap it too much are dropped.

std::vector<Dims> nms_shape(OpUse &u) {
  if (u.rank(0) != 3 || u.rank(1) != 3) u.fail("expected boxes and scores of rank 3");
  u.assume_equal(u.dim(0, 0), u.dim(1, 0), "batch of the scores");
  u.assume_equal(u.dim(0, 1), u.dim(1, 2), "number of boxes");
  u.assume_equal(u.dim(0, 2), u.lit(4), "corners of a box");
  X each = u.dim(1, 2);
  int64_t limit;
  if (auto v = u.values(2); v && v->size() == 1 && is_const((*v)[0], &limit)) each = min(max((*v)[0], u.lit(0)), each);
  u.most = u.dim(1, 0) * u.dim(1, 1) * each;
  return {{}, {u.result_size(0), u.lit(3)}};
}
static void select_boxes(Define &d, const std::function<void(Body &, X place, const Indices &)> &take) {
  constexpr DType f32 = DType::F32, i64 = DType::I64;
  Tensor boxes = d.in(0), scores = d.in(1);
  X n = boxes.dims[1], none = lit(d.b, int64_t{-1});
  auto scalar = [&](size_t input) { return d.in(input).at({d.lit(0)}); };
  auto c = [&](double v) { return lit(d.b, v, f32); };
  bool centre = d.attr_int("center_point_box");
  Tensor found = d.make("found", i64, {}, [&](const Indices &) { return d.lit(0); });
  Tensor alive = d.temp(DType::Bool, {n}, "alive");
  d.block("select", {scores.dims[0], scores.dims[1]}, "ss", [&](Body &body, const Indices &i) {
    auto score = [&](X k) { return scores({i[0], i[1], k}); };
    body.loop(n, [&](Body &b, X k) {
      b.store(alive, {k}, d.has(4) ? score(k) > scalar(4) : truth(d.b, true));
    });
    X most = body.let("most", DType::Index, d.has(2) ? min(cast(DType::Index, scalar(2)), n) : d.lit(0));
    body.loop(max(most, d.lit(0)), [&](Body &turn, X) {
      Tensor best = turn.local("best", i64, none);
      turn.loop(n, [&](Body &b, X k) {  // the first of the best
        X before = clamped(cast(DType::Index, best({})), n);
        b.when(alive({k}) && (best({}) < 0 || score(k) > score(before)),
               [&](Body &t) { t.store(best, {}, cast(i64, k)); });
      });
      turn.when(best({}) >= 0, [&](Body &t) {
        X b = t.let("box", DType::Index, cast(DType::Index, best({})));
        t.assume(b >= 0 && b < n);
        X place = t.let("place", DType::Index, cast(DType::Index, found({})));
        take(t, place, {i[0], i[1], b});
        t.store(found, {}, found({}) + 1);
        struct Box {
          X x0, x1, y0, y1;
        };
        auto corners = [&](X k) {
          auto v = [&](int64_t j) { return boxes({i[0], k, d.lit(j)}); };
          if (!centre) return Box{min(v(1), v(3)), max(v(1), v(3)), min(v(0), v(2)), max(v(0), v(2))};
          X w = v(2) / c(2), h = v(3) / c(2);
          return Box{v(0) - w, v(0) + w, v(1) - h, v(1) + h};
        };
        t.loop(n, [&](Body &all, X k) {
          Box p = corners(b), q = corners(k);
          auto named = [&](std::string_view name, X v) { return all.let(name, f32, v); };
          X w = named("w", min(p.x1, q.x1) - max(p.x0, q.x0)), h = named("h", min(p.y1, q.y1) - max(p.y0, q.y0));
          X a = named("area_a", (p.x1 - p.x0) * (p.y1 - p.y0)), bb = named("area_b", (q.x1 - q.x0) * (q.y1 - q.y0));
          X both = named("both", w * h), whole = a + bb - both;
          X over = w > c(0) && h > c(0) && a > c(0) && bb > c(0) && whole > c(0) &&
                   both / whole > (d.has(3) ? scalar(3) : c(0));
          all.when(over || k == b, [&](Body &drop) { drop.store(alive, {k}, truth(d.b, false)); });
        });
      });
    });
  });
  if (d.wants(0)) d.compute(d.out(), [&](const Indices &) { return found({}); });
}
void nms_count(Define &d) {
  select_boxes(d, [](Body &, X, const Indices &) {});
}
void nms(Define &d) {
  Tensor y = d.out(1);
  select_boxes(d, [&](Body &body, X place, const Indices &what) {
    body.assume(place >= 0 && place < y.dims[0]);
    for (size_t k = 0; k < 3; ++k) body.store(y, {place, d.lit(int64_t(k))}, cast(DType::I64, what[k]));
  });
}

}  // namespace mlc
