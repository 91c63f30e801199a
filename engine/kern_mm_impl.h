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
    bool fine; /* of A8: lo counts too */
};

KERN_INLINE struct act
act_at(const struct ply_acts *a, size_t block)
{
    return (struct act){a->q + 32 * block, a->lo + 32 * block, a->sum16 + 2 * block, a->d[block],
                        a->fine && a->fine[block]};
}

/* Whether any of n vectors has the block fine. */
KERN_INLINE bool
any_fine(const struct ply_acts *a, size_t at, size_t stride, uint32_t n)
{
    unsigned any = 0;
    for (uint32_t t = 0; t < n; t++)
        any |= a->fine[at + t * stride];
    return any;
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
slab_tiles(struct ply_mm_layout l, bool a12, uint32_t tile, const struct block *w,
           uint32_t n_blocks, const struct ply_acts *a, size_t at, uint32_t t, uint32_t n,
           float (*acc)[KERN_LANES])
{
    const size_t stride = a->n / 32;
    for (; t + tile <= n; t += tile) {
        for (uint32_t b = 0; b < n_blocks; b++)
            tile_block(l, a12, w + b, a, at + t * stride + b, stride, tile, acc + t);
    }
    return t;
}

typedef void (*unpack_fn)(const uint8_t *panel, uint32_t b, struct block *w);
typedef uint32_t (*tiles_fn)(const struct block *w, uint32_t n_blocks, const struct ply_acts *a,
                             size_t at, uint32_t t, uint32_t n, float (*acc)[KERN_LANES]);

/* What a type and a width of activations bring to the loops below. They are functions of their
 * own, not inlined into one, because compilers need far more than twice the time for twice the
 * function. */
struct mm_type {
    enum ply_mm_slot slot;
    unpack_fn unpack;
    tiles_fn whole, half, one; /* tiles of MM_TILE vectors, of half that, of one */
};

static void
panel_times(const struct mm_type *type, const uint8_t *panel, const struct ply_acts *a, uint32_t t0,
            uint32_t n, float (*acc)[KERN_LANES])
{
    struct block slab[SLAB];
    const uint32_t blocks = a->n / 32;
    memset(acc, 0, n * sizeof(*acc));
    for (uint32_t b = 0; b < blocks; b += SLAB) {
        const uint32_t n_blocks = blocks - b < SLAB ? blocks - b : SLAB;
        const size_t at = (size_t)t0 * blocks + b;
        for (uint32_t i = 0; i < n_blocks; i++)
            type->unpack(panel, b + i, slab + i);
        uint32_t t = type->whole(slab, n_blocks, a, at, 0, n, acc);
        t = type->half(slab, n_blocks, a, at, t, n, acc);
        type->one(slab, n_blocks, a, at, t, n, acc);
    }
}

static void
mm(const struct mm_type *type, KERN_MM_ARGS)
{
    const uint64_t bytes = ply_mm_panel_bytes(ply_mm_layout(type->slot), n_in);
    for (uint32_t p = p0; p < p1; p++) {
        const uint32_t row = p * PLY_PANEL;
        const uint32_t rows = n_out - row < PLY_PANEL ? n_out - row : PLY_PANEL;
        for (uint32_t t0 = 0; t0 < m; t0 += TOKENS) {
            float acc[TOKENS][KERN_LANES] __attribute__((aligned(64)));
            const uint32_t n = m - t0 < TOKENS ? m - t0 : TOKENS;
            panel_times(type, packed + p * bytes, a, t0, n, acc);
            for (uint32_t t = 0; t < n; t++)
                memcpy(out + (t0 + t) * ld + row, acc[t], rows * sizeof(float));
        }
    }
}

#define MM_TILES(name, slot, a12, div)                                                          \
    static uint32_t name(const struct block *w, uint32_t n_blocks, const struct ply_acts *a,    \
                         size_t at, uint32_t t, uint32_t n, float(*acc)[KERN_LANES])            \
    {                                                                                           \
        const struct ply_mm_layout l = ply_mm_layout(slot);                                     \
        const uint32_t whole = MM_TILE(l, a12);                                                 \
        return slab_tiles(l, a12, whole > (div) ? whole / (div) : 1u, w, n_blocks, a, at, t, n, \
                          acc);                                                                 \
    }

#define MM_PRODUCT(act, a12, type)                                                           \
    MM_TILES(whole_##act##_##type, PLY_MM_##type, a12, 1)                                    \
    MM_TILES(half_##act##_##type, PLY_MM_##type, a12, 2)                                     \
    MM_TILES(one_##act##_##type, PLY_MM_##type, a12, 64)                                     \
    void KERN(mm_##act##_##type)(KERN_MM_ARGS)                                               \
    {                                                                                        \
        static const struct mm_type t = {PLY_MM_##type, unpack_##type, whole_##act##_##type, \
                                         half_##act##_##type, one_##act##_##type};           \
        mm(&t, packed, n_in, n_out, p0, p1, a, m, out, ld);                                  \
    }

#define MM_DEFINE(type)                                                          \
    static void unpack_##type(const uint8_t *panel, uint32_t b, struct block *w) \
    {                                                                            \
        unpack_block(panel, ply_mm_layout(PLY_MM_##type), b, w);                 \
    }                                                                            \
    MM_PRODUCT(a8, false, type)                                                  \
    MM_PRODUCT(a12, true, type)

#endif
