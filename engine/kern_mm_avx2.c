/* SPDX-License-Identifier: MIT
 * Matrix products with AVX2. Sixteen rows are two vectors of eight. A group's bytes times four
 * activations, broadcast, are vpmaddubsw's two products of a pair in int16; how many of those
 * may be added before vpmaddwd widens them follows from the largest code:
 *
 *   4 bits  15 * 127 * 2 =  3810   8 fit in int16: a whole block
 *   5 bits  31 * 127 * 2 =  7874   4
 *   6 bits  63 * 127 * 2 = 16002   2
 *   8 bits  as two nibbles with A8; with A12 255 * 64 * 2 = 32640 fits once for the upper
 *           plane and 255 * 16 * 2 = 8160 four times for the lower
 *
 * vpmaddwd multiplies by the sub-scale, and by 32 in the upper plane, at no cost. */
#include <immintrin.h>

#include "engine/kern_impl.h"

/* Registers decide: with 4 bits a tile holds eight sums, with others the widened sums beside. */
#define MM_TILE(l, a12) ((l).bits == 4 ? 4u : 2u)
#include "engine/kern_mm_impl.h"

#define TILE_MAX 4u

/* Bits of every byte to where `to` says, by a shift of 16-bit lanes; mask takes away what came
 * from the neighbouring byte. */
KERN_INLINE __m256i
bits_to(__m256i v, int from, int to, int mask)
{
    const __m256i m = _mm256_set1_epi8((char)mask);
    v = to >= from ? _mm256_slli_epi16(v, to - from) : _mm256_srli_epi16(v, from - to);
    return _mm256_and_si256(v, m);
}

KERN_INLINE void
unpack_codes(const uint8_t *c, struct ply_mm_layout l, uint8_t *u)
{
    if (l.bits == 8) { /* memcpy of 512 bytes would become rep movs, which starts slowly */
        KERN_UNROLL
        for (int i = 0; i < 16; i++)
            _mm256_store_si256((__m256i *)(u + 32 * i),
                               _mm256_loadu_si256((const __m256i *)(c + 32 * i)));
        return;
    }
    KERN_UNROLL
    for (int i = 0; i < 8; i++) {
        const int j = i / 2, half = i % 2 * 32;
        const __m256i b = _mm256_loadu_si256((const __m256i *)(c + 32 * i));
        __m256i lo = bits_to(b, 0, 0, 15), hi = bits_to(b, 4, 0, 15);
        if (l.bits == 5) {
            const __m256i up = _mm256_loadu_si256((const __m256i *)(c + 256 + half));
            lo = _mm256_or_si256(lo, bits_to(up, j, 4, 0x10));
            hi = _mm256_or_si256(hi, bits_to(up, j + 4, 4, 0x10));
        } else if (l.bits == 6) {
            const __m256i up0 = _mm256_loadu_si256((const __m256i *)(c + 256 + half));
            const __m256i up1 = _mm256_loadu_si256((const __m256i *)(c + 320 + half));
            lo = _mm256_or_si256(lo, bits_to(up0, 2 * j, 4, 0x30));
            hi = _mm256_or_si256(hi, bits_to(up1, 2 * j, 4, 0x30));
        }
        _mm256_store_si256((__m256i *)(u + 32 * i), lo);
        _mm256_store_si256((__m256i *)(u + 256 + 32 * i), hi);
    }
}

/* int32 lanes of rows 0-7 and 8-15. */
struct rows {
    __m256i h[2];
};

KERN_INLINE __m256i
broadcast4(const int8_t *p)
{
    int32_t v;
    memcpy(&v, p, sizeof(v));
    return _mm256_set1_epi32(v);
}

enum part { PART_WHOLE, PART_LOW, PART_HIGH }; /* of a code byte: all of it, or a nibble */

/* sum[t] += factor * (that part of the codes of n_groups groups from g0 * plane t), for n
 * vectors, a constant, in one run of int16 sums. */
