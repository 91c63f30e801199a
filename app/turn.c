/* SPDX-License-Identifier: MIT
 * The turn as a transaction. */
#include "app/turn.h"

#include <stdlib.h>
#include <string.h>

#include "app/clock.h"
#include "app/mem.h"
#include "engine/base/num.h"

#define SAVE_EVERY_MS 900.0 /* "at least once a second" with a margin */

void
turn_init(struct turn *t, struct chat *chat, struct worker *w, const struct turn_opts *opts,
          const struct turn_view *view)
{
    *t = (struct turn){.chat = chat, .worker = w, .opts = *opts, .view = *view};
}

/* ---- telling the front end --------------------------------------------------------------- */

static void
changed(struct turn *t)
{
    if (t->view.changed)
        t->view.changed(t->view.user);
}

static void
notice(struct turn *t, const char *line)
{
    if (t->view.notice)
        t->view.notice(t->view.user, line);
}

static void
set_state(struct turn *t, enum turn_state state)
{
    t->state = state;
    changed(t);
}

/* Whoever saved last: a draft's save may be the one that succeeds. */
static void
tell_saved_again(struct turn *t)
{
    if (!t->chat->told || t->chat->incomplete)
        return;
    t->chat->told = false;
    notice(t, "saved again: nothing is missing");
}

static void
save(struct turn *t)
{
    struct ply_err err = {0};
    chat_save(t->chat, &err);
    t->t_saved = app_now_ms();
    tell_saved_again(t);
    if (t->chat->moved)
        notice(t, "another parley has gone on from the same place: both are kept, as branches");
    t->chat->moved = false;
    if (err.code) {
        struct ply_buf b = {0};
        app_buf_printf(
            &b,
            "not saved: %s; the chat goes on, and what is missing is saved as soon as it can be",
            err.msg);
        notice(t, b.v);
        ply_buf_fini(&b);
    }
}

/* ---- beginning --------------------------------------------------------------------------- */

static void
begin(struct turn *t, double t_start)
{
    struct chat *c = t->chat;
    unsigned flags;
    t->number++;
    t->began = false;
    t->cold = t->cold_next;
    t->cold_next = false;
    t->t_start = t_start;
    t->t_shown = t->t_first = t->t_last = -1;
    t->n_prompt = t->n_done = t->n_total = t->n_ids = 0;
    struct ply_msg *msgs = chat_msgs(c, worker_info(t->worker), t->n_path, &t->n_msgs, &flags);
    worker_render(t->worker, t->number, msgs, t->n_msgs, flags | PLY_CHAT_OPEN_REPLY);
    free(msgs);
    set_state(t, TURN_RESTORE);
}

static int
ready(const struct turn *t, struct ply_err *err)
{
    if (turn_busy(t))
        return ply_fail(err, PLY_EINVAL, "a reply is being written; stop it first");
    if (worker_is_opening(t->worker))
        return ply_fail(err, PLY_EINVAL, "the model is still being loaded");
    if (!worker_info(t->worker))
        return ply_fail(err, PLY_EINVAL,
                        "no model is loaded: the conversation can be read, not continued");
    return PLY_OK;
}

int
turn_send(struct turn *t, const char *text, size_t len, double t_start, struct ply_err *err)
{
    const int r = ready(t, err);
    if (r != 0)
        return r;
    if (len > CHAT_TEXT_MAX)
        return ply_fail(err, PLY_EINVAL, "too long: %zu MiB, a message has room for %zu", len >> 20,
                        CHAT_TEXT_MAX >> 20);
    if (!store_session_push(&t->chat->s, PLY_ROLE_USER, text, len))
        abort();
    t->n_path = t->chat->s.n_path;
    t->again = false;
    t->candidate = 0;
    begin(t, t_start);
    return PLY_OK;
}

