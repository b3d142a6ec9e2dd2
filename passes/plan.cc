// plan: destination passing made explicit, in one arena of the caller's.
//   y: f32[n, 8] = @k(x, @w)   ->   alloc t: f32[n, 8] = arena at 0
//                                   call @k(x, @w) -> t
// Values that are not alive together share memory; an elementwise kernel may write over an argument that dies with it
// (`attr inplace`); reshapes become aliases; kernels' own buffers become a scratch argument. Sizes may hold symbols.
// Branches and loops that have values become statements that write buffers:
//   y: T = if c { .. yield a } ..            ->   if c[] { .. into y } ..
//   y: T = loop i in n carry s: T = x { .. } ->   s = x; for i in n { .. into s }; y is s
// A size that is data has a place for the most that it is assumed to be.
#include <algorithm>
#include <memory>

#include "graph/places.h"
#include "graph/upper.h"
#include "graph/values.h"
#include "graph/workspace.h"
#include "ir/edit.h"
#include "ir/solve.h"
#include "pass/pass.h"
#include "text/text.h"

namespace mlc {

namespace {

constexpr int64_t kMostTurns = int64_t(1) << 32;  // above it a loop has no limit in earnest

class Plan {
 public:
  Plan(Build &b, Module &m, Diag &diag) : b_(b), m_(m), diag_(diag) {}

  void run() {
    std::vector<const Item *> items = m_.items;
    for (const Item *i : items) {
      auto *f = as<Func>(i);
      if (f && f->func == FuncKind::Graph) callees_first(*f);
      else if (f && f->func == FuncKind::Group)
        diag_.error(f->at, "group @{} is not lowered: run mlc-lower first", b_.text(f->name));
    }
    for (const Item *&i : items)
      if (auto it = functions_.find(name_of(i)); it != functions_.end()) i = it->second;
    m_.set(std::move(items));
  }

 private:
  static bool planned(const Func &f) {
    for (const Param &p : f.params)
      if (p.mode == Mode::Scratch) return true;
    return false;
  }

  // A graph is planned behind those that it calls: their arenas lie in its own.
  void callees_first(const Func &f) {
    if (!seen_.insert(f.name).second) return;
    each_stmt(f.body, [&](const Stmt *s) {
      auto *l = as<Let>(s);
      auto *e = as<CallStmt>(s);
      auto *c = l ? as<Call>(l->value) : e ? e->call : nullptr;
      const Func *g = c && c->global ? m_.func(c->callee) : nullptr;
      if (g && g->func == FuncKind::Graph) callees_first(*g);
    });
    if (!planned(f) && !diag_.errors()) functions_[f.name] = graph(f);
  }

  const Func *graph(const Func &f) {
    places_ = std::make_unique<Places>(b_, m_, diag_, functions_);
    upper_ = std::make_unique<Upper>(b_, f);
    names_ = std::make_unique<Fresh>(b_);
    std::unordered_set<Sym> taken;
    collect_all_names(&f, taken);
    for (Sym s : taken) names_->take(s);
    auto given = [&](const Def &d, decltype(Buffer::where) where, size_t ready) {
      if (!d.type->tensor) return;
      Buffer &x = places_->buffers[d.name];
      x.type = d.type, x.where = where, x.root = d.name, x.ready = ready;
    };
    for (const Param &p : f.params) given(p.def, Buffer::Argument, 0);
    for (const Def &d : f.results) given(d, Buffer::Result, SIZE_MAX);
    results_ = f.results;
    capacity_.clear();
    sizes_known();
    Lines lines;
    body(f.body, lines);
    capacities();
    if (diag_.errors()) return &f;
    places_->settle();
    Placement p = places_->place();
    return diag_.errors() ? &f : written(f, lines, p);
  }

  // ---- lines

