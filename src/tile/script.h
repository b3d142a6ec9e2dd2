// A schedule as it is being written: steps run at once on the kernel, and what is refused is taken back.
#pragma once
#include <functional>
#include <memory>

#include "sched/step.h"

namespace mlc {

class Script {
 public:
  Script(Build &b, const Module &m, const Func *kernel);

  Build &b;
  State &state() { return *state_; }
  const std::vector<Step> &steps() const { return done_; }

  // The steps that `recipe` takes hold together: if one is refused, the kernel is as it was before and `why` says which
  // and why. Nests.
  bool attempt(const std::function<void()> &recipe, std::string *why);

  // Runs one step; throws what run_step does (let `attempt` catch it). Returns the names of the results in the script:
  // those asked for, with a number behind where the script has them already.
  std::vector<Sym> run(std::string_view name, std::vector<const Expr *> args, const std::vector<std::string> &results = {},
                       std::vector<Attr> attrs = {});

  // The commonest ones. Loops and blocks are names of the script.
  std::vector<Sym> loops(Sym block);
  std::vector<Sym> split(Sym loop, const std::vector<int64_t> &factors, const std::vector<std::string> &names);  // 0: `_`
  void mark(std::string_view how, Sym loop) { run(how, {b.name(loop)}); }  // parallel, vectorize, unroll
  void reorder(const std::vector<Sym> &loops);
  const Expr *integers(const std::vector<int64_t> &l);

  // Of a loop or block by its name in the script. Null: it is none, or gone.
  Place *place(Sym name);
  int64_t extent(Sym loop);  // number of turns; -1: no constant

 private:
  Sym fresh(std::string_view want);
  void restart(size_t steps);
  const Module &m_;
  const Func *kernel_;
  std::unique_ptr<State> state_;
  std::vector<Step> done_;
  std::unordered_set<Sym> names_, buffers_;
};

}  // namespace mlc
