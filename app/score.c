/* SPDX-License-Identifier: MIT
 * score: what the model makes of a list of ids, position by position. Chunks, companions in the
 * batch and reuse are there to be varied: none may change a bit (--hash). */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/front.h"
#include "app/input.h"
#include "app/mem.h"
#include "app/verb.h"
#include "engine/base/num.h"

#define INPUT_MAX ((size_t)64 << 20)
#define CHUNK_DEFAULT 64
#define CTX_DEFAULT_MAX 8192

struct score {
    const struct app_opts *o;
    struct ply_engine *e;
    struct ply_seq *seq;
    struct ply_sampler *sampler;
    struct ply_ids ids;
    size_t n_vocab, chunk, n_top;
    float *logits;        /* [chunk][n_vocab] */
    int32_t *top_ids;     /* [n_top] */
    double *top_logprobs; /* [n_top] */
    /* Companions: other sequences, fed random ids, that share every batch. */
    struct ply_seq **others; /* [n_others] */
    size_t n_others;
    int32_t *other_ids;     /* [PLY_EVAL_TOKS_MAX] */
    float *other_logits;    /* [n_others][n_vocab] */
    struct ply_item *items; /* [1 + n_others] */
    uint64_t random;
    double nll;
    uint64_t hash;
};

static int
read_ids(struct score *s, struct ply_err *err)
{
    struct ply_buf text = {0};
    int r = input_read_fd(STDIN_FILENO, "standard input", INPUT_MAX, &text, err);
    if (r == 0)
        r = input_ids(text.v, text.n, &s->ids, err);
    if (r == 0 && s->ids.n == 0)
        r = ply_fail(err, PLY_EINVAL, "no ids on standard input");
    ply_buf_fini(&text);
    return r;
}

static int
open_seqs(struct score *s, struct ply_err *err)
{
    int r = ply_seq_new(s->e, &s->seq, err);
    s->others = app_xcalloc(s->n_others, sizeof(*s->others));
    for (size_t i = 0; r == 0 && i < s->n_others; i++)
        r = ply_seq_new(s->e, &s->others[i], err);
    return r;
}

static int
setup(struct score *s, struct ply_err *err)
{
    struct app_opts o = *s->o;
    if (!o.reuse)
        o.kv_cache = PLY_KV_CACHE_OFF;
    const int n_ctx = o.n_ctx == 0 && s->ids.n > CTX_DEFAULT_MAX ? (int)s->ids.n : 0;
    const int r = verb_engine_open(&o, n_ctx, &s->e, err);
    if (r != 0)
        return r;
    s->n_vocab = (size_t)ply_engine_info(s->e)->n_vocab;
    s->n_others = o.batch > 1 ? (size_t)o.batch - 1 : 0;
    if (s->n_others >= PLY_EVAL_TOKS_MAX)
        return ply_fail(err, PLY_EINVAL, "--batch: at most %d", PLY_EVAL_TOKS_MAX);
    s->chunk = o.chunk > 0 ? (size_t)o.chunk : CHUNK_DEFAULT;
    s->chunk = PLY_MIN(PLY_MIN(s->chunk, PLY_EVAL_TOKS_MAX - s->n_others), s->ids.n);
    s->n_top = PLY_MIN((size_t)o.top, s->n_vocab);
    s->logits = calloc(s->chunk * s->n_vocab, sizeof(*s->logits));
    s->other_logits =
        calloc(PLY_MAX(s->n_others, (size_t)1) * s->n_vocab, sizeof(*s->other_logits));
    if (!s->logits || !s->other_logits)
        return ply_fail(err, PLY_ENOMEM,
                        "no memory for the logits of %zu positions; --chunk lowers it",
                        s->chunk + s->n_others);
    s->top_ids = app_xcalloc(s->n_top, sizeof(*s->top_ids));
    s->top_logprobs = app_xcalloc(s->n_top, sizeof(*s->top_logprobs));
    s->other_ids = app_xcalloc(PLY_EVAL_TOKS_MAX, sizeof(*s->other_ids));
    s->items = app_xcalloc(1 + s->n_others, sizeof(*s->items));
    s->random = 0x9e3779b97f4a7c15ull;
    s->hash = PLY_HASH_SEED;
    const int r2 = open_seqs(s, err);
    return r2 != 0 ? r2 : ply_sampler_new(ply_engine_vocab(s->e), &s->sampler, err);
}

static void
teardown(struct score *s)
{
    for (size_t i = 0; s->others && i < s->n_others; i++)
        ply_seq_free(&s->others[i]);
    free(s->others);
    ply_sampler_free(&s->sampler);
    ply_seq_free(&s->seq);
    ply_engine_close(&s->e);
    ply_ids_fini(&s->ids);
    free(s->logits);
    free(s->other_logits);
    free(s->top_ids);
    free(s->top_logprobs);
    free(s->other_ids);
    free(s->items);
}

