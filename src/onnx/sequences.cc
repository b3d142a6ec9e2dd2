// Sequences and optionals end here: a sequence is the list of its elements, an optional what it holds, and both are
// known wherever they occur.
//   s = SequenceConstruct(x, y)                  s = x, y
//   t = SequenceInsert(s, z, 0)                  t = z, x, y
//   r = ConcatFromSequence(t) {axis = 1}         r = Concat(z, x, y) {axis = 1}
// An input s of three elements is s_0, s_1, s_2 in the text, and so is an output.
#include <algorithm>

#include "onnx/importer.h"
#include "text/text.h"

namespace mlc::onnx {

std::string shown(const Value *v) {
  if (!v->group) return "a tensor";
  if (v->group->optional) return v->group->items.empty() ? "an optional that holds nothing" : "an optional";
  return fmt::format("a sequence of {} element{}", v->group->items.size(), v->group->items.size() == 1 ? "" : "s");
}

namespace {

constexpr int64_t kMostElements = 4096;

const Group &sequence(const Use &u, size_t i) {
  Value *v = u.input(i);
  if (!v) invalid("input {}: expected a sequence, found none", i);
  if (!v->group || v->group->optional) invalid("input {}: expected a sequence, found {}", i, shown(v));
  return *v->group;
}

Value *tensor(const Use &u, size_t i) {
  Value *v = u.input(i);
  if (!v) invalid("input {}: expected a tensor, found none", i);
  if (v->group) invalid("input {}: expected a tensor, found {}", i, shown(v));
  return v;
}

// The place that input i says, from the end if it is negative: below `places`, which is one more than `size` where
// something is inserted. Left out: the last one.
size_t position(Importer &im, const Use &u, size_t i, int64_t size, int64_t places) {
  int64_t at = places - 1;
  if (u.input(i)) {
    auto v = im.known_ints(tensor(u, i));
    if (!v)
      unsupported("input {}: a position that is not known when compiling{}", i,
                  im.is_input(u.inputs[i]) ? fmt::format("; --bind {}=VALUE fixes it", u.inputs[i]->name) : "");
    if (v->size() != 1) invalid("input {}: expected a position, found {} elements", i, v->size());
    at = v->at(0) < 0 ? v->at(0) + size : v->at(0);
    if (at < 0 || at >= places) invalid("position {} of a sequence of {} elements", v->at(0), size);
  } else if (places == 0) {
    invalid("an element of an empty sequence");
  }
  return size_t(at);
}

Value *sequence_of(Importer &im, const Use &u, std::vector<Value *> items) {
  for (Value *v : items)
    if (v->type->elem != items[0]->type->elem)
      invalid("a sequence of {} and {}", dtype_name(items[0]->type->elem), dtype_name(v->type->elem));
  return im.group(u.base, std::move(items));
}

Value *empty(Importer &im, Use &u) { return im.group(u.base, {}); }
Value *construct(Importer &im, Use &u) {
  for (size_t i = 0; i < u.inputs.size(); ++i) tensor(u, i);
  if (u.inputs.empty()) invalid("expected at least one input");
  return sequence_of(im, u, u.inputs);
}
Value *insert(Importer &im, Use &u) {
  std::vector<Value *> items = sequence(u, 0).items;
  int64_t size = int64_t(items.size());
  Value *element = tensor(u, 1);
  items.insert(items.begin() + int64_t(position(im, u, 2, size, size + 1)), element);
  return sequence_of(im, u, items);
}
Value *erase(Importer &im, Use &u) {
  std::vector<Value *> items = sequence(u, 0).items;
  int64_t size = int64_t(items.size());
  items.erase(items.begin() + int64_t(position(im, u, 1, size, size)));
  return im.group(u.base, items);
}
Value *element(Importer &im, Use &u) {
  const std::vector<Value *> &items = sequence(u, 0).items;
  int64_t size = int64_t(items.size());
  if (!u.input(1)) invalid("input 1: expected a position, found none");
  return items[position(im, u, 1, size, size)];
}
Value *length(Importer &im, Use &u) { return im.integer(int64_t(sequence(u, 0).items.size())); }

// Concat, behind Unsqueeze for a new axis.
Value *concat(Importer &im, Use &u) {
  std::vector<Value *> items = sequence(u, 0).items;
  if (items.empty()) invalid("a tensor of an empty sequence");
  if (!u.attribute("axis")) invalid("attribute 'axis' is missing");
  int64_t rank = int64_t(items[0]->type->rank()), fresh = u.take_int("new_axis", 0);
  int64_t axis = axis_in(u.take_int("axis", 0), rank + (fresh != 0));
  if (fresh)
    for (Value *&v : items) v = im.emit(v->name, "Unsqueeze", {v, im.list(std::vector<int64_t>{axis})});
  u.op = "Concat", u.inputs = items, u.attributes = {attribute("axis", axis)};
  return nullptr;
}

Value *optional(Importer &im, Use &u) {
  if (u.input(0) && u.input(0)->group && u.input(0)->group->optional) invalid("an optional of an optional");
  return im.group(u.base, u.input(0) ? std::vector{u.input(0)} : std::vector<Value *>{}, true);
}
bool is_empty(const Value *v) { return !v || (v->group && v->group->optional && v->group->items.empty()); }
Value *has_element(Importer &im, Use &u) { return im.truth(!is_empty(u.input(0))); }
Value *get_element(Importer &, Use &u) {
  Value *v = u.input(0);
  if (is_empty(v)) invalid("the element of an optional that holds none");
  return v->group && v->group->optional ? v->group->items[0] : v;
}
Value *same(Importer &, Use &u) { return u.inputs[0]; }

// What an operator of sequences or optionals gives; null: `u` is now an operator of tensors.
struct Row {
  Text op;
  size_t most;  // inputs
  Value *(*give)(Importer &, Use &);
};
constexpr Row kRows[] = {
    {"SequenceEmpty", 0, empty},   {"SequenceConstruct", SIZE_MAX, construct},  {"SequenceInsert", 3, insert},
    {"SequenceErase", 2, erase},   {"SequenceAt", 2, element},                  {"SequenceLength", 1, length},
    {"ConcatFromSequence", 1, concat}, {"Optional", 1, optional},               {"OptionalHasElement", 1, has_element},
    {"OptionalGetElement", 1, get_element},                                     {"Identity", 1, same},
};

}  // namespace

bool is_of_groups(std::string_view op) {
  return op == "SequenceMap" || op == "SplitToSequence" ||
         std::any_of(std::begin(kRows), std::end(kRows), [&](const Row &r) { return r.op == op; });
}

Value *Importer::group(Text name, std::vector<Value *> items, bool optional) {
  if (int64_t(items.size()) > kMostElements)
    unsupported("a sequence of {} elements: at most {}", items.size(), kMostElements);
  groups_.push_back({optional, std::move(items)});
  Value v{name};
  v.group = &groups_.back();
  return keep(v);
}

void Importer::flatten(Value *v, std::vector<Value *> &leaves) const {
  if (!v->group) return leaves.push_back(v);
  for (Value *item : v->group->items) flatten(item, leaves);
}

std::vector<Value *> Importer::flatten(const std::vector<Value *> &values) const {
  std::vector<Value *> leaves;
  for (Value *v : values) flatten(v, leaves);
  return leaves;
}

bool Importer::alike(const Value *a, const Value *b) const {
  if (!a->group || !b->group) return !a->group && !b->group;
  auto &x = a->group->items, &y = b->group->items;
  return a->group->optional == b->group->optional &&
         std::equal(x.begin(), x.end(), y.begin(), y.end(), [&](auto *v, auto *w) { return alike(v, w); });
}

// The leaves in order, put together as `like` is.
std::vector<Value *> Importer::regroup(const std::vector<Value *> &like, const std::vector<Value *> &leaves) {
  size_t next = 0;
  std::function<Value *(const Value *)> one = [&](const Value *v) {
    if (!v->group) return leaves[next++];
    std::vector<Value *> items;
    for (const Value *item : v->group->items) items.push_back(one(item));
    return group(v->name, std::move(items), v->group->optional);
  };
  std::vector<Value *> values;
  for (const Value *v : like) values.push_back(one(v));
  return values;
}

// ---- inputs

namespace {

// What --bind says of a sequence or an optional: "none", how many elements, or the shape of each: [[2, 3], [n, 3]].
struct Given {
  bool none = false;
  int64_t count = 0;
  std::optional<std::vector<std::vector<Dim>>> shapes;
};

Given read_given(Build &b, Text name, const std::string &text, bool optional) {
  auto bad = [&] {
    throw BadBinding(fmt::format("--bind {}={}: expected {}a number of elements below {} or a list of shapes", name,
                                 text, optional ? "none, " : "", kMostElements + 1));
  };
  Given g;
  std::string problem;
  if (optional && text == "none") return g.none = true, g;
  const Expr *e = read_expr(b, text, &problem);
  if (!e) bad();
  auto *list = as<List>(e);
  if (!list && (!int_value(e, &g.count) || g.count < 0 || g.count > kMostElements)) bad();
  if (!list) return g;
  g.count = int64_t(list->items.size()), g.shapes.emplace();
  if (g.count > kMostElements) bad();
  for (const Expr *x : list->items) {
    auto *shape = as<List>(x);
    if (!shape) bad();
    std::vector<Dim> dims;
    for (const Expr *d : shape->items) {
      auto *symbol = as<Name>(d);
      int64_t n = 0;
      if (!symbol && (!int_value(d, &n) || n < 0)) bad();
      dims.push_back(symbol ? Dim{Dim::Param, 0, b.text(symbol->name)} : Dim{Dim::Value, n, {}});
    }
    g.shapes->push_back(dims);
  }
  return g;
}

}  // namespace

// A dimension that elements of a sequence name is not the same in all of them: n_0, n_1 ..
const IrType *Importer::element_type(const onnx::Type &t, int64_t i) {
  DType elem = need_dtype(t.elem);
  std::vector<const Expr *> dims;
  for (const Dim &d : t.dims) {
    std::string name(d.kind == Dim::Param && d.param != "?" ? d.param : Text());
    if (name.empty() || options_.bind.count(name)) {
      dims.push_back(dimension(d));
      continue;
    }
    dim_names_.push_back(fresh_.make(fmt::format("{}_{}", name, i)));
    bounds_.dim(dim_names_.back());
    dims.push_back(b.name(dim_names_.back()));
  }
  return b.tensor(elem, b.list(dims));
}

Value *Importer::group_input(const ValueInfo &v, Sym own, const std::string *bound) {
  bool optional = v.type.kind == onnx::Type::Optional;
  const onnx::Type *of = v.type.of.empty() ? nullptr : &v.type.of[0];
  if (!of) invalid("it has no element type");
  bool inner = optional && of->kind == onnx::Type::Sequence;
  if (inner && of->of.empty()) invalid("it has no element type");
  const onnx::Type &element = inner ? of->of[0] : *of;
  if (element.kind != onnx::Type::Tensor) unsupported("{} of no tensors", optional ? "an optional" : "a sequence");
  if (!bound && optional)
    unsupported("an optional: --bind {0}=none or --bind {0}={1} says whether it is there", v.name, inner ? "N" : "1");
  if (!bound) unsupported("a sequence: --bind {}=N says how many elements it has", v.name);
  Given given = read_given(b, v.name, *bound, optional);
  if (optional && !inner && given.count > 1)
    throw BadBinding(fmt::format("--bind {}={}: an optional tensor is one at most", v.name, *bound));
  if (!given.shapes && given.count && !element.has_shape)
    unsupported("elements whose rank is not known: --bind {}=[SHAPE, ..] gives their shapes", v.name);
  std::vector<Value *> items;
  for (int64_t i = 0; i < given.count; ++i) {
    onnx::Type type = element;
    if (given.shapes) type.dims = (*given.shapes)[size_t(i)], type.has_shape = true;
    bool single = optional && !inner;
    Sym s = single ? own : element_name(v.name, i);
    items.push_back(parameter(b.text(s), s, given.shapes || single ? input_type(type) : element_type(type, i)));
  }
  if (!optional) return group(v.name, items);
  if (!inner) return group(v.name, items, true);
  return group(v.name, given.none ? std::vector<Value *>{} : std::vector{group(v.name, items)}, true);
}

// ---- nodes

// An operator of sequences or optionals; false: one of tensors, which `use` may have become.
bool Importer::group_node(const Node &n, Scope &scope, Use &use) {
  auto row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row &r) { return r.op == n.op; });
  bool any = std::any_of(use.inputs.begin(), use.inputs.end(), [](Value *v) { return v && v->group; });
  if (n.op == "SequenceMap") return sequence_map(n, scope, use), true;
  if (n.op == "SplitToSequence") return bind(scope, n.outputs[0], split_to_sequence(use)), true;
  if (row == std::end(kRows)) {
    for (size_t i = 0; any && i < use.inputs.size(); ++i)
      if (use.inputs[i]) tensor(use, i);
    return false;
  }
  if (n.op == "Identity" && !any) return false;
  if (use.inputs.size() > row->most) invalid("expected at most {} inputs, found {}", row->most, use.inputs.size());
  if (use.outputs != 1) invalid("expected one output, found {}", use.outputs);
  Value *v = row->give(*this, use);
  if (v) bind(scope, n.outputs[0], v);
  return v;
}

