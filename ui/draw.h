/* SPDX-License-Identifier: MIT
 * Drawing into curses' screen. Every text goes through ui_draw_text() or ui_draw_row(): the only
 * ways from bytes to the terminal. */
#ifndef UI_DRAW_H
#define UI_DRAW_H

#include <stddef.h>

#include "ui/wrap.h"

struct ui;

enum ui_style {
    UI_STYLE_TEXT,
    UI_STYLE_DIM,
    UI_STYLE_BOLD,
    UI_STYLE_USER,
    UI_STYLE_REPLY,
    UI_STYLE_SYSTEM,
    UI_STYLE_NOTE,
    UI_STYLE_PROMPT,
    UI_STYLE_RULE,
    UI_STYLE_MORE,
    UI_STYLE_WARN,
    UI_STYLE_ERROR,
    UI_STYLE_BAR, /* header line and status bar */
    UI_STYLE_BAR_BOLD,
    UI_STYLE_BAR_BUSY,
    UI_STYLE_BAR_ALERT,
    UI_STYLE_SELECTED,
    N_UI_STYLES,
};

/* Chooses how styles look: in colours, or with bold, reverse and underline alone. */
void ui_draw_init_styles(bool color);

/* The whole screen, from ui's models; leaves the cursor at the caret. */
void ui_draw_screen(struct ui *ui);
/* Parts of it. */
void ui_draw_transcript(struct ui *ui);
void ui_draw_list(struct ui *ui);
void ui_draw_pager(struct ui *ui);
/* Where the cursor shall stand when all is drawn. */
void ui_draw_cursor(struct ui *ui, int y, int x);

/* A single-line text from column x, never into column x_end; returns the column after it. */
int ui_draw_text(int y, int x, int x_end, const char *s, size_t n, enum ui_style style);
int ui_draw_str(int y, int x, int x_end, const char *s, enum ui_style style);
/* The same, but cut with ".." where it does not fit. */
int ui_draw_cut(int y, int x, int x_end, const char *s, enum ui_style style);
/* Ends at column x_end - 1; nothing is drawn if it does not fit behind x. Returns the first column
 * that it takes, x_end for none. */
int ui_draw_right(int y, int x, int x_end, const char *s, enum ui_style style);
/* A row of wrapped text, with tabs; returns the column after it. */
int ui_draw_row(int y, int x, int x_end, const char *text, const struct ui_row *row,
                enum ui_style style);
/* Columns x to x_end - 1 blank, or a horizontal line. */
void ui_draw_blank(int y, int x, int x_end, enum ui_style style);
void ui_draw_line(int y, int x, int x_end, enum ui_style style);

#endif
