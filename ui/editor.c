/* SPDX-License-Identifier: MIT
 * Editing. Every change goes through apply(), which records it for undo and marks what has to be
 * laid out again, so that typing at the end of a pasted megabyte costs what a line costs. */
#include "ui/editor.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/num.h"
#include "engine/base/utf8.h"
#include "ui/mem.h"
#include "ui/text.h"

#define UNDO_MAX 500
#define HISTORY_MAX 1000

/* ---- changes and undo ------------------------------------------------------------------ */

static void
change_fini(struct ui_change *c)
{
    ply_buf_fini(&c->removed);
    ply_buf_fini(&c->inserted);
}

static void
drop_redo(struct ui_editor *ed)
{
    while (ed->n_changes > ed->n_done)
        change_fini(&ed->changes[--ed->n_changes]);
}

/* Replaces n_old bytes at pos; records nothing. */
static void
replace(struct ui_editor *ed, size_t pos, size_t n_old, const char *bytes, size_t n)
{
    ui_buf_remove(&ed->text, pos, n_old);
    ui_buf_insert(&ed->text, pos, bytes, n);
    ed->changed = PLY_MIN(ed->changed, pos);
    ed->version++;
    ed->goal = -1;
}

/* A typed piece joins the change before it, unless it begins a new word or line. */
static bool
joins(const struct ui_editor *ed, size_t pos, size_t n_old, const char *bytes)
{
    if (ed->n_done == 0 || n_old > 0)
        return false;
    const struct ui_change *c = &ed->changes[ed->n_done - 1];
    return c->typed && pos == c->pos + c->inserted.n && bytes[0] != ' ' && bytes[0] != '\n';
}

static void
apply(struct ui_editor *ed, size_t pos, size_t n_old, const char *bytes, size_t n, bool typed)
{
    if (n_old == 0 && n == 0)
        return;
    drop_redo(ed);
    if (typed && joins(ed, pos, n_old, bytes)) {
        ui_buf_append(&ed->changes[ed->n_done - 1].inserted, bytes, n);
    } else {
        if (ed->n_changes == UNDO_MAX) {
            change_fini(&ed->changes[0]);
            memmove(ed->changes, ed->changes + 1, (UNDO_MAX - 1) * sizeof *ed->changes);
            ed->n_changes--;
        }
        if (ed->n_changes == ed->cap_changes) {
            ed->cap_changes = ed->cap_changes ? ed->cap_changes * 2 : 16;
            ed->changes = ui_xrealloc(ed->changes, ed->cap_changes, sizeof *ed->changes);
        }
        struct ui_change *c = &ed->changes[ed->n_changes++];
        *c = (struct ui_change){.pos = pos, .caret = ed->caret, .typed = typed};
        if (n_old > 0)
            ui_buf_append(&c->removed, ed->text.v + pos, n_old);
        ui_buf_append(&c->inserted, bytes, n);
    }
    ed->n_done = ed->n_changes;
    replace(ed, pos, n_old, bytes, n);
    ed->caret = pos + n;
}

static void
undo(struct ui_editor *ed)
{
    if (ed->n_done == 0)
        return;
    struct ui_change *c = &ed->changes[--ed->n_done];
    c->typed = false;
    replace(ed, c->pos, c->inserted.n, ui_buf_str(&c->removed), c->removed.n);
    ed->caret = PLY_MIN(c->caret, ed->text.n);
}

static void
redo(struct ui_editor *ed)
{
    if (ed->n_done == ed->n_changes)
        return;
    const struct ui_change *c = &ed->changes[ed->n_done++];
    replace(ed, c->pos, c->removed.n, ui_buf_str(&c->inserted), c->inserted.n);
    ed->caret = c->pos + c->inserted.n;
}

/* ---- positions ------------------------------------------------------------------------- */

static size_t
line_start(const struct ui_editor *ed, size_t pos)
{
    while (pos > 0 && ed->text.v[pos - 1] != '\n')
        pos--;
    return pos;
}

static size_t
line_end(const struct ui_editor *ed, size_t pos)
{
    while (pos < ed->text.n && ed->text.v[pos] != '\n')
        pos++;
    return pos;
}

static uint32_t
cp_at(const struct ui_editor *ed, size_t pos)
{
    uint32_t cp;
    ply_utf8_decode(ed->text.v + pos, ed->text.n - pos, &cp);
    return cp;
}

