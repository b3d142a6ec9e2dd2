// A schedule as it is being written: steps run at once on the kernel, rules decide by the kernel as it then stands, and what
// is refused is taken back.
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
  const std::vector<Step> &steps() const { return steps_; }

  // ---- names: loops and blocks are known by those that the script gives them
  std::string fresh(std::string_view want);  // one that it has not given yet, and that no buffer has
  const Expr *name(std::string_view n) { return b.name(b.sym(n)); }
  const Expr *numbers(const std::vector<int64_t> &all);  // a list; 0: `_`
  Place *place(Sym name);    // the loop or block; null: there is none
  int64_t extent(Sym loop);  // number of turns; -1: no constant

  // ---- steps. A step that is refused throws Refused, and is then to be taken back: by `attempt`, or `rewind`.
  void step(std::string_view step, const std::vector<std::string> &results, std::vector<const Expr *> args,
            Attrs attrs = {});
  // The same with results of fresh names, which it returns.
  std::vector<Sym> run(std::string_view step, std::vector<const Expr *> args,
                       const std::vector<std::string> &results = {}, Attrs attrs = {});
  // What `recipe` does holds together: if a step of it is refused, the kernel is as it was before, and `why` says why.
  bool attempt(const std::function<void()> &recipe, std::string *why = nullptr);
  size_t mark() const { return steps_.size(); }
  void rewind(size_t mark);

  // The commonest ones.
  std::vector<Sym> loops(Sym block);
  std::vector<Sym> split(Sym loop, const std::vector<int64_t> &factors, const std::vector<std::string> &names);
  void mark(std::string_view how, Sym loop) { run(how, {b.name(loop)}); }  // parallel, vectorize, unroll
  void reorder(const std::vector<Sym> &loops);

 private:
  void apply(const Step &step);
  const Module &m_;
  const Func *kernel_;
  std::unique_ptr<State> state_;
  std::vector<Step> steps_;
  std::unordered_set<Sym> names_, buffers_;
};

}  // namespace mlc
