#include "mutants.h"

#include <fmt/core.h>

#include <cmath>
#include <functional>
#include <optional>

#include "ir/edit.h"
#include "ir/walk.h"
#include "text/text.h"

namespace mlc {

namespace {

class Maker {
 public:
  Maker(Build &b, const Func &f) : b_(b), f_(f), tensors_(tensors_of(f)) {}

  std::vector<Mutant> run() {
    std::unordered_set<const Stmt *> idle;  // in loops without turns
    each_stmt(f_.body, [&](const Stmt *s) {
      if (auto *l = as<For>(s); l && is_int(l->iter.extent, 0))
        each_stmt(l->body, [&](const Stmt *in) { idle.insert(in); });
      if (!idle.count(s)) of_statement(s);
    });
    return std::move(out_);
  }

 private:
  void add(MutantKind kind, std::string what, const Stmt *old, std::vector<const Stmt *> by, const For *loop = nullptr) {
    out_.push_back({kind, std::move(what), replaced(old, by), loop});
  }
  // f with one statement replaced by others.
  const Func *replaced(const Stmt *old, const std::vector<const Stmt *> &by) {
    std::function<Stmts(Stmts)> list = [&](Stmts l) {
      std::vector<const Stmt *> out;
      bool same = true;
      for (const Stmt *s : l) {
        if (s == old) {
          out.insert(out.end(), by.begin(), by.end()), same = false;
          continue;
        }
        out.push_back(with_bodies(b_, s, list));
        same &= out.back() == s;
      }
      return same ? l : b_.list(out);
    };
    Func n = f_;
    n.body = list(f_.body);
    return b_.make(n);
  }

  // The body with other values in all of its stores: nan, x + 1, !x; nothing where it holds more than stores.
  std::optional<Stmts> wrong(Stmts body) {
    bool stores = true;
    std::function<Stmts(Stmts)> list = [&](Stmts l) {
      std::vector<const Stmt *> out;
      for (const Stmt *s : l) {
        auto *x = as<Store>(s);
        stores &= as<For>(s) || as<If>(s) || as<Block>(s) || (x && !x->atomic && !x->target->global);
        if (!stores) return l;
        if (auto *k = as<Block>(s)) {
          Block n = *k;
          n.name = b_.sym(fmt::format("{}.more", b_.text(k->name)));
          s = b_.make(n);
        }
        if (x) {
          auto t = tensors_.find(x->target->buffer);
          DType e = t != tensors_.end() ? t->second->elem : DType::F4E2M1;
          if (!(stores = e != DType::F4E2M1)) return l;  // which has no nan
          Store n = *x;
          n.value = is_float(e) ? b_.number(NAN, e)
                    : is_int(e) ? static_cast<const Expr *>(b_.binary(Op::Add, x->value, b_.integer(1)))
                                : b_.unary(Op::Not, x->value);
          s = b_.make(n);
        }
        out.push_back(with_bodies(b_, s, list));
      }
      return b_.list(out);
    };
    Stmts made = list(body);
    return stores ? std::optional(made) : std::nullopt;
  }

  const Expr *shifted(const Expr *e, int64_t by) {
    int64_t v;
    if (int_value(e, &v)) return b_.integer(v + by);
    return b_.binary(by > 0 ? Op::Add : Op::Sub, e, b_.integer(1));
  }

  void of_statement(const Stmt *s) {
    if (auto *x = as<Block>(s)) block(*x);
    if (auto *x = as<For>(s)) loop(*x);
    if (auto *x = as<Compute>(s)) compute(*x);
    if (auto *x = as<If>(s); x && !x->has_else)
{
      add(MutantKind::Guard, fmt::format("if {} dropped", print(b_, x->cond)), s, {x->body.begin(), x->body.end()});
      if (auto more = wrong(x->body)) {
        If both = *x;
        both.other = *more, both.has_else = true;
        out_.back().wrong = replaced(s, {b_.make(both)});
      }
    }
    expressions(s);
  }

