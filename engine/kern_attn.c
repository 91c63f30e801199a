/* SPDX-License-Identifier: MIT
 * Stores into a chunk of 64 keys and values (layout: kern.h, enum ply_kern_kv), and what follows
 * attention over a chunk: the merge with earlier chunks and the division at the end. */
#include "engine/kern_impl.h"

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
    for (unsigned i = 0; i < KV_GROUP; i++) {
        uint32_t u = f32_bits(x[i]) & 0x7fffffffu;
        top = u > top ? u : top;
    }
    uint16_t scale = top < 0x7f800000u ? f32_f16(bits_f32(top) / 127.0f) : 0x7e00;
    float s = f16_f32(scale);
    float inv = scale == 0 || scale >= 0x7c00 ? 0.0f : 1.0f / s;
    for (unsigned i = 0; i < KV_GROUP; i++) {
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
    uint8_t *scales_at =
        k + (size_t)PLY_CHUNK * d + 2 * (panel * (d / KV_GROUP) * PLY_PANEL + lane);
    for (uint32_t g = 0; g < d / KV_GROUP; g++) {
        int8_t codes[KV_GROUP];
        uint16_t scale = group_codes(x + g * KV_GROUP, codes);
        memcpy(scales_at + (size_t)g * 2 * PLY_PANEL, &scale, sizeof scale);
        for (unsigned i = 0; i < KV_GROUP; i++)
            codes_at[((size_t)g * KV_GROUP + i) * PLY_PANEL] = (uint8_t)codes[i];
    }
}

void
KERN(v_store_q8)(uint8_t *v, uint32_t slot, const float *x, uint32_t d)
{
    uint8_t *codes_at = v + (size_t)slot * d;
    uint8_t *scales_at = v + (size_t)PLY_CHUNK * d + (size_t)slot * (d / KV_GROUP) * 2;
    for (uint32_t g = 0; g < d / KV_GROUP; g++) {
        int8_t codes[KV_GROUP];
        uint16_t scale = group_codes(x + g * KV_GROUP, codes);
        memcpy(scales_at + 2 * (size_t)g, &scale, sizeof scale);
        memcpy(codes_at + (size_t)g * KV_GROUP, codes, KV_GROUP);
    }
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
