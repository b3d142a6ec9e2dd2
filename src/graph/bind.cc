#include "graph/bind.h"

#include <algorithm>
#include <functional>

#include "ir/solve.h"
#include "ir/typing.h"
#include "text/text.h"

namespace mlc {

namespace {

using Numbers = std::unordered_map<Sym, const Int *>;

bool is_index_param(const Param &p) { return !p.def.type->tensor && p.def.type->elem == DType::Index; }

bool has_sizes(const Func &f) {
  return f.func == FuncKind::Graph || f.func == FuncKind::Group || f.func == FuncKind::Kernel;
}

// Calls f on the name of each function that a function calls.
void each_call(const Func &f, const std::function<void(Sym)> &visit) {
  each_expr_in(f.body, [&](const Expr *e) {
    if (auto *c = as<Call>(e); c && c->global) visit(c->callee);
    return true;
  });
  each_stmt(f.body, [&](const Stmt *s) {
    if (auto *c = as<CallStmt>(s); c && c->call->global) visit(c->call->callee);
  });
}

std::unordered_set<Sym> called(const Module &m) {
  std::unordered_set<Sym> out;
  for (const Item *i : m.items)
    if (auto *f = as<Func>(i)) each_call(*f, [&](Sym s) { out.insert(s); });
  return out;
}

// One function with numbers for some of its names.
class Fixed {
 public:
  Fixed(Build &b, const Numbers &numbers, Diag &diag) : b_(b), diag_(diag) {
    for (auto [s, n] : numbers) with_[s] = n, known_.insert(n);
  }

  const Func *function(const Func &f, bool root) {
    Func n = f;
    std::vector<Sym> dims;
    for (Sym d : f.dims)
      if (!with_.count(d)) dims.push_back(d);
    n.dims = b_.list(dims);
    std::vector<Param> params(f.params.begin(), f.params.end());
    for (Param &p : params) p.def.type = type(p.def.type);
    n.params = b_.list(params);
    std::vector<Def> results(f.results.begin(), f.results.end());
    for (Def &d : results) d.type = type(d.type);
    n.results = b_.list(results);
    n.notes.attrs = rewrite(b_, substitute(b_, f.notes.attrs, with_), folding());
    std::vector<const Stmt *> body;
    for (const Param &p : f.params)
      if (auto it = with_.find(p.def.name); root && it != with_.end())
        body.push_back(b_.make(Assume{{}, b_.binary(Op::Eq, b_.name(p.def.name), it->second)}));
    Stmts rest = settled(rewrite_exprs(b_, substitute(b_, f.body, with_), folding()));
    body.insert(body.end(), rest.begin(), rest.end());
    n.body = b_.list(body);
    return b_.make(n);
  }

 private:
  ExprMap folding() {
    return [this](const Expr *e) { return folded(e); };
  }
  const Type *type(const Type *t) { return rewrite(b_, substitute(b_, t, with_), folding()); }

  // An integer literal that is of type index: it was put here for a name, or made of such.
  bool number(const Expr *e) const { return known_.count(e) > 0; }
  const Expr *made(int64_t v, uint32_t at) {
    const Expr *e = b_.integer(v, at);
    known_.insert(e);
    return e;
  }

  const Expr *folded(const Expr *e) {
    if (auto *u = as<Unary>(e)) {
      auto *v = as<Bool>(u->a);
      return v && u->op == Op::Not ? b_.boolean(!v->value, e->at) : e;
    }
    if (auto *x = as<Binary>(e)) return binary(*x);
    if (auto *c = as<Call>(e); c && !c->global && c->iters.empty()) return call(*c);
    return e;
  }

  const Expr *binary(const Binary &x) {
    if (x.op == Op::And || x.op == Op::Or) {
      const Expr *sides[] = {x.a, x.b};
      for (int i = 0; i < 2; i++)
        if (auto *v = as<Bool>(sides[i])) return v->value == (x.op == Op::And) ? sides[1 - i] : sides[i];
      return &x;
    }
    int64_t i, j;
    if (!int_value(x.a, &i) || !int_value(x.b, &j) || (!number(x.a) && !number(x.b))) return &x;
    switch (x.op) {
      case Op::Eq: return b_.boolean(i == j, x.at);
      case Op::Ne: return b_.boolean(i != j, x.at);
      case Op::Lt: return b_.boolean(i < j, x.at);
      case Op::Le: return b_.boolean(i <= j, x.at);
      case Op::Gt: return b_.boolean(i > j, x.at);
      case Op::Ge: return b_.boolean(i >= j, x.at);
      default: break;
    }
    int64_t v;
    const Expr *y = fold(b_, x.op, x.a, x.b);
    return int_value(y, &v) ? made(v, x.at) : &x;
  }

