/* SPDX-License-Identifier: MIT
 * What a person sees: whole screens of libui in a terminal emulator, keys in, screen out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/ui/puppet.h"

#define CHAT                                                                   \
    "msg user|you||09:39|How do I extract a single file from a .tar.gz?",      \
        "msg reply|smollm2|ttft 84 ms  41.7 t/s  212 tok  reuse 318/331|[6]|"  \
        "Name the member after the archive:\\n\\n    tar -xzf archive.tar.gz " \
        "path/in/archive.txt\\n"
#define HEADER "header SmolLM2-135M Q4_1|en|#12 tar vs cpio|branch 2/3|3 sessions"
#define IDLE                                                                            \
    "status idle ttft=84 tok=1 kv=0 pre=62 dec=21 speed=41.7 itl=24 p95=29 reused=318 " \
    "evaluated=13 used=549 ctx=8192"

static void
say(struct puppet *p, const char *const *commands)
{
    for (; *commands; commands++)
        puppet_do(p, "%s", *commands);
    assert_true(puppet_sync(p));
}

#define SAY(p, ...) say(p, (const char *const[]){__VA_ARGS__, NULL})
#define EXPECT(p, ...) \
    assert_true(screen_expect((p)->screen, (const char *const[]){__VA_ARGS__, NULL}))

static void
test_80x24(void **state)
{
    struct puppet *p = puppet_open(NULL, 24, 80);
    SAY(p, HEADER, CHAT, IDLE);
    screen_keys(p->screen, "And how do I list them first?");
    EXPECT(p, " SmolLM2-135M Q4_1 [en]   #12 tar vs cpio   branch 2/3               3 sessions", "",
           " you                                                                      09:39",
           "   How do I extract a single file from a .tar.gz?", "",
           " smollm2  ttft 84 ms  41.7 t/s  212 tok  reuse 318/331                      [6]",
           "   Name the member after the archive:", "",
           "       tar -xzf archive.tar.gz path/in/archive.txt", "", "", "", "", "", "", "", "", "",
           "", "", "",
           "────────────────────────────────────────────────────────────────────────────────",
           " > And how do I list them first?",
           " IDLE | TTFT 84 ms | 41.7 t/s ITL 24 ms | reuse 318/331 96% | ctx 549/8192");
    assert_true(screen_until_cursor(p->screen, 22, 32));
    puppet_close(&p);
}

static void
test_100x14(void **state)
{
    struct puppet *p = puppet_open(NULL, 14, 100);
    SAY(p, HEADER, CHAT, "msg reply|smollm2|||", "live 2", "note draft prefilled 9 of 11 tok",
        "status prefill start=0 reused=531 evaluated=14 done=14 total=18 eta=100 used=545 ctx=8192",
        "clock 110", "draft next question");
    EXPECT(
        p,
        " SmolLM2-135M Q4_1 [en]   #12 tar vs cpio   branch 2/3                                   "
        "3 "
        "sessions",
        " you                                                                                      "
        "    09:39",
        "   How do I extract a single file from a .tar.gz?",
        " smollm2  ttft 84 ms  41.7 t/s  212 tok  reuse 318/331                                    "
        "      [6]",
        "   Name the member after the archive:", "",
        "       tar -xzf archive.tar.gz path/in/archive.txt",
        " smollm2  prefill [###########---] 14/18 tok  eta 0.1 s  (531 reused from RAM)", "", "",
        "",
        "──────────────────────────────────────────────────────────────────────────────────────────"
        "──────────",
        " > next question                                                        draft prefilled 9 "
        "of 11 tok",
        " PREFILL | TTFT 0.1 s.. | 14/18 tok eta 0.1 s | reused 531, evaluated 14 | ctx [------] "
        "545/8192");
    puppet_close(&p);
}

static void
test_40x10(void **state)
{
    struct puppet *p = puppet_open(NULL, 10, 40);
    SAY(p, HEADER, CHAT, IDLE);
    EXPECT(p, " SmolLM2-135M Q4_1   #12 tar vs cpio", "   a .tar.gz?",
           " smollm2  ttft 84 ms  41.7 t/s  2.. [6]", "   Name the member after the archive:", "",
           "       tar -xzf archive.tar.gz", "   path/in/archive.txt",
           "────────────────────────────────────────", " >",
           " IDLE 84 ms 41.7 t/s reuse 96% ctx 6%");
    puppet_close(&p);
}

static void
test_editing_and_sending(void **state)
{
    struct puppet *p = puppet_open(NULL, 10, 40);
    SAY(p, "hint type a message, F1 help");
    assert_true(screen_until(p->screen, " > type a message, F1 help"));
    screen_keys(p->screen, "   \r"); /* blank: not sent */
    screen_keys(p->screen, "\x15one\x0atwo\x1b\rthree");
    EXPECT(p, "*", "", "", "", "", "*", " > one", "   two", "   three", "*");
    assert_true(screen_until_cursor(p->screen, 8, 8));
    screen_keys(p->screen, "\x01\x1b[A\x0b"
                           "TWO\r");
    assert_string_equal(puppet_event(p), "submit one\\nTWO\\nthree");
    assert_true(screen_until_gone(p->screen, "TWO"));
    screen_keys(p->screen, "\x1b[A"); /* from the history */
    assert_true(screen_until(p->screen, "TWO"));
    screen_keys(p->screen, "\x03\x1f");
    assert_true(screen_until(p->screen, "TWO"));
    screen_keys(p->screen, "\x03\x03");
    assert_true(screen_until(p->screen, "^C again quits"));
    screen_keys(p->screen, "x\x7f\x03"); /* any other key calls it off */
    assert_true(screen_until(p->screen, "^C again quits"));
    screen_keys(p->screen, "\x03");
    assert_string_equal(puppet_event(p), "quit");
    assert_int_equal(screen_wait(p->screen), 0);
    assert_false(screen_on_alternate(p->screen));
    puppet_close(&p);
}

