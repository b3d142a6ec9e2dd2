// Loop, and what Scan shares with it, as one statement of the language:
//   t: index, go: bool[], last: f32[d], trace: f32[t, d] = loop i in n carry c: bool[] = c0, s: f32[d] = x while c {..}
// A dimension of a carried value that a turn changes becomes a carried index value on the left of it.
// A loop whose turns are not alike (a sequence grows) is written turn by turn if their number is known.
#include <algorithm>
#include <cmath>

#include "ir/walk.h"
#include "onnx/importer.h"

namespace mlc::onnx {

namespace {

constexpr int64_t kMostTurns = 4096;  // that are written one after the other

struct Uneven {  // thrown where the turns of a loop are not alike
  std::string why;
};
template <class... A> [[noreturn]] void uneven(fmt::format_string<A...> f, A &&...a) {
  throw Uneven{fmt::format(f, std::forward<A>(a)...)};
}

}  // namespace

int64_t axis_in(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) invalid("axis {} is outside the rank {}", axis, rank);
  return axis < 0 ? axis + rank : axis;
}

// One turn, with the dimensions in `varies` carried. Null if a node of the body failed.
std::optional<Importer::Turn> Importer::import_turn(const LoopParts &p, const std::vector<Value *> &carried,
                                                    const Varies &varies) {
  Turn t;
  t.var = fresh_.make("i");
  if (p.trip) bounds_.range(t.var, p.trip);
  else bounds_.index(t.var);
  std::vector<Value *> inside;
  for (size_t k = 0; k < carried.size(); ++k) {
    Value *v = carried[k];
    std::vector<const Expr *> dims(v->type->dims.begin(), v->type->dims.end());
    for (size_t d = 0; d < dims.size(); ++d) {
      if (!varies[k][d]) continue;
      Sym size = new_size();
      t.carry.push_back({{size, kNowhere, b.index()}, dims[d]});
      dims[d] = b.name(size);
    }
    const IrType *type = b.tensor(v->type->elem, b.list(dims));
    t.carry.push_back({{fresh_.make(leaf_name(p, k)), kNowhere, type}, v->expr});
    inside.push_back(keep({leaf_name(p, k), b.name(t.carry.back().def.name), type}));
  }
  Values values = p.turn({b, b.name(t.var)}, regroup(p.carried, inside), &t.body);
  if (!values) return std::nullopt;
  auto next = values->begin();
  if (p.conditional) t.condition = *next++;
  for (Value *v : p.carried) {
    if (!alike(v, *next)) uneven("a carried value is {}, and {} after a turn", shown(v), shown(*next));
    flatten(*next++, t.carried);
  }
  t.stacked.assign(next, values->end());
  return t;
}

// Marks the dimensions that differ before and after the turn; true if there are more than before.
bool Importer::find_varying(const std::vector<Value *> &carried, const Turn &t, Varies &varies) {
  bool more = false;
  for (size_t k = 0; k < carried.size(); ++k) {
    const IrType *before = carried[k]->type, *after = t.carried[k]->type;
    if (before->elem != after->elem)
      invalid("carried value {}: expected {}, found {} after a turn", k, dtype_name(before->elem),
              dtype_name(after->elem));
    if (before->rank() != after->rank())
      uneven("carried value {}: its rank is {}, and {} after a turn", k, before->rank(), after->rank());
    for (size_t d = 0; d < before->rank(); ++d)
      if (!varies[k][d] && !equal(before->dims[d], after->dims[d])) varies[k][d] = more = true;
  }
  return more;
}

