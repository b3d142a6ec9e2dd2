// Writing kernels: computes, blocks, the operators inside composites, and the kernel of one use.
#include <algorithm>
#include <utility>

#include "ir/walk.h"
#include "ops/rules.h"

namespace mlc {

Define::Define(const OpUse &use, std::vector<Sym> inputs, std::vector<Sym> outputs, std::vector<const Type *> results,
               Fresh &fresh, Syms from)
    : OpUse(use), in_(std::move(inputs)), out_(std::move(outputs)), result_types_(std::move(results)), lists_(in_.size()),
      fresh_(fresh), from_(from) {}

static Tensor buffer(Build &b, Sym name, const Type *type) {
  Tensor t;
  t.b = &b, t.buffer = name, t.type = type;
  for (const Expr *e : type->dims) t.dims.emplace_back(b, e);
  return t;
}

Tensor Define::in(size_t i) {
  const Type *t = type(i);
  if (in_[i]) return buffer(b, in_[i], t);
  if (!is_literal(i)) fail(input_name(i) + " has no buffer");
  if (args[i]->kind != Kind::List) return literal(args[i], t->elem);
  if (!lists_[i].b) lists_[i] = literal(args[i], t->elem);
  return lists_[i];
}

Tensor Define::literal(const Expr *e, DType elem) {
  auto scalar = [&](const Expr *v) {  // index expressions are i64 only by a cast
    bool plain = v->kind == Kind::Int || v->kind == Kind::Float || v->kind == Kind::Bool;
    return plain ? X(b, v) : cast(elem, X(b, v));
  };
  auto *list = as<List>(e);
  if (!list) {
    Tensor t;
    t.b = &b, t.literal = scalar(e).e, t.type = tensor(elem, {});
    return t;
  }
  auto pick = [&](const Indices &i) {
    X value = scalar(list->items.back());
    for (size_t k = list->items.size() - 1; k-- > 0;) value = where(i[0] == int64_t(k), scalar(list->items[k]), value);
    return value;
  };
  Dims dims{lit(int64_t(list->items.size()))};
  return list->items.empty() ? temp(elem, dims, "list") : make("list", elem, dims, pick);
}

Tensor Define::ints(const std::vector<X> &v) {
  std::vector<const Expr *> items;
  for (X x : v) items.push_back(x.e);
  Tensor t;
  t.b = &b, t.literal = b.make_list(b.list(items)), t.type = tensor(DType::I64, {lit(int64_t(v.size()))});
  return t;
}

Tensor Define::out(size_t i) {
  i += sizes;
  if (i >= out_.size() || !out_[i]) fail("result without a buffer");
  return buffer(b, out_[i], result_types_[i]);
}

Sym Define::fresh(std::string_view base) {
  Sym s;
  do s = fresh_.make(base);
  while (std::find(axes_.begin(), axes_.end(), s) != axes_.end());
  return s;
}

Tensor Define::temp(DType elem, const Dims &dims, std::string_view base) {
  Sym name = fresh(base);
  const Type *type = tensor(elem, dims);
  body.push_back(b.make(Alloc{{}, {name, kNowhere, type}, {}, nullptr}));
  return buffer(b, name, type);
}

// Axis names: i, j, k ... without those in use; the same names come again in the next statement.
std::vector<Iter> Define::iters(const Dims &domain, std::vector<Sym> &names, Indices &out) const {
  static constexpr std::string_view kLetters = "ijklpqrstuvwz";
  std::vector<Iter> list;
  size_t next = 0;
  for (X extent : domain) {
    Sym s;
    do {
      std::string name(1, kLetters[next % kLetters.size()]);
      if (next >= kLetters.size()) name += std::to_string(next / kLetters.size());
      s = b.sym(name), ++next;
    } while (fresh_.is_taken(s) || std::find(names.begin(), names.end(), s) != names.end());
    names.push_back(s);
    list.push_back({s, extent.e, kNowhere});
    out.emplace_back(b, b.name(s));
  }
  return list;
}

void Define::compute(const Tensor &t, const std::function<X(const Indices &)> &f) {
  Indices i;
  auto domain = iters(t.dims, axes_, i);
  X value = f(i);
  axes_.clear();
  Result r{t.buffer, kNowhere, b.list(domain)};
  body.push_back(b.make(Compute{{}, b.one(r), value.e, from_}));
}

Tensor Define::make(std::string_view base, DType elem, const Dims &dims, const std::function<X(const Indices &)> &f) {
  Tensor t = temp(elem, dims, base);
  compute(t, f);
  return t;
}

X Define::reduce(std::string_view kind, const Dims &over, const std::function<X(const Indices &)> &f) {
  if (over.empty()) return f({});
  size_t mark = axes_.size();
  Indices i;
  auto domain = iters(over, axes_, i);
  X term = f(i);
  axes_.resize(mark);
  return {b, b.call(b.sym(kind), b.list({term.e}), kNowhere, false, b.list(domain))};
}

X Define::sum(DType t, const Dims &over, const std::function<X(const Indices &)> &f) {
  return reduce("sum", over, [&](const Indices &i) { return as_type(f(i), t, accumulator(t)); });
}

// ---- blocks

X Define::Body::let(std::string_view base, DType t, X value) {
  Sym name = d.fresh(base);
  Def def{name, kNowhere, d.b.scalar(t)};
  stmts.push_back(d.b.make(Let{{}, d.b.one(def), value.e, {}, {}}));
  return {d.b, d.b.name(name)};
}

void Define::Body::assume(X condition) {
  if (!is_truth(condition, true)) stmts.push_back(d.b.make(Assume{{}, condition.e}));
}

void Define::Body::store(const Tensor &t, const Indices &i, X value) {
  stmts.push_back(d.b.make(Store{{}, false, &to<Load>(t(i).e), value.e, {}}));
}

void Define::Body::when(X condition, const Part &f) {
  if (is_truth(condition, true)) return f(*this);
  Body inner(d);
  f(inner);
  stmts.push_back(d.b.make(If{{}, condition.e, d.b.list(inner.stmts), {}, false}));
}

void Define::Body::choose(X condition, const Part &yes, const Part &no) {
  if (auto *known = as<Bool>(condition.e)) return (known->value ? yes : no)(*this);
  Body a(d), b(d);
  yes(a), no(b);
  stmts.push_back(d.b.make(If{{}, condition.e, d.b.list(a.stmts), d.b.list(b.stmts), true}));
}

void Define::Body::loop(X extent, const std::function<void(Body &, X)> &f) {
  size_t mark = d.axes_.size();
  Indices i;
  auto iter = d.iters({extent}, d.axes_, i);
  Body inner(d);
  f(inner, i[0]);
  d.axes_.resize(mark);
  stmts.push_back(d.b.make(For{{}, LoopKind::Serial, iter[0], {}, {}, d.b.list(inner.stmts)}));
}

Tensor Define::Body::local(std::string_view base, DType t, X start) {
  Type type = *d.b.tensor(t, {});
  type.scope = d.b.sym("local");
  Sym name = d.fresh(base);
  const Type *scoped = d.b.type(type);
  stmts.push_back(d.b.make(Alloc{{}, {name, kNowhere, scoped}, {}, nullptr}));
  Tensor v = buffer(d.b, name, scoped);
  store(v, {}, start);
  return v;
}

X Define::Body::index(std::string_view base, X value, X n, bool negative) {
  X r = let(base, DType::Index, cast(DType::Index, value));
  assume(negative ? r >= -n && r < n : r >= 0 && r < n);
  return negative ? where(r < 0, r + n, r) : r;
}

namespace {

// A region that covers what a block touches of a buffer: its own axes stay, all else is the whole dimension.
class Regions {
 public:
  Regions(Build &b, const std::unordered_set<Sym> &axes) : b_(b), axes_(axes) {}
  bool exact = true;  // every index is made of axes
  std::vector<const Load *> list;
  void add(const Load *l) {
    std::vector<const Expr *> index;
    for (const Expr *e : l->index) {
      std::unordered_set<Sym> names;
      collect_names(e, names);
      bool loads = false;
      each_expr(e, [&](const Expr *x) { return loads = loads || x->kind == Kind::Load, true; });
      bool known = !loads && std::all_of(names.begin(), names.end(), [&](Sym s) { return !inner.count(s); });
      exact = exact && known;
      index.push_back(known ? e : b_.all());
    }
    const Load *region = b_.load(l->buffer, b_.list(index));
    for (const Load *r : list)
      if (equal(r, region)) return;
    list.push_back(region);
  }
  std::unordered_set<Sym> inner;  // scalars of the block

