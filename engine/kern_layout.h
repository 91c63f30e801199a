/* SPDX-License-Identifier: MIT
 * How a packed panel is laid out: 16 weight rows interleaved. matmul.c writes panels, the
 * kern_mm sources read them. A panel is a sequence of spans, one for each block of the type
 * (32 or 256 columns), and is padded to a multiple of 64 bytes; rows past the matrix are zeros.
 *
 *   32-column types      codes, 16 scales f16 [, 16 minima f16]
 *   256-column types     16 scales f16 [, 16 minima f16], then 8 times: codes, 32 bytes of
 *                        sub-scales: Q4_K, Q5_K 16 scales then 16 minima (the 6-bit numbers);
 *                        Q6_K 16 scales of the first half, 16 of the second (signed)
 *
 * The codes of 32 columns: columns go in groups of four, group j = columns 4j..4j+3, and the four
 * bytes of a row's group lie together, so that 64 bytes hold one group of all 16 rows:
 *
 *   4 bits   4 x 64 bytes: low nibbles are group j, high nibbles group j + 4       256 bytes
 *   5 bits   the same, then 64 bytes whose bit j is the fifth bit of group j       320
 *   6 bits   the same, then 2 x 64 bytes: bits 2j, 2j + 1 of the first plane are
 *            the upper bits of group j, of the second of group j + 4               384
 *   8 bits   8 x 64 bytes, code + 128                                              512
 *
 * All codes are unsigned; ply_mm_layout.offset is what the format subtracts from them. */
#ifndef PLY_KERN_LAYOUT_H
#define PLY_KERN_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ply_mm_slot {
    PLY_MM_Q4_0,
    PLY_MM_Q4_1,
    PLY_MM_Q5_0,
    PLY_MM_Q5_1,
    PLY_MM_Q8_0,
    PLY_MM_Q4_K,
    PLY_MM_Q5_K,
    PLY_MM_Q6_K,
};

struct ply_mm_layout {
    unsigned bits;
    int offset; /* subtracted from every code */
    bool super; /* 256 columns with sub-scales */
    bool min;   /* has minima */
};

/* A constant slot folds to constants. */
static inline struct ply_mm_layout
ply_mm_layout(enum ply_mm_slot s)
{
    switch (s) {
    case PLY_MM_Q4_0: return (struct ply_mm_layout){4, 8, false, false};
    case PLY_MM_Q4_1: return (struct ply_mm_layout){4, 0, false, true};
    case PLY_MM_Q5_0: return (struct ply_mm_layout){5, 16, false, false};
    case PLY_MM_Q5_1: return (struct ply_mm_layout){5, 0, false, true};
    case PLY_MM_Q8_0: return (struct ply_mm_layout){8, 128, false, false};
    case PLY_MM_Q4_K: return (struct ply_mm_layout){4, 0, true, true};
    case PLY_MM_Q5_K: return (struct ply_mm_layout){5, 0, true, true};
    case PLY_MM_Q6_K: return (struct ply_mm_layout){6, 32, true, false};
    }
    return (struct ply_mm_layout){0};
}

static inline unsigned
ply_mm_code_bytes(struct ply_mm_layout l)
{
    return 64u * l.bits;
}

/* f16 scales and minima together. */
static inline unsigned
ply_mm_scale_bytes(struct ply_mm_layout l)
{
    return l.min ? 64u : 32u;
}

/* Codes of 32 columns and what follows them before the next codes of the span. */
static inline unsigned
ply_mm_block_bytes(struct ply_mm_layout l)
{
    return ply_mm_code_bytes(l) + (l.super ? 32u : ply_mm_scale_bytes(l));
}

static inline unsigned
ply_mm_span_bytes(struct ply_mm_layout l)
{
    return l.super ? ply_mm_scale_bytes(l) + 8 * ply_mm_block_bytes(l) : ply_mm_block_bytes(l);
}

/* Offsets in a panel, of the b-th 32 columns. Minima follow their scales, sub-scales the codes. */
static inline size_t
ply_mm_codes_at(struct ply_mm_layout l, uint32_t b)
{
    if (!l.super)
        return (size_t)b * ply_mm_span_bytes(l);
    return (size_t)(b / 8) * ply_mm_span_bytes(l) + ply_mm_scale_bytes(l) +
           b % 8 * ply_mm_block_bytes(l);
}

static inline size_t
ply_mm_scales_at(struct ply_mm_layout l, uint32_t b)
{
    if (!l.super)
        return (size_t)b * ply_mm_span_bytes(l) + ply_mm_code_bytes(l);
    return (size_t)(b / 8) * ply_mm_span_bytes(l);
}

static inline uint64_t
ply_mm_panel_bytes(struct ply_mm_layout l, uint32_t n_in)
{
    uint64_t bytes = (uint64_t)(n_in / (l.super ? 256 : 32)) * ply_mm_span_bytes(l);
    return (bytes + 63) & ~(uint64_t)63;
}

/* kern_pack.c. Write one row of a file (n_in columns at src) to row r of a panel. */
void ply_pack_row(enum ply_mm_slot slot, const uint8_t *src, uint32_t n_in, uint8_t *panel,
                  unsigned r);
/* Rebuild the i-th block of row r as the file had it; returns its bytes (at most 210). */
unsigned ply_unpack_block(enum ply_mm_slot slot, const uint8_t *panel, unsigned r, uint32_t i,
                          uint8_t *dst);

#endif
