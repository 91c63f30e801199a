/* SPDX-License-Identifier: MIT
 * ls, show, search, rename, rm. */
#include "app/sessions.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/export.h"
#include "app/session_json.h"
#include "app/sessions_out.h"

#define TITLE_COLS 40

/* ---- ls -------------------------------------------------------------------------------- */

static json_t *
row_json(const struct store_row *r)
{
    return json_pack(
        "{s:I, s:o, s:o, s:I, s:b, s:b, s:o, s:o}", "id", (json_int_t)r->id, "title",
        session_json_text(r->title, strlen(r->title)), "model",
        r->model_name ? session_json_text(r->model_name, strlen(r->model_name)) : json_null(),
        "message_count", (json_int_t)r->n_msgs, "draft", r->has_draft, "open", r->open, "created",
        session_json_time(r->created_ms), "updated", session_json_time(r->updated_ms));
}

/* On a terminal columns for people, else tab-separated: id, title, updated, messages, model. */
static void
row_print(struct sessions_out *o, const struct store_row *r)
{
    char when[32];
    const char *model = r->model_name ? r->model_name : "";
    if (!o->tty) {
        sessions_time_utc(r->updated_ms, when, sizeof(when));
        fprintf(o->f, "%" PRId64 "\t", r->id);
        sessions_put(o, r->title, strlen(r->title), true);
        fprintf(o->f, "\t%s\t%" PRId64 "\t", when, r->n_msgs);
        sessions_put(o, model, strlen(model), true);
        fputc('\n', o->f);
        return;
    }
    sessions_time_local(r->updated_ms, sessions_now_ms(), when, sizeof(when));
    fprintf(o->f, "%c%5" PRId64 "  ", r->open ? '*' : ' ', r->id);
    sessions_put_cols(o, r->title[0] ? r->title : r->has_draft ? "(draft)" : "(empty)", TITLE_COLS);
    fprintf(o->f, "  %-15s %5" PRId64 " msg  ", when, r->n_msgs);
    sessions_put_cols(o, model, 0);
    fputc('\n', o->f);
}

static int
verb_ls(struct store *st, const struct app_opts *o, struct sessions_out *out, struct ply_err *err)
{
    struct store_list l;
    struct ply_buf filter = {0};
    int rc = sessions_join(o, 0, &filter, err);
    if (!rc)
        rc = store_list(st, filter.v, (size_t)o->limit, &l, err);
    ply_buf_fini(&filter);
    if (rc)
        return rc;
    json_t *all = o->json ? json_array() : NULL;
    for (size_t i = 0; i < l.n; i++) {
        if (all)
            json_array_append_new(all, row_json(&l.v[i]));
        else
            row_print(out, &l.v[i]);
    }
    if (l.n == 0 && out->tty && !o->json)
        fputs("no sessions\n", out->f);
    if (o->json)
        rc = sessions_put_json(out, all, l.n, err);
    store_list_fini(&l);
    return rc;
}

/* ---- show ------------------------------------------------------------------------------ */

static json_t *
shown_json(const struct store_session *s)
{
    json_t *o = session_json_head(s), *a = json_array();
    for (size_t i = 0; i < s->n_path; i++)
        json_array_append_new(a, session_json_message(&s->path[i], i ? s->path[i - 1].id : 0));
    if (json_object_set_new(o, "messages", a) != 0) {
        json_decref(o);
        return NULL;
    }
    return o;
}

/* "smollm2   212 tok  ttft 84 ms  reuse 318/331  stopped" */
static void
reply_info_print(struct sessions_out *o, const struct store_msg *m)
{
    const struct store_stats *t = &m->stats;
    if (t->known)
        fprintf(o->f, "  %" PRId64 " tok  ttft %.0f ms  reuse %" PRId64 "/%" PRId64,
                t->predicted_toks, t->ttft_ms, t->cached_toks, t->prompt_toks);
    if (m->state == STORE_WRITING)
        fputs("  (being written)", o->f);
    else if (m->finish != STORE_FINISH_NONE && m->finish != STORE_FINISH_STOP)
        fprintf(o->f, "  (%s)", store_finish_name(m->finish));
}

