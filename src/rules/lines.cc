#include "rules/lines.h"

#include <algorithm>

#include "arith/prove.h"
#include "text/text.h"

namespace mlc {

namespace {

bool is_attribute(const Expr *arg) {
  auto x = as<Binary>(arg);
  return x && x->op == Op::Eq;
}
Sym key_of(const Binary &attribute) { return to<Name>(attribute.a).name; }

// Are all values of `from` values of `to`? The bits of a float's significand, and its range, decide.
bool keeps(DType from, DType to) {
  if (from == to || from == DType::Bool) return to != DType::Str;
  if (from == DType::Str || to == DType::Str || to == DType::Bool) return false;
  int bits = info(from).bits - (is_int(from) && is_signed(from));
  if (is_int(from) && is_int(to)) {
    if (is_signed(from) && !is_signed(to)) return false;
    return bits <= info(to).bits - is_signed(to);
  }
  if (is_int(from)) return to == DType::F64 ? bits <= 53 : to == DType::F32 && bits <= 24;
  if (is_int(to)) return false;
  if (to == DType::F64) return true;
  return to == DType::F32 && info(from).bits < 32;
}

std::optional<std::vector<int64_t>> ints(const Expr *e) {
  auto l = as<List>(e);
  if (!l) return std::nullopt;
  std::vector<int64_t> out(l->items.size());
  for (size_t i = 0; i < out.size(); i++)
    if (!int_value(l->items[i], &out[i])) return std::nullopt;
  return out;
}

}  // namespace

const Expr *LineRules::literal(const Expr *arg) const {
  auto g = as<Global>(arg);
  const Const *c = g ? scope_->m->constant(g->name) : nullptr;
  if (c) arg = c->value;
  if (!arg) return nullptr;
  if (auto l = as<List>(arg); l && c && !l->items.empty()) {
    auto same = [&](const Expr *i) { return equal(i, l->items[0]); };
    if (std::all_of(l->items.begin(), l->items.end(), same)) arg = l->items[0];
  }
  return arg->kind == Kind::Int || arg->kind == Kind::Float || arg->kind == Kind::Bool ? arg : nullptr;
}

bool LineRules::match_argument(const Expr *pattern, const Expr *arg) {
  if (auto n = as<Name>(pattern)) return vars_.bind(b_, n->name, arg);
  if (pattern->kind == Kind::None) return arg->kind == Kind::None;
  if (auto c = as<Call>(pattern); c && is_operator(b_, c->callee)) {
    auto n = as<Name>(arg);
    const Let *line = n ? scope_->line(n->name) : nullptr;
    if (!line || !match(pattern, *line)) return false;
    matched_.push_back(line);
    return true;
  }
  const Expr *e = literal(arg);
  if (!e) return false;
  DType t = e->kind == Kind::Int ? DType::I64 : e->kind == Kind::Float ? DType::F64 : DType::Bool;
  return same_literal(b_, pattern, e, t);
}

bool LineRules::attribute(const Binary &pattern, const Let &line) {
  auto n = as<Name>(pattern.b);
  const Expr *v = attr(line.attrs, key_of(pattern));
  if (!v && n && b_.text(n->name) == "_") return true;
  if (!v) {
    const OpInfo *op = find_op(b_.text(to<Call>(line.value).callee));
    const AttrSpec *spec = op ? op->attr(b_.text(key_of(pattern))) : nullptr;
    if (!spec || spec->fallback.empty() || spec->fallback == "?") return false;
    std::string error;
    v = spec->type == 's' ? b_.string(spec->fallback) : read_expr(b_, b_.arena.text(spec->fallback), &error);
    if (!v) return false;
  }
  return n ? vars_.bind(b_, n->name, v) : equal(pattern.b, v);
}

bool LineRules::match(const Expr *pattern, const Let &line) {
  auto c = as<Call>(line.value);
  auto &p = to<Call>(pattern);
  if (!c || c->global || c->callee != p.callee || line.defs.size() != 1) return false;
  size_t args = 0;
  for (const Expr *a : p.args) {
    if (is_attribute(a)) {
      if (!attribute(to<Binary>(a), line)) return false;
    } else if (!match_argument(a, args < c->args.size() ? c->args[args] : b_.none())) {
      return false;
    } else {
      args++;
    }
  }
  for (size_t i = args; i < c->args.size(); i++)
    if (c->args[i]->kind != Kind::None) return false;
  auto named = [&](const Attr &a) {
    auto is = [&](const Expr *x) { return is_attribute(x) && key_of(to<Binary>(x)) == a.key; };
    return std::any_of(p.args.begin(), p.args.end(), is);
  };
  return std::all_of(line.attrs.begin(), line.attrs.end(), named);
}

bool LineRules::guard(std::string_view name, const Expr *arg) {
  const Expr *x = vars_.find(to<Name>(arg).name);
  const Type *t = x ? scope_->type(x) : nullptr;
  bool yes = false;
  if (t && of_class(name, t->elem, &yes)) return yes;
  if (name == "ascending") {
    auto l = ints(x);
    for (size_t i = 0; l && i < l->size(); i++)
      if ((*l)[i] != int64_t(i)) return false;
    return l.has_value();
  }
  if (name == "zero") {
    auto l = ints(x);
    if (l) return std::all_of(l->begin(), l->end(), [](int64_t v) { return v == 0; });
    const Expr *v = x ? literal(x) : nullptr;
    return v && is_int(v, 0);
  }
  if (name != "exact" || !t) return false;
  return std::all_of(matched_.begin(), matched_.end(), [&](const Let *l) {
    DType inner = l->defs[0].type->elem;
    bool saturates = is_int(t->elem) && is_float(inner) && is_int(last_);  // a float does, where an integer wraps
    return keeps(t->elem, inner) && (!saturates || keeps(t->elem, last_));
  });
}

// p[q]: the permutation p after q; names are what they stand for.
const Expr *LineRules::attribute_value(const Expr *e) {
  if (auto n = as<Name>(e)) return vars_.find(n->name);
  auto load = as<Load>(e);
  if (!load) return e;
  auto p = ints(vars_.find(load->buffer)), q = ints(attribute_value(load->index[0]));
  if (!p || !q || p->size() != q->size()) return nullptr;
  std::vector<const Expr *> out;
  for (int64_t i : *q) {
    if (i < 0 || i >= int64_t(p->size())) return nullptr;
    out.push_back(b_.integer((*p)[size_t(i)]));
  }
  return b_.make_list(b_.list(out));
}

bool LineRules::same_type(const Type *a, const Type *c) const {
  if (a == c) return true;
  return a && c && b_.with_dims(a, c->dims) == c && provably_equal(b_, a->dims, c->dims, *scope_->known);
}

const Expr *LineRules::argument(const Expr *result, const Let &line, Result &out) {
  if (auto n = as<Name>(result)) return vars_.find(n->name);
  auto c = as<Call>(result);
  if (!c || !is_operator(b_, c->callee)) return result;
  const Let *inner = built(*c, line, false, out);
  return inner ? b_.name(inner->defs[0].name) : nullptr;
}

// A line that computes the result; null if it is not legal, or not of the same type.
const Let *LineRules::built(const Call &result, const Let &line, bool root, Result &out) {
  const OpInfo *op = find_op(b_.text(result.callee));
  std::vector<const Expr *> args;
  std::vector<Attr> attrs;
  for (const Expr *a : result.args) {
    const Expr *v = is_attribute(a) ? attribute_value(to<Binary>(a).b) : argument(a, line, out);
    if (!v) return nullptr;
    if (!is_attribute(a)) {
      args.push_back(v);
      continue;
    }
    Sym key = key_of(to<Binary>(a));
    const AttrSpec *spec = op ? op->attr(b_.text(key)) : nullptr;
    auto text = as<Str>(v);
    std::string written = text ? std::string(text->value) : print(b_, v);
    if (!spec || written != spec->fallback) attrs.push_back({key, kNowhere, v});
  }
  if (!op) return nullptr;
  std::vector<const Type *> types;
  for (const Expr *a : args) {
    const Let *made = nullptr;
    for (const Let *l : out.lines)
      if (auto n = as<Name>(a); n && l->defs[0].name == n->name) made = l;
    types.push_back(made ? made->defs[0].type : scope_->type(a));
  }
  Def def = line.defs[0];
  OpUse use(b_, *op, types, b_.list(args), b_.list(attrs), scope_->m);
  if (root) use.results = {def.name}, use.wanted = def.type;
  try {
    std::vector<const Type *> found = infer(use);
    if (found.empty() || !found[0] || !found[0]->tensor) return nullptr;
    for (const Expr *fact : use.assumptions)
      if (!prove(b_, fact, *scope_->known)) return nullptr;
    if (root && !same_type(b_.with_dims(def.type, found[0]->dims), def.type)) return nullptr;
    if (root && found[0]->elem != def.type->elem) return nullptr;
    if (!root) def = {scope_->fresh(b_.text(def.name)), kNowhere, found[0]};
  } catch (const OpError &) {
    return nullptr;
  }
  Let made = line;
  made.defs = b_.one(def), made.attrs = b_.list(attrs);
  made.value = b_.call(result.callee, b_.list(args), line.value->at);
  if (!root) made.comment = {};
  out.lines.push_back(b_.make(made));
  return out.lines.back();
}

std::optional<LineRules::Result> LineRules::apply(const Let &line, const LineScope &scope) {
  if (line.defs.size() != 1) return std::nullopt;
  scope_ = &scope;
  last_ = line.defs[0].type->elem;
  auto asked = [&](std::string_view name, const Expr *arg) { return guard(name, arg); };
  for (const Rule *r : rules_.at(line.value)) {
    if (!r->lines) continue;
    vars_.clear(), matched_.clear();
    if (!match(r->pattern, line) || (r->guard && !holds(b_, r->guard, asked))) continue;
    Result out{r, nullptr, {}, matched_};
    if (auto n = as<Name>(r->result)) {
      out.value = vars_.find(n->name);
      if (!same_type(scope.type(out.value), line.defs[0].type)) continue;
      return out;
    }
    auto c = as<Call>(r->result);
    if (c && built(*c, line, true, out)) return out;
  }
  return std::nullopt;
}

}  // namespace mlc
