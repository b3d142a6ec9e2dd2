// Calls of functions: arguments bound to parameters, dimensions solved, results made or checked.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "interp/exec.h"
#include "interp/machine.h"
#include "interp/runner.h"
#include "text/text.h"

namespace mlc::interp {

namespace {

const char *kind_name(FuncKind k) {
  constexpr const char *kNames[] = {"graph", "group", "kernel", "scalar", "reducer", "extern", "intrinsic"};
  return kNames[size_t(k)];
}

bool mentions_in_strides(const Build &b, const Def &d, Sym name) {
  auto *l = as<List>(attr(b, d.type->attrs, "strides"));
  return l && std::any_of(l->items.begin(), l->items.end(), [&](const Expr *e) { return mentions(e, name); });
}

// The description of an extern or intrinsic, or null.
const Part *description(const Func &f) {
  for (const Part &p : f.parts)
    if (p.desc) return &p;
  return nullptr;
}

// One call.
class Call {
 public:
  Call(Machine &m, const Func &f, std::vector<Value> &args, std::vector<Value> &into, uint32_t at,
       std::string_view what)
      : m_(m), b_(m.b), f_(f), args_(args), into_(into), at_(at), what_(what) {}

  IndexValues names;

  // Every argument is what its parameter says, and every destination; `names` are solved.
  void bind() {
    size_t given = 0;
    for (const Param &p : f_.params) given += p.mode != Mode::Scratch;
    own_scratch_ = args_.size() == given && given < f_.params.size();
    if (!own_scratch_ && args_.size() != f_.params.size())
      fail("{} has {} parameters, found {} arguments", what_, f_.params.size(), args_.size());
    if (!into_.empty() && into_.size() != f_.results.size())
      fail("{} has {} results, found {} destinations", what_, f_.results.size(), into_.size());
    for (size_t i = 0; i < f_.params.size(); i++) {
      bool own = own_scratch_ && f_.params[i].mode == Mode::Scratch;
      if (own) args_.insert(args_.begin() + ptrdiff_t(i), Value{});
      else take(f_.params[i].def, args_[i]);
    }
    for (size_t i = 0; i < into_.size(); i++) take(f_.results[i], into_[i]);
    solve_names();
    for (size_t i = 0; own_scratch_ && i < args_.size(); i++)
      if (f_.params[i].mode == Mode::Scratch) args_[i] = made(f_.params[i].def);
  }

  Value made(const Def &d) {
    try {
      std::vector<int64_t> dims;
      for (const Expr *e : d.type->dims) dims.push_back(m_.dim(e, names));
      return Value::of(m_.make(d.type->elem, dims));
    } catch (Fault &e) {
      fail("{} of {}: {}", b_.text(d.name), what_, e.message);
    }
  }

  // What a kernel is given to write is undefined, but where it works in place.
  void forget(bool fresh) {
    for (size_t i = 0; !fresh && i < into_.size(); i++) {
      bool shared = std::any_of(args_.begin(), args_.end(),
                                [&](const Value &a) { return !a.is_scalar() && a.ref.overlaps(into_[i].ref); });
      if (!shared) into_[i].ref.forget();
    }
    for (size_t i = 0; i < args_.size(); i++)
      if (f_.params[i].mode == Mode::Scratch && !args_[i].is_scalar()) args_[i].ref.forget();
  }

  void check_overlap() const;

  void check_written() const {
    std::vector<int64_t> index;
    for (size_t i = 0; i < into_.size(); i++)
      if (into_[i].ref.find_undefined(&index))
        throw Fault{f_.results[i].at,
                    fmt::format("{}[{}] is never written", b_.text(f_.results[i].name), fmt::join(index, ", "))};
  }

 private:
  template <class... A> [[noreturn]] void fail(fmt::format_string<A...> f, A &&...a) const {
    throw Fault{at_, fmt::format(f, std::forward<A>(a)...)};
  }
  [[noreturn]] void refuse(const Def &d, const Value &v) const {
    fail("{} of {}: expected {}, found {}", b_.text(d.name), what_, print(b_, d.type), v.text());
  }

