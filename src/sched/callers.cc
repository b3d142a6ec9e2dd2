#include <algorithm>

#include "ir/solve.h"
#include "sched/layout.h"
#include "text/text.h"

namespace mlc {

namespace {

class Callers {
 public:
  Callers(Build &b, std::vector<const Item *> &items, const std::vector<Relaid> &kernels, Diag &diag)
      : b_(b), items_(items), kernels_(kernels), diag_(diag) {}

  // Kernels one by one, in their order, and of each all calls: so are names given.
  bool run() {
    for (const Item *i : items_) {
      if (Sym n = name_of(i)) taken_.insert(n);
      if (auto *k = as<Const>(i)) constants_[k->name] = k->type;
    }
    for (size_t i = 0; i < kernels_.size(); i++) changed_[kernels_[i].old->name] = i;
    std::vector<Caller> callers;
    std::vector<std::vector<Site>> sites(kernels_.size());
    for (size_t i = 0; i < items_.size(); i++) {
      auto *f = as<Func>(items_[i]);
      if (!f) continue;
      bool any = false;
      each_stmt(f->body, [&](const Stmt *s) {
        auto *x = as<CallStmt>(s);
        auto *l = as<Let>(s);
        auto *c = x ? x->call : l ? as<Call>(l->value) : nullptr;
        auto it = c && c->global ? changed_.find(c->callee) : changed_.end();
        if (it == changed_.end() || c->callee == f->name) return;
        old_ = kernels_[it->second].old;
        if (x) fail(s->at, "its buffers are placed already: schedule before mlc-plan");
        else sites[it->second].push_back({callers.size(), l, c}), any = true;
      });
      if (any) callers.push_back(caller(i, *f));
    }
    for (size_t k = 0; k < kernels_.size(); k++) {
      old_ = kernels_[k].old, changes_ = &kernels_[k].changes;
      for (const Site &site : sites[k]) {
        caller_ = &callers[site.caller];
        call(*site.let, *site.call, caller_->by[site.let]);
      }
    }
    for (Caller &c : callers)
      items_[c.item] = edited(b_, to<Func>(items_[c.item]), [&](Func &g) {
        g.body = rewrite_stmts(b_, g.body, [&](const Stmt *s, std::vector<const Stmt *> &out) {
          auto it = c.by.find(s);
          if (it == c.by.end()) out.push_back(s);
          else out.insert(out.end(), it->second.begin(), it->second.end());
        });
      });
    items_.insert(items_.begin() + first_func(), made_.begin(), made_.end());
    return ok_;
  }

 private:
  struct Caller {
    size_t item;
    std::unordered_set<Sym> names;
    std::unordered_map<Sym, const Type *> types;
    std::unordered_map<const Stmt *, std::vector<const Stmt *>> by;  // calls, and what stands for them
  };
  struct Site {
    size_t caller;
    const Let *let;
    const Call *call;
  };

  size_t first_func() const {
    size_t at = 0;
    while (at < items_.size() && items_[at]->kind != Kind::Func)
      at++;
    return at;
  }

  Caller caller(size_t item, const Func &f) const {
    Caller out{item, {}, {}, {}};
    collect_all_names(&f, out.names);
    for (const Param &p : f.params)
      out.types[p.def.name] = p.def.type;
    auto define = [&](Defs defs) {
      for (const Def &d : defs)
        out.types[d.name] = d.type;
    };
    define(f.results);
    each_stmt(f.body, [&](const Stmt *s) {
      if (auto *l = as<Let>(s)) define(l->defs);
      if (auto *x = as<IfValue>(s)) define(x->defs);
      if (auto *x = as<Alloc>(s)) define(b_.one(x->def));
      if (auto *x = as<View>(s)) define(b_.one(x->def));
      if (auto *x = as<Loop>(s)) {
        define(x->defs);
        for (const Carry &c : x->carry)
          define(b_.one(c.def));
      }
    });
    return out;
  }

  void fail(uint32_t at, std::string_view why) {
    if (ok_) diag_.error(at, "@{} is called here, and its layout changes: {}", b_.text(old_->name), why);
    ok_ = false;
  }

  Sym fresh(std::unordered_set<Sym> &taken, std::string_view want) {
    Sym s = b_.sym(want);
    for (int i = 1; taken.count(s); i++)
      s = b_.sym(fmt::format("{}_{}", want, i));
    taken.insert(s);
    return s;
  }

  const Type *type_of(const Expr *e) const {
    if (auto *n = as<Name>(e)) {
      auto it = caller_->types.find(n->name);
      return it == caller_->types.end() ? nullptr : it->second;
    }
    auto *g = as<Global>(e);
    auto it = g ? constants_.find(g->name) : constants_.end();
    return it == constants_.end() ? nullptr : it->second;
  }

  // In names of the caller.
  const Expr *as_map(const Map *m, const Substitution &names) {
    return substitute(b_, static_cast<const Expr *>(m), names);
  }
  Attrs with_map(const Expr *m) { return b_.one(Attr{b_.sym("map"), kNowhere, m}); }
  const Expr *transform(const Expr *x) { return b_.call("LayoutTransform", {x}); }

