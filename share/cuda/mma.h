// CUDA's <mma.h> on a CPU: what a warp holds together, each of its threads holds as a whole. Products of halfs, sums of
// floats in order.
#pragma once
#include <cmath>
#include <cstdint>

struct half {
  uint16_t bits;
};

namespace nvcuda {
namespace wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };

template <class Use, int M, int N, int K> struct shape {
  static constexpr int rows = M, columns = N;
};
template <int M, int N, int K> struct shape<matrix_a, M, N, K> {
  static constexpr int rows = M, columns = K;
};
template <int M, int N, int K> struct shape<matrix_b, M, N, K> {
  static constexpr int rows = K, columns = N;
};
template <class Use, int M, int N, int K, class T, class Layout = void> struct fragment {
  using tile = shape<Use, M, N, K>;
  float x[tile::rows * tile::columns];
};

inline float value(float v) { return v; }
inline float value(half h) {
  const int sign = h.bits >> 15, exponent = h.bits >> 10 & 31, digits = h.bits & 1023;
  const float size = exponent == 31 ? (digits ? NAN : INFINITY)
                     : exponent     ? std::ldexp(1024.0f + float(digits), exponent - 25)
                                    : std::ldexp(float(digits), -24);
  return sign ? -size : size;
}

template <class F> void fill_fragment(F &f, float v) {
  for (float &x : f.x) x = v;
}
template <class F, class T> void load(F &f, const T *from, unsigned stride, bool by_rows) {
  constexpr int columns = F::tile::columns;
  for (int i = 0; i < F::tile::rows; i++)
    for (int j = 0; j < columns; j++) f.x[i * columns + j] = value(from[by_rows ? i * int(stride) + j : j * int(stride) + i]);
}
template <class U, int M, int N, int K, class T>
void load_matrix_sync(fragment<U, M, N, K, T, row_major> &f, const T *from, unsigned stride) {
  load(f, from, stride, true);
}
template <class U, int M, int N, int K, class T>
void load_matrix_sync(fragment<U, M, N, K, T, col_major> &f, const T *from, unsigned stride) {
  load(f, from, stride, false);
}
template <int M, int N, int K, class T>
void load_matrix_sync(fragment<accumulator, M, N, K, T> &f, const T *from, unsigned stride, layout_t layout) {
  load(f, from, stride, layout == mem_row_major);
}
template <int M, int N, int K, class T, class L, class R>
void mma_sync(fragment<accumulator, M, N, K, float> &d, const fragment<matrix_a, M, N, K, T, L> &a,
              const fragment<matrix_b, M, N, K, T, R> &b, const fragment<accumulator, M, N, K, float> &c) {
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      float sum = c.x[i * N + j];
      for (int k = 0; k < K; k++) sum += a.x[i * K + k] * b.x[k * N + j];
      d.x[i * N + j] = sum;
    }
}
template <int M, int N, int K>
void store_matrix_sync(float *to, const fragment<accumulator, M, N, K, float> &f, unsigned stride, layout_t layout) {
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) to[layout == mem_row_major ? i * int(stride) + j : j * int(stride) + i] = f.x[i * N + j];
}

}  // namespace wmma
}  // namespace nvcuda
