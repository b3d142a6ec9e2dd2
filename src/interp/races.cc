#include "interp/races.h"

#include <fmt/core.h>

#include "interp/exec.h"
#include "interp/machine.h"

namespace mlc::interp {

namespace {

// Where two paths part at turns of one run of a loop: that of the second. Null: they may come together.
const Turn *parts(const Turn *a, const Turn *b, const Turn **of_a) {
  if (!a || !b) return nullptr;
  while (a->depth > b->depth) a = a->outer;
  while (b->depth > a->depth) b = b->outer;
  const Turn *x = nullptr, *y = nullptr;
  for (; a != b; a = a->outer, b = b->outer) x = a, y = b;
  if (!x || x->run != y->run || x->turn == y->turn) return nullptr;
  *of_a = x;
  return y;
}

}  // namespace

void Races::access(Storage &s, int64_t position, bool write, uint32_t at, std::string_view name, const Frame &f,
                   bool own) {
  if (!path_) return;
  if (!s.trace) s.trace = std::make_shared<Trace>();
  Trace::Element &e = s.trace->elements[position];
  auto against = [&](const Turn *before, bool wrote) {
    const Turn *x = nullptr, *y = parts(before, path_, &x);
    if (!y || (own && write && y->loop->bound)) return;
    Fault fault{at, fmt::format("an element of {} is {} by turn {} and {} by turn {} of loop {}, whose turns are taken in "
                                "any order", name, wrote ? "written" : "read", x->turn, write ? "written" : "read", y->turn,
                                name_of(f, x->loop->name))};
    fault.race = true;
    throw fault;
  };
  against(e.writer, true);
  if (write) {
    against(e.reader, false), against(e.other, false);
    e.writer = path_;
    return;
  }
  const Turn *x;
  if (e.reader == path_) return;
  if (parts(e.reader, path_, &x)) e.other = path_;
  else e.reader = path_, e.other = parts(e.other, path_, &x) ? e.other : nullptr;
}

void access_all(Races &r, const Ref &region, bool write, uint32_t at, std::string_view name, const Frame &f) {
  if (!r.path() || !region.storage) return;
  int64_t bits = info(stored(region.elem)).bits;
  each_element(region, [&](int64_t off, const auto &) {
    r.access(*region.storage, region.start * 8 + off * bits, write, at, name, f);
  });
}

void trace(const Access &x, bool write, Frame &f) {
  Races &races = *f.machine->races;
  if (!races.path()) return;
  const BufferInfo &info = f.unit->buffers[size_t(x.buffer)];
  const Buffer &b = f.buffer[x.buffer];
  int64_t off = x.cell >= 0 && f.slot[x.cell + 1] ? f.slot[x.cell] : checked_offset(x, f);
  int64_t bits = mlc::info(stored(info.elem)).bits;
  if (bits < 8) off += b.first;
  races.access(*b.storage, (b.data - b.storage->bytes) * 8 + off * bits, write, x.at, name_of(f, info.name), f,
               info.own);
}

void run_traced(const Act &a, Frame &f) {
  const Act &store = *static_cast<const Act *>(a.what);
  store.run(store, f);
  trace(*static_cast<const StoreAct *>(store.what)->access, true, f);
}

}  // namespace mlc::interp
