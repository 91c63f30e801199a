/* SPDX-License-Identifier: MIT
 * Graphemes, widths and placeholders (B91, B98, B100, B101), and word wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/num.h"
#include "engine/base/utf8.h"
#include "ui/mem.h"
#include "ui/text.h"
#include "ui/wrap.h"

/* What is drawn for a single-line text, and its columns. */
static int
drawn(const char *s, size_t n, struct ply_buf *out)
{
    struct ui_glyph g;
    int cols = 0;
    out->n = 0;
    for (size_t pos = 0; pos < n; pos += g.bytes) {
        ui_glyph_next_flat(s + pos, n - pos, &g);
        assert_true(g.bytes >= 1 && pos + g.bytes <= n);
        for (int i = 0; i < g.n_cells; i++) {
            char utf8[4];
            ui_buf_append(out, utf8, (size_t)ply_utf8_encode(g.cells[i].cp, utf8));
            for (int k = 0; k < g.cells[i].n_marks; k++)
                ui_buf_append(out, utf8, (size_t)ply_utf8_encode(g.cells[i].marks[k], utf8));
        }
        cols += g.width;
    }
    return cols;
}

static void
check(const char *s, size_t n, const char *want, int cols)
{
    struct ply_buf out = {0};
    assert_int_equal(drawn(s, n, &out), cols);
    assert_string_equal(ui_buf_str(&out), want);
    ply_buf_fini(&out);
}

#define CHECK(s, want, cols) check(s, sizeof(s) - 1, want, cols)

static void
test_graphemes(void **state)
{
    CHECK("plain", "plain", 5);
    CHECK("e\xCC\x81", "\xC3\xA9", 1);                    /* decomposed: composed */
    CHECK("\xE1\x84\x80\xE1\x85\xA1", "\xEA\xB0\x80", 2); /* Hangul jamo: a syllable */
    CHECK("\xE6\x97\xA5\xE6\x9C\xAC", "\xE6\x97\xA5\xE6\x9C\xAC", 4);
    CHECK("\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x94\xAC", "\xF0\x9F\x91\xA9\xF0\x9F\x94\xAC", 4);
    CHECK("\xE2\x9D\xA4\xEF\xB8\x8F", "\xE2\x9D\xA4 ", 2); /* heart, U+FE0F */
    CHECK("\xE2\x9D\xA4", "\xE2\x9D\xA4", 1);
    CHECK("\xF0\x9F\x87\xAB\xF0\x9F\x87\xB7", "FR", 2);               /* flag */
    CHECK("\xF0\x9F\x91\x8D\xF0\x9F\x8F\xBD", "\xF0\x9F\x91\x8D", 2); /* skin tone */
    CHECK("1\xEF\xB8\x8F\xE2\x83\xA3", "1\xE2\x83\xA3 ", 2);          /* keycap */
    CHECK("a\xE2\x80\x8B"
          "b",
          "ab", 2); /* zero-width space */
}

static void
test_placeholders(void **state)
{
    CHECK("\x1b]52;c;QUJD\x07", "\xE2\x90\x9B]52;c;QUJD\xE2\x90\x87", 12);
    CHECK("\0\x7F", "\xE2\x90\x80\xE2\x90\xA1", 2);
    CHECK("a\nb\tc",
          "a\xE2\x90\x8A"
          "b c",
          5);
    CHECK("\xC2\x9B"
          "2J",
          "\xEF\xBF\xBD"
          "2J",
          3); /* U+009B */
    CHECK("\x9B"
          "2J",
          "\xEF\xBF\xBD"
          "2J",
          3);                                       /* the raw byte */
    CHECK("\xE2\x80\xAEtxt", "\xEF\xBF\xBDtxt", 4); /* U+202E */
    CHECK("\xE2\x81\xA6"
          "a\xE2\x81\xA9",
          "\xEF\xBF\xBD"
          "a\xEF\xBF\xBD",
          3);
    CHECK("\xE2\x80\xA8", "\xEF\xBF\xBD", 1); /* U+2028 */
    CHECK("\xEF\xBF\xBF", "\xEF\xBF\xBD", 1); /* U+FFFF, never a character */
    CHECK("\xC3", "\xEF\xBF\xBD", 1);
    CHECK("\xF0\x9F\x91", "\xEF\xBF\xBD", 1);
    CHECK("\xF3\xA0\x81\x81", "", 0); /* a tag character */
}

