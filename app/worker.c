/* SPDX-License-Identifier: MIT
 * The engine thread and its two queues. */
#include "app/worker.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "app/clock.h"
#include "app/mem.h"
#include "app/queue.h"
#include "app/trace.h"

enum request_kind { REQUEST_OPEN, REQUEST_RENDER, REQUEST_START, REQUEST_QUIT };

struct request {
    enum request_kind kind;
    uint64_t turn;
    char *path; /* OPEN */
    char *chat_template;
    struct ply_engine_opts engine;
    struct ply_msg *msgs; /* RENDER: [n_msgs], text and ids are ours */
    size_t n_msgs;
    unsigned flags;
    struct gen_params params; /* START */
    char **stops;             /* [params.n_stops] */
};

struct worker {
    pthread_t thread;
    struct queue requests, events;
    size_t n_opening;     /* main thread: requests to open that have not been answered */
    pthread_mutex_t lock; /* of the next two */
    struct ply_engine *engine;
    struct ply_kv_stats stats;
    /* From here on the engine thread's alone. */
    struct ply_seq *seq;
    struct ply_sampler *sampler;
    struct request *rendered; /* the RENDER that START refers to */
    struct ply_ids prompt;
    struct worker_forced forced;
    size_t n_replies;
    struct trace *trace;
    bool want_hash;
    uint64_t turn;
};

/* ---- requests and events ----------------------------------------------------------------- */

static void
request_free(struct request *r)
{
    if (!r)
        return;
    free(r->path);
    free(r->chat_template);
    for (size_t i = 0; i < r->n_msgs; i++) {
        free((void *)r->msgs[i].text);
        free((void *)r->msgs[i].ids);
    }
    free(r->msgs);
    for (size_t i = 0; i < r->params.n_stops; i++)
        free(r->stops[i]);
    free(r->stops);
    free(r);
}

void
worker_event_free(struct worker_event **ev)
{
    if (!*ev)
        return;
    ply_buf_fini(&(*ev)->text);
    ply_ids_fini(&(*ev)->ids);
    gen_result_fini(&(*ev)->result);
    free(*ev);
    *ev = NULL;
}

static struct request *
request_new(enum request_kind kind, uint64_t turn)
{
    struct request *r = app_xcalloc(1, sizeof(*r));
    r->kind = kind;
    r->turn = turn;
    return r;
}

static struct worker_event *
event_new(const struct worker *w, enum worker_event_kind kind)
{
    struct worker_event *ev = app_xcalloc(1, sizeof(*ev));
    ev->kind = kind;
    ev->turn = w->turn;
    return ev;
}

static void *
copy(const void *p, size_t n)
{
    void *c = app_xcalloc(n, 1);
    if (n > 0)
        memcpy(c, p, n);
    return c;
}

/* ---- the engine thread ------------------------------------------------------------------- */

/* The pointer is changed by the engine thread alone, under the lock: the main thread may want
 * to cancel while the engine is being closed. */
static void
set_engine(struct worker *w, struct ply_engine *e)
{
    pthread_mutex_lock(&w->lock);
    w->engine = e;
    pthread_mutex_unlock(&w->lock);
}

static void
close_engine(struct worker *w)
{
    struct ply_engine *e = w->engine;
    set_engine(w, NULL);
    ply_sampler_free(&w->sampler);
    ply_seq_free(&w->seq);
    ply_engine_close(&e);
    request_free(w->rendered);
    w->rendered = NULL;
}

static void
note_stats(struct worker *w)
{
    struct ply_kv_stats st;
    ply_engine_kv_stats(w->engine, &st);
    pthread_mutex_lock(&w->lock);
    w->stats = st;
    pthread_mutex_unlock(&w->lock);
}

static void
do_open(struct worker *w, const struct request *r)
{
    struct worker_event *ev = event_new(w, WORKER_OPENED);
    struct ply_engine *e = NULL;
    close_engine(w);
    if (ply_engine_open(&e, r->path, &r->engine, &ev->err) == 0 &&
        ply_seq_new(e, &w->seq, &ev->err) == 0 &&
        ply_sampler_new(ply_engine_vocab(e), &w->sampler, &ev->err) == 0) {
        if (w->trace)
            trace_attach(w->trace, e);
        set_engine(w, e);
        note_stats(w);
    } else {
        ply_seq_free(&w->seq);
        ply_engine_close(&e);
        ev->kind = WORKER_OPEN_FAILED;
    }
    queue_push(&w->events, ev);
}

