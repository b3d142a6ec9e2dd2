// Calls of intrinsics: the text of their implementation, operands in the spelling of the memories that they are in.
//
//   global          a pointer to the first element
//   memory m {kind = "register", bytes = 1024, count = 8}        the number of a register, a literal
//   memory m {type = "__m512i", bytes = 64}                      a variable of that type
//   memory m {bytes = 65536}                                     bytes from the beginning of the memory
//
// Registers, variables and bytes are given to a buffer where its `alloc` stands, and are free again where its scope
// ends.
#include "arith/prove.h"
#include "arith/simplify.h"
#include "emit/body.h"
#include "ops/expr.h"
#include "text/text.h"

namespace mlc {

namespace {

std::string_view string_attr(const Build &b, Attrs attrs, std::string_view key) {
  auto *s = as<Str>(attr(b, attrs, key));
  return s ? s->value : "";
}
int64_t int_attr(const Build &b, Attrs attrs, std::string_view key, int64_t otherwise) {
  int64_t v;
  const Expr *e = attr(b, attrs, key);
  return e && int_value(e, &v) ? v : otherwise;
}
// attr needs = "avx512vnni", or a list
std::vector<std::string> strings(const Expr *e) {
  std::vector<std::string> out;
  auto add = [&](const Expr *x) {
    if (auto *s = as<Str>(x)) out.emplace_back(s->value);
  };
  if (auto *l = as<List>(e)) for (const Expr *x : l->items) add(x);
  else add(e);
  return out;
}

const Target *target_with(const Module &m, const std::function<bool(const Feature &)> &is) {
  for (const Item *i : m.items)
    if (auto *t = as<Target>(i))
      for (const Feature &f : t->features)
        if (is(f)) return t;
  return nullptr;
}

constexpr std::string_view kWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";

}  // namespace

const Feature *Unit::memory(Sym scope) const {
  if (!scope) return nullptr;
  const Feature *found = nullptr;
  target_with(m, [&](const Feature &f) {
    bool is = f.kind == Feature::Memory && f.name == scope && string_attr(b, f.attrs, "kind") != "cache" &&
              !Scope::is_host(b.text(scope));
    if (is) found = &f;
    return is;
  });
  return found;
}

void Unit::use_target(const Func &intrinsic) {
  auto uses = [&](const Feature &f) { return f.kind == Feature::Use && f.name == intrinsic.name; };
  const Target *t = target_with(m, uses);
  if (!t) t = as<Target>(m.find(intrinsic.target));
  if (t && std::find(targets.begin(), targets.end(), t) == targets.end()) targets.push_back(t);
}

std::string Unit::prelude() const {
  std::string includes, text;
  for (const Target *t : targets) {
    for (const std::string &s : strings(attr(b, t->notes.attrs, "include")))
      includes += fmt::format("#include {}\n", s);
    for (const std::string &s : strings(attr(b, t->notes.attrs, "prelude"))) text += s + "\n";
  }
  return includes + (text.empty() ? "" : "\n" + text);
}

std::vector<std::pair<std::string, std::string>> Unit::conditions() const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::string &f : needs)
    if (f.find('=') == f.npos)
      out.push_back({fmt::format("__builtin_cpu_supports({})", string_literal(f)), "the CPU has no " + f});
  auto init = [&](Attrs attrs) {
    if (auto l = strings(attr(b, attrs, "init")); l.size() == 2) out.push_back({l[0], l[1]});
  };
  for (const Target *t : targets) init(t->notes.attrs);
  for (const Feature *m : memories) init(m->attrs);
  return out;
}

std::string needs_attribute(const std::vector<std::string> &needs) {
  if (needs.empty()) return "";
  std::string all;
  for (const std::string &f : needs) all += (all.empty() ? "" : ",") + f;
  return fmt::format("__attribute__((target({}))) ", string_literal(all));
}

