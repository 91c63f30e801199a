/* SPDX-License-Identifier: MIT
 * Sequences, and the one way to evaluate: ply_eval() prepares blocks, runs the forward pass
 * and only then lets the sequences grow. */
#include "engine/seq.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/num.h"
#include "engine/engine.h"

/* Ids per evaluation of a sync. More make prefill faster by 5 % at most; with these, half a layer,
 * after which a cancel is seen, takes some 20 ms even with the scalar kernels. */
#define CHUNK 64u
#define PROGRESS_S 0.02 /* between two progress calls, as far as half layers allow */

static double
now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- life ---- */

int
ply_seq_new(struct ply_engine *e, struct ply_seq **out, struct ply_err *err)
{
    *out = NULL;
    struct ply_seq *s = calloc(1, sizeof(*s));
    if (s) {
        s->e = e;
        s->ids = malloc((size_t)e->opts.n_ctx * sizeof(*s->ids));
        s->blocks = malloc(ply_kv_blocks((size_t)e->opts.n_ctx) * sizeof(struct ply_block *));
        s->logits = malloc(e->model->hp.n_vocab * sizeof(*s->logits));
        e->n_seqs++;
        if (s->ids && s->blocks && s->logits) {
            *out = s;
            return PLY_OK;
        }
        ply_seq_free(&s);
    }
    return ply_fail(err, PLY_ENOMEM, "out of memory for a sequence of %d tokens", e->opts.n_ctx);
}

/* Give back the blocks past those that n ids need. */
static void
trim(struct ply_seq *s)
{
    while (s->n_blocks > ply_kv_blocks(s->n))
        ply_kv_unref(s->e->kv, s->blocks[--s->n_blocks]);
}

void
ply_seq_free(struct ply_seq **seq)
{
    struct ply_seq *s = *seq;
    if (!s)
        return;
    s->n = 0;
    trim(s);
    s->e->n_seqs--;
    free(s->ids);
    free(s->blocks);
    free(s->logits);
    free(s);
    *seq = NULL;
}

size_t
ply_seq_len(const struct ply_seq *s)
{
    return s->n;
}

const int32_t *
ply_seq_ids(const struct ply_seq *s)
{
    return s->ids;
}

const float *
ply_seq_logits(const struct ply_seq *s)
{
    return s->has_logits ? s->logits : NULL;
}

int
ply_seq_fork(const struct ply_seq *s, struct ply_seq **out, struct ply_err *err)
{
    const int rc = ply_seq_new(s->e, out, err);
    if (rc != PLY_OK)
        return rc;
    struct ply_seq *f = *out;
    memcpy(f->ids, s->ids, s->n * sizeof(*f->ids));
    f->n = s->n;
    for (size_t i = 0; i < s->n_blocks; i++)
        f->blocks[i] = ply_kv_ref(s->blocks[i]);
    f->n_blocks = s->n_blocks;
    f->has_logits = s->has_logits;
    if (s->has_logits)
        memcpy(f->logits, s->logits, s->e->model->hp.n_vocab * sizeof(*f->logits));
    return PLY_OK;
}

void
ply_seq_rollback(struct ply_seq *s, size_t n)
{
    if (n > s->n)
        return;
    s->n = n;
    s->has_logits = false;
    trim(s);
}

/* ---- evaluation ---- */

static int
check_ids(const struct ply_engine *e, const int32_t *ids, size_t n, struct ply_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= e->model->hp.n_vocab)
            return ply_fail(err, PLY_EINVAL, "id %d is not one of the vocabulary's 0..%u", ids[i],
                            e->model->hp.n_vocab - 1);
    return PLY_OK;
}

static int
check_room(const struct ply_engine *e, size_t have, size_t more, struct ply_err *err)
{
    const size_t room = (size_t)e->opts.n_ctx;
    if (more <= room && have <= room - more)
        return PLY_OK;
    return ply_fail(err, PLY_EFULL, "too long: %zu tokens, room for %zu (-c)", have + more, room);
}

