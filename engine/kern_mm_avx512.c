/* SPDX-License-Identifier: MIT
 * Matrix products with AVX-512 VNNI. Sixteen rows are one vector, and vpdpbusd adds a group's
 * four products of unsigned codes and signed activations to int32 lanes, with no bound to mind:
 * all widths of codes are alike once they are bytes. */
#include <immintrin.h>

#include "engine/kern_impl.h"

#define MM_TILE(l, a12) ((a12) ? 4u : 8u)
#include "engine/kern_mm_impl.h"

#define TILE_MAX 8u

/* Bits of every byte to where `to` says, by a shift of 16-bit lanes; mask takes away what came
 * from the neighbouring byte. */
KERN_INLINE __m512i
bits_to(__m512i v, int from, int to, int mask)
{
    v = to >= from ? _mm512_slli_epi16(v, (unsigned)(to - from))
                   : _mm512_srli_epi16(v, (unsigned)(from - to));
    return _mm512_and_si512(v, _mm512_set1_epi8((char)mask));
}

KERN_INLINE void
unpack_codes(const uint8_t *c, struct ply_mm_layout l, uint8_t *u)
{
    if (l.bits == 8) { /* memcpy of 512 bytes would become rep movs, which starts slowly */
        KERN_UNROLL
        for (int j = 0; j < 8; j++)
            _mm512_store_si512(u + 64 * j, _mm512_loadu_si512(c + 64 * j));
        return;
    }
    KERN_UNROLL
    for (int j = 0; j < 4; j++) {
        const __m512i b = _mm512_loadu_si512(c + 64 * j);
        __m512i lo = bits_to(b, 0, 0, 15), hi = bits_to(b, 4, 0, 15);
        if (l.bits == 5) {
            const __m512i up = _mm512_loadu_si512(c + 256);
            lo = _mm512_or_si512(lo, bits_to(up, j, 4, 0x10));
            hi = _mm512_or_si512(hi, bits_to(up, j + 4, 4, 0x10));
        } else if (l.bits == 6) {
            lo = _mm512_or_si512(lo, bits_to(_mm512_loadu_si512(c + 256), 2 * j, 4, 0x30));
            hi = _mm512_or_si512(hi, bits_to(_mm512_loadu_si512(c + 320), 2 * j, 4, 0x30));
        }
        _mm512_store_si512(u + 64 * j, lo);
        _mm512_store_si512(u + 256 + 64 * j, hi);
    }
}

KERN_INLINE __m512i
broadcast4(const int8_t *p)
{
    int32_t v;
    memcpy(&v, p, sizeof(v));
    return _mm512_set1_epi32(v);
}

/* sum[t] = codes of groups g0..g1-1 times plane t, for n vectors, a constant. */
KERN_INLINE void
dot_groups(const struct block *w, const int8_t *const plane[TILE_MAX], unsigned g0, unsigned g1,
           uint32_t n, __m512i *sum)
{
    KERN_UNROLL
    for (uint32_t t = 0; t < n; t++)
        sum[t] = _mm512_setzero_si512();
    KERN_ROLLED
    for (unsigned g = g0; g < g1; g++) {
        const __m512i u = _mm512_load_si512(w->u + 64 * g);
        KERN_UNROLL
        for (uint32_t t = 0; t < n; t++)
            sum[t] = _mm512_dpbusd_epi32(sum[t], u, broadcast4(plane[t] + 4 * g));
    }
}

/* The same with the codes whole: 32 times the upper plane and the lower. */
KERN_INLINE void
dot_codes(const struct block *w, bool a12, const int8_t *const q[TILE_MAX],
          const int8_t *const lo[TILE_MAX], unsigned g0, unsigned g1, uint32_t n, __m512i *sum)
{
    dot_groups(w, q, g0, g1, n, sum);
    if (a12) {
        __m512i low[TILE_MAX];
        dot_groups(w, lo, g0, g1, n, low);
        KERN_UNROLL
        for (uint32_t t = 0; t < n; t++)
            sum[t] = _mm512_add_epi32(_mm512_slli_epi32(sum[t], 5), low[t]);
    }
}

