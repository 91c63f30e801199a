/* SPDX-License-Identifier: MIT
 * Attention over one chunk, the scalar source: what every variant must equal. */
#include "engine/kern_impl.h"

/* The keys of a panel as floats: kf[d][16]. */
KERN_INLINE void
panel_keys(enum ply_kern_kv kv, const uint8_t *k, uint32_t panel, uint32_t d, float *restrict kf)
{
    const size_t n = (size_t)d * PLY_PANEL;
    if (kv == PLY_KERN_KV_F16) {
        const uint8_t *src = k + 2 * panel * n;
        for (size_t i = 0; i < n; i++)
            kf[i] = f16_f32(load_u16(src + 2 * i));
        return;
    }
    const int8_t *src = (const int8_t *)k + panel * n;
    const uint8_t *scales =
        k + (size_t)PLY_CHUNK * d + 2 * (size_t)panel * (d / KV_GROUP) * PLY_PANEL;
    for (uint32_t i = 0; i < d; i++) {
        const uint8_t *s = scales + (size_t)(i / KV_GROUP) * 2 * PLY_PANEL;
        for (unsigned j = 0; j < PLY_PANEL; j++)
            kf[i * PLY_PANEL + j] = (float)src[i * PLY_PANEL + j] * f16_f32(load_u16(s + 2 * j));
    }
}

/* The value of one key as floats: vf[d]. */
KERN_INLINE void
key_value(enum ply_kern_kv kv, const uint8_t *v, uint32_t slot, uint32_t d, float *restrict vf)
{
    if (kv == PLY_KERN_KV_F16) {
        const uint8_t *src = v + 2 * (size_t)slot * d;
        for (uint32_t i = 0; i < d; i++)
            vf[i] = f16_f32(load_u16(src + 2 * i));
        return;
    }
    const int8_t *src = (const int8_t *)v + (size_t)slot * d;
    const uint8_t *scales = v + (size_t)PLY_CHUNK * d + 2 * (size_t)slot * (d / KV_GROUP);
    for (uint32_t g = 0; g < d / KV_GROUP; g++) {
        float s = f16_f32(load_u16(scales + 2 * g));
        for (unsigned i = 0; i < KV_GROUP; i++)
            vf[g * KV_GROUP + i] = (float)src[g * KV_GROUP + i] * s;
    }
}

/* Scores of 16 keys: a lane per key, the head dimension in ascending order. */
KERN_INLINE void
panel_scores(const float *restrict q, const float *restrict kf, uint32_t d, float *restrict s)
{
    float acc[PLY_PANEL] = {0};
    for (uint32_t i = 0; i < d; i++)
        for (unsigned j = 0; j < PLY_PANEL; j++)
            acc[j] = fmaf(q[i], kf[i * PLY_PANEL + j], acc[j]);
    memcpy(s, acc, sizeof acc);
}

/* Scores to weights exp(s - m), 0 where masked; sets the query's maximum and sum. Both go by
 * sixteen lanes and the fixed tree; a NaN score is no maximum, but its weight makes the sum NaN. */
KERN_INLINE void
softmax(const struct ply_attn_query *q, float *restrict s)
{
    float top[KERN_LANES], sum[KERN_LANES] = {0};
    for (unsigned j = 0; j < KERN_LANES; j++)
        top[j] = -INFINITY;
    for (uint32_t i = 0; i < PLY_CHUNK; i += KERN_LANES) {
        for (unsigned j = 0; j < KERN_LANES; j++) {
            const float seen = i + j >= q->lo && i + j < q->hi ? s[i + j] : -INFINITY;
            top[j] = seen > top[j] ? seen : top[j];
        }
    }
    for (unsigned w = KERN_LANES / 2; w > 0; w /= 2)
        for (unsigned j = 0; j < w; j++)
            top[j] = top[j + w] > top[j] ? top[j + w] : top[j];
    const float m = top[0];
    for (uint32_t i = 0; i < PLY_CHUNK; i += KERN_LANES) {
        for (unsigned j = 0; j < KERN_LANES; j++) {
            const float p = exp_f32(s[i + j] - m);
            s[i + j] = i + j >= q->lo && i + j < q->hi ? p : 0.0f;
            sum[j] = sum[j] + s[i + j];
        }
    }
    *q->m = m;
    *q->l = lanes_sum(sum);
}

/* A lane per output dimension, keys in ascending order, the visible ones alone. */
KERN_INLINE void
weigh_values(const struct ply_attn_query *q, const float *restrict p, const float *restrict vf,
             uint32_t d)
{
    float *restrict o = q->o;
    memset(o, 0, d * sizeof *o);
    for (uint32_t key = q->lo; key < q->hi; key++)
        for (uint32_t i = 0; i < d; i++)
            o[i] = fmaf(p[key], vf[(size_t)key * d + i], o[i]);
}

/* scratch: keys [4][d][16], then values [64][d]. */
KERN_INLINE void
attn_chunk(enum ply_kern_kv kv, const uint8_t *k, const uint8_t *v, uint32_t d,
           const struct ply_attn_query *q, size_t n, float *scratch)
{
    uint32_t lo = PLY_CHUNK, hi = 0;
    for (size_t i = 0; i < n; i++) {
        lo = q[i].lo < lo ? q[i].lo : lo;
        hi = q[i].hi > hi ? q[i].hi : hi;
    }
    float *kf = scratch, *vf = scratch + (size_t)PLY_CHUNK * d;
    const size_t panel_floats = (size_t)PLY_PANEL * d;
    for (uint32_t p = lo / PLY_PANEL; p * PLY_PANEL < hi; p++)
        panel_keys(kv, k, p, d, kf + p * panel_floats);
    for (uint32_t key = lo; key < hi; key++)
        key_value(kv, v, key, d, vf + (size_t)key * d);
    for (size_t i = 0; i < n; i++) {
        float s[PLY_CHUNK] = {0};
        for (uint32_t p = q[i].lo / PLY_PANEL; p * PLY_PANEL < q[i].hi; p++)
            panel_scores(q[i].q, kf + p * panel_floats, d, s + p * PLY_PANEL);
        softmax(&q[i], s);
        weigh_values(&q[i], s, vf, d);
    }
}

void
KERN(attn_chunk_f16)(const uint8_t *k, const uint8_t *v, uint32_t d, const struct ply_attn_query *q,
                     size_t n, float *scratch)
{
    attn_chunk(PLY_KERN_KV_F16, k, v, d, q, n, scratch);
}

void
KERN(attn_chunk_q8)(const uint8_t *k, const uint8_t *v, uint32_t d, const struct ply_attn_query *q,
                    size_t n, float *scratch)
{
    attn_chunk(PLY_KERN_KV_Q8_0, k, v, d, q, n, scratch);
}
