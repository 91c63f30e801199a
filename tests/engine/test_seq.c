/* SPDX-License-Identifier: MIT
 * What a sequence reuses and what it evaluates: the engine's part of the cases of users of other
 * programs, B39 to B47, B53, B63 and B64. Models are tiny; gemma3's window is 96 tokens, so that
 * 200 tokens stand for what is 1,500 on the real one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "engine/base/num.h"
#include "tests/engine/engutil.h"

#define LEN_MAX 400u

static const char *const models[] = {"llama-q4_1-bpe-chatml-smol", "gemma3-q4_k_m-spm-gemma"};

struct fixture {
    struct ply_engine *e;
    struct ply_seq *s;
    int32_t ids[LEN_MAX];
    struct ply_sync_report r;
};

static void
setup(struct fixture *f, const char *name)
{
    f->e = open_tiny(name, (struct ply_engine_opts){.n_threads = 2, .kv_cache = PLY_KV_CACHE_RAM});
    f->s = new_seq(f->e);
    fill_ids(f->e, f->ids, LEN_MAX, 21);
}

static void
teardown(struct fixture *f)
{
    ply_seq_free(&f->s);
    ply_engine_close(&f->e);
}

static void
sync_to(struct fixture *f, const int32_t *ids, size_t n)
{
    assert_int_equal(ply_seq_sync(f->s, ids, n, NULL, &f->r, NULL), PLY_OK);
    assert_int_equal(ply_seq_len(f->s), n);
    assert_memory_equal(ply_seq_ids(f->s), ids, n * sizeof(*ids));
    assert_int_equal(f->r.n_prompt, n);
    assert_int_equal(f->r.reused_live + f->r.reused_ram + f->r.reused_disk + f->r.evaluated, n);
    assert_int_equal(f->r.diverged_at, n - f->r.evaluated);
}

static void
expect(const struct fixture *f, size_t reused, size_t evaluated, enum ply_reason reason)
{
    assert_int_equal(f->r.reused_live, reused);
    assert_int_equal(f->r.evaluated, evaluated);
    assert_string_equal(ply_reason_name(f->r.reason), ply_reason_name(reason));
}

/* The logits that s has now are a cold run's over the same ids. */
static void
assert_cold(const struct fixture *f)
{
    struct ply_seq *cold = new_seq(f->e);
    assert_int_equal(ply_seq_sync(cold, ply_seq_ids(f->s), ply_seq_len(f->s), NULL, NULL, NULL),
                     PLY_OK);
    assert_memory_equal(ply_seq_logits(f->s), ply_seq_logits(cold), n_vocab(f->e) * sizeof(float));
    ply_seq_free(&cold);
}

/* Feed n ids one by one, as a reply is. */
static void
reply(struct fixture *f, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_int_equal(ply_seq_step(&f->s, &ids[i], 1, NULL), PLY_OK);
}

static void
a_turn_evaluates_its_new_ids_alone(void **unused)
{
    for (size_t m = 0; m < PLY_COUNT(models); m++) {
        struct fixture f;
        setup(&f, models[m]);
        assert_null(ply_seq_logits(f.s));
        sync_to(&f, f.ids, 130);
        expect(&f, 0, 130, PLY_REASON_COLD);
        assert_cold(&f);
        sync_to(&f, f.ids, 200);
        expect(&f, 130, 70, PLY_REASON_FULL);
        assert_cold(&f);
        teardown(&f);
    }
}

/* B39: back to an exact prefix of what is cached; never the old logits. */
static void
a_prefix_of_the_cache_gets_fresh_logits(void **unused)
{
    struct fixture f;
    setup(&f, models[0]);
    sync_to(&f, f.ids, 104);
    sync_to(&f, f.ids, 100);
    expect(&f, 99, 1, PLY_REASON_FULL);
    assert_cold(&f);
    teardown(&f);
}

/* B40, B41, B46, B64: the last reply again, five times, after a reply of 100 ids: one id is
 * evaluated each time, the old reply is not in the sequence, the logits are a cold run's. */
static void
regenerating_evaluates_one_id(void **unused)
{
    for (size_t m = 0; m < PLY_COUNT(models); m++) {
        struct fixture f;
        setup(&f, models[m]);
        sync_to(&f, f.ids, 190);
        for (size_t i = 0; i < 5; i++) {
            reply(&f, f.ids + 200, 100);
            sync_to(&f, f.ids, 190);
            expect(&f, 189, 1, PLY_REASON_FULL);
            assert_cold(&f);
        }
        teardown(&f);
    }
}

/* B42, B44, B45: a reply's ids are kept as they were sampled; the next turn evaluates the last of
 * them, which was not fed, and its own. The counts do not depend on the reply's length. */
