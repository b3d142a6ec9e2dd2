// A script that is written while it is applied: rules decide by the kernel as it stands, and the script says it again.
#pragma once
#include <memory>

#include "sched/state.h"

namespace mlc {

class Script {
 public:
  Script(Build &b, const Module &m, const Func *f);

  State &state() { return *state_; }
  // Names that no step has given yet: for loops and blocks.
  std::string fresh(std::string_view base) { return std::string(b_.text(fresh_->make(base))); }
  const Expr *name(std::string_view n) { return b_.name(n); }
  const Expr *names(const std::vector<std::string> &all);
  const Expr *numbers(const std::vector<int64_t> &all);

  // Applies a step and writes it down; throws Refused, and is then to be rewound.
  void run(std::string_view step, const std::vector<std::string> &results, std::vector<const Expr *> args,
           Attrs attrs = {});
  // The same; false: it was refused, and nothing has changed.
  bool attempt(std::string_view step, const std::vector<std::string> &results, std::vector<const Expr *> args,
               Attrs attrs = {});
  // The loop or block that a name of the script stands for; null: none.
  Place *find(std::string_view name);

  size_t mark() const { return steps_.size(); }
  void rewind(size_t mark);
  const std::vector<Step> &steps() const { return steps_; }

 private:
  void apply(const Step &step);
  Build &b_;
  const Module &m_;
  const Func *f_;
  std::unique_ptr<Fresh> fresh_;
  std::unique_ptr<State> state_;
  std::vector<Step> steps_;
};

}  // namespace mlc
