// A module: its items in order. The only mutable thing of the IR, and only passes may replace its items.
#pragma once
#include <unordered_map>
#include <vector>

#include "ir/ir.h"

namespace mlc {

class Module {
 public:
  std::vector<const Item *> items;
  std::string_view head_comment;      // comment lines above the first `mlc 1`
  std::string_view trailing_comment;  // comment lines behind the last item

  const Item *find(Sym name) const;  // function, constant or target of that name (not schedules); null if there is none
  const Func *func(Sym name) const { return as<Func>(find(name)); }
  const Const *constant(Sym name) const { return as<Const>(find(name)); }
  void add(const Item *item);
  void replace(size_t i, const Item *item);  // items[i] = item
  void set(std::vector<const Item *> all);   // all items at once

 private:
  mutable std::unordered_map<Sym, const Item *> index_;
  mutable size_t indexed_ = 0;
};

Sym name_of(const Item *item);  // Sym{} for files, devices and schedules

// The function that a user means by "the model": @main if there is one, else the first graph; null if none.
class Build;
const Func *entry(const Build &b, const Module &m);
// The same; in a module without a graph, its only kernel.
const Func *entry_to_run(const Build &b, const Module &m);

}  // namespace mlc
