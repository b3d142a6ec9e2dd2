#include "ir/step.h"

#include "ir/build.h"

namespace mlc {

static bool combines(const Store &s) {
  auto *x = as<Binary>(s.value);
  auto *c = as<Call>(s.value);
  if (x) return equal(x->a, s.target) || equal(x->b, s.target);
  if (!c || !c->iters.empty()) return false;
  if (c->args.size() == 2) return equal(c->args[0], s.target) || equal(c->args[1], s.target);
  return c->args.size() == 3 && equal(c->args[2], s.target);  // fma(a, b, y[i])
}

size_t step_length(Stmts l, size_t at, const std::function<const Func *(Sym)> &function) {
  if (auto *s = as<Store>(l[at])) return combines(*s);
  auto *let = as<Let>(l[at]);
  auto *c = let ? as<Call>(let->value) : nullptr;
  auto *f = c && c->global ? function(c->callee) : nullptr;
  if (!f || f->func != FuncKind::Reducer || c->args.size() != 2 * let->defs.size()) return 0;
  size_t n = let->defs.size();
  if (at + n >= l.size()) return 0;
  for (size_t d = 0; d < n; d++) {
    auto *s = as<Store>(l[at + 1 + d]);
    auto *v = s ? as<Name>(s->value) : nullptr;
    if (!v || v->name != let->defs[d].name || !equal(c->args[d], s->target)) return 0;
  }
  return 1 + n;
}

}  // namespace mlc
