#include "sched/macro.h"

namespace mlc {

Macro::~Macro() {
  for (Sym n : own_)
    s_.handles.erase(n);
}

const Expr *Macro::operator()(Place *n) {
  Sym name = s_.b.sym(fmt::format("argument {}", own_.size()));  // no name of a script
  own_.push_back(name);
  s_.handles[name] = {n->loop() ? Handle::Loop : Handle::Block, n, {}, {}};
  return s_.b.name(name);
}

std::vector<Place *> Macro::run(std::string_view name, std::vector<const Expr *> args, std::vector<std::string> results,
                                Attrs attrs) {
  Build &b = s_.b;
  std::vector<Sym> names;
  std::map<Sym, std::optional<Handle>> was;
  for (const std::string &r : results) {
    names.push_back(b.sym(r));
    auto it = s_.handles.find(names.back());
    was[names.back()] = it == s_.handles.end() ? std::nullopt : std::optional(it->second);
  }
  Step step{b.list(names), b.call(b.sym(name), b.list(args), a_.step().call->at), attrs, {}};
  Args inner(s_, step, 0, 0);
  find_primitive(name)->run(s_, inner);
  std::vector<Place *> out;
  for (Sym n : names)
    out.push_back(s_.handles[n].node);
  for (auto &[n, h] : was)
    if (h)
      s_.handles[n] = *h;
    else
      s_.handles.erase(n);
  return out;
}

}  // namespace mlc
