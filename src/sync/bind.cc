#include "sync/bind.h"

#include <algorithm>

#include "arith/scope.h"
#include "arith/simplify.h"
#include "check/race.h"
#include "ir/edit.h"
#include "ops/expr.h"
#include "sync/uses.h"

namespace mlc {

namespace {

class Binder {
 public:
  Binder(Build &b, const Module &m, const Func *f, Workspace &own)
      : b_(b), m_(m), f_(*f), own_(own), roots_(f->body), known_(b), fresh_(b) {
    take_names(f, fresh_);
    types_ = tensors_of(*f);
    enter(known_, *f);
  }

  const Func *run() {
    size_t first = 0;  // the statement that is the nest
    for (; first < f_.body.size() && is_head(f_.body[first]); first++) after(known_, f_.body[first]);
    std::vector<const Stmt *> head(f_.body.begin(), f_.body.begin() + first), heads;
    Stmts rest = f_.body.subspan(first);
    std::vector<Iter> loops;
    Stmts inner = rest;
    if (rest.size() == 1 && apart_from(head, rest)) inner = parallel(rest[0], loops);
    std::vector<const Stmt *> body;
    for (const Stmt *s : head) (s->kind == Kind::Assume && !reads(s) ? heads : body).push_back(s);
    std::string_view comment = !rest.empty() ? rest[0]->comment : "";
    for (const Stmt *s : inner) body.push_back(s);
    Stmts all = loops.empty() ? one_thread(b_.list(body)) : many(loops, b_.list(body));
    all = b_.stmts({commented(b_, all[0], comment)});
    heads.insert(heads.end(), all.begin(), all.end());
    return edited(b_, f_, [&](Func &k) { k.body = b_.list(heads); });
  }

 private:
  // Every thread can have it for itself.
  static bool is_head(const Stmt *s) {
    return s->kind == Kind::Let || s->kind == Kind::Assume || s->kind == Kind::View ||
           (s->kind == Kind::Alloc && to<Alloc>(s).base);
  }
  static bool reads(const Stmt *s) {
    bool loads = false;
    each_expr_of(s, [&](const Expr *e) { loads |= has_loads(e); });
    return loads;
  }
  // What the lines in front read, the nest does not write.
  bool apart_from(const std::vector<const Stmt *> &head, Stmts rest) const {
    NameSet writes = written(m_, roots_, rest);
    bool good = true;
    for (const Stmt *s : head)
      if (s->kind == Kind::Let || s->kind == Kind::Assume)
        each_expr_of(s, [&](const Expr *e) {
          each_expr(e, [&](const Expr *x) {
            auto *l = as<Load>(x);
            good &= !l || l->global || !writes.count(roots_.of(l->buffer));
            return good;
          });
        });
    return good;
  }

  // The loops that are taken, from the outermost on; returns what is inside.
  Stmts parallel(const Stmt *nest, std::vector<Iter> &loops) {
    bool atomic = false;
    each_stmt(nest, [&](const Stmt *s) { atomic |= as<Store>(s) && to<Store>(s).atomic; });
    RaceScope scope;
    scope.type = [&](Sym n) { auto it = types_.find(n); return it == types_.end() ? nullptr : it->second; };
    scope.root = [&](Sym n) { return same_as(roots_.of(n)); };
    scope.shared = [](Sym) { return false; };
    scope.function = [&](Sym n) { return m_.func(n); };
    Stmts inner = b_.one(nest);
    size_t mark = known_.mark();
    while (inner.size() == 1 && !atomic) {
      auto *l = as<For>(inner[0]);
      if (!l || names_loop(l->iter.extent, loops)) break;
      if (!race_of(b_, known_, *l, scope).empty()) break;
      loops.push_back(l->iter);
      inner = l->body;
      enter(known_, l, 0);
    }
    known_.pop(mark);
    return inner;
  }
  static bool names_loop(const Expr *e, const std::vector<Iter> &loops) {
    return std::any_of(loops.begin(), loops.end(), [&](const Iter &i) { return mentions(e, i.name); });
  }
  // Of a pair of `attr inplace = [["y", "x"]]`, which may be one buffer: y.
  Sym same_as(Sym name) const {
    auto *pairs = as<List>(attr(b_, f_.notes.attrs, "inplace"));
    for (const Expr *e : pairs ? pairs->items : Exprs()) {
      auto *l = as<List>(e);
      auto *y = l && l->items.size() == 2 ? as<Str>(l->items[0]) : nullptr;
      auto *x = y ? as<Str>(l->items[1]) : nullptr;
      if (x && x->value == b_.text(name)) return b_.sym(y->value);
    }
    return name;
  }

  const For *bind(std::string_view name, X extent, std::string_view tag, Stmts body) {
    Iter i{fresh_.make(name), extent.e, kNowhere};
    return b_.make(For{{}, LoopKind::Bind, i, b_.sym(tag), {}, body});
  }

