/* SPDX-License-Identifier: MIT
 * The engine thread: requests in order, failures as events, cancel, and a quick end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <string.h>

#include "app/worker.h"
#include "tests/app/turnfix.h"

static const struct ply_engine_opts opts = {.n_threads = 1, .kv_cache = PLY_KV_CACHE_RAM};
static const struct ply_msg hello = {.role = PLY_ROLE_USER, .text = "hello", .len = 5};

static struct worker *
start(void)
{
    struct worker *w;
    assert_int_equal(worker_new(&w, &(struct worker_opts){0}, NULL), 0);
    return w;
}

/* The next event, which must be of this kind. */
static void
expect(struct worker *w, enum worker_event_kind kind, struct worker_event **out)
{
    struct worker_event *ev = worker_wait(w);
    assert_int_equal(ev->kind, kind);
    if (out)
        *out = ev;
    else
        worker_event_free(&ev);
}

/* Events up to the end of the turn. */
static void
run_to_end(struct worker *w, uint64_t turn, struct worker_event **end)
{
    for (;;) {
        struct worker_event *ev = worker_wait(w);
        assert_int_equal(ev->turn, turn);
        if (ev->kind == WORKER_ENDED) {
            *end = ev;
            return;
        }
        worker_event_free(&ev);
    }
}

static void
test_turn(void **state)
{
    struct worker *w = start();
    struct worker_event *ev;
    struct pollfd p = {.fd = worker_fd(w), .events = POLLIN};
    assert_null(worker_take(w));
    assert_null(worker_info(w));
    worker_open(w, turnfix_model("llama-q8_0-bpe-chatml"), &opts);
    assert_true(worker_is_opening(w));
    assert_int_equal(poll(&p, 1, -1), 1);
    expect(w, WORKER_OPENED, NULL);
    assert_false(worker_is_opening(w));
    assert_non_null(worker_info(w));
    worker_render(w, 7, &hello, 1, PLY_CHAT_OPEN_REPLY);
    expect(w, WORKER_RENDERED, &ev);
    const size_t n = ev->n_prompt;
    assert_true(n > 5 && ev->turn == 7 && ev->err.code == 0);
    worker_event_free(&ev);
    const struct gen_params params = {.n_max = 4,
                                      .sampling = ply_sampling_default(worker_vocab(w))};
    worker_start(w, 7, &params);
    run_to_end(w, 7, &ev);
    assert_int_equal(ev->result.report.n_prompt, n);
    assert_true(ev->result.t_begun > 0 && ev->result.t_prefilled >= ev->result.t_begun);
    assert_true(ev->result.t_first >= ev->result.t_prefilled);
    assert_true(ev->result.t_last == ev->result.t_ids[ev->result.ids.n - 1]);
    worker_event_free(&ev);
    worker_free(&w);
    assert_null(w);
}

/* A model that cannot be opened is an event; with another one the thread goes on. */
static void
test_open_fails(void **state)
{
    struct worker *w = start();
    struct worker_event *ev;
    worker_open(w, "/nope/nothing.gguf", &opts);
    expect(w, WORKER_OPEN_FAILED, &ev);
    assert_int_equal(ev->err.code, PLY_ENOENT);
    worker_event_free(&ev);
    assert_null(worker_info(w));
    worker_render(w, 1, &hello, 1, 0);
    expect(w, WORKER_RENDERED, &ev);
    assert_int_equal(ev->err.code, PLY_ENOENT);
    worker_event_free(&ev);
    worker_open(w, turnfix_model("llama-q8_0-bpe-chatml"), &opts);
    expect(w, WORKER_OPENED, NULL);
    worker_free(&w);
}

/* While a model is replaced there is none: what the main thread might hold would be freed. */
static void
test_reopen(void **state)
{
    struct worker *w = start();
    worker_open(w, turnfix_model("llama-q8_0-bpe-chatml"), &opts);
    expect(w, WORKER_OPENED, NULL);
    worker_open(w, turnfix_model("llama-q8_0-bpe-none"), &opts);
    assert_null(worker_info(w));
    worker_open(w, turnfix_model("gemma3-q8_0-spm-gemma"), &opts);
    expect(w, WORKER_OPENED, NULL);
    assert_null(worker_info(w));
    expect(w, WORKER_OPENED, NULL);
    assert_string_equal(worker_info(w)->arch, "gemma3");
    worker_free(&w);
}

/* A cancel ends the turn it was meant for; one that comes too late does not hurt the next. */
static void
test_cancel(void **state)
{
    struct worker *w = start();
    struct worker_event *ev;
    worker_open(w, turnfix_model("llama-q8_0-bpe-chatml"), &opts);
    expect(w, WORKER_OPENED, NULL);
    struct gen_params params = {.n_max = GEN_NO_LIMIT,
                                .sampling = ply_sampling_default(worker_vocab(w))};
    params.n_max = 3;
    for (uint64_t turn = 1; turn <= 6; turn++) {
        const bool cancel = turn % 2 == 0;
        worker_render(w, turn, &hello, 1, PLY_CHAT_OPEN_REPLY);
        expect(w, WORKER_RENDERED, NULL);
        if (cancel)
            worker_cancel(w);
        worker_start(w, turn, &params);
        run_to_end(w, turn, &ev);
        assert_int_equal(ev->result.finish == GEN_CANCELLED, cancel);
        worker_event_free(&ev);
        worker_cancel(w); /* nothing runs any more */
    }
    worker_free(&w);
}

/* Ending in the middle of everything: nothing hangs, nothing leaks (the sanitizers look). */
static void
test_free_early(void **state)
{
    struct worker *w = start();
    worker_free(&w);
    w = start();
    worker_open(w, turnfix_model("llama-q8_0-bpe-chatml"), &opts);
    worker_free(&w);
    w = start();
    worker_open(w, turnfix_model("llama-q8_0-bpe-chatml"), &opts);
    expect(w, WORKER_OPENED, NULL);
    const char *const stops[] = {"never"};
    const struct gen_params params = {.n_max = 900,
                                      .stops = stops,
                                      .n_stops = 1,
                                      .sampling = ply_sampling_default(worker_vocab(w))};
    worker_render(w, 1, &hello, 1, PLY_CHAT_OPEN_REPLY);
    worker_start(w, 1, &params);
    expect(w, WORKER_RENDERED, NULL);
    worker_free(&w);
    worker_free(&w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turn),       cmocka_unit_test(test_open_fails),
        cmocka_unit_test(test_reopen),     cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_free_early),
    };
    return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
