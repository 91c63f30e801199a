/* SPDX-License-Identifier: MIT
 * The figures of a turn: none is infinite or not a number, whatever the turn was (B113); and the
 * parameters of /set, the notice about a script, the history. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/gen.h"
#include "app/history.h"
#include "app/param.h"
#include "app/report.h"
#include "app/script.h"

static void
test_rate(void **state)
{
    /* 8 tokens, 7 gaps in 100 ms: 70 tokens a second. */
    assert_true(fabs(report_rate(8, 100) - 70) < 1e-9);
    assert_true(report_rate(0, 100) < 0);
    assert_true(report_rate(1, 100) < 0);
    assert_true(report_rate(2, 0) < 0);
}

static double
number(const json_t *o, const char *name)
{
    const json_t *v = json_object_get(o, name);
    assert_true(json_is_number(v));
    return json_number_value(v);
}

static void
test_json(void **state)
{
    const int32_t ids[] = {7, 8};
    const struct report full = {.finish = GEN_STOP,
                                .text = "a\0\xff",
                                .len = 3,
                                .ids = ids,
                                .n_ids = 2,
                                .n_prompt = 12,
                                .live = 5,
                                .ram = 2,
                                .disk = 1,
                                .evaluated = 4,
                                .ttft_ms = 12.34567,
                                .predicted_ms = 10,
                                .n_predicted = 2,
                                .tok_s = 100,
                                .reason = PLY_REASON_FULL,
                                .session = 3,
                                .message = 4,
                                .has_hash = true,
                                .prompt_hash = 0xabc};
    json_t *o = report_json(&full);
    assert_string_equal(json_string_value(json_object_get(o, "event")), "turn");
    assert_int_equal(json_string_length(json_object_get(o, "text")), 5); /* U+FFFD is three bytes */
    assert_int_equal(json_array_size(json_object_get(o, "ids")), 2);
    const json_t *usage = json_object_get(o, "usage"), *timings = json_object_get(o, "timings");
    assert_true(number(usage, "prompt_tokens") == 12 && number(usage, "completion_tokens") == 2);
    assert_true(number(json_object_get(usage, "prompt_tokens_details"), "cached_tokens") == 8);
    assert_true(number(timings, "cache_n") == 8 && number(timings, "prompt_n") == 4);
    assert_true(number(o, "ttft_ms") == 12.346);
    assert_string_equal(json_string_value(json_object_get(o, "prompt_hash")), "0000000000000abc");
    assert_string_equal(json_string_value(json_object_get(o, "reuse_reason")), "full");
    assert_null(json_object_get(o, "error"));
    json_decref(o);

    /* A turn that never began: zeros and nulls, no infinity. */
    const struct report none = {.finish = GEN_ERROR,
                                .error = "why",
                                .ttft_ms = NAN,
                                .tok_s = -1,
                                .itl_ms = INFINITY,
                                .predicted_ms = -INFINITY};
    o = report_json(&none);
    assert_true(number(o, "ttft_ms") == 0);
    timings = json_object_get(o, "timings");
    assert_true(number(timings, "predicted_ms") == 0);
    assert_true(json_is_null(json_object_get(timings, "tokens_per_second")));
    assert_true(json_is_null(json_object_get(timings, "itl_p50_ms")));
    assert_true(json_is_null(json_object_get(o, "session")));
    assert_string_equal(json_string_value(json_object_get(o, "error")), "why");
    json_decref(o);
}

static void
test_lines_for_people(void **state)
{
    char line[240];
    const struct report r = {.finish = GEN_LENGTH,
                             .n_ids = 8,
                             .n_prompt = 331,
                             .live = 318,
                             .ttft_ms = 84.2,
                             .tok_s = 41.66};
    report_line(&r, line, sizeof(line));
    assert_string_equal(line, "ttft 84 ms  41.7 tokens/s  8 tokens  reused 318 of 331  length");
    const struct report c = {.compared = true,
                             .ttft_ms = 1840,
                             .warm_ttft_ms = 9,
                             .evaluated = 331,
                             .warm_evaluated = 13,
                             .warm_equal = true};
    report_compare_line(&c, line, sizeof(line));
    assert_non_null(strstr(line, "1.84 s without the cache (331"));
    assert_non_null(strstr(line, "9.0 ms with it (13"));
}

