#include "sync/sync.h"

#include <algorithm>

#include "check/stage.h"
#include "compact/compact.h"
#include "emit/expand.h"
#include "ir/edit.h"
#include "sync/barriers.h"
#include "sync/bind.h"
#include "sync/cut.h"
#include "sync/host.h"
#include "sync/place.h"
#include "sync/uses.h"

namespace mlc {

namespace {

bool binds_threads(const Build &b, Stmts body) {
  bool found = false;
  each_stmt(body, [&](const Stmt *s) {
    auto *f = as<For>(s);
    found |= f && f->loop == LoopKind::Bind && b.text(f->tag).starts_with("threadIdx.");
  });
  return found;
}

const Func *marked(Build &b, const Func *f) {
  std::vector<Attr> attrs;
  for (const Attr &a : f->notes.attrs)
    if (b.text(a.key) != "stage") attrs.push_back(a);
  attrs.push_back({b.sym("stage"), kNowhere, b.string("synced")});
  return edited(b, *f, [&](Func &k) { k.notes.attrs = b.list(attrs); });
}

}  // namespace

void sync_module(Build &b, Module &m, const TargetInfo &target, Diag &diag) {
  Fresh globals(b);
  for (const Item *i : m.items)
    if (Sym s = name_of(i)) globals.take(s);
  std::vector<const Item *> out;
  auto kernel = [&](const Func *f, bool planned) {
    if (stage_of(b, *f) == Stage::Blocks) f = compacted(b, m, f, diag);
    const Func *flat = expand(b, m, f, diag, false);
    if (!flat) return;
    Cut c = cut(b, m, flat, globals, [&](const Func *k, Workspace &own) -> const Func * {
      const Stmt *together = nullptr;
      each_stmt(k->body, [&](const Stmt *s) {
        if (!together && is_collective(b, m, s)) together = s;
      });
      if (together && !binds_threads(b, k->body)) {
        diag.error(together->at, "@{}: the threads of a warp call @{} together: a loop should be bound to threadIdx.x",
                   b.text(k->name), b.text(to<CallStmt>(together).call->callee));
        return nullptr;
      }
      if (!binds(k->body)) k = bound(b, m, k, own);
      Nest nest;
      if (!threads_joined(b, m, k, nest, diag) || !with_barriers(b, m, k, nest, diag)) return nullptr;
      k = placed(b, k, nest, target, diag);
      if (planned && !own.buffers.empty()) {
        diag.error(f->at, "@{}: {} needs a place in global memory: run mlc-sync before mlc-plan", b.text(f->name),
                   b.text(own.buffers[0]->def.name));
        return nullptr;
      }
      return k ? marked(b, k) : nullptr;
    });
    if (c.host) out.push_back(c.host);
    out.insert(out.end(), c.launches.begin(), c.launches.end());
  };
  auto is_planned = [&](const Item *i) {
    auto *f = as<Func>(i);
    return f && f->func == FuncKind::Graph && stage_of(b, *f) == Stage::Planned;
  };
  bool planned = std::any_of(m.items.begin(), m.items.end(), is_planned);
  for (const Item *i : m.items) {
    auto *f = as<Func>(i);
    std::vector<const Func *> copies;
    if (f && f->func == FuncKind::Kernel && !is_synced(b, *f)) kernel(f, planned);
    else out.push_back(is_planned(i) ? with_copy_kernels(b, m, f, globals, copies) : i);
    for (const Func *k : copies) kernel(k, planned);
  }
  if (!diag.errors()) m.set(std::move(out));
}

}  // namespace mlc