  Line *add(Lines &out, Line l) { return out.emplace_back(places_->line(std::move(l))); }
  void plain(Lines &out, const Stmt *s, std::vector<Sym> uses = {}, std::vector<Sym> defines = {}) {
    Line l;
    l.stmt = s, l.uses = std::move(uses), l.defines = std::move(defines);
    add(out, std::move(l));
  }
  void declare(Lines &out, Sym s) {
    Line l;
    l.kind = Line::Declare, l.defines = {s};
    add(out, std::move(l));
  }
  template <class S> Line *open(Lines &out, S head, const Stmt &of, std::vector<Sym> uses) {
    Line l;
    head.at = of.at, head.comment = of.comment;
    l.kind = Line::Body, l.stmt = b_.make(head), l.uses = std::move(uses);
    Line *line = add(out, std::move(l));
    if (line->stmt->kind != Kind::If) places_->open_loop(line);
    return line;
  }
  // Lines of one more body of l; what is known of sizes in there is not known behind it.
  template <class F> void inner(Line *l, const F &f) {
    size_t mark = upper_->mark();
    Lines lines;
    f(lines);
    l->bodies.push_back(std::move(lines));
    upper_->pop(mark);
  }

  void body(Stmts stmts, Lines &out) {
    for (const Stmt *s : stmts)
      if (!diag_.errors()) line(s, out);  // what stands behind an error may use what it would have defined
  }

  void line(const Stmt *s, Lines &out) {
    switch (s->kind) {
      case Kind::Dataflow: return body(to<Dataflow>(s).body, out);
      case Kind::Let: return let(to<Let>(s), out);
      case Kind::IfValue: return if_value(to<IfValue>(s), out);
      case Kind::Loop: return loop(to<Loop>(s), out);
      case Kind::Assume:
        plain(out, s, reads(to<Assume>(s).cond));
        return upper_->assume(to<Assume>(s).cond);
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
        inner(l, [&](Lines &in) { upper_->range(f.iter.name, f.iter.extent), body(own(f.body), in); });
        return places_->close(l);
      }
      case Kind::If: {
        auto &i = to<If>(s);
        If head = i;
        head.cond = condition(i.cond);
        Line *l = open(out, head, *s, reads(i.cond));
        for (Stmts side : {i.body, i.other}) inner(l, [&](Lines &in) { body(own(side), in); });
        return places_->close(l);
      }
      case Kind::While: {
        While head = to<While>(s);
        head.cond = condition(head.cond);
        Line *l = open(out, head, *s, reads(head.cond));
        inner(l, [&](Lines &in) { body(own(to<While>(s).body), in); });
        return places_->close(l);
      }
      default: diag_.error(s->at, "`{}` cannot be planned", print(b_, s));
    }
  }

  // ---- names

  Sym fresh(Sym of, const char *suffix) { return names_->make(std::string(b_.text(of)) + suffix); }

  // Bodies beside each other may define the same names; their buffers need different ones.
  Substitution clashes(Stmts body, std::span<const Carry> carry = {}) {
    Substitution names;
    auto one = [&](const Def &d) {
      if (places_->has(d.name) && !names.count(d.name)) names[d.name] = b_.name(names_->make(b_.text(d.name)));
    };
    for (const Carry &c : carry) one(c.def);
    each_stmt(body, [&](const Stmt *s) {
      if (auto *l = as<Let>(s)) std::for_each(l->defs.begin(), l->defs.end(), one);
      if (auto *i = as<IfValue>(s)) std::for_each(i->defs.begin(), i->defs.end(), one);
      if (auto *l = as<Loop>(s)) std::for_each(l->defs.begin(), l->defs.end(), one);
      if (auto *a = as<Alloc>(s)) one(a->def);
      if (auto *v = as<View>(s)) one(v->def);
    });
    return names;
  }
  Stmts own(Stmts body) {
    Substitution names = clashes(body);
    return names.empty() ? body : substitute(b_, body, names);
  }
  Yield own(const Yield &y, const Substitution &names) {
    if (names.empty()) return y;
    return {substitute(b_, y.body, names), substitute(b_, y.yields, names), substitute(b_, y.stacks, names)};
  }

