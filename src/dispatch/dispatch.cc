#include "dispatch/dispatch.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "arith/scope.h"
#include "dispatch/match.h"
#include "ir/edit.h"
#include "text/text.h"

namespace mlc {
namespace {

struct Candidate {
  const LibraryPattern *pattern;
  Found found;
  size_t at;  // the place of its last line, in the order of the text
};

class Dispatch {
 public:
  Dispatch(Build &b, Module &m, const std::vector<Module> &libraries, const std::function<bool(const Func &)> &usable,
           Diag &diag)
      : b_(b), m_(m), diag_(diag) {
    add_patterns(m, usable);
    for (const Module &l : libraries) add_patterns(l, usable);
  }

  void run() {
    functions();
    for (size_t i = 0; i < m_.items.size(); i++) {
      auto *f = as<Func>(m_.items[i]);
      if (f && f->func == FuncKind::Graph) m_.replace(i, graph(*f));
    }
    drop_unused();
    for (const LibraryPattern &p : patterns_)
      if (called_.count(p.function->name) && !m_.find(p.function->name)) m_.add(p.function);
  }

 private:
  template <class... A> void remark(fmt::format_string<A...> f, A &&...a) { diag_.remark(f, std::forward<A>(a)...); }

  void add_patterns(const Module &l, const std::function<bool(const Func &)> &usable) {
    for (const Item *i : l.items) {
      auto *f = as<Func>(i);
      if (!f || f->func != FuncKind::Extern) continue;
      auto called_so = [&](const LibraryPattern &p) { return p.function->name == f->name; };
      bool known = std::any_of(patterns_.begin(), patterns_.end(), called_so);
      if (known) continue;
      if (!usable(*f)) {
        remark("@{} is for @{}", b_.text(f->name), b_.text(f->target));
        continue;
      }
      std::string why;
      if (auto p = library_pattern(b_, *f, &why)) patterns_.push_back(std::move(*p));
      else remark("@{} is no pattern: {}", b_.text(f->name), why);
    }
  }

  // The better of two that fit.
  static bool before(const Candidate &x, const Candidate &y) {
    if (x.pattern->priority != y.pattern->priority) return x.pattern->priority > y.pattern->priority;
    if (x.found.lines.size() != y.found.lines.size()) return x.found.lines.size() > y.found.lines.size();
    if (x.found.cost && y.found.cost && *x.found.cost != *y.found.cost) return *x.found.cost < *y.found.cost;
    return false;
  }

  static std::string nodes(const Build &b, Syms from) {
    std::string s;
    for (Sym n : from) s += (s.empty() ? ", from " : ", ") + quote(b.text(n));
    return s;
  }

  // ---- groups and kernels as a whole: their calls become calls of the library

  void functions() {
    std::unordered_map<Sym, Candidate> chosen;
    for (const Item *i : m_.items) {
      auto *f = as<Func>(i);
      bool whole = f && (f->func == FuncKind::Kernel || f->func == FuncKind::Group);
      if (!whole) continue;
      for (const LibraryPattern &p : patterns_) {
        if (p.operators != (f->func == FuncKind::Group)) continue;
        Reasons why;
        auto found = p.operators ? match_group(b_, m_, p, *f, why) : match_kernel(b_, m_, p, *f, why);
        if (!found) {
          if (!why.text.empty())
            remark("@{} does not fit @{}: {}", b_.text(p.function->name), b_.text(f->name), why.text);
          continue;
        }
        Candidate c{&p, std::move(*found), 0};
        auto it = chosen.find(f->name);
        if (it == chosen.end()) chosen.emplace(f->name, std::move(c));
        else if (before(c, it->second)) it->second = std::move(c);
      }
    }
    if (chosen.empty()) return;
    for (size_t i = 0; i < m_.items.size(); i++) {
      auto *f = as<Func>(m_.items[i]);
      if (!f || (f->func != FuncKind::Graph && f->func != FuncKind::Kernel) || chosen.count(f->name)) continue;
      Stmts body = rewrite_stmts(b_, f->body, [&](const Stmt *s, std::vector<const Stmt *> &out) {
        out.push_back(calls_library(s, chosen));
      });
      m_.replace(i, edited(b_, *f, [&](Func &n) { n.body = body; }));
    }
    for (auto &[name, c] : chosen) replaced_.insert(name);
  }