// The loop as one statement. Throws Uneven if its turns are not alike.
Importer::Values Importer::write_loop(const LoopParts &p) {
  std::vector<Value *> carried = flatten(p.carried);
  for (Value *&v : carried) v = named(v);
  Varies varies;
  for (Value *v : carried) varies.emplace_back(v->type->rank());
  size_t mark = bounds_.mark();
  std::optional<Turn> t;
  do {  // until the types hold for every turn
    bounds_.pop(mark);
    t = import_turn(p, carried, varies);
  } while (t && find_varying(carried, *t, varies));
  if (!t) {
    bounds_.pop(mark);
    return std::nullopt;
  }

  Loop loop{};
  std::vector<Def> defs;
  std::vector<const Expr *> yields, stacks;
  bool until = p.condition || (t->condition && !is_known(t->condition, true));
  if (!until && !p.trip) invalid("a loop without an end");
  if (until) {
    const IrType *flag = b.tensor(DType::Bool, {});
    loop.until = fresh_.make("go");
    t->carry.insert(t->carry.begin(),
                    Carry{{loop.until, kNowhere, flag}, condition(p.condition ? p.condition : truth(true))});
    InBody body(*this, &t->body);
    yields.push_back(condition(t->condition));
    defs.push_back({fresh_.make("t"), kNowhere, b.index()});
    defs.push_back({fresh_.make("go"), kNowhere, flag});
  }
  bounds_.pop(mark);
  if (until) bounds_.dim(defs[0].name);
  const Expr *turns = until ? b.name(defs[0].name) : p.trip;

  std::unordered_set<Sym> own = defined_in(t->body);
  own.insert(t->var);
  for (const Carry &c : t->carry) own.insert(c.def.name);
  std::vector<Value *> results;
  auto result = [&](Sym name, DType elem, const std::vector<const Expr *> &dims) {
    if (!name) name = fresh_.make("unused");
    defs.push_back({name, kNowhere, b.tensor(elem, b.list(dims))});
    results.push_back(keep({b.text(name), b.name(name), defs.back().type}));
  };
  std::vector<Sym> names = leaf_results(p);
  for (size_t k = 0; k < carried.size(); ++k) {
    const IrType *type = t->carried[k]->type;
    std::vector<const Expr *> dims(type->dims.begin(), type->dims.end());
    for (size_t d = 0; d < dims.size(); ++d) {
      if (!varies[k][d]) continue;
      defs.push_back({new_size(), kNowhere, b.index()});
      yields.push_back(dims[d]);
      dims[d] = b.name(defs.back().name);
    }
    yields.push_back(t->carried[k]->expr);
    result(names[k], type->elem, dims);
  }
  for (size_t k = 0; k < t->stacked.size(); ++k) {
    if (t->stacked[k]->group) invalid("a stacked output is {}", shown(t->stacked[k]));
    const IrType *type = t->stacked[k]->type;
    std::vector<const Expr *> dims{turns};
    for (const Expr *e : type->dims) {
      if (mentions_any(e, own)) uneven("a stacked output whose shape differs from turn to turn");
      dims.push_back(e);
    }
    stacks.push_back(t->stacked[k]->expr);
    size_t i = p.carried.size() + k;
    result(i < p.results.size() ? p.results[i] : Sym{}, type->elem, dims);
  }
  std::unordered_set<Sym> live;
  for (const Expr *e : yields) collect_names(e, live);
  for (const Expr *e : stacks) collect_names(e, live);
  loop.defs = b.list(defs);
  loop.iter = {t->var, p.trip ? p.trip : b.number(INFINITY), kNowhere};
  loop.carry = b.arena.copy(t->carry);
  loop.body = {pruned(t->body, live), b.list(yields), b.list(stacks)};
  loop.from = from_;
  add(b.make(loop));
  std::vector<Value *> leaves(results.begin(), results.begin() + int64_t(carried.size()));
  std::vector<Value *> all = regroup(p.carried, leaves);
  all.insert(all.end(), results.begin() + int64_t(carried.size()), results.end());
  return all;
}

// What leaf k of what is carried is called inside, and what the result of each leaf is to be called.
Text Importer::leaf_name(const LoopParts &p, size_t k) const {
  for (size_t i = 0; i < p.carried.size(); ++i) {
    size_t leaves = flatten({p.carried[i]}).size();
    if (k < leaves) return p.names[i];
    k -= leaves;
  }
  return {};
}
std::vector<Sym> Importer::leaf_results(const LoopParts &p) {
  std::vector<Sym> names;
  for (size_t i = 0; i < p.carried.size(); ++i) {
    Sym own = i < p.results.size() ? p.results[i] : Sym{};
    int64_t leaves = int64_t(flatten({p.carried[i]}).size());
    for (int64_t k = 0; k < leaves; ++k)
      names.push_back(!p.carried[i]->group ? own : own ? element_name(b.text(own), k) : Sym{});
  }
  return names;
}

// What the turns gave, one behind the other along a new first dimension.
Value *Importer::stacked(const std::vector<Value *> &turns, const onnx::Type *declared, Sym name) {
  Use u;
  u.op = "Concat", u.from = from_, u.base = name ? b.text(name) : Text("stacked");
  u.attributes = {attribute("axis", int64_t{0})};
  if (turns.empty()) {
    const IrType *type = declared ? declared_type(*declared) : nullptr;
    if (!type) unsupported("a stacked output of no turns, whose shape is not known");
    std::vector<const Expr *> dims{b.integer(0)};
    dims.insert(dims.end(), type->dims.begin(), type->dims.end());
    u.op = "ConstantOfShape", u.attributes.clear(), u.wanted = type->elem;
    std::vector<X> shape;
    for (const Expr *d : dims) shape.emplace_back(b, d);
    u.inputs = {list(shape)};
    return write(u, {name})[0];
  }
  for (Value *v : turns) {
    if (v->group) invalid("a stacked output is {}", shown(v));
    bool same = v->type->rank() == turns[0]->type->rank();
    int64_t n, m;
    for (size_t d = 0; same && d < v->type->rank(); ++d)  // what is not known is a fact that Concat asks for
      if (int_value(v->type->dims[d], &n) && int_value(turns[0]->type->dims[d], &m)) same = n == m;
    if (!same) invalid("a stacked output whose shape differs from turn to turn");
    u.inputs.push_back(emit(v->name, "Unsqueeze", {v, list(std::vector<int64_t>{0})}));
  }
  return write(u, {name})[0];
}

