/* SPDX-License-Identifier: MIT */
#include "tests/app/turnfix.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/clock.h"
#include "app/mem.h"

const char *
turnfix_model(const char *name)
{
    static char path[512];
    const char *dir = getenv("PLY_TEST_MODELS");
    if (!dir)
        fail_msg("PLY_TEST_MODELS is not set: run through meson test");
    snprintf(path, sizeof(path), "%s/%s.gguf", dir, name);
    return path;
}

static void
on_text(void *user, const char *text, size_t len)
{
    struct turnfix *f = user;
    app_buf_append(&f->text, text, len);
    if (++f->n_texts == f->stop_at_text)
        turn_stop(&f->turn);
}

static void
on_sent(void *user)
{
    struct turnfix *f = user;
    f->n_sent++;
    if (f->stop_when_sent)
        turn_stop(&f->turn);
}

static void
on_ended(void *user, const struct report *r)
{
    struct turnfix *f = user;
    assert_false(turn_busy(&f->turn));
    f->n_ended++;
    f->report = *r;
    app_buf_set(&f->report_text, r->text, r->len);
    app_ids_set(&f->report_ids, r->ids, r->n_ids);
    f->report.text = f->report_text.v;
    f->report.ids = f->report_ids.v;
    snprintf(f->error, sizeof(f->error), "%s", r->error ? r->error : "");
    f->report.error = f->error;
    /* The law of counting holds for every turn whose prompt was evaluated. */
    if (r->n_predicted > 0)
        assert_int_equal(r->live + r->ram + r->disk + r->evaluated + r->drafted, r->n_prompt);
}

static void
on_refused(void *user, const struct ply_err *err, size_t n_prompt, size_t n_room)
{
    struct turnfix *f = user;
    assert_false(turn_busy(&f->turn));
    f->n_refused++;
    f->refusal = *err;
    f->room = n_room;
}

static void
on_notice(void *user, const char *line)
{
    struct turnfix *f = user;
    app_buf_printf(&f->notices, "%s\n", line);
}

static void
adopt_model(struct turnfix *f)
{
    const struct ply_info *info = worker_info(f->worker);
    struct store_session *s = &f->chat.s;
    s->sampling = ply_sampling_default(worker_vocab(f->worker));
    s->sampling.seed = 1;
    s->has_sampling = true;
    memcpy(s->model_fp, info->fingerprint, sizeof(s->model_fp));
}

void
turnfix_open(struct turnfix *f, const struct turnfix_opts *opts)
{
    static const struct turn_view view = {.text = on_text,
                                          .sent = on_sent,
                                          .ended = on_ended,
                                          .refused = on_refused,
                                          .notice = on_notice};
    struct worker_opts w = {.want_hash = true};
    struct turn_view v = view;
    *f = (struct turnfix){.dir = "/tmp/parley-turn-XXXXXX"};
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->db, sizeof(f->db), "%s/parley.db", f->dir);
    if (!opts->no_store)
        assert_int_equal(store_open(&f->store, f->db, 60, NULL), 0);
    w.forced.lines = app_xcalloc(opts->n_forced, sizeof(*w.forced.lines));
    w.forced.n = opts->n_forced;
    for (size_t i = 0; i < opts->n_forced; i++)
        app_ids_append(&w.forced.lines[i], opts->forced[i].v, opts->forced[i].n);
    assert_int_equal(worker_new(&f->worker, &w, NULL), 0);
    struct ply_engine_opts e = opts->engine;
    /* Two threads on a busy machine mostly wait for each other. */
    e.n_threads = 1;
    e.kv_cache = opts->turn.cache_off ? PLY_KV_CACHE_OFF : PLY_KV_CACHE_RAM;
    worker_open(f->worker, turnfix_model(opts->model), &e);
    struct worker_event *ev = worker_wait(f->worker);
    if (ev->kind != WORKER_OPENED)
        fail_msg("%s: %s", opts->model, ev->err.msg);
    worker_event_free(&ev);
    chat_init(&f->chat, f->store);
    adopt_model(f);
    v.user = f;
    struct turn_opts t = opts->turn;
    if (t.n_max == 0)
        t.n_max = 12;
    t.want_hash = true;
    turn_init(&f->turn, &f->chat, f->worker, &t, &v);
}

void
turnfix_close(struct turnfix *f)
{
    chat_fini(&f->chat);
    worker_free(&f->worker);
    store_close(&f->store);
    ply_buf_fini(&f->text);
    ply_buf_fini(&f->notices);
    ply_buf_fini(&f->report_text);
    ply_ids_fini(&f->report_ids);
    char path[128];
    static const char *const names[] = {"parley.db", "parley.db-wal", "parley.db-shm"};
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/%s", f->dir, names[i]);
        unlink(path);
    }
    rmdir(f->dir);
}

void
turnfix_wait(struct turnfix *f)
{
    while (turn_busy(&f->turn)) {
        struct worker_event *ev = worker_wait(f->worker);
        turn_event(&f->turn, ev);
        worker_event_free(&ev);
    }
}

const struct report *
turnfix_say(struct turnfix *f, const char *text)
{
    struct ply_err err = {0};
    f->text.n = 0;
    f->n_texts = 0;
    if (turn_send(&f->turn, text, strlen(text), app_now_ms(), &err) != 0)
        fail_msg("%s", err.msg);
    turnfix_wait(f);
    return &f->report;
}

const struct report *
turnfix_again(struct turnfix *f)
{
    struct ply_err err = {0};
    f->text.n = 0;
    f->n_texts = 0;
    if (turn_again(&f->turn, app_now_ms(), &err) != 0)
        fail_msg("%s", err.msg);
    turnfix_wait(f);
    return &f->report;
}

struct ply_ids
turnfix_ids(struct turnfix *f, const char *text)
{
    struct ply_ids ids = {0};
    assert_int_equal(ply_encode(worker_vocab(f->worker), text, strlen(text), &ids, NULL), 0);
    return ids;
}

void
turnfix_stored(struct turnfix *f, struct store_session *out)
{
    struct store *st = NULL;
    *out = (struct store_session){0};
    assert_int_equal(store_open(&st, f->db, 1000, NULL), 0);
    assert_int_equal(store_session_load(st, f->chat.s.id, STORE_LOAD_READ, out, NULL), 0);
    store_close(&st);
}
