/* SPDX-License-Identifier: MIT
 * Messages and the view on them. A message is laid out when a line of it is asked for, so a long
 * chat costs nothing where it is not looked at, and a growing reply costs its last row. */
#include "ui/transcript.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/num.h"
#include "ui/mem.h"

/* ---- lines of a message ---------------------------------------------------------------- */

static void
layout(const struct ui_transcript *t, struct ui_entry *e)
{
    if (e->rows.cols == t->cols && e->changed == SIZE_MAX)
        return;
    ui_rows_update(&e->rows, ui_buf_str(&e->text), e->text.n, t->cols,
                   PLY_MIN(e->changed, e->text.n));
    e->changed = SIZE_MAX;
}

/* Lines before the text: gap and header. */
static long
n_before(const struct ui_transcript *t)
{
    return t->gaps ? 2 : 1;
}

static long
n_lines(const struct ui_transcript *t, int msg)
{
    struct ui_entry *e = &t->v[msg];
    if (e->text.n == 0)
        return n_before(t);
    layout(t, e);
    /* Newlines at the end of a text show nothing. */
    size_t n = e->rows.n;
    while (n > 1 && e->rows.v[n - 1].len == 0)
        n--;
    return n_before(t) + (long)n;
}

/* Index in the message of the line that holds a place, and back. */
static long
line_of(const struct ui_transcript *t, const struct ui_place *p)
{
    struct ui_entry *e = &t->v[p->msg];
    const long before = n_before(t);
    if (p->off < 0 || e->text.n == 0)
        return p->off == -2 ? 0 : before - 1;
    layout(t, e);
    const long line = before + (long)ui_rows_find(&e->rows, (size_t)p->off);
    return PLY_MIN(line, n_lines(t, p->msg) - 1);
}

static struct ui_place
place_of(const struct ui_transcript *t, int msg, long line)
{
    const long before = n_before(t);
    if (line < before)
        return (struct ui_place){msg, line - before};
    return (struct ui_place){msg, (long)t->v[msg].rows.v[line - before].off};
}

/* Moves (msg, line) by so many lines, stopping at either end; returns what was left over. */
static long
walk(const struct ui_transcript *t, int *msg, long *line, long by)
{
    while (by < 0) {
        if (*line + by >= 0) {
            *line += by;
            return 0;
        }
        if (*msg == 0) {
            by += *line;
            *line = 0;
            return by;
        }
        by += *line + 1;
        *msg -= 1;
        *line = n_lines(t, *msg) - 1;
    }
    while (by > 0) {
        const long n = n_lines(t, *msg);
        if (*line + by < n) {
            *line += by;
            return 0;
        }
        if (*msg == t->n - 1) {
            by -= n - 1 - *line;
            *line = n - 1;
            return by;
        }
        by -= n - *line;
        *msg += 1;
        *line = 0;
    }
    return 0;
}

/* The first line of the view that ends with the last line of all. */
static void
bottom_top(const struct ui_transcript *t, int *msg, long *line)
{
    *msg = t->n - 1;
    *line = n_lines(t, *msg) - 1;
    walk(t, msg, line, -((long)t->height - 1));
}

/* ---- messages -------------------------------------------------------------------------- */

static void
entry_fini(struct ui_entry *e)
{
    free(e->author);
    free(e->info);
    free(e->right);
    ply_buf_fini(&e->text);
    ui_rows_fini(&e->rows);
}

void
ui_transcript_init(struct ui_transcript *t)
{
    *t = (struct ui_transcript){.live = -1, .cols = 1, .height = 1, .gaps = true, .follow = true};
}

void
ui_transcript_fini(struct ui_transcript *t)
{
    for (int i = 0; i < t->n; i++)
        entry_fini(&t->v[i]);
    free(t->v);
    *t = (struct ui_transcript){0};
}

int
ui_transcript_add(struct ui_transcript *t, const struct ui_msg *msg)
{
    if (t->n == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 16;
        t->v = ui_xrealloc(t->v, (size_t)t->cap, sizeof *t->v);
    }
    struct ui_entry *e = &t->v[t->n];
    *e = (struct ui_entry){.role = msg->role};
    ui_str_set(&e->author, msg->author);
    ui_str_set(&e->info, msg->info);
    ui_str_set(&e->right, msg->right);
    if (msg->text)
        ui_buf_append(&e->text, msg->text, msg->len);
    return t->n++;
}

