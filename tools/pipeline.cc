#include "pipeline.h"

#include "passes.h"
#include "text/text.h"

namespace mlc {

const Pass *pass_named(std::string_view name) {
  for (const Pass *p : all_passes())
    if (name == p->name) return p;
  return nullptr;
}

std::vector<const Pass *> usual_passes() {
  std::vector<const Pass *> passes;
  for (const char *name : {"simplify", "fuse", "lower", "plan"})
    if (const Pass *p = pass_named(name)) passes.push_back(p);
  return passes;
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

void finish(Build &b, Module &m, Diag &diag) {
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
  for (auto [due, name] : {std::pair(lower, "lower"), {compact, "compact"}, {plan, "plan"}})
    if (due && !diag.errors()) pass_named(name)->run(b, m, {}, diag);
}

}  // namespace mlc
