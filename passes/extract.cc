// extract: one function with what it needs, a module of its own.
//   graph @main ..                       const @w: f32[8] = [..]
//   const @w: f32[8] = [..]        ->    kernel @scale ..
//   kernel @scale .. @w[i] ..
//   kernel @other ..
#include "base/near.h"
#include "ir/reach.h"
#include "pass/pass.h"
#include "text/text.h"

namespace mlc {

namespace {

constexpr OptionSpec kOptions[] = {
    {"kernel", "NAME", "the function to take out; repeated"},
};

std::string_view kind_of(const Func &f) {
  constexpr std::string_view kNames[] = {"graph", "group", "kernel", "scalar", "reducer", "extern", "intrinsic"};
  return kNames[size_t(f.func)];
}

// `no function @gem; near are @gemm (kernel), @gemm_relu (kernel)`
std::string unknown(const Build &b, const Module &m, const std::string &name) {
  std::vector<std::string> names;
  for (const Item *i : m.items)
    if (auto *f = as<Func>(i)) names.emplace_back(b.text(f->name));
  std::vector<std::string> near = near_names(name, names);
  bool all = near.empty() && names.size() <= 8;
  std::string list;
  for (const std::string &s : all ? names : near)
    for (const Item *i : m.items)
      if (auto *f = as<Func>(i); f && b.text(f->name) == s)
        list += fmt::format("{}@{} ({})", list.empty() ? "" : ", ", s, kind_of(*f));
  if (list.empty()) return fmt::format("no function @{} among {}", name, counted(names.size(), "function"));
  return fmt::format("no function @{}; {} {}", name, all ? "there are" : "near are", list);
}

void run(Build &b, Module &m, const Options &options, Diag &diag) {
  if (!options.has("kernel")) throw UsageError{"expected --kernel NAME"};
  std::vector<const Item *> roots;
  for (std::string name : options.all("kernel")) {
    if (name.starts_with("@")) name.erase(0, 1);
    const Func *f = m.func(b.sym(name));
    if (f) roots.push_back(f);
    else diag.error(kNowhere, "{}", unknown(b, m, name));
  }
  if (diag.errors()) return;
  Items live = reachable(m, roots);
  std::vector<const Item *> more;
  for (const Item *i : m.items) {  // schedules of what is kept, devices that it is on
    auto *s = as<Schedule>(i);
    auto *d = as<Device>(i);
    bool wanted = s && live.count(m.find(s->name));
    for (const Item *k : live)
      if (auto *f = as<Func>(k); f && d) wanted |= f->device == d->name;
    if (wanted) more.push_back(i);
  }
  for (const Item *i : reachable(m, more)) live.insert(i);
  size_t before = m.items.size();
  keep_only(m, live, false);
  diag.remark("{} of {} kept", m.items.size(), counted(before, "item"));
}

}  // namespace

extern const Pass pass_extract;
const Pass pass_extract = {"extract", "Take one kernel, with what it needs, out of a module", kOptions, run, Stage::Planned, true,
                           false};

}  // namespace mlc