// Pieces of `split` elements along the axis, of the sizes that it lists, or of one each.
Value *Importer::split_to_sequence(Use &use) {
  Value *x = tensor(use, 0), *split = use.input(1) ? tensor(use, 1) : nullptr;
  int64_t axis = axis_in(use.take_int("axis", 0), int64_t(x->type->rank())), keep = use.take_int("keepdims", 1);
  int64_t n = 0, each = 1, count = 0;
  bool listed = split && split->type->rank() == 1, whole = int_value(x->type->dims[size_t(axis)], &n);
  Use u;
  u.op = "Split", u.base = use.base, u.from = from_, u.attributes = {attribute("axis", axis)}, u.inputs = {x, split};
  if (listed) {
    if (!int_value(split->type->dims[0], &count)) unsupported("pieces whose number is not known");
  } else {
    if (!whole) unsupported("pieces of a dimension that is not known; --bind may give it");
    if (auto v = split ? known_ints(split) : std::vector<int64_t>{1}; v && v->size() == 1) each = v->at(0);
    else unsupported("input 1: a size that is not known when compiling; --bind may give it");
    if (each < 1) invalid("pieces of {} elements", each);
    count = n / each + (n % each != 0);
  }
  if (count > kMostElements) unsupported("a sequence of {} elements: at most {}", count, kMostElements);
  if (count == 0) return group(use.base, {});
  if (!listed) {
    std::vector<int64_t> sizes(size_t(count), each);
    if (n % each) sizes.back() = n % each;
    u.inputs[1] = list(sizes);
  }
  bool squeeze = !split && !keep;
  std::vector<Sym> names;
  for (int64_t i = 0; i < count; ++i) names.push_back(squeeze ? Sym{} : element_name(use.base, i));
  u.outputs = size_t(count);
  if (squeeze) u.base = b.arena.text(fmt::format("{}_piece", use.base));
  std::vector<Value *> items = write(u, names);
  for (int64_t i = 0; squeeze && i < count; ++i) {
    Use one;
    one.op = "Squeeze", one.base = use.base, one.from = from_;
    one.inputs = {items[size_t(i)], list(std::vector<int64_t>{axis})};
    items[size_t(i)] = write(one, {element_name(use.base, i)})[0];
  }
  return group(use.base, items);
}

