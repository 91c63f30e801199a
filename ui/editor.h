/* SPDX-License-Identifier: MIT
 * The editor: a text, a caret, undo, one kill buffer and the history that Up recalls. Also the
 * one-line fields of the list. The text is valid UTF-8 without NUL at any time; lines end in
 * "\n". No curses. */
#ifndef UI_EDITOR_H
#define UI_EDITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/array.h"
#include "ui/wrap.h"

/* One change: at pos, `removed` was replaced by `inserted`. */
struct ui_change {
    size_t pos, caret;
    struct ply_buf removed, inserted;
    bool typed; /* further typing joins it */
};

struct ui_editor {
    struct ply_buf text;
    size_t caret;     /* byte offset, at a grapheme's start or the end */
    bool one_line;    /* newlines become spaces */
    uint64_t version; /* grows with every change of text */

    struct ui_change *changes; /* the first n_done are in effect, the rest can be redone */
    size_t n_changes, n_done, cap_changes;
    struct ply_buf kill;
    bool killing; /* the last command was a kill: the next one adds to it */
    int goal;     /* column that Up and Down aim at, -1: the caret's */

    struct ply_buf *history; /* oldest first */
    int n_history, cap_history;
    int recall;           /* index of the entry shown, n_history: the draft */
    struct ply_buf draft; /* what was there before the first recall */

    struct ui_rows rows;
    size_t changed; /* rows are right before this byte */
    size_t top;     /* first row shown */
};

enum ui_edit {
    UI_EDIT_LEFT,
    UI_EDIT_RIGHT,
    UI_EDIT_UP, /* a row, then the history */
    UI_EDIT_DOWN,
    UI_EDIT_LINE_START,
    UI_EDIT_LINE_END,
    UI_EDIT_TEXT_START,
    UI_EDIT_TEXT_END,
    UI_EDIT_WORD_LEFT,
    UI_EDIT_WORD_RIGHT,
    UI_EDIT_BACKSPACE,
    UI_EDIT_DELETE,
    UI_EDIT_KILL_WORD_LEFT,  /* letters and digits */
    UI_EDIT_KILL_SPACE_LEFT, /* up to white space */
    UI_EDIT_KILL_WORD_RIGHT,
    UI_EDIT_KILL_LINE_START,
    UI_EDIT_KILL_LINE_END,
    UI_EDIT_KILL_ALL,
    UI_EDIT_YANK,
    UI_EDIT_TRANSPOSE,
    UI_EDIT_UNDO,
    UI_EDIT_REDO,
    UI_EDIT_HISTORY_PREV,
    UI_EDIT_HISTORY_NEXT,
};

void ui_editor_init(struct ui_editor *ed, bool one_line);
void ui_editor_fini(struct ui_editor *ed);

/* Puts text in at the caret. CR LF and CR become a newline; NUL is left out; ill-formed UTF-8
 * becomes U+FFFD. typed: single keys, undone word by word; otherwise (a paste) all at once. */
void ui_editor_insert(struct ui_editor *ed, const char *text, size_t n, bool typed);
void ui_editor_do(struct ui_editor *ed, enum ui_edit cmd);
/* Replaces everything, caret at the end; can be undone. */
void ui_editor_set(struct ui_editor *ed, const char *text, size_t n);
/* Empty, with nothing to undo. */
void ui_editor_reset(struct ui_editor *ed);
bool ui_editor_is_blank(const struct ui_editor *ed); /* nothing but white space */

/* The newest entry; a repetition of the last one is left out. */
void ui_editor_history_add(struct ui_editor *ed, const char *text, size_t n);

/* Brings rows up to date for a width and tells where the caret is. Up and Down use these rows. */
void ui_editor_layout(struct ui_editor *ed, int cols, size_t *caret_row, int *caret_col);
/* Moves the window of `height` rows so that it holds the caret; returns its first row. */
size_t ui_editor_scroll(struct ui_editor *ed, size_t caret_row, int height);

#endif