/* xorshift64*: only to have companions that differ from batch to batch. */
static size_t
draw(struct score *s, size_t n)
{
    s->random ^= s->random >> 12;
    s->random ^= s->random << 25;
    s->random ^= s->random >> 27;
    return (size_t)((s->random * 0x2545f4914f6cdd1dull) >> 33) % n;
}

/* Each companion gets one id or a few, as the batch has room. */
static void
add_companions(struct score *s, size_t n_room)
{
    size_t used = 0;
    for (size_t i = 0; i < s->n_others; i++) {
        const size_t left = n_room - used - (s->n_others - 1 - i);
        const size_t n = 1 + draw(s, PLY_MIN(left, (size_t)8));
        if (ply_seq_len(s->others[i]) + n > (size_t)ply_engine_info(s->e)->n_ctx)
            ply_seq_rollback(s->others[i], 0);
        for (size_t k = 0; k < n; k++)
            s->other_ids[used + k] = (int32_t)draw(s, s->n_vocab);
        s->items[1 + i] = (struct ply_item){.seq = s->others[i],
                                            .ids = s->other_ids + used,
                                            .n_ids = n,
                                            .n_want = 1,
                                            .logits = s->other_logits + i * s->n_vocab};
        used += n;
    }
}

/* Go on from a copy that shares its blocks and has given back its last token. */
static int
go_on_from_copy(struct score *s, size_t at, struct ply_err *err)
{
    struct ply_seq *copy = NULL;
    if (at == 0)
        return PLY_OK;
    const int r = ply_seq_fork(s->seq, &copy, err);
    if (r != 0)
        return r;
    ply_seq_free(&s->seq);
    s->seq = copy;
    ply_seq_rollback(s->seq, at - 1);
    return ply_seq_sync(s->seq, s->ids.v, at, NULL, NULL, err);
}

static int
print_position(struct score *s, size_t pos, const float *logits, struct ply_err *err)
{
    if (ply_top_logprobs(s->sampler, logits, s->n_top, s->top_ids, s->top_logprobs) != 0)
        return ply_fail(err, PLY_ENUMERIC, "numeric error at token %zu", pos);
    printf("{\"pos\":%zu,\"id\":%" PRId32 ",\"top\":[", pos, s->ids.v[pos]);
    for (size_t i = 0; i < s->n_top && isfinite(s->top_logprobs[i]); i++)
        printf("%s[%" PRId32 ",%.6f]", i ? "," : "", s->top_ids[i], s->top_logprobs[i]);
    const double lp = pos + 1 < s->ids.n ? ply_logprob(logits, s->n_vocab, s->ids.v[pos + 1]) : NAN;
    if (isfinite(lp))
        printf("],\"next_logprob\":%.6f}\n", lp);
    else
        printf("],\"next_logprob\":null}\n");
    if (pos + 1 < s->ids.n)
        s->nll -= lp;
    if (s->o->hash)
        s->hash = ply_hash_logits(s->hash, logits, s->n_vocab);
    return PLY_OK;
}

static int
run(struct score *s, struct ply_err *err)
{
    for (size_t at = 0; at < s->ids.n;) {
        const size_t n = PLY_MIN(s->chunk, s->ids.n - at);
        int r = s->o->reuse ? go_on_from_copy(s, at, err) : PLY_OK;
        if (r != 0)
            return r;
        s->items[0] = (struct ply_item){
            .seq = s->seq, .ids = s->ids.v + at, .n_ids = n, .n_want = n, .logits = s->logits};
        add_companions(s, PLY_EVAL_TOKS_MAX - n);
        r = ply_eval(s->e, s->items, 1 + s->n_others, err);
        if (r != 0)
            return r;
        for (size_t i = 0; r == 0 && i < n; i++)
            r = print_position(s, at + i, s->logits + i * s->n_vocab, err);
        if (r != 0)
            return r;
        at += n;
    }
    return PLY_OK;
}

static int
print_summary(const struct score *s, struct ply_err *err)
{
    const size_t n = s->ids.n > 1 ? s->ids.n - 1 : 1;
    printf("{\"tokens\":%zu,\"nll\":%.6f,\"ppl\":%.6f", s->ids.n, s->nll, exp(s->nll / (double)n));
    if (s->o->hash)
        printf(",\"hash\":\"%016" PRIx64 "\"", s->hash);
    printf("}\n");
    return fflush(stdout) == 0 ? PLY_OK
                               : ply_fail(err, PLY_EIO, "cannot write: %s", strerror(errno));
}

int
verb_score(const struct app_opts *o)
{
    struct score s = {.o = o};
    struct ply_err err = {0};
    int r = read_ids(&s, &err);
    if (r == 0)
        r = setup(&s, &err);
    if (r == 0)
        r = run(&s, &err);
    if (r == 0)
        r = print_summary(&s, &err);
    teardown(&s);
    return r == 0 ? APP_EXIT_OK : front_fail(&err);
}
