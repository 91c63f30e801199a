/* SPDX-License-Identifier: MIT
 * The transcript: messages, their rows, and which of them the view shows. No curses.
 *
 * A message is drawn as lines: a gap (except on low screens), a header line, and the rows of its
 * text. The view either follows the end or is anchored: its top line is kept as
 * a message and a place in it (a byte of its text), which survives new text and other widths. */
#ifndef UI_TRANSCRIPT_H
#define UI_TRANSCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/array.h"
#include "ui/ui.h"
#include "ui/wrap.h"

struct ui_entry {
    enum ui_role role;
    char *author, *info, *right;
    struct ply_buf text;
    struct ui_rows rows;
    size_t changed; /* rows are right before this byte */
};

/* A line of the view: which message, and which of its lines. */
enum ui_line_kind { UI_LINE_GAP, UI_LINE_HEADER, UI_LINE_TEXT };

struct ui_line {
    int msg;
    enum ui_line_kind kind;
    struct ui_row row; /* for UI_LINE_TEXT */
};

/* A place: before the text stand the gap (-2) and the header (-1). */
struct ui_place {
    int msg;
    long off;
};

struct ui_transcript {
    struct ui_entry *v;
    int n, cap;
    int live;   /* message whose header line shows the status, -1: none */
    int cols;   /* columns for text */
    int height; /* lines of the view */
    bool gaps;
    bool follow;
    struct ui_place top;  /* when not following: the view's first line */
    struct ui_place seen; /* when not following: where the text ended when following stopped */
};

void ui_transcript_init(struct ui_transcript *t);
void ui_transcript_fini(struct ui_transcript *t);

int ui_transcript_add(struct ui_transcript *t, const struct ui_msg *msg);
void ui_transcript_append(struct ui_transcript *t, const char *text, size_t n);
void ui_transcript_set_text(struct ui_transcript *t, int msg, const char *text, size_t n);
void ui_transcript_truncate(struct ui_transcript *t, int n);

/* The view's size; the place is kept. */
void ui_transcript_resize(struct ui_transcript *t, int cols, int height, bool gaps);
/* Down for by > 0. Reaching the end follows it again. */
void ui_transcript_scroll(struct ui_transcript *t, int by);
void ui_transcript_home(struct ui_transcript *t);
void ui_transcript_follow(struct ui_transcript *t);

/* The lines to show, from the top: at most height of them; returns how many. */
int ui_transcript_lines(struct ui_transcript *t, struct ui_line *lines);
/* When not following: lines below the view, and how many of them arrived since it was left. */
long ui_transcript_below(struct ui_transcript *t, long *n_new);

#endif