  // Of literals alone a call says no longer what type it has: index(8).
  const Expr *call(const Call &c) {
    std::string_view name = b_.text(c.callee);
    int64_t i, j;
    if (name == "where" && c.args.size() == 3)
      if (auto *v = as<Bool>(c.args[0])) return c.args[v->value ? 1 : 2];
    bool any = std::any_of(c.args.begin(), c.args.end(), [&](const Expr *a) { return number(a); });
    if (!any) return &c;
    if (name == "index" && c.args.size() == 1) return c.args[0];
    if ((name == "min" || name == "max") && c.args.size() == 2 && int_value(c.args[0], &i) && int_value(c.args[1], &j))
      return made(name == "min" ? std::min(i, j) : std::max(i, j), c.at);
    DType to = dtype_named(name);
    bool cast = to != DType::Invalid;
    if (cast && (!is_int(to) || info(to).bits == 64)) return &c;
    if (!cast && !builtin(name)) return &c;  // an operator
    for (const Expr *a : c.args)
      if (a->kind != Kind::Int) return &c;
    std::vector<const Expr *> args(c.args.begin(), c.args.end());
    for (const Expr *&a : args)
      if (number(a)) a = b_.call(b_.sym("index"), b_.list({a}), a->at);
    return b_.call(c.callee, b_.list(args), c.at);
  }

  // Assumptions and branches that are decided.
  Stmts settled(Stmts l) {
    return rewrite_stmts(b_, l, [&](const Stmt *s, std::vector<const Stmt *> &out) {
      auto *a = as<Assume>(s);
      auto *v = as<Bool>(a ? a->cond : nullptr);
      if (v && !v->value) diag_.error(s->at, "the assumption does not hold at these sizes");
      if (v) return;
      auto *i = as<If>(s);
      v = as<Bool>(i ? i->cond : nullptr);
      if (!v) return out.push_back(s);
      for (const Stmt *x : v->value ? i->body : i->other) out.push_back(x);
    });
  }

  Build &b_;
  Diag &diag_;
  Substitution with_;
  std::unordered_set<const Expr *> known_;
};

// The types of everything in a function, by name.
class Types {
 public:
  Types(Build &b, const Module &m, const Func &f) : b_(b), m_(m) {
    for (const Param &p : f.params) add(p.def);
    for (const Def &d : f.results) add(d);
    each_stmt(f.body, [&](const Stmt *s) {
      if (auto *x = as<Let>(s)) add(x->defs);
      if (auto *x = as<IfValue>(s)) add(x->defs);
      if (auto *x = as<Alloc>(s)) add(x->def);
      if (auto *x = as<View>(s)) add(x->def);
      if (auto *x = as<Loop>(s)) {
        add(x->defs);
        for (const Carry &c : x->carry) add(c.def);
      }
    });
  }
  Argument argument(const Expr *e) const {
    Argument a{nullptr, nullptr, {}};
    if (auto *g = as<Global>(e)) a.type = constant(g->name);
    else if (auto *n = as<Name>(e); n && tensor(n->name)) a.type = tensor(n->name);
    else if (auto *l = as<Load>(e)) {
      const Type *t = l->global ? constant(l->buffer) : tensor(l->buffer);
      if (t && t->rank() == l->index.size()) a.type = region_type(b_, t, l->index, &a.strides);
    } else {
      a.type = b_.index(), a.value = e;
    }
    return a;
  }
  Argument result(const Def &d) const { return {d.type, nullptr, {}}; }

 private:
  void add(const Def &d) { types_.insert_or_assign(d.name, d.type); }
  void add(Defs defs) {
    for (const Def &d : defs) add(d);
  }
  const Type *tensor(Sym s) const {
    auto it = types_.find(s);
    return it != types_.end() && it->second->tensor ? it->second : nullptr;
  }
  const Type *constant(Sym s) const {
    const Const *c = m_.constant(s);
    return c ? c->type : nullptr;
  }
  Build &b_;
  const Module &m_;
  std::unordered_map<Sym, const Type *> types_;
};

class Binder {
 public:
  Binder(Build &b, Module &m, Diag &diag) : b_(b), m_(m), diag_(diag) {}

