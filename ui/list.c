/* SPDX-License-Identifier: MIT
 * Keys of the overlays, and the widths of a list's columns. */
#include "ui/list.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/num.h"
#include "ui/bind.h"
#include "ui/mem.h"
#include "ui/text.h"

#define COL_GAP 2
#define FLEX_MIN 8 /* the column that takes what is left is not made narrower for others */

/* ---- open, close, rows ----------------------------------------------------------------- */

static void
copy_str(const char **to, const char *from)
{
    char *s = NULL;
    ui_str_set(&s, from);
    *to = s;
}

static void
free_rows(struct ui_list_view *v)
{
    for (int i = 0; i < v->n; i++) {
        for (int c = 0; c < v->spec.n_cols; c++)
            free(v->rows[i].cells[c]);
    }
    free(v->rows);
    v->rows = NULL;
    v->n = 0;
}

void
ui_list_view_close(struct ui_list_view *v)
{
    if (!v->open)
        return;
    free_rows(v);
    for (int c = 0; c < v->spec.n_cols; c++)
        free((char *)v->spec.cols[c].title);
    free((char *)v->spec.title);
    free((char *)v->spec.empty);
    ui_editor_fini(&v->filter);
    ui_editor_fini(&v->name);
    *v = (struct ui_list_view){0};
}

void
ui_list_view_open(struct ui_list_view *v, const struct ui_list *spec)
{
    ui_list_view_close(v);
    v->open = true;
    v->spec = *spec;
    v->spec.n_cols = PLY_MAX(0, PLY_MIN(spec->n_cols, UI_LIST_COLS));
    v->spec.name_col = PLY_MAX(0, PLY_MIN(spec->name_col, UI_LIST_COLS - 1));
    v->height = 1;
    copy_str(&v->spec.title, spec->title);
    copy_str(&v->spec.empty, spec->empty);
    for (int c = 0; c < v->spec.n_cols; c++)
        copy_str(&v->spec.cols[c].title, spec->cols[c].title);
    ui_editor_init(&v->filter, true);
    ui_editor_init(&v->name, true);
}

void
ui_list_view_rows(struct ui_list_view *v, const struct ui_list_row *rows, int n)
{
    if (!v->open)
        return;
    const int64_t id = v->n > 0 ? v->rows[v->cursor].id : 0;
    int cursor = v->n > 0 ? v->cursor : 0;
    const bool had = v->n > 0;
    free_rows(v);
    v->rows = ui_xrealloc(NULL, (size_t)PLY_MAX(n, 0), sizeof *v->rows);
    v->n = PLY_MAX(n, 0);
    for (int i = 0; i < n; i++) {
        v->rows[i] = (struct ui_list_item){.id = rows[i].id, .marked = rows[i].marked};
        for (int c = 0; c < v->spec.n_cols; c++)
            ui_str_set(&v->rows[i].cells[c], rows[i].cells[c]);
        if (had && rows[i].id == id)
            cursor = i;
    }
    v->cursor = PLY_MAX(PLY_MIN(cursor, v->n - 1), 0);
    if (v->n == 0 && v->mode != UI_LIST_FILTER)
        v->mode = UI_LIST_BROWSE;
}

/* ---- keys ------------------------------------------------------------------------------ */

static bool
move(struct ui_list_view *v, const struct ui_key *key)
{
    const int page = PLY_MAX(v->height - 1, 1);
    int to = v->cursor;
    switch (key->code) {
    case UI_KEY_UP: to--; break;
    case UI_KEY_DOWN: to++; break;
    case UI_KEY_PGUP: to -= page; break;
    case UI_KEY_PGDN: to += page; break;
    case UI_KEY_HOME: to = 0; break;
    case UI_KEY_END: to = v->n - 1; break;
    default: return false;
    }
    v->cursor = PLY_MAX(PLY_MIN(to, v->n - 1), 0);
    return true;
}

