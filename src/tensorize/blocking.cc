#include "tensorize/blocking.h"

#include <algorithm>

#include "arith/prove.h"
#include "ops/expr.h"

namespace mlc {

namespace {

constexpr int64_t kMostTiles = 16;      // of one group
constexpr double kMostPadding = 1.125;  // what padding to whole blocks may cost beside padding to whole tiles
constexpr double kCopies = 1.5;         // and what the copies weigh that it asks for

struct Operand {
  const Type *type;
  std::vector<size_t> groups;  // spatial ones that it has
  bool result;
};

}  // namespace

int64_t tile_bytes(const Type *t) {
  std::vector<int64_t> dims;
  int64_t n = 1;
  if (!all_static(t, &dims)) return -1;
  for (int64_t d : dims) n *= d;
  return (n * info(t->elem).bits + 7) / 8;
}

std::vector<int64_t> tiles_at_once(State &s, const Match &m, const TargetInfo &target) {
  Build &b = s.b;
  std::vector<Operand> operands;
  for (auto &[name, e] : m.operands) {
    Operand o{m.desc->type_of(name), {}, name == m.desc->target->buffer};
    for (size_t g = 0; g < m.groups.size(); g++)
      if (m.groups[g].kind == AxisKind::Spatial &&
          std::any_of(m.groups[g].axes.begin(), m.groups[g].axes.end(), [&](Sym x) { return mentions(e, x); }))
        o.groups.push_back(g);
    if (!o.result) operands.push_back(o);
  }
  Operand result{m.desc->type_of(m.desc->target->buffer), {}, true};
  for (size_t g = 0; g < m.groups.size(); g++)
    if (m.groups[g].kind == AxisKind::Spatial) result.groups.push_back(g);
  operands.push_back(result);

  // What a group may have: with how much more work. A group that all operands have is used once: one at a time.
  struct Choice {
    int64_t tiles;
    double work;
  };
  std::vector<std::vector<Choice>> choices;
  Known known(s, s.tree.root());
  for (size_t g = 0; g < m.groups.size(); g++) {
    const Match::Group &group = m.groups[g];
    choices.push_back({{1, 1.0}});
    bool shared = std::all_of(operands.begin(), operands.end(), [&](const Operand &o) {
      return std::find(o.groups.begin(), o.groups.end(), g) != o.groups.end();
    });
    if (shared || group.kind != AxisKind::Spatial) continue;
    int64_t size = 0;
    for (int64_t n = 2; n <= kMostTiles; n++) {
      if (int_value(group.size, &size)) {
        int64_t tiles = (size + group.tile - 1) / group.tile, padded = (tiles + n - 1) / n * n;
        if (tiles >= n && double(padded) <= kMostPadding * double(tiles))
          choices[g].push_back({n, double(padded) / double(tiles) * (padded > tiles ? kCopies : 1)});
      } else if (is_const(simplify(X{b, group.size} % (group.tile * n)), &size) && size == 0) {
        choices[g].push_back({n, 1.0});
      }
    }
  }

  std::vector<int64_t> now(m.groups.size(), 1), best;
  double least = 0;
  std::string full;  // the memory that not even one of each fits in
  std::function<void(size_t, double)> next = [&](size_t g, double work) {
    if (g < now.size()) {
      for (const Choice &c : choices[g]) {
        now[g] = c.tiles;
        next(g + 1, work * c.work);
      }
      now[g] = 1;
      return;
    }
    double calls = 1, moved = 0;
    std::map<std::string, int64_t> units, bytes;
    for (int64_t n : now) calls *= double(n);
    for (const Operand &o : operands) {
      int64_t tiles = 1;
      for (size_t d : o.groups) tiles *= now[d];
      if (!o.result) moved += double(tiles);
      if (!o.type->scope) continue;
      std::string scope = s.text(o.type->scope);
      const TargetLine *line = target.memory(scope);
      int64_t one = tile_bytes(o.type), unit = line && line->count > 0 && line->bytes > 0 ? line->bytes : 1;
      units[scope] += tiles * ((one + unit - 1) / unit), bytes[scope] += tiles * one;
    }
    for (auto &[scope, n] : units) {
      const TargetLine *line = target.memory(scope);
      if (!line || line->bytes <= 0) continue;
      int64_t has = line->count > 0 ? line->count : line->bytes;
      if (n <= has) continue;
      if (calls == 1)
        full = fmt::format("needs {} bytes in {}, which has {}", bytes[scope], scope,
                           line->count > 0 ? line->count * line->bytes : line->bytes);
      return;
    }
    double cost = moved / calls * work;
    if (best.empty() || cost < least) best = now, least = cost;
  };
  next(0, 1.0);
  if (best.empty()) refuse(kNowhere, "@{} {}", s.text(m.desc->f->name), full);
  return best;
}

}  // namespace mlc
