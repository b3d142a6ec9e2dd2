// Writing one operator: its attributes by the table, what it has to know folded into its arguments, its types inferred.
#include <algorithm>

#include "arith/prove.h"
#include "ir/walk.h"
#include "num/literal.h"
#include "onnx/importer.h"
#include "text/text.h"

namespace mlc::onnx {

namespace {

constexpr int64_t kMostItems = 16;    // elements of a shape that are read one by one when the program runs
constexpr size_t kMostNodes = 2000;   // of a dimension's expression

const Expr *ints(Build &b, const std::vector<int64_t> &v) {
  std::vector<const Expr *> items;
  for (int64_t x : v) items.push_back(b.integer(x));
  return b.make_list(b.list(items));
}

// The value of an attribute as the table wants it; null if it is of another kind.
const Expr *attribute_value(Build &b, const Attribute &a, char type, DType wanted) {
  std::vector<const Expr *> items;
  switch (type) {
    case 'i': return a.kind == AttrKind::Int ? b.integer(a.i) : nullptr;
    case 'f': return a.kind == AttrKind::Float ? b.number(a.f, DType::F32) : nullptr;
    case 's': return a.kind == AttrKind::String ? b.string(a.s) : nullptr;
    case 'I': return a.kind == AttrKind::Ints ? ints(b, a.ints) : nullptr;
    case 'F':
      if (a.kind != AttrKind::Floats) return nullptr;
      for (float f : a.floats) items.push_back(b.number(f, DType::F32));
      return b.make_list(b.list(items));
    case 'S':
      if (a.kind != AttrKind::Strings) return nullptr;
      for (Text s : a.strings) items.push_back(b.string(s));
      return b.make_list(b.list(items));
    case 'v':  // a scalar of the result's type: a tensor of one element, or a number
      if (a.kind == AttrKind::Int) return b.integer(a.i);
      if (a.kind == AttrKind::Float) return lit(b, a.f, wanted == DType::Invalid ? DType::F32 : wanted).e;
      return nullptr;
  }
  return nullptr;
}

std::string_view kind_of(char type) {
  switch (type) {
    case 'i': return "int";
    case 'f': return "float";
    case 's': return "string";
    case 'I': return "ints";
    case 'F': return "floats";
    case 'S': return "strings";
  }
  return "a scalar";
}

// Whether a value is what the table gives anyway.
bool is_default(const Build &b, const AttrSpec &spec, const Expr *e) {
  if (spec.fallback.empty() || spec.fallback == "?") return false;
  double v;
  auto *f = as<Float>(e);
  if (f && parse_number(spec.fallback, &v)) return float(v) == float(f->value);
  return print(b, e) == spec.fallback;
}

bool too_large(const Expr *e) {
  size_t nodes = 0;
  each_expr(e, [&](const Expr *) { return ++nodes <= kMostNodes; });
  return nodes > kMostNodes;
}

}  // namespace

std::vector<Attr> Importer::attributes(const Use &use, const OpInfo &op) {
  for (const Attribute &a : use.attributes)
    if (!op.attr(a.name)) unsupported("attribute '{}'", a.name);
  std::vector<Attr> attrs;
  for (const AttrSpec &spec : op.attrs) {
    const Attribute *a = use.attribute(spec.name);
    if (!a) continue;
    bool tensor = spec.type == 'v' && a->kind == AttrKind::Tensor;
    if (tensor && extent_of(a->tensors[0]).count != 1) invalid("attribute '{}': expected one element", a->name);
    const Expr *e = tensor ? literals(array_of(a->tensors[0]))[0] : attribute_value(b, *a, spec.type, use.wanted);
    if (!e) invalid("attribute '{}': expected {}, found {}", spec.name, kind_of(spec.type), kind_name(a->kind));
    if (!is_default(b, spec, e)) attrs.push_back({b.sym(spec.name), kNowhere, e});
  }
  return attrs;
}

void Importer::add(const Stmt *s, std::vector<const Expr *> assumptions) {
  body_->entries.push_back({s, std::move(assumptions)});
}

const Let *Importer::let(std::vector<Def> defs, const Expr *value, std::vector<Attr> attrs, Syms from) {
  return b.make(Let{{}, b.list(defs), value, b.list(attrs), from});
}

// Reads a small integer tensor when the program runs, element by element, so that it can stand in dimensions:
//   n: index = Item(s)        or        s_1: i64[] = Gather(s, 0);  n: index = Item(s_1)
bool Importer::itemize(Value *v) {
  std::vector<int64_t> dims;
  if (v->literal || v->known || v->constant || !is_int(v->type->elem) || v->type->rank() > 1) return false;
  if (!all_static(v->type, &dims) || (!dims.empty() && dims[0] > kMostItems)) return false;
  std::string base = v->name.empty() ? "size" : std::string(v->name);
  std::vector<X> items;
  for (int64_t i = 0, n = dims.empty() ? 1 : dims[0]; i < n; ++i) {
    const Expr *element = v->expr;
    if (!dims.empty()) {
      Sym at = fresh_.make(base + "_at");
      const IrType *type = b.tensor(v->type->elem, {});
      add(let({{at, kNowhere, type}}, b.call("Gather", {v->expr, b.integer(i)}), {}, from_));
      element = b.name(at);
    }
    Sym item = fresh_.make(base + "_item");
    add(let({{item, kNowhere, b.index()}}, b.call("Item", {element}), {}, from_));
    bounds_.index(item);
    items_.insert(item);
    items.push_back({b, b.name(item)});
  }
  v->known = std::move(items);
  itemized_.push_back(v);
  return true;
}

X Importer::item(Value *v, std::string_view what) {
  if (!known(v)) itemize(v);
  const Elements &e = known(v);
  if (!e || e->size() != 1 || !is_int(v->type->elem)) unsupported("{} must be one integer", what);
  return (*e)[0];
}

bool Importer::is_input(const Value *v) const {
  auto *n = as<Name>(v->expr);
  return n && std::any_of(params_.begin(), params_.end(), [&](const Param &p) { return p.def.name == n->name; });
}

namespace {

// One use while its types are found. Each input that is no literal is called #0, #1 ..: what the operator asks of it is
// then seen.
class Inference {
 public:
  Inference(Importer &im, const Use &use, const OpInfo &op, const std::vector<Attr> &attrs, std::vector<Sym> results)
      : asked(use.inputs.size()), im_(im), use_(use), op_(op), attrs_(attrs), results_(std::move(results)) {
    for (size_t i = 0; i < use.inputs.size(); ++i) names_.push_back(im.b.sym(fmt::format("#{}", i)));
    std::vector<const Expr *> dims;
    for (X d : use.wanted_dims) dims.push_back(d.e);
    if (use.wanted != DType::Invalid) wanted_ = im.b.tensor(use.wanted, im.b.list(dims));
  }

