/* SPDX-License-Identifier: MIT
 * A layer in phases, with a barrier after each:
 *
 *   rows    residual of the layer before; norm; quantise       a thread's own rows
 *   QKV     matrix products                                    a thread's own outputs
 *   heads   bias, norm, rotation, scale; store keys, values    a thread's own (row, head) pairs
 *   attn    chunks, then merge                                 attn.c
 *   rows    quantise
 *   O       matrix product
 *   rows    residual; norm; quantise
 *   FF      gate and up
 *   rows    activation; quantise
 *   down    matrix product; its residual belongs to the next rows phase
 *
 * After the last layer's keys and values are stored only the rows whose logits are wanted go on. */
#include "engine/forward.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/attn.h"
#include "engine/base/num.h"
#include "engine/matmul.h"
#include "engine/mem.h"
#include "engine/rope.h"

#define ROWS_MAX PLY_EVAL_TOKS_MAX
#define HEAD_GATHER 16u /* sequences with one wanted row each that share a pass over the head */
#define HEAD_ROWS 64u   /* wanted rows between two looks at the cancel flag */

struct row {
    int32_t id;
    uint32_t pos, item;
};

struct ply_forward {
    struct ply_forward_opts o;
    struct ply_attn *attn;
    struct ply_rope rope, rope_local; /* local: no table when no layer is local */
    uint32_t n_q, n_kv;               /* floats of a row's queries, keys */

    float *x, *h;     /* [row][n_embd] residual stream; what enters or leaves a matrix */
    float *q, *att;   /* [row][n_q] */
    float *k, *v;     /* [row][n_kv] */
    float *gate, *up; /* [row][n_ff] */
    struct ply_acts acts_embd, acts_att, acts_ff; /* quantised h, att, gate */
    float *logits;                                /* [HEAD_GATHER][n_vocab] */
    float *scratch;                               /* [thread][scratch_floats] for matmul */
    size_t scratch_floats;
    struct row *rows;                   /* [row] */
    struct ply_attn_seq *seqs;          /* [item] */
    struct ply_attn_rows *all, *wanted; /* [item] */
    uint8_t *mem;
    uint64_t mem_bytes;

    /* The batch that runs. */
    const struct ply_forward_item *items;
    const struct ply_forward_hooks *hooks;
    uint32_t n_items, n_rows, n_wanted;
    bool stop; /* written by thread 0 before a barrier, read after it */
    atomic_bool not_finite;
};

/* ---- memory ---- */

static void
carve_acts(struct ply_carve *c, struct ply_acts *a, uint32_t n)
{
    a->n = n;
    a->q = ply_carve(c, (uint64_t)ROWS_MAX * n, 1);
    a->lo = ply_carve(c, (uint64_t)ROWS_MAX * n, 1);
    a->fine = ply_carve(c, (uint64_t)ROWS_MAX * (n / 32 + 1), 1);
    a->d = ply_carve(c, (uint64_t)ROWS_MAX * (n / 32 + 1), sizeof(float));
    a->sum16 = ply_carve(c, (uint64_t)ROWS_MAX * (n / 16 + 1), sizeof(int32_t));
}

static uint64_t
forward_carve(struct ply_forward *f, uint8_t *base)
{
    const struct ply_hparams *hp = &f->o.model->hp;
    struct ply_carve c = {base, 0};
    f->n_q = hp->n_head * hp->d_head;
    f->n_kv = hp->n_head_kv * hp->d_head;
    f->x = ply_carve(&c, (uint64_t)ROWS_MAX * hp->n_embd, sizeof(float));
    f->h = ply_carve(&c, (uint64_t)ROWS_MAX * hp->n_embd, sizeof(float));
    f->q = ply_carve(&c, (uint64_t)ROWS_MAX * f->n_q, sizeof(float));
    f->att = ply_carve(&c, (uint64_t)ROWS_MAX * f->n_q, sizeof(float));
    f->k = ply_carve(&c, (uint64_t)ROWS_MAX * f->n_kv, sizeof(float));
    f->v = ply_carve(&c, (uint64_t)ROWS_MAX * f->n_kv, sizeof(float));
    f->gate = ply_carve(&c, (uint64_t)ROWS_MAX * hp->n_ff, sizeof(float));
    f->up = ply_carve(&c, (uint64_t)ROWS_MAX * hp->n_ff, sizeof(float));
    carve_acts(&c, &f->acts_embd, hp->n_embd);
    carve_acts(&c, &f->acts_att, f->n_q);
    carve_acts(&c, &f->acts_ff, hp->n_ff);
    f->logits = ply_carve(&c, (uint64_t)HEAD_GATHER * hp->n_vocab, sizeof(float));
    f->rows = ply_carve(&c, ROWS_MAX, sizeof(struct row));
    f->seqs = ply_carve(&c, ROWS_MAX, sizeof(struct ply_attn_seq));
    f->all = ply_carve(&c, ROWS_MAX, sizeof(struct ply_attn_rows));
    f->wanted = ply_carve(&c, ROWS_MAX, sizeof(struct ply_attn_rows));
    f->scratch =
        ply_carve(&c, f->scratch_floats * (uint64_t)ply_pool_size(f->o.pool), sizeof(float));
    return c.at;
}

