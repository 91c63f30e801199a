/* SPDX-License-Identifier: MIT
 * Rows to structs and back. A row may hold anything, because a file can be damaged: what cannot
 * be a message is refused, what merely describes one badly is left out. */
#include "app/store_row.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const role_names[] = {
    [PLY_ROLE_SYSTEM] = "system",
    [PLY_ROLE_USER] = "user",
    [PLY_ROLE_ASSISTANT] = "assistant",
};

static const char *const finish_names[] = {
    [STORE_FINISH_NONE] = "",         [STORE_FINISH_STOP] = "stop",
    [STORE_FINISH_LENGTH] = "length", [STORE_FINISH_CANCELLED] = "cancelled",
    [STORE_FINISH_ERROR] = "error",   [STORE_FINISH_INTERRUPTED] = "interrupted",
};
#define N_FINISH (sizeof(finish_names) / sizeof(finish_names[0]))

const char *
store_role_name(enum ply_role role)
{
    return role_names[role];
}

bool
store_role_parse(const char *name, enum ply_role *out)
{
    for (int i = PLY_ROLE_SYSTEM; name && i <= PLY_ROLE_ASSISTANT; i++) {
        if (strcmp(name, role_names[i]) == 0) {
            *out = (enum ply_role)i;
            return true;
        }
    }
    return false;
}

const char *
store_finish_name(enum store_finish f)
{
    return finish_names[f];
}

enum store_finish
store_finish_parse(const char *name)
{
    for (size_t i = 1; name && i < N_FINISH; i++)
        if (strcmp(name, finish_names[i]) == 0)
            return (enum store_finish)i;
    return STORE_FINISH_NONE;
}

/* ---- sampling -------------------------------------------------------------------------- */

/* The double with the fewest digits that is v again as a float: 0.9, not 0.899999976. */
static double
few_digits(float v)
{
    char text[32];
    double d = (double)v;
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, (double)v);
        d = strtod(text, NULL);
        if ((float)d == v)
            break;
    }
    return d;
}

char *
store_sampling_write(const struct ply_sampling *p)
{
    char seed[24]; /* all 64 bits: a JSON number would lose some of them elsewhere */
    snprintf(seed, sizeof(seed), "%llu", (unsigned long long)p->seed);
    json_t *o = json_pack(
        "{s:f, s:i, s:f, s:f, s:f, s:f, s:f, s:i, s:s}", "temp", few_digits(p->temp), "top_k",
        p->top_k, "top_p", few_digits(p->top_p), "min_p", few_digits(p->min_p), "repeat_penalty",
        few_digits(p->repeat_penalty), "presence_penalty", few_digits(p->presence_penalty),
        "frequency_penalty", few_digits(p->frequency_penalty), "penalty_window", p->penalty_window,
        "seed", seed);
    char *text = o ? json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(o);
    return text;
}

bool
store_sampling_read(const char *json, struct ply_sampling *out)
{
    double temp, top_p, min_p, repeat, presence, frequency;
    int top_k, window;
    const char *seed;
    json_t *o = json ? json_loads(json, 0, NULL) : NULL;
    bool ok = o && json_unpack(o, "{s:F, s:i, s:F, s:F, s:F, s:F, s:F, s:i, s:s}", "temp", &temp,
                               "top_k", &top_k, "top_p", &top_p, "min_p", &min_p, "repeat_penalty",
                               &repeat, "presence_penalty", &presence, "frequency_penalty",
                               &frequency, "penalty_window", &window, "seed", &seed) == 0;
    if (ok)
        *out = (struct ply_sampling){
            .temp = (float)temp,
            .top_k = top_k,
            .top_p = (float)top_p,
            .min_p = (float)min_p,
            .repeat_penalty = (float)repeat,
            .presence_penalty = (float)presence,
            .frequency_penalty = (float)frequency,
            .penalty_window = window,
            .seed = strtoull(seed, NULL, 10),
        };
    json_decref(o);
    return ok;
}

/* ---- ids ------------------------------------------------------------------------------- */

static int
ids_write(const struct ply_ids *ids, struct ply_buf *out)
{
    if (ply_buf_reserve(out, ids->n * 4) != 0)
        return PLY_ENOMEM;
    for (size_t i = 0; i < ids->n; i++) {
        uint32_t u = (uint32_t)ids->v[i];
        unsigned char le[4] = {u & 0xff, u >> 8 & 0xff, u >> 16 & 0xff, u >> 24};
        if (ply_buf_append(out, le, 4) != 0)
            return PLY_ENOMEM;
    }
    return PLY_OK;
}

static int
ids_read(const unsigned char *le, size_t len, struct ply_ids *out)
{
    if (len % 4)
        return PLY_EFORMAT;
    if (ply_ids_reserve(out, len / 4) != 0)
        return PLY_ENOMEM;
    for (size_t i = 0; i < len; i += 4) {
        uint32_t u = (uint32_t)le[i] | (uint32_t)le[i + 1] << 8 | (uint32_t)le[i + 2] << 16 |
                     (uint32_t)le[i + 3] << 24;
        if (ply_ids_push(out, (int32_t)u) != 0)
            return PLY_ENOMEM;
    }
    return PLY_OK;
}

