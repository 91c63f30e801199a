/* SPDX-License-Identifier: MIT
 * The terminal is left alone by what is shown (B91, B92, B98, B100, B101, B109), survives what is
 * typed and done to it (B96, B97, B103, B112), and is given back (B94, B95); locales and terminal
 * types (B110). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/array.h"
#include "engine/base/num.h"
#include "engine/base/utf8.h"
#include "tests/ui/puppet.h"

/* B91's sequences, escaped for the puppet: clipboard, title, clear, device control, reset, C1 as a
 * character and as a byte, an unterminated title. */
#define HOSTILE                                                                                  \
    "\\x1b]52;c;QUJD\\x07 \\x1b]0;x\\x07 \\x1b[2J \\x1bPq\\x1b\\\\ \\x1bc \\xc2\\x9b2J \\x9b2J " \
    "\\x1b[31mred \\r\\n\\x7f\\x00 \\xe2\\x80\\xae \\x1b]"
#define FORMATS "100% %s %n %p %5$s %%"

/* ---- what reaches the terminal --------------------------------------------------------- */

/* From byte `from` on the program sent only text, cursor movement, colours and erasure of lines. */
static void
check_log(struct puppet *p, size_t from)
{
    size_t n;
    const char *s = screen_log(p->screen, &n);
    for (size_t i = from; i < n;) {
        uint32_t cp;
        const int len = ply_utf8_decode(s + i, n - i, &cp);
        assert_true(len > 0);
        assert_false(cp >= 0x7F && cp < 0xA0);
        assert_false((cp >= 0x202A && cp <= 0x202E) || (cp >= 0x2066 && cp <= 0x2069));
        i += (size_t)len;
        if (cp == '\r' || cp == '\n' || cp == '\b' || cp >= 0x20)
            continue;
        assert_int_equal(cp, 0x1B);
        if (s[i] == '(') { /* character set: B */
            assert_int_equal(s[i + 1], 'B');
            i += 2;
            continue;
        }
        assert_int_equal(s[i], '[');
        const size_t start = ++i;
        while (s[i] >= 0x20 && s[i] <= 0x3F)
            i++;
        assert_non_null(strchr("mHKXdGABCDhl", s[i]));
        if (s[i] == 'h' || s[i] == 'l') /* frames, the cursor */
            assert_true(memcmp(s + start, "?2026", 5) == 0 || memcmp(s + start, "?25", 3) == 0 ||
                        memcmp(s + start, "?12", 3) == 0);
        i++;
    }
}

static void
test_hostile_text(void **state)
{
    static const char *const commands[] = {
        "msg user|%s|%s|%s|%s",
        "msg reply|m|||",
        "append %s",
        "header %s|%s|%s|%s|%s",
        "notice %s",
        "hint %s",
        "note %s",
        "status idle reused=1 evaluated=2|%s",
        "title %s",
    };
    struct puppet *p = puppet_open(NULL, 24, 120);
    size_t from;
    assert_true(puppet_sync(p));
    assert_true(screen_until(p->screen, " IDLE"));
    screen_log(p->screen, &from);
    for (size_t i = 0; i < PLY_COUNT(commands); i++) {
        char line[4096];
        size_t n = 0;
        for (const char *c = commands[i]; *c; c++) {
            const char one[2] = {*c, '\0'};
            const char *put = c[0] == '%' && c[1] == 's' ? HOSTILE : one;
            n += (size_t)snprintf(line + n, sizeof line - n, "%s", put);
            c += put != one;
        }
        puppet_do(p, "%s", line);
        screen_pump(p->screen, 40);
    }
    assert_true(screen_until(p->screen, "␛]52;c;QUJD␇ ␛]0;x␇ ␛[2J ␛Pq␛\\ ␛c �2J �2J ␛[31mred"));
    screen_keys(p->screen, "\x1b[200~\x1b]52;c;QUJD\x07\x1b[2J\xc2\x9b\x9b\x1b[201~");
    assert_true(screen_until(p->screen, " > ␛]52;c;QUJD␇␛[2J��"));
    screen_keys(p->screen, "\r");
    assert_string_equal(puppet_event(p), "submit \\x1b]52;c;QUJD\\x07\\x1b[2J\xc2\x9b\xef\xbf\xbd");
    screen_keys(p->screen, "\x1bOQ"); /* the list, with the hostile title in it */
    assert_string_equal(puppet_event(p), "sessions");
    assert_true(screen_until(p->screen, "Sessions"));
    screen_keys(p->screen, "d");
    assert_true(screen_until(p->screen, "delete ␛]52"));
    puppet_do(p, "ask %s|y", HOSTILE);
    screen_pump(p->screen, 100);
    check_log(p, from);
    puppet_close(&p);
}

