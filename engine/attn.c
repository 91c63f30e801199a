/* SPDX-License-Identifier: MIT
 * Words: a *level* is the index of a chunk in its sequence, position / 64. An *entry* is a block
 * at its level with the sequences of the batch that hold it. A *slot* holds one query's partial
 * result for one level of the current wave. */
#include "engine/attn.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/num.h"
#include "engine/mem.h"

#define TILE 48u              /* queries given to a kernel at once */
#define PART_BYTES (8u << 20) /* of partial results, if that holds one level at least */
#define NONE UINT32_MAX

struct entry {
    const struct ply_block *block;
    uint32_t level, first, last; /* of its users */
};

struct user {
    uint32_t seq, next;
};

struct ply_attn {
    struct ply_attn_opts o;
    uint32_t group, n_slots;
    const struct ply_attn_seq *seqs;
    uint32_t n_seqs, n_entries, n_levels;
    struct entry *entries;  /* [seqs a batch may have * levels], by level */
    struct user *users;     /* the same number */
    uint32_t *level_first;  /* [levels + 1] first entry of a level */
    float *part_o;          /* [slot][d] */
    float *part_m, *part_l; /* [slot] */
    float *m, *l;           /* [row][head] state between waves; its o is the caller's out */
    float *scratch;         /* [thread][scratch_floats] */
    size_t scratch_floats;
    uint8_t *mem;
    uint64_t mem_bytes;
};

static uint32_t
max_levels(const struct ply_attn_opts *o)
{
    return (uint32_t)ply_kv_blocks(o->n_ctx);
}

static uint64_t
attn_carve(struct ply_attn *a, uint8_t *base)
{
    const struct ply_attn_opts *o = &a->o;
    const uint64_t queries = (uint64_t)o->n_rows * o->n_head;
    const uint64_t uses = (uint64_t)o->n_rows * max_levels(o);
    const uint64_t want = PART_BYTES / (o->kv->d * sizeof(float));
    struct ply_carve c = {base, 0};

    a->n_slots = (uint32_t)PLY_MAX(queries, want);
    a->scratch_floats = (ply_attn_scratch_floats(o->kv->d) + 15) & ~(size_t)15;
    a->part_o = ply_carve(&c, (uint64_t)a->n_slots * o->kv->d, sizeof(float));
    a->part_m = ply_carve(&c, a->n_slots, sizeof(float));
    a->part_l = ply_carve(&c, a->n_slots, sizeof(float));
    a->m = ply_carve(&c, queries, sizeof(float));
    a->l = ply_carve(&c, queries, sizeof(float));
    a->scratch = ply_carve(&c, a->scratch_floats * (uint64_t)ply_pool_size(o->pool), sizeof(float));
    a->level_first = ply_carve(&c, max_levels(o) + 1u, sizeof(uint32_t));
    a->entries = ply_carve(&c, uses, sizeof(struct entry));
    a->users = ply_carve(&c, uses, sizeof(struct user));
    return c.at;
}

uint64_t
ply_attn_bytes(const struct ply_attn_opts *o)
{
    struct ply_attn a = {.o = *o};
    return attn_carve(&a, NULL);
}

int
ply_attn_new(struct ply_attn **out, const struct ply_attn_opts *o, struct ply_err *err)
{
    *out = NULL;
    struct ply_attn *a = calloc(1, sizeof(*a));
    if (!a)
        return ply_fail(err, PLY_ENOMEM, "out of memory for attention");
    a->o = *o;
    a->group = o->n_head / o->kv->n_head_kv;
    a->mem_bytes = ply_attn_bytes(o);
    a->mem = ply_mem_map(a->mem_bytes);
    if (!a->mem) {
        ply_attn_free(&a);
        return ply_fail(err, PLY_ENOMEM, "out of memory for attention");
    }
    attn_carve(a, a->mem);
    *out = a;
    return PLY_OK;
}

void
ply_attn_free(struct ply_attn **a)
{
    if (!*a)
        return;
    ply_mem_unmap((*a)->mem, (*a)->mem_bytes);
    free(*a);
    *a = NULL;
}

/* The entry of b among those of its level, made if b was not seen yet. b->mark proposes one; it
 * is believed only if that entry is b's, so marks need no clearing. */
static struct entry *
entry_of(struct ply_attn *a, struct ply_block *b, uint32_t level)
{
    if (b->mark < a->n_entries && a->entries[b->mark].block == b)
        return &a->entries[b->mark];
    b->mark = a->n_entries;
    struct entry *e = &a->entries[a->n_entries++];
    *e = (struct entry){.block = b, .level = level, .first = NONE, .last = NONE};
    return e;
}