/* How many answers there are: the next one draws its own numbers. */
static uint64_t
count_answers(const struct turn *t, size_t user)
{
    const struct chat *c = t->chat;
    int64_t *ids;
    size_t n;
    if (user + 1 >= c->s.n_path)
        return 0;
    const int64_t id = c->s.path[user + 1].id;
    if (!c->store || id == 0 || store_siblings(c->store, c->s.id, id, &ids, &n, NULL) != 0)
        return t->candidate + 1;
    free(ids);
    return n;
}

int
turn_again(struct turn *t, double t_start, struct ply_err *err)
{
    const int r = ready(t, err);
    size_t user;
    if (r != 0)
        return r;
    if (!chat_last_user(t->chat, &user))
        return ply_fail(err, PLY_EINVAL, "there is no message to answer yet");
    t->n_path = user + 1;
    t->again = true;
    t->candidate = count_answers(t, user);
    begin(t, t_start);
    return PLY_OK;
}

void
turn_stop(struct turn *t)
{
    if (!turn_busy(t) || t->state == TURN_STOPPING)
        return;
    worker_cancel(t->worker);
    set_state(t, TURN_STOPPING);
}

/* ---- the reply --------------------------------------------------------------------------- */

/* The answered message is the path's last, and the reply follows it. */
static struct store_msg *
reply(struct turn *t)
{
    struct store_session *s = &t->chat->s;
    if (t->began)
        return &s->path[s->n_path - 1];
    const struct ply_info *info = worker_info(t->worker);
    t->began = true;
    if (t->again && s->n_path > t->n_path)
        store_session_cut(s, t->n_path);
    struct store_msg *m = store_session_push(s, PLY_ROLE_ASSISTANT, "", 0);
    if (!m)
        abort();
    m->state = STORE_WRITING;
    m->has_sampling = s->has_sampling;
    m->sampling = s->sampling;
    memcpy(m->model_fp, info->fingerprint, sizeof(m->model_fp));
    strncpy(m->template_name, info->chat_template, sizeof(m->template_name) - 1);
    return m;
}

static void
note_ids(struct turn *t, size_t n)
{
    if (n == 0)
        return;
    t->t_last = app_now_ms();
    if (t->n_ids == 0)
        t->t_first = t->t_last;
    t->n_ids += n;
}

static void
on_text(struct turn *t, const struct worker_event *ev)
{
    struct store_msg *m = reply(t);
    app_buf_append(&m->text, ev->text.v, ev->text.n);
    app_ids_append(&m->ids, ev->ids.v, ev->ids.n);
    m->dirty = true;
    note_ids(t, ev->ids.n);
    if (t->state != TURN_STOPPING)
        t->state = TURN_GENERATE;
    if (ev->text.n > 0) {
        if (t->view.text)
            t->view.text(t->view.user, ev->text.v, ev->text.n);
        if (t->t_shown < 0)
            t->t_shown = app_now_ms();
    }
    changed(t);
}

/* ---- the end ----------------------------------------------------------------------------- */

static int
by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median and the 95th percentile of the times between two ids. */
static void
fill_itl(const struct gen_result *g, struct report *r)
{
    r->itl_ms = r->itl_p95_ms = -1;
    if (g->ids.n < 2)
        return;
    const size_t n = g->ids.n - 1;
    double *gaps = app_xcalloc(n, sizeof(*gaps));
    for (size_t i = 0; i < n; i++)
        gaps[i] = g->t_ids[i + 1] - g->t_ids[i];
    qsort(gaps, n, sizeof(*gaps), by_value);
    r->itl_ms = gaps[n / 2];
    r->itl_p95_ms = gaps[n * 95 / 100];
    free(gaps);
}

static void
fill_times(const struct turn *t, const struct gen_result *g, struct report *r)
{
    const double first = t->t_shown >= 0 ? t->t_shown : g->t_first;
    /* Storing the message is in it too, so that the parts make up the whole. */
    r->tokenize_ms =
        g->t_begun > 0 ? g->t_begun - g->compare_spent_ms - t->t_start : t->tokenize_ms;
    r->restore_ms = g->report.restore_ms;
    r->prefill_ms = g->report.prefill_ms;
    r->n_predicted = g->ids.n;
    if (g->t_first > 0) {
        r->ttft_ms = first - t->t_start - g->compare_spent_ms;
        r->decode_ms = first - g->t_prefilled;
        r->predicted_ms = g->t_last - g->t_first;
    }
    r->tok_s = report_rate(r->n_predicted, r->predicted_ms);
    fill_itl(g, r);
}

