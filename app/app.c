/* SPDX-License-Identifier: MIT
 * Putting the program together. */
#include "app/app.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "app/clock.h"
#include "app/input.h"
#include "app/log.h"
#include "app/mem.h"
#include "app/models.h"
#include "app/trace.h"

#define EVENTS_MAX 64 /* taken in one turn of the loop */

/* ---- the model --------------------------------------------------------------------------- */

static void
set(char **s, const char *value)
{
    if (store_string_set(s, value) != 0)
        abort();
}

/* A path that still holds when the conversation is continued from another folder. Takes path. */
static void
set_model_path(struct app *a, char *path)
{
    char *full = realpath(path, NULL);
    free(a->model_path);
    a->model_path = full ? full : app_xstrdup(path);
    free(path);
}

/* Which file: the command line's, else the conversation's, else the default. A conversation's
 * model that is not where it was is looked for by its name; if it is nowhere, loading tells. */
static int
choose_model(struct app *a, struct ply_err *err)
{
    const char *stored = a->chat.s.model_path;
    char *path = NULL;
    if (a->opts->model || !stored) {
        const int r = models_find(&a->paths, a->opts->model, &path, err);
        if (r != 0)
            return r;
    } else if (access(stored, R_OK) != 0) {
        const char *slash = strrchr(stored, '/');
        models_find(&a->paths, slash ? slash + 1 : stored, &path, NULL);
    }
    set_model_path(a, path ? path : app_xstrdup(stored));
    return PLY_OK;
}

static const char *
template_wanted(const struct app *a)
{
    if (a->opts->raw)
        return "raw";
    return a->opts->chat_template ? a->opts->chat_template : a->chat.s.template_name;
}

static int
ctx_wanted(const struct app *a)
{
    return a->opts->n_ctx ? a->opts->n_ctx : a->chat.s.n_ctx;
}

static void
load(struct app *a)
{
    const struct app_opts *o = a->opts;
    set(&a->template_name, template_wanted(a));
    a->n_ctx = ctx_wanted(a);
    const struct ply_engine_opts e = {.chat_template = a->template_name,
                                      .n_ctx = a->n_ctx,
                                      .n_threads = o->n_threads,
                                      .isa = o->isa,
                                      .kv_type = o->kv_type,
                                      .precision = o->precision,
                                      .kv_cache = o->kv_cache};
    a->loading = true;
    a->model_err = (struct ply_err){0};
    worker_open(a->worker, a->model_path, &e);
}

/* Defaults of the model, over them what the conversation had, over it the command line. */
static void
settle_sampling(struct app *a)
{
    struct store_session *s = &a->chat.s;
    if (!s->has_sampling) {
        s->sampling = ply_sampling_default(worker_vocab(a->worker));
        uint32_t seed = 0;
        if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
            seed = (uint32_t)app_now_ms();
        s->sampling.seed = seed;
        s->has_sampling = true;
    }
    app_opts_sampling(a->opts, &s->sampling);
}

/* The conversation goes on with the model that is loaded. */
static void
adopt_model(struct app *a)
{
    const struct ply_info *info = app_model(a);
    struct store_session *s = &a->chat.s;
    if (s->n_path > 0 && s->model_fp[0] && strcmp(s->model_fp, info->fingerprint) != 0)
        a->chat.model_changed = true;
    set(&s->model_path, a->model_path);
    set(&s->model_name, info->name);
    set(&s->template_name, a->template_name);
    memcpy(s->model_fp, info->fingerprint, sizeof(s->model_fp));
    s->n_ctx = a->n_ctx;
    settle_sampling(a);
}

static void
fail_model(struct app *a, const struct ply_err *err)
{
    if (err->code == PLY_ENOENT && a->chat.s.n_path > 0)
        ply_fail(&a->model_err, PLY_ENOENT,
                 "the model of this conversation is not there: '%s'; it can be read, and -m FILE "
                 "continues it with another",
                 a->model_path);
    else
        a->model_err = *err;
}

