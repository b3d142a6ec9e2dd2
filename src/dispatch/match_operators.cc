// Operators of a graph against those of a description.
#include <algorithm>

#include "arith/scope.h"
#include "dispatch/match.h"
#include "text/text.h"

namespace mlc {
namespace {

constexpr size_t kMostSteps = 20000;  // of one attempt, with all its alternatives

bool commutes(std::string_view op, size_t operands) {
  constexpr std::string_view kOps[] = {"Add", "Mul", "Max", "Min", "Sum", "Mean", "And", "Or", "Xor", "Equal",
                                       "BitwiseAnd", "BitwiseOr", "BitwiseXor"};
  return operands == 2 && std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

class Operators {
 public:
  using Next = std::function<bool(Binding)>;

  Operators(Build &b, const LibraryPattern &p, const GraphScope &scope, Reasons &why)
      : b_(b), p_(p), scope_(scope), why_(why), inner_(scope.values.module(), *p.function) {
    for (const Let *l : p.lines) {
      inner_.define(l->defs);
      for (const Def &d : l->defs) lines_[d.name] = l;
    }
  }

  std::optional<Found> run(const Let &root, const std::function<bool(const Binding &, Found &)> &settled) {
    std::optional<Found> found;
    auto it = lines_.find(p_.function->results[0].name);
    if (it == lines_.end()) return {};
    line(*it->second, root, {}, [&](Binding s) {
      Found f;
      if (!settled(s, f)) return false;
      found = std::move(f);
      return true;
    });
    return found;
  }

 private:
  template <class... A> bool no(const Binding &s, fmt::format_string<A...> f, A &&...a) {
    return why_.no(s, f, std::forward<A>(a)...);
  }

  using Pairs = std::vector<std::pair<const Expr *, const Expr *>>;

  bool line(const Let &want, const Let &found, Binding s, const Next &next) {
    if (++steps_ > kMostSteps) return no(s, "too many ways to match");
    for (auto &[p, g] : s.lines) {
      if (p == &want) return g == &found ? next(std::move(s)) : no(s, "one line of the description would be two");
      if (g == &found) return no(s, "two lines of the description would be one");
    }
    const OpInfo *op = operator_of(b_, want), *other = operator_of(b_, found);
    if (op != other)
      return no(s, "expected {}, found {}", op->name, other ? other->name : print(b_, found.value));
    s.depth++;
    s.lines.push_back({&want, &found});
    if (want.defs[0].type->elem != found.defs[0].type->elem && want.defs[0].type->tensor)
      return no(s, "{}: expected {}, found {}", op->name, dtype_name(want.defs[0].type->elem),
                               dtype_name(found.defs[0].type->elem));
    OpUse w = op_use(b_, want, *op, inner_), f = op_use(b_, found, *op, scope_.values);
    for (const AttrSpec &a : op->attrs)
      if (!attribute(a, w, f, s)) return false;
    Exprs x = to<Call>(want.value).args, y = to<Call>(found.value).args;
    size_t n = std::max(x.size(), y.size());
    Pairs pairs;
    auto at = [](Exprs l, size_t i) {
      return i < l.size() && l[i]->kind != Kind::None ? l[i] : nullptr;
    };
    for (size_t i = 0; i < n; i++) pairs.push_back({at(x, i), at(y, i)});
    if (operands(pairs, 0, s, next)) return true;
    if (!commutes(op->name, n) || !pairs[0].second || !pairs[1].second) return false;
    std::swap(pairs[0].second, pairs[1].second);
    return operands(pairs, 0, s, next);
  }

  bool operands(const Pairs &pairs, size_t i, Binding s, const Next &next) {
    if (i == pairs.size()) return next(std::move(s));
    auto [want, found] = pairs[i];
    if (!want && !found) return operands(pairs, i + 1, std::move(s), next);
    if (!want || !found)
      return no(s, "operand {}: expected {}, found {}", i, shown(want), shown(found));
    return operand(want, found, std::move(s), [&](Binding t) { return operands(pairs, i + 1, std::move(t), next); });
  }

  std::string shown(const Expr *e) const { return e ? print(b_, e) : "none"; }

  bool operand(const Expr *want, const Expr *found, Binding s, const Next &next) {
    auto *n = as<Name>(want);
    auto *l = n ? lines_.count(n->name) ? lines_.at(n->name) : nullptr : nullptr;
    if (l) {  // a value of the description
      auto *value = as<Name>(found);
      const Let *line_of = value ? scope_.line(value->name) : nullptr;
      if (!line_of) return no(s, "expected a result of {}, found {}", operator_of(b_, *l)->name, print(b_, found));
      auto place = [](const Let &x, Sym name) {
        auto is = [&](const Def &d) { return d.name == name; };
        return std::find_if(x.defs.begin(), x.defs.end(), is) - x.defs.begin();
      };
      if (place(*l, n->name) != place(*line_of, value->name)) return no(s, "it is another result of the same operator");
      return line(*l, *line_of, std::move(s), next);
    }
    const Param *param = n ? param_of(p_, n->name) : nullptr;
    if (param && param->def.type->tensor) {
      const Type *t = scope_.values.of(found);
      if (!t) return no(s, "parameter {}: expected a tensor, found {}", b_.text(n->name), print(b_, found));
      auto [it, fresh] = s.names.try_emplace(n->name, found);
      if (!fresh && !equal(it->second, found))
        return no(s, "parameter {} would be {} and {}", b_.text(n->name), print(b_, it->second), print(b_, found));
      s.depth++;
      return next(std::move(s));
    }
    if (param) return bind_scalar(b_, *param, scalar(found), s, why_) && next(std::move(s));
    return value(want, scalar(found), s) && next(std::move(s));
  }

  // The literal that a constant of one element is.
  const Expr *scalar(const Expr *e) const {
    auto *g = as<Global>(e);
    const Const *c = g ? scope_.values.module().constant(g->name) : nullptr;
    if (!c || !c->value) return e;
    for (const Expr *d : c->type->dims)
      if (!is_int(d, 1)) return e;
    const Expr *v = c->value;
    while (auto *l = as<List>(v)) {
      if (l->items.size() != 1) return e;
      v = l->items[0];
    }
    return is_literal(v) ? v : e;
  }

  // Literals, lists, index expressions.
  bool value(const Expr *want, const Expr *found, Binding &s) {
    auto differ = [&] { return no(s, "expected {}, found {}", print(b_, want), print(b_, found)); };
    if (auto *n = as<Name>(want))
      if (const Param *param = param_of(p_, n->name); param && !param->def.type->tensor)
        return bind_scalar(b_, *param, found, s, why_);
    if (auto *l = as<List>(want)) {
      auto *m = as<List>(found);
      if (!m || m->items.size() != l->items.size()) return differ();
      for (size_t i = 0; i < l->items.size(); i++)
        if (!value(l->items[i], m->items[i], s)) return false;
      return true;
    }
    bool plain = is_literal(want) || want->kind == Kind::Str || want->kind == Kind::Map;
    if (plain) return equal(want, found) ? (s.depth++, true) : differ();
    bool index = found->kind == Kind::Int || found->kind == Kind::Name || found->kind == Kind::Binary;
    if (!index || reads_memory(found)) return differ();
    s.equal.push_back({want, found, nullptr});
    return true;
  }

  // An attribute as it counts: given, by its default, or, of a window, what leaving it out means.
  const Expr *counts(const AttrSpec &a, const OpUse &u) const {
    if (const Expr *e = u.attr_value(a.name)) return e;
    bool window = u.op.attr("kernel_shape") && u.op.attr("strides") && u.has(0) && u.rank(0) > 2;
    if (!window) return nullptr;
    size_t n = u.rank(0) - 2;
    auto all = [&](size_t count, int64_t v) {
      return b_.make_list(b_.list(std::vector<const Expr *>(count, b_.integer(v))));
    };
    if (a.name == "strides" || a.name == "dilations") return all(n, 1);
    if (a.name == "pads") return all(2 * n, 0);
    if (a.name == "kernel_shape" && u.has(1) && u.rank(1) == n + 2)
      return b_.make_list(u.type(1)->dims.subspan(2));
    return nullptr;
  }

  bool attribute(const AttrSpec &a, const OpUse &w, const OpUse &f, Binding &s) {
    const Expr *want = counts(a, w), *found = counts(a, f);
    if (!want && !found) return true;
    int64_t x, y;
    bool axis = want && found && a.name == "axis" && int_value(want, &x) && int_value(found, &y) && f.has(0);
    if (axis && (x - y) % int64_t(std::max<size_t>(f.rank(0), 1)) == 0) return s.depth++, true;
    size_t depth = s.depth;
    Reasons inside;
    std::swap(inside, why_);
    bool ok = want && found && value(want, found, s);
    std::swap(inside, why_);
    if (ok) return true;
    s.depth = depth;
    return no(s, "attribute {}: expected {}, found {}", a.name, shown(want), shown(found));
  }

  Build &b_;
  const LibraryPattern &p_;
  const GraphScope &scope_;
  Reasons &why_;
  Values inner_;  // of the description
  std::unordered_map<Sym, const Let *> lines_;
  size_t steps_ = 0;
};

// The values that the results of the pattern are, by the lines that were matched; empty: one is not among them.
std::vector<Def> result_values(const LibraryPattern &p, const Binding &s) {
  std::vector<Def> all;
  for (const Def &r : p.function->results)
    for (auto &[want, found] : s.lines)
      for (size_t i = 0; i < want->defs.size() && i < found->defs.size(); i++)
        if (want->defs[i].name == r.name) all.push_back(found->defs[i]);
  return all;
}

}  // namespace

std::optional<Found> match_operators(Build &b, const LibraryPattern &p, const Let &root, const GraphScope &scope,
                                     Reasons &why) {
  return Operators(b, p, scope, why).run(root, [&](const Binding &s, Found &out) {
    out.defs = result_values(p, s);
    if (out.defs.size() != p.function->results.size()) return why.no(s, "a result is not among the operators");
    for (auto &[want, found] : s.lines) {
      out.lines.push_back(found);
      for (const Def &d : found->defs) {
        bool result = std::any_of(out.defs.begin(), out.defs.end(), [&](const Def &r) { return r.name == d.name; });
        if (!result && !scope.inner(d.name, s)) return why.no(s, "{} is read elsewhere too", b.text(d.name));
      }
    }
    std::vector<const Type *> types;
    for (const Def &d : out.defs) types.push_back(d.type);
    return settle(b, p, s, [&](const Expr *e) { return scope.values.of(e); }, types, scope.known, out, why);
  });
}

std::optional<Found> match_group(Build &b, const Module &m, const LibraryPattern &p, const Func &group, Reasons &why) {
  Values values(m, group);
  Bounds known(b);
  enter(known, group);
  std::unordered_map<Sym, const Let *> lines;
  size_t count = 0;
  for (const Stmt *s : group.body) {
    after(known, s);
    auto *l = as<Let>(s);
    if (!l) continue;
    values.define(s), count++;
    for (const Def &d : l->defs) lines[d.name] = l;
  }
  auto line = [&](Sym name) -> const Let * {
    auto it = lines.find(name);
    return it == lines.end() ? nullptr : it->second;
  };
  GraphScope scope{values, known, line, [](Sym, const Binding &) { return true; }};
  // Any result of the group may be the pattern's first.
  for (const Def &r : group.results) {
    const Let *root = line(r.name);
    if (!root) continue;
    auto found = match_operators(b, p, *root, scope, why);
    if (!found) continue;
    if (found->lines.size() != count || found->defs.size() != group.results.size()) {
      why.no({}, "the group holds more than the description");
      continue;
    }
    for (const Def &d : found->defs) {
      auto called_so = [&](const Def &x) { return x.name == d.name; };
      auto at = std::find_if(group.results.begin(), group.results.end(), called_so);
      if (at == group.results.end()) return {};
      found->results.push_back(size_t(at - group.results.begin()));
    }
    return found;
  }
  return {};
}

}  // namespace mlc
