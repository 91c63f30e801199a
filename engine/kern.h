/* SPDX-License-Identifier: MIT
 * The arithmetic kernels: one table of functions per instruction set, chosen at run time.
 * Every variant gives the same bits as the scalar one ("ref"); the rules that make this true:
 *
 *   - No contraction, no fast math, no rcp/rsqrt, no half-precision type. fmaf where written.
 *   - MXCSR is 0x1F80 while kernels run (pool.h sets it).
 *   - Matrix products: for one output element one accumulator; blocks of 32 in ascending order;
 *     in each block the integer i is exact (codes, symmetric offsets and sub-scales in int32,
 *     below 2^24; only K types with A12 pass it, and then the conversion rounds to even), then
 *     acc = fmaf((float)i, d_w * d_a, acc); types with a minimum, whose weight is d * code + m,
 *     then acc = fmaf(m, d_a * (float)sum, acc); K types, whose weight is d * sc * code -
 *     dmin * mn, acc = fmaf(-dmin, d_a * (float)(mn * sum), acc).
 *   - Reductions over a vector: sixteen virtual lanes, element i in lane i % 16, each fmaf in
 *     ascending order, then a fixed tree: lanes 8 apart, 4, 2, 1.
 *   - Attention: a chunk is one KV block of 64 keys; scores a lane per key with fmaf over the head
 *     dimension ascending; values a lane per output with fmaf over keys ascending; masked
 *     keys enter nothing.
 * Kernels include kern.h, quant.h and intrinsics only. Sizes need not be multiples of a vector's
 * width unless said; pointers need no alignment unless said. */
#ifndef PLY_KERN_H
#define PLY_KERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/quant.h"

#define PLY_PANEL 16u  /* weight rows interleaved in a packed panel, keys in a K panel */
#define PLY_CHUNK 64u  /* keys in an attention chunk = PLY_BLOCK_TOKS */
#define PLY_MM_SLOTS 8 /* weight types with a kernel */

/* Quantised activations of m vectors of n elements, n a multiple of 32, a block of 32 at a time.
 * Coarse: d = amax / 127, code = q in [-127, 127].
 * Fine:   d = amax / 2047, code = 32 * q + lo, |q| <= 64, -16 <= lo <= 15.
 * Not finite: d = NaN; amax < 2^-100: d = 0; codes 0 either way.
 * A8: blocks are coarse, except those that hold an outlier: amax^2 > 64 * (sum of the vector's
 * squares / n), sixteen lanes and the tree. There one large number leaves few codes to the other
 * 31, and those blocks make most of the error: on the golden texts a few per cent of the blocks
 * are fine and the mean error falls by almost half. A12, for the head: all blocks are fine. */
struct ply_acts {
    int8_t *q;      /* [m][n] */
    int8_t *lo;     /* [m][n]; of coarse blocks neither written nor read */
    uint8_t *fine;  /* [m][n / 32] 1 where a block is fine; NULL for A12 */
    float *d;       /* [m][n / 32] */
    int32_t *sum16; /* [m][n / 16] sums of the codes */
    uint32_t n;
};

/* Rows [16 * p0, 16 * p1) of a packed matrix (matmul.h) times m vectors:
 * out[t * ld + row] for t < m. Rows past the matrix' last (padding of its last panel) are not
 * written. */
typedef void (*ply_mm_fn)(const uint8_t *packed, uint32_t n_in, uint32_t n_out, uint32_t p0,
                          uint32_t p1, const struct ply_acts *a, uint32_t m, float *out, size_t ld);

/* One query against one chunk. Keys lo..hi-1 (0 <= lo < hi <= 64) of the chunk are visible. */
struct ply_attn_query {
    const float *q; /* [d], already scaled */
    float *m, *l;   /* out: maximum score and sum of exp(score - m) */
    float *o;       /* out: [d] sum of exp(score - m) * value */
    uint32_t lo, hi;
};

/* Layout of one kv head's keys and values of one layer in a block (kv.h places them):
 *   f16  K [4 panels][d][16 keys] u16, V [64][d] u16
 *   q8_0 K [4][d][16] i8 then [4][d / 32][16] f16 scales; V [64][d] i8 then [64][d / 32] f16
 *        scales; a value is (float)code * scale, d a multiple of 32. */
