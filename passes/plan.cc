// plan: destination passing made explicit, in one arena of the caller's.
//   y: f32[n, 8] = @k(x, @w)   ->   alloc t: f32[n, 8] = arena at 0
//                                   call @k(x, @w) -> t
// Values that are not alive together share memory; an elementwise kernel may write over an argument that dies with it
// (`attr inplace`); reshapes become aliases; kernels' own buffers become a scratch argument. Sizes may hold symbols.
// Branches and loops that have values become statements that write buffers. A size that is data has a place for the
// most that it is assumed to be.
#include "graph/plan_lines.h"
#include "graph/values.h"
#include "ir/edit.h"
#include "pass/pass.h"
#include "text/text.h"

namespace mlc {

namespace {

// The body of the planned graph: places of buffers, calls with destinations.
class Writer {
 public:
  Writer(Build &b, const Places &places, const Placement &placement, Sym arena)
      : b_(b), p_(places), place_(placement), arena_(arena) {}

  Stmts written(const Lines &lines) {
    std::vector<const Stmt *> out;
    size_t mark = log_.size();
    for (const Line *l : lines) written(*l, out);
    for (; log_.size() > mark; log_.pop_back()) visible_.erase(log_.back());
    return b_.list(out);
  }

 private:
  // The place of a buffer, once it is needed: in the arena, or in the buffer whose memory it shares.
  void alloc(Sym s, std::vector<const Stmt *> &out) {
    const Buffer &x = p_.buffers.at(s);
    Sym r = p_.root(s);
    if ((r == s && x.where != Buffer::Arena) || !visible_.insert(s).second) return;
    log_.push_back(s);
    Alloc a{{}, {s, kNowhere, x.type}, arena_, nullptr};
    a.at = kNowhere;
    bool named = r != s && (p_.buffers.at(r).where != Buffer::Arena || visible_.count(r));
    if (named) a.base = r, a.offset = b_.integer(0);
    else a.offset = p_.offset(place_, r).e;
    out.push_back(b_.make(a));
  }

  void written(const Line &l, std::vector<const Stmt *> &out) {
    switch (l.kind) {
      case Line::Plain: return out.push_back(l.workspace ? with_workspace(l, to<CallStmt>(l.stmt), out) : l.stmt);
      case Line::Declare:
        if (p_.used(l.defines[0])) alloc(l.defines[0], out);
        return;
      case Line::Copy: {
        if (l.gone) return;
        alloc(l.defines[0], out);
        CallStmt call{{}, b_.call("Copy", {l.source}), b_.list({b_.name(l.defines[0])}), {}, l.from};
        if (l.stmt) call.at = l.stmt->at, call.comment = l.stmt->comment;
        return out.push_back(b_.make(call));
      }
      case Line::Call: return written_call(l, out);
      case Line::Body: break;
    }
    std::vector<Stmts> bodies;
    for (const Lines &inner : l.bodies) bodies.push_back(written(inner));
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

  void written_call(const Line &l, std::vector<const Stmt *> &out) {
    auto &let = to<Let>(l.stmt);
    for (Sym s : l.defines) alloc(s, out);
    std::vector<const Expr *> dests;
    for (Sym s : l.defines) dests.push_back(b_.name(s));
    CallStmt call{{}, &to<Call>(let.value), b_.list(dests), let.attrs, let.from};
    call.at = let.at, call.comment = let.comment;
    out.push_back(l.workspace ? with_workspace(l, call, out) : b_.make(call));
  }

  // The call with its workspace as the last argument.
  const Stmt *with_workspace(const Line &l, CallStmt call, std::vector<const Stmt *> &out) {
    const Call &c = *call.call;
    const Type *t = p_.function(c.callee)->params.back().def.type;
    const Type *sized = b_.with_dims(t, b_.list({l.workspace_bytes.e}));
    out.push_back(b_.make(Alloc{{}, {l.workspace, kNowhere, sized}, arena_, p_.offset(place_, l.workspace).e}));
    std::vector<const Expr *> args(c.args.begin(), c.args.end());
    args.push_back(b_.name(l.workspace));
    call.call = b_.call(c.callee, b_.list(args), c.at, true);
    return b_.make(call);
  }

  Build &b_;
  const Places &p_;
  const Placement &place_;
  Sym arena_;
  std::unordered_set<Sym> visible_;  // buffers that have their place here
  std::vector<Sym> log_;
};

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