KERN_INLINE void
run(const uint8_t *u, enum part part, const int8_t *const plane[TILE_MAX], unsigned g0,
    unsigned n_groups, uint32_t n, struct rows factor, struct rows *sum)
{
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i s[TILE_MAX][2];
    KERN_UNROLL
    for (uint32_t t = 0; t < n; t++)
        s[t][0] = s[t][1] = _mm256_setzero_si256();
    KERN_ROLLED
    for (unsigned g = g0; g < g0 + n_groups; g++) {
        __m256i w[2];
        KERN_UNROLL
        for (unsigned h = 0; h < 2; h++) {
            w[h] = _mm256_load_si256((const __m256i *)(u + 64 * g + 32 * h));
            if (part == PART_HIGH)
                w[h] = _mm256_srli_epi16(w[h], 4);
            if (part != PART_WHOLE)
                w[h] = _mm256_and_si256(w[h], nibble);
        }
        KERN_UNROLL
        for (uint32_t t = 0; t < n; t++) {
            const __m256i x = broadcast4(plane[t] + 4 * g);
            KERN_UNROLL
            for (unsigned h = 0; h < 2; h++) {
                const __m256i p = _mm256_maddubs_epi16(w[h], x);
                s[t][h] = _mm256_add_epi16(s[t][h], p);
            }
        }
    }
    KERN_UNROLL
    for (uint32_t t = 0; t < n; t++) {
        KERN_UNROLL
        for (unsigned h = 0; h < 2; h++)
            sum[t].h[h] = _mm256_add_epi32(sum[t].h[h], _mm256_madd_epi16(s[t][h], factor.h[h]));
    }
}

/* Eight bytes as int16 pairs of the same number. */
KERN_INLINE __m256i
pairs(const uint8_t *p, bool is_signed)
{
    const __m128i b = _mm_loadl_epi64((const __m128i *)p);
    const __m256i w = is_signed ? _mm256_cvtepi8_epi32(b) : _mm256_cvtepu8_epi32(b);
    return _mm256_or_si256(_mm256_slli_epi32(w, 16),
                           _mm256_and_si256(w, _mm256_set1_epi32(0xffff)));
}

/* The sub-scales of rows, or ones. */
KERN_INLINE struct rows
factors(struct ply_mm_layout l, const struct block *w, unsigned half)
{
    const uint8_t *sub = w->sub + 16 * half;
    if (!l.super)
        return (struct rows){{_mm256_set1_epi16(1), _mm256_set1_epi16(1)}};
    return (struct rows){{pairs(sub, l.bits == 6), pairs(sub + 8, l.bits == 6)}};
}

KERN_INLINE struct rows
shifted(struct rows f, int left)
{
    return (struct rows){{_mm256_slli_epi16(f.h[0], left), _mm256_slli_epi16(f.h[1], left)}};
}

/* One plane of n vectors times a block; upper: A12's upper plane, which counts 32 fold. */
KERN_INLINE void
plane_times(struct ply_mm_layout l, const struct block *w, const int8_t *const plane[TILE_MAX],
            bool a12, bool upper, uint32_t n, struct rows *sum)
{
    const int left = upper ? 5 : 0;
    const struct rows f = shifted(factors(l, w, 0), left);
    if (l.bits == 4) {
        run(w->u, PART_WHOLE, plane, 0, 8, n, f, sum);
    } else if (l.bits == 5) {
        run(w->u, PART_WHOLE, plane, 0, 4, n, f, sum);
        run(w->u, PART_WHOLE, plane, 4, 4, n, f, sum);
    } else if (l.bits == 6) {
        const struct rows f1 = shifted(factors(l, w, 1), left);
        run(w->u, PART_WHOLE, plane, 0, 2, n, f, sum);
        run(w->u, PART_WHOLE, plane, 2, 2, n, f, sum);
        run(w->u, PART_WHOLE, plane, 4, 2, n, f1, sum);
        run(w->u, PART_WHOLE, plane, 6, 2, n, f1, sum);
    } else if (!a12) {
        run(w->u, PART_HIGH, plane, 0, 8, n, shifted(f, 4), sum);
        run(w->u, PART_LOW, plane, 0, 8, n, f, sum);
    } else {
        const unsigned step = upper ? 1 : 4;
        KERN_UNROLL
        for (unsigned g = 0; g < GROUPS; g += step)
            run(w->u, PART_WHOLE, plane, g, step, n, f, sum);
    }
}

