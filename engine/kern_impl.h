/* SPDX-License-Identifier: MIT
 * Shared by the kernel sources alone: the names of a variant's functions, and the scalar
 * arithmetic that all families build on. Every kern_*.c that includes this file is compiled
 * once per instruction set with KERN_ISA set to that set's name; a loop over lanes here is
 * meant to become a vector there, and may because no operation in it depends on the order. */
#ifndef PLY_KERN_IMPL_H
#define PLY_KERN_IMPL_H

#include <math.h>
#include <string.h>
#ifdef __F16C__
#include <immintrin.h>
#endif

#include "engine/kern.h"

#ifndef KERN_ISA
#error "kernel sources are built with -DKERN_ISA=<set>"
#endif
#define KERN_JOIN2(a, b) ply_##a##_##b
#define KERN_JOIN(a, b) KERN_JOIN2(a, b)
#define KERN(name) KERN_JOIN(name, KERN_ISA) /* KERN(rms_norm) is ply_rms_norm_avx2 */

#define KERN_INLINE static inline __attribute__((always_inline))
#define KERN_LANES 16u
#define KV_GROUP 32u /* elements of a key or value that share a scale in q8_0 */

/* Before a loop with a constant count of at most 16: the body so many times, no loop; and the
 * opposite. */
#ifdef __clang__
#define KERN_UNROLL _Pragma("clang loop unroll(full)")
#define KERN_ROLLED _Pragma("clang loop unroll(disable)")
#else
#define KERN_UNROLL _Pragma("GCC unroll 16")
#define KERN_ROLLED _Pragma("GCC unroll 1")
#endif

/* kern_act.c */
void KERN(quant_a8)(const float *x, size_t ld, uint32_t m, uint32_t t0, const struct ply_acts *a);
void KERN(quant_a12)(const float *x, size_t ld, uint32_t m, uint32_t t0, const struct ply_acts *a);
/* kern_mm.c or kern_mm_<isa>.c */
#define KERN_MM_ARGS                                                                \
    const uint8_t *packed, uint32_t n_in, uint32_t n_out, uint32_t p0, uint32_t p1, \
        const struct ply_acts *a, uint32_t m, float *out, size_t ld
#define KERN_MM_TYPES(X) X(Q4_0) X(Q4_1) X(Q5_0) X(Q5_1) X(Q8_0) X(Q4_K) X(Q5_K) X(Q6_K)
#define KERN_MM_DECLARE(type)              \
    void KERN(mm_a8_##type)(KERN_MM_ARGS); \
    void KERN(mm_a12_##type)(KERN_MM_ARGS);
KERN_MM_TYPES(KERN_MM_DECLARE)
/* kern_vec.c */
void KERN(rms_norm)(float *out, const float *x, const float *w, uint32_t n, float eps);
void KERN(add)(float *x, const float *y, uint32_t n);
void KERN(silu_mul)(float *gate, const float *up, uint32_t n);
void KERN(gelu_tanh_mul)(float *gate, const float *up, uint32_t n);
void KERN(scale)(float *x, float s, uint32_t n);
void KERN(exp)(float *y, const float *x, uint32_t n);
void KERN(rope)(float *x, const float *cs, uint32_t dim, bool neox);
/* kern_attn.c; attn_chunk: kern_attn_chunk.c or kern_attn_<isa>.c */
void KERN(k_store_f16)(uint8_t *k, uint32_t slot, const float *x, uint32_t d);
void KERN(v_store_f16)(uint8_t *v, uint32_t slot, const float *x, uint32_t d);
void KERN(k_store_q8)(uint8_t *k, uint32_t slot, const float *x, uint32_t d);
void KERN(v_store_q8)(uint8_t *v, uint32_t slot, const float *x, uint32_t d);
void KERN(attn_chunk_f16)(const uint8_t *k, const uint8_t *v, uint32_t d,
                          const struct ply_attn_query *q, size_t n, float *scratch);
void KERN(attn_chunk_q8)(const uint8_t *k, const uint8_t *v, uint32_t d,
                         const struct ply_attn_query *q, size_t n, float *scratch);
void KERN(attn_merge)(float *m, float *l, float *o, float mc, float lc, const float *oc,
                      uint32_t d);
void KERN(attn_finish)(float *out, const float *o, float l, uint32_t d);
/* kern_table.c */
const struct ply_kernels *KERN(kernels)(void);

KERN_INLINE uint32_t
f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

KERN_INLINE float
bits_f32(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

KERN_INLINE uint16_t
load_u16(const uint8_t *p)
{
    uint16_t u;
    memcpy(&u, p, sizeof u);
    return u;
}

/* Equal to vcvtph2ps. A subnormal half m * 2^-24 is what is left of (1 + m / 1024) * 2^-14 after
 * 2^-14 is taken away: exact, and no subnormal float is touched. */
KERN_INLINE float
f16_f32(uint16_t h)
{
    uint32_t em = (uint32_t)(h & 0x7fff) << 13;
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t normal = em + (112u << 23);
    uint32_t special = em | 0x7f800000u | ((h & 0x3ff) ? 0x400000u : 0u);
    uint32_t tiny = f32_bits(bits_f32(em + (113u << 23)) - bits_f32(113u << 23));
    uint32_t u = em < (1u << 23) ? tiny : em >= (31u << 23) ? special : normal;
    return bits_f32(u | sign);
}

/* Sixteen at once, src and dst of any alignment. */
KERN_INLINE void
f16_f32_lanes(const uint8_t *src, float *dst)
{
#ifdef __F16C__
    _mm256_storeu_ps(dst, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)src)));
    _mm256_storeu_ps(dst + 8, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(src + 16))));