/* The answer to the last request to open a model. */
static void
on_model(struct app *a, const struct worker_event *ev)
{
    a->loading = worker_is_opening(a->worker);
    if (a->loading)
        return; /* another was asked for since */
    if (ev->kind == WORKER_OPEN_FAILED && a->model_before) {
        a->switch_err = ev->err;
        set_model_path(a, a->model_before);
        a->model_before = NULL;
        load(a);
        return;
    }
    free(a->model_before);
    a->model_before = NULL;
    a->chat.settings_changed = a->chat.has_run; /* its cache went with the engine */
    if (ev->kind == WORKER_OPENED)
        adopt_model(a);
    else
        fail_model(a, &ev->err);
    if (a->view.model)
        a->view.model(a->view.user);
}

static void
on_event(struct app *a, struct worker_event *ev)
{
    if (ev->kind == WORKER_OPENED || ev->kind == WORKER_OPEN_FAILED)
        on_model(a, ev);
    else
        turn_event(&a->turn, ev);
}

void
app_events(struct app *a)
{
    /* A bounded number: a fast engine must not keep signals and keys waiting. What is left keeps
     * the queue's descriptor readable. */
    struct worker_event *ev;
    for (int i = 0; i < EVENTS_MAX && (ev = worker_take(a->worker)); i++) {
        on_event(a, ev);
        worker_event_free(&ev);
    }
}

static void
wait_event(struct app *a)
{
    struct worker_event *ev = worker_wait(a->worker);
    on_event(a, ev);
    worker_event_free(&ev);
}

int
app_wait_model(struct app *a)
{
    while (a->loading)
        wait_event(a);
    return a->model_err.code ? a->model_err.code : a->switch_err.code;
}

const char *
app_model_fault(const struct app *a)
{
    return a->model_err.code ? a->model_err.msg : a->switch_err.msg;
}

void
app_wait_turn(struct app *a)
{
    while (turn_busy(&a->turn))
        wait_event(a);
}

int
app_model_open(struct app *a, const char *name, struct ply_err *err)
{
    char *path;
    const int r = models_find(&a->paths, name, &path, err);
    if (r != 0)
        return r;
    a->switch_err = (struct ply_err){0};
    if (app_model(a)) {
        free(a->model_before);
        a->model_before = app_xstrdup(a->model_path);
    }
    set_model_path(a, path);
    load(a);
    return PLY_OK;
}

/* ---- sessions ---------------------------------------------------------------------------- */

static int
system_from_opts(struct app *a, struct ply_err *err)
{
    if (a->opts->sys_file) {
        struct ply_buf text = {0};
        app_buf_puts(&text, "");
        const int r = input_read_file(a->opts->sys_file, CHAT_TEXT_MAX, &text, err);
        if (r == 0)
            chat_system_set(&a->chat, text.v);
        ply_buf_fini(&text);
        return r;
    }
    if (a->opts->sys)
        chat_system_set(&a->chat, a->opts->sys);
    return PLY_OK;
}

/* The session that the command line names. 0: a new one. */
static int
named_session(struct app *a, int64_t *id, struct ply_err *err)
{
    const struct app_opts *o = a->opts;
    *id = 0;
    if (o->session) {
        struct ply_err why = {0};
        const int r = store_session_find(a->store, o->session, STORE_FIND_NAMED, id, &why);
        if (r == 0)
            return PLY_OK;
        if (r != PLY_ENOENT)
            return ply_fail(err, r, "%s", why.msg);
        a->chat.title_wanted = app_xstrdup(o->session);
        return PLY_OK;
    }
    if (o->verb == APP_VERB_RESUME && o->n_args > 0) {
        struct ply_buf key = {0};
        for (size_t i = 0; i < o->n_args; i++)
            app_buf_printf(&key, "%s%s", i ? " " : "", o->args[i]);
        const int r = store_session_find(a->store, key.v, STORE_FIND_ANY, id, err);
        ply_buf_fini(&key);
        return r;
    }
    if (o->verb == APP_VERB_RESUME || o->continue_last) {
        const int r = store_session_last(a->store, id, o->verb == APP_VERB_RESUME ? err : NULL);
        return r == PLY_ENOENT && o->continue_last ? PLY_OK : r;
    }
    return PLY_OK;
}

