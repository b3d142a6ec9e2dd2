// lower: operators and groups become kernels of computes; the graph calls them.
//   y: f32[n, 4] = Relu(x) from "/relu"   ->   y: f32[n, 4] = @relu(x) from "/relu"
//                                              kernel @relu[n](X: f32[n, 4]) -> (Y: f32[n, 4]) { compute .. }
//   group @g(..) { lines }                ->   kernel @g(..) { alloc and compute of each line, merged }
//   k: index, y: i64[2, k] = NonZero(x)   ->   k.count: i64[] = @non_zero_count(x)
//                                              k: index = Item(k.count)
//                                              assume k >= 0 && k <= n
//                                              y: i64[2, k] = @non_zero(k, x)
// Operators that give the same bytes another shape stay: mlc-plan makes aliases of them. So do those of strings, which
// kernels do not have: the graph interpreter runs them between the kernels.
#include <memory>

#include "graph/inline.h"
#include "graph/values.h"
#include "pass/pass.h"

namespace mlc {

namespace {

class Lower {
 public:
  Lower(Build &b, Module &m, bool merge, Diag &diag) : b_(b), m_(m), merge_(merge), diag_(diag), fresh_(b) {
    take_names(m, fresh_);
  }

  void run() {
    for (const Item *i : m_.items) {
      auto *f = as<Func>(i);
      if (f && f->func == FuncKind::Graph) {
        Func g = *f;
        Values values(m_, *f);
        names_ = std::make_unique<Fresh>(b_);
        take_names(f, *names_);
        g.body = graph(f->body, values);
        out_.push_back(b_.make(g));
        out_.insert(out_.end(), made_.begin(), made_.end());
        made_.clear();
      } else if (f && f->func == FuncKind::Group) {
        out_.push_back(group(*f));
      } else {
        out_.push_back(i);
      }
    }
    m_.set(std::move(out_));
  }

 private:
  Stmts graph(Stmts body, Values &values) {
    std::vector<const Stmt *> out;
    for (const Stmt *s : body) {
      if (auto *l = as<Let>(s)) {
        line(*l, values, out);
      } else {
        if (auto *l = as<Loop>(s))
          for (const Carry &c : l->carry) values.define(c.def);
        out.push_back(with_bodies(b_, s, [&](Stmts inner) { return graph(inner, values); }));
      }
      values.define(s);
    }
    return b_.list(out);
  }

  // One operator: a kernel of its own, called in its place; where it counts a size that is data, two.
  void line(const Let &l, const Values &values, std::vector<const Stmt *> &out) {
    const OpInfo *op = operator_of(b_, l);
    std::string_view name = op ? b_.text(to<Call>(l.value).callee) : "";
    if (!op || is_reshape(b_, l) || name == "Item" || name == "Match" || is_hosted(b_, l, values))
      return out.push_back(&l);
    try {
      OpUse use = op_use(b_, l, *op, values);
      std::vector<const Type *> types;
      for (const Def &d : l.defs) types.push_back(d.type);
      Let called = l;
      if (op->count) {
        count(l, use, out);
        called.defs = l.defs.subspan(1), called.comment = {};
        if (called.defs.empty()) return;
      }
      called.value = call(op_kernel(use, types, fresh_.make(snake(op->name)), l.from), l), called.attrs = {};
      out.push_back(b_.make(called));
    } catch (const OpError &e) {
      diag_.error(l.at, "{}: {}", op->name, e.what());
    }
  }

  const Expr *call(const OpKernel &k, const Let &l) {
    made_.push_back(finish(*k.kernel));
    std::vector<const Expr *> args;
    for (Sym s : k.indices) args.push_back(b_.name(s));
    for (size_t i : k.inputs) args.push_back(to<Call>(l.value).args[i]);
    return b_.call(k.kernel->name, b_.list(args), l.value->at, true);
  }

