#include "graph/plan_lines.h"

#include <algorithm>

#include "graph/values.h"
#include "graph/workspace.h"
#include "ir/solve.h"
#include "text/text.h"

namespace mlc {

PlanLines::PlanLines(Build &b, Module &m, const Func &f, std::unordered_map<Sym, const Func *> &functions, Diag &diag)
    : places(b, m, diag, functions), names(b), b_(b), m_(m), diag_(diag), f_(f), upper_(b, f), functions_(functions) {
  take_names(&f, names);
  auto given = [&](const Def &d, decltype(Buffer::where) where, size_t ready) {
    if (!d.type->tensor) return;
    Buffer &x = places.buffers[d.name];
    x.type = d.type, x.at = d.at, x.where = where, x.root = d.name, x.ready = ready;
  };
  for (const Param &p : f.params) given(p.def, Buffer::Argument, 0);
  for (const Def &d : f.results) given(d, Buffer::Result, SIZE_MAX);
  sizes_known();
}

void PlanLines::run() {
  body(f_.body, lines);
  capacities();
}

Line *PlanLines::add(Lines &out, Line l) { return out.emplace_back(places.line(std::move(l))); }
void PlanLines::plain(Lines &out, const Stmt *s, std::vector<Sym> uses, std::vector<Sym> defines) {
  Line l;
  l.stmt = s, l.uses = std::move(uses), l.defines = std::move(defines);
  add(out, std::move(l));
}

void PlanLines::declare(Lines &out, Sym s) {
  Line l;
  l.kind = Line::Declare, l.defines = {s};
  add(out, std::move(l));
}

void PlanLines::body(Stmts stmts, Lines &out) {
  for (const Stmt *s : stmts)
    if (!diag_.errors()) line(s, out);  // what stands behind an error may use what it would have defined
}

void PlanLines::line(const Stmt *s, Lines &out) {
  switch (s->kind) {
    case Kind::Dataflow: return body(to<Dataflow>(s).body, out);
    case Kind::Let: return let(to<Let>(s), out);
    case Kind::IfValue: return if_value(to<IfValue>(s), out);
    case Kind::Loop: return loop(to<Loop>(s), out);
    case Kind::Assume:
      plain(out, s, reads(to<Assume>(s).cond));
      return upper_.assume(to<Assume>(s).cond);
    case Kind::Alloc: {
      auto &a = to<Alloc>(s);
      if (a.base) return part(s, a.def, a.base, out);
      buffer(a.def);
      return declare(out, a.def.name);
    }
    case Kind::View: return part(s, to<View>(s).def, to<View>(s).source->buffer, out);
    case Kind::CallStmt: {
      auto &c = to<CallStmt>(s);
      Line l;
      l.stmt = s;
      for (const Expr *e : c.call->args) l.uses = reads(e, l.uses);
      for (const Expr *e : c.dests) l.defines = reads(e, l.defines);
      if (const Func *k = c.call->global ? m_.func(c.call->callee) : nullptr) workspace(l, *k, *c.call);
      add(out, std::move(l));
      return;
    }
    case Kind::For: {
      auto &f = to<For>(s);
      Line *l = open(out, f, *s, {});
      inner(l, [&](Lines &in) { upper_.range(f.iter.name, f.iter.extent), body(own(f.body), in); });
      return places.close(l);
    }
    case Kind::If: {
      auto &i = to<If>(s);
      If head = i;
      head.cond = condition(i.cond);
      Line *l = open(out, head, *s, reads(i.cond));
      for (Stmts side : {i.body, i.other}) inner(l, [&](Lines &in) { body(own(side), in); });
      return places.close(l);
    }
    case Kind::While: {
      While head = to<While>(s);
      head.cond = condition(head.cond);
      Line *l = open(out, head, *s, reads(head.cond));
      inner(l, [&](Lines &in) { body(own(to<While>(s).body), in); });
      return places.close(l);
    }
    default: diag_.error(s->at, "`{}` cannot be planned", print(b_, s));
  }
}

// ---- names

Substitution PlanLines::clashes(Stmts body, std::span<const Carry> carry) {
  Substitution renamed;
  auto one = [&](const Def &d) {
    if (places.has(d.name) && !renamed.count(d.name)) renamed[d.name] = b_.name(names.make(b_.text(d.name)));
  };
  for (const Carry &c : carry) one(c.def);
  each_stmt(body, [&](const Stmt *s) {
    if (auto *l = as<Let>(s)) std::for_each(l->defs.begin(), l->defs.end(), one);
    if (auto *i = as<IfValue>(s)) std::for_each(i->defs.begin(), i->defs.end(), one);
    if (auto *l = as<Loop>(s)) std::for_each(l->defs.begin(), l->defs.end(), one);
    if (auto *a = as<Alloc>(s)) one(a->def);
    if (auto *v = as<View>(s)) one(v->def);
  });
  return renamed;
}

Stmts PlanLines::own(Stmts body) {
  Substitution names = clashes(body);
  return names.empty() ? body : substitute(b_, body, names);
}

Yield PlanLines::own(const Yield &y, const Substitution &names) {
  if (names.empty()) return y;
  return {substitute(b_, y.body, names), substitute(b_, y.yields, names), substitute(b_, y.stacks, names)};
}

std::vector<Sym> PlanLines::reads(const Expr *e, std::vector<Sym> found) const {
  auto one = [&](Sym s) {
    if (places.has(s) && std::find(found.begin(), found.end(), s) == found.end()) found.push_back(s);
  };
  each_expr(e, [&](const Expr *x) {
    if (auto *n = as<Name>(x)) one(n->name);
    if (auto *l = as<Load>(x); l && !l->global) one(l->buffer);
    return true;
  });
  return found;
}

// ---- buffers

void PlanLines::buffer(const Def &d) {
  if (places.has(d.name)) return;  // a result of the graph
  Buffer x;
  x.type = d.type, x.at = d.at, x.root = d.name, x.loop = places.loop(), x.ready = places.now();
  x.bytes = upper_.bytes(d.type, &x.open);
  places.buffers[d.name] = x;
}

Sym PlanLines::temporary(Sym of, const char *suffix, const Type *t) {
  Sym s = fresh(of, suffix);
  buffer({s, kNowhere, t});
  return s;
}

// Another name of the same memory.
Sym PlanLines::alias(Sym name, Sym of, const Type *t) {
  Buffer x;
  x.type = t, x.root = of, x.loop = places.loop(), x.ready = places.now();
  places.buffers[name] = x;
  return name;
}

void PlanLines::part(const Stmt *s, const Def &d, Sym base, Lines &out) {
  if (places.has(base)) {
    buffer(d);
    Buffer &x = places.buffers[d.name];
    x.where = Buffer::Part, x.base = base;
  }
  plain(out, s);
}

// After the definition of a size: results whose sizes are all known can be written.
void PlanLines::sizes_known() {
  for (const Def &d : f_.results) {
    if (!d.type->tensor || places.buffers.at(d.name).ready != SIZE_MAX) continue;
    std::unordered_set<Sym> names;
    collect_names(d.type, names);
    if (!std::all_of(names.begin(), names.end(), [&](Sym s) { return upper_.knows(s); })) continue;
    places.buffers[d.name].ready = places.now();
    open_.push_back(&d);
  }
}

// What a result of that size can need at the most, once its bounds are known: {capacity = [2, 4 * n]}.
void PlanLines::capacities() {
  for (const Def *d : open_) {
    std::vector<const Expr *> most;
    for (const Expr *e : d->type->dims)
      if (auto hi = upper_.of(e)) most.push_back(hi->e);
    bool data = most.size() == d->type->rank() && !equal(b_.list(most), d->type->dims);
    if (data && !attr(b_, d->type->attrs, "capacity")) capacity[d->name] = b_.make_list(b_.list(most));
  }
  open_.clear();
}

void PlanLines::size(Sym name, Upper::Limits l) {
  upper_.define(name, l);
  if (places.loop() == kNoLoop) sizes_known();
}

// ---- scalars

// index(c[]), or c[] if that is its type
const Expr *PlanLines::item(const Expr *e, DType want) {
  const Type *t = nullptr;
  const Expr *value = e;
  auto at = [&](Sym s, bool global, uint32_t where) {
    std::vector<const Expr *> zeros(t->rank(), b_.integer(0));
    value = b_.load(s, b_.list(zeros), where, global);
  };
  if (auto *n = as<Name>(e); n && places.has(n->name)) t = places.type(n->name), at(n->name, false, e->at);
  if (auto *g = as<Global>(e); g && m_.constant(g->name)) t = m_.constant(g->name)->type, at(g->name, true, e->at);
  if (t ? t->elem == want : want == DType::Index) return value;
  return b_.call(dtype_name(want), {value});
}

const Expr *PlanLines::condition(const Expr *e) {
  bool tensor = e->kind == Kind::Global || (e->kind == Kind::Name && places.has(to<Name>(e).name));
  return tensor ? item(e, DType::Bool) : e;
}

void PlanLines::read(Lines &out, const Def &d, Sym slot, Upper::Limits l) {
  plain(out, b_.make(Let{{}, b_.one(d), item(b_.name(slot), d.type->elem), {}, {}}), {slot});
  if (d.type->elem == DType::Index) size(d.name, l);
}

void PlanLines::fill(Lines &out, const Expr *value, Sym to) {
  DType t = places.type(to)->elem;
  bool literal = value->kind == Kind::Int || value->kind == Kind::Float || value->kind == Kind::Bool;
  if (!literal && is_int(t)) value = b_.call(dtype_name(t), {value});
  const Call *c = b_.call("fill", {value});
  plain(out, b_.make(CallStmt{{}, c, b_.list({b_.name(to)}), {}, {}}), reads(value), {to});
}

// ---- values

void PlanLines::let(const Let &l, Lines &out) {
  auto *c = as<Call>(l.value);
  const Def &d = l.defs[0];
  std::string_view name = c && !c->global ? b_.text(c->callee) : "";
  if (name == "Item" && l.defs.size() == 1 && c->args.size() == 1) {
    Let x = l;
    x.value = item(c->args[0], d.type->elem);
    plain(out, b_.make(x), reads(c->args[0]));
    if (d.type->elem == DType::Index) size(d.name, upper_.limits(x.value));
    return;
  }
  const Func *k = c && c->global ? m_.func(c->callee) : nullptr;
  bool calls = k && k->func != FuncKind::Scalar && k->func != FuncKind::Reducer;
  if (!calls && l.defs.size() == 1 && !d.type->tensor && !operator_of(b_, l)) {
    plain(out, &l, reads(l.value));
    if (d.type->elem == DType::Index) size(d.name, upper_.limits(l.value));
    return;
  }
  for (const Def &x : l.defs) {
    if (x.type->tensor) buffer(x);
    else
      return diag_.error(l.at, "the size `{}` is known only when running; it cannot be planned", b_.text(x.name));
  }
  bool same = is_reshape(b_, l) || l.value->kind == Kind::Name;
  if (same || l.value->kind == Kind::Global) {
    const Expr *from = c ? c->args[0] : l.value;
    auto *n = as<Name>(from);
    if (!n || !places.has(n->name) || !places.share(n->name, d.name)) return move(out, from, d.name, l.from, &l);
    if (!is_result(d.name)) declare(out, d.name);
    return;
  }
  if (!calls) {
    diag_.error(l.at, "`{}` is not a call of a kernel: run mlc-lower first", print(b_, l.value));
    return;
  }
  Line x;
  x.kind = Line::Call, x.stmt = &l;
  for (const Expr *a : c->args) x.uses = reads(a, x.uses);
  for (const Def &r : l.defs) x.defines.push_back(r.name);
  workspace(x, *k, *c);
  add(out, std::move(x));
}

// value -> to. Where the types differ, the memory of `to` is written under the type of the value.
void PlanLines::move(Lines &out, const Expr *value, Sym to, Syms from, const Stmt *of) {
  const Type *t = nullptr;
  if (auto *n = as<Name>(value); n && places.has(n->name)) t = places.type(n->name);
  if (auto *g = as<Global>(value); g && m_.constant(g->name)) t = m_.constant(g->name)->type;
  if (!t) return fill(out, value, to);
  Line l;
  l.kind = Line::Copy, l.stmt = of, l.source = value, l.uses = reads(value), l.from = from;
  const Type *want = places.type(to);
  l.defines = {equal(t->dims, want->dims) ? to : alias(fresh(to, ".flat"), to, t)};
  add(out, std::move(l));
}

// ---- calls

// The function with a workspace, made once: a kernel's own buffers, the arena of a graph. Null if it needs none.
const Func *PlanLines::with_own(const Func &k) {
  if ((k.func == FuncKind::Kernel || k.func == FuncKind::Extern) && !functions_.count(k.name)) {
    const Func *w = with_workspace(b_, k);
    functions_[k.name] = w ? w : &k;
  }
  auto it = functions_.find(k.name);
  return it != functions_.end() && it->second->params.size() > k.params.size() ? it->second : nullptr;
}

void PlanLines::workspace(Line &l, const Func &k, const Call &c) {
  const Func *w = with_own(k);
  if (!w) return;
  l.workspace = fresh(k.name, ".ws");
  const Expr *bytes = w->params.back().def.type->dims[0];
  l.workspace_bytes = X(b_, substitute(b_, bytes, dims_of_call(k, c.args)));
  Sym open;
  auto most = upper_.of(l.workspace_bytes.e, &open);
  if (most) l.workspace_most = *most;
  else
    diag_.error(c.at, "the workspace of @{} cannot be planned: {} is known only when running and has no upper bound "
                      "(assume {} <= ..)",
                b_.text(k.name), print_name(b_, open), print_name(b_, open));
}

// The callee's dimensions and index parameters in the caller's terms.
Substitution PlanLines::dims_of_call(const Func &k, Exprs args) {
  std::vector<Argument> found;
  for (const Expr *a : args) {
    const Type *param = found.size() < k.params.size() ? k.params[found.size()].def.type : b_.index();
    const Type *t = param->tensor ? b_.index() : param;  // of what is no buffer
    if (auto *n = as<Name>(a); n && places.has(n->name)) t = places.type(n->name);
    if (auto *g = as<Global>(a))
      if (auto *c = m_.constant(g->name)) t = c->type;
    found.push_back({t, t == b_.index() ? a : nullptr, {}});
  }
  Solution s = solve_dims(b_, k, found);
  if (!s) diag_.error(k.at, "the dimensions of @{} do not follow from its arguments", b_.text(k.name));
  return s.names;
}

}  // namespace mlc
