// The arguments of one step, by what a primitive expects of each; a wrong one refuses at its place in the script.
#pragma once
#include "sched/state.h"

namespace mlc {

struct BadStep {  // at: in the script
  uint32_t at;
  std::string message;
};
template <class... A>
[[noreturn]] void bad_step(uint32_t at, fmt::format_string<A...> f, A &&...a) {
  throw BadStep{at, fmt::format(f, std::forward<A>(a)...)};
}

class Args {
 public:
  Args(State &s, const Step &step, uint64_t seed, int line);

  size_t count() const { return step_.call->args.size(); }
  const Expr *raw(size_t i) const { return step_.call->args[i]; }
  uint32_t at(size_t i) const { return i < count() ? raw(i)->at : step_.call->at; }
  Place *loop(size_t i);
  std::vector<Place *> loops(size_t from = 0);  // all arguments from there on
  Place *block(size_t i);
  bool is_block(size_t i);
  Place *loop_or_block(size_t i);
  Sym buffer(size_t i);  // of the kernel
  Sym word(size_t i);    // shared, blockIdx.x, a name that stands for itself
  std::string string(size_t i);
  int64_t integer(size_t i);
  const Expr *value(size_t i);                  // an index expression of dimensions, or a value that was sampled
  std::vector<const Expr *> factors(size_t i);  // a list, or factors that were sampled; null for `_`
  std::vector<int64_t> integers(size_t i);
  const Map *map(size_t i);
  const Global *global(size_t i);  // @intrinsic
  // Attributes.
  const Expr *attr(std::string_view key) const { return mlc::attr(s_.b, step_.attrs, key); }
  int64_t attr_int(std::string_view key, int64_t otherwise);
  bool flag(std::string_view key) { return attr_int(key, 0) != 0; }
  std::vector<Place *> attr_blocks(std::string_view key);
  void record(std::string_view key, const Expr *value);  // a decision, for the trace

  // Results: the name that the script gives, or `otherwise` (also for `_`).
  size_t results() const { return step_.results.size(); }
  std::string result(size_t i, std::string_view otherwise) const;
  void set(size_t i, Handle h);
  void set_loop(size_t i, Place *n) { set(i, {Handle::Loop, n, {}, {}}); }
  void set_block(size_t i, Place *n) { set(i, {Handle::Block, n, {}, {}}); }
  void expect_results(size_t least, size_t most);

  const Step &step() const { return step_; }  // with the decisions that were recorded
  uint64_t random();                          // of the script's seed and this step's place

 private:
  Handle *handle(const Expr *e);
  void need(size_t i, std::string_view what);
  State &s_;
  Step step_;
  uint64_t random_;
};

// A primitive: `usage` is its line in --help and in error messages.
struct Primitive {
  std::string_view name;
  std::string_view usage;  // "split(loop, [factors])"
  size_t least, most;      // arguments
  void (*run)(State &s, Args &a);
  std::string_view attrs;  // keys that it knows, blanks between
  bool unsafe = false;
  bool quiet = false;  // it changes nothing that marks of loops depend on
};
std::span<const Primitive> primitives();
const Primitive *find_primitive(std::string_view name);

}  // namespace mlc
