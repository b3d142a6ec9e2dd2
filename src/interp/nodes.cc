#include "interp/nodes.h"

#include <cmath>

#include "interp/exec.h"
#include "interp/number.h"

namespace mlc::interp {

int64_t constant_int(const Node &n, Frame &) { return n.k; }
static float constant_f32(const Node &n, Frame &) { return n.kf; }
static double constant_f64(const Node &n, Frame &) { return n.kd; }

namespace {

template <DType D> using Value = typename Num<D>::Value;

void set(Node *n, int64_t (*f)(const Node &, Frame &)) { n->i = f; }
void set(Node *n, float (*f)(const Node &, Frame &)) { n->f = f; }
void set(Node *n, double (*f)(const Node &, Frame &)) { n->d = f; }

// Types that operations are computed in.
template <class F> bool with_computed(DType t, F &&f) {
  switch (t) {
#define MLC_CASE(D) \
  case DType::D: f(std::integral_constant<DType, DType::D>{}); return true;
    MLC_CASE(Bool) MLC_CASE(I8) MLC_CASE(I16) MLC_CASE(I32) MLC_CASE(I64) MLC_CASE(U8) MLC_CASE(U16) MLC_CASE(U32)
    MLC_CASE(U64) MLC_CASE(F32) MLC_CASE(F64)
#undef MLC_CASE
    case DType::Index: f(std::integral_constant<DType, DType::I64>{}); return true;
    default: return false;
  }
}

constexpr bool floating(DType d) { return d == DType::F32 || d == DType::F64; }
constexpr bool unsigned64(DType d) { return d == DType::U64; }

// Integers wrap: the operation is done modulo 2^64, then narrowed. Every other rule is man/mlc-numerics.7.
template <DType D> struct Add {
  static Value<D> of(Value<D> a, Value<D> b) {
    if constexpr (floating(D)) return a + b;
    else return Num<D>::narrow(int64_t(uint64_t(a) + uint64_t(b)));
  }
};
template <DType D> struct Sub {
  static Value<D> of(Value<D> a, Value<D> b) {
    if constexpr (floating(D)) return a - b;
    else return Num<D>::narrow(int64_t(uint64_t(a) - uint64_t(b)));
  }
};
template <DType D> struct Mul {
  static Value<D> of(Value<D> a, Value<D> b) {
    if constexpr (floating(D)) return a * b;
    else return Num<D>::narrow(int64_t(uint64_t(a) * uint64_t(b)));
  }
};
template <DType D> struct Div {
  static Value<D> of(Value<D> a, Value<D> b) {
    if constexpr (floating(D)) return a / b;
    else if (!b) return 0;
    else if (unsigned64(D)) return int64_t(uint64_t(a) / uint64_t(b));
    else if (b == -1) return Num<D>::narrow(int64_t(0 - uint64_t(a)));
    else return Num<D>::narrow(a / b);
  }
};
template <DType D> struct FloorDiv {
  static Value<D> of(Value<D> a, Value<D> b) {
    Value<D> q = Div<D>::of(a, b);
    if constexpr (floating(D)) return std::floor(q);
    else return b && !unsigned64(D) && (a < 0) != (b < 0) && b != -1 && q * b != a ? q - 1 : q;
  }
};
template <DType D> struct Mod {
  static Value<D> of(Value<D> a, Value<D> b) {
    if constexpr (floating(D)) {
      Value<D> r = std::fmod(a, b);
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    } else if (!b || b == -1) {
      return unsigned64(D) && b ? int64_t(uint64_t(a) % uint64_t(b)) : 0;
    } else if (unsigned64(D)) {
      return int64_t(uint64_t(a) % uint64_t(b));
    } else {
      int64_t r = a % b;
      return r && (r < 0) != (b < 0) ? r + b : r;
    }
  }
};
template <DType D> struct FMod {
  static Value<D> of(Value<D> a, Value<D> b) {
    if constexpr (floating(D)) return std::fmod(a, b);
    else if (!b || (b == -1 && !unsigned64(D))) return 0;
    else return unsigned64(D) ? int64_t(uint64_t(a) % uint64_t(b)) : a % b;
  }
};
template <DType D> bool less(Value<D> a, Value<D> b) {
  return unsigned64(D) ? uint64_t(a) < uint64_t(b) : a < b;
}
template <DType D> struct Max {
  static Value<D> of(Value<D> a, Value<D> b) {
    if (a != a) return a;
    return b != b || less<D>(a, b) ? b : a;
  }
};
template <DType D> struct Min {
  static Value<D> of(Value<D> a, Value<D> b) {
    if (a != a) return a;
    return b != b || less<D>(b, a) ? b : a;
  }
};
template <DType D> struct Ipow {
  static Value<D> of(Value<D> x, Value<D> n) {
    if constexpr (floating(D)) return x;
    else {
      if (!unsigned64(D) && n < 0) return x == 1 ? 1 : x == -1 ? (n & 1 ? -1 : 1) : 0;
      uint64_t r = 1, p = uint64_t(x);
      for (uint64_t k = uint64_t(n); k; k >>= 1, p *= p)
        if (k & 1) r *= p;
      return Num<D>::narrow(int64_t(r));
    }
  }
};
template <DType D> struct Shl {
  static Value<D> of(Value<D> a, Value<D> n) {
    if constexpr (floating(D)) return a;
    else return uint64_t(n) >= uint64_t(Num<D>::kBits) ? 0 : Num<D>::narrow(int64_t(uint64_t(a) << n));
  }
};
template <DType D> struct Shr {
  static Value<D> of(Value<D> a, Value<D> n) {
    if constexpr (floating(D)) return a;
    else if (uint64_t(n) >= uint64_t(Num<D>::kBits)) return 0;
    else return unsigned64(D) ? int64_t(uint64_t(a) >> n) : a >> n;
  }
};
template <DType D> struct BitAnd {
  static Value<D> of(Value<D> a, Value<D> b) {
    if constexpr (floating(D)) return a;
    else return a & b;
  }
};
template <DType D> struct BitOr {
  static Value<D> of(Value<D> a, Value<D> b) {
    if constexpr (floating(D)) return a;
    else return a | b;
  }
};
template <DType D> struct BitXor {
  static Value<D> of(Value<D> a, Value<D> b) {
    if constexpr (floating(D)) return a;
    else return a ^ b;
  }
};

template <DType D> struct Eq { static bool of(Value<D> a, Value<D> b) { return a == b; } };
template <DType D> struct Ne { static bool of(Value<D> a, Value<D> b) { return a != b; } };
template <DType D> struct Lt { static bool of(Value<D> a, Value<D> b) { return less<D>(a, b); } };
template <DType D> struct Le {
  static bool of(Value<D> a, Value<D> b) { return unsigned64(D) ? uint64_t(a) <= uint64_t(b) : a <= b; }
};
template <DType D> struct Gt { static bool of(Value<D> a, Value<D> b) { return less<D>(b, a); } };
template <DType D> struct Ge { static bool of(Value<D> a, Value<D> b) { return Le<D>::of(b, a); } };

template <DType D> struct Neg {
  static Value<D> of(Value<D> a) {
    if constexpr (floating(D)) return -a;
    else return Num<D>::narrow(int64_t(0 - uint64_t(a)));
  }
};
template <DType D> struct Abs {
  static Value<D> of(Value<D> a) {
    if constexpr (floating(D)) return std::fabs(a);
    else return a < 0 && !unsigned64(D) ? Num<D>::narrow(int64_t(0 - uint64_t(a))) : a;
  }
};
template <DType D> struct BitNot {
  static Value<D> of(Value<D> a) {
    if constexpr (floating(D)) return a;
    else return Num<D>::narrow(~a);
  }
};
#define MLC_FLOAT_FN(NAME, EXPR)                       \
  template <DType D> struct NAME {                     \
    static Value<D> of(Value<D> a) {                   \
      if constexpr (floating(D)) return EXPR;          \
      else return a;                                   \
    }                                                  \
  };
MLC_FLOAT_FN(Floor, std::floor(a))
MLC_FLOAT_FN(Ceil, std::ceil(a))
MLC_FLOAT_FN(Trunc, std::trunc(a))
MLC_FLOAT_FN(RoundEven, std::nearbyint(a))
MLC_FLOAT_FN(Sqrt, std::sqrt(a))
#undef MLC_FLOAT_FN
template <DType D> struct IsNan { static bool of(Value<D> a) { return a != a; } };
template <DType D> struct IsInf {
  static bool of(Value<D> a) {
    if constexpr (floating(D)) return std::isinf(a);
    else return false;
  }
};

template <template <DType> class F, DType D> Value<D> binary_of(const Node &n, Frame &f) {
  Value<D> a = eval<Value<D>>(n.a, f);
  return F<D>::of(a, eval<Value<D>>(n.b, f));
}
template <template <DType> class F, DType D> int64_t test2_of(const Node &n, Frame &f) {
  Value<D> a = eval<Value<D>>(n.a, f);
  return F<D>::of(a, eval<Value<D>>(n.b, f));
}
template <template <DType> class F, DType D> Value<D> unary_of(const Node &n, Frame &f) {
  return F<D>::of(eval<Value<D>>(n.a, f));
}
template <template <DType> class F, DType D> int64_t test_of(const Node &n, Frame &f) {
  return F<D>::of(eval<Value<D>>(n.a, f));
}
template <template <DType> class F> bool set_binary(Node *n, DType t) {
  return with_computed(t, [&](auto d) { set(n, &binary_of<F, d()>); });
}
template <template <DType> class F> bool set_test2(Node *n, DType t) {
  return with_computed(t, [&](auto d) { set(n, &test2_of<F, d()>); });
}
template <template <DType> class F> bool set_unary(Node *n, DType t) {
  return with_computed(t, [&](auto d) { set(n, &unary_of<F, d()>); });
}
template <template <DType> class F> bool set_test(Node *n, DType t) {
  return with_computed(t, [&](auto d) { set(n, &test_of<F, d()>); });
}

struct BinaryName {
  std::string_view name;
  bool (*set)(Node *, DType);
  bool floats, ints;
};
constexpr BinaryName kBinary[] = {
    {"max", set_binary<Max>, true, true},       {"min", set_binary<Min>, true, true},
    {"fmod", set_binary<FMod>, true, true},     {"ipow", set_binary<Ipow>, false, true},
    {"shl", set_binary<Shl>, false, true},      {"shr", set_binary<Shr>, false, true},
    {"bitand", set_binary<BitAnd>, false, true}, {"bitor", set_binary<BitOr>, false, true},
    {"bitxor", set_binary<BitXor>, false, true},
};
constexpr BinaryName kUnary[] = {
    {"abs", set_unary<Abs>, true, true},       {"bitnot", set_unary<BitNot>, false, true},
    {"floor", set_unary<Floor>, true, false},  {"ceil", set_unary<Ceil>, true, false},
    {"trunc", set_unary<Trunc>, true, false},  {"round_even", set_unary<RoundEven>, true, false},
    {"sqrt", set_unary<Sqrt>, true, false},    {"isnan", set_test<IsNan>, true, true},
    {"isinf", set_test<IsInf>, true, true},
};

int64_t and_of(const Node &n, Frame &f) { return eval<int64_t>(n.a, f) && eval<int64_t>(n.b, f); }
int64_t or_of(const Node &n, Frame &f) { return eval<int64_t>(n.a, f) || eval<int64_t>(n.b, f); }
int64_t not_of(const Node &n, Frame &f) { return !eval<int64_t>(n.a, f); }

template <class V> V where_of(const Node &n, Frame &f) {
  return eval<int64_t>(n.c, f) ? eval<V>(n.a, f) : eval<V>(n.b, f);
}
template <class V> V fma_of(const Node &n, Frame &f) {
  return std::fma(eval<V>(n.a, f), eval<V>(n.b, f), eval<V>(n.c, f));
}
template <class V> V slot_of(const Node &n, Frame &f) {
  V v;
  memcpy(&v, &f.slot[n.k], sizeof v);
  return v;
}
template <DType D> Value<D> narrow_of(const Node &n, Frame &f) { return Num<D>::narrow(eval<Value<D>>(n.a, f)); }

template <class To, class From> To convert_of(const Node &n, Frame &f) { return To(eval<From>(n.a, f)); }
template <class To> To unsigned_of(const Node &n, Frame &f) { return To(uint64_t(eval<int64_t>(n.a, f))); }

template <class V> V value_of(Scalar s) {
  if constexpr (std::is_same_v<V, float>) return s.as_f32();
  else if constexpr (std::is_same_v<V, double>) return s.as_f64();
  else return s.as_int();
}
template <class V> V any_cast_of(const Node &n, Frame &f) {
  return value_of<V>(mlc::cast(eval_any(n.a, f), n.a->type, n.type, n.k));
}
template <class V> V bits_of(const Node &n, Frame &f) {
  return value_of<V>(from_bits(n.type, to_bits(n.a->type, eval_any(n.a, f))));
}

template <DType D> Value<D> load_of(const Node &n, Frame &f) {
  const Access &x = *static_cast<const Access *>(n.more);
  int64_t off = x.cell >= 0 && f.slot[x.cell + 1] ? f.slot[x.cell] : checked_offset(x, f);
  const Buffer &b = f.buffer[x.buffer];
  if (Num<D>::kBits < 8) off += b.first;
  if (b.storage->undefined && b.shadow && !is_defined<D>(b.shadow, off)) undefined_read(x, f, off);
  return Num<D>::load(b.data, off);
}
template <DType D> void store_value(const Access &x, Value<D> v, Frame &f) {
  int64_t off = x.cell >= 0 && f.slot[x.cell + 1] ? f.slot[x.cell] : checked_offset(x, f);
  const Buffer &b = f.buffer[x.buffer];
  if (Num<D>::kBits < 8) off += b.first;
  if (b.storage->undefined && b.shadow) b.storage->undefined -= set_defined<D>(b.shadow, off);
  Num<D>::store(b.data, off, v);
}
template <class V> V traced_load(const Node &n, Frame &f) {
  trace(*static_cast<const Access *>(n.more), false, f);
  return eval<V>(n.a, f);
}
template <DType D> void store_to(const Act &a, Frame &f) {
  const StoreAct &s = *static_cast<const StoreAct *>(a.what);
  store_value<D>(*s.access, eval<Value<D>>(s.value, f), f);
}
template <class V> void set_slot(const Act &a, Frame &f) {
  const SetAct &s = *static_cast<const SetAct *>(a.what);
  V v = eval<V>(s.value, f);
  f.slot[s.slot] = 0;
  memcpy(&f.slot[s.slot], &v, sizeof v);
}

}  // namespace

Scalar eval_any(const Node *n, Frame &f) {
  if (n->type == DType::F64) return Scalar::of_f64(n->d(*n, f));
  if (is_float(n->type)) return Scalar::of_f32(n->f(*n, f));
  return Scalar::of_int(n->i(*n, f));
}

DType computed_in(DType t) {
  if (is_small_float(t)) return DType::F32;
  return is_int(t) && info(t).bits < 8 ? DType::I64 : t;
}

ActFn store_act(DType t) {
  ActFn fn = nullptr;
  with_type(t, [&](auto d) { fn = &store_to<d()>; });
  return fn;
}
void store_scalar(const Access &x, DType t, Scalar v, Frame &f) {
  with_type(t, [&](auto d) { store_value<d()>(x, value_of<Value<d()>>(v), f); });
}
ActFn set_act(DType t) {
  return t == DType::F64 ? set_slot<double> : is_float(t) ? set_slot<float> : set_slot<int64_t>;
}

Node *Nodes::make(DType t, const Node *a, const Node *b, const Node *c) {
  Node n;
  n.type = t, n.a = a, n.b = b, n.c = c;
  return arena.make(n);
}

Node *Nodes::constant(DType t, Scalar v) {
  Node *n = make(t);
  if (t == DType::F64) n->kd = v.as_f64(), n->d = constant_f64;
  else if (is_float(t)) n->kf = v.as_f32(), n->f = constant_f32;
  else n->k = v.as_int(), n->i = constant_int;
  return n;
}

Node *Nodes::slot(DType t, int slot) {
  Node *n = make(t);
  n->k = slot;
  if (t == DType::F64) n->d = slot_of<double>;
  else if (is_float(t)) n->f = slot_of<float>;
  else n->i = slot_of<int64_t>;
  return n;
}

Node *Nodes::narrowed(DType t, Node *n) {
  if (computed_in(t) == t) {
    n->type = t;
    return n;
  }
  Node *w = make(t, n);
  with_type(t, [&](auto d) { set(w, &narrow_of<d()>); });
  return w;
}

Node *Nodes::unary(Op op, const Node *a) {
  Node *n = make(a->type, a);
  if (op == Op::Not) n->i = not_of;
  else set_unary<Neg>(n, computed_in(a->type));
  return op == Op::Not || is_float(a->type) ? n : narrowed(a->type, n);  // -x of a float needs no rounding
}

Node *Nodes::binary(Op op, const Node *a, const Node *b) {
  DType t = a->type, c = computed_in(t);
  Node *n = make(t, a, b);
  switch (op) {
    case Op::Or: n->i = or_of; return n;
    case Op::And: n->i = and_of; return n;
    case Op::Eq: set_test2<Eq>(n, c); break;
    case Op::Ne: set_test2<Ne>(n, c); break;
    case Op::Lt: set_test2<Lt>(n, c); break;
    case Op::Le: set_test2<Le>(n, c); break;
    case Op::Gt: set_test2<Gt>(n, c); break;
    case Op::Ge: set_test2<Ge>(n, c); break;
    case Op::Add: set_binary<Add>(n, c); break;
    case Op::Sub: set_binary<Sub>(n, c); break;
    case Op::Mul: set_binary<Mul>(n, c); break;
    case Op::Div: set_binary<Div>(n, c); break;
    case Op::FloorDiv: set_binary<FloorDiv>(n, c); break;
    case Op::Mod: set_binary<Mod>(n, c); break;
    default: break;
  }
  if (op >= Op::Eq && op <= Op::Ge) {
    n->type = DType::Bool;
    return n;
  }
  return narrowed(t, n);
}

Node *Nodes::jittered(Op op, const Node *a, const Node *b) {
  if (!is_float(a->type) || (op != Op::Add && op != Op::Sub && op != Op::Mul)) return binary(op, a, b);
  Node *n = make(a->type, a, b);
  set_jittered(n, op);
  return n;
}

Node *Nodes::where(const Node *c, const Node *a, const Node *b) {
  Node *n = make(a->type, a, b, c);
  if (a->type == DType::F64) n->d = where_of<double>;
  else if (is_float(a->type)) n->f = where_of<float>;
  else n->i = where_of<int64_t>;
  return n;
}

Node *Nodes::builtin(std::string_view name, const Node *a, const Node *b, const Node *c) {
  if (name == "clamp") return builtin("min", builtin("max", a, b, nullptr), c, nullptr);
  DType t = a->type, k = computed_in(t);
  if (name == "fma") {
    Node *n = make(t, a, b, c);
    if (k == DType::F64) n->d = fma_of<double>;
    else n->f = fma_of<float>;
    return narrowed(t, n);
  }
  for (const BinaryName &e : b ? std::span<const BinaryName>(kBinary) : std::span<const BinaryName>(kUnary)) {
    if (e.name != name) continue;
    if (is_float(t) ? !e.floats : !e.ints) return nullptr;
    Node *n = make(t, a, b);
    if (name == "shl" || name == "shr") {  // the width is that of the type itself
      if (k != t) return packed_shift(name == "shl", a, b);
    }
    if (!e.set(n, k)) return nullptr;
    if (name == "isnan" || name == "isinf") {
      n->type = DType::Bool;
      return n;
    }
    return narrowed(t, n);
  }
  return nullptr;
}

Node *Nodes::packed_shift(bool left, const Node *a, const Node *n) {
  // A shift of a packed integer by its width or more (or by less than 0) is 0.
  Node *shifted = make(DType::I64, a, n);
  left ? set_binary<Shl>(shifted, DType::I64) : set_binary<Shr>(shifted, DType::I64);
  DType t = a->type;
  Node *wide = make(DType::Bool, n, constant(DType::I64, Scalar::of_int(info(t).bits)));
  set_test2<Lt>(wide, DType::U64);
  return where(wide, narrowed(t, shifted), constant(t, {}));
}

Node *Nodes::cast(DType to, const Node *a, bool saturate) {
  DType from = a->type;
  Node *n = make(to, a);
  bool ints = !is_float(from) && !is_float(to);
  if (from == to) return const_cast<Node *>(a);
  if (ints) {
    with_type(to, [&](auto d) {
      if constexpr (std::is_same_v<Value<d()>, int64_t>) set(n, &narrow_of<d()>);
    });
  } else if (to == DType::F32 && is_small_float(from)) {
    n->f = convert_of<float, float>;
  } else if (to == DType::F64 && from != DType::F64 && is_float(from)) {
    n->d = convert_of<double, float>;
  } else if (to == DType::F32 && from == DType::F64) {
    n->f = convert_of<float, double>;
  } else if (to == DType::F32 && !is_float(from)) {
    n->f = from == DType::U64 ? unsigned_of<float> : convert_of<float, int64_t>;
  } else if (to == DType::F64 && !is_float(from)) {
    n->d = from == DType::U64 ? unsigned_of<double> : convert_of<double, int64_t>;
  } else {
    n->k = saturate;
    if (is_float(to)) n->f = any_cast_of<float>;
    else n->i = any_cast_of<int64_t>;
  }
  return n;
}

Node *Nodes::bits(DType to, const Node *a) {
  Node *n = make(to, a);
  if (to == DType::F64) n->d = bits_of<double>;
  else if (is_float(to)) n->f = bits_of<float>;
  else n->i = bits_of<int64_t>;
  return n;
}

Node *Nodes::traced(const Node *load) {
  Node *n = make(load->type, load);
  n->more = load->more;
  if (load->type == DType::F64) n->d = traced_load<double>;
  else if (is_float(load->type)) n->f = traced_load<float>;
  else n->i = traced_load<int64_t>;
  return n;
}

Node *Nodes::load(DType t, const Access *access) {
  Node *n = make(t);
  n->more = access;
  with_type(t, [&](auto d) { set(n, &load_of<d()>); });
  return n;
}

}  // namespace mlc::interp
