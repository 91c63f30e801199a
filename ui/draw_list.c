/* SPDX-License-Identifier: MIT
 * The overlays: list and pager. The cursor stands on the chosen row or in the open field. */
#include "ui/draw.h"

#include <string.h>

#include "engine/base/num.h"
#include "ui/mem.h"
#include "ui/screen.h"
#include "ui/text.h"

/* ---- list ------------------------------------------------------------------------------ */

static void
draw_cells(int y, int cols, const struct ui_list_view *v, const int *widths, int row,
           enum ui_style style)
{
    int x = 3;
    for (int c = 0; c < v->spec.n_cols; c++) {
        const char *s = row < 0 ? v->spec.cols[c].title : v->rows[row].cells[c];
        if (widths[c] == 0)
            continue;
        const int end = PLY_MIN(x + widths[c], cols);
        const int want = ui_text_cols(s, strlen(s));
        ui_draw_cut(y, v->spec.cols[c].right && want < widths[c] ? end - want : x, end, s, style);
        x += widths[c] + 2;
    }
}

static void
draw_rows(struct ui *ui, int y, int n)
{
    struct ui_list_view *v = &ui->list;
    const int cols = ui->layout.cols;
    int widths[UI_LIST_COLS];
    ui_list_view_widths(v, cols, widths);
    if (n > 2) {
        draw_cells(y, cols, v, widths, -1, UI_STYLE_DIM);
        y++;
        n--;
    }
    v->height = PLY_MAX(n, 1);
    const int top = ui_list_view_scroll(v);
    if (v->n == 0)
        ui_draw_cut(y, PLY_MIN(3, cols - 1), cols, v->spec.empty, UI_STYLE_DIM);
    for (int i = 0; i < n && top + i < v->n; i++) {
        const bool chosen = top + i == v->cursor;
        const enum ui_style style = chosen ? UI_STYLE_SELECTED : UI_STYLE_TEXT;
        if (chosen)
            ui_draw_blank(y + i, 0, cols, style);
        ui_draw_str(y + i, 0, cols, chosen ? ">" : " ", style);
        if (v->rows[top + i].marked)
            ui_draw_str(y + i, 1, cols, "*", style);
        draw_cells(y + i, cols, v, widths, top + i, style);
        if (chosen)
            ui_draw_cursor(ui, y + i, 0);
    }
}

/* A one-line field in the editor's place, scrolled so that the caret is seen. */
static void
draw_field(struct ui *ui, const char *label, struct ui_editor *ed)
{
    const struct ui_layout *l = &ui->layout;
    const char *s = ui_buf_str(&ed->text);
    ui_draw_blank(l->editor, 0, l->cols, UI_STYLE_TEXT);
    const int x =
        ui_draw_str(l->editor, l->cols > 20 ? 1 : 0, l->cols / 2, label, UI_STYLE_PROMPT) + 1;
    const int room = PLY_MAX(l->cols - x - 1, 1);
    size_t from = 0;
    while (ui_text_cols(s + from, ed->caret - from) > room)
        from = ui_text_next(s, ed->text.n, from);
    ui_draw_text(l->editor, x, l->cols - 1, s + from, ed->text.n - from, UI_STYLE_TEXT);
    const int caret = x + ui_text_cols(s + from, ed->caret - from);
    ui_draw_cursor(ui, l->editor, PLY_MIN(caret, l->cols - 1));
}

static void
draw_confirm(struct ui *ui)
{
    const struct ui_layout *l = &ui->layout;
    const struct ui_list_view *v = &ui->list;
    const char *name = v->rows[v->cursor].cells[v->spec.name_col];
    const int x0 = l->cols > 20 ? 1 : 0, x_end = l->cols - 1;
    ui_draw_blank(l->editor, 0, l->cols, UI_STYLE_TEXT);
    int x = ui_draw_str(l->editor, x0, x_end, "delete ", UI_STYLE_ERROR);
    x = ui_draw_cut(l->editor, x, PLY_MAX(x_end - 10, x), name ? name : "", UI_STYLE_BOLD);
    x = ui_draw_str(l->editor, x, x_end, "? (y/n) ", UI_STYLE_ERROR);
    ui_draw_cursor(ui, l->editor, PLY_MIN(x, x_end));
}

void
ui_draw_list(struct ui *ui)
{
    struct ui_list_view *v = &ui->list;
    const struct ui_layout *l = &ui->layout;
    int y = l->view, n = l->view_rows;
    if (n > 1) {
        struct ply_buf count = {0};
        ui_buf_printf(&count, "%d of %d", v->n > 0 ? v->cursor + 1 : 0, v->n);
        const int x = ui_draw_right(y, l->cols / 2, l->cols - 1, count.v, UI_STYLE_DIM);
        const int after = ui_draw_cut(y, 1, x - 1, v->spec.title, UI_STYLE_BOLD);
        if (v->filter.text.n > 0 && v->mode != UI_LIST_FILTER) {
            const int at = ui_draw_str(y, after + 2, x - 1, "search: ", UI_STYLE_DIM);
            ui_draw_cut(y, at, x - 1, v->filter.text.v, UI_STYLE_MORE);
        }
        ply_buf_fini(&count);
        y++;
        n--;
    }
    draw_rows(ui, y, n);
    if (v->mode == UI_LIST_FILTER)
        draw_field(ui, "search:", &v->filter);
    else if (v->mode == UI_LIST_RENAME)
        draw_field(ui, "new name:", &v->name);
    else if (v->mode == UI_LIST_DELETE)
        draw_confirm(ui);
}

/* ---- pager ----------------------------------------------------------------------------- */

void
ui_draw_pager(struct ui *ui)
{
    struct ui_pager *p = &ui->pager;
    const struct ui_layout *l = &ui->layout;
    const int x0 = l->cols > 20 ? 1 : 0;
    const bool titled = l->view_rows > 2;
    const int y = l->view + titled, n = l->view_rows - titled;
    ui_pager_layout(p, l->cols - x0 - 1, n);
    if (titled) {
        struct ply_buf at = {0};
        const long last = PLY_MIN(p->top + n, (long)p->rows.n);
        ui_buf_printf(&at, "%ld-%ld of %zu", p->top + 1, last, p->rows.n);
        const int x = ui_draw_right(l->view, l->cols / 2, l->cols - 1, at.v, UI_STYLE_DIM);
        ui_draw_cut(l->view, x0, x - 1, p->title, UI_STYLE_BOLD);
        ply_buf_fini(&at);
    }
    for (int i = 0; i < n && (size_t)(p->top + i) < p->rows.n; i++)
        ui_draw_row(y + i, x0, l->cols, ui_buf_str(&p->text), &p->rows.v[p->top + i],
                    UI_STYLE_TEXT);
    ui_draw_cursor(ui, l->editor, 0);
}
