/* SPDX-License-Identifier: MIT
 * Status bar, header line and live line at every width. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "ui/layout.h"
#include "ui/mem.h"
#include "ui/status.h"
#include "ui/text.h"

static const struct ui_status unknown = UI_STATUS_INIT;

static void
check_bar(const struct ui_status *s, double now, int cols, const char *want)
{
    struct ui_bar bar = {0};
    ui_status_bar(s, now, cols, &bar);
    assert_string_equal(bar.text.v, want);
    assert_true(cols < 9 || ui_text_cols(bar.text.v, bar.text.n) <= cols); /* else it is clipped */
    const char *word = ui_state_word(s->state);
    assert_memory_equal(bar.text.v + bar.word_off, word, strlen(word));
    ply_buf_fini(&bar.text);
}

static struct ui_status
idle(void)
{
    struct ui_status s = unknown;
    s.ttft_ms = 84;
    s.tokenize_ms = 1;
    s.restore_ms = 0;
    s.prefill_ms = 62;
    s.decode_ms = 21;
    s.tok_s = 41.7;
    s.itl_ms = 24;
    s.itl_p95_ms = 29;
    s.reused = 531;
    s.evaluated = 18;
    s.saved_ms = 2900;
    s.ctx_used = 549;
    s.ctx_size = 8192;
    s.kv_bytes = 12000000;
    s.rss_bytes = 214000000;
    return s;
}

static void
test_idle(void **state)
{
    const struct ui_status s = idle();
    check_bar(
        &s, 0, 200,
        " IDLE | TTFT 84 ms = tok 1 + kv 0 + prefill 62 + dec 21 | 41.7 t/s ITL 24 ms p95 29 | "
        "reused 531, evaluated 18 ~2.90 s saved | ctx [------] 549/8192 | KV 12 MB RSS 214 MB");
    check_bar(
        &s, 0, 100,
        " IDLE | TTFT 84=tok 1+kv 0+pre 62+dec 21 ms | 41.7 t/s ITL 24 ms | reuse 531/549 96% "
        "| ctx 549/8192");
    check_bar(&s, 0, 80,
              " IDLE | TTFT 84 ms | 41.7 t/s ITL 24 ms | reuse 531/549 96% | ctx 549/8192");
    check_bar(&s, 0, 60, " IDLE | TTFT 84 ms | 41.7 t/s | reuse 531/549 96% | ctx 6%");
    check_bar(&s, 0, 40, " IDLE 84 ms 41.7 t/s reuse 96% ctx 6%");
    check_bar(&s, 0, 28, " IDLE 84 ms 41.7 t/s 96% 6%");
    check_bar(&s, 0, 1, " IDLE");
}

static void
test_waiting(void **state)
{
    struct ui_status s = unknown;
    s.state = UI_STATE_PREFILL;
    s.start_ms = 1000;
    s.reused = 531;
    s.evaluated = 170;
    s.done = 170;
    s.total = 340;
    s.eta_ms = 590;
    s.ctx_used = 701;
    s.ctx_size = 8192;
    assert_true(ui_status_ticks(&s));
    check_bar(&s, 1649, 100,
              " PREFILL | TTFT 0.6 s.. | 170/340 tok eta 0.6 s | reused 531, evaluated 170 | "
              "ctx [#-----] 701/8192");
    check_bar(&s, 1749, 40, " PREFILL 0.7 s.. 50% reuse 75% ctx 8%");
    s.state = UI_STATE_GEN; /* the first token is not there yet */
    check_bar(&s, 1749, 60, " GEN | TTFT 0.7 s.. | -- t/s | reuse 531/701 75% | ctx 8%");
    s.ttft_ms = 800;
    assert_false(ui_status_ticks(&s));
    s = unknown;
    s.state = UI_STATE_LOAD;
    s.done = 63;
    s.total = 100;
    check_bar(&s, 0, 80, " LOAD | 63%");
}

static void
test_miss(void **state)
{
    struct ui_status s = idle();
    s.reused = 211;
    s.evaluated = 338;
    s.reason = "message 3 edited at token 211";
    check_bar(&s, 0, 120,
              " IDLE | TTFT 84 ms | 41.7 t/s ITL 24 ms | reused 211, evaluated 338 | "
              "MISS: message 3 edited at token 211 | ctx 549/8192");
    check_bar(&s, 0, 80,
              " IDLE TTFT 84 ms 41.7 t/s reuse 38% MISS: message 3 edited at token 211 ctx 6%");
    check_bar(&s, 0, 40, " IDLE 84 ms 41.7 t/s 38% MISS ctx 6%");
}

static void
test_unknown(void **state)
{
    check_bar(&unknown, 0, 80, " IDLE | TTFT -- | -- t/s");
    struct ui_status s = unknown;
    s.reused = 0; /* nothing reused is not unknown */
    s.evaluated = 12;
    check_bar(&s, 0, 80, " IDLE | TTFT -- | -- t/s | reused 0, evaluated 12");
    s.evaluated = 0;
    check_bar(&s, 0, 40, " IDLE | TTFT -- | -- t/s | reuse 0/0 0%");
    s.ctx_used = 8192;
    s.ctx_size = 8192;
    s.state = UI_STATE_FULL;
    check_bar(&s, 0, 40, " FULL | -- t/s | reuse 0/0 0% | ctx 100%");
}

