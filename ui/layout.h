/* SPDX-License-Identifier: MIT
 * Which line of the screen shows what. */
#ifndef UI_LAYOUT_H
#define UI_LAYOUT_H

#include <stdbool.h>

#define UI_EDITOR_ROWS_MAX 10
#define UI_TEXT_INDENT 3   /* of a message's text */
#define UI_EDITOR_PROMPT 3 /* " > " before the draft, and one column after it for the caret */

/* Line numbers from 0; -1: not on this screen. */
struct ui_layout {
    int rows, cols;
    int header, rule, notice, bar; /* one line each */
    int view, view_rows;           /* the transcript or an overlay */
    int editor, editor_rows;
    bool gaps; /* room for a blank line between messages */
};

/* A screen of rows x cols, both at least 1, for a draft of draft_rows rows. A notice has a line of
 * its own where there are four, else it takes the bar's, else the editor's if it is urgent. */
void ui_layout_make(struct ui_layout *l, int rows, int cols, int draft_rows, bool notice,
                    bool urgent);
/* Columns for a message's text and for the draft, at least 1. */
int ui_layout_text_cols(int cols);
int ui_layout_draft_cols(int cols);

#endif
