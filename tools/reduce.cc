#include "reduce.h"

#include <algorithm>
#include <set>

#include "check/check.h"
#include "ir/sites.h"
#include "text/text.h"

namespace mlc {

namespace {

class Reducer {
 public:
  Reducer(Build &b, Module m, bool valid, const Interesting &test, int64_t tries)
      : b_(b), m_(std::move(m)), valid_(valid), test_(test), left_(tries) {}

  Module run() {
    for (bool again = true; again && left_ > 0;) {
      again = false;
      again |= items();
      again |= plain();
      again |= statements();
      again |= unwrapped();
      again |= signatures();
      again |= numbers();
      again |= expressions();
    }
    return m_;
  }

 private:
  // Takes the candidate if it is smaller, valid, and of interest.
  bool take(Module c) {
    if (left_ <= 0 || c.items.empty()) return false;
    std::string text = print(b_, c);
    if (text == print(b_, m_) || !seen_.insert(text).second) return false;
    if (valid_) {
      Diag diag("reduce");
      if (!check(b_, c, diag)) return false;
    }
    left_--;
    if (!test_(text)) return false;
    m_ = std::move(c);
    return true;
  }

  // Drops chunk after chunk of `count` things, of half of them down to one.
  template <class Drop> bool chunks(const std::function<size_t()> &count, const Drop &drop) {
    bool any = false;
    for (size_t size = std::max<size_t>(count() / 2, 1);; size /= 2) {
      for (size_t at = count(); at > 0 && left_ > 0;) {  // from the end: what is used stands before its use
        at = std::min(at, count());
        if (!at) break;
        size_t from = at > size ? at - size : 0;
        any |= take(drop(from, at));
        at = from;
      }
      if (size <= 1) return any;
    }
  }

  bool items() {
    return chunks([&] { return m_.items.size(); }, [&](size_t from, size_t to) {
      Module c = m_;
      std::vector<const Item *> kept(m_.items.begin(), m_.items.begin() + long(from));
      kept.insert(kept.end(), m_.items.begin() + long(to), m_.items.end());
      c.set(std::move(kept));
      return c;
    });
  }

  bool statements() {
    return chunks([&] { return count_stmts(m_); }, [&](size_t from, size_t to) {
      return edit_stmts(b_, m_, [&](size_t n, const Stmt *, std::vector<const Stmt *> &) { return n >= from && n < to; });
    });
  }

  // A statement without what it can do without.
  const Stmt *bare(const Stmt *s) {
    auto cut = [&](auto n) {
      if constexpr (requires { n.from; }) n.from = {};
      if constexpr (requires { n.notes; }) n.notes = {};
      n.comment = {};
      return b_.make(n);
    };
    switch (s->kind) {
      case Kind::Let: return cut(to<Let>(s));
      case Kind::Store: return cut(to<Store>(s));
      case Kind::Compute: return cut(to<Compute>(s));
      case Kind::CallStmt: return cut(to<CallStmt>(s));
      case Kind::For: return cut(to<For>(s));
      case Kind::Block: return cut(to<Block>(s));
      default: return s;
    }
  }
  // Annotations, comments, kinds of loops, guards.
  bool plain() {
    bool any = false;
    Module c = edit_funcs(b_, m_, [&](size_t, Func &f) { return f.notes = {}, f.comment = {}, true; });
    any |= take(c);
    auto each = [&](size_t k, auto change) {
      return edit_stmts(b_, m_, [&](size_t n, const Stmt *s, std::vector<const Stmt *> &out) {
        const Stmt *x = n == k ? change(s) : s;
        return x != s && (out.push_back(x), true);
      });
    };
    auto serial = [&](const Stmt *s) -> const Stmt * {
      auto *f = as<For>(s);
      if (!f || f->loop == LoopKind::Serial) return s;
      For n = *f;
      n.loop = LoopKind::Serial, n.tag = {};
      return b_.make(n);
    };
    auto open = [&](const Stmt *s) -> const Stmt * {
      auto *x = as<Block>(s);
      if (!x || !x->guard) return s;
      Block n = *x;
      n.guard = nullptr;
      return b_.make(n);
    };
    auto started = [&](const Stmt *s) -> const Stmt * {
      auto *x = as<Block>(s);
      if (!x || x->inits.empty()) return s;
      Block n = *x;
      n.inits = {};
      return b_.make(n);
    };
    auto one = [&](const Stmt *s) -> const Stmt * {
      auto *x = as<If>(s);
      if (!x || !x->has_else) return s;
      If n = *x;
      n.has_else = false, n.other = {};
      return b_.make(n);
    };
    for (size_t k = 0; k < count_stmts(m_) && left_ > 0; k++) {
      any |= take(each(k, [&](const Stmt *s) { return bare(s); }));
      any |= take(each(k, serial));
      any |= take(each(k, open));
      any |= take(each(k, started));
      any |= take(each(k, one));
    }
    return any;
  }

  // What stands inside, in place of a loop (its first turn), a block (its axes as they are bound), an `if`.
  bool unwrapped() {
    bool any = false;
    for (size_t k = 0; k < count_stmts(m_) && left_ > 0;) {
      bool taken = take(edit_stmts(b_, m_, [&](size_t n, const Stmt *s, std::vector<const Stmt *> &out) {
        if (n != k) return false;
        Stmts inner;
        if (auto *f = as<For>(s)) inner = substitute(b_, f->body, {{f->iter.name, b_.integer(0)}});
        if (auto *i = as<If>(s)) inner = i->body;
        if (auto *w = as<While>(s)) inner = w->body;
        if (auto *d = as<Dataflow>(s)) inner = d->body;
        if (auto *x = as<Block>(s)) {
          Substitution axes;
          for (const Axis &a : x->axes) axes[a.name] = a.binding;
          inner = substitute(b_, x->body, axes);
        }
        out.insert(out.end(), inner.begin(), inner.end());
        return !inner.empty();
      }));
      any |= taken;
      if (!taken) k++;
    }
    return any;
  }

