// Sizes and inputs to run two functions on.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "interp/sample.h"
#include "ir/module.h"

namespace mlc {

// The sizes 0, 1, 2, 3, 7, 17, 48, 625, and t - 1, t, t + 1 and 2 * t for each number t that the loops and the index
// arithmetic of the functions are written with: tile sizes, and what lies beside them.
class Sizes {
 public:
  Sizes(const Build &b, const Func &f, const std::map<std::string, int64_t> &fixed);
  void add_tiles(const Module &m, const Func &f);  // and of what it calls
  // The first draw is 3 of each; `small` is one of 0, 1, 2, 3.
  std::map<std::string, int64_t> draw(std::mt19937_64 &random, bool first, bool small) const;
  bool free() const { return names_.size() > fixed_.size(); }
  const std::vector<std::string> &names() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::map<std::string, int64_t> fixed_;
  std::vector<int64_t> tiles_;
};

// What a function is run on: one array for each parameter that is not `scratch`.
class Inputs {
 public:
  Inputs(const Build &b, const Module &m, const std::vector<InputSpec> &specs,
         const std::map<std::string, int64_t> &sizes, std::mt19937_64 &random, bool odd)
      : b_(b), m_(m), specs_(specs), sizes_(sizes), random_(random), odd_(odd) {}
  // Of floats: so that the last, or the first, is the largest; or one of an array, often the last, is nan, inf or -inf.
  enum Order : uint8_t { Any, Rising, Falling, Lone };
  std::vector<Array> draw(bool want_subscripts, Order order = Any);
  bool subscripts = false;  // some were drawn

 private:
  std::vector<int64_t> extents() const;
  const Build &b_;
  const Module &m_;
  const std::vector<InputSpec> &specs_;
  const std::map<std::string, int64_t> &sizes_;
  std::mt19937_64 &random_;
  bool odd_;
};

}  // namespace mlc
