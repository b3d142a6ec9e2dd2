#include "sched/args.h"

#include "text/text.h"

namespace mlc {

static uint64_t mixed(uint64_t x) {  // splitmix64 (Steele, Lea, Flood, OOPSLA 2014)
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

Args::Args(State &s, const Step &step, uint64_t seed, int line)
    : s_(s), step_(step), random_(mixed(seed * 1000003 + uint64_t(line))) {}

uint64_t Args::random() { return random_ = mixed(random_); }

Handle *Args::handle(const Expr *e) {
  auto *n = as<Name>(e);
  auto it = n ? s_.handles.find(n->name) : s_.handles.end();
  return it == s_.handles.end() ? nullptr : &it->second;
}

void Args::need(size_t i, std::string_view what) {
  if (i >= count())
    bad_step(step_.call->at, "expected {} as argument {}, found {}", what, i + 1, counted(count(), "argument"));
}

static std::string shown(State &s, const Expr *e) { return s.text(e); }

Place *Args::loop(size_t i) {
  need(i, "a loop");
  if (Handle *h = handle(raw(i))) {
    if (h->kind != Handle::Loop) bad_step(at(i), "expected a loop, found {}, which names no loop", shown(s_, raw(i)));
    if (!s_.tree.contains(s_.tree.root(), h->node))
      bad_step(at(i), "loop {} is gone: {} took it out", shown(s_, raw(i)),
               h->gone.empty() ? "an earlier step" : h->gone);
    return h->node;
  }
  auto *n = as<Name>(raw(i));
  if (!n) bad_step(at(i), "expected a loop, found {}", shown(s_, raw(i)));
  Place *found = nullptr;
  bool several = false;
  each_place(s_.tree.root(), [&](Place *x) {
    if (!x->loop() || x->loop()->iter.name != n->name) return;
    several |= found != nullptr;
    found = x;
  });
  if (several) bad_step(at(i), "several loops are called {}: take one from get_loops(BLOCK)", s_.text(n->name));
  if (!found)
    bad_step(at(i), "no loop is called {}: loops come from get_loops(BLOCK) and from earlier steps", s_.text(n->name));
  return found;
}

std::vector<Place *> Args::loops(size_t from) {
  std::vector<Place *> out;
  for (size_t i = from; i < count(); i++)
    out.push_back(loop(i));
  return out;
}

bool Args::is_block(size_t i) {
  need(i, "a block");
  if (Handle *h = handle(raw(i))) return h->kind == Handle::Block;
  auto *n = as<Name>(raw(i));
  return n && s_.find_block(n->name);
}

Place *Args::block(size_t i) {
  need(i, "a block");
  if (Handle *h = handle(raw(i))) {
    if (h->kind == Handle::Block) {
      if (!s_.tree.contains(s_.tree.root(), h->node))
        bad_step(at(i), "block {} is gone: {} took it out", shown(s_, raw(i)),
                 h->gone.empty() ? "an earlier step" : h->gone);
      return h->node;
    }
  }
  auto *n = as<Name>(raw(i));
  if (!n) bad_step(at(i), "expected a block, found {}", shown(s_, raw(i)));
  if (Place *k = s_.find_block(n->name)) return k;
  std::string all;
  for (Place *k : s_.blocks())
    all += (all.empty() ? "" : ", ") + s_.text(k->block()->name);
  each_place(s_.tree.root(), [&](Place *x) {
    if (auto *c = as<Compute>(x->stmt)) all += (all.empty() ? "" : ", ") + s_.text(c->results[0].name);
  });
  bad_step(at(i), "no block is called {}; the kernel has {}", s_.text(n->name), all.empty() ? "none" : all);
}

Place *Args::loop_or_block(size_t i) {
  if (Handle *h = handle(raw(i)); h && h->kind == Handle::Loop) return loop(i);
  return is_block(i) ? block(i) : loop(i);
}

Sym Args::word(size_t i) {
  need(i, "a name");
  if (auto *n = as<Name>(raw(i))) return n->name;
  if (auto *n = as<Str>(raw(i))) return s_.b.sym(n->value);
  bad_step(at(i), "expected a name, found {}", shown(s_, raw(i)));
}

Sym Args::buffer(size_t i) {
  need(i, "a buffer");
  auto *n = as<Name>(raw(i));
  const Type *t = n ? s_.type_of_buffer(n->name) : nullptr;
  if (!t || !t->tensor) bad_step(at(i), "expected a buffer of the kernel, found {}", shown(s_, raw(i)));
  return n->name;
}

std::string Args::string(size_t i) {
  need(i, "a string");
  auto *t = as<Str>(raw(i));
  if (!t) bad_step(at(i), "expected a string, found {}", shown(s_, raw(i)));
  return std::string(t->value);
}

int64_t Args::integer(size_t i) {
  need(i, "a number");
  int64_t v;
  if (Handle *h = handle(raw(i)); h && h->kind == Handle::Value && int_value(h->values[0], &v)) return v;
  if (!int_value(raw(i), &v)) bad_step(at(i), "expected a number, found {}", shown(s_, raw(i)));
  return v;
}

const Expr *Args::value(size_t i) {
  need(i, "a value");
  if (Handle *h = handle(raw(i)); h && h->kind == Handle::Value) return h->values[0];
  return raw(i);
}

std::vector<const Expr *> Args::factors(size_t i) {
  need(i, "a list of factors");
  if (Handle *h = handle(raw(i)); h && h->kind == Handle::Values) return h->values;
  auto *l = as<List>(raw(i));
  if (!l) bad_step(at(i), "expected a list of factors, [_, 16], found {}", shown(s_, raw(i)));
  std::vector<const Expr *> out;
  for (const Expr *e : l->items) {
    auto *n = as<Name>(e);
    if (n && s_.b.text(n->name) == "_") out.push_back(nullptr);
    else if (Handle *h = handle(e); h && h->kind == Handle::Value) out.push_back(h->values[0]);
    else out.push_back(e);
  }
  return out;
}

std::vector<int64_t> Args::integers(size_t i) {
  std::vector<int64_t> out;
  for (const Expr *e : factors(i)) {
    int64_t v;
    if (!e || !int_value(e, &v)) bad_step(e ? e->at : at(i), "expected a list of numbers");
    out.push_back(v);
  }
  return out;
}

const Map *Args::map(size_t i) {
  need(i, "an index map");
  auto *m = as<Map>(raw(i));
  if (!m) bad_step(at(i), "expected an index map, [i, j] -> [j, i], found {}", shown(s_, raw(i)));
  return m;
}

const Global *Args::global(size_t i) {
  need(i, "an @intrinsic");
  auto *g = as<Global>(raw(i));
  if (!g) bad_step(at(i), "expected an @intrinsic, found {}", shown(s_, raw(i)));
  return g;
}

int64_t Args::attr_int(std::string_view key, int64_t otherwise) {
  const Expr *e = attr(key);
  if (!e) return otherwise;
  if (auto *t = as<Bool>(e)) return t->value;
  int64_t v;
  if (!int_value(e, &v)) bad_step(e->at, "{} = {}: expected a number", key, shown(s_, e));
  return v;
}

std::vector<Place *> Args::attr_blocks(std::string_view key) {
  std::vector<Place *> out;
  const Expr *e = attr(key);
  auto *l = as<List>(e);
  if (e && !l) bad_step(e->at, "{} = {}: expected a list of blocks", key, shown(s_, e));
  if (l)
    for (const Expr *x : l->items) {
      auto *n = as<Name>(x);
      Handle *h = handle(x);
      Place *k = h && h->kind == Handle::Block ? h->node : n ? s_.find_block(n->name) : nullptr;
      if (!k || !k->up) bad_step(x->at, "no block is called {}", shown(s_, x));
      out.push_back(k);
    }
  return out;
}

void Args::record(std::string_view key, const Expr *value) {
  std::vector<Attr> attrs;
  for (const Attr &a : step_.attrs)
    if (s_.b.text(a.key) != key) attrs.push_back(a);
  attrs.push_back({s_.b.sym(key), kNowhere, value});
  step_.attrs = s_.b.list(attrs);
}

std::string Args::result(size_t i, std::string_view otherwise) const {
  if (i >= step_.results.size() || s_.b.text(step_.results[i]) == "_") return std::string(otherwise);
  return std::string(s_.b.text(step_.results[i]));
}

void Args::set(size_t i, Handle h) {
  if (i < step_.results.size() && s_.b.text(step_.results[i]) != "_") s_.handles[step_.results[i]] = std::move(h);
}

void Args::expect_results(size_t least, size_t most) {
  size_t n = step_.results.size();
  if (n && (n < least || n > most))
    bad_step(step_.call->at, "{} has {}, {} given", s_.text(step_.call->callee), counted(most, "result"), counted(n, "name"));
}

}  // namespace mlc
