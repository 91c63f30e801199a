/* SPDX-License-Identifier: MIT
 * Packed weight panels (kern_layout.h) times quantised activations: what the variants share.
 * A panel's sixteen rows are the lanes: nothing is ever summed across lanes, so every output
 * element has one accumulator that takes the blocks in ascending order, whatever the number of
 * vectors or threads.
 *
 * A panel is unpacked a slab of blocks at a time, then vectors pass over the slab in tiles. The
 * file that includes this one says how many vectors make a tile, MM_TILE(l, a12), before it, and
 * defines the functions declared here. */
#ifndef PLY_KERN_MM_IMPL_H
#define PLY_KERN_MM_IMPL_H

#include "engine/kern_impl.h"
#include "engine/kern_layout.h"

#define GROUPS 8u  /* of four columns in a block */
#define SLAB 20u   /* blocks: 640 columns, 14 KB of first-level cache */
#define TOKENS 64u /* vectors between two unpackings of a slab */

/* 32 columns of a panel, unpacked. */
struct block {
    uint8_t u[64 * GROUPS] __attribute__((aligned(64))); /* [group][row][4] codes */
    float d[KERN_LANES];
    float m[KERN_LANES]; /* minima, with the sign they are added with */
    uint8_t sub[32];     /* sub-scales as in the panel */
};

/* Where a vector's share of a block is. */
struct act {
    const int8_t *q, *lo;
    const int32_t *sum16;
    float d;
};

KERN_INLINE struct act
act_at(const struct ply_acts *a, size_t block)
{
    return (struct act){a->q + 32 * block, a->lo + 32 * block, a->sum16 + 2 * block, a->d[block]};
}

/* One block for n vectors, n a constant of at most MM_TILE: acc[t] takes vector t's, whose
 * block is number at + t * stride of a. */
KERN_INLINE void tile_block(struct ply_mm_layout l, bool a12, const struct block *w,
                            const struct ply_acts *a, size_t at, size_t stride, uint32_t n,
                            float (*acc)[KERN_LANES]);

/* Codes as a panel has them to codes of a byte each, block.u. */
KERN_INLINE void unpack_codes(const uint8_t *c, struct ply_mm_layout l, uint8_t *u);

KERN_INLINE void
unpack_block(const uint8_t *panel, struct ply_mm_layout l, uint32_t b, struct block *restrict w)
{
    const uint8_t *codes = panel + ply_mm_codes_at(l, b);
    const uint8_t *scales = panel + ply_mm_scales_at(l, b);
    unpack_codes(codes, l, w->u);
    f16_f32_lanes(scales, w->d);
    if (l.min)
        f16_f32_lanes(scales + 32, w->m);
    for (unsigned r = 0; l.min && l.super && r < KERN_LANES; r++)
        w->m[r] = -w->m[r];
    if (l.super)
        memcpy(w->sub, codes + ply_mm_code_bytes(l), sizeof(w->sub));
}

/* Vectors t.. over a slab in as many tiles of `tile` as go into n; returns where it stopped. */
KERN_INLINE uint32_t
slab_tiles(struct ply_mm_layout l, bool a12, const struct block *w, uint32_t n_blocks,
           const struct ply_acts *a, size_t at, uint32_t tile, uint32_t t, uint32_t n,
           float (*acc)[KERN_LANES])
{
    const size_t stride = a->n / 32;
    for (; t + tile <= n; t += tile) {
        for (uint32_t b = 0; b < n_blocks; b++)
            tile_block(l, a12, w + b, a, at + t * stride + b, stride, tile, acc + t);
    }
    return t;
}

KERN_INLINE void
slab_times(struct ply_mm_layout l, bool a12, const struct block *w, uint32_t n_blocks,
           const struct ply_acts *a, size_t at, uint32_t n, float (*acc)[KERN_LANES])
{
    const uint32_t tile = MM_TILE(l, a12);
    uint32_t t = slab_tiles(l, a12, w, n_blocks, a, at, tile, 0, n, acc);
    if (tile >= 8)
        t = slab_tiles(l, a12, w, n_blocks, a, at, 4, t, n, acc);
    if (tile >= 4)
        t = slab_tiles(l, a12, w, n_blocks, a, at, 2, t, n, acc);
    if (tile >= 2)
        slab_tiles(l, a12, w, n_blocks, a, at, 1, t, n, acc);
}

KERN_INLINE void
panel_times(const uint8_t *panel, struct ply_mm_layout l, bool a12, const struct ply_acts *a,
            uint32_t t0, uint32_t n, float (*acc)[KERN_LANES])
{
    struct block slab[SLAB];
    const uint32_t blocks = a->n / 32;
    memset(acc, 0, n * sizeof(*acc));
    for (uint32_t b = 0; b < blocks; b += SLAB) {
        const uint32_t n_blocks = blocks - b < SLAB ? blocks - b : SLAB;
        for (uint32_t i = 0; i < n_blocks; i++)
            unpack_block(panel, l, b + i, slab + i);
        slab_times(l, a12, slab, n_blocks, a, (size_t)t0 * blocks + b, n, acc);
    }
}

KERN_INLINE void
mm(enum ply_mm_slot slot, bool a12, KERN_MM_ARGS)
{
    const struct ply_mm_layout l = ply_mm_layout(slot);
    const uint64_t bytes = ply_mm_panel_bytes(l, n_in);
    for (uint32_t p = p0; p < p1; p++) {
        const uint32_t row = p * PLY_PANEL;
        const uint32_t rows = n_out - row < PLY_PANEL ? n_out - row : PLY_PANEL;
        for (uint32_t t0 = 0; t0 < m; t0 += TOKENS) {
            float acc[TOKENS][KERN_LANES] __attribute__((aligned(64)));
            const uint32_t n = m - t0 < TOKENS ? m - t0 : TOKENS;
            panel_times(packed + p * bytes, l, a12, a, t0, n, acc);
            for (uint32_t t = 0; t < n; t++)
                memcpy(out + (t0 + t) * ld + row, acc[t], rows * sizeof(float));
        }
    }
}

#define MM_DEFINE(type)                                                       \
    void KERN(mm_a8_##type)(KERN_MM_ARGS)                                     \
    {                                                                         \
        mm(PLY_MM_##type, false, packed, n_in, n_out, p0, p1, a, m, out, ld); \
    }                                                                         \
    void KERN(mm_a12_##type)(KERN_MM_ARGS)                                    \
    {                                                                         \
        mm(PLY_MM_##type, true, packed, n_in, n_out, p0, p1, a, m, out, ld);  \
    }

#endif
