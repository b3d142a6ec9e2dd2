#include "pipeline.h"

#include <algorithm>

#include "passes.h"
#include "target/target.h"
#include "text/text.h"

namespace mlc {

const Pass *pass_named(std::string_view name) {
  for (const Pass *p : all_passes())
    if (name == p->name) return p;
  return nullptr;
}

std::optional<PipeTarget> pipe_target(const std::string &name, std::string *error) {
  Build b;
  auto t = find_target(b, nullptr, name, error);
  if (!t) return {};
  return PipeTarget{t->kind == "cuda", t->kind != "cuda" && !t->uses.empty()};
}

std::vector<const Pass *> usual_passes(const std::optional<PipeTarget> &target) {
  std::vector<const Pass *> passes;
  for (std::string_view name : {"simplify", "fuse", "lower", "tensorize", "tile", "compact", "plan"})
    if (name == "tensorize" ? target && target->intrinsics : target || (name != "tile" && name != "compact"))
      passes.push_back(pass_named(name));
  return passes;
}

Options options_for(const Pass &pass, const Options &given) {
  Options o;
  for (const char *name : {"strict", "target", "library"})
    if (std::any_of(pass.options.begin(), pass.options.end(), [&](auto &s) { return std::string_view(s.name).starts_with(name); }))
      if (auto it = given.values.find(name); it != given.values.end()) o.values.insert(*it);
  return o;
}

bool reread(Program &stage, const std::string &name, FILE *errors, const std::string &tool) {
  std::string text;
  print(*stage.build, stage.module, text);
  Program next;
  next.source = std::make_unique<Source>(Source::from_string(name, text));
  next.build = std::make_unique<Build>();
  Diag diag(tool, next.source.get());
  bool ok = read(*next.build, *next.source, next.module, diag);
  diag.print(errors);
  if (ok) stage = std::move(next);
  return ok;
}

bool run_pass(const Pass &pass, const Options &options, Program &stage, bool verbose, FILE *errors) {
  Diag diag(pass.name, stage.source.get());
  diag.verbose = verbose;
  bool ok = run_pass(pass, *stage.build, stage.module, options, diag);
  diag.print(errors);
  return ok;
}

// A module of kernels, such as mlc-extract and mlc-schedule print: a graph that calls the only one, under its
// signature.
static void add_graph(Build &b, Module &m) {
  const Func *kernel = nullptr;
  Fresh names(b);
  for (const Item *i : m.items) {
    names.take(name_of(i));
    auto *f = as<Func>(i);
    if (!f || (f->func != FuncKind::Kernel && f->func != FuncKind::Graph)) continue;
    if (kernel || f->func == FuncKind::Graph) return;
    kernel = f;
  }
  if (!kernel) return;
  std::vector<const Expr *> args, dests;
  for (const Param &p : kernel->params) args.push_back(b.name(p.def.name));
  for (const Def &d : kernel->results) dests.push_back(b.name(d.name));
  Func graph = *kernel;
  graph.func = FuncKind::Graph, graph.name = names.make("main"), graph.notes = {}, graph.comment = {};
  graph.body =
      b.stmts({b.make(CallStmt{{}, b.call(kernel->name, b.list(args), kNowhere, true), b.list(dests), {}, {}})});
  m.add(b.make(graph));
}

void finish(Build &b, Module &m, Diag &diag, bool device) {
  add_graph(b, m);
  bool lower = false, compact = false, plan = false;
  for (const Item *i : m.items) {
    auto *f = as<Func>(i);
    compact |= f && f->func == FuncKind::Kernel && stage_of(b, *f) == Stage::Blocks;
    if (!f || (f->func != FuncKind::Graph && f->func != FuncKind::Group)) continue;
    lower |= f->func == FuncKind::Group;
    bool scratch = false;
    for (const Param &p : f->params) scratch |= p.mode == Mode::Scratch;
    plan |= !scratch;
    each_stmt(f->body, [&](const Stmt *s) {
      auto *l = as<Let>(s);
      auto *c = l ? as<Call>(l->value) : nullptr;
      lower |= c && !c->global;
    });
  }
  for (auto [due, name] :
       {std::pair(lower, "lower"), {compact, "compact"}, {device, "sync"}, {plan, "plan"}, {device, "sync"}})
    if (due && !diag.errors()) pass_named(name)->run(b, m, {}, diag);
}

}  // namespace mlc