static bool
is_word_char(const struct ui_editor *ed, size_t pos)
{
    return ui_text_is_word(cp_at(ed, pos));
}

static bool
is_not_space(const struct ui_editor *ed, size_t pos)
{
    const char c = ed->text.v[pos];
    return c != ' ' && c != '\n' && c != '\t';
}

/* The start of the word before pos, a word being what in() says. */
static size_t
word_left(const struct ui_editor *ed, size_t pos, bool (*in)(const struct ui_editor *, size_t))
{
    bool inside = false;
    while (pos > 0) {
        const size_t prev = ui_text_prev(ed->text.v, ed->text.n, pos);
        const bool word = in(ed, prev);
        if (inside && !word)
            break;
        inside |= word;
        pos = prev;
    }
    return pos;
}

static size_t
word_right(const struct ui_editor *ed, size_t pos)
{
    bool inside = false;
    while (pos < ed->text.n) {
        const bool word = is_word_char(ed, pos);
        if (inside && !word)
            break;
        inside |= word;
        pos = ui_text_next(ed->text.v, ed->text.n, pos);
    }
    return pos;
}

/* ---- inserting, killing ---------------------------------------------------------------- */

/* Text as it may stand in the editor (editor.h). */
static void
clean(struct ply_buf *out, const char *text, size_t n, bool one_line)
{
    size_t plain = 0; /* text[plain..i) can be copied as it is */
    for (size_t i = 0; i < n;) {
        const char c = text[i];
        if (c != '\0' && c != '\r' && (c != '\n' || !one_line) && (unsigned char)c < 0x80) {
            i++;
            continue;
        }
        uint32_t cp;
        const int len = ply_utf8_decode(text + i, n - i, &cp);
        if (len > 1) {
            i += (size_t)len;
            continue;
        }
        ui_buf_append(out, text + plain, i - plain);
        if (len < 0)
            ui_buf_append(out, "\xEF\xBF\xBD", 3);
        else if (c != '\0')
            ui_buf_append(out, one_line ? " " : "\n", 1);
        i += len < 0 ? (size_t)-len : 1;
        if (c == '\r' && i < n && text[i] == '\n')
            i++;
        plain = i;
    }
    ui_buf_append(out, text + plain, n - plain);
}

void
ui_editor_insert(struct ui_editor *ed, const char *text, size_t n, bool typed)
{
    struct ply_buf buf = {0};
    clean(&buf, text, n, ed->one_line);
    if (buf.n > 0)
        apply(ed, ed->caret, 0, buf.v, buf.n, typed);
    ply_buf_fini(&buf);
    ed->killing = false;
}

static void
delete_range(struct ui_editor *ed, size_t from, size_t to)
{
    apply(ed, from, to - from, "", 0, false);
}

/* Deletes into the kill buffer; kills in a row gather there. */
static void
kill_range(struct ui_editor *ed, size_t from, size_t to, bool was_killing)
{
    if (from == to)
        return;
    if (!was_killing)
        ed->kill.n = 0;
    ui_buf_insert(&ed->kill, from < ed->caret ? 0 : ed->kill.n, ed->text.v + from, to - from);
    delete_range(ed, from, to);
    ed->killing = true;
}

/* Swaps the graphemes around the caret; at a line's end the two before it. */
static void
transpose(struct ui_editor *ed)
{
    const char *s = ui_buf_str(&ed->text);
    size_t mid = ed->caret;
    if (mid == line_end(ed, mid) && mid > line_start(ed, mid))
        mid = ui_text_prev(s, ed->text.n, mid);
    if (mid == line_start(ed, mid) || mid == line_end(ed, mid))
        return;
    const size_t from = ui_text_prev(s, ed->text.n, mid);
    const size_t to = ui_text_next(s, ed->text.n, mid);
    struct ply_buf swapped = {0};
    ui_buf_append(&swapped, s + mid, to - mid);
    ui_buf_append(&swapped, s + from, mid - from);
    apply(ed, from, to - from, swapped.v, swapped.n, false);
    ply_buf_fini(&swapped);
}

/* ---- history --------------------------------------------------------------------------- */