void
ply_attn_plan(struct ply_attn *a, const struct ply_attn_seq *seqs, uint32_t n_seqs)
{
    uint32_t n_users = 0;
    a->seqs = seqs;
    a->n_seqs = n_seqs;
    a->n_entries = 0;
    a->n_levels = 0;
    for (uint32_t s = 0; s < n_seqs; s++)
        a->n_levels = PLY_MAX(a->n_levels, seqs[s].n_blocks);
    for (uint32_t level = 0; level < a->n_levels; level++) {
        a->level_first[level] = a->n_entries;
        for (uint32_t s = 0; s < n_seqs; s++) {
            if (level >= seqs[s].n_blocks)
                continue;
            struct entry *e = entry_of(a, seqs[s].blocks[level], level);
            a->users[n_users] = (struct user){.seq = s, .next = NONE};
            if (e->first == NONE)
                e->first = n_users;
            else
                a->users[e->last].next = n_users;
            e->last = n_users++;
        }
    }
    a->level_first[a->n_levels] = a->n_entries;
}

/* One layer's run, the same on all threads. */
struct run {
    struct ply_attn *a;
    uint32_t layer, window, n_rows, wave0, wave1;
    const struct ply_attn_rows *rows;
    const float *q;
    float *out;
};

/* The first position that the query at pos sees. */
static uint32_t
first_seen(const struct run *r, uint32_t pos)
{
    return r->window && pos + 1 > r->window ? pos + 1 - r->window : 0;
}

/* Rows [*begin, *end) of a sequence that see any key of a level. */
static void
rows_seeing(const struct run *r, const struct ply_attn_rows *rows, uint32_t level, uint32_t *begin,
            uint32_t *end)
{
    const uint64_t first_key = (uint64_t)level * PLY_CHUNK, past_key = first_key + PLY_CHUNK;
    *begin = first_key > rows->pos0 ? (uint32_t)PLY_MIN(first_key - rows->pos0, rows->n) : 0;
    *end = rows->n;
    if (r->window) {
        /* pos - window + 1 < past_key */
        const uint64_t past_pos = past_key + r->window - 1;
        const uint64_t n = past_pos > rows->pos0 ? past_pos - rows->pos0 : 0;
        *end = (uint32_t)PLY_MIN(*end, n);
    }
    *end = PLY_MAX(*begin, *end);
}

static size_t
slot_of(const struct run *r, uint32_t level, uint32_t row, uint32_t head)
{
    return ((size_t)(level - r->wave0) * r->n_rows + row) * r->a->o.n_head + head;
}

/* Query `head` of the i-th row of a sequence against a level. */
static struct ply_attn_query
query(const struct run *r, const struct ply_attn_rows *rows, uint32_t i, uint32_t level,
      uint32_t head)
{
    struct ply_attn *a = r->a;
    const uint32_t d = a->o.kv->d, base = level * PLY_CHUNK;
    const uint32_t pos = rows->pos0 + i, row = rows->row0 + i, seen = first_seen(r, pos);
    const size_t slot = slot_of(r, level, row, head);
    return (struct ply_attn_query){
        .q = r->q + ((size_t)row * a->o.n_head + head) * d,
        .m = &a->part_m[slot],
        .l = &a->part_l[slot],
        .o = &a->part_o[slot * d],
        .lo = seen > base ? seen - base : 0,
        .hi = PLY_MIN(pos + 1 - base, PLY_CHUNK),
    };
}

/* Queries skip.. of an entry's for one kv head, at most TILE; they come by sequence, row and
 * head of the group. */
static uint32_t
fill_tile(const struct run *r, const struct entry *e, uint32_t kv_head, uint64_t skip,
          struct ply_attn_query *tile)
{
    const struct ply_attn *a = r->a;
    uint32_t n = 0;
    for (uint32_t u = e->first; u != NONE && n < TILE; u = a->users[u].next) {
        const struct ply_attn_rows *rows = &r->rows[a->users[u].seq];
        uint32_t begin, end;
        rows_seeing(r, rows, e->level, &begin, &end);
        const uint64_t mine = (uint64_t)(end - begin) * a->group;
        for (; skip < mine && n < TILE; skip++)
            tile[n++] = query(r, rows, begin + (uint32_t)(skip / a->group), e->level,
                              kv_head * a->group + (uint32_t)(skip % a->group));
        skip -= PLY_MIN(skip, mine);
    }
    return n;
}

static uint64_t
entry_queries(const struct run *r, const struct entry *e)
{
    uint64_t n = 0;
    for (uint32_t u = e->first; u != NONE; u = r->a->users[u].next) {
        uint32_t begin, end;
        rows_seeing(r, &r->rows[r->a->users[u].seq], e->level, &begin, &end);
        n += (uint64_t)(end - begin) * r->a->group;
    }
    return n;
}