static int
check_items(struct ply_engine *e, const struct ply_item *items, size_t n_items, struct ply_err *err)
{
    size_t total = 0;
    e->n_evals++;
    if (n_items < 1 || n_items > PLY_EVAL_TOKS_MAX)
        return ply_fail(err, PLY_EINVAL, "a batch of %zu sequences", n_items);
    for (size_t i = 0; i < n_items; i++) {
        const struct ply_item *it = &items[i];
        if (it->n_ids < 1 || it->n_ids > PLY_EVAL_TOKS_MAX - total)
            return ply_fail(err, PLY_EINVAL, "a batch holds 1 to %d ids, at least one a sequence",
                            PLY_EVAL_TOKS_MAX);
        total += it->n_ids;
        if (it->n_want > it->n_ids || (it->n_want > 0 && !it->logits))
            return ply_fail(err, PLY_EINVAL, "logits of %zu of %zu ids wanted", it->n_want,
                            it->n_ids);
        if (it->seq->e != e || it->seq->eval == e->n_evals)
            return ply_fail(err, PLY_EINVAL, "a sequence stands twice in the batch or is not ours");
        it->seq->eval = e->n_evals;
        int rc = check_ids(e, it->ids, it->n_ids, err);
        if (rc == PLY_OK)
            rc = check_room(e, it->seq->n, it->n_ids, err);
        if (rc != PLY_OK)
            return rc;
    }
    return PLY_OK;
}

/* Blocks that s alone holds for `more` rows. What was taken before a failure stays until trim. */
static int
reserve(struct ply_seq *s, size_t more, struct ply_err *err)
{
    int rc = PLY_OK;
    if (s->n % PLY_BLOCK_TOKS != 0)
        rc = ply_kv_own(s->e->kv, &s->blocks[s->n_blocks - 1], err);
    while (rc == PLY_OK && s->n_blocks < ply_kv_blocks(s->n + more)) {
        rc = ply_kv_take(s->e->kv, &s->blocks[s->n_blocks], err);
        s->n_blocks += rc == PLY_OK;
    }
    return rc;
}

/* The rows are computed: let the sequence have them. */
static void
commit(struct ply_seq *s, size_t n)
{
    const size_t pos0 = s->n;
    s->n += n;
    s->has_logits = false;
    if (s->e->trace)
        for (size_t i = pos0; i < s->n; i++)
            s->e->trace(s->e->trace_user, s, i, s->ids[i], PLY_SOURCE_EVALUATED);
}

typedef void (*tick_fn)(void *user, uint32_t layer, uint32_t n_layer);

static int
eval(struct ply_engine *e, const struct ply_item *items, size_t n_items, tick_fn tick, void *user,
     struct ply_err *err)
{
    const struct ply_forward_hooks hooks = {.cancel = &e->cancel, .tick = tick, .user = user};
    int rc = check_items(e, items, n_items, err);
    if (rc != PLY_OK)
        return rc;
    for (size_t i = 0; i < n_items && rc == PLY_OK; i++) {
        struct ply_seq *s = items[i].seq;
        rc = reserve(s, items[i].n_ids, err);
        memmove(s->ids + s->n, items[i].ids, items[i].n_ids * sizeof(*s->ids));
        e->rows[i] = (struct ply_forward_item){
            .ids = s->ids + s->n,
            .n = (uint32_t)items[i].n_ids,
            .pos0 = (uint32_t)s->n,
            .n_want = (uint32_t)items[i].n_want,
            .blocks = s->blocks,
            .logits = items[i].logits,
        };
    }
    if (rc == PLY_OK)
        rc = ply_forward_run(e->forward, e->rows, (uint32_t)n_items, &hooks, err);
    for (size_t i = 0; i < n_items; i++) {
        if (rc == PLY_OK)
            commit(items[i].seq, items[i].n_ids);
        else
            trim(items[i].seq);
    }
    return rc;
}

int
ply_eval(struct ply_engine *e, struct ply_item *items, size_t n_items, struct ply_err *err)
{
    return eval(e, items, n_items, NULL, NULL, err);
}

int
ply_seq_step(struct ply_seq *const *seqs, const int32_t *ids, size_t n, struct ply_err *err)
{
    if (n < 1 || n > PLY_EVAL_TOKS_MAX)
        return ply_fail(err, PLY_EINVAL, "a step of %zu sequences", n);
    struct ply_engine *e = seqs[0]->e;
    for (size_t i = 0; i < n; i++)
        e->step[i] = (struct ply_item){
            .seq = seqs[i], .ids = &ids[i], .n_ids = 1, .n_want = 1, .logits = seqs[i]->logits};
    const int rc = eval(e, e->step, n, NULL, NULL, err);
    /* The forward pass may have spoiled logits before it failed; nothing earlier touches them. */
    for (size_t i = 0; i < n; i++) {
        if (rc == PLY_OK)
            seqs[i]->has_logits = true;
        else if (rc == PLY_ECANCELLED || rc == PLY_ENUMERIC)
            seqs[i]->has_logits = false;
    }
    return rc;
}

/* ---- sync ---- */