#else
    for (unsigned i = 0; i < KERN_LANES; i++)
        dst[i] = f16_f32(load_u16(src + 2 * i));
#endif
}

/* Equal to vcvtps2ph with round to nearest even. Adding 0.5f to |f| below 2^-14 leaves the
 * subnormal half, rounded to nearest even, in the low bits of the sum. */
KERN_INLINE uint16_t
f32_f16(float f)
{
    uint32_t u = f32_bits(f);
    uint32_t a = u & 0x7fffffffu;
    uint32_t tiny = f32_bits(bits_f32(a) + 0.5f) - (126u << 23);
    uint32_t normal = (a - (112u << 23) + 0xfffu + ((a >> 13) & 1u)) >> 13;
    uint32_t nan = 0x7e00u | ((a >> 13) & 0x3ffu);
    uint32_t h = a < (113u << 23) ? tiny : a < 0x47800000u ? normal : 0x7c00u;
    h = a > 0x7f800000u ? nan : h;
    return (uint16_t)(h | (u >> 16 & 0x8000u));
}

/* The nearest integer, ties to even, of |f| < 2^22: the sum's last bit is worth one. */
KERN_INLINE int32_t
round_even(float f)
{
    return (int32_t)(f32_bits(f + 12582912.0f) - 0x4b400000u);
}

/* e^x, relative error below 1.3e-7 down to the smallest normal result. x is n ln 2 + r with
 * |r| <= ln 2 / 2; e^r by a polynomial of degree 6 (weighted minimax fit, 4e-9), and 2^n in two
 * halves, so that overflow and gradual underflow round once. NaN passes both clamps. */
KERN_INLINE float
exp_f32(float x)
{
    float c = 100.0f < x ? 100.0f : x;
    c = -150.0f > c ? -150.0f : c;
    float t = c * 0x1.715476p+0f + 12582912.0f;
    float n = t - 12582912.0f;
    uint32_t e = f32_bits(t) - 0x4b400000u;
    float r = fmaf(n, -0x1.62e43p-1f, c);
    r = fmaf(n, 0x1.05c61p-29f, r);
    float p = 0x1.6a215ap-10f;
    p = fmaf(p, r, 0x1.123b9ap-7f);
    p = fmaf(p, r, 0x1.5558fcp-5f);
    p = fmaf(p, r, 0x1.55549p-3f);
    p = fmaf(p, r, 0x1.fffffcp-2f);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);
    uint32_t half = (uint32_t)((int32_t)e >> 1);
    float s1 = bits_f32((half + 127u) << 23);
    float s2 = bits_f32((e - half + 127u) << 23);
    return p * s1 * s2;
}

/* The fixed tree over sixteen lanes: 8 apart, 4, 2, 1. */
KERN_INLINE float
lanes_sum(float s[KERN_LANES])
{
    for (unsigned w = KERN_LANES / 2; w > 0; w /= 2)
        for (unsigned i = 0; i < w; i++)
            s[i] = s[i] + s[i + w];
    return s[0];
}

#endif
