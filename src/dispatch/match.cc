#include "dispatch/match.h"

#include <algorithm>

#include "arith/prove.h"
#include "arith/scope.h"
#include "arith/simplify.h"
#include "ir/solve.h"
#include "text/text.h"

namespace mlc {

const Param *param_of(const LibraryPattern &p, Sym name) {
  auto &all = p.function->params;
  auto it = std::find_if(all.begin(), all.end(), [&](const Param &x) { return x.def.name == name; });
  return it == all.end() ? nullptr : &*it;
}

bool is_literal(const Expr *e) { return e->kind == Kind::Int || e->kind == Kind::Float || e->kind == Kind::Bool; }

namespace {

// All lines are read, from the one that gives the first result backwards.
bool connected(const LibraryPattern &p) {
  std::unordered_set<Sym> read;
  for (const Def &d : p.function->results) read.insert(d.name);
  for (auto it = p.lines.rbegin(); it != p.lines.rend(); ++it) {
    bool used = std::any_of((*it)->defs.begin(), (*it)->defs.end(), [&](const Def &d) { return read.count(d.name); });
    if (!used) return false;
    collect_names((*it)->value, read);
  }
  return true;
}

}  // namespace

std::optional<LibraryPattern> library_pattern(Build &b, const Func &f, std::string *why) {
  LibraryPattern p{&f, {}, false, {}, 0, nullptr};
  auto part = std::find_if(f.parts.begin(), f.parts.end(), [](const Part &x) { return x.desc; });
  auto no = [&](const char *reason) { return *why = reason, std::nullopt; };
  if (part == f.parts.end()) return no("it has no description");
  p.body = part->body;
  size_t loops = 0;
  for (const Stmt *s : p.body) {
    auto *l = as<Let>(s);
    if (l && operator_of(b, *l)) p.lines.push_back(l);
    else if (s->kind != Kind::Assume) loops++;
  }
  p.operators = !p.lines.empty();
  if (p.operators && loops) return no("its description mixes operators with other statements");
  if (!p.operators && !loops) return no("its description is empty");
  if (p.operators && !connected(p)) return no("a line of its description does not lead to a result");
  for (const Param &x : f.params) {
    if (x.mode == Mode::Inout) return no("it writes a parameter in place");
    if (x.mode == Mode::Scratch) return no("it has a scratch parameter: attr workspace says how many bytes it needs");
  }
  if (const Expr *e = attr(b, f.notes.attrs, "priority")) int_value(e, &p.priority);
  p.cost = attr(b, f.notes.attrs, "cost");
  return p;
}

bool bind_scalar(const Build &b, const Param &param, const Expr *e, Binding &s, Reasons &why) {
  auto &d = param.def;
  if (auto it = s.names.find(d.name); it != s.names.end()) {
    if (equal(it->second, e)) return s.depth++, true;
    return why.no(s, "parameter {} would be {} and {}", b.text(d.name), print(b, it->second), print(b, e));
  }
  bool index = d.type->elem == DType::Index;
  constexpr Kind kNoIndex[] = {Kind::Float, Kind::Str, Kind::Bool, Kind::List, Kind::Global, Kind::None};
  bool may_be_index = std::find(std::begin(kNoIndex), std::end(kNoIndex), e->kind) == std::end(kNoIndex);
  bool fits = index ? may_be_index && !reads_memory(e) : is_literal(e);
  if (!fits) return why.no(s, "parameter {}: expected a literal, found {}", b.text(d.name), print(b, e));
  s.names[d.name] = e, s.depth++;
  return true;
}

bool settle(Build &b, const LibraryPattern &p, const Binding &s, const std::function<const Type *(const Expr *)> &type,
            std::span<const Type *const> results, const Bounds &known, Found &out, Reasons &why) {
  const Func &f = *p.function;
  std::vector<Argument> types;
  std::vector<const Expr *> args;
  auto text = [&](Sym n) { return b.text(n); };
  for (const Param &x : f.params) {
    auto it = s.names.find(x.def.name);
    if (it == s.names.end()) return why.no(s, "nothing says what parameter {} is", text(x.def.name));
    args.push_back(it->second);
    const Type *t = x.def.type->tensor ? type(it->second) : x.def.type;
    if (!t) return why.no(s, "parameter {}: {} is no tensor", text(x.def.name), print(b, it->second));
    types.push_back({t, t->elem == DType::Index && !t->tensor ? it->second : nullptr, {}});
    if (x.def.type->tensor && (t->elem != x.def.type->elem || t->rank() != x.def.type->rank()))
      return why.no(s, "parameter {}: expected {}, found {}", text(x.def.name), print(b, x.def.type), print(b, t));
  }
  std::vector<Argument> made;
  for (const Type *t : results) made.push_back({t, nullptr, {}});
  Solution solved = solve_dims(b, f, types, made);
  if (solved.problem == Solution::Unsolved)
    return why.no(s, "its dimension {} does not follow from the arguments", text(solved.dim));
  if (!solved) {
    const Param &x = f.params[std::min(solved.param, f.params.size() - 1)];
    return why.no(s, "parameter {}: expected {}, found {}", text(x.def.name), print(b, x.def.type),
                                 print(b, types[std::min(solved.param, types.size() - 1)].type));
  }
  Substitution names = solved.names;
  for (auto &[name, e] : s.names) names.emplace(name, e);
  auto same = [&](const Expr *x, const Expr *y) { return equal(x, y) || provably_equal(b, x, y, known); };
  for (const Solution::Equation &e : solved.open)
    if (!same(e.wanted, e.found))
      return why.no(s, "parameter {}: a size of {} is not proved to be {}", text(f.params[e.param].def.name),
                                   print(b, e.found), print(b, e.wanted));
  for (const Binding::Equal &e : s.equal) {
    Substitution here = names;
    if (e.locals)
      for (auto &[name, x] : *e.locals) here.insert_or_assign(name, x);
    if (const Expr *w = substitute(b, e.wanted, here); !same(w, e.found))
      return why.no(s, "expected {}, found {}", print(b, w), print(b, e.found));
  }
  for (size_t i = 0; i < results.size(); i++) {
    const Type *want = substitute(b, f.results[i].type, names), *found = results[i];
    bool fits = want->elem == found->elem && want->rank() == found->rank() && !found->device && !found->scope;
    for (size_t d = 0; fits && d < want->rank(); d++) fits = same(want->dims[d], found->dims[d]);
    if (!fits)
      return why.no(s, "result {}: expected {}, found {}", text(f.results[i].name), print(b, want), print(b, found));
  }
  for (const Stmt *x : p.body)
    if (auto *a = as<Assume>(x))
      if (const Expr *cond = substitute(b, a->cond, names); !prove(b, cond, known))
        return why.no(s, "{} is not proved", print(b, cond));
  out.args = b.list(args);
  int64_t cost;
  if (p.cost && int_value(simplify(b, substitute(b, p.cost, names), known), &cost)) out.cost = cost;
  return true;
}

}  // namespace mlc
