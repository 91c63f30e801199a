/* SPDX-License-Identifier: MIT
 * Packed weight panels (kern_layout.h) times quantised activations. A panel's sixteen rows are
 * the lanes: nothing is ever summed across lanes, so every output element has one accumulator
 * that takes the blocks in ascending order whatever the number of vectors or threads. */
#include "engine/kern_impl.h"
#include "engine/kern_layout.h"

#define GROUPS 8u  /* of four columns in a block */
#define TOKENS 64u /* vectors that share one unpacking of a block */

struct block {
    const uint8_t *codes, *scales, *mins, *sub; /* mins and sub only where the type has them */
};

KERN_INLINE struct block
block_at(const uint8_t *panel, struct ply_mm_layout l, uint32_t b)
{
    struct block r = {panel + ply_mm_codes_at(l, b), panel + ply_mm_scales_at(l, b), NULL, NULL};
    r.mins = r.scales + 32;
    r.sub = r.codes + ply_mm_code_bytes(l);
    return r;
}

/* Codes of a block as bytes: u[64 * group + 4 * row + column]. */
KERN_INLINE void
unpack(const uint8_t *restrict c, struct ply_mm_layout l, uint8_t *restrict u)
{
    if (l.bits == 8) {
        memcpy(u, c, 64 * GROUPS);
        return;
    }
    const uint8_t *upper = c + 256;
    for (unsigned j = 0; j < GROUPS / 2; j++) {
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
block_ints(struct block w, struct ply_mm_layout l, const uint8_t *u, const int8_t *q,
           const int8_t *lo, const int32_t *sum16, int32_t *restrict out)
{
    if (l.bits == 6) {
        int32_t second[KERN_LANES];
        dot_codes(u, q, lo, GROUPS / 2, out);
        dot_codes(u + 256, q + 16, lo ? lo + 16 : NULL, GROUPS / 2, second);
        for (unsigned r = 0; r < KERN_LANES; r++)
            out[r] = (int8_t)w.sub[r] * (out[r] - l.offset * sum16[0]) +
                     (int8_t)w.sub[16 + r] * (second[r] - l.offset * sum16[1]);
        return;
    }
    dot_codes(u, q, lo, GROUPS, out);
    for (unsigned r = 0; r < KERN_LANES; r++) {
        out[r] -= l.offset * (sum16[0] + sum16[1]);
        if (l.super)
            out[r] *= w.sub[r];
    }
}

/* Scales and minima of a block as floats, the minimum with the sign it is added with. */
struct factors {
    float d[KERN_LANES], m[KERN_LANES];
};

KERN_INLINE struct factors
block_factors(struct block w, struct ply_mm_layout l)
{
    struct factors f = {0};
    for (unsigned r = 0; r < KERN_LANES; r++) {
        f.d[r] = f16_f32(load_u16(w.scales + 2 * r));
        if (l.min)
            f.m[r] = f16_f32(load_u16(w.mins + 2 * r));
        if (l.min && l.super)
            f.m[r] = -f.m[r];
    }
    return f;
}

KERN_INLINE void
accumulate(float *restrict acc, struct block w, struct ply_mm_layout l, const struct factors *f,
           const int32_t *ints, float da, int32_t sum)
{
    for (unsigned r = 0; r < KERN_LANES; r++)
        acc[r] = fmaf((float)ints[r], f->d[r] * da, acc[r]);
    if (!l.min)
        return;
    for (unsigned r = 0; r < KERN_LANES; r++) {
        int32_t s = l.super ? w.sub[16 + r] * sum : sum;
        acc[r] = fmaf(f->m[r], da * (float)s, acc[r]);
    }
}

/* One panel times n <= TOKENS vectors from the t0-th on, to acc[n][16]. */
KERN_INLINE void
panel_times(const uint8_t *panel, struct ply_mm_layout l, const struct ply_acts *a, bool a12,
            uint32_t t0, uint32_t n, float (*restrict acc)[KERN_LANES])
{
    const uint32_t blocks = a->n / 32;
    memset(acc, 0, n * sizeof *acc);
    for (uint32_t b = 0; b < blocks; b++) {
        struct block w = block_at(panel, l, b);
        struct factors f = block_factors(w, l);
        uint8_t u[64 * GROUPS];
        unpack(w.codes, l, u);
        for (uint32_t t = 0; t < n; t++) {
            size_t at = (size_t)(t0 + t) * blocks + b;
            const int32_t *sum16 = a->sum16 + 2 * at;
            int32_t ints[KERN_LANES];
            block_ints(w, l, u, a->q + 32 * at, a12 ? a->lo + 32 * at : NULL, sum16, ints);
            accumulate(acc[t], w, l, &f, ints, a->d[at], sum16[0] + sum16[1]);
        }
    }
}

KERN_INLINE void
mm(enum ply_mm_slot slot, bool a12, KERN_MM_ARGS)
{
    const struct ply_mm_layout l = ply_mm_layout(slot);
    const uint64_t bytes = ply_mm_panel_bytes(l, n_in);
    for (uint32_t p = p0; p < p1; p++) {
        uint32_t row = p * PLY_PANEL;
        uint32_t rows = n_out - row < PLY_PANEL ? n_out - row : PLY_PANEL;
        for (uint32_t t0 = 0; t0 < m; t0 += TOKENS) {
            float acc[TOKENS][KERN_LANES];
            uint32_t n = m - t0 < TOKENS ? m - t0 : TOKENS;
            panel_times(packed + p * bytes, l, a, a12, t0, n, acc);
            for (uint32_t t = 0; t < n; t++)
                memcpy(out + (t0 + t) * ld + row, acc[t], rows * sizeof(float));
        }
    }
}

#define MM_DEFINE(type)                                                       \
    void KERN(mm_a8_##type)(KERN_MM_ARGS)                                     \
    {                                                                         \
        mm(PLY_MM_##type, false, packed, n_in, n_out, p0, p1, a, m, out, ld); \
    }                                                                         \
    void KERN(mm_a12_##type)(KERN_MM_ARGS)                                    \
    {                                                                         \
        mm(PLY_MM_##type, true, packed, n_in, n_out, p0, p1, a, m, out, ld);  \
    }
KERN_MM_TYPES(MM_DEFINE)
