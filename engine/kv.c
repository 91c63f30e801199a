/* SPDX-License-Identifier: MIT
 * Each block is a mapping of its own, its header in the first 64 bytes: growing needs no
 * other allocation, and untouched rows cost no memory. */
#include "engine/kv.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/num.h"
#include "engine/mem.h"

#define HEADER_BYTES 64u

_Static_assert(sizeof(struct ply_block) <= HEADER_BYTES, "a block's header fits before its data");
_Static_assert(PLY_CHUNK == PLY_BLOCK_TOKS, "an attention chunk is a KV block");

struct ply_kv {
    struct ply_kv_layout layout;
    size_t n_blocks, n_used, n_max;
    struct ply_block *unused;
};

const char *
ply_kv_type_name(enum ply_kern_kv type)
{
    return type == PLY_KERN_KV_Q8_0 ? "q8_0" : "f16";
}

int
ply_kv_layout_init(struct ply_kv_layout *l, enum ply_kv_type type, uint32_t n_layer,
                   uint32_t n_head_kv, uint32_t d, struct ply_err *err)
{
    uint64_t rows; /* bytes of a head's keys; its values take the same */
    *l = (struct ply_kv_layout){.n_layer = n_layer, .n_head_kv = n_head_kv, .d = d};
    if (type == PLY_KV_F16) {
        l->type = PLY_KERN_KV_F16;
        rows = (uint64_t)PLY_BLOCK_TOKS * d * sizeof(uint16_t);
    } else {
        if (d % 32 != 0)
            return ply_fail(err, PLY_EUNSUPPORTED,
                            "--kv-type q8_0 needs heads of a multiple of 32; this model's have %u: "
                            "use --kv-type f16",
                            d);
        l->type = PLY_KERN_KV_Q8_0;
        rows = (uint64_t)PLY_BLOCK_TOKS * (d + d / 32 * sizeof(uint16_t));
    }
    if (rows > UINT32_MAX / 2 || !ply_mul_u64(rows * 2, n_head_kv, &l->layer_bytes) ||
        !ply_mul_u64(l->layer_bytes, n_layer, &l->block_bytes))
        return ply_fail(err, PLY_EUNSUPPORTED, "a KV block of this model is too large");
    l->k_bytes = (uint32_t)rows;
    l->head_bytes = 2 * l->k_bytes;
    return PLY_OK;
}

int
ply_kv_new(struct ply_kv **out, const struct ply_kv_layout *l, uint64_t budget_bytes,
           struct ply_err *err)
{
    *out = NULL;
    struct ply_kv *kv = calloc(1, sizeof(*kv));
    if (!kv)
        return ply_fail(err, PLY_ENOMEM, "out of memory for the KV cache");
    kv->layout = *l;
    kv->n_max = PLY_MAX(budget_bytes / l->block_bytes, 1);
    *out = kv;
    return PLY_OK;
}

void
ply_kv_free(struct ply_kv **kv)
{
    if (!*kv)
        return;
    assert((*kv)->n_used == 0);
    for (struct ply_block *b = (*kv)->unused, *next; b; b = next) {
        next = b->next;
        ply_mem_unmap(b, HEADER_BYTES + (*kv)->layout.block_bytes);
    }
    free(*kv);
    *kv = NULL;
}

const struct ply_kv_layout *
ply_kv_layout(const struct ply_kv *kv)
{
    return &kv->layout;
}

void
ply_kv_stats(const struct ply_kv *kv, struct ply_kv_stats *out)
{
    *out = (struct ply_kv_stats){
        .bytes_used = kv->n_used * kv->layout.block_bytes,
        .bytes_budget = kv->n_max * kv->layout.block_bytes,
        .n_blocks_live = kv->n_used,
    };
}

int
ply_kv_take(struct ply_kv *kv, struct ply_block **out, struct ply_err *err)
{
    struct ply_block *b = kv->unused;
    if (b) {
        kv->unused = b->next;
    } else {
        const unsigned long long mib = kv->n_max * kv->layout.block_bytes >> 20;
        if (kv->n_blocks == kv->n_max)
            return ply_fail(err, PLY_ENOMEM, "the KV budget of %llu MiB (%zu tokens) is used up",
                            mib, kv->n_max * PLY_BLOCK_TOKS);
        b = ply_mem_map(HEADER_BYTES + kv->layout.block_bytes);
        if (!b)
            return ply_fail(err, PLY_ENOMEM,
                            "the system has no memory left for a KV block of %llu KiB",
                            (unsigned long long)(kv->layout.block_bytes >> 10));
        b->data = (uint8_t *)b + HEADER_BYTES;
        kv->n_blocks++;
    }
    kv->n_used++;
    b->refs = 1;
    b->next = NULL;
    *out = b;
    return PLY_OK;
}

void
ply_kv_unref(struct ply_kv *kv, struct ply_block *b)
{
    assert(b->refs > 0);
    if (--b->refs > 0)
        return;
    b->next = kv->unused;
    kv->unused = b;
    kv->n_used--;
}

int
ply_kv_own(struct ply_kv *kv, struct ply_block **b, struct ply_err *err)
{
    if ((*b)->refs == 1)
        return PLY_OK;
    struct ply_block *copy;
    const int rc = ply_kv_take(kv, &copy, err);
    if (rc != PLY_OK)
        return rc;
    memcpy(copy->data, (*b)->data, kv->layout.block_bytes);
    ply_kv_unref(kv, *b);
    *b = copy;
    return PLY_OK;
}