static size_t
matmul_scratch(const struct ply_weights *w, uint32_t n_layer)
{
    size_t n = ply_matmul_scratch_floats(&w->head);
    for (uint32_t l = 0; l < n_layer; l++) {
        const struct ply_weights_layer *L = &w->layers[l];
        const struct ply_mat *mats[] = {&L->q, &L->k, &L->v, &L->o, &L->gate, &L->up, &L->down};
        for (size_t i = 0; i < PLY_COUNT(mats); i++)
            n = PLY_MAX(n, ply_matmul_scratch_floats(mats[i]));
    }
    return (n + 15) & ~(size_t)15;
}

static struct ply_attn_opts
attn_opts(const struct ply_forward_opts *o)
{
    return (struct ply_attn_opts){
        .kern = o->kern,
        .kv = o->kv,
        .pool = o->pool,
        .n_head = o->model->hp.n_head,
        .n_ctx = o->n_ctx,
        .n_rows = ROWS_MAX,
    };
}

static bool
has_local(const struct ply_model *m)
{
    for (uint32_t l = 0; l < m->hp.n_layer; l++)
        if (m->layers[l].local)
            return true;
    return false;
}

uint64_t
ply_forward_bytes(const struct ply_forward_opts *o)
{
    struct ply_forward f = {.o = *o};
    const struct ply_attn_opts ao = attn_opts(o);
    const uint64_t table = ply_rope_bytes(o->n_ctx, o->model->hp.rope_dim);
    return forward_carve(&f, NULL) + ply_attn_bytes(&ao) + table * (has_local(o->model) ? 2 : 1);
}

int
ply_forward_new(struct ply_forward **out, const struct ply_forward_opts *o, struct ply_err *err)
{
    const struct ply_hparams *hp = &o->model->hp;
    const struct ply_attn_opts ao = attn_opts(o);
    *out = NULL;
    struct ply_forward *f = calloc(1, sizeof(*f));
    if (!f)
        return ply_fail(err, PLY_ENOMEM, "out of memory for the forward pass");
    f->o = *o;
    f->scratch_floats = matmul_scratch(o->weights, hp->n_layer);
    f->mem_bytes = forward_carve(f, NULL);
    f->mem = ply_mem_map(f->mem_bytes);
    int rc = f->mem ? PLY_OK
                    : ply_fail(err, PLY_ENOMEM, "out of memory for %llu MiB of activations",
                               (unsigned long long)(f->mem_bytes >> 20));
    if (rc == PLY_OK) {
        forward_carve(f, f->mem);
        rc = ply_attn_new(&f->attn, &ao, err);
    }
    if (rc == PLY_OK)
        rc = ply_rope_init(&f->rope, o->n_ctx, hp->rope_dim, hp->rope_base, hp->rope_scale,
                           o->model->rope_freqs, err);
    if (rc == PLY_OK && has_local(o->model))
        rc = ply_rope_init(&f->rope_local, o->n_ctx, hp->rope_dim, hp->rope_base_local,
                           hp->rope_scale_local, o->model->rope_freqs, err);
    if (rc != PLY_OK)
        ply_forward_free(&f);
    *out = f;
    return rc;
}

void
ply_forward_free(struct ply_forward **f)
{
    if (!*f)
        return;
    ply_attn_free(&(*f)->attn);
    ply_rope_fini(&(*f)->rope);
    ply_rope_fini(&(*f)->rope_local);
    ply_mem_unmap((*f)->mem, (*f)->mem_bytes);
    free(*f);
    *f = NULL;
}

/* ---- phases; ith and nth as in pool.h ---- */

struct share {
    uint32_t begin, end;
};

