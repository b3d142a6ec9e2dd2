#include "sched/script.h"

namespace mlc {

Script::Script(Build &b, const Module &m, const Func *kernel)
    : b(b), m_(m), kernel_(kernel), state_(std::make_unique<State>(b, m, kernel)) {
  for (const Param &p : kernel->params) buffers_.insert(p.def.name);
  for (const Def &d : kernel->results) buffers_.insert(d.name);
  each_stmt(kernel->body, [&](const Stmt *s) {
    if (auto *a = as<Alloc>(s)) buffers_.insert(a->def.name);
    if (auto *k = as<Block>(s)) buffers_.insert(k->name);
  });
}

std::string Script::fresh(std::string_view want) {
  std::string name(want);
  for (int i = 1; buffers_.count(b.sym(name)) || !names_.insert(b.sym(name)).second; i++)
    name = fmt::format("{}_{}", want, i);
  return name;
}

const Expr *Script::numbers(const std::vector<int64_t> &all) {
  std::vector<const Expr *> out;
  for (int64_t n : all) out.push_back(n ? static_cast<const Expr *>(b.integer(n)) : name("_"));
  return b.make_list(b.list(out));
}

Place *Script::place(Sym name) {
  auto it = state_->handles.find(name);
  Tree &tree = state_->tree;
  if (it != state_->handles.end() && it->second.node && tree.contains(tree.root(), it->second.node))
    return it->second.node;
  return state_->find_block(name);
}

int64_t Script::extent(Sym loop) {
  Place *n = place(loop);
  int64_t v;
  return n && n->loop() && int_value(n->loop()->iter.extent, &v) ? v : -1;
}

void Script::apply(const Step &step) {
  try {
    steps_.push_back(run_step(*state_, step, 0, int(steps_.size())));
  } catch (const BadStep &e) {
    throw Refused{kNowhere, e.message, {}};
  }
  names_.insert(step.results.begin(), step.results.end());
}

void Script::step(std::string_view step, const std::vector<std::string> &results, std::vector<const Expr *> args,
                  Attrs attrs) {
  std::vector<Sym> names;
  for (const std::string &r : results) names.push_back(b.sym(r));
  apply({b.list(names), b.call(b.sym(step), b.list(args)), attrs, {}});
}

std::vector<Sym> Script::run(std::string_view step, std::vector<const Expr *> args,
                             const std::vector<std::string> &results, Attrs attrs) {
  std::vector<std::string> names;
  for (const std::string &r : results) names.push_back(fresh(r));
  this->step(step, names, std::move(args), attrs);
  Syms made = steps_.back().results;
  return {made.begin(), made.end()};
}

bool Script::attempt(const std::function<void()> &recipe, std::string *why) {
  size_t before = mark();
  try {
    recipe();
    return true;
  } catch (const Refused &e) {
    if (why) *why = e.message;
  }
  rewind(before);
  return false;
}

// The state of a refused step is good for nothing: the steps before it run again.
void Script::rewind(size_t mark) {
  std::vector<Step> kept(steps_.begin(), steps_.begin() + long(mark));
  state_ = std::make_unique<State>(b, m_, kernel_);
  steps_.clear(), names_.clear();
  for (const Step &s : kept) apply(s);
}

std::vector<Sym> Script::loops(Sym block) {
  Place *n = state_->find_block(block);
  if (!n) refuse(kNowhere, "there is no block {}", b.text(block));
  std::vector<std::string> names;
  for (Place *l : loops_around(n)) names.emplace_back(b.text(l->loop()->iter.name));
  return run("get_loops", {b.name(block)}, names);
}

std::vector<Sym> Script::split(Sym loop, const std::vector<int64_t> &factors, const std::vector<std::string> &names) {
  return run("split", {b.name(loop), numbers(factors)}, names);
}

void Script::reorder(const std::vector<Sym> &loops) {
  std::vector<const Expr *> args;
  for (Sym l : loops) args.push_back(b.name(l));
  if (args.size() > 1) run("reorder", args);
}

}  // namespace mlc
