/* SPDX-License-Identifier: MIT
 * The turn as a transaction, on tiny models: what is counted, what is stored, and what is taken
 * back when it ends early. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "app/clock.h"
#include "tests/app/turnfix.h"

#define CHATML "llama-q8_0-bpe-chatml"

/* A later turn evaluates its new tokens alone. The last id of a reply that -n ended is new to the
 * cache: it was drawn and not fed. */
static void
check_counting(const char *model)
{
    struct turnfix f;
    turnfix_open(&f, &(struct turnfix_opts){.model = model});
    size_t known = 0;
    for (int i = 0; i < 4; i++) {
        const struct report *r = turnfix_say(&f, i % 2 ? "ok" : "tell me about gold and finches");
        assert_int_equal(r->live, known);
        assert_int_equal(r->reason, i == 0 ? PLY_REASON_COLD : PLY_REASON_FULL);
        const bool fed_all = r->finish == GEN_STOP;
        const bool has_end =
            r->n_ids > 0 && ply_chat_is_end(worker_vocab(f.worker), r->ids[r->n_ids - 1]);
        known = r->n_prompt + r->n_ids - (!fed_all || has_end);
        assert_true(r->ttft_ms >= 0 && r->predicted_ms >= 0);
    }
    turnfix_close(&f);
}

static void
test_counting(void **state)
{
    check_counting(CHATML);
    check_counting("gemma3-q8_0-spm-gemma");
    check_counting("llama-q8_0-spm-llama2");
    check_counting("llama-q8_0-bpe-none"); /* the transcript */
}

/* B44: what a turn costs does not depend on how long the last reply was. */
static void
test_b44_long_reply(void **state)
{
    size_t evaluated[2];
    for (int i = 0; i < 2; i++) {
        struct turnfix f;
        turnfix_open(&f, &(struct turnfix_opts){.model = CHATML, .turn = {.n_max = i ? 90 : 10}});
        f.chat.s.sampling.temp = 2;
        turnfix_say(&f, "go on");
        assert_int_equal(f.report.finish, GEN_LENGTH);
        evaluated[i] = turnfix_say(&f, "ok")->evaluated;
        turnfix_close(&f);
    }
    assert_int_equal(evaluated[0], evaluated[1]);
}

/* B40, B41, B64: the same prompt again costs one token, says the same at temperature 0, and the
 * old reply stays as an alternative that is not fed. */
static void
test_again(void **state)
{
    struct turnfix f;
    struct store_session s;
    turnfix_open(&f, &(struct turnfix_opts){.model = CHATML});
    f.chat.s.sampling.temp = 0;
    turnfix_say(&f, "hello");
    const size_t n_prompt = f.report.n_prompt;
    const uint64_t hash = f.report.prompt_hash;
    char first[256];
    assert_true(f.report.len < sizeof(first));
    memcpy(first, f.report.text, f.report.len + 1);
    for (int i = 0; i < 5; i++) {
        const struct report *r = turnfix_again(&f);
        assert_int_equal(r->n_prompt, n_prompt);
        assert_int_equal(r->live, n_prompt - 1);
        assert_int_equal(r->evaluated, 1);
        assert_int_equal(r->prompt_hash, hash);
        assert_string_equal(r->text, first);
        assert_int_equal(f.chat.s.n_path, 2);
    }
    turnfix_stored(&f, &s);
    assert_int_equal(s.n_path, 2);
    int64_t *ids;
    size_t n;
    assert_int_equal(store_siblings(f.store, f.chat.s.id, f.chat.s.path[1].id, &ids, &n, NULL), 0);
    assert_int_equal(n, 6);
    free(ids);
    store_session_fini(&s);
    turnfix_close(&f);
}