static void
message_print(struct sessions_out *o, const struct store_session *s, const struct store_msg *m)
{
    char when[32];
    sessions_time_local(m->created_ms, sessions_now_ms(), when, sizeof(when));
    fputc('\n', o->f);
    if (m->role == PLY_ROLE_ASSISTANT)
        sessions_put_cols(o, s->model_name ? s->model_name : "reply", 0);
    else
        fputs(m->role == PLY_ROLE_USER ? "you" : "system", o->f);
    fprintf(o->f, "  %s", when);
    if (m->role == PLY_ROLE_ASSISTANT)
        reply_info_print(o, m);
    fputc('\n', o->f);
    sessions_put(o, m->text.v, m->text.n, false);
    if (m->text.n == 0 || m->text.v[m->text.n - 1] != '\n')
        fputc('\n', o->f);
}

static void
session_print(struct sessions_out *o, const struct store_session *s)
{
    fprintf(o->f, "#%" PRId64 " ", s->id);
    sessions_put(o, s->title ? s->title : "", s->title ? strlen(s->title) : 0, true);
    fputc('\n', o->f);
    if (s->system && s->system[0]) {
        fputs("\nsystem\n", o->f);
        sessions_put(o, s->system, strlen(s->system), false);
        fputc('\n', o->f);
    }
    for (size_t i = 0; i < s->n_path; i++)
        message_print(o, s, &s->path[i]);
    if (s->draft && s->draft[0]) {
        fputs("\ndraft, not sent\n", o->f);
        sessions_put(o, s->draft, strlen(s->draft), false);
        fputc('\n', o->f);
    }
}

static int
verb_show(struct store *st, const struct app_opts *o, struct sessions_out *out, struct ply_err *err)
{
    struct store_session s = {0};
    int64_t id;
    int rc = sessions_find_joined(st, o, &id, err);
    if (!rc)
        rc = store_session_load(st, id, STORE_LOAD_READ, &s, err);
    if (rc)
        return rc;
    sessions_tell_skipped(out, s.n_skipped);
    if (o->json) {
        json_t *shown = shown_json(&s);
        rc = sessions_put_json(out, shown, s.n_path, err);
    } else {
        session_print(out, &s);
    }
    store_session_fini(&s);
    return rc;
}

/* ---- search ---------------------------------------------------------------------------- */

static json_t *
hit_json(const struct store_hit *h)
{
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o}", "session", (json_int_t)h->session, "title",
                     session_json_text(h->title, strlen(h->title)), "message",
                     h->msg ? json_integer(h->msg) : json_null(), "role",
                     h->msg ? json_string(store_role_name(h->role)) : json_null(), "snippet",
                     session_json_text(h->snippet, strlen(h->snippet)), "created",
                     session_json_time(h->created_ms));
}

/* Where the place that was found is a title, the line says so instead of a role. */
static void
hit_print(struct sessions_out *o, const struct store_hit *h)
{
    const char *role = h->msg ? store_role_name(h->role) : "title";
    if (!o->tty) {
        fprintf(o->f, "%" PRId64 "\t%" PRId64 "\t%s\t", h->session, h->msg, role);
        sessions_put(o, h->title, strlen(h->title), true);
        fputc('\t', o->f);
    } else {
        fprintf(o->f, "#%" PRId64 " ", h->session);
        sessions_put_cols(o, h->title, 0);
        fprintf(o->f, " (%s)\n    ", role);
    }
    sessions_put(o, h->snippet, strlen(h->snippet), true);
    fputc('\n', o->f);
}