  void block(const Block &x) {
    if (x.guard) {
      Block n = x;
      n.guard = nullptr;
      add(MutantKind::Guard, fmt::format("guard {} dropped", print(b_, x.guard)), &x, {b_.make(n)});
      n.guard = b_.unary(Op::Not, x.guard);
      if (auto more = wrong(b_.stmts({b_.make(n)}))) out_.back().wrong = replaced(&x, {&x, (*more)[0]});
    }
    if (!x.inits.empty()) {
      Block n = x;
      n.inits = {};
      add(MutantKind::Init, fmt::format("init of {} dropped", b_.text(x.name)), &x, {b_.make(n)});
    }
    for (size_t i = 0; i < x.axes.size(); i++)
      for (int by : {-1, 1}) {
        if (by < 0 && is_int(x.axes[i].domain, 0)) continue;
        std::vector<Axis> axes(x.axes.begin(), x.axes.end());
        axes[i].domain = shifted(axes[i].domain, by);
        Block n = x;
        n.axes = b_.list(axes);
        add(MutantKind::Bound, fmt::format("axis {} in {}", b_.text(axes[i].name), print(b_, axes[i].domain)), &x,
            {b_.make(n)});
        axes[i] = x.axes[i];
        axes[i].binding = shifted(axes[i].binding, by);
        n.axes = b_.list(axes);
        add(MutantKind::Index, fmt::format("axis {} = {}", b_.text(axes[i].name), print(b_, axes[i].binding)), &x,
            {b_.make(n)});
      }
  }

  // Do the turns of the loop depend on each other? A reduce or scan axis goes along it, or plain stores repeat.
  bool dependent(const For &x) const {
    bool found = false;
    each_stmt(x.body, [&](const Stmt *s) {
      if (auto *k = as<Block>(s))
        for (const Axis &a : k->axes) found |= a.kind != AxisKind::Spatial && mentions(a.binding, x.iter.name);
    });
    return found;
  }
  // Has it blocks whose axes, none of them scanned, take all that depends on the loops? Then their order is free.
  bool order_free(const For &x, Sym other) const {
    bool blocks = false, scan = false;
    each_stmt(x.body, [&](const Stmt *s) {
      auto *k = as<Block>(s);
      if (!k || k->axes.empty()) return;
      blocks = true;
      for (const Axis &a : k->axes)
        scan |= a.kind == AxisKind::Scan && (mentions(a.binding, x.iter.name) || mentions(a.binding, other));
    });
    return blocks && !scan;
  }

  void loop(const For &x) {
    for (int by : {-1, 1}) {
      if (by < 0 && is_int(x.iter.extent, 0)) continue;
      For n = x;
      n.iter.extent = shifted(n.iter.extent, by);
      add(MutantKind::Bound, fmt::format("for {} in {}", b_.text(n.iter.name), print(b_, n.iter.extent)), &x,
          {b_.make(n)}, &x);
      const Expr *fewer = by < 0 ? n.iter.extent : x.iter.extent;
      auto more = wrong(x.body);
      if (!more) continue;
      If both{};
      both.cond = b_.binary(Op::Lt, b_.name(x.iter.name), fewer), both.body = x.body, both.other = *more;
      both.has_else = true;
      if (by < 0) n.iter.extent = x.iter.extent;
      n.body = b_.stmts({b_.make(both)});
      out_.back().wrong = replaced(&x, {b_.make(n)});
    }
    if (x.loop == LoopKind::Serial && dependent(x)) {
      For n = x;
      n.loop = LoopKind::Parallel;
      add(MutantKind::Parallel, fmt::format("for {} parallel", b_.text(x.iter.name)), &x, {b_.make(n)}, &x);
    }
    auto *inner = x.body.size() == 1 ? as<For>(x.body[0]) : nullptr;
    auto free = [](const For &l) { return l.loop != LoopKind::Serial && l.loop != LoopKind::Unroll; };
    if (!inner || (free(x) && free(*inner)) || order_free(x, inner->iter.name)) return;
    For in = x, out = *inner;
    in.body = inner->body;
    out.body = b_.stmts({b_.make(in)});
    const For *outside = b_.make(out);
    add(MutantKind::Swap, fmt::format("{} outside {}", b_.text(inner->iter.name), b_.text(x.iter.name)), &x, {outside},
        &x);
    out_.back().swapped = outside;
  }

  void compute(const Compute &x) {
    for (size_t d = 0; x.results.size() == 1 && d < x.results[0].iters.size(); d++)
      for (int by : {-1, 1}) {
        if (by < 0 && is_int(x.results[0].iters[d].extent, 0)) continue;
        Compute n = x;
        std::vector<Iter> iters(x.results[0].iters.begin(), x.results[0].iters.end());
        iters[d].extent = shifted(iters[d].extent, by);
        Result r = x.results[0];
        r.iters = b_.list(iters);
        n.results = b_.one(r);
        add(MutantKind::Bound, fmt::format("{} in {}", b_.text(iters[d].name), print(b_, iters[d].extent)), &x,
            {b_.make(n)});
      }
  }

