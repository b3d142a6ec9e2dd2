#include "graph/inline.h"

#include <algorithm>

#include "graph/values.h"
#include "ir/typing.h"

namespace mlc {

namespace {

// How an expression computes: does it fold, does it do more than move data.
struct Work {
  bool reduces = false, computes = false;
};
Work work_of(const Build &b, const Expr *e) {
  Work w;
  each_expr(e, [&](const Expr *x) {
    if (auto *c = as<Call>(x)) {
      std::string_view name = b.text(c->callee);
      w.reduces |= !c->iters.empty();
      w.computes |= c->global || !(name == "where" || is_cast(name));
    } else if (x->kind == Kind::Load) {
      return false;  // index arithmetic is no work
    } else if (auto *v = as<Binary>(x)) {
      bool condition = v->op >= Op::Or && v->op <= Op::Ge;
      w.computes |= !condition;
      return !condition;  // conditions are index arithmetic too, mostly: guards of padding
    } else {
      w.computes |= x->kind == Kind::Unary;
    }
    return true;
  });
  return w;
}

// Where a compute reads a buffer.
struct Reads {
  std::vector<const Load *> loads;
  bool under_reduction = false;
};
void find_reads(const Expr *e, Sym buffer, bool inside, Reads &out) {
  if (auto *l = as<Load>(e); l && !l->global && l->buffer == buffer) {
    out.loads.push_back(l);
    out.under_reduction |= inside;
  }
  if (auto *c = as<Call>(e); c && !c->iters.empty()) inside = true;
  each_child(e, [&](const Expr *x) { find_reads(x, buffer, inside, out); });
}

// Each element of the producer is read at one point of the consumer: the indices are different axes of it, and what is
// left of its axes has extent 1.
bool read_once(const Load &l, Iters axes) {
  std::vector<Sym> used;
  for (const Expr *i : l.index) {
    if (is_int(i, 0)) continue;
    auto *n = as<Name>(i);
    bool axis = n && std::any_of(axes.begin(), axes.end(), [&](const Iter &a) { return a.name == n->name; });
    if (!axis || std::find(used.begin(), used.end(), n->name) != used.end()) return false;
    used.push_back(n->name);
  }
  for (const Iter &a : axes)
    if (std::find(used.begin(), used.end(), a.name) == used.end() && !is_int(a.extent, 1)) return false;
  return true;
}

bool writes(const Stmt *s, const std::unordered_set<Sym> &buffers) {
  bool found = false;
  each_stmt(s, [&](const Stmt *t) {
    if (auto *c = as<Compute>(t))
      for (const Result &r : c->results) found |= buffers.count(r.name);
    else if (auto *w = as<Store>(t)) found |= buffers.count(w->target->buffer);
    else if (t->kind == Kind::CallStmt) found = true;
  });
  return found;
}

bool mentioned(const Stmt *s, Sym buffer) {
  bool found = false;
  each_stmt(s, [&](const Stmt *t) {
    each_expr_of(t, [&](const Expr *e) {
      each_expr(e, [&](const Expr *x) {
        if (auto *l = as<Load>(x)) found |= !l->global && l->buffer == buffer;
        if (auto *n = as<Name>(x)) found |= n->name == buffer;
        return !found;
      });
    });
    if (auto *c = as<Compute>(t))
      for (const Result &r : c->results) found |= r.name == buffer;
    if (auto *a = as<Alloc>(t)) found |= a->base == buffer;
  });
  return found;
}

// Reductions inside the moved expression get iterators of their own.
const Expr *rename_iterators(Build &b, const Expr *e, Fresh &fresh) {
  return rewrite(b, e, [&](const Expr *x) -> const Expr * {
    auto *c = as<Call>(x);
    if (!c || c->iters.empty()) return x;
    Substitution names;
    std::vector<Iter> iters;
    for (Iter i : c->iters) {
      if (fresh.is_taken(i.name)) {
        Sym s = fresh.make(b.text(i.name));
        names[i.name] = b.name(s), i.name = s;
      } else {
        fresh.take(i.name);
      }
      iters.push_back(i);
    }
    return b.call(c->callee, substitute(b, c->args, names), c->at, c->global, b.list(iters));
  });
}

const Compute *merged(Build &b, const Compute &producer, const Compute &consumer) {
  Fresh fresh(b);
  std::unordered_set<Sym> names;
  collect_names(consumer.value, names);
  each_expr(consumer.value, [&](const Expr *e) {
    if (auto *c = as<Call>(e))
      for (const Iter &i : c->iters) names.insert(i.name);
    return true;
  });
  for (const Result &r : consumer.results)
    for (const Iter &i : r.iters) names.insert(i.name);
  for (Sym s : names) fresh.take(s);
  const Result &from = producer.results[0];
  const Expr *value = rewrite(b, consumer.value, [&](const Expr *e) -> const Expr * {
    auto *l = as<Load>(e);
    if (!l || l->global || l->buffer != from.name) return e;
    Substitution at;
    for (size_t i = 0; i < l->index.size(); i++) at[from.iters[i].name] = l->index[i];
    return substitute(b, rename_iterators(b, producer.value, fresh), at);
  });
  Compute c = consumer;
  c.value = value, c.from = merge(b, producer.from, consumer.from);
  return b.make(c);
}

}  // namespace

Stmts inline_computes(Build &b, Stmts body) {
  std::vector<const Stmt *> list(body.begin(), body.end());
  for (size_t i = 0; i < list.size(); i++) {
    auto *p = as<Compute>(list[i]);
    if (!p || p->results.size() != 1 || !p->comment.empty()) continue;
    Sym t = p->results[0].name;
    auto is_alloc = [&](const Stmt *s) {
      auto *a = as<Alloc>(s);
      return a && a->def.name == t && !a->base;
    };
    auto alloc = std::find_if(list.begin(), list.begin() + long(i), is_alloc);
    if (alloc == list.begin() + long(i)) continue;

    std::vector<size_t> readers;
    for (size_t j = 0; j < list.size(); j++)
      if (j != i && list[j] != *alloc && mentioned(list[j], t)) readers.push_back(j);
    if (readers.size() != 1 || readers[0] < i) continue;
    size_t j = readers[0];
    auto *c = as<Compute>(list[j]);
    if (!c) continue;
    Reads reads;
    find_reads(c->value, t, false, reads);
    Reads itself;
    find_reads(p->value, t, false, itself);
    if (reads.loads.empty() || !itself.loads.empty()) continue;

    Work w = work_of(b, p->value);
    bool once = reads.loads.size() == 1 && !reads.under_reduction && read_once(*reads.loads[0], c->results[0].iters);
    bool moves = !w.computes && !w.reduces && reads.loads.size() <= 2;
    if (!once && !moves) continue;

    std::unordered_set<Sym> inputs;
    collect_names(p->value, inputs);
    bool overwritten = false;
    for (size_t k = i + 1; k < j; k++) overwritten |= writes(list[k], inputs);
    if (overwritten) continue;

    list[j] = merged(b, *p, *c);
    size_t a = size_t(alloc - list.begin());
    list.erase(list.begin() + long(i));
    list.erase(list.begin() + long(a));
    i -= 2;  // the alloc and the producer are gone; size_t wraps to the start with i++
  }
  return list.size() == body.size() ? body : b.list(list);
}

}  // namespace mlc
