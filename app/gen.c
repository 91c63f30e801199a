/* SPDX-License-Identifier: MIT
 * The token loop of a reply. */
#include "app/gen.h"

#include <stdlib.h>
#include <string.h>

#include "app/clock.h"
#include "app/mem.h"
#include "app/stop.h"
#include "engine/base/num.h"

struct gen {
    struct ply_engine *e;
    const struct ply_vocab *vocab;
    struct ply_seq *seq;
    struct ply_sampler *sampler;
    const struct gen_params *params;
    const struct gen_hooks *hooks;
    struct gen_result *r;
    size_t n_prompt, n_ctx;
    bool transcript;
    struct stop stop;
    struct ply_stream stream;
    struct ply_buf bytes, released, chars; /* of the reply; scratch for one piece */
    size_t *ends;                          /* [cap] offset in bytes at which each id ends */
    size_t cap;                            /* of ends and of r->t_ids */
    size_t n_said;                         /* ids handed to the text hook */
};

const char *
gen_finish_name(enum gen_finish f)
{
    static const char *const names[] = {"stop", "length", "cancelled", "error"};
    return names[f];
}

void
gen_result_fini(struct gen_result *r)
{
    ply_ids_fini(&r->ids);
    ply_buf_fini(&r->text);
    free(r->t_ids);
    r->t_ids = NULL;
}

/* A call into the engine failed: cancelled, or an error that names the reply's id. */
static void
fail(struct gen *g, const struct ply_err *err)
{
    if (err->code == PLY_ECANCELLED) {
        g->r->finish = GEN_CANCELLED;
        return;
    }
    g->r->finish = GEN_ERROR;
    if (err->code == PLY_ENUMERIC)
        ply_fail(&g->r->err, PLY_ENUMERIC, "numeric error at token %zu", g->r->ids.n + 1);
    else
        g->r->err = *err;
}

static bool
prefill(struct gen *g, const int32_t *prompt, bool cold, struct ply_sync_report *report)
{
    const struct ply_sync_opts opts = {
        .progress = g->hooks->progress, .user = g->hooks->user, .cold = cold};
    struct ply_err err = {0};
    g->r->t_begun = app_now_ms();
    if (ply_seq_sync(g->seq, prompt, g->n_prompt, &opts, report, &err) != 0) {
        fail(g, &err);
        return false;
    }
    return true;
}

static uint64_t
logits_hash(const struct gen *g)
{
    return ply_hash_logits(PLY_HASH_SEED, ply_seq_logits(g->seq),
                           (size_t)ply_engine_info(g->e)->n_vocab);
}

/* The prompt as the cache allows it, so that the run without it has something beside it. */
static bool
compare_prefill(struct gen *g, const int32_t *prompt, uint64_t *hash)
{
    struct ply_sync_report warm = {0};
    const double t = app_now_ms();
    if (!prefill(g, prompt, false, &warm))
        return false;
    g->r->compare_ms = app_now_ms() - t;
    g->r->compare_evaluated = warm.evaluated;
    *hash = logits_hash(g);
    g->r->compare_spent_ms = app_now_ms() - t;
    return true;
}

/* Hand over the text that is ready and the ids whose bytes are all out. */
static void
say(struct gen *g, bool all)
{
    size_t n = g->n_said;
    while (n < g->r->ids.n && (all || g->ends[n] <= g->stop.n_released))
        n++;
    g->chars.n = 0;
    if (ply_stream_push(&g->stream, g->released.v, g->released.n, &g->chars) != 0 ||
        (all && ply_stream_finish(&g->stream, &g->chars) != 0))
        abort();
    g->released.n = 0;
    if (n > g->n_said || g->chars.n > 0)
        g->hooks->text(g->hooks->user, g->chars.v, g->chars.n, g->r->ids.v + g->n_said,
                       n - g->n_said);
    app_buf_append(&g->r->text, g->chars.v, g->chars.n);
    g->n_said = n;
}

static void
push_id(struct gen *g, int32_t id, const char *piece, size_t len, double t)
{
    if (g->r->ids.n == g->cap) {
        g->cap = g->cap * 2 + 64;
        g->ends = app_xrealloc(g->ends, g->cap, sizeof(*g->ends));
        g->r->t_ids = app_xrealloc(g->r->t_ids, g->cap, sizeof(*g->r->t_ids));
    }
    app_buf_append(&g->bytes, piece, len);
    g->ends[g->r->ids.n] = g->bytes.n;
    g->r->t_ids[g->r->ids.n] = t;
    app_ids_append(&g->r->ids, &id, 1);
}

/* Keep the ids that end at or before byte `at`, and the bytes up to there. */
static void
cut_at(struct gen *g, size_t at)
{
    size_t n = 0;
    while (n < g->r->ids.n && g->ends[n] <= at)
        n++;
    const size_t end = n > 0 ? g->ends[n - 1] : 0;
    const double t = g->r->t_ids[n]; /* of the id that straddles: there is one if end < at */
    g->r->ids.n = n;
    ply_seq_rollback(g->seq, PLY_MIN(ply_seq_len(g->seq), g->n_prompt + n));
    if (end == at)
        return;
    struct ply_ids again = {0};
    struct ply_buf head = {0};
    app_buf_append(&head, g->bytes.v + end, at - end);
    g->bytes.n = end;
    struct ply_err err = {0};
    if (ply_encode_more(g->vocab, head.v, head.n, &again, &err) != 0)
        fail(g, &err);
    for (size_t i = 0; i < again.n; i++) {
        size_t len;
        const char *piece = ply_piece(g->vocab, again.v[i], &len);
        push_id(g, again.v[i], piece, len, t);
    }
    ply_ids_fini(&again);
    ply_buf_fini(&head);
}

