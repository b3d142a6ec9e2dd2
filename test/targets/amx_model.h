// AMX's tiles in plain C++, in the place of the instructions, for machines that have none: `g++ -include amx_model.h`.
// After the operation sections of TILELOADD, TILESTORED, TDPBF16PS and TDPBSSD in Intel's instruction set reference.
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbf16ps
#undef _tile_dpbssd
#undef _tile_dpbsud
#undef _tile_dpbusd
#undef _tile_dpbuud

namespace amx_model {

inline thread_local unsigned char tile[8][16][64];
inline thread_local bool configured;

inline void check(int t) {
  if (!configured || t < 0 || t > 7) abort();
}
inline void configure(const void *config) {
  const unsigned char *c = static_cast<const unsigned char *>(config);
  for (int t = 0; t < 8; t++)
    if (c[0] != 1 || c[16 + 2 * t] != 64 || c[17 + 2 * t] != 0 || c[48 + t] != 16) abort();
  configured = true;
}
inline void load(int t, const void *p, int64_t stride) {
  check(t);
  for (int i = 0; i < 16; i++) memcpy(tile[t][i], static_cast<const char *>(p) + i * stride, 64);
}
inline void store(int t, void *p, int64_t stride) {
  check(t);
  for (int i = 0; i < 16; i++) memcpy(static_cast<char *>(p) + i * stride, tile[t][i], 64);
}
inline void zero(int t) {
  check(t);
  memset(tile[t], 0, sizeof tile[t]);
}
inline float bf16(const unsigned char *p) {
  uint32_t bits = uint32_t(p[0] | p[1] << 8) << 16;
  float f;
  memcpy(&f, &bits, 4);
  return f;
}
inline void dot_bf16(int c, int a, int b) {
  check(c), check(a), check(b);
  for (int m = 0; m < 16; m++)
    for (int k = 0; k < 16; k++)
      for (int n = 0; n < 16; n++) {
        float sum;
        memcpy(&sum, &tile[c][m][4 * n], 4);
        for (int l = 0; l < 2; l++) sum += bf16(&tile[a][m][4 * k + 2 * l]) * bf16(&tile[b][k][4 * n + 2 * l]);
        memcpy(&tile[c][m][4 * n], &sum, 4);
      }
}
template <class A, class B> void dot(int c, int a, int b) {
  check(c), check(a), check(b);
  for (int m = 0; m < 16; m++)
    for (int k = 0; k < 16; k++)
      for (int n = 0; n < 16; n++) {
        uint32_t sum;
        memcpy(&sum, &tile[c][m][4 * n], 4);
        for (int l = 0; l < 4; l++)
          sum += uint32_t(int32_t(A(tile[a][m][4 * k + l])) * int32_t(B(tile[b][k][4 * n + l])));
        memcpy(&tile[c][m][4 * n], &sum, 4);
      }
}

}  // namespace amx_model

#define _tile_loadconfig(config) amx_model::configure(config)
#define _tile_release() (amx_model::configured = false)
#define _tile_loadd(t, p, stride) amx_model::load(t, p, stride)
#define _tile_stored(t, p, stride) amx_model::store(t, p, stride)
#define _tile_zero(t) amx_model::zero(t)
#define _tile_dpbf16ps(c, a, b) amx_model::dot_bf16(c, a, b)
#define _tile_dpbssd(c, a, b) (amx_model::dot<int8_t, int8_t>(c, a, b))
#define _tile_dpbsud(c, a, b) (amx_model::dot<int8_t, uint8_t>(c, a, b))
#define _tile_dpbusd(c, a, b) (amx_model::dot<uint8_t, int8_t>(c, a, b))
#define _tile_dpbuud(c, a, b) (amx_model::dot<uint8_t, uint8_t>(c, a, b))
#define AMX_PERMITTED() true
#define __builtin_cpu_supports(feature) true