/* The lower plane of fine blocks. They are few: one copy for all types, out of the way. */
static __attribute__((noinline)) void
add_fine(const struct block *w, const struct ply_acts *a, size_t at, size_t stride, unsigned g0,
         unsigned g1, uint32_t n, __m512i *sum)
{
    for (uint32_t t = 0; t < n; t++) {
        const struct act x = act_at(a, at + t * stride);
        const int8_t *lo[TILE_MAX] = {x.lo};
        __m512i low;
        if (!x.fine)
            continue;
        dot_groups(w, lo, g0, g1, 1, &low);
        sum[t] = _mm512_add_epi32(_mm512_slli_epi32(sum[t], 5), low);
    }
}

/* Offset and sub-scale applied to sums whose activations add up to `sum`. */
KERN_INLINE __m512i
scaled(struct ply_mm_layout l, const uint8_t *sub, __m512i dot, int32_t sum)
{
    if (l.offset)
        dot = _mm512_sub_epi32(dot, _mm512_set1_epi32(l.offset * sum));
    if (!l.super)
        return dot;
    const __m128i b = _mm_loadu_si128((const __m128i *)sub);
    return _mm512_mullo_epi32(dot, l.bits == 6 ? _mm512_cvtepi8_epi32(b) : _mm512_cvtepu8_epi32(b));
}

KERN_INLINE void
accumulate(struct ply_mm_layout l, const struct block *w, struct act x, __m512i ints, float *acc)
{
    const int32_t sum = x.sum16[0] + x.sum16[1];
    const __m512 dx = _mm512_set1_ps(x.d);
    __m512 y = _mm512_load_ps(acc);
    y = _mm512_fmadd_ps(_mm512_cvtepi32_ps(ints), _mm512_mul_ps(_mm512_loadu_ps(w->d), dx), y);
    if (l.min) {
        __m512 s = _mm512_set1_ps(x.d * (float)sum);
        if (l.super) {
            const __m512i m = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(w->sub + 16)));
            s = _mm512_cvtepi32_ps(_mm512_mullo_epi32(m, _mm512_set1_epi32(sum)));
            s = _mm512_mul_ps(dx, s);
        }
        y = _mm512_fmadd_ps(_mm512_loadu_ps(w->m), s, y);
    }
    _mm512_store_ps(acc, y);
}

KERN_INLINE void
tile_block(struct ply_mm_layout l, bool a12, const struct block *w, const struct ply_acts *a,
           size_t at, size_t stride, uint32_t n, float (*acc)[KERN_LANES])
{
    const int8_t *q[TILE_MAX], *lo[TILE_MAX];
    __m512i sum[TILE_MAX], second[TILE_MAX];
    KERN_UNROLL
    for (uint32_t t = 0; t < n; t++) {
        const struct act x = act_at(a, at + t * stride);
        q[t] = x.q;
        lo[t] = x.lo;
    }
    const unsigned first = l.bits == 6 ? GROUPS / 2 : GROUPS;
    dot_codes(w, a12, q, lo, 0, first, n, sum);
    if (first < GROUPS)
        dot_codes(w, a12, q, lo, first, GROUPS, n, second);
    if (!a12 && any_fine(a, at, stride, n)) {
        add_fine(w, a, at, stride, 0, first, n, sum);
        if (first < GROUPS)
            add_fine(w, a, at, stride, first, GROUPS, n, second);
    }
    KERN_UNROLL
    for (uint32_t t = 0; t < n; t++) {
        const struct act x = act_at(a, at + t * stride);
        __m512i ints;
        if (l.bits == 6)
            ints = _mm512_add_epi32(scaled(l, w->sub, sum[t], x.sum16[0]),
                                    scaled(l, w->sub + 16, second[t], x.sum16[1]));
        else
            ints = scaled(l, w->sub, sum[t], x.sum16[0] + x.sum16[1]);
        accumulate(l, w, x, ints, acc[t]);
    }
}

KERN_MM_TYPES(MM_DEFINE)
