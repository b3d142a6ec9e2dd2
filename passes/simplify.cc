// simplify: a module that says the same in less.
//   t: T = Relu(x)                            y: T = Relu(x)
//   y: T = Relu(t)                       ->
//   compute c[i in n] = x[(i * 4 + j) // 4] * 1.0    ->    compute c[i in n] = x[i]
// The rules of grammar/rules.mlr, index arithmetic, constants folded, lines that compute the same merged, dead ones
// dropped, to a fixed point. Results keep their bits and their names.
#include <algorithm>

#include "interp/interp.h"
#include "ir/reach.h"
#include "pass/pass.h"
#include "rules/dead.h"
#include "rules/graph.h"
#include "rules/kernel.h"
#include "text/text.h"

namespace mlc {

namespace {

const Expr *literal_at(Build &b, const Array &a, int64_t i) { return literal_of(b, a.type, a.get(i)); }

class Simplify {
 public:
  Simplify(Build &b, Module &m, Diag &diag)
      : b_(b), m_(m), diag_(diag), rules_(b),
        constants_(b, m, [this](const Const &c) { return evaluate(c); }),
        scalars_(b, rules_, [this](const Expr *e, DType t) { return fold(e, t); }),
        graphs_(b, m, rules_, constants_, diag), kernels_(b, m, scalars_) {}

  void run() {
    for (int turn = 0; turn < 8 && once(); turn++) {}
    size_t items = m_.items.size();
    drop_items();
    diag_.remark("{} by rules, {} the same as others, {} folded, {} dropped, {} items dropped",
                 graphs_.by_rule + scalars_.applied, graphs_.equal_lines, graphs_.folded, graphs_.dropped + dropped_,
                 items - m_.items.size());
  }

 private:
  // All functions once. False: nothing changed.
  bool once() {
    bool changed = same_constants();
    std::vector<const Item *> before = m_.items, after;
    for (const Item *i : before) {
      auto f = as<Func>(i);
      after.push_back(f ? function(*f) : i);
    }
    // What was folded stands behind the constants that were there.
    std::vector<const Item *> made(m_.items.begin() + long(before.size()), m_.items.end());
    auto is = [](Kind k) { return [k](const Item *i) { return i->kind == k; }; };
    auto place = std::find_if(after.rbegin(), after.rend(), is(Kind::Const)).base();
    if (place == after.begin()) place = std::find_if(after.begin(), after.end(), is(Kind::Func));
    after.insert(place, made.begin(), made.end());
    changed |= after != before;
    m_.set(std::move(after));
    return changed;
  }

  const Func *function(const Func &f) {
    switch (f.func) {
      case FuncKind::Graph:
      case FuncKind::Group: return graphs_.simplify(f);
      case FuncKind::Kernel: {
        const Func *k = kernels_.simplify(f);
        std::unordered_set<Sym> roots;
        for (const Param &p : f.params) roots.insert(p.def.name);
        for (const Def &d : f.results) roots.insert(d.name);
        Stmts body = drop_dead(b_, k->body, roots, [](const Let &) { return false; }, &dropped_);
        if (body.data() == k->body.data() && body.size() == k->body.size()) return k;
        Func n = *k;
        n.body = body;
        return b_.make(n);
      }
      case FuncKind::Scalar:
      case FuncKind::Reducer: return kernels_.simplify(f);
      default: return &f;  // patterns and code of libraries stay as they were written
    }
  }

