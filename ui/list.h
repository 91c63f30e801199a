/* SPDX-License-Identifier: MIT
 * The two overlays as models: a list of rows with a cursor, a filter and a rename field, and a
 * pager. No curses. */
#ifndef UI_LIST_H
#define UI_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/editor.h"
#include "ui/keys.h"
#include "ui/ui.h"

enum ui_list_mode { UI_LIST_BROWSE, UI_LIST_FILTER, UI_LIST_RENAME, UI_LIST_DELETE };

struct ui_list_item {
    int64_t id;
    bool marked;
    char *cells[UI_LIST_COLS];
};

struct ui_list_view {
    bool open;
    struct ui_list spec; /* its strings are owned here */
    struct ui_list_item *rows;
    int n, cursor, top;
    int height; /* rows shown, set by the layout */
    enum ui_list_mode mode;
    struct ui_editor filter, name;
    uint64_t filter_told; /* version of the filter that the program knows */
};

void ui_list_view_open(struct ui_list_view *v, const struct ui_list *spec);
void ui_list_view_close(struct ui_list_view *v);
void ui_list_view_rows(struct ui_list_view *v, const struct ui_list_row *rows, int n);
/* Handles a key; ev->type is set if the program has to know (ev->text points into v). */
void ui_list_view_key(struct ui_list_view *v, const struct ui_key *key, struct ui_event *ev);
/* Width of each column on a screen of cols, 0 for those that are not shown. */
void ui_list_view_widths(const struct ui_list_view *v, int cols, int widths[UI_LIST_COLS]);
/* First row shown, so that the cursor is among the height rows. */
int ui_list_view_scroll(struct ui_list_view *v);

struct ui_pager {
    bool open;
    char *title;
    struct ply_buf text;
    struct ui_rows rows;
    long top;
    int height; /* set by the layout */
};

void ui_pager_set(struct ui_pager *p, const char *title, const char *text, size_t len);
void ui_pager_key(struct ui_pager *p, const struct ui_key *key);
/* Lays out for a width and clamps the top; the place is kept when the width changes. */
void ui_pager_layout(struct ui_pager *p, int cols, int height);
void ui_pager_fini(struct ui_pager *p);

#endif
