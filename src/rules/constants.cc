#include "rules/constants.h"

#include <algorithm>

namespace mlc {

namespace {

constexpr int64_t kMostShown = 64;          // elements of a list that folding writes into the text
constexpr int64_t kMostRead = 4096;         // elements of inputs that it reads from the text
constexpr int64_t kFreeBytes = 64 << 10;    // a larger constant may be at most twice as large as what it is made of
constexpr int64_t kInFile = INT64_MAX / 4;  // elements of a constant that is not in the text

uint64_t mix(uint64_t h, uint64_t v) { return (h ^ v) * 0x9e3779b97f4a7c15u; }

uint64_t key(const Const &c) {
  uint64_t h = mix(uint64_t(c.type->elem), c.value ? hash(c.value) : Names::hash(c.path) + uint64_t(c.offset));
  for (const Attr &a : c.attrs) h = mix(h, hash(a.value));
  return h;
}

bool same(const Const &a, const Const &c) {
  if (a.type != c.type || !a.value != !c.value || !equal(a.attrs, c.attrs)) return false;
  return a.value ? equal(a.value, c.value) : a.path == c.path && a.offset == c.offset;
}

int64_t elements_of(const Type *t) {
  std::vector<int64_t> dims;
  if (!t->tensor || !all_static(t, &dims)) return -1;
  int64_t n = 1;
  for (int64_t d : dims)
    if (d < 0 || __builtin_mul_overflow(n, d, &n)) return -1;
  return n;
}

}  // namespace

Constants::Constants(Build &b, Module &m, Evaluate evaluate) : b_(b), m_(m), evaluate_(std::move(evaluate)), fresh_(b) {
  for (const Item *i : m.items) {
    if (Sym s = name_of(i)) fresh_.take(s);
    if (auto c = as<Const>(i)) known_[key(*c)].push_back(c);
  }
}

const Const *Constants::first(const Const &c) {
  for (const Const *k : known_[key(c)])
    if (same(*k, c)) return k;
  return &c;
}

const Const *Constants::add(const Let &line, const Expr *value, Attrs attrs) {
  Const c{{}, {}, line.defs[0].type, value, {}, 0, attrs, line.from};
  c.at = line.at, c.comment = line.comment;
  if (const Const *old = first(c); old != &c) return old;
  c.name = fresh_.make(b_.text(line.defs[0].name));
  const Const *added = b_.make(c);
  known_[key(c)].push_back(added);
  m_.add(added);
  made++;
  return added;
}

// Adds what an argument of the expression has.
bool Constants::small_text(const Expr *arg, int64_t *elements, int64_t *bytes) const {
  auto literal = [](const Expr *e) { return e->kind == Kind::Int || e->kind == Kind::Float || e->kind == Kind::Bool; };
  if (arg->kind == Kind::None || literal(arg)) return true;
  if (auto l = as<List>(arg)) {
    *elements += int64_t(l->items.size());
    return std::all_of(l->items.begin(), l->items.end(), literal);
  }
  auto g = as<Global>(arg);
  const Const *c = g ? m_.constant(g->name) : nullptr;
  int64_t n = c ? elements_of(c->type) : -1;
  if (n < 0 || c->type->elem == DType::Str) return false;
  bool in_text = c->value && c->value->kind != Kind::Call;
  *elements += in_text ? n : kInFile;
  *bytes += storage_bytes(c->type->elem, n);
  return *elements >= 0;
}

bool Constants::may_fold(const Let &line) const {
  int64_t elements = 0, bytes = 0;
  Exprs args = to<Call>(line.value).args;
  return std::all_of(args.begin(), args.end(), [&](const Expr *a) { return small_text(a, &elements, &bytes); });
}

const Const *Constants::fold(const Let &line, const OpInfo &op) {
  if (line.defs.size() != 1 || op.outputs.empty() || op.outputs[0].type == "size") return nullptr;
  const Type *t = line.defs[0].type;
  int64_t count = elements_of(t), elements = 0, bytes = 0;
  if (count < 0 || t->elem == DType::Str || t->device || t->scope || !t->attrs.empty()) return nullptr;
  auto &call = to<Call>(line.value);
  for (const Expr *a : call.args)
    if (!small_text(a, &elements, &bytes)) return nullptr;
  int64_t size = storage_bytes(t->elem, count);
  if (size > kFreeBytes && size / 2 > bytes) return nullptr;
  if (elements > kMostRead || count > kMostShown) return add(line, line.value, line.attrs);
  Const c{{}, b_.sym("folded"), t, line.value, {}, 0, line.attrs, {}};
  c.at = line.at;
  const Expr *value = evaluate_(*b_.make(c));
  return value ? add(line, value, {}) : nullptr;
}

const Const *Constants::shape(const Let &line, const Type *x) {
  std::vector<int64_t> dims;
  std::string_view op = b_.text(to<Call>(line.value).callee);
  if (!x || line.defs.size() != 1 || !all_static(x, &dims)) return nullptr;
  if (op == "Size") {
    int64_t n = elements_of(x);
    return n < 0 ? nullptr : add(line, b_.integer(n), {});
  }
  if (op != "Shape") return nullptr;
  auto at = [&](std::string_view key, int64_t otherwise) {
    int64_t v = otherwise, rank = int64_t(dims.size());
    if (const Expr *e = attr(b_, line.attrs, key)) int_value(e, &v);
    return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank);
  };
  std::vector<const Expr *> items;
  int64_t end = at("end", int64_t(dims.size()));
  for (int64_t i = at("start", 0); i < end; i++) items.push_back(b_.integer(dims[size_t(i)]));
  return add(line, b_.make_list(b_.list(items)), {});
}

}  // namespace mlc