  // const @a: T = 1.0, const @c: T = 1.0: graphs use the first.
  bool same_constants() {
    std::unordered_map<Sym, const Expr *> first;
    for (const Item *i : m_.items)
      if (auto c = as<Const>(i))
        if (const Const *k = constants_.first(*c); k != c && k->name != c->name) first[c->name] = b_.global(k->name);
    if (first.empty()) return false;
    bool changed = false;
    for (size_t i = 0; i < m_.items.size(); i++) {
      auto f = as<Func>(m_.items[i]);
      if (!f || (f->func != FuncKind::Graph && f->func != FuncKind::Group)) continue;
      Func n = *f;
      n.body = rewrite_exprs(b_, f->body, [&](const Expr *e) {
        auto g = as<Global>(e);
        auto it = g ? first.find(g->name) : first.end();
        return it == first.end() ? e : it->second;
      });
      if (n.body.data() == f->body.data()) continue;
      m_.replace(i, b_.make(n));
      changed = true;
    }
    return changed;
  }

  // ---- values, as running gives them

  // Of an expression of literals: a kernel of one element.
  const Expr *fold(const Expr *e, DType t) {
    const Expr *&known = folded_[{print(b_, e), t}];
    if (known) return known->kind == Kind::None ? nullptr : known;
    Sym y = b_.sym("y");
    const Stmt *store = b_.make(Store{{}, false, b_.load(y, {}), e, {}});
    Func f{};
    f.func = FuncKind::Kernel, f.name = b_.sym("fold"), f.device_index = -1;
    f.results = b_.one(Def{y, kNowhere, b_.tensor(t, {})});
    f.body = b_.stmts({store});
    std::vector<Array> out;
    RunFault fault;
    bool ok = mlc::run(b_, m_, *b_.make(f), {}, {}, out, fault) && out.size() == 1 && out[0].size() == 1;
    known = ok ? literal_at(b_, out[0], 0) : b_.none();
    return ok ? known : nullptr;
  }

  const Expr *evaluate(const Const &c) {
    Module alone;  // its inputs stand in the text themselves
    each_expr(c.value, [&](const Expr *e) {
      auto g = as<Global>(e);
      if (g && !alone.find(g->name)) alone.add(m_.find(g->name));
      return true;
    });
    alone.add(&c);
    Array a;
    RunFault fault;
    RunOptions options;
    options.memory = 64 << 20;
    if (!mlc::evaluate(b_, alone, c, options, a, fault)) return nullptr;
    int64_t n = a.size();
    std::vector<const Expr *> items;
    bool all_equal = n > 0;
    for (int64_t i = 0; i < n; i++) {
      items.push_back(literal_at(b_, a, i));
      all_equal &= equal(items[0], items.back());
    }
    return all_equal ? items[0] : b_.make_list(b_.list(items));
  }

  // ---- items that nothing reaches

  // Graphs are there to be called from outside, and so is all else in a module without one; the rest is private.
  void drop_items() {
    bool graphs = std::any_of(m_.items.begin(), m_.items.end(), [](const Item *i) {
      auto f = as<Func>(i);
      return f && f->func == FuncKind::Graph;
    });
    std::vector<const Item *> todo;
    for (const Item *i : m_.items) {
      auto f = as<Func>(i);
      bool open = f && (f->func == FuncKind::Graph || f->func == FuncKind::Extern || f->func == FuncKind::Intrinsic);
      bool is_private = as<Const>(i) || (f && !open);
      if (graphs ? !is_private : i->kind != Kind::Const) todo.push_back(i);
    }
    for (const Item *i : keep_only(m_, reachable(m_, std::move(todo)), true))
      diag_.remark("@{}: not used", b_.text(name_of(i)));
  }

  Build &b_;
  Module &m_;
  Diag &diag_;
  Rules rules_;
  Constants constants_;
  ScalarRules scalars_;
  GraphRules graphs_;
  KernelRules kernels_;
  std::map<std::pair<std::string, DType>, const Expr *> folded_;
  size_t dropped_ = 0;
};

void run(Build &b, Module &m, const Options &, Diag &diag) { Simplify(b, m, diag).run(); }

}  // namespace

extern const Pass pass_simplify;
const Pass pass_simplify = {"simplify", "Simplify: rules, folding, equal and dead code", {}, run};

}  // namespace mlc
