/* SPDX-License-Identifier: MIT
 * What the bytes of a quantised tensor mean. A block is a run of 32 or 256 neighbours of one row
 * that share scales; d and m are f16, codes are packed as drawn at each function. Values are
 * computed as written here, one rounding an operation (nothing is fused), which is also how
 * the format's own reference computes them: the tests compare bit by bit. */
#include "engine/quant.h"

#include <string.h>

#include "engine/base/num.h"

/* ---- half precision -------------------------------------------------------------------- */

static float
float_of_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

float
ply_f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    const uint32_t exp = h >> 10 & 0x1fu;
    const uint32_t man = h & 0x3ffu;
    if (exp == 0x1f) /* infinity, or a NaN, made quiet as the processor does */
        return float_of_bits(sign | 0x7f800000u | man << 13 | (man ? 0x00400000u : 0));
    if (exp != 0)
        return float_of_bits(sign | (exp + 112) << 23 | man << 13);
    /* Subnormal: man * 2^-24, exact in float32. */
    const float v = (float)man * 0x1p-24f;
    return sign ? -v : v;
}

uint16_t
ply_f32_to_f16(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    const uint16_t sign = (uint16_t)(u >> 16 & 0x8000u);
    u &= 0x7fffffffu;
    if (u > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (u >> 13 & 0x3ffu));
    if (u >= 0x477ff000u) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (u < 0x33000001u) /* 2^-25 and below round to zero */
        return sign;
    /* Align the significand so that bit `shift` is the last one kept, then round to even. */
    const uint32_t exp = u >> 23;
    const uint32_t man = (u & 0x7fffffu) | 0x800000u;
    const bool normal = exp >= 113;
    const uint32_t shift = normal ? 13 : 126 - exp;
    const uint32_t kept = man >> shift;
    const uint32_t rest = man & ((1u << shift) - 1);
    const uint32_t half = 1u << (shift - 1);
    const uint32_t up = rest > half || (rest == half && (kept & 1));
    /* A carry out of the significand moves into the exponent, as it should. */
    const uint32_t bits = normal ? ((exp - 113) << 10) + kept : kept;
    return (uint16_t)(sign | (bits + up));
}

static float
f16_at(const uint8_t *p)
{
    return ply_f16_to_f32((uint16_t)(p[0] | p[1] << 8));
}

/* ---- floats ---------------------------------------------------------------------------- */

static void
dequant_f32(const uint8_t *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n; i++, src += 4)
        dst[i] = float_of_bits((uint32_t)src[0] | (uint32_t)src[1] << 8 | (uint32_t)src[2] << 16 |
                               (uint32_t)src[3] << 24);
}

static void
dequant_f16(const uint8_t *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = f16_at(src + 2 * i);
}

static void
dequant_bf16(const uint8_t *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = float_of_bits((uint32_t)src[2 * i] << 16 | (uint32_t)src[2 * i + 1] << 24);
}

/* ---- blocks of 32 ---------------------------------------------------------------------- */

/* Elements j and j + 16 share byte j: low nibble, high nibble. */
static unsigned
nibble(const uint8_t *qs, unsigned j)
{
    return j < 16 ? qs[j] & 0xfu : (unsigned)qs[j - 16] >> 4;
}

/* The fifth bit of element j is bit j of a little-endian word. */
static unsigned
fifth_bit(const uint8_t *qh, unsigned j)
{
    return (qh[j / 8] >> j % 8 & 1u) << 4;
}

/* d | 16 bytes of nibbles; (q - 8) * d */
static void
dequant_q4_0(const uint8_t *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n; i += 32, src += 18, dst += 32) {
        const float d = f16_at(src);
        for (unsigned j = 0; j < 32; j++)
            dst[j] = (float)((int)nibble(src + 2, j) - 8) * d;
    }
}

