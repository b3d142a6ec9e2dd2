#include "mlc_cuda.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <random>
#include <vector>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace {

// ---- fibers: a stack each, and where it goes on

// Saves what a call must keep on the present stack, its top in *from, and goes on where `to` was left.
#if defined(__x86_64__)
asm(R"(.text
.p2align 4
mlc_cuda_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
constexpr size_t kSaved = 6;  // words below the return address
#elif defined(__aarch64__)
asm(R"(.text
.p2align 4
mlc_cuda_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
)");
#else
#error "no switch of fibers for this machine"
#endif
extern "C" void mlc_cuda_switch(void **from, void *to);

constexpr size_t kStack = 256 << 10, kStagger = 192;  // so that stacks do not share their cache sets
constexpr size_t kShared = 256 << 10;
constexpr int kMostThreads = 1024;
constexpr unsigned char kFresh = 0xcb;

enum class State : uint8_t { Ready, Barrier, Warp, Done };
struct Thread {
  void *stack = nullptr;  // its top while it does not run
  State state = State::Done;
  int line = 0;           // of the barrier
  const void *value = nullptr;
  void *result = nullptr;
  size_t bytes = 0;
  int from = 0;
};

Thread threads[kMostThreads];
unsigned char *stacks, *shared_memory;
void *scheduler;  // its stack while a thread runs
int current, count;
void (*body)(void *);
void *argument;
std::mutex one_launch;

void leave() { mlc_cuda_switch(&threads[current].stack, scheduler); }

void enter_thread() {
  body(argument);
  threads[current].state = State::Done;
  leave();
}

void prepare(int t) {
  unsigned char *top = stacks + size_t(t + 1) * kStack - 64 - size_t(t % 16) * kStagger;
  void **s = reinterpret_cast<void **>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t(15));
#if defined(__x86_64__)
  *--s = nullptr;  // a call leaves the stack so
  *--s = reinterpret_cast<void *>(enter_thread);
  s -= kSaved;
  std::fill(s, s + kSaved, nullptr);
#else
  s -= 20;
  std::fill(s, s + 20, nullptr);
  s[11] = reinterpret_cast<void *>(enter_thread);
#endif
  threads[t] = {};
  threads[t].stack = s, threads[t].state = State::Ready;
}

void resume(int t) {
  current = t;
  const unsigned x = blockDim.x, y = blockDim.y, u = unsigned(t);
  threadIdx = {u % x, u / x % y, u / x / y};
  mlc_cuda_switch(&scheduler, threads[t].stack);
}

// A warp all of whose threads wait for each other goes on.
bool release_warps() {
  bool any = false;
  for (int first = 0; first < count; first += 32) {
    const int end = std::min(first + 32, count);
    int waiting = 0, alive = 0;
    for (int t = first; t < end; t++)
      waiting += threads[t].state == State::Warp, alive += threads[t].state != State::Done;
    if (!waiting || waiting != alive) continue;
    alignas(16) unsigned char values[32][16];
    for (int t = first; t < end; t++)
      if (threads[t].state == State::Warp && threads[t].bytes)
        std::memcpy(values[t - first], threads[t].value, threads[t].bytes);
    for (int t = first; t < end; t++) {
      Thread &x = threads[t];
      if (x.state != State::Warp) continue;
      const int from = first + x.from;
      const bool there = from >= first && from < end && threads[from].state != State::Done;
      if (x.bytes && there) std::memcpy(x.result, values[from - first], x.bytes);
    }
    for (int t = first; t < end; t++)
      if (threads[t].state == State::Warp) threads[t].state = State::Ready;
    any = true;
  }
  return any;
}