 private:
  Build &b_;
  const std::unordered_set<Sym> &axes_;
};

}  // namespace

void Define::block(std::string_view base, const Dims &domain, std::string_view kinds,
                   const std::function<void(Body &, const Indices &)> &f) {
  Indices i;
  auto loops = iters(domain, axes_, i);
  Body inner(*this);
  f(inner, i);
  std::vector<Sym> names = std::exchange(axes_, {});

  std::unordered_set<Sym> axes(names.begin(), names.end());
  Regions reads(b, axes), writes(b, axes);
  Stmts stmts = b.list(inner.stmts);
  std::unordered_set<Sym> own;  // buffers of the block itself
  each_stmt(stmts, [&](const Stmt *s) {
    auto hide = [&](Sym name) { reads.inner.insert(name), writes.inner.insert(name); };
    if (auto *let = as<Let>(s))
      for (const Def &d : let->defs) hide(d.name);
    if (auto *loop = as<For>(s)) hide(loop->iter.name);
    if (auto *alloc = as<Alloc>(s)) own.insert(alloc->def.name);
    each_expr_of(s, [&](const Expr *top) {
      each_expr(top, [&](const Expr *e) {
        if (auto *c = as<Call>(e))
          for (const Iter &i : c->iters) hide(i.name);
        return true;
      });
    });
  });
  each_stmt(stmts, [&](const Stmt *s) {
    auto *store = as<Store>(s);
    if (store && !own.count(store->target->buffer)) writes.add(store->target);
    each_expr_of(s, [&](const Expr *top) {
      each_expr(top, [&](const Expr *e) {
        if (auto *l = as<Load>(e); l && !(store && l == store->target) && !own.count(l->buffer)) reads.add(l);
        return true;
      });
    });
  });

  std::vector<Axis> list;
  for (size_t k = 0; k < loops.size(); ++k)
    list.push_back({k < kinds.size() && kinds[k] == 's' ? AxisKind::Scan : AxisKind::Spatial, names[k], kNowhere,
                    loops[k].extent, b.name(names[k])});
  Block block{};
  block.name = fresh(base);
  block.notes.from = from_;
  block.axes = b.list(list);
  if (!reads.exact || !writes.exact) block.reads = b.list(reads.list), block.writes = b.list(writes.list);
  block.body = stmts;
  const Stmt *s = b.make(block);
  for (size_t k = loops.size(); k-- > 0;) s = b.make(For{{}, LoopKind::Serial, loops[k], {}, {}, b.one(s)});
  body.push_back(s);
}

void Define::stmt(const Stmt *s) { body.push_back(s); }

// ---- other operators inside this one

static OpUse use_of(Define &d, std::string_view name, const std::vector<Tensor> &inputs, const std::vector<Attr> &attrs) {
  const OpInfo *op = find_op(name);
  if (!op) d.fail(fmt::format("no operator {}", name));
  std::vector<const Type *> types;
  std::vector<const Expr *> args;
  for (const Tensor &t : inputs) {
    types.push_back(t.buffer ? t.type : nullptr);
    args.push_back(t.buffer ? static_cast<const Expr *>(d.b.name(t.buffer)) : t.literal ? t.literal : d.b.none());
  }
  return OpUse(d.b, *op, types, d.b.list(args), d.b.list(attrs));
}

void Define::apply_into(const std::vector<Tensor> &outputs, std::string_view name, std::vector<Tensor> inputs,
                     std::vector<Attr> attrs) {
  OpUse use = use_of(*this, name, inputs, attrs);
  std::vector<Sym> in, out;
  std::vector<const Type *> types;
  for (const Tensor &t : inputs) in.push_back(t.buffer);
  for (const Tensor &t : outputs) out.push_back(t.buffer), types.push_back(t.type);
  use.results = out;
  use.wanted = types[0];
  for (const Stmt *s : mlc::define(use, in, out, types, fresh_, from_)) body.push_back(s);
}

std::vector<Tensor> Define::apply_all(std::string_view name, size_t results, std::vector<Tensor> inputs, std::vector<Attr> attrs,
                                const Type *wanted) {
  OpUse use = use_of(*this, name, inputs, attrs);
  use.wanted = wanted;
  use.results.assign(results, Sym{});
  std::vector<const Type *> types = infer(use);
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < results; ++i) {
    Dims dims;
    for (const Expr *e : types.at(i)->dims) dims.emplace_back(b, e);
    std::string base(name);
    base[0] = char(base[0] | 0x20);
    outputs.push_back(temp(types[i]->elem, dims, base));
  }
  apply_into(outputs, name, std::move(inputs), std::move(attrs));
  return outputs;
}

