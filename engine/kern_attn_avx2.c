/* SPDX-License-Identifier: MIT
 * Attention over one chunk with AVX2 (also built for avx512). Queries go in tiles of up to six,
 * which share every load and conversion of keys and values: 6 x 16 keys, or 6 x 16 output
 * dimensions, are twelve accumulators. Fewer queries take several panels of keys, or more
 * dimensions, at once, because a lone chain of vfmadd waits for itself. */
#include "engine/kern_exp_avx2.h"

#define TILE_MAX 6u
#define WIDE_MAX 4u /* times 16 keys or dimensions at once */

/* How many sixteens n queries take at once: 6 to 12 accumulators (3 x 2 sixteens spill). */
KERN_INLINE unsigned
wide_for(unsigned n)
{
    return n == 1 ? 4 : n == 2 ? 2 : 1;
}

/* Where a kv head's chunk keeps its keys or values, of d dimensions. */
struct area {
    enum ply_kern_kv kv;
    const uint8_t *codes;
    uint32_t d;
};

struct sixteen {
    __m256 h[2];
};

KERN_INLINE struct sixteen
f16_sixteen(const uint8_t *p)
{
    return (struct sixteen){{_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)),
                             _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 16)))}};
}

KERN_INLINE struct sixteen
i8_sixteen(const uint8_t *p)
{
    const __m128i b = _mm_loadu_si128((const __m128i *)p);
    return (struct sixteen){{_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(b)),
                             _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(b, b)))}};
}

/* Dimension i of a panel's sixteen keys. */
KERN_INLINE struct sixteen
keys(struct area k, uint32_t panel, uint32_t i)
{
    const size_t at = ((size_t)panel * k.d + i) * PLY_PANEL;
    if (k.kv == PLY_KERN_KV_F16)
        return f16_sixteen(k.codes + 2 * at);
    const uint8_t *scales = k.codes + (size_t)PLY_CHUNK * k.d;
    struct sixteen c = i8_sixteen(k.codes + at);
    const struct sixteen s =
        f16_sixteen(scales + 2 * PLY_PANEL * ((size_t)panel * (k.d / KV_GROUP) + i / KV_GROUP));
    c.h[0] = _mm256_mul_ps(c.h[0], s.h[0]);
    c.h[1] = _mm256_mul_ps(c.h[1], s.h[1]);
    return c;
}

/* Dimensions i..i+15 of one value. */
KERN_INLINE struct sixteen
value(struct area v, uint32_t key, uint32_t i)
{
    const size_t at = (size_t)key * v.d + i;
    if (v.kv == PLY_KERN_KV_F16)
        return f16_sixteen(v.codes + 2 * at);
    const uint8_t *scales = v.codes + (size_t)PLY_CHUNK * v.d;
    struct sixteen c = i8_sixteen(v.codes + at);
    const __m256 s =
        _mm256_cvtph_ps(_mm_set1_epi16((int16_t)load_u16(scales + 2 * (at / KV_GROUP))));
    c.h[0] = _mm256_mul_ps(c.h[0], s);
    c.h[1] = _mm256_mul_ps(c.h[1], s);
    return c;
}

/* Scores of n queries, a constant, with the keys of `wide` panels from the first. */
KERN_INLINE void
panel_scores(struct area k, uint32_t panel, unsigned wide, const struct ply_attn_query *q,
             unsigned n, float (*s)[PLY_CHUNK])
{
    __m256 acc[TILE_MAX][WIDE_MAX][2];
    KERN_UNROLL
    for (unsigned t = 0; t < n; t++) {
        KERN_UNROLL
        for (unsigned w = 0; w < wide; w++)
            acc[t][w][0] = acc[t][w][1] = _mm256_setzero_ps();
    }
    for (uint32_t i = 0; i < k.d; i++) {
        KERN_UNROLL
        for (unsigned w = 0; w < wide; w++) {
            const struct sixteen x = keys(k, panel + w, i);
            KERN_UNROLL
            for (unsigned t = 0; t < n; t++) {
                const __m256 y = _mm256_broadcast_ss(q[t].q + i);
                acc[t][w][0] = _mm256_fmadd_ps(y, x.h[0], acc[t][w][0]);
                acc[t][w][1] = _mm256_fmadd_ps(y, x.h[1], acc[t][w][1]);
            }
        }
    }
    KERN_UNROLL
    for (unsigned t = 0; t < n; t++) {
        KERN_UNROLL
        for (unsigned w = 0; w < wide; w++) {
            _mm256_storeu_ps(s[t] + (panel + w) * PLY_PANEL, acc[t][w][0]);
            _mm256_storeu_ps(s[t] + (panel + w) * PLY_PANEL + 8, acc[t][w][1]);
        }
    }
}