  void count(const Let &l, const OpUse &use, std::vector<const Stmt *> &out) {
    OpKernel k = count_kernel(use, fresh_.make(snake(use.op.name) + "_count"), l.from);
    const Def &size = l.defs[0];
    Sym counted = names_->make(std::string(b_.text(size.name)) + ".count");
    Let one{{}, b_.one(Def{counted, size.at, k.kernel->results[0].type}), call(k, l), {}, l.from};
    one.at = l.at, one.comment = l.comment;
    out.push_back(b_.make(one));
    out.push_back(b_.make(Let{{}, b_.one(size), b_.call("Item", {b_.name(counted)}), {}, {}}));
    X n{b_, b_.name(size.name)};
    out.push_back(b_.make(Assume{{}, (n >= 0 && n <= simplify(k.most)).e}));
  }

  const Func *group(const Func &f) {
    Values values(m_, f);
    Fresh fresh(b_);
    take_names(&f, fresh);
    std::vector<const Stmt *> body;
    for (const Stmt *s : f.body) {
      auto *l = as<Let>(s);
      const OpInfo *op = l ? operator_of(b_, *l) : nullptr;
      if (!op) {
        if (s->kind == Kind::Assume) body.push_back(s);
        else diag_.error(s->at, "a group holds operators and `assume` only");
        continue;
      }
      if (is_hosted(b_, *l, values)) {
        diag_.error(l->at, "{}: a group becomes a kernel, which has no strings and decodes no files",
                    b_.text(l->defs[0].name));
        continue;
      }
      try {
        define_line(*l, op_use(b_, *l, *op, values), f, fresh, body);
      } catch (const OpError &e) {
        diag_.error(l->at, "{}: {}", op->name, e.what());
      }
      values.define(l->defs);
    }
    Func k = f;
    k.func = FuncKind::Kernel;
    std::vector<Attr> kept;
    for (const Attr &a : f.notes.attrs)
      if (b_.text(a.key) == "licence") kept.push_back(a);
    k.notes.attrs = b_.list(kept);
    k.body = b_.list(body);
    return finish(k);
  }

  void define_line(const Let &l, const OpUse &use, const Func &f, Fresh &fresh, std::vector<const Stmt *> &body) {
    const Call &c = to<Call>(l.value);
    std::vector<Sym> in, out;
    for (size_t i = 0; i < c.args.size(); i++) {
      auto *n = as<Name>(c.args[i]);
      in.push_back(n && use.types[i] ? n->name : Sym{});
    }
    std::vector<const Type *> types;
    for (const Def &d : l.defs) {
      out.push_back(d.name), types.push_back(d.type);
      bool result = false;
      for (const Def &r : f.results) result |= r.name == d.name;
      if (!result) body.push_back(b_.make(Alloc{{}, {d.name, d.at, d.type}, {}, nullptr}));
    }
    auto stmts = define(use, in, out, types, fresh, l.from);
    for (const Expr *a : use.assumptions) body.push_back(b_.make(Assume{{}, a}));
    body.insert(body.end(), stmts.begin(), stmts.end());
  }

  const Func *finish(const Func &f) {
    Func k = f;
    if (merge_) k.body = inline_computes(b_, k.body);
    return b_.make(k);
  }

  // LayerNormalization -> layer_normalization, MatMul -> mat_mul, LRN -> lrn
  static std::string snake(std::string_view name) {
    auto upper = [](char c) { return c >= 'A' && c <= 'Z'; };
    std::string out;
    for (size_t i = 0; i < name.size(); i++) {
      bool starts = upper(name[i]) && i && (!upper(name[i - 1]) || (i + 1 < name.size() && !upper(name[i + 1])));
      if (starts && out.back() != '_') out += '_';
      out += upper(name[i]) ? char(name[i] | 32) : name[i];
    }
    return out;
  }

  Build &b_;
  Module &m_;
  bool merge_;
  Diag &diag_;
  Fresh fresh_;  // names of the module
  std::unique_ptr<Fresh> names_;  // of the graph
  std::vector<const Item *> out_, made_;
};

constexpr OptionSpec kOptions[] = {
    {"keep-computes", nullptr, "leave one compute an operator, do not merge them"},
};

void run(Build &b, Module &m, const Options &options, Diag &diag) {
  Lower(b, m, !options.has("keep-computes"), diag).run();
}

}  // namespace

extern const Pass pass_lower;
const Pass pass_lower = {"lower", "Turn operators and groups into kernels of computes", kOptions, run, Stage::Groups};

}  // namespace mlc
