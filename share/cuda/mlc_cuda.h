// What an emitted NAME.cu asks of CUDA, on a CPU: g++ -x c++ -I share/mlc/cuda NAME.cu .. share/mlc/cuda/mlc_cuda.cc
//
// Blocks run one after the other, the threads of a block as fibers that change at barriers and shuffles. Device memory
// is the host's. Fresh memory and the shared memory of each block are filled with 0xcb. MLC_CUDA_ORDER in the
// environment says in which order threads run between two barriers: forward (the default), reverse, or a number, the
// seed of random orders; a kernel that lacks a barrier gives other results then. What no order can end (a barrier that
// some threads never reach) is an error of the launch.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __constant__ static const
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

// ---- of kernels

unsigned char *mlc_cuda_shared();  // the dynamic shared memory of the block, aligned to 1024
void mlc_cuda_barrier(int line);   // of all threads of the block that have not ended
void mlc_cuda_warp(const void *value, void *result, size_t bytes,
                   int from);  // of a warp; each gets what lane `from` gives

#define __syncthreads() mlc_cuda_barrier(__LINE__)
inline void __syncwarp(unsigned = 0xffffffffu) { mlc_cuda_warp(nullptr, nullptr, 0, 0); }
int mlc_cuda_lane();
template <class T> T __shfl_xor_sync(unsigned, T value, int64_t distance, int = 32) {
  T result = value;
  mlc_cuda_warp(&value, &result, sizeof value, mlc_cuda_lane() ^ static_cast<int>(distance));
  return result;
}

template <class T, class F> T mlc_cuda_atomic(T *p, F f) {  // threads change nowhere but at barriers
  const T old = *p;
  *p = f(old);
  return old;
}
template <class T, class U> T atomicAdd(T *p, U v) {
  return mlc_cuda_atomic(p, [&](T old) { return static_cast<T>(old + static_cast<T>(v)); });
}
template <class T, class U> T atomicMax(T *p, U v) {
  return mlc_cuda_atomic(p, [&](T old) { return old < static_cast<T>(v) ? static_cast<T>(v) : old; });
}
template <class T, class U> T atomicMin(T *p, U v) {
  return mlc_cuda_atomic(p, [&](T old) { return static_cast<T>(v) < old ? static_cast<T>(v) : old; });
}
template <class T> T atomicCAS(T *p, T compare, T v) {
  return mlc_cuda_atomic(p, [&](T old) { return old == compare ? v : old; });
}

struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};

// ---- of the host: the part of the runtime's interface that emitted code uses

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorStubLibrary = 34,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorLaunchFailure = 719
};
enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
typedef struct CUstream_st *cudaStream_t;
struct cudaLaunchAttribute {
  int id;
  union {
    char pad[64];
    int value;
  } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute *attrs;
  unsigned numAttrs;
};

cudaError_t mlc_cuda_malloc(void **p, size_t bytes);
cudaError_t mlc_cuda_launch(const cudaLaunchConfig_t &config, void (*run)(void *), void *arg);
cudaError_t cudaFree(void *p);
const char *cudaGetErrorString(cudaError_t e);
template <class T> cudaError_t cudaMalloc(T **p, size_t bytes) {
  void *memory = nullptr;
  const cudaError_t e = mlc_cuda_malloc(&memory, bytes);
  *p = static_cast<T *>(memory);
  return e;
}
inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind) {
  if (bytes != 0) std::memmove(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t = nullptr) {
  return cudaMemcpy(to, from, bytes, kind);
}
inline cudaError_t cudaMemset(void *p, int value, size_t bytes) {
  if (bytes != 0) std::memset(p, value, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t = nullptr) {
  return cudaMemset(p, value, bytes);
}
inline cudaError_t cudaStreamCreate(cudaStream_t *stream) { return *stream = nullptr, cudaSuccess; }
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
template <class... P> cudaError_t cudaFuncSetAttribute(void (*)(P...), cudaFuncAttribute, int bytes) {
  return bytes <= 227 << 10 ? cudaSuccess : cudaErrorInvalidValue;
}
template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(P...), A &&...args) {
  struct Call {
    void (*kernel)(P...);
    std::tuple<P...> args;
  } call{kernel, std::tuple<P...>(std::forward<A>(args)...)};
  return mlc_cuda_launch(*config, [](void *p) {
    Call &c = *static_cast<Call *>(p);
    std::apply(c.kernel, c.args);
  }, &call);
}