static void
fill_report(struct turn *t, const struct worker_event *ev, struct report *r)
{
    const struct gen_result *g = &ev->result;
    *r = (struct report){
        .finish = g->finish,
        .error = g->finish == GEN_ERROR ? g->err.msg : NULL,
        .text = g->text.v,
        .len = g->text.n,
        .ids = g->ids.v,
        .n_ids = g->ids.n,
        .n_prompt = t->n_prompt,
        .live = g->report.reused_live,
        .ram = g->report.reused_ram,
        .disk = g->report.reused_disk,
        .evaluated = g->report.evaluated,
        .session = t->chat->s.id,
        .has_hash = t->opts.want_hash && g->t_first > 0,
        .prompt_hash = g->prompt_hash,
    };
    fill_times(t, g, r);
    report_reason(r, &g->report, t->chat, ev->diverged_msg, t->n_msgs, t->opts.cache_off);
    if (g->compare_ms >= 0 && g->t_first > 0) {
        r->compared = true;
        r->warm_ttft_ms = r->ttft_ms - r->prefill_ms - r->restore_ms + g->compare_ms;
        r->warm_evaluated = g->compare_evaluated;
        r->warm_equal = g->compare_equal;
    }
}

static void
fill_stats(const struct report *r, struct store_stats *s)
{
    *s = (struct store_stats){.known = true,
                              .prompt_toks = (int64_t)r->n_prompt,
                              .cached_toks = (int64_t)(r->live + r->ram + r->disk),
                              .evaluated_toks = (int64_t)r->evaluated,
                              .drafted_toks = (int64_t)r->drafted,
                              .predicted_toks = (int64_t)r->n_predicted,
                              .ttft_ms = r->ttft_ms,
                              .tokenize_ms = r->tokenize_ms,
                              .restore_ms = r->restore_ms,
                              .prefill_ms = r->prefill_ms,
                              .decode_ms = r->decode_ms,
                              .predicted_ms = r->predicted_ms};
    strncpy(s->reuse_reason, ply_reason_name(r->reason), sizeof(s->reuse_reason) - 1);
}

static enum store_finish
stored_finish(enum gen_finish f)
{
    static const enum store_finish of[] = {[GEN_STOP] = STORE_FINISH_STOP,
                                           [GEN_LENGTH] = STORE_FINISH_LENGTH,
                                           [GEN_CANCELLED] = STORE_FINISH_CANCELLED,
                                           [GEN_ERROR] = STORE_FINISH_ERROR};
    return of[f];
}

/* Nothing was said: the conversation is what it was, and the message the draft. */
static void
take_back(struct turn *t)
{
    struct store_session *s = &t->chat->s;
    if (!t->again) {
        const struct store_msg *m = &s->path[s->n_path - 1];
        chat_draft_set(t->chat, m->text.v, m->text.n);
        if (store_session_pop(s) != 0)
            abort();
    }
    save(t);
}

static void
keep(struct turn *t, const struct gen_result *g, struct report *r)
{
    struct store_msg *m = reply(t);
    app_buf_set(&m->text, g->text.v, g->text.n);
    app_ids_set(&m->ids, g->ids.v, g->ids.n);
    m->state = STORE_DONE;
    m->finish = stored_finish(g->finish);
    fill_stats(r, &m->stats);
    m->dirty = true;
    save(t);
    r->message = t->chat->s.path[t->chat->s.n_path - 1].id;
}

static void
on_ended(struct turn *t, struct worker_event *ev)
{
    struct chat *c = t->chat;
    const struct gen_result *g = &ev->result;
    struct report r;
    fill_report(t, ev, &r);
    const bool nothing = g->ids.n == 0 && (g->finish == GEN_CANCELLED || g->finish == GEN_ERROR);
    if (nothing)
        take_back(t);
    else
        keep(t, g, &r);
    r.session = c->s.id;
    if (g->t_prefilled > 0) {
        c->has_run = true;
        c->system_changed = c->settings_changed = c->model_changed = false;
    }
    set_state(t, TURN_IDLE);
    if (t->view.ended)
        t->view.ended(t->view.user, &r);
}

