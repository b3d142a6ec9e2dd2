// Every line of grammar/rules.mlr, and the rules together, against the interpreter: both sides run on special and random
// values of every type for which the rule applies.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "arith/simplify.h"
#include "check/check.h"
#include "data/compare.h"
#include "graph/values.h"
#include "interp/interp.h"
#include "interp/sample.h"
#include "num/convert.h"
#include "pass/pass.h"
#include "rules/lines.h"
#include "rules/scalar.h"
#include "text/text.h"

namespace mlc {
namespace {

constexpr int64_t kPoints = 512;
const DType kTypes[] = {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I8, DType::I16, DType::I32, DType::I64, DType::U8,
                        DType::U16, DType::U32, DType::U64, DType::I4, DType::U2, DType::Bool};

// The value of an expression of literals, by running it.
const Expr *fold(Build &b, const Expr *e, DType t) {
  Sym y = b.sym("y");
  Func f{};
  f.func = FuncKind::Kernel, f.name = b.sym("fold"), f.device_index = -1;
  f.results = b.one(Def{y, kNowhere, b.tensor(t, {})});
  f.body = b.stmts({b.make(Store{{}, false, b.load(y, {}), e, {}})});
  std::vector<Array> out;
  RunFault fault;
  Module m;
  return run(b, m, *b.make(f), {}, {}, out, fault) ? literal_of(b, t, out[0].get(0)) : nullptr;
}

// kernel @k(x: T[512], ..) -> (l: U[512], r: U[512]) { l[i] = left, r[i] = right }, inputs with special values.
struct Kernel {
  Build &b;
  std::vector<Param> params;
  std::map<Sym, DType> types;
  Sym i = b.sym("i");
  explicit Kernel(Build &b) : b(b) {}
  const Expr *operand(const std::string &name, DType t) {
    Sym s = b.sym("v_" + name + "_" + std::string(dtype_name(t)));
    if (types.emplace(s, t).second) params.push_back({Mode::In, {s, kNowhere, b.tensor(t, b.list({b.integer(kPoints)}))}});
    return b.load(s, b.list({b.name(i)}));
  }
  Func func(const Expr *left, const Expr *right, DType t) const {
    Func f{};
    f.func = FuncKind::Kernel, f.name = b.sym("k"), f.device_index = -1;
    const Type *type = b.tensor(t, b.list({b.integer(kPoints)}));
    std::vector<Def> results = {{b.sym("l"), kNowhere, type}, {b.sym("r"), kNowhere, type}};
    f.params = b.list(params), f.results = b.list(results);
    std::vector<const Stmt *> body;
    for (const Expr *e : {left, right}) {
      Iter over{i, b.integer(kPoints), kNowhere};
      Result r{b.sym(e == left && body.empty() ? "l" : "r"), kNowhere, b.one(over)};
      body.push_back(b.make(Compute{{}, b.one(r), e, {}}));
    }
    f.body = b.list(body);
    return f;
  }
  // "" if both sides give the same on all points.
  std::string difference(const Expr *left, const Expr *right, DType t, bool zeros_equal) const {
    std::mt19937_64 random(7);
    std::vector<Array> in, out;
    for (const Param &p : params) {
      in.push_back(sample(p.def.type->elem, {kPoints}, random, true));
      for (int64_t k = 0; k < kPoints; k += 5) in.back().set(k, in[0].type == in.back().type ? in[0].get(k) : in.back().get(k));
    }
    Module m;
    RunFault fault;
    Func f = func(left, right, t);
    if (!run(b, m, *b.arena.make(f), in, {}, out, fault)) return fault.message;
    Comparison c = compare(out[1], out[0], Tolerance::exact(zeros_equal));
    return c.same() ? "" : describe(c, "right", out[0]);
  }
  Env env(const Module &m, const Func &f) const {
    Env e(b, m, &f);
    e.define_index(i);
    return e;
  }
};

bool mentions_extreme(const std::string &text) { return text.find("max") != text.npos || text.find("min") != text.npos || text.find("clamp") != text.npos; }

// A pattern as an expression of a kernel: x is v_x[i], literals have the type. Null: the type has no such literal.
struct Instance {
  Build &b;
  Kernel &k;
  DType t;
  std::map<std::string, const Expr *> constants;  // of c0, c1
  const Expr *make(const Expr *p, DType want) {
    auto all = [&](Exprs l, size_t bools) {
      std::vector<const Expr *> out;
      for (size_t i = 0; i < l.size(); i++)
        if (out.push_back(make(l[i], i < bools ? DType::Bool : want)); !out.back()) return Exprs{};
      return b.list(out);
    };
    if (auto n = as<Name>(p)) {
      std::string name(b.text(n->name));
      if (name == "lowest" || name == "highest") return is_int(t) ? literal_of(b, t, name[0] == 'l' ? lowest(t) : highest(t)) : nullptr;
      if (constants.count(name)) return constants[name];
      return k.operand(name, name == "p" || name == "q" ? DType::Bool : want);
    }
    if (p->kind == Kind::Bool) return want == DType::Bool ? p : nullptr;
    double v = as<Float>(p) ? to<Float>(p).value : as<Int>(p) ? double(to<Int>(p).value) : 0;
    if (p->kind == Kind::Int || p->kind == Kind::Float) {
      if (want == DType::Bool || (p->kind == Kind::Float && is_int(want)) || (v < 0 && !is_float(want) && !is_signed(want))) return nullptr;
      return literal_of(b, want, is_int(want) ? scalar_of(want, int64_t(v)) : scalar_of(want, v));
    }
    if (auto u = as<Unary>(p)) {
      const Expr *a = make(u->a, u->op == Op::Not ? DType::Bool : want);
      return a ? b.unary(u->op, a) : nullptr;
    }
    if (auto x = as<Binary>(p)) {
      DType in = x->op == Op::And || x->op == Op::Or ? DType::Bool : x->op < Op::Add ? t : want;
      const Expr *l = make(x->a, in), *r = make(x->b, in);
      return l && r ? b.binary(x->op, l, r) : nullptr;
    }
    auto &c = to<Call>(p);
    Exprs args = all(c.args, b.text(c.callee) == "where");
    return args.size() == c.args.size() ? b.call(c.callee, args) : nullptr;
  }
};

void names_in(const Build &b, const Expr *e, std::set<std::string> &out) {
  each_expr(e, [&](const Expr *x) {
    if (auto n = as<Name>(x)) out.emplace(b.text(n->name));
    return true;
  });
}

TEST(Rules, EachScalarRuleKeepsAllValues) {
  Build b;
  Rules all(b);
  for (const Rule *r : all.all()) {
    if (r->lines) continue;
    std::string error;
    Rules single(b, r->text, &error);
    ASSERT_EQ(error, "");
    std::set<std::string> names;
    names_in(b, r->pattern, names);
    size_t applied = 0;
    for (DType t : kTypes) {
      std::vector<const Expr *> values{nullptr};
      if (names.count("c0")) {
        values.clear();
        std::mt19937_64 random(3);
        Array odd = sample(t, {24}, random, true);
        for (int64_t i = 0; i < odd.size(); i++) values.push_back(literal_of(b, t, odd.get(i)));
        for (double v : {1.0, 2.0, 0.5, 4.0, 3.0, 1024.0, 0.0625})
          if (is_float(t) || v >= 1) values.push_back(literal_of(b, t, is_int(t) ? narrow(t, int64_t(v)) : scalar_of(t, v)));
      }
      for (size_t i = 0; i < values.size(); i++) {
        Kernel k(b);
        Instance in{b, k, t, {}};
        if (values[i]) in.constants["c0"] = values[i], in.constants["c1"] = values[(i * 7 + 3) % values.size()];
        bool truth = r->pattern->kind == Kind::Unary && to<Unary>(r->pattern).op == Op::Not;
        auto x = as<Binary>(r->pattern);
        bool logic = truth || (x && (x->op == Op::And || x->op == Op::Or));
        const Expr *left = in.make(r->pattern, logic ? DType::Bool : t);
        if (!left) continue;
        DType type = truth || (x && x->op < Op::Add) ? DType::Bool : t;
        Module m;
        Func f = k.func(left, left, type);
        Env env = k.env(m, f);
        TypeError wrong;
        if (type_of(env, left, type, &wrong) == DType::Invalid) continue;
        ScalarRules rules(b, single, [&](const Expr *e, DType to) { return fold(b, e, to); });
        size_t fired = 0;
        rules.on_rule = [&](const Rule &) { fired++; };
        const Expr *right = rules.simplify(env, left, type);
        if (!fired) continue;
        applied++;
        EXPECT_EQ(k.difference(left, right, type, mentions_extreme(std::string(r->text))), "")
            << r->text << ": " << print(b, left) << " -> " << print(b, right) << " in " << dtype_name(t);
      }
    }
    EXPECT_GT(applied, 0u) << r->text << " never applies";
  }
}

// Random expressions by all rules and index arithmetic together.
const Expr *random_scalar(Build &b, Kernel &k, std::mt19937 &r, DType t, int size) {
  static const double kNumbers[] = {0, 1, -1, 2, 0.5, 3, -0.0};
  auto sub = [&](DType in) { return random_scalar(b, k, r, in, size - 1 - int(r() % 2)); };
  if (size <= 1) {
    if (r() % 3) return k.operand(r() % 2 ? "x" : "y", t);
    if (t == DType::Bool) return b.boolean(r() % 2);
    double v = kNumbers[r() % 7];
    if (is_int(t)) return literal_of(b, t, narrow(t, int64_t(v)));
    return literal_of(b, t, scalar_of(t, v));
  }
  if (t == DType::Bool) {
    DType in = r() % 2 ? DType::I32 : DType::F32;
    switch (r() % 5) {
      case 0: return b.unary(Op::Not, sub(t));
      case 1: return b.binary(Op::And, sub(t), sub(t));
      case 2: return b.binary(Op::Or, sub(t), sub(t));
      case 3: return b.call("where", {sub(t), sub(t), sub(t)});
      default: {
        const Op ops[] = {Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge};
        // At least one side says the type.
        return b.binary(ops[r() % 6], b.binary(Op::Add, k.operand("x", in), sub(in)), sub(in));
      }
    }
  }
  switch (r() % 12) {
    case 0: return b.unary(Op::Neg, sub(t));
    case 1:
    case 2: return b.binary(Op::Add, sub(t), sub(t));
    case 3: return b.binary(Op::Sub, sub(t), sub(t));
    case 4:
    case 5: return b.binary(Op::Mul, sub(t), sub(t));
    case 6: return b.binary(Op::Div, sub(t), sub(t));
    case 7: return b.call(is_int(t) ? "bitand" : "max", {sub(t), sub(t)});
    case 8: return b.call("min", {sub(t), sub(t)});
    case 9: return b.call("where", {sub(DType::Bool), sub(t), sub(t)});
    case 10: {
      const DType others[] = {DType::F16, DType::I8, DType::F32, DType::U8};
      DType from = others[r() % 4];
      return b.call(dtype_name(t), {b.binary(Op::Mul, k.operand("z", from), sub(from))});
    }
    default: return b.call("abs", {sub(t)});
  }
}

TEST(Rules, RandomScalarExpressions) {
  Build b;
  Rules all(b);
  std::mt19937 r(11);
  size_t shorter = 0;
  for (int turn = 0; turn < 600; turn++) {
    DType t = kTypes[size_t(turn) % std::size(kTypes)];
    Kernel k(b);
    const Expr *left = random_scalar(b, k, r, t, 2 + turn % 5);
    Module m;
    Func f = k.func(left, left, t);
    Env env = k.env(m, f);
    TypeError wrong;
    if (type_of(env, left, t, &wrong) == DType::Invalid) continue;
    ScalarRules rules(b, all, [&](const Expr *e, DType to) { return fold(b, e, to); });
    const Expr *right = rules.simplify(env, left, t);
    Bounds known(b);
    known.range(k.i, b.integer(kPoints));
    right = shorten_inside(b, right, known);
    ASSERT_NE(type_of(env, right, t, &wrong), DType::Invalid) << print(b, left) << " -> " << print(b, right) << ": " << wrong.message;
    // The sign of a zero that max or min gives is not specified, and shows in what is made of it.
    std::string text = print(b, left);
    if (mentions_extreme(text) && is_float(t)) continue;
    ASSERT_EQ(k.difference(left, right, t, false), "") << text << " -> " << print(b, right) << " in " << dtype_name(t);
    const Expr *again = shorten_inside(b, rules.simplify(env, right, t), known);
    EXPECT_TRUE(equal(right, again)) << text << " -> " << print(b, right) << " -> " << print(b, again);
    shorter += cost(right) < cost(left);
  }
  EXPECT_GT(shorter, 100u);
}

// ---- rules of operators

// A pattern as lines of a graph; what is open in it (shapes, axes, permutations) is tried from lists.
struct Graph {
  Build &b;
  const std::vector<int64_t> &dims;
  DType t;
  std::vector<size_t> &choices;        // one for each open place
  std::vector<size_t> limits;          // how many choices each has
  Module m;
  std::vector<Param> params;
  std::vector<const Stmt *> lines;
  std::map<std::string, const Expr *> bound;
  std::map<Sym, const Type *> types;
  int fresh = 0;