/* Whatever the bytes, nothing that a terminal obeys is drawn, and all of it is consumed. */
static void
test_random_bytes(void **state)
{
    uint32_t rnd = 20240229;
    struct ply_buf out = {0};
    for (int round = 0; round < 20000; round++) {
        char s[24];
        for (size_t i = 0; i < sizeof s; i++) {
            rnd = rnd * 1664525u + 1013904223u;
            s[i] = (char)(round % 2 ? rnd >> 24 : (rnd >> 16) % 0x30 + 0x78);
        }
        drawn(s, sizeof s, &out);
        for (size_t pos = 0; pos < out.n;) {
            uint32_t cp;
            const int len = ply_utf8_decode(out.v + pos, out.n - pos, &cp);
            assert_true(len > 0);
            assert_true(cp >= 0x20 && !(cp >= 0x7F && cp < 0xA0));
            assert_false((cp >= 0x202A && cp <= 0x202E) || (cp >= 0x2066 && cp <= 0x2069));
            pos += (size_t)len;
        }
    }
    ply_buf_fini(&out);
}

static void
test_many_marks(void **state)
{
    struct ply_buf s = {0};
    struct ui_glyph g;
    ui_buf_append(&s, "a", 1);
    for (int i = 0; i < 400; i++)
        ui_buf_append(&s, "\xCC\xA7", 2); /* U+0327, which does not compose with a */
    ui_buf_append(&s, "bc", 2);
    ui_glyph_next(s.v, s.n, &g);
    assert_int_equal(g.bytes, 801);
    assert_int_equal(g.width, 1);
    assert_int_equal(g.cells[0].n_marks, UI_CELL_MARKS);
    assert_int_equal(ui_text_cols(s.v, s.n), 3);
    ui_glyph_next(s.v + 1, 2, &g); /* a mark at the start of a line */
    assert_int_equal(g.width, 1);
    assert_int_equal(g.cells[0].cp, 0x25CC);
    ply_buf_fini(&s);
}

static void
test_boundaries(void **state)
{
    static const char s[] = "ab\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x94\xAC\xE6\x97\xA5z";
    const size_t at[] = {0, 1, 2, 13, 16, 17};
    for (size_t i = 0; i + 1 < PLY_COUNT(at); i++) {
        assert_int_equal(ui_text_next(s, 17, at[i]), at[i + 1]);
        assert_int_equal(ui_text_prev(s, 17, at[i + 1]), at[i]);
    }
    assert_int_equal(ui_text_prev(s, 17, 0), 0);
    assert_int_equal(ui_text_next(s, 17, 17), 17);
    assert_int_equal(ui_text_fit("\xE6\x97\xA5\xE6\x9C\xAC", 6, 3), 3);
    assert_int_equal(ui_text_prev("a\r\n", 3, 3), 1);
}

/* ---- wrap ------------------------------------------------------------------------------ */

/* Rows of a text, joined by '|'. */
static void
check_wrap(const char *text, int cols, const char *want)
{
    struct ui_rows rows = {0};
    struct ply_buf out = {0};
    ui_rows_update(&rows, text, strlen(text), cols, 0);
    for (size_t i = 0; i < rows.n; i++) {
        ui_buf_append(&out, "|", i > 0);
        ui_buf_append(&out, text + rows.v[i].off, rows.v[i].len);
    }
    assert_string_equal(ui_buf_str(&out), want);
    ply_buf_fini(&out);
    ui_rows_fini(&rows);
}

