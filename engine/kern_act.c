/* SPDX-License-Identifier: MIT
 * Activations to integer codes, 32 at a time: A8 and A12 (kern.h, struct ply_acts). */
#include "engine/kern_impl.h"

#define BLOCK 32u
#define FINE_SQUARE 64.0f /* 8 times the root mean square */

/* The largest magnitude's bits: an unsigned maximum keeps NaN and does not depend on the order. */
KERN_INLINE uint32_t
block_top(const float *restrict x)
{
    uint32_t top = 0;
    for (unsigned i = 0; i < BLOCK; i++) {
        uint32_t u = f32_bits(x[i]) & 0x7fffffffu;
        top = u > top ? u : top;
    }
    return top;
}

/* Codes and their scale of one block whose largest magnitude is top; limit is 127 or 2047. */
KERN_INLINE float
block_codes(const float *restrict x, uint32_t top, float limit, int32_t *restrict codes)
{
    bool number = top < 0x7f800000u;
    if (!number || top < 27u << 23) { /* 2^-100: below, 127 / amax would overflow */
        memset(codes, 0, BLOCK * sizeof *codes);
        return number ? 0.0f : bits_f32(0x7fc00000u);
    }
    float amax = bits_f32(top);
    float inv = limit / amax;
    for (unsigned i = 0; i < BLOCK; i++)
        codes[i] = round_even(x[i] * inv);
    return amax / limit;
}

/* The square above which a block's largest magnitude makes it fine. */
KERN_INLINE float
fine_above(const float *restrict x, size_t n)
{
    float s[KERN_LANES] = {0};
    for (size_t i = 0; i < n; i += KERN_LANES)
        for (unsigned j = 0; j < KERN_LANES; j++)
            s[j] = fmaf(x[i + j], x[i + j], s[j]);
    return FINE_SQUARE * (lanes_sum(s) / (float)n);
}

KERN_INLINE void
store_planes(const int32_t *restrict codes, int8_t *restrict hi, int8_t *restrict lo)
{
    for (unsigned i = 0; i < BLOCK; i++) {
        int32_t h = (codes[i] + 16) >> 5; /* nearest, so that lo is in [-16, 15] */
        hi[i] = (int8_t)h;
        lo[i] = (int8_t)(codes[i] - 32 * h);
    }
}

KERN_INLINE void
block_sums(const int32_t *restrict codes, int32_t *restrict sum16)
{
    for (unsigned h = 0; h < 2; h++) {
        int32_t s = 0;
        for (unsigned i = 0; i < 16; i++)
            s += codes[16 * h + i];
        sum16[h] = s;
    }
}

void
KERN(quant_a8)(const float *x, size_t ld, uint32_t m, uint32_t t0, const struct ply_acts *a)
{
    const size_t n = a->n;
    for (size_t t = 0; t < m; t++) {
        const float *row = x + t * ld;
        const float above = fine_above(row, n);
        for (size_t b = 0; b < n / BLOCK; b++) {
            int32_t codes[BLOCK];
            const size_t at = (t0 + t) * (n / BLOCK) + b;
            const uint32_t top = block_top(row + b * BLOCK);
            const bool fine = bits_f32(top) * bits_f32(top) > above;
            int8_t *q = a->q + at * BLOCK;
            a->fine[at] = fine;
            a->d[at] = block_codes(row + b * BLOCK, top, fine ? 2047.0f : 127.0f, codes);
            if (fine)
                store_planes(codes, q, a->lo + at * BLOCK);
            else
                for (unsigned i = 0; i < BLOCK; i++)
                    q[i] = (int8_t)codes[i];
            block_sums(codes, a->sum16 + 2 * at);
        }
    }
}

void
KERN(quant_a12)(const float *x, size_t ld, uint32_t m, uint32_t t0, const struct ply_acts *a)
{
    const size_t n = a->n;
    for (size_t t = 0; t < m; t++) {
        const float *row = x + t * ld;
        for (size_t b = 0; b < n / BLOCK; b++) {
            int32_t codes[BLOCK];
            const size_t at = (t0 + t) * (n / BLOCK) + b;
            a->d[at] = block_codes(row + b * BLOCK, block_top(row + b * BLOCK), 2047.0f, codes);
            store_planes(codes, a->q + at * BLOCK, a->lo + at * BLOCK);
            block_sums(codes, a->sum16 + 2 * at);
        }
    }
}