/* B109: formats are text. */
static void
test_formats(void **state)
{
    struct puppet *p = puppet_open(NULL, 24, 100);
    puppet_do(p, "msg user|%s|%s|%s|%s", FORMATS, FORMATS, FORMATS, FORMATS);
    puppet_do(p, "header %s||%s", FORMATS, FORMATS);
    puppet_do(p, "notice %s", FORMATS);
    puppet_do(p, "status idle reused=1 evaluated=2|%s", FORMATS);
    puppet_do(p, "draft %s", FORMATS);
    assert_true(screen_until(p->screen, " > " FORMATS));
    assert_string_equal(screen_row(p->screen, 0), " " FORMATS "   " FORMATS);
    assert_string_equal(screen_row(p->screen, 3), "   " FORMATS);
    assert_string_equal(screen_row(p->screen, 21), " " FORMATS);
    assert_non_null(strstr(screen_row(p->screen, 23), "MISS: " FORMATS));
    puppet_close(&p);
}

/* ---- columns --------------------------------------------------------------------------- */

/* B98: what is drawn takes the columns that were counted, at every width. */
static void
test_columns(void **state)
{
    static const struct {
        const char *text;
        int cols;
    } samples[] = {
        {"\\xf0\\x9f\\x91\\xa9\\xe2\\x80\\x8d\\xf0\\x9f\\x94\\xac",
         4},                                   /* joined emoji, side by side */
        {"\\xe2\\x9d\\xa4\\xef\\xb8\\x8f", 2}, /* heart with U+FE0F */
        {"e\\xcc\\x81", 1},
        {"\\xea\\xb0\\x80", 2},
        {"\\xf0\\x9f\\x87\\xab\\xf0\\x9f\\x87\\xb7", 2}, /* flag */
        {"\\xf0\\x9f\\x91\\x8d\\xf0\\x9f\\x8f\\xbd", 2}, /* skin tone */
        {"\\xe6\\x97\\xa5", 2},
    };
    struct puppet *p = puppet_open(NULL, 8, 24);
    for (size_t i = 0; i < PLY_COUNT(samples); i++) {
        puppet_do(p, "draft [%s]", samples[i].text);
        assert_true(puppet_sync(p));
        assert_true(screen_until_cursor(p->screen, 6, 3 + samples[i].cols + 2));
        int col;
        assert_int_equal(screen_find(p->screen, "]", &col), 6);
        assert_int_equal(col, 3 + samples[i].cols + 1);
    }
    puppet_do(p, "draft");
    puppet_do(p, "msg reply|m|||");
    for (int i = 0; i < 40; i++)
        puppet_do(p, "append %s", samples[i % (int)PLY_COUNT(samples)].text);
    for (int cols = 24; cols >= 3; cols--) {
        screen_resize(p->screen, 8, cols);
        puppet_do(p, "msg user|you||%d|x", cols);
        assert_true(puppet_sync(p));
        char want[8];
        snprintf(want, sizeof want, "%d", cols);
        assert_true(cols < 12 || screen_until(p->screen, want));
    }
    puppet_close(&p);
}

