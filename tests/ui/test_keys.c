/* SPDX-License-Identifier: MIT
 * The key decoder: sequences whole and in pieces, Esc and its delay, paste, odd bytes (B112). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/num.h"
#include "ui/keys.h"
#include "ui/mem.h"

/* Keys as words: "Up", "A-x", "C-c", "'text'", "paste(..)". */
static void
name_key(const struct ui_key *k, struct ply_buf *out)
{
    static const char *const names[] = {
        [UI_KEY_ENTER] = "Enter", [UI_KEY_NEWLINE] = "Newline",
        [UI_KEY_TAB] = "Tab",     [UI_KEY_BACKTAB] = "Backtab",
        [UI_KEY_ESC] = "Esc",     [UI_KEY_BACKSPACE] = "BS",
        [UI_KEY_DELETE] = "Del",  [UI_KEY_INSERT] = "Ins",
        [UI_KEY_UP] = "Up",       [UI_KEY_DOWN] = "Down",
        [UI_KEY_LEFT] = "Left",   [UI_KEY_RIGHT] = "Right",
        [UI_KEY_HOME] = "Home",   [UI_KEY_END] = "End",
        [UI_KEY_PGUP] = "PgUp",   [UI_KEY_PGDN] = "PgDn",
        [UI_KEY_F] = "F",
    };
    ui_buf_append(out, " ", out->n > 0);
    if (k->mods & UI_MOD_SHIFT)
        ui_buf_append(out, "S-", 2);
    if (k->mods & UI_MOD_ALT)
        ui_buf_append(out, "A-", 2);
    if (k->mods & UI_MOD_CTRL)
        ui_buf_append(out, "C-", 2);
    if (k->code == UI_KEY_TEXT || k->code == UI_KEY_PASTE)
        ui_buf_printf(out, "%s%.*s'", k->code == UI_KEY_TEXT ? "'" : "paste'", (int)k->n, k->text);
    else if (k->code == UI_KEY_CHAR)
        ui_buf_printf(out, "%c", (int)k->ch);
    else if (k->code == UI_KEY_F)
        ui_buf_printf(out, "F%d", (int)k->ch);
    else
        ui_buf_printf(out, "%s", names[k->code]);
}

/* Feeds bytes in pieces of n_piece at time 0 and reads all keys at time `at`. */
static void
check_pieces(const char *bytes, size_t n, size_t n_piece, double at, const char *want)
{
    struct ui_keys k = {0};
    struct ply_buf out = {0};
    struct ui_key key;
    for (size_t i = 0; i < n; i += n_piece) {
        ui_keys_feed(&k, bytes + i, PLY_MIN(n_piece, n - i), 0);
        while (ui_keys_next(&k, 0, &key))
            name_key(&key, &out);
    }
    while (ui_keys_next(&k, at, &key))
        name_key(&key, &out);
    assert_string_equal(ui_buf_str(&out), want);
    ply_buf_fini(&out);
    ui_keys_fini(&k);
}

static void
check(const char *bytes, const char *want)
{
    check_pieces(bytes, strlen(bytes), 100, 0, want);
    check_pieces(bytes, strlen(bytes), 1, 0, want);
}

static void
test_sequences(void **state)
{
    check("\x1b[A\x1b[B\x1b[C\x1b[D", "Up Down Right Left");
    check("\x1bOA\x1bOH\x1bOF", "Up Home End");
    check("\x1b[5~\x1b[6~\x1b[3~\x1b[2~\x1b[1~\x1b[4~\x1b[7~", "PgUp PgDn Del Ins Home End Home");
    check("\x1b[1;3A\x1b[1;5C\x1b[5;3~\x1b[1;2D", "A-Up C-Right A-PgUp S-Left");
    check("\x1b\x1b[A\x1b\x1bOB", "A-Up A-Down"); /* rxvt: Esc before the sequence */
    check("\x1bOP\x1bOQ\x1b[15~\x1b[24~\x1b[1;5P\x1b[[B", "F1 F2 F5 F12 C-F1 F2");
    check("\x1b[Z\t\r\n\x7f\x08", "Backtab Tab Enter Newline BS BS");
    check("\x1b\r\x1b\n\x1b\x7f", "A-Newline A-Newline A-BS");
    check("\x1b[13;2u\x1b[27;2;13~\x1b[13u", "S-Newline S-Newline Enter");
    check("\x1b"
          "b\x1b_\x1b<",
          "A-b A-_ A-<");
    check("\x01\x1a\x1f\x1c", "C-a C-z C-_ C-\\");
}

