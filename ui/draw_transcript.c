/* SPDX-License-Identifier: MIT
 * The messages in view. */
#include "ui/draw.h"

#include <string.h>

#include "engine/base/num.h"
#include "ui/mem.h"
#include "ui/screen.h"

static enum ui_style
role_style(enum ui_role role)
{
    switch (role) {
    case UI_ROLE_USER: return UI_STYLE_USER;
    case UI_ROLE_REPLY: return UI_STYLE_REPLY;
    case UI_ROLE_SYSTEM: return UI_STYLE_SYSTEM;
    default: return UI_STYLE_NOTE;
    }
}

static void
draw_message_header(struct ui *ui, int y, int msg)
{
    const struct ui_entry *e = &ui->transcript.v[msg];
    const int cols = ui->layout.cols;
    const int x_right = ui_draw_right(y, cols / 2, cols - 1, e->right, UI_STYLE_DIM);
    const int x_end = x_right - 1;
    const int x = ui_draw_cut(y, cols > 20 ? 1 : 0, x_end, e->author, role_style(e->role)) + 2;
    if (msg == ui->transcript.live) {
        struct ply_buf s = {0};
        ui_status_live(&ui->status, ui_now_ms(ui), x_end - x, &s);
        ui_draw_str(y, x, x_end, ui_buf_str(&s), UI_STYLE_DIM);
        ply_buf_fini(&s);
    } else if (x < x_end) {
        ui_draw_cut(y, x, x_end, e->info, UI_STYLE_DIM);
    }
}

void
ui_draw_transcript(struct ui *ui)
{
    const struct ui_layout *l = &ui->layout;
    struct ui_transcript *t = &ui->transcript;
    struct ui_line *lines = ui_xrealloc(NULL, (size_t)PLY_MAX(t->height, 1), sizeof *lines);
    const int indent = l->cols - ui_layout_text_cols(l->cols) > 0 ? UI_TEXT_INDENT : 0;
    const int n = ui_transcript_lines(t, lines);
    for (int i = 0; i < n; i++) {
        const int y = l->view + i;
        if (lines[i].kind == UI_LINE_HEADER)
            draw_message_header(ui, y, lines[i].msg);
        else if (lines[i].kind == UI_LINE_TEXT)
            ui_draw_row(y, indent, l->cols, ui_buf_str(&t->v[lines[i].msg].text), &lines[i].row,
                        UI_STYLE_TEXT);
    }
    free(lines);
}