void
ui_transcript_append(struct ui_transcript *t, const char *text, size_t n)
{
    if (t->n == 0 || n == 0)
        return;
    struct ui_entry *e = &t->v[t->n - 1];
    e->changed = PLY_MIN(e->changed, e->text.n);
    ui_buf_append(&e->text, text, n);
}

void
ui_transcript_set_text(struct ui_transcript *t, int msg, const char *text, size_t n)
{
    if (msg < 0 || msg >= t->n)
        return;
    ui_buf_set(&t->v[msg].text, text, n);
    t->v[msg].changed = 0;
}

void
ui_transcript_truncate(struct ui_transcript *t, int n)
{
    while (t->n > PLY_MAX(n, 0))
        entry_fini(&t->v[--t->n]);
    if (t->live >= t->n)
        t->live = -1;
    if (t->n == 0 || t->top.msg >= t->n)
        t->follow = true;
}

/* ---- the view -------------------------------------------------------------------------- */

void
ui_transcript_resize(struct ui_transcript *t, int cols, int height, bool gaps)
{
    t->cols = PLY_MAX(cols, 1);
    t->height = PLY_MAX(height, 0);
    t->gaps = gaps;
}

void
ui_transcript_follow(struct ui_transcript *t)
{
    t->follow = true;
}

static void
leave_end(struct ui_transcript *t)
{
    if (!t->follow)
        return;
    t->follow = false;
    t->seen = (struct ui_place){.msg = t->n - 1, .off = (long)t->v[t->n - 1].text.n};
}

void
ui_transcript_scroll(struct ui_transcript *t, int by)
{
    if (t->n == 0 || by == 0 || (t->follow && by > 0))
        return;
    int msg, end_msg;
    long line, end_line;
    bottom_top(t, &end_msg, &end_line);
    if (t->follow) {
        msg = end_msg;
        line = end_line;
    } else {
        msg = t->top.msg;
        line = line_of(t, &t->top);
    }
    walk(t, &msg, &line, by);
    if (msg > end_msg || (msg == end_msg && line >= end_line)) {
        t->follow = true;
        return;
    }
    leave_end(t);
    t->top = place_of(t, msg, line);
}

void
ui_transcript_home(struct ui_transcript *t)
{
    int msg;
    long line;
    if (t->n == 0)
        return;
    bottom_top(t, &msg, &line);
    if (msg == 0 && line == 0)
        return;
    leave_end(t);
    t->top = (struct ui_place){.msg = 0, .off = -2};
}

int
ui_transcript_lines(struct ui_transcript *t, struct ui_line *lines)
{
    if (t->n == 0 || t->height == 0)
        return 0;
    int msg;
    long line;
    bottom_top(t, &msg, &line);
    if (!t->follow) {
        const long top_line = line_of(t, &t->top);
        /* A higher view may show all that is below the anchor: then it ends with the end. */
        if (t->top.msg < msg || (t->top.msg == msg && top_line < line)) {
            msg = t->top.msg;
            line = top_line;
        }
    }
    int n = 0;
    for (; n < t->height && msg < t->n; msg++, line = 0) {
        const long total = n_lines(t, msg), before = n_before(t);
        for (; n < t->height && line < total; line++) {
            struct ui_line *l = &lines[n++];
            l->msg = msg;
            l->kind = line >= before       ? UI_LINE_TEXT
                      : line == before - 1 ? UI_LINE_HEADER
                                           : UI_LINE_GAP;
            if (l->kind == UI_LINE_TEXT)
                l->row = t->v[msg].rows.v[line - before];
        }
    }
    return n;
}

static long
lines_since_seen(const struct ui_transcript *t)
{
    if (t->seen.msg >= t->n)
        return 0;
    const long last = n_lines(t, t->seen.msg) - 1, line = line_of(t, &t->seen);
    /* A line that begins where the text ended then was empty, and is new. */
    const bool whole = place_of(t, t->seen.msg, line).off == t->seen.off;
    long n = last - line + whole;
    for (int i = t->seen.msg + 1; i < t->n; i++)
        n += n_lines(t, i);
    return n;
}

long
ui_transcript_below(struct ui_transcript *t, long *n_new)
{
    *n_new = 0;
    if (t->follow || t->n == 0)
        return 0;
    int msg = t->top.msg;
    long line = line_of(t, &t->top);
    if (walk(t, &msg, &line, (long)t->height - 1) > 0)
        return 0;
    long below = n_lines(t, msg) - 1 - line;
    for (int i = msg + 1; i < t->n; i++)
        below += n_lines(t, i);
    *n_new = PLY_MIN(lines_since_seen(t), below);
    return below;
}
