// The model of npu16.h: what the machine computes, and when.
//
// Three units work side by side, each in order: one that moves tiles into the memories, the array, one that moves tiles
// out. A transfer takes 1024 bytes at 64 a cycle, and its first byte comes after 24 cycles. A product takes the array for
// 16 cycles; sums are in the memory 32 cycles after the last of them, but the next product may add to them at once. A unit
// waits for the tiles that it reads and for those who still read what it overwrites. With NPU16_REPORT in the environment
// the counters are printed at the end of the program.
#include "npu16.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int64_t kTile = 1024, kSide = 16;
constexpr uint64_t kTransfer = kTile / 64, kLatency = 24, kProduct = 16, kDrain = 32;

struct Tile {
  float value[kSide][kSide];
  uint64_t ready, read_until;  // cycles
};

template <int64_t kBytes> struct Memory {
  const char *name;
  // A tile may begin at any multiple of 64 bytes: what is at hand is where tiles were put.
  Tile tiles[kBytes / 64];
  bool written[kBytes / 64];

  Tile &at(int64_t address, bool reads) {
    if (address < 0 || address > kBytes - kTile || address % 64) {
      fprintf(stderr, "npu16: a tile of %d bytes at %lld of memory %s, which has %lld bytes in steps of 64\n", int(kTile),
              static_cast<long long>(address), name, static_cast<long long>(kBytes));
      abort();
    }
    int64_t slot = address / 64;
    for (int64_t i = slot - kTile / 64 + 1; !reads && i < slot + kTile / 64; i++)
      if (i >= 0 && i < kBytes / 64 && i != slot) written[i] = false;  // what overlaps is gone
    if (reads && !written[slot]) {
      fprintf(stderr, "npu16: memory %s holds no tile at %lld\n", name, static_cast<long long>(address));
      abort();
    }
    if (!reads) written[slot] = true;
    return tiles[slot];
  }
};

Memory<NPU16_A_BYTES> memory_a = {"a", {}, {}};
Memory<NPU16_B_BYTES> memory_b = {"b", {}, {}};
Memory<NPU16_ACC_BYTES> memory_acc = {"acc", {}, {}};
uint64_t in_free, array_free, out_free;  // the cycle from which on a unit is
npu16_counters counters;

uint64_t latest(uint64_t a, uint64_t b) { return a > b ? a : b; }
void until(uint64_t cycle) { counters.cycles = latest(counters.cycles, cycle); }

void load(Tile &t, const float *src, int64_t stride) {
  for (int64_t i = 0; i < kSide; i++) memcpy(t.value[i], src + i * stride, sizeof t.value[i]);
  uint64_t start = latest(in_free, t.read_until);
  in_free = start + kTransfer, t.ready = start + kLatency + kTransfer;
  until(t.ready);
  counters.loads++;
}

struct Report {
  ~Report() {
    if (!getenv("NPU16_REPORT")) return;
    double peak = counters.cycles ? double(counters.products * kProduct) / double(counters.cycles) : 0;
    fprintf(stderr, "npu16: %llu cycles, %llu loads, %llu products, %llu stores, the array at work in %.0f %% of them\n",
            static_cast<unsigned long long>(counters.cycles), static_cast<unsigned long long>(counters.loads),
            static_cast<unsigned long long>(counters.products), static_cast<unsigned long long>(counters.stores), 100 * peak);
  }
} report;

}  // namespace

void npu16_load_a(int64_t dst, const float *src, int64_t stride) { load(memory_a.at(dst, false), src, stride); }
void npu16_load_b(int64_t dst, const float *src, int64_t stride) { load(memory_b.at(dst, false), src, stride); }

void npu16_zero(int64_t dst) {
  Tile &t = memory_acc.at(dst, false);
  memset(t.value, 0, sizeof t.value);
  t.ready = latest(t.ready, t.read_until) + 1;  // a bit of the tile's own: no unit is busy with it
  until(t.ready);
}

void npu16_mma(int64_t c, int64_t a, int64_t b) {
  Tile &y = memory_acc.at(c, true), &x = memory_a.at(a, true), &w = memory_b.at(b, true);
  for (int64_t i = 0; i < kSide; i++)
    for (int64_t j = 0; j < kSide; j++) {
      float sum = y.value[i][j];
      for (int64_t k = 0; k < kSide; k++) sum += x.value[i][k] * w.value[j][k];
      y.value[i][j] = sum;
    }
  uint64_t added = y.ready > kDrain ? y.ready - kDrain : 0;  // sums need not have drained to be added to
  uint64_t start = latest(latest(array_free, added), latest(latest(x.ready, w.ready), y.read_until));
  array_free = start + kProduct;
  x.read_until = latest(x.read_until, array_free), w.read_until = latest(w.read_until, array_free);
  y.ready = array_free + kDrain;
  until(y.ready);
  counters.products++;
}

void npu16_store(float *dst, int64_t src, int64_t stride) {
  Tile &t = memory_acc.at(src, true);
  for (int64_t i = 0; i < kSide; i++) memcpy(dst + i * stride, t.value[i], sizeof t.value[i]);
  uint64_t start = latest(out_free, t.ready);
  out_free = start + kTransfer, t.read_until = latest(t.read_until, out_free);
  until(out_free + kLatency);
  counters.stores++;
}

npu16_counters npu16_count(void) { return counters; }

void npu16_reset(void) {
  for (bool &w : memory_a.written) w = false;
  for (bool &w : memory_b.written) w = false;
  for (bool &w : memory_acc.written) w = false;
  for (Tile &t : memory_a.tiles) t.ready = t.read_until = 0;
  for (Tile &t : memory_b.tiles) t.ready = t.read_until = 0;
  for (Tile &t : memory_acc.tiles) t.ready = t.read_until = 0;
  in_free = array_free = out_free = 0;
  counters = npu16_counters{};
}