/* A thread's part of n things, in one piece. */
static struct share
share(uint32_t n, int ith, int nth)
{
    return (struct share){(uint32_t)((uint64_t)n * (unsigned)ith / (unsigned)nth),
                          (uint32_t)((uint64_t)n * ((unsigned)ith + 1) / (unsigned)nth)};
}

/* A barrier at which thread 0 reports progress and looks at the cancel flag for all. True: leave.
 * Between two of these stands at least one plain barrier, so that stop is not written while
 * another thread may still read it. */
static bool
meet(struct ply_forward *f, uint32_t layer, int ith)
{
    if (ith == 0) {
        if (f->hooks->tick)
            f->hooks->tick(f->hooks->user, layer, f->o.model->hp.n_layer);
        f->stop = atomic_load_explicit(f->hooks->cancel, memory_order_relaxed);
    }
    ply_pool_barrier(f->o.pool);
    return f->stop;
}

/* Rows row0.. of quantised activations. */
static struct ply_acts
acts_from(const struct ply_acts *a, uint32_t row0)
{
    const size_t at = (size_t)row0 * a->n;
    return (struct ply_acts){
        .q = a->q + at,
        .lo = a->lo + at,
        .fine = a->fine ? a->fine + at / 32 : NULL,
        .d = a->d + at / 32,
        .sum16 = a->sum16 + at / 16,
        .n = a->n,
    };
}

static void
multiply(const struct ply_forward *f, const struct ply_mat *w, const struct ply_acts *acts,
         const float *x, size_t ldx, uint32_t m, float *out, int ith, int nth)
{
    ply_matmul(f->o.kern, w, w->packed ? acts : NULL, x, ldx, m, out, w->n_out,
               f->scratch + (size_t)ith * f->scratch_floats, ith, nth);
}

/* Activations with every block fine: what the head takes. */
static struct ply_acts
a12(const struct ply_acts *a)
{
    struct ply_acts r = *a;
    r.fine = NULL;
    return r;
}

static void
quantise(const struct ply_forward *f, const struct ply_acts *acts, const float *x, struct share s)
{
    if (s.begin < s.end)
        f->o.kern->quant_a8(x + (size_t)s.begin * acts->n, acts->n, s.end - s.begin, s.begin, acts);
}

static void
embed(const struct ply_forward *f, struct share s)
{
    const struct ply_hparams *hp = &f->o.model->hp;
    for (uint32_t r = s.begin; r < s.end; r++) {
        float *x = f->x + (size_t)r * hp->n_embd;
        ply_mat_row(&f->o.weights->embd, (uint32_t)f->rows[r].id, x);
        if (hp->embd_scale != 1.0f)
            f->o.kern->scale(x, hp->embd_scale, hp->n_embd);
    }
}

/* x += h, h normed first where the model has a norm there. */
static void
residual(const struct ply_forward *f, const float *post_norm, struct share s)
{
    const struct ply_hparams *hp = &f->o.model->hp;
    for (uint32_t r = s.begin; r < s.end; r++) {
        float *h = f->h + (size_t)r * hp->n_embd;
        if (post_norm)
            f->o.kern->rms_norm(h, h, post_norm, hp->n_embd, hp->rms_eps);
        f->o.kern->add(f->x + (size_t)r * hp->n_embd, h, hp->n_embd);
    }
}

static void
norm(const struct ply_forward *f, const float *w, struct share s)
{
    const struct ply_hparams *hp = &f->o.model->hp;
    for (uint32_t r = s.begin; r < s.end; r++)
        f->o.kern->rms_norm(f->h + (size_t)r * hp->n_embd, f->x + (size_t)r * hp->n_embd, w,
                            hp->n_embd, hp->rms_eps);
}

static void
finish_query(const struct ply_forward *f, const struct ply_layer *L, const struct row *row,
             float *q, uint32_t head)
{
    const struct ply_hparams *hp = &f->o.model->hp;
    const struct ply_kernels *k = f->o.kern;
    if (L->q_bias)
        k->add(q, L->q_bias + (size_t)head * hp->d_head, hp->d_head);
    if (L->q_norm)
        k->rms_norm(q, q, L->q_norm, hp->d_head, hp->rms_eps);
    k->rope(q, ply_rope_at(L->local ? &f->rope_local : &f->rope, row->pos), hp->rope_dim,
            hp->rope_neox);
    k->scale(q, hp->attn_scale, hp->d_head);
}