static int
set(struct param_values *v, const char *assignment)
{
    struct ply_err err = {0};
    const struct param_values before = *v;
    const int r = param_set(v, assignment, &err);
    if (r != 0) {
        assert_true(err.msg[0]);
        assert_memory_equal(v, &before, sizeof(before));
    }
    return r;
}

/* B79: a temperature may be tiny, and not negative, not a number, or a word. */
static void
test_params(void **state)
{
    struct param_values v = {
        .sampling = {.temp = 1, .top_p = 1, .repeat_penalty = 1, .penalty_window = 64},
        .n_max = GEN_NO_LIMIT};
    static const char *const good[] = {"temp 0",
                                       "temp 1e-6",
                                       "temp 1e-30",
                                       "temp 1e-45",
                                       "temperature=0.7",
                                       "top_k 0",
                                       "top-k 1000000000",
                                       "top_p 0",
                                       "min_p 1",
                                       "repeat_penalty 1.3",
                                       "seed 18446744073709551615",
                                       "n -1",
                                       "n 0",
                                       "max_tokens 5",
                                       "repeat-last-n 0"};
    static const char *const bad[] = {
        "temp -1", "temp nan", "temp abc", "temp",      "temp 1 2",      "top_p 1.5", "top_p -0.1",
        "min_p 2", "seed -1",  "n -2",     "top_k 1.5", "n 99999999999", "nope 1",    ""};
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        assert_int_equal(set(&v, good[i]), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_int_equal(set(&v, bad[i]), PLY_EINVAL);
    assert_true(v.sampling.temp == 0.7f && v.n_max == 5);
    json_t *o = param_json(&v);
    assert_true(number(o, "temp") == 0.7 && number(o, "n") == 5);
    json_decref(o);
    struct ply_buf b = {0};
    param_text(&v, "temp", &b);
    assert_non_null(strstr(b.v, "temp is 0.7"));
    ply_buf_fini(&b);
}

static bool
notice(const char *text, const char *languages)
{
    char line[200];
    const bool is = script_notice(text, strlen(text), languages, line, sizeof(line));
    if (is)
        assert_non_null(strstr(line, "-m"));
    return is;
}

static void
test_script(void **state)
{
    assert_false(notice("What is the capital of France?", "en"));
    assert_true(notice("日本語で話せますか", "en"));
    assert_false(notice("日本語で話せますか", "en, ja"));
    assert_true(notice("Привет, как дела?", "en, fr"));
    assert_false(notice("Привет, как дела?", "en, ru"));
    assert_true(notice("你好吗", "en"));
    assert_false(notice("你好吗", "zh"));
    assert_false(notice("你好吗", "multilingual"));
    assert_false(notice("你好吗", "")); /* the file lists none */
    assert_false(notice("a long English text with one 你 in it", "en"));
    assert_false(notice("\xff\xfe 123 !?", "en"));
}

static void
collect(void *user, const char *text, size_t len)
{
    struct ply_buf *b = user;
    assert_int_equal(ply_buf_append(b, text, len), 0);
    assert_int_equal(ply_buf_append(b, "|", 1), 0);
}

static void
test_history(void **state)
{
    char dir[] = "/tmp/parley-hist-XXXXXX", file[64];
    struct ply_buf b = {0};
    assert_non_null(mkdtemp(dir));
    snprintf(file, sizeof(file), "%s/history", dir);
    const struct app_paths p = {.state_dir = dir, .history = file};
    history_load(&p, collect, &b);
    assert_int_equal(b.n, 0);
    history_add(&p, "one", 3);
    history_add(&p, "two\nlines\\n", 11);
    history_load(&p, collect, &b);
    assert_string_equal(b.v, "one|two\nlines\\n|");
    for (int i = 0; i < 3 * HISTORY_MAX; i++) {
        char text[16];
        history_add(&p, text, (size_t)snprintf(text, sizeof(text), "%d", i));
    }
    for (int pass = 0; pass < 2; pass++) { /* the second one reads the file that was cut down */
        size_t n = 0;
        b.n = 0;
        history_load(&p, collect, &b);
        for (size_t i = 0; i < b.n; i++)
            n += b.v[i] == '|';
        assert_int_equal(n, HISTORY_MAX);
        assert_non_null(strstr(b.v, "1499|"));
    }
    ply_buf_fini(&b);
    unlink(file);
    rmdir(dir);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_lines_for_people),
        cmocka_unit_test(test_params),
        cmocka_unit_test(test_script),
        cmocka_unit_test(test_history),
    };
    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
