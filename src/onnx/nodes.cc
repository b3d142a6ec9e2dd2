// The nodes of a graph, a body or a function, one after the other.
#include "onnx/expand.h"
#include "text/text.h"

namespace mlc::onnx {

namespace {

constexpr size_t kMostInlined = 64;  // functions inside functions

}  // namespace

std::string one_line(Text s) {
  std::string out;
  for (char c : s.substr(0, 200)) out += static_cast<unsigned char>(c) < 32 || c == 127 ? '?' : c;
  return out + (s.size() > 200 ? ".." : "");
}

bool is_default_domain(Text domain) { return domain.empty() || domain == "ai.onnx"; }

std::string function_key(Text domain, Text name, Text overload) {
  return fmt::format("{}\n{}\n{}", is_default_domain(domain) ? "" : domain, name, overload);
}

std::string node_title(const Node &n, std::string_view prefix, int64_t opset) {
  std::string title = "node";
  if (!n.name.empty()) title = fmt::format("node \"{}{}\"", prefix, one_line(n.name));
  else if (!n.outputs.empty()) title = fmt::format("node of \"{}\"", one_line(n.outputs[0]));
  std::string op = one_line(n.op);
  if (!is_default_domain(n.domain)) op = fmt::format("{}.{}", one_line(n.domain), op);
  return opset ? fmt::format("{} ({}, opset {})", title, op, opset) : fmt::format("{} ({})", title, op);
}

Value *Importer::lookup(const Scope &scope, Text name) {
  for (const Scope *s = &scope; s; s = s->outer) {
    if (auto it = s->values.find(name); it != s->values.end()) return it->second;
    if (auto it = s->initializers.find(name); it != s->initializers.end()) return constant(*it->second, name, name);
  }
  invalid("value \"{}\" is not defined", one_line(name));
}

void Importer::bind(Scope &scope, Text name, Value *v) {
  if (name.empty()) return;
  if (!scope.values.emplace(name, v).second || scope.initializers.count(name))
    invalid("value \"{}\" is defined twice", one_line(name));
  if (v && !v->failed()) check_declared(scope, name, v->type);
}

// What the model says of a value must not contradict what follows from its inputs.
void Importer::check_declared(const Scope &scope, Text name, const IrType *type) {
  auto it = scope.declared.find(name);
  if (it == scope.declared.end() || it->second->kind != onnx::Type::Tensor || (type && !type->tensor)) return;
  if (!type) invalid("output \"{}\" is declared as a tensor, but it is a sequence or an optional", one_line(name));
  const onnx::Type &said = *it->second;
  bool same = dtype_of(said.elem) == type->elem || said.elem == 0;
  if (said.has_shape) same = same && said.dims.size() == type->rank();
  int64_t n;
  for (size_t i = 0; same && said.has_shape && i < said.dims.size(); ++i)
    if (said.dims[i].kind == Dim::Value && said.dims[i].value >= 0 && int_value(type->dims[i], &n))
      same = said.dims[i].value == n;
  if (same) return;
  std::string dims;
  for (const Dim &d : said.dims) {
    std::string name = d.param.empty() ? "?" : one_line(d.param);
    dims += (dims.empty() ? "" : ", ") + (d.kind == Dim::Value ? std::to_string(d.value) : name);
  }
  invalid("output \"{}\" is declared as {}[{}], but it is {}", one_line(name),
          dtype_of(said.elem) == DType::Invalid ? type_name(said.elem) : dtype_name(dtype_of(said.elem)), dims,
          print(b, type));
}

Sym Importer::name_for(const Scope &scope, Text name) {
  if (name.empty()) return {};
  auto it = scope.names.find(name);
  return it != scope.names.end() ? it->second : fresh_.make(name);
}

Syms Importer::from_of(const Node &n, const Scope &scope) {
  std::string name = scope.prefix + std::string(n.name);
  if (n.name.empty() && !name.empty()) name.pop_back();  // a function's node without a name: the node that calls it
  for (size_t i = 0; name.empty() && i < n.outputs.size(); i++) name = n.outputs[i];  // else what it makes
  return name.empty() ? Syms{} : b.one(b.sym(name));
}

void Importer::nodes(const std::vector<Node> &nodes, const std::vector<Text> &wanted, Scope &scope) {
  std::vector<size_t> sorted = order(nodes, wanted);
  scope.nodes = &nodes;
  scope.read.insert(wanted.begin(), wanted.end());
  for (size_t i : sorted) each_read(nodes[i], [&](Text name) { scope.read.insert(name); });
  for (size_t i : sorted) node(nodes[i], scope);
}

void Importer::node(const Node &n, Scope &scope) {
  if (++imported_ > kMostImported) throw TooLarge{};
  Syms around = from_;
  from_ = from_of(n, scope);
  try {
    import_node(n, scope);
  } catch (const Unsupported &e) {
    failed(n, scope, true, e.what());
  } catch (const OpUnsupported &e) {
    failed(n, scope, true, e.what());
  } catch (const Invalid &e) {
    failed(n, scope, false, e.what());
  } catch (const OpError &e) {
    failed(n, scope, false, e.what());
  }
  from_ = around;
}

void Importer::failed(const Node &n, Scope &scope, bool unsupported, std::string_view why) {
  auto opset = scope.opsets->find(is_default_domain(n.domain) ? Text() : n.domain);
  error(unsupported,
        fmt::format("{}: {}", node_title(n, scope.prefix, opset == scope.opsets->end() ? 0 : opset->second), why));
  for (Text name : n.outputs) {  // what reads them goes on if the model says their types
    if (name.empty() || scope.values.count(name)) continue;
    Value v{name};
    v.expr = b.name(name);
    auto it = scope.declared.find(name);
    if (it != scope.declared.end()) v.type = declared_type(*it->second);
    scope.values.emplace(name, keep(v));
  }
}

std::vector<Attribute> Importer::attributes_of(const Node &n, const Scope &scope) const {
  std::vector<Attribute> attributes;
  std::unordered_set<Text> seen;
  for (const Attribute &a : n.attributes) {
    if (!seen.insert(a.name).second) invalid("attribute '{}' is given twice", one_line(a.name));
    if (!a.graphs.empty()) {  // bodies stay where they are
      attributes.push_back(attribute(a.name, int64_t{0}));
      attributes.back().kind = a.kind;
      continue;
    }
    if (a.ref.empty()) {
      attributes.push_back(a);
      continue;
    }
    auto it = scope.arguments.find(a.ref);
    if (it == scope.arguments.end()) continue;  // left out by the caller: the operator's default
    attributes.push_back(it->second);
    attributes.back().name = a.name;
  }
  return attributes;
}

void Importer::import_node(const Node &n, Scope &scope) {
  if (auto f = functions_.find(function_key(n.domain, n.op, n.overload)); f != functions_.end())
    return function_node(n, *f->second, scope);
  if (!is_default_domain(n.domain)) {
    if (!scope.opsets->count(n.domain)) invalid("the model imports no opset of domain \"{}\"", one_line(n.domain));
    if (n.domain == "ai.onnx.ml" && n.op == "ZipMap")
      unsupported("a list of maps is no tensor; skl2onnx makes none with the option zipmap = False");
    if (n.domain == "ai.onnx.ml" && (n.op == "CastMap" || n.op == "DictVectorizer")) unsupported("a map is no tensor");
    if (!find_extra(n.domain, n.op)) unsupported("no such operator");
  } else if (!scope.opsets->count("")) {
    invalid("the model imports no opset of ONNX's own operators");
  }
  standard_node(n, scope);
}

void Importer::standard_node(const Node &n, Scope &scope) {
  int64_t opset = scope.opsets->at(is_default_domain(n.domain) ? Text() : n.domain);
  const Schema *schema = is_default_domain(n.domain) ? find_schema(n.op) : nullptr;
  const Extra *extra = schema && opset >= schema->first ? nullptr : find_extra(n.domain, n.op);
  if (extra) schema = &extra->schema;
  if (!schema) invalid("ONNX has no such operator");
  if (opset < schema->first) invalid("it came with opset {}", schema->first);
  Use use;
  use.op = n.op;
  use.opset = opset;
  use.attributes = attributes_of(n, scope);
  use.from = from_;
  for (const Attribute &a : use.attributes)
    if (!schema->has(a.name, opset)) invalid("it has no attribute '{}'", one_line(a.name));
  bool complete = true;
  for (Text name : n.inputs) {
    Value *v = name.empty() ? nullptr : lookup(scope, name);
    complete = complete && (!v || !v->failed());
    use.inputs.push_back(v);
  }
  std::vector<Text> outputs = n.outputs;
  while (!outputs.empty() && outputs.back().empty()) outputs.pop_back();
  use.listed = outputs.size();
  while (!outputs.empty() && !scope.read.count(outputs.back())) outputs.pop_back();
  if (outputs.empty()) return;
  use.outputs = outputs.size();
  use.base = outputs[0];

  if (n.op == "Constant") return constant_node(n, scope, use);
  if (n.op == "If") return if_node(n, scope, use);
  if (n.op == "Loop") return loop_node(n, scope, use);
  if (n.op == "Scan") return scan_node(n, scope, use);
  if (!extra && !find_op(n.op) && !is_converted(n.op) && !is_of_groups(n.op)) unsupported("no such operator");
  if (!complete) return forget(scope, outputs);  // an error before it is the reason
  if (group_node(n, scope, use)) return;
  if (extra) return extra_node(n, *extra, outputs, use, scope);
  convert(*this, use);
  std::vector<Sym> names;
  std::vector<Value *> values;
  if (use.then) {
    Value *first = write(use, {})[0];
    Use last = use.then(first);
    last.from = from_, last.base = use.base;
    values = write(last, {name_for(scope, outputs[0])});
  } else {
    for (Text name : outputs) names.push_back(name_for(scope, name));
    values = write(use, names);
    if (use.advances) random_state = values.back();
  }
  for (size_t i = 0; i < values.size() && i < outputs.size(); ++i) bind(scope, outputs[i], values[i]);
}

// An operator that is written in others; each of its outputs is one of theirs.
void Importer::extra_node(const Node &n, const Extra &extra, const std::vector<Text> &outputs, Use &use, Scope &scope) {
  std::vector<Sym> names;
  for (Text name : outputs) names.push_back(name_for(scope, name));
  Expansion e(*this, n, scope, use, names);
  extra.expand(e);
  for (const Attribute &a : use.attributes) unsupported("attribute '{}'", one_line(a.name));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].empty()) continue;
    if (!e.results[i]) unsupported("output {}", i);
    bind(scope, outputs[i], e.results[i]);
  }
}