/* With variety each answer draws its own numbers, though the seed is one. */
static void
test_again_differs(void **state)
{
    struct turnfix f;
    turnfix_open(&f, &(struct turnfix_opts){.model = CHATML});
    f.chat.s.sampling.temp = 2;
    f.chat.s.sampling.top_k = 0;
    f.chat.s.sampling.top_p = 1;
    f.chat.s.sampling.min_p = 0;
    turnfix_say(&f, "hello");
    const int32_t first = f.report.ids[0], second = f.report.ids[1];
    turnfix_again(&f);
    assert_true(f.report.ids[0] != first || f.report.ids[1] != second);
    turnfix_close(&f);
}

/* B53: too long is said with both numbers before anything is stored, and the next turn works. */
static void
test_b53_refused(void **state)
{
    struct turnfix f;
    char words[2001];
    turnfix_open(&f, &(struct turnfix_opts){.model = CHATML, .engine = {.n_ctx = 64}});
    for (size_t i = 0; i < sizeof(words) - 1; i++)
        words[i] = i % 5 == 4 ? ' ' : (char)('a' + i % 7);
    words[sizeof(words) - 1] = '\0';
    struct ply_err err = {0};
    assert_int_equal(turn_send(&f.turn, words, strlen(words), app_now_ms(), &err), 0);
    turnfix_wait(&f);
    assert_int_equal(f.n_refused, 1);
    assert_int_equal(f.n_sent + f.n_ended, 0);
    assert_int_equal(f.refusal.code, PLY_EFULL);
    assert_non_null(strstr(f.refusal.msg, "room for 63"));
    assert_int_equal(f.room, 63);
    assert_int_equal(f.chat.s.n_path, 0);
    assert_int_equal(f.chat.s.id, 0);
    turnfix_say(&f, "hi");
    assert_int_equal(f.n_ended, 1);
    assert_int_equal(f.chat.s.n_path, 2);
    turnfix_close(&f);
}

/* The context is full in the middle of a reply: it ends by length, and nothing breaks. */
static void
test_full_while_generating(void **state)
{
    struct turnfix f;
    turnfix_open(&f, &(struct turnfix_opts){.model = CHATML,
                                            .engine = {.n_ctx = 40},
                                            .turn = {.n_max = GEN_NO_LIMIT}});
    f.chat.s.sampling.temp = 2;
    const struct report *r = turnfix_say(&f, "hi");
    if (r->finish == GEN_LENGTH)
        assert_int_equal(r->n_prompt + r->n_ids, 41); /* the last id needs no row of its own */
    else
        assert_int_equal(r->finish, GEN_STOP);
    turnfix_close(&f);
}

/* Stopped before its first id, a message leaves the tree and is the draft again. */
static void
check_taken_back(bool when_sent)
{
    struct turnfix f;
    struct store_session s;
    turnfix_open(&f, &(struct turnfix_opts){.model = CHATML});
    turnfix_say(&f, "first");
    f.stop_when_sent = when_sent;
    struct ply_err err = {0};
    assert_int_equal(turn_send(&f.turn, "second", 6, app_now_ms(), &err), 0);
    if (!when_sent)
        turn_stop(&f.turn);
    turnfix_wait(&f);
    assert_int_equal(f.report.finish, GEN_CANCELLED);
    assert_int_equal(f.report.n_ids, 0);
    assert_int_equal(f.report.message, 0);
    assert_int_equal(f.n_sent, when_sent ? 2 : 1);
    assert_int_equal(f.chat.s.n_path, 2);
    turnfix_stored(&f, &s);
    assert_int_equal(s.n_path, 2);
    assert_string_equal(s.draft, "second");
    store_session_fini(&s);
    f.stop_when_sent = false;
    turnfix_say(&f, "third");
    assert_int_equal(f.chat.s.n_path, 4);
    turnfix_stored(&f, &s);
    assert_string_equal(s.draft ? s.draft : "", "");
    store_session_fini(&s);
    turnfix_close(&f);
}

static void
test_taken_back(void **state)
{
    check_taken_back(false);
    check_taken_back(true);
}