  template <class T> T pick(const std::vector<T> &from) {
    if (choices.size() == limits.size()) choices.push_back(0);
    limits.push_back(from.size());
    return from[choices[limits.size() - 1] % from.size()];
  }
  const Expr *list(const std::vector<int64_t> &v) {
    std::vector<const Expr *> items;
    for (int64_t x : v) items.push_back(b.integer(x));
    return b.make_list(b.list(items));
  }
  const Expr *param(const std::string &name, DType elem, const std::vector<int64_t> &of) {
    std::vector<const Expr *> d;
    for (int64_t v : of) d.push_back(b.integer(v));
    Sym s = b.sym(name);
    params.push_back({Mode::In, {s, kNowhere, b.tensor(elem, b.list(d))}});
    types[s] = params.back().def.type;
    return b.name(s);
  }
  const Expr *shape_like(std::string_view op) {
    if (op == "Squeeze" || op == "Unsqueeze") return list(pick<std::vector<int64_t>>({{0}, {1}, {2}, {0, 1}, {}}));
    if (op == "Tile") return list(std::vector<int64_t>(dims.size(), 1));
    if (op == "Pad") return list(pick<std::vector<int64_t>>({std::vector<int64_t>(2 * dims.size(), 0), std::vector<int64_t>(2 * dims.size(), 1)}));
    std::vector<int64_t> wide = dims;
    wide.insert(wide.begin(), 2);
    if (op == "Expand") return list(pick<std::vector<int64_t>>({dims, wide}));
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    return list(pick<std::vector<int64_t>>({dims, {n}, {1, n}, {n / dims[0], dims[0]}}));
  }
  const Expr *attribute(std::string_view key) {
    if (key == "perm") {
      if (dims.size() == 2) return list(pick<std::vector<int64_t>>({{0, 1}, {1, 0}}));
      return list(pick<std::vector<int64_t>>({{0, 1, 2}, {2, 0, 1}, {1, 0, 2}}));
    }
    if (key == "axis") return b.integer(pick<int64_t>({1, 0, 2}));
    return nullptr;
  }
  // The value of an argument; null: this instance makes no sense.
  const Expr *argument(const Expr *p, const OpInfo &op, size_t i) {
    if (auto c = as<Call>(p)) return line(*c, nullptr);
    auto n = as<Name>(p);
    if (!n) return p->kind == Kind::Int && is_float(t) ? b.number(double(to<Int>(p).value)) : p;
    std::string name(b.text(n->name));
    const Operand *o = op.input(i);
    if (bound.count(name)) return bound[name];
    if (name == "_" && o->optional && o->type != "i64") return b.none();
    const Expr *e;
    if (o->type == "i64" || o->type == "I") e = shape_like(op.name);
    else if (o->type == "bool") e = param(name + "_" + std::to_string(fresh++), DType::Bool, dims);
    else if (op.name == "CastLike" && i == 1) e = param("like", pick<DType>({t, DType::F32}), {1});
    else if (name == "y" && op.name != "Where") e = param("y", t, pick<std::vector<int64_t>>({dims, {dims.back()}, {}}));
    else e = param(name == "_" ? "u" + std::to_string(fresh++) : name, t, dims);
    if (name != "_") bound[name] = e;
    return e;
  }
  const Expr *line(const Call &p, const Let **made) {
    const OpInfo *op = find_op(b.text(p.callee));
    if (!op) return ADD_FAILURE() << "no operator " << b.text(p.callee), nullptr;
    std::vector<const Expr *> args;
    std::vector<Attr> attrs;
    for (const Expr *a : p.args) {
      auto x = as<Binary>(a);
      if (!x || x->op != Op::Eq) {
        args.push_back(argument(a, *op, args.size()));
        if (!args.back()) return nullptr;
        continue;
      }
      Sym key = to<Name>(x->a).name;
      std::string name(b.text(to<Name>(x->b).name));
      const Expr *v = bound.count(name) ? bound[name] : attribute(b.text(key));
      if (!v) continue;
      if (name != "_") bound[name] = v;
      attrs.push_back({key, kNowhere, v});
    }
    std::vector<const Type *> in;
    for (const Expr *a : args) in.push_back(as<Name>(a) ? types[to<Name>(a).name] : nullptr);
    const Type *wanted = nullptr;
    if (op->name == "Cast") {
      DType to = pick<DType>({t, DType::F64, DType::F32, DType::F16, DType::I32, DType::I8, DType::I64, DType::Bool, DType::U8});
      wanted = b.with_elem(in[0], to);
    }
    OpUse use(b, *op, in, b.list(args), b.list(attrs), &m);
    use.wanted = wanted;
    try {
      std::vector<const Type *> found = infer(use);
      if (found.empty() || !found[0] || !use.assumptions.empty()) return nullptr;
      Def d{b.sym("t" + std::to_string(fresh++)), kNowhere, found[0]};
      const Let *l = b.make(Let{{}, b.one(d), b.call(p.callee, b.list(args)), b.list(attrs), {}});
      lines.push_back(l);
      types[d.name] = d.type;
      if (made) *made = l;
      return b.name(d.name);
    } catch (const OpError &) {
      return nullptr;
    }
  }
  Func func(const std::vector<const Stmt *> &body, Def result) const {
    Func f{};
    f.func = FuncKind::Graph, f.name = b.sym("g"), f.device_index = -1;
    f.params = b.list(params), f.results = b.one(result), f.body = b.list(body);
    return f;
  }
};

TEST(Rules, EachOperatorRuleKeepsAllValues) {
  Build b;
  Rules all(b);
  Bounds known(b);
  const std::vector<std::vector<int64_t>> shapes = {{2, 3, 4}, {1, 3, 2}, {4, 3}, {1, 1}};
  const DType kElements[] = {DType::F32, DType::I32, DType::U8, DType::Bool, DType::F16, DType::I8};
  for (const Rule *r : all.all()) {
    if (!r->lines) continue;
    std::string error;
    Rules single(b, r->text, &error);
    ASSERT_EQ(error, "");
    size_t applied = 0;
    for (size_t at = 0; at < shapes.size() * std::size(kElements); at++) {
      DType t = kElements[at % std::size(kElements)];
      std::vector<size_t> choices;
      for (bool more = true; more;) {
        Graph g{b, shapes[at / std::size(kElements)], t, choices, {}, {}, {}, {}, {}, {}};
        const Let *root = nullptr;
        bool sense = g.line(to<Call>(r->pattern), &root) != nullptr;
        if (sense) {
          LineRules rules(b, single);
          LineScope scope;
          scope.m = &g.m, scope.known = &known;
          scope.line = [&](Sym s) -> const Let * {
            for (const Stmt *l : g.lines)
              if (to<Let>(l).defs[0].name == s) return &to<Let>(l);
            return nullptr;
          };
          scope.type = [&](const Expr *e) { return as<Name>(e) ? g.types[to<Name>(e).name] : nullptr; };
          scope.fresh = [&](std::string_view base) { return b.sym(std::string(base) + "_n" + std::to_string(g.fresh++)); };
          if (auto out = rules.apply(*root, scope)) {
            applied++;
            std::vector<const Stmt *> body = g.lines;
            body.pop_back();
            for (const Let *l : out->lines) body.push_back(l);
            if (out->value) {
              Let copy = *root;
              copy.value = b.call("Identity", {out->value}), copy.attrs = {};
              body.push_back(b.make(copy));
            }
            std::vector<Array> in, left, right;
            std::mt19937_64 random(5);
            for (const Param &p : g.params) {
              std::vector<int64_t> of;
              all_static(p.def.type, &of);
              in.push_back(sample(p.def.type->elem, of, random, true));
            }
            RunFault fault;
            Func before = g.func(g.lines, root->defs[0]), after = g.func(body, root->defs[0]);
            ASSERT_TRUE(run(b, g.m, before, in, {}, left, fault)) << r->text << ": " << fault.message;
            ASSERT_TRUE(run(b, g.m, after, in, {}, right, fault)) << r->text << ": " << fault.message;
            std::string text(r->text);
            bool zeros = text.find("Max") != text.npos || text.find("Min") != text.npos || text.find("Relu") != text.npos;
            Comparison c = compare(right[0], left[0], Tolerance::exact(zeros));
            EXPECT_TRUE(c.same()) << text << " in " << dtype_name(t) << ": " << describe(c, "y", left[0]);
          }
        }
        // The next combination of choices.
        choices.resize(g.limits.size());
        while (!choices.empty() && ++choices.back() == g.limits[choices.size() - 1]) choices.pop_back();
        more = !choices.empty();
      }
    }
    EXPECT_GT(applied, 0u) << r->text << " never applies";
  }
}

// ---- the pass: random graphs before and after

TEST(Rules, Texts) {
  Build b;
  for (auto [text, message] : std::initializer_list<std::pair<const char *, const char *>>{
           {"x + 0", "1: expected `PATTERN -> RESULT`"},
           {"# c\nx -> y", "2: the pattern matches anything"},
       }) {
    std::string error;
    Rules rules(b, text, &error);
    EXPECT_EQ(error, message);
  }
  std::string error;
  Rules two(b, "Add(x, Neg(y)) -> Sub(x, y)\nf(x, y) -> x", &error);
  EXPECT_EQ(error, "");
  EXPECT_EQ(two.all().size(), 3u);  // Add in both orders
}

}  // namespace
}  // namespace mlc