  template <class T> std::span<const T> without(std::span<const T> l, size_t k) {
    std::vector<T> out(l.begin(), l.end());
    out.erase(out.begin() + long(k));
    return b_.list(out);
  }
  // Parameters, results and dimensions that nobody misses.
  bool signatures() {
    bool any = false;
    size_t funcs = std::count_if(m_.items.begin(), m_.items.end(), [](const Item *i) { return as<Func>(i); });
    for (size_t k = 0; k < funcs; k++)
      for (int part = 0; part < 3; part++)
        for (size_t i = 64; i-- > 0;)
          any |= take(edit_funcs(b_, m_, [&](size_t n, Func &f) {
            if (n != k) return true;
            if (part == 0 && i < f.params.size()) f.params = without(f.params, i);
            if (part == 1 && i < f.results.size()) f.results = without(f.results, i);
            if (part == 2 && i < f.dims.size()) f.dims = without(f.dims, i);
            return true;
          }));
    return any;
  }

  // Every place of a number at once, types of parameters too: 512 -> 1, 2, 3, 4, 256.
  bool numbers() {
    std::set<int64_t> values;
    auto note = [&](const Expr *e) {
      if (int64_t v; int_value(e, &v) && v > 1) values.insert(v);
      return true;
    };
    auto note_type = [&](const Type *t) {
      for (const Expr *d : t->dims) each_expr(d, note);
    };
    for (const Item *i : m_.items)
      if (auto *f = as<Func>(i)) {
        each_expr_in(f->body, note);
        for (const Param &p : f->params) note_type(p.def.type);
        for (const Def &d : f->results) note_type(d.type);
      }
    bool any = false;
    for (auto v = values.rbegin(); v != values.rend(); ++v)
      for (int64_t to : {int64_t(1), int64_t(2), int64_t(3), int64_t(4), *v / 2}) {
        if (to >= *v || left_ <= 0) continue;
        ExprMap swap = [&](const Expr *e) { return is_int(e, *v) ? b_.integer(to) : e; };
        bool taken = take(edit_funcs(b_, m_, [&](size_t, Func &f) {
          std::vector<Param> params(f.params.begin(), f.params.end());
          std::vector<Def> results(f.results.begin(), f.results.end());
          for (Param &p : params) p.def.type = rewrite(b_, p.def.type, swap);
          for (Def &d : results) d.type = rewrite(b_, d.type, swap);
          f.params = b_.list(params), f.results = b_.list(results);
          f.body = rewrite_exprs(b_, f.body, swap);
          return true;
        }));
        any |= taken;
        if (taken) break;
      }
    return any;
  }

  // An operand in place of an expression, or a literal.
  bool expressions() {
    bool any = false;
    size_t count = 1;
    for (size_t k = 0; k < count && left_ > 0;) {
      bool taken = false;
      for (size_t choice = 0; choice < 8 && !taken; choice++) {
        size_t total = 0;
        Module c = edit_exprs(b_, m_, [&](size_t n, const Expr *e) {
          total = n + 1;
          return n == k ? instead(e, choice) : e;
        });
        count = total;
        taken = take(std::move(c));
      }
      any |= taken;
      if (!taken) k++;
    }
    return any;
  }
  const Expr *instead(const Expr *e, size_t choice) {
    if (e->kind == Kind::Int || e->kind == Kind::Float || e->kind == Kind::Bool) {
      if (choice == 0 && !is_int(e, 0) && e->kind == Kind::Int) return b_.integer(0);
      if (choice == 1 && e->kind == Kind::Float && to<Float>(e).value != 1.0) return b_.number(1.0);
      return e;
    }
    std::vector<const Expr *> operands;
    if (e->kind == Kind::Unary || e->kind == Kind::Binary || e->kind == Kind::Call)
      each_child(e, [&](const Expr *x) { operands.push_back(x); });
    const Expr *literals[] = {b_.integer(0), b_.number(1.0), b_.boolean(true)};
    if (choice < operands.size()) return operands[choice];
    choice -= operands.size();
    return choice < 3 && e->kind != Kind::Global ? literals[choice] : e;
  }

  Build &b_;
  Module m_;
  bool valid_;
  const Interesting &test_;
  int64_t left_;
  std::set<std::string> seen_;
};

}  // namespace

Module reduce_module(Build &b, Module m, bool valid, const Interesting &test, int64_t tries) {
  return Reducer(b, std::move(m), valid, test, tries).run();
}

std::string reduce_lines(const std::string &text, const Interesting &test, int64_t tries) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at);
    end = end == std::string::npos ? text.size() : end + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  auto joined = [](const std::vector<std::string> &l) {
    std::string s;
    for (const std::string &x : l) s += x;
    return s;
  };
  for (bool again = true; again;) {
    again = false;
    for (size_t size = std::max<size_t>(lines.size() / 2, 1);; size /= 2) {
      for (size_t at = lines.size(); at > 0 && tries > 0;) {
        size_t from = at > size ? at - size : 0;
        std::vector<std::string> fewer(lines.begin(), lines.begin() + long(from));
        fewer.insert(fewer.end(), lines.begin() + long(at), lines.end());
        tries--;
        if (!fewer.empty() && test(joined(fewer))) lines = std::move(fewer), again = true;
        at = std::min(from, lines.size());
      }
      if (size <= 1) break;
    }
    again &= tries > 0;
  }
  return joined(lines);
}

}  // namespace mlc
