// A kernel against a description in loops.
#include <algorithm>

#include "arith/scope.h"
#include "dispatch/match.h"
#include "ir/solve.h"
#include "text/text.h"

namespace mlc {
namespace {

constexpr size_t kMostSteps = 100000;  // of one attempt, with all its alternatives

class Kernels {
 public:
  using Next = std::function<bool(Binding)>;

  Kernels(Build &b, const Module &m, const LibraryPattern &p, const Func &kernel, Reasons &why)
      : b_(b), m_(m), p_(p), k_(kernel), why_(why), known_(b) {
    enter(known_, kernel);
    for (const Def &d : p.function->results) results_.insert(d.name);
    for (const Param &x : kernel.params) types_[x.def.name] = x.def.type, read_only_.insert(x.def.name);
    for (const Def &d : kernel.results) types_[d.name] = d.type;
    for (Sym d : p.function->dims) sizes_.insert(d);
  }

  std::optional<Found> run() {
    std::optional<Found> found;
    if (std::any_of(k_.params.begin(), k_.params.end(), [](const Param &x) { return x.mode != Mode::In; })) {
      why_.no({}, "the kernel has parameters that it writes");
      return found;
    }
    if (k_.results.size() != p_.function->results.size()) {
      why_.no({}, "expected {} results, found {}", p_.function->results.size(), k_.results.size());
      return found;
    }
    body(p_.body, k_.body, {}, [&](Binding s) {
      Found f;
      if (!done(s, f)) return false;
      found = std::move(f);
      return true;
    });
    return found;
  }

 private:
  template <class... A> bool no(const Binding &s, fmt::format_string<A...> f, A &&...a) {
    return why_.no(s, f, std::forward<A>(a)...);
  }

  bool done(const Binding &s, Found &out) {
    std::vector<const Type *> types;
    for (const Def &r : p_.function->results) {
      auto it = s.names.find(r.name);
      auto *n = it == s.names.end() ? nullptr : as<Name>(it->second);
      auto called_so = [&](const Def &d) { return n && d.name == n->name; };
      auto at = std::find_if(k_.results.begin(), k_.results.end(), called_so);
      if (at == k_.results.end()) return no(s, "result {} is no result of the kernel", b_.text(r.name));
      out.results.push_back(size_t(at - k_.results.begin()));
      types.push_back(at->type);
    }
    return settle(b_, p_, s, [&](const Expr *e) { return type(e); }, types, known_, out, why_);
  }

  const Type *type(const Expr *e) const {
    if (auto *g = as<Global>(e)) return m_.constant(g->name) ? m_.constant(g->name)->type : nullptr;
    auto *n = as<Name>(e);
    auto it = n ? types_.find(n->name) : types_.end();
    return it == types_.end() ? nullptr : it->second;
  }

  // ---- statements

  static std::vector<const Stmt *> effective(Stmts in) {
    std::vector<const Stmt *> out;
    for (const Stmt *s : in)
      if (s->kind != Kind::Assume) out.push_back(s);
    return out;
  }
  bool body(Stmts want, Stmts found, Binding s, const Next &next) {
    auto x = std::make_shared<std::vector<const Stmt *>>(effective(want));
    auto y = std::make_shared<std::vector<const Stmt *>>(effective(found));
    if (x->size() != y->size()) return no(s, "expected {} statements, found {}", x->size(), y->size());
    return from(x, y, 0, std::move(s), next);
  }
  using List = std::shared_ptr<std::vector<const Stmt *>>;
  bool from(const List &x, const List &y, size_t i, Binding s, const Next &next) {
    if (i == x->size()) return next(std::move(s));
    return stmt((*x)[i], (*y)[i], std::move(s), [&](Binding t) { return from(x, y, i + 1, std::move(t), next); });
  }