/* d | m | 16 bytes of nibbles; q * d + m */
static void
dequant_q4_1(const uint8_t *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n; i += 32, src += 20, dst += 32) {
        const float d = f16_at(src);
        const float m = f16_at(src + 2);
        for (unsigned j = 0; j < 32; j++)
            dst[j] = (float)nibble(src + 4, j) * d + m;
    }
}

/* d | fifth bits | 16 bytes of nibbles; (q - 16) * d */
static void
dequant_q5_0(const uint8_t *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n; i += 32, src += 22, dst += 32) {
        const float d = f16_at(src);
        for (unsigned j = 0; j < 32; j++)
            dst[j] = (float)((int)(nibble(src + 6, j) | fifth_bit(src + 2, j)) - 16) * d;
    }
}

/* d | m | fifth bits | 16 bytes of nibbles; q * d + m */
static void
dequant_q5_1(const uint8_t *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n; i += 32, src += 24, dst += 32) {
        const float d = f16_at(src);
        const float m = f16_at(src + 2);
        for (unsigned j = 0; j < 32; j++)
            dst[j] = (float)(nibble(src + 8, j) | fifth_bit(src + 4, j)) * d + m;
    }
}

/* d | 32 signed bytes; q * d */
static void
dequant_q8_0(const uint8_t *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n; i += 32, src += 34, dst += 32) {
        const float d = f16_at(src);
        for (unsigned j = 0; j < 32; j++)
            dst[j] = (float)(int8_t)src[2 + j] * d;
    }
}

/* ---- blocks of 256 --------------------------------------------------------------------- */

/* Two-bit codes come in two halves of 128 elements; in a half, element 32 * k + l is bits 2k of
 * byte l. */
static unsigned
crumb(const uint8_t *qs, unsigned j)
{
    return qs[j / 128 * 32 + j % 32] >> j % 128 / 32 * 2 & 3u;
}

/* 16 x (scale 4 bits, minimum 4 bits) | codes 64 | d | dmin; (d * sc) * q - dmin * m, by 16 */
static void
dequant_q2_k(const uint8_t *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n; i += 256, src += 84, dst += 256) {
        const float d = f16_at(src + 80);
        const float dmin = f16_at(src + 82);
        for (unsigned b = 0; b < 16; b++) {
            const float ds = d * (float)(src[b] & 0xfu);
            const float ms = dmin * (float)(src[b] >> 4);
            for (unsigned j = 16 * b; j < 16 * b + 16; j++)
                dst[j] = ds * (float)crumb(src + 16, j) - ms;
        }
    }
}

/* Scale j of 16, six bits: the low four in nibbles of bytes 0..7, the high two in bytes 8..11. */
static int
q3_k_scale(const uint8_t *s, unsigned j)
{
    const unsigned lo = j < 8 ? s[j] & 0xfu : (unsigned)s[j - 8] >> 4;
    const unsigned hi = s[8 + j % 4] >> j / 4 * 2 & 3u;
    return (int)(lo | hi << 4) - 32;
}

/* third bits 32 (bit j / 32 of byte j % 32) | codes 64 | scales 12 | d;
 * (d * sc) * (q - 4), by 16 */
static void
dequant_q3_k(const uint8_t *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n; i += 256, src += 110, dst += 256) {
        const float d = f16_at(src + 108);
        for (unsigned b = 0; b < 16; b++) {
            const float ds = d * (float)q3_k_scale(src + 96, b);
            for (unsigned j = 16 * b; j < 16 * b + 16; j++) {
                const unsigned third = src[j % 32] >> j / 32 & 1u;
                dst[j] = ds * (float)((int)(crumb(src + 32, j) | third << 2) - 4);
            }
        }
    }
}

/* Scale and minimum j of 8, six bits each, in 12 bytes: the first four of both as low six bits
 * of bytes 0..7, the others as nibbles of bytes 8..11 with their high two bits on top of those. */
