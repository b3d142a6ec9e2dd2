#include "ir/module.h"

#include "ir/build.h"

namespace mlc {

Sym name_of(const Item *item) {
  switch (item->kind) {
    case Kind::Const: return to<Const>(item).name;
    case Kind::Func: return to<Func>(item).name;
    case Kind::Target: return to<Target>(item).name;
    default: return {};
  }
}

const Item *Module::find(Sym name) const {
  for (; indexed_ < items.size(); indexed_++)
    if (Sym s = name_of(items[indexed_])) index_.try_emplace(s, items[indexed_]);
  auto it = index_.find(name);
  return it == index_.end() ? nullptr : it->second;
}

void Module::add(const Item *item) { items.push_back(item); }

void Module::replace(size_t i, const Item *item) {
  Sym name = name_of(item);
  auto it = name && name == name_of(items[i]) ? index_.find(name) : index_.end();
  if (it != index_.end() && it->second == items[i]) it->second = item;
  else index_.clear(), indexed_ = 0;
  items[i] = item;
}

void Module::set(std::vector<const Item *> all) {
  items = std::move(all);
  index_.clear(), indexed_ = 0;
}

const Func *entry(const Build &b, const Module &m) {
  const Func *first = nullptr;
  for (const Item *i : m.items)
    if (const Func *f = as<Func>(i); f && f->func == FuncKind::Graph) {
      if (b.text(f->name) == "main") return f;
      if (!first) first = f;
    }
  return first;
}

const Func *entry_to_run(const Build &b, const Module &m) {
  const Func *found = entry(b, m);
  size_t kernels = 0;
  for (const Item *i : m.items)
    if (const Func *f = as<Func>(i); f && f->func == FuncKind::Kernel && !kernels++ && !found) found = f;
  return found && found->func == FuncKind::Kernel && kernels > 1 ? nullptr : found;
}

}  // namespace mlc