static void
test_wrap(void **state)
{
    check_wrap("", 10, "");
    check_wrap("one two three", 7, "one two|three");
    check_wrap("one two three", 8, "one two |three");
    check_wrap("one two   three", 7, "one two|three"); /* spaces hang over the edge */
    check_wrap("one two   \nthree", 7, "one two|three");
    check_wrap("a\n\nb\n", 5, "a||b|");
    check_wrap("a\r\nb", 5, "a|b");
    check_wrap("abcdefghij", 4, "abcd|efgh|ij");
    check_wrap("x abcdefghij", 4, "x |abcd|efgh|ij");
    check_wrap("well-known fact", 6, "well-|known |fact");
    check_wrap("use --flag", 7, "use |--flag");
    check_wrap("    code here", 9, "    code |here");
    check_wrap("日本語の文", 4, "日本|語の|文");
    check_wrap("日本語の文", 5, "日本|語の|文"); /* no half character at the edge */
    check_wrap("日本語。文", 6, "日本|語。文");  /* a full stop does not begin a row */
    check_wrap("日", 1, "日");                   /* wider than the screen: a row of its own */
    check_wrap("a\tb", 20, "a\tb");
}

static void
test_wrap_columns(void **state)
{
    const char *s = "a\tbc";
    struct ui_rows rows = {0};
    ui_rows_update(&rows, s, 4, 20, 0);
    assert_int_equal(ui_row_col(s, &rows.v[0], 2), 4);
    assert_int_equal(ui_row_at(s, &rows.v[0], 2), 1);
    assert_int_equal(ui_row_at(s, &rows.v[0], 5), 3);
    assert_int_equal(ui_row_at(s, &rows.v[0], 50), 4);
    ui_rows_fini(&rows);
}

/* Text that grows piece by piece is laid out as if it had been there at once. */
static void
test_wrap_appending(void **state)
{
    static const char *const pieces[] = {"word ",
                                         "a",
                                         "-b",
                                         "日本",
                                         "。",
                                         "\n",
                                         "  ",
                                         "e",
                                         "\xCC\x81",
                                         "\xE2\x80\x8D",
                                         "\xF0\x9F\x91\xA9",
                                         "\r\n",
                                         "longer-than-all",
                                         "\t"};
    uint32_t rnd = 7;
    for (int round = 0; round < 300; round++) {
        struct ui_rows grown = {0}, whole = {0};
        struct ply_buf s = {0};
        const int cols = 1 + round % 23;
        for (int i = 0; i < 60; i++) {
            rnd = rnd * 1664525u + 1013904223u;
            const char *p = pieces[(rnd >> 16) % PLY_COUNT(pieces)];
            const size_t before = s.n;
            ui_buf_append(&s, p, strlen(p));
            ui_rows_update(&grown, s.v, s.n, cols, before);
        }
        ui_rows_update(&whole, s.v, s.n, cols, 0);
        assert_int_equal(grown.n, whole.n);
        for (size_t i = 0; i < whole.n; i++) {
            assert_int_equal(grown.v[i].off, whole.v[i].off);
            assert_int_equal(grown.v[i].len, whole.v[i].len);
            assert_int_equal(grown.v[i].skip, whole.v[i].skip);
        }
        ui_rows_fini(&grown);
        ui_rows_fini(&whole);
        ply_buf_fini(&s);
    }
}

/* No byte is lost or drawn twice, no row is too wide. */
static void
test_wrap_covers(void **state)
{
    static const char s[] =
        "The quick  brown 狐 jumps\tover the-lazy dog.\n\n  indented 日本語テキスト "
        "supercalifragilistic\xCC\x81 end   ";
    for (int cols = 1; cols < 60; cols++) {
        struct ui_rows rows = {0};
        size_t at = 0;
        ui_rows_update(&rows, s, sizeof s - 1, cols, 0);
        for (size_t i = 0; i < rows.n; i++) {
            const struct ui_row *r = &rows.v[i];
            assert_int_equal(r->off, at);
            at += r->skip;
            assert_true(r->len <= r->skip);
            assert_true(ui_row_col(s, r, r->off + r->len) <= PLY_MAX(cols, 2) || cols < 4);
            assert_int_equal(ui_rows_find(&rows, r->off), i);
        }
        assert_int_equal(at, sizeof s - 1);
        ui_rows_fini(&rows);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graphemes),    cmocka_unit_test(test_placeholders),
        cmocka_unit_test(test_random_bytes), cmocka_unit_test(test_many_marks),
        cmocka_unit_test(test_boundaries),   cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_wrap_columns), cmocka_unit_test(test_wrap_appending),
        cmocka_unit_test(test_wrap_covers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
