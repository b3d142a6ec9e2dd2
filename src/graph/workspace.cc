#include "graph/workspace.h"

#include <map>

#include "graph/arena.h"

namespace mlc {

namespace {

// The first and last statement of a body that touch a buffer (or an alias of it).
void touch(const Stmt *s, size_t step, const std::unordered_map<Sym, size_t> &index, std::vector<Life> &lives) {
  auto seen = [&](Sym name) {
    auto it = index.find(name);
    if (it == index.end()) return;
    Life &life = lives[it->second];
    life.first = std::min(life.first, step), life.last = std::max(life.last, step);
  };
  each_stmt(s, [&](const Stmt *t) {
    each_expr_of(t, [&](const Expr *e) {
      each_expr(e, [&](const Expr *x) {
        if (auto *n = as<Name>(x)) seen(n->name);
        if (auto *l = as<Load>(x); l && !l->global) seen(l->buffer);
        return true;
      });
    });
    if (auto *c = as<Compute>(t))
      for (const Result &r : c->results) seen(r.name);
    if (auto *a = as<Alloc>(t); a && a->base) seen(a->base);
  });
}

bool own_memory(const Alloc &a, const Build &b) {
  return !a.base && (!a.def.type->scope || b.text(a.def.type->scope) == "global");
}

}  // namespace

static const Func *with_scratch(Build &b, Func f, Sym name, const Expr *bytes) {
  std::vector<Param> params(f.params.begin(), f.params.end());
  Attr align = {b.sym("align"), kNowhere, b.integer(kArenaAlign)};
  const Type *type = b.type({DType::U8, true, {}, {}, -1, b.list({bytes}), b.one(align)});
  params.push_back({Mode::Scratch, {name, kNowhere, type}});
  f.params = b.list(params);
  return b.make(f);
}

static const Func *extern_with_workspace(Build &b, const Func &f) {
  const Expr *bytes = attr(b, f.notes.attrs, "workspace");
  bool has = std::any_of(f.params.begin(), f.params.end(), [](const Param &p) { return p.mode == Mode::Scratch; });
  return bytes && !has ? with_scratch(b, f, b.sym("workspace"), bytes) : nullptr;
}

const Func *with_workspace(Build &b, const Func &kernel) {
  if (kernel.func == FuncKind::Extern) return extern_with_workspace(b, kernel);
  std::vector<Life> lives;
  std::unordered_map<Sym, size_t> index;
  for (const Stmt *s : kernel.body) {
    auto *a = as<Alloc>(s);
    if (!a || !own_memory(*a, b)) continue;
    index[a->def.name] = lives.size();
    lives.push_back({bytes_of(b, a->def.type), SIZE_MAX, 0});
  }
  if (lives.empty()) return nullptr;
  size_t step = 0;
  for (const Stmt *s : kernel.body) {
    auto *a = as<Alloc>(s);
    if (!a || !index.count(a->def.name)) touch(s, step, index, lives);
    if (auto *v = as<View>(s); v && index.count(v->source->buffer)) lives[index[v->source->buffer]].last = kernel.body.size();
    step++;
  }
  for (Life &l : lives)
    if (l.first == SIZE_MAX) l.first = 0;
  Placement p = place(b, lives);

  Fresh fresh(b);
  take_names(&kernel, fresh);
  Sym ws = fresh.make("ws");
  Func f = kernel;
  std::vector<const Stmt *> body;
  for (const Stmt *s : kernel.body) {
    auto *a = as<Alloc>(s);
    if (!a || !index.count(a->def.name) || !own_memory(*a, b)) {
      body.push_back(s);
      continue;
    }
    Alloc placed = *a;
    placed.base = ws, placed.offset = p.offsets[index[a->def.name]].e;
    body.push_back(b.make(placed));
  }
  f.body = b.list(body);
  return with_scratch(b, f, ws, p.total.e);
}

bool can_be_in_place(const Func &kernel, size_t param) {
  if (kernel.results.size() != 1 || kernel.params[param].mode != Mode::In) return false;
  const Compute *only = nullptr;
  for (const Stmt *s : kernel.body) {
    if (s->kind == Kind::Assume) continue;
    if (only || s->kind != Kind::Compute) return false;
    only = as<Compute>(s);
  }
  if (!only || only->results.size() != 1) return false;
  Iters axes = only->results[0].iters;
  Sym buffer = kernel.params[param].def.name;
  bool ok = true;
  each_expr(only->value, [&](const Expr *e) {
    if (auto *n = as<Name>(e)) ok = ok && n->name != buffer;
    auto *l = as<Load>(e);
    if (!l || l->global || l->buffer != buffer) return ok;
    ok = ok && l->index.size() == axes.size();
    for (size_t i = 0; ok && i < axes.size(); i++) {
      auto *n = as<Name>(l->index[i]);
      ok = n && n->name == axes[i].name;
    }
    return ok;
  });
  // Inside a reduction the parameter would be read again after its element was written only if the reduction's axes hid
  // the compute's: names are unique, so they do not.
  return ok;
}

const Func *with_inplace(Build &b, const Func &kernel, size_t param) {
  auto name = [&](Sym s) -> const Expr * { return b.string(b.text(s)); };
  const Expr *pair = b.make_list(b.list({name(kernel.results[0].name), name(kernel.params[param].def.name)}));
  Func f = kernel;
  std::vector<Attr> attrs(kernel.notes.attrs.begin(), kernel.notes.attrs.end());
  attrs.push_back({b.sym("inplace"), kNowhere, b.make_list(b.list({pair}))});
  f.notes.attrs = b.list(attrs);
  return b.make(f);
}

}  // namespace mlc
