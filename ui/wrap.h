/* SPDX-License-Identifier: MIT
 * Word wrap: text -> rows of at most so many columns. Greedy, so a row depends only on the text
 * before its end: when text grows at its end only the last row changes. */
#ifndef UI_WRAP_H
#define UI_WRAP_H

#include <stdbool.h>
#include <stddef.h>

#define UI_TAB_COLS 4 /* code is the only place where tabs are met, and 80 columns are few */

/* A row shows text[off .. off + len). The next row begins at off + skip: len, plus the spaces that
 * hang over the edge, plus the newline. */
struct ui_row {
    size_t off, len, skip;
    bool hard; /* ended by a newline */
};

struct ui_rows {
    struct ui_row *v;
    size_t n, cap;
    int cols; /* what they were laid out for; 0: not laid out */
};

/* The row of text[0..n) that begins at off, off <= n, cols >= 1. */
void ui_wrap_row(const char *text, size_t n, size_t off, int cols, struct ui_row *row);

/* Lays out text from its start, or, if rows were laid out for the same width, from the row before
 * the one that holds byte `from`: what lies before has not changed. There is always a row, and one
 * after a final newline. */
void ui_rows_update(struct ui_rows *rows, const char *text, size_t n, int cols, size_t from);
/* Index of the row that holds byte off. */
size_t ui_rows_find(const struct ui_rows *rows, size_t off);
void ui_rows_fini(struct ui_rows *rows);

/* Column of byte off in its row, tabs counted; and the offset of the grapheme at a column. */
int ui_row_col(const char *text, const struct ui_row *row, size_t off);
size_t ui_row_at(const char *text, const struct ui_row *row, int col);

#endif
