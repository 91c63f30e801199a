/* SPDX-License-Identifier: MIT
 * Attention over one chunk of 64 keys, the merge of chunks, and the stores into a chunk. The
 * layout of keys and values is kern.h's (enum ply_kern_kv). */
#include "engine/kern_impl.h"

#define GROUP 32u /* elements that share a scale in q8_0 */

void
KERN(k_store_f16)(uint8_t *k, uint32_t slot, const float *x, uint32_t d)
{
    uint8_t *at = k + 2 * ((size_t)(slot / PLY_PANEL) * d * PLY_PANEL + slot % PLY_PANEL);
    for (uint32_t i = 0; i < d; i++) {
        uint16_t h = f32_f16(x[i]);
        memcpy(at + (size_t)i * 2 * PLY_PANEL, &h, sizeof h);
    }
}

void
KERN(v_store_f16)(uint8_t *v, uint32_t slot, const float *x, uint32_t d)
{
    uint8_t *at = v + (size_t)slot * d * 2;
    for (uint32_t i = 0; i < d; i++) {
        uint16_t h = f32_f16(x[i]);
        memcpy(at + 2 * (size_t)i, &h, sizeof h);
    }
}

/* Codes of 32 values and their scale, amax / 127 rounded to f16. Not finite: NaN. Where the
 * rounded scale is infinite the codes are 0, and 0 * inf reads back as NaN. */
KERN_INLINE uint16_t
group_codes(const float *restrict x, int8_t *restrict codes)
{
    uint32_t top = 0;
    for (unsigned i = 0; i < GROUP; i++) {
        uint32_t u = f32_bits(x[i]) & 0x7fffffffu;
        top = u > top ? u : top;
    }
    uint16_t scale = top < 0x7f800000u ? f32_f16(bits_f32(top) / 127.0f) : 0x7e00;
    float s = f16_f32(scale);
    float inv = scale == 0 || scale >= 0x7c00 ? 0.0f : 1.0f / s;
    for (unsigned i = 0; i < GROUP; i++) {
        int32_t c = inv == 0.0f ? 0 : round_even(x[i] * inv);
        c = c > 127 ? 127 : c; /* a subnormal scale may have lost half of itself */
        codes[i] = (int8_t)(c < -127 ? -127 : c);
    }
    return scale;
}

void
KERN(k_store_q8)(uint8_t *k, uint32_t slot, const float *x, uint32_t d)
{
    const size_t panel = slot / PLY_PANEL, lane = slot % PLY_PANEL;
    uint8_t *codes_at = k + panel * d * PLY_PANEL + lane;
    uint8_t *scales_at = k + (size_t)PLY_CHUNK * d + 2 * (panel * (d / GROUP) * PLY_PANEL + lane);
    for (uint32_t g = 0; g < d / GROUP; g++) {
        int8_t codes[GROUP];
        uint16_t scale = group_codes(x + g * GROUP, codes);
        memcpy(scales_at + (size_t)g * 2 * PLY_PANEL, &scale, sizeof scale);
        for (unsigned i = 0; i < GROUP; i++)
            codes_at[((size_t)g * GROUP + i) * PLY_PANEL] = (uint8_t)codes[i];
    }
}

void
KERN(v_store_q8)(uint8_t *v, uint32_t slot, const float *x, uint32_t d)
{
    uint8_t *codes_at = v + (size_t)slot * d;
    uint8_t *scales_at = v + (size_t)PLY_CHUNK * d + (size_t)slot * (d / GROUP) * 2;
    for (uint32_t g = 0; g < d / GROUP; g++) {
        int8_t codes[GROUP];
        uint16_t scale = group_codes(x + g * GROUP, codes);
        memcpy(scales_at + 2 * (size_t)g, &scale, sizeof scale);
        memcpy(codes_at + (size_t)g * GROUP, codes, GROUP);
    }
}

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
    const uint8_t *scales = k + (size_t)PLY_CHUNK * d + 2 * (size_t)panel * (d / GROUP) * PLY_PANEL;
    for (uint32_t i = 0; i < d; i++) {
        const uint8_t *s = scales + (size_t)(i / GROUP) * 2 * PLY_PANEL;
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
    const uint8_t *scales = v + (size_t)PLY_CHUNK * d + 2 * (size_t)slot * (d / GROUP);
    for (uint32_t g = 0; g < d / GROUP; g++) {
        float s = f16_f32(load_u16(scales + 2 * g));
        for (unsigned i = 0; i < GROUP; i++)
            vf[g * GROUP + i] = (float)src[g * GROUP + i] * s;
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
    for (uint32_t i = 0; i < PLY_CHUNK; i++) {
        float masked = i >= q->lo && i < q->hi ? s[i] : -INFINITY;
        unsigned j = i % KERN_LANES;
        top[j] = masked > top[j] ? masked : top[j];
    }
    for (unsigned w = KERN_LANES / 2; w > 0; w /= 2)
        for (unsigned j = 0; j < w; j++)
            top[j] = top[j + w] > top[j] ? top[j + w] : top[j];
    const float m = top[0];
    for (uint32_t i = 0; i < PLY_CHUNK; i++) {
        float p = exp_f32(s[i] - m);
        s[i] = i >= q->lo && i < q->hi ? p : 0.0f;
        sum[i % KERN_LANES] = sum[i % KERN_LANES] + s[i];
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

void
KERN(attn_merge)(float *m, float *l, float *o, float mc, float lc, const float *oc, uint32_t d)
{
    const float top = mc > *m ? mc : *m;
    const float a = exp_f32(*m - top), b = exp_f32(mc - top);
    *m = top;
    *l = fmaf(*l, a, lc * b);
    for (uint32_t i = 0; i < d; i++)
        o[i] = fmaf(o[i], a, oc[i] * b);
}

void
KERN(attn_finish)(float *out, const float *o, float l, uint32_t d)
{
    for (uint32_t i = 0; i < d; i++)
        out[i] = o[i] / l;
}