  bool stmt(const Stmt *want, const Stmt *found, Binding s, const Next &next) {
    if (want->kind != found->kind) return no(s, "expected `{}`, found `{}`", first_line(want), first_line(found));
    s.depth++;
    switch (want->kind) {
      case Kind::Compute: {
        auto &x = to<Compute>(want), &y = to<Compute>(found);
        if (x.results.size() != y.results.size()) return no(s, "a compute of other results");
        for (size_t i = 0; i < x.results.size(); i++) {
          const Result &p = x.results[i], &q = y.results[i];
          if (!buffer(p.name, b_.name(q.name), s) || !iters(p.iters, q.iters, s)) return false;
        }
        return expr(x.value, y.value, std::move(s), next);
      }
      case Kind::Alloc: {
        auto &x = to<Alloc>(want).def, &y = to<Alloc>(found).def;
        bool placed = to<Alloc>(want).base || to<Alloc>(found).base;
        if (placed || x.type->elem != y.type->elem || x.type->rank() != y.type->rank())
          return no(s, "expected {}, found {}", print(b_, x.type), print(b_, y.type));
        s.names[x.name] = b_.name(y.name);
        types_[y.name] = y.type;
        for (size_t d = 0; d < x.type->rank(); d++) same(x.type->dims[d], y.type->dims[d], s);
        return next(std::move(s));
      }
      case Kind::For: {
        auto &x = to<For>(want), &y = to<For>(found);
        if (!iters({&x.iter, 1}, {&y.iter, 1}, s)) return false;
        return body(x.body, y.body, std::move(s), next);
      }
      case Kind::Store: {
        auto &x = to<Store>(want), &y = to<Store>(found);
        if (x.atomic != y.atomic) return no(s, "an atomic store");
        return expr(x.target, y.target, std::move(s),
                    [&](Binding t) { return expr(x.value, y.value, std::move(t), next); });
      }
      case Kind::Let: {
        auto &x = to<Let>(want), &y = to<Let>(found);
        if (x.defs.size() != 1 || y.defs.size() != 1 || x.defs[0].type != y.defs[0].type)
          return no(s, "another definition");
        return expr(x.value, y.value, std::move(s), [&](Binding t) {
          auto names = t.locals ? std::make_shared<Substitution>(*t.locals) : std::make_shared<Substitution>();
          (*names)[x.defs[0].name] = b_.name(y.defs[0].name);
          t.locals = names;
          return next(std::move(t));
        });
      }
      case Kind::If: {
        auto &x = to<If>(want), &y = to<If>(found);
        return expr(x.cond, y.cond, std::move(s), [&](Binding t) {
          auto other = [&](Binding u) { return body(x.other, y.other, std::move(u), next); };
          return body(x.body, y.body, std::move(t), other);
        });
      }
      default: return no(s, "`{}` is not compared", first_line(want));
    }
  }
  std::string first_line(const Stmt *s) const {
    std::string t = print(b_, s);
    t = t.substr(0, t.find('\n'));
    return t.substr(std::min(t.find_first_not_of(' '), t.size()));
  }

  bool iters(Iters want, Iters found, Binding &s) {
    if (want.size() != found.size()) return no(s, "loops of another number");
    for (size_t i = 0; i < want.size(); i++) {
      same(want[i].extent, found[i].extent, s);
      auto names = s.locals ? std::make_shared<Substitution>(*s.locals) : std::make_shared<Substitution>();
      (*names)[want[i].name] = b_.name(found[i].name);
      s.locals = names;
      known_.range(found[i].name, found[i].extent);
    }
    return true;
  }

  // ---- expressions

  static void same(const Expr *want, const Expr *found, Binding &s) { s.equal.push_back({want, found, s.locals}); }

  bool buffer(Sym want, const Expr *found, Binding &s) {
    auto [it, fresh] = s.names.try_emplace(want, found);
    if (!fresh && equal(it->second, found)) return true;
    if (!fresh) return no(s, "{} would be {} and {}", b_.text(want), print(b_, it->second), print(b_, found));
    auto *n = as<Name>(found);
    bool input = !n || read_only_.count(n->name);
    if (results_.count(want) == input) return no(s, "{} would be {}", b_.text(want), print(b_, found));
    const Type *t = type(found), *w = nullptr;
    for (const Def &d : p_.function->results)
      if (d.name == want) w = d.type;
    if (const Param *x = param_of(p_, want)) w = x->def.type;
    if (!t || !w || t->elem != w->elem || t->rank() != w->rank())
      return no(s, "{}: expected {}, found {}", b_.text(want), w ? print(b_, w) : "a buffer",
                t ? print(b_, t) : "none");
    s.depth++;
    return true;
  }

