#include "sched/script.h"

#include "sched/args.h"
#include "sched/primitives.h"

namespace mlc {

Script::Script(Build &b, const Module &m, const Func *f)
    : b_(b), m_(m), f_(f), fresh_(std::make_unique<Fresh>(b)), state_(std::make_unique<State>(b, m, f)) {}

const Expr *Script::names(const std::vector<std::string> &all) {
  std::vector<const Expr *> out;
  for (const std::string &n : all) out.push_back(b_.name(n));
  return b_.make_list(b_.list(out));
}
const Expr *Script::numbers(const std::vector<int64_t> &all) {
  std::vector<const Expr *> out;
  for (int64_t n : all) out.push_back(b_.integer(n));
  return b_.make_list(b_.list(out));
}

void Script::apply(const Step &step) {
  const Primitive *p = find_primitive(b_.text(step.call->callee));
  Args args(*state_, step, 0, int(steps_.size()));
  try {
    p->run(*state_, args);
    check_marks(*state_);
  } catch (const BadStep &e) {
    throw Refused{kNowhere, e.message, {}};
  }
}

void Script::run(std::string_view step, const std::vector<std::string> &results, std::vector<const Expr *> args,
                 Attrs attrs) {
  std::vector<Sym> names;
  for (const std::string &r : results) names.push_back(b_.sym(r));
  Step s{b_.list(names), b_.call(b_.sym(step), b_.list(args)), attrs, {}};
  apply(s);
  steps_.push_back(s);
}

bool Script::attempt(std::string_view step, const std::vector<std::string> &results, std::vector<const Expr *> args,
                     Attrs attrs) {
  size_t now = mark();
  try {
    run(step, results, std::move(args), attrs);
    return true;
  } catch (const Refused &) {
    rewind(now);
    return false;
  }
}

Place *Script::find(std::string_view name) {
  auto it = state_->handles.find(b_.sym(name));
  Tree &tree = state_->tree;
  if (it != state_->handles.end() && it->second.node && tree.contains(tree.root(), it->second.node))
    return it->second.node;
  return state_->find_block(b_.sym(name));
}

void Script::rewind(size_t mark) {
  std::vector<Step> kept(steps_.begin(), steps_.begin() + long(mark));
  state_ = std::make_unique<State>(b_, m_, f_);
  steps_.clear();
  fresh_ = std::make_unique<Fresh>(b_);
  for (const Step &s : kept) {
    apply(s);
    for (Sym r : s.results) fresh_->take(r);
    steps_.push_back(s);
  }
}

}  // namespace mlc
