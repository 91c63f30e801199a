/* SPDX-License-Identifier: MIT
 * The editor: editing by grapheme, undo, kill and yank, history, rows, large pastes (B103). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/num.h"
#include "engine/base/utf8.h"
#include "ui/editor.h"
#include "ui/mem.h"

static struct ui_editor ed;

static int
set_up(void **state)
{
    ui_editor_init(&ed, false);
    return 0;
}

static int
tear_down(void **state)
{
    ui_editor_fini(&ed);
    return 0;
}

static void
type(const char *s)
{
    for (; *s; s++)
        ui_editor_insert(&ed, s, 1, true);
}

static void
paste(const char *s)
{
    ui_editor_insert(&ed, s, strlen(s), false);
}

/* The text, with the caret shown as '^'. */
static void
check(const char *want)
{
    struct ply_buf b = {0};
    ui_buf_append(&b, ui_buf_str(&ed.text), ed.text.n);
    ui_buf_insert(&b, ed.caret, "^", 1);
    assert_string_equal(b.v, want);
    ply_buf_fini(&b);
}

static void
run(const enum ui_edit *cmds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ui_editor_do(&ed, cmds[i]);
}

#define RUN(...)                             \
    run((const enum ui_edit[]){__VA_ARGS__}, \
        sizeof((const enum ui_edit[]){__VA_ARGS__}) / sizeof(enum ui_edit))

static void
test_moves(void **state)
{
    type("one two\nthree");
    RUN(UI_EDIT_LINE_START);
    check("one two\n^three");
    RUN(UI_EDIT_LEFT, UI_EDIT_WORD_LEFT);
    check("one ^two\nthree");
    RUN(UI_EDIT_WORD_RIGHT, UI_EDIT_WORD_RIGHT);
    check("one two\nthree^");
    RUN(UI_EDIT_TEXT_START, UI_EDIT_LEFT);
    check("^one two\nthree");
    RUN(UI_EDIT_LINE_END);
    check("one two^\nthree");
    RUN(UI_EDIT_TEXT_END, UI_EDIT_RIGHT);
    check("one two\nthree^");
}

static void
test_deletes_graphemes(void **state)
{
    paste("a\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x94\xAC"
          "e\xCC\x81z");
    RUN(UI_EDIT_LEFT, UI_EDIT_BACKSPACE, UI_EDIT_BACKSPACE);
    check("a^z");
    RUN(UI_EDIT_DELETE, UI_EDIT_DELETE);
    check("a^");
    RUN(UI_EDIT_BACKSPACE, UI_EDIT_BACKSPACE);
    check("^");
}

static void
test_kills(void **state)
{
    type("alpha beta-gamma delta");
    RUN(UI_EDIT_KILL_WORD_LEFT);
    check("alpha beta-gamma ^");
    RUN(UI_EDIT_KILL_SPACE_LEFT); /* in a row: gathered */
    check("alpha ^");
    RUN(UI_EDIT_YANK);
    check("alpha beta-gamma delta^");
    RUN(UI_EDIT_TEXT_START, UI_EDIT_KILL_WORD_RIGHT);
    check("^ beta-gamma delta");
    RUN(UI_EDIT_KILL_LINE_END, UI_EDIT_YANK);
    check("alpha beta-gamma delta^");
    type("\nnext");
    RUN(UI_EDIT_UP, UI_EDIT_LINE_END, UI_EDIT_KILL_LINE_END);
    check("alpha beta-gamma delta^next");
    RUN(UI_EDIT_KILL_LINE_START);
    check("^next");
    RUN(UI_EDIT_RIGHT, UI_EDIT_KILL_ALL, UI_EDIT_YANK); /* moving began a new kill */
    check("next^");
}

static void
test_transpose(void **state)
{
    type("ab");
    RUN(UI_EDIT_TRANSPOSE);
    check("ba^");
    RUN(UI_EDIT_LEFT, UI_EDIT_TRANSPOSE);
    check("ab^");
    RUN(UI_EDIT_TEXT_START, UI_EDIT_TRANSPOSE);
    check("^ab");
}

static void
test_undo(void **state)
{
    type("one two");
    RUN(UI_EDIT_UNDO); /* word by word */
    check("one^");
    RUN(UI_EDIT_REDO);
    check("one two^");
    paste(" pasted all at once");
    RUN(UI_EDIT_UNDO);
    check("one two^");
    RUN(UI_EDIT_KILL_ALL, UI_EDIT_UNDO);
    check("one two^");
    RUN(UI_EDIT_UNDO, UI_EDIT_UNDO, UI_EDIT_UNDO);
    check("^");
    RUN(UI_EDIT_REDO, UI_EDIT_REDO);
    check("one two^");
    type("!");
    RUN(UI_EDIT_REDO); /* a new change ends what could be redone */
    check("one two!^");
}

