// Ensembles of decision trees.
#include "ops/rules.h"

namespace mlc {

namespace {

using Body = Define::Body;

enum : size_t { kX, kRoots, kFeatures, kSplits, kYes, kNo, kTargets, kWeights, kModes, kMissing };

// What a node asks of a value: mode 0 <=, 1 <, 2 >=, 3 >, 4 ==, 5 !=.
X test(Define &d, X mode, X v, X split) {
  X yes = v != split;
  const X others[] = {v == split, v > split, v >= split, v < split, v <= split};
  for (int64_t k = 4; const X &o : others) yes = where(mode == k--, o, yes);
  return d.has(kModes) ? yes : v <= split;
}

}  // namespace

// x[row, feature]; a place in the trees is a node, or -1 - leaf: roots[tree], yes[node] and no[node] are places, at
// most `depth` nodes are on a way. targets[leaf, j] and weights[leaf, j]: what a leaf gives to which targets; -1:
// nothing.
std::vector<Dims> tree_ensemble_shape(OpUse &u) {
  if (u.rank(kX) != 2 || u.rank(kTargets) != 2 || u.rank(kWeights) != 2)
    u.fail("expected matrices as x, targets and weights");
  for (size_t k : {kRoots, kFeatures, kSplits, kYes, kNo, kModes, kMissing}) {
    if (!u.has(k)) continue;
    if (u.rank(k) != 1) u.fail(u.input_name(k) + ": expected a vector");
    if (k != kRoots) u.assume_equal(u.dim(k, 0), u.dim(kFeatures, 0), "nodes");
  }
  for (size_t k : {0, 1}) u.assume_equal(u.dim(kWeights, k), u.dim(kTargets, k), "shape of the weights");
  std::string aggregate = u.attr_str("aggregate");
  if (aggregate != "SUM" && aggregate != "AVERAGE" && aggregate != "MIN" && aggregate != "MAX")
    u.fail(fmt::format("unknown aggregate \"{}\"", aggregate));
  if (u.attr_int("depth") < 0 || u.attr_int("n_targets") < 1)
    u.fail("attributes 'depth' and 'n_targets': expected at least 0 and 1");
  return {{u.dim(kX, 0), u.lit(u.attr_int("n_targets"))}};
}

void tree_ensemble(Define &d) {
  constexpr DType i32 = DType::I32;
  Tensor x = d.in(kX), roots = d.in(kRoots), targets = d.in(kTargets), weights = d.in(kWeights), y = d.out();
  DType t = x.elem(), w = y.elem(), wide = accumulator(w);
  X rows = x.dims[0], trees = roots.dims[0], nodes = d.dim(kFeatures, 0), depth = d.lit(d.attr_int("depth"));

  Tensor leaf = d.temp(i32, {rows, trees}, "leaf");
  d.block("walk", {rows, trees}, "", [&](Body &body, const Indices &i) {
    Tensor at = body.local("place", i32, roots({i[1]}));
    body.loop(depth, [&](Body &level, X) {
      level.when(at({}) >= 0, [&](Body &b) {
        X node = b.index("node", at({}), nodes, false);
        X v = b.let("v", t, x({i[0], b.index("feature", d.in(kFeatures)({node}), x.dims[1], false)}));
        X mode = d.has(kModes) ? b.let("mode", DType::U8, d.in(kModes)({node})) : d.lit(0);
        X yes = test(d, mode, v, d.in(kSplits)({node}));
        if (d.has(kMissing)) yes = yes || (d.in(kMissing)({node}) && call("isnan", {v}));
        b.store(at, {}, where(yes, d.in(kYes)({node}), d.in(kNo)({node})));
      });
    });
    body.store(leaf, i, at({}));
  });

  std::string how = d.attr_str("aggregate");
  bool min = how == "MIN", max = how == "MAX", average = how == "AVERAGE";
  Tensor total = average || wide != w ? d.temp(wide, y.dims, "total") : y;
  X start = min ? highest(d.b, wide) : max ? lowest(d.b, wide) : zero(d.b, wide);
  d.compute(total, [&](const Indices &) { return start; });
  d.block("gather", {rows, trees}, "ps", [&](Body &body, const Indices &i) {
    X at = body.index("row", d.lit(-1) - cast(DType::Index, leaf(i)), targets.dims[0], false);
    body.loop(targets.dims[1], [&](Body &b, X j) {
      b.when(targets({at, j}) >= 0, [&](Body &vote) {
        X k = vote.index("k", targets({at, j}), y.dims[1], false);
        X now = total({i[0], k}), more = as_type(weights({at, j}), w, wide);
        vote.store(total, {i[0], k}, min ? mlc::min(now, more) : max ? mlc::max(now, more) : now + more);
      });
    });
  });
  if (average)
    d.compute(y, [&](const Indices &i) { return as_type(total(i) / cast(wide, trees), wide, w); });
  else if (wide != w)
    d.compute(y, [&](const Indices &i) { return cast(w, total(i)); });
}

}  // namespace mlc