/* Load what the conversation wants, unless it is loaded. */
static void
load_wanted(struct app *a)
{
    const char *before = a->template_name ? a->template_name : "", *now = template_wanted(a);
    char *path = a->model_path;
    a->model_path = NULL;
    const int r = choose_model(a, &a->model_err);
    const bool same = r == 0 && app_model(a) && path && strcmp(path, a->model_path) == 0 &&
                      strcmp(before, now ? now : "") == 0 && a->n_ctx == ctx_wanted(a);
    free(path);
    if (same)
        adopt_model(a);
    else if (r == 0)
        load(a);
}

int
app_session_open(struct app *a, int64_t id, struct ply_err *err)
{
    const int r = chat_open(&a->chat, id, err);
    if (r != 0)
        return r;
    load_wanted(a);
    if (a->view.session)
        a->view.session(a->view.user);
    return PLY_OK;
}

void
app_session_new(struct app *a)
{
    chat_new(&a->chat);
    if (app_model(a))
        adopt_model(a);
    if (a->view.session)
        a->view.session(a->view.user);
}

int
app_session_delete(struct app *a, int64_t id, struct ply_err *err)
{
    const bool open = id == a->chat.s.id;
    if (open)
        app_session_new(a);
    return store_session_delete(a->store, id, err);
}

int
app_session_rename(struct app *a, int64_t id, const char *title, struct ply_err *err)
{
    struct chat *c = &a->chat;
    if (id == 0 && c->s.id == 0) {
        set(&c->title_wanted, title);
        return PLY_OK;
    }
    const bool open = id == 0 || id == c->s.id;
    const int r = store_session_rename(a->store, id ? id : c->s.id, title, strlen(title), err);
    if (r == 0 && open) {
        set(&c->s.title, title);
        c->s.title_by_user = true;
    }
    return r;
}

const char *
app_banner(const struct app *a)
{
    const struct ply_info *info = app_model(a);
    return info && info->base_model ? "base model: continues text" : "";
}

/* ---- start and end ----------------------------------------------------------------------- */

static int
start_worker(struct app *a, struct ply_err *err)
{
    struct worker_opts w = {.want_hash = a->opts->hash};
    int r = PLY_OK;
    if (a->opts->force_ids)
        r = input_id_lines(a->opts->force_ids, &w.forced.lines, &w.forced.n, err);
    if (r == 0 && a->opts->trace)
        r = trace_open(&w.trace, a->opts->trace, err);
    if (r == 0)
        return worker_new(&a->worker, &w, err);
    for (size_t i = 0; i < w.forced.n; i++)
        ply_ids_fini(&w.forced.lines[i]);
    free(w.forced.lines);
    return r;
}

int
app_open(struct app *a, const struct app_opts *o, enum app_keep keep, const struct app_view *view,
         struct ply_err *err)
{
    int64_t id = 0;
    *a = (struct app){.opts = o, .view = *view};
    int r = app_paths_init(&a->paths, err);
    if (r == 0 && keep == APP_KEEP_SESSIONS)
        r = store_open(&a->store, a->paths.db, STORE_BUSY_CLI_MS, err);
    chat_init(&a->chat, a->store);
    if (r == 0 && a->store)
        r = named_session(a, &id, err);
    if (r == 0 && id)
        r = chat_open(&a->chat, id, err);
    if (r == 0)
        r = system_from_opts(a, err);
    if (r == 0)
        log_open(&a->paths);
    if (r == 0)
        r = choose_model(a, err);
    if (r == 0)
        r = start_worker(a, err);
    if (r != 0)
        return r;
    const struct turn_opts t = {.n_max = o->n_max < 0 ? GEN_NO_LIMIT : (size_t)o->n_max,
                                .stops = o->stops,
                                .n_stops = o->n_stops,
                                .cache_off = o->kv_cache == PLY_KV_CACHE_OFF,
                                .want_hash = o->hash};
    turn_init(&a->turn, &a->chat, a->worker, &t, &view->turn);
    load(a);
    return PLY_OK;
}

void
app_close(struct app *a)
{
    if (a->worker) {
        turn_stop(&a->turn);
        app_wait_turn(a);
    }
    if (a->store)
        store_busy_set(a->store, STORE_BUSY_CLI_MS); /* the last chance to store: worth waiting */
    chat_fini(&a->chat);
    worker_free(&a->worker);
    store_close(&a->store);
    log_close();
    app_paths_fini(&a->paths);
    free(a->model_path);
    free(a->template_name);
    free(a->model_before);
}
