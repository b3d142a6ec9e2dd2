#include "sync/cut.h"

#include <algorithm>

#include "ir/edit.h"
#include "sync/uses.h"

namespace mlc {

namespace {

class Cutter {
 public:
  Cutter(Build &b, const Module &m, const Func *f, Fresh &globals, const Launch &launch)
      : b_(b), m_(m), f_(*f), globals_(globals), launch_(launch), roots_(f->body), names_(b) {
    take_names(f, names_);
  }

  Cut run() {
    sort_out();
    Cut out;
    std::vector<std::vector<const Stmt *>> pieces = this->pieces();
    if (pieces.size() == 1 && workspaces_.empty()) {
      Workspace own{names_};
      const Func *only = launch_(edited(b_, f_, [&](Func &k) { k.body = with_shared_lines(pieces[0]); }), own);
      if (!only) return out;
      if (own.buffers.empty()) return {nullptr, {only}};
      carried_.clear();
    }
    for (const auto &piece : pieces) {
      const Func *k = kernel(piece);
      if (!k) return {};
      out.launches.push_back(k);
    }
    std::vector<const Stmt *> body = lets_;
    for (const Stmt *s : assumes_)
      if (!carried_.count(s)) body.push_back(s);
    body.insert(body.end(), workspaces_.begin(), workspaces_.end());
    body.insert(body.end(), calls_.begin(), calls_.end());
    out.host = edited(b_, f_, [&](Func &g) {
      g.func = FuncKind::Graph, g.body = without_unused(b_.list(body)), g.notes = {{}, f_.notes.from};
    });
    return out;
  }

 private:
  // What every launch that needs it can have for itself, and what only the host does.
  bool repeats(const Stmt *s) const {
    if (auto *l = as<Let>(s)) return l->defs.size() == 1 && !l->defs[0].type->tensor && !has_loads(l->value);
    if (auto *a = as<Alloc>(s)) return bool(a->base);
    return s->kind == Kind::View;
  }
  bool is_workspace(const Stmt *s) const {
    auto *a = as<Alloc>(s);
    return a && !a->base && (!a->def.type->scope || in_scope(b_, a->def.type, "global"));
  }
  void sort_out() {
    for (const Stmt *s : f_.body) {
      auto *a = as<Assume>(s);
      if (repeats(s)) {
        shared_.push_back(s);
        if (s->kind == Kind::Let) lets_.push_back(s);
      } else if (is_workspace(s)) {
        workspaces_.push_back(s);
      } else if (a && !has_loads(a->cond)) {
        assumes_.push_back(s);
      } else {
        rest_.push_back(s);
      }
    }
  }

  // Runs of statements that share something of their own.
  std::vector<std::vector<const Stmt *>> pieces() const {
    std::unordered_map<Sym, std::pair<size_t, size_t>> lives;
    for (size_t i = 0; i < rest_.size(); i++) {
      auto *l = as<Let>(rest_[i]);
      auto *a = as<Alloc>(rest_[i]);
      if (a) lives[a->def.name] = {i, i};
      for (const Def &d : l ? l->defs : Defs()) lives[d.name] = {i, i};
    }
    for (size_t i = 0; i < rest_.size(); i++)
      for (Sym s : mentioned(b_.one(rest_[i])))
        if (auto it = lives.find(roots_.of(s)); it != lives.end()) it->second.second = std::max(it->second.second, i);
    std::vector<size_t> until(rest_.size());  // the last statement that belongs to this one
    for (size_t i = 0; i < rest_.size(); i++) until[i] = i + (rest_[i]->kind == Kind::Assume && i + 1 < rest_.size());
    for (auto &[name, life] : lives) until[life.first] = std::max(until[life.first], life.second);
    std::vector<std::vector<const Stmt *>> out;
    for (size_t i = 0, last = 0; i < rest_.size(); i++) {
      if (!i || i > last) out.emplace_back(), last = i;
      out.back().push_back(rest_[i]);
      last = std::max(last, until[i]);
    }
    return out;
  }

  // The piece behind the lines that it needs of those that every launch may have.
  Stmts with_shared_lines(const std::vector<const Stmt *> &piece) {
    NameSet need = mentioned(b_.list(piece));
    std::vector<const Stmt *> out;
    for (size_t i = shared_.size(); i-- > 0;) {
      const Stmt *s = shared_[i];
      auto *l = as<Let>(s);
      auto *v = as<View>(s);
      Sym name = l ? l->defs[0].name : v ? v->def.name : to<Alloc>(s).def.name;
      if (!need.count(name)) continue;
      mention(s, need);
      out.push_back(s);
    }
    for (size_t i = assumes_.size(); i-- > 0;) {
      NameSet of = mentioned(b_.one(assumes_[i]));
      bool known = std::all_of(of.begin(), of.end(), [&](Sym n) { return need.count(n) && !is_host_let(n); });
      if (known) out.push_back(assumes_[i]), carried_.insert(assumes_[i]);
    }
    std::reverse(out.begin(), out.end());
    out.insert(out.end(), piece.begin(), piece.end());
    return b_.list(out);
  }