static void
recall(struct ui_editor *ed, int index)
{
    if (index < 0 || index > ed->n_history || index == ed->recall)
        return;
    if (ed->recall == ed->n_history)
        ui_buf_set(&ed->draft, ui_buf_str(&ed->text), ed->text.n);
    const struct ply_buf *b = index == ed->n_history ? &ed->draft : &ed->history[index];
    ed->recall = index;
    apply(ed, 0, ed->text.n, ui_buf_str(b), b->n, false);
}

void
ui_editor_history_add(struct ui_editor *ed, const char *text, size_t n)
{
    struct ply_buf b = {0};
    clean(&b, text, n, false);
    const struct ply_buf *last = ed->n_history > 0 ? &ed->history[ed->n_history - 1] : NULL;
    const bool same = last && last->n == b.n && memcmp(last->v, b.v, b.n) == 0;
    if (b.n == 0 || same) {
        ply_buf_fini(&b);
    } else {
        if (ed->n_history == HISTORY_MAX) {
            ply_buf_fini(&ed->history[0]);
            memmove(ed->history, ed->history + 1, (HISTORY_MAX - 1) * sizeof *ed->history);
            ed->n_history--;
        }
        if (ed->n_history == ed->cap_history) {
            ed->cap_history = ed->cap_history ? ed->cap_history * 2 : 16;
            ed->history = ui_xrealloc(ed->history, (size_t)ed->cap_history, sizeof *ed->history);
        }
        ed->history[ed->n_history++] = b;
    }
    ed->recall = ed->n_history;
}

/* ---- moving by rows -------------------------------------------------------------------- */

void
ui_editor_layout(struct ui_editor *ed, int cols, size_t *caret_row, int *caret_col)
{
    const char *s = ui_buf_str(&ed->text);
    if (ed->rows.cols != cols || ed->rows.n == 0 || ed->changed != SIZE_MAX)
        ui_rows_update(&ed->rows, s, ed->text.n, cols, PLY_MIN(ed->changed, ed->text.n));
    ed->changed = SIZE_MAX;
    *caret_row = ui_rows_find(&ed->rows, ed->caret);
    const int col = ui_row_col(s, &ed->rows.v[*caret_row], ed->caret);
    *caret_col = PLY_MIN(col, cols); /* spaces may hang over the edge */
}

size_t
ui_editor_scroll(struct ui_editor *ed, size_t caret_row, int height)
{
    const size_t h = height > 0 ? (size_t)height : 1;
    if (caret_row < ed->top)
        ed->top = caret_row;
    if (caret_row >= ed->top + h)
        ed->top = caret_row + 1 - h;
    if (ed->top + h > ed->rows.n)
        ed->top = ed->rows.n > h ? ed->rows.n - h : 0;
    return ed->top;
}

/* Moves a row up or down; false at the first or last one. */
static bool
move_row(struct ui_editor *ed, int by)
{
    size_t row;
    int col;
    ui_editor_layout(ed, ed->rows.cols > 0 ? ed->rows.cols : 80, &row, &col);
    if ((by < 0 && row == 0) || (by > 0 && row + 1 >= ed->rows.n))
        return false;
    const int goal = ed->goal >= 0 ? ed->goal : col;
    const struct ui_row *to = &ed->rows.v[by < 0 ? row - 1 : row + 1];
    size_t at = ui_row_at(ui_buf_str(&ed->text), to, goal);
    /* The end of a row that wraps is the start of the next one: stay before it. */
    if (at == to->off + to->skip && !to->hard && at < ed->text.n)
        at = ui_text_prev(ed->text.v, ed->text.n, at);
    ed->caret = at;
    ed->goal = goal;
    return true;
}

/* ---- commands -------------------------------------------------------------------------- */

static void
move(struct ui_editor *ed, enum ui_edit cmd)
{
    const char *s = ui_buf_str(&ed->text);
    const size_t n = ed->text.n, at = ed->caret;
    switch (cmd) {
    case UI_EDIT_LEFT: ed->caret = ui_text_prev(s, n, at); break;
    case UI_EDIT_RIGHT: ed->caret = ui_text_next(s, n, at); break;
    case UI_EDIT_LINE_START: ed->caret = line_start(ed, at); break;
    case UI_EDIT_LINE_END: ed->caret = line_end(ed, at); break;
    case UI_EDIT_TEXT_START: ed->caret = 0; break;
    case UI_EDIT_TEXT_END: ed->caret = n; break;
    case UI_EDIT_WORD_LEFT: ed->caret = word_left(ed, at, is_word_char); break;
    case UI_EDIT_WORD_RIGHT: ed->caret = word_right(ed, at); break;
    default: break;
    }
    ed->goal = -1;
}