/* Esc followed by Enter never sends, however slowly; ^J is always a newline. */
static void
test_escape_enter(void **state)
{
    struct puppet *p = puppet_open(NULL, 12, 40);
    screen_keys(p->screen, "a\x1b\r"
                           "b\n"
                           "c\x1b");
    assert_true(screen_until(p->screen, "   c"));
    screen_pump(p->screen, 150);
    screen_keys(p->screen, "\r");
    assert_true(screen_until(p->screen, "a new line: Enter right after Esc"));
    screen_keys(p->screen, "\x1b[13;2u"
                           "d\r");
    assert_string_equal(puppet_event(p), "submit a\\nb\\nc\\n\\nd");
    puppet_close(&p);
}

/* B114: Esc and ^C stop while the engine is busy, and only then. */
static void
test_stop(void **state)
{
    struct puppet *p = puppet_open(NULL, 12, 60);
    SAY(p, "msg reply|m|||", "live 0", "status prefill start=0 done=30 total=100", "clock 1234");
    assert_true(screen_until(p->screen, " PREFILL | TTFT 1.2 s.. | 30/100 tok"));
    assert_true(screen_until(p->screen, " m  prefill [####----------] 30/100 tok"));
    SAY(p, "clock 2345"); /* the clock goes on by itself */
    assert_true(screen_until(p->screen, "TTFT 2.3 s.."));
    screen_keys(p->screen, "draft");
    screen_keys(p->screen, "\x1b");
    assert_string_equal(puppet_event(p), "stop");
    screen_keys(p->screen, "\x03");
    assert_string_equal(puppet_event(p), "stop");
    SAY(p, "status stopped");
    assert_true(screen_until(p->screen, " STOPPED | "));
    assert_true(screen_until(p->screen, " > draft"));
    screen_keys(p->screen, "\x1b");
    screen_pump(p->screen, 60);
    screen_keys(p->screen, "\x03");
    assert_true(screen_until_gone(p->screen, "> draft"));
    assert_true(puppet_sync(p)); /* no event in between */
    puppet_close(&p);
}

/* B107: scrolled up, the view stays while text arrives; End follows; resizing keeps the place. */
static void
test_scrolling(void **state)
{
    struct puppet *p = puppet_open(NULL, 24, 80);
    SAY(p, "msg reply|m|||", "lines 100");
    assert_true(screen_until(p->screen, "line 100"));
    screen_keys(p->screen, "\x1b[5~\x1b[5~");
    assert_true(screen_until(p->screen, "more below: 36 lines, End follows"));
    char top[128];
    snprintf(top, sizeof top, "%s", screen_row(p->screen, 1));
    assert_string_equal(top, "   line 45");
    SAY(p, "words 200");
    assert_true(screen_until(p->screen, "more: 21 new lines, End follows"));
    assert_string_equal(screen_row(p->screen, 1), top);
    screen_resize(p->screen, 30, 61);
    assert_true(screen_until(p->screen, "more: 27 new lines"));
    assert_string_equal(screen_row(p->screen, 1), top);
    screen_resize(p->screen, 10, 33);
    assert_true(screen_until(p->screen, "more: 58 new lines"));
    assert_string_equal(screen_row(p->screen, 1), top);
    screen_resize(p->screen, 24, 80);
    assert_true(screen_until(p->screen, "more: 21 new lines"));
    assert_string_equal(screen_row(p->screen, 1), top);
    screen_keys(p->screen, "\x1b[1;3A"); /* Alt+Up: one line */
    assert_true(screen_until(p->screen, "line 44"));
    screen_keys(p->screen, "\x1b[F");
    assert_true(screen_until(p->screen, "word200"));
    assert_true(screen_until_gone(p->screen, "End follows"));
    screen_keys(p->screen, "\x1b[1;3H");
    assert_true(screen_until(p->screen, "line 1"));
    puppet_close(&p);
}