static void
store_key_value(const struct ply_forward *f, const struct ply_layer *L, uint32_t layer,
                const struct row *row, float *key, float *value, uint32_t head)
{
    const struct ply_hparams *hp = &f->o.model->hp;
    const struct ply_kernels *k = f->o.kern;
    const struct ply_kv_layout *kv = f->o.kv;
    const struct ply_block *b = f->items[row->item].blocks[row->pos / PLY_BLOCK_TOKS];
    const uint32_t slot = row->pos % PLY_BLOCK_TOKS;
    if (L->k_bias)
        k->add(key, L->k_bias + (size_t)head * hp->d_head, hp->d_head);
    if (L->v_bias)
        k->add(value, L->v_bias + (size_t)head * hp->d_head, hp->d_head);
    if (L->k_norm)
        k->rms_norm(key, key, L->k_norm, hp->d_head, hp->rms_eps);
    k->rope(key, ply_rope_at(L->local ? &f->rope_local : &f->rope, row->pos), hp->rope_dim,
            hp->rope_neox);
    k->k_store[kv->type](ply_block_k(kv, b, layer, head), slot, key, hp->d_head);
    k->v_store[kv->type](ply_block_v(kv, b, layer, head), slot, value, hp->d_head);
}

/* The heads of each row, queries first, then pairs of key and value. */
static void
finish_heads(const struct ply_forward *f, uint32_t layer, int ith, int nth)
{
    const struct ply_hparams *hp = &f->o.model->hp;
    const struct ply_layer *L = &f->o.model->layers[layer];
    const uint32_t per_row = hp->n_head + hp->n_head_kv;
    const struct share s = share(f->n_rows * per_row, ith, nth);
    for (uint32_t u = s.begin; u < s.end; u++) {
        const uint32_t r = u / per_row, head = u % per_row;
        if (head < hp->n_head) {
            finish_query(f, L, &f->rows[r], f->q + (size_t)r * f->n_q + head * hp->d_head, head);
        } else {
            const uint32_t h = head - hp->n_head;
            const size_t at = (size_t)r * f->n_kv + h * hp->d_head;
            store_key_value(f, L, layer, &f->rows[r], f->k + at, f->v + at, h);
        }
    }
}

/* Move the rows whose logits are wanted to the front. By one thread. */
static void
keep_wanted(const struct ply_forward *f)
{
    const uint32_t n_embd = f->o.model->hp.n_embd;
    for (uint32_t i = 0; i < f->n_items; i++) {
        const struct ply_attn_rows *w = &f->wanted[i];
        const uint32_t from = f->all[i].row0 + f->all[i].n - w->n;
        if (from == w->row0 || w->n == 0)
            continue;
        memmove(f->x + (size_t)w->row0 * n_embd, f->x + (size_t)from * n_embd,
                (size_t)w->n * n_embd * sizeof(float));
        memmove(f->q + (size_t)w->row0 * f->n_q, f->q + (size_t)from * f->n_q,
                (size_t)w->n * f->n_q * sizeof(float));
    }
}

/* h = attention of x for the first n rows' norms; true: cancelled. On the last layer n shrinks to
 * the wanted rows. */
static bool
layer_attention(struct ply_forward *f, uint32_t layer, uint32_t *n, int ith, int nth)
{
    const struct ply_hparams *hp = &f->o.model->hp;
    const struct ply_layer *L = &f->o.model->layers[layer];
    const struct ply_weights_layer *W = &f->o.weights->layers[layer];
    const struct ply_acts *acts = &f->acts_embd;
    const struct ply_attn_rows *rows = f->all;

    norm(f, L->attn_norm, share(*n, ith, nth));
    if (W->q.packed || W->k.packed || W->v.packed)
        quantise(f, acts, f->h, share(*n, ith, nth));
    ply_pool_barrier(f->o.pool);
    multiply(f, &W->q, acts, f->h, hp->n_embd, *n, f->q, ith, nth);
    multiply(f, &W->k, acts, f->h, hp->n_embd, *n, f->k, ith, nth);
    multiply(f, &W->v, acts, f->h, hp->n_embd, *n, f->v, ith, nth);
    if (meet(f, layer, ith))
        return true;
    finish_heads(f, layer, ith, nth);
    ply_pool_barrier(f->o.pool);
    if (layer + 1 == hp->n_layer) {
        if (ith == 0)
            keep_wanted(f);
        ply_pool_barrier(f->o.pool);
        *n = f->n_wanted;
        rows = f->wanted;
    }
    ply_attn_run(f->attn, layer, L->local ? hp->window : 0, rows, *n, f->q, f->att, ith, nth);
    ply_pool_barrier(f->o.pool);
    if (W->o.packed)
        quantise(f, &f->acts_att, f->att, share(*n, ith, nth));
    ply_pool_barrier(f->o.pool);
    multiply(f, &W->o, &f->acts_att, f->att, f->n_q, *n, f->h, ith, nth);
    return meet(f, layer, ith);
}

