#include "sched/tree.h"

#include <algorithm>

namespace mlc {

static bool holds_block(Stmts body) {
  bool found = false;
  each_stmt(body, [&](const Stmt *s) { found |= s->kind == Kind::Block; });
  return found;
}

Tree::Tree(Build &b, Stmts body) : b_(b) {
  nodes_.emplace_back();
  read(root(), 0, body);
}

void Tree::read(Place *up, size_t part, Stmts body) {
  for (const Stmt *s : body)
    insert(up, part, up->kids[part].size(), make(s));
}

Place *Tree::make(const Stmt *s) {
  Place *n = &nodes_.emplace_back();
  n->stmt = s;
  if (auto *k = as<Block>(s)) n->nest = holds_block(k->body);
  if (auto *f = as<For>(s)) read(n, 0, f->body);
  else if (auto *i = as<If>(s)) read(n, 0, i->body), read(n, 1, i->other);
  else if (auto *w = as<While>(s)) read(n, 0, w->body);
  else if (n->nest) read(n, 0, to<Block>(s).body);
  return n;
}

Place *Tree::make_loop(const Iter &iter, LoopKind kind) { return make(b_.make(For{{}, kind, iter, {}, {}, {}})); }

const Stmt *Tree::stmt(const Place *n) {
  if (auto *f = as<For>(n->stmt)) return edited(b_, *f, [&](For &x) { x.body = body(n); });
  if (auto *i = as<If>(n->stmt)) return edited(b_, *i, [&](If &x) { x.body = body(n), x.other = body(n, 1); });
  if (auto *w = as<While>(n->stmt)) return edited(b_, *w, [&](While &x) { x.body = body(n); });
  if (n->nest) return edited(b_, to<Block>(n->stmt), [&](Block &x) { x.body = body(n); });
  return n->stmt;
}

Stmts Tree::body(const Place *n, size_t part) {
  std::vector<const Stmt *> out;
  for (const Place *k : n->kids[part])
    out.push_back(stmt(k));
  return b_.list(out);
}
Stmts Tree::body() { return body(root()); }

size_t Tree::place(const Place *n) const {
  auto &l = n->up->kids[n->part];
  return std::find(l.begin(), l.end(), n) - l.begin();
}

void Tree::insert(Place *up, size_t part, size_t at, Place *n) {
  n->up = up, n->part = part;
  up->kids[part].insert(up->kids[part].begin() + at, n);
}

void Tree::remove(Place *n) {
  siblings(n).erase(siblings(n).begin() + place(n));
  n->up = nullptr;
}

void Tree::replace(Place *n, Place *by) {
  siblings(n)[place(n)] = by;
  by->up = n->up, by->part = n->part;
  n->up = nullptr;
}

void Tree::move_kids(Place *from, Place *to) {
  for (Place *k : from->kids[0])
    k->up = to, k->part = 0;
  to->kids[0].insert(to->kids[0].end(), from->kids[0].begin(), from->kids[0].end());
  from->kids[0].clear();
}

void Tree::prune(Place *n) {
  while (n && n->up && n->holds() && n->kids[0].empty() && n->kids[1].empty()) {
    Place *up = n->up;
    remove(n);
    n = up;
  }
}

bool Tree::contains(const Place *outer, const Place *n) const { return n == outer || is_below(n, outer); }

void each_place(Place *n, const std::function<void(Place *)> &f) {
  f(n);
  for (auto &kids : n->kids)
    for (size_t i = 0; i < kids.size(); i++)
      each_place(kids[i], f);
}

std::vector<Place *> loops_around(Place *n) {
  std::vector<Place *> out;
  for (Place *u = n->up; u && u->stmt && !u->block(); u = u->up)
    if (u->loop()) out.push_back(u);
  std::reverse(out.begin(), out.end());
  return out;
}

bool is_below(const Place *n, const Place *outer) {
  for (n = n->up; n; n = n->up)
    if (n == outer) return true;
  return false;
}

}  // namespace mlc