static void
kill_command(struct ui_editor *ed, enum ui_edit cmd, bool was_killing)
{
    const size_t at = ed->caret, n = ed->text.n;
    size_t from = at, to = at;
    switch (cmd) {
    case UI_EDIT_KILL_WORD_LEFT: from = word_left(ed, at, is_word_char); break;
    case UI_EDIT_KILL_SPACE_LEFT: from = word_left(ed, at, is_not_space); break;
    case UI_EDIT_KILL_WORD_RIGHT: to = word_right(ed, at); break;
    case UI_EDIT_KILL_LINE_START: from = line_start(ed, at); break;
    case UI_EDIT_KILL_ALL:
        from = 0;
        to = n;
        break;
    default:
        to = line_end(ed, at);
        if (to == at && to < n)
            to++; /* at a line's end the newline goes */
        break;
    }
    kill_range(ed, from, to, was_killing);
}

void
ui_editor_do(struct ui_editor *ed, enum ui_edit cmd)
{
    const char *s = ui_buf_str(&ed->text);
    const bool was_killing = ed->killing;
    ed->killing = false;
    switch (cmd) {
    case UI_EDIT_UP:
        if (!move_row(ed, -1))
            recall(ed, ed->recall - 1);
        break;
    case UI_EDIT_DOWN:
        if (!move_row(ed, 1))
            recall(ed, ed->recall + 1);
        break;
    case UI_EDIT_HISTORY_PREV: recall(ed, ed->recall - 1); break;
    case UI_EDIT_HISTORY_NEXT: recall(ed, ed->recall + 1); break;
    case UI_EDIT_BACKSPACE:
        delete_range(ed, ui_text_prev(s, ed->text.n, ed->caret), ed->caret);
        break;
    case UI_EDIT_DELETE: delete_range(ed, ed->caret, ui_text_next(s, ed->text.n, ed->caret)); break;
    case UI_EDIT_KILL_WORD_LEFT:
    case UI_EDIT_KILL_SPACE_LEFT:
    case UI_EDIT_KILL_WORD_RIGHT:
    case UI_EDIT_KILL_LINE_START:
    case UI_EDIT_KILL_LINE_END:
    case UI_EDIT_KILL_ALL: kill_command(ed, cmd, was_killing); break;
    case UI_EDIT_YANK:
        if (ed->kill.n > 0)
            apply(ed, ed->caret, 0, ed->kill.v, ed->kill.n, false);
        break;
    case UI_EDIT_TRANSPOSE: transpose(ed); break;
    case UI_EDIT_UNDO: undo(ed); break;
    case UI_EDIT_REDO: redo(ed); break;
    default: move(ed, cmd); break;
    }
}

void
ui_editor_set(struct ui_editor *ed, const char *text, size_t n)
{
    struct ply_buf buf = {0};
    clean(&buf, text, n, ed->one_line);
    apply(ed, 0, ed->text.n, ui_buf_str(&buf), buf.n, false);
    ply_buf_fini(&buf);
    ed->recall = ed->n_history;
    ed->killing = false;
}

void
ui_editor_reset(struct ui_editor *ed)
{
    replace(ed, 0, ed->text.n, "", 0);
    ed->n_done = 0;
    drop_redo(ed);
    ed->caret = 0;
    ed->top = 0;
    ed->recall = ed->n_history;
    ed->killing = false;
}

bool
ui_editor_is_blank(const struct ui_editor *ed)
{
    for (size_t i = 0; i < ed->text.n; i++) {
        if (is_not_space(ed, i))
            return false;
    }
    return true;
}

void
ui_editor_init(struct ui_editor *ed, bool one_line)
{
    *ed = (struct ui_editor){.one_line = one_line, .goal = -1};
}

void
ui_editor_fini(struct ui_editor *ed)
{
    ed->n_done = 0;
    drop_redo(ed);
    free(ed->changes);
    for (int i = 0; i < ed->n_history; i++)
        ply_buf_fini(&ed->history[i]);
    free(ed->history);
    ply_buf_fini(&ed->text);
    ply_buf_fini(&ed->kill);
    ply_buf_fini(&ed->draft);
    ui_rows_fini(&ed->rows);
    *ed = (struct ui_editor){0};
}
