// Steps that are made of other steps.
#pragma once
#include "sched/args.h"

namespace mlc {

class Macro {
 public:
  Macro(State &s, Args &a) : s_(s), a_(a) {}
  ~Macro();

  const Expr *operator()(Place *n);  // a loop or block as an argument
  // Runs a primitive, its results called as given; an empty name takes the default. Handles that the script has under
  // these names stay what they are.
  std::vector<Place *> run(std::string_view name, std::vector<const Expr *> args, std::vector<std::string> results = {},
                           Attrs attrs = {});

 private:
  State &s_;
  Args &a_;
  std::vector<Sym> own_;
};

}  // namespace mlc
