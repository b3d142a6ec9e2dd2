#include "ir/reach.h"

#include "ir/walk.h"

namespace mlc {

namespace {

class Reach {
 public:
  Reach(const Module &m, std::vector<const Item *> roots) : m_(m), todo_(std::move(roots)) {
    live.insert(todo_.begin(), todo_.end());
    while (!todo_.empty()) {
      const Item *i = todo_.back();
      todo_.pop_back();
      item(i);
    }
  }
  Items live;

 private:
  void use(Sym s) {
    const Item *i = m_.find(s);
    if (i && live.insert(i).second) todo_.push_back(i);
  }
  bool look(const Expr *e) {
    if (auto g = as<Global>(e)) use(g->name);
    if (auto l = as<Load>(e); l && l->global) use(l->buffer);
    if (auto c = as<Call>(e); c && c->global) use(c->callee);
    return true;
  }
  void exprs(const Expr *e) {
    each_expr(e, [this](const Expr *x) { return look(x); });
  }
  void attrs(Attrs l) {
    for (const Attr &a : l) exprs(a.value);
  }
  void body(Stmts l) {
    each_expr_in(l, [this](const Expr *x) { return look(x); });
    each_stmt(l, [this](const Stmt *s) {
      if (auto x = as<For>(s)) attrs(x->notes.attrs);
      if (auto x = as<Block>(s)) attrs(x->notes.attrs);
    });
  }
  void item(const Item *i) {
    if (auto c = as<Const>(i)) {
      if (c->value) exprs(c->value);
      attrs(c->attrs);
    }
    if (auto t = as<Target>(i))
      for (const Feature &x : t->features) use(x.name);
    if (auto d = as<Device>(i)) use(d->target);
    if (auto s = as<Schedule>(i)) {
      use(s->name), use(s->target);
      for (const Step &x : s->steps) exprs(x.call);
    }
    auto f = as<Func>(i);
    if (!f) return;
    use(f->target), attrs(f->notes.attrs), body(f->inits), body(f->body);
    for (const Part &p : f->parts) body(p.body);
  }

  const Module &m_;
  std::vector<const Item *> todo_;
};

}  // namespace

Items reachable(const Module &m, std::vector<const Item *> roots) { return Reach(m, std::move(roots)).live; }

std::vector<const Item *> keep_only(Module &m, const Items &live, bool idle_files) {
  std::unordered_set<std::string_view> files, needed;
  std::vector<const Item *> kept, gone;
  for (const Item *i : m.items) {
    auto c = as<Const>(i);
    if (c && !c->value) (live.count(i) ? needed : files).insert(c->path);
  }
  for (const Item *i : m.items) {
    auto file = as<File>(i);
    bool stays = file ? needed.count(file->path) || (idle_files && !files.count(file->path)) : live.count(i) > 0;
    if (stays) kept.push_back(i);
    else if (name_of(i)) gone.push_back(i);
  }
  if (kept.size() < m.items.size()) m.set(std::move(kept));
  return gone;
}

}  // namespace mlc
