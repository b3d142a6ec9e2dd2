// compact: the last step of a schedule. Blocks dissolve, guards leave loops, buffers shrink to what is alive and move to
// where they are used.
#include "compact/compact.h"

#include "ir/build.h"
#include "pass/pass.h"

namespace mlc {

namespace {

void run(Build &b, Module &m, const Options &, Diag &diag) {
  for (size_t i = 0; i < m.items.size(); i++) {
    auto *f = as<Func>(m.items[i]);
    if (f && f->func == FuncKind::Kernel) m.replace(i, compacted(b, m, f, diag));
  }
}

}  // namespace

extern const Pass pass_compact;
const Pass pass_compact = {"compact", "Shrink and place the buffers of scheduled kernels, dissolve their blocks", {}, run};

}  // namespace mlc
