#include "target/valid.h"

#include <algorithm>

#include "base/near.h"
#include "text/text.h"

namespace mlc {

namespace {

bool is_string(const Expr *e) { return e->kind == Kind::Str; }
std::string_view string(const Expr *e) { return is_string(e) ? to<Str>(e).value : std::string_view(); }
template <bool (*one)(const Expr *)> bool one_or_list(const Expr *e) {
  auto *l = as<List>(e);
  return l ? std::all_of(l->items.begin(), l->items.end(), one) : one(e);
}
template <int64_t lo> bool at_least(const Expr *e) {
  auto *i = as<Int>(e);
  return i && i->value >= lo;
}
bool power_of_two(const Expr *e) { return at_least<1>(e) && (to<Int>(e).value & (to<Int>(e).value - 1)) == 0; }
bool vector(const Expr *e) { return is_int(e, 0) || (power_of_two(e) && to<Int>(e).value <= 4096); }
bool registers(const Expr *e) { return at_least<1>(e) && to<Int>(e).value <= 4096; }
bool flag(const Expr *e) { return is_int(e, 0) || is_int(e, 1); }
bool rate(const Expr *e) {
  auto *f = as<Float>(e);
  return at_least<1>(e) || (f && f->value > 0);
}
bool strings(const Expr *e) { return e->kind == Kind::List && one_or_list<is_string>(e); }
bool kind(const Expr *e) { return string(e) == "cpu" || string(e) == "cuda" || string(e) == "accelerator"; }
bool memory_kind(const Expr *e) {
  std::string_view s = string(e);
  return s == "cache" || s == "register" || s == "fragment" || s == "scratch";
}
bool header(const Expr *e) {
  std::string_view s = string(e);
  auto between = [&](char first, char last) { return s.size() > 2 && s.front() == first && s.back() == last; };
  return (between('<', '>') || between('"', '"')) && s.find('\n') == s.npos;
}

struct Known {
  std::string_view key;
  bool (*holds)(const Expr *);
  std::string_view expected;
};
constexpr Known kAttrs[] = {
    {"base", is_string, "the name of a target"},
    {"kind", kind, "\"cpu\", \"cuda\" or \"accelerator\""},
    {"features", strings, "a list of strings"},
    {"vector_bytes", vector, "0, or a power of two of at most 4096"},
    {"vector_registers", registers, "a number of 1 to 4096"},
    {"masks", flag, "0 or 1"},
    {"fma", flag, "0 or 1"},
    {"fma_per_cycle", rate, "a number above 0"},
    {"arch", is_string, "a string"},
    {"sm_count", at_least<1>, "a number of at least 1"},
    {"warp", at_least<1>, "a number of at least 1"},
    {"include", one_or_list<header>, "\"<FILE>\", one in quotes, or a list of these"},
    {"prelude", one_or_list<is_string>, "a list of strings"},
    {"init", strings, "a list of a condition and what it says"},
};
constexpr Known kMemory[] = {
    {"kind", memory_kind, "\"cache\", \"register\", \"fragment\" or \"scratch\""},
    {"bytes", at_least<1>, "a number of at least 1"},
    {"count", at_least<1>, "a number of at least 1"},
    {"line", at_least<1>, "a number of at least 1"},
    {"align", power_of_two, "a power of two"},
    {"type", is_string, "a string"},
    {"enter", is_string, "a string"},
    {"init", strings, "a list of a condition and what it says"},
};
constexpr Known kThread[] = {{"max", at_least<1>, "a number of at least 1"}};

std::optional<TargetFault> fault_in(const Build &b, Attrs attrs, std::span<const Known> known, const std::string &what) {
  for (const Attr &a : attrs) {
    std::string_view key = b.text(a.key);
    auto k = std::find_if(known.begin(), known.end(), [&](const Known &x) { return x.key == key; });
    if (k != known.end()) {
      if (!k->holds(a.value))
        return TargetFault{a.at, fmt::format("{}{}: expected {}, found {}", what, key, k->expected, print(b, a.value))};
      continue;
    }
    std::vector<std::string> names;
    for (const Known &x : known)
      if (x.key.size() > 4 && x.key.size() <= key.size() + 1 && key.size() <= x.key.size() + 1) names.emplace_back(x.key);
    if (std::vector<std::string> near = near_names(key, names, 1); !near.empty())
      return TargetFault{a.at, fmt::format("{}{}: nothing is called so; {}?", what, key, near[0])};
  }
  return {};
}

}  // namespace

std::optional<TargetFault> fault_of(const Build &b, const Target &t) {
  if (auto f = fault_in(b, t.notes.attrs, kAttrs, "attr ")) return f;
  for (const Feature &f : t.features) {
    bool memory = f.kind == Feature::Memory;
    std::string what = fmt::format("{} {}: ", memory ? "memory" : "thread", b.text(f.name));
    if (f.kind == Feature::Use) continue;
    if (auto fault = fault_in(b, f.attrs, memory ? std::span<const Known>(kMemory) : kThread, what)) {
      if (fault->at == kNowhere) fault->at = f.at;
      return fault;
    }
  }
  return {};
}

}  // namespace mlc