const char *
ply_reason_name(enum ply_reason r)
{
    static const char *const names[] = {
        [PLY_REASON_COLD] = "cold",
        [PLY_REASON_FULL] = "full",
        [PLY_REASON_EDITED] = "edited",
        [PLY_REASON_SYSTEM_CHANGED] = "system_changed",
        [PLY_REASON_MODEL_CHANGED] = "model_changed",
        [PLY_REASON_SETTINGS_CHANGED] = "settings_changed",
        [PLY_REASON_EVICTED] = "evicted",
        [PLY_REASON_WINDOW_DROPPED] = "window_dropped",
        [PLY_REASON_VERIFY_FAILED] = "verify_failed",
        [PLY_REASON_DISABLED] = "disabled",
    };
    return (size_t)r < PLY_COUNT(names) ? names[r] : "unknown";
}

/* Keep the live prefix that ids begins with, the last id excepted: its logits are needed. Says in
 * the report how much that is and why not more. */
static void
reuse_live(struct ply_seq *s, const int32_t *ids, size_t n, bool cold, struct ply_sync_report *r)
{
    size_t same = 0;
    while (same < n && same < s->n && ids[same] == s->ids[same])
        same++;
    if (cold || s->e->opts.kv_cache == PLY_KV_CACHE_OFF) {
        r->reason = PLY_REASON_DISABLED;
        same = 0;
    } else if (s->n == 0) {
        r->reason = PLY_REASON_COLD;
    } else if (same == n || same == s->n) {
        r->reason = PLY_REASON_FULL;
    } else {
        r->reason = PLY_REASON_EDITED;
    }
    r->reused_live = PLY_MIN(same, n - 1);
    r->diverged_at = r->reused_live;
    ply_seq_rollback(s, r->reused_live);
    if (s->e->trace)
        for (size_t i = 0; i < s->n; i++)
            s->e->trace(s->e->trace_user, s, i, s->ids[i], PLY_SOURCE_LIVE);
}

struct progress {
    const struct ply_sync_opts *opts;
    size_t done, total, chunk; /* ids evaluated, in all, in the evaluation that runs */
    double last;
};

static void
progress_say(struct progress *p, size_t n)
{
    p->last = now_s();
    if (p->opts->progress)
        p->opts->progress(p->opts->user, n, p->total);
}

/* Within an evaluation, a layer's share of its ids counts as done. */
static void
progress_tick(void *user, uint32_t layer, uint32_t n_layer)
{
    struct progress *p = user;
    if (now_s() - p->last >= PROGRESS_S)
        progress_say(p, p->done + p->chunk * layer / n_layer);
}

/* Append ids[s->n..n) in chunks; the logits of the last are the sequence's. */
static int
extend(struct ply_seq *s, const int32_t *ids, size_t n, const struct ply_sync_opts *opts,
       struct ply_err *err)
{
    const size_t kept = s->n, chunk = opts->chunk ? PLY_MIN(opts->chunk, PLY_EVAL_TOKS_MAX) : CHUNK;
    struct progress p = {.opts = opts, .total = n - kept, .last = now_s()};
    while (s->n < n) {
        p.chunk = PLY_MIN(chunk, n - s->n);
        const bool last = s->n + p.chunk == n;
        const struct ply_item item = {
            .seq = s, .ids = ids + s->n, .n_ids = p.chunk, .n_want = last, .logits = s->logits};
        const int rc = eval(s->e, &item, 1, opts->progress ? progress_tick : NULL, &p, err);
        if (rc != PLY_OK)
            return rc;
        s->has_logits = last;
        p.done = s->n - kept;
        progress_say(&p, p.done);
    }
    return PLY_OK;
}

int
ply_seq_sync(struct ply_seq *s, const int32_t *ids, size_t n, const struct ply_sync_opts *opts,
             struct ply_sync_report *report, struct ply_err *err)
{
    static const struct ply_sync_opts none = {0};
    struct ply_sync_report ignored;
    struct ply_sync_report *r = report ? report : &ignored;
    opts = opts ? opts : &none;
    *r = (struct ply_sync_report){.n_prompt = n};
    if (n < 1)
        return ply_fail(err, PLY_EINVAL, "a sequence of no ids has no logits");
    int rc = check_room(s->e, 0, n, err);
    if (rc == PLY_OK)
        rc = check_ids(s->e, ids, n, err);
    if (rc != PLY_OK)
        return rc;

    const double t0 = now_s();
    reuse_live(s, ids, n, opts->cold, r);
    const double t1 = now_s();
    const size_t kept = s->n;
    rc = extend(s, ids, n, opts, err);
    r->evaluated = s->n - kept;
    r->restore_ms = (t1 - t0) * 1e3;
    r->prefill_ms = (now_s() - t1) * 1e3;
    return rc;
}