/* Encoding a text that cannot fit may take long; that it cannot is known by its length. */
static int
check_length(const struct worker *w, const struct request *r, size_t *n_prompt, struct ply_err *err)
{
    const size_t n_ctx = (size_t)ply_engine_info(w->engine)->n_ctx;
    const struct ply_vocab *v = ply_engine_vocab(w->engine);
    size_t n_min = 0;
    for (size_t i = 0; i < r->n_msgs; i++)
        n_min += r->msgs[i].ids ? r->msgs[i].n_ids : ply_encode_min(v, r->msgs[i].len);
    if (n_min <= n_ctx)
        return PLY_OK;
    *n_prompt = n_min;
    return ply_fail(err, PLY_EFULL,
                    "too long: at least %zu tokens, room for %zu (context %zu, see -c)", n_min,
                    n_ctx - 1, n_ctx);
}

/* Takes r over: START needs its messages. */
static void
do_render(struct worker *w, struct request *r)
{
    w->turn = r->turn;
    struct worker_event *ev = event_new(w, WORKER_RENDERED);
    const struct ply_engine *e = w->engine;
    request_free(w->rendered);
    w->rendered = r;
    w->prompt.n = 0;
    const double t = app_now_ms();
    if (!e)
        ply_fail(&ev->err, PLY_ENOENT, "no model is loaded");
    else if (check_length(w, r, &ev->n_prompt, &ev->err) == 0 &&
             ply_chat_render(ply_engine_vocab(e), r->msgs, r->n_msgs, r->flags, &w->prompt,
                             &ev->err) == 0)
        ev->n_prompt = w->prompt.n;
    ev->tokenize_ms = app_now_ms() - t;
    queue_push(&w->events, ev);
}

/* The message that holds position pos of what was rendered: the first that ends behind it. */
static size_t
message_at(const struct worker *w, size_t pos)
{
    const struct request *r = w->rendered;
    const struct ply_vocab *v = ply_engine_vocab(w->engine);
    struct ply_ids ids = {0};
    size_t lo = 0, hi = r->n_msgs;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        ids.n = 0;
        if (ply_chat_render(v, r->msgs, mid + 1, r->flags & PLY_CHAT_NO_SYSTEM, &ids, NULL) != 0)
            break;
        if (ids.n > pos)
            hi = mid;
        else
            lo = mid + 1;
    }
    ply_ids_fini(&ids);
    return lo;
}

static void
say_progress(void *user, size_t n, size_t n_total)
{
    struct worker *w = user;
    struct worker_event *ev = event_new(w, WORKER_PREFILL);
    ev->n = n;
    ev->n_total = n_total;
    queue_push(&w->events, ev);
}

static void
say_text(void *user, const char *text, size_t len, const int32_t *ids, size_t n_ids)
{
    struct worker *w = user;
    struct worker_event *ev = event_new(w, WORKER_TEXT);
    app_buf_append(&ev->text, text, len);
    app_ids_append(&ev->ids, ids, n_ids);
    queue_push(&w->events, ev);
}

static void
do_start(struct worker *w, struct request *r)
{
    struct worker_event *ev = event_new(w, WORKER_ENDED);
    const struct gen_hooks hooks = {.user = w, .progress = say_progress, .text = say_text};
    const bool forced = w->n_replies < w->forced.n;
    r->params.stops = (const char *const *)r->stops;
    r->params.forced = forced ? &w->forced.lines[w->n_replies] : NULL;
    r->params.want_hash = w->want_hash;
    if (w->trace)
        trace_request(w->trace, w->prompt.n);
    gen_run(w->engine, w->seq, w->sampler, w->prompt.v, w->prompt.n, &r->params, &hooks,
            &ev->result);
    /* A turn that was stopped before its reply began is not one of the process's replies. */
    if (ev->result.t_prefilled > 0)
        w->n_replies++;
    if (ev->result.report.reason == PLY_REASON_EDITED)
        ev->diverged_msg = message_at(w, ev->result.report.diverged_at);
    if (w->trace)
        trace_flush(w->trace);
    note_stats(w);
    queue_push(&w->events, ev);
}

static void *
run(void *user)
{
    struct worker *w = user;
    for (;;) {
        struct request *r = queue_pop(&w->requests);
        switch (r->kind) {
        case REQUEST_OPEN: do_open(w, r); break;
        case REQUEST_RENDER: do_render(w, r); continue;
        case REQUEST_START: do_start(w, r); break;
        case REQUEST_QUIT:
            request_free(r);
            close_engine(w);
            return NULL;
        }
        request_free(r);
    }
}

/* ---- the main thread --------------------------------------------------------------------- */

