/* SPDX-License-Identifier: MIT
 * The screen is divided by need: the editor's first line always, then the status bar, the
 * transcript, the rule between transcript and editor, the header. */
#include "ui/layout.h"

#include "engine/base/num.h"

void
ui_layout_make(struct ui_layout *l, int rows, int cols, int draft_rows, bool notice, bool urgent)
{
    *l = (struct ui_layout){.rows = rows, .cols = cols, .gaps = rows >= 16};
    const int n_bar = rows >= 2, n_rule = rows >= 6, n_header = rows >= 7;
    const int n_notice = notice && rows >= 4;
    const int rest = rows - n_bar - n_rule - n_header - n_notice;
    const int view_min = rows >= 10 ? 3 : rows >= 3 ? 1 : 0;
    const int most = PLY_MAX(PLY_MIN(UI_EDITOR_ROWS_MAX, rest - view_min), 1);
    l->editor_rows = PLY_MAX(PLY_MIN(draft_rows, most), 1);
    l->view_rows = PLY_MAX(rest - l->editor_rows, 0);
    int y = 0;
    l->header = n_header ? y++ : -1;
    l->view = y;
    y += l->view_rows;
    l->rule = n_rule ? y++ : -1;
    l->notice = n_notice ? y++ : -1;
    l->editor = y;
    y += l->editor_rows;
    l->bar = n_bar ? y : -1;
    if (notice && l->notice < 0 && (n_bar || urgent)) {
        l->notice = n_bar ? l->bar : l->editor;
        l->bar = -1;
    }
}

int
ui_layout_text_cols(int cols)
{
    /* A blank column at the right edge; on screens of few columns every one is text. */
    return cols >= 20 ? cols - UI_TEXT_INDENT - 1 : PLY_MAX(cols, 1);
}

int
ui_layout_draft_cols(int cols)
{
    return PLY_MAX(cols - UI_EDITOR_PROMPT - 1, 1);
}
