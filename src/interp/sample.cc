#include "interp/sample.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cmath>

#include "data/compare.h"
#include "interp/dims.h"
#include "text/text.h"

namespace mlc {

using namespace interp;

std::vector<std::string> size_names(const Build &b, const Func &f) {
  std::vector<std::string> names;
  for (Sym d : f.dims) names.emplace_back(b.text(d));
  for (const Param &p : f.params)
    if (!p.def.type->tensor && p.def.type->elem == DType::Index) names.emplace_back(b.text(p.def.name));
  return names;
}

std::string no_such_size(const std::string &name, std::string_view function, const std::vector<std::string> &known) {
  std::string has = known.empty() ? "it has none" : fmt::format("its sizes are {}", fmt::join(known, ", "));
  return fmt::format("--bind {}: @{} has no size {}, {}", name, function, name, has);
}

bool input_specs(const Build &b, const Func &f, const std::map<std::string, int64_t> &sizes,
                 std::vector<InputSpec> &out, std::string &error) {
  IndexValues names;
  for (Sym d : f.dims)
    if (auto it = sizes.find(std::string(b.text(d))); it != sizes.end()) names[d] = it->second;
  for (const Param &p : f.params)
    if (auto it = sizes.find(std::string(b.text(p.def.name))); it != sizes.end() && !p.def.type->tensor)
      names[p.def.name] = it->second;
  for (const Param &p : f.params) {
    if (p.mode == Mode::Scratch) continue;
    InputSpec s{&p, p.def.type->elem, {}};
    for (const Expr *e : p.def.type->dims) {
      auto v = index_value(b, e, names);
      if (!v || *v < 0) {
        error = v ? fmt::format("a dimension of {} would be {}", b.text(p.def.name), *v)
                  : fmt::format("the size {} of {} is not known", print(b, e), b.text(p.def.name));
        return false;
      }
      s.dims.push_back(*v);
    }
    constexpr int64_t kMost = int64_t(1) << 32;
    int64_t bytes = array_bytes(s.type == DType::Str ? DType::I64 : s.type, s.dims);
    if (bytes < 0 || bytes > kMost) {
      error = fmt::format("{} would be more than {} bytes, or has no bytes at all", b.text(p.def.name), kMost);
      return false;
    }
    out.push_back(std::move(s));
  }
  return true;
}

bool sizes_from(const Build &b, const Func &f, const std::vector<Array> &inputs, std::map<std::string, int64_t> &sizes,
                std::string &error) {
  IndexValues names;
  std::vector<DimEquation> equations;
  std::vector<const Param *> owners;
  size_t next = 0;
  for (Sym d : f.dims)
    if (auto it = sizes.find(std::string(b.text(d))); it != sizes.end()) names[d] = it->second;
  for (const Param &p : f.params) {
    if (p.mode == Mode::Scratch) continue;
    if (next == inputs.size()) break;
    const Array &a = inputs[next++];
    if (a.rank() != p.def.type->rank()) {
      error = fmt::format("{}: expected {}, found {} dimensions", b.text(p.def.name), print(b, p.def.type), a.rank());
      return false;
    }
    if (!p.def.type->tensor && p.def.type->elem == DType::Index) names[p.def.name] = a.get(0).as_int();
    for (size_t d = 0; d < a.rank(); d++) equations.push_back({p.def.type->dims[d], a.dims[d]}), owners.push_back(&p);
  }
  auto declared = [&](Sym s) { return std::find(f.dims.begin(), f.dims.end(), s) != f.dims.end(); };
  size_t wrong = solve(b, equations, declared, names);
  if (wrong < equations.size()) {
    error = fmt::format("{}: expected {}, found a dimension of {}", b.text(owners[wrong]->def.name),
                        print(b, owners[wrong]->def.type), equations[wrong].found);
    return false;
  }
  for (auto [s, v] : names) sizes[std::string(b.text(s))] = v;
  return true;
}

Array sample(DType t, const std::vector<int64_t> &dims, std::mt19937_64 &random, bool odd, bool indices) {
  Array a(t, dims);
  auto unit = [&] { return double(random() >> 11) * 0x1p-53; };
  for (int64_t i = 0, n = a.size(); i < n; i++) {
    bool strange = odd && random() % 16 == 0;
    if (t == DType::Str) {
      constexpr const char *kWords[] = {"", "a", "b", "ab", "Ab", "a b", "1", "\u00e9"};
      a.strings[size_t(i)] = kWords[random() % std::size(kWords)];
    } else if (t == DType::Bool) {
      a.set(i, Scalar::of_bool(random() & 1));
    } else if (is_float(t)) {
      constexpr double kOdd[] = {NAN, INFINITY, -INFINITY, -0.0, 0.0, 1e-40, 1e-45, 1.0};  // no sum overflows
      double v = (unit() * 2 - 1) * (random() % 8 == 0 ? 8.0 : 1.0);
      a.set(i, scalar_of(t, strange ? kOdd[random() % std::size(kOdd)] : v));
    } else {
      int64_t v = indices ? int64_t(random() % 4) : int64_t(random() % 17) - (is_signed(t) ? 8 : 0);
      if (strange && !indices) a.set(i, random() & 1 ? highest(t) : lowest(t));
      else a.set(i, narrow(t, v));
    }
  }
  return a;
}

Array sample_subscripts(DType t, const std::vector<int64_t> &dims, std::mt19937_64 &random, int64_t n) {
  Array a(t, dims);
  for (int64_t i = 0, count = a.size(); i < count; i++) {
    const int64_t ends[] = {0, n - 1, -1, -n};
    bool end = random() & 1;
    uint64_t draw = random();
    a.set(i, narrow(t, end ? ends[draw % 4] : int64_t(draw % uint64_t(2 * n)) - n));
  }
  return a;
}

std::string array_text(const std::string &name, const Array &a, int64_t most) {
  auto element = [&](int64_t i) {
    return a.type == DType::Str ? quote(a.strings[size_t(i)]) : element_text(a.type, a.get(i));
  };
  std::string s = a.type == DType::Index && !a.rank()
                      ? fmt::format("{}: index = ", name)
                      : fmt::format("{}: {}[{}] = ", name, dtype_name(a.type), fmt::join(a.dims, ", "));
  int64_t n = a.size(), next = 0;
  if (n > most) {
    for (; next < std::min<int64_t>(n, 8); next++) s += (next ? ", " : "[") + element(next);
    return s + ", ..]";
  }
  auto level = [&](auto &&self, size_t d) -> void {
    if (d == a.rank()) {
      s += element(next++);
      return;
    }
    s += '[';
    for (int64_t i = 0; i < a.dims[d]; i++) {
      if (i) s += ", ";
      self(self, d + 1);
    }
    s += ']';
  };
  if (n || a.rank() == 1) level(level, 0);
  else s += "[]";
  return s;
}

}  // namespace mlc