static void
tell(const struct ui_list_view *v, enum ui_event_type type, const struct ui_editor *text,
     struct ui_event *ev)
{
    ev->type = type;
    ev->id = v->n > 0 ? v->rows[v->cursor].id : 0;
    ev->text = text ? ui_buf_str(&text->text) : "";
    ev->len = text ? text->text.n : 0;
}

static void
start_rename(struct ui_list_view *v)
{
    const char *name = v->rows[v->cursor].cells[v->spec.name_col];
    ui_editor_reset(&v->name);
    if (name)
        ui_editor_set(&v->name, name, strlen(name));
    v->mode = UI_LIST_RENAME;
}

static bool
closes(const struct ui_key *key)
{
    switch (key->code) {
    case UI_KEY_ESC: return true;
    case UI_KEY_TEXT: return key->text[0] == 'q';
    case UI_KEY_F: return key->ch == 2; /* F2 and ^O opened it */
    case UI_KEY_CHAR: return key->mods == UI_MOD_CTRL && key->ch == 'o';
    default: return false;
    }
}

static void
browse_key(struct ui_list_view *v, const struct ui_key *key, struct ui_event *ev)
{
    const bool any = v->n > 0;
    const char c = key->code == UI_KEY_TEXT ? key->text[0] : 0;
    if (closes(key)) {
        ui_list_view_close(v);
        ev->type = UI_EVENT_LIST_CLOSE;
    } else if (key->code == UI_KEY_ENTER && any) {
        tell(v, UI_EVENT_LIST_OPEN, NULL, ev);
    } else if (c == '/' && v->spec.can_filter) {
        v->mode = UI_LIST_FILTER;
    } else if (c == 'r' && any && v->spec.can_rename) {
        start_rename(v);
    } else if ((c == 'd' || key->code == UI_KEY_DELETE) && any && v->spec.can_delete) {
        v->mode = UI_LIST_DELETE;
    } else {
        move(v, key);
    }
}

static void
filter_key(struct ui_list_view *v, const struct ui_key *key, struct ui_event *ev)
{
    if (key->code == UI_KEY_ENTER)
        v->mode = UI_LIST_BROWSE;
    else if (key->code == UI_KEY_ESC) {
        ui_editor_do(&v->filter, UI_EDIT_KILL_ALL);
        v->mode = UI_LIST_BROWSE;
    } else if (!move(v, key))
        ui_bind_edit(&v->filter, key);
    if (v->filter.version != v->filter_told) {
        v->filter_told = v->filter.version;
        tell(v, UI_EVENT_LIST_FILTER, &v->filter, ev);
        ev->id = 0;
    }
}

void
ui_list_view_key(struct ui_list_view *v, const struct ui_key *key, struct ui_event *ev)
{
    switch (v->mode) {
    case UI_LIST_BROWSE: browse_key(v, key, ev); break;
    case UI_LIST_FILTER: filter_key(v, key, ev); break;
    case UI_LIST_RENAME:
        if (key->code == UI_KEY_ESC ||
            (key->code == UI_KEY_ENTER && ui_editor_is_blank(&v->name))) {
            v->mode = UI_LIST_BROWSE;
        } else if (key->code == UI_KEY_ENTER) {
            v->mode = UI_LIST_BROWSE;
            tell(v, UI_EVENT_LIST_RENAME, &v->name, ev);
        } else {
            ui_bind_edit(&v->name, key);
        }
        break;
    case UI_LIST_DELETE:
        v->mode = UI_LIST_BROWSE;
        if (key->code == UI_KEY_TEXT && (key->text[0] == 'y' || key->text[0] == 'Y'))
            tell(v, UI_EVENT_LIST_DELETE, NULL, ev);
        break;
    }
}

/* ---- geometry -------------------------------------------------------------------------- */