/* B101: marks without end are cut, what follows is in its column. B100: no bidi control. */
static void
test_marks_and_bidi(void **state)
{
    struct puppet *p = puppet_open(NULL, 10, 40);
    puppet_do(p, "msg reply|m|||\\xcc\\xa7 a");
    for (int i = 0; i < 40; i++)
        puppet_do(p, "append \\xcc\\xa7\\xcc\\xa7\\xcc\\xa7\\xcc\\xa7\\xcc\\xa7"
                     "\\xcc\\xa7\\xcc\\xa7\\xcc\\xa7\\xcc\\xa7\\xcc\\xa7");
    puppet_do(p, "append bc\\n\\xe2\\x80\\xaetxt.exe \\xe2\\x81\\xa6 abc");
    assert_true(screen_until(p->screen, "   �txt.exe � abc"));
    int col;
    assert_int_equal(screen_find(p->screen, "bc", &col), 2);
    assert_int_equal(col, 6);
    puppet_close(&p);
}

/* ---- keys ------------------------------------------------------------------------------ */

static void
test_odd_keys(void **state)
{
    struct puppet *p = puppet_open(NULL, 10, 40);
    assert_true(puppet_sync(p));
    screen_send(p->screen,
                "\0\x1c\x1f\x7f\xc2\xff"
                "abc",
                9);
    assert_true(screen_until(p->screen, " > abc"));
    screen_keys(p->screen, "\x13\x11"
                           "d"); /* ^S does not stop the terminal */
    assert_true(screen_until(p->screen, " > abcd"));
    screen_keys(p->screen, "\x0c"); /* ^L draws everything again */
    assert_true(screen_until(p->screen, " > abcd"));
    puppet_close(&p);
}

static void
check_paste(const char *unit, size_t total)
{
    struct puppet *p = puppet_open(NULL, 24, 80);
    const size_t n_unit = strlen(unit), n = total / n_unit * n_unit;
    char *text = malloc(n + 1);
    struct ply_buf want = {0};
    assert_non_null(text);
    for (size_t i = 0; i < n; i++)
        text[i] = unit[i % n_unit];
    ply_buf_printf(&want, "draft ");
    for (size_t i = 0; i < n; i++)
        ply_buf_append(&want, text[i] == '\n' ? "\\n" : &text[i], text[i] == '\n' ? 2 : 1);
    assert_true(puppet_sync(p));
    screen_keys(p->screen, "\x1b[200~");
    screen_send(p->screen, text, n);
    screen_keys(p->screen, "\x1b[201~");
    assert_true(screen_until_gone(p->screen, " >  "));
    puppet_do(p, "get");
    assert_string_equal(puppet_event(p), want.v);
    screen_keys(p->screen, "end");
    assert_true(screen_until(p->screen, "end"));
    assert_true(puppet_sync(p)); /* nothing was sent */
    ply_buf_fini(&want);
    free(text);
    puppet_close(&p);
}

/* B103 */
static void
test_large_paste(void **state)
{
    check_paste("0123456789", 20000);
    check_paste("0123456789", 200000);
    check_paste("a line of text\n", 200000);
}

/* ---- sizes ----------------------------------------------------------------------------- */

static void
fill(struct puppet *p)
{
    puppet_do(p, "header SmolLM2-135M|en|#12 tar vs cpio|notes|3 sessions");
    puppet_do(p, "msg user|you||09:39|How do I list 日本語 files?");
    puppet_do(p, "msg reply|smollm2|||");
    puppet_do(p, "lines 30");
    puppet_do(p, "notice a notice that is longer than a narrow screen");
    puppet_do(p, "draft some draft");
}

