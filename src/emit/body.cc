#include "emit/body.h"

#include "arith/prove.h"
#include "arith/scope.h"
#include "arith/simplify.h"
#include "compact/compact.h"
#include "ir/edit.h"
#include "math/contract.h"
#include "ops/expr.h"
#include "text/text.h"

namespace mlc {
namespace {

void collect_from(const Stmt *s, std::vector<Sym> &out) {
  auto add = [&](Syms from) {
    for (Sym f : from)
      if (std::find(out.begin(), out.end(), f) == out.end()) out.push_back(f);
  };
  each_stmt(s, [&](const Stmt *t) {
    if (auto *f = as<For>(t)) add(f->notes.from);
    if (auto *st = as<Store>(t)) add(st->from);
    if (auto *l = as<Let>(t)) add(l->from);
    if (auto *c = as<CallStmt>(t)) add(c->from);
  });
}

}  // namespace

BodyPrinter::BodyPrinter(Unit &unit, const Module &m, const Func &f)
    : scope(unit.b, m, unit.prefix), exprs(scope, m, unit.helpers), u_(unit), b_(unit.b), m_(m), f_(f) {
  enter(scope.bounds, f);
  for (const char *word : {"failed", "ok", "elements"}) scope.namer.reserve(word);
  exprs.fail = [this](uint32_t at, std::string message) { fail(at, std::move(message)); };
  exprs.scalar_function = [this](const Func *g, int lanes) { return u_.scalar(g, lanes, exprs.fma); };
  exprs.library = [this, fused = has_fma_licence(b_, f.notes.attrs)](std::string_view name, DType t) {
    return u_.library(name, t, fused);
  };
  exprs.constant = [this](Sym name) { return constant(name); };
  constant = [this](Sym name) {
    auto [it, fresh] = constant_idents.try_emplace(name);
    if (fresh) {
      it->second = scope.namer.keep(b_.text(name));
      constants.push_back(name);
    }
    return it->second;
  };
  each_stmt(f.body, [&](const Stmt *s) {
    if (auto *l = as<For>(s); l && l->loop == LoopKind::Parallel)
      for (const char *word : {"task", "arg", "worker"}) scope.namer.reserve(word);
    if (auto *a = as<Alloc>(s); a && a->base) addressed_.insert(a->base);
    if (auto *v = as<View>(s)) addressed_.insert(v->source->buffer);
    if (auto *c = as<CallStmt>(s)) {
      auto names = [&](const Expr *e) {
        if (auto *n = as<Name>(e)) addressed_.insert(n->name);
      };
      for (const Expr *e : c->call->args) names(e);
      for (const Expr *e : c->dests) names(e);
    }
  });
}

void BodyPrinter::fail(uint32_t at, std::string message) {
  u_.diag.error(at, "{}", fmt::format("@{}: {}", b_.text(f_.name), message));
}

const Expr *BodyPrinter::shortened(const Expr *e) const { return shorten_inside(b_, e, scope.bounds); }

Entity &BodyPrinter::define_dim(Sym name, bool wild) {
  Entity e;
  e.ident = scope.namer.make(b_.text(name)), e.type = b_.index(), e.wild = wild;
  return scope.define(name, e);
}
Entity &BodyPrinter::define_value(const Def &d, std::string ident) {
  Entity e;
  e.ident = std::move(ident), e.type = d.type, e.wild = d.type->elem == DType::Index;
  return scope.define(d.name, e);
}
Entity &BodyPrinter::define_buffer(const Def &d, std::string ident, bool writable) {
  Entity e;
  e.kind = Entity::Buffer, e.ident = std::move(ident), e.type = d.type, e.writable = writable;
  if (attr(b_, d.type->attrs, "layout")) fail(d.at, fmt::format("{}: a layout cannot be emitted", b_.text(d.name)));
  if (attr(b_, d.type->attrs, "strides"))
    for (const Expr *s : strides_of(b_, d.type)) e.strides.push_back(s);
  return scope.define(d.name, e);
}
// Where its text begins at the end of `out`.
Entity BodyPrinter::define_local(const Def &d, Entity e) {
  e.ident = scope.namer.make(b_.text(d.name)), e.type = d.type, e.at = out.size() + indent;
  scope.define(d.name, e);
  return e;
}

std::string BodyPrinter::leave(int failure) const {
  std::string code = this->code(failure);
  if (side == Side::Device) return fmt::format("return {}(failed, {});", u_.helpers.need("fail"), code);
  if (!in_task_) return fmt::format("return {};", code);
  return fmt::format("return __atomic_store_n(&task.failed, {}, __ATOMIC_RELAXED);", code);
}

Sym BodyPrinter::latest(Sym name) const {
  for (auto it = latest_.find(name); it != latest_.end(); it = latest_.find(name)) name = it->second;
  return name;
}

void BodyPrinter::mark_unused(size_t first) {
  std::vector<size_t> unused;
  for (size_t i = first; i < scope.entities().size(); i++) {
    Entity &e = scope.entities()[i];
    if (e.at && !e.seen) unused.push_back(e.at);
    e.at = 0;
  }
  std::sort(unused.rbegin(), unused.rend());
  unused.erase(std::unique(unused.begin(), unused.end()), unused.end());
  for (size_t at : unused) out.insert(at, "[[maybe_unused]] ");
}

void BodyPrinter::body(Stmts body) { stmts(body); }

void BodyPrinter::block(Stmts body) {
  Scope::Mark mark = scope.mark();
  size_t tamed = tamed_.size();
  indent += 2, depth_++;
  alone_ = body.size() == 1 ? body[0] : nullptr;
  stmts(body);
  indent -= 2, depth_--;
  scope.pop(mark);
  untame(tamed);
}

// The statements behind a second definition of a name that is still seen, under another name.
Stmts BodyPrinter::renamed(Sym name, Stmts rest) {
  Sym next = b_.sym(fmt::format("{}'{}", b_.text(name), ++renames_));
  latest_[name] = next;
  return substitute(b_, rest, {{name, b_.name(next)}});
}

void BodyPrinter::stmts(Stmts body) {
  auto tops = tops_;
  for (size_t i = 0; i < body.size();) {
    const Stmt *s = body[i];
    if (Sym d = defined_by(s); d && scope.find(d)) {
      Stmts rest = renamed(d, body.subspan(i + 1));
      std::vector<const Stmt *> copy(body.begin(), body.begin() + i + 1);
      auto rename = [&](Def &def) { def.name = latest(d); };
      if (auto *l = as<Let>(s))
        copy[i] = edited(b_, *l, [&](Let &n) {
          Def def = n.defs[0];
          rename(def);
          n.defs = b_.one(def);
        });
      if (auto *a = as<Alloc>(s)) copy[i] = edited(b_, *a, [&](Alloc &n) { rename(n.def); });
      if (auto *v = as<View>(s)) copy[i] = edited(b_, *v, [&](View &n) { rename(n.def); });
      copy.insert(copy.end(), rest.begin(), rest.end());
      body = b_.list(copy);
      s = body[i];
    }
    size_t taken = 1;
    switch (s->kind) {
      case Kind::Let: head(s), let(to<Let>(s)); break;
      case Kind::Store:
        head(s, depth_ ? Syms{} : to<Store>(s).from);
        store(to<Store>(s));
        break;
      case Kind::Alloc: head(s), taken = alloc(to<Alloc>(s), i + 1 < body.size() ? body[i + 1] : nullptr); break;
      case Kind::View: head(s), view(to<View>(s)); break;
      case Kind::CallStmt: head(s, to<CallStmt>(s).from), call(to<CallStmt>(s)); break;
      case Kind::Assume: assume(to<Assume>(s)); break;
      case Kind::For: loop(&to<For>(s)); break;
      case Kind::If: branch(to<If>(s)); break;
      case Kind::While: {
        auto &w = to<While>(s);
        head(s);
        if (side == Side::Host && reads_memory(w.cond)) {
          line("for (;;) {{");
          indent += 2;
          Text cond = exprs.print(read_back(w.cond), DType::Bool);
          line("if (!{}) break;", wrap(cond, kUnary));
          indent -= 2;
        } else {
          line("while ({}) {{", exprs.text(w.cond, DType::Bool));
        }
        block(w.body);
        line("}}");
        break;
      }
      default: fail(s->at, fmt::format("a statement cannot be emitted: {}", print(b_, s)));
    }
    i += taken;
  }
  tops_ = tops;
}

// Comments of the text, and the nodes of the model that a nest comes from.
void BodyPrinter::head(const Stmt *s, Syms from) {
  std::vector<Sym> nodes(from.begin(), from.end());
  if (from.empty() && (s->kind == Kind::For || s->kind == Kind::If) && (depth_ == 0 || !s->comment.empty()))
    collect_from(s, nodes);
  std::string list = node_list(b_, nodes), pad(indent, ' ');
  std::string_view c = s->comment;
  while (!c.empty()) {
    size_t end = std::min(c.find('\n'), c.size());
    std::string text = comment_text(c.substr(0, end));
    text.erase(0, std::min(text.find_first_not_of("# "), text.size()));
    c.remove_prefix(std::min(end + 1, c.size()));
    if (c.empty() && !list.empty()) text += " from " + list, list.clear();
    comment_lines(out, pad, text);
  }
  if (!list.empty()) comment_lines(out, pad, list);
}

void BodyPrinter::let(const Let &l) {
  if (l.defs.size() != 1 || l.defs[0].type->tensor)
    return fail(l.at, fmt::format("`{}` is not planned", print(b_, &l)));
  const Def &d = l.defs[0];
  DType t = d.type->elem;
  const Expr *value = l.value;
  if (auto *c = as<Call>(value); c && !c->global && b_.text(c->callee) == "Item" && c->args.size() == 1)
    if (auto *n = as<Name>(c->args[0])) value = b_.call("index", {b_.load(n->name, {})});
  Text v = exprs.print(read_back(shortened(value)), t);
  Entity e;
  e.wild = v.wild && t == DType::Index, e.lanes = v.lanes, e.mask = v.mask;
  std::string ident = define_local(d, e).ident, type(c_value(t));
  if (v.lanes) type = exprs.lanes_type(t, v.mask);
  line("const {} {} = {};", type, ident, v.s);
  if (t == DType::Index) after(scope.bounds, &l);
  if (depth_ == 0 && defined) defined(d.name);
}

void BodyPrinter::store(const Store &s) {
  if (s.atomic && side == Side::Device) return atomic(s);
  const Load &target = to<Load>(shortened(s.target));
  const Expr *value = shortened(s.value);
  if (scope.lanes.whole() && (exprs.varies(&target) || exprs.varies(value)))
    return exprs.store_lanes(target, value, [&](const std::string &text) { line("{}", text); });
  line("{};", exprs.store(target, value));
}

size_t BodyPrinter::alloc(const Alloc &a, const Stmt *next) {
  const Type *t = a.def.type;
  int64_t unit = 0;
  const Expr *lanes = attr(b_, t->attrs, "registers");
  if (lanes && int_value(lanes, &unit)) return registers(a, unit), 1;
  if (!a.base && placed(a)) return 1;
  if (scope.lanes.whole()) return own_buffer(a), 1;
  Entity e;
  e.kind = Entity::Buffer, e.writable = true;
  if (attr(b_, t->attrs, "strides"))
    for (const Expr *s : strides_of(b_, t)) e.strides.push_back(s);
  std::string_view c_type = c_storage(t->elem);
  if (a.base) {
    Entity *base = scope.find(a.base);
    if (!base || base->kind != Entity::Buffer || !base->strides.empty() || !base->first.empty())
      return fail(a.at, fmt::format("{}: {} is no dense buffer", b_.text(a.def.name), b_.text(a.base))), 1;
    base->seen++;
    std::string_view from = c_storage(base->type->elem);
    e.writable = base->writable;
    std::string_view qualifier = e.writable ? "" : "const ";
    std::string place = base->ident;
    Text offset = exprs.index(shortened(a.offset));
    if (offset.s != "0") {
      if (from != "uint8_t") place = fmt::format("({}uint8_t *){}", qualifier, place);
      place += " + " + wrap(offset, kSum);
      from = "uint8_t";
    }
    if (from != c_type)
      place = fmt::format("({}{} *){}", qualifier, c_type, offset.s == "0" ? place : "(" + place + ")");
    e = define_local(a.def, e);
    line("{}{} *const {} = {};", qualifier, c_type, e.ident, place);
    return 1;
  }
  if (t->dims.empty() && !addressed_.count(a.def.name)) {
    e.kind = Entity::Variable;
    e.wild = t->elem == DType::Index;
    auto *first = as<Store>(next);
    bool at_once = first && first->target->buffer == a.def.name && !first->atomic && !first->target->global;
    if (at_once) each_expr(first->value, [&](const Expr *x) {
      auto *l = as<Load>(x);
      return !(l && l->buffer == a.def.name) || (at_once = false);
    });
    if (!at_once) {
      e = define_local(a.def, e);
      line("{} {};", c_value(t->elem), e.ident);
      return 1;
    }
    Text v = exprs.print(shortened(first->value), t->elem);
    e = define_local(a.def, e);
    line("{} {} = {};", c_value(t->elem), e.ident, v.s);
    return 2;
  }
  std::vector<int64_t> dims;
  std::string_view scope_name = t->scope ? b_.text(t->scope) : "";
  if (side == Side::Device && scope_name == "shared") {
    e = define_local(a.def, e);
    line("{}({});", u_.helpers.need("SHARED"), e.ident);
    return 1;
  }
  int64_t count = 1, bytes = 0;
  bool fixed = all_static(t, &dims);
  for (int64_t d : dims) fixed = fixed && d >= 0 && !__builtin_mul_overflow(count, d, &count);
  if (fixed && count && !e.strides.empty()) {  // as far as the last element stands
    count = 1;
    for (size_t d = 0; d < dims.size(); d++) {
      int64_t stride = 0, far = 0;
      fixed = fixed && int_value(e.strides[d], &stride) && stride >= 0 &&
              !__builtin_mul_overflow(dims[d] - 1, stride, &far) && !__builtin_add_overflow(count, far, &count);
    }
  }
  if (fixed) bytes = storage_bytes(t->elem, count);
  int64_t limit = scope_name == "local" ? kLocalBuffer : kSmallBuffer;
  if (!fixed || bytes < 0 || bytes > limit) {
    std::string_view name = b_.text(a.def.name);
    fail(a.at, scope_name.empty() || scope_name == "global"
                   ? fmt::format("{} has no place in memory: run mlc-plan first", name)
                   : fmt::format("{} is in {}, where it would need a size that is known and at most {} bytes: mlc-bind "
                                 "gives sizes, in global it stands in the workspace", name, scope_name, limit));
    define_local(a.def, e);  // its uses are no faults of their own
    return 1;
  }
  int64_t size = std::max<int64_t>(info(t->elem).bits < 8 ? bytes : count, 1);
  e.array = true;
  e = define_local(a.def, e);
  if (bytes >= 64) line("alignas(64) {} {}[{}];", c_type, e.ident, size);
  else line("{} {}[{}];", c_type, e.ident, size);
  return 1;
}

void BodyPrinter::view(const View &v) {
  const Load &src = *v.source;
  Entity *found = scope.find(src.buffer);
  if (src.global || !found || found->kind != Entity::Buffer)
    return fail(v.at, fmt::format("{}: {} is no buffer", b_.text(v.def.name), b_.text(src.buffer)));
  found->seen++;
  Entity base = *found;
  Exprs all = base.strides.empty() ? strides_of(b_, base.type) : Exprs(base.strides);
  std::vector<const Expr *> lo, strides;
  for (size_t d = 0; d < src.index.size(); d++) {
    const Expr *i = src.index[d];
    bool kept = i->kind == Kind::All || i->kind == Kind::Range;
    lo.push_back(i->kind == Kind::All ? b_.integer(0) : i->kind == Kind::Range ? to<Range>(i).lo : i);
    if (kept) strides.push_back(all[d]);
  }
  Entity e;
  e.kind = Entity::Buffer, e.writable = base.writable;
  if (!provably_equal(b_, Exprs(strides), strides_of(b_, v.def.type), scope.bounds)) e.strides = strides;
  std::string_view qualifier = e.writable ? "" : "const ", c_type = c_storage(v.def.type->elem);
  if (info(v.def.type->elem).bits < 8) {
    Text at = exprs.position(base, lo);
    e.first = scope.namer.make(std::string(b_.text(v.def.name)) + ".first");
    line("const int64_t {} = {}{};", e.first, base.first.empty() ? "" : base.first + " + ", wrap(at, kSum));
    e = define_local(v.def, e);
    line("{}{} *const {} = {};", qualifier, c_type, e.ident, base.ident);
    return;
  }
  std::string place = exprs.pointer(base, lo);
  e = define_local(v.def, e);
  line("{}{} *const {} = {};", qualifier, c_type, e.ident, place);
}

void BodyPrinter::loop(const For *f) {
  if (f->loop == LoopKind::Bind && side == Side::Device) return bound(*f);
  head(f);
  if (f->loop == LoopKind::Vectorize) return side == Side::Device ? lane_copy(*f) : lanes(*f);
  if (can_be_task(*f)) return parallel(*f);
  Scope::Mark mark = scope.mark();
  bool open = false;
  Stmts body;
  for (;;) {
    body = f->body;
    Sym v = f->iter.name;
    const Expr *extent = shorten(b_, f->iter.extent, scope.bounds);
    if (is_int(extent, 1)) {
      body = substitute(b_, body, {{v, b_.integer(0)}});
    } else {
      Text n = exprs.index(extent);
      if (scope.find(v)) body = renamed(v, body), v = latest(v);
      Entity &e = define_dim(v);
      e.seen = 1;
      scope.bounds.range(v, extent);
      if (open) out += "\n";
      out.append(indent, ' ') += fmt::format("for (int64_t {0} = 0; {0} < {1}; {0}++)", e.ident, wrap(n, kSum));
      open = true;
    }
    auto *next = body.size() == 1 ? as<For>(body[0]) : nullptr;
    if (!next || !next->comment.empty() || next->loop == LoopKind::Vectorize || can_be_task(*next)) break;
    f = next;
  }
  bool scoped = open;
  for (const Stmt *s : body) scoped |= bool(defined_by(s));
  if (open) out += " {\n";
  else if (scoped) line("{{");
  if (scoped) block(body), line("}}");
  else depth_++, stmts(body), depth_--;
  scope.pop(mark);
}

void BodyPrinter::branch(const If &i) {
  head(&i);
  const Expr *cond = shortened(i.cond);
  if (auto *known = as<Bool>(cond)) {
    Stmts taken = known->value ? i.body : i.other;
    bool scoped = std::any_of(taken.begin(), taken.end(), [](const Stmt *s) { return bool(defined_by(s)); });
    if (!scoped) return stmts(taken);
    line("{{");
    block(taken);
    return line("}}");
  }
  if (scope.lanes.whole() && exprs.varies(cond))
    return branch_lanes(*edited(b_, i, [&](If &n) { n.cond = cond; }));
  line("if ({}) {{", exprs.text(read_back(cond), DType::Bool));
  auto side = [&](size_t k, Stmts body) {
    size_t mark = scope.bounds.mark();
    enter(scope.bounds, &i, k);
    block(body);
    scope.bounds.pop(mark);
  };
  side(0, i.body);
  if (!i.other.empty()) {
    line("}} else {{");
    side(1, i.other);
  }
  line("}}");
}

bool BodyPrinter::wild(const Expr *e) {
  if (auto *n = as<Name>(e)) {
    Entity *x = scope.find(n->name);
    return !x || x->wild;
  }
  bool any = e->kind == Kind::Load || (as<Call>(e) && is_cast(b_.text(to<Call>(e).callee)));
  each_child(e, [&](const Expr *c) { any |= wild(c); });
  return any;
}

// r >= 0 && r < n: from here on r is an index like any other.
void BodyPrinter::tame(const Expr *cond) {
  std::unordered_map<Sym, int> sides;
  std::function<void(const Expr *)> look = [&](const Expr *e) {
    auto *c = as<Binary>(e);
    if (!c) return;
    if (c->op == Op::And) return look(c->a), look(c->b);
    if (c->op < Op::Eq || c->op > Op::Ge || c->op == Op::Ne) return;
    auto one = [&](const Expr *name, const Expr *other, bool above) {  // above: name >= other
      auto *n = as<Name>(name);
      Entity *x = n ? scope.find(n->name) : nullptr;
      if (!x || x->type->elem != DType::Index || wild(other)) return;
      sides[n->name] |= c->op == Op::Eq ? 3 : above ? 1 : 2;
    };
    bool greater = c->op == Op::Gt || c->op == Op::Ge;
    one(c->a, c->b, greater), one(c->b, c->a, !greater);
  };
  look(cond);
  for (auto [name, both] : sides)
    if (Entity *x = scope.find(name); both == 3 && x->wild) x->wild = false, tamed_.push_back(name);
}

// What an assumption made of them holds in the body where it stands.
void BodyPrinter::untame(size_t first) {
  for (; tamed_.size() > first; tamed_.pop_back())
    if (Entity *x = scope.find(tamed_.back())) x->wild = true;
}

void BodyPrinter::assume(const Assume &a) {
  if (u_.checks != RunChecks::None && !checked.count(&a)) {
    const Expr *cond = shortened(a.cond);
    if (auto *known = as<Bool>(cond); !known || !known->value) {
      bool index = false;
      each_expr(a.cond, [&](const Expr *e) {
        auto *n = as<Name>(e);
        Entity *x = n ? scope.find(n->name) : nullptr;
        index |= (x && x->wild) || (as<Call>(e) && b_.text(to<Call>(e).callee) == "index");
        return true;
      });
      std::string said = std::string(a.comment.substr(std::min(a.comment.find_first_not_of("# "), a.comment.size())));
      if (said.empty()) said = index ? "index out of range" : "a condition does not hold";
      failures.push_back({{}, fmt::format("{}: expected {}", said, print(b_, a.cond))});
      Text c = exprs.print(read_back(cond), DType::Bool);
      line("if (!{}) {}", wrap(c, kPrimary), leave(int(failures.size()) - 1));
    }
  }
  tame(a.cond);
  after(scope.bounds, &a);
}

Stmts without_unused(Build &b, Stmts body, std::unordered_set<Sym> &used) {
  std::vector<const Stmt *> kept;
  for (size_t i = body.size(); i-- > 0;) {
    const Stmt *s = body[i];
    if (Sym d = defined_by(s); d && !used.count(d)) continue;
    s = with_bodies(b, s, [&](Stmts inner) { return without_unused(b, inner, used); });
    each_expr_of(s, [&](const Expr *e) { collect_names(e, used); });
    if (auto *a = as<Alloc>(s); a && a->base) used.insert(a->base);
    kept.push_back(s);
  }
  if (kept.size() == body.size() && std::equal(body.begin(), body.end(), kept.rbegin())) return body;
  std::reverse(kept.begin(), kept.end());
  return b.list(kept);
}

}  // namespace mlc
