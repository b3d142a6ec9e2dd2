#include "check/stage.h"

#include "ir/walk.h"

namespace mlc {

constexpr std::string_view kNames[] = {"operators", "groups", "computes", "blocks", "compacted", "planned"};

std::string_view stage_name(Stage s) { return kNames[size_t(s)]; }

bool stage_named(std::string_view name, Stage *s) {
  if (name == "synced") name = "compacted";
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == name) return *s = Stage(i), true;
  return false;
}

bool is_synced(const Build &b, const Func &f) {
  auto *s = as<Str>(attr(b, f.notes.attrs, "stage"));
  return s && s->value == "synced";
}

Stage stage_of(const Build &b, const Func &f) {
  Stage said;
  if (auto *s = as<Str>(attr(b, f.notes.attrs, "stage")); s && stage_named(s->value, &said)) return said;
  bool blocks = false, computes = false, values = false, calls = false, allocs = false;
  auto look = [&](Stmts body) {
    each_stmt(body, [&](const Stmt *s) {
      blocks |= s->kind == Kind::Block, computes |= s->kind == Kind::Compute, calls |= s->kind == Kind::CallStmt;
      values |= s->kind == Kind::Dataflow || s->kind == Kind::IfValue || s->kind == Kind::Loop;
      if (auto *l = as<Let>(s))
        for (const Def &d : l->defs) values |= d.type->tensor;
      if (auto *a = as<Alloc>(s)) allocs |= !a->base;
    });
  };
  look(f.body);
  for (const Part &p : f.parts)
    if (p.desc) look(p.body);
  switch (f.func) {
    case FuncKind::Group: return Stage::Groups;
    case FuncKind::Graph: return calls && !values && !allocs ? Stage::Planned : Stage::Operators;
    default: break;
  }
  return values ? Stage::Operators : blocks ? Stage::Blocks : computes ? Stage::Computes : Stage::Compacted;
}

}  // namespace mlc