  const Stmt *calls_library(const Stmt *s, const std::unordered_map<Sym, Candidate> &chosen) {
    auto *let = as<Let>(s);
    auto *effect = as<CallStmt>(s);
    auto *call = let ? as<Call>(let->value) : effect ? effect->call : nullptr;
    auto it = call && call->global ? chosen.find(call->callee) : chosen.end();
    if (it == chosen.end()) return s;
    const Candidate &c = it->second;
    const Func &f = *m_.func(call->callee);
    if (f.params.size() != call->args.size()) return s;  // of a planned graph: scratch and all
    Substitution names;
    for (size_t i = 0; i < f.params.size(); i++) names[f.params[i].def.name] = call->args[i];
    std::vector<const Expr *> args;
    for (const Expr *e : c.found.args) args.push_back(substitute(b_, e, names));
    const Call *made = b_.call(c.pattern->function->name, b_.list(args), call->at, true);
    called_.insert(c.pattern->function->name);
    Syms from = let ? let->from : effect->from;
    remark("@{}: @{}{}", b_.text(c.pattern->function->name), b_.text(f.name), nodes(b_, from));
    if (let) {
      std::vector<Def> defs;
      for (size_t r : c.found.results) defs.push_back(let->defs[r]);
      return edited(b_, *let, [&](Let &n) { n.value = made, n.defs = b_.list(defs); });
    }
    std::vector<const Expr *> dests;
    for (size_t r : c.found.results) dests.push_back(effect->dests[r]);
    return edited(b_, *effect, [&](CallStmt &n) { n.call = made, n.dests = b_.list(dests); });
  }

  // Groups and kernels that nothing calls any more.
  void drop_unused() {
    std::unordered_set<Sym> used;
    for (const Item *i : m_.items)
      if (auto *f = as<Func>(i))
        each_stmt(f->body, [&](const Stmt *s) {
          if (auto *c = as<CallStmt>(s); c && c->call->global) used.insert(c->call->callee);
          if (auto *l = as<Let>(s))
            if (auto *c = as<Call>(l->value); c && c->global) used.insert(c->callee);
        });
    std::vector<const Item *> kept;
    for (const Item *i : m_.items)
      if (Sym name = name_of(i); !replaced_.count(name) || used.count(name)) kept.push_back(i);
    if (kept.size() != m_.items.size()) m_.set(kept);
  }

  // ---- operators of a graph

  const Func *graph(const Func &f) {
    Values values(m_, f);
    Bounds known(b_);
    enter(known, f);
    std::unordered_set<Sym> results;
    for (const Def &d : f.results) results.insert(d.name);
    Stmts body = lines(f.body, results, values, known);
    return edited(b_, f, [&](Func &n) { n.body = body; });
  }

  // What is read behind the k-th body of a statement: what it yields, what a region gives out.
  static std::unordered_set<Sym> read_behind(const Stmt *s, size_t k) {
    std::unordered_set<Sym> names;
    auto yields = [&](const Yield &y) {
      for (const Expr *e : y.yields) collect_names(e, names);
      for (const Expr *e : y.stacks) collect_names(e, names);
    };
    if (auto *d = as<Dataflow>(s)) names.insert(d->outputs.begin(), d->outputs.end());
    if (auto *i = as<IfValue>(s)) yields(k ? i->other : i->then);
    if (auto *l = as<Loop>(s)) yields(l->body);
    return names;
  }

  // How often a name of the body is read: once for each expression, and behind it.
  static std::unordered_map<Sym, int> uses_of(Stmts in, const std::unordered_set<Sym> &behind) {
    std::unordered_map<Sym, int> uses;
    for (Sym s : behind) uses[s]++;
    each_stmt(in, [&](const Stmt *s) {
      each_expr_of(s, [&](const Expr *e) {
        std::unordered_set<Sym> found;
        collect_names(e, found);
        for (Sym n : found) uses[n]++;
      });
      if (auto *d = as<Dataflow>(s))
        for (Sym n : d->outputs) uses[n]++;
    });
    return uses;
  }

  Stmts lines(Stmts in, const std::unordered_set<Sym> &behind, Values &values, Bounds &known) {
    const std::unordered_map<Sym, int> uses = uses_of(in, behind);
    std::unordered_map<Sym, const Let *> defined;
    std::unordered_map<const Let *, size_t> place;
    std::vector<Candidate> all;
    std::vector<const Stmt *> body;
    size_t facts = known.mark();
    for (const Stmt *s : in) {
      size_t nth = 0;
      s = with_bodies(b_, s, [&](Stmts inner) {
        size_t mark = known.mark();
        enter(known, s, nth);
        Values own = values;
        if (auto *l = as<Loop>(s)) {
          for (const Carry &c : l->carry) own.define(c.def);
        }
        Stmts made = lines(inner, read_behind(s, nth++), own, known);
        known.pop(mark);
        return made;
      });
      values.define(s);
      after(known, s);
      auto *l = as<Let>(s);
      if (l) {
        place[l] = body.size();
        for (const Def &d : l->defs) defined[d.name] = l;
        if (operator_of(b_, *l)) candidates(*l, uses, values, known, defined, place, all);
      }
      body.push_back(s);
    }
    known.pop(facts);
    return replaced(body, place, all);
  }