enum ply_kern_kv { PLY_KERN_KV_F16, PLY_KERN_KV_Q8_0, PLY_KERN_KV_N };

struct ply_kernels {
    const char *isa; /* "ref", "avx2", "avx512" */

    /* m vectors x[t * ld ..] of a.n elements; writes rows t0.. of a. */
    void (*quant_a8)(const float *x, size_t ld, uint32_t m, uint32_t t0, const struct ply_acts *a);
    void (*quant_a12)(const float *x, size_t ld, uint32_t m, uint32_t t0, const struct ply_acts *a);

    /* By kernel slot (ply_mm_slot), for A8 and A12 activations. */
    ply_mm_fn mm_a8[PLY_MM_SLOTS], mm_a12[PLY_MM_SLOTS];

    /* out[i] = (x[i] * inv) * w[i], inv = 1 / sqrtf(sum / n + eps). out may be x. */
    void (*rms_norm)(float *out, const float *x, const float *w, uint32_t n, float eps);
    /* x[i] += y[i] */
    void (*add)(float *x, const float *y, uint32_t n);
    /* gate[i] = act(gate[i]) * up[i] */
    void (*silu_mul)(float *gate, const float *up, uint32_t n);
    void (*gelu_tanh_mul)(float *gate, const float *up, uint32_t n);
    /* x[i] = x[i] * s */
    void (*scale)(float *x, float s, uint32_t n);
    /* y[i] = exp(x[i]): exactly +0 for -inf, 1 for 0, NaN for NaN */
    void (*exp)(float *y, const float *x, uint32_t n);
    /* Rotate one head: pairs (2i, 2i+1), or with neox (i, i + dim/2), i < dim / 2.
     * cs: [dim / 2][2] cos, sin. a' = fmaf(a, c, -(b * s)); b' = fmaf(a, s, b * c). Elements
     * from dim on stay. */
    void (*rope)(float *x, const float *cs, uint32_t dim, bool neox);

    /* Store one token's key or value (f32 [d]) in slot 0..63 of a kv head's area. */
    void (*k_store[PLY_KERN_KV_N])(uint8_t *k, uint32_t slot, const float *x, uint32_t d);
    void (*v_store[PLY_KERN_KV_N])(uint8_t *v, uint32_t slot, const float *x, uint32_t d);
    /* n queries against the chunk at (k, v). Values at or above every query's hi are never
     * read; keys there may be loaded with a visible key of their panel, but enter nothing.
     * scratch: ply_attn_scratch_floats(d) floats, 64-byte aligned, the calling thread's own. */
    void (*attn_chunk[PLY_KERN_KV_N])(const uint8_t *k, const uint8_t *v, uint32_t d,
                                      const struct ply_attn_query *q, size_t n, float *scratch);
    /* Merge a later chunk's (mc, lc, oc) into (m, l, o):
     * m' = max(m, mc); a = exp(m - m'); b = exp(mc - m'); l = fmaf(l, a, lc * b);
     * o = fmaf(o, a, oc * b). */
    void (*attn_merge)(float *m, float *l, float *o, float mc, float lc, const float *oc,
                       uint32_t d);
    /* out[i] = o[i] / l */
    void (*attn_finish)(float *out, const float *o, float l, uint32_t d);
};

/* Slot of a type in mm_*: Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q4_K Q5_K Q6_K; -1 for types without a
 * kernel. */
int ply_mm_slot(enum ply_type t);
size_t ply_attn_scratch_floats(uint32_t d);

/* The tables; NULL where the build has no such variant. Whether the processor can run it is
 * cpu.h's. */
const struct ply_kernels *ply_kernels_ref(void);
const struct ply_kernels *ply_kernels_avx2(void);
const struct ply_kernels *ply_kernels_avx512(void);

/* Run every kernel of k against ref on adversarial input, in a few milliseconds. Returns the
 * name of the first kernel that differs in a bit, NULL when none does. */
const char *ply_kernels_check(const struct ply_kernels *k);

#endif