/* B96: any size, in any state; afterwards the screen is as after a fresh start. */
static void
test_sizes(void **state)
{
    static const int sizes[][2] = {{1, 1},  {1, 2},  {1, 80}, {2, 80},    {24, 3},
                                   {4, 10}, {3, 40}, {5, 5},  {300, 300}, {24, 80}};
    static const char *const keys[] = {"\x1b[5~", "\x1bOQ", "/", "\r", "q", "\x1bOP", "q"};
    struct puppet *p = puppet_open(NULL, 24, 80), *fresh = puppet_open(NULL, 24, 80);
    uint32_t rnd = 20240301;
    fill(p);
    fill(fresh);
    for (size_t k = 0; k < PLY_COUNT(keys); k++) {
        for (size_t i = 0; i < PLY_COUNT(sizes); i++) {
            screen_resize(p->screen, sizes[i][0], sizes[i][1]);
            puppet_do(p, "append word ");
            screen_pump(p->screen, 5);
        }
        screen_keys(p->screen, keys[k]);
    }
    for (int i = 0; i < 300; i++) {
        rnd = rnd * 1664525u + 1013904223u;
        screen_resize(p->screen, 1 + (int)(rnd >> 27), 1 + (int)(rnd >> 10) % 100);
        puppet_do(p, "append word ");
        screen_pump(p->screen, 3);
    }
    screen_resize(p->screen, 24, 80);
    puppet_do(p, "truncate 0");
    fill(p);
    screen_keys(p->screen, "\x1b[F");
    assert_string_equal(puppet_event(p), "sessions");
    assert_string_equal(puppet_event(p), "list-close");
    assert_string_equal(puppet_event(p), "help");
    assert_true(screen_until(p->screen, " > some draft"));
    assert_true(screen_until(fresh->screen, " > some draft"));
    assert_true(screen_until(p->screen, "line 30"));
    screen_pump(fresh->screen, 100);
    for (int y = 0; y < 24; y++) {
        char row[512];
        snprintf(row, sizeof row, "%s", screen_row(fresh->screen, y));
        assert_string_equal(screen_row(p->screen, y), row);
    }
    puppet_close(&p);
    puppet_close(&fresh);
}

/* B97: signals in any number. */
static void
test_signal_storm(void **state)
{
    struct puppet *p = puppet_open(NULL, 24, 80);
    fill(p);
    assert_true(puppet_sync(p));
    for (int i = 0; i < 2000; i++) {
        kill(screen_pid(p->screen), i % 50 ? SIGWINCH : SIGCONT);
        if (i % 20 == 0)
            puppet_do(p, "append word ");
        if (i % 100 == 0)
            screen_resize(p->screen, 20 + i / 100 % 5, 80);
        screen_pump(p->screen, 0);
    }
    screen_resize(p->screen, 24, 80);
    assert_true(puppet_sync(p));
    screen_keys(p->screen, "!");
    assert_true(screen_until(p->screen, " > some draft!"));
    puppet_close(&p);
}

/* ---- giving the terminal back ---------------------------------------------------------- */

static bool
log_ends_with_restore(struct puppet *p)
{
    size_t n;
    const char *s = screen_log(p->screen, &n);
    /* bracketed paste off, and the normal screen after everything that was drawn */
    const char *off = memmem(s, n, "\x1b[?2004l", 8), *normal = memmem(s, n, "\x1b[?1049l", 8);
    return off && normal && !memmem(normal, (size_t)(s + n - normal), "\x1b[?1049h", 8);
}

