// bind: sizes that were symbols become numbers, and what follows from them is folded (graph/bind.h).
#include "graph/bind.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/near.h"
#include "pass/pass.h"

namespace mlc {

namespace {

constexpr OptionSpec kOptions[] = {
    {"entry", "NAME", "fix the sizes of this function; without it, of all that no other calls"},
};

std::map<std::string, int64_t> numbers(const Options &options) {
  std::map<std::string, int64_t> out;
  for (const std::string &s : options.all("words")) {
    size_t eq = s.find('=');
    int64_t n;
    auto [end, error] = std::from_chars(s.data() + eq + 1, s.data() + s.size(), n);
    if (!eq || error != std::errc() || end != s.data() + s.size())
      throw UsageError{fmt::format("{}: expected NAME=N, N an integer", s)};
    auto [it, fresh] = out.try_emplace(s.substr(0, eq), n);
    if (!fresh && it->second != n) throw UsageError{fmt::format("{}: {} is {} already", s, it->first, it->second)};
  }
  if (out.empty()) throw UsageError{"expected NAME=N"};
  return out;
}

std::string list(const std::vector<std::string> &names) { return fmt::format("{}", fmt::join(names, ", ")); }

void run(Build &b, Module &m, const Options &options, Diag &diag) {
  std::map<std::string, int64_t> sizes = numbers(options);
  std::string entry = options.get("entry");
  if (entry.starts_with("@")) entry.erase(0, 1);
  const Func *only = entry.empty() ? nullptr : m.func(b.sym(entry));
  if (!entry.empty() && !only) return diag.error(kNowhere, "no function @{}", entry);
  for (auto &[name, n] : sizes)
    if (n < 0) diag.error(kNowhere, "{} = {}: a size is at least 0", name, n);
  std::vector<std::string> open = open_sizes(b, m, only);
  for (auto &[name, n] : sizes) {
    if (std::find(open.begin(), open.end(), name) != open.end()) continue;
    std::vector<std::string> near = near_names(name, open);
    std::string hint = open.empty() ? "there is none" : near.empty() ? "there are " + list(open) : "near are " + list(near);
    diag.error(kNowhere, "no size {}; {}", name, hint);
  }
  if (!diag.errors()) bind_sizes(b, m, sizes, only, diag);
}

}  // namespace

extern const Pass pass_bind;
const Pass pass_bind = {"bind", "Fix sizes that are symbols", kOptions, run, Stage::Planned, true, false, "NAME=N"};

}  // namespace mlc
