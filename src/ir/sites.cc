#include "ir/sites.h"

#include "ir/edit.h"

namespace mlc {

namespace {

size_t size_of(const Stmt *s) {
  size_t n = 0;
  each_stmt(s, [&](const Stmt *) { n++; });
  return n;
}

// Calls f on every list of statements of a function: inits, body, the bodies of its parts.
template <class F> void each_list(Build &b, Func &g, F &&f) {
  g.inits = f(g.inits), g.body = f(g.body);
  g.parts = edit_all(b, g.parts, [&](Part &p) { p.body = f(p.body); });
}

template <class F> Module with_funcs(Build &b, const Module &m, F &&f) {
  Module out = m;
  std::vector<const Item *> items;
  for (const Item *i : m.items) {
    auto *g = as<Func>(i);
    bool keep = true;
    const Item *made = g ? edited(b, *g, [&](Func &n) { keep = f(n); }) : i;
    if (keep) items.push_back(made);
  }
  out.set(std::move(items));
  return out;
}

}  // namespace

Module edit_stmts(Build &b, const Module &m, const StmtEdit &f) {
  size_t number = 0;
  std::function<Stmts(Stmts)> list = [&](Stmts l) {
    std::vector<const Stmt *> out;
    bool same = true;
    for (const Stmt *s : l) {
      size_t n = number++, before = out.size();
      if (f(n, s, out)) number = n + size_of(s);
      else out.push_back(with_bodies(b, s, list));
      same &= out.size() == before + 1 && out.back() == s;
    }
    return same ? l : b.list(out);
  };
  return with_funcs(b, m, [&](Func &g) { return each_list(b, g, list), true; });
}

size_t count_stmts(const Module &m) {
  size_t n = 0;
  auto list = [&](Stmts l) { each_stmt(l, [&](const Stmt *) { n++; }); };
  for (const Item *i : m.items)
    if (auto *f = as<Func>(i)) {
      list(f->inits), list(f->body);
      for (const Part &p : f->parts) list(p.body);
    }
  return n;
}

Module edit_exprs(Build &b, const Module &m, const ExprEdit &f) {
  size_t number = 0;
  ExprMap each = [&](const Expr *e) { return f(number++, e); };
  return with_funcs(b, m, [&](Func &g) {
    each_list(b, g, [&](Stmts l) { return rewrite_exprs(b, l, each); });
    return true;
  });
}

Module edit_funcs(Build &b, const Module &m, const std::function<bool(size_t, Func &)> &edit) {
  size_t number = 0;
  return with_funcs(b, m, [&](Func &g) { return edit(number++, g); });
}

}  // namespace mlc