  // Strings are known to the graph interpreter alone, and it alone decodes files: where they are is an error, at each
  // place.
  void refuse_hosted(const Func &f) {
    auto node = [&](Syms from) { return from.empty() ? "" : fmt::format(", from \"{}\"", b_.text(from[0])); };
    auto look = [&](const Type *t, Sym name, uint32_t at, Syms from) {
      if (t->elem != DType::Str) return;
      diag_.error(at, "{}: strings are known to mlc-run alone, they cannot be planned{}", b_.text(name), node(from));
    };
    for (const Param &p : f.params) look(p.def.type, p.def.name, p.def.at, {});
    each_stmt(f.body, [&](const Stmt *s) {
      auto *let = as<Let>(s);
      auto *branch = as<IfValue>(s);
      auto *loop = as<Loop>(s);
      Syms from = let ? let->from : branch ? branch->from : loop ? loop->from : Syms();
      for (const Def &d : let ? let->defs : branch ? branch->defs : loop ? loop->defs : Defs())
        look(d.type, d.name, d.at, from);
      for (const Carry &c : loop ? loop->carry : std::span<const Carry>())
        look(c.def.type, c.def.name, c.def.at, from);
      auto *call = let ? as<Call>(let->value) : nullptr;
      if (const OpInfo *op = let ? operator_of(b_, *let) : nullptr; op && op->name == "ImageDecoder")
        diag_.error(let->at, "{}: files are decoded by mlc-run alone, it cannot be planned{}", op->name, node(from));
      for (const Expr *e : call ? call->args : Exprs())
        if (auto *g = as<Global>(e); g && m_.constant(g->name))
          look(m_.constant(g->name)->type, g->name, e->at, from);
    });
  }

  const Func *graph(const Func &f) {
    refuse_hosted(f);
    if (diag_.errors()) return &f;
    PlanLines lines(b_, m_, f, functions_, diag_);
    lines.run();
    if (diag_.errors()) return &f;
    lines.places.settle();
    Placement p = lines.places.place();
    if (diag_.errors()) return &f;
    Sym arena = lines.names.make("arena");
    Func g = f;
    g.body = Writer(b_, lines.places, p, arena).written(lines.lines);
    diag_.remark("@{}: arena {} bytes, lower bound {} bytes", b_.text(f.name), print(b_, p.total.e),
                 print(b_, p.lower_bound.e));
    std::vector<Attr> attrs(f.notes.attrs.begin(), f.notes.attrs.end());
    attrs.push_back({b_.sym("arena_bytes"), kNowhere, p.total.e});
    g.notes.attrs = b_.list(attrs);
    g.results = edit_all(b_, f.results, [&](Def &d) {
      auto it = lines.capacity.find(d.name);
      if (it == lines.capacity.end()) return;
      Type t = *d.type;
      std::vector<Attr> with(t.attrs.begin(), t.attrs.end());
      with.push_back({b_.sym("capacity"), kNowhere, it->second});
      t.attrs = b_.list(with), d.type = b_.type(t);
    });
    std::vector<Param> params(f.params.begin(), f.params.end());
    Attr align = {b_.sym("align"), kNowhere, b_.integer(kArenaAlign)};
    const Type *type = b_.type({DType::U8, true, {}, {}, -1, b_.list({p.total.e}), b_.one(align)});
    params.push_back({Mode::Scratch, {arena, kNowhere, type}});
    g.params = b_.list(params);
    return b_.make(g);
  }

  Build &b_;
  Module &m_;
  Diag &diag_;
  std::unordered_map<Sym, const Func *> functions_;  // as they are now: planned, with a workspace, in place
  std::unordered_set<Sym> seen_;
};

void run(Build &b, Module &m, const Options &, Diag &diag) { Plan(b, m, diag).run(); }

}  // namespace

extern const Pass pass_plan;
const Pass pass_plan = {"plan", "Give every value of a graph its place in memory", {}, run, Stage::Groups};

}  // namespace mlc