// All at one barrier: they go on. False: some wait for what never comes.
bool release_block() {
  int line = 0;
  for (int t = 0; t < count; t++) {
    Thread &x = threads[t];
    if (x.state == State::Done) continue;
    if (x.state != State::Barrier || (line && x.line != line)) {
      std::fprintf(stderr, "mlc_cuda: error: block (%u, %u, %u): thread %d waits %s %d, others at line %d\n",
                   blockIdx.x, blockIdx.y, blockIdx.z, t,
                   x.state == State::Warp ? "for its warp, at" : "at the barrier of line", x.line, line);
      return false;
    }
    line = x.line;
  }
  for (int t = 0; t < count; t++)
    if (threads[t].state == State::Barrier) threads[t].state = State::Ready;
  return true;
}

class Order {
 public:
  explicit Order(int n) : order_(size_t(n)) {
    std::iota(order_.begin(), order_.end(), 0);
    const char *s = std::getenv("MLC_CUDA_ORDER");
    if (!s || !*s || !std::strcmp(s, "forward")) return;
    if (!std::strcmp(s, "reverse")) std::reverse(order_.begin(), order_.end());
    else random_ = true, engine_.seed(unsigned(std::strtoul(s, nullptr, 10)));
  }
  const std::vector<int> &next() {
    if (random_) std::shuffle(order_.begin(), order_.end(), engine_);
    return order_;
  }

 private:
  std::vector<int> order_;
  bool random_ = false;
  std::mt19937 engine_;
};

bool run_block(Order &order) {
  for (int t = 0; t < count; t++) prepare(t);
  for (;;) {
    bool alive = false;
    for (int t : order.next()) {
      if (threads[t].state == State::Ready) resume(t);
      alive |= threads[t].state != State::Done;
    }
    if (!alive) return true;
    if (!release_warps() && !release_block()) return false;
  }
}

}  // namespace

unsigned char *mlc_cuda_shared() { return shared_memory; }
int mlc_cuda_lane() { return current % 32; }
void mlc_cuda_barrier(int line) {
  threads[current].state = State::Barrier, threads[current].line = line;
  leave();
}
void mlc_cuda_warp(const void *value, void *result, size_t bytes, int from) {
  Thread &x = threads[current];
  x.state = State::Warp, x.value = value, x.result = result, x.bytes = bytes, x.from = from;
  leave();
}

cudaError_t mlc_cuda_malloc(void **p, size_t bytes) {
  *p = std::aligned_alloc(256, (bytes + 256) / 256 * 256);
  if (!*p) return cudaErrorMemoryAllocation;
  std::memset(*p, kFresh, bytes);
  return cudaSuccess;
}
cudaError_t cudaFree(void *p) {
  std::free(p);
  return cudaSuccess;
}

cudaError_t mlc_cuda_launch(const cudaLaunchConfig_t &config, void (*run)(void *), void *arg) {
  const std::lock_guard<std::mutex> lock(one_launch);
  const dim3 g = config.gridDim, b = config.blockDim;
  const uint64_t n = uint64_t(b.x) * b.y * b.z;
  if (!n || n > kMostThreads || b.z > 64 || !g.x || !g.y || !g.z || g.x > 2147483647u || g.y > 65535 || g.z > 65535)
    return cudaErrorInvalidConfiguration;
  if (config.dynamicSmemBytes > kShared) return cudaErrorInvalidValue;
  if (!stacks) {
    const size_t bytes = size_t(kMostThreads) * kStack;
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    shared_memory = static_cast<unsigned char *>(std::aligned_alloc(1024, kShared));
    if (memory == MAP_FAILED || !shared_memory) return cudaErrorMemoryAllocation;
    stacks = static_cast<unsigned char *>(memory);
  }
  body = run, argument = arg, count = int(n), blockDim = b, gridDim = g;
  Order order(count);
  for (blockIdx.z = 0; blockIdx.z < g.z; blockIdx.z++)
    for (blockIdx.y = 0; blockIdx.y < g.y; blockIdx.y++)
      for (blockIdx.x = 0; blockIdx.x < g.x; blockIdx.x++) {
        std::memset(shared_memory, kFresh, config.dynamicSmemBytes);
        if (!run_block(order)) return cudaErrorLaunchFailure;
      }
  return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t e) {
  switch (e) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    default: return "unknown error";
  }
}