void Importer::constant_node(const Node &n, Scope &scope, const Use &use) {
  if (use.attributes.size() != 1 || use.outputs != 1) invalid("expected one attribute and one output");
  const Attribute &a = use.attributes[0];
  Text from = from_.empty() ? Text() : b.text(from_[0]), name = n.outputs[0];
  auto vector = [&](DType t, const auto &values, auto literal) {
    std::vector<const Expr *> items;
    for (auto v : values) items.push_back(literal(v));
    const Expr *size = b.integer(int64_t(items.size()));
    return constant(name, from, b.tensor(t, b.one(size)), items);
  };
  auto integer = [&](int64_t v) -> const Expr * { return b.integer(v); };
  auto string = [&](Text v) -> const Expr * { return b.string(v); };
  auto number = [&](float v) { return float_literal(b, DType::F32, Scalar::of_f32(v)); };
  Value *v = nullptr;
  if (a.name == "value" && a.kind == AttrKind::Tensor) {
    const Tensor *t = nullptr;  // where it stays: a node that is inlined twice gives one constant
    for (const Attribute &own : n.attributes)
      if (own.ref.empty()) t = &own.tensors[0];
    v = constant(t ? *t : tensors_.emplace_back(a.tensors[0]), name, from);
  } else if (a.name == "value_int" && a.kind == AttrKind::Int) {
    v = constant(name, from, b.tensor(DType::I64, {}), {integer(a.i)});
  } else if (a.name == "value_ints" && a.kind == AttrKind::Ints) {
    v = vector(DType::I64, a.ints, integer);
  } else if (a.name == "value_float" && a.kind == AttrKind::Float) {
    v = constant(name, from, b.tensor(DType::F32, {}), {number(a.f)});
  } else if (a.name == "value_floats" && a.kind == AttrKind::Floats) {
    v = vector(DType::F32, a.floats, number);
  } else if (a.name == "value_string" && a.kind == AttrKind::String) {
    v = constant(name, from, b.tensor(DType::Str, {}), {string(a.s)});
  } else if (a.name == "value_strings" && a.kind == AttrKind::Strings) {
    v = vector(DType::Str, a.strings, string);
  } else {
    if (a.name == "sparse_value") unsupported("attribute '{}'", a.name);
    invalid("attribute '{}': found {}", one_line(a.name), kind_name(a.kind));
  }
  bind(scope, name, v);
}

