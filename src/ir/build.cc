#include "ir/build.h"

#include <bit>

#include "ir/words.h"
#include "num/literal.h"

namespace mlc {

namespace {

uint64_t mix(uint64_t h, uint64_t v) {
  __uint128_t m = __uint128_t(h ^ v ^ 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;
  return uint64_t(m) ^ uint64_t(m >> 64);
}

uint64_t hash_type(const Type &t) {
  uint64_t h = mix(uint64_t(t.elem) | uint64_t(t.tensor) << 8, t.scope.id);
  h = mix(h, t.device.id | uint64_t(uint32_t(t.device_index)) << 32);
  for (const Expr *d : t.dims) h = mix(h, hash(d));
  for (const Attr &a : t.attrs) h = mix(mix(h, a.key.id), hash(a.value));
  return h;
}

bool same_type(const Type &a, const Type &b) {
  return a.elem == b.elem && a.tensor == b.tensor && a.scope == b.scope && a.device == b.device &&
         a.device_index == b.device_index && equal(a.dims, b.dims) && equal(a.attrs, b.attrs);
}

}  // namespace

Build::Build() : types_(1 << 8), index_(scalar(DType::Index)) {
  for (std::string_view word : reserved_words()) reserved_ = names.intern(word).id;
}

static_assert(sizeof(Int) == 16 && sizeof(Unary) == 16 && sizeof(Binary) == 24);

const Int *Build::integer(int64_t v, uint32_t at, bool wide) { return arena.make(Int{{{at, Kind::Int}}, wide, v}); }
const Float *Build::number(double v, uint32_t at, uint64_t nan_bits) {
  return arena.make(Float{{{at, Kind::Float}}, v, nan_bits});
}
const Float *Build::number(double v, DType t) { return number(fewest_digits(v, t)); }
const Bool *Build::boolean(bool v, uint32_t at) { return arena.make(Bool{{{at, Kind::Bool}}, v}); }
const Str *Build::string(std::string_view s, uint32_t at) { return arena.make(Str{{{at, Kind::Str}}, arena.text(s)}); }
const Str *Build::string_in_place(std::string_view s, uint32_t at) { return arena.make(Str{{{at, Kind::Str}}, s}); }
const None *Build::none(uint32_t at) { return arena.make(None{{{at, Kind::None}}}); }
const Name *Build::name(Sym s, uint32_t at) { return arena.make(Name{{{at, Kind::Name}}, s}); }
const Global *Build::global(Sym s, uint32_t at) { return arena.make(Global{{{at, Kind::Global}}, s}); }
const Load *Build::load(Sym buffer, Exprs index, uint32_t at, bool global) {
  return arena.make(Load{{{at, Kind::Load}}, global, buffer, index});
}
const Range *Build::range(const Expr *lo, const Expr *extent, uint32_t at) {
  return arena.make(Range{{{at, Kind::Range}}, lo, extent});
}
const All *Build::all(uint32_t at) { return arena.make(All{{{at, Kind::All}}}); }
const Call *Build::call(Sym callee, Exprs args, uint32_t at, bool global, Iters iters) {
  return arena.make(Call{{{at, Kind::Call}}, global, callee, args, iters});
}
const Expr *Build::unary(Op op, const Expr *a, uint32_t at) {
  if (op == Op::Neg) {
    if (auto f = as<Float>(a)) return number(-f->value, at, f->nan_bits);
    constexpr int64_t kMin = INT64_MIN;
    if (auto i = as<Int>(a); i && (i->wide ? i->value == kMin : i->value != kMin))
      return integer(i->wide ? kMin : -i->value, at);
  }
  return arena.make(Unary{{{at, Kind::Unary}}, op, a});
}
const Binary *Build::binary(Op op, const Expr *a, const Expr *b, uint32_t at) {
  return arena.make(Binary{{{at, Kind::Binary}}, op, a, b});
}
const List *Build::make_list(Exprs items, uint32_t at) { return arena.make(List{{{at, Kind::List}}, items}); }
const Map *Build::map(const List *from, const List *to, uint32_t at) {
  return arena.make(Map{{{at, Kind::Map}}, from, to});
}

const Type *Build::type(const Type &t) {
  if (2 * type_count_ >= types_.size()) {
    std::vector<Slot> old(2 * types_.size());
    old.swap(types_);
    for (const Slot &s : old) {
      if (!s.type) continue;
      size_t i = s.hash & (types_.size() - 1);
      while (types_[i].type) i = (i + 1) & (types_.size() - 1);
      types_[i] = s;
    }
  }
  uint64_t h = hash_type(t);
  size_t i = h & (types_.size() - 1);
  for (; types_[i].type; i = (i + 1) & (types_.size() - 1))
    if (types_[i].hash == h && same_type(*types_[i].type, t)) return types_[i].type;
  types_[i] = {h, arena.make(t)};
  ++type_count_;
  return types_[i].type;
}
const Type *Build::with_elem(const Type *t, DType elem) {
  Type u = *t;
  u.elem = elem;
  return type(u);
}
const Type *Build::with_dims(const Type *t, Exprs dims) {
  Type u = *t;
  u.dims = dims;
  return type(u);
}

Sym Fresh::make(std::string_view base) {
  Sym s = b_.sym(base);
  auto [it, first] = taken_.try_emplace(s, 0);
  if (first) return s;
  for (int n = it->second + 1;; ++n) {
    Sym next = b_.sym(std::string(base) + "_" + std::to_string(n));
    if (!taken_.try_emplace(next, 0).second) continue;
    taken_[s] = n;
    return next;
  }
}

const Expr *attr(Attrs attrs, Sym key) {
  for (const Attr &a : attrs)
    if (a.key == key) return a.value;
  return nullptr;
}
const Expr *attr(const Build &b, Attrs attrs, std::string_view key) {
  if (attrs.empty()) return nullptr;
  Sym s = b.names.find(key);
  return s ? attr(attrs, s) : nullptr;
}
bool int_value(const Expr *e, int64_t *v) {
  const Int *i = as<Int>(e);
  if (!i || i->wide) return false;
  *v = i->value;
  return true;
}
bool is_int(const Expr *e, int64_t v) {
  int64_t found;
  return int_value(e, &found) && found == v;
}
bool all_static(const Type *t, std::vector<int64_t> *dims) {
  if (dims) dims->clear();
  for (const Expr *d : t->dims) {
    int64_t v;
    if (!int_value(d, &v)) return false;
    if (dims) dims->push_back(v);
  }
  return true;
}

uint64_t hash(const Expr *e) {
  if (!e) return 0;
  uint64_t h = mix(0, uint64_t(e->kind));
  auto all = [&](Exprs l) {
    h = mix(h, l.size());
    for (const Expr *x : l) h = mix(h, hash(x));
  };
  switch (e->kind) {
    case Kind::Int: return mix(h, uint64_t(to<Int>(e).value) + to<Int>(e).wide);
    case Kind::Float: return mix(mix(h, std::bit_cast<uint64_t>(to<Float>(e).value)), to<Float>(e).nan_bits);
    case Kind::Bool: return mix(h, to<Bool>(e).value);
    case Kind::Str: return mix(h, Names::hash(to<Str>(e).value));
    case Kind::Name: return mix(h, to<Name>(e).name.id);
    case Kind::Global: return mix(h, to<Global>(e).name.id);
    case Kind::Load:
      h = mix(h, to<Load>(e).buffer.id + (uint64_t(to<Load>(e).global) << 32));
      all(to<Load>(e).index);
      return h;
    case Kind::Range: return mix(mix(h, hash(to<Range>(e).lo)), hash(to<Range>(e).extent));
    case Kind::Call: {
      auto &c = to<Call>(e);
      h = mix(h, c.callee.id + (uint64_t(c.global) << 32));
      all(c.args);
      for (const Iter &i : c.iters) h = mix(mix(h, i.name.id), hash(i.extent));
      return h;
    }
    case Kind::Unary: return mix(mix(h, uint64_t(to<Unary>(e).op)), hash(to<Unary>(e).a));
    case Kind::Binary: {
      auto &b = to<Binary>(e);
      return mix(mix(mix(h, uint64_t(b.op)), hash(b.a)), hash(b.b));
    }
    case Kind::List: all(to<List>(e).items); return h;
    case Kind::Map: return mix(mix(h, hash(to<Map>(e).from)), hash(to<Map>(e).to));
    default: return h;  // None, All
  }
}

}  // namespace mlc
