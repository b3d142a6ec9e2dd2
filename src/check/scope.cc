// Scopes, names in expressions, types.
#include <bit>

#include "check/checker.h"
#include "text/text.h"

namespace mlc {

namespace {

std::string_view describe(What w) {
  constexpr std::string_view kText[] = {"dimension", "parameter", "result", "value", "scalar",
                                        "buffer",    "view",      "loop",   "axis"};
  return kText[size_t(w)];
}
bool is_index_kind(What w) { return w == What::Loop || w == What::Axis; }

}  // namespace

FuncChecker::FuncChecker(Build &b, const Module &m, const Func &f, Diag &diag, bool prove)
    : b_(b), m_(m), f_(f), diag_(diag), prove_(prove), env_(b, m, nullptr), bounds_(b), stage_(stage_of(b, f)) {}

std::string FuncChecker::text(Sym s) const { return print_name(b_, s); }

void FuncChecker::close(Mark m) {
  for (; log_.size() > m.names; log_.pop_back()) names_[log_.back().name] = log_.back().before;
  env_.pop(m.env);
  bounds_.pop(m.bounds);
}

Entry *FuncChecker::find(Sym name) const {
  auto it = names_.find(name);
  return it == names_.end() ? nullptr : it->second;
}

void FuncChecker::enter(Entry *e) {
  Entry *&now = names_[e->name];
  log_.push_back({e->name, now});
  now = e;
  env_.define(e->name, e->type);
}

// Names are defined once; only axes of a block, and names inside it, may be called like what the block does not see.
Entry *FuncChecker::define(What what, Sym name, const Type *type, uint32_t at) {
  Entry *old = find(name);
  if (old && !(old->loose && (old->depth < depth_))) {
    error(at, "{} is defined already", text(name));
    if (old->at != kNowhere) diag_.note(old->at, "{} {} is defined here", describe(old->what), text(name));
  }
  entries_.push_back({what, name, type, at, depth_});
  Entry *e = &entries_.back();
  e->loose = is_index_kind(what) || what == What::Scalar;
  enter(e);
  if (what == What::Dim) bounds_.dim(name);
  else if (type == b_.index() && !is_index_kind(what)) bounds_.index(name);  // loops and axes have a range
  return e;
}

Entry *FuncChecker::visible(Sym name, uint32_t at, bool value) {
  Entry *e = find(name);
  if (!e) {
    error(at, "{} is not defined", text(name));
  } else if (e->loose && e->depth < depth_) {
    error(at, "{} {} is not seen inside a block: {}", describe(e->what), text(name),
          is_index_kind(e->what) ? "bind an axis to it" : "move its definition into the block");
    e = nullptr;
  } else if (value && graph_ && e->what == What::Result && !e->defined && !e->written) {
    error(at, "result {} is not defined yet", text(name));
    e = nullptr;
  }
  return e;
}

// Loops come back to what they passed, conditions may have been false; straight on, what is read was written before.
void FuncChecker::unwritten(Entry *e, uint32_t at) {
  bool buffer = e->what == What::Buffer || (e->what == What::Result && !graph_);
  if (!buffer || e->root || e->written || loops_ || maybe_) return;
  error(at, "{} is read before it is written", text(e->name));
  e->written = true;  // said once
}

bool FuncChecker::names(const Expr *e) {
  std::vector<Sym> bound;
  std::function<bool(const Expr *)> walk = [&](const Expr *x) -> bool {
    auto use = [&](Sym s) {
      for (Sym y : bound)
        if (y == s) return true;
      Entry *found = visible(s, x->at);
      if (found) found->whole()->read = true;
      return found != nullptr;
    };
    bool ok = true;
    size_t mark = bound.size();
    switch (x->kind) {
      case Kind::Name: return use(to<Name>(x).name);
      case Kind::Load:
        if (!to<Load>(x).global) ok = use(to<Load>(x).buffer);
        for (const Expr *i : to<Load>(x).index) ok &= walk(i);
        return ok;
      case Kind::Call:
        for (const Iter &i : to<Call>(x).iters) ok &= walk(i.extent), bound.push_back(i.name);
        for (const Expr *a : to<Call>(x).args) ok &= walk(a);
        break;
      case Kind::Map:
        for (const Expr *i : to<Map>(x).from->items)
          if (auto *n = as<Name>(i)) bound.push_back(n->name);
          else ok = fail(i->at, "the left side of an index map lists names");
        for (const Expr *i : to<Map>(x).to->items) ok &= walk(i);
        break;
      case Kind::Range: return walk(to<Range>(x).lo) & walk(to<Range>(x).extent);
      case Kind::Unary: return walk(to<Unary>(x).a);
      case Kind::Binary: return walk(to<Binary>(x).a) & walk(to<Binary>(x).b);
      case Kind::List:
        for (const Expr *i : to<List>(x).items) ok &= walk(i);
        return ok;
      default: return true;
    }
    bound.resize(mark);
    return ok;
  };
  if (e->kind == Kind::Int) return true;
  return walk(e);
}

bool FuncChecker::scalar(const Expr *e, DType want) {
  if (!names(e)) return false;
  TypeError err;
  if (type_of(env_, e, want, &err) == DType::Invalid) return fail(err.at, "{}", err.message);
  subscripts(e);
  return true;
}

bool FuncChecker::condition(const Expr *e) {
  if (auto *n = as<Name>(e); n && graph_) {
    Entry *v = find(n->name);
    if (v && v->type->tensor && v->type->elem == DType::Bool && v->type->rank() == 0) return names(e);
  }
  return scalar(e, DType::Bool);
}

namespace {

// Attributes of types, and what their values are.
enum class Is : uint8_t { Int, Ints, IndexList, Map, Any };
constexpr struct {
  std::string_view key;
  Is is;
} kTypeAttrs[] = {
    {"align", Is::Int}, {"stages", Is::Int}, {"swizzle", Is::Int},  {"stack", Is::Int}, {"strides", Is::IndexList},
    {"box", Is::Ints},  {"modulo", Is::Ints}, {"layout", Is::Map}, {"capacity", Is::IndexList}, {"pad_value", Is::Any},
};

}  // namespace

void FuncChecker::type(const Type *t, uint32_t at) {
  if (!t->tensor && t->elem == DType::Mbarrier) fail(at, "a scalar has no type {}", dtype_name(t->elem));
  if (t->tensor && t->elem == DType::Index) fail(at, "a tensor has no element type index, expected i64 or i32");
  if (kernel_ && t->elem == DType::Str) fail(at, "str stands only in graphs");
  int64_t count = 1, n;
  bool fits = true;
  for (const Expr *d : t->dims) {
    if (int_value(d, &n)) {
      if (n < 0) error(at, "a dimension is at least 0, found {}", n);
      fits = fits && (n <= 0 || !__builtin_mul_overflow(count, n, &count));
      continue;
    }
    index(d);
  }
  if (t->tensor && t->elem != DType::Str && (!fits || storage_bytes(t->elem, count) < 0))
    error(at, "a tensor of this size does not fit the address space");
  for (const Attr &a : t->attrs) {
    std::string_view key = b_.text(a.key);
    auto *spec = std::find_if(std::begin(kTypeAttrs), std::end(kTypeAttrs), [&](auto &s) { return s.key == key; });
    if (spec == std::end(kTypeAttrs)) {
      error(a.at, "a type has no attribute {}", text(a.key));
      continue;
    }
    auto *list = as<List>(a.value);
    switch (spec->is) {
      case Is::Int:
        if (!int_value(a.value, &n) || n < 0 || (key == "align" && !std::has_single_bit(uint64_t(n))))
          error(a.at, "{} is a {}, found {}", key, key == "align" ? "power of two" : "number", print(b_, a.value));
        break;
      case Is::Ints:
      case Is::IndexList:
        if (!list) error(a.at, "{} is a list, found {}", key, print(b_, a.value));
        else if (key == "strides" && list->items.size() != t->rank())
          error(a.at, "strides: expected {} numbers, found {}", t->rank(), list->items.size());
        else
          for (const Expr *i : list->items) index(i);
        break;
      case Is::Map:
        if (auto *map = as<Map>(a.value); !map || map->from->items.size() != t->rank())
          error(a.at, "layout is a map of {} indices, found {}", t->rank(), print(b_, a.value));
        break;
      case Is::Any: break;
    }
  }
}

void FuncChecker::notes(const Notes &n) {
  for (size_t i = 0; i < n.attrs.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (n.attrs[i].key == n.attrs[j].key) error(n.attrs[i].at, "attr {} is given twice", text(n.attrs[i].key));
}

}  // namespace mlc