  void candidates(const Let &root, const std::unordered_map<Sym, int> &uses, const Values &values, const Bounds &known,
                  const std::unordered_map<Sym, const Let *> &defined,
                  const std::unordered_map<const Let *, size_t> &place, std::vector<Candidate> &all) {
    for (const LibraryPattern &p : patterns_) {
      if (!p.operators) continue;
      auto line = [&](Sym name) -> const Let * {
        auto it = defined.find(name);
        return it == defined.end() ? nullptr : it->second;
      };
      // Statements that read a name once each are as many as the lines of the match that read it.
      auto inner = [&](Sym name, const Binding &s) {
        int here = 0;
        for (auto &[want, found] : s.lines) {
          std::unordered_set<Sym> read;
          each_expr_of(found, [&](const Expr *e) {
            read.clear();
            collect_names(e, read);
            here += read.count(name) > 0;
          });
        }
        auto it = uses.find(name);
        return (it == uses.end() ? 0 : it->second) == here;
      };
      Reasons why;
      auto found = match_operators(b_, p, root, {values, known, line, inner}, why);
      if (found) {
        size_t last = 0;
        for (const Let *l : found->lines) last = std::max(last, place.at(l));
        all.push_back({&p, std::move(*found), last});
      } else if (begins(p, root)) {
        remark("@{} does not fit {}{}: {}", b_.text(p.function->name), b_.text(root.defs[0].name),
               nodes(b_, root.from), why.text);
      }
    }
  }

  bool begins(const LibraryPattern &p, const Let &root) const {
    for (const Let *l : p.lines)
      for (const Def &d : l->defs)
        if (d.name == p.function->results[0].name) return operator_of(b_, *l) == operator_of(b_, root);
    return false;
  }

  Stmts replaced(const std::vector<const Stmt *> &body, const std::unordered_map<const Let *, size_t> &place,
                 std::vector<Candidate> &all) {
    std::stable_sort(all.begin(), all.end(), before);
    std::vector<bool> gone(body.size());
    std::map<size_t, const Stmt *> made;
    for (const Candidate &c : all) {
      auto taken = [&](const Let *l) { return gone[place.at(l)]; };
      bool free = std::none_of(c.found.lines.begin(), c.found.lines.end(), taken);
      if (!free || !movable(c, body, place)) continue;
      std::vector<const Let *> lines = c.found.lines;
      std::sort(lines.begin(), lines.end(), [&](const Let *x, const Let *y) { return place.at(x) < place.at(y); });
      Syms from;
      std::string comment;
      for (const Let *l : lines) {
        gone[place.at(l)] = true;
        from = merge(b_, from, l->from);
        if (!l->comment.empty()) comment += (comment.empty() ? "" : "\n") + std::string(l->comment);
      }
      const Func &f = *c.pattern->function;
      Let call{{}, b_.list(c.found.defs), b_.call(f.name, c.found.args, body[c.at]->at, true), {}, from};
      call.at = body[c.at]->at, call.comment = b_.arena.text(comment);
      made[c.at] = b_.make(call);
      called_.insert(f.name);
      remark("@{}: {}{}", b_.text(f.name), b_.text(c.found.defs[0].name), nodes(b_, from));
    }
    std::vector<const Stmt *> out;
    for (size_t i = 0; i < body.size(); i++) {
      if (auto it = made.find(i); it != made.end()) out.push_back(it->second);
      else if (!gone[i]) out.push_back(body[i]);
    }
    return b_.list(out);
  }

  // No statement before the call reads what only the call gives.
  static bool movable(const Candidate &c, const std::vector<const Stmt *> &body,
                      const std::unordered_map<const Let *, size_t> &place) {
    std::unordered_set<size_t> own;
    size_t first = c.at;
    for (const Let *l : c.found.lines) own.insert(place.at(l)), first = std::min(first, place.at(l));
    for (size_t i = first; i < c.at; i++) {
      if (own.count(i)) continue;
      std::unordered_set<Sym> read;
      each_stmt(body[i], [&](const Stmt *s) { each_expr_of(s, [&](const Expr *e) { collect_names(e, read); }); });
      for (const Def &d : c.found.defs)
        if (read.count(d.name)) return false;
    }
    return true;
  }

  Build &b_;
  Module &m_;
  Diag &diag_;
  std::vector<LibraryPattern> patterns_;
  std::unordered_set<Sym> called_, replaced_;
};

}  // namespace

void dispatch(Build &b, Module &m, const std::vector<Module> &libraries,
              const std::function<bool(const Func &)> &usable, Diag &diag) {
  Dispatch(b, m, libraries, usable, diag).run();
}

}  // namespace mlc
