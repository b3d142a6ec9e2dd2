// Writing one operator: its attributes by the table, what it has to know folded into its arguments, its types inferred.
#include <algorithm>

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

bool Importer::is_input(const Value *v) const {
  auto *n = as<Name>(v->expr);
  return n && std::any_of(params_.begin(), params_.end(), [&](const Param &p) { return p.def.name == n->name; });
}

std::vector<Value *> Importer::write(Use &use, const std::vector<Sym> &names) {
  const OpInfo *op = find_op(use.op);
  if (!op) unsupported("no such operator");
  if (use.attribute("") != nullptr) invalid("an attribute without a name");
  std::vector<Attr> attrs = attributes(use, *op);
  while (!use.inputs.empty() && !use.inputs.back()) use.inputs.pop_back();
  std::vector<Value *> &inputs = use.inputs;

  // Results in the operator's order: sizes come before what has them.
  std::vector<Sym> results;
  std::vector<size_t> outputs;  // which of them are outputs of the model's node
  while (outputs.size() < use.outputs) {
    const Operand *o = op->output(results.size());
    if (!o) invalid("expected at most {} outputs, found {}", outputs.size(), use.outputs);
    if (o->type == "size") {
      results.push_back(fresh_.make(use.base.empty() ? o->name : fmt::format("{}_{}", use.base, o->name)));
      continue;
    }
    Sym name = outputs.size() < names.size() ? names[outputs.size()] : Sym{};
    outputs.push_back(results.size());
    results.push_back(name ? name : fresh_.make(use.base.empty() ? o->name : std::string(use.base)));
  }

  // While types are inferred each input that is no literal is called #0, #1 ..: what is asked of it is then seen.
  std::vector<Sym> stand_ins;
  for (size_t i = 0; i < inputs.size(); ++i) stand_ins.push_back(b.sym(fmt::format("#{}", i)));
  std::vector<bool> asked(inputs.size());
  auto known_of = [&](Sym s) -> std::optional<std::vector<const Expr *>> {
    size_t i = size_t(std::find(stand_ins.begin(), stand_ins.end(), s) - stand_ins.begin());
    if (i == inputs.size()) return std::nullopt;
    asked[i] = true;
    const Elements &e = known(inputs[i]);
    if (!e) return std::nullopt;
    std::vector<const Expr *> list;
    for (X x : *e) list.push_back(x.e);
    return list;
  };
  std::vector<const Expr *> wanted_dims;
  for (X d : use.wanted_dims) wanted_dims.push_back(d.e);
  const IrType *wanted = use.wanted == DType::Invalid ? nullptr : b.tensor(use.wanted, b.list(wanted_dims));
  auto types_with = [&](const std::vector<bool> &folded, std::vector<const Expr *> &args,
                        std::vector<const Expr *> &facts) {
    std::vector<const IrType *> types;
    args.clear();
    for (size_t i = 0; i < inputs.size(); ++i) {
      Value *v = inputs[i];
      if (v && folded[i]) {
        std::vector<const Expr *> items;
        for (X x : *known(v)) items.push_back(x.e);
        args.push_back(v->type->rank() ? b.make_list(b.list(items)) : items[0]);
      } else {
        args.push_back(!v ? b.none() : v->literal ? v->expr : b.name(stand_ins[i]));
      }
      types.push_back(v && !folded[i] && !v->literal ? v->type : nullptr);
    }
    OpUse u(b, *op, types, b.list(args), attrs);
    u.results = results;
    u.wanted = wanted;
    u.known = known_of;
    std::vector<const IrType *> found = infer(u);
    facts = u.assumptions;
    return found;
  };

  std::vector<bool> none(inputs.size()), folded = none;
  std::vector<const Expr *> args, facts;
  std::vector<const IrType *> types;
  std::string hint;
  while (types.empty()) try {
      types = types_with(none, args, facts);
    } catch (const OpUnsupported &e) {  // once more, with the elements that it asked for read when the program runs
      bool more = false;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (!asked[i] || known(inputs[i])) continue;
        more |= itemize(inputs[i]);
        if (is_input(inputs[i])) hint = fmt::format("; --bind {}=VALUE fixes it", inputs[i]->name);
      }
      if (!more) unsupported("{}{}", e.what(), hint);
    }

  // What it asked for and got stands in the text as a number or a list: the text must give the same types.
  bool any = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    folded[i] = asked[i] && !inputs[i]->literal && known(inputs[i]) && inputs[i]->type->rank() <= 1;
    any |= folded[i];
  }
  if (any) {
    std::vector<const Expr *> more;
    bool same = false;
    try {
      same = types_with(folded, args, more) == types;
    } catch (const OpError &) {
    }
    if (same) facts = more;
    else folded = none, types = types_with(none, args, facts);
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] && !folded[i]) args[i] = inputs[i]->expr;

  std::vector<Def> defs;
  facts.insert(facts.end(), use.facts.begin(), use.facts.end());
  for (size_t i = 0; i < results.size(); ++i) {
    defs.push_back({results[i], kNowhere, types.at(i)});
    if (!types[i]->tensor) bounds_.dim(results[i]);
    for (const Expr *d : types[i]->dims) {
      if (too_large(d)) unsupported("a dimension whose expression has more than {} parts", kMostNodes);
      std::unordered_set<Sym> mentioned;
      collect_names(d, mentioned);
      bool item = std::any_of(mentioned.begin(), mentioned.end(), [&](Sym s) { return items_.count(s); });
      if (item && interval(d, bounds_).lo < 0) facts.push_back((X(b, d) >= 0).e);
    }
  }
  add(let(std::move(defs), b.call(b.sym(use.op), b.list(args)), std::move(attrs), use.from), std::move(facts));

  std::vector<Value *> values;
  for (size_t i : outputs) values.push_back(keep({use.base, b.name(results[i]), types[i]}));
  if (results.size() == 1) values[0]->known = fold_elements(*this, use, types[0]);
  return values;
}

Value *Importer::emit(Text base, std::string op, std::vector<Value *> inputs, std::vector<Attribute> attributes,
                      DType wanted) {
  Use use;
  use.op = std::move(op);
  use.inputs = std::move(inputs);
  use.attributes = std::move(attributes);
  use.wanted = wanted;
  use.base = base;
  use.from = from_;
  return write(use, {})[0];
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