/* A /regen that is stopped at once leaves the old reply where it was. */
static void
test_again_taken_back(void **state)
{
    struct turnfix f;
    turnfix_open(&f, &(struct turnfix_opts){.model = CHATML});
    turnfix_say(&f, "first");
    const int64_t reply = f.report.message;
    f.stop_when_sent = true;
    turnfix_again(&f);
    assert_int_equal(f.report.finish, GEN_CANCELLED);
    assert_int_equal(f.chat.s.n_path, 2);
    assert_int_equal(f.chat.s.path[1].id, reply);
    turnfix_close(&f);
}

/* B42: stopped in the middle, what was said is kept, and the next turn reads on from it. */
static void
test_stopped(void **state)
{
    struct turnfix f;
    struct store_session s;
    turnfix_open(&f, &(struct turnfix_opts){.model = CHATML, .turn = {.n_max = 200}});
    f.chat.s.sampling.temp = 2;
    f.stop_at_text = 3;
    turnfix_say(&f, "go on");
    assert_int_equal(f.report.finish, GEN_CANCELLED);
    assert_true(f.report.n_ids >= 3 && f.report.n_ids < 200);
    assert_int_equal(f.text.n, f.report.len);
    turnfix_stored(&f, &s);
    assert_int_equal(s.path[1].finish, STORE_FINISH_CANCELLED);
    assert_int_equal(s.path[1].ids.n, f.report.n_ids);
    assert_memory_equal(s.path[1].ids.v, f.report.ids, f.report.n_ids * sizeof(int32_t));
    store_session_fini(&s);
    const size_t known = f.report.n_prompt + f.report.n_ids - 1;
    f.stop_at_text = 0;
    assert_int_equal(turnfix_say(&f, "ok")->live, known);
    turnfix_close(&f);
}

/* While a reply is written it is stored about once a second. */
static void
test_partial_is_stored(void **state)
{
    struct turnfix f;
    struct store_session s;
    turnfix_open(&f, &(struct turnfix_opts){.model = CHATML, .turn = {.n_max = 60}});
    f.chat.s.sampling.temp = 2;
    assert_int_equal(turn_tick(&f.turn, app_now_ms()), -1);
    assert_int_equal(turn_send(&f.turn, "go on", 5, app_now_ms(), NULL), 0);
    while (f.turn.n_ids < 5) {
        struct worker_event *ev = worker_wait(f.worker);
        turn_event(&f.turn, ev);
        worker_event_free(&ev);
    }
    assert_true(turn_tick(&f.turn, app_now_ms()) > 0);
    turnfix_stored(&f, &s);
    assert_int_equal(s.n_path, 1);
    store_session_fini(&s);
    assert_true(turn_tick(&f.turn, app_now_ms() + 1000) > 0);
    turnfix_stored(&f, &s);
    assert_int_equal(s.n_path, 2);
    assert_int_equal(s.path[1].finish, STORE_FINISH_INTERRUPTED); /* as a crash would leave it */
    assert_true(s.path[1].ids.n >= 4);
    store_session_fini(&s);
    turnfix_wait(&f);
    turnfix_close(&f);
}

/* B84: logits that are not numbers from the first token on: nothing was said, the message is the
 * draft again, and the session goes on. In the middle of a reply: test_gen. */
static void
test_b84_numeric(void **state)
{
    struct turnfix f;
    turnfix_open(&f, &(struct turnfix_opts){.model = "llama-q8_0-bpe-chatml-nan"});
    turnfix_say(&f, "hi");
    assert_int_equal(f.report.finish, GEN_ERROR);
    assert_string_equal(f.report.error, "numeric error at token 1");
    assert_int_equal(f.chat.s.n_path, 0);
    assert_string_equal(f.chat.s.draft, "hi");
    turnfix_say(&f, "again");
    assert_int_equal(f.n_ended, 2);
    turnfix_close(&f);
}