/* B94, as far as it is libui's: a handler that calls ui_term_restore() gives the terminal back. */
static void
test_fatal_signals(void **state)
{
    static const int signals[] = {SIGSEGV, SIGBUS,  SIGABRT, SIGFPE,
                                  SIGILL,  SIGTERM, SIGHUP,  SIGQUIT};
    for (size_t i = 0; i < PLY_COUNT(signals) + 2; i++) {
        struct puppet *p = puppet_open(NULL, 24, 80);
        fill(p);
        puppet_do(p, "status gen");
        assert_true(puppet_sync(p));
        assert_true(screen_until(p->screen, " GEN"));
        assert_true(screen_on_alternate(p->screen));
        if (i < PLY_COUNT(signals))
            kill(screen_pid(p->screen), signals[i]);
        else
            puppet_do(p, i == PLY_COUNT(signals) ? "abort" : "quit");
        const int status = screen_wait(p->screen);
        assert_true(screen_modes_restored(p->screen));
        assert_false(screen_on_alternate(p->screen));
        assert_true(log_ends_with_restore(p));
        if (i < PLY_COUNT(signals))
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
        else if (i == PLY_COUNT(signals))
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        else
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        puppet_close(&p);
    }
}

/* B95: ^Z gives the shell a sane terminal, fg repaints everything; twice, and by signal. */
static void
test_suspend(void **state)
{
    struct puppet *p = puppet_open_shell(24, 80);
    fill(p);
    assert_true(puppet_sync(p));
    assert_true(screen_until(p->screen, " > some draft"));
    for (int i = 0; i < 3; i++) {
        if (i < 2)
            screen_keys(p->screen, "\x1a");
        else
            screen_keys(p->screen, "\x1b\x1a"); /* after Esc, which is a key of its own */
        assert_true(screen_until(p->screen, "Stopped"));
        assert_false(screen_on_alternate(p->screen));
        screen_keys(p->screen, "stty -a | grep -o ' icanon.*echo '; echo seen$((40+2))\r");
        assert_true(screen_until(p->screen, "seen42"));
        screen_keys(p->screen, "fg\r");
        assert_true(screen_until(p->screen, " > some draft"));
        assert_true(screen_on_alternate(p->screen));
        assert_true(screen_until(p->screen, " IDLE"));
        assert_true(screen_find(p->screen, "prompt>", NULL) < 0);
        screen_keys(p->screen, "x\x7f");
    }
    puppet_close(&p);
}

/* Where no shell could wake it up, ^Z does nothing; stopped from outside it goes on afterwards. */
static void
test_suspend_without_job_control(void **state)
{
    struct puppet *p = puppet_open(NULL, 24, 80);
    fill(p);
    assert_true(screen_until(p->screen, " > some draft"));
    screen_keys(p->screen, "\x1a!");
    assert_true(screen_until(p->screen, " > some draft!"));
    kill(screen_pid(p->screen), SIGSTOP);
    kill(screen_pid(p->screen), SIGCONT);
    screen_keys(p->screen, "!");
    assert_true(screen_until(p->screen, " > some draft!!"));
    assert_true(screen_on_alternate(p->screen));
    puppet_close(&p);
}

/* The terminal goes away and SIGHUP is ignored: the program is told, once, and can end in order. */
static void
test_hangup(void **state)
{
    struct puppet *p = puppet_open((const char *const[]){"UI_DEMO_NOHUP=1", NULL}, 24, 80);
    fill(p);
    assert_true(puppet_sync(p));
    screen_hang_up(p->screen);
    assert_string_equal(puppet_event(p), "hangup");
    assert_int_equal(screen_wait(p->screen), 0);
    puppet_close(&p);
}

/* ---- locales and terminals ------------------------------------------------------------- */

