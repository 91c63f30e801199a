/* SPDX-License-Identifier: MIT
 * The frame: header line, rule, notice, editor, status bar, and the transcript or an overlay
 * between them. */
#include "ui/draw.h"

#include <string.h>

#include <curses.h>

#include "engine/base/num.h"
#include "ui/mem.h"
#include "ui/screen.h"
#include "ui/text.h"

static void
draw_header(struct ui *ui)
{
    const struct ui_layout *l = &ui->layout;
    struct ply_buf left = {0}, right = {0};
    if (l->header < 0)
        return;
    ui_header_line(&ui->header, l->cols, &left, &right);
    ui_draw_blank(l->header, 0, l->cols, UI_STYLE_BAR);
    const char *model = ui->header.model ? ui->header.model : "";
    const size_t n_model = PLY_MIN(strlen(model), left.n);
    const int x =
        ui_draw_text(l->header, 1, l->cols, ui_buf_str(&left), n_model, UI_STYLE_BAR_BOLD);
    ui_draw_text(l->header, x, l->cols, ui_buf_str(&left) + n_model, left.n - n_model,
                 UI_STYLE_BAR);
    ui_draw_right(l->header, 0, l->cols - 1, ui_buf_str(&right), UI_STYLE_BAR);
    ply_buf_fini(&left);
    ply_buf_fini(&right);
}

static enum ui_style
word_style(enum ui_state s)
{
    if (s == UI_STATE_STOPPED || s == UI_STATE_FULL)
        return UI_STYLE_BAR_ALERT;
    return s == UI_STATE_IDLE ? UI_STYLE_BAR_BOLD : UI_STYLE_BAR_BUSY;
}

static void
draw_bar(struct ui *ui)
{
    const struct ui_layout *l = &ui->layout;
    struct ui_bar bar = {0};
    if (l->bar < 0)
        return;
    ui_status_bar(&ui->status, ui_now_ms(ui), l->cols, &bar);
    const char *s = ui_buf_str(&bar.text);
    const size_t word_end = bar.word_off + bar.word_len;
    ui_draw_blank(l->bar, 0, l->cols, UI_STYLE_BAR);
    /* The state's colour takes the blank columns around the word too. */
    const enum ui_style style = word_style(ui->status.state);
    const size_t after = word_end < bar.text.n && s[word_end] == ' ' ? 1 : 0;
    int x = ui_draw_text(l->bar, 0, l->cols, s, word_end + after, style);
    size_t from = word_end + after;
    if (bar.miss_len > 0) {
        x = ui_draw_text(l->bar, x, l->cols, s + from, bar.miss_off - from, UI_STYLE_BAR);
        x = ui_draw_text(l->bar, x, l->cols, s + bar.miss_off, bar.miss_len, UI_STYLE_BAR_BOLD);
        from = bar.miss_off + bar.miss_len;
    }
    ui_draw_text(l->bar, x, l->cols, s + from, bar.text.n - from, UI_STYLE_BAR);
    ply_buf_fini(&bar.text);
}

static void
draw_rule(struct ui *ui)
{
    const struct ui_layout *l = &ui->layout;
    long n_new;
    if (l->rule < 0)
        return;
    ui_draw_line(l->rule, 0, l->cols, UI_STYLE_RULE);
    const long below = ui_overlaid(ui) ? 0 : ui_transcript_below(&ui->transcript, &n_new);
    if (below == 0)
        return;
    struct ply_buf s = {0};
    if (n_new > 0)
        ui_buf_printf(&s, " more: %ld new line%s, End follows ", n_new, n_new == 1 ? "" : "s");
    else
        ui_buf_printf(&s, " more below: %ld line%s, End follows ", below, below == 1 ? "" : "s");
    ui_draw_str(l->rule, l->cols > 40 ? 2 : 0, l->cols, s.v, UI_STYLE_MORE);
    ply_buf_fini(&s);
}

static void
draw_notice(struct ui *ui)
{
    static const enum ui_style by_level[] = {
        [UI_LEVEL_INFO] = UI_STYLE_BOLD,
        [UI_LEVEL_WARN] = UI_STYLE_WARN,
        [UI_LEVEL_ERROR] = UI_STYLE_ERROR,
    };
    const struct ui_layout *l = &ui->layout;
    if (!ui->notice[0] || l->notice < 0)
        return;
    ui_draw_blank(l->notice, 0, l->cols, UI_STYLE_TEXT);
    const int x = ui_draw_cut(l->notice, l->cols > 20 ? 1 : 0, l->cols, ui->notice,
                              by_level[ui->notice_level]);
    if (ui_asks(ui))
        ui_draw_cursor(ui, l->notice, PLY_MIN(x + 1, l->cols - 1));
}

/* What the editor's line says while an overlay is open. */
static void
draw_overlay_line(struct ui *ui)
{
    const struct ui_layout *l = &ui->layout;
    const struct ui_list *spec = &ui->list.spec;
    struct ply_buf s = {0};
    if (ui->pager.open) {
        ui_buf_printf(&s, "Up Down PgUp PgDn scroll   Esc close");
    } else {
        ui_buf_printf(&s, "Enter open%s%s%s   Esc close", spec->can_rename ? "   r rename" : "",
                      spec->can_delete ? "   d delete" : "", spec->can_filter ? "   / search" : "");
    }
    ui_draw_cut(l->editor, l->cols > 20 ? 1 : 0, l->cols, s.v, UI_STYLE_DIM);
    ply_buf_fini(&s);
}

static void
draw_editor(struct ui *ui)
{
    const struct ui_layout *l = &ui->layout;
    struct ui_editor *ed = &ui->editor;
    const int x0 = l->cols > UI_EDITOR_PROMPT ? UI_EDITOR_PROMPT : 0;
    size_t row;
    int col;
    ui_editor_layout(ed, ui_layout_draft_cols(l->cols), &row, &col);
    const size_t top = ui_editor_scroll(ed, row, l->editor_rows);
    int x = x0;
    for (int i = 0; i < l->editor_rows && top + (size_t)i < ed->rows.n; i++) {
        if (x0 > 0)
            ui_draw_str(l->editor + i, 1, x0, top + (size_t)i == 0 ? ">" : " ", UI_STYLE_PROMPT);
        const int end = ui_draw_row(l->editor + i, x0, l->cols, ui_buf_str(&ed->text),
                                    &ed->rows.v[top + (size_t)i], UI_STYLE_TEXT);
        x = i == 0 ? end : x;
    }
    if (ed->text.n == 0)
        x = ui_draw_cut(l->editor, x0, l->cols - 1, ui->hint, UI_STYLE_DIM);
    if (ed->text.n > 0 || !ui->hint[0])
        ui_draw_right(l->editor, x + 2, l->cols - 1, ui->note, UI_STYLE_DIM);
    ui_draw_cursor(ui, l->editor + (int)(row - top), PLY_MIN(x0 + col, l->cols - 1));
}

void
ui_draw_cursor(struct ui *ui, int y, int x)
{
    ui->cursor_y = y;
    ui->cursor_x = x;
}

void
ui_draw_screen(struct ui *ui)
{
    erase();
    draw_header(ui);
    draw_rule(ui);
    draw_bar(ui);
    if (ui_overlaid(ui))
        draw_overlay_line(ui);
    else
        draw_editor(ui);
    if (ui->pager.open)
        ui_draw_pager(ui);
    else if (ui->list.open)
        ui_draw_list(ui);
    else
        ui_draw_transcript(ui);
    draw_notice(ui);
    move(ui->cursor_y, ui->cursor_x);
}
