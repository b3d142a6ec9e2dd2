// The table grammar/ops.def as data: lists of operands, variables and attributes are read from their short text form.
#include <algorithm>

#include "ops/rules.h"

namespace mlc {

namespace {

struct Row {
  const char *name, *inputs, *outputs, *types, *attrs;
  Pattern pattern;
  const char *expression;
  std::vector<Dims> (*shape)(OpUse &);
  void (*define)(Define &);
  void (*count)(Define &);
};

constexpr Row kRows[] = {
#define OP(name, inputs, outputs, types, attrs, pattern, shape, define) \
  {#name, inputs, outputs, types, attrs, Pattern::pattern, "", shape, define, nullptr},
#define SIZED(name, inputs, outputs, types, attrs, shape, count, define) \
  {#name, inputs, outputs, types, attrs, Pattern::Opaque, "", shape, define, count},
#define HOSTED(name, inputs, outputs, types, attrs, shape) \
  {#name, inputs, outputs, types, attrs, Pattern::Opaque, "", shape, nullptr, nullptr},
#define ELEMENTWISE(name, inputs, outputs, types, attrs, expression) \
  {#name, inputs, outputs, types, attrs, Pattern::Elementwise, expression, elementwise_shape, elementwise, nullptr},
#define REDUCE(name, types, expression)                                                         \
  {#name, "x:T, axes:i64?", "y:T", types, "keepdims:i=1, noop_with_empty_axes:i=0", Pattern::Reduction, expression, \
   reduce_shape, reduce, nullptr},
#include "../../grammar/ops.def"
#undef OP
#undef SIZED
#undef HOSTED
#undef ELEMENTWISE
#undef REDUCE
};

std::vector<std::string> split_list(std::string_view text) {  // "a, [1, 2], b" -> a | [1, 2] | b
  std::vector<std::string> parts;
  int depth = 0;
  size_t start = 0;
  auto take = [&](size_t end) {
    size_t from = start;
    while (from < end && text[from] == ' ') ++from;
    if (end > from) parts.emplace_back(text.substr(from, end - from));
    start = end + 1;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '[', depth -= text[i] == ']';
    if (text[i] == ',' && !depth) take(i);
  }
  take(text.size());
  return parts;
}

std::vector<Operand> operands(std::string_view text) {  // "x:T, b:T?, rest:T*"
  std::vector<Operand> list;
  for (std::string &part : split_list(text)) {
    size_t colon = part.find(':');
    Operand o{part.substr(0, colon), part.substr(colon + 1), false, false};
    if (o.type.back() == '?') o.optional = true, o.type.pop_back();
    else if (o.type.back() == '*') o.variadic = true, o.type.pop_back();
    list.push_back(o);
  }
  return list;
}

std::vector<TypeVar> variables(std::string_view text) {  // "T=float, I=i32|i64, R=any else T"
  std::vector<TypeVar> list;
  for (std::string &part : split_list(text)) {
    size_t eq = part.find('=');
    size_t other = part.find(" else ");
    list.push_back({part.substr(0, eq), part.substr(eq + 1, other == std::string::npos ? other : other - eq - 1),
                    other == std::string::npos ? "" : part.substr(other + 6)});
  }
  return list;
}

std::vector<AttrSpec> attributes(std::string_view text) {  // "axis:i=-1, mode:s=nearest, pads:I=?, perm:I"
  std::vector<AttrSpec> list;
  for (std::string &part : split_list(text)) {
    size_t colon = part.find(':'), eq = part.find('=');
    AttrSpec a{part.substr(0, colon), part[colon + 1], eq == std::string::npos ? "" : part.substr(eq + 1)};
    if (a.type == 's' && a.fallback != "?" && eq != std::string::npos) a.fallback = '"' + a.fallback + '"';
    list.push_back(a);
  }
  return list;
}

std::vector<OpInfo> read_table() {
  std::vector<OpInfo> ops;
  for (const Row &r : kRows) {
    OpInfo op{r.name, operands(r.inputs), operands(r.outputs), variables(r.types), attributes(r.attrs), r.pattern,
              r.expression, r.shape, r.define, r.count};
    if (op.pattern == Pattern::Elementwise && (op.inputs.size() > 1 || op.inputs[0].variadic))
      op.pattern = Pattern::Broadcast;
    ops.push_back(std::move(op));
  }
  std::sort(ops.begin(), ops.end(), [](const OpInfo &a, const OpInfo &b) { return a.name < b.name; });
  return ops;
}

const Operand *operand(const std::vector<Operand> &list, size_t i) {
  if (i < list.size()) return &list[i];
  return !list.empty() && list.back().variadic ? &list.back() : nullptr;
}

}  // namespace

std::string_view pattern_name(Pattern p) {
  static constexpr std::string_view kNames[] = {"elementwise", "broadcast",   "injective",
                                                "reduction",   "out_fusable", "opaque"};
  return kNames[size_t(p)];
}

std::span<const OpInfo> all_ops() {
  static const std::vector<OpInfo> ops = read_table();
  return ops;
}

const OpInfo *find_op(std::string_view name) {
  auto ops = all_ops();
  auto it =
      std::lower_bound(ops.begin(), ops.end(), name, [](const OpInfo &a, std::string_view n) { return a.name < n; });
  return it != ops.end() && it->name == name ? &*it : nullptr;
}

const Operand *OpInfo::input(size_t i) const { return operand(inputs, i); }
const Operand *OpInfo::output(size_t i) const { return operand(outputs, i); }
const AttrSpec *OpInfo::attr(std::string_view key) const {
  for (const AttrSpec &a : attrs)
    if (a.name == key) return &a;
  return nullptr;
}

bool in_group(std::string_view group, DType t) {
  for (size_t bar; (bar = group.find('|')) != std::string_view::npos; group = group.substr(bar + 1))
    if (in_group(group.substr(0, bar), t)) return true;
  bool integer = is_int(t) && t != DType::Index, real = is_float(t);
  int bits = info(t).bits;
  if (group == "data") return t == DType::Str || in_group("any", t);
  if (group == "any") return integer || real || t == DType::Bool;
  if (group == "num") return (integer && bits >= 8) || (real && bits >= 16);
  if (group == "float") return real && bits >= 16;
  if (group == "f8") return real && bits <= 8;
  if (group == "int") return integer && bits >= 8;
  if (group == "int4") return integer && bits < 8;
  if (group == "signed") return (integer && bits >= 8 && is_signed(t)) || (real && bits >= 16);
  return dtype_named(group) == t;
}

}  // namespace mlc