/* B110: readable without UTF-8, a line of words without a terminal type. */
static void
test_locales(void **state)
{
    static const char *const c[] = {"LC_ALL=C", NULL}, *const posix[] = {"LC_ALL=POSIX", NULL};
    static const char *const vt100[] = {"TERM=vt100", "LC_ALL=C", NULL};
    static const char *const mono[] = {"TERM=xterm-mono", "LC_ALL=C", NULL};
    const char *const *const envs[] = {c, posix, vt100, mono};
    for (size_t i = 0; i < PLY_COUNT(envs); i++) {
        struct puppet *p = puppet_open(envs[i], 10, 60);
        puppet_do(p,
                  "msg user|you|||caf\\xc3\\xa9 \\xe2\\x80\\x9cquoted\\xe2\\x80\\x9d 日 \\x1b[2J");
        puppet_do(p, "draft caf\\xc3\\xa9");
        assert_true(screen_until(p->screen, "   caf? \"quoted\" ?? ?[2J"));
        assert_true(screen_until(p->screen, "------------------------------"));
        puppet_do(p, "get");
        assert_string_equal(puppet_event(p), "draft caf\xc3\xa9"); /* the text is as it was */
        puppet_close(&p);
    }
    static const char *const missing[] = {"LC_ALL=xx_YY.UTF-8", NULL};
    static const char *const none[] = {"LC_ALL", "LC_CTYPE", "LANG", NULL};
    const char *const *const utf8[] = {missing, none};
    for (size_t i = 0; i < PLY_COUNT(utf8); i++) {
        struct puppet *p = puppet_open(utf8[i], 10, 60);
        puppet_do(p, "draft caf\\xc3\\xa9 日");
        assert_true(screen_until(p->screen, " > café 日"));
        puppet_close(&p);
    }
}

static void
test_refusals(void **state)
{
    static const struct {
        const char *env, *words;
    } cases[] = {
        {"TERM=dumb", "TERM is \"dumb\", a terminal that cannot move its cursor"},
        {"TERM=no-such-type", "TERM is \"no-such-type\", a terminal that is not known here"},
        {"TERM=", "TERM is not set"},
        {"TERM", "TERM is not set"},
    };
    for (size_t i = 0; i < PLY_COUNT(cases); i++) {
        const char *const env[] = {cases[i].env, NULL};
        struct puppet *p = puppet_open(env, 10, 100);
        assert_int_equal(WEXITSTATUS(screen_wait(p->screen)), 1);
        assert_true(screen_until(p->screen, cases[i].words));
        puppet_close(&p);
    }
}

/* NO_COLOR: not one colour is set, the bar is told from the text by reverse video. */
static void
test_no_color(void **state)
{
    static const char *const env[] = {"NO_COLOR=1", NULL};
    struct puppet *p = puppet_open(env, 10, 60);
    fill(p);
    puppet_do(p, "status prefill start=0");
    assert_true(screen_until(p->screen, " PREFILL"));
    size_t n;
    const char *s = screen_log(p->screen, &n);
    for (size_t i = 0; i + 4 < n; i++)
        assert_false(s[i] == '[' && (s[i + 1] == '3' || s[i + 1] == '4') &&
                     (s[i + 2] >= '0' && s[i + 2] <= '8') && (s[i + 3] == 'm' || s[i + 3] == ';'));
    assert_true(screen_reverse(p->screen, 9, 1));
    assert_true(screen_reverse(p->screen, 0, 1));
    assert_false(screen_reverse(p->screen, 8, 1));
    puppet_close(&p);
}

/* B134: at rest nothing is written and nothing runs. */
static void
test_idle(void **state)
{
    struct puppet *p = puppet_open(NULL, 24, 80);
    fill(p);
    assert_true(puppet_sync(p));
    screen_pump(p->screen, 200);
    size_t before, after;
    screen_log(p->screen, &before);
    screen_pump(p->screen, 400);
    screen_log(p->screen, &after);
    assert_int_equal(before, after);
    puppet_close(&p);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile_text),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_marks_and_bidi),
        cmocka_unit_test(test_odd_keys),
        cmocka_unit_test(test_large_paste),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_signal_storm),
        cmocka_unit_test(test_fatal_signals),
        cmocka_unit_test(test_suspend),
        cmocka_unit_test(test_suspend_without_job_control),
        cmocka_unit_test(test_hangup),
        cmocka_unit_test(test_locales),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_no_color),
        cmocka_unit_test(test_idle),
    };
    puppet_program = argc > 1 ? argv[1] : "tests/ui/ui_demo";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
