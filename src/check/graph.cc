// Values: what defines them, branches and loops that have values, dataflow regions.
#include "check/checker.h"
#include "text/text.h"

namespace mlc {

// A definition by a pure statement. A result of the graph is defined under its own name, with its own type.
Entry *FuncChecker::define_value(const Def &d) {
  Entry *e = find(d.name);
  if (!e || e->what != What::Result) {
    e = define(d.type->tensor ? What::Value : What::Scalar, d.name, d.type, d.at);
    e->written = true;
    return e;
  }
  if (e->defined) error(d.at, "result {} is defined already", text(d.name));
  if (e->written) error(d.at, "result {} is written by a call already, it cannot be a value too", text(d.name));
  bool tensors = same_type(d.at, text(d.name), e->type, d.type);
  if (tensors && e->type != d.type && e->type->elem != d.type->elem)
    error(d.at, "result {}: expected {}, found {}", text(d.name), print(b_, e->type), print(b_, d.type));
  e->defined = true;
  return e;
}

// Of what may be an operand: a value, buffer or constant; the type `index` for an index expression.
const Type *FuncChecker::value_type(const Expr *e) {
  if (auto *n = as<Name>(e)) {
    Entry *v = visible(n->name, e->at);
    if (!v) return nullptr;
    v->whole()->read = true;
    return v->type;
  }
  if (auto *g = as<Global>(e)) {
    const Const *c = m_.constant(g->name);
    if (c) return c->type;
    error(e->at, "no constant @{} in the module", b_.text(g->name));
    return nullptr;
  }
  return index(e) ? b_.index() : nullptr;
}

// The types of what a body yields; they may mention names of `defs` that are yielded on their left:
// m: index, y: f32[m].
void FuncChecker::yield_types(Exprs yields, std::span<const Type *const> types, Defs defs, uint32_t at) {
  if (yields.size() != types.size()) {
    error(yields.empty() ? at : yields[0]->at, "expected {}, found {}", counted(types.size(), "value"),
          yields.size());
    return;
  }
  Substitution sizes;
  for (size_t i = 0; i < yields.size(); ++i) {
    std::string what = "value of " + text(defs[i].name);
    if (!types[i]->tensor && types[i]->elem != DType::Index) {
      scalar(yields[i], types[i]->elem);
      continue;
    }
    const Type *found = value_type(yields[i]);
    if (found) same_type(yields[i]->at, what, substitute(b_, types[i], sizes), found);
    if (!types[i]->tensor) sizes[defs[i].name] = yields[i];
  }
}

void FuncChecker::if_value(const IfValue &s) {
  condition(s.cond);
  std::vector<const Type *> types;
  for (const Def &d : s.defs) types.push_back(d.type);
  ++maybe_;
  for (const Yield *y : {&s.then, &s.other}) {
    Mark m = open();
    statements(y->body);
    yield_types(y->yields, types, s.defs, s.at);
    if (!y->stacks.empty()) error(y->stacks[0]->at, "`stack` stands only in a `loop`");
    close(m);
  }
  --maybe_;
  for (const Def &d : s.defs) define_value(d), type(d.type, d.at);
}

//   t: index, y: T, ys: T2 = loop i in e carry a: T = a0 while go { .. yield a1, stack b1 }
// Results are the number of turns (with `while`), what is carried, what is stacked.
void FuncChecker::loop_value(const Loop &s) {
  auto *limit = as<Float>(s.iter.extent);
  bool endless = limit && limit->value > 0 && limit->value - limit->value != 0;  // loop i in inf
  bool ok = endless || index(s.iter.extent);
  size_t turns = s.until ? 1 : 0, carried = s.carry.size(), stacked = s.body.stacks.size();
  if (endless && !s.until) error(s.at, "a loop in inf needs `while`");
  if (s.defs.size() != turns + carried + stacked)
    error(s.at, "this loop has {} ({}{} carried, {} stacked), found {}",
          counted(turns + carried + stacked, "result"), turns ? "the number of turns, " : "", carried, stacked,
          counted(s.defs.size(), "name"));
  else if (turns && s.defs[0].type != b_.index())
    error(s.defs[0].at, "{} is the number of turns, expected index, found {}", text(s.defs[0].name),
          print(b_, s.defs[0].type));

  Substitution sizes;
  for (const Carry &c : s.carry) {
    std::string what = "value of " + text(c.def.name);
    if (!c.def.type->tensor && c.def.type->elem != DType::Index) {
      scalar(c.init, c.def.type->elem);
      continue;
    }
    const Type *found = value_type(c.init);
    if (found) same_type(c.init->at, what, substitute(b_, c.def.type, sizes), found);
    if (!c.def.type->tensor) sizes[c.def.name] = c.init;
  }

  Mark m = open();
  Entry *i = define(What::Loop, s.iter.name, b_.index(), s.iter.at);
  if (!endless) i->extent = s.iter.extent;
  ok && !endless ? bounds_.range(s.iter.name, s.iter.extent) : bounds_.index(s.iter.name);
  std::vector<const Type *> types;
  std::vector<Def> defs;
  for (const Carry &c : s.carry) {
    type(c.def.type, c.def.at);
    define(c.def.type->tensor ? What::Value : What::Scalar, c.def.name, c.def.type, c.def.at)->written = true;
    types.push_back(c.def.type), defs.push_back(c.def);
  }
  if (s.until) {
    Entry *go = find(s.until);
    bool is_carried = false;
    for (const Def &d : defs) is_carried |= d.name == s.until;
    if (!is_carried || !go || go->type->elem != DType::Bool || go->type->rank() != 0)
      error(s.at, "`while {}`: expected a carried bool[]", text(s.until));
  }
  ++maybe_;
  statements(s.body.body);
  yield_types(s.body.yields, types, defs, s.at);
  std::vector<const Type *> pieces;
  for (const Expr *e : s.body.stacks) pieces.push_back(value_type(e));
  --maybe_;
  close(m);

  if (s.defs.size() != turns + carried + stacked) {
    for (const Def &d : s.defs) define_value(d);
    return;
  }
  // The results have the types of what is carried, with their own names for sizes; a stacked one counts turns first.
  Substitution renamed;
  for (size_t k = 0; k < s.defs.size(); ++k) {
    const Def &d = s.defs[k];
    Entry *e = define_value(d);
    type(d.type, d.at);
    if (k < turns) continue;
    if (k < turns + carried) {
      same_type(d.at, text(d.name), substitute(b_, types[k - turns], renamed), d.type);
      if (!d.type->tensor) renamed[defs[k - turns].name] = b_.name(e->name);
      continue;
    }
    const Type *piece = pieces[k - turns - carried];
    if (!piece) continue;
    std::vector<const Expr *> dims = {turns ? b_.name(s.defs[0].name) : s.iter.extent};
    dims.insert(dims.end(), piece->dims.begin(), piece->dims.end());
    DType elem = piece->elem == DType::Index ? DType::I64 : piece->elem;
    same_type(d.at, text(d.name), b_.tensor(elem, b_.list(dims)), d.type);
  }
}

void FuncChecker::dataflow(const Dataflow &s) {
  Mark m = open();
  ++pure_;
  statements(s.body);
  --pure_;
  std::vector<Entry *> out;
  std::unordered_set<Sym> defined, given(s.outputs.begin(), s.outputs.end());
  for (size_t i = m.names; i < log_.size(); ++i) defined.insert(log_[i].name);
  for (Sym name : s.outputs) {
    Entry *e = find(name);
    bool inside = defined.count(name);
    if (e && e->what == What::Result) inside = e->defined;  // results are defined under the name of the signature
    if (!e || !inside) {
      error(s.at, "{} is not defined in this region", text(name));
      continue;
    }
    out.push_back(e);
  }
  // A result that the region defines and does not give out is not defined outside.
  each_stmt(s.body, [&](const Stmt *x) {
    auto *l = as<Let>(x);
    if (!l) return;
    for (const Def &d : l->defs)
      if (Entry *e = find(d.name); e && e->what == What::Result && !given.count(d.name))
        error(d.at, "result {} is not among the outputs of its region", text(d.name));
  });
  close(m);
  for (Entry *e : out) {
    if (e->what == What::Result) continue;
    enter(e);
    if (e->type == b_.index()) bounds_.index(e->name);
  }
}

}  // namespace mlc
