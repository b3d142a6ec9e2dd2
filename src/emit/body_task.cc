// Parallel loops: their bodies become functions that NAME_options.parallel_for calls.
#include <utility>

#include "emit/body.h"

namespace mlc {

bool BodyPrinter::can_be_task(const For &f) const {
  if (f.loop != LoopKind::Parallel || in_task_ || side != Side::Cpu || is_int(f.iter.extent, 1)) return false;
  bool plain = true;  // no turn writes what another may write at the same time
  each_stmt(f.body, [&](const Stmt *s) {
    if (auto *st = as<Store>(s)) plain &= !st->atomic;
  });
  return plain;
}

// for i in n parallel { .. }   ->   struct k_task { float *y; };
//                                   static void k_task_run(void *arg, int64_t i, int worker) { .. }
//                                   ..
//                                   k_task task = {y};
//                                   parallel(options, n, k_task_run, &task);
void BodyPrinter::parallel(const For &f) {
  struct Field {
    std::string type, ident;
  };
  std::vector<Field> all;  // what the body can see
  for (const Entity *e : scope.visible()) {
    bool buffer = e->kind == Entity::Buffer;
    std::string type = fmt::format("{} ", c_value(e->type->elem));
    if (buffer) type = fmt::format("{}{} *", e->writable ? "" : "const ", c_storage(e->type->elem));
    all.push_back({type + (e->alone ? "__restrict " : ""), e->ident});
    if (!e->first.empty()) all.push_back({"int64_t ", e->first});
  }
  std::string extent = exprs.index(shortened(f.iter.extent)).s, before = std::move(out);
  std::string first = std::exchange(prologue, "");
  std::vector<std::string> others = std::exchange(needs, {});
  size_t entities = scope.entities().size(), failed = failures.size(), pad = indent, tamed = tamed_.size();
  Scope::Mark mark = scope.mark();
  Sym v = f.iter.name;
  Stmts body = f.body;
  if (scope.find(v)) body = renamed(v, body), v = latest(v);
  std::string turn = define_dim(v).ident;
  scope.bounds.range(v, f.iter.extent);
  out.clear(), indent = 2, in_task_ = true, depth_++;
  stmts(body);
  mark_unused(entities);
  in_task_ = false, depth_--, indent = pad;
  scope.pop(mark);
  untame(tamed);
  for (Sym k : constants)
    all.push_back({fmt::format("const {} *__restrict ", c_storage(m_.constant(k)->type->elem)), constant_idents.at(k)});

  std::unordered_set<std::string_view> words;
  collect_identifiers(out, words);
  std::string task = u_.globals.make(name + "_task"), fields, locals, values;
  for (const Field &x : all) {
    if (!words.count(x.ident)) continue;
    fields += fmt::format("  {}{};\n", x.type.substr(0, x.type.find("__restrict")), x.ident);
    bool pointer = x.type.find('*') != x.type.npos;
    std::string type = pointer ? x.type + "const " : "const " + x.type;
    locals += fmt::format("  {0}{1} = task.{1};\n", type, x.ident);
    values += (values.empty() ? "" : ", ") + x.ident;
  }
  bool fails = failures.size() > failed;
  std::string reference = fmt::format("  {0} &task = *({0} *)arg;\n", task);
  if (locals.empty() && !fails) reference = "  (void)arg;\n";
  if (fails || fields.empty()) fields += "  int failed;\n", values += values.empty() ? "0" : ", 0";
  if (!words.count(turn)) reference += fmt::format("  (void){};\n", turn);
  tasks += fmt::format("\nstruct {} {{\n{}}};\n", task, fields);
  tasks += fmt::format("static {}{}void {}_run(void *arg, int64_t {}, int worker) {{\n  (void)worker;\n",
                       u_.helpers.attribute(out), needs_attribute(needs), task, turn);
  tasks += reference + locals + prologue + out + "}\n";
  prologue = first, needs = others;

  out = std::move(before);
  uses_options = true;
  std::string local = scope.namer.make("task");
  line("{} {} = {{{}}};", task, local, values);
  line("{}({}, {}, {}_run, &{});", u_.helpers.need("parallel"), options, extent, task, local);
  if (fails) line("if ({0}.failed) return {0}.failed;", local);
}

}  // namespace mlc