static void
test_list_overlay(void **state)
{
    struct puppet *p = puppet_open(NULL, 10, 60);
    screen_keys(p->screen, "draft\x1bOQ");
    assert_string_equal(puppet_event(p), "sessions");
    EXPECT(p, "*", " Sessions                                            1 of 4",
           "    #  title                            last used    tokens",
           ">* 12  tar vs cpio                      today 09:41     549",
           "    9  regex for dates                  yesterday      3.1k",
           "    8  日本語の挨拶と返事の仕方         14 Nov          412",
           "    7  trip ideas                       12 Nov         7.9k", "*",
           " Enter open   r rename   d delete   / search   Esc close", "*");
    screen_keys(p->screen, "\x1b[Bd");
    assert_true(screen_until(p->screen, " delete regex for dates? (y/n)"));
    screen_keys(p->screen, "y");
    assert_string_equal(puppet_event(p), "list-delete 9");
    assert_true(screen_until_gone(p->screen, "regex"));
    screen_keys(p->screen, "r\x15new name\r");
    assert_string_equal(puppet_event(p), "list-rename 8 new name");
    assert_true(screen_until(p->screen, "> "));
    screen_keys(p->screen, "/tri");
    assert_string_equal(puppet_event(p), "list-filter t");
    assert_string_equal(puppet_event(p), "list-filter tr");
    assert_string_equal(puppet_event(p), "list-filter tri");
    assert_true(screen_until_gone(p->screen, "new name"));
    assert_true(screen_until_cursor(p->screen, 8, 12));
    screen_keys(p->screen, "\r\r");
    assert_string_equal(puppet_event(p), "list-open 7");
    assert_true(screen_until(p->screen, " > draft"));
    screen_keys(p->screen, "\x0f");
    assert_string_equal(puppet_event(p), "sessions");
    screen_keys(p->screen, "\x1b");
    assert_string_equal(puppet_event(p), "list-close");
    assert_true(screen_until(p->screen, " > draft"));
    puppet_close(&p);
}

static void
test_pager_ask_notice(void **state)
{
    struct puppet *p = puppet_open(NULL, 8, 50);
    screen_keys(p->screen, "\x1bOP");
    assert_string_equal(puppet_event(p), "help");
    EXPECT(p, "*", " Help                                    1-3 of 8", " Keys", "",
           "   Enter        send", "*", " Up Down PgUp PgDn scroll   Esc close", "*");
    screen_keys(p->screen, "\x1b[6~");
    assert_true(screen_until(p->screen, "3-5 of 8"));
    screen_keys(p->screen, "q");
    assert_true(screen_until_gone(p->screen, "Help"));
    SAY(p, "ask 612 tokens too long: (d)rop, (c)ancel?|dc");
    assert_true(screen_until(p->screen, " 612 tokens too long: (d)rop, (c)ancel?"));
    SAY(p, "notice meanwhile");
    screen_keys(p->screen, "xd");
    assert_string_equal(puppet_event(p), "answer d");
    assert_true(screen_until_gone(p->screen, "too long"));
    assert_true(screen_until(p->screen, " meanwhile"));
    SAY(p, "ask really?|yn");
    screen_keys(p->screen, "\x1b");
    assert_string_equal(puppet_event(p), "answer -");
    SAY(p, "notice the model file is gone");
    assert_true(screen_until(p->screen, " the model file is gone"));
    screen_keys(p->screen, "typed");
    assert_true(screen_until(p->screen, "typed"));
    assert_true(screen_until(p->screen, " the model file is gone"));
    screen_keys(p->screen, "\r");
    assert_string_equal(puppet_event(p), "submit typed");
    assert_true(screen_until_gone(p->screen, "the model file"));
    screen_keys(p->screen, "\t\x07\x1bOR\x04");
    assert_string_equal(puppet_event(p), "tab");
    assert_string_equal(puppet_event(p), "editor");
    assert_string_equal(puppet_event(p), "stats");
    assert_string_equal(puppet_event(p), "quit");
    puppet_close(&p);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_80x24),
        cmocka_unit_test(test_100x14),
        cmocka_unit_test(test_40x10),
        cmocka_unit_test(test_editing_and_sending),
        cmocka_unit_test(test_escape_enter),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_scrolling),
        cmocka_unit_test(test_list_overlay),
        cmocka_unit_test(test_pager_ask_notice),
    };
    puppet_program = argc > 1 ? argv[1] : "tests/ui/ui_demo";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
