/* SPDX-License-Identifier: MIT
 * The forward pass: a batch of rows, each an id at a position of a sequence, to logits where
 * they are wanted. One path for prefill, single steps and mixed batches. All threads run the
 * same function and meet at barriers; nothing is allocated after new. */
#ifndef PLY_FORWARD_H
#define PLY_FORWARD_H

#include <stdatomic.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/kern.h"
#include "engine/kv.h"
#include "engine/model.h"
#include "engine/pool.h"
#include "engine/weights.h"

struct ply_forward_opts {
    const struct ply_model *model;
    const struct ply_weights *weights; /* not needed for ply_forward_bytes */
    const struct ply_kernels *kern;
    const struct ply_kv_layout *kv;
    struct ply_pool *pool;
    uint32_t n_ctx;
};

/* One sequence's rows: ids[i] at position pos0 + i. blocks reach through the last row; those
 * that hold rows of the batch belong to this sequence alone. */
struct ply_forward_item {
    const int32_t *ids;
    uint32_t n, pos0, n_want;
    struct ply_block *const *blocks;
    float *logits; /* [n_want][n_vocab], for the last n_want rows */
};

/* Looked at and called by the caller's thread twice a layer. */
struct ply_forward_hooks {
    const atomic_bool *cancel;
    void (*tick)(void *user, uint32_t layer, uint32_t n_layer); /* may be NULL */
    void *user;
};

struct ply_forward;

int ply_forward_new(struct ply_forward **out, const struct ply_forward_opts *o,
                    struct ply_err *err);
void ply_forward_free(struct ply_forward **f);
/* Bytes that new will take, but for panels that OpenBLAS works on (some MiB at most). */
uint64_t ply_forward_bytes(const struct ply_forward_opts *o);

/* Compute a batch of 1..PLY_EVAL_TOKS_MAX rows in all. Keys and values are written to the
 * blocks. PLY_ECANCELLED, or PLY_ENUMERIC when a wanted logit is not finite; the logits and the
 * written rows are then worthless, everything else is as before. */
int ply_forward_run(struct ply_forward *f, const struct ply_forward_item *items, uint32_t n_items,
                    const struct ply_forward_hooks *hooks, struct ply_err *err);

#endif