static void
a_reply_is_not_read_again(void **unused)
{
    static const size_t replies[] = {10, 150};
    for (size_t i = 0; i < PLY_COUNT(replies); i++) {
        const size_t n = replies[i];
        struct fixture f;
        setup(&f, models[0]);
        sync_to(&f, f.ids, 50);
        reply(&f, f.ids + 50, n - 1);
        assert_int_equal(ply_seq_len(f.s), 50 + n - 1);
        sync_to(&f, f.ids, 50 + n + 7);
        expect(&f, 50 + n - 1, 8, PLY_REASON_FULL);
        assert_cold(&f);
        teardown(&f);
    }
}

/* B47: back by little, by much and by the window's size and its neighbours, then on. */
static void
rolling_back_past_the_window_is_a_cold_run(void **unused)
{
    static const size_t back[] = {20, 95, 96, 97, 250, 299};
    for (size_t i = 0; i < PLY_COUNT(back); i++) {
        struct fixture f;
        setup(&f, models[1]);
        sync_to(&f, f.ids, 300);
        const size_t keep = 300 - back[i];
        f.ids[keep] = (f.ids[keep] + 1) % (int32_t)n_vocab(f.e);
        sync_to(&f, f.ids, keep + 2);
        expect(&f, keep, 2, PLY_REASON_EDITED);
        for (size_t t = 0; t < 32; t++) {
            reply(&f, f.ids + 310 + t, 1);
            if (t % 8 == 7)
                assert_cold(&f);
        }
        teardown(&f);
    }
}

struct rows {
    size_t n, n_live;
    int32_t ids[LEN_MAX];
};

static void
note_row(void *user, const struct ply_seq *s, size_t pos, int32_t id, enum ply_source source)
{
    struct rows *rows = user;
    assert_int_equal(pos, rows->n); /* no gap, no repeat */
    assert_true(source == PLY_SOURCE_LIVE || source == PLY_SOURCE_EVALUATED);
    rows->n_live += source == PLY_SOURCE_LIVE;
    rows->ids[rows->n++] = id;
}

/* B43: positions and ids of every row, reused or evaluated. */
static void
every_row_is_traced_at_its_place(void **unused)
{
    struct fixture f;
    struct rows rows = {0};
    setup(&f, models[0]);
    ply_engine_trace(f.e, note_row, &rows);
    sync_to(&f, f.ids, 70);
    assert_true(rows.n == 70 && rows.n_live == 0);
    reply(&f, f.ids + 70, 5);
    assert_int_equal(rows.n, 75);
    rows = (struct rows){0};
    f.ids[60] = (f.ids[60] + 1) % (int32_t)n_vocab(f.e);
    sync_to(&f, f.ids, 130);
    assert_true(rows.n == 130 && rows.n_live == 60);
    assert_memory_equal(rows.ids, f.ids, 130 * sizeof(int32_t));
    ply_engine_trace(f.e, NULL, NULL);
    sync_to(&f, f.ids, 10);
    assert_int_equal(rows.n, 130);
    teardown(&f);
}

/* B63: a sequence that was only evaluated, with no logits wanted, has none; sync gives them. */
static void
logits_after_a_restore(void **unused)
{
    struct fixture f;
    setup(&f, models[0]);
    struct ply_item item = {.seq = f.s, .ids = f.ids, .n_ids = 80};
    assert_int_equal(ply_eval(f.e, &item, 1, NULL), PLY_OK);
    assert_null(ply_seq_logits(f.s));
    sync_to(&f, f.ids, 80);
    expect(&f, 79, 1, PLY_REASON_FULL);
    assert_cold(&f);
    ply_seq_rollback(f.s, 80);
    assert_null(ply_seq_logits(f.s));
    teardown(&f);
}

/* B53: too long, no ids, strange ids: the sequence stays as it was. */
static void
sync_refuses_before_it_changes_anything(void **unused)
{
    struct fixture f;
    struct ply_err err = {0};
    f.e = open_tiny(models[0], (struct ply_engine_opts){.n_ctx = 64, .kv_cache = PLY_KV_CACHE_RAM});
    f.s = new_seq(f.e);
    fill_ids(f.e, f.ids, LEN_MAX, 21);
    sync_to(&f, f.ids, 20);
    assert_int_equal(ply_seq_sync(f.s, f.ids + 1, 400, NULL, &f.r, &err), PLY_EFULL);
    assert_string_equal(err.msg, "too long: 400 tokens, room for 64 (-c)");
    assert_int_equal(f.r.n_prompt, 400);
    assert_int_equal(f.r.evaluated, 0);
    assert_int_equal(ply_seq_sync(f.s, f.ids, 0, NULL, NULL, NULL), PLY_EINVAL);
    int32_t bad[2] = {f.ids[0], -5};
    assert_int_equal(ply_seq_sync(f.s, bad, 2, NULL, NULL, NULL), PLY_EINVAL);
    assert_int_equal(ply_seq_len(f.s), 20);
    sync_to(&f, f.ids, 64);
    expect(&f, 20, 44, PLY_REASON_FULL);
    teardown(&f);
}