// The turns one after the other, as many as there are for sure.
Importer::Values Importer::unroll(const LoopParts &p, const std::string &why) {
  int64_t turns = kMostTurns + 1;
  if (p.condition || (p.trip && !int_value(p.trip, &turns)))
    unsupported("{}; --bind may give the number of turns or the condition", why);
  std::vector<Value *> carried = p.carried;
  std::vector<std::vector<Value *>> stacks(p.declared.size() - carried.size());
  bool go = true;
  for (int64_t i = 0; go && i < turns; ++i) {
    if (i == kMostTurns) unsupported("{}, and there are more than {} turns", why, kMostTurns);
    if (++imported_ > kMostImported) throw TooLarge{};
    Values values = p.turn(lit(b, i), carried, nullptr);
    if (!values) return std::nullopt;
    auto next = values->begin();
    if (p.conditional) {
      go = !is_known(*next, false);
      if (go && !is_known(*next, true)) unsupported("{}, and turn {} does not say whether there is another", why, i);
      ++next;
    }
    for (Value *&v : carried) v = *next++;
    for (auto &s : stacks) s.push_back(*next++);
  }
  for (size_t k = 0; k < stacks.size(); ++k) {
    size_t i = p.carried.size() + k;
    carried.push_back(stacked(stacks[k], p.declared[i], i < p.results.size() ? p.results[i] : Sym{}));
  }
  return carried;
}

// As one statement; if the turns are not alike, or the body needs to know which turn it is, one after the other.
Importer::Values Importer::turns(const LoopParts &p) {
  size_t mark = bounds_.mark(), errors = errors_.size();
  int64_t n;
  std::string why;
  try {
    if (Values results = write_loop(p)) return results;
    bool countable = p.trip && int_value(p.trip, &n) && n <= kMostTurns && !p.condition;
    if (!countable || errors_.size() == errors) return std::nullopt;  // or an error before it is the reason
    why = errors_[errors];
  } catch (const Uneven &e) {
    why = e.why;
  }
  bounds_.pop(mark);
  errors_.resize(errors);
  return unroll(p, why);
}

// The number of turns that an i64[] asks for; null: no limit.
const Expr *Importer::trip_count(Value *v) {
  if (!v) return nullptr;
  if (v->group) invalid("the number of turns is no tensor");
  if (!is_int(v->type->elem)) invalid("the number of turns is {}", dtype_name(v->type->elem));
  if (!known(v) && !itemize(v)) unsupported("a number of turns of type {}", dtype_name(v->type->elem));
  if (known(v)->size() != 1) invalid("the number of turns has {} elements", known(v)->size());
  X n = known(v)->at(0);
  return interval(n.e, bounds_).lo >= 0 ? n.e : max(n, lit(b, int64_t{0})).e;
}

void Importer::loop_node(const Node &n, Scope &scope, const Use &use) {
  const Graph &g = body_of(n, "body");
  size_t carried = use.inputs.size() < 2 ? 0 : use.inputs.size() - 2;
  if (g.inputs.size() != carried + 2) invalid("the body has {} inputs, expected {}", g.inputs.size(), carried + 2);
  if (use.outputs + 1 > g.outputs.size())
    invalid("the body has {} outputs, expected {}", g.outputs.size(), use.outputs + 1);
  if (g.outputs.size() < carried + 1) invalid("the body has too few outputs");
  for (size_t i = 0; i < use.inputs.size(); ++i) {
    if (i >= 2 && !use.inputs[i]) invalid("a carried value is left out");
    if (use.inputs[i] && use.inputs[i]->failed()) return forget(scope, n.outputs);
  }
  LoopParts p;
  p.trip = trip_count(use.input(0));
  p.conditional = true;
  if (Value *c = use.input(1)) {  // always true, or tested
    if (is_known(c, false)) p.trip = b.integer(0);
    else if (!is_known(c, true)) p.condition = c;
  }
  for (size_t i = 0; i < carried; ++i) {
    p.carried.push_back(named(use.inputs[2 + i]));
    p.names.push_back(g.inputs[2 + i].name);
  }
  for (Text name : n.outputs) p.results.push_back(name_for(scope, name));
  for (size_t i = 1; i < g.outputs.size(); ++i) p.declared.push_back(&g.outputs[i].type);
  p.turn = [&](X turn, const std::vector<Value *> &values, Body *into) {
    Scope inner = inside(scope);
    inner.values[g.inputs[0].name] = index(turn);
    inner.values[g.inputs[1].name] = truth(true);  // or there is no turn
    for (size_t k = 0; k < carried; ++k)
      if (!inner.values.emplace(g.inputs[2 + k].name, values[k]).second)
        invalid("input \"{}\" of the body is defined twice", one_line(g.inputs[2 + k].name));
    return run_body(g, inner, into);
  };
  Values results = turns(p);
  if (!results) return forget(scope, n.outputs);
  for (size_t i = 0; i < use.outputs; ++i) bind(scope, n.outputs[i], (*results)[i]);
}

}  // namespace mlc::onnx