  // The parameter's type decides: an element stands for a scalar, a scalar for a tensor of rank 0.
  void take(const Def &d, Value &v) {
    const Type *t = d.type;
    if (v.type != t->elem && !(is_int(v.type) && t->elem == DType::Index && !t->tensor)) refuse(d, v);
    if (!t->tensor) {
      if (!v.is_scalar() && v.ref.rank()) refuse(d, v);
      v = Value::of(t->elem, v.element());
      if (t->elem == DType::Index) names[d.name] = v.scalar.as_int();
      return;
    }
    if (v.is_scalar()) v = m_.rank0(v, t->elem);
    if (v.ref.rank() != t->rank()) refuse(d, v);
    auto *strides = as<List>(attr(b_, t->attrs, "strides"));
    for (size_t k = 0; k < t->rank(); k++) {
      equations_.push_back({t->dims[k], v.ref.dims[k]});
      owners_.push_back({&d, &v});
      if (!strides || strides->items.size() != t->rank() || v.ref.dims[k] <= 1) continue;
      equations_.push_back({strides->items[k], v.ref.strides[k]});
      owners_.push_back({&d, &v});
    }
  }

  void solve_names() {
    auto declared = [&](Sym s) { return std::find(f_.dims.begin(), f_.dims.end(), s) != f_.dims.end(); };
    size_t wrong = solve(b_, equations_, declared, names);
    if (wrong < equations_.size()) refuse(*owners_[wrong].first, *owners_[wrong].second);
    for (Sym d : f_.dims) {
      if (names.count(d)) continue;
      bool stride = false;  // of a dimension of 1 or 0: it may be anything
      for (const Param &p : f_.params) stride |= mentions_in_strides(b_, p.def, d);
      for (const Def &r : f_.results) stride |= mentions_in_strides(b_, r, d);
      if (!stride) fail("dimension {} of {} does not follow from its arguments", b_.text(d), what_);
      names[d] = 1;
    }
  }