// A buffer in a memory of a target. False: it is in none.
bool BodyPrinter::placed(const Alloc &a) {
  const Type *t = a.def.type;
  const Feature *memory = u_.memory(t->scope);
  if (!memory) return false;
  std::string_view name = b_.text(a.def.name), scope_name = b_.text(t->scope);
  std::string_view type = string_attr(b_, memory->attrs, "type");
  std::vector<int64_t> dims;
  int64_t count = 1, unit = int_attr(b_, memory->attrs, "bytes", 0), units = int_attr(b_, memory->attrs, "count", -1);
  bool numbered = string_attr(b_, memory->attrs, "kind") == "register" || !type.empty();
  bool fixed = all_static(t, &dims);
  for (int64_t d : dims) fixed = fixed && d >= 0 && !__builtin_mul_overflow(count, d, &count);
  int64_t bytes = fixed ? storage_bytes(t->elem, count) : -1;
  Entity e;
  e.kind = Entity::Placed, e.writable = true, e.memory = memory;
  if (bytes < 0) {
    fail(a.at, fmt::format("{} is in {}, where it would need a size that is known", name, scope_name));
    define_local(a.def, e);
    return true;
  }
  if (std::find(u_.memories.begin(), u_.memories.end(), memory) == u_.memories.end()) u_.memories.push_back(memory);
  int64_t &top = tops_[t->scope];
  if (numbered) {
    e.step = std::max<int64_t>(unit, 1);
    int64_t n = (bytes + e.step - 1) / e.step;
    if (units >= 0 && top + n > units)
      fail(a.at, fmt::format("{} needs {} of {} in {}, where {} of {} are free", name, n, e.step, scope_name, units - top,
                             units));
    e.place = top, top += n;
    std::string declared = define_local(a.def, e).ident;
    if (!type.empty()) line("{} {}[{}];", type, declared, std::max<int64_t>(n, 1));
    else scope.find(a.def.name)->at = 0;
  } else {
    int64_t align = std::max<int64_t>(int_attr(b_, memory->attrs, "align", 1), 1);
    top = (top + align - 1) / align * align;
    if (unit > 0 && (bytes > unit || top > unit - bytes))
      fail(a.at, fmt::format("{} needs {} bytes in {}, where {} of {} are free", name, bytes, scope_name,
                             std::max<int64_t>(unit - top, 0), unit));
    e.step = 0, e.place = top, top += bytes;
    define_local(a.def, e);
    scope.find(a.def.name)->at = 0;
  }
  std::string enter(string_attr(b_, memory->attrs, "enter"));
  if (!enter.empty() && prologue.find("  " + enter + "\n") == prologue.npos) prologue += "  " + enter + "\n";
  return true;
}

// The spelling of what is at `index` of a buffer that is placed.
std::string BodyPrinter::placed_operand(const Entity &e, Exprs index, const Def &param, uint32_t at) {
  std::string_view name = b_.text(param.name), scope_name = b_.text(e.type->scope);
  Exprs strides = strides_of(b_, e.type);
  X position = lit(b_, int64_t(0));
  std::vector<const Expr *> extents, kept;
  for (size_t d = 0; d < e.type->rank(); d++) {
    const Expr *i = index.empty() ? static_cast<const Expr *>(b_.all()) : index[d];
    auto *r = as<Range>(i);
    if (r || i->kind == Kind::All) extents.push_back(r ? r->extent : e.type->dims[d]), kept.push_back(strides[d]);
    if (i->kind != Kind::All) position = position + X{b_, r ? r->lo : i} * X{b_, strides[d]};
  }
  Exprs dense = strides_of(b_, b_.tensor(e.type->elem, b_.list(extents)));
  for (size_t d = 0; d < kept.size(); d++)
    if (!is_int(extents[d], 1) && !provably_equal(b_, kept[d], dense[d], scope.bounds))
      fail(at, fmt::format("argument {} is a region with gaps in {}", name, scope_name));
  int64_t bits = info(e.type->elem).bits;
  if (bits < 8) fail(at, fmt::format("argument {} is a region of packed elements", name));
  X bytes = position * std::max<int64_t>(bits / 8, 1);
  const Expr *place = e.step ? (floordiv(bytes, e.step)).e : bytes.e;
  if (e.step && !provably_equal(b_, (bytes % e.step).e, b_.integer(0), scope.bounds))
    fail(at, fmt::format("argument {} does not begin at a unit of {}", name, scope_name));
  place = simplify(b_, place, scope.bounds);
  if (!string_attr(b_, e.memory->attrs, "type").empty()) return fmt::format("{}[{}]", e.ident, exprs.index(place).s);
  int64_t number;
  place = simplify(b_, (X{b_, place} + e.place).e, scope.bounds);
  if (e.step && !int_value(place, &number))
    fail(at, fmt::format("argument {} is number {} in {}: not a constant, loops around it are to be unrolled", name,
                         print(b_, place), scope_name));
  return exprs.index(place).s;
}

