#include "interp/exec.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cmath>

#include "interp/jitter.h"
#include "interp/machine.h"
#include "interp/number.h"

namespace mlc::interp {

std::string_view name_of(const Frame &f, Sym s) { return f.machine->b.text(s); }

namespace {

// slot += n * step, modulo 2^64
void move(int64_t &cell, int64_t n, int64_t step) { cell = int64_t(uint64_t(cell) + uint64_t(n) * uint64_t(step)); }

// All turns of one loop. Cells follow it, and are as before at its end.
template <class Body> void turns(const LoopInfo &l, Frame &f, Body &&body) {
  int64_t n = l.known ? f.slot[l.extent] : f.slot[l.extent] = eval<int64_t>(l.count, f);
  if (n <= 0) return;
  f.machine->take_turns(n);
  Races *races = l.marked ? f.machine->races.get() : nullptr;
  const Turn *outer = races ? races->path() : nullptr;
  int64_t run = races ? races->enter() : 0;
  if (l.free_order && f.machine->options.backwards) {
    for (const Step &s : l.steps) move(f.slot[s.cell], n - 1, f.slot[s.step]);
    for (int64_t v = n; v-- > 0;) {
      f.slot[l.var] = v;
      if (races) races->turn(l, run, v, outer);
      body();
      for (const Step &s : l.steps) move(f.slot[s.cell], -1, f.slot[s.step]);
    }
    for (const Step &s : l.steps) move(f.slot[s.cell], 1, f.slot[s.step]);
    if (races) races->leave(outer);
    return;
  }
  for (int64_t v = 0; v < n; v++) {
    f.slot[l.var] = v;
    if (races) races->turn(l, run, v, outer);
    body();
    for (const Step &s : l.steps) move(f.slot[s.cell], 1, f.slot[s.step]);
  }
  for (const Step &s : l.steps) move(f.slot[s.cell], -n, f.slot[s.step]);
  if (races) races->leave(outer);
}

template <class Body> void nest(std::span<const LoopInfo *const> loops, Frame &f, Body &body) {
  if (loops.empty()) return body();
  turns(*loops[0], f, [&] { loops.size() == 1 ? body() : nest(loops.subspan(1), f, body); });
}

// ---- reductions: folded from the identity, in order, in the element type

template <DType D> using Value = typename Num<D>::Value;
template <DType D> constexpr bool kFloating = !std::is_same_v<Value<D>, int64_t>;

template <DType D> struct Sum {
  static Value<D> start() { return 0; }
  static Value<D> step(Value<D> a, Value<D> b) {
    if constexpr (kFloating<D>) return a + b;
    else return int64_t(uint64_t(a) + uint64_t(b));
  }
};
template <DType D> struct Prod {
  static Value<D> start() { return 1; }
  static Value<D> step(Value<D> a, Value<D> b) {
    if constexpr (kFloating<D>) return a * b;
    else return int64_t(uint64_t(a) * uint64_t(b));
  }
};
template <DType D> bool less(Value<D> a, Value<D> b) {
  if constexpr (D == DType::U64) return uint64_t(a) < uint64_t(b);
  else return a < b;
}
template <DType D> struct Max {
  static Value<D> start() {
    if constexpr (kFloating<D>) return -Value<D>(INFINITY);
    else return lowest(D).as_int();
  }
  static Value<D> step(Value<D> a, Value<D> b) {
    if (a != a) return a;
    return b != b || less<D>(a, b) ? b : a;
  }
};
template <DType D> struct Min {
  static Value<D> start() {
    if constexpr (kFloating<D>) return Value<D>(INFINITY);
    else return highest(D).as_int();
  }
  static Value<D> step(Value<D> a, Value<D> b) {
    if (a != a) return a;
    return b != b || less<D>(b, a) ? b : a;
  }
};

template <template <DType> class F, DType D> Value<D> reduce(const Node &n, Frame &f) {
  const auto &r = *static_cast<const Reduction *>(n.more);
  Value<D> acc = F<D>::start();
  auto body = [&] { acc = Num<D>::narrow(F<D>::step(acc, eval<Value<D>>(n.a, f))); };
  nest(r.loops, f, body);
  return acc;
}
int64_t all_of(const Node &n, Frame &f) {
  int64_t acc = 1;
  auto body = [&] { acc &= eval<int64_t>(n.a, f); };
  nest(static_cast<const Reduction *>(n.more)->loops, f, body);
  return acc;
}
int64_t any_of(const Node &n, Frame &f) {
  int64_t acc = 0;
  auto body = [&] { acc |= eval<int64_t>(n.a, f); };
  nest(static_cast<const Reduction *>(n.more)->loops, f, body);
  return acc;
}

void set(Node *n, int64_t (*f)(const Node &, Frame &)) { n->i = f; }
void set(Node *n, float (*f)(const Node &, Frame &)) { n->f = f; }
void set(Node *n, double (*f)(const Node &, Frame &)) { n->d = f; }
template <template <DType> class F> void set_as(Node *n) {
  with_type(n->type, [&](auto d) { set(n, &reduce<F, d()>); });
}

// ---- the same with noise

template <DType D, Kick s> Value<D> jittered_reduce(const Node &n, Frame &f) {
  Value<D> acc = s == Kick::Mul;
  auto body = [&] { acc = jittered<D, s>(acc, eval<Value<D>>(n.a, f), f.machine->noise); };
  nest(static_cast<const Reduction *>(n.more)->loops, f, body);
  return acc;
}

template <DType D, Kick s> Value<D> jittered_of(const Node &n, Frame &f) {
  Value<D> a = eval<Value<D>>(n.a, f);
  return jittered<D, s>(a, eval<Value<D>>(n.b, f), f.machine->noise);
}

// ---- functions of scalars, in a frame of their own

constexpr int kSmall = 64;
struct Slots {  // of a Lambda; on the stack unless there are many
  explicit Slots(int n) : many(n > kSmall ? new int64_t[size_t(n)] : nullptr), p(many ? many.get() : few) {}
  int64_t few[kSmall];
  std::unique_ptr<int64_t[]> many;
  int64_t *p;
};
int64_t *combine(const Apply &a, Frame &f, Slots &s) {
  for (size_t i = 0; i < a.args.size(); i++) s.p[a.fn->params[i]] = int64_t(eval_any(a.args[i], f).bits);
  Frame inner{s.p, nullptr, f.unit, f.machine, nullptr};
  run(a.fn->body, inner);
  return s.p;
}
void fold_into(const Fold &x, Frame &f, int64_t *acc) {
  const Lambda &fn = *x.fn;
  Slots s(fn.slots);
  Frame inner{s.p, nullptr, f.unit, f.machine, nullptr};
  run(fn.init, inner);
  size_t n = fn.results.size();
  for (size_t i = 0; i < n; i++) acc[i] = s.p[fn.inits[i]];
  auto body = [&] {
    for (size_t i = 0; i < n; i++) s.p[fn.params[n + i]] = int64_t(eval_any(x.args[i], f).bits);
    for (size_t i = 0; i < n; i++) s.p[fn.params[i]] = acc[i];
    run(fn.body, inner);
    for (size_t i = 0; i < n; i++) acc[i] = s.p[fn.results[i]];
  };
  nest(x.loops, f, body);
}

template <class V> V from_slot(int64_t slot) {
  V v;
  memcpy(&v, &slot, sizeof v);
  return v;
}
template <class V> V apply_of(const Node &n, Frame &f) {
  const Apply &a = *static_cast<const Apply *>(n.more);
  Slots s(a.fn->slots);
  return from_slot<V>(combine(a, f, s)[a.fn->results[0]]);
}
template <class V> V fold_of(const Node &n, Frame &f) {
  int64_t acc[1];
  fold_into(*static_cast<const Fold *>(n.more), f, acc);
  return from_slot<V>(acc[0]);
}

}  // namespace

void set_reduction(Node *n, std::string_view kind) {
  if (kind == "sum") set_as<Sum>(n);
  else if (kind == "prod") set_as<Prod>(n);
  else if (kind == "max") set_as<Max>(n);
  else if (kind == "min") set_as<Min>(n);
  else n->i = kind == "all" ? all_of : any_of;
}
void jitter_reduction(Node *n, std::string_view kind) {
  if (!is_float(n->type) || (kind != "sum" && kind != "prod")) return;
  with_type(n->type, [&](auto d) {
    if constexpr (kFloating<d()>)
      set(n, kind == "sum" ? &jittered_reduce<d(), Kick::Add> : &jittered_reduce<d(), Kick::Mul>);
  });
}
void set_jittered(Node *n, Op op) {
  with_type(n->type, [&](auto d) {
    if constexpr (kFloating<d()>)
      set(n, op == Op::Add   ? &jittered_of<d(), Kick::Add>
             : op == Op::Sub ? &jittered_of<d(), Kick::Sub>
                             : &jittered_of<d(), Kick::Mul>);
  });
}
void set_fold(Node *n) {
  if (n->type == DType::F64) n->d = fold_of<double>;
  else if (is_float(n->type)) n->f = fold_of<float>;
  else n->i = fold_of<int64_t>;
}
void set_apply(Node *n) {
  if (n->type == DType::F64) n->d = apply_of<double>;
  else if (is_float(n->type)) n->f = apply_of<float>;
  else n->i = apply_of<int64_t>;
}

// ---- faults

int64_t checked_offset(const Access &x, Frame &f) {
  const BufferInfo &b = f.unit->buffers[size_t(x.buffer)];
  uint64_t off = 0;
  bool inside = true;
  std::vector<int64_t> index;
  for (size_t d = 0; d < x.index.size(); d++) {
    int64_t i = eval<int64_t>(x.index[d], f);
    inside &= uint64_t(i) < uint64_t(f.slot[b.dims[d]]);
    off += uint64_t(i) * uint64_t(f.slot[b.strides[d]]);
  }
  if (inside) return int64_t(off);
  for (size_t d = 0; d < x.index.size(); d++) index.push_back(eval<int64_t>(x.index[d], f));
  size_t d = 0;
  while (uint64_t(index[d]) < uint64_t(f.slot[b.dims[d]])) d++;
  throw Fault{x.at, fmt::format("{}[{}] is outside: index {} of dimension {} is not in 0 .. {}", name_of(f, b.name),
                                fmt::join(index, ", "), index[d], d, f.slot[b.dims[d]] - 1)};
}

void undefined_read(const Access &x, Frame &f, int64_t) {
  const BufferInfo &b = f.unit->buffers[size_t(x.buffer)];
  std::vector<int64_t> index;
  for (const Node *n : x.index) index.push_back(eval<int64_t>(n, f));
  throw Fault{x.at, fmt::format("{}[{}] is read before it is written", name_of(f, b.name), fmt::join(index, ", "))};
}

// ---- statements

void run_loop(const Act &a, Frame &f) {
  const auto &l = *static_cast<const LoopAct *>(a.what);
  turns(*l.loop, f, [&] { run(l.body, f); });
}

void run_if(const Act &a, Frame &f) {
  const auto &s = *static_cast<const IfAct *>(a.what);
  run(eval<int64_t>(s.cond, f) ? s.body : s.other, f);
}

void run_while(const Act &a, Frame &f) {
  const auto &s = *static_cast<const WhileAct *>(a.what);
  for (; eval<int64_t>(s.cond, f); run(s.body, f)) f.machine->take_turns(1);
}

void run_assume(const Act &a, Frame &f) {
  const auto &s = *static_cast<const AssumeAct *>(a.what);
  if (!eval<int64_t>(s.cond, f)) throw Fault{a.at, s.message};
}

void run_block(const Act &a, Frame &f) {
  const auto &s = *static_cast<const BlockAct *>(a.what);
  if (s.guard && !eval<int64_t>(s.guard, f)) return;
  bool first = true;
  for (const AxisRun &x : s.axes) {
    if (x.binding) f.slot[x.slot] = eval<int64_t>(x.binding, f);
    int64_t v = f.slot[x.slot];
    if (x.proved < 0 || !f.slot[x.proved]) {
      int64_t n = eval<int64_t>(x.domain, f);
      if (uint64_t(v) >= uint64_t(n < 0 ? 0 : n))
        throw Fault{a.at, fmt::format("axis {} of block {} is {}, outside its domain 0 .. {}", name_of(f, x.name),
                                      name_of(f, s.name), v, n - 1)};
    }
    if (x.kind != AxisKind::Spatial && v) first = false;
  }
  if (first) run(s.inits, f);
  run(s.body, f);
}

void run_domain(const Act &a, Frame &f) {
  const auto &s = *static_cast<const DomainAct *>(a.what);
  for (auto [extent, dim] : s.pairs)
    if (int64_t n = eval<int64_t>(extent, f); n != f.slot[dim])
      throw Fault{a.at,
                  fmt::format("compute {} over {}, but the dimension of it is {}", name_of(f, s.name), n, f.slot[dim])};
}

namespace {

// Dimensions of a buffer that are not known before the kernel starts.
void set_dims(const BufferInfo &b, Frame &f) {
  for (size_t d = 0; d < b.dims.size(); d++) f.slot[b.dims[d]] = eval<int64_t>(b.dim_nodes[d], f);
}
void set_strides(const BufferInfo &b, Frame &f) {
  int64_t s = 1;
  for (size_t d = b.dims.size(); d-- > 0;) {
    f.slot[b.strides[d]] = s;
    if (__builtin_mul_overflow(s, std::max<int64_t>(f.slot[b.dims[d]], 1), &s)) s = 0;
  }
}

}  // namespace

void run_alloc(const Act &a, Frame &f) {
  const auto &s = *static_cast<const AllocAct *>(a.what);
  const BufferInfo &info = f.unit->buffers[size_t(s.buffer)];
  if (!info.known) set_dims(info, f), set_strides(info, f);
  std::vector<int64_t> dims;
  for (int d : info.dims) dims.push_back(f.slot[d]);
  Buffer &b = f.buffer[s.buffer];
  try {
    int64_t bytes = bytes_of(info.elem, dims.data(), dims.size());
    if (s.base < 0) {
      StorageRef &own = (*f.owned)[size_t(s.buffer)];
      if (own && own->size == bytes) own->forget();
      else own = nullptr, own = f.machine->memory.make(bytes, false);
      b = {own->bytes, own->shadow, own.get(), 0};
      return;
    }
    const Buffer &base = f.buffer[s.base];
    int64_t at = eval<int64_t>(s.offset, f) + (base.data - base.storage->bytes);
    if (at < base.data - base.storage->bytes || base.first || at > base.storage->size - bytes)
      throw Fault{a.at, fmt::format("{} bytes at {} of {} go beyond its end", bytes, eval<int64_t>(s.offset, f),
                                    name_of(f, f.unit->buffers[size_t(s.base)].name))};
    b = {base.storage->bytes + at, base.shadow ? base.storage->shadow + at : nullptr, base.storage, 0};
  } catch (Fault &e) {
    throw Fault{e.at == kNowhere ? a.at : e.at, fmt::format("alloc {}: {}", name_of(f, info.name), e.message)};
  }
}

void run_fold(const Act &a, Frame &f) {
  const auto &s = *static_cast<const FoldAct *>(a.what);
  std::vector<int64_t> acc(s.targets.size());
  fold_into(*s.fold, f, acc.data());
  for (size_t i = 0; i < acc.size(); i++) {
    store_scalar(*s.targets[i], s.types[i], Scalar{uint64_t(acc[i])}, f);
    if (f.machine->races) trace(*s.targets[i], true, f);
  }
}

void run_apply(const Act &a, Frame &f) {
  const auto &s = *static_cast<const ApplyAct *>(a.what);
  Slots slots(s.apply->fn->slots);
  int64_t *p = combine(*s.apply, f, slots);
  for (size_t i = 0; i < s.slots.size(); i++) f.slot[s.slots[i]] = p[s.apply->fn->results[i]];
}

// ---- the start of a kernel: what is known before its first statement

namespace {

int64_t clamp128(Wide v) { return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : int64_t(v); }

void set_cell(const Unit &u, const CellPlan &p, Frame &f) {
  const BufferInfo *b = p.buffer >= 0 ? &u.buffers[size_t(p.buffer)] : nullptr;
  uint64_t base = 0;
  bool inside = b || p.domain >= 0;
  for (auto [loop, step] : p.steps) f.slot[step] = 0;
  for (size_t d = 0; d < p.index.size(); d++) {
    const Linear &x = p.index[d];
    uint64_t stride = b ? uint64_t(f.slot[b->strides[d]]) : 1;
    int64_t dim = b ? f.slot[b->dims[d]] : inside ? f.slot[p.domain] : 0;
    int64_t start = eval<int64_t>(x.base, f);
    base += uint64_t(start) * stride;
    Wide lo = start, hi = start;
    for (const Term &t : x.terms) {
      const LoopInfo &l = *u.loops[size_t(t.loop)];
      int64_t coef = eval<int64_t>(t.coef, f);
      for (auto [loop, step] : p.steps)
        if (loop == t.loop) f.slot[step] = int64_t(uint64_t(f.slot[step]) + uint64_t(coef) * stride);
      if (!l.known) {
        inside = false;
        continue;
      }
      Wide far = Wide(coef) * (std::max<int64_t>(f.slot[l.extent], 1) - 1);
      (far < 0 ? lo : hi) = clamp128((far < 0 ? lo : hi) + far);
    }
    inside &= lo >= 0 && hi < dim;
  }
  f.slot[p.cell] = int64_t(base);
  f.slot[p.cell + 1] = inside;
}

}  // namespace

void start(const Unit &u, Frame &f) {
  for (const auto &l : u.loops)
    if (l->known) f.slot[l->extent] = eval<int64_t>(l->count, f);
  for (auto [slot, node] : u.domains) f.slot[slot] = eval<int64_t>(node, f);
  for (const BufferInfo &b : u.buffers)
    if (b.known && !b.dim_nodes.empty()) {
      set_dims(b, f);
      if (b.own_strides) set_strides(b, f);
    }
  for (const CellPlan &p : u.cells) set_cell(u, p, f);
  run(u.body, f);
}

}  // namespace mlc::interp