/* What the symmetric offset takes from the sums. */
KERN_INLINE struct rows
without_offset(struct ply_mm_layout l, const struct block *w, struct act x, struct rows s)
{
    if (l.offset == 0)
        return s;
    if (!l.super) {
        const __m256i o = _mm256_set1_epi32(l.offset * (x.sum16[0] + x.sum16[1]));
        return (struct rows){{_mm256_sub_epi32(s.h[0], o), _mm256_sub_epi32(s.h[1], o)}};
    }
    /* sc0 * sum0 + sc1 * sum1 as one vpmaddwd: even a sum of A12 codes is below 2^15. */
    const __m256i sums =
        _mm256_set1_epi32((int32_t)((uint32_t)x.sum16[1] << 16 | ((uint32_t)x.sum16[0] & 0xffffu)));
    for (unsigned h = 0; h < 2; h++) {
        const __m128i a = _mm_loadl_epi64((const __m128i *)(w->sub + 8 * h));
        const __m128i b = _mm_loadl_epi64((const __m128i *)(w->sub + 16 + 8 * h));
        const __m256i sc = _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(a, b));
        s.h[h] = _mm256_sub_epi32(s.h[h], _mm256_slli_epi32(_mm256_madd_epi16(sc, sums), 5));
    }
    return s;
}

KERN_INLINE void
accumulate(struct ply_mm_layout l, const struct block *w, struct act x, struct rows ints,
           float *acc)
{
    const int32_t sum = x.sum16[0] + x.sum16[1];
    const __m256 dx = _mm256_set1_ps(x.d);
    KERN_UNROLL
    for (unsigned h = 0; h < 2; h++) {
        const __m256 d = _mm256_mul_ps(_mm256_loadu_ps(w->d + 8 * h), dx);
        __m256 y = _mm256_load_ps(acc + 8 * h);
        y = _mm256_fmadd_ps(_mm256_cvtepi32_ps(ints.h[h]), d, y);
        if (l.min) {
            __m256 s = _mm256_set1_ps(x.d * (float)sum);
            if (l.super) {
                const __m128i sub = _mm_loadl_epi64((const __m128i *)(w->sub + 16 + 8 * h));
                const __m256i ms =
                    _mm256_mullo_epi32(_mm256_cvtepu8_epi32(sub), _mm256_set1_epi32(sum));
                s = _mm256_mul_ps(dx, _mm256_cvtepi32_ps(ms));
            }
            y = _mm256_fmadd_ps(_mm256_loadu_ps(w->m + 8 * h), s, y);
        }
        _mm256_store_ps(acc + 8 * h, y);
    }
}

/* The lower plane of fine blocks. They are few: one copy for all types, out of the way. */
static __attribute__((noinline)) void
add_fine(struct ply_mm_layout l, const struct block *w, const struct ply_acts *a, size_t at,
         size_t stride, uint32_t n, struct rows *sum)
{
    for (uint32_t t = 0; t < n; t++) {
        const struct act x = act_at(a, at + t * stride);
        const int8_t *lo[TILE_MAX] = {x.lo};
        if (!x.fine)
            continue;
        for (unsigned h = 0; h < 2; h++)
            sum[t].h[h] = _mm256_slli_epi32(sum[t].h[h], 5);
        plane_times(l, w, lo, true, false, 1, &sum[t]);
    }
}

KERN_INLINE void
tile_block(struct ply_mm_layout l, bool a12, const struct block *w, const struct ply_acts *a,
           size_t at, size_t stride, uint32_t n, float (*acc)[KERN_LANES])
{
    const int8_t *q[TILE_MAX], *lo[TILE_MAX];
    struct rows sum[TILE_MAX];
    KERN_UNROLL
    for (uint32_t t = 0; t < n; t++) {
        const struct act x = act_at(a, at + t * stride);
        q[t] = x.q;
        lo[t] = x.lo;
        sum[t] = (struct rows){{_mm256_setzero_si256(), _mm256_setzero_si256()}};
    }
    plane_times(l, w, q, a12, a12, n, sum);
    if (a12)
        plane_times(l, w, lo, true, false, n, sum);
    else if (any_fine(a, at, stride, n))
        add_fine(l, w, a, at, stride, n, sum);
    KERN_UNROLL
    for (uint32_t t = 0; t < n; t++) {
        const struct act x = act_at(a, at + t * stride);
        accumulate(l, w, x, without_offset(l, w, x, sum[t]), acc[t]);
    }
}

KERN_MM_TYPES(MM_DEFINE)
