/* SPDX-License-Identifier: MIT
 * The functions here use only operations that IEEE 754 rounds correctly, in a fixed order. They
 * are accurate to a few units of the last place of a double, far below a float's. */
#include "engine/rope.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/num.h"
#include "engine/cpu.h"
#include "engine/mem.h"

#define BLOCK 64u

/* ln x, x > 0: x = m 2^k with m around 1, ln m = 2 artanh((m - 1) / (m + 1)) as a series. */
static double
log_det(double x)
{
    int k;
    double m = frexp(x, &k);
    if (m < 0.70710678118654752) {
        m *= 2;
        k--;
    }
    const double s = (m - 1) / (m + 1), s2 = s * s;
    double sum = 0;
    for (int n = 25; n >= 1; n -= 2)
        sum = sum * s2 + 1.0 / n;
    return k * 0.69314718055994531 + 2 * s * sum;
}

/* e^x for moderate x: x = k ln 2 + r, |r| <= ln 2 / 2, the exponential series for r. */
static double
exp_det(double x)
{
    const double k = rint(x / 0.69314718055994531);
    const double r = x - k * 0.69314718055994531;
    double sum = 1;
    for (int n = 18; n >= 1; n--)
        sum = 1 + sum * r / n;
    return ldexp(sum, (int)k);
}

/* cos x and sin x, 0 <= x <= 2^20. pi / 2 is taken off in three parts, the first two of 33 bits,
 * so that their multiples are exact; then the Taylor series on [-pi / 4, pi / 4]. */
static void
cos_sin_det(double x, double *c, double *s)
{
    const double k = rint(x * 0.63661977236758134);
    double r = x - k * 0x1.921fb544p+0;
    r -= k * 0x1.0b4611a6p-34;
    r -= k * 0x1.3198a2e037073p-69;

    const double r2 = r * r;
    double cs = 1, sn = 1;
    for (int n = 18; n >= 2; n -= 2) {
        cs = 1 - cs * r2 / (n * (n - 1));
        sn = 1 - sn * r2 / (n * (n + 1));
    }
    sn *= r;
    const unsigned quarter = (unsigned)k & 3;
    *c = quarter & 1 ? sn : cs;
    *s = quarter & 1 ? cs : sn;
    if (quarter == 1 || quarter == 2)
        *c = -*c;
    if (quarter >= 2)
        *s = -*s;
}

uint64_t
ply_rope_bytes(uint32_t n_pos, uint32_t dim)
{
    return (uint64_t)n_pos * dim * sizeof(float);
}

int
ply_rope_init(struct ply_rope *r, uint32_t n_pos, uint32_t dim, double base, double scale,
              const float *freqs, struct ply_err *err)
{
    *r = (struct ply_rope){.half = dim / 2, .n_pos = n_pos};
    r->cs_bytes = PLY_MAX(ply_rope_bytes(n_pos, dim), 1);
    r->freq = calloc(r->half + 1u, sizeof(*r->freq));
    r->done = calloc(n_pos / BLOCK + 1u, sizeof(*r->done));
    r->cs = ply_mem_map(r->cs_bytes);
    if (!r->freq || !r->done || !r->cs) {
        ply_rope_fini(r);
        return ply_fail(err, PLY_ENOMEM, "out of memory for the rotary tables");
    }
    const uint32_t saved = ply_cpu_fp_enter();
    const double step = -2 * log_det(base) / dim;
    for (uint32_t i = 0; i < r->half; i++)
        r->freq[i] = exp_det(i * step) / scale / (freqs ? (double)freqs[i] : 1);
    ply_cpu_fp_leave(saved);
    return PLY_OK;
}

void
ply_rope_fini(struct ply_rope *r)
{
    free(r->freq);
    free(r->done);
    ply_mem_unmap(r->cs, r->cs_bytes);
    memset(r, 0, sizeof(*r));
}

static void
fill_block(struct ply_rope *r, uint32_t block)
{
    const uint32_t begin = block * BLOCK, end = PLY_MIN(begin + BLOCK, r->n_pos);
    float *out = r->cs + (uint64_t)begin * r->half * 2;
    for (uint32_t pos = begin; pos < end; pos++) {
        for (uint32_t i = 0; i < r->half; i++, out += 2) {
            double c, s;
            cos_sin_det(pos * r->freq[i], &c, &s);
            out[0] = (float)c;
            out[1] = (float)s;
        }
    }
}

void
ply_rope_need(struct ply_rope *r, uint32_t pos0, uint32_t pos1)
{
    const uint32_t saved = ply_cpu_fp_enter();
    for (uint32_t b = pos0 / BLOCK; b * BLOCK < pos1; b++) {
        if (!r->done[b])
            fill_block(r, b);
        r->done[b] = 1;
    }
    ply_cpu_fp_leave(saved);
}