  // With the known elements of the inputs in `folded` written as numbers and lists. Throws OpError.
  void run(const std::vector<bool> &folded) {
    std::vector<const IrType *> given;
    args.clear();
    for (size_t i = 0; i < use_.inputs.size(); ++i) {
      Value *v = use_.inputs[i];
      bool plain = v && !v->literal && !folded[i];
      args.push_back(!v ? im_.b.none() : plain ? im_.b.name(names_[i]) : folded[i] ? written(v) : v->expr);
      given.push_back(plain ? v->type : nullptr);
    }
    OpUse &u = last_.emplace(im_.b, op_, given, im_.b.list(args), im_.b.list(attrs_));
    u.results = results_;
    u.wanted = wanted_;
    u.known = [this](Sym s) { return known(s); };
    types = infer(u);
    types.resize(results_.size());
    for (const IrType *&t : types) t = t ? t : wanted_;
    facts = u.assumptions;
    for (size_t i = 0; i < args.size(); ++i)
      if (given[i]) args[i] = use_.inputs[i]->expr;
  }

  // That the operator's definition accepts the use too: modes and the like. Throws OpError.
  void define() {
    if (types.empty() || !types[0] || !op_.define) return;  // what reads letters or files has no kernel
    if (!types[0]->tensor) count_kernel(*last_, last_->b.sym(use_.op), {});
    op_kernel(*last_, types, last_->b.sym(use_.op), {});
  }

