// lower: operators and groups become kernels of computes; the graph calls them.
//   y: f32[n, 4] = Relu(x) from "/relu"   ->   y: f32[n, 4] = @relu(x) from "/relu"
//                                              kernel @relu[n](X: f32[n, 4]) -> (Y: f32[n, 4]) { compute .. }
//   group @g(..) { lines }                ->   kernel @g(..) { alloc and compute of each line, merged }
// Operators that give the same bytes another shape stay: mlc-plan makes aliases of them.
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
        out.push_back(line(*l, values));
      } else {
        if (auto *l = as<Loop>(s))
          for (const Carry &c : l->carry) values.define(c.def);
        out.push_back(with_bodies(b_, s, [&](Stmts inner) { return graph(inner, values); }));
      }
      values.define(s);
    }
    return b_.list(out);
  }

  // One operator: a kernel of its own, called in its place.
  const Stmt *line(const Let &l, const Values &values) {
    const OpInfo *op = operator_of(b_, l);
    if (!op || is_reshape(b_, l)) return &l;
    if (b_.text(to<Call>(l.value).callee) == "Item" || b_.text(to<Call>(l.value).callee) == "Match") return &l;
    try {
      OpUse use = op_use(b_, l, *op, values);
      std::vector<const Type *> types;
      for (const Def &d : l.defs) types.push_back(d.type);
      OpKernel k = op_kernel(use, types, fresh_.make(snake(op->name)), l.from);
      made_.push_back(finish(*k.kernel));
      std::vector<const Expr *> args;
      for (Sym s : k.indices) args.push_back(b_.name(s));
      for (size_t i : k.inputs) args.push_back(to<Call>(l.value).args[i]);
      Let called = l;
      called.value = b_.call(k.kernel->name, b_.list(args), l.value->at, true);
      called.attrs = {};
      return b_.make(called);
    } catch (const OpError &e) {
      diag_.error(l.at, "{}: {}", op->name, e.what());
      return &l;
    }
  }

  const Func *group(const Func &f) {
    Values values(m_, f);
    Fresh fresh(b_);
    std::unordered_set<Sym> names;
    collect_all_names(&f, names);
    for (Sym s : names) fresh.take(s);
    std::vector<const Stmt *> body;
    for (const Stmt *s : f.body) {
      auto *l = as<Let>(s);
      const OpInfo *op = l ? operator_of(b_, *l) : nullptr;
      if (!op) {
        if (s->kind == Kind::Assume) body.push_back(s);
        else diag_.error(s->at, "a group holds operators and `assume` only");
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
    k.notes.attrs = {};
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
  Fresh fresh_;
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
