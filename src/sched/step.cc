#include "sched/step.h"

#include <algorithm>
#include <unordered_set>

#include "base/near.h"
#include "ir/walk.h"
#include "sched/primitives.h"
#include "text/text.h"

namespace mlc {

namespace {

const Primitive *primitive_of(Build &b, const Step &step, bool unsafe) {
  std::string name(b.text(step.call->callee));
  const Primitive *p = step.call->global ? nullptr : find_primitive(name);
  if (!p) {
    std::vector<std::string> known;
    for (const Primitive &x : primitives())
      known.emplace_back(x.name);
    std::vector<std::string> near = near_names(name, known, 1);
    bad_step(step.call->at, "there is no step {}{}", name,
             near.empty() ? "; mlc-sched(5) lists them" : "; is it " + near[0] + "?");
  }
  size_t n = step.call->args.size();
  if (n < p->least || n > p->most) bad_step(step.call->at, "{}: expected {}", counted(n, "argument"), p->usage);
  for (const Attr &a : step.attrs) {
    std::string key(b.text(a.key));
    if (fmt::format(" {} ", p->attrs).find(" " + key + " ") != std::string::npos) continue;
    std::string known(p->attrs);
    for (size_t i = 0; (i = known.find(' ', i)) != std::string::npos; i += 2)
      known.replace(i, 1, ", ");
    bad_step(a.at, "{} has no attribute {}{}", name, key, known.empty() ? "" : "; it knows " + known);
  }
  if (p->unsafe && !unsafe) bad_step(step.call->at, "{} may change results: it needs --unsafe", name);
  return p;
}

}  // namespace

std::string print_step(const Build &b, const Step &step) {
  std::string out;
  for (Sym r : step.results)
    out += (out.empty() ? "" : ", ") + print_name(b, r);
  if (!out.empty()) out += " = ";
  out += print(b, static_cast<const Expr *>(step.call));
  if (step.attrs.empty()) return out;
  out += " {";
  for (const Attr &a : step.attrs)
    out += (&a == &step.attrs[0] ? "" : ", ") + print_name(b, a.key) + " = " + print(b, a.value);
  return out + "}";
}

// What a block is bound to stays sums of loops times numbers and sizes, // and % of such: min(i + 1, 15) has no inverse.
static bool affine_in(const Expr *e, const std::unordered_set<Sym> &loops) {
  bool fixed = true;
  each_expr(e, [&](const Expr *x) {
    auto *n = as<Name>(x);
    return fixed &= !n || !loops.count(n->name);
  });
  if (fixed || e->kind == Kind::Name) return true;
  if (auto *u = as<Unary>(e)) return u->op == Op::Neg && affine_in(u->a, loops);
  auto *x = as<Binary>(e);
  if (!x || x->op == Op::Div || x->op < Op::Add) return false;
  bool other = x->op == Op::Add || x->op == Op::Sub;  // may move as well
  auto moves = [&](const Expr *y) {
    return std::any_of(loops.begin(), loops.end(), [&](Sym l) { return mentions(y, l); });
  };
  return affine_in(x->a, loops) && affine_in(x->b, loops) && (other || !moves(x->b) || (x->op == Op::Mul && !moves(x->a)));
}

static void check_bindings(State &s) {
  each_place(s.tree.root(), [&](Place *n) {
    if (!n->block()) return;
    std::unordered_set<Sym> loops;
    for (Place *u = n->up; u && u->stmt; u = u->up) {
      if (u->loop()) loops.insert(u->loop()->iter.name);
      if (u->block())
        for (const Axis &x : u->block()->axes) loops.insert(x.name);
    }
    for (const Axis &x : n->block()->axes)
      if (!affine_in(x.binding, loops))
        refuse(n, "axis {} of block {} would be bound to {}, which is not affine in loops", s.text(x.name),
               s.text(n->block()->name), s.text(x.binding));
  });
}

Step run_step(State &s, const Step &step, uint64_t seed, int line, bool unsafe) {
  const Primitive *p = primitive_of(s.b, step, unsafe);
  Args args(s, step, seed, line);
  p->run(s, args);
  if (!p->quiet) check_bindings(s), check_marks(s);
  for (auto &[key, h] : s.handles)
    if (h.node && h.gone.empty() && !s.tree.contains(s.tree.root(), h.node)) h.gone = print_step(s.b, step);
  return args.step();
}

}  // namespace mlc