  std::vector<bool> asked;              // inputs whose elements the operator asked for
  std::vector<const IrType *> types;    // of the results
  std::vector<const Expr *> args, facts;

 private:
  const Expr *written(Value *v) const {
    std::vector<const Expr *> items;
    for (X x : *im_.known(v)) items.push_back(x.e);
    return v->type->rank() ? im_.b.make_list(im_.b.list(items)) : items[0];
  }
  std::optional<std::vector<const Expr *>> known(Sym s) {
    size_t i = size_t(std::find(names_.begin(), names_.end(), s) - names_.begin());
    if (i == names_.size()) return std::nullopt;
    asked[i] = true;
    const Elements &e = im_.known(use_.inputs[i]);
    if (!e) return std::nullopt;
    std::vector<const Expr *> list;
    for (X x : *e) list.push_back(x.e);
    return list;
  }

  Importer &im_;
  const Use &use_;
  const OpInfo &op_;
  const std::vector<Attr> &attrs_;
  std::vector<Sym> results_, names_;
  const IrType *wanted_ = nullptr;
  std::optional<OpUse> last_;
};

}  // namespace

// Names of all results in the operator's order: sizes come before what has them. `outputs`: which are the node's outputs.
std::vector<Sym> Importer::result_names(const Use &use, const OpInfo &op, const std::vector<Sym> &names,
                                        std::vector<size_t> &outputs) {
  std::vector<Sym> results;
  std::string base(use.base);
  while (outputs.size() < use.outputs) {
    const Operand *o = op.output(results.size());
    if (!o) invalid("expected at most {} outputs, found {}", outputs.size(), use.outputs);
    if (o->type == "size") {
      results.push_back(fresh_.make(base.empty() ? o->name : base + "_" + o->name));
      continue;
    }
    Sym name = outputs.size() < names.size() ? names[outputs.size()] : Sym{};
    outputs.push_back(results.size());
    results.push_back(name ? name : fresh_.make(base.empty() ? o->name : base));
  }
  return results;
}

// Sizes must be writable, and those read from data at run time not negative.
void Importer::check_sizes(const IrType *type, std::vector<const Expr *> &facts) {
  for (const Expr *d : type->dims) {
    if (too_large(d)) unsupported("a dimension whose expression has more than {} parts", kMostNodes);
    if (mentions_any(d, items_) && interval(d, bounds_).lo < 0) facts.push_back((X(b, d) >= 0).e);
  }
}

std::vector<Value *> Importer::write(Use &use, const std::vector<Sym> &names) {
  const OpInfo *op = find_op(use.op);
  if (!op) unsupported("no such operator");
  std::vector<Attr> attrs = attributes(use, *op);
  std::vector<Value *> &inputs = use.inputs;
  while (!inputs.empty() && !inputs.back()) inputs.pop_back();
  std::vector<size_t> outputs;
  std::vector<Sym> results = result_names(use, *op, names, outputs);

  Inference inference(*this, use, *op, attrs, results);
  std::vector<bool> none(inputs.size()), folded = none;
  std::string hint;
  for (bool again = true; again;) try {
      inference.run(none);
      again = false;
    } catch (const OpUnsupported &e) {  // once more, with the elements that it asked for read when the program runs
      again = false;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (!inference.asked[i] || known(inputs[i])) continue;
        again |= itemize(inputs[i]);
        if (is_input(inputs[i])) hint = fmt::format("; --bind {}=VALUE fixes it", inputs[i]->name);
      }
      if (!again) unsupported("{}{}", e.what(), hint);
    }

  // What it asked for and got stands in the text as a number or a list, if that gives the same types.
  for (size_t i = 0; i < inputs.size(); ++i)
    folded[i] = inference.asked[i] && !inputs[i]->literal && known(inputs[i]) && inputs[i]->type->rank() <= 1;
  if (folded != none) {
    std::vector<const IrType *> types = inference.types;
    bool same = false;
    try {
      inference.run(folded);
      same = inference.types == types;
    } catch (const OpError &) {
    }
    if (!same) inference.run(none);
  }
  inference.define();