static void
reuse_can_be_switched_off(void **unused)
{
    struct fixture f;
    setup(&f, models[0]);
    sync_to(&f, f.ids, 70);
    const struct ply_sync_opts cold = {.cold = true};
    assert_int_equal(ply_seq_sync(f.s, f.ids, 80, &cold, &f.r, NULL), PLY_OK);
    expect(&f, 0, 80, PLY_REASON_DISABLED);
    sync_to(&f, f.ids, 90);
    expect(&f, 80, 10, PLY_REASON_FULL);
    teardown(&f);

    f.e = open_tiny(models[0], (struct ply_engine_opts){.kv_cache = PLY_KV_CACHE_OFF});
    f.s = new_seq(f.e);
    sync_to(&f, f.ids, 70);
    sync_to(&f, f.ids, 71);
    expect(&f, 0, 71, PLY_REASON_DISABLED);
    teardown(&f);
}

static void
reasons_have_names(void **unused)
{
    assert_string_equal(ply_reason_name(PLY_REASON_COLD), "cold");
    assert_string_equal(ply_reason_name(PLY_REASON_FULL), "full");
    assert_string_equal(ply_reason_name(PLY_REASON_EDITED), "edited");
    assert_string_equal(ply_reason_name(PLY_REASON_SYSTEM_CHANGED), "system_changed");
    assert_string_equal(ply_reason_name(PLY_REASON_MODEL_CHANGED), "model_changed");
    assert_string_equal(ply_reason_name(PLY_REASON_SETTINGS_CHANGED), "settings_changed");
    assert_string_equal(ply_reason_name(PLY_REASON_EVICTED), "evicted");
    assert_string_equal(ply_reason_name(PLY_REASON_WINDOW_DROPPED), "window_dropped");
    assert_string_equal(ply_reason_name(PLY_REASON_VERIFY_FAILED), "verify_failed");
    assert_string_equal(ply_reason_name(PLY_REASON_DISABLED), "disabled");
}

/* ---- forks ---- */

/* Four candidates of one prompt share its blocks; each writes to copies of its own. */
static void
forks_share_until_they_write(void **unused)
{
    enum { N = 4 };
    for (size_t m = 0; m < PLY_COUNT(models); m++) {
        struct fixture f;
        struct ply_seq *c[N];
        struct ply_kv_stats st;
        int32_t ids[N];
        setup(&f, models[m]);
        sync_to(&f, f.ids, 150); /* two full blocks and a part */
        for (size_t i = 0; i < N; i++) {
            assert_int_equal(ply_seq_fork(f.s, &c[i], NULL), PLY_OK);
            assert_int_equal(ply_seq_len(c[i]), 150);
            assert_memory_equal(ply_seq_logits(c[i]), ply_seq_logits(f.s),
                                n_vocab(f.e) * sizeof(float));
        }
        ply_engine_kv_stats(f.e, &st);
        assert_int_equal(st.n_blocks_live, 3);
        for (size_t t = 0; t < 20; t++) {
            for (size_t i = 0; i < N; i++)
                ids[i] = f.ids[200 + 20 * i + t];
            assert_int_equal(ply_seq_step(c, ids, N, NULL), PLY_OK);
        }
        ply_engine_kv_stats(f.e, &st);
        assert_int_equal(st.n_blocks_live, 3 + N);
        assert_int_equal(ply_seq_len(f.s), 150); /* the parent saw nothing of it */
        assert_cold(&f);
        for (size_t i = 0; i < N; i++) {
            struct fixture g = {.e = f.e, .s = c[i]};
            assert_memory_equal(ply_seq_ids(c[i]) + 150, f.ids + 200 + 20 * i,
                                20 * sizeof(int32_t));
            assert_cold(&g);
            ply_seq_free(&c[i]);
        }
        ply_engine_kv_stats(f.e, &st);
        assert_int_equal(st.n_blocks_live, 3);
        teardown(&f);
    }
}

/* A parent may go first; who writes into a shared full block after rollback copies it. */
static void
forks_outlive_their_parent(void **unused)
{
    struct fixture f;
    struct ply_seq *child;
    setup(&f, models[0]);
    sync_to(&f, f.ids, 140);
    assert_int_equal(ply_seq_fork(f.s, &child, NULL), PLY_OK);
    f.ids[30] = (f.ids[30] + 1) % (int32_t)n_vocab(f.e);
    sync_to(&f, f.ids, 140); /* rewrites rows 30.. of blocks that the child holds */
    assert_cold(&f);
    ply_seq_free(&f.s);
    f.s = child;
    reply(&f, f.ids + 300, 1);
    assert_cold(&f);
    teardown(&f);
}