  std::vector<Sym> reads(const Expr *e, std::vector<Sym> found = {}) {
    auto one = [&](Sym s) {
      if (places_->has(s) && std::find(found.begin(), found.end(), s) == found.end()) found.push_back(s);
    };
    each_expr(e, [&](const Expr *x) {
      if (auto *n = as<Name>(x)) one(n->name);
      if (auto *l = as<Load>(x); l && !l->global) one(l->buffer);
      return true;
    });
    return found;
  }

  // ---- buffers

  void buffer(const Def &d) {
    if (places_->has(d.name)) return;  // a result of the graph
    Buffer x;
    x.type = d.type, x.at = d.at, x.root = d.name, x.loop = places_->loop(), x.ready = places_->now();
    x.bytes = upper_->bytes(d.type, &x.open);
    places_->buffers[d.name] = x;
  }
  Sym temporary(Sym of, const char *suffix, const Type *t) {
    Sym s = fresh(of, suffix);
    buffer({s, kNowhere, t});
    return s;
  }
  // Another name of the same memory.
  Sym alias(Sym name, Sym of, const Type *t) {
    Buffer x;
    x.type = t, x.root = of, x.loop = places_->loop(), x.ready = places_->now();
    places_->buffers[name] = x;
    return name;
  }
  void part(const Stmt *s, const Def &d, Sym base, Lines &out) {
    if (places_->has(base)) {
      buffer(d);
      Buffer &x = places_->buffers[d.name];
      x.where = Buffer::Part, x.base = base;
    }
    plain(out, s);
  }
  bool is_result(Sym s) const {
    return places_->has(s) && places_->buffers.at(s).where == Buffer::Result;
  }
  bool has_size(Sym result) const { return places_->buffers.at(result).ready != SIZE_MAX; }

  // After the definition of a size: results whose sizes are all known can be written.
  void sizes_known() {
    for (const Def &d : results_) {
      if (!d.type->tensor || places_->buffers.at(d.name).ready != SIZE_MAX) continue;
      std::unordered_set<Sym> names;
      collect_names(d.type, names);
      if (!std::all_of(names.begin(), names.end(), [&](Sym s) { return upper_->knows(s); })) continue;
      places_->buffers[d.name].ready = places_->now();
      open_.push_back(&d);
    }
  }
  // What a result of that size can need at the most, once its bounds are known: {capacity = [2, 4 * n]}.
  void capacities() {
    for (const Def *d : open_) {
      std::vector<const Expr *> most;
      for (const Expr *e : d->type->dims)
        if (auto hi = upper_->of(e)) most.push_back(hi->e);
      bool data = most.size() == d->type->rank() && !equal(b_.list(most), d->type->dims);
      if (data && !attr(b_, d->type->attrs, "capacity")) capacity_[d->name] = b_.make_list(b_.list(most));
    }
    open_.clear();
  }
  void size(Sym name, Upper::Limits l) {
    upper_->define(name, l);
    if (places_->loop() == kNoLoop) sizes_known();
  }

  // ---- scalars: those that change are kept in memory

  const Type *slot_type(DType t) { return b_.tensor(t == DType::Index ? DType::I64 : t, {}); }
  const Expr *element(Sym s) { return b_.load(s, {}); }
  // index(c[]), or c[] if that is its type
  const Expr *item(const Expr *e, DType want) {
    const Type *t = nullptr;
    const Expr *value = e;
    auto at = [&](Sym s, bool global, uint32_t where) {
      std::vector<const Expr *> zeros(t->rank(), b_.integer(0));
      value = b_.load(s, b_.list(zeros), where, global);
    };
    if (auto *n = as<Name>(e); n && places_->has(n->name)) t = places_->type(n->name), at(n->name, false, e->at);
    if (auto *g = as<Global>(e); g && m_.constant(g->name)) t = m_.constant(g->name)->type, at(g->name, true, e->at);
    if (t ? t->elem == want : want == DType::Index) return value;
    return b_.call(dtype_name(want), {value});
  }
  const Expr *condition(const Expr *e) {
    bool tensor = e->kind == Kind::Global || (e->kind == Kind::Name && places_->has(to<Name>(e).name));
    return tensor ? item(e, DType::Bool) : e;
  }
  void read(Lines &out, const Def &d, Sym slot, Upper::Limits l) {
    plain(out, b_.make(Let{{}, b_.one(d), item(b_.name(slot), d.type->elem), {}, {}}), {slot});
    if (d.type->elem == DType::Index) size(d.name, l);
  }
  void fill(Lines &out, const Expr *value, Sym to) {
    DType t = places_->type(to)->elem;
    bool literal = value->kind == Kind::Int || value->kind == Kind::Float || value->kind == Kind::Bool;
    if (!literal && is_int(t)) value = b_.call(dtype_name(t), {value});
    const Call *c = b_.call("fill", {value});
    plain(out, b_.make(CallStmt{{}, c, b_.list({b_.name(to)}), {}, {}}), reads(value), {to});
  }

