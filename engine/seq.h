/* SPDX-License-Identifier: MIT
 * The inside of a sequence; ply.h has its contract. Rows of the KV blocks at or above n are
 * arbitrary and never read, which is what makes a failed evaluation harmless: n did not move. */
#ifndef PLY_SEQ_H
#define PLY_SEQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/kv.h"
#include "engine/ply.h"

struct ply_seq {
    struct ply_engine *e;
    int32_t *ids; /* [n_ctx], of which n count */
    size_t n;
    struct ply_block **blocks; /* [blocks of n_ctx], of which n_blocks are held */
    size_t n_blocks;           /* ply_kv_blocks(n) between calls */
    float *logits;             /* [n_vocab] */
    bool has_logits;           /* they belong to the last id */
    uint64_t eval;             /* the last batch that it stood in */
};

#endif