  Stmts one_thread(Stmts body) {
    body = with_own_buffers(body, {});
    return b_.stmts({bind("tx", lit(b_, int64_t{1}), "threadIdx.x", body)});
  }

  Stmts many(const std::vector<Iter> &loops, Stmts body) {
    X total = lit(b_, int64_t{1});
    for (const Iter &i : loops) total = total * X(b_, i.extent);
    total = simplify(total);
    int64_t n = 0, threads = kThreads;
    bool fixed = is_const(total, &n);
    if (fixed && n < kThreads) threads = std::max<int64_t>(1, n);
    X blocks = simplify(floordiv(total + (threads - 1), threads));
    const For *tx = bind("tx", lit(b_, threads), "threadIdx.x", {});
    const For *bx = bind("bx", blocks, "blockIdx.x", {});
    bool single = is_int(blocks.e, 1);
    X turn = X(b_, b_.name(tx->iter.name));
    if (!single) turn = X(b_, b_.name(bx->iter.name)) * threads + turn;
    size_t mark = known_.mark();
    if (!single) enter(known_, bx, 0);
    enter(known_, tx, 0);
    known_.assume((turn < total).e);
    X below = lit(b_, int64_t{1});
    std::vector<const Stmt *> lets;
    for (size_t d = loops.size(); d-- > 0;) {
      X extent(b_, loops[d].extent);
      X at = floordiv(turn, below);
      if (d) at = at % extent;
      const Expr *value = mlc::simplify(b_, at.e, known_);
      lets.push_back(b_.make(Let{{}, b_.one(Def{loops[d].name, kNowhere, b_.index()}), value, {}, {}}));
      below = simplify(below * extent);
    }
    known_.pop(mark);
    std::reverse(lets.begin(), lets.end());
    body = with_own_buffers(body, loops);
    lets.insert(lets.end(), body.begin(), body.end());
    Stmts inner = b_.list(lets);
    if (!fixed || n % threads) inner = b_.stmts({b_.make(If{{}, (turn < total).e, inner, {}, false})});
    const Stmt *all = edited(b_, *tx, [&](For &l) { l.body = inner; });
    if (!single) all = edited(b_, *bx, [&](For &l) { l.body = b_.stmts({all}); });
    return b_.stmts({all});
  }

  // Buffers of a thread: small ones in its own memory, others in global memory, a part for each turn of the loops.
  Stmts with_own_buffers(Stmts body, const std::vector<Iter> &loops) {
    struct Place {
      Sym name;
      std::vector<const Expr *> at;
    };
    std::unordered_map<Sym, Place> moved;
    Stmts out = rewrite_stmts(b_, body, [&](const Stmt *s, std::vector<const Stmt *> &to) {
      auto *a = as<Alloc>(s);
      if (!a || a->base) return to.push_back(s);
      std::vector<int64_t> dims;
      int64_t n = 1;
      bool small = all_static(a->def.type, &dims);
      for (int64_t d : dims) small = small && !__builtin_mul_overflow(n, d, &n);
      if (small && storage_bytes(a->def.type->elem, n) <= kOwnBytes) {
        to.push_back(edited(b_, *a, [&](Alloc &x) {
          Type t = *x.def.type;
          t.scope = b_.sym("local");
          x.def.type = b_.type(t);
        }));
        return;
      }
      std::vector<const Expr *> shape, at;
      for (const Iter &i : loops) shape.push_back(i.extent), at.push_back(b_.name(i.name));
      shape.insert(shape.end(), a->def.type->dims.begin(), a->def.type->dims.end());
      Type t = *a->def.type;
      t.dims = b_.list(shape), t.scope = {};
      Sym name = own_.names.make(fmt::format("{}.of", b_.text(a->def.name)));
      own_.buffers.push_back(b_.make(Alloc{{}, {name, kNowhere, b_.type(t)}, {}, nullptr}));
      moved[a->def.name] = {name, at};
    });
    if (moved.empty()) return out;
    return rewrite_exprs(b_, out, [&](const Expr *e) {
      auto *l = as<Load>(e);
      auto it = l && !l->global ? moved.find(l->buffer) : moved.end();
      if (it == moved.end()) return e;
      std::vector<const Expr *> index = it->second.at;
      index.insert(index.end(), l->index.begin(), l->index.end());
      return static_cast<const Expr *>(b_.load(it->second.name, b_.list(index), l->at));
    });
  }

  Build &b_;
  const Module &m_;
  const Func &f_;
  Workspace &own_;
  Roots roots_;
  Bounds known_;
  Fresh fresh_;
  std::unordered_map<Sym, const Type *> types_;
};

}  // namespace

const Func *bound(Build &b, const Module &m, const Func *f, Workspace &own) { return Binder(b, m, f, own).run(); }

}  // namespace mlc
