/* npu16: a made-up accelerator, as an example of one that mlc knows by its text alone (targets/npu16.mlc).
 *
 * A systolic array of 16 x 16 multipliers takes tiles of 16 x 16 floats from two memories of 64 KiB and adds their product
 * to a tile in a third one. Addresses are bytes from the beginning of a memory, multiples of 64; a tile is dense there,
 * 1024 bytes, row after row. In the host's memory its rows are `stride` elements apart.
 *
 * Calls return when the host may go on; what they start is done in order, as the host would see it. npu16.cc is a model of
 * the machine: it computes what the machine would, and counts its cycles. */
#ifndef NPU16_H
#define NPU16_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { NPU16_A_BYTES = 65536, NPU16_B_BYTES = 65536, NPU16_ACC_BYTES = 65536 };

void npu16_load_a(int64_t dst, const float *src, int64_t stride); /* a[i, k] = src[i, k] */
void npu16_load_b(int64_t dst, const float *src, int64_t stride); /* b[j, k] = src[j, k] */
void npu16_zero(int64_t dst);                                     /* c[i, j] = 0 */
void npu16_mma(int64_t c, int64_t a, int64_t b);                  /* c[i, j] += sum of a[i, k] * b[j, k] over k */
void npu16_store(float *dst, int64_t src, int64_t stride);        /* dst[i, j] = c[i, j] */

typedef struct {
  uint64_t cycles; /* until all that was started is done */
  uint64_t loads, products, stores;
} npu16_counters;

npu16_counters npu16_count(void); /* since the start, or the last npu16_reset */
void npu16_reset(void);           /* memories undefined, counters 0 */

#ifdef __cplusplus
}
#endif
#endif