/* ---- progress and cancel ---- */

struct watch {
    struct ply_engine *e;
    size_t n_calls, last, total, stop_at;
};

static void
on_progress(void *user, size_t n, size_t total)
{
    struct watch *w = user;
    assert_true(n >= w->last && n <= total);
    w->n_calls++;
    w->last = n;
    w->total = total;
    if (n >= w->stop_at)
        ply_engine_cancel(w->e);
}

/* A sync that is stopped keeps what it has evaluated; sent again it goes on from there. */
static void
a_stopped_sync_keeps_a_prefix(void **unused)
{
    struct fixture f;
    setup(&f, models[0]);
    struct watch w = {.e = f.e, .stop_at = 50};
    const struct ply_sync_opts opts = {.progress = on_progress, .user = &w, .chunk = 50};
    struct ply_err err = {0};
    ply_engine_cancel(f.e); /* before it began */
    assert_int_equal(ply_seq_sync(f.s, f.ids, 300, &opts, &f.r, &err), PLY_ECANCELLED);
    assert_int_equal(f.r.evaluated, 0);
    assert_int_equal(ply_seq_len(f.s), 0);
    ply_engine_cancel_clear(f.e);
    assert_int_equal(ply_seq_sync(f.s, f.ids, 300, &opts, &f.r, NULL), PLY_ECANCELLED);
    assert_int_equal(f.r.evaluated, 50);
    assert_int_equal(ply_seq_len(f.s), 50);
    assert_memory_equal(ply_seq_ids(f.s), f.ids, 50 * sizeof(int32_t));
    assert_null(ply_seq_logits(f.s));
    ply_engine_cancel_clear(f.e);
    sync_to(&f, f.ids, 300);
    expect(&f, 50, 250, PLY_REASON_FULL);
    assert_cold(&f);
    teardown(&f);
}

static void
progress_ends_with_everything(void **unused)
{
    struct fixture f;
    setup(&f, models[1]);
    struct watch w = {.e = f.e, .stop_at = SIZE_MAX};
    const struct ply_sync_opts opts = {.progress = on_progress, .user = &w};
    assert_int_equal(ply_seq_sync(f.s, f.ids, 100, &opts, NULL, NULL), PLY_OK);
    w.last = 0; /* a sync of its own counts from nothing again */
    assert_int_equal(ply_seq_sync(f.s, f.ids, 400, &opts, NULL, NULL), PLY_OK);
    assert_true(w.n_calls >= 2 && w.last == 300 && w.total == 300);
    teardown(&f);
}

/* A NaN that is wanted stops a sync or a step; the sequence goes on without the id. */
static void
a_step_to_nan_is_an_error(void **unused)
{
    struct fixture f;
    const int32_t nan_id = 100;
    struct ply_err err = {0};
    setup(&f, "llama-q8_0-bpe-chatml-nan100");
    for (size_t i = 0; i < LEN_MAX; i++)
        f.ids[i] += f.ids[i] == nan_id;
    sync_to(&f, f.ids, 30);
    assert_int_equal(ply_seq_step(&f.s, &nan_id, 1, &err), PLY_ENUMERIC);
    assert_int_equal(ply_seq_len(f.s), 30);
    assert_null(ply_seq_logits(f.s));
    sync_to(&f, f.ids, 31);
    expect(&f, 30, 1, PLY_REASON_FULL);
    assert_cold(&f);
    teardown(&f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_evaluates_its_new_ids_alone),
        cmocka_unit_test(a_prefix_of_the_cache_gets_fresh_logits),
        cmocka_unit_test(regenerating_evaluates_one_id),
        cmocka_unit_test(a_reply_is_not_read_again),
        cmocka_unit_test(rolling_back_past_the_window_is_a_cold_run),
        cmocka_unit_test(every_row_is_traced_at_its_place),
        cmocka_unit_test(logits_after_a_restore),
        cmocka_unit_test(sync_refuses_before_it_changes_anything),
        cmocka_unit_test(reuse_can_be_switched_off),
        cmocka_unit_test(reasons_have_names),
        cmocka_unit_test(forks_share_until_they_write),
        cmocka_unit_test(forks_outlive_their_parent),
        cmocka_unit_test(a_stopped_sync_keeps_a_prefix),
        cmocka_unit_test(progress_ends_with_everything),
        cmocka_unit_test(a_step_to_nan_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