/* gate = act(gate) * up, quantised. */
static void
activate(const struct ply_forward *f, bool packed, struct share s)
{
    const struct ply_hparams *hp = &f->o.model->hp;
    for (uint32_t r = s.begin; r < s.end; r++) {
        float *gate = f->gate + (size_t)r * hp->n_ff;
        const float *up = f->up + (size_t)r * hp->n_ff;
        if (hp->act == PLY_ACT_SILU)
            f->o.kern->silu_mul(gate, up, hp->n_ff);
        else
            f->o.kern->gelu_tanh_mul(gate, up, hp->n_ff);
    }
    if (packed)
        quantise(f, &f->acts_ff, f->gate, s);
}

/* h = feed-forward of x's norm for the first n rows. */
static void
layer_feed_forward(const struct ply_forward *f, uint32_t layer, uint32_t n, int ith, int nth)
{
    const struct ply_hparams *hp = &f->o.model->hp;
    const struct ply_weights_layer *W = &f->o.weights->layers[layer];
    const struct ply_acts *acts = &f->acts_embd;
    const struct share s = share(n, ith, nth);

    norm(f, f->o.model->layers[layer].ffn_norm, s);
    if (W->gate.packed || W->up.packed)
        quantise(f, acts, f->h, s);
    ply_pool_barrier(f->o.pool);
    multiply(f, &W->gate, acts, f->h, hp->n_embd, n, f->gate, ith, nth);
    multiply(f, &W->up, acts, f->h, hp->n_embd, n, f->up, ith, nth);
    ply_pool_barrier(f->o.pool);
    activate(f, W->down.packed, s);
    ply_pool_barrier(f->o.pool);
    multiply(f, &W->down, &f->acts_ff, f->gate, hp->n_ff, n, f->h, ith, nth);
    ply_pool_barrier(f->o.pool);
}

/* ---- the head ---- */

/* logits[m][n_vocab] of wanted rows row0..; complete after the next barrier. */
static void
head_rows(const struct ply_forward *f, uint32_t row0, uint32_t m, float *logits, int ith, int nth)
{
    const uint32_t n_embd = f->o.model->hp.n_embd;
    const struct ply_acts all = a12(&f->acts_embd), acts = acts_from(&all, row0);
    multiply(f, &f->o.weights->head, &acts, f->h + (size_t)row0 * n_embd, n_embd, m, logits, ith,
             nth);
}

/* Take note if a thread's part of some logits holds one that is not finite. */
static void
check_finite(struct ply_forward *f, const float *logits, uint64_t n, int ith, int nth)
{
    const uint64_t end = n * ((unsigned)ith + 1) / (unsigned)nth;
    bool bad = false;
    for (uint64_t i = n * (unsigned)ith / (unsigned)nth; i < end; i++)
        bad |= !isfinite(logits[i]);
    if (bad)
        atomic_store_explicit(&f->not_finite, true, memory_order_relaxed);
}

/* The wanted rows of one item, straight to its logits. True: cancelled. */
static bool
head_item(struct ply_forward *f, uint32_t i, int ith, int nth)
{
    const uint32_t n_vocab = f->o.model->hp.n_vocab, n = f->wanted[i].n;
    for (uint32_t done = 0; done < n; done += HEAD_ROWS) {
        const uint32_t m = PLY_MIN(n - done, HEAD_ROWS);
        float *out = f->items[i].logits + (size_t)done * n_vocab;
        head_rows(f, f->wanted[i].row0 + done, m, out, ith, nth);
        ply_pool_barrier(f->o.pool);
        check_finite(f, out, (uint64_t)m * n_vocab, ith, nth);
        if (meet(f, f->o.model->hp.n_layer, ith))
            return true;
    }
    return false;
}

/* Items first.. with one wanted row each share passes over the head; their rows are neighbours.
 * Returns the first item that is not of them. */