  bool expr(const Expr *want, const Expr *found, Binding s, const Next &next) {
    if (++steps_ > kMostSteps) return no(s, "too many ways to match");
    auto differ = [&] { return no(s, "expected {}, found {}", print(b_, want), print(b_, found)); };
    if (auto *n = as<Name>(want)) {
      const Param *param = param_of(p_, n->name);
      if (param && !param->def.type->tensor) return bind_scalar(b_, *param, found, s, why_) && next(std::move(s));
      auto it = s.locals ? s.locals->find(n->name) : Substitution::const_iterator();
      if (s.locals && it != s.locals->end()) return equal(it->second, found) ? next(std::move(s)) : differ();
      if (!sizes_.count(n->name) || reads_memory(found)) return differ();
      same(want, found, s);
      return next(std::move(s));
    }
    if (want->kind != found->kind) return differ();
    switch (want->kind) {
      case Kind::Int: case Kind::Float: case Kind::Bool: case Kind::Str:
        if (!equal(want, found)) return differ();
        s.depth++;
        return next(std::move(s));
      case Kind::Load: {
        auto &x = to<Load>(want), &y = to<Load>(found);
        if (x.index.size() != y.index.size() || x.global) return differ();
        const Expr *place = y.global ? static_cast<const Expr *>(b_.global(y.buffer)) : b_.name(y.buffer);
        if (!buffer(x.buffer, place, s)) return false;
        return all(x.index, y.index, 0, std::move(s), true, next);
      }
      case Kind::Unary: {
        auto &x = to<Unary>(want), &y = to<Unary>(found);
        return x.op == y.op ? expr(x.a, y.a, std::move(s), next) : differ();
      }
      case Kind::Binary: {
        auto &x = to<Binary>(want), &y = to<Binary>(found);
        if (x.op != y.op) return differ();
        s.depth++;
        constexpr Op kEither[] = {Op::Add, Op::Mul, Op::And, Op::Or, Op::Eq, Op::Ne};
        bool either = std::find(std::begin(kEither), std::end(kEither), x.op) != std::end(kEither);
        return pair(x.a, x.b, y.a, y.b, either, std::move(s), next);
      }
      case Kind::Call: {
        auto &x = to<Call>(want), &y = to<Call>(found);
        if (x.callee != y.callee || x.global != y.global || x.args.size() != y.args.size()) return differ();
        s.depth++;
        if (!iters(x.iters, y.iters, s)) return false;
        std::string_view name = b_.text(x.callee);
        if (!x.global && x.iters.empty() && x.args.size() == 2 && (name == "max" || name == "min"))
          return pair(x.args[0], x.args[1], y.args[0], y.args[1], true, std::move(s), next);
        return all(x.args, y.args, 0, std::move(s), false, next);
      }
      default: return differ();
    }
  }

  bool pair(const Expr *a, const Expr *c, const Expr *x, const Expr *y, bool either, Binding s, const Next &next) {
    auto second = [&](const Expr *want, const Expr *found) {
      return [this, want, found, &next](Binding t) { return expr(want, found, std::move(t), next); };
    };
    if (expr(a, x, s, second(c, y))) return true;
    return either && expr(a, y, std::move(s), second(c, x));
  }

  // One by one; subscripts are compared as index expressions once all is known.
  bool all(Exprs want, Exprs found, size_t i, Binding s, bool index, const Next &next) {
    if (i == want.size()) return next(std::move(s));
    auto rest = [&](Binding t) { return all(want, found, i + 1, std::move(t), index, next); };
    if (!index || reads_memory(want[i]) || reads_memory(found[i])) return expr(want[i], found[i], std::move(s), rest);
    same(want[i], found[i], s);
    return rest(std::move(s));
  }

  Build &b_;
  const Module &m_;
  const LibraryPattern &p_;
  const Func &k_;
  Reasons &why_;
  Bounds known_;
  std::unordered_map<Sym, const Type *> types_;
  std::unordered_set<Sym> results_, read_only_, sizes_;
  size_t steps_ = 0;
};

}  // namespace

std::optional<Found> match_kernel(Build &b, const Module &m, const LibraryPattern &p, const Func &kernel,
                                  Reasons &why) {
  return Kernels(b, m, p, kernel, why).run();
}

}  // namespace mlc
