// compact: the last step of a schedule. Blocks dissolve, guards leave loops, buffers shrink to what is alive and move to
// where they are used.
#include "compact/compact.h"

#include "ir/build.h"
#include "pass/pass.h"
#include "text/twins.h"

namespace mlc {

namespace {

void run(Build &b, Module &m, const Options &, Diag &diag) {
  Twins twins(b);
  std::unordered_map<const Func *, const Func *> made;
  for (size_t i = 0; i < m.items.size(); i++) {
    auto *f = as<Func>(m.items[i]);
    if (!f || f->func != FuncKind::Kernel) continue;
    const Func *first = diag.verbose ? f : twins.first(f), *&done = made[first];  // remarks are told for each
    if (!done) done = compacted(b, m, f, diag);
    m.replace(i, first == f ? done : twins.as_of(f, first, done));
  }
}

}  // namespace

extern const Pass pass_compact;
const Pass pass_compact = {"compact", "Shrink and place the buffers of scheduled kernels, dissolve their blocks", {}, run};

}  // namespace mlc
