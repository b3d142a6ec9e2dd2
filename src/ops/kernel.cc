// The statements that compute a use of an operator, and a kernel of its own for it.
#include <algorithm>

#include "ir/walk.h"
#include "ops/rules.h"

namespace mlc {

namespace {

// The same use where strings are numbers; those of literals are not known here.
OpUse over_numbers(const OpUse &use, std::vector<const Type *> &results) {
  Build &b = use.b;
  if (!use.op.define) use.lack("the graph interpreter alone runs it, it has no kernel");
  auto numbers = [&](const Type *t) { return t && t->elem == DType::Str ? b.with_elem(t, DType::I64) : t; };
  auto number = [&](const Expr *e) { return e->kind == Kind::Str ? b.integer(0) : e; };
  OpUse u = use;
  bool any = false;
  for (const Type *&t : u.types) any |= t && t->elem == DType::Str, t = numbers(t);
  for (const Type *&t : results) any |= t && t->elem == DType::Str, t = numbers(t);
  if (!any) return u;
  u.wanted = numbers(u.wanted);
  std::vector<const Expr *> args;
  for (const Expr *e : u.args) {
    std::vector<const Expr *> items;
    if (auto *l = as<List>(e))
      for (const Expr *i : l->items) items.push_back(number(i));
    args.push_back(e->kind == Kind::List ? b.make_list(b.list(items)) : number(e));
  }
  u.args = b.list(args);
  return u;
}

}  // namespace

std::vector<const Stmt *> define(const OpUse &use, std::vector<Sym> inputs, std::vector<Sym> outputs,
                                 std::vector<const Type *> results, Fresh &fresh, Syms from) {
  OpUse checked = over_numbers(use, results);
  if (checked.results.empty()) checked.results = outputs;
  if (!checked.wanted && !results.empty()) checked.wanted = results[0];
  infer(checked);
  inputs.resize(checked.args.size());
  Define d(checked, std::move(inputs), std::move(outputs), std::move(results), fresh, from);
  d.op.define(d);
  return std::move(d.body);
}

namespace {

// Whether e = a * x + c with constants and names already known, x the only unknown.
bool affine_in(const Expr *e, Sym x) {
  if (auto *n = as<Name>(e)) return n->name == x;
  auto *bin = as<Binary>(e);
  if (!bin) return false;
  bool left = mentions(bin->a, x), right = mentions(bin->b, x);
  int64_t c;
  if (bin->op == Op::Add || bin->op == Op::Sub) return left != right && affine_in(left ? bin->a : bin->b, x);
  return bin->op == Op::Mul && left != right && int_value(left ? bin->b : bin->a, &c) && c &&
         affine_in(left ? bin->a : bin->b, x);
}

// The dimensions that arguments of these types give, in the order in which they occur.
std::vector<Sym> solved(const std::vector<const Type *> &types) {
  std::vector<Sym> known;
  auto is_known = [&](Sym s) { return std::find(known.begin(), known.end(), s) != known.end(); };
  for (bool more = true; more;) {
    more = false;
    for (const Type *t : types)
      for (const Expr *e : t->dims) {
        std::unordered_set<Sym> names;
        collect_names(e, names);
        std::erase_if(names, is_known);
        if (names.size() == 1 && affine_in(e, *names.begin())) known.push_back(*names.begin()), more = true;
      }
  }
  return known;
}

void names_in_order(const Expr *e, std::vector<Sym> &out) {
  each_expr(e, [&](const Expr *x) {
    Sym s = x->kind == Kind::Name                          ? to<Name>(x).name
            : x->kind == Kind::Load && !to<Load>(x).global ? to<Load>(x).buffer
                                                           : Sym{};
    if (s && std::find(out.begin(), out.end(), s) == out.end()) out.push_back(s);
    return true;
  });
}

}  // namespace

static OpKernel kernel_of(const OpUse &use, std::vector<const Type *> results, Sym name, Syms from, bool counts) {
  Build &b = use.b;
  OpUse checked = over_numbers(use, results);
  infer(checked);
  std::vector<Sym> outer;  // index names of the graph that this use mentions
  for (size_t i = 0; i < checked.args.size(); ++i) {
    if (checked.has(i))
      for (const Expr *e : checked.types[i]->dims) names_in_order(e, outer);
    if (checked.is_literal(i)) names_in_order(checked.args[i], outer);
    if (auto v = checked.values(i))
      for (X x : *v) names_in_order(x.e, outer);
  }
  for (const Type *t : results)
    for (const Expr *e : t->dims) names_in_order(e, outer);
  for (const Expr *e : checked.assumptions) names_in_order(e, outer);

  Fresh fresh(b);
  for (Sym s : outer) fresh.take(s);
  std::vector<Sym> in(checked.args.size()), out;
  for (size_t i = 0; i < in.size(); ++i)
    if (checked.has(i) && !checked.is_literal(i)) in[i] = fresh.make(checked.op.input(i)->name);
  std::vector<Def> defs;
  for (size_t i = 0; i < results.size(); ++i) {
    bool size = !results[i]->tensor;
    out.push_back(size ? Sym{} : fresh.make(checked.op.output(i - checked.sizes)->name));
    if (!size) defs.push_back({out.back(), kNowhere, results[i]});
  }
  Define d(checked, in, out, results, fresh, from);
  (counts ? d.op.count : d.op.define)(d);
  std::vector<const Stmt *> body = std::move(d.body);
  for (size_t i = checked.assumptions.size(); i-- > 0;)
    body.insert(body.begin(), b.make(Assume{{}, checked.assumptions[i]}));

  std::vector<Sym> used;
  each_stmt(b.list(body), [&](const Stmt *s) { each_expr_of(s, [&](const Expr *e) { names_in_order(e, used); }); });
  auto is_used = [&](Sym s) { return std::find(used.begin(), used.end(), s) != used.end(); };
  OpKernel k{};
  std::vector<Param> params;
  std::vector<const Type *> types;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in[i] || !is_used(in[i])) continue;
    k.inputs.push_back(i);
    types.push_back(checked.types[i]);
    params.push_back({Mode::In, {in[i], kNowhere, checked.types[i]}});
  }
  std::vector<Sym> dims = solved(types);
  for (const Type *t : types)
    for (const Expr *e : t->dims) names_in_order(e, used);
  for (const Type *t : results)
    for (const Expr *e : t->dims) names_in_order(e, used);
  for (Sym s : outer) {
    if (!is_used(s) || std::find(dims.begin(), dims.end(), s) != dims.end()) continue;
    k.indices.push_back(s);
    params.push_back({Mode::In, {s, kNowhere, b.scalar(DType::Index)}});
  }
  std::stable_partition(params.begin(), params.end(), [](const Param &p) { return !p.def.type->tensor; });
  Func f{};
  f.func = FuncKind::Kernel;
  f.name = name;
  f.dims = b.list(dims);
  f.params = b.list(params);
  f.results = b.list(defs);
  f.device_index = -1;
  f.body = b.list(body);
  k.kernel = b.make(f);
  k.most = checked.most;
  return k;
}

OpKernel op_kernel(const OpUse &use, std::vector<const Type *> results, Sym name, Syms from) {
  return kernel_of(use, std::move(results), name, from, false);
}
OpKernel count_kernel(const OpUse &use, Sym name, Syms from) {
  if (!use.op.count) use.fail(use.op.name + " has no size that is data");
  return kernel_of(use, {use.tensor(DType::I64, {})}, name, from, true);
}

}  // namespace mlc