/* Random commands: undoing everything leads back to nothing, the text stays valid UTF-8. */
static void
test_random(void **state)
{
    static const char *const texts[] = {"a", " ", "\n", "日本", "e\xCC\x81", "\xF0\x9F\x91\x8D"};
    uint32_t rnd = 99;
    for (int i = 0; i < 450; i++) {
        size_t row;
        int col;
        rnd = rnd * 1664525u + 1013904223u;
        const unsigned pick = (rnd >> 16) % 30;
        if (pick < UI_EDIT_UNDO)
            ui_editor_do(&ed, (enum ui_edit)pick);
        else
            ui_editor_insert(&ed, texts[pick % 6], strlen(texts[pick % 6]), pick % 2);
        assert_true(ply_utf8_valid(ui_buf_str(&ed.text), ed.text.n));
        assert_true(ed.caret <= ed.text.n);
        ui_editor_layout(&ed, 7, &row, &col);
        assert_true(row < ed.rows.n && col <= 7);
    }
    for (int i = 0; i < 500; i++)
        ui_editor_do(&ed, UI_EDIT_UNDO);
    assert_int_equal(ed.text.n, 0);
}

static void
test_cleans_input(void **state)
{
    ui_editor_insert(&ed, "a\0b\r\nc\rd\xC2\xFF", 10, false);
    check("ab\nc\nd\xEF\xBF\xBD\xEF\xBF\xBD^");
    ui_editor_reset(&ed);
    paste("\x1b[2J"); /* kept as it is, drawn as a placeholder */
    check("\x1b[2J^");
    ed.one_line = true;
    ui_editor_reset(&ed);
    paste("a\nb\r\nc");
    check("a b c^");
}

static void
test_history(void **state)
{
    ui_editor_history_add(&ed, "first", 5);
    ui_editor_history_add(&ed, "second", 6);
    ui_editor_history_add(&ed, "second", 6);
    assert_int_equal(ed.n_history, 2);
    type("draft");
    RUN(UI_EDIT_UP);
    check("second^");
    RUN(UI_EDIT_UP, UI_EDIT_UP);
    check("first^");
    RUN(UI_EDIT_DOWN, UI_EDIT_DOWN);
    check("draft^");
    RUN(UI_EDIT_DOWN);
    check("draft^");
    RUN(UI_EDIT_HISTORY_PREV, UI_EDIT_UNDO);
    check("draft^");
}

static void
test_rows(void **state)
{
    size_t row;
    int col;
    paste("one two three\n\nlast");
    ui_editor_layout(&ed, 8, &row, &col);
    assert_int_equal(ed.rows.n, 4);
    assert_int_equal(row, 3);
    assert_int_equal(col, 4);
    RUN(UI_EDIT_UP, UI_EDIT_UP); /* through the empty row the column is kept */
    check("one two thre^e\n\nlast");
    RUN(UI_EDIT_UP);
    check("one ^two three\n\nlast");
    assert_int_equal(ui_editor_scroll(&ed, 3, 2), 2);
    assert_int_equal(ui_editor_scroll(&ed, 0, 2), 0);
    /* At a soft wrap the caret stays on its row. */
    RUN(UI_EDIT_TEXT_END, UI_EDIT_TEXT_START, UI_EDIT_DOWN, UI_EDIT_LINE_END, UI_EDIT_UP);
    ui_editor_layout(&ed, 8, &row, &col);
    assert_int_equal(row, 0);
}

static void
test_large_paste(void **state)
{
    struct ply_buf one = {0}, many = {0};
    size_t row;
    int col;
    while (one.n < 200000)
        ui_buf_append(&one, "0123456789", 10);
    while (many.n < 200000)
        ui_buf_append(&many, "a line of text\n", 15);
    ui_editor_insert(&ed, one.v, one.n, false);
    ui_editor_layout(&ed, 76, &row, &col);
    assert_int_equal(ed.text.n, 200000);
    assert_int_equal(ed.rows.n, 200000 / 76 + 1);
    RUN(UI_EDIT_UNDO);
    assert_int_equal(ed.text.n, 0);
    ui_editor_insert(&ed, many.v, many.n, false);
    ui_editor_layout(&ed, 76, &row, &col);
    assert_int_equal(ed.text.n, many.n);
    assert_int_equal(row, many.n / 15);
    assert_memory_equal(ed.text.v, many.v, many.n);
    ply_buf_fini(&one);
    ply_buf_fini(&many);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_moves),       TEST(test_deletes_graphemes), TEST(test_kills),
        TEST(test_undo),        TEST(test_transpose),         TEST(test_random),
        TEST(test_history),     TEST(test_cleans_input),      TEST(test_rows),
        TEST(test_large_paste),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