Tensor Define::apply(std::string_view name, std::vector<Tensor> inputs, std::vector<Attr> attrs) {
  return apply_all(name, 1, std::move(inputs), std::move(attrs))[0];
}

Attr Define::attr(std::string_view key, int64_t v) { return {b.sym(key), kNowhere, b.integer(v)}; }
Attr Define::attr(std::string_view key, double v) { return {b.sym(key), kNowhere, b.number(v, DType::F32)}; }
Attr Define::attr(std::string_view key, std::string_view v) { return {b.sym(key), kNowhere, b.string(v)}; }
Attr Define::attr(std::string_view key, const std::vector<int64_t> &v) {
  std::vector<const Expr *> items;
  for (int64_t x : v) items.push_back(b.integer(x));
  return {b.sym(key), kNowhere, b.make_list(b.list(items))};
}

// ---- entry points

std::vector<const Stmt *> define(const OpUse &use, std::vector<Sym> inputs, std::vector<Sym> outputs,
                                 std::vector<const Type *> results, Fresh &fresh, Syms from) {
  OpUse checked = use;
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
  return bin->op == Op::Mul && left != right && int_value(left ? bin->b : bin->a, &c) && c && affine_in(left ? bin->a : bin->b, x);
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
    Sym s = x->kind == Kind::Name ? to<Name>(x).name : x->kind == Kind::Load && !to<Load>(x).global ? to<Load>(x).buffer : Sym{};
    if (s && std::find(out.begin(), out.end(), s) == out.end()) out.push_back(s);
    return true;
  });
}

}  // namespace

static OpKernel kernel_of(const OpUse &use, std::vector<const Type *> results, Sym name, Syms from, bool counts) {
  Build &b = use.b;
  OpUse checked = use;
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
