/* SPDX-License-Identifier: MIT
 * Matrix products, the scalar source: what every variant must equal. */
#include "engine/kern_impl.h"

#define MM_TILE(l, a12) 1u
#include "engine/kern_mm_impl.h"

KERN_INLINE void
unpack_codes(const uint8_t *restrict c, struct ply_mm_layout l, uint8_t *restrict u)
{
    const uint8_t *upper = c + 256;
    if (l.bits == 8)
        memcpy(u, c, 64 * GROUPS);
    for (unsigned j = 0; l.bits < 8 && j < GROUPS / 2; j++) {
        for (unsigned i = 0; i < 64; i++) {
            unsigned lo = c[64 * j + i] & 15u, hi = c[64 * j + i] >> 4;
            if (l.bits == 5) {
                lo |= (upper[i] >> j & 1u) << 4;
                hi |= (upper[i] >> (j + 4) & 1u) << 4;
            } else if (l.bits == 6) {
                lo |= (upper[i] >> 2 * j & 3u) << 4;
                hi |= (upper[64 + i] >> 2 * j & 3u) << 4;
            }
            u[64 * j + i] = (uint8_t)lo;
            u[64 * (j + 4) + i] = (uint8_t)hi;
        }
    }
}

/* sum[row] of codes times activations over n groups. */
KERN_INLINE void
dot_rows(const uint8_t *restrict u, const int8_t *restrict a, unsigned n, int32_t *restrict sum)
{
    for (unsigned r = 0; r < KERN_LANES; r++)
        sum[r] = 0;
    for (unsigned g = 0; g < n; g++) {
        for (unsigned r = 0; r < KERN_LANES; r++) {
            const uint8_t *w = u + 64 * g + 4 * r;
            const int8_t *x = a + 4 * g;
            sum[r] += w[0] * x[0] + w[1] * x[1] + w[2] * x[2] + w[3] * x[3];
        }
    }
}

/* The same for whole codes: 32 times the upper plane and the lower, exact in int32. */
KERN_INLINE void
dot_codes(const uint8_t *restrict u, const int8_t *q, const int8_t *lo, unsigned n,
          int32_t *restrict sum)
{
    dot_rows(u, q, n, sum);
    if (lo) {
        int32_t low[KERN_LANES];
        dot_rows(u, lo, n, low);
        for (unsigned r = 0; r < KERN_LANES; r++)
            sum[r] = 32 * sum[r] + low[r];
    }
}

/* The exact integer of a block for all rows: offsets and sub-scales applied. */
KERN_INLINE void
block_ints(struct ply_mm_layout l, bool a12, const struct block *w, struct act x,
           int32_t *restrict out)
{
    const int8_t *lo = a12 || x.fine ? x.lo : NULL;
    if (l.bits == 6) {
        int32_t second[KERN_LANES];
        dot_codes(w->u, x.q, lo, GROUPS / 2, out);
        dot_codes(w->u + 256, x.q + 16, lo ? lo + 16 : NULL, GROUPS / 2, second);
        for (unsigned r = 0; r < KERN_LANES; r++)
            out[r] = (int8_t)w->sub[r] * (out[r] - l.offset * x.sum16[0]) +
                     (int8_t)w->sub[16 + r] * (second[r] - l.offset * x.sum16[1]);
        return;
    }
    dot_codes(w->u, x.q, lo, GROUPS, out);
    for (unsigned r = 0; r < KERN_LANES; r++) {
        out[r] -= l.offset * (x.sum16[0] + x.sum16[1]);
        if (l.super)
            out[r] *= w->sub[r];
    }
}

KERN_INLINE void
tile_block(struct ply_mm_layout l, bool a12, const struct block *w, const struct ply_acts *a,
           size_t at, size_t stride, uint32_t n, float (*acc)[KERN_LANES])
{
    const struct act x = act_at(a, at);
    const int32_t sum = x.sum16[0] + x.sum16[1];
    float *restrict y = acc[0];
    int32_t ints[KERN_LANES];
    block_ints(l, a12, w, x, ints);
    for (unsigned r = 0; r < KERN_LANES; r++)
        y[r] = fmaf((float)ints[r], w->d[r] * x.d, y[r]);
    for (unsigned r = 0; l.min && r < KERN_LANES; r++) {
        const int32_t s = l.super ? w->sub[16 + r] * sum : sum;
        y[r] = fmaf(w->m[r], x.d * (float)s, y[r]);
    }
}

KERN_MM_TYPES(MM_DEFINE)