static uint32_t
head_gather(struct ply_forward *f, uint32_t first, int ith, int nth)
{
    const uint32_t n_vocab = f->o.model->hp.n_vocab;
    uint32_t past = first, m = 0;
    for (; past < f->n_items && f->wanted[past].n <= 1 && m < HEAD_GATHER; past++)
        m += f->wanted[past].n;
    head_rows(f, f->wanted[first].row0, m, f->logits, ith, nth);
    ply_pool_barrier(f->o.pool);
    check_finite(f, f->logits, (uint64_t)m * n_vocab, ith, nth);
    const struct share s = share(n_vocab, ith, nth);
    for (uint32_t i = first, r = 0; i < past; i++) {
        if (f->wanted[i].n == 0)
            continue;
        memcpy(f->items[i].logits + s.begin, f->logits + (size_t)r++ * n_vocab + s.begin,
               (s.end - s.begin) * sizeof(float));
    }
    ply_pool_barrier(f->o.pool);
    return past;
}

static void
head(struct ply_forward *f, int ith, int nth)
{
    const struct share s = share(f->n_wanted, ith, nth);
    norm(f, f->o.model->out_norm, s);
    const struct ply_acts acts = a12(&f->acts_embd);
    if (f->o.weights->head.packed && s.begin < s.end)
        f->o.kern->quant_a12(f->h + (size_t)s.begin * acts.n, acts.n, s.end - s.begin, s.begin,
                             &acts);
    ply_pool_barrier(f->o.pool);
    for (uint32_t i = 0; i < f->n_items;) {
        if (f->wanted[i].n > 1 || (f->wanted[i].n == 1 && f->n_wanted == 1)) {
            if (head_item(f, i++, ith, nth))
                return;
        } else if (f->wanted[i].n == 0) {
            i++;
        } else {
            i = head_gather(f, i, ith, nth);
        }
    }
}

/* ---- the batch ---- */

static void
forward_main(void *arg, int ith, int nth)
{
    struct ply_forward *f = arg;
    const struct ply_model *m = f->o.model;
    uint32_t n = f->n_rows;
    embed(f, share(n, ith, nth));
    for (uint32_t l = 0; l < m->hp.n_layer; l++) {
        if (layer_attention(f, l, &n, ith, nth) || n == 0)
            return;
        residual(f, m->layers[l].post_attn_norm, share(n, ith, nth));
        layer_feed_forward(f, l, n, ith, nth);
        residual(f, m->layers[l].post_ffn_norm, share(n, ith, nth));
    }
    head(f, ith, nth);
}

/* Lay the items' rows out one after the other, all of them and the wanted ones. */
static void
plan_batch(struct ply_forward *f, const struct ply_forward_item *items, uint32_t n_items)
{
    f->items = items;
    f->n_items = n_items;
    f->n_rows = 0;
    f->n_wanted = 0;
    for (uint32_t i = 0; i < n_items; i++) {
        const struct ply_forward_item *it = &items[i];
        f->all[i] = (struct ply_attn_rows){.row0 = f->n_rows, .n = it->n, .pos0 = it->pos0};
        f->wanted[i] = (struct ply_attn_rows){
            .row0 = f->n_wanted, .n = it->n_want, .pos0 = it->pos0 + it->n - it->n_want};
        f->seqs[i] = (struct ply_attn_seq){.blocks = it->blocks,
                                           .n_blocks = (uint32_t)ply_kv_blocks(it->pos0 + it->n)};
        for (uint32_t t = 0; t < it->n; t++)
            f->rows[f->n_rows + t] = (struct row){.id = it->ids[t], .pos = it->pos0 + t, .item = i};
        f->n_rows += it->n;
        f->n_wanted += it->n_want;
        ply_rope_need(&f->rope, it->pos0, it->pos0 + it->n);
        if (f->rope_local.cs)
            ply_rope_need(&f->rope_local, it->pos0, it->pos0 + it->n);
    }
    ply_attn_plan(f->attn, f->seqs, n_items);
}

int
ply_forward_run(struct ply_forward *f, const struct ply_forward_item *items, uint32_t n_items,
                const struct ply_forward_hooks *hooks, struct ply_err *err)
{
    plan_batch(f, items, n_items);
    f->hooks = hooks;
    f->stop = false;
    atomic_store_explicit(&f->not_finite, false, memory_order_relaxed);
    ply_pool_run(f->o.pool, forward_main, f);
    if (f->stop)
        return ply_fail(err, PLY_ECANCELLED, "stopped");
    if (atomic_load_explicit(&f->not_finite, memory_order_relaxed))
        return ply_fail(err, PLY_ENUMERIC, "the model's output is not a number");
    return PLY_OK;
}
