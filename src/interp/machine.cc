#include "interp/machine.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cstring>

#include "interp/exec.h"
#include "math/math.h"
#include "text/text.h"

namespace mlc::interp {

Machine::Machine(Build &b, const Module &m, const RunOptions &o) : b(b), m(m), options(o), files_(o.folders, o.module_path) {
  memory.limit = o.memory;
  memory.check = o.check_undefined;
}

// ---- compiled functions

Compiler Machine::compiler(const Module &home) {
  Compiler c(b, home, nodes_, [this](const Func *f) { return lambda(f); },
             [this](std::string_view name, DType t) { return scalar_function(b, math(), name, t); });
  c.kept_ = &kept_, c.measure_ = options.measure;
  return c;
}

const Unit *Machine::unit(const Func &f, Stmts body, const Notes &notes) {
  const void *key = body.empty() ? static_cast<const void *>(&f) : body.data();
  const Unit *&u = units_[key];
  if (!u) u = compiler(m).kernel(f, body, notes);
  return u;
}

const Lambda *Machine::lambda(const Func *f) {
  const Lambda *&l = lambdas_[f];
  if (l) return l;
  if (!compiling_.insert(f).second) throw Fault{f->at, fmt::format("@{} calls itself", name(f->name))};
  const Lambda *made = compiler(m.func(f->name) == f ? m : math()).lambda(*f);
  compiling_.erase(f);
  return lambdas_[f] = made;
}

const Module &Machine::math() {
  if (!math_) math_ = std::make_unique<Module>(math_module(b));
  return *math_;
}

// ---- calls

namespace {

const char *kind_name(FuncKind k) {
  constexpr const char *kNames[] = {"graph", "group", "kernel", "scalar", "reducer", "extern", "intrinsic"};
  return kNames[size_t(k)];
}

std::string shape(const Ref &r) { return fmt::format("{}[{}]", dtype_name(r.elem), fmt::join(r.dims, ", ")); }

}  // namespace

std::string Machine::origin(Syms from) const {
  std::string s;
  for (Sym f : from) s += (s.empty() ? " from " : ", ") + quote(b.text(f));
  return s;
}

std::vector<Value> Machine::call(const Func &f, std::vector<Value> args, std::vector<Value> into, uint32_t at, std::string what,
                                 Syms from) {
  if (what.empty()) what = fmt::format("{} @{}", kind_name(f.func), name(f.name));
  struct Depth {
    int &d;
    explicit Depth(int &x) : d(x) { d++; }
    ~Depth() { d--; }
  } depth(depth_);
  if (depth_ > 256) throw Fault{at, fmt::format("calls nest too deep: {}", what)};

  // Arguments without those that are `scratch` get buffers of their own, once the dimensions are known.
  size_t given = 0;
  for (const Param &p : f.params) given += p.mode != Mode::Scratch;
  bool own_scratch = args.size() == given && given < f.params.size();
  if (!own_scratch && args.size() != f.params.size())
    throw Fault{at, fmt::format("{} has {} parameters, found {} arguments", what, f.params.size(), args.size())};
  if (own_scratch)
    for (size_t i = 0; i < f.params.size(); i++)
      if (f.params[i].mode == Mode::Scratch) args.insert(args.begin() + ptrdiff_t(i), Value{});
  if (!into.empty() && into.size() != f.results.size())
    throw Fault{at, fmt::format("{} has {} results, found {} destinations", what, f.results.size(), into.size())};

  IndexValues names;
  std::vector<DimEquation> equations;
  std::vector<std::pair<const Def *, const Value *>> owners;
  auto take = [&](const Def &d, Value &v) {
    const Type *t = d.type;
    if (v.type != t->elem && !(is_int(v.type) && t->elem == DType::Index && !t->tensor))
      throw Fault{at, fmt::format("{} of {}: expected {}, found {}", name(d.name), what, dtype_name(t->elem), dtype_name(v.type))};
    if (!t->tensor) {
      if (!v.is_scalar() && v.ref.rank()) throw Fault{at, fmt::format("{} of {}: expected a scalar, found {}", name(d.name), what, shape(v.ref))};
      v = Value::of(t->elem, v.element());
      if (t->elem == DType::Index) names[d.name] = v.scalar.as_int();
      return;
    }
    if (v.is_scalar()) {
      Ref r = make(t->elem, {});
      store(t->elem, r.data(), 0, v.scalar);
      if (r.storage->shadow) memset(r.storage->shadow, 0xff, size_t(r.storage->size)), r.storage->undefined = 0;
      v = Value::of(r);
    }
    if (v.ref.rank() != t->rank())
      throw Fault{at, fmt::format("{} of {}: expected {}, found {}", name(d.name), what, print(b, t), shape(v.ref))};
    auto *strides = as<List>(attr(b, t->attrs, "strides"));
    for (size_t k = 0; k < t->rank(); k++) {
      equations.push_back({t->dims[k], v.ref.dims[k]});
      owners.push_back({&d, &v});
      if (!strides || strides->items.size() != t->rank() || v.ref.dims[k] <= 1) continue;
      equations.push_back({strides->items[k], v.ref.strides[k]});
      owners.push_back({&d, &v});
    }
  };
  for (size_t i = 0; i < args.size(); i++)
    if (f.params[i].mode != Mode::Scratch || !own_scratch) take(f.params[i].def, args[i]);
  for (size_t i = 0; i < into.size(); i++) take(f.results[i], into[i]);
  // A stride that no argument gives (its dimension is 1 or 0) may be anything.
  auto declared = [&](Sym s) { return std::find(f.dims.begin(), f.dims.end(), s) != f.dims.end(); };
  size_t wrong = solve(b, equations, declared, names);
  if (wrong < equations.size())
    throw Fault{at, fmt::format("{} of {}: expected {}, found {}", name(owners[wrong].first->name), what,
                                print(b, owners[wrong].first->type), shape(owners[wrong].second->ref))};
  for (Sym d : f.dims)
    if (!names.count(d)) {
      bool stride = false;
      auto mentions_d = [&](const Def &x) {
        if (auto *l = as<List>(attr(b, x.type->attrs, "strides")))
          for (const Expr *e : l->items) stride |= mentions(e, d);
      };
      for (const Param &p : f.params) mentions_d(p.def);
      for (const Def &r : f.results) mentions_d(r);
      if (!stride) throw Fault{at, fmt::format("dimension {} of {} does not follow from its arguments", name(d), what)};
      names[d] = 1;
    }

  auto dims_of = [&](const Def &d) {
    std::vector<int64_t> dims;
    for (const Expr *e : d.type->dims) dims.push_back(dim(e, names));
    return dims;
  };
  auto made = [&](const Def &d) {
    try {
      return Value::of(make(d.type->elem, dims_of(d)));
    } catch (Fault &e) {
      throw Fault{at, fmt::format("{} of {}: {}", name(d.name), what, e.message)};
    }
  };
  for (size_t i = 0; own_scratch && i < args.size(); i++)
    if (f.params[i].mode == Mode::Scratch) args[i] = made(f.params[i].def);

  Stmts body = f.body;
  Notes notes = f.notes;
  if (f.func == FuncKind::Extern || f.func == FuncKind::Intrinsic) {
    const Part *desc = nullptr;
    for (const Part &p : f.parts)
      if (p.desc) desc = &p;
    if (!desc) throw Fault{at, fmt::format("{} has no description to run", what)};
    body = desc->body;
    if (!desc->notes.from.empty()) notes = desc->notes;
  } else if (f.func == FuncKind::Scalar || f.func == FuncKind::Reducer) {
    throw Fault{at, fmt::format("{} is called in expressions only", what)};
  }
  try {
    bool graph = f.func == FuncKind::Graph || f.func == FuncKind::Group || (f.func != FuncKind::Kernel && is_graph_body(b, body));
    bool fresh = into.empty();
    if (!fresh) check_overlap(f, args, into, at);
    if (graph) return run_graph(*this, f, body, args, into, names);
    for (size_t i = 0; i < f.results.size(); i++)
      if (fresh) into.push_back(made(f.results[i]));
    for (size_t i = 0; !fresh && i < into.size(); i++) {
      bool shared = std::any_of(args.begin(), args.end(), [&](const Value &a) { return !a.is_scalar() && a.ref.overlaps(into[i].ref); });
      if (!shared) into[i].ref.forget();
    }
    for (size_t i = 0; i < args.size(); i++)
      if (f.params[i].mode == Mode::Scratch && !args[i].is_scalar()) args[i].ref.forget();
    run_kernel(*unit(f, body, notes), args, into, names);
    std::vector<int64_t> index;
    for (size_t i = 0; i < into.size(); i++)
      if (into[i].ref.find_undefined(&index))
        throw Fault{f.results[i].at, fmt::format("{}[{}] is never written", name(f.results[i].name), fmt::join(index, ", "))};
    return into;
  } catch (Fault &e) {
    if (!e.named) {
      std::string nodes = origin(from);
      bool said = e.message.find(nodes) != std::string::npos;
      e.message += fmt::format(", in {}{}", what, said ? "" : nodes), e.named = true;
    }
    if (e.at == kNowhere) e.at = at;
    throw;
  }
}

void Machine::check_overlap(const Func &f, const std::vector<Value> &args, const std::vector<Value> &into, uint32_t at) {
  auto *pairs = as<List>(attr(b, f.notes.attrs, "inplace"));
  auto allowed = [&](Sym x, Sym y) {
    if (!pairs) return false;
    for (const Expr *e : pairs->items) {
      auto *l = as<List>(e);
      if (!l || l->items.size() != 2 || !as<Str>(l->items[0]) || !as<Str>(l->items[1])) continue;
      std::string_view p = to<Str>(l->items[0]).value, q = to<Str>(l->items[1]).value;
      if ((p == b.text(x) && q == b.text(y)) || (p == b.text(y) && q == b.text(x))) return true;
    }
    return false;
  };
  struct Use { const Ref *ref; Sym name; bool written; };
  std::vector<Use> uses;
  for (size_t i = 0; i < args.size(); i++)
    if (!args[i].is_scalar()) uses.push_back({&args[i].ref, f.params[i].def.name, f.params[i].mode != Mode::In});
  for (size_t i = 0; i < into.size(); i++) uses.push_back({&into[i].ref, f.results[i].name, true});
  for (size_t i = 0; i < uses.size(); i++)
    for (size_t j = i + 1; j < uses.size(); j++) {
      const Use &p = uses[i], &q = uses[j];
      if ((!p.written && !q.written) || !p.ref->overlaps(*q.ref)) continue;
      bool same = p.ref->start == q.ref->start && p.ref->first == q.ref->first && p.ref->dims == q.ref->dims && p.ref->strides == q.ref->strides;
      if (same && allowed(p.name, q.name)) continue;
      throw Fault{at, fmt::format("{} and {} of @{} are given overlapping buffers", name(p.name), name(q.name), name(f.name))};
    }
}

void Machine::run_kernel(const Unit &u, const std::vector<Value> &args, const std::vector<Value> &results, const IndexValues &names) {
  std::vector<int64_t> slots(size_t(u.slots) + 1);
  std::vector<Buffer> buffers(u.buffers.size());
  std::vector<StorageRef> owned(u.buffers.size());
  auto bind = [&](int k, const Ref &r) {
    const BufferInfo &info = u.buffers[size_t(k)];
    for (size_t d = 0; d < info.dims.size(); d++) slots[size_t(info.dims[d])] = r.dims[d], slots[size_t(info.strides[d])] = r.strides[d];
    Storage *s = r.storage.get();
    buffers[size_t(k)] = {s->bytes + r.start, s->shadow ? s->shadow + r.start : nullptr, s, r.first};
  };
  for (size_t i = 0; i < u.dim_slots.size(); i++) slots[size_t(u.dim_slots[i])] = names.at(u.func->dims[i]);
  for (size_t i = 0; i < args.size(); i++) {
    if (u.param_buffers[i] >= 0) bind(u.param_buffers[i], args[i].ref);
    else slots[size_t(u.param_slots[i])] = int64_t(args[i].scalar.bits);
  }
  for (size_t i = 0; i < results.size(); i++) bind(u.result_buffers[i], results[i].ref);
  for (auto [k, s] : u.constants) bind(k, constant(s, kNowhere));
  Frame f{slots.data(), buffers.data(), &u, this, &owned};
  start(u, f);
}

// ---- scalar expressions of a graph

int64_t Machine::dim(const Expr *e, const IndexValues &names) {
  if (auto v = index_value(b, e, names)) return *v;
  std::unordered_map<Sym, Value> values;
  for (auto [s, v] : names) values[s] = Value::of_index(v);
  return eval(e, DType::Index, [&](Sym s) {
           auto it = values.find(s);
           return it == values.end() ? nullptr : &it->second;
         }).scalar.as_int();
}

Value Machine::eval(const Expr *e, DType want, const std::function<const Value *(Sym)> &value) {
  auto need = [&](Sym s) {
    const Value *v = value(s);
    if (!v) throw Fault{e->at, fmt::format("{} is not defined here", name(s))};
    return *v;
  };
  if (auto *i = as<Int>(e); i && (want == DType::Index || want == DType::Invalid)) return Value::of_index(i->value);
  if (auto *n = as<Name>(e)) {
    Value v = need(n->name);
    if (!v.is_scalar() && v.ref.rank()) throw Fault{e->at, fmt::format("{} is {}, expected a scalar", name(n->name), shape(v.ref))};
    return Value::of(v.type, v.element());
  }
  if (want == DType::Index) {
    IndexValues names;
    each_expr(e, [&](const Expr *x) {
      if (auto *n = as<Name>(x))
        if (const Value *v = value(n->name); v && v->type == DType::Index && v->is_scalar()) names[n->name] = v->scalar.as_int();
      return true;
    });
    if (auto v = index_value(b, e, names)) return Value::of_index(*v);
  }
  // Any other: the body of a kernel whose parameters are the names in it. A tensor of rank 0 stands for its element.
  ScalarUnit &s = scalars_[{e, want}];
  if (!s.node) {
    std::unordered_set<Sym> seen;
    std::vector<Param> params;
    std::unordered_set<Sym> bound;
    each_expr(e, [&](const Expr *x) {
      if (auto *c = as<Call>(x))
        for (const Iter &i : c->iters) bound.insert(i.name);
      return true;
    });
    auto param = [&](Sym n, bool loaded) {
      if (bound.count(n) || !seen.insert(n).second) return;
      Value v = need(n);
      const Type *t = b.scalar(v.type);
      if (loaded && !v.is_scalar()) {
        std::vector<const Expr *> dims;
        for (size_t d = 0; d < v.ref.rank(); d++) dims.push_back(b.integer(0));  // only the rank matters
        t = b.tensor(v.type, b.list(dims));
      }
      params.push_back({Mode::In, {n, e->at, t}});
      s.names.push_back(n);
    };
    each_expr(e, [&](const Expr *x) {
      if (auto *l = as<Load>(x); l && !l->global) param(l->buffer, true);
      return true;
    });
    each_expr(e, [&](const Expr *x) {
      if (auto *n = as<Name>(x)) param(n->name, false);
      return true;
    });
    Func f{};
    f.func = FuncKind::Kernel, f.device_index = -1, f.params = b.list(params);
    std::tie(s.unit, s.node) = compiler(m).scalar(*b.make(f), e, want);
  }
  std::vector<int64_t> slots(size_t(s.unit->slots) + 1);
  std::vector<Buffer> buffers(s.unit->buffers.size());
  std::vector<StorageRef> owned(buffers.size());
  for (size_t i = 0; i < s.names.size(); i++) {
    Value v = need(s.names[i]);
    int k = s.unit->param_buffers[i];
    if (k < 0) {
      slots[size_t(s.unit->param_slots[i])] = int64_t(v.element().bits);
      continue;
    }
    const BufferInfo &info = s.unit->buffers[size_t(k)];
    for (size_t d = 0; d < info.dims.size(); d++) slots[size_t(info.dims[d])] = v.ref.dims[d], slots[size_t(info.strides[d])] = v.ref.strides[d];
    Storage *st = v.ref.storage.get();
    buffers[size_t(k)] = {st->bytes + v.ref.start, st->shadow ? st->shadow + v.ref.start : nullptr, st, v.ref.first};
  }
  for (auto [k, c] : s.unit->constants) {
    const Ref &r = constant(c, e->at);
    const BufferInfo &info = s.unit->buffers[size_t(k)];
    for (size_t d = 0; d < info.dims.size(); d++) slots[size_t(info.dims[d])] = r.dims[d], slots[size_t(info.strides[d])] = r.strides[d];
    buffers[size_t(k)] = {r.data(), nullptr, r.storage.get(), r.first};
  }
  Frame f{slots.data(), buffers.data(), s.unit, this, &owned};
  start(*s.unit, f);
  return Value::of(s.node->type, eval_any(s.node, f));
}

// ---- constants

const Ref &Machine::constant(Sym n, uint32_t at) {
  if (auto it = constants_.find(n); it != constants_.end()) return it->second;
  const Const *c = m.constant(n);
  if (!c) throw Fault{at, fmt::format("no constant @{}", name(n))};
  if (!reading_.insert(n).second) throw Fault{c->at, fmt::format("constant @{} is made of itself", name(n))};
  try {
    Ref r = read_constant(*c);
    reading_.erase(n);
    return constants_[n] = r;
  } catch (Fault &e) {
    throw Fault{e.at == kNowhere ? c->at : e.at, fmt::format("constant @{}: {}", name(n), e.message), true};
  }
}

Ref Machine::read_constant(const Const &c) {
  std::vector<int64_t> dims;
  if (!all_static(c.type, &dims)) throw Fault{c.at, fmt::format("expected literal dimensions, found {}", print(b, c.type))};
  DType t = c.type->elem;
  int64_t bytes = bytes_of(t, dims.data(), dims.size());
  Ref r{nullptr, t, 0, 0, dims, dense_strides(dims)};
  if (!c.path.empty() || !c.value) {
    const File *file = nullptr;
    for (const Item *i : m.items)
      if (auto *f = as<File>(i); f && f->path == c.path) file = f;
    int64_t size = -1;
    if (file) int_value(attr(b, file->attrs, "bytes"), &size);
    auto *hash = file ? as<Str>(attr(b, file->attrs, "sha256")) : nullptr;
    std::string error;
    const Mapped *mapped = files_.open(c.path, size, hash ? hash->value : std::string_view(), &error);
    if (!mapped) throw Fault{c.at, error};
    std::span<const std::byte> part;
    if (!slice(*mapped, c.offset, bytes, &part))
      throw Fault{c.at, fmt::format("{} bytes at {} of \"{}\" go beyond its end", bytes, c.offset, c.path)};
    r.storage = std::make_shared<Storage>();  // read only: the bytes of the file itself
    r.storage->bytes = const_cast<std::byte *>(part.data()), r.storage->size = bytes, r.storage->borrowed = true;
    return r;
  }
  auto element = [&](const Expr *e) {
    Value v = eval(e, t == DType::Index ? DType::Index : t, [](Sym) { return nullptr; });
    return v.type == t ? v.scalar : cast(v.scalar, v.type, t);
  };
  auto *call_value = as<Call>(c.value);
  if (call_value && (call_value->global || find_op(b.text(call_value->callee)))) {
    std::vector<Value> args, made;
    OperatorUse use;
    for (const Expr *e : call_value->args) {
      auto *g = as<Global>(e);
      Value v = g ? Value::of(constant(g->name, e->at)) : Value{};
      args.push_back(v);
      use.args.push_back({g ? nullptr : e, v});
    }
    if (call_value->global) {
      const Func *f = m.func(call_value->callee);
      if (!f) throw Fault{c.at, fmt::format("no function @{}", name(call_value->callee))};
      made = call(*f, args, {}, c.at);
    } else {
      use.name = call_value->callee, use.attrs = c.attrs, use.wanted = c.type, use.from = c.from, use.at = c.at;
      made = call_operator(use);
    }
    if (made.empty() || made[0].is_scalar() || made[0].type != t || made[0].ref.dims != dims)
      throw Fault{c.at, fmt::format("expected {}, found {}", print(b, c.type), made.empty() ? "nothing" : shape(made[0].ref))};
    return made[0].ref;
  }
  r = Ref::dense(memory, t, dims, true);
  int64_t n = r.count();
  if (auto *l = as<List>(c.value)) {
    if (int64_t(l->items.size()) != n) throw Fault{c.at, fmt::format("expected {} elements, found {}", n, l->items.size())};
    for (int64_t i = 0; i < n; i++) store(t, r.data(), size_t(i), element(l->items[size_t(i)]));
  } else {
    Scalar v = element(c.value);
    for (int64_t i = 0; i < n; i++) store(t, r.data(), size_t(i), v);
  }
  return r;
}

}  // namespace mlc::interp