static void
k4_scale_min(const uint8_t *s, unsigned j, unsigned *sc, unsigned *m)
{
    if (j < 4) {
        *sc = s[j] & 63u;
        *m = s[j + 4] & 63u;
    } else {
        *sc = (s[j + 4] & 0xfu) | (unsigned)(s[j - 4] >> 6) << 4;
        *m = (unsigned)s[j + 4] >> 4 | (unsigned)(s[j] >> 6) << 4;
    }
}

/* In Q4_K and Q5_K 64 elements share 32 bytes: low nibbles, then high nibbles. */
static unsigned
nibble_k(const uint8_t *qs, unsigned j)
{
    const unsigned b = qs[j / 64 * 32 + j % 32];
    return j % 64 < 32 ? b & 0xfu : b >> 4;
}

/* d | dmin | scales 12 | nibbles 128; (d * sc) * q - dmin * m, by 32 */
static void
dequant_q4_k(const uint8_t *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n; i += 256, src += 144, dst += 256) {
        const float d = f16_at(src);
        const float dmin = f16_at(src + 2);
        for (unsigned b = 0; b < 8; b++) {
            unsigned sc, m;
            k4_scale_min(src + 4, b, &sc, &m);
            const float ds = d * (float)sc;
            const float ms = dmin * (float)m;
            for (unsigned j = 32 * b; j < 32 * b + 32; j++)
                dst[j] = ds * (float)nibble_k(src + 16, j) - ms;
        }
    }
}

/* d | dmin | scales 12 | fifth bits 32 (bit j / 32 of byte j % 32) | nibbles 128;
 * (d * sc) * q - dmin * m, by 32 */
static void
dequant_q5_k(const uint8_t *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n; i += 256, src += 176, dst += 256) {
        const float d = f16_at(src);
        const float dmin = f16_at(src + 2);
        for (unsigned b = 0; b < 8; b++) {
            unsigned sc, m;
            k4_scale_min(src + 4, b, &sc, &m);
            const float ds = d * (float)sc;
            const float ms = dmin * (float)m;
            for (unsigned j = 32 * b; j < 32 * b + 32; j++) {
                const unsigned fifth = src[16 + j % 32] >> b & 1u;
                dst[j] = ds * (float)(nibble_k(src + 48, j) | fifth << 4) - ms;
            }
        }
    }
}

/* low nibbles 128 | high crumbs 64 | signed scales 16 | d; (d * sc) * (q - 32), by 16.
 * In each half of 128, nibbles lie as (l, l + 64) in byte l. */
static void
dequant_q6_k(const uint8_t *src, float *dst, size_t n)
{
    for (size_t i = 0; i < n; i += 256, src += 210, dst += 256) {
        const float d = f16_at(src + 208);
        for (unsigned b = 0; b < 16; b++) {
            const float ds = d * (float)(int8_t)src[192 + b];
            for (unsigned j = 16 * b; j < 16 * b + 16; j++) {
                const unsigned two = src[j / 128 * 64 + j % 64];
                const unsigned lo = j % 128 < 64 ? two & 0xfu : two >> 4;
                dst[j] = ds * (float)((int)(lo | crumb(src + 128, j) << 4) - 32);
            }
        }
    }
}

/* ---- tables ---------------------------------------------------------------------------- */

static const struct ply_type_traits supported[] = {
    {PLY_TYPE_F32, "F32", 1, 4, false, dequant_f32},
    {PLY_TYPE_F16, "F16", 1, 2, false, dequant_f16},
    {PLY_TYPE_BF16, "BF16", 1, 2, false, dequant_bf16},
    {PLY_TYPE_Q4_0, "Q4_0", 32, 18, true, dequant_q4_0},
    {PLY_TYPE_Q4_1, "Q4_1", 32, 20, true, dequant_q4_1},
    {PLY_TYPE_Q5_0, "Q5_0", 32, 22, true, dequant_q5_0},
    {PLY_TYPE_Q5_1, "Q5_1", 32, 24, true, dequant_q5_1},
    {PLY_TYPE_Q8_0, "Q8_0", 32, 34, true, dequant_q8_0},
    {PLY_TYPE_Q2_K, "Q2_K", 256, 84, false, dequant_q2_k},
    {PLY_TYPE_Q3_K, "Q3_K", 256, 110, false, dequant_q3_k},
    {PLY_TYPE_Q4_K, "Q4_K", 256, 144, true, dequant_q4_k},
    {PLY_TYPE_Q5_K, "Q5_K", 256, 176, true, dequant_q5_k},
    {PLY_TYPE_Q6_K, "Q6_K", 256, 210, true, dequant_q6_k},
};