static void
test_unknown_is_dropped(void **state)
{
    check("\x1b[?2026;2$y\x1b[99~\x1b[I\x1b[1;1;1;1X\x01", "C-a");
    check("\x1b[\x01", "C-a"); /* ill-formed: up to the byte that cannot belong to it */
    check("\x1b[1;999999999999999999A", "A-C-Up");
}

static void
test_escape(void **state)
{
    check_pieces("\x1b", 1, 1, 24, "");
    check_pieces("\x1b", 1, 1, 26, "Esc");
    check_pieces("\x1b\x1b", 2, 1, 26, "Esc Esc");
    check_pieces("\x1b\x03", 2, 1, 0, "Esc C-c");
    check_pieces("\x1b[", 2, 1, 100, "");
    check_pieces("\x1b[", 2, 1, 201, "");
    struct ui_keys k = {0};
    struct ui_key key;
    assert_int_equal(ui_keys_timeout(&k, 0), -1);
    ui_keys_feed(&k, "\x1b", 1, 1000);
    assert_false(ui_keys_next(&k, 1000, &key));
    assert_in_range(ui_keys_timeout(&k, 1000), 25, 26);
    assert_true(ui_keys_next(&k, 1025, &key));
    assert_int_equal(ui_keys_timeout(&k, 1025), -1);
    ui_keys_fini(&k);
}

static void
test_text(void **state)
{
    check_pieces("abc\x01"
                 "d",
                 5, 9, 0, "'abc' C-a 'd'");
    check_pieces("\xE6\x97\xA5\xF0\x9F\x91\xA9", 7, 1, 0, "'日' '\xF0\x9F\x91\xA9'");
    /* B112: 00 1C 1F 7F C2 FF, then abc */
    check_pieces("\0\x1c\x1f\x7f\xc2\xff"
                 "abc",
                 9, 9, 0, "C-\\ C-_ BS 'abc'");
    check_pieces("\xc2\x9b\xe2\x82", 4, 4, 300, ""); /* C1, and a character that never ends */
    struct ui_keys k = {.single = true};
    struct ui_key key;
    ui_keys_feed(&k, "jk", 2, 0);
    assert_true(ui_keys_next(&k, 0, &key) && key.n == 1 && key.text[0] == 'j');
    assert_true(ui_keys_next(&k, 0, &key) && key.n == 1 && key.text[0] == 'k');
    ui_keys_fini(&k);
}

static void
test_paste(void **state)
{
    check("\x1b[200~a\rb\x1b[A\x1b[201~\r", "paste'a\rb\x1b[A' Enter");
    check("\x1b[200~\x1b[201~x", "paste'' 'x'");
    check_pieces("\x1b[200~abc", 9, 1, 0, "");
    check_pieces("\x1b[200~abc", 9, 1, 301, "paste'abc'"); /* stalled: shown so far */
}

/* The end mark got lost: after a silence ^C ends the paste. */
static void
test_paste_without_end(void **state)
{
    struct ui_keys k = {0};
    struct ui_key key;
    ui_keys_feed(&k, "\x1b[200~abc", 9, 0);
    assert_false(ui_keys_next(&k, 0, &key));
    ui_keys_feed(&k, "\x03", 1, 500); /* too soon: part of the text */
    assert_false(ui_keys_next(&k, 500, &key));
    ui_keys_feed(&k, "\x03", 1, 2000);
    assert_true(ui_keys_next(&k, 2000, &key));
    assert_int_equal(key.code, UI_KEY_PASTE);
    assert_int_equal(key.n, 4);
    ui_keys_feed(&k, "x", 1, 2001);
    assert_true(ui_keys_next(&k, 2001, &key));
    assert_int_equal(key.code, UI_KEY_TEXT);
    ui_keys_fini(&k);
}

static void
test_random_bytes(void **state)
{
    static const char some[] = "\x1b\x1b[[O;~0123456789ABCuMR<?$ \r\n\t\x7f\xc2\xe2\x82\xff";
    uint32_t rnd = 5;
    struct ui_keys k = {0};
    struct ui_key key;
    double now = 0;
    for (int i = 0; i < 200000; i++) {
        rnd = rnd * 1664525u + 1013904223u;
        ui_keys_feed(&k, &some[(rnd >> 16) % (sizeof some - 1)], 1, now);
        now += rnd >> 31 ? 0 : 30;
        while (ui_keys_next(&k, now, &key))
            assert_true(key.code <= UI_KEY_F);
        k.pasting = false;
    }
    ui_keys_fini(&k);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sequences),    cmocka_unit_test(test_unknown_is_dropped),
        cmocka_unit_test(test_escape),       cmocka_unit_test(test_text),
        cmocka_unit_test(test_paste),        cmocka_unit_test(test_paste_without_end),
        cmocka_unit_test(test_random_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
