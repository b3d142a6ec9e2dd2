#include "onnx/import.h"

#include <algorithm>
#include <fstream>

#include "ir/walk.h"
#include "onnx/importer.h"
#include "onnx/schema.h"
#include "text/text.h"

namespace mlc {

bool import_onnx(Build &b, const ImportOptions &options, Module &m, std::string &error_lines) {
  return onnx::Importer(b, options).run(m, error_lines);
}

namespace onnx {

void Importer::error(bool unsupported, std::string_view what) {
  errors_.push_back(fmt::format("{}: {}", unsupported ? "not supported here" : "invalid model", what));
}

bool Importer::run(Module &m, std::string &error_lines) {
  const Item *graph = nullptr;
  try {
    if (read()) {
      Opsets opsets;
      read_opsets(model_.opsets, opsets);
      if (model_.opsets.empty() && model_.ir_version < 3) opsets[""] = 1;
      Scope scope;
      scope.opsets = &opsets;
      Body body;
      body_ = &body;
      graph = main_graph(model_.graph, scope);
    }
  } catch (const Unsupported &e) {
    error(true, e.what());
  } catch (const Invalid &e) {
    error(false, e.what());
  } catch (const TooLarge &) {
    error(true, "too many nodes, once functions are in place and loops unrolled");
  }
  std::vector<const Item *> constants;
  if (errors_.empty()) {
    std::unordered_set<Sym> used;
    each_stmt(to<Func>(graph).body, [&](const Stmt *s) {
      each_expr_of(s, [&](const Expr *e) {
        each_expr(e, [&](const Expr *x) {
          if (auto *g = as<Global>(x)) used.insert(g->name);
          return true;
        });
      });
    });
    for (const Constant &c : constants_) {
      if (!used.count(c.name)) continue;
      try {
        constants.push_back(item(c));
      } catch (const Unsupported &e) {
        error(true, e.what());
      } catch (const Invalid &e) {
        error(false, fmt::format("constant \"{}\": {}", one_line(c.from), e.what()));
      }
    }
  }
  if (errors_.empty() && !side_.empty()) {
    std::string name = options_.side.substr(options_.side.rfind('/') + 1);
    file_item(b.arena.text(name), std::as_bytes(std::span(side_)));
    std::ofstream out(options_.side, std::ios::binary);
    if (!out.write(side_.data(), std::streamsize(side_.size())).flush())
      errors_.push_back(fmt::format("{}: cannot be written", options_.side));
  }
  for (const std::string &line : errors_) error_lines += line + "\n";
  if (!errors_.empty()) return false;
  for (const Item *i : files_) m.add(i);
  for (const Item *i : constants) m.add(i);
  m.add(graph);
  return true;
}

bool Importer::read() {
  std::string error;
  if (options_.path == "-") {
    Source s = Source::open("-");
    error = s.error, bytes_ = s.text;
  } else if (file_.open(options_.path, &error)) {
    bytes_ = {reinterpret_cast<const char *>(file_.bytes().data()), file_.bytes().size()};
  }
  if (error.empty() && bytes_.empty()) error = "the file is empty";
  if (error.empty() && !read_model(bytes_, model_, error)) error = "not an ONNX model: " + error;
  if (!error.empty()) return errors_.push_back(error), false;
  if (!model_.has_graph) return errors_.push_back("not an ONNX model: it has no graph"), false;
  size_t slash = options_.path.rfind('/');
  folder_.folders = {slash == std::string::npos ? "." : options_.path.substr(0, slash + 1)};
  for (const Function &f : model_.functions)
    if (!functions_.emplace(function_key(f.domain, f.name, f.overload), &f).second)
      invalid("function {} is defined twice", one_line(f.name));
  return true;
}

void Importer::read_opsets(const std::vector<OpsetId> &from, Opsets &to) {
  for (const OpsetId &o : from) {
    Text domain = is_default_domain(o.domain) ? Text() : o.domain;
    if (o.version < 1) invalid("opset {} of domain \"{}\"", o.version, one_line(o.domain));
    if (domain.empty() && o.version > kNewestOpset)
      unsupported("opset {}: the newest known here is {}", o.version, kNewestOpset);
    to[domain] = o.version;
  }
}

void Importer::enter(const Graph &g, Scope &scope) {
  for (const Tensor &t : g.initializers) {
    if (t.name.empty()) invalid("an initializer has no name");
    if (!scope.initializers.emplace(t.name, &t).second)
      invalid("initializer \"{}\" is defined twice", one_line(t.name));
  }
  if (g.sparse_initializers) unsupported("sparse initializers");
  for (const ValueInfo &v : g.values) scope.declared[v.name] = &v.type;
  for (const ValueInfo &v : g.outputs) scope.declared[v.name] = &v.type;
}

// ---- inputs

// A dimension by its name in the model; unnamed ones (some exporters call them all "?") are each their own: d0, d1 ..
const Expr *Importer::dimension(const Dim &d) {
  if (d.kind == Dim::Value && d.value >= 0) return b.integer(d.value);
  std::string name(d.kind == Dim::Param && d.param != "?" ? d.param : Text());
  bool named = !name.empty();
  if (auto known = dims_.find(d.param); named && known != dims_.end()) return known->second;
  for (int i = 0; !named && (i == 0 || fresh_.is_taken(b.sym(name))); ++i) name = fmt::format("d{}", i);
  const Expr *e = nullptr;
  if (auto bound = options_.bind.find(name); bound != options_.bind.end()) {
    std::string problem;
    e = read_expr(b, bound->second, &problem);
    int64_t n;
    bound_.insert(name);
    if (!e || !int_value(e, &n) || n < 0)
      throw BadBinding(fmt::format("--bind {}={}: expected a size", bound->first, bound->second));
    if (!named) fresh_.take(b.sym(name));
  } else {
    Sym s = fresh_.make(name);
    dim_names_.push_back(s);
    bounds_.dim(s);
    e = b.name(s);
  }
  if (named) dims_[d.param] = e;
  return e;
}

const IrType *Importer::input_type(const onnx::Type &t) {
  static constexpr std::string_view kKinds[] = {"", "", "a sequence", "a map", "an optional", "a sparse tensor",
                                                "an opaque value"};
  if (t.kind == onnx::Type::None) invalid("it has no type");
  if (t.kind != onnx::Type::Tensor) unsupported("{}", kKinds[t.kind]);
  DType elem = need_dtype(t.elem);
  if (!t.has_shape) unsupported("a tensor whose rank is not known");
  std::vector<const Expr *> dims;
  for (const Dim &d : t.dims) dims.push_back(dimension(d));
  return b.tensor(elem, b.list(dims));
}

const IrType *Importer::declared_type(const onnx::Type &t) {
  if (t.kind != onnx::Type::Tensor || !t.has_shape || dtype_of(t.elem) == DType::Invalid) return nullptr;
  std::vector<const Expr *> dims;
  for (const Dim &d : t.dims) {
    auto it = d.kind == Dim::Param ? dims_.find(d.param) : dims_.end();
    if (d.kind == Dim::Value && d.value >= 0) dims.push_back(b.integer(d.value));
    else if (it != dims_.end()) dims.push_back(it->second);
    else return nullptr;
  }
  return b.tensor(dtype_of(t.elem), b.list(dims));
}

// An input that --bind fixes becomes a constant: a number, or a list of as many as it has elements.
Value *Importer::bound_input(const ValueInfo &v, const std::string &text) {
  auto bad = [&](std::string_view why) { throw BadBinding(fmt::format("--bind {}={}: {}", v.name, text, why)); };
  std::string problem;
  const Expr *e = read_expr(b, text, &problem);
  std::vector<const Expr *> elements{e};
  if (auto *l = as<List>(e)) elements.assign(l->items.begin(), l->items.end());
  DType elem = need_dtype(v.type.elem);
  for (const Expr *x : elements) {
    Kind wanted = is_int(elem) ? Kind::Int : elem == DType::Bool ? Kind::Bool : Kind::Float;
    if (!x || x->kind != wanted) bad(fmt::format("expected numbers of type {}", dtype_name(elem)));
  }
  std::vector<const Expr *> dims;
  int64_t count = 1;
  for (const Dim &d : v.type.dims) {
    int64_t n = v.type.dims.size() == 1 ? int64_t(elements.size()) : -1;
    if (d.kind == Dim::Value && d.value >= 0) n = d.value;
    if (n < 0 || __builtin_mul_overflow(count, n, &count)) bad("the shape of the input is not known");
    dims.push_back(b.integer(n));
  }
  if (count != int64_t(elements.size())) bad(fmt::format("expected {} elements, found {}", count, elements.size()));
  return constant(v.name, v.name, b.tensor(elem, b.list(dims)), elements);
}

Value *Importer::parameter(Text name, Sym s, const IrType *type) {
  params_.push_back({Mode::In, {s, kNowhere, type}});
  return keep({name, b.name(s), type});
}

Value *Importer::input(const ValueInfo &v, Scope &scope) {
  auto bound = options_.bind.find(std::string(v.name));
  bool fixed = bound != options_.bind.end() && !input_dims_.count(v.name);
  if (fixed) bound_.insert(bound->first);
  if (v.type.kind == onnx::Type::Sequence || v.type.kind == onnx::Type::Optional)
    return group_input(v, scope.names.at(v.name), fixed ? &bound->second : nullptr);
  if (fixed && v.type.kind == onnx::Type::Tensor) return bound_input(v, bound->second);
  return parameter(v.name, scope.names.at(v.name), input_type(v.type));
}

// The dimensions' names of a type and of what it is of.
static void each_dim(const onnx::Type &t, const std::function<void(const Dim &)> &f) {
  for (const Dim &d : t.dims) f(d);
  for (const onnx::Type &of : t.of) each_dim(of, f);
}

void Importer::inputs(const Graph &g, Scope &scope) {
  for (const ValueInfo &v : g.inputs) each_dim(v.type, [&](const Dim &d) { input_dims_.insert(d.param); });
  for (const ValueInfo &v : g.inputs) {
    if (v.name.empty()) invalid("an input has no name");
    if (scope.initializers.count(v.name)) continue;  // constants are listed too in IR versions before 4
    if (!scope.values.emplace(v.name, keep({v.name})).second)
      invalid("input \"{}\" is defined twice", one_line(v.name));
    try {
      scope.values[v.name] = input(v, scope);
    } catch (const BadBinding &e) {
      errors_.push_back(e.what());
    } catch (const Unsupported &e) {
      error(true, fmt::format("input \"{}\": {}", one_line(v.name), e.what()));
    } catch (const Invalid &e) {
      error(false, fmt::format("input \"{}\": {}", one_line(v.name), e.what()));
    }
  }
  for (auto &[name, text] : options_.bind)
    if (!bound_.count(name))
      errors_.push_back(fmt::format("--bind {}={}: no dimension or input of that name", name, text));
}

// ---- the graph

// The tensors of an output, and what they are to be called: a sequence y gives y_0, y_1 ..
std::vector<Value *> Importer::outputs(Value *v, Text name, const Scope &scope, std::vector<Sym> &names) {
  std::vector<Value *> leaves;
  flatten(v, leaves);
  while (v->group && v->group->optional && !v->group->items.empty()) v = v->group->items[0];
  if (!v->group) {
    names.push_back(scope.names.at(name));
    return leaves;
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    std::string element = fmt::format("{}_{}", name, i);
    auto *own = as<Name>(leaves[i]->expr);
    names.push_back(own && b.text(own->name) == element ? own->name : fresh_.make(element));
  }
  return leaves;
}

const Item *Importer::main_graph(const Graph &g, Scope &scope) {
  module_names_.take(b.sym("main"));
  enter(g, scope);
  // Names of inputs and outputs are kept whatever happens, then those of dimensions, then those of all other values.
  auto reserve = [&](Text name) {
    if (!name.empty() && !scope.names.count(name)) scope.names[name] = fresh_.make(name);
  };
  for (const ValueInfo &v : g.inputs) reserve(v.name);
  for (const ValueInfo &v : g.outputs) reserve(v.name);
  inputs(g, scope);
  for (const Node &n : g.nodes)
    for (Text name : n.outputs) reserve(name);

  std::vector<Text> wanted;
  for (const ValueInfo &v : g.outputs) wanted.push_back(v.name);
  if (wanted.empty()) invalid("the graph has no outputs");
  nodes(g.nodes, wanted, scope);
  if (!errors_.empty()) return nullptr;

  std::vector<Def> results, sizes;
  std::unordered_set<Sym> taken, live, inner;
  for (const Param &p : params_) taken.insert(p.def.name);
  for (Sym s : dim_names_) inner.insert(s);
  std::vector<Value *> values;
  std::vector<Sym> names;
  for (Text name : wanted)
    for (Value *v : outputs(lookup(scope, name), name, scope, names)) values.push_back(v);
  if (values.empty()) unsupported("no output holds a tensor");
  for (size_t i = 0; i < values.size(); ++i) {
    Value *v = values[i];
    auto *own = as<Name>(v->expr);
    Sym s = names[i];
    // An input, a constant, or a value that is another output too needs a copy.
    if (!own || own->name != s || !taken.insert(s).second) {
      s = taken.insert(s).second ? s : fresh_.make(b.text(s));
      Use copy;
      copy.op = "Identity", copy.inputs = {v};
      v = write(copy, {s})[0];
    }
    for (const Expr *d : v->type->dims)
      each_expr(d, [&](const Expr *e) {  // sizes that are data are results too
        if (auto *n = as<Name>(e); n && inner.insert(n->name).second) sizes.push_back({n->name, kNowhere, b.index()});
        return true;
      });
    results.push_back({s, kNowhere, v->type});
  }
  results.insert(results.begin(), sizes.begin(), sizes.end());
  names.clear();
  for (const Def &d : results) names.push_back(d.name), live.insert(d.name);
  Func f{};
  f.func = FuncKind::Graph;
  f.name = b.sym("main");
  f.dims = b.list(dim_names_);
  f.params = b.list(params_);
  f.results = b.list(results);
  f.device_index = -1;
  Dataflow flow{};
  flow.outputs = b.list(names);
  flow.body = pruned(*body_, live);
  f.body = b.stmts({b.make(flow)});
  return b.make(f);
}

}  // namespace onnx
}  // namespace mlc