/* The engine thread takes no signals: they are the main thread's. */
static int
start_thread(struct worker *w, struct ply_err *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const int r = pthread_create(&w->thread, NULL, run, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r == 0 ? PLY_OK : ply_fail(err, PLY_EIO, "cannot start a thread: %s", strerror(r));
}

static void
discard(struct worker *w)
{
    struct worker_event *ev;
    while ((ev = queue_try_pop(&w->events)))
        worker_event_free(&ev);
    queue_fini(&w->events);
    queue_fini(&w->requests);
    for (size_t i = 0; i < w->forced.n; i++)
        ply_ids_fini(&w->forced.lines[i]);
    free(w->forced.lines);
    ply_ids_fini(&w->prompt);
    trace_close(&w->trace);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

int
worker_new(struct worker **out, const struct worker_opts *opts, struct ply_err *err)
{
    struct worker *w = app_xcalloc(1, sizeof(*w));
    *out = NULL;
    w->requests.fd = w->events.fd = -1;
    w->forced = opts->forced;
    w->trace = opts->trace;
    w->want_hash = opts->want_hash;
    pthread_mutex_init(&w->lock, NULL);
    int r = queue_init(&w->requests, err);
    if (r == 0)
        r = queue_init(&w->events, err);
    if (r == 0)
        r = start_thread(w, err);
    if (r != 0) {
        discard(w);
        return r;
    }
    *out = w;
    return PLY_OK;
}

void
worker_free(struct worker **w)
{
    if (!*w)
        return;
    worker_cancel(*w);
    queue_push(&(*w)->requests, request_new(REQUEST_QUIT, 0));
    pthread_join((*w)->thread, NULL);
    discard(*w);
    *w = NULL;
}

int
worker_fd(const struct worker *w)
{
    return queue_fd(&w->events);
}

static struct worker_event *
taken(struct worker *w, struct worker_event *ev)
{
    if (ev && (ev->kind == WORKER_OPENED || ev->kind == WORKER_OPEN_FAILED))
        w->n_opening--;
    return ev;
}

struct worker_event *
worker_take(struct worker *w)
{
    return taken(w, queue_try_pop(&w->events));
}

struct worker_event *
worker_wait(struct worker *w)
{
    return taken(w, queue_pop(&w->events));
}

bool
worker_is_opening(const struct worker *w)
{
    return w->n_opening > 0;
}

/* While a model is being opened the one before it may be closed at any moment. */
static struct ply_engine *
get_engine(struct worker *w)
{
    if (w->n_opening > 0)
        return NULL;
    pthread_mutex_lock(&w->lock);
    struct ply_engine *e = w->engine;
    pthread_mutex_unlock(&w->lock);
    return e;
}

const struct ply_info *
worker_info(struct worker *w)
{
    const struct ply_engine *e = get_engine(w);
    return e ? ply_engine_info(e) : NULL;
}

const struct ply_vocab *
worker_vocab(struct worker *w)
{
    const struct ply_engine *e = get_engine(w);
    return e ? ply_engine_vocab(e) : NULL;
}

struct ply_kv_stats
worker_kv_stats(struct worker *w)
{
    pthread_mutex_lock(&w->lock);
    const struct ply_kv_stats st = w->stats;
    pthread_mutex_unlock(&w->lock);
    return st;
}

void
worker_open(struct worker *w, const char *path, const struct ply_engine_opts *opts)
{
    struct request *r = request_new(REQUEST_OPEN, 0);
    r->path = app_xstrdup(path);
    r->engine = *opts;
    if (opts->chat_template)
        r->engine.chat_template = r->chat_template = app_xstrdup(opts->chat_template);
    w->n_opening++;
    queue_push(&w->requests, r);
}

void
worker_render(struct worker *w, uint64_t turn, const struct ply_msg *msgs, size_t n, unsigned flags)
{
    struct request *r = request_new(REQUEST_RENDER, turn);
    r->msgs = app_xcalloc(n, sizeof(*r->msgs));
    r->n_msgs = n;
    r->flags = flags;
    for (size_t i = 0; i < n; i++) {
        r->msgs[i] = msgs[i];
        r->msgs[i].text = copy(msgs[i].text, msgs[i].len);
        r->msgs[i].ids = msgs[i].ids ? copy(msgs[i].ids, msgs[i].n_ids * sizeof(int32_t)) : NULL;
    }
    pthread_mutex_lock(&w->lock);
    if (w->engine)
        ply_engine_cancel_clear(w->engine);
    pthread_mutex_unlock(&w->lock);
    queue_push(&w->requests, r);
}

void
worker_start(struct worker *w, uint64_t turn, const struct gen_params *params)
{
    struct request *r = request_new(REQUEST_START, turn);
    r->params = *params;
    r->stops = app_xcalloc(params->n_stops, sizeof(*r->stops));
    for (size_t i = 0; i < params->n_stops; i++)
        r->stops[i] = app_xstrdup(params->stops[i]);
    queue_push(&w->requests, r);
}

void
worker_cancel(struct worker *w)
{
    pthread_mutex_lock(&w->lock);
    if (w->engine)
        ply_engine_cancel(w->engine);
    pthread_mutex_unlock(&w->lock);
}
