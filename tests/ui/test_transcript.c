/* SPDX-License-Identifier: MIT
 * The transcript's view: following, holding its place (B107), resizing, growing replies (B135);
 * and the list overlay's model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/num.h"
#include "ui/list.h"
#include "ui/mem.h"
#include "ui/transcript.h"

static struct ui_transcript t;

static int
set_up(void **state)
{
    ui_transcript_init(&t);
    ui_transcript_resize(&t, 20, 6, false);
    return 0;
}

static int
tear_down(void **state)
{
    ui_transcript_fini(&t);
    return 0;
}

static void
add(const char *author, const char *text)
{
    const struct ui_msg m = {UI_ROLE_USER, author, "", "", text, strlen(text)};
    ui_transcript_add(&t, &m);
}

/* The lines in view, joined by '|'; "" is a gap, "@x" a header. */
static void
check(const char *want)
{
    struct ui_line lines[64];
    struct ply_buf out = {0};
    const int n = ui_transcript_lines(&t, lines);
    assert_true(n <= t.height);
    for (int i = 0; i < n; i++) {
        const struct ui_entry *e = &t.v[lines[i].msg];
        ui_buf_append(&out, "|", i > 0);
        if (lines[i].kind == UI_LINE_HEADER)
            ui_buf_printf(&out, "@%s", e->author);
        else if (lines[i].kind == UI_LINE_TEXT)
            ui_buf_append(&out, e->text.v + lines[i].row.off, lines[i].row.len);
    }
    assert_string_equal(ui_buf_str(&out), want);
    ply_buf_fini(&out);
}

static void
test_follow(void **state)
{
    check("");
    add("a", "one\ntwo");
    check("@a|one|two");
    add("b", "");
    check("@a|one|two|@b");
    ui_transcript_append(&t, "three\n", 6); /* a newline at the end shows nothing */
    check("@a|one|two|@b|three");
    ui_transcript_append(&t, "four\nfive", 9);
    check("one|two|@b|three|four|five");
    t.gaps = true;
    check("two||@b|three|four|five");
    ui_transcript_truncate(&t, 1);
    check("|@a|one|two");
    ui_transcript_truncate(&t, 0);
    check("");
}

static void
test_holds_place(void **state)
{
    long n_new;
    add("a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12");
    ui_transcript_scroll(&t, 3); /* at the end already */
    assert_true(t.follow);
    ui_transcript_scroll(&t, -2);
    check("5|6|7|8|9|10");
    assert_int_equal(ui_transcript_below(&t, &n_new), 2);
    assert_int_equal(n_new, 0);
    ui_transcript_append(&t, "\n13\n14", 6);
    add("b", "15");
    check("5|6|7|8|9|10");
    assert_int_equal(ui_transcript_below(&t, &n_new), 6);
    assert_int_equal(n_new, 4);
    ui_transcript_scroll(&t, 4);
    check("9|10|11|12|13|14");
    assert_false(t.follow);
    assert_int_equal(ui_transcript_below(&t, &n_new), 2);
    assert_int_equal(n_new, 2);
    ui_transcript_scroll(&t, 2);
    assert_true(t.follow);
    check("11|12|13|14|@b|15");
    ui_transcript_home(&t);
    check("@a|1|2|3|4|5");
    ui_transcript_scroll(&t, -5);
    check("@a|1|2|3|4|5");
    ui_transcript_follow(&t);
    check("11|12|13|14|@b|15");
}

static void
test_resize_keeps_message(void **state)
{
    add("a", "aaaa bbbb cccc dddd eeee ffff");
    add("b", "gggg hhhh iiii jjjj kkkk llll mmmm nnnn oooo pppp qqqq rrrr ssss tttt");
    ui_transcript_resize(&t, 9, 3, false);
    ui_transcript_scroll(&t, -3);
    check("iiii jjjj|kkkk llll|mmmm nnnn");
    ui_transcript_resize(&t, 4, 3, false);
    check("iiii|jjjj|kkkk");
    ui_transcript_resize(&t, 19, 3, false);
    check("gggg hhhh iiii jjjj|kkkk llll mmmm nnnn|oooo pppp qqqq rrrr");
    ui_transcript_resize(&t, 9, 3, false);
    check("iiii jjjj|kkkk llll|mmmm nnnn");
    ui_transcript_resize(&t, 1, 1, true);
    check("i");
    ui_transcript_resize(&t, 1, 0, true);
    check("");
}

