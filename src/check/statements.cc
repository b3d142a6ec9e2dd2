// Statements that graphs and kernels share.
#include "arith/prove.h"
#include "check/checker.h"
#include "check/race.h"
#include "ops/ops.h"
#include "text/text.h"

namespace mlc {

// What holds from here on; conditions on data may change, they are left out.
void FuncChecker::known(const Expr *cond) {
  bool data = false;
  each_expr(cond, [&](const Expr *x) { return !(data |= x->kind == Kind::Load); });
  if (auto *n = as<Name>(cond->kind == Kind::Unary ? to<Unary>(cond).a : cond)) {
    Entry *e = find(n->name);
    data |= e && e->type->tensor;
  }
  if (!data) bounds_.assume(cond);
}

void FuncChecker::let(const Let &s) {
  if (auto *c = as<Call>(s.value)) {
    std::string_view callee = b_.text(c->callee);
    const Func *f = c->global ? m_.func(c->callee) : nullptr;
    bool scalar = f && (f->func == FuncKind::Scalar || f->func == FuncKind::Reducer);
    if (c->global && !f) {
      if (m_.find(c->callee)) error(s.value->at, "@{} is not a function", callee);
      else error(s.value->at, "no function @{} in the module", callee);
    }
    bool op = !c->global && c->iters.empty() && (find_op(callee) || is_operator_name(callee));
    bool call = c->global && !scalar;
    if (op || call) {
      if (kernel_) {
        error(s.value->at, "{} has tensors as values: in a kernel write `compute`, or `call` with destinations",
              op ? fmt::format("operator {}", callee) : fmt::format("a call of @{} here", callee));
      } else if (stage_ == Stage::Planned) {
        error(s.value->at, "a planned graph has no values, expected `call` with destinations");
      } else if (op) {
        return operator_let(s, *c);
      } else if (f) {
        return pure_call(s, *c, *f);
      }
      for (const Def &d : s.defs) define_value(d)->written = true;  // so that its uses are not errors too
      return;
    }
  }
  scalar_let(s);
}

void FuncChecker::scalar_let(const Let &s) {
  bool ok = names(s.value);
  std::vector<DType> want;
  for (const Def &d : s.defs) {
    if (d.type->tensor)
      ok = fail(d.at, "{} is a tensor, expected {}", text(d.name),
                kernel_ ? "`alloc`: in a kernel tensors are buffers" : "an operator or a call as its value");
    want.push_back(d.type->elem);
  }
  if (!s.attrs.empty()) error(s.attrs[0].at, "a scalar has no attribute {}", text(s.attrs[0].key));
  TypeError err;
  if (ok && !types_of(env_, s.value, want, &err)) ok = fail(err.at, "{}", err.message);
  if (ok) subscripts(s.value);
  for (const Def &d : s.defs) {
    Entry *e = graph_ ? define_value(d) : define(What::Scalar, d.name, d.type, d.at);
    if (e->what != What::Result) e->written = true;
    if (!ok || s.defs.size() != 1 || d.type != b_.index()) continue;
    bool data = false;
    each_expr(s.value, [&](const Expr *x) { return !(data |= x->kind == Kind::Load); });
    if (!data) bounds_.equal(d.name, s.value);
  }
}

// Turns that are taken in any order, or at once.
void FuncChecker::races(const For &s) {
  if (s.loop == LoopKind::Serial || s.loop == LoopKind::Unroll) return;
  auto *pairs = as<List>(attr(b_, f_.notes.attrs, "inplace"));
  auto first_of = [&](Sym name) {  // of a pair that may be one buffer
    for (size_t i = 0; pairs && i < pairs->items.size(); i++) {
      auto *l = as<List>(pairs->items[i]);
      auto *y = l && l->items.size() == 2 ? as<Str>(l->items[0]) : nullptr;
      auto *x = y ? as<Str>(l->items[1]) : nullptr;
      if (x && x->value == b_.text(name)) return b_.sym(y->value);
    }
    return name;
  };
  RaceScope scope;
  scope.type = [&](Sym n) { Entry *e = find(n); return e && e->type->tensor ? e->type : nullptr; };
  scope.root = [&](Sym n) { Entry *e = find(n); return first_of(e ? e->whole()->name : n); };
  scope.shared = [&](Sym n) { Entry *e = find(n); return e && e->type->scope && b_.text(e->type->scope) == "shared"; };
  scope.function = [&](Sym n) { return m_.func(n); };
  std::string_view tag = b_.text(s.tag);
  scope.threads = s.loop == LoopKind::Bind && !tag.starts_with("block") && !tag.starts_with("cluster");
  constexpr std::string_view kKinds[] = {"", "parallel", "vectorize", "", "bind"};
  std::string race = race_of(b_, bounds_, s, scope);
  if (!race.empty()) unproved(fmt::format("{} loop {}: {} not proved apart", kKinds[size_t(s.loop)], text(s.iter.name), race));
}

void FuncChecker::for_loop(const For &s) {
  bool ok = index(s.iter.extent);
  int64_t n;
  if (int_value(s.iter.extent, &n) && n < 0) error(s.iter.extent->at, "a loop has at least 0 turns, found {}", n);
  if (graph_ && s.loop != LoopKind::Serial) error(s.at, "loops of a graph are serial");
  if (s.loop == LoopKind::Bind && !is_thread_tag(s.tag))
    error(s.at, "no thread {}: expected blockIdx.x, threadIdx.x .. or a thread of a target", text(s.tag));
  if (s.loop == LoopKind::Bind && is_synced(b_, f_)) flat(s);
  notes(s.notes);
  if (prove_ && ok && kernel_) races(s);
  Mark m = open();
  Entry *e = define(What::Loop, s.iter.name, b_.index(), s.iter.at);
  e->extent = s.iter.extent, e->loop = s.loop, e->tag = s.tag;
  ok ? bounds_.range(s.iter.name, s.iter.extent) : bounds_.index(s.iter.name);
  std::string_view tag = b_.text(s.tag);
  bool threads = s.loop == LoopKind::Bind && !tag.starts_with("block") && !tag.starts_with("cluster");
  bool turns = false;  // for k in j: some turns of j have none of k
  each_expr(s.iter.extent, [&](const Expr *x) {
    auto *n = as<Name>(x);
    Entry *l = n ? find(n->name) : nullptr;
    return !(turns |= l && (l->what == What::Loop || l->what == What::Axis));
  });
  ++loops_, threads_ += threads, bound_ += s.loop == LoopKind::Bind, maybe_ += turns;
  statements(s.body);
  --loops_, threads_ -= threads, bound_ -= s.loop == LoopKind::Bind, maybe_ -= turns;
  close(m);
}

// A bound loop of a synced kernel: outermost, its tag bound once.
void FuncChecker::flat(const For &s) {
  if (loops_ != bound_ || maybe_)
    error(s.at, "loop {} is bound to {} inside of {}: in a synced kernel bound loops are outermost", text(s.iter.name),
          text(s.tag), loops_ != bound_ ? "a loop that is not" : "a condition");
  for (auto &[name, e] : names_)
    if (e && e->what == What::Loop && e->loop == LoopKind::Bind && e->tag == s.tag)
      error(s.at, "{} is bound to {} a second time", text(s.iter.name), text(s.tag));
}

bool FuncChecker::is_thread_tag(Sym tag) const {
  std::string_view t = b_.text(tag);
  for (std::string_view known :
       {"blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z", "clusterIdx.x",
        "clusterIdx.y", "clusterIdx.z", "warp", "warpgroup", "vthread", "lane"})
    if (t == known) return true;
  for (const Item *i : m_.items)
    if (auto *target = as<Target>(i))
      for (const Feature &f : target->features)
        if (f.kind == Feature::Thread && f.name == tag) return true;
  return false;
}

void FuncChecker::alloc(const Alloc &s) {
  const Type *t = s.def.type;
  type(t, s.def.at);
  if (!t->tensor)
    error(s.def.at, "{} is a scalar, expected a tensor such as {}[]", text(s.def.name), dtype_name(t->elem));
  Entry *base = nullptr;
  if (s.base && (base = visible(s.base, s.at, false))) {  // what is written there comes later
    if (!base->type->tensor || base->what == What::Value) {
      error(s.at, "{} is no buffer", text(s.base));
      base = nullptr;
    }
  }
  if (s.offset && index(s.offset) && base) {
    int64_t offset;
    std::vector<int64_t> dims, of;
    if (int_value(s.offset, &offset)) {
      int64_t align = std::max(1, info(t->elem).bits / 8);
      if (offset < 0 || offset % align)
        error(s.offset->at, "offset {} of {}: expected a multiple of {}", offset, text(s.def.name), align);
      else if (all_static(t, &dims) && all_static(base->type, &of)) {
        auto bytes = [](DType e, const std::vector<int64_t> &d) {
          int64_t n = 1;
          for (int64_t x : d)
            if (__builtin_mul_overflow(n, x, &n)) return int64_t(-1);
          return storage_bytes(e, n);
        };
        int64_t need = bytes(t->elem, dims), have = bytes(base->type->elem, of);
        if (need >= 0 && have >= 0 && (need > have || offset > have - need))
          error(s.def.at, "{} of {} bytes at {} does not fit {}, which has {}", text(s.def.name), need, offset,
                text(s.base), have);
      }
    }
  }
  if (!s.base && stage_ == Stage::Planned)
    error(s.at, "a planned graph allocates nothing, expected a place in a scratch buffer: alloc {}: .. = arena at 0",
          text(s.def.name));
  std::string_view scope = t->scope ? b_.text(t->scope) : "global";
  if (!s.base && ((scope == "shared" && threads_) || (scope == "global" && bound_)))
    error(s.at, "buffer {} in {} is allocated inside a loop bound to {}", text(s.def.name), scope,
          scope == "global" ? "a device" : "threads");
  Entry *e = define(What::Buffer, s.def.name, t, s.def.at);
  e->loose = false;
  e->writable = !base || base->writable;
  e->root = base ? base->whole() : nullptr;
}

void FuncChecker::view(const View &s) {
  type(s.def.type, s.def.at);
  const Type *found = buffer_type(s.source, false);
  if (found) {
    same_type(s.source->at, fmt::format("source of view {}", text(s.def.name)), s.def.type, found);
    if (scope_of(s.def.type) != scope_of(found))
      error(s.def.at, "view {} is in {}, expected {} as its buffer", text(s.def.name), scope_of(s.def.type),
            scope_of(found));
  }
  Entry *base = s.source->global ? nullptr : find(s.source->buffer);
  Entry *e = define(What::View, s.def.name, s.def.type, s.def.at);
  e->loose = !names_fixed(s.source);
  if (!base) return;
  e->writable = base->writable;
  e->root = base->whole();
  if (s.source->global) e->written = true;
}

// True if no loop, axis or loose scalar is mentioned: the same at every turn of the loops around.
bool FuncChecker::names_fixed(const Expr *e) const {
  std::unordered_set<Sym> mentioned;
  collect_names(e, mentioned);
  for (Sym s : mentioned)
    if (Entry *x = find(s); x && x->loose) return false;
  return true;
}

std::string_view FuncChecker::scope_of(const Type *t) const { return t->scope ? b_.text(t->scope) : "global"; }

void FuncChecker::assume(const Assume &s) {
  if (!scalar(s.cond, DType::Bool)) return;
  if (!maybe_ && !loops_ && prove(b_, b_.unary(Op::Not, s.cond), bounds_)) {
    error(s.cond->at, "this never holds: {}", print(b_, s.cond));
    return;
  }
  known(s.cond);
}

}  // namespace mlc