void BodyPrinter::intrinsic(const CallStmt &c, const Func &f) {
  std::string_view name = b_.text(f.name);
  const Part *impl = nullptr;
  for (const Part &p : f.parts)
    if (!p.desc) impl = &p;
  if (!impl) return fail(c.at, fmt::format("@{} has no impl: there is nothing to emit for it", name));
  if (c.call->args.size() != f.params.size() || c.dests.size() != f.results.size())
    return fail(c.at, fmt::format("@{} has {} parameters and {} results, found {} and {}", name, f.params.size(),
                                  f.results.size(), c.call->args.size(), c.dests.size()));
  std::vector<Argument> types, results;
  auto typed = [&](const Expr *e, const Type *want) {  // x[i] where f32[] is wanted is that element's buffer
    Argument a = argument_type(e, want->elem);
    if (want->tensor && want->dims.empty() && e->kind == Kind::Load && !a.type->tensor)
      a = {b_.tensor(a.type->elem, {}), nullptr, {}};
    return a;
  };
  for (size_t i = 0; i < f.params.size(); i++) types.push_back(typed(c.call->args[i], f.params[i].def.type));
  for (size_t i = 0; i < f.results.size(); i++) results.push_back(typed(c.dests[i], f.results[i].type));
  Solution dims = solve_dims(b_, f, types, results);
  if (!dims) return fail(c.at, fmt::format("the dimensions of @{} do not follow from its arguments", name));
  std::map<std::string, std::string, std::less<>> spelt;
  auto operand = [&](const Expr *e, const Def &param, bool written) {
    auto *n = as<Name>(e);
    auto *l = as<Load>(e);
    Entity *x = n ? scope.find(n->name) : l && !l->global ? scope.find(l->buffer) : nullptr;
    if (x) x->seen++;
    std::string &to = spelt[std::string(b_.text(param.name))];
    if (x && x->kind == Entity::Placed) to = placed_operand(*x, l ? l->index : Exprs{}, param, c.at);
    else to = argument(e, param, written, c.at);
  };
  for (size_t i = 0; i < f.params.size(); i++)
    operand(c.call->args[i], f.params[i].def, f.params[i].mode != Mode::In);
  for (size_t i = 0; i < f.results.size(); i++) operand(c.dests[i], f.results[i], true);
  for (Sym d : f.dims) spelt[std::string(b_.text(d))] = exprs.index(shortened(dims.names.at(d))).s;
  for (const Stmt *s : impl->body) {
    auto *code = as<Code>(s);
    if (!code) return fail(c.at, fmt::format("the impl of @{} holds {}, expected lines of code", name, print(b_, s)));
    std::string out;
    std::string_view t = code->text;
    for (size_t i = 0; i < t.size(); i++) {
      if (t[i] != '$') {
        out += t[i];
        continue;
      }
      if (i + 1 < t.size() && t[i + 1] == '$') {
        out += t[++i];
        continue;
      }
      size_t end = std::min(t.find_first_not_of(kWord, i + 1), t.size());
      while (end > i + 1 && t[end - 1] == '.') end--;
      auto it = spelt.find(t.substr(i + 1, end - i - 1));
      if (it == spelt.end())
        return fail(code->at, fmt::format("@{}: {} is neither an operand nor a dimension", name, t.substr(i, end - i)));
      // An operand alone between commas and parentheses stands as it is.
      bool alone = out.empty() || out.back() == '(' || out.back() == ' ';
      char next = end < t.size() ? t[end] : ';';
      size_t comma = out.find_last_not_of(' ');
      alone = alone && (comma == out.npos || out[comma] == '(' || out[comma] == ',') &&
              (next == ',' || next == ')' || next == ';');
      bool simple = it->second.find_first_of(" ") == it->second.npos;
      out += alone || simple ? it->second : "(" + it->second + ")";
      i = end - 1;
    }
    line("{}", out);
  }
  u_.use_target(f);
  for (const std::string &n : strings(attr(b_, f.notes.attrs, "needs")))
    for (auto *list : {&needs, &u_.needs})
      if (std::find(list->begin(), list->end(), n) == list->end()) list->push_back(n);
}

}  // namespace mlc