static void
test_truncated_view(void **state)
{
    add("a", "1\n2\n3\n4\n5\n6\n7\n8");
    add("b", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11");
    ui_transcript_scroll(&t, -1);
    ui_transcript_truncate(&t, 1);
    assert_true(t.follow);
    check("3|4|5|6|7|8");
    ui_transcript_scroll(&t, -1);
    ui_transcript_set_text(&t, 0, "short", 5);
    check("@a|short");
}

/* B135: appending lays out the end of the text only, however long the reply is. */
static void
test_append_is_local(void **state)
{
    struct ui_line lines[64];
    add("a", "");
    for (int i = 0; i < 6000; i++) {
        ui_transcript_append(&t, "word ", 5);
        if (i % 7 == 0)
            ui_transcript_lines(&t, lines);
        assert_true(t.v[0].text.n - PLY_MIN(t.v[0].changed, t.v[0].text.n) <= 7 * 5);
    }
    ui_transcript_lines(&t, lines);
    assert_int_equal(t.v[0].rows.n, 1500);
}

/* ---- list ------------------------------------------------------------------------------ */

static const struct ui_list spec = {
    .title = "t",
    .cols = {{"id", 4, 0, true}, {"name", 0, 0, false}, {"when", 10, 40, false}},
    .n_cols = 3,
    .name_col = 1,
    .can_rename = true,
    .can_delete = true,
    .can_filter = true,
};

static enum ui_event_type
press(struct ui_list_view *v, enum ui_keycode code, const char *text, struct ui_event *ev)
{
    const struct ui_key key = {.code = code, .text = text, .n = text ? strlen(text) : 0};
    *ev = (struct ui_event){0};
    ui_list_view_key(v, &key, ev);
    return ev->type;
}

static void
test_list(void **state)
{
    const struct ui_list_row rows[] = {{1, true, {"1", "one", "today"}},
                                       {2, false, {"2", "two", "yesterday"}},
                                       {3, false, {"3", "three", "long ago"}}};
    struct ui_list_view v = {0};
    struct ui_event ev;
    int w[UI_LIST_COLS];
    ui_list_view_open(&v, &spec);
    assert_int_equal(press(&v, UI_KEY_ENTER, NULL, &ev), UI_EVENT_NONE); /* no rows */
    ui_list_view_rows(&v, rows, 3);
    press(&v, UI_KEY_DOWN, NULL, &ev);
    assert_int_equal(press(&v, UI_KEY_ENTER, NULL, &ev), UI_EVENT_LIST_OPEN);
    assert_int_equal(ev.id, 2);
    ui_list_view_rows(&v, rows + 1, 2); /* the cursor stays on id 2 */
    assert_int_equal(v.cursor, 0);
    press(&v, UI_KEY_TEXT, "d", &ev);
    assert_int_equal(press(&v, UI_KEY_TEXT, "n", &ev), UI_EVENT_NONE);
    press(&v, UI_KEY_TEXT, "d", &ev);
    assert_int_equal(press(&v, UI_KEY_TEXT, "y", &ev), UI_EVENT_LIST_DELETE);
    assert_int_equal(ev.id, 2);
    press(&v, UI_KEY_TEXT, "r", &ev);
    press(&v, UI_KEY_TEXT, "!", &ev);
    assert_int_equal(press(&v, UI_KEY_ENTER, NULL, &ev), UI_EVENT_LIST_RENAME);
    assert_string_equal(ev.text, "two!");
    press(&v, UI_KEY_TEXT, "/", &ev);
    assert_int_equal(press(&v, UI_KEY_TEXT, "x", &ev), UI_EVENT_LIST_FILTER);
    assert_string_equal(ev.text, "x");
    ui_list_view_rows(&v, rows, 0);
    assert_int_equal(press(&v, UI_KEY_ESC, NULL, &ev), UI_EVENT_LIST_FILTER);
    assert_string_equal(ev.text, "");
    ui_list_view_rows(&v, rows, 3);
    ui_list_view_widths(&v, 60, w);
    assert_int_equal(w[0], 2);
    assert_int_equal(w[2], 9);
    assert_int_equal(w[1], 60 - 4 - (2 + 2) - (9 + 2));
    ui_list_view_widths(&v, 30, w);
    assert_int_equal(w[2], 0);
    assert_int_equal(press(&v, UI_KEY_ESC, NULL, &ev), UI_EVENT_LIST_CLOSE);
    assert_false(v.open);
    ui_list_view_close(&v);
}

static void
test_pager(void **state)
{
    struct ui_pager p = {0};
    const struct ui_key down = {.code = UI_KEY_PGDN}, end = {.code = UI_KEY_END};
    const struct ui_key esc = {.code = UI_KEY_ESC};
    ui_pager_set(&p, "title", "1\n2\n3\n4\n5\n6", 11);
    ui_pager_layout(&p, 10, 3);
    ui_pager_key(&p, &down);
    assert_int_equal(p.top, 2);
    ui_pager_key(&p, &end);
    assert_int_equal(p.top, 3);
    ui_pager_layout(&p, 5, 4);
    assert_int_equal(p.top, 2);
    ui_pager_key(&p, &esc);
    assert_false(p.open);
    ui_pager_fini(&p);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_follow),         TEST(test_holds_place),     TEST(test_resize_keeps_message),
        TEST(test_truncated_view), TEST(test_append_is_local), TEST(test_list),
        TEST(test_pager),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