static int
content_cols(const struct ui_list_view *v, int c)
{
    int most = ui_text_cols(v->spec.cols[c].title, strlen(v->spec.cols[c].title));
    for (int i = 0; i < v->n; i++) {
        const int w = ui_text_cols(v->rows[i].cells[c], strlen(v->rows[i].cells[c]));
        most = PLY_MAX(most, w);
    }
    return most;
}

void
ui_list_view_widths(const struct ui_list_view *v, int cols, int widths[UI_LIST_COLS])
{
    int left = cols - 4; /* cursor, mark, and a blank column at either edge */
    int flex = -1;
    memset(widths, 0, UI_LIST_COLS * sizeof *widths);
    for (int c = 0; c < v->spec.n_cols; c++) {
        if (v->spec.cols[c].cols_max == 0) {
            flex = c;
            left -= FLEX_MIN;
        }
    }
    for (int c = 0; c < v->spec.n_cols; c++) {
        const struct ui_list_col *col = &v->spec.cols[c];
        if (c == flex || cols < col->screen_min)
            continue;
        const int content = content_cols(v, c);
        const int w = PLY_MIN(content, col->cols_max);
        if (w + COL_GAP > left)
            continue;
        widths[c] = w;
        left -= w + COL_GAP;
    }
    if (flex >= 0)
        widths[flex] = PLY_MAX(left + FLEX_MIN, 1);
}

int
ui_list_view_scroll(struct ui_list_view *v)
{
    const int h = PLY_MAX(v->height, 1);
    v->top = PLY_MIN(v->top, v->cursor);
    v->top = PLY_MAX(v->top, v->cursor + 1 - h);
    v->top = PLY_MAX(PLY_MIN(v->top, v->n - h), 0);
    return v->top;
}

/* ---- pager ----------------------------------------------------------------------------- */

void
ui_pager_set(struct ui_pager *p, const char *title, const char *text, size_t len)
{
    p->open = true;
    p->top = 0;
    ui_str_set(&p->title, title);
    ui_buf_set(&p->text, text, len);
    p->rows.cols = 0;
}

void
ui_pager_key(struct ui_pager *p, const struct ui_key *key)
{
    const long page = PLY_MAX(p->height - 1, 1);
    const char c = key->code == UI_KEY_TEXT ? key->text[0] : 0;
    switch (key->code) {
    case UI_KEY_ESC:
    case UI_KEY_ENTER: p->open = false; break;
    case UI_KEY_UP: p->top--; break;
    case UI_KEY_DOWN: p->top++; break;
    case UI_KEY_PGUP: p->top -= page; break;
    case UI_KEY_PGDN: p->top += page; break;
    case UI_KEY_HOME: p->top = 0; break;
    case UI_KEY_END: p->top = (long)p->rows.n; break;
    case UI_KEY_F: p->open = key->ch != 1; break; /* F1 opened it */
    default: break;
    }
    if (c == 'q')
        p->open = false;
    else if (c == ' ')
        p->top += page;
    else if (c == 'b')
        p->top -= page;
    else if (c == 'j' || c == 'k')
        p->top += c == 'j' ? 1 : -1;
    ui_pager_layout(p, p->rows.cols, p->height);
}

void
ui_pager_layout(struct ui_pager *p, int cols, int height)
{
    const int w = PLY_MAX(cols, 1);
    p->height = PLY_MAX(height, 1);
    if (p->rows.cols != w) {
        const size_t off =
            p->rows.cols > 0 && (size_t)p->top < p->rows.n ? p->rows.v[p->top].off : 0;
        ui_rows_update(&p->rows, ui_buf_str(&p->text), p->text.n, w, 0);
        p->top = (long)ui_rows_find(&p->rows, off);
    }
    p->top = PLY_MAX(PLY_MIN(p->top, (long)p->rows.n - p->height), 0);
}

void
ui_pager_fini(struct ui_pager *p)
{
    free(p->title);
    ply_buf_fini(&p->text);
    ui_rows_fini(&p->rows);
    *p = (struct ui_pager){0};
}
