/* SPDX-License-Identifier: MIT
 * KV blocks: the keys and values of 64 consecutive tokens in all layers, counted by reference
 * and taken from one pool with a budget.
 *
 * A block that is full is immutable while anyone shares it; whoever writes a row makes sure to
 * hold the only reference first (ply_kv_own). A sequence, a fork and, later, the prefix tree or
 * the writer to disk each hold references of their own, so that a block outlives any of them.
 * One thread at a time calls these functions; computing threads only read and write data.
 *
 * data: [n_layer][n_head_kv] areas of head_bytes, each the keys and then the values of one head,
 * as kern.h lays them out. */
#ifndef PLY_KV_H
#define PLY_KV_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/kern.h"
#include "engine/ply.h"

struct ply_kv_layout {
    enum ply_kern_kv type;
    uint32_t n_layer, n_head_kv, d;
    uint32_t k_bytes, head_bytes; /* keys of one head; keys and values of one head */
    uint64_t layer_bytes, block_bytes;
};

/* PLY_EUNSUPPORTED when the type cannot hold heads of that size. */
int ply_kv_layout_init(struct ply_kv_layout *l, enum ply_kv_type type, uint32_t n_layer,
                       uint32_t n_head_kv, uint32_t d, struct ply_err *err);
const char *ply_kv_type_name(enum ply_kern_kv type); /* "f16", "q8_0" */
/* Blocks that hold n tokens. */
static inline size_t
ply_kv_blocks(size_t n_toks)
{
    return (n_toks + PLY_BLOCK_TOKS - 1) / PLY_BLOCK_TOKS;
}

struct ply_block {
    uint32_t refs;
    uint32_t mark;          /* scratch of the attention plan (attn.c) */
    uint8_t *data;          /* [block_bytes], 64-byte aligned */
    struct ply_block *next; /* in the pool's list of unused blocks */
};

static inline uint8_t *
ply_block_k(const struct ply_kv_layout *l, const struct ply_block *b, uint32_t layer, uint32_t head)
{
    return b->data + layer * l->layer_bytes + (uint64_t)head * l->head_bytes;
}

static inline uint8_t *
ply_block_v(const struct ply_kv_layout *l, const struct ply_block *b, uint32_t layer, uint32_t head)
{
    return ply_block_k(l, b, layer, head) + l->k_bytes;
}

struct ply_kv;

/* A pool that grows block by block up to budget_bytes (at least one block). */
int ply_kv_new(struct ply_kv **out, const struct ply_kv_layout *l, uint64_t budget_bytes,
               struct ply_err *err);
/* Every reference must have been given back. */
void ply_kv_free(struct ply_kv **kv);
const struct ply_kv_layout *ply_kv_layout(const struct ply_kv *kv);
void ply_kv_stats(const struct ply_kv *kv, struct ply_kv_stats *out);

/* A block with one reference and arbitrary content. PLY_ENOMEM when the budget is used up or
 * the system refuses. */
int ply_kv_take(struct ply_kv *kv, struct ply_block **out, struct ply_err *err);
static inline struct ply_block *
ply_kv_ref(struct ply_block *b)
{
    b->refs++;
    return b;
}
void ply_kv_unref(struct ply_kv *kv, struct ply_block *b);
/* Make *b a block that the caller alone holds: itself, or a copy in exchange for the caller's
 * reference. On failure *b is as it was. */
int ply_kv_own(struct ply_kv *kv, struct ply_block **b, struct ply_err *err);

#endif