static bool
is_newlines(const struct ply_vocab *v, int32_t id)
{
    size_t len;
    const char *s = ply_piece(v, id, &len);
    size_t n = 0;
    while (n < len && s[n] == '\n')
        n++;
    return len > 0 && n == len;
}

/* The newlines before the end of a transcript's reply, or before its end id. */
static void
cut_newlines(struct gen *g)
{
    struct ply_ids *ids = &g->r->ids;
    const bool has_end = ids->n > 0 && ply_chat_is_end(g->vocab, ids->v[ids->n - 1]);
    const int32_t end_id = has_end ? ids->v[ids->n - 1] : -1;
    const double t_end = ids->n > 0 ? g->r->t_ids[ids->n - 1] : 0;
    size_t n = ids->n - has_end;
    while (n > 0 && is_newlines(g->vocab, ids->v[n - 1]))
        n--;
    if (n == ids->n - has_end)
        return;
    ply_seq_rollback(g->seq, PLY_MIN(ply_seq_len(g->seq), g->n_prompt + n));
    ids->n = n;
    if (has_end) {
        g->ends[n] = n > 0 ? g->ends[n - 1] : 0;
        g->r->t_ids[n] = t_end;
        app_ids_append(ids, &end_id, 1);
    }
}

/* The next id, forced or drawn; false when the list is at its end or drawing failed. */
static bool
draw(struct gen *g, int32_t *id)
{
    const struct ply_ids *forced = g->params->forced;
    if (forced) {
        if (g->r->ids.n == forced->n)
            return false;
        *id = forced->v[g->r->ids.n];
        return true;
    }
    struct ply_err err = {0};
    const size_t n = ply_seq_len(g->seq);
    if (ply_sample(g->sampler, ply_seq_logits(g->seq), &g->params->sampling, ply_seq_ids(g->seq), n,
                   g->params->candidate, n, id, &err) == 0)
        return true;
    fail(g, &err);
    return false;
}

/* One id more. False: the reply has ended and r->finish says how. */
static bool
next(struct gen *g)
{
    struct gen_result *r = g->r;
    r->finish = GEN_STOP;
    if (g->params->n_max == 0) {
        r->finish = GEN_LENGTH;
        return false;
    }
    int32_t id;
    if (!draw(g, &id))
        return false;
    const double t = app_now_ms();
    if (r->t_first == 0)
        r->t_first = t;
    size_t len, match_at = 0;
    const char *piece = ply_piece(g->vocab, id, &len);
    push_id(g, id, piece, len, t);
    if (ply_chat_is_end(g->vocab, id))
        return false;
    if (stop_push(&g->stop, piece, len, &g->released, &match_at)) {
        cut_at(g, match_at);
        return false;
    }
    say(g, false);
    if (r->ids.n >= g->params->n_max || ply_seq_len(g->seq) >= g->n_ctx) {
        r->finish = GEN_LENGTH;
        return false;
    }
    struct ply_err err = {0};
    if (ply_seq_step(&g->seq, &id, 1, &err) != 0) {
        fail(g, &err);
        return false;
    }
    return true;
}

static void
add_stops(struct gen *g)
{
    const bool at_start = ply_chat_stop_at_start(g->vocab, "###", 3);
    stop_init(&g->stop, g->transcript);
    for (const char *const *s = ply_chat_stops(g->vocab); s && *s; s++)
        stop_add(&g->stop, *s, at_start);
    for (size_t i = 0; i < g->params->n_stops; i++)
        stop_add(&g->stop, g->params->stops[i], false);
}

static void
generate(struct gen *g)
{
    add_stops(g);
    while (next(g))
        ;
    if (!g->stop.matched)
        stop_finish(&g->stop, &g->released);
    if (g->transcript)
        cut_newlines(g);
    say(g, true);
    g->r->t_last = g->r->ids.n > 0 ? g->r->t_ids[g->r->ids.n - 1] : g->r->t_first;
}

void
gen_run(struct ply_engine *e, struct ply_seq *seq, struct ply_sampler *sampler,
        const int32_t *prompt, size_t n_prompt, const struct gen_params *params,
        const struct gen_hooks *hooks, struct gen_result *r)
{
    const struct ply_info *info = ply_engine_info(e);
    struct gen g = {
        .e = e,
        .vocab = ply_engine_vocab(e),
        .seq = seq,
        .sampler = sampler,
        .params = params,
        .hooks = hooks,
        .r = r,
        .n_prompt = n_prompt,
        .n_ctx = (size_t)info->n_ctx,
        .transcript = strcmp(info->chat_template, "transcript") == 0,
    };
    *r = (struct gen_result){.compare_ms = -1};
    uint64_t warm_hash = 0;
    if ((!params->compare || compare_prefill(&g, prompt, &warm_hash)) &&
        prefill(&g, prompt, params->cold || params->compare, &r->report)) {
        r->t_prefilled = app_now_ms();
        if (params->want_hash || params->compare)
            r->prompt_hash = logits_hash(&g);
        r->compare_equal = params->compare && warm_hash == r->prompt_hash;
        generate(&g);
    }
    stop_fini(&g.stop);
    ply_buf_fini(&g.bytes);
    ply_buf_fini(&g.released);
    ply_buf_fini(&g.chars);
    free(g.ends);
}
