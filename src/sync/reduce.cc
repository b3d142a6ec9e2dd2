#include "sync/reduce.h"

#include <algorithm>

#include "ops/expr.h"

namespace mlc {

static constexpr int64_t kWarp = 32;

void combine_across(const Across &a, const Load *mine, std::vector<const Stmt *> &out) {
  Build &b = a.b;
  auto in_tags = [&](Sym tag) { return std::find(a.tags.begin(), a.tags.end(), tag) != a.tags.end(); };
  const Type *scalar = b.type({a.type, true, b.sym("local"), {}, -1, {}, {}});
  std::vector<Thread> order(a.threads.rbegin(), a.threads.rend());  // x first
  bool front = true, gap = false;
  int64_t group = 1, total = 1;
  for (const Thread &th : order) {
    bool in = in_tags(th.tag);
    total *= th.extent;
    if (in && gap) front = false;
    if (in) group *= th.extent;
    else if (th.extent > 1) gap = true;
  }
  X linear = lit(b, int64_t{0}), times = lit(b, int64_t{1});
  for (const Thread &th : order) {
    linear = linear + X(b, b.name(th.name)) * times;
    times = times * th.extent;
  }
  if (group == 1) return;
  auto step = [&](const Expr *other) {
    return b.make(Store{{}, false, mine, fold_step(b, a.op, mine, other), {}});
  };
  bool power = (group & (group - 1)) == 0;
  bool warps = front && group % kWarp == 0, lanes = front && group < kWarp && power;
  if (warps || lanes) {
    Sym got = a.names.make("other");
    const Load *other = b.load(got, {});
    out.push_back(b.make(Alloc{{}, {got, kNowhere, scalar}, {}, nullptr}));
    for (int64_t d = std::min(group, kWarp) / 2; d; d /= 2) {
      out.push_back(b.make(CallStmt{
          {}, b.call("shfl_xor", {mine, b.integer(d)}), b.list({static_cast<const Expr *>(other)}), {}, {}}));
      out.push_back(step(other));
    }
    if (group <= kWarp) return;
  }
  int64_t parts = warps ? total / kWarp : total;
  Sym scratch = a.names.make(a.base + ".parts");
  const Type *type = b.type({a.type, true, b.sym("shared"), {}, -1, b.list({b.integer(parts)}), {}});
    out.push_back(b.make(Alloc{{}, {scratch, kNowhere, type}, {}, nullptr}));
  X slot = warps ? floordiv(linear, kWarp) : linear;
  const Stmt *put = b.make(Store{{}, false, b.load(scratch, b.list({slot.e})), mine, {}});
  if (warps) put = b.make(If{{}, (linear % kWarp == 0).e, b.stmts({put}), {}, false});
  out.push_back(put);
  if (front) {
    int64_t n = warps ? group / kWarp : group;
    X first = total == group ? lit(b, int64_t{0}) : floordiv(linear, group) * n;
    out.push_back(b.make(Store{{}, false, mine, b.load(scratch, b.list({first.e})), {}}));
    Iter i{a.names.make("part"), b.integer(n - 1), kNowhere};
    X at = first + (X(b, b.name(i.name)) + 1);
    if (n > 1)
      out.push_back(
          b.make(For{{}, LoopKind::Serial, i, {}, {}, b.stmts({step(b.load(scratch, b.list({at.e})))})}));
    return;
  }
  out.push_back(b.make(Store{{}, false, mine, fold_start(b, a.op, a.type).e, {}}));
  X at = lit(b, int64_t{0});
  times = lit(b, int64_t{1});
  std::vector<Iter> loops;
  for (const Thread &th : order) {
    bool in = in_tags(th.tag);
    if (in) loops.push_back({a.names.make("part"), b.integer(th.extent), kNowhere});
    at = at + X(b, b.name(in ? loops.back().name : th.name)) * times;
    times = times * th.extent;
  }
  const Stmt *s = step(b.load(scratch, b.list({at.e})));
  for (const Iter &i : loops) s = b.make(For{{}, LoopKind::Serial, i, {}, {}, b.stmts({s})});
  out.push_back(s);
}

}  // namespace mlc
