/* SPDX-License-Identifier: MIT
 * Rows of a GGUF file into panels and back (kern_layout.h). Packing moves bits and loses none,
 * so a block can be rebuilt as the file had it; its values are then quant.c's business. Block
 * formats: ggml-common.h's block_q4_0 to block_q6_K. */
#include <string.h>

#include "engine/kern.h"
#include "engine/kern_layout.h"

/* Offsets in a file's block. */
struct format {
    unsigned bytes;
    unsigned d, m;      /* f16 scale and minimum */
    unsigned sub;       /* packed sub-scales */
    unsigned low, high; /* low nibbles (or whole bytes), upper bits */
};

static struct format
format_of(enum ply_mm_slot s)
{
    switch (s) {
    case PLY_MM_Q4_0: return (struct format){18, 0, 0, 0, 2, 0};
    case PLY_MM_Q4_1: return (struct format){20, 0, 2, 0, 4, 0};
    case PLY_MM_Q5_0: return (struct format){22, 0, 0, 0, 6, 2};
    case PLY_MM_Q5_1: return (struct format){24, 0, 2, 0, 8, 4};
    case PLY_MM_Q8_0: return (struct format){34, 0, 0, 0, 2, 0};
    case PLY_MM_Q4_K: return (struct format){144, 0, 2, 4, 16, 0};
    case PLY_MM_Q5_K: return (struct format){176, 0, 2, 4, 48, 16};
    case PLY_MM_Q6_K: return (struct format){210, 208, 0, 192, 0, 128};
    }
    return (struct format){0};
}

/* Where code i of the s-th 32 of a block keeps its low nibble and its upper bits. */
struct place {
    unsigned low, low_shift, high, high_shift;
};

static inline struct place
place_of(enum ply_mm_slot slot, unsigned s, unsigned i)
{
    switch (slot) {
    case PLY_MM_Q4_K:
    case PLY_MM_Q5_K: return (struct place){32 * (s / 2) + i, 4 * (s % 2), i, s};
    case PLY_MM_Q6_K:
        return (struct place){64 * (s / 4) + 32 * (s % 2) + i, 4 * (s % 4 / 2), 32 * (s / 4) + i,
                              2 * (s % 4)};
    default: return (struct place){i % 16, 4 * (i / 16), i / 8, i % 8};
    }
}

static inline void
read_codes(enum ply_mm_slot slot, unsigned bits, const uint8_t *block, unsigned s, uint8_t u[32])
{
    const struct format f = format_of(slot);
    for (unsigned i = 0; i < 32; i++) {
        struct place p = place_of(slot, s, i);
        if (bits == 8) {
            u[i] = block[f.low + i] ^ 0x80;
            continue;
        }
        unsigned c = block[f.low + p.low] >> p.low_shift & 15u;
        if (bits > 4)
            c |= (block[f.high + p.high] >> p.high_shift & ((1u << (bits - 4)) - 1)) << 4;
        u[i] = (uint8_t)c;
    }
}

/* The inverse; the block's code bytes are zero before. */
static inline void
write_codes(enum ply_mm_slot slot, unsigned bits, const uint8_t u[32], unsigned s, uint8_t *block)
{
    const struct format f = format_of(slot);
    for (unsigned i = 0; i < 32; i++) {
        struct place p = place_of(slot, s, i);
        if (bits == 8) {
            block[f.low + i] = u[i] ^ 0x80;
            continue;
        }
        block[f.low + p.low] |= (uint8_t)((u[i] & 15u) << p.low_shift);
        if (bits > 4)
            block[f.high + p.high] |= (uint8_t)((u[i] >> 4) << p.high_shift);
    }
}

/* Codes of a row's 32 columns to their places among the codes of 16 rows. */
static inline void
put_codes(unsigned bits, const uint8_t u[32], uint8_t *codes, unsigned r)
{
    if (bits == 8) {
        for (unsigned j = 0; j < 8; j++)
            memcpy(codes + 64 * j + 4 * r, u + 4 * j, 4);
        return;
    }
    uint8_t low[16], high[8] = {0};
    for (unsigned i = 0; i < 16; i++)
        low[i] = (uint8_t)((u[i] & 15u) | u[16 + i] << 4);
    for (unsigned j = 0; j < 4; j++)
        memcpy(codes + 64 * j + 4 * r, low + 4 * j, 4);
    for (unsigned j = 0; j < 8 && bits > 4; j++) {
        unsigned plane = bits == 6 ? j / 4 : 0, shift = bits == 6 ? 2 * (j % 4) : j;
        for (unsigned i = 0; i < 4; i++)
            high[4 * plane + i] |= (uint8_t)((u[4 * j + i] >> 4) << shift);
    }
    for (unsigned plane = 0; plane + 4 < bits; plane++)
        memcpy(codes + 256 + 64 * plane + 4 * r, high + 4 * plane, 4);
}