/* Nothing is ever wider than the screen, where at least the state word fits. */
static void
test_widths(void **state)
{
    struct ui_status s = idle();
    struct ui_bar bar = {0};
    s.reason = "\xE6\x97\xA5\xE6\x9C\xAC a long reason that goes on and on, 100% %s %n";
    for (int cols = 9; cols < 300; cols++) {
        for (int st = UI_STATE_LOAD; st <= UI_STATE_FULL; st++) {
            s.state = (enum ui_state)st;
            ui_status_bar(&s, 123456789, cols, &bar);
            assert_true(ui_text_cols(bar.text.v, bar.text.n) <= cols);
        }
    }
    ply_buf_fini(&bar.text);
}

static void
check_live(const struct ui_status *s, int cols, const char *want)
{
    struct ply_buf out = {0};
    ui_status_live(s, 1400, cols, &out);
    assert_string_equal(ui_buf_str(&out), want);
    ply_buf_fini(&out);
}

static void
test_live(void **state)
{
    struct ui_status s = unknown;
    s.state = UI_STATE_PREFILL;
    s.start_ms = 1000;
    check_live(&s, 60, "prefill  0.4 s");
    s.reused = 531;
    s.source = "RAM";
    s.done = 14;
    s.total = 18;
    s.eta_ms = 100;
    check_live(&s, 80, "prefill [###########---] 14/18 tok  eta 0.1 s  (531 reused from RAM)");
    check_live(&s, 50, "prefill [###########---] 14/18 tok  eta 0.1 s");
    check_live(&s, 25, "prefill 14/18 tok");
    check_live(&s, 5, "");
    s = idle();
    s.state = UI_STATE_GEN;
    s.n_reply = 212;
    check_live(&s, 80, "ttft 84 ms  41.7 t/s  212 tok  reuse 531/549");
    check_live(&s, 30, "ttft 84 ms  41.7 t/s  212 tok");
}

static void
check_header(const struct ui_header *h, int cols, const char *left, const char *right)
{
    struct ply_buf l = {0}, r = {0};
    ui_header_line(h, cols, &l, &r);
    assert_string_equal(ui_buf_str(&l), left);
    assert_string_equal(ui_buf_str(&r), right);
    ply_buf_fini(&l);
    ply_buf_fini(&r);
}

static void
test_header(void **state)
{
    const struct ui_header h = {"SmolLM2-135M Q4_1", "en", "#12 tar vs cpio", "branch 2/3",
                                "3 sessions"};
    check_header(&h, 80, "SmolLM2-135M Q4_1 [en]   #12 tar vs cpio   branch 2/3", "3 sessions");
    check_header(&h, 60, "SmolLM2-135M Q4_1 [en]   #12 tar vs cpio", "3 sessions");
    check_header(&h, 45, "SmolLM2-135M Q4_1 [en]   #12 tar vs cpio", "");
    check_header(&h, 30, "SmolLM2-135M Q4_1   #12 ta..", "");
    check_header(&h, 12, "SmolLM2-..", "");
    check_header(&(struct ui_header){0}, 80, "", "");
}

static void
test_layout(void **state)
{
    struct ui_layout l;
    ui_layout_make(&l, 24, 80, 1, false, false);
    assert_int_equal(l.header, 0);
    assert_int_equal(l.view, 1);
    assert_int_equal(l.view_rows, 20);
    assert_int_equal(l.rule, 21);
    assert_int_equal(l.notice, -1);
    assert_int_equal(l.editor, 22);
    assert_int_equal(l.bar, 23);
    ui_layout_make(&l, 24, 80, 50, true, false);
    assert_int_equal(l.editor_rows, UI_EDITOR_ROWS_MAX);
    assert_int_equal(l.notice, 12);
    for (int rows = 1; rows < 60; rows++) {
        for (int draft = 1; draft < 15; draft++) {
            for (int notice = 0; notice < 2; notice++) {
                ui_layout_make(&l, rows, 80, draft, notice, notice);
                const int lines = (l.header >= 0) + l.view_rows + (l.rule >= 0) +
                                  (l.notice >= 0 && l.notice != l.editor) + l.editor_rows +
                                  (l.bar >= 0);
                assert_int_equal(lines, rows);
                assert_true(l.editor_rows >= 1 && l.editor_rows <= UI_EDITOR_ROWS_MAX);
                assert_true(!notice || l.notice >= 0);
            }
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle),    cmocka_unit_test(test_waiting), cmocka_unit_test(test_miss),
        cmocka_unit_test(test_unknown), cmocka_unit_test(test_widths),  cmocka_unit_test(test_live),
        cmocka_unit_test(test_header),  cmocka_unit_test(test_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
