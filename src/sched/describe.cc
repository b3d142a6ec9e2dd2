#include "sched/describe.h"

#include "ir/build.h"

namespace mlc {

const Type *Description::type_of(Sym operand) const {
  for (const Param &p : f->params)
    if (p.def.name == operand) return p.def.type;
  for (const Def &r : f->results)
    if (r.name == operand) return r.type;
  return nullptr;
}

std::optional<Description> description_of(Build &b, const Func &f) {
  for (const Part &p : f.parts) {
    if (!p.desc || p.body.size() != 1) continue;
    auto *c = as<Compute>(p.body[0]);
    if (!c || c->results.size() != 1) continue;
    Description out{};
    out.f = &f;
    std::vector<const Expr *> index;
    for (const Iter &i : c->results[0].iters)
      out.spatial.push_back(i), index.push_back(b.name(i.name));
    out.target = b.load(c->results[0].name, b.list(index)), out.value = c->value, out.starts = true;
    const Expr *e = c->value;
    if (auto *x = as<Binary>(e); x && x->op == Op::Add && equal(x->a, out.target)) e = x->b, out.starts = false;
    auto *call = as<Call>(e);
    if (call && !call->iters.empty() && !call->global) {
      out.fold = call->callee, out.value = call->args[0];
      for (const Iter &i : call->iters)
        out.reduce.push_back(i);
    } else if (!out.starts) {  // y = y + e: a sum of one term
      out.fold = b.sym("sum"), out.value = e;
    }
    return out;
  }
  return std::nullopt;
}

}  // namespace mlc