/* All bits of the lanes of keys i..i+7 that the query sees. */
KERN_INLINE __m256
seen_by(const struct ply_attn_query *q, uint32_t i)
{
    const __m256i key =
        _mm256_add_epi32(_mm256_set1_epi32((int32_t)i), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    const __m256i before = _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)q->lo), key);
    const __m256i below = _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)q->hi), key);
    return _mm256_castsi256_ps(_mm256_andnot_si256(before, below));
}

/* The tree over sixteen lanes in two vectors, 8 apart, 4, 2, 1, with op(later, earlier). */
#define TREE(op, even, odd)                                                              \
    __extension__({                                                                      \
        const __m256 by8_ = _mm256_##op##_ps(odd, even);                                 \
        const __m128 by4_ =                                                              \
            _mm_##op##_ps(_mm256_extractf128_ps(by8_, 1), _mm256_castps256_ps128(by8_)); \
        const __m128 by2_ = _mm_##op##_ps(_mm_movehl_ps(by4_, by4_), by4_);              \
        _mm_cvtss_f32(_mm_##op##_ss(_mm_movehdup_ps(by2_), by2_));                       \
    })

/* As in kern_attn_chunk.c: lanes 0-7 of its sixteen are `even`, 8-15 `odd`. */
static void
softmax(const struct ply_attn_query *q, float *s)
{
    const __m256 none = _mm256_set1_ps(-INFINITY);
    __m256 even = none, odd = none;
    for (uint32_t i = 0; i < PLY_CHUNK; i += 16) {
        even = _mm256_max_ps(_mm256_blendv_ps(none, _mm256_load_ps(s + i), seen_by(q, i)), even);
        odd = _mm256_max_ps(_mm256_blendv_ps(none, _mm256_load_ps(s + i + 8), seen_by(q, i + 8)),
                            odd);
    }
    const float top = TREE(max, even, odd);
    const __m256 m = _mm256_set1_ps(top);
    even = odd = _mm256_setzero_ps();
    for (uint32_t i = 0; i < PLY_CHUNK; i += 16) {
        __m256 p = exp_ps(_mm256_sub_ps(_mm256_load_ps(s + i), m));
        p = _mm256_and_ps(p, seen_by(q, i));
        _mm256_store_ps(s + i, p);
        even = _mm256_add_ps(even, p);
        p = exp_ps(_mm256_sub_ps(_mm256_load_ps(s + i + 8), m));
        p = _mm256_and_ps(p, seen_by(q, i + 8));
        _mm256_store_ps(s + i + 8, p);
        odd = _mm256_add_ps(odd, p);
    }
    *q->m = top;
    *q->l = TREE(add, even, odd);
}

/* o[i .. i + 16 * wide) of n queries, a constant, takes keys from..to-1. */
KERN_INLINE void
weigh_dims(struct area v, uint32_t from, uint32_t to, uint32_t i, unsigned wide,
           const struct ply_attn_query *q, unsigned n, float (*p)[PLY_CHUNK])
{
    __m256 acc[TILE_MAX][WIDE_MAX][2];
    KERN_UNROLL
    for (unsigned t = 0; t < n; t++) {
        KERN_UNROLL
        for (unsigned w = 0; w < wide; w++) {
            acc[t][w][0] = _mm256_loadu_ps(q[t].o + i + 16 * w);
            acc[t][w][1] = _mm256_loadu_ps(q[t].o + i + 16 * w + 8);
        }
    }
    for (uint32_t key = from; key < to; key++) {
        KERN_UNROLL
        for (unsigned w = 0; w < wide; w++) {
            const struct sixteen x = value(v, key, i + 16 * w);
            KERN_UNROLL
            for (unsigned t = 0; t < n; t++) {
                const __m256 y = _mm256_broadcast_ss(&p[t][key]);
                acc[t][w][0] = _mm256_fmadd_ps(y, x.h[0], acc[t][w][0]);
                acc[t][w][1] = _mm256_fmadd_ps(y, x.h[1], acc[t][w][1]);
            }
        }
    }
    KERN_UNROLL
    for (unsigned t = 0; t < n; t++) {
        KERN_UNROLL
        for (unsigned w = 0; w < wide; w++) {
            _mm256_storeu_ps(q[t].o + i + 16 * w, acc[t][w][0]);
            _mm256_storeu_ps(q[t].o + i + 16 * w + 8, acc[t][w][1]);
        }
    }
}

/* All dimensions; those that do not fill a sixteen are only possible with f16. */
KERN_INLINE void
weigh_values(struct area v, uint32_t from, uint32_t to, const struct ply_attn_query *q, unsigned n,
             float (*p)[PLY_CHUNK])
{
    const unsigned wide = wide_for(n);
    uint32_t i = 0;
    for (; i + 16 * wide <= v.d; i += 16 * wide)
        weigh_dims(v, from, to, i, wide, q, n, p);
    for (; wide > 1 && i + 16 <= v.d; i += 16)
        weigh_dims(v, from, to, i, 1, q, n, p);
    for (; i < v.d; i++) {
        for (unsigned t = 0; t < n; t++) {
            for (uint32_t key = from; key < to; key++)
                q[t].o[i] = fmaf(
                    p[t][key], f16_f32(load_u16(v.codes + 2 * ((size_t)key * v.d + i))), q[t].o[i]);
        }
    }
}

/* One query's part of the values: a function of its own, since every tile needs it. */
typedef void (*weigh_one_fn)(struct area v, uint32_t from, uint32_t to,
                             const struct ply_attn_query *q, float (*p)[PLY_CHUNK]);

/* n queries, a constant. Keys that all of them see are weighed together; what only some see
 * lies before and after, and is weighed by query. */
KERN_INLINE void
tile(struct area k, struct area v, const struct ply_attn_query *q, unsigned n,
     weigh_one_fn weigh_one)
{
    float s[TILE_MAX][PLY_CHUNK] __attribute__((aligned(64))) = {{0}};
    uint32_t lo = PLY_CHUNK, hi = 0, from = 0, to = PLY_CHUNK;
    for (unsigned t = 0; t < n; t++) {
        lo = q[t].lo < lo ? q[t].lo : lo;
        hi = q[t].hi > hi ? q[t].hi : hi;
        from = q[t].lo > from ? q[t].lo : from;
        to = q[t].hi < to ? q[t].hi : to;
    }
    const unsigned wide = wide_for(n);
    uint32_t panel = lo / PLY_PANEL;
    const uint32_t end = (hi + PLY_PANEL - 1) / PLY_PANEL;
    for (; panel + wide <= end; panel += wide)
        panel_scores(k, panel, wide, q, n, s);
    for (; wide > 1 && panel < end; panel++)
        panel_scores(k, panel, 1, q, n, s);
    for (unsigned t = 0; t < n; t++) {
        softmax(q + t, s[t]);
        memset(q[t].o, 0, v.d * sizeof(float));
    }
    to = to > from ? to : from; /* from == to: nothing is common */
    for (unsigned t = 0; t < n; t++)
        weigh_one(v, q[t].lo, from < q[t].hi ? from : q[t].hi, q + t, s + t);
    weigh_values(v, from, to, q, n, s);
    for (unsigned t = 0; t < n; t++)
        weigh_one(v, to, q[t].hi, q + t, s + t);
}

/* Tiles are functions of their own for the reason given in kern_mm_impl.h. */
#define TILE(name, kv, n)                                                               \
    static void name##_##n(const uint8_t *k, const uint8_t *v, uint32_t d,              \
                           const struct ply_attn_query *q)                              \
    {                                                                                   \
        tile((struct area){kv, k, d}, (struct area){kv, v, d}, q, n, weigh_one_##name); \
    }

#define ATTN_CHUNK(name, kv)                                                           \
    static void weigh_one_##name(struct area v, uint32_t from, uint32_t to,            \
                                 const struct ply_attn_query *q, float(*p)[PLY_CHUNK]) \
    {                                                                                  \
        if (from < to)                                                                 \
            weigh_values((struct area){kv, v.codes, v.d}, from, to, q, 1, p);          \
    }                                                                                  \
    TILE(name, kv, 1)                                                                  \
    TILE(name, kv, 2)                                                                  \
    TILE(name, kv, 3)                                                                  \
    TILE(name, kv, 4)                                                                  \
    TILE(name, kv, 5)                                                                  \
    TILE(name, kv, 6)                                                                  \
    void KERN(name)(const uint8_t *k, const uint8_t *v, uint32_t d,                    \
                    const struct ply_attn_query *q, size_t n, float *scratch)          \
    {                                                                                  \
        (void)scratch;                                                                 \
        for (; n >= TILE_MAX; n -= TILE_MAX, q += TILE_MAX)                            \
            name##_6(k, v, d, q);                                                      \
        switch (n) {                                                                   \
        case 5: name##_5(k, v, d, q); break;                                           \
        case 4: name##_4(k, v, d, q); break;                                           \
        case 3: name##_3(k, v, d, q); break;                                           \
        case 2: name##_2(k, v, d, q); break;                                           \
        case 1: name##_1(k, v, d, q); break;                                           \
        default: break;                                                                \
        }                                                                              \
    }

ATTN_CHUNK(attn_chunk_f16, PLY_KERN_KV_F16)
ATTN_CHUNK(attn_chunk_q8, PLY_KERN_KV_Q8_0)