  std::vector<Def> defs;
  std::vector<const Expr *> facts = inference.facts;
  std::erase_if(facts, [&](const Expr *e) { return prove(b, e, bounds_); });
  facts.insert(facts.end(), use.facts.begin(), use.facts.end());
  for (size_t i = 0; i < results.size(); ++i) {
    const IrType *type = inference.types[i];
    if (!type) invalid("expected at most {} outputs, found {}", i, use.outputs);
    if (!type->tensor) bounds_.dim(results[i]);
    check_sizes(type, facts);
    defs.push_back({results[i], kNowhere, type});
  }
  std::vector<Value *> values;
  for (size_t i : outputs) values.push_back(keep({use.base, b.name(results[i]), defs[i].type}));
  for (size_t i = 0; i < values.size() && values.size() == results.size(); ++i)
    values[i]->known = fold_elements(*this, use, std::span(inference.types).first(i + 1));
  add(let(std::move(defs), b.call(b.sym(use.op), b.list(inference.args)), std::move(attrs), use.from), std::move(facts));
  return values;
}

Value *Importer::emit(Text base, std::string op, std::vector<Value *> inputs, std::vector<Attribute> attributes,
                      DType wanted, std::vector<X> wanted_dims) {
  Use use;
  use.op = std::move(op);
  use.inputs = std::move(inputs);
  use.attributes = std::move(attributes);
  use.wanted = wanted;
  use.wanted_dims = std::move(wanted_dims);
  use.base = base;
  use.from = from_;
  return write(use, {})[0];
}

std::vector<Value *> Importer::emit_all(Text base, std::string op, size_t outputs, std::vector<Value *> inputs,
                                        std::vector<Attribute> attributes) {
  Use use;
  use.op = std::move(op);
  use.inputs = std::move(inputs);
  use.attributes = std::move(attributes);
  use.base = base;
  use.from = from_;
  use.outputs = use.listed = outputs;
  return write(use, {});
}

void Importer::rename_last(Value *v, Sym name) {
  auto *own = as<Name>(v->expr);
  auto *last = own && !body_->entries.empty() ? as<Let>(body_->entries.back().stmt) : nullptr;
  if (!last) return;
  std::vector<Def> defs(last->defs.begin(), last->defs.end());
  auto it = std::find_if(defs.begin(), defs.end(), [&](const Def &d) { return d.name == own->name && d.type->tensor; });
  if (it == defs.end()) return;
  it->name = name;
  Let renamed = *last;
  renamed.defs = b.list(defs);
  body_->entries.back().stmt = b.make(renamed);
  v->expr = b.name(name);
}

namespace {

void collect(Exprs list, std::unordered_set<Sym> &out) {
  for (const Expr *e : list) collect_names(e, out);
}

// Names that a statement mentions, with those inside it.
void collect(const Stmt *s, std::unordered_set<Sym> &out) {
  each_expr_of(s, [&](const Expr *e) { collect_names(e, out); });
  each_body(s, [&](Stmts body) {
    for (const Stmt *inner : body) collect(inner, out);
  });
}

}  // namespace

Defs definitions(const Stmt *s) {
  if (auto *l = as<Let>(s)) return l->defs;
  if (auto *i = as<IfValue>(s)) return i->defs;
  return to<Loop>(s).defs;
}

// The statements that the live names need, with their facts, each fact once.
Stmts Importer::pruned(const Body &body, std::unordered_set<Sym> live) {
  std::vector<bool> keep(body.entries.size());
  for (size_t i = body.entries.size(); i-- > 0;) {
    auto &[stmt, assumptions] = body.entries[i];
    for (const Def &d : definitions(stmt)) keep[i] = keep[i] || live.count(d.name);
    if (!keep[i]) continue;
    collect(stmt, live);
    collect(b.list(assumptions), live);
  }
  std::vector<const Stmt *> stmts;
  std::set<std::string> said;
  for (size_t i = 0; i < keep.size(); ++i) {
    if (!keep[i]) continue;
    for (const Expr *e : body.entries[i].assumptions)
      if (said.insert(print(b, e)).second) stmts.push_back(b.make(Assume{{}, e}));
    stmts.push_back(body.entries[i].stmt);
  }
  return b.list(stmts);
}

}  // namespace mlc::onnx
