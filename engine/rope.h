/* SPDX-License-Identifier: MIT
 * Cosines and sines of rotary positions, in double, rounded once to float, by blocks of 64
 * positions when first needed. The values are the same bits on every machine: libm is not asked,
 * because its results may differ in the last place between processors. */
#ifndef PLY_ROPE_H
#define PLY_ROPE_H

#include <stdint.h>

#include "engine/base/err.h"

#define PLY_ROPE_POS_MAX (1u << 20) /* angles are exact enough up to here */

struct ply_rope {
    uint32_t half; /* pairs: rope_dim / 2 */
    uint32_t n_pos;
    double *freq;  /* [half] radians a position */
    uint8_t *done; /* [blocks of 64 positions] */
    float *cs;     /* [n_pos][half][2] cosine, sine */
    uint64_t cs_bytes;
};

/* Pair i turns by pos / scale * base^(-2i / dim) / freqs[i]; freqs may be NULL.
 * n_pos <= PLY_ROPE_POS_MAX. On failure r is as after fini. */
int ply_rope_init(struct ply_rope *r, uint32_t n_pos, uint32_t dim, double base, double scale,
                  const float *freqs, struct ply_err *err);
void ply_rope_fini(struct ply_rope *r);
/* Bytes that init will take for the table. */
uint64_t ply_rope_bytes(uint32_t n_pos, uint32_t dim);
/* Make the table hold positions pos0..pos1-1. */
void ply_rope_need(struct ply_rope *r, uint32_t pos0, uint32_t pos1);
static inline const float *
ply_rope_at(const struct ply_rope *r, uint32_t pos)
{
    return r->cs + (uint64_t)pos * r->half * 2;
}

#endif