  Machine &m_;
  Build &b_;
  const Func &f_;
  std::vector<Value> &args_, &into_;
  uint32_t at_;
  std::string_view what_;
  bool own_scratch_ = false;  // the caller gives no `scratch`: buffers are made for it
  std::vector<DimEquation> equations_;
  std::vector<std::pair<const Def *, const Value *>> owners_;
};

// A buffer that is written overlaps no other, but for the pairs of `attr inplace = [["y", "x"]]`: those may be the
// same.
void Call::check_overlap() const {
  auto *pairs = as<List>(attr(b_, f_.notes.attrs, "inplace"));
  auto allowed = [&](Sym x, Sym y) {
    if (!pairs) return false;
    for (const Expr *e : pairs->items) {
      auto *l = as<List>(e);
      if (!l || l->items.size() != 2 || !as<Str>(l->items[0]) || !as<Str>(l->items[1])) continue;
      std::string_view p = to<Str>(l->items[0]).value, q = to<Str>(l->items[1]).value;
      if ((p == b_.text(x) && q == b_.text(y)) || (p == b_.text(y) && q == b_.text(x))) return true;
    }
    return false;
  };
  struct Use { const Ref *ref; Sym name; bool written; };
  std::vector<Use> uses;
  for (size_t i = 0; i < args_.size(); i++)
    if (!args_[i].is_scalar()) uses.push_back({&args_[i].ref, f_.params[i].def.name, f_.params[i].mode != Mode::In});
  for (size_t i = 0; i < into_.size(); i++) uses.push_back({&into_[i].ref, f_.results[i].name, true});
  for (size_t i = 0; i < uses.size(); i++)
    for (size_t j = i + 1; j < uses.size(); j++) {
      const Use &p = uses[i], &q = uses[j];
      if ((!p.written && !q.written) || !p.ref->overlaps(*q.ref)) continue;
      bool same = p.ref->start == q.ref->start && p.ref->first == q.ref->first && p.ref->dims == q.ref->dims &&
                  p.ref->strides == q.ref->strides;
      if (same && allowed(p.name, q.name)) continue;
      fail("{} and {} of @{} are given overlapping buffers", b_.text(p.name), b_.text(q.name), b_.text(f_.name));
    }
}

}  // namespace

std::string Value::text() const {
  if (is_scalar()) return std::string(dtype_name(type));
  return fmt::format("{}[{}]", dtype_name(type), fmt::join(ref.dims, ", "));
}

std::vector<Value> Machine::call(const Func &f, std::vector<Value> args, std::vector<Value> into, uint32_t at,
                                 std::string what, Syms from) {
  if (what.empty()) what = fmt::format("{} @{}", kind_name(f.func), name(f.name));
  struct Depth {
    int &d;
    explicit Depth(int &x) : d(x) { d++; }
    ~Depth() { d--; }
  } depth(depth_);
  take_turns(kTurnsOfCall);
  if (depth_ > 256) throw Fault{at, fmt::format("calls nest too deep: {}", what)};
  if (f.func == FuncKind::Scalar || f.func == FuncKind::Reducer)
    throw Fault{at, fmt::format("{} is called in expressions only", what)};
  if (auto *stage = as<Str>(attr(b, f.notes.attrs, "stage")); stage && stage->value == "synced")
    throw Fault{at, fmt::format("{} is synced: its threads run side by side, as no interpreter does; mlc-codegen emits it, and "
                                "share/mlc/cuda runs that on a CPU", what)};
  bool foreign = f.func == FuncKind::Extern || f.func == FuncKind::Intrinsic;
  const Part *desc = foreign ? description(f) : nullptr;
  if (foreign && !desc) throw Fault{at, fmt::format("{} has no description to run", what)};
  Stmts body = desc ? desc->body : f.body;
  const Notes &notes = desc && !desc->notes.from.empty() ? desc->notes : f.notes;

  Call c(*this, f, args, into, at, what);
  c.bind();
  bool fresh = into.empty();
  try {
    if (!fresh) c.check_overlap();
    bool graph = f.func == FuncKind::Graph || f.func == FuncKind::Group || (foreign && is_graph_body(b, body));
    if (graph) return run_graph(*this, f, body, args, into, c.names);
    for (size_t i = 0; fresh && i < f.results.size(); i++) into.push_back(c.made(f.results[i]));
    c.forget(fresh);
    if (options.kernels && options.kernels->run(*this, f, body, c.names, args, into)) return into;
    const Unit &u = *unit(f, body, notes);
    Activation a(u, *this);
    for (size_t i = 0; i < u.dim_slots.size(); i++) a.set(u.dim_slots[i], Scalar::of_int(c.names.at(f.dims[i])));
    for (size_t i = 0; i < args.size(); i++)
      if (u.param_buffers[i] >= 0) a.bind(u.param_buffers[i], args[i].ref);
      else a.set(u.param_slots[i], args[i].scalar);
    for (size_t i = 0; i < into.size(); i++) a.bind(u.result_buffers[i], into[i].ref);
    start(u, a.frame);
    c.check_written();
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

// ---- frames

Activation::Activation(const Unit &u, Machine &m)
    : slots_(size_t(u.slots) + 1), buffers_(u.buffers.size()), owned_(u.buffers.size()) {
  frame = {slots_.data(), buffers_.data(), &u, &m, &owned_};
  for (auto [k, s] : u.constants) bind(k, m.constant(s, kNowhere));
}

void Activation::bind(int buffer, const Ref &r) {
  const BufferInfo &info = frame.unit->buffers[size_t(buffer)];
  for (size_t d = 0; d < info.dims.size(); d++) {
    slots_[size_t(info.dims[d])] = r.dims[d];
    slots_[size_t(info.strides[d])] = r.strides[d];
  }
  Storage *s = r.storage.get();
  buffers_[size_t(buffer)] = {s->bytes + r.start, s->shadow ? s->shadow + r.start : nullptr, s, r.first};
}

}  // namespace mlc::interp
