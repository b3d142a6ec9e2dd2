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
    if (auto *inner = as<Call>(a); inner && !inner->global && b_.text(inner->callee)[0] >= 'A' &&
                                   b_.text(inner->callee)[0] <= 'Z') {
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

void FuncChecker::operator_results(std::string_view op, std::span<const Type *const> found, Defs defs) {
  for (size_t i = 0; i < defs.size(); ++i) {
    type(defs[i].type, defs[i].at);
    if (i < found.size() && found[i])
      same_type(defs[i].at, fmt::format("result {} of {}", text(defs[i].name), op), found[i], defs[i].type);
  }
}

void FuncChecker::operator_let(const Let &s, const Call &c) {
  std::string_view name = b_.text(c.callee);
  const OpInfo *op = find_op(name);
  if (!op) error(s.value->at, "no operator {}", name);
  std::vector<const Type *> types, found;
  if (operands(c, &types) && op) {
    OpUse use(b_, *op, types, c.args, s.attrs, &m_);
    for (const Def &d : s.defs) use.results.push_back(d.name);
    use.wanted = s.defs[0].type;
    try {
      found = infer(use);
      if (found.size() < s.defs.size())
        error(s.defs[found.size()].at, "{} has {} results, found {}", name, found.size(), s.defs.size());
      for (const Expr *fact : use.assumptions)
        if (!maybe_ && prove(b_, b_.unary(Op::Not, fact), bounds_))
          error(s.value->at, "{}: {} does not hold", name, print(b_, fact));
        else if (prove_ && !prove(b_, fact, bounds_))
          unproved(fmt::format("{} assumes {}", name, print(b_, fact)));
    } catch (const OpError &e) {
      error(s.value->at, "{}: {}", name, e.what());
    }
  }
  for (const Def &d : s.defs) define_value(d);
  operator_results(name, found, s.defs);
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
  OpUse use(b_, *op, types, c.args, s.attrs, &m_);
  use.wanted = dests[0];
  use.results.assign(dests.size(), Sym{});
  for (size_t i = 0; i < dests.size(); ++i) {
    auto *n = as<Name>(s.dests[i]);
    auto *l = as<Load>(s.dests[i]);
    use.results[i] = n ? n->name : l ? l->buffer : Sym{};
  }
  try {
    std::vector<const Type *> found = infer(use);
    if (found.size() < dests.size())
      error(s.dests[found.size()]->at, "{} has {} results, found {} destinations", name, found.size(), dests.size());
    for (size_t i = 0; i < dests.size() && i < found.size(); ++i) {
      if (!found[i]->tensor) error(s.dests[i]->at, "result {} of {} is a size, it has no destination", i + 1, name);
      else same_type(s.dests[i]->at, fmt::format("destination {} of {}", i + 1, name), found[i], dests[i]);
    }
  } catch (const OpError &e) {
    error(s.call->at, "{}: {}", name, e.what());
  }
}

}  // namespace mlc
