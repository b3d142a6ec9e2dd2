// Kernels that are the same text but for their names and the nodes of the model that they come from: what is made of one
// is made of the others, in their names.
//
//   kernel @relu { compute y[i in n] = max(x[i], 0.0) from "/n2" }   kernel @relu_1 { compute .. from "/n7" }
#pragma once
#include <string>
#include <unordered_map>

#include "ir/build.h"
#include "ir/module.h"

namespace mlc {

class Twins {
 public:
  explicit Twins(Build &b) : b_(b) {}
  // The first kernel asked for that is like f; f itself where there was none. `also`: what else must be the same.
  const Func *first(const Func *f, const std::string &also = "");
  // What was made of the first, as it is made of f.
  const Func *as_of(const Func *f, const Func *first, const Func *made);

 private:
  Build &b_;
  std::unordered_map<std::string, const Func *> by_text_;
};

}  // namespace mlc