/* Every number ggml has given to a type (ggml.h, enum ggml_type). Without a size: taken back, or
 * only ever used for activations, so that no file can hold it. */
static const struct {
    const char *name;
    unsigned block, block_bytes;
} all_types[] = {
    [0] = {"F32", 1, 4},         [1] = {"F16", 1, 2},         [2] = {"Q4_0", 32, 18},
    [3] = {"Q4_1", 32, 20},      [4] = {"Q4_2", 0, 0},        [5] = {"Q4_3", 0, 0},
    [6] = {"Q5_0", 32, 22},      [7] = {"Q5_1", 32, 24},      [8] = {"Q8_0", 32, 34},
    [9] = {"Q8_1", 0, 0},        [10] = {"Q2_K", 256, 84},    [11] = {"Q3_K", 256, 110},
    [12] = {"Q4_K", 256, 144},   [13] = {"Q5_K", 256, 176},   [14] = {"Q6_K", 256, 210},
    [15] = {"Q8_K", 0, 0},       [16] = {"IQ2_XXS", 256, 66}, [17] = {"IQ2_XS", 256, 74},
    [18] = {"IQ3_XXS", 256, 98}, [19] = {"IQ1_S", 256, 50},   [20] = {"IQ4_NL", 32, 18},
    [21] = {"IQ3_S", 256, 110},  [22] = {"IQ2_S", 256, 82},   [23] = {"IQ4_XS", 256, 136},
    [24] = {"I8", 1, 1},         [25] = {"I16", 1, 2},        [26] = {"I32", 1, 4},
    [27] = {"I64", 1, 8},        [28] = {"F64", 1, 8},        [29] = {"IQ1_M", 256, 56},
    [30] = {"BF16", 1, 2},       [31] = {"Q4_0_4_4", 0, 0},   [32] = {"Q4_0_4_8", 0, 0},
    [33] = {"Q4_0_8_8", 0, 0},   [34] = {"TQ1_0", 256, 54},   [35] = {"TQ2_0", 256, 66},
    [36] = {"IQ4_NL_4_4", 0, 0}, [37] = {"IQ4_NL_4_8", 0, 0}, [38] = {"IQ4_NL_8_8", 0, 0},
    [39] = {"MXFP4", 32, 17},    [40] = {"NVFP4", 64, 36},    [41] = {"Q1_0", 128, 18},
};

const struct ply_type_traits *
ply_type_find(uint32_t type)
{
    for (size_t i = 0; i < PLY_COUNT(supported); i++) {
        if ((uint32_t)supported[i].type == type)
            return &supported[i];
    }
    return NULL;
}

const char *
ply_type_name(uint32_t type)
{
    return type < PLY_COUNT(all_types) ? all_types[type].name : NULL;
}

bool
ply_type_geometry(uint32_t type, unsigned *block, unsigned *block_bytes)
{
    if (type >= PLY_COUNT(all_types) || all_types[type].block == 0)
        return false;
    *block = all_types[type].block;
    *block_bytes = all_types[type].block_bytes;
    return true;
}

bool
ply_type_row_bytes(const struct ply_type_traits *t, uint64_t n, uint64_t *bytes)
{
    return n % t->block == 0 && ply_mul_u64(n / t->block, t->block_bytes, bytes);
}