// A call of a function of the model's own: its nodes, with its inputs and attributes in place.
void Importer::function_node(const Node &n, const Function &f, Scope &scope) {
  for (const Function *outer : inlining_)
    if (outer == &f) invalid("function {} calls itself", one_line(f.name));
  if (inlining_.size() == kMostInlined) invalid("functions nest deeper than {}", kMostInlined);
  if (n.inputs.size() > f.inputs.size() || n.outputs.size() > f.outputs.size())
    invalid("function {} has {} inputs and {} outputs, found {} and {}", one_line(f.name), f.inputs.size(),
            f.outputs.size(), n.inputs.size(), n.outputs.size());
  Opsets opsets;
  read_opsets(f.opsets, opsets);
  Scope inner;
  inner.opsets = &opsets;
  inner.prefix = scope.prefix + std::string(n.name) + (n.name.empty() ? "" : "/");
  for (const Attribute &a : f.defaults) inner.arguments[a.name] = a;
  for (Attribute &a : attributes_of(n, scope)) {
    bool has = inner.arguments.count(a.name) || std::count(f.attributes.begin(), f.attributes.end(), a.name);
    if (!has) invalid("function {} has no attribute '{}'", one_line(f.name), one_line(a.name));
    inner.arguments[a.name] = a;
  }
  for (size_t i = 0; i < f.inputs.size(); ++i) {
    Value *v = i < n.inputs.size() && !n.inputs[i].empty() ? lookup(scope, n.inputs[i]) : nullptr;
    if (!inner.values.emplace(f.inputs[i], v).second)
      invalid("function {}: input \"{}\" is defined twice", one_line(f.name), one_line(f.inputs[i]));
  }
  std::vector<Text> wanted;
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    if (n.outputs[i].empty()) continue;
    wanted.push_back(f.outputs[i]);
    if (!inner.values.count(f.outputs[i]) && !inner.names.count(f.outputs[i]))
      inner.names[f.outputs[i]] = name_for(scope, n.outputs[i]);
  }
  inlining_.push_back(&f);
  nodes(f.nodes, wanted, inner);
  inlining_.pop_back();
  for (size_t i = 0; i < n.outputs.size(); ++i)
    if (!n.outputs[i].empty()) bind(scope, n.outputs[i], lookup(inner, f.outputs[i]));
}

}  // namespace mlc::onnx