/* ---- messages -------------------------------------------------------------------------- */

/* The columns of struct store_stats, by name, in the order SQL_MESSAGE_GET has them. */
static void
stats_bind(struct db_stmt *q, const struct store_stats *t)
{
    static const char *const names[] = {":prompt_toks",  ":cached_toks",    ":evaluated_toks",
                                        ":drafted_toks", ":predicted_toks", ":ttft_ms",
                                        ":tokenize_ms",  ":restore_ms",     ":prefill_ms",
                                        ":decode_ms",    ":predicted_ms"};
    const int64_t toks[] = {t->prompt_toks, t->cached_toks, t->evaluated_toks, t->drafted_toks,
                            t->predicted_toks};
    const double ms[] = {t->ttft_ms,    t->tokenize_ms, t->restore_ms,
                         t->prefill_ms, t->decode_ms,   t->predicted_ms};
    for (size_t i = 0; i < 11; i++) {
        if (!t->known)
            db_bind_null(q, names[i]);
        else if (i < 5)
            db_bind_int(q, names[i], toks[i]);
        else
            db_bind_real(q, names[i], ms[i - 5]);
    }
    db_bind_str(q, ":reuse_reason", t->known ? t->reuse_reason : NULL);
}

static void
stats_read(struct db_stmt *q, int col, struct store_stats *t)
{
    t->known = !db_is_null(q, col);
    if (!t->known)
        return;
    t->prompt_toks = db_int(q, col);
    t->cached_toks = db_int(q, col + 1);
    t->evaluated_toks = db_int(q, col + 2);
    t->drafted_toks = db_int(q, col + 3);
    t->predicted_toks = db_int(q, col + 4);
    t->ttft_ms = db_real(q, col + 5);
    t->tokenize_ms = db_real(q, col + 6);
    t->restore_ms = db_real(q, col + 7);
    t->prefill_ms = db_real(q, col + 8);
    t->decode_ms = db_real(q, col + 9);
    t->predicted_ms = db_real(q, col + 10);
    const char *reason = db_text(q, col + 11, NULL);
    snprintf(t->reuse_reason, sizeof(t->reuse_reason), "%s", reason ? reason : "");
}

void
store_bound_fini(struct store_bound *b)
{
    ply_buf_fini(&b->ids);
    free(b->sampling);
    *b = (struct store_bound){0};
}

int
store_msg_bind(struct db_stmt *q, const struct store_msg *m, struct store_bound *b,
               struct ply_err *err)
{
    *b = (struct store_bound){0};
    if (m->has_sampling)
        b->sampling = store_sampling_write(&m->sampling);
    if ((m->has_sampling && !b->sampling) || ids_write(&m->ids, &b->ids) != 0) {
        store_bound_fini(b);
        return ply_fail(err, PLY_ENOMEM, "no memory to store a message");
    }
    db_bind_str(q, ":role", role_names[m->role]);
    db_bind_text(q, ":content", m->text.n ? m->text.v : "", m->text.n);
    db_bind_blob(q, ":ids", m->ids.n ? b->ids.v : NULL, b->ids.n);
    db_bind_int(q, ":writing", m->state == STORE_WRITING);
    db_bind_str(q, ":finish", m->finish ? finish_names[m->finish] : NULL);
    db_bind_str(q, ":model_fp", m->model_fp[0] ? m->model_fp : NULL);
    db_bind_str(q, ":template", m->template_name[0] ? m->template_name : NULL);
    db_bind_str(q, ":sampling", b->sampling);
    stats_bind(q, &m->stats);
    return PLY_OK;
}

static void
text_read(struct db_stmt *q, int col, char *out, size_t size)
{
    const char *text = db_text(q, col, NULL);
    snprintf(out, size, "%s", text ? text : "");
}

int
store_msg_read(struct db_stmt *q, struct store_msg *m, struct ply_err *err)
{
    size_t len, n_ids;
    const char *text = db_text(q, 3, &len);
    if (!text || !store_role_parse(db_text(q, 2, NULL), &m->role))
        return PLY_EFORMAT;
    int rc = len ? ply_buf_append(&m->text, text, len) : PLY_OK;
    if (!rc) {
        const void *ids = db_blob(q, 4, &n_ids);
        rc = ids_read(ids, n_ids, &m->ids);
    }
    if (rc == PLY_ENOMEM)
        return ply_fail(err, rc, "no memory for a message of %zu bytes", len);
    if (rc)
        return rc;
    m->state = db_int(q, 5) ? STORE_WRITING : STORE_DONE;
    m->finish = store_finish_parse(db_text(q, 6, NULL));
    text_read(q, 7, m->model_fp, sizeof(m->model_fp));
    text_read(q, 8, m->template_name, sizeof(m->template_name));
    m->has_sampling = store_sampling_read(db_text(q, 9, NULL), &m->sampling);
    stats_read(q, 10, &m->stats);
    m->created_ms = db_int(q, 22);
    return PLY_OK;
}