static int
verb_search(struct store *st, const struct app_opts *o, struct sessions_out *out,
            struct ply_err *err)
{
    struct store_hits h;
    struct ply_buf query = {0};
    int rc = sessions_join(o, 0, &query, err);
    if (!rc)
        rc = store_search(st, query.v, (size_t)o->limit, &h, err);
    ply_buf_fini(&query);
    if (rc)
        return rc;
    json_t *all = o->json ? json_array() : NULL;
    for (size_t i = 0; i < h.n; i++) {
        if (all)
            json_array_append_new(all, hit_json(&h.v[i]));
        else
            hit_print(out, &h.v[i]);
    }
    if (o->json)
        rc = sessions_put_json(out, all, h.n, err);
    out->no_match = h.n == 0;
    store_hits_fini(&h);
    return rc;
}

/* ---- rename, rm ------------------------------------------------------------------------ */

static int
verb_rename(struct store *st, const struct app_opts *o, struct sessions_out *out,
            struct ply_err *err)
{
    struct ply_buf title = {0};
    int64_t id;
    int rc = store_session_find(st, o->args[0], STORE_FIND_EXACT, &id, err);
    if (!rc)
        rc = sessions_join(o, 1, &title, err);
    if (!rc)
        rc = store_session_rename(st, id, title.v, title.n, err);
    if (!rc) {
        fprintf(out->f, "#%" PRId64 " ", id);
        sessions_put(out, title.v, title.n, true);
        fputc('\n', out->f);
    }
    ply_buf_fini(&title);
    return rc;
}

/* The others are deleted though one is not there; the first fault is the answer. */
static int
verb_rm(struct store *st, const struct app_opts *o, struct sessions_out *out, struct ply_err *err)
{
    int first = PLY_OK;
    for (size_t i = 0; i < o->n_args; i++) {
        int64_t id;
        struct ply_err why = {0};
        int rc = store_session_find(st, o->args[i], STORE_FIND_EXACT, &id, &why);
        if (!rc)
            rc = store_session_delete(st, id, &why);
        if (!rc)
            fprintf(out->f, "#%" PRId64 " deleted\n", id);
        else if (!first)
            first = ply_fail(err, rc, "%s", why.msg);
        else
            sessions_tell(out, why.msg);
    }
    return first;
}

/* ---- all of them ----------------------------------------------------------------------- */

typedef int (*verb_fn)(struct store *st, const struct app_opts *o, struct sessions_out *out,
                       struct ply_err *err);

static verb_fn
verb_of(enum app_verb verb)
{
    switch (verb) {
    case APP_VERB_LS: return verb_ls;
    case APP_VERB_SHOW: return verb_show;
    case APP_VERB_SEARCH: return verb_search;
    case APP_VERB_RENAME: return verb_rename;
    case APP_VERB_RM: return verb_rm;
    case APP_VERB_EXPORT: return sessions_export;
    case APP_VERB_IMPORT: return sessions_import;
    default: return NULL;
    }
}

int
app_sessions_run(const struct app_opts *o, const char *db, FILE *out, FILE *errs)
{
    struct sessions_out to;
    struct store *st = NULL;
    struct ply_err err = {0};
    verb_fn verb = verb_of(o->verb);
    setlocale(LC_CTYPE, "");
    sessions_out_init(&to, out, errs);
    int rc = store_open(&st, db, STORE_BUSY_CLI_MS, &err);
    if (!rc)
        rc =
            verb ? verb(st, o, &to, &err) : ply_fail(&err, PLY_EINTERNAL, "no verb about sessions");
    store_close(&st);
    if (fflush(out) != 0 || ferror(out))
        rc = rc ? rc : ply_fail(&err, PLY_EIO, "cannot write the answer: %s", strerror(errno));
    if (rc)
        sessions_tell(&to, err.msg);
    return rc ? (int)app_exit_of(rc) : to.no_match ? APP_EXIT_FAILURE : APP_EXIT_OK;
}
