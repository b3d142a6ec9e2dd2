// The helpers of CUDA programs that are more than a function on scalars; printed as they stand. Words as in helpers.cc.
#include "emit/helpers.h"

namespace mlc {
namespace {

struct Family {
  std::string_view name, text;
};
constexpr Family kFamilies[] = {
    {"SHARED", R"(#if defined(__CUDACC__)
#define $N(name) extern __shared__ __align__(128) unsigned char name[]
#else
#define $N(name) unsigned char *const name = mlc_cuda_shared()
#endif)"},
    {"fail",
     R"(static __device__ inline void $N(int *failed, int code) { atomicCAS(failed, 0, code); }  // the first one stays)"},
    {"copy_lanes",
     R"(template <int n, class T>
static __device__ inline void $N(T *to, const T *from) {  // at once, where the addresses are multiples of their size
  struct alignas(n * sizeof(T)) Lanes {
    T x[n];
  } lanes;
  if ((size_t)from % sizeof lanes == 0) lanes = *(const Lanes *)from;
  else for (int i = 0; i < n; i++) lanes.x[i] = from[i];
  if ((size_t)to % sizeof lanes == 0) *(Lanes *)to = lanes;
  else for (int i = 0; i < n; i++) to[i] = lanes.x[i];
})"},
    {"launch", R"(struct $N {
  cudaStream_t stream;
  int *failed;  // on the device: the code of the first failure
};)"},
    {"start", R"(template <class... Params, class... Args>
static int $N(const $(launch:) *launch, void (*kernel)(Params...), const int64_t (&grid)[3],
    const int64_t (&block)[3], size_t shared, Args... args) {
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0) return 0;
  if (grid[0] > 2147483647 || grid[1] > 65535 || grid[2] > 65535) return -(int)cudaErrorInvalidConfiguration;
  if (shared > 48 << 10) {
    const cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    if (e != cudaSuccess) return -(int)e;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)grid[0], (unsigned)grid[1], (unsigned)grid[2]);
  config.blockDim = dim3((unsigned)block[0], (unsigned)block[1], (unsigned)block[2]);
  config.dynamicSmemBytes = shared;
  config.stream = launch->stream;
  return -(int)cudaLaunchKernelEx(&config, kernel, args...);
})"},
    {"read", R"(static int $N(const $(launch:) *launch, void *to, const void *from, size_t bytes) {  // waits for it
  const cudaError_t e = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, launch->stream);
  return e == cudaSuccess ? $(finish:)(launch) : -(int)e;
})"},
    {"copy", R"(static int $N(const $(launch:) *launch, void *to, const void *from, int64_t bytes) {
  if (bytes == 0) return 0;
  return -(int)cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDeviceToDevice, launch->stream);
})"},
    {"finish", R"(static int $N(const $(launch:) *launch) {
  int failed = 0;
  cudaError_t e = cudaMemcpyAsync(&failed, launch->failed, sizeof failed, cudaMemcpyDeviceToHost, launch->stream);
  if (e == cudaSuccess) e = cudaStreamSynchronize(launch->stream);
  return e == cudaSuccess ? failed : -(int)e;
})"},
    {"stage", R"(static int $N(unsigned char **at, const void *from, size_t bytes) {  // into the next part of memory
  const cudaError_t e = bytes != 0 ? cudaMemcpyAsync(*at, from, bytes, cudaMemcpyHostToDevice, 0) : cudaSuccess;
  *at += (bytes + 63) / 64 * 64;
  return -(int)e;
})"},
    {"back", R"(static int $N(void *to, const void *from, size_t bytes) {
  return bytes != 0 ? -(int)cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, 0) : 0;
})"},
};
// Of helpers that a CPU needs an instruction for: what both sides have.
constexpr Family kOther[] = {
    {"sqrt", "$T $N($T x) { return __builtin_sqrt$L(x); }"},
    {"fma_native", "$T $N($T x, $T y, $T z) { return __builtin_fma$L(x, y, z); }"},
};

std::string_view find(std::span<const Family> all, std::string_view name) {
  for (const Family &f : all)
    if (f.name == name) return f.text;
  return {};
}

}  // namespace

std::string_view cuda_helper(std::string_view family) { return find(kFamilies, family); }
std::string_view cuda_function(std::string_view family) { return find(kOther, family); }

}  // namespace mlc
