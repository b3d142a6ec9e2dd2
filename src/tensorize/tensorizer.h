// One kernel on its way to calls: the rules, each a few steps of a script.
#pragma once
#include <map>
#include <set>

#include "sched/layout.h"
#include "sched/script.h"
#include "target/target.h"
#include "tensorize/match.h"
#include "tensorize/tensorize.h"

namespace mlc {

struct Instructions {  // of a target, by what they do
  std::vector<Description> products;  // what is looked for
  std::vector<Description> copies, fills;
  bool strict = false;   // sums of floats are left
  bool by_name = false;  // one was asked for, whatever it costs
  ConstantParams constants;  // of the kernels of the module
};

// A block that moves or clears tiles: what a call takes of each of its axes, and the loop that it stands in.
struct Mover {
  std::string block, inside;
  std::map<Sym, int64_t> tiles;  // axis -> turns
  Sym from, to;                  // scopes; Sym{}: global
  bool fills = false;
};

class Tensorizer {
 public:
  Tensorizer(Build &b, const Module &m, const TargetInfo &target, const Instructions &all, const Func *f, Diag &diag)
      : b_(b), m_(m), target_(target), all_(all), f_(f), diag_(diag), script_(b, m, f) {}

  std::vector<Step> run();
  const std::vector<Takers::Taken> &taken() const { return taken_; }

 private:
  using Names = std::vector<std::string>;

  // ---- what there is to do (tensorize.cc)
  std::vector<std::pair<std::string, std::vector<Match>>> candidates();
  double cost(const Match &m) const;
  double cycles_of_vectors(const Match &m) const;

  // ---- one block (product.cc)
  std::string tensorize(const std::string &block, const Match &m, bool copies);
  int64_t depth_of(const Match &m) const;
  std::string summary(const Match &m, const std::vector<int64_t> &at_once) const;

  // ---- operands in memories and layouts (operands.cc)
  const Load *operand(const std::string &block, const Description &d, Sym param);
  Sym buffer_of(const std::string &block, const Description &d, Sym param) { return operand(block, d, param)->buffer; }
  void lay_out_constant(const std::string &block, const Match &m, const std::vector<int64_t> &at_once, Sym param);
  bool is_constant(Sym buffer) const;
  void bring(const std::string &block, const Description &d, Sym param, Sym scope, const std::string &inside,
             std::vector<Mover> &movers);
  Mover mover(const std::string &block, const std::string &inside, Sym from, Sym to, bool reads);
  void lay_out(const std::string &block, const Description &d, Sym param);
  bool has_rows(const Load *l, const Load *shape) const;

  // ---- calls that move tiles (movers.cc)
  void call(const Mover &x, bool literal);
  void one_call(const Mover &x, const Description &d, bool literal);
  void call_of(const Description &d, const std::string &loop);  // in the place of the loops that are a tile

  // ---- what a scope is
  static Sym scope_of(const Type *t) { return t->scope; }
  bool is_special(Sym scope) const;  // loads and stores do not reach it
  bool is_literal(Sym scope) const;  // places in it are constants: loops over them are unrolled

  // ---- the script
  void run(std::string_view step, const Names &results, std::vector<const Expr *> args) {
    script_.step(step, results, std::move(args));
  }
  void reorder(const Names &before, const Names &order);
  const Expr *name(std::string_view s) { return script_.name(s); }
  bool has_block(const std::string &n);
  Place *find(const std::string &n);
  std::string text(Sym s) const { return std::string(b_.text(s)); }

  Build &b_;
  const Module &m_;
  const TargetInfo &target_;
  const Instructions &all_;
  const Func *f_;
  Diag &diag_;
  Script script_;
  std::map<Sym, int64_t> axis_tile_, axis_blocks_;  // axes of the product -> turns of a tile, tiles at a time
  std::map<Sym, Sym> axis_iter_;  // iterators of the description; Sym{}: none
  std::set<Sym> spatial_, bringing_;
  std::vector<Takers::Taken> taken_;
  size_t way_ = 0;
};

}  // namespace mlc
