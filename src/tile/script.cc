#include "tile/script.h"

namespace mlc {

Script::Script(Build &b, const Module &m, const Func *kernel) : b(b), m_(m), kernel_(kernel) {
  for (const Param &p : kernel->params) buffers_.insert(p.def.name);
  for (const Def &d : kernel->results) buffers_.insert(d.name);
  each_stmt(kernel->body, [&](const Stmt *s) {
    if (auto *a = as<Alloc>(s)) buffers_.insert(a->def.name);
    if (auto *k = as<Block>(s)) buffers_.insert(k->name);
  });
  restart(0);
}

// The state of a refused step is good for nothing: the steps before it run again.
void Script::restart(size_t steps) {
  done_.resize(steps);
  names_.clear();
  state_ = std::make_unique<State>(b, m_, kernel_);
  for (size_t i = 0; i < steps; i++) {
    run_step(*state_, done_[i], 0, int(i));
    names_.insert(done_[i].results.begin(), done_[i].results.end());
  }
}

bool Script::attempt(const std::function<void()> &recipe, std::string *why) {
  size_t before = done_.size();
  std::string said;
  try {
    recipe();
    return true;
  } catch (const BadStep &e) {
    said = e.message;
  } catch (const Refused &e) {
    said = e.message;
  }
  if (why) *why = said;
  restart(before);
  return false;
}

Sym Script::fresh(std::string_view want) {
  Sym s = b.sym(want);
  for (int i = 1; buffers_.count(s) || !names_.insert(s).second; i++) s = b.sym(fmt::format("{}_{}", want, i));
  return s;
}

std::vector<Sym> Script::run(std::string_view name, std::vector<const Expr *> args,
                             const std::vector<std::string> &results, std::vector<Attr> attrs) {
  std::vector<Sym> names;
  for (const std::string &r : results) names.push_back(fresh(r));
  Step step{b.list(names), b.call(b.sym(name), b.list(args)), b.list(attrs), {}};
  done_.push_back(run_step(*state_, step, 0, int(done_.size())));
  return names;
}

std::vector<Sym> Script::loops(Sym block) {
  Place *n = state_->find_block(block);
  if (!n) throw BadStep{kNowhere, fmt::format("there is no block {}", b.text(block))};
  std::vector<std::string> names;
  for (Place *l : loops_around(n)) names.emplace_back(b.text(l->loop()->iter.name));
  return run("get_loops", {b.name(block)}, names);
}

std::vector<Sym> Script::split(Sym loop, const std::vector<int64_t> &factors, const std::vector<std::string> &names) {
  return run("split", {b.name(loop), integers(factors)}, names);
}

void Script::reorder(const std::vector<Sym> &loops) {
  std::vector<const Expr *> args;
  for (Sym l : loops) args.push_back(b.name(l));
  if (args.size() > 1) run("reorder", args);
}

const Expr *Script::integers(const std::vector<int64_t> &l) {
  std::vector<const Expr *> out;
  for (int64_t i : l) out.push_back(i ? static_cast<const Expr *>(b.integer(i)) : b.name(b.sym("_")));
  return b.make_list(b.list(out));
}

Place *Script::place(Sym name) {
  auto it = state_->handles.find(name);
  if (it != state_->handles.end()) {
    Place *n = it->second.node;
    return n && it->second.gone.empty() && state_->tree.contains(state_->tree.root(), n) ? n : nullptr;
  }
  return state_->find_block(name);
}

int64_t Script::extent(Sym loop) {
  Place *n = place(loop);
  int64_t v;
  return n && n->loop() && int_value(n->loop()->iter.extent, &v) ? v : -1;
}

}  // namespace mlc
