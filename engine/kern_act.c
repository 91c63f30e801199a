/* SPDX-License-Identifier: MIT
 * Activations to integer codes, 32 at a time: A8 and A12 (kern.h, struct ply_acts). */
#include "engine/kern_impl.h"

#define BLOCK 32u

/* Codes and their scale of one block; limit is 127 or 2047. The largest magnitude is found as
 * the unsigned maximum of the bits, which keeps NaN and does not depend on the order. */
KERN_INLINE float
block_codes(const float *restrict x, float limit, int32_t *restrict codes)
{
    uint32_t top = 0;
    for (unsigned i = 0; i < BLOCK; i++) {
        uint32_t u = f32_bits(x[i]) & 0x7fffffffu;
        top = u > top ? u : top;
    }
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
        int8_t *q = a->q + (t0 + t) * n;
        for (size_t b = 0; b < n / BLOCK; b++) {
            int32_t codes[BLOCK];
            size_t at = (t0 + t) * (n / BLOCK) + b;
            a->d[at] = block_codes(row + b * BLOCK, 127.0f, codes);
            for (unsigned i = 0; i < BLOCK; i++)
                q[b * BLOCK + i] = (int8_t)codes[i];
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
        int8_t *hi = a->q + (t0 + t) * n;
        int8_t *lo = a->lo + (t0 + t) * n;
        for (size_t b = 0; b < n / BLOCK; b++) {
            int32_t codes[BLOCK];
            size_t at = (t0 + t) * (n / BLOCK) + b;
            a->d[at] = block_codes(row + b * BLOCK, 2047.0f, codes);
            for (unsigned i = 0; i < BLOCK; i++) {
                int32_t h = (codes[i] + 16) >> 5; /* nearest, so that lo is in [-16, 15] */
                hi[b * BLOCK + i] = (int8_t)h;
                lo[b * BLOCK + i] = (int8_t)(codes[i] - 32 * h);
            }
            block_sums(codes, a->sum16 + 2 * at);
        }
    }
}