/* ---- between rendering and evaluating ---------------------------------------------------- */

static void
refuse(struct turn *t, const struct ply_err *err, size_t n_room)
{
    struct store_session *s = &t->chat->s;
    /* A draft that was saved meanwhile has stored the message with it. */
    const bool stored = !t->again && s->path[s->n_path - 1].id != 0;
    if (!t->again && store_session_pop(s) != 0)
        abort();
    if (stored)
        save(t);
    t->cold_next = t->cold;
    set_state(t, TURN_IDLE);
    if (t->view.refused)
        t->view.refused(t->view.user, err, t->n_prompt, n_room);
}

/* Stopped before it was evaluated: as if the engine had been stopped at its first layer. */
static void
end_unstarted(struct turn *t)
{
    struct worker_event ev = {.kind = WORKER_ENDED,
                              .result = {.finish = GEN_CANCELLED, .compare_ms = -1}};
    ev.result.report.reason = PLY_REASON_FULL;
    on_ended(t, &ev);
}

static void
on_rendered(struct turn *t, const struct worker_event *ev)
{
    const struct store_session *s = &t->chat->s;
    struct ply_err err = ev->err;
    const size_t n_ctx = (size_t)worker_info(t->worker)->n_ctx;
    const size_t n_room = n_ctx - 1; /* the reply needs one at least */
    t->tokenize_ms = ev->tokenize_ms;
    t->n_prompt = ev->n_prompt;
    if (!err.code && ev->n_prompt > n_room)
        ply_fail(&err, PLY_EFULL, "too long: %zu tokens, room for %zu (context %zu, see -c)",
                 ev->n_prompt, n_room, n_ctx);
    if (err.code) {
        refuse(t, &err, n_room);
        return;
    }
    if (t->state == TURN_STOPPING) {
        end_unstarted(t);
        return;
    }
    /* Sent: what was the draft is a message now. */
    chat_draft_set(t->chat, "", 0);
    if (t->view.sent)
        t->view.sent(t->view.user);
    save(t);
    changed(t);
    const struct gen_params p = {.sampling = s->sampling,
                                 .candidate = t->candidate,
                                 .n_max = t->opts.n_max,
                                 .stops = t->opts.stops,
                                 .n_stops = t->opts.n_stops,
                                 .cold = t->opts.cache_off,
                                 .compare = t->cold && !t->opts.cache_off};
    worker_start(t->worker, t->number, &p);
}

void
turn_event(struct turn *t, struct worker_event *ev)
{
    if (!turn_busy(t) || ev->turn != t->number)
        return;
    switch (ev->kind) {
    case WORKER_RENDERED: on_rendered(t, ev); break;
    case WORKER_PREFILL:
        t->n_done = ev->n;
        t->n_total = ev->n_total;
        if (t->state == TURN_RESTORE)
            t->state = TURN_PREFILL;
        changed(t);
        break;
    case WORKER_TEXT: on_text(t, ev); break;
    case WORKER_ENDED: on_ended(t, ev); break;
    case WORKER_OPENED:
    case WORKER_OPEN_FAILED: break;
    }
}

int
turn_tick(struct turn *t, double now)
{
    const bool speaks = turn_busy(t) && t->began;
    tell_saved_again(t);
    if (!t->chat->store || (!speaks && !t->chat->incomplete))
        return -1;
    const double left = t->t_saved + SAVE_EVERY_MS - now;
    if (left > 0)
        return (int)left + 1;
    if (!store_session_is_saved(&t->chat->s))
        save(t);
    return (int)SAVE_EVERY_MS;
}

double
turn_rate(const struct turn *t)
{
    return report_rate(t->n_ids, t->t_last - t->t_first);
}