  // Subscripts, and extents of reductions, in what stands directly in a statement.
  void expressions(const Stmt *s) {
    size_t count = 0;
    auto at = [&](size_t only, size_t part, int by, std::string *what) {
      size_t number = 0;
      auto edit = [&](const Expr *e) -> const Expr * {
        if (number++ != only) return e;
        if (auto *l = as<Load>(e); l && part < l->index.size()) {
          std::vector<const Expr *> index(l->index.begin(), l->index.end());
          if (index[part]->kind == Kind::All) return e;
          auto *r = as<Range>(index[part]);
          index[part] = r ? b_.range(shifted(r->lo, by), r->extent) : shifted(index[part], by);
          const Expr *made = b_.load(l->buffer, b_.list(index), l->at, l->global);
          *what = fmt::format("{} in place of {}", print(b_, made), print(b_, e));
          return made;
        }
        if (auto *c = as<Call>(e); c && part < c->iters.size() && !(by < 0 && is_int(c->iters[part].extent, 0))) {
          std::vector<Iter> iters(c->iters.begin(), c->iters.end());
          iters[part].extent = shifted(iters[part].extent, by);
          const Expr *made = b_.call(c->callee, c->args, c->at, c->global, b_.list(iters));
          *what = fmt::format("{} in {}", b_.text(iters[part].name), print(b_, iters[part].extent));
          return made;
        }
        return e;
      };
      const Stmt *made = nullptr;
      if (auto *x = as<Store>(s)) {
        Store n = *x;
        n.target = as<Load>(rewrite(b_, x->target, edit));
        n.value = rewrite(b_, x->value, edit);
        made = b_.make(n);
      } else if (auto *x = as<Compute>(s)) {
        Compute n = *x;
        n.value = rewrite(b_, x->value, edit);
        made = b_.make(n);
      } else if (auto *x = as<Let>(s)) {
        Let n = *x;
        n.value = rewrite(b_, x->value, edit);
        made = b_.make(n);
      } else if (auto *x = as<View>(s)) {
        View n = *x;
        n.source = as<Load>(rewrite(b_, x->source, edit));
        made = b_.make(n);
      }
      count = number;
      return made;
    };
    std::string what;
    if (!at(~size_t(0), 0, 0, &what)) return;
    for (size_t k = 0, all = count; k < all; k++)
      for (size_t part = 0; part < 8; part++)
        for (int by : {-1, 1}) {
          what.clear();
          const Stmt *made = at(k, part, by, &what);
          if (what.empty()) continue;
          bool bound = what.find(" in place of ") == std::string::npos;
          add(bound ? MutantKind::Bound : MutantKind::Index, what, s, {made});
        }
  }

  Build &b_;
  const Func &f_;
  std::unordered_map<Sym, const Type *> tensors_;
  std::vector<Mutant> out_;
};

}  // namespace

bool one_value_each(const Func &f) {
  auto tensors = tensors_of(f);
  bool one = true;
  std::unordered_set<Sym> stored;
  // c[i, 0] = e, where e says nothing but i
  auto store = [&](Sym buffer, Exprs index, const Expr *value) {
    one &= stored.insert(buffer).second;
    std::unordered_set<Sym> free, said;
    for (const Expr *e : index) {
      auto *n = as<Name>(e);
      one &= e->kind == Kind::Int || (n && said.insert(n->name).second);
    }
    for (Sym d : f.dims) said.insert(d);
    collect_names(value, free);
    for (Sym s : free) one &= said.count(s) || tensors.count(s);
  };
  each_stmt(f.body, [&](const Stmt *s) {
    auto *x = as<Store>(s);
    auto *a = as<Alloc>(s);
    one &= as<For>(s) || as<If>(s) || as<Block>(s) || as<Assume>(s) || (a && !a->base) || (x && !x->atomic);
    if (x) store(x->target->buffer, x->target->index, x->value);
  });
  return one;
}

std::vector<Mutant> mutants_of(Build &b, const Func &f) { return Maker(b, f).run(); }

}  // namespace mlc
