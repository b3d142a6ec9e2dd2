// Decision trees of ai.onnx.ml, old form and new, as the table's TreeEnsemble: lists of attributes become constants, a
// node is told from a leaf by its sign, and a node that asks for one of several values becomes a chain of equalities.
#include <cmath>
#include <map>

#include "onnx/ml.h"

namespace mlc::onnx {

namespace {

constexpr int64_t kEqual = 4, kMember = 6;

struct Trees {
  std::vector<int64_t> roots, features, yes, no, modes, missing;  // places: a node, or -1 - leaf
  std::vector<double> splits;
  std::vector<std::vector<std::pair<int64_t, double>>> leaves;    // target, weight
  DType type = DType::F32;                                        // of splits and weights

  int64_t leaf(std::vector<std::pair<int64_t, double>> gives) {
    leaves.push_back(std::move(gives));
    return -int64_t(leaves.size());
  }
};

template <class T> void same_length(Text name, const std::vector<T> &list, size_t n) {
  if (list.size() != n) invalid("attribute '{}': expected {} elements, found {}", name, n, list.size());
}

// The longest way from each root to a leaf. Invalid where a node is its own descendant.
int64_t depth_of(const Trees &t) {
  enum : uint8_t { New, Open, Done };
  std::vector<uint8_t> state(t.yes.size(), New);
  std::vector<int64_t> depth(t.yes.size(), 0);
  int64_t deepest = 0;
  for (int64_t root : t.roots) {
    std::vector<int64_t> stack{root};
    while (!stack.empty()) {
      int64_t at = stack.back();
      if (at < 0 || state[size_t(at)] == Done) {
        stack.pop_back();
        continue;
      }
      size_t n = size_t(at);
      if (state[n] == New) {
        state[n] = Open;
        for (int64_t next : {t.yes[n], t.no[n]}) {
          if (next >= 0 && state[size_t(next)] == Open) invalid("a node of a tree is its own descendant");
          stack.push_back(next);
        }
        continue;
      }
      for (int64_t next : {t.yes[n], t.no[n]}) depth[n] = std::max(depth[n], next < 0 ? 1 : 1 + depth[size_t(next)]);
      state[n] = Done;
      stack.pop_back();
    }
    if (root >= 0) deepest = std::max(deepest, depth[size_t(root)]);
  }
  return deepest;
}

Term constant(Expansion &e, Text name, const std::vector<double> &v, std::vector<int64_t> dims, DType t) {
  if (t == DType::F64) return e.doubles(name, v, std::move(dims));
  return e.floats(name, std::vector<float>(v.begin(), v.end()), std::move(dims), t);
}

// Sums (or means, least, largest) of what the leaves give: [rows, targets], of the type of the weights.
Term ensemble(Expansion &e, Term x, const Trees &t, int64_t targets, Text aggregate, DType weights) {
  int64_t nodes = int64_t(t.features.size()), leaves = int64_t(t.leaves.size()), most = 1;
  if (targets < 1 || t.roots.empty() || leaves == 0) invalid("expected trees with leaves, and targets");
  for (auto &l : t.leaves) most = std::max(most, int64_t(l.size()));
  if (most > 1 && most * leaves > (int64_t{1} << 24)) unsupported("leaves that give to {} targets each", most);
  std::vector<int64_t> target(size_t(leaves * most), -1);
  std::vector<double> weight(size_t(leaves * most), 0);
  for (size_t l = 0; l < t.leaves.size(); ++l)
    for (size_t j = 0; j < t.leaves[l].size(); ++j) {
      auto [to, w] = t.leaves[l][j];
      if (to < 0 || to >= targets) invalid("a leaf gives to target {} of {}", to, targets);
      target[l * size_t(most) + j] = to, weight[l * size_t(most) + j] = w;
    }
  auto ints = [&](Text name, const std::vector<int64_t> &v, DType type = DType::I32) {
    return e.ints(name, v, {int64_t(v.size())}, type);
  };
  bool less_equal = std::all_of(t.modes.begin(), t.modes.end(), [](int64_t m) { return m == 0; });
  bool missing = std::any_of(t.missing.begin(), t.missing.end(), [](int64_t m) { return m != 0; });
  std::vector<Term> inputs{x, ints("roots", t.roots), ints("features", t.features),
                           constant(e, "splits", t.splits, {nodes}, x.elem()), ints("yes", t.yes), ints("no", t.no),
                           e.ints("targets", target, {leaves, most}, DType::I32),
                           constant(e, "weights", weight, {leaves, most}, weights),
                           less_equal ? e.none() : ints("modes", t.modes, DType::U8),
                           missing ? ints("missing", t.missing, DType::Bool) : e.none()};
  return e.op("TreeEnsemble", inputs, {attribute("aggregate", aggregate), attribute("depth", depth_of(t)),
                                       attribute("n_targets", targets)});
}

// ---- the old form: nodes and leaves in one list, each known by the numbers of its tree and of itself

// A list of floats, or the tensor of that name with _as_tensor.
std::vector<double> values(Expansion &e, const std::string &name, DType *type) {
  if (auto a = e.array(e.b.arena.text(name + "_as_tensor"))) {
    *type = a->type;
    std::vector<double> v;
    for (int64_t i = 0; i < a->size(); ++i) v.push_back(to_double(a->type, a->get(i)));
    return v;
  }
  std::vector<float> v = e.numbers(e.b.arena.text(name));
  return {v.begin(), v.end()};
}

Trees old_trees(Expansion &e, const std::string &prefix) {  // "target" or "class"
  static constexpr Text kModes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"};
  Trees t;
  DType type = DType::F32;
  std::vector<double> splits = values(e, "nodes_values", &t.type), weights = values(e, prefix + "_weights", &type);
  values(e, "nodes_hitrates", &type);
  auto list = [&](const char *name) { return e.integers(name); };
  std::vector<int64_t> trees = list("nodes_treeids"), ids = list("nodes_nodeids"), features = list("nodes_featureids"),
                       yes = list("nodes_truenodeids"), no = list("nodes_falsenodeids"),
                       missing = list("nodes_missing_value_tracks_true");
  std::vector<Text> modes = e.texts("nodes_modes");
  std::string to = prefix == "class" ? "class_ids" : "target_ids";
  std::vector<int64_t> leaf_trees = e.integers(e.b.arena.text(prefix + "_treeids")),
                       leaf_ids = e.integers(e.b.arena.text(prefix + "_nodeids")),
                       targets = e.integers(e.b.arena.text(to));
  size_t n = trees.size();
  same_length("nodes_nodeids", ids, n), same_length("nodes_featureids", features, n);
  same_length("nodes_truenodeids", yes, n), same_length("nodes_falsenodeids", no, n);
  same_length("nodes_modes", modes, n), same_length("nodes_values", splits, n);
  if (!missing.empty()) same_length("nodes_missing_value_tracks_true", missing, n);
  same_length(prefix + "_nodeids", leaf_ids, leaf_trees.size()), same_length(to, targets, leaf_trees.size());
  same_length(prefix + "_weights", weights, leaf_trees.size());

  using Key = std::pair<int64_t, int64_t>;  // tree, node
  std::map<Key, std::vector<std::pair<int64_t, double>>> gives;
  for (size_t i = 0; i < targets.size(); ++i) gives[{leaf_trees[i], leaf_ids[i]}].push_back({targets[i], weights[i]});
  std::map<Key, int64_t> place;
  std::vector<size_t> inner;
  for (size_t i = 0; i < n; ++i) {
    Key key{trees[i], ids[i]};
    int64_t p = modes[i] == "LEAF" ? t.leaf(gives[key]) : int64_t(inner.size());
    if (!place.emplace(key, p).second) invalid("node {} of tree {} is given twice", ids[i], trees[i]);
    if (p >= 0) inner.push_back(i);
    if (i == 0 || trees[i] != trees[i - 1]) t.roots.push_back(p);
  }
  for (size_t i : inner) {
    auto mode = std::find(std::begin(kModes), std::end(kModes), modes[i]);
    if (mode == std::end(kModes)) invalid("unknown mode \"{}\" of a node", one_line(modes[i]));
    auto at = [&](int64_t node) {
      auto it = place.find({trees[i], node});
      if (it == place.end()) invalid("tree {} has no node {}", trees[i], node);
      return it->second;
    };
    t.features.push_back(features[i]), t.splits.push_back(splits[i]), t.modes.push_back(mode - kModes);
    t.yes.push_back(at(yes[i])), t.no.push_back(at(no[i])), t.missing.push_back(missing.empty() ? 0 : missing[i] != 0);
  }
  return t;
}

Term based(Expansion &e, Term y, const std::vector<double> &base) {
  bool none = std::all_of(base.begin(), base.end(), [](double v) { return v == 0; });
  return none ? y : y + constant(e, "base", base, {int64_t(base.size())}, y.elem());
}

}  // namespace

void tree_regressor(Expansion &e) {
  Trees t = old_trees(e, "target");
  Term x = e.cast(features(e, e.in(0)), t.type);
  DType type = DType::F32;
  std::vector<double> base = values(e, "base_values", &type);
  Text aggregate = e.text("aggregate_function", "SUM"), transform = post_transform(e);
  Term y = ensemble(e, x, t, e.integer("n_targets", 1), aggregate, t.type);
  e.give(0, e.cast(transformed(e, based(e, y, base), transform), DType::F32));
}

void tree_classifier(Expansion &e) {
  Trees t = old_trees(e, "class");
  Term x = e.cast(features(e, e.in(0)), t.type);
  Labels l = labels(e, "classlabels_int64s", "classlabels_strings");
  DType type = DType::F32;
  std::vector<double> base = values(e, "base_values", &type);
  Text transform = post_transform(e);
  if (l.count < 2) unsupported("a classifier of {} classes", l.count);
  std::set<int64_t> known;
  bool positive = true;
  for (auto &leaf : t.leaves)
    for (auto [to, w] : leaf) known.insert(to), positive = positive && w >= 0;
  if (l.count > 2 || known.size() != 1) {
    Term y = e.cast(based(e, ensemble(e, x, t, int64_t(l.count), "SUM", t.type), base), DType::F32);
    give_label(e, l, best(e, y));
    return e.give(1, transformed(e, y, transform));
  }
  for (auto &leaf : t.leaves)
    for (auto &[to, w] : leaf) to = 0;
  if (base.size() == 2) base = {base[1]};
  Term s = e.cast(based(e, ensemble(e, x, t, 1, "SUM", t.type), base), DType::F32);
  Term over = e.op("Greater", {s, e.num(positive ? 0.5 : 0.0, DType::F32)});
  give_label(e, l, e.op("Squeeze", {e.cast(over, DType::I64), e.axes({1})}));
  e.give(1, two_classes(e, s, transform, positive));
}

// ---- the new form: nodes and leaves in lists of their own

void tree_ensemble(Expansion &e) {
  auto need = [&](Text name) {
    auto a = e.array(name);
    if (!a) invalid("attribute '{}' is missing", name);
    std::vector<double> v;
    for (int64_t i = 0; i < a->size(); ++i) v.push_back(to_double(a->type, a->get(i)));
    return v;
  };
  auto list = [&](Text name) { return e.integers(name); };
  Trees t;
  Term x = e.in(0);
  t.splits = need("nodes_splits");
  std::vector<double> modes = need("nodes_modes"), weights = need("leaf_weights"), members;
  if (e.has_attr("membership_values")) members = need("membership_values");
  e.array("nodes_hitrates");
  t.features = list("nodes_featureids"), t.roots = list("tree_roots");
  std::vector<int64_t> yes = list("nodes_truenodeids"), no = list("nodes_falsenodeids"),
                       targets = list("leaf_targetids"), yes_leaf = list("nodes_trueleafs"),
                       no_leaf = list("nodes_falseleafs");
  t.missing = list("nodes_missing_value_tracks_true");
  size_t n = t.splits.size();
  same_length("nodes_featureids", t.features, n), same_length("nodes_modes", modes, n);
  same_length("nodes_truenodeids", yes, n), same_length("nodes_falsenodeids", no, n);
  same_length("nodes_trueleafs", yes_leaf, n), same_length("nodes_falseleafs", no_leaf, n);
  same_length("leaf_targetids", targets, weights.size());
  if (t.missing.empty()) t.missing.assign(n, 0);
  same_length("nodes_missing_value_tracks_true", t.missing, n);
  for (size_t i = 0; i < targets.size(); ++i) t.leaf({{targets[i], weights[i]}});
  auto place = [&](int64_t at, bool leaf) {
    if (at < 0 || at >= int64_t(leaf ? targets.size() : n)) invalid("there is no {} {}", leaf ? "leaf" : "node", at);
    return leaf ? -1 - at : at;
  };
  for (size_t i = 0; i < n; ++i) {
    t.yes.push_back(place(yes[i], yes_leaf[i])), t.no.push_back(place(no[i], no_leaf[i]));
    if (!(modes[i] >= 0 && modes[i] <= double(kMember))) invalid("unknown mode {} of a node", modes[i]);
    t.modes.push_back(int64_t(modes[i])), t.missing[i] = t.missing[i] != 0;
  }
  for (int64_t root : t.roots) place(root, false);
  size_t next = 0;  // of the members; NaN ends those of a node
  for (size_t i = 0; i < n; ++i) {
    if (t.modes[i] != kMember) continue;
    size_t at = i;
    t.modes[i] = kEqual, t.splits[i] = std::nan("");
    for (bool first = true; next < members.size() && !std::isnan(members[next]); ++next, first = false) {
      if (!first) {  // the chain's next link
        t.features.push_back(t.features[i]), t.splits.push_back(0), t.modes.push_back(kEqual);
        t.yes.push_back(t.yes[i]), t.no.push_back(t.no[at]), t.missing.push_back(t.missing[i]);
        t.no[at] = int64_t(t.yes.size()) - 1, at = t.yes.size() - 1;
      }
      t.splits[at] = members[next];
    }
    if (next++ >= members.size()) invalid("attribute 'membership_values': it ends before its node does");
  }
  static constexpr Text kAggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  static constexpr Text kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  int64_t aggregate = e.integer("aggregate_function", 1), transform = e.integer("post_transform", 0);
  if (aggregate < 0 || aggregate > 3) invalid("unknown aggregate_function {}", aggregate);
  if (transform < 0 || transform > 4) invalid("unknown post_transform {}", transform);
  int64_t count = e.integer("n_targets", 0);
  if (count == 0)
    for (int64_t k : targets) count = std::max(count, k + 1);
  Term y = ensemble(e, x, t, count, kAggregates[aggregate], x.elem());
  e.give(0, transformed(e, y, kTransforms[transform]));
}

}  // namespace mlc::onnx