  bool is_host_let(Sym n) const {
    return std::any_of(lets_.begin(), lets_.end(), [&](const Stmt *l) { return to<Let>(l).defs[0].name == n; });
  }
  const Func *kernel(const std::vector<const Stmt *> &piece);
  Stmts without_unused(Stmts body) const;

  Build &b_;
  const Module &m_;
  const Func &f_;
  Fresh &globals_;
  const Launch &launch_;
  Roots roots_;
  Fresh names_;
  std::vector<const Stmt *> shared_, lets_, assumes_, workspaces_, rest_, calls_;
  std::unordered_set<const Stmt *> carried_;  // assumptions that a launch has
  NameSet filled_;                            // results and workspaces that an earlier launch writes
  int count_ = 0;
};

// Lets that nothing reads.
Stmts Cutter::without_unused(Stmts body) const {
  std::vector<const Stmt *> out;
  NameSet need;
  for (const Def &d : f_.results)
    for (const Expr *e : d.type->dims) collect_names(e, need);
  for (size_t i = body.size(); i-- > 0;) {
    auto *l = as<Let>(body[i]);
    if (l && !need.count(l->defs[0].name)) continue;
    mention(body[i], need);
    out.push_back(body[i]);
  }
  std::reverse(out.begin(), out.end());
  return b_.list(out);
}

// kernel @k_1[n](x: f32[n]) -> (t: f32[n]), and its call.
const Func *Cutter::kernel(const std::vector<const Stmt *> &piece) {
  Func k = f_;
  k.name = globals_.make(fmt::format("{}_{}", b_.text(f_.name), ++count_));
  k.comment = {}, k.body = with_shared_lines(piece);
  std::vector<Param> given(f_.params.begin(), f_.params.end());  // what other launches leave in the kernel's buffers
  for (const Stmt *s : workspaces_) given.push_back({Mode::Inout, to<Alloc>(s).def});
  k.params = b_.list(given);
  Workspace own{names_};
  const Func *flat = launch_(&k, own);
  if (!flat) return nullptr;
  for (const Alloc *a : own.buffers) workspaces_.push_back(a);
  NameSet need = mentioned(flat->body), writes = written(m_, Roots(flat->body), flat->body);
  std::vector<Def> buffers;
  auto buffer = [&](const Def &d) {
    if (!d.type->tensor || !need.count(d.name)) return;
    buffers.push_back(d);
    for (const Expr *e : d.type->dims) collect_names(e, need);
  };
  for (const Param &p : f_.params) buffer(p.def);
  for (const Stmt *s : workspaces_) buffer(to<Alloc>(s).def);
  for (const Def &d : f_.results) buffer(d);

  std::vector<Param> params;
  std::vector<const Expr *> args, dests;
  std::vector<Def> results;
  auto give = [&](Mode mode, const Def &d) {
    params.push_back({mode, d});
    args.push_back(b_.name(d.name));
  };
  NameSet defined;  // by the lines of the launch
  each_stmt(flat->body, [&](const Stmt *s) {
    auto *l = as<Let>(s);
    for (const Def &d : l ? l->defs : Defs()) defined.insert(d.name);
  });
  std::vector<Sym> dims;  // those that follow from the arguments
  for (Sym d : f_.dims) {
    if (!need.count(d)) continue;
    bool follows = std::any_of(buffers.begin(), buffers.end(), [&](const Def &x) {
      return std::any_of(x.type->dims.begin(), x.type->dims.end(), [&](const Expr *e) { return gives(e, d); });
    });
    if (follows) dims.push_back(d);
    else give(Mode::In, {d, kNowhere, b_.index()});
  }
  for (const Param &p : f_.params)
    if (!p.def.type->tensor && need.count(p.def.name)) give(Mode::In, p.def);
  for (const Stmt *s : lets_)  // what a type mentions
    if (const Def &d = to<Let>(s).defs[0]; need.count(d.name) && !defined.count(d.name)) give(Mode::In, d);
  for (const Def &d : buffers) {
    bool writes_it = writes.count(d.name);
    auto p = std::find_if(f_.params.begin(), f_.params.end(), [&](const Param &x) { return x.def.name == d.name; });
    if (p != f_.params.end()) {
      give(writes_it || p->mode != Mode::Inout ? p->mode : Mode::In, d);
    } else if (!writes_it || !filled_.insert(d.name).second) {
      give(writes_it ? Mode::Inout : Mode::In, d);
    } else {
      results.push_back(d);
      dests.push_back(b_.name(d.name));
    }
  }
  Func out = *flat;
  out.dims = b_.list(dims), out.params = b_.list(params), out.results = b_.list(results);
  CallStmt call{{}, b_.call(k.name, b_.list(args), kNowhere, true), b_.list(dests), {}, f_.notes.from};
  calls_.push_back(b_.make(call));
  return b_.make(out);
}

}  // namespace

Cut cut(Build &b, const Module &m, const Func *f, Fresh &globals, const Launch &launch) {
  return Cutter(b, m, f, globals, launch).run();
}

}  // namespace mlc
