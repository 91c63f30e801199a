/* SPDX-License-Identifier: MIT
 * Attention of a batch over its KV blocks: one way for prefill, single steps and mixed batches.
 *
 * Work is listed by block: a block that several sequences hold is read once for the queries of
 * all of them. Each (query, chunk) pair is computed on its own, then a query's chunks are merged
 * in ascending order, so that neither threads nor companions change a bit. Partial results live
 * in a fixed area; when it cannot hold all chunks, they are taken in waves of ascending chunks. */
#ifndef PLY_ATTN_H
#define PLY_ATTN_H

#include <stdint.h>

#include "engine/base/err.h"
#include "engine/kern.h"
#include "engine/kv.h"
#include "engine/pool.h"

/* Rows of one sequence in a batch: row0.. hold positions pos0.. */
struct ply_attn_rows {
    uint32_t row0, n, pos0;
};

/* The blocks of one sequence, through the last row of the batch. */
struct ply_attn_seq {
    struct ply_block *const *blocks;
    uint32_t n_blocks;
};

struct ply_attn_opts {
    const struct ply_kernels *kern;
    const struct ply_kv_layout *kv;
    struct ply_pool *pool;
    uint32_t n_head;
    uint32_t n_ctx;  /* positions a sequence may have */
    uint32_t n_rows; /* rows a batch may have */
};

struct ply_attn;

int ply_attn_new(struct ply_attn **out, const struct ply_attn_opts *o, struct ply_err *err);
void ply_attn_free(struct ply_attn **a);
/* Bytes that new will take. */
uint64_t ply_attn_bytes(const struct ply_attn_opts *o);

/* List the work of a batch; on one thread, before run. seqs must live as long as the plan. */
void ply_attn_plan(struct ply_attn *a, const struct ply_attn_seq *seqs, uint32_t n_seqs);
/* Inside the pool's function, all threads: out[row][n_head * d] for the rows of every sequence of
 * the plan (n may be 0 for some), from scaled queries q of the same shape. A query sees keys
 * pos - window + 1 .. pos, or 0 .. pos when window is 0. The rows' own keys must be stored, with
 * a barrier since. out is complete after the caller's next barrier. */
void ply_attn_run(struct ply_attn *a, uint32_t layer, uint32_t window,
                  const struct ply_attn_rows *rows, uint32_t n_rows, const float *q, float *out,
                  int ith, int nth);

#endif