/* This thread's tiles of the wave: every nth of them. */
static void
compute(const struct run *r, int ith, int nth)
{
    const struct ply_attn *a = r->a;
    const struct ply_kv_layout *kv = a->o.kv;
    float *scratch = a->scratch + (size_t)ith * a->scratch_floats;
    struct ply_attn_query tile[TILE];
    uint64_t unit = 0;
    for (uint32_t i = a->level_first[r->wave0]; i < a->level_first[r->wave1]; i++) {
        const struct entry *e = &a->entries[i];
        const uint64_t n_queries = entry_queries(r, e);
        for (uint32_t h = 0; h < kv->n_head_kv; h++) {
            for (uint64_t done = 0; done < n_queries; done += TILE) {
                if (unit++ % (unsigned)nth != (unsigned)ith)
                    continue;
                const uint32_t n = fill_tile(r, e, h, done, tile);
                a->o.kern->attn_chunk[kv->type](ply_block_k(kv, e->block, r->layer, h),
                                                ply_block_v(kv, e->block, r->layer, h), kv->d, tile,
                                                n, scratch);
            }
        }
    }
}

/* Carry one query's levels of this wave into its state, in ascending order; the first level that
 * it sees is taken as it is, the last finishes it. */
static void
merge_query(const struct run *r, uint32_t row, uint32_t head, uint32_t pos)
{
    struct ply_attn *a = r->a;
    const struct ply_kernels *k = a->o.kern;
    const uint32_t d = a->o.kv->d, q = row * a->o.n_head + head;
    const uint32_t first = first_seen(r, pos) / PLY_CHUNK, last = pos / PLY_CHUNK;
    float *o = r->out + (size_t)q * d;
    for (uint32_t c = PLY_MAX(first, r->wave0); c <= last && c < r->wave1; c++) {
        const size_t slot = slot_of(r, c, row, head);
        if (c == first) {
            a->m[q] = a->part_m[slot];
            a->l[q] = a->part_l[slot];
            memcpy(o, &a->part_o[slot * d], d * sizeof(*o));
        } else {
            k->attn_merge(&a->m[q], &a->l[q], o, a->part_m[slot], a->part_l[slot],
                          &a->part_o[slot * d], d);
        }
        if (c == last)
            k->attn_finish(o, o, a->l[q], d);
    }
}

/* This thread's share of the queries, in one piece. */
static void
merge(const struct run *r, int ith, int nth)
{
    const struct ply_attn *a = r->a;
    const uint32_t n_head = a->o.n_head;
    const uint64_t total = (uint64_t)r->n_rows * n_head;
    const uint64_t q0 = total * (unsigned)ith / (unsigned)nth;
    const uint64_t q1 = total * ((unsigned)ith + 1) / (unsigned)nth;
    for (uint32_t s = 0; s < a->n_seqs; s++) {
        const struct ply_attn_rows *rows = &r->rows[s];
        const uint64_t begin = PLY_MAX(q0, (uint64_t)rows->row0 * n_head);
        const uint64_t end = PLY_MIN(q1, (uint64_t)(rows->row0 + rows->n) * n_head);
        for (uint64_t q = begin; q < end; q++) {
            const uint32_t row = (uint32_t)(q / n_head);
            merge_query(r, row, (uint32_t)(q % n_head), rows->pos0 + row - rows->row0);
        }
    }
}

void
ply_attn_run(struct ply_attn *a, uint32_t layer, uint32_t window, const struct ply_attn_rows *rows,
             uint32_t n_rows, const float *q, float *out, int ith, int nth)
{
    struct run r = {.a = a,
                    .layer = layer,
                    .window = window,
                    .n_rows = n_rows,
                    .rows = rows,
                    .q = q,
                    .out = out};
    uint32_t begin = NONE, end = 0; /* levels that any row sees */
    for (uint32_t s = 0; s < a->n_seqs; s++) {
        if (rows[s].n == 0)
            continue;
        const uint32_t first = first_seen(&r, rows[s].pos0) / PLY_CHUNK;
        const uint32_t last = (rows[s].pos0 + rows[s].n - 1) / PLY_CHUNK;
        begin = PLY_MIN(begin, first);
        end = PLY_MAX(end, last + 1);
    }
    const uint32_t per_wave = n_rows ? a->n_slots / (n_rows * a->o.n_head) : 1;
    for (uint32_t w = begin; w < end; w = r.wave1) {
        r.wave0 = w;
        r.wave1 = end - w > per_wave ? w + per_wave : end;
        compute(&r, ith, nth);
        ply_pool_barrier(a->o.pool);
        merge(&r, ith, nth);
        if (r.wave1 < end)
            ply_pool_barrier(a->o.pool);
    }
}
