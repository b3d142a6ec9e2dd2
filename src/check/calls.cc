// Calls: of functions, of operators with destinations, of builtin effects.
#include "check/check.h"
#include "check/checker.h"
#include "ops/ops.h"
#include "text/text.h"

namespace mlc {

std::string why_unsolved(const Build &b, const Func &callee, std::span<const Argument> args, const Solution &s) {
  switch (s.problem) {
    case Solution::Count:
      return fmt::format("@{} has {}, found {}", b.text(callee.name), counted(callee.params.size(), "argument"),
                         args.size());
    case Solution::Unsolved:
      return fmt::format("dimension {} of @{} does not follow from the arguments", print_name(b, s.dim),
                         b.text(callee.name));
    case Solution::Mismatch: {
      const Param &p = callee.params[s.param];
      return fmt::format("argument {} of @{}: expected {}, found {}", print_name(b, p.def.name), b.text(callee.name),
                         print(b, p.def.type), print(b, args[s.param].type));
    }
    case Solution::None: break;
  }
  return "";
}

// Of a buffer, value, constant or region.
const Type *FuncChecker::buffer_type(const Expr *e, bool value) {
  if (auto *l = as<Load>(e)) {
    const Type *t = nullptr;
    if (l->global) {
      const Const *c = m_.constant(l->buffer);
      if (!c) error(e->at, "no constant @{} in the module", b_.text(l->buffer));
      t = c ? c->type : nullptr;
    } else if (Entry *v = visible(l->buffer, e->at, value)) {
      t = v->type;
    }
    if (!t) return nullptr;
    if (!t->tensor) return error(e->at, "{} is a scalar, expected a buffer", text(l->buffer)), nullptr;
    if (t->rank() != l->index.size()) {
      error(e->at, "{} has {}, found {}", text(l->buffer), counted(t->rank(), "dimension"),
            l->index.size() == 1 ? "1 index" : fmt::format("{} indices", l->index.size()));
      return nullptr;
    }
    for (const Expr *i : l->index) {
      auto *r = as<Range>(i);
      if (r ? !(index(r->lo) & index(r->extent)) : i->kind != Kind::All && !index(i)) return nullptr;
    }
    access(*l, t, true);
    return region_type(b_, t, l->index, nullptr);
  }
  const Type *t = e->kind == Kind::Name || e->kind == Kind::Global ? value_type(e) : nullptr;
  if (!t && e->kind != Kind::Name && e->kind != Kind::Global)
    error(e->at, "expected a buffer or a region, found {}", print(b_, e));
  if (t && !t->tensor) return error(e->at, "{} is a scalar, expected a buffer", print(b_, e)), nullptr;
  return t;
}

// The buffer behind a name or access that is to be written.
Entry *FuncChecker::target(const Expr *e) {
  auto *n = as<Name>(e);
  auto *l = as<Load>(e);
  Sym name = n ? n->name : l && !l->global ? l->buffer : Sym{};
  if (!name) {
    error(e->at, "{} cannot be written", print(b_, e));
    return nullptr;
  }
  Entry *v = find(name);
  if (v && v->what == What::Result && graph_) {
    if (v->defined) return error(e->at, "result {} is a value already, it cannot be written too", text(name)), nullptr;
  } else if (!visible(name, e->at)) {
    return nullptr;
  }
  if (!v->type->tensor || v->what == What::Value) {
    error(e->at, "{} is a {}, expected a buffer", text(name), v->type->tensor ? "value" : "scalar");
    return nullptr;
  }
  if (!v->writable) {
    error(e->at, "{} is only read: it is no result, `inout` or `scratch` parameter", text(name));
    return nullptr;
  }
  v->written = v->whole()->written = true;
  return v;
}

const Type *FuncChecker::destination(const Expr *e) {
  if (!target(e)) return nullptr;
  if (auto *n = as<Name>(e)) return find(n->name)->type;
  return buffer_type(e, false);
}

Exprs FuncChecker::region_strides(const Expr *e) {
  Exprs out;
  auto *l = as<Load>(e);
  if (l) region_type(b_, l->global ? m_.constant(l->buffer)->type : find(l->buffer)->type, l->index, &out);
  return out;
}

const Type *FuncChecker::argument(const Expr *e, const Param &p, bool pure, Argument *out) {
  std::string what = fmt::format("argument {}", text(p.def.name));
  *out = {nullptr, nullptr, {}};
  if (!p.def.type->tensor) {
    if (!scalar(e, p.def.type->elem)) return nullptr;
    out->value = e;
    return out->type = b_.scalar(p.def.type->elem);
  }
  if (p.mode != Mode::In) {
    if (pure) {
      error(e->at, "{} is `inout` or `scratch`: a pure call cannot write it, expected `call`", what);
      return nullptr;
    }
    if (!target(e)) return nullptr;
  }
  const Type *t = buffer_type(e);
  if (!t) return nullptr;
  Sym name = as<Load>(e) && !to<Load>(e).global ? to<Load>(e).buffer : as<Name>(e) ? to<Name>(e).name : Sym{};
  if (Entry *v = name && p.mode != Mode::Scratch ? find(name) : nullptr) {
    v->whole()->read = true;
    if (p.mode == Mode::In) unwritten(v, e->at);
  }
  out->strides = region_strides(e);
  std::string_view want = scope_of(p.def.type), have = scope_of(t);
  if (want != have) return error(e->at, "{}: expected a buffer in {}, found one in {}", what, want, have), nullptr;
  return out->type = t;
}

bool FuncChecker::arguments(const Call &c, const Func &f, bool pure, std::span<const Argument> results,
                            Solution *out) {
  bool ok = true;
  std::vector<Argument> args(c.args.size());
  if (args.size() != f.params.size()) {
    out->problem = Solution::Count;
    return fail(c.at, "{}", why_unsolved(b_, f, args, *out));
  }
  if (!c.iters.empty()) return fail(c.at, "@{} is no reducer, expected one before `for`", b_.text(f.name));
  for (size_t i = 0; i < args.size(); ++i) ok &= argument(c.args[i], f.params[i], pure, &args[i]) != nullptr;
  if (!ok) return false;
  *out = solve_dims(b_, f, args, results);
  if (!*out) {
    uint32_t at = out->problem == Solution::Mismatch ? c.args[out->param]->at : c.at;
    return fail(at == kNowhere ? c.at : at, "{}", why_unsolved(b_, f, args, *out));
  }
  for (auto &eq : out->open) {
    Match m = same(eq.wanted, eq.found);
    if (m == Match::Yes) continue;
    std::string what = fmt::format("argument {} of @{}", text(f.params[eq.param].def.name), b_.text(f.name));
    if (m == Match::No)
      ok = fail(c.args[eq.param]->at, "{}: expected size {}, found {}", what, print(b_, eq.wanted),
                print(b_, eq.found));
    else
      unproved(fmt::format("{}: size {} not proved equal to {}", what, print(b_, eq.found), print(b_, eq.wanted)));
  }
  return ok;
}

// y: T = @f(a)
void FuncChecker::pure_call(const Let &s, const Call &c, const Func &f) {
  Solution solved;
  std::vector<Argument> declared;
  for (const Def &d : s.defs) declared.push_back({d.type, nullptr, {}});
  bool ok = arguments(c, f, true, declared, &solved);
  if (!s.attrs.empty()) error(s.attrs[0].at, "a call in its pure form has no attribute {}", text(s.attrs[0].key));
  if (f.func == FuncKind::Intrinsic) ok = fail(c.at, "@{} is an intrinsic, it is called from kernels", b_.text(f.name));
  if (f.results.size() != s.defs.size())
    ok = fail(s.value->at, "@{} has {}, found {}", b_.text(f.name), counted(f.results.size(), "result"),
              counted(s.defs.size(), "name"));
  for (size_t i = 0; ok && i < s.defs.size(); ++i)
    if (!f.results[i].type->tensor) solved.names[f.results[i].name] = b_.name(s.defs[i].name);
  for (size_t i = 0; i < s.defs.size(); ++i) {
    const Def &d = s.defs[i];
    define_value(d);
    type(d.type, d.at);
    if (ok)
      same_type(d.at, fmt::format("result {} of @{}", text(f.results[i].name), b_.text(f.name)),
                substitute(b_, f.results[i].type, solved.names), d.type);
  }
}

// Effects that are neither functions of the module nor operators.
namespace {

struct Effect {
  std::string_view name;
  int least, most;  // arguments; most < 0: any number
  bool dest, graph, kernel, sync;
};
constexpr Effect kEffects[] = {
    {"fill", 1, 1, true, true, true, false},
    {"print", 1, -1, false, true, true, false},
    {"prefetch", 1, 1, false, false, true, false},
    {"event_record", 1, 1, false, true, false, false},
    {"event_wait", 1, 1, false, true, false, false},
    {"synchronize", 0, 0, false, true, false, false},
    {"barrier", 1, 2, false, false, true, true},
    {"wait", 1, 2, false, true, true, true},
    {"commit", 1, 1, false, false, true, true},
    {"fence", 1, 1, false, false, true, true},
    {"mbarrier_init", 2, 2, false, false, true, true},
    {"mbarrier_expect", 2, 2, false, false, true, true},
    {"mbarrier_arrive", 1, 1, false, false, true, true},
    {"mbarrier_wait", 2, 2, false, false, true, true},
    {"registers", 2, 2, false, false, true, true},
    {"shfl_xor", 2, 2, true, false, true, true},  // the value of the thread whose lane differs in these bits
};

}  // namespace

void FuncChecker::builtin_call(const CallStmt &s) {
  const Call &c = *s.call;
  std::string_view name = b_.text(c.callee);
  auto *e = std::find_if(std::begin(kEffects), std::end(kEffects), [&](auto &x) { return x.name == name; });
  if (e == std::end(kEffects)) return error(c.at, "no effect {}: a function is written @{}", name, name);
  if ((graph_ && !e->graph) || (kernel_ && !e->kernel))
    return error(c.at, "`{}` stands only in {}", name, e->graph ? "graphs" : "kernels");
  if (e->sync && stage_ == Stage::Blocks)
    return error(c.at, "`{}` stands only in compacted kernels, this one has blocks", name);
  if (int(c.args.size()) < e->least || (e->most >= 0 && int(c.args.size()) > e->most))
    error(c.at, "{} has {}, found {}", name, counted(e->least, "argument"), c.args.size());
  if (s.dests.size() != (e->dest ? 1 : 0))
    error(c.at, "{} has {}, found {}", name, e->dest ? "one destination" : "no destination", s.dests.size());
  const Type *to = nullptr;
  for (const Expr *d : s.dests) to = destination(d);
  for (const Expr *a : c.args) {
    if (a->kind == Kind::Str) continue;
    if (name == "fill" || (name == "shfl_xor" && a == c.args[0])) {
      if (to) scalar(a, to->elem);
    } else if (name == "print" && (a->kind == Kind::Name || a->kind == Kind::Global)) {
      value_type(a);
    } else if (auto *l = as<Load>(a)) {  // an object, or what is printed or fetched
      if (!buffer_type(a) || l->global) continue;
      find(l->buffer)->whole()->read = true;
      if (name.starts_with("mbarrier")) find(l->buffer)->whole()->written = true;
    } else if (auto *n = as<Name>(a); n && find(n->name) && find(n->name)->type->tensor) {
      value_type(a);
    } else {
      index(a);
    }
  }
}

void FuncChecker::call(const CallStmt &s) {
  const Call &c = *s.call;
  for (const Attr &a : s.attrs)
    if (auto *n = as<Name>(a.value); n && find(n->name)) names(n);
  if (!c.global) return find_op(b_.text(c.callee)) ? operator_call(s) : builtin_call(s);
  const Func *f = m_.func(c.callee);
  if (!f) {
    if (m_.find(c.callee)) return error(c.at, "@{} is not a function", b_.text(c.callee));
    return error(c.at, "no function @{} in the module", b_.text(c.callee));
  }
  if (f->func == FuncKind::Scalar || f->func == FuncKind::Reducer)
    return error(c.at, "@{} gives scalars, it is called in an expression", b_.text(c.callee));
  if (kernel_ && (f->func == FuncKind::Graph || f->func == FuncKind::Group))
    return error(c.at, "@{} is a graph, a kernel cannot call it", b_.text(c.callee));
  if (graph_ && f->func == FuncKind::Intrinsic)
    return error(c.at, "@{} is an intrinsic, it is called from kernels", b_.text(c.callee));
  Solution solved;
  std::vector<Argument> dests;
  for (const Expr *d : s.dests) {
    const Type *t = destination(d);
    if (t) dests.push_back({t, nullptr, region_strides(d)});
  }
  bool ok = dests.size() == s.dests.size();
  if (s.dests.size() != f->results.size())
    ok = fail(s.at, "@{} has {}, found {}", b_.text(f->name), counted(f->results.size(), "result"),
              counted(s.dests.size(), "destination"));
  if (!arguments(c, *f, false, ok ? std::span<const Argument>(dests) : std::span<const Argument>{}, &solved)) return;
  for (size_t i = 0; ok && i < s.dests.size(); ++i) {
    const Type *t = dests[i].type;
    const Def &r = f->results[i];
    std::string what = fmt::format("result {} of @{}", text(r.name), b_.text(f->name));
    if (!r.type->tensor) {
      error(s.dests[i]->at, "{} is a size, it has no destination", what);
      continue;
    }
    same_type(s.dests[i]->at, what, substitute(b_, r.type, solved.names), t);
    if (scope_of(r.type) != scope_of(t))
      error(s.dests[i]->at, "{}: expected a buffer in {}, found one in {}", what, scope_of(r.type), scope_of(t));
  }
}

}  // namespace mlc