  void run(const std::map<std::string, int64_t> &sizes, const Func *only) {
    std::unordered_set<Sym> inner = called(m_);
    for (const Item *i : m_.items)
      if (auto *f = as<Func>(i)) order(f);
    std::reverse(order_.begin(), order_.end());  // callers first
    for (Sym name : order_) {
      const Func *f = m_.func(name);
      bool root = only ? f->name == only->name : !inner.count(name);
      Numbers numbers;
      if (root) {
        auto take = [&](Sym s) {
          auto it = sizes.find(std::string(b_.text(s)));
          if (it != sizes.end()) numbers[s] = b_.integer(it->second);
        };
        for (Sym d : f->dims) take(d);
        for (const Param &p : f->params)
          if (is_index_param(p)) take(p.def.name);
      } else if (auto it = agreed_.find(name); it != agreed_.end()) {
        numbers = it->second;
      }
      if (!numbers.empty() && has_sizes(*f)) {
        diag_.remark("@{}: {}", b_.text(name), text(*f, numbers));
        const Func *fixed = Fixed(b_, numbers, diag_).function(*f, root);
        for (size_t i = 0; i < m_.items.size(); i++)
          if (m_.items[i] == f) m_.replace(i, fixed);
        f = fixed;
      }
      calls(*f);
    }
  }

 private:
  void order(const Func *f) {
    if (!seen_.insert(f->name).second) return;
    each_call(*f, [&](Sym s) {
      if (const Func *g = m_.func(s)) order(g);
    });
    order_.push_back(f->name);
  }

  std::string text(const Func &f, const Numbers &numbers) const {
    std::string s;
    auto say = [&](Sym name) {
      auto it = numbers.find(name);
      if (it != numbers.end())
        s += fmt::format("{}{} = {}", s.empty() ? "" : ", ", b_.text(name), it->second->value);
    };
    for (Sym d : f.dims) say(d);
    for (const Param &p : f.params)
      if (is_index_param(p)) say(p.def.name);
    return s;
  }

  // What the calls in f say of the sizes of their callees.
  void calls(const Func &f) {
    Types types(b_, m_, f);
    auto call = [&](const Call &c, const std::vector<Argument> &results) {
      const Func *g = c.global ? m_.func(c.callee) : nullptr;
      if (!g || !has_sizes(*g)) return;
      std::vector<Argument> args;
      size_t next = 0;
      for (const Param &p : g->params) {
        bool given = next < c.args.size() && (p.mode != Mode::Scratch || c.args.size() == g->params.size());
        args.push_back(given ? types.argument(c.args[next++]) : Argument{p.def.type, nullptr, {}});
        if (given && !p.def.type->tensor && p.def.type->elem != DType::Index) args.back() = {p.def.type, nullptr, {}};
        if (!args.back().type) args.back().type = p.def.type;
      }
      Numbers numbers;
      if (Solution s = solve_dims(b_, *g, args, results))
        for (auto [name, e] : s.names)
          if (auto *i = as<Int>(e)) numbers[name] = i;
      auto [it, first] = agreed_.try_emplace(c.callee, numbers);
      if (!first)
        std::erase_if(it->second, [&](auto &known) {
          auto other = numbers.find(known.first);
          return other == numbers.end() || other->second->value != known.second->value;
        });
    };
    each_stmt(f.body, [&](const Stmt *s) {
      std::vector<Argument> results;
      if (auto *l = as<Let>(s))
        if (auto *c = as<Call>(l->value)) {
          for (const Def &d : l->defs) results.push_back(types.result(d));
          call(*c, results);
        }
      if (auto *c = as<CallStmt>(s)) {
        for (const Expr *d : c->dests) results.push_back(types.argument(d));
        bool known = std::all_of(results.begin(), results.end(), [](const Argument &a) { return a.type; });
        call(*c->call, known ? results : std::vector<Argument>{});
      }
    });
  }

  Build &b_;
  Module &m_;
  Diag &diag_;
  std::vector<Sym> order_;
  std::unordered_set<Sym> seen_;
  std::unordered_map<Sym, Numbers> agreed_;
};

}  // namespace

std::vector<std::string> open_sizes(const Build &b, const Module &m, const Func *only) {
  std::unordered_set<Sym> inner = called(m);
  std::vector<std::string> out;
  auto add = [&](Sym s) {
    std::string name(b.text(s));
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  };
  for (const Item *i : m.items) {
    auto *f = as<Func>(i);
    if (!f || !has_sizes(*f) || (only ? f != only : inner.count(f->name) > 0)) continue;
    for (Sym d : f->dims) add(d);
    for (const Param &p : f->params)
      if (is_index_param(p)) add(p.def.name);
  }
  return out;
}

void bind_sizes(Build &b, Module &m, const std::map<std::string, int64_t> &sizes, const Func *only, Diag &diag) {
  Binder(b, m, diag).run(sizes, only);
}

}  // namespace mlc
