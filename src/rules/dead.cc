#include "rules/dead.h"

#include <algorithm>

#include "ir/edit.h"

namespace mlc {

namespace {

using Names = std::unordered_set<Sym>;

class Dead {
 public:
  Dead(Build &b, const Names &roots, const std::function<bool(const Let &)> &must_stay) : b_(b), must_stay_(must_stay) {
    for (Sym s : roots) todo_.push_back(s);
  }

  Stmts run(Stmts body, size_t *dropped) {
    each_stmt(body, [&](const Stmt *s) { alias(s); });
    each_stmt(body, [&](const Stmt *s) { read(s); });
    spread();
    for (size_t i = lets_.size(); i-- > 0;) {
      const Let &l = *lets_[i];
      if (used(l.defs) || !must_stay_(l)) continue;
      stays_.insert(&l);
      need(&l);
      spread();
    }
    // A branch or loop that stays for what is in it needs what it yields.
    for (bool again = true; again;) {
      again = false;
      for (const Stmt *s : valued_) {
        if (dead(s) || !kept_.insert(s).second) continue;
        need(s);
        spread();
        again = true;
      }
    }
    Stmts out = sweep(body);
    *dropped += dropped_;
    return out;
  }

 private:
  // Places in one memory are used together.
  Sym root(Sym s) const {
    for (auto it = base_.find(s); it != base_.end(); it = base_.find(s)) s = it->second;
    return s;
  }
  void unite(Sym a, Sym c) {
    a = root(a), c = root(c);
    if (a != c) base_.emplace(a, c);
  }
  void alias(const Stmt *s) {
    if (auto a = as<Alloc>(s); a && a->base) unite(a->def.name, a->base);
    if (auto v = as<View>(s); v && !v->source->global) unite(v->def.name, v->source->buffer);
  }

  void want(Sym s) {
    s = root(s);
    if (live_.insert(s).second) todo_.push_back(s);
  }
  void want(const Expr *e) {
    Names names;
    if (e) collect_names(e, names);
    for (Sym s : names) want(s);
  }
  // All names in the statement's own expressions and types.
  void need(const Stmt *s) {
    each_expr_of(s, [&](const Expr *e) { want(e); });
    if (auto l = as<Loop>(s); l && l->until) want(l->until);
    if (auto r = as<Compute>(s))
      for (const Result &x : r->results) want(x.name);
  }
  void serves(Sym name, const Stmt *s) { by_name_[root(name)].push_back(s); }

  // Statements that only define or fill something are needed once that is; all others are needed.
  void read(const Stmt *s) {
    switch (s->kind) {
      case Kind::Let:
        lets_.push_back(&to<Let>(s));
        for (const Def &d : to<Let>(s).defs) serves(d.name, s);
        return;
      case Kind::IfValue:
        valued_.push_back(s);
        for (const Def &d : to<IfValue>(s).defs) serves(d.name, s);
        return;
      case Kind::Loop:
        valued_.push_back(s);
        for (const Def &d : to<Loop>(s).defs) serves(d.name, s);
        return;
      case Kind::Store: return serves(to<Store>(s).target->buffer, s);
      case Kind::Compute:
        for (const Result &r : to<Compute>(s).results) serves(r.name, s);
        return;
      case Kind::Alloc: return serves(to<Alloc>(s).def.name, s);
      case Kind::View: return serves(to<View>(s).def.name, s);
      case Kind::Dataflow: return;
      default: need(s);
    }
  }

  void spread() {
    while (!todo_.empty()) {
      Sym s = todo_.back();
      todo_.pop_back();
      live_.insert(s);
      auto it = by_name_.find(root(s));
      if (it == by_name_.end()) continue;
      std::vector<const Stmt *> by = std::move(it->second);
      by_name_.erase(it);
      for (const Stmt *t : by) need(t);
    }
  }

  bool used(Sym s) const { return live_.count(root(s)); }
  bool used(Defs defs) const {
    return std::any_of(defs.begin(), defs.end(), [&](const Def &d) { return used(d.name); });
  }
  // Nothing in it is needed for its own sake.
  bool idle(Stmts body) const {
    bool yes = true;
    each_stmt(body, [&](const Stmt *s) {
      switch (s->kind) {
        case Kind::Let: yes &= !stays_.count(s); return;
        case Kind::Store: yes &= !used(to<Store>(s).target->buffer); return;
        case Kind::IfValue:
        case Kind::Alloc:
        case Kind::View:
        case Kind::Dataflow: return;
        case Kind::Loop: yes &= !to<Loop>(s).until; return;  // it may not end
        default: yes = false;
      }
    });
    return yes;
  }

  bool dead(const Stmt *s) const {
    switch (s->kind) {
      case Kind::Let: return !used(to<Let>(s).defs) && !stays_.count(s);
      case Kind::IfValue: {
        auto &v = to<IfValue>(s);
        return !used(v.defs) && idle(v.then.body) && idle(v.other.body);
      }
      case Kind::Loop: return !used(to<Loop>(s).defs) && !to<Loop>(s).until && idle(to<Loop>(s).body.body);
      case Kind::Store: return !used(to<Store>(s).target->buffer);
      case Kind::Compute: {
        auto &l = to<Compute>(s).results;
        return std::none_of(l.begin(), l.end(), [&](const Result &r) { return used(r.name); });
      }
      case Kind::Alloc: return !used(to<Alloc>(s).def.name);
      case Kind::View: return !used(to<View>(s).def.name);
      default: return false;
    }
  }

  Stmts sweep(Stmts body) {
    std::vector<const Stmt *> out;
    bool changed = false;
    for (const Stmt *s : body) {
      if (dead(s)) {
        dropped_++, changed = true;
        continue;
      }
      const Stmt *n = with_bodies(b_, s, [&](Stmts inner) { return sweep(inner); });
      changed |= n != s;
      if (auto f = as<For>(n); f && f->body.empty() && !to<For>(s).body.empty()) continue;
      if (auto i = as<If>(n); i && i->body.empty() && i->other.empty() && n != s) continue;
      if (auto k = as<Block>(n); k && k->body.empty() && k->inits.empty() && n != s) continue;
      auto d = as<Dataflow>(n);
      if (!d) {
        out.push_back(n);
        continue;
      }
      std::vector<Sym> outputs;
      for (Sym o : d->outputs)
        if (used(o)) outputs.push_back(o);
      if (outputs.size() == d->outputs.size()) {
        out.push_back(n);
      } else if (outputs.empty()) {  // what is left are assumptions and checks
        changed = true;
        out.insert(out.end(), d->body.begin(), d->body.end());
      } else {
        changed = true;
        out.push_back(edited(b_, *d, [&](Dataflow &x) { x.outputs = b_.list(outputs); }));
      }
    }
    return changed ? b_.list(out) : body;
  }

  Build &b_;
  const std::function<bool(const Let &)> &must_stay_;
  std::unordered_map<Sym, Sym> base_;
  std::unordered_map<Sym, std::vector<const Stmt *>> by_name_;
  std::vector<const Let *> lets_;
  std::vector<const Stmt *> valued_;                   // branches and loops that have values
  std::unordered_set<const Stmt *> stays_, kept_;
  Names live_;
  std::vector<Sym> todo_;
  size_t dropped_ = 0;
};

}  // namespace

Stmts drop_dead(Build &b, Stmts body, const std::unordered_set<Sym> &roots, const std::function<bool(const Let &)> &must_stay,
                size_t *dropped) {
  return Dead(b, roots, must_stay).run(body, dropped);
}

}  // namespace mlc