/* Why reuse stopped, in the conversation's terms. */
static void
test_reasons(void **state)
{
    struct turnfix f;
    turnfix_open(&f, &(struct turnfix_opts){.model = CHATML});
    turnfix_say(&f, "one");
    chat_system_set(&f.chat, "You are brief.");
    turnfix_say(&f, "two");
    assert_int_equal(f.report.reason, PLY_REASON_SYSTEM_CHANGED);
    turnfix_say(&f, "three");
    assert_int_equal(f.report.reason, PLY_REASON_FULL);
    chat_new(&f.chat);
    turnfix_say(&f, "four");
    assert_int_equal(f.report.reason, PLY_REASON_COLD);
    assert_true(f.report.live > 0); /* the system text is shared */
    f.turn.cold_next = true;
    turnfix_say(&f, "five");
    assert_int_equal(f.report.reason, PLY_REASON_DISABLED);
    assert_int_equal(f.report.evaluated, f.report.n_prompt);
    assert_true(f.report.compared && f.report.warm_equal);
    assert_true(f.report.warm_evaluated < f.report.n_prompt);
    turnfix_say(&f, "six");
    assert_int_equal(f.report.reason, PLY_REASON_FULL);
    assert_false(f.report.compared);
    turnfix_close(&f);

    turnfix_open(&f, &(struct turnfix_opts){.model = CHATML, .turn = {.cache_off = true}});
    turnfix_say(&f, "one");
    turnfix_say(&f, "two");
    assert_int_equal(f.report.reason, PLY_REASON_DISABLED);
    assert_int_equal(f.report.live, 0);
    turnfix_close(&f);
}

/* The store fails and comes back: the chat goes on, and nothing is missing in the end. */
static void
test_store_busy(void **state)
{
    struct turnfix f;
    struct store_session s;
    turnfix_open(&f, &(struct turnfix_opts){.model = CHATML});
    turnfix_say(&f, "one");
    struct store *other = f.store;
    f.chat.store = NULL; /* as after a full disk: nothing can be stored */
    turnfix_say(&f, "two");
    f.chat.store = other;
    turnfix_say(&f, "three");
    turnfix_stored(&f, &s);
    assert_int_equal(s.n_path, 6);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(s.path[i].role, i % 2 ? PLY_ROLE_ASSISTANT : PLY_ROLE_USER);
    store_session_fini(&s);
    turnfix_close(&f);
}

/* A turn while one runs is refused and changes nothing. */
static void
test_one_at_a_time(void **state)
{
    struct turnfix f;
    struct ply_err err = {0};
    turnfix_open(&f, &(struct turnfix_opts){.model = CHATML});
    assert_int_equal(turn_send(&f.turn, "one", 3, app_now_ms(), NULL), 0);
    assert_int_equal(turn_send(&f.turn, "two", 3, app_now_ms(), &err), PLY_EINVAL);
    assert_int_equal(turn_again(&f.turn, app_now_ms(), NULL), PLY_EINVAL);
    assert_true(err.msg[0]);
    turnfix_wait(&f);
    assert_int_equal(f.chat.s.n_path, 2);
    turn_stop(&f.turn); /* nothing to stop */
    assert_false(turn_busy(&f.turn));
    turnfix_close(&f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counting),    cmocka_unit_test(test_b44_long_reply),
        cmocka_unit_test(test_again),       cmocka_unit_test(test_again_differs),
        cmocka_unit_test(test_b53_refused), cmocka_unit_test(test_full_while_generating),
        cmocka_unit_test(test_taken_back),  cmocka_unit_test(test_again_taken_back),
        cmocka_unit_test(test_stopped),     cmocka_unit_test(test_partial_is_stored),
        cmocka_unit_test(test_b84_numeric), cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_store_busy),  cmocka_unit_test(test_one_at_a_time),
    };
    return cmocka_run_group_tests_name("turn", tests, NULL, NULL);
}
