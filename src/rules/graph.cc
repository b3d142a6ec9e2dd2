#include "rules/graph.h"

#include <algorithm>

#include "arith/scope.h"
#include "arith/simplify.h"
#include "ir/edit.h"
#include "rules/dead.h"
#include "text/text.h"

namespace mlc {

const Func *GraphRules::simplify(const Func &f) {
  f_ = &f;
  values_.emplace(m_, f), known_.emplace(b_), fresh_.emplace(b_);
  results_.clear(), buffers_.clear(), copies_.clear(), renames_.clear(), lines_.clear(), same_.clear(), log_.clear();
  tidied_.clear(), faults_.clear(), index_copies_ = false;
  std::unordered_set<Sym> roots;
  take_names(&f, *fresh_);
  enter(*known_, f);
  for (const Def &d : f.results) results_.insert(d.name), roots.insert(d.name);
  for (const Param &p : f.params)
    if (p.mode != Mode::In) buffers_.insert(p.def.name), roots.insert(p.def.name);
  each_stmt(f.body, [&](const Stmt *s) {
    if (auto a = as<Alloc>(s)) buffers_.insert(a->def.name);
    if (auto v = as<View>(s)) buffers_.insert(v->def.name);
    if (auto c = as<CallStmt>(s))
      for (const Expr *d : c->dests) collect_names(d, buffers_);
  });
  Stmts l = body(f.body);
  if (!renames_.empty()) l = substitute(b_, l, renames_);
  l = drop_dead(b_, l, roots, [&](const Let &x) { return may_fault(x, *values_, *known_); }, &dropped);
  return edited(b_, f, [&](Func &n) { n.body = l; });
}

// ---- names

const Expr *GraphRules::resolved(const Expr *e) {
  if (copies_.empty()) return e;
  auto n = as<Name>(e);
  if (!n) return e->kind == Kind::Global || e->kind == Kind::None ? e : substitute(b_, e, copies_);
  auto it = copies_.find(n->name);
  return it == copies_.end() ? e : it->second;
}

const Type *GraphRules::resolved(const Type *t) { return index_copies_ ? substitute(b_, t, copies_) : t; }

// Its dimensions as short as they get.
const Type *GraphRules::tidy(const Type *t) {
  auto plain = [](const Expr *d) { return d->kind == Kind::Int || d->kind == Kind::Name; };
  if (std::all_of(t->dims.begin(), t->dims.end(), plain)) return t;
  const Type *&known = tidied_[t];
  if (!known) known = b_.with_dims(t, edit_all(b_, t->dims, [&](const Expr *&d) { d = shorten(b_, d, *known_); }));
  return known;
}

void GraphRules::define(Defs defs) {
  for (const Def &d : defs) copies_.erase(d.name);
  values_->define(defs);
}

bool GraphRules::stable(const Expr *e) const {
  auto n = as<Name>(e);
  return e->kind == Kind::Global || (n && !buffers_.count(n->name));
}

bool GraphRules::pure_call(const Call &c) const {
  const Func *f = c.global ? m_.func(c.callee) : nullptr;
  return f && std::all_of(f->params.begin(), f->params.end(), [](const Param &p) { return p.mode == Mode::In; });
}

// ---- lines

uint64_t GraphRules::key(const Let &l) const {
  uint64_t h = hash(l.value);
  for (const Attr &a : l.attrs) h = h * 31 + hash(a.value) + a.key.id;
  return h * 31 + l.defs.size();
}

void GraphRules::emit(const Let &l, std::vector<const Stmt *> &out) {
  const Let *made = b_.make(l);
  define(l.defs);
  out.push_back(made);
  Exprs args = to<Call>(l.value).args;
  if (!std::all_of(args.begin(), args.end(), [&](const Expr *a) { return a->kind != Kind::Name || stable(a); })) return;
  uint64_t k = key(l);
  same_[k].push_back(made);
  for (const Def &d : l.defs) lines_[d.name] = {made, &out, out.size() - 1}, log_.push_back({d.name, k});
}

// What a line was for, and what was said about it, goes to the line that stands for it.
void GraphRules::absorb(const Line &into, const Let &gone) {
  auto now = as<Let>((*into.list)[into.at]);
  if (!now) return;
  const Let *kept = edited(b_, *now, [&](Let &n) {
    n.from = merge(b_, n.from, gone.from);
    if (n.comment.empty()) n.comment = gone.comment;
    else if (!gone.comment.empty()) n.comment = b_.arena.text(fmt::format("{}\n{}", n.comment, gone.comment));
  });
  (*into.list)[into.at] = kept;
  for (const Def &d : kept->defs)
    if (auto it = lines_.find(d.name); it != lines_.end()) it->second.let = kept;
}

// `name`, defined by l, is `value`. A result keeps its name: the line that computes the value gets it, or it is a copy.
void GraphRules::replace(const Let &l, Sym name, const Expr *value, std::vector<const Stmt *> &out) {
  auto v = as<Name>(value);
  auto at = v ? lines_.find(v->name) : lines_.end();
  bool here = at != lines_.end() && at->second.list == &out;
  if (!results_.count(name)) {
    if (at != lines_.end()) absorb(at->second, l);
    copies_[name] = value;
    const Type *t = values_->of(name);
    index_copies_ |= t && !t->tensor;
    return;
  }
  auto def = std::find_if(l.defs.begin(), l.defs.end(), [&](const Def &d) { return d.name == name; });
  if (here && !results_.count(v->name) && !renames_.count(v->name) && values_->of(v->name) == def->type) {
    absorb(at->second, l);
    renames_[v->name] = b_.name(name);
    copies_[name] = value;
    return;
  }
  Let copy = l;
  copy.defs = b_.one(*def), copy.value = b_.call("Identity", {value}), copy.attrs = {};
  define(copy.defs);
  out.push_back(b_.make(copy));
}

// The rules, as long as one applies. True: the value is another one's, and the line is gone.
bool GraphRules::by_rules(Let &l, std::vector<const Stmt *> &out) {
  LineScope scope;
  scope.m = &m_, scope.known = &*known_;
  scope.line = [&](Sym s) -> const Let * {
    auto it = lines_.find(s);
    return it == lines_.end() || it->second.let->defs.size() != 1 ? nullptr : it->second.let;
  };
  scope.type = [&](const Expr *e) { return values_->of(e); };
  scope.fresh = [&](std::string_view base) { return fresh_->make(base); };
  for (int turn = 0; turn < 64; turn++) {
    auto r = rules_.apply(l, scope);
    if (!r || (r->value && !stable(r->value))) return false;
    bool copy = results_.count(l.defs[0].name) && b_.text(to<Call>(l.value).callee) == "Identity";
    diag_.remark("@{}: {}: {}", b_.text(f_->name), print_name(b_, l.defs[0].name), r->rule->text);
    for (const Let *m : r->matched) l.from = merge(b_, m->from, l.from);
    if (r->value) {
      size_t before = renames_.size();
      replace(l, l.defs[0].name, r->value, out);
      by_rule += !copy || renames_.size() > before;
      return true;
    }
    by_rule++;
    for (const Let *inner : r->lines)
      if (inner != r->lines.back()) line(*inner, out);
    Let next = *r->lines.back();
    Exprs args = edit_all(b_, to<Call>(next.value).args, [&](const Expr *&a) { a = resolved(a); });
    next.from = l.from;
    next.value = b_.call(to<Call>(next.value).callee, args, next.value->at);
    l = next;
  }
  return false;
}

// The same line stands above, and is seen here. A size that is a result keeps its line: Identity copies tensors.
bool GraphRules::known_line(const Let &l, std::vector<const Stmt *> &out) {
  auto it = same_.find(key(l));
  auto size = [&](const Def &d) { return !d.type->tensor && results_.count(d.name); };
  if (it == same_.end() || std::any_of(l.defs.begin(), l.defs.end(), size)) return false;
  for (const Let *old : it->second) {
    bool same = equal(old->value, l.value) && equal(old->attrs, l.attrs) && old->defs.size() == l.defs.size();
    Substitution sizes;  // results that are sizes stand in the types of those behind them
    for (size_t i = 0; same && i < l.defs.size(); i++) {
      same = substitute(b_, l.defs[i].type, sizes) == old->defs[i].type;
      if (!l.defs[i].type->tensor) sizes[l.defs[i].name] = b_.name(old->defs[i].name);
    }
    if (!same) continue;
    auto defs = old->defs;
    for (size_t i = 0; i < defs.size(); i++) {
      values_->define(l.defs[i]);
      replace(l, l.defs[i].name, b_.name(defs[i].name), out);
    }
    equal_lines++;
    diag_.remark("@{}: {}: the same as {}", b_.text(f_->name), print_name(b_, l.defs[0].name),
                 print_name(b_, defs[0].name));
    return true;
  }
  return false;
}

// The only element of an integer constant that stands in the text; else null.
const Expr *GraphRules::item_of(const Expr *e) const {
  auto g = as<Global>(e);
  const Const *c = g ? m_.constant(g->name) : nullptr;
  const Expr *value = c && is_int(c->type->elem) ? c->value : nullptr;
  if (auto list = as<List>(value)) value = list->items.size() == 1 ? list->items[0] : nullptr;
  int64_t n;
  return value && int_value(value, &n) ? value : nullptr;
}

void GraphRules::line(Let l, std::vector<const Stmt *> &out) {
  const Call &c = to<Call>(l.value);
  auto shorter = [&](const Expr *&i) { i = shorten_inside(b_, i, *known_); };
  l.value = edited(b_, c, [&](Call &n) {
    n.args = edit_all(b_, c.args, [&](const Expr *&a) {
      a = resolved(a);
      if (auto list = as<List>(a)) a = edited(b_, *list, [&](List &x) { x.items = edit_all(b_, x.items, shorter); });
    });
  });
  l.defs = edit_all(b_, l.defs, [&](Def &d) {
    d.type = resolved(d.type);
    if (!results_.count(d.name)) d.type = tidy(d.type);
  });
  const OpInfo *op = operator_of(b_, l);
  if (op && by_rules(l, out)) return;
  op = operator_of(b_, l);
  if (op && op->name == "Item" && l.defs.size() == 1)
    if (const Expr *value = item_of(to<Call>(l.value).args[0]); value && l.defs[0].type->elem == DType::Index) {
      folded++;
      l.value = value, l.attrs = {};
      define(l.defs);
      out.push_back(b_.make(l));
      if (!results_.count(l.defs[0].name)) copies_[l.defs[0].name] = value, index_copies_ = true;
      return;
    }
  // A group is to be a kernel, which is given its constants.
  if (op && f_->func == FuncKind::Graph && l.defs.size() == 1 && !results_.count(l.defs[0].name)) {
    auto &call = to<Call>(l.value);
    const Const *k = call.args.size() == 1 ? constants_.shape(l, values_->of(call.args[0])) : nullptr;
    if (!k && constants_.may_fold(l) && !may_fault(l, *values_, *known_)) k = constants_.fold(l, *op);
    if (k) {
      folded++;
      diag_.remark("@{}: {}: constant @{}", b_.text(f_->name), print_name(b_, l.defs[0].name), b_.text(k->name));
      return replace(l, l.defs[0].name, b_.global(k->name), out);
    }
  }
  if ((op || pure_call(to<Call>(l.value))) && known_line(l, out)) return;
  emit(l, out);
}

// ---- statements

Stmts GraphRules::body(Stmts l) {
  size_t lines = log_.size(), facts = known_->mark();
  std::vector<const Stmt *> out;
  for (const Stmt *s : l) statement(s, out);
  known_->pop(facts);
  for (; log_.size() > lines; log_.pop_back()) {
    auto [name, k] = log_.back();
    lines_.erase(name);
    auto &same = same_[k];
    if (!same.empty() && same.back()->defs.back().name == name) same.pop_back();
  }
  return std::equal(out.begin(), out.end(), l.begin(), l.end()) ? l : b_.list(out);
}

Yield GraphRules::yield(const Yield &y) {
  Yield n = y;
  n.body = body(y.body);
  n.yields = edit_all(b_, y.yields, [&](const Expr *&e) { e = resolved(e); });
  n.stacks = edit_all(b_, y.stacks, [&](const Expr *&e) { e = resolved(e); });
  return n;
}

// Outputs that have become other values are those; what is defined outside needs no way out.
void GraphRules::dataflow(const Dataflow &d, std::vector<const Stmt *> &out) {
  Dataflow n = copy_of(d);
  n.body = body(d.body);
  std::unordered_set<Sym> inside;
  for (const Stmt *s : n.body) {
    if (auto l = as<Let>(s))
      for (const Def &x : l->defs) inside.insert(x.name);
    if (auto v = as<IfValue>(s))
      for (const Def &x : v->defs) inside.insert(x.name);
    if (auto l = as<Loop>(s))
      for (const Def &x : l->defs) inside.insert(x.name);
  }
  std::vector<Sym> outputs;
  for (Sym o : d.outputs) {
    auto it = copies_.find(o);
    auto v = it == copies_.end() ? nullptr : as<Name>(it->second);
    if (it != copies_.end() && !v) continue;
    Sym name = v ? v->name : o;
    if (inside.count(name) && std::find(outputs.begin(), outputs.end(), name) == outputs.end()) outputs.push_back(name);
  }
  if (!std::equal(outputs.begin(), outputs.end(), d.outputs.begin(), d.outputs.end())) n.outputs = b_.list(outputs);
  if (outputs.empty()) out.insert(out.end(), n.body.begin(), n.body.end());
  else out.push_back(changed(n, d) ? b_.make(n) : &d);
}

void GraphRules::statement(const Stmt *s, std::vector<const Stmt *> &out) {
  auto nested = [&](const Stmt *of, size_t k, Stmts inner) {
    size_t m = known_->mark();
    enter(*known_, of, k);
    inner = body(inner);
    known_->pop(m);
    return inner;
  };
  switch (s->kind) {
    case Kind::Let: {
      auto &l = to<Let>(s);
      auto c = as<Call>(l.value);
      if (c && c->iters.empty() && (c->global || is_operator(b_, c->callee))) {
        line(l, out);
        return after(*known_, s);
      }
      const Let *n = edited(b_, l, [&](Let &x) { x.value = shorten_inside(b_, resolved(l.value), *known_); });
      define(n->defs);
      out.push_back(n);
      bool copy = n->defs.size() == 1 && !n->defs[0].type->tensor && n->defs[0].type->elem == DType::Index &&
                  (n->value->kind == Kind::Int || (n->value->kind == Kind::Name && stable(n->value)));
      if (copy && !results_.count(n->defs[0].name)) copies_[n->defs[0].name] = n->value, index_copies_ = true;
      return after(*known_, n);
    }
    case Kind::Dataflow: return dataflow(to<Dataflow>(s), out);
    case Kind::Assume: {
      auto &a = to<Assume>(s);
      const Expr *given = resolved(a.cond), *cond = shorten(b_, given, *known_);
      if (auto k = as<Bool>(cond)) {
        if (k->value) return;
        cond = given;
      }
      const Stmt *n = edited(b_, a, [&](Assume &x) { x.cond = cond; });
      out.push_back(n);
      tidied_.clear();
      return after(*known_, n);
    }
    case Kind::IfValue: {
      auto &v = to<IfValue>(s);
      IfValue n = copy_of(v);
      n.cond = resolved(v.cond);
      n.defs = edit_all(b_, v.defs, [&](Def &d) { d.type = resolved(d.type); });
      n.then = yield(v.then), n.other = yield(v.other);
      define(n.defs);
      out.push_back(changed(n, v) ? b_.make(n) : s);
      return after(*known_, s);
    }
    case Kind::Loop: {
      auto &l = to<Loop>(s);
      Loop n = copy_of(l);
      n.iter.extent = resolved(l.iter.extent);
      if (n.iter.extent->kind != Kind::Float) n.iter.extent = shorten(b_, n.iter.extent, *known_);
      n.carry = edit_all(b_, l.carry, [&](Carry &c) { c.def.type = resolved(c.def.type), c.init = resolved(c.init); });
      n.defs = edit_all(b_, l.defs, [&](Def &d) { d.type = resolved(d.type); });
      copies_.erase(l.iter.name);
      size_t m = known_->mark();
      for (const Carry &c : n.carry) define({&c.def, 1});
      enter(*known_, s, 0);
      n.body = yield(l.body);
      known_->pop(m);
      define(n.defs);
      out.push_back(changed(n, l) ? b_.make(n) : s);
      return after(*known_, s);
    }
    case Kind::For: {
      auto &f = to<For>(s);
      return out.push_back(edited(b_, f, [&](For &n) {
        n.iter.extent = resolved(f.iter.extent);
        copies_.erase(f.iter.name);
        n.body = nested(s, 0, f.body);
      }));
    }
    case Kind::If: {
      auto &i = to<If>(s);
      return out.push_back(edited(b_, i, [&](If &n) {
        n.cond = resolved(i.cond);
        n.body = nested(s, 0, i.body), n.other = nested(s, 1, i.other);
      }));
    }
    case Kind::While: {
      auto &w = to<While>(s);
      return out.push_back(edited(b_, w, [&](While &n) {
        n.cond = resolved(w.cond);
        n.body = nested(s, 0, w.body);
      }));
    }
    default: {
      if (auto a = as<Alloc>(s)) define({&a->def, 1});
      if (auto v = as<View>(s)) define({&v->def, 1});
      const Stmt *n = copies_.empty() ? s : substitute(b_, b_.stmts({s}), copies_)[0];
      out.push_back(n);
    }
  }
}

// ---- what may not be dropped

// Does what this line calls check anything when it runs?
bool GraphRules::may_fault(const Let &l, const Values &values, const Bounds &known) {
  auto c = as<Call>(l.value);
  if (!c || !c->iters.empty()) return false;
  if (c->global) {
    const Func *f = m_.func(c->callee);
    return !f || may_fault(*f);
  }
  const OpInfo *op = operator_of(b_, l);
  if (!op || op->name == "Item") return false;
  try {
    OpUse use = op_use(b_, l, *op, values);
    std::vector<const Type *> types;
    for (const Def &d : l.defs) types.push_back(d.type);
    bool found = false;
    each_stmt(op_kernel(use, types, b_.sym("dropped"), {}).kernel->body, [&](const Stmt *s) {
      auto a = as<Assume>(s);
      found |= a && !as<Bool>(shorten(b_, a->cond, known));
    });
    return found;
  } catch (const OpError &) {
    return true;
  }
}

bool GraphRules::may_fault(const Func &f) {
  auto [it, added] = faults_.try_emplace(&f, false);
  if (!added || f.func == FuncKind::Scalar || f.func == FuncKind::Reducer) return it->second;
  Values values(m_, f);
  Bounds known(b_);
  enter(known, f);
  bool found = f.func == FuncKind::Extern || f.func == FuncKind::Intrinsic;
  each_stmt(f.body, [&](const Stmt *s) {
    found |= s->kind == Kind::Assume || s->kind == Kind::CallStmt || s->kind == Kind::While || s->kind == Kind::Code;
    if (auto l = as<Let>(s)) {
      found = found || may_fault(*l, values, known);
      values.define(l->defs);
    }
  });
  return faults_[&f] = found;
}

}  // namespace mlc
