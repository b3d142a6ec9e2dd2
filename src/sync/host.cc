#include "sync/host.h"

#include <algorithm>

#include "arith/prove.h"
#include "arith/scope.h"
#include "ir/edit.h"
#include "ir/solve.h"
#include "sync/uses.h"

namespace mlc {

namespace {

class Host {
 public:
  Host(Build &b, const Module &m, const Func *g, Fresh &globals, std::vector<const Func *> &out)
      : b_(b), m_(m), g_(*g), globals_(globals), out_(out), known_(b) {
    types_ = tensors_of(*g);
    enter(known_, *g);
  }

  const Func *run() {
    Stmts body =
        rewrite_stmts(b_, g_.body, [&](const Stmt *s, std::vector<const Stmt *> &out) { out.push_back(stmt(s)); });
    return edited(b_, g_, [&](Func &f) { f.body = body; });
  }

 private:
  const Stmt *stmt(const Stmt *s) {
    auto *c = as<CallStmt>(s);
    if (!c || c->call->global || c->dests.size() != 1 || c->call->args.size() != 1) return s;
    std::string_view name = b_.text(c->call->callee);
    if (name == "Copy") return dense(c->call->args[0]) && dense(c->dests[0]) ? s : kernel(*c, true);
    return name == "fill" ? kernel(*c, false) : s;
  }

  Sym buffer_of(const Expr *e) const {
    auto *n = as<Name>(e);
    auto *l = as<Load>(e);
    return n ? n->name : l && !l->global ? l->buffer : Sym{};
  }
  const Type *type_of(const Expr *e) const {
    auto *g = as<Global>(e);
    auto *l = as<Load>(e);
    Sym c = g ? g->name : l && l->global ? l->buffer : Sym{};
    if (c) return m_.constant(c) ? m_.constant(c)->type : nullptr;
    auto it = types_.find(buffer_of(e));
    return it == types_.end() ? nullptr : it->second;
  }
  // It lies in one piece.
  bool dense(const Expr *e) const {
    const Type *t = type_of(e);
    auto *l = as<Load>(e);
    if (!t || attr(b_, t->attrs, "strides")) return false;
    if (!l) return true;
    Exprs strides;
    const Type *part = region_type(b_, t, l->index, &strides);
    Exprs want = strides_of(b_, part);
    for (size_t d = 0; d < want.size(); d++)
      if (!is_int(part->dims[d], 1) && !provably_equal(b_, strides[d], want[d], known_)) return false;
    return info(t->elem).bits >= 8;
  }

  // Sizes of what is kept of a buffer or region; its element at a turn.
  std::vector<const Expr *> extents(const Expr *e) const {
    const Type *t = type_of(e);
    auto *l = as<Load>(e);
    if (!l) return {t->dims.begin(), t->dims.end()};
    std::vector<const Expr *> out;
    for (size_t d = 0; d < l->index.size(); d++) {
      if (l->index[d]->kind == Kind::All) out.push_back(t->dims[d]);
      if (auto *r = as<Range>(l->index[d])) out.push_back(r->extent);
    }
    return out;
  }
  const Load *element(const Expr *e, const std::vector<const Expr *> &turn) const {
    auto *l = as<Load>(e);
    auto *g = as<Global>(e);
    std::vector<const Expr *> index;
    size_t next = 0;
    if (!l) index = turn;
    for (const Expr *i : l ? l->index : Exprs()) {
      auto *r = as<Range>(i);
      index.push_back(r                        ? fold(b_, Op::Add, r->lo, turn[next++])
                      : i->kind == Kind::All ? turn[next++]
                                             : i);
    }
    Sym name = l ? l->buffer : g ? g->name : to<Name>(e).name;
    return b_.load(name, b_.list(index), kNowhere, g || (l && l->global));
  }

  const Stmt *kernel(const CallStmt &c, bool copies) {
    const Expr *to = c.dests[0], *from = c.call->args[0];
    const Type *type = type_of(to);
    if (!type || (copies && !type_of(from))) return &c;
    Fresh names(b_);
    NameSet used;
    mention(&c, used);
    for (const Expr *e : {to, from})
      if (const Type *t = type_of(e)) collect_names(t, used);
    std::vector<Sym> sorted(used.begin(), used.end());
    std::sort(sorted.begin(), sorted.end(), [&](Sym x, Sym y) { return b_.text(x) < b_.text(y); });
    for (Sym s : sorted) names.take(s);

    std::vector<Iter> loops;
    std::vector<const Expr *> turn;
    for (const Expr *e : extents(to)) {
      loops.push_back({names.make("i"), e, kNowhere});
      turn.push_back(b_.name(loops.back().name));
    }
    const Expr *value = copies ? element(from, turn) : from;
    std::vector<Param> params;
    std::vector<const Expr *> args;
    bool literal = value->kind == Kind::Int || value->kind == Kind::Float || value->kind == Kind::Bool;
    Param filler{};
    if (!copies && !literal) {
      filler = {Mode::In, {names.make("v"), kNowhere, b_.scalar(type->elem)}};
      value = b_.name(filler.def.name);
    }
    const Stmt *s = b_.make(Store{{}, false, element(to, turn), value, c.from});
    for (size_t d = loops.size(); d-- > 0;)
      s = b_.make(For{{}, LoopKind::Serial, loops[d], {}, {}, b_.one(s)});
    NameSet need;
    mention(s, need);
    for (const Expr *e : {to, copies ? from : to})
      if (const Type *t = type_of(e)) collect_names(t, need);
    std::vector<Sym> dims;
    auto given_by = [&](const Expr *e, Sym n) {
      const Type *t = buffer_of(e) ? type_of(e) : nullptr;
      return t && std::any_of(t->dims.begin(), t->dims.end(), [&](const Expr *d) { return gives(d, n); });
    };
    for (Sym n : sorted) {  // sizes and places are index values of the graph
      if (!need.count(n) || types_.count(n)) continue;
      if (given_by(to, n) || (copies && given_by(from, n))) dims.push_back(n);
      else params.push_back({Mode::In, {n, kNowhere, b_.index()}}), args.push_back(b_.name(n));
    }
    if (filler.def.name) params.push_back(filler), args.push_back(from);
    if (Sym n = copies ? buffer_of(from) : Sym{}; n && n != buffer_of(to))
      params.push_back({Mode::In, {n, kNowhere, types_.at(n)}}), args.push_back(b_.name(n));
    params.push_back({Mode::Inout, {buffer_of(to), kNowhere, type}}), args.push_back(b_.name(buffer_of(to)));
    Func k{};
    k.kind = Kind::Func, k.at = kNowhere, k.func = FuncKind::Kernel, k.device_index = -1;
    k.name = globals_.make(copies ? "copy" : "fill");
    k.dims = b_.list(dims), k.params = b_.list(params), k.body = b_.one(s);
    out_.push_back(b_.make(k));
    CallStmt call{{}, b_.call(k.name, b_.list(args), kNowhere, true), {}, {}, c.from};
    call.at = c.at, call.comment = c.comment;
    return b_.make(call);
  }

  Build &b_;
  const Module &m_;
  const Func &g_;
  Fresh &globals_;
  std::vector<const Func *> &out_;
  Bounds known_;
  std::unordered_map<Sym, const Type *> types_;
};

}  // namespace

const Func *with_copy_kernels(Build &b, const Module &m, const Func *graph, Fresh &globals,
                              std::vector<const Func *> &out) {
  return Host(b, m, graph, globals, out).run();
}

}  // namespace mlc