  void call(const Let &l, const Call &c, std::vector<const Stmt *> &out) {
    std::vector<Argument> args;
    for (const Expr *e : c.args) {
      const Type *t = type_of(e);
      args.push_back({t ? t : b_.index(), t && t->tensor ? nullptr : e, {}});
    }
    std::vector<Argument> results;
    for (const Def &d : l.defs)
      results.push_back({d.type, nullptr, {}});
    Solution solved = solve_dims(b_, *old_, args, results);
    if (!solved) return fail(l.at, "the sizes of the call are not known");
    std::vector<const Expr *> values(c.args.begin(), c.args.end());
    for (const LayoutChange &x : *changes_) {
      if (x.result) continue;
      const Expr *&v = values[x.index];
      if (!type_of(v) || !type_of(v)->tensor) return fail(l.at, fmt::format("{} has no layout", print(b_, v)));
      const Type *to = plain(substitute(b_, x.to, solved.names), type_of(v));
      std::string want = fmt::format("{}.{}", b_.text(as<Name>(v) ? to_name(v) : mlc::to<Global>(v).name),
                                     b_.text(old_->params[x.index].def.name));
      if (as<Global>(v)) {
        v = b_.global(constant(mlc::to<Global>(v).name, want, to, as_map(x.map, solved.names)));
      } else {
        Sym made = fresh(caller_->names, want);
        out.push_back(
            b_.make(Let{{}, b_.one(Def{made, kNowhere, to}), transform(v), with_map(as_map(x.map, solved.names)), {}}));
        caller_->types[made] = to;
        v = b_.name(made);
      }
    }
    std::vector<Def> defs(l.defs.begin(), l.defs.end());
    std::vector<const Stmt *> behind;
    for (const LayoutChange &x : *changes_) {
      if (!x.result) continue;
      Def &d = defs[x.index];
      Def made = {fresh(caller_->names, fmt::format("{}.{}", b_.text(d.name), b_.text(old_->name))), kNowhere,
                  plain(substitute(b_, x.to, solved.names), d.type)};
      const Type *padded = plain(substitute(b_, x.padded, solved.names), d.type);
      std::vector<const Stmt *> back;
      Def whole = d;
      if (x.padded != x.from) {
        whole = {fresh(caller_->names, fmt::format("{}.whole", b_.text(d.name))), kNowhere, padded};
        std::vector<const Expr *> zeros(d.type->rank(), b_.integer(0));
        back.push_back(b_.make(
            Let{{},
                b_.one(d),
                b_.call("Slice", {b_.name(whole.name), b_.make_list(b_.list(zeros)), b_.make_list(d.type->dims)}),
                {},
                {}}));
      }
      back.insert(
          back.begin(),
          b_.make(Let{{}, b_.one(whole), transform(b_.name(made.name)), with_map(as_map(x.back, solved.names)), {}}));
      behind.insert(behind.begin(), back.begin(), back.end());
      d = made;
    }
    out.push_back(edited(b_, l, [&](Let &n) {
      n.defs = b_.list(defs);
      n.value = b_.call(c.callee, b_.list(values), c.at, true);
    }));
    out.insert(out.end(), behind.begin(), behind.end());
  }

  static Sym to_name(const Expr *e) { return mlc::to<Name>(e).name; }

  // A type of a value of the caller, who says where it lies.
  const Type *plain(const Type *t, const Type *like) {
    return b_.type({t->elem, true, {}, like->device, like->device_index, t->dims, {}});
  }

  // One for each constant and map.
  Sym constant(Sym of, std::string_view want, const Type *type, const Expr *map) {
    for (const Const *k : made_of_[of])
      if (equal(k->attrs, with_map(map))) return k->name;
    Sym made = fresh(taken_, want);
    Const k{};
    k.name = made, k.type = type, k.value = transform(b_.global(of)), k.attrs = with_map(map);
    const Const *item = b_.make(k);
    made_.push_back(item), made_of_[of].push_back(item);
    constants_[made] = type;
    return made;
  }

  Build &b_;
  std::vector<const Item *> &items_;
  const std::vector<Relaid> &kernels_;
  Diag &diag_;
  const Func *old_ = nullptr;  // the kernel whose calls follow, its changes, and the caller
  const std::vector<LayoutChange> *changes_ = nullptr;
  Caller *caller_ = nullptr;
  std::unordered_map<Sym, size_t> changed_;
  std::vector<const Item *> made_;
  std::unordered_map<Sym, std::vector<const Const *>> made_of_;  // by the constant that they are computed from
  std::unordered_set<Sym> taken_;
  std::unordered_map<Sym, const Type *> constants_;
  bool ok_ = true;
};

}  // namespace

bool callers_follow(Build &b, std::vector<const Item *> &items, const std::vector<Relaid> &kernels, Diag &diag) {
  return kernels.empty() || Callers(b, items, kernels, diag).run();
}

ConstantParams constant_params(const Module &m) {
  ConstantParams out;
  for (const Item *i : m.items)
    if (auto *f = as<Func>(i))
      each_stmt(f->body, [&](const Stmt *s) {
        auto *x = as<CallStmt>(s);
        auto *l = as<Let>(s);
        auto *c = x ? x->call : l ? as<Call>(l->value) : nullptr;
        const Func *k = c && c->global ? m.func(c->callee) : nullptr;
        if (!k || k->func != FuncKind::Kernel) return;
        std::vector<bool> &all = out.try_emplace(c->callee, k->params.size(), true).first->second;
        for (size_t p = 0; p < all.size(); p++) {
          auto *g = l && p < c->args.size() ? as<Global>(c->args[p]) : nullptr;
          all[p] = all[p] && g && m.constant(g->name) && f->func == FuncKind::Graph;
        }
      });
  return out;
}

}  // namespace mlc