  // ---- values

  void let(const Let &l, Lines &out) {
    auto *c = as<Call>(l.value);
    const Def &d = l.defs[0];
    std::string_view name = c && !c->global ? b_.text(c->callee) : "";
    if (name == "Item" && l.defs.size() == 1 && c->args.size() == 1) {
      Let x = l;
      x.value = item(c->args[0], d.type->elem);
      plain(out, b_.make(x), reads(c->args[0]));
      if (d.type->elem == DType::Index) size(d.name, upper_->limits(x.value));
      return;
    }
    const Func *k = c && c->global ? m_.func(c->callee) : nullptr;
    bool calls = k && k->func != FuncKind::Scalar && k->func != FuncKind::Reducer;
    if (!calls && l.defs.size() == 1 && !d.type->tensor && !operator_of(b_, l)) {
      plain(out, &l, reads(l.value));
      if (d.type->elem == DType::Index) size(d.name, upper_->limits(l.value));
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
      if (!n || !places_->has(n->name) || !places_->share(n->name, d.name)) return move(out, from, d.name, l.from, &l);
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
  void move(Lines &out, const Expr *value, Sym to, Syms from, const Stmt *of = nullptr) {
    const Type *t = nullptr;
    if (auto *n = as<Name>(value); n && places_->has(n->name)) t = places_->type(n->name);
    if (auto *g = as<Global>(value); g && m_.constant(g->name)) t = m_.constant(g->name)->type;
    if (!t) return fill(out, value, to);
    Line l;
    l.kind = Line::Copy, l.stmt = of, l.source = value, l.uses = reads(value), l.from = from;
    const Type *want = places_->type(to);
    l.defines = {equal(t->dims, want->dims) ? to : alias(fresh(to, ".flat"), to, t)};
    add(out, std::move(l));
  }

  //   m: index, y: f32[m] = if c { .. yield n, a } else { .. yield k, d }
  //   if c[] { ..; fill(n) -> m.value; a -> y } else { .. };  m: index = m.value[]
  void if_value(const IfValue &s, Lines &out) {
    std::vector<Sym> to;
    std::unordered_set<Sym> sizes;
    for (const Def &d : s.defs)
      if (!d.type->tensor) sizes.insert(d.name);
    auto late = [&](const Def &d) {
      std::unordered_set<Sym> names;
      collect_names(d.type, names);
      return std::any_of(names.begin(), names.end(), [&](Sym x) { return sizes.count(x) > 0; });
    };
    for (const Def &d : s.defs) {
      if (!d.type->tensor) to.push_back(temporary(d.name, ".value", slot_type(d.type->elem)));
      else if (is_result(d.name) && !has_size(d.name)) to.push_back(temporary(d.name, ".data", d.type));
      else buffer(d), to.push_back(d.name);
      if (!late(d)) declare(out, to.back());
    }
    Line *l = open(out, If{{}, condition(s.cond), {}, {}, true}, s, reads(s.cond));
    std::vector<Upper::Limits> limits[2];
    for (const Yield *side : {&s.then, &s.other})
      inner(l, [&](Lines &in) {
        Yield y = own(*side, clashes(side->body));
        body(y.body, in);
        if (diag_.errors()) return;
        for (size_t k = 0; k < to.size(); k++) {
          limits[side == &s.other].push_back(s.defs[k].type->tensor ? Upper::Limits{} : upper_->limits(y.yields[k]));
          move(in, y.yields[k], to[k], s.from);
        }
      });
    places_->close(l);
    if (diag_.errors()) return;
    for (size_t k = 0; k < to.size(); k++) {
      if (s.defs[k].type->tensor) continue;
      const Upper::Limits &p = limits[0][k], &q = limits[1][k];
      Upper::Limits both;
      if (p.lo && q.lo) both.lo = min(*p.lo, *q.lo);
      if (p.hi && q.hi) both.hi = max(*p.hi, *q.hi);
      read(out, s.defs[k], to[k], both);
    }
    for (size_t k = 0; k < to.size(); k++) {
      const Def &d = s.defs[k];
      if (!d.type->tensor) continue;
      if (late(d)) {
        Buffer &x = places_->buffers[to[k]];
        if (x.where == Buffer::Arena) x.bytes = upper_->bytes(d.type, &x.open);
        declare(out, to[k]);
      }
      if (to[k] != d.name) move(out, b_.name(to[k]), d.name, s.from);
    }
  }

  // t: index, r: T, ys: U = loop i in n carry s: T = x while go { .. yield a stack p }
  void loop(const Loop &s, Lines &out) {
    auto *limit = as<Float>(s.iter.extent);
    bool endless = limit != nullptr;
    size_t turns = s.until ? 1 : 0, carried = s.carry.size(), stacked = s.body.stacks.size();
    std::vector<Sym> to, stacks, views;

    // What is carried is where the result is, if that can be written already.
    Substitution renamed = clashes(s.body.body, s.carry);
    auto name = [&](Sym x) { return renamed.count(x) ? mlc::to<Name>(renamed.at(x)).name : x; };
    Yield y = own(s.body, renamed);
    for (size_t k = 0; k < carried; k++) {
      const Def &r = s.defs[turns + k];
      Def c = s.carry[k].def;
      c.name = name(c.name);
      if (!c.type->tensor) to.push_back(temporary(c.name, ".value", slot_type(c.type->elem)));
      else if (is_result(r.name) && has_size(r.name)) to.push_back(alias(c.name, r.name, c.type));
      else buffer(c), to.push_back(c.name);
      declare(out, to.back());
      move(out, s.carry[k].init, to.back(), s.from);
    }
    // What is stacked: one buffer of as many turns as there can be.
    for (size_t k = 0; k < stacked; k++) {
      const Def &r = s.defs[turns + carried + k];
      std::vector<const Expr *> dims(r.type->dims.begin(), r.type->dims.end());
      if (!dims.empty() && turns) dims[0] = s.iter.extent;
      int64_t most;
      if (endless || (turns && int_value(s.iter.extent, &most) && most > kMostTurns))
        return diag_.error(r.at, "`{}` cannot be planned: a loop in {} stacks it, so its size has no upper bound",
                           b_.text(r.name), print(b_, s.iter.extent));
      if (turns) stacks.push_back(temporary(r.name, ".all", b_.with_dims(r.type, b_.list(dims))));
      else if (is_result(r.name) && !has_size(r.name)) stacks.push_back(temporary(r.name, ".data", r.type));
      else buffer(r), stacks.push_back(r.name);
      declare(out, stacks.back());
    }
    Sym turn;
    Line *l;
    const Expr *i = b_.name(s.iter.name);
    if (turns) {
      turn = temporary(s.iter.name, ".turn", slot_type(DType::I64));
      declare(out, turn);
      fill(out, b_.integer(0), turn);
      Sym go = name(s.until);
      const Expr *more = element(go);
      if (!endless)
        more = b_.binary(Op::And, more, b_.binary(Op::Lt, item(b_.name(turn), DType::Index), s.iter.extent));
      l = open(out, While{{}, more, {}}, s, {go, turn});
    } else {
      l = open(out, For{{}, LoopKind::Serial, s.iter, {}, {{}, s.from}, {}}, s, {});
    }
    inner(l, [&](Lines &in) {
      if (turns) {
        read(in, {s.iter.name, s.iter.at, b_.index()}, turn, {});
        const Expr *inside = b_.binary(Op::Ge, i, b_.integer(0));
        if (!endless) inside = b_.binary(Op::And, inside, b_.binary(Op::Lt, i, s.iter.extent));
        plain(in, b_.make(Assume{{}, inside}));
        upper_->assume(inside);
      } else {
        upper_->range(s.iter.name, s.iter.extent);
      }
      for (size_t k = 0; k < carried; k++)
        if (Def c = s.carry[k].def; !c.type->tensor) c.name = name(c.name), read(in, c, to[k], {});
      for (size_t k = 0; k < stacked; k++) {
        const Type *t = places_->type(stacks[k]);
        std::vector<const Expr *> at(t->rank(), b_.all());
        at[0] = i;
        Def v = {fresh(stacks[k], ".turn"), kNowhere, b_.with_dims(t, t->dims.subspan(1))};
        part(b_.make(View{{}, v, b_.load(stacks[k], b_.list(at))}), v, stacks[k], in);
        views.push_back(v.name);
      }
      auto early = [&](const Expr *e) {  // what is carried can be stacked at once, and then written over
        auto *n = as<Name>(e);
        return n && std::find(to.begin(), to.end(), n->name) != to.end();
      };
      for (size_t k = 0; k < stacked; k++)
        if (early(y.stacks[k])) move(in, y.stacks[k], views[k], s.from);
      body(y.body, in);
      if (diag_.errors()) return;
      for (size_t k = 0; k < stacked; k++)
        if (!early(y.stacks[k])) move(in, y.stacks[k], views[k], s.from);
      next_turn(s, y, to, in);
      if (turns) fill(in, b_.binary(Op::Add, i, b_.integer(1)), turn);
    });
    places_->close(l);
    if (diag_.errors()) return;

    if (turns) {
      Upper::Limits most = endless ? Upper::Limits{} : upper_->limits(s.iter.extent);
      if (most.hi) most.hi = max(*most.hi, lit(b_, 0));
      read(out, s.defs[0], turn, {lit(b_, 0), most.hi});
    }
    for (size_t k = 0; k < carried; k++)
      if (const Def &r = s.defs[turns + k]; !r.type->tensor) read(out, r, to[k], {});
    for (size_t k = 0; k < carried + stacked; k++) {
      const Def &r = s.defs[turns + k];
      Sym from = k < carried ? to[k] : stacks[k - carried];
      if (!r.type->tensor || from == r.name || places_->root(from) == r.name) continue;
      Sym result = is_result(r.name) ? fresh(r.name, ".data") : r.name;
      alias(result, from, r.type);
      declare(out, result);
      if (result != r.name) move(out, b_.name(result), r.name, s.from);
    }
  }

  // What is yielded becomes what is carried, all at once: what one needs of another's old value is copied first.
  void next_turn(const Loop &s, const Yield &y, const std::vector<Sym> &to, Lines &in) {
    std::vector<const Expr *> values(y.yields.begin(), y.yields.end());
    for (size_t k = 0; k < to.size(); k++) {
      auto *n = as<Name>(values[k]);
      if (!s.carry[k].def.type->tensor || !n || !places_->has(n->name)) continue;
      Sym r = places_->root(n->name);
      bool other = std::any_of(to.begin(), to.end(), [&](Sym x) { return x != to[k] && places_->root(x) == r; });
      if (!other) continue;
      Sym old = temporary(n->name, ".old", places_->type(n->name));
      declare(in, old);
      move(in, n, old, s.from);
      values[k] = b_.name(old);
    }
    for (size_t k = 0; k < to.size(); k++) move(in, values[k], to[k], s.from);
  }

  // The function with a workspace, made once: a kernel's own buffers, the arena of a graph. Null if it needs none.
  const Func *with_own(const Func &k) {
    if (k.func == FuncKind::Kernel && !functions_.count(k.name)) {
      const Func *w = with_workspace(b_, k);
      functions_[k.name] = w ? w : &k;
    }
    auto it = functions_.find(k.name);
    return it != functions_.end() && it->second->params.size() > k.params.size() ? it->second : nullptr;
  }

  void workspace(Line &l, const Func &k, const Call &c) {
    const Func *w = with_own(k);
    if (!w) return;
    l.workspace = fresh(k.name, ".ws");
    const Expr *bytes = w->params.back().def.type->dims[0];
    l.workspace_bytes = X(b_, substitute(b_, bytes, dims_of_call(k, c.args)));
    Sym open;
    auto most = upper_->of(l.workspace_bytes.e, &open);
    if (most) l.workspace_most = *most;
    else
      diag_.error(c.at, "the workspace of @{} cannot be planned: {} is known only when running and has no upper bound "
                        "(assume {} <= ..)",
                  b_.text(k.name), print_name(b_, open), print_name(b_, open));
  }

  // The callee's dimensions and index parameters in the caller's terms.
  Substitution dims_of_call(const Func &k, Exprs args) {
    std::vector<Argument> found;
    for (const Expr *a : args) {
      const Type *t = b_.index();
      if (auto *n = as<Name>(a); n && places_->has(n->name)) t = places_->type(n->name);
      if (auto *g = as<Global>(a))
        if (auto *c = m_.constant(g->name)) t = c->type;
      found.push_back({t, t->tensor ? nullptr : a, {}});
    }
    Solution s = solve_dims(b_, k, found);
    if (!s) diag_.error(k.at, "the dimensions of @{} do not follow from its arguments", b_.text(k.name));
    return s.names;
  }

  // ---- the planned graph

  struct Writer {
    const Placement &place;
    Sym arena;
    std::unordered_set<Sym> visible;
    std::vector<Sym> log;
  };

  // The place of a buffer, once it is needed: in the arena, or in the buffer whose memory it shares.
  void alloc(Writer &w, Sym s, std::vector<const Stmt *> &out) {
    const Buffer &x = places_->buffers.at(s);
    Sym r = places_->root(s);
    if ((r == s && x.where != Buffer::Arena) || !w.visible.insert(s).second) return;
    w.log.push_back(s);
    Alloc a{{}, {s, kNowhere, x.type}, w.arena, nullptr};
    a.at = kNowhere;
    bool named = r != s && (places_->buffers.at(r).where != Buffer::Arena || w.visible.count(r));
    if (named) a.base = r, a.offset = b_.integer(0);
    else a.offset = places_->offset(w.place, r).e;
    out.push_back(b_.make(a));
  }

  Stmts written(Writer &w, const Lines &lines) {
    std::vector<const Stmt *> out;
    size_t mark = w.log.size();
    for (const Line *l : lines) written(w, *l, out);
    for (; w.log.size() > mark; w.log.pop_back()) w.visible.erase(w.log.back());
    return b_.list(out);
  }

  void written(Writer &w, const Line &l, std::vector<const Stmt *> &out) {
    switch (l.kind) {
      case Line::Plain: return out.push_back(l.workspace ? with_workspace_of(w, l, to<CallStmt>(l.stmt), out) : l.stmt);
      case Line::Declare:
        if (places_->used(l.defines[0])) alloc(w, l.defines[0], out);
        return;
      case Line::Copy: {
        if (l.gone) return;
        alloc(w, l.defines[0], out);
        CallStmt call{{}, b_.call("Copy", {l.source}), b_.list({b_.name(l.defines[0])}), {}, l.from};
        if (l.stmt) call.at = l.stmt->at, call.comment = l.stmt->comment;
        return out.push_back(b_.make(call));
      }
      case Line::Call: return written_call(w, l, out);
      case Line::Body: break;
    }
    std::vector<Stmts> bodies;
    for (const Lines &inner : l.bodies) bodies.push_back(written(w, inner));
    if (auto *f = as<For>(l.stmt)) out.push_back(edited(b_, *f, [&](For &n) { n.body = bodies[0]; }));
    if (auto *f = as<While>(l.stmt)) out.push_back(edited(b_, *f, [&](While &n) { n.body = bodies[0]; }));
    if (auto *f = as<If>(l.stmt)) {
      if (bodies[0].empty() && bodies[1].empty()) return;
      out.push_back(edited(b_, *f, [&](If &n) {
        n.body = bodies[0], n.other = bodies[1], n.has_else = !bodies[1].empty();
        if (!bodies[0].empty()) return;
        n.cond = b_.unary(Op::Not, f->cond), n.body = bodies[1], n.other = {}, n.has_else = false;
      }));
    }
  }

  void written_call(Writer &w, const Line &l, std::vector<const Stmt *> &out) {
    auto &let = to<Let>(l.stmt);
    for (Sym s : l.defines) alloc(w, s, out);
    std::vector<const Expr *> dests;
    for (Sym s : l.defines) dests.push_back(b_.name(s));
    CallStmt call{{}, &to<Call>(let.value), b_.list(dests), let.attrs, let.from};
    call.at = let.at, call.comment = let.comment;
    out.push_back(l.workspace ? with_workspace_of(w, l, call, out) : b_.make(call));
  }

  // The call with its workspace as the last argument.
  const Stmt *with_workspace_of(Writer &w, const Line &l, CallStmt call, std::vector<const Stmt *> &out) {
    const Call &c = *call.call;
    const Type *t = places_->function(c.callee)->params.back().def.type;
    const Type *sized = b_.with_dims(t, b_.list({l.workspace_bytes.e}));
    out.push_back(b_.make(Alloc{{}, {l.workspace, kNowhere, sized}, w.arena, places_->offset(w.place, l.workspace).e}));
    std::vector<const Expr *> args(c.args.begin(), c.args.end());
    args.push_back(b_.name(l.workspace));
    call.call = b_.call(c.callee, b_.list(args), c.at, true);
    return b_.make(call);
  }

  const Func *written(const Func &f, const Lines &lines, const Placement &p) {
    Writer w{p, names_->make("arena"), {}, {}};
    Func g = f;
    g.body = written(w, lines);
    diag_.remark("@{}: arena {} bytes, lower bound {} bytes", b_.text(f.name), print(b_, p.total.e),
                 print(b_, p.lower_bound.e));
    std::vector<Attr> attrs(f.notes.attrs.begin(), f.notes.attrs.end());
    attrs.push_back({b_.sym("arena_bytes"), kNowhere, p.total.e});
    g.notes.attrs = b_.list(attrs);
    g.results = edit_all(b_, f.results, [&](Def &d) {
      auto it = capacity_.find(d.name);
      if (it == capacity_.end()) return;
      Type t = *d.type;
      std::vector<Attr> with(t.attrs.begin(), t.attrs.end());
      with.push_back({b_.sym("capacity"), kNowhere, it->second});
      t.attrs = b_.list(with), d.type = b_.type(t);
    });
    std::vector<Param> params(f.params.begin(), f.params.end());
    Attr align = {b_.sym("align"), kNowhere, b_.integer(kArenaAlign)};
    const Type *type = b_.type({DType::U8, true, {}, {}, -1, b_.list({p.total.e}), b_.one(align)});
    params.push_back({Mode::Scratch, {w.arena, kNowhere, type}});
    g.params = b_.list(params);
    return b_.make(g);
  }

  Build &b_;
  Module &m_;
  Diag &diag_;
  std::unique_ptr<Fresh> names_;
  std::unique_ptr<Places> places_;
  std::unique_ptr<Upper> upper_;
  Defs results_;
  std::vector<const Def *> open_;  // results whose capacity is to be found
  std::unordered_map<Sym, const Expr *> capacity_;
  std::unordered_map<Sym, const Func *> functions_;  // as they are now: planned, with a workspace, in place
  std::unordered_set<Sym> seen_;
};

void run(Build &b, Module &m, const Options &, Diag &diag) { Plan(b, m, diag).run(); }

}  // namespace

extern const Pass pass_plan;
const Pass pass_plan = {"plan", "Give every value of a graph its place in memory", {}, run, Stage::Groups};

}  // namespace mlc
