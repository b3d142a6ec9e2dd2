#include "rules/dead.h"

#include <algorithm>

#include "ir/edit.h"

namespace mlc {

namespace {

using Id = uint32_t;  // a definition; 0: of something else, a loop variable, say
using Ids = std::vector<Id>;

class Dead {
 public:
  Dead(Build &b, const std::unordered_set<Sym> &roots, const std::function<bool(const Let &)> &must_stay)
      : b_(b), must_stay_(must_stay), base_(1) {
    for (Sym s : roots) todo_.push_back(define(s));
    roots_.assign(roots.begin(), roots.end());
  }

  Stmts run(Stmts body, size_t *dropped) {
    visit(body);
    for (Sym s : roots_) todo_.push_back(now_[s]);  // results that were defined as values
    for (const Stmt *s : order_)
      if (s->kind != Kind::Dataflow)
        for (Id d : writes_[s]) by_id_[root(d)].push_back(s);
    for (const Stmt *s : needed_) need(s);
    spread();
    for (size_t i = lets_.size(); i-- > 0;) {
      const Let &l = *lets_[i];
      if (used(&l) || !must_stay_(l)) continue;
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
  // ---- names

  Id define(Sym name) {
    Id &now = now_[name];
    log_.push_back({name, now});
    base_.push_back(Id(base_.size()));
    return now = Id(base_.size() - 1);
  }
  void leave(size_t mark) {
    for (; log_.size() > mark; log_.pop_back()) now_[log_.back().first] = log_.back().second;
  }
  Id find(Sym name) const {
    auto it = now_.find(name);
    return it == now_.end() ? 0 : it->second;
  }
  void add(Ids &ids, const Expr *e) const {
    std::unordered_set<Sym> names;
    if (e) collect_names(e, names);
    for (Sym s : names) ids.push_back(find(s));
  }
  // Places in one memory are used together.
  Id root(Id i) {
    while (base_[i] != i) i = base_[i] = base_[base_[i]];
    return i;
  }
  void unite(Id a, Id c) {
    if (a && c) base_[root(a)] = root(c);
  }

  // What each statement defines or writes, and what its own expressions and types read.
  void visit(Stmts body) {
    for (const Stmt *s : body) visit(s);
  }
  void visit(const Stmt *s) {
    Ids reads, writes;
    auto yield = [&](const Yield &y) {
      size_t mark = log_.size();
      visit(y.body);
      for (const Expr *e : y.yields) add(reads, e);
      for (const Expr *e : y.stacks) add(reads, e);
      leave(mark);
    };
    each_expr_of(s, [&](const Expr *e) { add(reads, e); });
    auto defs = [&](Defs l) {
      for (const Def &d : l) writes.push_back(define(d.name));
    };
    switch (s->kind) {
      case Kind::Let:
        lets_.push_back(&to<Let>(s));
        defs(to<Let>(s).defs);
        break;
      case Kind::IfValue:
        valued_.push_back(s);
        yield(to<IfValue>(s).then), yield(to<IfValue>(s).other);
        defs(to<IfValue>(s).defs);
        break;
      case Kind::Loop: {
        auto &l = to<Loop>(s);
        valued_.push_back(s);
        size_t mark = log_.size();
        for (const Carry &c : l.carry) define(c.def.name);
        yield(l.body);
        leave(mark);
        defs(l.defs);
        break;
      }
      case Kind::Store: writes.push_back(find(to<Store>(s).target->buffer)); break;
      case Kind::Compute:
        for (const Result &r : to<Compute>(s).results) writes.push_back(find(r.name));
        reads.insert(reads.end(), writes.begin(), writes.end());
        break;
      case Kind::Alloc: {
        auto &a = to<Alloc>(s);
        Id base = a.base ? find(a.base) : 0;
        writes.push_back(define(a.def.name));
        unite(writes[0], base);
        break;
      }
      case Kind::View: {
        auto &v = to<View>(s);
        Id base = v.source->global ? 0 : find(v.source->buffer);
        writes.push_back(define(v.def.name));
        unite(writes[0], base);
        break;
      }
      case Kind::Dataflow: {
        size_t mark = log_.size();
        visit(to<Dataflow>(s).body);
        for (Sym o : to<Dataflow>(s).outputs) writes.push_back(find(o));
        leave(mark);
        for (size_t i = 0; i < writes.size(); i++) {
          Sym o = to<Dataflow>(s).outputs[i];
          log_.push_back({o, find(o)});
          now_[o] = writes[i];
        }
        reads.clear();
        break;
      }
      default:
        each_body(s, [&](Stmts inner) {
          size_t mark = log_.size();
          visit(inner);
          leave(mark);
        });
        needed_.push_back(s);
    }
    order_.push_back(s);
    reads_[s] = std::move(reads), writes_[s] = std::move(writes);
  }

  // ---- what is needed

  void need(const Stmt *s) {
    for (Id i : reads_[s])
      if (i && !live_.count(root(i))) todo_.push_back(i);
  }
  void spread() {
    while (!todo_.empty()) {
      Id i = root(todo_.back());
      todo_.pop_back();
      if (!live_.insert(i).second) continue;
      auto it = by_id_.find(i);
      if (it == by_id_.end()) continue;
      std::vector<const Stmt *> by = std::move(it->second);
      by_id_.erase(it);
      for (const Stmt *t : by) need(t);
    }
  }

  bool used(Id i) { return live_.count(root(i)); }
  bool used(const Stmt *s) {
    const Ids &w = writes_[s];
    return std::any_of(w.begin(), w.end(), [&](Id i) { return used(i); });
  }
  // Nothing in it is needed for its own sake.
  bool idle(Stmts body) {
    bool yes = true;
    each_stmt(body, [&](const Stmt *s) {
      switch (s->kind) {
        case Kind::Let: yes &= !stays_.count(s); return;
        case Kind::Store: yes &= !used(s); return;
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

  bool dead(const Stmt *s) {
    switch (s->kind) {
      case Kind::Let: return !used(s) && !stays_.count(s);
      case Kind::IfValue: return !used(s) && idle(to<IfValue>(s).then.body) && idle(to<IfValue>(s).other.body);
      case Kind::Loop: return !used(s) && !to<Loop>(s).until && idle(to<Loop>(s).body.body);
      case Kind::Store:
      case Kind::Compute:
      case Kind::Alloc:
      case Kind::View: return !used(s);
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
      if (auto f = as<For>(n); f && f->body.empty() && n != s) continue;
      if (auto i = as<If>(n); i && i->body.empty() && i->other.empty() && n != s) continue;
      if (auto k = as<Block>(n); k && k->body.empty() && k->inits.empty() && n != s) continue;
      auto d = as<Dataflow>(n);
      if (!d) {
        out.push_back(n);
        continue;
      }
      std::vector<Sym> outputs;
      const Ids &ids = writes_[s];
      for (size_t i = 0; i < ids.size(); i++)
        if (used(ids[i])) outputs.push_back(d->outputs[i]);
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
  std::vector<Sym> roots_;
  std::unordered_map<Sym, Id> now_;
  std::vector<std::pair<Sym, Id>> log_;
  Ids base_;                                            // union of ids in one memory
  std::vector<const Stmt *> order_;
  std::unordered_map<const Stmt *, Ids> reads_, writes_;
  std::unordered_map<Id, std::vector<const Stmt *>> by_id_;  // statements that are needed with it
  std::vector<const Let *> lets_;
  std::vector<const Stmt *> needed_, valued_;           // for their own sake; branches and loops that have values
  std::unordered_set<const Stmt *> stays_, kept_;
  std::unordered_set<Id> live_;
  Ids todo_;
  size_t dropped_ = 0;
};

}  // namespace

Stmts drop_dead(Build &b, Stmts body, const std::unordered_set<Sym> &roots,
                const std::function<bool(const Let &)> &must_stay, size_t *dropped) {
  return Dead(b, roots, must_stay).run(body, dropped);
}

}  // namespace mlc