static inline void
get_codes(unsigned bits, const uint8_t *codes, unsigned r, uint8_t u[32])
{
    for (unsigned i = 0; i < 32; i++) {
        unsigned j = i / 4, at = 4 * r + i % 4;
        if (bits == 8) {
            u[i] = codes[64 * j + at];
            continue;
        }
        unsigned c = codes[64 * (j % 4) + at] >> (4 * (j / 4)) & 15u;
        if (bits == 5)
            c |= (codes[256 + at] >> j & 1u) << 4;
        else if (bits == 6)
            c |= (codes[256 + 64 * (j / 4) + at] >> 2 * (j % 4) & 3u) << 4;
        u[i] = (uint8_t)c;
    }
}

/* Q4_K and Q5_K: 8 scales and 8 minima of six bits in 12 bytes. The low six bits of bytes 0-3
 * and 4-7 are the first four of each; the low nibbles and high nibbles of bytes 8-11 are the low
 * bits of the last four, whose upper two bits are on top of bytes 0-3 and 4-7. */
static void
read_six(const uint8_t p[12], unsigned s, uint8_t *sc, uint8_t *m)
{
    if (s < 4) {
        *sc = p[s] & 63;
        *m = p[s + 4] & 63;
    } else {
        *sc = (uint8_t)((p[s + 4] & 15) | (p[s - 4] >> 6) << 4);
        *m = (uint8_t)(p[s + 4] >> 4 | (p[s] >> 6) << 4);
    }
}

static void
write_six(uint8_t p[12], unsigned s, uint8_t sc, uint8_t m)
{
    if (s < 4) {
        p[s] |= sc;
        p[s + 4] |= m;
    } else {
        p[s + 4] |= (uint8_t)((sc & 15) | m << 4);
        p[s - 4] |= (uint8_t)(sc >> 4 << 6);
        p[s] |= (uint8_t)(m >> 4 << 6);
    }
}

static inline void
pack_block(enum ply_mm_slot slot, const uint8_t *block, uint8_t *panel, unsigned r, uint32_t i)
{
    const struct ply_mm_layout l = ply_mm_layout(slot);
    const struct format f = format_of(slot);
    const unsigned n = l.super ? 8 : 1;
    uint8_t *scales = panel + ply_mm_scales_at(l, i * n);
    memcpy(scales + 2 * r, block + f.d, 2);
    if (l.min)
        memcpy(scales + 32 + 2 * r, block + f.m, 2);
    for (unsigned s = 0; s < n; s++) {
        uint8_t *codes = panel + ply_mm_codes_at(l, i * n + s);
        uint8_t *sub = codes + ply_mm_code_bytes(l);
        uint8_t u[32];
        read_codes(slot, l.bits, block, s, u);
        put_codes(l.bits, u, codes, r);
        if (l.super && l.min) {
            read_six(block + f.sub, s, sub + r, sub + 16 + r);
        } else if (l.super) {
            sub[r] = block[f.sub + 2 * s];
            sub[16 + r] = block[f.sub + 2 * s + 1];
        }
    }
}

/* With the slot a constant the loops over codes become straight vector code. */
#define PACK_CASE(type)                                                      \
    case PLY_MM_##type:                                                      \
        for (uint32_t i = 0; i < n; i++)                                     \
            pack_block(PLY_MM_##type, src + (size_t)i * bytes, panel, r, i); \
        break;

void
ply_pack_row(enum ply_mm_slot slot, const uint8_t *src, uint32_t n_in, uint8_t *panel, unsigned r)
{
    const uint32_t n = n_in / (ply_mm_layout(slot).super ? 256 : 32);
    const unsigned bytes = format_of(slot).bytes;
    switch (slot) {
        PACK_CASE(Q4_0)
        PACK_CASE(Q4_1)
        PACK_CASE(Q5_0)
        PACK_CASE(Q5_1)
        PACK_CASE(Q8_0)
        PACK_CASE(Q4_K)
        PACK_CASE(Q5_K)
        PACK_CASE(Q6_K)
    }
}

unsigned
ply_unpack_block(enum ply_mm_slot slot, const uint8_t *panel, unsigned r, uint32_t i, uint8_t *dst)
{
    const struct ply_mm_layout l = ply_mm_layout(slot);
    const struct format f = format_of(slot);
    const unsigned n = l.super ? 8 : 1;
    const uint8_t *scales = panel + ply_mm_scales_at(l, i * n);
    memset(dst, 0, f.bytes);
    memcpy(dst + f.d, scales + 2 * r, 2);
    if (l.min)
        memcpy(dst + f.m, scales + 32 + 2 * r, 2);
    for (unsigned s = 0; s < n; s++) {
        const uint8_t *codes = panel + ply_mm_codes_at(l, i * n + s);
        const uint8_t *sub = codes + ply_mm_code_bytes(l);
        uint8_t u[32];
        get_codes(l.bits, codes, r, u);
        write_codes(slot, l.bits, u, s, dst);
        if (l.super && l.min) {
            write_six(dst + f.sub, s, sub[r], sub[16 + r]);
        } else if (l.super) {
            dst[f.sub + 2 * s] = sub[r];
            dst[f.sub + 2 * s + 1] = sub[16 + r];
        }
    }
    return f.bytes;
}