Sym Importer::element_name(Text base, int64_t i) { return fresh_.make(fmt::format("{}_{}", base, i)); }

// The body for each element of the first input; the other inputs are sequences of as many, or the same for all.
void Importer::sequence_map(const Node &n, Scope &scope, const Use &use) {
  const Graph &g = body_of(n, "body");
  const std::vector<Value *> &first = sequence(use, 0).items;
  if (g.inputs.size() != use.inputs.size())
    invalid("the body has {} inputs, expected {}", g.inputs.size(), use.inputs.size());
  if (g.outputs.size() < use.outputs) invalid("the body has {} outputs, expected {}", g.outputs.size(), use.outputs);
  for (size_t k = 0; k < use.inputs.size(); ++k) {
    Value *v = use.inputs[k];
    if (!v) invalid("input {} is left out", k);
    if (v->group && sequence(use, k).items.size() != first.size())
      invalid("input {}: expected {} elements like the first one, found {}", k, first.size(), v->group->items.size());
  }
  std::vector<std::vector<Value *>> items(use.outputs);
  for (size_t i = 0; i < first.size(); ++i) {
    Scope inner = inside(scope);
    for (size_t k = 0; k < use.inputs.size(); ++k) {
      Value *v = use.inputs[k];
      if (!inner.values.emplace(g.inputs[k].name, v->group ? v->group->items[i] : v).second)
        invalid("input \"{}\" of the body is defined twice", one_line(g.inputs[k].name));
    }
    for (size_t j = 0; j < use.outputs; ++j)
      if (!n.outputs[j].empty()) inner.names.emplace(g.outputs[j].name, element_name(n.outputs[j], int64_t(i)));
    auto values = run_body(g, inner, nullptr);
    if (!values) return forget(scope, n.outputs);
    for (size_t j = 0; j < use.outputs; ++j) {
      if ((*values)[j]->group) invalid("output {} of the body is {}", j, shown((*values)[j]));
      items[j].push_back((*values)[j]);
    }
  }
  for (size_t j = 0; j < use.outputs; ++j) bind(scope, n.outputs[j], group(n.outputs[j], items[j]));
}

}  // namespace mlc::onnx
