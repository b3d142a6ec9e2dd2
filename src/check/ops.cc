// Operators: operands, attributes, and the types that their rules give.
#include "ops/ops.h"

#include "arith/prove.h"
#include "check/checker.h"
#include "text/text.h"

namespace mlc {

namespace {

bool is_literal(const Expr *e) {
  switch (e->kind) {
    case Kind::Int:
    case Kind::Float:
    case Kind::Bool:
    case Kind::Str: return true;
    default: return false;
  }
}

}  // namespace

// Null types are those of literals, lists and index expressions, which follow from the operator.
bool FuncChecker::operands(const Call &c, std::vector<const Type *> *types) {
  bool ok = true;
  for (const Expr *a : c.args) {
    const Type *t = nullptr;
    if (auto *inner = as<Call>(a); inner && !inner->global && is_operator_name(b_.text(inner->callee))) {
      ok = fail(a->at, "operators do not nest: {} needs a line of its own", b_.text(inner->callee));
    } else if (auto *list = as<List>(a)) {
      for (const Expr *i : list->items)
        if (!is_literal(i)) ok &= index(i);
    } else if (a->kind != Kind::None && !is_literal(a)) {
      t = value_type(a);
      ok &= t != nullptr;
      if (t == b_.index()) t = nullptr;
      else if (t && !t->tensor) t = b_.tensor(t->elem, {});
    }
    types->push_back(t);
  }
  return ok;
}

// What the operator's rule gives for these operands; empty if it refuses, which is reported.
std::vector<const Type *> FuncChecker::rule(const OpInfo &op, const Operands &o, uint32_t at) {
  OpUse use(b_, op, o.types, o.args, o.attrs, &m_);
  use.results = o.names;
  use.wanted = o.wanted;
  try {
    std::vector<const Type *> found = infer(use);
    if (found.size() < o.names.size())
      error(at, "{} has {}, found {}", op.name, counted(found.size(), "result"), o.names.size());
    for (const Expr *fact : use.assumptions) {
      if (!maybe_ && prove(b_, b_.unary(Op::Not, fact), bounds_))
        error(at, "{}: {} does not hold", op.name, print(b_, fact));
      else if (prove_ && !prove(b_, fact, bounds_))
        unproved(fmt::format("{} assumes {}", op.name, print(b_, fact)));
    }
    return found;
  } catch (const OpError &e) {
    error(at, "{}: {}", op.name, e.what());
    return {};
  }
}

void FuncChecker::operator_let(const Let &s, const Call &c) {
  std::string_view name = b_.text(c.callee);
  const OpInfo *op = find_op(name);
  if (!op) error(s.value->at, "no operator {}", name);
  Operands o = {{}, c.args, s.attrs, {}, s.defs[0].type};
  for (const Def &d : s.defs) o.names.push_back(d.name);
  // In a pattern an attribute may be a parameter, which a match finds: the rule is tried with 1.
  Substitution sample;
  for (const Attr &a : s.attrs)
    each_expr(a.value, [&](const Expr *e) {
      Entry *p = as<Name>(e) ? find(to<Name>(e).name) : nullptr;
      if (p && p->what == What::Param && !p->type->tensor)
        sample[p->name] = is_float(p->type->elem) ? static_cast<const Expr *>(b_.number(1.0)) : b_.integer(1);
      return true;
    });
  auto sampled = [&](const Type *t) { return sample.empty() || !t ? t : substitute(b_, t, sample); };
  std::vector<const Type *> found;
  if (operands(c, &o.types) && op) {
    if (!sample.empty()) {
      for (const Type *&t : o.types) t = sampled(t);
      o.args = substitute(b_, o.args, sample), o.attrs = substitute(b_, o.attrs, sample), o.wanted = sampled(o.wanted);
    }
    found = rule(*op, o, s.value->at);
  }
  for (size_t i = 0; i < s.defs.size(); ++i) {
    const Def &d = s.defs[i];
    define_value(d);
    type(d.type, d.at);
    if (i < found.size() && found[i])
      same_type(d.at, fmt::format("result {} of {}", text(d.name), name), found[i], sampled(d.type));
  }
}

// call Gemm(a, b, none) -> y {transB = 1}: an operator with its destinations.
void FuncChecker::operator_call(const CallStmt &s) {
  const Call &c = *s.call;
  std::string_view name = b_.text(c.callee);
  const OpInfo *op = find_op(name);
  std::vector<const Type *> types, dests;
  bool ok = true;
  if (kernel_) {  // operands are buffers and regions
    for (const Expr *a : c.args) {
      bool buffer = a->kind == Kind::Load || a->kind == Kind::Name || a->kind == Kind::Global;
      const Type *t = buffer ? buffer_type(a) : nullptr;
      if (auto *n = as<Name>(a)) find(n->name) ? void(find(n->name)->whole()->read = true) : void();
      types.push_back(t);
    }
  } else {
    ok = operands(c, &types);
  }
  for (const Expr *d : s.dests) dests.push_back(destination(d)), ok &= dests.back() != nullptr;
  if (!ok || !op || dests.empty()) {
    if (op && s.dests.empty()) error(s.at, "{} has a result, expected `-> destination`", name);
    return;
  }
  // Where and when it runs is the call's, all else the operator's.
  std::vector<Attr> attrs;
  for (const Attr &a : s.attrs)
    if (b_.text(a.key) != "stream") attrs.push_back(a);
  Operands o = {types, c.args, b_.list(attrs), {}, dests[0]};
  for (const Expr *d : s.dests) o.names.push_back(as<Name>(d) ? to<Name>(d).name : to<Load>(d).buffer);
  std::vector<const Type *> found = rule(*op, o, s.call->at);
  for (size_t i = 0; i < dests.size() && i < found.size(); ++i) {
    if (!found[i] || !found[i]->tensor)
      error(s.dests[i]->at, "result {} of {} is a size, it has no destination", i + 1, name);
    else
      same_type(s.dests[i]->at, fmt::format("destination {} of {}", i + 1, name), found[i], dests[i]);
  }
}

}  // namespace mlc
