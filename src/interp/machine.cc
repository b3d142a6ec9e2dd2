#include "interp/machine.h"

#include <fmt/core.h>

#include "math/math.h"
#include "text/text.h"

namespace mlc::interp {

Machine::Machine(Build &b, const Module &m, const RunOptions &o)
    : b(b), m(m), options(o), noise(o.jitter), files_(o.folders, o.module_path) {
  memory.limit = o.memory;
  memory.check = o.check_undefined && !o.kernels;
  if (o.races) races = std::make_unique<Races>();
}

void Machine::too_many_turns() const {
  Fault f{kNowhere, fmt::format("the loops take more than {} turns", options.turns)};
  f.endless = true;
  throw f;
}

// ---- compiled functions

Compiler Machine::compiler(const Module &home) {
  return Compiler({b, home, nodes_, kept_, options.jitter != 0, options.races, [this](const Func *f) { return lambda(f); },
                   [this](std::string_view name, DType t, bool fused) { return scalar_function(b, math(), name, t, fused); }});
}

const Unit *Machine::unit(const Func &f, Stmts body, const Notes &notes) {
  const Unit *&u = units_[&f];
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

std::string Machine::origin(Syms from) const {
  std::string s;
  for (Sym f : from) s += (s.empty() ? " from " : ", ") + quote(b.text(f));
  return s;
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
    throw Fault{e.at == kNowhere ? c->at : e.at, fmt::format("constant @{}: {}", name(n), e.message), true, true};
  }
}

Ref Machine::read_constant(const Const &c) {
  std::vector<int64_t> dims;
  if (!all_static(c.type, &dims))
    throw Fault{c.at, fmt::format("expected literal dimensions, found {}", print(b, c.type))};
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
    if (auto *s = as<Str>(e); s && t == DType::Str) return Scalar::of_int(strings.number(s->value));
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
      throw Fault{
          c.at, fmt::format("expected {}, found {}", print(b, c.type), made.empty() ? "nothing" : made[0].text())};
    return made[0].ref;
  }
  r = Ref::dense(memory, t, dims, true);
  int64_t n = r.count();
  if (auto *l = as<List>(c.value)) {
    if (int64_t(l->items.size()) != n)
      throw Fault{c.at, fmt::format("expected {} elements, found {}", n, l->items.size())};
    for (int64_t i = 0; i < n; i++) store(stored(t), r.data(), size_t(i), element(l->items[size_t(i)]));
  } else {
    Scalar v = element(c.value);
    for (int64_t i = 0; i < n; i++) store(stored(t), r.data(), size_t(i), v);
  }
  return r;
}

}  // namespace mlc::interp
